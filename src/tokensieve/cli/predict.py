"""Classify new documents: one CSV line each, and a score if labels are present."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensieve.cli.command import command, quiet_option, say
from tokensieve.cli.options import Files
from tokensieve.cli.pairs import Answering, predict_pairs
from tokensieve.errors import InputError
from tokensieve.escape import printable
from tokensieve.options import option
from tokensieve.text.settings import groups_from


@command(
    model="Folder written by `train` or `audit`.",
    source="A file (.csv .tsv .jsonl .parquet, also .gz), a folder, or - for standard input.",
)
def predict(
    model: Path,
    source: str,
    files: Files,
    text: list[str] | None = option(None, "Column of the text (repeatable).", metavar="COLUMN", parse=list),
    pairs: str | None = option(None, "Columns of two answers, for a model of pairs.", metavar="FIRST,SECOND"),
    label: str | None = option(
        None, "Column of the true labels, to score.", metavar="COLUMN", default_text="that of training"
    ),
    keep: list[str] | None = option(
        None, "Column to copy to the output (repeatable).", metavar="COLUMN", default_text="id, if present", parse=list
    ),
    out: Path | None = option(None, "Folder for the results.", metavar="FOLDER", default_text="standard output"),
    quiet: bool = quiet_option(),
) -> None:
    """Classify one source."""
    from tokensieve.auditing.score import score
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.storage import read_model
    from tokensieve.report.terminal_predict import show_score
    from tokensieve.text.texts import read_rows

    if out:
        check_writable(out)
    classifier = read_model(model)
    if classifier.pairs and not text:
        job = Answering(model, pairs, keep, out, quiet)
        with _table(source, files, [*job.columns(), *(keep or [])]) as table:
            predict_pairs(classifier, table, job, _kept(table.columns, keep, None))
        return
    if pairs:
        raise InputError(
            "--pairs is for a model of pairs: this one answers single texts, so that --text names their column"
        )
    trained = _Training.of(model, classifier)
    with _table(source, files, [*(text or trained.text), *(keep or []), label or ""]) as table:
        there = set(table.columns)
        likely = trained.text if set(trained.text) <= there else None
        labelled = label or (trained.label if trained.label in there and trained.label not in (text or []) else None)
        kept = _kept(table.columns, keep, labelled)
        rows, _ = read_rows(table, text or likely, labelled, kept)
        name = table.name
    matrix, unknown = classifier.count(rows["text"].fill_null(""))
    f = classifier.decide(matrix)
    found = None if labelled is None else score(f, trained.named(rows["label"]), list(map(str, classifier.classes)))
    if label and found is None:
        raise InputError(f"{name}: column {label!r} holds no label that the model knows: choose another with --label")
    frame = _answers(rows, kept, classifier, matrix, unknown, f, found is not None)
    answers = csv_table(frame)
    if out:
        summary = {
            "documents": len(frame),
            "missing_texts": rows["text"].null_count(),
            "score": found and found.to_dict(),
        }
        written: dict[str, Any] = {
            "predictions.csv": answers,
            "summary.json": json.dumps(summary, ensure_ascii=False, indent=1),
        }
        write_all(out, written)
        say(quiet, f"{len(frame):,} predictions in {out / 'predictions.csv'}")
    else:
        sys.stdout.buffer.write(printable(answers.decode()).encode())
    if found and not quiet:
        show_score(found, brief=out is None)


@dataclass(frozen=True)
class _Training:
    """What the model's folder remembers of the documents that it was trained on.

    Attributes:
        text, label: columns.
        final: label as it stands in the source → label after --group and --drop.
    """

    text: list[str]
    label: str | None
    final: dict[str, str | None]

    @classmethod
    def of(cls, folder: Path, model: Any) -> _Training:
        """From summary.json, as far as it is there and whole: without it columns are guessed."""
        from tokensieve.files import parsed, read_regular
        from tokensieve.text.labels import destinations

        fields = list(getattr(model.vocabulary and model.vocabulary.tokenizer, "fields", ()))
        try:
            settings = parsed(read_regular(folder / "summary.json"))["settings"]
            text, label = map(str, settings["columns"][:2])
            dropped = [name for item in settings.get("drop") or [] for name in item.split(",")]
            final = destinations(groups_from(settings.get("group") or []), dropped)
        except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return cls(fields, None, {})
        return cls(fields or [text], label, final)

    def named(self, labels: Any) -> Any:
        """Labels of a source as the model knows them; one that training dropped stays as it is, and the model does not know it."""
        import polars as pl

        return pl.Series([x if x is None else self.final.get(x) or x for x in labels], dtype=pl.String)


@contextmanager
def _table(source: str, files: Files, columns: Sequence[str]) -> Iterator[Any]:
    from tokensieve.text.columns import TEXT_NAMES
    from tokensieve.text.settings import SourceSettings
    from tokensieve.text.sources import open_source

    how = SourceSettings(**files.form())
    yield open_source(source, how, labelled=False, columns=[*columns, *TEXT_NAMES]).held_out


def _kept(columns: Sequence[str], keep: list[str] | None, label: str | None) -> list[str]:
    """The columns to carry along; those of an identifier where none is named."""
    from tokensieve.text.texts import IDS

    wanted = [name for name in columns if name.lower() in IDS] if keep is None else keep
    return [name for name in dict.fromkeys(wanted) if name != label]


def _answers(rows: Any, kept: Sequence[str], model: Any, matrix: Any, unknown: Any, f: Any, labelled: bool) -> Any:
    """A row per document: row, columns carried along, label, class, probability, answer, unknown_words, P(…) of each class."""
    import polars as pl

    from tokensieve.model.decision import probabilities

    frame, p = model.answer(matrix, unknown), probabilities(f)
    beside = {"row": rows["row"]} | {name: rows["kept"].struct.field(name) for name in kept}
    own = {name: frame[name] for name in frame.columns}
    own |= {f"P({name})": pl.Series(p[:, k]) for k, name in enumerate(map(str, model.classes))}
    if labelled:
        own = {"label": rows["label"]} | own
    taken = [name for name in kept if name in own or name == "row"]
    if taken:
        raise InputError(f"--keep {taken[0]!r}: the results have a column of that name: rename it in the source")
    return pl.DataFrame(beside | own)
