"""A trained text classifier against the tokens that carry the label: measured, correlated, judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors

from tokensieve import __version__
from tokensieve.auditing.agreement import DIGITS, QUADRANTS, quadrants
from tokensieve.checkpoint import fingerprint
from tokensieve.data.importance import Importance, token_importance
from tokensieve.diagnose.agreement import (
    Correlation,
    correlations,
    gather,
    importance,
    mean,
    of_frequency,
    shuffled,
)
from tokensieve.diagnose.classes import Matched, check_order, match_classes, predicted
from tokensieve.diagnose.leaning import lean
from tokensieve.diagnose.loading import check_weights, untrained_twin, weights_digest
from tokensieve.diagnose.measuring import Checkpoint, Measured, Subject, TransformerSubject
from tokensieve.diagnose.pipelines import PipelineSubject
from tokensieve.diagnose.verdict import judge
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.corpus import Corpus, read_corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.labels import label_name
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import Documents, count_corpus

GROUPS = 50
LONG = ("truncate", "windows")


@dataclass(frozen=True)
class DiagnoseSettings:
    """What a diagnosis can be told.

    Attributes:
        min_documents: a word must stand in that many of the documents that the model reads.
        max_documents: the model reads at most so many, drawn at random in proportion to the classes; importance in the data
            always comes from all documents.
        max_length: pieces of one input, special tokens included; None for what model and tokenizer allow.
        long: what happens to longer documents: "truncate" as in use, or "windows" that follow one another.
        batch_size: inputs of one batch.
        deletions: from so many documents, at most, each word is deleted.
        untrained: whether an untrained model of the same shape is measured too.
        seed: of every draw.
    """

    min_documents: int = 10
    max_documents: int = 1000
    max_length: int | None = None
    long: str = "truncate"
    batch_size: int = 16
    deletions: int = 4
    untrained: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Diagnosis:
    """Everything that a diagnosis found; tables, terminal and page all read from here.

    Attributes:
        name: the source.
        model, family: the model's name, and its class in the library.
        classes: class names; with two, the second is y = +1.
        version, seed, settings: how it was made.
        documents: {"all": …, "read": by the model}.
        class_documents: documents per class, of all.
        accuracy, majority_accuracy: shares of the documents read that the model, and always naming the largest class, get right.
        reads: where the model reads its answer: "first", "last" or "mean"; None where that is not known.
        layers: L; 0 where the model gives no attention.
        on_special: mean share of attention that goes to special tokens, each layer and last the rollout.
        truncated_documents, windows, lost_pieces, all_pieces: documents that were cut off; inputs read; pieces lost and in all.
        long_documents: documents longer than one input.
        correlation: "value_importance", "gradient_importance", "deletion_importance", "attention_importance" (rolled out) and
            "attention_layer_<l>_importance", where they exist.
        untrained: the same for the untrained model; empty where there is none.
        shuffled_labels: middle 95 % of the same under random orders of the labels.
        frequency: what the number of documents alone would reach.
        tokens: a row per word and class (`Importance.to_frame`), then importance (`tokensieve.diagnose.agreement`), value,
            gradient, deletion, deleted_from, attention, attention_layer_<l>, quadrant.
        leaning: words that the model leans on without support (`tokensieve.diagnose.leaning`).
        verdict: plain sentences; learned: whether this model has learned where the label is (None: cannot be said).
        notes: what was odd.
        seconds: wall time of each stage.
    """

    name: str
    model: str
    family: str
    classes: tuple[str, ...]
    version: str
    seed: int
    settings: dict[str, Any]
    documents: dict[str, int]
    class_documents: dict[str, int]
    accuracy: float
    majority_accuracy: float
    reads: str | None
    layers: int
    on_special: list[float]
    truncated_documents: int
    long_documents: int
    windows: int
    lost_pieces: int
    all_pieces: int
    correlation: dict[str, Correlation]
    untrained: dict[str, Correlation]
    shuffled_labels: dict[str, tuple[float, float]]
    frequency: dict[str, Correlation]
    tokens: pl.DataFrame
    leaning: pl.DataFrame
    learned: bool | None
    verdict: list[str]
    notes: list[str]
    seconds: dict[str, float]

    @property
    def token_types(self) -> int:
        """|S|."""
        return self.tokens.height // len(self.classes)

    @property
    def truncated_share(self) -> float:
        """Share of the documents read that were cut off."""
        return self.truncated_documents / max(self.documents["read"], 1)

    @property
    def lost_share(self) -> float:
        """Share of the pieces of the documents read that the model never saw."""
        return self.lost_pieces / max(self.all_pieces, 1)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json; a number that does not exist is None."""
        names = (
            "name model family classes documents class_documents accuracy majority_accuracy reads layers on_special "
            "truncated_documents truncated_share long_documents windows lost_pieces lost_share learned verdict notes seconds seed "
            "settings version"
        )
        baselines: dict[str, Any] = {
            "untrained": _plain(self.untrained) or None,
            "shuffled_labels": {name: [_finite(x) for x in ends] for name, ends in self.shuffled_labels.items()},
            "frequency": _plain(self.frequency),
        }
        rho = {name: _finite(found.rho) for name, found in self.correlation.items()}
        return {name: getattr(self, name) for name in names.split()} | {
            "tokens": self.token_types, "correlation": rho, "intervals": _plain(self.correlation), "baselines": baselines,
            "leaning": self.leaning.to_dicts(),
        }  # fmt: skip


