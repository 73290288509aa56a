"""Comparisons of accuracies: is a significant change real, is the true change in its interval?"""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.settings import Settings
from tokensieve.evidence.paired import PairedDifference
from tokensieve.read.reader import read_corpus
from tokensieve.task.refitted import compare_refit
from tokensieve.task.tasks import train_corpus
from verdict_data import Documents, Outcome, Verdict, generated, insert, others

WORD = "qovari"
N_TRAIN = 500
N_TEST = 300
N_FURTHER = 3000  # so that their own chance widens the difference by a twentieth only


def significant_without_effect(documents: Documents, seed: int) -> Outcome:
    """A word put into a fifth of all documents, whatever their label.

    Two fitted models differ a little even so. The sentence is false if the change is not seen, in
    the same direction, on the documents of the set that are in neither part.
    """
    rng = np.random.default_rng(seed)

    def marked(plain: Documents) -> Documents:
        texts = [insert(t, WORD, rng) if rng.random() < 0.2 else t for t in plain.texts]
        return Documents(plain.set_name, texts, plain.labels)

    few = marked(documents)
    n_train = round(0.8 * len(few.texts))
    train = Documents(few.set_name, few.texts[:n_train], few.labels[:n_train])
    test = Documents(few.set_name, few.texts[n_train:], few.labels[n_train:])
    small = _difference_without_word(train, test, seed)
    if not small.is_significant:
        return Outcome(1, 0)
    further = marked(others(documents, seed))
    large = _difference_without_word(train, further, seed)
    return Outcome(1, int(small.change * large.change <= 0))


def change_outside_its_interval(documents: Documents, seed: int) -> Outcome:
    """A word in a fifth of one class: the loss without it is known from many further tests."""
    made = generated(200_000 + seed, N_TRAIN + N_TEST + N_FURTHER)
    rng = np.random.default_rng(seed)
    texts = [
        insert(t, WORD, rng) if label == "good" and rng.random() < 0.2 else t
        for t, label in zip(made.texts, made.labels, strict=True)
    ]
    n_known = N_TRAIN + N_TEST
    train = Documents(made.set_name, texts[:N_TRAIN], made.labels[:N_TRAIN])
    few = Documents(made.set_name, texts[N_TRAIN:n_known], made.labels[N_TRAIN:n_known])
    many = Documents(made.set_name, texts[n_known:], made.labels[n_known:])
    small = _difference_without_word(train, few, seed)
    large = _difference_without_word(train, many, seed)
    return Outcome(1, int(not small.low <= large.change <= small.high))


def _difference_without_word(train: Documents, test: Documents, seed: int) -> PairedDifference:
    """What a model loses without the word, on given test documents."""
    held_out = pl.DataFrame({"text": test.texts, "label": test.labels})
    settings = Settings(
        baseline=False, thorough=False, seed=seed, text="text", label="label", test=held_out
    )
    frame = pl.DataFrame({"text": train.texts, "label": train.labels})
    learned = train_corpus(read_corpus(frame, settings), settings)
    types = learned.train.types_not_containing({WORD})
    assert types is not None
    return compare_refit(learned, types, settings).difference


VERDICTS = (
    Verdict(
        "… −0.3 points (95% CI …), without “a difference within chance”",
        "the word left out is in documents of all classes alike, and on further documents of the "
        "set the change is not in the same direction",
        "comparison",
        significant_without_effect,
        n_generated=20,
    ),
    Verdict(
        "… points (95% CI … to …)",
        f"the change on {N_FURTHER:,} further test documents is outside the interval",
        "comparison",
        change_outside_its_interval,
        on_real_sets=False,
        n_generated=76,
    ),
)
