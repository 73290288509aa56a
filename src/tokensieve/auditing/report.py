"""What an audit says, as blocks for page, terminal and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from tokensieve.auditing.data import AuditData
from tokensieve.auditing.findings import PROBABLE_SHORTCUT, Finding
from tokensieve.auditing.link_report import RepairEffect, group_description
from tokensieve.auditing.next_steps import (
    NextCommands,
    mask_command_over_budget,
    next_commands,
    shortcut_tokens,
)
from tokensieve.auditing.phrases import change_clause, quoted
from tokensieve.auditing.report_cards import (
    MEANING_OF_ATTENTION,
    MEANING_OF_Q,
    findings_section,
    notes_of_reading,
    row_commands,
    terms_section,
)
from tokensieve.auditing.report_headline import headline_blocks
from tokensieve.auditing.report_limits import limit_clause, limit_sentences
from tokensieve.auditing.report_tokens import (
    disagreements_section,
    first_class,
    pictures,
    predictor_tables,
    predictors_section,
    token_map,
)
from tokensieve.auditing.task_sections import TaskSections, task_sections
from tokensieve.escape import IN_CELL, IN_TITLE, for_display
from tokensieve.report.blocks import (
    PAGE,
    Block,
    Column,
    Command,
    Fact,
    Facts,
    FindingTokens,
    InteractiveAudit,
    Medium,
    Passages,
    Report,
    Section,
    Table,
    Text,
)
from tokensieve.task.agreement import Quadrant
from tokensieve.task.refitted import RefitComparison
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import count, percent, plural, verb

MAX_NAMED_WORDS = 3  # within a sentence; more are harder to read than "the shortcuts"
MAX_TOKENS_OF_MARK = 2  # that a sentence names of a shortcut with many
MAX_TOKENS_IN_SUMMARY = 8
MAX_CLASS_ROWS = 100
HIGH_ACCURACY = 0.95  # from here a few words may define the label: the verdict then names them
# the columns of an audit's tables, for readers of a page
TERMS = {
    "Effect": "How much more a token is used in the class than elsewhere: the mean over "
    "documents of the token's fraction of the document, counted as negative outside "
    "the class and corrected for unequal classes. The interval counts documents, not "
    "occurrences.",
    "Posterior difference": "How exclusively a token belongs to the class: (occurrences in the "
    "class − occurrences elsewhere) / all occurrences, from −1 (never in "
    "the class) to +1 (only in it). With unequal classes an "
    "uninformative token is not at 0. Long documents count more here "
    "than in the effect, so the two can have opposite signs; q tests the "
    "effect.",
    "q": MEANING_OF_Q,
    "Score": "How strongly a token draws attention: a document's attention is the softmax of its "
    "tokens' scores.",
    "Value": "What a token adds to the logit when attended to; above zero it is evidence for the "
    "class.",
    "Attention": MEANING_OF_ATTENTION,
    "Data and model": "Whether the token predicts the label (q below 0.05 for any class), and "
    "whether it receives above-average attention. No evidence: its interval is "
    "tight around zero for every class. Too rare to tell: neither can be shown.",
}


def audit_report(audit: AuditData, about: Mapping[str, object]) -> Report:
    """The report of an audit; `about` are its version, seed and settings."""
    sections = task_sections(audit.learned.task, audit)
    verdict = _verdict(audit)
    return Report(
        "audit",
        f"Audit of {for_display(audit.name, IN_TITLE, path=True)}",
        verdict,
        (
            *_first_screen(audit, sections, verdict),
            findings_section(audit),
            *_misleading_sections(audit),
            *sections.rewarded,
            predictors_section(audit),
            interactive_part(audit, _without_scripts(audit)),
            disagreements_section(audit),
            _accuracy_section(audit, sections),
            _reading_section(audit),
            terms_section(TERMS),
        ),
        about=dict(about),
    )


# ---- the verdict and the first screen


def _verdict(audit: AuditData) -> str:
    """The sentence that page and terminal begin with: the most serious finding, or that there is
    none."""
    if audit.findings:
        headline = audit.findings[0].headline
        no_shortcut = _no_shortcut(audit)
        all_low = all(finding.level == "low" for finding in audit.findings)
        if no_shortcut and all_low:
            defining = _words_that_may_define(audit)
            if defining:
                return f"{no_shortcut}, but {defining}."
            return f"{no_shortcut}; {headline[:1].lower()}{headline[1:]}."
        return f"{headline}."
    if not audit.over_budget.is_empty():
        n_tokens = audit.over_budget["token"].n_unique()
        exceed = verb(n_tokens, "exceed")
        return f"{plural(n_tokens, 'token')} {exceed} the limit {audit.settings.budget}."
    source = for_display(audit.name, IN_TITLE, path=True)
    if audit.n_predictive == 0:  # then no shortcut could have been found
        return (
            f"No token in {source} predicts the label better than chance{_group_clause(audit)}, so "
            "this audit cannot assess shortcuts."
        )
    nothing = (
        f"The checks found no shortcut, leak or label problem in {source}{limit_clause(audit)}"
    )
    defining = _words_that_may_define(audit)
    return f"{nothing}, but {defining}." if defining else f"{nothing}."


def _words_that_may_define(audit: AuditData) -> str:
    """The clause that names the words by which nearly all labels are predicted; empty if they are
    not.
    """
    if audit.accuracy.low < max(HIGH_ACCURACY, audit.majority_accuracy):
        return ""
    words = quoted(audit.top(rows=3)["token"].to_list())
    return (
        f"the model predicts {percent(audit.accuracy.value)} of test labels with words such as "
        f"{words}; check if they define the label"
    )


def _no_shortcut(audit: AuditData) -> str:
    """The sentence that the checks found no shortcut. Empty if they found one, if a model can
    exploit something else, or if none could have been found.
    """
    is_exploitable = any(finding.exploitable for finding in audit.findings)
    if audit.shortcuts or is_exploitable or audit.n_predictive == 0:
        return ""
    return f"The checks found no shortcut{limit_clause(audit)}"


def _group_clause(audit: AuditData) -> str:
    """A clause on why few tokens are significant, if documents are grouped; else ""."""
    units = audit.learned.train.corpus.units
    if units is None:
        return ""
    groups = plural(len(np.unique(units)), "group")
    return f" (the training documents form {groups}, and each counts once)"


def _first_screen(audit: AuditData, sections: TaskSections, verdict: str) -> list[Block]:
    """The blocks that a reader sees first: the data, the accuracy, and what to do next."""
    token_types = plural(audit.token_types, "token type")
    lead = f"{sections.lead}, {token_types} (distinct words and formatting)."
    blocks: list[Block] = [
        Text(lead, style="lead"),
        *headline_blocks(audit),
        *_map_of_headline(audit),
        Facts(_accuracy_facts(audit, sections)),
    ]
    no_shortcut = _no_shortcut(audit)
    if no_shortcut and audit.findings and not verdict.startswith(no_shortcut):
        blocks.append(Text(f"{no_shortcut}."))
    if no_shortcut and limit_sentences(audit):
        blocks.append(Text(limit_sentences(audit)))
    sentences = without_shortcuts_sentences(audit)
    if sentences:
        blocks.append(Text(" ".join(sentences)))
    blocks += [Text(sentence) for sentence in sections.sentences]
    return blocks + _next_steps(audit, sections.where_masked)


def _map_of_headline(audit: AuditData) -> list[Block]:
    """The map of the first finding's class; none of one class of many that no finding names."""
    marked = audit.findings[0].tokens if audit.findings else ()
    if len(audit.classes) > 2 and not marked:
        return []
    return [token_map(audit, first_class(audit), "value", "alarm", marked)]


