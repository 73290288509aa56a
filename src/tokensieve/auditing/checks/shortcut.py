"""Shortcuts: tokens that nearly decide a class and bear the signs of an artefact, grouped by what belongs together.

Most candidates (`Candidate`) are what the labels are about: "awful" in bad reviews, "alarm" in requests to set one. They are
strong predictors, no findings. What makes one suspicious is a sign that no writer chose it for its meaning (`Sign`):

- a strong one: formatting, a code, an address;
- a weak one (a number, a fixed place, another script, markup), or being all but certain, where the token is *apart*: the other
  words of ten documents or more do not tell which contain it (`_company`). Words of the subject keep company: "coin" has "heads";
- being all but certain and put between words that are neighbours elsewhere (`Candidate.was_put_in`), where company tells little:
  in short or templated texts. A fixed place or phrase must have been put there as well: the word next to it begins or ends other
  texts, or it fills a slot. "topmost" in "how high is the topmost temperature today" was not, as no text begins with "today";
- the shape of a first or last word, such as /… or (…/…), where names or codes differ from text to text.

Where many words are as reliable, they are a vocabulary, as of a language: one of them that is only certain must be both apart and
put in, and a number or a fixed place must show no company at all. Words of the class's name, their relatives (the same first four
letters; three if one has at most five) and its abbreviations are never suspicious by a weak sign: "sad" belongs to the class
sadness, "nx" to networkx. Nor is a fixed phrase with another word that belongs to the class: "benign neoplasm". The words of other
fixed phrases are named beside suspicious formatting of the same documents, because they say what it is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import betainc

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.checks.api import MAX_EXAMPLES, AuditContext, Check, Finding, Labels, Share
from tokensieve.auditing.checks.candidates import Candidate
from tokensieve.auditing.checks.signs import CODE, MEANING, STRONG, Sign, usual_signs
from tokensieve.auditing.environments import environment_effects
from tokensieve.auditing.phrases import form_clause, of_class, quoted
from tokensieve.escape import for_display
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.formatting import is_formatting
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural, verb

_WORD = re.compile(r"[^\W\d_]{2,}")
# forms that vary with what is said and who says it; others, such as double spaces, no one chooses
CHOICES = re.compile(
    r'.*⟨(length |ends "[.!?:]"|ends with a (quote|digit)|no (final|capitals)|starts (in|with a (quote|digit))|number|percentage|'
    r"sum of|!!|[?][?!]|[.]{3}|— |; |: |[(]parenth|\"quotes|repeated)"
)
TOGETHER = 0.5  # Jaccard index of the documents of two tokens that are one finding


class Shortcut(Check):
    """Groups of tokens and formatting that nearly decide a class and show the signs of an artefact."""

    name = "shortcut"
    title = "Shortcut"
    about = (
        "Strong predictors that look like artefacts. A token or formatting feature is a strong predictor if it appears in at least "
        "1% of a class (q < 0.05) and is either among the most informative or has a conservative bound on its class association "
        "that is more than halfway to certainty. Formatting, codes and addresses always count as artefacts. Numbers, markup, words "
        "in another script or a fixed position, names and codes of one shape at either end of texts and nearly certain tokens "
        "count in ten documents or more (fixed phrases in fewer), if their other words do not tell which contain them. Words "
        "in a fixed position must also fill a slot, as in “sent by …”, or the word next to them must begin or end other texts. "
        "Other strong predictors are listed apart, as what labels are about."
    )
    action = "Will these also appear where your model is used? If not, mask them and audit again to see what accuracy remains."
    action_on_form = (
        "Find out why the formatting differs, and whether it will differ where your model is used. If not, clean the texts, "
        "or ignore formatting with --no-formatting, and audit again."
    )
    action_on_passage = (
        "Will this phrase also appear where your model is used? If not, remove the whole phrase from every document, in "
        "all its variants. If you mask only one word, the rest of the phrase still gives the label away. Then audit again."
    )
    action_on_values = (
        "Find out why the label depends on another column, and whether that will hold where your model is used. If not, "
        "balance the classes across the values of that column."
    )
    tasks = (Labels,)
    certain, certain_phrase = 0.85, 0.95  # of the way from neutral to certain, at the cautious end
    # a word without exceptions in so many documents is certain; one in more of a class than that is what the class is about,
    # unless it is in nearly all of it: then the label is no more than this word
    enough, most_of_class, all_of_class = 20, 0.5, 0.95
    # documents of one that is in none of the others, if chance would bring that about once in a million words
    least, once = 10, 1e-6
    all_but = 0.97  # of a word's documents are of its class: labels have errors, and what was inserted may also occur by itself
    # area under the ROC curve of what tells nothing; documents of the class with the token and without, and words as frequent,
    # that are drawn to measure it
    told, drawn, words_drawn = 0.54, (100, 250), 6
    missed = 5  # documents of a token that by chance would contain a word and do not
    # on the way to certain: words that far below are as reliable; more of them are a vocabulary
    nearly, vocabulary = 0.1, 4
    # of a sign in the severity; strong ones count in full
    weights: ClassVar[dict[Sign, float]] = {Sign.NUMBER: 0.2, Sign.EDGE: 0.7, Sign.ALONE: 0.5}
    writers = 0.3  # of a form that writers choose
    chosen = 0.1  # such a form comes behind others that are so much less certain
    # formatting in more of the other classes is a habit of writers unless it is apart; with company it may belong to the subject
    usual, habit = 0.01, 0.1
    # of a shortcut's documents in one environment, which has no more of all
    one_place, elsewhere = 0.9, 0.7
    most = 12  # findings

    def find(self, data: AuditContext) -> list[Finding]:
        train, vocabulary = data.train.counts, data.learned.model.vocabulary
        assert vocabulary is not None
        candidates = Candidate.of(data.tokens, train, data.class_sizes, slice(data.n_words))
        candidates += Candidate.of(
            data.tokens, train, data.class_sizes, slice(data.n_words, train.n_types)
        )
        candidates += Candidate.passages(data) + (
            [] if vocabulary.grams else Candidate.phrases(data)
        )
        tokens, documents = [c.token for c in candidates], [c.documents for c in candidates]
        borne = Sign.of_each(
            tokens, documents, data.train.corpus, data.tokenizer, usual_signs(data)
        )
        candidates = [
            replace(c, signs=signs, fixed=fixed)
            for c, (signs, fixed) in zip(candidates, borne, strict=True)
        ]
        plain = [c for c in candidates if not c.signs]
        judged = ((c, c.without_copies(data)) for c in candidates)
        accused = (replace(c, signs=self._suspicious(one, plain, data)) for c, one in judged if one)
        suspects = [one for c in accused if c.signs for one in c.spelled(data)]
        # the words of a fixed phrase say what formatting of the same documents is: "reserved" the only end with a full stop
        forms = [one for one in suspects if one.signs[0] is Sign.FORMATTING]
        for c in candidates:
            if (
                Sign.BOILERPLATE in c.signs
                and c.type >= 0
                and c.type not in [one.type for one in suspects]
            ):
                spells = any(
                    c.label == form.label and _belong_together(c, form, 0.8) for form in forms
                )
                suspects += [c] * (spells and not self._in_name_of_class(c, data))
        # tokens that share a word or most documents are one finding, whatever their classes; so are a month and the year beside it
        groups: list[list[Candidate]] = []
        for c in sorted(suspects, key=lambda c: -c.way * len(c.documents)):
            joined = [c]
            for group in groups.copy():
                if any(
                    _belong_together(c, other) or self._nearly_contained(c, other)
                    for other in group
                ):
                    joined += group
                    groups = [one for one in groups if one is not group]
            groups.append(joined)
        return sorted(
            (self._as_finding(group, data) for group in groups), key=lambda f: -f.severity
        )[: self.most]

    def _as_finding(self, group: list[Candidate], data: AuditContext) -> Finding:
        """The group as one finding: each of its documents is predicted by the strongest token in it."""
        train, corpus = data.train.counts, data.train.corpus
        # length, which any mark changes, stands alone only
        group = [c for c in group if "⟨length " not in c.token] or group
        covered, every, group = np.zeros(train.n_documents, dtype=bool), group, []
        fields = data.fields
        # of features of the same documents the one that no writer chooses is named
        for c in sorted(every, key=lambda c: self.chosen * bool(CHOICES.match(c.token)) - c.way):
            if data.predicts_beyond(c.documents, c.label, covered):
                group.append(c)
                # words stay a shortcut without the column
                covered[c.documents] |= not (fields and fields.is_value(c.token))
        passage = any(c.type < 0 and is_formatting(c.token) for c in group)
        order = sorted(
            group, key=lambda c: (c.token.count(" "), -len(c.token))
        )  # of equals the longest word first
        order = sorted(
            order,
            key=lambda c: (list(Sign).index(c.signs[0]), -len(c.token) if passage else -c.way),
        )
        by_way = sorted(group, key=lambda c: c.way)
        predicts, types = [c.label for c in by_way], [c.type for c in by_way]
        held, right, counted = predicted_documents(
            train.labels, [c.documents for c in by_way], predicts
        )
        sizes, labels = train.class_sizes, sorted(set(predicts))
        typed = [c for c in by_way if c.type >= 0]
        # they stand for its phrases
        if typed and len(np.unique(np.concatenate([c.documents for c in typed]))) == len(held):
            types, predicts = [c.type for c in typed], [c.label for c in typed]
        if min(types) >= 0:  # phrases are known of the documents at hand alone
            sizes, counted = (
                data.class_sizes,
                data.task.total(data.train, n_predicted, types, predicts),
            )
        n, size, (n_held, n_right, n_inside) = (
            int(sizes.sum()),
            int(sizes[labels].sum()),
            counted.tolist(),
        )
        evidence = {
            "documents": Share.count(n_held, n),
            "decides": Share.count(n_right, n_held),
            "class": Share.count(n_inside, size),
        }
        label = train.classes[order[0].label] if len(labels) == 1 else ""
        if label:  # without a class of its own there is no rate that it would have anyway
            evidence["base"] = Share.count(size, n)
        base = float(size if label else sizes.max()) / n
        tokens = tuple(dict.fromkeys(c.token for c in order))
        signs = tuple(dict.fromkeys(sign for c in order for sign in c.signs))
        weight, subject = self._weight(order, (n_held - n_inside) / max(n - size, 1), data)
        decides = evidence["decides"]
        # the class alone would make much of a small one, and all documents little
        reach = math.sqrt(evidence["class"].value * evidence["documents"].value)
        predicted = (
            f"are {of_class(label)}" if label else "belong to the class that their token predicts"
        )
        where = of_class(label, "documents") if label else "the documents of the predicted classes"
        them, appear = (
            (quoted(tokens), "it appears") if len(tokens) == 1 else ("one of them", "they appear")
        )
        details = [
            f"{decides.as_counts} training documents containing {them} {predicted}: {decides}",
            f"{appear} in {evidence['class']} of {where}",
            *(MEANING[sign] for sign in signs),
            *["it occurs with other words typical of this class, so it may be part of the topic"]
            * subject,
            *["… stands for letters and digits, 0 for digits"] * any(c.is_shape for c in order),
            *self._one_environment(held, data),
        ]
        examples = right[:: max(1, len(right) // MAX_EXAMPLES)][:MAX_EXAMPLES]
        action = self.action_on_form if all(map(is_formatting, tokens)) else self.action
        if Sign.BOILERPLATE in signs or passage:
            action = self.action_on_passage
        if fields and all(map(fields.is_value, tokens)):
            action = self.action_on_values
        return self.finding(
            data,
            weight * reach * (max(0.0, decides.low - base) / (1 - base)) ** 2,
            _headline(tokens, label, evidence),
            held,
            n_documents=n_held,
            label=label,
            tokens=tokens,
            signs=tuple(sign.value for sign in signs),
            evidence=evidence,
            examples=tuple(Excerpt.of(corpus, int(i), tokens, data.tokenizer) for i in examples),
            details=tuple(details),
            action=action,
        )

    def _weight(
        self, group: list[Candidate], elsewhere: float, data: AuditContext
    ) -> tuple[float, bool]:
        """How much a group looks like an artefact, from 0 to 1, and whether it may be part of the subject; `elsewhere`: the part
        of the other classes' documents that contain it."""
        weight = max(
            self.writers if CHOICES.match(c.token) else self.weights.get(c.signs[0], 1.0)
            for c in group
        )
        # who writes 7/10 may write otherwise than others, but a code is an artefact all the same
        words = not all(CODE.search(c.token) for c in group)
        largest = max(group, key=lambda c: c.way * len(c.documents))
        if (
            words and set(largest.signs) & STRONG and self._company(largest, data)[0] >= 1
        ):  # others keep none
            return weight * self.habit, True
        habit = all(c.signs[0] is Sign.FORMATTING for c in group) and elsewhere > self.usual
        return min(weight, self.writers) if habit else weight, False

    def _one_environment(self, held: Ints, data: AuditContext) -> list[str]:
        """The environment that contains nearly all of some documents, as a detail of the finding; no detail if there is none."""
        environments = environment_effects(data)
        if environments is None:
            return []
        found, of = environments.effects, environments.document_environments
        sizes = np.bincount(of[held][of[held] >= 0], minlength=len(found.names))
        total, first = np.bincount(of[of >= 0]), int(sizes.argmax())
        if (
            sizes[first] < max(1, self.one_place * sizes.sum())
            or total[first] > self.elsewhere * total.sum()
        ):
            return []
        here, name = (
            Share.count(int(sizes[first]), int(sizes.sum())),
            for_display(found.names[first], 40),
        )
        return [
            f"{here.as_counts} of these documents are in environment {name}, so the other environments cannot confirm it"
        ]

    def _suspicious(
        self, c: Candidate, plain: list[Candidate], data: AuditContext
    ) -> tuple[Sign, ...]:
        """Why a candidate is suspicious (module docstring); nothing if it is not. `plain`: the candidates without a sign."""
        train = data.train.counts
        if c.type < 0 and c.signs and c.way < self.certain and not set(c.signs) & STRONG:
            return ()  # a phrase begins or ends texts more easily than it decides them
        if CHOICES.match(c.token) and c.way <= c.pure:
            return ()  # a habit of writers that decides less is a shift (`Shift`)
        if (
            c.signs
            and (c.type < 0 or not set(c.signs) & STRONG)
            and self._in_phrase_of_subject(c, data)
        ):
            return ()
        passage = c.type < 0 and is_formatting(c.token)
        if not passage and (
            CODE.search(c.token)
            or Sign.FORMATTING in c.signs
            or {Sign.MARKUP, Sign.NUMBER} <= set(c.signs)
        ):
            return c.signs
        if self._in_name_of_class(c, data):
            return ()
        if passage:  # one that the words of a subject go with belongs to it
            return (
                c.signs if len(c.documents) >= self.least and self._company(c, data)[0] < 1 else ()
            )
        certain = c.way >= (self.certain_phrase if " " in c.token and c.type >= 0 else self.certain)
        size, right = len(c.documents), int(np.count_nonzero(train.labels[c.documents] == c.label))
        exact = right == size >= self.enough and " " not in c.token
        size_of_class = train.class_sizes[c.label]
        # how likely it is that so many of them are of the class
        chance = betainc(right, size - right + 1, size_of_class / train.n_documents)
        least = c.chance if c.type < 0 and " " in c.token else self.once
        nearly_pure = right >= self.all_but * size or (c.signs and c.way > c.pure)
        few = nearly_pure and size >= self.least and chance < least
        if c.signs:
            if len(c.documents) < self.least and Sign.BOILERPLATE not in c.signs:
                return ()  # too few to show that it keeps no company
            if set(c.signs) <= {Sign.EDGE, Sign.SCRIPT} and not (certain or exact or few):
                return ()  # many sentences begin with "wow"
            # in short texts words and phrases have their place
            placed, value = (
                set(c.signs) <= {Sign.BOILERPLATE, Sign.EDGE},
                data.fields and data.fields.is_value(c.token),
            )
            if placed and not value and not c.was_put_in(data, unsure=True):
                return ()
        elif (
            not (certain or exact or few)
            or self.most_of_class < right / size_of_class < self.all_of_class
        ):
            return ()
        others = [o for o in plain if o.label == c.label and o.way >= c.way - self.nearly]
        others = [o for o in others if not _belong_together(c, o)]
        templates = sum(o.fixed for o in others) > len(others) / 2
        vocabulary = sum(not (templates and o.fixed) for o in others) > self.vocabulary
        if c.signs:
            most = 0 if vocabulary and not {Sign.MARKUP, Sign.SCRIPT} & set(c.signs) else 1
            return c.signs if self._company(c, data)[0] < most else ()
        if vocabulary and not c.was_put_in(data):  # what the class is about, or its language
            return ()
        company, usual = self._company(c, data)
        apart = usual >= 2 / 3 and (certain or exact) and company < usual / 4
        # in templates words keep no company outside their own, in short texts none, and few documents cannot show it: what stands
        # between words that are neighbours elsewhere was put there
        if templates and (c.fixed or not apart or company >= 0) and not c.was_put_in(data):
            return ()
        return (
            (Sign.ALONE,)
            if apart or (not vocabulary and company < 1 and c.was_put_in(data))
            else ()
        )

    @staticmethod
    def _in_name_of_class(c: Candidate, data: AuditContext) -> bool:
        """Whether it is a word of the class's name, or a relative of one, and so what the class is about."""
        texts = (data.train.counts.classes[c.label], " ".join(one.token for one in c.spelled(data)))
        name, words = (_WORD.findall(text.lower()) for text in texts)
        return any(_related_words(a, b) for a in name for b in words)

    def _in_phrase_of_subject(self, c: Candidate, data: AuditContext) -> bool:
        """Whether a candidate with a sign is mostly in one phrase with a word that leans to its class without it, too, as "benign
        neoplasm" (but is not in most documents of the class, and so comes before or after any mark)."""
        train, size, (first, *_) = data.train.counts, len(c.documents), c.token.split(" ")
        labels, share = train.labels[c.documents], train.class_sizes[c.label] / train.n_documents
        present = sp.csc_array(train.rows(c.documents).matrix[:, : data.n_words] > 0)
        beside = np.flatnonzero(np.diff(present.indptr) >= c.common * size)
        for s in beside[beside != c.type].tolist():
            with_it = labels[present.indices[present.indptr[s] : present.indptr[s + 1]]]
            rest = train.present[s] - np.bincount(with_it, minlength=train.n_classes)
            lean = Share.count(int(rest[c.label]), int(rest.sum())).low - share
            others = train.class_sizes[c.label] - np.count_nonzero(labels == c.label)
            if (
                lean <= c.less_pure * (1 - share)
                or not size / 3 <= rest[c.label] < c.common * others
            ):
                continue
            word, texts = str(train.tokens[s]), data.train.corpus.texts.gather(c.documents[:40])
            names = [
                one for one in data.tokenizer.split(texts).to_list() if word in one and first in one
            ]
            apart = Counter(one.index(word) - one.index(first) for one in names)
            if max(apart.values(), default=0) >= c.common * len(texts) or word in _WORD.findall(
                c.token
            ):
                return True
        return False

    def _nearly_contained(self, c: Candidate, larger: Candidate) -> bool:
        """Whether nearly all documents of a word contain the other, which is as sure a sign of the same class."""
        # words belong to a passage, but not to another form
        form = larger.type >= 0 and is_formatting(larger.token)
        if form or c.label != larger.label or larger.way < c.way - self.nearly:
            return False
        both = len(np.intersect1d(c.documents, larger.documents, assume_unique=True))
        return not is_formatting(c.token) and both >= self.one_place * len(c.documents)

    def _company(self, c: Candidate, data: AuditContext) -> tuple[float, float]:
        """How well the other words of a document of the class tell whether it contains a candidate, and the median of the same for
        some words that are about as frequent (0 for one with a sign, and for one that they tell): the area under the ROC curve
        above `told`, in units of three standard errors.

        Each document of a sample is judged by the others (ridge regression, closed form for leaving one out). It is the unit
        vector of its words, each weighing log(documents / documents with it). Left out is what comes with the candidate nearly
        always, as the rest of a planted line does, and numbers: days beside a year are no subject.
        """
        train, rng = data.train.counts, np.random.default_rng(0)
        without = train.labels == c.label
        mine = rng.permutation(c.documents[without[c.documents]])[: self.drawn[0]]
        without[c.documents] = False
        rest = rng.permutation(np.flatnonzero(without))[: self.drawn[1]]
        held, n = np.arange(len(mine) + len(rest)) < len(mine), len(mine) + len(rest)
        present = sp.csc_array(
            train.rows(np.append(mine, rest)).matrix[:, : data.n_words], dtype=float
        )
        present.data[:] = 1
        documents = np.asarray(present.sum(axis=0))
        numbers = (
            pl.Series(train.tokens[: data.n_words], dtype=pl.String).str.contains(r"\d").to_numpy()
        )
        with_it = numbers | self._coming_with(held[None], present)[0]
        if c.is_shape:
            with_it |= np.isin(train.tokens[: data.n_words], c.written(data)[1]["name"].to_numpy())
        if c.signs:  # nor does what stands in its place elsewhere, as another name in the same line, say more
            with_it |= (held @ present == 0) & (documents * len(mine) >= self.missed * n)
        weight = np.where(with_it | (documents < 2), 0.0, np.log(n / np.maximum(documents, 1)))
        vectors = sp.csr_array(present * weight)
        length = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)))
        vectors = sp.csr_array(sp.diags_array(1 / np.maximum(length, 1e-12)) @ vectors)
        near = (vectors @ vectors.T).toarray()
        near -= near.mean(axis=0)
        inverse = np.linalg.inv(near - near.mean(axis=1)[:, None] + np.eye(n))
        error = math.sqrt((n + 1) / (12 * max(1, len(mine) * len(rest))))
        told = (_area_of_others(inverse, held) - self.told) / (3 * error)
        if c.signs or told >= 1:
            return told, 0.0
        ratio = np.where(
            weight > 0, np.abs(np.log(np.maximum(documents, 1) / max(len(mine), 1))), np.inf
        )
        alike = np.argsort(ratio, kind="stable")[: self.words_drawn]
        having = present[:, alike].toarray().T > 0
        beside = self._coming_with(having, present)  # left out of each as it is of the candidate
        columns, areas = sp.csc_array(vectors), []
        for own, its in zip(having, beside, strict=True):
            areas.append(_area_of_others(inverse, own, columns[:, np.flatnonzero(its)].toarray()))
        return told, (float(np.median(areas)) - self.told) / (3 * error)

    @staticmethod
    def _coming_with(sets: NDArray[np.bool_], present: sp.csc_array) -> NDArray[np.bool_]:
        """Which words come with each of some sets of documents nearly always, or have much the same documents."""
        both, sizes = np.asarray(sets @ present), sets.sum(axis=1)[:, None]
        near: NDArray[np.bool_] = (both >= 0.8 * sizes) | (
            both >= TOGETHER * (sizes + np.asarray(present.sum(axis=0)) - both)
        )
        return near