def diagnose(
    model: Any, tokenizer: Any, texts: Sequence[str], labels: Sequence[Any], settings: DiagnoseSettings | None = None, *,
    mapping: Mapping[str, str] | None = None, name: str = "the documents", resume: Path | None = None,
    progress: Progress | None = None,
) -> Diagnosis:  # fmt: skip
    """Diagnose a text classifier on documents that it was not trained on.

    Args:
        model: a Hugging Face model for sequence classification, or anything with `predict_proba` on texts and `classes_`.
        tokenizer: its fast tokenizer; None for a model with `predict_proba`.
        texts: n documents.
        labels: their labels.
        settings: `DiagnoseSettings()` if None.
        mapping: class → name or number of the model's output, where names do not tell.
        name: of the source, for people.
        resume: file that keeps the unfinished work, and from which it goes on.
        progress: called with (stage, share done).

    Raises:
        InputError: as `diagnose_corpus`, or a text or label cannot be used.
    """
    corpus = read_corpus((texts, labels))
    return diagnose_corpus(
        model, tokenizer, corpus, settings, mapping=mapping, name=name, resume=resume, progress=progress
    )


def diagnose_corpus(
    model: Any, tokenizer: Any, corpus: Corpus, settings: DiagnoseSettings | None = None, *,
    mapping: Mapping[str, str] | None = None, name: str | None = None, model_name: str = "", resume: Path | None = None,
    progress: Progress | None = None, seconds: dict[str, float] | None = None,
) -> Diagnosis:  # fmt: skip
    """As `diagnose`, on a corpus; of one with a test part that part is used, the other may have trained the model.

    Raises:
        InputError: classes that do not match the model's outputs, a tokenizer without offsets, weights that are not finite, no
            frequent word, a checkpoint of another run, or too little memory.
    """
    settings, tell = settings or DiagnoseSettings(), progress or (lambda stage, share: None)
    _check(settings)
    lap = time.perf_counter()
    times = dict(seconds or {})
    notes = corpus.intake.lines()
    if corpus.test is not None:
        notes = [*corpus.test.intake.lines(), "only the test part of the source is used; the model may know the other"]
        corpus = corpus.test
    outputs, family = _outputs(model)
    matched = match_classes(corpus.classes, outputs, mapping)
    notes += [matched.note] if matched.note else []
    sample = _sample(corpus, settings)
    notes += sample.notes
    tell("counting words", 0.0)
    found = token_importance(sample.counts)
    times["counting"], lap = time.perf_counter() - lap, time.perf_counter()
    with _subjects(model, tokenizer, matched, sample, settings, tell) as (subject, twin, facts):
        kept = Checkpoint(resume, fingerprint(*sample.identity(), matched.order, asdict(settings), facts.digest))
        measured = subject.measure(kept, "model", tell)
        answers = _by_document(measured.answers, subject.documents)
        right = predicted(answers)
        check_order(matched, right, sample.labels, corpus.classes)
        times["model"], lap = time.perf_counter() - lap, time.perf_counter()
        leaning = lean(subject, measured, sample.counts, found, kept, settings.seed, tell)
        times["confirming"], lap = time.perf_counter() - lap, time.perf_counter()
        other = twin().measure(kept, "untrained model", tell) if twin is not None else None
        times["untrained model"], lap = time.perf_counter() - lap, time.perf_counter()
    tell("correlations", 0.0)
    evidence = gather(sample.counts, sample.groups, sample.n_groups)
    correlation = correlations(evidence, measured)
    untrained = correlations(evidence, other) if other is not None else {}
    by_chance = shuffled(sample.counts, measured, settings.seed)
    notes += _odd(answers)
    if measured.attention is None and facts.layers is not None:
        notes.append(f"{family} gives no attention weights: attention is left out, everything else is measured")
    accuracy = float(np.mean(right == sample.labels))
    majority = float(np.mean(sample.labels == np.bincount(corpus.labels).argmax()))
    learned, verdict = judge(correlation, untrained, by_chance, leaning, (accuracy, majority, len(sample.labels)))
    times["correlations"] = time.perf_counter() - lap
    return Diagnosis(
        name=name or corpus.name, model=model_name or family, family=family, classes=corpus.classes, version=__version__,
        seed=settings.seed, settings=asdict(settings), documents={"all": len(corpus.labels), "read": len(sample.labels)},
        class_documents=dict(zip(corpus.classes, sample.counts.class_sizes.tolist(), strict=True)), accuracy=accuracy,
        majority_accuracy=majority, reads=facts.reads, layers=facts.layers or 0,
        on_special=[] if measured.on_special is None else measured.on_special.tolist(),
        truncated_documents=facts.truncated, long_documents=facts.long, windows=len(subject.documents),
        lost_pieces=facts.lost, all_pieces=facts.pieces, correlation=correlation, untrained=untrained,
        shuffled_labels=by_chance, frequency=of_frequency(evidence, found.documents), leaning=leaning,
        tokens=_table(found, importance(*(part.sum(axis=0) for part in evidence)), measured), learned=learned, verdict=verdict,
        notes=notes, seconds=times,
    )  # fmt: skip


