"""Diagnosing transformers: pieces and words, attention and effects against direct computation,
correlations, the verdict."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from test_encoding import TEXTS, WORDS

from calls import later
from diagnose_models import FAMILIES, build, fit, kind_of, planted_reviews
from tokensieve.auditing.demo import demo_reviews
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.effects.work import Work
from tokensieve.diagnose.judgement.agreement import Correlation, Evidence, Jackknifed
from tokensieve.diagnose.report import DiagnosisReport
from tokensieve.diagnose.subjects.frame import Frame, Input
from tokensieve.diagnose.subjects.libraries import untrained_twin
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.pieces import PieceSubject
from tokensieve.diagnose.subjects.windows import SPECIAL, Windows
from tokensieve.errors import InputError
from tokensieve.evidence.importance import token_importance
from tokensieve.evidence.intervals import Z95
from tokensieve.progress import silent
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer

torch = later("torch")
tf = later("transformers")
reading = later("tokensieve.diagnose.subjects.reader")

SETTINGS = DiagnoseSettings(min_documents=5, batch_size=32)


@pytest.mark.slow
@pytest.mark.parametrize("family", [*FAMILIES, "ibert"])  # its embeddings are a pair
def test_attention_and_effects_against_one_document_at_a_time(family: str) -> None:
    model, tokenizer = build(family, TEXTS.to_list())
    frame = Frame.of(tokenizer)
    windows = Windows(tokenizer, TEXTS[:3], WordTokenizer(), WORDS, frame, None, True, silent)
    batch = [windows.input(w) for w in range(3)]
    rng = np.random.default_rng(0)
    kinds = [windows.types[a:z] for a, z in zip(windows.starts, windows.starts[1:], strict=False)]
    share = [np.where(one == SPECIAL, np.nan, rng.random(len(one))) for one in kinds]
    with reading.Reader.prepared(model, 0):
        reader = reading.Reader(model, Outputs((1, 0), 2, 2), frame)
        assert reader.layers == 2 and reader.differentiable and reader.padding == "right"
        assert reader.reads == ("last" if family in ("gpt2", "llama") else "first")
        logits, attention = reader.look(batch)
        effects = reader.integrate(batch, share, np.zeros(3, dtype=np.int64))
        np.testing.assert_allclose(logits, reader.logits(batch), atol=1e-5)
        model.set_attn_implementation("eager")
        for k, one in enumerate(batch):
            ids = torch.tensor(one.ids[None].astype(np.int64))
            out = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True)
            np.testing.assert_allclose(logits[k], out.logits[0].detach(), atol=1e-5)
            at = len(one.ids) - 1 if reader.reads == "last" else 0
            layers = [a[0].mean(0).numpy() for a in out.attentions]
            eye = np.eye(len(one.ids))
            rolled = (layers[1] + eye) / 2 @ ((layers[0] + eye) / 2)
            np.testing.assert_allclose(attention[k], rolled[at], atol=1e-5)
            assert rolled[at].sum() == pytest.approx(1, abs=1e-4)
            np.testing.assert_allclose(
                effects[k], integrated(model, ids, share[k]), rtol=2e-3, atol=2e-5
            )


def integrated(model: Any, ids: Any, share: Any) -> Any:
    """The formula of `reading` for logit 0 − logit 1, through the library's own `inputs_embeds`."""
    table = model.get_input_embeddings()
    e, pad = (
        (out[0] if isinstance(out, tuple) else out).detach()
        for out in (table(ids), table(torch.zeros_like(ids)))
    )
    text = np.isfinite(share)
    t = torch.tensor(np.where(text, share, 1.0), dtype=torch.float32)[None, :, None]
    leaf = (t * e + (1 - t) * pad).requires_grad_(True)
    z = model(inputs_embeds=leaf, attention_mask=torch.ones_like(ids)).logits
    (gradient,) = torch.autograd.grad(z[0, 0] - z[0, 1], leaf)
    return np.where(text, ((e - pad) * gradient).sum(-1)[0].numpy(), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_where_the_answer_is_read_from_the_text_a_word_is_blanked_in_its_place(family: str) -> None:
    model, tokenizer = build(family, TEXTS.to_list())
    frame = Frame.of(tokenizer)
    windows = Windows(tokenizer, TEXTS, WordTokenizer(), WORDS, frame, None, True, silent)
    the, neither = WORDS.index("the"), WORDS.index("not")
    words = [np.array([the]), np.array([neither, the])]
    types = [windows.types[windows.at(w)] for w in range(len(windows))]
    with_all = [
        next(w for w, has in enumerate(types) if np.isin(some, has).all()) for some in words
    ]
    at = np.array(with_all)
    table = model.get_input_embeddings()
    with reading.Reader.prepared(model, 0):
        reader = reading.Reader(model, Outputs((0, 1), 2, 2), frame)
        assert reader.reads_text is (family == "gpt2")
        found = PieceSubject(reader, windows, 2).without(words, at)
        for row, (some, w) in enumerate(zip(words, at, strict=True)):
            ids = torch.tensor(windows.input(w).ids.astype(np.int64))[None]
            gone = torch.tensor(np.isin(types[w], some))
            assert gone.any()
            if family == "gpt2":
                given = {
                    "inputs_embeds": torch.where(
                        gone[None, :, None], table(torch.zeros_like(ids)), table(ids)
                    )
                }
            else:
                given = {"input_ids": ids[:, ~gone]}
            np.testing.assert_allclose(found[row], model(**given).logits[0].detach(), atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "bert"])
