"""A trained classifier as an ONNX graph: from the counts of any documents to answers and probabilities.

Text becomes counts outside, by the rule in `table.json` (`tokensieve.model_file.table`): ONNX has no regular expressions over
Unicode words. Counts come as triples, one per type and document that contains it, so that nothing of size n × |S| is made.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tokensieve import __version__
from tokensieve.classifier import AttentionClassifier
from tokensieve.errors import InputError

OPSET = 18  # the first whose scatter operators add and take maxima
DESCRIPTION = (
    "Softmax attention over token types: entry i says that type types[i] stands counts[i] times in document documents[i] "
    "(0 ... size[0] - 1). answer is f, of two classes that of the second; probability has a column per class."
)


def onnx_model(model: AttentionClassifier) -> bytes:
    """The model as the content of an .onnx file (opset 18, float64).

        m_X = max_i u_i,   z_i = c_i e^{u_i − m_X},   f_X = Σ_i z_i w_i / Σ_i z_i,   i over the entries of document X

    Inputs: `types` int64 (nnz,), index into the model's tokens; `counts` float64 (nnz,), positive; `documents` int64 (nnz,);
    `size` int64 (1,), the number n of documents. Outputs: `answer` float64 (n, 1) for two classes or (n, K); `probability`
    float64 (n, K). A document without entries is answered by the prior. The file's metadata holds the classes as JSON.

    Raises:
        InputError: the onnx library is not installed.
    """
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise InputError("writing ONNX needs the onnx library: pip install 'tokensieve[onnx]'") from None
    real, whole = onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64
    heads, classes = model.values_.shape[1], len(model.classes_)
    numbers = {
        "scores": model.scores_, "values": model.values_, "prior": model.prior_[None, :], "last": np.array([1]),
        "zero": np.zeros(1), "one": np.ones(1), "heads": np.array([heads]),
    }  # fmt: skip
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "types": (whole, ["entries"]),
        "counts": (real, ["entries"]),
        "documents": (whole, ["entries"]),
    }
    inputs["size"] = (whole, [1])
    outputs: dict[str, tuple[int, list[str | int]]] = {
        "answer": (real, ["n", heads]),
        "probability": (real, ["n", classes]),
    }
    graph = helper.make_graph(
        _nodes(helper, heads),
        "tokensieve",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.ascontiguousarray(x), name) for name, x in numbers.items()],
    )
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="tokensieve",
        producer_version=__version__, doc_string=DESCRIPTION,
    )  # fmt: skip
    helper.set_model_props(proto, {"classes": json.dumps(model.classes_.tolist(), default=str)})
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString())


def _nodes(helper: Any, heads: int) -> list[Any]:
    """The graph, one operator a line."""

    def node(kind: str, inputs: str, output: str, **options: Any) -> Any:
        return helper.make_node(kind, inputs.split(), [output], **options)

    def filled(output: str, value: float, shape: str) -> Any:
        tensor = helper.make_tensor("value", 11, [1], [value])  # 11: float64
        return node("ConstantOfShape", shape, output, value=tensor)

    nodes = [
        node("Gather", "scores types", "u"),
        filled("lowest", -np.inf, "size"),
        node("ScatterElements", "lowest documents u", "peaks", axis=0, reduction="max"),
        node("Gather", "peaks documents", "peak"),
        node("Sub", "u peak", "below"),
        node("Exp", "below", "odds"),
        node("Mul", "counts odds", "z"),
        filled("nothing", 0.0, "size"),
        node("ScatterElements", "nothing documents z", "totals", axis=0, reduction="add"),
        node("Unsqueeze", "totals last", "total"),
        node("Gather", "values types", "w"),
        node("Unsqueeze", "z last", "column"),
        node("Mul", "w column", "terms"),
        node("Concat", "size heads", "shape", axis=0),
        filled("empty", 0.0, "shape"),
        node("Unsqueeze", "documents last", "rows"),
        node("ScatterND", "empty rows terms", "sums", reduction="add"),
        node("Greater", "total zero", "known"),
        node("Where", "known total one", "divisor"),
        node("Div", "sums divisor", "mean"),
        node("Where", "known mean prior", "answer"),
    ]
    if heads > 1:
        return [*nodes, node("Softmax", "answer", "probability", axis=1)]
    return [
        *nodes,
        node("Neg", "answer", "against"),
        node("Sigmoid", "against", "first"),
        node("Sigmoid", "answer", "second"),
        node("Concat", "first second", "probability", axis=1),
    ]
