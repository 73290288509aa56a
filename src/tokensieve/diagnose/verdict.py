"""What the numbers say, in plain sentences."""

from __future__ import annotations

import math

import polars as pl

from tokensieve.diagnose.agreement import Correlation
from tokensieve.escape import shown

MEASURES = {
    "value_importance": "its answer to a word alone",
    "gradient_importance": "the first-order effect of a word in its document",
    "deletion_importance": "the effect of deleting a word from its document",
}
NAMED = 5


def judge(
    correlation: dict[str, Correlation],
    untrained: dict[str, Correlation],
    by_chance: dict[str, tuple[float, float]],
    leaning: pl.DataFrame,
    accuracy: tuple[float, float, int],
) -> tuple[bool | None, list[str]]:
    """Whether the model has learned where the label is, and why, and what it leans on without support.

    It has learned where at least one of value, first-order effect and deletion effect agrees with importance: its interval
    above zero, ρ above what shuffled labels reach, and above the untrained model where there is one. None where no
    correlation could be computed.

    Args:
        correlation: of the model.
        untrained: of its untrained twin, or empty.
        by_chance: middle 95 % under shuffled labels.
        leaning: words leant on without support.
        accuracy: of the model, of always naming the largest class, and the number of documents.
    """
    known = {
        name: correlation[name] for name in MEASURES if name in correlation and math.isfinite(correlation[name].rho)
    }
    if not known:
        return None, [
            "Whether this model has learned where the label is cannot be said: too few words could be measured.",
            _leaning(leaning),
        ]
    passed = {name: one for name, one in known.items() if _real(name, one, untrained, by_chance)}
    best = max(passed or known, key=lambda name: known[name].rho)
    against = _against(best, untrained, by_chance)
    if passed:
        first = (
            f"This model has learned where the label is: {MEASURES[best]} agrees with what the data says about the word "
            f"(correlation {_said(known[best])}; {against})."
        )
    else:
        first = (
            f"Nothing here shows that this model has learned where the label is: even {MEASURES[best]} agrees with what the "
            f"data says no more than it may by chance (correlation {_said(known[best])}; {against})."
        )
    share, majority, n = accuracy
    second = (
        f"It answers {share:.1%} of {n:,} documents correctly; always naming the largest class gets {majority:.1%}."
    )
    return bool(passed), [first, *_attention(correlation, untrained, by_chance), second, _leaning(leaning)]


def _real(
    name: str, found: Correlation, untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]
) -> bool:  # fmt: skip
    beyond = found.low > 0 and found.rho > by_chance.get(name, (0.0, 0.0))[1]
    return beyond and (name not in untrained or not math.isfinite(untrained[name].rho) or found.above(untrained[name]))


def _attention(
    correlation: dict[str, Correlation], untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]
) -> list[str]:  # fmt: skip
    found = correlation.get("attention_importance")
    if found is None or not math.isfinite(found.rho):
        return []
    said = f"(correlation {_said(found)}; {_against('attention_importance', untrained, by_chance)})"
    if _real("attention_importance", found, untrained, by_chance):
        return [f"Its attention goes to the words that carry the label {said}."]
    return [f"Its attention, rolled out over the layers, does not single out the words that carry the label {said}."]


def _leaning(leaning: pl.DataFrame) -> str:
    if leaning.is_empty():
        return "No word could be shown that it leans on without support in these documents."
    names = ", ".join(shown(token, 30) for token in leaning["token"][:NAMED])
    more = f" and {leaning.height - NAMED} more" if leaning.height > NAMED else ""
    return (
        f"It leans on {leaning.height} word{'s' * (leaning.height > 1)} that these documents do not support: {names}{more}. Ask "
        "whether each is a shortcut of the data that it was trained on."
    )


def _against(name: str, untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]) -> str:
    parts = [f"untrained {signed(untrained[name].rho)}"] if name in untrained else []
    if name in by_chance:
        parts.append(f"shuffled labels {signed(by_chance[name][0])} to {signed(by_chance[name][1])}")
    return ", ".join(parts)


def _said(one: Correlation) -> str:
    return f"{signed(one.rho)} [{signed(one.low)}, {signed(one.high)}]"


def signed(x: float) -> str:
    """+0.71, −0.02; – where there is no number."""
    return f"{x:+.2f}".replace("-", "−") if math.isfinite(x) else "–"
