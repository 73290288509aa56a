"""Explain one prediction: the contributions of its tokens add up to the logit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tokensieve.cli.command import command
from tokensieve.errors import InputError
from tokensieve.escape import printable
from tokensieve.options import option


@command(model="Folder written by `train` or `audit`.", text="The text, or - for standard input.")
def _explain(
    model: Path,
    text: str,
    against: str | None = option(None, "The other answer, for a preference model.", metavar="TEXT"),
    label: str | None = option(
        None,
        "Class to explain.",
        metavar="CLASS",
        default_text="the second of two classes, else the prediction",
    ),
    as_json: bool = option(False, "Print JSON instead of a table.", flag="--json"),
) -> None:
    """Explain the prediction for one text, or why one answer is preferred to another."""
    from tokensieve.model.explanation import Explanation, PairExplanation, compare
    from tokensieve.model.storage import read_model
    from tokensieve.read.plain import MAX_LINE_BYTES
    from tokensieve.report.terminal import show_explanation

    classifier = read_model(model)
    if text == "-":
        read = sys.stdin.buffer.read(MAX_LINE_BYTES + 1)
        if len(read) > MAX_LINE_BYTES:
            raise InputError(f"standard input: the text is over {MAX_LINE_BYTES / 1e6:,.0f} MB")
        text = read.decode(errors="replace")
    explanation: Explanation | PairExplanation
    if against is not None:
        explanation = compare(classifier, text, against)
    else:
        names = [str(c) for c in classifier.classes]
        if label is not None and label not in names:
            same = next(
                (
                    f"; did you mean {name!r}?"
                    for name in names
                    if name.lower() == label.strip().lower()
                ),
                "",
            )
            raise InputError(f"the model has no class {label!r}; it has {', '.join(names)}{same}")
        class_name = None if label is None else classifier.classes[names.index(label)]
        explanation = Explanation.of(classifier, *classifier.count([text]), class_name)[0]
    if as_json:
        print(
            printable(json.dumps(explanation.to_dict(), ensure_ascii=False))
        )  # escaped, it means the same in JSON
    else:
        show_explanation(
            classifier, [text, *([against] if against is not None else [])], explanation
        )
