"""The report of a diagnosis, and the section for a model card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.blocks import (
    Block,
    Column,
    Facts,
    Mark,
    Passages,
    Picture,
    Report,
    Section,
    Table,
    Terms,
    Text,
)
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.judgement.learning import MEASURES, Learning, stands_out
from tokensieve.diagnose.judgement.status import Status
from tokensieve.escape import shown
from tokensieve.wording import count, interval, percent, plain, signed

_DOMINATES = 2.0  # times the use of the words behind it, at the lower end of its interval
_FOLLOWS = 1.0  # log-odds by which a form moves predictions, at the lower end of its interval, before it is a headline
_BARS = 14
_SAID = {  # what the data says, as tables and pictures write it
    Status.CARRIES: "predicts the label",
    Status.CONTEXT: "helps in context",
    Status.UNSUPPORTED: "no support",
    Status.RARE: "too rare to tell",
    Status.OTHER: "neither supports nor contradicts it",
    Status.NOT_SHOWN: "use not shown",
}
_MARKS: dict[str, Mark] = {
    _SAID[Status.CARRIES]: "full",
    _SAID[Status.CONTEXT]: "open",
    _SAID[Status.UNSUPPORTED]: "alarm",
    _SAID[Status.RARE]: "dotted",
    _SAID[Status.OTHER]: "none",
    _SAID[Status.NOT_SHOWN]: "none",
}


def diagnosis_report(found: Diagnosis) -> Report:
    """What a model's owner should know, most important first."""
    blocks: list[Block] = [Text(coverage_line(found), "note")]
    if found.reading["warning"]:
        blocks.append(Text(f"Warning: {found.reading['warning']}", "bad"))
    blocks += [Text(sentence) for sentence in sentences(found)]
    used, hidden = found.used, found.uses.filter(pl.col("status") == str(Status.NOT_SHOWN))
    if used.height:
        blocks += [_most_used(found), *_words(used, "Words that this model uses, ordered by use beyond need")]
    else:
        blocks.append(Text("The model does not measurably use any single word."))
    blocks.append(Text(_next_step(found), "lead"))
    sections: list[Block] = [Section("The form of documents", _forms(found))]
    if hidden.height:
        title = "Other words that were removed, without a measurable effect"
        sections.append(Section("Use not shown", _words(hidden, title), folded=True, only=("html", "markdown")))
    sections.append(Section("How well it predicts", _skill(found)))
    if found.passages:
        lead = "Blue words support the prediction and orange words oppose it; a stronger colour means a larger effect."
        passages = Passages("Documents, with the effect of each word", tuple(found.passages), short=False)
        sections.append(Section("Documents", (Text(lead), passages), only=("html", "markdown")))
    tables = [_data_words(found, label) for label in found.classes[:8]]
    sections.append(Section("The most informative words of the data", tuple(tables), only=("html", "markdown")))
    sections.append(Section("How it was measured", _measured(found), only=("html", "markdown")))
    about = {
        "settings": found.settings,
        "seconds": found.seconds,
        "version": __version__,
        "seed": found.settings["seed"],
    }
    title = f"Diagnosis of {shown(found.model)} ({found.reading['family']}) on {shown(found.name)}"
    return Report("diagnose", title, headline(found), (*blocks, *sections), about)


