"""Files that were changed at random, read by whatever reads them: an answer or one line, in
seconds, within a gigabyte.

Each case runs in a forked process with a limit on its time, so that a panic, an abort or a hang is
one fault and not the end. `python tests/fuzz/test_damaged_files.py SECONDS [SEED [FAMILY …]]` tries
cases until the processor time is spent, and counts them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

SECONDS, WAIT, GROWTH = 10, 90, 2**30  # of processor, of the clock (others may be at work), bytes
NASTY = [
    0,
    -1,
    1,
    2,
    2**31,
    2**63,
    1e308,
    -0.0,
    0.5,
    None,
    True,
    "",
    "a",
    "x" * 300,
    "\ud800",
    "\x00",
    "▁",
    [],
    {},
    [[]],
    [None, 1],
]
TEXTS = [
    "a good film",
    "a bad film",
    "",
    "e\u0301",
    "這是",
    "a" * 500,
    'say "x", y\nz',
    "<b>x</b> 10/10",
    "\ufeff",
]


def replaced(value: Any, rng: Random) -> Any:
    """A JSON value with one node replaced, taken out, doubled or wrapped deeply."""
    if not value or not isinstance(value, dict | list) or rng.random() < 0.1:
        deep: Any = rng.choice(NASTY)
        for _ in range(rng.choice([0] * 9 + [5_000])):
            deep = [deep]
        return rng.choice([deep, value * 2 if isinstance(value, str | int | float) else deep])
    changed = dict(value) if isinstance(value, dict) else list(value)
    key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    if rng.random() < 0.15:
        del changed[key]  # type: ignore[arg-type]
    else:
        changed[key] = replaced(value[key], rng)  # type: ignore[index]
    return changed


def flipped(whole: bytes, rng: Random) -> bytes:
    """The bytes with some changed, cut, doubled or moved."""
    content = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        at = rng.randrange(len(content) or 1)
        content[at : at + 1] = bytes([rng.choice([0, 255, 34, 10, rng.randrange(256)])])
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    if rng.random() < 0.1:
        content += content[rng.randrange(len(content) or 1) :]
    return bytes(content)


def changed(path: Path, rng: Random) -> None:
    """A file of JSON is changed as JSON or by its bytes, any other by its bytes."""
    whole = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.8:
        with contextlib.suppress(RecursionError):
            path.write_text(json.dumps(replaced(json.loads(whole), rng)), errors="surrogatepass")
            return
    path.write_bytes(flipped(whole, rng))


def command(*arguments: str) -> None:
    """The command line in place."""
    from tokensieve.cli import run
    from tokensieve.errors import InputError

    try:
        status = run(list(arguments))
    except SystemExit as end:
        status = end.code
    if status not in (0, 2, 3):
        raise AssertionError(f"status {status}")
    if status == 2:
        raise InputError("said")


# ---- one family each: a folder of its own with the files of `made`, and a generator


def saved_audit(rng: Random) -> None:
    name = rng.choice(
        ["summary.json", "summary.json", "findings.json", "tokens.csv", "model.json", "table.json"]
    )
    changed(Path("saved", name), rng)
    resign(rng)
    command(*rng.choice(AUDITS))


AUDITS = [
    ["compare", "saved", "other"],
    ["mask", "good.csv", "--audit", "saved", "--out", "m.csv"],
    ["predict", "saved", "good.csv"],
]


def model(rng: Random) -> None:
    changed(Path("saved", rng.choice(["model.json", "model.json", "model.safetensors"])), rng)
    resign(rng)
    command("predict", "saved", "good.csv")


def resign(rng: Random) -> None:
    """Digests that fit, mostly: else all ends at the digest."""
    from tokensieve.model.storage import _digest

    path, sums = Path("saved", "model.json"), Path("saved", "SHA256SUMS")
    if rng.random() < 0.1:
        changed(sums, rng)
    elif rng.random() < 0.9:
        sums.unlink()
    with contextlib.suppress(Exception):
        described = json.loads(path.read_bytes())
        if rng.random() < 0.9:
            described["sha256"] = _digest(
                described, Path("saved", "model.safetensors").read_bytes()
            )
            path.write_text(json.dumps(described))


def decisions(rng: Random) -> None:
    good = {
        "tokensieve": "decisions",
        "version": 1,
        "tokens": {"good": "mask", "a": "keep", "film": "mask"},
        "documents": [
            {"part": "train", "row": 1, "decision": "wrong label"},
            {"part": "test", "row": 2, "decision": "keep"},
        ],
    }
    path = Path("d.json")
    path.write_text(json.dumps(good))
    changed(path, rng)
    command("mask", "good.csv", "--decisions", "d.json", "--part", "train", "--out", "m.csv", "-q")


def source(rng: Random) -> None:
    import gzip
    import io
    import lzma

    import polars as pl
    import zstandard

    from tokensieve.read.reader import read_corpus

    kind = rng.choice(["csv", "tsv", "jsonl", "json", "parquet", "arrow", "arrow", "xlsx"])
    rows = [
        {"text": rng.choice(TEXTS) + f" {i}", "label": "pn"[i % 2], "n": i}
        for i in range(rng.choice([4, 40]))
    ]
    frame, out = pl.DataFrame(rows), io.BytesIO()
    if kind in ("csv", "tsv"):
        frame.write_csv(out, separator="," if kind == "csv" else "\t")
    elif kind == "jsonl":
        frame.write_ndjson(out)
    elif kind == "json":
        out.write(json.dumps(rows).encode())
    elif kind == "parquet":
        frame.write_parquet(
            out, compression=rng.choice(["zstd", "snappy", "gzip", "lz4", "uncompressed"])
        )
    elif kind == "arrow":
        (frame.write_ipc if rng.random() < 0.5 else frame.write_ipc_stream)(
            out, compression=rng.choice(["zstd", "uncompressed"])
        )
    else:
        shutil.copyfile("good.xlsx", "x")
        out.write(Path("x").read_bytes())
    packing = rng.choice(["", "", "", ".gz", ".zst", ".xz"])
    packs = {".gz": gzip.compress, ".zst": zstandard.compress, ".xz": lzma.compress}
    pack: Callable[[bytes], bytes] = packs.get(packing, bytes)
    whole, outer = out.getvalue(), rng.random() < 0.5
    content = flipped(pack(whole), rng) if outer else pack(flipped(whole, rng))
    path = Path(f"s.{kind}{packing}")
    path.write_bytes(content)
    if rng.random() < 0.2:
        command(
            "mask",
            str(path),
            "--token",
            "good",
            "--out",
            rng.choice(["m.jsonl", "m.parquet", "m.csv"]),
        )
    else:
        read_corpus(path, stream=rng.random() < 0.3)


PATTERNS = [
    "",
    " ",
    "a",
    "(a+a+)+b",
    "[",
    "(?=a)",
    "\\p{L}+",
    ".*",
    "^",
    "(a|a)*c",
    "x{1000}{1000}",
    "\\",
    "(?i)A",
]
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend "
    "Replace Sequence Strip StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace "
    "Punctuation Sequence Split UnicodeScripts Whitespace WhitespaceSplit".split(),
}
NUMBERS = [0, 1, 2, -1, 1000, 2**31, 2**40, 2**63, 0.5, None]
TEXT = ["", " ", "a", "##", "▁", "b" * 300, "\x00", "é", "[UNK]", None, 1]


def component(kind: str, rng: Random, depth: int = 0) -> dict[str, Any]:
    """One of all types that the library knows, each parameter with a value that may be odd."""
    name = rng.choice(COMPONENTS[kind])
    pattern = rng.choice(
        [{"String": rng.choice(TEXT)}, {"Regex": rng.choice(PATTERNS)}, rng.choice(PATTERNS)]
    )
    behaviour = rng.choice(
        ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous", "odd"]
    )
    flag = rng.choice([True, False, False, None, 1])
    values = {
        **dict.fromkeys(
            (
                "clean_text",
                "handle_chinese_chars",
                "strip_accents",
                "lowercase",
                "strip_left",
                "strip_right",
            ),
            flag,
        ),
        **dict.fromkeys(
            (
                "add_prefix_space",
                "trim_offsets",
                "use_regex",
                "individual_digits",
                "invert",
                "split",
            ),
            flag,
        ),
        **{
            "prepend": rng.choice(TEXT),
            "content": rng.choice(TEXT),
            "pattern": pattern,
            "behavior": behaviour,
        },
        **{
            "delimiter": rng.choice(TEXT),
            "length": rng.choice(NUMBERS),
            "replacement": rng.choice(TEXT),
        },
        **{"prepend_scheme": rng.choice(["always", "first", "never", "odd"])},
        "precompiled_charsmap": rng.choice(["", "AAAA", "A" * 400, "QAAAAA" * 50, "/" * 80, None]),
    }
    parts = [
        component(kind, rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 4]) if depth < 3 else 0)
    ]
    chain = {"normalizers" if kind == "normalizer" else "pretokenizers": parts}
    return {"type": name, **({} if name != "Sequence" else chain), **values}


def tokenizer_model(rng: Random) -> dict[str, Any]:
    words = rng.sample(
        ["a", "b", "ab", "abab", "##b", "▁", "▁a", "?", "[UNK]", "<0x41>", "", "é", "x" * 300],
        rng.randrange(1, 13),
    )
    ids = rng.choice(
        [list(range(len(words)))] * 4 + [[rng.choice([0, 1, 7, 2**31, 2**32, -1]) for _ in words]]
    )
    common = {
        "unk_token": rng.choice(["?", "[UNK]", "zz", None, ""]),
        "vocab": dict(zip(words, ids, strict=True)),
    }
    pairs = [[rng.choice(words), rng.choice(words)] for _ in range(rng.choice([0, 1, 4]))]
    bpe = {"merges": rng.choice([pairs, [" ".join(p) for p in pairs], [["a", "b"]]])}
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        bpe[name] = (
            rng.choice([None, None, None, *TEXT])
            if name != "dropout"
            else rng.choice([None, None, 0, 2, 0.5])
        )
    for name in ("fuse_unk", "byte_fallback", "ignore_merges"):
        bpe[name] = rng.random() < 0.3
    piece = {
        "continuing_subword_prefix": rng.choice(TEXT),
        "max_input_chars_per_word": rng.choice(NUMBERS),
    }
    scores = [[word, rng.choice([-1.0, 0.0, 1e308, -1e308, 5])] for word in words]
    unigram = {
        "vocab": scores,
        "unk_id": rng.choice([0, 1, 99, None, -1]),
        "byte_fallback": rng.random() < 0.3,
    }
    return rng.choice(
        [
            {"type": "BPE", **common, **bpe},
            {"type": "WordPiece", **common, **piece},
            {"type": "WordLevel", **common},
            {"type": "Unigram", **unigram},
        ]
    )


def tokenizer(rng: Random) -> None:
    import polars as pl

    from tokensieve.text.pieces import PieceTokenizer

    whole: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "post_processor": None,
        "decoder": None,
    }
    whole |= {
        kind: component(kind, rng) if rng.random() < 0.6 else None
        for kind in ("normalizer", "pre_tokenizer")
    }
    whole["model"] = tokenizer_model(rng)
    if rng.random() < 0.3:
        added = {
            "id": rng.choice([0, 3, 2**31, -1]),
            "content": rng.choice(TEXT),
            "special": rng.random() < 0.5,
        }
        added |= {
            name: rng.random() < 0.5 for name in ("single_word", "lstrip", "rstrip", "normalized")
        }
        whole["added_tokens"] = [added] * rng.choice([1, 2])
    if rng.random() < 0.2:
        whole = replaced(whole, rng)
    with contextlib.suppress(RecursionError):
        Path("t.json").write_text(json.dumps(whole), errors="surrogatepass")
    pieces = PieceTokenizer(Path("t.json"))
    texts = [
        "".join(rng.choice("ab ▁é\u0301這\x00A1.\n👍") for _ in range(rng.choice([1, 9, 5000])))
        for _ in range(20)
    ]
    first = pieces.split(pl.Series(texts)).to_list()
    assert pieces.split(pl.Series(texts)).to_list() == first, "random pieces"
    for text in texts[:3]:
        pieces.spans(text)


FAMILIES: dict[str, Callable[[Random], None]] = {
    "model": model,
    "audit": saved_audit,
    "decisions": decisions,
    "source": source,
    "tokenizer": tokenizer,
}


def make(folder: Path) -> None:
    """The files that cases change, made by other processes: what is forked must have no threads."""
    program = f"""
