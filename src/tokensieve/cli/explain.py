"""Explain one prediction: the contributions of its tokens add up to the logit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import command
from tokensieve.errors import InputError
from tokensieve.escape import IN_SENTENCE, for_display, printable
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
    from tokensieve.report.terminal import show_explanation

    classifier = read_model(model)
    if classifier.predicts_scores and (label is not None or against is not None):
        raise InputError("this model predicts scores: --label and --against need another one")
    if text == "-":
        text = _text_of_standard_input()
    if classifier.predicts_scores:
        _explain_score(classifier, text, as_json)
        return
    texts = [text]
    explanation: Explanation | PairExplanation
    if against is not None:
        texts.append(against)
        explanation = compare(classifier, text, against)
    else:
        class_of_model = _class_of_model(label, classifier)
        explanation = Explanation.of(classifier, *classifier.count(texts), class_of_model)[0]
    if as_json:
        _print_json(explanation.to_dict())
    else:
        show_explanation(classifier, texts, explanation)


def _text_of_standard_input() -> str:
    """All of standard input.

    Raises:
        InputError: it is larger than a line of text may be.
    """
    from tokensieve.read.plain import MAX_LINE_BYTES

    content = sys.stdin.buffer.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES:
        n_megabytes = MAX_LINE_BYTES // 10**6
        raise InputError(f"standard input: the text is over {n_megabytes:,} MB")
    return content.decode(errors="replace")


def _class_of_model(label: str | None, model: Model) -> object:
    """The class with this name, as the model stores it; None for no name.

    Raises:
        InputError: there is none; it names the classes, and one that differs only by capitals.
    """
    if label is None:
        return None
    names = [str(name) for name in model.classes]
    if label in names:
        return model.classes[names.index(label)]
    advice = ""
    for name in names:
        if name.lower() == label.strip().lower():
            advice = f"; did you mean {name!r}?"
            break
    raise InputError(f"the model has no class {label!r}; it has {', '.join(names)}{advice}")


def _print_json(content: object) -> None:
    """Print JSON; what a terminal could not show is escaped, which means the same in JSON."""
    print(printable(json.dumps(content, ensure_ascii=False)))


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
        _print_json(content)
        return
    print(f"score {predicted:.3g} = mean score {mean:.3g} + contributions of the tokens")
    for row in rows[:MAX_TOKENS_PRINTED]:
        name = for_display(str(row["token"]), IN_SENTENCE)
        print(f"{row['contribution']:+8.3f}  {name}  (attention {row['attention']:.1%})")
    if len(rows) > MAX_TOKENS_PRINTED:
        print(f"and {plural(len(rows) - MAX_TOKENS_PRINTED, 'more token')}: --json lists all")
