"""The best ensemble over all conjunctions, against brute force over all supports and a conic
solver.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from supports import best_losses, best_support

import jaxrules as jr
from jaxrules.ensembles.lire import all_conjunctions, search
from jaxrules.ensembles.lire.all_conjunctions import AllConjunctions, OptimalOptions, Propositions
from jaxrules.learning.training import training_data
from jaxrules.losses import loss_by_name
from jaxrules.rules.conditions import propositions_of
from jaxrules.solvers.rule_search.enumeration import large_sums
from jaxrules.solvers.rule_search.space import SearchSpace
from jaxrules.tools.bits import pack
from jaxrules.tools.runs import Run

LOSSES = ("logistic", "squared", "exponential", "poisson")
Floats = np.ndarray


# The oracle


def columns_of(X: Floats, max_length: int) -> tuple[Floats, list[tuple[int, ...]]]:
    """The distinct conjunctions of 0/1 columns and their negations, up to the complement, (rows,
    conjunctions), and the columns that each uses.
    """
    literals = [(j, X[:, j] == side) for j in range(X.shape[1]) for side in (0, 1)]
    found: dict[bytes, tuple[Floats, tuple[int, ...]]] = {}
    for length in range(1, max_length + 1):
        for chosen in itertools.combinations(literals, length):
            rows = np.logical_and.reduce([held for _, held in chosen])
            if rows.any() and not rows.all():
                key = (rows if not rows[0] else ~rows).tobytes()
                found.setdefault(key, (rows, tuple(j for j, _ in chosen)))
    return np.array([rows for rows, _ in found.values()], float).T, [
        used for _, used in found.values()
    ]


@dataclass(frozen=True)
class Case:
    """A small problem and the options of its fit."""

    X: Floats
    y: Any
    weight: Floats
    options: dict[str, Any]

    @classmethod
    def of(cls, seed: int, loss: str) -> Case:
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(2, 4)), int(rng.integers(12, 40))
        X = (rng.random((n, d)) < rng.uniform(0.3, 0.7)).astype(float)
        X[:2] = [[0.0] * d, [1.0] * d]
        score = 1.5 * X[:, 0] * X[:, 1] - rng.normal() * (1 - X[:, -1]) + 0.5 * rng.normal(size=n)
        if loss == "squared":
            y = score.round(2)
        elif loss == "poisson":
            y = rng.poisson(np.exp(np.clip(score, -3, 3))).astype(float)
            y[:2] = [0, 1]
        else:
            y = score > np.median(score)
            y[:2] = [False, True]
        weight = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
        options = {
            "loss": loss,
            "global_penalty": float(rng.choice([0.03, 0.05, 0.1])),
            "l2_penalty": float(rng.choice([1.0, 2.0, 8.0])),
            "max_length": int(rng.integers(1, 4)) if d > 2 else 2,
            "max_rules": [None, None, 1, 2][seed % 4],
        }
        return cls(X, y, weight, options)

    @property
    def target(self) -> Floats:
        y = np.asarray(self.y, float)
        return 2 * y - 1 if self.options["loss"] in ("logistic", "exponential") else y

    def fit(self, **changes: Any) -> jr.Fit[jr.RuleEnsemble]:
        return jr.lire.optimal(self.X, self.y, self.weight, **self.options | changes)

    def optimum(self, keeps: Any = None) -> tuple[float, tuple[int, ...]]:
        R, used = columns_of(self.X, self.options["max_length"])
        w = self.weight / self.weight.sum()
        return best_support(
            loss_by_name(self.options["loss"]), R, self.target, w, self.options["global_penalty"],
            self.options["l2_penalty"] / self.weight.sum(), self.options["max_rules"],
            (lambda support: True) if keeps is None else lambda s: keeps([used[m] for m in s]),
        )  # fmt: skip


def check(case: Case) -> None:
    fit, (least, _) = case.fit(), case.optimum()
    scale = 1e-5 * max(abs(least), 0.1)
    assert fit.status == "optimal"
    assert fit.objective == pytest.approx(least, abs=scale)
    assert fit.bound is not None
    assert fit.details.relaxation is not None
    assert fit.details.relaxation <= fit.bound <= least + 1e-9
    assert fit.objective >= least - 1e-7
    stated = jr.lire.objective(
        fit.model, case.X, case.y, global_penalty=fit.details.global_penalty, local_penalty=0.0,
        l2_penalty=fit.details.l2_penalty, sample_weight=case.weight,
    )  # fmt: skip
    assert stated == pytest.approx(fit.objective, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(10))
def test_brute_force(loss: str, seed: int) -> None:
    check(Case.of(seed, loss))


# The parts of the proof


def proof_of(case: Case) -> AllConjunctions:
    """The search of a case before it begins."""
    options = OptimalOptions(**case.options)
    data = training_data(
        case.X, case.y, loss_by_name(case.options["loss"]), sample_weight=case.weight
    )
    pool = propositions_of(data.table, max_cut_points=5)
    space = SearchSpace.of_codes(*pool.cell_codes(data.table))
    made = Propositions(pool, space, np.zeros((0, len(pool)), bool))
    return AllConjunctions(data, made, options, Run("test"))


@pytest.mark.full
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", [0, 4, 8, 12])  # without max_rules
def test_relaxation_is_that_of_a_conic_solver(loss: str, seed: int) -> None:
    cp = pytest.importorskip("cvxpy")
    case = Case.of(seed, loss)
    proof = proof_of(case)
    proof.generate()
    R, _ = columns_of(case.X, case.options["max_length"])
    w, y = case.weight / case.weight.sum(), case.target
    a, z, s = (cp.Variable(R.shape[1]) for _ in range(3))
    scores = R @ a + cp.Variable()
    losses = {
        "squared": lambda: cp.square(y - scores),
        "logistic": lambda: cp.logistic(-cp.multiply(y, scores)),
        "exponential": lambda: cp.exp(-cp.multiply(y, scores)),
        "poisson": lambda: cp.exp(scores) - cp.multiply(y, scores),
    }[loss]()
    limits = [z >= 0, z <= 1]
    limits += [cp.quad_over_lin(a[j], z[j]) <= s[j] for j in range(R.shape[1])]
    price, gamma = proof.unit * proof.price, proof.unit * proof.gamma
    cost = w @ losses + price / 2 * cp.sum(s) + gamma * cp.sum(z)
    least = float(cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL))
    assert proof.relaxation is not None
    assert proof.relaxation <= least + 1e-6
    assert proof.relaxation == pytest.approx(least, abs=2e-5 * proof.unit * proof.constant_loss)


@pytest.mark.full
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(20, 28))
def test_screening_keeps_every_rule_of_the_optimum(loss: str, seed: int) -> None:
    case = Case.of(seed, loss)
    proof, (least, support) = proof_of(case), case.optimum()
    proof.generate()
    proof.screen()
    if proof.bound >= proof.goal or proof.stated(proof.best.objective) <= least * (1 + 1e-9):
        assert proof.stated(proof.best.objective) == pytest.approx(least, abs=1e-5)
    assert proof.stated(proof.bound) <= least + 1e-9
    if not proof.complete or proof.stated(proof.best.objective) < least + 1e-5:
        return  # the optimum is known already
    R, _ = columns_of(case.X, case.options["max_length"])
    kept = {row.tobytes() for row in proof.pool.bits}
    first = np.unique(proof.pattern, return_index=True)[1]
    for rows in R[first][:, list(support)].T > 0:
        assert {pack(rows[None]).tobytes(), pack(~rows[None]).tobytes()} & kept


@given(
    st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.0, 0.3, 1.0, 3.0]),
    st.sampled_from([3, 10_000]),
)  # fmt: skip
def test_large_sums_are_all_of_them(seed: int, length: int, least: float, most: int) -> None:
    rng = np.random.default_rng(seed)
    masks = rng.random((12, 5)) < 0.5
    space = SearchSpace.of(masks)
    terms = rng.normal(size=space.activations.n_patterns)
    found = large_sums(space, terms, least, length, most=most)
    truth = {
        chosen: float(terms @ space.selected_groups(chosen))
        for size in range(1, length + 1)
        for chosen in itertools.combinations(range(5), size)
    }
    listed = {tuple(sorted(set(rule))): value for rule, value in zip(
        found.propositions.tolist(), found.sums.tolist(), strict=True
    )}  # fmt: skip
    assert len(listed) == len(found.sums) <= most
    for chosen, value in listed.items():
        assert value == pytest.approx(truth[chosen], abs=1e-12)
    assert found.threshold >= least
    assert listed.keys() >= {one for one, v in truth.items() if abs(v) > found.threshold + 1e-12}


# Options and limits


def table(n: int = 120) -> tuple[Any, Any]:
    """A number with gaps, a category and a number, and two classes."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n)),
            "colour": rng.choice(["red", "green", "blue"], n),
            "age": rng.integers(0, 3, n),
        }
    )
    score = 3.0 * (frame["colour"] == "red") * (frame["age"] > 0)
    return frame, np.where(score + rng.logistic(size=n) > 0.3, "yes", "no")


