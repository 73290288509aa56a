"""Texts without certain tokens: what remains is what a model could learn if these had not been there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.files import parsed, read_regular
from tokensieve.text.counts import Ints
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer

GLUE = ("-", "_", "/", "#", ":")
_NUMBER = re.compile(r"\d{2,}")


def mask_fields(
    texts: Mapping[str, pl.Series], tokens: Sequence[str], tokenizer: Tokenizer, alike: bool = False
) -> tuple[dict[str, pl.Series], int]:
    """`mask_texts` for the columns of one table, each with the tokens of its own field where there are several.

    Args:
        texts: column → n texts, String, null where a row has none.
        tokens: token types; with several columns each word is written `column:word`.
        tokenizer: the one that the tokens come from, or that of one field.
        alike: the columns are no fields but the two sides of pairs, and every token is cut from both.

    Returns:
        The texts, and how many rows were changed.

    Raises:
        InputError: no token, one that the tokenizer would never write, or one of no field.
    """
    base = tokenizer.base if isinstance(tokenizer, FieldTokenizer) else tokenizer
    own = {column: list(tokens) for column in texts}
    if not alike and (len(texts) > 1 or isinstance(tokenizer, FieldTokenizer)):
        fields = FieldTokenizer(base, tuple(texts))  # type: ignore[arg-type]
        own = {column: [] for column in texts}
        for token in tokens:
            field = fields.field_of(token)
            if not field:
                raise InputError(f"{token!r} is of no field: write {', '.join(f'{name}:TOKEN' for name in texts)}")
            own[field].append(" ".join(word.removeprefix(field + ":") for word in token.split(" ")))
    masked, changed = {}, np.zeros(max(map(len, texts.values()), default=0), dtype=bool)
    for column, mine in own.items():
        masked[column] = texts[column]
        if mine or not tokens:
            held = texts[column].is_not_null()
            masked[column] = (
                texts[column].clone().scatter(held.arg_true(), mask_texts(texts[column].filter(held), mine, base)[0])
            )
        changed |= (masked[column] != texts[column]).fill_null(False).to_numpy()
    return masked, int(changed.sum())


def mask_texts(texts: pl.Series, tokens: Sequence[str], tokenizer: Tokenizer) -> tuple[pl.Series, int]:
    """Cut every occurrence of the tokens out of the texts, n-grams as runs of words, until none is left.

    Of a code such as INV-38977 the number goes with its letters.

    The place stays empty: a word put there would carry the label as well as the one that was cut. Around it nothing is left that
    shows where it was (`tokensieve.auditing.masking`); all else stays as it is.

    Args:
        texts: String, without nulls.
        tokens: token types as the tokenizer writes them, words of an n-gram joined by one space.
        tokenizer: the one that the tokens come from.

    Returns:
        The texts, and how many of them were changed.

    Raises:
        InputError: no token, or one that the tokenizer would never write.
    """
    if not tokens:
        raise InputError("no token to mask: name one with --token, or an audit that found some with --audit")
    wanted = {tuple(token.split(" ")) for token in tokens}
    for gram in sorted(wanted) if isinstance(tokenizer, WordTokenizer) else ():
        for word in gram:
            if [found for _, _, found in tokenizer.spans(word)] != [word]:
                raise InputError(f"{' '.join(gram)!r} is no token: the tokenizer never writes the word {word!r}")
    lengths = sorted({len(gram) for gram in wanted})
    first = pl.Series(sorted({gram[0] for gram in wanted}))
    near = tokenizer.split(texts).list.eval(pl.element().is_in(first.implode())).list.any()
    whole = texts.to_list()
    changed = 0
    for k in near.arg_true():
        text = _without(whole[k], wanted, lengths, tokenizer)
        changed += text != whole[k]
        whole[k] = text
    return pl.Series(texts.name, whole, dtype=pl.String), changed


def _without(text: str, wanted: set[tuple[str, ...]], lengths: list[int], tokenizer: Tokenizer) -> str:
    """Cutting brings words together that may form the n-gram anew, so it is repeated; each round makes the text shorter."""
    while True:
        spans = tokenizer.spans(text)
        words = tuple(word for _, _, word in spans)
        cut = {
            i
            for n in lengths
            for start in range(len(words) - n + 1)
            if words[start : start + n] in wanted
            for i in range(start, start + n)
        }
        if not cut:
            return text
        cut = _whole_codes(text, spans, cut)
        seam = Seam(text)
        for i in sorted(cut):
            seam.cut(*spans[i][:2])
        shorter = seam.finish()
        if shorter == text:
            return text
        text = shorter


def _whole_codes(text: str, spans: list[tuple[int, int, str]], cut: set[int]) -> set[int]:
    """The words to cut, with the numbers that are glued to them: of [INV-38977] neither the number nor the brackets stay."""
    out = set(cut)
    for i in sorted(cut):
        for step in (1, -1):
            j = i + step
            while 0 <= j < len(spans) and spans[i][2].isalpha():
                between = text[spans[j - 1][1] : spans[j][0]] if step > 0 else text[spans[j][1] : spans[j + 1][0]]
                if between not in GLUE or not _NUMBER.fullmatch(spans[j][2]):
                    break
                out.add(j)
                j += step
    return out


PAIRS = dict(zip("([{<“‘«‹„「『（", ")]}>”’»›“」』）", strict=True))
CLOSING = set(PAIRS.values())
QUOTES = set("\"'`*_~")  # open and close alike
SIGNS, UNITS = set("#@$€£"), set("%°€$£")
BETWEEN = set(",;:|·•&+/–—-，；：、")  # separate two things
ENDING = set(".!?…。！？")
JOINING = set("-–—/&+'’@_=")  # bind two words without a space
DECIMAL = set(".,:")
_EMOTICON = re.compile(r"[:;=]['-]?[)(DPpOo/\\|*3\]\[]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u309f\u3400-\u9fff\uf900-\ufaff]")


class Seam:
    """A text while it is written again: what stands so far, and where the rest begins."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.kept: list[str] = []  # characters

    def cut(self, start: int, end: int) -> None:
        """Go on behind text[start:end], tidily; cuts come in order."""
        self.kept.extend(self.text[self.at : start])
        digits = self.text[start : start + 1].isdigit()
        self.at = max(self.at, end)
        while self._drop(digits):
            pass
        self._space()

    def finish(self) -> str:
        """The whole text."""
        return "".join(self.kept) + self.text[self.at :]

    def _drop(self, digits: bool) -> bool:
        """Drop one orphaned mark or pair; False where there is none."""
        a, b = self._sides()
        left = self.kept[-1 - len(a)] if len(a) < len(self.kept) else ""
        right = self.text[self.at + len(b) : self.at + len(b) + 1]
        if PAIRS.get(left) == right != "" or (left == right and left in QUOTES and not a and not b):
            return self._remove(len(a) + 1, len(b) + 1)
        return self._glued(left, right, a, b, digits) or self._orphaned(left, right, a, b)

    def _glued(self, left: str, right: str, a: str, b: str, digits: bool) -> bool:
        """Marks that touch the cut: signs, units, and what bound it to its neighbours."""
        before = self.kept[-2] if len(self.kept) > 1 else ""
        after = self.text[self.at + 1 : self.at + 2]
        if not a and left in SIGNS and not before.isalnum():
            return self._remove(1, 0)
        if not b and right in UNITS and right and not after.isalnum():
            return self._remove(0, 1)
        inside = not a and left.isalnum()
        if not b and right in JOINING | DECIMAL and right and after.isalnum() and not inside:
            return self._remove(0, 1)
        ends = bool(b) or right == "" or right in BETWEEN | ENDING | CLOSING | QUOTES
        bound = left in JOINING or (left in DECIMAL and before.isdigit() and digits)
        if not a and left and bound and before.isalnum() and ends:
            return self._remove(1, 0)
        return False

    def _orphaned(self, left: str, right: str, a: str, b: str) -> bool:
        """Separators and full stops with nothing on one side."""
        starts = left == "" or left in PAIRS or left in ENDING or "\n" in a
        if right and "\n" not in b and not _EMOTICON.match(self.text, self.at + len(b)):
            if right in BETWEEN and (starts or left in BETWEEN):
                return self._remove(0, len(b) + 1)
            if right in ENDING and starts:
                return self._remove(0, len(b) + 1)
        if left and left in BETWEEN and "\n" not in a:
            closed = right == "" or right in CLOSING or "\n" in b or (right in ENDING and "\n" not in b)
            return closed and self._remove(len(a) + 1, 0)
        return False

    def _remove(self, left: int, right: int) -> bool:
        del self.kept[len(self.kept) - left :]
        self.at += right
        return True

    def _sides(self) -> tuple[str, str]:
        """White space on either side."""
        i = len(self.kept)
        while i and self.kept[i - 1].isspace():
            i -= 1
        j = self.at
        while j < len(self.text) and self.text[j].isspace():
            j += 1
        return "".join(self.kept[i:]), self.text[self.at : j]

    def _space(self) -> None:
        """One white space where there were two, none before a mark or at an end; line breaks stay."""
        a, b = self._sides()
        left = self.kept[-1 - len(a)] if len(a) < len(self.kept) else ""
        right = self.text[self.at + len(b) : self.at + len(b) + 1]
        if not left or not right:
            between = b if left else a
        elif "\n" in a or "\n" in b:
            between = a if a.count("\n") >= b.count("\n") else b
        elif not a and not b:
            apart = left.isalnum() and right.isalnum() and not (_UNSPACED.match(left) or _UNSPACED.match(right))
            between = " " * apart  # two words would become one
        elif not b and right in ENDING | CLOSING | set(",;:") and not _EMOTICON.match(self.text, self.at):
            between = ""
        else:
            between = "" if not a and left in PAIRS else a or b
        self._remove(len(a), len(b))
        self.kept.extend(between)


