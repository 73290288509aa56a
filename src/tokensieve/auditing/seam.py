"""Closing a text over words that are cut out of it, so that nothing shows where they were."""

from __future__ import annotations

import re
from dataclasses import dataclass

CLOSING_OF = dict(zip("([{<“‘«‹„「『（", ")]}>”’»›“」』）", strict=True))
CLOSING = set(CLOSING_OF.values())
QUOTES = set("\"'`*_~")  # open and close alike
SIGNS = set("#@$€£")  # belong to the word behind them
UNITS = set("%°€$£")  # belong to the number before them
BETWEEN = set(",;:|·•&+/–—-，；：、")  # separate two things
ENDING = set(".!?…。！？")
AFTER_WORD = ENDING | CLOSING | set(",;:")  # no space before them
JOINING = set("-–—/&+'’@_=")  # bind two words without a space
DECIMAL = set(".,:")
_EMOTICON = re.compile(r"[:;=]['-]?[)(DPpOo/\\|*3\]\[]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u309f\u3400-\u9fff\uf900-\ufaff]"
)


@dataclass(frozen=True)
class _Neighbours:
    """What stands on either side of a cut.

    Attributes:
        space_before, space_after: white space next to the cut.
        left, right: the character beyond that; "" at an end of the text.
    """

    space_before: str
    space_after: str
    left: str
    right: str

    @property
    def touches_left(self) -> bool:
        """Whether no white space is between the cut and the character on its left."""
        return not self.space_before

    @property
    def touches_right(self) -> bool:
        """Whether no white space is between the cut and the character on its right."""
        return not self.space_after


class Seam:
    """Copies a text without the words that are cut, and without double spaces, orphaned marks or
    empty brackets in their place.

    Only white space and marks next to a cut are dropped, never a letter, a digit, a line break or a
    symbol such as an emoji. A mark is orphaned if its word is gone: brackets or quotes with nothing
    between, a comma after a comma or at the start, a full stop after a full stop, the slash of
    `7/10` without its 10, the sign of `#word`.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0  # everything before it is copied or cut
        self._kept: list[str] = []  # characters

    def cut(self, start: int, end: int) -> None:
        """Leave out text[start:end]; cuts come in order."""
        self._kept.extend(self._text[self._position : start])
        is_number = self._text[start : start + 1].isdigit()
        self._position = max(self._position, end)
        while self._drop_orphaned_mark(is_number):
            pass
        self._tidy_space()

    def finish(self) -> str:
        """The text without what was cut."""
        return "".join(self._kept) + self._text[self._position :]

    def _neighbours(self) -> _Neighbours:
        """The white space on both sides of the last cut, and the characters beyond it."""
        left = len(self._kept)
        while left and self._kept[left - 1].isspace():
            left -= 1
        right = self._position
        while right < len(self._text) and self._text[right].isspace():
            right += 1
        return _Neighbours(
            space_before="".join(self._kept[left:]),
            space_after=self._text[self._position : right],
            left=self._kept[left - 1] if left else "",
            right=self._text[right : right + 1],
        )

    def _drop_orphaned_mark(self, is_number: bool) -> bool:
        """Drop one orphaned mark or pair of marks; False where there is none."""
        beside = self._neighbours()
        n_before = len(beside.space_before)
        n_after = len(beside.space_after)
        if _is_empty_pair(beside):
            return self._remove(n_before + 1, n_after + 1)
        if self._is_orphan_of_word(beside):
            return self._remove(1, 0)
        if self._is_orphan_on_right(beside):
            return self._remove(0, 1)
        if self._is_bond_on_left(beside, is_number):
            return self._remove(1, 0)
        is_emoticon = _EMOTICON.match(self._text, self._position + n_after) is not None
        if _is_loose_on_right(beside) and not is_emoticon:
            return self._remove(0, n_after + 1)
        if _is_loose_on_left(beside):
            return self._remove(n_before + 1, 0)
        return False

    def _is_orphan_of_word(self, beside: _Neighbours) -> bool:
        """The sign of a word that is gone: # or @ with nothing before it."""
        before = self._kept[-2] if len(self._kept) > 1 else ""
        return beside.touches_left and beside.left in SIGNS and not before.isalnum()

    def _is_orphan_on_right(self, beside: _Neighbours) -> bool:
        """A unit of a number that is gone, or what bound the cut to the word on its right."""
        if not beside.touches_right:
            return False
        after = self._text[self._position + 1 : self._position + 2]
        if beside.right in UNITS and not after.isalnum():
            return True
        is_inside_word = beside.touches_left and beside.left.isalnum()
        return beside.right in JOINING | DECIMAL and after.isalnum() and not is_inside_word

    def _is_bond_on_left(self, beside: _Neighbours, is_number: bool) -> bool:
        """Whether a mark bound the removed text to the word on its left, where nothing follows on
        the right."""
        before = self._kept[-2] if len(self._kept) > 1 else ""
        is_decimal = beside.left in DECIMAL and before.isdigit() and is_number
        ends_here = (
            bool(beside.space_after)
            or beside.right == ""
            or beside.right in BETWEEN | ENDING | CLOSING | QUOTES
        )
        is_bond = beside.left in JOINING or is_decimal
        return beside.touches_left and is_bond and before.isalnum() and ends_here

    def _remove(self, n_left: int, n_right: int) -> bool:
        """Drop characters on both sides of the cut; return True, as something was dropped."""
        del self._kept[len(self._kept) - n_left :]
        self._position += n_right
        return True

    def _tidy_space(self) -> None:
        """Leave one white space where there were two, and none before a mark or at an end."""
        beside = self._neighbours()
        is_emoticon = _EMOTICON.match(self._text, self._position) is not None
        between = _space_between(beside, is_emoticon)
        self._remove(len(beside.space_before), len(beside.space_after))
        self._kept.extend(between)


