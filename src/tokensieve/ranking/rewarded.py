"""Words and forms that are rewarded beside the models and the style: found on half of the prompts.

Candidates are words and formatting (`tokensieve.text.formatting`) that one of two answers has. On
the selection half, the one with the strongest score test joins the model until none is strong
enough; the other half measures what was found. Nothing is measured on the prompts that chose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.ranking.battles import Battles
from tokensieve.ranking.bradley_terry import Components, Fit, fit, model_columns
from tokensieve.ranking.style import STYLE
from tokensieve.text.formatting import Formatting, is_formatting
from tokensieve.text.vocabulary import Vocabulary, count_texts

MAX_FOUND = 8  # more than a table that people read can hold
# Score tests are two-sided normal ones; 4.5 is 7·10⁻⁶, so that of some thousand candidates without
# any effect fewer than one in thirty searches finds one. Few survive the other half by chance.
MIN_SCORE = 4.5
MIN_BATTLES = 50  # in which a candidate is in one answer only; fewer measure no effect
MIN_PROMPTS = 40  # in each half; fewer give no sandwich that can be trusted
MAX_BATTLES = (
    10_000  # of each half, drawn if there are more: enough to see what decides 1 % of them
)
# of a candidate's own spread: below it, it is what the model's columns already say, up to rounding
MIN_SPREAD = 1e-4
MIN_TEXTS = 20  # that contain a candidate
# forms that the style features measure already
STYLE_FORMS = ("⟨length", *(form for feature in STYLE for form in feature.forms))


@dataclass(frozen=True, eq=False)
class Found:
    """Words and forms that were chosen on the selection half.

    Attributes:
        names: such as "sorry" or "⟨emoji⟩".
        differences: +1 where only the first answer has it, −1 where only the second, shape (n, F);
            0 in battles of neither half's sample.
        report_rows: the battles of the other half, which measure the effects.
        n_candidates: how many were tried.
    """

    names: tuple[str, ...]
    differences: Floats
    report_rows: Ints
    n_candidates: int

    @property
    def is_form(self) -> list[bool]:
        """Whether each is formatting, which is style, rather than a word, which is content."""
        return [is_formatting(name) for name in self.names]


@dataclass(frozen=True, eq=False)
class _Halves:
    """Battles that choose, and battles that measure."""

    selection: Ints
    report: Ints


def find_rewarded(
    battles: Battles, style: Floats, components: Components, seed: int
) -> Found | None:
    """Look for words and forms with an effect beside the models and the style.

    None if there are too few prompts to do it on half of them, or no word is in enough answers.
    """
    halves = _halves(battles, seed)
    if halves is None:
        return None
    try:
        candidates = _candidates(battles, halves.selection)
    except InputError:  # no word is in enough answers
        return None
    on_selection = sp.csr_array(candidates.differences[halves.selection])
    chosen: list[int] = []
    features = style
    for _ in range(MAX_FOUND):
        base = fit(battles, features, components, rows=halves.selection)
        scores = _scores(battles, base, features, on_selection, halves.selection)
        scores[chosen] = 0.0
        best = int(np.argmax(np.abs(scores)))
        if abs(scores[best]) < MIN_SCORE:
            break
        chosen.append(best)
        column = candidates.differences[:, [best]].toarray()
        features = np.hstack([features, column])
    differences = features[:, style.shape[1] :]
    if chosen:  # the other half is split into words only if there is something to measure
        on_report = candidates.differences_of(battles, chosen, halves.report)
        differences[halves.report] = on_report[halves.report]
    return Found(
        names=tuple(candidates.names[i] for i in chosen),
        differences=differences,
        report_rows=halves.report,
        n_candidates=len(candidates.names),
    )


def _halves(battles: Battles, seed: int) -> _Halves | None:
    """Two halves of the prompts, each in a sample if it is large; None for too few prompts."""
    prompts = np.unique(battles.prompt)
    if len(prompts) < 2 * MIN_PROMPTS:
        return None
    rng = np.random.default_rng(seed)
    selected = rng.permutation(prompts)[: len(prompts) // 2]
    is_selected = np.isin(battles.prompt, selected)
    selection = _sample(np.flatnonzero(is_selected), rng)
    report = _sample(np.flatnonzero(~is_selected), rng)
    return _Halves(selection, report)


def _sample(rows: Ints, rng: np.random.Generator) -> Ints:
    if len(rows) <= MAX_BATTLES:
        return rows
    return np.sort(rng.choice(rows, MAX_BATTLES, replace=False))


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Candidates and the difference of each between the answers of every battle.

    Attributes:
        names: words and forms.
        differences: on the selection half, and 0 elsewhere, shape (n, C).
        types: of the candidates in the vocabulary, shape (C,).
        vocabulary: of the answers of the selection half.
    """

    names: list[str]
    differences: sp.csc_array
    types: Ints
    vocabulary: Vocabulary

    def differences_of(self, battles: Battles, chosen: Sequence[int], rows: Ints) -> Floats:
        """The differences of some candidates in other battles, and 0 elsewhere, shape (n, F)."""
        used = _texts_of(battles, rows)
        counted = count_texts(battles.texts.gather(used), self.vocabulary)
        matrix = sp.csr_array(counted.matrix[:, self.types[list(chosen)]])
        return np.asarray(_differences(battles, matrix, used, rows).toarray())


