"""The report of a diagnosis, and the section for a model card.

Its first sentence is one of three templates (`DiagnosisReport.headline`); the rest answers two
questions, each with a list and a picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from tokensieve import __version__
from tokensieve.diagnose.judgement.skill import Learning
from tokensieve.diagnose.judgement.status import Status
from tokensieve.diagnose.result import DiagnosisResult
from tokensieve.diagnose.subjects.outputs import SPREAD_OF_LOG_ODDS
from tokensieve.escape import for_display
from tokensieve.report.blocks import (
    Block,
    Column,
    Fact,
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

PAGE: tuple[Medium, ...] = ("html", "markdown")  # not in a terminal
N_IN_PICTURE = 14
MOST_FOLD = 1000  # a larger change of the odds is "more than 1,000-fold"
LONGEST_BAR = 4  # times its bar is an interval drawn at most; longer ones would shrink all bars
N_CLASSES_SHOWN = 8
N_DATA_WORDS = 15  # of each class
N_LISTED = 5  # in a sentence

# How much of the mean size of changes is left when they are averaged with their signs: changes of
# one size leave so much if one in twenty goes the other way, or one in four.
ONE_WAY = 0.9
MOSTLY_ONE_WAY = 0.5

MARKS: Mapping[str, Mark] = {
    Status.SUPPORTED: "full",
    Status.UNSUPPORTED: "alarm",
    Status.CONTEXT: "open",
    Status.CANNOT_TELL: "dotted",
    Status.ABSENT: "none",
}
TERMS = {
    "Decides": "documents × mean change of the prediction when it is removed, as a fraction of the "
    "total over all words; the words that are not listed are in the total",
    "Log-odds": "logarithm of the odds of the class; 0.7 more doubles the odds, 2.3 more makes "
    "them ten times as large",
    "Moves": "how far a prediction moves when it is inserted where it usually "
    "stands into documents without it; a form is given to documents, two words change places",
    "When removed": "how far a prediction moves when it is removed from documents containing it",
    "Artefact": "probability that it is a mark rather than the subject, by a score over how far "
    "it moves predictions both when inserted and when removed, how far ahead of the others and how "
    "consistently, in how many documents, and whether other words tell where it occurs",
    "Data supports": "the larger of the upper end of its association with the class, and its "
    "weight in a logistic regression on the words of the data, in log-odds",
    "Predictions changed": "fraction of documents containing it whose predicted class changes",
    "Posterior difference": "P(class | word) − P(other classes | word); the interval is for new "
    "documents of this kind",
    Status.SUPPORTED: "it is significantly associated (q < 0.05) with the class for which the "
    "model treats it as evidence, and used no more than twice as far as the data supports",
    Status.UNSUPPORTED: "it moves predictions more than twice as far as the data supports, and at "
    "least doubles the odds",
    Status.CONTEXT: "the data does not support it by itself, but without it the true class becomes "
    "less likely",
    Status.CANNOT_TELL: "the data neither supports nor contradicts its use",
    Status.ABSENT: "no document of this file is like that",
}
# what took the place of removed words
SUBSTITUTES = {
    "padding": "It predicts from a word of the text, so the embedding of padding took the place of "
    "removed words: cutting them would have moved another word there.",
    "cut": "Removed words were cut out of the text, and nothing took their place.",
}
KIND_NAMES = {
    "word": "word",
    "pattern": "pattern",
    "passage": "passage",
    "form": "formatting",
    "order": "order of words",
}


def _cannot_tell(reason: str) -> str:
    """The third template: this file does not show what the model relies on."""
    return f"This file cannot tell what the model relies on: {reason}"


class DiagnosisReport:
    """A diagnosis written for the model's owner."""

    def __init__(self, diagnosis: DiagnosisResult) -> None:
        self.found = diagnosis

    def report(self) -> Report:
        """The findings for the model's owner, most important first."""
        diagnosis = self.found
        blocks: list[Block] = [self.verdict(), Text(self._coverage(), "note")]
        blocks += [Text(sentence) for sentence in self._beside_headline()]
        blocks.append(Text(self._next_step(), "lead"))
        if not diagnosis.reading["warning"]:  # the classes that it names would be the wrong ones
            blocks += self._two_lists()
        blocks.append(Section("How well it predicts", self._skill()))
        if diagnosis.passages:
            lead = Text(
                "Blue words support the prediction, orange words oppose it; a stronger colour "
                "means a larger effect."
            )
            passages = Passages(
                "Documents, with the effect of each word", tuple(diagnosis.passages), short=False
            )
            blocks.append(Section("Documents", (lead, passages), only=PAGE))
        tables = tuple(self._data_words(label) for label in diagnosis.classes[:N_CLASSES_SHOWN])
        blocks.append(Section("Informative words of the data", tables, only=PAGE))
        blocks.append(Section("How it was measured", self._method(), only=PAGE))
        about = {
            "settings": diagnosis.settings,
            "seconds": diagnosis.seconds,
            "version": __version__,
            "seed": diagnosis.settings["seed"],
        }
        family = diagnosis.reading["family"]
        subject = for_display(diagnosis.model)
        if family != diagnosis.model:
            subject = f"{subject} ({family})"
        title = f"Diagnosis of {subject} on {for_display(diagnosis.name)}"
        return Report("diagnose", title, self.headline(), tuple(blocks), about)

    def headline(self) -> str:
        """One sentence on which an owner can act, then what follows from it.

        It is one of three templates: the model relies on something; this file cannot tell what the
        model relies on, and why; or nothing dominates.
        """
        diagnosis = self.found
        if diagnosis.reading["warning"]:
            reason = f"its outputs do not match their names. {diagnosis.reading['warning']}"
            return _cannot_tell(reason)
        if diagnosis.learning is Learning.OPEN:
            return _cannot_tell("too few words could be measured.")
        suspect = self._suspect()
        if suspect is not None:
            return self._relies_on(suspect)
        if not diagnosis.learned:
            return _cannot_tell(self._why_not_learned())
        return self._nothing_dominates()

    def _why_not_learned(self) -> str:
        """Why the predictions are no evidence of what the model relies on, in numbers."""
        skill = self.found.skill
        numbers = f"accuracy {percent(skill.accuracy)}, largest class {percent(skill.majority)}"
        if self.found.learning is Learning.BARELY:
            return f"it has barely learned to predict the label, if at all ({numbers})."
        return f"there is no evidence that it has learned to predict the label ({numbers})."

    def _suspect(self) -> dict[str, Any] | None:
        """What is most likely an artefact, if anything is more likely one than not."""
        suspects = self.found.suspects
        return suspects.row(0, named=True) if suspects.height else None

    def _relies_on(self, row: Mapping[str, Any]) -> str:
        """The first template: it names what the model relies on, and what the data says."""
        relies = "relies on"
        if row["phrase"] == self._strongest()["phrase"]:
            relies = "relies most on"
        start = f"This model {relies} {name_of(row)}: {moves_by(row, self._unit)}."
        if row["status"] == str(Status.UNSUPPORTED):
            return f"{start} The evaluation data does not support that."
        expected = "Would you expect it to matter that much?"
        if row["status"] == str(Status.SUPPORTED):
            return (
                f"{start} It also predicts the label in this file. {expected} "
                "If not, the model and this file may share a shortcut."
            )
        if row["status"] == str(Status.CONTEXT):
            return f"{start} Without it the true class becomes less likely. {expected}"
        if row["status"] == str(Status.ABSENT):
            return f"{start} No document of this file is like that. {expected}"
        documents = plural(row["documents"], "document")
        return (
            f"{start} This file, with it in {documents}, can neither support nor contradict that. "
            f"{expected}"
        )

    def _strongest(self) -> dict[str, Any]:
        """Of what occurs in the documents, the candidate that moves a prediction most."""
        occurring = self._occurring()
        strongest = occurring if occurring.height else self.found.uses
        return strongest.row(0, named=True)

    def _occurring(self) -> pl.DataFrame:
        """The candidates that occur in the documents, phrases as a whole; forms need not occur."""
        occurring = self.found.uses.filter(pl.col("documents") > 0)
        return occurring.unique("phrase", keep="first", maintain_order=True)

    def _nothing_dominates(self) -> str:
        """The second template: of what is in the documents, what decides and what moves most."""
        start = "No word, form or pattern dominates."
        decides = self.found.most_deciding
        if not decides.height or self._strongest()["move"] is None:
            return f"{start} None that was measured moves a prediction."
        first = decides.row(0, named=True)
        strongest = self._strongest()
        share = percent(first["share"], 0)
        low = percent(first["share_low"], 0)
        high = percent(first["share_high"], 0)
        size = size_of(strongest["move"], self._unit)
        return (
            f"{start} {_capital(name_of(first))} decides most "
            f"({share} of all effects, 95% CI {low} to {high}); {name_of(strongest)} moves a "
            f"prediction most: it {size}."
        )

    @property
    def _unit(self) -> str:
        """That of changes of predictions: "log-odds" or "scaled output"."""
        return str(self.found.reading["unit"])

    def verdict(self) -> Text:
        """Whether a shortcut is suspected, none dominates, or this file cannot tell."""
        diagnosis = self.found
        suspect = self._suspect()
        if suspect is not None and not diagnosis.reading["warning"]:
            if suspect["status"] == str(Status.UNSUPPORTED):
                return Text(
                    "Verdict: a shortcut is suspected; the data does not support how far "
                    f"{name_of(suspect)} moves predictions.",
                    "bad",
                )
            return Text(
                "Verdict: this file cannot tell whether what the model relies on is a shortcut.",
                "warning",
            )
        if diagnosis.reading["warning"] or not diagnosis.learned:
            return Text(
                "Verdict: cannot tell, as the model has not been shown to predict the label.",
                "warning",
            )
        n = plural(diagnosis.reading["coverage"]["words"], "word")
        return Text(
            f"Verdict: no word, form or pattern dominates, of {n} and "
            f"{diagnosis.forms.height} changes of formatting. A mark that does not occur in this "
            "file cannot be found in it; one in few documents is often missed.",
            "good",
        )

    def _coverage(self) -> str:
        """Which words were looked at, and which were not."""
        coverage = self.found.reading["coverage"]
        n_read = self.found.documents["read"]
        n_all = self.found.documents["all"]
        words = plural(coverage["words"], "word")
        line = (
            f"Examined {words} found in at least {coverage['min_documents']} of "
            f"{count(n_read)} documents"
        )
        if n_all > n_read:
            line += f" ({count(n_all)} in the file)"
        n_rescued = len(coverage["rescued"])
        if n_rescued:
            line += f", and {plural(n_rescued, 'rarer one')} that stood out"
        n_left = coverage["distinct"] - coverage["words"] - n_rescued
        if n_left <= 0:
            return f"{line}."
        left = plural(n_left, "rarer word was", "rarer words were")
        alone = ""
        if coverage["rare"]:
            alone = f" ({count(coverage['rare'])} of them were screened individually)"
        return f"{line}. {left} not examined closely{alone}."

    def sentences(self) -> list[str]:
        """How well the model predicts, what it uses most, and what it uses without support."""
        if not self.found.learned:
            return [self._skill_sentence()]
        sentences = [
            self._skill_sentence(),
            self._removal_sentence(),
            self._decides_sentence(),
            self._moves_sentence(),
            self._leaning_sentence(),
            self._overweighted_sentence(),
        ]
        return [sentence for sentence in sentences if sentence]

    def _beside_headline(self) -> list[str]:
        """Of these sentences, those that no picture or table of the report shows again."""
        sentences = [self._skill_sentence()]
        if not self.found.learned:
            return sentences
        if self.found.leaning["phrase"].n_unique() > 1:  # the headline names the first
            sentences.append(self._leaning_sentence())
        if self._overweighted():
            sentences.append(self._overweighted_sentence())
        return sentences

    def _removal_sentence(self) -> str:
        """How much the true class loses without a word that the model uses; empty if unclear."""
        removal = self.found.skill.removal
        if not (removal.low > 0 or removal.high < 0):
            return ""
        change = f"{signed(-removal.mean)} {interval(-removal.high, -removal.low)}"
        return (
            f"Removing a word that it uses changes the {self._unit} of the true class by "
            f"{change} on average."
        )

    def _decides_sentence(self) -> str:
        decides = self._listed(self.found.most_deciding, "share")
        if not decides:
            return ""
        return f"These decide most predictions, by their fraction of all effects: {decides}."

    def _moves_sentence(self) -> str:
        moves = self._listed(self._occurring(), "move")
        if not moves:
            return ""
        return f"These move a prediction most, in {self._unit}: {moves}."

    def _leaning_sentence(self) -> str:
        phrases = self.found.leaning.unique("phrase", keep="first", maintain_order=True)
        if phrases.is_empty():
            return ""
        leaning = [name_of(row) for row in phrases.iter_rows(named=True)]
        return (
            f"The data does not support its use of {listed(leaning)}. Check its training data "
            "for a shortcut."
        )

    def _overweighted_sentence(self) -> str:
        overweighted = self._overweighted()
        if not overweighted:
            return ""
        return (
            f"It gives {listed(overweighted)} more weight than the data supports, but not so "
            "much as to dominate its predictions."
        )

    def _overweighted(self) -> list[str]:
        """Names of unsupported candidates that are no suspects; the table marks them as such."""
        suspects = self.found.suspects["phrase"]
        is_unsupported = pl.col("status") == str(Status.UNSUPPORTED)
        rows = self._occurring().filter(
            is_unsupported & ~pl.col("phrase").is_in(suspects.implode())
        )
        return [name_of(row) for row in rows.iter_rows(named=True)]

    def _skill_sentence(self) -> str:
        """Accuracy and AUC with what they show."""
        skill = self.found.skill
        rate = (
            f"{percent(skill.accuracy)} (95% CI {percent(skill.accuracy_low)} to "
            f"{percent(skill.accuracy_high)})"
        )
        return (
            f"{self._learning()}: accuracy {rate} on {count(skill.documents)} documents, largest "
            f"class {percent(skill.majority)}, AUC {plain(skill.auc)} (random word weights reach "
            f"{plain(skill.auc_random)})."
        )

    @staticmethod
    def _listed(rows: pl.DataFrame, column: str) -> str:
        """The first candidates with a number each; empty if none was measured."""
        parts = []
        for row in rows.filter(pl.col(column).is_not_null()).head(N_LISTED).iter_rows(named=True):
            value = percent(row[column]) if column == "share" else plain(row[column])
            parts.append(f"{name_of(row)} ({value})")
        return ", ".join(parts)

    def _learning(self) -> str:
        """What the model's accuracy shows, as the beginning of a sentence."""
        diagnosis = self.found
        skill = diagnosis.skill
        if diagnosis.reading["warning"]:
            return (
                "Words are not listed until the outputs are in the right order. "
                "With the current names"
            )
        if diagnosis.learned:
            return "This model has learned to predict the label"
        if diagnosis.learning is Learning.OPEN:
            return "How well it predicts"
        if diagnosis.learning is Learning.BARELY:
            return (
                "It ranks documents better than chance, "
                "but no better than random word weights could"
            )
        if skill.auc < 1 - skill.auc_random:  # reversed further than random weights get
            return (
                "Its predictions contradict the labels; "
                "check that each output is matched with the right class"
            )
        if not skill.above_chance:
            return "Its predictions are no better than chance"
        return "No single word measurably improves its predictions"

    def _next_step(self) -> str:
        diagnosis = self.found
        if diagnosis.reading["warning"]:
            return (
                "Put the names in config.json into the right order, or set the order with --map, "
                "and run this again."
            )
        suspect = self._suspect()
        if suspect is not None and suspect["status"] == str(Status.UNSUPPORTED):
            return (
                f"Look at the training documents {having(suspect)}, then train without them "
                "and compare both models."
            )
        if suspect is not None:
            return (
                "If that surprises you, diagnose the model on documents in which it is unrelated "
                "to the label."
            )
        if not diagnosis.learned:
            return (
                "Check that the model, the labels and the documents belong together before you "
                "read on."
            )
        return (
            "Check the top of both lists for anything that should not matter. "
            "For rarer words, lower --min-documents."
        )

    def _two_lists(self) -> list[Block]:
        """What decides most predictions, and what moves a prediction most."""
        decides = self.found.most_deciding
        moves = self.found.uses.filter(pl.col("move").is_not_null())
        moves = moves.unique("phrase", keep="first", maintain_order=True)
        blocks: list[Block] = []
        pictures: list[Block] = []
        if decides.height:
            pictures.append(_picture("decides", decides, "share", "% of all effects"))
            tables = self._tables(decides, "share", "By fraction of all effects", self._rest_note())
            blocks.append(Section("What decides most predictions", tables))
        if moves.height:
            note = (
                "Words were inserted where they usually stand, phrases as a whole; documents were "
                "given each form; pairs of words changed places."
            )
            axis = f"change of the prediction, {self._unit}"
            # as in the sentence above the pictures; forms that no document has are in the table
            drawn = moves.filter(pl.col("documents") > 0)
            pictures.append(_picture("moves", drawn if drawn.height else moves, "move", axis))
            tables = self._tables(moves, "move", "By change of the prediction", note)
            hidden = self._invisible_forms()
            blocks.append(Section("What moves a prediction most", (*tables, *hidden)))
        if pictures:  # side by side
            blocks.insert(0, Section("What the model relies on", tuple(pictures), only=PAGE))
        return blocks

    def _tables(
        self, rows: pl.DataFrame, first: str, title: str, note: str = ""
    ) -> tuple[Table, Table]:
        """The table of one question, for a terminal and for a page; its number comes first."""
        named = rows.with_columns(kind_name=pl.col("kind").replace_strict(KIND_NAMES))
        fields = _fields(first, self._unit)
        columns = tuple(field.column for field in fields)
        body = cells(named, [field.names for field in fields])
        in_terminal = (0, 2, 4)  # the candidate, its number, and what the data says
        narrow = [tuple(row[i] for i in in_terminal) for row in body]
        short = Table(title, tuple(columns[i] for i in in_terminal), narrow, only=("terminal",))
        return short, Table(title, columns, body, note, searchable=True, only=PAGE)

    def _rest_note(self) -> str:
        listed = float(self.found.most_deciding["share"].sum())
        other_words = plural(self.found.rest.n_words, "other word")
        return f"{other_words} account for {percent(max(1 - listed, 0.0), 0)}."

    def _invisible_forms(self) -> tuple[Block, ...]:
        """Forms that the model cannot see."""
        hidden = self.found.forms.filter(~pl.col("visible"))["form"].to_list()
        if not hidden:
            return ()
        return (
            Text(
                f"Documents {' and '.join(hidden)} give this model the same tokens as the "
                "originals."
            ),
        )

    def _skill(self) -> tuple[Block, ...]:
        skill = self.found.skill
        accuracy = f"95% CI {percent(skill.accuracy_low)} to {percent(skill.accuracy_high)}"
        auc = f"95% CI {plain(skill.auc_low)} to {plain(skill.auc_high)}"
        facts = (
            Fact("accuracy", percent(skill.accuracy), accuracy),
            Fact("largest class", percent(skill.majority)),
            Fact("AUC", plain(skill.auc), auc),
            Fact("AUC of random weights", plain(skill.auc_random), "97.5% of draws are lower"),
        )
        lines = [f"Length: {self._length()}."]
        if self.found.learned and self._removal_sentence():
            lines.insert(0, self._removal_sentence())
        return Facts(facts), self._confusion(), *map(Text, lines)

    def _confusion(self) -> Table:
        """How many documents of each class were predicted as each."""
        labels = self.found.classes[:N_CLASSES_SHOWN]
        rows = []
        for label, counts in zip(labels, self.found.skill.confusion, strict=False):
            total = max(counts.sum(), 1)
            cells_of_label = [(int(n), float(n / total)) for n in counts[: len(labels)]]
            rows.append((label, *cells_of_label))
        heads = [Column(for_display(label, 24), "cell") for label in labels]
        columns = (Column("label", "token"), *heads)
        return Table("Documents by label (rows) and prediction", columns, rows)

    def _length(self) -> str:
        """How many documents were longer than an input, and what was lost."""
        reading = self.found.reading
        n_read = self.found.documents["read"]
        if not reading["all_pieces"]:
            return "the model reads whole texts itself; it is unknown whether it truncates any"
        in_windows = self.found.settings["long"] == "windows"
        n_long = reading["long_documents" if in_windows else "truncated_documents"]
        documents = f"{count(n_long)} of {count(n_read)} documents ({percent(n_long / n_read)})"
        if in_windows:
            return (
                f"{documents} are longer than one input and were read in windows, "
                f"{count(reading['windows'])} inputs in all; nothing was truncated"
            )
        if not n_long:
            return "no document was truncated"
        lost = reading["lost_pieces"]
        pieces = reading["all_pieces"]
        return (
            f"{documents} were truncated, which lost {count(lost)} of {count(pieces)} word pieces "
            f"({percent(lost / pieces)})"
        )

    def _method(self) -> tuple[Block, ...]:
        reading = self.found.reading
        lines = [
            f"Words were screened by {reading['method']}; those in the tables were measured by "
            "removing and inserting them."
        ]
        if reading["reads"]:
            where = f"the {reading['reads']} position"
            if reading["reads"] == "mean":
                where = "the mean over all positions"
            lines.append(f"The model predicts from {where}.")
        lines.append(SUBSTITUTES[reading.get("substitute", "cut")])
        notes = [Text(for_display(note, 400), "note") for note in self.found.notes]
        return (*map(Text, lines), *notes, Terms(tuple(TERMS.items())))

    def _data_words(self, label: str) -> Table:
        """The words that the data shows most reliably to predict a class."""
        predicts = (pl.col("class") == label) & (pl.col("q_value") < 0.05) & (pl.col("effect") > 0)
        rows = self.found.tokens.filter(predicts)
        rows = rows.sort("posterior_low", "token", descending=[True, False]).head(N_DATA_WORDS)
        columns = (
            Column("word", "token"),
            Column("documents", "count"),
            Column("posterior difference", "interval"),
            Column("moves", "plain", unit=self._unit),
            Column("prediction for it alone", "signed", unit=self._unit),
        )
        names = ("token", "documents", POSTERIOR, "move", "value")
        return Table(f"Words that predict {for_display(label, 40)}", columns, cells(rows, names))

    def model_card(self) -> Section:
        """A section for a model card: what the model uses, with the evidence."""
        name = for_display(self.found.name)
        measured = f"Measured with tokensieve {__version__} on {name}. {self._coverage()}"
        texts = [self.headline(), self.verdict().text, measured, *self.sentences()]
        blocks: list[Block] = [Text(text) for text in texts]
        if self.found.learned:
            rows = self.found.uses.filter(pl.col("move").is_not_null()).head(12)
            blocks.append(self._tables(rows, "move", "")[1])
        return Section("What this model uses", tuple(blocks))


