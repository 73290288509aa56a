"""What the script of the audit's page reads: the token table, the model and sample documents, packed and cut to a size.

A block is base64 of gzip of: the length of its JSON in 4 bytes (little-endian), the JSON, then each array that the JSON's
"arrays" names, as byte planes (all first bytes, all second bytes, …), which pack better. Base64 holds no character that
means anything in HTML.
"""

from __future__ import annotations

import gzip
import json
import math
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.auditing.agreement import QUADRANTS, Quadrant
from tokensieve.report.live.texts import lines, sample
from tokensieve.report.pictures.style import BLUE, CATEGORIES, DARK, GREY, ORANGE, PALE_BLUE
from tokensieve.report.points import bins_of, thin
from tokensieve.text.formatting import formatting_features
from tokensieve.text.tokenizers import APOSTROPHE, SKIPPED, WORD, WordTokenizer, text_series
from tokensieve.text.vocabulary import Vocabulary, tokenize

if TYPE_CHECKING:
    from tokensieve.auditing.findings import Excerpt
    from tokensieve.auditing.result import Audit

ROWS = 20_000  # of the token table, all classes together
LONGEST = 256  # characters of a token that the page holds whole
SHORTENED = 200  # of a longer one
NOWHERE = 2**32 - 1
ELSEWHERE = ("units", "stability", "heterogeneity_q")  # columns of tokens.csv that the page does not hold
BEND = 100.0  # the axis of effects is linear up to this part of the largest, and logarithmic beyond
SHARED = {"documents": "<u4", "count": "<u4", "score": "<f4", "attention": "<f4"}
PER_CLASS = (
    "posterior_low posterior_high alpha alpha_low alpha_high effect effect_low effect_high p_value q_value value"
).split()
EXTREMES = ("effect", "posterior_difference", "documents", "score", "value", "attention")


def _pack(meta: dict[str, Any], arrays: dict[str, NDArray[Any]] | None = None) -> str:
    """A block (see the module) of JSON values and little-endian arrays of one dimension."""
    parts = {name: np.ascontiguousarray(x) for name, x in (arrays or {}).items()}
    listed = [[name, x.dtype.str[1:], len(x)] for name, x in parts.items()]
    head = json.dumps({**meta, "arrays": listed}, separators=(",", ":"), allow_nan=False).encode()
    planes = [x.view(np.uint8).reshape(len(x), x.itemsize).T.tobytes() for x in parts.values() if len(x)]
    raw = b"".join([len(head).to_bytes(4, "little"), head, *planes])
    return b64encode(gzip.compress(raw, 6, mtime=0)).decode()


def data_blocks(audit: Audit, characters: int) -> dict[str, str]:
    """Name → data that the script reads; of the model as much as fits, together at most `characters`."""
    table, types = _table_block(audit)
    order = _model_order(audit)
    documents = _read_documents(audit)
    colours = CATEGORIES | dict(
        zip(QUADRANTS, (BLUE, PALE_BLUE, ORANGE, GREY, CATEGORIES["too rare to tell"]), strict=True)
    )
    blocks = {
        "table": table,
        "colours": _pack({"dark": DARK, "colours": colours}),
        "lines": _lines_block(audit),
        "documents": _documents_block(audit, documents, np.sort(order), "x" * 200),
    }
    left = characters - sum(map(len, blocks.values())) - 2_000  # for the tags around them
    blocks["model"], kept, note = _model_block(audit, order, types, left)
    blocks["documents"] = _documents_block(audit, documents, kept, note)
    return blocks


def _viewed_classes(audit: Audit) -> tuple[int, ...]:
    """The classes whose rows the page needs: the first of two is the mirror of the second."""
    return (1,) if len(audit.classes) == 2 else tuple(range(len(audit.classes)))


