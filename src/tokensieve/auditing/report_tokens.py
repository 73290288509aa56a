"""The parts of an audit's report about tokens: predictors, disagreements, maps and pictures."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tokensieve.auditing.data import AuditData
from tokensieve.auditing.table_cells import TOKEN_COLUMNS, cells_of, token_rows
from tokensieve.escape import IN_LIST, IN_SENTENCE, for_display
from tokensieve.report.blocks import (
    EVERYWHERE,
    PAGE,
    Block,
    Column,
    Picture,
    Section,
    Table,
    Text,
    Tokens,
)
from tokensieve.task.agreement import Quadrant
from tokensieve.wording import percent, plural, signed

MAX_CLASSES_ON_SCREEN = 6  # whose predictors the terminal lists
MAX_CLASSES_ON_PAGE = 30
MAX_CLASSES_WITH_TABLES = 50
MAX_CLASSES_PICTURED = 8
MAX_TABLE_ROWS = 25  # of one class
MIN_TABLE_ROWS = 10  # of one class, however many classes there are
MAX_ROWS_OF_ALL_TABLES = 300
MAX_DISAGREEMENTS = 15
MIN_ATTENTION = 2.0  # times the average: less changes no prediction
# of the way from uninformative to certain, at the conservative bound; as of pairs of words
# (`evidence.order`): "and", "this" and "of" are below it, and nobody can act on them
MIN_CERTAINTY = 0.2
MAX_DOTS = 2000  # of all maps of a page, which holds them all


def predictors_section(audit: AuditData) -> Section:
    """The strongest predictors of each class: a neutral summary that accuses none of them."""
    suspected = _tokens_of_shortcuts(audit)
    blocks: list[Block] = []
    for place, label in enumerate(audit.classes[:MAX_CLASSES_ON_PAGE]):
        tokens = [token for token in audit.top(label, 30)["token"] if token not in suspected]
        if tokens:
            only = EVERYWHERE if place < MAX_CLASSES_ON_SCREEN else PAGE
            blocks.append(Tokens(for_display(label, IN_SENTENCE), tuple(tokens[:10]), only=only))
    n_more = len(audit.classes) - MAX_CLASSES_ON_PAGE
    if n_more > 0:
        text = f"{plural(n_more, 'more class', 'more classes')} in tokens.csv."
        blocks.append(Text(text, style="note", only=PAGE))
    if blocks:
        note = (
            "Most of these are what the labels are about. They show what predicts each class and "
            "need not be removed."
        )
        blocks.insert(0, Text(note, style="note", only=PAGE))
    else:
        subject = (
            "Apart from the shortcuts, no token predicts" if suspected else "No token predicts"
        )
        text = f"{subject} a class (q < 0.05 in at least 5 documents)."
        blocks.append(Text(text, style="note"))
    return Section("Strongest predictors of each class", tuple(blocks), anchor="predictors")


def _tokens_of_shortcuts(audit: AuditData) -> set[str]:
    """The tokens of shortcuts, their words, and the parts of what is to be removed because of them.

    With 8/10 goes "8 out of 10", so "8 out" and "of 10" are no predictors to keep.
    """
    tokens = {token for finding in audit.shortcuts for token in finding.tokens}
    tokens |= {word for token in tokens for word in token.split(" ")}
    for phrase in {phrase for finding in audit.shortcuts for phrase in finding.mask}:
        words = phrase.split(" ")
        for first in range(len(words)):
            tokens |= {" ".join(words[first:last]) for last in range(first + 2, len(words) + 1)}
    return tokens


def predictor_tables(audit: AuditData) -> tuple[Table, ...]:
    """Tables of the strongest predictors of each of the largest classes, with their numbers."""
    labels = largest_classes(audit, MAX_CLASSES_WITH_TABLES)
    n_rows = min(MAX_TABLE_ROWS, max(MIN_TABLE_ROWS, MAX_ROWS_OF_ALL_TABLES // len(labels)))
    return tuple(
        Table(
            f"Strongest predictors of {for_display(label, IN_SENTENCE)}",
            TOKEN_COLUMNS,
            token_rows(audit.top(label, n_rows)),
            n_shown=6,
            only=PAGE,
        )
        for label in labels
    )


def largest_classes(audit: AuditData, n: int) -> list[str]:
    """The n classes of most training documents, in their own order."""
    by_size = sorted(audit.classes, key=lambda label: -audit.class_documents[label])
    return [label for label in audit.classes if label in set(by_size[:n])]


def first_class(audit: AuditData) -> str:
    """The class that the page shows first: the second of two, else that of the first finding."""
    if len(audit.classes) == 2:
        return audit.classes[1]
    label = audit.findings[0].label if audit.findings else ""
    if label in audit.classes:
        return label
    return largest_classes(audit, 1)[0]


def disagreements_section(audit: AuditData) -> Section:
    """A section on tokens to act on: those that predict a label but get little attention, and the
    reverse."""
    blocks: list[Block] = [_unsupported_attention(audit), _ignored_predictors(audit)]
    if any(isinstance(block, Table) for block in blocks):
        note = "Common words belong here; check any distinctive one."
        blocks.append(Text(note, style="note"))
    if not audit.learned.task.classifies:
        blocks.append(Text(_effect_and_posterior_of_pairs(audit), style="note"))
    return Section("Where data and model disagree", tuple(blocks), anchor="disagree", only=PAGE)


def _unsupported_attention(audit: AuditData) -> Table | Text:
    """Tokens that the model attends to and treats as evidence, although the data shows none."""
    tokens = audit.disagreement(Quadrant.MODEL, MAX_DISAGREEMENTS)
    tokens = tokens.filter(pl.col("attention") >= MIN_ATTENTION)
    if tokens.is_empty():
        return Text(
            "No frequent token receives more than twice the average attention without evidence."
        )
    values = audit.tokens.filter(pl.col("token").is_in(tokens["token"].implode()))
    strongest = values.sort("value", descending=True).unique("token", maintain_order=True)
    evidence = tokens.select("token", "documents", "attention").join(
        strongest.select("token", "class", "value"), on="token", maintain_order="left"
    )
    columns = (
        Column("Token", "token"),
        Column("Documents", "count"),
        Column("Attention", "plain", digits=1, unit="1 is average"),
        Column("The model treats it as evidence for"),
        Column("Adds to the logit", "signed"),
    )
    rows = [
        (
            row["token"],
            row["documents"],
            row["attention"],
            for_display(row["class"], IN_SENTENCE),
            row["value"],
        )
        for row in evidence.iter_rows(named=True)
    ]
    return Table("High attention without evidence", columns, rows)


def _ignored_predictors(audit: AuditData) -> Table | Text:
    """Tokens that predict a class and receive less attention than the average token."""
    tokens = audit.disagreement(Quadrant.DATA, audit.tokens.height)
    neutral = pl.col("class").replace_strict(audit.neutral, return_dtype=pl.Float64)
    certainty = (pl.col("posterior_low") - neutral) / (1 - neutral)
    tokens = tokens.filter(certainty >= MIN_CERTAINTY).head(MAX_DISAGREEMENTS)
    if tokens.is_empty():
        return Text(
            "No strong predictor receives less than the average attention: all of those that do "
            "are words and formatting that say little about the class."
        )
    columns = (
        Column("Token", "token"),
        Column("Predicts"),
        Column("Posterior difference", "interval", unit="with 95% CI"),
        Column("Documents", "count"),
        Column("Attention", "plain", digits=1, unit="1 is average"),
    )
    posterior = ("posterior_difference", "posterior_low", "posterior_high")
    rows = cells_of(tokens, "token", "class", posterior, "documents", "attention")
    return Table("Predictive, but below-average attention", columns, rows)


def _effect_and_posterior_of_pairs(audit: AuditData) -> str:
    """A sentence that says why effect and posterior difference can have opposite signs in
    preference data."""
    is_word = ~pl.col("token").str.starts_with("⟨")
    words = audit.tokens.filter(pl.col("class") == audit.classes[1], is_word)
    difference = int(words["count_difference"].to_numpy().sum())
    # posterior difference of a word used at the same rate in both answers
    even = difference / max(int(words["count"].to_numpy().sum()), 1)
    return (
        "Effect and posterior difference can contradict each other: preferred answers contain "
        f"{percent((1 + even) / 2, 0)} of all words, so a word used at the same rate in both "
        f"answers has a posterior difference of {signed(even)}, not 0. The effect compares the "
        "rates. Go by the effect, or by the wins at equal length."
    )


def pictures(audit: AuditData) -> list[Block]:
    """Maps of values and scores, and the strongest tokens, of the largest classes."""
    has_two = len(audit.classes) == 2
    labels = audit.classes[1:] if has_two else largest_classes(audit, MAX_CLASSES_PICTURED)
    blocks: list[Block] = []
    for label in labels:
        suffix = "" if has_two else f"-class-{audit.classes.index(label) + 1}"
        blocks.append(token_map(audit, label, "value", f"value{suffix}"))
        blocks.append(token_map(audit, label, "score", f"score{suffix}"))
        blocks.append(strongest_picture(audit, label, f"top{suffix}"))
    return blocks


def strongest_picture(audit: AuditData, label: str, name: str) -> Picture:
    """The strongest predictors of a class, or of both if there are two classes."""
    columns = ["token", "posterior_difference", "posterior_low", "posterior_high"]
    strongest = audit.top(label, 15).select(columns)
    second_class = None
    subtitle = f"class {for_display(label, IN_SENTENCE)}"
    if len(audit.classes) == 2:
        second_class = audit.top(audit.classes[0], 15).select(columns)
        subtitle = "both classes"
    data = {
        "top": strongest,
        "other": second_class,
        "neutral": audit.neutral[label],
        "subtitle": subtitle,
    }
    names = ", ".join(for_display(token, IN_LIST) for token in strongest["token"].head(8))
    description = f"Strongest predictors: {names}."
    return Picture(name, "audit-top", data, "Strongest predictors", description=description)


def token_map(
    audit: AuditData, label: str, of: str, name: str, marked: Sequence[str] = ()
) -> Picture:
    """Token types on the map of posterior difference and value (or score)."""
    has_two = len(audit.classes) == 2
    n_pictured = 1 if has_two else min(MAX_CLASSES_PICTURED, len(audit.classes))
    data = {
        "tokens": audit.tokens.filter(pl.col("class") == label),
        "of": of,
        "classes": audit.classes,
        "label": label,
        "neutral": audit.neutral[label],
        "seed": audit.seed,
        "limit": MAX_DOTS // (1 + 2 * n_pictured),
        "marked": tuple(marked),
    }
    class_name = for_display(label, IN_SENTENCE)
    if of == "value":
        at_the_top = f"count as evidence for {class_name} in the model"
        title = "Data against model"
    else:
        at_the_top = "get most of the model's attention"
        title = "Data against attention"
    if not has_two:
        title = f"{title} for {class_name}"
    caption = (
        f"Each dot is a token type. Those on the right occur mostly in {class_name}; those at the "
        f"top {at_the_top}. The solid line is the mean over all token types, shown or not (dotted "
        "where there are none); the grey band is one standard deviation to either side. The dashed "
        "line is where a token spread evenly over all documents would be."
    )
    if not has_two and name == "alarm":
        caption = (
            f"The picture shows the class “{class_name}”, one of {len(audit.classes)}; to see "
            f"another, choose it under “Class” and go to the map below. {caption}"
        )
    named = list(marked) or audit.top(label, 5)["token"].to_list()
    names = ", ".join(for_display(token, IN_LIST) for token in named[:8])
    return Picture(
        name=name,
        chart="audit-map",
        data=data,
        title=f"{title}, token by token",
        caption=caption,
        description=f"Map of token types for {class_name}; named: {names}.",
    )
