"""The price of interpretability: cost against interpretability loss (Section 3.3), and the loss of
a given model (Definition 1).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike
from jaxrules.learning.options import learner, option, options
from jaxrules.paths import exact
from jaxrules.paths.costs import Array, QuadraticCost, Sequence
from jaxrules.paths.data import (
    MOST_STEPS,
    Coefficients,
    ModelOptions,
    ModelSpace,
    check_step_weights,
)
from jaxrules.paths.fitting import check_method, prove
from jaxrules.paths.model import CoordinatePath, weighted_loss
from jaxrules.paths.problem import Changes, PathProblem, tail_sums
from jaxrules.solvers.layered import LayeredCertificate
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Details, Fit, Status
from jaxrules.tools.runs import Run

LINES = 24
"""The most points that a printed front lists in full."""
RESOLUTION = 2e-3
"""Neighbours on one sequence closer than this, relative to the whole front, count as duplicates."""
MAX_ENUMERATED = 5_000
"""The most index sequences for which unsupported points are found by enumeration."""
TRADEOFFS = np.geomspace(1e3, 1e-4, 36)
SMALLEST_TRADEOFF = 1e-7


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """One path on the front.

    Attributes:
        interpretability: L_alpha of the path, 0 for no steps.
        cost: of its last model.
        path: the path; of no steps for the start itself.
        supported: whether a weighted sum of the two finds it (Eq. 8).
        tradeoff: the lambda of that weighted sum (for its own sequence if unsupported).
        proved: whether the path is proved optimal for its lambda.
    """

    interpretability: float
    cost: float
    path: CoordinatePath
    supported: bool
    tradeoff: float
    proved: bool


@dataclass(frozen=True)
class Box:
    """Where weighted sums may miss points: between supported points of different sequences.

    Attributes:
        interpretability, cost: the least and the largest of each.
    """

    interpretability: tuple[float, float]
    cost: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Front:
    """The Pareto front between interpretability loss and cost, ascending in the loss.

    Attributes:
        points: none dominates another.
        boxes: where further, unsupported points may lie; empty if all sequences were enumerated.
        status: OPTIMAL if every supported point is proved, else why not.
        seconds: wall time.
    """

    points: tuple[FrontPoint, ...]
    boxes: tuple[Box, ...]
    status: Status
    seconds: float

    @property
    def interpretability(self) -> Array:
        """The losses of the points, shape (points,)."""
        return np.array([point.interpretability for point in self.points])

    @property
    def cost(self) -> Array:
        """The costs of the points, shape (points,)."""
        return np.array([point.cost for point in self.points])

    def __len__(self) -> int:
        return len(self.points)

    def __str__(self) -> str:
        shown, lines = self._shown(), [self._caption()]
        lines.append("  steps  interpretability loss        cost")
        for point in shown:
            mark = "" if point.supported else "  unsupported"
            lines.append(
                f"  {len(point.path):5d}  {point.interpretability:21.6g}  {point.cost:10.6g}{mark}"
            )
        if len(shown) < len(self):
            lines.append(
                f"  ({len(self) - len(shown)} more between these, along the same sequences of "
                "features)"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (
                str(len(point.path)), f"{point.interpretability:.6g}", f"{point.cost:.6g}",
                "" if point.supported else "unsupported",
            )
            for point in self._shown()
        ]  # fmt: skip
        return display.html_table(
            self._caption(), ("steps", "interpretability loss", "cost", ""), rows
        )

    def _caption(self) -> str:
        return f"Pareto front of {len(self)} paths ({self.status.value}, {self.seconds:.2f} s)"

    def _shown(self) -> tuple[FrontPoint, ...]:
        """All points, or if there are many, those at the ends of their sequences."""
        if len(self) <= LINES:
            return self.points
        pairs = zip(self.points, _inside(self.points), strict=True)
        return tuple(point for point, inside in pairs if not inside)


@options
class _Lengths(ModelOptions):
    """What `pareto` and `interpretability` have in common.

    Attributes:
        max_steps: the largest number of steps, K.
        step_weights: a number gamma for alpha_k = gamma^k, or alpha_1, ..., alpha_K; shorter paths
            use the first ones.
    """

    max_steps: int = option(checks.integer, default=10, at_least=1, at_most=MOST_STEPS)
    step_weights: float | ArrayLike = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_step_weights(self.step_weights, self.max_steps)

    @cached_property
    def alpha(self) -> Array:
        """The weights of the steps, shape (max_steps,)."""
        return check_step_weights(self.step_weights, self.max_steps)


def _tradeoffs(name: str, given: ArrayLike | None) -> Array | None:
    return checks.optional(checks.sequence, name, given, above=0)


@options
class ParetoOptions(_Lengths):
    """The options of `pareto`.

    Attributes:
        tradeoffs: positive lambdas; None for 36 from 1000 to 0.0001. 1e-7 is always included: it
            represents the limit 0, where the last model is the best that its columns allow.
        seed: of local improvement inside the exact search.
        time_limit: seconds; the points found by then are returned.
    """

    learner = "pareto"

    tradeoffs: ArrayLike | None = option(_tradeoffs, default=None)

    @property
    def lambdas(self) -> Array:
        """The tradeoffs with the smallest one, descending."""
        given = TRADEOFFS if self.tradeoffs is None else self.tradeoffs
        return np.unique(np.append(given, SMALLEST_TRADEOFF))[::-1]


@learner(ParetoOptions)
def pareto(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: ParetoOptions
) -> Front:
    """Pareto-optimal paths between the cost of the last model and the interpretability loss
    L_alpha.

    Proposition 1: for every tradeoff lambda and every length K, the least c(b_K) + lambda sum_k
    alpha_k c(b_k) is problem (7) with other weights, solved by the exact search that starts from
    its neighbours' solutions. With at most 5000 sequences of columns, points that no weighted sum
    reaches (the dashed part of Fig. 2) are found by merging the fronts of all sequences: then no
    path dominates a point. Otherwise the unsupported points are the best found on the way, and
    `Front.boxes` shows where others may lie.

    >>> import numpy as np
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float), np.array([0, 1, 3, 5.0] * 5)
    >>> front = pareto(X, y, max_steps=2)
    >>> front.status.value, float(front.cost[0]), round(float(front.cost[-1]), 4)
    ('optimal', 3.6875, 0.0625)

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers, shape (rows,).
        sample_weight: weight of every row, shape (rows,).

    Raises:
        TypeError, ValueError: as `jaxrules.paths.fit`.
    """
    alpha, lambdas, max_steps = options.alpha, options.lambdas, options.max_steps
    run = options.run(total=max_steps * len(lambdas))
    space = ModelSpace.of(X, y, sample_weight, options)
    sums = _CostSums(space, space.problem(alpha).cost, alpha, lambdas, options.seed)
    n = len(space.allowed)
    enumerated = sum(n**steps for steps in range(1, max_steps + 1)) <= MAX_ENUMERATED
    points = [sums.point(np.zeros(0, np.int64), np.inf, True)]
    with run:
        sums.add_supported(points, max_steps, run)
        if enumerated and not run.stopped():
            sums.add_unsupported(points, max_steps, run)
    front = _nondominated(points)
    boxes = () if enumerated else tuple(_boxes(front))
    proved = Status.OPTIMAL if all(p.proved for p in front) else Status.STALLED
    status = run.limit or proved
    return Front(tuple(front), boxes, status, run.seconds())


class _CostSums(NamedTuple):
    """The weighted sums c(b_K) + lambda sum_k alpha_k c(b_k) (Eq. 8), and the points that minimise
    them.
    """

    space: ModelSpace
    cost: QuadraticCost
    alpha: Array
    tradeoffs: Array  # lambdas, descending
    seed: int

    def problem(self, steps: int, tradeoff: float) -> PathProblem:
        """The sum as problem (7)."""
        return PathProblem(self.cost, _tradeoff_weights(self.alpha[:steps], tradeoff))

    def point(
        self, sequence: Sequence, tradeoff: float, proved: bool, supported: bool = True
    ) -> FrontPoint:
        """The best path along a sequence of features."""
        steps = len(sequence)
        path = self.space.path(self.problem(steps, tradeoff).along(sequence), self.alpha[:steps])
        return FrontPoint(
            weighted_loss(path, self.alpha), float(path.costs[-1]), path, supported, tradeoff,
            proved,
        )  # fmt: skip

    def add_supported(self, points: list[FrontPoint], max_steps: int, run: Run) -> None:
        """Add the point of the least sum for every length and tradeoff, until time runs out."""
        previous: dict[float, Sequence] = {}  # of one step less
        known = np.zeros(0, np.int64)  # at the tradeoff before
        for steps, tradeoff in itertools.product(range(1, max_steps + 1), self.tradeoffs.tolist()):
            if run.stopped():
                break
            # Start from both neighbours: the path at the tradeoff before, and that of one step
            # less, whose last coefficient changes once more.
            starts = [] if tradeoff == self.tradeoffs[0] else [known]
            if tradeoff in previous:
                starts.append(np.append(previous[tradeoff], previous[tradeoff][-1]))
            problem = self.problem(steps, tradeoff)
            begun = problem.certificate()
            certificate = exact.search(problem, begun, run.stopped, starts, seed=self.seed)
            known = previous[tradeoff] = certificate.solution.features
            points.append(self.point(known, tradeoff, certificate.closed))
            run.report(len(points) - 1, certificate.objective)

    def add_unsupported(self, points: list[FrontPoint], max_steps: int, run: Run) -> None:
        """Add the points that no weighted sum reaches, from the fronts of all sequences."""
        fronts = _fronts(self.cost, self.alpha, self.tradeoffs, max_steps)
        points += [
            self.point(*found, True, supported=False) for found in _unsupported(self.cost, fronts)
        ]
        checked: set[float] = set()
        while new := [p for p in _nondominated(points) if p.interpretability not in checked]:
            if run.stopped():
                break
            for p in new:  # off the grid of tradeoffs another sequence may pass below
                checked.add(p.interpretability)
                below = _below(self.cost, self.alpha, fronts, p.interpretability, p.cost)
                if below is not None:
                    points.append(self.point(*below, True, supported=False))
                    checked.add(points[-1].interpretability)


def _tradeoff_weights(alpha: Array, tradeoff: float) -> Array:
    """alpha'_k = lambda alpha_k, and one more in the last step (below Eq. 8)."""
    weights = tradeoff * alpha
    weights[-1:] += 1.0
    return weights


