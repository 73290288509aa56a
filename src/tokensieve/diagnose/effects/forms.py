"""How the formatting of a whole document affects its prediction.

Words are compared without case, and repeated marks count once, so no table of words can show that a
model follows a form. Each form is given to the same documents, and taken from documents that have
it. Forms after which the tokenizer gives the same pieces for every document cannot be seen by the
model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.diagnose.effects.estimates import Sizes, mean_sizes
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.subjects.passages import SEPARATOR
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.model.attention import decide
from tokensieve.read.corpus import Corpus
from tokensieve.text.counts import Counts

NEUTRAL = "It was on a Tuesday. There were two of them. The second one came later."
_ENDS = " .!?…"  # replaced by another ending
N_UNDONE = 24  # documents with a form that lose it: as many as a word is removed from at first
EMOJI = "\U0001f300"  # and later characters


@dataclass(frozen=True)
class Form:
    """A form of whole documents.

    Attributes:
        name: completes "documents …".
        give: a document with the form.
        has: whether a document has it; None if that cannot be said of one document alone.
        take: the document without it; None if it cannot be taken away.
    """

    name: str
    give: Callable[[str], str]
    has: Callable[[str], bool] | None = None
    take: Callable[[str], str] | None = None


# digits that are no part of a word, and signs behind them: what is given, and nothing else
NUMBER_AT_END = re.compile(r"(?<![^\s(])\(?\d[\d.,:/]*[^\w\s]*\s*$")


def _without_end(text: str) -> str:
    return text.rstrip(_ENDS)


FORMS = (
    Form("in CAPITALS", str.upper, str.isupper, str.lower),
    Form("in lower case", str.lower, str.islower, str.capitalize),
    Form(
        'ending in "..."',
        lambda text: f"{_without_end(text)} ...",
        lambda text: text.rstrip().endswith(("...", "…")),
        lambda text: f"{_without_end(text)}.",
    ),
    Form(
        'ending in "!!!"',
        lambda text: f"{_without_end(text)}!!!",
        lambda text: text.rstrip().endswith("!!"),
        lambda text: f"{_without_end(text)}.",
    ),
    Form(
        'ending in "?"',
        lambda text: f"{_without_end(text)}?",
        lambda text: text.rstrip().endswith("?"),
        lambda text: f"{_without_end(text)}.",
    ),
    Form(
        "ending in an emoji",
        lambda text: f"{text} \U0001f642",
        lambda text: text.strip()[-1:] >= EMOJI,
        lambda text: text.strip()[:-1],
    ),
    Form(
        "in HTML markup",
        lambda text: f"<p>{text}</p>",
        lambda text: text.strip()[:1] == "<" and text.strip()[-1:] == ">",
        lambda text: re.sub(r"<[^>]*>", " ", text),
    ),
    Form(
        "with a number at the end",
        lambda text: f"{text} 12345",
        lambda text: NUMBER_AT_END.search(text) is not None,
        lambda text: NUMBER_AT_END.sub("", text),
    ),
    Form("followed by three neutral sentences", lambda text: f"{text} {NEUTRAL}"),
    Form("preceded by three neutral sentences", lambda text: f"{NEUTRAL} {text}"),
)


@dataclass(frozen=True)
class FormEffect:
    """What a form does to predictions.

    Attributes:
        form: which.
        documents_having: of all documents; None where that cannot be said.
        visible: whether the model can see it; if not, the other fields are empty.
        target: the class towards which it moves answers.
        given: sizes of the changes when documents are given the form, signed towards the class.
        taken: sizes of the changes when it is taken from documents that have it.
        words_kept: how much of the words' effect remains: slope of the answers with the form on
            those without it. Near 0, the model does not know the form and predicts one class
            whatever the words say.
        flipped: fraction of documents whose predicted class changes.
        before, after: fraction predicted as the class, without the form and with it.
    """

    form: Form
    documents_having: int | None
    visible: bool
    target: int = 0
    given: Sizes | None = None
    taken: Sizes | None = None
    words_kept: float = np.nan
    flipped: float = np.nan
    before: float = np.nan
    after: float = np.nan


def probe_forms(
    measured: Measured, texts: list[str], more_texts: list[str], offset: Floats, corpus: Corpus
) -> list[FormEffect]:
    """Give each form to some documents, and take it from those that have it.

    Args:
        measured: the model.
        texts: documents as the model reads them.
        more_texts: other documents, from which a form is taken if too few of the first have it.
        offset: what a decision takes from the answers to `texts`, shape (n,).
        corpus: all documents; how many have a form is counted there.
    """
    answers = measured.answers_to(texts, "model: unchanged documents")
    pieces = [measured.subject.pieces_of(text) for text in texts]
    all_texts = corpus.texts.to_list()
    effects = []
    for form in FORMS:
        n_having = None
        if form.has is not None:
            n_having = sum(map(form.has, all_texts))
        changed_texts = [_changed(form.give, text) for text in texts]
        if [measured.subject.pieces_of(text) for text in changed_texts] == pieces:
            effects.append(FormEffect(form, n_having, visible=False))
            continue
        answers_given = measured.answers_to(changed_texts, f"model: documents {form.name}")
        taken = _taken(measured, form, [*texts, *more_texts])
        effects.append(_effect(form, n_having, answers, answers_given, offset[:, None], taken))
    return effects


def _changed(change: Callable[[str], str], text: str) -> str:
    """Change both texts of a pair, or the only one."""
    return SEPARATOR.join(change(side) for side in text.split(SEPARATOR))


def _taken(measured: Measured, form: Form, texts: list[str]) -> Floats | None:
    """Changes of the answers when the form is taken from documents that have it, (n, H)."""
    if form.has is None or form.take is None:
        return None
    with_form = [text for text in texts if form.has(text)][:N_UNDONE]
    if not with_form:
        return None
    without = [_changed(form.take, text) for text in with_form]
    before = measured.answers_to(with_form, f"model: documents already {form.name}")
    return before - measured.answers_to(without, f"model: documents not {form.name}")


def _effect(
    form: Form,
    n_having: int | None,
    before: Floats,
    after: Floats,
    offset: Floats,
    taken: Floats | None,
) -> FormEffect:
    """What a form does, by the answers to the same documents without it and with it."""
    change = after - before
    target = target_class(change)
    towards = signed_towards(change, target)
    predicted_before = decide(before - offset)
    predicted_after = decide(after - offset)
    head = 0 if before.shape[1] == 1 else target
    deviation = before[:, head] - before[:, head].mean()
    slope = float(deviation @ after[:, head]) / max(float(deviation @ deviation), 1e-12)
    taken_sizes = None
    if taken is not None:
        changes = signed_towards(taken, target)
        taken_sizes = mean_sizes(np.zeros(len(changes), dtype=np.int64), changes, 1)
    return FormEffect(
        form=form,
        documents_having=n_having,
        visible=True,
        target=target,
        given=mean_sizes(np.zeros(len(towards), dtype=np.int64), towards, 1),
        taken=taken_sizes,
        words_kept=slope,
        flipped=float(np.mean(predicted_before != predicted_after)),
        before=float(np.mean(predicted_before == target)),
        after=float(np.mean(predicted_after == target)),
    )


def target_class(change: Floats) -> int:
    """The class whose answer gains most on average, of changes of the answers, (n, H)."""
    mean = change.mean(axis=0)
    return int(mean[0] > 0) if len(mean) == 1 else int(mean.argmax())


def signed_towards(change: Floats, target: int) -> Floats:
    """Changes of the answers towards a class, (n,)."""
    if change.shape[1] == 1:
        return change[:, 0] if target == 1 else -change[:, 0]
    return change[:, target]


def form_importance(corpus: Corpus) -> Importance:
    """What the data says about each form of FORMS; those no document can have are absent."""
    texts = corpus.texts.to_list()
    checks = [form.has or (lambda _: False) for form in FORMS]
    present = np.array([[has(text) for has in checks] for text in texts], dtype=np.float64)
    names = [form.name for form in FORMS]
    return token_importance(
        Counts.from_matrix(present, corpus.labels.tolist(), corpus.classes, names)
    )
