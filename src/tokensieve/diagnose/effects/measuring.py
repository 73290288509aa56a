"""What a model does with each word of each document it reads, in batches of inputs of similar length.

Four passes: **reading** (logits, and attention if the model gives any), **words alone**, **effects** (of every word on the
answer to its document: by integrated gradients if gradients reach the embeddings, else by removing the word from a bounded,
seeded number of documents), and later **removing** the words that matter, which are also **inserted** into other documents
(`tokensieve.diagnose.effects.confirming`).

How much a model **uses** each word: of each word s, over the n inputs X that contain it, with e_X its effect on the answer,

    mean            ē = Σ e_X/n, for two classes signed towards the second, else towards the class predicted
    use             Σ |e_X|/n, mean magnitude: a word that works by context has a small mean and a large use
    share           Σ |e_X| over that of all words: the word's fraction of all use
    flipped         fraction of inputs in which another class is predicted without the word
    concentration   1 − (Σ |e_X|)²/(n Σ e_X²): 0 if its effect is the same in all inputs, near 1 if a few have nearly all of it
    helps           Σ h_X/n with h_X = e_X if the word is evidence for the true class, −e_X if it is evidence against it

Sizes are skewed, and Student's interval for their mean then lies too low: the truth is above it far more often than below. Ours
inverts Hall's transformation of t (1992, section 2), with γ the skewness of the sample and k = γ/√n:

    g(T) = T + k T²/3 + k² T³/27 + k/6,        g⁻¹(y) = 3/k · (∛(1 + k (y − k/6)) − 1)

    [x̄ − s/√n · g⁻¹(t₀.₉₇₅),  x̄ − s/√n · g⁻¹(t₀.₀₂₅)]

The expansion is in powers of k, and g⁻¹ has a pole near k = 1/2: |k| counts as 0.45 √(n/24) at most, and as 0.45 from 24 inputs on.

If a model is confident about nearly every input, a word has all of its effect in a few inputs and none in the others. A sample
without one of these has almost no variance, and the interval of its mean would miss the truth. Its variance is therefore
**moderated** by the mean s₀² of those of all words (Smyth 2004, with d₀ = 2 prior degrees of freedom): s̃² = (d₀ s₀² + (n − 1)
s²)/(d₀ + n − 1), with Student's t of d₀ + n − 1 degrees.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats

from tokensieve import checkpoint
from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.passages import SEPARATOR
from tokensieve.diagnose.subjects.pieces import PieceSubject
from tokensieve.diagnose.subjects.texts import TextSubject
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.attention import decide
from tokensieve.progress import Progress
from tokensieve.report.blocks import Passage

Use = dict[str, Floats]
"""The numbers of the module's formulas by name, each of shape (|S|,), nan if a word was not measured: inputs, mean, use,
use_low, use_high, inserted, inserted_low (of inserting: `Trials.use`), share, flipped, concentration, helps,
helps_low, helps_high; intervals 95 %."""
_Arrays = dict[str, Floats]
# chosen by coverage on small models that no benchmark uses
_PRIOR = 2  # degrees of freedom
_MOST_SKEWED = (
    0.45  # |k|, of 24 inputs or more: with more, intervals become much wider and cover 96 to 98 %
)


class Work:
    """How a measurement runs: in batches of `batch_size` inputs as long as the `longest` document, or more if they are shorter.

    Without gradients each word is removed from `removals` inputs at most. The file `path` keeps unfinished work; an InputError if
    its `mark` (fingerprint of data, model and settings) is another. Progress is a fraction of `pieces`, an estimate of all work.
    """

    def __init__(
        self,
        batch_size: int,
        removals: int,
        seed: int,
        path: Path | None,
        mark: str,
        progress: Progress,
    ) -> None:
        self.batch_size, self.removals, self.seed, self.progress = (
            batch_size,
            removals,
            seed,
            progress,
        )
        self.pieces, self.longest, self._done = 0.0, 0, 0.0
        self._path, self._mark, self._saved = path, mark, time.monotonic()
        found = None if path is None else checkpoint.load(path, mark)
        self._arrays: _Arrays = {} if found is None else found[0]

    def zeros(self, name: str, *shape: int) -> Floats:
        """An array to be filled, kept under this name: as it was saved, else zero."""
        return self._arrays.setdefault(name, np.zeros(shape))

    def batches(
        self, stage: str, lengths: Ints, step: Callable[[Ints], None], cost: float = 1.0
    ) -> None:
        """Call `step` with inputs of similar length, the longest first, from where an earlier run stopped; a piece costs `cost`."""
        order, n = np.argsort(-lengths, kind="stable"), len(lengths)
        done = self.zeros(f"{stage}/done", 1)
        before = self._done + cost * float(lengths[order[: int(done[0])]].sum())
        try:
            while (start := int(done[0])) < n:
                self.progress(stage, min(before / max(self.pieces, before, 1.0), 0.99))
                at = order[
                    start : start
                    + self.batch_size * max(self.longest // max(int(lengths[order[start]]), 1), 1)
                ]
                step(at)
                before += cost * float(lengths[at].sum())
                done[0] = start + len(at)
                if time.monotonic() - self._saved > 20:
                    self._save()
        finally:
            self._done = before
            self._save()

    def _save(self) -> None:
        if self._path is not None:
            checkpoint.save(self._path, self._mark, self._arrays, {})
            self._saved = time.monotonic()


class Measured:
    """Measurements of a model on W inputs and |S| word types; H answers, L layers, m pairs (word type, input).

    Attributes:
        types, windows: word type and input of every pair, ordered by input, shape (m,).
        logits, answers: of each input, shapes (W, M) and (W, H); `decisive` are the answers less what a decision takes from them.
        attention: that the word receives, relative to an equal share for every piece of text in the input; each layer and
            last the rollout, shape (L+1, m); `on_special`: mean share of special tokens, shape (L+1,); None if there is none.
        value: answer to each word alone, shape (|S|, H).
        effect: what the answer of the predicted class (`heads`, shape (W,)) owes to the word, (m,); nan if it was not measured.
        method: "integrated gradients" or "leave-one-out": `chosen` pairs (D,) lost their word, and their answers `lost` (D, H).
    """

    def __init__(
        self, subject: PieceSubject | TextSubject, outputs: Outputs, work: Work, name: str = "model"
    ) -> None:
        self.subject, self.outputs, self.work, self.name = subject, outputs, work, name
        self.types, self.windows = subject.types, subject.windows

    def read(self) -> None:
        """The first pass: logits and attention."""
        subject, name, W = self.subject, self.name, len(self.subject.documents)
        self.logits: Floats = self.work.zeros(f"{name}: reading/logits", W, self.outputs.width)
        received = None
        if subject.layers:
            received = self.work.zeros(
                f"{name}: reading/attention", subject.layers + 1, len(self.types) + 1
            )

        def step(at: Ints) -> None:
            self.logits[at] = subject.look(at, received)

        self.work.batches(f"{name}: reading documents", subject.lengths, step)
        self.attention = None if received is None else received[:, :-1]
        self.on_special = None if received is None else received[:, -1] / max(W, 1)

    def measure(self, outputs: Outputs, offset: Floats, screened: Ints) -> None:
        """The passes after the first, with the effects of all words in some inputs; a decision takes the offset from the answers,
        shape (W,): a single output's threshold, the partner's answer in a preference pair, else 0."""
        subject, work, name = self.subject, self.work, self.name
        self.outputs, self.answers = outputs, np.asarray(outputs.answers(self.logits))
        self.decisive, H = self.answers - offset[:, None], outputs.heads
        self.heads = self.answers.argmax(axis=1) if H > 1 else np.zeros(len(offset), dtype=np.int64)
        self.value = work.zeros(f"{name}: measured/value", len(subject.word_lengths), H)
        effect = self.effect = work.zeros(f"{name}: measured/effect", len(self.types))
        self.chosen, self.lost = np.empty(0, dtype=np.int64), np.empty((0, H))

        def alone(at: Ints) -> None:
            self.value[at] = outputs.answers(subject.alone(at))

        def integrate(at: Ints) -> None:
            subject.integrate(screened[at], self.heads[screened[at]], effect)

        work.batches(f"{name}: words alone", subject.word_lengths, alone)
        if subject.differentiable:
            self.method = "integrated gradients"
            work.batches(f"{name}: effects", subject.lengths[screened], integrate, 2.0)
            self.effect = np.where(np.isin(self.windows, screened), effect, np.nan)
            return
        self.method, self.effect = "leave-one-out", np.full(len(self.types), np.nan)
        self.chosen = self.choose(np.arange(len(self.value)), work.removals)
        windows = self.windows[self.chosen]
        self.lost = self.remove(self.types[self.chosen], windows, f"{name}: removing words")
        self.effect[self.chosen] = self.lost[np.arange(len(windows)), self.heads[windows]]

    def of_words(self, kept: Ints) -> Measured:
        """The same for some of the words, ascending, which are then numbered from zero."""
        out, place = copy.copy(self), np.full(len(self.value), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        there = place[self.types] >= 0
        still = there[self.chosen]
        out.subject = self.subject.of_words(kept)
        out.types, out.windows, out.effect = (
            place[self.types[there]],
            self.windows[there],
            self.effect[there],
        )
        out.value, out.lost = self.value[kept], self.lost[still]
        out.chosen = (np.cumsum(there) - 1)[self.chosen[still]]
        out.attention = None if self.attention is None else self.attention[:, there]
        return out

    def by_document(self, values: Floats) -> Floats:
        """Mean over each document's windows, shape (n, …)."""
        documents = self.subject.documents
        sizes = np.bincount(documents)
        return np.column_stack([np.bincount(documents, column) / sizes for column in values.T])

    def remove(
        self, types: Ints, windows: Ints, stage: str, together: Mapping[int, Ints] | None = None
    ) -> Floats:
        """answers − answers without a word of each input, (D, H); nan if nothing else is in it. `together`: word type → the types
        that are removed with it, itself included."""
        lost: Floats = self.work.zeros(f"{stage}/lost", len(types), self.outputs.heads)

        def step(at: Ints) -> None:
            words = [(together or {}).get(int(s), np.array([s])) for s in types[at]]
            lost[at] = self.answers[windows[at]] - self.outputs.answers(
                self.subject.without(words, windows[at])
            )

        self.work.batches(stage, self.subject.lengths[windows], step)
        return lost

    def insert(
        self, types: Ints, windows: Ints, stage: str, together: Mapping[int, Ints] | None = None
    ) -> Floats:
        """answers with a word − answers, shape (P, H), for words and inputs without them, (P,); each is put before another word,
        with the words of `together`, as in `remove`, in their order."""
        # the place depends on word and input alone, so that two models are asked about the same texts
        draws = [
            np.random.default_rng([self.work.seed, 7, s, w])
            for s, w in zip(types, windows, strict=True)
        ]
        places = np.array([rng.random() for rng in draws])
        gained: Floats = self.work.zeros(f"{stage}/gained", len(types), self.outputs.heads)

        def step(at: Ints) -> None:
            words = [(together or {}).get(int(s), np.array([s])) for s in types[at]]
            gained[at] = (
                self.outputs.answers(self.subject.having(words, windows[at], places[at]))
                - self.answers[windows[at]]
            )

        self.work.batches(stage, self.subject.lengths[windows], step)
        return gained

    def answers_differ(self, untrained: Measured | None) -> bool:
        """Whether answers differ from document to document by three times as much as those of an untrained model do."""
        # answers (log-odds) of an untrained model are taken to differ by 0.005 at least
        usual = (
            0.05 if untrained is None else max(0.005, float(untrained.answers.std(axis=0).mean()))
        )
        return float(self.answers.std(axis=0).mean()) > 3.0 * usual

    def most_confident(self, labels: Ints, words: Mapping[str, int]) -> dict[int, str]:
        """Whole documents predicted wrongly and correctly with most confidence, then one containing each word; with the reason."""
        f, documents = self.decisive, self.subject.documents
        top = np.sort(f, axis=1)
        confidence = np.abs(f[:, 0]) if f.shape[1] == 1 else top[:, -1] - top[:, -2]
        whole, right = np.bincount(documents)[documents] == 1, decide(f) == labels[documents]
        kinds = [("wrong and confident", ~right, 2), ("correct and confident", right, 2)]
        for word, s in words.items():
            containing = np.isin(np.arange(len(f)), self.windows[self.types == s])
            kinds.append((f"contains “{for_display(word, 30)}”", containing, 1))
        picked: dict[int, str] = {}
        for why, kept, most in kinds:
            some = np.flatnonzero(whole & kept)
            picked |= {
                int(w): why for w in some[np.argsort(-confidence[some], kind="stable")][:most]
            }
        return picked

    def passages(self, sample: Sample, unsupported: Sequence[str]) -> list[Passage]:
        """The documents of `most_confident` with the effect of each of their words, for people to read."""
        predicted, out, classes = decide(self.decisive), [], sample.corpus.classes
        picked = self.most_confident(
            sample.labels, {word: sample.words.index(word) for word in unsupported}
        )
        if self.subject.differentiable and picked:
            # these documents are read one by one: more draws of their effects
            self.subject.integrate(np.array(list(picked)), self.heads[list(picked)], self.effect, 8)
        for w, why in picked.items():
            here, k = self.windows == w, int(self.subject.documents[w])
            # effects are towards the class predicted; the smallest are not shown
            sign = -1.0 if self.answers.shape[1] == 1 and predicted[w] == 0 else 1.0
            effects = np.nan_to_num(sign * self.effect[here])
            effects = np.where(
                np.abs(effects) > 0.05 * np.abs(effects).max(initial=0.0), effects, 0.0
            )
            of_type = {
                sample.words[s]: float(x) for s, x in zip(self.types[here], effects, strict=True)
            }
            text, at = str(sample.texts[k]), 0
            pieces: list[tuple[str, float]] = []
            for start, end, word in sample.splitter.spans(text):
                if start > 1_600:  # characters
                    text = f"{text[:at]} […]"
                    break
                pieces += [(text[at:start], 0.0), (text[start:end], of_type.get(word, 0.0))]
                at = end
            pieces.append((text[at:], 0.0))
            joined = tuple(
                (piece.replace(SEPARATOR, " ⏐ "), effect) for piece, effect in pieces if piece
            )
            note = f"predicted {for_display(classes[int(predicted[w])], 40)}: {why}."
            row = int(sample.corpus.rows[sample.read[k]])
            out.append(Passage(joined, classes[int(sample.labels[k])], row, note))
        return out

    def choose(self, words: Ints, per_word: int | Ints, apart: Ints | None = None) -> Ints:
        """Random pairs of some words, ascending: at most this many per word (or per word type), none from `apart`."""
        there = np.flatnonzero(np.isin(self.types, words))
        there = there if apart is None else np.setdiff1d(there, apart)
        key = np.random.default_rng(self.work.seed).random(len(self.types))[there]
        order = np.lexsort((key, self.types[there]))
        ordered = self.types[there][order]
        first = np.searchsorted(ordered, ordered)
        most = per_word if isinstance(per_word, int) else per_word[ordered]
        return np.sort(there[order[np.arange(len(order)) - first < most]])

    def companions(self, words: Ints) -> dict[int, Ints]:
        """For each of some words (ascending) those that are removed and inserted with it, itself included, in their order: the
        parts of a phrase, of which either can do the work of both. Words that have none are not in there."""
        known, W = np.isin(self.types, words), len(self.answers)
        rows, columns = np.searchsorted(words, self.types[known]), self.windows[known]
        contain = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(words), W))
        alone, both = contain.sum(axis=1), (contain @ contain.T).tocoo()
        either = alone[both.row] + alone[both.col] - both.data
        # parts of a phrase: 80 % of the inputs that contain either contain both
        same = (both.data >= 0.8 * either) & (both.row != both.col)
        out: dict[int, Ints] = {}
        for row in np.unique(both.row[same]):
            parts, inside = np.r_[row, both.col[same & (both.row == row)]], contain[[row]].indices
            held = contain[parts][:, inside].toarray()
            best = int(held.sum(axis=0).argmax())  # an input that contains all, or most of many
            out[int(words[row])] = self.subject.in_order(
                words[parts[held[:, best] > 0]], int(inside[best])
            )
        return out

    def use(self, labels: Ints) -> Use:
        """Use estimated from the effects of all words; labels are those of the inputs, (W,). With K > 2 classes, taking e from the
        predicted class's answer z_k − mean_j z_j moves its margins by e K/(K − 1) on average, by which flips are estimated."""
        w, H, effect = self.windows, self.answers.shape[1], self.effect
        if H == 1:
            f = self.decisive[w, 0]
            flipped, helping = (f > 0) != (f - effect > 0), labels[w] == 1
        else:
            top = np.sort(self.decisive, axis=1)
            flipped, helping = (
                effect * H / (H - 1) > (top[:, -1] - top[:, -2])[w],
                labels[w] == self.heads[w],
            )
        helps = np.where(helping, effect, -effect)
        return self.use_of(self.types, effect, flipped.astype(float), helps, len(self.value))

    @staticmethod
    def use_of(types: Ints, effect: Floats, flipped: Floats, helps: Floats, n_types: int) -> Use:
        """The module's formulas, of pairs (word, input): word, e_X (nan does not count), whether the prediction changes, h_X."""
        there = np.isfinite(effect)
        types, effect, flipped, helps = types[there], effect[there], flipped[there], helps[there]
        n, size = np.bincount(types, minlength=n_types), np.abs(effect)
        some, degrees = np.where(n > 0, n, np.nan), np.maximum(n - 1, 1)

        def total(x: Floats) -> Floats:
            return np.bincount(types, x, n_types).astype(np.float64)

        def moment(x: Floats, mean: Floats, power: int = 2) -> Floats:
            return total((x - mean[types]) ** power)

        sums, squares = total(size), total(size**2)
        mean, helping = sums / some, total(helps) / some
        variance = moment(size, mean) / degrees
        # skewness corrected for the size of the sample; at least zero, since sizes have no other
        alike = variance <= (1e-9 * np.nan_to_num(mean)) ** 2 + 1e-200  # all values are the same
        third = np.where(alike, 0.0, moment(size, mean, 3) / np.where(alike, 1.0, variance) ** 1.5)
        skewness = np.maximum(third * n / (degrees * np.maximum(n - 2, 1)), 0.0)
        usual = float(variance[n > 1].mean()) if (n > 1).any() else 0.0
        moderated = np.sqrt((_PRIOR * usual + (n - 1) * variance) / (_PRIOR + degrees))
        low, high = Measured.mean_interval(n, mean, moderated, skewness, prior=_PRIOR)
        error = np.sqrt(moment(helps, helping) / degrees / np.maximum(n, 1))
        half = np.where(n > 1, stats.t.isf(0.025, degrees) * error, np.inf)
        return {
            "inputs": n.astype(np.float64),
            "mean": total(effect) / some,
            "use": mean,
            "use_low": np.maximum(low, 0.0),
            "use_high": high,
            **dict.fromkeys(("inserted", "inserted_low"), np.full(n_types, np.nan)),
            "share": sums / max(float(sums.sum()), 1e-300),
            "flipped": total(flipped) / some,
            "concentration": 1 - sums**2 / np.where(squares > 0, some * squares, np.nan),
            "helps": helping,
            "helps_low": helping - half,
            "helps_high": helping + half,
        }

    @staticmethod
    def mean_interval(
        n: Ints,
        mean: Floats,
        spread: Floats,
        skewness: Floats,
        *,
        prior: int = 0,
        level: float = LEVEL,
    ) -> tuple[Floats, Floats]:
        """Interval, at level 1 − `level`, of the mean of n values with this standard deviation (moderated with `prior` degrees) and
        skewness, by the module's formula."""
        root = np.sqrt(np.maximum(n, 1))
        most = _MOST_SKEWED * np.minimum(root / np.sqrt(24), 1.0)
        y = stats.t.isf(level / 2, prior + np.maximum(n - 1, 1))
        k = np.clip(skewness / root, -most, most)
        plain = np.abs(k) < 1e-6
        k = np.where(plain, 1.0, k)
        ends = []
        for sign in (1, -1):
            t = np.where(plain, sign * y, 3 / k * (np.cbrt(1 + k * (sign * y - k / 6)) - 1))
            ends.append(np.where(n > 1, mean - t * spread / root, -sign * np.inf))
        return ends[0], ends[1]

    @staticmethod
    def holm(p: Floats) -> NDArray[np.bool_]:
        """Which hypotheses Holm's procedure (1979) rejects at LEVEL, shape (C,)."""
        order, out = np.argsort(p, kind="stable"), np.zeros(len(p), dtype=bool)
        out[order] = np.logical_and.accumulate(p[order] < LEVEL / np.arange(len(p), 0, -1))
        return out
