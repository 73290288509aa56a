"""From which point a certified limit is proved.

The theorem (docs/theory.md, "What is proved from one point on") says that the flow from a point p₀
stays near the line p̂ log t + ρ' + z* for ever if an inequality holds. Two points are tried:

- the last point of the computed curve ("proved from this point on");
- a point further out on the predicted line ("proved attractor"): the limit exists and attracts an
  open set, and that the curve arrives there is computed.

`limit.inequality` finds radii for which the inequality holds in floating point, and
`limit.checker` proves it in ball arithmetic.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import FINITE, Flow, gradient_flow
from tokensieve.theory.limit.certify import FlowLimit
from tokensieve.theory.limit.inequality import Basin, Inequality, LinePlace

# Radii r that are tried. Below 0.05 the pushing terms alone exceed ½r² on text.
RADII = np.geomspace(0.02, 100.0, 45)
# log t of points on the predicted line that are tried, relative to the end of the curve.
LATER = np.geomspace(1.0, 1e4, 40)
# The search leaves this factor of the inequality to the rounding of both computations.
ENOUGH = 0.8
# More entries than this take more than a minute in ball arithmetic.
MOST_ENTRIES = 1_000_000
# What the curve itself is accurate to, in nats: its tied gaps may be set to z* if that moves them
# less.
CURVE_ACCURACY = 1e-3
# The curve is followed by this factor in log t at a time.
FURTHER = 1.15
# It is followed to this log t at most. ρ settles slowly where Ψ is nearly flat: on a sample of 300
# reviews (seed 223) the inequality holds from log t = 111 on.
FURTHEST = 300.0

Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Attempt:
    """A place beside the line and the radius that fits it best; `left` < `right` is the inequality.

    Attributes:
        radius: r; 0 if the conditions of the theorem fail for every r.
    """

    place: LinePlace
    radius: float
    left: float
    right: float

    @classmethod
    def at(cls, inequality: Inequality, place: LinePlace) -> Attempt:
        """The first radius for which the inequality holds, else the one that is nearest to it."""
        best = cls(place, 0.0, math.inf, 1.0)
        for radius in RADII.tolist():
            attempt = cls(place, radius, inequality.left(place, radius), radius**2 / 2)
            if attempt.left / attempt.right < best.left / best.right:
                best = attempt
            if best.holds:
                break
        return best

    @property
    def holds(self) -> bool:
        return self.left < ENOUGH * self.right and self.place.moved < CURVE_ACCURACY

    @property
    def failure(self) -> str:
        """Why it does not hold."""
        if not self.radius:
            return "unselected tokens have too much weight at the end of the curve"
        if self.left >= ENOUGH * self.right:
            sides = f"{self.left:.3g} is not below {self.right:.3g}"
            return f"at the end of the curve the inequality fails: {sides}"
        moved = f"{self.place.moved:.2g} away from equilibrium"
        return f"the tied gaps at the end of the curve are {moved}"

    def figures(self) -> dict[str, float]:
        """Ready for JSON."""
        figures = {
            "log_time": self.place.log_time,
            "radius": self.radius,
            "left": self.left,
            "right": self.right,
            "moved": self.place.moved,
        }
        return {name: value for name, value in figures.items() if math.isfinite(value)}

    def arrays(self, flow: Flow) -> Arrays:
        """The point and the radius, as the certificate states them."""
        return {
            "point": flow.whole(self.place.point) + flow.rest,
            "log_time": np.array(self.place.log_time),
            "radius": np.array(self.radius),
        }


def prove(
    limit: FlowLimit, counts: Counts, E: Floats, w: Floats, seconds: float = math.inf
) -> FlowLimit:
    """A certified limit with its certificate and the result of the proof.

    The proof is about exactly these embeddings, shape (|S|, d), and values, shape (|S|,). The curve
    is followed further, within `seconds` of wall time, if a later point of it may satisfy the
    inequality. `unproved` is why it is not proved from the last point of the curve on, and `proof`
    has the figures.
    """
    deadline = time.monotonic() + seconds
    limit = replace(limit, proved="", unproved="", proof={}, certificate={})
    face = limit.face
    finite = limit.finite
    balance = limit.balance
    if limit.fate == "not settled" or face is None or finite is None:
        return replace(limit, unproved="nothing is certified that could be proved")
    if finite.flat:
        return replace(limit, unproved="no minimum on a surface is strict")
    land = Landscape(counts, E if limit.flow.basis is None else E @ limit.flow.basis, w)
    basin = Basin.of(land, face, finite)
    limit = replace(limit, certificate=stated_limit(limit, basin, counts, E, w))
    if counts.matrix.nnz > MOST_ENTRIES:
        return replace(limit, unproved="too many entries for ball arithmetic")
    if balance is None:
        return prove_point(limit)
    inequality = Inequality(land, face, finite, balance, basin)
    with Flow.one_thread():
        limit = follow_further(limit, inequality, counts, E, w, deadline)
    return prove_divergence(limit, inequality)


def stated_limit(limit: FlowLimit, basin: Basin, counts: Counts, E: Floats, w: Floats) -> Arrays:
    """What the certificate states of the documents and the limit; a point is stated later."""
    flow = limit.flow
    face = limit.face
    balance = limit.balance
    assert face is not None
    assert limit.finite is not None
    nowhere = np.zeros(E.shape[1])
    arrays = {
        "indptr": counts.matrix.indptr,
        "indices": counts.matrix.indices,
        "counts": counts.matrix.data,
        "labels": counts.signs,
        "E": np.ascontiguousarray(E),
        "w": w,
        "selected": face.mask,
        "basis": basin.basis if flow.basis is None else basin.basis @ flow.basis.T,
        "z": flow.whole(limit.finite.z),
        "p_hat": nowhere,
        "rho": nowhere,
        "tight": np.zeros((0, 2), np.int64),
        "tube": np.array(basin.tube),
    }
    if balance is not None:
        arrays["p_hat"] = flow.whole(face.outside @ balance.direction)
        arrays["rho"] = flow.whole(face.outside @ balance.rho)
        arrays["tight"] = independent_pairs(balance.tight, face)
    return arrays


def independent_pairs(pairs: Ints, face: Face) -> Ints:
    """Types (s, r) of a spanning forest of some pairs of groups: their differences span the
    same."""
    root = np.arange(len(face.lead))
    edges = []
    for a, b in pairs.tolist():
        if root[a] != root[b]:
            root[root == root[b]] = root[a]
            edges.append((face.lead[a], face.lead[b]))
    return np.array(edges, np.int64).reshape(-1, 2)


def follow_further(
    limit: FlowLimit, inequality: Inequality, counts: Counts, E: Floats, w: Floats, deadline: float
) -> FlowLimit:
    """The limit with its curve followed until the inequality holds at its end, if that is soon."""
    flow = limit.flow
    changes = [change.log_time for change in limit.changes]
    if max(changes, default=0.0) > FURTHEST:
        return limit
    while not Attempt.at(inequality, inequality.beside(flow.coordinates[-1])).holds:
        log_time = float(flow.log_time[-1]) * FURTHER
        left = deadline - time.monotonic()
        if log_time > FURTHEST or left <= 0:
            return limit
        settings = replace(flow.settings, max_log_time=log_time, max_seconds=left)
        longer = gradient_flow(counts, E, w, flow.at(0), settings, after=flow)
        if longer.verdict == FINITE or longer.log_time[-1] < log_time - 1e-9:
            return limit
        flow = longer
    return replace(limit, flow=flow)


def prove_point(limit: FlowLimit) -> FlowLimit:
    """A limit in which every type keeps weight: from the last point on, or from the limit itself.

    No pair (X, r) is left, so that the inequality is 0 < ½r² for any r at any time.
    """
    flow = limit.flow
    anywhere = {"log_time": np.array(0.0), "radius": np.array(1.0)}
    from_last = with_point(limit, anywhere | {"point": flow.p})
    if not from_last.unproved:
        return replace(from_last, proved="from this point on")
    if flow.limit is None:
        return from_last
    from_limit = with_point(limit, anywhere | {"point": flow.limit})
    if from_limit.unproved:
        return from_last
    return replace(from_limit, unproved=from_last.unproved, proved="attractor")


def prove_divergence(limit: FlowLimit, inequality: Inequality) -> FlowLimit:
    """From the last point of the curve on if that holds, else from a later point of the line."""
    last = Attempt.at(inequality, inequality.beside(limit.flow.coordinates[-1]))
    limit = replace(limit, proof=last.figures(), unproved=last.failure)
    if last.holds:
        limit = with_point(limit, last.arrays(limit.flow))
        if not limit.unproved:
            return replace(limit, proved="from this point on")
    for log_time in (last.place.log_time * LATER).tolist():
        later = Attempt.at(inequality, inequality.on_line(log_time))
        if later.holds:
            break
    else:
        return replace(limit, certificate=limit.certificate | later.arrays(limit.flow))
    proved_later = with_point(limit, later.arrays(limit.flow))
    if proved_later.unproved:
        reason = f"{limit.unproved}; further out, {proved_later.unproved}"
        return replace(limit, certificate=proved_later.certificate, unproved=reason)
    figures = proved_later.proof | {"attractor_log_time": later.place.log_time}
    return replace(proved_later, proof=figures, unproved=limit.unproved, proved="attractor")


def with_point(limit: FlowLimit, stated: Arrays) -> FlowLimit:
    """The limit with a certificate of this point; `unproved` is why the checker refuses it."""
    limit = replace(limit, certificate=limit.certificate | stated)
    try:
        from tokensieve.theory.limit import checker
    except ImportError:
        return replace(limit, unproved="a proof needs ball arithmetic: pip install python-flint")
    try:
        proof = checker.check(limit.certificate)
    except checker.Refused as refusal:
        return replace(limit, unproved=str(refusal))
    figures = {name: value for name, value in vars(proof).items() if math.isfinite(value)}
    return replace(limit, unproved="", proof=limit.proof | figures)
