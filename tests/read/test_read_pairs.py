"""Pairs of answers in: which rows are used, what is counted, and that whole prompts stay
together."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokensieve.auditing.demo import demo_pairs
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.model.settings import TrainSettings
from tokensieve.read.pairs import read_pairs
from tokensieve.read.reader import read_corpus
from tokensieve.read.split import draw_units, split_corpus
from tokensieve.task.tasks import train_corpus

PAIRS = ("chosen", "rejected")


def frame(*rows: tuple[object, object, object]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["prompt", "chosen", "rejected"], orient="row", strict=False)


def test_what_cannot_be_used_is_left_out_and_counted() -> None:
    source = frame(
        ("p", "good answer", "bad answer"),
        ("p", "same", "same"),
        ("q", None, "alone"),
        ("q", "one", "  "),
        (None, "without a prompt", "this too"),
        ("r", "bad answer", "good answer"),
        ("s", "good answer", "bad answer"),
    )
    corpus = read_pairs(source, pairs=PAIRS)
    assert corpus.texts.to_list()[:4] == [
        "good answer",
        "bad answer",
        "without a prompt",
        "this too",
    ]
    assert corpus.rows.tolist() == [1, 1, 5, 5, 6, 6, 7, 7]
    assert corpus.labels.tolist() == [1, 0] * 4
    assert corpus.pairs is not None
    assert corpus.pairs.units.tolist() == [0, 1, 2, 3]
    subjects = (
        "only one answer",
        "empty answer",
        "identical",
        "without a value",
        "repeated",
        "reversed",
    )
    lines = corpus.reading.lines()
    assert all(subject in line for subject, line in zip(subjects, lines, strict=True))
    assert [line.split()[:2] for line in lines] == [["1", "pair"]] * 4 + [
        ["1", "repeated"],
        ["3", "pairs"],
    ]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("stream", [False, True])
def test_files_of_every_kind_hold_the_same_pairs(tmp_path: Path, suffix: str, stream: bool) -> None:
    pairs = demo_pairs(20)
    path = tmp_path / f"pairs{suffix}"
    {".csv": pairs.write_csv, ".jsonl": pairs.write_ndjson, ".parquet": pairs.write_parquet}[
        suffix
    ](path)
    corpus = read_pairs(path, pairs=PAIRS, stream=stream)
    assert [corpus.texts[i] for i in range(0, 40, 2)] == pairs["chosen"].to_list()
    assert [corpus.texts[i] for i in range(1, 40, 2)] == pairs["rejected"].to_list()
    assert corpus.pairs is not None
    assert corpus.pairs.group_column == "prompt"
    assert np.array_equal(corpus.pairs.units, np.arange(20) // 4)


def test_messages_are_read_for_their_last_content() -> None:
    both = [
        [
            [{"role": "user", "content": asked}, {"role": "assistant", "content": text}]
            for text in ("hello", "go away")
        ]
        for asked in ("Hi?", "Hello?")
    ]
    rows = pl.DataFrame({"chosen": [both[0][0], both[1][1]], "rejected": [both[0][1], both[1][0]]})
    corpus = read_pairs(rows, pairs=PAIRS)
    assert corpus.texts.to_list() == ["hello", "go away", "go away", "hello"]
    assert corpus.pairs is not None and corpus.pairs.names == ("Hi?", "Hello?")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([("p", "a", "b")], {"pairs": ("chosen", "other")}, "there is no column 'other' for the "
                                                            "pairs; the columns are"),
        ([("p", "a", "b")], {"pairs": ("chosen", "chosen")}, "must name two different columns"),
        ([("p", "a", "b")], {}, "has a single usable pair"),
        ([("p", "a", "b"), ("p", "c", "d")], {}, "all 2 pairs have the same value in column "
                                                 "'prompt'"),
        ([("p", "a", "a"), ("q", None, "d")], {}, "none of the 2 rows is a usable pair (1 "
                                                  "without an answer, 0 with an empty"),
        ([("p", 1, 2), ("q", 3, 4)], {}, "row 1: column 'chosen' contains int values, not text"),
        ([("p", float("nan"), "b"), ("q", None, "d")], {}, "is a usable pair"),
        ([("p", "a", "b"), ("q", "c", "d")], {"by": "topic"}, "there is no column 'topic' for "
                                                              "the groups"),
        ([("p", "a", "b"), ("q", "c", "d")], {"split": "prompt"}, "must contain 'test' for test "
                                                                  "rows"),
        ([], {}, "has no rows"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    rows: list[tuple[object, ...]], options: dict[str, object], message: str
) -> None:
    columns = {
        name: pl.Series([row[i] for row in rows], dtype=pl.Object)
        for i, name in enumerate(("prompt", *PAIRS))
    }
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        read_pairs(pl.DataFrame(columns), **({"pairs": PAIRS} | options))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("Which won?", ("Answer 1", "Answer 2")),
        ("verdict", ("A", "B", "tie")),
        ("decision of judge", ("left", "right")),
        ("Label", (0, 1)),
        ("human preference", ("1", "2", "both bad")),
        ("who was better", ("gpt 4", "claude")),
    ],
)
def test_a_column_that_says_which_answer_won_is_asked_for(
    column: str, values: tuple[object, ...]
) -> None:
    rows = [
        (f"one {i}", f"two {i}", "gpt 4", "claude", f"note {i % 2}", values[i % len(values)])
        for i in range(12)
    ]
    names = ["Answer 1", "Answer 2", "model_1", "model_2", "remark", column]
    source = pl.DataFrame([tuple(map(str, row)) for row in rows], schema=names, orient="row")
    options = {"pairs": ("Answer 1", "Answer 2")}
    with pytest.raises(InputError) as error:
        read_pairs(source, **options)
    command = ["--pairs", "Answer 1,Answer 2", "--winner", column]
    assert shlex.join(command) in str(error.value)
    corpus = read_pairs(source, **options, winner=column)
    assert (corpus.texts[0], corpus.texts[2]) == ("one 0", "two 1")
    assert read_pairs(source.drop(column), **options).texts[2] == "one 1"


@pytest.mark.parametrize(
    ("names", "numbers", "options"),
    [
        (("response_a", "response_b"), ("votes_a", "votes_b"), "--scores votes_a,votes_b"),
        (("answer 1", "answer 2"), ("rank 1", "rank 2"), "--ranks 'rank 1,rank 2'"),
        (("a_text", "b_text"), ("a_reward", "b_reward"), "--scores a_reward,b_reward"),
    ],
)
def test_numbers_that_are_named_like_the_answers_are_asked_for(
    names: tuple[str, str], numbers: tuple[str, str], options: str
) -> None:
    texts = {names[0]: ["good one", "good two"] * 5, names[1]: ["bad one", "bad two"] * 5}
    source = pl.DataFrame(texts | {numbers[0]: [1.5, 2.0] * 5, numbers[1]: [2, 1] * 5})
    with pytest.raises(InputError, match=re.escape(options)):
        read_pairs(source, pairs=names)
    lengths = source.rename(
        {numbers[0]: numbers[0].replace(numbers[0][:4], "size"), numbers[1]: "other"}
    )
    assert len(read_pairs(lengths, pairs=names).texts) == 20


def test_a_file_of_pairs_read_as_labelled_text_is_told_so() -> None:
    with pytest.raises(InputError, match="--pairs chosen,rejected"):
        read_corpus(demo_pairs(8))


def test_a_given_split_tells_what_both_sides_share() -> None:
    pairs = demo_pairs(16).with_columns(split=pl.Series(["train"] * 10 + ["test"] * 6))
    corpus = read_pairs(
        pl.concat([pairs, pairs[:1].with_columns(split=pl.lit("test"))]), pairs=PAIRS, split="split"
    )
    assert corpus.test is not None
    assert corpus.reading.lines() == [
        "1 test pair also found in training",
        "3 test pairs whose group (prompt) also has training pairs",
    ]


def test_a_split_by_chance_keeps_prompts_whole() -> None:
    corpus = split_corpus(read_pairs(demo_pairs(200), pairs=PAIRS), seed=3)
    assert corpus.test is not None
    assert corpus.pairs is not None
    assert corpus.test.pairs is not None
    assert not set(corpus.pairs.units) & set(corpus.test.pairs.units)
    assert len(corpus.test.pairs.units) == 40
    assert corpus.test.labels.tolist() == [1, 0] * 40


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=60), st.floats(0.01, 0.99), st.integers(0, 5)
)
def test_units_are_drawn_whole_and_never_all(units: list[int], share: float, seed: int) -> None:
    of = np.array([*units, 10], dtype=np.int64)
    drawn = draw_units(of, share, seed)
    assert drawn.any()
    assert not drawn.all()
    assert not set(of[drawn]) & set(of[~drawn])


@pytest.fixture(scope="module")
def layouts() -> dict[str, tuple[pl.DataFrame, dict[str, object]]]:
    """The same 800 pairs as people keep them, and the options that read them."""
    pairs, rng = demo_pairs(800), np.random.default_rng(0)
    chosen, rejected = pairs["chosen"].to_list(), pairs["rejected"].to_list()
    first = rng.permutation(
        np.arange(800) % 2 == 0
    )  # the preferred answer comes first in half of the pairs
    sides = [(a, b) if one else (b, a) for a, b, one in zip(chosen, rejected, first, strict=True)]
    scores = [(5.0, 2.0) if one else (1.0, 4.0) for one in first]
    prompt = pairs["prompt"]
    battles = pl.DataFrame(
        {"prompt": prompt, "response_a": [a for a, _ in sides], "response_b": [b for _, b in sides]}
    )
    lists = pl.DataFrame(
        {"prompt": prompt, "answers": list(map(list, sides)), "scores": list(map(list, scores))}
    )
    # one row per answer: the prompts of two pairs must not be one here, so that each row says which
    # pair it is of
    rows = lists.with_row_index("pair").explode("answers", "scores")
    winner = pl.Series("winner", np.where(first, "model_a", "model_b").tolist())
    return {
        "chosen": (pairs.select("prompt", "chosen", "rejected"), {"pairs": ("chosen", "rejected")}),
        "winner": (
            battles.with_columns(winner),
            {"pairs": ("response_a", "response_b"), "winner": "winner"},
        ),
        "lists": (lists, {"pairs": ["answers"], "scores": ["scores"]}),
        "rows": (rows, {"pairs": ["answers"], "scores": ["scores"], "by": "pair"}),
    }


@pytest.mark.slow
def test_layouts_of_the_same_pairs_give_the_same_findings(
    layouts: dict[str, tuple[pl.DataFrame, dict]],
) -> None:
    found = {}
    for name in ("chosen", "winner", "lists"):
        corpus = read_corpus(layouts[name][0], **layouts[name][1])
        one = audit(corpus, Settings(baseline=False, thorough=False))
        findings = [
            (f.kind, f.headline, f.tokens, f.label, f.rows, f.evidence, f.details)
            for f in one.findings
        ]
        found[name] = one.tokens, findings, one.test_accuracy
    tokens, findings, accuracy = found["chosen"]
    assert findings and any(kind == "shortcut" for kind, *_ in findings)
    for name in ("winner", "lists"):
        assert found[name][0].equals(tokens) and found[name][2] == accuracy, name
        assert repr(found[name][1]) == repr(findings), name


def test_answers_in_rows_of_their_own_are_the_same_pairs(
    layouts: dict[str, tuple[pl.DataFrame, dict]],
) -> None:
    lists, rows = (read_corpus(layouts[name][0], **layouts[name][1]) for name in ("lists", "rows"))
    assert rows.texts.to_list() == lists.texts.to_list()


def test_a_column_of_train_and_test_is_used_for_pairs() -> None:
    rows = {"chosen": [f"good {i}" for i in range(20)], "rejected": [f"bad {i}" for i in range(20)]}
    found = read_pairs(
        pl.DataFrame(rows | {"split": ["train"] * 14 + ["test"] * 6}), pairs=("chosen", "rejected")
    )
    assert found.test is not None and (len(found.texts), len(found.test.texts)) == (28, 12)
    assert any("marks training and test rows" in line for line in found.reading.lines())
    notes = train_corpus(found, TrainSettings(min_documents=1)).notes
    assert (
        sum("marks training and test rows" in note for note in notes) == 1
    )  # not once for each side


def test_a_score_that_is_the_text_nan_is_missing(tmp_path: Path) -> None:
    """In a CSV file it was a number, and each of these pairs was won by one side."""
    rows = [
        f"short {i},a longer answer {i},{'NaN' if i % 2 else 1},{0 if i % 2 else 2}"
        for i in range(40)
    ]
    (tmp_path / "scores.csv").write_text("\n".join(["a,b,s,t", *rows]) + "\n")
    corpus = read_pairs(tmp_path / "scores.csv", pairs=("a", "b"), scores=("s", "t"))
    assert len(corpus.labels) == 2 * 20
