"""The command line: reads arguments, calls the library, writes files, shows progress."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve import __version__
from tokensieve.errors import InputError

app = typer.Typer(
    name="tokensieve",
    help="Which tokens decide the label, which of them does the model look at, and do the two agree?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

SourceArgument = Annotated[
    str, typer.Argument(help="File (.csv .tsv .jsonl .parquet, also .gz), folder, `imdb` or `yelp`.")
]
TextOption = Annotated[str | None, typer.Option("--text", help="Column that holds the text.", metavar="COLUMN")]
LabelOption = Annotated[str | None, typer.Option("--label", help="Column that holds the label.", metavar="COLUMN")]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", help="Labels to merge: NEW=OLD,OLD (repeatable).", metavar="NEW=OLD,…")
]
DropOption = Annotated[list[str] | None, typer.Option("--drop", help="Labels to leave out: OLD,OLD.", metavar="OLD,…")]
TestOption = Annotated[
    str | None, typer.Option("--test", help="Test documents (else a seeded share).", metavar="SOURCE")
]
SplitOption = Annotated[
    str | None, typer.Option("--split", help="Column that says train or test for each row.", metavar="COLUMN")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of text files.")]
DuplicatesOption = Annotated[str, typer.Option("--duplicates", help="Repeated text with the same label: keep or drop.")]
NgramsOption = Annotated[int, typer.Option("--ngrams", help="Longest run of words that is one token.", min=1, max=5)]
MinimumOption = Annotated[int, typer.Option("--min-documents", help="A token must stand in so many documents.", min=1)]
TokenizerOption = Annotated[
    str | None, typer.Option("--tokenizer", help="Hugging Face tokenizer.json to use instead of words.", metavar="FILE")
]
CaseOption = Annotated[bool, typer.Option("--keep-case", help="Do not fold upper and lower case.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the split and the training.", min=0)]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no result on the terminal.")]
BaselineOption = Annotated[
    bool, typer.Option("--baseline/--no-baseline", help="Train TF-IDF + logistic regression for comparison.")
]


def _out(default: str) -> Any:
    return typer.Option("--out", help="Folder for the results.", metavar="FOLDER", show_default=default)


def _whole(name: str, explained: str, default: str, most: int | None = None) -> Any:
    """A whole number from one; None where it was not given, so that an option that does not apply is told from a default."""
    return typer.Option(name, help=explained, min=1, max=most, show_default=default)


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False) -> None:
    if version:
        print(f"tokensieve {__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, _out("tokensieve-demo")] = Path("tokensieve-demo"),
    seed: SeedOption = 0,
    ngrams: NgramsOption = 1,
    quiet: QuietOption = False,
) -> None:
    """The main job on built-in generated reviews whose truth is known, offline."""
    from tokensieve.corpus import read_corpus
    from tokensieve.demo import demo_reviews
    from tokensieve.terminal import show_truth

    reviews = demo_reviews(seed=seed)
    names = ["negative" if label == 0 else "positive" for label in reviews.labels]
    read: Callable[[], Any] = lambda: read_corpus((reviews.texts.to_list(), names))  # noqa: E731
    result = _audit(read, out, quiet, report=True, seed=seed, ngrams=ngrams, name="2,000 generated reviews")
    if not quiet:
        show_truth(result, reviews)


@app.command()
def audit(
    source: SourceArgument,
    text: TextOption = None,
    label: LabelOption = None,
    group: GroupOption = None,
    drop: DropOption = None,
    test: TestOption = None,
    split: SplitOption = None,
    encoding: EncodingOption = "utf-8",
    duplicates: DuplicatesOption = "keep",
    ngrams: NgramsOption = 1,
    min_documents: MinimumOption = 3,
    tokenizer: TokenizerOption = None,
    keep_case: CaseOption = False,
    baseline: BaselineOption = True,
    seed: SeedOption = 0,
    out: Annotated[Path, _out("tokensieve-audit")] = Path("tokensieve-audit"),
    quiet: QuietOption = False,
) -> None:
    """The main job: importance of every token, the classifier, what it selects, and a page that shows it all."""
    read = _reader(source, text, label, group, drop, test, split, encoding, duplicates)
    settings: dict[str, Any] = {"ngrams": ngrams, "min_documents": min_documents, "seed": seed, "baseline": baseline}
    options = {"text": text, "label": label, "group": group, "drop": drop, "test": test, "split": split}
    _audit(read, out, quiet, report=True, tokenizer=tokenizer, keep_case=keep_case, options=options, **settings)


@app.command()
def train(
    source: SourceArgument,
    text: TextOption = None,
    label: LabelOption = None,
    group: GroupOption = None,
    drop: DropOption = None,
    test: TestOption = None,
    split: SplitOption = None,
    encoding: EncodingOption = "utf-8",
    duplicates: DuplicatesOption = "keep",
    ngrams: NgramsOption = 1,
    min_documents: MinimumOption = 3,
    tokenizer: TokenizerOption = None,
    keep_case: CaseOption = False,
    seed: SeedOption = 0,
    out: Annotated[Path, _out("tokensieve-model")] = Path("tokensieve-model"),
    quiet: QuietOption = False,
) -> None:
    """Train the classifier and save it (no pickle), with its table for other languages."""
    read = _reader(source, text, label, group, drop, test, split, encoding, duplicates)
    settings: dict[str, Any] = {"ngrams": ngrams, "min_documents": min_documents, "seed": seed, "baseline": False}
    options = {"text": text, "label": label, "group": group, "drop": drop, "test": test, "split": split}
    _audit(read, out, quiet, report=False, tokenizer=tokenizer, keep_case=keep_case, options=options, **settings)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `train` or `audit` wrote.")],
    source: SourceArgument,
    text: TextOption = None,
    encoding: EncodingOption = "utf-8",
    out: Annotated[Path | None, typer.Option("--out", help="Folder for predictions.csv.", metavar="FOLDER")] = None,
    quiet: QuietOption = False,
) -> None:
    """Answer new documents: one line of CSV each (row, class, probability, answer, unknown words)."""
    import polars as pl

    from tokensieve.corpus import read_texts
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model_file import load_model

    if out:
        check_writable(out)
    classifier = load_model(model)
    texts = read_texts(source, text=text, encoding=encoding)
    answered = classifier.answer(texts.texts)
    frame = answered.insert_column(0, pl.Series("row", texts.rows))
    table = csv_table(frame)
    if out:
        write_all(out, {"predictions.csv": table})
        _say(quiet, f"{len(frame):,} predictions in {out / 'predictions.csv'}")
    else:
        sys.stdout.buffer.write(table)
        sys.stdout.flush()


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(help="Folder that `train` or `audit` wrote.")],
    text: Annotated[str, typer.Argument(help="The text, or - for standard input.")],
    label: Annotated[
        str | None,
        typer.Option("--label", help="Class to explain (else the second of two, or the answer).", metavar="CLASS"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Take one answer apart: the contribution of every token, which add up to the answer."""
    from tokensieve.model_file import load_model
    from tokensieve.terminal import show_explanation

    classifier = load_model(model)
    if text == "-":
        text = sys.stdin.buffer.read().decode(errors="replace")
    classes = [str(c) for c in classifier.classes_]
    if label is not None and label not in classes:
        raise InputError(f"the model has no class {label!r}: it knows {', '.join(classes)}")
    wanted = None if label is None else classifier.classes_[classes.index(label)]
    found = classifier.explain([text], wanted)[0]
    if as_json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        show_explanation(classifier, text, found)


