"""Options that several commands share, until each library package has a settings class of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensieve.cli.command import say
from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.text.settings import ReadSettings

LARGE = 2_000_000_000  # bytes of a file, from which on streaming is suggested
SOURCE = "A file, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
IGNORED = "label label_separator group drop"  # options of reading that commands without labels do not have


@dataclass(frozen=True, kw_only=True)
class Files:
    """Text files."""

    encoding: str = option("utf-8", "Encoding of text files.")
    separator: str | None = option(None, "Separator of .csv and .tsv files, such as ';'.", metavar="MARK")
    header: bool = option(True, "The first line of .csv and .tsv files names the columns.")

    def form(self) -> dict[str, Any]:
        """The same as fields of `tokensieve.text.settings.SourceSettings`."""
        return {"encoding": self.encoding, "separator": self.separator, "header": self.header}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Data."""

    text: list[str] | None = option(
        None, "Column of the text; repeat it for several fields.", metavar="COLUMN", parse=list
    )
    label: str | None = option(None, "Column of the label.", metavar="COLUMN")
    group: list[str] | None = option(None, "Merge labels (repeatable).", metavar="NEW=OLD,…", parse=list)
    drop: list[str] | None = option(None, "Leave out these labels (repeatable).", metavar="OLD,…", parse=list)

    def groups(self) -> dict[str, list[str]]:
        """--group, new label → old ones.

        Raises:
            InputError: it is not of the form NEW=OLD,OLD.
        """
        groups: dict[str, list[str]] = {}
        for item in self.group or []:
            new, equals, old = item.partition("=")
            if not (new and equals and old):
                raise InputError(f"--group {item!r} is not of the form NEW=OLD,OLD (for example negative=1,2)")
            groups.setdefault(new, []).extend(old.split(","))
        return groups

    def dropped(self) -> list[str]:
        """--drop as a list of labels."""
        return [name for item in self.drop or [] for name in item.split(",")]


@dataclass(frozen=True, kw_only=True)
class Documents(Columns, Files):
    """Data."""

    source: str = ""
    test: str | None = option(None, "Test documents; otherwise a seeded random part of SOURCE.", metavar="SOURCE")
    split: str | None = option(None, "Column that says train or test for each row.", metavar="COLUMN")

    def reader(self, **more: Any) -> Callable[[], Any]:
        """Check the options now, read later; `more` goes to `read_corpus` as it is."""
        groups, dropped = self.groups(), self.dropped()

        def read() -> Any:
            from tokensieve.text.corpus import read_corpus

            return read_corpus(
                self.source, text=self.text, label=self.label, group=groups, drop=dropped, split=self.split,
                test=self.test, **self.form(), **more,
            )  # fmt: skip

        return read


@dataclass(frozen=True, kw_only=True)
class Splitting:
    """Tokens."""

    tokenizer: str | None = option(
        None, "Split texts with this Hugging Face tokenizer.json, not into words.", metavar="FILE"
    )
    keep_case: bool = option(False, "Keep upper and lower case apart.")
    pattern: str | None = option(None, "Regular expression (Rust syntax) that matches one token.", metavar="REGEX")
    stop_words: Path | None = option(None, "File of words to ignore, one per line.")
    html: str = option("skip", "Skip tags and entities, strip them, or keep them as words.", metavar="skip|strip|keep")

    def splitter(self) -> Any:
        """The tokenizer meant.

        Raises:
            InputError: the options contradict each other, the pattern does not compile, or a file cannot be read.
        """
        from tokensieve.text.tokenizers import WORD, PieceTokenizer, WordTokenizer, read_stop_words

        if self.html not in ("skip", "keep", "strip"):
            raise InputError(f"--html is skip, strip or keep, not {self.html!r}")
        if self.tokenizer:
            for name in ("keep_case", "pattern", "stop_words"):
                if getattr(self, name):
                    option = "--" + name.replace("_", "-")
                    raise InputError(
                        f"{option} is for words; a tokenizer file splits by itself: leave one of the two out"
                    )
            if self.html == "strip":
                raise InputError("--html is for words; a tokenizer file splits by itself: leave one of the two out")
            return PieceTokenizer(self.tokenizer)
        left_out = () if self.stop_words is None else read_stop_words(self.stop_words, not self.keep_case)
        return WordTokenizer(
            lowercase=not self.keep_case,
            pattern=self.pattern or WORD,
            html=self.html,  # type: ignore[arg-type]
            stop_words=left_out,
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


def advise_streaming(source: str, settings: ReadSettings, quiet: bool) -> None:
    """Say that a large file need not be read into memory."""
    path, size = Path(source), 0
    with suppress(OSError, ValueError):  # reading will say what is wrong with the path
        size = path.stat().st_size if path.is_file() else 0
    if not settings.stream and size > LARGE:
        say(quiet, f"{path.name} has {size / 1e9:.1f} GB; --stream keeps it out of memory, with the same result")
