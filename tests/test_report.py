"""Reports: numbers against independent code, pages that no name of a column can break, and a real
browser.
"""

from __future__ import annotations

import functools
import html
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.metrics import brier_score_loss, confusion_matrix, roc_auc_score
from test_export import ANY_CASE, Row, frame

import jaxrules as jr
import problems
from jaxrules.tools import display
from jaxrules.users.export.program import program_of
from jaxrules.users.reporting.browser import columns_of, program_json, rows_json
from jaxrules.users.reporting.figures import auc_error

pytestmark = pytest.mark.filterwarnings("ignore:column .* of X has none of the categories")

X = problems.X
LABELS = np.where((problems.size > 1) & (problems.colour != "c"), "yes", "no")
LABELS[::7] = "yes"
COLOURS = np.where(problems.size > 2, "red", np.where(problems.colour == "a", "green", "blue"))
NUMBERS = 2 * problems.size + np.arange(48) % 3
ENSEMBLES: Any = {
    "missing": "own_category", "global_penalty": 0.05, "l2_penalty": 2.0, "max_rules": 2,
    "max_length": 1, "within": 0.1,
}  # fmt: skip
NASTY = ("</script><script>alert(1)</script>", "\"'&<b>é ☃🙂", "{{DATA}}\\u003c\u2028", "plain")


@functools.cache
def fitted(name: str) -> tuple[Any, Any]:
    """A result to report, and its target."""
    own: Any = {"missing": "own_category"}
    rules: Any = {**own, "rules": problems.pool(), "l1_penalty": 0.02}
    match name:
        case "ensemble":
            return jr.rulefit.fit(X, LABELS, linear_terms=True, **rules), LABELS
        case "several classes":
            return jr.rulefit.fit(X, COLOURS, **rules), COLOURS
        case "numbers":
            return jr.rulefit.fit(X, NUMBERS, linear_terms=True, **rules), NUMBERS
        case "bare model":
            return jr.boosting.fit(X, LABELS, max_rules=2, **own).model, LABELS
        case "counts":
            return jr.boosting.fit(X, NUMBERS, max_rules=2, loss="poisson", **own), NUMBERS
        case "list":
            return jr.ssrl.fit(X, COLOURS, max_rules=2, **own), COLOURS
        case "path":
            return jr.boosting.path(X, LABELS, max_rules=3, **own), LABELS
        case "coordinate path":
            return jr.paths.fit(X, NUMBERS, steps=3, method="local", **own), NUMBERS
        case "near-optimal":
            return jr.exact_list.near_optimal(X, LABELS, within=0.2, max_rules=1, **own), LABELS
        case "near-optimal ensembles":
            return jr.lire.near_optimal(X, LABELS, **ENSEMBLES), LABELS
        case "near-optimal numbers":
            return jr.lire.near_optimal(X, NUMBERS, **ENSEMBLES | {"within": 0.5}), NUMBERS
        case "comparison":
            methods = {"boosting": "boosting", "cart": "cart"}
            settings: Any = {"folds": 2, "inner_folds": 2, **own}
            return jr.compare(X, LABELS, methods=methods, **settings), LABELS
    raise AssertionError(name)


KINDS = [
    *("ensemble", "several classes", "numbers", "bare model", "counts", "list"),
    *("path", "coordinate path", "near-optimal", "near-optimal ensembles", "near-optimal numbers"),
    "comparison",
]
each_kind = pytest.mark.parametrize("name", KINDS)


def data_of(page: jr.Report) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.html)
    found: dict[str, Any] = json.loads(text)
    return found


def models_of(result: Any) -> list[Any]:
    """The models that the report of a result shows, where the test knows them."""
    if isinstance(result, list):
        return [fit.model for fit in result]
    return [result.model if isinstance(result, jr.Fit) else result]


# The file


