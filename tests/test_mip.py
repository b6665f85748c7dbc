"""Mixed-integer programs solved by HiGHS, against brute force, and stopped early."""

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import cvxpy as cp
import highspy
import numpy as np
import pytest

from jaxrules.solvers import mip
from jaxrules.solvers.layered import never


def endless() -> float:
    return np.inf


@pytest.mark.parametrize("seed", range(4))
def test_solve_is_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    price, weight, choice = (
        rng.integers(1, 20, 7),
        rng.integers(1, 9, 7),
        cp.Variable(7, boolean=True),
    )
    extra, share = cp.Variable(integer=True), cp.Variable(bounds=[0, 0.5])
    constraints = [
        weight @ choice + extra + share <= 15,
        extra <= 2,
        extra >= -1,
        choice[0] + choice[1] == 1,
    ]
    objective = price @ choice + 3 * extra + share - 4  # with a constant
    program = cp.Problem(cp.Maximize(objective), constraints)
    proof = mip.solve(program, never, endless, mip_rel_gap=0.0)

    best = max(
        price @ bits + 3 * e + min(0.5, 15 - weight @ bits - e) - 4
        for bits in itertools.product((0, 1), repeat=7)
        for e in (-1, 0, 1, 2)
        if bits[0] + bits[1] == 1 and weight @ bits + e <= 15
    )
    assert proof.bound == pytest.approx(best)
    assert program.value == pytest.approx(best)
    assert objective.value == pytest.approx(best)
    least = cp.Problem(cp.Minimize(-objective), constraints)
    assert mip.solve(least, never, endless, mip_rel_gap=0.0).bound == pytest.approx(-best)


def test_an_infeasible_program_has_no_values() -> None:
    choice = cp.Variable(2, boolean=True)
    mip.solve(cp.Problem(cp.Minimize(cp.sum(choice)), [cp.sum(choice) == 3]), never, endless)
    assert choice.value is None


def market_split(rows: int = 6) -> tuple[cp.Problem, cp.Variable]:
    """Fifty bits whose weighted sums are near given numbers in every row: nobody proves the optimum
    in a day.
    """
    weights = np.random.default_rng(0).integers(0, 100, (rows, 10 * (rows - 1)))
    choice, off = cp.Variable(weights.shape[1], boolean=True), cp.Variable(rows)
    target = weights.sum(axis=1) // 2
    return cp.Problem(cp.Minimize(cp.sum(off)), [cp.abs(weights @ choice - target) <= off]), choice


def after(calls: int) -> Iterator[bool]:
    yield from itertools.repeat(False, calls)
    yield from itertools.repeat(True)


def test_a_search_that_is_stopped_keeps_what_it_has() -> None:
    program, choice = market_split()
    asked = after(10)
    proof = mip.solve(program, lambda: next(asked), endless, mip_feasibility_tolerance=1e-9)
    if choice.value is not None:  # on a busy machine it may not have begun
        assert np.isin(choice.value.round(6), [0, 1]).all()
        assert program.value > 0
        assert proof.bound is None or proof.bound <= program.value + 1e-9


def test_the_time_limit_is_that_of_highs_too() -> None:
    program, _ = market_split()
    mip.solve(program, never, lambda: 0.5)  # ends


def test_who_does_not_stop_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mip, "_PATIENCE", 0.0)
    program, choice = market_split()
    asked, released = after(2), threading.Event()
    with monkeypatch.context() as deaf:
        deaf.setattr(highspy.Highs, "solve", lambda solver: released.wait())
        assert mip.solve(program, lambda: next(asked), endless) == (None, 0)
    assert choice.value is None
    small = cp.Problem(cp.Maximize(choice[0]), [choice[0] <= 0.5])
    assert mip.solve(small, never, endless, mip_rel_gap=0.0).bound == 0.0, "while the other runs"
    released.set()


@pytest.mark.full
def test_a_process_ends_well_while_a_solver_that_was_left_still_runs() -> None:
    code = """
import numpy as np
from test_mip import market_split, mip

mip._PATIENCE = 0.0
solvers = [market_split()[0] for _ in range(2)]
stops = [iter([False, True]).__next__ for _ in solvers]
proofs = [mip.solve(solver, stop, lambda: np.inf) for solver, stop in zip(solvers, stops)]
# On a busy machine a solver may have reached its search, where it stops at once, with a bound.
print([proof.bound in (None, 0.0) for proof in proofs])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[True, True]"), done.stderr


def test_stopped_before_the_start() -> None:
    program, choice = market_split()
    assert mip.solve(program, lambda: True, endless) == (None, 0)
    assert choice.value is None
