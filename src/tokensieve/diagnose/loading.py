"""A transformer and its tokenizer from a folder or by name: weights from safetensors only, no foreign code unless asked for.

Whatever is wrong is said in one line before any document is read.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError


def require() -> Any:
    """The transformers library, with PyTorch.

    Raises:
        InputError: one of them is not installed.
    """
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        raise InputError(
            "diagnosing a transformer needs the libraries transformers and torch: pip install 'tokensieve[transformers]'"
        ) from None
    return transformers


@dataclass(frozen=True)
class Answers:
    """How a causal language model answers (`tokensieve.diagnose.LabelWords`).

    Attributes:
        words: class → the word that answers it.
        template: text around the document.
    """

    words: Mapping[str, str]
    template: str | None = None

    @classmethod
    def parse(cls, written: str, template: str | None = None) -> Answers:
        """`negative=terrible,positive=great`, or words that are themselves names: `terrible,great`.

        A word is written with a space before it, unless the template ends in white space.

        Raises:
            InputError: fewer than two words, or a class or word given twice.
        """
        space = "" if template and template[-1].isspace() else " "
        pairs = [
            (name.strip(), word.strip()) for name, _, word in (item.rpartition("=") for item in written.split(","))
        ]
        words = {name or word: space + word for name, word in pairs if word}
        if len(words) < 2 or len(words) < len(pairs):
            raise InputError(
                f"--label-words {written!r} does not give each of two or more classes a word: for example "
                "negative=terrible,positive=great"
            )
        return cls(words, template)


def load(
    source: str, trust_remote_code: bool = False, device: str = "cpu", answers: Answers | None = None
) -> tuple[Any, Any]:
    """Model for sequence classification and tokenizer.

    Args:
        source: a folder with config.json, model.safetensors and tokenizer.json, or a name on the Hugging Face hub.
        trust_remote_code: run Python code that the folder or the hub brings along.
        device: of PyTorch, for example "cpu" or "cuda".
        answers: the words that a causal language model answers with; None for a classifier.

    Raises:
        InputError: the library, the folder, the model, its classifier, its tokenizer or the device is missing, weights are
            not in safetensors or not finite, or remote code would be needed and was not allowed.
    """
    transformers = require()
    import torch

    from tokensieve.diagnose.device import find_device

    try:
        place = find_device(device)
    except InputError:
        raise InputError(f"there is no device {device!r} here: use --device cpu") from None
    folder = Path(source)
    if (folder / "adapter_config.json").exists():
        return _load_adapters(transformers, source, place, answers)
    onnx = _onnx_file(folder)
    if onnx is not None and (folder / "config.json").exists() and not any(folder.glob("*.safetensors")):
        if answers is not None:
            raise InputError("--label-words needs a causal language model of transformers, not an ONNX classifier")
        return _load_onnx(transformers, folder, onnx)
    _check_folder(source)
    with _quietly(transformers):
        try:
            config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
            kind = "AutoModelForSequenceClassification" if answers is None else "AutoModelForCausalLM"
            model, found = getattr(transformers, kind).from_pretrained(
                source, config=config, trust_remote_code=trust_remote_code, use_safetensors=True, dtype=torch.float32,
                attn_implementation="eager", output_loading_info=True,
            )  # fmt: skip
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code)
        except InputError:
            raise
        except Exception as error:  # the library raises a dozen kinds for folders that are not as it expects
            raise InputError(_reason(source, error, answers)) from None
    check_weights(model, source)
    missing = sorted(found["missing_keys"])
    if missing:
        holds = "classifier" if answers is None else "causal language model"
        way = "name a model that was trained for sequence classification"
        if answers is None and _is_language_model(config):
            way = "of a language model say which words it answers with: --label-words negative=terrible,positive=great"
        raise InputError(
            f"{source!r} holds no trained {holds}: the weights {', '.join(missing[:3])} are missing; {way}"
        )
    return _answering(model, tokenizer, answers).to(place), tokenizer


def _answering(model: Any, tokenizer: Any, answers: Answers | None) -> Any:
    """The model, or, of a language model, the classifier that its answers make."""
    if answers is None:
        return model
    from tokensieve.diagnose.words import TEMPLATE, LabelWords

    return LabelWords(model, tokenizer, answers.words, answers.template or TEMPLATE)


def _is_language_model(config: Any) -> bool:
    return any("CausalLM" in name or "LMHead" in name for name in getattr(config, "architectures", None) or [])


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints that a Trainer left in a folder, by step."""
    found = [path for path in folder.glob("checkpoint-*") if path.name.rpartition("-")[2].isdigit() and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def _load_adapters(transformers: Any, source: str, place: Any, answers: Answers | None) -> tuple[Any, Any]:
    """A folder of PEFT adapters, added into the weights of the model that they were trained for."""
    from tokensieve.diagnose.models import merged

    folder = Path(source)
    try:
        import peft
    except ImportError:
        raise InputError(
            f"{source!r} holds PEFT adapters: pip install peft, or merge them into the model and save that (merge_and_unload)"
        ) from None
    if not (folder / "adapter_model.safetensors").exists():
        raise InputError(f"{source!r} holds no adapter_model.safetensors: save the adapters as safetensors")
    base = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8")).get("base_model_name_or_path") or ""
    head = None if answers is not None else _adapted_outputs(folder)
    with _quietly(transformers):
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
    whole = merged(model)
    check_weights(whole, source)
    return _answering(whole, tokenizer, answers).to(place), tokenizer


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


def _load_onnx(transformers: Any, folder: Path, file: Path) -> tuple[Any, Any]:
    """A folder with config.json, a tokenizer and one .onnx file (as `optimum` writes it)."""
    from tokensieve.diagnose.onnx import OnnxClassifier

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    names = [
        name
        for _, name in sorted(config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"}).items(), key=lambda x: int(x[0]))
    ]
    if not _has_tokenizer(folder):
        raise InputError(
            f"{str(folder)!r} holds no tokenizer: there is no tokenizer.json; save the tokenizer there too"
        )
    with _quietly(transformers):
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


def check_weights(model: Any, source: str) -> None:
    """Every weight is a finite number.

    Raises:
        InputError: one is not; says which.
    """
    for name, weights in model.named_parameters():
        if not bool(weights.isfinite().all()):
            bad = int((~weights.isfinite()).sum())
            raise InputError(
                f"{source!r}: {bad:,} of {weights.numel():,} weights in {name} are not finite numbers: the model is broken, "
                "use an earlier checkpoint"
            )


def untrained_twin(model: Any, seed: int) -> Any:
    """A model of the same class and configuration with freshly drawn weights, on the same device."""
    import torch

    if hasattr(model, "untrained"):
        return model.untrained(seed)
    with torch.random.fork_rng(), _quietly(require()):
        torch.manual_seed(seed)
        config = copy.deepcopy(model.config)
        config._attn_implementation = "eager"
        twin = type(model)(config).to(torch.float32)
    return twin.to(next(model.parameters()).device)


def weights_digest(model: Any) -> str:
    """Fingerprint of names, types, shapes and bytes of all weights."""
    import torch

    state = [(name, x) for name, x in sorted(model.state_dict().items()) if isinstance(x, torch.Tensor)]
    weights = {name: (x.int_repr() if x.is_quantized else x).detach().cpu().contiguous() for name, x in state}
    parts = ((name, str(x.dtype), tuple(x.shape), x.flatten().view(torch.uint8).numpy()) for name, x in weights.items())
    return fingerprint(*(piece for part in parts for piece in part))


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
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
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
        state = json.loads((saved[-1] / "trainer_state.json").read_text(encoding="utf-8"))
        best = Path(str(state["best_model_checkpoint"])).name
    except (OSError, ValueError, KeyError):
        return saved[-1]
    return next((path for path in saved if path.name == best), saved[-1])


def _reason(source: str, error: Exception, answers: Answers | None) -> str:
    text = " ".join(str(error).split())
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"{source!r} needs Python code that it brings along: read that code, then allow it with --trust-remote-code"
        )
    if isinstance(error, OSError) and not Path(source).exists():
        return f"there is no folder {source!r}, and no model of that name could be downloaded: check the name or the network"
    kind = "model for sequence classification" if answers is None else "causal language model"
    return f"{source!r} cannot be loaded as a {kind} with its tokenizer: {text[:300]}"


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """Without the library's progress bars and advice; what matters is checked here."""
    talk = transformers.utils.logging
    level, bars = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity(logging.CRITICAL)
    hub = [logging.getLogger(name) for name in ("huggingface_hub", "httpx", "urllib3")]
    before = [(log, log.level) for log in hub]
    for log in hub:
        log.setLevel(logging.CRITICAL)
    talk.disable_progress_bar()
    try:
        yield
    finally:
        talk.set_verbosity(level)
        for log, loudness in before:
            log.setLevel(loudness)
        if bars:
            talk.enable_progress_bar()