def test_on_the_straight_path_effects_add_up_to_the_change_of_the_answer(family: str) -> None:
    """Where every word has the same share, the midpoint rule of integrated gradients: f(document) −
    f(padding in its place)."""
    model, tokenizer = build(family, TEXTS.to_list())
    frame = Frame.of(tokenizer)
    windows = Windows(tokenizer, TEXTS[:2], WordTokenizer(), WORDS, frame, None, True, silent)
    batch = [windows.input(w) for w in range(2)]
    text = [
        windows.types[a:z] != SPECIAL
        for a, z in zip(windows.starts, windows.starts[1:], strict=False)
    ]
    empty = [
        Input(np.where(mask, 0, one.ids).astype(np.int32))
        for one, mask in zip(batch, text, strict=True)
    ]
    outputs, sums, steps = Outputs((0, 1), 2, 2), np.zeros(2), 12
    with reading.Reader.prepared(model, 0):
        reader = reading.Reader(model, outputs, frame)
        for step in range(steps):
            share = [np.where(mask, (step + 0.5) / steps, np.nan) for mask in text]
            found = reader.integrate(batch, share, np.zeros(2, dtype=np.int64))
            sums += [one.sum() / steps for one in found]
        change = outputs.answers(reader.logits(batch)) - outputs.answers(reader.logits(empty))
    np.testing.assert_allclose(sums, change[:, 0], rtol=0.1, atol=1e-4)


def test_the_model_is_left_as_it_was() -> None:
    model, tokenizer = build("bert", TEXTS.to_list())
    model.set_attn_implementation("sdpa")
    model.train()
    model.config.pad_token_id = None
    with reading.Reader.prepared(model, 0):
        assert reading.Reader(model, Outputs((0, 1), 2, 2), Frame.of(tokenizer)).layers == 2
    assert (
        model.config._attn_implementation == "sdpa"
        and model.training
        and model.config.pad_token_id is None
    )
    assert all(p.requires_grad for p in model.parameters())