def headline(found: Diagnosis) -> str:
    """One sentence on which an owner can act, then what follows from it."""
    skill = found.skill
    if found.reading["warning"]:
        return f"The model's outputs do not match their names: {found.reading['warning']}"
    if not found.learned:
        numbers = f"accuracy {percent(skill.accuracy)}, largest class {percent(skill.majority)}"
        if found.learning is Learning.OPEN:
            return "Too few words could be measured to tell whether this model has learned to predict the label."
        if found.learning is Learning.BARELY:
            return f"This model has barely learned to predict the label, if at all ({numbers})."
        return f"There is no evidence that this model has learned to predict the label ({numbers})."
    if found.leaning.height:
        words = quoted(found.leaning["token"].head(3).to_list())
        return f"This model relies on {words}. The evaluation data does not support that."
    used = found.used.sort("use", descending=True)
    form = _followed_form(found)
    if form is not None:
        moved = f"{percent(form['before'], 0)} → {percent(form['after'], 0)}"
        return (
            f"This model follows the form of documents: {form['form']}, {moved} of them are predicted {shown(form['class'], 40)}. "
            "Would you expect that?"
        )
    if used.is_empty():
        return "This model has learned to predict the label; it does not measurably use any single word."
    top = _dominating(found)
    if top:
        first = used.filter(pl.col("token") == top[0]).row(0, named=True)
        words = quoted(top)
        number = signed(float(first["use"]), 1)
        if first["status"] == str(Status.RARE):
            return (
                f"This model relies most on {words} ({number} log-odds), in {count(first['documents'])} documents of this file: "
                "too few to tell whether the data supports that. Would you expect this word to decide?"
            )
        goes = "It also predicts the label in this file. " if first["status"] == str(Status.CARRIES) else ""
        return (
            f"This model relies most on {words} ({number} log-odds). {goes}Would you expect this word to decide? If not, the model "
            "and this file may share a shortcut."
        )
    ten = used.head(10)
    number = {10: "ten"}.get(ten.height, str(ten.height))
    most = (
        f"the {number} most used words together account for"
        if ten.height > 1
        else "the only word with a measurable use accounts for"
    )
    return f"No single word dominates: {most} {percent(float(ten['share'].sum()), 0)} of all use."


def _dominating(found: Diagnosis) -> list[str]:
    """The word, or the words of a phrase, that the model relies on far more than on any other; empty if there is none."""
    used = found.used.sort("use", descending=True)
    for size in (1, 2):  # a phrase of two words shares its use
        if used.height < size:
            return []
        rest = used["use"][size : size + 8].to_numpy()
        usual = float(np.median(rest)) if len(rest) >= 3 else float(rest.max(initial=0.0))
        top = used.head(size)
        alike = size == 1 or float(top["use"][1]) > 0.7 * float(top["use"][0])
        # of few words that a simple model of the data needs as much, none dominates
        clear = float(top["use_low"].min()) > _DOMINATES * usual  # type: ignore[arg-type]
        second = float(used["use"][size]) if used.height > size else 0.0
        if alike and clear and float(top["use_low"].min()) > 1.2 * second:  # type: ignore[arg-type]
            return list(top["token"])
    return []


def _followed_form(found: Diagnosis) -> dict[str, Any] | None:
    """The form of documents that moves predictions most, if it moves them as far as a headline needs."""
    rows = found.forms.filter(pl.col("followed") & (pl.col("mean_low") > _FOLLOWS)).sort("mean", descending=True)
    used = found.used["use"]
    usual = float(used.median() or 0.0) if len(used) else 0.0  # type: ignore[arg-type]
    for row in rows.iter_rows(named=True):
        if row["mean"] > usual and abs(row["after"] - row["before"]) > 0.1:
            return dict(row)
    return None


def coverage_line(found: Diagnosis) -> str:
    """Which words were looked at, and which were not."""
    seen, read, every = found.reading["coverage"], found.documents["read"], found.documents["all"]
    of_all = f" ({count(every)} in the file)" if every > read else ""
    line = f"Examined {_words_(seen['words'])} in at least {seen['min_documents']} of {count(read)} documents{of_all}"
    if seen["rescued"]:
        n = len(seen["rescued"])
        line += f", and {count(n)} rarer one{'s' * (n > 1)} that stood out"
    left = max(seen["distinct"] - seen["words"] - len(seen["rescued"]), 0)
    alone = f" ({count(seen['rare'])} of them were screened individually)" if seen["rare"] else ""
    return f"{line}. Not examined closely: {count(left)} rarer words{alone}."


