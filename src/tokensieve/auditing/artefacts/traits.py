"""What the score looks at: the traits that tell an artefact from a word of the subject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import polars as pl

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.auditing.artefacts.candidates import (
    MIN_DOCUMENTS,
    Candidate,
    wilson_lower,
)
from tokensieve.auditing.artefacts.class_texts import Area
from tokensieve.auditing.artefacts.context import (
    UNKNOWN_AREA,
    UsualArea,
    area_of_most,
    context_areas,
    main_class,
    ordinary_words,
    usual_area,
)
from tokensieve.auditing.artefacts.neighbours import (
    Neighbours,
    PairRates,
    neighbours_of,
    pair_rates,
    slot_rivals,
    words_at_one_distance,
)
from tokensieve.auditing.artefacts.peers import peers_of
from tokensieve.auditing.artefacts.shapes import common_beginning, without_field
from tokensieve.auditing.artefacts.use import WordUse
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.tokenizers import FieldTokenizer

LONG_WORD = 5  # letters, from which four in common make a relative; of shorter words three do
NAME_WORD = re.compile(r"[^\W\d_]{2,}")
STEM_LETTERS = 4
MAX_ENDING = 2  # letters in which relatives differ at the end of the shorter one
MIN_RELATIVE_DOCUMENTS = 3
# Signs that join a word to what stands beside it, between a letter or digit and the word
JOINING = "[/_=@#?%:.]"
# What may be joined is found by larger sets of characters, which compile fast: they match wherever
# `joined_pattern` does.
ANYTHING_JOINED = r"[^ ][/_=@#?%:.-][^ ]|[\[\]]"
MAYBE_BEFORE = r"(?:[^ ][/_=@#?%:.-]|\[)"
MAYBE_AFTER = r"(?:[/_=@#?%:.-][^ ]|\])"
MAYBE_BETWEEN = "[^a-z0-9]*"
LARGEST_ERROR = 0.3  # of an area of few documents, or of none
SPREAD_APART = 0.02  # of the areas of words put in at random, beyond chance
SPREAD_USUAL = 0.03  # of those of ordinary words, if fewer than show their own
# of an area: where ordinary words keep no company, nothing is told by its absence
LEAST_USUAL = 0.55
LEAST_AUC = 0.4  # leaving one out draws areas below ½; further below says no more
# where nothing is told: with it in the place of the trait of every candidate, the probabilities of
# the score add up to the number of marks, on the sets and kinds for choosing
NEUTRAL_APART = -1.6
APART_RANGE = (-8.0, 4.0)  # more means the same
MAX_RELATIVES = 3
INSERTED_RANGE = (-0.5, 1.5)  # about 0 of what was written, 1 of what was inserted; half beyond
# of runs of words in texts that people write; in those of templates that are filled, nearly all are
# repeated (records, weather_de, weather_en of benchmarks/artefact_sets.py: .89 to 1)
MAX_REPETITION = 0.8
ENOUGH_ORDINARY = 4  # ordinary words of a class, to show what is usual in it
MAX_COVERAGE = 0.5  # no mark that the score was fitted on is in many more documents of a class
TEXTS_READ = 40  # documents of a candidate whose text is searched for codes and markup


@dataclass(frozen=True)
class Traits:
    """The traits of a candidate; each has one weight in the score.

    Attributes:
        apart: log-likelihood ratio of "the other words of a document do not tell whether it
            contains the candidate" to "they tell as much as of an ordinary word, or more"
            (`apart_of`).
        inserted: about 1 if it stands between words that are neighbours elsewhere (`neighbours`).
        peers: logarithm of one plus the number of words that are as certain for the class.
        constancy: the share of its less constant neighbour.
        coverage: the fraction of the class's documents that contain it, at most one half.
        certainty: how far from neutral to certain it makes the class.
        kinship: 1 if it is a word of the class's name or related to one.
        repeated: logarithm of its occurrences per document.
        joined: the fraction of texts where it is part of a code, an address or markup.
        relatives: logarithm of one plus the words of its stem that predict the class, too.
        phrase: 1 if it is several words.
        group: 1 if it points to several classes.
        edge: 1 if it stands in a fixed phrase at the start or end of its texts.
        run: logarithm of the words of the fixed run that it nearly always stands in, times the
            fraction of such runs in these texts that are not repeated: in templates all words do.
        place: the largest fraction of its occurrences at one distance from an edge of their texts.
    """

    apart: float
    inserted: float
    peers: float
    constancy: float
    coverage: float
    certainty: float
    kinship: float
    repeated: float
    joined: float
    relatives: float
    phrase: float
    group: float
    edge: float
    run: float
    place: float


TRAITS = tuple(field.name for field in fields(Traits))


@dataclass(frozen=True, eq=False)
class Asked:
    """Candidates that are asked about, with what is known of them together.

    Attributes:
        use: the words of the texts.
        candidates: what is asked about.
        pool: all candidates, among which are the peers.
    """

    use: WordUse
    candidates: Sequence[Candidate]
    pool: Sequence[Candidate]

    @classmethod
    def all_of(cls, use: WordUse, candidates: Sequence[Candidate]) -> Asked:
        """All candidates of some texts."""
        return cls(use, candidates, candidates)

    @cached_property
    def peers(self) -> list[Ints]:
        """The places of each candidate's peers in the pool."""
        return peers_of(self.candidates, self.pool, self.use.counts.n_documents)

    @cached_property
    def areas(self) -> list[Area]:
        """The context AUC of each candidate."""
        left_out = types_left_out(self.use, self.candidates, self.pool, self.peers)
        return context_areas(self.use, self.candidates, left_out)


