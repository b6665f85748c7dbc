"""Local search for an L0-penalised additive model: which few columns, and with what weights.

The problem, over supports S and weights b of two-valued columns x_j:

    G = sum_i w_i loss(y_i, f_i) + gamma |S| + lambda mean_{j in S} p_j + sum_{j in S} r_j b_j^2 / 2
    f = b_0 + sum_{j in S} b_j x_j

where p_j, the coverage of column j, and r_j, its ridge, are constants. Without a ridge, this is
Problem 2 of LIRE (Kanamori, 2023) with the mean of |lsupp(x_n)| / |supp| over the rows written as
the mean coverage of the support; nothing here depends on rules. Columns are signed (-1, +1) or
binary (0, 1). Column 0 is all ones, the intercept: either always in the support and not penalised,
or penalised like the others but without a ridge. A support has a column of every required set,
which is penalised even with a weight of 0: a move may exchange the last one only for another of the
set.

Two kinds of moves (additions, drops and swaps) take turns until none improves:

- closed form, exponential loss only: the new column gets its best weight (Theorem 1, AdaBoost's
  step) while the others stay. With v = w+ + w-, d = w+ - w- and X_S the support, the products X_S
  diag(v) X' and X d give the loss after *every* move at once, exactly (`sweep`).
- full refit: all weights move. X_S diag(v) X' is also the Hessian of the refitted weights against
  all columns, so its inverse and Schur complements predict every move at once (`rank_moves`); the
  most promising ones are refitted (`refit`), and those that actually improve are taken.

Equal rows share one pattern. The large matrix is read as float32, to rank moves only; margins,
gradients, weights and the decision to accept are float64. The squared loss has a constant Gram
matrix, which is computed once, in float64; the rows are not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.lire.moves import (
    ONES,
    Charges,
    PatternData,
    Penalties,
    Reals,
    Sums,
    Support,
    rank_moves,
    rank_moves_by_gram,
    sums,
    sweep,
)  # fmt: skip
from jaxrules.ensembles.lire.objective import loss_terms, penalty
from jaxrules.ensembles.lire.problem import SMALL, Floats, Integers, SupportProblem
from jaxrules.ensembles.lire.refit import CONVERGED, Groups, group_patterns, regroup
from jaxrules.losses import exponential, merge_rows
from jaxrules.rules.rows import Activations
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.newton import newton_on_host
from jaxrules.solvers.linear.refit import step_within

_TRIALS = 8  # the number of moves refitted after a ranking
_TRIALS_SMALL = 128  # the same on small problems: refits are cheap, predictions less accurate
_QUICK = 16  # the same while a descent must show that it is promising
_KICKS = (2, 6)  # a perturbation moves at least 2 and fewer than 6 rules
_EXHAUSTIVE_MOVES = 600  # with at most this many moves, every one is refitted before giving up
FEW_PATTERNS = 512
"""With at most this many patterns, merging them for a refit takes longer than refitting on all."""
DROPPED_AT_ONCE = 0.15  # the largest share of the support that one move drops
_CONVERGED = 1e-8  # refits promise no larger decrease, relative to the same loss, or `CONVERGED`
_TOLERANCE = 1e-7  # smaller decreases, relative to the loss of the empty model, do not count


# The search


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A support with its refitted weights.

    Attributes:
        columns: indices into `SupportProblem.columns`, (size,); a free intercept is the first.
        weights: (size,).
        loss: mean loss plus ridge.
        objective: loss plus penalty.
        groups: the patterns that the support distinguishes; None for the squared loss.
    """

    columns: Integers
    weights: Floats
    loss: float
    objective: float
    groups: Groups | None = None


