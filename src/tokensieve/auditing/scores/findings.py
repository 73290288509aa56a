"""What to act on where labels are scores: shortcuts, copies, doubtful scores, and more.

Each check is a function of the trained model and the statistics of its tokens that yields findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.auditing.artefacts.score import LIKELY
from tokensieve.auditing.copies import originals_in
from tokensieve.auditing.findings import PROBABLE_SHORTCUT, ROWS, Finding, written_score
from tokensieve.auditing.phrases import form_clause, quoted
from tokensieve.auditing.removal import with_removal
from tokensieve.auditing.scores.context import ScoreContext
from tokensieve.auditing.scores.parts import alone, drift
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.evidence.duplicates import near_duplicates
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.evidence.score_ranks import ScoreImportance
from tokensieve.read.corpus import Corpus
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import percent, plain, plural, verb

KINDS = ("shortcut", "leak", "contradiction", "labels", "alone", "drift", "groups")
# as in an audit of classes: a token in 1% of the documents whose conservative bound is more than
# halfway to certainty; here the document with it is then the higher one in over 75% of comparisons
MIN_FRACTION = 0.01  # of the documents
MIN_BOUND = 0.5  # halfway
MIN_OVERLAP = 0.5  # Jaccard index of the documents of two tokens of one finding
MAX_SHORTCUTS = 20  # findings; tokens.csv has all
MAX_COMPARED = 500  # tokens whose documents are compared, most serious first
MAX_TOKENS = 30  # of one finding
MAX_EXAMPLES = 5
MAX_DEVIATIONS = 3  # standard deviations of the residuals
EXPECTED_BEYOND = 0.0027  # of normally distributed residuals
GROUPS_SEVERITY = 0.01  # medium: intervals are too narrow, which concerns every number a little
MAX_AGAINST = 4  # tokens listed for a doubtful score
EXCERPT_CHARACTERS = 140  # two lines of a page's card


def all_findings(context: ScoreContext) -> tuple[Finding, ...]:
    """All findings, most serious first."""
    findings = [
        *shortcuts(context),
        *leaks(context),
        *contradictions(context),
        *doubtful_scores(context),
        *alone(context),
        *drift(context),
        *likely_groups(context),
    ]
    return tuple(sorted(findings, key=lambda finding: -finding.severity))


def score_rows(
    corpus: Corpus, documents: Ints, part: str = "train", token: str = ""
) -> pl.DataFrame:
    """Documents as rows of the source, with their scores as labels."""
    assert corpus.scores is not None
    rows = corpus.rows_of(documents, part, token)
    labels = [written_score(score) for score in corpus.scores[documents]]
    return rows.with_columns(label=pl.Series(labels, dtype=pl.String)).select(list(ROWS))


# ---- shortcuts


def shortcuts(context: ScoreContext) -> Iterator[Finding]:
    """Frequent tokens that look like artefacts, and whose documents nearly all have higher, or
    lower, scores than the others.
    """
    importance = context.importance
    low, high = importance.effect_interval
    bound = np.maximum(low, -high)
    fraction = importance.documents / max(_n_independent(context), 1)
    known_tokens = context.learned.train.counts.tokens
    is_artefact = np.array([str(token) in context.artefacts for token in known_tokens])
    is_shortcut = (importance.q_value < LEVEL) & (bound > MIN_BOUND) & (fraction >= MIN_FRACTION)
    is_shortcut &= is_artefact
    severity = fraction * bound
    types = np.flatnonzero(is_shortcut)
    types = types[np.argsort(-severity[types], kind="stable")]
    for overlapping_types in _overlapping(context, types[:MAX_COMPARED])[:MAX_SHORTCUTS]:
        yield _shortcut(context, overlapping_types, float(severity[overlapping_types[0]]))


def _n_independent(context: ScoreContext) -> int:
    """Groups, or documents without groups."""
    units = context.learned.train.corpus.units
    n_documents = context.learned.train.counts.n_documents
    return n_documents if units is None else int(units.max()) + 1


def _overlapping(context: ScoreContext, types: Ints) -> list[list[int]]:
    """Types that occur in mostly the same documents, in one list each, the first type first."""
    documents = [set(found.tolist()) for found in context.learned.train.counts.holders(types)]
    groups: list[list[int]] = []
    firsts: list[set[int]] = []
    for word_type, type_documents in zip(types.tolist(), documents, strict=True):
        for group, first_documents in zip(groups, firsts, strict=True):
            has_one_sign = context.importance.effect[[word_type, group[0]]].prod() > 0
            overlap = len(type_documents & first_documents) / len(type_documents | first_documents)
            if has_one_sign and overlap >= MIN_OVERLAP:
                group.append(word_type)
                break
        else:
            groups.append([word_type])
            firsts.append(type_documents)
    return groups


def _shortcut(context: ScoreContext, types: list[int], severity: float) -> Finding:
    """The finding of tokens that occur together, as numbers of token types, most serious first."""
    train = context.learned.train
    first = types[0]
    documents = train.counts.holders(np.array([first]))[0]
    tokens = [str(train.counts.tokens[s]) for s in types[:MAX_TOKENS]]
    share = Share.count(len(documents), train.counts.n_documents)
    probability = context.artefacts[tokens[0]]
    finding = Finding(
        kind="shortcut",
        severity=severity,
        label="higher" if context.importance.effect[first] > 0 else "lower",
        tokens=tuple(tokens),
        evidence={"documents": share},
        documents=len(documents),
        rows=score_rows(train.corpus, documents, token=tokens[0]),
        examples=tuple(
            replace(
                Excerpt.of(train.corpus, document, tokens, train.vocabulary.tokenizer),
                label=written_score(context.scores[document]),
            )
            for document in documents[:MAX_EXAMPLES].tolist()
        ),
        title="Shortcut" if probability >= LIKELY else PROBABLE_SHORTCUT,
        probability=probability,
        headline=_means_sentence(context, tokens[0], documents),
        details=(_comparisons_sentence(context.importance, first),),
        action=(
            "Will these also appear where your model is used? If not, mask them and audit again "
            "to see what accuracy remains."
        ),
        exploitable=True,
    )
    return with_removal(finding, train)


def _means_sentence(context: ScoreContext, token: str, documents: Ints) -> str:
    """A sentence with the frequency of a token and the mean scores with and without it."""
    is_with = np.zeros(len(context.scores), dtype=np.bool_)
    is_with[documents] = True
    mean_with = plain(float(context.scores[is_with].mean()))
    mean_without = plain(float(context.scores[~is_with].mean()))
    fraction = percent(len(documents) / len(context.scores))
    if is_formatting(token):
        which = f"{fraction} of documents {form_clause(token)}"
    else:
        which = f"{quoted([token])} appears in {fraction} of documents"
    return f"{which}; their mean score is {mean_with}, that of all others {mean_without}"


def _comparisons_sentence(importance: ScoreImportance, token_type: int) -> str:
    """The effect as the fraction of comparisons that documents with the token win or lose."""
    direction = "higher" if importance.effect[token_type] > 0 else "lower"
    effect = abs(float(importance.effect[token_type]))
    low, high = sorted(abs(float(end[token_type])) for end in importance.effect_interval)
    # P(higher) + half of the ties, from the difference P(higher) − P(lower)
    wins, fewest, most = (percent((number + 1) / 2, 0) for number in (effect, low, high))
    return (
        f"a document with it has the {direction} score in {wins} of comparisons with one without "
        f"it, ties counted half (95% CI {fewest} to {most})"
    )


# ---- copies


def _is_copy(context: ScoreContext) -> Bools:
    """Whether each test document repeats or nearly repeats a training document, shape (n_test,)."""
    train = context.learned.train
    test = context.learned.test
    vocabulary = context.learned.model.vocabulary
    assert vocabulary is not None, "a model of an audit has its vocabulary"
    first = near_duplicates([train.stream, test.stream])
    repeated = originals_in(first, train.corpus, test.corpus, vocabulary.tokenizer)
    return repeated[train.counts.n_documents :] >= 0


def leaks(context: ScoreContext) -> Iterator[Finding]:
    """Test documents whose text, or nearly their text, is also among the training documents."""
    train = context.learned.train
    test = context.learned.test
    is_exact = test.corpus.keys.is_in(train.corpus.keys.implode()).to_numpy()
    is_leaked = is_exact.copy()
    if context.thorough:
        is_leaked |= _is_copy(context)
    n_leaked = int(is_leaked.sum())
    if not n_leaked:
        return
    share = Share.count(n_leaked, len(is_leaked))
    n_exact = int(is_exact.sum())
    duplicate = verb(n_leaked, "duplicate")
    if n_exact < n_leaked:
        duplicate += f" or nearly {duplicate}"
    documents = np.flatnonzero(is_leaked)
    yield Finding(
        kind="leak",
        severity=share.value,
        evidence={"test": share},
        documents=n_leaked,
        rows=score_rows(test.corpus, documents, "test"),
        examples=tuple(_beginning(test.corpus, k) for k in documents[:MAX_EXAMPLES].tolist()),
        title="Leak across the split",
        headline=(
            f"{plural(n_leaked, 'test document')} ({percent(share.value)}) {duplicate} training "
            "documents"
        ),
        details=(f"{plural(n_exact, 'of them is', 'of them are')} the same word for word",),
        action=(
            "Remove the copies from one side, or keep all copies on one side with --by COLUMN. "
            "Until then, the error on test documents may be too small."
        ),
    )


def contradictions(context: ScoreContext) -> Iterator[Finding]:
    """Training documents with the same text and different scores."""
    corpus = context.learned.train.corpus
    frame = pl.DataFrame({"key": corpus.keys, "score": context.scores}).with_row_index("document")
    spread = (pl.col("score").max() - pl.col("score").min()).over("key")
    frame = frame.with_columns(spread=spread).filter(pl.col("spread") > 0)
    if frame.is_empty():
        return
    documents = frame["document"].to_numpy().astype(np.int64)
    share = Share.count(len(documents), len(context.scores))
    largest = float(frame["spread"].max())  # type: ignore[arg-type]
    yield Finding(
        kind="contradiction",
        severity=share.value,
        evidence={"documents": share},
        documents=len(documents),
        rows=score_rows(corpus, documents),
        examples=tuple(_beginning(corpus, k) for k in documents[:MAX_EXAMPLES].tolist()),
        title="Same text, different scores",
        headline=(
            f"{plural(frame['key'].n_unique(), 'text')} {verb(frame['key'].n_unique(), 'occur')} "
            f"with different scores, up to {written_score(largest)} apart"
        ),
        details=(f"{plural(len(documents), 'document')} ({percent(share.value)}) are concerned",),
        action="Decide on one score for each text, or keep them if raters differ: that is noise.",
    )


# ---- doubtful scores


def doubtful_scores(context: ScoreContext) -> Iterator[Finding]:
    """Scores far from what models predict that were not trained on the document."""
    issues = score_issues(context)
    if issues.is_empty():
        return
    corpus = context.learned.train.corpus
    documents = issues["document"].to_numpy()
    share = Share.count(len(documents), len(context.scores))
    worst = issues.row(0, named=True)
    yield Finding(
        kind="labels",
        severity=max(share.value - EXPECTED_BEYOND, 0.0),
        evidence={"documents": share},
        documents=len(documents),
        rows=score_rows(corpus, documents),
        examples=tuple(
            _beginning(corpus, row["document"], f"about {written_score(row['predicted'])}")
            for row in issues.head(MAX_EXAMPLES).iter_rows(named=True)
        ),
        title="Scores to check",
        headline=(
            f"{plural(len(documents), 'training document')} ({percent(share.value)}) "
            f"{verb(len(documents), 'have', 'has')} a score far from the prediction of models that "
            "have not seen it"
        ),
        details=(
            f"more than {MAX_DEVIATIONS} standard deviations of all residuals; of normally "
            f"distributed ones that would be {percent(EXPECTED_BEYOND)}",
            f"the furthest is row {worst['row']:,}: score {written_score(worst['score'])}, "
            f"predicted {written_score(worst['predicted'])}",
        ),
        action="Read them, the furthest first: label-issues.csv lists them.",
    )


def score_issues(context: ScoreContext) -> pl.DataFrame:
    """The documents behind `doubtful_scores`: document, row, score, predicted, residual, against.

    `against` are tokens that move the prediction away from the score.
    """
    schema = {
        "document": pl.Int64,
        "row": pl.Int64,
        "score": pl.Float64,
        "predicted": pl.Float64,
        "residual": pl.Float64,
        "against": pl.String,
    }
    if context.out_of_fold is None:
        return pl.DataFrame(schema=schema)
    residuals = context.scores - context.out_of_fold
    limit = MAX_DEVIATIONS * residuals.std()
    documents = np.flatnonzero(np.abs(residuals - residuals.mean()) > limit)
    documents = documents[np.argsort(-np.abs(residuals[documents]), kind="stable")]
    return pl.DataFrame(
        {
            "document": documents,
            "row": context.learned.train.corpus.rows[documents],
            "score": context.scores[documents],
            "predicted": context.out_of_fold[documents],
            "residual": residuals[documents],
            "against": _against(context, documents, residuals[documents]),
        },
        schema=schema,
    )


def _against(context: ScoreContext, documents: Ints, residuals: Floats) -> list[str]:
    """The tokens of each document whose contributions have the other sign than its residual."""
    counts = context.learned.train.counts
    frames = context.learned.model.contributions(counts.matrix[documents])
    named = []
    for frame, residual in zip(frames, residuals.tolist(), strict=True):
        opposing = frame.filter(pl.col("contribution") * residual < 0).head(MAX_AGAINST)
        named.append(", ".join(str(counts.tokens[s]) for s in opposing["type"]))
    return named


# ---- groups


def likely_groups(context: ScoreContext) -> Iterator[Finding]:
    """A column that nobody named and whose values look like groups of documents."""
    corpus = context.learned.train.corpus
    groups = corpus.reading.likely_groups
    if groups is None or corpus.units is not None:
        return
    column = for_display(groups.column, IN_SENTENCE)
    yield Finding(
        kind="groups",
        severity=GROUPS_SEVERITY,
        documents=groups.n_documents,
        title="Likely groups",
        headline=(
            f"{plural(groups.n_documents, 'document')} share their value of “{column}” with others "
            "and often lie on the same side of the mean score"
        ),
        details=(
            f"two documents with the same value are on one side in {percent(groups.agreement)} of "
            f"cases ({percent(groups.expected_agreement)} by chance)",
        ),
        action=f"Add --by {column}: statistics then count groups, and none is on both sides.",
    )


def _beginning(corpus: Corpus, document: int, looks_like: str = "") -> Excerpt:
    assert corpus.scores is not None
    text = str(corpus.texts[document])
    if len(text) > EXCERPT_CHARACTERS:
        text = f"{text[:EXCERPT_CHARACTERS]}…"
    label = written_score(corpus.scores[document])
    return Excerpt(int(corpus.rows[document]), label, "", "", text, looks_like)
