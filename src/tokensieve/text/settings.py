"""What a token is: the options that every command which reads words shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tokensieve.errors import InputError
from tokensieve.options import option

if TYPE_CHECKING:
    from tokensieve.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TokenSettings:
    """Tokens.

    Attributes:
        tokenizer: a tokenizer.json, or in Python any object with the methods of
            `tokensieve.text.tokenizers.Tokenizer`; the words of `WordTokenizer` if None. The other
            settings are about those words.
        stop_words: a file with a word on each line.
    """

    tokenizer: str | Tokenizer | None = option(
        None, "Split texts by this Hugging Face tokenizer.json.", metavar="FILE"
    )
    keep_case: bool = option(False, "Distinguish upper and lower case.")
    pattern: str | None = option(
        None, "Regular expression (Rust syntax) that matches one token.", metavar="REGEX"
    )
    stop_words: Path | None = option(None, "File of words to ignore, one per line.")
    html: Literal["skip", "strip", "keep"] = option(
        "skip", "Skip tags and entities, strip them, or keep them."
    )
    words: Literal["data", "segmenter", "characters"] = option(
        "data",
        "Chinese, Japanese, Thai, Khmer: learn words from the data, let ICU find them, or split "
        "into characters.",
    )

    def make_tokenizer(self) -> Tokenizer:
        """The tokenizer of these settings.

        Raises:
            InputError: the settings contradict each other, or a file or pattern cannot be used.
        """
        # Polars is loaded with it, which --help does not need
        from tokensieve.text.patterns import WORD
        from tokensieve.text.pieces import PieceTokenizer
        from tokensieve.text.tokenizers import WordTokenizer, read_stop_words

        if self.tokenizer is not None:
            self._check_without_word_options()
            if isinstance(self.tokenizer, str | Path):
                return PieceTokenizer(str(self.tokenizer))
            return self.tokenizer
        stop_words: tuple[str, ...] = ()
        if self.stop_words is not None:
            stop_words = read_stop_words(Path(self.stop_words), not self.keep_case)
        return WordTokenizer(
            lowercase=not self.keep_case,
            pattern=self.pattern or WORD,
            html=self.html,
            stop_words=stop_words,
            words=self.words,
        )

    def _check_without_word_options(self) -> None:
        """Refuse options of words beside a tokenizer of word pieces, which has none of them."""
        defaults = TokenSettings()
        for name in ("keep_case", "pattern", "stop_words", "html", "words"):
            if getattr(self, name) != getattr(defaults, name):
                flag = "--" + name.replace("_", "-")
                raise InputError(
                    f"{flag} cannot be combined with --tokenizer; leave one of them out"
                )

    def token_options(self) -> dict[str, Any]:
        """These settings as JSON values, for summary.json."""
        tokenizer = self.tokenizer
        if tokenizer is not None and not isinstance(tokenizer, str | Path):
            tokenizer = type(tokenizer).__name__
        return {
            "tokenizer": "words" if tokenizer is None else str(tokenizer),
            "keep_case": self.keep_case,
            "pattern": self.pattern,
            "stop_words": None if self.stop_words is None else str(self.stop_words),
            "html": self.html,
            "words": self.words,
        }
