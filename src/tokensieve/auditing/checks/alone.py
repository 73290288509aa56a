"""One part of the documents that predicts the label by itself: formatting, length, other columns,
or one of several fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.splits import information
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Finding,
    Findings,
    Labels,
)
from tokensieve.auditing.data import FewWords
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.task.refitted import RefitComparison, compare_refit
from tokensieve.text.tokenizers import FieldTokenizer
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural

N_FEATURES_NAMED = 15  # those of most information
MIN_GAIN = 0.05  # of accuracy over always predicting the largest class, at the conservative bound
# a field that loses less than this against all fields together predicts as well, for a reader
MAX_LOSS_OF_FIELD = 0.02
WEIGHT = 0.2  # of a document that this part predicts
ALONE = " alone predicts "  # stands after the part's name in a headline


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the documents.

    Attributes:
        name: begins a sentence.
        types: its token types.
        is_column, is_metadata, is_field: whether it is another column, all of them, or one of
            several text fields.
    """

    name: str
    types: Ints
    is_column: bool = False
    is_metadata: bool = False
    is_field: bool = False


class Alone(Check):
    """No single word may show this: many weak associations together can predict the label."""

    name = "alone"
    title = "One part alone predicts the label"
    about = (
        "Formatting alone, length alone, one of the --columns or all of them together predict the "
        "test labels at least 5 points better than always predicting the largest class (95% CI), "
        "or one of several text fields does and loses less than 2 points against all fields "
        "together. The finding lists the 15 most informative features and the accuracy they reach "
        "by themselves."
    )
    action = (
        "Should this part determine the label? If not, models can reach this accuracy without "
        "learning the task: balance the data, or compare your models with the accuracy of this "
        "part alone."
    )
    tasks = (Labels,)
    thorough = True
    exploitable = True

    def find(self, audit: AuditContext) -> Findings:
        majority = audit.totals["majority_accuracy"]
        best_column = majority + MIN_GAIN
        for part in parts_of(audit.train):
            comparison = _trained_on(part.types, audit)
            if comparison is None:
                continue
            alone = comparison.some_types
            if alone.low < majority + MIN_GAIN:
                continue
            if part.is_field and comparison.difference.high < -MAX_LOSS_OF_FIELD:
                continue
            if part.is_metadata and alone.low < best_column:
                continue  # one of the columns predicts as well
            if part.is_column:
                best_column = max(best_column, alone.value)
            yield self._finding_about(part, comparison, audit)

    def _finding_about(
        self, part: Part, comparison: RefitComparison, audit: AuditContext
    ) -> Finding:
        """The finding that one part of the documents predicts the label by itself.

        Its severity is the gain of that part over the largest class, times the fraction of the
        whole model's gain that it reaches.
        """
        majority = audit.totals["majority_accuracy"]
        alone = comparison.some_types
        all_types = comparison.all_types
        named = _most_informative(part.types, audit)
        tokens = [str(audit.train.counts.tokens[s]) for s in named]
        informative = None
        if len(named) < len(part.types):
            informative = _trained_on(named, audit)
        evidence = {"alone": alone, "all": all_types}
        features = f"the {len(named)} most informative features of this part are {quoted(tokens)}"
        if informative is not None:
            evidence["informative"] = informative.some_types
            features += f"; these alone predict {percent(informative.some_types.value)}"
        # of the gain of the whole model: the other words may say the same
        gain = alone.low - majority
        reached = min(1.0, gain / max(all_types.value - majority, gain))
        subject = f"{part.name[:1].lower()}{part.name[1:]}"
        comparison_text = (
            "all fields together predict" if part.is_field else "the whole text predicts"
        )
        return self.finding(
            audit,
            severity=WEIGHT * gain * reached,
            headline=(
                f"{part.name}{ALONE}{percent(alone.value)} of test labels correctly "
                f"({percent(majority)} by always predicting the largest class)"
            ),
            tokens=tokens,
            evidence=evidence,
            documents=ConcernedDocuments(total=alone.of),
            details=(
                f"a model of {subject} alone predicts {alone} of "
                f"{plural(alone.of, 'test document')}; {comparison_text} "
                f"{percent(all_types.value)}",
                features,
            ),
        )


def part_of_headline(headline: str) -> str:
    """The name of the part that a finding's headline is about, as in "The field hypothesis"."""
    return headline.partition(ALONE)[0]


def few_words(audit: AuditContext) -> FewWords:
    """The most informative words, and what a model of these and length alone predicts.

    This is not a finding, because nobody can know whether a text should need more.
    """
    words = _most_informative(np.arange(audit.n_words), audit)
    names = [str(token) for token in audit.train.counts.tokens]
    lengths = [s for s in range(audit.n_words, len(names)) if "⟨length " in names[s]]
    types = np.append(words, np.array(lengths, dtype=np.int64))
    return FewWords(tuple(names[s] for s in words), _trained_on(types, audit))


def parts_of(train: CountedCorpus) -> Iterator[Part]:
    """The parts that the documents have."""
    names = [str(token) for token in train.counts.tokens]
    formatting = range(train.vocabulary.n_words, len(names))
    yield Part("Formatting", np.array(formatting, dtype=np.int64))
    lengths = [s for s in formatting if "⟨length " in names[s]]
    yield Part("Length", np.array(lengths, dtype=np.int64))

    def types_of(*fields: str) -> Ints:
        tokenizer = train.vocabulary.tokenizer
        assert isinstance(tokenizer, FieldTokenizer)
        prefixes = tuple(tokenizer.prefixes[field] for field in fields)
        types = [s for s, name in enumerate(names) if name.startswith(prefixes)]
        return np.array(types, dtype=np.int64)

    corpus = train.corpus
    for column in corpus.columns:
        name = f"The column {for_display(column, IN_SENTENCE)}"
        yield Part(name, types_of(column), is_column=True)
    if len(corpus.columns) > 1:
        listed = ", ".join(for_display(column, IN_SENTENCE) for column in corpus.columns)
        yield Part(f"The metadata ({listed})", types_of(*corpus.columns), is_metadata=True)
    texts = [field for field in corpus.fields if field not in corpus.columns]
    if len(texts) > 1:
        for field in texts:
            name = f"The field {for_display(field, IN_SENTENCE)}"
            yield Part(name, types_of(field), is_field=True)


def _most_informative(types: Ints, audit: AuditContext) -> Ints:
    """Sort some token types by how much they tell about the class of a document, most first."""
    class_documents = audit.importance.class_documents[types]
    bits = information(class_documents, audit.class_sizes)
    return types[np.argsort(-bits, kind="stable")[:N_FEATURES_NAMED]]


def _trained_on(types: Ints, audit: AuditContext) -> RefitComparison | None:
    """The model beside one of these types alone; None for one, none or all of them."""
    if not 1 < len(types) < audit.train.counts.n_types:
        return None
    return compare_refit(audit.learned, types, audit.settings)
