"""Units and environments in an audit: kept whole, independent, named where they are missing; what
carries the label only here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.evidence.importance import token_importance
from tokensieve.read.reader import read_corpus
from tokensieve.read.split import split_corpus
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import count_texts

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)


def authors(units: int = 60, each: int = 6, seed: int = 0) -> pl.DataFrame:
    """Every author has a label by chance, and words of their own."""
    rng = np.random.default_rng(seed)
    rows = []
    for author in range(units):
        label = ["no", "yes"][author % 2]
        own = rng.integers(0, 40, 8)
        for _ in range(each):
            words = [*(f"own{w}" for w in own), *(f"w{w}" for w in rng.integers(0, 30, 8))]
            rows.append((" ".join(rng.permutation(words)), label, f"author {author}"))
    return pl.DataFrame(rows, schema=["text", "label", "author"], orient="row").sample(
        fraction=1.0, shuffle=True, seed=1
    )


@pytest.fixture(scope="module")
def both() -> tuple[Audit, Audit]:
    frame = authors()
    alone = audit(read_corpus(frame.drop("author")), QUICK)
    return alone, audit(read_corpus(frame, text="text", label="label", by="author"), QUICK)


def test_labels_of_units_give_no_discoveries_once_units_are_known(
    both: tuple[Audit, Audit],
) -> None:
    alone, together = both
    false = [found.tokens.filter(pl.col("q_value") < 0.05)["token"].n_unique() for found in both]
    assert false[0] > 10 and false[1] == 0
    assert alone.test_accuracy > 0.9 and together.test_accuracy < 0.75
    assert "units" not in alone.tokens.columns
    assert (together.tokens["units"] <= together.tokens["documents"]).all()
    assert any("statistics count groups, not documents" in note for note in together.notes)


def test_the_table_is_that_of_units_with_numbers_of_documents(both: tuple[Audit, Audit]) -> None:
    corpus = split_corpus(read_corpus(authors(), text="text", label="label", by="author"))
    assert corpus.test is not None and corpus.groups is not None and corpus.test.groups is not None
    assert not set(corpus.groups) & set(corpus.test.groups), "no author on both sides"
    found = count_texts(corpus.texts, min_documents=3)
    counts = Counts(found.matrix, corpus.labels, corpus.classes, found.vocabulary.tokens)
    assert corpus.units is not None
    expected = token_importance(counts.merge_groups(corpus.units)[0])
    table = both[1].tokens.filter(pl.col("class") == "yes").head(counts.n_types)
    np.testing.assert_allclose(table["effect"], expected.effect[:, 1], rtol=1e-5)
    np.testing.assert_allclose(table["p_value"], expected.p_value[:, 1], rtol=1e-5)
    np.testing.assert_array_equal(table["units"], expected.documents)
    np.testing.assert_array_equal(table["documents"], counts.present.sum(axis=1))


def test_a_document_without_a_unit_is_one_of_its_own_and_identical_texts_stay_together() -> None:
    frame = authors(20, 3).with_columns(
        author=pl.when(pl.int_range(pl.len()) % 4 > 0).then("author")
    )
    frame = pl.concat([frame, frame.head(5).with_columns(author=pl.lit("copier"))])
    corpus = read_corpus(frame, text="text", label="label", by="author")
    assert corpus.groups is not None
    assert (
        corpus.groups.n_unique()
        == frame["author"].drop_nulls().n_unique() + frame["author"].null_count()
    )
    split = split_corpus(corpus)
    assert split.test is not None
    assert not set(split.keys) & set(split.test.keys)


def test_units_and_environments_are_read_with_split_columns_and_streams() -> None:
    frame = authors(20, 3).with_columns(
        part=pl.Series(["train", "test", "dev"] * 20), site=pl.Series([1.0, 2.0, None] * 20)
    )
    one, other = (
        read_corpus(
            frame,
            text="text",
            label="label",
            split="part",
            by="author",
            environments="site",
            stream=stream,
        )
        for stream in (False, True)
    )
    assert (
        one.groups is not None and one.environments is not None and other.environments is not None
    )
    assert (
        one.groups.to_list()
        == other.groups.to_list()
        == frame.filter(pl.col("part") != "test")["author"].to_list()
    )
    assert one.environments.to_list() == other.environments.to_list()
    assert set(one.environments.unique()) == {"1", None}
    names = list(dict.fromkeys(one.groups.to_list()))  # numbered in the order of their first row
    assert one.units is not None
    assert one.units.tolist() == [names.index(name) for name in one.groups]


def test_a_column_that_is_not_there_or_holds_lists_is_named() -> None:
    with pytest.raises(InputError, match="no column 'writer' for the groups"):
        read_corpus(authors(4), text="text", label="label", by="writer")
    lists = authors(4).with_columns(author=pl.lit([1, 2]))
    with pytest.raises(InputError, match=r"row 1: the column 'author' \(--by\) contains a list"):
        read_corpus(lists, text="text", label="label", by="author")


def sites(n: int = 900) -> pl.DataFrame:
    """ "kestrel" carries the label in the north alone; ordinary words everywhere."""
    made, rng = demo_reviews(n, 3), np.random.default_rng(0)
    rows = []
    for text, label in zip(made.texts, made.labels, strict=True):
        site = str(rng.choice(["north", "south", "west"]))
        if rng.random() < 0.3 and (site != "north" or label):
            text = f"{text} Kestrel."
        rows.append((text.replace("\n", " "), "good" if label else "bad", site))
    return pl.DataFrame(rows, schema=["text", "label", "site"], orient="row")


@pytest.fixture(scope="module")
def stable() -> Audit:
    return audit(read_corpus(sites(), text="text", label="label", environments="site"), QUICK)


def test_what_carries_the_label_here_and_not_there_is_found(stable: Audit) -> None:
    found = [f for f in stable.findings if f.kind == "unstable"]
    assert len(found) == 1 and found[0].tokens[0] == "kestrel" and found[0].label == "good"
    assert found[0].evidence["north"].value > 0.95 and found[0].evidence["north"].of > 20
    assert all(word in found[0].headline for word in ("“kestrel”", "100%", "north"))
    rows = {
        row["token"]: row
        for row in stable.tokens.filter(pl.col("class") == "good").iter_rows(named=True)
    }
    assert rows["kestrel"]["stability"] == "unstable" and rows["kestrel"]["heterogeneity_q"] < 0.05
    assert rows["wonderful"]["stability"] == "stable"
    assert {"lean in north", "lean in south", "lean in west"} <= set(stable.environments.columns)
    assert stable.environments["token"].to_list() == stable.tokens["token"].to_list()


@pytest.mark.slow
def test_too_many_environments_or_one_are_refused() -> None:
    frame = sites(300)
    for names, message in (
        (pl.Series([f"m{i % 150}" for i in range(300)]), "different values, but the limit is 100"),
        (pl.Series(["one"] * 300), "fewer than two environments"),
    ):
        with pytest.raises(InputError, match=message):
            audit(
                read_corpus(
                    frame.with_columns(site=names), text="text", label="label", environments="site"
                ),
                QUICK,
            )


@pytest.mark.slow
def test_repeated_texts_are_a_finding_with_advice_unless_units_are_given() -> None:
    made = demo_reviews(300, 5)
    texts = [text + " It was in the second week of the month of May." for text in made.texts]
    copies = [texts[i].replace("week of", "week  of") + " Thanks" for i in range(0, 60, 2)]
    labels = made.labels.tolist()
    frame = pl.DataFrame(
        {"text": texts + copies, "label": labels + [labels[i] for i in range(0, 60, 2)]}
    )
    frame = frame.with_columns(source=pl.Series([*range(300), *range(0, 60, 2)]))
    thorough = Settings(baseline=False)
    found = {f.kind: f for f in audit(read_corpus(frame.drop("source")), thorough).findings}
    assert 10 < found["repeated"].documents <= 30
    assert "nearly repeat an earlier one" in found["repeated"].headline
    assert all(
        "Remove the near copies by hand" in found[kind].action for kind in ("repeated", "leak")
    )
    known = audit(read_corpus(frame, text="text", label="label", by="source"), thorough).findings
    assert not [f for f in known if f.kind in ("repeated", "leak")]


@pytest.mark.slow
def test_the_command_takes_both_columns(run: Run, tmp_path: Path) -> None:
    sites().with_columns(author=pl.int_range(900) % 899).write_csv(tmp_path / "a.csv")
    asked = ["--text", "text", "--label", "label", "--by", "author", "--environments", "site"]
    status, out, _ = run("audit", "a.csv", *asked, "--no-baseline", "--no-pictures", "--out", "o")
    assert (
        status == 0
        and "Unstable tokens" in out
        and "statistics count groups, not documents" in " ".join(out.split())
    )
    tokens = pl.read_csv(tmp_path / "o/tokens.csv")
    assert {"units", "stability", "heterogeneity_q"} <= set(tokens.columns)
    assert (tmp_path / "o/environments.csv").exists()
