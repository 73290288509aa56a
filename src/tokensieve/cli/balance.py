"""Write weights under which chosen tokens, forms or lengths no longer predict the label.

Every row keeps its values and gets a column `weight`. With these weights, each class contains the
chosen tokens equally often, and of preference pairs each chosen token wins half of the pairs in
which the answers differ. If documents can have several labels, this holds for each label: for the
documents with it and without it. Scores (--task scores) are classes here: each one, or where there
are more than ten, fifths of the documents. Train with the column (`--weight weight` here,
`sample_weight` elsewhere).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import QUIET, SOURCES, as_token, command, out_option, say
from tokensieve.errors import InputError
from tokensieve.escape import public_address
from tokensieve.options import option
from tokensieve.read.settings import ReadSettings
from tokensieve.text.settings import TokenSettings
from tokensieve.wording import percent, plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokensieve.arrays import Floats
    from tokensieve.auditing.balance_features import RowFeatures, RowLabels
    from tokensieve.auditing.balancing import Balance
    from tokensieve.read.copies import CopyTarget, Row
    from tokensieve.read.corpus import Corpus
    from tokensieve.text.tokenizers import Tokenizer

WEIGHT_COLUMN = "weight"


@command(source=SOURCES)
def _balance(
    source: list[str],
    reading: ReadSettings,
    token_settings: TokenSettings,
    token: list[str] | None = option(
        None, "Token or form to balance (repeatable).", metavar="TOKEN", parse=list
    ),
    length: bool = option(False, "Balance the length of texts."),
    audit: Path | None = option(
        None, "Folder of an audit: balance the tokens of its shortcuts.", metavar="FOLDER"
    ),
    out: Path = out_option("tokensieve-balance"),
    overwrite: bool = option(False, "Replace an earlier copy."),
    quiet: bool = QUIET,
) -> None:
    """Write a copy of the source with a column of weights."""
    from tokensieve.auditing.balance_features import row_features
    from tokensieve.auditing.balancing import balance, require_enough_documents
    from tokensieve.files import check_writable
    from tokensieve.read.copies import copy_target
    from tokensieve.read.reader import read_corpus

    target = copy_target(out, source[0], "balanced")
    check_writable(target.folder, audit=not target.is_folder)
    target.check_is_free(source, overwrite)
    chosen = _chosen(token or [], length, audit, token_settings)
    to_read = list(source) if len(source) > 1 else source[0]
    per_label = _reading_per_label(to_read, reading)
    corpora = [read_corpus(to_read, of_label) for of_label in per_label.values()]
    corpus = corpora[0]
    data = row_features(corpus, chosen.tokens, chosen.has_length, chosen.tokenizer)
    if reading not in per_label.values():
        data = data.for_labels(_labels_of_rows(corpora, per_label))
    result = balance(data.features, data.labels)
    require_enough_documents(result, data.names, data.features, data.labels)
    rows = _weighted_rows(to_read, reading, corpus, data, result)
    named_source = " ".join(public_address(address) for address in source)
    _write(target, rows, data, result, named_source)
    for line in _messages(data, result, str(target.path), corpus.pairs is not None):
        say(quiet, line)


def _reading_per_label(source: str | list[str], reading: ReadSettings) -> dict[str, ReadSettings]:
    """How to read the documents for each label that they can have; one way if they have one."""
    from tokensieve.read.label_lists import settings_per_label

    if reading.pairs or reading.task == "scores" or source == "-":  # "-" can be read only once
        return {"": reading}
    per_label = settings_per_label(source, reading).settings
    if per_label and (reading.group or reading.drop):
        raise InputError(
            "--group and --drop need one label column with one value per document; leave them out"
        )
    return per_label or {"": reading}


def _labels_of_rows(corpora: list[Corpus], per_label: dict[str, ReadSettings]) -> list[RowLabels]:
    """Which rows have each of several labels, or each value of several label columns.

    Raises:
        InputError: some rows have no value in one of the columns.
    """
    from tokensieve.auditing.balance_features import RowLabels

    labels = []
    for corpus, (name, reading) in zip(corpora, per_label.items(), strict=True):
        if set(corpus.rows.tolist()) != set(corpora[0].rows.tolist()):
            raise InputError(
                f"some rows have no label in column {name!r}, or in another one: balance for one "
                f"column at a time (--label)"
            )
        classes = tuple(f"{name}: {of_column}" for of_column in corpus.classes)
        if reading.having is not None:
            classes = (f"not {name}", name)
        labels.append(RowLabels(RowLabels.of(corpus).labels, classes))
    return labels


@dataclass(frozen=True)
class _Chosen:
    """What to balance, and how texts become such tokens."""

    tokens: list[str]
    has_length: bool
    tokenizer: Tokenizer


def _chosen(
    named: list[str], length: bool, audit: Path | None, token_settings: TokenSettings
) -> _Chosen:
    """Collect the tokens to balance: those that the user names, and the shortcuts of an audit.

    With an audit, texts are split as its model splits them, unless options say otherwise.

    Raises:
        InputError: there is nothing to balance.
    """
    from tokensieve.model.storage import read_model

    tokenizer = token_settings.make_tokenizer()
    of_audit = _ShortcutTokens([], has_length=False)
    if audit is not None:
        of_audit = _tokens_of_shortcuts(audit)
        length = length or of_audit.has_length
        vocabulary = read_model(audit).vocabulary
        if vocabulary is not None and token_settings == TokenSettings():
            tokenizer = vocabulary.tokenizer
    tokens = [*(as_token(name, tokenizer) for name in named), *of_audit.tokens]
    if not tokens and not length:
        raise InputError(
            "nothing to balance: name a token with --token, add --length, or pass an audit that "
            "found shortcuts with --audit"
        )
    return _Chosen(list(dict.fromkeys(tokens)), length, tokenizer)


def _weighted_rows(
    source: str | list[str],
    reading: ReadSettings,
    corpus: Corpus,
    data: RowFeatures,
    result: Balance,
) -> list[Row]:
    """All rows of the source with their weights."""
    import numpy as np

    from tokensieve.read.copies import part_rows, parts_of
    from tokensieve.read.sources import open_source

    rows: list[Row] = []
    for part, table in parts_of(open_source(source, reading)).items():
        own_rows = part_rows(part, table)
        if part == "test":
            weights = np.ones(len(own_rows))
        else:
            weights = _row_weights(len(own_rows), data, result, corpus.test)
        _add_column(own_rows, weights)
        rows += own_rows
    return rows


def _write(
    target: CopyTarget,
    rows: list[Row],
    data: RowFeatures,
    result: Balance,
    source: str,
) -> None:
    """Write the copy; in a folder of its own also a summary and the rates before and after."""
    from tokensieve.auditing.balance_features import rates_by_class
    from tokensieve.files import csv_table, json_text, write_all
    from tokensieve.read.copies import write_rows

    files: dict[str, str | bytes] = {target.name: write_rows(rows, target.name, source)}
    if target.is_folder:
        summary = {
            "documents": len(result.weights),
            "balanced": _names(data, result.balanced),
            "not_balanced": _names(data, ~result.balanced),
            "effective_documents": round(result.effective_size, 1),
            "largest_weight": float(result.weights.max()),
        }
        files["summary.json"] = json_text(summary)
        files["rates.csv"] = csv_table(rates_by_class(data, result.weights))
    write_all(target.folder, files, ours=r"balanced\.(csv|tsv|jsonl|parquet)")


@dataclass(frozen=True)
class _ShortcutTokens:
    """The tokens of an audit's shortcuts, and whether length is one of them."""

    tokens: list[str]
    has_length: bool


