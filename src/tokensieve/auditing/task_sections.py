"""The parts of an audit's report that differ between labels and preference pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from tokensieve.auditing.data import AuditData
from tokensieve.auditing.phrases import quoted
from tokensieve.auditing.preferences import ALIKE, PreferenceFacts
from tokensieve.auditing.table_cells import cells_of
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.report.blocks import Block, Column, Section, Table, Text
from tokensieve.task.tasks import Preferences, Task
from tokensieve.wording import percent, plain, plural

MAX_WORDS_QUOTED = 3
MAX_ROWS = 15  # of a table of tokens that win or lose
_WIN_COLUMNS = (
    Column("Token", "token"),
    Column("Pairs", "count"),
    Column("Wins", "rate", bar=True),
    Column("Wins at equal length", "rate", bar=True),
    Column("q", "chance", extra=True),
)
_WIN_CELLS = (
    "token",
    "pairs",
    ("win_rate", "low", "high"),
    ("equal_length_win_rate", "equal_length_low", "equal_length_high"),
    "equal_length_q_value",
)


@dataclass(frozen=True)
class NamedAccuracy:
    """An accuracy that the model's is compared with."""

    name: str
    value: float


@dataclass(frozen=True)
class TaskSections:
    """What a report says about one kind of task.

    Attributes:
        lead: what was read.
        references: accuracies beside the model's.
        sentences: of the first screen, below the accuracies.
        rewarded: a section on what preferences reward; none for labels.
        warnings: about the model's accuracy.
        where_masked: ends the sentence "Remove …", as in " in both answers".
    """

    lead: str
    references: tuple[NamedAccuracy, ...]
    sentences: tuple[str, ...] = ()
    rewarded: tuple[Section, ...] = ()
    warnings: tuple[Text, ...] = ()
    where_masked: str = ""


@singledispatch
def task_sections(task: Task, audit: AuditData) -> TaskSections:
    """The parts for labels, and for any task without its own."""
    sides = audit.documents
    train = plural(sides["train"], "training document")
    test = plural(sides["test"], "test document")
    sentence = _few_words_sentence(audit)
    return TaskSections(
        lead=f"{train} and {test} in {len(audit.classes):,} classes",
        references=(NamedAccuracy("Always predicting the largest class", audit.majority_accuracy),),
        sentences=(sentence,) if sentence else (),
        warnings=tuple(Text(text, style="warning") for text in _accuracy_warnings(audit)),
    )


def _accuracy_warnings(audit: AuditData) -> list[str]:
    """Warnings about a model that predicts poorly."""
    warnings = []
    if audit.accuracy.low <= audit.majority_accuracy:
        warnings.append(
            "The model is not clearly better than always predicting the largest class: tokens "
            "alone may not predict these labels, or there are too few documents. Draw no "
            "conclusion from single tokens yet."
        )
    baseline = audit.baseline
    if baseline is not None and baseline.is_significant and baseline.change < 0:
        points = plain(-100 * baseline.change, 1)
        low = plain(-100 * baseline.high, 1)
        high = plain(-100 * baseline.low, 1)
        warnings.append(
            f"TF-IDF with logistic regression is {points} points more accurate on the same test "
            f"documents (95% CI {low} to {high}); try longer n-grams."
        )
    return warnings


def _few_words_sentence(audit: AuditData) -> str:
    """A sentence with the accuracy of the most informative words by themselves; "" if it was not
    measured."""
    if audit.few_words is None or audit.few_words.comparison is None:
        return ""
    words = audit.few_words.words
    alone = audit.few_words.comparison.some_types
    difference = audit.few_words.comparison.difference
    examples = ", ".join(quoted([word]) for word in words[:MAX_WORDS_QUOTED])
    if not difference.is_significant:
        comparison = ", which cannot be told apart from what the model predicts"
    elif difference.change > 0:
        comparison = ", more than the model"
    else:
        comparison = ""
    return (
        f"By themselves, the {len(words)} most informative words ({examples}, …) and the text's "
        f"length predict {percent(alone.value)} of test labels{comparison}."
    )


@task_sections.register(Preferences)
def _preference_sections(task: Preferences, audit: AuditData) -> TaskSections:
    """The parts for preference pairs, with the tokens that win and lose at equal length."""
    facts = audit.pairs
    assert facts is not None
    longer = facts.longer["test"].value
    rewarded = _rewarded(facts)
    return TaskSections(
        lead=" and ".join(
            (_side(facts, "train", "training pair"), _side(facts, "test", "test pair"))
        ),
        references=(
            NamedAccuracy("Always picking the longer answer", longer),
            NamedAccuracy("Chance", 0.5),
        ),
        sentences=(_like_length_sentence(facts),),
        rewarded=() if rewarded is None else (rewarded,),
        where_masked=" in both answers",
    )


def _side(facts: PreferenceFacts, part: str, noun: str) -> str:
    """The pairs of one side, and how many groups they form."""
    pairs = plural(facts.pairs[part], noun)
    if facts.by is None:
        return pairs
    if facts.by == "prompt":
        return f"{pairs} in {plural(facts.units[part], 'prompt')}"
    return f"{pairs} in {plural(facts.units[part], 'group')} ({for_display(facts.by, IN_SENTENCE)})"


def _like_length_sentence(facts: PreferenceFacts) -> str:
    """The sentence about pairs of similar length, which show what the model knows beside length."""
    model, longer = facts.like_length
    within = f"within {round(100 * (ALIKE - 1))}%"
    if not longer.of:
        return f"There are too few test pairs of similar length ({within}) to compare."
    return (
        f"In the {plural(model.of, 'test pair')} of similar length ({within}), the model picks the "
        f"preferred answer {model} of the time. The longer one wins {longer} of those that differ "
        "in length."
    )


def _rewarded(facts: PreferenceFacts) -> Section | None:
    """Tables of what wins and what loses; None if nothing does."""
    tables: list[Block] = []
    for wins, name in ((True, "What wins"), (False, "What loses")):
        rows = cells_of(facts.top(wins, MAX_ROWS), *_WIN_CELLS)
        if rows:
            title = (
                f"{name}, overall and at equal length (training pairs in which only one answer "
                "contains the token)"
            )
            tables.append(Table(title, _WIN_COLUMNS, rows))
    if not tables:
        return None
    note = Text(
        "Both rates come from a Bradley–Terry model of the pairs, with half a win and half a loss "
        "added; the second holds length fixed. pairs.csv has the rates of every token.",
        style="note",
        only=("html", "markdown"),
    )
    return Section("What is rewarded", (*tables, note), anchor="wins")
