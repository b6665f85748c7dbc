"""Layered search, which grows every state by one move, bounds, prunes and cuts the layer to a
width; and the certificate of any search.

A solution is a sequence of moves (features of a path, rules of a list); a state is the part of a
prefix that determines its future. Layer by layer, a `LayeredProblem` expands states to children,
each with a bound on all solutions with this prefix. Children that cannot beat the incumbent are
pruned; of children with equal futures only the best stays; the most promising of the others form
the next layer, up to a width. The bounds of dropped children enter the certificate: a narrow search
is a beam search with a proved gap, and a search that drops nothing is a proof.

One rule decides when to prune and when to stop: objectives that differ by at most
`LayeredCertificate.tolerance` count as equal. A state is pruned unless its bound is better than the
incumbent by more than that; a certificate is closed unless its own bound is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.limits import never as never
from jaxrules.tools.bits import distinct
from jaxrules.tools.fits import Status

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
SolutionT = TypeVar("SolutionT")
StatesT = TypeVar("StatesT")


@dataclass
class LayeredCertificate(Generic[SolutionT]):
    """The best solution of a search so far, and a proved bound on all solutions.

    Attributes:
        solution: the incumbent; at the start, any solution.
        evaluate: computes the objective from the solution alone, never from figures of the search.
        bound: no solution has a better objective.
        sense: "min" or "max".
        relative, absolute: the two parts of `tolerance`.
        improved: called with the objective of every new incumbent, and when a better bound is
            proved.
        objective: the objective of the incumbent.
        nodes: the number of states examined.
        dropped: the number of states left out because layers are cut to a width.
    """

    solution: SolutionT
    evaluate: Callable[[SolutionT], float]
    bound: float
    sense: Literal["min", "max"] = "min"
    relative: float = 1e-9
    absolute: float = 0.0
    improved: Callable[[float], object] | None = None
    objective: float = field(init=False)
    nodes: int = field(init=False, default=0)
    dropped: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.objective = self.evaluate(self.solution)
        self.prove(self.bound)

    @property
    def sign(self) -> float:
        """1 or -1: objectives times the sign are minimised."""
        return 1.0 if self.sense == "min" else -1.0

    @property
    def tolerance(self) -> float:
        """Objectives that differ by at most this count as equal: relative |objective| +
        absolute.
        """
        return self.relative * abs(self.objective) + self.absolute

    @property
    def settled(self) -> float:
        """States whose bound is no better than this are pruned: the objective, improved by the
        tolerance.
        """
        return self.objective - self.sign * self.tolerance

    @property
    def closed(self) -> bool:
        """Whether the bound meets the objective, up to the tolerance."""
        return self.sign * self.bound >= self.sign * self.settled

    @property
    def gap(self) -> float:
        """|bound - objective| / max(|objective|, 1e-12)."""
        return abs(self.bound - self.objective) / max(abs(self.objective), 1e-12)

    @property
    def status(self) -> Status:
        """OPTIMAL when closed, else STALLED."""
        return Status.OPTIMAL if self.closed else Status.STALLED

    def offer(self, solution: SolutionT) -> float:
        """Take a solution if it is better than the incumbent; returns its objective."""
        objective = self.evaluate(solution)
        if self.sign * objective < self.sign * self.objective:
            self.solution, self.objective = solution, objective
            # Beyond the new objective a bound can only be rounding: it is clipped.
            self.bound = self._possible(self.bound)
            if self.improved is not None:
                self.improved(objective)
        return objective

    def prove(self, bound: float) -> None:
        """Take a proved bound, clipped to the objective of the incumbent, which it can pass only by
        rounding.
        """
        known = self.bound
        self.bound = self._possible(self.sign * max(self.sign * known, self.sign * bound))
        if self.bound != known and self.improved is not None:
            self.improved(self.objective)

    def _possible(self, bound: float) -> float:
        return self.sign * min(self.sign * bound, self.sign * self.objective)


class Children(NamedTuple):
    """The children of some states of a layer: arrays with one entry per child.

    Attributes:
        parents: positions of the parents among the expanded states.
        moves: the moves appended to the parents, in the problem's own coding; further axes are
            allowed.
        bounds: no solution with this prefix has a better objective.
        reached: the objective so far; of children with equal `LayeredProblem.keys`, the one that is
            better here has a future at least as good.
        values: the objective if the sequence ends here, if that is a solution. On the last layer it
            always is, and equals the bound.
        promise: the unpruned children with the best promise form the next layer; None to use the
            bounds.
        left_out: a bound on children that are not listed, or None if all are.
    """

    parents: Indices
    moves: Indices
    bounds: Array
    reached: Array
    values: Array | None = None
    promise: Array | None = None
    left_out: float | None = None

    def take(self, chosen: NDArray[np.integer] | NDArray[np.bool_]) -> Children:
        """Some of them, by position or flag, as parents of the next layer."""
        promise = None if self.promise is None else self.promise[chosen]
        parts = (
            self.parents[chosen],
            self.moves[chosen],
            self.bounds[chosen],
            self.reached[chosen],
        )
        return Children(*parts, promise=promise)

    @classmethod
    def together(cls, some: list[Children]) -> Children:
        """The children of several chunks, as parents of the next layer."""
        if len(some) == 1:
            return some[0]
        parents, moves, bounds, reached = (
            np.concatenate(parts) for parts in list(zip(*some, strict=True))[:4]
        )
        promises = [chunk.promise for chunk in some if chunk.promise is not None]
        return cls(
            parents, moves, bounds, reached, promise=np.concatenate(promises) if promises else None
        )


class LayeredProblem(ABC, Generic[StatesT, SolutionT]):
    """A problem whose solutions are sequences of moves. `StatesT` holds the states of a layer as
    arrays.

    Attributes:
        depth: the most moves of a solution.
        chunk: the number of states expanded at once, between two checks of the clock.
        max_open: with more children than this, a layer is cut to its width before it is complete.
        by_parents: whether the states of the last layer come parent by parent, not best first.
    """

    depth: int
    chunk: int = 1_000
    max_open: int = 4_000_000
    by_parents: bool = False

    @abstractmethod
    def root(self) -> StatesT:
        """The first layer: the single state without moves."""

    @abstractmethod
    def expand(self, states: StatesT, some: slice, step: int, incumbent: float) -> Children:
        """The children of some states of layer `step`; those that cannot beat the incumbent may be
        left out.
        """

    @abstractmethod
    def grow(self, states: StatesT, children: Children, step: int) -> StatesT:
        """The next layer, of children whose parents are positions in this one."""

    @abstractmethod
    def solution(self, moves: Indices) -> SolutionT:
        """The solution of a sequence of moves."""

    def keys(self, states: StatesT, children: Children) -> Indices | None:
        """Integers, shape (children, words): children of one layer with equal rows have equal
        futures.
        """
        return None


def search(
    problem: LayeredProblem[StatesT, SolutionT],
    certificate: LayeredCertificate[SolutionT],
    widths: Iterable[int],
    stopped: Callable[[], bool] = never,
) -> None:
    """Search with one width after another until the certificate is closed. The certificate is valid
    at any time.

    Args:
        problem: defines the solutions.
        certificate: receives solutions and bounds.
        widths: states kept per layer, ascending.
        stopped: polled between chunks of states.
    """
    for width in widths:
        if not certificate.closed:
            certificate.prove(_Layers(problem, certificate, width).search(stopped))


class _Layers(Generic[StatesT, SolutionT]):
    """One search with one width. Here bounds are costs: bounds times the sign, to be minimised.

    Attributes:
        states, costs: the current layer, and the bounds of its states.
        trail: the parent and the move of every state, by layer.
        dropped: the least bound of the children left out.
    """

    def __init__(
        self,
        problem: LayeredProblem[StatesT, SolutionT],
        certificate: LayeredCertificate[SolutionT],
        width: int,
    ) -> None:
        self.problem, self.certificate, self.width = problem, certificate, width
        self.states, self.costs = problem.root(), np.full(1, -np.inf)
        self.trail: list[tuple[Indices, Indices]] = []
        self.dropped = np.inf

    @property
    def settled(self) -> float:
        """Children of at least this cost are pruned."""
        return self.certificate.sign * self.certificate.settled

    def search(self, stopped: Callable[[], bool]) -> float:
        """Returns the bound that the search proves."""
        return self.certificate.sign * self._least_cost(stopped)

    def _least_cost(self, stopped: Callable[[], bool]) -> float:
        """No solution costs less than this, even if the search was stopped."""
        problem = self.problem
        for step in range(problem.depth):
            open_children: list[Children] = []
            n_open = 0
            for first in range(0, len(self.costs), problem.chunk):
                if stopped():
                    # Every solution not yet seen descends from a child that was dropped, a state
                    # that was not expanded, or a child that is still open; or it was pruned, and
                    # costs `settled` at least.
                    waiting = (some.bounds.min(initial=np.inf) for some in open_children)
                    return min(self.dropped, self.settled, self.costs[first:].min(), *waiting)
                children = self._expanded(first, step)
                if step == problem.depth - 1:
                    continue
                open_children.append(children.take(children.bounds < self.settled))
                n_open += len(open_children[-1].parents)
                # Cutting a layer before it is complete may drop children that the whole layer would
                # keep; their bounds enter the certificate like others.
                if n_open > problem.max_open:
                    open_children = [self._cut(open_children)]
                    n_open = len(open_children[0].parents)
            if not n_open:
                break
            children = self._cut(open_children)
            if not len(children.parents):
                break
            if problem.by_parents and step == problem.depth - 2:
                children = children.take(np.argsort(children.parents, kind="stable"))
            self.trail.append((children.parents, children.moves))
            self.states, self.costs = problem.grow(self.states, children, step), children.bounds
        # What was neither pruned, at a cost of at least `settled`, nor dropped has been examined to
        # the end. The incumbent only improves, so earlier prunings hold at the last `settled`, too.
        return min(self.dropped, self.settled)

    def _expanded(self, first: int, step: int) -> Children:
        """The children of a chunk of states; offers the best solution among them to the
        certificate.
        """
        problem, certificate = self.problem, self.certificate
        some = slice(first, first + problem.chunk)
        children = problem.expand(self.states, some, step, certificate.objective)
        parents = children.parents + first
        # A child's solutions are among its parent's, whose bound may be the better one.
        costs = np.maximum(certificate.sign * children.bounds, self.costs[parents])
        children = children._replace(parents=parents, bounds=costs)
        certificate.nodes += len(parents)
        if children.left_out is not None:
            self.dropped = min(self.dropped, certificate.sign * children.left_out)
        values = None if children.values is None else certificate.sign * children.values
        if step == problem.depth - 1:
            # On the last layer every child is a solution, and its bound is its objective.
            values = costs
        if values is not None and values.min(initial=np.inf) < self.settled:
            best = values.argmin()
            moves = _moves(self.trail, parents[best], children.moves[best])
            certificate.offer(problem.solution(moves))
        return children

    def _cut(self, open_children: list[Children]) -> Children:
        """The most promising children, up to the width, without those dominated by others."""
        certificate, children = self.certificate, Children.together(open_children)
        # The incumbent may have improved since these children were listed.
        children = children.take(children.bounds < self.settled)
        keys = self.problem.keys(self.states, children) if len(children.parents) else None
        if keys is not None:
            # Best first, so that the first of equal futures is the one to keep. The others need no
            # entry in the certificate: none of their solutions beats its counterpart below the one
            # kept.
            order = np.argsort(certificate.sign * children.reached, kind="stable")
            first_of_key, _ = distinct(np.ascontiguousarray(keys[order]).view(np.uint64))
            children = children.take(order[first_of_key])
        first = children.bounds if children.promise is None else certificate.sign * children.promise
        order = np.argsort(first, kind="stable")
        certificate.dropped += max(len(order) - self.width, 0)
        beyond = children.bounds[order[self.width :]]
        self.dropped = min(self.dropped, float(beyond.min(initial=np.inf)))
        return children.take(order[: self.width])


def _moves(
    trail: list[tuple[Indices, Indices]], parent: np.int64, move: Indices | np.int64
) -> Indices:
    """The moves that lead to a child, shape (steps, ...)."""
    moves = [move]
    for parents, taken in reversed(trail):
        moves.append(taken[parent])
        parent = parents[parent]
    return np.array(moves[::-1])