@dataclass(frozen=True)
class _Sample:
    """All documents as counts, and those that the model reads.

    Attributes:
        counts: all documents over the words frequent enough in those read.
        words: those words.
        texts, labels: the documents read.
        groups: group of every document; read: index of those read, ascending.
    """

    counts: Counts
    words: tuple[str, ...]
    texts: pl.Series
    labels: Ints
    groups: Ints
    n_groups: int
    read: Ints
    notes: list[str]

    def identity(self) -> list[Any]:
        """What of the documents decides the result."""
        return [self.counts, self.groups, self.read, self.texts.to_list()]


@dataclass(frozen=True)
class _Facts:
    """What is known of a transformer and its windows; nothing of another model."""

    digest: str = ""
    reads: str | None = None
    layers: int | None = None
    truncated: int = 0
    long: int = 0
    lost: int = 0
    pieces: int = 0


def _check(settings: DiagnoseSettings) -> None:
    for name in ("min_documents", "max_documents", "batch_size", "deletions"):
        if getattr(settings, name) < 1:
            raise InputError(f"{name} must be at least 1, not {getattr(settings, name)}")
    if settings.long not in LONG:
        raise InputError(f"long documents are handled by 'truncate' or 'windows', not {settings.long!r}")


def _sample(corpus: Corpus, settings: DiagnoseSettings) -> _Sample:
    """Draw the documents that the model reads, and deal all documents into groups, both in proportion to the classes."""
    rng, n = np.random.default_rng(settings.seed), len(corpus.labels)
    place = np.empty(n)
    for k in range(len(corpus.classes)):
        of_class = np.flatnonzero(corpus.labels == k)
        place[of_class] = (rng.permutation(len(of_class)) + 0.5) / len(of_class)
    order = np.argsort(place, kind="stable")
    read = np.sort(order[: settings.max_documents])
    n_groups = min(GROUPS, len(read) // 2)
    if len(np.unique(corpus.labels[read])) < 2 or n_groups < 4:
        raise InputError(f"{len(read)} documents are too few to diagnose a model: give at least 8, of two classes")
    groups = np.empty(n, dtype=np.int64)
    groups[order] = np.arange(n) % n_groups
    chosen = corpus.texts.filter(pl.Series(np.isin(np.arange(n), read)))
    texts = pl.Series("text", chosen.to_list(), dtype=pl.String)  # also where a large source keeps its texts in a file
    sampled = Documents(texts, corpus.labels[read], corpus.classes)
    vocabulary = count_corpus(sampled, min_documents=settings.min_documents).vocabulary
    counts = count_corpus(corpus, vocabulary).counts
    notes = []
    if len(read) < n:
        notes.append(
            f"the model reads {len(read):,} of {n:,} documents, drawn at random (--max-documents); importance in the "
            "data comes from all"
        )
    return _Sample(counts, vocabulary.words, texts, corpus.labels[read], groups, n_groups, read, notes)


def _outputs(model: Any) -> tuple[list[str], str]:
    """Names of the model's outputs in order, and the name of its class."""
    family = type(model).__name__
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "id2label"):
        return [str(config.id2label[i]) for i in range(int(config.num_labels))], family
    if hasattr(model, "predict_proba"):
        names = getattr(model, "classes_", None)
        if names is None:
            raise InputError(f"{family} has no classes_: fit it first, or set classes_ to the labels of its columns")
        return [label_name(value) or "" for value in names], family
    raise InputError(
        f"cannot diagnose a {family}: give a transformers model for sequence classification, or one with predict_proba"
    )


