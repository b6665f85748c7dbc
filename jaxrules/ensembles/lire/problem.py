"""The data of a search over supports: columns, and what the loss needs to know of every pattern."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.lire.moves import ONES, Encoding
from jaxrules.ensembles.lire.objective import WEIGHT_CAP, penalty
from jaxrules.losses import Loss, MergedRows, least_loss, merge_rows
from jaxrules.rules.rows import Activations, check_memory
from jaxrules.solvers.limits import never
from jaxrules.tools.bits import Words, pack, take_columns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SMALL = 1_000_000
"""With at most this many entries of the matrix of distinct rows, a problem is small, and more
starts are cheap.
"""
SAMPLED = 1 << 25
"""With more entries, an L1 start is fitted on a random sample of the patterns, which suffices."""
_FEWEST_SAMPLED = 20_000
"""With more entries, all starts are tried on a sample of at least this many patterns."""
_PATTERNS_AT_ONCE = 4096
_SUPPORT = 96
"""There must be memory for supports of this many columns."""


@dataclass(frozen=True, eq=False)
class SupportProblem:
    """Data and bookkeeping of one search; independent of the penalties.

    Attributes:
        activations: the 0/1 columns kept, without the intercept, and the pattern of every row.
        weight: weight of every row, shape (rows,); sums to 1.
        total: the sum of the weights as given.
        columns: int8, shape (columns, patterns); column 0 is all ones.
        coverage: p_j, shape (columns,); 0 for a free intercept.
        counted: 1 for penalised columns, shape (columns,); 0 for a free intercept.
        addable: which columns may enter the support, shape (columns,).
        origin: index of the column in the caller's pool, shape (columns,); -1 for the intercept.
        target, mass: the mean target and the weight of every pattern, shape (patterns,); the
            weights sum to 1. Classes fitted together have a target each, (patterns, classes).
        constant: the loss that no model can remove (for the squared loss, the variance within
            patterns), less `floor`.
        unit, shift, floor: of the search, see `scaled` and `stated`.
        gram, moment: X diag(2w) X' and X diag(2w) y for the squared loss, float64; else None.
        signs: whether the weight of every column may be negative, and positive, shape (columns, 2);
            None if all may be both.
        fixed: columns that are in every support.
        required: sets of columns, shape (sets, columns); every support has a column of each set.
    """

    loss: Loss
    encoding: Encoding
    activations: Activations
    weight: Floats
    total: float
    columns: NDArray[np.int8]
    coverage: Floats
    counted: Floats
    addable: NDArray[np.bool_]
    origin: Integers
    target: Floats
    mass: Floats
    constant: float = 0.0
    unit: float = 1.0
    shift: float = 0.0
    floor: float = 0.0
    gram: Floats | None = None
    moment: Floats | None = None
    signs: NDArray[np.bool_] | None = None
    fixed: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    required: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool))

    @property
    def free_intercept(self) -> bool:
        return self.counted[ONES] == 0

    @property
    def joint(self) -> bool:
        """Whether several classes are fitted together."""
        return self.target.ndim > 1

    @property
    def size(self) -> int:
        """Entries of the matrix of distinct rows."""
        return self.activations.n_rules * self.activations.n_patterns

    @property
    def squares(self) -> float:
        """The mean square of the targets of the patterns."""
        return float(self.mass @ self.target**2)

    @property
    def cap(self) -> float:
        """The largest absolute weight of a column; twice as large for binary columns, so that both
        encodings allow the same models.
        """
        of_link = {"exponential": WEIGHT_CAP, "logistic": 2 * WEIGHT_CAP, "log": 2 * WEIGHT_CAP}
        largest = of_link.get(self.loss.link, np.inf)
        return largest if self.encoding == "signed" else 2 * largest

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the largest weight of every column, shape (columns,)."""
        cap = np.full(len(self.origin), self.cap)
        if self.free_intercept:
            cap[ONES] = np.inf
        if self.signs is None:
            return -cap, cap
        return np.where(self.signs[:, 0], -cap, 0.0), np.where(self.signs[:, 1], cap, 0.0)

    def within(self, signs: NDArray[np.bool_]) -> SupportProblem:
        """The problem with these restrictions on the signs of weights, shape (caller's columns, 2),
        as in `signs`. A set in which no column allows a weight is no longer required.
        """
        ours = np.where(self.origin[:, None] >= 0, signs[self.origin], True)
        addable = self.addable & ours.any(axis=1)
        required = self.required[(self.required & addable).any(axis=1)]
        return dataclasses.replace(self, signs=ours, addable=addable, required=required)

    def holds(self, columns: Integers) -> NDArray[np.bool_]:
        """The 0/1 columns other than the intercept, shape (columns, patterns)."""
        return self.activations.holds(columns - 1)

    def entries(self, columns: Integers, patterns: NDArray[np.intp] | None = None) -> Floats:
        """The encoded columns of some patterns, or of all, float64, shape (patterns, columns)."""
        chosen = self.columns[columns if patterns is None else np.ix_(columns, patterns)]
        return chosen.T.astype(np.float64, order="C")

    def columns_of(self, bits: Words, weights: Floats) -> tuple[Integers, Floats]:
        """0/1 columns, given by their bits on the patterns, and their weights, in terms of the
        columns of the problem.

        Weights of equal columns are summed, those of complements with opposite signs, and a column
        that does not vary is left out. Of equal columns of the problem, the one in the most
        required sets whose sign allows the weight gets it.
        """
        everywhere = pack(np.ones((1, self.activations.n_patterns), bool))[0]
        found = dict[int, float]()
        least, most = self.ends
        for row, weight in zip(bits, weights.tolist(), strict=True):
            equal = [
                (int(column), side * weight)
                for side, one in ((1, row), (-1, row ^ everywhere))
                for column in 1 + np.flatnonzero((self.activations.bits == one).all(axis=1))
            ]
            equal.sort(key=lambda one: -self.required[:, one[0]].sum())
            takes = [(column, w) for column, w in equal if (most if w > 0 else -least)[column] > 0]
            for column, w in (takes or equal)[:1]:
                found[column] = found.get(column, 0.0) + w
        scale = 2.0 if self.encoding == "signed" else 1.0
        return np.array(list(found), np.int64), np.array(list(found.values())) / scale

    def ridge(self, l2_penalty: float) -> Floats:
        """The penalty on half the squared weight of every column, shape (columns,); 0 for the
        intercept.

        Args:
            l2_penalty: the penalty on half the squared weights of 0/1 columns, relative to the sum
                of the losses.
        """
        # Twice for classes fitted together: w and -w of two classes are the binary weight 2 w
        unit = (2.0 if self.joint else 1.0) * (4.0 if self.encoding == "signed" else 1.0)
        ridge = np.full(len(self.origin), l2_penalty / self.total * unit)
        ridge[ONES] = 0.0
        return ridge

    def penalty(self, columns: Integers, gamma: float, lam: float) -> float:
        """gamma |S| + lambda mean coverage of S."""
        return float(penalty(self.counted[columns].sum(), self.coverage[columns].sum(), gamma, lam))

    def with_target(self, target: Floats, stopped: Callable[[], bool] = never) -> SupportProblem:
        """The same columns with another target, in the coding of the loss, shape (rows,), or
        (rows, classes) for classes fitted together; if stopped, without the normal equations.
        """
        unit, shift = 1.0, 0.0
        if self.free_intercept:
            target, unit, shift = scaled(self.loss, target, self.weight)
        pattern, n_patterns = self.activations.pattern, self.activations.n_patterns
        mean, mass, constant = merge_targets(self.loss, target, self.weight, pattern, n_patterns)
        floor = least_loss(self.loss, target, self.weight)
        problem = dataclasses.replace(
            self, target=mean, mass=mass, constant=constant - floor, unit=unit, shift=shift,
            floor=floor,
        )  # fmt: skip
        if not self.loss.quadratic:
            return problem
        found = _normal_equations(self.columns, mass, mean, stopped)
        if found is None:
            return problem
        gram, moment = found
        return dataclasses.replace(problem, gram=gram, moment=moment)

    def above(self, floor: float) -> SupportProblem:
        """The same problem, its losses measured from another number."""
        return dataclasses.replace(self, constant=self.constant + self.floor - floor, floor=floor)

    def stated(self, value: float) -> float:
        """An objective, or a bound, of the search as one of the fit."""
        return stated(self.loss, value + self.floor, self.unit, self.shift)

    def with_weights(self, target: Floats, sample_weight: Floats) -> SupportProblem:
        """The same columns with other weights of the rows, some of which may be 0: a fold.

        Args:
            target: in the coding of the loss, shape (rows,).
            sample_weight: at least 0, not all of them 0, shape (rows,).
        """
        total = float(sample_weight.sum())
        weight = sample_weight / total
        coverage = self.activations.covered(self.activations.totals(weight))
        coverage = np.append(self.coverage[ONES], coverage)
        problem = dataclasses.replace(self, weight=weight, total=total, coverage=coverage)
        return problem.with_target(target)

    def sampled(self, seed: int) -> SupportProblem | None:
        """The same columns on a random sample of the patterns, with the coverages of all rows; None
        if the sample would have more than a quarter of the patterns.
        """
        whole, n_rules = self.activations, max(self.activations.n_rules, 1)
        size = max(SAMPLED // n_rules, _FEWEST_SAMPLED)
        if 4 * size > whole.n_patterns:
            return None
        some = np.sort(np.random.default_rng(seed).choice(whole.n_patterns, size, replace=False))
        target, mass = self.target[some], self.mass[some] / self.mass[some].sum()
        floor = least_loss(self.loss, target, mass)
        bits = take_columns(whole.bits, whole.n_patterns, some)
        return dataclasses.replace(
            self.above(floor), activations=Activations(bits, np.arange(size)),
            columns=self.columns[:, some], target=target, mass=mass,
        )  # fmt: skip


def make_problem(
    activations: Activations,
    target: Floats,
    sample_weight: Floats,
    loss: Loss,
    encoding: Encoding = "signed",
    penalise_intercept: bool = False,
    signs: NDArray[np.bool_] | None = None,
    n_fixed: int = 0,
    required: Sequence[NDArray[np.bool_]] = (),
    stopped: Callable[[], bool] = never,
) -> SupportProblem:
    """Drop columns that can never help, and encode the others.

    Constant columns only shift the intercept and are left out. Of equal columns the first is kept;
    of complementary ones, if encoding and intercept make them interchangeable, the one with less
    coverage.

    Args:
        activations: the 0/1 columns.
        target: see `SupportProblem.with_target`.
        sample_weight: positive, shape (rows,).
        loss, encoding, penalise_intercept: see `search`.
        signs: whether the weight of every column may be negative, and positive; equal columns of
            different signs are all kept, see `Activations.without_copies`.
        n_fixed: this many columns, the first ones, are in every support, except repeated and
            constant columns.
        required: sets of columns, bool (columns,) each; every support has a column of each set.
            Equal columns of different sets are all kept.
        stopped: see `SupportProblem.with_target`.

    Raises:
        ValueError: if the matrix does not fit in memory.
    """
    n_patterns = activations.n_patterns
    # The matrix as bits and, twice, as bytes; the sparse matrix of the L1 start; working space
    start = 16.0 * min(n_patterns * activations.n_rules, SAMPLED)
    check_memory(n_patterns, activations.n_rules, 2.25, extra=16.0 * _SUPPORT * n_patterns + start)
    total = float(sample_weight.sum())
    weight = sample_weight / total
    coverage = activations.covered(activations.totals(weight))
    interchangeable = encoding == "signed" or not penalise_intercept
    # Of copies, keep an expert's, else the one with the least coverage
    order = np.lexsort((coverage, np.arange(len(coverage)) >= n_fixed))
    kinds = np.stack(required, axis=1) if len(required) else None
    kept, activations = activations.without_copies(
        order, complements=interchangeable, signs=signs, kinds=kinds
    )

    columns, n_columns = _encoded(activations, encoding), 1 + len(kept)
    intercept_cost = 1.0 if penalise_intercept else 0.0
    origin = np.append(-1, kept)
    sets = np.zeros((len(required), n_columns), bool)
    for ours, using in zip(sets, required, strict=True):
        ours[1:] = using[kept]
    problem = SupportProblem(
        loss, encoding, activations, weight, total, columns,
        coverage=np.append(intercept_cost, coverage[kept]),
        counted=np.concatenate([[intercept_cost], np.ones(n_columns - 1)]),
        addable=(origin >= n_fixed) | ((np.arange(n_columns) == ONES) & penalise_intercept),
        origin=origin,
        target=np.zeros(n_patterns),
        mass=np.zeros(n_patterns),
        fixed=np.flatnonzero((origin >= 0) & (origin < n_fixed)),
        required=sets,
    )  # fmt: skip
    return problem.with_target(target, stopped)


def scaled(loss: Loss, target: Floats, weight: Floats) -> tuple[Floats, float, float]:
    """The target as a search with a free intercept sees it, the unit of its losses, and what its
    scores f lack: numbers without their mean, counts in units of it, because with y = m z

        e^(f + log m) - y (f + log m) = m (e^f - z f) - y log m.

    The unit of counts then changes nothing in the search.

    Args:
        weight: of the rows; the sum is 1.
    """
    mean = float(weight @ target) if loss.link in ("identity", "log") else 0.0
    if loss.link == "log":
        if mean == 0:  # also in a fold whose other rows have all counts
            raise ValueError(
                f"y has no finite best constant under the {loss.name} loss: it is 0 in all rows; "
                "with few counts, use fewer folds"
            )
        return target / mean, mean, float(np.log(mean))
    return target - mean, 1.0, mean


def stated(loss: Loss, value: float, unit: float, shift: float) -> float:
    """A mean loss of `scaled` targets as one of the given targets."""
    return unit * (value - shift) if loss.link == "log" else value


def merge_targets(
    loss: Loss, target: Floats, weight: Floats, group: NDArray[np.integer], n_groups: int
) -> MergedRows:
    """`jaxrules.losses.merge_rows`, also for a target per class, (rows, classes)."""
    if target.ndim == 1:
        return merge_rows(loss, target, weight, group, n_groups)
    merged = [merge_rows(loss, one, weight, group, n_groups) for one in target.T]
    return MergedRows(np.stack([one.target for one in merged], axis=1), merged[0].weight, 0.0)


def _encoded(activations: Activations, encoding: Encoding) -> NDArray[np.int8]:
    """The column of ones and the encoded rules, shape (1 + rules, patterns)."""
    columns = np.empty((1 + activations.n_rules, activations.n_patterns), np.int8)
    columns[ONES] = 1
    for start in range(0, activations.n_rules, 64):
        holds = activations.holds(slice(start, start + 64)).view(np.int8)
        columns[1 + start : 65 + start] = 2 * holds - 1 if encoding == "signed" else holds
    return columns


def _normal_equations(
    columns: NDArray[np.int8], weight: Floats, target: Floats, stopped: Callable[[], bool]
) -> tuple[Floats, Floats] | None:
    """X diag(2w) X' and X diag(2w) y in float64, by blocks of patterns; None if stopped."""
    gram = np.zeros((len(columns), len(columns)))
    moment = np.zeros(len(columns))
    for start in range(0, len(weight), _PATTERNS_AT_ONCE):
        if stopped():
            return None
        rows = slice(start, start + _PATTERNS_AT_ONCE)
        block = columns[:, rows].astype(np.float64)
        weighted = block * (2 * weight[rows])
        gram += weighted @ block.T
        moment += weighted @ target[rows]
    return gram, moment
