"""The report of `rank`, as blocks."""

from __future__ import annotations

import shlex

import polars as pl
from scipy.special import expit, ndtri

from tokensieve.escape import HIDDEN, IN_LIST, for_display, option, printable, public_address
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.name_lists import joined_names
from tokensieve.ranking.bradley_terry import Estimate
from tokensieve.ranking.data import People, RankingData
from tokensieve.ranking.repeats import RepeatedAnswer
from tokensieve.ranking.standings import FeatureEffect, ModelStanding, Strength
from tokensieve.ranking.style import STYLE
from tokensieve.report.blocks import (
    Block,
    Column,
    Command,
    Fact,
    Facts,
    Medium,
    Picture,
    Report,
    Section,
    Table,
    Text,
    ValueAndInterval,
)
from tokensieve.wording import percent, plural

PAGE: tuple[Medium, ...] = ("html", "markdown")
MAX_LINES = 40  # of the slope chart; more names do not fit
MAX_ROWS = 40  # of the table of ranks in the terminal
MAX_NAMED = 3  # models in a sentence
NO_MOVE = "With style held fixed, no model changes rank significantly."
NAME = 40  # letters of a model's name
HOW_TO_READ = (
    "A strength is a log-odds: a model with strength 1 wins 73% against the anchor, which has "
    "strength 0. With style held fixed, two answers are compared as if they were of equal length "
    "and had lists, bold and headings alike. A rank in brackets says which ranks the 95% intervals "
    "of all pairs of models leave possible.",
    "Intervals come from the sandwich over prompts, since battles of one prompt are not "
    "independent. Effects are joint: what a feature is worth at equal strength of the models and "
    "with all other features equal. Words and forms were chosen on one half of the prompts and are "
    "measured on the other. Forms are held fixed in the ranks with style; words are not, because "
    "they are content as much as style.",
)


def report_of(data: RankingData) -> Report:
    """The report: repeated answers first, then ranks, features, judges and people."""
    blocks: list[Block] = [Text(_lead(data), "lead"), *_moves_picture(data), _facts(data)]
    blocks += [Text(_repeat_sentence(answer), "bad") for answer in data.repeated[1:MAX_NAMED]]
    if data.has_style:
        sentence = _style_sentence(data)
        if sentence != _verdict(data):
            blocks.append(Text(sentence))
        blocks += _extrapolation(data)
    blocks += _next_command(data)
    blocks.append(_ranks_section(data))
    if data.effects:
        blocks.append(_features_section(data))
    if data.phrases:
        blocks.append(_phrases_section(data))
    if len(data.judges) > 1:
        blocks.append(_judges_section(data))
    if data.people is not None:
        blocks.append(_people_section(data.people))
    if data.notes or data.without_games:
        blocks.append(_notes_section(data))
    explanation = tuple(Text(text) for text in HOW_TO_READ)
    blocks.append(Section("How to read this page", explanation, folded=True, only=PAGE))
    title = f"Ranking of {for_display(data.source, path=True)}"
    return Report("rank", title, _verdict(data), tuple(blocks), _about(data))


def _about(data: RankingData) -> dict[str, object]:
    columns = {name: value for name, value in data.columns.items() if value}
    return {**columns, "seed": data.seed, "version": data.version, "seconds": data.seconds}


def _lead(data: RankingData) -> str:
    battles = plural(data.n_battles, "battle")
    models = plural(len(data.rows), "model")
    lead = f"{battles} of {models}"
    if data.n_prompts is not None:
        lead += f" on {plural(data.n_prompts, 'prompt')}"
    return f"{lead}; {_name(data.anchor)} has strength 0."


def _verdict(data: RankingData) -> str:
    """One sentence with the most important result: a text that answers many prompts, else how style
    changes the ranks."""
    if data.repeated:
        return _repeat_sentence(data.repeated[0])
    if not data.has_style:
        return f"{_name(data.rows[0].model)} is the strongest by results."
    if not data.moved:
        return NO_MOVE
    return f"{_moved_count(data)}: {_moves(data.moved[:1])}."


