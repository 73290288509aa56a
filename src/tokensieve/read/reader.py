"""Read any source into a corpus: labelled documents, or preference pairs."""

from __future__ import annotations

from typing import Any

from tokensieve.progress import check_not_forked
from tokensieve.read.corpus import Corpus
from tokensieve.read.labelled import read_labelled
from tokensieve.read.pairs import read_pairs
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source


def read_corpus(source: Source, settings: ReadSettings | None = None, **options: Any) -> Corpus:
    """Read labelled documents, or preference pairs if `pairs` names their columns.

    Labels may be strings, integers, booleans or whole floats (4.0 and "4.0" are the label "4").
    Labels that `group` and `drop` do not name stay as they are.

    Args:
        source: a .csv, .tsv, .jsonl (.ndjson), .json, .parquet, .arrow or .xlsx file, also
            compressed with gzip, zstd or xz; several files as a list or a glob; a folder of such
            files, or with a subfolder of .txt files per label, or with such folders under train/
            and test/; "-" for standard input; an address that Polars reads (s3://, https://,
            hf://); a pandas or Polars data frame, or anything else that gives Arrow data (PyArrow,
            DuckDB); a `Dataset` or `DatasetDict` of the datasets library; a pair (texts, labels);
            or the name of a data set, "imdb" or "yelp".
        settings: how it is read; `ReadSettings()` if None.
        options: fields of `ReadSettings` by name, in place of those in `settings`.

    Raises:
        InputError: the source cannot be read, the columns are ambiguous, or the labels cannot be
            classes: fewer than two, more than 200, a class with one document, or a test label that
            training does not have.
    """
    check_not_forked()
    settings = (settings or ReadSettings()).with_options(options)
    if settings.pairs is not None:
        return read_pairs(source, settings)
    return read_labelled(source, settings)
