"""Two audits compared: intervals, false discoveries, what was planted is found, and damaged folders
are refused in one line."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calls import Run, fast_first, undrawn
from tokensieve import InputError, Settings, audit, compare_audits, demo_reviews
from tokensieve.auditing.compare import difference_of, token_differences
from tokensieve.auditing.outcomes import SCHEMA, AccuracyChange, paired_change
from tokensieve.auditing.saved_audit import SavedAudit
from tokensieve.auditing.settings import CompareSettings
from tokensieve.evidence.importance import token_importance
from tokensieve.evidence.intervals import Interval, Share
from tokensieve.report.blocks import Picture
from tokensieve.report.html import page as html_page
from tokensieve.text.counts import Counts

QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)


@pytest.fixture(scope="module")
def reviews() -> tuple[list[str], list[str]]:
    found = demo_reviews(600, seed=4)
    return found.texts.to_list(), [["bad", "good"][y] for y in found.labels]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, reviews: tuple[list[str], list[str]]) -> Path:
    """Audits in folders: before; after, without `tablet`, with `leaked` in every other good one and
    `great` turned round."""
    texts, labels = reviews
    home = tmp_path_factory.mktemp("compare")
    turned = [
        re.sub("tablet", "it", text)
        + (" leaked" if y == "good" and i % 2 else "")
        + (" really" if y == "bad" else "")
        for i, (text, y) in enumerate(zip(texts, labels, strict=True))
    ]
    with undrawn():
        for name, documents in (("before", texts), ("after", turned)):
            audit((documents, labels), QUICK).save(home / name, pictures=False)
    return home


def test_an_audit_and_itself_are_identical_and_test_sets_of_other_labels_are_not_paired(
    folders: Path,
) -> None:
    same = compare_audits(folders / "before", folders / "before").report()
    assert same.verdict == "The two audits are identical."
    assert "Change in points" not in html_page(same, {})
    changed = compare_audits(folders / "before", folders / "after")
    assert "the same test documents" in html_page(changed.report(), {})
    wide = replace(changed, accuracy=AccuracyChange(-0.01, -0.03, 0.01))
    assert "the audits tested different documents" in html_page(wide.report(), {})


def outcomes(right: np.ndarray, texts: list[str]) -> pl.DataFrame:
    n = len(right)
    return pl.DataFrame(
        {
            "row": np.arange(n),
            "label": ["a"] * n,
            "right": right,
            "group": np.arange(n),
            "text": texts,
        },
        schema=SCHEMA,
    )


def test_the_same_test_documents_are_compared_one_by_one(folders: Path) -> None:
    """135 against 57 documents of 25,000: marginal intervals call that a difference within
    chance."""
    before = np.ones(25_000)
    after = np.ones(25_000)
    before[:57] = 0
    after[57 : 57 + 135] = 0
    texts = ["t"] * 25_000
    change = paired_change(outcomes(before, texts), outcomes(after, ["new"] * 1476 + texts[1476:]))
    assert change is not None and change.everywhere is not None and change.on_changed is not None
    assert change.everywhere.p_value < 1e-7 and not change.is_within_chance
    assert change.on_changed.n == 1476 and change.on_changed.change < 10 * change.value
    found = compare_audits(folders / "before", folders / "before")
    found = replace(found, accuracy=change)
    verdict = found.report().verdict
    assert verdict.index("1,476 test texts") < verdict.index("all test texts")
    assert "within chance" not in verdict
    for limit, exceeded in (("accuracy=0.1%", ["accuracy"]), ("accuracy=0.5%", [])):
        assert replace(found, fail_on=limit).exceeded == exceeded
    other = outcomes(after[:-1], texts[:-1])
    assert paired_change(outcomes(before, texts), other) is None


def test_predictions_of_the_test_documents_are_read_back(folders: Path) -> None:
    one = compare_audits(folders / "before", folders / "before")
    assert one.before.outcomes is not None and one.before.outcomes.height == one.before.n_test
    right = one.before.outcomes["right"].mean()
    assert right == pytest.approx(one.before.accuracy.value, abs=1e-6)


def test_the_change_in_points_agrees_with_the_accuracies_and_the_next_step_names_the_page(
    folders: Path,
) -> None:
    found = compare_audits(folders / "before", folders / "after")
    sides = [replace(found.before.accuracy, value=x) for x in (0.83732, 0.83071)]
    found = replace(
        found,
        before=replace(found.before, accuracy=sides[0]),
        after=replace(found.after, accuracy=sides[1]),
    )
    page = html_page(replace(found, accuracy=AccuracyChange(-0.00661, -0.031, 0.018)).report(), {})
    assert "83.7%" in page and "83.1%" in page and "−0.66" in page and "−3.10 to +1.80" in page
    assert "open after/report.html: the findings of the later audit" in page


def test_what_was_planted_is_found(folders: Path) -> None:
    found = compare_audits(folders / "before", folders / "after")
    changes = {(row["token"], row["change"]) for row in found.changed().iter_rows(named=True)}
    assert {("tablet", "vanished"), ("leaked", "appeared")} <= changes
    assert found.classes == ("good",) and found.table["token"].is_unique().all()
    back = compare_audits(folders / "after", folders / "before")
    turned = {"appeared": "vanished", "stronger": "weaker", "sign": "sign"}
    for one, other in turned.items():
        assert set(found.changed(one)["token"]) == set(back.changed(other)["token"])
    pair = found.table.select("token", "difference", "p_value").join(
        back.table.select("token", "difference", "p_value"), on="token"
    )
    np.testing.assert_allclose(pair["difference"], -pair["difference_right"], atol=1e-12)
    np.testing.assert_allclose(pair["p_value"], pair["p_value_right"], rtol=1e-4, atol=1e-12)
    same = compare_audits(folders / "before", folders / "before")
    assert same.changed().is_empty() and same.accuracy.value == 0 and "no change" in repr(same)
    assert [
        len(one.data["changes"]) for one in same.report().blocks if isinstance(one, Picture)
    ] == [12]


def test_in_memory_and_from_its_folder_it_is_the_same(
    folders: Path, reviews: tuple[list[str], list[str]]
) -> None:
    found = audit(reviews, QUICK)
    assert compare_audits(found, folders / "after").table.equals(
        compare_audits(folders / "before", folders / "after").table
    )


@settings(derandomize=True, deadline=None)
@given(st.tuples(*[st.floats(-5, 5)] * 2), st.tuples(*[st.floats(0.01, 3)] * 4))
def test_intervals_add_variances_and_p_agrees_with_them(
    middle: tuple[float, float], widths: tuple[float, ...]
) -> None:
    (e, f), (a, b, c, d) = middle, widths
    difference = difference_of(
        Interval(*np.array([[e], [e - a], [e + b]])), Interval(*np.array([[f], [f - c], [f + d]]))
    )
    delta, low, high = (getattr(difference.interval, end) for end in ("estimate", "low", "high"))
    p_values = difference.p_value
    assert (delta[0] - low[0]) ** 2 == pytest.approx(c**2 + b**2) and (
        high[0] - delta[0]
    ) ** 2 == pytest.approx(d**2 + a**2)
    p = p_values[0]
    if min(abs(low[0]), abs(high[0])) > 1e-9:
        assert (p < 0.05) == (low[0] > 0 or high[0] < 0)
    if a == b == c == d:  # symmetric: the textbook's test of two independent estimates
        se = np.sqrt(2) * a / stats.norm.ppf(0.975)
        assert p == pytest.approx(2 * stats.norm.sf(abs(f - e) / se), rel=1e-9)


def saved(rng: np.random.Generator, n: int, lift: float = 0.0) -> SavedAudit:
    """An audit's table of 200 token types that say nothing, but for the first, which says more with
    `lift`."""
    labels = np.repeat([0, 1], n // 2)
    rates = np.full((n, 200), 0.05)
    rates[labels == 1, 0] += lift
    matrix = (rng.random((n, 200)) < rates).astype(float)
    matrix[:, 199] = 1.0
    names = np.array([f"t{i}" for i in range(200)], dtype=object)
    frame = token_importance(Counts(sp.csr_array(matrix), labels, ("a", "b"), names)).to_frame()
    table = frame.with_columns(value=pl.lit(0.0)).filter(pl.col("documents") >= 3)
    return SavedAudit("generated", ("a", "b"), n, n, Share.count(n // 2, n), 3, table, {})


@pytest.mark.parametrize(("runs", "most", "least"), fast_first([(8, 1, 7), (30, 3, 28)]))
def test_false_discoveries_are_rare_and_intervals_cover(runs: int, most: int, least: int) -> None:
    rng, false, inside, planted = np.random.default_rng(7), 0, [], 0
    for _ in range(runs):
        table = token_differences(saved(rng, 400), saved(rng, 600), ("b",))
        false += (table["q_value"] < 0.05).any()
        inside.append(((table["difference_low"] <= 0) & (table["difference_high"] >= 0)).mean())
        differences = token_differences(saved(rng, 400), saved(rng, 600, lift=0.25), ("b",))
        changed = differences.filter(pl.col("change") != "")
        planted += changed["token"].to_list()[:1] == ["t0"] and changed["change"][0] == "appeared"
    assert false <= most  # 5 % are expected at most
    assert 0.94 <= np.mean(inside) <= 0.999
    assert planted >= least


def test_a_token_of_one_audit_has_changed_only_where_the_other_could_have_shown_it() -> None:
    rng = np.random.default_rng(3)
    large, small = saved(rng, 2000, lift=0.2), saved(rng, 2000)
    without = replace(small, tokens=small.tokens.filter(pl.col("token") != "t0"))
    row = token_differences(without, large, ("b",)).row(
        by_predicate=pl.col("token") == "t0", named=True
    )
    assert (
        row["change"] == "appeared"
        and row["effect_before"] is None
        and row["documents_before"] is None
    )
    tiny = replace(
        without, n_train=10
    )  # of 10 documents two may hold it unseen: that is more than here
    row = token_differences(tiny, large, ("b",)).row(
        by_predicate=pl.col("token") == "t0", named=True
    )
    assert row["change"] == "" and row["difference_low"] < 0 < row["difference_high"]


def test_accuracy_is_compared_by_newcombes_interval() -> None:
    shares = Share.count(81, 263), Share.count(56, 244)
    sides = [Interval(*map(np.asarray, (one.value, one.low, one.high))) for one in shares]
    interval = difference_of(*sides).interval
    value, lower, upper = interval.estimate, interval.low, interval.high
    # Newcombe's own example: 81/263 − 56/244, method 10: 0.0004 to 0.1527 for the difference
    # reversed
    wilson = [
        stats.binomtest(k, n).proportion_ci(method="wilson") for k, n in ((81, 263), (56, 244))
    ]
    low = (56 / 244 - 81 / 263) - np.hypot(56 / 244 - wilson[1].low, wilson[0].high - 81 / 263)
    assert lower == pytest.approx(low, rel=1e-12) and lower == pytest.approx(-0.1529, abs=3e-3)
    assert lower < value < upper


class Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.addresses += [
            value or "" for name, value in attrs if name in ("src", "href", "action")
        ]


@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_page_table_and_summary_and_fails_on_demand(
    folders: Path, run: Run
) -> None:
    both = [str(folders / "before"), str(folders / "after")]
    status, out, err = run("compare", *both)
    assert (status, err) == (0, "") and len(out.splitlines()) <= 50
    assert "no longer predicts" in out and "leaked" in out
    folder = Path("tokensieve-compare")
    assert {p.name for p in folder.iterdir()} == {"compare.csv", "summary.json", "report.html"}
    summary = json.loads((folder / "summary.json").read_text())
    assert (
        summary["changes"]["appeared"] >= 1
        and summary["exceeded"] == []
        and summary["accuracy"]["low"] <= 1
    )
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert (
        "no longer predicts the label" in re.search("<h1[^>]*>(.*?)</h1>", text)[1]
        and page.tags.count("img") == 1
    )  # type: ignore[index]
    assert all(address.startswith(("#", "data:image/svg+xml")) for address in page.addresses)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert run("compare", *both, "--fail-on", "vanished=0,accuracy=99%", "-q")[:2] == (3, "")
    assert run("compare", *both, "--fail-on", "vanished=99,sign=99", "-q") == (0, "", "")
    status, out, err = run("compare", both[0], both[0])
    assert status == 0 and "The two audits are identical." in out


@pytest.mark.parametrize(
    "written",
    [
        "",
        "x=1",
        "sign=",
        "sign=1%",
        "accuracy=2",
        "sign=1,sign=2",
        "sign=-1",
        "accuracy=1,accuracy=0",
    ],
)
def test_limits_of_another_form_are_refused(written: str) -> None:
    with pytest.raises(InputError, match="--fail-on"):
        _ = CompareSettings(fail_on=written).limits
    assert CompareSettings(fail_on="sign=2, accuracy=1.5%").limits == {"sign": 2, "accuracy": 0.015}
    assert CompareSettings(fail_on="sign").limits == {"sign": 0}


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_hostile_names_are_inert(tmp_path: Path, run: Run) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e|'=1+1"
    texts = [f"{hostile} good film {i}" if i % 2 else f"bad film {i}" for i in range(40)]
    swapped = [text.replace("good", "onerror") for text in texts]
    labels = [f"{hostile}{i % 2}" for i in range(40)]
    for name, documents in (("a", texts), ("b", swapped)):
        audit((documents, labels), QUICK).save(tmp_path / name, pictures=False)
    status, out, _ = run("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert status == 0 and "\u202e" not in out and "good" in out
    text = Path("tokensieve-compare/report.html").read_text()
    assert "\u202e" not in text and "onerror=alert" not in text.replace("onerror=alert(1)&gt;", "")
    assert "onerror" not in Page(text).tags and Page(text).tags.count("img") == 1


def damage(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("tokens.csv", "token,class,documents", "token,klass,documents", "has no column 'class'"),
        ("tokens.csv", "effect_low", "effect_lo", "has no column 'effect_low'"),
        ("tokens.csv", ",good,", ",evil,", "names a class"),
        ("tokens.csv", "\n", "\nodd,row\n", "tokens.csv"),
        ("tokens.csv", "\n", '\n"', "tokens.csv"),
        ("summary.json", '"test_accuracy": ', '"test_accuracy": 7', "impossible numbers"),
        ("summary.json", '"test_accuracy": ', '"test_accuracy": NaN, "x": ', "summary.json"),
        ("summary.json", '"test_accuracy"', '"test_acc"', "lacks 'test_accuracy'"),
        ("summary.json", '"train": ', '"train": -', "impossible numbers"),
        ("summary.json", '"accuracy_interval": [', f'"accuracy_interval": [{"9" * 400}, 1], "x": '
                                                   '[', "impossible numbers"),
        ("summary.json", "{", "[" * 50_000 + "{", "summary.json"),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_one_line_and_status_2(
    folders: Path, run: Run, tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    shutil.copytree(folders / "after", tmp_path / "bad")
    damage(tmp_path / "bad", name, old, new)
    status, out, err = run("compare", str(folders / "before"), "bad")
    assert (status, out, err.count("\n")) == (2, "", 1) and message in err, err
    assert not Path("tokensieve-compare").exists()


@pytest.mark.parametrize("cell", ["nan", "inf", "-1e300", "1e999", "", "x", "0x10", "9" * 400])
def test_a_cell_that_is_no_number_is_named(folders: Path, tmp_path: Path, cell: str) -> None:
    shutil.copytree(folders / "after", tmp_path / "bad")
    table = pl.read_csv(tmp_path / "bad" / "tokens.csv", infer_schema=False)
    for column in ("effect", "documents"):
        if column == "documents" and cell == "-1e300":
            continue
        odd = table.with_row_index().with_columns(
            pl.when(pl.col("index") == 2).then(pl.lit(cell)).otherwise(column).alias(column)
        )
        odd.drop("index").write_csv(tmp_path / "bad" / "tokens.csv")
        with pytest.raises(InputError, match="row 3 contains an impossible number"):
            SavedAudit.read(tmp_path / "bad")
    pl.concat([table, table[:1]]).write_csv(tmp_path / "bad" / "tokens.csv")
    with pytest.raises(InputError, match="a token twice"):
        SavedAudit.read(tmp_path / "bad")


@pytest.mark.usefixtures("undrawn")
def test_what_is_no_folder_of_an_audit(folders: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "summary.json").symlink_to(folders / "after" / "summary.json")
    (tmp_path / "link" / "tokens.csv").symlink_to("/dev/zero")
    for other, message in (
        ("none", "is not an audit folder"),
        (folders / "aftr", "did you mean '.*after'"),
        (".", "is not an audit folder"),
        ("link", "a link"),
        ("a\0b", "null character"),
    ):
        with pytest.raises(InputError, match=message):
            compare_audits(folders / "before", other)
    texts = [f"text {i % 2} number {i}" for i in range(40)]
    audit((texts, [f"other{i % 2}" for i in range(40)]), QUICK).save(
        tmp_path / "other", pictures=False
    )
    with pytest.raises(InputError, match="share no classes"):
        compare_audits(folders / "before", tmp_path / "other")


@pytest.mark.slow
def test_the_page_holds_both_audits_findings_and_what_stayed(folders: Path, tmp_path: Path) -> None:
    found = compare_audits(folders / "before", folders / "after")
    kept = found.still_predictive()
    carries = [
        set(one.tokens.filter((pl.col("q_value") < 0.05) & (pl.col("class") == "good"))["token"])
        for one in (found.before, found.after)
    ]
    assert (
        set(kept) == carries[0] & carries[1] - set(found.changed()["token"])
        and len(kept) == len(set(kept)) > 1
    )
    one = {
        "kind": "shortcut",
        "severity": 0.2,
        "class": "good",
        "tokens": ["<b>tablet"],
        "documents": 9,
    }
    one["evidence"] = {
        name: {"found": 9, "of": 90, "value": 0.1, "low": 0.05, "high": 0.2}
        for name in ("documents", "decides")
    }
    home = shutil.copytree(folders / "before", tmp_path / "a")
    (home / "SHA256SUMS").unlink()  # the findings are changed by hand
    one |= {"title": "Shortcut", "headline": "“<b>tablet” appears in 10.0% of documents"}
    (home / "findings.json").write_text(
        json.dumps({"findings": [one, {**one, "title": "Leak across the split"}]})
    )
    html = html_page(compare_audits(home, folders / "after").report(), {})
    assert "“&lt;b&gt;tablet” appears in 10.0% of documents" in html and "<b>tablet" not in html
    assert "Leak across the split" in html
    of_kinds = replace(found, before=replace(found.before, findings={"labels": 1}))
    assert (
        "Labels to check" in (page := html_page(of_kinds.report(), {}))
        and "Preferences to check" not in page
    )
    (home / "findings.json").unlink()
    assert compare_audits(home, folders / "after").before.headlines == ()
    for damage in (
        {"kind": 3},
        {"evidence": {"x": {"found": 9, "of": 9}}},
        {"severity": "high"},
        {"tokens": 7},
    ):
        (home / "findings.json").write_text(json.dumps({"findings": [one | damage]}))
        with pytest.raises(InputError, match=r"is damaged: findings\.json"):
            compare_audits(home, folders / "after")