def _candidates(battles: Battles, rows: Ints) -> _Candidates:
    """Words and forms that one of two answers has often enough in some battles."""
    used = _texts_of(battles, rows)
    texts = battles.texts.gather(used)
    counted = count_texts(texts, min_documents=min(MIN_TEXTS, len(texts)), formatting=True)
    differences = _differences(battles, counted.matrix, used, rows)
    n_battles = _columns_held(differences)
    names = [str(token) for token in counted.vocabulary.tokens]
    types = [
        i
        for i, name in enumerate(names)
        if n_battles[i] >= MIN_BATTLES and not name.startswith(STYLE_FORMS)
    ]
    return _Candidates(
        names=[names[i] for i in types],
        differences=sp.csc_array(differences[:, types]),
        types=np.array(types, dtype=np.int64),
        vocabulary=counted.vocabulary,
    )


def _texts_of(battles: Battles, rows: Ints) -> Ints:
    """The different answers of some battles, sorted."""
    return np.unique(np.concatenate([battles.first_text[rows], battles.second_text[rows]]))


def _differences(battles: Battles, counts: sp.csr_array, texts: Ints, rows: Ints) -> sp.csr_array:
    """A matrix of which answer of each given battle has each type (1 or −1); 0 in the other
    battles."""
    presence = sp.csr_array(counts, dtype=np.float64)
    presence.data[:] = 1.0
    first = np.searchsorted(texts, battles.first_text[rows])
    second = np.searchsorted(texts, battles.second_text[rows])
    differences = sp.csr_array(presence[first] - presence[second])
    differences.eliminate_zeros()
    to_rows = sp.csr_array(
        (np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(battles.n, len(rows))
    )
    return sp.csr_array(to_rows @ differences)


def form_differences(battles: Battles, names: Sequence[str]) -> Floats:
    """The difference of each form in every battle, shape (n, F)."""
    formatting = Formatting()
    bits = formatting.bits(battles.texts)
    has_feature = np.unpackbits(bits, axis=1, count=len(formatting.names))
    columns = [formatting.names.index(name) for name in names]
    has_form = has_feature[:, columns].astype(np.float64)
    differences: Floats = has_form[battles.first_text] - has_form[battles.second_text]
    return differences


def _columns_held(matrix: sp.csr_array) -> Ints:
    """Count for each column the rows in which it is not zero."""
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def _scores(
    battles: Battles, base: Fit, features: Floats, differences: sp.csr_array, rows: Ints
) -> Floats:
    """The robust score statistic of adding each candidate to the fitted model, shape (C,).

        z_c = Σ_i d_ic r_i / √Σ_g (Σ_{i∈g} d̃_ic r_i)²,      r = w (y − p)

    with d̃ what the model's own columns do not explain of d (weighted by w p (1 − p)): d̃ = d − x e.
    `differences` has the rows of `rows`. No matrix of prompts and candidates is ever dense.
    """
    columns = sp.csr_array(sp.hstack([model_columns(battles)[rows], sp.csr_array(features[rows])]))
    p = expit(columns @ base.coefficients)
    residual = battles.weight[rows] * (battles.outcome[rows] - p)
    explained = _explained(columns, differences, battles.weight[rows] * p * (1 - p))

    _, place = np.unique(battles.prompt[rows], return_inverse=True)
    by_prompt = sp.csr_array((residual, (place, np.arange(len(rows)))))
    spread = _spreads(by_prompt @ differences, (by_prompt @ columns).toarray(), explained)
    total = differences.T @ residual
    scores: Floats = np.divide(total, spread, out=np.zeros_like(total), where=spread > 0)
    return scores


def _spreads(of_candidates: sp.csr_array, of_columns: Floats, explained: Floats) -> Floats:
    """√Σ_g (a_g − b_gᵀ e)² of each candidate, shape (C,); 0 where the columns explain all of it.

        Σ_g (a_g − b_gᵀ e)² = Σ a_g² − 2 (Σ a_g b_g)ᵀ e + eᵀ (Σ b_g b_gᵀ) e

    Args:
        of_candidates: a, the scores of candidates by prompt, shape (G, C).
        of_columns: b, those of the model's own columns, shape (G, M + K).
        explained: e, shape (M + K, C).
    """
    alone = np.asarray(of_candidates.multiply(of_candidates).sum(axis=0)).reshape(-1)
    common = np.asarray(of_columns.T @ of_candidates)
    within = of_columns.T @ of_columns
    change = ((within @ explained - 2 * common) * explained).sum(axis=0)
    remaining = np.maximum(alone + change, 0.0)
    is_new = remaining > MIN_SPREAD**2 * alone
    return np.where(is_new, np.sqrt(remaining), 0.0)


def _explained(own: sp.csr_array, d: sp.csr_array, curvature: Floats) -> Floats:
    """Coefficients of the weighted regression of each candidate on the model's own columns."""
    weighted = own.multiply(curvature[:, None])
    # pinv: strengths are defined up to a constant in each component
    inverse = np.linalg.pinv((own.T @ weighted).toarray())
    return np.asarray(inverse @ (weighted.T @ d).toarray())