def _accuracy_facts(audit: AuditData, sections: TaskSections) -> tuple[Fact, ...]:
    """The model's accuracy, and the accuracies that it is compared with."""
    accuracy = audit.accuracy
    interval = f"95% CI {percent(accuracy.low)} to {percent(accuracy.high)}"
    facts = [Fact("Test accuracy", percent(accuracy.value), interval)]
    if audit.baseline is not None:
        against_model = f"the model: {change_clause(audit.baseline)}"
        value = percent(audit.baseline.before)
        facts.append(Fact("TF-IDF + logistic regression", value, against_model))
    facts += [Fact(reference.name, percent(reference.value)) for reference in sections.references]
    return tuple(facts)


def without_shortcuts_sentences(audit: AuditData) -> list[str]:
    """Sentences on the accuracy without the shortcuts: first where they occur, then everywhere."""
    comparison = audit.without_shortcuts
    if comparison is None:
        return []
    phrases = phrases_of_words(audit)
    left_out = _without_tokens(audit.shortcuts, phrases)
    tokens = [token for finding in left_out for token in finding.tokens]
    is_several = len(tokens) > 1 or len(left_out) > 1
    them = "them" if is_several else "it"
    is_for_pairs = not audit.learned.task.classifies
    sentences = _accuracies_without(comparison, _named_shortcuts(left_out), them, is_for_pairs)
    if phrases:
        stay = verb(len(phrases), "are", "is")
        sentences.append(
            f"{quoted(phrases)} {stay} not left out, because the model sees the single words only."
        )
    where_misleading = _where_misleading(audit, them, phrases)
    if where_misleading:
        sentences.append(where_misleading)
    return sentences


