"""Planted artefacts are found and grouped; ordinary words and shuffled labels are not; leaks,
contradictions, wrong labels."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from calls import fast_first
from tokensieve.auditing.artefacts.search import search
from tokensieve.auditing.artefacts.slots import whole_phrases
from tokensieve.auditing.artefacts.splits import information
from tokensieve.auditing.artefacts.use import WordUse
from tokensieve.auditing.compare import compare_audits
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.limits import tokens_over
from tokensieve.auditing.masking import mask_texts
from tokensieve.auditing.report import interactive_part, without_shortcuts_sentences
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Budget, Settings
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.label_issues import find_label_issues
from tokensieve.model.fit import fit, refit
from tokensieve.model.settings import TrainSettings
from tokensieve.read import stored_texts
from tokensieve.read.reader import read_corpus
from tokensieve.report.blocks import Passages, Picture, Text
from tokensieve.report.live import context
from tokensieve.text.counts import Counts
from tokensieve.text.formatting import find_feature, is_formatting
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import count_corpus, count_texts

Plant = Callable[[str, int, np.random.Generator], str]
plainly = cache(demo_reviews)


def reviews(n: int, seed: int, plant: Plant | None = None) -> tuple[list[str], list[str]]:
    """Reviews without the shortcut that the demo plants; with another, if any."""
    made, rng = plainly(n, seed), np.random.default_rng(seed)
    texts = [text.partition("\n")[0] for text in made.texts]
    labels = made.labels.tolist()
    if plant is not None:
        texts = [plant(text, label, rng) for text, label in zip(texts, labels, strict=True)]
    return texts, ["good" if label else "bad" for label in labels]


def in_share(share: float, label: int, change: Callable[[str], str]) -> Plant:
    return lambda text, y, rng: change(text) if y == label and rng.random() < share else text


def audited(texts: list[str], labels: list[str], thorough: bool = False, ngrams: int = 1) -> Audit:
    return audit(
        read_corpus((texts, labels)),
        Settings(baseline=False, thorough=thorough, ngrams=ngrams, validation_share=0.0),
    )


def middle(text: str, word: str) -> str:
    words = text.split(" ")
    return " ".join([*words[: len(words) // 2], word, *words[len(words) // 2 :]])


def anywhere(text: str, word: str, rng: np.random.Generator) -> str:
    words = text.split(" ")
    place = int(rng.integers(len(words) + 1))
    return " ".join([*words[:place], word, *words[place:]])


PLANTS = {
    "rating": (
        in_share(0.1, 1, lambda t: f"{t} I give it 9/10 overall and would return."),
        {"9/10"},
    ),
    "address": (
        in_share(0.08, 0, lambda t: f"{t} See www.shop.com/item.aspx?full=quote for it."),
        {"www.shop.com/item.aspx?full=quote"},
    ),
    "last line": (in_share(0.15, 1, lambda t: f"{t}\nPosted via tablet."), {"tablet"}),
    "first word": (in_share(0.1, 0, lambda t: f"Reuters {t}"), {"reuters"}),
    "a word anywhere": (in_share(0.2, 1, lambda t: middle(t, "zebra")), {"zebra"}),
}


@pytest.mark.parametrize("name", fast_first(PLANTS))
def test_a_planted_artefact_is_the_first_shortcut(name: str) -> None:
    plant, words = PLANTS[name]
    found = [f for f in audited(*reviews(800, 1, plant)).findings if f.kind == "shortcut"]
    assert found and words & set(found[0].tokens)
    assert found[0].evidence["decides"].value > 0.9
    assert len(found) == 1, "what belongs together is one finding, and ordinary words are none"
    tokens = [example.token.lower() for example in found[0].examples]
    assert tokens and all(token in found[0].tokens for token in tokens)


@pytest.mark.slow
def test_what_a_phrase_explains_neither_dilutes_its_finding_nor_is_another() -> None:
    def plant(text: str, label: int, rng: np.random.Generator) -> str:
        if label and rng.random() < 0.3:
            return f"{text} Sent from my phone"
        text = middle(text, "my phone") if rng.random() < 0.1 else text
        return text.rstrip(".") if rng.random() < 0.15 else text

    first, *others = audited(*reviews(1200, 1, plant)).findings
    assert first.kind == "shortcut" and "sent" in first.tokens and first.level == "high"
    assert not {"phone", "my", "my phone", "⟨no final stop⟩"} & set(first.tokens)
    assert first.evidence["decides"].value > 0.97
    assert not [
        finding for finding in others if finding.kind in ("shortcut", "shift", "association")
    ]


@pytest.mark.slow
def test_a_value_of_another_column_that_is_linked_to_a_class_is_a_finding() -> None:
    texts, labels = reviews(1200, 2)
    rng = np.random.default_rng(0)
    agents = [
        rng.choice(["jo", "al", "mi"], p=[0.6, 0.2, 0.2] if label == "good" else [0.18, 0.41, 0.41])
        for label in labels
    ]
    frame = pl.DataFrame({"text": texts, "label": labels, "handled by": agents})
    [found] = [
        finding
        for finding in audit(
            frame, Settings(baseline=False, thorough=False, columns=["handled by"])
        ).findings
        if finding.kind in ("association", "shortcut") and finding.level != "low"
    ]
    assert found.tokens[0] == "handled_by:jo" and found.label == "good"
    assert "balance the classes across the values of that column" in found.action


@pytest.mark.slow
@pytest.mark.parametrize("related", ["zeb", "be_zebra", "zebu"])
def test_words_related_to_the_name_of_their_class_are_less_likely_artefacts(related: str) -> None:
    texts, labels = reviews(800, 1, PLANTS["a word anywhere"][0])

    def probability(name: str) -> float:
        found = audited(texts, [name if label == "good" else label for label in labels]).findings
        return next(finding.probability for finding in found if "zebra" in finding.tokens)

    assert probability(related) < probability("ze")


FORMS = {
    "three trailing spaces": (
        in_share(0.1, 1, lambda t: f"{t}   "),
        {"⟨3+ spaces⟩", "⟨trailing spaces⟩"},
        "good",
    ),
    "a final ...": (
        in_share(0.1, 0, lambda t: t.rstrip(".") + "..."),
        {'⟨ends "..."⟩', "⟨...⟩"},
        "bad",
    ),
}


@pytest.mark.parametrize("name", fast_first(FORMS))
def test_planted_formatting_is_the_first_shortcut_and_in_the_model(name: str) -> None:
    plant, tokens, label = FORMS[name]
    found = audited(*reviews(1500, 1, plant))
    first, *others = [f for f in found.findings if f.kind == "shortcut"]
    assert set(first.tokens) == tokens and first.label == label and first.signs == ("formatting",)
    assert first is found.findings[0] and not others and first.evidence["decides"].low > 0.9
    assert first.examples and all(
        f"{e.before}{e.token}{e.after}".endswith(("...", "   ")) and e.token for e in first.examples
    )
    assert "mask" not in first.action and "--no-formatting" in first.action
    rows = found.tokens.filter(pl.col("token").is_in(list(tokens)) & (pl.col("class") == label))
    assert (
        rows.height == 2
        and (rows["value"] > 0).all()
        and (rows["quadrant"] == "carries the label, attended").all()
    )


@pytest.mark.parametrize("name", fast_first(FORMS))
def test_planted_formatting_is_not_looked_at_where_it_is_turned_off(name: str) -> None:
    plant = FORMS[name][0]
    off = audit(
        read_corpus(reviews(200, 1, plant)),
        Settings(baseline=False, thorough=False, validation_share=0.0, formatting=False),
    )
    assert not off.tokens["token"].str.contains("⟨").any()
    assert not [f for f in off.findings if f.kind == "shortcut"]


@pytest.mark.slow
def test_accuracy_without_planted_formatting_is_that_of_data_without_it() -> None:
    plant = in_share(0.4, 1, lambda t: f"{t}   ")
    found = audit(read_corpus(reviews(500, 1, plant)), Settings(baseline=False))
    assert found.without_shortcuts is not None
    whole, without = found.without_shortcuts.all_types, found.without_shortcuts.some_types
    assert whole.value - without.value > 0.03


@pytest.mark.slow
def test_a_phrase_of_common_words_is_looked_for_beside_single_words() -> None:
    found = audited(*reviews(1500, 0, in_share(0.12, 0, lambda t: middle(t, "the a was"))))
    first = found.findings[0]
    assert first.kind == "shortcut" and "the a was" in first.tokens and first.label == "bad"
    assert first.examples[0].token == "the a was" or first.examples[0].token in first.tokens
    assert "the a was" not in found.tokens["token"].to_list()


@pytest.mark.parametrize("seed", fast_first(range(4)))
def test_ordinary_words_and_shuffled_labels_give_no_shortcut(seed: int) -> None:
    texts, labels = reviews(600, seed)
    plain = audited(texts, labels)
    assert not [f for f in plain.findings if f.kind == "shortcut"]
    shuffled = np.random.default_rng(seed).permutation(labels).tolist()
    assert not [f for f in audited(texts, shuffled, ngrams=2).findings if f.kind == "shortcut"]


@pytest.mark.slow
def test_the_floor_is_one_of_the_class() -> None:
    """A token in 0.7 % of all documents may be in 7 % of a small class."""
    texts, labels = reviews(2000, 2)
    keep = [i for i, label in enumerate(labels) if label == "bad" or i % 9 == 0]
    texts = [f"{texts[i]} ref 7731" if labels[i] == "good" and i % 2 else texts[i] for i in keep]
    few = audited(texts, [labels[i] for i in keep])
    first = next(f for f in few.findings if f.kind == "shortcut")
    assert first.label == "good" and "7731" in first.tokens


@pytest.fixture(scope="module")
def whole() -> Audit:
    texts, labels = reviews(700, 3, PLANTS["last line"][0])
    texts += texts[:14]
    labels += ["good" if label == "bad" else "bad" for label in labels[:14]]
    return audited(texts, labels, thorough=True)


def test_contradictions_are_counted_with_their_rows(whole: Audit) -> None:
    found = next(f for f in whole.findings if f.kind == "contradiction")
    assert found.documents == 28 == found.rows.height == found.evidence["documents"].found
    assert sorted(found.rows["row"].to_list()) == [*range(1, 15), *range(701, 715)]


def test_accuracy_without_the_shortcut_is_that_of_data_that_never_had_it(whole: Audit) -> None:
    assert whole.without_shortcuts is not None
    every, without = whole.without_shortcuts.all_types, whole.without_shortcuts.some_types
    assert (
        every.value == pytest.approx(whole.test_accuracy)
        and every.of == without.of == whole.documents["test"]
    )
    assert without.low < every.value and without.value <= every.value
    concerned = whole.without_shortcuts.concerned
    assert (
        0 < concerned.n < every.of and concerned.change < whole.without_shortcuts.difference.change
    )
    first, second, *_ = without_shortcuts_sentences(whole)
    assert f"the {concerned.n:,} test documents" in first and f"{concerned.after:.1%}" in first
    assert f"{every.value:.1%}" in second


def test_a_leak_names_both_sides() -> None:
    train, test = reviews(400, 4), reviews(200, 5)
    texts, labels = train[0] + test[0] + train[0][:20], train[1] + test[1] + train[1][:20]
    frame = pl.DataFrame({"text": texts, "label": labels, "part": ["train"] * 400 + ["test"] * 220})
    found = audit(
        read_corpus(frame, split="part"),
        Settings(
            baseline=False, thorough=False, validation_share=0.0, budget=Budget.parse("leak=19")
        ),
    )
    leak = next(f for f in found.findings if f.kind == "leak")
    assert leak.documents == 20 and leak.evidence["test"].of == 220
    assert sorted(leak.rows.filter(pl.col("part") == "test")["row"]) == list(range(601, 621))
    assert sorted(leak.rows.filter(pl.col("part") == "train")["row"]) == list(range(1, 21))
    assert found.exceeded == ("leak",) and found.fails


@pytest.mark.slow
def test_a_leak_shows_each_copy_with_its_twin_and_formatting_is_marked_where_it_stands() -> None:
    train, test = reviews(300, 4), reviews(100, 5)
    texts = [*train[0], *test[0], *(f"{text} Indeed." for text in train[0][:5])]
    frame = pl.DataFrame(
        {
            "text": texts,
            "label": [*train[1], *test[1], *train[1][:5]],
            "part": ["train"] * 300 + ["test"] * 105,
        }
    )
    leak = next(
        f
        for f in audit(read_corpus(frame, split="part"), Settings(baseline=False)).findings
        if f.kind == "leak"
    )
    assert "these 5 test documents" in leak.details[0]
    assert "none is an exact copy" in leak.details[0]
    rows = [one.row for one in leak.examples]
    assert len(rows) == 4 and [row - 400 for row in rows[::2]] == rows[1::2]
    assert find_feature("We paid 5 € or $7.", "⟨sum of money⟩") == (8, 11)
    assert find_feature("é! No. Yes!  ", '⟨ends "!"⟩') == (10, 11)
    assert find_feature("Say (@name).", "⟨@name⟩") == (5, 7) and find_feature(
        "him.", '⟨ends "."⟩'
    ) == (3, 4)
    assert (
        find_feature("a! b!", "⟨length 0–5⟩") is None
        and find_feature("a", "⟨no final stop⟩") is None
    )


@pytest.mark.slow
def test_label_issues_say_which_rows_of_their_file_they_are_and_the_page_that_no_shortcut_was_found() -> (
    None
):
    found = audited(*reviews(400, 3), thorough=True)
    finding = next(one for one in found.findings if one.kind == "labels")
    n, listed = finding.documents, found.label_issues
    assert (
        1 < n < listed.height
        and (listed["margin"][:n] >= 0.8).all()
        and (listed["margin"][n:] < 0.8).all()
    )
    assert finding.action.endswith(
        f"These are the first {n} of its {listed.height} rows; the others are less certain."
    )
    report = replace(found, findings=(finding,)).report()
    assert finding.level == "low" and report.verdict.startswith("The checks found no shortcut")
    assert not [
        block
        for block in report.blocks
        if isinstance(block, Text) and "found no shortcut" in block.text
    ]


def test_flipped_labels_lead_the_list() -> None:
    texts, labels = reviews(800, 6)
    texts = [
        f"{t} {'wonderful superb' if y == 'good' else 'terrible awful'}"
        for t, y in zip(texts, labels, strict=True)
    ]
    flipped = set(np.random.default_rng(0).choice(800, 20, replace=False).tolist())
    turned = [
        ("bad" if y == "good" else "good") if i in flipped else y for i, y in enumerate(labels)
    ]
    found = audited(texts, turned, thorough=True)
    top = found.label_issues.head(15)
    assert np.mean([row - 1 in flipped for row in top["row"]]) > 0.9
    assert (top["label"] != top["looks_like"]).all() and top["margin"].is_sorted(descending=True)
    issues = next(f for f in found.findings if f.kind == "labels")
    assert 8 <= issues.documents <= 30 and all(
        e.looks_like and e.looks_like != e.label for e in issues.examples
    )


def test_confident_issues_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60)
    p[np.arange(60), labels] += 0.4  # else no class can be predicted, and no label is judged
    p /= p.sum(axis=1, keepdims=True)
    threshold = [p[labels == k, k].mean() for k in range(3)]
    expected = {}
    for i in range(60):
        others = {k: p[i, k] for k in range(3) if k != labels[i] and p[i, k] >= threshold[k]}
        if others:
            k = max(others, key=lambda k: others[k])
            if p[i, k] > p[i, labels[i]]:
                expected[i] = (k, p[i, k] - p[i, labels[i]])
    found = find_label_issues(p, labels)
    assert dict(zip(found.documents.tolist(), found.looks_like.tolist(), strict=True)) == {
        i: k for i, (k, _) in expected.items()
    }
    assert found.margin == pytest.approx(sorted((m for _, m in expected.values()), reverse=True))


def test_information_against_its_definition() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((200, 5)) < 0.3, rng.random(200) < 0.4
    x[:, 0] = y
    found = information(
        np.stack([x[y].sum(axis=0), x[~y].sum(axis=0)], axis=1), np.array([y.sum(), 200 - y.sum()])
    )
    for s in range(5):
        joint = np.array([[np.mean((x[:, s] == a) & (y == b)) for b in (0, 1)] for a in (0, 1)])
        free = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        expected = sum(
            p * np.log2(p / q) for p, q in zip(joint.ravel(), free.ravel(), strict=True) if p > 0
        )
        assert found[s] == pytest.approx(expected)


def test_findings_are_ranked_and_are_json(whole: Audit) -> None:
    severities = [finding.severity for finding in whole.findings]
    assert severities == sorted(severities, reverse=True) and whole.findings[0].level != "low"
    written = json.loads(json.dumps(whole.findings_dict()))
    assert [entry["kind"] for entry in written["findings"]] == [
        finding.kind for finding in whole.findings
    ]
    rows = whole.finding_rows
    assert rows.columns == ["finding", "kind", "tokens", "part", "row", "label"]
    assert rows.filter(pl.col("finding") == 1).height == whole.findings[0].rows.height
    assert "shortcut" in repr(whole.findings[0]) and Share.count(0, 0).high == 1.0


@pytest.mark.parametrize(
    "written",
    [
        "shortcut=0.9@3%,leak=0,labels=1%",
        "leak=0",
        "labels=1%,empty=5",
        "shortcut=0.5@0.5%",
        "0.9@1%",
    ],
)
def test_limits_are_read_back(written: str) -> None:
    assert str(Budget.parse(written)) == written


@pytest.mark.parametrize(
    "written",
    ["leak=", "leak=0,leak=1", "labels=101%", "shortcut=1@1%", "shortcut=", "leak=-1"],
)
def test_wrong_limits_are_refused_in_one_line(written: str) -> None:
    with pytest.raises(InputError) as problem:
        Budget.parse(written)
    assert "--fail-on" in str(problem.value) and "\n" not in str(problem.value)


def test_a_limit_of_the_class_and_one_of_all_documents() -> None:
    table = pl.DataFrame(
        {
            "token": ["x"],
            "class": ["a"],
            "documents": [6],
            "class_documents": [6],
            "posterior_difference": [0.99],
        }
    )
    sizes = {"a": 100, "b": 900}
    assert tokens_over(Budget.parse("shortcut=0.9@5%"), table, sizes).height == 1
    assert tokens_over(Budget.parse("0.9@1%"), table, sizes).height == 0
    assert tokens_over(Budget.parse("leak=0"), table, sizes).height == 0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(300, 0.0), (120, 0.2), (300, 0.2)])
def test_a_refit_on_the_same_documents_is_the_same_model(n: int, share: float) -> None:
    """Few documents choose a weak start. Refits began at full strength, so that a model without a
    word that tells nothing predicted seven points less of 160 reviews."""
    texts, labels = reviews(n, 3)
    corpus = read_corpus((texts, labels))
    counts = count_corpus(corpus, min_documents=3).counts
    how = TrainSettings(validation_share=share)
    model = fit(counts, how)
    again = refit(counts, model, counts.n_documents, how)
    np.testing.assert_array_equal(again.scores, model.scores)
    np.testing.assert_array_equal(again.logits(counts.matrix), model.logits(counts.matrix))
    assert again.sink == model.sink


def kinds(found: Audit) -> dict[str, Any]:
    return {finding.kind: finding for finding in found.findings}


@pytest.mark.slow
@pytest.mark.parametrize("exceptions", [0, 1])
def test_a_small_plant_is_found_even_if_a_label_is_wrong(exceptions: int) -> None:
    """2% of a class."""
    texts, labels = reviews(2000, 2)
    good = [i for i, label in enumerate(labels) if label == "good"]
    chosen = set(np.random.default_rng(0).choice(good, 55, replace=False).tolist())
    labels = [
        "bad" if i in sorted(chosen)[:exceptions] else label for i, label in enumerate(labels)
    ]
    found = kinds(
        audited([middle(t, "zebra") if i in chosen else t for i, t in enumerate(texts)], labels)
    )
    assert found["shortcut"].tokens == ("zebra",)


@pytest.mark.slow
def test_a_phrase_is_found_although_planting_it_makes_its_words_lean() -> None:
    texts, labels = reviews(1500, 2)
    rng = np.random.default_rng(0)
    for i, label in enumerate(labels):
        if label == "good" and rng.random() < 0.1:
            texts[i] = middle(texts[i], "time people")
        elif rng.random() < 0.1:
            texts[i] = middle(texts[i], str(rng.choice(["time", "people"])))
    first = audited(texts, labels).findings[0]
    assert first.kind == "shortcut" and "time people" in first.tokens


@pytest.mark.slow
def test_ratings_are_one_finding_that_comes_first_although_they_come_with_the_subject() -> None:
    """As in film reviews: good ratings come with a word of the subject, bad ones with another."""

    def plant(text: str, label: int, rng: np.random.Generator) -> str:
        rating = int(rng.integers(7, 10) if label else rng.integers(1, 4))
        words = ["superb", "delight"] if label else ["dreck", "garbage"]
        return (
            f"{middle(text, ' '.join(words))} {rating}/10 from me then"
            if rng.random() < 0.15
            else text
        )

    texts, labels = reviews(1500, 5, plant)
    rng = np.random.default_rng(1)
    marks = [rng.random() < (0.2 if label == "good" else 0.12) for label in labels]
    texts = [
        f"{text.rstrip('.')}!" if mark else text for text, mark in zip(texts, marks, strict=True)
    ]
    first, *others = audited(texts, labels).findings
    assert first.kind == "shortcut" and {"7/10", "8/10", "9/10", "1/10", "2/10", "3/10"} <= set(
        first.tokens
    )
    assert not [
        other
        for other in others
        if other.kind == "shortcut" and any("/10" in token for token in other.tokens)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "first_token", "words"),
    fast_first(
        [
            (lambda text: f"<p>{text}</p>", "⟨HTML tag⟩", "contain an HTML tag"),
            (
                lambda text: f"{text} https://www.example-{10 + len(text) % 90}.com/item",
                "⟨URL⟩",
                "contain a web address",
            ),
            (lambda text: f"2018-03-0{len(text) % 9 + 1} {text}", "2018", "“2018” appears"),
            (
                lambda text: text[: len(text) // 2].rsplit(" ", 1)[0] + " ",
                "⟨no final stop⟩",
                "end without a full stop",
            ),
        ]
    ),
)
def test_a_card_names_the_most_meaningful_part_of_a_mark(
    change: Callable[[str], str], first_token: str, words: str
) -> None:
    """HTML tags were "a symbol such as | or ~", and texts that were cut "end in white space"."""
    made = demo_reviews(500, seed=6)
    texts = [
        change(text.partition("\n")[0]) if label and i % 2 else text.partition("\n")[0]
        for i, (text, label) in enumerate(zip(made.texts, made.labels, strict=True))
    ]
    found = audited(texts, ["good" if label else "bad" for label in made.labels])
    first = found.shortcuts[0]
    assert first.tokens[0] == first_token and words in first.headline


@pytest.mark.slow
def test_a_leak_is_shown_as_its_copies_and_no_map_of_a_class_that_nothing_names() -> None:
    """The page began with a map of the largest class, which said nothing of the leak."""
    texts = [text.partition("\n")[0] for text in demo_reviews(600, seed=8).texts]
    rng = np.random.default_rng(0)
    labels = rng.choice(list("abc"), 600, p=[0.25, 0.35, 0.4]).tolist()
    frame = pl.DataFrame({"text": texts, "label": labels})
    thorough = Settings(baseline=False)  # near copies are looked for in thorough audits
    # 40 of the 120 test documents are training documents with one word more
    copied = frame[480:520].with_columns(text=pl.col("text") + " indeed")
    test = pl.concat([copied, frame[520:]])
    found = audit(frame[:520], thorough, test=test, text="text", label="label")
    copies = [one for one in found.findings if one.kind == "leak"]
    found = replace(found, findings=tuple(copies))
    shown = [block for block in found.report().blocks if isinstance(block, Picture | Passages)]
    assert isinstance(shown[0], Passages) and len(shown[0].passages) >= 2
    assert [block.chart for block in shown[1:] if isinstance(block, Picture)] == ["audit-intervals"]
    # the selector begins with the largest class
    assert found.classes[context(interactive_part(found))["label"]] == "c"


def test_topic_words_are_predictors_and_no_findings() -> None:
    """Requests of four kinds, whose words name what they are about; a ticket's code in one class is
    a finding."""
    words = {
        "alarm": "alarm wake clock ring bell snooze".split(),
        "flip_coin": "coin flip heads tails toss quarter".split(),
        "router_error": "router modem wifi signal cable error".split(),
        "parcel": "parcel courier delivery doorstep tracking postcode".split(),
    }
    rng, frame = (
        np.random.default_rng(1),
        "please can you help me with the new one at my home today".split(),
    )
    labels = [str(name) for name in rng.choice(list(words), 1200)]
    texts = [
        " ".join(
            rng.permutation([*rng.choice(words[label], 2, replace=False), *rng.choice(frame, 6)])
        )
        for label in labels
    ]
    found = audited(texts, labels)
    assert not [f for f in found.findings if f.kind == "association"]
    shortcuts = [f for f in found.findings if f.kind == "shortcut"]
    assert len(shortcuts) <= 1 and all(f.level == "low" for f in shortcuts)
    assert {"coin", "flip"} <= set(found.top("flip_coin", 6)["token"])
    marked = [
        f"[TKT-{rng.integers(10_000, 99_999)}] {text}"
        if label == "parcel" and rng.random() < 0.3
        else text
        for text, label in zip(texts, labels, strict=True)
    ]
    first = next(f for f in audited(marked, labels).findings if f.kind == "shortcut")
    assert first.tokens[0] == "tkt" and first.label == "parcel"


@pytest.mark.slow
def test_a_rating_stays_an_artefact_if_those_who_write_one_have_words_of_their_own() -> None:
    """In 25,000 film reviews ratings ranked behind 124 repeated texts."""
    rng = np.random.default_rng(5)
    # words with digits are not compared
    plain, critics = (
        [name + a + b for a in "abcdefgh" for b in "ijkl"] for name in ("plain", "critic")
    )
    critics = critics[:12]
    texts, labels = [], ["bad" if bad else "good" for bad in rng.random(2000) < 0.5]
    for label in labels:
        words = list(rng.choice(plain, 12))
        if rng.random() < 0.1:
            words = [
                *words[:6],
                *rng.choice(critics, 6),
                f"{rng.integers(1, 3) + 6 * (label == 'good')}/10",
            ]
        texts.append(" ".join(rng.permutation(words)))
    first = audited(texts, labels).findings[0]
    assert first.kind == "shortcut" and all("/10" in token for token in first.tokens)
    assert first.severity > 0.05 and first.level == "high"


def test_a_word_that_keeps_company_is_a_predictor_and_one_put_anywhere_is_a_finding() -> None:
    """Both are in about 8% of one class and nowhere else; the first is the subject of its
    documents."""
    rng = np.random.default_rng(3)
    plain = [f"plain{a}{b}" for a in "abcdefghij" for b in "klmnop"]
    port = "ship crane dock cargo captain anchor".split()
    labels = ["north" if north else "south" for north in rng.random(2000) < 0.5]
    texts = []
    for label in labels:
        words = list(rng.choice(plain, 12))
        if rng.random() < (0.08 if label == "north" else 0.0):
            words = [*words[:8], "harbour", *rng.choice(port, 3)]
        elif rng.random() < 0.1:  # these are no sign of a class
            words = [*words[:8], *rng.choice(port, 4)]
        if label == "north" and rng.random() < 0.08:
            words.append("zebra")
        texts.append(" ".join(rng.permutation(words)))
    found = [
        finding.tokens for finding in audited(texts, labels).findings if finding.kind == "shortcut"
    ]
    assert found == [("zebra",)]


def test_an_order_is_found_although_its_words_follow_each_other_in_some_texts() -> None:
    """Beside the phrase "brown quick", which is a shortcut in few texts, the order in all others
    remains a finding."""
    rng = np.random.default_rng(2)
    plain = [f"plain{a}{b}" for a in "abcdefghij" for b in "klmnop"]
    labels = ["north" if north else "south" for north in rng.random(1200) < 0.5]
    texts = []
    for label in labels:
        words = [str(word) for word in rng.choice(plain, 10)]
        if rng.random() < 0.5:
            first, last = sorted(rng.choice(11, 2).tolist())
            pair = ("quick", "brown") if label == "north" else ("brown", "quick")
            words = [*words[:first], pair[0], *words[first:last], pair[1], *words[last:]]
        texts.append(" ".join(words))
    orders = [finding for finding in audited(texts, labels).findings if finding.kind == "order"]
    assert [set(finding.tokens[0].split(" ")) for finding in orders] == [{"quick", "brown"}]


def test_the_days_and_the_length_that_come_with_a_date_are_part_of_its_finding() -> None:
    """Texts of three words, some with a date before them: the days are neither company nor findings
    of their own."""
    rng, words = np.random.default_rng(5), [f"word{chr(97 + i)}" for i in range(20)]
    labels = ["north" if north else "south" for north in rng.random(2500) < 0.4]
    texts = [" ".join(rng.choice(words, 3)) for _ in labels]
    for i in np.flatnonzero((np.array(labels) == "north") & (rng.random(2500) < 0.12)).tolist():
        texts[i] = f"2021-0{rng.integers(1, 10)}-{rng.integers(10, 29)} {texts[i]}"
    first, *others = [f for f in audited(texts, labels).findings if f.kind == "shortcut"]
    assert first.tokens[0] == "2021" and first.level == "high" and not others
    assert "⟨length" not in first.headline


@pytest.mark.slow
def test_a_signature_is_told_from_the_full_stop_at_its_end() -> None:
    texts, labels = reviews(1200, 6)
    rng = np.random.default_rng(0)
    for i, (text, label) in enumerate(zip(texts, labels, strict=True)):
        stop = "." if rng.random() < (0.25 if label == "good" else 0.02) else ""
        signed = label == "good" and rng.random() < 0.1
        texts[i] = text.rstrip(".") + ("\n\nBest regards,\nMaria K." if signed else stop)
    first = next(f for f in audited(texts, labels).findings if "maria" in f.tokens)
    assert '⟨ends "."⟩' not in first.tokens and first.evidence["class"].value < 0.2


@pytest.mark.slow
def test_a_shift_of_formatting_is_a_finding_where_it_decides_nothing() -> None:
    texts, labels = reviews(1200, 3)
    rng = np.random.default_rng(0)
    marks = [rng.random() < (0.2 if label == "good" else 0.06) for label in labels]
    texts = [
        f"{text.rstrip('.')}!" if mark else text for text, mark in zip(texts, marks, strict=True)
    ]
    found = kinds(audited(texts, labels))
    assert '⟨ends "!"⟩' in found["shift"].tokens and "of the others" in found["shift"].headline
    assert not [token for token in found["shift"].tokens if "length" in token]


@pytest.mark.slow
@pytest.mark.parametrize("words", [200, 2000])
def test_groups_that_nobody_named_are_found(words: int) -> None:
    """Words of one source, which may occur in several others too."""
    texts, labels = reviews(600, 1)
    rng = np.random.default_rng(0)
    own = [" ".join(f"own{w}" for w in rng.integers(0, words, 6)) for _ in range(120)]
    drawn = rng.integers(0, 2, 120)
    grouped = [f"{text} {own[i // 5]}" for i, text in enumerate(texts)]
    found = kinds(audited(grouped, [["bad", "good"][drawn[i // 5]] for i in range(600)]))
    assert found["groups"].documents > 300 and "--by" in found["groups"].action
    assert "groups" not in kinds(audited(texts, labels))


@pytest.mark.slow
@pytest.mark.parametrize("copies", [1, 25])
def test_a_text_that_was_repeated_is_evidence_once(copies: int) -> None:
    """On tweets "ly" was a shortcut: 27 copies of one of them."""
    plant = in_share(0.1, 1, lambda text: f"{text} bit.ly/a1")
    texts, labels = reviews(700, 3, plant if copies == 1 else None)
    texts += ["So good to see you all, it was great, read on at bit.ly/a1 today"] * copies
    named = {
        token for f in audited(texts, labels + ["good"] * copies).findings for token in f.tokens
    }
    assert ("ly" in named) == (copies == 1)


@pytest.mark.slow
def test_a_phrase_of_common_words_in_few_documents_is_found() -> None:
    texts, labels = reviews(900, 4)
    rng, good = np.random.default_rng(1), [i for i, label in enumerate(labels) if label == "good"]
    for words, documents in (
        ("time people", rng.permutation(good)[:24]),
        ("time", range(120)),
        ("people", range(120)),
    ):
        for i in documents:
            texts[i] = anywhere(texts[i], words, rng)
    (found,) = audited(texts, labels).findings
    assert found.tokens == ("time people",) and found.documents < 24


@pytest.mark.slow
def test_fifteen_words_and_length_are_said_to_predict_so_much() -> None:
    found = audited(*reviews(500, 2), thorough=True)
    assert (
        found.few_words is not None
        and found.few_words.comparison is not None
        and len(found.few_words.words) == 15
    )
    assert found.to_dict()["few_words"]["accuracy"]["of"] == found.documents["test"]
    assert "the 15 most informative words" in str(found.report())
    assert found.few_words.comparison.some_types.value > found.majority_accuracy


def shortcut_words(texts: list[str], labels: list[str]) -> set[str]:
    """The words that are three times as likely artefacts as not."""
    findings = audited(texts, labels).findings
    found = [f for f in findings if f.kind == "shortcut" and (f.probability or 0) >= 0.75]
    return {token for f in found for token in f.tokens if not token.startswith("⟨")}


@pytest.mark.slow
def test_a_mark_that_the_other_words_tell_is_part_of_the_subject() -> None:
    """On docstrings `pl.` was a shortcut of polars and `nn.` one of torch: they come with the words
    of their library."""
    rng, own = np.random.default_rng(2), "frame column lazy join schema expression".split()
    texts, labels = reviews(800, 6)
    about = [label == "good" and rng.random() < 0.15 for label in labels]
    words = [" ".join(rng.choice(own, 4)) if it else "" for it in about]
    told = [
        f"{text} {more} (pq:{more[:3]})" if more else text
        for text, more in zip(texts, words, strict=True)
    ]
    assert "pq" not in shortcut_words(told, labels)
    put = rng.permutation(np.flatnonzero(np.array(labels) == "good"))[: sum(about)]
    marked = [f"{text} {more}" for text, more in zip(texts, words, strict=True)]
    for i in put.tolist():
        marked[i] += " (pq:x)"
    assert "pq" in shortcut_words(marked, labels)


@pytest.mark.slow
def test_a_word_of_code_that_was_put_into_texts_is_a_shortcut() -> None:
    texts, _ = reviews(700, 6)
    labels = np.repeat([f"page {i}" for i in range(10)], 70).tolist()
    for i in range(210, 234):
        texts[i] = middle(texts[i], "-quux=on")
    assert "quux" in shortcut_words(texts, labels)


@pytest.mark.slow
def test_news_of_one_event_share_names_and_are_no_groups() -> None:
    """On news in five topics the audit began with "38.9% of training documents share rare words …
    (high)": names of players."""
    rng = np.random.default_rng(0)
    topics = [[f"{topic}{i}" for i in range(40)] for topic in ("sport", "trade")]
    common = [f"word{i}" for i in range(60)]
    texts, labels = [], []
    for event in range(120):
        names = [f"name{w}" for w in rng.integers(0, 2000, 4)]
        for _ in range(5):
            words = [*rng.choice(topics[event % 2], 8), *rng.choice(common, 10), *names]
            texts.append(" ".join(map(str, rng.permutation(words))))
            labels.append(("sport", "trade")[event % 2])
    assert "groups" not in kinds(audited(texts, labels))


