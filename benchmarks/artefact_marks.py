"""Marks that `artefacts.py` plants into texts, by kind.

A mark is put into the documents of one class or of several. `Plan` says which documents get it; a
`Kind` says what it is and how it is put into a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

Change = Callable[[str, np.random.Generator], str]

RATES = (0.02, 0.05, 0.1, 0.2, 0.5, 0.6)  # of the documents of a class
EXCEPTIONS = (0.005, 0.01, 0.03)  # of the documents of all other classes
REPETITIONS = (0.2, 0.5, 1.0, 2.0)  # of a mark that is repeated, per document, on average
FEWEST = 12  # documents with a mark; fewer say nothing about company
SHARED_BY = (2, 3, 4)  # classes of a mark that several classes share

# Ordinary English words of many fields, and words of other languages; none is rare.
WORDS = (
    "marmalade copper basket lantern velvet harbour thimble orchard pebble saddle walnut ribbon "
    "anchor kettle feather bamboo cushion ladder magnet pillow quarry rocket saucer tunnel "
    "umbrella violin wallet yoghurt zebra almond beacon candle dolphin engine falcon garden "
    "hammer island jacket kitchen lemon mirror needle oyster pencil rabbit sailor teapot "
    "actually certainly frankly meanwhile nevertheless perhaps probably regarding somehow "
    "thereby accordingly honestly indeed obviously overall similarly "
    "Schmetterling Zeitung Fenster bibliothèque fromage ventana mariposa finestra клавиша 窓辺"
).split()
NAMES = "Petra Anton Wilma Gustav Ingrid Nikos Farida Tomasz Yusuf Chloe Mateo Priya".split()
JOINING = "and the of in with for by to on at".split()
SENTENCES = (  # of another register, for a second source
    "Terms and conditions apply to every order placed before noon.",
    "The applicant shall provide written notice within thirty days.",
    "Please refer to the attached schedule for further particulars.",
    "This entry was migrated from the previous archive.",
    "Kindly consult the appendix before filing any objection.",
    "Payment remains due irrespective of pending correspondence.",
)


@dataclass(frozen=True)
class Mark:
    """One mark: how it changes a text, and the words by which a finding may name it.

    Attributes:
        change: puts it into a text.
        words: in lower case; empty if it is a form.
        forms: tokens ⟨…⟩ that show it.
        change_others: what the other documents get instead.
    """

    change: Change
    words: frozenset[str]
    forms: frozenset[str] = frozenset()
    change_others: Change = lambda text, _: text


@dataclass(frozen=True)
class Kind:
    """A kind of marks.

    Attributes:
        group: word, phrase, code, form, family or source.
        make: draws one; the vocabulary is that of the set, most frequent words first.
        classes: whether one class has it, or several.
        exceptions: whether some documents of other classes have it too.
    """

    group: Literal["word", "phrase", "code", "form", "family", "source"]
    make: Callable[[np.random.Generator, Sequence[str]], Mark]
    several_classes: bool = False
    exceptions: bool = False


def anywhere(make: Callable[[np.random.Generator], str]) -> Change:
    """Puts words between two words of a text, at random."""

    def change(text: str, rng: np.random.Generator) -> str:
        parts = text.split(" ")
        at = int(rng.integers(len(parts) + 1))
        return " ".join([*parts[:at], make(rng), *parts[at:]])

    return change


def first(text_before: str) -> Change:
    """Puts words before a text."""
    return lambda text, _: f"{text_before} {text}"


def last(text_after: str) -> Change:
    """Puts words behind a text."""
    return lambda text, _: f"{text} {text_after}"


def words_of(text: str) -> frozenset[str]:
    """The words of a text, in lower case."""
    return frozenset(pl.Series([text.lower()]).str.extract_all(r"[\w]+")[0].to_list())


def drawn(rng: np.random.Generator, words: Sequence[str], n: int = 1) -> list[str]:
    """Some different words."""
    return [str(word) for word in rng.choice(list(words), n, replace=False)]


def fixed(text: str, put: Callable[[str], Change]) -> Mark:
    """A mark that is the same in all its documents."""
    return Mark(put(text), words_of(text))


def put_anywhere(text: str) -> Change:
    """Puts a fixed text between two words, at random."""
    return anywhere(lambda _: text)


def own_rare_word(rng: np.random.Generator, vocabulary: Sequence[str]) -> Mark:
    """A word of the set itself, from the rarer half of its vocabulary."""
    rare = [word for word in vocabulary[len(vocabulary) // 2 :] if word.isalpha() and len(word) > 2]
    return fixed(drawn(rng, rare or WORDS)[0], put_anywhere)


def own_common_phrase(rng: np.random.Generator, vocabulary: Sequence[str]) -> Mark:
    """Two or three common words of the set itself that need not follow each other elsewhere."""
    common = [word for word in vocabulary[:120] if word.isalpha()]
    return fixed(" ".join(drawn(rng, common, int(rng.integers(2, 4)))), put_anywhere)


def code(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """A ticket's number in brackets at the start."""
    prefix = drawn(rng, ("INV", "REF", "QX", "TKT"))[0]
    return Mark(
        lambda text, r: f"[{prefix}-{r.integers(10_000, 99_999)}] {text}",
        frozenset({prefix.lower()}),
        frozenset({"⟨starts with a symbol⟩", "⟨number⟩"}),
    )