import sys; sys.path[:0] = {[str(Path(__file__).parents[1])]!r}
import polars as pl
from pathlib import Path
from reviews import write_reviews
from tokensieve.__main__ import main
write_reviews(Path("good.csv"), 60)
from read.layouts import workbook
Path("good.xlsx").write_bytes(workbook(pl.read_csv("good.csv").to_dicts()))
sys.argv = ["tokensieve", "audit", "good.csv", "-q", "--no-baseline", "--no-pictures", "--out", "saved", "--fail-on", "0.5@1%"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=500
    )
    assert done.returncode in (0, 3), done.stderr
    shutil.copytree(folder / "saved", folder / "other")


def one_case(family: str, seed: int, made: Path) -> tuple[str, float]:
    """ "done", "refused" or what is wrong, and the processor time that was used."""
    with tempfile.TemporaryDirectory() as root, open(Path(root, "said"), "w+b") as said:
        before = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 2))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            folder = Path(root, "here")
            shutil.copytree(made, folder)
            os.chdir(folder)
            os._exit(_end(family, seed))
        status, usage, end = 0, None, time.monotonic() + WAIT
        while not (found := os.wait4(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.005)
        _, status, usage = found
        code = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().decode(errors="replace")
        spent = usage.ru_utime + usage.ru_stime
        growth = 1024 * usage.ru_maxrss - before
        if code not in (0, 2):
            return f"ended with {code}: {lines[-700:]}", spent
        if growth > GROWTH:
            return f"grew by {growth / 1e9:.1f} GB", spent
        if "panicked" in lines or "Traceback" in lines:
            return f"said {lines[-700:]}", spent
        return ("refused" if code else "done"), spent


def _end(family: str, seed: int) -> int:
    from tokensieve.errors import InputError
    from tokensieve.escape import line

    try:
        FAMILIES[family](Random(f"{family} {seed}"))
    except InputError as problem:
        return 2 if len(line(str(problem))) <= 500 else _shown(f"lines: {problem!s:.600}")
    except BaseException:  # a panic is no Exception
        import traceback

        return _shown(traceback.format_exc())
    return 0


def _shown(message: str) -> int:
    os.write(1, message.encode(errors="replace"))
    return 1


def preload() -> None:
    """What all cases import; no thread is started by it."""
    for name in (
        "polars",
        "tokenizers",
        "zstandard",
        "tokensieve.cli",
        "tokensieve.read.corpus",
        "tokensieve.model.storage",
    ):
        importlib.import_module(name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_changed_files_end_cleanly(family: str, made: Path) -> None:
    here = [sys.executable, __file__, "3", "1", family]  # processor seconds; run it alone for more
    done = subprocess.run(
        here, env={**os.environ, "MADE": str(made)}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr


def main(seconds: float, seed: int, families: list[str]) -> int:
    folder = Path(os.environ.get("MADE", "") or tempfile.mkdtemp())
    if not (folder / "other").is_dir():
        make(folder)
    preload()
    counts, faults, spent = Counter[tuple[str, str]](), 0, 0.0
    while spent < seconds:
        for family in families:
            outcome, used = one_case(family, seed, folder)
            spent += used
            word = outcome if outcome in ("done", "refused") else "FAULT"
            counts[family, word] += 1
            if word == "FAULT":
                faults += 1
                sys.stdout.write(f"{family} {seed}: {outcome}\n")
        seed += 1
        sys.stdout.flush()
        Path(folder, "counts").write_text(
            f"{sum(counts.values())} cases, {spent:.0f} s, to seed {seed}: {dict(counts)}\n"
        )
    sys.stdout.write(
        f"{sum(counts.values())} cases, {spent:.0f} s of processor, to seed {seed}: "
        f"{dict(counts)}\n"
    )
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(
        main(
            float(sys.argv[1]),
            int(sys.argv[2]) if len(sys.argv) > 2 else 1,
            sys.argv[3:] or list(FAMILIES),
        )
    )
