"""What an audit says, as blocks for page, terminal and Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import polars as pl

from tokensieve.auditing.agreement import Quadrant
from tokensieve.auditing.findings import TERMS, Excerpt, plural
from tokensieve.auditing.preferences import ALIKE
from tokensieve.auditing.score import card_blocks
from tokensieve.blocks import (
    Block,
    Column,
    Command,
    Facts,
    Live,
    Mark,
    Medium,
    Passage,
    Passages,
    Picture,
    Report,
    Section,
    Table,
    Terms,
    Text,
    Tokens,
)
from tokensieve.escape import printable, shown
from tokensieve.wording import count, percent, plain

if TYPE_CHECKING:
    from tokensieve.auditing.findings import Finding
    from tokensieve.auditing.result import Audit, Example

PAGE: tuple[Medium, ...] = ("html", "markdown")
IN_TERMINAL, ON_PAGE = 5, 9  # findings
CLASSES, PICTURED = 6, 8  # shown in the terminal and on the first screen; with pictures of their own
ROWS, WINS = 10, 40
DOTS = 2_000  # of all pictures of tokens together: the page holds them
DOCUMENTS = 10
MARKS: dict[str, Mark] = {
    Quadrant.BOTH: "full",
    Quadrant.DATA: "open",
    Quadrant.MODEL: "alarm",
    Quadrant.NEITHER: "none",
    Quadrant.RARE: "dotted",
}


def audit_report(audit: Audit) -> Report:
    """The report of an audit."""
    return Report(
        "audit",
        f"Audit of {shown(file_name(audit.name), 60)}",
        verdict(audit),
        (
            *_first_screen(audit),
            _findings(audit),
            *_preferences(audit),
            _predictors(audit),
            Live(
                "audit",
                audit,
                instead=(
                    Section("Strongest predictors, with their numbers", tuple(_class_tables(audit)), only=PAGE),
                    Section("Pictures", tuple(_pictures(audit)), only=("html",)),
                    Section("Test documents", tuple(_documents(audit)), only=PAGE),
                ),
            ),
            _disagreements(audit),
            Section("Accuracy", tuple(_accuracy(audit)), anchor="accuracy", only=PAGE),
            _data(audit),
            Section("How to read the numbers", (Terms(TERMS),), anchor="columns", folded=True, only=PAGE),
        ),
        about={
            "version": audit.version,
            "seed": audit.seed,
            "settings": audit.to_dict()["settings"],
            "seconds": {name: round(s, 1) for name, s in audit.seconds.items()},
        },
    )


def file_name(text: str) -> str:
    """The last part of a path: where a reader keeps files is no part of a page that is shared."""
    return PurePath(text).name if "/" in text or "\\" in text else text


def verdict(audit: Audit) -> str:
    """The sentence that page and terminal begin with: the most serious finding, or that there is none."""
    if audit.findings:
        return f"{audit.findings[0].headline}."
    if not audit.over_budget.is_empty():
        n = audit.over_budget["token"].n_unique()
        return f"{plural(n, 'token')} exceed{'s' * (n == 1)} the limit {audit.settings.budget}."
    return f"No shortcut, leak or label problem found in {shown(file_name(audit.name), 60)}."


def without_shortcuts(audit: Audit) -> str:
    """Accuracy with and without the shortcuts; nothing where there are none."""
    if audit.honest_accuracy is None:
        return ""
    whole, without = audit.honest_accuracy
    chance = "; the difference is within chance" if without.low <= whole.value <= without.high else ""
    return f"Accuracy {percent(whole.value)} → {without} without the shortcuts{chance}."


def mask_command(audit: Audit, tokens: Sequence[str]) -> str:
    """The command that removes tokens from the source, read and split as the audit did."""
    corpus, settings, more = audit.learned.train.corpus, audit.settings, audit.more
    given = more.get("source")
    words = ["tokensieve", "mask", given if isinstance(given, str) else "SOURCE"]
    if audit.pairs is not None:
        words += ["--pairs", ",".join(audit.pairs.columns)]
    else:
        known = corpus.intake.columns[0] if isinstance(given, str) else None
        names = corpus.fields or ((known,) if known else ())
        words += [part for name in names for part in ("--text", name)]
    for name in ("encoding", "separator"):
        if getattr(settings, name) is not None:
            words += [f"--{name}", getattr(settings, name)]
    words += ["--no-header"] * (not settings.header) + ["--keep-case"] * bool(more.get("keep_case"))
    for name in ("pattern", "stop_words"):
        if more.get(name):
            words += [f"--{name.replace('_', '-')}", str(more[name])]
    if more.get("tokenizer", "words") != "words":
        words += ["--tokenizer", str(more["tokenizer"])]
    words += [part for token in tokens for part in ("--token", token)]
    return " ".join([*(shlex.quote(printable(word)) for word in words), "--out masked.csv"])


def _first_screen(audit: Audit) -> list[Block]:
    """What was read, accuracies, the picture of the first finding, and what to do next."""
    out: list[Block] = [Text(_lead(audit), style="lead"), Facts(tuple(_accuracies(audit)))]
    if audit.honest_accuracy is not None:
        out.append(Text(without_shortcuts(audit)))
    first = audit.findings[0] if audit.findings else None
    if audit.pairs is not None:
        out.append(Text(_model_sentence(audit)))
    elif first is not None and first.tokens:
        label = first.label if first.label in audit.classes else audit.classes[-1]
        label = audit.classes[1] if len(audit.classes) == 2 else label
        out.append(_map(audit, label, "value", "alarm", first.tokens))
    gone = list(dict.fromkeys(token for f in audit.findings if f.kind == "shortcut" for token in f.maskable))
    if gone:
        where = " in both answers" if audit.pairs is not None else ""
        out.append(
            Command(
                mask_command(audit, gone), f"Remove {plural(len(gone), 'shortcut token')}{where}, then audit again:"
            )
        )
    else:
        out.append(
            Text("Next, read the strongest predictors of each class with someone who knows the data.", only=PAGE)
        )
    return out


def _lead(audit: Audit) -> str:
    if audit.pairs is None:
        n = audit.documents
        return (
            f"{plural(n['train'], 'training document')} and {plural(n['test'], 'test document')} in {len(audit.classes):,} "
            f"classes, {plural(audit.token_types, 'token type')}."
        )
    pairs, units, groups = audit.pairs.pairs, audit.pairs.units, ""
    if audit.pairs.by:
        groups = f" of {count(units['train'])} and {count(units['test'])} groups ({shown(audit.pairs.by, 40)})"
    sizes = f"{count(pairs['train'])} training and {plural(pairs['test'], 'test pair')}"
    return f"{sizes}{groups}, {plural(audit.token_types, 'token type')}."


def _accuracies(audit: Audit) -> list[tuple[str, str, str]]:
    """Name, value and interval of each accuracy."""
    share = audit.accuracy
    ends = f"95% CI {percent(share.low)} to {percent(share.high)}"
    out = [("Test accuracy" if audit.pairs is None else "Preferred answer predicted", percent(share.value), ends)]
    if audit.baseline_accuracy is not None:
        out.append(("TF-IDF + logistic regression", percent(audit.baseline_accuracy), ""))
    if audit.pairs is not None:
        return [
            *out,
            ("The longer answer", percent(audit.pairs.longer["test"].value), ""),
            ("Chance", percent(0.5), ""),
        ]
    return [*out, ("Always the largest class", percent(audit.majority_accuracy), "")]


def _model_sentence(audit: Audit) -> str:
    """How well the model names preferred answers, and what is left at similar length."""
    assert audit.pairs is not None
    like, longer = audit.pairs.like_length
    return (
        f"In the {count(like.of)} test pairs whose lengths are within {round(100 * (ALIKE - 1))}% of each other, the model "
        f"predicts the preferred answer in {like}; the longer answer wins {longer}."
    )


def _findings(audit: Audit) -> Section:
    blocks: list[Block] = []
    if audit.fails:
        over = audit.over_budget["token"].unique(maintain_order=True).to_list()
        what = [shown(token, 40) for token in over[:12]] + list(audit.exceeded)
        rows = " Every row to review is in over-budget.csv." if over else ""
        blocks.append(Text(f"Over the limit {audit.settings.budget}: {', '.join(what)}.{rows}", style="bad"))
    found = audit.findings
    limits: tuple[tuple[int, tuple[Medium, ...]], ...] = ((IN_TERMINAL, ("terminal",)), (ON_PAGE, PAGE))
    for i, finding in enumerate(found[:ON_PAGE]):
        blocks.append(_card(audit, finding, i))
    for shown_ones, only in limits:
        if len(found) > shown_ones:
            more = len(found) - shown_ones
            text = f"{plural(more, 'more finding')} {'is' if more == 1 else 'are'} in findings.json."
            blocks.append(Text(text, style="note", only=only))
    if found:
        blocks.append(
            Text("Every document of every finding is listed by row in findings.csv.", style="note", only=PAGE)
        )
    else:
        blocks.append(
            Text(
                "None of the checks found anything to act on. That does not prove that there is nothing: read the strongest "
                "predictors with someone who knows the data.",
                only=PAGE,
            )
        )
    return Section("Findings, most serious first" if found else "Findings", tuple(blocks), anchor="found")


def _card(audit: Audit, finding: Finding, i: int) -> Section:
    """A finding; the first one's headline is the verdict of the report already."""
    lines = list(finding.details)
    head = f"{finding.headline}."
    if i == 0 and lines:
        first = lines.pop(0)
        head = f"{first[:1].upper()}{first[1:]}."
    blocks: list[Block] = [Text(head)]
    if finding.tokens:
        blocks.append(Tokens("", finding.tokens[:12], max(0, len(finding.tokens) - 12), only=PAGE))
    blocks += [Text(f"{line[:1].upper()}{line[1:]}.", style="note", only=PAGE) for line in lines]
    if finding.examples:
        labels = finding.kind == "labels"
        passages = tuple(_line(one, labels) for one in finding.examples[: 3 if labels else 2])
        blocks.append(Passages("", passages, only=PAGE))
    blocks.append(Text(finding.action, only=PAGE))
    if finding.kind == "shortcut" and finding.maskable and i > 0:
        blocks.append(Command(mask_command(audit, finding.maskable), only=PAGE))
    only = PAGE if i >= IN_TERMINAL else ("terminal", *PAGE)
    return Section(finding.title, tuple(blocks), level=finding.level.value, folded=i >= 2, only=only)