def test_the_number_of_threads_changes_no_bit() -> None:
    """Two equal runs of `diagnose` differed in the fourth digit of small effects."""
    model, tokenizer = build("bert", TEXTS.to_list())
    frame = Frame.of(tokenizer)
    windows = Windows(tokenizer, TEXTS, WordTokenizer(), WORDS, frame, None, True, silent)
    batch = [windows.input(w) for w in range(len(windows))]
    before = torch.get_num_threads()
    read = []
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        with reading.Reader.prepared(model, 0):
            reader = reading.Reader(model, Outputs((0, 1), 2, 2), frame)
            read.append((reader.logits(batch), reader.look(batch)[1][0]))
        assert torch.get_num_threads() == n_threads  # the caller's number is left alone
    torch.set_num_threads(before)
    for logits, attention in read[1:]:
        np.testing.assert_array_equal(logits, read[0][0])
        np.testing.assert_array_equal(attention, read[0][1])


def test_mean_pooling_is_seen() -> None:
    model, tokenizer = build("modernbert", TEXTS.to_list())
    config = model.config
    config.classifier_pooling = "mean"
    other = tf.AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    with reading.Reader.prepared(other, 0):
        reader = reading.Reader(other, Outputs((0, 1), 2, 2), Frame.of(tokenizer))
        _, attention = reader.look([Input(np.arange(5, 5 + n, dtype=np.int32)) for n in (4, 9)])
    assert reader.reads == "mean"
    for received in attention:
        np.testing.assert_allclose(received.sum(-1), 1, atol=1e-5)


def test_untrained_twin_has_the_shape_and_other_weights() -> None:
    model, _ = build("distilbert", TEXTS.to_list())
    twin, again = untrained_twin(model, 1), untrained_twin(model, 1)
    mine, theirs = dict(model.named_parameters()), dict(twin.named_parameters())
    assert {n: p.shape for n, p in mine.items()} == {n: p.shape for n, p in theirs.items()}
    assert not torch.equal(mine["classifier.weight"], theirs["classifier.weight"])
    assert torch.equal(
        dict(again.named_parameters())["classifier.weight"], theirs["classifier.weight"]
    )


def test_importance_is_the_shrunken_balanced_posterior_difference() -> None:
    rng = np.random.default_rng(0)
    matrix, labels = rng.poisson(1.0, (60, 5)), rng.permutation(np.arange(60) % 2)
    counts = Counts.from_matrix(matrix, labels.tolist())
    mine = Evidence(counts, rng.integers(0, 6, 60), 6).importance.of_all[:, 0]
    found = token_importance(counts)
    n = matrix.sum(0) ** 2 / (matrix**2).sum(0)
    np.testing.assert_allclose(mine, found.posterior_difference[:, 1] * n / (n + Z95**2))
    share = (found.posterior_difference[:, 1] + 1) / 2
    ends = [
        np.roots([1 + Z95**2 / m, -(2 * p + Z95**2 / m), p**2])
        for p, m in zip(share, n, strict=True)
    ]
    np.testing.assert_allclose(
        mine, [roots.sum() - 1 for roots in ends], atol=1e-12
    )  # centre of Wilson's interval
    twice = Counts.from_matrix(
        np.vstack([matrix, matrix[labels == 1]]), [*labels, *labels[labels == 1]]
    )
    balanced = Evidence(twice, np.zeros(90, dtype=np.int64), 1).importance.of_all[:, 0]
    assert (
        np.abs(np.sign(balanced) - np.sign(mine)).max() == 0
    )  # a class counted twice changes no side


def test_interval_holds_the_true_correlation_as_often_as_it_says() -> None:
    rng, inside, runs = np.random.default_rng(1), 0, 200
    for _ in range(runs):
        truth = rng.normal(size=(80, 1))
        measure = 0.6 * truth + 0.8 * rng.normal(size=(80, 1))
        noise = rng.normal(size=(20, 80, 1))
        left = [truth + (noise.sum(0) - noise[g]) / 19 * 0.5 for g in range(20)]
        one = Correlation.of(
            Jackknifed(truth + noise.mean(0) * 0.5, left), Jackknifed.constant(measure, 20)
        )
        inside += one.low <= 0.6 <= one.high
    assert 0.92 <= inside / runs <= 1.0


