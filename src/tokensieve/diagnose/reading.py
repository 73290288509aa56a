"""One transformer, read batch by batch: its answer, the attention from where it reads, and first-order effects.

With logits z of the classes in the data's order, the **answer** is z_1 − z_0 for two classes (H = 1 head), z_k − mean_j z_j
for K classes (H = K heads).

**Attention**: A_l, shape (T, T), is layer l's attention averaged over its heads, rows attend to columns. From reading position
c a piece receives A_l[c, i]; rolled out over the layers it receives (Ā_L … Ā_1)[c, i] with Ā_l = (A_l + I)/2, the half that
the residual connection carries (Abnar & Zuidema, ACL 2020, section 3).

**First-order effect** of piece i with input embedding e_i: e_iᵀ ∂answer/∂e_i, the linear estimate of what the answer would lose
if the embedding were zero (gradient × input; Shrikumar et al., 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints

FIRST, LAST, MEAN = "first", "last", "mean"
Batch = Sequence[NDArray[np.int32]]


@dataclass(frozen=True)
class Look:
    """What one batch of B inputs of at most T pieces gives.

    Attributes:
        answers: shape (B, H).
        attention: received from the reading position, each layer and last the rollout, shape (L+1, B, T); padding receives
            zero. None where the model gives no attention.
        effects: first-order effect of each piece, shape (B, T, H).
    """

    answers: Floats
    attention: NDArray[np.float32] | None
    effects: NDArray[np.float32]


class Reader:
    """A sequence classifier in evaluation mode on one device.

    Where it reads its answer is found, not assumed: by which positions of the last hidden states have a gradient.

    Args:
        model: a Hugging Face model for sequence classification, as `prepared` leaves it.
        order: the model's output for each class of the data, shape (K,).
        frame: ids that stand before and after the pieces of a text.

    Attributes:
        reads: FIRST, LAST or MEAN.
        layers: L, or 0 where the model gives no attention.
    """

    def __init__(self, model: Any, order: Sequence[int], frame: tuple[list[int], list[int]]) -> None:
        self._model, self._order = model, torch.as_tensor(list(order))
        self._device = next(model.parameters()).device
        self._embeddings: list[torch.Tensor] = []
        self.reads, self._offset, self.layers = self._probe(frame)

    @property
    def heads(self) -> int:
        """H."""
        return 1 if len(self._order) == 2 else len(self._order)

    def answers(self, batch: Batch) -> Floats:
        """Answers alone, shape (B, H)."""
        with _memory(batch), torch.inference_mode():
            return _numbers(self._head(self._model(**self._inputs(batch)).logits))

    def look(self, batch: Batch) -> Look:
        """Answers, attention and first-order effects in one forward pass, and one backward pass a head."""
        with _memory(batch), torch.enable_grad(), self._embedded():
            out = self._model(**self._inputs(batch), output_attentions=self.layers > 0)
            answers = self._head(out.logits)
            (e,) = self._embeddings
            effects = []
            for h in range(self.heads):
                (gradient,) = torch.autograd.grad(answers[:, h].sum(), e, retain_graph=h + 1 < self.heads)
                effects.append((gradient * e.detach()).sum(-1))
            attention = self._received(out.attentions, [len(ids) for ids in batch]) if self.layers else None
        return Look(_numbers(answers), attention, torch.stack(effects, dim=-1).float().cpu().numpy())

    def _inputs(self, batch: Batch) -> dict[str, Any]:
        """Padded on the right, whatever the tokenizer would do."""
        lengths = torch.tensor([len(ids) for ids in batch])
        ids = torch.full((len(batch), int(lengths.max())), int(self._model.config.pad_token_id))
        for row, one in enumerate(batch):
            ids[row, : len(one)] = torch.from_numpy(one.astype(np.int64))
        mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
        return {"input_ids": ids.to(self._device), "attention_mask": mask.to(self._device)}

    def _head(self, logits: torch.Tensor) -> torch.Tensor:
        z = logits.float()[:, self._order.to(logits.device)]
        return z[:, 1:] - z[:, :1] if self.heads == 1 else z - z.mean(dim=1, keepdim=True)

    @contextmanager
    def _embedded(self) -> Iterator[None]:
        """While inside, the word embeddings of each forward pass are kept as leaves of the graph."""

        def keep(module: Any, given: Any, out: torch.Tensor) -> torch.Tensor:
            leaf = out.detach().requires_grad_(True)
            self._embeddings.append(leaf)
            return leaf

        hook = self._model.get_input_embeddings().register_forward_hook(keep)
        try:
            yield
        finally:
            hook.remove()
            self._embeddings.clear()

    def _received(self, attentions: Sequence[torch.Tensor], lengths: list[int]) -> NDArray[np.float32]:
        means = [layer.detach().float().mean(dim=1) for layer in attentions]
        read = self._position(lengths, means[0].shape[-1]).to(means[0])
        out = [torch.einsum("bt,bts->bs", read, mean) for mean in means]
        rolled = read
        for mean in reversed(means):
            rolled = (torch.einsum("bt,bts->bs", rolled, mean) + rolled) / 2
        return torch.stack([*out, rolled]).cpu().numpy()

    def _position(self, lengths: list[int], width: int) -> torch.Tensor:
        """Weight of each position in what the classifier reads, shape (B, T), rows sum to one."""
        place, n = torch.arange(width), torch.tensor(lengths)[:, None]
        if self.reads == MEAN:
            return (place < n) / n
        at = torch.full_like(n, self._offset) if self.reads == FIRST else n - 1 - self._offset
        return (place == at.clamp(min=0)).float()

    def _probe(self, frame: tuple[list[int], list[int]]) -> tuple[str, int, int]:
        """Where the gradient of a random mix of the logits meets the last hidden states, and the number of layers."""
        inner = [np.arange(n) % 7 + self._plain_id(frame) for n in (3, 6, 10)]
        batch = [np.array([*frame[0], *ids, *frame[1]], dtype=np.int32) for ids in inner]
        with torch.enable_grad(), self._embedded():
            out = self._model(**self._inputs(batch), output_attentions=True, output_hidden_states=True)
            mix = torch.randn(out.logits.shape[-1], generator=torch.Generator().manual_seed(0)).to(out.logits)
            (gradient,) = torch.autograd.grad((out.logits * mix).sum(), out.hidden_states[-1])
        read = (gradient.abs().sum(-1) > 0).cpu().numpy()
        layers = _layers(getattr(out, "attentions", None))
        lengths = np.array([len(ids) for ids in batch])
        if (read.sum(axis=1) == lengths).all():
            return MEAN, 0, layers
        if (read.sum(axis=1) == 1).all():
            at: Ints = read.argmax(axis=1)
            if (at == at[0]).all():
                return FIRST, int(at[0]), layers
            if np.ptp(lengths - at) == 0:
                return LAST, int(lengths[0] - 1 - at[0]), layers
        raise InputError(
            f"{type(self._model).__name__} reads its answer neither at one position nor as a mean over all: "
            "the attention from there cannot be named"
        )

    def _plain_id(self, frame: tuple[list[int], list[int]]) -> int:
        """The first of seven ids in a row that are neither padding nor frame, so that a probe looks like text."""
        odd = {self._model.config.pad_token_id, *frame[0], *frame[1]}
        rows = self._model.get_input_embeddings().num_embeddings
        return next((i for i in range(rows - 7) if odd.isdisjoint(range(i, i + 7))), 0)


def _layers(attentions: Any) -> int:
    given = [] if attentions is None else list(attentions)
    whole = all(isinstance(a, torch.Tensor) and a.ndim == 4 and a.shape[-1] == a.shape[-2] for a in given)
    return len(given) if whole else 0


def _numbers(x: torch.Tensor) -> Floats:
    return x.detach().double().cpu().numpy()


@contextmanager
def _memory(batch: Batch) -> Iterator[None]:
    """Say what to lower where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(
            sign in str(error).lower() for sign in ("out of memory", "allocate memory", "not enough memory")
        ):
            raise
        raise InputError(
            f"out of memory on {len(batch)} inputs of up to {max(map(len, batch)):,} pieces: lower --batch-size, "
            "then --max-length"
        ) from None


@contextmanager
def prepared(model: Any, pad: int) -> Iterator[None]:
    """While inside, the model evaluates with eager attention, keeps no gradients of its weights and knows its padding."""
    training, gradients = model.training, [p.requires_grad for p in model.parameters()]
    attention, padding = model.config._attn_implementation, model.config.pad_token_id
    try:
        model.eval()
        model.requires_grad_(False)
        if attention != "eager":
            model.set_attn_implementation("eager")
        if padding is None:
            model.config.pad_token_id = pad
        yield
    finally:
        model.train(training)
        for p, gradient in zip(model.parameters(), gradients, strict=True):
            p.requires_grad_(gradient)
        if attention != "eager":
            model.set_attn_implementation(attention)
        model.config.pad_token_id = padding
