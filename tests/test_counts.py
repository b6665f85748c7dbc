"""Rule lists store how many training rows of each class reached each rule, and show them."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxrules as jr

RNG = np.random.default_rng(3)
X = RNG.integers(0, 5, (90, 3)).astype(float)
LABELS = np.where(RNG.random(90) < 0.1, "no", np.where((X[:, 0] > 2) | (X[:, 1] < 1), "yes", "no"))
WEIGHTS = RNG.choice([0.5, 1.0, 2.25], 90)
FIRST = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.above(2, 3.0)]])


def lists(**given: Any) -> dict[str, jr.RuleList]:
    near = jr.exact_list.near_optimal(X, LABELS, max_rules=2, max_length=1, **given)
    return {
        "SSRL": jr.ssrl.fit(X, LABELS, max_rules=3, **given).model,
        "SSRL after given rules": jr.ssrl.fit(X, LABELS, max_rules=3, first=FIRST, **given).model,
        "exact": jr.exact_list.fit(X, LABELS, max_rules=2, max_length=1, **given).model,
        "near-optimal": near[len(near) - 1],
        "DRNet": jr.drnet.fit(X, LABELS, iterations=200, **given).model,
    }


def recounted(model: jr.RuleList, weights: np.ndarray) -> np.ndarray:
    position = model.position(jr.data.table.conform(X, model.schema))
    counts = np.zeros((len(model.conjunctions) + 1, 2))
    np.add.at(counts, (position, (LABELS == "yes").astype(int)), weights)
    return counts


@pytest.mark.full
def test_lists_count_their_training_rows() -> None:
    for model in lists().values():
        np.testing.assert_array_equal(model.counts, recounted(model, np.ones(90)))
        assert not model.weighted
        first = model.counts[0]
        shown = (
            f"{first[model.labels[0]]:.0f} of {first.sum():.0f} row{'s' * int(first.sum() != 1)}"
        )
        assert f", {shown})" in str(model).splitlines()[0]
        assert shown in model._repr_html_()
        assert shown in jr.to_latex(model)
        decided = int(model.position(jr.as_table(X))[0])
        assert f"; {model.counted(decided)[0]})" in str(jr.explain(model, X[:1])[0])


def test_weighted_lists_sum_the_weights() -> None:
    for model in lists(sample_weight=WEIGHTS).values():
        np.testing.assert_allclose(model.counts, recounted(model, WEIGHTS), rtol=1e-12)
        assert model.weighted
        assert ", weight " in str(model)
        assert " rows" not in str(model)


def test_files_hold_the_counts(tmp_path: Path) -> None:
    model = jr.ssrl.fit(X, LABELS, max_rules=2).model
    jr.save(model, tmp_path / "list.json")
    loaded = jr.load(tmp_path / "list.json")
    np.testing.assert_array_equal(loaded.counts, model.counts)
    assert str(loaded) == str(model)
    assert 'recordCount="' + repr(float(model.counts[0, 0])) in jr.to_pmml(model)


def test_edited_lists_keep_true_counts_or_none() -> None:
    model = jr.ssrl.fit(X, LABELS, max_rules=3).model
    assert jr.without_rules(model, []).counts is model.counts
    assert jr.without_rules(model, [0]).counts is None
    assert jr.simplify(model, X[:40]).counts is None
    assert jr.calibrate(model, X, LABELS).counts is None
    np.testing.assert_array_equal(jr.with_threshold(model, 0.9).counts, model.counts)
    refitted = jr.refit(jr.without_rules(model, [0]), X, LABELS)
    np.testing.assert_array_equal(refitted.counts, recounted(refitted, np.ones(90)))
    weighted = jr.refit(model, X, LABELS, sample_weight=WEIGHTS)
    assert weighted.weighted
    np.testing.assert_allclose(weighted.counts, recounted(model, WEIGHTS))
    assert jr.refit(model, X, LABELS, keep=[0]).counts is None
    assert "rows" not in str(jr.without_rules(model, [0]))


def test_bad_counts_are_refused() -> None:
    model = jr.ssrl.fit(X, LABELS, max_rules=2).model
    for counts in (model.counts[1:], -model.counts, model.counts * np.nan):
        with pytest.raises(ValueError, match="counts must be finite and at least 0, of shape"):
            dataclasses.replace(model, counts=counts)
    with pytest.raises(TypeError, match="counts of a RuleList must be an array of float64"):
        dataclasses.replace(model, counts=[[1.0]])
    with pytest.raises(TypeError, match="weighted"):
        dataclasses.replace(model, weighted=3)
