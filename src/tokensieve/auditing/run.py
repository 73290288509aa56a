"""The main job: labelled text in; the tokens that decide the label, those the model looks at, and whether they agree, out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
import polars.selectors
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import entropy
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from tokensieve import __version__
from tokensieve.auditing.budget import Budget, rows_to_review
from tokensieve.data.importance import LEVEL, Importance, token_importance
from tokensieve.escape import shown
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.decision import both, decide, probabilities
from tokensieve.model.effects import attention_sums
from tokensieve.model.highlight import Piece, pieces
from tokensieve.progress import Clock, Progress, silent
from tokensieve.text.corpus import Corpus, split_corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.spill import StoredTexts, characters
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import learn_vocabulary, tokenize
from tokensieve.theory.one_step import first_step

DIGITS = 6  # significant digits of the table, for page, terminal and files alike
FLOOR = 5
FEW = 20
SAMPLE_CHARACTERS = 400_000  # of test documents that an audit carries along
LONGEST_SAMPLED = 6_000
BUDGETED = ("token", "class", "documents", "posterior_difference", "posterior_low", "posterior_high")
QUADRANTS = ("carries the label, attended", "carries the label, ignored", "attended without evidence", "neither")


@dataclass(frozen=True)
class Settings:
    """What an audit can be told.

    Attributes:
        ngrams: longest run of words that is a token type.
        min_documents: a type must stand in that many training documents.
        seed: of the split and of training.
        test_share: share of the documents set aside for testing where the corpus has no test set.
        baseline: whether TF-IDF + logistic regression is trained beside the model.
        budget: what no single token may exceed (`Audit.over_budget`), or None.
    """

    ngrams: int = 1
    min_documents: int = 3
    seed: int = 0
    test_share: float = 0.2
    baseline: bool = True
    budget: Budget | None = None


@dataclass(frozen=True)
class Example:
    """One test document with its answer taken apart.

    Attributes:
        kind: why it is shown ("right and certain", …).
        row: its row in the source, from 1.
        label, predicted: class names.
        probability: of the predicted class.
        answer: f_X of the second of two classes, or of the predicted class.
        pieces: the text in order as (piece, contribution, attention, value); contributions add up to the answer.
        tokens: token, count, attention, value, contribution.
    """

    kind: str
    row: int
    label: str
    predicted: str
    probability: float
    answer: float
    pieces: list[Piece]
    tokens: pl.DataFrame


@dataclass(frozen=True)
class Sampled:
    """One test document as text, with its answer.

    Attributes:
        row: its row in the source, from 1.
        label: index of its class.
        kind: "right and certain", "right and uncertain", "wrong and certain", "wrong and uncertain", or "" for a document
            that is there for the tokens in it.
        text: all of it.
        answer: f_X, shape (1,) for two classes, (K,) otherwise.
        log_total: log Σ_s c_{X,s} e^{u_s}, the logarithm of what attention is divided by.
    """

    row: int
    label: int
    kind: str
    text: str
    answer: Floats
    log_total: float


@dataclass(frozen=True)
class Audit:
    """Everything that an audit found; tables, terminal and page all read from here.

    Attributes:
        name: the source.
        classes: class names; with two, the second is y = +1.
        version: of this package.
        seed, settings: as asked for.
        documents: {"train": …, "test": …}.
        class_documents: training documents per class.
        token_types: |S|.
        test_accuracy, majority_accuracy: shares of test documents answered right by the model and by always naming the
            largest class of the training documents.
        class_recall: class → share of its test documents that are answered right (None where it has none).
        baseline_accuracy: the same of TF-IDF + logistic regression on the same token counts; None if not asked for.
        unknown_share: share of the words of the test documents that training never saw often enough.
        seconds: reading, tokenizing, training, baseline, …, total.
        notes: what was counted on the way in, in plain words.
        tokens: the one table: a row per token type and class (`Importance.to_frame`), then score u, value w, attention (mean
            over the documents that contain it of its attention relative to a uniform share) and quadrant.
        neutral: class → posterior difference of a type that says nothing.
        examples: test documents, taken apart.
        attention_share: quadrant → (share of all attention, share of uniform attention) of its types, means over training
            documents; both sum to one.
        suspicious: (token, class, reason) of single tokens that nearly decide a class.
        model: the trained classifier.
        sample: test documents for the page: some of each kind, and some that hold the most telling tokens.
        over_budget: the rows of `tokens` that exceed the budget; none without a budget.
        alignment: movement of each embedding along v in one gradient step of size one (`first_step`), or None.
        to_review: token, part ("train" or "test"), row, label of every document that holds one of these.
    """

    name: str
    classes: tuple[str, ...]
    version: str
    seed: int
    settings: dict[str, Any]
    documents: dict[str, int]
    class_documents: dict[str, int]
    token_types: int
    test_accuracy: float
    majority_accuracy: float
    class_recall: dict[str, float | None]
    baseline_accuracy: float | None
    unknown_share: float
    seconds: dict[str, float]
    notes: list[str]
    tokens: pl.DataFrame
    neutral: dict[str, float]
    examples: list[Example]
    attention_share: dict[str, tuple[float, float]]
    suspicious: list[tuple[str, str, str]]
    model: AttentionClassifier = field(repr=False)
    sample: list[Sampled] = field(default_factory=list, repr=False)
    over_budget: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    to_review: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    alignment: Floats | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        names = (
            "name classes documents class_documents token_types test_accuracy majority_accuracy class_recall baseline_accuracy "
            "unknown_share attention_share seconds seed settings version notes"
        )
        suspicious = [dict(zip(("token", "class", "reason"), s, strict=True)) for s in self.suspicious]
        over = [] if self.over_budget.is_empty() else self.over_budget.select(BUDGETED).to_dicts()
        return {name: getattr(self, name) for name in names.split()} | {"suspicious": suspicious, "over_budget": over}

    def top(self, label: str, rows: int = 10) -> pl.DataFrame:
        """The tokens that speak most surely for a class: q < 0.05, in at least 5 documents, ordered by the cautious end of
        the interval of their posterior difference."""
        mine = self.tokens.lazy().filter(
            pl.col("class") == label, pl.col("q_value") < LEVEL, pl.col("effect") > 0, pl.col("documents") >= FLOOR
        )
        return mine.sort("posterior_low", "token", descending=[True, False]).head(rows).collect()

    def disagreement(self, quadrant: str, rows: int = 10) -> pl.DataFrame:
        """Tokens of one disagreeing quadrant, in at least 5 documents, each for the class it speaks for most.

        "attended without evidence": most attended first, and only those with p ≥ 0.05, before any correction for the number
        of tokens; "carries the label, ignored": largest effect first.
        """
        unsupported = quadrant == QUADRANTS[2]
        found = self.tokens.lazy().filter(
            pl.col("quadrant") == quadrant, pl.col("effect") > 0, pl.col("documents") >= FLOOR
        )
        found = found.sort("effect", "token", descending=[True, False]).unique("token", maintain_order=True)
        if unsupported:
            found = found.filter(pl.col("p_value") >= LEVEL).sort("attention", "token", descending=[True, False])
        return found.head(rows).collect()


@dataclass(frozen=True)
class _Part:
    """One side of the split, as counts."""

    corpus: Corpus
    counts: Counts
    unknown: Ints
    words: int


def audit(
    corpus: Corpus,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
) -> Audit:
    """Importance, classifier, selection and their agreement on one corpus.

    Args:
        corpus: with its test set, or without: then a seeded, stratified share is set aside.
        settings: `Settings()` if None.
        tokenizer: words if None.
        progress: called with (stage, share done).
        seconds: times of earlier stages, to be reported with the others.

    Raises:
        InputError: the corpus cannot be split, or no token is frequent enough.
    """
    settings, tell = settings or Settings(), progress or silent
    clock = Clock(seconds)
    notes = corpus.intake.lines()
    if corpus.test is not None:
        notes += [f"of the test documents: {line}" for line in corpus.test.intake.lines()]
    else:
        corpus = split_corpus(corpus, share=settings.test_share, seed=settings.seed)
    train, test, vocabulary = _count(corpus, settings, tokenizer or WordTokenizer(), tell)
    clock.lap("tokenizing")
    tell("importance", 0.0)
    importance = token_importance(train.counts)
    clock.lap("importance")
    tell("training", 0.0)
    model = AttentionClassifier(settings.ngrams, settings.min_documents, random_state=settings.seed)
    model.fit_counts(train.counts, vocabulary)
    f = model.decision_function(test.counts.matrix)
    clock.lap("training")
    baseline = None
    if settings.baseline and isinstance(corpus.texts, StoredTexts):
        notes.append("TF-IDF + logistic regression is not trained beside the model: it needs all counts in memory")
    elif settings.baseline:
        tell("TF-IDF + logistic regression, for comparison", 0.0)
        baseline = _baseline_accuracy(train.counts, test.counts, settings.seed)
        clock.lap("baseline")
    tell("agreement", 0.0)
    table, shares = _table(importance, model, train.counts)
    predicted = decide(f)
    sizes, budget = train.counts.class_sizes, settings.budget
    over = table.clear() if budget is None else budget.exceeding(table, train.counts.n_documents)
    parts = {"train": (train.counts, train.corpus.rows), "test": (test.counts, test.corpus.rows)}
    result = Audit(
        name=corpus.name,
        classes=corpus.classes,
        version=__version__,
        seed=settings.seed,
        settings=asdict(settings)
        | {"budget": budget and str(budget), "columns": [corpus.intake.text_column, corpus.intake.label_column]},
        documents={"train": train.counts.n_documents, "test": test.counts.n_documents},
        class_documents=dict(zip(corpus.classes, sizes.tolist(), strict=True)),
        token_types=train.counts.n_types,
        test_accuracy=float(np.mean(predicted == test.counts.labels)),
        majority_accuracy=float(np.mean(test.counts.labels == sizes.argmax())),
        class_recall=_recall(predicted, test.counts),
        baseline_accuracy=baseline,
        unknown_share=float(test.unknown.sum() / max(test.words, 1)),
        seconds=clock.seconds,
        notes=notes + _warnings(test.counts),
        tokens=table,
        neutral=dict(zip(corpus.classes, importance.neutral.tolist(), strict=True)),
        examples=_examples(model, test, f, predicted),
        attention_share=shares,
        suspicious=_suspicious(table, train.counts, importance.neutral),
        model=model,
        sample=_sample(model, test, f, predicted, table, settings.seed),
        over_budget=over,
        alignment=first_step(train.counts, seed=settings.seed),
        to_review=rows_to_review(over["token"].unique(maintain_order=True), parts),
    )
    clock.lap("agreement")
    return result


def _count(corpus: Corpus, settings: Settings, tokenizer: Tokenizer, tell: Progress) -> tuple[_Part, _Part, Any]:
    assert corpus.test is not None
    total = len(corpus.texts) + len(corpus.test.texts)
    stream = tokenize(corpus.texts, tokenizer, lambda done: tell("tokenizing", done / total))
    vocabulary = learn_vocabulary(stream, tokenizer, settings.ngrams, settings.min_documents)
    parts = []
    for part in (corpus, corpus.test):
        if part is corpus.test:
            stream = tokenize(
                part.texts, tokenizer, lambda done: tell("tokenizing", (len(corpus.texts) + done) / total)
            )
        matrix, unknown = vocabulary.count(stream)
        counts = Counts(matrix, part.labels, corpus.classes, vocabulary.tokens)
        parts.append(_Part(part, counts, unknown, stream.n_tokens))
    return parts[0], parts[1], vocabulary


def _recall(predicted: Ints, test: Counts) -> dict[str, float | None]:
    right = np.bincount(test.labels[predicted == test.labels], minlength=test.n_classes)
    sizes = test.class_sizes
    return {name: float(right[k] / sizes[k]) if sizes[k] else None for k, name in enumerate(test.classes)}


def _warnings(test: Counts) -> list[str]:
    """What the numbers of test documents do not allow to be judged."""
    few = [f"{name!r} ({size})" for name, size in zip(test.classes, test.class_sizes, strict=True) if size < FEW]
    return [f"fewer than {FEW} test documents, so accuracy says little: {', '.join(few)}"] if few else []


def _baseline_accuracy(train: Counts, test: Counts, seed: int) -> float:
    """Test accuracy of TF-IDF (sublinear) + logistic regression, its C chosen out of 1, 10, 100 on held-out training documents."""
    rng = np.random.default_rng(seed)
    held_out = np.zeros(train.n_documents, dtype=bool)
    held_out[rng.permutation(train.n_documents)[: max(train.n_documents // 10, 1)]] = True
    part, rest = train.rows(~held_out), train.rows(held_out)
    strengths = (1.0, 10.0, 100.0)
    if np.count_nonzero(part.class_sizes) == train.n_classes:
        scores = [_fit_and_score(part, rest, c) for c in strengths]
        best = strengths[int(np.argmax(scores))]
    else:
        best = 10.0
    return _fit_and_score(train, test, best)


def _fit_and_score(train: Counts, test: Counts, strength: float) -> float:
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train.matrix)
    model = LogisticRegression(C=strength, max_iter=1000)
    with threadpool_limits(1):  # its small dense products gain nothing from threads, and lose tenfold on a busy machine
        model.fit(tfidf.transform(train.matrix), train.labels)
    return float(model.score(tfidf.transform(test.matrix), test.labels))


def token_table(importance: Importance, model: AttentionClassifier, attention: Floats) -> tuple[pl.DataFrame, Ints]:
    """The one table of `Audit.tokens`, and the index in QUADRANTS of each type, shape (|S|,).

    Args:
        importance: of the training documents.
        model: trained on them.
        attention: mean relative attention of each type, shape (|S|,) (`tokensieve.model.effects.Effects.attention`).
    """
    carries, k = importance.q_value.min(axis=1) < LEVEL, len(importance.classes)
    which = np.where(carries, np.where(attention > 1, 0, 1), np.where(attention > 1, 2, 3))
    values = both(model.values_)
    table = importance.to_frame().with_columns(
        score=pl.Series(np.tile(model.scores_, k)),
        value=pl.Series(values.T.ravel()),
        attention=pl.Series(np.tile(attention, k)),
        quadrant=pl.Series(QUADRANTS).gather(np.tile(which, k)),
    )
    return table.with_columns(polars.selectors.float().round_sig_figs(DIGITS)), which


def _table(
    importance: Importance, model: AttentionClassifier, counts: Counts
) -> tuple[pl.DataFrame, dict[str, tuple[float, float]]]:
    """The table, and the quadrants' shares of attention and of uniform attention."""
    sums = attention_sums(counts, model.scores_)
    table, which = token_table(importance, model, sums[2] / np.maximum(importance.documents, 1))
    masses = [np.bincount(which, x, 4) / np.sum(x) for x in sums[:2]]
    return table, dict(zip(QUADRANTS, zip(*(m.tolist() for m in masses), strict=True), strict=True))


