"""Classify new documents: write a CSV line for each, and a score if labels are present."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import IGNORED, QUIET, command, pair_columns, say
from tokensieve.errors import InputError
from tokensieve.escape import IN_SENTENCE, for_display, printable
from tokensieve.options import option
from tokensieve.read.settings import SourceSettings
from tokensieve.wording import percent, plural, verb

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.arrays import Floats
    from tokensieve.evidence.intervals import Share
    from tokensieve.model.attention import Model
    from tokensieve.read.fields import ColumnKind
    from tokensieve.read.table import SourceTable
    from tokensieve.task.score import Score

ID_NAMES = ("id", "_id", "uid", "uuid")  # columns copied to the output unasked
# for words that the model does not know; enough to see what texts these are
MAX_ROWS_CHECKED = 1000


@command(
    without=IGNORED,
    model="Folder written by `train` or `audit`.",
    source="A file, a folder, a URL, or - for standard input.",
)
def _predict(
    model: Path,
    source: str,
    reading: SourceSettings,
    pairs: str | None = option(
        None, "Columns of two answers, for a preference model.", metavar="FIRST,SECOND"
    ),
    label: str | None = option(
        None,
        "Column of the true labels, to score.",
        metavar="COLUMN",
        default_text="same as in training",
    ),
    keep: list[str] | None = option(
        None,
        "Column to copy to the output (repeatable).",
        metavar="COLUMN",
        default_text="id, if present",
        parse=list,
    ),
    out: Path | None = option(
        None, "Folder for the results.", metavar="FOLDER", default_text="standard output"
    ),
    quiet: bool = QUIET,
) -> None:
    """Classify one source, or say which of two answers is preferred."""
    from tokensieve.files import check_writable
    from tokensieve.model.storage import read_model
    from tokensieve.read.columns import TEXT_NAMES
    from tokensieve.read.sources import open_source
    from tokensieve.report.terminal import show_score

    if out:
        check_writable(out)
    classifier = read_model(model)
    text = [reading.text] if isinstance(reading.text, str) else list(reading.text or [])
    answers = _columns_of_answers(pairs, model, classifier, text)
    training = _read_training(model, classifier)
    likely = [*(answers or text or training.fields), *(keep or []), label or "", *TEXT_NAMES]
    table = open_source(source, reading, labelled=False, columns=likely).held_out
    if answers is not None:
        results = _predict_pairs(classifier, table, answers, _kept_columns(table, keep))
    else:
        documents = _Documents.read(classifier, training, table, text, label, keep)
        if classifier.predicts_scores:
            results = _predict_scores(classifier, table, documents)
        else:
            results = _predict_classes(classifier, training, table, documents)
    _write(results, out, quiet)
    if results.score and not quiet:
        show_score(results.score, brief=out is None)
    for note in [*results.notes, *_unknown_words_note(classifier, results)]:
        say(quiet, note)


def _columns_of_answers(
    pairs: str | None, folder: Path, model: Model, text: list[str]
) -> tuple[str, str] | None:
    """The columns of two answers, for a preference model; None if it is to judge single texts.

    Raises:
        InputError: `--pairs` is given for another model, or beside `--text`.
    """
    if model.pairs and not text:
        return pair_columns(pairs, folder)
    if pairs:
        raise InputError(
            "--pairs is for preference models; for this one name the text column with --text"
        )
    return None


def _write(results: _Results, out: Path | None, quiet: bool) -> None:
    """Write the predictions to a folder, or to standard output if there is none."""
    content = _predictions_csv(results)
    if out is None:
        sys.stdout.buffer.write(printable(content.decode()).encode())
        return
    _write_results(out, content, results.summary)
    say(quiet, f"{plural(len(results.frame), 'prediction')} in {out / 'predictions.csv'}")


@dataclass(frozen=True)
class _Training:
    """What the model's folder says about its training data.

    Attributes:
        fields: the text columns.
        label: the label column; "" if unknown.
        final_labels: label in the source → label in training (`--group`, `--drop`).
    """

    fields: list[str]
    label: str
    final_labels: dict[str, str | None]


@dataclass(frozen=True)
class _Results:
    """The predictions for one source.

    Attributes:
        frame: a row per document or pair, as predictions.csv lists them.
        rows: "row" and the columns carried along, "kept", in the same order.
        texts: the texts predicted; two columns of them for pairs.
        summary: the content of summary.json.
        notes: what the user should know.
        score: of documents with labels.
    """

    frame: pl.DataFrame
    rows: pl.DataFrame
    texts: list[pl.Series]
    summary: dict[str, object]
    notes: list[str]
    score: Score | None = None


def _read_training(folder: Path, model: Model) -> _Training:
    """Read the columns and labels of training from the model and, as far as possible,
    summary.json."""
    from tokensieve.files import parsed, read_regular

    fields = list(getattr(model.vocabulary and model.vocabulary.tokenizer, "fields", ()))
    try:
        settings = parsed(read_regular(folder / "summary.json"))["settings"]
        text, label = map(str, settings["columns"][:2])
        dropped = [name for item in settings.get("drop") or [] for name in item.split(",")]
        final = SourceSettings(group=settings.get("group") or None, drop=dropped).destinations()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return _Training(fields, "", {})
    return _Training(fields or [text], label, final)


def _kept_columns(
    table: SourceTable, keep: list[str] | None, label: str | None = None
) -> list[str]:
    """The columns to copy to the output: those asked for, or those that look like an identifier."""
    if keep is None:
        keep = [name for name in table.columns if name.lower() in ID_NAMES]
    return [name for name in dict.fromkeys(keep) if name != label]


def _predict_pairs(
    model: Model, table: SourceTable, answers: tuple[str, str], kept: list[str]
) -> _Results:
    """Predict which of two answers is preferred."""
    from tokensieve.read.rows import read_rows

    first = read_rows(table, answers[0])
    second = read_rows(table, answers[1], keep=kept)
    texts = [first["text"].fill_null(""), second["text"].fill_null("")]
    frame = model.pair_predictions(texts[0], texts[1], answers)
    preference = _Preference.of(frame)
    summary = {"pairs": len(frame), "columns": list(answers), "score": preference.to_dict()}
    carried = _carried(second, kept, frame)
    return _Results(frame, carried, texts, summary, preference.notes(answers[0]))


@dataclass(frozen=True)
class _Preference:
    """How often the first answer is the preferred one.

    Attributes:
        first_preferred: among pairs with two answers; half of a tie counts.
        n_pairs: with two answers.
        n_incomplete: pairs without a prediction, since an answer is missing.
        log_loss: if the first answer is the preferred one in truth; None without pairs.
    """

    first_preferred: Share
    n_pairs: int
    n_incomplete: int
    log_loss: float | None

    @classmethod
    def of(cls, frame: pl.DataFrame) -> _Preference:
        """Summarise what `Model.pair_predictions` returned."""
        import numpy as np

        from tokensieve.evidence.intervals import Share

        logit = frame.drop_nulls("answer")["answer"].to_numpy()
        n_pairs = len(logit)
        wins = (logit > 0) + 0.5 * (logit == 0)  # a tie is half a win
        loss = float(np.mean(np.logaddexp(0.0, -logit))) if n_pairs else None
        return cls(Share.over(wins, np.arange(n_pairs)), n_pairs, len(frame) - n_pairs, loss)

    def to_dict(self) -> dict[str, object]:
        """The score in summary.json."""
        return {
            "first_preferred": self.first_preferred.to_dict(),
            "log_loss": self.log_loss,
            "without_two_answers": self.n_incomplete,
        }

    def notes(self, first_column: str) -> list[str]:
        """The score in words."""
        notes = []
        if self.n_incomplete:
            pairs = plural(self.n_incomplete, "pair")
            notes.append(f"no prediction for {pairs} with a missing answer")
        if self.log_loss is not None:
            share = self.first_preferred
            rate = f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
            column = for_display(first_column, IN_SENTENCE)
            pairs = plural(self.n_pairs, "pair")
            notes.append(
                f"{column} is predicted to win {rate} of {pairs}; log loss {self.log_loss:.4f}. "
                "If that column contains the preferred answers, the percentage is the accuracy"
            )
        return notes


@dataclass(frozen=True)
class _Documents:
    """Texts to predict.

    Attributes:
        rows: text, label, row and "kept" of each document.
        texts: "" where one is missing.
        label_column: where the true labels are, if anywhere.
        is_label_named: whether the user named it.
        copied: columns to copy to the output.
    """

    rows: pl.DataFrame
    texts: pl.Series
    label_column: str | None
    is_label_named: bool
    copied: list[str]

    @classmethod
    def read(
        cls,
        model: Model,
        training: _Training,
        table: SourceTable,
        text: list[str],
        label: str | None,
        keep: list[str] | None,
    ) -> _Documents:
        """Read the columns that the model reads, and those that were asked for."""
        from tokensieve.read.rows import read_rows

        token_columns = _token_columns(model)
        text = _checked_text_columns(table, training.fields, token_columns, text)
        label_column = label
        if label is None and training.label in table.columns and training.label not in text:
            label_column = training.label
        copied = _kept_columns(table, keep, label_column)
        rows = read_rows(table, text or None, label_column, copied, token_columns)
        return cls(rows, rows["text"].fill_null(""), label_column, label is not None, copied)


def _predict_classes(
    model: Model, training: _Training, table: SourceTable, documents: _Documents
) -> _Results:
    """Predict the class of every document, and score the predictions where labels are known."""
    label_column = documents.label_column
    rows = documents.rows
    matrix, unknown = model.count(documents.texts)
    frame = model.predictions(matrix, unknown)
    f = model.logits(matrix)
    score = None
    notes = []
    if label_column is not None:
        score = _score(model, f, rows["label"], training.final_labels)
        if score is None:
            notes.append(_no_score(table, label_column, model, is_chosen=documents.is_label_named))
        else:
            frame = frame.insert_column(0, rows["label"].alias("label"))
    frame = _with_probabilities(frame, f, model)
    return _Results(
        frame=frame,
        rows=_carried(rows, documents.copied, frame),
        texts=[documents.texts],
        summary={
            "documents": len(frame),
            "missing_texts": rows["text"].null_count(),
            "score": score and score.to_dict(),
        },
        notes=notes,
        score=score,
    )


def _predict_scores(model: Model, table: SourceTable, documents: _Documents) -> _Results:
    """Predict the score of every document, and compare it with the true one where that is known."""
    import polars as pl

    matrix, unknown = model.count(documents.texts)
    predicted = pl.Series("score", model.logits(matrix)[:, 0])
    frame = pl.DataFrame({"score": predicted, "unknown_words": unknown})
    measured: dict[str, object] | None = None
    notes: list[str] = []
    if documents.label_column is not None:
        number = pl.col("label").cast(pl.Float64, strict=False)
        true = documents.rows.select(label=pl.when(number.is_finite()).then(number)).to_series()
        if true.null_count() < len(true):
            frame = frame.insert_column(0, true)
            measured = _measured(predicted, true, notes)
        else:
            notes.append(_no_numbers(table, documents))
    return _Results(
        frame=frame,
        rows=_carried(documents.rows, documents.copied, frame),
        texts=[documents.texts],
        summary={
            "documents": len(frame),
            "missing_texts": documents.rows["text"].null_count(),
            "score": measured,
        },
        notes=notes,
    )


def _no_numbers(table: SourceTable, documents: _Documents) -> str:
    """Say that a column holds no scores: an error if the user chose it."""
    problem = f"{table.name}: column {documents.label_column!r} has no numbers"
    if documents.is_label_named:
        raise InputError(f"{problem}; choose another with --label")
    return f"{problem}, so the predictions are not compared"


def _measured(predicted: pl.Series, true: pl.Series, notes: list[str]) -> dict[str, object]:
    """Measure predicted scores where true ones are known, for summary.json; add a note with the
    error."""
    from tokensieve.task.score_measures import ScoreMeasures

    has_score = true.is_not_null()
    measures = ScoreMeasures.of(
        predicted.filter(has_score).to_numpy(), true.drop_nulls().to_numpy(), seed=0
    )
    notes.append(
        f"mean absolute error {measures.mae.value:.3g} (95% CI {measures.mae.low:.3g} to "
        f"{measures.mae.high:.3g}), R² {measures.r2.value:.3f}, Spearman's ρ "
        f"{measures.spearman.value:.3f} on {plural(measures.n_documents, 'document')} with a score"
    )
    return {"documents": measures.n_documents} | measures.to_dict()


def _token_columns(model: Model) -> dict[str, ColumnKind]:
    """The columns whose values the model reads as tokens, and how."""
    return dict(getattr(model.vocabulary and model.vocabulary.tokenizer, "columns", ()))


def _checked_text_columns(
    table: SourceTable,
    fields: list[str],
    token_columns: Mapping[str, ColumnKind],
    given: list[str],
) -> list[str]:
    """The text columns to read: those given, or those of training that the table has.

    Raises:
        InputError: the model reads several texts, and not all of them are among the columns.
    """
    from tokensieve.read.values import listed

    expected = [name for name in fields if name not in token_columns]
    text = given or [name for name in expected if table.top_level_column(name) in table.columns]
    missing = [name for name in expected if name not in text]
    if len(expected) > 1 and missing:
        problem = f"{listed(missing)} {verb(len(missing), 'are', 'is')} missing, or not in --text"
        reads = f"the model reads the columns {listed(expected)}, by these names"
        raise InputError(f"{table.name}: {problem}; {reads}")
    return text


def _score(
    model: Model, f: Floats, labels: pl.Series, final_labels: dict[str, str | None]
) -> Score | None:
    """Compare logits with labels, which are named as in training; None if none is known."""
    import polars as pl

    from tokensieve.task.score import Score

    named = [label if label is None else final_labels.get(label) or label for label in labels]
    return Score.of(f, pl.Series(named, dtype=pl.String), list(map(str, model.classes)))


def _no_score(table: SourceTable, column: str, model: Model, is_chosen: bool) -> str:
    """Say that none of a column's labels is one of the model's: an error if the user chose it."""
    from tokensieve.read.values import listed

    classes = listed(map(str, model.classes))
    problem = f"{table.name}: column {column!r} has none of the model's labels ({classes})"
    if is_chosen:
        raise InputError(f"{problem}; choose another with --label")
    return f"{problem}, so the predictions have no score"


def _with_probabilities(frame: pl.DataFrame, f: Floats, model: Model) -> pl.DataFrame:
    """Add a column P(…) for each class."""
    import polars as pl

    from tokensieve.model.attention import probabilities

    p = probabilities(f)
    columns = [pl.Series(f"P({name})", p[:, k]) for k, name in enumerate(model.classes)]
    return frame.with_columns(columns)


def _carried(rows: pl.DataFrame, kept: list[str], frame: pl.DataFrame) -> pl.DataFrame:
    """The row numbers, and the columns that are copied to the output.

    Raises:
        InputError: the predictions, or the row numbers, have a column of the same name.
    """
    import polars as pl

    for name in kept:
        if name == "row" or name in frame.columns:
            raise InputError(
                f"--keep {name!r}: the results have a column of this name; rename it in the source"
            )
    return rows.select("row", *(pl.col("kept").struct.field(name) for name in kept))


def _predictions_csv(results: _Results) -> bytes:
    """The content of predictions.csv."""
    import polars as pl

    from tokensieve.files import csv_table

    return csv_table(pl.concat([results.rows, results.frame], how="horizontal"))


def _write_results(folder: Path, predictions: bytes, summary: dict[str, object]) -> None:
    from tokensieve.files import json_text, write_all

    text = json_text(summary)
    write_all(folder, {"predictions.csv": predictions, "summary.json": text})


def _unknown_words_note(model: Model, results: _Results) -> list[str]:
    """Warn, in one line, if the model does not know most words of the (first) texts."""
    assert model.vocabulary is not None
    tokenizer = model.vocabulary.tokenizer
    n_words = 0
    for texts in results.texts:
        n_words += int(tokenizer.split(texts.head(MAX_ROWS_CHECKED)).list.len().sum())
    n_unknown = int(results.frame["unknown_words"].head(MAX_ROWS_CHECKED).sum())
    if 2 * n_unknown <= n_words:
        return []
    rows = " of these texts"
    if len(results.frame) > MAX_ROWS_CHECKED:
        rows = f" of the first {MAX_ROWS_CHECKED:,} rows"
    return [
        f"most words{rows} are unknown to the model ({n_unknown:,} of {n_words:,}), so its "
        "predictions mean little; check that the texts are like those it was trained on"
    ]