@dataclass(frozen=True)
class Usual:
    """What is usual in a set of texts, against which candidates are compared.

    Attributes:
        area: the context AUC of ordinary words.
        area_of_candidates: that of most candidates, where ordinary words keep no company.
        told: how far absence of company tells in each class, from 0 to 1: not where it has no
            ordinary words, and not where templates decide which words come together.
        pairs: how often neighbours recur, by class, and of all in the last place.
    """

    area: UsualArea
    area_of_candidates: UsualArea
    told: tuple[float, ...]
    pairs: list[PairRates]

    @classmethod
    def of(cls, asked: Asked) -> Usual:
        """What is usual in these texts; with few ordinary words, what is among the candidates."""
        use = asked.use
        n_classes = use.counts.n_classes
        ordinary = [ordinary_words(use, label) for label in range(n_classes)]
        area = usual_area(use, ordinary)
        has_ordinary = [min(len(words) / ENOUGH_ORDINARY, 1.0) for words in ordinary]
        if area is UNKNOWN_AREA:
            has_ordinary = [1.0] * n_classes  # the candidates stand in for them
        written = min((1 - use.order.repetition) / (1 - MAX_REPETITION), 1.0)
        told = tuple(written * has_own for has_own in has_ordinary)
        area_of_candidates = UNKNOWN_AREA
        if min(area.at(MIN_DOCUMENTS), area.at(area.most_documents)) < LEAST_USUAL:
            area_of_candidates = area_of_most(asked.areas)
        pairs = pair_rates(use.order, use.counts.labels, n_classes)
        return cls(area, area_of_candidates, told, pairs)


@dataclass(frozen=True, eq=False)
class Observed:
    """What was seen of a candidate.

    Attributes:
        candidate: the word or phrase.
        traits: what the score looks at.
        neighbours: between which it stands.
    """

    candidate: Candidate
    traits: Traits
    neighbours: Neighbours


