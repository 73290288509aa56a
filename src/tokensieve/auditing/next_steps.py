"""Commands to paste after an audit: remove the shortcuts, audit the copy in the same way, compare."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from tokensieve.auditing.data import AuditData
from tokensieve.auditing.findings import Finding
from tokensieve.escape import HIDDEN, printable, public_address
from tokensieve.text.settings import TokenSettings

MAX_NAMED_TOKENS = 8  # in a command; a longer one is hard to read, and `--audit` names them all
TOKEN_OPTIONS = frozenset(field.name for field in fields(TokenSettings))
# how a file is written; the masked copy is UTF-8 with commas, or JSON lines
FILE_OPTIONS = frozenset({"encoding", "separator", "header"})
# what the copy needs no more, or what the command names itself
NOT_FOR_COPY = FILE_OPTIONS | {"limits", "text", "pairs", "budget", "test", "split"}


@dataclass(frozen=True)
class NextCommands:
    """Commands that show what a model learns without some tokens, in order.

    Attributes:
        masks: write copies without the tokens: of the source, and of the test file if there is one.
        audit_again: audits the copies as the source was; "" if no command can.
        compare: compares the two audits; "" if there is no second one.
    """

    masks: tuple[str, ...]
    audit_again: str = ""
    compare: str = ""


def shortcut_tokens(shortcuts: Sequence[Finding]) -> list[str]:
    """What `mask` should cut of several findings, each token once."""
    return list(dict.fromkeys(token for finding in shortcuts for token in finding.mask))


def mask_command_over_budget(audit: AuditData, out: Path) -> str:
    """The command that copies the source without the tokens that exceed --fail-on."""
    return _command("mask", *_sources(audit), "--audit", out, "--out", _copy_names(audit).train)


def next_commands(audit: AuditData, tokens: Sequence[str]) -> NextCommands:
    """How to remove tokens from the source, read and split as it was, and to audit the copy."""
    settings = audit.settings
    text_options = audit.learned.task.text_options(
        audit.learned.train.corpus, audit.invocation is not None
    )
    reading = _written_options(audit, FILE_OPTIONS | TOKEN_OPTIONS | {"role"})
    copies = _copy_names(audit)
    removal = [*text_options, *reading, *_token_options(audit, tokens)]
    masks = [_command("mask", *_sources(audit), *removal, "--out", copies.train)]
    if isinstance(settings.test, str):
        masks.append(_command("mask", _as_path(settings.test), *removal, "--out", copies.test))

    is_from_python = settings.test is not None and not isinstance(settings.test, str)
    is_from_python |= not isinstance(settings.sample_weight, str | None)
    if audit.invocation is None or is_from_python or settings.having is not None:
        return NextCommands(tuple(masks))
    names = {field.name for field in fields(settings)} - NOT_FOR_COPY
    options = [*text_options, *_written_options(audit, names), *_split_options(audit, copies)]
    out = _as_path(audit.invocation.out)
    again = f"{out}-masked"
    return NextCommands(
        masks=tuple(masks),
        audit_again=_command("audit", copies.train, *options, "--out", again),
        compare=_command("compare", out, again),
    )


@dataclass(frozen=True)
class _CopyNames:
    """Files for the masked copies of the source and of its test file."""

    train: str
    test: str


def _copy_names(audit: AuditData) -> _CopyNames:
    """Names made from the audit's folder, so that a loop over several audits overwrites none."""
    nested = any("." in name for name in audit.learned.train.corpus.reading.columns)
    # chat messages and nested columns do not fit into CSV
    suffix = ".jsonl" if audit.settings.role is not None or nested else ".csv"
    stem = "masked"
    if audit.invocation is not None:
        stem = f"{_as_path(audit.invocation.out).rstrip('/')}-masked"
    return _CopyNames(train=f"{stem}{suffix}", test=f"{stem}-test{suffix}")


def _split_options(audit: AuditData, copies: _CopyNames) -> list[str]:
    """How the copy is split into training and test documents: as the source was."""
    settings = audit.settings
    if settings.test is not None:
        return ["--test", copies.test]
    if settings.split is not None:
        return ["--split", settings.split]
    if audit.test_given:  # the source has a test part; `mask` writes both into one file
        return ["--split", "split"]
    return []


def _token_options(audit: AuditData, tokens: Sequence[str]) -> list[str]:
    """Names the tokens one by one; many of them through the audit's folder, if it holds the same."""
    holds_shortcuts = audit.invocation is not None and audit.over_budget.is_empty()
    if len(tokens) > MAX_NAMED_TOKENS and holds_shortcuts:
        assert audit.invocation is not None
        if set(tokens) == set(shortcut_tokens(audit.shortcuts)):
            return ["--audit", audit.invocation.out]
    return [word for token in tokens for word in ("--token", token)]


def _sources(audit: AuditData) -> list[str]:
    """The sources as a command takes them."""
    if audit.invocation is None:
        return ["SOURCE"]
    given = audit.invocation.source
    return [_as_path(source) for source in ([given] if isinstance(given, str) else given)]


def _as_path(written: str) -> str:
    """A path that no command takes for an option."""
    if written.startswith("-") and written != "-":
        return f"./{written}"
    return written


def _written_options(audit: AuditData, names: Collection[str]) -> list[str]:
    """Those of the audit's settings with these names that are not the defaults, as options."""
    words: list[str] = []
    for field in fields(audit.settings):
        value = getattr(audit.settings, field.name)
        flag = field.metadata.get("option", {}).get("flag")
        has_no_option = flag == "" or "option" not in field.metadata
        # in Python, a tokenizer may be an object, which no command can name
        is_object = field.name == "tokenizer" and not isinstance(value, str | Path)
        if field.name in names and value != field.default and not has_no_option and not is_object:
            words += _option_words(flag or f"--{field.name.replace('_', '-')}", value)
    return words


def _option_words(flag: str, value: object) -> list[str]:
    """An option and its value, as the command line takes them."""
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        words = []
        for new, old in value.items():
            words += [flag, f"{new}={','.join(old)}"]
        return words
    if isinstance(value, list | tuple):
        return [flag, ",".join(map(str, value))]
    return [flag, str(value)]


def _command(*words: object) -> str:
    public = [public_address(str(word), HIDDEN) for word in words]
    quoted = [shlex.quote(printable(word)) for word in public]
    command = " ".join(["tokensieve", *quoted])
    if any("://" in word and HIDDEN in word for word in public):
        command += f"  # in place of {HIDDEN}, write what the address had there"
    return command
