"""One transformer, read batch by batch: its logits, its attention, and the effect of every piece.

**Attention**: A_l, shape (T, T), is layer l's attention averaged over its heads; rows attend to
columns. From reading position c a piece receives A_l[c, i]; rolled out over the layers it receives
(Ā_L … Ā_1)[c, i] with Ā_l = (A_l + I)/2, the half that the residual connection carries (Abnar &
Zuidema, ACL 2020, section 3).

**Effect** of piece i with input embedding e_i on the answer f: what f gains on average as e_i goes
from padding to the word, every other word being on its own way there, special tokens kept:

    E_t (e_i − e_pad)ᵀ ∂f/∂e_i (e_pad + t (e − e_pad)),    t_s ~ U(0, 1), one for every word s

This is integrated gradients (Sundararajan, Taly & Yan, ICML 2017, equation 1) with a path of its
own for every word: on the straight path of all words at once, a model that answers a document of
padding as surely as any other gives no credit to the words that drive it there. One draw per
document takes a forward and a backward pass: the mean over a word's documents is the mean over
draws, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.checkpoint import fingerprint
from tokensieve.diagnose.subjects.frame import Frame, Input
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.errors import InputError

PROBE_LENGTHS = (3, 6, 10)  # different, so that a position is told from a distance to the end
PROBE_PIECES = 7  # distinct pieces in them, looked up among the first that are not special
# Threads of one operation. Sums are split among them, so that another number of threads rounds
# otherwise: it follows from the model, never from the machine. Small models gain nothing from a
# second thread; two are what nearly every machine has.
THREADS_OF_LARGE_MODELS = 2
LARGE_MODEL = 10_000_000  # weights; below it an operation takes too little time to be shared
# logits of one input, alone and padded, agree to this fraction of their size
PADDING_TOLERANCE = 2e-3
PADDING_TOLERANCE_HALF = 0.05  # in half precision
MEMORY_SIGNS = ("out of memory", "allocate memory", "not enough memory")
# raised by models whose hidden states or attention cannot be read
UNREADABLE = (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError)
# raised by integer weights and by graphs that were cut
NOT_DIFFERENTIABLE = (RuntimeError, NotImplementedError, TypeError)

Padding = Literal["right", "left", "none"]
Back = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class MovedEmbeddings:
    """One use of the word embeddings, moved towards padding.

    Attributes:
        leaf: the moved embeddings, a leaf of the graph.
        difference: e − e_pad.
        back: brings a tensor with this module's shape of ids to the shape of the input's.
    """

    leaf: torch.Tensor
    difference: torch.Tensor
    back: Back


@dataclass(frozen=True)
class Position:
    """Where a classifier reads its answer: "first", "last", "mean", or None if that is unclear.

    `offset` counts pieces from that end. `layers` is the number of layers that give attention.
    """

    reads: str | None
    offset: int
    layers: int


UNKNOWN_POSITION = Position(None, 0, 0)


class Reader:
    """A sequence classifier in evaluation mode on one device.

    Attributes (found out by trying, not assumed):
        reads: where it reads its answer, "first", "last" or "mean", by which of the last hidden
            states have a gradient; None if that is unclear.
        padding: the side on which inputs may be padded without changing the answer; of "none",
            inputs of different length are read apart.
        differentiable: whether gradients reach the embeddings.
        layers: 0 where the model gives no attention, or it is unclear from where it reads.
        reads_text: it reads its answer where a piece of the text is (a decoder without a token at
            the end). Cutting a word out would move another piece there.
    """

    def __init__(self, model: Any, outputs: Outputs, frame: Frame) -> None:
        self._model = model
        self.outputs = outputs
        self._pad = int(model.config.pad_token_id)
        self._device = next(model.parameters()).device
        self._tables = _embedding_tables(model)
        probe = self._probe(frame)
        self.padding: Padding = "right"
        self.padding = self._find_padding(probe)
        self.differentiable = self._is_differentiable(probe)
        position = self._find_position(probe)
        self.reads = position.reads
        self._offset = position.offset
        self.layers = position.layers
        is_behind_text = position.offset < len(frame.after)
        self.reads_text = self.differentiable and self.reads == "last" and not is_behind_text

    @staticmethod
    @contextmanager
    def prepared(model: Any, pad: int) -> Iterator[None]:
        """While inside, the model evaluates with fast attention and keeps no gradients of weights.

        It also has a piece for padding, as some decoders have not, and computes in a number of
        threads that does not depend on the machine.
        """
        threads = torch.get_num_threads()
        was_training = model.training
        gradients = [p.requires_grad for p in model.parameters()]
        padding = model.config.pad_token_id
        kind = "sdpa" if getattr(model, "_supports_sdpa", False) else "eager"
        try:
            torch.set_num_threads(_n_threads(model))
            model.eval()
            model.requires_grad_(False)
            if padding is None:
                model.config.pad_token_id = pad
            with attention_kind(model, kind):
                yield
        finally:
            torch.set_num_threads(threads)
            model.train(was_training)
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.requires_grad_(gradient)
            model.config.pad_token_id = padding

    def digest(self) -> str:
        """Fingerprint of names, types, shapes and bytes of all weights."""
        parts: list[object] = []
        for name, weights in sorted(self._model.state_dict().items()):
            if not isinstance(weights, torch.Tensor):
                continue
            plain = weights.int_repr() if weights.is_quantized else weights
            plain = plain.detach().cpu().contiguous()
            parts += [name, str(plain.dtype), tuple(plain.shape)]
            parts.append(plain.flatten().view(torch.uint8).numpy())
        return fingerprint(*parts)

    def logits(
        self, batch: Sequence[Input], is_blanked: Sequence[NDArray[np.bool_]] | None = None
    ) -> Floats:
        """Logits, shape (B, M).

        The embeddings of some pieces of each input, shape (length,), may be replaced by padding's.
        """
        logits = np.empty((len(batch), self.outputs.width))
        with _memory(batch), torch.no_grad():
            for at, part in self._runs(batch):
                inputs = self._inputs(part)
                moved: AbstractContextManager[object] = nullcontext()
                if is_blanked is not None:
                    share = [np.where(is_blanked[i], 0.0, np.nan) for i in at]
                    moved = self._between(inputs["input_ids"], self._padded(part, share))
                with moved:
                    logits[at] = _numbers(self._model(**inputs).logits)
        return logits

    def look(self, batch: Sequence[Input]) -> tuple[Floats, list[NDArray[np.float32]]]:
        """Logits, shape (B, M), and what the pieces of each input receive of attention.

        The latter is seen from the reading position, rolled out over the layers, shape (length,).
        One forward pass of a model that gives attention.
        """
        logits = np.empty((len(batch), self.outputs.width))
        attention = [np.empty(0, np.float32)] * len(batch)
        with _memory(batch), torch.inference_mode(), attention_kind(self._model, "eager"):
            for at, part in self._runs(batch):
                out = self._model(**self._inputs(part), output_attentions=True)
                logits[at] = _numbers(out.logits)
                received = self._received(out.attentions, part)
                for row, (i, place) in enumerate(zip(at, self._places(part), strict=True)):
                    attention[i] = received[row, place]
        return logits, attention

    def integrate(
        self, batch: Sequence[Input], share: Sequence[Floats], heads: Ints
    ) -> list[Floats]:
        """Gradient of an answer times what padding would change, at one point between both.

        One term of integrated gradients: each piece's embedding is (1 − t) of padding's and t of
        its own; whoever calls draws t and averages.

        Args:
            batch: inputs.
            share: t in [0, 1) of each piece, shape (length,); nan where no text is.
            heads: which answer of each input is differentiated, shape (B,).

        Returns:
            The product of each piece of each input, shape (length,).
        """
        effects: list[Floats] = [np.empty(0)] * len(batch)
        with _memory(batch), torch.enable_grad():
            for at, part in self._runs(batch):
                inputs = self._inputs(part)
                shares = self._padded(part, [share[i] for i in at])
                chosen = torch.as_tensor(heads[at], device=self._device)[:, None]
                with self._between(inputs["input_ids"], shares) as uses:
                    answers = self.outputs.answers(self._model(**inputs).logits.float())
                    total = answers.gather(1, chosen).sum()
                    gradients = torch.autograd.grad(total, [use.leaf for use in uses])
                of_batch = torch.zeros_like(shares)
                for use, gradient in zip(uses, gradients, strict=True):
                    products = gradient.float() * use.difference.float()
                    of_batch += use.back(products.sum(-1))
                numbers = _numbers(of_batch)
                for row, (i, place) in enumerate(zip(at, self._places(part), strict=True)):
                    effects[i] = numbers[row, place]
        return effects

    def _runs(self, batch: Sequence[Input]) -> list[tuple[Ints, list[Input]]]:
        """Inputs that may be read at once, and their places: all, or those of equal length."""
        lengths = np.array([len(item.ids) for item in batch])
        runs: list[Ints] = [np.arange(len(batch))]
        if self.padding == "none":
            runs = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
        return [(at, [batch[int(i)] for i in at]) for at in runs]

    def _places(self, batch: Sequence[Input]) -> list[slice]:
        """Columns of each input in the padded batch."""
        lengths = [len(item.ids) for item in batch]
        width = max(lengths)
        if self.padding == "left":
            return [slice(width - length, width) for length in lengths]
        return [slice(0, length) for length in lengths]

    def _padded(
        self,
        batch: Sequence[Input],
        values: Sequence[Floats | NDArray[np.int32]],
        fill: float = np.nan,
    ) -> torch.Tensor:
        """A row for each input, padded on the side that leaves the answer alone."""
        kind = torch.float32 if np.isnan(fill) else torch.int64
        width = max(len(item.ids) for item in batch)
        rows = torch.full((len(batch), width), fill, dtype=kind)
        for row, (place, value) in enumerate(zip(self._places(batch), values, strict=True)):
            rows[row, place] = torch.from_numpy(value).to(kind)
        return rows.to(self._device)

    def _inputs(self, batch: Sequence[Input]) -> dict[str, torch.Tensor]:
        """What the model is called with."""
        mask_rows = [np.ones(len(item.ids)) for item in batch]
        inputs = {
            "input_ids": self._padded(batch, [item.ids for item in batch], self._pad),
            "attention_mask": self._padded(batch, mask_rows, 0),
        }
        if any(item.segments is not None for item in batch):
            segments = [
                np.zeros(len(item.ids)) if item.segments is None else item.segments
                for item in batch
            ]
            inputs["token_type_ids"] = self._padded(batch, segments, 0)
        return inputs

    @contextmanager
    def _between(self, ids: torch.Tensor, share: torch.Tensor) -> Iterator[list[MovedEmbeddings]]:
        """While inside, the text's embeddings are e_pad + share (e − e_pad).

        The share is nan where no text is. The embeddings are leaves of the graph, and are listed as
        the model uses them.
        """
        uses: list[MovedEmbeddings] = []

        def move(module: Any, given: Sequence[torch.Tensor], out: Any) -> Any:
            alignment = align(given[0], ids, share)
            if alignment is None:
                return None
            embeddings = _embeddings_in(out).detach()
            is_text = alignment.share.isfinite()
            t = alignment.share.nan_to_num(1.0).to(embeddings.dtype)
            pad_ids = torch.full_like(given[0], self._pad)
            padding = _embeddings_in(type(module).forward(module, pad_ids)).detach()
            zero = torch.zeros_like(embeddings)
            difference = torch.where(is_text[..., None], embeddings - padding, zero)
            leaf = (embeddings - (1 - t)[..., None] * difference).requires_grad_(True)
            uses.append(MovedEmbeddings(leaf, difference, alignment.back))
            return (leaf, *out[1:]) if isinstance(out, tuple) else leaf

        hooks = [table.register_forward_hook(move) for table in self._tables]
        try:
            yield uses
        finally:
            for hook in hooks:
                hook.remove()

    def _received(
        self, attentions: Sequence[torch.Tensor], batch: Sequence[Input]
    ) -> NDArray[np.float32]:
        """What each piece receives from where the classifier reads, rolled out, shape (B, T)."""
        by_layer = [layer.detach().float().mean(dim=1) for layer in attentions]
        rollout = self._reading_weights(batch, by_layer[0].shape[-1]).to(by_layer[0])
        for layer in reversed(by_layer):
            rollout = (torch.einsum("bt,bts->bs", rollout, layer) + rollout) / 2
        received: NDArray[np.float32] = rollout.cpu().numpy()
        return received

    def _reading_weights(self, batch: Sequence[Input], width: int) -> torch.Tensor:
        """Weight of each position in the answer, shape (B, width); rows sum to one."""
        weights = torch.zeros(len(batch), width)
        for row, place in enumerate(self._places(batch)):
            if self.reads == "mean":
                weights[row, place] = 1 / (place.stop - place.start)
            elif self.reads == "first":
                weights[row, place.start + self._offset] = 1
            else:
                weights[row, max(place.stop - 1 - self._offset, place.start)] = 1
        return weights

    def _probe(self, frame: Frame) -> list[Input]:
        """Three inputs of different length that look like text."""
        special = {self._pad, *frame.before, *(frame.middle or []), *frame.after}
        first = 0
        for start in range(self._tables[0].weight.shape[0] - PROBE_PIECES):
            if special.isdisjoint(range(start, start + PROBE_PIECES)):
                first = start
                break
        texts = [np.arange(n) % PROBE_PIECES + first for n in PROBE_LENGTHS]
        return [Input(frame.around(text.tolist()).ids) for text in texts]

    def _is_differentiable(self, probe: list[Input]) -> bool:
        """Whether gradients reach the embeddings of every probe."""
        half = [np.full(len(item.ids), 0.5) for item in probe]
        try:
            effects = self.integrate(probe, half, np.zeros(len(probe), dtype=np.int64))
        except NOT_DIFFERENTIABLE:
            return False
        return all(np.isfinite(effect).all() and np.any(effect != 0) for effect in effects)

    def _find_padding(self, probe: list[Input]) -> Padding:
        """The side on which padding leaves the answer alone."""
        is_half = next(self._model.parameters()).dtype in (torch.float16, torch.bfloat16)
        tolerance = PADDING_TOLERANCE_HALF if is_half else PADDING_TOLERANCE
        with torch.inference_mode():
            alone = [_numbers(self._model(**self._inputs([item])).logits) for item in probe]
            for logits in alone:
                self._check_shape(logits)
            expected = np.concatenate(alone)
            largest = tolerance * max(float(np.abs(expected).max()), 1e-3)
            sides: tuple[Padding, ...] = ("right", "left")
            for side in sides:
                self.padding = side
                logits = _numbers(self._model(**self._inputs(probe)).logits)
                if np.abs(logits - expected).max() <= largest:
                    return side
        return "none"

    def _check_shape(self, logits: Floats) -> None:
        if logits.ndim != 2 or logits.shape[1] != self.outputs.width:
            raise InputError(
                f"{type(self._model).__name__} returns outputs of shape {logits.shape[1:]}, but "
                f"its configuration lists {self.outputs.width} classes; it is not a text classifier"
            )

    def _find_position(self, probe: list[Input]) -> Position:
        """The token whose last hidden state the logits are computed from.

        It is where the gradient of a random mix of the logits is not zero. The gradient is taken
        half of the way from padding's embeddings to the text's: at the text itself it may vanish
        (a saturated model). Without padding, inputs of several lengths cannot be compared.
        """
        if self.padding == "none" or not self.differentiable:
            return UNKNOWN_POSITION
        inputs = self._inputs(probe)
        half = torch.full(inputs["input_ids"].shape, 0.5, device=self._device)
        try:
            with (
                torch.enable_grad(),
                attention_kind(self._model, "eager"),
                self._between(inputs["input_ids"], half),
            ):
                out = self._model(**inputs, output_attentions=True, output_hidden_states=True)
                generator = torch.Generator().manual_seed(0)
                mix = torch.randn(out.logits.shape[-1], generator=generator).to(out.logits)
                total = (out.logits * mix).sum()
                (gradient,) = torch.autograd.grad(total, out.hidden_states[-1])
        except UNREADABLE:
            return UNKNOWN_POSITION
        if gradient.shape[:2] != inputs["input_ids"].shape:
            return UNKNOWN_POSITION
        is_hit = (gradient.abs().sum(-1) > 0).cpu().numpy()
        hits = [np.flatnonzero(is_hit[row, at]) for row, at in enumerate(self._places(probe))]
        lengths = np.array([len(item.ids) for item in probe])
        return position_of(hits, lengths, _attention_layers(out))


def _embeddings_in(out: Any) -> torch.Tensor:
    """What a table of embeddings returns; that of I-BERT adds a scale for whole numbers."""
    embeddings: torch.Tensor = out[0] if isinstance(out, tuple) else out
    return embeddings


def _n_threads(model: Any) -> int:
    n_weights = sum(weights.numel() for weights in model.parameters())
    return THREADS_OF_LARGE_MODELS if n_weights >= LARGE_MODEL else 1


def position_of(hits: list[Ints], lengths: Ints, layers: int) -> Position:
    """Which position inputs of these lengths are read from, by the pieces that gradients reach."""
    n_hits = np.array([len(hit) for hit in hits])
    if np.array_equal(n_hits, lengths):
        return Position("mean", 0, layers)
    if not (n_hits == 1).all():
        return UNKNOWN_POSITION
    from_start = np.array([hit[0] for hit in hits])
    from_end = lengths - 1 - from_start
    if np.ptp(from_start) == 0:
        return Position("first", int(from_start[0]), layers)
    if np.ptp(from_end) == 0:
        return Position("last", int(from_end[0]), layers)
    return UNKNOWN_POSITION


def _attention_layers(out: Any) -> int:
    """Number of layers whose attention is a square for each head; 0 if any is not."""
    attentions = list(getattr(out, "attentions", None) or [])
    for layer in attentions:
        is_square = isinstance(layer, torch.Tensor) and layer.ndim == 4
        if not is_square or layer.shape[-1] != layer.shape[-2]:
            return 0
    return len(attentions)


def _embedding_tables(model: Any) -> list[Any]:
    """The modules that look word embeddings up; encoder and decoder may share their weights."""
    main = model.get_input_embeddings()
    weights = getattr(main, "weight", None)
    if weights is None:
        return [main]
    address = weights.data_ptr()
    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    return [table for table in tables if table.weight.data_ptr() == address] or [main]


@dataclass(frozen=True)
class Alignment:
    """The text's shares in the shape in which a module sees the ids, and the way back."""

    share: torch.Tensor
    back: Back


