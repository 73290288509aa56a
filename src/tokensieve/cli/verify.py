"""Check the theory's claims on your data, with certificates.

The claims are about one gradient step, gradient flow, token selection and the max-margin direction.
"""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path

from tokensieve.cli.command import QUIET, command, out_option, progress_bar
from tokensieve.errors import InputError
from tokensieve.escape import printable
from tokensieve.read.settings import ReadSettings, SourceSettings
from tokensieve.theory.settings import VerifySettings


@command(source="As for audit; generated documents by default.")
def _verify(
    settings: VerifySettings,
    source: str | None = None,
    out: Path = out_option("tokensieve-verify"),
    quiet: bool = QUIET,
) -> None:
    """Verify the claims on one source."""
    from tokensieve.files import check_writable
    from tokensieve.read.reader import read_corpus
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save
    from tokensieve.theory.verify import verify

    start = time.perf_counter()
    read = {"ngrams", "min_documents", *(field.name for field in fields(SourceSettings))}
    for field in fields(settings):
        notes = field.metadata.get("option")
        if notes is None or notes["flag"] == "" or getattr(settings, field.name) == field.default:
            continue
        flag = "--" + field.name.replace("_", "-")
        if source is None and field.name in read:
            raise InputError(f"{flag} is for documents from a SOURCE: name one")
        if source is not None and field.name in ("documents", "types", "relevant", "length"):
            raise InputError(
                f"{flag} is for generated documents: leave it out, or leave out the SOURCE "
                f"{source!r}"
            )
    # The claims are about all labelled documents of a source: of reading, only the options of
    # sources apply.
    reading = ReadSettings(
        **{field.name: getattr(settings, field.name) for field in fields(SourceSettings)}
    )
    check_writable(out)
    with progress_bar(quiet) as progress:
        progress("reading", 0.0)
        corpus = None if source is None else read_corpus(source, reading)
        spent = time.perf_counter() - start
        result = verify(corpus, settings, progress=progress)
        result.seconds["reading"] = spent
        progress("writing", 0.0)
        save(result, out, start=start, for_print=True)
    if not quiet:
        show(result.report())
        print(
            "report.html, pictures, tables, certificate and summary.json are in "
            f"{printable(str(out))}"
        )
