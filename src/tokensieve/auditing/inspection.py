"""All checks of an audit, one after the other: what they find, ranked."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from tokensieve.auditing.data_checks import data_checks, drifted, near_copies
from tokensieve.auditing.findings import Finding, FindingKind, Share, ranked
from tokensieve.auditing.label_issues import label_issues
from tokensieve.auditing.shortcuts import accuracy_without, shortcuts
from tokensieve.model.fit import FitSettings
from tokensieve.model.trained import Model
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts


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
    counts: dict[str, Counts],
    corpora: dict[str, Corpus],
    model: Model,
    settings: FitSettings,
    thorough: bool = True,
    given: bool = False,
) -> Inspection:
    """Run every check.

    Args:
        table: `Audit.tokens`.
        counts: "train" and "test" → counts of the same token types.
        corpora: the documents of each part, in the same order.
        model: trained on the training documents.
        settings: with which it was.
        thorough: also what takes its time: near duplicates, and with models of their own label issues and accuracy without
            the shortcuts.
        given: whether the test documents were given, not split off by chance; only then drift is looked for.
    """
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
    honest = accuracy_without([f for f in found if f.kind is FindingKind.SHORTCUT], counts, model, settings, units[1])
    labels, issues = label_issues(train, corpora["train"], model, settings)
    return Inspection(ranked([*found, *([labels] if labels else [])]), issues, honest)
