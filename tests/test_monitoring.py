"""Drift between two tables, against sums by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jaxrules as jr

C = jr.Condition
SCHEMA = jr.Schema(
    (jr.Feature("income"), jr.Feature("job", ("cook", "vet"))), classes=("repaid", "default")
)
RULES = jr.Conjunctions.build(SCHEMA, [[C.at_most(0, 30)], [C.one_of(1, [0])]])
MODEL = jr.RuleEnsemble(RULES, np.array([[2.0], [1.0]]), np.array([-1.0]), link="logistic")
BEFORE = {"income": [10, 20, 40, 50, 60], "job": ["cook", "vet", "vet", "cook", "vet"]}
AFTER = {"income": [10, 20, 25, 50], "job": ["cook", "cook", "new", "vet"]}


def psi(before: list[float], after: list[float]) -> float:
    """Of counts, half a row added to each."""
    n, m = sum(before) + len(before) / 2, sum(after) + len(after) / 2
    shares = [((b + 0.5) / n, (a + 0.5) / m) for b, a in zip(before, after, strict=True)]
    return sum((q - p) * math.log(q / p) for p, q in shares)


def test_indices_by_hand() -> None:
    found = jr.drift(MODEL, BEFORE, AFTER)
    # Scores before: 2, 1, -1, 0, -1; after: 2, 2, 1, -1.
    assert [one.text for one in found.scores] == ["-1", "0", "1", "2"]
    assert [one.before for one in found.scores] == [0.4, 0.2, 0.2, 0.2]
    assert [one.after for one in found.scores] == [0.25, 0, 0.25, 0.5]
    assert found.psi == pytest.approx(psi([2, 1, 1, 1], [1, 0, 1, 2]))
    assert found.psi == pytest.approx(sum(one.psi for one in found.scores))
    by_rule = {one.text: one for one in found.rules}
    assert by_rule["income <= 30"].psi == pytest.approx(psi([3, 2], [1, 3]))
    assert by_rule["job == cook"].psi == pytest.approx(psi([3, 2], [2, 2]))
    assert found.rules[0].text == "income <= 30"
    assert (by_rule["job == cook"].before, by_rule["job == cook"].after) == (0.4, 0.5)
    assert found.rows == (5, 4)
    # Bins of quantiles: up to 10, 20, 40, 50 and above; a job that fit did not see is a bin.
    by_column = {one.text: one.psi for one in found.columns}
    assert by_column["income"] == pytest.approx(psi([1, 1, 1, 1, 1], [1, 1, 1, 1, 0]))
    assert by_column["job"] == pytest.approx(psi([2, 3, 0], [2, 1, 1]))
    assert str(found).endswith(f"PSI of the columns: job {by_column['job']:.3f}, income 0.135")
    assert str(found).startswith(f"PSI of the scores {found.psi:.3f} (act); 5 rows before, 4 after")
    assert found._repr_html_().count("<table") == 2


def test_the_same_rows_have_not_moved() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    model = jr.boosting.fit(X, X[:, 0] > X[:, 1], max_rules=6).model
    found = jr.drift(model, X, X, n_bins=5)
    assert found.psi == 0
    assert all(one.psi == 0 for one in (*found.scores, *found.rules))
    assert "(stable)" in str(found)
    assert len(found.scores) <= 5
    assert sum(one.before for one in found.scores) == pytest.approx(1)
    # Quantiles: each bin holds the rows up to its edge.
    scores = jr.decision_function(model, X)
    edges = np.unique(np.quantile(scores, [0.2, 0.4, 0.6, 0.8], method="lower"))
    expected = np.bincount(np.searchsorted(edges, scores), minlength=len(edges) + 1) / 500
    assert [one.before for one in found.scores] == pytest.approx(expected.tolist())
    assert jr.drift(model, X, X + 1.0).psi > 0


def test_weights_are_repeated_rows() -> None:
    repeated: dict[str, Any] = {
        name: [*values, values[1], values[1]] for name, values in BEFORE.items()
    }
    found = jr.drift(MODEL, BEFORE, AFTER, weight_before=[1, 3, 1, 1, 1])
    expected = jr.drift(MODEL, repeated, AFTER)
    assert found.psi == pytest.approx(expected.psi)
    assert [one.psi for one in found.rules] == pytest.approx([one.psi for one in expected.rules])


def test_lists_classes_paths_and_cards() -> None:
    shares = np.array([[0.1, 0.9], [0.4, 0.6], [0.8, 0.2]])
    listed = jr.RuleList(RULES, np.array([1, 1, 0], np.int32), shares)
    found = jr.drift(listed, BEFORE, AFTER)
    assert [one.text for one in found.scores] == ["1: income <= 30", "2: job == cook", "otherwise"]
    assert found.psi == pytest.approx(psi([2, 1, 2], [3, 0, 1]))
    three = jr.RuleEnsemble(
        RULES.with_schema(SCHEMA.with_classes(("a", "b", "c"))),
        np.array([[2.0, 0, 0], [0, 1.0, 0]]),
        np.array([0.0, 0.0, 0.5]),
        link="softmax",
    )
    found = jr.drift(three, BEFORE, AFTER)
    assert [one.text for one in found.scores] == ["a", "b", "c"]
    assert found.psi == pytest.approx(psi([2, 1, 2], [3, 0, 1]))
    X = np.random.default_rng(0).normal(size=(60, 2))
    path = jr.paths.fit(X, X[:, 0], steps=2).model
    found = jr.drift(path, X, X)
    assert (found.psi, found.rules) == (0, ())
    y = ["default", "repaid", "repaid", "default", "repaid"]
    card = jr.scorecard(MODEL, BEFORE, y)
    assert jr.drift(card, BEFORE, AFTER).psi == pytest.approx(
        jr.drift(card.model, BEFORE, AFTER).psi
    )
    assert jr.drift(jr.scaled_scorecard(card), BEFORE, AFTER).psi == pytest.approx(
        jr.drift(card.model, BEFORE, AFTER).psi
    )


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="model must be a jaxrules model"):
        jr.drift("model", BEFORE, AFTER)
    with pytest.raises(ValueError, match="after, read as an X: X lacks the columns 'job'"):
        jr.drift(MODEL, BEFORE, {"income": [1]})
    with pytest.raises(ValueError, match="before has no rows"):
        jr.drift(MODEL, {"income": [], "job": []}, AFTER)
    with pytest.raises(ValueError, match="n_bins must be at least 2"):
        jr.drift(MODEL, BEFORE, AFTER, n_bins=1)
    with pytest.raises(ValueError, match="3 values"):
        jr.drift(MODEL, BEFORE, AFTER, weight_after=[1, 1, 1])


def test_codes_and_gaps_of_columns_are_bins() -> None:
    X = {"months": [-7, -8, 5, 6, None, 6], "flag": [True, False, None, True, True, False]}
    table = jr.as_table(X, missing="own_category", special_values={"months": [-7, -8]})
    model = jr.boosting.fit(table, ["a", "b"] * 3, max_rules=1).model
    later = {"months": [-7, -7, 5, None], "flag": [True, None, None, True]}
    found = {one.text: one.psi for one in jr.drift(model, X, later).columns}
    # -7, -8, missing, 5, 6; True, False, missing
    assert found["months"] == pytest.approx(psi([1, 1, 1, 1, 2], [2, 0, 1, 1, 0]))
    assert found["flag"] == pytest.approx(psi([3, 2, 1], [2, 0, 2]))
    many = np.arange(60).reshape(10, 6)
    model = jr.boosting.fit(many, many[:, 0] > 20, max_rules=1).model
    assert ", the largest of 6" in str(jr.drift(model, many, many + 5))
