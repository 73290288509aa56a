"""Keyword in context: training documents' lines for the tokens that a reader is likely to ask about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import Quadrant, disagreeing, surest
from tokensieve.auditing.context import Passage, holders, passage
from tokensieve.auditing.findings import Finding
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import WORD, Tokenizer, WordTokenizer

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

LINES = 12  # of each token
CHARACTERS = 500_000  # of all lines, beyond those of the top lists
_PLAIN = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)*\Z")
_SIGNS = r"\s!\"(),?“”«»–—…"  # what is certainly no part of a word, a number, an address or a tag
_START = rf"(?<![^{_SIGNS}])"
_END = rf"(?=[{_SIGNS}]|\Z|\.(?:\s|\Z))"

Concordance = dict[str, tuple[Passage, ...]]


def concordance(audit: Audit) -> Concordance:
    """Up to twelve lines for each token that the lists name, then for those of extreme effect, score and value, until
    500,000 characters are reached.

    Half of a token's lines are of the class that it speaks for most, the others of the other classes in turn; where one side
    has too few documents, the other gives more. So a token of the lists has at least ten lines where ten documents hold it.

    Returns:
        token → its lines, those of the class it speaks for first.
    """
    table, findings, seed = audit.tokens, audit.findings, audit.seed
    counts, corpus, tokenizer = audit.learned.train.counts, audit.learned.train.corpus, audit.model.tokenizer
    first, others = _named(table, findings, counts.classes), _extreme(table)
    index = {str(token): i for i, token in enumerate(counts.tokens)}
    wanted = [token for token in dict.fromkeys([*first, *others]) if token in index]
    types = np.asarray([index[token] for token in wanted], dtype=np.int64)
    effects = table["effect"].fill_nan(0).to_numpy().reshape(len(counts.classes), -1)
    held, rng, certain = holders(counts, types), np.random.default_rng(seed), set(first)
    out, size = _of_form(findings, corpus, tokenizer), 0
    for token, s, documents in zip(wanted, types.tolist(), held, strict=True):
        if size > CHARACTERS and token not in certain:
            continue
        chosen = _chosen(rng.permutation(documents), counts.labels, int(np.argmax(effects[:, s])))
        lines = tuple(line(corpus, i, token, tokenizer) for i in chosen)
        size += sum(len(one.before) + len(one.token) + len(one.after) for one in lines)
        out[token] = lines
    return out


def line(corpus: Corpus, document: int, token: str, tokenizer: Tokenizer) -> Passage:
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


def _named(table: pl.DataFrame, findings: Sequence[Finding], classes: tuple[str, ...]) -> list[str]:
    """The tokens that the page's lists and cards name."""
    rows = min(25, max(10, 300 // len(classes)))
    lists = [surest(table, label, rows) for label in classes]
    lists += [disagreeing(table, quadrant, 15) for quadrant in (Quadrant.MODEL, Quadrant.DATA)]
    cards = [token for finding in findings for token in finding.tokens[:8]]
    return [*cards, *(token for rows in lists for token in rows["token"])]


def _extreme(table: pl.DataFrame, each: int = 150) -> list[str]:
    """The types of strongest effect, value and score, by turns."""
    ends = [
        table.top_k(2 * each, by=pl.col(by).fill_nan(0).abs()).sort(pl.col(by).abs(), descending=True)["token"]
        for by in ("effect", "value", "score")
    ]
    ranked = [token.unique(maintain_order=True).to_list()[:each] for token in ends]
    return [token for turn in zip(*ranked, strict=False) for token in turn]


def _of_form(findings: Sequence[Finding], corpus: Corpus, tokenizer: Tokenizer) -> Concordance:
    """Lines of the findings' formatting tokens, which no tokenizer finds: the start or the end of their documents."""
    out: Concordance = {}
    for finding in findings:
        for token in filter(is_formatting, finding.tokens[:8]):
            mine = finding.rows.filter((pl.col("part") == "train") & (pl.col("token") == token))["row"].to_numpy()[:200]
            documents = np.flatnonzero(np.isin(corpus.rows, mine))
            label = corpus.classes.index(finding.label) if finding.label in corpus.classes else 0
            chosen = _chosen(documents, corpus.labels, label)
            out[token] = tuple(passage(corpus, i, (token,), tokenizer) for i in chosen)
    return out
