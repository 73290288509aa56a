"""Candidates for shortcuts: tokens, phrases and passages that nearly decide a class.

A token is one if it is in at least 1% of the class's documents, predicts the label, and is either *pure* (the conservative bound of
its posterior difference lies more than half of the way from neutral to certain) or *informative* (among the thirty of most
information about the class, at least 0.02 bits, and a fifth of that way).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import betainc, rel_entr

from tokensieve.arrays import Floats, Ints, Positions
from tokensieve.auditing.checks.api import AuditContext, Share, computed_once
from tokensieve.auditing.checks.signs import Sign
from tokensieve.auditing.copies import without_copies
from tokensieve.errors import InputError
from tokensieve.evidence.importance import token_importance
from tokensieve.evidence.intervals import LEVEL, false_discovery
from tokensieve.task.agreement import FLOOR
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import learn_vocabulary

# a first or last word, … for letters and 0 for digits, with a sign that prose does not have there, or between numbers
SHAPE = r"[/#@=+*~|\\&^$€£<>]+[…0]|[…0]:[…0]|0[-.,]0|…[.]0|0[.]…"

Places = tuple[Ints, Ints]


@dataclass(frozen=True)
class Candidate:
    """A token that nearly decides a class, and the signs of an artefact that it bears.

    Attributes:
        type: its place in the vocabulary, −1 for a phrase or passage.
        way: how far from neutral to certain the cautious end of its posterior difference lies.
        fixed: whether it mostly has the same neighbour or place.
    """

    token: str
    type: int
    label: int
    way: float
    documents: Ints
    signs: tuple[Sign, ...] = ()
    fixed: bool = False

    coverage: ClassVar[float] = 0.01  # of the class's documents
    common: ClassVar[float] = (
        0.8  # of all documents: what is in more is the usual state, and its absence the sign
    )
    rare: ClassVar[float] = (
        0.01  # q of containing it, for what is in too few documents for the table's test
    )
    chance: ClassVar[float] = 2e-5  # p of a phrase, which has several other tests to pass
    # types, of how much information, and how far on the way to certain; without a limit beyond `pure`
    informative, bits, less_pure, pure = 30, 0.02, 0.2, 0.5
    # of the documents with a phrase; of the film reviews with "well worth", no artefact, 0.96 are good ones
    decided: ClassVar[float] = 0.985
    looked_into, least_looked_into = (
        160,
        8,
    )  # candidates whose documents are read, and of each class

    @classmethod
    def of(
        cls, table: pl.DataFrame, train: Counts, sizes: Ints, types: slice, chance: float = 0.0
    ) -> list[Candidate]:
        """Those to look into among some types, the surest of each class first; `sizes`: documents of each class in the table."""
        n, grouped = int(sizes.sum()), "units" in table.columns
        start, stop, _ = types.indices(train.n_types)
        out: list[Candidate] = []
        for k, size in enumerate(sizes.tolist()):
            rows = table[k * train.n_types + start : k * train.n_types + stop]
            names = ("documents", "class_documents", "posterior_low", "effect", "q_value")
            documents, inside, low, effect, q = (
                rows[name].to_numpy().astype(float) for name in names
            )
            neutral = 2 * size / n - 1
            way = (low - neutral) / (1 - neutral)
            bits = cls.information(
                np.stack([inside, documents - inside], axis=1), np.array([size, n - size])
            )
            fits = (
                (inside >= max(FLOOR, cls.coverage * size))
                & (documents <= cls.common * n)
                & (effect > 0)
            )
            # that so many of them are of the class (a binomial bound of Fisher's exact test): few documents of unequal length may
            # hide it from the table's test, which compares how much of the text a type is
            p = np.where(
                fits, betainc(np.maximum(inside, 1), documents - inside + 1, size / n), 1.0
            )
            # a word in too few documents to be one, of whatever class, is not tested and does not count as a test
            tested = (documents >= max(FLOOR, cls.coverage * size)) | rows["token"].str.starts_with(
                "⟨"
            ).to_numpy()
            exceptional = np.zeros(stop - start, bool)
            if not grouped and tested.any():
                exceptional[tested] = false_discovery(p[tested, None])[:, 0] < cls.rare
            fits &= (q < LEVEL) | exceptional | (p < chance)
            told = np.zeros(stop - start, dtype=bool)
            told[np.argsort(-np.where(fits, bits, 0.0), kind="stable")[: cls.informative]] = True
            told &= (bits >= cls.bits) & (way > cls.less_pure)
            chosen = np.flatnonzero(fits & ((way > cls.pure) | told))
            chosen = chosen[np.argsort(-way[chosen], kind="stable")][
                : max(cls.least_looked_into, math.ceil(cls.looked_into / train.n_classes))
            ]
            out += [
                cls(rows["token"][s], start + s, k, float(way[s]), held)
                for s, held in zip(chosen.tolist(), train.holders(start + chosen), strict=True)
            ]
        return out

    @classmethod
    def phrases(cls, data: AuditContext) -> list[Candidate]:
        """Candidates that are runs of two or three words, for an audit of single words: those in 1% of the smallest class, none of
        whose words leans to the class outside the phrase, so that it is their meeting which decides."""
        train = data.train.counts
        least = max(FLOOR, math.ceil(cls.coverage * int(train.class_sizes.min())))
        try:
            vocabulary = learn_vocabulary(data.train.stream, data.tokenizer, 3, least)
        except InputError:  # no word is as frequent
            return []
        matrix, _ = vocabulary.count(data.train.stream)
        counts, words = (
            Counts(matrix, train.labels, train.classes, vocabulary.tokens),
            len(vocabulary.words),
        )
        place, present = {word: s for s, word in enumerate(vocabulary.words)}, counts.present
        out = []
        table, types = (
            token_importance(counts, units=data.train.corpus.units).to_frame(),
            slice(words, counts.n_types),
        )
        for c in cls.of(table, counts, counts.class_sizes, types, cls.chance):
            outside = [present[place[word]] - present[c.type] for word in c.token.split(" ")]
            leans = any(cls._leans(rest, c.label, train) for rest in outside)
            if not leans and present[c.type, c.label] >= cls.decided * len(c.documents):
                out.append(replace(c, type=-1))
        return out

    @classmethod
    def passages(cls, data: AuditContext) -> list[Candidate]:
        """Candidates that are the first or last two to four words and signs of texts, digits as 0, where other texts have the same
        words near that edge without leaning to the class: what cutting a name from "Sent by Ann." leaves behind. And a symbol
        before the text, or the shape of a first or last word with a sign inside, such as (…/…) or /…."""
        train, corpus, texts = data.train.counts, data.train.corpus, data.train.corpus.texts
        if corpus.fields:
            return []
        lower = [texts.str.to_lowercase()] if isinstance(texts, pl.Series) else []

        def parts() -> Iterable[pl.Series]:
            """The texts in lower case, a batch at a time if they are in files."""
            return (
                lower
                if isinstance(texts, pl.Series)
                else (part.str.to_lowercase() for part in texts.batches())
            )

        keys, n = [], 0
        for part in parts():
            keys.append(cls._edges(part).select(pl.col("run").hash(), pl.col("document") + n))
            n += len(part)
        frame = pl.concat(keys).filter(pl.len().over("run") >= FLOOR)
        if frame.is_empty():
            return []
        # nearly all runs occur once, so only hashes are kept, and the frequent ones are read again
        some = texts.gather(frame.unique("run")["document"].to_numpy())
        runs = cls._edges(some.str.to_lowercase())["run"].unique()
        frame = frame.join(pl.DataFrame({"run": runs.hash(), "name": runs}), on="run")
        names, places = np.unique(frame["name"].to_numpy(), return_inverse=True)
        matrix = sp.csr_array(
            (np.ones(len(places)), (frame["document"].to_numpy(), places)), (n, len(names))
        )
        counts = Counts(matrix, train.labels, train.classes, names)
        out = []
        table = token_importance(counts, units=data.train.corpus.units).to_frame()
        for c in cls.of(table, counts, counts.class_sizes, slice(None)):
            words = re.findall(r"\w+", c.token.partition('"')[2])
            if re.fullmatch(r'⟨starts "\W"⟩', c.token) or (c.is_shape and c.way > cls.pure):
                out.append(replace(c, type=-1))
            if sum(map(str.isalpha, words)) < 2:
                continue
            pattern = r"\W+".join(re.escape(word).replace("0", r"\d+") for word in words)
            inside, near = [], []
            for part in parts():
                edge = part.str.tail(80) if c.token.startswith("⟨ends") else part.str.head(80)
                inside.append(part.str.contains(rf"\b{pattern}\b").to_numpy())
                near.append(edge.str.contains(rf"\b{pattern}\b").to_numpy())
            elsewhere = np.concatenate(inside)
            elsewhere[c.documents] = False
            rest = np.bincount(train.labels[elsewhere], minlength=train.n_classes)
            fixed = np.concatenate(near)[elsewhere].sum() >= 0.8 * rest.sum()
            if (
                fixed
                and rest.sum() >= len(c.documents) / 2
                and not cls._leans(rest, c.label, train)
            ):
                out.append(replace(c, type=-1))
        return out

    @property
    def is_shape(self) -> bool:
        """Whether it is the shape of a first or last word: … for letters and digits, 0 for digits, and signs."""
        edge, _, shape = self.token.partition('"')
        prose = " " in shape or any(map(str.isalpha, shape))
        return edge in ("⟨starts ", "⟨ends ") and not prose and bool(re.search(SHAPE, shape))

    def written(self, data: AuditContext) -> tuple[pl.Series, pl.DataFrame]:
        """Of a shape, the first or last words that have it, and their tokens with the number of documents."""
        texts = pl.Series(data.train.corpus.texts.gather(self.documents), dtype=pl.String)
        written = _outer_word(texts, self.token.startswith("⟨starts")).fill_null("")
        names = data.tokenizer.split(written).list.unique().explode().drop_nulls()
        return written, names.alias("name").value_counts()

    def spelled(self, data: AuditContext) -> list[Candidate]:
        """Itself. A shape that nearly all documents spell alike, apart from digits, takes that spelling, as v0.0 for v1.2 and v2.0;
        and the words that give it its documents follow, as "ann" and "ben" do for /…, because words can be masked."""
        if not self.is_shape:
            return [self]
        (written, names), counts = self.written(data), data.train.counts
        spelling, often = (
            written.str.to_lowercase().str.replace_all(r"\d+", "0").value_counts(sort=True).row(0)
        )
        token = (
            f'{self.token.partition(" ")[0]} "{spelling}"⟩'
            if often >= self.common * len(written)
            else self.token
        )
        names = names.filter(pl.col("count") >= max(FLOOR, len(written) // 5))
        types = np.flatnonzero(np.isin(counts.tokens, names["name"].to_numpy()))
        words = [
            replace(
                self,
                token=str(counts.tokens[s]),
                type=int(s),
                documents=inside,
                signs=(Sign.MARKUP,),
            )
            for s, documents in zip(types, counts.holders(types), strict=True)
            if len(inside := np.intersect1d(documents, self.documents))
            >= self.common * len(documents)
        ]
        return [replace(self, token=token), *words]

    @staticmethod
    def _edges(lower: pl.Series) -> pl.DataFrame:
        """The first and last two to four words and signs of texts, digits as 0, and shapes of first and last words with a sign
        inside: run, document."""
        runs, shapes = pl.Series(dtype=pl.String), pl.Series(dtype=pl.String)
        for verb, edge in (("starts", lower.str.head(80)), ("ends", lower.str.tail(80))):
            pieces = edge.str.replace_all(r"\d+", "0").str.extract_all(r"\w+|[^\w\s]").list
            for size in (1, 2, 3, 4):
                run = (pieces.head(size) if verb == "starts" else pieces.tail(size)).list.join(" ")
                run = f'⟨{verb} "' + run.str.replace_all(r" ([.,:;!?)\]])", "$1") + '"⟩'
                # a symbol alone, such as an arrow, may begin texts
                kept = pieces.len() > size if size > 1 else run.str.contains(r'^⟨starts "\p{So}"⟩$')
                runs = runs.append(run.set(~kept, None))
            shape = (
                _outer_word(edge, verb == "starts")
                .str.replace_all(r"\w*\p{L}\w*", "…")
                .str.replace_all(r"\d+", "0")
            )
            shape = f'⟨{verb} "' + shape + '"⟩'
            shapes = shapes.append(shape.set(~shape.str.contains(SHAPE), None))
        frame = pl.DataFrame({"run": runs, "document": np.tile(np.arange(len(lower)), 8)})
        frame = frame.filter(pl.col("run").str.contains(r'⟨(starts|ends "\w)'))
        return frame.extend(
            pl.DataFrame(
                {"run": shapes, "document": np.tile(np.arange(len(lower)), 2)}
            ).drop_nulls()
        ).unique()

    @classmethod
    def _leans(cls, documents: Ints, label: int, train: Counts) -> bool:
        """Whether documents, given their number in each class, lean to a class; if they are too few to judge, they count as
        leaning."""
        share = train.class_sizes[label] / train.n_documents
        low = Share.count(int(documents[label]), int(documents.sum())).low
        return bool(documents.sum() < FLOOR or (low - share) / (1 - share) > cls.less_pure)

    @staticmethod
    def information(inside: Floats | Ints, sizes: Floats | Ints) -> Floats:
        """Mutual information, in bits, shape (|S|,), between "a document contains the type" (documents containing it by class,
        shape (|S|, K)) and the document's class (documents by class, shape (K,))."""
        both = np.stack([inside, sizes - inside]) / sizes.sum()  # contain it, or not
        found = rel_entr(both, both.sum(axis=2, keepdims=True) * sizes / sizes.sum())
        return np.asarray(found.sum(axis=(0, 2)) / np.log(2))

    def without_copies(self, data: AuditContext) -> Candidate | None:
        """Itself with one document of each text, if these suffice for a candidate."""
        texts, train = without_copies(data, self.documents), data.train.counts
        if len(texts) == len(self.documents):
            return self
        share = train.class_sizes[self.label] / train.n_documents
        low = Share.count(int((train.labels[texts] == self.label).sum()), len(texts)).low
        one = replace(self, documents=texts, way=min(self.way, float((low - share) / (1 - share))))
        enough = len(texts) >= max(FLOOR, self.coverage * train.class_sizes[self.label])
        return one if enough and one.way > self.less_pure else None

    def was_put_in(self, data: AuditContext, unsure: bool = False) -> bool:
        """Whether it, or the short phrase that it always is in, stands between words that are neighbours elsewhere, about as often
        as any two neighbours are: what was put into finished texts does, and a word that belongs there does not. At the start and
        the end of texts, whether it was put there (`_was_put_at_edge`); `unsure` where most texts begin or end in their own way."""
        stream, words = next(iter(data.train.stream)), self.token.split(" ")
        ids, field = stream.ids, data.fields.field_of(self.token) if data.fields else ""
        if unsure and stream.n_documents < data.train.counts.n_documents:
            return True  # texts in files, of which only the first part is at hand: a fixed place counts as it is
        if not {*words} <= {*stream.words}:
            return False  # of texts in files, the first part lacks it
        some = self.documents[self.documents < stream.n_documents][:200]
        heads, tails, counted = field_boundaries(data)[field]
        at = np.concatenate([np.empty(0, np.int64), *map(np.arange, heads[some], tails[some])])
        begin, end = (np.repeat(x[some], (tails - heads)[some]) for x in (heads, tails))
        for i, word in enumerate(words):
            here = (at + i < end) & (ids[np.minimum(at + i, end - 1)] == stream.words.index(word))
            at, begin, end = at[here], begin[here], end[here]
        if len(at) < 8:
            return False
        sides, none = (at - 1, at + len(words)), np.zeros(len(stream.words))
        left, before, share_before = _beside(ids, sides[0], -1, begin, end, none)
        right, after, share_after = _beside(ids, sides[1], 1, begin, end, none)
        if (before < 0) != (after < 0):
            return self._was_put_at_edge(data, field, some, sides, (begin, end), before < 0, unsure)
        inside = (left >= begin) & (right < end)
        if (
            max(share_before, share_after) > 0.5
            or inside.sum() < 8
            or int((right - left).max()) > 4
        ):
            return False
        first = int(np.flatnonzero(inside)[0])
        prefix = data.fields.prefixes[field] if data.fields else ""
        names = [
            re.escape(stream.words[i].removeprefix(prefix))
            for i in ids[left[first] + 1 : right[first]].tolist()
        ]
        texts = pl.Series(
            data.train.corpus.texts.gather(some[:60]), dtype=pl.String
        ).str.to_lowercase()
        if 2 * texts.str.contains(r"\w\s+" + r"\s+".join(names) + r"\s+\w").sum() < len(texts):
            return False  # interjections stand beside punctuation, and sentences between it
        pairs, recurring = counted[0]
        around = ids[left[inside]].astype(np.int64) * len(stream.words) + ids[right[inside]]
        found = Share.count(int(np.isin(around, pairs).sum()), len(around))
        return found.value >= 0.8 * recurring and found.low >= 0.5 * recurring

    def _was_put_at_edge(
        self,
        data: AuditContext,
        field: str,
        some: Ints,
        sides: Places,
        ends: Places,
        first: bool,
        unsure: bool,
    ) -> bool:
        """Whether it was put before finished texts (`first`), or after them: the word next to it begins or ends other texts. Or it
        fills a slot: the fixed word beside it has the same place in other texts, whatever their class, as "by" before other names.

        `some` of its documents, `sides`: the places before and after it in the stream, in fields that begin and end at `ends`.
        """
        stream, train, (heads, tails, counted) = (
            next(iter(data.train.stream)),
            data.train.counts,
            field_boundaries(data)[field],
        )
        ids, starts, (begin, end) = stream.ids, stream.starts, ends
        for side in sides:
            often = np.bincount(ids[side[(side >= begin) & (side < end)]], minlength=1)
            places = (
                np.flatnonzero(ids == often.argmax())
                if often.max() > 0.8 * len(side)
                else np.empty(0, np.int64)
            )
            document = np.searchsorted(starts, places, "right") - 1
            from_edge = places - heads[document] if first else tails[document] - places
            own = np.isin(document, some)
            if own.any():
                same = np.unique(
                    document[~own & (from_edge == np.bincount(from_edge[own]).argmax())]
                )
                elsewhere = np.unique(document[~own])
                rest = np.bincount(train.labels[elsewhere], minlength=train.n_classes)
                enough = len(same) >= max(len(some) / 2, 0.8 * len(elsewhere))
                if enough and not self._leans(rest, self.label, train):
                    return True
        others = np.flatnonzero(
            (train.labels == self.label)[: stream.n_documents] & (tails > heads)
        )
        others = np.setdiff1d(others, some)
        usual = np.bincount(
            ids[heads[others] if first else tails[others] - 1], minlength=len(stream.words)
        )
        place, most, share = _beside(
            ids, sides[first], 1 if first else -1, begin, end, usual / max(1, len(others))
        )
        if share > 0.5:  # is it as frequent there in other texts of the class?
            return bool(share <= 2 * usual[most] / max(1, len(others)))
        known, recurring = counted[1 if first else 2]
        around = ids[place[(place >= begin) & (place < end)]].astype(np.int64)
        found = Share.count(int(np.isin(around, known).sum()), len(around))
        # words that belong to a phrase reach a third to a half of what chance brings
        enough = len(around) >= 8 and found.value >= 0.6 * recurring and found.low >= recurring / 3
        return enough or (unsure and recurring < 0.5)


