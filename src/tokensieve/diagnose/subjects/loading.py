"""Load a classifier and its tokenizer from a folder or by name: only safetensors weights, and no remote code unless allowed.

Any problem is reported in one line before documents are read.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.diagnose.subjects.recognise import RecognisedModel
from tokensieve.diagnose.subjects.windows import Input
from tokensieve.errors import InputError
from tokensieve.files import read_regular
from tokensieve.torch_device import find_device

if TYPE_CHECKING:
    import torch

_WORDS = "for a language model, name the word that it predicts for each class: --label-words negative=terrible,positive=great"
_HEADS = ("classifier.weight", "score.weight", "classifier.out_proj.weight")
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")


def load(
    source: str,
    trust_remote_code: bool = False,
    device: str = "cpu",
    label_words: Mapping[str, str] | None = None,
    template: str | None = None,
) -> tuple[Any, Any]:
    """Load a model for sequence classification and its tokenizer.

    Args:
        source: a folder with config.json, model.safetensors and tokenizer.json, or a name on the Hugging Face hub.
        trust_remote_code: run Python code that comes with the model.
        device: of PyTorch, for example "cpu" or "cuda".
        label_words, template: class → the word that a causal language model predicts for it, and the text around {text}.

    Raises:
        InputError: a library, the folder, its classifier, its tokenizer or the device is missing, weights are not in safetensors or
            not finite, or remote code would be needed and was not allowed.
    """
    _require_libraries()
    place, folder, classifier = find_device(device), Path(source), label_words is None
    if (folder / "adapter_config.json").exists():
        model, tokenizer = _load_adapters(source, classifier)
    else:
        onnx = min(
            [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")],
            key=lambda path: (path.name != "model.onnx", path.name),
            default=None,
        )
        if (
            onnx is not None
            and (folder / "config.json").exists()
            and not any(folder.glob("*.safetensors"))
        ):
            if not classifier:
                raise InputError(
                    "--label-words needs a causal language model of transformers, not an ONNX classifier"
                )
            return _load_onnx(folder, onnx)
        _check_folder(source)
        model, tokenizer = _load_transformer(source, trust_remote_code, classifier)
    if label_words is not None:
        from tokensieve.diagnose.subjects.reader import LabelWords

        model = LabelWords(model, tokenizer, label_words, template)
    return model.to(place), tokenizer


def _load_transformer(source: str, trust_remote_code: bool, classifier: bool) -> tuple[Any, Any]:
    """A whole model as `save_pretrained` writes it."""
    import torch

    kind = "model for sequence classification" if classifier else "causal language model"
    with _quietly() as transformers:
        try:
            config = transformers.AutoConfig.from_pretrained(
                source, trust_remote_code=trust_remote_code
            )
            auto = "AutoModelForSequenceClassification" if classifier else "AutoModelForCausalLM"
            model, found = getattr(transformers, auto).from_pretrained(
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
        except (
            Exception
        ) as error:  # the library raises a dozen kinds for folders that are not as it expects
            text = " ".join(str(error).split())
            why = f"{source!r} cannot be loaded as a {kind} with its tokenizer: {text[:300]}"
            if "trust_remote_code" in text or "custom code" in text:
                why = f"{source!r} needs the Python code that comes with it; read that code, then allow it with --trust-remote-code"
            elif isinstance(error, OSError) and not Path(source).exists():
                why = f"there is no folder {source!r}, and no model of that name could be downloaded: check the name or the network"
            raise InputError(why) from None
    check_weights(model, source)
    missing = ", ".join(sorted(found["missing_keys"])[:3])
    if missing:
        way, names = (
            "name a model that was trained for sequence classification",
            config.architectures or [],
        )
        if classifier and any("CausalLM" in name or "LMHead" in name for name in names):
            way = _WORDS
        holds = "classifier" if classifier else kind
        raise InputError(
            f"{source!r} contains no trained {holds}: the weights {missing} are missing; {way}"
        )
    return model, tokenizer


def _load_adapters(source: str, classifier: bool) -> tuple[Any, Any]:
    """A folder of PEFT adapters, added into the weights of the model that they were trained for."""
    from safetensors import safe_open

    folder = Path(source)
    try:
        import peft
    except ImportError:
        raise InputError(
            f"{source!r} contains PEFT adapters: pip install peft, or merge them into the model and save that (merge_and_unload)"
        ) from None
    if not (folder / "adapter_model.safetensors").exists():
        raise InputError(
            f"{source!r} contains no adapter_model.safetensors: save the adapters as safetensors"
        )
    base = (
        json.loads(read_regular(folder / "adapter_config.json", links=True)).get(
            "base_model_name_or_path"
        )
        or ""
    )
    auto, given = "AutoPeftModelForCausalLM", {}
    if classifier:
        with safe_open(folder / "adapter_model.safetensors", framework="pt") as file:
            heads = [name for name in file.keys() if name.endswith(_HEADS)]  # noqa: SIM118
            if not heads:
                raise InputError(
                    f"{source!r} contains adapters without a classifier (modules_to_save): they were trained for another task; "
                    f"{_WORDS}"
                )
            auto = "AutoPeftModelForSequenceClassification"
            given = {"num_labels": int(file.get_slice(heads[0]).get_shape()[0])}
    with _quietly() as transformers:
        try:
            model = getattr(peft, auto).from_pretrained(source, use_safetensors=True, **given)
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                source if _has_tokenizer(folder) else base
            )
        except Exception as error:  # the libraries raise a dozen kinds
            raise InputError(
                f"the adapters in {source!r} need their base model {base!r}, which cannot be loaded "
                f"({' '.join(str(error).split())[:200]}): put it there, or merge the adapters and save the whole model "
                "(merge_and_unload, save_pretrained)"
            ) from None
    model = RecognisedModel.merge_adapters(model)
    check_weights(model, source)
    return model, tokenizer


def _load_onnx(folder: Path, file: Path) -> tuple[Any, Any]:
    """A folder with config.json, a tokenizer and one .onnx file (as `optimum` writes it)."""
    config = json.loads(read_regular(folder / "config.json", links=True))
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    if not _has_tokenizer(folder):
        raise InputError(
            f"{str(folder)!r} contains no tokenizer (tokenizer.json); save the tokenizer there too"
        )
    with _quietly() as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    names = [labels[number] for number in sorted(labels, key=int)]
    return OnnxClassifier(file, tokenizer, names, config.get("pad_token_id") or 0), tokenizer


class OnnxClassifier:
    """A sequence classifier in a .onnx file: its inputs are input_ids and attention_mask (token_type_ids if it has them), its
    first output the logits. There are no gradients: effects are measured by removing words. `names` are the outputs' in order,
    `pad` is the piece id that pads. An InputError without onnxruntime, or for another file.
    """

    read_pieces = True
    layers, differentiable = 0, False

    def __init__(
        self, path: str | Path, tokenizer: Any, names: Sequence[str], pad: int = 0
    ) -> None:
        try:
            import onnxruntime

            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
        except ImportError:
            raise InputError(
                "reading a .onnx file needs onnxruntime: pip install onnxruntime"
            ) from None
        except Exception as error:  # the library raises many kinds of its own
            why = " ".join(str(error).split())[:200]
            raise InputError(f"{str(path)!r} cannot be read as an ONNX model: {why}") from None
        self._given = {one.name for one in self._session.get_inputs()}
        if "input_ids" not in self._given:
            takes = ", ".join(sorted(self._given))
            raise InputError(
                f"{str(path)!r} takes {takes}, not input_ids, so it cannot read token ids"
            )
        self.names, self.tokenizer, self._pad = tuple(names), tokenizer, pad
        self.config = SimpleNamespace(pad_token_id=pad)

    def logits(self, batch: Sequence[Input]) -> Floats:
        """Logits, shape (B, M)."""
        ids = np.full((len(batch), max(len(one.ids) for one in batch)), self._pad, dtype=np.int64)
        mask, segments = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(batch):
            ids[row, : len(one.ids)], mask[row, : len(one.ids)] = one.ids, 1
            if one.segments is not None:
                segments[row, : len(one.ids)] = one.segments
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        out = self._session.run(
            None, {name: x for name, x in given.items() if name in self._given}
        )[0]
        z = np.asarray(out, dtype=np.float64)
        if z.shape != (len(batch), len(self.names)):
            raise InputError(
                f"the ONNX model returns {z.shape} for {len(batch)} inputs but has {len(self.names)} output names"
            )
        return z


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).exists() for name in _TOKENIZERS)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints that a Trainer left in a folder, by step."""
    found = [
        path
        for path in folder.glob("checkpoint-*")
        if path.name.rpartition("-")[2].isdigit() and path.is_dir()
    ]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def _check_folder(source: str) -> None:
    """Check a folder as far as possible without loading the model."""
    folder = Path(source)
    if not folder.exists():
        if folder.is_absolute() or source.startswith(".") or source.count("/") > 1:
            raise InputError(f"there is no folder {source!r}: check the path")
        return
    pickles, saved, config = (
        sorted(folder.glob("*.bin")),
        checkpoints(folder),
        folder / "config.json",
    )
    if folder.suffix in (".pkl", ".pickle", ".joblib") and not folder.is_dir():
        why = " is a pickle, which can run any code: load it in Python, then "
        why += "tokensieve.diagnose.diagnose(model, None, texts, labels)"
    elif not folder.is_dir():
        why = " is a file; name the folder with config.json, model.safetensors (or an .onnx file) and tokenizer.json"
    elif saved and not config.exists():
        try:  # the one that the Trainer thought best, if it says so
            state = json.loads(read_regular(saved[-1] / "trainer_state.json", links=True))
            best = saved[0].parent / Path(str(state["best_model_checkpoint"])).name
        except (OSError, ValueError, KeyError):
            best = saved[-1]
        best = best if best in saved else saved[-1]
        why = (
            f" contains no model, but {len(saved)} checkpoints: name one, for example {str(best)!r}"
        )
    elif not config.exists():
        why = " contains no model (config.json); save one there with save_pretrained"
    elif not any(folder.glob("*.safetensors")):
        what = (
            f"{pickles[0].name} is a pickle, which can run any code"
            if pickles
            else "there is no model.safetensors"
        )
        why = f" contains no weights that can be loaded safely: {what}; save it as safetensors"
    elif not _has_tokenizer(folder):
        why = " contains no tokenizer (tokenizer.json); save the tokenizer there too"
    else:
        why = ""
    if config.exists():
        try:
            json.loads(read_regular(config, links=True))
        except (OSError, ValueError) as error:
            why = f": config.json cannot be read ({error}); save the model again"
    if why:
        raise InputError(f"{source!r}{why}")