@dataclass
class SupportSearch:
    """Local search on one problem at one pair of penalties.

    Attributes:
        problem: the data.
        gamma, lam: the penalties on the support's size and on its mean coverage, at least 0.
        l2_penalty: the ridge, see `SupportProblem.ridge`.
        most: the largest size of the support, without a free intercept; None for no limit.
        stopped: asked between moves; the search returns its incumbent when this is True.
        observe: called with every new incumbent.
        moves: the number of moves left.
        certified: whether no addition, drop or swap improves the result of the last `descend`: all
            were refitted, or their predictions are exact.
        restarts: their number on small problems.
        falls: the lengths of sequences of falling ridges, see `descents`: neither long nor short
            steps are better on all problems.
        at_once: the number of restarts from one model, and of sequences, that are made together.
    """

    restarts: ClassVar[int] = 20
    falls: ClassVar[Sequence[int]] = (7, 13)
    at_once: ClassVar[int] = 1
    problem: SupportProblem
    gamma: float
    lam: float
    l2_penalty: float = 0.0
    most: int | None = None
    stopped: Callable[[], bool] = lambda: False
    observe: Callable[[Incumbent], None] = lambda incumbent: None
    moves: int = 1_000_000
    certified: bool = False

    def __post_init__(self) -> None:
        problem, most = self.problem, np.inf if self.most is None else self.most
        self.data = PatternData(problem.columns, problem.target, problem.mass)
        self.ridge = problem.ridge(self.l2_penalty)
        removable = (problem.counted > 0) & ~np.isin(np.arange(len(problem.counted)), problem.fixed)
        self.charges = Charges(
            problem.coverage, problem.counted, self.ridge, *problem.ends, problem.addable, removable
        )
        self.gram = None if problem.gram is None else problem.gram + np.diag(self.ridge)
        self.terms = Penalties(self.gamma, self.lam, most)
        self._summed: tuple[Incumbent, Floats, Sums] | None = None
        # Supports that no trial improved: the number of trials, and whether that is certified
        self._stuck: dict[bytes, tuple[int, bool]] = {}
        self._trials = _TRIALS_SMALL if problem.size <= SMALL else _TRIALS
        self._converged = CONVERGED
        # Of rare classes, the whole loss may be as small as what refits leave.
        self._converged = min(CONVERGED, max(_CONVERGED * abs(self.start_empty().loss), 1e-15))
        self._tolerance = _TOLERANCE * self.start_empty().loss

    def start_empty(self) -> Incumbent:
        """The model without rules: only the best intercept, or nothing if the intercept is
        penalised.
        """
        intercept = np.arange(1 if self.problem.free_intercept else 0)
        return self.refit(intercept, np.zeros(len(intercept)))

    def start_from(self, columns: Integers, weights: Floats) -> Incumbent:
        """The support of these columns, refitted; the intercept is added if it is free."""
        if self.problem.free_intercept and ONES not in columns:
            columns = np.append(ONES, columns)
            weights = np.concatenate([np.zeros((1, *weights.shape[1:])), weights])
        return self.refit(columns, weights)

    def complete(self, start: Incumbent) -> Incumbent:
        """Add a column of every required set that has none in the support: the best one to second
        order, the others fixed. This needs no ranking of moves.
        """
        problem, best = self.problem, start
        while (absent := ~problem.required[:, best.columns].any(axis=1)).any():
            joining = np.flatnonzero(problem.required[absent].any(axis=0) & problem.addable)
            margins = problem.entries(best.columns) @ best.weights
            gain = self.gains_alone(joining, margins)
            size = problem.counted[best.columns].sum()
            covered = problem.coverage[best.columns].sum()
            price = penalty(size + 1, covered + problem.coverage[joining], self.gamma, self.lam)
            columns = np.append(best.columns, joining[np.argmin(price - gain)])
            best = self.refit(columns, _with_zeros(best.weights, 1), near=best)
        return best

    def gains_alone(self, joining: Integers, margins: Floats) -> Floats:
        """How far columns that join alone lower the loss, to second order, if only the intercept
        follows, shape (joining,).
        """
        problem = self.problem
        _, slope, curvature = loss_terms(problem.loss, problem.target, problem.mass, margins)
        gain, downhill = gain_alone(problem, joining, slope, curvature, self.l2_penalty)
        charges = self.charges
        helps = np.where(downhill > 0, charges.most[joining] > 0, charges.least[joining] < 0)
        return np.where(helps, gain, 0.0)

    def needed(self, columns: Integers, weights: Floats) -> NDArray[np.bool_]:
        """Which columns of a support count: those with a weight and, for required sets without one,
        the first.
        """
        needed = weights != 0
        for serves in self.problem.required[:, columns]:
            if not (serves & needed).any():
                needed |= serves & (np.cumsum(serves) == 1)
        return needed

    def fits(self, incumbent: Incumbent) -> bool:
        """Whether the support is no larger than allowed."""
        return self.most is None or bool(self.problem.counted[incumbent.columns].sum() <= self.most)

    def keeps(self, columns: Integers) -> bool:
        """Whether a support has a column of every required set."""
        return bool(self.problem.required[:, columns].any(axis=1).all())

    def _leaving(self, columns: Integers, order: Integers) -> Integers:
        """The slots that may leave together, chosen greedily in this order."""
        serves, leaving = self.problem.required[:, columns], []
        left = serves.sum(axis=1)
        for slot in order.tolist():
            if (left[serves[:, slot]] > 1).all():
                leaving.append(slot)
                left -= serves[:, slot]
        return np.array(leaving, np.int64)

    def thin_out(self, start: Incumbent) -> Incumbent:
        """Drop columns that are not worth their penalty, one after another. This needs no ranking
        of moves.
        """
        best = start = self.complete(start)
        free = (start.columns != ONES) & ~np.isin(start.columns, self.problem.fixed)
        for column in start.columns[free]:
            if self.stopped():
                break
            kept = best.columns != column
            if not self.keeps(best.columns[kept]):
                continue
            fewer = self.refit(best.columns[kept], best.weights[kept], best.objective, near=best)
            best = fewer if fewer.objective < best.objective else best
        return best

    @one_blas_thread()
    def descend(self, start: Incumbent, promising: float = np.inf) -> Incumbent:
        """Closed-form moves and refit moves in turn, until neither improves.

        Args:
            promising: if finite, the descent starts with a few refit moves, and ends unless they
                lead below this objective.
        """
        self.certified = False
        best = self._shrink(self.complete(start))
        self.observe(best)
        if promising < np.inf:
            thorough, self._trials = self._trials, min(_QUICK, self._trials)
            best, self._trials = self._refit_moves(best), thorough
            if best.objective >= promising:
                self.certified = False
                return best
        while True:
            if self.problem.loss == exponential:
                best = self._closed_form_moves(best)
            moved = self._refit_moves(best)
            if self._over() or self.problem.loss != exponential or moved is best:
                return moved
            best = moved

    @one_blas_thread()
    def refit(
        self,
        columns: Integers,
        weights: Floats,
        goal: float = -np.inf,
        near: Incumbent | None = None,
    ) -> Incumbent:
        """The best weights of a support, from a first guess; abandoned early if `goal` is out of
        reach.

        Fixed columns join it. Columns whose only helpful sign is forbidden leave it, unless they
        are fixed (then their weight is 0, without a penalty) or required (see `needed`).

        Args:
            near: a similar support, whose groups save work.
        """
        problem, groups = self.problem, None
        if len(problem.fixed) and len(absent := np.setdiff1d(problem.fixed, columns)):
            columns, weights = np.append(columns, absent), _with_zeros(weights, len(absent))
        least, most = self.charges.least[columns], self.charges.most[columns]
        price = problem.penalty(columns, self.gamma, self.lam)
        if self.gram is not None and problem.moment is not None:
            weights, loss = self._least_squares(self.gram, problem.moment, columns, least, most)
        else:
            groups = self._groups(columns, near)
            target, mass, within, member = problem.target, problem.mass, 0.0, None
            if len(mass) > FEW_PATTERNS:
                member = groups.member
                rows = target, mass, groups.group, len(member)
                target, mass, within = merge_rows(problem.loss, *rows)
            known = problem.constant + within  # which no weights change
            out_of_reach = np.inf if goal == -np.inf else goal - price - known
            entries, ridge = problem.entries(columns, member).T, self.ridge[columns]
            weights, loss = newton_on_host(
                problem.loss, entries, target, mass, ridge, weights, ends=(least, most),
                relative=0.0, absolute=self._converged, goal=out_of_reach,
            )  # fmt: skip
            loss += within
        needed = self.needed(columns, weights) | (columns == ONES)
        price = problem.penalty(columns[needed], self.gamma, self.lam)
        if problem.signs is not None:
            stay = needed | np.isin(columns, problem.fixed)
            columns, weights = columns[stay], weights[stay]
        loss += problem.constant
        return Incumbent(columns, weights, loss, loss + price, groups)

    def _least_squares(
        self, gram: Floats, moment: Floats, columns: Integers, least: Floats, most: Floats
    ) -> tuple[Floats, float]:
        """The weights of a support for the squared loss, and the loss, with the ridge on the
        diagonal of `gram`; equal columns share their weight.
        """
        on_support, along = gram[np.ix_(columns, columns)], moment[columns]
        ridge = 1e-10 * max(float(np.diagonal(gram).max()), 1e-300) * np.eye(len(columns))
        weights = np.asarray(np.linalg.solve(on_support + ridge, along), np.float64)
        if (weights < least).any() or (weights > most).any():
            weights = step_within(on_support + ridge, -along, np.array([least, most]))
        loss = self.problem.squares - weights @ along + weights @ on_support @ weights / 2
        return weights, max(float(loss), 0.0)

    def perturb(self, best: Incumbent, rng: np.random.Generator, exchange: bool) -> Incumbent:
        """`best` with a few of its rules dropped, or exchanged for others, all at random."""
        rules = np.flatnonzero((best.columns != ONES) & ~np.isin(best.columns, self.problem.fixed))
        leaving = rng.choice(rules, min(int(rng.integers(*_KICKS)), len(rules)), replace=False)
        columns = np.delete(best.columns, leaving)
        weights = np.delete(best.weights, leaving, axis=0)
        if exchange:
            outside = np.flatnonzero(self.problem.addable & (self.problem.origin >= 0))
            outside = np.setdiff1d(outside, best.columns)
            entering = rng.choice(outside, min(len(leaving), len(outside)), replace=False)
            columns = np.append(columns, entering)
            weights = _with_zeros(weights, len(entering))
        return self.refit(columns, weights, near=best)

    def _groups(self, columns: Integers, near: Incumbent | None) -> Groups:
        n_patterns = self.problem.activations.n_patterns
        if n_patterns <= FEW_PATTERNS:
            return Groups(np.arange(n_patterns), np.arange(n_patterns))
        rules = columns[columns != ONES]
        if near is None or near.groups is None:
            return group_patterns(self.problem.holds(rules))
        kept = np.isin(rules, near.columns)
        stay = rules[kept]
        leave = len(stay) < np.count_nonzero(near.columns != ONES)
        stayed = self.problem.holds(stay)[:, near.groups.member] if leave else None
        return regroup(near.groups, stayed, self.problem.holds(rules[~kept]))

    def _sums(self, best: Incumbent) -> tuple[Floats, Sums]:
        """The margins and the sums over patterns, with which both kinds of moves start."""
        if self._summed is None or self._summed[0] is not best:
            assert best.groups is not None  # not of the squared loss
            member, group = best.groups
            margins = (self.problem.entries(best.columns, member) @ best.weights)[group]
            found = sums(self.data, best.columns, margins, self.problem.loss, self.problem.encoding)
            self._summed = best, margins, found
        return self._summed[1:]

    def _over(self) -> bool:
        return self.moves <= 0 or self.stopped()

    def _accept(self, incumbent: Incumbent) -> Incumbent:
        self.moves -= 1
        self.observe(incumbent)
        return incumbent

    def _closed_form_moves(self, best: Incumbent) -> Incumbent:
        """Sweeps of moves whose new rule has the weight of Theorem 1, each with a refit, until none
        is taken.
        """
        while not self._over():
            margins, summed = self._sums(best)
            swept, taken = sweep(
                self.data, summed, self._charges_of(best), Support(best.columns, best.weights),
                margins, self.terms, self._tolerance, self.problem.encoding,
            )  # fmt: skip
            if taken == 0:
                break
            moved = self.refit(*swept, near=best)
            if moved.objective > best.objective - self._tolerance:
                break
            best = self._accept(moved)
        return best

    def _charges_of(self, best: Incumbent) -> Charges:
        """The charges for a sweep, which takes many moves at once: the heaviest column of every
        required set must stay.
        """
        if not len(self.problem.required):
            return self.charges
        removable = self.charges.removable.copy()
        for serves in self.problem.required[:, best.columns]:
            removable[best.columns[np.where(serves, np.abs(best.weights), -1.0).argmax()]] = False
        return self.charges._replace(removable=removable)

    def _refit_moves(self, best: Incumbent) -> Incumbent:
        """Rank all moves by their predicted objective after a full refit and take the good ones,
        until there are none.
        """
        while not self._over():
            trials, certified = self._stuck.get(key := np.sort(best.columns).tobytes(), (0, False))
            if trials >= self._trials:  # an earlier descent ended here
                self.certified = certified
                break
            moves = self._rank(best)
            fewer = self._drop_many(best, moves)
            better = self._accept(fewer) if fewer else self._take_good_moves(best, moves)
            if better is best:
                if not self._over():
                    self._stuck[key] = self._trials, self.certified
                break
            best = better
        return best

    def _rank(self, best: Incumbent) -> Moves:
        """The objective of every move with all weights refitted, predicted to second order; exact
        for the squared loss.
        """
        problem, support = self.problem, Support(best.columns, best.weights)
        if self.gram is not None and problem.moment is not None:
            sums_of = self.gram, problem.moment, problem.squares
            ranked = rank_moves_by_gram(*sums_of, self.charges, support, self.terms)
        else:
            _, summed = self._sums(best)
            ranked = rank_moves(summed, self.charges, support, self.terms, problem.loss)
        (drop, add, swap, inverse), base = ranked, problem.constant
        return self._keeping(best, Moves(drop + base, add + base, swap + base, inverse))

    def _keeping(self, best: Incumbent, moves: Moves) -> Moves:
        """The moves without those that leave a required set without a column."""
        required = self.problem.required
        serves = required[:, best.columns]
        for column_set, slot in np.argwhere(serves & (serves.sum(axis=1, keepdims=True) == 1)):
            # The last one of the set
            moves.drop[slot], moves.swap[slot, ~required[column_set]] = np.inf, np.inf
        return moves

    def _drop_many(self, best: Incumbent, moves: Moves) -> Incumbent | None:
        """Drop several columns whose removal is predicted to improve the objective; half as many if
        that fails.
        """
        goal = best.objective - self._tolerance
        pays = np.flatnonzero(moves.drop < np.float64(goal))  # perhaps beyond float32
        pays = self._leaving(best.columns, pays[np.argsort(moves.drop[pays], kind="stable")])
        count = min(len(pays), int(DROPPED_AT_ONCE * len(best.columns)))
        while count >= 2 and not self.stopped():
            kept = np.setdiff1d(np.arange(len(best.columns)), pays[:count])
            fewer = self.refit(best.columns[kept], best.weights[kept], goal, near=best)
            if fewer.objective < goal:
                return fewer
            count //= 2
        return None

    def _take_good_moves(self, ranked: Incumbent, moves: Moves) -> Incumbent:
        """Refit the most promising moves in turn, and accept every one that improves.

        After the first accepted move, only moves that were predicted to improve and are still
        possible are tried.
        """
        self.certified = False
        best = ranked
        exact = self.gram is not None and self.problem.signs is None  # by a quadratic loss
        flat = np.concatenate([moves.drop, moves.add, moves.swap.ravel()])
        possible = int(np.isfinite(flat).sum())
        exhaustive = possible <= _EXHAUSTIVE_MOVES
        count = possible if exhaustive else min(self._trials, possible)
        order = np.argpartition(flat, min(count, len(flat) - 1))[:count]
        order = order[np.argsort(flat[order], kind="stable")]
        improving = ranked.objective - self._tolerance
        near = improving if exact else ranked.objective + 0.25 * self.gamma + 1e3 * self._tolerance
        for move in order.tolist():
            limit = np.inf if exhaustive and not exact else near
            limit = limit if best is ranked else improving
            if self._over():
                return best
            if flat[move] > limit:
                break
            changed = _apply(ranked, best, moves, move, self.problem.counted, self.most)
            if changed is None or not self.keeps(changed[0]):
                continue
            goal = best.objective - self._tolerance
            moved = self.refit(*changed, goal, near=best)
            if moved.objective < goal:
                best = self._accept(moved)
        self.certified = best is ranked and (exact or exhaustive)
        return best

    def _shrink(self, start: Incumbent) -> Incumbent:
        """Drop the least useful columns until the support is no larger than allowed."""
        while self.most is not None and not self.fits(start):
            excess = int(self.problem.counted[start.columns].sum()) - self.most
            removable = np.isfinite(drop := self._rank(start).drop).sum()
            count = min(excess, max(1, int(DROPPED_AT_ONCE * removable)))
            leaving = self._leaving(start.columns, np.argsort(drop, kind="stable")[:removable])
            kept = np.setdiff1d(np.arange(len(drop)), leaving[:count])
            start = self.refit(start.columns[kept], start.weights[kept], near=start)
        return start


