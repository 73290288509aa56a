"""Commands to paste after an audit: remove or balance the shortcuts, audit the copy, compare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import polars as pl

from tokensieve.auditing.any_audit import AnyAudit
from tokensieve.auditing.balance_plan import BalancePlan
from tokensieve.auditing.findings import Finding
from tokensieve.escape import HIDDEN, public_address, shell_word
from tokensieve.name_lists import joined_group, joined_names
from tokensieve.read.settings import ReadSettings
from tokensieve.text.settings import TokenSettings

MAX_NAMED_TOKENS = 8  # in a command; a longer one is hard to read, and `--audit` names them all
TOKEN_OPTIONS = frozenset(field.name for field in fields(TokenSettings))
# how a file is written; a copy is UTF-8 with commas, or JSON lines
FILE_OPTIONS = frozenset({"encoding", "separator", "header", "quotes", "sheet"})
# options that the audit of a copy does not repeat: how the source file was written, and those that
# the command names itself
NOT_FOR_COPY = FILE_OPTIONS | {
    "limits",
    "text",
    "pairs",
    "budget",
    "test",
    "split",
    "predictions",
    "predicted",
}
# `balance` reads labels as well, but no test documents, and writes the weights
BALANCE_OPTIONS = (
    (frozenset(field.name for field in fields(ReadSettings)) | TOKEN_OPTIONS)
    - NOT_FOR_COPY
    - {"sample_weight", "stream", "environments"}
)


# kinds of findings whose rows `mask --leave-out` can leave out
KINDS_OF_ROWS = ("leak", "repeated", "contradiction", "labels")


@dataclass(frozen=True)
class NextCommands:
    """Commands that show what a model learns without the shortcuts, in order.

    Attributes:
        masks: write copies without the tokens: of the source, and of the test file if there is one.
        balance: writes a copy of the source, or of its masked copy, with weights; "" without any.
        audit_again: audits the copy as the source was; "" if no command can.
        compare: compares the two audits; "" if there is no second one.
    """

    masks: tuple[str, ...] = ()
    balance: str = ""
    audit_again: str = ""
    compare: str = ""

    @property
    def lines(self) -> list[str]:
        """The commands there are."""
        return [
            line for line in (*self.masks, self.balance, self.audit_again, self.compare) if line
        ]


def shortcut_tokens(shortcuts: Sequence[Finding]) -> list[str]:
    """The tokens that `mask` should cut to remove some findings, each once."""
    return list(dict.fromkeys(token for finding in shortcuts for token in finding.mask))


def mask_command_over_budget(audit: AnyAudit, out: Path) -> str:
    """The command that copies the source without the tokens that exceed --fail-on."""
    copies = _copy_names(audit)
    return _command("mask", *_sources(audit), "--audit", out, "--out", copies.within_limit)


def next_commands(
    audit: AnyAudit, tokens: Sequence[str], plan: BalancePlan | None = None
) -> NextCommands:
    """The shell commands that repair the source, audit the copy, and compare both audits.

    They read and split the data as the audit did. Where a step cannot be done by a command, it is
    left out with those after it.

    Args:
        audit: what found the shortcuts.
        tokens: what `mask` cuts from the texts; may be empty.
        plan: what `balance` makes up for with weights; None for nothing.
    """
    masks = _mask_commands(audit, tokens) if tokens else ()
    balance = ""
    if plan is not None and not plan.is_empty and _can_balance(audit):
        balance = _balance_command(audit, plan, after_mask=bool(masks))
    # of pairs, `audit` cannot read the weights that `balance` writes
    is_weighted = bool(balance) and audit.learned.task.size == 1
    if not masks and not is_weighted:
        return NextCommands(balance=balance)
    if not _can_audit_again(audit, is_masked=bool(masks)):
        return NextCommands(masks=masks, balance=balance)

    copies = _copy_names(audit)
    assert audit.invocation is not None
    out = _as_path(audit.invocation.out)
    again = f"{out}-balanced" if is_weighted else f"{out}-masked"
    names = {field.name for field in fields(audit.settings)} - NOT_FOR_COPY
    options = [
        *_text_options(audit),
        *_written_options(audit, names),
        *_split_options(audit, copies, is_masked=bool(masks)),
    ]
    if is_weighted:
        options += ["--weight", "weight"]
    copy = copies.balanced if is_weighted else copies.masked
    return NextCommands(
        masks=masks,
        balance=balance,
        audit_again=_command("audit", copy, *options, "--out", again),
        compare=_compare_command(audit, again, _judging_options(audit)),
    )


def commands_for_rows(audit: AnyAudit, finding: Finding) -> NextCommands:
    """The shell commands that leave out a finding's rows, or keep groups whole; then audit again.

    None for other kinds of findings, and where the audit cannot be repeated by a command.
    """
    if audit.invocation is None or audit.learned.task.known_totals:
        return NextCommands()
    if finding.kind == "groups":
        return _group_commands(audit)
    if finding.kind not in KINDS_OF_ROWS or finding.rows.is_empty():
        return NextCommands()
    has_test_file = isinstance(audit.settings.test, str)
    is_of_test = finding.kind == "leak" and has_test_file
    if is_of_test and _is_whole_test(audit, finding):
        return NextCommands()
    out = _as_path(audit.invocation.out)
    again = f"{out}-without-{finding.kind}"
    copy = f"{again}{_copy_names(audit).suffix}"
    masks = (_leave_out_command(audit, finding, copy),)
    has_other_file = has_test_file and bool(_written_options(audit, FILE_OPTIONS))
    if has_other_file or not _can_audit_again(audit, is_masked=True):
        return NextCommands(masks=masks)
    split = _split_options(audit, _copy_names(audit), is_masked=False)
    if is_of_test:
        split = ["--test", copy]
    audited = _sources(audit) if is_of_test else [copy]
    return NextCommands(
        masks=masks,
        audit_again=_audit_command(audit, audited, split, again),
        compare=_compare_command(audit, again),
    )


def _is_whole_test(audit: AnyAudit, finding: Finding) -> bool:
    """Whether a finding is about all test documents, so that without them there is no test."""
    of_test = finding.rows.filter(pl.col("part") == "test")
    return of_test["row"].n_unique() >= int(audit.documents["test"])


def _leave_out_command(audit: AnyAudit, finding: Finding, copy: str) -> str:
    """Copies the source, or of a leak into a test file that file, without a finding's rows."""
    assert audit.invocation is not None
    reading = _written_options(audit, FILE_OPTIONS | {"role"})
    options = [*_text_options(audit), *reading, "--audit", _as_path(audit.invocation.out)]
    for kind in _kinds_to_leave_out(audit, finding):
        options += ["--leave-out", kind]
    sources = _sources(audit)
    if isinstance(audit.settings.test, str):
        is_of_test = finding.kind == "leak"
        options += ["--part", "test" if is_of_test else "train"]
        if is_of_test:
            sources = [_as_path(audit.settings.test)]
    return _command("mask", *sources, *options, "--out", copy)


