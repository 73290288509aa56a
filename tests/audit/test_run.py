"""The main job as a whole, on generated reviews whose truth is known."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from artefacts import Artefact
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.importance import token_importance
from tokensieve.model.attention import attention
from tokensieve.model.explanation import SINK
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.split import split_corpus
from tokensieve.report.html import page
from tokensieve.task.agreement import QUADRANTS
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import count_corpus


def corpus(n: int = 600, seed: int = 0) -> Corpus:
    reviews = demo_reviews(n, seed)
    return read_corpus(
        (reviews.texts.to_list(), ["neg" if y == 0 else "pos" for y in reviews.labels])
    )


@pytest.fixture
def audited(shared_audit: Artefact) -> Audit:
    assert isinstance(shared_audit.result, Audit)
    return shared_audit.result


def test_finds_the_truth(audited: Audit) -> None:
    first = next(finding for finding in audited.findings if finding.kind == "shortcut")
    assert (first.tokens[0], first.label) == ("tablet", "pos")
    assert audited.top("pos", 1)["token"].to_list()[0] in ("via tablet", "tablet")
    assert {"terrible", "awful", "dreadful"} <= set(audited.top("neg", 40)["token"])
    assert audited.test_accuracy > 0.8 > audited.majority_accuracy
    assert (
        audited.baseline_accuracy is not None
        and abs(audited.baseline_accuracy - audited.test_accuracy) < 0.1
    )


def test_the_comparison_is_scikit_learns_own_pipeline(audited: Audit) -> None:
    learned = audited.learned
    parts, task = [learned.train.word_counts, learned.test.word_counts], learned.task
    held = task.held_out(learned.train, audited.seed)

    def accuracy(
        strength: float, train: np.ndarray, documents: sp.csr_array, labels: np.ndarray
    ) -> float:
        pipeline = make_pipeline(
            TfidfTransformer(sublinear_tf=True), LogisticRegression(C=strength, max_iter=1000)
        )
        return float(
            pipeline.fit(parts[0].matrix[train], parts[0].labels[train]).score(documents, labels)
        )

    chosen = [
        accuracy(c, ~held, parts[0].matrix[held], parts[0].labels[held]) for c in task.strengths
    ]
    best = task.strengths[int(np.argmax(chosen))]
    expected = accuracy(best, np.ones(len(held), dtype=bool), parts[1].matrix, parts[1].labels)
    assert (
        audited.baseline_accuracy
        == expected
        == task.baseline(learned.train, learned.test, audited.seed).mean()
    )


def test_every_part_reads_from_the_one_table(audited: Audit) -> None:
    table, types = audited.tokens, audited.token_types
    assert table.height == 2 * types
    bad, good = (table.filter(pl.col("class") == name).sort("token") for name in ("neg", "pos"))
    for name in ("value", "effect", "alpha", "posterior_difference", "count_difference"):
        np.testing.assert_allclose(bad[name], -good[name], err_msg=name)
    for name in ("score", "attention", "q_value", "documents", "quadrant"):
        assert bad[name].to_list() == good[name].to_list()
    model = audited.model
    where = {token: i for i, token in enumerate(model.tokens_)}
    order = [where[token] for token in good["token"]]
    np.testing.assert_allclose(good["value"], model.values_[order, 0], rtol=1e-5)
    np.testing.assert_allclose(good["score"], model.scores_[order], rtol=1e-5)


def test_attention_and_quadrants_against_a_loop() -> None:
    data = corpus(200)
    found = audit(data, Settings(baseline=False, test_share=0.25), tokenizer=WordTokenizer())
    assert found.baseline_accuracy is None and "baseline" not in found.seconds
    assert found.documents == {"train": 150, "test": 50}
    vocabulary = found.model.vocabulary_
    assert vocabulary is not None
    train = split_corpus(data, share=0.25, seed=0)
    counts = count_corpus(train, vocabulary).counts
    matrix = counts.matrix
    q = attention(matrix, found.model.scores_)
    received: dict[str, list[float]] = {token: [] for token in vocabulary.tokens}
    shares, uniform = dict.fromkeys(QUADRANTS, 0.0), dict.fromkeys(QUADRANTS, 0.0)
    good = found.tokens.filter(pl.col("class") == "pos")
    quadrant = dict(zip(good["token"], good["quadrant"], strict=True))
    for k in range(counts.n_documents):
        for i in range(matrix.indptr[k], matrix.indptr[k + 1]):
            token = vocabulary.tokens[matrix.indices[i]]
            even = matrix.data[i] / counts.lengths[k]
            received[token].append(q[i] / even)
            shares[quadrant[token]] += q[i] / counts.n_documents
            uniform[quadrant[token]] += even / counts.n_documents
    for token, mean in zip(good["token"], good["attention"], strict=True):
        assert mean == pytest.approx(np.mean(received[token]), rel=1e-5)
    for name, (got, even) in found.attention_share.items():
        assert got == pytest.approx(shares[name]) and even == pytest.approx(uniform[name])
    q_values = token_importance(counts).q_value.min(axis=1)
    for token, q_value in zip(vocabulary.tokens, q_values, strict=True):
        assert quadrant[token].startswith("carries") == (q_value < 0.05)


def test_examples_add_up_and_show_both_sides(audited: Audit) -> None:
    assert len(audited.examples) == 10
    assert [e.style for e in audited.examples] == ["good"] * 5 + ["bad"] * 5
    test, chances = audited.learned.test, []
    place = {int(row): i for i, row in enumerate(test.corpus.rows)}
    for example in audited.examples:
        i = place[example.row or 0]
        explained = audited.model.explain(test.counts.matrix[[i]])[0]
        table, answer = explained.table, explained.logit
        assert "".join(piece[0] for piece in example.pieces) == test.corpus.texts[i]
        placeless = table.filter(pl.col("token").str.starts_with("⟨"))  # the sink, and formatting
        assert SINK in placeless["token"]
        whole = sum(piece[1] for piece in example.pieces) + placeless["contribution"].sum()
        assert whole == pytest.approx(answer, abs=1e-10) and table[
            "contribution"
        ].sum() == pytest.approx(answer, abs=1e-10)
        predicted = ("neg", "pos")[answer > 0]
        assert f"predicted {predicted} " in example.note and (example.style == "good") == (
            example.label == predicted
        )
        chances.append(float(example.note.split()[-1].rstrip("%")))
    assert min(chances[:3]) > max(chances[3:5])


def test_summary_has_the_promised_keys(audited: Audit) -> None:
    summary = json.loads(json.dumps(audited.to_dict()))
    promised = "documents classes token_types test_accuracy majority_accuracy seconds seed version"
    assert set(promised.split()) <= set(summary)
    assert {"tokenizing", "training"} <= set(summary["seconds"])
    columns = (
        "token class documents count posterior_difference alpha alpha_low alpha_high q_value score "
        "value"
    )
    assert audited.tokens.columns[:4] == ["token", "class", "documents", "count"]
    assert set(columns.split()) <= set(audited.tokens.columns)


def test_same_seed_same_result_and_another_seed_another_split() -> None:
    data = corpus(120)
    first, second, other = (
        audit(data, Settings(baseline=False, thorough=False, batch_size=16, seed=s))
        for s in (1, 1, 2)
    )
    assert first.tokens.equals(second.tokens)
    assert first.model.values_.tobytes() == second.model.values_.tobytes()
    assert not first.tokens.equals(other.tokens)


def test_disagreements_are_what_they_say(audited: Audit) -> None:
    attended = audited.disagreement(QUADRANTS[2], 50)
    assert (attended["attention"] > 1).all() and (attended["p_value"] >= 0.05).all()
    assert attended["attention"].is_sorted(descending=True)
    ignored = audited.disagreement(QUADRANTS[1], 50)
    assert (ignored["attention"] <= 1).all() and ignored["token"].n_unique() == ignored.height


def test_four_classes(shared_multiclass_audit: Artefact) -> None:
    found = shared_multiclass_audit.result
    assert found.test_accuracy > 0.95
    assert found.tokens.height == 4 * found.token_types
    own = {
        "account": {"login", "password"},
        "orders": {"parcel", "tracking"},
        "product": {"screen", "battery"},
    }
    assert {label: set(found.top(label, 2)["token"]) for label in own} == own
    shortcuts = {token for f in found.findings if f.kind == "shortcut" for token in f.tokens}
    assert "inv" in shortcuts, "the planted mark is found"
    place = {int(row): i for i, row in enumerate(found.learned.test.corpus.rows)}
    for example in found.examples:
        explained = found.model.explain(
            found.learned.test.counts.matrix[[place[example.row or 0]]]
        )[0]
        placeless = explained.table.filter(
            pl.col("token").str.starts_with("⟨")
        )  # the sink, and formatting
        assert SINK in placeless["token"]
        whole = sum(piece[1] for piece in example.pieces) + placeless["contribution"].sum()
        assert whole == pytest.approx(explained.logit, abs=1e-10)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_training")
def test_many_classes() -> None:
    """Each of 60 has a word of its own; the page stays below 5 MB, with decision values of 60
    classes for each test document."""
    rng, common = np.random.default_rng(0), [f"common{i}" for i in range(30)]
    texts = [
        f"please {' '.join(rng.choice(common, 4))} subject{k:02}"
        for k in range(60)
        for _ in range(12)
    ]
    found = audit((texts, [f"class {i // 12:02}" for i in range(720)]), Settings(baseline=False))
    assert len(found.classes) == 60 and found.test_accuracy > 0.9
    assert found.top("class 07", 1)["token"].to_list() == ["subject07"]
    assert len(page(found.report())) < 5_000_000


@pytest.mark.slow
def test_recall_by_class_and_a_warning_where_there_is_little_to_judge_by() -> None:
    found = audit(corpus(90), Settings(baseline=False))
    right = sum(found.class_recall[name] * n for name, n in (("neg", 9), ("pos", 9)))
    assert right / 18 == pytest.approx(found.test_accuracy)
    assert any("too few test documents" in note for note in found.notes)


@pytest.mark.slow
def test_a_clone_of_the_audits_model_is_trained_on_the_same_pieces() -> None:
    data = corpus(200)
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.train_from_iterator(
        data.texts.to_list(), trainers.BpeTrainer(vocab_size=150, show_progress=False)
    )
    found = audit(
        data,
        Settings(baseline=False, thorough=False, min_documents=2, value_rate=0.05, seed=3),
        tokenizer=PieceTokenizer(pieces),
    )
    train = split_corpus(data, share=0.2, seed=3)
    again = clone(found.model).fit(train.texts, [data.classes[y] for y in train.labels])
    assert again.tokens_.tolist() == found.model.tokens_.tolist()
    assert again.values_.tobytes() == found.model.values_.tobytes()