def rows_per_class(audit: Audit) -> int:
    """How many rows of each class the page's table holds."""
    return min(ROWS // len(_viewed_classes(audit)), audit.tokens.height // len(audit.classes))


def _table_block(audit: Audit) -> tuple[str, NDArray[np.int64]]:
    """The page's part of the token table (all types of class 0 come first there), and the types in it, sorted."""
    n, which = audit.tokens.height // len(audit.classes), _viewed_classes(audit)
    limit = rows_per_class(audit)
    first = audit.tokens[:n]
    sides = {k: audit.tokens[k * n : (k + 1) * n].with_row_index("type") for k in which}
    rows = {k: _chosen(audit, side, audit.classes[k], limit) for k, side in sides.items()}
    types = np.unique(np.concatenate([chosen["type"].to_numpy() for chosen in rows.values()])).astype(np.int64)
    shared = first[types]
    arrays: dict[str, NDArray[Any]] = {name: shared[name].to_numpy().astype(kind) for name, kind in SHARED.items()}
    arrays["quadrant"] = _codes(shared["quadrant"], QUADRANTS)
    views = []
    for k, chosen in rows.items():
        arrays |= _class_arrays(k, chosen, types)
        views.append(
            {"class": k, "spread": _spread(sides[k]), "bend": _spread(sides[k]) / BEND, "bins": _bins(sides[k])}
        )
    tokens = shared["token"].to_list()
    meta = {
        "key": _key(audit),
        "label": first_class(audit),
        "classes": list(audit.classes),
        "classDocuments": [audit.class_documents[c] for c in audit.classes],
        "neutral": [audit.neutral[c] for c in audit.classes],
        "types": audit.token_types,
        "quadrants": QUADRANTS,
        "categories": list(CATEGORIES),
        "turned": [4, 3, 2, 1, 0, 5],  # the place of each category, for the class at the other side
        "perClass": PER_CLASS,
        "columns": [name for name in audit.tokens.columns if name not in ELSEWHERE],
        "tokens": [_held(t) for t in tokens],
        "shortened": [[i, len(t)] for i, t in enumerate(tokens) if len(t) > LONGEST],
        "views": views,
    }
    return _pack(meta, arrays), types


def first_class(audit: Audit) -> int:
    """The class that the page begins with: of two the second, else that of the first finding that has one."""
    if len(audit.classes) == 2:
        return 1
    labels = [finding.label for finding in audit.findings if finding.label in audit.classes]
    return audit.classes.index(labels[0]) if labels else 0


def _held(token: str) -> str:
    """A token as the page holds it."""
    return token if len(token) <= LONGEST else token[:SHORTENED]


def _key(audit: Audit) -> str:
    """Under which a browser keeps what a reader decides: the same for the same data and settings."""
    known = [audit.name, audit.classes, audit.documents, audit.class_documents, audit.token_types, audit.seed]
    return sha256(json.dumps(known).encode()).hexdigest()[:16]


def _class_arrays(k: int, rows: pl.DataFrame, types: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The columns of one class, each row with the place of its type in `types`."""
    out: dict[str, NDArray[Any]] = {
        "at": np.searchsorted(types, rows["type"].to_numpy()).astype("<u4"),
        "class_documents": rows["class_documents"].to_numpy().astype("<u4"),
        "count_difference": rows["count_difference"].to_numpy().astype("<i4"),
        "category": _codes(rows["category"], tuple(CATEGORIES)),
    }
    out |= {name: rows[name].to_numpy().astype("<f4") for name in PER_CLASS}
    return {f"{name}.{k}": x for name, x in out.items()}


def _codes(names: pl.Series, known: tuple[str, ...]) -> NDArray[np.uint8]:
    return names.replace_strict(list(known), list(range(len(known))), return_dtype=pl.UInt8).to_numpy().astype("u1")


def _chosen(audit: Audit, side: pl.DataFrame, label: str, limit: int) -> pl.DataFrame:
    """At most `limit` rows of one class: those that the page names elsewhere, the extreme ones, a sample of the rest."""
    if side.height <= limit:
        return side
    tables = [audit.top(label, 25), *(audit.disagreement(q, 15) for q in (Quadrant.DATA, Quadrant.MODEL))]
    named = {token for table in tables for token in table["token"]} | {s[0] for s in audit.suspicious}
    sure = side.filter(pl.col("token").is_in(list(named)))[: limit // 4]
    rest = side.filter(~pl.col("type").is_in(sure["type"].to_list()))
    return pl.concat([sure, thin(rest, limit - sure.height, EXTREMES, audit.seed)]).sort("type")


def _spread(side: pl.DataFrame) -> float:
    """The end of the axis of effects, as the bins of `_bins` have it."""
    return float(side["effect"].abs().max() or 1.0) if side.height else 1.0  # type: ignore[arg-type]


def _bins(side: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Bin means over all types: "posterior_difference:value", … → rows; bins of effects are equal on the page's axis."""
    spread = _spread(side)
    bend = spread / BEND
    effect, end = pl.col("effect"), math.log1p(BEND)
    bent = side.with_columns(effect=effect.sign() * (effect.abs() / bend).log1p() / end)
    out = {}
    for up in ("value", "score"):
        out[f"posterior_difference:{up}"] = bins_of(side, "posterior_difference", up).to_dicts()
        x = pl.col("x")
        bins = bins_of(bent, "effect", up).with_columns(x=x.sign() * bend * ((x.abs() * end).exp() - 1))
        out[f"effect:{up}"] = bins.to_dicts()
    return out


def _lines_block(audit: Audit) -> str:
    """Keyword in context: all lines, and for each token the places of its own among them."""
    found = lines(audit)
    numbers: dict[Excerpt, int] = {}
    of = [[numbers.setdefault(one, len(numbers)) for one in of_token] for of_token in found.values()]
    place = {label: k for k, label in enumerate(audit.classes)}
    written = [[one.row, place[one.label], one.before, one.token, one.after] for one in numbers]
    return _pack({"tokens": [_held(token) for token in found], "of": of, "lines": written})


def _model_order(audit: Audit) -> NDArray[np.int64]:
    """Types by training documents, most first; of equals words before 2-grams before 3-grams.

    Cut anywhere, the list holds with every n-gram its words and its first n−1 words, since these are in at least as many
    documents. Types longer than `LONGEST` characters, and with them every n-gram that contains one, are not in it.
    """
    n = audit.tokens.height // len(audit.classes)
    first = audit.tokens[:n]
    order = np.argsort(-first["documents"].to_numpy().astype(np.int64), kind="stable")
    short = (first["token"].str.len_chars() <= LONGEST).to_numpy()
    kept: NDArray[np.int64] = order[short[order]]
    return kept


def _model_block(
    audit: Audit, order: NDArray[np.int64], tabled: NDArray[np.int64], budget: int
) -> tuple[str, NDArray[np.int64], str]:
    """As much of the model as fits into `budget` characters, most frequent types first.

    Args:
        audit: with its model.
        order: types, those to keep first in front (`_model_order`).
        tabled: types of the page's table, whose places in the model are written down.
        budget: characters.

    Returns:
        The block; the types in it, in the order of the vocabulary, by which the page numbers them; which types are left out.
    """
    documents = audit.tokens["documents"].to_numpy()
    size = len(order)
    while True:
        kept = np.sort(order[:size])
        block = _model(audit, kept, tabled)
        if len(block) <= budget or size == 0:
            break
        size = max(min(int(0.98 * size * budget / len(block)), size - 1), 0)  # the rest alone may exceed the budget
    notes = [f"those in {documents[order[size]]:,} training documents or fewer"] if size < len(order) else []
    if len(order) < len(documents) // len(audit.classes):
        notes.append(f"those longer than {LONGEST} characters")
    return block, kept, " and ".join(notes)


def _model(audit: Audit, kept: NDArray[np.int64], tabled: NDArray[np.int64]) -> str:
    """The model of some types, in the order of the vocabulary: words, 2-grams, 3-grams, …"""
    model = audit.model
    vocabulary = model.vocabulary_
    assert vocabulary is not None
    arrays: dict[str, NDArray[Any]] = {"score": model.scores_[kept].astype("<f4")}
    for k in range(model.values_.shape[1]):
        arrays[f"value{k}"] = model.values_[kept, k].astype("<f4")
    meta = {
        "left": vocabulary.n_types - len(kept),
        "tokenizer": _portable(vocabulary),
        "levels": 1 + len(vocabulary.grams),
        "heads": model.values_.shape[1],
        "prior": model.prior_.tolist(),
        "sink": model.sink_,
        "words": [vocabulary.words[i] for i in kept[kept < len(vocabulary.words)]],
        "features": _features(vocabulary, kept),
    }
    place = np.full(vocabulary.n_types, NOWHERE, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    arrays["place"] = place[tabled].astype("<u4")
    return _pack(meta, arrays | _grams(vocabulary, kept))


def _grams(vocabulary: Vocabulary, kept: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """For each level of n-grams: steps between the (n−1)-grams that they begin with, and their last words.

    Both are numbered among the kept ones of their level, so what an n-gram begins with never falls along a level.
    """
    out: dict[str, NDArray[Any]] = {}
    base, size = 0, len(vocabulary.words)
    level = kept[kept < size]
    number = np.zeros(max(size, 1), dtype=np.int64)
    number[level] = np.arange(len(level))
    above = number
    for n, keys in enumerate(vocabulary.grams, start=2):
        base, size = base + size, len(keys)
        level = kept[(kept >= base) & (kept < base + size)] - base
        first, last = np.divmod(keys[level], max(len(vocabulary.words), 1))
        out[f"first{n}"] = np.diff(above[first], prepend=0).astype("<u4")
        out[f"last{n}"] = number[last].astype("<u4")
        above = np.zeros(max(size, 1), dtype=np.int64)
        above[level] = np.arange(len(level))
    return out


def _features(vocabulary: Vocabulary, kept: NDArray[np.int64]) -> list[dict[str, Any]]:
    """How the page looks for the features of formatting among the kept types."""
    names = [vocabulary.formatting[i] for i in kept[kept >= vocabulary.n_words] - vocabulary.n_words]
    found = formatting_features(names)
    return [f | {"pattern": _javascript(f["pattern"])} if "pattern" in f else f for f in found]


def _javascript(pattern: str) -> str:
    """A pattern of `tokensieve.text.formatting` in the syntax of JavaScript with its flag u: Unicode's classes by name."""
    for ours, theirs in (("\\d", r"\p{Nd}"), ("\\s", r"\p{White_Space}"), ("\\S", r"\P{White_Space}")):
        pattern = pattern.replace(ours, theirs)
    return pattern.replace("\\w", r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]")


def _portable(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """Settings of a tokenizer that the page can run; None where it cannot."""
    tokenizer = vocabulary.tokenizer
    usual = {"pattern": WORD, "html": "skip", "stop_words": []}  # all else the page can do
    if not isinstance(tokenizer, WordTokenizer) or not usual.items() <= tokenizer.to_dict().items():
        return None
    return {"lowercase": tokenizer.lowercase, "apostrophe": APOSTROPHE[4:], "skipped": SKIPPED[5:]}


def _read_documents(audit: Audit) -> list[dict[str, Any]]:
    """The sample documents; where the page cannot split text, each with its words' places, types and formatting."""
    vocabulary, test = audit.model.vocabulary_, audit.learned.test
    assert vocabulary is not None
    chosen = sample(audit)
    documents: list[dict[str, Any]] = [
        {
            "row": int(test.corpus.rows[i]),
            "label": int(test.counts.labels[i]),
            "kind": kind,
            "text": str(test.corpus.texts[i]),
            "total": total,
            "answer": audit.learned.f[i].tolist(),
        }
        for i, kind, total in chosen
    ]
    if _portable(vocabulary) is not None or not documents:
        return documents
    texts = [one["text"] for one in documents]
    matrix = test.counts.matrix[[i for i, _, _ in chosen]]
    stream = tokenize(text_series(texts), vocabulary.tokenizer)
    types = vocabulary.positions(stream)
    for i, (entry, text) in enumerate(zip(documents, texts, strict=True)):
        held = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
        units = np.cumsum([0, *(1 + (ord(c) > 0xFFFF) for c in text)])
        entry["spans"] = [(int(units[a]), int(units[b])) for a, b, _ in vocabulary.tokenizer.spans(text)]
        entry["types"] = types[stream.starts[i] : stream.starts[i + 1]]
        entry["features"] = held[held >= vocabulary.n_words]
    return documents


def _documents_block(audit: Audit, documents: list[dict[str, Any]], kept: NDArray[np.int64], left: str) -> str:
    """The sample documents with types as the page numbers them; and which types the page leaves out."""
    vocabulary = audit.model.vocabulary_
    assert vocabulary is not None
    place = np.full(vocabulary.n_types + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    words = int(np.count_nonzero(kept < vocabulary.n_words))
    out = []
    for one in documents:
        entry = dict(one)
        if "types" in one:
            entry["types"] = place[one["types"]].tolist()
            features = place[one["features"]] - words
            entry["features"] = features[features >= 0].tolist()
        out.append(entry)
    return _pack({"documents": out, "test": audit.documents["test"], "left": left})
