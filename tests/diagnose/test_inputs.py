"""What people have for a model: each kind on a tiny one made on the spot, supported or refused in
one clear line."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import tokensieve.diagnose
from calls import fast_first, later
from diagnose_models import build, planted_reviews, save
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose, load
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.diagnose.subjects.frame import Frame
from tokensieve.diagnose.subjects.passages import SEPARATOR, SPLITTER
from tokensieve.diagnose.subjects.windows import SPECIAL, Windows
from tokensieve.errors import InputError
from tokensieve.read.pairs import read_pairs
from tokensieve.read.reader import read_corpus
from tokensieve.report.blocks import Section, Text

torch = later("torch")
tf = later("transformers")

QUICK = DiagnoseSettings(min_documents=5, batch_size=64, max_documents=60, untrained=False)


@pytest.fixture(scope="session")
def few() -> tuple[list[str], list[int]]:
    """A few documents with their labels."""
    held = planted_reviews(60, 31, planted=False)
    return held.texts.to_list(), held.labels.tolist()


def value_correlation(found: Diagnosis, other: Diagnosis) -> float:
    """Of the predictions for words alone; rare words that stand out need not be the same."""
    both = found.tokens.join(other.tokens, on=["token", "class"], suffix="_other")
    return float(np.corrcoef(both["value"], both["value_other"])[0, 1])


def agrees(found: Diagnosis, other: Diagnosis, tolerance: float = 1e-3) -> None:
    """The same numbers for every word."""
    for name in ("value", "use"):
        mine, theirs = found.tokens[name].to_numpy(), other.tokens[name].to_numpy()
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="session")
def plain(trained: Any, few: Any) -> Diagnosis:
    """The trained model, as it is."""
    return diagnose(*trained, *few, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("family", fast_first(["bart", "t5", "longformer", "xlnet"]))
def test_encoder_decoders_and_long_document_models(family: str, few: Any) -> None:
    model, tokenizer = build(family, few[0])
    found = diagnose(model, tokenizer, *few, replace(QUICK, batch_size=16))
    assert found.reading["method"] == "integrated gradients" and found.reading["layers"] == 0
    assert any("attention is not measured" in note for note in found.notes)
    # a word's effect is a first guess at what leaving it out does
    both = found.tokens.filter(found.tokens["deleted_from"] >= 5, found.tokens["class"] == "1")
    assert np.corrcoef(both["gradient"], both["deletion"])[0, 1] > 0


@pytest.mark.parametrize(
    ("family", "substitute", "sentence"),
    [("gpt2", "padding", "the embedding of padding took the place"), ("bert", "cut", "were cut")],
)
def test_the_page_says_what_took_the_place_of_removed_words(
    family: str, substitute: str, sentence: str, few: Any
) -> None:
    texts, labels = few[0][:40], few[1][:40]
    found = diagnose(*build(family, texts), texts, labels, replace(QUICK, untrained=False))
    assert found.reading["substitute"] == substitute
    sections = [block for block in found.report().blocks if isinstance(block, Section)]
    method = next(section for section in sections if section.title == "How it was measured")
    assert any(sentence in block.text for block in method.blocks if isinstance(block, Text))


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)
@pytest.mark.parametrize("kind", fast_first(["pipeline", "parallel", "compiled"]))
def test_compiled_wrapped_and_pipeline_objects(
    kind: str, trained: Any, few: Any, plain: Diagnosis
) -> None:
    model, tokenizer = trained
    if kind == "pipeline":
        wrapped, own = (
            tf.pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu"),
            None,
        )
    else:
        wrapped, own = (
            torch.compile(model) if kind == "compiled" else torch.nn.DataParallel(model),
            tokenizer,
        )
    agrees(diagnose(wrapped, own, *few, QUICK), plain)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)
def test_half_precision(trained: Any, few: Any, plain: Diagnosis) -> None:
    model, tokenizer = trained
    half = diagnose(copy.deepcopy(model).to(torch.bfloat16), tokenizer, *few, QUICK)
    assert (
        any("half precision" in note for note in half.notes)
        and half.reading["method"] == "integrated gradients"
    )
    assert value_correlation(half, plain) > 0.99


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)
def test_integers(trained: Any, few: Any, plain: Diagnosis) -> None:
    model, tokenizer = trained
    small = torch.ao.quantization.quantize_dynamic(
        copy.deepcopy(model), {torch.nn.Linear}, dtype=torch.qint8
    )
    found = diagnose(small, tokenizer, *few, QUICK)
    assert found.reading["method"] == "leave-one-out" and any(
        "gradients do not reach" in note for note in found.notes
    )
    assert value_correlation(found, plain) > 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)
def test_adapters_as_object_and_folder(few: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    model, tokenizer = build("bert", few[0], classes=2)
    save(model, tokenizer, tmp_path / "base")
    base = tf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base")
    wanted = peft.LoraConfig(
        task_type="SEQ_CLS", r=2, target_modules=["query"], init_lora_weights=False
    )
    adapted = peft.get_peft_model(base, wanted)
    adapted.save_pretrained(tmp_path / "adapters")
    found = diagnose(adapted, tokenizer, *few, QUICK)
    agrees(diagnose(*load(str(tmp_path / "adapters")), *few, QUICK), found)
    assert any("lora" in name for name, _ in adapted.named_parameters())  # left as it was
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(InputError, match="need their base model"):
        load(str(tmp_path / "adapters"))
    prompts = peft.get_peft_model(
        build("bert", few[0])[0], peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2)
    )
    with pytest.raises(InputError, match="PROMPT_TUNING adapters prepend vectors to the input"):
        diagnose(prompts, tokenizer, *few, QUICK)


@pytest.mark.slow
def test_estimators_without_probabilities(few: Any) -> None:
    train = planted_reviews(600, 5, planted=True)
    two = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(train.texts.to_list(), train.labels)
    held = planted_reviews(200, 9, planted=False)
    found = diagnose(
        two, None, held.texts.to_list(), held.labels.tolist(), DiagnoseSettings(min_documents=5)
    )
    # the mark, which says nothing here, misleads it in a quarter of the reviews
    assert found.learned is True and found.accuracy > 0.6
    three = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(
        train.texts.to_list(), np.arange(600) % 3
    )
    assert diagnose(three, None, few[0], [i % 3 for i in range(60)], QUICK).learned is False


@pytest.mark.slow
def test_a_language_model_answers_with_words(few: Any) -> None:
    tokenizer = build("gpt2", few[0])[1]
    torch.manual_seed(0)
    model = tf.GPT2LMHeadModel(
        tf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=258)
    )
    model.eval()
    words = tokensieve.diagnose.LabelWords(
        model, tokenizer, {"0": " bad", "1": " good"}, "Review: {text} It was"
    )
    found = diagnose(words, tokenizer, *few, DiagnoseSettings(min_documents=5, max_documents=60))
    assert (
        found.reading["method"] == "integrated gradients"
        and found.reading["reads"] == "last"
        and found.reading["layers"] == 2
        and found.agreement["untrained"]
    )
    text = few[0][0]
    ids = tokenizer(f"Review: {text} It was", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        z = model(ids).logits[0, -1].log_softmax(-1)
    bad, good = (tokenizer(word)["input_ids"][0] for word in (" bad", " good"))
    assert found.passages and isinstance(float(z[good] - z[bad]), float)
    direct = words(ids, torch.ones_like(ids)).logits[0].detach()
    assert float(direct[1] - direct[0]) == pytest.approx(float(z[good] - z[bad]), abs=1e-5)
    with pytest.raises(InputError, match="start with the same token"):
        tokensieve.diagnose.LabelWords(model, tokenizer, {"0": " bad", "1": " bad"})
    with pytest.raises(InputError, match="LabelWords"):
        diagnose(model, tokenizer, *few, QUICK)


@pytest.mark.slow
def test_a_reward_model_on_preference_pairs() -> None:
    rng = np.random.default_rng(0)
    filler = [f"w{i}" for i in range(20)]
    pairs = []
    for _ in range(100):
        good, bad = (" ".join(rng.choice(filler, 8)) for _ in range(2))
        pairs.append(
            (good + " thanks" * (rng.random() < 0.7), bad + " thanks" * (rng.random() < 0.3))
        )
    model, tokenizer = build("bert", [side for pair in pairs for side in pair], classes=1)
    flat = [side for pair in pairs for side in pair]
    fit_reward(model, tokenizer, flat)
    found = diagnose(
        model, tokenizer, pairs, settings=DiagnoseSettings(min_documents=5, untrained=False)
    )
    assert (
        found.classes == ("rejected", "chosen")
        and found.skill.documents == 100
        and found.skill.majority == 0.5
    )
    with torch.no_grad():
        r = [float(model(**tokenizer(side, return_tensors="pt")).logits) for side in flat]
    right = np.mean([r[i] > r[i + 1] for i in range(0, len(r), 2)])
    assert found.accuracy == pytest.approx(right, abs=0.011)
    first = found.uses.sort("move", descending=True, nulls_last=True).row(0, named=True)
    assert (first["token"], first["class"]) == ("thanks", "chosen")
    with pytest.raises(InputError, match="single output, a reward"):
        diagnose(*build("bert", flat), pairs, settings=QUICK)


@pytest.mark.slow
def test_a_single_output_that_is_turned_is_measured_like_one_that_is_not() -> None:
    rng = np.random.default_rng(0)
    filler, labels = [f"w{i}" for i in range(20)], ["good", "bad"] * 40
    texts = [" ".join(rng.choice(filler, 8)) + " thanks" * (label == "good") for label in labels]
    model, tokenizer = build("bert", texts, classes=1)
    fit_reward(model, tokenizer, texts)
    turned = copy.deepcopy(model)
    with torch.no_grad():
        turned.classifier.weight *= -1
        turned.classifier.bias *= -1
    settings = DiagnoseSettings(min_documents=5, untrained=False)
    one, other = (diagnose(m, tokenizer, texts, labels, settings) for m in (model, turned))
    assert any("its sign is flipped" in note for note in other.notes)
    effects = [found.tokens.sort("token", "class")["gradient"] for found in (one, other)]
    assert effects[0].abs().max() > 1e-4  # a hundred times what may differ
    np.testing.assert_allclose(effects[0], effects[1], rtol=1e-4, atol=1e-6)


def fit_reward(model: Any, tokenizer: Any, texts: list[str]) -> None:
    """Teach it to like one word."""
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    wanted = torch.tensor([2.0 * ("thanks" in text) - 1.0 for text in texts])
    given = tokenizer(texts, padding=True, return_tensors="pt")
    model.train()
    for _ in range(25):
        loss = ((model(**given).logits[:, 0] - wanted) ** 2).mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.eval()


@pytest.mark.slow
def test_pairs_of_texts_are_read_as_the_tokenizer_joins_them(few: Any) -> None:
    texts, labels = few
    model, tokenizer = build("bert", texts)
    pairs = list(zip(texts, texts[::-1], strict=True))
    found = diagnose(model, tokenizer, pairs, labels, QUICK)
    with torch.no_grad():
        z = model(**tokenizer(*pairs[0], return_tensors="pt")).logits[0]
    assert found.reading["windows"] == 60 and found.reading["truncated_documents"] == 0
    frame = pl.DataFrame({"first": texts, "second": texts[::-1], "label": labels})
    joined = Sample(
        read_corpus(frame, text=["first", "second"], label="label"), SPLITTER, 5, 60, 0
    ).texts
    windows = Windows(
        tokenizer,
        joined,
        SPLITTER,
        ("the",),
        Frame.of(tokenizer, True),
        None,
        True,
        lambda s, x: None,
    )
    given = tokenizer(*pairs[0])
    assert windows.input(0).ids.tolist() == given["input_ids"]
    assert (
        windows.input(0).segments is None
        or windows.input(0).segments.tolist() == given["token_type_ids"]
    )
    short = Windows(
        tokenizer,
        joined,
        SPLITTER,
        ("the",),
        Frame.of(tokenizer, True),
        40,
        True,
        lambda s, x: None,
    )
    cut = tokenizer(*pairs[0], truncation="longest_first", max_length=40)["input_ids"]
    assert short.input(0).ids.tolist() == cut and np.isfinite(z.numpy()).all()


@pytest.mark.slow
def test_an_onnx_folder(trained: Any, few: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    tokenizer = trained[1]
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(tokenizer), 2)).astype(np.float32)
    table[0] = 0
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["e"]),
        helper.make_node("ReduceSum", ["e", "axes"], ["logits"], keepdims=0),
    ]
    shape = ["b", "t"]
    graph = helper.make_graph(
        nodes, "bag", [helper.make_tensor_value_info("input_ids", TensorProto.INT64, shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", 2])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axes")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "config.json").write_text(
        json.dumps({"id2label": {"0": "0", "1": "1"}, "pad_token_id": 0})
    )
    onnx.save(made, tmp_path / "model.onnx")
    tokenizer.save_pretrained(tmp_path)
    found = diagnose(*load(str(tmp_path)), *few, QUICK)
    row = found.tokens.filter(
        found.tokens["token"] == "the", found.tokens["class"] == "1"
    ).to_dicts()[0]
    ids = tokenizer(" the", add_special_tokens=False)["input_ids"]
    frame = tokenizer("")["input_ids"]
    difference = table[:, 1] - table[:, 0]
    assert row["value"] == pytest.approx(float(difference[[*ids, *frame]].sum()), abs=1e-3)
    assert found.reading["method"] == "leave-one-out" and any(
        "gradients do not reach" in note for note in found.notes
    )


def test_a_trainers_folder_points_to_its_checkpoints(tmp_path: Path) -> None:
    for step in (50, 100, 9):
        (tmp_path / f"checkpoint-{step}").mkdir()
    with pytest.raises(
        InputError,
        match=r"contains no model, but 3 checkpoints: name one, for example '.*checkpoint-100'",
    ):
        load(str(tmp_path))
    state = {"best_model_checkpoint": str(tmp_path / "checkpoint-50")}
    (tmp_path / "checkpoint-100" / "trainer_state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match="checkpoint-50'"):
        load(str(tmp_path))


def test_functions_and_what_is_none_of_these(few: Any) -> None:
    with pytest.raises(InputError, match="needs classes="):
        diagnose(lambda texts: np.zeros(len(texts)), None, *few, QUICK)
    with pytest.raises(InputError, match="one row"):
        diagnose(lambda texts: np.zeros((len(texts), 5)), None, *few, QUICK, classes=["0", "1"])
    for wrong in (["1"] * 3, [[0.5, 0.5]], [{"label": "1", "score": 0.9}], 0.5):
        with pytest.raises(InputError, match="a row of 2 numbers for each of 60 texts"):
            diagnose(lambda texts, out=wrong: out, None, *few, QUICK, classes=["0", "1"])
    with pytest.raises(InputError, match="cannot diagnose"):
        diagnose(3, None, *few, QUICK)
    with pytest.raises(InputError, match="is a name, not a model; use diagnose"):
        diagnose("some/model", None, *few, QUICK)
    blind = LogisticRegression().fit(
        np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    )  # reads numbers, not texts
    with pytest.raises(
        InputError,
        match=r"LogisticRegression.predict_proba cannot read a list of texts .* its vectorizer",
    ):
        diagnose(blind, None, *few, QUICK)


def test_models_of_other_tasks_and_without_a_tokenizer(few: Any) -> None:
    model, tokenizer = build("bert", few[0])
    with pytest.raises(InputError, match="BertForSequenceClassification needs its tokenizer"):
        diagnose(model, None, *few, QUICK)
    with pytest.raises(InputError, match="is not a text classifier"):
        diagnose(tf.BertForTokenClassification(model.config), tokenizer, *few, QUICK)
    with pytest.raises(
        InputError, match=r"BertModel is not a model for .* AutoModelForSequenceClassification"
    ):
        diagnose(tf.BertModel(model.config), tokenizer, *few, QUICK)


def test_two_columns_are_a_pair_of_texts() -> None:
    frame = pl.DataFrame(
        {
            "premise": ["a b", "c ⟦hypothesis⟧ d"] * 4,
            "hypothesis": ["e\nf", "g"] * 4,
            "label": ["y", "n"] * 4,
        }
    )
    found = Sample(
        read_corpus(frame, text=["premise", "hypothesis"], label="label"), SPLITTER, 1, 8, 0
    )
    assert found.paired and found.corpus.fields == ()
    assert found.corpus.texts.to_list()[:2] == [
        f"a b{SEPARATOR}e\nf",
        f"c [hypothesis] d{SEPARATOR}g",
    ]
    three = frame.with_columns(more=pl.lit("x"))
    with pytest.raises(InputError, match="not 3 fields"):
        Sample(
            read_corpus(three, text=["premise", "hypothesis", "more"], label="label"),
            SPLITTER,
            1,
            8,
            0,
        )
    with pytest.raises(InputError, match="--columns is for audit and train"):
        Sample(read_corpus(three, text="premise", label="label", columns="more"), SPLITTER, 1, 8, 0)
    with pytest.raises(InputError, match="one text at a time"):
        diagnose(
            lambda texts: np.zeros(len(texts)),
            None,
            [("a b", "c")] * 20,
            [0, 1] * 10,
            QUICK,
            classes=["0", "1"],
        )


def test_a_prompt_is_read_but_never_measured(few: Any) -> None:
    frame = pl.DataFrame(
        {"prompt": ["the tea", "the sea"] * 5, "chosen": ["the a"] * 10, "rejected": ["the b"] * 10}
    )
    corpus = read_pairs(frame, pairs=("chosen", "rejected"), by="prompt")
    found, bare = (Sample(corpus, SPLITTER, 1, 20, 0, prompted=x) for x in (True, False))
    assert (
        found.prompts is not None
        and found.prompts.to_list()[:4] == ["the tea"] * 2 + ["the sea"] * 2
    )
    assert (
        bare.prompts is None
        and not bare.paired
        and found.partner is not None
        and found.partner.tolist()[:2] == [1, 0]
    )
    tokenizer = build("bert", few[0])[1]
    frame_ = replace(Frame.of(tokenizer, True), prompted=True)
    windows = Windows(
        tokenizer, found.inputs, SPLITTER, ("the",), frame_, None, True, lambda s, x: None
    )
    assert windows.input(0).ids.tolist() == tokenizer("the tea", "the a")["input_ids"]
    types = windows.types[: windows.starts[1]]
    assert (types == 0).sum() == 1 and types[1] == SPECIAL  # of the two “the” the answer's alone
    assert windows.forms[0].ids.tolist() == tokenizer("", "the")["input_ids"]


@pytest.mark.slow
def test_words_that_answer_as_options(few: Any, tmp_path: Path) -> None:
    assert DiagnoseSettings(label_words="neg=bad,pos=good").label_words == {
        "neg": " bad",
        "pos": " good",
    }
    bare = DiagnoseSettings(label_words="bad, good", template="{text} ")
    assert bare.label_words == {"bad": "bad", "good": "good"}
    for wrong in ("good", "a=x,a=y", "a=,b=x", ""):
        with pytest.raises(InputError, match="--label-words"):
            DiagnoseSettings(label_words=wrong)
    tokenizer = build("gpt2", few[0])[1]
    torch.manual_seed(0)
    config = tf.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=258
    )
    save(tf.GPT2LMHeadModel(config), tokenizer, tmp_path)
    with pytest.raises(
        InputError, match="name the word that it predicts for each class: --label-words"
    ):
        load(str(tmp_path))
    words, same = load(
        str(tmp_path),
        label_words={"0": " bad", "1": " good"},
        template="It: {text} And: {second} So:",
    )
    pairs = [(text, "the end") for text in few[0]]
    found = diagnose(words, same, pairs, few[1], QUICK)
    assert found.reading["family"] == "LabelWords" and found.reading["windows"] == 60
    with pytest.raises(InputError, match=r"needs pairs of texts: .* --text twice"):
        diagnose(words, same, *few, QUICK)
    with pytest.raises(InputError, match=r"\{text\} once"):
        tokensieve.diagnose.LabelWords(
            words.model, same, {"0": " bad", "1": " good"}, "{second} {text}"
        )


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "model.joblib").touch()
    with pytest.raises(InputError, match="is a pickle, which can run any code: load it in Python"):
        load(str(tmp_path / "model.joblib"))
