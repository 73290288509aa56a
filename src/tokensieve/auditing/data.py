"""What an audit measured: numbers and tables. Sentences, commands and files are made from it
elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from tokensieve.auditing.any_audit import AnyAudit, Invocation
from tokensieve.auditing.artefacts.controls import Controls
from tokensieve.auditing.balance_plan import BalancePlan
from tokensieve.auditing.examples import RankedPredictions, rank_predictions, sample_passages
from tokensieve.auditing.findings import ROWS, Finding
from tokensieve.auditing.limits import tokens_over
from tokensieve.auditing.misleading import WhereMisleading
from tokensieve.auditing.model_card import ModelCard
from tokensieve.auditing.preferences import PreferenceFacts
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.report.blocks import Passage
from tokensieve.task.agreement import FLOOR, Quadrant
from tokensieve.task.refitted import RefitComparison
from tokensieve.task.tasks import CorpusModel
from tokensieve.text.vocabulary import CountedCorpus

MAX_CLASSES_IN_ERROR = 10


@dataclass(frozen=True)
class FewWords:
    """The most informative words, and what they predict.

    Attributes:
        words: most informative first.
        comparison: the model beside one of these words and length alone; None if that is all there
            is.
    """

    words: tuple[str, ...]
    comparison: RefitComparison | None


@dataclass(frozen=True, repr=False)
class AuditData(AnyAudit):
    """What an audit measured.

    Attributes:
        learned: the trained model, and the documents it was trained and tested on.
        settings: as given.
        tokens: a row per token type and class: the columns of `Importance.to_frame`, then score u,
            value w, attention (relative to a uniform share, averaged over the documents containing
            the token) and quadrant.
        neutral: class → posterior difference of a token that predicts nothing.
        attention_share: quadrant → (fraction of all attention, fraction of uniform attention) of
            its types, means over training documents; both sum to one.
        findings: what to act on, most serious first.
        baseline: test accuracy of TF-IDF + logistic regression on the same token counts (`before`)
            beside the model's, item by item; None without the baseline.
        without_shortcuts: accuracy with and without the shortcut tokens; None if there are none.
        misleading: the model, the one without the shortcuts and others where shortcuts mislead.
        controls: what the search for artefacts finds where the truth is known; None for pairs.
        balance_plan: which shortcuts weights can balance, as `mask` cannot cut them.
        few_words: what the most informative words alone predict; None for pairs.
        label_issues: training documents that may have the wrong label (row, label, looks_like,
            margin, against).
        labels_not_judged: classes that the models cannot predict, so that it cannot be said which
            of their labels are wrong.
        environments: for each token type and class, its effect in each environment and whether the
            effects agree; empty without environments.
        curve: test accuracy by number of training documents; empty if it was not measured.
        pairs: further results for preference pairs; None for labels.
        seconds: reading, tokenizing, training, baseline, …, total.
        invocation: how the command was called; None for an audit in Python.
        test_given: whether the test documents were given rather than drawn at random.
    """

    learned: CorpusModel
    settings: Settings
    tokens: pl.DataFrame
    neutral: dict[str, float]
    attention_share: dict[str, tuple[float, float]]
    findings: tuple[Finding, ...] = ()
    baseline: PairedDifference | None = None
    without_shortcuts: RefitComparison | None = None
    misleading: WhereMisleading = field(default_factory=WhereMisleading)
    balance_plan: BalancePlan = field(default_factory=BalancePlan)
    few_words: FewWords | None = None
    controls: Controls | None = None
    label_issues: pl.DataFrame = field(default_factory=pl.DataFrame)
    labels_not_judged: tuple[str, ...] = ()
    environments: pl.DataFrame = field(default_factory=pl.DataFrame)
    curve: pl.DataFrame = field(default_factory=pl.DataFrame)
    pairs: PreferenceFacts | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    invocation: Invocation | None = None
    test_given: bool = False

    # ---- the data

    @property
    def unknown_share(self) -> float:
        """Fraction of the words in the test documents that are too rare in training to be
        tokens."""
        return float(self.learned.summary["unknown_share"])

    @property
    def seed(self) -> int:
        """The seed of the split and of training."""
        return self.settings.seed

    # ---- the model on its test documents

    @cached_property
    def accuracy(self) -> Share:
        """Test documents (of pairs, pairs) predicted correctly, with an interval over groups if
        documents are grouped."""
        return self.learned.task.accuracy(self.learned.f, self.learned.test)

    @property
    def test_accuracy(self) -> float:
        """`accuracy` as a number."""
        return float(self.learned.summary["test_accuracy"])

    @property
    def baseline_accuracy(self) -> float | None:
        """Test accuracy of TF-IDF + logistic regression; None without the baseline."""
        return None if self.baseline is None else self.baseline.before

    @property
    def majority_accuracy(self) -> float:
        """Test accuracy of always predicting the largest class of the training documents."""
        return float(self.learned.summary["majority_accuracy"])

    @property
    def class_recall(self) -> dict[str, float | None]:
        """Class → fraction of its test documents predicted correctly (None if it has none)."""
        return dict(self.learned.summary["class_recall"])

    @cached_property
    def card(self) -> ModelCard | None:
        """Precision, recall, calibration and the like; None for pairs."""
        if not self.learned.task.classifies:
            return None
        logits = self.learned.f
        if logits.shape[1] == 1:
            logits = logits[:, 0]
        class_sizes = self.learned.train.counts.class_sizes
        return ModelCard.of(logits, self.learned.test.word_counts, class_sizes, self.curve)

    @cached_property
    def ranked_predictions(self) -> RankedPredictions:
        """The test documents by confidence."""
        return rank_predictions(self.learned)

    @cached_property
    def examples(self) -> list[Passage]:
        """Ten test documents in pieces with their contributions to the prediction."""
        return sample_passages(self.learned, self.ranked_predictions)

    # ---- tokens

    @cached_property
    def quadrants(self) -> dict[Quadrant, int]:
        """The number of token types in each quadrant of importance and attention."""
        sizes = dict(self.tokens.group_by("quadrant").agg(pl.col("token").n_unique()).iter_rows())
        return {quadrant: sizes.get(quadrant.value, 0) for quadrant in Quadrant}

    @property
    def n_predictive(self) -> int:
        """The number of token types that predict a label (q < 0.05)."""
        return self.quadrants[Quadrant.BOTH] + self.quadrants[Quadrant.DATA]

    def top(self, label: object = None, rows: int = 10) -> pl.DataFrame:
        """The strongest predictors of a class, given by name (1 is "1"), or of any class.

        Only tokens with q < 0.05 in at least 5 documents, ordered by the conservative bound of
        their posterior difference.

        Raises:
            InputError: there is no such class.
        """
        if label is not None and str(label) not in self.classes:
            names = ", ".join(repr(name) for name in self.classes[:MAX_CLASSES_IN_ERROR])
            raise InputError(f"{label!r:.60} is not a class of this audit; its classes are {names}")
        predictive = self.tokens.lazy().filter(
            pl.lit(label is None) | (pl.col("class") == str(label)),
            pl.col("q_value") < LEVEL,
            pl.col("effect") > 0,
            pl.col("documents") >= FLOOR,
        )
        ordered = predictive.sort("posterior_low", "token", descending=[True, False])
        return ordered.head(rows).collect()

    def top_of_each_class(self, rows: int) -> dict[str, list[str]]:
        """The tokens of `top` of every class, in one pass over the table."""
        strongest = self.top(rows=self.tokens.height)
        listed = strongest.group_by("class", maintain_order=True).agg(pl.col("token").head(rows))
        none: dict[str, list[str]] = {label: [] for label in self.classes}
        return none | dict(listed.iter_rows())

    def disagreement(self, quadrant: Quadrant | str, rows: int = 10) -> pl.DataFrame:
        """Tokens of one quadrant, in at least 5 documents, each for the class it predicts most.

        Largest effect first; of `Quadrant.MODEL` most attended first, and only those with p ≥ 0.05,
        before any correction for the number of tokens.
        """
        quadrant = Quadrant(quadrant)
        in_quadrant = self.tokens.lazy().filter(
            pl.col("quadrant") == quadrant.value,
            pl.col("effect") > 0,
            pl.col("documents") >= FLOOR,
        )
        by_effect = in_quadrant.sort("effect", "token", descending=[True, False])
        tokens = by_effect.unique("token", maintain_order=True)
        if quadrant is Quadrant.MODEL:
            without_evidence = tokens.filter(pl.col("p_value") >= LEVEL)
            tokens = without_evidence.sort("attention", "token", descending=[True, False])
        return tokens.head(rows).collect()

    # ---- findings

    # ---- what --fail-on allows

    @cached_property
    def over_budget(self) -> pl.DataFrame:
        """The rows of `tokens` that exceed `settings.budget`; none without one."""
        if self.settings.budget is None:
            return self.tokens.clear()
        return tokens_over(self.settings.budget, self.tokens, self.class_documents)

    @cached_property
    def to_review(self) -> pl.DataFrame:
        """token, part, row and label of every document that contains a token of `over_budget`."""
        tables = [pl.DataFrame(schema=ROWS)]
        tokens = self.over_budget["token"].unique(maintain_order=True)
        if len(tokens):
            tables.append(_rows_with_each(tokens, self.learned.train, "train"))
            tables.append(_rows_with_each(tokens, self.learned.test, "test"))
        return pl.concat(tables)

    @property
    def fails(self) -> bool:
        """Whether a token or another finding exceeds the limits."""
        return super().fails or not self.over_budget.is_empty()


def _rows_with_each(tokens: pl.Series, part: CountedCorpus, name: str) -> pl.DataFrame:
    """The documents of one side that contain each token, in the order of the tokens, then of
    rows."""
    number_of_type = {str(token): number for number, token in enumerate(part.counts.tokens)}
    types = np.array([number_of_type[token] for token in tokens], dtype=np.int64)
    tables = []
    for token, documents in zip(tokens, part.counts.holders(types), strict=True):
        rows = part.corpus.rows_of(documents, name, token)
        tables.append(rows.sort("row", maintain_order=True))
    return pl.concat(tables)
