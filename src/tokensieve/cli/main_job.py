"""demo, audit, train, predict, explain."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.options import (
    BaselineOption,
    CaseOption,
    ClusterOption,
    DropOption,
    DuplicatesOption,
    EncodingOption,
    GroupOption,
    LabelOption,
    MinimumOption,
    NgramsOption,
    PicturesOption,
    QuietOption,
    SeedOption,
    SourceArgument,
    SplitOption,
    StreamOption,
    TestOption,
    TextOption,
    TokenizerOption,
    advise,
    app,
    out_option,
    progress,
    reader,
    say,
)
from tokensieve.errors import InputError

_OURS = re.compile(r"(value|score|top)(-class-\d+)?|alignment|over-budget")


@app.command()
def demo(
    out: Annotated[Path, out_option("tokensieve-demo")] = Path("tokensieve-demo"),
    seed: SeedOption = 0,
    ngrams: NgramsOption = 1,
    quiet: QuietOption = False,
) -> None:
    """The main job on built-in generated reviews whose truth is known, offline."""
    from tokensieve.auditing.demo import demo_reviews
    from tokensieve.report.terminal import show_truth
    from tokensieve.text.corpus import read_corpus

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
    stream: StreamOption = False,
    ngrams: NgramsOption = 1,
    min_documents: MinimumOption = 3,
    tokenizer: TokenizerOption = None,
    keep_case: CaseOption = False,
    baseline: BaselineOption = True,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", help="Exit 3 if a token exceeds it, such as 0.9@1%.", metavar="DIFFERENCE@SHARE"),
    ] = None,
    pictures: PicturesOption = True,
    seed: SeedOption = 0,
    out: Annotated[Path, out_option("tokensieve-audit")] = Path("tokensieve-audit"),
    quiet: QuietOption = False,
) -> None:
    """The main job: importance of every token, the classifier, what it selects, and a page that shows it all."""
    from tokensieve.report.terminal import show_over_budget

    read = reader(source, text, label, group, drop, test, split, encoding, duplicates, stream)
    advise(source, stream, quiet)
    settings: dict[str, Any] = {"ngrams": ngrams, "min_documents": min_documents, "seed": seed, "baseline": baseline}
    options = {"text": text, "label": label, "group": group, "drop": drop, "test": test, "split": split}
    if fail_on is not None:
        from tokensieve.auditing.budget import Budget

        settings["budget"] = Budget.parse(fail_on)
    found = _audit(
        read,
        out,
        quiet,
        report=True,
        draw=pictures,
        tokenizer=tokenizer,
        keep_case=keep_case,
        options=options,
        **settings,
    )
    if not found.over_budget.is_empty():
        if not quiet:
            show_over_budget(found, source, out)
        raise typer.Exit(3)


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
    stream: StreamOption = False,
    ngrams: NgramsOption = 1,
    min_documents: MinimumOption = 3,
    tokenizer: TokenizerOption = None,
    keep_case: CaseOption = False,
    cluster: ClusterOption = None,
    seed: SeedOption = 0,
    out: Annotated[Path, out_option("tokensieve-model")] = Path("tokensieve-model"),
    quiet: QuietOption = False,
) -> None:
    """Train the classifier and save it (no pickle), with its table for other languages."""
    read = reader(source, text, label, group, drop, test, split, encoding, duplicates, stream)
    advise(source, stream, quiet)
    if cluster is not None:
        from tokensieve.cli.cluster import train_on_cluster

        train_on_cluster(read, cluster, out, quiet, _splitter(tokenizer, keep_case), ngrams, min_documents, seed)
        return
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

    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.storage import load_model
    from tokensieve.text.corpus import read_texts

    if out:
        check_writable(out)
    classifier = load_model(model)
    texts = read_texts(source, text=text, encoding=encoding)
    answered = classifier.answer(texts.texts)
    frame = answered.insert_column(0, pl.Series("row", texts.rows))
    table = csv_table(frame)
    if out:
        write_all(out, {"predictions.csv": table})
        say(quiet, f"{len(frame):,} predictions in {out / 'predictions.csv'}")
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
    from tokensieve.model.storage import load_model
    from tokensieve.report.terminal import show_explanation

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


def _splitter(tokenizer: str | None, keep_case: bool) -> Any:
    from tokensieve.text.tokenizers import PieceTokenizer, WordTokenizer

    if tokenizer and keep_case:
        raise InputError(
            "--keep-case is for words; a tokenizer file folds case or not by itself: leave one of the two out"
        )
    return WordTokenizer(lowercase=not keep_case) if tokenizer is None else PieceTokenizer(tokenizer)


def _audit(
    read: Callable[[], Any], out: Path, quiet: bool, report: bool, draw: bool = True, tokenizer: str | None = None,
    keep_case: bool = False, name: str | None = None, options: dict[str, Any] | None = None, **settings: Any,
) -> Any:  # fmt: skip
    """Read, audit, write everything or nothing, and show the result."""
    from dataclasses import replace

    from tokensieve.auditing.run import Settings
    from tokensieve.auditing.run import audit as run
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.storage import model_files
    from tokensieve.report.terminal import show_audit

    start = time.perf_counter()
    splitter = _splitter(tokenizer, keep_case)
    check_writable(out)
    with progress(quiet) as tell:
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
            files |= {f"pictures/{name}": picture for name, picture in (pictures(result) if draw else {}).items()}
        if result.settings["budget"]:
            files["over-budget.csv"] = csv_table(result.to_review)
        result.seconds["report"] = time.perf_counter() - lap
        result.seconds["total"] = time.perf_counter() - start
        files["summary.json"] = json.dumps(result.to_dict(), ensure_ascii=False, indent=1)
        write_all(out, files)
        for earlier in [out / "over-budget.csv", *(out / "pictures").glob("*.*")] if report else []:
            if _OURS.fullmatch(earlier.stem) and str(earlier.relative_to(out)) not in files:
                earlier.unlink(missing_ok=True)  # of another run; it would stand beside a page that contradicts it
        if report and not draw:
            with suppress(OSError):
                (out / "pictures").rmdir()
    if not quiet:
        show_audit(result, out, report)
    return result