@app.command()
def verify(
    source: Annotated[str | None, typer.Argument(help="As for audit; generated documents if none is named.")] = None,
    text: TextOption = None,
    label: LabelOption = None,
    group: GroupOption = None,
    drop: DropOption = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of text files.", show_default="utf-8")
    ] = None,
    ngrams: Annotated[int | None, _whole("--ngrams", "Longest run of words that is one token.", "1", 5)] = None,
    min_documents: Annotated[
        int | None, _whole("--min-documents", "A token must stand in so many documents.", "20")
    ] = None,
    documents: Annotated[int | None, _whole("--documents", "Generated documents.", "200")] = None,
    types: Annotated[int | None, _whole("--types", "Generated token types |S|.", "70")] = None,
    relevant: Annotated[int | None, _whole("--relevant", "Types among them that carry the label.", "20")] = None,
    length: Annotated[int | None, _whole("--length", "Tokens T of a generated document.", "8")] = None,
    d: Annotated[int | None, _whole("--d", "Dimension of the embeddings.", "512; generated documents: 1024")] = None,
    eta: Annotated[
        float | None, typer.Option("--eta", help="Size of the first step.", show_default="from the data")
    ] = None,
    max_norm: Annotated[float, typer.Option("--max-norm", help="Follow p up to this norm.")] = 20_000.0,
    max_seconds: Annotated[float, typer.Option("--max-seconds", help="Time for the flow, and for max margin.")] = 600.0,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep the flow here, and go on from it.", metavar="FILE")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of generated documents and of the start.", min=0)] = 0,
    out: Annotated[Path, _out("tokensieve-verify")] = Path("tokensieve-verify"),
    quiet: QuietOption = False,
) -> None:
    """The theory's claims on this data, with certificates: one step, gradient flow, selection, max margin."""
    from tokensieve.theory.curve import FlowSettings

    generated = {"documents": documents, "types": types, "relevant": relevant, "length": length}
    read: dict[str, Any] = {"text": text, "label": label, "group": group, "drop": drop, "encoding": encoding}
    read |= {"ngrams": ngrams, "min_documents": min_documents}
    for name, value in (read if source is None else generated).items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise InputError(
                f"{option} is for documents that are read: name a SOURCE" if source is None else
                f"{option} is for generated documents: leave it out, or leave out the SOURCE {source!r}"
            )  # fmt: skip
    if resume and (resume.is_dir() or not resume.parent.is_dir()):
        raise InputError(f"cannot keep the flow in {str(resume)!r}: name a file in a folder that exists")
    if not (0 < max_norm < math.inf and max_seconds > 0):
        raise InputError(f"--max-norm {max_norm:g} and --max-seconds {max_seconds:g} must be positive numbers")
    if source is None:
        settings = {
            "documents": documents or 200,
            "types": types or 70,
            "relevant": relevant or 20,
            "length": length or 8,
        }
        load: Callable[..., Any] = lambda tell: _generated(seed=seed, **settings)  # noqa: E731
    else:
        settings = {"ngrams": ngrams or 1, "min_documents": min_documents or 20}
        reader = _reader(source, text, label, group, drop, None, None, encoding or "utf-8", "keep")
        load = lambda tell: _counted(reader, tell, **settings)  # noqa: E731
    options = {"d": d or (1024 if source is None else 512), "eta": eta, "seed": seed, "checkpoint": resume}
    budget = FlowSettings(max_norm=max_norm, max_seconds=max_seconds)
    _verify(load, settings, options, budget, out, quiet)