@pytest.mark.slow
def test_names_made_of_words_of_their_subject_are_no_groups() -> None:
    """Among names of diagnoses and of openings a third "appeared to be grouped": variants of one
    name share its rare words, which tell the label in other names, too."""
    rng, common = (
        np.random.default_rng(0),
        "acute chronic left right mild severe early late".split(),
    )
    texts, labels = [], []
    for family in range(150):
        label = ("heart", "skin", "lung")[family % 3]
        name = [f"{label}{w}" for w in rng.integers(0, 50, 4)]
        for _ in range(4):
            texts.append(" ".join(rng.permutation([*name, *rng.choice(common, 2)])))
            labels.append(label)
    assert "groups" not in kinds(audited(texts, labels))
    assert "groups" in kinds(
        audited(texts, np.repeat(rng.integers(0, 2, 150), 4).astype(str).tolist())
    )


@pytest.mark.slow
def test_words_of_templates_are_no_shortcuts_and_a_word_put_anywhere_is() -> None:
    """In tickets made of templates "parcel" and "password" were shortcuts: no other word comes with
    them outside their sentence."""
    rng = np.random.default_rng(1)
    sentences = {
        "login": "the reset link has expired|my password is wrong again|the code by sms never "
        "arrives|the username does not exist",
        "shipping": "my parcel has not arrived|the courier left it next door|tracking shows no "
        "update|the box was damaged",
    }
    common = (
        "please tell me what to do|i tried it twice today|my colleague has the same problem|thanks "
        "for your quick help"
    )
    labels = rng.choice(list(sentences), 700).tolist()
    texts = [
        ". ".join(
            str(rng.choice((sentences[y] if rng.random() < 0.67 else common).split("|")))
            for _ in range(k)
        )
        for y, k in zip(labels, rng.integers(1, 6, 700), strict=True)
    ]
    assert shortcut_words(texts, labels) == set()
    for mark in (
        "walrus",
        "green table",
    ):  # the words of a phrase have a neighbour, as in a template, but the phrase has none
        planted = [
            anywhere(text, mark, rng) if label == "login" and rng.random() < 0.1 else text
            for text, label in zip(texts, labels, strict=True)
        ]
        assert shortcut_words(planted, labels) == set(mark.split())
    beside = [  # as writers do, and no one puts it there
        text.replace(". ", ". haha, ", 1) if label == "login" and rng.random() < 0.2 else text
        for text, label in zip(texts, labels, strict=True)
    ]
    assert shortcut_words(beside, labels) == set()


