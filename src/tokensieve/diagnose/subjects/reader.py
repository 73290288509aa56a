"""One transformer, read batch by batch: its logits, the attention from where it reads, and the effect of every piece.

**Attention**: A_l, shape (T, T), is layer l's attention averaged over its heads, rows attend to columns. From reading position
c a piece receives A_l[c, i]; rolled out over the layers it receives (Ā_L … Ā_1)[c, i] with Ā_l = (A_l + I)/2, the half that
the residual connection carries (Abnar & Zuidema, ACL 2020, section 3).

**Effect** of piece i with input embedding e_i on the answer f: what f gains on average as e_i goes from padding to the word,
every other word being on its own way there, special tokens kept:

    E_t (e_i − e_pad)ᵀ ∂f/∂e_i (e_pad + t (e − e_pad)),    t_s ~ U(0, 1), one for every word s of the document

This is integrated gradients (Sundararajan, Taly & Yan, ICML 2017, equation 1) with a path of its own for every word: on the
straight path of all words at once a model that answers a document of padding as surely as any other gives the words that drive
it there no credit. One draw a document takes a forward and a backward pass: the mean over a word's documents is the mean over
draws, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokensieve.diagnose.subjects.classes import Outputs
from tokensieve.diagnose.subjects.windows import Frame, Input
from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints

FIRST, LAST, MEAN = "first", "last", "mean"
RIGHT, LEFT, NONE = "right", "left", "none"
_SAME = 2e-3  # logits of one input, alone and padded, agree to this fraction of their size (half precision: 5 %)


class Reader:
    """A sequence classifier in evaluation mode on one device.

    Found out, not assumed: where it reads its answer (by which positions of the last hidden states have a gradient), on which
    side inputs may be padded without changing the answer, and whether gradients reach the embeddings.

    Args:
        model: a Hugging Face model for sequence classification, as `prepared` leaves it.
        outputs: how its logits become answers.
        frame: the special tokens of one input.

    Attributes:
        reads: FIRST, LAST or MEAN; None where that cannot be found.
        layers: L, or 0 where the model gives no attention, or it is not known from where it reads.
        differentiable: whether gradients reach the word embeddings.
        reads_text: whether it reads its answer where a piece of the text is (a decoder without a token at the end): then cutting
            a word out moves another piece there.
        padding: RIGHT, LEFT, or NONE where padding changes the answer: then inputs of different length are read apart.
    """

    def __init__(self, model: Any, outputs: Outputs, frame: Frame) -> None:
        self._model, self._outputs, self._pad = model, outputs, int(model.config.pad_token_id)
        self._device = next(model.parameters()).device
        self._tables = _embedding_tables(model)
        probe = self._probe_inputs(frame)
        self.padding = self._find_padding(probe)
        self.differentiable = self._has_gradient(probe)
        self.reads, self._offset, self.layers = self._find_position(probe)
        self.reads_text = self.differentiable and self.reads == LAST and self._offset >= len(frame.after)

    def logits(self, batch: Sequence[Input]) -> Floats:
        """Logits alone, shape (B, M)."""
        with _memory(batch), torch.inference_mode():
            out = np.empty((len(batch), self._outputs.width))
            for at in self._runs(batch):
                out[at] = _numbers(self._model(**self._inputs([batch[i] for i in at])).logits)
            return out

    def blanked(self, batch: Sequence[Input], gone: Sequence[NDArray[np.bool_]]) -> Floats:
        """Logits, shape (B, M), with the embeddings of some pieces replaced by padding's and every other piece in its place.

        Args:
            batch: B inputs.
            gone: which of its pieces, shape (length,) each.
        """
        out = np.empty((len(batch), self._outputs.width))
        with _memory(batch), torch.no_grad():
            for at in self._runs(batch):
                part = [batch[i] for i in at]
                inputs = self._inputs(part)
                share = torch.full(inputs["input_ids"].shape, torch.nan, device=self._device)
                for row, (i, place) in enumerate(zip(at, self._places(part), strict=True)):
                    share[row, place] = torch.from_numpy(np.where(gone[i], 0.0, np.nan)).to(share)
                with self._between(inputs["input_ids"], share):
                    out[at] = _numbers(self._model(**inputs).logits)
        return out

    def look(self, batch: Sequence[Input]) -> tuple[Floats, list[NDArray[np.float32]]]:
        """Logits, shape (B, M), and for each input what its pieces receive of attention from the reading position, each layer and
        last the rollout, shape (L+1, length); in one forward pass of a model that gives attention."""
        logits = np.empty((len(batch), self._outputs.width))
        attention: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(batch)
        with _memory(batch), torch.inference_mode(), _implementation(self._model, "eager"):
            for at in self._runs(batch):
                part = [batch[i] for i in at]
                out = self._model(**self._inputs(part), output_attentions=True)
                logits[at] = _numbers(out.logits)
                received = self._received(out.attentions, part)
                for row, (i, place) in enumerate(zip(at, self._places(part), strict=True)):
                    attention[i] = received[:, row, place]
        return logits, attention

    def integrate(self, batch: Sequence[Input], share: Sequence[Floats], heads: Ints) -> list[Floats]:
        """Effect of each piece on one answer of its input, each of shape (length,); zero for pieces that are no text.

        Args:
            batch: B inputs.
            share: for each input t of each piece, in [0, 1); nan for pieces that are no text.
            heads: which answer of each input, shape (B,).
        """
        out: list[Floats] = [np.empty(0)] * len(batch)
        with _memory(batch), torch.enable_grad():
            for at in self._runs(batch):
                part = [batch[i] for i in at]
                inputs = self._inputs(part)
                drawn = torch.full(inputs["input_ids"].shape, torch.nan, device=self._device)
                places = self._places(part)
                for row, (i, place) in enumerate(zip(at, places, strict=True)):
                    drawn[row, place] = torch.from_numpy(share[i]).to(drawn)
                total = torch.zeros_like(drawn)
                chosen = torch.as_tensor(heads[at], device=self._device)[:, None]
                with self._between(inputs["input_ids"], drawn) as steps:
                    answers = self._outputs.answers(self._model(**inputs).logits.float())
                    gradients = torch.autograd.grad(answers.gather(1, chosen).sum(), [leaf for leaf, _, _ in steps])
                for (_, difference, back), gradient in zip(steps, gradients, strict=True):
                    total += back((gradient.float() * difference.float()).sum(-1))
                effects = _numbers(total)
                for row, (i, place) in enumerate(zip(at, places, strict=True)):
                    out[i] = effects[row, place]
        return out

    def _runs(self, batch: Sequence[Input]) -> list[Ints]:
        """Inputs that may be read at once: all, or those of equal length."""
        if self.padding != NONE:
            return [np.arange(len(batch))]
        lengths = np.array([len(one.ids) for one in batch])
        return [np.flatnonzero(lengths == length) for length in np.unique(lengths)]

    def _inputs(self, batch: Sequence[Input]) -> dict[str, Any]:
        """Padded on the side that leaves the answer alone, whatever the tokenizer would do."""
        width = max(len(one.ids) for one in batch)
        ids = torch.full((len(batch), width), self._pad)
        mask, segments = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, (one, place) in enumerate(zip(batch, self._places(batch), strict=True)):
            ids[row, place] = torch.from_numpy(one.ids.astype(np.int64))
            mask[row, place] = 1
            if one.segments is not None:
                segments[row, place] = torch.from_numpy(one.segments.astype(np.int64))
        given = {"input_ids": ids, "attention_mask": mask}
        if any(one.segments is not None for one in batch):
            given["token_type_ids"] = segments
        return {name: x.to(self._device) for name, x in given.items()}

    def _places(self, batch: Sequence[Input]) -> list[slice]:
        """Columns of each input in the padded batch."""
        lengths = [len(one.ids) for one in batch]
        width = max(lengths)
        return [slice(width - n, width) if self.padding == LEFT else slice(0, n) for n in lengths]

    @contextmanager
    def _between(self, ids: torch.Tensor, share: torch.Tensor) -> Iterator[list[_Step]]:
        """While inside, the text's embeddings are e_pad + share (e − e_pad), and leaves of the graph; share is nan elsewhere."""
        steps: list[_Step] = []

        def move(module: Any, given: Any, out: torch.Tensor) -> torch.Tensor | None:
            found = _aligned(given[0], ids, share)
            if found is None:
                return None
            here, back = found
            mask, here = here.isfinite(), here.nan_to_num(1.0).to(out.dtype)
            padding = type(module).forward(module, torch.full_like(given[0], self._pad)).detach()
            difference = torch.where(mask[..., None], out.detach() - padding, torch.zeros_like(out))
            leaf = (out.detach() - (1 - here)[..., None] * difference).requires_grad_(True)
            steps.append((leaf, difference, back))
            return leaf

        hooks = [table.register_forward_hook(move) for table in self._tables]
        try:
            yield steps
        finally:
            for hook in hooks:
                hook.remove()

    def _received(self, attentions: Sequence[torch.Tensor], batch: Sequence[Input]) -> NDArray[np.float32]:
        means = [layer.detach().float().mean(dim=1) for layer in attentions]
        read = self._position(batch, means[0].shape[-1]).to(means[0])
        out = [torch.einsum("bt,bts->bs", read, mean) for mean in means]
        rolled = read
        for mean in reversed(means):
            rolled = (torch.einsum("bt,bts->bs", rolled, mean) + rolled) / 2
        return torch.stack([*out, rolled]).cpu().numpy()

    def _position(self, batch: Sequence[Input], width: int) -> torch.Tensor:
        """Weight of each position in what the classifier reads, shape (B, T), rows sum to one."""
        weight = torch.zeros(len(batch), width)
        for row, place in enumerate(self._places(batch)):
            if self.reads == MEAN:
                weight[row, place] = 1 / (place.stop - place.start)
            else:
                at = place.start + self._offset if self.reads == FIRST else place.stop - 1 - self._offset
                weight[row, max(at, place.start)] = 1
        return weight

    def _probe_inputs(self, frame: Frame) -> list[Input]:
        """Three inputs of different length that look like text."""
        odd = {self._pad, *frame.before, *(frame.middle or []), *frame.after}
        rows = self._model.get_input_embeddings().num_embeddings
        plain = next((i for i in range(rows - 7) if odd.isdisjoint(range(i, i + 7))), 0)
        inner = [np.arange(n) % 7 + plain for n in (3, 6, 10)]
        whole = [[*frame.before, *ids, *(frame.middle or []), *frame.after] for ids in inner]
        return [Input(np.array(ids, dtype=np.int32)) for ids in whole]

    def _find_padding(self, probe: list[Input]) -> str:
        """The side on which padding leaves the answer alone."""
        half = next(self._model.parameters()).dtype in (torch.float16, torch.bfloat16)
        with torch.inference_mode():
            self.padding = RIGHT
            found = [_numbers(self._model(**self._inputs([one])).logits) for one in probe]
            for one in found:
                self._outputs.check_shape(one, type(self._model).__name__)
            alone = np.concatenate(found)
            size = (0.05 if half else _SAME) * max(float(np.abs(alone).max()), 1e-3)
            for side in (RIGHT, LEFT):
                self.padding = side
                together = _numbers(self._model(**self._inputs(probe)).logits)
                if np.abs(together - alone).max() <= size:
                    return side
        return NONE

    def _has_gradient(self, probe: list[Input]) -> bool:
        """Whether every occurrence of the word embeddings is found, and has a gradient."""
        half = [np.full(len(one.ids), 0.5) for one in probe]
        try:
            found = self.integrate(probe, half, np.zeros(len(probe), dtype=np.int64))
        except (RuntimeError, NotImplementedError, TypeError):  # integer weights, a graph that was cut
            return False
        return all(np.isfinite(one).all() and np.any(one != 0) for one in found)

    def _find_position(self, probe: list[Input]) -> tuple[str | None, int, int]:
        """Where the gradient of a random mix of the logits meets the last hidden states, and the number of layers."""
        place = self._places(probe)
        if self.padding == NONE or not self.differentiable:
            return None, 0, 0
        try:
            ids = self._inputs(probe)
            half = torch.full(ids["input_ids"].shape, 0.5, device=self._device)
            with (
                torch.enable_grad(),
                _implementation(self._model, "eager"),
                self._between(ids["input_ids"], half),
            ):
                out = self._model(**ids, output_attentions=True, output_hidden_states=True)
                mix = torch.randn(out.logits.shape[-1], generator=torch.Generator().manual_seed(0)).to(out.logits)
                (gradient,) = torch.autograd.grad((out.logits * mix).sum(), out.hidden_states[-1])
        except (
            RuntimeError,
            ValueError,
            TypeError,
            AttributeError,
            NotImplementedError,
        ):  # hidden states that are not kept
            return None, 0, 0
        if gradient.shape[:2] != ids["input_ids"].shape:
            return None, 0, 0
        hit = (gradient.abs().sum(-1) > 0).cpu().numpy()
        read = [np.flatnonzero(hit[row, at]) for row, at in enumerate(place)]
        layers = _layers(getattr(out, "attentions", None))
        lengths = np.array([len(one.ids) for one in probe])
        if all(len(at) == n for at, n in zip(read, lengths, strict=True)):
            return MEAN, 0, layers
        if all(len(at) == 1 for at in read):
            first = np.array([at[0] for at in read])
            if np.ptp(first) == 0:
                return FIRST, int(first[0]), layers
            if np.ptp(lengths - first) == 0:
                return LAST, int(lengths[0] - 1 - first[0]), layers
        return None, 0, 0


