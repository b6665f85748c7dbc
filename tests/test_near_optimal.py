"""All near-optimal rule lists, against an enumeration of all lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_exact_list import all_conditions, objective_of, random_problem

import jaxrules as jr
from jaxrules.lists import near_optimal

Captures = frozenset[bytes]


def all_lists(X, y, weights, max_rules, max_literals, penalty, defaults, local=0.0):
    """The best objective of every set of captured sets of rows, by all
    sequences of all conditions.
    """
    found: dict[Captures, float] = {}
    conditions = [(rows, len(literals)) for literals, rows in all_conditions(X, max_literals)]

    def grow(free, left, right, captures):
        value = right + max(weights[free & (y == d)].sum() for d in defaults)
        found[captures] = max(found.get(captures, -np.inf), value)
        for rows, size in conditions if left else []:
            got = rows & free
            if got.any():
                best = max(weights[got & (y == k)].sum() for k in np.unique(y))
                best -= penalty * size + local * weights[free].sum()
                grow(free & ~got, left - 1, right + best, captures | {got.tobytes()})

    grow(np.ones(len(y), bool), max_rules, 0.0, frozenset())
    return found


def captures_of(model: jr.RuleList, X) -> Captures:
    position = model.position(jr.as_table(X))
    return frozenset((position == k).tobytes() for k in range(len(model.conjunctions)))


@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([0.0, 0.01, 0.15]),
)
@settings(max_examples=60)
def test_every_near_optimal_list_is_found_once(seed, classes, within, penalty, local):
    rng = np.random.default_rng(seed)
    X, y = random_problem(seed, classes)
    weights = rng.integers(1, 4, len(y)).astype(float) if seed % 2 else np.ones(len(y))
    max_rules, max_literals, free = (
        int(rng.integers(1, 4)),
        int(rng.integers(1, 3)),
        bool(rng.random() < 0.3),
    )
    if max_literals == 2:
        max_rules = min(max_rules, 2)
    found = jr.exact_list.near_optimal(
        X,
        y,
        within=within,
        max_rules=max_rules,
        max_length=max_literals,
        min_support=0.0,
        literal_penalty=penalty,
        local_penalty=local,
        default="free" if free else "majority",
        sample_weight=weights,
        limit=10**6,
    )
    defaults = range(classes) if free else [int(np.bincount(y, weights).argmax())]
    lists = all_lists(X, y, weights, max_rules, max_literals, penalty, defaults, local)
    optimum = max(lists.values())
    expected = {
        captures: value
        for captures, value in lists.items()
        if value >= (1 - within) * optimum - 1e-9
    }
    assert found.optimum == found.bound == pytest.approx(optimum)
    assert found.complete
    assert found.at_most == len(found) == len(expected)
    models = [found[i] for i in range(len(found))]
    assert {
        captures_of(model, X): value for model, value in zip(models, found.objectives, strict=True)
    } == {captures: pytest.approx(value) for captures, value in expected.items()}
    assert (np.diff(found.objectives) <= 0).all()
    for model, objective in zip(models, found.objectives, strict=True):
        model.validate()
        read = local * jr.local_supports(model, X) @ weights
        assert objective_of(model, X, y, weights, penalty) - read == pytest.approx(objective)
    predictions = np.stack([jr.predict(model, X) for model in models], axis=1)
    np.testing.assert_array_equal(
        found.possible(X),
        np.stack([(predictions == k).any(axis=1) for k in range(classes)], axis=1),
    )
    texts = [{str(c) for c in map(list, model.conjunctions)} for model in models]
    occurs = [sum(str(list(rule)) in text for text in texts) for rule in found.conditions]
    assert found.occurrences.tolist() == occurs


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", ["limit", "prefixes", "evaluations"])
def test_what_is_not_listed_is_bounded(seed, how, monkeypatch):
    X, y = random_problem(seed, 2 + seed % 2, features=4)
    options = {"within": 0.2, "max_rules": 2, "min_support": 0.0, "literal_penalty": 0.5}
    everything = jr.exact_list.near_optimal(X, y, limit=10**6, **options)
    assert everything.complete
    if how == "limit":
        some = jr.exact_list.near_optimal(X, y, limit=7, **options)
        assert len(some) == 7
        np.testing.assert_array_equal(some.objectives, everything.objectives[:7])
    elif how == "prefixes":
        monkeypatch.setattr(near_optimal, "_MOST_PREFIXES", 3)
        some = jr.exact_list.near_optimal(X, y, limit=10**6, **options)
    else:
        monkeypatch.setattr("jaxrules.lists.prefixes._EVALUATED_AT_ONCE", 1)
        problem_size = 40
        some = jr.exact_list.near_optimal(
            X, y, limit=10**6, max_evaluations=problem_size * 10, **options
        )
    assert not some.complete
    assert len(some) <= len(everything) <= some.at_most
    n = jr.exact_list.fit(X, y, min_support=0.0).details.conditions
    assert some.at_most <= 1 + n + n**2  # lists of no rule, of one and of two
    above = everything.objectives > some.floor + 1e-9
    captured = {captures_of(some[i], X) for i in range(len(some))}
    for i in np.flatnonzero(above).tolist():
        assert captures_of(everything[i], X) in captured
    assert "There may be more" in str(some)


def test_no_time_is_said():
    X, y = random_problem(0)
    found = jr.exact_list.near_optimal(X, y, within=0.5, time_limit=0)
    assert not found.complete
    assert found.floor == found.bound >= found.optimum
    assert "the search did not get that far" in str(found)
    found = jr.exact_list.near_optimal(X, y, max_rules=2, time_limit=0)
    pool = 6 + 15  # conjunctions of one or two of the six literals, made or not
    assert found.at_most >= 1 + pool + pool**2


def test_the_best_is_listed_even_if_nothing_else_is(monkeypatch):
    X, y = random_problem(0)
    options = {"within": 0.2, "max_rules": 2, "literal_penalty": 0.1}
    everything = jr.exact_list.near_optimal(X, y, **options)
    run = near_optimal.Enumeration.run
    monkeypatch.setattr(near_optimal.Enumeration, "run", lambda self, _: run(self, lambda: True))
    found = jr.exact_list.near_optimal(X, y, **options)
    assert (len(found), found.complete) == (1, False)
    assert len(found[0].conjunctions) > 0
    assert found.objectives[0] == pytest.approx(everything.optimum)
    assert found.at_most >= len(everything)
    assert str(found[0]) in str(found)


def test_a_short_limit_takes_cut_points_from_a_sample():
    class Late:
        now = 0.0

        def __call__(self):
            now, self.now = self.now, 100.0
            return now

    X = np.random.default_rng(0).normal(size=(6000, 4))
    found = jr.exact_list.near_optimal(
        X, X[:, 0] > X[:, 1], max_rules=2, literal_penalty=1.0,
        time_limit=jr.Deadline(0.01, Late()),
    )  # fmt: skip
    assert (found.status, found.complete) == ("time_limit", False)
    assert len(found) == 1


def test_a_pool_that_the_limit_cuts_is_said():
    """Lists with conditions that there was no time to construct may also be near-optimal."""
    X, y = random_problem(0, rows=100, features=4)

    class Clock:  # the time of the pool is over when it is begun, that of the fit is not
        reads = 0

        def __call__(self):
            self.reads += 1
            return 0.0 if self.reads < 5 else 60.0

    found = jr.exact_list.near_optimal(
        X, y, within=0.2, max_rules=2, time_limit=jr.Deadline(100.0, Clock())
    )
    whole = jr.exact_list.near_optimal(X, y, within=0.2, max_rules=2)
    assert (found.status, found.complete) == ("time_limit", False)
    assert (whole.status, whole.complete) == ("optimal", True)
    assert found.floor == found.bound == len(y)
    assert found.at_most >= len(whole)
    few = jr.exact_list.near_optimal(X, y, within=0.2, max_rules=2, limit=1)
    assert few.status == "max_iterations"


def test_constraints_and_a_first_rule_hold_in_all_lists():
    X, y = random_problem(1, features=4)
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.at_least(3, 1.0)]])
    found = jr.exact_list.near_optimal(
        X,
        y,
        within=0.2,
        first=first,
        forbidden=["x0"],
        required=["x1"],
        monotone={"x2": 1},
        min_support=0.0,
        literal_penalty=1.0,
        local_penalty=0.01,
    )
    assert len(found) > 1
    for i in range(len(found)):
        model = found[i]
        rest = [condition for rule in list(model.conjunctions)[1:] for condition in rule]
        assert model.conjunctions.rule(0) == first.rule(0)
        assert 0 not in {condition.feature for condition in rest}
        assert 1 in {condition.feature for condition in rest}
        low, high = (np.where(np.arange(4) == 2, side, X) for side in (0.0, 1.0))
        assert (jr.predict(model, low) <= jr.predict(model, high)).all()
        read = 0.01 * jr.local_supports(model, X).sum()
        objective = objective_of(model, X, y, np.ones(len(y)), 1.0) - read
        assert found.objectives[i] == pytest.approx(objective)


def test_the_text_names_shares_and_the_best():
    X, y = random_problem(2, features=6, rows=200)
    found = jr.exact_list.near_optimal(X, y, within=0.05)
    text = str(found)
    assert found._repr_html_().count("<table>") == 2
    assert "with an objective of at least" in found._repr_html_()
    assert f"{len(found)} rule lists with an objective of at least" in text
    assert str(found[0]) in text
    top = found.occurrences.argmax()
    assert found.conditions.describe(top) in text
    assert repr(found) == f"NearOptimal({len(found)} lists, complete=True)"


def test_bad_arguments_are_refused():
    X, y = random_problem(0)
    for arguments, error, words in (
        ({"within": -0.1}, ValueError, "within must be"),
        ({"within": "1"}, TypeError, "within must be"),
        ({"limit": 0}, ValueError, "limit must be"),
        ({"max_evaluations": 0}, ValueError, "max_evaluations must be"),
        ({"literal_penalty": -1}, ValueError, "literal_penalty must be"),
        ({"max_rules": 0}, ValueError, "max_rules"),
    ):
        with pytest.raises(error, match=words):
            jr.exact_list.near_optimal(X, y, **arguments)