class Moves(NamedTuple):
    """Predicted objectives of single moves, and the inverse Hessian on the support, of each class
    if several are fitted together.
    """

    drop: Reals  # (size,)
    add: Reals  # (columns,)
    swap: Reals  # (size, columns)
    inverse: Floats  # (size, size), or (classes, size, size)


def _apply(
    ranked: Incumbent, now: Incumbent, moves: Moves, move: int, counted: Floats, most: int | None
) -> tuple[Integers, Floats] | None:
    """The support after a move and a first guess of its weights; None if the move is no longer
    possible.

    Args:
        ranked: the support that was ranked, whose slots the moves refer to.
        now: the support as it is now.
        move: index into drops, additions and swaps.
    """
    size, n_columns = moves.swap.shape
    slot, entering = move, -1
    if move >= size + n_columns:
        slot, entering = divmod(move - size - n_columns, n_columns)
    elif move >= size:
        slot, entering = -1, move - size
    columns, weights = now.columns, now.weights
    if entering in columns:
        return None
    if slot >= 0:
        if now is ranked:  # the other weights, refitted to second order without b_k
            inverse = moves.inverse
            weights = weights - inverse[..., slot].T * (weights[slot] / inverse[..., slot, slot])
        kept = columns != ranked.columns[slot]
        if kept.all():
            return None
        columns, weights = columns[kept], weights[kept]
    if entering < 0:
        return columns, weights
    columns = np.append(columns, entering)
    if most is not None and counted[columns].sum() > most:
        return None
    return columns, _with_zeros(weights, 1)


def _with_zeros(weights: Floats, number: int) -> Floats:
    """The weights of a support and zeros for this number of columns more."""
    return np.concatenate([weights, np.zeros((number, *weights.shape[1:]))])


def gain_alone(
    problem: SupportProblem, joining: Integers, slope: Floats, curvature: Floats, l2_penalty: float
) -> tuple[Floats, Floats]:
    """g^2 / 2h for 0/1 columns that join alone, and their slopes g, shape (joining,) each.

    Args:
        slope, curvature: of every pattern, downhill.
    """
    held = Activations(problem.activations.bits[joining - 1], problem.activations.pattern)
    downhill, curved = held.covered(slope), held.covered(curvature)
    curved -= curved**2 / max(float(curvature.sum()), 1e-300)  # the intercept follows
    return downhill**2 / np.maximum(curved + l2_penalty / problem.total, 1e-12) / 2, downhill
