"""From a source to standings: what is read, held fixed, found, flagged and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from arenas import LENGTH_EFFECT, OPTIONS, arena, battles_of

from calls import Run
from tokensieve.errors import InputError
from tokensieve.ranking.battles import read_battles
from tokensieve.ranking.judges import (
    agreements,
    family,
    powered_mean,
    self_preference_differences,
)
from tokensieve.ranking.run import rank
from tokensieve.ranking.settings import RankSettings
from tokensieve.ranking.standings import features_table, ranks_table
from tokensieve.ranking.style import STYLE, style_quantities
from tokensieve.report.blocks import Table, walk


def outcome(values: list[Any], **options: Any) -> list[float]:
    """What a winner column with these values says of battles."""
    n = len(values)
    frame = pl.DataFrame(
        {
            "answer_a": [f"text {i}" for i in range(n)],
            "answer_b": ["other"] * n,
            "model_a": ["gpt"] * n,
            "model_b": ["claude"] * n,
            "winner": values,
        },
        strict=False,
    )
    return read_battles(frame, RankSettings(**(OPTIONS | {"by": ()} | options))).outcome.tolist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "b", "tie"], [1, 0, 0.5]),
        (["model_a", "model_b", "tie (bothbad)"], [1, 0, 0.5]),
        (["gpt", "claude", "tie"], [1, 0, 0.5]),
        ([1, 2, 1], [1, 0, 1]),
        ([0, 1, 0], [1, 0, 1]),
        ([1.0, 2.0, 1.5, 1.25], [1, 0, 0.5, 0.75]),
        ([-3, 3, 0, 1], [1, 0, 0.5, 1 / 3]),
    ],
)
def test_winners_become_fractions_of_a_win(values: list[Any], expected: list[float]) -> None:
    assert outcome(values) == pytest.approx(expected)


def test_chances_need_a_name_that_says_whose_they_are() -> None:
    with pytest.raises(InputError, match="unclear for which answer"):
        outcome([0.1, 0.9, 0.4, 0.6])
    with pytest.raises(InputError, match="middle is unclear"):
        outcome([0, 10, 50, 100])


def test_rows_that_cannot_be_used_are_counted() -> None:
    frame = pl.DataFrame(
        {
            "answer_a": ["x", "y", None, "z", "x"],
            "answer_b": ["y", "x", "x", "x", "z"],
            "model_a": ["m", "m", "m", "m", None],
            "model_b": ["n", "m", "n", "n", "o"],
            "winner": ["a", "b", "a", None, "b"],
        }
    )
    battles = read_battles(frame, RankSettings(**(OPTIONS | {"by": ()})))
    assert battles.n == 1 and battles.models == ("m", "n")
    assert battles.without_games == ("o",)
    assert "\n".join(battles.notes).count("left out") == 4


def test_true_strengths_are_found_and_length_is_held_fixed() -> None:
    made = arena(n_prompts=400, seed=1)
    ranking = rank(made.frame, **OPTIONS, discover=False)
    by_name = {row.model: row for row in ranking.rows}
    anchor = made.strengths[ranking.anchor]
    for name, strength in made.strengths.items():
        style = by_name[name].style
        assert style is not None
        # intervals are right in 95 % of draws; this draw is within one and a half of their widths
        width = style.estimate.high - style.estimate.low
        assert abs(style.estimate.value - (strength - anchor)) <= 0.75 * width
    length = ranking.effect("length")
    assert length is not None and length.joint.low < LENGTH_EFFECT < length.joint.high
    style_error = abs(by_name["m4"].style.estimate.value - by_name["m0"].style.estimate.value + 2)
    raw_error = abs(by_name["m4"].raw.estimate.value - by_name["m0"].raw.estimate.value + 2)
    assert style_error < raw_error, "the longest answers are the weakest model's"


def test_the_first_place_is_an_effect_where_it_can_be_told() -> None:
    ranking = rank(arena(n_prompts=300, position=0.7, seed=2).frame, **OPTIONS, discover=False)
    place = ranking.effect("first place")
    assert place is not None and place.joint.low < 0.7 < place.joint.high


def test_columns_of_chosen_and_rejected_have_no_first_place() -> None:
    frame = arena(n_prompts=100, seed=8).frame
    a_wins = pl.col("winner") == "a"
    sides = {
        f"{name}_{side}": pl.when(a_wins == (side == "chosen"))
        .then(f"{name}_a")
        .otherwise(f"{name}_b")
        for name in ("answer", "model")
        for side in ("chosen", "rejected")
    }
    options = {
        "pairs": ("answer_chosen", "answer_rejected"),
        "models": ("model_chosen", "model_rejected"),
        "by": ("prompt",),
    }
    ordered = rank(frame.with_columns(**sides), **options, discover=False)
    assert ordered.effect("first place") is None
    plain = rank(frame, **OPTIONS, discover=False)
    for one, other in zip(ordered.rows, plain.rows, strict=True):
        assert one.model == other.model
        assert one.raw.estimate.value == pytest.approx(other.raw.estimate.value, abs=0.1)


def with_word(seed: int, odds: float) -> pl.DataFrame:
    """An arena in which half of the answers begin with "Certainly!", which wins more often."""
    frame = arena(n_prompts=300, battles_per_prompt=8, length_effect=0.0, seed=seed).frame
    rng = np.random.default_rng(seed)
    first = rng.random(frame.height) < 0.5
    second = rng.random(frame.height) < 0.5
    f = odds * (first.astype(float) - second)
    wins = rng.random(frame.height) < 1 / (1 + np.exp(-f))
    return frame.with_columns(
        answer_a=pl.when(pl.Series(first)).then("Certainly! " + pl.col("answer_a")).otherwise("answer_a"),
        answer_b=pl.when(pl.Series(second)).then("Certainly! " + pl.col("answer_b")).otherwise("answer_b"),
        winner=pl.when(pl.Series(wins)).then(pl.lit("a")).otherwise(pl.lit("b")),
    )  # fmt: skip


def test_a_rewarded_word_is_found_and_measured_on_the_other_half() -> None:
    ranking = rank(with_word(seed=4, odds=1.0), **OPTIONS)
    found = {effect.feature: effect for effect in ranking.effects if effect.is_found}
    assert any("certainly" in name.lower() or "!" in name for name in found)
    for effect in found.values():
        assert effect.joint.low > 0


def test_nothing_is_found_where_nothing_is_rewarded() -> None:
    ranking = rank(with_word(seed=5, odds=0.0), **OPTIONS)
    assert ranking.n_candidates > 0
    assert not [effect for effect in ranking.effects if effect.is_found]


def test_one_answer_to_all_prompts_is_named_first() -> None:
    frame = arena(n_prompts=60, seed=6).frame
    always = pl.lit("The same answer for every prompt.")
    frame = frame.with_columns(
        answer_a=pl.when(pl.col("model_a") == "m2").then(always).otherwise("answer_a"),
        answer_b=pl.when(pl.col("model_b") == "m2").then(always).otherwise("answer_b"),
    )
    ranking = rank(frame, **OPTIONS, discover=False)
    [repeated] = ranking.repeated
    assert repeated.model == "m2" and repeated.n_prompts == repeated.n_prompts_of_model
    assert ranking.report().verdict.startswith("m2 gives one answer")


def test_a_model_of_tiny_answers_has_no_rank_at_equal_length() -> None:
    frame = arena(n_prompts=120, seed=7).frame
    short = pl.col("answer_a").str.slice(0, 3)
    frame = frame.with_columns(
        answer_a=pl.when(pl.col("model_a") == "m1").then(short).otherwise("answer_a"),
        answer_b=pl.when(pl.col("model_b") == "m1")
        .then(pl.col("answer_b").str.slice(0, 3))
        .otherwise("answer_b"),
    )
    ranking = rank(frame, **OPTIONS, discover=False)
    assert [row.model for row in ranking.extrapolated] == ["m1"]
    table = ranks_table(ranking.rows)
    row = table.filter(model="m1").row(0, named=True)
    assert row["raw_rank"] is not None and row["style_rank"] is None
    others = table.filter(pl.col("model") != "m1")["style_rank"].to_list()
    assert sorted(others) == [1, 2, 3, 4]


def test_tables_have_the_columns_that_are_documented() -> None:
    ranking = rank(arena(n_prompts=50).frame, **OPTIONS, discover=False)
    assert (
        ranks_table(ranking.rows).columns
        == (
            "model games raw_strength raw_low raw_high raw_rank "
            "style_strength style_low style_high style_rank"
        ).split()
    )
    assert (
        features_table(ranking.effects).columns
        == ("feature effect low high joint_effect joint_low joint_high").split()
    )
    [ranks] = [b for b in walk(ranking.report().blocks) if isinstance(b, Table) and b.searchable]
    assert len(ranks.rows) == 5
    json.dumps(ranking.to_dict(), allow_nan=False)


def test_style_is_counted_in_markdown() -> None:
    texts = pl.Series(
        ["plain", "- one\n* two\n  3. three", "**bold** and __bold__", "# head\n\n### head\n#tag"]
    )
    names = [feature.name for feature in STYLE]
    quantities = style_quantities(texts)
    assert names == ["length", "lists", "bold", "headings"]
    assert quantities[:, 0].tolist() == texts.str.len_chars().to_list()
    assert quantities[:, 1].tolist() == [0, 3, 0, 0]
    assert quantities[:, 2].tolist() == [0, 0, 2, 0]
    assert quantities[:, 3].tolist() == [0, 0, 0, 2]


# ---- judges and people


def test_agreement_of_judges_counts_shared_battles_whatever_the_order() -> None:
    frame = pl.DataFrame(
        {
            "prompt": [f"p{i // 2}" for i in range(24)],
            "answer_a": ["x", "y"] * 12,
            "answer_b": ["y", "x"] * 12,
            "model_a": ["m", "n"] * 12,
            "model_b": ["n", "m"] * 12,
            "judge": ["one", "two"] * 12,
            "winner": ["a", "b"] * 11 + ["a", "a"],
        }
    )
    battles = read_battles(frame, RankSettings(**(OPTIONS | {"by": ("prompt", "judge")})))
    assert battles.judges == ("one", "two")
    [found] = agreements(battles)
    assert found.agreement.value == pytest.approx(11 / 12)


def test_a_judges_own_family_is_an_effect_with_several_judges() -> None:
    assert family("openai/GPT-4o-mini") == family("gpt_3") == "gpt"
    frame = arena(n_prompts=100).frame.with_columns(
        pl.col("model_a", "model_b").str.replace("m0", "gpt-4"),
        judge=pl.Series(["gpt-4o", "claude"] * 300),
    )
    battles = read_battles(frame, RankSettings(**OPTIONS, judge="judge"))
    differences = self_preference_differences(battles)
    assert differences is not None
    is_own = battles.judge == battles.judges.index("gpt-4o")
    assert np.all(differences[~is_own] == 0) and differences[is_own].any()
    ranking = rank(frame, **OPTIONS, judge="judge", discover=False)
    own_family = ranking.effect("judge's own family")
    assert own_family is not None and own_family.joint.low < 0 < own_family.joint.high


def test_powered_means_are_unbiased_and_shorter_where_the_judge_agrees() -> None:
    rng = np.random.default_rng(0)
    shorter = covered = 0
    n_draws = 200
    for _ in range(n_draws):
        human = (rng.random(600) < 0.4).astype(float)
        judge = np.where(rng.random(600) < 0.85, human, 1.0)  # biased upwards
        asked = np.where(np.arange(600) < 120, human, np.nan)
        powered = powered_mean(judge, asked, np.arange(600))
        alone = powered_mean(judge, asked, np.arange(600), power=0.0)
        shorter += powered.high - powered.low < alone.high - alone.low
        covered += powered.low <= 0.4 <= powered.high
    assert shorter > 0.95 * n_draws
    assert 0.9 < covered / n_draws < 0.99


def test_with_people_everywhere_the_corrected_rate_is_theirs() -> None:
    human = np.array([1.0, 0.0, 1.0, 1.0])
    found = powered_mean(np.array([0.0, 0.0, 1.0, 1.0]), human, np.arange(4))
    assert found.value == pytest.approx(0.75)


# ---- the command


def test_the_command_writes_tables_page_and_summary(run: Run, tmp_path: Path) -> None:
    arena(n_prompts=60).frame.write_csv("arena.csv")
    options = "--pairs answer_a,answer_b --models model_a,model_b --winner winner --by prompt"
    status, out, err = run("rank", "arena.csv", *options.split(), "--out", "o", "--no-pictures")
    assert (status, err) == (0, "")
    assert "Ranks" in out and "m0" in out
    names = {path.name for path in (tmp_path / "o").iterdir()}
    assert {"ranks.csv", "features.csv", "summary.json", "report.html"} <= names
    summary = json.loads((tmp_path / "o/summary.json").read_text())
    assert summary["battles"] == 360 and len(summary["models"]) == 5
    before = (tmp_path / "o/ranks.csv").read_bytes()
    run("rank", "arena.csv", *options.split(), "--out", "again", "--quiet", "--no-pictures")
    assert (tmp_path / "again/ranks.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--models model_a,model_b", "--pairs must name two different columns"),
        ("--pairs answer_a,answer_b --models model_a", "--models must name two"),
        ("--pairs answer_a,answer_x --models model_a,model_b", "answer_x"),
        (
            "--pairs answer_a,answer_b --models model_a,model_b --winner prompt",
            "names neither answer nor a tie",
        ),
        (
            "--pairs answer_a,answer_b --models model_a,model_b --winner winner --weight winner",
            "a weight is a number",
        ),
    ],
)
def test_bad_input_is_one_line(run: Run, options: str, message: str) -> None:
    arena(n_prompts=20).frame.write_csv("arena.csv")
    status, out, err = run("rank", "arena.csv", *options.split())
    assert (status, out) == (2, "") and message in err and len(err.splitlines()) == 1


def test_one_model_is_no_arena() -> None:
    battles = battles_of([0, 0], [1, 1], [1.0, 0.0])
    assert battles.games().tolist() == [2, 2]
    frame = pl.DataFrame(
        {"answer_a": ["x"], "answer_b": ["y"], "model_a": ["m"], "model_b": ["m"], "winner": ["a"]}
    )
    with pytest.raises(InputError, match="no row has two models"):
        rank(frame, **(OPTIONS | {"by": ()}))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 8, 4, 5], [1, 0, 4 / 7, 3 / 7]),
        ([1, 5, 3, 4], [1, 0, 0.5, 0.25]),
        (["A is slightly better", "b", "about the same"], [1, 0, 0.5]),
        (["A", "B", "Both are bad"], [1, 0, 0.5]),
        ([">>", "<", "="], [1, 0, 0.5]),
    ],
)
def test_scales_and_words_of_known_middle_become_fractions(
    values: list[Any], expected: list[float]
) -> None:
    assert outcome(values) == pytest.approx(expected)


def battles_frame(**columns: list[Any]) -> pl.DataFrame:
    n = len(next(iter(columns.values())))
    texts = {"answer_a": [f"text {i}" for i in range(n)], "answer_b": ["other"] * n}
    models = {"model_a": ["gpt"] * n, "model_b": ["claude"] * n}
    return pl.DataFrame(texts | models | columns)


def settings_of(**options: Any) -> RankSettings:
    names = {"pairs": ("answer_a", "answer_b"), "models": ("model_a", "model_b")}
    return RankSettings(**(names | options))


def test_a_column_of_ties_beside_the_wins_of_one_model_is_read() -> None:
    frame = battles_frame(winner_model_a=[1, 0, 0], winner_model_b=[0, 1, 0], winner_tie=[0, 0, 1])
    battles = read_battles(frame, settings_of(winner="winner_model_a"))
    assert battles.outcome.tolist() == [1.0, 0.0, 0.5]


def test_of_ranks_the_lower_one_wins() -> None:
    frame = battles_frame(rank_a=[1, 2, 3], rank_b=[2, 1, 3])
    battles = read_battles(frame, settings_of(ranks=("rank_a", "rank_b")))
    assert battles.outcome.tolist() == [1.0, 0.0, 0.5]


def test_a_winner_that_is_not_named_is_not_overlooked() -> None:
    frame = battles_frame(winner=["model_a", "model_b", "tie"])
    with pytest.raises(InputError, match="--winner winner"):
        read_battles(frame, settings_of())


def test_a_winner_that_contradicts_the_scores_is_said() -> None:
    frame = battles_frame(winner=["a", "b"], score_a=[1, 9], score_b=[9, 1])
    battles = read_battles(frame, settings_of(winner="winner"))
    assert any("--scores score_a,score_b" in note for note in battles.notes)
