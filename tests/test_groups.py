"""`groups=`: rows of a group share a fold, a part or a draw; folds are balanced."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

import jaxrules as jr
from jaxrules import estimators
from jaxrules.data.groups import spread_groups
from jaxrules.learning.cross_validation import folds
from jaxrules.learning.training import training_data

RNG = np.random.default_rng(0)
PERSON = np.repeat(np.arange(20), 6)
X = RNG.normal(size=(120, 3))
# Every person has an effect of his own, which only rows of the same person show.
Y = (X[:, 0] + RNG.normal(size=20)[PERSON] > 0).astype(int)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1), n_groups=st.integers(2, 40), n_parts=st.integers(2, 6),
    several=st.booleans(),
)  # fmt: skip
def test_no_group_is_parted_and_no_part_is_empty(
    seed: int, n_groups: int, n_parts: int, several: bool
) -> None:
    rng, n_parts = np.random.default_rng(seed), min(n_parts, n_groups)
    group = np.repeat(rng.permutation(n_groups) * 3, rng.integers(1, 9, n_groups))
    classes = rng.integers(0, 3, len(group)) if several else None
    shares = rng.dirichlet(np.ones(n_parts)) + 0.01
    part = spread_groups(group, classes, shares / shares.sum(), seed)
    assert set(part) == set(range(n_parts))
    assert all(len(np.unique(part[group == g])) == 1 for g in group)
    order = rng.permutation(len(group))  # the order of rows does not matter
    again = spread_groups(
        group[order], None if classes is None else classes[order], shares / shares.sum(), seed
    )
    np.testing.assert_array_equal(again, part[order])


@pytest.mark.parametrize("seed", range(3))
def test_folds_are_balanced_as_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(300), 1 + rng.poisson(3, 300))
    y = (rng.random(len(group)) < rng.beta(0.5, 2, 300)[group]).astype(int)
    theirs = np.empty(len(y), int)
    split = StratifiedGroupKFold(5, shuffle=True, random_state=seed).split(y[:, None], y, group)
    for k, (_, held) in enumerate(split):
        theirs[held] = k

    def deviation(fold_of: Any) -> float:
        counts = np.array([np.bincount(fold_of[y == c], minlength=5) for c in (0, 1)])
        return float(np.abs(counts / counts.mean(axis=1, keepdims=True) - 1).max())

    ours = spread_groups(group, y, np.full(5, 0.2), seed)
    assert deviation(ours) <= deviation(theirs) + 0.01


CHOOSERS: dict[str, Any] = {
    "boosting": lambda **g: jr.boosting.cross_validate(X, Y, max_rules=1, **g),
    "lire": lambda **g: jr.lire.cross_validate(X, Y, global_penalties=[0.1, 0.02], **g),
    "rulefit": lambda **g: jr.rulefit.cross_validate(X, Y, l1_penalties=[0.1, 0.02], **g),
    "glrm": lambda **g: jr.glrm.cross_validate(X, Y, rule_penalties=[0.1, 0.02], **g),
    "ssrl": lambda **g: jr.ssrl.cross_validate(
        X, Y, max_rules=[1], literal_penalties=[1.0, 4.0], **g
    ),
    "exact_list": lambda **g: jr.exact_list.cross_validate(
        X, Y, literal_penalties=[1.0, 4.0], max_rules=1, **g
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOOSERS)
def test_every_learner_measures_whole_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxrules.learning import cross_validation

    drawn: list[Any] = []
    draw = cross_validation.spread_groups

    def spread_and_keep(group: Any, *rest: Any) -> Any:
        drawn.append((group, draw(group, *rest)))
        return drawn[-1][1]

    monkeypatch.setattr(cross_validation, "spread_groups", spread_and_keep)
    names = np.array([f"person {g}" for g in PERSON])
    weights = np.ones(120)
    weights[PERSON == 3] = 0.0
    fit = CHOOSERS[name](groups=names, n_folds=3, sample_weight=weights)
    ((group, fold_of),) = drawn
    assert len(group) == 114
    assert set(fold_of) == {0, 1, 2}
    assert all(len(set(fold_of[group == g])) == 1 for g in group)
    assert "groups" not in dict(fit.model.options)
    again = CHOOSERS[name](groups=names, n_folds=3, sample_weight=weights)
    np.testing.assert_array_equal(
        again.details.cross_validation.risks, fit.details.cross_validation.risks
    )


def test_counts_are_stratified_by_whether_there_are_any() -> None:
    counts = (np.arange(120) % 6 == 0).astype(float) * (PERSON < 6)
    fold_of = folds(training_data(X, counts, jr.losses.poisson), 3, 0, PERSON)
    assert np.bincount(fold_of[counts > 0]).tolist() == [2, 2, 2]


def test_rulefit_and_estimators_take_groups() -> None:
    for one in (
        estimators.RuleFitClassifier(),
        estimators.RuleBoostingClassifier(max_rules=1, penalty="cv"),
    ):
        found = one.fit(X, Y, groups=PERSON).fit_.details.cross_validation
        assert found is not None
        assert "groups" not in one.get_params()
    number = estimators.RuleBoostingRegressor(max_rules=1, penalty="cv")
    assert number.fit(X, X[:, 0], groups=PERSON).fit_.details.cross_validation is not None
    with pytest.raises(ValueError, match=r'groups is for the folds of penalty="cv"'):
        estimators.LIREClassifier().fit(X, Y, groups=PERSON)
    with pytest.raises(ValueError, match="groups is for the folds that choose the penalty"):
        jr.rulefit.fit(X, Y, l1_penalty=0.1, groups=PERSON)


def test_scikit_learn_routes_groups() -> None:
    import sklearn
    from sklearn.model_selection import GroupKFold, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    with sklearn.config_context(enable_metadata_routing=True):
        one = estimators.RuleBoostingClassifier(max_rules=1, penalty="cv")
        model = make_pipeline(StandardScaler(), one.set_fit_request(groups=True))
        cv = GroupKFold(2).set_split_request(groups=True)
        found = cross_validate(model, X, Y, cv=cv, params={"groups": PERSON}, error_score="raise")
        assert len(found["test_score"]) == 2


def test_compare_keeps_groups_in_outer_and_inner_folds() -> None:
    held: list[Any] = []

    def method(X: Any, y: Any, **_: Any) -> Any:
        held.append(X[:, 2])
        return [jr.boosting.fit(X, y, max_rules=m) for m in (1, 2)]

    numbered = np.column_stack([X[:, :2], PERSON])
    found = jr.compare(
        numbered, Y, methods={"one": method}, folds=4, inner_folds=2, groups=PERSON, repeats=2
    )
    for fold_of in found.folds:
        assert all(len(set(fold_of[g == PERSON])) == 1 for g in range(20))
    assert len(held) == 2 * 4 * 3
    for rows in held:
        assert all((rows == g).sum() == 6 for g in set(rows))


def test_stability_draws_whole_groups() -> None:
    seen: list[Any] = []

    def method(X: Any, y: Any) -> Any:
        seen.append(X[:, 2])
        return jr.boosting.fit(X, y, max_rules=1)

    numbered = np.column_stack([X[:, :2], PERSON])
    jr.stability(method, numbered, Y, replicates=3, groups=PERSON)
    for rows in seen[1:]:
        values, counts = np.unique(rows, return_counts=True)
        assert len(values) < 20
        assert (counts % 6 == 0).all()
        assert len(rows) == 120


def test_a_split_keeps_groups_together() -> None:
    data = jr.datasets.load("breast_cancer")
    group = np.arange(len(data)) // 7
    train, test = jr.datasets.train_test_split(data, groups=group, test_size=0.25)
    assert abs(len(test) / len(data) - 0.25) < 0.02
    assert abs((test.y == "benign").mean() - (data.y == "benign").mean()) < 0.02
    rows = {tuple(row): g for row, g in zip(np.asarray(data.X), group, strict=True)}
    of = [{rows[tuple(row)] for row in np.asarray(part.X)} for part in (train, test)]
    assert not of[0] & of[1]


MISSING = np.where(PERSON == 3, np.nan, PERSON)
BAD: tuple[tuple[Any, str], ...] = (
    (PERSON[:-1], "groups has 119 values, but X has 120 rows"),
    (MISSING, "groups has NaN .*drop those rows"),
    (np.minimum(PERSON, 1), "groups has 2 distinct values .*lower"),
)


@pytest.mark.parametrize(("groups", "words"), BAD, ids=["length", "missing", "few"])
def test_bad_groups_are_refused_by_name(groups: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jr.boosting.cross_validate(X, Y, groups=groups, max_rules=1)
    with pytest.raises(ValueError, match=words):
        jr.compare(X, Y, methods=["cart"], groups=groups)
    if "few" not in words and len(np.unique(groups)) > 2:
        with pytest.raises(ValueError, match=words):
            jr.stability("boosting", X, Y, groups=groups)


def test_groups_that_hold_out_a_class_are_refused() -> None:
    with pytest.raises(ValueError, match="groups puts all rows of class True of y into one fold"):
        jr.boosting.cross_validate(X, PERSON == 4, groups=PERSON, n_folds=3, max_rules=1)
    with pytest.raises(ValueError, match="folds puts rows of one of the groups into several"):
        jr.compare(X, Y, methods=["cart"], folds=np.arange(120) % 3, groups=PERSON)
    with pytest.raises(ValueError, match="fit_on_sample cannot draw groups"):
        jr.fit_on_sample(jr.boosting.cross_validate, X, Y, groups=PERSON)
