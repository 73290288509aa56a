"""The texts that the audit's page holds: a sample of test documents, and lines of training documents around tokens."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp

from tokensieve.auditing.agreement import Quadrant, disagreeing, surest
from tokensieve.auditing.findings import Excerpt, holders, passage
from tokensieve.auditing.result import Audit, Kind, by_certainty
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.spill import characters
from tokensieve.text.tokenizers import WORD, Tokenizer, WordTokenizer

SAMPLE_CHARACTERS = 400_000
LONGEST_SAMPLED = 6_000
OF_EACH_KIND = 8
LINES = 12  # of each token
LINE_CHARACTERS = 500_000  # of all lines, beyond those of the top lists
_PLAIN = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)*\Z")
_SIGNS = r"\s!\"(),?“”«»–—…"  # what is certainly no part of a word, a number, an address or a tag
_START = rf"(?<![^{_SIGNS}])"
_END = rf"(?=[{_SIGNS}]|\Z|\.(?:\s|\Z))"


def sample(audit: Audit) -> list[tuple[int, Kind, float]]:
    """Test documents for the page: (place, how it was predicted, log Σ_s c_{X,s} e^{u_s}).

    Up to 400,000 characters, none longer than 6,000: eight of each kind, then the shortest that contain the most informative
    tokens, then others by chance.
    """
    counts, model = audit.learned.test.counts, audit.model
    m, size = counts.matrix, characters(audit.learned.test.corpus.texts)
    fits = (size <= LONGEST_SAMPLED) & (np.diff(m.indptr) > 0)
    kinds: dict[int, Kind] = {}
    named = (Kind.RIGHT_CERTAIN, Kind.RIGHT_UNCERTAIN), (Kind.WRONG_CERTAIN, Kind.WRONG_UNCERTAIN)
    for (certain, uncertain), group in zip(named, by_certainty(audit.learned), strict=True):
        fitting = group[fits[group]]
        kinds |= dict.fromkeys(fitting[OF_EACH_KIND:][::-1][:OF_EACH_KIND].tolist(), uncertain)
        kinds |= dict.fromkeys(fitting[:OF_EACH_KIND].tolist(), certain)
    others = np.random.default_rng(audit.seed).permutation(np.flatnonzero(fits)).tolist()
    wanted = list(dict.fromkeys([*kinds, *_short_holders(audit, size, fits), *others]))
    rows = np.asarray(wanted, dtype=np.int64)
    rows = rows[: np.searchsorted(np.cumsum(size[rows]), SAMPLE_CHARACTERS)]
    sink = [] if model.sink_ is None else [model.sink_]
    out = []
    for i in rows.tolist():
        inside = slice(m.indptr[i], m.indptr[i + 1])
        sums = [*model.scores_[m.indices[inside]], *sink]
        total = float(logsumexp(sums, b=[*m.data[inside], *np.ones(len(sink))]))
        out.append((i, kinds.get(i, Kind.OTHER), total))
    return out


def _short_holders(audit: Audit, size: Ints, fits: NDArray[np.bool_], types: int = 600, each: int = 2) -> list[int]:
    """For the types of extreme effect, score or value, most extreme first: the shortest test documents that contain them."""
    test, table = audit.learned.test.counts, audit.tokens
    n = test.n_types
    if table.is_empty():
        return []
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


def lines(audit: Audit) -> dict[str, tuple[Excerpt, ...]]:
    """Token → lines of training documents that contain it, those of the class that it predicts most first.

    Up to twelve for each token that the lists name, then for those of extreme effect, score and value, until 500,000 characters
    are reached. Half of a token's lines are of the class that it predicts, the others of the other classes in turn; where one
    side has too few documents, the other gives more. So a token of the lists has at least ten lines where ten documents hold it.
    """
    counts, corpus, table = audit.learned.train.counts, audit.learned.train.corpus, audit.tokens
    assert audit.model.vocabulary_ is not None
    tokenizer = audit.model.vocabulary_.tokenizer
    first, others = _named(audit), _extreme(table)
    index = {str(token): i for i, token in enumerate(counts.tokens)}
    wanted = [token for token in dict.fromkeys([*first, *others]) if token in index]
    types = np.asarray([index[token] for token in wanted], dtype=np.int64)
    effects = table["effect"].fill_nan(0).to_numpy().reshape(len(counts.classes), -1)
    held, rng, certain = holders(counts, types), np.random.default_rng(audit.seed), set(first)
    out, size = _of_form(audit, tokenizer), 0
    for token, s, documents in zip(wanted, types.tolist(), held, strict=True):
        if size > LINE_CHARACTERS and token not in certain:
            continue
        chosen = _chosen(rng.permutation(documents), counts.labels, int(np.argmax(effects[:, s])))
        found = tuple(_line(corpus, i, token, tokenizer) for i in chosen)
        size += sum(len(one.before) + len(one.token) + len(one.after) for one in found)
        out[token] = found
    return out


def _line(corpus: Corpus, document: int, token: str, tokenizer: Tokenizer) -> Excerpt:
    """The first place of a token in a document that is known to hold it.

    Plain words between plain signs are found without the tokenizer, which takes milliseconds for a text.
    """
    place = None
    if (
        isinstance(tokenizer, WordTokenizer)
        and tokenizer.pattern == WORD
        and tokenizer.html != "strip"
        and _PLAIN.match(token)
    ):
        gap = f"[{_SIGNS}]+"
        pattern = _START + gap.join(token.split(" ")) + _END
        found = re.search(pattern, str(corpus.texts[document]), re.IGNORECASE if tokenizer.lowercase else 0)
        place = found and found.span()
    return passage(corpus, document, (token,), tokenizer, place)


def _chosen(documents: Ints, labels: Ints, label: int) -> list[int]:
    """Twelve documents at most: half of the class, the others of the other classes in turn."""
    own = documents[labels[documents] == label]
    rest = documents[labels[documents] != label]
    ranks = np.empty(len(rest), dtype=np.int64)
    for k in np.unique(labels[rest]):
        mine = labels[rest] == k
        ranks[mine] = np.arange(np.count_nonzero(mine))
    rest = rest[np.argsort(ranks, kind="stable")]
    few = min(len(rest), max(LINES // 2, LINES - len(own)))
    return [*own[: LINES - few].tolist(), *rest[:few].tolist()]


def _named(audit: Audit) -> list[str]:
    """The tokens that the page's lists and cards name."""
    table, classes = audit.tokens, audit.classes
    rows = min(25, max(10, 300 // len(classes)))
    lists = [surest(table, label, rows) for label in classes]
    lists += [disagreeing(table, quadrant, 15) for quadrant in (Quadrant.MODEL, Quadrant.DATA)]
    cards = [token for finding in audit.findings for token in finding.tokens[:8]]
    return [*cards, *(token for rows in lists for token in rows["token"])]


def _extreme(table: pl.DataFrame, each: int = 150) -> list[str]:
    """The types of strongest effect, value and score, by turns."""
    ends = [
        table.top_k(2 * each, by=pl.col(by).fill_nan(0).abs()).sort(pl.col(by).abs(), descending=True)["token"]
        for by in ("effect", "value", "score")
    ]
    ranked = [token.unique(maintain_order=True).to_list()[:each] for token in ends]
    return [token for turn in zip(*ranked, strict=False) for token in turn]


def _of_form(audit: Audit, tokenizer: Tokenizer) -> dict[str, tuple[Excerpt, ...]]:
    """Lines of the findings' formatting tokens, which no tokenizer finds: the start or the end of their documents."""
    corpus = audit.learned.train.corpus
    out: dict[str, tuple[Excerpt, ...]] = {}
    for finding in audit.findings:
        for token in filter(is_formatting, finding.tokens[:8]):
            mine = finding.rows.filter((pl.col("part") == "train") & (pl.col("token") == token))["row"].to_numpy()[:200]
            documents = np.flatnonzero(np.isin(corpus.rows, mine))
            label = corpus.classes.index(finding.label) if finding.label in corpus.classes else 0
            chosen = _chosen(documents, corpus.labels, label)
            out[token] = tuple(passage(corpus, i, (token,), tokenizer) for i in chosen)
    return out
