"""The model card as the page draws it: rows, and places in its picture of 200 × 200 units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tokensieve.wording import count, percent

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

MATRIX, ROWS, MISTAKES = 8, 12, 10


def card_view(audit: Audit) -> dict[str, Any] | None:
    """What the template `card.html` prints; None without a card."""
    card, names = audit.card, audit.classes
    if card is None or not card.confusion.sum():
        return None
    order = sorted(range(len(names)), key=lambda k: card.recall[k].value if card.recall[k].of else 2.0)
    order = sorted(order[:ROWS]) if len(names) <= ROWS else order[:ROWS]
    shares = card.confusion / np.maximum(card.confusion.sum(axis=1, keepdims=True), 1)
    matrix = [
        (name, list(zip(*row, strict=True))) for name, *row in zip(names, card.confusion.tolist(), shares, strict=True)
    ]
    wrong = card.confusion - np.diag(card.confusion.diagonal())
    pairs = [divmod(int(i), len(names)) for i in np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]]
    most = max(card.calibration["documents"])
    return {
        "names": names,
        "classes": [(names[k], card.precision[k], card.recall[k]) for k in order],
        "left_out": len(names) - len(order),
        "matrix": matrix if len(names) <= MATRIX else [],
        "mistakes": [(names[a], names[b], int(wrong[a, b])) for a, b in pairs if wrong[a, b]],
        "log_loss": card.log_loss,
        "base_log_loss": card.base_log_loss,
        "calibration_error": card.calibration_error,
        "points": [_point(row, most) for row in card.calibration.to_dicts()],
        "calibration_words": ", ".join(
            f"{percent(r['accuracy'], 0)} right at {percent(r['confidence'], 0)}" for r in card.calibration.to_dicts()
        ),
        "lengths": [(_span(row["low"], row["high"]), row) for row in card.lengths.to_dicts()],
        "curve": [(percent(row["documents"] / audit.documents["train"], 0), row) for row in card.curve.to_dicts()],
    }


def _span(low: int, high: int) -> str:
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def _point(row: dict[str, Any], most: int) -> tuple[float, ...]:
    """Across, up, the ends of the interval, radius."""
    up = [round(200 - 200 * row[name], 1) for name in ("accuracy", "accuracy_low", "accuracy_high")]
    return (round(200 * row["confidence"], 1), *up, round(2 + 5 * math.sqrt(row["documents"] / most), 1))
