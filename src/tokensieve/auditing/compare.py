"""Two audits compared: which tokens predict the label in only one of them, or differently, and how the accuracy changed.

For the effects e_A, e_B of a token with their 95 % intervals (l, h), from independent documents (MOVER: Zou & Donner 2008):

    Δ = e_B − e_A,   low = Δ − √((e_B − l_B)² + (h_A − e_A)²),   high = Δ + √((h_B − e_B)² + (e_A − l_A)²)

so that the variances add. p is two-sided normal with z = 1.96 |Δ| / (the half-width towards zero): p < 0.05 exactly where the
interval excludes zero. q is Benjamini–Hochberg over all tokens and classes compared; a token has changed if q < 0.05.

A token that only one audit contains occurred in at most m − 1 documents of the other, where m is the minimum there. Its effect
there is taken as 0 ± |e| · ((m − 1)/n_other)/(d/n): the effect of so few documents if each weighed as much as those containing it.

Intervals are not paired. Audits of the same or overlapping documents are not independent: their differences vary less than these
intervals allow, so changes that are found are real, but some may be missed.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, NotRequired, TypedDict

import msgspec
import numpy as np
import polars as pl
from scipy.special import ndtr

from tokensieve import __version__
from tokensieve.arrays import Floats
from tokensieve.auditing.checks.registry import all_checks
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.link_report import RepairEffect
from tokensieve.auditing.outcomes import (
    FILE_NAME,
    AccuracyChange,
    outcomes_table,
    paired_change,
    read_outcomes,
)
from tokensieve.auditing.phrases import change_clause, quoted
from tokensieve.auditing.result import Audit
from tokensieve.auditing.settings import CHANGES, CompareSettings
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import LEVEL, Z95, Interval, Share, combined, false_discovery
from tokensieve.files import Content, check_sums, csv_table, parsed, read_regular
from tokensieve.report.blocks import Block, Column, Facts, Picture, Report, Section, Table, Text
from tokensieve.task.tasks import Labels, Preferences
from tokensieve.wording import count, noun, percent, plural, signed

NUMBERS = "posterior_difference effect effect_low effect_high q_value value".split()
MOST_DOCUMENTS = 2**53


_Number = Annotated[int, msgspec.Meta(ge=1, lt=MOST_DOCUMENTS)]  # of documents
_Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _AuditSettings(TypedDict):
    min_documents: NotRequired[_Number]


class _AuditSummary(TypedDict):
    """The part of summary.json that is read."""

    name: str
    classes: Annotated[tuple[str, ...], msgspec.Meta(min_length=2)]
    documents: dict[str, _Number]
    settings: _AuditSettings
    test_accuracy: _Fraction
    accuracy_interval: NotRequired[tuple[_Fraction, _Fraction]]
    findings: NotRequired[dict[str, int]]


class _Entry(TypedDict):
    """The part of a finding in findings.json that is read; 0.2 wrote neither title nor headline."""

    kind: str
    severity: float
    tokens: list[str]
    evidence: dict[str, Share]
    title: NotRequired[str]
    headline: NotRequired[str]


@dataclass(frozen=True)
class _Saved:
    """The part of an audit that a comparison needs."""

    name: str  # the source
    classes: tuple[str, ...]  # class names
    train: int  # documents
    test: int
    accuracy: Share  # of the test documents, with its interval
    floor: int  # documents that a token type needed
    tokens: (
        pl.DataFrame
    )  # token, class, documents, and the columns in NUMBERS; a row per token type and class
    findings: dict[str, int]  # kind → how many
    # title, headline and level of the most serious findings; none where the folder has no findings.json
    headlines: tuple[tuple[str, str, str], ...] = ()
    page: str = "the later audit"  # what to open: folder and report.html where there is one
    # a row per test item (`outcomes_table`); None in folders of 0.3, and of audits on a cluster
    outcomes: pl.DataFrame | None = None

    @classmethod
    def of(cls, audit: Audit) -> _Saved:
        """From an audit that is still in memory."""
        tokens = audit.tokens.select("token", "class", "documents", *NUMBERS)
        saved = cls._checked_contents(
            "the audit", audit.to_dict(), tokens, audit.findings_dict()["findings"]
        )
        return replace(saved, outcomes=outcomes_table(audit.learned))

    @classmethod
    def read(cls, folder: str | Path) -> _Saved:
        """From the folder that `tokensieve audit` or `save` wrote; an `InputError` for another, or damaged files."""
        path, where = Path(folder), repr(str(folder)[-80:])
        content: dict[str, Any] = {"findings.json": {"findings": []}}
        for name in (
            "summary.json",
            "tokens.csv",
            *["findings.json"] * (path / "findings.json").exists(),
        ):
            try:
                written = read_regular(path / name, limit=2**29 if name == "tokens.csv" else 2**26)
                content[name] = written if name == "tokens.csv" else parsed(written)
            except InputError:
                raise
            except (FileNotFoundError, NotADirectoryError):
                audits = (
                    []
                    if path.exists()
                    else [one.parent.name for one in path.parent.glob("*/summary.json")]
                )
                near = get_close_matches(path.name, audits, n=1)
                meant = [f"did you mean {str(path.with_name(one))!r}?" for one in near]
                missing = f"{name} is missing; {[*meant, 'create one with `tokensieve audit`'][0]}"
                raise InputError(f"{where} is not an audit folder: {missing}") from None
            except OSError as problem:
                raise InputError(f"{where} cannot be read: {problem.strerror or problem}") from None
            except (ValueError, RecursionError) as problem:
                raise _damaged_audit(where, f"{name}: {str(problem)[:100]}") from None
        tokens, findings = _token_table(where, content["tokens.csv"]), content["findings.json"]
        listed = findings.get("findings") if isinstance(findings, dict) else None
        found = cls._checked_contents(where, content["summary.json"], tokens, listed)
        check_sums(path)
        if (path / FILE_NAME).exists():
            outcomes = read_outcomes(read_regular(path / FILE_NAME, limit=2**29))
            if outcomes is None:
                raise _damaged_audit(where, f"{FILE_NAME} cannot be read")
            found = replace(found, outcomes=outcomes)
        page = path.resolve() / "report.html"
        return (
            replace(found, page=f"{for_display(page.parent.name, 60)}/{page.name}")
            if page.exists()
            else found
        )

    @classmethod
    def _checked_contents(
        cls, where: str, summary: Any, tokens: pl.DataFrame, findings: Any
    ) -> _Saved:
        """From the contents of the files, which are all checked."""
        try:
            known = msgspec.convert(summary, _AuditSummary)
            train, test = (known["documents"][side] for side in ("train", "test"))
        except (ValueError, OverflowError, KeyError) as problem:
            lacking = re.search(r"missing required field `(\w+)`|^'(\w+)'$", str(problem))
            if not lacking:
                raise _damaged_audit(where, "summary.json contains impossible numbers") from None
            name = lacking[1] or lacking[2]
            raise InputError(
                f"{where} is not an audit folder: its summary.json lacks {name!r}"
            ) from None
        classes, accuracy = known["classes"], known["test_accuracy"]
        share = Share.count(round(accuracy * test), test)
        low, high = known.get("accuracy_interval", (share.low, share.high))
        if len(set(classes)) < len(classes) or not low - 1e-9 <= accuracy <= high + 1e-9:
            raise _damaged_audit(where, "summary.json contains impossible numbers")
        if not set(tokens["class"]) <= set(classes):
            raise _damaged_audit(where, "tokens.csv names a class that is not in summary.json")
        try:
            first = msgspec.convert(findings[:3], list[_Entry])
        except (TypeError, ValueError) as problem:
            raise _damaged_audit(where, f"findings.json: {problem!s:.100}") from None
        cards = []
        for one in first:
            title = one.get("title", one["kind"])
            cards.append(
                (title, one.get("headline", title), Finding(one["kind"], one["severity"]).level)
            )
        share, floor = (
            replace(share, value=accuracy, low=low, high=high),
            known["settings"].get("min_documents", 1),
        )
        return cls(
            known["name"],
            classes,
            train,
            test,
            share,
            floor,
            tokens,
            known.get("findings", {}),
            tuple(cards),
        )

    def differences(self, other: _Saved, classes: tuple[str, ...]) -> pl.DataFrame:
        """The table of a comparison (`AuditComparison.table`)."""
        sides = [one.tokens.filter(pl.col("class").is_in(classes)) for one in (self, other)]
        both = sides[0].join(
            sides[1], on=["token", "class"], how="full", suffix="_after", coalesce=True
        )
        effects = []
        for suffix, opposite, mine, theirs in (
            ("", "_after", self, other),
            ("_after", "", other, self),
        ):
            share = pl.col(f"documents{opposite}") / theirs.train
            bound = pl.col(f"effect{opposite}").abs() * (mine.floor - 1) / mine.train / share
            filled = [
                pl.col(f"{name}{suffix}").fill_null(rest)
                for name, rest in (
                    ("effect", pl.lit(0.0)),
                    ("effect_low", -bound),
                    ("effect_high", bound),
                )
            ]
            effects.append(both.select(filled).to_numpy().T)
        delta, low, high, p = self.mover(*effects)
        e, f = effects[0][0], effects[1][0]
        predicts = [
            both[f"q_value{suffix}"].fill_null(1.0).to_numpy() < LEVEL for suffix in ("", "_after")
        ]
        always = predicts[0] & predicts[1]
        kinds = [~predicts[0] & predicts[1], predicts[0] & ~predicts[1]]  # in the order of CHANGES
        kinds += [always & (e * f < 0), always & (abs(f) > abs(e)), always]
        q = false_discovery(p[:, None])[:, 0]
        change = pl.Series(
            np.where(q < LEVEL, np.select(kinds, list(CHANGES), ""), ""), dtype=pl.String
        )
        columns: dict[str, object] = {
            "token": both["token"],
            "class": both["class"],
            "change": change,
        }
        columns |= {"effect_before": both["effect"], "effect_after": both["effect_after"]}
        columns |= {
            "difference": delta,
            "difference_low": low,
            "difference_high": high,
            "p_value": p,
            "q_value": q,
        }
        for name, column in (
            ("documents", "documents"),
            ("posterior", "posterior_difference"),
            ("value", "value"),
        ):
            columns |= {f"{name}_before": both[column], f"{name}_after": both[f"{column}_after"]}
        order = [pl.col("change") == "", -pl.col("difference").abs(), "token", "class"]
        return (
            pl.DataFrame(columns).sort(order).with_columns(pl.selectors.float().round_sig_figs(6))
        )

    @staticmethod
    def mover(before: Floats, after: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """after − before with its interval, and p (module formula); each side holds estimates, low and high ends, shape (3, …)."""
        sides = Interval(*(np.stack(ends, axis=-1) for ends in zip(before, after, strict=True)))
        difference = combined(np.array([[-1.0], [1.0]]), sides)
        delta = difference.estimate[..., 0]
        low = difference.low[..., 0]
        high = difference.high[..., 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(
                delta == 0,
                0.0,
                Z95 * np.abs(delta) / np.where(delta > 0, delta - low, high - delta),
            )
        return delta, low, high, 2 * ndtr(-z)


def _damaged_audit(where: str, what: str) -> InputError:
    return InputError(f"{where} is damaged: {what}; run the audit again")


def _token_table(where: str, content: bytes) -> pl.DataFrame:
    """tokens.csv as numbers, each row once."""
    try:
        frame = pl.read_csv(io.BytesIO(content), infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as problem:
        reason = (str(problem).splitlines() or ["no table"])[0]
        raise _damaged_audit(where, f"tokens.csv cannot be read ({reason[:100]})") from None
    lacking = [
        name for name in ("token", "class", "documents", *NUMBERS) if name not in frame.columns
    ]
    if lacking:
        raise _damaged_audit(where, f"tokens.csv has no column {lacking[0]!r}")
    frame = frame.select(
        pl.col("token", "class")
        .fill_null("")
        .str.strip_prefix("'"),  # which keeps a cell from being a formula
        pl.col("documents").cast(pl.Int64, strict=False),
        pl.col(NUMBERS).cast(pl.Float64, strict=False),
    )
    fine = pl.all_horizontal(pl.col(NUMBERS).is_finite() & (pl.col(NUMBERS).abs() <= 1e12))
    fine &= (pl.col("effect_low") <= pl.col("effect_high")) & pl.col("documents").is_between(
        0, MOST_DOCUMENTS
    )
    bad = frame.select((~fine.fill_null(False)).arg_true()).to_series()
    if len(bad):
        raise _damaged_audit(where, f"tokens.csv: row {bad[0] + 1} contains an impossible number")
    if frame.select("token", "class").is_duplicated().any():
        raise _damaged_audit(where, "tokens.csv lists a token twice for one class")
    return frame


@dataclass(frozen=True, repr=False)
class AuditComparison:
    """What changed from one audit to another.

    Attributes:
        before, after: the audits.
        classes: the classes that both audits have; of two classes only the second, because the first mirrors it.
        table: a row per token and class: token, class, change ("" if there is none), effects, difference with interval, p and q,
            documents, posterior differences and values of both (null if only the other audit contains the token); changed tokens
            first, the largest difference first.
        accuracy: of the test documents. If both audits tested the same ones, they are compared one by one; else the
            interval is Newcombe's (MOVER on the intervals of the accuracies, which are over groups if there are any).
        notes: notes for the reader.
        version: of this package.
        fail_on: limits as they were given; None without.
        repair: both models where the shortcuts of the first audit mislead, if documents were given.
        seconds: of each stage.
    """

    own_files: ClassVar[str] = r"(compare|repair)\.csv|pictures/compare\.(svg|png|pdf|csv)"

    before: _Saved
    after: _Saved
    classes: tuple[str, ...]
    table: pl.DataFrame
    accuracy: AccuracyChange
    notes: tuple[str, ...]
    version: str = __version__
    fail_on: str | None = None
    repair: RepairEffect | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = (
            ", ".join(f"{n:,} {change}" for change, n in self.counts.items() if n) or "no change"
        )
        names = f"{self.before.name!r} → {self.after.name!r}"
        return f"AuditComparison({names}: {sizes}; accuracy {self.accuracy.value:+.3f})"

    @property
    def counts(self) -> dict[str, int]:
        """How many tokens appeared, vanished, changed sign, or became stronger or weaker."""
        sizes = dict(self.changed().group_by("change").agg(pl.col("token").n_unique()).iter_rows())
        return {change: sizes.get(change, 0) for change in CHANGES}

    def changed(self, change: str | None = None) -> pl.DataFrame:
        """The tokens that changed, of one kind or of all."""
        return self.table.filter(
            pl.col("change") != "" if change is None else pl.col("change") == change
        )

    def only_in_one(self, after: bool) -> pl.DataFrame:
        """Token and documents of tokens in only the earlier (later) audit without a significant change, most frequent first."""
        mine, other = ("after", "before") if after else ("before", "after")
        rows = self.table.filter(
            pl.col(f"documents_{other}").is_null(),
            ~pl.col("token").is_in(self.changed()["token"].implode()),
        )
        named = rows.group_by("token").agg(pl.col(f"documents_{mine}").first().alias("documents"))
        return named.sort("documents", "token", descending=[True, False])

    def still_predictive(self) -> list[str]:
        """Tokens that predict the label equally in both audits, largest effect first."""
        predicts = pl.col("class").is_in(self.classes) & (pl.col("q_value") < LEVEL)
        sides = [one.tokens.filter(predicts) for one in (self.before, self.after)]
        both = sides[0].join(sides[1], on=["token", "class"], suffix="_after")
        same = both.join(self.changed(), on=["token", "class"], how="anti")
        return (
            same.sort(pl.col("effect_after").abs(), descending=True)["token"]
            .unique(maintain_order=True)
            .to_list()
        )

    @property
    def identical(self) -> bool:
        """Whether both audits have the same numbers."""
        return self.accuracy.value == 0 and bool(
            (self.table["effect_before"] == self.table["effect_after"]).fill_null(False).all()
        )

    @property
    def exceeded(self) -> list[str]:
        """What exceeds `fail_on`: names of changes, and "accuracy"."""
        found = {**self.counts, "accuracy": -self.accuracy.high}
        return [
            name
            for name, most in CompareSettings(fail_on=self.fail_on).limits.items()
            if found[name] > most
        ]

    def report(self) -> Report:
        """What terminal and page show."""
        sides = (("before", self.before), ("after", self.after))
        # one more digit where the difference of the rounded accuracies would contradict the rounded difference
        rounded = [round(100 * one.accuracy.value, 1) for _, one in sides]
        digits = 1 + (signed(rounded[1] - rounded[0], 1) != signed(100 * self.accuracy.value, 1))
        change = self.accuracy
        points = [signed(100 * x, digits) for x in (change.value, change.low, change.high)]
        facts = [
            (
                name,
                percent(one.accuracy.value),
                f"95% CI {percent(one.accuracy.low)} to {percent(one.accuracy.high)}",
            )
            for name, one in (("Test accuracy before", self.before), ("After", self.after))
        ]
        blocks: list[Block] = []
        if self.exceeded:
            blocks.append(
                Text(
                    f"This comparison exceeds the --fail-on limit: {', '.join(self.exceeded)}.",
                    style="bad",
                )
            )
        if self.repair is not None:
            blocks += self.repair.blocks()
        if not self.identical:
            how = "the audits tested different documents"
            if change.everywhere is not None:
                how = "the same test documents, one by one"
            interval = f"95% CI {points[1]} to {points[2]}; {how}"
            facts.append(("Change in points", points[0], interval))
        blocks += [Facts(tuple(facts)), *_picture(self)]
        next_step = "Nothing here needs action."
        if self.after.findings:
            next_step = f"Next, open {self.after.page}: the findings of the later audit still need a decision."
        elif any(self.counts.values()):
            next_step = "The later audit has no findings, so nothing is left to act on."
        blocks.append(Text(next_step, only=("html",)))
        blocks += [
            Text(f"{for_display(note[:1].upper() + note[1:], 400)}.", style="warning")
            for note in self.notes
        ]
        blocks.append(Section("Tokens that changed", tuple(_changes(self)), anchor="changed"))
        findings = tuple(_findings(self))
        blocks.append(
            Section(
                "Findings before and after", findings, anchor="found", only=("html", "markdown")
            )
        )
        names = [for_display(one.name, 40, path=True) for _, one in sides]
        sizes = [f"{one.train:,} training, {one.test:,} test" for _, one in sides]
        about = {
            "version": self.version,
            "earlier documents": sizes[0],
            "later documents": sizes[1],
        }
        return Report("compare", f"{names[0]} → {names[1]}", _verdict(self), tuple(blocks), about)

    def files(self) -> dict[str, Content]:
        """File name → content of everything but the page and its picture."""
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        files: dict[str, Content] = {"compare.csv": csv_table(self.table), "summary.json": summary}
        if self.repair is not None:
            files["repair.csv"] = csv_table(self.repair.to_frame())
        return files

    def to_frame(self) -> pl.DataFrame:
        """The content of compare.csv."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        sides = {"before": self.before, "after": self.after}
        summary: dict[str, Any] = {
            side: {
                "name": one.name,
                "documents": {"train": one.train, "test": one.test},
                "findings": one.findings,
            }
            for side, one in sides.items()
        }
        summary |= {
            "classes": list(self.classes),
            "changes": self.counts,
            "tokens_compared": self.table.height,
        }
        alone = {f"only_{side}": self.only_in_one(side == "after") for side in sides}
        summary["within_chance"] = {
            side: {"tokens": rows.height, "most_frequent": rows.head(20).to_dicts()}
            for side, rows in alone.items()
        }
        shares = {side: asdict(one.accuracy) for side, one in sides.items()}
        change = self.accuracy
        accuracy: dict[str, Any] = {"value": change.value, "low": change.low, "high": change.high}
        accuracy["paired"] = change.everywhere and change.everywhere.to_dict()
        accuracy["changed_texts"] = change.on_changed and change.on_changed.to_dict()
        summary |= {
            "accuracy": shares | accuracy,
            "notes": list(self.notes),
            "version": self.version,
        }
        if self.repair is not None:
            summary["repair"] = {"source": self.repair.source, "headline": self.repair.headline}
        return summary | {"fail_on": self.fail_on, "exceeded": self.exceeded}


