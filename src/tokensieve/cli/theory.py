"""verify: the theory's claims on one data set."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve import __version__
from tokensieve.cli.options import (
    Columns,
    Documents,
    QuietOption,
    SeedOption,
    command,
    out_option,
    progress,
)
from tokensieve.errors import InputError, check_memory


def _whole(name: str, explained: str, default: str, most: int | None = None) -> Any:
    """A whole number from one; None where it was not given, so that an option that does not apply is told from a default."""
    return typer.Option(name, help=explained, min=1, max=most, show_default=default)


@dataclass(frozen=True, kw_only=True)
class Reading(Columns):
    """Options of documents that are read."""

    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of text files.", show_default="utf-8")
    ] = None
    ngrams: Annotated[int | None, _whole("--ngrams", "Longest run of words that is one token.", "1", 5)] = None
    min_documents: Annotated[
        int | None, _whole("--min-documents", "A token must occur in at least this many documents.", "20")
    ] = None

    def reader(self, source: str) -> Callable[[], Any]:
        """Check the options now, read the source later."""
        columns = {field.name: getattr(self, field.name) for field in fields(Columns)}
        return Documents(source=source, encoding=self.encoding or "utf-8", **columns).reader(duplicates="keep")


@dataclass(frozen=True, kw_only=True)
class Generated:
    """Options of documents that are generated."""

    documents: Annotated[int | None, _whole("--documents", "Generated documents.", "200")] = None
    types: Annotated[int | None, _whole("--types", "Generated token types |S|.", "70")] = None
    relevant: Annotated[int | None, _whole("--relevant", "Types among them that carry the label.", "20")] = None
    length: Annotated[int | None, _whole("--length", "Tokens T of a generated document.", "8")] = None


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Options of the first step and of the flow."""

    d: Annotated[int | None, _whole("--d", "Dimension of the embeddings.", "512; generated documents: 1024")] = None
    eta: Annotated[
        float | None, typer.Option("--eta", help="Size of the first step.", show_default="from the data")
    ] = None
    max_norm: Annotated[float, typer.Option("--max-norm", help="Follow p up to this norm.")] = 20_000.0
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", help="Time for flow, faces and max margin together.")
    ] = 600.0
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep the flow here, and go on from it.", metavar="FILE")
    ] = None

    def check(self) -> None:
        """Raises InputError for values that cannot be."""
        if self.resume and (self.resume.is_dir() or not self.resume.parent.is_dir()):
            raise InputError(f"cannot keep the flow in {str(self.resume)!r}: name a file in a folder that exists")
        if not (0 < self.max_norm < math.inf and self.max_seconds > 0):
            raise InputError(
                f"--max-norm {self.max_norm:g} and --max-seconds {self.max_seconds:g} must be positive numbers"
            )


@command
def verify(
    reading: Reading,
    generated: Generated,
    budget: Budget,
    source: Annotated[str | None, typer.Argument(help="As for audit; generated documents if none is named.")] = None,
    seed: SeedOption = 0,
    out: Annotated[Path, out_option("tokensieve-verify")] = Path("tokensieve-verify"),
    quiet: QuietOption = False,
) -> None:
    """The theory's claims on this data, with certificates: one step, gradient flow, selection, max margin."""
    from tokensieve.theory.curve import FlowSettings

    for name, value in asdict(reading if source is None else generated).items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise InputError(
                f"{option} is for documents that are read: name a SOURCE" if source is None else
                f"{option} is for generated documents: leave it out, or leave out the SOURCE {source!r}"
            )  # fmt: skip
    budget.check()
    if source is None:
        settings = {
            "documents": generated.documents or 200,
            "types": generated.types or 70,
            "relevant": generated.relevant or 20,
            "length": generated.length or 8,
        }
        tokens = settings["documents"] * settings["length"]
        check_memory(60 * tokens + 200 * settings["types"], f"{tokens:,} tokens of {settings['types']:,} types")
        load: Callable[..., Any] = lambda tell: _generated(seed=seed, **settings)  # noqa: E731
    else:
        settings = {"ngrams": reading.ngrams or 1, "min_documents": reading.min_documents or 20}
        read_source = reading.reader(source)
        load = lambda tell: _counted(read_source, tell, **settings)  # noqa: E731
    d = budget.d or (1024 if source is None else 512)
    options = {"d": d, "eta": budget.eta, "seed": seed, "checkpoint": budget.resume}
    flow = FlowSettings(max_norm=budget.max_norm, max_seconds=budget.max_seconds)
    _verify(load, settings, options, flow, out, quiet)


