"""What becomes of a model of several classes that are fitted together: files and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jaxrules as jr


def check_files_and_exports(model: jr.RuleEnsemble, frame: pd.DataFrame, folder: Path) -> None:
    """The saved model, SQL and Python predict as the model does; its texts name the classes."""
    duckdb = pytest.importorskip("duckdb")
    labels, p = np.asarray(jr.predict(model, frame)), np.asarray(jr.predict_proba(model, frame))
    classes = model.schema.classes or ()
    jr.save(model, folder / "model.json")
    loaded = jr.load(folder / "model.json")
    np.testing.assert_array_equal(jr.predict_proba(loaded, frame), p)
    assert str(loaded) == str(model)
    assert all(name in str(model) and name in model._repr_html_() for name in classes)
    assert str(classes[0]) in jr.to_latex(model)
    asked = [jr.to_sql(model), *(jr.to_sql(model, "probability", label=name) for name in classes)]
    found = duckdb.sql(f"SELECT {', '.join(asked)} FROM frame").fetchall()
    assert [row[0] for row in found] == labels.tolist()
    np.testing.assert_allclose([row[1:] for row in found], p, rtol=1e-12)
    names: dict[str, Any] = {}
    exec(compile(jr.to_python(model), "exported", "exec"), names)
    rows = frame.to_dict("records")
    assert [names["predict"](row) for row in rows] == labels.tolist()
    by_label = [names["probabilities"](row) for row in rows]
    np.testing.assert_allclose([[one[name] for name in classes] for one in by_label], p, rtol=1e-12)
    assert 'normalizationMethod="softmax"' in jr.to_pmml(model)
    assert jr.explain(model, frame[:1])[0].runner_up in classes