def compare_audits(
    before: Audit | str | Path, after: Audit | str | Path, settings: CompareSettings | None = None
) -> AuditComparison:
    """Compare two audits, or folders that `save` wrote: before and after cleaning, two data sets, two months. An `InputError` if a
    limit has the wrong form, a folder contains no audit or a damaged one, or the audits share fewer than two classes."""
    settings = settings or CompareSettings()
    _ = settings.limits  # refused before anything is read
    a, b = (
        _Saved.of(one) if isinstance(one, Audit) else _Saved.read(one) for one in (before, after)
    )
    shared = [name for name in a.classes if name in b.classes]
    if len(shared) < 2:
        sides = "; ".join(
            f"{name}: {', '.join(one.classes[:5])}" for name, one in (("before", a), ("after", b))
        )
        raise InputError(
            f"the audits share {len(shared) or 'no'} {noun(len(shared), 'class', 'classes')} "
            f"({sides}), but a comparison needs two; audit both with the same --group and --drop"
        )
    classes = tuple(shared[1:] if len(a.classes) == len(b.classes) == len(shared) == 2 else shared)
    sizes = f"{len(shared)} of {len(a.classes)} and {len(b.classes)}"
    notes = (
        (f"only the classes in both audits are compared: {sizes}",)
        if set(a.classes) != set(b.classes)
        else ()
    )
    return AuditComparison(
        a,
        b,
        classes,
        a.differences(b, classes),
        _accuracy_change(a, b),
        notes,
        fail_on=settings.fail_on,
    )


