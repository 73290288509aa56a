"""A language model as a classifier: by the log-probabilities of the words that it may answer with.

The document stands in a template, such as "Review: {text} Sentiment:", and the logit of a class is log P(word | template) of its
word as the next piece. Everything else is as for a model made for classification.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from tokensieve.diagnose.encoding import Frame
from tokensieve.errors import InputError


class LabelWords(torch.nn.Module):
    """A causal language model that answers with one of K words.

    Args:
        model: a causal language model of transformers.
        tokenizer: its fast tokenizer.
        words: class → the word that answers it, with its leading space if it is written with one (" good").
        template: text around the document, with {text} in its place.

    Raises:
        InputError: the template has no {text}, or two words begin with the same piece.
    """

    def __init__(
        self, model: Any, tokenizer: Any, words: Mapping[str, str], template: str = "{text}\nLabel:"
    ) -> None:  # fmt: skip
        super().__init__()
        if template.count("{text}") != 1:
            raise InputError(f"the template {template!r} must hold {{text}} once, where the document goes")
        self.model, self.config, self.names = model, model.config, tuple(words)
        pieces = {name: tokenizer(word, add_special_tokens=False)["input_ids"][:1] for name, word in words.items()}
        chosen = [ids[0] for ids in pieces.values() if ids]
        if len(set(chosen)) < len(words):
            raise InputError(
                f"the words {', '.join(map(repr, words.values()))} do not begin with pieces of their own, so that the next piece "
                "cannot tell them apart: choose others"
            )
        self._chosen, self._template, self._tokenizer = chosen, template, tokenizer
        self.train(model.training)

    def frame(self, tokenizer: Any) -> Frame:
        """The template as what stands before and after a document."""
        before, after = self._template.split("{text}")
        whole = tokenizer("a", return_special_tokens_mask=True)
        special = [i for i, mark in zip(whole["input_ids"], whole["special_tokens_mask"], strict=True) if mark]
        start = special[:1] if special and whole["input_ids"][0] == special[0] else []
        ids = [tokenizer(part, add_special_tokens=False)["input_ids"] if part else [] for part in (before, after)]
        return Frame([*start, *ids[0]], list(ids[1]))

    def untrained(self, seed: int) -> LabelWords:
        """The same with freshly drawn weights."""
        from tokensieve.diagnose.loading import untrained_twin

        words = dict.fromkeys(self.names, "")
        out = LabelWords.__new__(LabelWords)
        torch.nn.Module.__init__(out)
        out.model = untrained_twin(self.model, seed)
        out.config, out.names = out.model.config, tuple(words)
        out._chosen, out._template, out._tokenizer = self._chosen, self._template, self._tokenizer
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
