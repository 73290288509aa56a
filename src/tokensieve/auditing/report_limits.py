"""What an audit says it would have found: sentences on the controls.

`benchmarks/verdicts.py` puts new words into the part of a class that an audit names, and counts how
often they are missed (docs/verdicts.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokensieve.auditing.artefacts.controls import FOUND_OFTEN, RATES, Controls
from tokensieve.auditing.data import AuditData
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.wording import percent, plural, verb

MAX_CLASSES_IN_CLAUSE = 2  # that a verdict names, if new words would be found in these only
MAX_CLASSES_NAMED = 4  # for one rate; of more, their number
LARGEST_RATE = percent(max(RATES), 0)


def limit_clause(audit: AuditData) -> str:
    """Ends "The checks found no shortcut" with what they would have found in any class."""
    if audit.controls is None:
        return ", which does not show that there is none"
    rates = audit.controls.found_from_rates(audit.classes)
    known = {label: rate for label, rate in rates.items() if rate is not None}
    if not known:
        return f", but would have missed many a new word in {LARGEST_RATE} of a class"
    classes = "any class"
    if len(known) < len(rates):
        classes = f"{len(known)} of the {len(rates)} classes"
        if len(known) <= MAX_CLASSES_IN_CLAUSE:
            classes = f"class {' or '.join(for_display(label, IN_SENTENCE) for label in known)}"
    largest = percent(max(known.values()), 0)
    return f" (they would have found a new word in {largest} or more of {classes})"


def limit_sentences(audit: AuditData) -> str:
    """Sentences on which inserted words the search would have found, and on its false alarms; empty
    without controls."""
    controls = audit.controls
    if controls is None or not controls.limits:
        return ""
    shuffles = plural(controls.n_shuffles, "shuffle")
    alarms = plural(controls.false_alarms, "word")
    return (
        "As a test, new words were put at random places into documents of one class. "
        f"{_found_from(controls, audit.classes)}. Rarer marks, and marks whose documents have "
        f"other words in common, can be missed. In {shuffles} of the labels, the search accused "
        f"{alarms}."
    )


def _found_from(controls: Controls, classes: Sequence[str]) -> str:
    """A clause with the part of each class from which on nearly all inserted words were found."""
    rates = controls.found_from_rates(classes)
    classes_of_rate: dict[float, list[str]] = {}
    for label, rate in rates.items():
        if rate is not None:
            classes_of_rate.setdefault(rate, []).append(label)
    often = percent(FOUND_OFTEN, 0)
    if not classes_of_rate:
        return f"Fewer than {often} of them were found, even in {LARGEST_RATE} of a class"
    parts = [
        f"in {percent(rate, 0)} or more of {_named(labels)}"
        for rate, labels in sorted(classes_of_rate.items())
    ]
    sentence = f"At least {often} of them were found if they were {' and '.join(parts)}"
    return f"{sentence}{_exceptions(controls, rates)}"


def _exceptions(controls: Controls, rates: Mapping[str, float | None]) -> str:
    """Names the classes in which more words were missed, and the classes that were not tested."""
    tested = {limit.label for limit in controls.limits}
    missed = [label for label, rate in rates.items() if rate is None and label in tested]
    clauses = ""
    if missed:
        clauses += f"; in {_named(missed)}, more were missed"
    n_untested = len(rates) - len(tested)
    if n_untested > 0:
        smallest = plural(n_untested, "smallest class", "smallest classes")
        were = verb(n_untested, "were", "was")
        clauses += f"; the {smallest} {were} not tested"
    return clauses


def _named(labels: Sequence[str]) -> str:
    """The classes by name, or how many there are."""
    if len(labels) > MAX_CLASSES_NAMED:
        return plural(len(labels), "class", "classes")
    return quoted(labels)
