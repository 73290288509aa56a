"""A check: one kind of finding, from its detection to its wording; and everything that checks share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.checks.signs import Sign
from tokensieve.auditing.findings import Excerpt, Finding
from tokensieve.auditing.preferences import PreferenceFacts
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.escape import shown
from tokensieve.evidence.duplicates import near_duplicates
from tokensieve.evidence.environments import Environments
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.progress import beside
from tokensieve.task.tasks import CorpusModel, Labels, Preferences, Task
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.text.vocabulary import CountedCorpus

__all__ = [
    "EXAMPLES",
    "AuditData",
    "Check",
    "Finding",
    "Findings",
    "Labels",
    "Preferences",
    "Share",
]
EXAMPLES = 3  # of a finding
# kinds that describe the data, or habits of its writers: behind those of the next lower level that name what a model can exploit
# or what to correct
DESCRIPTIVE = ("shift", "groups", "repeated", "drift", "imbalance", "empty")
Findings = Iterable[Finding]


@dataclass(frozen=True, eq=False)
class AuditData:
    """Everything a check can read.

    Attributes:
        learned: the trained model with its training and test documents (`train`, `test`).
        importance: of each token type in the training documents.
        tokens: the same as a table, with score, value, attention and quadrant (`Audit.tokens`).
        settings: of the audit.
        test_given: whether the test documents were given rather than drawn at random.
    """

    learned: CorpusModel
    importance: Importance
    tokens: pl.DataFrame
    settings: Settings
    test_given: bool = False

    @property
    def train(self) -> CountedCorpus:
        """The training documents: `train.corpus.texts`, `train.corpus.labels`, `train.counts`."""
        return self.learned.train

    @property
    def test(self) -> CountedCorpus:
        """The test documents."""
        return self.learned.test

    @property
    def task(self) -> Task:
        """Labels or preferences (`tokensieve.task`)."""
        return self.learned.task

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that produced the tokens."""
        assert self.learned.model.vocabulary is not None
        return self.learned.model.vocabulary.tokenizer

    @property
    def figures(self) -> dict[str, Any]:
        """Of all documents, where those at hand are a sample: "documents" by side, "majority_accuracy" and the like
        (`CorpusModel.to_dict`)."""
        return self.learned.summary

    @cached_property
    def class_sizes(self) -> Ints:
        """Training documents of each class, of all documents, shape (K,)."""
        return np.array(list(self.figures["class_documents"].values()), dtype=np.int64)

    def total_of(self, name: str, here: int) -> int:
        """How many of all documents: `here`, unless those at hand are a sample."""
        return self.task.known_totals.get(name, here)

    @property
    def words(self) -> int:
        """Token types that are words or n-grams; the others, behind them, are formatting."""
        return self.train.vocabulary.n_words

    @cached_property
    def edges(self) -> dict[str, tuple[Ints, Ints, list[tuple[Ints, float]]]]:
        """For each field ("" where there are none), in the first part of the training documents: where its words begin and end in
        the stream, shape (n,); its pairs of neighbours (left · words + right), its first words and its last ones, each with the
        fraction of the occurrences that are not the only one."""
        stream, fields, found, most = next(iter(self.train.stream)), self.fields, {}, 2_000_000
        of = np.array([fields.field_of(word) if fields else "" for word in stream.words])
        for name in fields.fields if fields else [""]:
            own = (of == name)[stream.ids]
            before = np.append(0, np.cumsum(own))[stream.starts]
            begin, n = np.append(np.flatnonzero(own), 0)[before[:-1]], np.diff(before)
            ids = stream.ids[own][:most].astype(np.int64)
            firsts, lasts = begin[n > 0], (begin + n)[n > 0] - 1
            ends = (stream.ids[side[side < most]].astype(np.int64) for side in (firsts, lasts))
            counted = [
                np.unique(x, return_counts=True)
                for x in (ids[:-1] * len(stream.words) + ids[1:], *ends)
            ]
            parts = [
                (known, float(often[often > 1].sum() / max(often.sum(), 1)))
                for known, often in counted
            ]
            found[name] = begin, begin + n, parts
        return found

    @property
    def fields(self) -> FieldTokenizer | None:
        """The tokenizer, if texts have several fields."""
        return self.tokenizer if isinstance(self.tokenizer, FieldTokenizer) else None

    @cached_property
    def usual_signs(self) -> set[Sign]:
        """The signs of an artefact that ordinary words of this corpus show too."""
        return Sign.usual(self.train.corpus, self.tokenizer)

    @cached_property
    def near_duplicates(self) -> Ints | None:
        """The first near duplicate of each training document and then of each test document; None unless thorough. In a sample,
        which contains few near duplicates of its documents, the first copy."""
        if not self.settings.thorough:
            return None
        exact = _first_of_key(self.train.corpus.keys, self.test.corpus.keys)
        near = (
            exact
            if self.task.known_totals
            else near_duplicates([self.train.stream, self.test.stream])
        )
        # texts without words are alike only if they are the same
        return np.where(near == np.arange(len(near)), exact, near)

    @cached_property
    def first_copies(self) -> Ints:
        """The first copy of each training document, near duplicates included where they were looked for."""
        near = self.near_duplicates
        return (
            _first_of_key(self.train.corpus.keys)
            if near is None
            else near[: len(self.train.corpus.labels)]
        )

    def without_copies(self, documents: Ints) -> Ints:
        """Some training documents, one of each text: what a writer or a program repeated counts once as evidence."""
        return documents[np.sort(np.unique(self.first_copies[documents], return_index=True)[1])]

    @cached_property
    def label_issues(self) -> tuple[tuple[Ints, Ints, Floats], int, pl.DataFrame]:
        """Training documents that may have the wrong label: those at hand, clearest first (document, the class it looks like,
        margin); the number of clear ones among all; and a table of the first thousand of all: row, label, looks_like, margin,
        against (the tokens that speak most against the label)."""
        from tokensieve.auditing.checks.label_issues import LabelIssues

        return LabelIssues.of(self)

    @cached_property
    def environments(self) -> tuple[Environments, Ints] | None:
        """The effect of every type in every environment, and the environment of each training document (−1 for none); None where
        no environments were read; an `InputError` if under two have documents of two classes (ten pairs), or over a hundred."""
        corpus = self.train.corpus
        if corpus.environments is None:
            return None
        known = corpus.environments.drop_nulls().unique().sort().to_list()
        if len(known) > 100:
            raise InputError(
                f"{corpus.name}: the --environments column has {len(known):,} different values, but the limit is 100; "
                "choose another column, or merge values (months into years, say)"
            )
        places = list(range(len(known)))
        of = corpus.environments.replace_strict(
            known, places, default=-1, return_dtype=pl.Int64
        ).to_numpy()
        counts, features = self.train.counts, self.train.n_formatting
        if self.task.classifies:
            sums = [self.task.total(self.train, _sums_within, name) for name in known]
            return Environments.of_sums(sums, tuple(known), self.importance), of
        units = self.task.units(corpus)
        return Environments.compare_pairs(
            counts, of, tuple(known), self.importance, features, units
        ), of

    @cached_property
    def preferences(self) -> PreferenceFacts | None:
        """What wins and loses, of preference pairs; None for labels."""
        return PreferenceFacts.of(self.learned) if isinstance(self.task, Preferences) else None

    @staticmethod
    def predicted(
        labels: Ints, documents: Sequence[Ints], predicts: Sequence[int]
    ) -> tuple[Ints, Ints, Ints]:
        """Documents that contain one of several tokens; those of the class that the last of these predicts; and how many there
        are of both, and of the first in any of the classes, shape (3,)."""
        answer = np.full(len(labels), -1)
        for held, label in zip(documents, predicts, strict=True):
            answer[held] = label
        every = np.flatnonzero(answer >= 0)
        right = every[answer[every] == labels[every]]
        return (
            every,
            right,
            np.array([len(every), len(right), np.isin(labels[every], predicts).sum()]),
        )

    @classmethod
    def predicted_in(
        cls, part: CountedCorpus, types: Sequence[int], predicts: Sequence[int]
    ) -> Ints:
        """The numbers of `predicted`, of some documents and token types."""
        return cls.predicted(part.counts.labels, part.counts.holders(np.array(types)), predicts)[2]

    def leans_beyond(self, documents: Ints, label: int, covered: NDArray[np.bool_]) -> bool:
        """Whether, among the training documents that are not covered, these lean to a class at least half as far as among all; if
        not, what covers them explains it: "phone" and a missing full stop predict a class only through "sent from my phone"."""
        right, own = self.train.counts.labels == label, documents[~covered[documents]]
        lean = right[documents].mean() - right.mean()
        return not len(own) or bool(right[own].mean() - right[~covered].mean() >= lean / 2)

    def findings(self, checks: Iterable[Check]) -> tuple[Finding, ...]:
        """The findings of every check that applies: by level, what describes the data one level later, by severity."""
        known = [check for check in checks if check.name not in self.task.left_out]
        apply = [
            c
            for c in known
            if isinstance(self.task, c.tasks) and (self.settings.thorough or not c.thorough)
        ]
        turns = iter(enumerate(apply))  # two threads take the next one from it

        def checked() -> dict[int, list[Finding]]:
            of = {}
            for place, check in turns:
                try:
                    of[place] = list(check.find(self))
                except Exception as error:
                    error.add_note(f"in the check {check.name!r} of {type(check).__module__}")
                    raise
            return of

        others = beside(checked)
        of = checked() | others.result()
        found = [one for place in range(len(apply)) for one in of[place]]
        shortcuts = [finding for finding in found if finding.kind == "shortcut"]
        reported = {token for finding in shortcuts for token in finding.tokens}
        counts = self.train.counts

        def explained(finding: Finding) -> bool:
            """Whether a finding adds nothing to the shortcuts: it is about the same token, or about documents whose class they
            explain."""
            types = np.flatnonzero(counts.tokens == finding.tokens[0])
            if finding.tokens[0] in reported or not len(types):
                return finding.tokens[0] in reported
            rows = [one.rows.filter(pl.col("part") == "train")["row"] for one in shortcuts]
            covered = np.isin(
                self.train.corpus.rows, pl.concat([finding.rows["row"].clear(), *rows])
            )
            return not self.leans_beyond(
                counts.holders(types)[0], counts.classes.index(finding.label), covered
            )

        found = [f for f in found if f.kind not in ("association", "shift") or not explained(f)]

        def place(finding: Finding) -> tuple[int, bool, float]:
            level, describes = (
                ("high", "medium", "low").index(finding.level),
                finding.kind in DESCRIPTIVE,
            )
            return level + describes, describes, -finding.severity

        return tuple(sorted(found, key=place))

    def start_of(
        self, document: int, part: str = "train", looks_like: str = "", most: int = 140
    ) -> Excerpt:
        """The first `most` characters of a document, as an example of a finding."""
        corpus = (self.train if part == "train" else self.test).corpus
        text = str(corpus.texts[document])
        cut = text if len(text) <= most else text[:most] + "…"
        return Excerpt(
            int(corpus.rows[document]),
            corpus.classes[corpus.labels[document]],
            "",
            "",
            cut,
            looks_like,
        )