def _generated(documents: int, types: int, relevant: int, length: int, seed: int) -> tuple[Any, ...]:
    """Name, counts, rows and notes of documents that satisfy Assumption 1 exactly."""
    from tokensieve.theory.generators import single_token

    counts = single_token(documents, types, length, relevant, seed=seed).counts
    return "generated documents that satisfy Assumption 1", counts, range(1, documents + 1), []


def _counted(
    read: Callable[[], Any], tell: Callable[[str, float], None], ngrams: int, min_documents: int
) -> tuple[Any, ...]:
    """Name, counts, rows and notes of the training documents of a source."""
    from tokensieve.text.vocabulary import count_corpus

    corpus = read()
    if len(corpus.classes) != 2:
        raise InputError(
            f"the theory is about two classes, and {corpus.name} has {len(corpus.classes)}: "
            "merge them with --group NEW=OLD,OLD or leave some out with --drop"
        )
    counted = count_corpus(
        corpus, ngrams=ngrams, min_documents=min_documents,
        progress=lambda done: tell("tokenizing", done / len(corpus.texts)),
    )  # fmt: skip
    return corpus.name, counted.counts, corpus.rows, corpus.intake.lines()


def _verify(
    load: Callable[..., Any], settings: dict[str, Any], options: dict[str, Any], budget: Any, out: Path, quiet: bool
) -> None:
    """Load, verify, write everything or nothing, and show the result."""
    import numpy as np

    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.charts import drawn
    from tokensieve.report.terminal_theory import show_study
    from tokensieve.report.theory import PICTURES, draw, render_theory
    from tokensieve.theory.study import Study
    from tokensieve.theory.verify import verify as run

    start = time.perf_counter()
    check_writable(out)
    with progress(quiet) as tell:
        tell("reading", 0.0)
        name, counts, rows, notes = load(tell)
        seconds = {"reading": time.perf_counter() - start}
        check_memory(4 * 8 * counts.n_types * options["d"], f"--d {options['d']:,} with {counts.n_types:,} token types")
        found = run(counts, settings=budget, progress=tell, **options)
        limits = {name: limit for name, limit in asdict(budget).items() if math.isfinite(limit)}
        settings |= {"d": options["d"], "eta": found.step.eta, **limits}
        seconds |= found.seconds
        study = Study(name, counts, np.asarray(rows), found, notes, settings, options["seed"], __version__, seconds)
        tell("writing", 0.0)
        lap = time.perf_counter()
        tables = {
            "tokens.csv": study.tokens(),
            "flow.csv": study.curve(),
            "support.csv": study.support(),
            "gaps.csv": study.gap_curves(),
        }
        files: dict[str, Any] = {file: csv_table(table) for file, table in tables.items()}
        pictures = draw(study)
        files["report.html"] = render_theory(study, pictures)
        files |= {f"pictures/{file}": picture for file, picture in drawn(pictures, for_print=True).items()}
        seconds["report"] = time.perf_counter() - lap
        seconds["total"] = time.perf_counter() - start
        files["summary.json"] = json.dumps(study.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        write_all(out, files, ours=rf"pictures/({'|'.join(PICTURES)})\.(svg|png|pdf|csv)")
    if not quiet:
        show_study(study, out)
