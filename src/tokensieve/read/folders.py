"""Folders: data files, or one subfolder of texts per label, also divided into train and test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokensieve.errors import InputError
from tokensieve.read.formats import file_table, kind_of
from tokensieve.read.opened import OpenedSource, concatenated
from tokensieve.read.plain import PlainText, reading
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import BATCH_ROWS, Batch, SourceTable

UNLABELLED = "unsup"  # aclImdb's reviews without a label
_PART_IN_NAME = re.compile(
    r"(?:^|[^a-z])(train|training|test|testing|dev|validation|valid|val)(?![a-z])"
)
_SAME_PART = {"training": "train", "testing": "test"}
_METADATA = (  # files beside data, which hold none
    "dataset_dict.json dataset_info.json dataset_infos.json state.json sample_submission.csv "
    "samplesubmission.csv"
).split()


def open_folder(
    path: Path, settings: SourceSettings, labelled: bool, root: Path | None = None
) -> OpenedSource:
    """Open a folder.

    Args:
        path: the folder.
        settings: how its files are read.
        labelled: False also takes a folder that holds .txt files and no label folders.
        root: the folder that the user named and that links of texts must not lead out of; `path` if
            None.
    """
    root = root or path
    with reading(str(path)):
        subfolders = _subfolders(path)
        parts = _train_and_test_folders(subfolders)
        train = parts.get("train", path)
        test = None
        if "train" in parts:
            test = parts.get("test")
        texts_of_label = _texts_of_labels(train)
        data_files = _data_files(train)
        loose_texts = sorted(path.glob("*.txt"))

    if loose_texts and not labelled and not (texts_of_label or data_files):
        return OpenedSource(_texts_table(path, {"": loose_texts}, settings, root, ("text",)))
    unlabelled = texts_of_label.pop(UNLABELLED, [])
    if texts_of_label and not (data_files and _has_other_files(texts_of_label.values())):
        table = _texts_table(train, texts_of_label, settings, root)
        opened = OpenedSource(table, _test_texts_table(test, settings, root))
        if unlabelled:
            opened.ignored[UNLABELLED] = len(unlabelled)
        return opened
    if data_files:
        return _open_data_files_beside(test, data_files, settings)
    if len(subfolders) == 1:  # a folder that holds nothing else
        return open_folder(subfolders[0], settings, labelled, root)
    raise InputError(
        f"{str(path)!r} is a folder but not a data set; supported are data files, one subfolder of "
        ".txt files per label, or train/LABEL/*.txt beside test/LABEL/*.txt"
    )


def _test_texts_table(
    test: Path | None, settings: SourceSettings, root: Path
) -> SourceTable | None:
    """The texts of the folder for testing, if it has a subfolder of them per label."""
    if test is None:
        return None
    texts_of_label = _texts_of_labels(test)
    if not texts_of_label:
        return None
    return _texts_table(test, texts_of_label, settings, root)


def _open_data_files_beside(
    test: Path | None, data_files: Sequence[Path], settings: SourceSettings
) -> OpenedSource:
    """The data files for training, and those of the folder for testing, if it has any."""
    test_files = []
    if test is not None:
        test_files = _data_files(test)
    if not test_files:
        return _open_data_files(data_files, settings)
    return OpenedSource(_one_table(data_files, settings), _one_table(test_files, settings))


def _one_table(files: Iterable[Path], settings: SourceSettings) -> SourceTable:
    return concatenated([file_table(file, settings) for file in files])


def _subfolders(path: Path) -> list[Path]:
    return [p for p in sorted(path.iterdir()) if p.is_dir() and p.name[0] not in "._"]


def _train_and_test_folders(folders: Iterable[Path]) -> dict[str, Path]:
    """ "train" and "test" → the folders with such names, as 20news-train."""
    parts = {}
    for folder in folders:
        match = re.fullmatch(r"(?:.*[^a-z])?(train|test)", folder.name.lower())
        if match:
            parts[match[1]] = folder
    return parts


def _has_other_files(texts: Iterable[Sequence[Path]]) -> bool:
    """Whether any file of a label folder has another ending than .txt."""
    return any(path.suffix != ".txt" for paths in texts for path in paths)


def _open_data_files(files: Sequence[Path], settings: SourceSettings) -> OpenedSource:
    """Data files of one folder, divided by their names; parts that are neither are set aside."""
    parts: dict[str, list[SourceTable]] = {}
    for file in files:
        names = _PART_IN_NAME.findall(file.name.lower())
        last = ""
        if names:
            last = names[-1]
        parts.setdefault(_SAME_PART.get(last, last), []).append(file_table(file, settings))
    if "train" not in parts:
        return OpenedSource(concatenated([table for tables in parts.values() for table in tables]))
    train = concatenated(parts.pop("train"))
    test_tables = parts.pop("test", [])
    test = None
    if test_tables:
        test = concatenated(test_tables)
    ignored = Counter[str]()
    for name, tables in parts.items():
        for table in tables:
            ignored[name or table.name] += table.height()
    return OpenedSource(train, test, dict(ignored))


def _data_files(path: Path) -> list[Path]:
    """Tables in a folder or its folder `data`."""
    paths = sorted([*path.glob("*"), *path.glob("data/*")])
    return [p for p in paths if p.is_file() and kind_of(p.name) and not _is_aside(p.name)]


def _is_aside(name: str) -> bool:
    return name[0] in "._~" or name.lower() in _METADATA


def _texts_of_labels(path: Path) -> dict[str, list[Path]]:
    """Label → the .txt files of its subfolder; if no subfolder has any, all files but tables."""
    folders = _subfolders(path)
    texts = {folder.name: sorted(folder.glob("*.txt")) for folder in folders}
    if not any(texts.values()):
        texts = {folder.name: _files_without_tables(folder) for folder in folders}
    return {label: paths for label, paths in texts.items() if paths}


def _files_without_tables(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("[!._]*") if p.is_file() and not kind_of(p.name))


def _check_links(root: Path, texts: Mapping[str, Sequence[Path]]) -> None:
    """Refuse links that lead out of a folder of texts, which somebody else may have made."""
    resolved_root = root.resolve()
    paths = [path for of_label in texts.values() for path in of_label]
    folders = {path.parent for path in paths}
    links = [path for path in paths if path.is_symlink()]
    for path in (*sorted(folders), *links):
        if not path.resolve().is_relative_to(resolved_root):
            raise InputError(
                f"{str(path)!r} is a link that leads out of the folder; copy its content, or "
                "remove the link"
            )


def _texts_table(
    path: Path,
    texts: Mapping[str, Sequence[Path]],
    settings: SourceSettings,
    root: Path,
    columns: tuple[str, ...] = ("text", "label"),
) -> SourceTable:
    """One document per file; what was detected is noted once all files are read."""
    _check_links(root, texts)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        n_files = Counter[str]()
        for label, paths in texts.items():
            for start in range(0, len(paths), BATCH_ROWS):
                batch_paths = paths[start : start + BATCH_ROWS]
                batch: Batch = {name: [label] * len(batch_paths) for name in names}
                if "text" in names:
                    files = [PlainText(file, str(file), settings) for file in batch_paths]
                    batch["text"] = [file.full_text() for file in files]
                    n_files.update(note for file in files for note in file.notes)
                yield batch
        table.notes = tuple(f"{note}: {n:,} files" for note, n in n_files.items())

    table = SourceTable(str(path), columns, read)
    return table
