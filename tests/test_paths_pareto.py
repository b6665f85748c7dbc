"""The price of interpretability, Definition 1, and the comparisons, on the toy problem
of the paper's Section 2.
"""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest

import jaxrules as jr
from jaxrules import paths
from jaxrules.paths.costs import mean_squared_error
from jaxrules.paths.problem import best_path
from jaxrules.tools.runs import Deadline

BEST = np.array([2.12, -0.94])


@pytest.fixture(scope="module")
def toy() -> tuple[pd.DataFrame, np.ndarray]:
    """Height and weight with correlation 0.9 and noise of variance 0.25, exactly (Eq. 1)."""
    n = 100
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 3))
    basis = np.linalg.qr(Z - Z.mean(axis=0))[0] * np.sqrt(n)
    X = np.stack([basis[:, 0], 0.9 * basis[:, 0] + np.sqrt(1 - 0.81) * basis[:, 1]], axis=1)
    return pd.DataFrame(X, columns=["height", "weight"]), X @ BEST + 0.5 * basis[:, 2]


def test_table_1(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = toy
    two = paths.fit(X, y, steps=2, end=BEST)
    np.testing.assert_allclose(two.model.costs, [2.04, 1.13, 0.25], atol=5e-3)
    three = paths.fit(X, y, steps=3, end=BEST)
    np.testing.assert_allclose(three.model.costs, [2.04, 0.60, 0.43, 0.25], atol=5e-3)
    np.testing.assert_allclose(three.model.models[1], [1.70, 0], atol=5e-3)
    np.testing.assert_allclose(paths.greedy(X, y, steps=2).costs[1:], [0.42, 0.39], atol=5e-3)
    np.testing.assert_allclose(paths.direct(X, y).costs[1:], [1.13, 0.25], atol=5e-3)


def test_definition_1(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = toy
    fit = paths.interpretability(X, y, BEST, max_steps=8)
    assert fit.status == "optimal"
    assert fit.details["all_lengths"]
    assert fit.objective == pytest.approx(1.2757, abs=1e-4)
    assert len(fit.model) == 3
    assert fit.objective == pytest.approx(min(fit.details["losses"].values()))
    for steps, loss in fit.details["losses"].items():
        assert paths.fit(X, y, steps=steps, end=BEST).objective == pytest.approx(loss)
    by_mip = paths.interpretability(X, y, BEST, max_steps=3, method="mip")
    assert by_mip.objective == pytest.approx(fit.objective, rel=1e-7)
    assert not by_mip.details["all_lengths"]
    nothing = paths.interpretability(X, y, [0.0, 0.0])
    assert nothing.objective == 0
    assert len(nothing.model) == 0
    assert "0 steps" in str(nothing.model)
    nothing.model.validate()
    with pytest.raises(ValueError, match="not reachable in 1 steps"):
        paths.interpretability(X, y, BEST, max_steps=1)
    with pytest.raises(ValueError, match="method"):
        paths.interpretability(X, y, BEST, method="local")  # type: ignore[arg-type]  # refused on purpose
    cut = paths.interpretability(X, y, BEST, time_limit=Deadline(0.0, clock=lambda: 0.0))
    assert cut.status == "time_limit"
    assert cut.bound is not None
    assert cut.bound <= fit.objective <= cut.objective


def test_theorem_1_limits(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = toy

    def loss(model: list[float], gamma: float) -> float:
        return paths.interpretability(X, y, model, max_steps=4, step_weights=gamma).objective

    # (a) for large gamma sparser models win, and among equally sparse ones the better
    assert loss([0.1, 0.0], 30.0) < loss([2.12, -0.94], 30.0)
    differences = [
        loss([0.0, 0.8], gamma) - loss([1.274, 0.0], gamma) for gamma in (3.0, 10.0, 30.0)
    ]
    assert 0 < differences[0] < differences[1] < differences[2]
    # (b) for small gamma the model with the greedy first step wins
    greedy = paths.greedy(X, y, steps=2).models[-1]
    for gamma in (0.1, 0.01):
        assert loss(BEST.tolist(), gamma) >= loss(greedy.tolist(), gamma) - 1e-9


def test_front_of_figure_2(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = toy
    front = paths.pareto(X, y, max_steps=3)
    assert front.status == "optimal"
    assert front.boxes == ()
    assert (np.diff(front.interpretability) > 0).all()
    assert (np.diff(front.cost) < 0).all()
    assert {len(point.path) for point in front.points} == {0, 1, 2, 3}
    first, last = front.points[0], front.points[-1]
    assert (first.interpretability, len(first.path)) == (0, 0)
    assert first.cost == pytest.approx(2.04, abs=5e-3)
    assert last.cost == pytest.approx(0.25, abs=1e-4)
    assert any(not point.supported for point in front.points)
    assert front.points[1].cost == pytest.approx(0.4179, abs=1e-4)
    for point in front.points:
        point.path.validate()
        assert point.interpretability == pytest.approx(paths.geometric_loss(point.path, 1.0))
        assert point.cost == pytest.approx(point.path.costs[-1])
    assert "unsupported" in str(front)
    assert front._repr_html_().count("<tr>") == 1 + len(front._shown())


def test_no_path_beats_the_front(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Random paths of up to three steps lie on or behind the front, up to the grid of tradeoffs."""
    X, y = toy
    front = paths.pareto(X, y, max_steps=3, tradeoffs=np.geomspace(1e3, 1e-3, 200))
    cost = paths.costs.mean_squared_error(X.to_numpy(), y, np.ones(len(y)))
    rng = np.random.default_rng(0)
    for steps in (1, 2, 3):
        for sequence in itertools.product(range(2), repeat=steps):
            for _ in range(20):
                models = paths.problem.best_path(
                    cost, rng.random(steps) ** 3 + 1e-3, np.array(sequence)
                )
                values = cost(models)
                better = front.cost[front.interpretability <= values.sum() + 1e-9].min()
                assert better <= values[-1] + 2e-2 * (2.04 - 0.25)


def test_weighted_sums_find_the_supported_points(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = toy
    front = paths.pareto(X, y, max_steps=3)
    for tradeoff in (3.0, 0.3, 0.03):
        values = [point.cost + tradeoff * point.interpretability for point in front.points]
        assert front.points[int(np.argmin(values))].supported


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_a_point_has_the_least_sum_of_its_features(gamma: float) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 3)) @ (np.eye(3) + rng.random((3, 3)))
    y = X @ rng.normal(size=3) + rng.normal(size=30)
    cost = mean_squared_error(X - X.mean(axis=0), y - y.mean(), np.ones(30))
    front = paths.pareto(X, y, max_steps=3, tradeoffs=[1.0, 0.1], step_weights=gamma)
    assert {(3, 0.1), (2, 0.1)} <= {(len(point.path), point.tradeoff) for point in front.points}
    for point in front.points[1:]:
        weights = point.tradeoff * gamma ** np.arange(1, len(point.path) + 1)
        weights[-1] += 1
        least = weights @ cost(best_path(cost, weights, point.path.features))
        assert point.cost + point.tradeoff * point.interpretability == pytest.approx(least)


@pytest.mark.parametrize(
    ("seed", "gamma"), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 0.5), (5, 3.0)]
)
def test_no_path_off_the_grid_dominates_a_point(seed: int, gamma: float) -> None:
    """Against all sequences at two hundred tradeoffs; the front knows three."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) @ (np.eye(3) + rng.random((3, 3)))
    y = X @ rng.normal(size=3) + rng.normal(size=30)
    alpha = gamma ** np.arange(1, 4)
    front = paths.pareto(X, y, max_steps=3, tradeoffs=[10.0, 0.3, 0.01], step_weights=gamma)
    cost = mean_squared_error(X - X.mean(axis=0), y - y.mean(), np.ones(30))
    slack = 1e-7 * float(cost.constant)
    assert (np.diff(front.cost) < 0).all()
    for steps in (1, 2, 3):
        for sequence in itertools.product(range(3), repeat=steps):
            for tradeoff in np.geomspace(30, 1e-6, 200):
                weights = tradeoff * alpha[:steps]
                weights[-1] += 1
                costs = cost(best_path(cost, weights, np.array(sequence)))
                behind = front.interpretability > alpha[:steps] @ costs + slack
                assert not (front.cost[behind] > costs[-1] + slack).any(), (sequence, tradeoff)


def test_front_without_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) @ (np.eye(4) + 0.5)
    y = X @ rng.normal(size=4) + rng.normal(size=40)
    full = paths.pareto(X, y, max_steps=3, tradeoffs=[10.0, 1.0, 0.1, 0.01])
    monkeypatch.setattr(sys.modules["jaxrules.paths.pareto"], "MAX_ENUMERATED", 1)
    front = paths.pareto(X, y, max_steps=3, tradeoffs=[10.0, 1.0, 0.1, 0.01])
    assert front.status == "optimal"
    assert front.boxes
    assert any(point.supported for point in front.points)
    lengths = [{len(p.path) for p in one.points if p.supported} for one in (front, full)]
    assert lengths[0] == lengths[1]
    for hidden in (point for point in full.points if not point.supported):
        inside = [
            box.interpretability[0] <= hidden.interpretability <= box.interpretability[1]
            and box.cost[0] <= hidden.cost <= box.cost[1]
            for box in front.boxes
        ]
        assert (
            any(inside)
            or hidden.cost >= front.cost[front.interpretability <= hidden.interpretability].min()
        )
    cut = paths.pareto(X, y, max_steps=3, time_limit=Deadline(0.0, clock=lambda: 0.0))
    assert cut.status == "time_limit"
    assert len(cut) == 1


@pytest.mark.parametrize("tradeoffs", [[], [-1.0], [np.nan], [[1.0]]])
def test_bad_tradeoffs(toy: tuple[pd.DataFrame, np.ndarray], tradeoffs: list[float]) -> None:
    with pytest.raises(ValueError, match="tradeoffs"):
        paths.pareto(*toy, max_steps=2, tradeoffs=tradeoffs)


def test_comparisons_never_beat_the_optimum() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ (np.eye(5) + 0.6)
    y = X @ rng.normal(size=5) + rng.normal(size=60)
    best = paths.fit(X, y, steps=5)
    greedy, direct = paths.greedy(X, y, steps=5), paths.direct(X, y)
    for path in (greedy, direct):
        path.validate()
        assert path.loss >= best.objective
    assert direct.costs[-1] == pytest.approx(
        np.linalg.lstsq(X - X.mean(0), y - y.mean(), rcond=None)[1][0] / 60
    )
    costs = paths.costs.mean_squared_error(X - X.mean(0), y - y.mean(), np.ones(60))
    final = direct.models[-1]
    for gamma in (0.3, 1.0, 3.0):
        by_hand = min(
            sum(gamma**k * costs(final * np.isin(range(5), order[:k])) for k in range(1, 6))
            for order in itertools.permutations(range(5))
        )
        assert paths.direct(X, y, step_weights=gamma).loss == pytest.approx(by_hand)
    to_end = paths.direct(X, y, end=[1.0, 0, 0, -1.0, 0])
    assert len(to_end) == 2
    with pytest.raises(ValueError, match="end equals start"):
        paths.direct(X, y, end=np.zeros(5))
    with pytest.raises(ValueError, match="forbidden"):
        paths.direct(X, y, end=np.eye(5)[0], forbidden=[0])


def test_direct_beyond_the_dynamic_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ rng.normal(size=4)
    best = paths.direct(X, y)
    monkeypatch.setitem(paths.direct.__globals__, "MAX_ORDERED", 2)
    greedy_order = paths.direct(X, y)
    np.testing.assert_allclose(greedy_order.models[-1], best.models[-1])
    assert greedy_order.loss >= best.loss - 1e-12


def test_lasso_sequence(toy: tuple[pd.DataFrame, np.ndarray]) -> None:
    from sklearn.linear_model import Lasso

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ (np.eye(5) + 0.6)
    y = X @ [1.0, 0, -1.0, 0.2, 0] + rng.normal(size=60)
    refitted = paths.lasso_sequence(X, y, steps=4, standardise=True)
    refitted.validate()
    sizes = np.count_nonzero(refitted.models, axis=1)
    np.testing.assert_array_equal(sizes, np.arange(len(sizes)))
    assert (np.diff(refitted.costs) < 0).all()
    raw = paths.lasso_sequence(X, y, steps=4, standardise=True, refit=False)
    assert (raw.costs[1:-1] >= refitted.costs[1:-1] - 1e-12).all()
    Z = (X - X.mean(0)) / X.std(0)
    target = (y - y.mean()) / y.std()
    knot = (
        np.abs(Z.T @ (target - Z @ raw.models[2])).max() / 60
    )  # the penalty at which the third one enters
    reference = (
        Lasso(alpha=knot, fit_intercept=False, tol=1e-12, max_iter=10**5).fit(Z, target).coef_
    )
    np.testing.assert_allclose(raw.models[2], reference, atol=1e-5)
    heading, rows = refitted.table()
    assert sum(cell != "" for cell in rows[-1][1:-1]) == len(refitted)
    assert len(heading) == len(refitted) + 2
    assert jr.predict(refitted, X, step=1).shape == (60,)


def test_each_stretch_ends_in_the_best_model_of_its_features():
    """Without the limit lambda -> 0, longer paths would only seem to improve
    on a path that is as good.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ np.array([[1.0, 0.9], [0.0, 0.44]])
    y = X @ np.array([2.1, -0.9]) + 0.5 * rng.normal(size=80)
    front = paths.pareto(X, y, max_steps=4)
    residual = y - y.mean() - (X - X.mean(0)) @ np.linalg.lstsq(X - X.mean(0), y - y.mean())[0]
    assert front.cost[-1] == pytest.approx((residual**2).mean(), rel=1e-10)
    assert len(front.points[-1].path) < 4  # a fourth step makes no better model