def _accuracy_change(before: _Saved, after: _Saved) -> AccuracyChange:
    """Item by item if both audits tested the same items, else as of independent test sets."""
    if before.outcomes is not None and after.outcomes is not None:
        change = paired_change(before.outcomes, after.outcomes)
        if change is not None:
            return change
    accuracies = [
        np.array([one.accuracy.value, one.accuracy.low, one.accuracy.high])
        for one in (before, after)
    ]
    value, low, high, _ = map(float, _Saved.mover(*accuracies))
    return AccuracyChange(value, low, high)


def _accuracy_sentences(found: AuditComparison) -> str:
    """How the accuracy changed: first where texts changed, then everywhere."""
    change = found.accuracy
    sentences = []
    if change.on_changed is not None:
        part = change.on_changed
        sentences.append(
            f"On the {plural(part.n, 'test text')} that changed, accuracy went from "
            f"{percent(part.before)} to {percent(part.after)} ({change_clause(part)})."
        )
    before = percent(found.before.accuracy.value)
    after = percent(found.after.accuracy.value)
    where = "On all test texts, accuracy" if sentences else "Accuracy"
    if change.is_within_chance:
        sentences.append(f"{where}: {before} → {after}; the difference is within chance.")
    else:
        verb = "rose" if change.value > 0 else "fell"
        sentences.append(f"{where} {verb} from {before} to {after}.")
    return " ".join(sentences)


