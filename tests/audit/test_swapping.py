"""Counterfactual copies: each mark becomes its counterpart, everything else stays."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calls import Run
from tokensieve import InputError, Settings, audit, demo_reviews
from tokensieve.auditing.swapping import Swap, swap_texts
from tokensieve.text.tokenizers import WordTokenizer

TOKENIZER = WordTokenizer()
PHONE = Swap(("phone", "tablet"))


def swapped(texts: list[str], *swaps: Swap) -> list[str | None]:
    (copies,) = swap_texts(pl.Series(texts), swaps, TOKENIZER)
    return copies.to_list()


def test_each_mark_becomes_its_counterpart() -> None:
    texts = ["Sent from my phone.", "by tablet, or phone!", "neither of them", "MY PHONE"]
    assert swapped(texts, PHONE) == [
        "Sent from my tablet.",
        "by phone, or tablet!",
        None,
        "MY TABLET",
    ]


def test_phrases_and_spellings() -> None:
    texts = ["Lives in New York now", "Lives in Rome now", "rome", "Rome"]
    assert swapped(texts, Swap(("new york", "rome"))) == [
        "Lives in Rome now",
        "Lives in New York now",
        "New York",
        "New York",
    ]


@given(st.lists(st.text(alphabet="ab .,!\n", max_size=20), max_size=6))
def test_swapping_twice_gives_the_text_again(texts: list[str]) -> None:
    every = ["a", "b", *texts]
    once = swapped(every, Swap(("a", "b")))
    changed = [(text, copy) for text, copy in zip(every, once, strict=True) if copy is not None]
    assert swapped([copy for _, copy in changed], Swap(("a", "b"))) == [text for text, _ in changed]


@pytest.mark.parametrize(
    "written",
    [
        "phone",
        "=phone",
        "phone=",
        "phone=phone",
        "⟨emoji⟩=phone",
        "a=b=a",
        "n/10=phone",
        "0:0=noon",
    ],
)
def test_what_is_no_pair_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="--swap"):
        Swap.parse(written)


def test_a_token_that_never_occurs_is_refused() -> None:
    with pytest.raises(InputError, match="'tablet' occurs in no text"):
        swapped(["my phone"], PHONE)


def test_of_three_names_each_text_gets_a_copy_with_each_other_name() -> None:
    texts = pl.Series(["by Ann", "by BOB", "by Cy and Ann", "by hand", "from hand"])
    copies = swap_texts(texts, [Swap(("ann", "bob", "cy")), Swap(("by", "from"))], TOKENIZER)
    assert [copy.to_list() for copy in copies] == [
        ["from BOB", "from CY", "from Ann and BOB", "from hand", "by hand"],
        ["by Cy", "by ANN", "by BOB and Cy", None, None],
    ]


def test_a_token_has_no_two_counterparts() -> None:
    with pytest.raises(InputError, match="'phone' is in two swaps"):
        swapped(["phone tablet web"], PHONE, Swap(("web", "phone")))


def test_an_audit_s_token_that_is_swapped_is_not_removed_first(run: Run, tmp_path: Path) -> None:
    reviews = demo_reviews(1500, seed=1)
    labels = [("negative", "positive")[label] for label in reviews.labels]
    frame = pl.DataFrame({"text": reviews.texts, "label": labels})
    frame.write_csv(tmp_path / "r.csv")
    settings = Settings(baseline=False, thorough=False)
    found = audit(frame, settings, text="text", label="label")
    found.save(tmp_path / "a", pictures=False)
    options = ("--audit", "a", "--swap", "Tablet=Laptop", "--out", "s.csv", "--text", "text")
    status, _, message = run("mask", "r.csv", *options)
    assert status == 0, message
    has_tablet = frame["text"].str.contains("tablet")
    has_laptop = frame["text"].str.contains("laptop")
    written = pl.read_csv(tmp_path / "s.csv")
    assert written.height == frame.height + (has_tablet | has_laptop).sum()
    by_label = written.group_by("label").agg(
        tablet=pl.col("text").str.contains("tablet").sum(),
        laptop=pl.col("text").str.contains("laptop").sum(),
    )
    assert (by_label["tablet"] == by_label["laptop"]).all()
    status, _, message = run("mask", "r.csv", *options, "--token", "tablet", "--overwrite")
    assert status == 2 and "both removed and swapped" in message


def test_the_command_appends_copies_with_all_their_fields(run: Run, tmp_path: Path) -> None:
    rows = [
        {"text": "by phone", "label": "a", "id": 1},
        {"text": "by tablet", "label": "b", "id": 2},
        {"text": "by hand", "label": "b", "id": 3},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, _, message = run("mask", "s.jsonl", "--swap", "phone=tablet", "--out", "o.jsonl")
    assert status == 0 and "2 counterfactual copies" in message
    written = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    assert written[:3] == rows
    assert written[3:] == [
        {"text": "by tablet", "label": "a", "id": 1},
        {"text": "by phone", "label": "b", "id": 2},
    ]