def _repeat_sentence(answer: RepeatedAnswer) -> str:
    return (
        f"{_name(answer.model)} gives one answer to {answer.n_prompts:,} of "
        f"{plural(answer.n_prompts_of_model, 'prompt')} and wins {answer.wins} with it."
    )


def _moved_count(data: RankingData) -> str:
    ranked = [row for row in data.rows if row.style is not None and row.style.rank is not None]
    n_moved = len(data.moved)
    verb = "changes" if n_moved == 1 else "change"
    models = plural(len(ranked), "model")
    return f"With style held fixed, {n_moved} of {models} {verb} rank significantly"


def _moves(rows: list[ModelStanding]) -> str:
    """A clause on a change of rank, such as "claude moves from 3rd to 7th"."""
    sentences = []
    for row in rows:
        assert row.rank_before is not None and row.style is not None
        assert row.style.rank is not None, "it has moved"
        places = f"{_ordinal(row.rank_before)} to {_ordinal(row.style.rank)}"
        sentences.append(f"{_name(row.model)} moves from {places}")
    return ", ".join(sentences)


def _ordinal(n: int) -> str:
    if 11 <= n % 100 <= 13:
        return f"{n}th"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _name(model: str) -> str:
    return for_display(model, NAME)


def _style_sentence(data: RankingData) -> str:
    """A sentence on how style changes the ranks, and its effect on winning."""
    sentence = NO_MOVE
    if data.moved:
        sentence = f"{_moved_count(data)}: {_moves(data.moved[:MAX_NAMED])}."
    rewarded = rewarded_style(data)
    if not rewarded:
        return sentence
    first, *others = rewarded
    answers = [f"an answer {first.unit} wins {_chance_and_interval(first)}"]
    answers += [f"one {effect.unit} {_chance_and_interval(effect)}" for effect in others]
    return f"{sentence} Between equally strong models, {', '.join(answers)}, all else equal."


def rewarded_style(data: RankingData) -> list[FeatureEffect]:
    """The features of style that significantly win, as `STYLE` lists them.

    All of them are looked at, so each needs a wider interval than its own (Bonferroni): of four
    features without any effect, one would seem to win in one ranking of ten.
    """
    effects = [data.effect(feature.name) for feature in STYLE]
    measured = [effect for effect in effects if effect is not None]
    if not measured:
        return []
    widening = float(ndtri(LEVEL / 2 / len(measured)) / ndtri(LEVEL / 2))
    return [
        effect
        for effect in measured
        if effect.joint.value > widening * (effect.joint.value - effect.joint.low)
    ]


def _chance_and_interval(effect: FeatureEffect) -> str:
    """A probability with its interval, such as "66.1% (95% CI 64.0% to 68.0%)"."""
    chance = percent(float(expit(effect.joint.value)))
    low = percent(float(expit(effect.joint.low)))
    high = percent(float(expit(effect.joint.high)))
    return f"{chance} (95% CI {low} to {high})"


def _extrapolation(data: RankingData) -> list[Text]:
    """A paragraph that names models which cannot be compared at equal length."""
    rows = data.extrapolated
    if not rows:
        return []
    names = ", ".join(_name(row.model) for row in rows[:MAX_NAMED])
    if len(rows) > MAX_NAMED:
        names += f" and {len(rows) - MAX_NAMED} more"
    verb = "has" if len(rows) == 1 else "have"
    return [
        Text(
            f"{names} {verb} no rank at equal style: under a tenth of the battles are between "
            "answers of similar length, so that a strength there would be extrapolated.",
            "warning",
        )
    ]


def _facts(data: RankingData) -> Facts:
    facts = [Fact("Battles", f"{data.n_battles:,}"), Fact("Models", f"{len(data.rows):,}")]
    if data.has_style:
        facts.append(Fact("Moved by style", plural(len(data.moved), "model")))
    length = data.effect("length")
    if length is not None:
        value = percent(float(expit(length.joint.value)))
        facts.append(Fact("Wins of an answer twice as long", value, "all else equal"))
    return Facts(tuple(facts))


