"""What an audit says, as blocks for page, terminal and Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.auditing.phrases import quoted
from tokensieve.auditing.preferences import ALIKE
from tokensieve.escape import for_display
from tokensieve.report.blocks import (
    Block,
    Column,
    Command,
    Facts,
    FindingTokens,
    InteractiveAudit,
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
from tokensieve.task.agreement import QUADRANTS, Quadrant
from tokensieve.task.tasks import Preferences, Task
from tokensieve.wording import count, noun, percent, plain, plural, signed, verb

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

PAGE: tuple[Medium, ...] = ("html", "markdown")
IN_TERMINAL, ON_PAGE = 5, 9  # findings
CLASSES, PICTURED = (
    6,
    8,
)  # shown in the terminal and on the first screen; with pictures of their own
MARKS: dict[str, Mark] = {
    "predictive, high attention": "full",
    "predictive, low attention": "open",
    "high attention, no evidence": "alarm",
    "neither": "none",
    "too rare to tell": "dotted",
}
_COLUMNS = (
    Column("Token", "token"),
    Column("Effect per 1,000 tokens", "interval", bar=True, unit="with 95% CI"),
    Column("Documents", "count"),
    Column("Posterior difference", "interval", unit="with 95% CI"),
    Column("Attention", "plain", digits=1, unit="1 is average", extra=True),
    Column("Data and model", "text", marks=MARKS),
)
# the columns of an audit's tables, for readers of a page
TERMS = {
    "Effect": "How much more a token is used in the class than elsewhere: the mean over documents of the token's fraction of the "
    "document, counted as negative outside the class and corrected for unequal classes. The interval counts documents, not "
    "occurrences.",
    "Posterior difference": "How exclusively a token belongs to the class: (occurrences in the class − occurrences elsewhere) / "
    "all occurrences, from −1 (never in the class) to +1 (only in it). With unequal classes an uninformative token is not at 0. "
    "Long documents count more here than in the effect, so the two can have opposite signs; q tests the effect.",
    "q": "Benjamini–Hochberg false-discovery rate: of the tokens with q below 0.05, at most about one in twenty predicts "
    "nothing.",
    "Score": "How strongly a token draws attention: a document's attention is the softmax of its tokens' scores.",
    "Value": "What a token adds to the logit when attended to; above zero it is evidence for the class.",
    "Attention": "Mean attention to the token in documents containing it, relative to the average token; 1 is average.",
    "Data and model": "Whether the token predicts the label (q below 0.05 for any class), and whether it receives "
    "above-average attention. No evidence: its interval is tight around zero for every class. Too rare to tell: neither can "
    "be shown.",
}


def audit_report(audit: Audit) -> Report:
    """The report of an audit."""
    lead, figures, said, rewarded, warnings, where = _of_task(audit.learned.task, audit)
    values = (
        [("TF-IDF + logistic regression", audit.baseline_accuracy)]
        if audit.baseline_accuracy is not None
        else []
    )
    interval = f"95% CI {percent(audit.accuracy.low)} to {percent(audit.accuracy.high)}"
    facts = [(figures[0], percent(audit.accuracy.value), interval)]
    facts += [(name, percent(value), "") for name, value in [*values, *figures[1]]]
    lead = f"{lead}, {plural(audit.token_types, 'token type')} (distinct words and formatting)."
    marked = audit.findings[0].tokens if audit.findings else ()
    first = _token_map(audit, first_class(audit), "value", "alarm", marked)
    screen: list[Block] = [Text(lead, style="lead"), first, Facts(tuple(facts))]
    both, ignored = audit.quadrants[Quadrant.BOTH], audit.quadrants[Quadrant.DATA]
    none = (
        "No shortcut was found"
        if both + ignored and all(one.kind != "shortcut" for one in audit.findings)
        else ""
    )
    verdict = _verdict(audit, none)
    if none and audit.findings and not verdict.startswith(none):
        screen.append(Text(f"{none}."))
    screen += [Text(audit.without_shortcuts)] * (audit.honest_accuracy is not None) + said
    other = bool(
        audit.findings and not audit.maskable(audit.findings[0])
    )  # the command is about other findings
    ahead = dict[str, None]()
    if other:
        screen.append(Text(audit.findings[0].action, style="next", only=PAGE))
        masked = next(
            (i for i, f in enumerate(audit.findings) if f.kind == "shortcut" and audit.maskable(f)),
            None,
        )
        ahead = dict.fromkeys(f.title for f in audit.findings[1:masked])
        if ahead and audit.learned.task.classifies:
            order = ", in this order" * (len(ahead) > 1)
            screen.append(Text(f"Then go through {quoted(tuple(ahead))} below{order}.", only=PAGE))
    # no command for what is not serious where something else comes first
    shortcuts = [
        f for f in audit.findings if f.kind == "shortcut" and not (other and f.level == "low")
    ]
    gone = list(dict.fromkeys(token for finding in shortcuts for token in audit.to_mask(finding)))
    if gone and where and other:  # of pairs, cutting words mends neither length nor formatting
        screen.append(Text("Next, read “What is rewarded” below.", only=PAGE))
    elif gone:
        words = [token for finding in shortcuts for token in audit.maskable(finding)]
        named = f"all {len(gone)} shortcut tokens"
        named = f"the {noun(len(gone), 'shortcut')} {quoted(gone)}" if len(gone) < 4 else named
        if len(gone) > len(words) and all("/" in word for word in words):
            named = f"all ratings such as {quoted(words, 2)}"
        elif not set(gone) & set(words):
            named = f"the phrase around {quoted(words)} in all its variants"
        mask, again, compare = audit.mask_commands(gone, whole=audit.over_budget.is_empty())
        purpose = f"{'Also remove' if other else 'Remove'} {named}{where}{':' if again else ', then audit again:'}"
        screen.append(Command(mask, purpose))
        then = "Then audit the copy (the accuracy can differ slightly from the one given here, because the model is trained again):"
        screen += [
            Command(again, then),
            Command(compare, "Finally, compare the two audits:"),
        ] * bool(again)
    else:
        text = f"{'Finally' if other and ahead else 'Next'}, go through the strongest predictors with someone who knows the data."
        screen.append(Text(text, only=PAGE))
    documents: Block = Text("There are no test documents to show.")
    documents = Passages("", tuple(audit.examples), short=False) if audit.examples else documents
    predictive = Text(
        f"{count(both + ignored)} of {plural(audit.token_types, 'token type')} predict the label (q < 0.05). {count(both)} of "
        f"them receive above-average attention from the model; {count(ignored)} do not."
    )
    labels = _largest(audit, 50)
    rows, name = min(25, max(10, 300 // len(labels))), "Strongest predictors of "
    tables = (
        Table(
            name + for_display(x, 40), _COLUMNS, _token_rows(audit.top(x, rows)), first=6, only=PAGE
        )
        for x in labels
    )
    instead = (
        Section("Strongest predictors, with their numbers", tuple(tables), only=PAGE),
        Section("Pictures", tuple(_pictures(audit)), only=("html",)),
        Section("Test documents", (documents,), only=PAGE),
    )
    card, terms = (
        () if audit.card is None else audit.card.blocks(audit.classes),
        Terms(tuple(TERMS.items())),
    )
    return Report(
        "audit",
        f"Audit of {for_display(audit.name, 60, path=True)}",
        verdict,
        (
            *screen,
            _findings(audit),
            *rewarded,
            _predictors(audit),
            interactive_part(audit, instead),
            _disagreements(audit),
            Section("Accuracy", (*warnings, predictive, *card), anchor="accuracy", only=PAGE),
            _reading_notes(audit),
            Section("How to read the numbers", (terms,), anchor="columns", folded=True, only=PAGE),
        ),
        about={
            "version": audit.version,
            "seed": audit.seed,
            "settings": audit.to_dict()["settings"],
        },
    )


def interactive_part(audit: Audit, instead: tuple[Block, ...] = ()) -> InteractiveAudit:
    """What the scripts of the page draw; `instead` is for media without scripts."""
    disagreeing = [audit.disagreement(quadrant, 15) for quadrant in (Quadrant.MODEL, Quadrant.DATA)]
    right, wrong = audit.by_certainty
    return InteractiveAudit(
        learned=audit.learned,
        tokens=audit.tokens,
        neutral=audit.neutral,
        seed=audit.seed,
        first_class=first_class(audit),
        findings=tuple(
            FindingTokens(finding.label, finding.tokens[:8], finding.rows)
            for finding in audit.findings
        ),
        top_tokens=audit.top_of_each_class(25),
        disagreeing=tuple(token for table in disagreeing for token in table["token"]),
        maskable=tuple(
            token for finding in audit.findings for token in audit.maskable(finding)[:1]
        ),
        right=right,
        wrong=wrong,
        instead=instead,
    )


def exceeded_report(audit: Audit, out: Path) -> Report:
    """What exceeds the limits of --fail-on, which rows to review, and how to go on without these tokens; `out` holds the audit."""
    over, n = audit.over_budget, audit.documents["train"]
    blocks: list[Block] = [
        Text(f"Too many findings of this kind: {kind}.", style="bad") for kind in audit.exceeded
    ]
    if not over.is_empty():
        rows = []
        for row in over.iter_rows(named=True):
            where = audit.to_review.filter(
                pl.col("token") == row["token"], pl.col("part") == "train"
            )["row"]
            listed = ", ".join(map(str, where.head(5))) + (", …" if len(where) > 5 else "")
            cells = row["posterior_difference"], row["documents"], row["documents"] / n, listed
            rows.append((row["token"], for_display(row["class"], 30), *cells))
        columns: tuple[Column, ...] = (Column("Token", "token"), Column("Class"))
        columns += (
            Column("Posterior difference", "signed", digits=3),
            Column("Documents", "count"),
        )
        columns += (Column("Of all", "percent"), Column("Rows"))
        sources, copy = audit.mask_paths
        command = f"tokensieve {shlex.join(['mask', *sources, '--audit', str(out), '--out', copy])}"
        blocks += [
            Table("", columns, rows, first=20),
            Text(f"Every row to review is in {out / 'over-budget.csv'}."),
            Command(command, "Copy the data without these tokens:"),
        ]
    tokens, kinds = over["token"].n_unique(), len(audit.exceeded)
    what = [plural(tokens, "token")] * bool(tokens) + [
        f"{plural(kinds, 'kind')} of finding"
    ] * bool(kinds)
    verdict = (
        f"{' and '.join(what)} {verb(tokens + kinds, 'exceed')} the limit {audit.settings.budget}."
    )
    return Report("audit", "--fail-on", verdict, tuple(blocks))


OfTask = tuple[str, tuple[str, list[tuple[str, float]]], list[Block], list[Block], list[Block], str]


@singledispatch
def _of_task(task: Task, audit: Audit) -> OfTask:
    """The parts of the report that depend on the task: what was read, the name of the accuracy with other accuracies, further
    sentences of the first screen (what few words predict), what is rewarded (nothing), warnings, and where a mask applies."""
    n = audit.documents
    train, test = plural(n["train"], "training document"), plural(n["test"], "test document")
    warnings: list[Block] = []
    if audit.accuracy.low <= audit.majority_accuracy:
        text = (
            "The model is not clearly better than always predicting the largest class: tokens alone may not predict these "
            "labels, or there are too few documents. Draw no conclusion from single tokens yet."
        )
        warnings.append(Text(text, style="warning"))
    if audit.baseline_accuracy is not None and audit.accuracy.high < audit.baseline_accuracy:
        points = plain(100 * (audit.baseline_accuracy - audit.test_accuracy), 1)
        text = (
            f"TF-IDF with logistic regression is {points} points more accurate; try longer n-grams."
        )
        warnings.append(Text(text, style="warning"))
    figures = "Test accuracy", [("Always predicting the largest class", audit.majority_accuracy)]
    few: list[Block] = []
    if audit.few_words and (alone := audit.few_words[1]):
        words = ", ".join(quoted([token]) for token in audit.few_words[0][:3])
        most = f"the {len(audit.few_words[0])} most informative words ({words}, …)"
        model = "better than" if alone.value > audit.accuracy.high else "about as well as"
        model = f", {model} the model" * (alone.value >= audit.accuracy.low)
        few = [
            Text(
                f"By themselves, {most} and the text's length predict {percent(alone.value)} of test labels{model}."
            )
        ]
    return f"{train} and {test} in {len(audit.classes):,} classes", figures, few, [], warnings, ""


@_of_task.register(Preferences)
def _of_pairs(task: Preferences, audit: Audit) -> OfTask:
    """The same for preference pairs, with the tokens that win and lose at equal length."""
    facts = audit.pairs
    assert facts is not None
    by = facts.by and for_display(facts.by, 40)
    sides = []
    for side, name in (("train", "training pair"), ("test", "test pair")):
        groups = f" in {plural(facts.units[side], 'group')} ({by})" if by else ""
        groups = f" in {plural(facts.units[side], 'prompt')}" if by == "prompt" else groups
        sides.append(f"{plural(facts.pairs[side], name)}{groups}")
    lead = " and ".join(sides)
    like, longer = facts.like_length
    sentence = (
        f"In the {plural(like.of, 'test pair')} of similar length (within {round(100 * (ALIKE - 1))}%), the model picks the "
        f"preferred answer {like} of the time. The longer one wins {longer} of those that differ in length."
        if longer.of
        else f"There are too few test pairs of similar length (within {round(100 * (ALIKE - 1))}%) to compare."
    )
    columns: tuple[Column, ...] = (
        Column("Token", "token"),
        Column("Pairs", "count"),
        Column("Wins", "rate", bar=True),
    )
    columns += (Column("Wins at equal length", "rate", bar=True), Column("q", "chance", extra=True))
    tables: list[Block] = []
    ends = ("win_rate", "low", "high")
    cells = (
        "token",
        "pairs",
        ends,
        tuple(f"equal_length_{end}" for end in ends),
        "equal_length_q_value",
    )
    for wins, name in ((True, "What wins"), (False, "What loses")):
        rows = _cells(facts.top(wins, 15), *cells)
        title = f"{name}, overall and at equal length (training pairs in which only one answer contains the token)"
        tables += [Table(title, columns, rows)] if rows else []
    note = (
        "Both rates come from a Bradley–Terry model of the pairs, with half a win and half a loss added; the second holds "
        "length fixed. pairs.csv has the rates of every token."
    )
    blocks = (*tables, Text(note, style="note", only=PAGE))
    rewarded: list[Block] = [Section("What is rewarded", blocks, anchor="wins")] if tables else []
    figures = (
        "Test accuracy",
        [("Always picking the longer answer", facts.longer["test"].value), ("Chance", 0.5)],
    )
    return lead, figures, [Text(sentence)], rewarded, [], " in both answers"


def _verdict(audit: Audit, none: str) -> str:
    """The sentence that page and terminal begin with: the most serious finding, or that there is none. `none` says that there is no
    shortcut, and comes first where nothing is more serious than low; empty where there is one, or none could have been found."""
    if audit.findings:
        first = audit.findings[0].headline
        if none and all(finding.level == "low" for finding in audit.findings):
            first = f"{none}; {first[:1].lower()}{first[1:]}"
        return f"{first}."
    if not audit.over_budget.is_empty():
        n = audit.over_budget["token"].n_unique()
        return f"{plural(n, 'token')} {verb(n, 'exceed')} the limit {audit.settings.budget}."
    where = for_display(audit.name, 60, path=True)
    if (
        audit.quadrants[Quadrant.BOTH] + audit.quadrants[Quadrant.DATA] == 0
    ):  # then none could have been found
        units, of = audit.learned.train.corpus.units, ""
        if units is not None:
            of = f" (the training documents form {plural(np.unique(units).size, 'group')}, and each counts once)"
        return f"No token in {where} predicts the label better than chance{of}, so this audit cannot assess shortcuts."
    nothing = f"No shortcut, leak or label problem found in {where}"
    if audit.accuracy.low < max(0.95, audit.majority_accuracy):
        return f"{nothing}."
    words, right = quoted(audit.top(rows=3)["token"].to_list()), percent(audit.accuracy.value)
    return f"{nothing}, but the model predicts {right} of test labels with words such as {words}; check if they define the label."


def _findings(audit: Audit) -> Section:
    blocks: list[Block] = []
    if audit.fails:
        over = audit.over_budget["token"].unique(maintain_order=True).to_list()
        what = [for_display(token, 40) for token in over[:12]] + list(audit.exceeded)
        rows = " Every row to review is in over-budget.csv." if over else ""
        text = f"This audit exceeds the limit {audit.settings.budget}: {', '.join(what)}.{rows}"
        blocks.append(Text(text, style="bad"))
    elif audit.settings.budget is not None:
        blocks.append(Text(f"Nothing exceeds the limit {audit.settings.budget}.", style="good"))
    found = audit.findings
    blocks += [_finding_card(audit, finding, i) for i, finding in enumerate(found[:ON_PAGE])]
    in_terminal: tuple[Medium, ...] = ("terminal",)
    for more, only in ((len(found) - IN_TERMINAL, in_terminal), (len(found) - ON_PAGE, PAGE)):
        text = f"{plural(more, 'more finding')} {verb(more, 'are', 'is')} in findings.json."
        blocks += [Text(text, style="note", only=only)] * (more > 0)
    text = (
        "None of the checks found anything to act on. That does not prove that there is nothing: read the strongest predictors "
        "with someone who knows the data."
    )
    if found:
        text = "Every document of every finding is listed by row in findings.csv."
    blocks.append(Text(text, style="note" if found else "plain", only=PAGE))
    return Section(
        "Findings, most serious first" if found else "Findings", tuple(blocks), anchor="found"
    )


def _finding_card(audit: Audit, finding: Finding, i: int) -> Section:
    """A finding; the first one's headline is the verdict of the report already."""
    head, lines = finding.headline, list(finding.details)
    if i == 0 and lines:
        head = lines.pop(0)
    blocks: list[Block] = [Text(_sentence(head))]
    unnamed = finding.tokens and quoted(finding.tokens) not in head  # the page names them below
    if head != finding.headline and unnamed:
        named = Text(f"{quoted(finding.tokens, 3)}: {head}.", only=("terminal",))
        blocks = [Text(_sentence(head), only=PAGE), named]
    if finding.tokens:
        blocks.append(Tokens("", finding.tokens[:12], max(0, len(finding.tokens) - 12), only=PAGE))
    blocks += [Text(_sentence(line), style="note", only=PAGE) for line in lines]
    if finding.examples:
        labels = finding.kind == "labels"
        passages, both = [], finding.kind == "leak" and len(finding.examples) > 1
        twins = ("test document", "training document") if both else ("",)
        for place, one in enumerate(
            finding.examples[: {"labels": 3, "leak": 4}.get(finding.kind, 2)]
        ):
            pieces = ((one.before[-400:], 0.0), (one.token, 1.0), (one.after[:400], 0.0))
            note = (
                f"looks like {for_display(one.looks_like, 30)}"
                if one.looks_like
                else twins[place % len(twins)]
            )
            kept = tuple(piece for piece in pieces if piece[0])
            passages.append(
                Passage(
                    kept, for_display(one.label, 30), one.row, note, part="train" if labels else ""
                )
            )
        blocks.append(Passages("", tuple(passages), only=PAGE))
    maskable = audit.to_mask(finding)
    if i > 0 or maskable:  # of others the first screen says what to do about the first
        blocks.append(Text(finding.action, only=PAGE))
    # of pairs, the first screen prints no commands where length or formatting comes first
    others = (one for one in audit.findings if one.kind == "shortcut" and one is not finding)
    whole = (
        not audit.learned.task.classifies
        and audit.invocation is not None
        and audit.over_budget.is_empty()
    )
    whole = whole and not any(map(audit.maskable, others))
    if (
        finding.kind == "shortcut"
        and i > 0
        and maskable
        and (whole or len(maskable) <= audit.most_named)
    ):
        commands = audit.mask_commands(maskable, whole)[: 1 if audit.learned.task.classifies else 3]
        blocks += [Command(command, only=PAGE) for command in commands if command]
    only = PAGE if i >= IN_TERMINAL else ("terminal", *PAGE)
    return Section(finding.title, tuple(blocks), level=finding.level, folded=i >= 2, only=only)


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def _predictors(audit: Audit) -> Section:
    """The strongest predictors of each class: a neutral summary, which accuses nobody."""
    suspected = {
        token
        for finding in audit.findings
        if finding.kind == "shortcut"
        for token in finding.tokens
    }
    suspected |= {word for token in suspected for word in token.split(" ")}
    blocks: list[Block] = []
    for i, label in enumerate(audit.classes[: CLASSES * 5]):
        tokens = tuple(token for token in audit.top(label, 30)["token"] if token not in suspected)[
            :10
        ]
        if tokens:
            blocks.append(
                Tokens(
                    for_display(label, 40),
                    tokens,
                    only=PAGE if i >= CLASSES else ("terminal", *PAGE),
                )
            )
    more = len(audit.classes) - CLASSES * 5
    if more > 0:
        blocks.append(
            Text(
                f"{plural(more, 'more class', 'more classes')} in tokens.csv.",
                style="note",
                only=PAGE,
            )
        )
    note = "Most of these are what the labels are about. They show what predicts each class and need not be removed."
    if blocks:
        blocks.insert(0, Text(note, style="note", only=PAGE))
    else:
        none = (
            "No token predicts" if not suspected else "Apart from the shortcuts, no token predicts"
        )
        blocks.append(Text(f"{none} a class (q < 0.05 in at least 5 documents).", style="note"))
    return Section("Strongest predictors of each class", tuple(blocks), anchor="predictors")


