"""Load a transformer and its tokenizer from a folder or by name: weights from safetensors only, no foreign code unless allowed.

Whatever is wrong is reported in one line before any document is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokensieve.diagnose.subjects.weights import check_weights, find_device, quietly, transformers_library
from tokensieve.errors import InputError
from tokensieve.files import read_regular

Words = Mapping[str, str] | None


def load(
    source: str,
    trust_remote_code: bool = False,
    device: str = "cpu",
    label_words: Words = None,
    template: str | None = None,
) -> tuple[Any, Any]:
    """Load a model for sequence classification and its tokenizer.

    Args:
        source: a folder with config.json, model.safetensors and tokenizer.json, or a name on the Hugging Face hub.
        trust_remote_code: run Python code that comes with the folder or from the hub.
        device: of PyTorch, for example "cpu" or "cuda".
        label_words: class → the word that a causal language model predicts for it; None for a classifier.
        template: with label words: the text around {text}.

    Raises:
        InputError: the library, the folder, the model, its classifier, its tokenizer or the device is missing, weights are
            not in safetensors or not finite, or remote code would be needed and was not allowed.
    """
    transformers = transformers_library()
    import torch

    place = find_device(device)
    words = None if label_words is None else (label_words, template)
    folder = Path(source)
    if (folder / "adapter_config.json").exists():
        return _load_adapters(source, place, words)
    onnx = _onnx_file(folder)
    if onnx is not None and (folder / "config.json").exists() and not any(folder.glob("*.safetensors")):
        if words is not None:
            raise InputError("--label-words needs a causal language model of transformers, not an ONNX classifier")
        return _load_onnx(folder, onnx)
    _check_folder(source)
    with quietly():
        try:
            config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
            kind = "AutoModelForSequenceClassification" if words is None else "AutoModelForCausalLM"
            model, found = getattr(transformers, kind).from_pretrained(
                source,
                config=config,
                trust_remote_code=trust_remote_code,
                use_safetensors=True,
                dtype=torch.float32,
                attn_implementation="eager",
                output_loading_info=True,
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code)
        except InputError:
            raise
        except Exception as error:  # the library raises a dozen kinds for folders that are not as it expects
            raise InputError(_reason(source, error, words is None)) from None
    check_weights(model, source)
    missing = sorted(found["missing_keys"])
    if missing:
        holds = "classifier" if words is None else "causal language model"
        way = "name a model that was trained for sequence classification"
        if words is None and _is_language_model(config):
            way = "of a language model say which words it answers with: --label-words negative=terrible,positive=great"
        raise InputError(
            f"{source!r} holds no trained {holds}: the weights {', '.join(missing[:3])} are missing; {way}"
        )
    return _predicting_words(model, tokenizer, words).to(place), tokenizer


def _predicting_words(model: Any, tokenizer: Any, words: tuple[Any, str | None] | None) -> Any:
    """The model; of a language model the classifier that its label words make."""
    if words is None:
        return model
    from tokensieve.diagnose.subjects.label_words import LabelWords

    return LabelWords(model, tokenizer, *words)


def _is_language_model(config: Any) -> bool:
    return any("CausalLM" in name or "LMHead" in name for name in getattr(config, "architectures", None) or [])


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints that a Trainer left in a folder, by step."""
    found = [path for path in folder.glob("checkpoint-*") if path.name.rpartition("-")[2].isdigit() and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def _load_adapters(source: str, place: Any, words: tuple[Any, str | None] | None) -> tuple[Any, Any]:
    """A folder of PEFT adapters, added into the weights of the model that they were trained for."""
    from tokensieve.diagnose.subjects.recognise import merge_adapters

    folder = Path(source)
    try:
        import peft
    except ImportError:
        raise InputError(
            f"{source!r} holds PEFT adapters: pip install peft, or merge them into the model and save that (merge_and_unload)"
        ) from None
    if not (folder / "adapter_model.safetensors").exists():
        raise InputError(f"{source!r} holds no adapter_model.safetensors: save the adapters as safetensors")
    base = json.loads(read_regular(folder / "adapter_config.json", links=True)).get("base_model_name_or_path") or ""
    head = None if words is not None else _adapted_outputs(folder)
    with quietly() as transformers:
        try:
            kind = "AutoPeftModelForCausalLM" if head is None else "AutoPeftModelForSequenceClassification"
            given = {} if head is None else {"num_labels": head}
            model = getattr(peft, kind).from_pretrained(source, use_safetensors=True, **given)
            named = source if _has_tokenizer(folder) else base
            tokenizer = transformers.AutoTokenizer.from_pretrained(named)
        except Exception as error:  # the libraries raise a dozen kinds
            why = " ".join(str(error).split())[:200]
            raise InputError(
                f"the adapters in {source!r} need their base model {base!r}, which cannot be loaded ({why}): put it there, or "
                "merge the adapters and save the whole model (merge_and_unload, save_pretrained)"
            ) from None
    whole = merge_adapters(model)
    check_weights(whole, source)
    return _predicting_words(whole, tokenizer, words).to(place), tokenizer


def _adapted_outputs(folder: Path) -> int:
    """Outputs of the classifier that adapters bring along.

    Raises:
        InputError: they bring none.
    """
    from safetensors import safe_open

    with safe_open(folder / "adapter_model.safetensors", framework="pt") as file:
        for name in file.keys():  # noqa: SIM118
            if name.endswith(("classifier.weight", "score.weight", "classifier.out_proj.weight")):
                return int(file.get_slice(name).get_shape()[0])
    raise InputError(
        f"{str(folder)!r} holds adapters without a classifier (modules_to_save): they were trained for another task; of a "
        "language model say which words it answers with: --label-words negative=terrible,positive=great"
    )


def _load_onnx(folder: Path, file: Path) -> tuple[Any, Any]:
    """A folder with config.json, a tokenizer and one .onnx file (as `optimum` writes it)."""
    from tokensieve.diagnose.subjects.onnx import OnnxClassifier

    config = json.loads(read_regular(folder / "config.json", links=True))
    names = [
        name
        for _, name in sorted(config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"}).items(), key=lambda x: int(x[0]))
    ]
    if not _has_tokenizer(folder):
        raise InputError(
            f"{str(folder)!r} holds no tokenizer: there is no tokenizer.json; save the tokenizer there too"
        )
    with quietly() as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    return OnnxClassifier(file, tokenizer, names, config.get("pad_token_id") or 0), tokenizer


def _onnx_file(folder: Path) -> Path | None:
    """The first .onnx file of a folder or of its folder onnx, model.onnx before others."""
    found = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    return min(found, key=lambda path: (path.name != "model.onnx", path.name), default=None)


def _has_tokenizer(folder: Path) -> bool:
    return any(
        (folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")
    )


def _check_folder(source: str) -> None:
    """What can be told of a folder without loading it."""
    folder = Path(source)
    if not folder.exists():
        if folder.is_absolute() or source.startswith(".") or source.count("/") > 1:
            raise InputError(f"there is no folder {source!r}: check the path")
        return
    if not folder.is_dir():
        if folder.suffix in (".pkl", ".pickle", ".joblib"):
            raise InputError(
                f"{source!r} is a pickle, which can run any code: load it in Python, then "
                "tokensieve.diagnose.diagnose(model, None, texts, labels)"
            )
        raise InputError(
            f"{source!r} is a file; name the folder with config.json, model.safetensors (or an .onnx file) and tokenizer.json"
        )
    saved = checkpoints(folder)
    if saved and not (folder / "config.json").exists():
        raise InputError(
            f"{source!r} holds no model, but {len(saved)} checkpoints: name one, for example {str(_best(saved))!r}"
        )
    if not (folder / "config.json").exists():
        raise InputError(f"{source!r} holds no model: there is no config.json; save one there with save_pretrained")
    try:
        json.loads(read_regular(folder / "config.json", links=True))
    except (OSError, ValueError) as error:
        raise InputError(f"{source!r}: config.json cannot be read ({error}); save the model again") from None
    if not any(folder.glob("*.safetensors")):
        pickles = [path.name for path in sorted(folder.glob("*.bin"))]
        why = f"{pickles[0]} is a pickle, which can run any code" if pickles else "there is no model.safetensors"
        raise InputError(f"{source!r} holds no weights that can be loaded safely: {why}; save it as safetensors")
    if not _has_tokenizer(folder):
        raise InputError(f"{source!r} holds no tokenizer: there is no tokenizer.json; save the tokenizer there too")


def _best(saved: list[Path]) -> Path:
    """The checkpoint that the Trainer thought best, if it says so, else the last."""
    try:
        state = json.loads(read_regular(saved[-1] / "trainer_state.json", links=True))
        best = Path(str(state["best_model_checkpoint"])).name
    except (OSError, ValueError, KeyError):
        return saved[-1]
    return next((path for path in saved if path.name == best), saved[-1])


def _reason(source: str, error: Exception, classifier: bool) -> str:
    text = " ".join(str(error).split())
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"{source!r} needs Python code that it brings along: read that code, then allow it with --trust-remote-code"
        )
    if isinstance(error, OSError) and not Path(source).exists():
        return f"there is no folder {source!r}, and no model of that name could be downloaded: check the name or the network"
    kind = "model for sequence classification" if classifier else "causal language model"
    return f"{source!r} cannot be loaded as a {kind} with its tokenizer: {text[:300]}"
