"""What scikit-learn hands on as X and y: texts or counts, labels and groups."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_non_negative, column_or_1d

from tokensieve.arrays import Ints
from tokensieve.read.corpus import index_by_first_appearance
from tokensieve.read.values import missing

Data: TypeAlias = Any  # lists, series, frames, dense and sparse arrays
Array: TypeAlias = NDArray[Any]


def is_text(X: Data) -> bool:
    """Whether X is a sequence of strings, and not counts.

    Raises:
        ValueError: it is neither, such as one string, a frame, or texts of which one is missing.
    """
    if isinstance(X, str):
        raise ValueError("got one string; pass a list of texts")
    if _is_all_text(X):
        return True
    _check_no_column_of_texts(X)
    if _is_sequence(X) and any(entry is None or isinstance(entry, str | bytes) for entry in X):
        at = next(i for i, entry in enumerate(X) if not isinstance(entry, str))
        reason = "missing" if missing(X[at]) else f"not text but {type(X[at]).__name__}"
        raise ValueError(f"entry {at} of the texts is {reason}: leave it out")
    return False


def _is_all_text(X: Data) -> bool:
    if isinstance(X, pl.Series):
        return X.dtype == pl.String and not X.null_count()
    if sp.issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__"):
        return False
    return len(X) > 0 and all(isinstance(entry, str) for entry in X)


def _is_sequence(X: Data) -> bool:
    if isinstance(X, list | tuple | pl.Series):
        return True
    return getattr(X, "ndim", 0) == 1 and hasattr(X, "__len__")


def _check_no_column_of_texts(X: Data) -> None:
    """Raise a ValueError that names the column to pass, if X is a table with texts."""
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "__getitem__"):
        for name in columns:
            if _is_all_text(X[name]):
                raise ValueError(f"got a data frame; pass its column {name!r}")
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and _is_all_text(X[:, 0]):
        raise ValueError("got a table of one column; pass the column, such as X[:, 0]")


def as_counts(X: Data) -> sp.csr_array:
    """Counts as a CSR matrix of its own, without stored zeros; a ValueError if one is negative."""
    check_non_negative(X, "AttentionClassifier")
    matrix = sp.csr_array(X, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def labels_of_texts(y: Data) -> Array:
    """Labels as one array; a ValueError if one is missing."""
    labels: Array = column_or_1d(np.asarray(y), warn=True)
    if labels.dtype.kind in "fO":
        for i, label in enumerate(labels):
            if missing(label):
                raise ValueError(f"label {i} is missing: leave its text out")
    return labels


def numbers_of_texts(y: Data) -> Array:
    """Labels that are numbers, as one array; a ValueError if one is not a finite number."""
    numbers: Array = column_or_1d(np.asarray(y, dtype=np.float64), warn=True)
    if not np.isfinite(numbers).all():
        at = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"label {at} is {numbers[at]}, not a finite number: leave its text out")
    return numbers


def group_index(groups: Data, n_documents: int) -> Ints | None:
    """A number for the group of each document, shape (n,); None without groups."""
    if groups is None:
        return None
    names = list(groups)
    if len(names) != n_documents:
        raise ValueError(
            f"{n_documents} documents, but {len(names)} groups: pass one for each document"
        )
    return index_by_first_appearance(names)
