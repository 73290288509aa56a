"""Check the certificate of a limit without tokensieve: python check_certificate.py certificate.npz"""

import sys

import numpy as np

c = np.load(sys.argv[1])
E, w, z, y = c["E"], c["w"], c["z"], c["labels"]
rows = [slice(*ends) for ends in zip(c["indptr"][:-1], c["indptr"][1:], strict=True)]
tied, apart, basis = [], [], []
for row in rows:
    types, chosen = c["indices"][row], c["selected"][row]
    if len(types):
        s = types[chosen]
        basis += [E[other] - E[s[0]] for other in s[1:]]
        tied.append((s, c["counts"][row][chosen]))
        apart += [
            (len(tied) - 1, s[0], r, count)
            for r, count in zip(types[~chosen], c["counts"][row][~chosen], strict=True)
        ]
y = y[[row.stop > row.start for row in rows]]
V = np.zeros((E.shape[1], 0))
if basis:
    left, sizes, _ = np.linalg.svd(np.array(basis).T, full_matrices=False)
    V = left[:, sizes > 1e-12 * sizes[0]]

# (F1): the loss with every softmax restricted to S_X has zero gradient and a positive Hessian on V.
slope, H, answers, totals = np.zeros(V.shape[1]), np.zeros((V.shape[1],) * 2), [], []
for (s, count), label in zip(tied, y, strict=True):
    weight = count * np.exp(E[s] @ z)
    q, A = weight / weight.sum(), E[s] @ V
    f = q @ w[s]
    t, sigma = q * (w[s] - f), 1 / (1 + np.exp(label * f))
    slope += -label * sigma * (t @ A) / len(y)
    bend = A.T @ (t[:, None] * A) - np.outer(q @ A, t @ A) - np.outer(t @ A, q @ A)
    H += (sigma * (1 - sigma) * np.outer(t @ A, t @ A) - label * sigma * bend) / len(y)
    answers.append(f)
    totals.append(weight.sum())
curvature = np.linalg.eigvalsh(H).min(initial=np.inf)
print(f"F1: gradient {np.abs(slope).max(initial=0.0):.1e}, smallest curvature {curvature:.3g}")
strict = curvature > 1e-13 * np.abs(H).max(initial=0.0)
# Not strict, but no prediction is better: the same tokens, predicted at the frequency of their labels.
groups = {}
for (s, count), label, f in zip(tied, y, answers, strict=True):
    if np.ptp(w[s]) > 0:
        groups.setdefault((*s, *count), (f, []))[1].append(label > 0)
best = [
    0 < np.mean(said) < 1 and abs(np.mean(said) - 1 / (1 + np.exp(-f))) < 1e-9
    for f, said in groups.values()
]
good = (strict or all(best)) and np.abs(slope).max(initial=0.0) < 1e-9
if "p_hat" in c:
    # (F2'): p̂ is across V, with margin one on every pair of a selected and another type of a document.
    p, rho, n = c["p_hat"], c["rho"], len(y)
    margins = np.array([(E[s] - E[r]) @ p for _, s, r, _ in apart])
    # Where the forces on a token cancel (checked below), its margin only has to be positive.
    idle = c["idle"][~c["selected"]]
    print(
        f"F2: smallest margin {margins[~idle].min():.12f}, part of p̂ in V {np.linalg.norm(V.T @ p):.1e}"
    )
    good &= (
        margins[~idle].min() > 1 - 1e-6
        and margins.min() > 0
        and np.linalg.norm(V.T @ p) < 1e-6 * np.linalg.norm(p)
    )
    if (
        "pairs" in c
    ):  # (F2): p̂ is a sum of such differences with multipliers ≥ 0, so that no shorter vector has these margins.
        built = (E[c["pairs"][:, 0]] - E[c["pairs"][:, 1]]).T @ c["multipliers"]
        short = np.linalg.norm(built - V @ (V.T @ built) - p) / np.linalg.norm(p)
        print(
            f"F2: p̂ from its multipliers {short:.1e}, smallest multiplier {c['multipliers'].min():.1e}"
        )
        good &= short < 1e-6 and c["multipliers"].min() >= 0
    # (F3): the forces of the tight pairs at ρ* add up to p̂, and the Hessian is positive on their span.
    D, K, forces = [], [], {}
    for (x, s, r, count), margin, no_force in zip(apart, margins, idle, strict=True):
        pull = y[x] * (answers[x] - w[r]) / (1 + np.exp(y[x] * answers[x]))
        strength = pull * count * np.exp(E[r] @ z) / (n * totals[x])
        if no_force:
            forces.setdefault((s, r), []).append(strength)
        elif margin <= 1 + 1e-6:
            D.append((E[s] - E[r]) - V @ (V.T @ (E[s] - E[r])))
            K.append(strength)
    good &= all(abs(np.sum(some)) <= 1e-8 * np.abs(some).sum() for some in forces.values())
    D, force = np.array(D), np.array(K) * np.exp(-np.array(D) @ rho)
    left, sizes, _ = np.linalg.svd(D.T, full_matrices=False)
    B = D @ left[:, sizes > 1e-9 * sizes[0]]
    balance, curvature = (
        np.linalg.norm(force @ D - p) / np.linalg.norm(p),
        np.linalg.eigvalsh(B.T * force @ B).min(),
    )
    print(f"F3: residual {balance:.1e}, smallest curvature {curvature:.3g}")
    good &= balance < 1e-6 and curvature > 0
print("certified" if good else "NOT certified")
sys.exit(not good)
