"""A classifier in ONNX format, read by onnxruntime: logits alone, so that effects are measured by leaving words out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tokensieve.diagnose.subjects.windows import Input
from tokensieve.errors import InputError
from tokensieve.text.counts import Floats


class OnnxClassifier:
    """A sequence classifier in a .onnx file.

    Args:
        path: the file; its inputs are input_ids and attention_mask (token_type_ids if it has them), its first output the logits.
        tokenizer: its fast tokenizer.
        names: of its outputs, in order.
        pad: piece id that pads.

    Raises:
        InputError: onnxruntime is not installed, or the file is no such model.
    """

    read_pieces = True
    layers, differentiable = 0, False

    def __init__(self, path: str | Path, tokenizer: Any, names: Sequence[str], pad: int = 0) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise InputError("reading a .onnx file needs onnxruntime: pip install onnxruntime") from None
        try:
            self._session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:  # the library raises many kinds of its own
            raise InputError(
                f"{str(path)!r} cannot be read as an ONNX model: {' '.join(str(error).split())[:200]}"
            ) from None
        self._given = {one.name for one in self._session.get_inputs()}
        if "input_ids" not in self._given:
            raise InputError(
                f"{str(path)!r} takes {', '.join(sorted(self._given))}, not input_ids: it reads no word pieces"
            )
        self.names, self.tokenizer, self._pad = tuple(names), tokenizer, pad
        self.config = SimpleNamespace(pad_token_id=pad)

    def named_modules(self) -> list[Any]:
        """None are known."""
        return []

    def logits(self, batch: Sequence[Input]) -> Floats:
        """Logits, shape (B, M)."""
        width = max(len(one.ids) for one in batch)
        ids = np.full((len(batch), width), self._pad, dtype=np.int64)
        mask, segments = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(batch):
            ids[row, : len(one.ids)], mask[row, : len(one.ids)] = one.ids, 1
            if one.segments is not None:
                segments[row, : len(one.ids)] = one.segments
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        out = self._session.run(None, {name: x for name, x in given.items() if name in self._given})[0]
        z = np.asarray(out, dtype=np.float64)
        if z.shape != (len(batch), len(self.names)):
            raise InputError(
                f"the ONNX model gives {z.shape} for {len(batch)} inputs and {len(self.names)} names of outputs"
            )
        return z
