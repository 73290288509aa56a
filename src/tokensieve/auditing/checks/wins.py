"""What preference pairs reward: length first, then formatting, then words, each also at equal length.

A type is listed if, at equal length, the side that alone contains it wins surely more (or less) often than chance: q < 0.05 in
enough pairs, and the conservative bound of its rate beyond a limit. Whether the list holds is then tested on the test pairs, which
were not used to find it.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.arrays import pair_differences
from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    Finding,
    Findings,
    Preferences,
    Share,
)
from tokensieve.auditing.phrases import form_clause, quoted
from tokensieve.auditing.preferences import preference_facts
from tokensieve.escape import for_display
from tokensieve.text.counts import Counts
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import percent, plural

CLASSES = ("rejected", "chosen")


class AnswerLength(Check):
    """The longer answer, or the shorter one, wins."""

    name = "shortcut"
    title = "Shortcut"
    about = "The longer (or the shorter) answer wins more than 55% of pairs that differ in length, even at the conservative bound."
    action = (
        "Do your raters really prefer longer answers? If not, compare answers of similar length, or correct for length when you "
        "judge models or train a reward model on these pairs."
    )
    tasks = (Preferences,)
    lean = 0.55  # of pairs in which the longer answer wins: from here it is a finding

    def find(self, data: AuditContext) -> Findings:
        found, ratio = preference_facts(data), preference_facts(data).log_ratios(data.train.corpus)
        share = found.longer["train"]
        if share.low <= self.lean and share.high >= 1 - self.lean:
            return
        wins = share.value > 0.5
        decides = share if wins else _complement(share)
        (model, longer), side = found.like_length, "longer" if wins else "shorter"
        uneven = " that differ in length" * (share.of < found.pairs["train"])
        yield self.finding(
            data,
            max(2 * decides.low - 1, 0.0),
            f"The {side} answer wins {percent(decides.value, 0)} of the training pairs",
            2 * np.flatnonzero(ratio > 0 if wins else ratio < 0),
            label=CLASSES[wins],
            signs=("formatting",),
            evidence={
                "decides": decides,
                "documents": Share.count(share.of, found.pairs["train"]),
                "like_model": model,
                "like_longer": longer,
            },
            details=(
                f"the {side} answer wins {decides.as_counts} training pairs{uneven}: {decides}",
            ),
            examples=(),
        )


class Wins(Check):
    """Words and formatting that win or lose at equal length."""

    name = "shortcut"
    title = "Shortcut"
    about = (
        "Formatting or words that win or lose at equal length (q < 0.05), in at least 10 pairs and at least 0.5% of all pairs. The "
        "conservative bound on the win rate must exceed 60% for formatting and values of other columns, and 75% for words."
    )
    action = "Does a good answer need this? If not, balance the pairs; otherwise a reward model will learn to reward it."
    tasks = (Preferences,)
    word = 0.75  # formatting, or a value of another column, is nobody's argument; a word may be one
    most_forms, most_words = 5, 40
    together = 0.4  # Jaccard index of the pairs that two features of formatting decide

    def find(self, data: AuditContext) -> Findings:
        for wins in (True, False):
            listed = preference_facts(data).top(wins, rows=None)["token"].to_list()
            forms = [token for token in listed if is_formatting(token)][: 4 * self.most_forms]
            sure = preference_facts(data).top(wins, rows=None, rate=self.word)["token"].to_list()
            # a value of another column (a model, an annotator) is nobody's argument either
            columns = {
                name: [token for token in listed if token.startswith(f"{name}:")]
                for name in data.train.corpus.columns
            }
            values = {token for tokens in columns.values() for token in tokens}
            words = [token for token in sure if not is_formatting(token) and token not in values]
            groups = self._group_features(forms, data.train.counts)[: self.most_forms]
            for tokens in [
                *groups,
                *(tokens[: self.most_words] for tokens in (words, *columns.values()) if tokens),
            ]:
                yield self._as_finding(tokens, wins, data)

    def _group_features(self, tokens: list[str], counts: Counts) -> list[list[str]]:
        """Features that decide much the same pairs are one finding; each group begins with the strongest."""
        if not tokens:
            return []
        decided = _sides_with_feature(counts, tokens).astype(bool).astype(np.float64)
        both = (decided.T @ decided).toarray()
        sizes = np.maximum(np.diag(both), 1.0)
        near = both / (sizes[:, None] + sizes[None, :] - both) >= self.together
        groups: dict[int, list[str]] = {}
        for i, token in enumerate(tokens):
            groups.setdefault(next((first for first in groups if near[i, first]), i), []).append(
                token
            )
        return list(groups.values())

    def _as_finding(self, tokens: list[str], wins: bool, data: AuditContext) -> Finding:
        """A group of types as one finding: how often the side with more of them wins (loses), in training and in test pairs."""
        train, test = data.train, data.test
        assert train.corpus.pairs is not None and test.corpus.pairs is not None
        # of each pair: of how many of the types the preferred side has more (less, if they lose)
        sums = [
            np.asarray(_sides_with_feature(part.counts, tokens).sum(axis=1)).ravel()
            for part in (train, test)
        ]
        own, held = (x if wins else -x for x in sums)
        row = preference_facts(data).wins.filter(pl.col("token") == tokens[0]).row(0, named=True)
        counted, pairs = row["wins"] / row["pairs"], row["pairs"]
        # as counted, in the interval of the smoothed rate; and at equal length as estimated
        rates = {
            "first": (counted, min(row["low"], counted), max(row["high"], counted)),
            "equal_length": (
                row["equal_length_win_rate"],
                row["equal_length_low"],
                row["equal_length_high"],
            ),
        }
        shares = {name: Share(round(rate[0] * pairs), pairs, *rate) for name, rate in rates.items()}
        shares = shares if wins else {name: _complement(share) for name, share in shares.items()}
        won = Share.over(*train.corpus.pairs.without_mirrored_ties(own > 0, own != 0))
        evidence = {
            "decides": won,
            "documents": Share.count(won.of, preference_facts(data).pairs["train"]),
            **shares,
            "test": Share.over(*test.corpus.pairs.without_mirrored_ties(held > 0, held != 0)),
        }
        documents = 2 * np.flatnonzero(own > 0) + (not wins)
        chosen = documents[:: max(1, len(documents) // MAX_EXAMPLES)][:MAX_EXAMPLES]
        words = tuple(token for token in tokens if not is_formatting(token))
        in_text = [word for word in words if not (data.fields and data.fields.is_value(word))]
        verb = "wins" if wins else "loses"
        subject, them = (f"{quoted(tokens[:1])} alone", "them") if len(tokens) > 1 else ("it", "it")
        details = [
            f"the answer with more of {them} {verb} {won.as_counts} training pairs that differ in {them}: {won}",
            f"at equal length {subject} {verb} {evidence['equal_length']}",
        ]
        tested = evidence["test"]
        if tested.of:
            pairs = plural(tested.of, "test pair")
            details.append(
                f"the answer with more of {them} {verb} {tested} of the {pairs} that differ in {them}; these were not used to find "
                f"{them}"
            )
        return self.finding(
            data,
            evidence["documents"].value * max(0.0, 2 * evidence["equal_length"].low - 1) ** 2,
            _headline(tokens, verb, evidence),
            documents,
            label=CLASSES[wins],
            tokens=tuple(tokens),
            signs=() if words else ("formatting",),
            evidence=evidence,
            rows=train.corpus.rows_of(documents, token=for_display(tokens[0], 40)),
            examples=tuple(Excerpt.of(train.corpus, int(i), words, data.tokenizer) for i in chosen)
            if words
            else (),
            details=tuple(details),
            action=self.action.replace(";", ", or mask it in both answers and audit again;")
            if in_text
            else self.action,
        )


def _complement(share: Share) -> Share:
    """The fraction of the others."""
    return Share(share.of - share.found, share.of, 1 - share.value, 1 - share.high, 1 - share.low)


def _sides_with_feature(counts: Counts, tokens: list[str]) -> sp.csr_array:
    """For each pair, whether the preferred side alone (1) or the other alone (−1) contains each token."""
    place = {str(token): s for s, token in enumerate(counts.tokens)}
    columns = sp.csr_array(counts.matrix[:, [place[token] for token in tokens]])
    columns.data = np.ones_like(columns.data)
    return pair_differences(columns)


def _headline(tokens: list[str], verb: str, e: dict[str, Share]) -> str:
    form = is_formatting(tokens[0])
    if form or len(tokens) == 1:
        first, equal = percent(e["first"].value, 0), percent(e["equal_length"].value, 0)
        subject = f"containing {quoted(tokens[:1])}"
        if form:
            does, _, what = form_clause(tokens[0]).partition(" ")
            subject = f"that {'is' if does == 'are' else does + 's'} {what}"
        return f"An answer {subject} {verb} {first} of its pairs against answers without it, and {equal} at equal length"
    listed = quoted(tokens[:3])
    many = f"{len(tokens)} words such as {listed}" if len(tokens) > 3 else listed
    rate = f"{percent(e['decides'].value, 0)} of the pairs"
    if e["test"].of:
        rate = f"{percent(e['test'].value, 0)} of the test pairs"
    return f"The answer with more of {many} {verb} {rate} that differ in them"