def _accuracies_without(
    comparison: RefitComparison, named: str, them: str, is_for_pairs: bool
) -> list[str]:
    """Sentences on both accuracies: on the documents concerned, if these are some, and on all."""
    concerned = comparison.concerned
    everywhere = comparison.difference
    item = "test pair" if is_for_pairs else "test document"
    if not 0 < concerned.n < everywhere.n:
        return [
            f"Trained without {named}, the model predicts {percent(everywhere.after)} of the "
            f"{plural(everywhere.n, item)} correctly, and {percent(everywhere.before)} with "
            f"{them}: {change_clause(everywhere)}."
        ]
    with_them = f"whose answers differ in {them}" if is_for_pairs else f"containing {them}"
    return [
        f"Trained without {named}, the model predicts {percent(concerned.after)} of the "
        f"{plural(concerned.n, item)} {with_them} correctly, and {percent(concerned.before)} "
        f"with {them}: {change_clause(concerned)}.",
        f"Accuracy on all {plural(everywhere.n, item)} is {percent(everywhere.after)} without "
        f"{them} and {percent(everywhere.before)} with {them}: {change_clause(everywhere)}.",
    ]


def phrases_of_words(audit: AuditData) -> list[str]:
    """The phrases among the shortcuts that are no token type of the model: it cannot leave them
    out."""
    phrases = [token for finding in audit.shortcuts for token in finding.tokens if " " in token]
    if not phrases:
        return []
    types = set(map(str, audit.learned.train.counts.tokens))
    return [phrase for phrase in phrases if phrase not in types]


def _without_tokens(shortcuts: Sequence[Finding], tokens: Sequence[str]) -> list[Finding]:
    """The findings without some of their tokens; those without any other are left out."""
    others = []
    for finding in shortcuts:
        remaining = tuple(token for token in finding.tokens if token not in tokens)
        if remaining or not finding.tokens:
            others.append(replace(finding, tokens=remaining))
    return others


def _where_misleading(audit: AuditData, them: str, phrases: Sequence[str]) -> str:
    """A sentence on the accuracy, with and without the shortcuts, where one misleads.

    That is where the most serious shortcut points to another class.
    Phrases that the model cannot leave out say nothing about one trained without them.
    """
    effect = audit.misleading.without_shortcuts
    every = () if effect is None else effect.marks
    marks = [one for one in every if one.groups and not set(one.mark.tokens) <= set(phrases)]
    worst = marks[0].where_misled if marks else None
    if worst is None:
        return (
            f"The test set contains {them} too, so accuracy can be lower on texts without {them}."
        )
    mark = marks[0].mark
    mislead = verb(len(mark.tokens), "mislead")
    if worst.difference.change <= 0:
        mislead = "could mislead"
    return (
        f"The test set contains {them} too. Where {quoted(mark.tokens, most=MAX_TOKENS_OF_MARK)} "
        f"{mislead}, on {group_description(mark, worst.group)}, the model "
        f"predicts {percent(worst.before)} correctly, and {percent(worst.after)} when it is "
        f"trained without {them}: {change_clause(worst.difference)}."
    )


def _misleading_sections(audit: AuditData) -> list[Section]:
    """Accuracy where the shortcuts do not tell the class."""
    own = audit.misleading.without_shortcuts
    other = audit.misleading.other
    sections = []
    if own is not None:
        lead = Text(
            "Test documents in which a shortcut does not tell the class, and copies in which it "
            "was removed or inserted. The worst group of each shortcut comes first."
        )
        title = "Where the shortcuts mislead"
        sections.append(Section(title, (lead, own.table()), anchor="misleading", only=PAGE))
    if other is not None:
        sections.append(
            Section(
                f"Predictions of {for_display(other.names[0], IN_TITLE, path=True)}",
                (Text(_other_sentence(other)), other.table()),
                anchor="predictions",
            )
        )
    return sections


