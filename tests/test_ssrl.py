"""SSRL: gains and bounds against their definitions, searches against brute force,
the guarantee, the learner.
"""

import contextlib
import dataclasses
import itertools
import math
from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from test_exact_list import all_conditions as all_short_conditions
from test_exact_list import best_list, majority, random_problem
from test_exact_list import objective_of as list_objective

import jaxrules as jr
from compiling import compilations
from jaxrules.lists import insertion, reading, ssrl
from jaxrules.lists.insertion import (
    Examples,
    Subproblem,
    best_insertion,
    by_beam,
    exactly,
    gains_of,
    modmod,
)
from jaxrules.lists.literals import literals_of


def random_examples(seed, rows=40, literals=6, classes=2, local=0.0):
    """Rows with a class that depends on the literals, noisily."""
    rng = np.random.default_rng(seed)
    satisfied = rng.random((literals, rows)) < rng.uniform(0.2, 0.8, (literals, 1))
    label = np.where(
        rng.random(rows) < 0.3,
        rng.integers(classes, size=rows),
        (satisfied[0] * 1 + satisfied[1]) % classes,
    )
    counts = (label[:, None] == np.arange(classes)).astype(float)
    default = int(counts.sum(axis=0).argmax())
    return Examples(satisfied, counts, default, local_penalty=local)


def all_conditions(examples):
    n = len(examples.literals)
    return [c for size in range(1, n + 1) for c in itertools.combinations(range(n), size)]


def random_rules(rng, examples, m):
    """A list of m random rules."""
    conditions = all_conditions(examples)
    chosen = [conditions[i] for i in rng.choice(len(conditions), m, replace=False)]
    labels = tuple(rng.integers(examples.n_classes, size=m).tolist())
    return ssrl._InsertedRules(
        examples, 0.5, tuple(chosen), labels, tuple(examples.cover(c) for c in chosen)
    )


def search_of(examples, find=by_beam, **options):
    """A search with these options, not begun."""
    return ssrl._Search(examples, ssrl.SSRLPathOptions(**options), jr.tools.runs.Run("test"), find)


def rows_right(examples, rules):
    """f, less the price of reading, and its part c by the definition: rows one by one, rules one by
    one.
    """
    by_rule = by_default = 0.0
    for i in range(examples.n_rows):
        for condition, label in zip(rules.conditions, rules.labels, strict=True):
            by_default -= examples.local_penalty
            if all(examples.literals[j, i] for j in condition):
                by_rule += examples.counts[i, label]
                break
        else:
            by_default += examples.counts[i, examples.default]
    return by_rule, by_default


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(2, 4), st.sampled_from([0, 0.1]))
@settings(max_examples=40)
def test_objective_is_the_definition(seed, m, classes, local):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, random_examples(seed, classes=classes, local=local), m)
    expected = sum(rows_right(rules.examples, rules)) - 0.5 * sum(map(len, rules.conditions))
    assert rules.objective() == pytest.approx(expected)
    assert rules.merged().objective() == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(2, 4), st.sampled_from([0, 0.1]))
