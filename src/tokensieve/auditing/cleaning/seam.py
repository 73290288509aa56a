"""What is left around a cut: the two sides joined without debris (double spaces, orphaned punctuation, empty brackets).

Only white space and marks that touch the cut are dropped, never a letter, a digit or a symbol such as an emoji. A mark is orphaned
where the word that it belonged to is gone: a pair of brackets or quotes with nothing between, a comma after a comma or at the
start, a full stop after a full stop, the slash of `7/10` without its 10, the sign of `#word`. Line breaks stay.
"""

from __future__ import annotations

import re

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
