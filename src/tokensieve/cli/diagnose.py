"""See what a transformer relies on, and whether the data supports it.

Use documents that the model was not trained on. If SOURCE has a test part, that part is used. For a model that reads two texts
together give --text twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tokensieve.cli.command import command, out_option, progress, quiet_option, say
from tokensieve.cli.options import SOURCE, Documents, two_columns
from tokensieve.errors import InputError
from tokensieve.escape import shown
from tokensieve.options import option


@dataclass(frozen=True, kw_only=True)
class Read(Documents):
    """Data."""

    pairs: str | None = option(
        None,
        "For a reward model: columns of two answers, the preferred one first; --text names the prompt.",
        metavar="CHOSEN,REJECTED",
    )

    def reader(self, **more: Any) -> Callable[[], Any]:
        """As for `Documents`; preference pairs with the prompt that the model reads before each answer."""
        if self.pairs is None:
            return super().reader(duplicates="keep", **more)
        columns, prompt = two_columns(self.pairs), self.text
        for name in ("label", "group", "drop"):
            if getattr(self, name):
                raise InputError(f"--{name} is for labelled documents: leave it out beside --pairs")
        if prompt and (len(prompt) > 1 or prompt[0] in columns):
            raise InputError(
                "beside --pairs one --text names the column of the prompt, if the model reads it: give it once"
            )

        def read() -> Any:
            from tokensieve.diagnose.sample import documents_from
            from tokensieve.text.pairs import read_pairs

            by = prompt[0] if prompt else None
            corpus = read_pairs(self.source, pairs=columns, by=by, split=self.split, test=self.test, **self.form())
            return documents_from(corpus, prompted=bool(prompt))

        return read


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The model."""

    label_words: str | None = option(
        None, "For a causal language model: the word it answers for each class.", metavar="CLASS=WORD,…"
    )
    template: str | None = option(
        None,
        "With --label-words: the prompt around {text} (and {second}).",
        metavar="TEMPLATE",
        default_text="{text}, a new line, Label:",
    )
    device: str = option("cpu", "cpu, cuda, cuda:1 or mps.", metavar="DEVICE")
    trust_remote_code: bool = option(False, "Run Python code that comes with the model.")

    def loader(self) -> Callable[[str], tuple[Any, Any]]:
        """Check the options now; what it gives loads a model later.

        Raises:
            InputError: words that cannot be read, or a template without words.
        """
        from tokensieve.diagnose.loading import Answers, load

        if self.template is not None and self.label_words is None:
            raise InputError("--template is for a language model that answers with words: name them with --label-words")
        answers = None if self.label_words is None else Answers.parse(self.label_words, self.template)
        return partial(load, trust_remote_code=self.trust_remote_code, device=self.device, answers=answers)


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """Measurement."""

    min_documents: int = option(10, "Ignore words in fewer of the documents that the model reads.", low=1)
    max_documents: int = option(1000, "The model reads a random sample of at most this many documents.", low=8)
    max_length: int | None = option(None, "Tokens per input at most.", low=3, default_text="the model's limit")
    long: str = option("truncate", "How to read longer documents.", metavar="truncate|windows")
    batch_size: int = option(16, "Inputs per batch.", low=1)
    deletions: int = option(4, "Without gradients: remove each word from at most this many documents.", low=1)
    untrained: bool = option(True, "Measure an untrained model of the same shape too.")
    tokenizer: str | None = option(
        None,
        "What counts as a word: `model` for the model's own tokens, or a tokenizer.json.",
        metavar="FILE",
        default_text="words and punctuation",
    )
    seed: int = option(0, "Seed of every random draw.", low=0, high=2**32 - 1)


