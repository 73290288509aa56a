"""The layouts of files that people have, each with a command that reads it: tested by test_layouts.py, and the table of docs/reads.md.

Run as a program, it writes that page.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import shlex
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from tokensieve.read.settings import ReadSettings

N = 24
TEXTS = [f"{'I love' if i % 2 else 'I hate'} the café, visit number {i}; really" for i in range(N)]
LABELS = ["positive" if i % 2 else "negative" for i in range(N)]
GOOD = [f"a helpful and kind answer, number {i}" for i in range(N)]
BAD = [f"some rude words instead, number {i}" for i in range(N)]
PROMPTS = [f"what should I do about problem {i // 2}?" for i in range(N)]
FIRST = [
    GOOD[i] if i % 3 else BAD[i] for i in range(N)
]  # of answers side by side, the better one is first in two of three
SECOND = [BAD[i] if i % 3 else GOOD[i] for i in range(N)]
WINNER = ["model_a" if i % 3 else "model_b" for i in range(N)]

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Layout:
    """One layout.

    Attributes:
        name: what has it.
        files: file name → rows, or bytes.
        command: that reads it, in the folder of the files.
        detected: what the output names as detected.
        pairs: whether it holds preferences.
        ties: how many of its pairs are ties.
    """

    name: str
    files: dict[str, Rows | bytes]
    command: str
    detected: str = ""
    pairs: bool = False
    ties: int = 0


def rows(**columns: list[Any]) -> Rows:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def csv_bytes(
    table: Rows,
    separator: str = ",",
    encoding: str = "utf-8",
    end: str = "\n",
    errors: str = "strict",
) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(table).write_csv(out, separator=separator, line_terminator=end)
    return out.getvalue().decode().encode(encoding)


def json_lines(table: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table).encode()


def frame_bytes(table: Rows, write: Callable[[pl.DataFrame, io.BytesIO], Any]) -> bytes:
    out = io.BytesIO()
    write(pl.DataFrame(table), out)
    return out.getvalue()


def workbook(table: Rows) -> bytes:
    """The least that is an Excel workbook: one sheet of inline texts."""
    lines = [list(table[0]), *([row[key] for key in table[0]] for row in table)]
    cells = [
        "".join(
            f'<c r="{chr(65 + j)}{i}" t="inlineStr"><is><t>{value}</t></is></c>'
            for j, value in enumerate(line)
        )
        for i, line in enumerate(lines, 1)
    ]
    sheet = "".join(f'<row r="{i}">{line}</row>' for i, line in enumerate(cells, 1))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.'
        f'openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Reviews" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + content)
    return out.getvalue()


def chat(*turns: str, roles: tuple[str, str] = ("user", "assistant")) -> list[dict[str, str]]:
    return [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]


def human(prompt: str, answer: str) -> str:
    return f"\n\nHuman: {prompt}\n\nAssistant: {answer}"


PLAIN = rows(text=TEXTS, label=LABELS)
TICKETS = rows(
    ticket=[f"T-{i:04d}" for i in range(N)], Description=TEXTS, opened=[f"2024-05-{i + 1:02d}" for i in range(N)],
    Queue=[f"{y} " if i % 5 == 0 else y for i, y in enumerate(LABELS)],
)  # fmt: skip
ARENA = rows(
    question_id=[f"q{i // 2}" for i in range(N)], model_a=["gpt"] * N, model_b=["claude"] * N, winner=WINNER,
    response_a=FIRST, response_b=SECOND,
)  # fmt: skip
LIKED = [{"text": t, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)]

LABELLED = [
    Layout("CSV with commas", {"reviews.csv": csv_bytes(PLAIN)}, "audit reviews.csv"),
    Layout("CSV with semicolons (spreadsheets in most of Europe)", {"reviews.csv": csv_bytes(PLAIN, ";")}, "audit reviews.csv", "separator ';'"),
    Layout("CSV with tabs", {"reviews.csv": csv_bytes(PLAIN, "\t")}, "audit reviews.csv", "separator '\\t'"),
    Layout("CSV with vertical bars", {"reviews.csv": csv_bytes(PLAIN, "|")}, "audit reviews.csv", "separator '|'"),
    Layout("TSV", {"reviews.tsv": csv_bytes(PLAIN, "\t")}, "audit reviews.tsv"),
    Layout("CSV from Windows (cp1252, CRLF)", {"reviews.csv": csv_bytes(PLAIN, ";", "cp1252", "\r\n")}, "audit reviews.csv", "encoding cp1252"),
    Layout("CSV in UTF-16", {"reviews.csv": csv_bytes(PLAIN, "\t", "utf-16")}, "audit reviews.csv", "encoding utf-16"),
    Layout("CSV with a byte order mark", {"reviews.csv": b"\xef\xbb\xbf" + csv_bytes(PLAIN)}, "audit reviews.csv"),
    Layout("CSV for Excel: the first line names the separator", {"reviews.csv": b"sep=;\r\n" + csv_bytes(PLAIN, ";", end="\r\n")}, "audit reviews.csv", "separator ';'"),
    Layout("CSV with a title above the header", {"reviews.csv": b"Reviews of 2024\n\n" + csv_bytes(PLAIN)}, "audit reviews.csv", "lines before the header, skipped: 'Reviews of 2024'"),
    Layout("CSV in UTF-16 without a byte order mark", {"reviews.csv": csv_bytes(PLAIN).decode().encode("utf-16-le")}, "audit reviews.csv", "encoding utf-16-le"),
    Layout("A table in a .txt file", {"reviews.txt": csv_bytes(PLAIN, "\t")}, "audit reviews.txt"),
    Layout("A table without a header in a file without an ending", {"SMSSpamCollection": "".join(f"{y}\t{t}\n" for t, y in zip(TEXTS, LABELS, strict=True)).encode()}, "audit SMSSpamCollection --no-header"),
    Layout("fastText", {"train.txt": "".join(f"__label__{y} {t}\n" for t, y in zip(TEXTS, LABELS, strict=True)).encode()}, "audit train.txt"),
    Layout("CSV without a header", {"reviews.csv": csv_bytes(PLAIN).split(b"\n", 1)[1]}, "audit reviews.csv --no-header"),
    Layout("Support tickets: one prose column, labels with trailing spaces", {"tickets.csv": csv_bytes(TICKETS)}, "audit tickets.csv --label Queue"),
    Layout("Several text columns as fields", {"mail.csv": csv_bytes(rows(subject=[f"s {i}" for i in range(N)], text=TEXTS, label=LABELS))}, "audit mail.csv --text subject --text text"),
    Layout("Stars from 1 to 5 to two classes", {"yelp.csv": csv_bytes(rows(text=TEXTS, stars=[(4, 5)[i // 2 % 2] if i % 2 else (1, 2)[i // 2 % 2] for i in range(N)]))}, "audit yelp.csv --group negative=1,2 --group positive=4,5"),
    Layout("Excel workbook", {"reviews.xlsx": workbook(PLAIN)}, "audit reviews.xlsx"),
    Layout("JSON lines", {"reviews.jsonl": json_lines(PLAIN)}, "audit reviews.jsonl"),
    Layout("JSON: a list of objects", {"reviews.json": json.dumps(PLAIN).encode()}, "audit reviews.json"),
    Layout("JSON: a list under a key", {"reviews.json": json.dumps({"data": PLAIN}).encode()}, "audit reviews.json"),
    Layout("JSON: a list deep inside", {"reviews.json": json.dumps({"response": {"items": PLAIN, "total": N}}).encode()}, "audit reviews.json"),
    Layout("JSON: objects by their names", {"reviews.json": json.dumps({f"r{i}": row for i, row in enumerate(PLAIN)}).encode()}, "audit reviews.json"),
    Layout("JSON: pandas' to_json(orient='split')", {"reviews.json": json.dumps({"columns": ["text", "label"], "index": list(range(N)), "data": [list(row.values()) for row in PLAIN]}).encode()}, "audit reviews.json"),
    Layout("A list of objects in a .jsonl file", {"reviews.jsonl": json.dumps(PLAIN, indent=1).encode()}, "audit reviews.jsonl"),
    Layout("JSON: columns (pandas' to_json)", {"reviews.json": json.dumps({"text": dict(enumerate(TEXTS)), "label": dict(enumerate(LABELS))}).encode()}, "audit reviews.json"),
    Layout("Nested JSON", {"posts.jsonl": json_lines([{"id": i, "data": {"text": t, "meta": {"label": y}}} for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))])}, "audit posts.jsonl --text data.text --label data.meta.label"),
    Layout("Parquet", {"reviews.parquet": frame_bytes(PLAIN, lambda f, out: f.write_parquet(out))}, "audit reviews.parquet"),
    Layout("Nested Parquet", {"posts.parquet": frame_bytes([{"data": {"text": t}, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)], lambda f, out: f.write_parquet(out))}, "audit posts.parquet --text data.text"),
    Layout("Arrow file", {"reviews.arrow": frame_bytes(PLAIN, lambda f, out: f.write_ipc(out))}, "audit reviews.arrow"),
    Layout("Arrow stream (the datasets library's cache)", {"data.arrow": frame_bytes(PLAIN, lambda f, out: f.write_ipc_stream(out))}, "audit data.arrow"),
    Layout("gzip", {"reviews.csv.gz": gzip.compress(csv_bytes(PLAIN))}, "audit reviews.csv.gz"),
    Layout("zstd", {"reviews.jsonl.zst": zstandard.compress(json_lines(PLAIN))}, "audit reviews.jsonl.zst"),
    Layout("xz", {"reviews.csv.xz": lzma.compress(csv_bytes(PLAIN))}, "audit reviews.csv.xz"),
    Layout("Several files", {"a.csv": csv_bytes(PLAIN[:10]), "b.csv": csv_bytes(PLAIN[10:])}, "audit a.csv b.csv"),
    Layout("A glob", {"2023.jsonl": json_lines(PLAIN[:9]), "2024.jsonl": json_lines(PLAIN[9:])}, "audit '20*.jsonl'"),
    Layout("A folder of data files", {"shards/0.parquet": frame_bytes(PLAIN[:7], lambda f, out: f.write_parquet(out)), "shards/1.parquet": frame_bytes(PLAIN[7:], lambda f, out: f.write_parquet(out))}, "audit shards"),
    Layout("A data set of the Hugging Face hub, cloned", {"imdb/data/train-00000-of-00001.parquet": frame_bytes(PLAIN, lambda f, out: f.write_parquet(out)), "imdb/data/test-00000-of-00001.parquet": frame_bytes(PLAIN, lambda f, out: f.write_parquet(out))}, "audit imdb"),
    Layout("A folder of .txt files per label", {f"mail/{y}/{i:03d}.txt": t.encode() for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))}, "audit mail"),
    Layout("20 newsgroups: a folder per class, files without an ending", {f"news/{y}/{10000 + i}": t.encode() for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))}, "audit news"),
    Layout("20 newsgroups by date: folders named …-train and …-test", {f"news/20news-{part}/{y}/{10000 + i}": t.encode() for part in ("train", "test") for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))}, "audit news"),
    Layout("IMDB: aclImdb with unlabelled reviews", {f"aclImdb/{part}/{y}/{i}_7.txt": t.encode() for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True)) for part, y in (("train", y), ("test", y), ("train", "unsup"))} | {"aclImdb/train/labeledBow.feat": b"9 0:9", "aclImdb/README": b"Large Movie Review Dataset"}, "audit aclImdb"),
    Layout("Texts in a folder that holds nothing else, in Latin-1", {f"txt/texts/{y}/{i}.txt": t.encode("latin-1") for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))}, "audit txt", "encoding cp1252"),
    Layout("Kaggle: train.csv and test.csv without labels", {"c/train.csv": csv_bytes(rows(id=list(range(N)), text=TEXTS, target=LABELS)), "c/test.csv": csv_bytes(rows(id=list(range(N)), text=TEXTS)), "c/sample_submission.csv": csv_bytes(rows(id=list(range(N)), target=["x"] * N))}, "audit c"),
    Layout("Files named …_train and …_test", {"d/imdb_train.csv": csv_bytes(PLAIN), "d/imdb_test.csv": csv_bytes(PLAIN)}, "audit d"),
    Layout("save_to_disk of the datasets library", {f"saved/{part}/{name}": content for part in ("train", "test") for name, content in {"data-00000-of-00001.arrow": frame_bytes(PLAIN, lambda f, out: f.write_ipc_stream(out)), "state.json": b"{}", "dataset_info.json": b"{}"}.items()} | {"saved/dataset_dict.json": b'{"splits": ["train", "test"]}'}, "audit saved"),
    Layout("Chat messages with a label", {"chats.jsonl": json_lines([{"messages": chat("hello", t), "label": y} for t, y in zip(TEXTS, LABELS, strict=True)])}, "audit chats.jsonl --role assistant"),
    Layout("Chats for fine-tuning, whose answer is the label", {"chats.jsonl": json_lines([{"messages": chat(t, y)} for t, y in zip(TEXTS, LABELS, strict=True)])}, "audit chats.jsonl --text messages.user --label messages.assistant"),
    Layout("ShareGPT conversations", {"chats.jsonl": json_lines([{"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": t}], "label": y} for t, y in zip(TEXTS, LABELS, strict=True)])}, "audit chats.jsonl --text conversations --role assistant"),
    Layout("KTO: a completion and whether it is good", {"kto.jsonl": json_lines([{"prompt": "what is it like?" + " really" * (i % 3), "completion": t, "label": y} for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))])}, "audit kto.jsonl --text completion --label label"),
    Layout("doccano: each label in a list of its own", {"doccano.jsonl": json_lines([{"id": i, "text": t, "label": [y]} for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))])}, "audit doccano.jsonl"),
    Layout("Prodigy: one choice", {"prodigy.jsonl": json_lines([{"text": t, "options": [{"id": "positive"}, {"id": "negative"}], "accept": [y], "answer": "accept"} for t, y in zip(TEXTS, LABELS, strict=True)])}, "audit prodigy.jsonl"),
    Layout("Prodigy: labels that the annotator accepted", {"prodigy.jsonl": json_lines([*({"text": t, "label": y, "answer": "accept"} for t, y in zip(TEXTS, LABELS, strict=True)), *({"text": t, "label": "positive", "answer": "reject"} for t in TEXTS[:3])])}, "audit prodigy.jsonl"),
    Layout("Label Studio", {"export.json": json.dumps([{"data": {"text": t}, "annotations": [{"result": [{"type": "choices", "value": {"choices": [y]}}]}]} for t, y in zip(TEXTS, LABELS, strict=True)]).encode()}, "audit export.json --text data.text --label annotations.result.value.choices"),
    Layout("Argilla: fields and responses", {"argilla.jsonl": json_lines([{"fields": {"text": t}, "responses": {"mood": [{"value": y, "status": "submitted"}]}} for t, y in zip(TEXTS, LABELS, strict=True)])}, "audit argilla.jsonl --text fields.text --label responses.mood.value"),
    Layout("Several labels in a cell", {"posts.csv": csv_bytes(rows(text=TEXTS, tags=[f"{y}|all" for y in LABELS]))}, "audit posts.csv --label tags --label-separator '|'"),
]  # fmt: skip

PREFERENCES = [
    Layout("Chosen and rejected", {"p.csv": csv_bytes(rows(prompt=PROMPTS, chosen=GOOD, rejected=BAD))}, "audit p.csv --pairs chosen,rejected", pairs=True),
    Layout("OpenAI's preference format", {"openai.jsonl": json_lines([{"input": {"messages": chat(p)}, "preferred_output": chat(a, roles=("assistant", "user")), "non_preferred_output": chat(b, roles=("assistant", "user")), "question": p} for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)])}, "audit openai.jsonl --pairs preferred_output,non_preferred_output", pairs=True),
    Layout("DPO: message lists, written as JSON in the cells of a CSV", {"dpo.csv": csv_bytes(rows(prompt=PROMPTS, chosen=[json.dumps(chat(p, a)) for p, a in zip(PROMPTS, GOOD, strict=True)], rejected=[json.dumps(chat(p, a)) for p, a in zip(PROMPTS, BAD, strict=True)]))}, "audit dpo.csv --pairs chosen,rejected", pairs=True),
    Layout("DPO: message lists, as Python writes them in the cells of a CSV", {"dpo.csv": csv_bytes(rows(prompt=PROMPTS, chosen=[repr(chat(p, a)) for p, a in zip(PROMPTS, GOOD, strict=True)], rejected=[repr(chat(p, a)) for p, a in zip(PROMPTS, BAD, strict=True)]))}, "audit dpo.csv --pairs chosen,rejected", pairs=True),
    Layout("Winner and loser", {"wl.csv": csv_bytes(rows(prompt=PROMPTS, winner=GOOD, loser=BAD))}, "audit wl.csv --pairs winner,loser", pairs=True),
    Layout("Anthropic HH: transcripts with a common beginning", {"hh.jsonl": json_lines(rows(chosen=[human(p, a) for p, a in zip(PROMPTS, GOOD, strict=True)], rejected=[human(p, a) for p, a in zip(PROMPTS, BAD, strict=True)]))}, "audit hh.jsonl --pairs chosen,rejected", pairs=True),
    Layout("UltraFeedback: message lists", {"uf.parquet": frame_bytes(rows(prompt=PROMPTS, chosen=[chat(p, a) for p, a in zip(PROMPTS, GOOD, strict=True)], rejected=[chat(p, a) for p, a in zip(PROMPTS, BAD, strict=True)]), lambda f, out: f.write_parquet(out))}, "audit uf.parquet --pairs chosen,rejected", pairs=True),
    Layout("Chatbot Arena, MT-bench", {"arena.csv": csv_bytes(ARENA)}, "audit arena.csv --pairs response_a,response_b --winner winner", pairs=True),
    Layout("Arena as message lists", {"arena.jsonl": json_lines(rows(conversation_a=[chat(p, a) for p, a in zip(PROMPTS, FIRST, strict=True)], conversation_b=[chat(p, a) for p, a in zip(PROMPTS, SECOND, strict=True)], winner=WINNER))}, "audit arena.jsonl --pairs conversation_a,conversation_b --winner winner", pairs=True),
    Layout("Winner named by model", {"arena.csv": csv_bytes([row | {"winner": "gpt" if row["winner"] == "model_a" else "claude"} for row in ARENA])}, "audit arena.csv --pairs response_a,response_b --winner winner", pairs=True),
    Layout("Winner in columns of 0 and 1 (Kaggle's LMSYS)", {"lmsys.csv": csv_bytes([{k: v for k, v in row.items() if k != "winner"} | {"winner_model_a": int(row["winner"] == "model_a"), "winner_model_b": int(row["winner"] == "model_b"), "winner_tie": 0} for row in ARENA])}, "audit lmsys.csv --pairs response_a,response_b --winner winner_model_a", pairs=True),
    Layout("PKU-SafeRLHF", {"pku.jsonl": json_lines(rows(prompt=PROMPTS, response_0=FIRST, response_1=SECOND, better_response_id=[int(w == "model_b") for w in WINNER]))}, "audit pku.jsonl --pairs response_0,response_1 --winner better_response_id", pairs=True),
    Layout("A or B", {"ab.csv": csv_bytes(rows(prompt=PROMPTS, answer_a=FIRST, answer_b=SECOND, preference=[w[-1].upper() for w in WINNER]))}, "audit ab.csv --pairs answer_a,answer_b --winner preference", pairs=True),
    Layout("The chance that the first answer wins", {"chance.csv": csv_bytes(rows(prompt=PROMPTS, response_a=FIRST, response_b=SECOND, p_a_wins=[0.85 if w == "model_a" else 0.1 for w in WINNER]))}, "audit chance.csv --pairs response_a,response_b --winner p_a_wins", pairs=True),
    Layout("HelpSteer: a scale from −3 to 3", {"hs.jsonl": json_lines(rows(prompt=PROMPTS, response1=FIRST, response2=SECOND, overall_preference=[-2 if w == "model_a" else 1 for w in WINNER]))}, "audit hs.jsonl --pairs response1,response2 --winner overall_preference", pairs=True),
    Layout("A score for either answer", {"scores.csv": csv_bytes(rows(prompt=PROMPTS, response_a=FIRST, response_b=SECOND, score_a=[1.5 if w == "model_a" else 0.5 for w in WINNER], score_b=[1.0] * N))}, "audit scores.csv --pairs response_a,response_b --scores score_a,score_b", pairs=True),
    Layout("Several answers in a list, with ranks (Nectar)", {"nectar.jsonl": json_lines(rows(prompt=PROMPTS, answers=[[{"answer": b, "rank": 2}, {"answer": a, "rank": 1}] for a, b in zip(GOOD, BAD, strict=True)]))}, "audit nectar.jsonl --pairs answers.answer --ranks answers.rank", pairs=True),
    Layout("Several answers in a list, with scores (UltraFeedback, raw)", {"raw.jsonl": json_lines(rows(instruction=PROMPTS, completions=[[{"response": b, "overall_score": 3.0}, {"response": a, "overall_score": 8.5}] for a, b in zip(GOOD, BAD, strict=True)]))}, "audit raw.jsonl --pairs completions.response --scores completions.overall_score", pairs=True),
    Layout("One answer per row, with scores", {"long.csv": csv_bytes(rows(prompt=[f"{p} {i}" for i, p in enumerate(PROMPTS)] * 2, answer=[*BAD, *GOOD], score=[0] * N + [1] * N))}, "audit long.csv --pairs answer --scores score --by prompt", pairs=True),
    Layout("Arena with ties", {"arena.csv": csv_bytes([*ARENA, *({**row, "winner": tie} for row, tie in zip(ARENA, ["tie", "tie (bothbad)"], strict=False))])}, "audit arena.csv --pairs response_a,response_b --winner winner --ties drop", pairs=True, ties=2),
]  # fmt: skip


def options_of(command: str) -> tuple[list[str], dict[str, Any]]:
    """The sources and the settings that a command's words stand for."""
    known = {
        field.metadata["option"]["flag"] or "--" + field.name.replace("_", "-"): field
        for field in fields(ReadSettings)
    }
    sources: list[str] = []
    given: dict[str, Any] = {}
    words = iter(shlex.split(command)[1:])
    for word in words:
        if word.startswith("--no-"):
            given[word[5:]] = False
        elif word.startswith("--"):
            given.setdefault(known[word].name, []).append(next(words))
        else:
            sources.append(word)
    for field in known.values():
        parse = field.metadata["option"]["parse"]
        if isinstance(given.get(field.name), list):
            values = given[field.name]
            given[field.name] = parse(values) if parse else values[0]
    return sources, given


