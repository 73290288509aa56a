"""The artefact score: its formulas by independent means, and planted marks against ordinary
words."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from tokensieve.auditing.artefacts.candidates import (
    MAX_CANDIDATES,
    MIN_CANDIDATES,
    Candidate,
    budget_of_class,
)
from tokensieve.auditing.artefacts.class_texts import Area, rank_sums
from tokensieve.auditing.artefacts.context import UNKNOWN_AREA, UsualArea
from tokensieve.auditing.artefacts.controls import Gaps, place_at
from tokensieve.auditing.artefacts.neighbours import Neighbours, shrunk_excess
from tokensieve.auditing.artefacts.reasons import reasons
from tokensieve.auditing.artefacts.score import Scored, fitted_model
from tokensieve.auditing.artefacts.shapes import is_family, shape_of, shaped, without_field
from tokensieve.auditing.artefacts.splits import best_splits, information, likelihood_ratio
from tokensieve.auditing.artefacts.suspects import Suspect
from tokensieve.auditing.artefacts.traits import (
    ANYTHING_JOINED,
    ASCII,
    NEUTRAL_APART,
    TRAITS,
    Observed,
    Traits,
    Usual,
    apart_of,
    joined_fractions,
    joined_pattern,
    maybe_joined_pattern,
)
from tokensieve.auditing.artefacts.use import WordUse
from tokensieve.auditing.checks.shortcut import Predicted, common_classes, shares_of
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.score_ranks import middle_ranks
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream, count_texts


def test_the_best_split_has_no_better_group_and_its_p_is_a_binomial_tail() -> None:
    rng = np.random.default_rng(1)
    sizes = np.full(4, 60)  # of equal classes, m classes of the highest rates are the best m
    present = rng.binomial(sizes, rng.random((30, 4)))
    splits = best_splits(present, sizes)
    for word, row in enumerate(present):
        best = 0.0
        for m in (1, 2):
            for group in combinations(range(4), m):
                inside = row[list(group)].sum()
                size = sizes[list(group)].sum()
                is_higher = inside / size > row.sum() / sizes.sum()
                g = likelihood_ratio(inside, row.sum(), size, sizes.sum())
                choices = {1: 4, 2: 6}[m] * 3
                if is_higher:
                    best = max(best, float(g) - 2 * np.log(choices))
        m = int(splits.is_inside[word].sum())
        choices = {1: 4, 2: 6}[m] * 3
        assert splits.g_squared[word] - 2 * np.log(choices) == pytest.approx(best, abs=1e-8)
        share = splits.group_sizes[word] / sizes.sum()
        tail = binom.sf(splits.n_inside[word] - 1, row.sum(), share)
        assert splits.p_value[word] == pytest.approx(min(1.0, tail * choices))


def test_information_is_that_of_its_definition() -> None:
    present = np.array([[3, 10, 0]])
    sizes = np.array([20, 20, 10])
    total = 0.0
    for k in range(3):
        for joint, marginal in ((present[0, k], 13), (sizes[k] - present[0, k], 37)):
            if joint:
                total += joint / 50 * np.log2(joint * 50 / (marginal * sizes[k]))
    assert information(present, sizes)[0] == pytest.approx(total)


def word_use(texts: list[str], labels: list[int]) -> WordUse:
    counted = count_texts(pl.Series(texts), tokenizer=WordTokenizer(), min_documents=1)
    counts = Counts(
        counted.matrix.astype(float), np.array(labels), ("a", "b"), counted.vocabulary.tokens
    )
    return WordUse.of(counts, counted.stream, counted.vocabulary.tokenizer)


def test_a_control_word_is_put_anywhere_in_its_documents_also_at_their_edges() -> None:
    """As in a text that a mark is put into: in short ones, most places are at an edge."""
    texts = ["one", "two three", "", "four five six", "seven"]
    use = word_use(texts, [0, 1, 0, 1, 1])
    gaps = Gaps.of(use)
    assert np.bincount(gaps.documents, minlength=5).tolist() == [2, 3, 0, 4, 2]
    rng = np.random.default_rng(0)
    drawn = np.array([gaps.draw(np.array([0, 1, 2, 3]), rng) for _ in range(900)])
    for column, n_gaps in enumerate((2, 3, 4)):
        n_of_gap = np.unique(drawn[:, column], return_counts=True)[1]
        assert len(n_of_gap) == n_gaps
        assert np.abs(n_of_gap / 900 - 1 / n_gaps).max() < 0.06
    # before the only word of a text: behind its start mark, and always at this distance
    assert use.order.ids[gaps.places[0] - 1] == use.order.start_mark
    assert place_at(use, gaps.places[:1]) == 1.0


def test_the_context_area_is_that_of_centroids_without_each_document() -> None:
    rng = np.random.default_rng(3)
    words = [f"w{chr(97 + i)}" for i in range(20)]
    texts = [" ".join(rng.choice(words, 8)) for _ in range(60)]
    use = word_use(texts, [0] * 50 + [1] * 10)
    own = use.class_texts(0)
    held = np.flatnonzero([words[0] in text.split() for text in texts[:50]])
    target = use.type_of[words[0]]
    is_left_out = own._coming_with(np.isin(own.documents, held)[:, None])[:, 0]
    is_left_out[own.types == target] = True
    vectors = own.vectors.toarray() * ~is_left_out
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    contains = np.isin(own.documents, held)
    scores = []
    for i in range(50):
        rest = np.arange(50) != i
        near = vectors[rest & contains].mean(axis=0) - vectors[rest & ~contains].mean(axis=0)
        scores.append(vectors[i] @ near)
    scores = np.array(scores)
    differences = scores[contains][:, None] - scores[~contains]
    expected = ((differences > 1e-9) + 0.5 * (np.abs(differences) <= 1e-9)).mean()
    area = own.areas([held], [np.array([target])])[0]
    assert area.auc == pytest.approx(expected, abs=1e-9) and area.n_with == len(held)


def test_what_looks_inserted_is_drawn_to_zero_where_pairs_hardly_tell() -> None:
    always = np.ones(40, dtype=bool)
    assert shrunk_excess(always, np.full(40, 0.9), np.full(40, 0.1)) == pytest.approx(1.1, abs=0.05)
    two_errors_more = np.arange(40) < 26  # than the half of them that are pairs by chance
    assert 0 < shrunk_excess(two_errors_more, np.full(40, 0.55), np.full(40, 0.5)) < 0.6
    assert shrunk_excess(always, np.full(40, 0.5), np.full(40, 0.5)) == 0


def test_ratings_in_words_have_the_shape_of_ratings() -> None:
    texts = pl.Series(["a 7 out of 10", "seven out of ten", "3 out of 4", "7 out", "of 10 5/10"])
    shapes = shaped(TokenStream.of(texts, WordTokenizer()))
    first = [shapes.words[i] for i in shapes.ids[[1, 5]]]
    assert first == ["n/10", "n/10"]
    assert [shapes.words[i] for i in shapes.ids].count("n/10") == 3


@pytest.mark.parametrize(
    ("word", "shape"),
    [("7/10", "n/10"), ("10/10", "n/10"), ("v1.2", "v0.0"), ("word", "word"), ("ten", "0")],
)
def test_spellings_of_one_thing_have_one_shape(word: str, shape: str) -> None:
    assert shape_of(word) == shape == shape_of(shape)
    assert is_family((shape,)) == (shape not in ("word", "0"))


@pytest.mark.parametrize(
    ("word", "bare", "shape"),
    [
        ("sentence1:dog", "dog", "sentence1:dog"),
        ("1:dog", "dog", "1:dog"),
        ("v2:7/10", "7/10", "v2:n/10"),
        ("title:13:45", "13:45", "title:0:0"),
        ("13:45", "13:45", "0:0"),
        ("https://a.example/1", "https://a.example/1", "web-address"),
    ],
)
def test_digits_in_the_name_of_a_field_are_no_part_of_its_words(
    word: str, bare: str, shape: str
) -> None:
    assert without_field(word) == bare and shape_of(word) == shape
    assert is_family((shape,)) == ("dog" not in word)


@pytest.mark.slow
def test_the_name_of_a_field_changes_no_probability() -> None:
    """Every word of sentence1 and sentence2 was a family of numbers, and none was ordinary."""
    made = demo_reviews(600, seed=2)
    labels = ["good" if label else "bad" for label in made.labels]
    found = []
    for names in (("title", "body"), ("sentence1", "sentence2")):
        frame = pl.DataFrame({names[0]: made.texts, names[1]: made.texts, "label": labels})
        settings = Settings(text=names, label="label", baseline=False, thorough=False)
        found.append([finding.probability for finding in audit(frame, settings).findings])
    assert found[0] == found[1] and found[0][0] is not None


def test_terms_add_up_to_the_log_odds() -> None:
    traits = Traits(**dict.fromkeys(TRAITS, 0.5))
    model = fitted_model()
    log_odds = model.intercept + model.terms([traits]).sum()
    for name, curve in zip(TRAITS, model.curves, strict=True):
        assert (np.diff(curve.at) > 0).all() and len(curve.at) == len(curve.adds), name
    assert model.probabilities([traits])[0] == pytest.approx(1 / (1 + np.exp(-log_odds)), abs=1e-6)


@pytest.mark.parametrize("classes", [(0,), (0, 2)])
def test_a_reason_says_how_many_documents_there_are_beyond_one_half(
    classes: tuple[int, ...],
) -> None:
    """The trait ends at one half; the sentence must not."""
    candidate = Candidate(
        words=("zebra",),
        type=0,
        classes=classes,
        documents=np.arange(80),
        n_inside=80,
        group_size=100,
        certainty=1.0,
        p_value=0.0,
    )
    traits = Traits(**dict.fromkeys(TRAITS, 0.0) | {"coverage": 0.5})
    observed = Observed(candidate, traits, Neighbours(inserted=0.0, constancy=0.0))
    terms = dict.fromkeys(TRAITS, 0.0) | {"coverage": 1.0}
    (sentence,) = reasons(Scored(observed, 0.9, terms))
    assert "80%" in sentence
    assert ("classes" in sentence) == (len(classes) > 1)


def test_a_reason_counts_and_one_against_begins_with_but() -> None:
    """It said "always between the same words" of a third of the cases."""
    candidate = Candidate(
        words=("zebra",),
        type=0,
        classes=(0,),
        documents=np.arange(40),
        n_inside=37,
        group_size=100,
        certainty=0.8,
        p_value=0.0,
    )
    traits = Traits(**dict.fromkeys(TRAITS, 0.0) | {"constancy": 0.3})
    observed = Observed(candidate, traits, Neighbours(inserted=0.0, constancy=0.3))
    terms = dict.fromkeys(TRAITS, 0.0) | {"constancy": -1.0, "certainty": 1.0}
    first, second = reasons(Scored(observed, 0.6, terms))
    assert "3 of its 40 documents" in first
    assert second.startswith("but ") and "30%" in second


def test_where_ordinary_words_keep_no_company_its_absence_tells_nothing() -> None:
    def usual(auc: float) -> Usual:
        return Usual(UsualArea(auc, 0.0, 0.0, 100), UNKNOWN_AREA, (1.0, 0.0), [])

    alone = Area(0.5, 0.04, 30)
    in_company = Area(0.9, 0.04, 30)
    by_usual = [apart_of(alone, usual(auc), 0) for auc in np.linspace(0.5, 0.7, 21)]
    assert by_usual[0] == NEUTRAL_APART and by_usual[-1] > 2
    assert (np.diff(by_usual) >= 0).all() and np.diff(by_usual).max() < 1.5, "no cliff"
    assert apart_of(alone, usual(0.7), 1) == NEUTRAL_APART, "a class without ordinary words"
    assert apart_of(in_company, usual(0.5), 0) < NEUTRAL_APART, "company tells all the same"


def test_templates_repeat_runs_of_words_and_words_drawn_at_random_do_not() -> None:
    rng = np.random.default_rng(1)
    words = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(20) for j in range(10)]
    drawn = pl.Series([" ".join(rng.choice(words, 12)) for _ in range(200)])
    filled = pl.Series([f"please tell me how to get to {word} today" for word in words])
    repetition = []
    for texts in (drawn, filled):
        counted = count_texts(texts, tokenizer=WordTokenizer(), min_documents=1)
        labels = np.zeros(len(texts), dtype=np.int64)
        counts = Counts(counted.matrix, labels, ("one",), counted.vocabulary.tokens)
        use = WordUse.of(counts, counted.stream, WordTokenizer())
        repetition.append(use.order.repetition)
    assert repetition[0] < 0.01 and 0.5 < repetition[1] < 1


def test_classes_with_few_words_leave_their_budget_to_others() -> None:
    assert budget_of_class(np.array([3, 900, 900])) == (MAX_CANDIDATES - 3) // 2
    assert budget_of_class(np.array([900] * 77)) == MIN_CANDIDATES


def test_a_phrase_begins_where_its_words_follow_each_other() -> None:
    texts = ["a b a b c", "b c a", "", "c a b a", "x 5 7 x 9 7"]
    use = word_use(texts, [0, 1, 0, 1, 1])
    order = use.order
    shapes = [*order.words, "", ""]
    for phrase in (("a", "b"), ("b", "a", "b"), ("0", "0"), ("x", "0"), ("c", "b"), ("no", "a")):
        named = [shapes[i] for i in order.ids.tolist()]
        expected = [i for i in range(len(named)) if tuple(named[i : i + len(phrase)]) == phrase]
        assert order.begins(phrase).tolist() == expected, phrase


def test_what_may_be_joined_is_all_that_is_joined() -> None:
    """The expressions that compile fast match wherever those that decide do."""
    signs = ["", " ", ".", "/", "_", "-", "[", "]", "@", "7", "x", "é", "<br />", "\n"]
    rng = np.random.default_rng(0)
    for words in (("tablet",), ("ſet",), ("as", "a"), ("k",), ("v0.0",), ("don't",)):
        written = " ".join(words).replace("0", "31").upper()
        texts = pl.Series(
            ["".join([*rng.choice(signs, 2), written, *rng.choice(signs, 2)]) for _ in range(200)]
        )
        is_joined = texts.str.contains(joined_pattern(words))
        assert is_joined.any()
        for larger in (ANYTHING_JOINED, maybe_joined_pattern(words)):
            assert texts.filter(is_joined).str.contains(larger).all()
        in_ascii = texts.str.len_bytes() == texts.str.len_chars()
        same = texts.filter(in_ascii).str.contains(joined_pattern(words, ASCII))
        assert (same == is_joined.filter(in_ascii)).all()
        share = joined_fractions(texts, [words], [np.arange(40)])[0]
        assert share == is_joined[:40].mean()


def test_sums_of_ranks_are_those_of_middle_ranks() -> None:
    rng = np.random.default_rng(0)
    scores = np.round(rng.random((5, 40)), 1)
    contains = rng.random((5, 40)) < 0.3
    expected = [middle_ranks(row)[is_in].sum() for row, is_in in zip(scores, contains, strict=True)]
    assert rank_sums(scores, contains).tolist() == expected


def test_shares_of_suspects_of_overlapping_classes_are_of_all_their_classes() -> None:
    """One word of classes 0 and 1, another of 1 and 2: the documents of all three are counted."""
    labels = np.repeat(np.arange(4), 10)
    first = Suspect("first", 0, (0, 1), np.arange(0, 18), 0.9, 0.9)
    second = Suspect("second", 1, (1, 2), np.arange(12, 29), 0.8, 0.9)
    together = [second, first]
    predicted = Predicted.of(labels, [s.documents for s in together], [s.classes for s in together])
    classes = common_classes(together)
    shares = shares_of(predicted.totals, np.full(4, 10), list(classes))
    assert classes == (0, 1, 2)
    assert (shares["class"].found, shares["class"].of) == (29, 30)