def test_categories_missing_values_and_required_columns() -> None:
    X, y = table()
    how = {"missing": "own_category", "global_penalty": 0.04, "l2_penalty": 4.0}
    free = jr.lire.optimal(X, y, **how)
    assert free.status == "optimal"
    used = {name for rule in free.model.conjunctions for name in
            (X.columns[c.feature] for c in rule)}  # fmt: skip
    assert "size" not in used
    with_size = jr.lire.optimal(X, y, required=["size"], **how)
    assert with_size.status == "optimal"
    assert any(c.feature == 0 for rule in with_size.model.conjunctions for c in rule)
    assert with_size.objective > free.objective
    without = jr.lire.optimal(X, y, forbidden=["colour"], **how)
    assert without.status == "optimal"
    assert all(c.feature != 1 for rule in without.model.conjunctions for c in rule)
    assert without.objective > free.objective


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(30, 33))
def test_required_against_brute_force(loss: str, seed: int) -> None:
    case = Case.of(seed, loss)
    last = case.X.shape[1] - 1
    least, _ = case.optimum(lambda used: any(last in columns for columns in used))
    fit = case.fit(required=[last])
    assert fit.status == "optimal"
    # Of conjunctions for the same rows, brute force knows the columns of one.
    assert fit.objective <= least + 1e-5 * max(abs(least), 0.1)
    assert any(c.feature == last for rule in fit.model.conjunctions for c in rule)