def _area_of_others(
    inverse: Floats, chosen: NDArray[np.bool_], without: Floats | None = None
) -> float:
    """Area under the ROC curve of what the other documents say of each; ½ where there are too few. `inverse`: of the centred inner
    products plus one on the diagonal; `without`: words that are left out, shape (n, k), by the formula of Woodbury."""
    m, n = int(chosen.sum()), len(chosen)
    if min(m, n - m) < 3:
        return 0.5
    y = chosen - m / n
    residual, diagonal = inverse @ y, inverse.diagonal()
    if without is not None:
        centred = without - without.mean(axis=0)
        solved = inverse @ centred
        corrected = np.linalg.solve(np.eye(centred.shape[1]) - centred.T @ solved, solved.T)
        residual = residual + solved @ (corrected @ y)
        diagonal = diagonal + (solved * corrected.T).sum(axis=1)
    # copies of a text tie, whatever the order of sums
    ranks = pl.Series(np.round(y - residual / diagonal, 9)).rank().to_numpy()
    return float((ranks[chosen].sum() - m * (m + 1) / 2) / (m * (n - m)))


def _related_words(name: str, word: str) -> bool:
    """Whether one ends in the other of at least five letters, or begins with its four letters (three of up to five), or whether the
    word abbreviates the name, as "nx" does "networkx"."""
    short, long = sorted((name, word), key=len)
    n = 4 if len(short) > 5 else 3
    if 1 < len(word) < n:
        return bool(re.match(".*".join(word), name))
    return (
        name == word
        or (len(short) >= 5 and long.endswith(short))
        or (len(short) >= n and name[:n] == word[:n])
    )