def align(seen: object, ids: torch.Tensor, share: torch.Tensor) -> Alignment | None:
    """Bring the shares of the ids into the shape in which a module sees them.

    They are seen as they are, padded further (Longformer), transposed (XLNet), or shifted by one
    for a decoder (BART, T5). None for other ids.
    """
    if not isinstance(seen, torch.Tensor) or seen.ndim != 2:
        return None
    pad = torch.nn.functional.pad
    width = ids.shape[1]
    n_added = seen.shape[1] - width
    if n_added >= 0 and torch.equal(seen[:, :width], ids):
        padded = pad(share, (0, n_added), value=torch.nan)
        return Alignment(padded, lambda x: x[:, :width])
    if torch.equal(seen[:, 1:], ids[:, :-1]):
        shifted = pad(share[:, :-1], (1, 0), value=torch.nan)
        return Alignment(shifted, lambda x: pad(x[:, 1:], (0, 1)))
    if torch.equal(seen.T, ids):
        return Alignment(share.T, lambda x: x.T)
    return None


def _numbers(x: torch.Tensor) -> Floats:
    return x.detach().double().cpu().numpy()


@contextmanager
def _memory(batch: Sequence[Input]) -> Iterator[None]:
    """Say what to lower where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        text = str(error).lower()
        is_memory = isinstance(error, MemoryError) or any(sign in text for sign in MEMORY_SIGNS)
        if not is_memory:
            raise
        longest = max(len(item.ids) for item in batch)
        raise InputError(
            f"out of memory on {len(batch)} inputs of up to {longest:,} tokens: lower "
            "--batch-size, then --max-length"
        ) from None


@contextmanager
def attention_kind(model: Any, kind: str) -> Iterator[None]:
    """While inside, attention is computed this way, where the model can.

    "eager" gives its weights, "sdpa" is fast.
    """
    before = getattr(model.config, "_attn_implementation", None)
    is_changed = before not in (None, kind) and hasattr(model, "set_attn_implementation")
    if is_changed:
        model.set_attn_implementation(kind)
    try:
        yield
    finally:
        if is_changed:
            model.set_attn_implementation(before)