def test_a_word_of_one_group_does_not_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 1))
    seen = np.exp(np.abs(truth[:, 0]) + 0.1 * rng.normal(size=60))
    gone = seen.copy()
    gone[0] = np.nan  # in the documents of the first group alone
    one = Correlation.of(Jackknifed.constant(truth, 10), Jackknifed(seen, [gone] + [seen] * 9))
    assert one.error < 1.1 / np.sqrt(57) and one.low > 0.5


def test_more_draws_are_the_mean_of_single_ones() -> None:
    model, tokenizer = build("bert", TEXTS.to_list())
    frame = Frame.of(tokenizer)
    windows = Windows(tokenizer, TEXTS[:3], WordTokenizer(), WORDS, frame, None, True, silent)
    with reading.Reader.prepared(model, 0):
        subject = PieceSubject(reading.Reader(model, Outputs((0, 1), 2, 2), frame), windows, 2)
        m, at, heads = len(subject.types), np.arange(3), np.zeros(3, dtype=np.int64)
        both, one, other = np.zeros(m), np.zeros(m), np.zeros(m)
        subject.integrate(at, heads, both, draws=2)
        subject.integrate(at, heads, one)
        subject._path_place = (subject._path_place + 0.5) % 1
        subject.integrate(at, heads, other)
    np.testing.assert_allclose(both, (one + other) / 2, atol=1e-9)
    assert np.abs(one - other).max() > 1e-9


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_deletions_are_bounded_distinct_and_of_words_that_are_there(
    seed: int, per_type: int
) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, 40, (100, 2)) % [7, 40], axis=0)
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
    subject = SimpleNamespace(types=pairs[:, 0], windows=pairs[:, 1])
    measured = Measured(subject, Outputs((0, 1), 2, 2), Work(1, 1, seed, None, "", silent))  # type: ignore[arg-type]
    chosen = measured.choose(np.arange(6), per_type)
    assert len(np.unique(chosen)) == len(chosen)
    held = np.bincount(pairs[:, 0], minlength=7)
    held[6] = 0  # not asked for
    assert (
        np.bincount(pairs[chosen, 0], minlength=7).tolist() == np.minimum(held, per_type).tolist()
    )


def test_a_trained_model_is_told_from_an_untrained_one(found: Diagnosis, reviews: Any) -> None:
    # a quarter of the reviews contain the mark, whatever their label, and it misleads the model
    assert found.learned is True and found.accuracy > 0.65
    assert "This model has learned to predict the label" in DiagnosisReport(found).sentences()[0]
    for name in ("value_importance", "gradient_importance", "attention_importance"):
        one, other = found.correlation[name], found.agreement["untrained"][name]
        assert one.low > 0 and one.stands_out(None, other) and other.low < 0.1 < one.rho, name
    assert (found.documents["all"], found.documents["read"]) == (400, 400) and found.reading[
        "truncated_documents"
    ] == 0
    strong = found.tokens.filter(
        pl.col("token").is_in(["wonderful", "terrible"]), pl.col("class") == "1"
    )
    assert set(strong["quadrant"]) == {"carries the label, attended"}
    assert (
        dict(strong.select("token", "value").iter_rows())["wonderful"]
        > 0
        > dict(strong.select("token", "value").iter_rows())["terrible"]
    )


def test_the_planted_shortcut_comes_first(found: Diagnosis, reviews: Any) -> None:
    assert found.leaning["token"][0] == reviews.shortcut and found.leaning["class"][0] == "1"
    assert reviews.shortcut in DiagnosisReport(found).headline()
    assert found.leaning["move_low"][0] > 0 and found.leaning["q_value"][0] >= 0.05


@pytest.mark.slow
def test_an_untrained_model_has_learned_nothing(trained: Any, reviews: Any) -> None:
    model = untrained_twin(trained[0], 9)
    result = diagnose(model, trained[1], reviews.texts.to_list(), reviews.labels.tolist(), SETTINGS)
    assert result.learned is False and DiagnosisReport(result).sentences()[0].startswith(
        "Its predictions are no better"
    )
    assert all(one.low < 0.2 for one in result.correlation.values())


