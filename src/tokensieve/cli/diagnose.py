"""See what a transformer relies on, and whether the data supports it.

Use documents that the model was not trained on. If SOURCE has a test part, that part is used. For a model that reads two texts
together, give --text twice. If only some documents are read (--max-documents, --seconds), words that occur only in the rest are
missed. A larger --min-documents also misses rarer words, unless they stand out. If standard error is not a terminal, a line there
reports progress every 30 seconds; --quiet turns that off.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from tokensieve.cli.command import QUIET, SOURCE, command, out_option, progress_bar, say
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.errors import InputError
from tokensieve.escape import for_display, printable
from tokensieve.options import option


@command(
    model="Folder of a transformers classifier (safetensors, PEFT adapter or ONNX), or its name on the hub. Several models, or a "
    "folder of checkpoints, are compared.",
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
        "Exit with status 3 if one word accounts for more than this fraction of all use (share=0.2), or if the model uses more "
        "than this many words without support (unsupported=0). Repeatable. With several models, only the last is checked.",
        metavar="KIND=LIMIT",
        parse=list,
    ),
    resume: Path | None = option(None, "Save progress in this file, and continue from it."),
    out: Path = out_option("tokensieve-diagnose"),
    quiet: bool = QUIET,
) -> int:
    """Diagnose one model, or compare several; write everything or nothing."""
    from tokensieve.diagnose.comparing import compare
    from tokensieve.diagnose.comparison import Comparison
    from tokensieve.diagnose.diagnosis import Diagnosis
    from tokensieve.diagnose.run import diagnose_corpus
    from tokensieve.diagnose.subjects.loading import load
    from tokensieve.files import check_writable
    from tokensieve.read.pairs import read_pairs
    from tokensieve.read.reader import read_corpus
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    if resume and (resume.is_dir() or not resume.parent.is_dir()):
        raise InputError(
            f"cannot save progress in {str(resume)!r}: name a file in an existing folder"
        )
    mapping, limits = dict[str, str](), Diagnosis.limits_from(fail_on or [])
    for item in map_ or []:
        name, equals, output = item.rpartition("=")
        if not (name and equals and output):
            raise InputError(
                f"--map {item!r} is not of the form CLASS=OUTPUT (for example negative=LABEL_0)"
            )
        mapping[name] = output
    names = _models(list(model))
    if len(names) > 1 and resume:
        raise InputError("--resume works with one model: name one, or leave out --resume")
    words, template = settings.label_words, settings.template
    loaders = {
        name: partial(load, name, trust_remote_code, device, words, template) for name in names
    }
    reading, prompted = _reading(settings)
    start = time.perf_counter()
    check_writable(out)
    result: Diagnosis | Comparison
    with progress_bar(quiet, lines=True) as progress:
        progress("loading the model" if len(names) == 1 else "reading", 0.0)
        loaded = loaders[names[0]]() if len(names) == 1 else None
        loading = time.perf_counter() - start
        progress("reading", 0.0)
        corpus = (read_pairs if settings.pairs else read_corpus)(source, reading)
        if loaded is None:
            result = compare(
                loaders, corpus, settings, mapping=mapping, prompted=prompted, progress=progress
            )
            judged = result.diagnoses[-1]
        else:
            seconds = {"loading": loading, "reading": time.perf_counter() - start - loading}
            result = judged = diagnose_corpus(
                *loaded,
                corpus,
                settings,
                mapping=mapping,
                prompted=prompted,
                model_name=names[0],
                resume=resume,
                progress=progress,
            )
            result.seconds.update(seconds)
        progress("writing", 0.99)
        paths = save(result, out, start=start)
    if not quiet:
        show(result.report())
        names_of_files = sorted({path.relative_to(out).parts[0] for path in paths})
        print(f"{', '.join(names_of_files)} are in {printable(str(out))}")
    over = judged.exceeded(limits)
    for line in over:
        # a status of 3 is never silent
        say(False, f"{for_display(names[-1], 60)}: {line}" if len(names) > 1 else line)
    return 3 if over else 0


def _reading(settings: DiagnoseSettings) -> tuple[DiagnoseSettings, bool]:
    """How documents are read, and whether the model reads a prompt: of pairs --text names it, and answers are grouped by it."""
    prompt = settings.text
    if settings.pairs is None or prompt is None:
        return settings, False
    if not isinstance(prompt, str) or prompt in settings.columns_of_pairs:
        raise InputError("with --pairs, --text names the column of the prompt; pass it only once")
    return replace(settings, text=None, by=prompt), True


def _models(given: list[str]) -> list[str]:
    """The models named; a folder without a model of its own stands for the checkpoints in it, if there are two or more. All
    checkpoints of one folder, as a shell's `checkpoint-*` names them, are put in the order of their steps."""
    from tokensieve.diagnose.subjects.loading import checkpoints

    paths = [Path(one) for one in given]
    if len(given) > 1:
        saved = checkpoints(paths[0].parent)
        return (
            [str(path) for path in saved]
            if len(saved) == len(given) and set(saved) == set(paths)
            else given
        )
    if (paths[0] / "config.json").exists():
        return given
    saved = checkpoints(paths[0])
    return [str(path) for path in saved] if len(saved) > 1 else given