def _nondominated(points: list[FrontPoint]) -> list[FrontPoint]:
    """The points that no other dominates, without duplicates; fewer steps win ties."""
    order = sorted(points, key=lambda p: (p.interpretability, p.cost, len(p.path), not p.supported))
    scale = 1e-9 * max(abs(p.cost) for p in points)
    front: list[FrontPoint] = []
    # In order of the loss, a point is dominated unless it costs less than all before it.
    for candidate in order:
        if not front or candidate.cost < front[-1].cost - scale:
            front.append(candidate)
    return _thinned(_with_support(front))


def _inside(points: Iterable[FrontPoint]) -> list[bool]:
    """Which points lie between others of the same sequence: all but the ends of its stretches."""
    keys = [None, *((point.path.features.tolist(), point.supported) for point in points), None]
    return [keys[i - 1] == keys[i] == keys[i + 1] for i in range(1, len(keys) - 1)]


def _thinned(front: list[FrontPoint]) -> list[FrontPoint]:
    """Drop near duplicates inside a stretch of one sequence; its ends stay."""
    loss = RESOLUTION * (front[-1].interpretability - front[0].interpretability)
    cost = RESOLUTION * (front[0].cost - front[-1].cost)
    kept: list[FrontPoint] = []
    for point, inside in zip(front, _inside(front), strict=True):
        last = kept[-1] if kept else point
        near = point.interpretability - last.interpretability < loss
        if not (inside and near and last.cost - point.cost < cost):
            kept.append(point)
    return kept


