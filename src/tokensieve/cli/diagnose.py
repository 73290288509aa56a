"""diagnose: a trained transformer against the tokens that carry the label."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.options import (
    Documents,
    QuietOption,
    SeedOption,
    command,
    out_option,
    progress,
)
from tokensieve.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Options of the model."""

    device: Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, mps.")] = "cpu"
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run Python code that the model brings along.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """Options of the measurement, with the names of `DiagnoseSettings`."""

    min_documents: Annotated[
        int, typer.Option("--min-documents", help="A word must occur in so many of the documents read.", min=1)
    ] = 10
    max_documents: Annotated[
        int, typer.Option("--max-documents", help="The model reads at most so many, drawn at random.", min=8)
    ] = 1000
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", help="Word pieces of one input.", min=3, show_default="what the model allows"),
    ] = None
    long: Annotated[str, typer.Option("--long", help="Longer documents: truncate, or windows.")] = "truncate"
    batch_size: Annotated[int, typer.Option("--batch-size", help="Inputs of one batch.", min=1)] = 16
    deletions: Annotated[
        int, typer.Option("--deletions", help="Delete each word from at most so many documents.", min=1)
    ] = 4
    untrained: Annotated[
        bool, typer.Option("--untrained/--no-untrained", help="Measure an untrained model of the same shape too.")
    ] = True
    seed: SeedOption = 0


@command
def diagnose(
    model: Annotated[str, typer.Argument(help="Folder of a transformers classifier, or its name on the hub.")],
    documents: Documents,
    loading: Loading,
    measuring: Measuring,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", help="Which output of the model is a class (repeatable).", metavar="CLASS=OUTPUT"),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep unfinished work here, and go on from it.", metavar="FILE")
    ] = None,
    out: Annotated[Path, out_option("tokensieve-diagnose")] = Path("tokensieve-diagnose"),
    quiet: QuietOption = False,
) -> None:
    """A trained transformer: does it attend to and use the words that carry the label, and what else does it lean on?

    Give documents that the model was not trained on; of a source with a test part that part is used.
    """
    from tokensieve.diagnose.diagnosing import DiagnoseSettings

    if resume and (resume.is_dir() or not resume.parent.is_dir()):
        raise InputError(f"cannot keep unfinished work in {str(resume)!r}: name a file in a folder that exists")
    mapping: dict[str, str] = {}
    for item in map_ or []:
        name, equals, output = item.rpartition("=")
        if not (name and equals and output):
            raise InputError(f"--map {item!r} is not of the form CLASS=OUTPUT (for example negative=LABEL_0)")
        mapping[name] = output
    options = {"mapping": mapping, "resume": resume, "model_name": model}
    wanted = model, loading.trust_remote_code, loading.device
    _diagnose(documents.reader(duplicates="keep"), wanted, DiagnoseSettings(**asdict(measuring)), options, out, quiet)


def _diagnose(
    read: Callable[[], Any],
    model: tuple[str, bool, str],
    settings: Any,
    options: dict[str, Any],
    out: Path,
    quiet: bool,
) -> None:
    """Load, diagnose, write everything or nothing, and show the result."""
    from tokensieve.diagnose.diagnosing import diagnose_corpus
    from tokensieve.diagnose.loading import load
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.diagnose import FILES, diagnose_pictures, render_diagnosis
    from tokensieve.report.terminal_diagnose import show_diagnosis

    start = time.perf_counter()
    check_writable(out)
    with progress(quiet) as tell:
        tell("loading the model", 0.0)
        loaded = load(*model)
        tell("reading", 0.0)
        seconds = {"loading": time.perf_counter() - start}
        corpus = read()
        seconds["reading"] = time.perf_counter() - start - seconds["loading"]
        found = diagnose_corpus(*loaded, corpus, settings, progress=tell, seconds=seconds, **options)
        tell("writing", 0.0)
        lap = time.perf_counter()
        files: dict[str, Any] = {"tokens.csv": csv_table(found.tokens), "leaning.csv": csv_table(found.leaning)}
        files["report.html"] = render_diagnosis(found)
        files |= {f"pictures/{file}": picture for file, picture in diagnose_pictures(found).items()}
        found.seconds["report"] = time.perf_counter() - lap
        found.seconds["total"] = time.perf_counter() - start
        files["summary.json"] = json.dumps(found.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        write_all(out, files, ours=rf"pictures/({'|'.join(FILES)})\.(svg|png)")
    if not quiet:
        show_diagnosis(found, out)
