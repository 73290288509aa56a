"""An audit as a section of a dataset card on the Hugging Face hub."""

from __future__ import annotations

from tokensieve.auditing.any_audit import AnyAudit
from tokensieve.auditing.findings import written_score
from tokensieve.auditing.report import without_shortcuts_sentences
from tokensieve.auditing.result import Audit
from tokensieve.auditing.scores.result import ScoreAudit
from tokensieve.escape import for_display
from tokensieve.report.blocks import Block, Column, Section, Table, Text
from tokensieve.report.markdown import markdown
from tokensieve.wording import count, percent, plain, plural

MAX_FINDINGS = 12
MAX_CLASSES = 12
MAX_TOKENS = 8  # of each class
MAX_NOTES = 8
MAX_NOTE_LENGTH = 400
NO_FINDINGS = (
    "The checks found no shortcut, leak or label problem, which does not show that there is none."
)


def dataset_card(audit: Audit | ScoreAudit) -> str:
    """Describe an audit as a section of a dataset card on the Hugging Face hub.

    It has the findings, the accuracy (of scores, the error), and the strongest predictors of each
    class, or of higher and lower scores.

    Returns:
        Markdown that starts with a level-two heading; names, labels and tokens are escaped and stay
        on one line.
    """
    findings = Section("Findings", _findings(audit))
    blocks: list[Block]
    if isinstance(audit, ScoreAudit):
        blocks = [
            Text(_overview_of_scores(audit)),
            findings,
            Section("Strongest predictors of the score", (_predictors_of_scores(audit),)),
        ]
    else:
        blocks = [
            Text(_overview(audit)),
            Text(" ".join(without_shortcuts_sentences(audit))),
            findings,
            Section("Strongest predictors of each class", (_predictors(audit),)),
        ]
    if audit.notes:
        notes = tuple(Text(note[:MAX_NOTE_LENGTH]) for note in audit.notes[:MAX_NOTES])
        blocks.append(Section("Notes", notes))
    return markdown(Section("Tokens that give the label away", tuple(blocks)))


def _overview(audit: Audit) -> str:
    """A paragraph of the dataset card: the audited data, and the accuracy of the model."""
    source = for_display(audit.name, 300, path=True)
    train = count(audit.documents["train"])
    test = count(audit.documents["test"])
    interval = f"95% CI {percent(audit.accuracy.low)} to {percent(audit.accuracy.high)}"
    return (
        f"Audited with tokensieve {audit.version}: {source}, {train} training and {test} test "
        f"documents, {len(audit.classes)} classes, {count(audit.token_types)} token types. A "
        f"model that ignores token order predicts {percent(audit.test_accuracy)} of the test "
        f"documents correctly ({interval}); always predicting the largest class "
        f"gets {percent(audit.majority_accuracy)}."
    )


def _overview_of_scores(audit: ScoreAudit) -> str:
    """A paragraph of the dataset card: the audited data, and the error of the predicted scores."""
    source = for_display(audit.name, 300, path=True)
    train = count(audit.documents["train"])
    test = count(audit.documents["test"])
    low, high = audit.learned.summary["score_range"]
    mae = audit.measures.mae
    r2 = audit.measures.r2
    return (
        f"Audited with tokensieve {audit.version}: {source}, {train} training and {test} test "
        f"documents with scores from {written_score(low)} to {written_score(high)}, "
        f"{count(audit.token_types)} token types. The mean absolute error of a model that ignores "
        f"token order is {plain(mae.value)} (95% CI {plain(mae.low)} to {plain(mae.high)}) on the "
        f"test documents, R² {plain(r2.value)} (95% CI {plain(r2.low)} to {plain(r2.high)})."
    )


def _findings(audit: AnyAudit) -> tuple[Block, ...]:
    """The most serious findings with their advice, and how many more there are."""
    texts = []
    for finding in audit.findings[:MAX_FINDINGS]:
        headline = f"{finding.title} ({finding.level}): {finding.headline}."
        texts.append(Text(f"{headline} {'; '.join(finding.details)}. {finding.action}"))
    n_more = len(audit.findings) - MAX_FINDINGS
    if n_more > 0:
        texts.append(Text(f"… and {n_more} more."))
    return tuple(texts) or (Text(NO_FINDINGS),)


def _predictors_of_scores(audit: ScoreAudit) -> Table:
    """The strongest predictors of higher and of lower scores."""
    rows = []
    for row in audit.top(2 * MAX_TOKENS).iter_rows(named=True):
        effect = (row["effect"], row["effect_low"], row["effect_high"])
        rows.append((row["token"], row["documents"], effect, row["mean_with"]))
    columns = (
        Column("Token", "token"),
        Column("Documents", "count"),
        Column("Effect", "interval", unit="with 95% CI"),
        Column("Mean score with it", "plain"),
    )
    return Table("", columns, rows, "", n_shown=len(rows))


def _predictors(audit: Audit) -> Table:
    """The strongest predictors of each class, with their intervals and the attention they get."""
    rows = []
    for label in audit.classes[:MAX_CLASSES]:
        for row in audit.top(label, MAX_TOKENS).iter_rows(named=True):
            difference = (row["posterior_difference"], row["posterior_low"], row["posterior_high"])
            rows.append((label, row["token"], row["documents"], difference, row["attention"]))
    columns = (
        Column("Class", "token"),
        Column("Token", "token"),
        Column("Documents", "count"),
        Column("Posterior difference", "interval", unit="with 95% CI"),
        Column("Attention", "plain", digits=1, unit="1 is average"),
    )
    n_more = len(audit.classes) - MAX_CLASSES
    omission = f"and {plural(n_more, 'more class', 'more classes')}" if n_more > 0 else ""
    return Table(title="", columns=columns, rows=rows, note=omission, n_shown=len(rows))
