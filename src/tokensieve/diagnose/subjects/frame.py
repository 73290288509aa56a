"""One input of a model: its piece ids, and the special tokens that stand around a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokensieve.errors import InputError

Pieces = NDArray[np.int32]
NO_LIMIT = 10**6  # a tokenizer without a limit names a larger number than any model has
MIN_TEXT_PIECES = 2


class Input(NamedTuple):
    """One input: piece ids, special tokens included, and the segment of each, both (T,).

    `segments` is None if the model has no segments.
    """

    ids: Pieces
    segments: Pieces | None = None


@dataclass(frozen=True)
class Frame:
    """The special tokens around a text (`before`, `after`), and between the two of a pair.

    Attributes:
        before, after: ids of the tokens at either end.
        middle: ids of those between two texts; None for single texts.
        segmented: whether the model is given the segment of each piece.
        prompted: whether the first text is a prompt, read but never measured.
    """

    before: list[int]
    after: list[int]
    middle: list[int] | None = None
    segmented: bool = False
    prompted: bool = False

    @classmethod
    def of(cls, tokenizer: Any, paired: bool = False) -> Frame:
        """Find the special tokens around a text, or around and between two.

        Raises:
            InputError: the tokenizer returns no character offsets.
        """
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"the tokenizer {type(tokenizer).__name__} returns no character offsets: "
                "save a fast one (tokenizer.json) beside the model"
            )
        texts = ["a", "a"] if paired else ["a"]
        probe = tokenizer(*texts, return_special_tokens_mask=True, return_token_type_ids=paired)
        ids = list(probe["input_ids"])
        text = [i for i, is_special in enumerate(probe["special_tokens_mask"]) if not is_special]
        first = text[0] if text else len(ids)
        end = text[-1] + 1 if text else len(ids)
        if not paired:
            return cls(ids[:first], ids[end:])
        n_single = len(tokenizer("a", add_special_tokens=False)["input_ids"])
        middle = ids[first + n_single : end - n_single]
        segmented = "token_type_ids" in tokenizer.model_input_names
        return cls(ids[:first], ids[end:], middle, segmented)

    @property
    def size(self) -> int:
        """Number of special tokens of one input."""
        return len(self.before) + len(self.after) + len(self.middle or [])

    def limit(self, model: Any, tokenizer: Any, asked: int | None) -> int | None:
        """How many pieces one input may have, special tokens included; None if nothing limits them.

        The smallest of what was asked, the tokenizer's `model_max_length` and the model's
        `max_position_embeddings` (without a padding row, behind which RoBERTa counts).

        Raises:
            InputError: fewer than two are left for text.
        """
        limits = [asked] if asked is not None else []
        if tokenizer.model_max_length < NO_LIMIT:
            limits.append(tokenizer.model_max_length)
        positions = getattr(model.config, "max_position_embeddings", None)
        if isinstance(positions, int) and positions > 0:
            limits.append(positions - _rows_before_text(model))
        limit = min(limits, default=None)
        if limit is not None and limit < self.size + MIN_TEXT_PIECES:
            raise InputError(
                f"inputs of {limit} tokens leave no room for text after {self.size} special "
                "tokens: use a larger --max-length"
            )
        return limit

    def around(self, inner: Sequence[int]) -> Input:
        """Make some pieces an input of their own."""
        middle = self.middle or []
        sides = [*middle, *inner] if self.prompted else [*inner, *middle]
        ids = [*self.before, *sides, *self.after]
        segments = np.zeros(len(ids), dtype=np.int32) if self.segmented else None
        return Input(np.array(ids, dtype=np.int32), segments)


def _rows_before_text(model: Any) -> int:
    """Rows of the table of positions that no piece of text uses."""
    modules: list[tuple[str, object]] = getattr(model, "named_modules", list)()
    padding_rows = [
        getattr(table, "padding_idx", None)
        for name, table in modules
        if name.endswith("position_embeddings")
    ]
    return max((row + 1 for row in padding_rows if row is not None), default=0)