def _largest(audit: Audit, most: int) -> list[str]:
    """The classes of most training documents, in their own order."""
    largest = set(sorted(audit.classes, key=lambda label: -audit.class_documents[label])[:most])
    return [label for label in audit.classes if label in largest]


def _token_rows(table: pl.DataFrame) -> list[tuple[object, ...]]:
    effects = "effect", "effect_low", "effect_high"
    posteriors = "posterior_difference", "posterior_low", "posterior_high"
    quadrant = pl.col("quadrant").replace(
        dict(zip(QUADRANTS, MARKS, strict=True))
    )  # as the page says it
    per_1000 = table.with_columns(pl.col(effects) * 1000, quadrant)
    return _cells(per_1000, "token", effects, "documents", posteriors, "attention", "quadrant")


def _cells(table: pl.DataFrame, *columns: str | tuple[str, ...]) -> list[tuple[object, ...]]:
    """The rows of a table for a page; several columns may make up one cell."""
    return [
        tuple(row[name] if isinstance(name, str) else tuple(map(row.get, name)) for name in columns)
        for row in table.iter_rows(named=True)
    ]


def first_class(audit: Audit) -> str:
    """The class that the page shows first: the second of two, else that of the first finding, else the largest."""
    if len(audit.classes) == 2:
        return audit.classes[1]
    label = audit.findings[0].label if audit.findings else ""
    return label if label in audit.classes else _largest(audit, 1)[0]


