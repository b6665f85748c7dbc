"""Exact rule lists: brute force over all lists, certificates, limits,
weights, constraints, bad input.
"""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.learning.cross_validation import folds
from jaxrules.lists import (
    candidates,
    exact_list,
    exact_problem,
    pair_tables,
    prefixes,
    reading,
    weighed_bits,
)
from jaxrules.lists.candidates import ListCandidates, candidates_of
from jaxrules.lists.in_time import RatedList
from jaxrules.lists.literals import literals_of
from jaxrules.models.rule_models import first_satisfied
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.bits import pack, unpack


def random_problem(seed, classes=2, rows=30, features=3):
    """Binary columns, and a class that depends on two of them, noisily; every class is there."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features)) < rng.uniform(0.2, 0.8, features)).astype(float)
    y = np.where(
        rng.random(rows) < 0.3,
        rng.integers(classes, size=rows),
        (X[:, 0] + 2 * X[:, 1]).astype(int) % classes,
    )
    y[:classes] = np.arange(classes)
    X[0], X[1] = 0, 1
    return X, y


def all_conditions(X, max_literals):
    """(literals, rows) of every conjunction of x_j and not x_j that holds for some rows but not for
    all.
    """
    literals = [(j, side) for j in range(X.shape[1]) for side in (0, 1)]
    for size in range(1, max_literals + 1):
        for chosen in itertools.combinations(literals, size):
            rows = np.logical_and.reduce([X[:, j] == side for j, side in chosen])
            if 0 < rows.sum() < len(X):
                yield chosen, rows


def best_list(X, y, weights, conditions, max_rules, penalty, defaults, local_penalty=0.0):
    """The best objective over all lists, by trying all: every condition at
    every place, every label.
    """
    classes = np.unique(y)
    shortest = {}
    for literals, rows in conditions:
        shortest.setdefault(rows.tobytes(), (rows, len(literals)))
    conditions = list(shortest.values())

    def best(free, rules, price):
        value = max(weights[free & (y == d)].sum() for d in defaults) - price
        for rows, size in conditions if rules else []:
            got = rows & free
            if got.any():
                right = max(weights[got & (y == k)].sum() for k in classes)
                paid = price + penalty * size + local_penalty * weights[free].sum()
                value = max(value, right + best(free & ~got, rules - 1, paid))
        return value

    return best(np.ones(len(y), bool), max_rules, 0.0)


def majority(y, weights):
    return [int(np.bincount(y, weights).argmax())]


def objective_of(model, X, y, weights, penalty):
    """Eq. 14 of a model, from its predictions and the literals of its rules."""
    return (
        weights[jr.predict(model, X) == y].sum() - penalty * model.conjunctions.propositions.sum()
    )


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("block", range(4))
def test_the_best_list_of_all_is_found(classes, block):
    for seed in range(25 * block, 25 * (block + 1)):
        rng = np.random.default_rng(seed)
        X, y = random_problem(seed, classes)
        weights = rng.integers(1, 4, len(y)).astype(float) if seed % 3 == 0 else np.ones(len(y))
        penalty, rules, literals = (
            rng.choice([0.0, 0.5, 1.0, 2.5]),
            int(rng.integers(1, 4)),
            int(rng.integers(1, 3)),
        )
        free = bool(rng.random() < 0.3)
        fit = jr.exact_list.fit(
            X, y, max_rules=rules, literal_penalty=penalty, max_length=literals, min_support=0.0,
            default="free" if free else "majority", sample_weight=weights,
        )  # fmt: skip
        defaults = range(classes) if free else majority(y, weights)
        expected = best_list(X, y, weights, all_conditions(X, literals), rules, penalty, defaults)
        assert fit.status == "optimal"
        assert fit.objective == pytest.approx(expected)
        assert fit.bound == pytest.approx(fit.objective)
        assert fit.objective == pytest.approx(objective_of(fit.model, X, y, weights, penalty))
        assert len(fit.model.conjunctions) <= rules
        fit.model.validate()


@pytest.mark.full
@pytest.mark.parametrize("mode", ["bits", "counted", "unpaired"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_pairs_of_rows_bound_all_lists_and_prefixes(mode, classes, monkeypatch):
    if mode == "counted":
        monkeypatch.setattr(weighed_bits, "_MOST_WORDS", 0)
        monkeypatch.setattr(prefixes, "_MOST_DENSE", 0)
    if mode == "unpaired":
        monkeypatch.setattr(prefixes, "_MOST_PAIRED", 0)
    helped = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = random_problem(seed, classes, rows=60, features=5)
        weights = [np.ones(60), rng.integers(1, 4, 60) / 2, 0.5 + rng.random(60)][seed % 3]
        rules, penalty = int(rng.integers(1, 4)), float(rng.choice([0.0, 0.5, 2.0]))
        local = float(rng.choice([0.0, 0.01]))
        defaults = majority(y, weights) if seed % 4 else list(range(classes))
        expected = best_list(X, y, weights, all_conditions(X, 1), rules, penalty, defaults, local)
        table = jr.as_table(X)
        candidates = candidates_of(
            literals_of(table), table, weights[:, None] * (y[:, None] == np.arange(classes)),
            constraints=Constraints(), penalty=penalty,
            defaults=np.isin(np.arange(classes), defaults), max_length=1, least=0.0,
        )  # fmt: skip
        search = prefixes.Prefixes(replace(candidates, local_penalty=local), rules)
        certificate = search.certificate()
        trivial = certificate.bound
        search.pair_rows(certificate)
        assert certificate.bound >= expected - 1e-9
        helped += certificate.bound < trivial
        first, second, one, other, touched, unit = search.row_pairs
        # each row is in one pair, and a condition splits the pairs of which it covers one row
        lead = np.diff(np.sort(candidates.counts, axis=1)[:, -2:], axis=1)[:, 0]
        paired = np.bincount([*first, *second], minlength=candidates.n_groups)
        assert (paired * unit <= lead * (1 + 1e-12)).all()
        covered = candidates.covered(slice(None))
        for bits, split in (
            (one, covered[:, first] & ~covered[:, second]),
            (other, covered[:, second] & ~covered[:, first]),
            (touched, covered[:, first] | covered[:, second]),
        ):
            assert not len(first) or (unpack(bits, len(first)) == split).all()
        search.search(certificate, 1 << 20)
        assert certificate.closed
        assert certificate.objective == pytest.approx(expected)
    assert helped > 10


@pytest.mark.full
@pytest.mark.parametrize("mode", ["bits", "dense", "counted", "unpaired", "unshared"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_way_to_count_finds_the_same(mode, classes, monkeypatch):
    patch = monkeypatch.setattr
    if mode in ("dense", "counted"):
        patch(weighed_bits, "_MOST_WORDS", 0)
    if mode == "counted":
        patch(prefixes, "_MOST_DENSE", 0)
    if mode == "unpaired":
        patch(prefixes, "_MOST_PAIRED", 0)
    if mode == "unshared":
        patch(pair_tables, "_MOST_SHARED", 0)
    for seed in range(12):
        X, y = random_problem(seed, classes, rows=14 if seed % 3 == 0 else 60, features=5)
        if seed % 3 == 0:
            X = np.column_stack([X, np.eye(14)[:, :4]])  # most rows differ
        weights = 1.0 + (y == 0) / 3 if seed % 2 else np.ones(len(y))
        fit = jr.exact_list.fit(
            X,
            y,
            max_rules=3,
            max_length=1,
            min_support=0.0,
            literal_penalty=0.5,
            sample_weight=weights,
        )
        expected = best_list(X, y, weights, all_conditions(X, 1), 3, 0.5, majority(y, weights))
        assert fit.objective == fit.bound == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(12))
def test_the_program_finds_the_same(seed):
    rng = np.random.default_rng(seed)
    classes = 2 + seed % 3
    X, y = random_problem(seed, classes)
    options = {
        "max_rules": int(rng.integers(1, 4)),
        "max_length": 1 + seed % 2,
        "min_support": 0.05,
        "literal_penalty": float(rng.choice([0.0, 0.5, 2.0])),
        "default": "free" if seed % 4 == 0 else "majority",
        "sample_weight": rng.integers(1, 4, len(y)).astype(float),
        "required": [2] if seed % 5 == 0 else (),
    }
    search, program = (
        jr.exact_list.fit(X, y, method=method, **options) for method in ("search", "mip")
    )
    assert search.status == program.status == "optimal"
    assert program.objective == pytest.approx(search.objective)
    assert program.bound == pytest.approx(search.bound)


@pytest.mark.parametrize("seed", range(10))
def test_a_short_search_says_how_far_it_may_be(seed):
    X, y = random_problem(seed, 2 + seed % 3, rows=200, features=8)
    options = {"max_rules": 3, "min_support": 0.0, "literal_penalty": 0.5}
    best = jr.exact_list.fit(X, y, max_evaluations=None, **options)
    assert best.status == "optimal"
    objectives = []
    for limit in (1, 1_000, 3_000, 30_000):
        fit = jr.exact_list.fit(X, y, max_evaluations=limit, **options)
        assert fit.status in ("max_iterations", "optimal")
        assert fit.objective <= best.objective + 1e-9 <= fit.bound + 2e-9
        objectives.append(fit.objective)
    assert objectives == sorted(objectives)


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_prefixes_are_those_of_the_formula(seed, after):
    """The smaller of two: the sum of the greatest potentials, and the potential of all remaining
    rows minus one penalty.
    """
    X, y = random_problem(seed, 2 + seed % 2, rows=60, features=4)
    table, classes = jr.as_table(X), len(np.unique(y))
    found = candidates_of(
        literals_of(table), table, (y[:, None] == np.arange(classes)).astype(float),
        constraints=Constraints(), penalty=0.75, defaults=np.arange(classes) != 1, max_length=2,
        least=0.0,
    )  # fmt: skip
    search = prefixes.Prefixes(found, after + 1)
    _, moves, bounds, reached, stops = search.children(search.root(), slice(None), after, -np.inf)
    assert moves.tolist() == list(range(len(found)))
    covers, counts = found.covered(slice(None)), found.counts
    right = np.array([counts[cover].sum(axis=0).max() for cover in covers]) - found.prices
    np.testing.assert_allclose(reached, right)
    expected, ends = np.full((2, len(found)), -np.inf)
    for default in np.flatnonzero(found.defaults):
        potential = counts.max(axis=1) - counts[:, default]
        gains = covers @ potential - found.prices
        for r, cover in enumerate(covers):
            rest = right[r] + counts[~cover, default].sum()
            others = np.sort(np.maximum(np.delete(gains, r), 0.0))[::-1][:after].sum()
            left = potential[~cover].sum() - found.prices.min()
            more = max(0.0, min(others, left)) if after else 0.0
            expected[r], ends[r] = max(expected[r], rest + more), max(ends[r], rest)
    np.testing.assert_allclose(bounds, expected)
    np.testing.assert_allclose(stops, ends)


def best_end(candidates, covered, left, rules, value, used):
    """The best objective of a prefix of this value, with a rule or two more, by trying all."""
    counts = candidates.counts
    ends = used == candidates.required and rules < 2
    most = value + counts[left].sum(axis=0)[candidates.defaults].max() if ends else -np.inf
    for r in range(len(candidates)) if rules else []:
        got = left & covered[r]
        if got.any():
            more = counts[got].sum(axis=0)[candidates.labels[r]].max() - candidates.prices[r]
            rest = used | candidates.uses[r]
            end = best_end(candidates, covered, left & ~got, rules - 1, value + more, rest)
            most = max(most, end)
    return most


@pytest.mark.parametrize("mode", ["bits", "dense", "counted", "unshared"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_last_two_rules_are_the_best_of_all_pairs(mode, classes, monkeypatch):
    """After any prefix, at whatever objective is already known; with labels that are not allowed,
    required features, any defaults, weights.
    """
    if mode in ("dense", "counted"):
        monkeypatch.setattr(weighed_bits, "_MOST_WORDS", 0)
    monkeypatch.setattr(prefixes, "_MOST_DENSE", 0 if mode == "counted" else 1 << 24)
    monkeypatch.setattr(pair_tables, "_MOST_SHARED", 0 if mode == "unshared" else 1 << 24)
    monkeypatch.setattr(prefixes, "_FAMILY", 1 << 20)  # a parent of one child has its own tables
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_groups, R = int(rng.integers(5, 140)), int(rng.integers(3, 14))
        covered = rng.random((R, n_groups)) < rng.uniform(0.05, 0.95, (R, 1))
        covered[1] = covered[0] | covered[1]  # one condition within another
        counts = rng.integers(0, 6, (n_groups, classes)) * rng.choice([1, 0.3, 2.5], classes)
        counts[counts.sum(axis=1) == 0, 0] = 1.0
        if seed % 3 == 0:  # one class in each group
            counts *= np.eye(classes)[rng.integers(classes, size=n_groups)] > 0
            counts[counts.sum(axis=1) == 0, 1] = 2.0
        labels = rng.random((R, classes)) < (0.7 if seed % 4 == 0 else 2)
        labels[~labels.any(axis=1), 0] = True
        defaults = rng.random(classes) < 0.5
        defaults[int(rng.integers(classes))] = True
        required = seed % 5 == 0
        candidates = ListCandidates(
            None, np.arange(R)[:, None], pack(covered), rng.integers(1, 3, R).astype(float), labels,
            rng.integers(0, 4, R).astype(np.uint64) * required, np.arange(n_groups), counts,
            defaults, float(rng.choice([0.0, 0.4, 2.0])), np.uint64(3 * required),
        )  # fmt: skip
        search = prefixes.Prefixes(candidates, 3)
        before = rng.random((1, n_groups)) < rng.choice([1.0, 0.7, 0.2])
        before[0, 0], last = True, rng.integers(R, size=1)
        used = np.uint64(rng.integers(0, 4)) * np.uint64(required)
        parents = prefixes.Parents(pack(before), np.zeros(1, np.int64), last)
        parents, free = (parents, before & ~covered[last]) if seed % 2 else (None, before)

        expected = best_end(candidates, covered, free[0], 2, 7.0, used)
        layer = prefixes.Layer(pack(free), np.array([7.0]), np.array([used]), parents)
        for settled in (-np.inf, expected - 0.6, expected - 1e-6, expected + 1e-9, expected + 1.0):
            found = search._last_two(layer, slice(None), settled)
            better = [expected] if expected > settled else []
            assert found.bounds == pytest.approx(better)


def problem_of_conditions(seed, conditions=12, groups=90, classes=2, unit=1.0):
    """Random conditions and weights of groups, and which groups the conditions cover."""
    rng = np.random.default_rng(seed)
    covered = rng.random((conditions, groups)) < rng.uniform(0.05, 0.8, (conditions, 1))
    counts = unit * rng.integers(0, 5, (groups, classes))
    counts[:, 0] += unit
    candidates = ListCandidates(
        None, np.arange(conditions)[:, None], pack(covered), rng.integers(1, 3, conditions) * 1.0,
        np.ones((conditions, classes), bool), np.zeros(conditions, np.uint64), np.arange(groups),
        counts, np.arange(classes) == seed % classes, 0.5, np.uint64(0),
    )  # fmt: skip
    return candidates, covered


@pytest.mark.parametrize("unit", [1.0, 0.3, 3e7])
@pytest.mark.parametrize("classes", [2, 3])
def test_what_pairs_have_in_common(classes, unit):
    """On all rows, on few and on most of them, by the definition."""
    for seed in range(9):
        candidates, covered = problem_of_conditions(seed, classes=classes, unit=unit)
        tables = prefixes.Prefixes(candidates, 3).tables
        free = np.random.default_rng(seed).random(90) < (0.2, 0.7, 1.0)[seed % 3]
        spoiled, lost, other, alone, gain, ahead, _ = tables.of(pack(free[None])[0])
        d, n = seed % classes, np.where(free[:, None], candidates.counts, 0.0)
        most, rival = n.max(axis=1), n[:, 1 - d] if classes == 2 else 0.0 * n[:, 0]
        both = covered[:, None] & covered
        close = {"rtol": 1e-12, "atol": 1e-9 * unit}
        np.testing.assert_allclose(
            spoiled[0], both @ (most - rival if rival.any() else n[:, d]), **close
        )
        np.testing.assert_allclose(lost[0], both @ (n[:, d] - rival), **close)
        for q in range(len(other) * len(covered)):
            np.testing.assert_allclose(other[0, q], both[q] @ rival, **close)
        np.testing.assert_allclose(alone[:-1, :-1].T, covered @ n, **close)
        np.testing.assert_allclose(alone[:, -1], [*n.sum(axis=0), most.sum()], **close)
        best = np.delete(covered @ n, d, axis=1).max(axis=1) - covered @ n[:, d] - candidates.prices
        np.testing.assert_allclose(gain[0], best, **close)
        for r in range(len(covered)):  # the rows that r leaves
            after = (covered & ~covered[r]) @ n
            seconds = np.delete(after, d, axis=1).max(axis=1) - after[:, d] - candidates.prices
            assert ahead[0, r] >= seconds.max() - 1e-9 * unit
            if classes == 2:
                assert ahead[0, r] == pytest.approx(seconds.max())


@given(st.integers(0, 10**6), st.sampled_from([1.0, 0.3]), st.integers(3, 4))
@settings(max_examples=40, deadline=None)
def test_families_of_prefixes_by_brute_force(seed, unit, rules):
    """The last layer comes parent by parent, with the parents' tables or those of all rows."""
    candidates, covered = problem_of_conditions(seed, 6, 40, 2, unit)
    everything = np.ones(40, bool)
    expected = max(
        best_end(candidates, covered, everything, most, 0.0, np.uint64(0))
        for most in range(1, rules + 1)
    )
    for family in (0, 1, 1 << 20):
        search = prefixes.Prefixes(candidates, rules)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prefixes, "_FAMILY", family)
            certificate = search.certificate(())
            search.search(certificate, 1 << 20)
        assert certificate.closed
        assert certificate.objective == pytest.approx(expected)


