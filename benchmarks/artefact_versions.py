"""The rules of an earlier version against the score, on the same draws.

    python benchmarks/artefact_versions.py SOURCE       the folder `src` of the earlier version

What a version found in the draws of a set is stored in the cache as soon as it is known, so that a
run that was stopped goes on with the next set. It is stored under a hash of the version's files,
the coefficients and the draws: if any of them changed, the set is audited again. `--only` stops
after some sets, in alphabetical order; the figures name them.

Written down before the first figure. Draws are the sets for reporting that people wrote
(`artefact_sets.py`), each clean and with PLANTS_PER_SET marks of kinds for reporting, forms among
them (`artefacts.py`). Both versions audit the same files with default settings, without a baseline.
The score's coefficients are those of the sets and kinds for choosing alone. A mark is found if a
token of a finding of the kind "shortcut" is one of its forms, or has only words of the mark. A
finding on a clean draw is false if it names words, and none of them is a visible artefact of the
set (NATURAL).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from artefact_marks import CHOOSING, KINDS, REPORTING, plant
from artefact_sets import CACHE, CHOOSING_SETS, GENERATED, NATURAL, REPORTING_SETS
from artefacts import Fitted, draw, stored
from machine import described
from tokensieve.evidence.intervals import Share

RESULTS = Path(__file__).parent / "results" / "artefact_versions.json"
OWN_SOURCE = Path(__file__).parents[1] / "src"
PLANTS_PER_SET = 2
# what a version does with the files: coefficients of the score (or -), then paths
AUDIT = """
import json, sys
import polars as pl
import tokensieve
from tokensieve import Settings
if sys.argv[1] != "-":
    from tokensieve.auditing.artefacts import controls, score
    model = score.ScoreModel.from_dict(json.load(open(sys.argv[1])))
    score.fitted_model = controls.fitted_model = lambda: model
for path in sys.argv[2:]:
    frame = pl.read_parquet(path)
    documents = frame["text"].to_list(), frame["label"].to_list()
    found = tokensieve.audit(documents, Settings(baseline=False, thorough=False)).findings
    shortcuts = [
        {"tokens": list(one.tokens), "level": getattr(one.level, "value", one.level)}
        for one in found if one.kind == "shortcut"
    ]
    print(json.dumps({"path": path, "version": tokensieve.__version__, "shortcuts": shortcuts}))
"""


@dataclass(frozen=True)
class Draw:
    """A file that both versions audit.

    Attributes:
        path: the name of the file in its folder.
        set_name: whose texts it has.
        kind: of the mark; empty if clean.
        names: the words and forms by which a finding may name the mark.
    """

    path: str
    set_name: str
    kind: str
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Shortcut:
    """A finding of the kind "shortcut"."""

    tokens: tuple[str, ...]
    level: str

    def names(self, names: frozenset[str]) -> bool:
        """Whether it names a mark: a form of it, or a token all of whose words are the mark's."""
        for token in self.tokens:
            words = set(re.findall(r"[^\W\d_]+", token.lower())) - {"n"}
            is_of_words = bool(words) and words <= names and not token.startswith("⟨")
            if token in names or is_of_words:
                return True
        return False

    def is_false(self, natural: frozenset[str]) -> bool:
        """Whether it names words, none of which is a visible artefact."""
        tokens = [token for token in self.tokens if not token.startswith("⟨")]
        return bool(tokens) and not any(set(token.split(" ")) & natural for token in tokens)


def draws(name: str, folder: Path) -> list[Draw]:
    """Writes the files of one set."""
    frame = draw(name)
    made = [written(frame, folder, Draw("", name, ""))]
    rng = np.random.default_rng([11, *name.encode()])
    kinds = [str(kind) for _ in range(2) for kind in rng.permutation(list(REPORTING))]
    n_planted = 0
    for number, kind in enumerate(kinds):
        planted = plant(frame, KINDS[kind], np.random.default_rng([13, number, *name.encode()]))
        if planted is None or n_planted == PLANTS_PER_SET:
            continue
        n_planted += 1
        names = planted.mark.words | planted.mark.forms
        marked = frame.with_columns(text=planted.texts)
        made.append(written(marked, folder, Draw("", name, kind, names)))
    return made