@settings(max_examples=30)
def test_gain_is_the_change_of_the_objective(seed, m, classes, local):
    """With alpha = 1 and the default charged where it decides, G is f after minus f before."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, random_examples(seed, classes=classes, local=local), m)
    first = rules.first()
    condition = tuple(sorted(rng.choice(len(rules.examples.literals), 2, replace=False).tolist()))
    gains = gains_of(
        rules.examples.cover(condition), rules.examples, first, rules.labels, 1.0, first == m
    )
    for position, label in itertools.product(range(m + 1), range(classes)):
        after = rules.insert(insertion.Insertion(0.0, condition, position, label))
        assert after.conditions[position] == condition
        assert gains[position, label] - 0.5 * 2 == pytest.approx(
            after.objective() - rules.objective()
        )


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 4))
@settings(max_examples=40)
def test_modular_bounds_bound_and_are_tight(seed, known, m):
    """The default label loses at most what a bound charges, and exactly that at the known list
    (Lemma 1).
    """
    rng = np.random.default_rng(seed)
    examples = random_examples(seed)
    pool = random_rules(rng, examples, known + m)
    given_rules, rules = pool.take(range(known)), pool.take(rng.permutation(known + m)[: max(1, m)])
    owned = examples.counts[:, examples.default]
    covering = np.sum(given_rules.covers, axis=0)

    def lost(covers):
        return owned[np.any(covers, axis=0)].sum() if len(covers) else 0.0

    def charged(bound, chosen):
        total = lost(given_rules.covers)
        mine = set(chosen.conditions)
        for condition, cover in zip(given_rules.conditions, given_rules.covers, strict=True):
            if condition not in mine and bound == 1:
                total -= owned[cover & (covering == 1)].sum()
        for condition, cover in zip(chosen.conditions, chosen.covers, strict=True):
            if condition not in given_rules.conditions:
                total += owned[cover & ((covering == 0) | (bound == 1))].sum()
        return total

    for bound in (1, 2):
        assert lost(rules.covers) <= charged(bound, rules) + 1e-9
        assert lost(given_rules.covers) == charged(bound, given_rules)


@pytest.mark.parametrize("few_rows", [0, 512], ids=["bits", "products"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("where", ["host", "priced", "priced on a mesh"])
def test_exact_search_equals_brute_force(few_rows, classes, where, monkeypatch):
    monkeypatch.setattr(Examples, "FEW_ROWS", few_rows)
    if where == "priced on a mesh":
        mesh = jax.make_mesh((1,), ("rows",))
        monkeypatch.setattr(jr.tools.placement, "mesh", lambda: mesh)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m, local = seed % 4, 0.0 if where == "host" else (0.02, 0.08)[seed // 4 % 2]
        rules = random_rules(rng, random_examples(seed, classes=classes, local=local), m)
        examples, first = rules.examples, rules.first()
        mask = first == m if seed % 2 else np.ones(examples.n_rows, bool)
        alpha = 1.0 if seed % 3 else 0.7
        limit = (None, 2)[seed % 2]
        problem = Subproblem(examples, first, rules.labels, alpha, mask, 0.5, limit, max_rules=4)
        best = max(
            gains_of(examples.cover(c), examples, first, rules.labels, alpha, mask).max()
            - 0.5 * len(c)
            for c in all_conditions(examples)
            if limit is None or len(c) <= limit
        )
        found = best_insertion(problem, exactly)
        assert found.gain == pytest.approx(max(best, 0.0), abs=1e-4)
        assert found.bound >= best - 1e-4
        assert found.bound <= max(best, 0.0) + 1e-3
        for find in (by_beam, modmod):
            other = best_insertion(problem, find)
            assert other.gain <= found.gain + 1e-4
            if other.condition:
                assert len(other.condition) <= (limit or 6)
                gains = gains_of(
                    examples.cover(other.condition), examples, first, rules.labels, alpha, mask
                )
                assert other.gain == pytest.approx(
                    gains[other.position, other.label] - 0.5 * len(other.condition)
                )


def test_bits_and_products_agree(monkeypatch):
    """Both kernels find insertions of equal gain on larger data, with weights of one for both."""
    examples = random_examples(3, rows=700, literals=12, classes=3)
    rules = random_rules(
        np.random.default_rng(0), random_examples(3, rows=700, literals=5, classes=3), 3
    )
    covers = tuple(examples.cover(c) for c in rules.conditions)
    rules = ssrl._InsertedRules(examples, 0.5, rules.conditions, rules.labels, covers)
    first = rules.first()
    gains = []
    for few_rows in (0, 10_000):
        monkeypatch.setattr(Examples, "FEW_ROWS", few_rows)
        problem = Subproblem(examples, first, rules.labels, 0.9, first == 3, 1.0, 4, max_rules=5)
        gains.append(best_insertion(problem, by_beam).gain)
    assert gains[0] == pytest.approx(gains[1], abs=1e-3)
    assert gains[0] > 0


@pytest.mark.parametrize("few_rows", [0, 10_000], ids=["bits", "products"])
def test_the_kernels_of_host_and_accelerators_agree(few_rows, monkeypatch):
    """Both are run on the CPU: the same scores, and the same conditions from a beam search."""
    monkeypatch.setattr(Examples, "FEW_ROWS", few_rows)
    examples = random_examples(3, rows=900, literals=70, classes=3)
    allowed = np.random.default_rng(1).random((3, 70)) < 0.9
    examples = dataclasses.replace(examples, allowed=allowed)
    conditions = ((0,), (1, 5), (2, 3))
    covers = tuple(examples.cover(one) for one in conditions)
    first = ssrl._InsertedRules(examples, 0.5, conditions, (0, 1, 2), covers).first()
    problem = Subproblem(examples, first, (0, 1, 2), 0.9, first == 3, 1.0, 4, max_rules=5)
    scores, found = [], []
    for host in (True, False):
        monkeypatch.setattr(insertion, "on_host", lambda host=host: host)
        placed = insertion._on_device(problem)
        assert isinstance(placed.literals, np.ndarray) == host
        states = np.random.default_rng(2).random((5, 70)) < 0.02
        rows = np.stack([placed.everything, *np.asarray(placed.covers)[:4]])
        scores.append([np.asarray(one) for one in insertion.score(states, rows, placed)])
        found.append([by_beam(problem, literals=some)[0] for some in (None, 40)])
    for one, other in zip(*scores, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)
        assert np.isfinite(one).any()
    assert found[0] == found[1]


def test_a_stopped_exact_search_bounds_what_it_left():
    examples = random_examples(5, rows=200, literals=10)
    calls = iter(range(10**6))
    first, everything = np.zeros(200, int), np.ones(200, bool)
    problem = Subproblem(examples, first, (), 1.0, everything, 0.1, None, max_rules=3)
    full = best_insertion(problem, exactly)
    stopped = best_insertion(problem, exactly, lambda: next(calls) > 2)
    assert stopped.gain <= full.gain
    assert stopped.bound >= full.gain - 1e-3


@pytest.mark.parametrize("classes", [2, 3])
def test_distorted_greedy_keeps_its_guarantee(classes, monkeypatch):
    """psi - pi of Algorithm 1 >= (1 - 1/e) / (K - 1) psi(R*) - pi(R*), R* any list
    without the default's label.
    """
    nu, penalty, tried = 2, 0.3, 0
    for seed in range(12):
        examples = random_examples(seed, rows=24, literals=3, classes=classes)
        labels = [k for k in range(classes) if k != examples.default]
        allowed = np.isin(np.arange(classes), labels)[:, None] & np.ones((1, 3), bool)
        examples = dataclasses.replace(examples, allowed=allowed)
        search = search_of(examples, exactly, max_rules=nu, literal_penalty=penalty)
        lists = []
        monkeypatch.setattr(search, "keep", lambda rules, lists=lists: lists.append(rules) or True)
        search.greedy(ssrl._InsertedRules(examples, penalty), 1)
        if not lists:
            continue
        tried += 1
        owned = examples.counts[:, examples.default]

        def parts(rules, owned=owned):
            right, _ = rows_right(rules.examples, rules)
            charge = sum(owned[cover].sum() for cover in rules.covers)
            return right, charge + penalty * sum(map(len, rules.conditions))

        reached = np.subtract(*parts(lists[-1]))
        rules_of_one = list(itertools.product(all_conditions(examples), labels))
        for size in (1, nu):
            for chosen_rules in itertools.product(rules_of_one, repeat=size):
                conditions, given_labels = zip(*chosen_rules, strict=True)
                covers = tuple(examples.cover(c) for c in conditions)
                psi, pi = parts(
                    ssrl._InsertedRules(examples, penalty, conditions, given_labels, covers)
                )
                assert reached >= (1 - 1 / math.e) / (classes - 1) * psi - pi - 1e-3
    assert tried >= 6


def test_steps_at_which_nothing_gains_are_passed_over(monkeypatch):
    """The same lists as step by step, with fewer sub-problems; the search ends where no later step
    gains.
    """

    def greedy(seed, nu):
        examples = random_examples(seed, rows=60, literals=5)
        search = search_of(examples, exactly, max_rules=nu, literal_penalty=0.5)
        for bound in (1, 2):
            search.greedy(search.best, bound)
        return search.best, search.best_objective, search.insertions

    quick = [greedy(seed, 40) for seed in range(6)]
    monkeypatch.setattr(ssrl, "bisect_left", lambda steps, found, lo, key: lo)
    slow = [greedy(seed, 40) for seed in range(6)]
    for (one, objective, _), (other, same, _) in zip(quick, slow, strict=True):
        assert (one.conditions, one.labels, objective) == (other.conditions, other.labels, same)
    assert sum(n for *_, n in quick) < sum(n for *_, n in slow)
    assert all(n < 2 * 40 for *_, n in quick)


def test_local_search_never_lowers_the_objective():
    for seed in range(6):
        examples = random_examples(seed, rows=80, literals=7, classes=3)
        search = search_of(examples, max_rules=4, literal_penalty=0.5)
        search.best = random_rules(np.random.default_rng(seed), examples, 4)
        search.best_objective = search.best.objective()
        for part in (search.reorder, search.replace):
            before = search.best_objective
            part()
            assert search.best_objective >= before
            assert search.best.objective() == pytest.approx(search.best_objective)


# The learner


@pytest.fixture(scope="module")
def iris():
    data = jr.datasets.load("iris")
    return np.stack(data.X.columns, axis=1), np.asarray(data.y)


NAMES = ("x0", "x1", "x2", "x3")


def recomputed(model, X, y, penalty):
    return float((jr.predict(model, X) == y).sum()) - penalty * float(
        model.conjunctions.propositions.sum()
    )


@pytest.mark.parametrize("subproblem", ["beam", "exact", "published"])
def test_fit_on_iris(iris, subproblem):
    X, y = iris
    options = {"max_rules": 5, "max_cut_points": 2, "max_length": 3}
    if subproblem == "published":
        fit = ssrl.published(X, y, **options)
    else:
        fit = ssrl.fit(X, y, subproblem=subproblem, **options)
    assert fit.sense == "max"
    assert fit.status == "converged"
    assert fit.objective == pytest.approx(recomputed(fit.model, X, y, 1.0))
    assert jr.accuracy(fit.model, X, y) >= 0.95
    assert len(fit.model.conjunctions) <= 5
    assert fit.model.conjunctions.propositions.max() <= 3
    assert fit.details["greedy_objective"] <= fit.objective


def test_a_perfect_list_is_found():
    X = np.array(list(itertools.product([0, 1], repeat=4)) * 4)
    y = np.where(X[:, 0] & X[:, 1], "a", np.where(X[:, 2] == 1, "b", "c"))
    fit = ssrl.fit(X, y, literal_penalty=0.5)
    assert jr.accuracy(fit.model, X, y) == 1.0
    assert fit.objective == len(y) - 0.5 * fit.model.conjunctions.propositions.sum()


def test_probabilities_are_smoothed_class_shares(iris):
    X, y = iris
    model = ssrl.fit(X, y, max_rules=3).model
    position = model.position(jr.as_table(X))
    for k in range(len(model.conjunctions) + 1):
        counts = (
            np.array([np.sum((position == k) & (y == label)) for label in model.schema.classes]) + 1
        )
        np.testing.assert_allclose(model.probabilities[k], counts / counts.sum())


def test_weights_repeat_rows(iris):
    X, y = iris
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    options = {
        "cut_points": {name: np.quantile(X[:, j], [0.3, 0.7]) for j, name in enumerate(NAMES)},
        "max_rules": 4,
    }
    weighted = ssrl.fit(X, y, sample_weight=weights, **options)
    repeated = ssrl.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), **options)
    assert weighted.objective == pytest.approx(repeated.objective)


def test_default_label(iris):
    X, y = iris
    for label in np.unique(y):
        model = ssrl.fit(X, y, default=label, max_rules=3).model
        assert model.schema.classes[model.labels[-1]] == label


def test_missing_and_unseen_categories():
    X = pd.DataFrame(
        {"colour": ["red", "blue", "green"] * 20, "size": [1.0, 2.0, np.nan, 4.0] * 15}
    )
    y = ((X.colour == "red") | X["size"].isna()).to_numpy()
    with pytest.raises(ValueError, match="missing"):
        ssrl.fit(X, y)
    fit = ssrl.fit(X, y, missing="own_category", literal_penalty=0.5)
    assert jr.accuracy(fit.model, X, y) == 1.0
    unseen = pd.DataFrame({"colour": ["violet"], "size": [2.0]})
    with pytest.warns(UserWarning, match="'violet'"):
        assert jr.predict(fit.model, unseen).tolist() == [
            False
        ]  # what is not seen satisfies no == and every !=


def test_time_limit_and_interrupt(iris):
    X, y = iris
    stopped = ssrl.fit(X, y, time_limit=0)
    assert stopped.status == "time_limit"
    assert len(stopped.model.conjunctions) == 0

    def interrupt(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    fit = ssrl.fit(X, y, progress=interrupt)
    assert fit.status == "interrupted"
    assert 1 <= len(fit.model.conjunctions) <= 2


def test_second_fit_compiles_nothing(iris):
    X, y = iris
    ssrl.fit(X, y, max_rules=4)
    with compilations() as compiled:
        ssrl.fit(X, y[::-1].copy(), max_rules=3)
    assert compiled == []


def test_under_the_precision_flag(iris):
    X, y = iris
    plain = ssrl.fit(X, y, max_rules=3)
    with jax.enable_x64(True):
        other = ssrl.fit(X, y, max_rules=3)
    assert other.objective == plain.objective
    assert str(other.model) == str(plain.model)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_rules", 0, ValueError),
        ("max_rules", 1.5, TypeError),
        ("literal_penalty", -1, ValueError),
        ("literal_penalty", "1", TypeError),
        ("max_length", 0, ValueError),
        ("subproblem", "best", ValueError),
        ("default", "rose", ValueError),
        ("max_cut_points", 0, ValueError),
        ("max_cut_points", [0.5, 0.7], TypeError),
        ("cut_points", {"height": [1.0]}, ValueError),
        ("local_search", 1, TypeError),
        ("seed", -1, ValueError),
        ("beam_width", 0, ValueError),
        ("max_rounds", 0, ValueError),
        ("propositions", [[1]], TypeError),
        ("beam_width", 2**40, ValueError),
        ("literal_penalty", 1e300, ValueError),
        ("time_limit", -1, ValueError),
        ("sample_weight", [1.0], ValueError),
    ],
)
def test_bad_arguments_are_named(iris, name, value, error):
    X, y = iris
    with pytest.raises(error, match=name):
        ssrl.fit(X, y, **{name: value})


def test_bad_data(iris):
    X, y = iris
    with pytest.raises(ValueError, match="one class"):
        ssrl.fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="varies across"):
        ssrl.fit(np.ones_like(X), y)
    with pytest.raises(ValueError, match="columns other than"):
        ssrl.fit(X, y, propositions=literals_of(jr.as_table(X[:, :2])))


def test_literals():
    table = jr.as_table(
        pd.DataFrame({"x": np.arange(100.0), "few": [0, 1] * 50, "c": ["a", "b"] * 50})
    )
    pool = literals_of(table, max_cut_points=3)
    texts = {pool.describe(i) for i in range(len(pool))}
    assert {"x < 25", "x >= 25", "x < 50", "x >= 75", "few < 1", "few >= 1"} <= texts
    assert len(pool) == 8  # c says what few says
    assert len(literals_of(table, cut_points={"x": [10.0]})) == 4
    assert len(literals_of(table, max_cut_points=None)) == 2 * 99 + 2


# Paths, and the paper's own algorithm


@pytest.mark.parametrize("constrained", [False, True])
def test_a_path_is_fits_each_started_from_the_one_before(iris, constrained):
    X, y = iris
    options = {"literal_penalty": 0.5, "max_cut_points": 4}
    if constrained:
        expert = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.below(2, 2.5)]])
        options |= {"forbidden": [3], "first": expert}
    path = ssrl.path(X, y, max_rules=4, **options)
    sizes = range(2, 5) if constrained else range(1, 5)
    start = None
    for fit, size in zip(path, sizes, strict=True):
        alone = ssrl.fit(X, y, max_rules=size, start=start, **options)
        assert str(fit.model) == str(alone.model)
        assert fit.objective == alone.objective
        assert dict(fit.model.options)["max_rules"] == size
        assert len(fit.model.conjunctions) <= size
        start = fit
    objectives = [fit.objective for fit in path]
    assert objectives == sorted(objectives)


def test_a_path_without_time_has_a_first_incumbent(iris):
    path = ssrl.path(*iris, time_limit=0)
    assert [(fit.status, len(fit.model.conjunctions)) for fit in path] == [("time_limit", 0)]

    def interrupt(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    path = ssrl.path(*iris, progress=interrupt)
    assert path[-1].status == "interrupted"
    assert len(path) < 20
    with pytest.raises(ValueError, match="max_rules must be at least 1"):
        ssrl.path(*iris, max_rules=0)


def test_the_published_algorithm_is_a_function_of_its_own(iris):
    with pytest.raises(ValueError, match=r"separate function: jaxrules\.ssrl\.published\(X, y"):
        ssrl.fit(*iris, subproblem="modmod")
    fit = ssrl.published(*iris, max_rules=3)
    assert dict(fit.model.options)["learner"] == "ssrl.published"
    assert fit.objective == pytest.approx(recomputed(fit.model, *iris, 1.0))
    once = ssrl.published(*iris, max_rules=3, max_rounds=1, local_search=False)
    assert once.details.rounds == 1
    assert once.objective <= fit.objective


def test_old_names_warn_and_work(iris):
    X, y = iris
    pool = literals_of(jr.as_table(X), max_cut_points=3)
    new = ssrl.fit(X, y, max_rules=2, max_cut_points=3)
    for old in ({"quantiles": 3}, {"literals": pool}):
        with pytest.warns(FutureWarning, match=f"{next(iter(old))} is now called"):
            assert str(ssrl.fit(X, y, max_rules=2, **old).model) == str(new.model)


# Lemmas 5 and 6


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 3))
@settings(max_examples=20)
def test_the_best_insertion_is_a_known_rule_or_the_best_of_all(seed, known, m):
    """Lemma 5: charging all rules as if they were new loses nothing, because known rules are
    examined separately.
    """
    rng = np.random.default_rng(seed)
    examples = random_examples(seed, classes=3)
    pool = random_rules(rng, examples, known + m)
    given_rules, rules = pool.take(range(known)), pool.take(range(known, known + m))
    covering = np.sum(given_rules.covers, axis=0)
    mine = set(zip(given_rules.conditions, given_rules.labels, strict=True))
    everything, alone = np.ones(examples.n_rows, bool), covering == 1

    def gain(condition, label, mask):
        cover = examples.cover(condition)
        return gains_of(cover, examples, rules.first(), rules.labels, 0.8, mask)[
            :, label
        ].max() - 0.5 * len(condition)

    new = {
        rule: gain(*rule, everything)
        for rule in itertools.product(all_conditions(examples), range(3))
    }
    old = {rule: gain(*rule, alone) for rule in mine}
    assert max([*new.values(), *old.values()]) == max((new | old).values())
    assert all(old[rule] >= new[rule] for rule in mine)


@given(st.integers(0, 10**6), st.integers(0, 3), st.floats(0.1, 1.0))
@settings(max_examples=25)
def test_the_gain_is_a_difference_of_submodular_functions(seed, m, alpha):
    """Lemma 6: G_2 = omega - v but for a constant, both monotone and submodular."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, random_examples(seed, classes=3), m)
    examples, first = rules.examples, rules.first()
    everything, position, label = (
        np.ones(examples.n_rows, bool),
        int(rng.integers(m + 1)),
        int(rng.integers(3)),
    )
    decided = np.array([*rules.labels, -1])[first]
    right = np.where(decided >= 0, examples.counts[np.arange(examples.n_rows), decided], 0.0)
    charge = alpha * (first >= position) * right + examples.counts[:, examples.default]
    reward = alpha * (first >= position) * examples.counts[:, label]

    def rejected(weight, condition):
        return weight[~examples.cover(condition)].sum()

    def omega(condition):
        return rejected(charge, condition)

    def v(condition):
        return rejected(reward, condition) + 0.5 * len(condition)

    large = tuple(rng.permutation(6)[: rng.integers(1, 6)].tolist())
    small, added = (
        large[: rng.integers(0, len(large) + 1)],
        int(rng.choice([j for j in range(6) if j not in large])),
    )
    for function in (omega, v):
        assert function((*small, added)) >= function(small) - 1e-9
        assert (
            function((*small, added)) - function(small)
            >= function((*large, added)) - function(large) - 1e-9
        )
    gain = gains_of(examples.cover(large), examples, first, rules.labels, alpha, everything)[
        position, label
    ]
    assert gain - 0.5 * len(large) == pytest.approx(
        (reward - charge).sum() + omega(large) - v(large)
    )