@contextmanager
def _subjects(
    model: Any, tokenizer: Any, matched: Matched, sample: _Sample, settings: DiagnoseSettings, tell: Progress
) -> Iterator[tuple[Subject, Any, _Facts]]:  # fmt: skip
    """The model on the documents, how to make its untrained twin (or None), and what is known of both."""
    groups, G = sample.groups[sample.read], sample.n_groups
    portions = (settings.deletions, settings.batch_size, settings.seed)
    if not hasattr(model, "config"):
        pipeline = PipelineSubject(
            model, matched.order, sample.texts, sample.words, WordTokenizer(), groups, G, *portions
        )
        yield pipeline, None, _Facts()
        return
    from tokensieve.diagnose.encoding import encode, frame_of, length_limit
    from tokensieve.diagnose.reading import Reader, prepared

    check_weights(model, type(model).__name__)
    frame, limit = frame_of(tokenizer), length_limit(model, tokenizer, settings.max_length)
    cut = settings.long == "truncate"
    windows = encode(tokenizer, sample.texts, WordTokenizer(), sample.words, limit, cut, tell)
    rows = model.get_input_embeddings().num_embeddings
    if int(windows.pieces.max()) >= rows:
        raise InputError(
            f"the tokenizer gives piece {int(windows.pieces.max())}, the model knows {rows:,}: they do not belong together"
        )
    pad = next((x for x in (tokenizer.pad_token_id, tokenizer.eos_token_id) if x is not None), 0)

    def on(this: Any) -> TransformerSubject:
        return TransformerSubject(Reader(this, matched.order, frame), windows, groups[windows.documents], G, *portions)

    with prepared(model, pad):
        subject = on(model)
        facts = _Facts(
            weights_digest(model), subject.reader.reads, subject.reader.layers, windows.long_documents if cut else 0,
            windows.long_documents, windows.lost_pieces, windows.all_pieces,
        )  # fmt: skip

        def twin() -> TransformerSubject:
            other = untrained_twin(model, settings.seed)
            other.eval().requires_grad_(False)
            return on(other)

        yield subject, twin if settings.untrained else None, facts


def _by_document(answers: Floats, documents: Ints) -> Floats:
    """Mean answer of each document's windows, shape (n, H)."""
    sizes = np.bincount(documents)
    return np.column_stack([np.bincount(documents, column) / sizes for column in answers.T])


def _odd(answers: Floats) -> list[str]:
    if np.isfinite(answers).all() and float(np.ptp(answers, axis=0).max()) > 1e-6:
        return []
    return ["the model gives every document the same answer, so nothing can be learnt from how it answers"]


def _table(found: Importance, shrunken: Floats, measured: Measured) -> pl.DataFrame:
    """Importance of each word and class with what the model does with it."""
    K = len(found.classes)

    def per_class(values: Floats) -> pl.Series:
        wide = np.hstack([-values, values]) if K == 2 else values
        return pl.Series(wide.T.ravel(), nan_to_null=True)

    columns = {"importance": per_class(shrunken), "value": per_class(measured.value)}
    if measured.gradient is not None:
        columns["gradient"] = per_class(mean(measured.gradient, measured.held[..., None]))
    columns["deletion"] = per_class(mean(measured.deletion, measured.tried[..., None]))
    columns["deleted_from"] = pl.Series(np.tile(measured.tried.sum(axis=0).astype(np.int64), K))
    if measured.attention is not None:
        received = [mean(sums, measured.held) for sums in measured.attention]
        columns["attention"] = pl.Series(np.tile(received[-1], K), nan_to_null=True)
        for i, layer in enumerate(received[:-1]):
            columns[f"attention_layer_{i + 1}"] = pl.Series(np.tile(layer, K), nan_to_null=True)
        columns["quadrant"] = pl.Series(QUADRANTS).gather(np.tile(quadrants(found, received[-1]), K))
    return found.to_frame().with_columns(**columns).with_columns(polars.selectors.float().round_sig_figs(DIGITS))


def _plain(found: dict[str, Correlation]) -> dict[str, list[float | None]]:
    """name → [ρ, low, high]."""
    return {name: [_finite(x) for x in (one.rho, one.low, one.high)] for name, one in found.items()}


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