def test_required_features_in_the_last_two_rules():
    """A rule with the default's label may end a list only for its features."""
    for seed in range(100):
        candidates, covered = problem_of_conditions(seed, 5, 8)
        uses = np.random.default_rng(seed).integers(0, 4, 5).astype(np.uint64)
        candidates = replace(candidates, uses=uses, required=np.uint64(3))
        everything = np.ones(8, bool)
        expected = best_end(candidates, covered, everything, 2, 0.0, np.uint64(0))
        layer = prefixes.Layer(pack(everything[None]), np.zeros(1), np.zeros(1, np.uint64))
        found = prefixes.Prefixes(candidates, 3)._last_two(layer, slice(None), expected - 1e-6)
        assert found.bounds == pytest.approx([expected] if np.isfinite(expected) else [])


def test_the_best_of_several_families():
    """In one chunk the best prefix comes before the others, and after them."""
    candidates, covered = problem_of_conditions(3)
    search = prefixes.Prefixes(candidates, 3)
    before = ~covered[[4, 5, 6]]
    parents = prefixes.Parents(pack(before), np.arange(3), np.array([1, 2, 3]))
    free = before & ~covered[[1, 2, 3]]
    for values in np.array([[50.0, 7.0, 20.0], [7.0, 20.0, 50.0]]):
        layer = prefixes.Layer(pack(free), values, np.zeros(3, np.uint64), parents)
        found = search._last_two(layer, slice(0, 3), -np.inf)
        ends = [
            best_end(candidates, covered, left, 2, value, np.uint64(0))
            for left, value in zip(free, values, strict=True)
        ]
        assert found.parents.tolist() == [int(np.argmax(ends))]
        assert found.bounds == pytest.approx([max(ends)])


