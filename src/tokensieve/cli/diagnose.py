"""See what a transformer relies on, and whether the data supports it.

Use documents that the model was not trained on. If SOURCE has a test part, that part is used. For a model that reads two texts
together give --text twice. Fewer documents (--max-documents, --seconds) hide what only the others contain; a larger --min-documents
hides rarer words, unless they stand out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tokensieve.cli.command import command, out_option, progress, quiet_option, say
from tokensieve.cli.options import SOURCE
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.errors import InputError
from tokensieve.escape import printable, shown
from tokensieve.options import option


@command(
    model="Folder of a transformers classifier (safetensors, PEFT adapter or ONNX), or its name on the hub. Several models, or a "
    "folder of checkpoints, are compared.",
    source=SOURCE,
)
def diagnose(
    model: tuple[str, ...],
    source: str,
    settings: DiagnoseSettings,
    map_: list[str] | None = option(
        None, "Which output of the model is a class (repeatable).", flag="--map", metavar="CLASS=OUTPUT", parse=list
    ),
    device: str = option("cpu", "cpu, cuda, cuda:1 or mps.", metavar="DEVICE"),
    trust_remote_code: bool = option(False, "Run Python code that comes with the model."),
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
    from tokensieve.diagnose.diagnosis import exceeded, limits_from
    from tokensieve.diagnose.subjects.loading import load

    if resume and (resume.is_dir() or not resume.parent.is_dir()):
        raise InputError(f"cannot keep unfinished work in {str(resume)!r}: name a file in a folder that exists")
    mapping: dict[str, str] = {}
    for item in map_ or []:
        name, equals, output = item.rpartition("=")
        if not (name and equals and output):
            raise InputError(f"--map {item!r} is not of the form CLASS=OUTPUT (for example negative=LABEL_0)")
        mapping[name] = output
    limits = limits_from(fail_on or [])
    read, prompted = _reader(source, settings)
    names = _models(list(model))
    if len(names) > 1 and resume:
        raise InputError("--resume keeps the work of one model: name one, or leave it out")
    opening = partial(
        load,
        trust_remote_code=trust_remote_code,
        device=device,
        label_words=settings.label_words,
        template=settings.template,
    )
    loaders = {name: partial(opening, name) for name in names}
    options = {"mapping": mapping, "prompted": prompted}
    found = _run(read, loaders, settings, options, resume, out, quiet)
    over = exceeded(found, limits)
    for line in over:
        say(quiet, f"{shown(names[-1], 60)}: {line}" if len(names) > 1 else line)
    return 3 if over else 0


def _reader(source: str, settings: DiagnoseSettings) -> tuple[Callable[[], Any], bool]:
    """What reads the documents, and whether the model reads a prompt before each answer of preference pairs."""
    from tokensieve.text.corpus import read_corpus
    from tokensieve.text.pairs import read_pairs

    if settings.pairs is None:
        return partial(read_corpus, source, settings), False
    prompt = settings.text
    if prompt is not None and (not isinstance(prompt, str) or prompt in settings.columns_of_pairs):
        raise InputError(
            "beside --pairs one --text names the column of the prompt, if the model reads it: give it once"
        )
    how = replace(settings, text=None, by=prompt or settings.by)
    return partial(read_pairs, source, how), prompt is not None


def _models(given: list[str]) -> list[str]:
    """The models named; a folder without a model of its own stands for the checkpoints in it, if there are two or more. All
    checkpoints of one folder, as a shell's `checkpoint-*` names them, are put in the order of their steps."""
    from tokensieve.diagnose.subjects.loading import checkpoints

    paths = [Path(one) for one in given]
    if len(given) > 1:
        saved = checkpoints(paths[0].parent)
        return [str(path) for path in saved] if len(saved) == len(given) and set(saved) == set(paths) else given
    if (paths[0] / "config.json").exists():
        return given
    saved = checkpoints(paths[0])
    return [str(path) for path in saved] if len(saved) > 1 else given


def _run(
    read: Callable[[], Any],
    loaders: Mapping[str, Callable[[], tuple[Any, Any]]],
    settings: DiagnoseSettings,
    options: dict[str, Any],
    resume: Path | None,
    out: Path,
    quiet: bool,
) -> Any:
    """Diagnose, write everything or nothing, and show the result; gives the diagnosis of the last model."""
    from tokensieve.diagnose.comparison import compare
    from tokensieve.diagnose.run import diagnose_corpus
    from tokensieve.files import check_writable
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    start = time.perf_counter()
    check_writable(out)
    result: Any
    with progress(quiet, lines=True) as tell:
        if len(loaders) > 1:
            tell("reading", 0.0)
            result = compare(loaders, read(), settings, **options, progress=tell)
        else:
            ((name, load),) = loaders.items()
            tell("loading the model", 0.0)
            loaded = load()
            loading = time.perf_counter() - start
            tell("reading", 0.0)
            corpus = read()
            seconds = {"loading": loading, "reading": time.perf_counter() - start - loading}
            result = diagnose_corpus(
                *loaded, corpus, settings, **options, model_name=name, resume=resume, progress=tell
            )
            result.seconds.update(seconds)
        tell("writing", 0.99)
        paths = save(result, out, start=start)
    if not quiet:
        show(result.report())
        names = sorted({path.relative_to(out).parts[0] for path in paths})
        print(f"in {printable(str(out))}: {', '.join(names)}")
    return result.diagnoses[-1] if len(loaders) > 1 else result