WORDS = 3  # at most, at either end
LEAST, MOSTLY, SURE = (
    10,
    0.5,
    0.9,
)  # changed texts, the fraction of them that are alike, and of the texts alike that were changed
_DIGITS, _PIECES = re.compile(r"\d+"), re.compile(r"\w+|[^\w\s]")


def remnants(texts: pl.Series, changed: Ints) -> list[tuple[str, str, Share]]:
    """How the changed texts begin or end that others do not: ("start" or "end", the pieces, fraction of such texts that were
    changed), the longest that most share; digits are 0.

    Args:
        texts: after the cut, String without nulls.
        changed: places of the texts that were changed.
    """
    if len(changed) < LEAST or len(changed) == len(texts):
        return []
    pieces = [_PIECES.findall(_DIGITS.sub("0", text.lower())) for text in texts]
    mask = np.zeros(len(texts), dtype=bool)
    mask[changed] = True
    out = []
    for side in ("start", "end"):
        for size in range(WORDS, 0, -1):
            ends = [tuple(p[:size] if side == "start" else p[-size:]) for p in pieces]
            common = Counter(ends[i] for i in changed.tolist()).most_common(1)
            end, n = common[0]
            every = sum(1 for one in ends if one == end)
            if end and n >= MOSTLY * len(changed) and n >= SURE * every:
                out.append((side, " ".join(end), Share.count(n, every)))
                break
    return out


