"""The layered search and its certificate against brute force, in both directions,
however narrow or early stopped.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate


class Options(NamedTuple):
    sense: Any = "min"
    chunk: int = 1_000
    max_open: int = 4_000_000
    stops: bool = False  # whether a sequence may end early
    merges: bool = True  # whether the search knows that only the last move matters for what follows
    slack: float = 0.0  # how far bounds are from the best continuation
    hides: bool = False  # whether some children are left out, with their bound
    promise: bool = False  # whether layers are cut by something else than bounds


class Walk(layered.LayeredProblem[Any, tuple[int, ...]]):
    """Walks of `depth` moves; the price of a move depends on the move
    before. Whole prices make ties.
    """

    def __init__(self, seed: int, options: Options, moves: int = 4, depth: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.options, self.moves, self.depth = options, moves, depth
        self.chunk, self.max_open, self.rng = options.chunk, options.max_open, rng
        self.sign = 1 if options.sense == "min" else -1
        self.prices = rng.integers(-3, 4, (depth, moves, moves)).astype(float)
        self.ends = rng.integers(-4, 3, (depth, moves)).astype(
            float
        )  # what stopping after a move adds
        self.ends[-1] = 0.0
        # the best that may follow each move of each step, by dynamic programming
        self.best = np.zeros((depth, moves))
        for step in range(depth - 2, -1, -1):
            after = self.sign * (self.prices[step + 1] + self.best[step + 1])
            self.best[step] = self.sign * after.min(axis=1)
            if options.stops:
                self.best[step] = self.sign * np.minimum(
                    self.sign * self.best[step], self.sign * self.ends[step]
                )

    def evaluate(self, walk: tuple[int, ...]) -> float:
        steps = zip(range(self.depth), (0, *walk), walk, strict=False)
        return float(
            sum(self.prices[step, before, move] for step, before, move in steps)
            + self.ends[len(walk) - 1, walk[-1]]
        )

    def optimum(self) -> float:
        lengths = range(1, self.depth + 1) if self.options.stops else [self.depth]
        walks = itertools.chain.from_iterable(
            itertools.product(range(self.moves), repeat=n) for n in lengths
        )
        return self.sign * min(self.sign * self.evaluate(walk) for walk in walks)

    def certificate(self, **options: Any) -> LayeredCertificate[tuple[int, ...]]:
        return LayeredCertificate(
            (0,) * self.depth, self.evaluate, -self.sign * np.inf, self.options.sense, **options
        )

    def root(self) -> Any:
        return np.zeros(1, int), np.zeros(1)

    def expand(self, states: Any, some: slice, step: int, incumbent: float) -> Children:
        last, spent = (part[some] for part in states)
        reached = (spent[:, None] + self.prices[step, last]).ravel()
        parents, moves = np.divmod(np.arange(len(reached)), self.moves)
        slack = (
            self.sign * self.options.slack * self.rng.random(len(reached))
            if step < self.depth - 1
            else 0.0
        )
        bounds = reached + self.best[step, moves] - slack
        promise = self.rng.random(len(reached)) if self.options.promise else None
        children = Children(
            parents, moves, bounds, reached, reached + self.ends[step, moves], promise
        )
        if not self.options.stops:
            children = children._replace(values=None)
        if self.options.hides and len(reached) > 1:
            hidden = self.rng.random(len(reached)) < 0.3
            if hidden.any():
                left_out = self.sign * (self.sign * bounds[hidden]).min()
                parts = {
                    name: part[~hidden]
                    for name, part in children._asdict().items()
                    if part is not None
                }
                children = children._replace(**parts, left_out=float(left_out))
        return children

    def grow(self, states: Any, children: Children, step: int) -> Any:
        return children.moves, children.reached

    def solution(self, moves: Any) -> tuple[int, ...]:
        return tuple(moves.tolist())

    def keys(self, states: Any, children: Children) -> Any:
        return children.moves[:, None] if self.options.merges else None


OPTIONS = st.builds(
    Options, sense=st.sampled_from(["min", "max"]), chunk=st.sampled_from([1, 3, 1_000]),
    max_open=st.sampled_from([2, 4_000_000]), stops=st.booleans(), merges=st.booleans(),
    slack=st.sampled_from([0.0, 2.0, 9.0]), promise=st.booleans(), hides=st.just(False),
)  # fmt: skip


def check(walk: Walk, certificate: LayeredCertificate[tuple[int, ...]]) -> None:
    """The incumbent is what it is said to be, and the optimum lies between it and the bound."""
    sign, optimum = walk.sign, walk.optimum()
    assert certificate.objective == walk.evaluate(certificate.solution)
    assert sign * certificate.bound <= sign * optimum + 1e-8 <= sign * certificate.objective + 2e-8
    if certificate.closed:
        assert certificate.objective == pytest.approx(optimum)


@given(st.integers(0, 10**6), OPTIONS)
@settings(max_examples=150)
def test_a_search_that_drops_nothing_is_a_proof(seed: int, options: Options) -> None:
    walk = Walk(seed, options)
    certificate = walk.certificate()
    layered.search(walk, certificate, (10**6,))
    check(walk, certificate)
    assert certificate.closed or options.max_open == 2  # then a layer may have been cut
    assert certificate.status == ("optimal" if certificate.closed else "stalled")


@given(st.integers(0, 10**6), OPTIONS, st.integers(1, 6), st.booleans())
@settings(max_examples=200)
def test_a_narrow_search_bounds_what_it_dropped(
    seed: int, options: Options, width: int, hides: bool
) -> None:
    walk = Walk(seed, options._replace(hides=hides))
    certificate = walk.certificate()
    layered.search(walk, certificate, (width,))
    check(walk, certificate)
    first = certificate.bound
    layered.search(walk, certificate, (2 * width, 10**6))
    check(walk, certificate)
    assert walk.sign * certificate.bound >= walk.sign * first


@given(st.integers(0, 10**6), OPTIONS, st.integers(0, 30), st.integers(1, 5))
@settings(max_examples=200)
def test_a_search_may_be_stopped_at_any_time(
    seed: int, options: Options, after: int, width: int
) -> None:
    walk, polls = Walk(seed, options), itertools.count()
    certificate = walk.certificate()
    layered.search(walk, certificate, (width, 10**6), lambda: next(polls) >= after)
    check(walk, certificate)


@given(st.integers(0, 10**6), OPTIONS, st.integers(0, 30), st.sampled_from([1.0, 2.5, 5.0]))
@settings(max_examples=300)
def test_a_bound_knows_what_the_tolerance_pruned(
    seed: int, options: Options, after: int, tolerance: float
) -> None:
    """States no better than the incumbent by more than the tolerance are pruned, and may be
    better: also if the search is stopped before it ends.
    """
    walk, polls = Walk(seed, options), itertools.count()
    certificate = walk.certificate(absolute=tolerance)
    layered.search(walk, certificate, (10**6,), lambda: next(polls) >= after)
    assert walk.sign * certificate.bound <= walk.sign * walk.optimum() + 1e-8


def test_stopped_at_once_nothing_is_known() -> None:
    walk = Walk(0, Options())
    certificate = walk.certificate()
    layered.search(walk, certificate, (10,), lambda: True)
    assert (certificate.solution, certificate.bound, certificate.nodes) == (
        (0, 0, 0, 0),
        -np.inf,
        0,
    )


@given(st.integers(0, 10**6), OPTIONS)
@settings(max_examples=50)
def test_chunks_change_neither_objective_nor_bound(seed: int, options: Options) -> None:
    found = set()
    for chunk in (1, 2, 5, 1_000):
        walk = Walk(seed, options._replace(chunk=chunk, max_open=10**6, slack=0.0, promise=False))
        certificate = walk.certificate()
        layered.search(walk, certificate, (10**6,))
        found.add((certificate.objective, round(certificate.bound, 6)))
    assert len(found) == 1


@pytest.mark.parametrize("sense", ["min", "max"])
def test_states_with_equal_futures_are_expanded_once(sense: Any) -> None:
    merged, apart = (Walk(1, Options(sense, merges=merges, slack=1e9)) for merges in (True, False))
    certificates = merged.certificate(), apart.certificate()
    layered.search(merged, certificates[0], (10**6,))
    layered.search(apart, certificates[1], (10**6,))
    assert certificates[0].objective == certificates[1].objective == merged.optimum()
    assert certificates[0].nodes <= 4 + 3 * 4 * 4  # four states per layer, four moves each
    assert certificates[1].nodes > certificates[0].nodes


def test_what_is_within_the_tolerance_is_as_good() -> None:
    walk = Walk(3, Options())
    best = walk.optimum()
    near = next(
        w for w in itertools.product(range(4), repeat=4) if 0 < walk.evaluate(w) - best <= 1
    )
    certificate = LayeredCertificate(
        near, walk.evaluate, -np.inf, absolute=walk.evaluate(near) - best
    )
    layered.search(walk, certificate, (10**6,))
    assert certificate.closed
    assert certificate.solution == near
    certificate = LayeredCertificate(near, walk.evaluate, -np.inf)
    layered.search(walk, certificate, (10**6,))
    assert certificate.objective == best


@given(
    st.sampled_from([1.0, -1.0]), st.lists(st.floats(-9, 9), min_size=1), st.lists(st.floats(-9, 9))
)
def test_the_certificate_keeps_the_best_of_both(
    sign: float, offers: list[float], proofs: list[float]
) -> None:
    heard: list[float] = []
    certificate = LayeredCertificate(
        offers[0], lambda x: x, -sign * np.inf, "min" if sign > 0 else "max", improved=heard.append
    )
    for offer in offers:
        certificate.offer(offer)
    found = [offers[0], *heard]
    for proof in proofs:
        certificate.prove(proof)
    assert certificate.objective == sign * min(sign * offer for offer in offers)
    assert sign * certificate.bound == min(
        max([-np.inf, *(sign * p for p in proofs)]), sign * certificate.objective
    )
    assert np.all(np.diff(sign * np.array(found)) < 0)
    assert heard[len(found) - 1 :] == [certificate.objective] * (
        len(heard) + 1 - len(found)
    )  # bounds are told, too
    assert certificate.closed == (sign * certificate.bound >= sign * certificate.settled)
    if np.isfinite(certificate.bound):
        assert certificate.gap == abs(certificate.bound - certificate.objective) / max(
            abs(certificate.objective), 1e-12
        )
