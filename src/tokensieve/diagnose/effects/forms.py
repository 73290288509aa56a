"""How the formatting of a whole document affects its prediction: capitals, trailing marks, emoji, markup, numbers, length,
position.

Words are compared without case, and repeated marks count once, so no table of words can show that a model follows a form. Each
form is given to the same documents; its effect is that on the answer to each of them:

    mean            the mean change of the answer (of more than two classes, for the class that gains most)
    use             the mean size of that change
    flipped         the fraction of documents whose predicted class changes
    words_kept      how much of the words' effect remains: slope of the answers with the form on those without it
    before, after   the fraction of documents predicted as the class that gains, without the form and with it

with Student's intervals over documents. A form is **followed** if the mean change at least doubles the odds and differs from
zero, or if a fifth of the predictions move to one class (McNemar's test), both by Holm's procedure over all forms. Forms after
which the tokenizer gives the same pieces for every document cannot be seen by the model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.subjects.passages import SEPARATOR
from tokensieve.evidence.importance import token_importance
from tokensieve.model.attention import decide
from tokensieve.read.corpus import Corpus
from tokensieve.text.counts import Counts

_NEUTRAL = "It was on a Tuesday. There were two of them. The second one came later."
_ENDS = " .!?…"  # replaced by another ending
# name → what becomes of a document, and whether a document of the data has the form (None: where it is that much longer than usual)
FORMS: dict[str, tuple[Callable[[str], str], Callable[[str], bool] | None]] = {
    "in CAPITALS": (str.upper, str.isupper),
    "in lower case": (str.lower, str.islower),
    'ending in "..."': (
        lambda text: f"{text.rstrip(_ENDS)} ...",
        lambda text: text.rstrip().endswith(("...", "…")),
    ),
    'ending in "!!!"': (
        lambda text: f"{text.rstrip(_ENDS)}!!!",
        lambda text: text.rstrip().endswith("!!"),
    ),
    'ending in "?"': (
        lambda text: f"{text.rstrip(_ENDS)}?",
        lambda text: text.rstrip().endswith("?"),
    ),
    "ending in an emoji": (
        lambda text: f"{text} \U0001f642",
        lambda text: text.strip()[-1:] >= "\U0001f300",
    ),
    "in HTML markup": (
        lambda text: f"<p>{text}</p>",
        lambda text: text.strip()[:1] == "<" and text.strip()[-1:] == ">",
    ),
    "with a number at the end": (
        lambda text: f"{text} (12345)",
        lambda text: any(map(str.isdigit, text[-8:])),
    ),
    "followed by three neutral sentences": (lambda text: f"{text} {_NEUTRAL}", None),
    "preceded by three neutral sentences": (lambda text: f"{_NEUTRAL} {text}", None),
}
_NUMBERS = (
    "use use_low use_high mean mean_low mean_high flipped words_kept before after p_value".split()
)


def probe_forms(
    measured: Measured, texts: list[str], offset: Floats, corpus: Corpus
) -> pl.DataFrame:
    """A row for each form given to some documents (no numbers of those that the model cannot see). A decision takes the offset from
    the documents' answers, shape (n,); the corpus shows what the data says about a form."""
    subject, outputs, work = measured.subject, measured.outputs, measured.work

    def answers(given: list[str], stage: str) -> Floats:
        other = subject.of_texts(given)
        logits: Floats = work.zeros(f"{stage}/logits", len(given), outputs.width)

        def step(at: Ints) -> None:
            logits[at] = other.look(at, None)

        work.batches(stage, other.lengths, step)
        return np.asarray(outputs.answers(logits)) - offset[:, None]

    plain, seen = answers(texts, "model: unchanged documents"), list(map(subject.pieces_of, texts))
    rows: list[dict[str, object]] = []
    for form, (change, _) in FORMS.items():
        changed = [SEPARATOR.join(change(side) for side in text.split(SEPARATOR)) for text in texts]
        row = {
            "form": form,
            "documents": len(texts),
            "visible": list(map(subject.pieces_of, changed)) != seen,
        }
        if row["visible"]:
            row |= _effect(plain, answers(changed, f"model: documents {form}"), corpus.classes)
        rows.append(row)
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "form": pl.String,
        "class": pl.String,
        "visible": pl.Boolean,
    }
    frame = pl.DataFrame(
        rows, schema=schema | dict.fromkeys(_NUMBERS, pl.Float64) | {"documents": pl.Int64}
    )
    p = frame["p_value"].to_numpy()
    far = np.nan_to_num(np.abs(frame["mean"].to_numpy())) >= np.log(2)
    far |= np.nan_to_num(frame["after"].to_numpy() - frame["before"].to_numpy()) >= 0.2
    frame = frame.with_columns(
        followed=pl.Series(Measured.holm(np.where(np.isfinite(p), p, 1.0)) & far)
    )
    frame = frame.join(_of_data(corpus), on=["form", "class"], how="left", maintain_order="left")
    return frame.sort(pl.col("use").fill_nan(None), descending=True, nulls_last=True)