def warning(side: str, pieces: str, share: Share) -> str:
    """The sentence about one of them."""
    verb = "begin with" if side == "start" else "end in"
    return (
        f"the mark is still readable: {share.counted} texts that {verb} {shown(pieces, 60)!r} (0 stands for any number) are among "
        "those that were changed; remove this too, or audit the copy before you use it"
    )


VERSION = 1
PARTS = ("train", "test")


class Decision(StrEnum):
    """The values that a decisions file may hold; of a document KEEP or WRONG, of a token KEEP or MASK."""

    KEEP = "keep"
    MASK = "mask"
    WRONG = "wrong label"


@dataclass(frozen=True)
class Decisions:
    """Decisions on tokens and documents.

    Attributes:
        mask, keep: tokens, in the order of the file.
        wrong: part ("train" or "test") → rows whose label is wrong, counted from 1 in their source.
    """

    mask: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    wrong: dict[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Decisions:
        """Read `{"tokensieve": "decisions", "version": 1, "tokens": {token: "keep" | "mask"}, "documents": [{"part": "train" |
        "test", "row": N, "decision": "keep" | "wrong label"}]}`.

        Raises:
            InputError: the file cannot be read, or holds something else.
        """
        name = f"--decisions {path.name!r}"
        try:
            content = parsed(read_regular(path))
        except OSError as problem:
            raise InputError(f"cannot read {name}: {problem.strerror or problem}") from None
        except (ValueError, RecursionError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(
                f"{name} is no JSON ({str(problem)[:100]}): export it from the audit's page again"
            ) from None
        if not isinstance(content, dict) or content.get("tokensieve") != "decisions":
            raise InputError(f"{name} holds no decisions: export them from the audit's page")
        if content.get("version") != VERSION or isinstance(content["version"], bool):
            raise InputError(f"{name} is of version {content.get('version')!s:.20}, this tokensieve reads {VERSION}")
        tokens, documents = content.get("tokens", {}), content.get("documents", [])
        if not isinstance(tokens, dict) or not isinstance(documents, list):
            raise InputError(f"{name}: tokens must be an object and documents a list")
        for token, decided in tokens.items():
            if decided not in (Decision.KEEP, Decision.MASK):
                raise InputError(f"{name}: the token {token!r:.60} is to be kept or masked, not {decided!r:.40}")
        wrong: dict[str, set[int]] = {part: set() for part in PARTS}
        for i, one in enumerate(documents, 1):
            part, row = _document(f"{name}: document {i}", one)
            if one["decision"] == Decision.WRONG:
                wrong[part].add(row)
        of = {d: tuple(t for t, decided in tokens.items() if decided == d) for d in (Decision.MASK, Decision.KEEP)}
        return cls(of[Decision.MASK], of[Decision.KEEP], {part: frozenset(rows) for part, rows in wrong.items()})


def _document(where: str, one: Any) -> tuple[str, int]:
    if not isinstance(one, dict) or one.get("part") not in PARTS:
        raise InputError(f"{where} needs a part, train or test")
    if type(one.get("row")) is not int or one["row"] < 1:
        raise InputError(f"{where} needs a row, a whole number from 1")
    if one.get("decision") not in (Decision.KEEP, Decision.WRONG):
        raise InputError(f"{where}: the decision is keep or wrong label, not {one.get('decision')!r:.40}")
    return one["part"], one["row"]
