"""A language model as a classifier: by the log-probabilities of the words that it may answer with.

The document stands in a template, such as "Review: {text} Sentiment:", and the logit of a class is log P(word | template) of its
word as the next piece. Everything else is as for a model made for classification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from tokensieve.diagnose.subjects.weights import untrained_twin
from tokensieve.diagnose.subjects.windows import Frame
from tokensieve.errors import InputError

_TEMPLATE = "{text}\nLabel:"
_PLACES = re.compile(r"\{(?:text|second)\}")


class LabelWords(torch.nn.Module):
    """A causal language model that answers with one of K words.

    Args:
        model: a causal language model of transformers.
        tokenizer: its fast tokenizer.
        words: class → the word that answers it, with its leading space if it is written with one (" good").
        template: text around the document, with {text} in its place; for pairs of texts with {text} and {second}.

    Raises:
        InputError: the template does not hold {text} once, or two words begin with the same piece.
    """

    def __init__(self, model: Any, tokenizer: Any, words: Mapping[str, str], template: str | None = None) -> None:
        super().__init__()
        template = template or _TEMPLATE
        self._around = _PLACES.split(template)
        if _PLACES.findall(template) not in (["{text}"], ["{text}", "{second}"]):
            raise InputError(
                f"the template {template!r} must hold {{text}} once, where the document goes (and {{second}} behind it for the "
                "second of two texts)"
            )
        self.model, self.config, self.names = model, model.config, tuple(words)
        chosen = [_first_piece(tokenizer, self._around[-1], word) for word in words.values()]
        if len(set(chosen)) < len(words):
            raise InputError(
                f"the words {', '.join(map(repr, words.values()))} do not begin with pieces of their own, so that the next piece "
                "cannot tell them apart: choose others"
            )
        self._chosen = chosen
        self.train(model.training)

    def frame(self, tokenizer: Any, paired: bool) -> Frame:
        """The template as what stands before, between and after the texts of a document.

        Raises:
            InputError: it has places for another number of texts.
        """
        if paired != (len(self._around) == 3):
            have = (
                "pairs of texts need a template with {text} and {second}" if paired else "{second} needs pairs of texts"
            )
            raise InputError(f"{have}: change --template, or give --text {'once' if paired else 'twice'}")
        whole = tokenizer("a", return_special_tokens_mask=True)
        special = [i for i, mark in zip(whole["input_ids"], whole["special_tokens_mask"], strict=True) if mark]
        start = special[:1] if special and whole["input_ids"][0] == special[0] else []
        before, *middle, after = [
            tokenizer(part, add_special_tokens=False)["input_ids"] if part else [] for part in self._around
        ]
        return Frame([*start, *before], list(after), list(middle[0]) if middle else None)

    def untrained(self, seed: int) -> LabelWords:
        """The same with freshly drawn weights."""
        out = LabelWords.__new__(LabelWords)
        torch.nn.Module.__init__(out)
        out.model = untrained_twin(self.model, seed)
        out.config, out.names, out._chosen, out._around = out.model.config, self.names, self._chosen, self._around
        return out

    def get_input_embeddings(self) -> Any:
        """Of the language model."""
        return self.model.get_input_embeddings()

    def set_attn_implementation(self, kind: str) -> None:
        """Of the language model."""
        self.model.set_attn_implementation(kind)

    def forward(self, input_ids: Any, attention_mask: Any, **more: Any) -> Any:
        """Log-probabilities of the words after the last piece that is no padding, as `logits`, shape (B, K)."""
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, **more)
        last = (attention_mask * torch.arange(input_ids.shape[1], device=input_ids.device)).argmax(dim=1)
        rows = torch.arange(len(last), device=last.device)
        logits = out.logits[rows, last].float().log_softmax(dim=-1)[:, self._chosen]
        hidden, attentions = getattr(out, "hidden_states", None), getattr(out, "attentions", None)
        return SimpleNamespace(logits=logits, hidden_states=hidden, attentions=attentions)


def _first_piece(tokenizer: Any, before: str, word: str) -> int:
    """The piece that a word begins with behind some text."""

    def pieces(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"]) if text else []

    start, whole = pieces(before), pieces(before + word)
    if len(whole) <= len(start) or whole[: len(start)] != start:  # the word changes how the text before it is split
        start, whole = [], pieces(word)
    if not whole:
        raise InputError(f"the tokenizer gives nothing for the word {word!r}: choose another")
    return whole[len(start)]
