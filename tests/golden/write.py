"""Writes the files of this folder: one model of every kind, as `jaxrules.save` writes it
now, and what it predicts.

    PYTHONPATH=. python tests/golden/write.py

A file is named after its type, the version of its fields and what it shows. Files that are there
stay: they say what earlier versions wrote. When the fields of a type change, run this once, and
keep the old files beside the new ones.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import jaxrules as jr
from jaxrules.data.table import MISSING, EncodedColumn
from jaxrules.models.survival import SurvivalModel
from jaxrules.paths.model import CoordinatePath, ModelSequence

FOLDER = Path(__file__).parent
ROWS: dict[str, list[Any]] = {
    "age": [18.0, 30.0, 30.000000000000004, 45.0, None, -0.0, 1e300, 44.0, 0.1],
    "job": ["clerk", "cook", "smith", None, "clerk", "pilot", "cook", "smith", "cook"],
    "income": [0.0, 1.5, None, -2.5, 1e-300, 0.30000000000000004, 7.0, -1e300, 0.1],
}
TIMES = [0.5, 2.5, 7.0]
C = jr.Condition


def frame() -> pd.DataFrame:
    """The rows on which predictions are kept."""
    return pd.DataFrame(
        {
            "age": np.array(ROWS["age"], float),
            "job": ROWS["job"],
            "income": np.array(ROWS["income"], float),
        }
    )


def schema(classes: Any) -> jr.Schema:
    features = (
        jr.Feature("age"),
        jr.Feature("job", ("clerk", "cook", "smith")),
        jr.Feature("income"),
    )
    return jr.Schema(features, "own_category", classes, "buys")


def rules(classes: Any) -> jr.Conjunctions:
    """Intervals, sets, missing values, the empty rule and one that never holds."""
    return jr.Conjunctions.build(
        schema(classes),
        [
            [C.above(0, 30.0), C.at_most(0, 45.0)],
            [C.none_of(1, [0], 3), C.at_least(2, 0.1 + 0.2, missing=True)],
            [],
            [C.above(0, 45.0), C.at_most(0, 30.0)],
            [C.is_missing(2, numeric=True)],
            [C.one_of(1, [0, MISSING]), C.below(2, 1e-300)],
            [C.none_of(1, [1, MISSING], 3)],
        ],
    )


def oblique(classes: Any) -> jr.Conjunctions:
    """Directions of numbers and of categories, intervals on them, merged
    with conditions on columns.
    """
    first = C.at_least(jr.Direction((0, 2), (2.81, -1 / 3)), -0.28)
    terms = (0, 1, 1, 2), (0.1, 1.5, -0.7, 3.0), (MISSING, MISSING, 2, MISSING)
    second = C.at_least(jr.Direction(*terms), 0.3)
    return jr.Conjunctions.build(
        schema(classes),
        [
            [first, C.below(first.feature, 120.5), C.above(0, 1.0)],
            [second, C.none_of(1, [0], 3)],
            [C.at_most(first.feature, 50.58, missing=True), C.above(second.feature, 4.5)],
        ],
    )


def measured(classes: Any) -> jr.Conjunctions:
    """Directions of columns that are measured from other numbers than 0."""
    terms = (0, 1, 2), (0.1, -1.5, 1 / 3), (MISSING, 2, MISSING), (45.0, 0.0, -1 / 3)
    rules = [[C.at_least(jr.Direction(*terms), 0.3)], [C.above(0, 30.0)]]
    return jr.Conjunctions.build(schema(classes), rules)


def weights(n: int, outputs: int) -> np.ndarray:
    return np.sin(1.0 + np.arange(n * outputs)).reshape(n, outputs)


def linear_terms(outputs: int) -> jr.LinearTerms:
    ends = np.array([-np.inf, -1 / 3]), np.array([40.0, np.inf])
    return jr.LinearTerms(np.array([0, 2], np.int32), weights(2, outputs) / 7, *ends)


def sequence() -> dict[str, Any]:
    columns = [(0, None), (0, MISSING), (1, MISSING), (1, 1), (2, None), (2, MISSING)]
    models = np.zeros((3, 6))
    models[1:, 3], models[2, 0] = 0.1, -1 / 3
    return {
        "models": models,
        "intercepts": np.array([0.5, 0.25, 1 / 7]),
        "costs": np.array([3.0, 2.0, 0.1]),
        "scale": np.array([2.0, 1.0, 1.0, 1.0, 1 / 3, 1.0]),
        "output_scale": np.array(1.5),
        "columns": tuple(EncodedColumn(feature, category) for feature, category in columns),
    }


def survival() -> SurvivalModel:
    """Rates on the columns of the others and the start of the interval; without a fit."""
    own = schema(None)
    wider = dataclasses.replace(
        own, features=(*own.features, jr.Feature("time")), never_missing=(3,), target="events"
    )
    found = [[C.above(0, 30.0)], [C.one_of(1, [0, MISSING]), C.above(3, 2.5)]]
    rates = jr.RuleEnsemble(
        jr.Conjunctions.build(wider, found), weights(2, 1), np.array([-1 / 3]), None, "log"
    )
    root = weights(3, 3) / 7
    return SurvivalModel(rates, np.array([0.0, 2.5, 4.0]), "time", own, root @ root.T)


def models() -> dict[str, Any]:
    two, three = ("no", "yes"), (1, 2, 3)
    shares = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.625, 0.375]])
    path = CoordinatePath(
        **sequence(),
        schema=schema(two),
        features=np.array([3, 0]),
        step_weights=np.array([1.0, 0.5]),
    )
    options = (
        ("learner", "boosting"),
        ("loss", "log_cosh"),
        ("l2_penalty", 0.1),
        ("grid", (1, None, (True, "a"))),
    )
    return {
        "linear": jr.RuleEnsemble(
            rules(two), weights(7, 1), np.array([-0.375]), linear_terms(1), "logistic"
        ),
        "outputs": jr.RuleEnsemble(
            rules(three), weights(7, 3), np.zeros(3), linear_terms(3), "exponential"
        ),
        "own-loss": jr.RuleEnsemble(
            rules(None), weights(7, 1), np.array([1 / 3]), None, "identity", options, "log_cosh"
        ),
        "softmax": jr.RuleEnsemble(rules(three), weights(7, 3), np.arange(3.0), None, "softmax"),
        "oblique": jr.RuleEnsemble(oblique(three), weights(3, 3), np.ones(3), None, "logistic"),
        "measured": jr.RuleEnsemble(measured(two), weights(2, 1), np.ones(1), None, "logistic"),
        "counts": jr.RuleEnsemble(rules(None), weights(7, 1), np.array([0.5]), None, "log"),
        "missing": jr.RuleList(
            rules(two).take([4, 0, 1]), np.array([1, 0, 1, 0], np.int32), shares, (("seed", 0),)
        ),
        "oblique-list": jr.RuleList(oblique(two), np.array([1, 0, 1, 0], np.int32), shares),
        "counted": jr.RuleList(
            rules(two).take([4, 0, 1]),
            np.array([1, 0, 1, 0], np.int32),
            shares,
            counts=np.array([[0.5, 2.0], [3.0, 0.0], [1.0, 1.0], [5.0, 3.0]]),
            weighted=True,
        ),
        "numbers-list": jr.RegressionList(
            rules(None).take([4, 0, 1]),
            np.array([1 / 3, -2.5, 1e300, 0.0]),
            (("seed", 0),),
            np.array([0.5, 3.0, 1.0, 5.0]),
            np.array([0.0, 0.1, 2.0, 1 / 7]),
            weighted=True,
            loss="absolute",
        ),
        "rates": survival(),
        "classes": path,
        "numbers": ModelSequence(**sequence(), schema=schema(None)),
        "by-class": CoordinatePath(
            **sequence()
            | {
                "models": sequence()["models"][..., None] * np.array([1.0, -0.25, 1 / 3]),
                "intercepts": np.sin(np.arange(9.0)).reshape(3, 3),
            },
            schema=schema(three),
            features=np.array([3, 0]),
            step_weights=np.array([1.0, 0.5]),
            link="softmax",
        ),
    }


def answers(model: Any) -> dict[str, Any]:
    """What the model says about the rows, as JSON holds it."""
    if isinstance(model, SurvivalModel):
        return {"survival": model.survival(frame(), TIMES).tolist()}
    shown = {"predict": np.asarray(jr.predict(model, frame())).tolist()}
    if not isinstance(model, (jr.RuleList, jr.RegressionList)):
        shown["decision_function"] = np.asarray(jr.decision_function(model, frame())).tolist()
    if model.schema.classes is not None:
        shown["predict_proba"] = np.asarray(jr.predict_proba(model, frame())).tolist()
    return shown


def main() -> None:
    for case, model in models().items():
        text = jr.models.persistence.to_json(model)
        document = json.loads(text)
        path = FOLDER / f"{document['type']}-{document['version']}-{case}.json"
        if path.exists():
            continue
        path.write_text(text)
        path.with_suffix(".answers").write_text(json.dumps(answers(model), indent=1) + "\n")
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
