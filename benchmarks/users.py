"""One row and one report of jaxrules and of other packages: the sizes and times of
docs/coming-from.md.

    JAXRULES_DATA=/folder python benchmarks/users.py jaxrules

or interpret, shapash (with its extra "report"), optbinning and lifelines, each with its package.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

FICO = Path(os.environ["JAXRULES_DATA"]) / "fico.csv.gz"
PAGE = Path(tempfile.mkdtemp()) / "page.html"


def report(call, page=None, calls=100):
    """The CPU milliseconds of a call, and the size of a page in MB."""
    call()
    start = time.process_time()
    for _ in range(calls):
        call()
    print(f"one row {(time.process_time() - start) / calls * 1e3:.2g} CPU ms")
    if page is not None:
        print(f"page {page.stat().st_size / 1e6:.2f} MB")


def jaxrules(X, y):
    import jaxrules as jr

    table = jr.as_table(X[:7000], special_values={name: [-7, -8, -9] for name in X})
    model = jr.boosting.fit(table, y[:7000], max_rules=8, positive="Bad").model
    jr.report(jr.scaled_scorecard(model), X[7000:], y[7000:], PAGE)
    report(lambda: jr.predict_proba(model, X[7000:7001]), PAGE)
    alone, row = {}, X[7000:7001].to_dict("records")[0]
    exec(jr.to_python(model), alone)
    report(lambda: alone["predict"](row))


def interpret(X, y):
    from interpret import preserve
    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(n_jobs=1, outer_bags=2, interactions=0)
    model.fit(X[:3000], y[:3000])
    preserve(model.explain_global(), file_name=str(PAGE))
    report(lambda: model.predict_proba(X[7000:7001]), PAGE)


def shapash(X, y):
    from shapash import SmartExplainer
    from sklearn.ensemble import RandomForestClassifier

    y = (y == "Bad").astype(int)
    model = RandomForestClassifier(30, max_depth=5, random_state=0).fit(X[:3000], y[:3000])
    explainer = SmartExplainer(model)
    explainer.compile(x=X[7000:8000], y_target=y[7000:8000])
    given = {"x_train": X[:3000], "y_train": y[:3000], "y_test": y[7000:8000]}
    explainer.generate_report(str(PAGE), **given)
    predictor = explainer.to_smartpredictor()
    row = X[7000:7001]
    report(lambda: (predictor.add_input(x=row), predictor.detail_contributions()), PAGE, 10)


def optbinning(X, y):
    from optbinning import BinningProcess, Scorecard
    from sklearn.linear_model import LogisticRegression

    scale = {"pdo": 20, "odds": 50, "scorecard_points": 600}
    card = Scorecard(
        BinningProcess(list(X), special_codes=[-7, -8, -9]),
        LogisticRegression(C=0.1, max_iter=500),
        scaling_method="pdo_odds",
        scaling_method_params=scale,
    ).fit(X[:7000], (y[:7000] == "Bad").astype(int))
    report(lambda: card.score(X[7000:7001]))


def lifelines(X, y):
    from lifelines import CoxPHFitter
    from lifelines.datasets import load_rossi

    men = load_rossi()
    cox = CoxPHFitter().fit(men, "week", "arrest")
    report(lambda: cox.predict_survival_function(men[:1], times=[20]))


if __name__ == "__main__":
    data = pd.read_csv(FICO)
    target = data.pop("target")
    globals()[sys.argv[1]](data, target)