@pytest.mark.parametrize("unit", [1.0, 3.0, 0.1, 1 / 3])
def test_bits_weigh_what_the_groups_do(unit):
    rng = np.random.default_rng(0)
    for classes in (2, 3):
        counts = rng.integers(0, 900, (150, classes)) * unit
        counts[:, 0] *= 7
        covered = rng.random((20, 150)) < 0.5
        bits = weighed_bits.weighed_bits(pack(covered), counts)
        sums = np.zeros((20, classes + 1))
        for (first, end, k), one in zip(bits.parts, bits.units, strict=True):
            ones = np.bitwise_count(bits.covers[:, first:end])
            sums[:, k] += one * (ones * bits.powers[first:end]).sum(axis=1)
        np.testing.assert_allclose(sums[:, :-1], covered @ counts, rtol=1e-13)
        np.testing.assert_allclose(sums[:, -1], covered @ counts.max(axis=1), rtol=1e-13)


def test_weights_without_a_unit_are_numbers():
    rng = np.random.default_rng(0)
    bits = weighed_bits.weighed_bits(pack(rng.random((3, 20)) < 0.5), rng.random((20, 2)))
    assert not len(bits.powers)
    huge = np.array([[1.0, 2.0**45], [0.0, 3.0]])
    assert not len(weighed_bits.weighed_bits(pack(np.eye(2) > 0), huge).powers)