def _other_sentence(other: RepairEffect) -> str:
    """The other model in the worst group, beside all documents."""
    overall = (
        f"{percent(other.overall.before)} of the "
        f"{plural(other.overall.n_documents, 'test document')} are predicted correctly"
    )
    marks = [mark for mark in other.marks if mark.groups]
    if not marks:
        return f"{overall}; no shortcut misleads in enough of them to judge the predictions by it."
    worst = marks[0].groups[0]
    mark = quoted(marks[0].mark.tokens, most=MAX_TOKENS_OF_MARK)
    return (
        f"{overall}, and {percent(worst.before)} of the {worst.n_documents:,} "
        f"{group_description(marks[0].mark, worst.group)} ({mark}). "
        "A file says nothing about changed copies; `compare --on` also takes a transformer."
    )


def _named_shortcuts(shortcuts: Sequence[Finding]) -> str:
    """Name some shortcuts within a sentence: by their words if these are few, else by their kind.

    Such as “tablet”, "the shortcut", "the shortcuts and probable shortcuts".
    """
    tokens = [token for finding in shortcuts for token in finding.tokens]
    all_have_tokens = all(finding.tokens for finding in shortcuts)
    has_formatting = any(map(is_formatting, tokens))
    if all_have_tokens and not has_formatting and 0 < len(tokens) <= MAX_NAMED_WORDS:
        return quoted(tokens)
    titles = {finding.title for finding in shortcuts}
    is_one_mark = len(shortcuts) == 1 and len(tokens) <= 1  # a form, or values without a token
    if is_one_mark:
        return f"the {shortcuts[0].title[:1].lower()}{shortcuts[0].title[1:]}"
    if PROBABLE_SHORTCUT not in titles:
        return "the shortcuts"
    if len(titles) == 1:
        return "the probable shortcuts"
    return "the shortcuts and probable shortcuts"


def _next_steps(audit: AuditData, where_masked: str) -> list[Block]:
    """The blocks with the first thing to do, and the commands for it."""
    blocks: list[Block] = []
    # a command is about other findings if the first one has nothing that `mask` can cut
    first_is_by_hand = bool(audit.findings) and not audit.findings[0].maskable
    titles: list[str] = []
    if first_is_by_hand:
        blocks.append(Text(audit.findings[0].action, style="next", only=PAGE))
        blocks += row_commands(audit, audit.findings[0])
        titles = _titles_before_commands(audit)
        if titles and audit.learned.task.classifies:
            order = ", in this order" if len(titles) > 1 else ""
            text = f"Then go through {quoted(titles)} below{order}."
            blocks.append(Text(text, only=PAGE))
    # no command for what is not serious where something else comes first
    shortcuts = [
        finding for finding in audit.shortcuts if not first_is_by_hand or finding.level != "low"
    ]
    if where_masked and first_is_by_hand:  # of pairs: cutting words mends no length, no formatting
        blocks.append(Text("Next, read “What is rewarded” below.", only=PAGE))
        shortcuts = []
    commands = next_commands(audit, shortcut_tokens(shortcuts), audit.balance_plan)
    if not commands.lines:
        if where_masked and first_is_by_hand:
            return blocks
        when = "Finally" if first_is_by_hand and titles else "Next"
        text = f"{when}, go through the strongest predictors with someone who knows the data."
        return [*blocks, Text(text, only=PAGE)]
    return blocks + repair_commands(audit, shortcuts, commands, where_masked)


def _titles_before_commands(audit: AuditData) -> list[str]:
    """Titles of the findings between the first one and the first shortcut that `mask` can cut."""
    titles: list[str] = []
    for finding in audit.findings[1:]:
        if finding.kind == "shortcut" and finding.maskable:
            break
        titles.append(finding.title)
    return list(dict.fromkeys(titles))