def _tokens_of_shortcuts(folder: Path) -> _ShortcutTokens:
    """Read the tokens that an audit's findings name; an `InputError` if the folder is no audit."""
    from tokensieve.files import parsed, read_regular

    try:
        findings = parsed(read_regular(folder / "findings.json"))["findings"]
        shortcuts = [finding for finding in findings if finding["kind"] == "shortcut"]
        tokens = [str(token) for finding in shortcuts for token in finding["tokens"]]
    except (OSError, ValueError, LookupError, TypeError) as problem:
        raise InputError(
            f"--audit {str(folder)!r} is not an audit folder: its findings.json cannot be read "
            f"({type(problem).__name__}); create one with `tokensieve audit`"
        ) from None
    without_length = [name for name in tokens if "⟨length " not in name]
    # a preference audit's finding on length has no token
    is_of_length = any(not finding["tokens"] for finding in shortcuts)
    has_length = is_of_length or len(without_length) < len(tokens)
    return _ShortcutTokens(list(dict.fromkeys(without_length)), has_length)


def _row_weights(n_rows: int, data: RowFeatures, result: Balance, test: Corpus | None) -> Floats:
    """The weight of every row of the source.

    It is 0 where a row holds no document that a model would learn from, and 1 for test documents.
    """
    import numpy as np

    weights = np.zeros(n_rows)
    if test is not None and len(test.rows) and test.rows.max() <= n_rows:
        weights[test.rows - 1] = 1.0
    weights[data.rows - 1] = result.weights
    return weights


def _add_column(rows: list[Row], weights: Floats) -> None:
    if rows and WEIGHT_COLUMN in rows[0]:
        raise InputError(
            f"the source has a column {WEIGHT_COLUMN!r} already: rename it, or leave it out"
        )
    for row, weight in zip(rows, weights.tolist(), strict=True):
        row[WEIGHT_COLUMN] = weight


def _names(data: RowFeatures, chosen: NDArray[np.bool_]) -> list[str]:
    return [name for name, is_chosen in zip(data.names, chosen.tolist(), strict=True) if is_chosen]


def _messages(data: RowFeatures, result: Balance, path: str, is_pairs: bool) -> list[str]:
    """The lines that say what weights could not balance, and what evidence they leave."""
    from tokensieve.text.formatting import is_formatting

    lines = []
    left = _names(data, ~result.balanced)
    if left:
        advice = "remove it with `tokensieve mask` instead"
        if all(map(is_formatting, left)):
            advice = "--no-formatting leaves it out of a model"
        lines.append(
            f"no weights can balance {', '.join(map(repr, left[:5]))}: some class hardly ever or "
            f"nearly always contains it; {advice}"
        )
    balanced = plural(int(result.balanced.sum()), "feature")
    rows = plural(len(result.weights), "pair" if is_pairs else "document")
    lines.append(
        f"{balanced} balanced; the weights keep the evidence of {result.effective_size:,.0f} of "
        f"{rows} ({percent(result.effective_fraction)}): {path}"
    )
    return lines