def test_what_ends_a_search_is_said():
    X, y = random_problem(0, rows=200, features=6)
    whole = jr.exact_list.fit(X, y, max_rules=2)
    assert whole.status == "optimal"
    enough = jr.exact_list.fit(X, y, max_rules=2, max_evaluations=whole.details.evaluations)
    assert enough.status == "optimal"
    program = jr.exact_list.fit(
        X, y, method="mip", max_rules=1, max_length=1, time_limit=jr.Deadline(1e9)
    )
    assert program.status == "optimal"


def test_wide_problems_try_fewer_conditions():
    """The time of a condition grows with the words of its bits, beyond 16."""
    options = exact_list.ExactListOptions()
    assert options.evaluations(1) == options.evaluations(16) == 2 * options.evaluations(32)
    assert exact_list.ExactListOptions(max_evaluations=7).evaluations(32) == 7
    assert exact_list.ExactListOptions(max_evaluations=None).evaluations(32) == np.inf


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 4), st.integers(1, 2))
@settings(max_examples=60, deadline=None)
def test_a_local_penalty_by_brute_force(seed, classes, rules, literals):
    X, y = random_problem(seed, classes)
    rng = np.random.default_rng(seed)
    weights = [np.ones(30), rng.integers(1, 5, 30).astype(float), rng.uniform(0.2, 2, 30)][seed % 3]
    penalty, local = float(rng.choice([0.0, 0.5, 1.0])), float(rng.choice([0.01, 0.05, 0.15, 0.6]))
    rules = min(rules, 2 if literals == 2 else 4)
    expected = best_list(
        X, y, weights, all_conditions(X, literals), rules, penalty, majority(y, weights), local
    )
    fit = exact_list.fit(
        X, y, weights, max_rules=rules, max_length=literals, min_support=0, literal_penalty=penalty,
        local_penalty=local,
    )  # fmt: skip
    assert fit.status == "optimal"
    assert fit.objective == pytest.approx(expected)
    assert fit.bound == pytest.approx(fit.objective)
    # The objective from the model alone
    right = weights[jr.predict(fit.model, X) == y].sum()
    read = jr.local_supports(fit.model, X) @ weights
    literals = fit.model.conjunctions.propositions.sum()
    assert fit.objective == pytest.approx(right - penalty * literals - local * read)


@pytest.mark.parametrize("seed", range(3))
def test_a_local_penalty_by_a_program(seed):
    X, y = random_problem(seed, 2 + seed % 2)
    options = {"max_rules": 3, "max_length": 1, "min_support": 0, "literal_penalty": 0.5}
    for local in (0.02, 0.1):
        searched, solved = (
            exact_list.fit(X, y, local_penalty=local, method=method, **options)
            for method in ("search", "mip")
        )
        assert searched.status == solved.status == "optimal"
        assert solved.objective == pytest.approx(searched.objective, abs=2e-6)


def test_a_local_penalty_changes_the_order():
    # Both rules are needed, in any order; the one for most rows comes first.
    X = np.repeat(np.eye(3)[:, :2], (8, 20, 30), axis=0)
    y = np.repeat([1, 2, 0], (8, 20, 30))
    options = {"max_rules": 2, "max_length": 1, "literal_penalty": 1.0}
    fit = exact_list.fit(X, y, local_penalty=0.01, **options)
    assert fit.model.labels.tolist() == [2, 1, 0]
    assert fit.objective == pytest.approx(58 - 2 - 0.01 * (20 * 1 + 38 * 2))
    assert jr.local_support(fit.model, X) == pytest.approx((20 + 38 * 2) / 58)
    # A rule that everybody reads must gain more than that costs.
    few = exact_list.fit(X, y, local_penalty=0.2, **options)
    assert len(few.model.conjunctions) == 1
    none = exact_list.fit(X, y, local_penalty=0.5, **options)
    assert len(none.model.conjunctions) == 0


