"""Diagnosing transformers: pieces and words, attention and effects against direct computation, correlations, the verdict."""

from __future__ import annotations

import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
tf = pytest.importorskip("transformers")
from diagnose_models import FAMILIES, build, fit, framed, kind_of, planted_reviews, train_tokenizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tokenizers import Tokenizer

from tokensieve.auditing.demo import demo_reviews
from tokensieve.data.importance import Z95, token_importance
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose
from tokensieve.diagnose.agreement import correlate, gather, importance
from tokensieve.diagnose.encoding import REST, SPECIAL, encode, frame_of, length_limit
from tokensieve.diagnose.loading import untrained_twin
from tokensieve.diagnose.measuring import choose_deletions
from tokensieve.diagnose.reading import FIRST, LAST, MEAN, Reader, prepared
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer

TEXTS = demo_reviews(120, seed=3).texts
WORDS = ("bad", "good", "not", "plot", "tablet", "the", "wonderful")
SETTINGS = DiagnoseSettings(min_documents=5, batch_size=32)


def quiet(stage: str, share: float) -> None:
    """No progress."""


@cache
def tokenizer_of(kind: str) -> str:
    """As JSON; two trainings on the same text need not give the same pieces."""
    return str(train_tokenizer(kind, TEXTS.to_list()).to_str())


def encoded(family: str, limit: int | None = None, cut: bool = True, texts: pl.Series = TEXTS[:20]) -> tuple[Any, Any]:
    tokenizer = framed(Tokenizer.from_str(tokenizer_of(kind_of(family))), family in ("gpt2", "llama"))
    return tokenizer, encode(tokenizer, texts, WordTokenizer(), WORDS, limit, cut, quiet)


@pytest.fixture(scope="module")
def reviews() -> Any:
    return planted_reviews(400, 77, planted=False)


@pytest.fixture(scope="module")
def trained(reviews: Any) -> Any:
    torch.set_num_threads(1)
    train = planted_reviews(1000, 5, planted=True)
    model, tokenizer = build("modernbert", train.texts.to_list())
    fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6)
    return model, tokenizer


@pytest.fixture(scope="module")
def found(trained: Any, reviews: Any) -> Diagnosis:
    return diagnose(*trained, reviews.texts.to_list(), reviews.labels.tolist(), SETTINGS)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_pieces_of_a_word_spell_the_word(family: str) -> None:
    tokenizer, windows = encoded(family)
    before, after = frame_of(tokenizer)
    assert windows.long_documents == windows.lost_pieces == 0 and len(windows) == 20
    for w in range(len(windows)):
        ids = windows.ids(w)
        types = windows.types[windows.starts[w] : windows.starts[w + 1]]
        assert ids.tolist() == tokenizer(TEXTS[w])["input_ids"]
        assert (types == SPECIAL).sum() == len(before) + len(after)
        for s in np.unique(types[types >= 0]):
            written = tokenizer.decode(ids[types == s].tolist()).lower().replace(" ", "")
            occurrences = sum(word == WORDS[s] for _, _, word in WordTokenizer().spans(TEXTS[w]))
            assert written.strip(".,") == WORDS[s] * occurrences
    for s, form in enumerate(windows.forms):
        inner = form[len(before) : len(form) - len(after)]
        assert not len(inner) or tokenizer.decode(inner.tolist()).lower().strip(" .,") == WORDS[s]


