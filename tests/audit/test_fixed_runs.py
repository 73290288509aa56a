"""The run of words around a mark goes with it, and no word that varies beside it."""

import polars as pl

from tokensieve.auditing.fixed_runs import with_fixed_runs
from tokensieve.auditing.masking import mask_texts
from tokensieve.text.pieces import TRIAL_TEXTS
from tokensieve.text.tokenizers import FieldTokenizer, WordTokenizer

SPLIT = WordTokenizer()
NAMES = ["ann", "bob", "cy", "dee", "ed"]


def test_nothing_is_left_of_a_run_in_the_middle_of_texts() -> None:
    texts = pl.Series([f"{name} wrote posted via tablet on {name}" for name in NAMES * 3])
    cut = with_fixed_runs(["tablet"], texts, SPLIT)
    assert cut == ("wrote posted via tablet on", "tablet")
    masked, _ = mask_texts(texts, cut, SPLIT)
    assert masked.to_list() == [f"{name} {name}" for name in NAMES * 3]


def test_a_word_without_its_run_is_still_cut() -> None:
    texts = pl.Series([f"{name} sends kind regards {name}" for name in NAMES * 4] + ["regards"])
    cut = with_fixed_runs(["regards"], texts, SPLIT)
    assert cut[-1] == "regards" and cut[0].endswith("kind regards")


def test_what_varies_numbers_and_other_sentences_are_no_run() -> None:
    varied = pl.Series([f"{name} marigold {name}" for name in NAMES * 3])
    assert with_fixed_runs(["marigold"], varied, SPLIT) == ("marigold",)
    rated = pl.Series([f"{name} gives 7/10 here" for name in NAMES * 3])
    assert with_fixed_runs(["7/10", "n/10"], rated, SPLIT) == ("7/10", "n/10")
    ended = pl.Series([f"{name} ends. Marigold, then {name}" for name in NAMES * 3])
    assert with_fixed_runs(["marigold"], ended, SPLIT) == ("marigold",)
    few = pl.Series(["kind regards"] * 5)
    assert with_fixed_runs(["regards"], few, SPLIT) == ("regards",)


def test_fields_and_odd_texts_are_left_alone() -> None:
    fields = FieldTokenizer(SPLIT, ("a", "b"))
    assert with_fixed_runs(["a:kind"], pl.Series(["⟦a⟧kind regards"] * 9), fields) == ("a:kind",)
    assert with_fixed_runs(["kind"], pl.Series(list(TRIAL_TEXTS)), SPLIT) == ("kind",)
