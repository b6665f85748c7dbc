"""The bound on all rule lists: brute force over every list, and how a fit reports it."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.lists import list_bound
from jaxrules.lists.insertion import Examples
from jaxrules.lists.literals import literals_of

FEATURES = 3
CELLS = np.array(list(itertools.product((0, 1), repeat=FEATURES)))


def random_problem(seed, classes=2):
    """Binary columns of which a class depends on two, weights and a penalty; every class is
    there.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 60))
    X = (rng.random((n, FEATURES)) < rng.uniform(0.2, 0.8, FEATURES)).astype(float)
    rule = (X[:, 0] + 2 * X[:, 1]).astype(int) % classes
    y = np.where(rng.random(n) < rng.choice([0.0, 0.3, 0.6]), rng.integers(classes, size=n), rule)
    y[:classes] = np.arange(classes)
    X[0], X[1] = 0, 1
    weights = [np.ones(n), rng.integers(1, 4, n).astype(float), rng.uniform(0.1, 3, n)][seed % 3]
    return X, y, weights, float(rng.choice([0.0, 0.3, 1.0, 2.5]))


def conditions(max_length=FEATURES):
    """(cells, length) of every conjunction of x_j = 0 and x_j = 1, as bits."""
    for size in range(1, max_length + 1):
        for columns in itertools.combinations(range(FEATURES), size):
            for sides in itertools.product((0, 1), repeat=size):
                holds = (CELLS[:, columns] == sides).all(axis=1)
                yield int(np.packbits(holds, bitorder="little")[0]), columns, sides


def best_objective(X, y, weights, penalty, max_rules, max_length=FEATURES, allows=None, local=0.0):
    """The best objective over all lists whose default is the heaviest class, by trying every
    condition with every label at every place.
    """
    n_classes = int(y.max()) + 1
    cell = X.astype(int) @ 2 ** np.arange(FEATURES)[::-1]
    counts = np.zeros((len(CELLS), n_classes))
    np.add.at(counts, (cell, y), weights)
    default = int(counts.sum(axis=0).argmax())
    rules = list(conditions(max_length))

    @cache
    def right(cells, label):
        return sum(counts[i, label] for i in range(len(CELLS)) if cells >> i & 1)

    @cache
    def best(free, left):
        value = right(free, default)
        for covers, columns, sides in rules if left else []:
            if free & covers:
                read = sum(right(free, label) for label in range(n_classes))
                rest = best(free & ~covers, left - 1) - penalty * len(columns) - local * read
                value = max(
                    value,
                    *(
                        right(free & covers, label) + rest
                        for label in range(n_classes)
                        if allows is None or allows(columns, sides, label)
                    ),
                )
        return value

    return best((1 << len(CELLS)) - 1, max_rules)


def groups_of(X, y, weights, local=0.0):
    """The distinct rows as `Examples` of the literals x_j = 0 and x_j = 1."""
    rows, cell = np.unique(X, axis=0, return_inverse=True)
    counts = np.zeros((len(rows), int(y.max()) + 1))
    np.add.at(counts, (cell, y), weights)
    return Examples(
        np.concatenate([rows == 0, rows == 1], axis=1).T, counts, int(counts.sum(axis=0).argmax()),
        local_penalty=local,
    )  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_counting_is_never_below_any_list(classes):
    met = 0
    for seed in range(100):
        X, y, weights, penalty = random_problem(seed, classes)
        local = (0.0, 0.0, 0.03)[seed % 3]
        for max_rules in (1, 2, 3):
            bound = list_bound.counted_bound(groups_of(X, y, weights, local), penalty, max_rules)
            best = best_objective(X, y, weights, penalty, max_rules, local=local)
            assert bound >= best - 1e-9 * weights.sum()
            met += bound <= best + 1e-9 * weights.sum()
    assert met > 20  # it is no empty statement


def test_counting_knows_that_one_rule_says_one_label():
    groups = Examples(np.eye(3, dtype=bool), np.diag([5.0, 4.0, 3.0]), 0)
    bounds = [list_bound.counted_bound(groups, 1.0, rules) for rules in (1, 2, 3)]
    assert bounds == [5 + 3, 5 + 3 + 2, 5 + 3 + 2]


def test_counting_knows_what_a_literal_covers():
    # Four groups of class 1, each with its own literal: two rules reach two of them.
    counts = np.array([[9.0, 0.0]] + [[0.0, 2.0]] * 4)
    literals = np.eye(5, dtype=bool)[1:]
    bound = list_bound.counted_bound(Examples(literals, counts, 0), 0.5, 2)
    assert bound == 9 + 2 * (2 - 0.5)