def test_the_first_word_that_a_piece_reaches_into_gets_it() -> None:
    made = train_tokenizer("bytes", ["x"])
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]")
    windows = encode(
        tokenizer,
        pl.Series(["naïve not, \U0001f600 bad", ""]),
        WordTokenizer(),
        ("bad", "naïve", "not"),
        None,
        True,
        quiet,
    )
    text = "naïve not, \U0001f600 bad"
    expected = (
        [1] * 6 + [REST] + [2] * 3 + [REST] * 2 + [REST] * 5 + [0] * 3
    )  # one piece a byte; ï has two, the smile four
    assert len(text.encode()) == len(expected) == windows.starts[1]
    assert windows.types.tolist() == expected and windows.starts[2] == windows.starts[1]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_windows_cover_everything_and_truncation_counts_what_is_lost(family: str) -> None:
    tokenizer, whole = encoded(family)
    _, parts = encoded(family, 20, cut=False)
    _, cut = encoded(family, 20, cut=True)
    frame = sum(map(len, frame_of(tokenizer)))
    text = whole.types != SPECIAL
    assert parts.pieces[parts.types != SPECIAL].tolist() == whole.pieces[text].tolist()
    assert parts.types[parts.types != SPECIAL].tolist() == whole.types[text].tolist()
    assert np.diff(parts.starts).max() == 20 and np.diff(cut.starts).max() == 20 and parts.lost_pieces == 0
    lengths = np.diff(whole.starts) - frame
    assert cut.long_documents == parts.long_documents == (lengths > 20 - frame).sum()
    assert cut.lost_pieces == np.maximum(lengths - (20 - frame), 0).sum() and cut.all_pieces == lengths.sum()
    tokenizer.truncation_side = "left"
    end = encode(tokenizer, TEXTS[:20], WordTokenizer(), WORDS, 20, True, quiet)
    assert (
        end.ids(0)[end.types[: end.starts[1]] != SPECIAL].tolist()
        == whole.pieces[: whole.starts[1]][whole.types[: whole.starts[1]] != SPECIAL][frame - 20 :].tolist()
    )


def test_length_limits() -> None:
    for family, limit in (("bert", 256), ("roberta", 256)):
        model, tokenizer = build(family, TEXTS.to_list())
        assert length_limit(model, tokenizer, None) == limit
        tokenizer.model_max_length = 10**30
        assert length_limit(model, tokenizer, None) == (
            258 if family == "bert" else 257
        )  # RoBERTa's padding row is row 0
        assert length_limit(model, tokenizer, 40) == 40
        with pytest.raises(InputError, match="no room for text"):
            length_limit(model, tokenizer, 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_and_effects_against_one_document_at_a_time(family: str) -> None:
    model, tokenizer = build(family, TEXTS.to_list())
    windows = encode(tokenizer, TEXTS[:4], WordTokenizer(), WORDS, None, True, quiet)
    batch = [windows.ids(w) for w in range(4)]
    with prepared(model, 0):
        reader = Reader(model, (1, 0), frame_of(tokenizer))
        look = reader.look(batch)
        assert reader.layers == 2 and reader.reads == (LAST if family in ("gpt2", "llama") else FIRST)
        np.testing.assert_allclose(look.answers, reader.answers(batch), atol=1e-5)
        for k, ids in enumerate(batch):
            given_ids = torch.tensor(ids[None].astype(np.int64))
            out = model(input_ids=given_ids, attention_mask=torch.ones_like(given_ids), output_attentions=True)
            answer = float(out.logits[0, 0] - out.logits[0, 1])
            assert look.answers[k, 0] == pytest.approx(answer, abs=1e-5)
            at = len(ids) - 1 if reader.reads == LAST else 0
            layers = [a[0].mean(0).numpy() for a in out.attentions]
            eye = np.eye(len(ids))
            rolled = (layers[1] + eye) / 2 @ ((layers[0] + eye) / 2)
            for mine, direct in zip(look.attention[:, k], [layers[0][at], layers[1][at], rolled[at]], strict=True):
                np.testing.assert_allclose(mine[: len(ids)], direct, atol=1e-5)
                assert np.abs(mine[len(ids) :]).max(initial=0) < 1e-6
            assert rolled[at].sum() == pytest.approx(1, abs=1e-4)
    assert model.config._attn_implementation == "eager" and all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_first_order_effects_are_directional_derivatives(family: str) -> None:
    model, tokenizer = build(family, TEXTS.to_list())
    windows = encode(tokenizer, TEXTS[:1], WordTokenizer(), WORDS, None, True, quiet)
    ids, step = windows.ids(0), 1e-4
    with prepared(model, 0):
        effects = Reader(model, (0, 1), frame_of(tokenizer)).look([ids]).effects[0, :, 0]
        model.double()
        at, weights = model.get_input_embeddings(), torch.tensor(ids[None].astype(np.int64))
        for position in (1, 4, len(ids) - 1):
            ends = []
            for sign in (1, -1):

                def stretch(
                    module: Any, given: Any, out: Any, scale: float = 1 + sign * step, place: int = position
                ) -> Any:
                    out = out.clone()
                    out[0, place] *= scale
                    return out

                hook = at.register_forward_hook(stretch)
                z = model(input_ids=weights, attention_mask=torch.ones_like(weights)).logits[0]
                ends.append(float(z[1] - z[0]))
                hook.remove()
            assert effects[position] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-2, abs=1e-5)


