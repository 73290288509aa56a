"""The documents that an audit would have someone read, for the tools in which people do that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.auditing.any_audit import AnyAudit
from tokensieve.auditing.findings import written_score
from tokensieve.errors import InputError
from tokensieve.files import csv_table, json_text
from tokensieve.text.vocabulary import CountedCorpus

ReviewTool = Literal["cleanlab", "label-studio", "argilla", "doccano"]
LABELS_KIND = "labels"  # the check whose findings the table of label issues lists in full
QUALITY_DIGITS = 4
AGENT = f"tokensieve {__version__}"
_SCHEMA = {
    "part": pl.String,
    "row": pl.Int64,
    "text": pl.String,
    "given_label": pl.String,
    "predicted_label": pl.String,
    "label_quality": pl.Float64,
    "is_label_issue": pl.Boolean,
    "reason": pl.String,
}


def rows_to_review(audit: AnyAudit) -> pl.DataFrame:
    """A table of every document of a finding, and of every document whose label may be wrong, with
    the reason.

    Documents whose label may be wrong come first, the least likely label first; the others follow
    in the order of the findings.

    Returns:
        A row per document: part ("train" or "test"), row (in its source, from 1), text,
        given_label, predicted_label (null unless the label may be wrong; of scores, the score that
        occurs and is nearest to the prediction), label_quality (by models that did not see the
        document, as cleanlab has it: (1 + P(given) − P(predicted)) / 2, the normalized margin, or
        of scores exp(−|given − predicted|); null unless the label may be wrong), is_label_issue,
        and reason.

    Raises:
        InputError: the audit is of preference pairs, which these tools do not label.
    """
    if audit.learned.task.size == 2:
        raise InputError("rows to review are exported of labelled documents, not of pairs")
    has_scores = audit.learned.train.corpus.scores is not None
    issues = _score_issue_rows(audit) if has_scores else _label_issue_rows(audit)
    reasons = pl.concat([issues, _finding_rows(audit)])
    by_document = reasons.group_by("part", "row", maintain_order=True).agg(
        pl.col("given_label").first(),
        pl.col("predicted_label").drop_nulls().first(),
        pl.col("label_quality").drop_nulls().first(),
        pl.col("is_label_issue").any(),
        pl.col("reason").str.join("; "),
    )
    sides = [
        _texts(by_document, "train", audit.learned.train),
        _texts(by_document, "test", audit.learned.test),
    ]
    with_texts = by_document.join(pl.concat(sides), on=["part", "row"], maintain_order="left")
    return with_texts.select(list(_SCHEMA))


def _score_issue_rows(audit: AnyAudit) -> pl.DataFrame:
    """The documents of label-issues.csv, whose labels are scores."""
    issues = audit.label_issues
    scores = audit.learned.train.corpus.scores
    assert scores is not None
    known = np.unique(scores)
    predicted = issues["predicted"].to_numpy()
    nearest = [written_score(known[np.abs(known - value).argmin()]) for value in predicted]
    reason = pl.format(
        "the score may be wrong: models that did not see the document predict {}; against the "
        "score: {}",
        "predicted",
        "against",
    )
    return issues.select(
        part=pl.lit("train"),
        row=pl.col("row"),
        given_label=pl.Series([written_score(score) for score in issues["score"]], dtype=pl.String),
        predicted_label=pl.Series(nearest, dtype=pl.String),
        label_quality=(-pl.col("residual").abs()).exp().round(QUALITY_DIGITS),
        is_label_issue=pl.lit(True),
        reason=reason,
    )


def _label_issue_rows(audit: AnyAudit) -> pl.DataFrame:
    """The documents of label-issues.csv."""
    issues = audit.label_issues
    if issues.is_empty():
        return pl.DataFrame(schema=_SCHEMA).drop("text")
    reason = pl.format(
        "the label may be wrong: models that did not see the document predict {}; against the "
        "label: {}",
        "looks_like",
        "against",
    )
    return issues.select(
        part=pl.lit("train"),
        row=pl.col("row").cast(pl.Int64),
        given_label=pl.col("label"),
        predicted_label=pl.col("looks_like"),
        label_quality=((1 - pl.col("margin")) / 2).round(QUALITY_DIGITS),
        is_label_issue=pl.lit(True),
        reason=reason,
    )


def _finding_rows(audit: AnyAudit) -> pl.DataFrame:
    """The documents of all other findings."""
    tables = [pl.DataFrame(schema=_SCHEMA).drop("text")]
    for finding in audit.findings:
        if finding.kind == LABELS_KIND:
            continue
        rows = finding.rows.select(
            "part",
            "row",
            given_label=pl.col("label"),
            predicted_label=pl.lit(None, pl.String),
            label_quality=pl.lit(None, pl.Float64),
            is_label_issue=pl.lit(False),
            reason=pl.lit(f"{finding.title}: {finding.headline}"),
        )
        tables.append(rows.unique(["part", "row"], maintain_order=True))
    return pl.concat(tables)


def _texts(reviewed: pl.DataFrame, part: str, side: CountedCorpus) -> pl.DataFrame:
    """The text of each reviewed document of one side; of those at hand."""
    rows = reviewed.filter(pl.col("part") == part)["row"]
    place_of = {row: place for place, row in enumerate(side.corpus.rows.tolist())}
    at_hand = [row for row in rows if row in place_of]
    texts = side.corpus.texts
    columns = {
        "part": [part] * len(at_hand),
        "row": at_hand,
        "text": [texts[place_of[row]] for row in at_hand],
    }
    return pl.DataFrame(columns, schema={name: _SCHEMA[name] for name in columns})


def export_rows(audit: AnyAudit, tool: ReviewTool) -> str:
    """The rows to review as the content of a file for a tool.

    Args:
        audit: of documents with classes or scores.
        tool: "cleanlab" for a CSV file with the columns of `CleanLearning.get_label_issues`;
            "label-studio" for tasks with predictions (JSON); "argilla" for records with suggestions
            and metadata (JSON lines); "doccano" for JSON lines whose labels can be corrected.

    Raises:
        InputError: the audit is of preference pairs, or the tool is unknown.
    """
    if tool not in FORMATS:
        names = ", ".join(get_args(ReviewTool))
        raise InputError(f"cannot export to {tool!r}; choose from {names}")
    rows = rows_to_review(audit)
    has_scores = audit.learned.train.corpus.scores is not None
    return FORMATS[tool].content(rows, has_scores)


def export_file_name(tool: ReviewTool) -> str:
    """The file that `audit --export` writes for a tool."""
    return FORMATS[tool].file_name


def _cleanlab(rows: pl.DataFrame, has_scores: bool) -> str:
    if has_scores:
        rows = rows.with_columns(pl.col("given_label", "predicted_label").cast(pl.Float64))
    return csv_table(rows).decode()


def _label_studio(rows: pl.DataFrame, has_scores: bool) -> str:
    """Tasks to import; the choice, or of scores the number, is named `label` and belongs to the
    text `text`."""
    tasks = []
    for row in rows.iter_rows(named=True):
        data = {"text": row["text"], "label": row["given_label"]} | _origin(row)
        task: dict[str, Any] = {"data": data, "predictions": []}
        if row["predicted_label"] is not None:
            value: dict[str, Any] = {"choices": [row["predicted_label"]]}
            if has_scores:
                value = {"number": _number(row["predicted_label"])}
            choice = {
                "from_name": "label",
                "to_name": "text",
                "type": "number" if has_scores else "choices",
                "value": value,
            }
            prediction = {
                "model_version": AGENT,
                "score": round(1 - row["label_quality"], QUALITY_DIGITS),
                "result": [choice],
            }
            task["predictions"].append(prediction)
        tasks.append(task)
    return json_text(tasks)


def _argilla(rows: pl.DataFrame, has_scores: bool) -> str:
    """Records for `argilla.Record.from_dict`, with a field `text` and a question `label`: of scores
    a rating."""
    records = []
    for row in rows.iter_rows(named=True):
        record: dict[str, Any] = {
            "id": f"{row['part']}-{row['row']}",
            "fields": {"text": row["text"]},
            "metadata": {"given_label": row["given_label"]} | _origin(row),
        }
        if row["predicted_label"] is not None:
            label = row["predicted_label"]
            suggestion = {
                "value": _number(label) if has_scores else label,
                "score": round(1 - row["label_quality"], QUALITY_DIGITS),
                "agent": AGENT,
            }
            record["suggestions"] = {"label": suggestion}
        records.append(record)
    return _json_lines(records)


def _doccano(rows: pl.DataFrame, has_scores: bool) -> str:
    """Documents with their given label; other fields become the document's metadata."""
    records = []
    for row in rows.iter_rows(named=True):
        record = {"text": row["text"], "label": [row["given_label"]]} | _origin(row)
        if row["predicted_label"] is not None:
            record["suggested"] = row["predicted_label"]
        records.append(record)
    return _json_lines(records)


def _number(score: str) -> float:
    """A score as JSON has it: 4, not 4.0, since ratings are whole numbers."""
    number = float(score)
    return int(number) if number.is_integer() else number


def _origin(row: dict[str, Any]) -> dict[str, Any]:
    """The place from which a document comes, and why it should be read."""
    return {name: row[name] for name in ("part", "row", "reason")}


def _json_lines(records: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


class _Format(NamedTuple):
    """The file of a tool, and its content from the rows to review and whether labels are scores."""

    file_name: str
    content: Callable[[pl.DataFrame, bool], str]


FORMATS: dict[ReviewTool, _Format] = {
    "cleanlab": _Format("review-cleanlab.csv", _cleanlab),
    "label-studio": _Format("review-label-studio.json", _label_studio),
    "argilla": _Format("review-argilla.jsonl", _argilla),
    "doccano": _Format("review-doccano.jsonl", _doccano),
}
