"""Findings in words, for page and terminal: a headline with its number, the evidence, and what to do."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from tokensieve.auditing.context import Sign
from tokensieve.auditing.findings import FindingKind
from tokensieve.escape import shown
from tokensieve.report import pairs
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import count, percent

if TYPE_CHECKING:
    from tokensieve.auditing.findings import Finding
    from tokensieve.auditing.result import Audit
    from tokensieve.evidence.shares import Share

NAMED = 5
MORE_TIME = "to decide more, give more time with --max-seconds; --resume FILE goes on where a run stopped"
DECIDES = 0.8  # of the documents: less is a tendency
TITLES = {
    FindingKind.SHORTCUT: "Shortcut",
    FindingKind.LEAK: "Leak across the split",
    FindingKind.CONTRADICTION: "Same text, two labels",
    FindingKind.LABELS: "Labels to check",
    FindingKind.IMBALANCE: "Unequal classes",
    FindingKind.EMPTY: "Nothing to read",
    FindingKind.DRIFT: "Drift",
    FindingKind.UNSTABLE: "Unstable tokens",
    FindingKind.REPEATED: "Repeated texts",
}
ACTIONS = {
    FindingKind.SHORTCUT: (
        "Ask whether these would be there when the model is used. If not, mask them and audit again: the accuracy that remains "
        "is the honest one."
    ),
    FindingKind.LEAK: "Keep each text on one side of the split; until then the test accuracy is too high.",
    FindingKind.CONTRADICTION: "Decide on one label for each of these texts, or leave them out.",
    FindingKind.LABELS: "Read the rows in label-issues.csv from the top and correct those that are wrong.",
    FindingKind.IMBALANCE: "Collect more documents of this class, merge it with another, or judge it by its own recall.",
    FindingKind.EMPTY: "Look at these rows: the text may be missing, or in another column, language or script.",
    FindingKind.DRIFT: "Find out what changed between the two sides before you trust the test accuracy.",
    FindingKind.UNSTABLE: "Do not rely on these tokens outside the environment in which they carry the label.",
    FindingKind.REPEATED: (
        "Copies are no evidence of their own: name the column of what belongs together with --by, or leave repeats out with "
        "--duplicates drop."
    ),
}
FORM = (
    "Ask where this difference in form comes from, and whether it will be there when the model is used. If not, clean the texts, "
    "or leave formatting out with --no-formatting, and audit again."
)
_SIGNS = {
    Sign.FORMATTING.value: "formatting, no word",
    Sign.NUMBER.value: "a number",
    Sign.MARKUP.value: "part of an address or of markup",
    Sign.EDGE.value: "always in the same place of the text",
    Sign.ALONE.value: "next to no other word of its class is as certain",
}


def file_name(text: str) -> str:
    """The last part of a path: where a reader keeps files is no part of a page that is shared."""
    return PurePath(text).name if "/" in text or "\\" in text else text


def quoted(tokens: tuple[str, ...], most: int = NAMED) -> str:
    """“a”, “b” and 3 more."""
    names = [shown(token, 40) if is_formatting(token) else f"“{shown(token, 40)}”" for token in tokens[:most]]
    more = len(tokens) - most
    if more > 0:
        return f"{', '.join(names)} and {more} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def headline(finding: Finding) -> str:
    """The finding as one sentence with its number."""
    if pairs.about_pairs(finding):
        return pairs.headline(finding)
    e, label, n = finding.evidence, shown(finding.label, 40), count(finding.documents)
    share = percent(e["documents"].value) if "documents" in e else ""
    match finding.kind:
        case FindingKind.SHORTCUT:
            return _shortcut(finding)
        case FindingKind.LEAK:
            nearly = ", word for word or nearly" if e["identical"].found < finding.documents else ""
            return f"{n} test documents ({percent(e['test'].value)}) are in the training data, too{nearly}"
        case FindingKind.CONTRADICTION:
            return f"{n} documents ({share}) share their text with one of another label"
        case FindingKind.LABELS:
            return f"{n} training documents ({share}) look like another class"
        case FindingKind.IMBALANCE:
            return f"Class {label} has only {n} training documents ({percent(e['class'].value)})"
        case FindingKind.EMPTY:
            return f"{n} documents ({share}) hold no word that the model knows"
        case FindingKind.DRIFT:
            sides = f"{percent(e['before'].value)} of the training documents and {percent(e['after'].value)} of the test documents"
            return f"{quoted(finding.tokens[:1])} is in {sides}" + more(len(finding.tokens) - 1)
        case FindingKind.REPEATED:
            return f"{n} training documents ({share}) repeat an earlier one, word for word or nearly"
        case FindingKind.UNSTABLE:
            return _unstable(finding)


def more(others: int) -> str:
    """What is said of further tokens."""
    return f", and {others} more tokens moved likewise" if others > 0 else ""


def _unstable(finding: Finding) -> str:
    """Where the first token carries the label, and where not."""
    places = [name for name in finding.evidence if name != "documents"]
    parts = [f"{percent(finding.evidence[name].value, 0)} in {shown(name, 30)}" for name in places]
    others = len(finding.tokens) - 1
    also = f"; {count(others)} more token{'s' * (others > 1)} likewise" if others else ""
    return (
        f"{quoted(finding.tokens[:1])} does not mean the same everywhere: of the documents with it "
        f"{' but '.join(parts)} are {shown(finding.label, 40)}{also}"
    )


def _shortcut(finding: Finding) -> str:
    many, s = len(finding.tokens), "" if len(finding.tokens) > 1 else "s"
    subject = f"{many} tokens such as {quoted(finding.tokens[:2])}" if many > 3 else quoted(finding.tokens)
    share, right = percent(finding.evidence["documents"].value), finding.evidence["decides"].value
    label = finding.label and shown(finding.label, 40)
    base = f" (of all documents {percent(finding.evidence['base'].value, 0)})" if "base" in finding.evidence else ""
    if right < DECIDES and label:
        return (
            f"{subject} occur{s} in {share} of the documents; {percent(right, 0)} of these are of class {label}{base}"
        )
    return f"{subject} occur{s} in {share} of the documents and decide{s} {percent(right, 0)} of them" + (
        label and f" for {label}{base}"
    )


def action(finding: Finding) -> str:
    """What to do about it."""
    if pairs.about_pairs(finding):
        return pairs.action(finding)
    form = finding.kind is FindingKind.SHORTCUT and all(map(is_formatting, finding.tokens))
    return FORM if form else ACTIONS[finding.kind]


def evidence(finding: Finding) -> list[str]:
    """What it stands on, each a short clause."""
    if pairs.about_pairs(finding):
        return pairs.evidence(finding)
    e, out = finding.evidence, []
    if finding.kind is FindingKind.SHORTCUT:
        out.append(f"in {_of(e['documents'])} training documents")
        out.append(f"the class that they point to is right in {_interval(e['decides'])}")
        where = f"class {shown(finding.label, 40)}" if finding.label else "their classes"
        out.append(f"they are in {_interval(e['class'])} of {where}")
        out += [_SIGNS[sign] for sign in finding.signs]
    elif finding.kind is FindingKind.LABELS:
        out.append("answered for another class, with a margin of 0.8 or more, by models that never saw them")
    elif finding.kind is FindingKind.LEAK:
        out.append(f"{_of(e['identical'])} word for word, the others in at least 80% of their word triples")
    elif "documents" in e:
        out.append(f"{_of(e['documents'])} documents")
    return out


def main_line(audit: Audit) -> str:
    """The sentence that page and terminal begin with: the gravest finding, or that there is none."""
    if audit.findings:
        return headline(audit.findings[0])
    if not audit.over_budget.is_empty():
        n = audit.over_budget["token"].n_unique()
        return f"{count(n)} token{'s' * (n != 1)} over the budget {audit.settings['budget']}"
    return f"No shortcut, leak or label problem found in {shown(file_name(audit.name), 60)}"


def honest(audit: Audit) -> str:
    """Accuracy with and without the shortcuts; nothing where there are none."""
    if audit.honest_accuracy is None:
        return ""
    whole, without = audit.honest_accuracy
    chance = ", no further apart than chance explains" if without.low <= whole.value <= without.high else ""
    return f"Test accuracy {percent(whole.value)}; without the shortcuts {_interval(without)}{chance}"


def _of(share: Share) -> str:
    return f"{count(share.found)} of {count(share.of)}"


def _interval(share: Share) -> str:
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
