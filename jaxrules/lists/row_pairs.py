"""A bound on rule lists from pairs of rows of two classes that few conditions tell apart. Imported
on first use (numba).

**Bound.** Pair rows of different classes, each row at most once. If a list classifies both rows of
a pair correctly, the first of its rules that holds on either holds on one of them alone, and has
its label: else both would get one label. Say that a condition *splits* the pair for that label. Let
P be the weight of the heaviest classes of all groups, M the number of pairs, and s_c the number
that condition c splits for the label for which it splits most. Then at least M - sum s_c rows are
wrong, and a list of k rules has an objective of at most

    P - M + the k greatest s_c - price_c.

After a prefix the same holds for the rows that it leaves, with the pairs of which it leaves both.
Equal rows are the pairs that nothing splits: this extends CORELS' bound by equivalent points. In a
group of several classes the heaviest has a lead over the next; only this lead is paired, in units.

**Which pairs** is a game: the pairs are many, and the conditions that split most of them are paid.
Some rows at a time are paired anew, where the average of the conditions that split most so far
(softmax) splits least (fictitious play). Every set of pairs proves a bound; the best one is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.lists.candidates import ListCandidates
from jaxrules.lists.prefix_kernels import RowPairs, no_pairs
from jaxrules.solvers.limits import never
from jaxrules.tools.bits import Words, n_words, unpack
from jaxrules.tools.compiling import from_python

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_jit: Any = from_python(error_model="numpy")

_MOST_ENTRIES = 1 << 31
"""The most conditions x groups: their transposed bits then take 256 MiB."""
_MOST_UNITS = 1 << 16
"""Rows that are paired; with more weight, a unit weighs more."""
_MOST_PARTNERS = 1 << 12
"""Partners that are compared in a round."""
_BLOCKS = 8
"""This fraction of the rows is paired anew in a round."""
_ROUNDS, _FEWER_ROUNDS, _FEWEST_ROUNDS = 48, 24, 6
_MANY_ENTRIES = 1 << 28
"""With more conditions x groups, where a round takes about .05 seconds, there are fewer rounds."""
_WORK, _OVERHEAD = 1 << 35, 1 << 10
"""A round takes time in proportion to conditions x (groups + overhead); this much for all rounds.
If there were only a few, they would prove too little: then there is none."""
_PATIENCE = 0.5
"""Pairs that cost this much more than they bring are given up."""
_PAID = 400
"""Conditions that are paid in a round, and that count in all."""


@_jit
def _by_group(covers: Words, rows: Words) -> None:
    """Fill the transposed bits, 64 x 64 at a time (Warren, Hacker's Delight, 7-3)."""
    block = np.empty(64, np.uint64)
    for first in range(0, len(covers), 64):
        for w in range(covers.shape[1]):
            for i in range(64):
                block[i] = covers[first + i, w] if first + i < len(covers) else np.uint64(0)
            j, mask = 32, np.uint64(0xFFFFFFFF)
            while j:
                shift, k = np.uint64(j), 0
                while k < 64:
                    swap = ((block[k] >> shift) ^ block[k + j]) & mask
                    block[k] ^= swap << shift
                    block[k + j] ^= swap
                    k = (k + j + 1) & ~j
                j >>= 1
                mask ^= mask << np.uint64(j)
            for i in range(64):
                rows[64 * w + i, first // 64] = block[i]


@_jit
def _splits(rows: Words, inside: Ints, outside: Ints, digits: Words) -> None:
    """The number of pairs of which each condition covers the row `inside` alone, in binary digits,
    (digits, words).
    """
    for p in range(len(inside)):
        for w in range(rows.shape[1]):
            carry, b = rows[inside[p], w] & ~rows[outside[p], w], 0
            while carry:
                digits[b, w], carry = digits[b, w] ^ carry, digits[b, w] & carry
                b += 1


@_jit
def _pair(
    worth: NDArray[np.float32], block: Ints, some: Ints, queue: Ints, place: Ints,
    now: NDArray[np.float32], partner: Ints, owner: Ints,
) -> None:  # fmt: skip
    """Give each row of a block the partner that is worth most more than in its pair `now`.

    A row that loses its partner comes again if it is of the block.

    Args:
        worth: of each row of the block with each of some partners.
        block, some: these rows, and partners.
        queue: the order of the rows of the block, and room for those that come again.
        place: of each row in the block, -1 if it is not there.
        partner, owner: of all rows, and of all partners; -1 for none. Both are changed.
    """
    t, n = 0, len(block)
    while t < n:
        b, best, most = queue[t], -1, 1e-6
        for j in range(len(some)):
            more = worth[b, j] - now[j]
            if more > most:
                best, most = j, more
        t += 1
        if best < 0:
            continue
        j, i = some[best], block[b]
        if owner[j] >= 0:
            partner[owner[j]] = -1
            if place[owner[j]] >= 0 and n < len(queue):
                queue[n] = place[owner[j]]
                n += 1
        owner[j], partner[i], now[best] = i, j, worth[b, best]


class _Game:
    """The rows, who is paired with whom, and what each condition splits."""

    def __init__(self, candidates: ListCandidates) -> None:
        c = self.candidates = candidates
        ascending = np.sort(c.counts, axis=1)
        lead, heaviest = ascending[:, -1] - ascending[:, -2], c.counts.argmax(axis=1)
        self.second_class = int(np.bincount(heaviest, lead, c.n_classes).argmax())
        least = float(lead[lead > 0].min(initial=np.inf))
        self.unit = max(least, float(lead.sum()) / _MOST_UNITS) if np.isfinite(least) else 1.0
        # a little less, so that rounding makes no row of nothing
        times = np.floor(lead / self.unit * (1 + 1e-13)).astype(np.int64)
        units = np.repeat(np.arange(c.n_groups), times)
        of_second = heaviest[units] == self.second_class
        self.first, self.second = units[~of_second], units[of_second]
        self.partner = np.full(len(self.first), -1)
        self.owner = np.full(len(self.second), -1)
        # which condition may have the label of the first, or the second
        others = np.arange(c.n_classes) != self.second_class
        self.may = np.stack([c.labels[:, others].any(axis=1), c.labels[:, self.second_class]])
        self.loads = np.zeros((2, len(c)))
        # at first the shortest conditions are paid alike
        shortest = (self.may & (c.prices == c.prices.min())).ravel()
        self.pay = shortest / max(1, shortest.sum())

    def counted(self, rows: Words, changed: Ints, partners: Ints) -> Floats:
        """How many of some pairs each condition splits, for both labels."""
        n, digits = len(self.candidates), len(changed).bit_length()
        pairs = self.first[changed], self.second[partners]
        result = np.empty((2, n))
        for side, (inside, outside) in enumerate((pairs, pairs[::-1])):
            found = np.zeros((max(1, digits), rows.shape[1]), np.uint64)
            _splits(rows, inside, outside, found)
            result[side] = (1 << np.arange(len(found))) @ unpack(found, n).astype(np.float64)
        return result * self.may

    def gains(self) -> Floats:
        """What a rule with each condition and label brings at most, in units."""
        return self.loads - self.candidates.prices / self.unit

    def bound(self, max_rules: int) -> float:
        gains = np.maximum(self.gains().max(axis=0), 0.0)
        few = np.partition(gains, max(0, len(gains) - max_rules))[-max_rules:]
        lost = float((self.partner >= 0).sum()) - float(few.sum())
        return float(self.candidates.counts.max(axis=1).sum()) - self.unit * lost

    def paid(self, step: int, max_rules: int) -> tuple[Ints, NDArray[np.bool_], Floats]:
        """The conditions that are paid on average, for which label, and how much: `max_rules` in
        all.
        """
        n, gains = len(self.candidates), self.gains().ravel()
        if step:
            best = np.argpartition(-gains, min(_PAID, len(gains)) - 1)[:_PAID]
            heat = max(1.0, 0.05 * float(gains[best].max()))
            pay = np.exp((gains[best] - gains[best].max()) / heat)
            share = max(2 / (step + 2), 0.03)
            self.pay *= 1 - share
            self.pay[best] += share / pay.sum() * pay
        best = np.argpartition(-self.pay, min(_PAID, len(gains)) - 1)[:_PAID]
        best = best[self.pay[best] > 0]
        return best % n, best >= n, self.pay[best] * (max_rules / self.pay[best].sum())

    def play(self, rows: Words, step: int, max_rules: int, rng: np.random.Generator) -> None:
        """Pair some rows anew."""
        conditions, for_second, pay = self.paid(step, max_rules)
        covered = self.candidates.covered(conditions) ^ for_second[:, None]
        there, weight = covered[:, self.first], pay.astype(np.float32)[:, None]
        size = max(16, len(self.first) // _BLOCKS)
        before, held = self.partner.copy(), np.flatnonzero(self.partner >= 0)
        split = there[:, held] & ~covered[:, self.second[self.partner[held]]]
        worth = np.zeros(len(self.second), np.float32)
        worth[self.partner[held]] = 1 - pay.astype(np.float32) @ split
        # Pairs that cost much more than they bring are given up, and some others are made anew
        bad = held[worth[self.partner[held]] < -_PATIENCE]
        free = rng.permutation(np.flatnonzero(self.partner < 0))
        taken = rng.permutation(held)
        n_free = min(len(free), max(size // 2, size - len(taken)))
        block = np.concatenate([free[:n_free], taken[: size - n_free]])
        left = np.concatenate([bad, taken[: size - n_free]])
        theirs = np.unique(self.partner[left])
        self.owner[theirs], self.partner[left], worth[theirs] = -1, -1, 0.0
        rest = np.ones(len(self.second), bool)
        rest[theirs] = False
        others, room = np.flatnonzero(rest), max(0, _MOST_PARTNERS - len(theirs))
        if len(others) > room:
            others = np.sort(rng.choice(others, room, replace=False))
        some = np.concatenate([theirs, others])
        outside = ~covered[:, self.second[some]]
        values = 1 - (there[:, block] * weight).T @ outside.astype(np.float32)
        n, place = len(block), np.full(len(self.partner), -1)
        place[block] = np.arange(n)
        queue = np.concatenate([rng.permutation(n), np.zeros(7 * n, np.int64)])
        _pair(
            values, block, some, queue, place, np.maximum(worth[some], 0.0), self.partner,
            self.owner,
        )  # fmt: skip
        changed = np.flatnonzero(before != self.partner)
        for partner, sign in ((before, -1), (self.partner, 1)):
            one = changed[partner[changed] >= 0]
            self.loads += sign * self.counted(rows, one, partner[one])

    def result(self, rows: Words, partner: Ints) -> RowPairs:
        some = np.flatnonzero(partner >= 0)
        first, second = self.first[some], self.second[partner[some]]
        n, words = len(self.candidates), n_words(len(some))
        one, other = (np.zeros((n, words), np.uint64) for _ in range(2))
        for groups, bits in ((first, one), (second, other)):
            back = np.zeros((64 * rows.shape[1], words), np.uint64)
            _by_group(rows[groups], back)
            bits[:] = back[:n]
        may = np.where(self.may, ~np.uint64(0), np.uint64(0))[:, :, None]
        return RowPairs(
            first, second, one & ~other & may[0], other & ~one & may[1], one | other, self.unit
        )


def paired(
    candidates: ListCandidates, max_rules: int, stopped: Callable[[], bool] = never
) -> tuple[RowPairs, float]:
    """Pairs for lists of at most so many rules, and the bound that they prove.

    Args:
        stopped: checked between rounds; the best pairs so far are returned.
    """
    game, rng = _Game(candidates), np.random.default_rng(0)
    best, pairs = float(candidates.counts.max(axis=1).sum()), game.partner.copy()
    large = len(candidates) * candidates.n_groups > _MOST_ENTRIES
    rounds = _FEWER_ROUNDS if candidates.n_groups * len(candidates) > _MANY_ENTRIES else _ROUNDS
    rounds = min(rounds, _WORK // max(1, len(candidates) * (candidates.n_groups + _OVERHEAD)))
    if large or rounds < _FEWEST_ROUNDS or not len(game.first) or not len(game.second):
        return no_pairs(), best
    rows = np.empty((64 * candidates.covers.shape[1], n_words(len(candidates))), np.uint64)
    _by_group(candidates.covers, rows)
    for step in range(rounds):
        if stopped():
            break
        game.play(rows, step, max_rules, rng)
        if (bound := game.bound(max_rules)) < best:
            best, pairs = bound, game.partner.copy()
    if not (pairs >= 0).any():
        return no_pairs(), best
    return game.result(rows, pairs), best
