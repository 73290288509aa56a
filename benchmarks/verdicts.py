"""How often our verdicts are wrong: sentences that people quote, on data whose truth is known.

    python benchmarks/verdicts.py --seeds 3   # an hour or two; writes docs/verdicts.md
    python benchmarks/verdicts.py --small     # generated reviews only, seconds; so the tests run it

Every outcome is kept in benchmarks/results/verdicts.jsonl as soon as it is known, and the command
goes on where an earlier one of the same version was stopped (`--fresh` begins anew). `--page`
writes the page of what is known so far, and measures nothing.

For each verdict the data is made so that we know whether the sentence is true: labels are shuffled,
a mark is planted, labels are turned, documents are copied with an edit. The sets are those that
chose no threshold of the verdicts measured here (`SETS`; near copies were chosen on the sets hwu,
finphrase, subj and mpqa with words removed or replaced at random places, and are measured on other
sets and other edits; the score of artefacts was fitted on others still, see artefacts.py). Each
count is of one sentence: how often it was said, and how often it was false.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from machine import DATA, described
from tokensieve import __version__
from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.artefacts.shapes import shape_of
from tokensieve.auditing.demo import demo_pairs, demo_reviews
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose
from tokensieve.evidence.direct_copies import direct_originals
from tokensieve.evidence.duplicates import near_duplicates
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.read.reader import read_corpus
from tokensieve.task.refitted import compare_refit
from tokensieve.task.tasks import train_corpus
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream

PAGE = Path(__file__).parents[1] / "docs" / "verdicts.md"
KEPT = Path(__file__).parent / "results" / "verdicts.jsonl"
SETS = {  # file → columns of text and label
    "sms": ("text", "label"),
    "emotion": ("text", "label"),
    "tweets": ("text", "label"),
    "yelp": ("text", "stars"),
}
N_DOCUMENTS = 800
MAX_OTHERS = 3000  # documents on which a change is seen within about a point
N_SEEDS = 2
# draws of generated data, which are cheap: 76 without an error bound a rate below 5 %
N_GENERATED = 76
N_EXTRA = 60  # beside 16 draws of real sets or more
EXTRA_SEEDS = 1000  # the first of them
N_GENERATED_DOCUMENTS = 600
N_EXTRA_DOCUMENTS = 400
TURNED_FRACTION = 0.05  # of the labels
MAX_ERROR = 0.05
EARLIER_MARK = "†"


@dataclass(frozen=True)
class Documents:
    """Texts with labels, from one set."""

    set_name: str
    texts: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Outcome:
    """Sentences about one set: how many were said, and how many of them were false.

    Attributes:
        is_earlier: whether a part of the program that matters here has changed since.
    """

    said: int
    false: int
    is_earlier: bool = False


Trial = Callable[[Documents, int], Outcome]


@dataclass(frozen=True)
class Verdict:
    """A sentence, how it is put to the test, and what is counted.

    Attributes:
        sentence: as a page says it.
        truth: how the data is made.
        counted: what one count is.
        trial: makes the data from documents and a seed, and judges the sentences.
    """

    sentence: str
    truth: str
    counted: str
    trial: Trial


# ---- data


def load(name: str, seed: int) -> Documents:
    """A sample of one of the real sets."""
    text, label = SETS[name]
    frame = pl.read_parquet(DATA / f"{name}.parquet").select(
        text=pl.col(text), label=pl.col(label).cast(pl.String)
    )
    sample = frame.drop_nulls().unique("text", maintain_order=True).sample(N_DOCUMENTS, seed=seed)
    return Documents(name, sample["text"].to_list(), sample["label"].to_list())


def generated(seed: int, n: int = N_GENERATED_DOCUMENTS) -> Documents:
    """Generated reviews without the shortcut that the demo plants."""
    made = demo_reviews(n, seed)
    texts = [text.partition("\n")[0] for text in made.texts]
    return Documents("generated", texts, ["good" if label else "bad" for label in made.labels])


def others(documents: Documents, seed: int) -> Documents:
    """Documents of the same set that are not among these, at most `MAX_OTHERS`."""
    if documents.set_name == "generated":
        return generated(1000 + seed, MAX_OTHERS)
    text, label = SETS[documents.set_name]
    frame = pl.read_parquet(DATA / f"{documents.set_name}.parquet").select(
        text=pl.col(text), label=pl.col(label).cast(pl.String)
    )
    frame = frame.drop_nulls().unique("text", maintain_order=True)
    frame = frame.filter(~pl.col("text").is_in(documents.texts))
    frame = frame.sample(min(MAX_OTHERS, frame.height), seed=seed)
    return Documents(documents.set_name, frame["text"].to_list(), frame["label"].to_list())


def quick(seed: int) -> Settings:
    """An audit without what this benchmark does not ask for."""
    return Settings(baseline=False, thorough=False, seed=seed)


def insert(text: str, words: str, rng: np.random.Generator) -> str:
    """Words at a random place."""
    parts = text.split(" ")
    place = int(rng.integers(len(parts) + 1))
    return " ".join([*parts[:place], words, *parts[place:]])


def shuffled(documents: Documents, seed: int) -> Documents:
    """The texts with the labels of others: nothing predicts them."""
    labels = np.random.default_rng(seed).permutation(documents.labels).tolist()
    return Documents(documents.set_name, documents.texts, labels)


# ---- trials


def significant_without_effect(documents: Documents, seed: int) -> Outcome:
    """A word put into a fifth of all documents, whatever their label.

    Two fitted models differ a little even so. The sentence is false if the change is not seen, in
    the same direction, on the documents of the set that are in neither part.
    """
    rng = np.random.default_rng(seed)

    def marked(plain: Documents) -> Documents:
        texts = [insert(t, "qovari", rng) if rng.random() < 0.2 else t for t in plain.texts]
        return Documents(plain.set_name, texts, plain.labels)

    few = marked(documents)
    n_train = round(0.8 * len(few.texts))
    test = Documents(few.set_name, few.texts[n_train:], few.labels[n_train:])
    train = (few.texts[:n_train], few.labels[:n_train])
    small = _difference_without(*train, "qovari", seed, test)
    if not small.is_significant:
        return Outcome(1, 0)
    further = marked(others(documents, seed))
    large = _difference_without(*train, "qovari", seed, further)
    return Outcome(1, int(small.change * large.change <= 0))


def within_chance_although_it_is_not(documents: Documents, seed: int) -> Outcome:
    """A word in half of one class: what is lost without it is known from five times as many
    tests."""
    made = generated(1000 + seed, 4000)
    rng = np.random.default_rng(seed)
    texts = [
        insert(t, "qovari", rng) if label == "good" and rng.random() < 0.2 else t
        for t, label in zip(made.texts, made.labels, strict=True)
    ]
    few = Documents("generated", texts[1000:1400], made.labels[1000:1400])
    many = Documents("generated", texts[1400:], made.labels[1400:])
    small = _difference_without(texts[:1000], made.labels[:1000], "qovari", seed, few)
    large = _difference_without(texts[:1000], made.labels[:1000], "qovari", seed, many)
    return Outcome(1, int(not small.low <= large.change <= small.high))


def _difference_without(
    texts: list[str],
    labels: list[str],
    word: str,
    seed: int,
    test: Documents | None = None,
) -> PairedDifference:
    """What a model loses without a word, on given test documents or on a fifth."""
    settings = Settings(baseline=False, thorough=False, seed=seed, text="text", label="label")
    if test is not None:
        held_out = pl.DataFrame({"text": test.texts, "label": test.labels})
        settings = settings.with_options({"test": held_out})
    corpus = read_corpus(pl.DataFrame({"text": texts, "label": labels}), settings)
    learned = train_corpus(corpus, settings)
    types = learned.train.types_not_containing({word})
    assert types is not None
    return compare_refit(learned, types, settings).difference


PLANTS: dict[str, Callable[[str, np.random.Generator], str]] = {
    "word": lambda text, rng: insert(text, "marigold", rng),
    "code": lambda text, rng: insert(text, "ref#4471", rng),
    "number": lambda text, rng: insert(text, "9/10", rng),
    "name": lambda text, rng: insert(text, "Wexcombe", rng),
}


def missed_although_it_would_be_found(documents: Documents, seed: int) -> Outcome:
    """A new word in as many documents of one class as the audit names, and no more.

    An audit counts if it says that it would have found a new word in that part of the class. The
    sentence is false if no shortcut that it reports is the word.
    """
    claim = Claim.drawn(documents, seed)
    if claim is None:
        return Outcome(0, 0)
    said = 0
    false = 0
    for kind, plant in PLANTS.items():
        rng = np.random.default_rng([seed, len(kind)])
        texts = _planted(documents, claim.label, claim.rate, plant, rng)
        found = audit((texts, documents.labels), quick(seed))
        if claim.is_made_by(found):
            said += 1
            false += not _is_accused(plant("", rng).strip(), found)
    return Outcome(said, false)


@dataclass(frozen=True)
class Claim:
    """ "They would have found a new word in …% or more of this class."

    Attributes:
        label: of the documents.
        class_name: the same as an audit writes it: 1 for 1.0.
        rate: the smallest of which the audit says so.
    """

    label: str
    class_name: str
    rate: float

    @classmethod
    def drawn(cls, documents: Documents, seed: int) -> Claim | None:
        """What an audit of the documents says of one class; None if it says so of none."""
        clean = audit(_pair(documents), quick(seed))
        assert clean.controls is not None
        claims = []
        for label in sorted(set(documents.labels)):
            class_name = label if label in clean.classes else label.removesuffix(".0")
            rate = clean.controls.found_from(class_name)
            if rate is not None:
                claims.append(cls(label, class_name, rate))
        return claims[seed % len(claims)] if claims else None

    def is_made_by(self, found: Audit) -> bool:
        """Whether an audit names this rate of the class, or a smaller one."""
        assert found.controls is not None
        smallest = found.controls.found_from(self.class_name)
        return smallest is not None and smallest <= self.rate


def _planted(
    documents: Documents,
    label: str,
    rate: float,
    plant: Callable[[str, np.random.Generator], str],
    rng: np.random.Generator,
) -> list[str]:
    """The texts with a mark in this part of one class."""
    own = [place for place, name in enumerate(documents.labels) if name == label]
    chosen = set(rng.permutation(own)[: math.ceil(rate * len(own))].tolist())
    return [
        plant(text, rng) if place in chosen else text for place, text in enumerate(documents.texts)
    ]


def _is_accused(planted: str, found: Audit) -> bool:
    """Whether a shortcut of an audit is the planted word, or a part of the planted code."""
    tokens = {token for one in found.shortcuts for token in one.tokens}
    words = WordTokenizer().split(pl.Series([planted]))[0].to_list()
    return bool(tokens.intersection([*words, shape_of(planted), "⟨n/10 rating⟩"]))


def shortcut_in_shuffled_labels(documents: Documents, seed: int) -> Outcome:
    found = audit_of_shuffled(documents, seed)
    return Outcome(1, int(any(one.kind == "shortcut" for one in found.findings)))


def token_in_shuffled_labels(documents: Documents, seed: int) -> Outcome:
    found = audit_of_shuffled(documents, seed)
    return Outcome(1, int(found.n_predictive > 0))


def alone_in_shuffled_labels(documents: Documents, seed: int) -> Outcome:
    found = audit_of_shuffled(documents, seed)
    return Outcome(1, int(any(one.kind == "alone" for one in found.findings)))


_latest_shuffled: dict[tuple[str, int, int], Audit] = {}


def audit_of_shuffled(documents: Documents, seed: int) -> Audit:
    """The audit of texts with the labels of others; three verdicts are read from each."""
    key = (documents.set_name, len(documents.texts), seed)
    if key not in _latest_shuffled:
        _latest_shuffled.clear()
        pair = _pair(shuffled(documents, seed))
        _latest_shuffled[key] = audit(pair, Settings(baseline=False, seed=seed))
    return _latest_shuffled[key]


def wrong_label_although_right(documents: Documents, seed: int) -> Outcome:
    """One label in twenty is turned; an accused document that was not turned counts as false."""
    rng = np.random.default_rng(seed)
    names = sorted(set(documents.labels))
    turned = rng.random(len(documents.labels)) < TURNED_FRACTION
    labels = [
        str(rng.choice([name for name in names if name != own])) if is_turned else own
        for own, is_turned in zip(documents.labels, turned, strict=True)
    ]
    found = audit((documents.texts, labels), Settings(baseline=False, seed=seed))
    rows = [
        row for one in found.findings if one.kind == "labels" for row in one.rows["row"].to_list()
    ]
    return Outcome(len(rows), sum(not turned[row - 1] for row in rows))


def accused_in_unlearnable_class(documents: Documents, seed: int) -> Outcome:
    """A class of 3 % whose words do not depend on the label: none of its labels can be judged."""
    rng = np.random.default_rng(seed)
    labels = list(documents.labels)
    chosen = rng.permutation(len(labels))[: round(0.03 * len(labels))].tolist()
    for place in chosen:
        labels[place] = "other"
    found = audit((documents.texts, labels), Settings(baseline=False, seed=seed))
    rows = {
        row for one in found.findings if one.kind == "labels" for row in one.rows["row"].to_list()
    }
    return Outcome(len(chosen), sum(place + 1 in rows for place in chosen))


def drift_in_random_split(documents: Documents, seed: int) -> Outcome:
    order = np.random.default_rng(seed).permutation(len(documents.texts))
    frame = pl.DataFrame({"text": documents.texts, "label": documents.labels})[order.tolist()]
    n_train = round(0.7 * frame.height)
    found = audit(
        frame[:n_train],
        quick(seed),
        test=frame[n_train:],
        text="text",
        label="label",
    )
    return Outcome(1, int(any(one.kind == "drift" for one in found.findings)))


EDITS: dict[str, Callable[[list[str], np.random.Generator], list[str]]] = {
    "last word cut": lambda words, rng: words[:-1],
    "first word cut": lambda words, rng: words[1:],
    "word added": lambda words, rng: _added(words, rng),
}


def _added(words: list[str], rng: np.random.Generator) -> list[str]:
    place = int(rng.integers(len(words) + 1))
    return [*words[:place], "qovari", *words[place:]]


def missed_copies(documents: Documents, seed: int) -> Outcome:
    """Copies with one word added or cut, of texts of six words or more: how many are not found."""
    rng = np.random.default_rng(seed)
    long_enough = [text for text in documents.texts if len(text.split()) >= 8]
    originals = [long_enough[i] for i in rng.permutation(len(long_enough))[:90].tolist()]
    copies = [
        " ".join(list(EDITS.values())[i % len(EDITS)](text.split(), rng))
        for i, text in enumerate(originals)
    ]
    originals = _originals(documents.texts, copies)
    n = len(documents.texts)
    missed = sum(int(originals[n + i]) < 0 for i in range(len(originals) - n))
    return Outcome(len(copies), missed)


def _originals(texts: list[str], tests: list[str]) -> Ints:
    """The document that each text, then each test, repeats (`direct_originals`)."""
    streams = [_stream(texts), _stream(tests)]
    first = near_duplicates(streams)
    is_in_group = np.bincount(first, minlength=len(first))[first] > 1
    everything = pl.Series([*texts, *tests], dtype=pl.String)
    words = WordTokenizer().split(everything.filter(pl.Series(is_in_group)))
    return direct_originals(first, words, len(texts))


def false_copies(documents: Documents, seed: int) -> Outcome:
    """Documents that are said to nearly repeat another, and share less than half of its words."""
    rng = np.random.default_rng(seed)
    texts = [documents.texts[i] for i in rng.permutation(len(documents.texts)).tolist()]
    originals = _originals(texts, [])
    accused = np.flatnonzero(originals >= 0).tolist()
    false = 0
    for document in accused:
        own = set(texts[document].lower().split())
        other = set(texts[int(originals[document])].lower().split())
        false += len(own & other) < 0.5 * max(len(own), len(other), 1)
    return Outcome(len(accused), false)


def _stream(texts: list[str]) -> TokenStream:
    return TokenStream.of(pl.Series(texts), WordTokenizer())


def rewarded_in_random_preferences(documents: Documents, seed: int) -> Outcome:
    """Pairs of answers whose winner is drawn at random: nothing is rewarded."""
    rng = np.random.default_rng(seed)
    frame = demo_pairs(400, seed)
    swap = pl.Series(rng.random(frame.height) < 0.5)
    frame = frame.select(
        "prompt",
        chosen=pl.when(swap).then("rejected").otherwise("chosen"),
        rejected=pl.when(swap).then("chosen").otherwise("rejected"),
    )
    found = audit(frame, quick(seed), pairs=("chosen", "rejected"), by="prompt")
    return Outcome(1, int(any(one.kind == "shortcut" for one in found.findings)))


@dataclass(frozen=True, eq=False)
class WordsClassifier:
    """A classifier of texts by their words, as a function of texts."""

    pipeline: Pipeline

    def __call__(self, texts: list[str]) -> Floats:
        scores = np.asarray(self.pipeline.decision_function(texts), dtype=np.float64)
        return np.stack([-scores / 2, scores / 2], axis=1)

    @classmethod
    def fitted(cls, documents: Documents) -> WordsClassifier:
        """Logistic regression on word counts."""
        pipeline = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
        pipeline.fit(documents.texts, [label == "good" for label in documents.labels])
        return cls(pipeline)


def _diagnosed(training: Documents, seed: int) -> Diagnosis:
    """Diagnoses a classifier of words on reviews that it has not seen."""
    test = generated(2000 + seed, 300)
    settings = DiagnoseSettings(min_documents=5, max_documents=200, seed=seed, untrained=False)
    classes = ["bad", "good"]
    model = WordsClassifier.fitted(training)
    return diagnose(model, None, test.texts, test.labels, settings, classes=classes)


def learned_although_random(documents: Documents, seed: int) -> Outcome:
    """The model was trained on shuffled labels: it has learned nothing about them."""
    found = _diagnosed(shuffled(generated(seed), seed), seed)
    return Outcome(1, int(found.learned is True))


def not_learned_although_it_has(documents: Documents, seed: int) -> Outcome:
    """The model was trained on the labels of 600 reviews."""
    found = _diagnosed(generated(seed), seed)
    return Outcome(1, int(found.learned is False))


def _pair(documents: Documents) -> tuple[list[str], list[str]]:
    return documents.texts, documents.labels


VERDICTS = (
    Verdict(
        "… −0.3 points (95% CI …), without “a difference within chance”",
        "the word left out is in documents of all classes alike, and on further documents of the "
        "set the change is not in the same direction",
        "comparison",
        significant_without_effect,
    ),
    Verdict(
        "… points (95% CI … to …)",
        "the true change is known from 2,600 further test documents (generated)",
        "comparison",
        within_chance_although_it_is_not,
    ),
    Verdict(
        "The checks found no shortcut (they would have found a new word in …% or more of …)",
        "a word, name, number or code that is new to the set is at random places of exactly that "
        "part of the class, and no shortcut is it",
        "planted word",
        missed_although_it_would_be_found,
    ),
    Verdict(
        "This is a shortcut (any finding of this kind)",
        "labels are shuffled",
        "audit",
        shortcut_in_shuffled_labels,
    ),
    Verdict(
        "A token predicts the label (q < 0.05; any)",
        "labels are shuffled",
        "audit",
        token_in_shuffled_labels,
    ),
    Verdict(
        "… alone predicts … of test labels",
        "labels are shuffled",
        "audit",
        alone_in_shuffled_labels,
    ),
    Verdict(
        "… a label that models trained without them contradict: labels that were right",
        "one label in twenty is turned; labels that were wrong before count as right, so this is "
        "an upper bound",
        "accused document",
        wrong_label_although_right,
    ),
    Verdict(
        "… a label that models … contradict, of a class that cannot be predicted",
        "3% of documents of all classes are called “other”",
        "document of that class",
        accused_in_unlearnable_class,
    ),
    Verdict(
        "… duplicate or nearly duplicate training documents: copies not reported",
        "copies with a word added, or the first or last word cut",
        "planted copy",
        missed_copies,
    ),
    Verdict(
        "… repeat or nearly repeat an earlier one",
        "the two share less than half of their words",
        "accused document",
        false_copies,
    ),
    Verdict(
        "Drift (any finding of this kind)",
        "the given split is random",
        "audit",
        drift_in_random_split,
    ),
    Verdict(
        "An answer … wins … of its pairs (any finding)",
        "winners are drawn at random (generated pairs)",
        "audit",
        rewarded_in_random_preferences,
    ),
    Verdict(
        "A diagnosis: the model has learned to predict the label",
        "a model of words was trained on shuffled labels",
        "diagnosis",
        learned_although_random,
    ),
    Verdict(
        "A diagnosis: there is no evidence that this model has learned",
        "a model of words was trained on the labels of 600 reviews",
        "diagnosis",
        not_learned_although_it_has,
    ),
)
GENERATED_ONLY = (
    within_chance_although_it_is_not,
    rewarded_in_random_preferences,
    learned_although_random,
    not_learned_although_it_has,
)
# an error is so rare that 48 draws leave its rate open
WITH_EXTRA_DRAWS = (
    shortcut_in_shuffled_labels,
    token_in_shuffled_labels,
    alone_in_shuffled_labels,
    drift_in_random_split,
    wrong_label_although_right,
    significant_without_effect,
    false_copies,
)


@dataclass(frozen=True)
class Task:
    """One measurement: a verdict on one set with one seed."""

    verdict: Verdict
    set_name: str
    seed: int

    @property
    def key(self) -> list[object]:
        """What identifies it in the file of outcomes."""
        return [__version__, self.verdict.trial.__name__, self.set_name, self.seed]

    def measure(self) -> Outcome:
        """Make the data and judge the sentences."""
        if self.set_name == "generated":
            n = N_EXTRA_DOCUMENTS if self.seed >= EXTRA_SEEDS else N_GENERATED_DOCUMENTS
            return self.verdict.trial(generated(self.seed, n), self.seed)
        return self.verdict.trial(load(self.set_name, self.seed), self.seed)


def tasks(small: bool, n_seeds: int) -> Iterator[Task]:
    """All measurements, seed by seed, so that a stopped run has some of each verdict."""
    for seed in range(n_seeds):
        for verdict in VERDICTS:
            is_generated = small or verdict.trial in GENERATED_ONLY
            for name in ["generated"] if is_generated else SETS:
                yield Task(verdict, name, seed)
    if small:
        return
    for extra in range(N_EXTRA):
        for verdict in VERDICTS:
            if verdict.trial in WITH_EXTRA_DRAWS:
                yield Task(verdict, "generated", EXTRA_SEEDS + extra)
    for seed in range(n_seeds, N_GENERATED):
        for verdict in VERDICTS:
            if verdict.trial in GENERATED_ONLY:
                yield Task(verdict, "generated", seed)


def kept_outcomes() -> dict[str, Outcome]:
    """The outcomes of earlier runs of this version, by the key of their task as JSON."""
    if not KEPT.exists():
        return {}
    rows = [json.loads(line) for line in KEPT.read_text().splitlines()]
    return {
        json.dumps(row["key"]): Outcome(row["said"], row["false"], row.get("earlier", False))
        for row in rows
    }


def run(
    small: bool, n_seeds: int, measures: bool = True, trials: Sequence[str] = ()
) -> pl.DataFrame:
    """The table of `_by_verdict`, measured or, without `measures`, of what is known already.

    With `trials`, only these are measured.
    """
    known = {} if small else kept_outcomes()
    rows = []
    for task in tasks(small, n_seeds):
        key = json.dumps(task.key)
        if key not in known:
            if not measures or (trials and task.verdict.trial.__name__ not in trials):
                continue
            known[key] = task.measure()
            if not small:
                _keep(task, known[key])
            print(f"{key}: {known[key].false} of {known[key].said}", file=sys.stderr, flush=True)
        rows.append(
            {
                "trial": task.verdict.trial.__name__,
                "set": task.set_name,
                "seed": task.seed,
                "said": known[key].said,
                "false": known[key].false,
                "earlier": known[key].is_earlier,
            }
        )
    return _by_verdict(pl.DataFrame(rows))


def _keep(task: Task, outcome: Outcome) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    row = {"key": task.key, "said": outcome.said, "false": outcome.false, "on": described()}
    with KEPT.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _by_verdict(outcomes: pl.DataFrame) -> pl.DataFrame:
    """The table of the page."""
    rows = []
    for verdict in VERDICTS:
        own = outcomes.filter(pl.col("trial") == verdict.trial.__name__)
        share = Share.count(int(own["false"].sum()), int(own["said"].sum()))
        rows.append(
            {
                "trial": verdict.trial.__name__,
                "sentence": verdict.sentence,
                "truth": verdict.truth,
                "counted": verdict.counted,
                "sets": ", ".join(sorted(own["set"].unique())),
                "seeds": own["seed"].n_unique(),
                "said": share.of,
                "false": share.found,
                "earlier": int(own["said"].filter(own["earlier"]).sum()),
                "rate": share.value,
                "low": share.low,
                "high": share.high,
            }
        )
    return pl.DataFrame(rows)


def page(table: pl.DataFrame) -> str:
    """docs/verdicts.md."""
    lines = [
        "# How often our verdicts are wrong",
        "",
        "A sentence that people quote has an error rate. For each verdict of an audit, "
        "`benchmarks/verdicts.py` makes data whose truth is known and counts how often the "
        "sentence is false, on sets that chose none of its thresholds (but for shortcuts, whose "
        "score was fitted on sms and tweets with other marks, too). The interval is 95% "
        "(Wilson).",
        "",
        "| the verdict | what makes it false | one count is | sets | counts | false | error rate |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in table.iter_rows(named=True):
        rate = f"{row['rate']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        if row["said"] == 0:
            rate = "never said" if row["sets"] else "not measured in this run"
        lines.append(
            f"| {row['sentence']} | {row['truth']} | {row['counted']} | {row['sets']} | "
            f"{row['said']:,}{EARLIER_MARK if row.get('earlier') else ''} | {row['false']:,} | "
            f"{rate} |"
        )
    lines += [*_rows_of_planted_models(), "", *_notes(table), ""]
    lines.append(
        f"Measured on {described()} (`python benchmarks/verdicts.py --seeds 12`; a row that was "
        "stopped for time has fewer counts). Where an error is rare, draws of generated reviews "
        "were added, so that few counts do not hide it. The tests run the same trials on generated "
        "reviews."
    )
    return "\n".join(lines) + "\n"


def _rows_of_planted_models() -> list[str]:
    """What `planted.py` counted of diagnoses of transformers, as rows of the same table."""
    path = KEPT.parent / "planted.json"
    if not path.exists():
        return []
    figures = json.loads(path.read_text())["figures"]
    missed = Share.count(figures["planted"] - figures["all"]["named"], figures["planted"])
    accused = Share.count(figures["clean asked"], figures["clean"])
    sentences = (
        (
            "A diagnosis of a transformer: No word, form or pattern dominates",
            "it relies on a planted mark",
            missed,
        ),
        (
            "A diagnosis of a transformer: This model relies on …, would you expect that?",
            "nothing was planted",
            accused,
        ),
    )
    return [
        f"| {sentence} | {truth} (`planted.py`) | model | models left out | {share.of} | "
        f"{share.found} | {share.value:.1%} ({share.low:.1%} to {share.high:.1%}) |"
        for sentence, truth, share in sentences
    ]


def _notes(table: pl.DataFrame) -> list[str]:
    """What follows from the table: which verdicts are wrong too often, and what they then claim."""
    often = table.filter(pl.col("low") > MAX_ERROR)
    lines = ["## What follows from the table", ""]
    if often.is_empty():
        lines.append(
            "- No sentence of an audit is shown to be false more often than "
            f"{MAX_ERROR:.0%} of the time."
        )
    lines += [
        f"- “{row['sentence']}” was false {row['false']:,} of {row['said']:,} times. "
        f"{CLAIMS.get(str(row.get('trial')), 'It must be reworded.')}"
        for row in often.iter_rows(named=True)
    ]
    if "earlier" in table.columns and table["earlier"].sum():
        lines.append(
            f"- {EARLIER_MARK} Some or all of these counts are from the same day, before models "
            "that are trained again began as the first one did (few documents: a weaker start)."
        )
    return [*lines, *CHOICES]


# what a sentence that is often false is understood to say
CLAIMS = {
    "wrong_label_although_right": (
        "It is a statement about models; the row says how often the label was right after all."
    ),
    "not_learned_although_it_has": (
        "It says that evidence is missing, and gives the accuracy beside that of the largest class."
    ),
}
CHOICES = [
    "- Comparisons of accuracies are paired, document by document. `tests/evidence/test_paired.py` "
    "simulates the interval and the test.",
    "- The rule for near copies (one word added or removed from 6 words on, replaced or moved from "
    "15 words on, three-word sequences beyond) was chosen on the sets *hwu*, *finphrase*, *subj*, "
    "*mpqa*, *irony*, *germeval* and *emoji*, by how often their own texts fall under it. The rows "
    "above use other sets, with words added at any place or cut at an end.",
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="generated reviews only")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs measured")
    parser.add_argument(
        "--trials", nargs="+", default=(), metavar="NAME", help="measure only these"
    )
    parser.add_argument("--page", action="store_true", help="write what is known so far")
    options = parser.parse_args()
    if options.fresh:
        KEPT.unlink(missing_ok=True)
    n_seeds = 1 if options.small else options.seeds
    table = run(options.small, n_seeds, measures=not options.page, trials=options.trials)
    if options.small:
        print(page(table))
    else:
        PAGE.write_text(page(table))


if __name__ == "__main__":
    main()
