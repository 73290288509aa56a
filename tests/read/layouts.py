"""The layouts of files that people have, each with a command that reads it: tested by
test_layouts.py, and the table of docs/reads.md.

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
        several: whether documents have several labels, or prompts several pairs.
    """

    name: str
    files: dict[str, Rows | bytes]
    command: str
    detected: str = ""
    pairs: bool = False
    ties: int = 0
    several: bool = False


def rows(**columns: list[Any]) -> Rows:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def with_image(answer: str) -> list[dict[str, Any]]:
    """A conversation about a picture, as several providers write it."""
    question = [{"type": "image", "image": "picture.png"}, {"type": "text", "text": "what is it?"}]
    reply = [{"type": "text", "text": answer}]
    return [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]


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


def sheet_xml(table: Rows, main: str) -> str:
    """A sheet of inline texts; an empty one is no cell."""
    lines = [list(table[0]), *([row[key] for key in table[0]] for row in table)]
    cells = [
        "".join(
            f'<c r="{chr(65 + j)}{i}" t="inlineStr"><is><t>{value}</t></is></c>'
            for j, value in enumerate(line)
            if value != ""
        )
        for i, line in enumerate(lines, 1)
    ]
    content = "".join(f'<row r="{i}">{line}</row>' for i, line in enumerate(cells, 1))
    return f'<worksheet xmlns="{main}"><sheetData>{content}</sheetData></worksheet>'