def test_several_classes_one_against_the_rest() -> None:
    X, _ = table()
    y = X["colour"].to_numpy()
    fit = jr.lire.optimal(X[["size", "age", "colour"]], y, missing="own_category")
    assert fit.model.n_outputs == 3
    assert fit.bound is not None
    assert fit.bound <= fit.objective
    assert (jr.predict(fit.model, X[["size", "age", "colour"]]) == y).all()


def test_a_pool_that_is_too_large_leaves_a_gap() -> None:
    case = Case.of(9, "squared")
    whole = case.fit()
    assert whole.status == "optimal"
    part = case.fit(max_candidates=1)
    assert part.status == "max_iterations"
    assert not part.details.complete
    assert part.bound is not None
    assert part.bound <= whole.objective <= part.objective + 1e-9
    stopped = case.fit(max_nodes=1)
    assert stopped.bound is not None
    assert stopped.bound <= whole.objective <= stopped.objective + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bound_is_true_whenever_time_ends(loss: str) -> None:
    case = Case.of(5, loss)
    best = case.fit()
    for ticks in (0, 3, 10, 20, 40, 80, 160):
        fit = case.fit(time_limit=jr.Deadline(ticks, clock=itertools.count().__next__))
        assert fit.bound is not None
        assert fit.bound <= best.objective + 1e-9
        assert fit.objective >= best.objective - 1e-7
        assert fit.status in ("optimal", "time_limit")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(40, 43))
