"""See what a transformer relies on, and whether the data supports it.

Use documents that the model was not trained on. If SOURCE has a test part, that part is used. For a
model that reads two texts together, give --text twice. If only some documents are read
(--max-documents, --seconds), words that occur only in the rest are missed. A larger --min-documents
also misses rarer words, unless they stand out. If standard error is not a terminal, a line there
reports progress every 30 seconds; --quiet turns that off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import QUIET, SOURCE, command, out_option, progress_bar, say
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.errors import InputError
from tokensieve.escape import IN_TITLE, for_display, printable
from tokensieve.options import option
from tokensieve.progress import Clock, Progress

if TYPE_CHECKING:
    from tokensieve.diagnose.comparison import Comparison
    from tokensieve.diagnose.diagnosis import Diagnosis
    from tokensieve.diagnose.subjects.loading import Loaded
    from tokensieve.read.corpus import Corpus


@command(
    model="Folder of a transformers classifier (safetensors, PEFT adapter or ONNX), or its name "
    "on the hub. Several models, or a folder of checkpoints, are compared.",
    source=SOURCE,
)
def _diagnose(
    model: tuple[str, ...],
    source: str,
    settings: DiagnoseSettings,
    map_: list[str] | None = option(
        None,
        "Match a class to an output (repeatable).",
        flag="--map",
        metavar="CLASS=OUTPUT",
        parse=list,
    ),
    device: str = option("cpu", "auto, cpu, cuda or cuda:1.", metavar="DEVICE"),
    trust_remote_code: bool = option(False, "Run Python code that comes with the model."),
    fail_on: list[str] | None = option(
        None,
        "Exit with status 3 if one word accounts for more than this fraction of all use "
        "(share=0.2), or if the model uses more than this many words without support "
        "(unsupported=0). Repeatable. With several models, only the last is checked.",
        metavar="KIND=LIMIT",
        parse=list,
    ),
    resume: Path | None = option(None, "Save progress in this file, and continue from it."),
    out: Path = out_option("tokensieve-diagnose"),
    quiet: bool = QUIET,
) -> int:
    """Diagnose one model, or compare several; write everything or nothing."""
    from tokensieve.diagnose.diagnosis import Diagnosis
    from tokensieve.diagnose.subjects.loading import load
    from tokensieve.files import check_writable
    from tokensieve.report.writer import save

    limits = Diagnosis.limits_from(fail_on or [])
    mapping = _parsed_mapping(map_ or [])
    names = _models(list(model))
    _check_resume(resume, len(names))
    prompt = _prompt(settings)
    start = time.perf_counter()
    check_writable(out)
    words = settings.label_words
    loaders = {
        name: partial(load, name, trust_remote_code, device, words, settings.template)
        for name in names
    }
    with progress_bar(quiet, lines=True) as progress:
        job = _Job(loaders, source, settings, mapping, prompt, progress)
        result = job.diagnose(resume) if len(names) == 1 else job.compare()
        progress("writing", 0.99)
        paths = save(result, out, start=start)
    if not quiet:
        _show(result, out, paths)
    return _check_limits(result, names, limits)


@dataclass(frozen=True)
class _Job:
    """What is diagnosed, and how.

    Attributes:
        loaders: model → function that loads it.
        mapping: class → output (`--map`).
        prompt: column of the prompt that the model reads before each of two answers.
    """

    loaders: Mapping[str, Callable[[], Loaded]]
    source: str
    settings: DiagnoseSettings
    mapping: dict[str, str]
    prompt: str | None
    progress: Progress

    def diagnose(self, resume: Path | None) -> Diagnosis:
        """Diagnose the only model, which is loaded before the documents are read."""
        from tokensieve.diagnose.run import diagnose_corpus

        clock = Clock()
        ((name, load),) = self.loaders.items()
        self.progress("loading the model", 0.0)
        loaded = load()
        clock.lap("loading")
        corpus = self._read()
        clock.lap("reading")
        result = diagnose_corpus(
            *loaded,
            corpus,
            self.settings,
            mapping=self.mapping,
            prompted=self.prompt is not None,
            model_name=name,
            resume=resume,
            progress=self.progress,
        )
        result.seconds.update(clock.seconds)
        return result

    def compare(self) -> Comparison:
        """Diagnose all models, each loaded when its turn comes, on the same documents."""
        from tokensieve.diagnose.comparing import compare

        return compare(
            self.loaders,
            self._read(),
            self.settings,
            mapping=self.mapping,
            prompted=self.prompt is not None,
            progress=self.progress,
        )

    def _read(self) -> Corpus:
        """Read the source; answers to one prompt are a group."""
        from tokensieve.read.pairs import read_pairs
        from tokensieve.read.reader import read_corpus

        reading = self.settings
        if self.prompt is not None:
            reading = replace(reading, text=None, by=self.prompt)
        self.progress("reading", 0.0)
        return (read_pairs if reading.pairs else read_corpus)(self.source, reading)


def _show(result: Diagnosis | Comparison, out: Path, paths: list[Path]) -> None:
    """Print the result, and where its files are."""
    from tokensieve.report.terminal import show

    show(result.report())
    names = sorted({path.relative_to(out).parts[0] for path in paths})
    print(f"{', '.join(names)} are in {printable(str(out))}")


def _check_limits(
    result: Diagnosis | Comparison, names: list[str], limits: dict[str, float]
) -> int:
    """The exit status: 3 if the last model exceeds a limit of `--fail-on`, never silently."""
    from tokensieve.diagnose.comparison import Comparison

    judged = result.diagnoses[-1] if isinstance(result, Comparison) else result
    exceeded = judged.exceeded(limits)
    subject = f"{for_display(names[-1], IN_TITLE)}: " if len(names) > 1 else ""
    for limit in exceeded:
        say(False, f"{subject}{limit}")
    return 3 if exceeded else 0


def _parsed_mapping(items: list[str]) -> dict[str, str]:
    """Parse `--map CLASS=OUTPUT`: class → output."""
    mapping = {}
    for item in items:
        name, equals, output = item.rpartition("=")
        if not (name and equals and output):
            raise InputError(
                f"--map {item!r} is not of the form CLASS=OUTPUT (for example negative=LABEL_0)"
            )
        mapping[name] = output
    return mapping


def _check_resume(resume: Path | None, n_models: int) -> None:
    if resume is None:
        return
    if resume.is_dir() or not resume.parent.is_dir():
        raise InputError(
            f"cannot save progress in {str(resume)!r}: name a file in an existing folder"
        )
    if n_models > 1:
        raise InputError("--resume works with one model: name one, or leave out --resume")


def _prompt(settings: DiagnoseSettings) -> str | None:
    """The column of the prompt that the model reads before each of two answers; None without one.

    Of pairs, --text names it.
    """
    prompt = settings.text
    if settings.pairs is None or prompt is None:
        return None
    if not isinstance(prompt, str) or prompt in settings.columns_of_pairs:
        raise InputError("with --pairs, --text names the column of the prompt; pass it only once")
    return prompt


def _models(given: list[str]) -> list[str]:
    """The models to diagnose.

    A folder without a model of its own stands for the checkpoints in it, if there are two or more.
    All checkpoints of one folder, as a shell's `checkpoint-*` names them, are put in the order of
    their steps.
    """
    from tokensieve.diagnose.subjects.loading import checkpoints

    paths = [Path(name) for name in given]
    if len(given) > 1:
        saved = checkpoints(paths[0].parent)
        is_all = len(saved) == len(given) and set(saved) == set(paths)
        return [str(path) for path in saved] if is_all else given
    if (paths[0] / "config.json").exists():
        return given
    saved = checkpoints(paths[0])
    return [str(path) for path in saved] if len(saved) > 1 else given