def _examples(model: AttentionClassifier, test: _Part, f: Floats, predicted: Ints) -> list[Example]:
    """Ten test documents: three right and certain, two right and uncertain, three wrong and certain, two wrong and uncertain."""
    p = probabilities(f)
    order = np.argsort(entropy(p, axis=1), kind="stable")
    order = order[np.diff(test.counts.matrix.indptr)[order] > 0]
    right = predicted[order] == test.counts.labels[order]
    chosen: list[tuple[str, int]] = []
    for name, group in (("right", order[right]), ("wrong", order[~right])):
        certain, uncertain = group[:3], group[3:][::-1][:2]
        chosen += [(f"{name} and certain", i) for i in certain] + [(f"{name} and uncertain", i) for i in uncertain]
    out = []
    for kind, i in chosen:
        text = test.corpus.texts[int(i)]
        explained = model.explain([text])[0]
        labels = test.corpus.classes[test.counts.labels[i]], test.corpus.classes[predicted[i]]
        row, shares = int(test.corpus.rows[i]), pieces(model, text, 1 if f.ndim == 1 else int(predicted[i]))
        out.append(Example(kind, row, *labels, float(p[i, predicted[i]]), explained.answer, shares, explained.table))
    return out


def _sample(
    model: AttentionClassifier, test: _Part, f: Floats, predicted: Ints, table: pl.DataFrame, seed: int
) -> list[Sampled]:
    """Up to 400,000 characters of test documents, none longer than 6,000: eight of each kind, then the shortest that hold the
    most telling tokens, then others by chance."""
    m, size = test.counts.matrix, characters(test.corpus.texts)
    fits = (size <= LONGEST_SAMPLED) & (np.diff(m.indptr) > 0)
    order = np.argsort(entropy(probabilities(f), axis=1), kind="stable")
    kinds: dict[int, str] = {}
    order = order[fits[order]]
    right = predicted[order] == test.counts.labels[order]
    for name, group in (("right", order[right]), ("wrong", order[~right])):
        kinds |= dict.fromkeys(group[8:][::-1][:8].tolist(), f"{name} and uncertain")
        kinds |= dict.fromkeys(group[:8].tolist(), f"{name} and certain")
    others = np.random.default_rng(seed).permutation(np.flatnonzero(fits)).tolist()
    wanted = list(dict.fromkeys([*kinds, *_holders(test.counts, table, size, fits), *others]))
    rows = np.asarray(wanted, dtype=np.int64)
    rows = rows[: np.searchsorted(np.cumsum(size[rows]), SAMPLE_CHARACTERS)]
    out = []
    for i in rows.tolist():
        inside = slice(m.indptr[i], m.indptr[i + 1])
        total = float(logsumexp(model.scores_[m.indices[inside]], b=m.data[inside]))
        text = str(test.corpus.texts[i])
        answer, label = np.atleast_1d(f[i]).astype(np.float64), int(test.counts.labels[i])
        out.append(Sampled(int(test.corpus.rows[i]), label, kinds.get(i, ""), text, answer, total))
    return out