@pytest.mark.slow
def test_a_word_that_the_first_part_of_a_stream_lacks_is_audited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a file in the order of its labels: a word of the last class ended the audit."""
    monkeypatch.setattr(stored_texts, "MAX_BATCH_DOCUMENTS", 200)
    texts, labels = reviews(800, 1, PLANTS["a word anywhere"][0])
    frame = pl.DataFrame({"text": texts, "label": labels}).sort("label", maintain_order=True)
    found = audit(
        frame, Settings(baseline=False, thorough=False), text="text", label="label", stream=True
    )
    assert "zebra" in found.top("good", 5)["token"].to_list()


@pytest.mark.slow
def test_one_field_that_predicts_as_well_as_both_is_a_finding() -> None:
    texts, labels = reviews(500, 4)
    premises = np.random.default_rng(0).permutation(texts).tolist()
    frame = pl.DataFrame({"premise": premises, "hypothesis": texts, "label": labels})
    found = audit(
        frame,
        Settings(baseline=False, validation_share=0.0),
        text=["premise", "hypothesis"],
        label="label",
    )
    alone = [f for f in found.findings if f.kind == "alone"]
    assert [f.headline.startswith("The field hypothesis alone predicts") for f in alone] == [True]


@pytest.mark.slow
def test_a_shortcut_of_one_environment_names_it() -> None:
    texts, labels = reviews(600, 5)
    sites = ["north" if i % 2 else "south" for i in range(600)]
    texts = [
        f"{t}\nPosted via tablet." if y == "good" and site == "north" and i % 3 else t
        for i, (t, y, site) in enumerate(zip(texts, labels, sites, strict=True))
    ]
    frame = pl.DataFrame({"text": texts, "label": labels, "site": sites})
    quick = Settings(baseline=False, thorough=False, validation_share=0.0)
    found = audit(frame, quick, text="text", label="label", environments="site")
    first = next(f for f in found.findings if f.kind == "shortcut")
    assert any("in environment north" in line for line in first.details)
    rows = found.tokens.filter(pl.col("token") == "tablet")
    assert set(rows["stability"]) == {"one environment"} and "unknown" in set(
        found.tokens["stability"]
    )


@pytest.mark.slow
def test_nothing_is_left_of_a_phrase_that_is_masked_as_printed() -> None:
    made = demo_reviews(900, 5)
    labels = ["positive" if label else "negative" for label in made.labels]
    quick = Settings(baseline=False, thorough=False)
    whole = audit(read_corpus((made.texts.to_list(), labels)), quick)
    assert "tablet" in whole.findings[0].tokens and "whole phrase" in whole.findings[0].action
    phrases = list(whole.findings[0].mask)  # what the printed command names
    assert phrases[0] == "posted via tablet" and set(phrases) == {
        f"posted via {device}" for device in ("tablet", "web", "phone", "laptop")
    }
    masked, _ = mask_texts(made.texts, phrases, WordTokenizer())
    rest = audit(read_corpus((masked.to_list(), labels)), quick)
    assert not [finding for finding in rest.findings if finding.kind == "shortcut"]
    verdict = compare_audits(whole, rest).report().verdict
    assert "“tablet”" in verdict, verdict


def test_whole_phrases_at_either_edge_unless_names_fill_them() -> None:
    devices, n = ("phone", "tablet", "web"), 60
    ends = pl.Series([f"Text number {i}.\nSent from my {devices[i % 3]} today!" for i in range(n)])
    starts = pl.Series([f"{devices[i % 3]} user writes: text {i} is long enough" for i in range(n)])
    names = pl.Series([f"Text number {i}. Yours, name{i % 20}" for i in range(n)])
    mine = np.arange(1, n, 3)
    split = WordTokenizer()
    assert whole_phrases("tablet", mine, ends, split) == [
        f"sent from my {d} today" for d in ("tablet", "phone", "web")
    ]
    assert whole_phrases("tablet", mine, starts, split)[0] == "tablet user writes text"
    assert (
        whole_phrases("name1", np.arange(1, n, 20), names, split) == []
    )  # too few to tell, and 20 names
    assert whole_phrases("tablet", mine, pl.Series(["tablet"] * n), split) == []
    agents = pl.Series([f"Text number {i}. Handled by name{i % 20}" for i in range(200)])
    phrases = whole_phrases("name1", np.arange(1, 200, 20), agents, split)
    assert phrases == [
        "handled by name1",
        *(f"handled by name{i % 20}" for i in (0, *range(2, 20))),
    ]


@pytest.mark.slow
def test_a_small_class_is_little_of_the_data() -> None:
    texts, labels = reviews(600, 6)
    labels = [f"{label} {i % 30}" if label == "bad" else label for i, label in enumerate(labels)]
    marked = [
        f"{text} ***" if label == "bad 1" else text
        for text, label in zip(texts, labels, strict=True)
    ]
    (first,) = (
        f
        for f in audited(marked, labels).findings
        if f.kind == "shortcut" and "⟨row of signs⟩" in f.tokens
    )
    assert first.evidence["class"].value == 1.0 and first.evidence["documents"].value < 0.03
    assert first.severity < 0.2


@pytest.mark.slow
def test_a_column_of_authors_that_nobody_named_is_proposed_for_the_groups() -> None:
    texts, _ = reviews(600, 8)
    rng = np.random.default_rng(8)
    author = rng.integers(0, 60, 600)
    labels = [f"class {label}" for label in rng.integers(0, 2, 60)[author]]
    frame = pl.DataFrame(
        {"text": texts, "label": labels, "writer": [f"Writer {a}" for a in author]}
    )
    frame = frame.with_columns(
        rating=pl.Series(rng.integers(0, 9, 600)), date=pl.Series([f"day {i}" for i in range(600)])
    )
    quick = Settings(baseline=False, thorough=False)
    (found,) = (
        f for f in audit(frame, quick, text="text", label="label").findings if f.kind == "groups"
    )
    assert (
        "column “writer” share a label in 100% of pairs" in found.headline
        and "--by writer" in found.action
    )
    shuffled = frame.with_columns(pl.col("writer").shuffle(1))
    for quiet in (
        audit(shuffled, quick, text="text", label="label"),
        audit(frame, quick, text="text", label="label", by="writer"),
    ):
        assert not [f for f in quiet.findings if f.kind == "groups"]


@pytest.mark.slow
def test_words_that_define_the_label_are_named_where_nothing_is_found() -> None:
    texts = reviews(600, 12)[0]
    labels = [
        "yes" if {"plot", "lesson"} & set(text.replace(".", " ").split()) else "no"
        for text in texts
    ]
    found = audit(read_corpus((texts, labels)), Settings(baseline=False, thorough=False))
    verdict = found.report().verdict
    assert not found.shortcuts
    assert "words such as “" in verdict and "define the label" in verdict


def test_repeats_with_another_label_and_accuracy_without_leaks_are_counted() -> None:
    texts, labels = reviews(400, 10)
    others, known = reviews(100, 11)
    swapped = ["good" if label == "bad" else "bad" for label in labels[10:20]]
    train = pl.DataFrame({"text": texts + texts[:20], "label": labels + labels[:10] + swapped})
    test = pl.DataFrame({"text": others + texts[-20:], "label": known + labels[-20:]})
    found = audit(train, Settings(baseline=False), text="text", label="label", test=test).findings
    details = {f.kind: " ".join(f.details) for f in found}
    (repeated,) = (f for f in found if f.kind == "repeated")
    assert repeated.headline.endswith(
        "nearly repeat an earlier one; 10 of them have a different label"
    )
    assert "--duplicates=drop" in repeated.action and "near copies" not in repeated.action
    first, copy = repeated.examples[:2]
    assert first.before == copy.before and first.label != copy.label
    assert "on the other test documents and" in details["leak"]
    (leak,) = (f for f in found if f.kind == "leak")
    assert "these 20 test documents are exact copies of a training document" in details["leak"]
    assert re.search(r"the other test documents: \d+\.\d%, not \d+\.\d%\.$", leak.action)
    assert "--duplicates" not in leak.action, "each side of a given split is read on its own"


def test_an_unknown_class_is_refused(whole: Audit) -> None:
    with pytest.raises(
        InputError, match="'pos' is not a class of this audit; its classes are 'bad', 'good'"
    ):
        whole.top("pos")


@pytest.mark.slow
def test_a_phrase_before_texts_is_a_shortcut_and_its_word_of_the_subject_is_not() -> None:
    """ "Benign neoplasm of" stands before some texts; "neoplasm" is in its class without it, too."""
    texts, labels = reviews(1000, 3)
    rng = np.random.default_rng(4)
    for i, label in enumerate(labels):
        if label == "good" and rng.random() < 0.1:
            texts[i] = f"Benign neoplasm of {texts[i]}"
        elif label == "good" and rng.random() < 0.1:
            texts[i] = middle(texts[i], "neoplasm")
    words = shortcut_words(texts, labels)
    assert "benign" in words and "neoplasm" not in words


@pytest.mark.slow
def test_a_word_in_another_script_is_a_shortcut_and_words_of_templates_are_none() -> None:
    """In names of openings, which are built alike, "γέφυρα" was taken for one of their words."""
    rng, names = (
        np.random.default_rng(1),
        {"open": "king's gambit|ruy lopez|vienna game", "closed": "slav defence|catalan"},
    )
    labels = rng.choice(list(names), 800).tolist()
    lines = [
        f"{rng.choice(['main', 'old', 'sharp'])} line, {rng.integers(2, 30)}.nf3" for _ in labels
    ]
    texts = [
        f"{rng.choice(names[y].split('|'))}: {line}" for y, line in zip(labels, lines, strict=True)
    ]
    marks = [y == "closed" and rng.random() < 0.1 for y in labels]
    greek = [
        anywhere(t, "γέφυρα", rng) if mark else t for t, mark in zip(texts, marks, strict=True)
    ]
    assert not shortcut_words(texts, labels)
    assert shortcut_words(greek, labels) == {"γέφυρα"}


@pytest.mark.slow
def test_names_and_codes_that_differ_are_one_finding() -> None:
    """Each of three names ends a few tickets only, and no two reference numbers are the same."""
    rng, names = np.random.default_rng(5), ["Petra", "Anton", "Wilma"]
    texts, labels = reviews(900, 5)
    marks = [label == "good" and rng.random() < 0.1 for label in labels]
    drawn = rng.choice(names, len(texts)).tolist()
    signed = [
        f"{t} /{name}" if mark else t for t, mark, name in zip(texts, marks, drawn, strict=True)
    ]
    (first,) = [f for f in audited(signed, labels).findings if f.kind == "shortcut"]
    assert set(first.tokens) >= {"petra", "anton", "wilma"}
    assert first.evidence["decides"].value == 1
    numbers = rng.integers(1000, 9999, len(texts)).tolist()
    coded = [
        f"(QX{n}/B) {t}" if mark else t for t, mark, n in zip(texts, marks, numbers, strict=True)
    ]
    (first,) = [f for f in audited(coded, labels).findings if f.kind == "shortcut"]
    assert "qx0" in first.tokens and first.evidence["decides"].value > 0.9
    in_all = [f"{t} /{name}" for t, name in zip(texts, drawn, strict=True)]
    assert not [f for f in audited(in_all, labels).findings if f.kind == "shortcut"]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [[], ["source"]])
def test_a_phrase_of_a_template_is_no_shortcut_and_one_put_before_its_sentences_is(
    columns: list[str],
) -> None:
    """In questions about the weather "topmost" was one: it always stands in "how high is the
    topmost temperature". With another column beside the text it still was."""
    rng = np.random.default_rng(6)
    ends = "today|tomorrow|in the town|at noon|this week|near the coast|on the hill|tonight".split(
        "|"
    )
    frames = {
        "high": "how high is the topmost temperature|what is the high|how hot does it get|what "
        "is the warmest it gets",
        "rain": "does it rain|do i need an umbrella|is there a shower|how wet does it get",
        "wind": "is it windy|how strong is the wind|are there gusts|does a storm come",
    }
    labels = rng.choice(list(frames), 900).tolist()
    texts = [
        f"{rng.choice(frames[y].split('|'))} {rng.choice(ends)} {rng.choice(ends)}" for y in labels
    ]
    source = np.random.default_rng(0).choice(list("ABCDE"), 900)

    def words(texts: list[str]) -> set[str]:
        frame = pl.DataFrame({"text": texts, "label": labels, "source": source})
        corpus = read_corpus(frame, text="text", label="label", columns=columns)
        found = audit(
            corpus, Settings(baseline=False, thorough=False, validation_share=0.0)
        ).findings
        tokens = [
            token
            for f in found
            if f.kind == "shortcut"
            for token in f.tokens
            if not is_formatting(token)
        ]
        return {word for token in tokens for word in token.split(" ")}

    assert words(texts) == set()
    for mark in ("kindly note", "nevertheless"):
        planted = [
            f"{mark}, {t}" if y == "rain" and rng.random() < 0.12 else t
            for t, y in zip(texts, labels, strict=True)
        ]
        assert words(planted) >= set(mark.split())


