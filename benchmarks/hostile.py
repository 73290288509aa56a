"""Hostile files for `attacks.py`: each function draws one and returns what it is and what writes it into the current folder.

A writer returns the arguments that read its file. Libraries are imported where they are used: the process that starts the program
and measures its memory stays small.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

GB = 10**9
Writer = Callable[[], list[str]]
Named = tuple[str, Writer]

# names of labels, columns and files
NAMES = """=cmd|' /C calc'!A0
<img src=x onerror=alert(1)>
</script><script>alert(1)</script>
__proto__
constructor
${7*7}
{{7*7}}
[x](javascript:alert(1))
`id`
$(id)
a|b|c
a\\
-h
--help
P(x)
row
token
class
&lt;
%s%n
nan
null
\\u001b[2J
con
../../x
/etc/passwd
~
*
+1
@SUM(A1)
#
"
'""".split("\n")
NAMES += [
    "\x1b]0;x\x07",
    "\u202egnp.exe",
    "\ufeffx",
    "a\u2028b",
    "😀" * 50,
    "e" + "\u0301" * 100,
    "x" * 3000,
    "\t=1",
    "---\nlicense: evil",
]
NUMBERS = [
    *'1e308 -1e308 1e999 NaN "1e400" "٣" -0.0 1e-320 -1 true'.split(),
    "1" + "0" * 400,
    "1" + "0" * 5000,
]


def log_uniform(rng: Random, low: float, high: float) -> int:
    return int(low * (high / low) ** rng.random())


def dumped(value: object) -> str:
    """JSON; of what is nested too deeply for it, brackets."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 5000 + "]" * 5000


def no_file(rng: Random, path: str) -> tuple[str, Callable[[], object]]:
    """What is no ordinary file, in the place of one."""
    size, depth, noise = (
        log_uniform(rng, 10**6, 10**11),
        log_uniform(rng, 500, 10**6),
        rng.randbytes(3000),
    )
    place = Path(path)

    def socket() -> None:
        import socket as sockets

        sockets.socket(sockets.AF_UNIX).bind(path)

    contents = {
        f"{depth} brackets": b"[" * depth + b"]" * depth,
        f"{depth * 20} empty lists": b'{"a":[' + b"[]," * depth * 20 + b"[]]}",
        "noise": noise,
        "nothing": b"",
        "NUL": bytes(2000),
        "UTF-16": '{"a": "ü"}'.encode("utf-16"),
        "huge numbers": b'{"a": 1e999, "b": ' + b"9" * 5000 + b', "a": NaN}',
    }
    writers: dict[str, Callable[[], object]] = {
        "a FIFO": lambda: os.mkfifo(path),
        "a folder": place.mkdir,
        "a socket": socket,
        "a link to itself": lambda: place.symlink_to(place.name),
        "a link to /dev/zero": lambda: place.symlink_to("/dev/zero"),
        "a link to /proc/kmsg": lambda: place.symlink_to("/proc/kmsg"),
        f"a sparse file of {size / 1e6:,.0f} MB": lambda: [place.touch(), os.truncate(path, size)],
    }
    name = rng.choice([*contents, *writers])
    write = writers.get(name) or (lambda: place.write_bytes(contents[name]))
    return name, lambda: [place.unlink(missing_ok=True), write()]


def pattern(rng: Random, depth: int = 0) -> str:
    """A regular expression with nested repetition, large counts, alternatives, or what engines refuse."""
    if depth > 3 or rng.random() < 0.2:
        return rng.choice([*"a h . \\w (?=a) \\1 ^ \\b [^z] \\p{L} (?R) ſ \\s".split(), ""])
    one, other = pattern(rng, depth + 1), pattern(rng, depth + 1)
    kinds = [
        f"({one}+)+",
        f"({one}*)*z",
        f"({one}|{other})+z",
        f"({one}{one}+)+b",
        f"(?i){one}",
        f"[{one}",
    ]
    return rng.choice(
        [*kinds, f"({one}){{1,{rng.choice([2, 100, 1000])}}}", "(" * 3000 + one + ")" * 3000]
    )


def long_runs(rng: Random) -> None:
    """Documents of one letter, on which backtracking explodes."""
    length, n = rng.choice([3000, 20_000]), rng.choice([60, 300])
    rows = "".join(f"{rng.choice('ah') * length} good {i},{'pn'[i % 2]}\n" for i in range(n))
    Path("good.csv").write_text("text,label\n" + rows)


# ---- tokenizers and results


def tokenizer(rng: Random) -> tuple[str, str]:
    """The text of a tokenizer.json, and what is odd about it."""
    from test_loaders import component, tokenizer_model

    whole = dict.fromkeys("truncation padding normalizer post_processor decoder".split()) | {
        "version": "1.0"
    }
    words = {"[UNK]": 0, "good": 1, "bad": 2, "film": 3}
    whole |= {"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}}
    whole["model"] = {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}
    regex, content = {"Regex": pattern(rng)}, "o" * rng.choice([1, 2, 64, 5000])
    steps = [{"type": kind} for kind in ("ByteLevel", "NFKD", "NFC")]
    steps += [
        {"type": "Prepend", "prepend": content},
        {"type": "Replace", "pattern": {"String": "e"}, "content": content},
    ]
    steps += [
        {"type": "Replace", "pattern": {"Regex": rng.choice(["", ".", "\\b"])}, "content": "ab"}
    ]
    kind, depth = (
        rng.choice("growing splitting replacing components nested numbers added twice".split()),
        rng.choice([120, 3000]),
    )
    if kind == "growing":
        whole["normalizer"] = {
            "type": "Sequence",
            "normalizers": rng.choices(steps, k=rng.randrange(1, 60)),
        }
    elif kind == "splitting":
        whole["pre_tokenizer"] = {
            "type": "Split",
            "pattern": regex,
            "behavior": "Isolated",
            "invert": rng.random() < 0.5,
        }
    elif kind == "replacing":
        whole["normalizer"] = {"type": "Replace", "pattern": regex, "content": "x"}
    elif kind == "components":
        whole |= {"model": tokenizer_model(rng), "normalizer": component("normalizer", rng)}
        whole["pre_tokenizer"] = component("pre_tokenizer", rng)
    elif kind == "added":
        flags = dict.fromkeys("single_word lstrip rstrip normalized special".split(), False)
        n = log_uniform(rng, 1, 60_000)
        whole["added_tokens"] = [
            {"id": i + 9, "content": rng.choice(["", "\n", f"t{i}"]), **flags} for i in range(n)
        ]
    text = dumped(whole)
    if kind == "nested":
        inner = '{"type":"Sequence","normalizers":[' * depth + "]}" * depth
        text = text.replace('"normalizer": null', f'"normalizer": {inner}')
    if kind == "numbers":
        text = text.replace(
            '"good": 1', f'"good": {rng.choice(["1e999", "4294967295", "-1", "NaN"])}'
        )
    return kind, text if kind != "twice" else "\ufeff" * (rng.random() < 0.5) + text[
        :-1
    ] + ', "model": {}}'


def resigned(change: Callable[[dict[str, object]], object] | None = None) -> None:
    """The saved model with digests that fit what it has become, so that reading goes beyond them."""
    from tokensieve.model.storage import _digest

    Path("saved", "SHA256SUMS").unlink(missing_ok=True)
    path = Path("saved", "model.json")
    with suppress(Exception):
        described = json.loads(path.read_text())
        if change:
            change(described)
        path.write_text(dumped(described))
        described["sha256"] = _digest(described, Path("saved", "model.safetensors").read_bytes())
        path.write_text(dumped(described))


def tensors(rng: Random) -> bytes:
    """A safetensors file with an odd header."""
    entry: dict[str, object] = {"dtype": rng.choice(["F64", "F8_E4M3", "I64", "no"])}
    entry["shape"] = [rng.choice([0, -1, 1, 2**62])] * rng.choice([1, 3, 1000])
    entry["data_offsets"] = rng.choice([[0, 8], [0, 0], [2**64 - 1, 7], [8, 0]])
    many = [f"grams{i}" for i in range(2, log_uniform(rng, 3, 10**5))]
    names = rng.choice([["scores"], ["scores", "values", "prior"], many])
    header = json.dumps(dict.fromkeys(names, entry)).encode()
    header = rng.choice([header, header, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"[]", b""])
    return (
        rng.choice([len(header), 2**63, 100]).to_bytes(8, "little")
        + header
        + bytes(rng.choice([0, 8]))
    )


# ---- bombs


def packed(rng: Random) -> Named:
    ending, total = rng.choice([".gz", ".zst"]), rng.choice([1, 3, 5])
    kind, shape = (
        rng.choice([".csv", ".tsv", ".jsonl", ".json"]),
        rng.choice(["lines", "one line", "zeros"]),
    )
    stream = ["--stream"] * (rng.random() < 0.5)

    def write() -> list[str]:
        import gzip

        import zstandard

        pack = gzip.compress if ending == ".gz" else zstandard.compress
        line = (
            b'{"text":"' + b"good " * 200 + b'","label":"p"}\n'
            if "json" in kind
            else b"good " * 200 + b",p\n"
        )
        block = {
            "lines": line * 20_000,
            "one line": b"good " * 4_000_000,
            "zeros": bytes(20_000_000),
        }[shape]
        member, start = pack(block), {".json": b"[", ".jsonl": b""}.get(kind, b"text,label\n")
        with open(f"s{kind}{ending}", "wb") as file:
            file.writelines([pack(start), *[member] * (total * GB // len(block))])
        return [f"s{kind}{ending}", *stream]

    return f"{kind}{ending} of {total} GB, {shape} {''.join(stream)}", write


def sparse(rng: Random) -> Named:
    name = "s" + rng.choice(
        ".csv .tsv .jsonl .json .parquet .arrow .xlsx .ods .txt .csv.gz .csv.zst".split()
    )
    size, stream = rng.choice([1, 10, 100]), ["--stream"] * (rng.random() < 0.3)
    start = {".json": b'[{"text": "', ".parquet": b"PAR1", ".arrow": b"ARROW1"}.get(
        Path(name).suffix, b"text,label\n"
    )

    def write() -> list[str]:
        Path(name).write_bytes(start)
        os.truncate(name, size * GB)
        return [name, *stream]

    return f"sparse {name}, {size} GB", write


def repeated_byte(rng: Random) -> Named:
    kind, byte = (
        rng.choice([".csv", ".jsonl", ".json", ".tsv"]),
        bytes([rng.choice(b'\n\r" x\xff[,{')]),
    )
    megabytes = rng.choice([30, 150, 300])

    def write() -> list[str]:
        with open(f"s{kind}", "wb") as file:
            file.writelines(
                [b"text,label\n" if kind[-2:] == "sv" else b"", *[byte * 10**6] * megabytes]
            )
        return [f"s{kind}"]

    return f"{kind} of {megabytes} MB of {byte!r}", write


def many_pieces(rng: Random) -> Named:
    n, kind = (
        log_uniform(rng, 10**5, 10**7),
        rng.choice(["names", "keys", "new keys", "lists", "objects", "deep"]),
    )
    ending = {"names": ".csv", "keys": ".jsonl", "new keys": ".jsonl"}.get(kind, ".json")

    def write() -> list[str]:
        numbers = range(n // 20 if kind == "new keys" else n if kind in ("names", "keys") else 0)
        text = {
            "names": ",".join(f"c{i}" for i in numbers) + "\n" + ",".join(["x"] * n) + "\n",
            "keys": "{" + ",".join(f'"k{i}":1' for i in numbers) + "}\n",
            "new keys": "".join(f'{{"text":"a {i}","label":{i % 2},"k{i}":1}}\n' for i in numbers),
            "lists": "[" + "[]," * n + "[]]",
            "objects": "[" + "{}," * n + "{}]",
            "deep": '{"text":' + "[" * n + "]" * n + ',"label":"p"}',
        }[kind]
        Path(f"s{ending}").write_text(text)
        return [f"s{ending}"]

    return f"{ending} with {n} {kind}", write


def cells(rng: Random) -> Named:
    """Cells that would be dear or dangerous as Python."""
    n = log_uniform(rng, 1000, 300_000)
    literals = [
        "[9**9**9]",
        "[1+2j, 3]",
        "['a\0', 'b']",
        "[" * n + "1" + "]" * n,
        f"[1{'+1' * n}]",
        f"[{'-' * n}1]",
    ]
    literals += [
        f"['a good',{'1,' * n}]",
        f"[{'9' * n}, 1]",
        f"['a'{' 1' * n}]",
        '{"a":' * n + "1" + "}" * n,
    ]
    literal = rng.choice(literals)
    roles = rng.choice(
        [["--pairs", "answers", "--scores", "scores"], ["--text", "answers", "--label", "scores"]]
    )

    def write() -> list[str]:
        with open("s.csv", "w", newline="") as file:
            csv.writer(file).writerows([("answers", "scores"), *[(literal, "[1, 2]")] * 50])
        return ["s.csv", *roles]

    return f"cells {literal[:12]!r} of {len(literal)} characters, {roles[0]}", write


def columnar(rng: Random) -> Named:
    """Many rows that share one large cell."""
    rows, megabytes = log_uniform(rng, 1000, 200_000), rng.choice([1, 5, 10])
    place, kind = (
        rng.choice("text hidden label struct chat empty".split()),
        rng.choice(["parquet", "arrow", "stream"]),
    )

    def write() -> list[str]:
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        which = np.full(rows, place != "hidden", np.int32)
        which[rows // 3] = 1
        large = "" if place == "empty" else "good film " * 100_000 * megabytes
        big = pa.DictionaryArray.from_arrays(which, pa.array(["a film", large]))
        short = pa.array((["p", "n"] * rows)[:rows])
        inner = pa.StructArray.from_arrays([short, big], ["role", "content"])
        chat = pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), inner)
        text = {"struct": inner, "chat": chat, "label": short}.get(place, big)
        table = pa.table({"text": text, "label": big if place == "label" else short})
        name = "s.parquet" if kind == "parquet" else "s.arrow"
        if kind == "parquet":
            pq.write_table(table, name, compression="zstd", dictionary_pagesize_limit=2**31 - 1)
        else:
            with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(
                name, table.schema
            ) as writer:
                writer.write_table(table)
        return [name, "--text", "text.content" if place == "struct" else "text", "--label", "label"]

    return f"{kind}, {rows} rows, {megabytes} MB in {place}", write


def workbook(rng: Random) -> Named:
    kind = rng.choice(["far cell", "shared", "entities", "dimension", "long cell", "ods", "ods"])
    row, column = log_uniform(rng, 10**5, 2**20), rng.choice(["ZZ", "XFD", "C"])
    across, down, n = (
        log_uniform(rng, 1, 2**31),
        log_uniform(rng, 1, 2**31),
        log_uniform(rng, 10, 2000),
    )

    def write() -> list[str]:
        import zipfile

        import text.layouts

        if kind == "ods":
            urn = "urn:oasis:names:tc:opendocument:xmlns"
            spaces = " ".join(f'xmlns:{x}="{urn}:{x}:1.0"' for x in ("office", "table", "text"))
            cell = f'<table:table-cell office:value-type="string" table:number-columns-repeated="{across}">'
            rows = f'<table:table-row table:number-rows-repeated="{down}">{cell}<text:p>x</text:p></table:table-cell>'
            body = f'<office:body><office:spreadsheet><table:table table:name="S">{rows}</table:table-row></table:table>'
            end = "</office:spreadsheet></office:body></office:document-content>"
            parts = {"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}
            parts["content.xml"] = f"<office:document-content {spaces}>{body}{end}"
        else:
            Path("s.xlsx").write_bytes(
                text.layouts.workbook([{"text": "a good film", "label": "p"}])
            )
            with zipfile.ZipFile("s.xlsx") as archive:
                parts = {entry: archive.read(entry).decode() for entry in archive.namelist()}
            sheet = next(entry for entry in parts if entry.startswith("xl/worksheets/"))
            cell = '<row r="{0}"><c r="{1}{0}" t="inlineStr"><is><t>{2}</t></is></c></row>'
            added = {
                "shared": "".join(
                    cell.format(i, "A", "good film " * 100_000) for i in range(9, 9 + n)
                ),
                "long cell": cell.format(row, column, "good film " * 10**7),
                "far cell": cell.format(row, column, "x"),
            }.get(kind, "")
            changed = parts[sheet].replace("</sheetData>", added + "</sheetData>")
            if kind == "dimension":
                changed = changed.replace(
                    "<sheetData>", '<dimension ref="A1:XFD1048576"/><sheetData>'
                )
            if kind == "entities":
                laughs = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(9))
                changed = changed.replace(
                    "<worksheet", f'<!DOCTYPE x [<!ENTITY e0 "ha">{laughs}]><worksheet', 1
                )
                changed = changed.replace("a good film", "&e9;")
            parts[sheet] = changed
        name = "s.ods" if kind == "ods" else "s.xlsx"
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in parts.items():
                archive.writestr(entry, content)
        return [name]

    return (
        f"workbook: {kind}, {f'{down} rows of {across}' if kind == 'ods' else f'{column}{row}'}",
        write,
    )


BOMBS = (packed, sparse, repeated_byte, many_pieces, cells, columnar, workbook)
