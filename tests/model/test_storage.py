"""A model on disk: back bit for bit, every damage named, nothing unpickled, and its table run by
other programs."""

from __future__ import annotations

import json
import math
import pickle
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tokenizers import Tokenizer as Pieces
from tokenizers import models, pre_tokenizers, trainers

from tokensieve.errors import InputError
from tokensieve.model.classifier import AttentionClassifier, load_model
from tokensieve.model.storage import DESCRIPTION, NUMBERS, TABLE, _digest, model_files, table
from tokensieve.text.tokenizers import WordTokenizer

WORDS = ["good", "bad", "not", "film", "don't", "the", "<script>", "=cmd()", "42"]
WORDS += ["Straße", "日本語", "ΟΔΟΣ", "İzmir", "👍🏽", "🇩🇪"]
UNSEEN = [
    "",
    "nothing known",
    "GOOD bad<BR />not good",
    "👍🏽👍🏽 日本語! ΟΔΟΣ.",
    "İZMİR straße",
    "e\u0301 א\u200f <br/>",
]
SURROGATE = "\ud800 good"
MARKS = [" bad", " good", " film"]
KINDS = ["words", "bigrams", "trigrams", "pieces", "int", "bool", "three classes", "formatting"]
NAMES: dict[str, list[Any]] = {
    "int": [3, 7],
    "bool": [False, True],
    "three classes": ["a", "b\t<b>", "ü"],
}

JAVASCRIPT = r"""
const fs = require("fs");
const model = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const texts = JSON.parse(fs.readFileSync(process.argv[3], "utf8"));
const unspaced = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}]";
const w = `(?:(?!${unspaced})[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u200c\\u200d])+`;
const emoji = "\\p{Extended_Pictographic}(?:\\p{Emoji_Modifier}|\\uFE0F|\\u200D\\p{Extended_Pictographic})*";
const pattern = new RegExp(`${w}(?:['’]${w})*|${unspaced}[\\p{M}\\u200c\\u200d]*|${emoji}|\\p{Regional_Indicator}{2}`, "gu");
const index = new Map(model.tokens.map((token, s) => [token, s]));
const answers = texts.map(text => {
  const words = text.replace(/<br\s*\/?>/gi, " ").toLowerCase().replaceAll("i\u0307", "i").match(pattern) || [];
  const weight = new Map();
  for (let n = 1; n <= model.ngrams; n++)
    for (let i = 0; i + n <= words.length; i++) {
      const s = index.get(words.slice(i, i + n).join(" "));
      if (s !== undefined) weight.set(s, (weight.get(s) || 0) + Math.exp(model.scores[s]));
    }
  if (!weight.size) return model.prior;
  const sink = model.sink === null ? 0 : Math.exp(model.sink);
  let total = sink;
  for (const x of weight.values()) total += x;
  return model.prior.map((prior, k) => {
    let f = sink / total * prior;
    for (const [s, x] of weight) f += x / total * model.values[s][k];
    return f;
  });
});
console.log(JSON.stringify(answers));
"""


def training(kind: str) -> tuple[list[str], list[Any]]:
    rng = np.random.default_rng(1)
    names = NAMES.get(kind, ["neg", "pos"])
    labels = np.arange(45) % len(names)
    return [" ".join(rng.choice(WORDS, 10)) + MARKS[y] * 2 for y in labels], [
        names[y] for y in labels
    ]


@pytest.fixture(scope="module")
def trained() -> dict[str, AttentionClassifier]:
    found = {}
    for kind in KINDS:
        texts, labels = training(kind)
        # the JavaScript below reads scripts without spaces by characters; words.js knows words
        tokenizer = WordTokenizer(words="characters")
        if kind == "pieces":
            tokenizer = Pieces(models.BPE())
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.train_from_iterator(
                texts, trainers.BpeTrainer(vocab_size=120, show_progress=False)
            )
        ngrams = {"bigrams": 2, "trigrams": 3, "three classes": 2}.get(kind, 1)
        model = AttentionClassifier(
            ngrams, min_documents=2, tokenizer=tokenizer, formatting=kind == "formatting"
        )
        if kind == "formatting":
            texts = [text + ["...", "  !", "\n- 1", ""][i % 4] for i, text in enumerate(texts)]
        found[kind] = model.fit(texts, labels)
    return found


