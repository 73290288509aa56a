"""What an audit of scores says, as blocks for page, terminal and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.auditing.next_steps import next_commands, shortcut_tokens
from tokensieve.auditing.report_cards import (
    MEANING_OF_ATTENTION,
    MEANING_OF_Q,
    as_sentence,
    evidence_blocks,
    notes_of_reading,
    row_commands,
    terms_section,
)
from tokensieve.escape import IN_TITLE, for_display
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.score_ranks import middle_ranks
from tokensieve.report.blocks import (
    PAGE,
    Block,
    Column,
    Command,
    Fact,
    Facts,
    Medium,
    Passage,
    Passages,
    Report,
    Section,
    Table,
    Text,
    Tokens,
    ValueAndInterval,
)
from tokensieve.task.score_measures import Measure
from tokensieve.wording import percent, plain, plural

if TYPE_CHECKING:
    from tokensieve.auditing.scores.result import Baseline, ScoreAudit

MAX_FINDINGS_IN_TERMINAL = 5
MAX_TOKENS_ON_CARD = 12
MAX_TOKEN_ROWS = 300  # of the searchable table, a page of them on a telephone; all: tokens.csv
N_PASSAGES = 4  # of the test documents that are predicted best, and as many of the worst
MAX_ISSUES = 50  # on the page; label-issues.csv has all
TERMS = {
    "Effect": "P(a document with the token has a higher score than one without it) − P(lower): +1 "
    "if it always does, 0 if the token says nothing, −1 if it is always lower. Only the order of "
    "the scores counts (Mann–Whitney; Cliff's δ).",
    "q": MEANING_OF_Q,
    "Value": "The score that the model predicts where the token gets all the attention, in units "
    "of the labels. It may lie outside of their range.",
    "Attention": MEANING_OF_ATTENTION,
    "R²": "1 − mean squared error / variance of the scores: 0 for always predicting the mean.",
    "Mean absolute error": "How far a prediction is from the score, on average, in its units.",
    "Spearman's ρ": "Rank correlation of prediction and score.",
}
BALANCE_PURPOSE = (
    "Weight the documents so that low and high scores have these features equally often:"
)
CLASSES_INSTEAD = (
    "Where the predicted score itself counts, train classes (leave out `--task scores`) and take "
    "the middle one (`predict_median` in Python)."
)
NOT_CHECKED = (
    "An audit of scores does not check what few words alone predict, environments, position or "
    "order, and it has no interactive map or learning curve. For these, audit classes: "
    "`--group low=1,2 --group high=4,5`."
)


def score_report(audit: ScoreAudit, about: Mapping[str, object]) -> Report:
    """The report of an audit of scores; `about` is the small print."""
    return Report(
        "audit",
        f"Audit of {for_display(audit.name, IN_TITLE, path=True)}",
        _verdict(audit),
        (
            *_first_screen(audit),
            *_finding_sections(audit),
            _token_section(audit),
            _documents_section(audit),
            *_issues_section(audit),
            _data_section(audit),
            terms_section(TERMS),
        ),
        about=dict(about),
    )


def _verdict(audit: ScoreAudit) -> str:
    """The most serious finding, or that there is none."""
    if audit.findings:
        return as_sentence(audit.findings[0].headline)
    return (
        "The checks found no shortcut, copies or doubtful scores, which does not show that there "
        "are none."
    )


def _with_interval(measure: Measure) -> str:
    """A measure with its interval, as in "0.65 (0.61 to 0.70)"."""
    return f"{plain(measure.value)} ({plain(measure.low)} to {plain(measure.high)})"


def _first_screen(audit: ScoreAudit) -> list[Block]:
    """The blocks that a reader sees first: the error of the predictions, the strongest tokens, and
    what to do next."""
    measures = audit.measures
    summary = audit.learned.summary
    facts = [
        Fact("Mean absolute error", _with_interval(measures.mae), "of test documents, 95% CI"),
        Fact("R²", _with_interval(measures.r2), "0 is the mean score"),
        Fact("Spearman's ρ", _with_interval(measures.spearman), "order of the documents"),
        Fact("Mean score", plain(summary["mean_score"]), _range_note(audit)),
    ]
    blocks: list[Block] = [Facts(tuple(facts))]
    if audit.baseline is not None:
        blocks.append(Text(_beside("TF-IDF + ridge regression", audit.baseline)))
    if audit.ordinal is not None:
        name = "TF-IDF + a logistic regression for each threshold between scores"
        blocks.append(Text(_beside(name, audit.ordinal)))
        if audit.ordinal.mae_difference.low > 0:
            blocks.append(Text(CLASSES_INSTEAD))
    if audit.settings.budget is not None:
        blocks.append(_limit_block(audit))
    return blocks + _next_steps(audit)


def _range_note(audit: ScoreAudit) -> str:
    low, high = audit.learned.summary["score_range"]
    return f"from {low:.4g} to {high:.4g}"


def _beside(name: str, baseline: Baseline) -> str:
    """A sentence that compares the error of another model with that of the model."""
    difference = baseline.mae_difference
    error = plain(baseline.measures.mae.value)
    r2 = plain(baseline.measures.r2.value)
    sentence = f"{name} has a mean absolute error of {error} (R² {r2})"
    if difference.low <= 0 <= difference.high:
        return f"{sentence}; the difference {_with_interval(difference)} is within chance."
    comparison = "smaller" if difference.value < 0 else "larger"
    low, high = sorted((abs(difference.low), abs(difference.high)))
    interval = _with_interval(Measure(abs(difference.value), low, high))
    return f"{sentence}; the model's error is {comparison} by {interval}."


def _limit_block(audit: ScoreAudit) -> Text:
    if not audit.fails:
        return Text(f"Nothing exceeds the limit {audit.settings.budget}.", style="good")
    kinds = ", ".join(audit.exceeded)
    return Text(f"This audit exceeds the limit {audit.settings.budget}: {kinds}.", style="bad")


def _next_steps(audit: ScoreAudit) -> list[Block]:
    """The commands that repair the most serious finding and the shortcuts, or advice."""
    blocks: list[Block] = []
    first_is_by_hand = bool(audit.findings) and not audit.findings[0].maskable
    if first_is_by_hand:
        blocks.append(Text(audit.findings[0].action, style="next", only=PAGE))
        blocks += row_commands(audit, audit.findings[0])
    # no command for what is not serious where something else comes first
    shortcuts = [
        finding for finding in audit.shortcuts if not first_is_by_hand or finding.level != "low"
    ]
    commands = next_commands(audit, shortcut_tokens(shortcuts), audit.balance_plan)
    if not commands.lines and not blocks:
        advice = "Look at the strongest predictors below: should they predict the score?"
        return [Text(advice, style="next")]
    for mask in commands.masks:
        blocks.append(Command(mask, "Remove what should not predict the score:"))
    if commands.balance:
        blocks.append(Command(commands.balance, BALANCE_PURPOSE))
    if commands.audit_again:
        blocks.append(Command(commands.audit_again, "Then audit the copy, and look at its error:"))
    return blocks


def _finding_sections(audit: ScoreAudit) -> list[Section]:
    """A section for each finding; the terminal shows the first few."""
    sections = []
    for place, finding in enumerate(audit.findings):
        in_terminal: tuple[Medium, ...] = ("terminal",) if place < MAX_FINDINGS_IN_TERMINAL else ()
        sections.append(
            Section(
                finding.title,
                tuple(_card(finding)),
                level=finding.level,
                folded=place >= MAX_FINDINGS_IN_TERMINAL,
                only=(*in_terminal, *PAGE),
            )
        )
    if not sections:
        return []
    title = plural(len(sections), "finding") + ", most serious first"
    return [Section(title, tuple(sections), anchor="findings")]


def _card(finding: Finding) -> list[Block]:
    return [
        Text(as_sentence(finding.headline)),
        *evidence_blocks(finding, finding.details),
        Text(finding.action, only=PAGE),
    ]


def _token_section(audit: ScoreAudit) -> Section:
    """The strongest predictors of higher and of lower scores, and a table of all tokens."""
    blocks: list[Block] = []
    for category, title in (("higher", "Higher scores"), ("lower", "Lower scores")):
        strongest = audit.tokens.filter(pl.col("category") == category).sort(
            pl.max_horizontal("effect_low", -pl.col("effect_high")), descending=True
        )
        names = strongest["token"].head(MAX_TOKENS_ON_CARD).to_list()
        n_more = max(0, strongest.height - len(names))
        if names:
            blocks.append(Tokens(title, tuple(names), n_more))
    columns = (
        Column("Token", "text"),
        Column("Documents", "count"),
        Column("Effect", "interval", bar=True),
        Column("Mean score with it", "plain", extra=True),
        Column("without it", "plain", extra=True),
        Column("q", "chance"),
        Column("Value", "plain", extra=True),
        Column("Attention", "plain", extra=True),
    )
    in_order = audit.tokens.sort("p_value", "token").head(MAX_TOKEN_ROWS)
    rows = [_token_row(row) for row in in_order.iter_rows(named=True)]
    n_predictive = audit.tokens.filter(pl.col("q_value") < LEVEL).height
    note = (
        f"{n_predictive:,} of {plural(audit.tokens.height, 'token type')} predict the score "
        "(q < 0.05). tokens.csv has all of them."
    )
    table = Table("All tokens", columns, rows, note, searchable=True, only=PAGE)
    return Section("Which tokens predict the score", (*blocks, table), anchor="tokens")


def _token_row(row: Mapping[str, float]) -> tuple[object, ...]:
    """The cells of a token in the table of all tokens."""
    return (
        for_display(str(row["token"]), IN_TITLE),
        row["documents"],
        ValueAndInterval(row["effect"], row["effect_low"], row["effect_high"]),
        row["mean_with"],
        row["mean_without"],
        row["q_value"],
        row["value"],
        row["attention"],
    )


def _documents_section(audit: ScoreAudit) -> Section:
    """Test documents with the contribution of each piece to the prediction."""
    test = audit.learned.test
    assert test.counts.numbers is not None
    error = np.abs(audit.learned.f[:, 0] - test.counts.numbers)
    is_known = np.diff(test.counts.matrix.indptr) > 0
    order = np.argsort(np.where(is_known, error, np.inf), kind="stable")[: is_known.sum()]
    chosen = np.unique(np.concatenate([order[:N_PASSAGES], order[-N_PASSAGES:]]))
    passages = [
        _passage(audit, document) for document in chosen[np.argsort(error[chosen])].tolist()
    ]
    if not passages:
        return Section("Test documents", (Text("There are no test documents to show."),), only=PAGE)
    about = Text(
        "Blue words raise the prediction above the mean score, orange ones lower it; the "
        "contributions and the mean add up to it exactly. The best predictions come first."
    )
    blocks = (about, Passages("", tuple(passages), short=False))
    return Section("Test documents", blocks, anchor="documents", only=PAGE)


def _passage(audit: ScoreAudit, document: int) -> Passage:
    """A test document in pieces with what each adds to the prediction, above or below the mean
    score."""
    test = audit.learned.test
    assert test.counts.numbers is not None
    model = audit.learned.model
    relative = replace(model, values=model.values - model.prior, prior=np.zeros(1))
    row = test.counts.matrix[[document]]
    pieces = relative.pieces(test.corpus.texts[document], 1, row)
    score = float(test.counts.numbers[document])
    return Passage(
        pieces=tuple((piece.text, piece.contribution) for piece in pieces),
        label=f"score {score:.4g}",
        row=int(test.corpus.rows[document]),
        note=f"predicted {plain(float(audit.learned.f[document, 0]))}",
    )


def _issues_section(audit: ScoreAudit) -> list[Section]:
    """The scores to check, furthest first."""
    if audit.label_issues.is_empty():
        return []
    columns = (
        Column("Row", "count"),
        Column("Score", "plain"),
        Column("Predicted", "plain"),
        Column("Tokens against the score", "text"),
    )
    rows = [
        (row["row"], row["score"], row["predicted"], for_display(row["against"], 80))
        for row in audit.label_issues.head(MAX_ISSUES).iter_rows(named=True)
    ]
    table = Table("Scores to check", columns, rows, "label-issues.csv has all of them.")
    return [Section("Scores to check", (table,), anchor="label-issues", only=PAGE)]


def _data_section(audit: ScoreAudit) -> Section:
    """The section on the documents that were read, the distribution of scores, and what was not
    checked."""
    blocks = notes_of_reading(audit.notes)
    scores = audit.learned.train.counts.numbers
    assert scores is not None
    quantiles = np.quantile(scores, [0.1, 0.25, 0.5, 0.75, 0.9])
    tied = 1 - len(np.unique(middle_ranks(scores))) / len(scores)
    columns = tuple(Column(name, "plain") for name in ("10%", "25%", "median", "75%", "90%"))
    note = (
        f"{plural(len(scores), 'training document')}; {len(np.unique(scores)):,} different scores, "
        f"so {percent(tied)} of them repeat another one."
    )
    blocks.append(Table("Scores", columns, [tuple(quantiles.tolist())], note, only=PAGE))
    blocks.append(Text(NOT_CHECKED, style="note", only=PAGE))
    return Section("The data", tuple(blocks), anchor="data")
