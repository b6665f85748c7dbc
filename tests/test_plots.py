"""Plots show the right numbers, on the axes that they are given."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib import cbook
from matplotlib.text import Text

import jaxrules as jr
from jaxrules import paths, plots
from jaxrules.paths.pareto import Box

C = jr.Condition


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def two_columns() -> tuple[jr.RuleEnsemble, np.ndarray]:
    """``1 + 2 [a > 0] - 3 [a + b >= 1]``, log-odds, and rows."""
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")), classes=("no", "yes"))
    slant = jr.Direction((0, 1), (1.0, 1.0))
    rules = jr.Conjunctions.build(
        schema, [[C.above(0, 0.0)], [C.at_least(slant, 1.0)], [C.above(1, 9.0)]]
    )
    model = jr.RuleEnsemble(
        rules, np.array([[2.0], [-3.0], [0.0]]), np.array([1.0]), link="logistic"
    )
    return model, np.random.default_rng(0).normal(size=(40, 2))


def texts(ax: Any) -> list[str]:
    return [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]


def widths(ax: Any) -> list[float]:
    return [patch.get_width() for patch in sorted(ax.patches, key=lambda patch: patch.get_y())]


def test_every_picture_takes_axes_and_returns_them(two_columns: Any) -> None:
    model, X = two_columns
    fit = jr.Fit(
        model,
        1.0,
        "min",
        jr.Status.TIME_LIMIT,
        0.5,
        (jr.Step(2.0, 1, 0.1), jr.Step(1.0, 2, 0.2)),
        0.3,
    )
    y = np.arange(40.0)
    path = paths.fit(X, y, steps=2)
    front = paths.pareto(X, y, max_steps=2)
    pictures: list[Callable[[Any], Any]] = [
        lambda ax: plots.risk_complexity({"a": [(1, 2.0)]}, ax),
        lambda ax: plots.search_progress(fit, ax),
        lambda ax: plots.rule_importance(model, X, ax),
        lambda ax: plots.waterfall(jr.explain(model, X)[0], ax),
        lambda ax: plots.decision_regions(model, X, ax=ax),
        lambda ax: plots.path_costs({"optimal": path.model}, ax),
        lambda ax: plots.price_of_interpretability(front, ax),
    ]
    for picture in pictures:
        _, ax = plt.subplots()
        assert picture(ax) is ax
        assert ax.has_data()
        assert picture(None) is not ax


def test_risk_complexity_marks_what_no_other_beats() -> None:
    ax = plots.risk_complexity(
        {"a": [(4, 1.0), (1, 3.0), (2, 3.0)], "b": [(2, 2.0, 0.1), (3, 2.5, 0.1), (6, 1.0, 0.1)]}
    )
    labels = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(labels["Pareto front"].get_xydata(), [(1, 3), (2, 2), (4, 1)])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Pareto front", "a", "b"]
    for wrong in ({}, {"a": []}, {"a": [1.0, 2.0]}, {"a": [(1, 2, 3, 4)]}):
        with pytest.raises(ValueError, match="methods"):
            plots.risk_complexity(wrong)


def test_search_progress_ends_at_the_bound(two_columns: Any) -> None:
    fit = jr.Fit(
        two_columns[0],
        1.0,
        "min",
        jr.Status.OPTIMAL,
        0.5,
        (jr.Step(2.0, 1, 0.1), jr.Step(1.0, 2, 0.2)),
        0.3,
    )
    ax = plots.search_progress(fit)
    incumbent, _, bound = ax.lines
    np.testing.assert_array_equal(incumbent.get_xydata(), [(0.1, 2.0), (0.2, 1.0), (0.3, 1.0)])
    assert set(bound.get_ydata()) == {0.5}
    assert (
        len(
            plots.search_progress(
                jr.Fit(None, 1.0, "min", jr.Status.CONVERGED, None, fit.history)
            ).lines
        )
        == 2
    )
    steps = (jr.Step(2.0, 1, 0.1), jr.Step(1.0, 2, 0.2, 0.3), jr.Step(1.0, 2, 0.25, 0.4))
    ax = plots.search_progress(
        jr.Fit(two_columns[0], 1.0, "min", jr.Status.OPTIMAL, 0.5, steps, 0.3)
    )
    np.testing.assert_array_equal(
        ax.lines[2].get_xydata(), [(0.1, np.nan), (0.2, 0.3), (0.25, 0.4), (0.3, 0.5)]
    )
    with pytest.raises(ValueError, match="no history"):
        plots.search_progress(jr.Fit(None, 1.0, "min", jr.Status.CONVERGED))


def test_support_path_counts_rules(two_columns: Any) -> None:
    model, X = two_columns
    models = [
        jr.RuleEnsemble(
            model.conjunctions,
            model.weights * keep,
            model.intercept,
            link=model.link,
            options=(("l1_penalty", p),),
        )
        for keep, p in (([[0.0], [0.0], [0.0]], 1.0), ([[1.0], [1.0], [1.0]], 0.1))
    ]
    path = [jr.Fit(model, 0.0, "min", jr.Status.CONVERGED) for model in models]
    ax = plots.support_path(path, X, penalty="l1_penalty")
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [(1.0, 0), (0.1, 2)])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0, jr.local_support(models[1], X)])
    with pytest.raises(ValueError, match="they have l1_penalty"):
        plots.support_path(path)


def test_importance_is_the_spread_of_what_a_rule_adds(two_columns: Any) -> None:
    model, X = two_columns
    ranked = jr.importance(model, X)
    spread = [2 * (X[:, 0] > 0).std(), 3 * (X.sum(axis=1) >= 1).std()]
    np.testing.assert_allclose([one.value for one in ranked], sorted(spread, reverse=True))
    assert {one.text: one.weight for one in ranked} == {"a > 0": 2.0, "a + b >= 1": -3.0}
    ax = plots.rule_importance(model, X, most=1)
    assert texts(ax) == [ranked[0].text]
    np.testing.assert_allclose(widths(ax), [ranked[0].value])


def test_importance_of_terms_and_outputs() -> None:
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")), classes=("x", "y", "z"))
    linear = jr.LinearTerms(
        np.array([1], np.int32), np.array([[1.0, -2.0, 0.0]]), np.array([0.0]), np.array([1.0])
    )
    rules = jr.Conjunctions.build(schema, [[], [C.above(0, 0.0)]])
    model = jr.RuleEnsemble(rules, np.ones((2, 3)), np.zeros(3), linear, "softmax")
    X = np.array([[1.0, -5.0], [1.0, 5.0], [-1.0, 0.0], [-1.0, 1.0]])
    assert [(one.text, one.value, one.weight) for one in jr.importance(model, X)] == [
        ("a > 0", 0.5, None),
        ("times b, clipped to [0, 1]", 0.5, None),
    ]  # fmt: skip  the rule that always holds makes no difference
    ax = plots.rule_importance(model, X)  # the importance is parted by the sizes of the weights
    assert [one.get_text() for one in ax.get_legend().get_texts()] == ["x", "y", "z"]
    parts = np.reshape([bar.get_width() for bar in ax.patches], (3, 2))
    np.testing.assert_allclose(parts.sum(axis=0), [0.5, 0.5])
    np.testing.assert_allclose(parts[:, 1], [0.5 / 3, 1.0 / 3, 0.0])


def test_importance_of_a_list_is_what_it_decides(rule_list: jr.RuleList, table: jr.Table) -> None:
    shares = {one.text: one.value for one in jr.importance(rule_list, table)}
    assert sum(shares.values()) == 1.0
    position = rule_list.position(table)
    assert shares["otherwise"] == np.mean(position == 3)
    ax = plots.rule_importance(rule_list, table)
    assert ax.get_xlabel() == "share of rows decided"
    names = [one.get_text() for one in ax.get_legend().get_texts()]
    assert set(names) <= set(map(str, rule_list.schema.classes))
    for wrong in (jr.Fit(rule_list, 0.0, "min", jr.Status.CONVERGED), "model"):
        with pytest.raises(TypeError, match="must be a rule ensemble or list"):
            jr.importance(wrong, table)


def test_a_waterfall_adds_up(two_columns: Any) -> None:
    model, _ = two_columns
    (told,) = jr.explain(model, [[3.0, 3.0]])
    ax = plots.waterfall(told)
    assert texts(ax) == ["intercept", "a + b >= 1", "a > 0", "score"]
    bars = sorted(ax.patches, key=lambda bar: bar.get_y())
    assert widths(ax) == [1.0, -3.0, 2.0, 0.0]
    assert [bar.get_x() for bar in bars] == [0.0, 1.0, -2.0, 0.0]
    assert texts(plots.waterfall(told, most=1)) == ["intercept", "a + b >= 1", "1 other", "score"]
    assert ax.get_title(loc="left") == "prediction: no"
    (told,) = jr.explain(jr.with_threshold(model, -1.5), [[3.0, 3.0]])
    ax = plots.waterfall(told)
    said = "yes is predicted above p = 0.18243, a score of -1.5"
    assert ax.get_title(loc="left") == f"prediction: yes\n{said}"
    assert -1.5 in [line.get_xdata()[0] for line in ax.lines]


def test_a_waterfall_needs_scores(
    rule_list: jr.RuleList, table: jr.Table, two_columns: Any
) -> None:
    with pytest.raises(ValueError, match="without scores"):
        plots.waterfall(jr.explain(rule_list, table)[0])
    with pytest.raises(ValueError, match="output must be at most 0"):
        plots.waterfall(jr.explain(two_columns[0], [[0.0, 0.0]])[0], output=1)
    with pytest.raises(TypeError, match="explanation must be"):
        plots.waterfall(jr.explain(rule_list, table))


def test_decision_regions_are_predictions(two_columns: Any) -> None:
    model, X = two_columns
    ax = plots.decision_regions(model, X, jr.predict(model, X), features=["b", "a"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("b", "a")
    (mesh,) = (drawn for drawn in ax.collections if hasattr(drawn, "get_coordinates"))
    codes, corners = np.asarray(mesh.get_array()), np.asarray(mesh.get_coordinates())
    b, a = (corners[:-1, :-1] + corners[1:, 1:]).transpose(2, 0, 1) / 2
    expected = jr.predict(model, np.stack([a.ravel(), b.ravel()], axis=1)) == "yes"
    assert (codes.ravel() == expected).mean() > 0.99  # the centres of cells, up to rounding
    points = sum(len(drawn.get_offsets()) for drawn in ax.collections if drawn is not mesh)
    assert points == len(X)
    for wrong in (["a"], ["a", "a"], ["a", "c"]):
        with pytest.raises(ValueError, match="features must be two of the numeric columns"):
            plots.decision_regions(model, X, features=wrong)
    with pytest.raises(TypeError, match="must be a jaxrules model"):
        plots.decision_regions("model", X)


def test_decision_regions_of_numbers_with_other_columns(table: jr.Table) -> None:
    """Missing values and a category, held at the most frequent one."""
    schema = table.schema.with_classes(None)
    rules = jr.Conjunctions.build(schema, [[C.one_of(1, [1])], [C.above(0, 30.0)]])
    model = jr.RuleEnsemble(rules, np.array([[1.0], [10.0]]), np.zeros(1))
    few = table[[0, 1, 2, 3, 7]]
    ax = plots.decision_regions(model, few, np.arange(5.0))
    values = np.asarray(ax.collections[0].get_array())
    assert set(np.unique(values)) == {0.0, 10.0}  # smith, not cook
    assert len(ax.figure.axes) == 2  # the scale


def test_coordinate_paths() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    optimal, greedy = paths.fit(X, y, steps=3).model, paths.greedy(X, y, steps=3)
    ax = plots.path_costs({"optimal": optimal, "greedy": greedy})
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), optimal.costs)
    front = paths.pareto(X, y, max_steps=3)
    shown = plots.price_of_interpretability(front)
    points = np.concatenate([drawn.get_offsets() for drawn in shown.collections])
    np.testing.assert_allclose(np.sort(np.asarray(points)[:, 0]), np.sort(front.interpretability))
    boxed = dataclasses.replace(front, boxes=(Box((1.0, 3.0), (2.0, 5.0)),))
    (box,) = plots.price_of_interpretability(boxed).patches
    assert box.get_bbox().extents.tolist() == [1.0, 2.0, 3.0, 5.0]
    with pytest.raises(ValueError, match="empty"):
        plots.path_costs({})


def test_columns_that_lower_the_score_are_orange() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    C = jr.Condition
    rules = jr.Conjunctions.build(jr.as_table(X).schema, [[C.above(0, 0.5)], [C.above(1, 0.5)]])
    model = jr.RuleEnsemble(rules, np.array([[2.0], [-1.0]]), np.zeros(1))
    bars = plots.local_importance(model, X, X[3:]).patches
    assert [bar.get_width() for bar in bars] == [1.0, -0.5]
    colours = [matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in bars]
    assert colours == [plots.BLUE, plots.ORANGE]


# Quality and effects


def labelled(X: np.ndarray, model: jr.RuleEnsemble) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=len(X))
    return np.where(jr.decision_function(model, X) + noise > 0, "yes", "no")


def test_the_curves_are_scikit_learns(two_columns: Any) -> None:
    from sklearn.metrics import precision_score, recall_score, roc_auc_score, roc_curve

    model, X = two_columns
    y = labelled(X, model)
    scores = jr.decision_function(model, X)
    ax = plots.roc(model, X, y)
    drawn = {tuple(point) for point in np.round(ax.lines[1].get_xydata(), 5).tolist()}
    false, true, _ = roc_curve(y == "yes", scores, drop_intermediate=False)
    assert drawn == {tuple(point) for point in np.stack([false, true], 1).round(5).tolist()}
    (legend,) = ax.get_legend().get_texts()
    assert legend.get_text().startswith(f"yes: area {roc_auc_score(y == 'yes', scores):.3f} (")
    said = jr.predict(model, X)
    recall, wrong = recall_score(y, said, pos_label="yes"), (said[y == "no"] == "yes").mean()
    np.testing.assert_allclose(ax.lines[2].get_xydata(), [(wrong, recall)])
    ax = plots.precision_recall(model, X, y)
    precision = precision_score(y, said, pos_label="yes")
    np.testing.assert_allclose(ax.lines[2].get_xydata(), [(recall, precision)])
    assert ax.lines[1].get_ydata()[0] == (y == "yes").mean()
    for draw in (plots.roc, plots.precision_recall):
        with pytest.raises(ValueError, match="one class only"):
            draw(model, X, np.full(40, "yes"))


def test_calibration_has_all_rows(two_columns: Any) -> None:
    model, X = two_columns
    y, shares = labelled(X, model), jr.predict_proba(model, X)[:, 1]
    points = plots.calibration(model, X, y).lines[1].get_xydata()
    for share, observed in points:  # few scores: each is a bin
        inside = np.isclose(shares, share)
        assert observed == pytest.approx((y[inside] == "yes").mean())
    assert len(points) == len(np.unique(shares))
    numbers = jr.boosting.fit(X, X[:, 0], max_rules=2).model
    ax = plots.calibration(numbers, X, X[:, 0])
    assert ax.get_xlabel() == "mean prediction of target"
    with pytest.raises(ValueError, match="predicts numbers"):
        plots.roc(numbers, X, X[:, 0])


def test_the_effect_of_a_column_is_a_mean(two_columns: Any) -> None:
    model, X = two_columns
    ax = plots.effect(model, X, "a")
    assert ax.get_xlabel() == "a"
    line = dict(ax.lines[0].get_xydata().tolist())
    assert {0.0, float(np.nextafter(0.0, 1.0))} <= set(line)  # both sides of the threshold
    for value in list(line)[::9]:
        changed = X.copy()
        changed[:, 0] = value
        assert line[value] == pytest.approx(jr.predict_proba(model, changed)[:, 1].mean())
    for wrong in ("c", 0, None):
        with pytest.raises(ValueError, match="column must be one of the columns"):
            plots.effect(model, X, wrong)


def test_effects_of_categories_and_several_classes() -> None:
    rng = np.random.default_rng(0)
    months = np.where(rng.random(90) < 0.2, -7.0, rng.integers(0, 20, 90))
    columns = {
        "months": months,  # -7 is a special value
        "size": np.where(rng.random(90) < 0.1, np.nan, rng.normal(size=90)),
        "job": rng.choice(["cook", "vet"], 90),
        "member": rng.random(90) < 0.5,
    }
    options: Any = {"missing": "own_category", "special_values": {"months": [-7]}}
    table = jr.as_table(columns, **options)
    labels = np.where(months < 5, "x", np.where(columns["job"] == "vet", "y", "z"))
    model = jr.boosting.fit(table, labels, max_rules=3).model
    for feature in table.schema.sources:
        ax = plots.effect(model, table, feature.name)
        assert [one.get_text() for one in ax.get_legend().get_texts()] == ["x", "y", "z"]
        total = sum(np.asarray(line.get_ydata(), float) for line in ax.lines)
        np.testing.assert_allclose(total, 1.0)
        known = feature.categories or feature.levels
        if known:
            assert [one.get_text() for one in ax.get_xticklabels()] == list(map(str, known))


def test_overlaps_are_those_of_the_report(two_columns: Any) -> None:
    model, X = two_columns
    ax = plots.overlap(model, X)
    np.testing.assert_array_equal(ax.images[0].get_array(), jr.rule_report(model, X).overlap)
    assert texts(ax) == ["a > 0  (1)", "a + b >= 1  (2)"]
    none = jr.without_rules(model, [0, 1, 2])
    with pytest.raises(ValueError, match="no rule in use"):
        plots.overlap(none, X)


def test_figures_grow_with_their_rules_and_no_label_is_cut() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    names = [f"a long name of column number {k}" for k in range(12)]
    schema = jr.as_table(X, feature_names=names).schema.with_classes(("no", "yes"))
    rules = jr.Conjunctions.build(
        schema, [[C.above(k % 12, k / 60), C.at_most((k + 1) % 12, 1.0)] for k in range(60)]
    )
    model = jr.RuleEnsemble(rules, rng.normal(size=(60, 1)), np.zeros(1), link="logistic")
    ax = plots.rule_importance(model, jr.as_table(X, feature_names=names), most=60)
    figure = ax.figure
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == 60
    assert min(box.x0 for box in boxes) >= 0
    ordered = sorted(boxes, key=lambda box: box.y0)
    assert all(a.y1 <= b.y0 for a, b in itertools.pairwise(ordered))
    for label in ax.get_yticklabels():  # lines end between conditions
        for line in label.get_text().split("\n"):
            assert line.removeprefix("& ").count("number") == 1
    small, own = plt.subplots(figsize=(3, 2))
    plots.rule_importance(model, jr.as_table(X, feature_names=names), own)
    assert small.get_size_inches().tolist() == [3.0, 2.0]  # the user's figure stays


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    columns = (jr.Feature("income_in_$"), jr.Feature("debt ($)"))
    schema = jr.Schema(columns, classes=("_none", "some $", "$more$"))
    rules = jr.Conjunctions.build(schema, [[C.above(0, 0.0), C.at_most(1, 0.5)]])
    model = jr.RuleEnsemble(rules, np.array([[1.0, -1.0, 0.5]]), np.zeros(3), link="softmax")
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.array(schema.classes)[np.arange(40) % 3]
    for k, ax in enumerate(
        [
            plots.rule_importance(model, X),
            plots.waterfall(jr.explain(model, X[:1])[0]),
            plots.overlap(model, X),
            plots.roc(model, X, y),
            plots.calibration(model, X, y),
            plots.effect(model, X, "debt ($)"),
            plots.decision_regions(model, X, y),
        ]
    ):
        ax.figure.savefig(tmp_path / f"{k}.svg", metadata={"Date": None})
        shown = [text for text in ax.figure.findobj(Text) if "$" in text.get_text()]
        # matplotlib's own check: none is read as mathematics.
        assert not any(cbook.is_math_text(text.get_text()) for text in shown)
        if legend := ax.get_legend():
            named = [text.get_text() for text in legend.get_texts()]
            for label in ("_none", r"some \$", r"\$more\$"):
                assert any(label in one for one in named)


def test_labels_of_a_path_are_not_cut() -> None:
    names = [f"a name of column {k} that no figure has room for beside its axes" for k in range(4)]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=names)
    y = X.iloc[:, 0] * X.iloc[:, 1] + X.iloc[:, 2] > 0
    ax = plots.coefficient_path(jr.rulefit.path(X, y))
    ax.figure.canvas.draw()
    drawn, figure = ax.figure.canvas.get_renderer(), ax.figure.bbox
    for label in ax.texts:
        box = label.get_window_extent(drawn)
        assert figure.x0 <= box.x0 < box.x1 <= figure.x1
    assert ax.bbox.width > 0.3 * figure.width


def test_a_waterfall_of_several_classes_is_of_the_predicted_one() -> None:
    schema = jr.Schema((jr.Feature("a"),), classes=("x", "y", "z"))
    rules = jr.Conjunctions.build(schema, [[C.above(0, 0.0)]])
    model = jr.RuleEnsemble(rules, np.array([[1.0, 3.0, -1.0]]), np.zeros(3), link="softmax")
    (told,) = jr.explain(model, [[1.0]])
    ax = plots.waterfall(told)
    assert ax.get_xlabel() == "score of y"
    assert widths(ax)[-1] == 3.0
    assert widths(plots.waterfall(told, output=2))[-1] == -1.0


def test_a_list_flows() -> None:
    schema = jr.Schema((jr.Feature("a"),), classes=("no", "yes"))
    rules = jr.Conjunctions.build(schema, [[C.above(0, 7.0)], [C.above(0, 4.0)]])
    model = jr.RuleList(rules, np.array([1, 0, 1], np.int32), np.full((3, 2), 0.5))
    X, y = np.arange(10.0)[:, None], np.array(["yes"] * 5 + ["no"] * 4 + ["yes"])
    ax = plots.list_flow(model, X, y)
    assert texts(ax) == ["a > 7", "a > 4", "otherwise"]
    says = [text.get_text() for text in ax.texts]
    assert says == ["yes: 2 rows, 50% right", "no: 3 rows, 100% right", "yes: 5 rows, 100% right"]
    bars = sorted(
        (patch.get_y() + 0.25, patch.get_x(), patch.get_width())
        for patch in ax.patches
        if patch.get_width()
    )
    expected = [
        (0, 0, 8), (0, 8, 1), (0, 9, 1), (0.5, 0, 8), (1, 0, 5), (1, 5, 3), (1.5, 0, 5), (2, 0, 5),
    ]  # fmt: skip
    assert bars == expected
    assert plots.list_flow(model, X).texts[0].get_text() == "yes: 2 rows"
    for wrong, error, message in [
        ((X, X), TypeError, "model must be RuleList"),
        ((model, X[:0]), ValueError, "X has no rows"),
        ((model, X, ["maybe"] * 10), ValueError, "does not know"),
    ]:
        with pytest.raises(error, match=message):
            plots.list_flow(*wrong)


def test_plots_follow_a_dark_style(two_columns: Any) -> None:
    model, X = two_columns
    (row,) = jr.explain(model, X[:1])
    colours = {}
    for style in ("default", "dark_background"):
        with plt.style.context(style):
            colours[style] = [patch.get_facecolor()[:3] for patch in plots.waterfall(row).patches]
            regions = plots.decision_regions(model, X).collections[0].cmap(0)
            assert bool(sum(regions[:3]) < 1.5) is (style == "dark_background")
    assert (0, 0, 0) in colours["default"]
    assert (1, 1, 1) in colours["dark_background"]
    assert (0, 0, 0) not in colours["dark_background"]
