"""Classify new documents: write a CSV line for each, and a score if labels are present."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import IGNORED, QUIET, command, pair_columns, say
from tokensieve.errors import InputError
from tokensieve.escape import for_display, printable
from tokensieve.options import option
from tokensieve.read.settings import SourceSettings
from tokensieve.wording import percent, plural

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.model.attention import Model
    from tokensieve.task.score import Score


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
    import polars as pl

    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.storage import read_model
    from tokensieve.read.columns import TEXT_NAMES
    from tokensieve.read.rows import read_rows
    from tokensieve.read.sources import open_source
    from tokensieve.read.values import listed
    from tokensieve.report.terminal import show_score

    if out:
        check_writable(out)
    classifier = read_model(model)
    text = [reading.text] if isinstance(reading.text, str) else list(reading.text or [])
    sides = pair_columns(pairs, model) if classifier.pairs and not text else None
    if pairs and not sides:
        raise InputError(
            "--pairs is for preference models; for this one name the text column with --text"
        )
    fields, known, final = _training(model, classifier)
    likely = [*(sides or text or fields), *(keep or []), label or "", *TEXT_NAMES]
    table = open_source(source, reading, labelled=False, columns=likely).held_out
    others = dict(getattr(classifier.vocabulary and classifier.vocabulary.tokenizer, "columns", ()))
    own = [name for name in fields if name not in others]
    text = text or [name for name in own if table.top_level_column(name) in table.columns]
    if len(own) > 1 and (lacking := [name for name in own if name not in text]):
        said = f"{listed(lacking)} {'are' if lacking[1:] else 'is'} missing, or not in --text"
        raise InputError(
            f"{table.name}: {said}; the model reads the columns {listed(own)}, by these names"
        )
    given = label is not None
    if not given and known in table.columns and known not in text:
        label = known
    wanted = (
        [name for name in table.columns if name.lower() in ("id", "_id", "uid", "uuid")]
        if keep is None
        else keep
    )
    kept = [name for name in dict.fromkeys(wanted) if sides or name != label]
    found, lines = None, list[str]()
    if sides:
        first, rows = read_rows(table, sides[0]), read_rows(table, sides[1], keep=kept)
        texts = [first["text"].fill_null(""), rows["text"].fill_null("")]
        frame = classifier.pair_predictions(texts[0], texts[1], sides)
        lines, score = _preferred(frame, sides)
        summary: dict[str, object] = {"pairs": len(frame), "columns": list(sides), "score": score}
    else:
        rows = read_rows(table, text or None, label, kept, others)
        texts = [rows["text"].fill_null("")]
        frame, found = _classified(classifier, rows, final if label is not None else None)
        if label is not None and found is None:
            said = f"{table.name}: column {label!r} has none of the model's labels ({listed(map(str, classifier.classes))})"
            if given:
                raise InputError(f"{said}; choose another with --label")
            lines = [f"{said}, so the predictions have no score"]
        summary = {"documents": len(frame), "missing_texts": rows["text"].null_count()}
        summary["score"] = found and found.to_dict()
    for name in kept:
        if name == "row" or name in frame.columns:
            raise InputError(
                f"--keep {name!r}: the results have a column of this name; rename it in the source"
            )
    copied = rows.select("row", *(pl.col("kept").struct.field(name) for name in kept))
    content = csv_table(pl.concat([copied, frame], how="horizontal"))
    if out is None:
        sys.stdout.buffer.write(printable(content.decode()).encode())
    else:
        write_all(
            out,
            {
                "predictions.csv": content,
                "summary.json": json.dumps(summary, ensure_ascii=False, indent=1),
            },
        )
        say(quiet, f"{plural(len(frame), 'prediction')} in {out / 'predictions.csv'}")
    if found and not quiet:
        show_score(found, brief=out is None)
    for line in [*lines, *_unknown(classifier, frame, texts)]:
        say(quiet, line)


def _unknown(
    model: Model, frame: pl.DataFrame, texts: list[pl.Series], most: int = 1000
) -> list[str]:
    """A line that says so if the model does not know most words of the (first) texts."""
    assert model.vocabulary is not None
    words = sum(
        int(model.vocabulary.tokenizer.split(side.head(most)).list.len().sum()) for side in texts
    )
    unknown = int(frame["unknown_words"].head(most).sum())
    rows = f" of the first {most:,} rows" if len(frame) > most else " of these texts"
    said = f"most words{rows} are unknown to the model ({unknown:,} of {words:,}), so its predictions mean little; check that "
    return [f"{said}the texts are like those it was trained on"] * (2 * unknown > words)


def _preferred(
    frame: pl.DataFrame, columns: tuple[str, str]
) -> tuple[list[str], dict[str, object]]:
    """How often the first answer is the preferred one (`Model.pair_predictions`), in words and as JSON values."""
    import numpy as np

    from tokensieve.evidence.intervals import Share

    known = frame.drop_nulls("answer")["answer"].to_numpy()
    share = Share.over((known > 0) + 0.5 * (known == 0), np.arange(len(known)))
    loss = float(np.mean(np.logaddexp(0.0, -known))) if len(known) else None
    left = len(frame) - len(known)
    lines = [f"no prediction for {plural(left, 'pair')} with a missing answer"] if left else []
    if loss is not None:
        rate = f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
        lines.append(
            f"{for_display(columns[0], 40)} is predicted to win {rate} of {plural(len(known), 'pair')}; "
            f"log loss {loss:.4f}. If that column contains the preferred answers, the percentage is the accuracy"
        )
    return lines, {
        "first_preferred": share.to_dict(),
        "log_loss": loss,
        "without_two_answers": left,
    }


def _classified(
    model: Model, rows: pl.DataFrame, final: dict[str, str | None] | None
) -> tuple[pl.DataFrame, Score | None]:
    """Predictions with the columns label (if scored), class, probability, answer, unknown_words and P(…) of each class, and the
    score. `final`: label in the source → label in training; None without labels."""
    import polars as pl

    from tokensieve.model.attention import probabilities
    from tokensieve.task import score

    names = list(map(str, model.classes))
    matrix, unknown = model.count(rows["text"].fill_null(""))
    f, found = model.logits(matrix), None
    frame = model.predictions(matrix, unknown)
    if final is not None:
        labels = [name if name is None else final.get(name) or name for name in rows["label"]]
        found = score.Score.of(f, pl.Series(labels, dtype=pl.String), names)
    if found is not None:
        frame = frame.insert_column(0, rows["label"].alias("label"))
    p = probabilities(f)
    return frame.with_columns(
        pl.Series(f"P({name})", p[:, k]) for k, name in enumerate(names)
    ), found


def _training(folder: Path, model: Model) -> tuple[list[str], str, dict[str, str | None]]:
    """Text columns, label column, and label in the source → label in training, as far as the model's folder says."""
    from tokensieve.files import parsed, read_regular

    fields = list(getattr(model.vocabulary and model.vocabulary.tokenizer, "fields", ()))
    try:
        settings = parsed(read_regular(folder / "summary.json"))["settings"]
        text, label = map(str, settings["columns"][:2])
        dropped = [name for item in settings.get("drop") or [] for name in item.split(",")]
        final = SourceSettings(group=settings.get("group") or None, drop=dropped).destinations()
        return fields or [text], label, final
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return fields, "", {}
