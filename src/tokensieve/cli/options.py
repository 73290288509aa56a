"""What several commands share: how texts are split, the columns of pairs, and what a result remembers of its options."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tokensieve.cli.command import say
from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.text.settings import ReadSettings

if TYPE_CHECKING:
    from tokensieve.text.tokenizers import Tokenizer

LARGE = 2_000_000_000  # bytes of a file, from which on streaming is suggested
SOURCE = "A file, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
SOURCES = "Files, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
IGNORED = "label label_separator group drop"  # options of reading that commands without labels do not have


@dataclass(frozen=True, kw_only=True)
class Splitting:
    """Tokens."""

    tokenizer: str | None = option(
        None, "Split texts with this Hugging Face tokenizer.json, not into words.", metavar="FILE"
    )
    keep_case: bool = option(False, "Keep upper and lower case apart.")
    pattern: str | None = option(None, "Regular expression (Rust syntax) that matches one token.", metavar="REGEX")
    stop_words: Path | None = option(None, "File of words to ignore, one per line.")
    html: Literal["skip", "strip", "keep"] = option(
        "skip", "Skip tags and entities, strip them, or keep them as words."
    )

    def splitter(self) -> Tokenizer:
        """The tokenizer meant.

        Raises:
            InputError: the options contradict each other, the pattern does not compile, or a file cannot be read.
        """
        from tokensieve.text.tokenizers import WORD, PieceTokenizer, WordTokenizer, read_stop_words

        if self.tokenizer:
            for name in ("keep_case", "pattern", "stop_words", "html"):
                if getattr(self, name) != getattr(Splitting(), name):
                    flag = "--" + name.replace("_", "-")
                    raise InputError(f"{flag} is for words, but --tokenizer splits by itself; leave one of the two out")
            return PieceTokenizer(self.tokenizer)
        ignored = () if self.stop_words is None else read_stop_words(self.stop_words, not self.keep_case)
        return WordTokenizer(
            lowercase=not self.keep_case, pattern=self.pattern or WORD, html=self.html, stop_words=ignored
        )

    def as_given(self) -> dict[str, Any]:
        """The options that decide what a token is, for summary.json."""
        stop_words = None if self.stop_words is None else str(self.stop_words)
        given = {"tokenizer": self.tokenizer or "words", "keep_case": self.keep_case}
        return given | {"pattern": self.pattern, "stop_words": stop_words, "html": self.html}


TwoColumns = tuple[str, str]


def two_columns(given: str) -> TwoColumns:
    """--pairs CHOSEN,REJECTED.

    Raises:
        InputError: it does not name two columns.
    """
    names = [name.strip() for name in given.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InputError(
            f"--pairs {given!r} does not name two columns, the preferred answer first: --pairs chosen,rejected"
        )
    return names[0], names[1]


def summary_of(folder: Path) -> Any:
    """What summary.json of a folder holds; None if it cannot be read."""
    from tokensieve.files import parsed, read_regular

    try:
        return parsed(read_regular(folder / "summary.json"))
    except (OSError, ValueError):
        return None


def pair_columns(folder: Path) -> tuple[str, str]:
    """The columns of the pairs that a model was trained on.

    Raises:
        InputError: its folder does not say.
    """
    try:
        first, second = map(str, summary_of(folder)["pairs"]["columns"])
    except (ValueError, LookupError, TypeError):
        raise InputError(
            "this is a model of pairs; name the columns of the two answers: --pairs FIRST,SECOND"
        ) from None
    return first, second


def reading_of(settings: ReadSettings) -> dict[str, Any]:
    """The options that decide which documents are read, for summary.json, as they are written on the command line."""
    text, label = (
        [given] if isinstance(given, str) else list(given or []) for given in (settings.text, settings.label)
    )
    names = ("test", "split", "by", "environments")
    return {name: getattr(settings, name) for name in names} | {
        "text": text[0] if len(text) == 1 else text or None,
        "label": label[0] if len(label) == 1 else label or None,
        "group": [f"{new}={','.join(old)}" for new, old in (settings.group or {}).items()] or None,
        "drop": list(settings.drop) or None,
        "weight": settings.sample_weight,
        "pairs": ",".join(settings.columns_of_pairs) or None,
    }


def sources(given: Sequence[str]) -> tuple[Any, str]:
    """What is to be read: one source, or several files as a list; and how messages name it."""
    return (given[0] if len(given) == 1 else list(given)), " ".join(given)


def advise_streaming(source: str, settings: ReadSettings, quiet: bool) -> None:
    """Say that a large file need not be read into memory."""
    path, size = Path(source), 0
    with suppress(OSError, ValueError):  # reading will say what is wrong with the path
        size = path.stat().st_size if path.is_file() else 0
    if not settings.stream and size > LARGE:
        say(quiet, f"{path.name} has {size / 1e9:.1f} GB; --stream keeps it out of memory, with the same result")