def test_counting_knows_which_labels_are_allowed():
    literals, counts = np.eye(2, dtype=bool), np.diag([5.0, 4.0])
    allowed = np.array([[True, True], [True, False]])  # no rule on the second row may say 1
    assert list_bound.counted_bound(Examples(literals, counts, 0, allowed), 0.0, 3) == 5.0


def test_insertion_finds_the_best_single_rule():
    for seed in range(20):
        X, y, weights, penalty = random_problem(seed, 2 + seed % 2)
        groups, local = groups_of(X, y, weights, seed % 3 * 0.02), seed % 3 * 0.02
        bound = list_bound.inserted_bound(groups, penalty, None, lambda: False)
        best = best_objective(X, y, weights, penalty, 1, local=local)
        assert best <= bound + 1e-9 <= best + 1e-4 * weights.sum()


@given(
    st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 4), st.integers(1, 3),
    st.sampled_from([0.0, 0.01, 0.1, 0.4]),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_a_fit_with_certificate_is_the_best_list(seed, classes, max_rules, max_length, local):
    X, y, weights, penalty = random_problem(seed, classes)
    best = best_objective(X, y, weights, penalty, max_rules, max_length, local=local)
    fit = jr.ssrl.fit(
        X, y, weights, max_rules=max_rules, max_length=max_length, literal_penalty=penalty,
        local_penalty=local, certificate=True,
    )  # fmt: skip
    assert fit.status == "optimal"
    assert fit.objective == pytest.approx(best, abs=1e-9 * weights.sum())
    assert fit.bound == pytest.approx(best, abs=1e-8 * weights.sum())
    assert fit.history[-1].bound == fit.bound
    first = fit.model.conjunctions.satisfied(jr.as_table(X))
    decided = np.column_stack([first, np.ones(len(y), bool)]).argmax(axis=1)
    right = weights[fit.model.labels[decided] == y].sum()
    read = local * jr.local_supports(fit.model, X) @ weights
    literals = fit.model.conjunctions.propositions.sum()
    assert fit.objective == pytest.approx(right - penalty * literals - read)


@pytest.mark.parametrize(
    ("name", "value"),
    [("_MOST_CONDITIONS", 0), ("_MOST_ENTRIES", 0), ("in_some_seconds", lambda words: 20)],
    ids=["no conditions", "no memory", "no evaluations"],
)
def test_an_early_end_leaves_a_true_bound(monkeypatch, name, value):
    monkeypatch.setattr(list_bound, name, value)
    proofs = set()
    for seed in range(40):
        X, y, weights, penalty = random_problem(seed, 2 + seed % 3)
        max_rules = 1 + seed % 4
        local = seed % 5 * 0.01
        fit = jr.ssrl.fit(
            X, y, weights, max_rules=max_rules, literal_penalty=penalty, local_penalty=local,
            certificate=True,
        )  # fmt: skip
        best = best_objective(X, y, weights, penalty, max_rules, local=local)
        assert fit.bound >= best - 1e-9 * weights.sum()
        assert fit.bound >= fit.objective
        assert (fit.status == "optimal") == (fit.bound <= fit.objective + 1e-9 * weights.sum())
        proofs.add(fit.details.bounded_by)
    assert "counting" in proofs
    assert ("search" if name == "in_some_seconds" else "insertion") in proofs


def test_constraints_bound_their_own_lists():
    rises = {"x0": 1}
    for seed in range(12):
        X, y, weights, penalty = random_problem(seed, 2)
        y = np.where(seed % 2, y, 1 - y)
        some = {"max_rules": 2, "literal_penalty": penalty, "certificate": True}
        fit = jr.ssrl.fit(X, y, weights, monotone=rises, **some)
        best = best_objective(
            X, y, weights, penalty, 2,
            # x0 = 1 may only say the last class, x0 = 0 only the first
            allows=lambda columns, sides, label: 0 not in columns
            or sides[columns.index(0)] == label,
        )  # fmt: skip
        assert fit.status == "optimal"
        assert fit.objective == pytest.approx(best)
        fit = jr.ssrl.fit(X, y, weights, forbidden=["x1"], **some)
        few = np.delete(X, 1, axis=1)
        best = best_objective(np.insert(few, 1, 0, axis=1), y, weights, penalty, 2)
        assert fit.objective == fit.bound == pytest.approx(best)
        # A required column only restricts the lists: the bound is over all.
        fit = jr.ssrl.fit(X, y, weights, required=["x2"], **some)
        assert fit.bound >= best_objective(X, y, weights, penalty, 2) - 1e-9 * weights.sum()
        assert "x2" in str(fit.model)


