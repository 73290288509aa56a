"""Explain one prediction: the contributions of its tokens add up to the logit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import command
from tokensieve.errors import InputError
from tokensieve.escape import for_display, printable
from tokensieve.options import option
from tokensieve.wording import plural

if TYPE_CHECKING:
    from tokensieve.model.attention import Model

MAX_TOKENS_PRINTED = 30  # one screen


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
    if classifier.predicts_scores and (label is not None or against is not None):
        raise InputError("this model predicts scores: --label and --against need another one")
    if text == "-":
        read = sys.stdin.buffer.read(MAX_LINE_BYTES + 1)
        if len(read) > MAX_LINE_BYTES:
            raise InputError(f"standard input: the text is over {MAX_LINE_BYTES / 1e6:,.0f} MB")
        text = read.decode(errors="replace")
    explanation: Explanation | PairExplanation
    if classifier.predicts_scores:
        _explain_score(classifier, text, as_json)
        return
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


def _explain_score(model: Model, text: str, as_json: bool) -> None:
    """Print the predicted score as the mean score plus the contribution of each token."""
    matrix, _ = model.count([text])
    contributions = model.contributions(matrix)[0]
    rows = [
        {
            "token": str(model.tokens[row["type"]]),
            "attention": row["attention"],
            "contribution": row["contribution"],
        }
        for row in contributions.iter_rows(named=True)
    ]
    predicted = float(model.logits(matrix)[0, 0])
    mean = float(model.prior[0])
    if as_json:
        content = {"score": predicted, "mean_score": mean, "tokens": rows}
        print(printable(json.dumps(content, ensure_ascii=False)))
        return
    print(f"score {predicted:.3g} = mean score {mean:.3g} + contributions of the tokens")
    for row in rows[:MAX_TOKENS_PRINTED]:
        name = for_display(str(row["token"]), 40)
        print(f"{row['contribution']:+8.3f}  {name}  (attention {row['attention']:.1%})")
    if len(rows) > MAX_TOKENS_PRINTED:
        print(f"and {plural(len(rows) - MAX_TOKENS_PRINTED, 'more token')}: --json lists all")