def sentences(found: Diagnosis) -> list[str]:
    """The verdict in plain sentences: how well it predicts, what it uses most, what without support, where its attention goes."""
    skill = found.skill
    rate = f"{percent(skill.accuracy)} (95% CI {percent(skill.accuracy_low)} to {percent(skill.accuracy_high)})"
    numbers = f"accuracy {rate} on {count(skill.documents)} documents, largest class {percent(skill.majority)}"
    auc = f"AUC {plain(skill.auc)}, where random weights of the words reach {plain(skill.auc_random)}"
    reason = ""
    if found.learning is Learning.LEARNED:
        first = f"This model has learned to predict the label: {numbers}, {auc}."
    elif found.learning is Learning.BARELY:
        first = (
            "This model has barely learned to predict the label, if at all: it ranks documents better than chance, but no better "
            f"than random weights of their words might ({numbers}, {auc})."
        )
    elif found.learning is Learning.OPEN:
        first = "Too few words could be measured to tell whether this model has learned to predict the label."
    else:
        reason = "no single word measurably improves its predictions"
        if found.reading["warning"] or skill.reversed:
            reason = "its predictions contradict the labels; check that each output is matched with the right class"
        elif not skill.above_chance:
            reason = "its predictions are no better than chance"
        first = f"Nothing here shows that this model has learned to predict the label: {reason} ({numbers}, {auc})."
    out = [first]
    if math.isfinite(skill.removal[0]):
        ends = interval(*skill.removal[1:])
        out.append(
            f"Removing a word that it uses takes {signed(skill.removal[0])} {ends} log-odds from the true class."
        )
    used = found.used.sort("use", descending=True)
    if used.height:
        rows = used.select("token", "use").head(5).iter_rows()
        names = ", ".join(f"“{shown(token, 30)}” ({plain(use)})" for token, use in rows)
        out.append(f"It uses most, in log-odds: {names}.")
    if found.learned and used.height:
        out.append(_support(found))
    attention = found.correlation.get("attention_importance")
    if attention is not None and math.isfinite(attention.low):
        stands = stands_out(
            "attention_importance", attention, found.agreement["untrained"], found.agreement["shuffled"]
        )
        where = "goes to" if stands else "does not single out"
        out.append(f"Its attention over all layers {where} the words that predict the label.")
    return out


def _support(found: Diagnosis) -> str:
    leaning = found.leaning
    if leaning.is_empty():
        return (
            "It does not measurably rely on any word the data does not support. A shortcut that this file shares with the "
            "training data looks supported: check the words at the top."
        )
    names = quoted(leaning["token"].head(5).to_list())
    more = f" and {leaning.height - 5} more" if leaning.height > 5 else ""
    it = "it is a shortcut" if leaning.height == 1 else "each is a shortcut"
    return f"The data does not support its use of {names}{more}. Check whether {it} in its training data."


def _next_step(found: Diagnosis) -> str:
    if found.reading["warning"]:
        return "Put the names in config.json into the right order, or give the order with --map."
    if not found.learned:
        return "Check that the model, the labels and the documents belong together before you read on."
    if found.leaning.height:
        return (
            "Look at the training documents that contain these words, then train without them and compare both models."
        )
    if _dominating(found) or _followed_form(found) is not None:
        return "If not, collect documents in which it is unrelated to the label, and diagnose the model on them."
    return (
        "Check the top words for any that should not matter. To examine rarer words, lower --min-documents or use more "
        "documents."
    )


def _most_used(found: Diagnosis) -> Picture:
    top = found.used.sort("use", descending=True).head(_BARS)
    names = {str(status): said for status, said in _SAID.items()}
    rows = [
        {"rank": rank, "text": shown(token, 24), "x": use, "low": low, "high": high, "data": names[status]}
        for rank, (token, use, low, high, status) in enumerate(
            top.select("token", "use", "use_low", "use_high", "status").iter_rows()
        )
    ]
    listing = ", ".join(f"{row['text']} {plain(row['x'])}" for row in rows)
    return Picture(
        "use",
        "diagnose-use",
        {"words": rows},
        "What this model uses most",
        "Change of the prediction in log-odds when the word is removed, with 95% intervals; colours show what the data supports",
        f"Words used most, in log-odds: {listing}.",
        wide=True,
    )