def repair_commands(
    audit: AuditData, shortcuts: Sequence[Finding], commands: NextCommands, where_masked: str
) -> list[Block]:
    """The commands that remove or balance the shortcuts and show what is left."""
    blocks: list[Block] = []
    if commands.masks:
        start = "Remove" if audit.findings[0].maskable else "Also remove"
        removed = removed_tokens(shortcuts, shortcut_tokens(shortcuts))
        if any(finding.title == PROBABLE_SHORTCUT for finding in shortcuts):
            # on a phone what is next comes first: the command shall not come without the question
            blocks.append(Text(look_first(shortcuts), style="next"))
            start = "Then remove"
        end = ":" if commands.audit_again else ", then audit again:"
        blocks.append(Command(commands.masks[0], f"{start} {removed}{where_masked}{end}"))
        blocks += [Command(mask, "And from the test documents:") for mask in commands.masks[1:]]
    if commands.balance:
        purpose = _balance_purpose(audit, is_first=not commands.masks)
        blocks.append(Command(commands.balance, purpose))
    if commands.audit_again:
        then = (
            "Then audit the copy (the accuracy can differ slightly from the one given here, "
            "because the model is trained again):"
        )
        blocks.append(Command(commands.audit_again, then))
        compare = "Finally, compare the two audits:"
        if " --on " in commands.compare:
            compare = "Finally, compare the two audits, also where the shortcuts mislead:"
        blocks.append(Command(commands.compare, compare))
    return blocks


def look_first(shortcuts: Sequence[Finding]) -> str:
    """A warning, before the command that cuts it, that a probable shortcut may belong to the
    subject of the labels.

    On texts without artefacts, every word that the score accuses is one of the subject.
    """
    probable = [
        word
        for finding in shortcuts
        if finding.title == PROBABLE_SHORTCUT
        for word in finding.maskable[:1]
    ]
    named = quoted(probable) if probable else "the probable shortcuts"
    return (
        f"First decide whether {named} should predict the label. A probable shortcut may be a word "
        "of the subject; do not remove such a word."
    )


def _balance_purpose(audit: AuditData, is_first: bool) -> str:
    """The introduction to the command `balance`: the purpose of its weights."""
    start = "Weight" if is_first else "Then weight"
    plan = audit.balance_plan
    forms = [token for token in plan.tokens if is_formatting(token)]
    features = ["length"] if plan.with_length else []
    features += [quoted([token]) for token in plan.tokens if token not in forms]
    if forms:
        features.append(plural(len(forms), "kind") + " of formatting")
    named = features[0]
    if len(features) > 1:
        named = f"{', '.join(features[:-1])} and {features[-1]}"
    n_features = len(plan.tokens) + plan.with_length
    if audit.learned.task.classifies:
        tell = verb(n_features, "tell")
        return f"{start} the documents so that {named} no longer {tell} the class:"
    win = verb(n_features, "win")
    return (
        f"{start} the pairs so that {named} {win} half of those in which the answers differ; train "
        "with the column “weight”:"
    )


def removed_tokens(shortcuts: Sequence[Finding], tokens: Sequence[str]) -> str:
    """Words for the marks that the commands remove, as in "the shortcuts “a” and “b”"."""
    words = [word for finding in shortcuts for word in finding.maskable]
    n_tokens = f"({len(tokens)} tokens)"
    ratings = [word for word in words if "/" in word]
    others = [word for word in words if word not in ratings]
    if len(tokens) > len(words) and ratings:
        named = f"all ratings such as {quoted(ratings[:2])}"
        if others:
            named = f"{named}, and {quoted(others)}"
        return f"{named} {n_tokens}"
    if not set(tokens) & set(words):
        return f"the phrase around {quoted(words)} in all its variants"
    if len(tokens) <= MAX_NAMED_WORDS:
        return quoted(tokens)
    return f"all {len(tokens)} shortcut tokens"


# ---- the interactive part and what stands behind it


def interactive_part(audit: AuditData, instead: tuple[Block, ...] = ()) -> InteractiveAudit:
    """The block that the scripts of the page draw; `instead` is for media without scripts."""
    disagreeing = [
        token
        for quadrant in (Quadrant.MODEL, Quadrant.DATA)
        for token in audit.disagreement(quadrant, 15)["token"]
    ]
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
        disagreeing=tuple(disagreeing),
        maskable=tuple(token for finding in audit.findings for token in finding.maskable[:1]),
        right=audit.ranked_predictions.right,
        wrong=audit.ranked_predictions.wrong,
        instead=instead,
    )


def _without_scripts(audit: AuditData) -> tuple[Block, ...]:
    """Tables and pictures in place of the interactive part."""
    passages = audit.examples
    documents: Block = Text("There are no test documents to show.")
    if passages:
        documents = Passages("", tuple(passages), short=False)
    html: tuple[Medium, ...] = ("html",)
    tables = predictor_tables(audit)
    return (
        Section("Strongest predictors, with their numbers", tables, only=PAGE),
        Section("Pictures", tuple(pictures(audit)), only=html),
        Section("Test documents", (documents,), only=PAGE),
    )