def test_near_optimal_supports_are_all_of_them(loss: str, seed: int) -> None:
    case = Case.of(seed, loss)
    found = jr.lire.near_optimal(case.X, case.y, case.weight, within=0.08, **case.options)
    R, _ = columns_of(case.X, case.options["max_length"])
    w, most = case.weight / case.weight.sum(), case.options["max_rules"]
    gamma, ridge = case.options["global_penalty"], case.options["l2_penalty"]
    values: list[float] = []
    for size in range(min(4, 1 + (most or 4), 1 + R.shape[1])):
        supports = np.array(list(itertools.combinations(range(R.shape[1]), size)), int)
        supports = supports.reshape(len(supports), size)
        losses = best_losses(
            loss_by_name(case.options["loss"]), R, case.target, w, ridge / case.weight.sum(),
            supports,
        )  # fmt: skip
        values += (losses + gamma * size).tolist()
    truth = np.sort(values)
    truth = truth[truth <= truth[0] + 0.08 * abs(truth[0]) + 1e-9]
    small = np.array([len(one) <= 3 for one in found.supports])
    assert found.complete
    assert found.objectives[small] == pytest.approx(truth, abs=1e-6)
    assert found.bound <= found.optimum <= found.threshold
    assert (found.occurrences > 0).all()
    assert len(found[0].conjunctions) == len(found.supports[0])
    assert f"{len(found)} rule ensemble" in str(found)
    assert found.within == pytest.approx(0.08)
    if len(found.rules):
        assert f"rule, of {len(found.rules)}" in found._repr_html_()
    weights: dict[int, list[float]] = {}
    for support, model in zip(found.supports, found.models, strict=True):
        for rule, weight in zip(support, model.weights[:, 0].tolist(), strict=True):
            weights.setdefault(rule, []).append(weight)
    assert found.weight_ranges.tolist() == [
        [min(weights[r]), max(weights[r])] for r in range(len(found.rules))
    ]
    said = [jr.predict(model, case.X) for model in found.models]
    if found.schema.classes is None:
        numbers = np.array(said)
        with pytest.raises(ValueError, match="the models predict numbers"):
            found.possible(case.X)
    else:
        numbers = np.array([jr.predict_proba(model, case.X)[:, 1] for model in found.models])
        classes = np.array(found.schema.classes)
        expected = [(np.array(said) == one).any(axis=0) for one in classes]
        np.testing.assert_array_equal(found.possible(case.X), np.transpose(expected))
    np.testing.assert_array_equal(
        found.ranges(case.X), np.stack([numbers.min(axis=0), numbers.max(axis=0)], axis=1)
    )


def test_near_optimal_supports_that_are_too_many() -> None:
    case = Case.of(40, "logistic")
    found = jr.lire.near_optimal(case.X, case.y, within=0.5, limit=2, **case.options)
    assert len(found) == 2
    assert not found.complete
    assert found.status == "max_iterations"
    assert "There may be more" in str(found)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"global_penalty": 0.0}, "global_penalty must be"),
        ({"l2_penalty": 0.0}, "l2_penalty must be"),
        ({"max_length": 0}, "max_length must be"),
        (
            {"max_rules": 1, "required": ["size", "age"]},
            "required names 2 columns, but max_rules=1",
        ),
        ({"forbidden": ["size", "colour", "age"]}, "forbidden names every column"),
    ],
)
def test_bad_input(how: dict[str, Any], words: str) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=words):
        jr.lire.optimal(X, y, missing="own_category", **how)


@pytest.mark.parametrize("name", ["monotone", "first"])
def test_constraints_that_it_lacks_name_what_has_them(name: str) -> None:
    X, y = table()
    with pytest.raises(TypeError, match=rf"lire\.optimal cannot enforce {name}; .*lire"):
        jr.lire.optimal(X, y, missing="own_category", **{name: 0.1})


def test_squared_loss_of_many_patterns_with_and_without_its_gram(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(900, 3))
    y = 2.0 * ((X[:, 0] > 0) & (X[:, 1] > 0)) - (X[:, 2] > 0.5) + 0.3 * rng.normal(size=900)
    options: dict[str, Any] = {"global_penalty": 0.05, "max_cut_points": 4, "max_rules": 3}
    by_gram = jr.lire.optimal(X, y, **options)
    monkeypatch.setattr(all_conjunctions, "_GRAM", 0)
    monkeypatch.setattr(search, "FEW_PATTERNS", 20)  # refits merge patterns
    fit = jr.lire.optimal(X, y, **options)
    assert (fit.status, by_gram.status) == ("optimal", "optimal")
    assert fit.objective == pytest.approx(by_gram.objective, rel=1e-5)
    stated = jr.lire.objective(
        fit.model, X, y, global_penalty=0.05, local_penalty=0.0, l2_penalty=fit.details.l2_penalty
    )
    assert stated == pytest.approx(fit.objective, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", range(5))
def test_many_brute_forced_problems(loss: str, block: int) -> None:
    for seed in range(100 + 25 * block, 125 + 25 * block):
        check(Case.of(seed, loss))