def _holders(test: Counts, table: pl.DataFrame, size: Ints, fits: Any, types: int = 600, each: int = 2) -> list[int]:
    """For each of the types of extreme effect, score or value: the shortest test documents that hold it, best-known types first."""
    n = test.n_types
    rank = np.full(n, n)
    for by in ("effect", "score", "value"):
        best = table[by].abs().to_numpy().reshape(-1, n).max(axis=0)
        order = np.argsort(-best, kind="stable")
        rank[order] = np.minimum(rank[order], np.arange(n))
    chosen = np.argsort(rank, kind="stable")[:types]
    columns = sp.csc_array(test.matrix[:, chosen])
    out: list[int] = []
    for t in range(len(chosen)):
        documents = columns.indices[columns.indptr[t] : columns.indptr[t + 1]]
        documents = documents[fits[documents]]
        out += documents[np.argsort(size[documents], kind="stable")[:each]].tolist()
    return out


def _suspicious(table: pl.DataFrame, counts: Counts, neutral: Floats, rows: int = 10) -> list[tuple[str, str, str]]:
    """Single tokens in at least 1 % of documents that all but decide a class, the surest first.

    The order is by how much of the way from neutral to certain the cautious end of the posterior difference goes. Of n-grams
    that share a word, the first stands for all.
    """
    floor = max(FLOOR, 0.01 * counts.n_documents)
    way = (pl.col("posterior_low") - pl.col("neutral")) / (1 - pl.col("neutral"))
    base = pl.DataFrame({"class": counts.classes, "neutral": neutral})
    found = table.lazy().filter(pl.col("documents") >= floor, pl.col("q_value") < LEVEL).join(base.lazy(), on="class")
    found = found.with_columns(way=way).filter(pl.col("way") > 0.5).sort("way", "token", descending=[True, False])
    out: list[tuple[str, str, str]] = []
    seen: set[str] = set()
    for row in found.collect().iter_rows(named=True):
        words = set(row["token"].split(" "))
        if words & seen:
            continue
        seen |= words
        share, pure = row["documents"] / counts.n_documents, row["class_documents"] / row["documents"]
        reason = f"stands in {row['documents']:,} documents ({share:.1%}), {pure:.1%} of them {shown(row['class'], 40)}"
        out.append((row["token"], row["class"], reason))
        if len(out) == rows:
            break
    return out
