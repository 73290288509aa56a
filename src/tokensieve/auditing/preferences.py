"""Results for preference pairs only: which column names the preferred answer, and what wins at
equal length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.auditing.context import AuditContext, computed_once
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.evidence.pairs import win_rates
from tokensieve.model.attention import loss_and_slope
from tokensieve.read.corpus import Corpus, Pairing
from tokensieve.task.agreement import DIGITS
from tokensieve.task.tasks import CorpusModel
from tokensieve.text.vocabulary import CountedCorpus

ALIKE = 1.25  # two lengths within this factor are alike


@dataclass(frozen=True, eq=False)
class _PairsOfPart:
    """The pairs of the training or the test documents.

    Attributes:
        pairing: which answers belong together, and who won.
        length_ratio: log of the preferred answer's length over the other's, shape (n,).
        weight: of each pair, shape (n,); a tie is there in both orders, each of half the weight.
    """

    pairing: Pairing
    length_ratio: Floats
    weight: Floats

    @classmethod
    def of(cls, part: CountedCorpus) -> _PairsOfPart:
        pairing = part.corpus.pairs
        assert pairing is not None
        weight = np.where(part.corpus.tied[::2], 0.5, 1.0)
        return cls(pairing, log_length_ratios(part.corpus), weight)

    @property
    def units(self) -> Ints:
        """The prompt of each pair, shape (n,)."""
        return self.pairing.units

    def share_of(self, is_counted: Bools | Floats, among: Bools) -> Share:
        """The fraction of some pairs that are counted, with its interval over prompts."""
        return Share.over(*self.pairing.without_mirrored_ties(is_counted, among))

    def longer_wins(self, among: Bools | bool = True) -> Share:
        """The fraction of pairs that the longer answer wins, among those that differ in length."""
        differs = (self.length_ratio != 0) & among
        return self.share_of(self.length_ratio > 0, differs)


@dataclass(frozen=True, repr=False)
class PreferenceFacts:
    """Results that only an audit of pairs has."""

    columns: tuple[str, str]  # where the answers were read, the preferred one first
    by: str | None  # the column of the groups (prompts); None where each pair is one
    pairs: dict[str, int]  # {"train": …, "test": …}
    units: dict[str, int]
    accuracy: Share  # test pairs whose preferred answer the model names
    log_loss: float  # mean of −log P(preferred) over them
    # pairs in which the longer answer (in characters) is preferred, of those of unequal length:
    # "train" and "test"
    longer: dict[str, Share]
    # test pairs of lengths within a factor of 1.25: how many the model names, and where the longer
    # one wins
    like_length: tuple[Share, Share]
    # a row per type: how often the side that alone contains it wins, as it is and at equal length
    # (`tokensieve.evidence.pairs`)
    wins: pl.DataFrame

    @classmethod
    def of(cls, learned: CorpusModel) -> PreferenceFacts:
        """Compute the facts from a model trained on a corpus of pairs."""
        train = _PairsOfPart.of(learned.train)
        test = _PairsOfPart.of(learned.test)
        parts = {"train": train, "test": test}
        wins = win_rates(learned.train.counts, train.units, train.length_ratio, train.weight)
        m = learned.f[::2, 0]
        losses = loss_and_slope(m[:, None], np.ones(len(m), dtype=np.int64))[0]
        is_right = learned.task.correct(learned.f, learned.test.counts)
        is_alike = np.abs(test.length_ratio) <= np.log(ALIKE)
        return cls(
            columns=train.pairing.columns,
            by=train.pairing.group_column,
            pairs={name: round(part.weight.sum()) for name, part in parts.items()},
            units={name: len(np.unique(part.units)) for name, part in parts.items()},
            accuracy=learned.task.accuracy(learned.f, learned.test),
            log_loss=float(np.average(losses, weights=test.weight)),
            longer={name: part.longer_wins() for name, part in parts.items()},
            like_length=(test.share_of(is_right, is_alike), test.longer_wins(is_alike)),
            wins=wins.with_columns(pl.selectors.float().round_sig_figs(DIGITS)),
        )

    def to_dict(self) -> dict[str, object]:
        """The entry `pairs` of summary.json."""
        model, longer = self.like_length
        return {
            "columns": list(self.columns),
            "by": self.by,
            **self.pairs,
            "units": self.units,
            "accuracy": self.accuracy.to_dict(),
            "log_loss": self.log_loss,
            "longer_wins": {part: share.to_dict() for part, share in self.longer.items()},
            "like_length": {"within": ALIKE, "model": model.to_dict(), "longer": longer.to_dict()},
        }

    def top(self, wins: bool, rows: int | None = 8, rate: float = 0.6) -> pl.DataFrame:
        """The types that win (or lose) more often than `rate` at equal length, at its conservative
        bound, the most decisive first: pairs · (2 bound − 1)². Only types in at least 10 pairs and
        0.5% of all; lengths themselves are left out."""
        bound = pl.col("equal_length_low") if wins else 1 - pl.col("equal_length_high")
        clear = self.wins.filter(
            pl.col("pairs") >= max(10, 0.005 * self.pairs["train"]),
            pl.col("equal_length_q_value") < LEVEL,
            pl.col("equal_length_low") >= rate if wins else pl.col("equal_length_high") <= 1 - rate,
            ~pl.col("token").str.contains("⟨length ", literal=True),
        )
        ordered = clear.sort(
            pl.col("pairs") * (2 * bound - 1) ** 2, "token", descending=[True, False]
        )
        return ordered if rows is None else ordered.head(rows)


def log_length_ratios(corpus: Corpus) -> Floats:
    """Log of the preferred answer's characters over the other's, shape (n,)."""
    logs = np.log(np.maximum(corpus.characters, 1).astype(np.float64))
    return np.asarray(logs[::2] - logs[1::2])


@computed_once
def preference_facts(audit: AuditContext) -> PreferenceFacts:
    """Compute which words, forms and lengths win in an audit of preference pairs."""
    return PreferenceFacts.of(audit.learned)