def test_a_local_penalty_behind_an_experts_rules():
    X, y = random_problem(4)
    first = exact_list.fit(X, X[:, 2], max_rules=1, max_length=1).model.conjunctions
    for limit in (None, 0):
        fit = exact_list.fit(
            X, y, max_rules=3, first=first, literal_penalty=0.5, local_penalty=0.05,
            time_limit=limit,
        )  # fmt: skip
        right, rules = (jr.predict(fit.model, X) == y).sum(), fit.model.conjunctions
        read = jr.local_supports(fit.model, X).sum()
        assert fit.objective == pytest.approx(right - 0.5 * rules.propositions.sum() - 0.05 * read)
        assert fit.bound >= fit.objective - 1e-9


def test_a_local_penalty_on_the_rules_of_a_sample():
    X, y = random_problem(5, rows=60)
    rules = exact_list.fit(X, y, max_rules=4, max_length=1, literal_penalty=0.0).model.conjunctions
    data = reading.list_data(X, y, None, exact_list.ExactListOptions())
    sizes = set()
    for local in (0.0, 0.05, 0.2, 0.6):
        found = RatedList.of(rules, data, 0.5, local_penalty=local)
        each = [
            RatedList.of(rules.take(np.arange(m)), data, 0.0).right - 0.5 * m - local * read
            for m, read in enumerate(
                np.minimum(first_satisfied(rules, data.table) + 1, m).sum()
                for m in range(len(rules) + 1)
            )
        ]
        assert found.objective(0.5, local) == pytest.approx(max(each))
        sizes.add(len(found.rules))
    assert len(sizes) > 1


@pytest.mark.parametrize("seed", range(6))
def test_never_below_ssrl(seed):
    X, y = random_problem(seed, 2 + seed % 3, rows=300, features=7)
    literals = literals_of(jr.as_table(X))
    for penalty in (0.5, 3.0):
        greedy = jr.ssrl.fit(
            X, y, max_rules=3, max_length=2, propositions=literals, literal_penalty=penalty
        )
        exact = jr.exact_list.fit(
            X, y, max_rules=3, max_length=2, min_support=0.0, literal_penalty=penalty
        )
        assert exact.objective >= greedy.objective - 1e-9


def test_ssrl_gives_a_start(monkeypatch):
    X, y = random_problem(3, rows=300, features=7)
    monkeypatch.setattr(exact_list, "_BEFORE_SSRL", 0)
    monkeypatch.setattr(exact_list, "LAYERS", (1,))  # a search behind one prefix per layer follows
    fit = jr.exact_list.fit(X, y, max_rules=3, min_support=0.0, literal_penalty=1.0)
    greedy = jr.ssrl.fit(X, y, max_rules=3, max_length=2, literal_penalty=1.0)
    assert [step.objective for step in fit.history[:2]] == [np.bincount(y).max(), greedy.objective]


# The penalty by noise


def test_noise_raises_the_penalty_and_shrinks_probabilities():
    X, y = random_problem(3, rows=300, features=5)
    y = np.where(np.random.default_rng(0).random(300) < 0.3, 1 - y, y)
    small, large = (
        jr.exact_list.fit(X, y, max_rules=2, literal_penalty=penalty) for penalty in (1.0, 4.0)
    )
    wrong = (jr.predict(small.model, X) != y).sum() / np.bincount(y).min()
    why = "literal_penalty=4: a list with penalty 1 leaves "
    why += f"{wrong:.0%} of the errors of predicting the"
    path = exact_list.path(X, y, max_rules=2)
    near = exact_list.near_optimal(X, y, max_rules=2, within=0.0)
    assert near.summary[1].startswith(why)
    for fit in (jr.exact_list.fit(X, y, max_rules=2), path[-1]):
        assert fit.details.literal_penalty == 4.0
        assert fit.chosen.startswith(why)
        assert fit.chosen in str(fit)
        assert (fit.objective, fit.bound, fit.status) == (large.objective, large.bound, "optimal")
        assert list(fit.model.conjunctions) == list(large.model.conjunctions)
        assert dict(fit.model.options)["literal_penalty"] is None
        counts, shares = fit.model.counts, np.bincount(y) / len(y)
        shrunk = (counts + 20 * shares) / (counts.sum(axis=1, keepdims=True) + 20)
        np.testing.assert_allclose(fit.model.probabilities, shrunk)
        np.testing.assert_array_equal(fit.model.probabilities, near[0].probabilities)
        assert fit.history[-1].objective == fit.objective
    assert not large.chosen


def test_searches_at_all_penalties_share_the_bits(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return weighed_bits.weighed_bits(*arguments)

    monkeypatch.setattr(candidates, "weighed_bits", counted)
    X, y = random_problem(0, rows=200, features=6)
    fit = jr.exact_list.fit(X, np.random.default_rng(0).permutation(y), max_rules=2)
    assert fit.details.literal_penalty > 1
    assert len(calls) == 1


def test_without_noise_the_first_search_is_the_fit():
    X, y = random_problem(3, rows=300, features=5)
    y = (X[:, 0] * X[:, 1]).astype(int)
    given, fit = jr.exact_list.fit(X, y, literal_penalty=1.0), jr.exact_list.fit(X, y)
    assert fit.chosen.startswith("literal_penalty=1: a list with penalty 1 leaves 0%")
    assert fit.details.evaluations == given.details.evaluations
    np.testing.assert_array_equal(fit.model.probabilities, given.model.probabilities)
    assert [s.objective for s in fit.history] == [s.objective for s in given.history] != []
    assert jr.ssrl.fit(X, y).history


def test_a_start_joins_both_searches():
    """Nothing worse is returned under the penalty that is chosen."""
    X, y = random_problem(3, rows=300, features=7)
    start = jr.exact_list.fit(X, y, literal_penalty=4.0)
    fit = jr.exact_list.fit(X, y, max_evaluations=1, start=start)
    assert fit.details.literal_penalty == 4.0
    assert fit.objective == start.objective


def test_half_of_the_time_is_for_the_first_search():
    X, y = random_problem(3, rows=300, features=7)
    reads = iter(range(10**9))
    fit = jr.exact_list.fit(X, y, time_limit=jr.Deadline(200.0, lambda: float(next(reads))))
    assert fit.status in ("time_limit", "optimal")
    assert fit.chosen
    assert fit.history[-1].objective == fit.objective
    assert [step.seconds for step in fit.history] == sorted(step.seconds for step in fit.history)


# Pools


@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0, 0.3))
@settings(max_examples=40)
def test_the_pool_holds_every_set_of_rows_once_at_its_least_price(seed, max_length, min_support):
    X, y = random_problem(seed, features=4)
    table = jr.as_table(X)
    counts = (y[:, None] == np.arange(2)).astype(float)
    found = candidates_of(
        literals_of(table),
        table,
        counts,
        constraints=Constraints(),
        penalty=1.0,
        defaults=np.array([True, False]),
        max_length=max_length,
        least=min_support * len(y),
    )
    least: dict[bytes, int] = {}
    for literals, rows in all_conditions(X, max_length):
        if rows.sum() >= min_support * len(y) - 1e-9:
            least.setdefault(rows.tobytes(), len(literals))
    rows = found.covered(slice(None))[:, found.group]
    assert {row.tobytes(): length for row, length in zip(rows, found.lengths, strict=True)} == least
    assert len(rows) == len(least)
    rules = found.rules(tuple(range(len(found))), table.schema)
    np.testing.assert_array_equal(rules.satisfied(table).T, rows)
    np.testing.assert_array_equal(rules.propositions, found.lengths)
    np.testing.assert_array_equal(found.counts.sum(axis=0), counts.sum(axis=0))