def _accuracy_section(audit: AuditData, sections: TaskSections) -> Section:
    """The section on the accuracy of the model, class by class."""
    n_attended = audit.quadrants[Quadrant.BOTH]
    n_ignored = audit.quadrants[Quadrant.DATA]
    predictive = (
        f"{count(audit.n_predictive)} of {plural(audit.token_types, 'token type')} predict the "
        f"label (q < 0.05). {count(n_attended)} of them receive above-average attention from the "
        f"model; {count(n_ignored)} do not."
    )
    card = [] if audit.card is None else audit.card.blocks(audit.classes)
    blocks = (*sections.warnings, Text(predictive), *card)
    return Section("Accuracy", blocks, anchor="accuracy", only=PAGE)


def _reading_section(audit: AuditData) -> Section:
    """The section on the documents that were read, and the size of each class."""
    unknown = percent(audit.unknown_share)
    text = f"{unknown} of the words in the test documents are unknown to the model."
    columns = (
        Column("Class", "text"),
        Column("Training documents", "count"),
        Column("Uninformative token", "signed"),
    )
    rows = [
        (for_display(label, IN_TITLE), audit.class_documents[label], audit.neutral[label])
        for label in audit.classes[:MAX_CLASS_ROWS]
    ]
    note = "Uninformative token: the posterior difference of a token unrelated to the class."
    sizes = Table("Documents of each class", columns, rows, only=PAGE, note=note)
    blocks = (*notes_of_reading(audit.notes), Text(text, only=PAGE), sizes)
    return Section("The data", blocks, anchor="data")


# ---- what --fail-on says


def exceeded_report(audit: AuditData, out: Path) -> Report:
    """Report the limits of --fail-on that are exceeded, and which rows to review; `out` is the
    audit's folder."""
    blocks: list[Block] = [
        Text(f"Too many findings of this kind: {kind}.", style="bad") for kind in audit.exceeded
    ]
    subjects = []
    if not audit.over_budget.is_empty():
        subjects.append(plural(audit.over_budget["token"].n_unique(), "token"))
        blocks += [
            _over_budget_table(audit),
            Text(f"Every row to review is in {out / 'over-budget.csv'}."),
            Command(mask_command_over_budget(audit, out), "Copy the data without these tokens:"),
        ]
    if audit.exceeded:
        subjects.append(f"{plural(len(audit.exceeded), 'kind')} of finding")
    n_subjects = audit.over_budget["token"].n_unique() + len(audit.exceeded)
    exceed = verb(n_subjects, "exceed")
    verdict = f"{' and '.join(subjects)} {exceed} the limit {audit.settings.budget}."
    return Report("audit", "--fail-on", verdict, tuple(blocks))


def exceeded_summary(audit: AuditData, out: Path) -> str:
    """One line with the limits that are exceeded: tokens by name, and the most serious finding of
    each kind."""
    parts = []
    tokens = audit.over_budget["token"].unique(maintain_order=True).to_list()
    if tokens:
        parts.append(quoted(tokens, MAX_TOKENS_IN_SUMMARY))
    for kind in audit.exceeded:
        headlines = [finding.headline for finding in audit.findings if finding.kind == kind]
        parts.append(f"{kind}: {headlines[0]}")
    files = "over-budget.csv and findings.csv" if tokens else "findings.csv"
    return f"{'; '.join(parts)}. The rows are in {files} in {out}."


def _over_budget_table(audit: AuditData) -> Table:
    """The tokens that exceed the limit, each with the first rows that contain it."""
    columns = (
        Column("Token", "token"),
        Column("Class"),
        Column("Posterior difference", "signed", digits=3),
        Column("Documents", "count"),
        Column("Of all", "percent"),
        Column("Rows"),
    )
    training = audit.to_review.filter(pl.col("part") == "train")
    rows = []
    for token in audit.over_budget.iter_rows(named=True):
        places = training.filter(pl.col("token") == token["token"])["row"]
        listed = ", ".join(map(str, places.head(5)))
        if len(places) > 5:
            listed += ", …"
        rows.append(
            (
                token["token"],
                for_display(token["class"], IN_CELL),
                token["posterior_difference"],
                token["documents"],
                token["documents"] / audit.documents["train"],
                listed,
            )
        )
    return Table("", columns, rows, n_shown=20)