@command(
    model="Folder of a transformers classifier (safetensors, PEFT adapter or ONNX), or its name on the hub. Several models, or a "
    "folder of checkpoints, are compared.",
    source=SOURCE,
)
def diagnose(
    model: tuple[str, ...],
    source: str,
    documents: Read,
    loading: Loading,
    measuring: Measuring,
    map_: list[str] | None = option(
        None, "Which output of the model is a class (repeatable).", flag="--map", metavar="CLASS=OUTPUT", parse=list
    ),
    fail_on: list[str] | None = option(
        None,
        "Exit with status 3 if one word has more than this fraction of all use (share=0.2), or more words than this are used "
        "without support (unsupported=0); repeatable. Of several models the last is judged.",
        metavar="KIND=LIMIT",
        parse=list,
    ),
    resume: Path | None = option(None, "Keep unfinished work in this file, and continue from it."),
    out: Path = out_option("tokensieve-diagnose"),
    quiet: bool = quiet_option(),
) -> int:
    """Diagnose one model, or compare several."""
    documents = replace(documents, source=source)
    from tokensieve.diagnose.limits import Limits
    from tokensieve.diagnose.result import DiagnoseSettings

    if resume and (resume.is_dir() or not resume.parent.is_dir()):
        raise InputError(f"cannot keep unfinished work in {str(resume)!r}: name a file in a folder that exists")
    mapping: dict[str, str] = {}
    for item in map_ or []:
        name, equals, output = item.rpartition("=")
        if not (name and equals and output):
            raise InputError(f"--map {item!r} is not of the form CLASS=OUTPUT (for example negative=LABEL_0)")
        mapping[name] = output
    limits = Limits.parse(fail_on or [])
    settings, read = DiagnoseSettings(**asdict(measuring)), documents.reader()
    names, load = _models(list(model)), loading.loader()
    if len(names) > 1:
        if resume:
            raise InputError("--resume keeps the work of one model: name one, or leave it out")
        found = _compare(read, {name: partial(load, name) for name in names}, settings, mapping, out, quiet)
    else:
        options = {"mapping": mapping, "resume": resume, "model_name": names[0]}
        found = _diagnose(read, partial(load, names[0]), settings, options, out, quiet)
    if over := limits.exceeded(found):
        for line in over:
            say(quiet, f"{shown(names[-1], 60)}: {line}" if len(names) > 1 else line)
        return 3
    return 0


def _models(given: list[str]) -> list[str]:
    """The models named; a folder without a model of its own stands for the checkpoints in it, if there are two or more. All
    checkpoints of one folder, as a shell's `checkpoint-*` names them, are put in the order of their steps."""
    from tokensieve.diagnose.loading import checkpoints

    paths = [Path(one) for one in given]
    if len(given) > 1:
        saved = checkpoints(paths[0].parent)
        return [str(path) for path in saved] if len(saved) == len(given) and set(saved) == set(paths) else given
    if (paths[0] / "config.json").exists():
        return given
    saved = checkpoints(paths[0])
    return [str(path) for path in saved] if len(saved) > 1 else given


def _compare(
    read: Callable[[], Any], loaders: dict[str, Any], settings: Any, mapping: dict[str, str], out: Path, quiet: bool
) -> Any:  # fmt: skip
    """Diagnose each, compare, write everything or nothing, and show the result; gives the last model's diagnosis."""
    from tokensieve.diagnose.comparing import compare
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.models import render_comparison
    from tokensieve.report.terminal_diagnose import show_comparison

    check_writable(out)
    with progress(quiet) as tell:
        tell("reading", 0.0)
        corpus = read()
        found = compare(loaders, corpus, settings, mapping=mapping, progress=tell)
        tell("writing", 0.0)
        files: dict[str, Any] = {"report.html": render_comparison(found), "models.csv": csv_table(found.models)}
        files["words.csv"] = csv_table(found.words)
        files["summary.json"] = json.dumps(found.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        write_all(out, files)
    if not quiet:
        show_comparison(found, out, list(files))
    return found.diagnoses[-1]


def _diagnose(
    read: Callable[[], Any], load: Callable[[], tuple[Any, Any]], settings: Any, options: dict[str, Any], out: Path, quiet: bool
) -> Any:  # fmt: skip
    """Load, diagnose, write everything or nothing, and show the result."""
    from tokensieve.diagnose.diagnosing import diagnose_corpus
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.charts import drawn
    from tokensieve.report.diagnose import FILES, draw, model_card, render_diagnosis
    from tokensieve.report.terminal_diagnose import show_diagnosis

    start = time.perf_counter()
    check_writable(out)
    with progress(quiet) as tell:
        tell("loading the model", 0.0)
        loaded = load()
        tell("reading", 0.0)
        seconds = {"loading": time.perf_counter() - start}
        corpus = read()
        seconds["reading"] = time.perf_counter() - start - seconds["loading"]
        found = diagnose_corpus(*loaded, corpus, settings, progress=tell, seconds=seconds, **options)
        tell("writing", 0.0)
        lap = time.perf_counter()
        pictures = draw(found)
        files: dict[str, Any] = {
            "report.html": render_diagnosis(found, pictures),
            "tokens.csv": csv_table(found.tokens),
        }
        files |= {"uses.csv": csv_table(found.uses), "leaning.csv": csv_table(found.leaning)}
        files["model-card.md"] = model_card(found)
        files |= {f"pictures/{file}": picture for file, picture in drawn(pictures).items()}
        found.seconds["report"] = time.perf_counter() - lap
        found.seconds["total"] = time.perf_counter() - start
        files["summary.json"] = json.dumps(found.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        write_all(out, files, ours=rf"pictures/({'|'.join(FILES)})(-class-\d+)?\.(svg|png)")
    if not quiet:
        show_diagnosis(found, out, [name for name in files if "/" not in name] + ["pictures"])
    return found