def _kinds_to_leave_out(audit: AnyAudit, finding: Finding) -> list[str]:
    """The finding's kind; copies on both sides of a random split go together, or the next split
    would part what the first one kept together."""
    is_about_copies = finding.kind in ("leak", "repeated")
    if audit.test_given or not is_about_copies:
        return [finding.kind]
    found = {other.kind for other in audit.findings if not other.rows.is_empty()}
    return [kind for kind in ("leak", "repeated") if kind in found]


def _group_commands(audit: AnyAudit) -> NextCommands:
    """The same audit with the groups of a column kept whole."""
    groups = audit.learned.train.corpus.reading.likely_groups
    if groups is None or not _can_audit_again(audit, is_masked=True):
        return NextCommands()
    assert audit.invocation is not None
    out = _as_path(audit.invocation.out)
    again = f"{out}-by-group"
    split = _split_options(audit, _copy_names(audit), is_masked=False)
    reading = _written_options(audit, FILE_OPTIONS)
    options = [*reading, *split, "--by", groups.column]
    return NextCommands(
        audit_again=_audit_command(audit, _sources(audit), options, again),
        compare=_compare_command(audit, again),
    )


def _audit_command(
    audit: AnyAudit, sources: Sequence[str], options: Sequence[str], out: str
) -> str:
    """The audit of other sources with the same settings."""
    names = {field.name for field in fields(audit.settings)} - NOT_FOR_COPY
    written = _written_options(audit, names)
    return _command("audit", *sources, *_text_options(audit), *written, *options, "--out", out)


def _compare_command(audit: AnyAudit, again: str, options: Sequence[str] = ()) -> str:
    """Compares the audit with the one in another folder; "" for scores, which have no such
    comparison."""
    if audit.learned.train.corpus.scores is not None:
        return ""
    assert audit.invocation is not None
    out = _as_path(audit.invocation.out)
    return _command("compare", out, again, *options, "--out", f"{again}-compare")


def _mask_commands(audit: AnyAudit, tokens: Sequence[str]) -> tuple[str, ...]:
    """Copies the source without the tokens, and the test file if there is one."""
    copies = _copy_names(audit)
    reading = _written_options(audit, FILE_OPTIONS | TOKEN_OPTIONS | {"role"})
    options = [*_text_options(audit), *reading, *_token_options(audit, tokens)]
    masks = [_command("mask", *_sources(audit), *options, "--out", copies.masked)]
    if isinstance(audit.settings.test, str):
        test = _as_path(audit.settings.test)
        masks.append(_command("mask", test, *options, "--out", copies.masked_test))
    return tuple(masks)


def _balance_command(audit: AnyAudit, plan: BalancePlan, after_mask: bool) -> str:
    """Weights the source, or its masked copy if there is one."""
    copies = _copy_names(audit)
    sources = [copies.masked] if after_mask else _sources(audit)
    names = BALANCE_OPTIONS if after_mask else BALANCE_OPTIONS | FILE_OPTIONS
    options = [*_text_options(audit), *_written_options(audit, names)]
    if audit.settings.split is not None:
        options += ["--split", audit.settings.split]
    elif after_mask and audit.test_given and audit.settings.test is None:
        options += ["--split", "split"]
    options += [word for token in plan.tokens for word in ("--token", token)]
    if plan.with_length:
        options.append("--length")
    return _command("balance", *sources, *options, "--out", copies.balanced)