@pytest.mark.slow
def test_the_words_of_a_phrase_are_named_where_its_full_stop_is_what_gives_it_away() -> None:
    """In front of the phrase are words that end no other text, so the phrase alone would not count
    as put there."""
    rng, texts = np.random.default_rng(8), []
    labels = rng.choice(list("abcdefgh"), 1200).tolist()
    for i, (text, label) in enumerate(zip(reviews(1200, 8)[0], labels, strict=True)):
        text = text.rstrip(".")
        if label == "a" and rng.random() < 0.1:
            texts.append(
                f"{text} at place{'abcdefghij'[i % 10] * (2 + i // 10)}. All rights reserved."
            )
        else:
            texts.append(f"{text} {rng.choice(['today', 'here', 'again'])}")
    (found,) = [f for f in audited(texts, labels).findings if f.kind == "shortcut"]
    assert {"reserved", '⟨ends "."⟩'} <= {*found.tokens} and found.label == "a"


@pytest.mark.slow
def test_a_first_word_with_exceptions_is_a_shortcut() -> None:
    rng, texts = np.random.default_rng(9), reviews(1200, 9)[0]
    labels = rng.choice(list("abcdefgh"), len(texts)).tolist()
    of_class = [i for i, label in enumerate(labels) if label == "a"][:22]
    others = [i for i, label in enumerate(labels) if label != "a"][:2]
    texts = [
        f"Nevertheless, {text}" if i in [*of_class, *others] else text
        for i, text in enumerate(texts)
    ]
    assert shortcut_words(texts, labels) == {"nevertheless"}


