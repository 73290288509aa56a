"""The ONNX graph, run by onnxruntime, against the classifier itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from conftest import Run
from tokensieve.classifier import AttentionClassifier
from tokensieve.demo import demo_reviews
from tokensieve.files import write_all
from tokensieve.model_file import model_files
from tokensieve.onnx_file import onnx_model

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def trained(classes: int) -> AttentionClassifier:
    reviews = demo_reviews(300)
    labels = [str(y) if i % classes < 2 else "z" for i, y in enumerate(reviews.labels)]
    return AttentionClassifier(ngrams=2, max_epochs=1).fit(reviews.texts, labels)


def answered(blob: bytes, model: AttentionClassifier, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    matrix, _ = model.counts_of(texts)
    session = onnxruntime.InferenceSession(blob, providers=["CPUExecutionProvider"])
    feed = {
        "types": matrix.indices.astype(np.int64),
        "counts": matrix.data,
        "documents": np.repeat(np.arange(len(texts)), np.diff(matrix.indptr)),
        "size": np.array([len(texts)]),
    }
    answer, probability = session.run(["answer", "probability"], feed)
    return answer, probability


@pytest.mark.parametrize("classes", [2, 3])
def test_answers_and_probabilities_are_the_classifiers(classes: int) -> None:
    model = trained(classes)
    texts = [*demo_reviews(50, seed=7).texts, "", "nothing known hereabouts"]
    answer, probability = answered(onnx_model(model), model, texts)
    f = model.decision_function(texts)
    np.testing.assert_allclose(answer, f.reshape(len(texts), -1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(probability, model.predict_proba(texts), rtol=1e-10, atol=1e-12)
    assert abs(f).max() > 0.1


def test_scores_in_the_thousands_and_no_documents_at_all() -> None:
    model = trained(2)
    model.scores_ = 4000.0 * model.scores_
    texts = demo_reviews(20, seed=3).texts.to_list()
    answer, _ = answered(onnx_model(model), model, texts)
    np.testing.assert_allclose(answer[:, 0], model.decision_function(texts), rtol=1e-10)
    answer, probability = answered(onnx_model(model), model, [])
    assert answer.shape == (0, 1) and probability.shape == (0, 2)


def test_export_writes_the_file(run: Run, tmp_path: Path) -> None:
    model = trained(2)
    write_all(tmp_path / "model", model_files(model))
    status, _, said = run("export", "model", "--out", "m.onnx")
    assert status == 0 and "token types in m.onnx" in said
    session = onnxruntime.InferenceSession((tmp_path / "m.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert classes == model.classes_.tolist()
    status, _, said = run("export", "model", "--out", "m.txt")
    assert status == 2 and "FILE.onnx" in said
    status, _, said = run("export", "none", "--out", "m.onnx")
    assert status == 2 and "is no model" in said
