"""A model of labelled documents on a Dask cluster, as `tokensieve.task.tasks.train_corpus` has it of documents on one machine.

The client holds of each document its label, row, prediction and a digest of its text; counts and texts stay with the workers, and
what an audit asks of them is computed or picked there (`tokensieve.model.remote`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance
from tokensieve.model.attention import Model
from tokensieve.model.cluster import Learned
from tokensieve.model.remote import Partitions, RemoteTexts, Sums
from tokensieve.model.settings import TrainSettings
from tokensieve.progress import Clock, Progress
from tokensieve.task.tasks import CorpusModel, Labels, Part
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer

NOT_COMPUTED = "near duplicates (repeats, leaks and contradictions count exact copies), groups that no column names, learning curve"


class _OnCluster(Labels):
    """Labelled documents on a cluster."""

    left_out: tuple[str, ...] = ("groups", "curve", "near duplicates")

    def __init__(self, training: Learned) -> None:
        self.training = training
        if training.settings.by is not None:  # its groups are made in one matrix
            self.left_out = (*self.left_out, "drift")

    def importance(self, part: Part) -> Importance:
        return self.training.importance

    def refit(self, counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
        return self.training.trained(counts)

    def recount(self, part: Part, tokenizer: Tokenizer, ngrams: int, min_documents: int) -> tuple[Counts, int]:
        vocabulary = self.training.learn_vocabulary(ngrams, min_documents)
        counts = self.training.counted(self.training.sides[0], vocabulary)
        return replace(counts, labels=part.counts.labels), len(vocabulary.words)


def train_remote(
    client: Any, source: Any, settings: TrainSettings, tokenizer: Tokenizer | None, tell: Progress, clock: Clock
) -> CorpusModel:
    """Read, count, learn and test on a cluster, for an audit.

    Args:
        client: a `dask.distributed.Client`; the default one if None.
        source: what `tokensieve.model.cluster.learn_on` reads.
        settings: with a test set, or a fraction for one.
        tokenizer: words if None.
        tell, clock: called with (stage, share done); keeps the seconds of the stages.

    Raises:
        InputError: as of `learn_on`.
    """
    if client is None:
        from dask.distributed import get_client

        try:
            client = get_client()
        except ValueError:
            raise InputError(
                "a Dask collection needs a cluster: start one, client = dask.distributed.Client()"
            ) from None
    if settings.test is None and settings.split is None and not 0 < settings.test_share < 1:
        raise InputError(f"the test share must lie between 0 and 1, not {settings.test_share}")
    stages = ["reading"]

    def timed(stage: str, share: float) -> None:
        if stage != stages[-1]:
            clock.lap(stages[-1])
            stages.append(stage)
        tell(stage, share)

    found = Learned(client, source, settings, tokenizer or WordTokenizer(), timed, texts=True)
    model = found.model.trained_
    timed("predicting", 0.0)
    paths = [source] if isinstance(source, str | Path) else source
    named = isinstance(paths, list | tuple) and all(isinstance(path, str | Path) for path in paths)
    name = ", ".join(PurePath(str(path)).name for path in paths[:3]) if named else "the partitions"
    train, test = (
        _part(found, name + " (test)" * i, side, counted)
        for i, (side, counted) in enumerate(zip(found.sides, (found.train, found.test), strict=True))
    )
    notes = [*found.intake.lines(), *train.notes(test)]
    n = len(found.sides[0].parts)
    plural = "one partition" if n == 1 else f"{n:,} partitions"
    notes.append(
        f"trained on a cluster: the model is an average over {plural} of the documents, so its accuracy is similar to "
        "that of training on one machine, but not the same"
    )
    drift = ", drift with --by" * (settings.by is not None)
    notes.append(f"not computed on a cluster: {NOT_COMPUTED}{drift}")
    f = model.decide(test.counts.matrix)
    clock.lap("predicting")
    return CorpusModel(model, train, test, f, notes, found.settings, _OnCluster(found), clock.seconds)


def _part(training: Learned, name: str, side: Partitions | None, counts: Counts | None) -> Part:
    """One side, as far as the client holds it."""
    assert side is not None and counts is not None
    splitter, features = training.vocabulary.tokenizer, len(training.vocabulary.formatting)
    fields = splitter.fields if isinstance(splitter, FieldTokenizer) else ()
    texts, frame = (
        RemoteTexts(side, counts.matrix.sizes),
        pl.concat(side.each(Learned.facts, training.classes).here(), rechunk=True),
    )
    corpus = Corpus(frame, training.classes, name, training.intake, fields=fields, stored=texts)
    unknown, words = counts.matrix.parts.total(lambda part: Sums(part[2:]))
    return Part(corpus, replace(counts, labels=corpus.labels), np.array([unknown]), words, features)
