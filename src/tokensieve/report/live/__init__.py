"""The interactive part of the audit's page: its HTML, and the data for its scripts, limited in size.

A block of data is base64 of gzip of: the length of its JSON in 4 bytes (little-endian), the JSON, then each array named in the
JSON's "arrays", as byte planes (all first bytes, all second bytes, …), which compress better.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints, row_blocks
from tokensieve.read.values import text_series
from tokensieve.report.blocks import InteractiveAudit
from tokensieve.report.pictures.frame import BLUE, DARK, GREY, ORANGE, PALE_BLUE, PALE_GREY
from tokensieve.report.pictures.tokens import CATEGORIES, EXTREMES, bins_of, sample_with_extremes
from tokensieve.task.agreement import QUADRANTS
from tokensieve.text.counts import Counts
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.formatting import describe_features, is_formatting
from tokensieve.text.patterns import APOSTROPHE, SKIPPED, WORD
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import TokenStream, Vocabulary

FOLDER = Path(__file__).parent
LINKS = [
    ("pictures", "Map"),
    ("table", "Tokens"),
    ("documents", "Documents"),
    ("box", "Try a text"),
]
LINES = 12  # of each token
_LONGEST = 256  # characters of a token that the page holds whole; of a longer one it holds 200
_BEND = (
    100.0  # the axis of effects is linear up to this part of the largest, and logarithmic beyond
)
_PER_CLASS = (
    "posterior_low posterior_high alpha alpha_low alpha_high effect effect_low effect_high p_value q_value value"
).split()

Json = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def context(audit: InteractiveAudit) -> Json:
    """The variables of this folder's template."""
    types, rows = audit.tokens.height // len(audit.classes), _rows_per_class(audit)
    thinned = (
        f"This table lists {rows:,} of {types:,} token types: those named elsewhere on this page, the extremes, and a sample of "
        "the rest. tokens.csv lists all of them."
    )
    label, pairs = audit.classes.index(audit.first_class), not audit.learned.task.classifies
    return {
        "classes": audit.classes,
        "label": label,
        "pairs": pairs,
        "thinned": thinned if types > rows else "",
    }


