"""Texts without certain tokens; what remains is what a model could learn without them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import msgspec
import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.files import parsed, read_regular
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer

GLUE = ("-", "_", "/", "#", ":")  # bind the letters and the number of a code


def mask_fields(
    texts: Mapping[str, pl.Series], tokens: Sequence[str], tokenizer: Tokenizer, alike: bool = False
) -> tuple[dict[str, pl.Series], int, dict[str, str], list[str]]:
    """`mask_texts` for the columns of one table (null where a row has no text): the texts, how many rows changed, each token →
    itself if it occurs, or else a similar token that does (or ""), and warnings. Each of several columns is a field with its own
    tokens, written `column:word` (an `InputError` if one belongs to none); if `alike` (pairs), every token is cut from all."""
    base = tokenizer.base if isinstance(tokenizer, FieldTokenizer) else tokenizer
    reasons = {
        one: "it is formatting, not a word of the text" for one in tokens if is_formatting(one)
    }
    reasons |= {
        one: "it is the length of a text, not a word in it" for one in reasons if "⟨length " in one
    }
    if isinstance(tokenizer, FieldTokenizer):
        reasons |= {
            one: "it is a value of another column" for one in tokens if tokenizer.is_value(one)
        }
    said = [f"cannot mask {one}: {reason}" for one, reason in reasons.items()]
    found = {one: "" for one in tokens if one not in reasons}
    own, prefixes = (
        {column: {one: one for one in found} for column in texts},
        dict.fromkeys(texts, ""),
    )
    if not alike and (len(texts) > 1 or isinstance(tokenizer, FieldTokenizer)):
        fields = FieldTokenizer(base, tuple(texts))  # type: ignore[arg-type]
        if isinstance(tokenizer, FieldTokenizer) and texts.keys() <= {*tokenizer.fields}:
            fields = tokenizer
        own, prefixes = {column: {} for column in texts}, fields.prefixes
        for token in found:
            field = fields.field_of(token)
            if field not in own:
                ways = ", ".join(f"{prefixes[name]}TOKEN" for name in texts)
                raise InputError(f"{token!r} does not name a field; write {ways}")
            own[field][
                " ".join(word.removeprefix(prefixes[field]) for word in token.split(" "))
            ] = token
    masked, changed = dict(texts), np.zeros(max(map(len, texts.values()), default=0), dtype=bool)
    for column, mine in own.items():
        if not mine:
            continue
        held = texts[column].is_not_null()
        split = base.split(texts[column].filter(held))
        for token, like in _nearest(mine, split).items():
            if like == token or (like and not found[mine[token]]):
                found[mine[token]] = " ".join(prefixes[column] + word for word in like.split(" "))
        cut = _masked_texts(texts[column].filter(held), mine, base, split)
        masked[column] = texts[column].clone().scatter(held.arg_true(), cut)
        differ = (masked[column] != texts[column]).fill_null(False).to_numpy()
        changed[: len(differ)] |= differ
        said += _remnants(masked[column].fill_null(""), np.flatnonzero(differ))
    return masked, int(changed.sum()), found, said


def _nearest(tokens: Iterable[str], split: pl.Series, most: int = 3) -> dict[str, str]:
    """Each token → itself if it occurs in split texts, else (for the first `most`) one like it that does; "" if there is none."""
    often = split.explode().drop_nulls().alias("word").value_counts().sort("count", "word")
    words = {word.lower(): word for word in often["word"]}  # the most frequent last
    joined, found = " " + split.list.join(" ") + " ", dict[str, str]()
    for token in tokens:
        like = token
        if most > 0 and not joined.str.contains(f" {token} ", literal=True).any():
            most, parts = most - 1, token.lower().split(" ")
            near = [
                [word] if word in words else get_close_matches(word, words, 5, 0.75)
                for word in parts
            ]
            like = " ".join(words[max(one, key=list(words).index)] if one else "" for one in near)
        found[token] = like if joined.str.contains(f" {like} ", literal=True).any() else ""
    return found


def mask_texts(
    texts: pl.Series, tokens: Sequence[str], tokenizer: Tokenizer
) -> tuple[pl.Series, int]:
    """Remove every occurrence of the tokens from texts without nulls, and return how many texts changed. Write tokens as the
    tokenizer does, n-grams with a space between words; an `InputError` if there are none, or one that it never produces.

    A code such as INV-38977 is removed whole. Nothing replaces it, because a placeholder would predict the label as well as the
    token did. Spaces and punctuation that would show where it was are removed too; everything else stays."""
    if not tokens:
        raise InputError("no tokens to mask")
    for gram in tokens if isinstance(tokenizer, WordTokenizer) else ():
        for word in gram.split(" "):
            if [found for _, _, found in tokenizer.spans(word)] != [word]:
                raise InputError(
                    f"{gram!r} is not a token: the tokenizer never produces the word {word!r}"
                )
    masked = _masked_texts(texts, tokens, tokenizer, tokenizer.split(texts))
    return masked, int((masked != texts).sum())


def _masked_texts(
    texts: pl.Series, tokens: Iterable[str], tokenizer: Tokenizer, split: pl.Series
) -> pl.Series:
    wanted = {tuple(token.split(" ")) for token in tokens}
    lengths = sorted({len(gram) for gram in wanted})
    first = pl.Series(sorted({gram[0] for gram in wanted}), dtype=pl.String)
    whole = texts.to_list()
    for k in split.list.eval(pl.element().is_in(first.implode())).list.any().arg_true():
        whole[k] = _cut_tokens(whole[k], wanted, lengths, tokenizer)
    return pl.Series(texts.name, whole, dtype=pl.String)


def _cut_tokens(
    text: str, wanted: set[tuple[str, ...]], lengths: list[int], tokenizer: Tokenizer
) -> str:
    """Repeated, because words that a cut brings together may form the n-gram again; each round makes the text shorter."""
    while True:
        spans = tokenizer.spans(text)
        words = tuple(word for _, _, word in spans)
        starts = [
            (i, n) for n in lengths for i in range(len(words) - n + 1) if words[i : i + n] in wanted
        ]
        cut = {k for i, n in starts for k in range(i, i + n)}
        # the numbers that are glued to a cut word go with it: of [INV-38977] neither the number nor the brackets stay
        for i in sorted(cut):
            for step in (1, -1):
                j = i + step
                while (
                    0 <= j < len(spans) and words[i].isalpha() and re.fullmatch(r"\d{2,}", words[j])
                ):
                    left, right = sorted((j - step, j))
                    if text[spans[left][1] : spans[right][0]] not in GLUE:
                        break
                    cut.add(j)
                    j += step
        seam = _Seam(text)
        for i in sorted(cut):
            seam.cut_span(*spans[i][:2])
        shorter = "".join(seam.kept) + text[seam.at :]
        if shorter == text:
            return text
        if _EMPTY_SIGNATURE.search(shorter) and not _EMPTY_SIGNATURE.search(text):
            shorter = _EMPTY_SIGNATURE.sub("", shorter)
        text = shorter


PAIRS = dict(zip("([{<“‘«‹„「『（", ")]}>”’»›“」』）", strict=True))
CLOSING = set(PAIRS.values())
QUOTES = set("\"'`*_~")  # open and close alike
SIGNS, UNITS = set("#@$€£"), set("%°€$£")
BETWEEN = set(",;:|·•&+/–—-，；：、")  # separate two things
ENDING = set(".!?…。！？")
JOINING = set("-–—/&+'’@_=")  # bind two words without a space
DECIMAL = set(".,:")
_EMOTICON = re.compile(r"[:;=]['-]?[)(DPpOo/\\|*3\]\[]")
# the line above a signature that was cut
_EMPTY_SIGNATURE = re.compile(r"\n[ \t]*[-–—_*=~]{2,}\s*\Z")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u309f\u3400-\u9fff\uf900-\ufaff]"
)


class _Seam:
    """Copies a text without the words that are cut, and without double spaces, orphaned marks or empty brackets in their place.

    Only white space and marks next to a cut are dropped, never a letter, a digit, a line break or a symbol such as an emoji. A mark
    is orphaned if its word is gone: brackets or quotes with nothing between, a comma after a comma or at the start, a full stop
    after a full stop, the slash of `7/10` without its 10, the sign of `#word`.
    """

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.kept: list[str] = []  # characters

    def cut_span(self, start: int, end: int) -> None:
        """Go on behind text[start:end], tidily; cuts come in order."""
        self.kept.extend(self.text[self.at : start])
        digits = self.text[start : start + 1].isdigit()
        self.at = max(self.at, end)
        while self._drop_orphaned_mark(digits):
            pass
        self._tidy_space()

    def _drop_orphaned_mark(self, digits: bool) -> bool:
        """Drop one orphaned mark or pair; False where there is none."""
        a, b, left, right = self._neighbours()
        before = self.kept[-2] if len(self.kept) > 1 else ""
        after = self.text[self.at + 1 : self.at + 2]
        if PAIRS.get(left) == right != "" or (left == right and left in QUOTES and not a and not b):
            return self._remove(len(a) + 1, len(b) + 1)
        # marks that touch the cut: signs, units, and what bound it to its neighbours
        if not a and left in SIGNS and not before.isalnum():
            return self._remove(1, 0)
        inside = not a and left.isalnum()
        unit = right in UNITS and not after.isalnum()
        if not b and (unit or (right in JOINING | DECIMAL and after.isalnum() and not inside)):
            return self._remove(0, 1)
        ends = bool(b) or right == "" or right in BETWEEN | ENDING | CLOSING | QUOTES
        bound = left in JOINING or (left in DECIMAL and before.isdigit() and digits)
        if not a and bound and before.isalnum() and ends:
            return self._remove(1, 0)
        # separators and full stops with nothing on one side
        starts = left == "" or left in PAIRS or left in ENDING or "\n" in a
        orphan = (right in BETWEEN and (starts or left in BETWEEN)) or (right in ENDING and starts)
        if orphan and "\n" not in b and not _EMOTICON.match(self.text, self.at + len(b)):
            return self._remove(0, len(b) + 1)
        if left in BETWEEN and "\n" not in a:
            closed = (
                right == "" or right in CLOSING or "\n" in b or (right in ENDING and "\n" not in b)
            )
            return closed and self._remove(len(a) + 1, 0)
        return False

    def _remove(self, left: int, right: int) -> bool:
        del self.kept[len(self.kept) - left :]
        self.at += right
        return True

    def _neighbours(self) -> tuple[str, str, str, str]:
        """White space on either side, and the mark behind it."""
        i, j = len(self.kept), self.at
        while i and self.kept[i - 1].isspace():
            i -= 1
        while j < len(self.text) and self.text[j].isspace():
            j += 1
        return (
            "".join(self.kept[i:]),
            self.text[self.at : j],
            self.kept[i - 1] if i else "",
            self.text[j : j + 1],
        )

    def _tidy_space(self) -> None:
        """One white space where there were two, none before a mark or at an end; line breaks stay."""
        a, b, left, right = self._neighbours()
        if not left or not right:
            between = b if left else a
        elif "\n" in a or "\n" in b:
            between = a if a.count("\n") >= b.count("\n") else b
        elif not a and not b:
            apart = (
                left.isalnum()
                and right.isalnum()
                and not (_UNSPACED.match(left) or _UNSPACED.match(right))
            )
            between = " " * apart  # two words would become one
        elif (
            not b
            and right in ENDING | CLOSING | set(",;:")
            and not _EMOTICON.match(self.text, self.at)
        ):
            between = ""
        else:
            between = "" if not a and left in PAIRS else a or b
        self._remove(len(a), len(b))
        self.kept.extend(between)


def _remnants(texts: pl.Series, changed: Ints) -> list[str]:
    """Warnings of what a cut leaves readable: how half of the changed texts begin or end, in up to three pieces, digits as 0."""
    if len(changed) < 10 or len(changed) == len(texts):
        return []
    pieces = [re.findall(r"\w+|[^\w\s]", re.sub(r"\d+", "0", text.lower())) for text in texts]
    out = []
    for verb in ("begin with", "end in"):
        for size in (3, 2, 1):
            ends = [tuple(p[:size] if verb == "begin with" else p[-size:]) for p in pieces]
            end, n = Counter(ends[i] for i in changed.tolist()).most_common(1)[0]
            every = ends.count(end)
            if end and n >= 0.5 * len(changed) and n >= 0.9 * every:
                number = " (0 stands for any number)" if any("0" in piece for piece in end) else ""
                out.append(
                    f"masking leaves a trace: {n:,} of the {every:,} texts that {verb} {for_display(' '.join(end), 60)!r}{number} "
                    "were changed, so the rest of the phrase still reveals them; remove the whole phrase, in all its variants"
                )
                break
    return out


class _Document(TypedDict):
    part: Literal["train", "test"]
    row: Annotated[int, msgspec.Meta(ge=1)]
    decision: Literal["keep", "wrong label"]


class _Decisions(msgspec.Struct):
    tokensieve: Literal["decisions"]
    version: Literal[1]
    tokens: dict[str, Literal["keep", "mask"]] = {}
    documents: list[_Document] = []


def read_decisions(path: Path) -> tuple[list[str], list[str], dict[str, frozenset[int]]]:
    """What someone decided about an audit, as the page exports it: tokens to mask, tokens to keep, and part ("train" or "test") →
    rows whose label is wrong, counted from 1 in their source; an `InputError` for another file."""
    name = f"--decisions {path.name!r}"
    try:
        found = msgspec.convert(parsed(read_regular(path)), _Decisions)
    except InputError:
        raise
    except OSError as problem:
        raise InputError(f"cannot read {name}: {problem.strerror or problem}") from None
    except ValueError as problem:  # also what msgspec says
        raise InputError(
            f"{name} is not valid ({str(problem)[:200]}); export it from the audit's page again"
        ) from None
    wrong = [
        (one["part"], one["row"]) for one in found.documents if one["decision"] == "wrong label"
    ]
    masked, kept = (
        [token for token, decided in found.tokens.items() if decided == one]
        for one in ("mask", "keep")
    )
    return (
        masked,
        kept,
        {part: frozenset(row for side, row in wrong if side == part) for part in ("train", "test")},
    )