def _picture(found: AuditComparison) -> list[Block]:
    """Lines from before to after, of the largest changes, and of the strongest tokens that stayed where few changed."""
    changed, most = found.changed(), 16
    few = changed.height < 8
    others = found.table.filter(pl.col("token").is_in(found.still_predictive()[: 12 * few]))
    others = others.unique("token", maintain_order=True).filter(
        ~pl.col("token").is_in(changed["token"].implode())
    )
    drawn = pl.concat([changed.head(most), others.head(12 * few)])
    if drawn.is_empty():
        return []
    title = "Changes, and the strongest unchanged tokens" if few else "The largest changes"
    title = title if changed.height else "The strongest predictors, before and after"
    caption = "" if changed.height else "None of these differences is significant."
    caption = (
        f"The {most} largest of {count(changed.height)} changes."
        if changed.height > most
        else caption
    )
    drawn = drawn.select(  # what one audit does not know is at 0 there
        "token",
        before=pl.col("effect_before").fill_null(0.0) * 1000,
        after=pl.col("effect_after").fill_null(0.0) * 1000,
        kind=pl.col("change").replace_strict(CHANGES | {"": "no significant change"}),
    )
    names = tuple(for_display(one.name, 24, path=True) for one in (found.before, found.after))
    names = names if names[0] != names[1] else ("before", "after")
    listing = ", ".join(for_display(token, 24) for token in drawn["token"].head(10))
    data = {"changes": drawn, "names": names, "axis": "effect per 1,000 tokens"}
    return [
        Picture(
            "compare",
            "audit-slopes",
            data,
            title,
            caption,
            f"Effects of {listing}, before and after.",
        )
    ]


