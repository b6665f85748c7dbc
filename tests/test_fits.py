"""How a fit describes itself."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import jaxrules as jr


def test_every_status_has_advice_and_equals_its_text() -> None:
    for status in jr.Status:
        assert status.advice.endswith(".")
    assert jr.Status.OPTIMAL == "optimal"
    assert f"{jr.Status.TIME_LIMIT}" == "time_limit"
    assert jr.Status("stalled") is jr.Status.STALLED


def test_the_gap() -> None:
    def fit(objective: float, bound: float | None) -> jr.Fit[str]:
        return jr.Fit("model", objective, "min", jr.Status.OPTIMAL, bound)

    assert fit(2.0, None).gap is None
    assert fit(2.0, 1.5).gap == 0.25
    assert fit(-2.0, -1.5).gap == 0.25
    assert fit(0.0, 0.0).gap == 0.0
    assert fit(0.0, 1e-12).gap == 1.0
    text = repr(fit(2.0, 1.5))
    assert "objective=2 (min), bound=1.5, gap=0.25" in text
    assert jr.Status.OPTIMAL.advice in text
    assert "bound" not in repr(fit(2.0, None)).splitlines()[0]


def test_a_fit_says_where_nothing_is_proved() -> None:
    said = {
        bound: jr.Fit("model", 1.0, "min", jr.Status.CONVERGED, bound).advice
        for bound in (None, 0.9)
    }
    assert said[None] == said[0.9] + " Nothing is proved: it may be a local optimum."
    assert said[None] in repr(jr.Fit("model", 1.0, "min", jr.Status.CONVERGED))
    assert "local" not in jr.Fit("model", 1.0, "min", jr.Status.TIME_LIMIT).advice


def test_a_fit_shows_itself_and_its_model_in_a_notebook() -> None:
    fit = jr.Fit("<rules>", 0.5, "min", jr.Status.CONVERGED)
    assert fit._repr_html_().startswith(
        "<p>Fit(status=converged, objective=0.5 (min), 0.00 s, str)<br>"
    )
    assert fit._repr_html_().endswith("<pre>&lt;rules&gt;</pre>")


def test_a_fit_says_which_stages_are_proved() -> None:
    X = np.arange(12.0)[:, None]
    fit = jr.boosting.fit(X, X[:, 0] > 5, max_rules=2, l2_penalty=0.1, search="optimal")
    assert "Every stage is proved optimal" in fit.advice
    assert "Nothing is proved" in jr.boosting.fit(X, X[:, 0] > 5, search="beam").advice
    several = jr.boosting.fit(
        X, X[:, 0] // 4, loss="logistic", max_rules=2, l2_penalty=0.1, multiclass="one_vs_rest"
    )
    assert several.details.proved_stages[1] >= 3
    assert "proved optimal" in several.advice


@pytest.mark.parametrize("name", ["predict", "predict_proba", "decision_function", "explain"])
def test_questions_to_a_model_are_functions(name: str) -> None:
    fit = jr.boosting.fit(jr.datasets.load("iris").X, jr.datasets.load("iris").y, max_rules=1)
    with pytest.raises(AttributeError, match=rf"use jaxrules.{name}\(fit.model, X\)"):
        getattr(fit, name)
    with pytest.raises(AttributeError, match=rf"use jaxrules.{name}\(model, X\)"):
        getattr(fit.model, name)
    assert not hasattr(fit, "nothing")
    assert copy.deepcopy(pickle.loads(pickle.dumps(fit))).objective == fit.objective


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        *(("boosting", name) for name in ("BoostingDetails", "Options", "Stage")),
        *(("lltboost", name) for name in ("LLTBoostDetails", "Options", "Part", "Stage")),
    ],
)
def test_pickles_of_learners_that_were_one_module_load(learner: str, name: str) -> None:
    written = f"cjaxrules.ensembles.{learner}\n{name}\n.".encode()
    assert pickle.loads(written) is getattr(getattr(jr, learner), name)


def test_a_data_set_is_two_arguments() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'y'; pass its X and its y"):
        jr.boosting.fit(jr.datasets.load("iris"))  # type: ignore[call-arg]


@pytest.mark.full
def test_the_first_line_says_which_classes_integers_were_taken_for() -> None:
    X = np.random.default_rng(3).normal(size=(300, 2))
    y = np.random.default_rng(4).poisson(1.0 + (X[:, 0] > 0))
    labels = list(range(y.max() + 1))
    told = f"{len(labels)} classes: {', '.join(map(str, labels))}"
    remedy = 'loss="poisson" for counts, loss="squared" for numbers'
    with pytest.warns(UserWarning, match=f"look like counts .* pass {remedy}, or loss=.logistic"):
        fit = jr.boosting.fit(X, y, max_rules=1)
    assert repr(fit).splitlines()[0].endswith(f"RuleEnsemble) {told}; {remedy}")
    with pytest.warns(UserWarning, match="look like counts"):
        path = jr.boosting.path(X, y, max_rules=2)
    assert [one.read_as for one in path] == [fit.read_as] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        three = jr.boosting.fit(X, np.minimum(y, 2), max_rules=1)
        assert three.read_as == f"3 classes: 0, 1, 2; {remedy}"
        assert jr.ssrl.fit(X, y, max_rules=1).read_as == told
        for given in ({"loss": "logistic"}, {"loss": "poisson"}):
            assert not jr.boosting.fit(X, y, max_rules=1, **given).read_as
        assert not jr.boosting.fit(X, y.astype(str), max_rules=1).read_as
        assert not jr.boosting.fit(X, y > 1, max_rules=1).read_as
    remedy = remedy.replace("loss", "cost")
    with pytest.warns(UserWarning, match=f"look like counts .* pass {remedy}, or cost=.softmax"):
        assert jr.paths.fit(X, y, steps=1).read_as == f"{told}; {remedy}"
    with pytest.raises(ValueError, match='cost="softmax" for all of them.* use cost="squared"'):
        jr.paths.fit(X, y, cost="logistic")


def test_a_table_keeps_its_rule_for_missing_values() -> None:
    table = jr.as_table({"a": [1.0, np.nan, 3.0] * 10}, missing="own_category")
    y = ["no", "yes", "no"] * 10
    for fit in (jr.boosting.fit(table, y), jr.ssrl.fit(table, y)):
        assert fit.model.schema.missing == dict(fit.model.options)["missing"] == "own_category"
    with pytest.raises(ValueError, match="X has missing values in 'a'"):
        jr.boosting.fit(table, y, missing="refuse")