def test_a_bound_behind_an_experts_rules():
    X, y, weights, _ = random_problem(3, 2)
    rest = X[:, 2] == 0
    first = jr.ssrl.fit(X, X[:, 2], max_rules=1, literal_penalty=0.0).model.conjunctions
    covered = first.satisfied(jr.as_table(X))[:, 0]
    fit = jr.ssrl.fit(
        X, y, weights, max_rules=3, first=first, literal_penalty=1.0, certificate=True
    )
    assert set(X[covered, 2]) != set(X[~covered, 2])
    label = int(np.bincount(y, weights).argmax())
    said = int(np.bincount(y[covered], weights[covered], 2).argmax())
    best = -np.inf
    for rules in (0, 1, 2):  # the default label is that of all rows
        found = jr.exact_list.fit(
            X[~covered], y[~covered], weights[~covered], max_rules=max(rules, 1), max_length=3,
            min_support=0, literal_penalty=1.0, default=label,
        )  # fmt: skip
        best = max(best, found.objective)
    own = weights[covered & (y == said)].sum() - 1.0
    assert fit.objective == fit.bound == pytest.approx(own + best)
    assert rest.any()


def test_path_proves_every_size():
    X, y, weights, penalty = random_problem(8, 3)
    fits = jr.ssrl.path(X, y, weights, max_rules=3, literal_penalty=penalty, certificate=True)
    for size, fit in enumerate(fits, 1):
        assert fit.objective == pytest.approx(best_objective(X, y, weights, penalty, size))
        assert fit.status == "optimal"


def test_no_bound_by_default():
    X, y, weights, _ = random_problem(0)
    fit = jr.ssrl.fit(X, y, weights)
    assert fit.bound is None
    assert fit.details.bounded_by == ""
    assert "Nothing is proved" in fit.advice
    proved = jr.ssrl.fit(X, y, weights, certificate=True)
    assert "gap=" in repr(proved)
    assert "Proved optimal" in repr(proved)


def test_limits_and_interrupts_keep_a_bound():
    data = jr.datasets.load("iris")
    fit = jr.ssrl.fit(data.X, data.y, time_limit=0, certificate=True)
    assert fit.status == "time_limit"
    assert fit.objective <= fit.bound <= len(data.y)

    def stop(progress):
        if progress.phase == "bound":
            raise KeyboardInterrupt

    fit = jr.ssrl.fit(data.X, data.y, max_rules=2, certificate=True, progress=stop)
    assert fit.status == "interrupted"
    assert fit.objective <= fit.bound <= len(data.y)
    assert len(fit.model.conjunctions)


def test_theorem_4_does_not_bound_the_objective():
    """The paper's factor is that of the surrogate, where a rule pays for all rows of the default
    label that it covers: the greedy rounds may leave everything that a list gains.
    """
    # x0 holds for 10 rows of class 1 and 11 of class 0, which x1 and x2 together cover.
    rows = [(1, 1, 1, 0)] * 11 + [(1, 0, 1, 1)] * 5 + [(1, 1, 0, 1)] * 5 + [(0, 0, 0, 0)] * 30
    X, y = np.array([row[:3] for row in rows], float), np.array([row[3] for row in rows])
    pool = literals_of(jr.as_table(X))
    holds = pool.satisfied(jr.as_table(X)).T
    options = {
        "propositions": pool.take([i for i, one in enumerate(holds) if not one[-1]]),
        "literal_penalty": 1.0,
        "max_rules": 2,
    }
    greedy = jr.ssrl.fit(X, y, subproblem="exact", max_rounds=1, local_search=False, **options)
    best = jr.ssrl.fit(X, y, certificate=True, **options)
    assert (greedy.objective, len(greedy.model.conjunctions)) == (41.0, 0)
    assert (best.objective, best.bound, best.status) == (48.0, 48.0, "optimal")


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_the_option_is_a_flag(value):
    X, y, _, _ = random_problem(0)
    with pytest.raises(TypeError, match="certificate"):
        jr.ssrl.fit(X, y, certificate=value)
