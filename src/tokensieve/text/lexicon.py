"""Learning the words of scripts without spaces from texts, without or with a segmenter.

Without one, the texts are divided by the variation of branching entropy (Jin & Tanaka-Ishii 2006;
Magistry & Sagot 2012, "Unsupervized word segmentation: the case for Mandarin Chinese"). What
follows a string is uncertain where a word ends, and nearly certain inside one. With h(x) the
entropy of the cluster behind a string x, and x' the string without its last cluster,

    v(x) = h(x) − h(x')  −  mean of h(y) − h(y') over the strings y of the length of x

(each y weighted by the root of its occurrences), and likewise for what stands before it. Among
all divisions of a run into words the one with the largest Σ length · (v behind + v before) is
taken. There is no threshold to choose. The lexicon has the words of this division (or of the
segmenter's) that two documents contain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeGuard

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.kernels import compiled
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.patterns import CLUSTER, WORD, WORD_OR_RUN
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer
from tokensieve.text.unspaced import IS_RUN, MIN_UNSPACED_FRACTION, unspaced_fraction

MIN_DOCUMENTS = 2  # that contain a word of the lexicon
MAX_CLUSTERS = 6  # of a word that is learned from the data; longer ones are n-grams of words
MAX_SAMPLED_DOCUMENTS = 5_000  # in which scripts without spaces are looked for
# of the texts that are learned from: 300 MB of arrays, and more than a word needs to occur twice
MAX_CHARACTERS = 4_000_000
# Of the count of a string in the mean. With 0 every string counts once, as in the paper, with 1
# every occurrence. F of boundaries with 0, 0.5 and 1 on texts in which it was chosen: manual pages
# in Chinese .925, .921, .892 (against jieba) and Japanese .821, .792, – (ICU); messages of
# LibreOffice in Thai .777, .822, .843 (newmm).
WEIGHT_EXPONENT = 0.5
NOT_LISTED = -1  # the number of strings that occur once, or reach into another run
# differences in the last bits between machines must not decide between two divisions
DECIMALS = 9


def with_lexicon(tokenizer: Tokenizer, texts: pl.Series | StoredTexts) -> Tokenizer:
    """The tokenizer with the words of scripts without spaces that training texts contain.

    It is returned unchanged if it knows its words already, or has no use for them.

    Raises:
        InputError: the segmenter that it asks for is not installed.
    """
    if isinstance(tokenizer, FieldTokenizer):
        if not _is_to_learn(tokenizer.base):
            return tokenizer
        return replace(tokenizer, base=_learned(tokenizer.base, texts, tokenizer))
    return _learned(tokenizer, texts, None) if _is_to_learn(tokenizer) else tokenizer


def without_learned_words(tokenizer: Tokenizer) -> Tokenizer:
    """The setting that a tokenizer was made from, so that training on it learns the words anew.

    Words that were given, not learned, cannot be told from learned ones, and are dropped too.
    """
    if isinstance(tokenizer, FieldTokenizer) and isinstance(tokenizer.base, WordTokenizer):
        return replace(tokenizer, base=replace(tokenizer.base, lexicon=None))
    if isinstance(tokenizer, WordTokenizer):
        return replace(tokenizer, lexicon=None)
    return tokenizer


def _is_to_learn(tokenizer: Tokenizer) -> TypeGuard[WordTokenizer]:
    """Whether it splits texts by our pattern of words, and has learned none yet."""
    return (
        isinstance(tokenizer, WordTokenizer)
        and tokenizer.lexicon is None
        and tokenizer.pattern == WORD
    )


def _learned(
    tokenizer: WordTokenizer, texts: pl.Series | StoredTexts, fields: FieldTokenizer | None
) -> WordTokenizer:
    """The tokenizer of a text, or of each of its fields, with its lexicon."""
    if tokenizer.words == "characters":
        return replace(tokenizer, lexicon=())
    sample = _every_so_many(texts, MAX_SAMPLED_DOCUMENTS)
    fraction = unspaced_fraction(sample)
    if fraction < MIN_UNSPACED_FRACTION:
        return replace(tokenizer, lexicon=())
    n_characters = fraction * float(sample.str.len_chars().mean() or 1.0)  # type: ignore[arg-type]
    sample = _every_so_many(texts, int(MAX_CHARACTERS / n_characters) + 1)
    if fields is not None:
        sample = fields.written_texts(sample)
    runs = _Runs.of(sample, tokenizer)
    divide = divided_by_icu if tokenizer.words == "segmenter" else divided_by_entropy
    return replace(tokenizer, lexicon=_frequent_words(runs, divide(runs)))


def _every_so_many(texts: pl.Series | StoredTexts, most: int) -> pl.Series:
    """Choose at most so many of the texts, evenly spaced."""
    step = max(-(-len(texts) // most), 1)
    return texts.gather(np.arange(0, len(texts), step))


@dataclass(frozen=True)
class _Runs:
    """The clusters of all runs of letters, one after the other.

    Attributes:
        clusters: of each place, as text.
        ids: number of the cluster, shape (places,).
        run: number of the run, shape (places,).
        document: number of the document, shape (places,).
    """

    clusters: pl.Series
    ids: Ints
    run: Ints
    document: Ints

    @classmethod
    def of(cls, texts: pl.Series, tokenizer: WordTokenizer) -> _Runs:
        """The runs as the tokenizer sees them, without markup."""
        whole_runs = replace(tokenizer, pattern=WORD_OR_RUN, stop_words=(), lexicon=())
        frame = (
            pl.DataFrame({"run": whole_runs.split(texts)})
            .with_row_index("document")
            .explode("run")
            .filter(pl.col("run").str.contains(IS_RUN))
            .with_row_index("number")
            .with_columns(cluster=pl.col("run").str.extract_all(CLUSTER))
            .drop("run")
            .explode("cluster")
        )
        # numbered in their order, whatever the order of the documents
        numbers = pl.Enum(frame["cluster"].unique().sort())
        return cls(
            clusters=frame["cluster"],
            ids=frame["cluster"].cast(numbers).to_physical().cast(pl.Int64).to_numpy(),
            run=frame["number"].cast(pl.Int64).to_numpy(),
            document=frame["document"].cast(pl.Int64).to_numpy(),
        )


def _frequent_words(runs: _Runs, sizes: Ints) -> tuple[str, ...]:
    """The words of two clusters or more in at least two documents, sorted.

    Args:
        runs: the texts.
        sizes: clusters of the word that begins at each place; 0 where none begins.
    """
    starts = np.flatnonzero(sizes)
    word_of_place = np.repeat(np.arange(len(starts)), sizes[starts])
    words = (
        pl.DataFrame({"word": word_of_place, "cluster": runs.clusters, "document": runs.document})
        .group_by("word", maintain_order=True)
        .agg(
            pl.col("cluster").str.join(""),
            pl.col("document").first(),
            n_clusters=pl.len(),
        )
        .filter(pl.col("n_clusters") > 1)
        .group_by("cluster")
        .agg(pl.col("document").n_unique())
        .filter(pl.col("document") >= MIN_DOCUMENTS)
    )
    return tuple(words["cluster"].sort().to_list())


def divided_by_icu(runs: _Runs) -> Ints:
    """Clusters of the word that begins at each place, by ICU's dictionaries; 0 where none begins.

    Raises:
        InputError: icu4py is not installed.
    """
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise InputError(
            "--words segmenter needs icu4py: pip install 'tokensieve[segmenter]'"
        ) from None

    def is_start_of_run(clusters: list[str]) -> list[bool]:
        run = "".join(clusters)
        ends = {0, *accumulate(map(len, WordBreaker(run, "und")))}
        places = [0, *accumulate(map(len, clusters[:-1]))]
        return [place in ends for place in places]

    frame = pl.DataFrame({"run": runs.run, "cluster": runs.clusters})
    is_start = [
        is_start_of_run(clusters)
        for clusters in frame.group_by("run", maintain_order=True).agg("cluster")["cluster"]
    ]
    starts = np.flatnonzero(np.concatenate([np.empty(0, np.bool_), *is_start]))
    sizes = np.zeros(len(runs.ids), np.int64)
    sizes[starts] = np.diff(np.append(starts, len(runs.ids)))
    return sizes


def divided_by_entropy(runs: _Runs) -> Ints:
    """Clusters of the word that begins at each place, by the formula above; 0 where none begins."""
    scores = np.full((MAX_CLUSTERS, len(runs.ids)), -np.inf)
    for n, strings in enumerate(_strings(runs), start=1):
        is_listed = strings.at_place != NOT_LISTED
        scores[n - 1, is_listed] = n * strings.autonomy[strings.at_place[is_listed]]
    sizes = np.zeros(len(runs.ids), np.int64)
    if len(sizes):
        best = np.full(len(sizes) + 1, -np.inf)
        _best_division(
            np.round(scores, DECIMALS), runs.run, best, np.zeros(len(best), np.int64), sizes
        )
    return sizes


@dataclass(frozen=True)
class _Strings:
    """The distinct strings of one length.

    Attributes:
        at_place: the string that begins at each place, shape (places,).
        counts: how often each occurs, shape (strings,).
        first: the first place of each, shape (strings,).
    """

    at_place: Ints
    counts: Ints
    first: Ints

    @classmethod
    def longer(cls, shorter: _Strings, runs: _Runs, n: int) -> _Strings:
        """The strings of n clusters that occur twice or more, found among those of n − 1."""
        n_places = len(runs.ids)
        keys = np.full(n_places, NOT_LISTED, np.int64)
        n_starts = max(n_places - n + 1, 0)
        starts = np.arange(n_starts)
        starts = starts[
            (runs.run[starts] == runs.run[starts + n - 1])
            & (shorter.at_place[starts] != NOT_LISTED)
            & (shorter.at_place[starts + 1] != NOT_LISTED)
        ]
        n_ids = int(runs.ids.max(initial=0)) + 1
        keys[starts] = shorter.at_place[starts] * n_ids + runs.ids[starts + n - 1]
        return cls.of(keys, min_count=2)

    @classmethod
    def of(cls, keys: Ints, min_count: int) -> _Strings:
        """The strings with these keys at each place, but for those that occur too rarely."""
        distinct, first, number, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        is_listed = (counts >= min_count) & (distinct != NOT_LISTED)
        new_number = np.full(len(distinct), NOT_LISTED, np.int64)
        new_number[is_listed] = np.arange(np.count_nonzero(is_listed))
        return cls(new_number[number], counts[is_listed], first[is_listed])

    def entropies(self, longer: _Strings, behind: bool) -> Floats:
        """h of the cluster behind each string, or before it, shape (strings,).

        Neighbours that a string has once, and the ends of runs, are all different. With c(y) the
        counts of the others and f that of the string, h = log f − Σ c log c / f.
        """
        places = longer.first if behind else longer.first + 1
        sums = np.bincount(
            self.at_place[places],
            longer.counts * np.log(longer.counts),
            minlength=len(self.counts),
        )
        entropies: Floats = np.log(self.counts) - sums / self.counts
        return entropies


@dataclass(frozen=True)
class _ScoredStrings:
    """Strings of one length, with v behind + v before of each."""

    at_place: Ints
    autonomy: Floats


def _strings(runs: _Runs) -> Iterator[_ScoredStrings]:
    """The strings of 1, 2, … clusters."""
    strings = _Strings.of(runs.ids, min_count=1)
    shares = strings.counts / max(len(runs.ids), 1)
    of_any = -float(shares @ np.log(shares))  # entropy of a cluster of which nothing is known
    # the entropies behind and before a string without its last, and without its first cluster
    behind_shorter: Floats | float = of_any
    before_shorter: Floats | float = of_any
    for n in range(1, MAX_CLUSTERS + 1):
        longer = _Strings.longer(strings, runs, n + 1)
        behind = strings.entropies(longer, True)
        before = strings.entropies(longer, False)
        weights = strings.counts.astype(np.float64) ** WEIGHT_EXPONENT
        autonomy = _less_mean(behind - behind_shorter, weights)
        autonomy = autonomy + _less_mean(before - before_shorter, weights)
        yield _ScoredStrings(strings.at_place, autonomy)
        behind_shorter = behind[strings.at_place[longer.first]]
        before_shorter = before[strings.at_place[longer.first + 1]]
        strings = longer


def _less_mean(values: Floats, weights: Floats) -> Floats:
    """The values less their weighted mean."""
    if not len(values):
        return values
    return values - float(values @ weights / weights.sum())


@compiled(nogil=True)
def _best_division(scores: Floats, run: Ints, best: Floats, last_size: Ints, sizes: Ints) -> None:
    """Write the sizes of the words of the division with the largest sum of scores.

    Args:
        scores: of a word of n + 1 clusters that begins at each place, shape (lengths, places).
        run: the run of each place.
        best: −∞, shape (places + 1,); becomes the largest sum up to each place.
        last_size: 0, likewise; becomes the size of the last word of that sum.
        sizes: 0, shape (places,); becomes the size of the word that begins at each place.
    """
    n_places = len(run)
    best[0] = 0.0
    for start in range(n_places):
        for n in range(1, min(scores.shape[0], n_places - start) + 1):
            if run[start + n - 1] != run[start]:
                break
            score = best[start] + scores[n - 1, start]
            if score > best[start + n]:
                best[start + n] = score
                last_size[start + n] = n
    end = n_places
    while end > 0:
        size = last_size[end]
        end -= size
        sizes[end] = size