# Cross-validation


@pytest.mark.parametrize("constrained", [False, True])
def test_cross_validation_measures_held_out_rows(iris, constrained):
    X, y = iris
    sizes, options, same = [1, 4], {}, {}  # each fold chooses its own literals
    if constrained:  # an expert knows setosa, and the first column may not be used
        expert = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.below(2, 2.5)]])
        sizes, options = [2, 4], {"forbidden": [0], "first": expert, "first_labels": [y[0]]}
        options["max_cut_points"], same = 9, {"propositions": literals_of(jr.as_table(X))}
    folds = {
        "literal_penalties": [0.5, 3.0],
        "n_folds": 3,
        "one_standard_error": constrained,
        "quick_folds": not constrained,
        "seed": 1,
    }
    fit = ssrl.cross_validate(X, y, max_rules=sizes, **folds, **options)
    accuracies, details = fit.details["accuracies"], fit.details
    assert accuracies.shape == details["rules"].shape == details["literals"].shape == (3, 2, 2)
    mean, literals = accuracies.mean(axis=0), details["literals"].mean(axis=0)
    best = min(np.ndindex(2, 2), key=lambda at: (-mean[at], literals[at]))
    if constrained:
        close = mean >= mean[best] - accuracies[:, *best].std(ddof=1) / 3**0.5
        best = min(zip(*close.nonzero(), strict=True), key=lambda at: (literals[at], -mean[at]))
    assert (details["literal_penalty"], details["max_rules"]) == (
        [0.5, 3.0][best[0]],
        sizes[best[1]],
    )
    again = ssrl.fit(
        X, y, literal_penalty=details["literal_penalty"], max_rules=details["max_rules"], **options
    )
    assert fit.objective == again.objective
    assert str(fit.model) == str(again.model)
    found = details["cross_validation"]
    assert found.setting == {
        "literal_penalty": details["literal_penalty"], "max_rules": details["max_rules"]
    }  # fmt: skip
    np.testing.assert_array_equal(1 - found.risks, accuracies.reshape(3, 4))
    np.testing.assert_array_equal(found.sizes, details["rules"].reshape(3, 4))
    order = np.lexsort((y, *X.T[::-1]))[np.random.default_rng(1).permutation(len(y))]
    order = order[np.argsort(y[order], kind="stable")]
    for k in range(3):
        held_out = np.isin(np.arange(len(y)), order[k::3])
        for i, j in itertools.product(range(2), range(2)):
            setting = {"literal_penalty": [0.5, 3.0][i], "max_rules": sizes[j], **options}
            if not constrained:
                setting |= {"beam_width": 18, "local_search": False}  # half of the default's width
            alone = ssrl.fit(X[~held_out], y[~held_out], **same, **setting)
            assert accuracies[k, i, j] == pytest.approx(
                jr.accuracy(alone.model, X[held_out], y[held_out])
            )
            assert details["rules"][k, i, j] == len(alone.model.conjunctions)
            assert details["literals"][k, i, j] == alone.model.conjunctions.propositions.sum()