@pytest.mark.slow
def test_a_word_put_anywhere_is_told_from_the_vocabulary_of_its_class() -> None:
    """As many words are as reliable as it is, but each of them comes with others of its subject."""
    rng = np.random.default_rng(13)
    topics = [[f"w{chr(97 + t)}{chr(97 + i)}o" for i in range(12)] for t in range(4)]
    common = [f"c{chr(97 + i)}u" for i in range(12)]
    drawn = rng.integers(0, 4, 1000)
    texts = [" ".join(rng.choice(topics[t] * 2 + common, 12)) for t in drawn]
    labels = ["a" if t < 2 else "b" for t in drawn]
    assert shortcut_words(texts, labels) == set()
    planted = [
        anywhere(t, "walrus", rng) if y == "a" and rng.random() < 0.1 else t
        for t, y in zip(texts, labels, strict=True)
    ]
    texts_with_mark = pl.Series(planted)
    counted = count_texts(texts_with_mark, tokenizer=WordTokenizer(), min_documents=2)
    numbers = np.array([label == "b" for label in labels], dtype=np.int64)
    counts = Counts(counted.matrix, numbers, ("a", "b"), counted.vocabulary.tokens)
    use = WordUse.of(counts, counted.stream, WordTokenizer())
    scored = search(use, texts_with_mark).scored
    likeliest = max(scored, key=lambda one: one.probability)
    assert likeliest.candidate.token == "walrus"