def test_without_time_the_pool_holds_single_literals_and_nothing_is_proved(monkeypatch):
    X, y = random_problem(0, rows=100, features=4)
    table, counts = jr.as_table(X), (y[:, None] == np.arange(2)).astype(float)
    arguments = {
        "constraints": Constraints(),
        "penalty": 1.0,
        "defaults": np.array([True, False]),
        "least": 0.0,
    }
    found = candidates_of(
        literals_of(table), table, counts, max_length=3, stopped=lambda: True, **arguments
    )
    assert not found.complete
    assert set(found.lengths) == {1.0}
    assert candidates_of(literals_of(table), table, counts, max_length=3, **arguments).complete

    whole, now = exact_list.fit(X, y, max_length=2), 0.0

    def late(*arguments, **options):  # half of the time is over when the pool is begun
        nonlocal now
        now = 60.0
        return candidates_of(*arguments, **options)

    monkeypatch.setattr("jaxrules.lists.exact_problem.candidates_of", late)
    fit = exact_list.fit(X, y, max_length=2, time_limit=jr.Deadline(100.0, lambda: now))
    assert fit.status == "time_limit"
    assert fit.objective <= whole.objective <= fit.bound == len(y)


def test_conditions_of_ones_own():
    X, y = random_problem(0, rows=100, features=4)
    schema = jr.as_table(X).schema
    conditions = [[(j, side)] for j in range(4) for side in (0, 1)] + [
        [(0, 1), (1, 1)],
        [(0, 0), (2, 1)],
        [],
    ]

    def condition(j, side):
        return jr.Condition.at_least(j, 1.0) if side else jr.Condition.below(j, 1.0)

    pool = jr.Conjunctions.build(
        schema, [[condition(*literal) for literal in rule] for rule in conditions]
    )
    fit = jr.exact_list.fit(X, y, rules=pool, max_rules=3, literal_penalty=1.0)
    rows = [
        (c, np.logical_and.reduce([np.ones(100, bool), *(X[:, j] == side for j, side in c)]))
        for c in conditions
    ]
    rows = [(c, r) for c, r in rows if 0 < r.sum() < 100]
    assert (
        fit.objective
        == fit.bound
        == best_list(X, y, np.ones(100), rows, 3, 1.0, majority(y, np.ones(100)))
    )
    assert set(map(frozenset, fit.model.conjunctions)) <= set(map(frozenset, pool))
    dear = jr.Conjunctions.build(schema, pool, propositions=[200] * len(pool))
    assert len(jr.exact_list.fit(X, y, rules=dear).model.conjunctions) == 0


# Constraints


@pytest.mark.parametrize("seed", range(8))
def test_constraints_by_brute_force(seed):
    """All lists of conditions with labels, those that break a constraint left out."""
    X, y = random_problem(seed, 2 + seed % 2, features=3)
    classes, ones = np.unique(y), np.ones(len(y))
    default = majority(y, ones)[0]
    conditions = list(all_conditions(X, 2))

    def best(allowed, required=(), rules=2):
        def search(free, left, used):
            value = -np.inf if set(required) - used else (free & (y == default)).sum()
            for literals, rows in conditions if left else []:
                got = rows & free
                for label in classes if got.any() else []:
                    if allowed(literals, label):
                        then = search(free & ~got, left - 1, used | {j for j, _ in literals})
                        value = max(value, (got & (y == label)).sum() - 0.5 * len(literals) + then)
            return value

        return search(ones > 0, rules, frozenset())

    options = {"max_rules": 2, "literal_penalty": 0.5, "min_support": 0.0}
    fit = jr.exact_list.fit(X, y, forbidden=["x1"], **options)
    assert (
        fit.objective == fit.bound == best(lambda literals, label: all(j != 1 for j, _ in literals))
    )
    fit = jr.exact_list.fit(X, y, required=[2, 1], **options)
    assert fit.objective == fit.bound == best(lambda literals, label: True, (1, 2))
    assert {1, 2} <= {condition.feature for rule in fit.model.conjunctions for condition in rule}

    def monotone(literals, label):
        return all(j != 0 or label == (classes[-1] if side else classes[0]) for j, side in literals)

    fit = jr.exact_list.fit(X, y, monotone={"x0": 1}, **options)
    assert fit.objective == fit.bound == best(monotone)
    low, high = (np.where(np.arange(3) == 0, side, X) for side in (0.0, 1.0))
    assert (jr.predict(fit.model, low) <= jr.predict(fit.model, high)).all()
    falling = jr.exact_list.fit(
        np.where(np.arange(3) == 0, 1 - X, X), y, monotone={0: -1}, **options
    )
    assert falling.objective == fit.objective


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("label", [None, 0, 1])
def test_an_experts_rule_comes_first(seed, label):
    X, y = random_problem(seed, features=4)
    first = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.at_least(2, 1.0), jr.Condition.below(3, 1.0)]]
    )
    fit = jr.exact_list.fit(
        X,
        y,
        max_rules=3,
        min_support=0.0,
        literal_penalty=1.0,
        first=first,
        first_labels=None if label is None else [label],
    )
    got = (X[:, 2] == 1) & (X[:, 3] == 0)
    said = int(np.bincount(y[got]).argmax()) if label is None else label
    rest = best_list(
        X[~got],
        y[~got],
        np.ones((~got).sum()),
        all_conditions(X[~got], 2),
        2,
        1.0,
        majority(y, np.ones(len(y))),
    )
    assert fit.objective == fit.bound == pytest.approx(rest + (y[got] == said).sum() - 2)
    assert fit.model.conjunctions.rule(0) == first.rule(0)
    assert fit.model.labels[0] == said
    assert fit.objective == pytest.approx(objective_of(fit.model, X, y, np.ones(len(y)), 1.0))
    counts = (y[got][:, None] == np.arange(2)).sum(axis=0) + 1
    np.testing.assert_allclose(fit.model.probabilities[0], counts / counts.sum())


