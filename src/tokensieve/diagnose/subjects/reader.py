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

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.checkpoint import fingerprint
from tokensieve.diagnose.subjects.loading import untrained_twin
from tokensieve.diagnose.subjects.recognise import Outputs
from tokensieve.diagnose.subjects.windows import Frame, Input
from tokensieve.errors import InputError

_PLACES = re.compile(r"\{(?:text|second)\}")  # in a template
_UNREADABLE = (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError)

_Back = Callable[[torch.Tensor], torch.Tensor]
_Step = tuple[torch.Tensor, torch.Tensor, _Back]
"""One use of the word embeddings: the moved embeddings, e − e_pad, and the way back to the shape of the ids."""


class Reader:
    """A sequence classifier in evaluation mode on one device.

    Found out, not assumed: where it `reads` its answer, "first", "last" or "mean" (by which of the last hidden states have
    a gradient; None if that is unclear); on which side inputs may be padded without changing the answer (`padding`: right,
    left, or none: then inputs of different length are read apart); and whether gradients reach the embeddings (`differentiable`).
    `layers` is 0 where the model gives no attention, or it is not known from where it reads. If it reads its answer where a piece
    of the text is (`reads_text`: a decoder without a token at the end), cutting a word out would move another piece there.
    """

    def __init__(self, model: Any, outputs: Outputs, frame: Frame) -> None:
        self._model, self.outputs, self._pad = model, outputs, int(model.config.pad_token_id)
        self._device = next(model.parameters()).device
        main = model.get_input_embeddings()
        # an encoder and a decoder may share their word embeddings
        tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
        own = getattr(main, "weight", None)
        self._tables = [
            x for x in tables if own is not None and x.weight.data_ptr() == own.data_ptr()
        ] or [main]
        # three inputs of different length that look like text
        odd = {self._pad, *frame.before, *(frame.middle or []), *frame.after}
        plain = next(
            (i for i in range(main.num_embeddings - 7) if odd.isdisjoint(range(i, i + 7))), 0
        )
        probe = [Input(frame.around((np.arange(n) % 7 + plain).tolist()).ids) for n in (3, 6, 10)]
        self.padding = "right"
        self.padding = self._find_padding(probe)
        half = [np.full(len(one.ids), 0.5) for one in probe]
        try:
            found = self.integrate(probe, half, np.zeros(len(probe), dtype=np.int64))
            self.differentiable = all(np.isfinite(one).all() and np.any(one != 0) for one in found)
        except (
            RuntimeError,
            NotImplementedError,
            TypeError,
        ):  # integer weights, a graph that was cut
            self.differentiable = False
        self.reads, self._offset, self.layers = self._find_position(probe)
        self.reads_text = (
            self.differentiable and self.reads == "last" and self._offset >= len(frame.after)
        )

    @staticmethod
    @contextmanager
    def prepared(model: Any, pad: int) -> Iterator[None]:
        """While inside, the model evaluates with fast attention, keeps no gradients of its weights and knows its padding."""
        training, gradients = model.training, [p.requires_grad for p in model.parameters()]
        padding, kind = (
            model.config.pad_token_id,
            "sdpa" if getattr(model, "_supports_sdpa", False) else "eager",
        )
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

    def digest(self) -> str:
        """Fingerprint of names, types, shapes and bytes of all weights."""
        parts: list[object] = []
        for name, x in sorted(self._model.state_dict().items()):
            if isinstance(x, torch.Tensor):
                plain = (x.int_repr() if x.is_quantized else x).detach().cpu().contiguous()
                parts += [
                    name,
                    str(plain.dtype),
                    tuple(plain.shape),
                    plain.flatten().view(torch.uint8).numpy(),
                ]
        return fingerprint(*parts)

    def logits(
        self, batch: Sequence[Input], gone: Sequence[NDArray[np.bool_]] | None = None
    ) -> Floats:
        """Logits, shape (B, M); the embeddings of some pieces of each input, shape (length,), may be replaced by padding's."""
        out = np.empty((len(batch), self.outputs.width))
        with _memory(batch), torch.no_grad():
            for at, part in self._runs(batch):
                inputs = self._inputs(part)
                without: AbstractContextManager[object] = nullcontext()
                if gone is not None:
                    share = self._padded(part, [np.where(gone[i], 0.0, np.nan) for i in at])
                    without = self._between(inputs["input_ids"], share)
                with without:
                    out[at] = _numbers(self._model(**inputs).logits)
        return out

    def look(self, batch: Sequence[Input]) -> tuple[Floats, list[NDArray[np.float32]]]:
        """Logits, shape (B, M), and for each input what its pieces receive of attention from the reading position, each layer and
        last the rollout, shape (L+1, length); in one forward pass of a model that gives attention."""
        logits = np.empty((len(batch), self.outputs.width))
        attention: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(batch)
        with _memory(batch), torch.inference_mode(), _implementation(self._model, "eager"):
            for at, part in self._runs(batch):
                out = self._model(**self._inputs(part), output_attentions=True)
                logits[at] = _numbers(out.logits)
                received = self._received(out.attentions, part)
                for row, (i, place) in enumerate(zip(at, self._places(part), strict=True)):
                    attention[i] = received[:, row, place]
        return logits, attention

    def integrate(
        self, batch: Sequence[Input], share: Sequence[Floats], heads: Ints
    ) -> list[Floats]:
        """Effect of each piece, (length,), on one answer of its input (heads, (B,)); share t in [0, 1), nan where no text is."""
        out: list[Floats] = [np.empty(0)] * len(batch)
        with _memory(batch), torch.enable_grad():
            for at, part in self._runs(batch):
                inputs, drawn = self._inputs(part), self._padded(part, [share[i] for i in at])
                total = torch.zeros_like(drawn)
                chosen = torch.as_tensor(heads[at], device=self._device)[:, None]
                with self._between(inputs["input_ids"], drawn) as steps:
                    answers = self.outputs.answers(self._model(**inputs).logits.float())
                    gradients = torch.autograd.grad(
                        answers.gather(1, chosen).sum(), [leaf for leaf, _, _ in steps]
                    )
                for (_, difference, back), gradient in zip(steps, gradients, strict=True):
                    total += back((gradient.float() * difference.float()).sum(-1))
                effects = _numbers(total)
                for row, (i, place) in enumerate(zip(at, self._places(part), strict=True)):
                    out[i] = effects[row, place]
        return out

    def _runs(self, batch: Sequence[Input]) -> list[tuple[Ints, list[Input]]]:
        """Inputs that may be read at once, and their places: all, or those of equal length."""
        lengths = np.array([len(one.ids) for one in batch])
        runs: list[Ints] = [np.arange(len(batch))]
        if self.padding == "none":
            runs = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
        return [(at, [batch[int(i)] for i in at]) for at in runs]

    def _places(self, batch: Sequence[Input]) -> list[slice]:
        """Columns of each input in the padded batch."""
        lengths = [len(one.ids) for one in batch]
        width = max(lengths)
        return [slice(width - n, width) if self.padding == "left" else slice(0, n) for n in lengths]

    def _padded(
        self,
        batch: Sequence[Input],
        values: Sequence[Floats | NDArray[np.int32]],
        fill: float = np.nan,
    ) -> torch.Tensor:
        """A row for each input, padded on the side that leaves the answer alone, whatever the tokenizer would do."""
        kind = torch.float32 if np.isnan(fill) else torch.int64
        out = torch.full((len(batch), max(len(one.ids) for one in batch)), fill, dtype=kind)
        for row, (place, value) in enumerate(zip(self._places(batch), values, strict=True)):
            out[row, place] = torch.from_numpy(value).to(kind)
        return out.to(self._device)

    def _inputs(self, batch: Sequence[Input]) -> dict[str, torch.Tensor]:
        """What the model is called with."""
        given = {
            "input_ids": self._padded(batch, [one.ids for one in batch], self._pad),
            "attention_mask": self._padded(batch, [np.ones(len(one.ids)) for one in batch], 0),
        }
        if any(one.segments is not None for one in batch):
            segments = [
                np.zeros(len(one.ids)) if one.segments is None else one.segments for one in batch
            ]
            given["token_type_ids"] = self._padded(batch, segments, 0)
        return given

    @contextmanager
    def _between(self, ids: torch.Tensor, share: torch.Tensor) -> Iterator[list[_Step]]:
        """While inside, the text's embeddings are e_pad + share (e − e_pad), and leaves of the graph; share is nan elsewhere."""
        steps: list[_Step] = []

        def move(
            module: Any, given: Sequence[torch.Tensor], out: torch.Tensor
        ) -> torch.Tensor | None:
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

    def _received(
        self, attentions: Sequence[torch.Tensor], batch: Sequence[Input]
    ) -> NDArray[np.float32]:
        """What each piece receives from where the classifier reads, each layer and last the rollout, shape (L+1, B, T)."""
        means = [layer.detach().float().mean(dim=1) for layer in attentions]
        read = torch.zeros(
            len(batch), means[0].shape[-1]
        )  # weight of each position, rows sum to one
        for row, place in enumerate(self._places(batch)):
            if self.reads == "mean":
                read[row, place] = 1 / (place.stop - place.start)
            else:
                at = (
                    place.start + self._offset
                    if self.reads == "first"
                    else place.stop - 1 - self._offset
                )
                read[row, max(at, place.start)] = 1
        rolled = read = read.to(means[0])
        out = [torch.einsum("bt,bts->bs", read, mean) for mean in means]
        for mean in reversed(means):
            rolled = (torch.einsum("bt,bts->bs", rolled, mean) + rolled) / 2
        return torch.stack([*out, rolled]).cpu().numpy()

    def _find_padding(self, probe: list[Input]) -> str:
        """The side on which padding leaves the answer alone."""
        half = next(self._model.parameters()).dtype in (torch.float16, torch.bfloat16)
        with torch.inference_mode():
            found = [_numbers(self._model(**self._inputs([one])).logits) for one in probe]
            for one in found:
                if one.ndim != 2 or one.shape[1] != self.outputs.width:
                    raise InputError(
                        f"{type(self._model).__name__} returns outputs of shape {one.shape[1:]}, but its configuration lists "
                        f"{self.outputs.width} classes; it is not a text classifier"
                    )
            alone = np.concatenate(found)
            # logits of one input, alone and padded, agree to this fraction of their size
            size = (0.05 if half else 2e-3) * max(float(np.abs(alone).max()), 1e-3)
            for self.padding in ("right", "left"):
                if (
                    np.abs(_numbers(self._model(**self._inputs(probe)).logits) - alone).max()
                    <= size
                ):
                    return self.padding
        return "none"

    def _find_position(self, probe: list[Input]) -> tuple[str | None, int, int]:
        """Where the gradient of a random mix of the logits meets the last hidden states, and the number of layers."""
        nowhere = None, 0, 0
        if self.padding == "none" or not self.differentiable:
            return nowhere
        try:
            ids = self._inputs(probe)
            half = torch.full(ids["input_ids"].shape, 0.5, device=self._device)
            with (
                torch.enable_grad(),
                _implementation(self._model, "eager"),
                self._between(ids["input_ids"], half),
            ):
                out = self._model(**ids, output_attentions=True, output_hidden_states=True)
                mix = torch.randn(
                    out.logits.shape[-1], generator=torch.Generator().manual_seed(0)
                ).to(out.logits)
                (gradient,) = torch.autograd.grad((out.logits * mix).sum(), out.hidden_states[-1])
        except _UNREADABLE:  # hidden states that are not kept
            return nowhere
        if gradient.shape[:2] != ids["input_ids"].shape:
            return nowhere
        hit = (gradient.abs().sum(-1) > 0).cpu().numpy()
        read = [np.flatnonzero(hit[row, at]) for row, at in enumerate(self._places(probe))]
        given = list(getattr(out, "attentions", None) or [])
        square = all(
            isinstance(a, torch.Tensor) and a.ndim == 4 and a.shape[-1] == a.shape[-2]
            for a in given
        )
        layers, lengths = len(given) if square else 0, np.array([len(one.ids) for one in probe])
        if all(len(at) == n for at, n in zip(read, lengths, strict=True)):
            return "mean", 0, layers
        if all(len(at) == 1 for at in read):
            first = np.array([at[0] for at in read])
            if np.ptp(first) == 0:
                return "first", int(first[0]), layers
            if np.ptp(lengths - first) == 0:
                return "last", int(lengths[0] - 1 - first[0]), layers
        return nowhere