def test_eager_attention_is_forced_and_the_model_left_as_it_was() -> None:
    model, tokenizer = build("bert", TEXTS.to_list())
    model.set_attn_implementation("sdpa")
    model.train()
    model.config.pad_token_id = None
    with prepared(model, 0):
        assert Reader(model, (0, 1), frame_of(tokenizer)).layers == 2
    assert model.config._attn_implementation == "sdpa" and model.training and model.config.pad_token_id is None
    assert all(p.requires_grad for p in model.parameters())


def test_mean_pooling_is_seen() -> None:
    model, tokenizer = build("modernbert", TEXTS.to_list())
    config = model.config
    config.classifier_pooling = "mean"
    other = tf.AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    with prepared(other, 0):
        reader = Reader(other, (0, 1), frame_of(tokenizer))
        batch = [np.arange(5, 5 + n, dtype=np.int32) for n in (4, 9)]
        look = reader.look(batch)
    assert reader.reads == MEAN
    np.testing.assert_allclose(look.attention.sum(-1), 1, atol=1e-5)


def test_untrained_twin_has_the_shape_and_other_weights() -> None:
    model, _ = build("distilbert", TEXTS.to_list())
    twin, again = untrained_twin(model, 1), untrained_twin(model, 1)
    mine, theirs = dict(model.named_parameters()), dict(twin.named_parameters())
    assert {n: p.shape for n, p in mine.items()} == {n: p.shape for n, p in theirs.items()}
    assert not torch.equal(mine["classifier.weight"], theirs["classifier.weight"])
    assert torch.equal(dict(again.named_parameters())["classifier.weight"], theirs["classifier.weight"])


def test_importance_is_the_shrunken_balanced_posterior_difference() -> None:
    rng = np.random.default_rng(0)
    matrix, labels = rng.poisson(1.0, (60, 5)), rng.permutation(np.arange(60) % 2)
    counts = Counts.from_matrix(matrix, labels.tolist())
    evidence = gather(counts, rng.integers(0, 6, 60), 6)
    mine = importance(*(part.sum(axis=0) for part in evidence))[:, 0]
    found = token_importance(counts)
    n = matrix.sum(0) ** 2 / (matrix**2).sum(0)
    np.testing.assert_allclose(mine, found.posterior_difference[:, 1] * n / (n + Z95**2))
    share = (found.posterior_difference[:, 1] + 1) / 2
    ends = [np.roots([1 + Z95**2 / m, -(2 * p + Z95**2 / m), p**2]) for p, m in zip(share, n, strict=True)]
    np.testing.assert_allclose(mine, [roots.sum() - 1 for roots in ends], atol=1e-12)  # centre of Wilson's interval


