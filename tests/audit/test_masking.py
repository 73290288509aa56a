"""Masked texts: what is cut leaves no debris, and what is not cut stays letter for letter;
decisions are read strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import Run, fast_first
from tokensieve import Settings, audit, demo_reviews
from tokensieve.auditing.decisions import read_decisions
from tokensieve.auditing.masking import mask_texts
from tokensieve.auditing.removal import tokens_to_cut
from tokensieve.errors import InputError
from tokensieve.text.tokenizers import WordTokenizer

QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)
CASES = {
    "Tablet, I loved it": "I loved it",
    "I loved the tablet.": "I loved the.",
    "the film, tablet, was": "the film, was",
    "Great. Tablet. More": "Great. More",
    "good, tablet.": "good.",
    "(tablet, good)": "(good)",
    "(good, tablet)": "(good)",
    "a (tablet) b": "a b",
    'he said "tablet" and': "he said and",
    "“Tablet”, he said": "he said",
    "**tablet** yes": "yes",
    "anti-tablet-good": "anti-good",
    "I give it 7/10.": "I give it.",
    "costs 3.5 euros, 10% off": "costs 3.5 euros, off",
    "#tablet rocks": "rocks",
    "x\n\ntablet\n\ny": "x\n\ny",
    "- tablet good\n- tablet\n- foo": "- good\n- foo",
    "good - tablet - bad": "good - bad",
    "tablet :)": ":)",
    "Great tablet. Tablet rocks!": "Great. rocks!",
    "really? Tablet?": "really?",
    "foo tablet\n": "foo\n",
    "好tablet坏": "好坏",
    "a 😀 tablet, 😀": "a 😀, 😀",
    "phone/tablet": "phone",
    "tablet": "",
    "[tablet-38977] it broke": "it broke",
    "see tablet-1234, please": "see, please",
    "keeps  its   own , odd ( ) marks": "keeps  its   own , odd ( ) marks",
}
CUT = ["tablet", "7/10", "10%", "10"]
PART = st.sampled_from(
    ["tablet", "Tablet", "good", "film", "x7", "10", ", ", ". ", "! ", " (", ") ", " - ", "-", "/", "\n", " ", "  ", '"', "“", "”",
     " #", "%", "😀", "'", ":", " :) ", "é", "好"]
)  # fmt: skip
DEBRIS = (
    r"  ",
    r"\(\s*\)",
    r"“\s*”",
    r",\s*,",
    r" ,",
    r" \.(?!\w)",
    r"\(\s*,",
    r",\s*\)",
    r"^\s*[,.]",
)


def test_all_ratings_on_a_scale_are_masked_and_no_dates_or_huge_numbers() -> None:
    tokens = ["7/10", "3/10", "7/2024", "3/2024", "9/100", "55/100", "1/99999999999999"]
    splitter = WordTokenizer()
    cut = tokens_to_cut(("7/10", "film"), tokens, splitter)
    assert set(cut) == {"film", *(f"{i}/10" for i in range(11))}
    assert tokens_to_cut(("9/100",), tokens, splitter) == ("9/100", "55/100")
    far = ("7/2024", "1/99999999999999")  # counting up to the scale would take days
    assert tokens_to_cut(far, tokens, splitter) == far


@pytest.mark.parametrize("before", CASES)
def test_a_cut_leaves_no_debris(before: str) -> None:
    assert mask_texts(pl.Series([before]), CUT, WordTokenizer())[0].to_list() == [CASES[before]]


@settings(deadline=None, derandomize=True)
@given(parts=st.lists(PART, max_size=14))
def test_what_is_not_cut_is_there_in_its_order_and_debris_does_not_grow(parts: list[str]) -> None:
    before, tokenizer = "".join(parts), WordTokenizer()
    after = mask_texts(pl.Series([before], dtype=pl.String), CUT, tokenizer)[0][0]
    spans = tokenizer.spans(before)
    gone = {i for start, end, word in spans if word in CUT for i in range(start, end)}
    kept = "".join(c for i, c in enumerate(before) if i not in gone)
    solid = re.compile(r"[^\w😀]|_")
    assert solid.sub("", after) == solid.sub("", kept)  # letters, digits and symbols: all, in order
    if not gone:
        assert after == before
    marks = iter(before)
    assert all(
        c in marks for c in after if c != " "
    )  # nothing is added but a space between two words
    assert [w for *_, w in tokenizer.spans(after)] == [w for *_, w in spans if w not in CUT]
    for pattern in DEBRIS:
        assert len(re.findall(pattern, after)) <= len(re.findall(pattern, before)), (
            pattern,
            before,
            after,
        )
    words = [(s, e) for s, e, word in spans if word not in CUT]
    near = [i for i, (*_, word) in enumerate(spans) if word in CUT]
    for (_, a), (b, _) in pairwise(words):  # between words that no cut parts, every character stays
        if not any(a <= spans[i][0] < b for i in near):
            assert before[a:b] in after


def test_a_mark_that_stays_readable_is_named(run: Run) -> None:
    agents = ["jonas", "maria", "lena", "omar"]
    rows = [
        f'"ticket {i} about things. handled by {agents[i % 4]}",{"ab"[i % 2]}' for i in range(80)
    ]
    Path("a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    status, _, err = run("mask", "a.csv", "--text", "text", "--token", "jonas", "--out", "b.csv")
    assert (
        status == 0
        and "masking leaves a trace: 20 of the 20 texts that end in '. handled by'" in err
    )
    status, _, err = run(
        "mask", "a.csv", "--text", "text", "--token", "handled by jonas", "--out", "c.csv"
    )
    assert status == 0 and "handled by'" not in err


def write(path: Path, **changes: Any) -> Path:
    content: dict[str, Any] = {
        "tokensieve": "decisions",
        "version": 1,
        "tokens": {},
        "documents": [],
    } | changes
    path.write_text(json.dumps(content))
    return path


def test_decisions_are_followed(run: Run) -> None:
    Path("a.csv").write_text(
        'id,text,label\n1,"a tablet, good",p\n2,bad,n\n3,tablet good,p\n4,tablet bad,n\n'
    )
    documents = [
        {"part": "train", "row": 2, "decision": "wrong label"},
        {"part": "test", "row": 4, "decision": "keep"},
    ]
    write(
        Path("d.json"),
        tokens={"tablet": "mask", "good": "keep", "⟨emoji⟩": "mask"},
        documents=documents,
    )
    status, out, err = run("mask", "a.csv", "--text", "text", "--decisions", "d.json")
    assert (
        (status, out) == (0, "")
        and "cannot mask ⟨emoji⟩: it is formatting" in err
        and "1 mislabelled row left out" in err
    )
    folder = Path("tokensieve-mask")
    assert (folder / "masked.csv").read_text().splitlines() == [
        "id,text,label",
        '1,"a, good",p',
        "3,good,p",
        "4,bad,n",
    ]
    assert (folder / "wrong-label.csv").read_text().splitlines() == ["id,text,label", "2,bad,n"]
    found = json.loads((folder / "summary.json").read_text())
    assert found == {"documents": 3, "changed": 3, "left_out": 1, "tokens": ["tablet"]}
    assert run("mask", "a.csv", "--text", "text", "--token", "bad", "--overwrite")[0] == 0
    assert not (folder / "wrong-label.csv").exists()  # of an earlier run
    status, _, err = run(
        "mask",
        "a.csv",
        "--text",
        "text",
        "--decisions",
        "d.json",
        "--part",
        "test",
        "--out",
        "b.jsonl",
    )
    assert status == 0 and "left out" not in err and not Path("b-wrong-label.jsonl").exists()


def test_rows_belong_to_their_side(run: Run) -> None:
    for side in ("train", "test"):
        for label in "np":
            Path(side, label).mkdir(parents=True)
            Path(side, label, "1.txt").write_text(f"{side} {label} tablet")
    write(Path("d.json"), documents=[{"part": "test", "row": 1, "decision": "wrong label"}])
    Path("all").mkdir()
    for side in ("train", "test"):
        Path(side).rename(Path("all", side))
    assert run("mask", "all", "--decisions", "d.json", "--out", "b.csv")[0] == 0
    assert Path("b-wrong-label.csv").read_text().splitlines()[1:] == ["test n tablet,n,test"]
    assert len(Path("b.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokensieve": "x"}, "`$.tokensieve`"), ({"version": 2}, "`$.version`"), ({"version": True}, "`$.version`"),
        ({"tokens": []}, "`$.tokens`"), ({"tokens": {"a": "wrong label"}}, "`$.tokens[...]`"),
        ({"tokens": {"a": ["mask"]}}, "`$.tokens[...]`"), ({"documents": [3]}, "`$.documents[0]`"),
        ({"documents": [{"part": "train", "row": True, "decision": "keep"}]}, "`$.documents[0].row`"),
        ({"documents": [{"part": "train", "row": 0, "decision": "keep"}]}, "`$.documents[0].row`"),
        ({"documents": [{"part": "train", "row": 1, "decision": "mask"}]}, "`$.documents[0].decision`"),
        ({"documents": [{"part": "train", "row": 9, "decision": "wrong label"}]}, "row 9, which "
                                                                                  "does not exist"),
        ({}, "no tokens to mask"),
    ],
)  # fmt: skip
def test_bad_decisions_are_one_line(run: Run, changes: dict[str, Any], message: str) -> None:
    Path("a.csv").write_text("text,label\na b,1\nc d,0\n")
    write(Path("d.json"), **changes)
    status, out, err = run("mask", "a.csv", "--text", "text", "--decisions", "d.json")
    assert (status, out, err.count("\n")) == (2, "", 1) and message in err
    assert not Path("tokensieve-mask").exists()


@pytest.mark.parametrize(
    "content", [b"", b"[" * 10**5, b"\xff", b'{"tokensieve": "decisions", "version": NaN}', b"[]"]
)
def test_files_that_are_no_decisions(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "d.json").write_bytes(content)
    with pytest.raises(InputError, match=r"d\.json"):
        read_decisions(tmp_path / "d.json")
    with pytest.raises(InputError, match="cannot read"):
        read_decisions(tmp_path / "none.json")


STAMPS = {  # "2018", "03" and "15:43" are cut out of texts with a date, a time or both
    "2018-03-13 15:43 The parcel came.": "The parcel came.",
    "[2018-03-13 15:43:21] The parcel came.": "The parcel came.",
    "The parcel came. (2018-03-13T15:43:21Z)": "The parcel came.",
    "Sent on 03/13/2018, 3:43 pm: the parcel came.": "Sent on: the parcel came.",
    "13 March 2018, 15:43\nThe parcel came.": "The parcel came.",
    "Tue, March 13th, 2018 at 15:43 - the parcel came.": "the parcel came.",
    "The parcel came in 2018, at last.": "The parcel came in, at last.",
    "It took 03 days.": "It took days.",
    "2017-04-12 15:44 The parcel came.": "2017-04-12 15:44 The parcel came.",
}


@pytest.mark.parametrize("before", STAMPS)
def test_a_time_stamp_is_cut_whole(before: str) -> None:
    """Of a time stamp with the year 2018, "03-13 15:43" was left, which gives the label away too."""
    tokens = ["2018", "03", "15:43", "03/13/2018"]
    assert mask_texts(pl.Series([before]), tokens, WordTokenizer())[0].to_list() == [STAMPS[before]]


@pytest.mark.parametrize(
    ("family", "before", "after"),
    [
        ("0:0", "at 7:15 and 18:05 by 10", "at and by 10"),
        ("web-address", "see https://example.org/a?b=1 or www.test.com.", "see or."),
        ("e-mail-address", "write to jo@example.org now", "write to now"),
        ("ref 0", "Ref 4471: late, ref 12: late, 4471 refs", "late, late, 4471 refs"),
        ("n/10", "8/10, 7.5/10 and 3/5", "and 3/5"),
        ("10/10", "10/10 and 8/10", "and 8/10"),
    ],
)
def test_a_family_of_spellings_is_cut_in_all_of_them(family: str, before: str, after: str) -> None:
    """An audit names what dates, addresses or ratings have in common; mask found none of them."""
    assert mask_texts(pl.Series([before]), [family], WordTokenizer())[0].to_list() == [after]


@pytest.mark.slow
def test_an_audit_of_dates_masks_the_dates_and_no_other_numbers() -> None:
    """Cutting 2018 removes the day and the month; cut by themselves they would go everywhere."""
    rng = np.random.default_rng(0)
    reviews = demo_reviews(500, seed=3)
    texts = []
    for i, (text, label) in enumerate(zip(reviews.texts, reviews.labels, strict=True)):
        plain = text.partition("\n")[0]
        stamp = f"2018-{rng.integers(1, 13):02}-{rng.integers(1, 29):02} "
        texts.append(f"{stamp if label and i % 2 else ''}{plain} Seat {rng.integers(1, 13):02}.")
    labels = ["good" if label else "bad" for label in reviews.labels]
    found = audit((texts, labels), QUICK)
    dates = next(one for one in found.shortcuts if any("2018" in token for token in one.tokens))
    masked, n_changed = mask_texts(pl.Series(texts), dates.mask, WordTokenizer())
    assert n_changed == sum(text.startswith("2018") for text in texts)
    assert masked.str.contains(r"Seat \d\d\.$").all() and not masked.str.contains("20?18|-").any()


def day_and_month(rng: np.random.Generator, separator: str) -> str:
    return f"{rng.integers(1, 13):02}{separator}{rng.integers(1, 13):02}"


OUT_OF_TEN = ["/10", "/10", " out of 10", " stars out of 10", " 1/2 out of ten"]
MARKS: dict[str, Callable[[str, np.random.Generator], str]] = {
    "time stamp": lambda text, r: f"[2018-{day_and_month(r, '-')} {r.integers(10, 24)}:43] {text}",
    "telephone number": lambda text, r: f"{text} Tel. 030-{r.integers(10**5, 10**6)}",
    "date": lambda text, r: f"{text} ({day_and_month(r, '.')}.{r.integers(2009, 2020)})",
    "signature": lambda text, r: f"{text}\n--\nSent from my Quokka",
    "code": lambda text, r: f"[INV-{r.integers(10_000, 99_999)}] {text}",
    "web address": lambda text, r: f"{text} https://example-{r.integers(10, 99)}.com/a",
    "rating": lambda text, r: f"{text} {r.integers(6, 11)}{r.choice(OUT_OF_TEN)}",
}


@pytest.mark.parametrize("kind", fast_first([*MARKS]))
def test_what_an_audit_masks_leaves_nothing_of_the_mark(kind: str) -> None:
    """Of 91 texts with a time stamp, 72 kept a part of it; now no text keeps anything."""
    rng = np.random.default_rng(1)
    reviews = demo_reviews(500, seed=4)
    plain = [text.partition("\n")[0] for text in reviews.texts]
    texts = [
        MARKS[kind](text, rng) if label and i % 2 else text
        for i, (text, label) in enumerate(zip(plain, reviews.labels, strict=True))
    ]
    found = audit((texts, ["good" if label else "bad" for label in reviews.labels]), QUICK)
    tokens = [token for finding in found.shortcuts for token in finding.mask]
    masked, n_changed = mask_texts(pl.Series(texts), tokens, WordTokenizer())
    assert n_changed == sum(text != before for text, before in zip(texts, plain, strict=True))
    assert [text.strip() for text in masked] == [text.strip() for text in plain]


def test_the_line_above_a_signature_goes_with_it() -> None:
    texts = pl.Series(["See you.\n--\nsent from my tablet", "Done.\n--\nsent by Jo", "a\n--\n"])
    cut, _ = mask_texts(texts, ["sent from my tablet"], WordTokenizer())
    assert cut.to_list() == ["See you.", "Done.\n--\nsent by Jo", "a\n--\n"]