def name_of(row: Mapping[str, Any]) -> str:
    """How a sentence names a candidate, a word together with those that always come with it."""
    token = for_display(row["phrase"], 60)
    if row["kind"] == "form":
        return f"the formatting of documents ({token})"
    if row["kind"] == "pattern":
        return f"any {token.strip('[]').removeprefix('an ').removeprefix('a ')}"
    if row["kind"] == "order":
        first, second = token.split(" … ")
        return f"the order of “{first}” and “{second}”"
    return f"“{token}”"


def having(row: Mapping[str, Any]) -> str:
    """How a sentence says that documents have a candidate; it follows "documents"."""
    token = for_display(row["phrase"], 60)
    if row["kind"] == "form":
        return token
    if row["kind"] == "order":
        first, second = token.split(" … ")
        return f"with “{first}” before “{second}”"
    if row["kind"] == "pattern":
        return f"with {token.strip('[]')}"
    return f"with “{token}”"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = list(names[:N_LISTED])
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)


def moves_by(row: Mapping[str, Any], unit: str) -> str:
    """How far and where to a candidate moves predictions, as a clause."""
    direction = "in either direction"
    if row["consistency"] >= MOSTLY_ONE_WAY:
        direction = f"mostly towards {for_display(row['class'], 40)}"
    if row["consistency"] >= ONE_WAY:
        direction = f"towards {for_display(row['class'], 40)}"
    size = f"{size_of(row['move'], unit)} on average, {direction}"
    if row["kind"] == "form":
        return f"writing documents that way {size}"
    if row["kind"] == "order":
        return f"putting the first before the second {size}"
    return f"inserting it {size}"


