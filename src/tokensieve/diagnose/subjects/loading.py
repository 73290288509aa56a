"""Load a classifier and its tokenizer from a folder or by name.

Only safetensors weights are read, and no remote code is run unless allowed. Any problem is reported
in one line before documents are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tokensieve.diagnose.subjects.libraries import (
    check_weights,
    quiet_transformers,
    transformers_library,
)
from tokensieve.diagnose.subjects.onnx import OnnxClassifier
from tokensieve.diagnose.subjects.recognise import merge_adapters
from tokensieve.errors import InputError
from tokensieve.files import read_regular
from tokensieve.torch_device import find_device

ASK_FOR_WORDS = (
    "for a language model, name the word that it predicts for each class: "
    "--label-words negative=terrible,positive=great"
)
HEADS = ("classifier.weight", "score.weight", "classifier.out_proj.weight")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")
PICKLES = (".pkl", ".pickle", ".joblib")


class Loaded(NamedTuple):
    """A model and its tokenizer."""

    model: Any
    tokenizer: Any


def load(
    source: str,
    trust_remote_code: bool = False,
    device: str = "cpu",
    label_words: Mapping[str, str] | None = None,
    template: str | None = None,
) -> Loaded:
    """Load a model for sequence classification and its tokenizer.

    Args:
        source: a folder with config.json, model.safetensors and tokenizer.json, or a name on the
            Hugging Face hub.
        trust_remote_code: run Python code that comes with the model.
        device: of PyTorch, for example "cpu" or "cuda".
        label_words, template: class → the word that a causal language model predicts for it, and
            the text around {text}.

    Raises:
        InputError: a library, the folder, its classifier, its tokenizer or the device is missing,
            weights are not in safetensors or not finite, or remote code would be needed and was not
            allowed.
    """
    transformers_library()
    place = find_device(device)
    folder = Path(source)
    is_classifier = label_words is None
    if (folder / "adapter_config.json").exists():
        loaded = _load_adapters(source, is_classifier)
    elif (onnx_file := _onnx_file(folder)) is not None:
        if not is_classifier:
            raise InputError(
                "--label-words needs a causal language model of transformers, "
                "not an ONNX classifier"
            )
        return _load_onnx(folder, onnx_file)
    else:
        _check_folder(source)
        loaded = _load_transformer(source, trust_remote_code, is_classifier)
    model, tokenizer = loaded
    if label_words is not None:
        from tokensieve.diagnose.subjects.label_words import LabelWords

        model = LabelWords(model, tokenizer, label_words, template)
    return Loaded(model.to(place), tokenizer)


def _onnx_file(folder: Path) -> Path | None:
    """The .onnx file of a folder that has no other weights."""
    has_weights = any(folder.glob("*.safetensors"))
    if has_weights or not (folder / "config.json").exists():
        return None
    files = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    return min(files, key=lambda path: (path.name != "model.onnx", path.name), default=None)


def _load_transformer(source: str, trust_remote_code: bool, is_classifier: bool) -> Loaded:
    """A whole model as `save_pretrained` writes it."""
    import torch

    kind = "model for sequence classification" if is_classifier else "causal language model"
    auto = "AutoModelForSequenceClassification" if is_classifier else "AutoModelForCausalLM"
    with quiet_transformers() as transformers:
        try:
            config = transformers.AutoConfig.from_pretrained(
                source, trust_remote_code=trust_remote_code
            )
            model, loading_info = getattr(transformers, auto).from_pretrained(
                source,
                config=config,
                trust_remote_code=trust_remote_code,
                use_safetensors=True,
                dtype=torch.float32,
                attn_implementation="eager",
                output_loading_info=True,
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                source, trust_remote_code=trust_remote_code
            )
        except Exception as error:  # the library raises a dozen kinds
            raise InputError(_why_not_loaded(source, kind, error)) from None
    check_weights(model, source)
    missing = ", ".join(sorted(loading_info["missing_keys"])[:3])
    if missing:
        advice = "name a model that was trained for sequence classification"
        names = config.architectures or []
        if is_classifier and any("CausalLM" in name or "LMHead" in name for name in names):
            advice = ASK_FOR_WORDS
        noun = "classifier" if is_classifier else kind
        raise InputError(
            f"{source!r} contains no trained {noun}: the weights {missing} are missing; {advice}"
        )
    return Loaded(model, tokenizer)


def _why_not_loaded(source: str, kind: str, error: Exception) -> str:
    """What to do about an error of the library, in one line."""
    text = " ".join(str(error).split())
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"{source!r} needs the Python code that comes with it; read that code, then allow it "
            "with --trust-remote-code"
        )
    if isinstance(error, OSError) and not Path(source).exists():
        return (
            f"there is no folder {source!r}, and no model of that name could be downloaded: "
            "check the name or the network"
        )
    return f"{source!r} cannot be loaded as a {kind} with its tokenizer: {text[:300]}"


def _load_adapters(source: str, is_classifier: bool) -> Loaded:
    """A folder of PEFT adapters, added into the weights of the model they were trained for."""
    folder = Path(source)
    try:
        import peft
    except ImportError:
        raise InputError(
            f"{source!r} contains PEFT adapters: pip install peft, or merge them into the model "
            "and save that (merge_and_unload)"
        ) from None
    if not (folder / "adapter_model.safetensors").exists():
        raise InputError(
            f"{source!r} contains no adapter_model.safetensors: save the adapters as safetensors"
        )
    config = json.loads(read_regular(folder / "adapter_config.json", links=True))
    base = config.get("base_model_name_or_path") or ""
    auto = "AutoPeftModelForCausalLM"
    options = {}
    if is_classifier:
        auto = "AutoPeftModelForSequenceClassification"
        options = {"num_labels": _adapted_labels(folder)}
    with quiet_transformers() as transformers:
        try:
            model = getattr(peft, auto).from_pretrained(source, use_safetensors=True, **options)
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                source if _has_tokenizer(folder) else base
            )
        except Exception as error:  # the libraries raise a dozen kinds
            why = " ".join(str(error).split())[:200]
            raise InputError(
                f"the adapters in {source!r} need their base model {base!r}, which cannot be "
                f"loaded ({why}): put it there, or merge the adapters and save the whole model "
                "(merge_and_unload, save_pretrained)"
            ) from None
    model = merge_adapters(model)
    check_weights(model, source)
    return Loaded(model, tokenizer)


def _adapted_labels(folder: Path) -> int:
    """Number of labels of the classifier that was trained with the adapters."""
    from safetensors import safe_open

    with safe_open(folder / "adapter_model.safetensors", framework="pt") as file:
        heads = [name for name in file.keys() if name.endswith(HEADS)]  # noqa: SIM118 (no mapping)
        if not heads:
            raise InputError(
                f"{str(folder)!r} contains adapters without a classifier (modules_to_save): they "
                f"were trained for another task; {ASK_FOR_WORDS}"
            )
        return int(file.get_slice(heads[0]).get_shape()[0])


def _load_onnx(folder: Path, file: Path) -> Loaded:
    """A folder with config.json, a tokenizer and one .onnx file (as `optimum` writes it)."""
    config = json.loads(read_regular(folder / "config.json", links=True))
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    if not _has_tokenizer(folder):
        raise InputError(
            f"{str(folder)!r} contains no tokenizer (tokenizer.json); save the tokenizer there too"
        )
    with quiet_transformers() as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    names = [labels[number] for number in sorted(labels, key=int)]
    pad = config.get("pad_token_id") or 0
    return Loaded(OnnxClassifier(file, tokenizer, names, pad), tokenizer)


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).exists() for name in TOKENIZER_FILES)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints that a Trainer left in a folder, by step."""

    def step(path: Path) -> str:
        return path.name.rpartition("-")[2]

    folders = [path for path in folder.glob("checkpoint-*") if path.is_dir()]
    saved = [path for path in folders if step(path).isdigit()]
    return sorted(saved, key=lambda path: int(step(path)))


