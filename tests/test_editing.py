"""Editing: rules dropped, weights refitted against scikit-learn, calibration, shorter
words, exports of it all.
"""

import contextlib
import dataclasses
import sqlite3
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression, Ridge

import jaxrules as jr
from jaxrules.rules.constraints import Constraints
from pmml import Document

C = jr.Condition
RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, (160, 3)).astype(float)
SIGNAL = 1.5 * (X[:, 0] > 2) - 2.0 * ((X[:, 1] > 1) & (X[:, 2] <= 3)) + 0.3
LABELS = np.where(RNG.random(160) < expit(SIGNAL), "yes", "no")
THREE = np.array(["a", "b", "c"])[
    np.clip(np.round(SIGNAL + RNG.normal(size=160)), -1, 1).astype(int) + 1
]
WEIGHT = RNG.integers(1, 4, 160).astype(float)
SCHEMA = jr.as_table(X).schema
RULES = [[C.above(0, 2.0)], [C.above(1, 1.0), C.at_most(2, 3.0)], [C.above(2, 0.0)]]


def ensemble(
    link: Any = "logistic", classes: Any = ("no", "yes"), loss: str | None = None, **options: Any
) -> Any:
    built = jr.Conjunctions.build(SCHEMA.with_classes(classes), RULES)
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    weights = np.array([[0.5, -1.0, 0.2], [0.3, 0.1, -0.4], [0.2, 0.6, 0.1]]).T[:, :outputs]
    return jr.RuleEnsemble(
        built, weights, np.zeros(outputs), None, link, tuple(options.items()), loss
    )


def rule_list() -> jr.RuleList:
    built = jr.Conjunctions.build(SCHEMA.with_classes(("no", "yes")), RULES[:2])
    return jr.RuleList(
        built, np.array([1, 0, 1], np.int32), np.array([[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]])
    )


# Rules by place and by words


def test_rules_go_by_place_and_by_words() -> None:
    model = ensemble()
    for names in ([1], ["x1 > 1 & x2 <= 3"], np.array([1])):
        left = jr.without_rules(model, names)
        assert [left.conjunctions.describe(r) for r in range(2)] == ["x0 > 2", "x2 > 0"]
        np.testing.assert_array_equal(left.weights[:, 0], [0.5, 0.2])
    listed = jr.without_rules(rule_list(), ["x1 > 1 AND x2 <= 3"])
    assert listed.labels.tolist() == [1, 1]
    np.testing.assert_array_equal(listed.probabilities, [[0.2, 0.8], [0.4, 0.6]])
    assert len(jr.without_rules(model, [0, 1, 2]).conjunctions) == 0
    for wrong, error, words in (
        ([3], ValueError, "names rule 3; the model has 3"),
        ([-1], ValueError, "names rule -1"),
        (["x0 > 3"], ValueError, "not a rule of the model"),
        ([1.0], TypeError, "by position or text, got float"),
        (1, TypeError, "a sequence of rules"),
        ("x0 > 2", TypeError, "a sequence of rules"),
    ):
        with pytest.raises(error, match=words):
            jr.without_rules(model, wrong)
    with pytest.raises(TypeError, match=r"pass fit\.model"):
        jr.without_rules(jr.Fit(model, 0.0, "min", jr.Status.CONVERGED), [0])


