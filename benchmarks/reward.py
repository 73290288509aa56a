"""What does a reward model prefer after training on balanced pairs, and what after raw ones?

    python benchmarks/reward.py

A Bradley–Terry reward model r is a logistic regression without an intercept on the differences of
two answers' features: P(chosen beats rejected) = σ(r(chosen) − r(rejected)). Features are TF-IDF of
the words, log length, and the formatting that an audit counts. It is trained on the training pairs
of preferences.parquet as they are, and with the weights of the command in docs/tutorials/repair.md;
the penalty is chosen on a tenth of the training prompts, by the loss of the pairs as they are, and
once more for the weighted ones by their weighted loss.

Both are asked about the test pairs (other prompts): how often the longer answer, or the one with
bold type, gets the higher reward, how often they are right overall and where the judge chose the
shorter answer or the one without bold type, and how often the reward of an answer falls when the
asterisks of its bold type are removed. Intervals are over prompts; those of a change are paired.

Figures go to benchmarks/results/reward.json.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from machine import DATA, described, store
from tokensieve import read_corpus
from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.auditing.balance_features import row_features
from tokensieve.auditing.balancing import balance
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import CountedTexts, count_texts

BOLD = "⟨**bold**⟩"
# those that the audit of the tutorial names in its command
TOKENS = [BOLD, "⟨bullet list⟩", "⟨(parentheses)⟩", "⟨3+ spaces⟩", "⟨— dash⟩", "⟨2 spaces⟩"]
STRENGTHS = (0.001, 0.01, 0.1, 1.0)  # C of the logistic regression, to choose from
MIN_ANSWERS = 5  # that a word needs
FRACTION_HELD_OUT = 0.1  # of the training prompts, to choose C


@dataclass(frozen=True)
class Features:
    """The features of an answer, learned from the training answers."""

    words: TfidfVectorizer
    formatting: CountedTexts

    @classmethod
    def of(cls, answers: pl.Series) -> Features:
        words = TfidfVectorizer(sublinear_tf=True, min_df=MIN_ANSWERS)
        words.fit(answers.to_list())
        formatting = count_texts(answers, min_documents=MIN_ANSWERS, formatting=True)
        return cls(words, formatting)

    def matrix(self, answers: pl.Series) -> sp.csr_array:
        """Shape (n, features): words, presence of formatting, log of the characters."""
        counted = count_texts(answers, self.formatting.vocabulary)
        presence = counted.matrix[:, self.formatting.vocabulary.n_words :].astype(bool)
        log_length = np.log(answers.str.len_chars().to_numpy())[:, None]
        parts = [self.words.transform(answers.to_list()), presence.astype(float), log_length]
        return sp.csr_array(sp.hstack(parts))

    def differences(self, pairs: pl.DataFrame) -> sp.csr_array:
        """Features of the chosen answer minus those of the rejected one."""
        return self.matrix(pairs["chosen"]) - self.matrix(pairs["rejected"])


def weights_of(path: str) -> Floats:
    """The weights that `tokensieve balance` writes for the training pairs, in their order."""
    corpus = read_corpus(path, pairs=("chosen", "rejected"), split="split")
    data = row_features(corpus, TOKENS, with_length=True, tokenizer=WordTokenizer())
    return balance(data.features, data.labels).weights


def reward_model(differences: sp.csr_array, weights: Floats, strength: float) -> LogisticRegression:
    """Trained on the differences in both directions; `strength` is C."""
    x = sp.vstack([differences, -differences])
    y = np.repeat([1, 0], differences.shape[0])
    model = LogisticRegression(C=strength, fit_intercept=False, solver="liblinear")
    return model.fit(x, y, sample_weight=np.tile(weights, 2))


def best_strength(differences: sp.csr_array, weights: Floats, prompts: Ints) -> float:
    """The C with the smallest weighted loss on held-out prompts."""
    rng = np.random.default_rng(0)
    is_held_out = np.isin(
        prompts, np.flatnonzero(rng.random(prompts.max() + 1) < FRACTION_HELD_OUT)
    )

    def loss(strength: float) -> float:
        model = reward_model(differences[~is_held_out], weights[~is_held_out], strength)
        p = model.predict_proba(differences[is_held_out])
        truth = np.ones(is_held_out.sum())
        return float(log_loss(truth, p, sample_weight=weights[is_held_out], labels=[0, 1]))

    return min(STRENGTHS, key=loss)


def main() -> None:
    path = DATA / "preferences.parquet"
    pairs = pl.read_parquet(path).with_columns(
        number=pl.col("prompt").rank("dense").cast(pl.Int64) - 1
    )
    parts = pairs.partition_by("split", as_dict=True)
    train, test = parts["train",], parts["test",]
    features = Features.of(pl.concat([train["chosen"], train["rejected"]]))
    weights = weights_of(str(path))
    assert len(weights) == train.height
    store("reward", compared(train, test, features, weights), described("scipy", "scikit-learn"))


def compared(
    train: pl.DataFrame, test: pl.DataFrame, features: Features, weights: Floats
) -> dict[str, object]:
    """What models of the raw and of the weighted pairs prefer, with one penalty and with two."""
    differences = features.differences(train)
    prompts = train["number"].to_numpy()
    ones = np.ones(train.height)
    strength_of_raw = best_strength(differences, ones, prompts)
    raw = reward_model(differences, ones, strength_of_raw)
    variants = {
        "same penalty": strength_of_raw,
        "own penalty": best_strength(differences, weights, prompts),
    }
    figures: dict[str, object] = {}
    for name, strength in variants.items():
        balanced = reward_model(differences, weights, strength)
        answers = answers_about(test, features, [raw, balanced])
        print(f"\n{name}: C {strength_of_raw:g} and {strength:g}\n")
        show(answers)
        figures[name] = {
            "c": [strength_of_raw, strength],
            "test": [asdict(answer) for answer in answers],
        }
    return figures


@dataclass(frozen=True)
class Answer:
    """How often both models do something, among some test pairs or answers."""

    question: str
    n: int
    by_judge: Share | None
    raw: Share
    balanced: Share
    change: PairedDifference
    mean_falls: tuple[float, float] | None = None  # of the reward, in log-odds: raw, balanced


def show(answers: list[Answer]) -> None:
    """Print the table of the documentation."""
    print("| the reward model | pairs | the judge | raw | balanced | change in points |")
    print("|---|---|---|---|---|---|")
    for answer in answers:
        judge = "" if answer.by_judge is None else f"{answer.by_judge.value:.1%}"
        change = answer.change
        print(
            f"| {answer.question} | {answer.n:,} | {judge} | {answer.raw.value:.1%} | "
            f"{answer.balanced.value:.1%} | {100 * change.change:+.1f} "
            f"({100 * change.low:+.1f} to {100 * change.high:+.1f}) |"
        )


def answers_about(
    test: pl.DataFrame, features: Features, models: list[LogisticRegression]
) -> list[Answer]:
    """What both models prefer among the test pairs."""
    differences = features.differences(test)
    prefers_chosen = [(model.decision_function(differences) > 0) for model in models]
    prompts = test["number"].to_numpy()
    longer = _sign(test, pl.col("chosen").str.len_chars(), pl.col("rejected").str.len_chars())
    has_bold = [_has_bold(test[side], features) for side in ("chosen", "rejected")]
    bolder = has_bold[0].astype(int) - has_bold[1].astype(int)

    def asked(question: str, among: Bools, wanted: Ints, has_judge: bool = True) -> Answer:
        """Among some pairs, whether the preferred answer is the wanted side: 1 chosen, −1 other."""
        agrees = [(np.where(p, 1, -1) == wanted)[among].astype(float) for p in prefers_chosen]
        judge = Share.over((wanted == 1)[among].astype(float), prompts[among])
        return Answer(
            question,
            int(among.sum()),
            judge if has_judge else None,
            *(Share.over(agree, prompts[among]) for agree in agrees),
            PairedDifference.of(*agrees, prompts[among]),
        )

    chosen = np.ones(test.height, dtype=int)
    return [
        asked("prefers the longer answer", longer != 0, longer),
        asked("prefers the answer with bold type", bolder != 0, bolder),
        asked("is right", chosen > 0, chosen, has_judge=False),
        asked("is right where the shorter answer was chosen", longer < 0, chosen, False),
        asked("is right where the answer without bold was chosen", bolder < 0, chosen, False),
        _without_asterisks(test, features, models),
    ]


def _sign(test: pl.DataFrame, first: pl.Expr, second: pl.Expr) -> Ints:
    difference = test.select(first.cast(pl.Int64) - second.cast(pl.Int64)).to_series()
    return np.sign(difference.to_numpy()).astype(int)


def _has_bold(answers: pl.Series, features: Features) -> Bools:
    vocabulary = features.formatting.vocabulary
    counted = count_texts(answers, vocabulary)
    place = [str(token) for token in vocabulary.tokens].index(BOLD)
    return np.asarray(counted.matrix[:, [place]].todense()).reshape(-1) > 0


def _without_asterisks(
    test: pl.DataFrame, features: Features, models: list[LogisticRegression]
) -> Answer:
    """How often the reward of an answer falls when its bold type becomes plain."""
    sides = [test.select("number", answer=side) for side in ("chosen", "rejected")]
    both = pl.concat(sides).unique(maintain_order=True)
    both = both.filter(pl.Series(_has_bold(both["answer"], features)))
    plain = both["answer"].str.replace_all("**", "", literal=True)
    falls = []
    mean_falls = []
    for model in models:
        before = model.decision_function(features.matrix(both["answer"]))
        after = model.decision_function(features.matrix(plain))
        falls.append((after < before).astype(float))
        mean_falls.append(float((before - after).mean()))
    prompts = both["number"].to_numpy()
    return Answer(
        "lowers the reward if bold type is removed",
        both.height,
        None,
        *(Share.over(fall, prompts) for fall in falls),
        PairedDifference.of(*falls, prompts),
        (mean_falls[0], mean_falls[1]),
    )


if __name__ == "__main__":
    main()
