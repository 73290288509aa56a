"""What preference pairs reward: length first, then formatting, then words, each also at equal length.

A type is listed if, at equal length, the side that alone contains it wins surely more (or less) often than chance: q < 0.05 in
enough pairs, and the cautious end of its rate beyond a limit. Whether the list holds is then asked of the test pairs, which had
no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import polars.selectors
import scipy.sparse as sp

from tokensieve.auditing.agreement import DIGITS
from tokensieve.auditing.context import passage
from tokensieve.auditing.data_checks import drifted
from tokensieve.auditing.findings import Finding, FindingKind, ranked, rows_of
from tokensieve.auditing.inspection import Inspection
from tokensieve.auditing.label_issues import label_issues
from tokensieve.auditing.shortcuts import accuracy_without
from tokensieve.escape import shown
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.pairs import differences, length_features, win_rates, wins_frame
from tokensieve.evidence.shares import Share
from tokensieve.model.attention import loss_and_slope
from tokensieve.model.pairs import named_rightly
from tokensieve.model.settings import TrainSettings
from tokensieve.task.interface import Part
from tokensieve.task.training import CorpusModel
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.spill import characters
from tokensieve.text.tokenizers import Tokenizer

LEAST, LEAST_SHARE = 10, 0.005  # pairs in which one side alone contains the type
FORM, WORD = 0.6, 0.75  # rate at equal length, at its cautious end: formatting is nobody's argument, a word may be
LEAN = 0.55  # of pairs in which the longer answer wins: from here it is a finding
TOGETHER = 0.4  # Jaccard index of the pairs that two features of formatting decide
MOST_FORMS, MOST_WORDS = 5, 40
LIKE = 1.25  # two lengths within this factor are alike
EXAMPLES = 3
CLASSES = ("rejected", "chosen")


@dataclass(frozen=True, repr=False)
class PreferenceFacts:
    """What an audit of pairs knows beside the tables of any audit.

    Attributes:
        columns: where the answers were read, the preferred one first.
        by: the column of the units (prompts); None where each pair is one.
        pairs, units: {"train": …, "test": …}.
        accuracy: test pairs whose preferred answer the model names.
        log_loss: mean of −log P(preferred) over them.
        longer: pairs in which the longer answer (in characters) is preferred, of those of unequal length: "train" and "test".
        like_length: test pairs of lengths within a factor of 1.25: what the model names rightly, and where the longer one wins.
        wins: a row per type: how often the side that alone contains it wins, as it is and at equal length
            (`tokensieve.evidence.pairs`).
    """

    columns: tuple[str, str]
    by: str | None
    pairs: dict[str, int]
    units: dict[str, int]
    accuracy: Share
    log_loss: float
    longer: dict[str, Share]
    like_length: tuple[Share, Share]
    wins: pl.DataFrame = field(default_factory=pl.DataFrame)

    def to_dict(self) -> dict[str, Any]:
        """The entry `pairs` of summary.json."""
        model, longer = self.like_length
        return {
            "columns": list(self.columns), "by": self.by, **self.pairs, "units": self.units, "accuracy": self.accuracy.to_dict(),
            "log_loss": self.log_loss, "longer_wins": {part: share.to_dict() for part, share in self.longer.items()},
            "like_length": {"within": LIKE, "model": model.to_dict(), "longer": longer.to_dict()},
        }  # fmt: skip

    def top(self, wins: bool, rows: int = 8) -> pl.DataFrame:
        """The types that win (or lose) at equal length, those first that decide most."""
        return _sure(self.wins, self.pairs["train"], wins).head(rows)


def inspect_pairs(
    learned: CorpusModel, settings: TrainSettings, thorough: bool = True, given: bool = False
) -> tuple[PreferenceFacts, Inspection]:
    """What pairs show, and its findings, of a model trained on a corpus of pairs.

    Args:
        learned: the model.
        settings: with which it was trained.
        thorough: also what takes models of their own: pairs preferred the wrong way, and accuracy without the shortcuts.
        given: whether the test pairs were given, not split off by chance; only then drift is looked for.
    """
    assert learned.model.vocabulary is not None
    found, train, test = preferences(learned), learned.train, learned.test
    findings = pair_findings(found, learned, learned.model.vocabulary.tokenizer)
    if given:
        units = np.repeat(_units(train.corpus), 2), np.repeat(_units(test.corpus), 2)
        moved = drifted(train.counts, test.counts, learned.model.vocabulary.n_words, units)
        findings += [moved] if moved else []
    if not thorough:
        return found, Inspection(ranked(findings))
    honest = accuracy_without([f for f in findings if f.kind is FindingKind.SHORTCUT], learned, settings)
    labels, issues = label_issues(learned.task, train, learned.model, settings)
    return found, Inspection(ranked([*findings, *([labels] if labels else [])]), issues, honest)


def preferences(learned: CorpusModel) -> PreferenceFacts:
    """Everything about pairs that is no finding.

    Args:
        learned: a model trained on a corpus of pairs.
    """
    train, test = learned.train, learned.test
    units = {"train": _units(train.corpus), "test": _units(test.corpus)}
    ratio = {"train": log_ratios(train.corpus), "test": log_ratios(test.corpus)}
    assert train.corpus.pairs is not None
    rates = [win_rates(train.counts.matrix, units["train"], x) for x in (None, length_features(ratio["train"]))]
    m = learned.f[::2, 0]
    right = named_rightly(m)
    like = np.abs(ratio["test"]) <= np.log(LIKE)
    uneven = like & (ratio["test"] != 0)
    return PreferenceFacts(
        train.corpus.pairs.columns,
        train.corpus.pairs.by,
        {part: len(of) for part, of in units.items()},
        {part: len(np.unique(of)) for part, of in units.items()},
        Share.over(right, units["test"]),
        float(np.mean(loss_and_slope(m[:, None], np.ones(len(m), dtype=np.int64))[0])),
        {part: Share.over(x[x != 0] > 0, units[part][x != 0]) for part, x in ratio.items()},
        (
            Share.over(right[like], units["test"][like]),
            Share.over(ratio["test"][uneven] > 0, units["test"][uneven]),
        ),
        wins_frame(train.counts.tokens, *rates).with_columns(polars.selectors.float().round_sig_figs(DIGITS)),
    )


def pair_findings(found: PreferenceFacts, learned: CorpusModel, tokenizer: Tokenizer) -> list[Finding]:
    """What someone should act on: length, formatting, words, leaks across the split, contradictions.

    Args:
        found: of `preferences`.
        learned: what it was made of.
        tokenizer: that made the tokens.
    """
    train, test = learned.train, learned.test
    out = [*_length(found, train), *_intake(train.corpus, test.corpus)]
    n = found.pairs["train"]
    for wins in (True, False):
        sure = _sure(found.wins, n, wins)
        form = pl.Series([is_formatting(token) for token in sure["token"]], dtype=pl.Boolean)
        groups = _grouped(sure.filter(form)["token"].head(4 * MOST_FORMS).to_list(), train.counts)[:MOST_FORMS]
        words = sure.filter(~form).filter(_beyond(WORD, wins))["token"].head(MOST_WORDS).to_list()
        groups += [words] if words else []
        out += [_finding(group, wins, found.wins, learned, tokenizer) for group in groups]
    return out


def log_ratios(corpus: Corpus) -> Floats:
    """Log of the preferred answer's characters over the other's, shape (n,)."""
    logs = np.log(np.maximum(characters(corpus.texts), 1).astype(np.float64))
    return np.asarray(logs[::2] - logs[1::2])


def _units(corpus: Corpus) -> Ints:
    assert corpus.pairs is not None
    return corpus.pairs.units


def _beyond(limit: float, wins: bool) -> pl.Expr:
    return pl.col("equal_length_low") >= limit if wins else pl.col("equal_length_high") <= 1 - limit


def _sure(table: pl.DataFrame, pairs: int, wins: bool) -> pl.DataFrame:
    """Types that win (lose) at equal length, those first that decide most: pairs · (2 rate − 1)², the rate at its cautious end.

    Lengths themselves are left out.
    """
    kept = table.filter(
        pl.col("pairs") >= max(LEAST, LEAST_SHARE * pairs), pl.col("equal_length_q_value") < LEVEL, _beyond(FORM, wins),
        ~pl.col("token").str.starts_with("⟨length "),
    )  # fmt: skip
    lead = 2 * pl.col("equal_length_low") - 1 if wins else 1 - 2 * pl.col("equal_length_high")
    return kept.sort(pl.col("pairs") * lead**2, "token", descending=[True, False])


def _length(found: PreferenceFacts, train: Part) -> list[Finding]:
    """The longer answer, or the shorter one, wins."""
    share = found.longer["train"]
    if share.low <= LEAN and share.high >= 1 - LEAN:
        return []
    wins = share.value > 0.5
    lead = max(2 * (share.low if wins else 1 - share.high) - 1, 0.0)
    decided = np.flatnonzero((log_ratios(train.corpus) > 0) if wins else (log_ratios(train.corpus) < 0))
    shown_share = (
        share if wins else Share(share.of - share.found, share.of, 1 - share.value, 1 - share.high, 1 - share.low)
    )
    evidence = {"decides": shown_share, "documents": Share.count(share.of, found.pairs["train"])}
    model, longer = found.like_length
    evidence |= {"like_model": model, "like_longer": longer}
    rows = rows_of(2 * decided, train.corpus)
    label = CLASSES[1] if wins else CLASSES[0]
    return [Finding(FindingKind.SHORTCUT, lead, label, (), ("formatting",), evidence, len(decided), rows)]


def _grouped(tokens: list[str], counts: Counts) -> list[list[str]]:
    """Features that decide much the same pairs are one finding; each group begins with the surest."""
    if not tokens:
        return []
    place = {str(token): s for s, token in enumerate(counts.tokens)}
    decided = differences(_presence(counts, [place[token] for token in tokens])).astype(bool).astype(np.float64)
    both = (decided.T @ decided).toarray()
    sizes = np.maximum(np.diag(both), 1.0)
    near = both / (sizes[:, None] + sizes[None, :] - both) >= TOGETHER
    groups: list[list[int]] = []
    for i in range(len(tokens)):
        home = next((group for group in groups if near[i, group[0]]), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    return [[tokens[i] for i in group] for group in groups]


def _presence(counts: Counts, types: list[int]) -> sp.csr_array:
    columns = sp.csr_array(counts.matrix[:, types])
    columns.data = np.ones_like(columns.data)
    return columns


def _leans(counts: Counts, types: list[int], wins: bool) -> Floats:
    """Of each pair: of how many of the types the preferred side has more (less, if they lose), shape (n,)."""
    found = np.asarray(differences(_presence(counts, types)).sum(axis=1)).ravel()
    return found if wins else -found


def _finding(tokens: list[str], wins: bool, table: pl.DataFrame, learned: CorpusModel, tokenizer: Tokenizer) -> Finding:
    """A group of types as one finding: how often the side with more of them wins (loses), in training and in the test pairs."""
    train, test = learned.train, learned.test
    place = {str(token): s for s, token in enumerate(train.counts.tokens)}
    types = [place[token] for token in tokens]
    own, held = (_leans(part.counts, types, wins) for part in (train, test))
    units = {"own": _units(train.corpus), "held": _units(test.corpus)}
    decides = Share.over(own[own != 0] > 0, units["own"][own != 0])
    first = table.filter(pl.col("token") == tokens[0]).row(0, named=True)
    alone, equal = (_rate(first, prefix, wins) for prefix in ("", "equal_length_"))
    evidence = {
        "decides": decides,
        "documents": Share.count(int(np.count_nonzero(own)), len(own)),
        "first": alone,
        "equal_length": equal,
        "test": Share.over(held[held != 0] > 0, units["held"][held != 0]),
    }
    severity = evidence["documents"].value * max(0.0, 2 * evidence["equal_length"].low - 1) ** 2
    pairs = np.flatnonzero(own > 0)
    documents = 2 * pairs + (not wins)
    chosen = documents[:: max(1, len(documents) // EXAMPLES)][:EXAMPLES]
    words = tuple(token for token in tokens if not is_formatting(token))
    examples = tuple(passage(train.corpus, int(i), words, tokenizer) for i in chosen) if words else ()
    signs = () if words else ("formatting",)
    rows = rows_of(documents, train.corpus, token=shown(tokens[0], 40))
    label = CLASSES[wins]
    return Finding(
        FindingKind.SHORTCUT, severity, label, tuple(tokens), signs, evidence, len(documents), rows, examples
    )


def _rate(row: dict[str, Any], prefix: str, wins: bool) -> Share:
    """How often a type wins (loses), from its row in the table: as counted, and at equal length as estimated."""
    rate, low, high = (row[prefix + name] for name in ("win_rate", "low", "high"))
    rate = rate if prefix else row["wins"] / row["pairs"]
    low, high = min(low, rate), max(high, rate)  # those of the smoothed rate
    ends = (rate, low, high) if wins else (1 - rate, 1 - high, 1 - low)
    return Share(round(ends[0] * row["pairs"]), row["pairs"], *ends)


def _intake(train: Corpus, test: Corpus) -> list[Finding]:
    """Units on both sides of the split, and pairs preferred both ways."""
    intake = train.intake
    out = []
    shared = max(intake.counts.get("shared_units", 0), intake.test_overlap)
    if shared:
        share = Share.count(shared, len(_units(test)))
        evidence = {"pairs": share, "identical": Share.count(intake.test_overlap, len(_units(test)))}
        out.append(Finding(FindingKind.LEAK, share.value, evidence=evidence, documents=shared))
    keys = train.keys
    sides = pl.DataFrame({"a": keys.gather_every(2), "b": keys.gather_every(2, 1)}).with_row_index("pair")
    swapped = sides.join(sides, left_on=["a", "b"], right_on=["b", "a"], how="semi")["pair"].to_numpy().astype(np.int64)
    if len(swapped):
        share = Share.count(len(swapped), len(_units(train)))
        rows = rows_of(2 * np.sort(swapped), train)
        out.append(
            Finding(
                FindingKind.CONTRADICTION, share.value, evidence={"pairs": share}, documents=len(swapped), rows=rows
            )
        )
    return out
