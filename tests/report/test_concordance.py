"""Keyword in context: enough lines for each token of the lists, of both sides, each at a true
place."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.report import interactive_part
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.report.live.samples import N_LINES, plain_matches
from tokensieve.report.live.samples import context_lines as concordance
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.tokenizers import WordTokenizer


@pytest.fixture(scope="module")
def audited() -> Audit:
    made = demo_reviews(400, 0)
    return audit(
        read_corpus((made.texts.to_list(), made.labels.tolist())),
        Settings(ngrams=2, baseline=False),
    )


@pytest.mark.slow
def test_each_token_of_the_lists_has_ten_lines_from_both_sides(audited: Audit) -> None:
    found = concordance(interactive_part(audited))
    for label in audited.classes:
        for row in audited.top(label, 25).iter_rows(named=True):
            lines = found[row["token"]]
            assert len(lines) == min(N_LINES, row["documents"]) and len(
                {one.row for one in lines}
            ) == len(lines)
            own = [one for one in lines if one.label == label]
            others = row["documents"] - row["class_documents"]
            assert len(own) >= min(N_LINES // 2, row["class_documents"]) and len(lines) - len(
                own
            ) >= min(6, others)
            words = row["token"].split(" ")
            assert all(
                [w for _, _, w in WordTokenizer().spans(one.token)] == words for one in lines
            )
    assert {token for f in audited.findings for token in f.tokens[:8]} <= set(found)


def texts(n: int) -> list[str]:
    """Words glued in every way: where the quick search must agree with the tokenizer."""
    rng = random.Random(0)
    words = [
        "rock",
        "n",
        "roll",
        "don",
        "don't",
        "Good",
        "good",
        "İ",
        "e\u0301",
        "日",
        "a_b",
        "10",
        "👍",
        "x\u200dy",
    ]
    joints = [" ", "'", "’", "-", "", "<br />", "\n", ".", "“", "_", "\u0301", "‿", "é", ", "]
    return ["".join(rng.choice(words) + rng.choice(joints) for _ in range(12)) for _ in range(n)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "tokenizer", [WordTokenizer(), WordTokenizer(lowercase=False, line_breaks=False)]
)
def test_the_quick_search_finds_what_the_tokenizer_finds(tokenizer: WordTokenizer) -> None:
    documents = texts(16)
    corpus: Corpus = read_corpus((documents, [str(i % 2) for i in range(len(documents))]))
    tried = 0
    for i in range(len(corpus.texts)):
        spans = [word for _, _, word in tokenizer.spans(str(corpus.texts[i]))]
        for token in {*spans, *(f"{a} {b}" for a, b in pairwise(spans))}:
            tried += 1
            (place,) = plain_matches([str(corpus.texts[i])], token, tokenizer)
            found = Excerpt.of(corpus, i, (token,), tokenizer, place)
            exact = Excerpt.of(corpus, i, (token,), tokenizer)
            assert [w for _, _, w in tokenizer.spans(found.token)] == token.split(" "), (
                token,
                found,
            )
            assert found.row == exact.row and abs(len(found.before) - len(exact.before)) <= 140
            if found != exact:  # another place of the same token, where the signs are plain
                assert spans.count(token.split(" ")[0]) > 1
    assert tried > 100
