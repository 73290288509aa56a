"""The certificate of a limit as two small files, so that a script without tokensieve can check (F1) to (F3)."""

from __future__ import annotations

import io
import json

import numpy as np

from tokensieve.files import Content
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.limit.certify import Fate, Limit


def certificate_files(counts: Counts, E: Floats, w: Floats, limit: Limit) -> dict[str, Content]:
    """certificate.npz (arrays) and certificate.json (what they mean); nothing where no limit is certified.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d).
        w: values, shape (|S|,).
        limit: the limit.
    """
    face, finite, balance = limit.face, limit.finite, limit.balance
    if limit.fate is Fate.UNDECIDED or face is None or finite is None:
        return {}
    basis = limit.flow.basis
    m = counts.matrix
    arrays = {
        "indptr": m.indptr,
        "indices": m.indices,
        "counts": m.data,
        "labels": counts.signs,
        "E": E,
        "w": w,
        "selected": face.mask,
        "z": finite.z if basis is None else basis @ finite.z,
    }
    meaning = {
        "indptr, indices, counts": "documents × token types, compressed rows: document X holds type s counts times",
        "labels": "y, ±1",
        "E, w": "embeddings after one step, and their products with v",
        "selected": "for each entry of the matrix, whether the type is in S_X",
        "z": "z*, the strict minimum of L_S on V = span{E_s − E_s' : s, s' ∈ S_X}",
    }
    if limit.direction is not None and balance is not None:
        rho = face.outside @ balance.rho
        arrays |= {"p_hat": limit.direction, "rho": rho if basis is None else basis @ rho}
        meaning |= {
            "p_hat": "p̂: p grows like p̂ log t, with margin one on every pair of a selected and another type of a document",
            "rho": "ρ*, the strict minimum of Ψ on the span of the tight pairs",
        }
        if limit.is_max_margin and limit.margin is not None:
            arrays |= {"pairs": limit.margin.pairs, "multipliers": limit.margin.multipliers}
            meaning["pairs, multipliers"] = "types (s, r) and λ ≥ 0 with p̂ = Σ λ (E_s − E_r) up to V: p̂ is the shortest"
    kept = io.BytesIO()
    np.savez_compressed(kept, **arrays)
    about = {
        "verdict": limit.fate,
        "reason": limit.reason,
        "is_max_margin": limit.is_max_margin,
        "dimension_v": face.dimension,
        "arrays": meaning,
    }
    return {
        "certificate.json": json.dumps(about, ensure_ascii=False, indent=1),
        "certificate.npz": kept.getvalue(),
    }
