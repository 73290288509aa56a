"""Size: how time and memory grow, and how fast documents are answered.

    python benchmarks/scale.py growth --most 6    importance of 10³ … 10^6 generated documents of
                                                  100 tokens, and the exponent
    python benchmarks/scale.py types --most 6     the same of 300,000 documents (--documents) while
                                                  |S| grows from 10³ to 10^6
    python benchmarks/scale.py text --most 5      `tokensieve train` of 10^5 documents as raw text:
                                                  in memory, and with --stream
                                                  from JSONL, CSV and Parquet; whether all results
                                                  are the same to the byte
    python benchmarks/scale.py larger             `train --stream` of a file of 1.5 GB with at most
                                                  1.25 GB of own memory (--cap)
    python benchmarks/scale.py spill              bigrams of 500,000 documents: document frequencies
                                                  in files and in memory
    python benchmarks/scale.py audits             `tokensieve audit` of 300,000 documents
                                                  (--documents) and a tenth of them by two
                                                  workers of 2 GB (--memory), and with --stream
                                                  (unless --no-stream); seconds by stage, memory of
                                                  the client and the workers
    python benchmarks/scale.py predict            documents per second: Python, the two-number table
                                                  alone

Every figure is measured when it is printed, in a process of its own except for `predict`. Peak
memory is that of the process: "own" without the pages of files that the system holds for it and
takes back when others need room.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from machine import DATA, described, memory, store
from tokensieve.evidence.importance import importance_of as from_sums
from tokensieve.evidence.sums import TokenSums
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.text import frequencies as spill_files
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import Chunks, TokenStream, learn_vocabulary

LENGTH, TYPES, BATCH = 100, 50_000, 20_000
REQUIRED = {"seconds": 600.0, "gigabytes": 4.0, "exponent": 1.05}


class Generated(Chunks):
    """Documents of 100 tokens from a Zipf-like vocabulary, a tenth of whose types lean to one of
    two classes; made batch by batch from the seed whenever they are read, which has taken `seconds`
    so far.
    """

    def __init__(self, documents: int, types: int = TYPES, seed: int = 0) -> None:
        self.documents, self.types, self.seed, self.seconds = documents, types, seed, 0.0
        base = 1 / (np.arange(types) + 10.0)
        lean = np.where(
            np.arange(types) % 10 == 0, np.where(np.arange(types) % 20 == 0, 0.5, -0.5), 0.0
        )
        self.reach = [
            np.cumsum(base * (1 + y * lean)) / np.sum(base * (1 + y * lean)) for y in (-1, 1)
        ]

    def batches(self) -> Iterator[tuple[TokenStream, np.ndarray]]:
        """Token ids and labels; each batch knows the words in it, as a tokenizer's does."""
        for number, first in enumerate(range(0, self.documents, BATCH)):
            start, n = time.perf_counter(), min(BATCH, self.documents - first)
            rng = np.random.default_rng([self.seed, number])
            labels = rng.integers(0, 2, n)
            drawn = rng.random((n, LENGTH))
            ids = np.empty((n, LENGTH), dtype=np.int32)
            for y in (0, 1):
                ids[labels == y] = np.minimum(
                    np.searchsorted(self.reach[y], drawn[labels == y]), self.types - 1
                )
            there = np.zeros(self.types, dtype=bool)
            there[ids] = True
            words = [f"w{s:05d}" for s in np.flatnonzero(there).tolist()]
            ids = (np.cumsum(there, dtype=np.int32) - 1)[ids.ravel()]
            self.seconds += time.perf_counter() - start
            yield TokenStream(ids, np.arange(0, n * LENGTH + 1, LENGTH), words), labels

    def __iter__(self) -> Iterator[TokenStream]:
        return (stream for stream, _ in self.batches())


class Peak:
    """The largest memory of this process while it runs, looked at every 20 ms:

    all of it, and its own without mapped files.

    Args:
        cap: gigabytes of its own beyond which the process ends at once, with status 9.

    """

    def __init__(self, cap: float = math.inf) -> None:
        self.cap = cap

    def __enter__(self) -> Peak:
        self.own, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.all = memory("VmHWM")

    def _look(self) -> None:
        while not self._stop.wait(0.02):
            self.own = max(self.own, memory("RssAnon"))
            if self.own > self.cap:
                os._exit(9)