def _belong_together(a: Candidate, b: Candidate, least: float = TOGETHER) -> bool:
    """Whether two candidates share a word or much the same documents (Jaccard index from `least`), or are numbers of one form, such
    as 7/10 and 10/10."""
    forms = {re.sub(r"\d+", "0", one.token) for one in (a, b)}
    if len(forms) == 1 and re.fullmatch(r"[^\w\s⟨]*0[^\w\s]+(0[^\w\s]*)*|[^\w\s⟨]+0", forms.pop()):
        return True
    if set(a.token.split(" ")) & set(b.token.split(" ")) and not any(
        map(is_formatting, (a.token, b.token))
    ):
        return True
    few, many = sorted([len(a.documents), len(b.documents)])
    both = len(np.intersect1d(a.documents, b.documents, True)) if few >= least * many else 0
    return both >= least * (few + many - both)


def _headline(tokens: tuple[str, ...], label: str, e: dict[str, Share]) -> str:
    """How often, then how strong, then the base rate."""
    share, right = percent(e["documents"].value), percent(e["decides"].value, 0)
    base = f" ({percent(e['base'].value, 0)} overall)" if "base" in e else ""
    rate = (
        f"{right} of those are {of_class(label)}{base}"
        if label
        else f"they predict the label {right} of the time"
    )
    if len(tokens) > 3:
        some = f"one of {plural(len(tokens), 'token')} such as {quoted(tokens[:2])}"
        return f"{share} of documents contain {some}; {rate}"
    if any(map(is_formatting, tokens)):
        words = " or ".join(quoted([token]) for token in tokens if not is_formatting(token))
        form = next(form_clause(token) for token in tokens if is_formatting(token))
        form = form.removeprefix("contain " if words else "")
        return f"{share} of documents {f'contain {words} or ' * bool(words)}{form}; {rate}"
    return f"{quoted(tokens)} {verb(len(tokens), 'appear')} in {share} of documents; {rate}"


def predicted_documents(
    labels: Ints, documents: Sequence[Ints], predicts: Sequence[int]
) -> tuple[Ints, Ints, Ints]:
    """Documents that contain one of several tokens; those of the class that the last of these predicts; and how many there
    are of both, and of the first in any of the classes, shape (3,)."""
    answer = np.full(len(labels), -1)
    for held, label in zip(documents, predicts, strict=True):
        answer[held] = label
    every = np.flatnonzero(answer >= 0)
    right = every[answer[every] == labels[every]]
    return (
        every,
        right,
        np.array([len(every), len(right), np.isin(labels[every], predicts).sum()]),
    )


def n_predicted(part: CountedCorpus, types: Sequence[int], predicts: Sequence[int]) -> Ints:
    """The numbers of `predicted_documents`, of some documents and token types."""
    return predicted_documents(part.counts.labels, part.counts.holders(np.array(types)), predicts)[
        2
    ]
