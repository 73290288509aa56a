"""What predicts scores by itself, and what differs between training and given test documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.alone import MAX_LOSS_OF_FIELD, N_FEATURES_NAMED, Part, parts_of
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.phrases import quoted
from tokensieve.auditing.scores.context import ScoreContext
from tokensieve.task.score_measures import Measure, ScoreMeasures
from tokensieve.wording import plain

MIN_R2 = 0.05  # at the lower end of its interval, as 5 points of accuracy are for classes
SEVERITY_PER_R2 = 0.2  # as an audit of classes weighs a document that a part predicts


def alone(context: ScoreContext) -> Iterator[Finding]:
    """Formatting, length, other columns or one of several fields that predict the score by
    themselves.
    """
    if not context.thorough:
        return
    best_column = MIN_R2
    learned = context.learned
    everything = context.task.measures(learned.f[:, 0], learned.test, context.settings.seed)
    for part in parts_of(learned.train):
        if not 1 < len(part.types) < learned.train.counts.n_types:
            continue
        measures = _measures_of(context, part.types)
        if measures.r2.low < MIN_R2:
            continue
        if part.is_field and measures.r2.value < everything.r2.value - MAX_LOSS_OF_FIELD:
            continue
        if part.is_metadata and measures.r2.low < best_column:
            continue  # one of the columns predicts as well
        if part.is_column:
            best_column = max(best_column, measures.r2.value)
        yield _alone_finding(context, part, measures.r2, everything.r2)


def _measures_of(context: ScoreContext, types: Ints) -> ScoreMeasures:
    """Train a model on some token types only, and measure its predictions of the test documents."""
    learned = context.learned
    refitted = context.task.refit(types, learned.train, learned.model, context.settings)
    predicted = refitted.logits(learned.test.with_types(types).matrix)[:, 0]
    return context.task.measures(predicted, learned.test, context.settings.seed)


def _alone_finding(
    context: ScoreContext, part: Part, r2: Measure, r2_of_everything: Measure
) -> Finding:
    by_significance = np.argsort(context.importance.p_value[part.types], kind="stable")
    named = part.types[by_significance[:N_FEATURES_NAMED]]
    tokens = [str(context.learned.train.counts.tokens[s]) for s in named]
    reached = min(1.0, r2.low / max(r2_of_everything.value, r2.low))
    return Finding(
        kind="alone",
        severity=SEVERITY_PER_R2 * r2.low * reached,
        tokens=tuple(tokens),
        documents=context.learned.test.counts.n_documents,
        title="One part alone predicts the score",
        headline=(
            f"{part.name} alone predicts test scores with R² {plain(r2.value)} "
            f"(95% CI {plain(r2.low)} to {plain(r2.high)})"
        ),
        details=(
            f"everything together reaches R² {plain(r2_of_everything.value)}; 0 is the mean score",
            f"the {len(named)} most significant features of this part are {quoted(tokens)}",
        ),
        action=(
            "Should this part determine the score? If not, models can reach this R² without "
            "learning the task: balance the data, or compare your models with it."
        ),
        exploitable=True,
    )


def drift(context: ScoreContext) -> Iterator[Finding]:
    """Tokens that are far more frequent on one side of a given split than on the other.

    The audit of documents above the mean score and the others compares them at the same mix of
    both, so that higher scores on one side are no drift by themselves.
    """
    if not context.test_given:
        return
    for finding in context.of_halves.findings:
        if finding.kind == "drift":
            yield replace(
                finding,
                action=(
                    "Find out why training and test documents differ before you trust the error "
                    "on test documents."
                ),
            )