def importance_of(documents: int, ngrams: int, types: int = TYPES) -> dict[str, float]:
    """Both passes over generated documents: vocabulary, then sums and importance."""
    source, splitter = Generated(documents, types), WordTokenizer()
    with Peak() as peak:
        start = time.perf_counter()
        vocabulary = learn_vocabulary(source, splitter, ngrams, 3)
        sums = TokenSums.zero(vocabulary.n_types, 2)
        for stream, labels in source.batches():
            sums = sums + TokenSums.of(vocabulary.count(stream)[0], labels, 2)
        importance = from_sums(sums, vocabulary.tokens, ("-1", "+1"))
        seconds = time.perf_counter() - start
    found = {
        "documents": documents,
        "types": vocabulary.n_types,
        "seconds": seconds,
        "generating": source.seconds,
    }
    return found | {
        "own": peak.own,
        "all": peak.all,
        "important": float((importance.q_value[:, 1] < 0.05).mean()),
    }


def growth(options: argparse.Namespace) -> None:
    """Importance against documents; "seconds" include making the documents anew in each pass."""
    sizes = [{"documents": 10**power} for power in range(3, options.most + 1)]
    rows = _grown(sizes, options.ngrams)
    _fitted(
        [r for r in rows if r["documents"] >= 10**4], "documents", "seconds", REQUIRED["exponent"]
    )
    if options.most >= 7:
        last = rows[-1]
        met = last["seconds"] <= REQUIRED["seconds"] and last["all"] <= REQUIRED["gigabytes"]
        limits = f"{REQUIRED['seconds']:g} s and {REQUIRED['gigabytes']:g} GB"
        print(f"10^7 documents within {limits}: {'yes' if met else 'NO'}")


def types(options: argparse.Namespace) -> None:
    """Importance against the vocabulary, with the same number of documents."""
    documents = options.documents or 300_000
    rows = _grown(
        [{"documents": documents, "types": 10**power} for power in range(3, options.most + 1)],
        options.ngrams,
    )
    rows = [r | {"without generating": r["seconds"] - r["generating"]} for r in rows]
    for column in ("seconds", "without generating", "own"):
        _fitted(rows, "types", column)


def _grown(sizes: list[dict[str, int]], ngrams: int) -> list[dict[str, float]]:
    importance_of(
        100, ngrams
    )  # compile before the clock starts; the kernels are cached for the processes below
    print("| documents | token types | seconds | of which generating | own memory, GB | peak, GB |")
    print("|---|---|---|---|---|---|")
    rows = []
    for size in sizes:
        row = _in_process("importance", ngrams=ngrams, **size)
        rows.append(row)
        cells = [
            row[name] for name in ("documents", "types", "seconds", "generating", "own", "all")
        ]
        print(
            "| "
            + " | ".join(f"{x:,.2f}" if isinstance(x, float) else f"{x:,}" for x in cells)
            + " |",
            flush=True,
        )
    return rows


def _fitted(
    rows: list[dict[str, float]], size: str, column: str, required: float | None = None
) -> None:
    """The exponent b of column ≈ a · size^b, by least squares in logarithms."""
    if len(rows) > 1:
        logs = [(math.log(r[size]), math.log(r[column])) for r in rows]
        found = statistics.linear_regression(*zip(*logs, strict=True)).slope
        asked = "" if required is None else f" (required: at most {required})"
        print(f"exponent of {column} in {size} from {rows[0][size]:,} on: {found:.3f}{asked}")


def write_text(path: Path, documents: int, seed: int = 0) -> None:
    """Generated documents as JSONL."""
    source = Generated(documents, seed=seed)
    with path.open("wb") as file:
        for stream, labels in source.batches():
            words = np.array([f"{word} " for word in stream.words], dtype="S")  # all of one length
            text = words[stream.ids].view(np.uint8).reshape(len(labels), -1)[:, :-1]
            before, after = (
                np.frombuffer(part, np.uint8) for part in (b'{"text": "', b'", "label": ')
            )
            ends = np.stack(
                [
                    labels + ord("0"),
                    np.full(len(labels), ord("}")),
                    np.full(len(labels), ord("\n")),
                ],
                axis=1,
            )
            rows = [
                np.tile(before, (len(labels), 1)),
                text,
                np.tile(after, (len(labels), 1)),
                ends.astype(np.uint8),
            ]
            file.write(np.concatenate(rows, axis=1).tobytes())