def _check_folder(source: str) -> None:
    """Raise an InputError if a folder cannot hold a model; nothing is loaded."""
    folder = Path(source)
    if not folder.exists():
        if folder.is_absolute() or source.startswith(".") or source.count("/") > 1:
            raise InputError(f"there is no folder {source!r}: check the path")
        return  # a name on the hub
    problem = _problem_of_folder(folder)
    if problem:
        raise InputError(f"{source!r}{problem}")


def _problem_of_folder(folder: Path) -> str:
    """Why no model can be loaded from a path, as the end of a sentence; empty if one can."""
    if not folder.is_dir():
        if folder.suffix in PICKLES:
            return (
                " is a pickle, which can run any code: load it in Python, then "
                "tokensieve.diagnose.diagnose(model, None, texts, labels)"
            )
        return (
            " is a file; name the folder with config.json, model.safetensors (or an .onnx file) "
            "and tokenizer.json"
        )
    config = folder / "config.json"
    if not config.exists():
        saved = checkpoints(folder)
        if not saved:
            return " contains no model (config.json); save one there with save_pretrained"
        example = str(_best_checkpoint(saved))
        return (
            f" contains no model, but {len(saved)} checkpoints: name one, for example {example!r}"
        )
    try:
        json.loads(read_regular(config, links=True))
    except (OSError, ValueError) as error:
        return f": config.json cannot be read ({error}); save the model again"
    if not any(folder.glob("*.safetensors")):
        pickles = sorted(folder.glob("*.bin"))
        noun = "there is no model.safetensors"
        if pickles:
            noun = f"{pickles[0].name} is a pickle, which can run any code"
        return f" contains no weights that can be loaded safely: {noun}; save it as safetensors"
    if not _has_tokenizer(folder):
        return " contains no tokenizer (tokenizer.json); save the tokenizer there too"
    return ""


def _best_checkpoint(saved: list[Path]) -> Path:
    """The checkpoint that the Trainer thought best, if it says so; else the last."""
    try:
        state = json.loads(read_regular(saved[-1] / "trainer_state.json", links=True))
        best = saved[0].parent / Path(str(state["best_model_checkpoint"])).name
    except (OSError, ValueError, KeyError):
        return saved[-1]
    return best if best in saved else saved[-1]