@pytest.mark.parametrize(("n_jobs", "total"), [(1, 6), (2, 3)])
def test_cross_validation_reports_settings_and_workers_report_folds(iris, n_jobs, total):
    reports = []
    options = {"literal_penalties": [1.0, 2.0], "max_rules": 2, "n_folds": 3, "n_jobs": n_jobs}
    with parallel_config(backend="threading"):
        ssrl.cross_validate(*iris, **options, progress=reports.append)
    assert {one.total for one in reports if "cross" in one.task} == {total}
    assert max(one.done for one in reports if one.total == total) == total


def test_cross_validation_compiles_once(monkeypatch):
    monkeypatch.setattr(Examples, "FEW_ROWS", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = (X[:, 0] > 0) ^ (rng.random(100) < 0.1)
    ssrl.fit(X, y, max_rules=3)
    with compilations() as compiled:
        ssrl.cross_validate(X, y, literal_penalties=[1.0, 2.0], max_rules=[2, 3], n_folds=3)
    assert compiled == []


def test_cross_validation_within_limits(iris):
    X, y = iris
    fit = ssrl.cross_validate(X, y, time_limit=0)
    assert fit.status == "time_limit"
    assert np.isnan(fit.details["accuracies"]).all()
    with pytest.raises(ValueError, match="fewer rows than n_folds = 51: 50 of class 'setosa'"):
        ssrl.cross_validate(X, y, n_folds=51)
    for name, value in {
        "literal_penalties": [-1.0],
        "max_rules": [0],
        "n_folds": 1,
        "beam_width": 0,
    }.items():
        with pytest.raises(ValueError, match=name):
            ssrl.cross_validate(X, y, **{name: value})
    with pytest.raises(TypeError, match="one_standard_error"):
        ssrl.cross_validate(X, y, one_standard_error="no")


def test_more_rows_than_can_be_counted_are_refused(iris, monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROWS", 100)
    with pytest.raises(ValueError, match="at most 100 can be counted exactly"):
        ssrl.fit(*iris)


# Many literals


def many_columns(n=300, columns=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns)).round(1)
    noise = rng.random(n) < 0.1
    return X, ((X[:, 3] > 0.2) & (X[:, 11] < 0.5)) ^ noise


def test_the_beam_refines_by_the_best_literals_alone():
    X, y = many_columns()
    whole = jr.ssrl.fit(X, y, max_rules=3, beam_literals=None)
    assert whole.details.n_literals > 100
    assert whole.details.beam_literals is None
    enough = jr.ssrl.fit(X, y, max_rules=3, beam_literals=whole.details.n_literals)
    assert enough.details.beam_literals is None
    assert enough.objective == whole.objective
    few = jr.ssrl.fit(X, y, max_rules=3, beam_literals=40)
    assert few.details.beam_literals == 40
    assert 0.9 * whole.objective < few.objective
    assert {one.feature for rule in few.model.conjunctions for one in rule} >= {3, 11}


@pytest.mark.parametrize("few_rows", [0, 512], ids=["bits", "products"])
def test_the_best_literal_is_among_the_screened_ones(few_rows, monkeypatch):
    """Three scores for two labels rank the literals; the best rule of one literal is first."""
    monkeypatch.setattr(Examples, "FEW_ROWS", few_rows)
    for seed in range(4):
        examples = random_examples(seed, literals=12)
        first, everything = np.zeros(examples.n_rows, np.intp), np.ones(examples.n_rows, bool)
        problem = Subproblem(examples, first, (), 1.0, everything, 0.1, 1, max_rules=3)
        few, whole = (best_insertion(problem, partial(by_beam, literals=n)) for n in (6, None))
        assert few.gain == whole.gain


def test_exact_search_takes_all_literals():
    X, y = many_columns(60, 12)
    options = {"subproblem": "exact", "max_rules": 1, "max_length": 2, "max_cut_points": 3}
    few, whole = (jr.ssrl.fit(X, y, beam_literals=some, **options) for some in (1, None))
    assert few.objective == whole.objective


def noisy_columns(n=1200, seed=0):
    """Rows of six columns; a rule of two conditions, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).round(2)
    return X, ((X[:, 0] > 0.1) & (X[:, 1] < 0.6)) ^ (rng.random(n) < 0.1)


@pytest.mark.parametrize("weighted", [False, True])
def test_beams_count_drawn_rows_and_all_rows_decide(weighted, monkeypatch):
    X, y = noisy_columns()
    weights = 1.0 + np.arange(len(X)) % 3 if weighted else None
    options = {"max_rules": 3, "literal_penalty": 2.0}
    whole = jr.ssrl.fit(X, y, weights, **options)
    assert whole.details.beam_rows is None
    counted = []
    kernel = insertion._on_device

    def watched(problem):
        counted.append(problem.examples.n_rows)
        return kernel(problem)

    monkeypatch.setattr(insertion, "_on_device", watched)
    fit = jr.ssrl.fit(X, y, weights, **options, beam_rows=600)
    assert set(counted) == {600}
    assert fit.details.beam_rows == 600
    assert fit.objective >= 0.97 * whole.objective
    weight = np.ones(len(y)) if weights is None else weights
    right = weight @ (jr.predict(fit.model, X) == y)
    assert fit.objective == pytest.approx(right - 2.0 * fit.model.conjunctions.propositions.sum())
    order = np.random.default_rng(1).permutation(len(X))
    other = jr.ssrl.fit(X[order], y[order], weight[order], **options, beam_rows=600)
    assert str(other.model.conjunctions) == str(fit.model.conjunctions)


def test_rows_are_drawn_in_proportion_to_their_weights():
    X, y = noisy_columns(400)
    weights = np.where(np.arange(len(y)) < 40, 50.0, 0.5)
    data = jr.ssrl.list_data(X, y, weights, options := ssrl.SSRLOptions(beam_rows=100))
    task = ssrl._SSRLTask.of(data, options, jr.tools.runs.Run("test"), 3)
    examples = task.for_beam(task.examples(data.weights), data.weights, options)
    sample = examples.sample
    assert sample.weight == pytest.approx(data.weights.sum() / 100)
    heavy = np.isin(sample.rows, np.unique(task.rows.pattern[:40]))
    assert np.count_nonzero(heavy) >= 90
    assert (sample.examples.literals == examples.literals[:, sample.rows]).all()
    assert (examples.counts[sample.rows][sample.examples.counts > 0] > 0).all()


def test_a_trial_that_cannot_reach_the_small_penalty_ends_early(monkeypatch):
    """A fit with the chosen penalty is the same; noise-free data keep the trial's list."""
    X, y = noisy_columns()
    noisy = y ^ (np.random.default_rng(3).random(len(y)) < 0.3)
    searched = []
    replaced = ssrl._Search.replace
    monkeypatch.setattr(
        ssrl._Search, "replace", lambda self: (searched.append(self.penalty), replaced(self))[1]
    )
    fit = jr.ssrl.fit(X, noisy, max_rules=3)
    penalty = fit.details.literal_penalty
    assert penalty >= 4.0
    assert searched[-1] == penalty == min(searched)
    given = jr.ssrl.fit(X, noisy, max_rules=3, literal_penalty=penalty)
    assert str(given.model.conjunctions) == str(fit.model.conjunctions)
    clean = jr.ssrl.fit(X, (X[:, 0] > 0.1) & (X[:, 1] < 0.6), max_rules=3)
    assert clean.details.literal_penalty == 1.0
    assert 1.0 in searched


@pytest.mark.parametrize("learner", [jr.ssrl, jr.exact_list], ids=["ssrl", "exact_list"])
def test_a_path_with_the_default_penalty_has_the_probabilities_of_the_default_fit(
    learner: Any,
) -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (200, 3))
    y = np.where((X[:, 0] > 1) ^ (rng.random(200) < 0.25), "b", "a")
    fit, last = learner.fit(X, y, max_rules=2), learner.path(X, y, max_rules=2)[-1]
    assert fit.details.literal_penalty == 4.0
    given = learner.fit(X, y, max_rules=2, literal_penalty=4.0)
    for other in (last, given):
        assert list(other.model.conjunctions) == list(fit.model.conjunctions)
        assert other.model.labels.tolist() == fit.model.labels.tolist()
    np.testing.assert_array_equal(last.model.probabilities, fit.model.probabilities)
    assert not np.allclose(given.model.probabilities, fit.model.probabilities)
    given_path = learner.path(X, y, max_rules=2, literal_penalty=4.0)[-1]
    np.testing.assert_array_equal(given_path.model.probabilities, given.model.probabilities)