def train_text(path: str, streamed: bool, cap: float = math.inf) -> dict[str, Any]:
    """`tokensieve train` on a file, and a digest of the token table and the model."""
    from tokensieve.cli import app

    tempfile.tempdir = str(
        Path(path).parent
    )  # all that goes with the caller's folder, also when `cap` ends this process
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["train", path, "--tokens", "--out", folder, "-q", *["--stream"] * streamed]
        with Peak(cap) as peak:
            start = time.perf_counter()
            app(args=arguments, standalone_mode=False)
            seconds = time.perf_counter() - start
        written = b"".join(
            (Path(folder) / name).read_bytes() for name in ("tokens.csv", "model.safetensors")
        )
        accuracy = json.loads((Path(folder) / "summary.json").read_text())["test_accuracy"]
    digest = hashlib.sha256(written).hexdigest()
    return {
        "seconds": seconds,
        "own": peak.own,
        "all": peak.all,
        "accuracy": accuracy,
        "digest": digest,
    }


def text(options: argparse.Namespace) -> None:
    """Raw text from a file to a model, in memory and streamed, from every kind of file."""
    print(
        "| documents | file, GB | | seconds | own memory, GB | peak, GB | test accuracy | the same "
        "bytes |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for power in range(4, options.most + 1):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "documents.jsonl"
            write_text(path, 10**power)
            pl.scan_ndjson(path).sink_csv(path.with_suffix(".csv"))
            pl.scan_ndjson(path).sink_parquet(path.with_suffix(".parquet"))
            first = None
            for kind, streamed in (
                (".jsonl", False),
                (".jsonl", True),
                (".csv", True),
                (".parquet", True),
            ):
                file = path.with_suffix(kind)
                r = _in_process("train_text", path=str(file), streamed=streamed)
                first = first or r["digest"]
                numbers = (
                    f"{r['seconds']:.1f} | {r['own']:.2f} | {r['all']:.2f} | {r['accuracy']:.4f}"
                )
                name = f"{'--stream' if streamed else 'in memory'}, {kind[1:]}"
                same = "yes" if r["digest"] == first else "NO"
                print(
                    f"| 10^{power} | {file.stat().st_size / 1e9:.2f} | {name} | {numbers} | "
                    f"{same} |",
                    flush=True,
                )


def audit_text(path: str, where: list[str]) -> dict[str, Any]:
    """`tokensieve audit` on a file, with the memory of this process:

    on a cluster that of the client.
    """
    from tokensieve.cli import app

    with tempfile.TemporaryDirectory() as folder:
        arguments = ["audit", path, "--out", folder, "-q", "--no-pictures", "--no-baseline", *where]
        with Peak() as peak:
            start = time.perf_counter()
            app(args=arguments, standalone_mode=False)
            seconds = time.perf_counter() - start
        summary = json.loads((Path(folder) / "summary.json").read_text())
        importance = (
            pl.read_csv(Path(folder) / "tokens.csv")
            .sort("class", "token")
            .drop("score", "value", "attention", "quadrant")
        )
    found = {
        "total": seconds,
        "processor": time.process_time(),
        "own": peak.own,
        "accuracy": summary["test_accuracy"],
    }
    return found | {
        "findings": summary["findings"],
        "seconds": summary["seconds"],
        "digest": hashlib.sha256(importance.write_csv().encode()).hexdigest(),
    }


def audits(options: argparse.Namespace) -> None:
    """Audits of generated text by workers of limited memory on this machine, beside one process
    that streams (results/scale-audits.json).
    """
    most, rows = options.documents or 300_000, list[dict[str, Any]]()
    for documents in (most // 10, most)[not options.tenth :]:
        with tempfile.TemporaryDirectory() as folder:
            # sides of the split are given, so that both audits learn from the same documents
            paths = [
                Path(options.folder or folder) / f"{name}-{documents}.jsonl"
                for name in ("documents", "test")
            ]
            for seed, (path, n) in enumerate(zip(paths, (documents, documents // 5), strict=True)):
                if not path.exists():
                    write_text(path.with_suffix(".part"), n, seed)
                    path.with_suffix(".part").rename(path)
            size = sum(path.stat().st_size for path in paths) / 1e9
            print(f"{documents:,} and {documents // 5:,} documents, {size:.2f} GB", flush=True)
            given = ["--test", str(paths[1])]
            found = {}
            for name in ["workers", *["stream"] * options.stream]:
                r = (
                    _on_workers(paths[0], given, options)
                    if name == "workers"
                    else _streamed(paths[0], given)
                )
                found[name] = r["digest"]
                rows.append(
                    {
                        "documents": documents,
                        "test": documents // 5,
                        "gigabytes": size,
                        "where": name,
                    }
                    | r
                )
                stages = ", ".join(
                    f"{stage} {s:.0f}" for stage, s in r["seconds"].items() if s >= 0.5
                )
                print(
                    f"  {name}: {r['total']:.0f} s, {r['own']:.2f} GB of its own, test accuracy "
                    f"{r['accuracy']:.4f}, findings {r['findings']}; CPU seconds "
                    f"{r['processor']:.0f} here, {r.get('workers', 0):.0f} in workers, which "
                    f"used {r.get('peak', 0):.2f} GB at most\n    seconds: {stages}",
                    flush=True,
                )
                print(store("scale-audits" + options.name, rows, described("polars", "dask")))
            if len(found) > 1:
                print(
                    f"  the same importance: {'yes' if len(set(found.values())) == 1 else 'NO'}",
                    flush=True,
                )


def _streamed(path: Path, given: list[str]) -> dict[str, Any]:
    return _in_process("audit_text", path=str(path), where=["--stream", *given])


def _on_workers(path: Path, given: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """An audit by two workers of one thread and so much memory; with their CPU seconds."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=options.memory, dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        names = set(client.nthreads())
        r = _in_process(
            "audit_text", path=str(path), where=["--cluster", workers.scheduler_address, *given]
        )
        seconds, restarted = (
            sum(client.run(time.process_time).values()),
            len(set(client.nthreads()) - names),
        )
        peak = (
            max(client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).values())
            / 1e6
        )
        return r | {
            "workers": seconds,
            "peak": peak,
            "restarted": restarted,
            "memory": options.memory,
        }


def larger(options: argparse.Namespace) -> None:
    """A file larger than the memory that training may use for itself; the process ends if it uses
    more.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        write_text(path, options.documents or 2_100_000)
        size = path.stat().st_size / 1e9
        print(f"file {size:.2f} GB, cap {options.cap:g} GB", flush=True)
        if size <= options.cap:
            raise SystemExit("the file must be larger than the cap: give more --documents")
        r = _in_process("train_text", path=str(path), streamed=True, cap=options.cap)
    print(
        f"trained in {r['seconds']:.1f} s with {r['own']:.2f} GB of its own; test accuracy "
        f"{r['accuracy']:.4f}"
    )


def vocabulary_of(documents: int, rows: int) -> dict[str, Any]:
    """Words and bigrams in at least three documents, where up to `rows` document frequencies wait
    in memory.
    """
    spill_files.ROWS, spill, spills = rows, spill_files.Frequencies._spilled, []

    def counted(self: spill_files.Frequencies, frame: pl.DataFrame) -> Any:
        spills.append(len(frame))
        return spill(self, frame)

    spill_files.Frequencies._spilled = counted  # type: ignore[method-assign]
    with Peak() as peak:
        start = time.perf_counter()
        found = learn_vocabulary(Generated(documents), WordTokenizer(), 2, 3)
        seconds = time.perf_counter() - start
    digest = hashlib.sha256("\n".join(found.words).encode() + found.grams[0].tobytes()).hexdigest()
    return {
        "seconds": seconds,
        "own": peak.own,
        "all": peak.all,
        "types": found.n_types,
        "spills": len(spills),
        "spilled": sum(spills),
        "digest": digest,
    }


def spill(options: argparse.Namespace) -> None:
    """The vocabulary of words and bigrams, with document frequencies in files and in memory."""
    documents, digests = options.documents or 500_000, set()
    print(
        "| documents | rows in memory | spills | rows in files | token types | seconds | own "
        "memory, GB |"
    )
    print("|---|---|---|---|---|---|---|")
    for rows in (spill_files.ROWS, 10**12):
        r = _in_process("vocabulary", documents=documents, rows=rows)
        digests.add(r["digest"])
        numbers = (
            f"{r['spills']} | {r['spilled']:,} | {r['types']:,} | {r['seconds']:.1f} | "
            f"{r['own']:.2f}"
        )
        print(f"| {documents:,} | {rows:,} | {numbers} |", flush=True)
    print(f"the same vocabulary: {'yes' if len(digests) == 1 else 'NO'}")


def _in_process(job: str, **arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "one", "--job", job, "--arguments", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = "it used more memory than it may" if done.returncode == 9 else done.stderr[-2000:]
        raise SystemExit(f"{job} {arguments} ended with status {done.returncode}: {reason}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _timed(
    job: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[Any, float]:
    start = clock()
    out = job()
    return out, clock() - start


def predict(options: argparse.Namespace) -> None:
    """25,000 IMDB reviews: from text, from counts, and from the table in plain Python."""
    from tokensieve.model.storage import table

    train, test = (pl.read_parquet(DATA / f"imdb_{part}.parquet") for part in ("train", "test"))
    model = AttentionClassifier(ngrams=options.ngrams).fit(train["text"], train["label"].to_list())
    matrix, _ = model.counts_of(test["text"])
    sides: dict[str, tuple[Callable[[], Any], int]] = {
        "Python, text to answer": (lambda: model.decision_function(test["text"]), len(test)),
        "Python, counts to answer": (lambda: model.decision_function(matrix), len(test)),
    }
    told, some = table(model), test["text"][:2000].to_list()
    place = {token: s for s, token in enumerate(told["tokens"])}
    scores, values, n = told["scores"], [v[0] for v in told["values"]], told["ngrams"]

    def by_table() -> list[float]:
        import re

        word, out = re.compile(r"\w+(?:['’]\w+)*"), []
        for document in some:
            words = word.findall(re.sub(r"(?i)<br\s*/?>", " ", document).lower())
            grams = (
                " ".join(words[i : i + k])
                for k in range(1, n + 1)
                for i in range(len(words) - k + 1)
            )
            known = [place[g] for g in grams if g in place]
            odds = [math.exp(scores[s]) for s in known]
            sink = math.exp(told["sink"])
            total = sink * told["prior"][0] + sum(
                o * values[s] for o, s in zip(odds, known, strict=True)
            )
            out.append(total / (sink + sum(odds)))
        return out

    sides["the table alone, plain Python, text to answer"] = by_table, len(some)
    print("| | documents per second |\n|---|---|")
    for name, (side, documents) in sides.items():
        seconds = statistics.median(_timed(side)[1] for _ in range(3))
        print(f"| {name} | {documents / seconds:,.0f} |", flush=True)
    difference = np.abs(np.array(by_table()) - model.decision_function(some))
    same = float(
        np.mean(difference < 1e-9)
    )  # the short pattern splits numbers and addresses in another way than the rule
    print(
        f"texts for which the table's logit is the library's: {same:.0%}; median difference "
        f"{np.median(difference):.1e}"
    )


def main() -> None:
    jobs = {job.__name__: job for job in (growth, types, text, audits, larger, spill, predict)}
    parts = {
        "importance": importance_of,
        "train_text": train_text,
        "audit_text": audit_text,
        "vocabulary": vocabulary_of,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=[*jobs, "one"])
    parser.add_argument(
        "--most", type=int, default=5, help="largest power of ten of documents, or of token types"
    )
    parser.add_argument("--documents", type=int, help="of types, audits, larger and spill")
    parser.add_argument("--memory", default="2GB", help="of a worker, of audits")
    parser.add_argument(
        "--stream", action=argparse.BooleanOptionalAction, default=True, help="of audits"
    )
    parser.add_argument(
        "--tenth",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a tenth first, of audits",
    )
    parser.add_argument(
        "--folder",
        help="where audits keep the generated text, and look for it; by default it is removed",
    )
    parser.add_argument("--name", default="", help="ending of the stored results of audits")
    parser.add_argument("--cap", type=float, default=1.25, help="gigabytes for larger")
    parser.add_argument("--ngrams", type=int, default=1)
    parser.add_argument("--job", dest="inner", choices=parts, help=argparse.SUPPRESS)
    parser.add_argument("--arguments", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job == "one":
        print(json.dumps(parts[options.inner](**options.arguments)))
        return
    print(described("polars") + "\n")
    jobs[options.job](options)


if __name__ == "__main__":
    main()
