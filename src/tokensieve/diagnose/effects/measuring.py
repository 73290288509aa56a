"""What a model does with each word of each document it reads, in batches of similar length.

Three passes over all words come first: **reading** (logits, and attention if the model gives any),
**words alone**, and **screening**: an estimate of the effect of every word on the answer to its
document. It says which words are worth measuring (`tokensieve.diagnose.effects.confirming`).

Words are screened by integrated gradients if gradients reach the embeddings, else by removing each
word from a bounded, seeded number of documents. Effects of gradients are checked: summed over a
document they must follow what its text adds to the answer. They do not where the embedding of
padding means nothing to the model, as a vector of zeros behind a layer norm does, and words are
then removed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.work import Work
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.pieces import PieceSubject
from tokensieve.diagnose.subjects.texts import TextSubject

Subject = PieceSubject | TextSubject
Method = Literal["integrated gradients", "leave-one-out"]

# Correlation of a document's summed effects with what its text adds to the answer, below which
# gradients are not trusted. Trained models of eight families have 0.7 or more; an untrained BART
# has 0.49 and T5 0.38, with one draw a document (0.98 and 0.72 with eight); Funnel about 0.
MIN_ADDITIVITY = 0.3
MIN_CHECKED = 16  # documents; a correlation of fewer says nothing
SMALLEST_SUMS = 1e-3  # of what the text adds: effects that vary less are zero up to rounding
MAX_CHECKED = 64  # documents; with so many, 0.3 is above chance (0.25)
INTEGRATION_COST = 2.0  # a pass with gradients, in passes without: 0.502 s against 0.243 s
# log-odds by which the answers of an untrained model differ at least
MIN_UNTRAINED_SPREAD = 0.005
USUAL_UNTRAINED_SPREAD = 0.05  # where there is no untrained model to look at
MIN_SPREAD_RATIO = 3.0  # answers of a model that does something differ so much more than that
# of the inputs with either word of a phrase contain both, and of those without either lack both
PHRASE_OVERLAP = 0.8


@dataclass(frozen=True)
class Removals:
    """Pairs (word, input), by their place among all, (D,), and what answers lost, (D, H)."""

    pairs: Ints
    lost: Floats

    @classmethod
    def none(cls, heads: int) -> Removals:
        return cls(np.empty(0, dtype=np.int64), np.empty((0, heads)))

    def and_also(self, other: Removals) -> Removals:
        return Removals(np.r_[self.pairs, other.pairs], np.vstack([self.lost, other.lost]))

    def where(self, is_kept: np.ndarray) -> Removals:
        return Removals(self.pairs[is_kept], self.lost[is_kept])


class Measured:
    """Measurements of a model on W inputs and |S| word types; H answers, m pairs.

    Attributes:
        types, windows: word type and input of every pair, ordered by input, shape (m,).
        logits, answers: of each input, shapes (W, M) and (W, H); `decisive` are the answers less
            what a decision takes from them.
        attention: that the word receives, rolled out over the layers, relative to an equal share
            for every piece of text in the input, shape (m,); None if the model gives none.
        value: answer to each word alone, shape (|S|, H).
        effect: what the answer of the predicted class (`heads`, shape (W,)) owes to the word, as
            screened, (m,); nan if it was not measured.
        method: how words were screened; if by removal, `removals` holds it.
    """

    def __init__(self, subject: Subject, outputs: Outputs, work: Work, name: str = "model") -> None:
        self.subject = subject
        self.outputs = outputs
        self.work = work
        self.name = name
        self.types = subject.types
        self.windows = subject.windows
        self.attention: Floats | None = None
        self.removals = Removals.none(outputs.heads)
        self.method: Method = "leave-one-out"

    @property
    def n_types(self) -> int:
        """The number of words, |S|."""
        return len(self.value)

    def read(self) -> None:
        """The first pass: logits and attention."""
        n_inputs = len(self.subject.documents)
        stage = f"{self.name}: reading"
        self.logits: Floats = self.work.zeros(f"{stage}/logits", n_inputs, self.outputs.width)
        received = None
        if self.subject.layers:
            received = self.work.zeros(f"{stage}/attention", len(self.types))

        def step(at: Ints) -> None:
            self.logits[at] = self.subject.look(at, received)

        self.work.batches(f"{stage} documents", self.subject.lengths, step)
        self.attention = received

    def set_answers(self, outputs: Outputs, offset: Floats) -> None:
        """Say how logits become answers, and what a decision takes from them.

        The offset, shape (W,), is a single output's threshold, the partner's answer in a preference
        pair, else 0.
        """
        self.outputs = outputs
        self.answers: Floats = np.asarray(outputs.answers(self.logits))
        self.decisive: Floats = self.answers - offset[:, None]
        self.heads: Ints = np.zeros(len(offset), dtype=np.int64)
        if outputs.heads > 1:
            self.heads = self.answers.argmax(axis=1)
        self.removals = Removals.none(outputs.heads)

    def screen(self, inputs: Ints) -> None:
        """The passes over all words: each alone, and its effects in some inputs."""
        n_types = len(self.subject.word_lengths)
        shape = n_types, self.outputs.heads
        self.value: Floats = self.work.zeros(f"{self.name}: measured/value", *shape)

        def alone(at: Ints) -> None:
            self.value[at] = self.outputs.answers(self.subject.alone(at))

        self.work.batches(f"{self.name}: words alone", self.subject.word_lengths, alone)
        if self.subject.differentiable:
            self.effect = self._integrated(inputs)
            self.method = "integrated gradients"
            if self.name != "model" or self._effects_add_up(inputs):
                return
        self.method = "leave-one-out"
        pairs = self.choose(np.arange(n_types), self.work.removals)
        lost = self.remove(pairs, f"{self.name}: removing words")
        self.removals = Removals(pairs, lost)
        self.effect = np.full(len(self.types), np.nan)
        self.effect[pairs] = lost[np.arange(len(pairs)), self.heads[self.windows[pairs]]]

    def _integrated(self, inputs: Ints) -> Floats:
        """The effect of every pair of some inputs by gradients; nan in others."""
        effect = self.work.zeros(f"{self.name}: measured/effect", len(self.types))

        def integrate(at: Ints) -> None:
            self.subject.integrate(inputs[at], self.heads[inputs[at]], effect)

        lengths = self.subject.lengths[inputs]
        self.work.batches(f"{self.name}: effects", lengths, integrate, INTEGRATION_COST)
        return np.where(np.isin(self.windows, inputs), effect, np.nan)

    def _effects_add_up(self, inputs: Ints) -> bool:
        """Whether the effects of a document's words, summed, follow what its text adds.

        They add up to the answer less that to padding of the same length, which is not the same
        for all lengths: in an untrained encoder-decoder it varies more than the answers do.
        """
        checked = inputs[:MAX_CHECKED]
        heads = self.heads[checked]
        if len(checked) < MIN_CHECKED:
            return True
        if self.answers[checked, heads].std() <= MIN_UNTRAINED_SPREAD:
            return True  # there is nothing to follow
        emptied: Floats = self.work.zeros(
            f"{self.name}: padding/logits", len(checked), self.outputs.width
        )

        def look(at: Ints) -> None:
            emptied[at] = self.subject.emptied(checked[at])

        self.work.batches(f"{self.name}: padding", self.subject.lengths[checked], look)
        added = (self.answers[checked] - self.outputs.answers(emptied))[
            np.arange(len(heads)), heads
        ]
        effects = np.nan_to_num(self.effect)
        sums = np.bincount(self.windows, effects, len(self.answers))[checked]
        if sums.std() <= SMALLEST_SUMS * added.std():
            return False
        return float(np.corrcoef(sums, added)[0, 1]) >= MIN_ADDITIVITY

    def of_words(self, kept: Ints) -> Measured:
        """The same for some of the words, ascending, which are then numbered from zero."""
        smaller = copy.copy(self)
        new_type = np.full(self.n_types, -1, dtype=np.int64)
        new_type[kept] = np.arange(len(kept))
        is_kept = new_type[self.types] >= 0
        smaller.subject = self.subject.of_words(kept)
        smaller.types = new_type[self.types[is_kept]]
        smaller.windows = self.windows[is_kept]
        smaller.effect = self.effect[is_kept]
        smaller.value = self.value[kept]
        removals = self.removals.where(is_kept[self.removals.pairs])
        new_pair = np.cumsum(is_kept) - 1
        smaller.removals = Removals(new_pair[removals.pairs], removals.lost)
        if self.attention is not None:
            smaller.attention = self.attention[is_kept]
        return smaller

    def by_document(self, values: Floats) -> Floats:
        """Mean over each document's windows, shape (n, …)."""
        documents = self.subject.documents
        n_windows = np.bincount(documents)
        return np.column_stack([np.bincount(documents, x) / n_windows for x in values.T])

    def inputs_with(self) -> Ints:
        """Number of inputs that contain each word, shape (|S|,)."""
        return np.bincount(self.types, minlength=self.n_types)

    def remove(
        self, pairs: Ints, stage: str, companions: Mapping[int, Ints] | None = None
    ) -> Floats:
        """Answers less those without a word of each input, (D, H); nan if nothing else is in it.

        `companions`: word type → the types that are removed with it, itself included.
        """
        return self.remove_from(self.types[pairs], self.windows[pairs], stage, companions)

    def remove_from(
        self,
        words: Ints,
        windows: Ints,
        stage: str,
        companions: Mapping[int, Ints] | None = None,
    ) -> Floats:
        """As `remove`, for words and inputs, each (D,)."""
        lost: Floats = self.work.zeros(f"{stage}/lost", len(words), self.outputs.heads)

        def step(at: Ints) -> None:
            removed = [_with_companions(s, companions) for s in words[at]]
            logits = self.subject.without(removed, windows[at])
            lost[at] = self.answers[windows[at]] - self.outputs.answers(logits)

        self.work.batches(stage, self.subject.lengths[windows], step)
        return lost

    def insert(
        self,
        words: Ints,
        windows: Ints,
        stage: str,
        companions: Mapping[int, Ints] | None = None,
    ) -> Floats:
        """Answers with a word less those without, (P, H), for words and inputs without them, (P,).

        A word is put where it usually stands: at the relative place of one of its occurrences. A
        pattern is written like one of its occurrences, another one in each input: a model that
        moves by one number need not move by any. The draws depend on word and input alone, so that
        two models are asked about the same texts.
        """
        usual = {int(s): self.subject.usual_places(int(s)) for s in np.unique(words)}
        draws = np.empty((len(words), 2))
        for i, (s, w) in enumerate(zip(words, windows, strict=True)):
            draws[i] = np.random.default_rng([self.work.seed, 7, s, w]).random(2)
        places = np.array(
            [_one_of(usual[int(s)], draw) for s, draw in zip(words, draws[:, 0], strict=True)]
        )
        gained: Floats = self.work.zeros(f"{stage}/gained", len(words), self.outputs.heads)

        def step(at: Ints) -> None:
            new = [_with_companions(s, companions) for s in words[at]]
            logits = self.subject.having(new, windows[at], places[at], draws[at, 1])
            gained[at] = self.outputs.answers(logits) - self.answers[windows[at]]

        self.work.batches(stage, self.subject.lengths[windows], step)
        return gained

    def swap(self, first: Ints, second: Ints, windows: Ints, stage: str) -> Floats:
        """Answers less those with the places of two words exchanged, (P, H)."""
        lost: Floats = self.work.zeros(f"{stage}/lost", len(windows), self.outputs.heads)

        def step(at: Ints) -> None:
            logits = self.subject.swapped(first[at], second[at], windows[at])
            lost[at] = self.answers[windows[at]] - self.outputs.answers(logits)

        self.work.batches(stage, self.subject.lengths[windows], step)
        return lost

    def answers_to(self, texts: list[str], stage: str) -> Floats:
        """What the model answers to texts of the caller, (n, H); each call has its own `stage`."""
        subject = self.subject.of_texts(texts)
        logits: Floats = self.work.zeros(f"{stage}/logits", len(texts), self.outputs.width)

        def step(at: Ints) -> None:
            logits[at] = subject.look(at, None)

        self.work.batches(stage, subject.lengths, step)
        return np.asarray(self.outputs.answers(logits))

    def answers_differ(self, untrained: Measured | None) -> bool:
        """Whether answers differ between documents far more than those of an untrained model do."""
        usual = USUAL_UNTRAINED_SPREAD
        if untrained is not None:
            usual = max(MIN_UNTRAINED_SPREAD, float(untrained.answers.std(axis=0).mean()))
        return float(self.answers.std(axis=0).mean()) > MIN_SPREAD_RATIO * usual

    def choose(self, words: Ints, per_word: int | Ints, apart: Ints | None = None) -> Ints:
        """Random pairs of some words, ascending: so many per word (or type), none of `apart`."""
        pairs = np.flatnonzero(np.isin(self.types, words))
        if apart is not None:
            pairs = np.setdiff1d(pairs, apart)
        random_keys = np.random.default_rng(self.work.seed).random(len(self.types))
        by_word_then_key = np.lexsort((random_keys[pairs], self.types[pairs]))
        pairs = pairs[by_word_then_key]
        types = self.types[pairs]
        first_of_word = np.searchsorted(types, types)
        rank = np.arange(len(types)) - first_of_word
        limit = per_word if isinstance(per_word, int) else per_word[types]
        return np.sort(pairs[rank < limit])

    def companions(self, words: Ints) -> dict[int, Ints]:
        """For each of some words (ascending) those removed and inserted with it, in their order.

        They are the parts of a phrase, of which either can do the work of both; the word itself is
        among them. Words that have none are not in the result.
        """
        contains = self.incidence(words)
        n_inputs = contains.sum(axis=1)
        n_both = (contains @ contains.T).tocoo()
        n_either = n_inputs[n_both.row] + n_inputs[n_both.col] - n_both.data
        n_not_both = contains.shape[1] - n_both.data
        n_neither = contains.shape[1] - n_either
        # two words that nearly every input contains are nearly always together: only if they are
        # missing together, too, is one of them not there without the other
        is_phrase = (n_both.data >= PHRASE_OVERLAP * n_either) & (n_both.row != n_both.col)
        is_phrase &= (n_neither >= PHRASE_OVERLAP * n_not_both) & (n_neither > 0)
        phrases = {}
        for row in np.unique(n_both.row[is_phrase]):
            parts = np.r_[row, n_both.col[is_phrase & (n_both.row == row)]]
            phrases[int(words[row])] = self._in_usual_order(words, parts, contains)
        return phrases

    def incidence(self, words: Ints) -> sp.csr_array:
        """1 where one of some words (ascending, C) is in an input, shape (C, W)."""
        is_asked = np.isin(self.types, words)
        rows = np.searchsorted(words, self.types[is_asked])
        shape = len(words), len(self.answers)
        return sp.csr_array((np.ones(len(rows)), (rows, self.windows[is_asked])), shape=shape)

    def _in_usual_order(self, words: Ints, parts: Ints, contains: sp.csr_array) -> Ints:
        """The parts of a phrase as they stand in an input that contains all, or most of many."""
        inputs = contains[parts[:1]].indices
        present = contains[parts][:, inputs].toarray()
        fullest = int(present.sum(axis=0).argmax())
        types = words[parts[present[:, fullest] > 0]]
        return self.subject.in_order(types, int(inputs[fullest]))


def towards_predicted(changes: Floats, heads: Ints) -> Floats:
    """The change of one answer of each input, (D,), from those of all, (D, H)."""
    return changes[np.arange(len(heads)), heads]


def _with_companions(word: int, companions: Mapping[int, Ints] | None) -> Ints:
    if companions is None or int(word) not in companions:
        return np.array([word])
    return companions[int(word)]


def _one_of(places: Floats, draw: float) -> float:
    """One of some places, by a number in [0, 1); the middle if there are none."""
    return float(places[int(draw * len(places))]) if len(places) else 0.5