def _line(one: Excerpt, on_train: bool) -> Passage:
    """A line of a document with the token marked."""
    pieces = ((one.before[-400:], 0.0), (one.token, 1.0), (one.after[:400], 0.0))
    note = f"looks like {shown(one.looks_like, 30)}" if one.looks_like else ""
    kept = tuple(piece for piece in pieces if piece[0])
    return Passage(kept, shown(one.label, 30), one.row, note, part="train" if on_train else "")


def _preferences(audit: Audit) -> list[Block]:
    """What wins and what loses at equal length."""
    if audit.pairs is None:
        return []
    columns = (
        Column("Token", "token"),
        Column("Pairs", "count"),
        Column("Wins", "rate", bar=True),
        Column("Wins at equal length", "rate", bar=True),
        Column("q", "chance", extra=True),
    )
    out: list[Block] = []
    for wins, name in ((True, "What wins"), (False, "What loses")):
        rows = [
            (
                r["token"],
                r["pairs"],
                (r["win_rate"], r["low"], r["high"]),
                (r["equal_length_win_rate"], r["equal_length_low"], r["equal_length_high"]),
                r["equal_length_q_value"],
            )
            for r in audit.pairs.top(wins, WINS).iter_rows(named=True)
        ]
        if rows:
            out.append(
                Table(
                    f"{name}, also at equal length: training pairs in which only one answer contains it", columns, rows
                )
            )
    note = (
        "Both rates come from a Bradley–Terry model of the pairs, with half a win and half a loss added; the second holds "
        "length fixed. Every token's rates are in pairs.csv."
    )
    return [Section("What is rewarded", (*out, Text(note, style="note", only=PAGE)), anchor="wins")] if out else []


