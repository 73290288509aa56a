"""Did a repair help? Two saved models on test documents where the first audit's shortcuts mislead.

`tokensieve compare BEFORE AFTER --on SOURCE` reads labelled documents, forms for each shortcut that
the first audit found the groups of `tokensieve.auditing.broken_link`, and compares what the two
models predict correctly there. The documents are the same for both models, so the test is paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.auditing.broken_link import (
    ClassNames,
    GroupAccuracy,
    GroupName,
    Judge,
    LinkGroup,
    Mark,
    Texts,
    documents_containing,
    group_accuracies,
    judge_of_model,
    link_groups,
)
from tokensieve.auditing.phrases import quoted
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.files import parsed, read_regular
from tokensieve.model.attention import Model, decide
from tokensieve.model.storage import read_model
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.rows import read_rows
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import open_source
from tokensieve.report.blocks import Block, Column, Section, Table, Text, ValueAndInterval
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.wording import percent

MAX_MARKS = 5  # a page shows the most serious shortcuts
MISLED_GROUPS: tuple[GroupName, ...] = ("contradicts", "inserted")
MAX_NAMED_TOKENS = 2  # in each row of a table, where the headline names more
# of a mark with one token
DESCRIPTIONS: dict[GroupName, str] = {
    "all": "all documents",
    "contradicts": "documents where it contradicts the label",
    "without": "documents without it",
    "removed": "documents of its class, with it removed",
    "inserted": "documents of other classes, with it inserted",
}
# of a mark with several
DESCRIPTIONS_OF_SEVERAL: dict[GroupName, str] = {
    "all": "all documents",
    "contradicts": "documents where they contradict the label",
    "without": "documents without them",
    "removed": "documents of their class, with them removed",
    "inserted": "documents of other classes, with one of them inserted",
}


def group_description(mark: Mark, group: GroupName) -> str:
    """Words for the documents of a group: with or without the mark, with or without its class."""
    descriptions = DESCRIPTIONS_OF_SEVERAL if len(mark.tokens) > 1 else DESCRIPTIONS
    return descriptions[group]


@dataclass(frozen=True)
class MarkEffect:
    """Two models on the documents where one mark does not tell the class.

    Attributes:
        mark: the mark.
        groups: the groups, worst for the first model first.
    """

    mark: Mark
    groups: tuple[GroupAccuracy, ...]

    @property
    def where_misled(self) -> GroupAccuracy | None:
        """The worst group in which the mark is present and points to another class.

        Without such a group, the one in which it is missing from documents of its class; None
        without both. Which group it is does not depend on the second model.
        """
        for names in (MISLED_GROUPS, ("removed",)):
            groups = [group for group in self.groups if group.group in names]
            if groups:
                return groups[0]
        return None


@dataclass(frozen=True)
class RepairEffect:
    """Two models on one set of labelled documents, and where marks mislead.

    Attributes:
        source: what the documents are called.
        overall: both models on all documents.
        marks: both models where each mark misleads.
        names: what the two models are called, as columns of a table.
        note: what a reader should know about their predictions; or "".
    """

    source: str
    overall: GroupAccuracy
    marks: tuple[MarkEffect, ...]
    names: tuple[str, str] = ("Before", "After")
    note: str = ""

    def to_frame(self) -> pl.DataFrame:
        """A row per mark and group.

        Columns: tokens, class, group, documents, before, after, change_low, change_high, p_value.
        """
        rows = [_row("", "", self.overall)]
        for effect in self.marks:
            tokens = " | ".join(effect.mark.tokens)
            rows += [_row(tokens, effect.mark.label, result) for result in effect.groups]
        return pl.DataFrame(rows)

    @property
    def headline(self) -> str:
        """The worst group of the most serious mark, then all documents."""
        with_groups = [effect for effect in self.marks if effect.groups]
        if not with_groups:
            return (
                "No shortcut misleads in enough of these documents to judge by them. Accuracy "
                f"{_change(self.overall)}."
            )
        effect = with_groups[0]
        worst = effect.where_misled or effect.groups[0]
        return (
            f"{quoted(effect.mark.tokens)}: on {group_description(effect.mark, worst.group)}, "
            "accuracy "
            f"{_change(worst)}; overall it {_change(self.overall)}."
        )

    def table(self) -> Table:
        """All documents, then each group of each mark."""
        before, after = self.names
        columns = (
            Column("Where a shortcut misleads"),
            Column("Documents", "count"),
            Column(before, "percent"),
            Column(after, "percent"),
            Column("Change in points", "interval", digits=1),
            Column("p", "chance"),
        )
        rows: list[tuple[object, ...]] = [_cells("All documents", self.overall)]
        for effect in self.marks:
            name = quoted(effect.mark.tokens, most=MAX_NAMED_TOKENS)
            rows += [
                _cells(f"{name}: {group_description(effect.mark, result.group)}", result)
                for result in effect.groups
            ]
        notes = [
            f"All documents are those of {for_display(self.source, 60, path=True)} as they are, "
            "marks included.",
            "p: a test of the documents that only one of the two models gets right.",
        ]
        if self.note:
            notes.append(self.note)
        return Table("", columns, tuple(rows), note=" ".join(notes))

    def blocks(self) -> list[Block]:
        """The section of a report on a repair."""
        title = "Did it help?"
        if self.names != ("Before", "After"):
            title = "Did it help the other models?"
        return [Section(title, (Text(self.headline), self.table()))]


def _cells(name: str, result: GroupAccuracy) -> tuple[object, ...]:
    difference = result.difference
    points = [100 * number for number in (difference.change, difference.low, difference.high)]
    change = ValueAndInterval(*points)
    return (name, result.n_documents, result.before, result.after, change, difference.p_value)


def _change(result: GroupAccuracy) -> str:
    """Rises from 31.0% to 78.0%."""
    if result.after == result.before:
        return f"stays at {percent(result.before)}"
    accuracies = f"from {percent(result.before)} to {percent(result.after)}"
    if not result.difference.is_significant:
        return f"goes {accuracies}, a difference within chance"
    verb = "rises" if result.after > result.before else "falls"
    return f"{verb} {accuracies}"


def _row(tokens: str, label: str, result: GroupAccuracy) -> dict[str, object]:
    """A row of the table of accuracies where shortcuts point to another class."""
    return {
        "tokens": tokens,
        "class": label,
        "group": result.group,
        "documents": result.n_documents,
        "before": result.before,
        "after": result.after,
        "change_low": result.difference.low,
        "change_high": result.difference.high,
        "p_value": result.difference.p_value,
    }


@dataclass(frozen=True, eq=False)
class LinkDocuments:
    """Labelled test documents by which models are judged.

    Attributes:
        name: what they are called.
        texts: the documents.
        labels: class name of each, shape (n,).
        units: which documents belong together, shape (n,); None if all are independent.
        tokenizer: splits the texts into the tokens of marks.
        containing: which documents contain one of some tokens, shape (n,).
        max_copies: changed copies made of a group; None for all.
    """

    name: str
    texts: Texts
    labels: ClassNames
    units: Ints | None
    tokenizer: Tokenizer
    containing: Callable[[Sequence[str]], NDArray[np.bool_]]
    max_copies: int | None = None

    def groups(self, mark: Mark) -> list[LinkGroup]:
        """The groups in which a mark does not tell the class."""
        contains = self.containing(mark.tokens)
        return link_groups(self.texts, self.labels, contains, mark, self.tokenizer, self.max_copies)

    @property
    def everything(self) -> LinkGroup:
        """All documents as one group."""
        return LinkGroup("all", self.texts, self.labels, np.arange(len(self.labels)))


def link_effect(
    documents: LinkDocuments,
    marks: Sequence[Mark],
    before: Judge,
    after: Judge,
    names: tuple[str, str] = ("Before", "After"),
) -> RepairEffect:
    """Judge two models on all documents and where the first of some marks mislead."""
    (overall,) = group_accuracies([documents.everything], before, after, documents.units)
    effects = []
    for mark in marks[:MAX_MARKS]:
        results = group_accuracies(documents.groups(mark), before, after, documents.units)
        effects.append(MarkEffect(mark, tuple(results)))
    return RepairEffect(documents.name, overall, tuple(effects), names)


def repair_effect(before: Path, after: Path, source: str) -> RepairEffect:
    """Judge the models of two audits where the shortcuts of the first one mislead.

    Args:
        before: folder of the audit that found shortcuts.
        after: folder of the audit of the repaired data.
        source: labelled documents that were not used to train either, such as the test file of the
            first audit. They are read with the settings of that audit.

    Raises:
        InputError: a folder is no audit of labelled documents, or the documents cannot be read.
    """
    return RepairJudgement.of(before, after, source).of_audits


@dataclass(frozen=True, eq=False)
class RepairJudgement:
    """The documents and marks by which a repair is judged, and what it did for the audits' models.

    Attributes:
        corpus: the documents.
        documents: the same, to form groups of.
        marks: the shortcuts of the first audit.
        of_audits: the models of the two audits.
    """

    corpus: Corpus
    documents: LinkDocuments
    marks: tuple[Mark, ...]
    of_audits: RepairEffect

    @classmethod
    def of(cls, before: Path, after: Path, source: str) -> RepairJudgement:
        """As `repair_effect`."""
        first = read_model(before)
        second = read_model(after)
        if first.pairs or second.pairs:
            raise InputError("--on needs audits of labelled documents, not of preference pairs")
        marks = _marks_of(before)
        reading = _reading_of(before)
        corpus = read_corpus(source, reading)
        assert first.vocabulary is not None
        tokenizer = first.vocabulary.tokenizer
        texts = _texts_for(tokenizer, source, reading, corpus)
        documents = LinkDocuments(
            name=corpus.name,
            texts=texts,
            labels=np.array(corpus.classes)[corpus.labels],
            units=corpus.units,
            tokenizer=tokenizer,
            containing=lambda tokens: documents_containing(texts, tokens, tokenizer),
        )
        predictors = (class_predictor(first), class_predictor(second))
        judge, judge_after = (judge_of_model(predict, predict(texts)) for predict in predictors)
        effect = link_effect(documents, marks, judge, judge_after)
        return cls(corpus, documents, tuple(marks), effect)

    def of_others(self, before: NamedJudge, after: NamedJudge) -> RepairEffect:
        """The same for two other models."""
        judges = (before.judge, after.judge)
        names = (before.name, after.name)
        effect = link_effect(self.documents, self.marks, *judges, names=names)
        return replace(effect, note=" ".join(filter(None, [before.note, after.note])))


class NamedJudge(NamedTuple):
    """Another model: what it is called, how it classifies groups of documents, and what a reader
    should know about its predictions, or "".
    """

    name: str
    judge: Judge
    note: str = ""


def class_predictor(model: Model) -> Callable[[pl.Series], ClassNames]:
    """The class name that a model predicts for each text."""
    names = np.array([str(name) for name in model.classes])

    def predict(texts: pl.Series) -> NDArray[np.str_]:
        matrix, _ = model.count(texts)
        predicted: NDArray[np.str_] = names[decide(model.logits(matrix))]
        return predicted

    return predict


def _marks_of(folder: Path) -> list[Mark]:
    """The shortcuts that an audit found, most serious first; a mark for each class they predict."""
    try:
        findings = parsed(read_regular(folder / "findings.json"))["findings"]
        shortcuts = [finding for finding in findings if finding["kind"] == "shortcut"]
        marks = []
        for finding in shortcuts:
            tokens = tuple(map(str, finding["tokens"]))
            if not tokens:
                continue
            if finding["class"]:
                marks.append(Mark(tokens, str(finding["class"])))
            else:
                marks += marks_of_several_classes(tokens, _token_table(folder))
    except (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError) as problem:
        raise InputError(
            f"{str(folder)!r} is not an audit folder: its findings.json and tokens.csv cannot be "
            f"read ({type(problem).__name__}); create one with `tokensieve audit`"
        ) from None
    if not marks:
        raise InputError(
            f"{str(folder)!r}: this audit found no shortcut of a class, so there is no group to "
            "judge by; leave out --on"
        )
    return marks


def marks_of_several_classes(tokens: Sequence[str], table: pl.DataFrame) -> list[Mark]:
    """Make each token a mark of the class in which it is most over-represented, as 10/10 and 1/10
    are marks of two classes.

    The class whose tokens are in the most documents comes first; `table` has the columns token,
    class, documents and effect.
    """
    own = table.filter(pl.col("token").is_in(list(tokens)))
    strongest = own.sort("effect", descending=True).unique("token", keep="first")
    by_class = strongest.group_by("class").agg("token", pl.col("documents").sum())
    by_class = by_class.sort("documents", "class", descending=[True, False])
    return [
        Mark(tuple(token for token in tokens if token in members), label)
        for label, members in by_class.select("class", "token").iter_rows()
    ]


def _token_table(folder: Path) -> pl.DataFrame:
    """The tokens of an audit as they were before they were written."""
    table = pl.read_csv(
        read_regular(folder / "tokens.csv"),
        columns=["token", "class", "documents", "effect"],
        schema_overrides={"token": pl.String, "class": pl.String, "effect": pl.Float64},
    )
    # an apostrophe keeps a cell from being a formula in a spreadsheet
    return table.with_columns(pl.col("token", "class").str.strip_prefix("'"))


def _texts_for(
    tokenizer: Tokenizer, source: str, reading: ReadSettings, corpus: Corpus
) -> pl.Series:
    """The texts of a corpus, with the values of other columns if the first audit read them, too."""
    if not isinstance(tokenizer, FieldTokenizer) or not tokenizer.columns:
        return corpus.texts[:]
    columns = dict(tokenizer.columns)
    fields = [name for name in tokenizer.fields if name not in columns]
    table = open_source(source, reading, labelled=False).held_out
    rows = read_rows(table, fields, columns=columns)
    return rows["text"].gather(corpus.rows - 1)


def _reading_of(folder: Path) -> ReadSettings:
    """The settings with which the first audit read its documents, without its split into parts."""
    try:
        settings = parsed(read_regular(folder / "summary.json"))["settings"]
        names = (
            "text",
            "label",
            "having",
            "label_separator",
            "group",
            "drop",
            "role",
            "encoding",
            "separator",
        )
        options = {name: settings[name] for name in names if settings.get(name)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
        raise InputError(
            f"{str(folder)!r} is not an audit folder: its summary.json cannot be read "
            f"({type(problem).__name__}); create one with `tokensieve audit`"
        ) from None
    return ReadSettings().with_options(options)
