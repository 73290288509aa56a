"""A section for a model card, in Markdown."""

from __future__ import annotations

from tokensieve import __version__
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.report import coverage_line, headline, sentences
from tokensieve.escape import shown
from tokensieve.wording import count, interval, percent, plain, signed


def model_card(found: Diagnosis) -> str:
    """A section for a model card, in Markdown: what the model uses, on which evidence."""
    skill, read = found.skill, count(found.documents["read"])
    ends = f"{percent(skill.accuracy_low)} to {percent(skill.accuracy_high)}"
    lines = [
        "## What this model uses",
        "",
        f"**{_cell(headline(found), 600)}**",
        "",
        f"Measured with tokensieve {__version__} on {read} documents of {_cell(found.name)}: accuracy {percent(skill.accuracy)} "
        f"(95% CI {ends}, largest class {percent(skill.majority)}). {coverage_line(found)}",
        "",
        *[f"- {_cell(sentence, 600)}" for sentence in sentences(found)],
        "",
        "| word | evidence for | use (log-odds) | share of all use | predictions changed | posterior difference | data |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found.used.head(15).iter_rows(named=True):
        cells = (
            _cell(row["token"], 40),
            _cell(row["class"], 40),
            f"{plain(row['use'])} {interval(row['use_low'], row['use_high'])}",
            percent(row["share"]),
            percent(row["flipped"]),
            f"{signed(row['posterior_difference'])} {interval(row['posterior_low'], row['posterior_high'])}",
            row["status"],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _cell(text: str, length: int = 200) -> str:
    """Text that stays text in Markdown."""
    safe = shown(text, length).replace("\\", "\\\\")
    for mark in "|`*_[]":
        safe = safe.replace(mark, f"\\{mark}")
    return safe.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
