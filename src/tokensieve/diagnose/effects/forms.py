"""What the form of a whole document does to its prediction: capitals, marks at its end, emoji, markup, numbers, length, position.

Words are compared without case, and of repeated marks one is seen, so that a model may follow a form that no table of words can
show. Each form is given to the same documents; its effect is that on the answer to each of them:

    mean            the mean change of the answer (of more than two classes, for the class that gains most)
    use             the mean size of that change
    flipped         the fraction of documents of which another class is predicted
    before, after   the fraction of documents predicted as the class that gains, without the form and with it

with Student's intervals over documents. A form is **followed** if the mean change at least doubles the odds and differs from
zero, or if a fifth of the predictions move to one class (McNemar's test), both by Holm's procedure over all forms. Forms after
which the tokenizer gives the same pieces for every document cannot be seen by the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.diagnose.subjects.classes import Outputs
from tokensieve.diagnose.subjects.windows import SEPARATOR
from tokensieve.evidence.importance import token_importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.attention import both, decide
from tokensieve.text.counts import Counts, Floats, Ints

_NEUTRAL = "It was on a Tuesday. There were two of them. The second one came later."


def _end(mark: str) -> Callable[[str], str]:
    return lambda text: f"{text.rstrip(' .!?…')}{mark}"


# name → what becomes of a document, and whether a document of the data has the form (None: that cannot be said)
FORMS: dict[str, tuple[Callable[[str], str], Callable[[str], bool] | None]] = {
    "in CAPITALS": (str.upper, lambda text: text.isupper()),
    "in lower case": (str.lower, lambda text: text.islower()),
    'ending in "..."': (_end(" ..."), lambda text: text.rstrip().endswith(("...", "…"))),
    'ending in "!!!"': (_end("!!!"), lambda text: text.rstrip().endswith("!!")),
    'ending in "?"': (_end("?"), lambda text: text.rstrip().endswith("?")),
    "ending in an emoji": (
        lambda text: f"{text} \U0001f642",
        lambda text: bool(text.strip()) and ord(text.strip()[-1]) >= 0x1F300,
    ),
    "in HTML markup": (lambda text: f"<p>{text}</p>", lambda text: "<" in text and ">" in text),
    "with a number at its end": (
        lambda text: f"{text} (12345)",
        lambda text: any(letter.isdigit() for letter in text[-8:]),
    ),
    "with three neutral sentences after it": (lambda text: f"{text} {_NEUTRAL}", None),
    "with three neutral sentences before it": (lambda text: f"{_NEUTRAL} {text}", None),
}


def probe_forms(
    predict: Callable[[list[str], str], Floats],
    same: Callable[[str, str], bool],
    outputs: Outputs,
    texts: list[str],
    offset: Floats,
    corpus: Any,
) -> pl.DataFrame:
    """A row for each form; those that the model cannot see have no numbers.

    Args:
        predict: logits of texts, shape (n, M), and what to call that.
        same: whether the model reads two texts as the same pieces.
        outputs: how logits become answers.
        texts: some documents.
        offset: what a decision takes from their answers, shape (n,).
        corpus: all documents with their labels, for what the data says of a form.
    """
    classes = corpus.classes
    plain = outputs.answers(predict(texts, "model: documents as they are"))
    rows: list[dict[str, Any]] = []
    for form, (change, _) in FORMS.items():
        changed = [SEPARATOR.join(change(side) for side in text.split(SEPARATOR)) for text in texts]
        row: dict[str, Any] = {"form": form, "documents": len(texts)}
        if all(same(text, other) for text, other in zip(texts, changed, strict=True)):
            rows.append(row | {"visible": False})
            continue
        moved = outputs.answers(predict(changed, f"model: documents {form}"))
        rows.append(row | {"visible": True} | _effect(plain - offset[:, None], moved - offset[:, None], classes))
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    p = frame["p_value"].to_numpy()
    p_values = np.where(np.isfinite(p), p, 1.0)
    small = np.sort(p_values)
    least = np.maximum.accumulate(small * np.arange(len(p), 0, -1))
    adjusted = least[np.searchsorted(small, p_values)]
    far = np.nan_to_num(np.abs(frame["mean"].to_numpy())) >= np.log(2)
    far |= np.nan_to_num(frame["after"].to_numpy() - frame["before"].to_numpy()) >= 0.2
    frame = frame.with_columns(followed=pl.Series((adjusted < LEVEL) & far))
    frame = frame.join(_of_data(corpus), on=["form", "class"], how="left", maintain_order="left")
    return frame.sort(pl.col("use").fill_nan(None), descending=True, nulls_last=True)


_SCHEMA: dict[str, Any] = {
    "form": pl.String,
    "class": pl.String,
    "visible": pl.Boolean,
    "use": pl.Float64,
    "use_low": pl.Float64,
    "use_high": pl.Float64,
    "mean": pl.Float64,
    "mean_low": pl.Float64,
    "mean_high": pl.Float64,
    "flipped": pl.Float64,
    "before": pl.Float64,
    "after": pl.Float64,
    "p_value": pl.Float64,
    "documents": pl.Int64,
}


def _effect(before: Floats, after: Floats, classes: tuple[str, ...]) -> dict[str, Any]:
    """The module's numbers of one form."""
    change = after - before
    h = int(change.mean(axis=0).argmax()) if change.shape[1] > 1 else 0
    k = h if change.shape[1] > 1 else int(change[:, 0].mean() > 0)
    mine = change[:, h] * (-1.0 if change.shape[1] == 1 and k == 0 else 1.0)
    answers = [decide(x) for x in (before, after)]
    if change.shape[1] == 1 and np.mean(answers[1] == 1 - k) - np.mean(answers[0] == 1 - k) > 0.1:
        k, mine = 1 - k, -mine  # predictions that all move to one class say more than how far answers move on average
    n, size = len(mine), np.abs(mine)
    t = float(stats.t.isf(0.025, max(n - 1, 1))) / np.sqrt(n)
    spread = float(mine.std(ddof=1))
    p_mean = float(stats.ttest_1samp(mine, 0.0).pvalue) if spread > 1e-12 else float(abs(mine.mean()) < 1e-9)
    to, away = (int(((x == k) & (y != k)).sum()) for x, y in ((answers[1], answers[0]), (answers[0], answers[1])))
    p_moved = float(stats.binomtest(to, to + away).pvalue) if to + away else 1.0
    return {
        "class": classes[k],
        "use": float(size.mean()),
        "use_low": max(float(size.mean() - t * size.std(ddof=1)), 0.0),
        "use_high": float(size.mean() + t * size.std(ddof=1)),
        "mean": float(mine.mean()),
        "mean_low": float(mine.mean() - t * spread),
        "mean_high": float(mine.mean() + t * spread),
        "flipped": float(np.mean(answers[0] != answers[1])),
        "before": float(np.mean(answers[0] == k)),
        "after": float(np.mean(answers[1] == k)),
        "p_value": min(1.0, 2 * min(p_mean, p_moved)),
    }


def _of_data(corpus: Any) -> pl.DataFrame:
    """What the data says of each form that can be recognised: documents that have it, and its posterior difference."""
    texts: list[str] = corpus.texts.to_list()
    named = [(form, has) for form, (_, has) in FORMS.items() if has is not None]
    present = np.array([[has(text) for _, has in named] for text in texts], dtype=np.float64)
    found = token_importance(Counts.from_matrix(present, corpus.labels.tolist(), corpus.classes, [f for f, _ in named]))
    neutral: Floats = found.neutral
    numbers = (found.posterior_difference, *found.posterior_interval, found.q_value)
    having: Ints = present.sum(axis=0).astype(np.int64)
    rows = []
    for i, (form, _) in enumerate(named):
        for k, label in enumerate(corpus.classes):
            row: dict[str, Any] = {"form": form, "class": label, "documents_having": int(having[i])}
            for name, values in zip(("difference", "low", "high", "q_value"), numbers, strict=True):
                row[f"data_{name}"] = float(both(values)[i, k]) if having[i] else None
            rows.append(row | {"data_neutral": float(neutral[k])})
    return pl.DataFrame(rows, infer_schema_length=None)