def _aligned(
    seen: object, ids: torch.Tensor, share: torch.Tensor
) -> tuple[torch.Tensor, _Back] | None:
    """The text's shares for ids as a module sees them: as they are, padded further (Longformer), transposed (XLNet), or shifted
    by one for a decoder (BART, T5); None for other ids."""
    if not isinstance(seen, torch.Tensor) or seen.ndim != 2:
        return None
    (rows, width), pad = ids.shape, torch.nn.functional.pad
    if seen.shape[0] == rows and seen.shape[1] >= width and torch.equal(seen[:, :width], ids):
        return pad(share, (0, seen.shape[1] - width), value=torch.nan), lambda x: x[:, :width]
    if seen.shape == ids.shape and torch.equal(seen[:, 1:], ids[:, :-1]):
        return pad(share[:, :-1], (1, 0), value=torch.nan), lambda x: pad(x[:, 1:], (0, 1))
    if seen.shape == (width, rows) and torch.equal(seen.T, ids):
        return share.T, lambda x: x.T
    return None


def _numbers(x: torch.Tensor) -> Floats:
    return x.detach().double().cpu().numpy()


@contextmanager
def _memory(batch: Sequence[Input]) -> Iterator[None]:
    """Say what to lower where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        signs = ("out of memory", "allocate memory", "not enough memory")
        if not isinstance(error, MemoryError) and not any(
            sign in str(error).lower() for sign in signs
        ):
            raise
        raise InputError(
            f"out of memory on {len(batch)} inputs of up to {max(len(one.ids) for one in batch):,} tokens: lower "
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


class LabelWords(torch.nn.Module):
    """A causal language model as a classifier: it predicts one of K words.

    The document is placed in a template, such as "Review: {text} Sentiment:" (for pairs of texts with {text} and {second}), and the
    logit of a class is log P(word | template) of its word as the next piece. `words` maps each class to its word, with a leading
    space if it is written with one (" good"). A template without {text}, or words that start with the same token, raise an
    InputError.
    """

    def __init__(
        self, model: Any, tokenizer: Any, words: Mapping[str, str], template: str | None = None
    ) -> None:
        super().__init__()
        template = template or "{text}\nLabel:"
        self._around = _PLACES.split(template)
        if _PLACES.findall(template) not in (["{text}"], ["{text}", "{second}"]):
            raise InputError(
                f"the template {template!r} must contain {{text}} once, where the document goes (and {{second}} after it, where "
                "the second of two texts goes)"
            )
        self.model, self.config, self.names = model, model.config, tuple(words)
        self._chosen = [_first_piece(tokenizer, self._around[-1], word) for word in words.values()]
        if len(set(self._chosen)) < len(words):
            raise InputError(
                f"the words {', '.join(map(repr, words.values()))} start with the same token, so the model's next token "
                "cannot distinguish them; choose others"
            )
        self.train(model.training)

    def frame(self, tokenizer: Any, paired: bool) -> Frame:
        """The parts of the template before, between and after the texts of a document; an InputError if it has places for
        another number of texts."""
        if paired != (len(self._around) == 3):
            have = "{second} needs pairs of texts"
            have = "pairs of texts need a template with {text} and {second}" if paired else have
            raise InputError(
                f"{have}: change --template, or pass --text {'once' if paired else 'twice'}"
            )
        whole = tokenizer("a", return_special_tokens_mask=True)
        start = whole["input_ids"][:1] if whole["special_tokens_mask"][0] else []
        before, *middle, after = [_piece_ids(tokenizer, part) for part in self._around]
        return Frame([*start, *before], after, middle[0] if middle else None)

    def untrained(self, seed: int) -> LabelWords:
        """The same, with freshly drawn weights."""
        out = LabelWords.__new__(LabelWords)
        torch.nn.Module.__init__(out)
        out.model = untrained_twin(self.model, seed)
        out.config, out.names, out._chosen, out._around = (
            out.model.config,
            self.names,
            self._chosen,
            self._around,
        )
        return out

    def get_input_embeddings(self) -> torch.nn.Module:
        """The embeddings of the language model."""
        found: torch.nn.Module = self.model.get_input_embeddings()
        return found

    def set_attn_implementation(self, kind: str) -> None:
        """Set the attention implementation of the language model."""
        self.model.set_attn_implementation(kind)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **more: object
    ) -> SimpleNamespace:
        """Log-probabilities of the words after the last piece that is not padding, as `logits`, shape (B, K)."""
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, **more)
        last = (attention_mask * torch.arange(input_ids.shape[1], device=input_ids.device)).argmax(
            dim=1
        )
        rows = torch.arange(len(last), device=last.device)
        logits = out.logits[rows, last].float().log_softmax(dim=-1)[:, self._chosen]
        hidden, attentions = getattr(out, "hidden_states", None), getattr(out, "attentions", None)
        return SimpleNamespace(logits=logits, hidden_states=hidden, attentions=attentions)


def _piece_ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"]) if text else []


def _first_piece(tokenizer: Any, before: str, word: str) -> int:
    """The piece that a word begins with after some text."""
    start, whole = _piece_ids(tokenizer, before), _piece_ids(tokenizer, before + word)
    if (
        len(whole) <= len(start) or whole[: len(start)] != start
    ):  # the word changes how the text before it is split
        start, whole = [], _piece_ids(tokenizer, word)
    if not whole:
        raise InputError(f"the tokenizer returns no token for the word {word!r}; choose another")
    return whole[len(start)]