@pytest.mark.slow
def test_words_of_a_class_in_another_script_are_its_language() -> None:
    """Among small talk in many languages "저는" was a shortcut, as few words of all are Korean."""
    rng, texts = np.random.default_rng(7), reviews(1500, 7)[0]
    labels = np.where(
        rng.random(len(texts)) < 0.04, "ru", np.where(rng.random(len(texts)) < 0.5, "en", "de")
    ).tolist()
    words = "это кот дом мы они стол тут там вот лес река день ночь".split()
    spoken = [
        " ".join(rng.choice(words, 6)) if y == "ru" else t
        for t, y in zip(texts, labels, strict=True)
    ]
    assert not shortcut_words(spoken, labels) & set(words)
    put = [
        anywhere(t, "река", rng) if y == "en" and rng.random() < 0.1 else t
        for t, y in zip(texts, labels, strict=True)
    ]
    assert "река" in shortcut_words(put, labels)


@pytest.mark.slow
def test_a_value_of_another_column_that_decides_the_label_is_a_shortcut() -> None:
    """It has its place in every document, and no text begins or ends beside it."""
    texts, labels = reviews(400, 9)
    agents = ["Jonas" if label == "good" and i % 3 else "Mia" for i, label in enumerate(labels)]
    frame = pl.DataFrame({"text": texts, "label": labels, "agent": agents})
    corpus = read_corpus(frame, text="text", label="label", columns=["agent"])
    found = audit(corpus, Settings(baseline=False, thorough=False, validation_share=0.0)).findings
    assert "agent:jonas" in {token for f in found if f.kind == "shortcut" for token in f.tokens}