def test_interval_holds_the_true_correlation_as_often_as_it_says() -> None:
    rng, inside, runs = np.random.default_rng(1), 0, 200
    for _ in range(runs):
        truth = rng.normal(size=(80, 1))
        measure = 0.6 * truth + 0.8 * rng.normal(size=(80, 1))
        noise = rng.normal(size=(20, 80, 1))
        left = [truth + (noise.sum(0) - noise[g]) / 19 * 0.5 for g in range(20)]
        one = correlate(truth + noise.mean(0) * 0.5, left, measure, [measure] * 20, signed=True)
        inside += one.low <= 0.6 <= one.high
    assert 0.92 <= inside / runs <= 1.0


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_deletions_are_bounded_distinct_and_of_words_that_are_there(seed: int, per_type: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, 40, (100, 2)) % [7, 40], axis=0)
    types, windows = choose_deletions(pairs[:, 0], pairs[:, 1], per_type, seed)
    chosen = set(zip(types.tolist(), windows.tolist(), strict=True))
    assert len(chosen) == len(types) and chosen <= set(map(tuple, pairs.tolist()))
    held = np.bincount(pairs[:, 0], minlength=7)
    assert np.bincount(types, minlength=7).tolist() == np.minimum(held, per_type).tolist()


def test_a_trained_model_is_told_from_an_untrained_one(found: Diagnosis, reviews: Any) -> None:
    assert found.learned is True and found.accuracy > 0.7
    assert "This model has learned where the label is" in found.verdict[0]
    for name in ("value_importance", "gradient_importance", "deletion_importance", "attention_importance"):
        one, other = found.correlation[name], found.untrained[name]
        assert one.low > 0 and one.above(other) and other.low < 0.1 < one.rho, name
    assert found.documents == {"all": 400, "read": 400} and found.truncated_documents == 0
    strong = found.tokens.filter(pl.col("token").is_in(["wonderful", "terrible"]), pl.col("class") == "1")
    assert set(strong["quadrant"]) == {"carries the label, attended"}
    assert (
        dict(strong.select("token", "value").iter_rows())["wonderful"]
        > 0
        > dict(strong.select("token", "value").iter_rows())["terrible"]
    )


def test_the_planted_shortcut_comes_first(found: Diagnosis, reviews: Any) -> None:
    assert found.leaning["token"][0] == reviews.shortcut and found.leaning["class"][0] == "1"
    assert any(reviews.shortcut in sentence for sentence in found.verdict)
    assert found.leaning["effect_low"][0] > 0 and found.leaning["q_value"][0] >= 0.05


def test_an_untrained_model_has_learned_nothing(trained: Any, reviews: Any) -> None:
    model = untrained_twin(trained[0], 9)
    result = diagnose(model, trained[1], reviews.texts.to_list(), reviews.labels.tolist(), SETTINGS)
    assert result.learned is False and result.verdict[0].startswith("Nothing here shows")
    assert all(one.low < 0.2 for one in result.correlation.values())


def test_measures_against_the_model_itself(trained: Any, found: Diagnosis, reviews: Any) -> None:
    """Value and deletion of one word, through the model's ordinary call on text."""
    model, tokenizer = trained

    def answer(text: str) -> float:
        with torch.no_grad():
            z = model(**tokenizer(text, return_tensors="pt")).logits[0]
        return float(z[1] - z[0])

    row = found.tokens.filter(pl.col("token") == "wonderful", pl.col("class") == "1").to_dicts()[0]
    mirror = found.tokens.filter(pl.col("token") == "wonderful", pl.col("class") == "0").to_dicts()[0]
    assert row["value"] == pytest.approx(answer(" wonderful"), rel=1e-3) and mirror["value"] == -row["value"]
    texts, labels = reviews.texts.to_list()[:150], reviews.labels.tolist()[:150]
    holding = [text for text in texts if "wonderful" in text]
    every = DiagnoseSettings(min_documents=len(holding), deletions=10**6, untrained=False)
    whole = diagnose(model, tokenizer, texts, labels, every)
    mine = whole.tokens.filter(pl.col("token") == "wonderful", pl.col("class") == "1").to_dicts()[0]
    lost = [answer(text) - answer(text.replace(" wonderful", "")) for text in holding]
    assert mine["deleted_from"] == len(holding) and mine["deletion"] == pytest.approx(np.mean(lost), rel=1e-3)


