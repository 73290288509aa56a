"""The result of an audit: numbers and tables, from which the terminal output, the page and the files are written."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import entr

from tokensieve import __version__
from tokensieve.arrays import Ints
from tokensieve.auditing.checks.signs import Sign
from tokensieve.auditing.findings import ROWS, Finding
from tokensieve.auditing.limits import kinds_over, tokens_over
from tokensieve.auditing.model_card import ModelCard
from tokensieve.auditing.phrases import quoted
from tokensieve.auditing.preferences import PreferenceFacts
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.escape import for_display, printable
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.files import Content, csv_table
from tokensieve.model.attention import decide, probabilities
from tokensieve.model.storage import model_files
from tokensieve.report.blocks import Passage
from tokensieve.task.agreement import FLOOR, Quadrant
from tokensieve.task.tasks import CorpusModel
from tokensieve.text.formatting import is_formatting
from tokensieve.text.settings import TokenSettings
from tokensieve.text.tokenizers import FieldTokenizer
from tokensieve.wording import percent

if TYPE_CHECKING:
    from tokensieve.model.classifier import AttentionClassifier
    from tokensieve.report.blocks import Report


TOKEN_FIELDS = {field.name for field in fields(TokenSettings)}


@dataclass(frozen=True)
class Invocation:
    """The source that a command audited, one or several, and the folder of the results, as they were written."""

    source: str | list[str]
    out: str


@dataclass(frozen=True, repr=False)
class Audit:
    """Everything an audit found; the terminal, the page and the files are written from it.

    Attributes:
        learned: the trained model, and the documents it was trained and tested on.
        settings: as given.
        tokens: a row per token type and class: the columns of `Importance.to_frame`, then score u, value w, attention (relative to
            a uniform share, averaged over the documents containing the token) and quadrant.
        neutral: class → posterior difference of a token that predicts nothing.
        attention_share: quadrant → (fraction of all attention, fraction of uniform attention) of its types, means over training
            documents; both sum to one.
        findings: what to act on, most serious first.
        baseline_accuracy: test accuracy of TF-IDF + logistic regression on the same token counts; None without the baseline.
        honest_accuracy: test accuracy with all tokens, and of a model trained without the shortcut tokens; None if there are no
            shortcuts.
        few_words: the 15 most informative words, and the test accuracy of a model of these and length alone; None for pairs.
        label_issues: training documents that may have the wrong label (row, label, looks_like, margin, against).
        environments: for each token type and class, its effect in each environment and whether the effects agree; empty without
            environments.
        curve: test accuracy by number of training documents; empty if it was not measured.
        pairs: further results for preference pairs; None for labels.
        seconds: reading, tokenizing, training, baseline, …, total.
        invocation: what the command read and wrote; None for an audit in Python.
    """

    learned: CorpusModel
    settings: Settings
    tokens: pl.DataFrame
    neutral: dict[str, float]
    attention_share: dict[str, tuple[float, float]]
    findings: tuple[Finding, ...] = ()
    baseline_accuracy: float | None = None
    honest_accuracy: tuple[Share, Share] | None = None
    few_words: tuple[tuple[str, ...], Share | None] | None = None
    label_issues: pl.DataFrame = field(default_factory=pl.DataFrame)
    environments: pl.DataFrame = field(default_factory=pl.DataFrame)
    curve: pl.DataFrame = field(default_factory=pl.DataFrame)
    pairs: PreferenceFacts | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    invocation: Invocation | None = None

    most_named = 8  # tokens in a command
    own_files = (  # of an earlier audit; others in the folder are the user's
        r"card\.md|(over-budget|label-issues|environments|pairs)\.csv|"
        r"pictures/((value|score|top|alarm)(-class-\d+)?|alignment)\.(svg|png|pdf|csv)"
    )

    def __repr__(self) -> str:
        n, classes = self.documents, len(self.classes)
        return (
            f"Audit({self.name!r}: {n['train']:,} training and {n['test']:,} test documents, {classes} classes, "
            f"{self.token_types:,} token types, test accuracy {self.test_accuracy:.3f})"
        )

    # ---- the data

    @property
    def name(self) -> str:
        """The source."""
        return self.learned.train.corpus.name

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names; with two, the second is y = +1."""
        return self.learned.train.counts.classes

    @property
    def documents(self) -> dict[str, int]:
        """{"train": …, "test": …}."""
        return dict(self.learned.summary["documents"])

    @property
    def class_documents(self) -> dict[str, int]:
        """Training documents per class."""
        return dict(self.learned.summary["class_documents"])

    @property
    def token_types(self) -> int:
        """|S|."""
        return self.learned.train.counts.n_types

    @property
    def unknown_share(self) -> float:
        """Fraction of the words in the test documents that are too rare in training to be tokens."""
        return float(self.learned.summary["unknown_share"])

    @property
    def notes(self) -> list[str]:
        """What happened while the source was read, in plain words."""
        return self.learned.notes

    @property
    def seed(self) -> int:
        """The seed of the split and of training."""
        return self.settings.seed

    @property
    def version(self) -> str:
        """The version of this package."""
        return __version__

    # ---- the model on its test documents

    @cached_property
    def model(self) -> AttentionClassifier:
        """The trained model as a scikit-learn classifier. Importing scikit-learn takes a second."""
        from tokensieve.model.classifier import AttentionClassifier

        trained = self.learned.model
        assert trained.vocabulary is not None
        return AttentionClassifier.of(trained, tokenizer=trained.vocabulary.tokenizer)

    @cached_property
    def accuracy(self) -> Share:
        """Test documents (of pairs, pairs) predicted correctly, with an interval over groups if documents are grouped."""
        return self.learned.task.accuracy(self.learned.f, self.learned.test)

    @property
    def test_accuracy(self) -> float:
        """`accuracy` as a number."""
        return float(self.learned.summary["test_accuracy"])

    @property
    def without_shortcuts(self) -> str:
        """Accuracy with and without the shortcuts, as a sentence; empty if there are none."""
        if self.honest_accuracy is None:
            return ""
        whole, without = self.honest_accuracy
        shortcuts = [finding.tokens for finding in self.findings if finding.kind == "shortcut"]
        tokens, them = [token for of in shortcuts for token in of], "the shortcuts"
        if 0 < len(tokens) < 4 and all(shortcuts) and not any(map(is_formatting, tokens)):
            them = quoted(tokens)
        chance = (
            ", a difference within chance" if without.low <= whole.value <= without.high else ""
        )
        several, also = len(tokens) > 1 or len(shortcuts) > 1, "But the" if chance else "The"
        change = f" instead of {percent(whole.value)}{chance}"
        if percent(without.value) == percent(whole.value):
            change = f", as it does with {'them' if several else 'it'}"
        return (
            f"Trained without {them}, the model reaches {without}{change}. {also} test set "
            f"contains the shortcut{'s' * several} too, so accuracy can be lower on texts without {'them' if several else 'it'}."
        )

    @property
    def majority_accuracy(self) -> float:
        """Test accuracy of always predicting the largest class of the training documents."""
        return float(self.learned.summary["majority_accuracy"])

    @property
    def class_recall(self) -> dict[str, float | None]:
        """Class → fraction of its test documents that are predicted correctly (None if it has none)."""
        return dict(self.learned.summary["class_recall"])

    @cached_property
    def card(self) -> ModelCard | None:
        """Precision, recall, calibration and the like; None for pairs."""
        if not self.learned.task.classifies:
            return None
        f = self.learned.f if self.learned.f.shape[1] > 1 else self.learned.f[:, 0]
        return ModelCard.of(
            f, self.learned.test.word_counts, self.learned.train.counts.class_sizes, self.curve
        )

    @property
    def by_certainty(self) -> tuple[Ints, Ints]:
        """Test documents with a known token, most confident prediction first: those predicted correctly, and the others."""
        f, counts = self.learned.f, self.learned.test.counts
        order = np.argsort(entr(probabilities(f)).sum(axis=1), kind="stable")
        order = order[np.diff(counts.matrix.indptr)[order] > 0]
        right = decide(f)[order] == counts.labels[order]
        return order[right], order[~right]

    @cached_property
    def examples(self) -> list[Passage]:
        """Ten test documents, split into pieces with their contributions: three confident and two uncertain correct predictions,
        and as many wrong ones."""
        test, f = self.learned.test, self.learned.f
        chosen = np.concatenate(
            [np.append(group[:3], group[3:][::-1][:2]) for group in self.by_certainty]
        ).astype(int)
        out, predicted = list[Passage](), decide(f)
        for i, chances in zip(chosen.tolist(), probabilities(f[chosen]), strict=True):
            k, label = int(predicted[i]), int(test.counts.labels[i])
            output = 1 if f.shape[1] == 1 else k
            cut = self.learned.model.pieces(test.corpus.texts[i], output, test.counts.matrix[[i]])
            note = f"predicted {for_display(self.classes[k], 30)} with probability {percent(float(chances[k]))}"
            parts = tuple((piece[0], piece[1]) for piece in cut)
            row, name = int(test.corpus.rows[i]), for_display(self.classes[label], 30)
            out.append(Passage(parts, name, row, note, "good" if k == label else "bad"))
        return out

    # ---- tokens

    @cached_property
    def quadrants(self) -> dict[Quadrant, int]:
        """How many token types are in each quadrant."""
        sizes = dict(self.tokens.group_by("quadrant").agg(pl.col("token").n_unique()).iter_rows())
        return {quadrant: sizes.get(quadrant.value, 0) for quadrant in Quadrant}

    def top(self, label: object = None, rows: int = 10) -> pl.DataFrame:
        """The strongest predictors of a class, given by name (1 is "1"), or of any class: q < 0.05, in at least 5 documents,
        ordered by the conservative bound of their posterior difference; an `InputError` if there is no such class."""
        if label is not None and str(label) not in self.classes:
            names = ", ".join(repr(name) for name in self.classes[:10])
            raise InputError(f"{label!r:.60} is not a class of this audit; its classes are {names}")
        found = self.tokens.lazy().filter(
            pl.lit(label is None) | (pl.col("class") == str(label)),
            pl.col("q_value") < LEVEL,
            pl.col("effect") > 0,
            pl.col("documents") >= FLOOR,
        )
        return found.sort("posterior_low", "token", descending=[True, False]).head(rows).collect()

    def top_of_each_class(self, rows: int) -> dict[str, list[str]]:
        """The tokens of `top` of every class, in one pass over the table."""
        strongest = self.top(rows=self.tokens.height)
        listed = strongest.group_by("class", maintain_order=True).agg(pl.col("token").head(rows))
        none: dict[str, list[str]] = {label: [] for label in self.classes}
        return none | dict(listed.iter_rows())

    def disagreement(self, quadrant: Quadrant | str, rows: int = 10) -> pl.DataFrame:
        """Tokens of one quadrant, in at least 5 documents, each for the class that it predicts most, largest effect first; of
        `Quadrant.MODEL` most attended first, and only those with p ≥ 0.05, before any correction for the number of tokens."""
        quadrant = Quadrant(quadrant)
        found = self.tokens.lazy().filter(
            pl.col("quadrant") == quadrant.value, pl.col("effect") > 0, pl.col("documents") >= FLOOR
        )
        found = found.sort("effect", "token", descending=[True, False]).unique(
            "token", maintain_order=True
        )
        if quadrant is Quadrant.MODEL:
            found = found.filter(pl.col("p_value") >= LEVEL).sort(
                "attention", "token", descending=[True, False]
            )
        return found.head(rows).collect()

    def maskable(self, finding: Finding) -> list[str]:
        """The tokens of a finding that `mask` cuts from texts: no formatting, no value of another column, up to 200 characters."""
        words = [
            token for token in finding.tokens if len(token) <= 200 and not is_formatting(token)
        ]
        vocabulary = self.learned.model.vocabulary
        splitter = vocabulary and vocabulary.tokenizer
        return [
            token
            for token in words
            if not (isinstance(splitter, FieldTokenizer) and splitter.is_value(token))
        ]

    @property
    def mask_paths(self) -> tuple[list[str], str]:
        """The sources as `mask` takes them, and a file for the copy: masked.csv, or masked-2.csv if it is the source."""
        given = "SOURCE" if self.invocation is None else self.invocation.source
        paths = [
            f"./{one}" if one[:1] == "-" != one else one
            for one in ([given] if isinstance(given, str) else given)
        ]
        columns = self.learned.train.corpus.reading.columns
        # messages and nested columns do not fit into CSV
        suffix = ".jsonl" if self.settings.role or any("." in name for name in columns) else ".csv"
        again = re.fullmatch(rf"masked(?:-(\d+))?\{suffix}", Path(paths[0]).name)
        return paths, f"masked-{int(again[1] or 1) + 1}{suffix}" if again else f"masked{suffix}"

    def mask_commands(self, tokens: Sequence[str], whole: bool = False) -> tuple[str, str, str]:
        """The command that removes tokens (the `whole` of those in the audit's folder) from the source, read and split as it
        was; the one that audits the copy in the same way, empty if a CSV file with the source's columns cannot take its place; and
        the one that compares the two audits, empty with it."""
        corpus, settings = self.learned.train.corpus, self.settings
        known, (sources, copy) = self.invocation is not None, self.mask_paths
        out = "" if self.invocation is None else self.invocation.out
        named = self.learned.task.text_options(corpus, known)
        # how the source is written; the copy is UTF-8 with commas, or JSON lines
        file = {"encoding", "separator", "header", "role"}
        words = ["mask", *sources, *named, *_options(self, file | TOKEN_FIELDS)]
        if whole and len(tokens) > self.most_named and known:
            words += ["--audit", out]
        else:
            words += [part for token in tokens for part in ("--token", token)]
        mask, weights = _command(*words, "--out", copy), settings.sample_weight
        columns = [
            *corpus.reading.columns,
            settings.by,
            settings.split,
            settings.environments,
            *settings.columns,
        ]
        elsewhere = any(one is not None for one in (settings.test, settings.having, settings.role))
        nested = any("." in str(name or "") for name in columns)
        if not known or elsewhere or nested or not isinstance(weights, str | None):
            return mask, "", ""
        others = (
            {one.name for one in fields(settings)} - file - {"limits", "text", "pairs", "budget"}
        )
        own = _options(self, others)
        again = _command("audit", copy, *named, *own, "--out", f"{out}-masked")
        folder = f"./{out}" if out.startswith("-") else out
        return mask, again, _command("compare", folder, f"{folder}-masked")

    def to_mask(self, finding: Finding) -> list[str]:
        """What `mask` should cut: the finding's words; for a rating such as 7/10, all ratings on its scale; and for a fixed phrase,
        the whole phrase in all its variants, because cutting "tablet" from "sent from my tablet" beside "sent from
        my phone" leaves what gives the label away."""
        phrases = [self._whole_phrases.get(word) or [word] for word in self.maskable(finding)]
        found = dict.fromkeys(phrase for one in phrases for phrase in one)
        scales = {
            token.partition("/")[2] for token in found if re.fullmatch(r"[\d.]+/\d{1,3}", token)
        }
        for scale in sorted(scales, key=int):
            if int(scale) > 100:  # a year, or no rating at all
                continue
            tokens = pl.Series(self.learned.train.counts.tokens, dtype=pl.String)
            named = tokens.filter(tokens.str.contains(rf"^[\d.]+/{scale}$")).to_list()
            if int(scale) <= 10:  # those that the training documents lack, too
                named += [f"{i}/{scale}" for i in range(int(scale) + 1)]
            assert self.learned.model.vocabulary is not None
            spans = self.learned.model.vocabulary.tokenizer.spans
            found |= dict.fromkeys(
                token for token in named if [name for _, _, name in spans(token)] == [token]
            )
        return list(found)

    @cached_property
    def _whole_phrases(self) -> dict[str, list[str]]:
        """Words of fixed phrases → their phrases (`Sign.whole_phrases`), found once, because all texts are read for them."""
        corpus, vocabulary = self.learned.train.corpus, self.learned.model.vocabulary
        if vocabulary is None or isinstance(vocabulary.tokenizer, FieldTokenizer):
            return {}
        out = {}
        for finding in self.findings:
            if Sign.BOILERPLATE.value in finding.signs:
                rows = finding.rows.filter(pl.col("part") == "train")["row"]
                documents = np.flatnonzero(np.isin(corpus.rows, rows))
                for word in self.maskable(finding):
                    out[word] = Sign.whole_phrases(
                        word, documents, corpus.texts, vocabulary.tokenizer
                    )
        return out

    @cached_property
    def suspicious(self) -> list[dict[str, str]]:
        """token, class and reason of the first word of each shortcut among the token types."""
        out: list[dict[str, str]] = []
        for finding in self.findings if self.learned.task.classifies else ():
            first = self.maskable(finding)[:1] if finding.kind == "shortcut" else []
            rows = self.tokens.filter(pl.col("token").is_in(first)).sort(
                "posterior_difference", descending=True
            )
            for row in rows.head(1).iter_rows(named=True):  # none of a phrase, beside single words
                share, pure = (
                    row["documents"] / self.documents["train"],
                    row["class_documents"] / row["documents"],
                )
                label = for_display(row["class"], 40)
                reason = f"occurs in {row['documents']:,} documents ({share:.1%}), {pure:.1%} of them labelled {label}"
                out.append({"token": row["token"], "class": row["class"], "reason": reason})
        return out

    # ---- what --fail-on allows

    @cached_property
    def over_budget(self) -> pl.DataFrame:
        """The rows of `tokens` that exceed `settings.budget`; none without one."""
        budget = self.settings.budget
        return (
            self.tokens.clear()
            if budget is None
            else tokens_over(budget, self.tokens, self.class_documents)
        )

    @cached_property
    def to_review(self) -> pl.DataFrame:
        """token, part ("train" or "test"), row and label of every document that contains a token of `over_budget`."""
        tokens, found = (
            self.over_budget["token"].unique(maintain_order=True),
            [pl.DataFrame(schema=ROWS)],
        )
        for name, part in (
            (("train", self.learned.train), ("test", self.learned.test)) if len(tokens) else ()
        ):
            place = {str(token): s for s, token in enumerate(part.counts.tokens)}
            held = part.counts.holders(np.array([place[token] for token in tokens], dtype=np.int64))
            which = np.repeat(np.arange(len(held)), list(map(len, held)))
            rows = part.corpus.rows_of(np.concatenate(held), name)
            rows = rows.with_columns(token=tokens.gather(which), place=pl.Series(which))
            found.append(rows.sort("place", "row").drop("place"))
        return pl.concat(found)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Kinds of findings that exceed `settings.budget`."""
        return (
            () if self.settings.budget is None else kinds_over(self.settings.budget, self.findings)
        )

    @property
    def fails(self) -> bool:
        """Whether a token or another finding exceeds the limits."""
        return not self.over_budget.is_empty() or bool(self.exceeded)

    # ---- what is written

    def report(self) -> Report:
        """The report that the terminal and the page show."""
        from tokensieve.auditing.report import audit_report

        return audit_report(self)

    def files(self) -> dict[str, Content]:
        """File name → content, for every file except the page and its pictures."""
        tables = {"tokens.csv": self.tokens, "findings.csv": self.finding_rows()}
        optional = {"label-issues.csv": self.label_issues, "environments.csv": self.environments}
        tables |= {name: table for name, table in optional.items() if not table.is_empty()}
        tables |= {"pairs.csv": self.pairs.wins} if self.pairs else {}
        tables |= {} if self.settings.budget is None else {"over-budget.csv": self.to_review}
        files: dict[str, Content] = {name: csv_table(table) for name, table in tables.items()}
        files.update(model_files(self.learned.model))
        files["findings.json"] = json.dumps(self.findings_dict(), ensure_ascii=False, indent=1)
        self.seconds.setdefault("total", sum(self.seconds.values()))
        files["summary.json"] = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        return files

    def save(self, folder: str | Path, pictures: bool = True) -> list[Path]:
        """Write the files of `tokensieve audit` into a folder, all or none (`tokensieve.save`)."""
        import tokensieve

        return tokensieve.save(self, folder, pictures)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        names = (
            "name classes documents class_documents token_types test_accuracy majority_accuracy class_recall baseline_accuracy "
            "unknown_share attention_share seconds seed settings version notes"
        )
        summary: dict[str, Any] = {name: getattr(self, name) for name in names.split()}
        columns = list(self.learned.train.corpus.reading.columns)
        settings = self.settings.to_dict() | {"columns": columns} | self.settings.source_options()
        if self.invocation is not None:
            # not where it is written: the same data gives the same file everywhere
            settings["source"] = self.invocation.source
        summary["settings"] = settings
        summary["accuracy_interval"] = [self.accuracy.low, self.accuracy.high]
        summary["suspicious"] = self.suspicious
        over = (
            "token",
            "class",
            "documents",
            "posterior_difference",
            "posterior_low",
            "posterior_high",
        )
        summary["over_budget"] = self.over_budget.select(over).to_dicts()
        summary["findings"] = Counter(finding.kind for finding in self.findings)
        summary["honest_accuracy"] = self.honest_accuracy and [
            share.to_dict() for share in self.honest_accuracy
        ]
        if self.few_words and self.few_words[1]:
            summary["few_words"] = {
                "tokens": list(self.few_words[0]),
                "accuracy": self.few_words[1].to_dict(),
            }
        of_task = {"model_card": self.card, "pairs": self.pairs}
        return summary | {name: part.to_dict() for name, part in of_task.items() if part}

    def findings_dict(self) -> dict[str, Any]:
        """The content of findings.json."""
        findings = [finding.to_dict() for finding in self.findings]
        for entry, finding in zip(findings, self.findings, strict=True):
            if finding.kind == "shortcut":
                entry["mask"] = self.to_mask(finding)
        return {"name": self.name, "version": self.version, "findings": findings}

    def finding_rows(self) -> pl.DataFrame:
        """Every document of every finding: finding (its place, from 1), kind, tokens, part, row, label."""
        document = {name: ROWS[name] for name in ("part", "row", "label")}
        parts = [
            pl.DataFrame(
                schema={"finding": pl.Int32, "kind": pl.String, "tokens": pl.String} | document
            )
        ]
        for i, one in enumerate(self.findings, 1):
            tokens = pl.lit(", ".join(one.tokens[:5]))
            own = one.rows.select(
                *document, finding=pl.lit(i, pl.Int32), kind=pl.lit(one.kind), tokens=tokens
            )
            parts.append(own.select(parts[0].columns))
        return pl.concat(parts)

    def to_frame(self) -> pl.DataFrame:
        """The table of tokens: a row per token type and class."""
        return self.tokens

    def _repr_html_(self) -> str:
        """The first screen and the findings, for notebooks."""
        import tokensieve

        return tokensieve.render(self, notebook=True)


def _options(audit: Audit, names: Collection[str]) -> list[str]:
    """Those of the audit's options among some settings that are not the defaults."""
    words = list[str]()
    for one in fields(audit.settings):
        value, notes = getattr(audit.settings, one.name), one.metadata.get("option", {})
        if one.name not in names or value == one.default or notes.get("flag") == "":
            continue
        if one.name == "tokenizer" and not isinstance(value, str | Path):
            continue  # an object: no command can name it
        flag = notes["flag"] or f"--{one.name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif isinstance(value, Mapping):
            words += [
                part for new, old in value.items() for part in (flag, f"{new}={','.join(old)}")
            ]
        else:
            words += [flag, ",".join(value) if isinstance(value, list | tuple) else str(value)]
    return words


def _command(*words: object) -> str:
    return " ".join(["tokensieve", *(shlex.quote(printable(str(word))) for word in words)])
