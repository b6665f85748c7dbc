"""The restricted master problem: the candidates so far, and the solution over them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.glrm.options import GlrmPrices
from jaxrules.ensembles.glrm.outputs import Solved
from jaxrules.ensembles.glrm.problem import GlrmProblem, Rule, Start
from jaxrules.ensembles.l1_ensemble import permitted
from jaxrules.ensembles.size import PER_RULE, has_likelihood, scale
from jaxrules.losses import derivatives
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.tools.bits import Words, pack, unpack
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]

_DEBIASED_PENALTY = 1e-6
"""A refit "without" penalty keeps this one, relative to the scale of the loss: separable classes
stay finite.
"""
_FIRST_TOLERANCE = 1e-2
"""Relative duality gap of the first master problems: rough slopes suffice to find rules."""
_RELAXED = 0.6
"""By which the default penalty falls for the rules that `eliminate` leaves: a penalty against 50
rules is too much for a dozen (as in Meinshausen, "Relaxed Lasso", 2007). Of 46 sets, two splits,
the risk is .95 of that of all rules at 9 cut points, with 14 rules for 43 (docs/defaults.md); .7
and .5 are within a hundredth, and a smaller share fits more noise.
"""
_BLOCK = 2**16
"""Rows whose part of a Hessian is summed at a time."""
_RIDGE = 1e-9
"""Relative to the diagonal: rules that are dependent but for rounding keep a Hessian regular."""
_SOLVED = (Status.CONVERGED, Status.STALLED)
"""Of a master problem: rounding allows no further decrease in the second case."""


@dataclass
class Master:
    """The candidates so far and the solution over them.

    Attributes:
        start: rules and weights that it starts from.
        start_alone: whether rules of one proposition are no candidates.
        rules: the candidates.
        columns: where they hold.
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
    columns: BitColumns = field(init=False)
    solution: Solved | None = None
    solved: int = 0
    tolerance: float = _FIRST_TOLERANCE
    rounds: int = 0
    generated: int = 0
    bound: float | None = None
    debiased: tuple[Floats, Floats, Floats] | None = None

    def __post_init__(self) -> None:
        self.columns = BitColumns(self.problem.bits[:0])
        # The expert's rules come first: the model keeps as many leading candidates whatever their
        # weight.
        self._extend(list(self.problem.candidates.first))
        if self.start is not None:
            self._extend([rule for rule in self.start.rules if rule not in self.known])
        if self.problem.options.start != "empty" and not self.start_alone:
            # The rules of one proposition that the constraints allow some weight. Of those that
            # differ only by the intercept and the sign of the weight, the first is enough.
            searched = np.unique(np.concatenate([side.propositions for side in self.problem.sides]))
            bits = self.problem.bits[searched]
            pairs = searched[one_of_each_pair(bits, self.problem.n_rows)].tolist()
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
        if not rules:
            return
        new = np.stack([self.problem.satisfied(rule) for rule in rules])
        self.columns = BitColumns(np.concatenate([self.columns.words, new]))
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
        before = None if self.solution is None else (self.solution, self.solved)
        self.solution = problem.outputs.solve(
            problem.design(self.columns, problem.linear_values),
            np.concatenate([prices, problem.linear_price]), problem.signs(self.rules), start,
            self.tolerance, run, before,
        )  # fmt: skip
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
        # Columns of weight 0 take no time; the bits that pad the last word are no rows.
        weights = np.concatenate([self.rule_weights, self._unsolved()]).T
        rules = (weights @ self.columns)[:, : self.problem.n_rows].T
        terms = self.problem.linear_values @ self.coefficients
        return np.asarray(self.solution.intercept + rules + terms)

    def _unsolved(self) -> Floats:
        """Weights of 0 for the candidates since the last master problem, (candidates, outputs)."""
        return np.zeros((len(self.rules) - self.solved, self.rule_weights.shape[1]))

    def note(self, bound: float | None) -> None:
        """Keep the best proved bound: each is for the same problem over all rules."""
        if bound is not None:
            # Master problems differ in their candidates, but every dual point is feasible for all
            # rules, so that any of them may have the best bound.
            self.bound = bound if self.bound is None else max(self.bound, bound)

    def proved(self, tolerance: float) -> bool:
        """Whether the bound meets the objective."""
        if self.bound is None:
            return False
        return self.objective - self.bound <= 10 * tolerance * abs(self.objective)

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
        used = np.flatnonzero(found.coefficients[: self.solved, 0])
        places = np.append(used, np.arange(self.solved, len(found.coefficients)))
        rules = unpack(self.columns.words[used], self.problem.n_rows).T
        columns = np.concatenate([rules, self.problem.linear_values], axis=1)
        weights, shift = np.zeros(found.coefficients.shape), 0.0
        weights[places, 0], shift = independent(columns, found.coefficients[places, 0])
        self.solution = found._replace(coefficients=weights, intercept=found.intercept + shift)

    def eliminate(self, run: Run) -> int:
        """Drop rules while each raises the objective by less than a rule is worth in likelihood
        (`jaxrules.ensembles.size`), and weigh the rest anew; returns how many. An L1 penalty
        shares one step among several near-copies, and admits rules that gain hardly anything.

        The least useful go first. If weights with Hessian H are optimal, the quadratic model of the
        objective rises by w_j^2 / (2 [H^-1]_jj) when w_j becomes 0 and the others follow (Hassibi
        and Stork, "Second Order Derivatives for Network Pruning: Optimal Brain Surgeon", 1993). An
        expert's rules and linear terms stay, and so do all rules of other losses, and of a solution
        that is not optimal. Of classes fitted together, the model has a Hessian per class; those of
        a default fit stay, too.
        """
        problem, data = self.problem, self.problem.data
        found, begun = self.solution, self.size
        if found is None or found.status not in _SOLVED or not has_likelihood(data.loss):
            return 0
        if len(found.intercept) > 1 and not problem.options.eliminate:
            return 0
        share = data.weights / data.weights.sum()
        most = max(1, begun // 5)  # at once: a few solutions for hundreds of rules
        while not run.stopped():
            used = np.flatnonzero(found.coefficients[: self.solved].any(axis=1))
            free = np.flatnonzero(used >= len(problem.candidates.first))
            score = self.score()[problem.group].reshape(data.target.shape)
            price = self._price_of_rule(score)
            if not len(free):
                break
            curvature = derivatives(data.row_loss, data.target, score)[1].reshape(len(share), -1)
            rises = np.zeros(len(used))
            for output, own in enumerate(curvature.T):  # of joint classes, the diagonal blocks
                merged = np.bincount(problem.group, own * share, problem.n_rows)
                rises += self._rises(used, merged, output)
            rises = rises[free]
            order = free[np.argsort(rises, kind="stable")]
            cheap = np.cumsum(np.sort(rises)) <= price * np.arange(1, len(rises) + 1)
            count = min(int(cheap.sum()), most)
            if not count:
                break
            kept = np.sort(np.setdiff1d(used, used[order[:count]]))
            fewer = self._weighed(kept, run)
            if fewer.objective - found.objective <= price * count and fewer.status in _SOLVED:
                self.solution = found = fewer
            elif count == 1:
                break
            else:  # together they are worth more
                most = count // 2
        return begun - self.size

    def relax(self, run: Run) -> None:
        """Weigh the rules that `eliminate` left with a smaller penalty, which noise had set for all
        of them.
        """
        problem = self.problem
        prices = GlrmPrices(*(_RELAXED * price for price in problem.prices))
        self.problem = replace(problem, prices=prices, linear_price=_RELAXED * problem.linear_price)
        self.solution = self._weighed(np.flatnonzero(self.rule_weights.any(axis=1)), run)

    def _price_of_rule(self, score: Floats) -> float:
        """What a rule must be worth in units of the objective, a mean loss: the likelihood of a
        loss whose scale is that of the slopes. For squares, the scale is twice the mean square.
        """
        data = self.problem.data
        own = scale(data.row_loss, data.target, score, data.weights)
        return PER_RULE * own / float(data.weights.sum())

    def _rises(self, used: NDArray[np.intp], curvature: Floats, output: int) -> Floats:
        """By how much the objective rises without each of some rules, by its quadratic model in the
        weights of one output.

        Args:
            used: the rules with a weight.
            curvature: of the merged rows.
        """
        assert self.solution is not None
        problem, terms = self.problem, np.flatnonzero(self.coefficients[:, output])
        size = len(used) + len(terms) + 1
        hessian = np.zeros((size, size))
        for begin in range(0, problem.n_rows, _BLOCK):
            part = slice(begin, min(begin + _BLOCK, problem.n_rows))
            words = self.columns.words[used, begin // 64 : -(-part.stop // 64)]
            n = part.stop - begin
            rules, ones = unpack(words, n).T, np.ones((n, 1))
            design = np.concatenate([rules, problem.linear_values[part][:, terms], ones], axis=1)
            root = np.sqrt(curvature[part])[:, None] * design
            hessian += root.T @ root
        hessian[np.diag_indices_from(hessian)] *= 1 + _RIDGE
        inverse = np.diag(np.linalg.inv(hessian))[: len(used)]
        return np.asarray(self.rule_weights[used, output] ** 2 / (2 * np.maximum(inverse, 0.0)))

    def _weighed(self, kept: NDArray[np.intp], run: Run) -> Solved:
        """The solution with some of the rules alone."""
        assert self.solution is not None
        problem, n = self.problem, self.solved
        prices = problem.prices.of(np.array([len(self.rules[k]) for k in kept], np.float64))
        signs = problem.signs(self.rules[:n])
        places = np.append(kept, np.arange(n, len(self.solution.coefficients)))
        found = problem.outputs.solve(
            problem.design(self.columns.take(kept), problem.linear_values),
            np.concatenate([prices, problem.linear_price]),
            None if signs is None else signs[places],
            (self.solution.coefficients[places], self.solution.intercept), self.tolerance, run,
        )  # fmt: skip
        weights = np.zeros_like(self.solution.coefficients)
        weights[places] = found.coefficients
        return found._replace(coefficients=weights)

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
            problem.design(self.columns.take(rules), problem.linear_values[:, terms]),
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


def one_of_each_pair(bits: Words, n_rows: int) -> list[int]:
    """Propositions without constants, copies and negations of earlier ones, which an
    intercept makes redundant.

    Args:
        bits: where they hold, (propositions, words).
        n_rows: the number of rows.
    """
    everywhere = pack(np.ones((1, n_rows), bool))[0]
    # Those that hold for the first row are negated: equal for a proposition and its negation.
    unsigned = np.where(bits[:, :1] & np.uint64(1), bits ^ everywhere, bits)
    kept, seen = [], set()
    for p, column in enumerate(unsigned):
        key = column.tobytes()
        if key not in seen and column.any():
            kept.append(p)
        seen.add(key)
    return kept