_Step = tuple[torch.Tensor, torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]
"""One use of the word embeddings: the moved embeddings, e − e_pad, and the way back to the shape of the ids."""


def _aligned(
    seen: Any, ids: torch.Tensor, share: torch.Tensor
) -> tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]] | None:
    """The text's shares for ids as a module sees them: as they are, padded further (Longformer), transposed (XLNet), or shifted
    by one for a decoder (BART, T5); None for other ids."""
    if not isinstance(seen, torch.Tensor) or seen.ndim != 2:
        return None
    rows, width = ids.shape
    if seen.shape[0] == rows and seen.shape[1] >= width and torch.equal(seen[:, :width], ids):
        return torch.nn.functional.pad(share, (0, seen.shape[1] - width), value=torch.nan), lambda x: x[:, :width]
    if seen.shape == ids.shape and torch.equal(seen[:, 1:], ids[:, :-1]):
        return torch.nn.functional.pad(share[:, :-1], (1, 0), value=torch.nan), lambda x: torch.nn.functional.pad(
            x[:, 1:], (0, 1)
        )
    if seen.shape == (width, rows) and torch.equal(seen.T, ids):
        return share.T, lambda x: x.T
    return None


def _embedding_tables(model: Any) -> list[Any]:
    """Every module that looks words up in the input embeddings (an encoder and a decoder may share them)."""
    main = model.get_input_embeddings()
    weight = getattr(main, "weight", None)
    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    shared = [x for x in tables if weight is not None and x.weight.data_ptr() == weight.data_ptr()]
    return shared or [main]


