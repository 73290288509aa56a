"""Which documents the page shows: a sample of the test part, and lines in which tokens occur."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints, row_blocks
from tokensieve.model.attention import Model
from tokensieve.read.corpus import Corpus
from tokensieve.read.values import text_series
from tokensieve.report.blocks import InteractiveAudit
from tokensieve.report.live.packing import Json
from tokensieve.text.counts import Counts
from tokensieve.text.excerpts import Excerpt, Place
from tokensieve.text.formatting import find_features, is_formatting
from tokensieve.text.patterns import WORD
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import TokenStream, Vocabulary

# Limits of the sample of documents; together they keep it below a megabyte.
MAX_DOCUMENT = 6_000  # characters of a document
MAX_CHARACTERS = 400_000  # of all of them
MAX_LOGITS = 100_000  # one per document and class
N_OF_EACH_KIND = 8
N_EXTREME_TYPES = 600  # whose shortest documents are shown
N_SHORTEST = 2  # of each of those types

# Limits of the lines in which tokens occur.
N_LINES = 12  # of each token
N_TOKENS_OF_FINDING = 8
MAX_ROWS_OF_FORMATTING = 200  # documents of a finding among which lines are chosen
N_EXTREMES = 150  # by effect, value and score each
N_EXTREME_ROWS = 300  # a type may be extreme for several classes
MAX_LINE_CHARACTERS = 500_000  # of all lines; tokens that the page names have theirs in any case
N_LISTED = (10, 25)  # fewest and most strongest predictors of a class whose lines are shown
N_LISTED_IN_ALL = 300
EXTREMES = ("effect", "value", "score")


@dataclass(frozen=True)
class SampleDocuments:
    """Test documents for the page.

    Attributes:
        documents: each with row, label, kind (how it was predicted), text, total = log Σ_s c_{X,s}
            e^{u_s}, answer (its logits), for pairs other (the contribution of the other answer);
            where the page cannot split text, also spans, types and features of the words.
        types: the token types in them, sorted.
    """

    documents: list[Json]
    types: Ints


def sample_documents(audit: InteractiveAudit, page_splits_text: bool) -> SampleDocuments:
    """Eight documents of each kind, the shortest with informative tokens, then random ones.

    Args:
        audit: with its test documents.
        page_splits_text: whether the page can run the tokenizer.
    """
    test = audit.learned.test
    has_tokens = np.diff(test.counts.matrix.indptr) > 0
    fits = (test.corpus.characters <= MAX_DOCUMENT) & has_tokens
    kinds = _kinds(audit, fits)
    rows = _sample_rows(audit, fits, kinds)
    texts = test.corpus.texts.gather(rows)  # at once: they may lie on a cluster
    matrix = test.counts.matrix[rows]
    totals = _log_totals(audit.learned.model, matrix)
    logits = audit.learned.model.logits(matrix)
    documents: list[Json] = []
    for k, row in enumerate(rows.tolist()):
        document = {
            "row": int(test.corpus.rows[row]),
            "label": int(test.counts.labels[row]),
            "kind": kinds.get(row, ""),
            "text": texts[k],
            "total": float(totals[k]),
            "answer": audit.learned.f[row].tolist(),
        }
        if not audit.learned.task.classifies:
            document["other"] = document["answer"][0] - float(logits[k, 0])
        documents.append(document)
    vocabulary = audit.learned.model.vocabulary
    if documents and vocabulary is not None and not page_splits_text:
        _add_words(documents, matrix, vocabulary)
    return SampleDocuments(documents, np.unique(matrix.indices))


def _sample_rows(audit: InteractiveAudit, fits: NDArray[np.bool_], first: Iterable[int]) -> Ints:
    """The test documents of the sample, by row, as many as the limits allow.

    Those of `first` come before the shortest, and these before others in random order.
    """
    n_characters = audit.learned.test.corpus.characters
    shortest = _shortest_documents(audit, n_characters, fits)
    shuffled = np.random.default_rng(audit.seed).permutation(np.flatnonzero(fits))
    at_random = shuffled[:MAX_CHARACTERS].tolist()  # a document has a character, so no more fit
    without_repeats = dict.fromkeys([*first, *shortest, *at_random])
    rows = np.asarray(list(without_repeats), dtype=np.int64)

    n_characters_so_far = np.cumsum(n_characters[rows])
    n_in_characters = int(np.searchsorted(n_characters_so_far, MAX_CHARACTERS))
    n_in_logits = MAX_LOGITS // len(audit.classes)
    return rows[: min(n_in_characters, n_in_logits)]


def _kinds(audit: InteractiveAudit, fits: NDArray[np.bool_]) -> dict[int, str]:
    """Document → how it was predicted, for the most and the least confident of each kind."""
    kinds: dict[int, str] = {}
    for outcome, by_confidence in (("correct", audit.right), ("wrong", audit.wrong)):
        fitting = by_confidence[fits[by_confidence]].tolist()
        confident = fitting[:N_OF_EACH_KIND]
        least_first = fitting[N_OF_EACH_KIND:][::-1]
        kinds |= dict.fromkeys(least_first[:N_OF_EACH_KIND], f"{outcome} and unsure")
        kinds |= dict.fromkeys(confident, f"{outcome} and confident")
    return kinds


def _log_totals(model: Model, matrix: sp.csr_array) -> Floats:
    """log Σ_s c_{X,s} e^{u_s} of each document, with the sink if the model has one."""
    totals = np.logaddexp.reduceat(
        np.log(matrix.data) + model.scores[matrix.indices], matrix.indptr[:-1]
    )
    if model.sink is None:
        return totals
    return np.logaddexp(totals, model.sink)


def _add_words(documents: list[Json], matrix: sp.csr_array, vocabulary: Vocabulary) -> None:
    """Add the places, types and formatting of the words, for a page that cannot split text."""
    texts = text_series([document["text"] for document in documents])
    stream = TokenStream.of(texts, vocabulary.tokenizer)
    types = vocabulary.positions(stream)
    for k, document in enumerate(documents):
        text = document["text"]
        # JavaScript counts in 16-bit units
        units = np.cumsum([0, *(2 if ord(character) > 0xFFFF else 1 for character in text)])
        document["spans"] = [
            (int(units[start]), int(units[end]))
            for start, end, _ in vocabulary.tokenizer.spans(text)
        ]
        document["types"] = types[stream.starts[k] : stream.starts[k + 1]]
        contained = matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]]
        document["features"] = contained[contained >= vocabulary.n_words]


def _shortest_documents(
    audit: InteractiveAudit, n_characters: Ints, fits: NDArray[np.bool_]
) -> list[int]:
    """The shortest documents that contain the types of most extreme effect, value or score."""
    if audit.tokens.is_empty():
        return []
    test = audit.learned.test.counts
    ranks = []
    for column in EXTREMES:
        by_class = audit.tokens[column].abs().to_numpy().reshape(-1, test.n_types)
        ranks.append(np.argsort(np.argsort(-by_class.max(axis=0), kind="stable")))
    types = np.argsort(np.min(ranks, axis=0), kind="stable")[:N_EXTREME_TYPES]
    shortest: list[int] = []
    for documents in _documents_with_each(test, types):
        fitting = documents[fits[documents]]
        by_length = np.argsort(n_characters[fitting], kind="stable")
        shortest += fitting[by_length[:N_SHORTEST]].tolist()
    return shortest


def _documents_with_each(counts: Counts, types: Ints) -> Iterator[Ints]:
    """The documents that contain each type, for some types at a time.

    Many types are common, and all at once take much memory.
    """
    ends = np.append(0, np.cumsum(counts.present[types].sum(axis=1)))
    for block in row_blocks(ends):
        yield from counts.holders(types[block])


def context_lines(audit: InteractiveAudit) -> dict[str, tuple[Excerpt, ...]]:
    """Token → lines of training documents that contain it.

    Half are from the class that it predicts most, and come first, half from the others in turn; if
    one side has too few, the other gives more. Tokens in the page's lists come first, then those of
    extreme effect, value or score, up to `MAX_LINE_CHARACTERS` in all.
    """
    corpus = audit.learned.train.corpus
    tokenizer = _tokenizer(audit)
    named = dict.fromkeys(_named_tokens(audit))
    documents_of = _documents_of_tokens(audit, [*named, *_extreme_tokens(audit.tokens)])
    texts = _texts_of(corpus, list(documents_of.values()))
    lines = _formatting_lines(audit, tokenizer)
    n_characters = 0
    for token, documents in documents_of.items():
        if n_characters > MAX_LINE_CHARACTERS and token not in named:
            continue
        places = _places([texts[i] for i in documents], token, tokenizer)
        lines[token] = tuple(
            Excerpt.of(corpus, i, (token,), tokenizer, place)
            for i, place in zip(documents, places, strict=True)
        )
        n_characters += sum(map(_length, lines[token]))
    return lines


def _places(texts: Sequence[str], token: str, tokenizer: Tokenizer) -> list[Place | None]:
    """Where the token stands first, as far as that is found without the tokenizer."""
    if is_formatting(token):
        return find_features(texts, token)
    return plain_matches(texts, token, tokenizer)


def _documents_of_tokens(audit: InteractiveAudit, candidates: list[str]) -> dict[str, list[int]]:
    """Token → training documents for its lines, of those candidates that the model knows."""
    index = {str(token): i for i, token in enumerate(audit.learned.train.counts.tokens)}
    tokens = [token for token in dict.fromkeys(candidates) if token in index]
    types = np.asarray([index[token] for token in tokens], np.int64)
    return dict(zip(tokens, _documents_for_lines(audit, types), strict=True))


def _length(line: Excerpt) -> int:
    return len(line.before) + len(line.token) + len(line.after)


def _texts_of(corpus: Corpus, documents_of: Sequence[list[int]]) -> dict[int, str]:
    """Document → text, read at once: they may lie on a cluster."""
    documents = np.unique(np.concatenate([np.empty(0), *documents_of])).astype(np.int64)
    return dict(zip(documents.tolist(), corpus.texts.gather(documents), strict=True))


def _tokenizer(audit: InteractiveAudit) -> Tokenizer:
    vocabulary = audit.learned.model.vocabulary
    assert vocabulary is not None, "a model of an audit has its vocabulary"
    return vocabulary.tokenizer


def _named_tokens(audit: InteractiveAudit) -> list[str]:
    """The tokens that the page's cards and lists name."""
    fewest, highest = N_LISTED
    n_listed = min(highest, max(fewest, N_LISTED_IN_ALL // len(audit.classes)))
    named: list[str] = []
    for finding in audit.findings:
        named += finding.tokens[:N_TOKENS_OF_FINDING]
    for label in audit.classes:
        named += audit.top_tokens[label][:n_listed]
    return [*named, *audit.disagreeing]


def _extreme_tokens(table: pl.DataFrame) -> list[str]:
    """The types of strongest effect, value and score, by turns."""
    ranked = []
    for column in EXTREMES:
        size = pl.col(column).fill_nan(0).abs()
        top = table.top_k(N_EXTREME_ROWS, by=size).sort(pl.col(column).abs(), descending=True)
        ranked.append(top["token"].unique(maintain_order=True).to_list()[:N_EXTREMES])
    tokens: list[str] = []
    for turn in zip(*ranked, strict=False):
        tokens += turn
    return tokens


def _documents_for_lines(audit: InteractiveAudit, types: Ints) -> list[list[int]]:
    """The training documents whose lines are shown, for each type."""
    counts = audit.learned.train.counts
    effects = audit.tokens["effect"].fill_nan(0).to_numpy().reshape(len(counts.classes), -1)
    predicted = np.argmax(effects[:, types], axis=0).tolist()
    rng = np.random.default_rng(audit.seed)
    return [
        from_both_sides(rng.permutation(documents), counts.labels, label)
        for documents, label in zip(_documents_with_each(counts, types), predicted, strict=True)
    ]


def _formatting_lines(
    audit: InteractiveAudit, tokenizer: Tokenizer
) -> dict[str, tuple[Excerpt, ...]]:
    """Lines of formatting, which no tokenizer finds: the start or the end of its documents."""
    corpus = audit.learned.train.corpus
    lines: dict[str, tuple[Excerpt, ...]] = {}
    for finding in audit.findings:
        label = corpus.classes.index(finding.label) if finding.label in corpus.classes else 0
        for token in filter(is_formatting, finding.tokens[:N_TOKENS_OF_FINDING]):
            is_own = (pl.col("part") == "train") & (pl.col("token") == token)
            rows = finding.rows.filter(is_own)["row"].to_numpy()[:MAX_ROWS_OF_FORMATTING]
            documents = np.flatnonzero(np.isin(corpus.rows, rows))
            chosen = from_both_sides(documents, corpus.labels, label)
            lines[token] = tuple(Excerpt.of(corpus, i, (token,), tokenizer) for i in chosen)
    return lines


def from_both_sides(documents: Ints, labels: Ints, label: int) -> list[int]:
    """Twelve documents at most: half of the class, the others of the other classes in turn."""
    is_own = labels[documents] == label
    own_side = documents[is_own]
    opposite_side = documents[~is_own]
    in_turn = opposite_side[np.argsort(ranks_in_group(labels[opposite_side]), kind="stable")]
    n_others = min(len(opposite_side), max(N_LINES // 2, N_LINES - len(own_side)))
    return [*own_side[: N_LINES - n_others].tolist(), *in_turn[:n_others].tolist()]


def ranks_in_group(groups: Ints) -> Ints:
    """For each item, the number of items of its group before it, shape (n,)."""
    by_group = np.argsort(groups, kind="stable")
    _, sizes = np.unique(groups, return_counts=True)
    first_of_group = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[by_group] = np.arange(len(groups)) - first_of_group
    return ranks


# what is certainly no part of a word, a number, an address or a tag
_PLAIN_SIGNS = r"\s!\"(),?“”«»–—…"
_PLAIN_WORDS = re.compile(r"[A-Za-z]+(?:[' ][A-Za-z]+)*")
_BEGIN = re.compile(rf"(?<![^{_PLAIN_SIGNS}])")
_BETWEEN = re.compile(f"[{_PLAIN_SIGNS}]+")
_END = re.compile(rf"(?=[{_PLAIN_SIGNS}]|\Z|\.(?:\s|\Z))")


def plain_matches(texts: Sequence[str], token: str, tokenizer: Tokenizer) -> list[Place | None]:
    """The first place of plain words between plain signs, None where there is none.

    The tokenizer, which finds every token, takes milliseconds for a text.
    """
    nothing: list[Place | None] = [None] * len(texts)
    if not isinstance(tokenizer, WordTokenizer):
        return nothing
    is_plain = _PLAIN_WORDS.fullmatch(token)
    if tokenizer.pattern != WORD or tokenizer.html == "strip" or not is_plain:
        return nothing
    words = token.split(" ")
    return [_first_match(text, words, tokenizer.lowercase) for text in texts]


def _first_match(text: str, words: Sequence[str], lowercase: bool) -> Place | None:
    """Find the first place of the words."""
    folded = text.lower() if lowercase else text
    if len(folded) != len(text):  # a letter whose lower case is longer: places differ
        return None
    at = folded.find(words[0])
    while at >= 0:
        end = _end_of_words(folded, at, words)
        if end is not None:
            return at, end
        at = folded.find(words[0], at + 1)
    return None


def _end_of_words(text: str, start: int, words: Sequence[str]) -> int | None:
    """The end of words that begin at a place; None if they do not stand there between plain signs.

    One expression for each token would take more time to compile than to match.
    """
    if not _BEGIN.match(text, start):
        return None
    end = start + len(words[0])
    for word in words[1:]:
        between = _BETWEEN.match(text, end)
        if between is None or not text.startswith(word, between.end()):
            return None
        end = between.end() + len(word)
    return end if _END.match(text, end) else None