def data_blocks(audit: InteractiveAudit, characters: Callable[[], int]) -> dict[str, str]:
    """Name → data that the script reads; of the model as much as fits, together at most `characters()`."""
    vocabulary, (table, types) = audit.learned.model.vocabulary, _table_block(audit)
    assert vocabulary is not None
    documents, theirs = _sample_documents(audit)
    # Types of the shown documents, then the others by training documents, most first; of equals words before 2-grams before
    # 3-grams. Cut anywhere, the list holds with every n-gram its words and its first n−1 words, since these are in at least as
    # many documents. Types longer than _LONGEST, and with them every n-gram that contains one, are not in it.
    first = audit.tokens[: audit.tokens.height // len(audit.classes)]
    held = first["documents"].to_numpy()
    order = np.lexsort((-held.astype(np.int64), ~np.isin(np.arange(len(held)), theirs)))
    order = order[(first["token"].str.len_chars() <= _LONGEST).to_numpy()[order]]
    colours = dict(zip(QUADRANTS, (BLUE, PALE_BLUE, ORANGE, GREY, PALE_GREY), strict=True))
    # keyword in context: all lines, and for each token the places of its own among them
    found, numbers = _context_lines(audit), dict[Excerpt, int]()
    of = [
        [numbers.setdefault(one, len(numbers)) for one in of_token] for of_token in found.values()
    ]
    written = [
        [one.row, audit.classes.index(one.label), one.before, one.token, one.after]
        for one in numbers
    ]
    blocks = {
        "table": table,
        "colours": _packed({"dark": DARK, "colours": CATEGORIES | colours}),
        "lines": _packed(
            {"tokens": [_shortened(token) for token in found], "of": of, "lines": written}
        ),
        "documents": _documents_block(audit, vocabulary, documents, np.sort(order), "x" * 200),
    }
    budget, size = (
        characters() - sum(map(len, blocks.values())) - 2_000,
        len(order),
    )  # 2,000 for the tags around them
    while True:
        kept = np.sort(order[:size])
        blocks["model"] = block = _model_block(audit, vocabulary, kept, types)
        if len(block) <= budget or size == 0:
            break
        size = max(
            min(int(0.98 * size * budget / len(block)), size - 1), 0
        )  # the rest alone may exceed the budget
    rare = f"those in no text here and in at most {held[order[size:]].max(initial=0):,} training documents"
    left = [rare] if size < len(order) else []
    left += [f"those longer than {_LONGEST} characters"] if len(order) < first.height else []
    blocks["documents"] = _documents_block(audit, vocabulary, documents, kept, " and ".join(left))
    return blocks


def _sample_documents(audit: InteractiveAudit) -> tuple[list[Json], Ints]:
    """Test documents for the page: row, label, kind (how it was predicted), text, total = log Σ_s c_{X,s} e^{u_s}, answer, for
    pairs other (the contribution of the other answer), and their token types. At most 400,000 characters, 6,000 per document, and
    100,000 decision values: eight documents of each kind, then the shortest that contain the most informative tokens, then random
    ones. Where the page cannot split text, the places, types and formatting of the words are included."""
    test, model, vocabulary = (
        audit.learned.test,
        audit.learned.model,
        audit.learned.model.vocabulary,
    )
    m, size = test.counts.matrix, test.corpus.characters
    fits = (size <= 6_000) & (np.diff(m.indptr) > 0)
    kinds: dict[int, str] = {}
    named = (
        ("correct and confident", "correct and unsure"),
        ("wrong and confident", "wrong and unsure"),
    )
    for (certain, uncertain), group in zip(named, (audit.right, audit.wrong), strict=True):
        fitting = group[fits[group]].tolist()
        kinds |= dict.fromkeys(fitting[8:][::-1][:8], uncertain) | dict.fromkeys(
            fitting[:8], certain
        )
    others = np.random.default_rng(audit.seed).permutation(np.flatnonzero(fits))[:400_000].tolist()
    rows = np.asarray(
        list(dict.fromkeys([*kinds, *_shortest_documents(audit, size, fits), *others])),
        dtype=np.int64,
    )
    rows = rows[
        : min(int(np.searchsorted(np.cumsum(size[rows]), 400_000)), 100_000 // len(audit.classes))
    ]
    documents: list[Json] = []
    texts, m = (
        test.corpus.texts.gather(rows),
        m[rows],
    )  # of all of them at once: they may lie on a cluster
    totals = np.logaddexp.reduceat(np.log(m.data) + model.scores[m.indices], m.indptr[:-1])
    totals = totals if model.sink is None else np.logaddexp(totals, model.sink)
    for k, i in enumerate(rows.tolist()):
        one: Json = {
            "row": int(test.corpus.rows[i]),
            "label": int(test.counts.labels[i]),
            "kind": kinds.get(i, ""),
        }
        one |= {"text": texts[k], "total": float(totals[k]), "answer": audit.learned.f[i].tolist()}
        if not audit.learned.task.classifies:
            one["other"] = one["answer"][0] - float(model.logits(m[k : k + 1])[0, 0])
        documents.append(one)
    if vocabulary is None or _tokenizer_for_page(vocabulary) is not None or not documents:
        return documents, np.unique(m.indices)
    stream = TokenStream.of(text_series([one["text"] for one in documents]), vocabulary.tokenizer)
    types = vocabulary.positions(stream)
    for k, one in enumerate(documents):
        held = m.indices[m.indptr[k] : m.indptr[k + 1]]
        units = np.cumsum(
            [0, *(1 + (ord(c) > 0xFFFF) for c in one["text"])]
        )  # JavaScript counts in 16-bit units
        one["spans"] = [
            (int(units[a]), int(units[b])) for a, b, _ in vocabulary.tokenizer.spans(one["text"])
        ]
        one["types"] = types[stream.starts[k] : stream.starts[k + 1]]
        one["features"] = held[held >= vocabulary.n_words]
    return documents, np.unique(m.indices)


def _context_lines(audit: InteractiveAudit) -> dict[str, tuple[Excerpt, ...]]:
    """Token → lines of training documents that contain it, at most twelve: half from the class that it predicts most, which come
    first, and half from the others in turn; if one side has too few, the other gives more. Tokens in the page's lists come first,
    then those of extreme effect, score or value, up to 500,000 characters in all."""
    counts, corpus, table = audit.learned.train.counts, audit.learned.train.corpus, audit.tokens
    assert audit.learned.model.vocabulary is not None
    tokenizer = audit.learned.model.vocabulary.tokenizer
    # the tokens that the page's cards and lists name
    first = [token for finding in audit.findings for token in finding.tokens[:8]]
    n_listed = min(25, max(10, 300 // len(audit.classes)))
    first += [token for label in audit.classes for token in audit.top_tokens[label][:n_listed]]
    first += audit.disagreeing
    # then the types of strongest effect, value and score, by turns
    extremes = [
        table.top_k(300, by=pl.col(by).fill_nan(0).abs()).sort(pl.col(by).abs(), descending=True)[
            "token"
        ]
        for by in ("effect", "value", "score")
    ]
    turns = zip(
        *(tokens.unique(maintain_order=True).to_list()[:150] for tokens in extremes), strict=False
    )
    index = {str(token): i for i, token in enumerate(counts.tokens)}
    wanted = [
        token
        for token in dict.fromkeys([*first, *(t for turn in turns for t in turn)])
        if token in index
    ]
    types = np.asarray([index[token] for token in wanted], dtype=np.int64)
    effects = table["effect"].fill_nan(0).to_numpy().reshape(len(counts.classes), -1)
    out: dict[str, tuple[Excerpt, ...]] = {}
    for (
        finding
    ) in audit.findings:  # no tokenizer finds formatting: the start or the end of its documents
        for token in filter(is_formatting, finding.tokens[:8]):
            mine = finding.rows.filter((pl.col("part") == "train") & (pl.col("token") == token))[
                "row"
            ].to_numpy()[:200]
            label = corpus.classes.index(finding.label) if finding.label in corpus.classes else 0
            chosen = _from_both_sides(
                np.flatnonzero(np.isin(corpus.rows, mine)), corpus.labels, label
            )
            out[token] = tuple(Excerpt.of(corpus, i, (token,), tokenizer) for i in chosen)
    rng, certain, size = np.random.default_rng(audit.seed), set(first), 0
    best = np.argmax(effects[:, types], axis=0).tolist()
    chosen_of = [
        _from_both_sides(rng.permutation(documents), counts.labels, label)
        for documents, label in zip(_documents_with_each(counts, types), best, strict=True)
    ]
    every = np.unique(np.concatenate([np.empty(0), *chosen_of])).astype(np.int64)
    texts = dict(
        zip(every.tolist(), corpus.texts.gather(every), strict=True)
    )  # at once: they may lie on a cluster
    for token, chosen in zip(wanted, chosen_of, strict=True):
        if size > 500_000 and token not in certain:
            continue
        places = _plain_matches([texts[i] for i in chosen], token, tokenizer)
        pairs = zip(chosen, places, strict=True)
        out[token] = tuple(Excerpt.of(corpus, i, (token,), tokenizer, place) for i, place in pairs)
        size += sum(len(one.before) + len(one.token) + len(one.after) for one in out[token])
    return out


def _plain_matches(
    texts: list[str], token: str, tokenizer: Tokenizer
) -> list[tuple[int, int] | None]:
    """The first place of plain words between plain signs, without the tokenizer, which takes milliseconds for a text."""
    out: list[tuple[int, int] | None] = [None] * len(texts)
    if not (
        isinstance(tokenizer, WordTokenizer)
        and tokenizer.pattern == WORD
        and tokenizer.html != "strip"
        and re.fullmatch(r"[A-Za-z]+(?:[' ][A-Za-z]+)*", token)
    ):
        return out
    signs = (
        r"\s!\"(),?“”«»–—…"  # what is certainly no part of a word, a number, an address or a tag
    )
    words, first = f"[{signs}]+".join(token.split(" ")), token.partition(" ")[0]
    rule = re.compile(
        rf"(?<![^{signs}]){words}(?=[{signs}]|\Z|\.(?:\s|\Z))", re.IGNORECASE * tokenizer.lowercase
    )
    for i, text in enumerate(texts):
        folded, at = text.lower() if tokenizer.lowercase else text, -1
        while (
            out[i] is None and len(folded) == len(text) and (at := folded.find(first, at + 1)) >= 0
        ):
            out[i] = (found := rule.match(text, at)) and found.span()
    return out


def _packed(meta: Json, arrays: Arrays | None = None) -> str:
    """A block (see the module) of JSON values and little-endian arrays of one dimension."""
    parts = {name: np.ascontiguousarray(x) for name, x in (arrays or {}).items()}
    listed = [[name, x.dtype.str[1:], len(x)] for name, x in parts.items()]
    head = json.dumps({**meta, "arrays": listed}, separators=(",", ":"), allow_nan=False).encode()
    planes = [
        x.view(np.uint8).reshape(len(x), x.itemsize).T.tobytes() for x in parts.values() if len(x)
    ]
    raw = b"".join([len(head).to_bytes(4, "little"), head, *planes])
    return b64encode(gzip.compress(raw, 6, mtime=0)).decode()


def _shortened(token: str) -> str:
    """A token as the page holds it."""
    return token if len(token) <= _LONGEST else token[:200]


def _rows_per_class(audit: InteractiveAudit) -> int:
    """How many rows of each class the page's table holds: 20,000 for all classes together, of two the second only."""
    classes = len(audit.classes)
    return min(20_000 // (classes if classes > 2 else 1), audit.tokens.height // classes)


def _positions_in(names: pl.Series, known: list[str]) -> NDArray[np.uint8]:
    return names.cast(pl.Enum(known)).to_physical().to_numpy().astype("u1")


def _table_block(audit: InteractiveAudit) -> tuple[str, Ints]:
    """The page's part of the token table (all types of class 0 come first there), and the types in it, sorted."""
    n, limit = audit.tokens.height // len(audit.classes), _rows_per_class(audit)
    viewed = range(
        len(audit.classes) == 2, len(audit.classes)
    )  # the first of two classes is the mirror of the second
    sides = {k: audit.tokens[k * n : (k + 1) * n].with_row_index("type") for k in viewed}
    rows = {k: _page_rows(audit, side, audit.classes[k], limit) for k, side in sides.items()}
    types = np.unique(
        np.concatenate([chosen["type"].to_numpy() for chosen in rows.values()])
    ).astype(np.int64)
    shared = audit.tokens[:n][types]
    kinds = {"documents": "<u4", "count": "<u4", "score": "<f4", "attention": "<f4"}
    arrays: Arrays = {name: shared[name].to_numpy().astype(kind) for name, kind in kinds.items()}
    arrays["quadrant"] = _positions_in(shared["quadrant"], list(QUADRANTS))
    views = []
    for k, chosen in rows.items():
        # the columns of one class, each row with the place of its type in `types`
        arrays[f"at.{k}"] = np.searchsorted(types, chosen["type"].to_numpy()).astype("<u4")
        kinds = {"class_documents": "<u4", "count_difference": "<i4"} | dict.fromkeys(
            _PER_CLASS, "<f4"
        )
        arrays |= {
            f"{name}.{k}": chosen[name].to_numpy().astype(kind) for name, kind in kinds.items()
        }
        arrays[f"category.{k}"] = _positions_in(chosen["category"], list(CATEGORIES))
        spread = float(sides[k]["effect"].abs().max() or 1.0)  # type: ignore[arg-type]
        views.append(
            {
                "class": k,
                "spread": spread,
                "bend": spread / _BEND,
                "bins": _bin_means(sides[k], spread),
            }
        )
    tokens = shared["token"].to_list()
    known = [
        audit.name,
        audit.classes,
        audit.documents,
        audit.class_documents,
        audit.token_types,
        audit.seed,
    ]
    elsewhere = (
        "units",
        "stability",
        "heterogeneity_q",
    )  # columns of tokens.csv that the page does not hold
    meta = {
        # under which a browser keeps what a reader decides: the same for the same data and settings
        "key": sha256(json.dumps(known).encode()).hexdigest()[:16],
        "label": audit.classes.index(audit.first_class),
        "classes": list(audit.classes),
        "classDocuments": [audit.class_documents[c] for c in audit.classes],
        "neutral": [audit.neutral[c] for c in audit.classes],
        "types": audit.token_types,
        "quadrants": QUADRANTS,
        "categories": list(CATEGORIES),
        "turned": [4, 3, 2, 1, 0, 5],  # the place of each category, for the class at the other side
        "perClass": _PER_CLASS,
        "columns": [name for name in audit.tokens.columns if name not in elsewhere],
        "tokens": [_shortened(t) for t in tokens],
        "shortened": [[i, len(t)] for i, t in enumerate(tokens) if len(t) > _LONGEST],
        "views": views,
    }
    return _packed(meta, arrays), types


def _page_rows(audit: InteractiveAudit, side: pl.DataFrame, label: str, limit: int) -> pl.DataFrame:
    """At most `limit` rows of one class: those that the page names elsewhere, the extreme ones, a sample of the rest."""
    if side.height <= limit:
        return side
    named = {*audit.top_tokens[label], *audit.disagreeing, *audit.maskable}
    sure = side.filter(pl.col("token").is_in(list(named)))[: limit // 4]
    rest = side.filter(~pl.col("type").is_in(sure["type"].to_list()))
    more = sample_with_extremes(
        rest, limit - sure.height, (*EXTREMES, "score", "value", "attention"), audit.seed
    )
    return pl.concat([sure, more]).sort("type")


def _bin_means(side: pl.DataFrame, spread: float) -> dict[str, list[Json]]:
    """Bin means over all types: "posterior_difference:value", … → rows; bins of effects are equal on the page's axis."""
    bend, end, x = spread / _BEND, math.log1p(_BEND), pl.col("x")
    effect = pl.col("effect")
    bent = side.with_columns(effect=effect.sign() * (effect.abs() / bend).log1p() / end)
    out = {}
    for up in ("value", "score"):
        out[f"posterior_difference:{up}"] = bins_of(side, "posterior_difference", up).to_dicts()
        bins = bins_of(bent, "effect", up).with_columns(
            x=x.sign() * bend * ((x.abs() * end).exp() - 1)
        )
        out[f"effect:{up}"] = bins.to_dicts()
    return out


def _model_block(audit: InteractiveAudit, vocabulary: Vocabulary, kept: Ints, tabled: Ints) -> str:
    """The model of the kept types, numbered in the order of the vocabulary: words, 2-grams, 3-grams, … For each level of n-grams,
    "first" has the steps between the (n−1)-grams that they begin with, and "last" their last words. Both are numbered among the
    kept types of their level, so that the former never decrease within a level. "place" has the position of each type in `tabled`.
    """
    model = audit.learned.model
    place = np.full(vocabulary.n_types, 2**32 - 1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    arrays: Arrays = {
        "score": model.scores[kept].astype("<f4"),
        "place": place[tabled].astype("<u4"),
    }
    arrays |= {f"value{k}": column.astype("<f4") for k, column in enumerate(model.values[kept].T)}
    base, size = 0, len(vocabulary.words)
    words = above = kept[kept < size]
    for n, keys in enumerate(vocabulary.grams, start=2):
        base, size = base + size, len(keys)
        level = kept[(kept >= base) & (kept < base + size)] - base
        first, last = np.divmod(keys[level], max(len(vocabulary.words), 1))
        arrays[f"first{n}"] = np.diff(np.searchsorted(above, first), prepend=0).astype("<u4")
        arrays[f"last{n}"] = np.searchsorted(words, last).astype("<u4")
        above = level
    features = describe_features(
        [vocabulary.formatting[i] for i in kept[kept >= vocabulary.n_words] - vocabulary.n_words]
    )
    # patterns in the syntax of JavaScript with its flag u: Unicode's classes by name
    syntax = [("\\d", r"\p{Nd}"), ("\\s", r"\p{White_Space}"), ("\\S", r"\P{White_Space}")]
    syntax += [("\\w", r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]")]
    for ours, theirs in syntax:
        features = [
            f | {"pattern": f["pattern"].replace(ours, theirs)} if "pattern" in f else f
            for f in features
        ]
    meta = {
        "left": vocabulary.n_types - len(kept),
        "tokenizer": _tokenizer_for_page(vocabulary),
        "levels": 1 + len(vocabulary.grams),
        "heads": model.values.shape[1],
        "prior": model.prior.tolist(),
        "sink": model.sink,
        "words": [vocabulary.words[i] for i in kept[kept < len(vocabulary.words)]],
        "features": features,
    }
    return _packed(meta, arrays)


def _tokenizer_for_page(vocabulary: Vocabulary) -> Json | None:
    """Settings of a tokenizer that the page can run; None where it cannot."""
    tokenizer = vocabulary.tokenizer
    usual = {"pattern": WORD, "html": "skip", "stop_words": []}  # all else the page can do
    if not isinstance(tokenizer, WordTokenizer) or not usual.items() <= tokenizer.to_dict().items():
        return None
    return {"lowercase": tokenizer.lowercase, "apostrophe": APOSTROPHE[4:], "skipped": SKIPPED[5:]}


def _documents_block(
    audit: InteractiveAudit, vocabulary: Vocabulary, documents: list[Json], kept: Ints, left: str
) -> str:
    """The sample documents with types as the page numbers them; and which types the page leaves out."""
    place = np.full(vocabulary.n_types + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    words, out = int(np.count_nonzero(kept < vocabulary.n_words)), []
    for one in documents:
        if "types" in one:
            features = place[one["features"]] - words
            one = one | {
                "types": place[one["types"]].tolist(),
                "features": features[features >= 0].tolist(),
            }
        out.append(one)
    return _packed({"documents": out, "test": audit.documents["test"], "left": left})


def _shortest_documents(audit: InteractiveAudit, size: Ints, fits: NDArray[np.bool_]) -> list[int]:
    """For the 600 types of most extreme effect, score or value: the two shortest test documents that contain them."""
    test, out = audit.learned.test.counts, list[int]()
    if audit.tokens.is_empty():
        return out
    sizes = (
        audit.tokens[by].abs().to_numpy().reshape(-1, test.n_types).max(axis=0)
        for by in ("effect", "score", "value")
    )
    ranks = [np.argsort(np.argsort(-largest, kind="stable")) for largest in sizes]
    for documents in _documents_with_each(
        test, np.argsort(np.min(ranks, axis=0), kind="stable")[:600]
    ):
        fitting = documents[fits[documents]]
        out += fitting[np.argsort(size[fitting], kind="stable")[:2]].tolist()
    return out


def _documents_with_each(counts: Counts, types: Ints) -> Iterator[Ints]:
    """For each type the documents that contain it, of some types at a time: many are common, and all at once are large."""
    ends = np.append(0, np.cumsum(counts.present[types].sum(axis=1)))
    for some in row_blocks(ends):
        yield from counts.holders(types[some])


def _from_both_sides(documents: Ints, labels: Ints, label: int) -> list[int]:
    """Twelve documents at most: half of the class, the others of the other classes in turn."""
    own = documents[labels[documents] == label]
    rest = documents[labels[documents] != label]
    turns = (
        pl.DataFrame({"class": labels[rest]})
        .select(pl.int_range(pl.len()).over("class"))
        .to_series()
        .to_numpy()
    )
    few = min(len(rest), max(LINES // 2, LINES - len(own)))
    return [*own[: LINES - few].tolist(), *rest[np.argsort(turns, kind="stable")][:few].tolist()]
