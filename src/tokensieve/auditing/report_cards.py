"""The findings of an audit as cards: what was found, where it occurs, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokensieve.auditing.any_audit import AnyAudit
from tokensieve.auditing.data import AuditData
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.next_steps import (
    MAX_NAMED_TOKENS,
    commands_for_rows,
    next_commands,
)
from tokensieve.auditing.phrases import form_clause, quoted
from tokensieve.escape import IN_CELL, IN_SENTENCE, for_display
from tokensieve.report.blocks import (
    EVERYWHERE,
    PAGE,
    Block,
    Command,
    Medium,
    Passage,
    Passages,
    Section,
    Terms,
    Text,
    Tokens,
)
from tokensieve.wording import noun, plural, verb

MAX_IN_TERMINAL = 5
MAX_ON_PAGE = 9
MAX_LABELS_NAMED = 6
MAX_OPEN_CARDS = 2  # the others open with a click
MAX_TOKENS_ON_CARD = 12
MAX_OVER_BUDGET_NAMED = 12
MAX_NOTES = 100  # on a page: a source of many files may have one for each
MAX_NOTES_IN_TERMINAL = 3
MAX_NOTE_CHARACTERS = 400
EXAMPLE_CHARACTERS = 400  # on either side of the token
MAX_EXAMPLES = {"labels": 3, "leak": 4}  # a leak's examples are two pairs of copies
DEFAULT_MAX_EXAMPLES = 2
MEANING_OF_Q = (
    "Benjamini–Hochberg false-discovery rate: of the tokens with q below 0.05, at most about one "
    "in twenty predicts nothing."
)
MEANING_OF_ATTENTION = (
    "Mean attention to the token in documents containing it, relative to the average token; 1 is "
    "average."
)
PURPOSES = {  # of the first command that repairs a kind of finding
    "leak": "Leave these test documents out:",
    "repeated": "Leave the copies out:",
    "contradiction": "Leave these rows out until someone has decided on them:",
    "labels": "Leave these rows out until someone has read and corrected them:",
    "groups": "Audit again with each group on one side of the split:",
}


def findings_section(audit: AuditData) -> Section:
    """All findings that a page or a terminal shows, most serious first."""
    findings = audit.findings
    blocks = _limit_blocks(audit)
    n_in_terminal = _n_shown(findings, MAX_IN_TERMINAL)
    for place, finding in enumerate(findings[: _n_shown(findings, MAX_ON_PAGE)]):
        only = EVERYWHERE if place < n_in_terminal else PAGE
        blocks.append(_card(audit, finding, place, only))
    blocks += _not_shown(findings)
    if audit.labels_not_judged:
        blocks.append(Text(_not_judged(audit), style="note"))
    if findings:
        text = "Every document of every finding is listed by row in findings.csv."
        blocks.append(Text(text, style="note", only=PAGE))
    else:
        text = (
            "None of the checks found anything to act on. That does not prove that there is "
            "nothing: read the strongest predictors with someone who knows the data."
        )
        blocks.append(Text(text, only=PAGE))
    title = "Findings, most serious first" if findings else "Findings"
    return Section(title, tuple(blocks), anchor="found")


def _not_judged(audit: AuditData) -> str:
    """Says which labels were not checked, and why."""
    labels = [for_display(label, IN_SENTENCE) for label in audit.labels_not_judged]
    n_more = len(labels) - MAX_LABELS_NAMED
    named = ", ".join(labels[:MAX_LABELS_NAMED])
    if n_more > 0:
        named += f" and {n_more} more"
    if not audit.learned.task.classifies:
        return (
            "Whether preferences are reversed was not judged, because models that have not seen a "
            "pair predict it by chance."
        )
    classes = noun(len(labels), "class", "classes")
    return (
        f"Labels of the {classes} {named} were not judged, because models that have not seen a "
        "document predict too few of them correctly."
    )


def _limit_blocks(audit: AuditData) -> list[Block]:
    """Whether the audit exceeds its --fail-on limits; nothing without any."""
    if audit.settings.budget is None:
        return []
    if not audit.fails:
        return [Text(f"Nothing exceeds the limit {audit.settings.budget}.", style="good")]
    tokens = audit.over_budget["token"].unique(maintain_order=True).to_list()
    names = [for_display(token, IN_SENTENCE) for token in tokens[:MAX_OVER_BUDGET_NAMED]]
    names += audit.exceeded
    text = f"This audit exceeds the limit {audit.settings.budget}: {', '.join(names)}."
    if tokens:
        text += " Every row to review is in over-budget.csv."
    return [Text(text, style="bad")]


def _n_shown(findings: Sequence[Finding], usual: int) -> int:
    """The number of findings to show: the usual one, or all that are not low if they are more."""
    n_serious = sum(finding.level != "low" for finding in findings)
    return max(usual, n_serious)


def _not_shown(findings: Sequence[Finding]) -> list[Block]:
    """A paragraph with the number and level of the findings that only a file lists."""
    blocks: list[Block] = []
    in_terminal: tuple[Medium, ...] = ("terminal",)
    for usual, only in ((MAX_IN_TERMINAL, in_terminal), (MAX_ON_PAGE, PAGE)):
        hidden = findings[_n_shown(findings, usual) :]
        if hidden:
            n_more = len(hidden)
            are = verb(n_more, "are", "is")
            severity = "of low severity"
            text = f"{plural(n_more, 'more finding')} {severity} {are} in findings.json."
            blocks.append(Text(text, style="note", only=only))
    return blocks


def _card(audit: AuditData, finding: Finding, place: int, only: tuple[Medium, ...]) -> Section:
    """One finding. The first one's headline is the verdict of the report already."""
    headline = finding.headline
    details = list(finding.details)
    if place == 0 and details:
        headline = details.pop(0)
    blocks = _headline_blocks(finding, headline)
    blocks += evidence_blocks(finding, details)
    # what to do about the first finding is on the first screen, unless a command there is about it
    if place > 0 or finding.mask:
        blocks.append(Text(finding.action, only=PAGE))
    if place > 0:
        blocks += _card_commands(audit, finding)
    return Section(
        finding.title,
        tuple(blocks),
        level=finding.level,
        folded=place >= MAX_OPEN_CARDS,
        only=only,
    )