def test_same_seed_same_result_and_summary_is_strict_json(trained: Any, found: Diagnosis, reviews: Any) -> None:
    again = diagnose(*trained, reviews.texts.to_list(), reviews.labels.tolist(), SETTINGS)
    assert again.tokens.equals(found.tokens) and again.leaning.equals(found.leaning)
    summary = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert summary["tokens"] == found.token_types and summary["truncated_documents"] == 0
    assert summary["correlation"]["value_importance"] == pytest.approx(found.correlation["value_importance"].rho)
    assert set(summary["baselines"]) == {"untrained", "shuffled_labels", "frequency"}
    low, high = summary["baselines"]["shuffled_labels"]["value_importance"]
    assert -0.5 < low < 0 < high < 0.5 < summary["correlation"]["value_importance"]


def test_batch_size_changes_nothing(trained: Any, found: Diagnosis, reviews: Any) -> None:
    other = DiagnoseSettings(min_documents=5, batch_size=7, untrained=False)
    result = diagnose(*trained, reviews.texts.to_list(), reviews.labels.tolist(), other)
    for name in ("value", "gradient", "attention", "deletion"):
        np.testing.assert_allclose(result.tokens[name].to_numpy(), found.tokens[name].to_numpy(), rtol=2e-3, atol=2e-4)


def test_work_goes_on_where_it_stopped(trained: Any, found: Diagnosis, reviews: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    def stop(stage: str, share: float) -> None:
        seen.append(stage)
        if stage == "model: deleting words" and share > 0.4:
            raise KeyboardInterrupt

    arguments = (*trained, reviews.texts.to_list(), reviews.labels.tolist(), SETTINGS)
    file = tmp_path / "work.npz"
    with pytest.raises(KeyboardInterrupt):
        diagnose(*arguments, resume=file, progress=stop)
    assert file.exists() and "model: reading documents" in seen
    seen.clear()
    result = diagnose(*arguments, resume=file, progress=lambda stage, share: seen.append(stage))
    assert "model: reading documents" not in seen and "model: deleting words" in seen
    assert result.tokens.equals(found.tokens)
    with pytest.raises(InputError, match="other documents, another model or other settings"):
        diagnose(*arguments[:4], DiagnoseSettings(min_documents=6, batch_size=32), resume=file)
    file.write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match="not a saved diagnosis"):
        diagnose(*arguments, resume=file)


def test_long_documents_and_samples_are_counted(trained: Any, reviews: Any) -> None:
    texts, labels = reviews.texts.to_list(), reviews.labels.tolist()
    short = {
        "min_documents": 5,
        "max_documents": 100,
        "max_length": 40,
        "deletions": 1,
        "untrained": False,
        "batch_size": 64,
    }
    cut = diagnose(*trained, texts, labels, DiagnoseSettings(**short))
    parts = diagnose(*trained, texts, labels, DiagnoseSettings(**short, long="windows"))
    assert cut.documents == {"all": 400, "read": 100} and cut.truncated_documents == parts.long_documents > 30
    assert parts.truncated_documents == parts.lost_pieces == 0 < cut.lost_pieces and parts.windows > cut.windows == 100
    assert any("the model reads 100 of 400 documents" in note for note in cut.notes)
    assert cut.tokens.filter(pl.col("token") == "the")["documents"][0] > 100  # importance comes from all documents


def test_a_pipeline_is_diagnosed_by_deletion_alone(reviews: Any) -> None:
    train = planted_reviews(1000, 5, planted=True)
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression())
    model.fit(train.texts.to_list(), np.where(train.labels == 1, "good", "poor"))
    labels = np.where(reviews.labels == 1, "good", "poor").tolist()
    found = diagnose(model, None, reviews.texts.to_list(), labels, SETTINGS)
    assert found.learned is True and "attention" not in found.tokens.columns and not found.untrained
    weights = dict(
        zip(model[0].get_feature_names_out(), -model[1].coef_[0], strict=True)
    )  # of "poor", the second class
    for token, value, deletion in (
        found.tokens.filter(pl.col("class") == "poor").select("token", "value", "deletion").iter_rows()
    ):
        if token in weights:
            assert deletion == pytest.approx(-weights[token], abs=1e-4)
            assert value == pytest.approx(-weights[token] - model[1].intercept_[0] * -1, abs=1e-4)
    assert found.leaning["token"][0] == reviews.shortcut