def test_weights_of_some_rules() -> None:
    model = ensemble()
    changed = jr.with_weights(model, {1: 7.0, "x0 > 2": -1.0}, intercept=2.0)
    np.testing.assert_array_equal(changed.weights[:, 0], [-1.0, 7.0, 0.2])
    assert changed.intercept.tolist() == [2.0]
    several = jr.with_weights(ensemble(classes=("a", "b", "c")), {2: [1.0, 2.0, 3.0]})
    assert several.weights[2].tolist() == [1.0, 2.0, 3.0]
    for wrong, words in (
        ({9: 1.0}, "names rule 9"),
        ({0: [1.0, 2.0]}, "one number"),
        ({0: np.nan}, "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            jr.with_weights(model, wrong)


# Refits


def test_the_ridge_is_that_of_the_fit() -> None:
    columns = ensemble().conjunctions.satisfied(jr.as_table(X)).astype(float)
    for options, ridge in (
        ({"learner": "boosting", "l2_penalty": 2.0}, 2.0), ({"learner": "rulefit"}, 1.0),
        ({"learner": "lltboost", "l2_penalty": 0.02}, 0.02 * WEIGHT.sum()),
    ):  # fmt: skip
        peer = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=1000).fit(
            columns, LABELS, WEIGHT
        )
        model = jr.refit(ensemble(**options), X, LABELS, sample_weight=WEIGHT)
        np.testing.assert_allclose(model.weights[:, 0], peer.coef_[0], atol=1e-5)
        np.testing.assert_allclose(model.intercept, peer.intercept_, atol=1e-5)
        assert model.options == tuple(options.items())
        assert model.loss == "logistic"
    peer = Ridge(alpha=0.5).fit(columns, SIGNAL)  # which does not halve the squared error
    model = jr.refit(ensemble("identity", None), X, SIGNAL, l2_penalty=1.0)
    np.testing.assert_allclose(model.weights[:, 0], peer.coef_, rtol=1e-9)


def test_boosted_and_lire_models_are_at_their_refit() -> None:
    for fit in (
        jr.boosting.fit(X, LABELS, max_rules=3),
        jr.boosting.fit(X, LABELS, max_rules=3, intercept=False),
        jr.lire.fit(X, LABELS, rules=ensemble().conjunctions.with_schema(SCHEMA), restarts=0),
    ):
        again = jr.refit(fit.model, X, LABELS)
        np.testing.assert_allclose(again.weights, fit.model.weights, atol=1e-4)
        np.testing.assert_allclose(again.intercept, fit.model.intercept, atol=1e-4)


@pytest.mark.parametrize("link", ["exponential", "softmax", "linear"])
def test_kept_weights_stay_and_the_others_are_best(link: str) -> None:
    """Against SciPy, on the regularised risk as `jaxrules.risk` has it."""
    classes = ("a", "b", "c") if link == "softmax" else ("no", "yes")
    model = ensemble("logistic" if link == "linear" else link, classes)
    y = THREE if link == "softmax" else LABELS
    if link == "linear":
        terms = jr.LinearTerms(
            np.array([2], np.int32), np.array([[0.4]]), np.array([-np.inf]), np.array([3.0])
        )
        model = jr.RuleEnsemble(
            model.conjunctions, model.weights, model.intercept, terms, "logistic"
        )
    found = jr.refit(model, X, y, keep=["x0 > 2"], l2_penalty=0.5)
    np.testing.assert_array_equal(found.weights[0], model.weights[0])
    spread = np.clip(X[:, 2], None, 3.0).std() / 0.4

    def objective(one: jr.RuleEnsemble) -> float:
        squares = float((np.asarray(one.weights)[1:] ** 2).sum())
        if one.linear is not None:
            squares += float((np.asarray(one.linear.coefficients) ** 2).sum()) * spread**2
        return jr.risk(one, X, y) * len(X) + 0.25 * squares

    best = objective(found)
    random = np.random.default_rng(1)
    for _ in range(20):
        moved = jr.with_weights(
            found, found.weights + 1e-3 * random.normal(size=found.weights.shape) * [[0], [1], [1]],
            found.intercept + 1e-3 * random.normal(size=found.intercept.shape),
        )  # fmt: skip
        if found.linear is not None:
            slope = found.linear.coefficients + 1e-3 * random.normal()
            linear = jr.LinearTerms(
                found.linear.feature, slope, found.linear.lower, found.linear.upper
            )
            moved = jr.RuleEnsemble(
                moved.conjunctions, moved.weights, moved.intercept, linear, "logistic"
            )
        assert objective(moved) >= best - 1e-8
    assert best < objective(model)


def test_classes_do_not_take_rules_of_others() -> None:
    model = jr.with_weights(
        ensemble(classes=("a", "b", "c")), [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    )
    again = jr.refit(model, X, THREE)
    np.testing.assert_array_equal(again.weights == 0, np.asarray(model.weights) == 0)


def test_a_list_is_counted_again() -> None:
    model = jr.refit(rule_list(), X, LABELS, sample_weight=WEIGHT)
    position = model.position(jr.as_table(X))
    for at, shares in enumerate(model.probabilities):
        counts = np.array(
            [WEIGHT[(position == at) & (label == LABELS)].sum() for label in ("no", "yes")]
        )
        row = (WEIGHT**2).sum() / WEIGHT.sum()  # of one row, whatever the unit of the weights
        np.testing.assert_allclose(shares, (counts + row) / (counts.sum() + 2 * row))
        assert model.labels[at] == counts.argmax()
    kept = jr.refit(rule_list(), X, LABELS, keep=[0])
    np.testing.assert_array_equal(kept.probabilities[0], rule_list().probabilities[0])
    with pytest.raises(ValueError, match="without loss"):
        jr.refit(rule_list(), X, LABELS, l2_penalty=1.0)


def test_bad_refits_are_refused() -> None:
    with pytest.raises(ValueError, match="y has the classes"):
        jr.refit(ensemble(), X, THREE)
    with pytest.raises(ValueError, match="l2_penalty"):
        jr.refit(ensemble(), X, LABELS, l2_penalty=-1.0)
    for edit in (jr.refit, jr.calibrate):
        for model in (ensemble(), rule_list()):
            with pytest.raises(ValueError, match="X has no rows"):
                edit(model, X[:0], LABELS[:0])
    with pytest.raises(ValueError, match="pass it as loss="):
        jr.refit(ensemble(loss="mine"), X, LABELS)


# Calibration


@pytest.mark.parametrize("link", ["logistic", "exponential"])
def test_calibration_is_platt_scaling(link: Any) -> None:
    sure = jr.with_weights(ensemble(link), 9 * ensemble(link).weights, 3.0)
    model = jr.calibrate(sure, X, LABELS, sample_weight=WEIGHT)
    before, after = (np.asarray(jr.decision_function(one, X)) for one in (sure, model))
    slope, shift = np.polyfit(before, after, 1)
    np.testing.assert_allclose(slope * before + shift, after, atol=1e-9)
    assert slope > 0
    positive = LABELS == "yes"
    n = WEIGHT @ positive, WEIGHT @ ~positive
    target = np.where(positive, (n[0] + 1) / (n[0] + 2), 1 / (n[1] + 2))
    scale = 2 if link == "exponential" else 1

    def loss(at: Any) -> float:
        p = expit(scale * (at[0] * before + at[1]))
        return float(-WEIGHT @ (target * np.log(p) + (1 - target) * np.log1p(-p)))

    assert loss([slope, shift]) <= minimize(loss, [0.1, 0.0], method="Nelder-Mead").fun + 1e-6
    assert jr.predict_proba(model, X)[:, 1] @ WEIGHT == pytest.approx(
        target @ WEIGHT, rel=1e-6
    )  # right in the large


def test_separable_rows_and_constant_scores_stay_finite() -> None:
    one = jr.without_rules(ensemble(), [1, 2])
    y = np.where(X[:, 0] > 2, "yes", "no")
    p = jr.predict_proba(jr.calibrate(one, X, y), X)[:, 1]
    n = np.sum(y == "yes"), np.sum(y == "no")
    np.testing.assert_allclose(np.unique(p), [1 / (n[1] + 2), (n[0] + 1) / (n[0] + 2)], rtol=1e-5)
    far = jr.calibrate(jr.with_weights(one, np.full((1, 1), 1e300), 0.0), X, y)
    np.testing.assert_allclose(jr.predict_proba(far, X)[:, 1], p, rtol=1e-5)
    constant = jr.calibrate(jr.without_rules(ensemble(), [0, 1, 2]), X, LABELS)
    assert float(constant.intercept[0]) == pytest.approx(logit(np.mean(LABELS == "yes")), abs=0.05)
    with pytest.raises(ValueError, match="y has no row of class 'yes'"):
        jr.calibrate(ensemble(), X, np.full(160, "no"))
    with pytest.raises(ValueError, match="X has too few rows.*, 9; calibrating"):
        jr.calibrate(ensemble(), X[:9], LABELS[:9])
    with pytest.raises(ValueError, match="class .yes. do not have higher scores"):
        jr.calibrate(one, X, np.where(X[:, 0] > 2, "no", "yes"))


@pytest.mark.parametrize("link", ["logistic", "softmax"])
def test_calibration_of_several_classes(link: Any) -> None:
    fitted = jr.refit(ensemble(link, ("a", "b", "c")), X, THREE)
    sure = jr.with_weights(fitted, 6 * np.asarray(fitted.weights), 6 * np.asarray(fitted.intercept))
    model = jr.calibrate(sure, X, THREE)
    model.validate()

    def log_loss(one: jr.RuleEnsemble) -> float:
        codes = np.searchsorted(["a", "b", "c"], THREE)
        return float(-np.log(jr.predict_proba(one, X)[np.arange(160), codes]).mean())

    assert log_loss(model) < log_loss(sure)
    assert log_loss(model) == pytest.approx(log_loss(fitted), abs=0.02)
    ratios = np.asarray(model.weights) / np.asarray(sure.weights)
    np.testing.assert_allclose(ratios, ratios[:1].repeat(3, axis=0))
    assert (np.ptp(ratios[0]) < 1e-12) == (link == "softmax")


def test_calibration_of_a_list() -> None:
    model = jr.calibrate(rule_list(), X[:10], LABELS[:10])
    position = rule_list().position(jr.as_table(X[:10]))
    for at, shares in enumerate(model.probabilities):
        counts = np.array(
            [np.sum((position == at) & (LABELS[:10] == label)) for label in ("no", "yes")]
        )
        np.testing.assert_allclose(
            shares, (counts + 2 * rule_list().probabilities[at]) / (counts.sum() + 2)
        )
    np.testing.assert_array_equal(model.labels, rule_list().labels)
    with pytest.raises(ValueError, match="predicts numbers"):
        jr.calibrate(ensemble("identity", None), X, SIGNAL)


def test_edited_models_are_saved_and_exported(tmp_path: Any) -> None:
    edited = [
        jr.calibrate(jr.refit(jr.without_rules(m, [0]), X, LABELS), X, LABELS)
        for m in (ensemble(), rule_list())
    ]
    for model in edited:
        jr.save(model, tmp_path / "model.json")
        expected = jr.predict_proba(model, X)[:, 1]
        np.testing.assert_array_equal(
            jr.predict_proba(jr.load(tmp_path / "model.json"), X)[:, 1], expected
        )
        space: dict[str, Any] = {}
        exec(jr.to_python(model), space)
        rows = [dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in X.tolist()]
        np.testing.assert_allclose(
            [space["probabilities"](row)["yes"] for row in rows], expected, rtol=1e-12
        )
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            base.execute("CREATE TABLE t (x0 DOUBLE, x1 DOUBLE, x2 DOUBLE)")
            base.executemany("INSERT INTO t VALUES (?, ?, ?)", X.tolist())
            query = f"SELECT {jr.to_sql(model, what='probability')} FROM t"
            np.testing.assert_allclose(
                [value for (value,) in base.execute(query)], expected, rtol=1e-12
            )


# Shorter words


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_simplified_models_say_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z = np.round(rng.normal(size=(30, 3)), 2)
    Z[rng.random(30) < 0.2, 0] = np.nan
    table = jr.as_table(Z, missing="own_category")
    makers = (C.above, C.at_most, C.at_least, C.below)

    def rule() -> list[jr.Condition]:
        return [
            makers[rng.integers(4)](f, float(rng.normal()), missing=bool(rng.integers(2)))
            for f in rng.integers(0, 3, rng.integers(1, 5)).tolist()
        ]

    rules = jr.Conjunctions.build(
        table.schema.with_classes(("no", "yes")), [rule() for _ in range(6)]
    )
    model = jr.RuleEnsemble(rules, rng.normal(size=(6, 1)), np.zeros(1), link="logistic")
    labels = rng.integers(0, 2, 7).astype(np.int32)
    ordered = jr.RuleList(rules, labels, np.column_stack([1 - labels * 0.8, labels * 0.8]))
    for one in (model, ordered):
        short = jr.simplify(one, table)
        short.validate()
        assert jr.complexity(short) <= jr.complexity(one)
        np.testing.assert_allclose(
            jr.predict_proba(short, table), jr.predict_proba(one, table), rtol=1e-9
        )
        assert str(jr.simplify(short, table)) == str(short)
    assert len(jr.simplify(jr.with_weights(model, np.zeros(6)), table).conjunctions) == 0


def test_idle_conditions_and_long_thresholds_go() -> None:
    Z = np.array([[0.1, 1.0], [0.2, 2.0], [0.30000001, 3.0], [0.4, 4.0]])
    given_rules = [
        [C.above(0, 0.15000000000000002), C.above(1, -5.0)],
        [C.above(0, 0.1423), C.at_most(1, 9.0)],
    ]
    built = jr.Conjunctions.build(jr.as_table(Z).schema.with_classes((0, 1)), given_rules)
    model = jr.RuleEnsemble(built, np.ones((2, 1)), np.zeros(1), link="logistic")
    short = jr.simplify(model, Z)
    assert [short.conjunctions.describe(r) for r in range(len(short.conjunctions))] == [
        "x0 > 0.15",
        "x0 > 0.14",
    ]
    with pytest.raises(ValueError, match="X has no rows"):
        jr.simplify(model, Z[:0])


# Operating points


@pytest.mark.full
@pytest.mark.parametrize("link", ["logistic", "exponential"])
def test_thresholds_stay_with_the_model(link: Any, tmp_path: Any) -> None:
    model = jr.refit(ensemble(link), X, LABELS)
    point = jr.operating_point(model, X, LABELS, max_alarms=0.3)
    assert 0 < point.alarms <= 0.3 < point.alarms + point.tied
    careful = jr.with_threshold(model, point)
    expected = np.where(jr.decision_function(model, X) > point.threshold, "yes", "no")
    assert np.mean(expected == "yes") == pytest.approx(point.alarms)
    np.testing.assert_array_equal(jr.predict(careful, X), expected)
    np.testing.assert_array_equal(jr.predict_proba(careful, X), jr.predict_proba(model, X))
    assert [one.prediction for one in jr.explain(careful, X)] == expected.tolist()
    codes = jax.jit(jr.predict)(careful, jnp.asarray(X))
    np.testing.assert_array_equal(codes, expected == "yes")
    margin = point.threshold * (2 if link == "exponential" else 1)
    assert careful.cut == pytest.approx(("yes", expit(margin), point.threshold))
    for said in (str(careful), careful._repr_html_(), *map(str, jr.explain(careful, X[:3]))):
        assert f"yes is predicted above p = {expit(margin):.5f}, a score of" in said
    assert all(one.threshold is None for one in jr.explain(model, X[:3]))
    jr.save(careful, tmp_path / "model.json")
    np.testing.assert_array_equal(jr.predict(jr.load(tmp_path / "model.json"), X), expected)
    names = careful.schema.names
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    module: dict[str, Any] = {}
    exec(jr.to_python(careful), module)
    assert [module["predict"](row) for row in rows] == expected.tolist()
    document = Document(jr.to_pmml(careful))
    assert [document.predict(row)[0] for row in rows] == expected.tolist()
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE t ({', '.join(f'{name} REAL' for name in names)})")
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", X.tolist())
        found = database.execute(f"SELECT {jr.to_sql(careful)} FROM t").fetchall()
    assert [label for (label,) in found] == expected.tolist()
    again = jr.calibrate(careful, X, LABELS)
    np.testing.assert_array_equal(jr.predict(again, X), expected)  # the threshold moves along
    for changed in (jr.refit, jr.scorecard, jr.finetune):
        with pytest.warns(UserWarning, match="choose it again"):
            changed(careful, X, LABELS)


@pytest.mark.full
def test_a_threshold_keeps_a_list_monotone() -> None:
    """Rules that rise along the column may have the last class only."""
    rng = np.random.default_rng(0)
    data = rng.uniform(size=(400, 2))
    y = rng.uniform(size=400) < 0.2 + 0.6 * data[:, 0]
    model = jr.ssrl.fit(data, y, monotone={0: 1}, max_rules=3, literal_penalty=0.5).model
    chances = np.sort(model.probabilities[:, 1])
    kept = refused = 0
    for threshold in [-1.0, *chances.tolist()]:
        labels = (model.probabilities[:-1, 1] > threshold).astype(np.int32)
        allowed = Constraints.of(model.schema, monotone={0: 1}).allows(model.conjunctions, 2)
        if not allowed[np.arange(len(labels)), labels].all():
            with pytest.raises(ValueError, match="under monotone, not .* choose another threshold"):
                jr.with_threshold(model, threshold)
            refused += 1
            continue
        careful, kept = jr.with_threshold(model, threshold), kept + 1
        grid = np.sort(rng.uniform(size=50))
        for other in rng.uniform(size=20).tolist():
            says = jr.predict(careful, np.stack([grid, np.full(50, other)], axis=1))
            assert (np.diff(says.astype(int)) >= 0).all()
    assert kept
    assert refused


def test_thresholds_of_lists_and_bad_ones() -> None:
    model = rule_list()
    point = jr.operating_point(model, X, max_alarms=0.5)
    careful = jr.with_threshold(model, point)
    positive = jr.predict_proba(model, X)[:, 1] > point.threshold
    np.testing.assert_array_equal(jr.predict(careful, X) == "yes", positive)
    assert (
        jr.predict(jr.with_threshold(model, jr.users.inspection.OperatingPoint(-np.inf, 1.0)), X)
        == "yes"
    ).all()
    everywhere = jr.with_threshold(ensemble(), jr.operating_point(ensemble(), X, max_alarms=1.0))
    assert (jr.predict(everywhere, X) == "yes").all()
    with pytest.raises(ValueError, match="threshold must be finite"):
        jr.with_threshold(ensemble(), np.nan)
    with pytest.raises(TypeError, match="threshold must be a number"):
        jr.with_threshold(ensemble(), "high")
    for other in (ensemble("identity", None), ensemble("softmax", ("a", "b", "c"))):
        with pytest.raises(ValueError, match="two classes"):
            jr.with_threshold(other, 0.5)
        with pytest.raises(ValueError, match="threshold is for models of two classes"):
            dataclasses.replace(other, threshold=0.5)
    with pytest.raises(TypeError, match="model"):
        jr.with_threshold(X, 0.5)


def test_a_label_stands_with_its_threshold() -> None:
    model = jr.with_threshold(ensemble(), 9.0)
    (why,) = jr.explain(model, X[:1])
    said = "yes is predicted above p = 0.99988, a score of 9"
    assert str(why).splitlines()[0] == f"prediction: no   (no: 0.574, yes: 0.426; {said})"
    assert f"<p>{str(why).splitlines()[0]}</p>" in why._repr_html_()
    assert model.heading.endswith(f"; {said}")
    module: dict[str, Any] = {}
    exec(jr.to_python(model), module)
    assert module["explain"](dict(zip(model.schema.names, X[0], strict=True)))["threshold"] == said
    for threshold, share in ((40.0, "1.000"), (20.0, ">0.999"), (-20.0, "2.0612e-09")):
        assert f"above p = {share}, a score of {threshold:g}" in str(
            jr.with_threshold(model, threshold)
        )


def test_pmml_refuses_a_threshold_that_no_probability_exceeds() -> None:
    with pytest.raises(ValueError, match="threshold 40 of the model is too high for PMML"):
        jr.to_pmml(jr.with_threshold(ensemble(), 40.0))


def test_a_list_keeps_its_threshold() -> None:
    model, said = jr.with_threshold(rule_list(), 0.7), "yes is predicted above p = 0.7"
    assert str(model).splitlines()[-2:] == ["ELSE target = no (p = 0.400)", f"({said})"]
    assert f"; {said}</p>" in model._repr_html_()
    assert said in jr.to_latex(model)
    assert all(f"; {said})" in str(why) for why in jr.explain(model, X))
    assert (
        jr.models.persistence.from_json(jr.models.persistence.to_json(model)).cut
        == model.cut
        == ("yes", 0.7, None)
    )
    assert jr.without_rules(model, [0]).threshold == jr.simplify(model, X).threshold == 0.7
    held_out = jr.calibrate(model, X, LABELS)
    np.testing.assert_array_equal(held_out.labels, model.labels)
    follows = ((held_out.probabilities[:, 1] > 0.7) == model.labels).all()
    assert held_out.threshold == (0.7 if follows else None)
    with pytest.warns(UserWarning, match=r"threshold 0\.7 .* old frequencies; choose it again"):
        assert jr.refit(model, X, LABELS).threshold is None
    with pytest.raises(ValueError, match="labels must be those that threshold gives"):
        dataclasses.replace(model, threshold=0.1)
