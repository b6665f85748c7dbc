"""Layered search: grow every state by one move, bound, prune, cut to a width; and the
certificate of any search.

A solution is a sequence of moves (features of a path, rules of a list), a state is what matters of
its beginning. Layer by layer, a `LayeredProblem` expands states to children, each with a bound on
all solutions that begin so. Children that cannot beat the incumbent are pruned, of children with
equal futures the best stays, and of the rest the most promising make the next layer, up to a width.
The bound of what is dropped enters the certificate: a narrow search is a beam search that knows how
far from the optimum it may be, and one that drops nothing is a proof.

The rule of closure, for every search: objectives that differ by at most `Certificate.tolerance`
count as equal. A state is pruned unless its bound is better than the incumbent by more; a
certificate is closed unless its bound is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.bits import distinct
from jaxrules.fits import Status

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
SolutionT = TypeVar("SolutionT")
StatesT = TypeVar("StatesT")


def never() -> bool:
    """`stopped` for searches without a limit."""
    return False


@dataclass
class Certificate(Generic[SolutionT]):
    """What a search knows: its best solution, and a proved bound on all solutions.

    Attributes:
        solution: the incumbent; to begin with, any solution.
        evaluate: the objective of a solution, computed from the solution alone, never
            from a search's own figures.
        bound: no solution has a better objective.
        sense: "min" or "max".
        relative, absolute: the two parts of `tolerance`.
        improved: called with the objective of every new incumbent, and when
            a better bound is proved.
        objective: the incumbent's.
        nodes: how many states were examined.
        dropped: how many of them were left out because layers are cut to a width.
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
        """Objectives that differ by no more count as equal: relative |objective| + absolute."""
        return self.relative * abs(self.objective) + self.absolute

    @property
    def settled(self) -> float:
        """The bound of what is pruned: the objective, improved by the tolerance."""
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
        """Take a solution if it is better than the incumbent; its objective."""
        objective = self.evaluate(solution)
        if self.sign * objective < self.sign * self.objective:
            self.solution, self.objective = solution, objective
            self.bound = self._possible(self.bound)
            if self.improved is not None:
                self.improved(objective)
        return objective

    def prove(self, bound: float) -> None:
        """Take a bound that was proved. Only by rounding can it pass the objective of a
        solution: it stops there.
        """
        known = self.bound
        self.bound = self._possible(self.sign * max(self.sign * known, self.sign * bound))
        if self.bound != known and self.improved is not None:
            self.improved(self.objective)

    def _possible(self, bound: float) -> float:
        return self.sign * min(self.sign * bound, self.sign * self.objective)


class Children(NamedTuple):
    """What states of a layer grow to: arrays with an entry per child.

    Attributes:
        parents: positions of the parents among the states that were expanded.
        moves: what was appended to them, in the problem's own code; further axes are allowed.
        bounds: no solution that begins so is better.
        reached: of children with equal `LayeredProblem.keys`, the better one has
            futures at least as good.
        values: the objective of stopping here, if that is a solution. On the last
            layer it is, and is the bound.
        promise: which of the children that are not pruned make the next layer, the better
            ones; None for the bounds.
        left_out: a bound on children that are not listed, or None if all are.
    """

    parents: Indices
    moves: Indices
    bounds: Array
    reached: Array
    values: Array | None = None
    promise: Array | None = None
    left_out: float | None = None

    def take(self, chosen: NDArray[Any]) -> Children:
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
        """Those of several chunks, as parents of the next layer."""
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
    """A problem whose solutions are sequences of moves. `StatesT` holds the
    states of a layer as arrays.

    Attributes:
        depth: the greatest number of moves.
        chunk: how many states are expanded at once, between two looks at the clock.
        max_open: children of one layer beyond which it is cut to its width before it is complete.
    """

    depth: int
    chunk: int = 1_000
    max_open: int = 4_000_000

    @abstractmethod
    def root(self) -> StatesT:
        """The layer of the one state without moves."""

    @abstractmethod
    def expand(self, states: StatesT, some: slice, step: int, incumbent: float) -> Children:
        """The children of some states of layer `step`; those that cannot beat the
        incumbent may be left out.
        """

    @abstractmethod
    def grow(self, states: StatesT, children: Children, step: int) -> StatesT:
        """The next layer, of children whose parents are positions in this one."""

    @abstractmethod
    def solution(self, moves: Indices) -> SolutionT:
        """The solution of a sequence of moves."""

    def keys(self, states: StatesT, children: Children) -> Indices | None:
        """Integers, shape (children, words): children of one layer with
        equal rows have equal futures.
        """
        return None