def _next_command(data: RankingData) -> list[Command]:
    """The weights under which style no longer wins, if it does."""
    rewarded = [effect.feature for effect in rewarded_style(data)]
    if not rewarded:
        return []
    sources = [public_address(address, HIDDEN) for address in data.addresses] or ["SOURCE"]
    words = ["tokensieve balance", *(shlex.quote(printable(source)) for source in sources)]
    for name in ("pairs", "winner", "scores", "ranks", "by"):
        value = data.columns.get(name)
        if value:
            columns = value if isinstance(value, str) else joined_names(value)
            words.append(option(f"--{name}", columns))
    if "length" in rewarded:
        words.append("--length")
    for feature in STYLE:
        if feature.name in rewarded:
            words += [option("--token", form) for form in feature.forms]
    purpose = f"Weights under which style ({', '.join(rewarded)}) no longer wins more often:"
    return [Command(" ".join(words), purpose)]


def _moves_picture(data: RankingData) -> list[Picture]:
    """Ranks before and after, as a slope chart."""
    rows = [row for row in data.rows if row.style is not None and row.style.rank is not None]
    n_ranked = len(rows)
    rows = rows[:MAX_LINES]
    if len(rows) < 2 or not data.has_style:
        return []
    changes = pl.DataFrame(
        {
            "token": [row.model for row in rows],
            "before": [row.rank_before for row in rows],
            "after": [row.style.rank for row in rows if row.style is not None],
            "kind": [_direction(row) for row in rows],
        }
    )
    picture = {
        "changes": changes,
        "names": ("by results", "style held fixed"),
        "axis": "rank",
        "reversed": True,
    }
    title = "Ranks by results, and with style held fixed"
    description = f"{title}. {_moved_count(data)}."
    caption = ""
    if n_ranked > MAX_LINES:
        caption = f"The first {MAX_LINES} of {plural(n_ranked, 'model')}; the table has all."
    return [Picture("rank-moves", "audit-slopes", picture, title, caption, description)]


def _direction(row: ModelStanding) -> str:
    if not row.has_moved:
        return "no significant change"
    return "moves up" if row.move > 0 else "moves down"


def _ranks_section(data: RankingData) -> Section:
    columns = [
        Column("Model"),
        Column("Games", "count"),
        Column("Wins", "percent"),
        Column("Rank"),
        Column("Strength", "interval", extra=data.has_style),
    ]
    if data.has_style:
        columns += [Column("Style fixed"), Column("Strength, style fixed", "interval", extra=True)]
    rows = []
    for row in data.rows:
        cells: list[object] = [for_display(row.model), row.games, row.win_rate]
        cells += [_rank(row.raw, row), _interval(row.raw)]
        if data.has_style:
            cells += [_rank(row.style, row), _interval(row.style)]
        rows.append(tuple(cells))
    table = Table("", tuple(columns), rows, n_shown=MAX_ROWS, searchable=True)
    return Section("Ranks", (table,), anchor="ranks")


def _rank(strength: Strength | None, row: ModelStanding) -> str:
    """A rank with its interval, such as "3 (2 to 5)", or why there is none."""
    if not row.is_connected:
        return "not connected"
    if strength is None or strength.rank is None:
        return "extrapolated"
    if strength.best_rank == strength.worst_rank:
        return f"{strength.rank}"
    return f"{strength.rank} ({strength.best_rank} to {strength.worst_rank})"


def _interval(strength: Strength | None) -> ValueAndInterval | None:
    if strength is None:
        return None
    return _cells(strength.estimate)


def _cells(estimate: Estimate) -> ValueAndInterval:
    return ValueAndInterval(estimate.value, estimate.low, estimate.high)


def _features_section(data: RankingData) -> Section:
    columns = (
        Column("Feature", "token"),
        Column("An answer"),
        Column("Wins", "rate", unit="all else equal"),
        Column("Joint effect", "interval", unit="log-odds", bar=True, extra=False),
        Column("Effect alone", "interval", unit="log-odds", extra=True),
        Column("In the ranks", extra=True),
    )
    rows = []
    for effect in data.effects:
        chances = tuple(float(expit(x)) for x in _cells(effect.joint))
        use = "held fixed" if effect.is_controlled else "not held fixed"
        rows.append(
            (effect.feature, effect.unit, chances, _cells(effect.joint), _cells(effect.alone), use)
        )
    note = ""
    n_found = sum(effect.is_found for effect in data.effects)
    if data.n_candidates:
        note = (
            f"Of {data.n_candidates:,} words and forms tried on one half of the prompts, "
            f"{n_found or 'none'} had an effect beside these on the other half, too."
        )
    table = Table("", columns, rows, note, n_shown=20)
    return Section("What is rewarded", (*_features_picture(data), table), anchor="features")