def workbook(table: Rows, before: dict[str, Rows] | None = None, name: str = "Reviews") -> bytes:
    """The least that is an Excel workbook: sheets of inline texts; `name` is that of the last."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    sheets = {**(before or {}), name: table}
    numbers = range(1, len(sheets) + 1)
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{kind}.worksheet+xml"/>'
        for i in numbers
    )
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1)
    )
    relations = "".join(
        f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f"{overrides}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{relations}'
        "</Relationships>",
    }
    for i, rows_of_sheet in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{i}.xml"] = sheet_xml(rows_of_sheet, main)
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
    ticket=[f"T-{i:04d}" for i in range(N)],
    Description=TEXTS,
    opened=[f"2024-05-{i + 1:02d}" for i in range(N)],
    Queue=[f"{y} " if i % 5 == 0 else y for i, y in enumerate(LABELS)],
)
ARENA = rows(
    question_id=[f"q{i // 2}" for i in range(N)],
    model_a=["gpt"] * N,
    model_b=["claude"] * N,
    winner=WINNER,
    response_a=FIRST,
    response_b=SECOND,
)
LIKED = [{"text": t, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)]

SPREADSHEETS = [
    Layout(
        "CSV with comments above the header",
        {"reviews.csv": b"# reviews, by day\n# 2024\n\n" + csv_bytes(PLAIN)},
        "audit reviews.csv",
        "lines before the header, skipped: '# reviews, by day / # 2024'",
    ),
    Layout(
        "CSV with JSON objects in its cells",
        {
            "events.csv": csv_bytes(
                rows(payload=[json.dumps({"lang": "en", "text": t}) for t in TEXTS], label=LABELS)
            )
        },
        "audit events.csv --text payload.text",
    ),
    Layout("CSV with commas", {"reviews.csv": csv_bytes(PLAIN)}, "audit reviews.csv"),
    Layout(
        "CSV with semicolons (spreadsheets in most of Europe)",
        {"reviews.csv": csv_bytes(PLAIN, ";")},
        "audit reviews.csv",
        "separator ';'",
    ),
    Layout(
        "CSV with tabs",
        {"reviews.csv": csv_bytes(PLAIN, "\t")},
        "audit reviews.csv",
        "separator '\\t'",
    ),
    Layout(
        "CSV with vertical bars",
        {"reviews.csv": csv_bytes(PLAIN, "|")},
        "audit reviews.csv",
        "separator '|'",
    ),
    Layout("TSV", {"reviews.tsv": csv_bytes(PLAIN, "\t")}, "audit reviews.tsv"),
    Layout(
        "CSV from Windows (cp1252, CRLF)",
        {"reviews.csv": csv_bytes(PLAIN, ";", "cp1252", "\r\n")},
        "audit reviews.csv",
        "encoding cp1252",
    ),
    Layout(
        "CSV in UTF-16",
        {"reviews.csv": csv_bytes(PLAIN, "\t", "utf-16")},
        "audit reviews.csv",
        "encoding utf-16",
    ),
    Layout(
        "CSV with a byte order mark",
        {"reviews.csv": b"\xef\xbb\xbf" + csv_bytes(PLAIN)},
        "audit reviews.csv",
    ),
    Layout(
        "CSV for Excel: the first line names the separator",
        {"reviews.csv": b"sep=;\r\n" + csv_bytes(PLAIN, ";", end="\r\n")},
        "audit reviews.csv",
        "separator ';'",
    ),
    Layout(
        "CSV with a title above the header",
        {"reviews.csv": b"Reviews of 2024\n\n" + csv_bytes(PLAIN)},
        "audit reviews.csv",
        "lines before the header, skipped: 'Reviews of 2024'",
    ),
    Layout(
        "CSV in UTF-16 without a byte order mark",
        {"reviews.csv": csv_bytes(PLAIN).decode().encode("utf-16-le")},
        "audit reviews.csv",
        "encoding utf-16-le",
    ),
    Layout("A table in a .txt file", {"reviews.txt": csv_bytes(PLAIN, "\t")}, "audit reviews.txt"),
    Layout(
        "A table without a header in a file without an ending",
        {
            "SMSSpamCollection": "".join(
                (f"{y}\t{t}\n" for t, y in zip(TEXTS, LABELS, strict=True))
            ).encode()
        },
        "audit SMSSpamCollection --no-header",
    ),
    Layout(
        "CSV without a header",
        {"reviews.csv": csv_bytes(PLAIN).split(b"\n", 1)[1]},
        "audit reviews.csv --no-header",
    ),
    Layout(
        "Support tickets: one prose column, labels with trailing spaces",
        {"tickets.csv": csv_bytes(TICKETS)},
        "audit tickets.csv --label Queue",
    ),
    Layout(
        "Several text columns as fields",
        {
            "mail.csv": csv_bytes(
                rows(subject=[f"s {i}" for i in range(N)], text=TEXTS, label=LABELS)
            )
        },
        "audit mail.csv --text subject --text text",
    ),
    Layout(
        "Stars from 1 to 5 to two classes",
        {
            "yelp.csv": csv_bytes(
                rows(
                    text=TEXTS,
                    stars=[(4, 5)[i // 2 % 2] if i % 2 else (1, 2)[i // 2 % 2] for i in range(N)],
                )
            )
        },
        "audit yelp.csv --group negative=1,2 --group positive=4,5",
    ),
    Layout("Excel workbook", {"reviews.xlsx": workbook(PLAIN)}, "audit reviews.xlsx"),
    Layout("gzip", {"reviews.csv.gz": gzip.compress(csv_bytes(PLAIN))}, "audit reviews.csv.gz"),
    Layout("xz", {"reviews.csv.xz": lzma.compress(csv_bytes(PLAIN))}, "audit reviews.csv.xz"),
    Layout(
        "TSV without quoting: a quotation mark is an ordinary character",
        {
            "chat.tsv": "\n".join(
                [
                    "note\ttext\tlabel",
                    *(
                        f"{(chr(34) if i % 9 == 1 else '')}n{i}{(chr(34) if i % 9 == 5 else '')}\t{t}\t{y}"
                        for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                    ),
                    "",
                ]
            ).encode()
        },
        "audit chat.tsv --no-quotes",
    ),
    Layout(
        "TSV in which a carriage return stands inside a field",
        {
            "web.tsv": "\n".join(
                [
                    "text\tlabel\tsource",
                    *(f"{t}\t{y}\tthe\rweb" for t, y in zip(TEXTS, LABELS, strict=True)),
                    "",
                ]
            ).encode()
        },
        "audit web.tsv",
    ),
    Layout(
        "Excel workbook with notes on the first sheet",
        {
            "reviews.xlsx": workbook(
                PLAIN, before={"Read me": rows(notes=["These reviews were collected in spring."])}
            )
        },
        "audit reviews.xlsx --sheet Reviews",
        "sheet 'Reviews' is read; the other is 'Read me' (--sheet)",
    ),
    Layout(
        "Excel workbook with a sheet per class",
        {
            "reviews.xlsx": workbook(
                rows(text=TEXTS[1::2]),
                before={"negative": rows(text=TEXTS[::2])},
                name="positive",
            )
        },
        "audit reviews.xlsx --sheet '*' --label sheet",
        "sheets 'negative', 'positive' are read, with their names in column 'sheet'",
    ),
    Layout(
        "Excel workbook with a title above the header",
        {
            "reviews.xlsx": workbook(
                [
                    {"Survey": t, "": y}
                    for t, y in [("text", "label"), *zip(TEXTS, LABELS, strict=True)]
                ]
            )
        },
        "audit reviews.xlsx",
        "lines before the header, skipped: 'Survey'",
    ),
    Layout(
        "CSV whose quotes are escaped by a backslash (MySQL, Spark)",
        {
            "export.csv": "\n".join(
                [
                    "id,text,label",
                    *(f'{i},"{t}",{y}' for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))),
                    '24,"say \\"hello\\", they wrote",',
                    "",
                ]
            ).encode()
        },
        "audit export.csv",
        "quotes inside fields are escaped by a backslash",
    ),
    Layout(
        "Lists written by pandas in the cells of a CSV",
        {"tags.csv": csv_bytes(rows(text=TEXTS, tags=[f"['{y}']" for y in LABELS]))},
        "audit tags.csv",
        "column 'tags' holds lists written as text",
    ),
    Layout(
        "Lists written as JSON in the cells of a CSV",
        {"tags.csv": csv_bytes(rows(text=TEXTS, tags=[json.dumps([y]) for y in LABELS]))},
        "audit tags.csv",
        "column 'tags' holds lists written as text",
    ),
    Layout(
        "Arrays of PostgreSQL in the cells of a CSV",
        {"tags.csv": csv_bytes(rows(text=TEXTS, tags=[f"{{{y}}}" for y in LABELS]))},
        "audit tags.csv",
        "column 'tags' holds lists written as text",
    ),
]

TEXT_FILES = [
    Layout(
        "fastText",
        {
            "train.txt": "".join(
                (f"__label__{y} {t}\n" for t, y in zip(TEXTS, LABELS, strict=True))
            ).encode()
        },
        "audit train.txt",
    ),
    Layout(
        "A folder of .txt files per label",
        {
            f"mail/{y}/{i:03d}.txt": t.encode()
            for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
        },
        "audit mail",
    ),
    Layout(
        "20 newsgroups: a folder per class, files without an ending",
        {
            f"news/{y}/{10000 + i}": t.encode()
            for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
        },
        "audit news",
    ),
    Layout(
        "20 newsgroups by date: folders named …-train and …-test",
        {
            f"news/20news-{part}/{y}/{10000 + i}": t.encode()
            for part in ("train", "test")
            for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
        },
        "audit news",
    ),
    Layout(
        "IMDB: aclImdb with unlabelled reviews",
        {
            f"aclImdb/{part}/{y}/{i}_7.txt": t.encode()
            for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
            for part, y in (("train", y), ("test", y), ("train", "unsup"))
        }
        | {
            "aclImdb/train/labeledBow.feat": b"9 0:9",
            "aclImdb/README": b"Large Movie Review Dataset",
        },
        "audit aclImdb",
    ),
    Layout(
        "Texts in a folder that holds nothing else, in Latin-1",
        {
            f"txt/texts/{y}/{i}.txt": t.encode("latin-1")
            for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
        },
        "audit txt",
        "encoding cp1252",
    ),
    Layout(
        "fastText with another prefix",
        {
            "train.txt": "".join(
                f"__topic__{y} {t}\n" for t, y in zip(TEXTS, LABELS, strict=True)
            ).encode()
        },
        "audit train.txt",
    ),
    Layout(
        "fastText with labels of several prefixes",
        {
            "train.txt": "".join(
                f"__topic__{y} __size__long {t}\n" for t, y in zip(TEXTS, LABELS, strict=True)
            ).encode()
        },
        "audit train.txt --label topic",
    ),
    Layout(
        "fastText with the labels at the end of the line",
        {
            "train.txt": "".join(
                (f"{t} __label__{y}\n" for t, y in zip(TEXTS, LABELS, strict=True))
            ).encode()
        },
        "audit train.txt",
    ),
]

JSON_FILES = [
    Layout("JSON lines", {"reviews.jsonl": json_lines(PLAIN)}, "audit reviews.jsonl"),
    Layout(
        "JSON: a list of objects",
        {"reviews.json": json.dumps(PLAIN).encode()},
        "audit reviews.json",
    ),
    Layout(
        "JSON: a list under a key",
        {"reviews.json": json.dumps({"data": PLAIN}).encode()},
        "audit reviews.json",
    ),
    Layout(
        "JSON: a list deep inside",
        {"reviews.json": json.dumps({"response": {"items": PLAIN, "total": N}}).encode()},
        "audit reviews.json",
    ),
    Layout(
        "JSON: objects by their names",
        {"reviews.json": json.dumps({f"r{i}": row for i, row in enumerate(PLAIN)}).encode()},
        "audit reviews.json",
    ),
    Layout(
        "JSON: pandas' to_json(orient='split')",
        {
            "reviews.json": json.dumps(
                {
                    "columns": ["text", "label"],
                    "index": list(range(N)),
                    "data": [list(row.values()) for row in PLAIN],
                }
            ).encode()
        },
        "audit reviews.json",
    ),
    Layout(
        "A list of objects in a .jsonl file",
        {"reviews.jsonl": json.dumps(PLAIN, indent=1).encode()},
        "audit reviews.jsonl",
    ),
    Layout(
        "JSON: columns (pandas' to_json)",
        {
            "reviews.json": json.dumps(
                {"text": dict(enumerate(TEXTS)), "label": dict(enumerate(LABELS))}
            ).encode()
        },
        "audit reviews.json",
    ),
    Layout(
        "Nested JSON",
        {
            "posts.jsonl": json_lines(
                [
                    {"id": i, "data": {"text": t, "meta": {"label": y}}}
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                ]
            )
        },
        "audit posts.jsonl --text data.text --label data.meta.label",
    ),
    Layout(
        "zstd",
        {"reviews.jsonl.zst": zstandard.compress(json_lines(PLAIN))},
        "audit reviews.jsonl.zst",
    ),
]

DATASETS = [
    Layout(
        "Parquet",
        {"reviews.parquet": frame_bytes(PLAIN, lambda f, out: f.write_parquet(out))},
        "audit reviews.parquet",
    ),
    Layout(
        "Nested Parquet",
        {
            "posts.parquet": frame_bytes(
                [{"data": {"text": t}, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)],
                lambda f, out: f.write_parquet(out),
            )
        },
        "audit posts.parquet --text data.text",
    ),
    Layout(
        "Arrow file",
        {"reviews.arrow": frame_bytes(PLAIN, lambda f, out: f.write_ipc(out))},
        "audit reviews.arrow",
    ),
    Layout(
        "Arrow stream (the datasets library's cache)",
        {"data.arrow": frame_bytes(PLAIN, lambda f, out: f.write_ipc_stream(out))},
        "audit data.arrow",
    ),
    Layout(
        "A data set of the Hugging Face hub, cloned",
        {
            "imdb/data/train-00000-of-00001.parquet": frame_bytes(
                PLAIN, lambda f, out: f.write_parquet(out)
            ),
            "imdb/data/test-00000-of-00001.parquet": frame_bytes(
                PLAIN, lambda f, out: f.write_parquet(out)
            ),
        },
        "audit imdb",
    ),
    Layout(
        "save_to_disk of the datasets library",
        {
            f"saved/{part}/{name}": content
            for part in ("train", "test")
            for name, content in {
                "data-00000-of-00001.arrow": frame_bytes(
                    PLAIN, lambda f, out: f.write_ipc_stream(out)
                ),
                "state.json": b"{}",
                "dataset_info.json": b"{}",
            }.items()
        }
        | {"saved/dataset_dict.json": b'{"splits": ["train", "test"]}'},
        "audit saved",
    ),
    Layout(
        "Parquet of the datasets library, with class names in its metadata",
        {
            "reviews.parquet": frame_bytes(
                rows(text=TEXTS, label=[int(y == "positive") for y in LABELS]),
                lambda f, out: f.write_parquet(
                    out,
                    metadata={
                        "huggingface": json.dumps(
                            {
                                "info": {
                                    "features": {
                                        "label": {
                                            "names": ["negative", "positive"],
                                            "_type": "ClassLabel",
                                        }
                                    }
                                }
                            }
                        )
                    },
                ),
            )
        },
        "audit reviews.parquet",
        "column 'label': class names of the file",
    ),
    Layout(
        "Parquet whose text is stored as bytes (Spark, Hive)",
        {
            "reviews.parquet": frame_bytes(
                rows(text=[t.encode() for t in TEXTS], label=[y.encode() for y in LABELS]),
                lambda f, out: f.write_parquet(out),
            )
        },
        "audit reviews.parquet",
    ),
    Layout(
        "Parquet whose label is an object",
        {
            "reviews.parquet": frame_bytes(
                rows(text=TEXTS, label=[{"id": i % 2, "name": y} for i, y in enumerate(LABELS)]),
                lambda f, out: f.write_parquet(out),
            )
        },
        "audit reviews.parquet --label label.name",
    ),
]

SEVERAL_FILES = [
    Layout(
        "Several files",
        {"a.csv": csv_bytes(PLAIN[:10]), "b.csv": csv_bytes(PLAIN[10:])},
        "audit a.csv b.csv",
    ),
    Layout(
        "A glob",
        {"2023.jsonl": json_lines(PLAIN[:9]), "2024.jsonl": json_lines(PLAIN[9:])},
        "audit '20*.jsonl'",
    ),
    Layout(
        "A folder of data files",
        {
            "shards/0.parquet": frame_bytes(PLAIN[:7], lambda f, out: f.write_parquet(out)),
            "shards/1.parquet": frame_bytes(PLAIN[7:], lambda f, out: f.write_parquet(out)),
        },
        "audit shards",
    ),
    Layout(
        "Kaggle: train.csv and test.csv without labels",
        {
            "c/train.csv": csv_bytes(rows(id=list(range(N)), text=TEXTS, target=LABELS)),
            "c/test.csv": csv_bytes(rows(id=list(range(N)), text=TEXTS)),
            "c/sample_submission.csv": csv_bytes(rows(id=list(range(N)), target=["x"] * N)),
        },
        "audit c",
    ),
    Layout(
        "Files named …_train and …_test",
        {"d/imdb_train.csv": csv_bytes(PLAIN), "d/imdb_test.csv": csv_bytes(PLAIN)},
        "audit d",
    ),
    Layout(
        "GLUE: the labels of all test rows are hidden as −1",
        {
            "glue/train.jsonl": json_lines(PLAIN),
            "glue/test.jsonl": json_lines(rows(text=TEXTS[:5], label=[-1] * 5)),
        },
        "audit glue",
    ),
    Layout(
        "One file with a split column, whose test rows have the label −1",
        {
            "all.csv": csv_bytes(
                [
                    *(row | {"split": "train"} for row in PLAIN),
                    *({"text": t, "label": "-1", "split": "test"} for t in TEXTS[:5]),
                ]
            )
        },
        "audit all.csv --split split",
    ),
]

CHAT_MODELS = [
    Layout(
        "Chat messages with a label",
        {
            "chats.jsonl": json_lines(
                [
                    {"messages": chat("hello", t), "label": y}
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            )
        },
        "audit chats.jsonl --role assistant",
    ),
    Layout(
        "Chats for fine-tuning, whose answer is the label",
        {
            "chats.jsonl": json_lines(
                [{"messages": chat(t, y)} for t, y in zip(TEXTS, LABELS, strict=True)]
            )
        },
        "audit chats.jsonl --text messages.user --label messages.assistant",
    ),
    Layout(
        "ShareGPT conversations",
        {
            "chats.jsonl": json_lines(
                [
                    {
                        "conversations": [
                            {"from": "human", "value": "hello"},
                            {"from": "gpt", "value": t},
                        ],
                        "label": y,
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            )
        },
        "audit chats.jsonl --text conversations --role assistant",
    ),
    Layout(
        "KTO: a completion and whether it is good",
        {
            "kto.jsonl": json_lines(
                [
                    {
                        "prompt": "what is it like?" + " really" * (i % 3),
                        "completion": t,
                        "label": y,
                    }
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                ]
            )
        },
        "audit kto.jsonl --text completion --label label",
    ),
    Layout(
        "KTO with message lists",
        {
            "kto.jsonl": json_lines(
                [
                    {
                        "prompt": chat("what is it like?" + " really" * (i % 3)),
                        "completion": chat(t, roles=("assistant", "user")),
                        "label": y,
                    }
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                ]
            )
        },
        "audit kto.jsonl",
    ),
]

LABEL_STUDIO = [
    Layout(
        "Label Studio",
        {
            "export.json": json.dumps(
                [
                    {
                        "data": {"text": t},
                        "annotations": [
                            {"result": [{"type": "choices", "value": {"choices": [y]}}]}
                        ],
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            ).encode()
        },
        "audit export.json --text data.text --label annotations.result.value.choices",
    ),
    Layout(
        "Label Studio: several annotators, whose majority counts",
        {
            "export.json": json.dumps(
                [
                    {
                        "data": {"text": t},
                        "annotations": [
                            {
                                "completed_by": n,
                                "result": [
                                    {
                                        "type": "choices",
                                        "value": {"choices": [y if n else "positive"]},
                                    }
                                ],
                            }
                            for n in range(3)
                        ],
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            ).encode()
        },
        "audit export.json --text data.text --label annotations.result.value.choices",
        "the majority counts",
    ),
    Layout(
        "Label Studio's CSV, in which several choices are an object",
        {
            "export.csv": csv_bytes(
                rows(
                    text=TEXTS,
                    choices=[
                        y if i % 3 else json.dumps({"choices": [y]}) for i, y in enumerate(LABELS)
                    ],
                )
            )
        },
        "audit export.csv",
        "column 'choices' holds lists written as text",
    ),
    Layout(
        "Label Studio's CSV of several annotators: a row per annotation",
        {
            "export.csv": csv_bytes(
                rows(
                    annotation_id=list(range(3 * N)),
                    annotator=[i % 3 for i in range(3 * N)],
                    choice=[LABELS[i // 3] if i % 3 else "positive" for i in range(3 * N)],
                    id=[i // 3 for i in range(3 * N)],
                    text=[TEXTS[i // 3] for i in range(3 * N)],
                )
            )
        },
        "audit export.csv",
        f"{3 * N} rows by 3 annotators (column 'annotator') label {N} documents",
    ),
]

DOCCANO = [
    Layout(
        "doccano: each label in a list of its own",
        {
            "doccano.jsonl": json_lines(
                [
                    {"id": i, "text": t, "label": [y]}
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                ]
            )
        },
        "audit doccano.jsonl",
    ),
    Layout(
        "doccano's older export: an annotation per user",
        {
            "project.jsonl": json_lines(
                [
                    {
                        "id": i,
                        "text": t,
                        "annotations": [
                            {"label": y if user < 3 else "negative", "user": user}
                            for user in (1, 2, 3)
                        ],
                    }
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                ]
            )
        },
        "audit project.jsonl --label annotations.label",
        "the majority counts",
    ),
    Layout(
        "doccano's older export: the labels of one user",
        {
            "project.jsonl": json_lines(
                [
                    {
                        "id": i,
                        "text": t,
                        "annotations": [
                            {"label": y if user == 7 else "negative", "user": user}
                            for user in (1, 2, 7)
                        ],
                    }
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                ]
            )
        },
        "audit project.jsonl --label annotations.label --annotator 7",
        "only the labels of annotator '7' are read",
    ),
]

PRODIGY = [
    Layout(
        "Prodigy: one choice",
        {
            "prodigy.jsonl": json_lines(
                [
                    {
                        "text": t,
                        "options": [{"id": "positive"}, {"id": "negative"}],
                        "accept": [y],
                        "answer": "accept",
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            )
        },
        "audit prodigy.jsonl",
    ),
    Layout(
        "Prodigy: labels that the annotator accepted",
        {
            "prodigy.jsonl": json_lines(
                [
                    *(
                        {"text": t, "label": y, "answer": "accept"}
                        for t, y in zip(TEXTS, LABELS, strict=True)
                    ),
                    *({"text": t, "label": "positive", "answer": "reject"} for t in TEXTS[:3]),
                ]
            )
        },
        "audit prodigy.jsonl",
    ),
]

ARGILLA = [
    Layout(
        "Argilla 2: responses beside their users",
        {
            "argilla.jsonl": json_lines(
                [
                    {
                        "text": t,
                        "mood.responses": [y, y],
                        "mood.responses.users": ["ann", "ben"],
                        "mood.responses.status": ["submitted", "submitted"],
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            )
        },
        "audit argilla.jsonl --label mood.responses",
        "the majority counts",
    ),
    Layout(
        "Argilla: fields and responses",
        {
            "argilla.jsonl": json_lines(
                [
                    {
                        "fields": {"text": t},
                        "responses": {"mood": [{"value": y, "status": "submitted"}]},
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            )
        },
        "audit argilla.jsonl --text fields.text --label responses.mood.value",
    ),
    Layout(
        "Argilla: responses of several users",
        {
            "argilla.jsonl": json_lines(
                [
                    {
                        "fields": {"text": t},
                        "responses": {
                            "mood": [{"value": y, "user_id": "u1"}, {"value": y, "user_id": "u2"}]
                        },
                    }
                    for t, y in zip(TEXTS, LABELS, strict=True)
                ]
            )
        },
        "audit argilla.jsonl --text fields.text --label responses.mood.value",
        "the majority counts",
    ),
]

SEVERAL_LABELS = [
    Layout(
        "Lists of labels without quotes in the cells of a CSV",
        {
            "posts.csv": csv_bytes(
                rows(
                    text=TEXTS,
                    labels=[f"[{y}, all]" if i % 3 else f"[{y}]" for i, y in enumerate(LABELS)],
                )
            )
        },
        "audit posts.csv",
        several=True,
    ),
    Layout(
        "doccano's CSV: several labels between number signs",
        {
            "posts.csv": csv_bytes(
                rows(text=TEXTS, label=[f"{y}#all" if i % 3 else y for i, y in enumerate(LABELS)])
            )
        },
        "audit posts.csv --label-separator '#'",
        several=True,
    ),
    Layout(
        "Arrays of numpy in the cells of a CSV",
        {
            "posts.csv": csv_bytes(
                rows(
                    text=TEXTS,
                    labels=[
                        f"['{y}' 'odd']" if i % 4 == 3 else f"['{y}']" for i, y in enumerate(LABELS)
                    ],
                )
            )
        },
        "audit posts.csv",
        several=True,
    ),
    Layout(
        "Several labels in a cell",
        {"posts.csv": csv_bytes(rows(text=TEXTS, tags=[f"{y}|all" for y in LABELS]))},
        "audit posts.csv --label tags --label-separator '|'",
        several=True,
    ),
    Layout(
        "Lists of labels",
        {
            "posts.jsonl": json_lines(
                rows(
                    text=TEXTS, labels=[[y, "all"] if i % 2 else [y] for i, y in enumerate(LABELS)]
                )
            )
        },
        "audit posts.jsonl",
        several=True,
    ),
    Layout(
        "A label, or a list of several",
        {
            "posts.jsonl": json_lines(
                rows(
                    text=TEXTS,
                    labels=[[y, "odd"] if i % 4 == 3 else y for i, y in enumerate(LABELS)],
                )
            )
        },
        "audit posts.jsonl",
        several=True,
    ),
    Layout(
        "fastText with several labels in some lines",
        {
            "train.txt": "".join(
                (
                    f"__label__{y}{(', __label__odd' if i % 4 == 3 else '')} {t}\n"
                    for i, (t, y) in enumerate(zip(TEXTS, LABELS, strict=True))
                )
            ).encode()
        },
        "audit train.txt",
        several=True,
    ),
    Layout(
        "Lists of labels written in the cells of a CSV",
        {
            "posts.csv": csv_bytes(
                rows(
                    text=TEXTS,
                    labels=[
                        str([y, "odd"]) if i % 4 == 3 else str([y]) for i, y in enumerate(LABELS)
                    ],
                )
            )
        },
        "audit posts.csv",
        several=True,
    ),
]

TRL = [
    Layout(
        "Chosen and rejected",
        {"p.csv": csv_bytes(rows(prompt=PROMPTS, chosen=GOOD, rejected=BAD))},
        "audit p.csv --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "OpenAI's preference format",
        {
            "openai.jsonl": json_lines(
                [
                    {
                        "input": {"messages": chat(p)},
                        "preferred_output": chat(a, roles=("assistant", "user")),
                        "non_preferred_output": chat(b, roles=("assistant", "user")),
                        "question": p,
                    }
                    for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
                ]
            )
        },
        "audit openai.jsonl --pairs preferred_output,non_preferred_output",
        pairs=True,
    ),
    Layout(
        "DPO: message lists, written as JSON in the cells of a CSV",
        {
            "dpo.csv": csv_bytes(
                rows(
                    prompt=PROMPTS,
                    chosen=[json.dumps(chat(p, a)) for p, a in zip(PROMPTS, GOOD, strict=True)],
                    rejected=[json.dumps(chat(p, a)) for p, a in zip(PROMPTS, BAD, strict=True)],
                )
            )
        },
        "audit dpo.csv --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "DPO: message lists, as Python writes them in the cells of a CSV",
        {
            "dpo.csv": csv_bytes(
                rows(
                    prompt=PROMPTS,
                    chosen=[repr(chat(p, a)) for p, a in zip(PROMPTS, GOOD, strict=True)],
                    rejected=[repr(chat(p, a)) for p, a in zip(PROMPTS, BAD, strict=True)],
                )
            )
        },
        "audit dpo.csv --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "Winner and loser",
        {"wl.csv": csv_bytes(rows(prompt=PROMPTS, winner=GOOD, loser=BAD))},
        "audit wl.csv --pairs winner,loser",
        pairs=True,
    ),
    Layout(
        "Anthropic HH: transcripts with a common beginning",
        {
            "hh.jsonl": json_lines(
                rows(
                    chosen=[human(p, a) for p, a in zip(PROMPTS, GOOD, strict=True)],
                    rejected=[human(p, a) for p, a in zip(PROMPTS, BAD, strict=True)],
                )
            )
        },
        "audit hh.jsonl --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "UltraFeedback: message lists",
        {
            "uf.parquet": frame_bytes(
                rows(
                    prompt=PROMPTS,
                    chosen=[chat(p, a) for p, a in zip(PROMPTS, GOOD, strict=True)],
                    rejected=[chat(p, a) for p, a in zip(PROMPTS, BAD, strict=True)],
                ),
                lambda f, out: f.write_parquet(out),
            )
        },
        "audit uf.parquet --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "LLaMA-Factory: each answer is a single message",
        {
            "sharegpt.json": json.dumps(
                [
                    {
                        "conversations": [{"from": "human", "value": p}],
                        "prompt": p,
                        "chosen": {"from": "gpt", "value": a},
                        "rejected": {"from": "gpt", "value": b},
                    }
                    for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
                ]
            ).encode()
        },
        "audit sharegpt.json --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "Answers in objects beside their scores",
        {
            "nested.jsonl": json_lines(
                [
                    {
                        "question": p,
                        "pos": {"answer": a, "score": 1.0},
                        "neg": {"answer": b, "score": 0.0},
                    }
                    for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
                ]
            )
        },
        "audit nested.jsonl --pairs pos.answer,neg.answer",
        pairs=True,
    ),
    Layout(
        "ms-swift: a conversation, and the rejected answer as text",
        {
            "swift.jsonl": json_lines(
                [
                    {"messages": chat(p, a), "rejected_response": b}
                    for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
                ]
            )
        },
        "audit swift.jsonl --pairs messages,rejected_response",
        pairs=True,
    ),
    Layout(
        "Conversations that differ from the first answer on",
        {
            "long.jsonl": json_lines(
                [
                    {
                        "chosen": chat(p, a, f"thank you {i}"),
                        "rejected": chat(p, b, f"wrong again {i}"),
                    }
                    for i, (p, a, b) in enumerate(zip(PROMPTS, GOOD, BAD, strict=True))
                ]
            )
        },
        "audit long.jsonl --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "Roles in capitals",
        {
            "caps.jsonl": json_lines(
                [
                    {
                        "chosen": chat(p, a, roles=("Human", "Assistant")),
                        "rejected": chat(p, b, roles=("Human", "Assistant")),
                    }
                    for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
                ]
            )
        },
        "audit caps.jsonl --pairs chosen,rejected --role assistant",
        pairs=True,
    ),
    Layout(
        "Answers in objects (chosen.value)",
        {
            "objects.jsonl": json_lines(
                rows(
                    prompt=PROMPTS,
                    chosen=[{"from": "gpt", "value": text} for text in GOOD],
                    rejected=[{"from": "gpt", "value": text} for text in BAD],
                )
            )
        },
        "audit objects.jsonl --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "Messages whose content has parts, some of them images",
        {
            "parts.jsonl": json_lines(
                rows(
                    prompt=PROMPTS,
                    chosen=[with_image(text) for text in GOOD],
                    rejected=[with_image(text) for text in BAD],
                )
            )
        },
        "audit parts.jsonl --pairs chosen,rejected",
        pairs=True,
    ),
    Layout(
        "Best of n: lists of preferred and of other answers",
        {
            "best.jsonl": json_lines(
                [
                    {"prompt": p, "chosen": [a], "rejected": [b, b + " again"]}
                    for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
                ]
            )
        },
        "audit best.jsonl --pairs chosen,rejected",
        pairs=True,
        several=True,
    ),
]

ARENAS = [
    Layout(
        "Chatbot Arena, MT-bench",
        {"arena.csv": csv_bytes(ARENA)},
        "audit arena.csv --pairs response_a,response_b --winner winner",
        pairs=True,
    ),
    Layout(
        "Arena as message lists",
        {
            "arena.jsonl": json_lines(
                rows(
                    conversation_a=[chat(p, a) for p, a in zip(PROMPTS, FIRST, strict=True)],
                    conversation_b=[chat(p, a) for p, a in zip(PROMPTS, SECOND, strict=True)],
                    winner=WINNER,
                )
            )
        },
        "audit arena.jsonl --pairs conversation_a,conversation_b --winner winner",
        pairs=True,
    ),
    Layout(
        "Winner named by model",
        {
            "arena.csv": csv_bytes(
                [
                    row | {"winner": "gpt" if row["winner"] == "model_a" else "claude"}
                    for row in ARENA
                ]
            )
        },
        "audit arena.csv --pairs response_a,response_b --winner winner",
        pairs=True,
    ),
    Layout(
        "Winner in columns of 0 and 1 (Kaggle's LMSYS)",
        {
            "lmsys.csv": csv_bytes(
                [
                    {k: v for k, v in row.items() if k != "winner"}
                    | {
                        "winner_model_a": int(row["winner"] == "model_a"),
                        "winner_model_b": int(row["winner"] == "model_b"),
                        "winner_tie": 0,
                    }
                    for row in ARENA
                ]
            )
        },
        "audit lmsys.csv --pairs response_a,response_b --winner winner_model_a",
        pairs=True,
    ),
    Layout(
        "PKU-SafeRLHF",
        {
            "pku.jsonl": json_lines(
                rows(
                    prompt=PROMPTS,
                    response_0=FIRST,
                    response_1=SECOND,
                    better_response_id=[int(w == "model_b") for w in WINNER],
                )
            )
        },
        "audit pku.jsonl --pairs response_0,response_1 --winner better_response_id",
        pairs=True,
    ),
    Layout(
        "A or B",
        {
            "ab.csv": csv_bytes(
                rows(
                    prompt=PROMPTS,
                    answer_a=FIRST,
                    answer_b=SECOND,
                    preference=[w[-1].upper() for w in WINNER],
                )
            )
        },
        "audit ab.csv --pairs answer_a,answer_b --winner preference",
        pairs=True,
    ),
    Layout(
        "The chance that the first answer wins",
        {
            "chance.csv": csv_bytes(
                rows(
                    prompt=PROMPTS,
                    response_a=FIRST,
                    response_b=SECOND,
                    p_a_wins=[0.85 if w == "model_a" else 0.1 for w in WINNER],
                )
            )
        },
        "audit chance.csv --pairs response_a,response_b --winner p_a_wins",
        pairs=True,
    ),
    Layout(
        "Arena with ties",
        {
            "arena.csv": csv_bytes(
                [
                    *ARENA,
                    *(
                        {**row, "winner": tie}
                        for row, tie in zip(ARENA, ["tie", "tie (bothbad)"], strict=False)
                    ),
                ]
            )
        },
        "audit arena.csv --pairs response_a,response_b --winner winner --ties drop",
        pairs=True,
        ties=2,
    ),
    Layout(
        "AlpacaEval: from 1 (the first answer) to 2 (the second)",
        {
            "alpaca.json": json.dumps(
                rows(
                    instruction=PROMPTS,
                    output_1=FIRST,
                    output_2=SECOND,
                    preference=[
                        1.01 + i / 100 if w == "model_a" else 1.99 - i / 100
                        for i, w in enumerate(WINNER)
                    ],
                )
            ).encode()
        },
        "audit alpaca.json --pairs output_1,output_2 --winner preference",
        pairs=True,
    ),
    Layout(
        "Verdicts of a judge as A>>B or A<B",
        {
            "judged.jsonl": json_lines(
                rows(
                    question=PROMPTS,
                    answer_a=FIRST,
                    answer_b=SECOND,
                    verdict=["[[A>>B]]" if w == "model_a" else "A<B" for w in WINNER],
                )
            )
        },
        "audit judged.jsonl --pairs answer_a,answer_b --winner verdict",
        pairs=True,
    ),
    Layout(
        "Verdicts in words",
        {
            "judged.csv": csv_bytes(
                rows(
                    question=PROMPTS,
                    answer_a=FIRST,
                    answer_b=SECOND,
                    verdict=[
                        "A is slightly better" if w == "model_a" else "A is much worse"
                        for w in WINNER
                    ],
                )
            )
        },
        "audit judged.csv --pairs answer_a,answer_b --winner verdict",
        pairs=True,
    ),
]

SCORED = [
    Layout(
        "HelpSteer: a scale from −3 to 3",
        {
            "hs.jsonl": json_lines(
                rows(
                    prompt=PROMPTS,
                    response1=FIRST,
                    response2=SECOND,
                    overall_preference=[-2 if w == "model_a" else 1 for w in WINNER],
                )
            )
        },
        "audit hs.jsonl --pairs response1,response2 --winner overall_preference",
        pairs=True,
    ),
    Layout(
        "A score for either answer",
        {
            "scores.csv": csv_bytes(
                rows(
                    prompt=PROMPTS,
                    response_a=FIRST,
                    response_b=SECOND,
                    score_a=[1.5 if w == "model_a" else 0.5 for w in WINNER],
                    score_b=[1.0] * N,
                )
            )
        },
        "audit scores.csv --pairs response_a,response_b --scores score_a,score_b",
        pairs=True,
    ),
    Layout(
        "Several answers in a list, with ranks (Nectar)",
        {
            "nectar.jsonl": json_lines(
                rows(
                    prompt=PROMPTS,
                    answers=[
                        [{"answer": b, "rank": 2}, {"answer": a, "rank": 1}]
                        for a, b in zip(GOOD, BAD, strict=True)
                    ],
                )
            )
        },
        "audit nectar.jsonl --pairs answers.answer --ranks answers.rank",
        pairs=True,
    ),
    Layout(
        "Two answers in a list, and their order from 0",
        {
            "ordered.jsonl": json_lines(
                rows(
                    prompt=PROMPTS,
                    answers=[[b, a] for a, b in zip(GOOD, BAD, strict=True)],
                    order=[[1, 0]] * N,
                )
            )
        },
        "audit ordered.jsonl --pairs answers --ranks order",
        pairs=True,
    ),
    Layout(
        "Several answers in a list, with scores (UltraFeedback, raw)",
        {
            "raw.jsonl": json_lines(
                rows(
                    instruction=PROMPTS,
                    completions=[
                        [
                            {"response": b, "overall_score": 3.0},
                            {"response": a, "overall_score": 8.5},
                        ]
                        for a, b in zip(GOOD, BAD, strict=True)
                    ],
                )
            )
        },
        "audit raw.jsonl --pairs completions.response --scores completions.overall_score",
        pairs=True,
    ),
    Layout(
        "One answer per row, with scores",
        {
            "long.csv": csv_bytes(
                rows(
                    prompt=[f"{p} {i}" for i, p in enumerate(PROMPTS)] * 2,
                    answer=[*BAD, *GOOD],
                    score=[0] * N + [1] * N,
                )
            )
        },
        "audit long.csv --pairs answer --scores score --by prompt",
        pairs=True,
    ),
    Layout(
        "A scale from 1 (the first answer is much better) to 8",
        {
            "likert.jsonl": json_lines(
                rows(
                    question=PROMPTS,
                    answer_a=FIRST,
                    answer_b=SECOND,
                    rating=[
                        1 + i % 4 if w == "model_a" else 8 - i % 4 for i, w in enumerate(WINNER)
                    ],
                )
            )
        },
        "audit likert.jsonl --pairs answer_a,answer_b --winner rating",
        pairs=True,
    ),
    Layout(
        "Two answers in a list, and the number of the better one",
        {
            "summaries.jsonl": json_lines(
                [
                    {
                        "prompt": p,
                        "summaries": [{"text": a}, {"text": b}],
                        "choice": int(w == "model_b"),
                    }
                    for p, a, b, w in zip(PROMPTS, FIRST, SECOND, WINNER, strict=True)
                ]
            )
        },
        "audit summaries.jsonl --pairs summaries.text --winner choice",
        pairs=True,
    ),
    Layout(
        "OpenAssistant: messages with their parent and rank",
        {
            "tree.jsonl": json_lines(
                [
                    *(
                        {"parent_id": None, "role": "prompter", "text": "hello", "rank": None}
                        for _ in "ab"
                    ),
                    *(
                        {"parent_id": f"q{i}", "role": "assistant", "text": t, "rank": rank}
                        for i, pair in enumerate(zip(GOOD, BAD, strict=True))
                        for rank, t in enumerate(pair)
                    ),
                ]
            )
        },
        "audit tree.jsonl --pairs text --ranks rank --by parent_id",
        pairs=True,
    ),
]

ANNOTATED_TABLES = [
    Layout(
        "A row per annotation, whose majority counts",
        {
            "annotated.csv": csv_bytes(
                rows(
                    text=TEXTS * 3,
                    rater=["kim"] * N + ["lee"] * N + ["ann"] * N,
                    label=LABELS * 2 + ["positive"] * N,
                )
            )
        },
        "audit annotated.csv",
        f"{3 * N} rows by 3 annotators (column 'rater') label {N} documents",
    ),
    Layout(
        "A row per annotation: the labels of one annotator",
        {
            "annotated.csv": csv_bytes(
                rows(
                    text=TEXTS * 2,
                    rater=["kim"] * N + ["lee"] * N,
                    label=LABELS + ["positive"] * N,
                )
            )
        },
        "audit annotated.csv --annotator kim",
        "only the labels of annotator 'kim' are read",
    ),
    Layout(
        "A row per annotation, in a column whose name does not say so",
        {
            "annotated.jsonl": json_lines(
                rows(text=TEXTS * 2, who=["kim"] * N + ["lee"] * N, label=LABELS * 2)
            )
        },
        "audit annotated.jsonl --annotated-by who",
        f"{2 * N} rows by 2 annotators (column 'who') label {N} documents",
    ),
    Layout(
        "A column per annotator",
        {
            "annotated.csv": csv_bytes(
                rows(text=TEXTS, kim=LABELS, lee=LABELS, ann=["positive"] * N)
            )
        },
        "audit annotated.csv --annotated-by kim,lee,ann",
        "columns 'kim', 'lee', 'ann' hold the labels of one annotator each",
    ),
]

LABELLED_FAMILIES = {
    "Spreadsheets and tables": SPREADSHEETS,
    "Plain texts and fastText": TEXT_FILES,
    "JSON": JSON_FILES,
    "`datasets`, Parquet and Arrow": DATASETS,
    "Several files, training and test": SEVERAL_FILES,
    "Data for chat models": CHAT_MODELS,
    "Label Studio": LABEL_STUDIO,
    "doccano": DOCCANO,
    "Prodigy": PRODIGY,
    "Argilla": ARGILLA,
    "Tables of several annotators": ANNOTATED_TABLES,
    "Several labels per document": SEVERAL_LABELS,
}
PREFERENCE_FAMILIES = {
    "trl and other trainers": TRL,
    "Arenas and judges": ARENAS,
    "Scores, ranks and scales": SCORED,
}
LABELLED = [layout for layouts in LABELLED_FAMILIES.values() for layout in layouts]
PREFERENCES = [layout for layouts in PREFERENCE_FAMILIES.values() for layout in layouts]


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


def families(layouts: dict[str, list[Layout]]) -> str:
    """A table for each family of tools, under its name."""
    return "\n\n".join(f"### {title}\n\n{table(rows)}" for title, rows in layouts.items())


def page() -> str:
    frame = (Path(__file__).parent / "reads.template.md").read_text(encoding="utf-8")
    frame = frame.replace("{labelled}", families(LABELLED_FAMILIES))
    return frame.replace("{preferences}", families(PREFERENCE_FAMILIES))


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "reads.md").write_text(page(), encoding="utf-8")