def search(
    problem: LayeredProblem[StatesT, SolutionT],
    certificate: Certificate[SolutionT],
    widths: Iterable[int],
    stopped: Callable[[], bool] = never,
) -> None:
    """Search with one width after the other until the certificate is closed. It is valid at any
    time.

    Args:
        problem: what is searched.
        certificate: takes what is found and proved.
        widths: states kept per layer, ascending.
        stopped: polled between chunks of states.
    """
    for width in widths:
        if not certificate.closed:
            certificate.prove(certificate.sign * _search(problem, certificate, width, stopped))


def _search(
    problem: LayeredProblem[StatesT, SolutionT],
    certificate: Certificate[SolutionT],
    width: int,
    stopped: Callable[[], bool],
) -> float:
    """One search; returns the bound that it proves. Here bounds are costs: times the sign."""
    sign = certificate.sign
    states, costs = problem.root(), np.full(1, -np.inf)
    trail: list[tuple[Indices, Indices]] = []  # the parent and the move of every state, by layer
    dropped = np.inf
    for step in range(problem.depth):
        last = step == problem.depth - 1
        open_children: list[Children] = []
        n_open = 0
        for first in range(0, len(costs), problem.chunk):
            if stopped():
                return min(
                    dropped,
                    costs[first:].min(),
                    *(some.bounds.min(initial=np.inf) for some in open_children),
                )
            children = problem.expand(
                states, slice(first, first + problem.chunk), step, certificate.objective
            )
            parents = children.parents + first
            children = children._replace(
                parents=parents, bounds=np.maximum(sign * children.bounds, costs[parents])
            )
            certificate.nodes += len(parents)
            if children.left_out is not None:
                dropped = min(dropped, sign * children.left_out)
            values = (
                children.bounds
                if last
                else None
                if children.values is None
                else sign * children.values
            )
            if values is not None and values.min(initial=np.inf) < sign * certificate.settled:
                best = values.argmin()
                certificate.offer(
                    problem.solution(_moves(trail, parents[best], children.moves[best]))
                )
            if last:
                continue
            open_children.append(children.take(children.bounds < sign * certificate.settled))
            n_open += len(open_children[-1].parents)
            if n_open > problem.max_open:
                children, cut = _cut(problem, certificate, states, open_children, width)
                open_children, dropped, n_open = (
                    [children],
                    min(dropped, cut),
                    len(children.parents),
                )
        if last:
            break
        children, cut = _cut(problem, certificate, states, open_children, width)
        dropped = min(dropped, cut)
        if not len(children.parents):
            break
        trail.append((children.parents, children.moves))
        states, costs = problem.grow(states, children, step), children.bounds
    return min(dropped, sign * certificate.settled)


def _cut(
    problem: LayeredProblem[StatesT, SolutionT],
    certificate: Certificate[SolutionT],
    states: StatesT,
    open_children: list[Children],
    width: int,
) -> tuple[Children, float]:
    """The most promising children, those needless beside others left out; and the
    least bound beyond the width.
    """
    children = Children.together(open_children)
    children = children.take(children.bounds < certificate.sign * certificate.settled)
    keys = problem.keys(states, children) if len(children.parents) else None
    if keys is not None:
        order = np.argsort(certificate.sign * children.reached, kind="stable")
        children = children.take(
            order[distinct(np.ascontiguousarray(keys[order]).view(np.uint64))[0]]
        )
    first = children.bounds if children.promise is None else certificate.sign * children.promise
    order = np.argsort(first, kind="stable")
    certificate.dropped += max(len(order) - width, 0)
    return children.take(order[:width]), float(children.bounds[order[width:]].min(initial=np.inf))


def _moves(trail: list[tuple[Indices, Indices]], parent: int, move: Any) -> Indices:
    """The moves that lead to a child, shape (steps, ...)."""
    moves = [move]
    for parents, taken in reversed(trail):
        moves.append(taken[parent])
        parent = parents[parent]
    return np.array(moves[::-1])