def _with_support(front: list[FrontPoint]) -> list[FrontPoint]:
    """Points above the lower convex hull are unsupported, wherever they were found."""
    hull: list[int] = []
    x, y = [p.interpretability for p in front], [p.cost for p in front]
    slack = 1e-12 * max(x) * max(y)

    def above(a: int, b: int, i: int) -> bool:
        return (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]) + slack

    # The lower hull from left to right: a point above the line of its neighbours leaves.
    for i in range(len(front)):
        while len(hull) > 1 and above(hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return [dataclasses.replace(point, supported=i in hull) for i, point in enumerate(front)]


def _boxes(front: list[FrontPoint]) -> Iterable[Box]:
    """Between neighbouring supported points of different sequences; those of one sequence are the
    ends of a convex curve that weighted sums follow.
    """
    supported = [p for p in front if p.supported]
    for left, right in itertools.pairwise(supported):
        if left.path.features.tolist() != right.path.features.tolist():
            yield Box((left.interpretability, right.interpretability), (right.cost, left.cost))


class _Fronts(NamedTuple):
    """The fronts of all sequences of a length: convex curves, of slope -tradeoff at every point."""

    sequences: NDArray[np.int64]  # (sequences, steps)
    tradeoffs: Array  # descending
    loss: Array  # (tradeoffs, sequences), ascending
    last: Array  # the cost of the last model, likewise


def _fronts(cost: QuadraticCost, alpha: Array, tradeoffs: Array, max_steps: int) -> list[_Fronts]:
    """By number of steps, each from the path of least loss to the one of least last cost."""
    # A very large tradeoff stands for the path of least loss, the other end of the curve.
    tradeoffs = np.append(1 / SMALLEST_TRADEOFF, tradeoffs)
    found = []
    for steps in range(1, max_steps + 1):
        every = np.array(list(itertools.product(range(len(cost.linear)), repeat=steps)), np.int64)
        costs = np.array([_costs(cost, alpha, every, tradeoff) for tradeoff in tradeoffs.tolist()])
        found.append(_Fronts(every, tradeoffs, costs @ alpha[:steps], costs[..., -1]))
    return found


def _costs(
    cost: QuadraticCost, alpha: Array, sequences: NDArray[np.int64], tradeoff: float
) -> Array:
    """Costs of the models on the best paths, shape (sequences, steps)."""
    weights = _tradeoff_weights(alpha[: sequences.shape[1]], tradeoff)
    return cost(_best_paths(cost, weights, sequences))


def _unsupported(cost: QuadraticCost, fronts: list[_Fronts]) -> list[tuple[Sequence, float]]:
    """The sequences and tradeoffs of all points that no other point dominates."""
    loss = np.concatenate([front.loss.ravel() for front in fronts])
    last = np.concatenate([front.last.ravel() for front in fronts])
    starts = np.cumsum([0, *(front.loss.size for front in fronts)])
    order = np.lexsort((last, loss))
    # The least last cost at no more loss, to begin with that of not moving
    below = np.minimum.accumulate(np.append(cost.constant, last[order]))[:-1]
    found = []
    for i in order[last[order] < below - 1e-9 * cost.constant].tolist():
        length = int(np.searchsorted(starts, i, side="right")) - 1
        front = fronts[length]
        tradeoff, sequence = divmod(i - int(starts[length]), len(front.sequences))
        found.append((front.sequences[sequence], float(front.tradeoffs[tradeoff])))
    return found


def _below(
    cost: QuadraticCost, alpha: Array, fronts: list[_Fronts], loss: float, last: float
) -> tuple[Sequence, float] | None:
    """The path of at most this loss with the least last cost, as its sequence and tradeoff, if that
    is below `last`.

    Between two of its points a front lies above both tangents: only sequences whose tangents pass
    below are examined.
    """
    best, least = None, last - 1e-9 * float(cost.constant)  # by more than rounding
    loss *= 1 - 1e-9
    for front in fronts:
        # Sequences whose curves have points on both sides of the loss, and so a tangent from each
        reached = (front.loss <= loss).sum(axis=0)
        some = np.flatnonzero((reached > 0) & (reached < len(front.tradeoffs)))
        left, right = reached[some] - 1, reached[some]
        tangents = [
            front.last[k, some] - front.tradeoffs[k] * (loss - front.loss[k, some])
            for k in (left, right)
        ]
        for i in np.flatnonzero(np.maximum(*tangents) < least).tolist():
            sequence = front.sequences[some[i]]
            low, high = front.tradeoffs[right[i]], front.tradeoffs[left[i]]
            tradeoff, cost_there = _at_loss(cost, alpha, sequence, loss, float(low), float(high))
            if cost_there < least:
                best, least = (sequence, tradeoff), cost_there
    return best


def _at_loss(
    cost: QuadraticCost, alpha: Array, sequence: Sequence, loss: float, low: float, high: float
) -> tuple[float, float]:
    """The tradeoff between two at which the best path of a sequence has this loss, and the cost of
    its last model. By bisection: the loss falls with the tradeoff.
    """
    for _ in range(60):
        # Tradeoffs span many orders of magnitude: their logarithms are halved.
        middle = float(np.sqrt(low * high))
        costs = _costs(cost, alpha, sequence[None], middle)[0]
        low, high = (middle, high) if costs @ alpha[: len(costs)] > loss else (low, middle)
    return high, float(_costs(cost, alpha, sequence[None], high)[0, -1])


def _best_paths(cost: QuadraticCost, weights: Array, sequences: NDArray[np.int64]) -> Array:
    """`best_path` of many sequences at once, shape (sequences, steps, features).

    The inner problem of Eq. 10: the change of step j is part of the models of all steps from j on,
    so changes j and k meet in those from max(j, k) on, with the sum of their weights.
    """
    count, steps = sequences.shape
    tails = tail_sums(weights)
    order = np.arange(steps)
    H = cost.curvature[sequences[:, :, None], sequences[:, None, :]]
    H = H * tails[np.maximum.outer(order, order)]
    diagonal = np.diagonal(H, axis1=1, axis2=2)
    # H is singular for dependent columns and steps of weight 0: a small ridge, and 1 for a zero row
    H[:, order, order] += 1e-12 * diagonal + (diagonal == 0)
    changes = np.linalg.solve(H, (cost.linear[sequences] * tails)[..., None])[..., 0]
    models = np.zeros((count, steps, len(cost.linear)))
    models[np.arange(count)[:, None], order, sequences] = changes
    return models.cumsum(axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class InterpretabilityDetails(Details):
    """What `interpretability` reports beside the path.

    Attributes:
        losses: the objective by number of steps.
        all_lengths: whether longer paths are excluded by proof.
    """

    losses: Mapping[int, float]
    all_lengths: bool


@options
class InterpretabilityOptions(_Lengths):
    """The options of `interpretability`.

    Attributes:
        method: "exact" (up to 11 columns that may change) or "mip".
        seed: has no effect; both searches are deterministic.
    """

    learner = "interpretability"

    method: Literal["exact", "mip"] = option(checks.choice, default="exact", known=("exact", "mip"))


@learner(InterpretabilityOptions)
def interpretability(
    X: TableLike,
    y: ArrayLike,
    model: Coefficients,
    sample_weight: ArrayLike | None,
    options: InterpretabilityOptions,
) -> Fit[CoordinatePath]:
    """The interpretability loss of a given model (Definition 1, Eq. 2): the least L_alpha of any
    path that ends in it.

    Paths of all lengths up to `max_steps` are searched. Longer ones are excluded by proof if the
    least cost of any model, paid in every step, already exceeds the best path.

    >>> import numpy as np
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float), np.array([0, 1, 3, 5.0] * 5)
    >>> found = interpretability(X, y, [3.0, 2.0], max_steps=4)
    >>> found.model.features.tolist(), round(found.objective, 4)
    ([0, 1], 0.875)

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers, shape (rows,).
        model: the model to explain, in the forms of `start`.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit with the best path (of no steps, and loss 0, if the model is the start), with
        `InterpretabilityDetails`.

    Raises:
        TypeError, ValueError: as `jaxrules.paths.fit`; if the model is not reachable in
            `max_steps`.
    """
    alpha, run = options.alpha, options.run(total=options.max_steps)
    space = ModelSpace.of(X, y, sample_weight, options)
    whole = space.problem(alpha, end=space.coefficients(model, "model"))
    check_method(whole, options.method, "squared")
    shortest = whole.fewest_steps
    if shortest == 0:
        path = space.path(whole.along(np.zeros(0, np.int64)), alpha[:0])
        details = InterpretabilityDetails(losses={0: 0.0}, all_lengths=True)
        return run.finish(path, 0.0, "min", Status.OPTIMAL, 0.0, details)
    least = max(float(whole.cost(whole.cost.minimiser())), 0.0)
    certificates: list[LayeredCertificate[Changes]] = []  # of the lengths from the shortest on
    all_lengths = False
    with run:
        lengths = range(shortest, options.max_steps + 1)
        all_lengths = _prove_by_length(certificates, whole, lengths, least, options.method, run)
    if not certificates:
        certificates.append(_cut(whole, shortest).certificate())
    found = _best(certificates)
    # The best path may have any length: the least bound of all lengths holds for it.
    found.bound = min(certificate.bound for certificate in certificates)
    if run.limit is not None:  # a length not examined costs at least `least` in every step
        examined = alpha[: shortest + len(certificates) - 1]
        found.bound = min(found.bound, least * float(examined.sum()))
    path = space.path(found.solution, alpha[: len(found.solution.features)])
    bound = min(max(found.bound, 0.0), path.loss)
    losses = {shortest + i: certificate.objective for i, certificate in enumerate(certificates)}
    details = InterpretabilityDetails(losses=losses, all_lengths=all_lengths)
    return run.finish(path, path.loss, "min", found.status, bound, details)


def _best(certificates: list[LayeredCertificate[Changes]]) -> LayeredCertificate[Changes]:
    return min(certificates, key=lambda certificate: certificate.objective)


def _cut(whole: PathProblem, steps: int) -> PathProblem:
    """The same problem for paths of fewer steps."""
    return dataclasses.replace(whole, step_weights=whole.step_weights[:steps])


def _prove_by_length(
    certificates: list[LayeredCertificate[Changes]],
    whole: PathProblem,
    lengths: range,
    least: float,
    method: Literal["exact", "mip"],
    run: Run,
) -> bool:
    """Add a certificate for every length; whether no longer path can be better, as every step costs
    at least `least`.
    """
    for steps in lengths:
        problem = _cut(whole, steps)
        if certificates and least * problem.step_weights.sum() >= _best(certificates).objective:
            return True
        certificates.append(problem.certificate())
        prove(problem, certificates[-1], method, run)
        best = _best(certificates)
        run.step(best.objective, len(best.solution.features), done=steps)
        if run.stopped():
            break
    return False