def evidence_blocks(finding: Finding, details: Sequence[str]) -> list[Block]:
    """The tokens of a finding, details of it, what its lengths mean, and places in the texts."""
    blocks: list[Block] = []
    tokens = finding.tokens[:MAX_TOKENS_ON_CARD]
    if tokens:
        blocks.append(Tokens("", tokens, len(finding.tokens) - len(tokens), only=PAGE))
    blocks += [Text(as_sentence(detail), style="note", only=PAGE) for detail in details]
    lengths = [token for token in tokens if "⟨length " in token]
    if lengths:
        meanings = "; ".join(
            f"{for_display(token, IN_SENTENCE)}: texts that {form_clause(token)}"
            for token in lengths
        )
        blocks.append(Text(f"{meanings}.", style="note", only=PAGE))
    if finding.examples:
        blocks.append(Passages("", tuple(example_passages(finding)), only=PAGE))
    return blocks


def _headline_blocks(finding: Finding, headline: str) -> list[Block]:
    """The headline; where another sentence replaces it, the terminal names the tokens first."""
    sentence = as_sentence(headline)
    is_replaced = headline != finding.headline
    names_no_token = finding.kind == "shortcut"  # the details of other checks are whole sentences
    if is_replaced and names_no_token and finding.tokens and quoted(finding.tokens) not in headline:
        in_terminal = f"{quoted(finding.tokens, 3)}: {headline}."
        return [Text(sentence, only=PAGE), Text(in_terminal, only=("terminal",))]
    return [Text(sentence)]


def example_passages(finding: Finding) -> list[Passage]:
    """Places in the texts; of a leak, each test document with its training document."""
    n_examples = MAX_EXAMPLES.get(finding.kind, DEFAULT_MAX_EXAMPLES)
    is_label_issue = finding.kind == "labels"
    sides: tuple[str, ...] = ("",)
    if finding.kind == "leak" and len(finding.examples) > 1:
        sides = ("test document", "training document")
    passages = []
    for number, example in enumerate(finding.examples[:n_examples]):
        note = sides[number % len(sides)]
        if example.looks_like:
            note = f"looks like {for_display(example.looks_like, IN_CELL)}"
        pieces = (
            (example.before[-EXAMPLE_CHARACTERS:], 0.0),
            (example.token, 1.0),
            (example.after[:EXAMPLE_CHARACTERS], 0.0),
        )
        passages.append(
            Passage(
                pieces=tuple(piece for piece in pieces if piece[0]),
                label=for_display(example.label, IN_CELL),
                row=example.row,
                note=note,
                part="train" if is_label_issue else "",
            )
        )
    return passages


def row_commands(
    audit: AnyAudit, finding: Finding, only: tuple[Medium, ...] = EVERYWHERE
) -> list[Block]:
    """The commands that leave out rows or keep groups whole, and show what that changes."""
    commands = commands_for_rows(audit, finding)
    blocks = [Command(mask, PURPOSES[finding.kind], only=only) for mask in commands.masks]
    if commands.audit_again:
        then = "Then audit the copy:" if commands.masks else PURPOSES[finding.kind]
        blocks.append(Command(commands.audit_again, then, only=only))
    if commands.compare:
        blocks.append(Command(commands.compare, "Finally, compare the two audits:", only=only))
    return [*blocks]


def _card_commands(audit: AuditData, finding: Finding) -> list[Block]:
    """The commands for the rows of a finding, or the one that removes a shortcut; of pairs also
    those that show what is left."""
    if finding.kind != "shortcut" or not finding.mask:
        return row_commands(audit, finding, PAGE)
    is_for_pairs = not audit.learned.task.classifies
    has_other_words = any(
        shortcut.maskable for shortcut in audit.shortcuts if shortcut is not finding
    )
    # `--audit` removes all shortcuts, hence it must be the only one with words
    can_name_folder = is_for_pairs and audit.invocation is not None and not has_other_words
    if len(finding.mask) > MAX_NAMED_TOKENS and not can_name_folder:
        return []
    commands = next_commands(audit, finding.mask)
    # the first screen of pairs prints no such commands where length or formatting comes first
    lines = commands.lines if is_for_pairs else commands.masks
    return [Command(line, only=PAGE) for line in lines]


def notes_of_reading(notes: Sequence[str]) -> list[Block]:
    """Paragraphs on what happened while the source was read; in a terminal the first few."""
    blocks: list[Block] = []
    for place, note in enumerate(notes[:MAX_NOTES]):
        only = EVERYWHERE if place < MAX_NOTES_IN_TERMINAL else PAGE
        text = as_sentence(for_display(note, MAX_NOTE_CHARACTERS))
        blocks.append(Text(text, style="warning", only=only))
    return blocks


def terms_section(terms: Mapping[str, str]) -> Section:
    """A section that explains the columns of the page's tables: term → meaning."""
    blocks = (Terms(tuple(terms.items())),)
    return Section("How to read the numbers", blocks, anchor="columns", folded=True, only=PAGE)


def as_sentence(clause: str) -> str:
    """A clause with a capital and a full stop."""
    return f"{clause[:1].upper()}{clause[1:]}."