def _verdict(found: AuditComparison) -> str:
    """What changed, in one sentence: the result first."""
    if found.identical:
        return "The two audits are identical."
    accuracy = _accuracy_sentences(found)
    parts = []
    for kinds, what in (
        (["vanished"], "no longer predict{s} the label"),
        (["appeared"], "now predict{s} the label"),
        (["sign"], "now predict{s} another class"),
        (["stronger", "weaker"], "changed in strength"),
    ):
        tokens = (
            found.table.filter(pl.col("change").is_in(kinds))["token"]
            .unique(maintain_order=True)
            .to_list()
        )
        if tokens:
            who = quoted(tokens) if len(tokens) < 4 else plural(len(tokens), "token")
            parts.append(f"{who} {what.format(s='s' * (len(tokens) == 1))}")
    # masking a word can leave the rest of its phrase, which gives the label away as well
    remaining = next(
        (headline for title, headline, _ in found.after.headlines if title.lower() == "shortcut"),
        "",
    )
    if remaining:
        accuracy += f" The later audit {'still ' * ('shortcut' in found.before.findings)}finds a shortcut: {remaining}."
    if not parts:
        return f"No token's association with the label changed significantly. {accuracy}"
    verdict = f"{', '.join(parts[:-1])}{' and ' * (len(parts) > 1)}{parts[-1]}. {accuracy}"
    return verdict[:1].upper() + verdict[1:]


