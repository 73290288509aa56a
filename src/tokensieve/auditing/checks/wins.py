"""What preference pairs reward: length first, then formatting, then words, each also at equal
length.

A type is listed if, at equal length, the side that alone contains it wins surely more (or less)
often than chance: q < 0.05 in enough pairs, and the conservative bound of its rate beyond a limit.
Whether the list holds is then tested on the test pairs, which were not used to find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.arrays import Ints, pair_differences
from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    ConcernedDocuments,
    Excerpt,
    Finding,
    Findings,
    Preferences,
    Share,
)
from tokensieve.auditing.phrases import form_clause, quoted
from tokensieve.auditing.preferences import PreferenceFacts, log_length_ratios, preference_facts
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.text.counts import Counts
from tokensieve.text.formatting import is_formatting
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural

REJECTED, CHOSEN = "rejected", "chosen"
MIN_LENGTH_RATE = 0.55  # of pairs in which the longer answer wins: from here it is a finding
# formatting, or a value of another column, is nobody's argument; a word may be one
MIN_WORD_RATE = 0.75
MAX_FORM_FINDINGS = 5
MAX_WORDS = 40
# Jaccard index of the pairs that two features of formatting decide, from which they are one finding
MIN_OVERLAP = 0.4
MAX_WORDS_IN_HEADLINE = 3


class AnswerLength(Check):
    """The longer answer, or the shorter one, wins."""

    name = "shortcut"
    title = "Shortcut"
    about = (
        "The longer (or the shorter) answer wins more than 55% of pairs that differ in length, "
        "even at the conservative bound."
    )
    action = (
        "Do your raters really prefer longer answers? If not, compare answers of similar length, "
        "or correct for length when you judge models or train a reward model on these pairs."
    )
    tasks = (Preferences,)
    signs = ("formatting",)

    def find(self, audit: AuditContext) -> Findings:
        facts = preference_facts(audit)
        longer_wins = facts.longer["train"]
        if longer_wins.low <= MIN_LENGTH_RATE and longer_wins.high >= 1 - MIN_LENGTH_RATE:
            return
        ratios = log_length_ratios(audit.train.corpus)
        if longer_wins.value > 0.5:
            side, label, wins, has_won = "longer", CHOSEN, longer_wins, ratios > 0
        else:
            side, label, wins, has_won = "shorter", REJECTED, _complement(longer_wins), ratios < 0
        model, longer = facts.like_length
        n_pairs = facts.pairs["train"]
        detail = f"the {side} answer wins {wins.as_counts} training pairs"
        if longer_wins.of < n_pairs:
            detail += " that differ in length"
        yield self.finding(
            audit,
            severity=max(2 * wins.low - 1, 0.0),
            headline=f"The {side} answer wins {percent(wins.value, 0)} of the training pairs",
            documents=ConcernedDocuments(2 * np.flatnonzero(has_won), examples=()),
            label=label,
            evidence={
                "decides": wins,
                "documents": Share.count(longer_wins.of, n_pairs),
                "like_model": model,
                "like_longer": longer,
            },
            details=(f"{detail}: {wins}",),
        )


class Wins(Check):
    """Words and formatting that win or lose at equal length."""

    name = "shortcut"
    title = "Shortcut"
    about = (
        "Formatting or words that win or lose at equal length (q < 0.05), in at least 10 pairs and "
        "at least 0.5% of all pairs. The conservative bound on the win rate must exceed 60% for "
        "formatting and values of other columns, and 75% for words."
    )
    action = (
        "Does a good answer need this? If not, balance the pairs; otherwise a reward model will "
        "learn to reward it."
    )
    action_on_words = action.replace(
        "balance the pairs;", "balance the pairs, or mask it in both answers and audit again;"
    )
    tasks = (Preferences,)

    def find(self, audit: AuditContext) -> Findings:
        facts = preference_facts(audit)
        for wins in (True, False):
            for tokens in _groups_of_tokens(audit, facts, wins):
                yield self._finding_about(tokens, wins, audit)

    def _finding_about(self, tokens: list[str], wins: bool, audit: AuditContext) -> Finding:
        """A group of types as one finding: how often the side with more of them wins, or loses."""
        corpus = audit.train.corpus
        rates = _rates(tokens, wins, audit)
        in_more = _surplus(audit.train, tokens, wins)
        documents = 2 * np.flatnonzero(in_more > 0) + (0 if wins else 1)
        words = [token for token in tokens if not is_formatting(token)]
        words_in_text = [
            word for word in words if audit.fields is None or not audit.fields.is_value(word)
        ]
        examples: list[Excerpt] = []
        if words:
            shown = documents[:: max(1, len(documents) // MAX_EXAMPLES)][:MAX_EXAMPLES]
            examples = [Excerpt.of(corpus, i, words, audit.tokenizer) for i in shown.tolist()]
        strength = max(0.0, 2 * rates.equal_length.low - 1)
        finding = self.finding(
            audit,
            severity=rates.documents.value * strength**2,
            headline=_headline(tokens, wins, rates),
            documents=ConcernedDocuments(
                documents,
                rows=corpus.rows_of(documents, token=for_display(tokens[0], IN_SENTENCE)),
                examples=examples,
            ),
            label=CHOSEN if wins else REJECTED,
            tokens=tokens,
            evidence={
                "decides": rates.decides,
                "documents": rates.documents,
                "first": rates.first,
                "equal_length": rates.equal_length,
                "test": rates.test,
            },
            details=_details(tokens, wins, rates),
            action=self.action_on_words if words_in_text else self.action,
        )
        return finding if words else replace(finding, signs=("formatting",))


@dataclass(frozen=True)
class _Rates:
    """How often a group of types wins (or loses).

    Attributes:
        decides: training pairs won by the answer with more of them, of those that differ in them.
        documents: training pairs that differ in them.
        first: pairs won by the side that alone contains the first type.
        equal_length: the same at equal length, as estimated.
        test: as `decides`, in test pairs.
    """

    decides: Share
    documents: Share
    first: Share
    equal_length: Share
    test: Share


def _groups_of_tokens(audit: AuditContext, facts: PreferenceFacts, wins: bool) -> list[list[str]]:
    """Groups of token types that win (or lose): formatting that decides the same pairs, words,
    values of each column."""
    listed = facts.top(wins, rows=None)["token"].to_list()
    certain = facts.top(wins, rows=None, rate=MIN_WORD_RATE)["token"].to_list()
    forms = [token for token in listed if is_formatting(token)][: 4 * MAX_FORM_FINDINGS]
    groups = _group_features(forms, audit.train.counts)[:MAX_FORM_FINDINGS]
    values_of_columns = [
        [token for token in listed if token.startswith(f"{column}:")]
        for column in audit.train.corpus.columns
    ]
    values = {token for tokens in values_of_columns for token in tokens}
    words = [token for token in certain if not is_formatting(token) and token not in values]
    for tokens in (words, *values_of_columns):
        if tokens:
            groups.append(tokens[:MAX_WORDS])
    return groups


def _group_features(tokens: list[str], counts: Counts) -> list[list[str]]:
    """Features that decide much the same pairs are one finding; each group begins with the
    strongest."""
    if not tokens:
        return []
    decided = _sides_with(counts, tokens).astype(bool).astype(np.float64)
    in_common = (decided.T @ decided).toarray()
    sizes = np.maximum(np.diag(in_common), 1.0)
    overlap = in_common / (sizes[:, None] + sizes[None, :] - in_common)
    groups: dict[int, list[str]] = {}
    for place, token in enumerate(tokens):
        similar = [first for first in groups if overlap[place, first] >= MIN_OVERLAP]
        leader = similar[0] if similar else place
        groups.setdefault(leader, []).append(token)
    return list(groups.values())


def _rates(tokens: list[str], wins: bool, audit: AuditContext) -> _Rates:
    """Win (or loss) rates of a group of token types, in training and in test pairs."""
    facts = preference_facts(audit)
    train_pairs, test_pairs = audit.train.corpus.pairs, audit.test.corpus.pairs
    assert train_pairs is not None and test_pairs is not None
    in_train = _surplus(audit.train, tokens, wins)
    in_test = _surplus(audit.test, tokens, wins)
    row = facts.wins.filter(pl.col("token") == tokens[0]).row(0, named=True)
    n_pairs = row["pairs"]
    counted = row["wins"] / n_pairs
    # as counted, in the interval of the smoothed rate
    first = Share(
        round(row["wins"]), n_pairs, counted, min(row["low"], counted), max(row["high"], counted)
    )
    at_equal_length = Share(
        round(row["equal_length_win_rate"] * n_pairs),
        n_pairs,
        row["equal_length_win_rate"],
        row["equal_length_low"],
        row["equal_length_high"],
    )
    decides = Share.over(*train_pairs.without_mirrored_ties(in_train > 0, in_train != 0))
    return _Rates(
        decides=decides,
        documents=Share.count(decides.of, facts.pairs["train"]),
        first=first if wins else _complement(first),
        equal_length=at_equal_length if wins else _complement(at_equal_length),
        test=Share.over(*test_pairs.without_mirrored_ties(in_test > 0, in_test != 0)),
    )


def _surplus(part: CountedCorpus, tokens: Sequence[str], wins: bool) -> Ints:
    """For each pair, how many more of these types the preferred answer has than the other; reversed
    if they lose."""
    surplus = np.asarray(_sides_with(part.counts, tokens).sum(axis=1)).ravel()
    return surplus if wins else -surplus


def _sides_with(counts: Counts, tokens: Sequence[str]) -> sp.csr_array:
    """For each pair, whether the preferred side alone (1) or the other alone (−1) contains each
    token."""
    places = {str(token): place for place, token in enumerate(counts.tokens)}
    columns = sp.csr_array(counts.matrix[:, [places[token] for token in tokens]])
    columns.data = np.ones_like(columns.data)
    return pair_differences(columns)


def _complement(share: Share) -> Share:
    """The fraction of the others."""
    return Share(share.of - share.found, share.of, 1 - share.value, 1 - share.high, 1 - share.low)


def _details(tokens: list[str], wins: bool, rates: _Rates) -> list[str]:
    """The evidence in clauses: how often the answer with more of the tokens wins, at equal length,
    and in test pairs, which were not used to find them.
    """
    verb = "wins" if wins else "loses"
    if len(tokens) > 1:
        subject, them = f"{quoted(tokens[:1])} alone", "them"
    else:
        subject, them = "it", "it"
    details = [
        f"the answer with more of {them} {verb} {rates.decides.as_counts} training pairs that "
        f"differ in {them}: {rates.decides}",
        f"at equal length {subject} {verb} {rates.equal_length}",
    ]
    if rates.test.of:
        pairs = plural(rates.test.of, "test pair")
        details.append(
            f"the answer with more of {them} {verb} {rates.test} of the {pairs} that differ in "
            f"{them}; these were not used to find {them}"
        )
    return details


def _headline(tokens: list[str], wins: bool, rates: _Rates) -> str:
    """A sentence with the rate at which answers with these words, or of this form, win or lose; no
    full stop."""
    verb = "wins" if wins else "loses"
    is_form = is_formatting(tokens[0])
    if not is_form and len(tokens) > 1:
        listed = quoted(tokens[:MAX_WORDS_IN_HEADLINE])
        if len(tokens) > MAX_WORDS_IN_HEADLINE:
            listed = f"{len(tokens)} words such as {listed}"
        if rates.test.of:
            rate = f"{percent(rates.test.value, 0)} of the test pairs"
        else:
            rate = f"{percent(rates.decides.value, 0)} of the pairs"
        return f"The answer with more of {listed} {verb} {rate} that differ in them"

    subject = f"containing {quoted(tokens[:1])}"
    if is_form:
        plain_verb, _, feature = form_clause(tokens[0]).partition(" ")
        singular_verb = "is" if plain_verb == "are" else f"{plain_verb}s"
        subject = f"that {singular_verb} {feature}"
    return (
        f"An answer {subject} {verb} {percent(rates.first.value, 0)} of its pairs against answers "
        f"without it, and {percent(rates.equal_length.value, 0)} at equal length"
    )