def observe(asked: Asked, usual: Usual, texts: pl.Series | StoredTexts) -> list[Observed]:
    """The traits of candidates.

    Args:
        asked: the candidates.
        usual: what is usual in their texts.
        texts: the texts themselves, in the same order.
    """
    use = asked.use
    counts = use.counts
    candidates = asked.candidates
    peers = asked.peers
    areas = asked.areas
    relatives = Relatives.of(use)
    joined = joined_fractions(
        texts,
        [candidate.words for candidate in candidates],
        [candidate.documents for candidate in candidates],
    )
    observed = []
    for i, candidate in enumerate(candidates):
        neighbours = neighbours_of(use.order, candidate, counts.labels, usual.pairs)
        if is_column_value(use, candidate):
            neighbours = Neighbours(inserted=0.0, constancy=0.0)  # it stands beside nothing
        names = [counts.classes[label] for label in candidate.classes]
        n_relatives = relatives.count(candidate)
        traits = Traits(
            apart=apart_of(areas[i], usual, main_class(use, candidate)),
            inserted=inserted_of(neighbours),
            peers=float(np.log1p(len(peers[i]))),
            constancy=neighbours.constancy,
            coverage=min(candidate.coverage, MAX_COVERAGE),
            certainty=candidate.certainty,
            kinship=float(is_kin(names, candidate.words)),
            repeated=repeated(use, candidate),
            joined=float(joined[i]),
            relatives=float(np.log1p(min(n_relatives, MAX_RELATIVES))),
            phrase=float(len(candidate.words) > 1),
            group=float(len(candidate.classes) > 1),
            edge=float(neighbours.is_fixed_phrase),
            run=float(np.log(neighbours.run_length) * (1 - use.order.repetition)),
            place=neighbours.place,
        )
        observed.append(Observed(candidate, traits, neighbours))
    return observed


def types_left_out(
    use: WordUse,
    candidates: Sequence[Candidate],
    pool: Sequence[Candidate],
    peers: Sequence[Ints],
) -> list[Ints]:
    """The types that may not tell about each candidate: what comes with its place, and its peers.

    `peers` has the places of each candidate's peers in the pool.
    """
    return [
        np.concatenate([types_beside(use, candidate), types_of_peers(pool, places)])
        for candidate, places in zip(candidates, peers, strict=True)
    ]


def types_beside(use: WordUse, candidate: Candidate) -> Ints:
    """The types that mostly stand at one distance from a candidate, or in its place in the same
    phrase.
    """
    words = [*words_at_one_distance(use.order, candidate), *slot_rivals(use.order, candidate)]
    words += values_of_same_column(use, candidate)
    return np.array([use.type_of[word] for word in words if word in use.type_of], dtype=np.int64)


def values_of_same_column(use: WordUse, candidate: Candidate) -> list[str]:
    """All values of the column that a candidate is a value of: each document has one of them."""
    if not is_column_value(use, candidate):
        return []
    assert isinstance(use.tokenizer, FieldTokenizer)
    column = use.tokenizer.field_of(candidate.words[0])
    return [word for word in use.type_of if use.tokenizer.field_of(word) == column]


def is_column_value(use: WordUse, candidate: Candidate) -> bool:
    """Whether a candidate is a value of another column, not a word of a text."""
    if not isinstance(use.tokenizer, FieldTokenizer):
        return False
    return use.tokenizer.is_value(candidate.words[0])


def types_of_peers(candidates: Sequence[Candidate], places: Ints) -> Ints:
    """The types of the peers of a candidate: what is itself in question may not tell about it."""
    types = [candidates[place].type for place in places.tolist()]
    return np.array([word_type for word_type in types if word_type >= 0], dtype=np.int64)


def apart_of(area: Area, usual: Usual, label: int) -> float:
    """How much better "nothing tells" explains a context AUC than "as much tells as usual, or
    more".

    The less company ordinary words keep, the more the other candidates say what is usual. Where
    neither do, the class has no ordinary words, or templates are filled, the absence of company
    tells nothing.
    """
    # 0 if ordinary words keep no company, 1 from LEAST_USUAL on
    weight_of_ordinary = min((usual.area.at(area.n_with) - 0.5) / (LEAST_USUAL - 0.5), 1.0)
    against_ordinary = apart_from(area, usual.area)
    against_candidates = apart_from(area, usual.area_of_candidates)
    apart = weight_of_ordinary * against_ordinary
    apart += (1 - weight_of_ordinary) * against_candidates
    told = usual.told[label]
    return told * apart + (1 - told) * min(apart, NEUTRAL_APART)