def save(model: AttentionClassifier, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in model_files(model).items():
        (folder / name).write_bytes(content)
    return folder


def test_save_writes_what_the_command_reads(
    trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    model = trained[KINDS[0]]
    written = model.save(tmp_path / "saved")
    assert {path.name: path.read_bytes() for path in written} == model_files(model)
    same(load_model(tmp_path / "saved"), model, UNSEEN)
    with pytest.raises(InputError, match="texts"):
        AttentionClassifier().fit(np.eye(4), [0, 1, 0, 1]).save(tmp_path / "counts")
    assert not (tmp_path / "counts").exists()


def same(loaded: AttentionClassifier, model: AttentionClassifier, texts: list[str]) -> None:
    assert loaded.decision_function(texts).tobytes() == model.decision_function(texts).tobytes()
    assert loaded.predict_proba(texts).tobytes() == model.predict_proba(texts).tobytes()
    assert loaded.predict(texts).tolist() == model.predict(texts).tolist()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.tokens_.tolist() == model.tokens_.tolist()
    for one, other in zip(loaded.explain(texts), model.explain(texts), strict=True):
        assert one.table.equals(other.table)
        assert (one.unknown, one.logit, one.predicted) == (
            other.unknown,
            other.logit,
            other.predicted,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_comes_back_bit_for_bit(
    kind: str, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    model, folder = trained[kind], save(trained[kind], tmp_path / "model")
    texts = [*training(kind)[0], *UNSEEN, SURROGATE]
    loaded = load_model(folder)
    same(loaded, model, [*texts[:6], *UNSEEN, SURROGATE])
    for path in (str(folder), folder / NUMBERS, folder / DESCRIPTION):
        assert model_files(load_model(path)) == model_files(loaded) == model_files(model)
    matrix = model.counts_of(texts)[0]
    np.testing.assert_array_equal(loaded.decision_function(matrix), model.decision_function(texts))
    with pytest.raises(ValueError, match="features"):
        loaded.predict(np.ones((1, len(model.scores_) + 1)))


@pytest.mark.slow
def test_a_clone_of_what_was_loaded_learns_the_same_model(tmp_path: Path) -> None:
    texts, labels = training("bigrams")
    settings: dict[str, Any] = {
        "ngrams": 2,
        "min_documents": 2,
        "batch_size": 16,
        "score_rate": 0.02,
        "value_rate": 0.05,
    }
    settings |= {
        "max_epochs": 3,
        "validation_share": 0.2,
        "random_state": 7,
        "tokenizer": WordTokenizer(lowercase=False),
        "formatting": True,
    }
    model = AttentionClassifier(**settings).fit(texts, labels)
    loaded = load_model(save(model, tmp_path))
    assert loaded.get_params() == settings | {
        "class_weight": None
    }  # weights are no part of a model
    same(clone(loaded).fit(texts, labels), model, [*texts, *UNSEEN])


def test_a_random_generator_is_no_setting_to_save(tmp_path: Path) -> None:
    model = AttentionClassifier(random_state=np.random.RandomState(0)).fit(*training("words"))
    assert load_model(save(model, tmp_path)).random_state is None


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("name", [NUMBERS, DESCRIPTION])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(
    name: str, share: float, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["bigrams"], tmp_path)
    content = (folder / name).read_bytes()
    for kept in {int(share * len(content)), len(content) - 1}:
        (folder / name).write_bytes(content[:kept])
        refused(folder, "train the model again")


@pytest.mark.parametrize("position", [0, 7, 8, 40, -1, -100])
def test_a_flipped_bit_in_the_numbers_is_refused(
    position: int, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["words"], tmp_path)
    content = bytearray((folder / NUMBERS).read_bytes())
    content[position] ^= 1
    (folder / NUMBERS).write_bytes(content)
    refused(folder, NUMBERS, "altered")


def test_missing_and_foreign_files_are_refused(
    trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    refused(tmp_path / "nowhere", "no model", DESCRIPTION)
    (tmp_path / "file.txt").write_text("hello")
    refused(tmp_path / "file.txt", "no model")
    first, second = save(trained["words"], tmp_path / "a"), save(trained["bigrams"], tmp_path / "b")
    shutil.copy(second / NUMBERS, first / NUMBERS)
    refused(first, "from two models")
    (second / NUMBERS).unlink()
    refused(second, NUMBERS, "missing")
    (second / DESCRIPTION).unlink()
    (second / DESCRIPTION).mkdir()
    refused(second, "cannot be read")


@pytest.mark.parametrize(
    "content", [b"[]", b"[1, 2]", b"null", b'"text"', b"{}", b'{"kind": "other", "format": 1}']
)
def test_other_json_is_refused(
    content: bytes, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["words"], tmp_path)
    (folder / DESCRIPTION).write_bytes(content)
    refused(folder, "does not describe a tokensieve model")


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\xff\xfe\x00", b"\x80\x04K\x01.", b"[" * 100_000]
)
def test_what_is_not_json_is_refused(
    content: bytes, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["words"], tmp_path)
    (folder / DESCRIPTION).write_bytes(content)
    refused(folder, DESCRIPTION, "damaged")


@pytest.mark.parametrize("number", [0, 1, 3, "2", None])
def test_another_format_is_refused(
    number: Any, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["words"], tmp_path)
    description = json.loads((folder / DESCRIPTION).read_bytes()) | {"format": number}
    (folder / DESCRIPTION).write_text(json.dumps(description))
    refused(folder, f"format {number}", "reads format 2")


@pytest.mark.parametrize(
    "change",
    [
        {"words": ["one"]}, {"words": None}, {"words": 3}, {"classes": ["a", "b", "c"]}, {"classes": None}, {"tokenizer": {}},
        {"tokenizer": "words"}, {"tokenizer": {"kind": "pieces", "json": "{}"}}, {"steps": None}, {"steps": "many"},
    ],
)  # fmt: skip
def test_a_description_that_does_not_fit_is_refused(
    change: dict[str, Any], trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["words"], tmp_path)
    description = json.loads((folder / DESCRIPTION).read_bytes())
    without = {name: value for name, value in description.items() if name not in change}
    for changed in (description | change, without):
        signed = changed | {"sha256": _digest(changed, (folder / NUMBERS).read_bytes())}
        (folder / DESCRIPTION).write_text(json.dumps(signed))
        refused(folder, "damaged", "train the model again")


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def test_nothing_is_unpickled(trained: dict[str, AttentionClassifier], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for name in (NUMBERS, DESCRIPTION):
        folder = save(trained["words"], tmp_path / "model")
        (folder / name).write_bytes(pickle.dumps(Trap(mark)))
        refused(folder, "train the model again")
    assert not mark.exists()
    pickle.loads(pickle.dumps(Trap(mark)))
    assert mark.exists()


def test_a_model_of_counts_has_no_tokens_to_save() -> None:
    model = AttentionClassifier().fit(np.array([[1, 0], [0, 1]] * 5), [0, 1] * 5)
    for call in (model_files, table):
        with pytest.raises(InputError, match="fitted on counts"):
            call(model)


def run_table(model: dict[str, Any], text: str) -> list[float]:
    """The portable table in plain Python; the pattern's \\p classes are left out, which ASCII text
    does not need."""
    settings = model["tokenizer"]
    assert settings["kind"] == "words"
    plain = re.sub(r"(?i)<br\s*/?>", " ", text) if settings["line_breaks"] else text
    words = re.findall(r"\w+(?:'\w+)*", plain.lower() if settings["lowercase"] else plain, re.ASCII)
    index = {token: s for s, token in enumerate(model["tokens"])}
    runs = [
        " ".join(words[i : i + n])
        for n in range(1, model["ngrams"] + 1)
        for i in range(len(words) - n + 1)
    ]
    weights = {
        index[run]: count * math.exp(model["scores"][index[run]])
        for run, count in Counter(runs).items()
        if run in index
    }
    end = text[-200:].rstrip()[-8:]
    for s, feature in enumerate(
        model["formatting"], len(model["tokens"]) - len(model["formatting"])
    ):
        if "words" in feature:
            least, below = feature["words"]
            holds = least <= len(text.split()) < (below or math.inf)
        else:
            pattern = feature["pattern"]
            for ours, ascii_ in (
                ("Ll", "a-z"),
                ("Lu", "A-Z"),
                ("L", "a-zA-Z"),
                ("N", "0-9"),
                ("M", ""),
            ):
                inside = rf"(\[[^\]]*)\\p\{{{ours}\}}"  # within brackets first
                while re.search(inside, pattern):
                    pattern = re.sub(inside, rf"\g<1>{ascii_}", pattern)
                pattern = pattern.replace(rf"\p{{{ours}}}", f"[{ascii_}]")
            where = end if feature["where"] == "end" else text
            holds = (re.search(pattern.replace("$", r"\Z"), where) is None) == feature["absent"]
        if holds:
            weights[s] = math.exp(model["scores"][s])
    if not weights:
        return list(model["prior"])
    sink = 0.0 if model["sink"] is None else math.exp(model["sink"])
    total = math.fsum(weights.values()) + sink
    return [
        math.fsum(x / total * model["values"][s][k] for s, x in weights.items())
        + sink / total * prior
        for k, prior in enumerate(model["prior"])
    ]


@pytest.mark.parametrize(
    "kind", ["words", "bigrams", "trigrams", "int", "three classes", "formatting"]
)
def test_the_table_runs_in_plain_python(
    kind: str, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    portable = json.loads((save(trained[kind], tmp_path) / TABLE).read_text(encoding="utf-8"))
    rng = np.random.default_rng(2)
    ascii_words = [word for word in WORDS if word.isascii()] + [
        "unseen",
        "<br />",
        "GOOD,",
        "'bad'",
        "--",
    ]
    texts = [" ".join(rng.choice(ascii_words, rng.integers(0, 20))) for _ in range(40)] + [
        "",
        "nothing",
    ]
    texts += ["good...", "bad  !", "film\n- 1", "Good "]
    expected = trained[kind].decision_function(texts).reshape(len(texts), -1)
    np.testing.assert_allclose(
        [run_table(portable, text) for text in texts], expected, rtol=0, atol=1e-9
    )
    assert portable["classes"] == trained[kind].classes_.tolist()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("kind", ["words", "trigrams", "three classes"])
def test_the_table_runs_in_javascript_on_unicode_text(
    kind: str, trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained[kind], tmp_path)
    rng = np.random.default_rng(3)
    more = [
        *WORDS,
        "unseen",
        "<br />",
        "GOOD,",
        "don’t",
        "e\u0301",
        "שלום\u200f",
        "می\u200cخواهم",
        "हिन्दी",
        "☀️",
        "👩🏽‍⚕️",
        "🇩🇪🇫🇷🇦",
    ]
    texts = [" ".join(rng.choice(more, rng.integers(0, 20))) for _ in range(60)]
    texts += [*UNSEEN, "ΑΣ.Α ΣΑΣ", "İIı", "日本語👍🏽good"]
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "run.js").write_text(JAVASCRIPT, encoding="utf-8")
    command = ["node", str(folder / "run.js"), str(folder / TABLE), str(folder / "texts.json")]
    found = json.loads(
        subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout
    )
    expected = trained[kind].decision_function(texts).reshape(len(texts), -1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_an_altered_description_is_refused(
    trained: dict[str, AttentionClassifier], tmp_path: Path
) -> None:
    folder = save(trained["bigrams"], tmp_path)
    description = json.loads((folder / "model.json").read_bytes())
    description["classes"] = description["classes"][::-1]
    (folder / "model.json").write_text(json.dumps(description))
    refused(folder, "altered")