def _changes(found: AuditComparison) -> list[Block]:
    """The table of what changed; nothing where nothing did."""
    changed, several, most = found.changed(), len(found.classes) > 1, 1000
    if changed.is_empty():
        return []
    columns = [Column("Token", "token"), Column("Change"), *[Column("Class")] * several]
    columns += [
        Column("Before", "signed", 2),
        Column("After", "signed", 2),
        Column("Difference", "interval", 2),
    ]
    columns += [Column(f"Documents {side}", "count", extra=True) for side in ("before", "after")]
    rows = []
    per_1000 = pl.selectors.starts_with("effect", "difference") * 1000
    for row in changed.head(most).with_columns(per_1000).iter_rows(named=True):
        label, difference = (
            [for_display(row["class"], 30)] * several,
            ("difference", "difference_low", "difference_high"),
        )
        effects = row["effect_before"], row["effect_after"], tuple(map(row.get, difference))
        documents = row["documents_before"], row["documents_after"]
        rows.append((row["token"], CHANGES[row["change"]], *label, *effects, *documents))
    note = (
        f"compare.csv lists {count(changed.height - most)} more." if changed.height > most else ""
    )
    return [
        Table(
            "Effects per 1,000 tokens", tuple(columns), rows, note=note, first=20, searchable=True
        )
    ]


def _findings(found: AuditComparison) -> list[Block]:
    task = Preferences if set(found.before.classes) == {"chosen", "rejected"} else Labels
    titles = {check.name: check.title for check in all_checks() if task in check.tasks}
    kinds = dict.fromkeys([*found.before.findings, *found.after.findings])
    rows = [
        (
            titles.get(kind, kind),
            *(one.findings.get(kind, 0) for one in (found.before, found.after)),
        )
        for kind in kinds
    ]
    columns = (Column("Findings"), Column("Before", "count"), Column("After", "count"))
    out: list[Block] = [Table("", columns, rows)] if rows else [Text("Neither audit has findings.")]
    for title, one in (("Before", found.before), ("After", found.after)):
        cards = [
            Section(name, (Text(f"{headline}."),), level=level)
            for name, headline, level in one.headlines
        ]
        out += [Section(title, tuple(cards))] if cards else []
    return out