def apart_from(area: Area, usual: UsualArea) -> float:
    """The logarithm of the ratio of two normal densities of a context AUC.

    One is around ½, the other around the usual area, with its spread; beyond the usual area the
    second is as high as at it. Where the usual area is unknown, company still tells, but not its
    absence.
    """
    error = min(area.error, LARGEST_ERROR)
    error_apart = np.hypot(error, SPREAD_APART)
    error_usual = np.sqrt(error**2 + usual.spread**2 + SPREAD_USUAL**2)
    expected = max(usual.at(area.n_with), LEAST_USUAL)
    z_apart = (max(area.auc, LEAST_AUC) - 0.5) / error_apart
    z_usual = min(area.auc - expected, 0.0) / error_usual
    ratio = (z_usual**2 - z_apart**2) / 2 + np.log(error_usual / error_apart)
    apart = float(np.clip(ratio, *APART_RANGE))
    return min(apart, NEUTRAL_APART) if usual is UNKNOWN_AREA else apart


def inserted_of(neighbours: Neighbours) -> float:
    """How much a word looks inserted, within a range that single odd pairs cannot leave."""
    return float(np.clip(neighbours.inserted, *INSERTED_RANGE))


def repeated(use: WordUse, candidate: Candidate) -> float:
    """The logarithm of a word's occurrences per document; a phrase counts as occurring once."""
    if candidate.type < 0:
        return 0.0
    occurrences = use.occurrences_of(candidate.type, candidate.documents)
    return float(np.log(max(occurrences / len(candidate.documents), 1.0)))


def joined_fraction(texts: pl.Series | StoredTexts, words: Sequence[str], documents: Ints) -> float:
    """The fraction of some of its texts where a word or phrase is part of a code, an address or
    markup.
    """
    return float(joined_fractions(texts, [words], [documents])[0])


def joined_fractions(
    texts: pl.Series | StoredTexts,
    phrases: Sequence[Sequence[str]],
    documents: Sequence[Ints],
) -> Floats:
    """`joined_fraction` of each phrase in its documents, with one call of Polars for all."""
    samples = [sample_of(containing) for containing in documents]
    sizes = [len(sample) for sample in samples]
    if not samples:
        return np.empty(0)
    number = np.repeat(np.arange(len(samples)), sizes)
    sampled = pl.Series(texts.gather(np.concatenate(samples)), dtype=pl.String)
    may_be_joined = np.flatnonzero(sampled.str.contains(ANYTHING_JOINED).to_numpy())
    maybe = pl.Series([maybe_joined_pattern(words) for words in phrases], dtype=pl.String)
    patterns = maybe.gather(number[may_be_joined])
    may_be_joined = may_be_joined[contains_each(sampled.gather(may_be_joined), patterns)]

    number = number[may_be_joined]
    sampled = sampled.gather(may_be_joined)
    is_ascii = (sampled.str.len_bytes() == sampled.str.len_chars()).to_list()
    exact = [
        joined_pattern(phrases[i], ASCII if in_ascii else UNICODE)
        for i, in_ascii in zip(number.tolist(), is_ascii, strict=True)
    ]
    is_joined = contains_each(sampled, pl.Series(exact, dtype=pl.String))
    return np.asarray(np.bincount(number, is_joined, len(samples)) / sizes)


def contains_each(texts: pl.Series, patterns: pl.Series) -> Bools:
    """Whether each text contains its regular expression, shape (n,)."""
    rows = pl.DataFrame({"text": texts, "pattern": patterns})
    contains = rows.select(pl.col("text").str.contains(pl.col("pattern")))
    return contains.to_series().to_numpy()


