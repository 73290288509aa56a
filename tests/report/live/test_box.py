"""The model in the page: its box and its documents answer as `explain` does, whatever the text,
classes and tokens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from opened import Opened, download, sample, without_pictures
from tokenizers import Tokenizer as Pieces
from tokenizers import models, pre_tokenizers, trainers

from calls import fast_first
from tokensieve import render
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.model.explanation import SINK
from tokensieve.read.reader import read_corpus
from tokensieve.report import html as page_module
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.wording import percent

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="the browser chromium is not installed"
)

TOLERANCE = (
    2e-6  # the page holds the model's numbers with 24 bits: each is off by 6e-8 of itself at most
)


def known_words(found: Audit) -> list[str]:
    assert found.model.vocabulary_ is not None
    return list(found.model.vocabulary_.words)


def odd_texts(n: int, words: list[str], seed: int = 1) -> list[str]:
    """Texts of known words, strange words and strange characters, joined in strange ways."""
    rng = np.random.default_rng(seed)
    odd = [
        *(
            "İstanbul",
            "ΟΔΟΣ",
            "ΣΑΣ",
            "Straße",
            "don’t",
            "rock'n'roll",
            "e\u0301a",
            "日本語がスキー",
            "กำลัง",
            "👩🏽‍⚕️",
            "🇩🇪🇫🇷🇦",
            "☀️",
        ),
        *(
            "می\u200cخواهم",
            "हिन्दी",
            "שלום\u200f",
            "\u202eabc\u202c",
            "ǅungla",
            "ﬁn",
            "x\u00adz",
            "_a_",
            "٣٤",
            "½",
        ),
        *(
            "a\ufeffb",
            "\x00",
            "\u0085",
            "K",
            "ſ",
            "<br\u00a0/>",
            "<BR>",
            "<br\u2003/>",
            "</br>",
            "\ufffd",
            "𝔘𝔫𝔦",
        ),
        *("Ⅷ", "ª", "ⓐ", "\U0001f3f4\U000e0067", "👍🏽👍🏿", "\u200d", "🤷🏾‍♂️"),
    ]
    joints = [" ", " ", " ", "\n", "", "-", "<br />", "\u3000", ".", "'", "\t", "\u200b"]
    out = []
    for _ in range(n):
        pool = [
            str(rng.choice(words if rng.random() < 0.7 else odd))
            for _ in range(rng.integers(0, 30))
        ]
        cased = [w.upper() if rng.random() < 0.2 else w for w in pool]
        out.append("".join(w + str(rng.choice(joints)) for w in cased))
    return out


@pytest.mark.slow
def test_the_box_answers_what_explain_answers(opened: Opened, audited: Audit) -> None:
    words = known_words(audited)
    for text in ["", *odd_texts(12, words), "not wonderful<br/>NOT good"]:
        opened.page.fill("#box-text", text)
        opened.settle()
        given = opened.page.input_value("#box-text")
        expected = audited.model.explain([given])[0]
        probability = audited.model.predict_proba([given])[0].max()
        line = opened.page.inner_text("#box-answer .answer")
        assert percent(probability) in line
        assert (str(expected.predicted) in line) or probability < 0.5005
        if expected.table.height > 1:  # more than the sink
            said = opened.page.inner_text("#box-answer .sum strong").split()[1].replace("−", "-")
            assert float(said) == pytest.approx(expected.logit, abs=6e-4)
            opened.page.click("#box-answer summary")
            opened.page.wait_for_selector("#box-answer tfoot")
            cells = opened.page.locator("#box-answer tbody tr").all_inner_texts()
            tokens = {line.split("\t")[0].strip() for line in cells if "\t" in line}
            named = {row for row in expected.table["token"][:40] if row.isascii()}
            assert named <= tokens


def page_answers(opened: Opened, texts: list[str]) -> list[Any]:
    """Answers of the page's own model, by the function that its script leaves for other
    programs."""
    return list(
        opened.page.evaluate("texts => texts.map(text => window.tokensieve.explain(text))", texts)
    )


def same_as_explain(opened: Opened, model: Any, texts: list[str]) -> None:
    matrix, unknown = model.counts_of(texts)
    expected, probability = (
        model.decision_function(matrix).reshape(len(texts), -1),
        model.predict_proba(matrix),
    )
    for i, found in enumerate(page_answers(opened, texts)):
        error = np.abs(np.asarray(found["answer"]) - expected[i]).max()
        assert error <= TOLERANCE * max(1.0, np.abs(expected[i]).max())
        np.testing.assert_allclose(found["probabilities"], probability[i], atol=TOLERANCE)
        assert found["unknown"] == unknown[i], repr(texts[i])
    some = texts[::20]
    for answered, explained in zip(page_answers(opened, some), model.explain(some), strict=True):
        table, found = explained.table, {row["token"]: row for row in answered["tokens"]}
        assert set(found) == set(table["token"])
        for row in table.iter_rows(named=True):
            assert found[row["token"]]["count"] == row["count"]
            for name in ("attention", "value", "contribution"):
                assert found[row["token"]][name] == pytest.approx(
                    row[name], rel=TOLERANCE, abs=TOLERANCE
                )


@pytest.mark.slow
@pytest.mark.parametrize("n", fast_first([60, 800]))
def test_page_equals_explain_on_many_documents(opened: Opened, audited: Audit, n: int) -> None:
    words = known_words(audited)
    texts = (
        odd_texts(n, words)
        + [s.text for s in sample(audited)]
        + ["\ud800 good", "good\udc00bad", ""]
    )
    assert len(texts) > n + 150
    same_as_explain(opened, audited.model, texts)


@pytest.mark.slow
def test_page_finds_the_formatting_that_python_finds(browser: Any, tmp_path: Path) -> None:
    looks = [
        "fine   ", "Fine.", "Fine...", 'He said "never."', "Well  then", "very **good**", "Points:\n\n- "
                                                                                          "one\n- "
                                                                                          "two", "1. "
                                                                                                 "a\n2. "
                                                                                                 "b",
        "## Title\ntext", "use `x = 1`", "| a | b |\n|---|---|", "https://a.org/x?y=1", "[t](http://a.org)", "me@a.org", "by "
                                                                                                                         "@a",
        "so #happy", "a<br />b &amp; c", "it is 9/10!", "3.5 out of 5", "50 % off $20", "TERRIBLE "
                                                                                        "film", "great "
                                                                                                "😀", "nice "
                                                                                                     ":-) "
                                                                                                     "one",
        "cafÃ© itâ€™s", "What?? No!!", "What?!", "sooo", "zero\u200bwidth", "no\u00a0break", "a\tb", " "
                                                                                                     "x", "a "
                                                                                                          "— "
                                                                                                          "b; "
                                                                                                          "c "
                                                                                                          "(d): "
                                                                                                          "e, "
                                                                                                          "‘f’",
        "*so* it is", "ends:", "x," , "\u0663 items", "É élan", "\u2028- x\u2028", "\r- y\r", "\u0085 "
                                                                                              "z", "\ufeff "
                                                                                                   "w", "word " * 130,
    ]  # fmt: skip
    corpus = read_corpus(
        (looks * 4, (["a", "b"] * len(looks) * 2)[: 4 * len(looks)]), duplicates="keep"
    )
    found = audit(corpus, Settings(baseline=False, thorough=False))
    assert found.model.vocabulary_ is not None and len(found.model.vocabulary_.formatting) > 50
    opened = Opened(browser, without_pictures(found), tmp_path)
    rng = np.random.default_rng(5)
    mixed = ["".join(rng.choice([*looks[:-1], "\n", " ", "..."], 3)) for _ in range(100)]
    texts = [
        *looks,
        *(text + " " for text in looks),
        *mixed,
        "x" * 300 + "   ",
        "😀" * 250 + ".",
        "",
        "  ",
    ]
    tokens = set(found.model.vocabulary_.formatting)
    for text, answered, expected in zip(
        texts, page_answers(opened, texts), found.model.explain(texts), strict=True
    ):
        assert {row["token"] for row in answered["tokens"]} & tokens == set(
            expected.table["token"]
        ) & tokens, repr(text)
    opened.context.close()


def three_classes(ngrams: int = 3) -> Audit:
    rng = np.random.default_rng(2)
    pool = "ocean river stone İzmir ΟΔΟΣ don't 日本語 👍🏽 not very é 𝔘𝔫𝔦 Ⅷ x_1".split()
    names = ["wet", "dry", "<b>both</b>"]
    texts = [" ".join([*rng.choice(pool, 12), *[pool[y]] * 2]) for y in np.arange(240) % 3]
    corpus = read_corpus((texts, [names[y] for y in np.arange(240) % 3]))
    return audit(corpus, Settings(ngrams=ngrams, baseline=False, thorough=False))


@pytest.mark.slow
def test_more_classes_and_longer_runs(browser: Any, tmp_path: Path) -> None:
    found = three_classes()
    opened = Opened(browser, without_pictures(found), tmp_path)
    same_as_explain(
        opened, found.model, odd_texts(40, known_words(found)) + [s.text for s in sample(found)]
    )
    for k, label in enumerate(found.classes):
        opened.page.select_option("#class", str(k))
        opened.settle()
        mine = found.tokens.filter(pl.col("class") == label)
        table = pl.read_csv(download(opened))
        assert table.sort("token")["value"].to_list() == mine.sort("token")["value"].to_list()
    for article in opened.page.locator("#documents-list article").all():
        said = article.locator(".sum strong").inner_text().split()[1]
        row = int(article.locator("h3").inner_text().split()[1])
        shown = next(s for s in sample(found) if s.row == row)
        best = int(np.argmax(shown.answer))
        other = shown.label if shown.label != best else int(np.argsort(shown.answer)[-2])
        assert float(said.replace("−", "-")) == pytest.approx(
            shown.answer[best] - shown.answer[other], abs=6e-4
        )
        assert f"evidence for {found.classes[best]} against {found.classes[other]}" in " ".join(
            article.inner_text().split()
        )
    assert opened.page.locator("#box-answer .chances tr").count() == 3
    opened.check()
    opened.context.close()


@pytest.mark.slow
def test_a_page_with_little_room_says_what_it_leaves_out(
    browser: Any, audited: Audit, html: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = html.split('id="block-model">')[1].split("<")[0]
    monkeypatch.setattr(page_module, "PAGE_BYTES", len(html.encode()) - len(block) // 2)
    small = render(audited)
    assert len(small.encode()) <= page_module.PAGE_BYTES
    opened = Opened(browser, small, tmp_path)
    note = opened.page.inner_text("#box-left")
    assert f"of {audited.token_types:,} token types are not on this page" in note
    assert "those in no text here and in at most" in note
    sums = opened.page.locator("#documents-list .sum").all_inner_texts()
    assert any("not on this page" in line for line in sums)
    size = audited.token_types - int(note.split()[0].replace(",", ""))
    held = audited.tokens[: audited.token_types]["documents"].to_numpy().astype(np.int64)
    kept = {audited.model.tokens_[s] for s in np.argsort(-held, kind="stable")[:size]}
    for token in list(kept)[:50]:
        assert {row["token"] for row in page_answers(opened, [token])[0]["tokens"]} <= kept | {SINK}
    opened.check()
    opened.context.close()


@pytest.mark.slow
def test_pieces_show_their_documents_though_the_page_cannot_split(
    browser: Any, tmp_path: Path
) -> None:
    made = demo_reviews(150, 3)
    texts = [text.replace("wonderful", "wonderful 👍🏽") for text in made.texts.to_list()]
    pieces = Pieces(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    found = audit(
        read_corpus((texts, [str(y) for y in made.labels])),
        Settings(baseline=False, thorough=False, tokenizer=PieceTokenizer(pieces)),
    )
    opened = Opened(browser, without_pictures(found), tmp_path)
    assert "cannot run" in opened.page.inner_text("#box-left")
    assert not opened.page.is_visible("#box-text")
    said = opened.page.locator("#documents-list .sum").first.inner_text()
    row = int(opened.page.locator("#documents-list h3").first.inner_text().split()[1])
    sampled = next(s for s in sample(found) if s.row == row)
    assert float(said.split()[-1].replace("−", "-")) == pytest.approx(sampled.answer[0], abs=6e-4)
    assert "not on this page" not in said
    assert (
        opened.page.locator("#documents-list .text").first.inner_text().strip()
        == sampled.text.strip()
    )
    opened.check()
    opened.context.close()