def _words(rows: pl.DataFrame, title: str) -> tuple[Table, Table]:
    columns = (
        Column("word", "token"),
        Column("data", marks=_MARKS),
        Column("evidence for", "token"),
        Column("use", "interval", unit="log-odds", bar=True),
        Column("beyond need", "plain", unit="log-odds"),
        Column("predictions changed", "percent", 0),
        Column("posterior difference", "interval"),
        Column("documents", "count"),
        Column("share of all use", "percent", extra=True),
        Column("helps the true class", "interval", unit="log-odds", extra=True),
        Column("q", "chance", extra=True),
        Column("concentration", "plain", extra=True),
    )
    names = {str(status): said for status, said in _SAID.items()}
    cells = [
        (
            row["token"],
            names[row["status"]],
            row["class"],
            (row["use"], row["use_low"], row["use_high"]),
            row["beyond"],
            row["flipped"],
            (row["posterior_difference"], row["posterior_low"], row["posterior_high"]),
            row["documents"],
            row["share"],
            (row["helps"], row["helps_low"], row["helps_high"]),
            row["q_value"],
            row["concentration"],
        )
        for row in rows.iter_rows(named=True)
    ]
    note = "Each word was removed from documents containing it, and inserted into others if there are few; phrases as a whole."
    few = (0, 1, 3, 6)  # a terminal is narrow
    narrow = Table(
        title, tuple(columns[i] for i in few), [tuple(row[i] for i in few) for row in cells], only=("terminal",)
    )
    wide = Table(title, columns, cells, note, searchable=True, only=("html", "markdown"))
    return narrow, wide


def _forms(found: Diagnosis) -> tuple[Block, ...]:
    forms = found.forms
    blocks: list[Block] = []
    followed = forms.filter("followed")
    for row in followed.iter_rows(named=True):
        moved = f"{percent(row['before'], 0)} → {percent(row['after'], 0)}"
        data = ""
        if row.get("data_low") is not None:
            apart = row["data_low"] - row["data_neutral"], row["data_high"] - row["data_neutral"]
            supports = apart[0] > 0
            data = " The data supports that." if supports else " The data does not show that."
        blocks.append(
            Text(
                f"Documents {row['form']} move by {signed(row['mean'])} log-odds towards {shown(row['class'], 40)} ({moved} "
                f"predicted so).{data}",
                "warning",
            )
        )
    if followed.is_empty():
        blocks.append(Text("No change in the form of documents changes the odds by a factor of two."))
    seen = forms.filter("visible")
    columns = (
        Column("form"),
        Column("towards", "token"),
        Column("mean change", "interval", unit="log-odds", bar=True),
        Column("predictions changed", "percent", 0),
        Column("this class before", "percent", 0),
        Column("and after", "percent", 0),
    )
    cells = [
        (
            row["form"],
            row["class"],
            (row["mean"], row["mean_low"], row["mean_high"]),
            row["flipped"],
            row["before"],
            row["after"],
        )
        for row in seen.iter_rows(named=True)
    ]
    n = int(forms["documents"].max() or 0)  # type: ignore[arg-type]
    blocks.append(Table(f"The same {count(n)} documents in other forms", columns, cells, only=("html", "markdown")))
    hidden = forms.filter(~pl.col("visible"))["form"].to_list()
    if hidden:
        blocks.append(
            Text(f"The tokenizer does not see documents {', '.join(hidden)}: the model reads the same pieces.")
        )
    return tuple(blocks)


def _skill(found: Diagnosis) -> tuple[Block, ...]:
    skill = found.skill
    ends = f"95% CI {percent(skill.accuracy_low)} to {percent(skill.accuracy_high)}"
    facts = (
        ("accuracy", percent(skill.accuracy), ends),
        ("largest class", percent(skill.majority), ""),
        ("AUC", plain(skill.auc), f"95% CI {plain(skill.auc_low)} to {plain(skill.auc_high)}"),
        ("AUC of random weights", plain(skill.auc_random), "97.5% of draws are below"),
    )
    known = [(name, found.correlation[name]) for name in MEASURES if name in found.correlation]
    best = max(known, key=lambda one: one[1].rho if math.isfinite(one[1].rho) else -2.0, default=None)
    blocks: list[Block] = [Facts(facts)]
    if best is not None and math.isfinite(best[1].low):
        numbers = f"{signed(best[1].rho)} {interval(best[1].low, best[1].high)}"
        blocks.append(Text(f"Correlation of {MEASURES[best[0]]} with the data: {numbers}."))
    labels = found.classes[:8]
    rows = [
        (label, *((int(n), float(n / max(row.sum(), 1))) for n in row[: len(labels)]))
        for label, row in zip(labels, skill.confusion, strict=False)
    ]
    columns = (Column("label", "token"), *(Column(shown(label, 24), "cell") for label in labels))
    blocks.append(Table("Documents by label (rows) and prediction", columns, rows))
    blocks.append(Text(f"Length: {_length_line(found)}."))
    return tuple(blocks)


