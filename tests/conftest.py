"""Strictness for every test, and the small things that several test files need."""

import io
import itertools
import math
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # before NumPy loads it: the processes share the cores

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

import jaxrules as jr
from jaxrules.data.table import MISSING, UNSEEN
from jaxrules.rules.lowered import Direction

# No example has to be quick: the machine may be busy. "steady" draws the same examples every time,
# so that a failure in CI is the change's; everyone else's runs go on looking for new ones.
patient = hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.register_profile("patient", patient)
hypothesis_settings.register_profile("steady", patient, derandomize=True)
hypothesis_settings.load_profile("patient")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without the folder of data sets, its tests are skipped: none asks the network."""
    if item.get_closest_marker("needs_data") and "JAXRULES_DATA" not in os.environ:
        pytest.skip("JAXRULES_DATA names no folder of data sets")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Three warnings are expected, and filters of the command line would turn them into errors.

    Most tests fit for an instant, or with a paper's start from 0: such a model may be worse than
    the constant, and test_losses.py has the warning. Directions of monotone columns are drawn at
    random; test_positive.py has the warning. loky says, in a thread that must not end, that
    it replaces a worker whose memory grew (it looks only if psutil is installed, as by dask).
    """
    expected = (
        "the model's mean .* training rows is",
        "no rule uses the monotone",
        "A worker stopped while some jobs",
    )
    for item, message in itertools.product(items, expected):
        item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}"))


@pytest.fixture(scope="session", autouse=True)
def strict_ranks() -> Iterator[None]:
    """Shapes are never stretched by accident: JAX raises where an
    operation would add a dimension.
    """
    before = jax.config.jax_numpy_rank_promotion
    jax.config.update("jax_numpy_rank_promotion", "raise")
    yield
    jax.config.update("jax_numpy_rank_promotion", before)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> None:
    """Shells start background jobs with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def timeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any time passes for limits in seconds: what a test waits for
    comes on a busy machine, too.
    """
    monkeypatch.setattr(
        jr.Deadline.__init__, "__defaults__", (itertools.count(step=1e-9).__next__,)
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that are drawn, none of them on the screen."""
    import tqdm.auto

    drawn: list[Any] = []

    class Quiet(tqdm.auto.tqdm):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs, file=io.StringIO())
            drawn.append(self)

    monkeypatch.setattr(tqdm.auto, "tqdm", Quiet)
    return drawn


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def schema() -> jr.Schema:
    """Two numeric columns and a categorical one; missing values allowed; two classes."""
    features = (
        jr.Feature("age"),
        jr.Feature("job", ("clerk", "cook", "smith")),
        jr.Feature("income"),
    )
    return jr.Schema(features, "own_category", ("no", "yes"), "buys")


@pytest.fixture
def table(schema: jr.Schema) -> jr.Table:
    """Eight rows with cut points, neighbours of cut points, missing
    values and an unseen category.
    """
    age = np.array([18.0, 30.0, np.nextafter(30.0, 99.0), 45.0, np.nan, -0.0, 1e300, 44.0])
    job = np.array([0, 1, 2, MISSING, 0, UNSEEN, 1, 2], np.int32)
    income = np.array([0.0, 1.5, np.nan, -2.5, 1e-300, 1e-300, 7.0, -1e300])
    return jr.Table(schema, (age, job, income))


@pytest.fixture
def rules(schema: jr.Schema) -> jr.Conjunctions:
    """Five rules: an interval, a mix, the empty conjunction, one that nothing
    satisfies, one on missing values.
    """
    c = jr.Condition
    return jr.Conjunctions.build(
        schema,
        [
            [c.above(0, 30.0), c.at_most(0, 45.0)],
            [c.none_of(1, [0], 3), c.at_least(2, 0.0, missing=True)],
            [],
            [c.above(0, 45.0), c.at_most(0, 30.0)],
            [c.is_missing(2, numeric=True)],
        ],
    )


@pytest.fixture
def ensemble(rules: jr.Conjunctions) -> jr.RuleEnsemble:
    return jr.RuleEnsemble(
        rules,
        np.array([[0.5], [-1.25], [0.125], [4.0], [0.0]]),
        np.array([-0.375]),
        link="logistic",
        options=(("loss", "logistic"), ("penalty", 0.1)),
    )


@pytest.fixture
def rule_list(rules: jr.Conjunctions) -> jr.RuleList:
    chosen = rules.take([4, 0, 1])
    shares = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.625, 0.375]])
    return jr.RuleList(chosen, np.array([1, 0, 1, 0], np.int32), shares)


def holds(condition: jr.Condition, value: float, numeric: bool) -> bool:
    """The meaning of one condition, in plain Python."""
    if numeric:
        if value != value:
            return condition.missing
        lower, upper = condition.lower, condition.upper  # infinite ends are none, sums may overflow
        above = lower == -math.inf or (value >= lower if condition.lower_closed else value > lower)
        below = upper == math.inf or (value <= upper if condition.upper_closed else value < upper)
        return bool(above and below and lower < math.inf and upper > -math.inf)
    if value == MISSING:
        return condition.missing
    if value == UNSEEN:
        return condition.unseen
    return int(value) in (condition.categories or frozenset())


def value_of(feature: int | Direction, table: jr.Table, row: int) -> float:
    """A column's value in one row, or a direction's: a plain sum in the order of its terms."""
    if isinstance(feature, int):
        return table.columns[feature][row].item()
    total = 0.0
    for f, weight, code, origin in zip(*feature.terms, strict=True):
        value = table.columns[f][row].item()
        total += weight * (
            value - origin if table.schema.features[f].is_numeric else float(value == code)
        )
    return total


def by_hand(rules: Any, table: jr.Table) -> np.ndarray:
    """Which rules every row satisfies, by loops; `rules` is an iterable
    of sequences of conditions.
    """
    rules = [list(rule) for rule in rules]
    result = np.zeros((table.n_rows, len(rules)), bool)
    for i in range(table.n_rows):
        for r, rule in enumerate(rules):
            result[i, r] = all(
                holds(c, value_of(c.feature, table, i), c.categories is None) for c in rule
            )
    return result


@pytest.fixture(scope="session")
def oracle() -> Callable[[Any, jr.Table], np.ndarray]:
    """Which rules every row satisfies, from the meaning of the conditions alone."""
    return by_hand