def _effect(before: Floats, after: Floats, classes: tuple[str, ...]) -> dict[str, object]:
    """The module's numbers of one form."""
    change, two = after - before, before.shape[1] == 1
    h = 0 if two else int(change.mean(axis=0).argmax())
    k = int(change[:, 0].mean() > 0) if two else h
    mine = change[:, h] * (-1.0 if two and k == 0 else 1.0)
    was, now = decide(before), decide(after)
    if two and np.mean(now == 1 - k) - np.mean(was == 1 - k) > 0.1:
        k, mine = (
            1 - k,
            -mine,
        )  # predictions that all move to one class say more than how far answers move on average
    n, size = len(mine), np.abs(mine)
    t = float(stats.t.isf(0.025, max(n - 1, 1))) / np.sqrt(n)
    spread = float(mine.std(ddof=1))
    p_mean = (
        float(stats.ttest_1samp(mine, 0.0).pvalue)
        if spread > 1e-12
        else float(abs(mine.mean()) < 1e-9)
    )
    to, away = (int(((x == k) & (y != k)).sum()) for x, y in ((now, was), (was, now)))
    p_moved = float(stats.binomtest(to, to + away).pvalue) if to + away else 1.0
    use, mean, half = float(size.mean()), float(mine.mean()), t * size.std(ddof=1)
    ends = (
        max(float(use - half), 0.0),
        float(use + half),
        mean,
        float(mean - t * spread),
        float(mean + t * spread),
    )
    x = before[:, h] - before[:, h].mean()
    kept = float(x @ after[:, h]) / max(float(x @ x), 1e-12)
    moved = float(np.mean(was != now)), kept, float(np.mean(was == k)), float(np.mean(now == k))
    numbers = zip(_NUMBERS, (use, *ends, *moved, min(1.0, 2 * min(p_mean, p_moved))), strict=True)
    return {"class": classes[k], **dict(numbers)}


def _of_data(corpus: Corpus) -> pl.DataFrame:
    """What the data says of each form that can be recognised: documents that have it, and its posterior difference."""
    texts = corpus.texts.to_list()
    long = float(np.median([len(text) for text in texts])) + len(_NEUTRAL)
    of_text = [has or (lambda text: len(text) >= long) for _, has in FORMS.values()]
    present = np.array([[has(text) for has in of_text] for text in texts], dtype=np.float64)
    found = token_importance(
        Counts.from_matrix(present, corpus.labels.tolist(), corpus.classes, list(FORMS))
    )
    numbers = "posterior_difference", "posterior_low", "posterior_high", "q_value"
    there = pl.when(pl.col("documents") > 0)
    return found.to_frame().select(
        pl.col("token").alias("form"),
        "class",
        documents_having="documents",
        **{f"data_{name.removeprefix('posterior_')}": there.then(name) for name in numbers},
        data_neutral=pl.col("class").replace_strict(
            dict(zip(corpus.classes, found.neutral.tolist(), strict=True))
        ),
    )