@each_kind
def test_a_page_is_complete_and_needs_no_network(name: str, tmp_path: Path) -> None:
    result, y = fitted(name)
    page = jr.report(result, X, y, tmp_path / "page.html", groups="colour")
    assert page.path == tmp_path / "page.html"
    assert page.path.read_text("utf-8") == page.html
    page = jr.report(result, X, y, page.path, groups="colour")
    assert page.path.read_text("utf-8") == page.html  # replaced
    assert not re.findall(r'(?:src|href)="(?!#|data:)|@import|url\(', page.html)
    assert set(re.findall(r"https?://[^\"']+", page.html)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page.html
    data = data_of(page)
    assert data["models"]
    assert data["start"] < len(data["models"])
    assert data["groups"] == [[c, int((problems.colour == c).sum())] for c in "abc"]
    assert len(data["truth"]) == data["table"]["rows"] == 48
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert html.unescape(page._repr_html_().split('srcdoc="')[1].split('" style')[0]) == page.html


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    frame = pd.DataFrame({name: X["size"] + k for k, name in enumerate(NASTY)})
    frame[NASTY[1]] = np.where(X["size"] > 1, NASTY[0], NASTY[1])
    labels = np.where(X["size"] > 1, NASTY[0], NASTY[2])
    model = jr.boosting.fit(frame, labels, max_rules=2, max_length=1).model
    page = jr.report(model, frame, labels, None, groups=NASTY[1], title=NASTY[0] + "\ud800")
    assert page.path is None
    assert page.html.encode().count(b"<script") == 2
    assert page.html.count("</script>") == 2
    data = data_of(page)
    assert [column[0] for column in data["table"]["columns"]] == [
        name.replace("\u2028", "\\u2028") for name in NASTY
    ]
    assert data["classes"][0] == NASTY[0]
    assert data["title"] == NASTY[0] + "\\ud800"


def test_only_used_columns_of_the_first_rows_are_stored() -> None:
    result, y = fitted("bare model")
    data = data_of(jr.report(result, X, y, None, max_rows=5))
    assert [len(column) for column in data["rows"]] == [5] * len(data["columns"])
    used = {result.schema.features[f].name for f in result.conjunctions.feature.tolist()}
    assert {column["name"] for column in data["columns"]} == used
    assert (
        data["models"][0]["rules"] == data_of(jr.report(result, X, y, None))["models"][0]["rules"]
    )
    assert data_of(jr.report(result, X, y, None, max_rows=0))["truth"] == []


# Figures


@pytest.mark.parametrize("name", ["ensemble", "several classes", "bare model", "path"])
def test_figures_of_classes(name: str) -> None:
    result, y = fitted(name)
    data, classes = data_of(jr.report(result, X, y, None, groups="colour")), sorted(set(y))
    for model, shown in zip(models_of(result), data["models"], strict=True):
        holds = model.conjunctions.satisfied(jr.data.table.conform(X, model.schema)).T
        weights = np.asarray(model.weights)
        used = np.flatnonzero(weights.any(axis=1)).tolist()
        assert shown["program"]["texts"] == [model.conjunctions.describe(r) for r in used]
        for r, figures in zip(used, shown["rules"], strict=True):
            target = np.abs(weights[r]).argmax() if len(classes) > 2 else 1
            positive = y == classes[target]
            assert figures["target"] == target
            assert figures["rows"] == holds[r].sum()
            assert figures["coverage"] == pytest.approx(holds[r].mean())
            if holds[r].any():
                assert figures["rate"] == pytest.approx(positive[holds[r]].mean())
                assert figures["lift"] == pytest.approx(positive[holds[r]].mean() / positive.mean())
            for value, (share, rate) in zip("abc", figures["groups"], strict=True):
                inside = problems.colour == value
                assert share == pytest.approx(holds[r][inside].mean())
                both = holds[r] & inside
                assert rate == (pytest.approx(positive[both].mean()) if both.any() else None)
        quality, shares = shown["quality"], jr.predict_proba(model, X)
        assert quality["figures"]["accuracy"] == pytest.approx(jr.accuracy(model, X, y))
        assert quality["figures"]["mean logistic loss"] == pytest.approx(jr.risk(model, X, y))
        assert quality["confusion"] == confusion_matrix(y, jr.predict(model, X)).tolist()
        for curve in quality["curves"]:
            k = curve["class"]
            assert curve["auc"] == pytest.approx(roc_auc_score(y == classes[k], shares[:, k]))
            of, others = shares[y == classes[k], k], shares[y != classes[k], k]
            assert curve["ks"] == pytest.approx(
                ks_2samp(others, of, alternative="greater").statistic
            )
            assert sum(n for _, _, n in curve["calibration"]) == 48
        if len(classes) == 2:
            assert quality["figures"]["Brier score"] == pytest.approx(
                brier_score_loss(y == classes[1], shares[:, 1])
            )


def test_figures_of_numbers() -> None:
    fit, y = fitted("numbers")
    (shown,) = data_of(jr.report(fit, X, y, None, groups=LABELS))["models"]
    predicted = jr.predict(fit.model, X)
    figures = shown["quality"]["figures"]
    assert figures["root mean squared error"] == pytest.approx(((y - predicted) ** 2).mean() ** 0.5)
    assert figures["R²"] == pytest.approx(1 - ((y - predicted) ** 2).mean() / y.var())
    yes = LABELS == "yes"
    assert shown["quality"]["groups"][1][:3] == pytest.approx(
        [yes.sum(), y[yes].mean(), predicted[yes].mean()]
    )
    (first, *_), model = shown["rules"], fit.model
    used = np.flatnonzero(np.asarray(model.weights).any(axis=1))
    holds = model.conjunctions.satisfied(jr.data.table.conform(X, model.schema))[:, used[0]]
    assert first["lift"] == pytest.approx(y[holds].mean() - y.mean())


def test_figures_of_a_list() -> None:
    fit, y = fitted("list")
    (shown,) = data_of(jr.report(fit, X, y, None))["models"]
    model = fit.model
    place = model.position(jr.data.table.conform(X, model.schema))
    assert sum(rule["rows"] for rule in shown["rules"]) == 48
    for rule, figures in enumerate(shown["rules"]):
        label = model.schema.classes[model.labels[rule]]
        assert figures["rows"] == (place == rule).sum()
        if (place == rule).any():
            assert figures["rate"] == pytest.approx((y[place == rule] == label).mean())


def test_every_step_of_a_coordinate_path() -> None:
    fit, y = fitted("coordinate path")
    data = data_of(jr.report(fit, X, y, None))
    assert [model["complexity"] for model in data["models"]] == [0, 1, 2, 3]
    for step, shown in enumerate(data["models"]):
        error = ((y - jr.predict(fit.model, X, step=step)) ** 2).mean()
        assert shown["quality"]["figures"]["root mean squared error"] == pytest.approx(error**0.5)


def test_a_comparison_is_refitted_by_its_best_rule_learner() -> None:
    found, y = fitted("comparison")
    data = data_of(jr.report(found, X, y, None))
    best, risk = next((row.method, row.risk) for row in found.rows if row.method != "cart")
    assert [model["label"] for model in data["models"]] == [best]
    assert [row["method"] for row in data["comparison"]["rows"]] == [r.method for r in found.rows]
    model = found.refit(best, X, y).model
    quality = data["models"][0]["quality"]  # two folds of equally many rows: as in the table
    assert quality["figures"]["accuracy"] == pytest.approx(1 - risk)
    fitted_rows = brier_score_loss(y == "yes", jr.predict_proba(model, X)[:, 1])
    assert abs(quality["figures"]["Brier score"] - fitted_rows) > 1e-4  # not theirs
    assert np.trace(quality["confusion"]) == pytest.approx(48 * (1 - risk))
    assert data["held_out"] == {"folds": 2}
    assert data["models"][0]["program"]["texts"] == [
        model.conjunctions.describe(r) for r in range(len(model.conjunctions))
    ]


def test_a_comparison_of_numbers_has_the_residuals_of_held_out_rows() -> None:
    settings: Any = {
        "methods": ["boosting"],
        "folds": 3,
        "inner_folds": 2,
        "missing": "own_category",
    }
    found = jr.compare(X, NUMBERS, **settings)
    data = data_of(jr.report(found, X, NUMBERS, None, groups="colour"))
    errors = (NUMBERS - np.array(data["held_out"]["predicted"])) ** 2
    assert errors.mean() == pytest.approx(found.rows[0].risk)
    quality = data["models"][0]["quality"]
    assert quality["figures"]["root mean squared error"] == pytest.approx(errors.mean() ** 0.5)
    for colour, figures in zip("abc", quality["groups"], strict=True):
        assert figures[3] == pytest.approx(errors[problems.colour == colour].mean() ** 0.5)
    other = data_of(jr.report(found, X[:40], NUMBERS[:40], None))  # not the rows of the folds
    assert "held_out" not in other
    fit = found.refit("boosting", X[:40], NUMBERS[:40])
    assert other["models"][0]["quality"]["figures"]["mean squared loss"] == pytest.approx(
        jr.risk(fit.model, X[:40], NUMBERS[:40])
    )


def test_a_comparison_without_rules_has_its_table() -> None:
    found = jr.compare(X[["size"]], LABELS, methods={"cart": "cart"}, folds=2, inner_folds=2)
    data = data_of(jr.report(found, X[["size"]], LABELS, None))
    assert data["models"] == []
    with pytest.raises(ValueError, match="groups"):
        jr.report(found, X[["size"]], LABELS, None, groups=LABELS)


def test_a_users_loss_is_not_needed() -> None:
    def huber(y: Any, score: Any) -> Any:
        return (1 + (y - score) ** 2) ** 0.5 - 1

    fit = jr.boosting.fit(X, NUMBERS, max_rules=1, loss=huber, missing="own_category")
    (shown,) = data_of(jr.report(fit, X, NUMBERS, None))["models"]
    assert shown["quality"]["risk"][0] == "mean squared error"


NEAR = ["near-optimal", "near-optimal ensembles", "near-optimal numbers"]


@pytest.mark.parametrize("name", NEAR)
def test_figures_of_near_optimal_models(name: str) -> None:
    found, y = fitted(name)
    data = data_of(jr.report(found, X, y, None))
    near, models = data["near_optimal"], [found[k] for k in range(len(found))]
    assert len(models) > 2
    assert (near["count"], len(data["models"])) == (len(models), min(len(models), 20))
    assert near["objectives"] == found.objectives[:20].tolist()
    texts = [[m.conjunctions.describe(r) for r in range(len(m.conjunctions))] for m in models]
    weights = [np.ravel(getattr(m, "weights", [])).tolist() for m in models]
    for rule in near["rules"]:
        plain = rule["text"].replace(" AND ", " & ")
        inside = [k for k, own in enumerate(texts) if plain in own]
        assert rule["count"] == len(inside) > 0
        alone = f"only {near['noun']} {inside[0] + 1}" if len(inside) == 1 else ""
        assert rule["where"] == ("all" if len(inside) == len(models) else alone)
        if name != "near-optimal":
            own = [weights[k][texts[k].index(plain)] for k in inside]
            assert rule["weights"] == [min(own), max(own)]
    assert len(near["rules"]) == len({text for own in texts for text in own})
    said, values = " ".join(near["said"]), np.array([jr.predict(m, X) for m in models])
    if name == "near-optimal numbers":
        amount, apart = 0.1 * NUMBERS.std(), np.ptp(values, axis=0)
        assert f"For {100 * (apart > amount).mean():.1f} % of the rows their predictions" in said
        expected = (np.abs(values - values[0]) > amount).mean(axis=1)
    else:
        same = (values == values[0]).all(axis=0).mean()
        assert f"the same class for {100 * same:.1f} % of the 48 rows" in said
        expected = (values != values[0]).mean(axis=1)
    if name == "near-optimal ensembles":
        apart = np.ptp([jr.predict_proba(m, X)[:, 1] for m in models], axis=0)
        assert f"For {100 * (apart > 0.05).mean():.1f} % of the rows their probabilities" in said
        assert "have an objective within 10 % of the best known" in said
        assert f"differ is {display.number(apart.max(), 3)}." in said
    assert near["differs"] == pytest.approx(expected[:20])
    assert "It is proved that no other" in said
    assert ("It is proved" in data["models"][0]["opening"][-1]) == found.complete


def test_near_optimal_rates_have_their_exposure() -> None:
    exposure = 1.0 + np.arange(48) % 4
    found = jr.lire.near_optimal(X, NUMBERS, loss="poisson", exposure=exposure, **ENSEMBLES)
    assert len(found) > 1
    near = data_of(jr.report(found, X, NUMBERS, None, exposure=exposure))["near_optimal"]
    rates = np.array([jr.predict(found[k], X) for k in range(len(found))])
    assert near["amount"] == pytest.approx(0.1 * np.std(NUMBERS / exposure))
    share = 100 * (np.ptp(rates, axis=0) > near["amount"]).mean()
    assert f"For {share:.1f} % of the rows their predictions" in near["said"][-1]
    with pytest.raises(ValueError, match="pass exposure= of these rows"):
        jr.report(found, X, NUMBERS, None)


def test_what_is_missing_among_near_optimal_models_is_said() -> None:
    few = jr.lire.near_optimal(X, LABELS, **ENSEMBLES, limit=2)
    near = data_of(jr.report(few, X, LABELS, None))["near_optimal"]
    assert "It is not proved that these are all. There may be more." in near["said"]
    one = jr.lire.near_optimal(X, LABELS, **ENSEMBLES | {"within": 0.0, "global_penalty": 1.0})
    near = data_of(jr.report(one, X, LABELS, None))["near_optimal"]
    assert near["said"][0].startswith("1 rule ensemble has an objective within 0 % of")
    assert near["said"][1].startswith("It is proved that no other ensemble")
    assert (len(near["said"]), near["rules"]) == (2, [])


# What the page evaluates


def as_json(value: Any) -> Any:
    """What the page reads: infinite numbers and NaN are null."""
    text = json.dumps(value)
    return json.loads(re.sub(r"\b(NaN)\b|-?\bInfinity\b", "null", text))


def in_python(program: dict[str, Any], columns: list[Any], row: list[Any]) -> Any:
    """The scores, or the place of the rule that decides, as the page computes them."""

    def missing(column: int, value: float) -> bool:
        categorical = column < len(columns) and columns[column]["categories"] is not None
        return value == -1 if categorical else math.isnan(value)

    def term(one: dict[str, Any], values: list[float]) -> float:
        value, code = values[one["column"]], one["category"]
        if code is None:
            return value - one["origin"]
        return float(missing(one["column"], value) if code == -1 else value == code)

    def passes(test: dict[str, Any]) -> bool:
        value = values[test["column"]]
        if missing(test["column"], value):
            return bool(test["missing"])
        compare = {
            "<": value.__lt__, "<=": value.__le__, ">": value.__gt__, ">=": value.__ge__,
            "==": value.__eq__, "in": lambda codes: value in codes,
            "not in": lambda codes: value not in codes,
        }  # fmt: skip
        return test["asked"] is not None and all(compare[op](end) for op, end in test["asked"])

    values = [math.nan if value is None else float(value) for value in row]
    for direction in program["directions"]:
        values.append(sum((one["weights"][0] * term(one, values) for one in direction), 0.0))
    holds = [all(map(passes, tests)) for tests in program["tests"]]
    if program["kind"] == "list":
        return [*holds, True].index(True)
    scores = list(program["intercept"])
    for held, weights in zip(holds, program["weights"], strict=True):
        if held:
            scores = [score + weight for score, weight in zip(scores, weights, strict=True)]
    for one in program["terms"]:
        low, high = one["lower"], one["upper"]
        value = term(one, values)
        if math.isnan(value):
            continue
        value = value if low is None else max(value, low)
        value = value if high is None else min(value, high)
        scores = [s + value * weight for s, weight in zip(scores, one["weights"], strict=True)]
    return scores


@settings(max_examples=60)
@given(ANY_CASE)
def test_programs_say_the_same(case: tuple[Any, list[Row]]) -> None:
    model, rows = case
    table, program = (
        jr.data.table.conform(frame(model.schema, rows), model.schema),
        program_of(model),
    )
    columns = columns_of([program])
    encoded, stored = program_json(program, columns), rows_json(table, columns, len(rows))
    listed = [[column[i] for column in as_json(stored)["rows"]] for i in range(len(rows))]
    found = [in_python(as_json(encoded), stored["columns"], row) for row in listed]
    if isinstance(model, jr.RuleList):
        assert found == model.position(table).tolist()
    else:
        expected = np.reshape(jr.decision_function(model, table), (len(rows), -1))
        assert found == expected.tolist()


# Bad input


@pytest.mark.parametrize(
    ("error", "message", "change"),
    [
        (ValueError, "path is empty", {"path": ""}),
        (OSError, "does not exist", {"path": "nowhere/report.html"}),
        (OSError, "path is the folder", {"path": "."}),
        (TypeError, "path must be", {"path": 3}),
        (TypeError, "result must be", {"result": 3}),
        (TypeError, "pass its fit_", {"result": "estimator"}),
        (ValueError, "empty path", {"result": []}),
        (TypeError, r"result\[0\] must be", {"result": [3]}),
        (ValueError, "lacks the columns", {"X": X[["size"]]}),
        (ValueError, "X has no rows", {"X": X[:0], "y": LABELS[:0]}),
        (ValueError, "y has 47 values", {"y": LABELS[1:]}),
        (ValueError, "y has the index of X in another order", {"y": pd.Series(LABELS)[::-1]}),
        (ValueError, "labels that the model does not know", {"y": COLOURS}),
        (ValueError, "which has no 'nothing'", {"groups": "nothing"}),
        (ValueError, "48 distinct values", {"groups": np.arange(48)}),
        (ValueError, "groups has 3 values", {"groups": ["a", "b", "c"]}),
        (ValueError, "max_rows must be at least 0", {"max_rows": -1}),
        (TypeError, "max_rows must be an integer", {"max_rows": 1.5}),
        (TypeError, "title must be text", {"title": 3}),
    ],
)
def test_bad_input(
    error: type[Exception], message: str, change: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if change.get("result") == "estimator":
        estimator = jr.estimators.RuleBoostingClassifier(max_rules=1, missing="own_category")
        change = {"result": estimator.fit(X, LABELS)}
    model = fitted("bare model")[0]
    given: Any = {"result": model, "X": X, "y": LABELS, **change}
    with pytest.raises(error, match=message):
        jr.report(**given)
    assert not list(tmp_path.iterdir())


def test_models_of_a_path_share_their_columns() -> None:
    other = jr.boosting.fit(X[["size"]], LABELS, max_rules=1).model
    with pytest.raises(ValueError, match=r"result\[1\] has other columns"):
        jr.report([fitted("bare model")[0], other], X, LABELS, None)


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


needs_browser = pytest.mark.needs_browser


def opened(browser: Any, folder: Path, name: str, **settings: Any) -> tuple[Any, Any]:
    """The result and the target of a page, which the browser shows."""
    result, y = fitted(name)
    page = jr.report(result, X, y, folder / "page.html", **settings)
    show(browser, page)
    return result, y


def show(browser: Any, page: jr.Report) -> None:
    assert page.path is not None
    browser.get(page.path.as_uri())
    assert browser.get_log("browser") == []


def evaluated(browser: Any, model: int = 0) -> list[dict[str, Any]]:
    """What the page says about its stored rows; infinite numbers and NaN as text."""
    found: list[dict[str, Any]] = json.loads(browser.execute_script(f"return {EVALUATED % model}"))
    return found


EVALUATED = (
    "JSON.stringify(data.truth.map((_, place) => evaluate(data.models[%d].program,"
    " storedRow(place))), (key, one) => Number.isFinite(one) || typeof one !== 'number' ? one"
    " : String(one))"
)
"""What the script says about the stored rows, as JSON."""


def assert_same(found: list[dict[str, Any]], model: Any, X: Any) -> None:
    """The page's labels and scores are jaxrules' own; its probabilities up to rounding."""
    classes = model.schema.classes
    if not isinstance(model, jr.RuleList):
        scores = np.reshape(jr.decision_function(model, X), (len(found), -1))
        assert [list(map(float, one["scores"])) for one in found] == scores.tolist()
    if classes is None:
        values = [float(one["value"].replace("Infinity", "inf")) if isinstance(one["value"], str)
                  else one["value"] for one in found]  # fmt: skip
        np.testing.assert_allclose(values, jr.predict(model, X), rtol=1e-12)
        return
    assert [classes[one["code"]] for one in found] == jr.predict(model, X).tolist()
    np.testing.assert_allclose(
        [one["shares"] for one in found], jr.predict_proba(model, X), atol=1e-12
    )


@needs_browser
@each_kind
def test_it_opens_in_light_and_dark(name: str, browser: Any, tmp_path: Path) -> None:
    seen = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        opened(browser, tmp_path, name, groups="colour")
        assert browser.execute_script("return performance.getEntriesByType('resource')") == []
        colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        seen.append(browser.execute_script(colours))
        # A hidden element has no accessible name: all folds are opened.
        browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        for element in browser.find_elements("css selector", "input, select, button, svg[role]"):
            assert element.accessible_name
        headings = [one.text for one in browser.find_elements("css selector", "h2")]
        assert headings[-2:] == ["Data, settings and certificate", "Intended use and sign-off"]
        assert "Which rules hold for a row?" in headings
        links = browser.find_elements("css selector", "nav a")
        assert [link.text for link in links] == headings
    assert seen[0] != seen[1]
    assert all(contrast(*pair) > 7 for pair in seen)


def contrast(first: str, second: str) -> float:
    """Of two colours, after WCAG 2."""
    light = []
    for colour in (first, second):
        parts = np.array([int(part) / 255 for part in re.findall(r"\d+", colour)[:3]])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(light) + 0.05) / (min(light) + 0.05)


@needs_browser
@pytest.mark.parametrize("name", [*KINDS[:6], "path"])
def test_rows_are_predicted_as_in_python(name: str, browser: Any, tmp_path: Path) -> None:
    result, _ = opened(browser, tmp_path, name)
    for place, model in enumerate(models_of(result)):
        assert_same(evaluated(browser, place), model, X)


@needs_browser
@settings(max_examples=30)
@given(case=ANY_CASE, data=st.data())
def test_any_model_and_row(
    case: tuple[Any, list[Row]], data: st.DataObject, browser: Any, tmp_path_factory: Any
) -> None:
    model, rows = case
    table, classes = (
        jr.data.table.conform(frame(model.schema, rows), model.schema),
        model.schema.classes,
    )
    y = [1.0 if classes is None else data.draw(st.sampled_from(classes)) for _ in rows]
    try:
        with np.errstate(all="ignore"):
            path = tmp_path_factory.mktemp("any") / "page.html"
            page = jr.report([model], table, y, path)
    except ValueError:  # the loss of rows with huge scores overflows
        assume(False)
    show(browser, page)
    assert_same(evaluated(browser), model, table)


# Every kind of model, on rows of every kind of value

VALUES = pd.DataFrame(
    {
        "size": X["size"],
        "age": X["age"],  # has missing values
        "months": np.where(np.arange(48) % 5 == 0, -7.0, np.arange(48) % 9),  # a special value
        "colour": X["colour"],
        "flag": problems.size + np.nan_to_num(problems.age) > 2,
        "grade": pd.Categorical(
            np.array(["low", "mid", "high"])[np.arange(48) // 3 % 3], ["low", "mid", "high"],
            ordered=True,
        ),
    }
)  # fmt: skip
AMOUNTS = np.exp(problems.size / 2 + np.sin(np.arange(48)))
EXPOSED = problems.size + 2.0 * (VALUES["months"] < 0) + VALUES["flag"] + np.arange(48) % 2


TABLE = jr.as_table(VALUES, missing="own_category", special_values={"months": [-7, -8]})


def by_rows(learner: Any, y: Any, **settings: Any) -> Any:
    """A model whose threshold is the highest score of the rows (in a list, probability)."""
    model = of_values(learner, y, **settings)
    ask = jr.decision_function
    if isinstance(model, jr.RuleList):
        ask = lambda model, table: jr.predict_proba(model, table)[:, 1]  # noqa: E731
    return jr.with_threshold(model, float(np.max(ask(model, TABLE))))


def of_values(learner: Any, y: Any, **settings: Any) -> Any:
    return learner(TABLE, y, missing="own_category", **settings).model


KINDS_OF_MODELS: dict[str, Any] = {
    "boosting": lambda: of_values(jr.boosting.fit, LABELS, max_rules=3),
    "threshold": lambda: by_rows(jr.boosting.fit, LABELS, max_rules=4),
    "exponential, threshold": lambda: by_rows(jr.lire.fit, LABELS, loss="exponential"),
    "truth, threshold": lambda: by_rows(jr.boosting.fit, LABELS == "yes", max_rules=3),
    "positive, threshold": lambda: by_rows(jr.boosting.fit, LABELS, positive="no", max_rules=3),
    "linear terms, threshold": lambda: by_rows(
        jr.rulefit.fit, LABELS, linear_terms=True, l1_penalty=0.01
    ),
    "oblique, threshold": lambda: by_rows(jr.boosting.fit, LABELS, max_nonzeros=2, max_rules=3),
    "scorecard": lambda: (
        jr.scorecard(of_values(jr.boosting.fit, LABELS, max_rules=2), TABLE, LABELS).model
    ),
    "joint classes": lambda: of_values(jr.boosting.fit, COLOURS, max_rules=4),
    "one-vs-rest": lambda: of_values(
        jr.boosting.fit, COLOURS, max_rules=2, multiclass="one_vs_rest"
    ),
    "list": lambda: of_values(jr.ssrl.fit, COLOURS, max_rules=3),
    "list, threshold": lambda: by_rows(jr.ssrl.fit, LABELS, max_rules=3, literal_penalty=0.1),
    "squared": lambda: of_values(jr.boosting.fit, AMOUNTS, max_rules=3),
    "linear": lambda: of_values(jr.rulefit.fit, AMOUNTS, linear_terms=True, l1_penalty=0.01),
    "gamma": lambda: of_values(jr.boosting.fit, AMOUNTS, loss="gamma", max_rules=3),
    "poisson, exposure": lambda: of_values(
        jr.boosting.fit, EXPOSED, loss="poisson", exposure=AMOUNTS, max_rules=3
    ),
    "path of classes": lambda: of_values(jr.paths.fit, LABELS, steps=1, method="local"),
    "path of more classes": lambda: of_values(jr.paths.fit, COLOURS, steps=2, method="local"),
    "path of numbers": lambda: of_values(jr.paths.fit, AMOUNTS, steps=3, method="local"),
}


@functools.cache
def every_kind(name: str) -> tuple[Any, Any, jr.Report]:
    """A model, rows (the training rows, others with unseen categories, missing values and the
    thresholds of its rules), and the report on them.
    """
    model = KINDS_OF_MODELS[name]()
    n, more = len(VALUES), VALUES.copy()
    more["colour"] = np.where(np.arange(n) % 3 == 0, "unseen", more["colour"])
    more["age"] = np.where(np.arange(n) % 2, np.nan, more["age"])
    ends = [0.0, 1.0, 2.0, 3.0, -8.0]
    if hasattr(model, "conjunctions"):
        of = model.conjunctions
        ends += [e for e in (*of.lower.tolist(), *of.upper.tolist()) if math.isfinite(e)]
    more["months"] = np.resize(ends, n)
    more["size"] = np.resize(ends[::-1], n)
    rows = jr.data.table.conform(pd.concat([VALUES, more], ignore_index=True), model.schema)
    said = jr.predict(model, rows)
    y = said if model.schema.classes is None else np.resize(list(model.schema.classes), 2 * n)
    y = np.maximum(y, 0.1) if y is said else y
    known = {"exposure": np.ones(2 * n)} if "relative_to" in dict(model.options) else {}
    with np.errstate(all="ignore"):
        return model, rows, jr.report([model], rows, y, None, **known)


@pytest.mark.parametrize("name", KINDS_OF_MODELS)
def test_every_kind_of_model_without_a_browser(name: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    model, rows, page = every_kind(name)
    (script,) = re.findall(r"<script>\n(.*?)// Elements\.", page.html, re.DOTALL)
    text = json.dumps(json.dumps(data_of(page)))
    stub = f"const document = {{ getElementById: () => ({{ textContent: {text} }}) }};"
    (tmp_path / "evaluate.js").write_text(f"{stub}{script}console.log({EVALUATED % 0});", "utf-8")
    run = subprocess.run([node, tmp_path / "evaluate.js"], capture_output=True, check=True)
    assert_same(json.loads(run.stdout), model, rows)


@needs_browser
@pytest.mark.parametrize("name", KINDS_OF_MODELS)
def test_the_row_explorer_says_what_predict_says(name: str, browser: Any, tmp_path: Path) -> None:
    model, rows, page = every_kind(name)
    (tmp_path / "page.html").write_text(page.html, "utf-8")
    show(browser, jr.Report(page.html, tmp_path / "page.html"))
    assert_same(evaluated(browser), model, rows)
    shown = browser.execute_script(
        "const chosen = document.getElementById('row-number');"
        "return data.truth.map((_, place) => {"
        " chosen.value = place + 1; chosen.dispatchEvent(new Event('input'));"
        " return document.getElementById('prediction').textContent; });"
    )
    said = jr.predict(model, rows).tolist()
    if model.schema.classes is None:
        assert [float(text) for text in shown] == pytest.approx(said, rel=1e-4)
    else:
        assert shown == [str(label) for label in said]
    if "threshold" in name:
        assert said != jr.predict(half(model), rows).tolist()
        for part in ("rules", "quality", "answer"):
            assert str(model.cut) in browser.find_element("id", part).text


def half(model: Any) -> Any:
    """The model with the usual threshold."""
    return jr.with_threshold(model, 0.5 if isinstance(model, jr.RuleList) else 0.0)


@needs_browser
def test_very_many_stored_rows(browser: Any, tmp_path: Path) -> None:
    n = 70_000
    values = np.random.default_rng(0).normal(size=(n, 1))
    schema = jr.as_table(values).schema
    rules = jr.Conjunctions.build(schema, [[jr.Condition.above(0, 0.0)]])
    slope = jr.LinearTerms(
        np.array([0], np.int32), np.ones((1, 1)), *np.full((2, 1), [[-9.0], [9.0]])
    )
    model = jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1), slope)
    y = values[:, 0] + np.sin(np.arange(n))
    show(browser, jr.report(model, values, y, tmp_path / "page.html", max_rows=n))
    assert browser.find_element("tag name", "h1").text.startswith(
        "Rule ensemble of 1 rule and 1 linear term"
    )
    quality = browser.find_element("id", "quality").text
    assert "Residuals of 2000 rows, evenly spaced among the 70000 rows given" in quality
    assert (
        len(browser.find_elements("css selector", "#quality figure:first-of-type circle")) >= 2000
    )
    chosen = browser.find_element("id", "row-number")
    chosen.clear()
    chosen.send_keys(str(n))
    said = float(browser.find_element("id", "prediction").text)
    assert said == pytest.approx(jr.predict(model, values[-1:])[0], rel=1e-4)
    browser.find_element("css selector", "#quality details summary").click()
    assert browser.get_log("browser") == []


@needs_browser
def test_numbers_of_sums_are_printed_as_in_python(browser: Any, tmp_path: Path) -> None:
    opened(browser, tmp_path, "ensemble")
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=300) * 10.0 ** rng.integers(-8, 20, 300)).tolist()
    for largest in (0.0, 1.2e7, 5e10, 3e16):
        script = "const [all, most] = arguments; return all.map((one) => summand(one, most))"
        found = browser.execute_script(script, weights, largest)
        python = [float(display.weight_text(weight, largest)) for weight in weights]
        assert list(map(float, found)) == pytest.approx(python, rel=1e-13)  # but for ties


