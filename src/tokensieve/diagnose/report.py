"""The report of a diagnosis, and the section for a model card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.auditing.phrases import quoted
from tokensieve.diagnose.judgement.agreement import Learning
from tokensieve.diagnose.judgement.status import Status, dominating_words
from tokensieve.escape import for_display
from tokensieve.report.blocks import (
    Block,
    Column,
    Facts,
    Mark,
    Medium,
    Passages,
    Picture,
    Report,
    Section,
    Table,
    Terms,
    Text,
)
from tokensieve.wording import count, interval, percent, plain, plural, signed

if TYPE_CHECKING:
    from tokensieve.diagnose.diagnosis import Diagnosis

# what the data says of a word, as tables and pictures write it, how it is marked, and what that means
_SAID: dict[str, tuple[str, Mark, str]] = {
    Status.CARRIES: (
        "predicts the label",
        "full",
        "the word is significantly associated (q < 0.05) with the class for which the model treats it as evidence",
    ),
    Status.CONTEXT: (
        "helps in context",
        "open",
        "the word alone does not predict the label, but without it the true class becomes less likely",
    ),
    Status.UNSUPPORTED: (
        "no support",
        "alarm",
        "the word at least doubles the odds, its use is twice what a logistic regression gives it and exceeds the data's interval "
        "by half a typical word's use, and that interval is narrow and close to neutral",
    ),
    Status.RARE: (
        "too rare to tell",
        "dotted",
        "used more than the data supports, but the data's interval is wide",
    ),
    Status.OTHER: ("inconclusive", "none", "the data neither supports nor contradicts the use"),
    Status.NOT_SHOWN: (
        "no measurable use",
        "none",
        "its use may be a quarter of a typical word's or less, even if it looks large in a few documents",
    ),
}
_TERMS = {
    "Use": "how far the prediction moves, in log-odds, when the word is removed: mean absolute change over documents "
    "containing it",
    "Reliance": "√n times the larger of its use and its effect when inserted into other documents; n is the number of "
    "documents containing it",
    "Beyond need": "use minus the weight of the word in a logistic regression on the data's words",
    "Predictions changed": "fraction of documents containing the word whose predicted class changes without it",
    "Posterior difference": "P(class | word) − P(other classes | word); the interval is for new documents of this kind",
    **{said: meaning for said, _, meaning in _SAID.values() if meaning},
    "Share of all use": "the word's fraction of the total size of all effects in all documents",
    "Concentration": "0 if the word matters equally in all documents containing it, near 1 if it matters in only a few",
}
_PAGE: tuple[Medium, ...] = ("html", "markdown")  # not in a terminal


class DiagnosisReport:
    """A diagnosis written for the model's owner: report, headline, sentences and the section for a model card."""

    def __init__(self, found: Diagnosis) -> None:
        self.found = found

    def report(self) -> Report:
        """The findings for the model's owner, most important first."""
        blocks: list[Block] = [self.verdict(), Text(self._coverage_line(), "note")]
        blocks += [Text(sentence) for sentence in self.sentences()]
        used, hidden = (
            self.found.used,
            self.found.uses.filter(pl.col("status") == str(Status.NOT_SHOWN)),
        )
        if not self.found.learned:
            blocks.append(Text(self._next_step(), "lead"))
            if used.height and not self.found.reading["warning"]:
                words = self._words(used, "Words whose removal moves its predictions")
                blocks.append(
                    Section("Words that move its predictions", words, folded=True, only=_PAGE)
                )
        elif used.height:
            words = self._words(used, "Words that this model uses, ordered by reliance")
            blocks += [
                self._most_used(),
                Text(self._next_step(), "lead"),
                Section("Words that it uses", words),
            ]
        else:
            blocks += [
                Text("The model does not measurably use any single word."),
                Text(self._next_step(), "lead"),
            ]
        if not self.found.reading["warning"]:  # the classes that it names would be the wrong ones
            blocks.append(Section("Formatting of documents", self._forms()))
        if hidden.height and not self.found.reading["warning"]:
            title = "Other words that were removed, without a measurable effect"
            blocks.append(
                Section("No measurable use", self._words(hidden, title), folded=True, only=_PAGE)
            )
        blocks.append(Section("How well it predicts", self._skill()))
        if self.found.passages:
            lead = "Blue words support the prediction, orange words oppose it; a stronger colour means a larger effect."
            passages = Passages(
                "Documents, with the effect of each word", tuple(self.found.passages), short=False
            )
            blocks.append(Section("Documents", (Text(lead), passages), only=_PAGE))
        tables = tuple(self._data_words(label) for label in self.found.classes[:8])
        blocks.append(Section("Informative words of the data", tables, only=_PAGE))
        method, reads = self.found.reading["method"], self.found.reading["reads"]
        lines = [
            f"Words were screened by {method}; those in the tables were measured by removing or inserting them."
        ]
        if reads:
            where = {"mean": "the mean over all positions"}.get(reads, f"the {reads} position")
            lines.append(f"The model predicts from {where}.")
        notes = [Text(for_display(note, 400), "note") for note in self.found.notes]
        how: tuple[Block, ...] = (*map(Text, lines), *notes, Terms(tuple(_TERMS.items())))
        blocks.append(Section("How it was measured", how, only=_PAGE))
        settings = self.found.settings
        about = {
            "settings": settings,
            "seconds": self.found.seconds,
            "version": __version__,
            "seed": settings["seed"],
        }
        model, family = self.found.model, self.found.reading["family"]
        title = f"Diagnosis of {for_display(model)}{f' ({family})' * (family != model)} on {for_display(self.found.name)}"
        return Report("diagnose", title, self.headline(), tuple(blocks), about)

    def headline(self) -> str:
        """One sentence on which an owner can act, then what follows from it."""
        skill = self.found.skill
        numbers = f"accuracy {percent(skill.accuracy)}, largest class {percent(skill.majority)}"
        if self.found.reading["warning"]:
            return f"The model's outputs do not match their names: {self.found.reading['warning']}"
        used = self.found.used.sort("use", descending=True)
        top = dominating_words(used)
        form, follows, also = self._followed_form(), "", ""
        if form is not None:
            many = f"{percent(form['after'], 0)} of documents {form['form']} are predicted {for_display(form['class'], 40)}"
            originals = percent(form["before"], 0)
            follows = f"follows the formatting of documents: {many}, but only {originals} of the originals."
            also = f" It {follows}"
        if self.found.learning is Learning.OPEN:
            return "Too few words could be measured to tell whether this model has learned to predict the label."
        if not self.found.learned:
            if top:
                moves = f"Its predictions depend most on {quoted(top)} ({signed(_largest_use(used, top), 1)} log-odds)."
                also = f" {moves} Would you expect that?{also}"
            if self.found.learning is Learning.BARELY:
                return f"This model has barely learned to predict the label, if at all ({numbers}).{also}"
            return f"There is no evidence that this model has learned to predict the label ({numbers}).{also}"
        # the form of a document or words, whichever moves the answer further; unsupported words are named in any case
        words = self._unsupported_words()
        if form is not None and form["mean"] > _largest_use(used, words or top):
            also = (
                f" It also relies on {quoted(words)}, which the evaluation data does not support."
                if words
                else ""
            )
            return f"This model {follows} Would you expect that?{also}"
        if words:
            return f"This model relies on {quoted(words)}. The evaluation data does not support that.{also}"
        if used.is_empty():
            return "This model has learned to predict the label; it does not measurably use any single word."
        if top:
            rows = used.filter(pl.col("token").is_in(top))
            put = " when inserted" if _largest_use(used, top) > max(rows["use"].to_list()) else ""
            much = "up to " * (len(top) > 1) + signed(_largest_use(used, top), 1)
            start = f"This model relies most on {quoted(top)} ({much} log-odds{put})"
            it = "these words" if len(top) > 1 else "this passage" if " " in top[0] else "this word"
            expected = f"Would you expect {it} to matter that much?"
            statuses = set(rows["status"])
            if statuses == {str(Status.RARE)}:
                n = plural(max(rows["documents"].to_list()), "document")
                only = f"{'they occur' if len(top) > 1 else 'it occurs'} in only {n} of this file"
                return f"{start}, but {only}, too few to tell whether the data supports that. {expected}{also}"
            goes = "They also predict" if len(top) > 1 else "It also predicts"
            goes = f"{goes} the label in this file. " if statuses == {str(Status.CARRIES)} else ""
            # whether the data calls for it as well: half of the use at least is what a simple model of the data gives the word
            needed = float(np.min(rows["needed"].to_numpy()))
            if goes and needed > _largest_use(used, top) / 2:
                them = "them" if len(top) > 1 else "it"
                goes += f"A logistic regression on its words relies on {them} too ({signed(needed, 1)}). "
            return f"{start}. {goes}{expected} If not, the model and this file may share a shortcut.{also}"
        ten = used.sort("share", "token", descending=[True, False]).head(10)
        several = "ten" if ten.height == 10 else str(ten.height)
        most = f"The top {several} words together account" if ten.height > 1 else "It accounts"
        sure, share = self.found.used.filter(pl.col("use_low") > 0), float(ten["share"].sum())
        names = quoted((sure if sure.height else used)["token"].head(3).to_list())
        many = " Predictions rest on many words at a time." * (share < 0.1)
        return f"No single word dominates; this model relies most on {names}. {most} for {percent(share, 0)} of all use.{many}"

    def verdict(self) -> Text:
        """Whether a shortcut is suspected, was not found, or cannot be told from this file, in a sentence."""
        form = self._followed_form()
        supported = form is None or (
            form["data_low"] is not None and form["data_low"] > form["data_neutral"]
        )
        if self.found.reading["warning"] or (supported and not self.found.learned):
            return Text(
                "Verdict: cannot tell, as the model has not been shown to predict the label.",
                "warning",
            )
        if self._unsupported_words() or not supported:
            return Text(
                "Verdict: a shortcut is suspected; the data does not support what predictions rest on.",
                "bad",
            )
        if form is not None or dominating_words(self.found.used):
            return Text(
                "Verdict: this file cannot tell whether what the model relies on is a shortcut.",
                "warning",
            )
        n, forms = plural(self.found.reading["coverage"]["words"], "word"), self.found.forms.height
        return Text(
            f"Verdict: no shortcut was found among {n} and {forms} changes of formatting.", "good"
        )

    def _unsupported_words(self) -> list[str]:
        """The words used without support that dominate or change a fifth of the predictions: by chance any model has one of which
        the data supports less than it does."""
        far = pl.col("token").is_in(dominating_words(self.found.used)) | (pl.col("flipped") >= 0.2)
        return self.found.leaning.filter(far)["token"].head(3).to_list()

    def _followed_form(self) -> dict[str, Any] | None:
        """The form of documents that moves predictions most, if by 1.5 in log-odds, at the lower end of its interval, and a quarter
        of them to one class. If few documents have it (below 10 %), the words must keep their effect: a model that does not know
        the form loses sight of them, and predicts one class whatever they say."""
        usual = np.median(self.found.used["use"].to_numpy()) if self.found.used.height else 0.0
        far = pl.col("followed") & (pl.col("mean_low") > 1.5) & (pl.col("mean") > usual)
        far &= (pl.col("after") - pl.col("before")).abs() > 0.25
        least = max(self.found.settings["min_documents"], 0.1 * self.found.documents["all"])
        known = pl.col("documents_having").fill_null(np.inf) >= least
        rows = self.found.forms.filter(far, known | (pl.col("words_kept") > 0.9)).sort(
            "mean", descending=True
        )
        return rows.row(0, named=True) if rows.height else None

    def _coverage_line(self) -> str:
        """Which words were looked at, and which were not."""
        seen, read, every = (
            self.found.reading["coverage"],
            self.found.documents["read"],
            self.found.documents["all"],
        )
        of_all = f" ({count(every)} in the file)" if every > read else ""
        words, n = plural(seen["words"], "word"), len(seen["rescued"])
        line = f"Examined {words} found in at least {seen['min_documents']} of {count(read)} documents{of_all}"
        if n:
            line += f", and {plural(n, 'rarer one')} that stood out"
        left = max(seen["distinct"] - seen["words"] - n, 0)
        alone = (
            f" ({count(seen['rare'])} of them were screened individually)" if seen["rare"] else ""
        )
        rest = f" {plural(left, 'rarer word was', 'rarer words were')} not examined closely{alone}."
        return f"{line}.{rest * (left > 0)}"

    def sentences(self) -> list[str]:
        """How well the model predicts, what it uses most, and what it uses without support."""
        skill = self.found.skill
        rate = f"{percent(skill.accuracy)} (95% CI {percent(skill.accuracy_low)} to {percent(skill.accuracy_high)})"
        numbers = f"accuracy {rate} on {count(skill.documents)} documents, largest class {percent(skill.majority)}"
        auc = f"AUC {plain(skill.auc)} (random word weights reach {plain(skill.auc_random)})"
        if self.found.reading["warning"]:
            said = "Words are not listed until the outputs are in the right order. With the current names"
        elif self.found.learned:
            said = "This model has learned to predict the label"
        elif self.found.learning is Learning.OPEN:
            said = "How well it predicts"
        elif self.found.learning is Learning.BARELY:
            said = "It ranks documents better than chance, but no better than random word weights could"
        elif skill.auc < 1 - skill.auc_random:  # reversed further than random weights get
            said = "Its predictions contradict the labels; check that each output is matched with the right class"
        elif not skill.above_chance:
            said = "Its predictions are no better than chance"
        else:
            said = "No single word measurably improves its predictions"
        out = [f"{said}: {numbers}, {auc}."]
        if not self.found.learned:
            return out
        mean, low, high = skill.removal
        if low > 0 or high < 0:
            taken = f"{signed(-mean)} {interval(-high, -low)}"
            out.append(
                f"Removing a word that it uses changes the log-odds of the true class by {taken} on average."
            )
        used, leaning = self.found.used, self.found.leaning["token"].to_list()
        if used.height:
            rows = used.select("token", "use", pl.col("inserted").fill_nan(0.0)).head(5).iter_rows()
            put = (
                (token, max(use, inserted), " when inserted" * (inserted > use))
                for token, use, inserted in rows
            )
            names = ", ".join(
                f"“{for_display(token, 30)}” ({plain(x)}{how})" for token, x, how in put
            )
            out.append(f"The words that it relies on most, with their use in log-odds: {names}.")
        rescued = self.found.reading["coverage"]["rescued"]
        rare = used.filter(pl.col("token").is_in(rescued), pl.col("inserted").is_finite())
        if rare.height:
            rows = (
                rare.sort("inserted", descending=True)
                .select("token", "inserted", "documents")
                .head(3)
                .iter_rows()
            )
            names = ", ".join(
                f"“{for_display(token, 30)}” ({plain(x)}; in {count(n)} documents)"
                for token, x, n in rows
            )
            out.append(
                f"The rare words that move the model most when put into other texts, in log-odds: {names}."
            )
        if used.height and leaning:
            text = f"The data does not support its use of {quoted(leaning)}. Check its training data for a shortcut."
            out.append(text)
        elif used.height and not dominating_words(used):
            sure = "It does not measurably rely on any word the data does not support."
            untold = pl.col("status").is_in([str(Status.OTHER), str(Status.RARE)])
            unsure = used.filter(untold, pl.col("use_low") > np.log(2))
            if unsure.height:
                names = quoted(unsure["token"].head(3).to_list())
                doubles = "at least doubles" if unsure.height == 1 else "at least double"
                sure = (
                    f"The data cannot tell whether it should use {names}, which {doubles} the odds."
                )
            shared = "A shortcut that this file has too would look supported: check the first words of the table."
            out.append(f"{sure} {shared}")
        far = self.found.forms.filter("followed", (pl.col("after") - pl.col("before")).abs() > 0.25)
        for form in far.sort("mean", descending=True).head(1).iter_rows(named=True):
            moved = f"{percent(form['after'], 0)} are predicted {for_display(form['class'], 40)}"
            line = (
                f"Of documents {form['form']}, {moved} (originals: {percent(form['before'], 0)})."
            )
            out.append(
                line
                + self._having(form["documents_having"], form["data_low"], form["data_neutral"])
            )
        return out

    def _having(self, n: int | None, low: float | None, neutral: float) -> str:
        """How many documents of the file have a form, and whether the data's difference, at its lower end, supports it."""
        if not n:
            return (
                ""
                if n is None
                else " No document of this file is like that, so the model may never have seen one."
            )
        are = f"{plural(n, 'document')} of this file {'is' if n == 1 else 'are'} like that"
        if low is None or n < self.found.settings["min_documents"]:
            return f" Only {are}, too few to tell whether the data supports it."
        return f" {are}, and the data {'supports' if low > neutral else 'does not support'} it."

    def _next_step(self) -> str:
        if self.found.reading["warning"]:
            return "Put the names in config.json into the right order, or set the order with --map, and run this again."
        if not self.found.learned:
            return "Check that the model, the labels and the documents belong together before you read on."
        if n := self.found.leaning.height:
            words, them = ("this word", "it") if n == 1 else ("these words", "them")
            return f"Look at the training documents that contain {words}, then train without {them} and compare both models."
        top = dominating_words(self.found.used)
        if top or self._followed_form() is not None:
            what = "these words are" if len(top) > 1 else "the word is" if top else "this form is"
            return f"If that surprises you, diagnose the model on documents in which {what} unrelated to the label."
        return "Check the top words for any that should not matter. For rarer ones, lower --min-documents."

    def _most_used(self) -> Picture:
        removed = self.found.used.filter(
            pl.col("use_low") > 0
        )  # the others move it only when inserted
        top = removed.select("token", "use", "use_low", "use_high", "status").head(14)
        rows = [
            {
                "rank": rank,
                "text": for_display(token, 24),
                "x": use,
                "low": low,
                "high": high,
                "data": _SAID[status][0],
            }
            for rank, (token, use, low, high, status) in enumerate(top.iter_rows())
        ]
        listing = ", ".join(f"{row['text']} {plain(row['x'])}" for row in rows)
        return Picture(
            "use",
            "diagnose-use",
            {"words": rows},
            "What this model relies on most",
            "Change of the prediction in log-odds when the word is removed, with 95% intervals. The order is that of the table; "
            "words whose interval reaches zero are left out. Colours show what the data supports.",
            f"Use of the words that it relies on most, in log-odds: {listing}.",
        )

    @staticmethod
    def cells(rows: pl.DataFrame, names: str) -> list[tuple[object, ...]]:
        """Cells of a table: some columns of a frame, separated by spaces; "x y z" joined by slashes are one cell, a value with its
        interval."""
        picked = [name.split("/") for name in names.split()]
        return [
            tuple(
                row[name[0]] if len(name) == 1 else tuple(row[part] for part in name)
                for name in picked
            )
            for row in rows.iter_rows(named=True)
        ]

    @staticmethod
    def _words(rows: pl.DataFrame, title: str) -> tuple[Table, Table]:
        columns: tuple[Column, ...] = (Column("word", "token"),)
        columns += (Column("data", marks={said: mark for said, mark, _ in _SAID.values()}),)
        columns += (
            Column("evidence for", "token"),
            Column("use", "interval", unit="log-odds", bar=True),
        )
        columns += (
            Column("when inserted", "plain", unit="log-odds"),
            Column("beyond need", "plain", unit="log-odds"),
        )
        columns += (Column("predictions changed", "percent", 0),)
        columns += (Column("posterior difference", "interval"), Column("documents", "count"))
        columns += (Column("share of all use", "percent", extra=True),)
        columns += (Column("helps the true class", "interval", unit="log-odds", extra=True),)
        columns += (Column("q", "chance", extra=True), Column("concentration", "plain", extra=True))
        names = "token said class use/use_low/use_high inserted beyond flipped posterior_difference/posterior_low/posterior_high "
        names += "documents share helps/helps_low/helps_high q_value concentration"
        said = {str(status): words for status, (words, _, _) in _SAID.items()}
        rows = rows.with_columns(
            pl.col("inserted").fill_nan(None), said=pl.col("status").replace_strict(said)
        )
        cells = DiagnosisReport.cells(rows, names)
        note = (
            "Each word was removed from documents containing it; words with few such documents were also inserted into others. "
            "Phrases were removed and inserted as a whole."
        )
        few = (0, 1, 3, 7)  # a terminal is narrow
        short = [tuple(row[i] for i in few) for row in cells]
        narrow = Table(title, tuple(columns[i] for i in few), short, only=("terminal",))
        return narrow, Table(title, columns, cells, note, searchable=True, only=_PAGE)

    def _forms(self) -> tuple[Block, ...]:
        forms, blocks = self.found.forms, list[Block]()
        for row in forms.filter("followed").iter_rows(named=True):
            moved = f"{percent(row['before'], 0)} → {percent(row['after'], 0)}"
            line = f"Predictions for documents {row['form']} move by {signed(row['mean'])} log-odds towards "
            line += for_display(row["class"], 40)
            data = self._having(row["documents_having"], row["data_low"], row["data_neutral"])
            blocks.append(Text(f"{line} ({moved} of predictions).{data}", "warning"))
        if not blocks:
            blocks.append(Text("No formatting change moves the odds by a factor of two."))
        change = Column("mean change", "interval", unit="log-odds", bar=True)
        columns: tuple[Column, ...] = (Column("form"), Column("towards", "token"), change)
        numbers = "predictions changed", "this class before", "and after"
        columns += tuple(Column(name, "percent", 0) for name in numbers)
        cells = self.cells(
            forms.filter("visible"), "form class mean/mean_low/mean_high flipped before after"
        )
        n = max(forms["documents"].to_list(), default=0)
        blocks.append(
            Table(f"The same {count(n)} documents, reformatted", columns, cells, only=_PAGE)
        )
        hidden = " and ".join(forms.filter(~pl.col("visible"))["form"])
        if hidden:
            blocks.append(
                Text(f"Documents {hidden} give this model the same tokens as the originals.")
            )
        return tuple(blocks)

    def _skill(self) -> tuple[Block, ...]:
        skill, reading, n = self.found.skill, self.found.reading, self.found.documents["read"]
        ends = f"95% CI {percent(skill.accuracy_low)} to {percent(skill.accuracy_high)}"
        facts = (
            ("accuracy", percent(skill.accuracy), ends),
            ("largest class", percent(skill.majority), ""),
            ("AUC", plain(skill.auc), f"95% CI {plain(skill.auc_low)} to {plain(skill.auc_high)}"),
            ("AUC of random weights", plain(skill.auc_random), "97.5% of draws are lower"),
        )
        labels = self.found.classes[:8]
        rows = [
            (label, *((int(x), float(x / max(row.sum(), 1))) for x in row[: len(labels)]))
            for label, row in zip(labels, skill.confusion, strict=False)
        ]
        columns = (
            Column("label", "token"),
            *(Column(for_display(label, 24), "cell") for label in labels),
        )
        pieces, windows = reading["all_pieces"], self.found.settings["long"] == "windows"
        long = reading["long_documents" if windows else "truncated_documents"]
        length = f"{count(long)} of {count(n)} documents ({percent(long / n)})"
        if not pieces:
            length = "the model reads whole texts itself; it is unknown whether it truncates any"
        elif windows:
            inputs = f"{count(reading['windows'])} inputs in all"
            length += f" are longer than one input and were read in windows, {inputs}; nothing was truncated"
        elif not long:
            length = "no document was truncated"
        else:
            lost = f"{count(reading['lost_pieces'])} of {count(pieces)} word pieces"
            length += (
                f" were truncated, which lost {lost} ({percent(reading['lost_pieces'] / pieces)})"
            )
        return (
            Facts(facts),
            Table("Documents by label (rows) and prediction", columns, rows),
            Text(f"Length: {length}."),
        )

    def _data_words(self, label: str) -> Table:
        """The words that the data shows most reliably to predict a class."""
        certain = (pl.col("class") == label) & (pl.col("q_value") < 0.05) & (pl.col("effect") > 0)
        rows = (
            self.found.tokens.filter(certain)
            .sort("posterior_low", "token", descending=[True, False])
            .head(15)
        )
        columns: tuple[Column, ...] = (Column("word", "token"), Column("documents", "count"))
        columns += (
            Column("posterior difference", "interval"),
            Column("use", "plain", unit="log-odds"),
        )
        columns += (Column("prediction for it alone", "signed", unit="log-odds"),)
        cells = self.cells(
            rows, "token documents posterior_difference/posterior_low/posterior_high use value"
        )
        return Table(f"Words that predict {for_display(label, 40)}", columns, cells)

    def model_card(self) -> Section:
        """A section for a model card: what the model uses, with the evidence."""
        measured = f"Measured with tokensieve {__version__} on {for_display(self.found.name)}. {self._coverage_line()}"
        said = map(Text, (self.headline(), self.verdict().text, measured, *self.sentences()))
        _, words = self._words(self.found.used.head(12), "")
        table = Table("", words.columns[:9], [row[:9] for row in words.rows])
        return Section(
            "What this model uses", (*said, table) if self.found.learned else tuple(said)
        )


def _largest_use(used: pl.DataFrame, words: Sequence[str]) -> float:
    """The largest use of these words, removed or inserted, in log-odds; 0 if there are none."""
    sizes = pl.max_horizontal("use", pl.col("inserted").fill_nan(None))
    return max(
        used.filter(pl.col("token").is_in(list(words))).select(sizes).to_series().to_list(),
        default=0.0,
    )