@pytest.mark.slow
def test_measures_against_the_model_itself(trained: Any, found: Diagnosis, reviews: Any) -> None:
    """Value and deletion of one word, through the model's ordinary call on text."""
    model, tokenizer = trained

    def answer(text: str) -> float:
        with torch.no_grad():
            z = model(**tokenizer(text, return_tensors="pt")).logits[0]
        return float(z[1] - z[0])

    row = found.tokens.filter(pl.col("token") == "wonderful", pl.col("class") == "1").to_dicts()[0]
    mirror = found.tokens.filter(pl.col("token") == "wonderful", pl.col("class") == "0").to_dicts()[
        0
    ]
    assert (
        row["value"] == pytest.approx(answer(" wonderful"), rel=1e-3)
        and mirror["value"] == -row["value"]
    )
    texts, labels = reviews.texts.to_list()[:100], reviews.labels.tolist()[:100]
    holding = [text for text in texts if "wonderful" in text]
    settings_ = DiagnoseSettings(min_documents=len(holding), untrained=False)
    whole = diagnose(model, tokenizer, texts, labels, settings_)
    mine = whole.tokens.filter(pl.col("token") == "wonderful", pl.col("class") == "1").to_dicts()[0]
    lost = [answer(text) - answer(text.replace(" wonderful", "")) for text in holding]
    assert mine["deleted_from"] == len(holding) and mine["deletion"] == pytest.approx(
        np.mean(lost), rel=1e-3
    )
    row = whole.uses.row(by_predicate=pl.col("token") == "wonderful", named=True)
    assert row["use"] == pytest.approx(np.mean(np.abs(lost)), rel=1e-3)
    flips = [(answer(text) > 0) != (answer(text.replace(" wonderful", "")) > 0) for text in holding]
    assert row["flipped"] == pytest.approx(np.mean(flips), abs=1e-6)
    truth = dict(zip(texts, labels, strict=True))
    signs = np.array([1 if truth[text] == 1 else -1 for text in holding])
    assert row["helps"] == pytest.approx(np.mean(signs * lost), rel=1e-3, abs=1e-5)


@pytest.mark.slow
def test_same_seed_same_result_and_summary_is_strict_json(
    trained: Any, found: Diagnosis, reviews: Any
) -> None:
    some = replace(SETTINGS, max_documents=80, untrained=False)
    one, again = (
        diagnose(*trained, reviews.texts.to_list(), reviews.labels.tolist(), some) for _ in range(2)
    )
    assert again.tokens.equals(one.tokens) and again.leaning.equals(one.leaning)
    summary = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert summary["tokens"] == found.token_types and summary["truncated_documents"] == 0
    assert summary["correlation"]["value_importance"] == pytest.approx(
        found.correlation["value_importance"].rho
    )
    assert set(summary["baselines"]) == {"untrained", "shuffled_labels"}
    low, high = summary["baselines"]["shuffled_labels"]["value_importance"]
    assert -0.5 < low < 0 < high < 0.5 < summary["correlation"]["value_importance"]


@pytest.mark.slow
def test_batch_size_changes_nothing(trained: Any, reviews: Any) -> None:
    texts, labels = reviews.texts.to_list()[:100], reviews.labels.tolist()[:100]
    settings_ = replace(SETTINGS, untrained=False)
    one, other = (
        diagnose(*trained, texts, labels, replace(settings_, batch_size=size)) for size in (7, 32)
    )
    for name in ("value", "gradient", "attention", "use"):
        mine, theirs = one.tokens[name].to_numpy(), other.tokens[name].to_numpy()
        np.testing.assert_allclose(mine, theirs, rtol=5e-3, atol=5e-4)