@needs_browser
def test_tables_sort_by_mouse_and_keyboard(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, tmp_path, "ensemble")
    rules = "#rules table "

    def column(k: int) -> list[str]:
        return [
            one.text for one in browser.find_elements("css selector", f"{rules}td:nth-child({k})")
        ]

    button = browser.find_element("css selector", f"{rules}th:nth-child(3) button")
    head = browser.find_element("css selector", f"{rules}th:nth-child(3)")
    assert button.text.startswith("weight")
    assert head.get_attribute("aria-sort") is None
    button.click()
    weights = [float(text) for text in column(3)]
    assert weights == sorted(weights, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    button.send_keys(Keys.ENTER)
    assert [float(text) for text in column(3)] == weights[::-1]
    assert head.get_attribute("aria-sort") == "ascending"
    browser.find_element("css selector", f"{rules}th:nth-child(2) button").click()
    assert column(2) == sorted(column(2), key=str.casefold)
    assert head.get_attribute("aria-sort") is None


@needs_browser
def test_the_slider_moves_along_the_path(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    fits, y = opened(browser, tmp_path, "path")
    slider = browser.find_element("id", "size")
    for place in reversed(range(len(fits))):
        model = fits[place].model
        said = browser.find_element("id", "size-shown").text
        assert said == slider.get_attribute("aria-valuetext")
        assert said.startswith(f"{place + 1} of 3: {jr.support(model)} rule")
        assert f"complexity {jr.complexity(model)}, " in said
        assert float(said.split()[-1]) == pytest.approx(jr.risk(model, X, y), rel=1e-4)
        texts = browser.find_elements("css selector", "#rules td:nth-child(2)")
        assert [one.text for one in texts] == [
            one.text for one in jr.importance(model, X)
        ]  # the most important first
        label = jr.predict(model, X[:1])[0]
        assert browser.find_element("id", "prediction").text == label
        slider.send_keys(Keys.ARROW_LEFT)
    assert browser.get_log("browser") == []


@needs_browser
def test_rows_are_chosen_and_typed(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import Select, WebDriverWait

    fit, _ = opened(browser, tmp_path, "ensemble", max_rows=10)
    names = [column["name"] for column in data_of(jr.report(fit, X, LABELS, None))["columns"]]
    fields = {name: browser.find_element("id", f"column-{k}") for k, name in enumerate(names)}
    chosen = browser.find_element("id", "row-number")

    def score() -> float:
        return float(browser.find_elements("css selector", "#answer td")[-1].text)

    for row in (1, 4, 10):
        chosen.clear()
        chosen.send_keys(str(row))
        answer = browser.find_element("id", "answer").text
        assert f"its target is {LABELS[row - 1]}." in answer
        expected = float(jr.decision_function(fit.model, X[row - 1 : row])[0])
        assert score() == pytest.approx(expected, abs=5.1e-5)  # four decimals, as printed
        assert (
            browser.find_element("id", "prediction").text
            == jr.predict(fit.model, X[row - 1 : row])[0]
        )
    chosen.clear()
    chosen.send_keys("11")
    assert "There are rows 1 to 10." in browser.find_element("id", "row").text
    for size, age, colour in [(3, None, "b"), (0.25, 1, "c"), (1e6, -7.5, None), (2, 0, "unseen")]:
        for name, value in (("size", size), ("age", age)):
            fields[name].clear()
            fields[name].send_keys(" " if value is None else str(value))
        Select(fields["colour"]).select_by_visible_text(
            {None: "(missing)", "unseen": "(another value)"}.get(colour, colour)
        )
        row = pd.DataFrame({"size": [size], "age": [age], "colour": [colour]}).astype(
            {"age": float, "colour": object}
        )
        expected = pytest.approx(float(jr.decision_function(fit.model, row)[0]), abs=5.1e-5)
        wait = WebDriverWait(browser, 20)  # Chromium reports the choice a little later
        wait.until(lambda _, wanted=expected: score() == wanted)
        assert browser.find_element("id", "answer").text.startswith("Typed values.")
    fields["age"].send_keys("old")
    assert fields["age"].get_attribute("aria-invalid") == "true"
    assert browser.find_element("id", "answer").text == "Correct the marked values."


@needs_browser
def test_special_values_are_typed_as_they_are(browser: Any, tmp_path: Path) -> None:
    codes = np.where(np.arange(60) % 3 == 0, -7.0, np.arange(60.0))
    raw = {"months": codes, "size": np.arange(60.0) % 7}
    table = jr.as_table(raw, special_values={"months": [-7, -8]})
    target = np.where(codes == -7, "a", np.where(codes > 30, "b", "c"))
    model = jr.boosting.fit(table, target == "b", max_rules=3).model
    page = jr.report(model, table, target == "b", tmp_path / "page.html")
    assert [column["typed"] for column in data_of(page)["columns"]][-1] is False
    assert "from 1 of 2 columns" in data_of(page)["models"][0]["opening"][0]
    show(browser, page)
    assert "60 rows, 2 columns" in browser.find_element("tag name", "body").text
    fields = browser.find_elements("css selector", "fieldset input")
    (months,) = [one for one in fields if one.get_attribute("id") == "column-0"]
    assert not browser.find_elements("css selector", "fieldset select")
    assert months.get_attribute("value") == "-7"
    for value in (-7, -8, 3, 40):
        months.clear()
        months.send_keys(str(value))
        row = {"months": [value], "size": [0.0]}
        said = browser.find_element("id", "prediction").text
        assert said.lower() == str(jr.predict(model, row)[0]).lower()
        score = float(browser.find_elements("css selector", "#answer td")[-1].text)
        assert score == pytest.approx(float(jr.decision_function(model, row)[0]), rel=1e-4)
    months.clear()
    months.send_keys(" ")
    assert "The model needs a value here." in browser.find_element("id", "row").text


@needs_browser
def test_missing_values_are_refused_as_in_fit(browser: Any, tmp_path: Path) -> None:
    model = jr.boosting.fit(X[["size"]], LABELS, max_rules=1).model
    show(browser, jr.report(model, X[["size"]], LABELS, tmp_path / "page.html"))
    browser.find_element("id", "column-0").clear()
    browser.find_element("id", "column-0").send_keys(" ")
    assert "The model needs a value here." in browser.find_element("id", "row").text


@needs_browser
def test_near_optimal_lists_stand_side_by_side(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import Select, WebDriverWait

    found, _ = opened(browser, tmp_path, "near-optimal")
    assert len(found) > 2
    Select(browser.find_element("id", "side-1")).select_by_index(2)

    def lines(side: int) -> list[str]:
        shown = browser.find_elements("css selector", ".side ol")[side]
        texts = [one.text for one in shown.find_elements("css selector", "li")]
        return [text.removesuffix(" (only here)") for text in texts]

    for side, model in ((0, found[0]), (1, found[2])):
        wanted = [re.sub(r" \(p = .*?\)", "", line) for line in str(model).splitlines()]
        WebDriverWait(browser, 20).until(lambda _, s=side, wanted=wanted: lines(s) == wanted)


@needs_browser
def test_near_optimal_ensembles_stand_side_by_side(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import Select

    found, _ = opened(browser, tmp_path, "near-optimal ensembles")
    Select(browser.find_element("id", "side-1")).select_by_index(2)
    for side, model in ((0, found[0]), (1, found[2])):
        shown = browser.find_elements("css selector", ".side ol")[side].text.splitlines()
        rules = [text.split(" adds ") for text in shown]
        assert [text for text, _ in rules] == [
            *(model.conjunctions.describe(r) for r in range(len(model.conjunctions))), "always"
        ]  # fmt: skip
        weights = [float(says.removesuffix(" (only here)")) for _, says in rules]
        expected = [*np.ravel(model.weights), float(model.intercept[0])]
        assert weights == pytest.approx(expected, abs=1e-4)
    told = browser.find_element("id", "path").text
    for sentence in data_of(jr.report(found, X, LABELS, None))["near_optimal"]["said"]:
        assert sentence in told


@needs_browser
def test_a_notebook_shows_it_in_a_frame(browser: Any, tmp_path: Path) -> None:
    result, y = fitted("list")
    page = jr.report(result, X, y, None)
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html>{page._repr_html_()}", "utf-8")
    browser.get((tmp_path / "notebook.html").as_uri())
    browser.switch_to.frame(0)
    assert browser.find_element("css selector", "h1").text == "Rule list of 2 rules for target"
    assert browser.find_elements("css selector", "#rules td")
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


@needs_browser
def test_names_are_shown_as_they_are(browser: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({NASTY[0]: X["size"], NASTY[1]: np.where(X["size"] > 1, *NASTY[:2])})
    labels = np.where(X["size"] > 2, NASTY[0], NASTY[1])
    model = jr.boosting.fit(frame, labels, max_rules=2, max_length=1).model
    show(browser, jr.report(model, frame, labels, tmp_path / "page.html", groups=NASTY[1]))
    assert_same(evaluated(browser), model, frame)
    assert NASTY[0] in browser.find_element("id", "rules").text
    assert browser.find_element("id", "prediction").text == jr.predict(model, frame[:1])[0]


# What readers need: an opening, names, reasons, changes, and who signs


def test_the_opening_says_what_how_well_and_what_is_proved() -> None:
    fit = jr.boosting.fit(X, LABELS, max_rules=2, missing="own_category")
    named = pd.Series(LABELS, name="loan status")
    page = jr.report(fit, X, named, None)
    data = data_of(page)
    (model,) = data["models"]
    said = " ".join(model["opening"])
    assert data["target"] == "loan status"
    assert data["title"] == "Rule ensemble of 2 rules for loan status"
    assert "log-odds of loan status == yes" in model["heading"]
    assert said.startswith("This model predicts loan status (no or yes) from ")
    assert "by 2 rules" in said
    assert f"right for {jr.accuracy(fit.model, X, LABELS):.1%}" in said
    assert (
        f"would be right for {max((LABELS == 'yes').mean(), (LABELS == 'no').mean()):.1%}" in said
    )
    assert fit.advice in said
    assert fit.model.schema.target == "target"  # the model itself keeps its name


@each_kind
def test_every_kind_has_an_opening_and_a_hash(name: str) -> None:
    result, y = fitted(name)
    page = jr.report(result, X, y, None)
    data = data_of(page)
    assert all(len(model["opening"]) >= 3 for model in data["models"])
    assert re.fullmatch("[0-9a-f]{64}", page.data_hash)
    assert data["data_hash"] == page.data_hash == jr.report(result, X, y, None).data_hash
    other = y.copy()
    other[0] = y[y != y[0]][0]
    assert jr.report(result, X, other, None).data_hash != page.data_hash
    assert (data["version"], len(data["date"])) == (jr.__version__, 10)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=4, max_size=25))
def test_the_error_of_the_area_is_delongs(rows: list[tuple[int, bool]]) -> None:
    score, positive = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    a, b = score[positive], score[~positive]
    found = auc_error(score, positive)
    if min(len(a), len(b)) < 2:
        assert found is None
        return
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    variance = wins.mean(axis=1).var(ddof=1) / len(a) + wins.mean(axis=0).var(ddof=1) / len(b)
    assert found == pytest.approx(variance**0.5)


def test_importances_are_those_of_the_library() -> None:
    fit, y = fitted("ensemble")
    (shown,) = data_of(jr.report(fit, X, y, None))["models"]
    found = sorted((value for value in shown["importances"] if value), reverse=True)
    assert found == pytest.approx([one.value for one in jr.importance(fit.model, X)])


def test_a_card_has_points() -> None:
    model = jr.boosting.fit(X, LABELS, max_rules=2, missing="own_category").model
    card = jr.scorecard(model, X, LABELS)
    (shown,) = data_of(jr.report(card, X, LABELS, None))["models"]
    weights = np.array(shown["program"]["weights"])[:, 0] * shown["points"]["per_unit"]
    assert weights == pytest.approx(card.points[card.points != 0])
    assert ("no other points" in shown["opening"][-1]) == (card.status is jr.Status.OPTIMAL)
    for one in (card, jr.scaled_scorecard(card).with_cut_off(512)):
        (shown,) = data_of(jr.report(one, X, LABELS, None))["models"]
        total = shown["points"]["start"] + shown["points"]["per_unit"] * np.asarray(
            jr.decision_function(one.model, X)
        )
        assert total == pytest.approx(np.asarray(jr.predict(one.in_points, X)))
    assert shown["heading"].endswith("; no is predicted from 512 points on")


@needs_browser
def test_a_row_has_the_points_of_the_card(browser: Any, tmp_path: Path) -> None:
    model = jr.boosting.fit(X, LABELS, max_rules=2, missing="own_category").model
    card = jr.scaled_scorecard(model)
    show(browser, jr.report(card, X, LABELS, tmp_path / "card.html"))
    assert f"Points of the card: {card.score(X)[0]}." in browser.find_element("id", "answer").text


@pytest.mark.parametrize("loss", ["squared", "poisson", "huber(width=1.0)"])
def test_the_opening_compares_numbers_with_what_their_loss_aims_at(loss: str) -> None:
    model = jr.boosting.fit(X, NUMBERS, loss=loss, max_rules=2, missing="own_category").model
    said = data_of(jr.report(model, X, NUMBERS, None))["models"][0]["opening"][1]
    apart = NUMBERS - jr.predict(model, X)
    if loss.startswith("huber"):
        error, usual = np.abs(apart).mean(), np.abs(NUMBERS - np.median(NUMBERS)).mean()
        assert "always saying the median" in said
    else:
        error, usual = (apart**2).mean() ** 0.5, NUMBERS.std()
        assert "(root mean square); always saying the mean" in said
    assert f"off by {error:.3g} " in said
    assert said.endswith(f"off by {usual:.3g}.")


@pytest.mark.parametrize(
    ("error", "message", "change"),
    [
        (ValueError, "ids has 2 values", {"ids": ["a", "b"]}),
        (ValueError, "changeable names", {"changeable": ["nothing"]}),
        (TypeError, "changeable must be", {"changeable": "size"}),
        (TypeError, "sign_off must be", {"sign_off": "me"}),
        (TypeError, "intended_use must be text", {"intended_use": 3}),
    ],
)
def test_bad_input_for_readers(
    error: type[Exception], message: str, change: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        jr.report(fitted("bare model")[0], X, LABELS, None, **change)


@needs_browser
def test_rows_are_found_by_name_error_and_margin(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    names = [f"customer {k}" for k in range(48)]
    fit, _ = opened(browser, tmp_path, "ensemble", ids=names)
    name = browser.find_element("id", "row-name")
    name.clear()
    name.send_keys("customer 17", Keys.TAB)
    assert browser.find_element("id", "answer").text.startswith(
        f"Row 18 of the rows given, customer 17; its target is {LABELS[17]}."
    )
    name.clear()
    name.send_keys("nobody", Keys.TAB)
    assert "No stored row is called nobody." in browser.find_element("id", "row").text
    scores = jr.decision_function(fit.model, X)
    wrong = np.flatnonzero(jr.predict(fit.model, X) != LABELS)
    kinds = Select(browser.find_element("id", "row-kind"))
    kinds.select_by_index(1)
    number = browser.find_element("id", "row-number")
    if len(wrong):
        surest = wrong[np.argsort(-np.abs(scores[wrong]), kind="stable")]
        assert int(number.get_attribute("value")) - 1 == surest[0]
        assert f"1 of {len(wrong)}" in browser.find_element("id", "row-among").text
    kinds.select_by_index(2)
    assert int(number.get_attribute("value")) - 1 == np.argmin(np.abs(scores))


@needs_browser
@pytest.mark.parametrize("kind", ["ensemble", "scorecard", "scaled"])
def test_the_pages_reasons_are_those_of_the_library(
    kind: str, browser: Any, tmp_path: Path
) -> None:
    from selenium.webdriver.support.ui import Select

    result: Any = fitted("bare model")[0]
    if kind == "scorecard":
        result = jr.scorecard(result, X, LABELS)
    if kind == "scaled":
        result = jr.scaled_scorecard(result)
    show(browser, jr.report(result, X, LABELS, tmp_path / "page.html"))
    number = browser.find_element("id", "row-number")
    for against in (0, 1):
        Select(browser.find_element("id", "reason-against")).select_by_index(against)
        for code, label in enumerate(("no", "yes")):
            Select(browser.find_element("id", "reason-for")).select_by_index(code + 1)
            rows = X if against else None
            told = jr.reasons(result, X, label=label, against=rows, most=None)
            for row in (0, 1, 7, 20):
                number.clear()
                number.send_keys(str(row + 1))
                cells = browser.find_elements("css selector", "#why tbody td")
                texts = [one.text for one in cells]
                wanted = [one.text for one in told[row].reasons if abs(one.points) > 1e-9]
                assert sorted(texts[::2]) == sorted(wanted)
                points = [float(one) for one in texts[1::2]]
                found = [one.points for one in told[row].reasons if abs(one.points) > 1e-9]
                assert points == pytest.approx([abs(one) for one in found], rel=1e-3, abs=1e-4)


@needs_browser
@pytest.mark.parametrize("name", ["bare model", "several classes", "list"])
def test_the_changes_change_the_prediction(name: str, browser: Any, tmp_path: Path) -> None:
    result, _ = opened(browser, tmp_path, name, changeable=["size", "colour"])
    model = models_of(result)[0]
    script = """
        return JSON.stringify([...Array(12).keys()].map((place) => {
          const row = storedRow(place), allowed = data.changeable;
          return { allowed, text: changesOf(row, allowed)[0].textContent };
        }))"""
    found = json.loads(browser.execute_script(script))
    names = [
        column["name"] for column in data_of(jr.report(result, X, fitted(name)[1], None))["columns"]
    ]
    said = jr.predict(model, X[:12]).tolist()
    for place, one in enumerate(found):
        assert one["allowed"] == [column in ("size", "colour") for column in names]
        # Every single change of these columns, by brute force over all values that occur.
        could = False
        for column in set(names) & {"size", "colour"}:
            for value in X[column].dropna().unique():
                row = X[place : place + 1].copy()
                row[column] = value
                could |= jr.predict(model, row)[0] != said[place]
        if could:
            assert one["text"].startswith("The prediction would change with")
            assert "; " not in one["text"].split("prediction")[2]


@needs_browser
def test_rules_are_filtered_and_charted_by_column(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import Select

    fit, _ = opened(browser, tmp_path, "ensemble", intended_use="Loans <b>only</b>.")
    body = data_of(jr.report(fit, X, LABELS, None))
    names = [column["name"] for column in body["columns"]]
    every = [one.text for one in browser.find_elements("css selector", "#rules td:nth-child(2)")]
    Select(browser.find_element("id", "rule-column")).select_by_visible_text("colour")
    kept = [one.text for one in browser.find_elements("css selector", "#rules td:nth-child(2)")]
    assert kept == [text for text in every if "colour" in text]
    assert f"{len(kept)} of {len(every)} shown." in browser.find_element("id", "rules").text
    Select(browser.find_element("id", "rule-column")).select_by_index(0)
    browser.find_element("id", "rule-text").send_keys("AGE")
    kept = [one.text for one in browser.find_elements("css selector", "#rules td:nth-child(2)")]
    assert kept == [text for text in every if "age" in text.lower()]
    for name in names:
        Select(browser.find_element("id", "effect-of")).select_by_visible_text(name)
        told = browser.find_element("id", "column").text
        assert f"All rules that use {name}" in told
    sign = browser.find_element("id", "sign-off").text
    assert "Loans <b>only</b>." in sign
    assert "Approved by" in sign
    assert browser.get_log("browser") == []


@needs_browser
def test_the_effect_of_a_column_is_a_mean_over_rows(browser: Any, tmp_path: Path) -> None:
    model = fitted("bare model")[0]
    show(browser, jr.report(model, X, LABELS, tmp_path / "page.html"))
    names = [column["name"] for column in data_of(jr.report(model, X, LABELS, None))["columns"]]
    for place, name in enumerate(names):
        script = """
            const figure = effectOf(arguments[0], 1)[0];
            document.body.append(figure);
            figure.querySelector("summary").click();
            return new Promise((done) => setTimeout(() => {
              const cells = [...figure.querySelectorAll("td")].map((one) => one.textContent);
              figure.remove(); done(cells); }, 50));"""
        cells = browser.execute_script(script, place)
        for value, share in list(zip(cells[::2], cells[1::2], strict=True))[::7]:
            changed = X.copy()
            changed[name] = value if name == "colour" else float(value)
            expected = jr.predict_proba(model, changed)[:, 1].mean()
            assert float(share) == pytest.approx(expected, rel=1e-3)


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_weight_is_seen_on_any_screen(width: int, browser: Any, tmp_path: Path) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        opened(browser, tmp_path, "ensemble")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        cell = browser.find_element("css selector", "#rules td:nth-child(3)")
        assert cell.rect["x"] + cell.rect["width"] <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
