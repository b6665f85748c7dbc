"""SSRL: rule lists by sequence-submodular optimisation (Yang, Yang and Sun, KDD 2024). WIP core."""
from __future__ import annotations
from collections.abc import Callable, Sequence
import numpy as np
from jaxrules.lists.insertion import Examples, Insertion, best_insertion, gains_of


class Rules:
    """A rule list under construction: conditions, labels and covers."""

    def __init__(self, examples, penalty, conditions=(), labels=(), covers=()):
        self.examples, self.penalty = examples, penalty
        self.conditions, self.labels, self.covers = list(conditions), list(labels), list(covers)

    def __len__(self):
        return len(self.conditions)

    def copy(self):
        return Rules(self.examples, self.penalty, self.conditions, self.labels, self.covers)

    def first(self):
        m, n = len(self), self.examples.n_rows
        first = np.full(n, m)
        for k in range(m - 1, -1, -1):
            first[self.covers[k]] = k
        return first

    def objective(self):
        first = self.first()
        label = np.append(self.labels, self.examples.default).astype(int)[first]
        right = self.examples.counts[np.arange(len(first)), label].sum()
        return float(right - self.penalty * sum(map(len, self.conditions)))

    def insert(self, ins):
        self.conditions.insert(ins.position, ins.condition)
        self.labels.insert(ins.position, ins.label)
        self.covers.insert(ins.position, self.examples.cover(ins.condition))

    def without(self, *places):
        keep = [k for k in range(len(self)) if k not in places]
        return self.reordered(keep)

    def reordered(self, order):
        return Rules(self.examples, self.penalty, [self.conditions[k] for k in order], [self.labels[k] for k in order], [self.covers[k] for k in order])


def distorted_greedy(examples, penalty, nu, Rt, bound, solve):
    R = Rules(examples, penalty)
    ct = np.sum(Rt.covers, axis=0) if len(Rt) else np.zeros(examples.n_rows, int)
    isd = examples.counts[:, examples.default]
    mask = ct == 0 if bound == 2 else np.ones(examples.n_rows, bool)
    none = np.zeros(examples.n_rows, bool)
    for i in range(1, nu + 1):
        alpha = (1 - 1 / nu) ** (nu - i)
        first = R.first()
        found = solve(first, R.labels, alpha, mask)
        known = set(zip(R.conditions, R.labels))
        for c, l, cover in zip(Rt.conditions, Rt.labels, Rt.covers):
            if (c, l) in known:
                continue
            charge = isd[cover & (ct == 1)].sum() if bound == 1 else 0.0
            g = gains_of(cover, examples, first, R.labels, alpha, none)[:, l] - charge - penalty * len(c)
            k = int(g.argmax())
            if g[k] > (found.gain if found else 0.0):
                found = Insertion(float(g[k]), c, k, l)
        if found is None or found.gain <= 0:
            continue
        R.insert(found)
    return R


def local_search(R, nu, solve, rounds=3):
    f = R.objective()
    for _ in range(rounds):
        before = f
        j = 0
        while j < len(R):
            T = R.without(j)
            if T.objective() >= f:
                R, f = T, T.objective()
            else:
                j += 1
        for a in range(len(R)):
            for b in range(a + 1, len(R)):
                order = list(range(len(R)))
                order[a], order[b] = b, a
                T = R.reordered(order)
                if T.objective() > f + 1e-9:
                    R, f = T, T.objective()
        for j in [*range(len(R)), None]:
            if j is None and len(R) >= nu:
                continue
            if j is not None and j >= len(R):
                continue
            T = R.copy() if j is None else R.without(j)
            first = T.first()
            found = solve(first, T.labels, 1.0, first == len(T))
            if found and T.objective() + found.gain > f + 1e-9:
                T.insert(found)
                R, f = T, T.objective()
        if f <= before + 1e-9:
            break
    return R


def learn(examples, penalty, nu, max_length=8, width=36, log=None):
    calls = [0]
    def solve(first, labels, alpha, mask):
        calls[0] += 1
        return best_insertion(examples, first, labels, alpha=alpha, mask=mask, penalty=penalty, max_length=max_length, max_rules=nu, width=width)
    best = Rules(examples, penalty)
    t = 0
    while True:
        cands = [distorted_greedy(examples, penalty, nu, best, b, solve) for b in ((1, 2) if t else (1,))]
        top = max(cands, key=lambda r: r.objective())
        if log: log(("mm", t, [c.objective() for c in cands], calls[0]))
        if top.objective() <= best.objective() + 1e-9:
            break
        best = top
        t += 1
        if t > 6: break
    best = local_search(best, nu, solve)
    if log: log(("ls", best.objective(), calls[0]))
    return best