# Paths and cross-validation


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("required", [(), (2,), (1, 2)])
def test_a_path_is_the_best_lists_of_every_size(classes, required):
    X, y = random_problem(7, classes, features=4)
    options = {"literal_penalty": 0.5, "max_length": 1, "min_support": 0.0, "required": required}
    path = exact_list.path(X, y, max_rules=3, **options)
    sizes = range(max(1, len(required)), 4)
    start = None
    for fit, size in zip(path, sizes, strict=True):
        best = exact_list.fit(X, y, max_rules=size, **options)
        assert (fit.objective, fit.bound, fit.status) == (best.objective, best.bound, "optimal")
        again = exact_list.fit(X, y, max_rules=size, start=start, **options)
        assert str(fit.model) == str(again.model)
        assert dict(fit.model.options)["max_rules"] == size
        start = fit


def test_a_path_comes_after_an_experts_rule():
    X, y = random_problem(2, features=4)
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.at_least(2, 1.0)]])
    path = exact_list.path(X, y, max_rules=3, first=first)
    assert [dict(fit.model.options)["max_rules"] for fit in path] == [2, 3]
    for fit, size in zip(path, (2, 3), strict=True):
        assert fit.objective == exact_list.fit(X, y, max_rules=size, first=first).objective


def test_a_path_within_limits():
    X, y = random_problem(0)
    path = exact_list.path(X, y, time_limit=0)
    assert [(fit.status, len(fit.model.conjunctions)) for fit in path] == [("time_limit", 0)]

    def interrupt(progress):
        raise KeyboardInterrupt

    assert [fit.status for fit in exact_list.path(X, y, progress=interrupt)] == ["interrupted"]
    with pytest.raises(ValueError, match="raise max_rules"):
        exact_list.path(X, y, required=[0, 1, 2], max_rules=2, max_length=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"required": [0, 2]}])
def test_cross_validation_measures_held_out_rows(classes, options):
    X, y = random_problem(5, classes, rows=60)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    options = {"max_length": 1, "min_support": 0.0, **options}
    chosen = exact_list.cross_validate(
        X, y, weights, max_rules=3, literal_penalties=[0.5, 2.0], n_folds=2, seed=3,
        one_standard_error=False, **options,
    )  # fmt: skip
    found = chosen.details.cross_validation
    sizes = (2, 3) if "required" in options else (1, 2, 3)
    assert [tuple(setting.values()) for setting in found.settings] == [
        (size, penalty) for penalty in (0.5, 2.0) for size in sizes
    ]
    rows = np.flatnonzero(weights)
    data = reading.list_data(X, y, weights, exact_list.ExactListOptions())
    fold = folds(data, 2, 3)
    for k, (i, penalty) in itertools.product(range(2), enumerate((0.5, 2.0))):
        inside, outside = rows[fold != k], rows[fold == k]
        part = X[inside], y[inside], weights[inside]
        path = exact_list.path(*part, max_rules=3, literal_penalty=penalty, **options)
        for j, fit in enumerate(path[-len(sizes) :], start=i * len(sizes)):
            wrong = jr.predict(fit.model, X[outside]) != y[outside]
            assert found.risks[k, j] == pytest.approx(np.average(wrong, weights=weights[outside]))
            assert found.sizes[k, j] == len(fit.model.conjunctions)
    assert found.risk[found.chosen] == found.risk.min()
    last = exact_list.fit(X, y, weights, **found.setting, **options)
    assert (chosen.objective, str(chosen.model)) == (last.objective, str(last.model))


def test_cross_validation_within_limits():
    X, y = random_problem(0)
    fit = exact_list.cross_validate(X, y, time_limit=0)
    assert fit.status == "time_limit"
    assert np.isnan(fit.details.cross_validation.risks).all()
    for name, value in {"literal_penalties": [], "max_rules": 0, "n_folds": 1}.items():
        with pytest.raises(ValueError, match=name):
            exact_list.cross_validate(X, y, **{name: value})
    with pytest.raises(ValueError, match="n_folds must be at most 30"):
        exact_list.cross_validate(X, y, n_folds=31)


def test_old_names_warn_and_work():
    X, y = random_problem(1)
    literals = literals_of(jr.as_table(X))
    rules = literals.conjunctions([(i,) for i in range(len(literals))])
    for old, new in (
        ({"max_literals": 1}, {"max_length": 1}),
        ({"quantiles": 3}, {"max_cut_points": 3}),
        ({"conditions": rules}, {"rules": rules}),
    ):
        best = exact_list.fit(X, y, max_rules=2, **new)
        with pytest.warns(FutureWarning, match=f"exact_list.fit: {next(iter(old))} is now called"):
            fit = exact_list.fit(X, y, max_rules=2, **old)
        assert fit.model.options == best.model.options
        assert str(fit.model) == str(best.model)


# What users do