def _length_line(found: Diagnosis) -> str:
    """How many documents were longer than an input, and what became of them."""
    n, reading = found.documents["read"], found.reading
    if not reading["all_pieces"]:
        return "the model reads whole texts itself; it is unknown whether it truncates any"
    if found.settings["long"] == "windows":
        longer = reading["long_documents"]
        return (
            f"{count(longer)} of {count(n)} documents ({percent(longer / n)}) are longer than one input and were read in windows, "
            f"{count(reading['windows'])} inputs in all; nothing was truncated"
        )
    cut, lost, pieces = reading["truncated_documents"], reading["lost_pieces"], reading["all_pieces"]
    return (
        f"{count(cut)} of {count(n)} documents ({percent(cut / n)}) were truncated, which lost {count(lost)} of {count(pieces)} "
        f"word pieces ({percent(lost / pieces)})"
    )


def _data_words(found: Diagnosis, label: str) -> Table:
    """The words that the data shows most reliably to predict a class."""
    certain = (pl.col("class") == label) & (pl.col("q_value") < 0.05) & (pl.col("effect") > 0)
    rows = found.tokens.filter(certain).sort("posterior_low", "token", descending=[True, False]).head(15)
    columns = (
        Column("word", "token"),
        Column("documents", "count"),
        Column("posterior difference", "interval"),
        Column("use", "plain", unit="log-odds"),
        Column("prediction for it alone", "signed", unit="log-odds"),
    )
    names = ("token", "documents", "posterior_difference", "posterior_low", "posterior_high", "use", "value")
    cells = [
        (token, n, (x, low, high), use, value) for token, n, x, low, high, use, value in rows.select(names).iter_rows()
    ]
    return Table(f"Words that predict {shown(label, 40)}", columns, cells)


def _measured(found: Diagnosis) -> tuple[Block, ...]:
    reading = found.reading
    where = {"first": "at the first position", "last": "at the last position", "mean": "as the mean over all positions"}
    lines = [
        f"Effects of all words were measured by {reading['method']}; those in the first table by removing the word."
    ]
    if reading["reads"]:
        lines.append(f"The model takes its prediction {where[reading['reads']]}.")
    terms = (
        (
            "Use",
            "how far the prediction moves, in log-odds, when the word is removed: mean size over documents containing it",
        ),
        ("Beyond need", "use minus the weight of the word in a logistic regression on the data's words"),
        (
            "Predictions changed",
            "fraction of documents containing the word whose predicted class changes without it",
        ),
        (
            "Posterior difference",
            "P(class | word) − P(other classes | word); the interval is for new documents of this kind",
        ),
        (
            _SAID[Status.CARRIES],
            "the word is significantly associated (q < 0.05) with the class for which the model treats it as evidence",
        ),
        (
            _SAID[Status.CONTEXT],
            "the word alone does not predict the label, but without it the true class becomes less likely",
        ),
        (
            _SAID[Status.UNSUPPORTED],
            "the word at least doubles the odds, its use exceeds the data's interval by half a typical word, and that interval is "
            "narrow and close to neutral",
        ),
        (_SAID[Status.RARE], "the use is more than the data supports, but the data's interval is wide"),
        (
            _SAID[Status.NOT_SHOWN],
            "the use may be at most a quarter of a typical word's, however large it looks in a few documents",
        ),
        ("Share of all use", "the word's fraction of the total size of all effects in all documents"),
        (
            "Concentration",
            "0 if the word matters equally in all documents containing it, near 1 if it matters in only a few",
        ),
    )
    return (*(Text(line) for line in lines), *(Text(shown(note, 400), "note") for note in found.notes), Terms(terms))


def quoted(words: Sequence[str]) -> str:
    """“a”, “b” and “c”."""
    names = [f"“{shown(word, 40)}”" for word in words]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _words_(n: int) -> str:
    return f"{count(n)} word{'s' * (n != 1)}"