def mixed_code(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """A code of letters and digits anywhere, the same in all documents."""
    name = f"{drawn(rng, ('v', 'kb', 'mx', 'rev'))[0]}{rng.integers(10, 999)}"
    return fixed(name, put_anywhere)


def telephone(_rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """A telephone number at the end."""
    return Mark(
        lambda text, r: f"{text} Tel. 030-{r.integers(10**5, 10**6)}",
        frozenset({"tel", "030"}),
        frozenset({"⟨ends with a digit⟩", "⟨number⟩"}),
    )


def form(change: Change, *forms: str) -> Callable[[np.random.Generator, Sequence[str]], Mark]:
    """A kind whose marks are all the same form."""
    return lambda _rng, _vocabulary: Mark(change, frozenset(), frozenset(forms))


def name_in_slot(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """One of several names behind a fixed word, at the end."""
    names = drawn(rng, NAMES, 4)
    opening = drawn(rng, ("Handled by", "Regards,", "Reviewer:"))[0]
    words = words_of(" ".join([opening, *names]))
    return Mark(lambda text, r: f"{text} {opening} {drawn(r, names)[0]}", words)


def rating(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """n/10 with different n, at the end or within the text."""
    forms = frozenset({"⟨n/10 rating⟩", "⟨number⟩", "⟨ends with a digit⟩"})
    words = frozenset(f"{n}/10" for n in range(11)) | {"10"}
    if rng.random() < 0.5:
        return Mark(lambda text, r: f"{text} {r.integers(6, 11)}/10", words, forms)
    return Mark(anywhere(lambda r: f"{r.integers(6, 11)}/10"), words, forms)


def dates(_rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """A date at the start."""
    return Mark(
        lambda text, r: f"2031-{r.integers(1, 13):02}-{r.integers(1, 29):02} {text}",
        frozenset({"2031"}),
        frozenset({"⟨starts with a digit⟩", "⟨number⟩"}),
    )


def second_vocabulary(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """Two to four words of a small vocabulary at random places, as a second source brings its
    own."""
    vocabulary = drawn(rng, WORDS, 8)

    def change(text: str, r: np.random.Generator) -> str:
        for word in drawn(r, vocabulary, int(r.integers(2, 5))):
            text = put_anywhere(word)(text, r)
        return text

    return Mark(change, words_of(" ".join(vocabulary)))


def second_register(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """A sentence of another register, one of three, before or behind the text."""
    sentences = drawn(rng, SENTENCES, 3)

    def change(text: str, r: np.random.Generator) -> str:
        sentence = drawn(r, sentences)[0]
        return f"{sentence} {text}" if r.random() < 0.5 else f"{text} {sentence}"

    return Mark(change, words_of(" ".join(sentences)))


def signature(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """All documents end in one phrase, whose last word is the mark or one of four others."""
    opening = drawn(rng, ("Sent from my", "Written by", "Handled by", "Posted via", "Team"))[0]
    own, *others = drawn(rng, [*NAMES, *WORDS[:40]], 5)
    return Mark(
        last(f"{opening} {own}."),
        words_of(own),
        change_others=lambda text, r: f"{text} {opening} {drawn(r, others)[0]}.",
    )


def repeated_word(rng: np.random.Generator, _: Sequence[str]) -> Mark:
    """A word once or more often in a document, as signs of emoji, quoting or markup come."""
    word = drawn(rng, WORDS)[0]
    n_more = float(rng.choice(REPETITIONS))

    def change(text: str, r: np.random.Generator) -> str:
        for _ in range(1 + int(r.poisson(n_more))):
            text = put_anywhere(word)(text, r)
        return text

    return Mark(change, words_of(word))


CHOOSING: dict[str, Kind] = {
    "a word anywhere": Kind("word", lambda r, _: fixed(drawn(r, WORDS)[0], put_anywhere)),
    "a word first": Kind("word", lambda r, _: fixed(drawn(r, WORDS)[0].title(), first)),
    "a word last": Kind("word", lambda r, _: fixed(drawn(r, WORDS)[0], last)),
    "a rare word of the set": Kind("word", own_rare_word),
    "two words anywhere": Kind(
        "phrase", lambda r, _: fixed(" ".join(drawn(r, WORDS, 2)), put_anywhere)
    ),
    "a code first": Kind("code", code),
    "a final ??!": Kind(
        "form", form(lambda t, _: t.rstrip(".!? ") + "??!", "⟨??⟩", "⟨?!⟩", '⟨ends "!"⟩')
    ),
    "n/10": Kind("family", rating),
    "a word in several classes": Kind(
        "word", lambda r, _: fixed(drawn(r, WORDS)[0], put_anywhere), several_classes=True
    ),
    "words of a second source": Kind("source", second_vocabulary),
    # looked at after the first report
    "a phrase last": Kind(
        "phrase",
        lambda r, _: fixed(" ".join([*drawn(r, JOINING), *drawn(r, WORDS, 2)]), last),
    ),
    "sentences of a second source": Kind("source", second_register),
    # added before the second fit: marks were put in once only, so that U+FE0F was no artefact
    "a word several times": Kind("word", repeated_word),
    # added before the second fit: missed in the demo, whose reviews all end in such a phrase
    "a word in a signature": Kind("family", signature),
    # was for reporting until the third fit: its traits were seen when the trait `edge` was made
    "one of four names": Kind("family", name_in_slot),
}
REPORTING: dict[str, Kind] = {
    "three words anywhere": Kind(
        "phrase", lambda r, _: fixed(" ".join(drawn(r, WORDS, 3)), put_anywhere)
    ),
    "a phrase of common words": Kind("phrase", own_common_phrase),
    "a word with exceptions": Kind(
        "word", lambda r, _: fixed(drawn(r, WORDS)[0], put_anywhere), exceptions=True
    ),
    "a phrase in several classes": Kind(
        "phrase",
        lambda r, _: fixed(" ".join(drawn(r, WORDS, 2)), put_anywhere),
        several_classes=True,
    ),
    "a code anywhere": Kind("code", mixed_code),
    "a telephone number": Kind("code", telephone),
    "dates": Kind("family", dates),
    "all in capitals": Kind(
        "form",
        form(lambda t, _: t.upper(), "⟨ALL CAPS⟩", "⟨no capitals⟩", "⟨nothing but capitals⟩"),
    ),
    "curly quotes, several classes": Kind(
        "form",
        form(
            lambda t, _: f"“{t}”",
            "⟨starts with a quote⟩",
            "⟨ends with a quote⟩",
            '⟨"quotes"⟩',
            "⟨curly quotes⟩",
        ),
        several_classes=True,
    ),
}
KINDS = CHOOSING | REPORTING


@dataclass(frozen=True)
class Planted:
    """A draw with a mark in it.

    Attributes:
        texts: all of them.
        changed: whether each has the mark, shape (n,).
        classes: those that have it.
        mark: what was planted.
        rate: of the documents of these classes.
    """

    texts: pl.Series
    changed: np.ndarray
    classes: tuple[str, ...]
    mark: Mark
    rate: float


def plant(frame: pl.DataFrame, kind: Kind, rng: np.random.Generator) -> Planted | None:
    """Plants a mark of a kind, with a random class and rate; None if no class is large enough."""
    labels = frame["label"].to_numpy()
    names, sizes = np.unique(labels, return_counts=True)
    rate = float(rng.choice(RATES))
    large = names[sizes * rate >= FEWEST]
    n_classes = 1
    if kind.several_classes:
        n_classes = int(rng.choice(SHARED_BY))
        if len(names) < n_classes + 2:
            return None
    if len(large) < n_classes:
        return None
    chosen = rng.choice(large, n_classes, replace=False)
    mark = kind.make(rng, frequent_words(frame["text"]))
    changed = np.zeros(len(labels), dtype=bool)
    for name in chosen:
        documents = np.flatnonzero(labels == name)
        changed[rng.choice(documents, round(rate * len(documents)), replace=False)] = True
    if kind.exceptions:
        others = np.flatnonzero(~np.isin(labels, chosen))
        n_exceptions = round(float(rng.choice(EXCEPTIONS)) * len(others))
        changed[rng.choice(others, n_exceptions, replace=False)] = True
    texts = [
        mark.change(text, rng) if is_changed else mark.change_others(text, rng)
        for text, is_changed in zip(frame["text"], changed, strict=True)
    ]
    return Planted(pl.Series(texts), changed, tuple(map(str, chosen)), mark, rate)


def frequent_words(texts: pl.Series) -> list[str]:
    """The words of texts that five documents contain, the most frequent first."""
    words = texts.str.to_lowercase().str.extract_all(r"\w+").list.unique().explode()
    table = words.drop_nulls().value_counts().rename({words.name: "word"})
    table = table.filter(pl.col("count") >= 5).sort("count", "word", descending=[True, False])
    return table["word"].to_list()