def written(frame: pl.DataFrame, folder: Path, about: Draw) -> Draw:
    """Writes one file."""
    n_files = len(list(folder.glob("*.parquet")))
    path = folder / f"{about.set_name}-{n_files}.parquet"
    frame.select("text", "label").write_parquet(path)
    return Draw(path.name, about.set_name, about.kind, about.names)


@dataclass(frozen=True)
class Found:
    """What a version found, by file name."""

    version: str
    shortcuts: dict[str, list[Shortcut]]


def state_of(source: Path, coefficients: str, drawn: list[Path]) -> str:
    """A hash of all that decides what a version finds: its files, the coefficients, the draws."""
    package = [*source.glob("**/*.py"), *source.glob("**/*.json")]
    paths = [*sorted(package), *drawn]
    if coefficients != "-":
        paths.append(Path(coefficients))
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def shortcuts_of(
    source: Path, coefficients: str, set_name: str, made: list[Draw], folder: Path
) -> Found:
    """What a version finds in each file of a set, from the cache if it was asked before."""
    state = state_of(source, coefficients, [folder / one.path for one in made])
    store = CACHE / "artefact_versions" / f"{set_name}-{state}.json"
    if not store.exists():
        run = subprocess.run(
            [sys.executable, "-c", AUDIT, coefficients, *[one.path for one in made]],
            env={**os.environ, "PYTHONPATH": str(source)},
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(run.stdout, encoding="utf-8")
    lines = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()]
    shortcuts = {
        line["path"]: [Shortcut(tuple(one["tokens"]), one["level"]) for one in line["shortcuts"]]
        for line in lines
    }
    return Found(lines[0]["version"], shortcuts)


def figures(made: list[Draw], found: Found) -> dict[str, object]:
    """The figures of one version."""
    marks = [one for one in made if one.kind]
    is_found = {
        one.path: any(shortcut.names(one.names) for shortcut in found.shortcuts[one.path])
        for one in marks
    }
    by_kind = {}
    for kind in sorted({one.kind for one in marks}):
        paths = [one.path for one in marks if one.kind == kind]
        by_kind[kind] = [sum(is_found[path] for path in paths), len(paths)]
    false = {}
    clean = [one for one in made if not one.kind]
    for one in clean:
        natural = NATURAL.get(one.set_name, frozenset())
        false[one.set_name] = [s for s in found.shortcuts[one.path] if s.is_false(natural)]
    every = [finding for findings in false.values() for finding in findings]
    n_serious = sum(finding.level in ("medium", "high") for finding in every)
    return {
        "marks found": Share.count(sum(is_found.values()), len(marks)).to_dict(),
        "by kind": by_kind,
        "clean draws": len(clean),
        "false findings": len(every),
        "false findings of medium severity or more": n_serious,
        "false findings by set": {
            name: [[*finding.tokens[:4], finding.level] for finding in findings]
            for name, findings in false.items()
            if findings
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("earlier", type=Path, help="the folder src of the earlier version")
    parser.add_argument("--only", type=int, default=len(REPORTING_SETS), help="so many sets")
    options = parser.parse_args()
    sets = [name for name in REPORTING_SETS if name not in GENERATED]
    choosing = stored(CHOOSING_SETS)
    fitted = Fitted(choosing.filter(pl.col("kind").is_in(["", *CHOOSING])))
    made: list[Draw] = []
    versions: dict[str, dict[str, list[Shortcut]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coefficients = folder / "coefficients.json"
        coefficients.write_text(json.dumps(fitted.to_dict()), encoding="utf-8")
        for set_name in sets[: options.only]:
            of_set = draws(set_name, folder)
            made += of_set
            for source, score in (
                (options.earlier.resolve(), "-"),
                (OWN_SOURCE, str(coefficients)),
            ):
                found = shortcuts_of(source, score, set_name, of_set, folder)
                versions.setdefault(found.version, {}).update(found.shortcuts)
            print(set_name, flush=True)
    out: dict[str, object] = {"machine": described("polars", "scikit-learn")}
    out["sets"] = sets[: options.only]
    for version, shortcuts in versions.items():
        out[version] = figures(made, Found(version, shortcuts))
    RESULTS.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(out, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