def write(layout: Layout, folder: Path) -> None:
    for name, content in layout.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        assert isinstance(content, bytes)
        path.write_bytes(content)


def first_row(layout: Layout) -> str:
    """The first lines of the first file, where it is text."""
    name, content = next(iter(layout.files.items()))
    text = layout.detected.startswith("encoding") or (
        isinstance(content, bytes) and b"\0" not in content
    )
    if name.endswith((".gz", ".zst", ".xz")) or not isinstance(content, bytes) or not text:
        return f"{len(layout.files)} files such as {name}" if len(layout.files) > 1 else name
    encoding = (
        layout.detected.removeprefix("encoding ")
        if layout.detected.startswith("encoding")
        else "utf-8-sig"
    )
    lines = content.decode(encoding).splitlines()
    shown = (
        lines[0]
        if name.endswith((".json", ".jsonl", ".txt")) and "\t" not in lines[0]
        else " ⏎ ".join(lines[:2])
    )
    return shown if len(shown) <= 110 else shown[:109] + "…"


def table(layouts: list[Layout]) -> str:
    lines = ["| Layout | Begins | Command | Detected |", "|---|---|---|---|"]
    for layout in layouts:
        begins = first_row(layout).replace("|", "\\|").replace("`", "'").replace("\t", "⇥")
        command = f"tokensieve {layout.command}".replace("|", "\\|")
        detected = (
            f"{layout.detected} (named in the output)".replace("|", "\\|")
            if layout.detected
            else ""
        )
        lines.append(f"| {layout.name} | `{begins}` | `{command}` | {detected} |")
    return "\n".join(lines)


def page() -> str:
    frame = (Path(__file__).parent / "reads.template.md").read_text(encoding="utf-8")
    return frame.replace("{labelled}", table(LABELLED)).replace("{preferences}", table(PREFERENCES))


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "reads.md").write_text(page(), encoding="utf-8")
