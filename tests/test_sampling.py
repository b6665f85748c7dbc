"""`jaxrules.fit_on_sample`: equal to a plain fit if the sample has all rows, the same for blocks of
any size and of any source, and right about all rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from catalogue import CASES, Case
from problems import N_ROWS, NOISY
from problems import X as PEOPLE

OBJECTIVES = (
    "boosting-corrective-squared", "boosting-optimal-exponential", "drnet-zero-one",
    "exact_list-read-zero-one", "exact_list-search-zero-one", "glrm-beam-poisson",
    "lire-combo-logistic", "lire-combo-squared", "lltboost-squared", "ltrnet-soft-logistic",
    "regression_list-read-squared", "regression_list-squared", "rulefit-squared",
    "ssrl-penalty by noise-zero-one",
)  # fmt: skip
_random = np.random.default_rng(0)
X = _random.normal(size=(700, 3))
Y = np.where((X[:, 0] > 0.3) & (X[:, 1] < 0.5) ^ (_random.random(700) < 0.1), "yes", "no")
WEIGHTS = _random.integers(0, 3, 700).astype(float)
CLASSES = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
RULES = jr.Conjunctions.build(
    jr.as_table(X).schema,
    [[jr.Condition.above(j, c)] for j in range(3) for c in (-0.5, 0.0, 0.5)],
)
QUICK: dict[Any, dict[str, Any]] = {
    jr.boosting.fit: {"max_rules": 2},
    jr.drnet.fit: {"max_rules": 3, "iterations": 200},
    jr.exact_list.fit: {"max_rules": 2, "max_length": 1},
    jr.glrm.fit: {"rule_penalty": 0.02},
    jr.lire.fit: {"global_penalty": 0.02, "local_penalty": 0.1, "l2_penalty": 3.0},
    jr.lltboost.fit: {"max_rules": 2},
    jr.ltrnet.fit: {"max_rules": 2, "iterations": 200, "l1_penalty": 1e-3},
    jr.rulefit.fit: {"l1_penalty": 0.02},
    jr.ssrl.fit: {"max_rules": 2},
}
each_learner = pytest.mark.parametrize(
    "fit", QUICK, ids=[fit.options.learner for fit in QUICK]
)  # fmt: skip


def blocks_of(X: Any, y: Any, weights: Any = None, size: int = 100) -> Any:
    """A function that returns a fresh iterator of blocks."""

    def blocks() -> Iterator[Any]:
        for start in range(0, len(y), size):
            part = slice(start, start + size)
            more = () if weights is None else (weights[part],)
            yield (X[part], y[part], *more)

    return blocks


def same(one: jr.Fit[Any], other: jr.Fit[Any]) -> None:
    assert str(one.model) == str(other.model)
    assert one.objective == pytest.approx(other.objective, rel=1e-12)
    assert one.status == other.status
    for rated in ("sample", "rated"):
        left, right = (getattr(fit.details, rated) for fit in (one, other))
        assert vars(left) == {
            name: value if value is None else pytest.approx(value, rel=1e-9)
            for name, value in vars(right).items()
        }


# What is stated about all rows


@pytest.mark.parametrize("case", [case for case in CASES if str(case) in OBJECTIVES], ids=str)
@pytest.mark.full
def test_the_objective_on_all_rows_is_that_of_independent_code(case: Case) -> None:
    found = jr.fit_on_sample(
        case.learner.fit, PEOPLE, NOISY[case.target], rows=N_ROWS - 20, **case.settings
    )
    assert found.details.rated.rows == N_ROWS > found.details.sample.rows
    claim = next(iter(case.claims(found)))  # the others are about the search on the sample
    assert claim.stated == found.objective == pytest.approx(claim.recomputed, rel=1e-9, abs=1e-12)


@each_learner
@pytest.mark.parametrize("y", [Y, CLASSES], ids=["two", "three"])
@pytest.mark.full
def test_values_on_all_rows_are_those_of_the_whole_table(fit: Any, y: Any) -> None:
    found = jr.fit_on_sample(fit, X, y, WEIGHTS, rows=300, block_rows=90, **QUICK[fit])
    rated, whole = found.details.rated, (found.model, X, y, WEIGHTS)
    assert rated.accuracy == pytest.approx(jr.accuracy(*whole))
    assert rated.risk == pytest.approx(jr.risk(*whole))
    assert (rated.rows, rated.weight) == (np.count_nonzero(WEIGHTS), WEIGHTS.sum())
    assert found.details.sample.rows == 300
    assert found.details.rows == rated.rows
    assert found.objective == rated.objective
    assert found.bound is None
    assert found.status is not jr.Status.OPTIMAL
    labels, counts = np.unique(y[WEIGHTS > 0], return_counts=True)
    assert found.details.class_counts == dict(zip(labels.tolist(), counts.tolist(), strict=True))


@each_learner
@pytest.mark.full
def test_a_sample_of_all_rows_gives_the_plain_fit(fit: Any) -> None:
    plain = fit(X, Y, **QUICK[fit])
    found = jr.fit_on_sample(fit, blocks_of(X, Y), rows=len(X), **QUICK[fit])
    assert str(found.model) == str(plain.model)
    assert (found.objective, found.bound, found.status) == (
        plain.objective, plain.bound, plain.status
    )  # fmt: skip
    assert found.details.sample == found.details.rated
    assert set(plain.details) <= set(found.details)


@pytest.mark.parametrize("multiclass", ["joint", "one_vs_rest"])
@pytest.mark.parametrize("fit", [jr.boosting.fit, jr.lire.fit], ids=["boosting", "lire"])
def test_penalties_that_depend_on_rows_are_those_of_all_rows(fit: Any, multiclass: str) -> None:
    given = {**QUICK[fit], "l2_penalty": 3.0, "multiclass": multiclass}
    found = jr.fit_on_sample(fit, X, CLASSES, WEIGHTS, rows=300, **given)
    joint, weights = multiclass == "joint", np.asarray(found.model.weights)
    outputs = [weights] if joint else [column[:, None] for column in weights.T]
    holds = found.model.conjunctions.satisfied(jr.as_table(X))
    penalties = []
    for weight in outputs:
        ridge = 3.0 if joint else 1.5  # two classes together are the binary problem
        penalties.append(ridge / WEIGHTS.sum() * (weight**2).sum())
        if fit is jr.lire.fit:
            used = weight.any(axis=1)
            coverage = np.average(holds[:, used], axis=0, weights=WEIGHTS)
            penalties[-1] += 0.02 * used.sum() + 0.1 * (coverage.mean() if used.any() else 0.0)
    assert found.objective == pytest.approx(
        jr.risk(found.model, X, CLASSES, WEIGHTS) + np.mean(penalties)
    )


def test_a_users_loss_is_that_of_all_rows() -> None:
    def soft(y: Any, score: Any) -> Any:
        return jnp.sqrt(1 + (y - score) ** 2)

    found = jr.fit_on_sample(jr.boosting.fit, X, X[:, 0], rows=300, loss=soft, max_rules=1)
    assert found.details.rated.risk == pytest.approx(jr.risk(found.model, X, X[:, 0], loss=soft))


def test_nothing_is_proved_on_all_rows() -> None:
    found = jr.fit_on_sample(jr.exact_list.fit, X, Y, rows=300, **QUICK[jr.exact_list.fit])
    sample = found.details.sample
    assert sample.bound is not None
    assert sample.gap == pytest.approx(abs(sample.bound - sample.objective) / sample.objective)
    assert found.gap is found.details.rated.gap is None
    stages = jr.fit_on_sample(jr.boosting.fit, X, Y, rows=300, **QUICK[jr.boosting.fit])
    assert "Nothing is proved" in stages.advice
    assert stages.details.of_learner.proved_stages == (2, 2)
    assert stages.details.stages is stages.details.of_learner.stages
    with pytest.raises(AttributeError, match="has no 'stage'"):
        _ = stages.details.stage


def test_a_printed_fit_says_which_rows_it_is_about() -> None:
    part = jr.fit_on_sample(jr.boosting.fit, X, Y, rows=200, max_rules=2)
    said = f"Rules found on 200 of {len(Y)} rows; objective computed on {len(Y)}."
    assert repr(part).splitlines()[-1] == said
    whole = jr.fit_on_sample(jr.boosting.fit, X, Y, rows=len(Y), max_rules=2)
    assert "found on" not in repr(whole)


# The sample


@settings(max_examples=10)
@given(
    size=st.integers(1, 900), rows=st.integers(5, 750), seed=st.integers(0, 5),
    weighted=st.booleans(),
)  # fmt: skip
def test_blocks_of_any_size_give_the_same(size: int, rows: int, seed: int, weighted: bool) -> None:
    weights = WEIGHTS if weighted else None
    common = {"rows": rows, "seed": seed, **QUICK[jr.rulefit.fit], "rules": RULES}
    one = jr.fit_on_sample(jr.rulefit.fit, X, CLASSES, weights, **common)
    same(one, jr.fit_on_sample(jr.rulefit.fit, X, CLASSES, weights, block_rows=size, **common))
    same(one, jr.fit_on_sample(jr.rulefit.fit, blocks_of(X, CLASSES, weights, size), **common))
    n = min(rows, one.details.rows)
    assert n <= one.details.sample.rows <= n + 3


@pytest.mark.full
def test_the_sample_is_uniform() -> None:
    """Each of 40 rows is in half of 100 samples, up to four standard errors."""
    column = np.arange(40.0)
    drawn = np.zeros(40)
    for seed in range(100):
        seen: list[Any] = []
        jr.fit_on_sample(
            recording(seen), column[:, None], np.arange(40.0), rows=20, block_rows=7, seed=seed
        )
        drawn[seen[0].columns[0].astype(int)] += 1
    assert drawn.sum() == 100 * 20
    assert np.abs(drawn - 50).max() < 4 * 5


def recording(seen: list[Any]) -> Any:
    """GLRM, which also keeps the tables that it is given."""

    @functools.wraps(jr.glrm.fit)
    def fit(X: Any, y: Any, *args: Any, **options: Any) -> jr.Fit[Any]:
        seen.append(X)
        return constant

    constant = jr.glrm.fit(np.arange(40.0)[:, None], np.arange(40.0), rule_penalty=1e6)
    return fit


def test_a_rare_class_is_in_the_sample() -> None:
    y = np.where(np.arange(700) == 650, "rare", Y)
    found = jr.fit_on_sample(jr.rulefit.fit, X, y, rows=20, rules=RULES, l1_penalty=0.1)
    assert found.model.schema.classes == ("no", "rare", "yes")
    assert found.details.class_counts["rare"] == 1


def test_many_distinct_integers_stay_numbers() -> None:
    """Even if the sample has as few as classes can be."""
    y = np.arange(700) % 50
    found = jr.fit_on_sample(jr.rulefit.fit, X, y, rows=8, rules=RULES, l1_penalty=0.1)
    assert found.model.schema.classes is None
    assert found.details.rated.accuracy is None
    assert found.details.class_counts == {}


def test_the_automatic_size() -> None:
    wide, y = np.zeros((3000, 400)), np.arange(3000) % 2
    wide[:, 0] = y
    found = jr.fit_on_sample(jr.boosting.fit, wide, y, max_rules=1)
    assert found.details.sample.rows == 2000


# Sources of blocks


def frame() -> pl.DataFrame:
    text = np.where(X[:, 2] > 2, "seldom", np.where(X[:, 1] > 0, "u", "v"))
    return pl.DataFrame({"a": X[:, 0], "b": text, "target": Y, "w": WEIGHTS})


def of_frame(source: Any, y: Any = "target", weight: Any = "w") -> jr.Fit[Any]:
    return jr.fit_on_sample(
        jr.boosting.fit, source, y, weight, rows=200, block_rows=90, max_rules=2
    )


def test_lazy_frames_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, table = of_frame(frame()), frame()
    same(whole, of_frame(table.lazy()))
    assert whole.model.schema.features[1].categories == ("seldom", "u", "v")
    plain = of_frame(table.drop("target", "w"), table["target"], table["w"])
    same(whole, plain)
    same(whole, of_frame(lambda: table.iter_slices(60)))
    same(whole, of_frame(lambda: (part.to_dict(as_series=False) for part in table.iter_slices(60))))
    monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)  # as in earlier releases
    same(whole, of_frame(table.lazy()))


def test_pyarrow_datasets_are_read_in_blocks() -> None:
    pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    whole, table = of_frame(frame()), pa.table(frame().to_dict(as_series=False))
    same(whole, of_frame(table))
    same(whole, of_frame(dataset.dataset(table)))
    same(whole, of_frame(lambda: table.to_batches(max_chunksize=50)))
    with pytest.raises(TypeError, match="can be read only once"):
        of_frame(table.to_reader())


def test_blocks_may_be_empty_or_lack_weight_or_values() -> None:
    missing = np.where(np.arange(700)[:, None] // 100 == 3, np.nan, X)
    weights = np.where(np.arange(700) // 100 == 5, 0.0, 1.0)
    common = {"rows": 200, "missing": "own_category", **QUICK[jr.boosting.fit]}
    whole = jr.fit_on_sample(jr.boosting.fit, missing, Y, weights, **common)

    def blocks() -> Iterator[Any]:
        yield X[:0], Y[:0], weights[:0]
        yield from blocks_of(missing, Y, weights)()

    same(whole, jr.fit_on_sample(jr.boosting.fit, blocks, **common))
    assert whole.details.rows == 600


def test_categories_of_later_blocks_are_known() -> None:
    text = np.array([f"c{i // 100}" for i in range(700)], object)
    found = jr.fit_on_sample(
        jr.boosting.fit, blocks_of(pd.DataFrame({"a": X[:, 0], "b": text}), Y), rows=50, max_rules=1
    )
    assert found.model.schema.features[1].categories == tuple(f"c{i}" for i in range(7))


# Limits


def test_a_short_limit_gives_a_model_of_the_first_rows() -> None:
    clock = iter(np.arange(0, 1e6, 0.01))
    limit = jr.Deadline(0.2, lambda: float(next(clock)))
    found = jr.fit_on_sample(
        jr.boosting.fit, blocks_of(X, Y, size=20), rows=100, time_limit=limit, max_rules=1
    )
    assert found.status is jr.Status.TIME_LIMIT
    assert found.details.rows < 700
    assert found.details.rated.rows <= found.details.rows


def test_a_limit_that_reading_exceeds_leaves_a_rule() -> None:
    many = np.tile(X, (10, 1))
    now = iter([*np.zeros(3), *np.full(10_000, 5.0)])
    limit = jr.Deadline(1.0, lambda: float(next(now)))
    found = jr.fit_on_sample(jr.boosting.fit, many, np.tile(Y, 10), rows=6000, time_limit=limit)
    assert found.status is jr.Status.TIME_LIMIT
    assert len(found.model.conjunctions) > 0
    none = jr.fit_on_sample(jr.boosting.fit, many, np.tile(Y, 10), rows=6000, time_limit=0)
    assert len(none.model.conjunctions) == 0


@pytest.mark.parametrize("phase", ["reading", "evaluation"])
def test_ctrl_c_gives_the_model_and_what_was_counted(phase: str) -> None:
    told: list[jr.Progress] = []

    def interrupt(progress: jr.Progress) -> None:
        told.append(progress)
        if progress.task == "sample" and progress.phase == phase and progress.done >= 300:
            raise KeyboardInterrupt

    found = jr.fit_on_sample(
        jr.boosting.fit, blocks_of(X, Y), rows=50, progress=interrupt, max_rules=1
    )
    assert found.status is jr.Status.INTERRUPTED
    reached = (found.details.rows, found.details.rated.rows)
    assert reached == ((300, 50) if phase == "reading" else (700, 300))
    assert {progress.phase for progress in told} >= {"reading", phase}


# Bad input


def test_bad_arguments_are_named() -> None:
    fit, blocks = jr.boosting.fit, blocks_of(X, Y)
    read = blocks()
    for bad, error, words in (
        ((jr.boosting, X, Y), TypeError, "fit must be fit or cross_validate of boosting.*got jaxr"),
        ((jr.boosting.path, X, Y), TypeError, "fit must be"),
        ((jr.paths.fit, X, Y), TypeError, "fit must be"),
        ((None, X, Y), TypeError, "fit must be.*got NoneType"),
        ((fit, blocks()), TypeError, "read only once.*pass a function"),
        ((fit, lambda: read), TypeError, "fresh iterator.*the same one twice"),
        ((fit, blocks_of), TypeError, r"fresh iterator.*it has the arguments \(X"),
        ((fit, lambda: 3), TypeError, "fresh iterator of blocks at each call, got int"),
        ((fit, lambda: [X]), TypeError, r"must give blocks \(X, y\)"),
        ((fit, list), ValueError, "X has no rows"),
        ((fit, lambda: [(X[:0], Y[:0])]), ValueError, "X has no rows"),
        ((fit, blocks, Y), TypeError, "y and sample_weight of a source of blocks"),
        ((fit, X, "target"), TypeError, "y='target' names a column of X, but X is a ndarray"),
        ((fit, frame(), "missing"), ValueError, "y='missing' is not a column of X"),
        ((fit, frame().lazy(), "missing"), ValueError, "y='missing' is not a column of X"),
        ((fit, frame(), "target", "v"), ValueError, "sample_weight='v' is not a column of X"),
        ((fit, X, Y, "w"), TypeError, "sample_weight='w' names a column"),
        ((fit, X), ValueError, "y must be one-dimensional"),
        ((fit, X, Y, np.zeros(700)), ValueError, "sample_weight is zero for every row"),
        ((fit, blocks_of(X, Y, np.zeros(700))), ValueError, "no rows with a positive"),
        ((fit, blocks_of(X, Y, -WEIGHTS)), ValueError, "sample_weight has negative"),
        ((fit, blocks_of(np.where(X > 2, np.nan, X), Y)), ValueError, "X has missing values"),
        ((fit, blocks_of(X, np.where(X[:, 0] > 2, np.nan, X[:, 1]))), ValueError, "y has NaN"),
        ((fit, lambda: [(X, Y), (X[:, :2], Y)]), ValueError, "block 2 of X does not fit"),
        ((fit, lambda: [(X, Y), (X, X[:, 0])]), ValueError, "y holds numbers in block 2, but text"),
    ):
        with pytest.raises(error, match=words):
            jr.fit_on_sample(*bad)
    for options, words in (
        ({"rows": 0}, "rows must be at least 1"),
        ({"rows": None}, "rows must be an integer"),
        ({"rows": "all"}, 'rows must be an integer or "auto"'),
        ({"block_rows": 0}, "block_rows must be at least 1"),
        ({"seed": -1}, "seed must be"),
        ({"max_rule": 3}, "did you mean 'max_rules'"),
        ({"max_rules": 0}, "max_rules must be at least 1"),
        ({"time_limit": -1}, "time_limit must be"),
        ({"exposure": WEIGHTS}, "cannot draw exposure"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            jr.fit_on_sample(fit, X, Y, **options)
    with pytest.raises(ValueError, match="refit_on_all_rows=False cannot be combined"):
        jr.fit_on_sample(jr.lltboost.fit, X, Y, refit_on_all_rows=False)
    with pytest.raises(ValueError, match="y must be non-negative"):
        jr.fit_on_sample(fit, X, X[:, 0], loss="poisson", rows=10)
    many = np.arange(1500).astype(str)
    with pytest.raises(ValueError, match="more than 1000 classes"):
        jr.fit_on_sample(fit, many.astype(float)[:, None], many, rows=10)


def test_rows_that_change_between_calls_are_told() -> None:
    calls: list[int] = []

    def fewer() -> Iterator[Any]:
        calls.append(1)
        n = 700 if len(calls) < 4 else 300  # two calls compare iterators
        return iter([(X[:n], Y[:n])])

    with pytest.warns(UserWarning, match="X had 700 rows when the sample was drawn, and 300"):
        found = jr.fit_on_sample(jr.boosting.fit, fewer, rows=100, max_rules=1)
    assert found.details.rated.rows == 300