def _require_libraries() -> ModuleType:
    """The module `transformers`, if it and PyTorch are installed."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        raise InputError(
            "diagnosing a transformer needs the libraries transformers and torch: pip install 'tokensieve[transformers]'"
        ) from None
    return transformers


@contextmanager
def _quietly() -> Iterator[ModuleType]:
    """The library without its progress bars and advice; what matters is checked here."""
    transformers = _require_libraries()
    talk, before = transformers.utils.logging, logging.root.manager.disable
    bars = talk.is_progress_bar_enabled()
    logging.disable(logging.CRITICAL)
    talk.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.disable(before)
        if bars:
            talk.enable_progress_bar()


def check_weights(model: torch.nn.Module, source: str) -> None:
    """Raise an InputError that names the first parameter with a number that is not finite."""
    for name, weights in model.named_parameters():
        bad = int((~weights.isfinite()).sum())
        if bad:
            raise InputError(
                f"{source!r}: {bad:,} of {weights.numel():,} weights in {name} are not finite numbers, so the model is broken; "
                "use an earlier checkpoint"
            )


def untrained_twin(model: Any, seed: int) -> Any:
    """A model of the same class and configuration with freshly drawn weights, on the same device."""
    import torch

    if hasattr(model, "untrained"):
        return model.untrained(seed)
    with torch.random.fork_rng(), _quietly():
        torch.manual_seed(seed)
        config = copy.deepcopy(model.config)
        config._attn_implementation = "eager"
        twin = type(model)(config).to(torch.float32)
    return twin.to(next(model.parameters()).device)