def _pictures(audit: Audit) -> list[Block]:
    """For the largest classes (the second of two), the map of values and of scores, and the strongest tokens."""
    two = len(audit.classes) == 2
    out: list[Block] = []
    for label in audit.classes[1:] if two else _largest(audit, PICTURED):
        suffix = "" if two else f"-class-{audit.classes.index(label) + 1}"
        columns = ["token", "posterior_difference", "posterior_low", "posterior_high"]
        top = audit.top(label, 15).select(columns)
        data = {
            "top": top,
            "other": audit.top(audit.classes[0], 15).select(columns) if two else None,
            "neutral": audit.neutral[label],
            "subtitle": "both classes" if two else f"class {for_display(label, 40)}",
        }
        listing = ", ".join(for_display(token, 24) for token in top["token"].head(8))
        text = f"Strongest predictors: {listing}."
        out += [_token_map(audit, label, of, f"{of}{suffix}") for of in ("value", "score")]
        out.append(
            Picture(f"top{suffix}", "audit-top", data, "Strongest predictors", description=text)
        )
    return out


def _token_map(audit: Audit, label: str, of: str, name: str, marked: Sequence[str] = ()) -> Picture:
    """Token types on the map of posterior difference and value (or score)."""
    data = {
        "tokens": audit.tokens.filter(pl.col("class") == label),
        "of": of,
        "classes": audit.classes,
        "label": label,
        "neutral": audit.neutral[label],
        "seed": audit.seed,
        # dots of all such pictures together: the page holds them
        "limit": 2000
        // (1 + 2 * (1 if len(audit.classes) == 2 else min(PICTURED, len(audit.classes)))),
        "marked": tuple(marked),
    }
    own = for_display(label, 40)
    up = (
        f"count as evidence for {own} in the model"
        if of == "value"
        else "get most of the model's attention"
    )
    of_class = f" for {own}" if len(audit.classes) > 2 else ""
    title = f"Data against {'model' if of == 'value' else 'attention'}{of_class}, token by token"
    caption = f"Each dot is a token type. Those on the right occur mostly in {own}; those at the top {up}."
    caption += " The solid line is the mean over all token types, shown or not (dotted where there are none); the grey band is "
    caption += "one standard deviation to either side. The dashed line is where a token spread evenly over all documents would be."
    if len(audit.classes) > 2 and name == "alarm":
        which = f"The picture shows the class “{own}”, one of {len(audit.classes)}"
        caption = (
            f"{which}; to see another, choose it under “Class” and go to the map below. {caption}"
        )
    listing = ", ".join(
        for_display(token, 24) for token in (marked or audit.top(label, 5)["token"].to_list())[:8]
    )
    description = f"Map of token types for {own}; named: {listing}."
    return Picture(name, "audit-map", data, title, caption, description)