def _is_empty_pair(beside: _Neighbours) -> bool:
    """Brackets or quotes with nothing between."""
    if beside.right != "" and CLOSING_OF.get(beside.left) == beside.right:
        return True
    is_quoted = beside.left == beside.right and beside.left in QUOTES
    return is_quoted and beside.touches_left and beside.touches_right


def _is_loose_on_right(beside: _Neighbours) -> bool:
    """A separator or a full stop on the right without anything that it could separate or end."""
    if "\n" in beside.space_after:
        return False
    is_at_start = (
        beside.left == ""
        or beside.left in CLOSING_OF
        or beside.left in ENDING
        or "\n" in beside.space_before
    )
    if beside.right in BETWEEN:
        return is_at_start or beside.left in BETWEEN
    return beside.right in ENDING and is_at_start


def _is_loose_on_left(beside: _Neighbours) -> bool:
    """A separator on the left with nothing on its right."""
    if beside.left not in BETWEEN or "\n" in beside.space_before:
        return False
    if beside.right == "" or beside.right in CLOSING or "\n" in beside.space_after:
        return True
    return beside.right in ENDING


def _space_between(beside: _Neighbours, is_emoticon: bool) -> str:
    """The white space that stays in the place of a cut."""
    if not beside.left:
        return beside.space_before
    if not beside.right:
        return beside.space_after
    n_breaks_before = beside.space_before.count("\n")
    n_breaks_after = beside.space_after.count("\n")
    if max(n_breaks_before, n_breaks_after) > 0:
        return beside.space_before if n_breaks_before >= n_breaks_after else beside.space_after
    if beside.touches_left and beside.touches_right:
        return " " if _would_join_words(beside.left, beside.right) else ""
    is_mark = beside.right in AFTER_WORD and not is_emoticon
    if beside.touches_right and is_mark:
        return ""
    if beside.touches_left and beside.left in CLOSING_OF:
        return ""
    return beside.space_before or beside.space_after


def _would_join_words(left: str, right: str) -> bool:
    """Whether two characters without a space would make one word of two."""
    are_of_words = left.isalnum() and right.isalnum()
    is_unspaced = _UNSPACED.match(left) or _UNSPACED.match(right)
    return are_of_words and not is_unspaced