def _outer_word(texts: pl.Series, first: bool) -> pl.Series:
    """The first word of each text, or the last, with its signs but for a stop behind it; null where there is no other."""
    return texts.str.extract(r"^\s*(\S+?)[.,!?;:]*\s" if first else r"\s(\S+?)[.,!?;:]*\s*$")


def _beside(
    ids: Positions, place: Ints, step: int, begin: Ints, end: Ints, usual: Floats
) -> tuple[Ints, int, float]:
    """Where the neighbour of a phrase is, from the place beside it on (`step`): behind words that always come with it, and so are
    part of it, but are not usual there; the most frequent neighbour, −1 beyond the edge of most texts; and its share."""
    for _ in range(8):
        there = (place >= begin) & (place < end)
        if there.sum() < 0.2 * len(there):
            return place, -1, 1.0
        often = np.bincount(ids[place[there]])
        word, share = int(often.argmax()), float(often.max() / len(there))
        if share <= 0.8 or share <= 2 * usual[word]:
            break
        place = (place + step).astype(np.int64)
    return place, word, share


@computed_once
def field_boundaries(data: AuditContext) -> dict[str, tuple[Ints, Ints, list[tuple[Ints, float]]]]:
    """For each field ("" where there are none), in the first part of the training documents: where its words begin and end in
    the stream, shape (n,); its pairs of neighbours (left · words + right), its first words and its last ones, each with the
    fraction of the occurrences that are not the only one."""
    stream, fields, found, most = next(iter(data.train.stream)), data.fields, {}, 2_000_000
    of = np.array([fields.field_of(word) if fields else "" for word in stream.words])
    for name in fields.fields if fields else [""]:
        own = (of == name)[stream.ids]
        before = np.append(0, np.cumsum(own))[stream.starts]
        begin, n = np.append(np.flatnonzero(own), 0)[before[:-1]], np.diff(before)
        ids = stream.ids[own][:most].astype(np.int64)
        firsts, lasts = begin[n > 0], (begin + n)[n > 0] - 1
        ends = (stream.ids[side[side < most]].astype(np.int64) for side in (firsts, lasts))
        counted = [
            np.unique(x, return_counts=True)
            for x in (ids[:-1] * len(stream.words) + ids[1:], *ends)
        ]
        parts = [
            (known, float(often[often > 1].sum() / max(often.sum(), 1))) for known, often in counted
        ]
        found[name] = begin, begin + n, parts
    return found