def test_three_classes(reviews: Any) -> None:
    texts = reviews.texts.to_list()[:300]
    labels = [("plot" in t) + 2 * ("soup" in t and "plot" not in t) for t in texts]
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression(C=10)).fit(texts[:200], labels[:200])
    found = diagnose(model, None, texts, labels, SETTINGS)
    assert found.classes == ("0", "1", "2") and found.learned is True
    best = found.tokens.filter(pl.col("class") == "2").sort("deletion")["token"][-1]
    assert best == "soup"
    sums = found.tokens.group_by("token").agg(pl.col("value").sum())["value"]
    assert float(sums.abs().max()) < 1e-4  # answers are centred over classes


def test_a_transformer_of_three_classes() -> None:
    texts, labels = TEXTS.to_list(), [i % 3 for i in range(120)]
    model, tokenizer = build("bert", texts, classes=3)
    found = diagnose(model, tokenizer, texts, labels, DiagnoseSettings(min_documents=5, deletions=1))
    assert found.tokens.height == 3 * found.token_types and found.learned is False
    by_token = found.tokens.group_by("token").agg(pl.col("value", "gradient").sum())
    assert float(by_token["value"].abs().max()) < 1e-4 and float(by_token["gradient"].abs().max()) < 1e-4


def test_a_model_without_attention_says_so() -> None:
    texts = TEXTS.to_list()
    model, tokenizer = build("fnet", texts)
    found = diagnose(
        model, tokenizer, texts, [i % 2 for i in range(120)], DiagnoseSettings(min_documents=5, deletions=1)
    )
    assert found.layers == 0 and "attention" not in found.tokens.columns
    assert any("gives no attention weights" in note for note in found.notes)
    assert math.isfinite(found.correlation["gradient_importance"].rho)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trained_and_untrained(family: str) -> None:
    train, held = demo_reviews(1500, seed=1), demo_reviews(800, seed=2)
    model, tokenizer = build(family, train.texts.to_list())
    fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6)
    found = diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), SETTINGS)
    assert found.learned is True and kind_of(family)
    assert found.correlation["value_importance"].above(found.untrained["value_importance"])


@pytest.mark.slow
def test_shortcuts_over_seeds() -> None:
    """Planted ones at rank 1; on models trained without, the same word never listed."""
    first = listed = 0
    for seed in range(5):
        held = planted_reviews(600, 5000 + seed, planted=False)
        for planted in (True, False):
            train = planted_reviews(1500, 100 + seed, planted)
            model, tokenizer = build("modernbert", train.texts.to_list(), seed=seed)
            fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6, seed=seed)
            words = (
                diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), SETTINGS)
                .leaning["token"]
                .to_list()
            )
            first += planted and words[:1] == [held.shortcut]
            listed += not planted and held.shortcut in words
    assert first >= 4 and listed == 0


@pytest.mark.slow
def test_real_reviews() -> None:
    data = Path(os.environ.get("TOKENSIEVE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (data / "imdb_train.parquet").exists():
        pytest.skip(f"{data} is not there")
    train, test = (
        pl.read_parquet(data / f"imdb_{part}.parquet").sample(1500, seed=0, shuffle=True) for part in ("train", "test")
    )
    model, tokenizer = build("bert", train["text"].to_list(), size=3000)
    fit(model, tokenizer, train["text"].to_list(), (train["label"] == "positive").to_numpy().astype(np.int64), epochs=3)
    found = diagnose(
        model, tokenizer, test["text"].to_list(), test["label"].to_list(), DiagnoseSettings(max_length=128, deletions=1)
    )
    assert found.learned is True and found.truncated_share > 0.5 and found.lost_share > 0.2