@pytest.mark.slow
def test_work_goes_on_where_it_stopped(
    trained: Any, found: Diagnosis, reviews: Any, tmp_path: Path
) -> None:
    seen: list[str] = []

    def stop(stage: str, share: float) -> None:
        seen.append(stage)
        if seen.count("model: effects") == 2:
            raise KeyboardInterrupt

    arguments = (*trained, reviews.texts.to_list(), reviews.labels.tolist(), SETTINGS)
    file = tmp_path / "work.safetensors"
    with pytest.raises(KeyboardInterrupt):
        diagnose(*arguments, resume=file, progress=stop)
    assert file.exists() and "model: reading documents" in seen
    seen.clear()
    result = diagnose(*arguments, resume=file, progress=lambda stage, share: seen.append(stage))
    assert "model: reading documents" not in seen and any("confirming" in stage for stage in seen)
    assert result.tokens.equals(found.tokens)
    with pytest.raises(InputError, match="data, settings or"):
        diagnose(*arguments[:4], DiagnoseSettings(min_documents=6, batch_size=32), resume=file)
    file.write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        diagnose(*arguments, resume=file)


@pytest.mark.slow
def test_long_documents_and_samples_are_counted(trained: Any, reviews: Any) -> None:
    texts, labels = reviews.texts.to_list(), reviews.labels.tolist()
    short = {
        "min_documents": 5,
        "max_documents": 100,
        "max_length": 40,
        "untrained": False,
        "batch_size": 64,
    }
    cut = diagnose(*trained, texts, labels, DiagnoseSettings(**short))
    parts = diagnose(*trained, texts, labels, DiagnoseSettings(**short, long="windows"))
    assert (cut.documents["all"], cut.documents["read"]) == (400, 100)
    assert cut.reading["truncated_documents"] == parts.reading["long_documents"] > 30
    assert (
        parts.reading["truncated_documents"]
        == parts.reading["lost_pieces"]
        == 0
        < cut.reading["lost_pieces"]
    )
    assert parts.reading["windows"] > cut.reading["windows"] == 100
    assert any("the model reads 100 of 400 documents" in note for note in cut.notes)
    assert (
        cut.tokens.filter(pl.col("token") == "the")["documents"][0] > 100
    )  # importance comes from all documents


@pytest.mark.slow
def test_a_pipeline_is_diagnosed_by_deletion_alone(reviews: Any) -> None:
    train = planted_reviews(1000, 5, planted=True)
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression())
    model.fit(train.texts.to_list(), np.where(train.labels == 1, "good", "poor"))
    labels = np.where(reviews.labels == 1, "good", "poor").tolist()
    found = diagnose(model, None, reviews.texts.to_list(), labels, SETTINGS)
    assert (
        found.learned is True
        and "attention" not in found.tokens.columns
        and not found.agreement["untrained"]
    )
    weights = dict(
        zip(model[0].get_feature_names_out(), -model[1].coef_[0], strict=True)
    )  # of "poor", the second class
    held = {
        word: {
            k
            for k, text in enumerate(reviews.texts)
            if word in text.lower().replace(".", "").split()
        }
        for word in weights
    }
    confirmed = set(found.uses["token"])
    for token, value, deletion in (
        found.tokens.filter(pl.col("class") == "poor")
        .select("token", "value", "deletion")
        .iter_rows()
    ):
        if token in weights:  # of a phrase all words are left out
            mine = held[token]
            phrase = [
                w for w in confirmed & set(held) if len(mine & held[w]) >= 0.8 * len(mine | held[w])
            ]
            others = [-weights[w] for w in phrase if w != token] if token in confirmed else []
            low, high = (-weights[token] + sum(end(0.0, x) for x in others) for end in (min, max))
            assert low - 1e-4 <= deletion <= high + 1e-4
            assert value == pytest.approx(-weights[token] - model[1].intercept_[0] * -1, abs=1e-4)
    assert found.leaning["token"][0] == reviews.shortcut


