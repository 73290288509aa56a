"""How accurate models are where a mark no longer tells the class.

A test set that was drawn with the training data contains the same shortcut, so a model that relies
on it looks accurate there. These groups of test documents break the link between a mark and its
class:
- *contradicts*: documents of other classes that contain the mark;
- *without*: documents that do not contain it;
- *removed*: copies, without the mark, of the documents of its class that contain it;
- *inserted*: copies, with the mark, of documents of other classes that do not contain it. It is put
  where it usually stands: at the start or the end if it is there in most texts, else between two
  words drawn at random.

The accuracy in the worst group is what group-robust training is judged by (Sagawa et al. 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.auditing.masking import mask_texts
from tokensieve.evidence.paired import PairedDifference
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer

GroupName = Literal["all", "contradicts", "without", "removed", "inserted"]
CHANGED_GROUPS: tuple[GroupName, ...] = ("removed", "inserted")
ClassNames = NDArray[np.str_]
Texts = pl.Series | StoredTexts
Predictor = Callable[[pl.Series], Sequence[str] | ClassNames]  # texts → class names

MIN_GROUP_DOCUMENTS = 20  # of fewer, a 95% interval of an accuracy is wider than ±20 points
# A mark that stands at one end of most of its texts was put there; elsewhere a place is drawn.
MOST_TEXTS = 0.8


@dataclass(frozen=True)
class LinkGroup:
    """Test documents in which a mark does not tell the class.

    Attributes:
        name: which of the groups of the module's docstring.
        texts: the documents, or their changed copies.
        labels: class name of each, shape (n,).
        documents: their positions among the test documents, shape (n,).
    """

    name: GroupName
    texts: Texts
    labels: ClassNames
    documents: Ints

    @property
    def is_changed(self) -> bool:
        """Whether the texts are changed copies, which nobody but a model can classify."""
        return self.name in CHANGED_GROUPS


Judge = Callable[[LinkGroup], ClassNames | None]  # None if it cannot classify the group


def judge_of_model(predict: Predictor, known: ClassNames) -> Judge:
    """Classifies changed copies; of the documents as they are, the predictions are known, (n,)."""

    def judge(group: LinkGroup) -> ClassNames:
        if not group.is_changed:
            return known[group.documents]
        return np.asarray(predict(group.texts[:])).astype(np.str_)

    return judge


def judge_of_predictions(predicted: ClassNames) -> Judge:
    """Looks up the predictions of test documents, shape (n,); it has none of changed copies."""
    return lambda group: None if group.is_changed else predicted[group.documents]


@dataclass(frozen=True)
class Mark:
    """Words or forms that give a class away.

    Attributes:
        tokens: as an audit writes them; a document contains the mark if it contains one of them.
        label: the class that they predict.
    """

    tokens: tuple[str, ...]
    label: str

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens that can be removed from a text and put into one."""
        return tuple(token for token in self.tokens if not is_formatting(token))


@dataclass(frozen=True)
class GroupAccuracy:
    """Which documents of a group two models classify correctly.

    Attributes:
        group: the group.
        n_documents: how many documents it has.
        is_correct_before: shape (n,).
        is_correct_after: shape (n,).
        units: which documents belong together, shape (n,); None if all are independent.
    """

    group: GroupName
    n_documents: int
    is_correct_before: NDArray[np.bool_]
    is_correct_after: NDArray[np.bool_]
    units: Ints | None = None

    @property
    def before(self) -> float:
        """Accuracy of the first model."""
        return float(self.is_correct_before.mean())

    @property
    def after(self) -> float:
        """Accuracy of the second model."""
        return float(self.is_correct_after.mean())

    @cached_property
    def difference(self) -> PairedDifference:
        """The change from the first model to the second on the same documents, with its 95%
        interval and a test."""
        return PairedDifference.of(
            self.is_correct_before.astype(np.float64),
            self.is_correct_after.astype(np.float64),
            self.units,
        )


def link_groups(
    texts: Texts,
    labels: ClassNames,
    contains: NDArray[np.bool_],
    mark: Mark,
    tokenizer: Tokenizer,
    max_copies: int | None = None,
) -> list[LinkGroup]:
    """The groups that have enough documents.

    Args:
        texts: test documents.
        labels: class name of each, shape (n,).
        contains: whether each contains the mark, shape (n,).
        mark: the mark. If it is formatting alone, nothing is removed or inserted.
        tokenizer: splits the texts into the mark's tokens.
        max_copies: of larger groups of changed copies, only the first of these are made.
    """
    is_of_class = labels == mark.label
    members: dict[GroupName, NDArray[np.bool_]] = {
        "contradicts": contains & ~is_of_class,
        "without": ~contains,
    }
    if mark.words:
        members["removed"] = contains & is_of_class
    # a text of several fields has no one place where a mark usually stands
    if mark.words and not isinstance(tokenizer, FieldTokenizer):
        members["inserted"] = ~contains & ~is_of_class
    groups = []
    for name, is_member in members.items():
        documents = np.flatnonzero(is_member)
        if len(documents) < MIN_GROUP_DOCUMENTS:
            continue
        if name in CHANGED_GROUPS:
            documents = documents[:max_copies]
        own_texts = texts.gather(documents)
        if name == "removed":
            own_texts, _ = mask_texts(own_texts, mark.words, tokenizer)
        elif name == "inserted":
            marked_texts = texts.gather(np.flatnonzero(contains))
            own_texts = insert_mark(own_texts, mark, marked_texts, tokenizer)
        groups.append(LinkGroup(name, own_texts, labels[documents], documents))
    return groups