def _predictors(audit: Audit) -> Section:
    """The strongest predictors of each class: a neutral summary, which accuses nobody."""
    shown_classes = audit.classes[: CLASSES * 5]
    suspected = {token for finding in audit.findings if finding.kind == "shortcut" for token in finding.tokens}
    blocks: list[Block] = []
    for i, label in enumerate(shown_classes):
        tokens = tuple(token for token in audit.top(label, 3 * ROWS)["token"] if token not in suspected)[:ROWS]
        if tokens:
            blocks.append(Tokens(shown(label, 40), tokens, only=PAGE if i >= CLASSES else ("terminal", *PAGE)))
    more = len(audit.classes) - len(shown_classes)
    if more > 0:
        blocks.append(Text(f"{plural(more, 'more class', 'more classes')} in tokens.csv.", style="note", only=PAGE))
    note = "Most of these are what the labels are about. They show what predicts each class and need not be removed."
    if blocks:
        blocks.insert(0, Text(note, style="note", only=PAGE))
    else:
        blocks.append(Text("No token predicts a class (q < 0.05 in at least 5 documents).", style="note"))
    return Section("Strongest predictors of each class", tuple(blocks), anchor="predictors")


def _class_tables(audit: Audit) -> list[Block]:
    labels = sorted(audit.classes, key=lambda label: -audit.class_documents[label])[:50]
    rows = min(25, max(ROWS, 300 // len(labels)))
    return [
        Table(
            f"Strongest predictors of {shown(label, 40)}", _COLUMNS, _rows(audit.top(label, rows)), first=6, only=PAGE
        )
        for label in audit.classes
        if label in labels
    ]


_COLUMNS = (
    Column("Token", "token"),
    Column("Effect per 1,000 tokens", "interval", bar=True, unit="with 95% CI"),
    Column("Documents", "count"),
    Column("Posterior difference", "interval", unit="with 95% CI"),
    Column("Attention", "plain", digits=1, unit="1 is average", extra=True),
    Column("Data and model", "text", marks=MARKS),
)


def _rows(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    return [
        (
            row["token"],
            tuple(1000 * row[name] for name in ("effect", "effect_low", "effect_high")),
            row["documents"],
            (row["posterior_difference"], row["posterior_low"], row["posterior_high"]),
            row["attention"],
            row["quadrant"],
        )
        for row in table.iter_rows(named=True)
    ]


def _pictures(audit: Audit) -> list[Block]:
    """Of the largest classes the map of values and of scores, and the strongest tokens; of two classes of the second."""
    if len(audit.classes) == 2:
        labels = [audit.classes[1]]
    else:
        largest = sorted(audit.classes, key=lambda label: -audit.class_documents[label])[:PICTURED]
        labels = [label for label in audit.classes if label in largest]
    out: list[Block] = []
    for label in labels:
        suffix = "" if len(audit.classes) == 2 else f"-class-{audit.classes.index(label) + 1}"
        out += [_map(audit, label, of, f"{of}{suffix}") for of in ("value", "score")]
        columns = ["token", "posterior_difference", "posterior_low", "posterior_high"]
        data: dict[str, Any] = {
            "top": audit.top(label, 15).select(columns),
            "other": None,
            "neutral": audit.neutral[label],
        }
        if len(audit.classes) == 2:
            data["other"] = audit.top(audit.classes[0], 15).select(columns)
        data["subtitle"] = "both classes" if len(audit.classes) == 2 else f"class {shown(label, 40)}"
        listing = ", ".join(shown(token, 24) for token in data["top"]["token"].head(8))
        out.append(
            Picture(
                f"top{suffix}",
                "audit-top",
                data,
                "Strongest predictors",
                description=f"Strongest predictors: {listing}.",
            )
        )
    return out


def _map(audit: Audit, label: str, of: str, name: str, marked: Sequence[str] = ()) -> Picture:
    """Token types on the map of posterior difference and value (or score)."""
    data = {
        "tokens": audit.tokens.filter(pl.col("class") == label),
        "of": of,
        "classes": audit.classes,
        "label": label,
        "neutral": audit.neutral[label],
        "seed": audit.seed,
        "limit": DOTS // (1 + 2 * (1 if len(audit.classes) == 2 else min(PICTURED, len(audit.classes)))),
        "marked": tuple(marked),
    }
    own = shown(label, 40)
    up = f"what the model treats as evidence for {own}" if of == "value" else "what the model attends to"
    title = f"What the data shows against {'what the model learned' if of == 'value' else 'attention'}"
    listing = ", ".join(shown(token, 24) for token in (marked or audit.top(label, 5)["token"].to_list())[:8])
    return Picture(
        name,
        "audit-map",
        data,
        title,
        f"Each dot is a token type: to the right those mostly in {own}, up {up}.",
        f"Map of token types for {own}; named: {listing}.",
        wide=bool(marked),
    )


def _disagreements(audit: Audit) -> Section:
    """Where what the data shows and what the model attends to differ."""
    out: list[Block] = []
    for quadrant, title, nothing in (
        (Quadrant.MODEL, "Attended to without evidence", "No frequent token is attended to without evidence."),
        (
            Quadrant.DATA,
            "Associated with the label but given below-average attention",
            "No frequent predictor is ignored.",
        ),
    ):
        found = audit.disagreement(quadrant, 15)
        columns = (Column("Class", "text"), *_COLUMNS[:-1])
        rows = [
            (row["class"], *cells[:-1]) for row, cells in zip(found.iter_rows(named=True), _rows(found), strict=True)
        ]
        ordered = [(cells[1], cells[0], *cells[2:]) for cells in rows]
        head = (columns[1], columns[0], *columns[2:])
        out.append(Table(title, head, ordered) if rows else Text(nothing))
    out.append(Text("Common words belong here; check any distinctive one.", style="note"))
    return Section("Where data and model disagree", tuple(out), anchor="disagree", only=PAGE)


def _documents(audit: Audit) -> list[Block]:
    """Test documents, shaded by contribution."""
    if not audit.examples:
        return [Text("There are no test documents to show.")]
    return [Passages("", tuple(_document(one) for one in audit.examples[:DOCUMENTS]), short=False)]


def _document(example: Example) -> Passage:
    correct = example.label == example.predicted
    note = f"predicted {shown(example.predicted, 30)} with probability {percent(example.probability)}"
    pieces = tuple((piece[0], piece[1]) for piece in example.pieces)
    return Passage(pieces, shown(example.label, 30), example.row, note, "good" if correct else "bad")


def _accuracy(audit: Audit) -> list[Block]:
    out: list[Block] = []
    if audit.pairs is None:
        low, high = audit.accuracy.low, audit.accuracy.high
        if low <= audit.majority_accuracy:
            out.append(
                Text(
                    "The model is not clearly better than always predicting the largest class: tokens alone may not predict these "
                    "labels, or there are too few documents. Draw no conclusion from single tokens yet.",
                    style="warning",
                )
            )
        if audit.baseline_accuracy is not None and high < audit.baseline_accuracy:
            points = plain(100 * (audit.baseline_accuracy - audit.test_accuracy), 1)
            out.append(
                Text(f"TF-IDF with logistic regression is {points} points better: try longer n-grams.", style="warning")
            )
    both, ignored = audit.quadrants[Quadrant.BOTH], audit.quadrants[Quadrant.DATA]
    out.append(
        Text(
            f"{count(both + ignored)} of {plural(audit.token_types, 'token type')} predict the label (q < 0.05): the model "
            f"attends to {count(both)} of them and ignores {count(ignored)}."
        )
    )
    return out + ([] if audit.card is None else card_blocks(audit.card, audit.classes))


def _data(audit: Audit) -> Section:
    """What was counted while reading, and the size of each class."""
    notes: list[Block] = [
        Text(
            f"{shown(note[:1].upper() + note[1:], 400)}.", style="warning", only=("terminal", *PAGE) if i < 3 else PAGE
        )
        for i, note in enumerate(audit.notes[:100])
    ]
    unknown = f"{percent(audit.unknown_share)} of the words in the test documents are unknown to the model."
    columns = (Column("Class", "text"), Column("Training documents", "count"), Column("Uninformative token", "signed"))
    rows = [(shown(label, 60), audit.class_documents[label], audit.neutral[label]) for label in audit.classes[:100]]
    sizes = Table("Documents of each class", columns, rows, only=PAGE, note="Uninformative: its posterior difference.")
    return Section("The data", (*notes, Text(unknown, only=PAGE), sizes), anchor="data")