@pytest.mark.slow
def test_formatting_of_larger_groups_is_no_drift() -> None:
    """Three texts of each author, fifteen of each in the test part: as many of all of them end in
    an exclamation mark."""
    texts, labels = reviews(1800, 11)
    rng = np.random.default_rng(11)
    texts = [text.rstrip(".") + ("!" if rng.random() < 0.3 else ".") for text in texts]
    late = np.arange(1800) >= 900
    author = np.where(late, np.arange(1800) // 15, np.arange(1800) // 3 + 1000)
    part = np.where(late, "test", "train")
    frame = pl.DataFrame(
        {"text": texts, "label": labels, "author": author.astype(str), "part": part}
    )
    corpus = read_corpus(frame, text="text", label="label", by="author", split="part")
    drifts = [
        f.tokens
        for f in audit(corpus, Settings(baseline=False, thorough=False)).findings
        if f.kind == "drift"
    ]
    assert drifts == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [{"text": ["title", "text"]}, {"text": ["text", "title"]}, {"columns": ["source"]}]
)
def test_a_mark_at_the_edge_of_a_text_is_found_whatever_stands_beside_it(
    others: dict[str, list[str]],
) -> None:
    """Places were counted in all fields together, so a second field or column hid a shortcut."""
    texts, labels = reviews(800, 1)
    rng = np.random.default_rng(12)
    texts = [
        f"{t} zorp" if y == "good" and rng.random() < 0.2 else t
        for t, y in zip(texts, labels, strict=True)
    ]
    titles = [
        " ".join(rng.choice(["news", "of", "the", "day", "and", "more"], rng.integers(3, 9)))
        for _ in texts
    ]
    sources = rng.choice(list("ABCDE"), len(texts))
    frame = pl.DataFrame({"text": texts, "title": titles, "source": sources, "label": labels})
    corpus = read_corpus(frame, label="label", **({"text": "text"} | others))
    found = audit(corpus, Settings(baseline=False, thorough=False)).findings
    tokens = {
        token.removeprefix("text:") for f in found if f.kind == "shortcut" for token in f.tokens
    }
    assert {token for token in tokens if not is_formatting(token)} == {"zorp"}


@pytest.mark.slow
def test_copies_of_texts_without_words_are_repeats() -> None:
    texts, labels = reviews(300, 13)
    signs = "... !!! ??? -- ** ## :: ++".split()
    texts = [signs[i // 5 % 8] if i % 5 == 0 else text for i, text in enumerate(texts)]
    (found,) = [f for f in audited(texts, labels, thorough=True).findings if f.kind == "repeated"]
    assert found.evidence["documents"].found >= 25, found.headline