def _first_of_key(*keys: pl.Series) -> Ints:
    """For each document, the first one with the same key."""
    frame = pl.DataFrame({"key": pl.concat(keys)}).with_row_index("i")
    return frame.select(pl.col("i").min().over("key")).to_series().to_numpy().astype(np.int64)


def _sums_within(part: CountedCorpus, name: str) -> Sums:
    """The sums from which importance among the documents of one environment is computed."""
    corpus = part.corpus
    assert corpus.environments is not None
    inside = (corpus.environments == name).fill_null(False).to_numpy()
    units = None if corpus.units is None else corpus.units[inside]
    counts = part.counts.rows(inside)
    return Sums((*TokenSums.of_counts(counts, part.n_formatting, units), counts.present))


class Check(ABC):
    """One kind of finding. A subclass has a name, says what it looks for and what to do about it, and implements `find`.

    Attributes:
        name: the kind of its findings in findings.json, and the name for `--fail-on NAME=…`.
        title: its heading.
        about: what it looks for, with its thresholds, in one or two sentences; used as its glossary entry.
        action: what to do about its findings.
        tasks: the tasks that it applies to.
        thorough: whether it is slow because it trains its own models; `Settings.thorough=False` turns it off.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    action: ClassVar[str]
    tasks: ClassVar[tuple[type[Task], ...]] = (Labels, Preferences)
    thorough: ClassVar[bool] = False

    @property
    def entry(self) -> str:
        """Its glossary entry, in Markdown."""
        tasks = "" if len(self.tasks) > 1 else f" ({self.tasks[0].__name__.lower()} only)"
        return f"**{self.title}**{tasks}, `{self.name}`\n: {self.about} {self.action}\n"

    @staticmethod
    def are(label: str, what: str = "") -> str:
        """As in "96% of those are positive" and, with `what`, "69.9% of billing documents"; of other names "labelled 5"."""
        name = shown(label, 40)
        return (
            f"{name} {what}".strip()
            if re.fullmatch(r"[^\W\d_]{2,}", label)
            else f"{what} labelled {name}".strip()
        )

    @staticmethod
    def _remove_copies(data: AuditData, exact: int, near: int) -> str:
        """What to do about copies: the reader drops exact ones only; groups, where there are some, have not kept them together."""
        by_hand = "by hand (findings.csv lists their rows)"
        how = f"Remove the {'near ' * (near > 0)}copies {by_hand}"
        if exact and not data.task.known_totals:  # on a cluster none are dropped
            how = (
                "Remove the exact copies with --duplicates=drop"
                + f" and the near copies {by_hand}" * (near > 0)
            )
        keep = ", or keep them together with --by COLUMN if a column tells which documents belong together"
        return f"{how}{keep * (data.train.corpus.groups is None)}."

    @abstractmethod
    def find(self, data: AuditData) -> Findings:
        """Its findings, if any."""

    def finding(
        self,
        data: AuditData,
        severity: float,
        headline: str,
        documents: Ints | NDArray[np.bool_] | Sequence[int] = (),
        total: int | None = None,
        **more: Any,
    ) -> Finding:
        """A finding of this check about some training documents.

        Args:
            data: what was checked.
            severity: roughly the fraction of documents whose prediction it puts in doubt.
            headline: one sentence with its number, without a full stop.
            documents: places of the training documents concerned, or a mask with a truth value for each of them.
            total: the number of documents concerned, if there are others.
            more: other fields of `Finding`; `rows`, `examples`, `title` and `action` have defaults.
        """
        held = np.asarray(documents)
        held = np.flatnonzero(held) if held.dtype == np.bool_ else held.astype(np.int64)
        more.setdefault("rows", data.train.corpus.rows_of(held))
        first, tokens = held[:EXAMPLES].tolist(), more.get("tokens", ())[:1]
        if "examples" not in more:
            some = (
                Excerpt.of(data.train.corpus, i, tokens, data.tokenizer)
                if tokens
                else data.start_of(i)
                for i in first
            )
            more["examples"] = tuple(some)
        more.setdefault("title", self.title)
        more.setdefault("action", self.action)
        more.setdefault("documents", len(held) if total is None else total)
        return Finding(self.name, float(severity), headline=headline, **more)
