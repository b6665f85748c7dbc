"""The restricted master problem: the candidates so far, and the solution over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.glrm.outputs import Solved
from jaxrules.ensembles.glrm.problem import GlrmProblem, Rule, Start
from jaxrules.ensembles.l1_ensemble import permitted
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]

_DEBIASED_PENALTY = 1e-6
"""A refit "without" penalty keeps this one, relative to the scale of the loss: separable classes
stay finite.
"""
_FIRST_TOLERANCE = 1e-2
"""Relative duality gap of the first master problems: rough slopes suffice to find rules."""
_SOLVED = (Status.CONVERGED, Status.STALLED)
"""Of a master problem: rounding allows no further decrease in the second case."""


@dataclass
class Master:
    """The candidates so far and the solution over them.

    Attributes:
        start: rules and weights that it starts from.
        start_alone: whether rules of one proposition are no candidates.
        rules: the candidates.
        columns: where they hold, bool, shape (rows, candidates).
        solution: of the last master problem: its candidates, then linear terms.
        solved: the number of these candidates.
        tolerance: relative duality gap that the master problem is solved to.
        rounds: the number of master problems solved.
        generated: the number of candidates that pricing has added.
        bound: the best proved lower bound on the objective over all rules.
        debiased: the weights that a refit without penalty gives the rules of the solution.
    """

    problem: GlrmProblem
    start: Start | None
    start_alone: bool = False
    rules: list[Rule] = field(default_factory=list)
    known: set[Rule] = field(default_factory=set)
    columns: NDArray[np.bool_] = field(init=False)
    solution: Solved | None = None
    solved: int = 0
    tolerance: float = _FIRST_TOLERANCE
    rounds: int = 0
    generated: int = 0
    bound: float | None = None
    debiased: tuple[Floats, Floats, Floats] | None = None

    def __post_init__(self) -> None:
        self.columns = np.zeros((len(self.problem.rows), 0), bool)
        # The expert's rules come first: the model keeps as many leading candidates whatever their
        # weight.
        self._extend(list(self.problem.candidates.first))
        if self.start is not None:
            self._extend([rule for rule in self.start.rules if rule not in self.known])
        if self.problem.options.start != "empty" and not self.start_alone:
            # The rules of one proposition that the constraints allow some weight. Of those that
            # differ only by the intercept and the sign of the weight, the first is enough.
            searched = np.unique(np.concatenate([side.propositions for side in self.problem.sides]))
            pairs = searched[one_of_each_pair(self.problem.rows[:, searched])].tolist()
            self._extend([(p,) for p in pairs if (p,) not in self.known])

    @property
    def proved_bound(self) -> float | None:
        """The bound, clipped to the objective, which it exceeds only by rounding."""
        return None if self.bound is None else min(self.bound, self.objective)

    def add(self, rules: list[Rule]) -> None:
        """More candidates."""
        self.generated += len(rules)
        self._extend(rules)

    def _extend(self, rules: list[Rule]) -> None:
        if all(len(rule) == 1 for rule in rules):  # there may be tens of thousands
            new = self.problem.rows[:, [proposition for (proposition,) in rules]]
        else:
            new = np.column_stack([self.problem.satisfied(rule) for rule in rules])
        self.columns = np.concatenate([self.columns, new], axis=1)
        self.rules += rules
        self.known.update(rules)

    @property
    def objective(self) -> float:
        assert self.solution is not None
        return self.solution.objective

    @property
    def size(self) -> int:
        """Rules with a weight."""
        return int(self.rule_weights.any(axis=1).sum())

    @property
    def rule_weights(self) -> Floats:
        """w_k of the candidates in the solution, (candidates, outputs)."""
        assert self.solution is not None
        return self.solution.coefficients[: self.solved]

    @property
    def coefficients(self) -> Floats:
        """b_j of the linear terms, (terms, outputs)."""
        assert self.solution is not None
        return self.solution.coefficients[self.solved :]

    def solve(self, run: Run) -> None:
        """Solve the master problem, from the solution before."""
        problem = self.problem
        # lambda_0 + lambda_1 length_k for every candidate (Eq. 3)
        prices = problem.prices.of(np.array([len(rule) for rule in self.rules], np.float64))
        # The solution before, with weights of 0 for the new candidates: a round starts at the
        # objective of the last one.
        start = None
        if self.solution is not None:
            weights = np.zeros((len(self.rules), len(self.solution.intercept)))
            weights[: self.solved] = self.rule_weights
            start = (np.concatenate([weights, self.coefficients]), self.solution.intercept)
        elif self.start is not None:
            start = self._begun(self.start)
        self.solution = problem.outputs.solve(
            problem.design(self.columns, problem.linear_values),
            np.concatenate([prices, problem.linear_price]),
            problem.signs(self.rules),
            start,
            self.tolerance,
            run,
            None if self.solution is None else (self.solution, self.solved),
        )
        self.solved = len(self.rules)
        self.rounds += 1

    def _begun(self, start: Start) -> tuple[Floats, Floats]:
        """A start as coefficients of the columns, and the intercepts."""
        problem, n_outputs = self.problem, len(start.intercept)
        weights = np.zeros((len(self.rules), n_outputs))
        weights[[self.rules.index(rule) for rule in start.rules]] = start.weights
        terms = problem.terms.start(start.terms, n_outputs)
        # A given model may have coefficients that `monotone` forbids now: these start at 0.
        terms = permitted(terms, problem.linear_signs[:, None])
        return np.concatenate([weights, terms]), start.intercept

    @property
    def end(self) -> Start:
        """The rules of the solution and its weights, where a fit at another penalty may start."""
        assert self.solution is not None
        used = np.flatnonzero(self.rule_weights.any(axis=1))
        return Start(
            tuple(self.rules[k] for k in used.tolist()),
            self.rule_weights[used],
            self.solution.intercept,
            dict(zip(self.problem.terms.features, self.coefficients, strict=True)),
        )

    def score(self) -> Floats:
        """f of every row, (rows, outputs)."""
        assert self.solution is not None
        used = np.flatnonzero(self.rule_weights.any(axis=1))
        rules = self.columns[:, used] @ self.rule_weights[used]
        return np.asarray(
            self.solution.intercept + rules + self.problem.linear_values @ self.coefficients
        )

    def note(self, bound: float | None) -> None:
        """Keep the best proved bound: each is for the same problem over all rules."""
        if bound is not None:
            # Master problems differ in their candidates, but every dual point is feasible for all
            # rules, so that any of them may have the best bound.
            self.bound = bound if self.bound is None else max(self.bound, bound)

    def proved(self, tolerance: float) -> bool:
        """Whether the bound meets the objective."""
        return self.bound is not None and self.objective - self.bound <= 10 * tolerance * abs(
            self.objective
        )

    @property
    def weights(self) -> tuple[Floats, Floats, Floats]:
        """Weights of candidates, coefficients of linear terms, and the intercepts."""
        assert self.solution is not None
        return self.debiased or (self.rule_weights, self.coefficients, self.solution.intercept)

    def thin_out(self) -> None:
        """Drop rules that others replace at the same objective. The rest is linearly independent:
        one of the smallest of the many optimal solutions, which differ on new rows. A solution that
        is not optimal stays, as its objective would change. So does that of several classes: rules
        replace each other only where their weights are parallel, which is rare.
        """
        found = self.solution
        if found is None or found.status not in _SOLVED or len(found.intercept) > 1:
            return
        # Candidates added after the last master problem have no weight yet.
        known = self.columns[:, : self.solved]
        columns = np.concatenate([known, self.problem.linear_values], axis=1)
        weights, shift = independent(columns, found.coefficients[:, 0])
        self.solution = found._replace(
            coefficients=weights[:, None], intercept=found.intercept + shift
        )

    def debias(self) -> None:
        """Refit the weights of the chosen rules and terms (almost) without a penalty."""
        weights, coefficients, intercept = (np.copy(part) for part in self.weights)
        rules, terms = (np.flatnonzero(part.any(axis=1)) for part in (weights, coefficients))
        if not len(rules) + len(terms):
            return
        problem = self.problem
        # The tiny penalties keep the ratio of terms to rules; a rule of any length has the same
        # one.
        scale = problem.linear_price[terms] / problem.prices.rule
        signs = problem.signs(self.rules)
        refitted = problem.outputs.solve(
            problem.design(self.columns[:, rules], problem.linear_values[:, terms]),
            _DEBIASED_PENALTY * np.concatenate([np.ones(len(rules)), scale]),
            None if signs is None else np.concatenate([signs[rules], problem.linear_signs[terms]]),
            (np.concatenate([weights[rules], coefficients[terms]]), intercept),
        )
        weights[rules], coefficients[terms] = np.split(refitted.coefficients, [len(rules)])
        self.debiased = weights, coefficients, refitted.intercept


def independent(columns: Floats, weights: Floats) -> tuple[Floats, float]:
    """Weights of linearly independent columns with the same score, and the change of the intercept.

    If columns (and the intercept) are dependent, the weights move along the dependence until the
    first becomes 0, in the direction that removes the later column. Signs do not change, so an
    optimum under an L1 penalty stays one.

    Args:
        columns: shape (rows, columns).
        weights: shape (columns,); those below 1e-10 of the largest are rounding and are dropped.
    """
    # Columns with a weight, and the constant for the intercept, as their Gram matrix: it is small,
    # whatever the number of rows. Its null space is the dependences.
    shift, rounding = 0.0, 1e-10 * np.abs(weights).max(initial=0.0)
    some = np.flatnonzero((np.abs(weights) > rounding) & columns.any(axis=0))
    design = np.column_stack([columns[:, some], np.ones(len(columns))]).astype(np.float64)
    gram, kept, weights = design.T @ design, np.zeros(len(weights)), weights[some]
    while True:
        weights = np.where(np.abs(weights) > rounding, weights, 0.0)
        on = np.flatnonzero(weights)
        # The eigenvector of the least eigenvalue: no score changes along a dependence.
        part = gram[np.ix_([*on, -1], [*on, -1])]
        # With a diagonal of ones, rare and frequent rules, and numeric terms, count alike in the
        # test whether an eigenvalue is 0.
        scale = np.sqrt(np.diag(part))
        values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
        if values[0] > 1e-12 * values[-1]:
            break
        # Back from the normalised columns. Along this way no score changes, and no sign until a
        # weight reaches 0; the penalty is then linear, and at an optimum neither direction can
        # lower it. So the way to that 0 costs nothing.
        way = vectors[:, 0] / scale
        # In either direction, the step at which the first weight becomes 0.
        moving = np.abs(way[:-1]) > 1e-9 * np.abs(way).max()
        steps = np.divide(-weights[on], way[:-1], out=np.full(len(on), np.inf), where=moving)
        ends = [
            int(np.where(side, np.abs(steps), np.inf).argmin())
            for side in (steps > 0, steps < 0)
            if side.any()
        ]
        ends = [end for end in ends if np.isfinite(steps[end])]
        if not ends:
            break
        # One weight fewer per round, exactly 0: the loop ends.
        leaves = max(ends)
        shift += steps[leaves] * way[-1]
        weights[on] += steps[leaves] * way[:-1]
        weights[on[leaves]] = 0.0
    kept[some] = weights
    return kept, float(shift)


def one_of_each_pair(rows: NDArray[np.bool_]) -> list[int]:
    """Propositions without constants, copies and negations of earlier ones, which an
    intercept makes redundant.
    """
    kept, seen = [], set()
    for p in range(rows.shape[1]):
        column = rows[:, p] ^ rows[0, p]  # equal for a proposition and its negation
        key = column.tobytes()
        if key not in seen and column.any():
            kept.append(p)
        seen.add(key)
    return kept