def _features_picture(data: RankingData) -> list[Picture]:
    rows = [
        {
            "rank": rank,
            "text": for_display(effect.feature, IN_LIST),
            "x": effect.joint.value,
            "low": effect.joint.low,
            "high": effect.joint.high,
            "kind": "held fixed" if effect.is_controlled else "not held fixed",
        }
        for rank, effect in enumerate(data.effects)
    ]
    title = "What each feature is worth, all else equal"
    picture = {"features": rows}
    return [Picture("rank-features", "rank-features", picture, title, "", f"{title}.")]


def _phrases_section(data: RankingData) -> Section:
    """Phrases by which an answer can be told to be of one model."""
    columns = (
        Column("Model", "token"),
        Column("Phrase", "token"),
        Column("Of its answers", "percent"),
        Column("Of the others'", "percent"),
        Column("Wins with it", "rate"),
        Column("Wins without it", "rate"),
    )
    rows = [
        (
            found.model,
            found.phrase,
            found.of_model.value,
            found.of_others,
            _rate(found.wins_with),
            _rate(found.wins_without),
        )
        for found in data.phrases
    ]
    note = (
        "Two to four words at the beginning of answers, at least four times as frequent in the "
        "answers of this model as in those of the others. A judge can tell by them whose an "
        "answer is."
    )
    table = Table("", columns, rows, note, n_shown=10)
    return Section("Phrases of single models", (table,), anchor="phrases", only=PAGE)


def _rate(share: Share) -> ValueAndInterval:
    return ValueAndInterval(share.value, share.low, share.high)


def _judges_section(data: RankingData) -> Section:
    columns = (Column("Judge", "token"), Column("Judge", "token"), Column("Agree", "rate"))
    rows = [
        (
            agreement.first,
            agreement.second,
            (agreement.agreement.value, agreement.agreement.low, agreement.agreement.high),
        )
        for agreement in data.agreements
    ]
    if not rows:
        return Section("Judges", (Text("No two judges judged the same battles."),))
    note = "Over the battles that both judged; a tie counts as half."
    return Section("Judges", (Table("", columns, rows, note),), anchor="judges")


def _people_section(people: People) -> Section:
    """Agreement, corrected win rates, and what the judge rewards that people do not."""
    agreement = Text(f"The judge prefers the answer that people prefer in {people.agreement}.")
    rate = (
        Column("Model", "token"),
        Column("Labelled battles", "count"),
        Column("Wins by the judge", "percent"),
        Column("Wins by people alone", "rate"),
        Column("Corrected", "rate"),
    )
    rates = [
        (row.model, row.n_labelled, row.judge, _cells(row.people), _cells(row.corrected))
        for row in people.win_rates
    ]
    effect = (
        Column("Feature", "token"),
        Column("Worth to the judge", "signed", unit="log-odds"),
        Column("Worth to people", "signed", unit="log-odds"),
        Column("Difference", "interval"),
    )
    effects = [
        (row.feature, row.judge, row.people, _cells(row.difference)) for row in people.differences
    ]
    tables = (
        Table("Win rates according to people", rate, rates, n_shown=MAX_ROWS),
        Table("What the judge rewards and people do not", effect, effects),
    )
    return Section("Judge and people", (agreement, *tables), anchor="people")


def _notes_section(data: RankingData) -> Section:
    texts = [Text(f"{note[0].upper()}{note[1:]}.", "note") for note in data.notes]
    if data.without_games:
        names = ", ".join(_name(name) for name in data.without_games[:20])
        texts.append(Text(f"Models without usable battles: {names}.", "note"))
    apart = [row.model for row in data.rows if not row.is_connected]
    if apart:
        names = ", ".join(_name(name) for name in apart[:20])
        texts.append(Text(f"No battle connects these models with the others: {names}.", "warning"))
    return Section("Notes", tuple(texts))
