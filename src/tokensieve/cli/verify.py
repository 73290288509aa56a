"""Check the theory's claims on your data, with certificates.

The claims are about one gradient step, gradient flow, token selection and the max-margin direction.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tokensieve import __version__
from tokensieve.cli.command import command, out_option, progress, quiet_option
from tokensieve.cli.options import MOST_SEED, NGRAMS, SEED, Columns, Documents
from tokensieve.errors import InputError, check_memory
from tokensieve.options import option


@dataclass(frozen=True, kw_only=True)
class Reading(Columns):
    """Data."""

    encoding: str | None = option(None, "Encoding of text files.", default_text="utf-8")
    ngrams: int | None = option(None, NGRAMS, low=1, high=5, default_text="1")
    min_documents: int | None = option(None, "Ignore tokens that occur in fewer documents.", low=1, default_text="20")

    def reader(self, source: str) -> Callable[[], Any]:
        """Check the options now, read the source later."""
        columns = {field.name: getattr(self, field.name) for field in fields(Columns)}
        return Documents(source=source, encoding=self.encoding or "utf-8", **columns).reader(duplicates="keep")


@dataclass(frozen=True, kw_only=True)
class Generated:
    """Generated documents, if there is no SOURCE."""

    documents: int | None = option(None, "Number of documents.", low=1, default_text="200")
    types: int | None = option(None, "Number of token types |S|.", low=1, default_text="70")
    relevant: int | None = option(None, "Types among them that predict the label.", low=1, default_text="20")
    length: int | None = option(None, "Tokens per document T.", low=1, default_text="8")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """First step and flow."""

    d: int | None = option(None, "Dimension of the embeddings.", low=1, default_text="512; generated documents 1024")
    eta: float | None = option(None, "Size of the first step.", default_text="from the data")
    max_norm: float = option(20_000.0, "Follow p up to this norm.")
    max_seconds: float = option(600.0, "Time limit for flow and max margin together.")
    resume: Path | None = option(None, "Keep the state of the flow in this file, and continue from it.")

    def check(self) -> None:
        """Raises InputError for values that cannot be."""
        if self.resume and (self.resume.is_dir() or not self.resume.parent.is_dir()):
            raise InputError(f"cannot keep the flow in {str(self.resume)!r}: name a file in a folder that exists")
        if not (0 < self.max_norm < math.inf and self.max_seconds > 0):
            raise InputError(
                f"--max-norm {self.max_norm:g} and --max-seconds {self.max_seconds:g} must be positive numbers"
            )


@command(source="As for audit; generated documents by default.")
def verify(
    reading: Reading,
    generated: Generated,
    budget: Budget,
    source: str | None = None,
    seed: int = option(0, SEED, low=0, high=MOST_SEED),
    out: Path = out_option("tokensieve-verify"),
    quiet: bool = quiet_option(),
) -> None:
    """Verify the claims on one source."""
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
