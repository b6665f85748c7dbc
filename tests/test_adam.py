"""Adam against a plain loop, and its guarantees about rows, batches and stopping."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from compiling import compilations
from jaxrules.solvers import adam as adam_module
from jaxrules.solvers.adam import adam


@dataclasses.dataclass(frozen=True)
class Squares:
    """Least squares, one line per lane."""

    def __call__(self, lanes: Any, rows: Any, fixed: Any, step: Any) -> Any:
        weights, x, y = rows
        return (((lanes["a"] @ x[None] + lanes["b"][:, None] - y[None]) ** 2) * weights[None]).sum(
            axis=1
        ) * fixed


def problem(seed: int = 0, n: int = 40) -> tuple[Any, tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    lanes = {"a": np.array([[0.0], [1.0]]), "b": np.array([0.5, -0.5])}
    return lanes, (np.full(n, 1 / n), x, 2 * x - 1 + 0.1 * rng.normal(size=n))


def test_steps_are_those_of_a_plain_loop() -> None:
    lanes, rows = problem()
    found = list(
        adam(Squares(), lanes, rows, np.ones(2), n_rows=40, iterations=60, learning_rate=0.1)
    )
    a, b = np.array([0.0, 1.0]), np.array([0.5, -0.5])
    point, first, second = np.concatenate([a, b]), np.zeros(4), np.zeros(4)
    values = []
    for i in range(60):
        rest = np.outer(point[:2], rows[1]) + point[2:, None] - rows[2]
        values.append((rest**2).mean(axis=1))
        slope = 2 * np.concatenate([(rest * rows[1]).mean(axis=1), rest.mean(axis=1)])
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        move = first / (1 - 0.9 ** (i + 1)) / (np.sqrt(second / (1 - 0.99 ** (i + 1))) + 1e-8)
        point = point - 0.05 * (1 + np.cos(np.pi * i / 60)) * move
    assert [one.steps for one in found] == [25, 50, 60]
    np.testing.assert_allclose(found[-1].parameters["a"][:, 0], point[:2], rtol=1e-9)
    np.testing.assert_allclose(found[-1].parameters["b"], point[2:], rtol=1e-9)
    np.testing.assert_allclose(found[-1].values, np.mean(values[50:], axis=0), rtol=1e-9)


def test_many_parameters_ask_within_a_chunk_and_descend_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lanes, rows = problem()
    options = {"n_rows": 40, "iterations": 60, "learning_rate": 0.1, "batch_size": 7}
    whole = list(adam(Squares(), lanes, rows, np.ones(2), **options))
    monkeypatch.setattr(adam_module, "_WORTH_ASKING", 4 * 4)
    parts = list(adam(Squares(), lanes, rows, np.ones(2), **options))
    for one, other in zip(whole, parts, strict=True):
        assert one.steps == other.steps
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.parameters["a"], other.parameters["a"])
    asked: list[bool] = []
    short = adam(
        Squares(), lanes, rows, np.ones(2), stopped=lambda: asked.append(True) or len(asked) > 3,
        **options,
    )  # fmt: skip
    assert [one.steps for one in short] == [12]


def test_every_step_ends_within_the_ends() -> None:
    """Least squares of an intercept and a slope that may not exceed 1.5:
    the best intercept for it.
    """
    lanes, rows = problem()
    ends = (
        {"a": np.full((1, 1), -np.inf), "b": np.full(1, -np.inf)},
        {"a": np.full((1, 1), 1.5), "b": np.full(1, np.inf)},
    )
    options = {"n_rows": 40, "iterations": 400, "learning_rate": 0.1}
    found = list(adam(Squares(), lanes, rows, np.ones(2), ends=ends, **options))
    assert all((one.parameters["a"] <= 1.5).all() for one in found)
    np.testing.assert_array_equal(found[-1].parameters["a"], 1.5)
    np.testing.assert_allclose(
        found[-1].parameters["b"], (rows[2] - 1.5 * rows[1]).mean(), rtol=1e-4
    )


def test_nothing_is_compiled_for_other_numbers_of_steps_or_data() -> None:
    lanes, rows = problem(1)
    list(adam(Squares(), lanes, rows, np.ones(2), n_rows=40, iterations=30, learning_rate=0.1))
    lanes, rows = problem(2)
    options = {"n_rows": 40, "iterations": 70, "learning_rate": 0.2, "cosine": False}
    with compilations() as compiled:
        list(adam(Squares(), lanes, rows, np.ones(2), **options))
    assert compiled == []


def test_the_rate_stays_without_a_cosine() -> None:
    lanes, rows = problem()
    *_, last = adam(
        Squares(),
        lanes,
        rows,
        np.ones(2),
        n_rows=40,
        iterations=10,
        learning_rate=0.1,
        cosine=False,
    )
    optimiser = optax.adam(0.1, 0.9, 0.99)
    here = {name: jnp.asarray(array) for name, array in lanes.items()}
    state = optimiser.init(here)
    for _ in range(10):
        rest = here["a"] * rows[1][None] + here["b"][:, None] - rows[2][None]
        slopes = {"a": 2 * (rest * rows[1][None]).mean(axis=1)[:, None], "b": 2 * rest.mean(axis=1)}
        updates, state = optimiser.update(slopes, state)
        here = optax.apply_updates(here, updates)
    np.testing.assert_allclose(last.parameters["a"], here["a"], rtol=1e-4)


def test_padding_changes_nothing() -> None:
    lanes, rows = problem()
    padded = tuple(np.pad(array, (0, 8)) for array in rows)
    *_, plain = adam(
        Squares(), lanes, rows, np.ones(2), n_rows=40, iterations=30, learning_rate=0.1
    )
    *_, other = adam(
        Squares(), lanes, padded, np.ones(2), n_rows=40, iterations=30, learning_rate=0.1
    )
    np.testing.assert_allclose(plain.parameters["a"], other.parameters["a"], rtol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 7, 39])
def test_batches_are_drawn_from_the_rows_alone_and_come_to_the_solution(batch_size: int) -> None:
    lanes, rows = problem()
    padded = tuple(
        np.pad(array, (0, 24), constant_values=1e9 * (i > 0)) for i, array in enumerate(rows)
    )
    runs = [
        list(
            adam(
                Squares(), lanes, padded, np.ones(2), n_rows=40, iterations=800, learning_rate=0.1,
                batch_size=batch_size, seed=seed,
            )
        )[-1]
        for seed in (0, 0, 1)
    ]  # fmt: skip
    design = np.column_stack([rows[1], np.ones(40)])
    slope, constant = np.linalg.lstsq(design, rows[2], rcond=None)[0]
    np.testing.assert_allclose(runs[0].parameters["a"], slope, atol=0.05)
    np.testing.assert_allclose(runs[0].parameters["b"], constant, atol=0.05)
    np.testing.assert_array_equal(runs[0].parameters["a"], runs[1].parameters["a"])
    assert (runs[0].parameters["a"] != runs[2].parameters["a"]).all()


def test_it_stops_when_told() -> None:
    lanes, rows = problem()
    answers = iter([False, False, True])
    settings: dict[str, Any] = {"n_rows": 40, "iterations": 200, "learning_rate": 0.1}
    found = list(
        adam(Squares(), lanes, rows, np.ones(2), **settings, stopped=lambda: next(answers))
    )
    assert [one.steps for one in found] == [25, 50]
    assert not list(adam(Squares(), lanes, rows, np.ones(2), **settings, stopped=lambda: True))