@pytest.mark.slow
def test_three_classes(reviews: Any) -> None:
    texts = reviews.texts.to_list()[:300]
    labels = [("plot" in t) + 2 * ("soup" in t and "plot" not in t) for t in texts]
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression(C=10)).fit(
        texts[:200], labels[:200]
    )
    found = diagnose(model, None, texts, labels, SETTINGS)
    assert found.classes == ("0", "1", "2") and found.learned is True
    best = found.tokens.filter(pl.col("class") == "2").sort("deletion")["token"][-1]
    assert best == "soup"
    sums = found.tokens.group_by("token").agg(pl.col("value").sum())["value"]
    assert float(sums.abs().max()) < 1e-4  # answers are centred over classes


@pytest.mark.slow
def test_a_transformer_of_three_classes() -> None:
    texts, labels = TEXTS.to_list(), [i % 3 for i in range(120)]
    model, tokenizer = build("bert", texts, classes=3)
    found = diagnose(model, tokenizer, texts, labels, DiagnoseSettings(min_documents=5))
    assert found.tokens.height == 3 * found.token_types and found.learned is False
    by_token = found.tokens.group_by("token").agg(pl.col("value", "gradient").sum())
    assert (
        float(by_token["value"].abs().max()) < 1e-4
        and float(by_token["gradient"].abs().max()) < 1e-4
    )


@pytest.mark.slow
def test_a_model_without_attention_says_so() -> None:
    texts = TEXTS.to_list()
    model, tokenizer = build("fnet", texts)
    found = diagnose(
        model, tokenizer, texts, [i % 2 for i in range(120)], DiagnoseSettings(min_documents=5)
    )
    assert found.reading["layers"] == 0 and "attention" not in found.tokens.columns
    assert any("attention is not measured" in note for note in found.notes)
    assert math.isfinite(found.correlation["gradient_importance"].rho)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_a_family_trained_and_untrained(family: str) -> None:
    """For each kind of tokenizer, and each place that the prediction is read from."""
    train, held = demo_reviews(600, seed=1), demo_reviews(120, seed=2)
    model, tokenizer = build(family, train.texts.to_list())
    # of whole words, one vector each, a model learns the reviews of two topics more slowly
    epochs = 12 if kind_of(family) == "unigram" else 6
    fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=epochs)
    found = diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), SETTINGS)
    assert found.learned is True
    untrained = found.agreement["untrained"]
    assert any(
        found.correlation[name].stands_out(None, untrained[name])
        for name in ("value_importance", "attention_importance")
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "planted"), [(0, True), (0, False), (1, False)])
def test_a_planted_shortcut_is_first_and_one_that_was_not_is_never_listed(
    seed: int, planted: bool
) -> None:
    held, train = (
        planted_reviews(300, 5000 + seed, planted=False),
        planted_reviews(1000, 100 + seed, planted),
    )
    model, tokenizer = build("modernbert", train.texts.to_list(), seed=seed)
    fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=4, seed=seed)
    settings_ = replace(SETTINGS, untrained=False)
    found = diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), settings_)
    words = found.leaning["token"].to_list()
    assert words[:1] == [held.shortcut] if planted else held.shortcut not in words


@pytest.mark.slow
def test_real_reviews() -> None:
    data = Path(os.environ.get("TOKENSIEVE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (data / "imdb_train.parquet").exists():
        pytest.skip(f"{data} is not there")
    train, test = (
        pl.read_parquet(data / f"imdb_{part}.parquet").sample(600, seed=0, shuffle=True)
        for part in ("train", "test")
    )
    model, tokenizer = build("bert", train["text"].to_list(), size=1500)
    fit(
        model,
        tokenizer,
        train["text"].to_list(),
        (train["label"] == "positive").to_numpy().astype(np.int64),
        epochs=3,
    )
    found = diagnose(
        model,
        tokenizer,
        test["text"].to_list(),
        test["label"].to_list(),
        DiagnoseSettings(max_length=128, deletions=1),
    )
    assert (
        found.learned is True
        and found.to_dict()["truncated_share"] > 0.5
        and found.to_dict()["lost_share"] > 0.2
    )
