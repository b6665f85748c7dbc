"""Stability of rules and columns: known answers, an independent formula, failures and limits."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

import jaxrules as jr
from jaxrules.estimators import RuleBoostingClassifier

C = jr.Condition


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    X = rng.normal(size=(80, 5))
    return X, (X[:, 0] > 0.2).astype(int)


def ensemble(X: Any, *rules: list[jr.Condition]) -> jr.RuleEnsemble:
    schema = jr.as_table(X).schema.with_classes((0, 1))
    conjunctions = jr.Conjunctions.build(schema, rules)
    return jr.RuleEnsemble(conjunctions, np.ones((len(rules), 1)), np.zeros(1), link="logistic")


def test_a_model_that_never_changes_is_stable(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    slant = C.above(jr.Direction((1, 2), (1.0, -2.0)), 0.0)
    found = jr.stability(lambda X, y: ensemble(X, [C.above(0, 0.0)], [slant]), *data, replicates=3)
    assert [rule[1:3] for rule in found.rules] == [(1.0, 1.0)] * 2
    assert [rule.correlation for rule in found.rules] == pytest.approx([1.0, 1.0])
    assert [(one.name, one.share, one.used) for one in found.features] == [
        (f"x{f}", 1.0, True) for f in range(3)
    ]
    assert found.score == 1
    assert "stability of the columns 1.00" in str(found)
    assert found.others == ()
    assert found.complexities.tolist() == [4.0] * 3


def test_what_counts_as_the_same_rule(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    rules = iter(
        [
            [[C.above(0, 0.0), C.at_most(1, 1.0)]],  # on all rows
            [[C.above(0, 0.0), C.at_most(1, 1.0)]],
            [[C.above(0, 0.1), C.at_most(1, 1.0)]],  # another threshold
            [[C.above(0, 0.0), C.above(1, 1.0)]],  # another sense
            [[C.above(3, 0.0)], [C.at_most(4, 0.0)]],  # other columns
        ]
    )
    found = jr.stability(lambda X, y: ensemble(X, *next(rules)), X, y, replicates=4)
    (rule,) = found.rules
    assert (rule.exact, rule.alike) == (0.25, 0.5)
    held = (X[:, 0] > 0) & (X[:, 1] <= 1)
    others = (
        (X[:, 0] > 0.1) & (X[:, 1] <= 1),
        (X[:, 0] > 0) & (X[:, 1] > 1),
        X[:, 3] > 0,
        X[:, 4] <= 0,
    )
    near = [abs(np.corrcoef(held, other)[0, 1]) for other in others]
    assert rule.correlation == pytest.approx(np.mean([1.0, near[0], near[1], max(near[2:])]))
    shares = {one.name: (one.share, one.used) for one in found.features}
    assert shares == {
        "x0": (0.75, True),
        "x1": (0.75, True),
        "x3": (0.25, False),
        "x4": (0.25, False),
    }
    assert dict(found.others) == {"x0 high & x1 high": 0.25, "x3 high": 0.25, "x4 low": 0.25}
    assert "x3 high" in repr(found)
    assert "x3 high" in found._repr_html_()


def test_score_is_kunchevas_index_for_choices_of_equal_size(rng: np.random.Generator) -> None:
    """For k of d columns in every fit the score is the mean of (r d - k^2) / (k (d - k)) over pairs
    of fits with r columns in common.
    """
    X, y, d, k = rng.normal(size=(20, 6)), np.arange(20) % 2, 6, 2
    draws = [rng.choice(d, k, replace=False).tolist() for _ in range(6)]
    models = iter([ensemble(X, [C.above(f, 0.0) for f in columns]) for columns in draws])
    found = jr.stability(lambda X, y: next(models), X, y, replicates=5)
    pairs = [
        (len(set(a) & set(b)) * d - k * k) / (k * (d - k))
        for a, b in itertools.combinations(draws[1:], 2)
    ]
    assert found.score == pytest.approx(np.mean(pairs))


@pytest.mark.full
def test_the_rule_behind_the_data_returns(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    found = jr.stability(RuleBoostingClassifier(max_rules=1), X, y, replicates=6, seed=1)
    (rule,) = found.rules
    assert rule.correlation > 0.9
    assert found.features[0].name == "x0"
    assert found.features[0].share == 1
    again = jr.stability(RuleBoostingClassifier(max_rules=1), X, y, replicates=6, seed=1)
    assert (again.rules, again.features, again.score) == (found.rules, found.features, found.score)
    assert list(found.to_dataframe().columns) == ["rule", "exact", "alike", "correlation"]


def test_every_class_keeps_its_rows(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    drawn: list[tuple[int, int]] = []

    def spy(X: Any, y: Any, sample_weight: Any) -> jr.RuleEnsemble:
        drawn.append((int(y.sum()), len({*X[:, 0].tolist()})))
        assert set(sample_weight.tolist()) <= {1.0, 2.0}
        return ensemble(X, [C.above(0, 0.0)])

    jr.stability(spy, X, y, replicates=4, sample_weight=1.0 + (np.arange(80) % 2))
    assert {positive for positive, _ in drawn} == {int(y.sum())}
    assert drawn[0][1] == 80
    assert all(30 < distinct < 70 for _, distinct in drawn[1:])


def test_rule_lists_and_failures(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    calls = iter(range(10))

    def listed(X: Any, y: Any) -> jr.RuleList:
        if next(calls) == 2:
            raise RuntimeError("no rule")
        schema = jr.as_table(X).schema.with_classes((0, 1))
        rules = jr.Conjunctions.build(schema, [[C.above(0, 0.2)]])
        return jr.RuleList(rules, np.array([1, 0], np.int32), np.array([[0.0, 1.0], [1.0, 0.0]]))

    found = jr.stability(listed, X, y, replicates=3)
    assert found.failures == ((1, "RuntimeError: no rule"),)
    assert found.rules[0].exact == 1
    assert "2 of 3 bootstrap fits" in repr(found)
    assert "no rule" in repr(found)


def test_the_time_limit_ends_it_between_fits(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    now = [0.0]

    def slow(X: Any, y: Any, time_limit: float) -> jr.RuleEnsemble:
        now[0] += 1.0
        return ensemble(X, [C.above(0, 0.0)])

    found = jr.stability(slow, *data, replicates=10, time_limit=jr.Deadline(3.5, lambda: now[0]))
    assert found.status == "time_limit"
    assert len(found.complexities) == 3
    assert "3 of 10" in repr(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "cart"}, "method must be"),
        ({"method": 3}, "must be (one of|the name of)"),
        ({"method": DecisionTreeClassifier()}, "rule models"),
        ({"method": jr.boosting.path}, "pass a fit, not a path"),
        ({"replicates": 0}, "replicates must be"),
        ({"measure": "rules"}, "measure must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"y": [0, 1, 0]}, "y has 3 values"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_bad_input_is_named(
    change: dict[str, Any], message: str, data: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    X, y = data
    given = {
        "method": lambda X, y: ensemble(X, [C.above(0, 0.0)]),
        "X": X,
        "y": y,
        "replicates": 2,
        **change,
    }
    with pytest.raises((TypeError, ValueError), match=message):
        jr.stability(**given)