def _generated(documents: int, types: int, relevant: int, length: int, seed: int) -> tuple[Any, ...]:
    """Name, counts, rows and notes of documents that satisfy Assumption 1 exactly."""
    from tokensieve.theory.generators import single_token

    counts = single_token(documents, types, length, relevant, seed=seed).counts
    return "generated documents that satisfy Assumption 1", counts, range(1, documents + 1), []


def _counted(
    read: Callable[[], Any], tell: Callable[[str, float], None], ngrams: int, min_documents: int
) -> tuple[Any, ...]:
    """Name, counts, rows and notes of the training documents of a source."""
    from tokensieve.counts import Counts
    from tokensieve.tokens import WordTokenizer, learn_vocabulary, tokenize

    corpus = read()
    if len(corpus.classes) != 2:
        raise InputError(
            f"the theory is about two classes, and {corpus.name} has {len(corpus.classes)}: "
            "merge them with --group NEW=OLD,OLD or leave some out with --drop"
        )
    tokenizer = WordTokenizer()
    stream = tokenize(corpus.texts, tokenizer, lambda done: tell("tokenizing", done / len(corpus.texts)))
    vocabulary = learn_vocabulary(stream, tokenizer, ngrams, min_documents)
    counts = Counts(vocabulary.count(stream)[0], corpus.labels, corpus.classes, vocabulary.tokens)
    return corpus.name, counts, corpus.rows, corpus.intake.lines()


