"""Starts of a search: the L1-penalised solution on all columns, truncated to a few sizes."""

from __future__ import annotations

import math
import threading
import warnings
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.lire.problem import SAMPLED, SMALL, Floats, Integers, SupportProblem
from jaxrules.losses import exponential
from jaxrules.rules.rows import Activations
from jaxrules.solvers.linear import sparse_glm, sparse_softmax
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.tools.bits import take_columns
from jaxrules.tools.runs import Run

_SIZES = (22, 86)
"""The largest numbers of columns to start from."""
_TOLERANCE = 1e-2
_SMALLEST_PENALTY = 2e-4
_OF_NUMBERS = 3.0
"""For the squared loss, the penalty on a weight in standard deviations of y is this many gamma in
its variances: gamma has the unit of y^2, a weight that of y. Of .4 to 6, all from 2.5 are as good.
"""
_LEAST_SHARE = 0.05
"""Of the largest penalty with a solution other than 0, for classes fitted together: smaller ones
take long, for more columns than are kept.
"""
_SHARE = 0.3
"""Of the remaining time, for classes fitted together."""
_LIBLINEAR = threading.Lock()
"""liblinear has one random generator per process, which two simultaneous fits would share."""


class L1Start:
    """Rough L1-penalised solutions of one problem, to start from; for classes fitted together, with
    a penalty on the Euclidean norm of a column's weights.

    Numbers are fitted by `sparse_glm`, warm-started; classes (the logistic loss) by liblinear,
    which is the fastest. On Adult (1121 columns, 12309 patterns, penalty 5e-4) it took 0.25 s of
    one core in total; `sparse_glm` at a tolerance of .1 to .01 took 0.6 to 1.1 s, and another 9 s
    in a fresh process, to compile.
    """

    def __init__(self, problem: SupportProblem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self._starts: dict[float, list[tuple[Integers, Floats]]] = {}
        self._lock = threading.Lock()
        self._design: sparse_glm.Design | None = None
        activations = problem.activations
        size, n = SAMPLED // max(activations.n_rules, 1), activations.n_patterns
        self._patterns = np.arange(n)
        if size < n:
            self._patterns = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
        self._solution: sparse_glm.SparseSolution | None = None

    def starts(self, penalty: float, run: Run) -> list[tuple[Integers, Floats]]:
        """Columns and encoded weights of the solution for this penalty on signed columns, truncated
        to the columns with the largest influence.

        The solvers work on 0/1 columns, where the L1 norm is twice as large. If another thread is
        already solving for this penalty, this waits for its result.
        """
        if penalty not in self._starts:
            with self._lock:
                if penalty not in self._starts:
                    self._starts[penalty] = self._solved(penalty, run)
        return self._starts[penalty]

    def _solved(self, penalty: float, run: Run) -> list[tuple[Integers, Floats]]:
        problem = self.problem
        if not problem.size:  # no column varies
            return []
        needs = "numba" if problem.joint else "sklearn.linear_model"
        numbers = problem.loss.target != "sign"
        if not (numbers or run.may_import(needs)):
            run.shortened = True
            return []
        solve = self._classes
        if problem.joint or numbers:
            solve = self._joint if problem.joint else self._numbers
        if problem.loss.quadratic:
            penalty *= _OF_NUMBERS / self._spread**2
        rules = solve(max(penalty, _SMALLEST_PENALTY) / 2, run)
        coverage = problem.coverage[1 : 1 + len(rules)]
        sizes = np.linalg.norm(rules, axis=1) if problem.joint else np.abs(rules)
        influence = sizes * np.sqrt(coverage * (1 - coverage))  # how far a column moves the scores
        ranked = np.argsort(-influence, kind="stable")[: np.count_nonzero(influence)]
        halves = 2 if problem.loss == exponential else 1
        halves *= 2 if problem.encoding == "signed" else 1
        starts = []
        for size in _SIZES:
            chosen = np.sort(ranked[:size])
            starts.append((1 + chosen, rules[chosen] / halves))
            if len(ranked) <= size or problem.size > SMALL:
                break
        return starts

    @cached_property
    def _activations(self) -> Activations:
        """The columns on the patterns that starts are fitted on."""
        whole = self.problem.activations
        if len(self._patterns) == whole.n_patterns:
            return whole
        bits = take_columns(whole.bits, whole.n_patterns, self._patterns)
        return Activations(bits, np.arange(len(self._patterns)))

    @cached_property
    def _spread(self) -> float:
        """The standard deviation of numbers, in which their weights are measured; else 1."""
        target, mass = self._of_patterns()
        spread = math.sqrt(mass @ (target - mass @ target) ** 2)
        return spread if self.problem.loss.quadratic and spread > 0 else 1.0

    def _of_patterns(self) -> tuple[Floats, Floats]:
        """The mean targets and the weights of these patterns; the weights sum to 1."""
        target, mass = self.problem.target, self.problem.mass
        if len(self._patterns) < len(mass):
            target, mass = target[self._patterns], mass[self._patterns] / mass[self._patterns].sum()
        return target, mass

    def _classes(self, penalty: float, run: Run) -> Floats:
        """Coefficients for classes; every pattern enters once for each class that it has."""
        target, mass = self._of_patterns()
        weights = np.concatenate([mass * (1 + target), mass * (1 - target)]) / 2
        used = np.flatnonzero(weights)
        columns = self._activations.sparse[used % len(mass)]
        return liblinear(
            columns, used < len(mass), weights[used], 1 / penalty, seed=self.seed, tol=_TOLERANCE,
            fit_intercept=True,
        )  # fmt: skip

    def _joint(self, penalty: float, run: Run) -> Floats:
        """Coefficients of classes fitted together, (columns, classes). The penalty is that of two
        classes.
        """
        target, mass = self._of_patterns()
        if self._design is None:
            columns = BitColumns(self._activations.bits)
            self._design = sparse_glm.Design.of(columns, inverse=np.arange(len(mass)))
        problem = sparse_softmax.SoftmaxProblem.of(
            self._design, target, mass, np.ones(self._design.n_columns)
        )
        penalty = max(np.sqrt(2.0) * penalty, _LEAST_SHARE * problem.max_penalty())
        found = problem.solve(penalty, tolerance=_TOLERANCE, run=run.child(_SHARE))
        return found.coefficients

    def _numbers(self, penalty: float, run: Run) -> Floats:
        if self._design is None:
            self._design = sparse_glm.Design.of(self._activations.dense)
        target, mass = self._of_patterns()
        if self.problem.loss.quadratic:
            target = (target - mass @ target) / self._spread
        self._solution = sparse_glm.solve(
            self._design, target, penalty, loss=self.problem.loss, sample_weight=mass,
            start=self._solution, tolerance=_TOLERANCE, run=run,
        )  # fmt: skip
        return self._spread * self._solution.coefficients


def liblinear(
    columns: Any,
    target: NDArray[Any],
    sample_weight: Floats,
    C: float,
    *,
    seed: int,
    **options: Any,
) -> Floats:
    """Coefficients of the L1-penalised logistic regression of liblinear, converged or not.

    Args:
        columns: (rows, columns), dense or sparse.
        target: two classes, shape (rows,).
        C: as in scikit-learn, relative to the weighted sum of losses.
        seed: for the order of coordinates. Equal seeds give equal weights, also in threads.
        options: other options of scikit-learn's ``LogisticRegression``.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=C, random_state=seed, **options)
    with _LIBLINEAR, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(columns, target, sample_weight=sample_weight)
    return np.asarray(model.coef_[0], np.float64)