def size_of(move: float, unit: str) -> str:
    """What a change of a prediction does, as a verb with its object."""
    if unit != "log-odds":
        return f"moves the output by {plain(move / SPREAD_OF_LOG_ODDS, 1)} standard deviations"
    fold = math.exp(min(move, math.log(2 * MOST_FOLD)))
    times = f"{plain(fold, 1)}-fold"
    if fold >= MOST_FOLD:
        times = f"more than {count(MOST_FOLD)}-fold"
    elif fold >= 10:
        times = f"{fold:.0f}-fold"
    return f"changes the odds {times} ({plain(move, 1)} log-odds)"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class WithInterval(NamedTuple):
    """Three columns of a frame that are one cell of a table: a number with its interval."""

    value: str
    low: str
    high: str


ColumnNames = str | WithInterval
SHARE = WithInterval("share", "share_low", "share_high")
MOVE = WithInterval("move", "move_low", "move_high")
USE = WithInterval("use", "use_low", "use_high")
POSTERIOR = WithInterval("posterior_difference", "posterior_low", "posterior_high")


def cells(rows: pl.DataFrame, names: Sequence[ColumnNames]) -> list[tuple[object, ...]]:
    """Cells of a table, from columns of a frame."""
    return [
        tuple(
            row[name] if isinstance(name, str) else tuple(row[part] for part in name)
            for name in names
        )
        for row in rows.iter_rows(named=True)
    ]