def _verify(
    load: Callable[..., Any], settings: dict[str, Any], options: dict[str, Any], budget: Any, out: Path, quiet: bool
) -> None:
    """Load, verify, write everything or nothing, and show the result."""
    from dataclasses import asdict

    import numpy as np

    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.study import Study
    from tokensieve.report.theory import PICTURES, render_theory, theory_pictures
    from tokensieve.terminal_theory import show_study
    from tokensieve.theory.verify import verify as run

    start = time.perf_counter()
    check_writable(out)
    with _progress(quiet) as tell:
        tell("reading", 0.0)
        name, counts, rows, notes = load(tell)
        seconds = {"reading": time.perf_counter() - start}
        found = run(counts, settings=budget, progress=tell, **options)
        settings |= {"d": options["d"], "eta": found.step.eta, **asdict(budget)}
        seconds |= found.seconds
        study = Study(name, counts, np.asarray(rows), found, notes, settings, options["seed"], __version__, seconds)
        tell("writing", 0.0)
        lap = time.perf_counter()
        tables = {"tokens.csv": study.tokens(), "flow.csv": study.curve(), "support.csv": study.support()}
        files: dict[str, Any] = {file: csv_table(table) for file, table in tables.items()}
        files |= {"report.html": render_theory(study)}
        files |= {f"pictures/{file}": picture for file, picture in theory_pictures(study).items()}
        seconds["report"] = time.perf_counter() - lap
        seconds["total"] = time.perf_counter() - start
        files["summary.json"] = json.dumps(study.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        write_all(out, files)
        for earlier in {f"pictures/{picture}.{kind}" for picture in PICTURES for kind in ("svg", "png")} - set(files):
            (out / earlier).unlink(missing_ok=True)  # of another run; it would stand beside a page that contradicts it
    if not quiet:
        show_study(study, out)


def _reader(
    source: str, text: str | None, label: str | None, group: list[str] | None, drop: list[str] | None,
    test: str | None, split: str | None, encoding: str, duplicates: str,
) -> Callable[[], Any]:  # fmt: skip
    """Check the options now, read later."""
    groups: dict[str, list[str]] = {}
    for item in group or []:
        new, equals, old = item.partition("=")
        if not (new and equals and old):
            raise InputError(f"--group {item!r} is not of the form NEW=OLD,OLD (for example negative=1,2)")
        groups.setdefault(new, []).extend(old.split(","))
    dropped = [name for item in drop or [] for name in item.split(",")]

    def read() -> Any:
        from tokensieve.corpus import read_corpus

        return read_corpus(
            source, text=text, label=label, group=groups, drop=dropped, split=split, test=test, encoding=encoding,
            duplicates=duplicates,  # type: ignore[arg-type]
        )  # fmt: skip

    return read


def _audit(
    read: Callable[[], Any], out: Path, quiet: bool, report: bool, tokenizer: str | None = None, keep_case: bool = False,
    name: str | None = None, options: dict[str, Any] | None = None, **settings: Any,
) -> Any:  # fmt: skip
    """Read, audit, write everything or nothing, and show the result."""
    from dataclasses import replace

    from tokensieve.auditing import Settings
    from tokensieve.auditing import audit as run
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model_file import model_files
    from tokensieve.terminal import show_audit
    from tokensieve.tokens import PieceTokenizer, WordTokenizer

    start = time.perf_counter()
    if tokenizer and keep_case:
        raise InputError(
            "--keep-case is for words; a tokenizer file folds case or not by itself: leave one of the two out"
        )
    check_writable(out)
    splitter = WordTokenizer(lowercase=not keep_case) if tokenizer is None else PieceTokenizer(tokenizer)
    with _progress(quiet) as tell:
        tell("reading", 0.0)
        corpus = read()
        if name:
            corpus = replace(corpus, name=name)
        result = run(corpus, Settings(**settings), splitter, tell, {"reading": time.perf_counter() - start})
        result.settings.update(options or {}, tokenizer=tokenizer or "words", keep_case=keep_case)
        tell("writing", 0.0)
        lap = time.perf_counter()
        files: dict[str, Any] = {"tokens.csv": csv_table(result.tokens)} | model_files(result.model)
        if report:
            from tokensieve.report import pictures, render

            files["report.html"] = render(result)
            files |= {f"pictures/{name}": picture for name, picture in pictures(result).items()}
        result.seconds["report"] = time.perf_counter() - lap
        result.seconds["total"] = time.perf_counter() - start
        files["summary.json"] = json.dumps(result.to_dict(), ensure_ascii=False, indent=1)
        write_all(out, files)
    if not quiet:
        show_audit(result, out, report)
    return result


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error that vanishes when it is done, or when that is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(stage: str, share: float) -> None:
            bar.update(task, description=stage, total=1.0 if share else None, completed=share)

        yield tell


def _say(quiet: bool, line: str) -> None:
    if not quiet:
        print(line, file=sys.stderr)