def sample_of(documents: Ints) -> Ints:
    """Some documents, evenly spread over all of them."""
    return documents[:: max(1, len(documents) // TEXTS_READ)][:TEXTS_READ]


@dataclass(frozen=True)
class Characters:
    """Classes of characters in regular expressions: of words, digits, and between words."""

    word: str
    digit: str
    between: str


UNICODE = Characters(r"\w", r"\d", r"[\W_]")  # a hundred thousand, which take time to compile
ASCII = Characters("[0-9A-Za-z_]", "[0-9]", "[^0-9A-Za-z]")  # the same in a text of ASCII


def joined_pattern(words: Sequence[str], characters: Characters = UNICODE) -> str:
    """A regular expression of a word or phrase that is joined to what stands beside it."""
    word = characters.word
    digit = characters.digit
    written = as_written(words, f"{characters.between}*")
    before = rf"(?:{word}{JOINING}|\[|{digit}-)"
    after = rf"(?:{JOINING}{word}|-{digit}|\])"
    return f"(?i){before}{written}|{written}{after}"


def maybe_joined_pattern(words: Sequence[str]) -> str:
    """A regular expression that matches all that `joined_pattern` matches, and little else."""
    written = as_written(words, MAYBE_BETWEEN)
    return f"(?i){MAYBE_BEFORE}{written}|{written}{MAYBE_AFTER}"


def as_written(words: Sequence[str], between: str) -> str:
    """A regular expression of words with what may stand between them."""
    return between.join(re.escape(without_field(word)).replace("0", r"\d+") for word in words)


def is_kin(class_names: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a word is of the name of a class, or related to one of its words."""
    name_words = NAME_WORD.findall(" ".join(class_names).lower().replace("_", " "))
    bare_words = [without_field(word) for word in words]
    return any(related(name, word) for name in name_words for word in bare_words)


def related(name: str, word: str) -> bool:
    """Whether a word begins or ends like a class's name, or abbreviates it, as "nx" does
    "networkx".
    """
    short, long = sorted((name, word), key=len)
    n_letters = 4 if len(short) > LONG_WORD else 3
    if 1 < len(word) < n_letters:
        return re.match(".*".join(map(re.escape, word)), name) is not None
    if name == word or (len(short) >= LONG_WORD and long.endswith(short)):
        return True
    return len(short) >= n_letters and name[:n_letters] == word[:n_letters]


@dataclass(frozen=True, eq=False)
class Relatives:
    """Words by their first letters, to find those of one stem.

    Attributes:
        use: of the words.
        by_beginning: the types that begin with four letters.
    """

    use: WordUse
    by_beginning: dict[str, list[int]]

    @classmethod
    def of(cls, use: WordUse) -> Relatives:
        """The words of some texts."""
        by_beginning: dict[str, list[int]] = {}
        for token, word_type in use.type_of.items():
            word = without_field(token)
            if len(word) >= STEM_LETTERS:
                by_beginning.setdefault(word[:STEM_LETTERS], []).append(word_type)
        return cls(use, by_beginning)

    def count(self, candidate: Candidate) -> int:
        """How many other words of the candidate's stem lean to its classes."""
        counts = self.use.counts
        is_inside = np.isin(np.arange(counts.n_classes), candidate.classes)
        neutral = counts.class_sizes[is_inside].sum() / counts.class_sizes.sum()
        related_types: set[int] = set()
        bare_words = [without_field(word) for word in candidate.words]
        for word in bare_words:
            for word_type in self.by_beginning.get(word[:STEM_LETTERS], ()):
                relative = without_field(str(counts.tokens[word_type]))
                if relative not in bare_words and has_same_stem(word, relative):
                    related_types.add(word_type)
        documents = counts.present[sorted(related_types)]
        n_documents = documents.sum(axis=1)
        leans = wilson_lower(documents[:, is_inside].sum(axis=1), n_documents) > neutral
        return int((leans & (n_documents >= MIN_RELATIVE_DOCUMENTS)).sum())


def has_same_stem(word: str, other: str) -> bool:
    """Whether two words differ in their last letters only."""
    n_common = len(common_beginning([word, other]))
    return n_common >= max(STEM_LETTERS, min(len(word), len(other)) - MAX_ENDING)


def as_matrix(traits: Sequence[Traits]) -> Floats:
    """Traits as numbers, shape (candidates, traits)."""
    rows = [[getattr(candidate_traits, name) for name in TRAITS] for candidate_traits in traits]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(TRAITS))
