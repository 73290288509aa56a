"""A sequence classifier in a .onnx file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.diagnose.subjects.frame import Input
from tokensieve.errors import InputError

N_THREADS = 2  # of one operation; as many on every machine, so that sums are rounded alike


class OnnxClassifier:
    """A sequence classifier in a .onnx file.

    Its inputs are input_ids and attention_mask (token_type_ids if it has them), its first output
    the logits. There are no gradients: effects are measured by removing words.

    Args:
        path: the file.
        tokenizer: that of the model.
        names: the outputs' names in order.
        pad: the piece id that pads.

    Raises:
        InputError: onnxruntime is missing, or the file holds another model.
    """

    read_pieces = True
    layers = 0
    differentiable = False

    def __init__(
        self, path: str | Path, tokenizer: Any, names: Sequence[str], pad: int = 0
    ) -> None:
        self._session = _session(path)
        self._inputs = {item.name for item in self._session.get_inputs()}
        if "input_ids" not in self._inputs:
            takes = ", ".join(sorted(self._inputs))
            raise InputError(
                f"{str(path)!r} takes {takes}, not input_ids, so it cannot read token ids"
            )
        self.names = tuple(names)
        self.tokenizer = tokenizer
        self.config = SimpleNamespace(pad_token_id=pad)

    def logits(self, batch: Sequence[Input]) -> Floats:
        """Logits, shape (B, M)."""
        shape = len(batch), max(len(item.ids) for item in batch)
        ids = np.full(shape, self.config.pad_token_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        segments = np.zeros_like(ids)
        for row, item in enumerate(batch):
            n = len(item.ids)
            ids[row, :n] = item.ids
            mask[row, :n] = 1
            if item.segments is not None:
                segments[row, :n] = item.segments
        arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        inputs = {name: array for name, array in arrays.items() if name in self._inputs}
        logits = np.asarray(self._session.run(None, inputs)[0], dtype=np.float64)
        if logits.shape != (len(batch), len(self.names)):
            raise InputError(
                f"the ONNX model returns {logits.shape} for {len(batch)} inputs "
                f"but has {len(self.names)} output names"
            )
        return logits


def _session(path: str | Path) -> Any:
    """Open a .onnx file."""
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = N_THREADS
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except ImportError:
        raise InputError(
            "reading a .onnx file needs onnxruntime: pip install onnxruntime"
        ) from None
    except Exception as error:  # the library raises many kinds of its own
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{str(path)!r} cannot be read as an ONNX model: {why}") from None