def _can_balance(audit: AnyAudit) -> bool:
    """Whether `balance` can read the source as the audit did: it writes weights of its own."""
    settings = audit.settings
    return settings.sample_weight is None and settings.having is None and settings.role is None


def _can_audit_again(audit: AnyAudit, is_masked: bool) -> bool:
    """Whether one command can audit the copy as the source was audited."""
    settings = audit.settings
    is_from_python = settings.test is not None and not isinstance(settings.test, str)
    is_from_python |= not isinstance(settings.sample_weight, str | None)
    if audit.invocation is None or is_from_python or settings.having is not None:
        return False
    # the test file is read as it is, with options that do not fit the copy
    is_read_otherwise = bool(_written_options(audit, FILE_OPTIONS))
    return is_masked or settings.test is None or not is_read_otherwise


def _judging_options(audit: AnyAudit) -> list[str]:
    """Options with which `compare` judges both models on the test file, where a shortcut misleads.

    None without a test file, or if no shortcut points to a class.
    """
    is_for_labels = audit.learned.task.classifies
    has_mark = any(finding.tokens and finding.label for finding in audit.shortcuts)
    if is_for_labels and has_mark and isinstance(audit.settings.test, str):
        return ["--on", _as_path(audit.settings.test)]
    return []


def _text_options(audit: AnyAudit) -> list[str]:
    """The columns of the texts."""
    answers = audit.settings.columns_of_pairs
    if answers:
        return ["--pairs", joined_names(answers)]
    task = audit.learned.task
    return task.text_options(audit.learned.train.corpus, audit.invocation is not None)


@dataclass(frozen=True)
class _CopyNames:
    """Files for the copies of the source and of its test file."""

    masked: str
    masked_test: str
    balanced: str
    within_limit: str  # without the tokens that exceed --fail-on
    suffix: str  # of all of them


def _copy_names(audit: AnyAudit) -> _CopyNames:
    """Names made from the audit's folder, so that a loop over several audits overwrites none."""
    nested = any("." in name for name in audit.learned.train.corpus.reading.columns)
    # chat messages and nested columns do not fit into CSV
    suffix = ".jsonl" if audit.settings.role is not None or nested else ".csv"
    start = ""
    if audit.invocation is not None:
        start = f"{_as_path(audit.invocation.out).rstrip('/')}-"
    return _CopyNames(
        masked=f"{start}masked{suffix}",
        masked_test=f"{start}masked-test{suffix}",
        balanced=f"{start}balanced{suffix}",
        within_limit=f"{start}within-limit{suffix}",
        suffix=suffix,
    )


def _split_options(audit: AnyAudit, copies: _CopyNames, is_masked: bool) -> list[str]:
    """Options that split the copy into training and test documents as the source was."""
    settings = audit.settings
    if settings.test is not None:
        return ["--test", copies.masked_test if is_masked else _as_path(settings.test)]
    if settings.split is not None:
        return ["--split", settings.split]
    if audit.test_given:  # the source has a test part; `mask` writes both into one file
        return ["--split", "split"]
    return []


def _token_options(audit: AnyAudit, tokens: Sequence[str]) -> list[str]:
    """Names the tokens one by one, or by the folder of the audit, if it has the same.

    The folder is better for many tokens, and for words of a lexicon: it also has the other words,
    in which the same characters are to stay.
    """
    holds_shortcuts = audit.invocation is not None and audit.over_budget.is_empty()
    is_better = len(tokens) > MAX_NAMED_TOKENS or _has_lexicon(audit)
    if is_better and holds_shortcuts:
        assert audit.invocation is not None
        if set(tokens) == set(shortcut_tokens(audit.shortcuts)):
            return ["--audit", audit.invocation.out]
    return [word for token in tokens for word in ("--token", token)]


def _has_lexicon(audit: AnyAudit) -> bool:
    """Whether the tokens are words of scripts without spaces that the training texts decide."""
    vocabulary = audit.learned.model.vocabulary
    assert vocabulary is not None, "a model of an audit has its vocabulary"
    settings = vocabulary.tokenizer.to_dict()
    return "lexicon" in settings.get("base", settings)


def _sources(audit: AnyAudit) -> list[str]:
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


def _written_options(audit: AnyAudit, names: Collection[str]) -> list[str]:
    """The settings with these names, written as options; those with their default are left out."""
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
            words += [flag, joined_group(new, old)]
        return words
    if isinstance(value, list | tuple):
        return [flag, joined_names(value)]
    return [flag, str(value)]


def _command(*words: object) -> str:
    public = [public_address(str(word), HIDDEN) for word in words]
    quoted = [shell_word(word) for word in public]
    command = " ".join(["tokensieve", *quoted])
    if any("://" in word and HIDDEN in word for word in public):
        command += f"  # in place of {HIDDEN}, write what the address had there"
    return command
