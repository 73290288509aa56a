"""The commands that an audit prints: remove its shortcuts, audit the copy, and compare the two."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from tokensieve.escape import printable

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

MOST_NAMED = 8  # tokens in a command


def mask_commands(audit: Audit, tokens: Sequence[str], whole: bool = False) -> tuple[str, str, str]:
    """The command that removes tokens (the `whole` of those in the audit's folder) from the source, read and split as it was; the
    one that audits the copy in the same way, empty if a CSV file with the source's columns cannot take its place; and the one that
    compares the two audits, empty with it."""
    corpus, settings, more = audit.learned.train.corpus, audit.settings, audit.more
    known = isinstance(more.get("source"), str)
    named = audit.learned.task.text_options(corpus, known)
    file = {"encoding", "separator", "header"}  # how the source is written; the copy is written as UTF-8 with commas
    words = ["mask", more["source"] if known else "SOURCE", *named, *_options(audit, file)]
    if whole and len(tokens) > MOST_NAMED and "out" in more:
        words += ["--audit", more["out"]]
    else:
        words += [part for token in tokens for part in ("--token", token)]
    mask, weights = _command(*words, "--out", "masked.csv"), settings.sample_weight
    columns = [*corpus.intake.columns, settings.by, settings.split, settings.environments, *settings.columns]
    elsewhere = any(one is not None for one in (settings.test, settings.having, settings.role))
    nested = any("." in str(name or "") for name in columns)
    if not known or "out" not in more or elsewhere or nested or not isinstance(weights, str | None):
        return mask, "", ""
    others = {field.name for field in fields(settings)} - file - {"limits", "text", "pairs", "budget"}
    own = _options(audit, others)
    again = _command("audit", "masked.csv", *named, *own, "--out", f"{more['out']}-masked")
    folder = f"./{more['out']}" if str(more["out"]).startswith("-") else more["out"]
    return mask, again, _command("compare", folder, f"{folder}-masked")


def _options(audit: Audit, names: Collection[str]) -> list[str]:
    """Those of the audit's options among some settings, and how it split texts into tokens, where they are not the defaults."""
    words = list[str]()
    for field in fields(audit.settings):
        value, notes = getattr(audit.settings, field.name), field.metadata.get("option", {})
        if field.name not in names or value == field.default or notes.get("flag") == "":
            continue
        flag = notes["flag"] or f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif isinstance(value, Mapping):
            words += [part for new, old in value.items() for part in (flag, f"{new}={','.join(old)}")]
        else:
            words += [flag, ",".join(value) if isinstance(value, list | tuple) else str(value)]
    words += ["--keep-case"] * bool(audit.more.get("keep_case"))
    for name, default in (("pattern", None), ("stop_words", None), ("tokenizer", "words"), ("html", "skip")):
        if audit.more.get(name, default) != default:
            words += [f"--{name.replace('_', '-')}", str(audit.more[name])]
    return words


def _command(*words: object) -> str:
    return " ".join(["tokensieve", *(shlex.quote(printable(str(word))) for word in words)])
