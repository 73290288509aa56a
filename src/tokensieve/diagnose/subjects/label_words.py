"""A causal language model as a classifier that answers with a word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from tokensieve.diagnose.subjects.frame import Frame
from tokensieve.diagnose.subjects.libraries import untrained_twin
from tokensieve.errors import InputError

_PLACES = re.compile(r"\{(?:text|second)\}")  # in a template
DEFAULT_TEMPLATE = "{text}\nLabel:"


class LabelWords(torch.nn.Module):
    """A causal language model as a classifier: it predicts one of K words.

    The document is placed in a template, such as "Review: {text} Sentiment:" (for pairs of texts
    with {text} and {second}). The logit of a class is log P(word | template) of its word as the
    next piece.

    Args:
        model, tokenizer: the language model.
        words: class → its word, with a leading space if it is written with one (" good").
        template: the text around the document; a new line and "Label:" after it if None.

    Raises:
        InputError: a template without {text}, or words that start with the same token.
    """

    def __init__(
        self, model: Any, tokenizer: Any, words: Mapping[str, str], template: str | None = None
    ) -> None:
        super().__init__()
        template = template or DEFAULT_TEMPLATE
        if _PLACES.findall(template) not in (["{text}"], ["{text}", "{second}"]):
            raise InputError(
                f"the template {template!r} must contain {{text}} once, where the document goes "
                "(and {second} after it, where the second of two texts goes)"
            )
        self._around = _PLACES.split(template)
        self.model = model
        self.config = model.config
        self.names = tuple(words)
        before = self._around[-1]
        self._chosen = [_first_piece(tokenizer, before, word) for word in words.values()]
        if len(set(self._chosen)) < len(words):
            raise InputError(
                f"the words {', '.join(map(repr, words.values()))} start with the same token, so "
                "the model's next token cannot distinguish them; choose others"
            )
        self.train(model.training)

    def frame(self, tokenizer: Any, paired: bool) -> Frame:
        """The parts of the template before, between and after the texts of a document.

        Raises:
            InputError: the template has places for another number of texts.
        """
        has_two_places = len(self._around) == 3
        if paired and not has_two_places:
            raise InputError(
                "pairs of texts need a template with {text} and {second}: change --template, "
                "or pass --text once"
            )
        if has_two_places and not paired:
            raise InputError(
                "{second} needs pairs of texts: change --template, or pass --text twice"
            )
        probe = tokenizer("a", return_special_tokens_mask=True)
        start = probe["input_ids"][:1] if probe["special_tokens_mask"][0] else []
        before, *middle, after = [_piece_ids(tokenizer, part) for part in self._around]
        return Frame([*start, *before], after, middle[0] if middle else None)

    def untrained(self, seed: int) -> LabelWords:
        """The same with freshly drawn weights."""
        twin = LabelWords.__new__(LabelWords)
        torch.nn.Module.__init__(twin)
        twin.model = untrained_twin(self.model, seed)
        twin.config = twin.model.config
        twin.names = self.names
        twin._chosen = self._chosen
        twin._around = self._around
        return twin

    def get_input_embeddings(self) -> torch.nn.Module:
        """The embeddings of the language model."""
        embeddings: torch.nn.Module = self.model.get_input_embeddings()
        return embeddings

    def set_attn_implementation(self, kind: str) -> None:
        """Set the attention implementation of the language model."""
        self.model.set_attn_implementation(kind)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **options: object
    ) -> SimpleNamespace:
        """Log-probabilities of the words after the last piece of text, as `logits`, (B, K)."""
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, **options)
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        last = (attention_mask * positions).argmax(dim=1)
        rows = torch.arange(len(last), device=last.device)
        logits = out.logits[rows, last].float().log_softmax(dim=-1)[:, self._chosen]
        return SimpleNamespace(
            logits=logits,
            hidden_states=getattr(out, "hidden_states", None),
            attentions=getattr(out, "attentions", None),
        )


def _piece_ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"]) if text else []


def _first_piece(tokenizer: Any, before: str, word: str) -> int:
    """The piece that a word begins with after some text."""
    start = _piece_ids(tokenizer, before)
    tokens = _piece_ids(tokenizer, before + word)
    is_continued = len(tokens) > len(start) and tokens[: len(start)] == start
    if not is_continued:  # the word changes how the text before it is split
        start = []
        tokens = _piece_ids(tokenizer, word)
    if not tokens:
        raise InputError(f"the tokenizer returns no token for the word {word!r}; choose another")
    return tokens[len(start)]