def test_missing_values_where_the_search_does_not_end_at_once():
    """SSRL's list, which is offered then, is of the same table."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 4)) < 0.1, np.nan, rng.normal(size=(300, 4)))
    y = (np.nan_to_num(X) @ [1.0, -1.0, 1.0, 0.0] + rng.normal(size=300) > 0).astype(int)
    fit = jr.exact_list.fit(X, y, missing="own_category", max_rules=3, max_evaluations=2000)
    assert fit.status is jr.Status.MAX_ITERATIONS
    assert jr.accuracy(fit.model, X, y) > 0.6


def test_real_numbers_categories_and_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(40, 10, 300), "job": rng.choice(["cook", "smith", "clerk"], 300)}
    )
    y = np.where((frame["age"] > 45) & (frame["job"] != "cook"), "yes", "no")
    frame.loc[::20, "age"] = np.nan
    fit = jr.exact_list.fit(
        frame, y, missing="own_category", cut_points={"age": [35, 45]}, max_rules=2
    )
    assert fit.status == "optimal"
    assert jr.accuracy(fit.model, frame, y) > 0.95
    assert "job != cook" in str(fit.model)
    assert "age >= 45" in str(fit.model)


def test_a_large_pool_has_the_best_literals_by_default(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(40, 10, 200), "size": rng.normal(size=200), "job": list("cscj") * 50}
    )
    y = (frame["age"] > 45) & (frame["job"] != "c")
    options = {"max_rules": 2, "literal_penalty": 1.0}
    every = jr.exact_list.fit(frame, y, **options)
    assert every.details.max_cut_points == 9
    assert every.details.left_out == 0
    twelve = 12 + 12 * 11 // 2
    monkeypatch.setattr(exact_problem, "_OVERHEAD", 0)
    monkeypatch.setattr(exact_problem, "_MOST_ENTRIES", twelve * len(frame))
    few = jr.exact_list.fit(frame, y, **options)
    assert f"no room for {few.details.left_out} literals" in str(few)
    assert few.details.conditions <= twelve
    assert few.objective == every.objective  # they tell the classes apart
    given = {"cut_points": {"age": range(30, 50)}}
    assert jr.exact_list.fit(frame, y, **options, **given).details.conditions <= twelve
    short = jr.exact_list.fit(frame, y, max_length=1, **options)
    assert short.details.left_out == 0
    monkeypatch.undo()
    given = jr.exact_list.fit(frame, y, max_rules=1, cut_points={"age": range(30, 50)})
    assert given.details.max_cut_points == 9
    assert jr.exact_list.fit(frame, y, max_rules=1, max_cut_points=9).details.max_cut_points == 9


def test_a_single_rule_and_no_rule():
    X, y = random_problem(1)
    one = jr.exact_list.fit(X, y, max_rules=1)
    assert len(one.model.conjunctions) <= 1
    none = jr.exact_list.fit(X, y, literal_penalty=100.0)
    assert len(none.model.conjunctions) == 0
    assert none.status == "optimal"
    assert none.objective == np.bincount(y).max()


def test_what_cannot_be_learned_is_refused():
    X, y = random_problem(0)
    schema = jr.as_table(X).schema
    everything = jr.Conjunctions.build(schema, [[]])
    for arguments, words in (
        ({"X": np.ones((len(y), 2))}, "no condition is available"),
        ({"forbidden": [0, 1, 2]}, "forbidden names every column"),
        ({"min_support": 0.999}, "no condition is available"),
        (
            {
                "required": [0],
                "rules": jr.Conjunctions.build(schema, [[jr.Condition.below(1, 1.0)]]),
            },
            "required",
        ),
        ({"required": [0, 1, 2], "max_rules": 1, "max_length": 1}, "required"),
        ({"required": [0], "forbidden": [0]}, "required and forbidden both name"),
        ({"first": everything}, "the rules of first cover every row"),
        ({"y": np.zeros(len(y))}, "only one class"),
        ({"max_rules": 2**40}, "max_rules must be at most 10000"),
        ({"max_cut_points": 0}, "max_cut_points must be at least 1"),
        ({"literal_penalty": -1.0}, "literal_penalty must be finite and at least 0"),
    ):
        with pytest.raises(ValueError, match=words):
            jr.exact_list.fit(**({"X": X, "y": y} | arguments))
    with pytest.raises(TypeError, match='max_cut_points must be an integer, "auto" or None, got'):
        jr.exact_list.fit(X, y, max_cut_points="all")


def test_longer_conditions_than_there_are_change_nothing():
    X, y = random_problem(0)
    fit, longest = (
        jr.exact_list.fit(X, y, max_rules=2, max_length=n, min_support=0.3) for n in (6, 2**40)
    )
    assert (longest.objective, longest.status) == (fit.objective, fit.status)


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROWS", 20)
    with pytest.raises(ValueError, match="X has 30 rows; at most 20 can be counted exactly"):
        jr.exact_list.fit(*random_problem(0))


def test_a_fold_makes_its_conditions_once_and_searches_briefly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X[:, 0] > 0) & (X[:, 1] > 0)
    made: list[int] = []
    limits: list[float] = []
    of, search = exact_list.ListProblem.of, exact_list._searched

    def noted(data: Any, *rest: Any) -> Any:
        made.append(len(data.weights))
        return of(data, *rest)

    def limited(problem: Any, run: Any, limit: float, *rest: Any) -> Any:
        limits.append(limit)
        return search(problem, run, limit, *rest)

    monkeypatch.setattr(exact_list.ListProblem, "of", noted)
    monkeypatch.setattr(exact_list, "_searched", limited)
    options: dict[str, Any] = {"max_rules": 2, "max_evaluations": 80_000}
    jr.exact_list.cross_validate(X, y, literal_penalties=[1.0, 5.0], n_folds=2, **options)
    assert sorted(made) == [100, 100, 200]
    assert limits == [*[10_000.0] * 8, 80_000]  # two sizes for two penalties in two folds; the fit


def test_weights_that_are_no_bits_are_searched_rule_by_rule_if_rows_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    r = np.random.default_rng(0)
    X = (r.random((80, 5)) < 0.4).astype(int)
    y, weight = (X[:, 0] & X[:, 1]) ^ (r.random(80) < 0.1), r.random(80) + 0.5
    both = jr.exact_list.fit(X, y, sample_weight=weight, literal_penalty=0.02, max_rules=3)
    monkeypatch.setattr("jaxrules.lists.prefixes._MOST_ADDED", 0)
    one = jr.exact_list.fit(X, y, sample_weight=weight, literal_penalty=0.02, max_rules=3)
    assert one.objective == pytest.approx(both.objective, rel=1e-9)
    assert one.status == both.status == jr.Status.OPTIMAL