def _layers(attentions: Any) -> int:
    given = [] if attentions is None else list(attentions)
    whole = all(isinstance(a, torch.Tensor) and a.ndim == 4 and a.shape[-1] == a.shape[-2] for a in given)
    return len(given) if whole else 0


def _numbers(x: torch.Tensor) -> Floats:
    return x.detach().double().cpu().numpy()


@contextmanager
def _memory(batch: Sequence[Input]) -> Iterator[None]:
    """Say what to lower where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(
            sign in str(error).lower() for sign in ("out of memory", "allocate memory", "not enough memory")
        ):
            raise
        raise InputError(
            f"out of memory on {len(batch)} inputs of up to {max(len(one.ids) for one in batch):,} pieces: lower "
            "--batch-size, then --max-length"
        ) from None


@contextmanager
def _implementation(model: Any, kind: str) -> Iterator[None]:
    """While inside, attention is computed this way ("eager" gives its weights, "sdpa" is fast), where the model can."""
    before = getattr(model.config, "_attn_implementation", None)
    change = before not in (None, kind) and hasattr(model, "set_attn_implementation")
    if change:
        model.set_attn_implementation(kind)
    try:
        yield
    finally:
        if change:
            model.set_attn_implementation(before)


@contextmanager
def prepared(model: Any, pad: int) -> Iterator[None]:
    """While inside, the model evaluates with fast attention, keeps no gradients of its weights and knows its padding."""
    training, gradients = model.training, [p.requires_grad for p in model.parameters()]
    padding, kind = model.config.pad_token_id, "sdpa" if getattr(model, "_supports_sdpa", False) else "eager"
    try:
        model.eval()
        model.requires_grad_(False)
        if padding is None:
            model.config.pad_token_id = pad
        with _implementation(model, kind):
            yield
    finally:
        model.train(training)
        for p, gradient in zip(model.parameters(), gradients, strict=True):
            p.requires_grad_(gradient)
        model.config.pad_token_id = padding