def _disagreements(audit: Audit) -> Section:
    """Where what the data shows and what the model attends to differ."""
    out: list[Block] = []
    alarming, ignored = "High attention without evidence", "Predictive, but below-average attention"
    nobody, heeded = (
        "No frequent token receives high attention without evidence.",
        "No frequent predictor is ignored.",
    )
    for quadrant, title, nothing in (
        (Quadrant.MODEL, alarming, nobody),
        (Quadrant.DATA, ignored, heeded),
    ):
        found = audit.disagreement(quadrant, 15)
        labelled = zip(found["class"], _token_rows(found), strict=True)
        rows = [(cells[0], label, *cells[1:-1]) for label, cells in labelled]
        head = (_COLUMNS[0], Column("Class", "text"), *_COLUMNS[1:-1])
        out.append(Table(title, head, rows) if rows else Text(nothing))
    out.append(Text("Common words belong here; check any distinctive one.", style="note"))
    if not audit.learned.task.classifies:
        words = audit.tokens.filter(
            pl.col("class") == audit.classes[1], ~pl.col("token").str.starts_with("⟨")
        )
        # of a word used at the same rate in both answers
        even = float(
            words["count_difference"].to_numpy().sum()
            / max(int(words["count"].to_numpy().sum()), 1)
        )
        said = (
            f"Effect and posterior difference can contradict each other: preferred answers contain {percent((1 + even) / 2, 0)} of "
            f"all words, so a word used at the same rate in both answers has a posterior difference of {signed(even)}, not 0. The "
            "effect compares the rates. Go by the effect, or by the wins at equal length."
        )
        out.append(Text(said, style="note"))
    return Section("Where data and model disagree", tuple(out), anchor="disagree", only=PAGE)


def _reading_notes(audit: Audit) -> Section:
    """What was counted while reading, and the size of each class."""
    notes: list[Block] = []
    for i, note in enumerate(audit.notes[:100]):
        notes.append(
            Text(
                _sentence(for_display(note, 400)),
                style="warning",
                only=("terminal", *PAGE) if i < 3 else PAGE,
            )
        )
    unknown = f"{percent(audit.unknown_share)} of the words in the test documents are unknown to the model."
    columns = (
        Column("Class", "text"),
        Column("Training documents", "count"),
        Column("Uninformative token", "signed"),
    )
    rows = [
        (for_display(label, 60), audit.class_documents[label], audit.neutral[label])
        for label in audit.classes[:100]
    ]
    note_of = "Uninformative token: the posterior difference of a token unrelated to the class."
    sizes = Table("Documents of each class", columns, rows, only=PAGE, note=note_of)
    return Section("The data", (*notes, Text(unknown, only=PAGE), sizes), anchor="data")
