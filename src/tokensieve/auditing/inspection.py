"""All checks of an audit, one after the other: what they find, ranked."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from tokensieve.auditing.data_checks import data_checks, drifted, near_copies
from tokensieve.auditing.findings import Finding, FindingKind, ranked
from tokensieve.auditing.label_issues import label_issues
from tokensieve.auditing.shortcuts import accuracy_without, shortcuts
from tokensieve.evidence.shares import Share
from tokensieve.model.settings import TrainSettings
from tokensieve.task.training import CorpusModel


@dataclass(frozen=True)
class Inspection:
    """What the checks found.

    Attributes:
        findings: the gravest first.
        label_issues: a row per document that may carry the wrong label (`label_issues`); empty where that was not looked for.
        honest: test accuracy with all tokens, and of a model trained without those of the shortcuts; None without shortcuts.
    """

    findings: tuple[Finding, ...] = ()
    label_issues: pl.DataFrame = field(default_factory=pl.DataFrame)
    honest: tuple[Share, Share] | None = None

    def of(self, kind: FindingKind) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.kind is kind]


def inspect(
    table: pl.DataFrame,
    learned: CorpusModel,
    settings: TrainSettings,
    thorough: bool = True,
    given: bool = False,
) -> Inspection:
    """Run every check.

    Args:
        table: `Audit.tokens`.
        learned: the model, and what it was trained and tested on.
        settings: with which it was.
        thorough: also what takes its time: near duplicates, and with models of their own label issues and accuracy without
            the shortcuts.
        given: whether the test documents were given, not split off by chance; only then drift is looked for.
    """
    model, parts = learned.model, {"train": learned.train, "test": learned.test}
    counts = {name: part.counts for name, part in parts.items()}
    corpora = {name: part.corpus for name, part in parts.items()}
    train = counts["train"]
    assert model.vocabulary is not None
    splitter, words = model.vocabulary.tokenizer, model.vocabulary.n_words
    found = shortcuts(table, train, corpora["train"], model.vocabulary)
    found += data_checks(corpora, counts, words, near_copies(corpora, splitter) if thorough else None)
    units = corpora["train"].units, corpora["test"].units
    moved = drifted(train, counts["test"], words, units) if given else None
    found += [moved] if moved else []
    if not thorough:
        return Inspection(ranked(found))
    honest = accuracy_without([f for f in found if f.kind is FindingKind.SHORTCUT], learned, settings)
    labels, issues = label_issues(learned.task, learned.train, model, settings)
    return Inspection(ranked([*found, *([labels] if labels else [])]), issues, honest)