def insert_mark(
    texts: pl.Series, mark: Mark, marked_texts: pl.Series, tokenizer: Tokenizer, seed: int = 0
) -> pl.Series:
    """Put one of the mark's words, as often as it occurs, where it usually stands in its texts."""
    occurrences = [_first_occurrence(text, mark.words, tokenizer) for text in marked_texts]
    known_occurrences = [occurrence for occurrence in occurrences if occurrence is not None]
    if not known_occurrences:
        return texts
    fraction_first = np.mean([occurrence.is_first for occurrence in known_occurrences])
    fraction_last = np.mean([occurrence.is_last for occurrence in known_occurrences])
    rng = np.random.default_rng(seed)
    changed = []
    for text in texts:
        written = known_occurrences[int(rng.integers(len(known_occurrences)))].written
        if fraction_first >= MOST_TEXTS:
            changed.append(f"{written} {text}")
        elif fraction_last >= MOST_TEXTS:
            changed.append(f"{text} {written}")
        else:
            changed.append(_insert_between_words(text, written, tokenizer, rng))
    return pl.Series(texts.name, changed, dtype=pl.String)


@dataclass(frozen=True)
class _Occurrence:
    """A word of the mark as a text writes it, and whether it is the text's first or last word."""

    written: str
    is_first: bool
    is_last: bool


def _first_occurrence(text: str, tokens: Sequence[str], tokenizer: Tokenizer) -> _Occurrence | None:
    """The first of the tokens in a text, n-grams included; None if it contains none."""
    spans = tokenizer.spans(text)
    words = [word for _, _, word in spans]
    for token in tokens:
        parts = token.split(" ")
        for start in range(len(words) - len(parts) + 1):
            end = start + len(parts)
            if words[start:end] == parts:
                first_character = spans[start][0]
                last_character = spans[end - 1][1]
                written = text[first_character:last_character]
                return _Occurrence(written, start == 0, end == len(words))
    return None


def _insert_between_words(
    text: str, written: str, tokenizer: Tokenizer, rng: np.random.Generator
) -> str:
    """Put a word before a word of the text that is drawn at random, or behind its last one."""
    starts = [start for start, _, _ in tokenizer.spans(text)]
    drawn = int(rng.integers(len(starts) + 1))
    if drawn == len(starts):
        return f"{text} {written}"
    at = starts[drawn]
    return f"{text[:at]}{written} {text[at:]}"


def group_accuracies(
    groups: Sequence[LinkGroup], before: Judge, after: Judge, units: Ints | None = None
) -> list[GroupAccuracy]:
    """The accuracy of two models in each group of documents, sorted by the first model's, lowest
    first.

    Args:
        groups: groups that one of the models cannot classify are left out.
        before, after: the models.
        units: which test documents belong together, shape (n,); None if all are independent.
    """
    results = []
    for group in groups:
        predicted_before = before(group)
        predicted_after = after(group)
        if predicted_before is None or predicted_after is None:
            continue
        accuracy = GroupAccuracy(
            group=group.name,
            n_documents=len(group.labels),
            is_correct_before=predicted_before == group.labels,
            is_correct_after=predicted_after == group.labels,
            units=None if units is None else units[group.documents],
        )
        results.append(accuracy)
    return sorted(results, key=lambda result: result.before)


def documents_containing(
    texts: Texts, tokens: Sequence[str], tokenizer: Tokenizer
) -> NDArray[np.bool_]:
    """Whether each text contains one of the tokens, formatting included, shape (n,)."""
    from tokensieve.text.vocabulary import count_texts

    longest = max(token.count(" ") + 1 for token in tokens)
    counted = count_texts(
        texts, tokenizer=tokenizer, ngrams=longest, min_documents=1, formatting=True
    )
    names = {str(name): place for place, name in enumerate(counted.vocabulary.tokens)}
    types: Ints = np.array([names[token] for token in tokens if token in names], dtype=np.int64)
    occurrences = counted.matrix[:, types].sum(axis=1)
    return np.asarray(occurrences).reshape(-1) > 0
