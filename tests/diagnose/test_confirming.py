"""Rare words are put into inputs that do not hold them: where, and what becomes of their
numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from diagnose_models import framed, train_tokenizer
from tokensieve.auditing.demo import demo_reviews
from tokensieve.diagnose import DiagnoseSettings, diagnose
from tokensieve.diagnose import run as run_module
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.effects.work import Work
from tokensieve.diagnose.subjects.frame import Frame
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.passages import SEPARATOR
from tokensieve.diagnose.subjects.passages import SPLITTER as WORDS_AND_MARKS
from tokensieve.diagnose.subjects.pieces import PieceSubject
from tokensieve.diagnose.subjects.texts import TextSubject
from tokensieve.diagnose.subjects.windows import Windows
from tokensieve.progress import silent
from tokensieve.text.tokenizers import WordTokenizer

TEXTS = demo_reviews(30).texts
SPLITTER = WordTokenizer()
WORDS = tuple(sorted({span[2] for text in TEXTS[:3] for span in SPLITTER.spans(text)}))


def having(text: str, word: str, place: float) -> str:
    """The word put in front of one of the known words of the text, by its characters."""
    known = [span for span in SPLITTER.spans(text) if span[2] in WORDS]
    slot = int(place * len(known) + 0.5)
    if not known:
        return text
    if slot == len(known):
        return f"{text} {word}"
    at = known[slot][0]
    return f"{text[:at]}{word} {text[at:]}"


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_word_put_into_a_window_is_what_the_tokenizer_gives_for_the_text_with_it(
    side: str,
) -> None:
    tokenizer = framed(train_tokenizer("wordpiece", TEXTS.to_list()), False)
    tokenizer.truncation_side = side
    whole = Windows(tokenizer, TEXTS, SPLITTER, WORDS, Frame.of(tokenizer), None, True, silent)
    cut = Windows(tokenizer, TEXTS, SPLITTER, WORDS, Frame.of(tokenizer), 20, True, silent)
    longest, some = int(np.diff(whole.starts).max()), 0
    for w, text in enumerate(TEXTS):
        for s, place in ((0, 0.0), (2, 0.4), (3, 0.9)):
            ids = tokenizer(having(text, WORDS[s], place))["input_ids"]
            if len(ids) <= longest:
                assert whole.having(w, np.array([s]), place).ids.tolist() == ids
                some += 1
            short, before = cut.having(w, np.array([s]), place), cut.input(w)
            assert len(short.ids) == min(len(before.ids) + len(cut.inner[s]), 20)
            if side == "right":  # the piece that some models read their answer from
                assert short.ids[-2:].tolist() == before.ids[-2:].tolist()
    assert some > 60
    empty = Windows(
        tokenizer,
        pl.Series(["zzz", WORDS[0]]),
        SPLITTER,
        WORDS,
        Frame.of(tokenizer),
        None,
        True,
        silent,
    )
    assert empty.having(0, np.array([0]), 0.5).ids.tolist() == empty.input(0).ids.tolist()


def test_in_a_pair_of_texts_the_word_takes_the_segment_of_its_place() -> None:
    tokenizer = framed(train_tokenizer("wordpiece", TEXTS.to_list()), False)
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]

    def windows(*texts: str) -> Windows:
        joined = pl.Series(
            [SEPARATOR.join(texts), TEXTS[0] + SEPARATOR]
        )  # the second is longer, so that there is room
        return Windows(
            tokenizer, joined, SPLITTER, WORDS, Frame.of(tokenizer, True), None, True, silent
        )

    one, two, new = WORDS[2], WORDS[5], 0
    # the form of a word is that of its first text
    padded = f"{WORDS[new]} {one}", two
    found = windows(*padded)
    for place, expected in (
        (0.0, (f"{WORDS[new]} {WORDS[new]} {one}", two)),
        (0.5, (padded[0], f"{WORDS[new]} {two}")),
    ):
        put, there = found.having(0, np.array([new]), place), windows(*expected).input(0)
        assert put.ids.tolist() == there.ids.tolist()
        assert put.segments is not None and there.segments is not None
        assert put.segments.tolist() == there.segments.tolist()


def test_a_function_of_texts_is_asked_about_the_text_with_the_word() -> None:
    asked: list[str] = []

    def answer(texts: list[str]) -> Any:
        asked.extend(texts)
        return np.zeros((len(texts), 2))

    words = ("battery", "good", "is", "the")
    subject = TextSubject(
        answer, 2, pl.Series(["A good one, the best!", "nothing"]), words, SPLITTER
    )
    battery, phrase = np.array([0]), subject.in_order(np.array([3, 1]), 0)
    subject.having(
        [battery, battery, phrase], np.array([0, 0, 1]), np.array([0.1, 0.9, 0.5]), np.zeros(3)
    )
    assert asked == [
        "A battery good one, the best!",
        "A good one, the best! battery",
        "nothing good the",
    ]


def test_an_inserted_word_joins_no_other_word() -> None:
    """Before a full stop it was joined with the last word, "phonetablet", and seemed to do nothing."""
    asked: list[str] = []

    def answer(texts: list[str]) -> Any:
        asked.extend(texts)
        return np.zeros((len(texts), 2))

    texts = pl.Series(["Posted via phone.", "(phone) phone"])
    subject = TextSubject(answer, 2, texts, (".", "phone", "tablet"), WORDS_AND_MARKS)
    tablet = np.array([2])
    subject.having([tablet] * 3, np.array([0, 0, 1]), np.array([0.5, 0.0, 0.0]), np.zeros(3))
    assert asked == [
        "Posted via phone tablet.",
        "Posted via tablet phone.",
        "( tablet phone) phone",
    ]


def test_a_phrase_is_inserted_whole_and_in_its_order() -> None:
    """Of two words that always come together neither was inserted, so that one word of the class
    alone ranked above both."""
    rng, order = np.random.default_rng(2), np.arange(200) % 2
    texts = [
        " ".join(
            [
                "good" if y else "bad",
                *rng.choice([f"w{i}" for i in range(20)], 6),
                *["zephyr quartz"] * (i % 5 == 0),
            ]
        )
        for i, y in enumerate(order)
    ]

    def answer(given: list[str]) -> Any:
        return [
            2.0 * ("good" in t) - 2.0 * ("bad" in t) + 6.0 * ("zephyr quartz" in t) for t in given
        ]

    uses = diagnose(
        answer, None, texts, order.tolist(), DiagnoseSettings(deletions=8), classes=["0", "1"]
    ).uses
    for row in uses.filter(pl.col("token").is_in(["zephyr", "quartz"])).iter_rows(named=True):
        assert row["move"] == pytest.approx(6.0) and row["use"] == pytest.approx(6.0)


def test_words_that_nearly_every_document_contains_are_no_phrase() -> None:
    """“the . a” was one of the phrases that decide most: each was in nearly all documents."""
    rng = np.random.default_rng(0)
    n = 400
    has = np.zeros((4, n), dtype=bool)
    has[:2] = rng.random((2, n)) < 0.96  # "the" and "a", independent of each other
    has[2:] = rng.random(n) < 0.3  # "zephyr quartz"
    types, windows = np.nonzero(has)
    by_input = np.lexsort((types, windows))
    subject = SimpleNamespace(
        types=types[by_input], windows=windows[by_input], in_order=lambda types, window: types
    )
    measured = Measured(subject, Outputs((0, 1), 2, 2), Work(8, 1, 0, None, "", silent))  # type: ignore[arg-type]
    measured.answers = np.zeros((n, 1))
    companions = measured.companions(np.arange(4))
    assert {word: sorted(parts.tolist()) for word, parts in companions.items()} == {
        2: [2, 3],
        3: [2, 3],
    }


def test_short_inputs_are_read_in_larger_batches() -> None:
    """Thousands of words alone were read sixteen at a time, however few pieces these are."""
    work, seen = Work(4, 0, 0, None, "", silent), []
    work.longest = 100
    work.batches("reading", np.array([3, 100, 90, 50, 5, 2, 3]), seen.append)
    assert [at.tolist() for at in seen] == [[1, 2, 3, 4], [0, 6, 5]]
    seen.clear()
    work.batches("words alone", np.full(300, 5), seen.append)
    assert [len(at) for at in seen] == [80, 80, 80, 60] and len(
        np.unique(np.concatenate(seen))
    ) == 300


def test_no_two_steps_of_a_measurement_share_their_unfinished_work() -> None:
    """The second step would be taken for the first, already done, and return its numbers."""
    work = Work(4, 0, 0, None, "", silent)
    work.batches("removing", np.full(3, 5), lambda at: None)
    with pytest.raises(ValueError, match="removing"):
        work.batches("removing", np.full(3, 5), lambda at: None)


def test_effects_are_compared_with_what_the_text_adds_to_the_answer() -> None:
    """The answer to padding alone differs with its length; gradients of an untrained BART, which add
    up to the difference, were taken to be wrong."""
    rng = np.random.default_rng(0)
    n = 40
    added = rng.normal(size=n)
    of_padding = -2 * added + 0.1 * rng.normal(size=n)

    def add_up(effect: Any) -> bool:
        subject = SimpleNamespace(
            types=np.zeros(n, dtype=np.int64),
            windows=np.arange(n),
            lengths=np.full(n, 5),
            emptied=lambda at: np.column_stack([-of_padding[at] / 2, of_padding[at] / 2]),
        )
        work = Work(8, 1, 0, None, "", silent)
        measured = Measured(subject, Outputs((0, 1), 2, 2), work)  # type: ignore[arg-type]
        measured.answers = (added + of_padding)[:, None]
        measured.heads = np.zeros(n, dtype=np.int64)
        measured.effect = effect
        return measured._effects_add_up(np.arange(n))

    assert np.corrcoef(added, added + of_padding)[0, 1] < 0
    assert add_up(added + 0.5 * rng.normal(size=n))
    assert not add_up(np.zeros(n)) and not add_up(rng.normal(size=n))


@pytest.mark.slow
def test_a_slow_model_is_screened_in_some_documents(
    trained: Any, reviews: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Effects of all words in all documents were a third of the work, only to choose which words to
    confirm."""
    seen: list[int] = []
    integrate = PieceSubject.integrate

    def counted(self: PieceSubject, at: Any, *given: Any) -> None:
        seen.extend(at.tolist())
        integrate(self, at, *given)

    monkeypatch.setattr(PieceSubject, "integrate", counted)
    monkeypatch.setattr(run_module, "affordable_passes", lambda *_: 1.0)
    monkeypatch.setattr(run_module, "MIN_SCREENED", 50)
    settings = DiagnoseSettings(min_documents=5, batch_size=32, untrained=False)
    found = diagnose(
        *trained, reviews.texts.to_list()[:120], reviews.labels[:120].tolist(), settings
    )
    assert len(seen) == 50 + len(found.passages) and len(set(seen[:50])) == 50
    assert found.used["token"][0] == "tablet"
    # the documents that are shown have the effects of their words, screened or not
    assert all(any(effect != 0 for _, effect in passage.pieces) for passage in found.passages)


@pytest.mark.slow
def test_rare_words_are_chosen_by_what_they_do_in_other_documents() -> None:
    """Words that matter alone or beside one other word took all places, and a rare mark that works
    anywhere was not examined."""
    rng = np.random.default_rng(2)
    labels = np.arange(200) % 2
    texts = [
        " ".join(["good" if y else "bad", *rng.choice([f"w{i}" for i in range(12)], 6)])
        for y in labels
    ]
    for k in range(3):
        for i in (2 * k, 2 * k + 1):
            texts[10 * i + 1] += f" context odd{k}"
    texts[100] += " mark"
    texts[102] += " mark"

    def answer(given: list[str]) -> Any:
        odd = [("odd" in t) * (5.0 if " " not in t else 4.0 * ("context" in t)) for t in given]
        return [
            2.0 * ("good" in t) - 2.0 * ("bad" in t) + 3.0 * ("mark" in t and " " in t) + x
            for t, x in zip(given, odd, strict=True)
        ]

    found = diagnose(answer, None, texts, labels.tolist(), DiagnoseSettings(), classes=["0", "1"])
    assert "mark" in found.reading["coverage"]["rescued"]
    assert found.uses.filter(pl.col("token") == "mark")["move"].item() == pytest.approx(3.0)