@dataclass(frozen=True)
class _Field:
    """A column of a table, and the columns of a frame that its cells come from."""

    column: Column
    names: ColumnNames


def _fields(first: str, unit: str) -> list[_Field]:
    """The columns of a table; the number that answers its question comes first."""
    numbers = [
        _Field(Column("decides", "rate", bar=first == "share"), SHARE),
        _Field(Column("moves", "interval", unit=unit, bar=first == "move"), MOVE),
    ]
    if first == "move":
        numbers.reverse()
    marks = {str(status): mark for status, mark in MARKS.items()}
    return [
        _Field(Column("word, form or pattern", "token"), "phrase"),
        _Field(Column("kind"), "kind_name"),
        numbers[0],
        _Field(Column("evidence for", "token"), "class"),
        _Field(Column("data", marks=marks), "status"),
        numbers[1],
        _Field(Column("artefact", "percent", 0), "artefact"),
        _Field(Column("documents", "count"), "documents"),
        _Field(Column("when removed", "interval", unit=unit, extra=True), USE),
        _Field(Column("predictions changed", "percent", 0, extra=True), "flipped"),
        _Field(Column("data supports", "plain", unit="log-odds", extra=True), "supported"),
        _Field(Column("posterior difference", "interval", extra=True), POSTERIOR),
        _Field(Column("q", "chance", extra=True), "q_value"),
        _Field(Column("context AUC", "plain", extra=True), "context_auc"),
    ]


def _picture(name: str, rows: pl.DataFrame, column: str, axis: str) -> Picture:
    """A bar with its interval for each of the first rows of a list."""
    title = "What moves a prediction most"
    scale = 1
    if column == "share":
        title = "What decides most predictions"
        scale = 100
    words = [
        {
            "rank": rank,
            "text": for_display(row["phrase"], 24),
            "x": scale * row[column],
            "low": scale * row[f"{column}_low"],
            "high": scale * _drawn_end(row[column], row[f"{column}_high"]),
            "data": row["status"],
        }
        for rank, row in enumerate(rows.head(N_IN_PICTURE).iter_rows(named=True))
    ]
    listing = ", ".join(f"{word['text']} {plain(word['x'])}" for word in words)
    return Picture(
        name,
        "diagnose-use",
        {"words": words, "axis": axis},
        title,
        "Colours show what the data says; lines are 95% intervals.",
        f"{title}: {listing}.",
    )


def _drawn_end(value: float, high: float | None) -> float:
    """Where the interval of a bar ends in the picture; `high` is None if it is unlimited."""
    limit = LONGEST_BAR * value
    return limit if high is None else min(high, limit)