@pytest.mark.parametrize("local", [0.005, 0.02, 0.08])
def test_a_local_penalty_is_in_the_objective(local):
    found = 0
    for seed in range(12):
        X, y = random_problem(seed, 2 + seed % 2)
        rng = np.random.default_rng(seed)
        weights = [np.ones(30), rng.integers(1, 5, 30).astype(float), rng.uniform(0.2, 2, 30)]
        weights = weights[seed % 3]
        first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.at_least(2, 1.0)]])
        options = {"max_length": 1, "literal_penalty": 0.5, "local_penalty": local}
        most = best_list(
            X, y, weights, all_short_conditions(X, 1), 2, 0.5, majority(y, weights), local
        )
        path = jr.ssrl.path(X, y, weights, max_rules=3, **options)
        fits = [
            jr.ssrl.fit(X, y, weights, max_rules=2, **options),
            *path,
            jr.ssrl.fit(X, y, weights, max_rules=3, first=first, **options),
            jr.ssrl.fit(X, y, weights, max_rules=3, required=["x1"], **options),
            jr.ssrl.fit(X, y, weights, max_rules=3, time_limit=0, **options),
        ]
        for fit in fits:
            read = local * jr.local_supports(fit.model, X) @ weights
            value = list_objective(fit.model, X, y, weights, 0.5) - read
            assert fit.objective == pytest.approx(value)
            assert fit.history[-1].objective == pytest.approx(fit.objective)
        assert fits[0].objective <= most + 1e-6
        found += fits[0].objective >= most - 1e-6
        again = jr.ssrl.fit(X, y, weights, max_rules=3, start=path[-1], **options)
        assert again.objective >= path[-1].objective >= path[0].objective
    assert found >= 10
    chosen = jr.ssrl.cross_validate(
        X, y, literal_penalties=[0.5], max_rules=2, n_folds=2, local_penalty=0.9
    )
    assert not len(chosen.model.conjunctions)  # reading costs more than it can bring


