"""A model of labelled documents on a Dask cluster, as `tokensieve.task.tasks.train_corpus` has it of documents on one machine.

Vocabulary, importance, model, attention and accuracy are of all documents and are added up by the workers. Everything that looks at
single documents has a sample of them here: all of them where there are few, so that memory here does not grow with the corpus.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.shares import Share
from tokensieve.model.attention import Model
from tokensieve.model.cluster import Learned
from tokensieve.model.settings import TrainSettings
from tokensieve.progress import Clock, Progress
from tokensieve.task.tasks import CorpusModel, Labels
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats
from tokensieve.text.spill import StoredTexts
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import CountedCorpus, count_corpus


class _OnCluster(Labels):
    """Labelled documents on a cluster."""

    def __init__(self, learned: Learned, sampled: bool) -> None:
        self.learned, self.left_out, self.sampled = learned, ("curve",), sampled
        if sampled:  # few of those that belong together are in the sample
            self.left_out = ("curve", "groups", "near duplicates")

    def importance(self, part: CountedCorpus) -> Importance:
        return self.learned.importance

    def attention_sums(self, part: CountedCorpus, model: Model) -> Floats:
        return self.learned.attention_sums

    def refit(self, counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
        if counts.n_documents < of:  # folds of the sample
            return super().refit(counts, model, of, settings)
        return self.learned.trained(np.flatnonzero(np.isin(self.learned.vocabulary.tokens, counts.tokens)))

    def accuracy(self, f: Floats, part: CountedCorpus) -> Share:
        if part.corpus.units is not None:  # groups are counted in the sample
            return super().accuracy(f, part)
        return Share.count(int(self.learned.tested[0].sum()), int(self.learned.sizes[1].sum()))

    def summary(self, train: Corpus, test: Corpus) -> dict[str, object]:
        return {name: value for name, value in self.learned.to_dict().items() if name != "notes"}


def train_remote(
    client: Any, source: Any, settings: TrainSettings, tokenizer: Tokenizer | None, progress: Progress, clock: Clock
) -> CorpusModel:
    """Read, count, learn and test on a cluster, for an audit; arguments and errors are those of `learn_on`.

    The client is the default one if None, the settings have a test set or a fraction for one, and `clock` keeps the seconds of the
    stages.
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
    current = "reading"

    def timed(stage: str, share: float) -> None:
        nonlocal current
        if stage != current:
            clock.lap(current)
            current = stage
        progress(stage, share)

    found = Learned(client, source, settings, tokenizer or WordTokenizer(), timed, sampled=True)
    assert found.sample is not None
    timed("sample", 0.0)
    paths = [source] if isinstance(source, str | Path) else source
    named = isinstance(paths, list | tuple) and all(isinstance(path, str | Path) for path in paths)
    name = ", ".join(PurePath(str(path)).name for path in paths[:3]) if named else "the partitions"
    writers, frames = [StoredTexts.writer() for _ in range(2)], [list[pl.DataFrame](), list[pl.DataFrame]()]
    for part in found.sample.parts:  # one after the other, their texts to files
        both = part.result()
        for test in (False, True):
            frame = both.filter(pl.col("test") == test)
            writers[test].extend(frame["text"].to_list())
            frames[test].append(frame.drop("text", "test"))
    splitter, parts = found.vocabulary.tokenizer, list[CountedCorpus]()
    fields = splitter.fields if isinstance(splitter, FieldTokenizer) else ()
    index = {label: k for k, label in enumerate(found.classes)}
    for side, some, writer in zip((name, f"{name} (test)"), frames, writers, strict=True):
        frame = pl.concat(some).with_columns(pl.col("label").replace_strict(index, return_dtype=pl.Int64))
        corpus = Corpus(frame, found.classes, side, found.intake, fields=fields, stored=writer.finish())
        parts.append(count_corpus(corpus, found.vocabulary))
    train, held = parts
    task = _OnCluster(found, sum(part.counts.n_documents for part in parts) < found.sizes.sum())
    notes = [*found.intake.lines(), *train.group_notes(held)]
    plural = "one partition" if found.partitions == 1 else f"{found.partitions:,} partitions"
    notes.append(
        f"trained on a cluster: the model is an average over {plural} of the documents, so its accuracy is similar to "
        "that of training on one machine, but not the same"
    )
    left_out = "learning curve"
    if task.sampled:
        n = found.sizes.sum(axis=1)
        notes.append(
            f"findings and test documents are from a sample: {train.counts.n_documents:,} of {n[0]:,} training and "
            f"{held.counts.n_documents:,} of {n[1]:,} test documents, with all copies of a text; tokens, model and accuracy are "
            "from all documents"
        )
        left_out += (
            ", near duplicates (repeats, leaks and contradictions count exact copies), groups that no column names"
        )
    notes.append(f"not computed on a cluster: {left_out}")
    model = found.model.trained_
    f = model.decide(held.counts.matrix)
    clock.lap("sample")
    return CorpusModel(model, train, held, f, notes, found.settings, task, clock.seconds)