def test_reading_changes_the_order():
    # Both rules are needed, in any order; the one for most rows comes first.
    X = np.repeat(np.eye(3)[:, :2], (80, 200, 300), axis=0)
    y = np.repeat([1, 2, 0], (80, 200, 300))
    fit = jr.ssrl.fit(X, y, max_rules=2, max_length=1, literal_penalty=1.0, local_penalty=0.01)
    assert fit.model.labels.tolist() == [2, 1, 0]
    assert fit.objective == pytest.approx(580 - 2 - 0.01 * (200 + 380 * 2))
    with pytest.raises(TypeError, match="local_penalty"):
        jr.ssrl.published(X, y, local_penalty=0.01)


def test_the_best_literals_of_a_mesh_are_those_of_the_host() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 4))
    y = (X[:, 0] > 0.3) & (X[:, 1] < 0.5)
    fits = []
    for block in (contextlib.nullcontext(), jr.rows_over(jax.make_mesh((1,), ("rows",)))):
        with block:
            fits.append(jr.ssrl.fit(X, y, max_rules=2, beam_width=4, beam_literals=6))
    assert str(fits[0].model) == str(fits[1].model)
    assert fits[0].details.beam_literals == 6


def test_cross_validation_searches_no_noise_locally() -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    options: dict[str, Any] = {"max_rules": 6}
    for y, penalty, local in ((noise, 1.0, False), (noise, 64.0, True), (X[:, 0] > 0, 1.0, True)):
        chosen = jr.ssrl.cross_validate(X, y, literal_penalties=[penalty], n_folds=2, **options)
        fit = jr.ssrl.fit(X, y, literal_penalty=penalty, **options)
        if local:
            assert chosen.objective == fit.objective
            assert chosen.details.insertions == fit.details.insertions
        else:
            assert chosen.objective == chosen.details.greedy_objective < fit.objective
            assert chosen.details.insertions < fit.details.insertions
            full = jr.ssrl.cross_validate(
                X, y, literal_penalties=[penalty], n_folds=2, quick_folds=False, **options
            )
            assert full.objective == fit.objective
