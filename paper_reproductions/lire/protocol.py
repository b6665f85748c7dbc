"""What is fitted and how: the protocol of Section 5 and Appendix B, one fold of one method at a
time.

Ten folds, scikit-learn's ``StratifiedKFold(10)`` without a shuffle. Candidate rules are
the nodes of a random forest of 100 trees of depth at most 3, fitted on all rows of the
training fold. Penalties are chosen by the AUC on a fifth of them; the model is then fitted
again on the whole training fold.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules import datasets, lire
from jaxrules.ensembles import glrm, rulefit
from jaxrules.ensembles.extraction import extract_rules, tree_rules
from jaxrules.ensembles.growing import default_forest
from paper_reproductions.framework import Cell, Row, Settings
from paper_reproductions.lire import published

FOLDS = 10
SOURCES: dict[str, tuple[str, Any]] = {
    "adult": ("adult_train", "<=50K"),
    "bank": ("bank", 1),
    "heart": ("heart", 1),
    "fico": ("fico_lire", 1),
    "compas": ("compas_lire", 1),
}
"""Name in `jaxrules.datasets` and the label that is class 1 (F1 and AUC are its)."""

PENALTIES: dict[str, tuple[float, ...]] = {
    "LIRE": (0.0002, 0.0004, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004, 0.005),
    "LIRE, published search": (0.001, 0.002, 0.003, 0.004, 0.005),
    "RuleFit": (0.0005, 0.00075, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05),
    "GLRM": (0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1),
    "KernelSVM": (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0),
}
"""Table 3. LIRE's grid also goes to a fifth of the paper's: the better search is
sparser at the same penalty.
"""
TREES, LEAVES = (100, 300, 500), (64, 128, 256)
PUBLISHED = "LIRE, published search"
RULE_METHODS = ("LIRE", PUBLISHED, "RuleFit", "GLRM")
METHODS = (*RULE_METHODS, "RF", "LightGBM", "KernelSVM")
COMPILED = ("LIRE", "RuleFit", "GLRM")
"""Methods whose first fit compiles kernels."""
SVM_ROWS = {"adult": 5000}
"""Training rows that KernelSVM sees, where not all: Adult would take hours."""
GLRM_RULES = 200
"""Rules that column generation adds at most, as in the author's runs."""

PUBLISHED_ITERATIONS, PUBLISHED_TUNING_ITERATIONS = 5000, 2000
"""Of the published search, on all training rows and where penalties are chosen."""
TRADEOFF_ITERATIONS = 100
"""Of the published search in the trade-off figures: the default of the author's program, which his
script for them keeps.
"""

TRADEOFF_PENALTIES = (0.0002, 0.0005, 0.00075, 0.001, 0.0025, 0.005)
"""Figures 2, 3, 6 to 9: gamma; the author's runs had the last five."""
TRADEOFF_SUPPORT = 150
"""Most rules in these figures. Where lambda is a thousand times gamma, rules that cover
next to nothing lower the objective without end, by lowering the mean coverage; the
author's models have at most 122.
"""
TRADEOFF_SECONDS = 40.0
"""Limit of one fit in these figures, for the same reason; column ``status``
tells which fits reached it.
"""
TRADEOFF_RULEFIT = (0.0005, 0.001, 0.005, 0.01, 0.05)
LOCAL_PENALTIES = (0.1, 0.5, 1.0, 5.0, 10.0)
"""Figures 3 and 9: lambda."""
MAIN_LOCAL_PENALTY = 1.0
"""Figures 2 and 8: the lambda at which the published search runs on all folds."""
UNLIMITED, UNLIMITED_FOLDS = f"{PUBLISHED}, to its end", 4
"""The same until no move improves, at the three smallest gammas of the author, and on how many
folds.
"""
SEARCHED_FOLDS = 1
"""The first folds on which it runs at the others, too; on all with ``--slow``. A fold takes some
minutes.
"""


# Data


def files(cell: Cell) -> tuple[str, ...]:
    """What a cell loads."""
    return (SOURCES[dict(cell.key).get("data", "adult")][0],)


class Split(NamedTuple):
    """Features and a 0/1 target."""

    X: jr.Table
    y: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Split:
        return Split(self.X[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: rows to train on, rows to test on, and the candidate rules of the forest."""

    train: Split
    test: Split
    rules: jr.Conjunctions
    forest: Any
    data: str
    index: int

    def tuning(self) -> tuple[Split, Split]:
        """The training rows, four fifths to fit and one to choose penalties by."""
        from sklearn.model_selection import StratifiedShuffleSplit

        splitter = StratifiedShuffleSplit(1, test_size=0.2, random_state=self.index)
        inside, outside = next(splitter.split(self.train.y, self.train.y))
        return self.train.take(inside), self.train.take(outside)


@functools.lru_cache(maxsize=1)
def load(data: str, rows: int | None = None) -> Split:
    """A data set of the paper, or its first rows."""
    name, positive = SOURCES[data]
    found = datasets.load(name)
    return Split(found.X, (found.y == positive).astype(np.int64)).take(np.arange(len(found))[:rows])


@functools.lru_cache(maxsize=2)
def fold_of(data: str, index: int, seed: int, rows: int | None = None) -> Fold:
    """One of the ten folds, with its forest."""
    from sklearn.model_selection import StratifiedKFold

    everything = load(data, rows)
    inside, outside = list(StratifiedKFold(FOLDS).split(everything.y, everything.y))[index]
    train = everything.take(inside)
    forest = default_forest(train.X, train.y, seed=seed)
    return Fold(
        train, everything.take(outside), extract_rules(forest, train.X), forest, data, index
    )


# Methods: every one is fitted at one setting, or quickly at several


Model = Any  # a jaxrules model or a fitted scikit-learn classifier
Setting = tuple[Any, ...]


@dataclass(frozen=True)
class Method:
    """How a method is tuned and fitted.

    Attributes:
        settings: what tuning tries.
        fit: (data, fold, setting) -> model.
        path: (data, fold, settings) -> one model per setting, if that is faster than one by one.
    """

    settings: Sequence[Setting]
    fit: Callable[[Split, Fold, Setting], Model]
    path: Callable[[Split, Fold, Sequence[Setting]], Iterable[Model]] | None = None

    def models(self, data: Split, fold: Fold) -> Iterable[Model]:
        """A model for every setting."""
        if self.path is not None:
            return self.path(data, fold, self.settings)
        return (self.fit(data, fold, setting) for setting in self.settings)


def _one_per(values: Sequence[Any]) -> list[Setting]:
    return [(value,) for value in values]


def _fit_lire(data: Split, fold: Fold, setting: Setting) -> Model:
    (gamma,) = setting
    return lire.fit(
        data.X,
        data.y,
        global_penalty=gamma,
        local_penalty=2 * gamma,
        loss="exponential",
        l2_penalty=0.0,
        rules=fold.rules,
        missing="own_category",
    ).model


def _lire_path(data: Split, fold: Fold, settings: Sequence[Setting]) -> list[Model]:
    """Without restarts, which would take most of the time on Heart."""
    gammas = [gamma for (gamma,) in settings]
    fits = lire.path(
        data.X,
        data.y,
        global_penalties=gammas,
        loss="exponential",
        l2_penalty=0.0,
        rules=fold.rules,
        missing="own_category",
        restarts=0,
    )
    found = dict(zip(sorted(gammas, reverse=True), fits, strict=True))
    return [found[gamma].model for gamma in gammas]


def _fit_published(data: Split, fold: Fold, setting: Setting) -> Model:
    (gamma,) = setting
    return lire.published(
        data.X,
        data.y,
        global_penalty=gamma,
        local_penalty=2 * gamma,
        rules=fold.rules,
        missing="own_category",
        max_iterations=PUBLISHED_ITERATIONS if data is fold.train else PUBLISHED_TUNING_ITERATIONS,
    ).model


def _fit_rulefit(data: Split, fold: Fold, setting: Setting) -> Model:
    (gamma,) = setting
    return rulefit.fit(
        data.X, data.y, l1_penalty=gamma, rules=fold.rules, missing="own_category"
    ).model


def _rulefit_path(data: Split, fold: Fold, settings: Sequence[Setting]) -> list[Model]:
    gammas = [gamma for (gamma,) in settings]
    fits = rulefit.path(
        data.X, data.y, l1_penalties=gammas, rules=fold.rules, missing="own_category"
    )
    found = dict(zip(sorted(gammas, reverse=True), fits, strict=True))
    return [found[gamma].model for gamma in gammas]


def _fit_glrm(data: Split, fold: Fold, setting: Setting) -> Model:
    (price,) = setting
    return glrm.fit(
        data.X,
        data.y,
        rule_penalty=price,
        condition_penalty=0.2 * price,
        max_rules=GLRM_RULES,
        max_cut_points=9,
        debias=True,
        missing="own_category",
        tolerance=1e-4,
    ).model


def _fit_forest(data: Split, fold: Fold, setting: Setting) -> Model:
    from sklearn.ensemble import RandomForestClassifier

    trees, leaves = setting
    return Scikit(
        RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=fold.index)
    ).fit(data)


def _fit_lightgbm(data: Split, fold: Fold, setting: Setting) -> Model:
    from lightgbm import LGBMClassifier

    trees, leaves = setting
    model = LGBMClassifier(
        n_estimators=trees, num_leaves=leaves, random_state=fold.index, verbosity=-1, n_jobs=1
    )
    return Scikit(model).fit(data)


def _fit_svm(data: Split, fold: Fold, setting: Setting) -> Model:
    from sklearn.svm import SVC

    rows = SVM_ROWS.get(fold.data, len(data.y))
    if rows < len(data.y):
        data = data.take(np.random.default_rng(fold.index).choice(len(data.y), rows, replace=False))
    return Scikit(SVC(C=setting[0])).fit(data)


def methods(settings: Settings) -> dict[str, Method]:
    """All methods with the settings that are tried: Table 3, or fewer in small."""
    grid = {
        name: (values[:: max(1, len(values) // 2)] if settings.quick else values)
        for name, values in PENALTIES.items()
    }
    forests = [(trees, leaves) for trees in TREES for leaves in LEAVES]
    if settings.quick:
        grid["LIRE"] = (0.0004, 0.001, 0.003)
        grid["RuleFit"] = (0.0025, 0.01)  # small supports: few kernels to compile
        grid["GLRM"] = (0.001, 0.01)
        forests = forests[:1]
    return {
        "LIRE": Method(_one_per(grid["LIRE"]), _fit_lire, _lire_path),
        "LIRE, published search": Method(_one_per(grid["LIRE, published search"]), _fit_published),
        "RuleFit": Method(_one_per(grid["RuleFit"]), _fit_rulefit, _rulefit_path),
        "GLRM": Method(_one_per(grid["GLRM"]), _fit_glrm),
        "RF": Method(forests, _fit_forest),
        "LightGBM": Method(forests, _fit_lightgbm),
        "KernelSVM": Method(_one_per(grid["KernelSVM"]), _fit_svm),
    }


class Scikit:
    """A scikit-learn classifier on one-hot columns, missing categories as columns of their own."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, data: Split) -> Scikit:
        import warnings

        self.columns = data.X.one_hot()[1]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            self.classifier.fit(self._matrix(data.X), data.y)
        return self

    def _matrix(self, X: jr.Table) -> NDArray[np.float64]:
        """The columns of the training data, whichever categories `X` has."""
        return np.stack(
            [
                X.columns[column.feature]
                if column.category is None
                else X.columns[column.feature] == column.category
                for column in self.columns
            ],
            axis=1,
        ).astype(np.float64)

    def score(self, X: jr.Table) -> NDArray[np.float64]:
        """What rows are ranked by."""
        matrix = self._matrix(X)
        if hasattr(self.classifier, "decision_function"):
            return np.asarray(self.classifier.decision_function(matrix))
        return np.asarray(self.classifier.predict_proba(matrix))[:, 1]

    def predict(self, X: jr.Table) -> NDArray[np.int64]:
        return np.asarray(self.classifier.predict(self._matrix(X)))


# Measures


def score(model: Model, X: jr.Table) -> NDArray[np.float64]:
    """What rows are ranked by for the AUC."""
    return (
        model.score(X)
        if isinstance(model, Scikit)
        else np.asarray(jr.decision_function(model, X), np.float64).ravel()
    )


def quality(model: Model, data: Split) -> dict[str, float]:
    """Accuracy, F1 of class 1, AUC; for rule ensembles also support,
    local support and their ratio.
    """
    from sklearn.metrics import f1_score, roc_auc_score

    predicted = (
        model.predict(data.X)
        if isinstance(model, Scikit)
        else np.asarray(jr.predict(model, data.X))
    )
    measured = {
        "accuracy": float(np.mean(predicted == data.y)),
        "f1": float(f1_score(data.y, predicted)),
        "auc": float(roc_auc_score(data.y, score(model, data.X))),
    }
    if not isinstance(model, Scikit):
        size, local = jr.support(model), jr.local_support(model, data.X)
        measured |= {
            "support": size,
            "local_support": local,
            "ratio": local / size if size else 0.0,
        }
    return measured


def _area(model: Model, data: Split) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(data.y, score(model, data.X)))


# Cells


def folds(settings: Settings) -> range:
    """The folds that are asked for."""
    return settings.first_folds(FOLDS)


def comparison_cells(settings: Settings) -> list[Cell]:
    """Section 5.3: every method but the published search, on every fold of every data set; in
    small, two data sets.
    """
    data_sets = (
        ("heart", "compas") if settings.quick else ("heart", "bank", "compas", "fico", "adult")
    )
    return [
        Cell.of(data=data, fold=fold, method=method)
        for data in data_sets
        for fold in folds(settings)
        for method in METHODS
        if method != PUBLISHED
    ]


def published_comparison_cells(settings: Settings) -> list[Cell]:
    """Section 5.3: the published search on every fold of every data set."""
    return [
        Cell.of(data=cell["data"], fold=cell["fold"], method=PUBLISHED)
        for cell in comparison_cells(settings)
        if cell["method"] == "LIRE"
    ]


def measure_comparison(cell: Cell, settings: Settings) -> Row:
    """Choose the penalties by AUC, fit again, and measure on the test rows.

    ``seconds`` and ``cpu_seconds`` (all threads) are of that fit, or of a second one
    if the first may compile.
    """
    fold = fold_of(cell["data"], cell["fold"], settings.seed)
    method = methods(settings)[cell["method"]]
    fitting, choosing = fold.tuning()
    areas = [_area(model, choosing) for model in method.models(fitting, fold)]
    chosen = method.settings[int(np.argmax(areas))]
    if cell["method"] in COMPILED:
        method.fit(fold.train, fold, chosen)
    wall, processor = time.perf_counter(), time.process_time()
    model = method.fit(fold.train, fold, chosen)
    seconds = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - processor,
    }
    return {**quality(model, fold.test), **seconds, "chosen": " ".join(map(str, chosen))}


def path_cells(settings: Settings) -> list[Cell]:
    """LIRE at every penalty of the grid, for models as accurate as the paper's."""
    return [
        Cell.of(data=cell["data"], fold=cell["fold"])
        for cell in comparison_cells(settings)
        if cell["method"] == "LIRE"
    ]


def measure_path(cell: Cell, settings: Settings) -> list[Row]:
    """One row per gamma, fitted on all training rows."""
    fold = fold_of(cell["data"], cell["fold"], settings.seed)
    method = methods(settings)["LIRE"]
    return [
        {"penalty": gamma, "local_penalty": 2 * gamma, **quality(model, fold.test)}
        for (gamma,), model in zip(method.settings, method.models(fold.train, fold), strict=True)
    ]


PUBLISHED_SETS = ("compas", "heart", "bank", "fico")
"""Where the published search runs at all of the paper's gammas, not only at those chosen."""


def published_path_cells(settings: Settings) -> list[Cell]:
    """One cell per data set and fold."""
    return [
        Cell.of(data=data, fold=fold, method="published search by gamma")
        for data in PUBLISHED_SETS
        for fold in (() if settings.quick else folds(settings))
    ]


def measure_published_path(cell: Cell, settings: Settings) -> list[Row]:
    """The published search at every gamma of the paper's, a row each."""
    fold = fold_of(cell["data"], cell["fold"], settings.seed)
    return [
        {"penalty": gamma, **quality(_fit_published(fold.train, fold, (gamma,)), fold.test)}
        for gamma in PENALTIES[PUBLISHED]
    ]


def data_cells(settings: Settings) -> list[Cell]:
    """Table 2."""
    return [Cell.of(data=data, fold=fold) for data in SOURCES for fold in folds(settings)]


def measure_data(cell: Cell, settings: Settings) -> Row:
    """Rows, one-hot columns, and rules: different lists of conditions (the paper's),
    and different rows (ours).
    """
    fold = fold_of(cell["data"], cell["fold"], settings.seed)
    everything = load(cell["data"])
    nodes = tree_rules(fold.forest, fold.train.X).conjunctions
    return {
        "rows": len(everything.y),
        "columns": len(everything.X.one_hot()[1]),
        "rules": len({nodes.describe(node) for node in range(len(nodes))}),
        "distinct_rules": len(fold.rules),
    }


def _tradeoff_rows(settings: Settings) -> int | None:
    return 6000 if settings.quick else None


def tradeoff_cells(settings: Settings) -> list[Cell]:
    """Sections 5.1 and 5.2, on Adult: RuleFit, and LIRE at every lambda; in small, fewer rows."""
    local = (0.1, MAIN_LOCAL_PENALTY) if settings.quick else LOCAL_PENALTIES
    cells = []
    for fold in folds(settings):
        cells.append(Cell.of(method="RF", local_penalty=0.0, fold=fold))
        cells.append(Cell.of(method="RuleFit", local_penalty=0.0, fold=fold))
        cells += [Cell.of(method="LIRE", local_penalty=penalty, fold=fold) for penalty in local]
    return cells


def published_tradeoff_cells(settings: Settings) -> list[Cell]:
    """Sections 5.1 and 5.2: the published search, at the main lambda before the others."""
    cells = [
        Cell.of(method=PUBLISHED, local_penalty=cell["local_penalty"], fold=cell["fold"])
        for cell in tradeoff_cells(settings)
        if cell["method"] == "LIRE"
        and (
            cell["local_penalty"] == MAIN_LOCAL_PENALTY
            or settings.slow
            or (cell["fold"] < SEARCHED_FOLDS and not settings.quick)
        )
    ]
    return sorted(cells, key=lambda cell: cell["local_penalty"] != MAIN_LOCAL_PENALTY)


def unlimited_cells(settings: Settings) -> list[Cell]:
    """The published search until no move improves, not for 100 moves, on the first folds."""
    some = [] if settings.quick else folds(settings)[:UNLIMITED_FOLDS]
    return [Cell.of(method=UNLIMITED, local_penalty=MAIN_LOCAL_PENALTY, fold=fold) for fold in some]


def measure_tradeoff(cell: Cell, settings: Settings) -> list[Row]:
    """One row per gamma."""
    fold = fold_of("adult", cell["fold"], settings.seed, _tradeoff_rows(settings))
    train = fold.train
    if cell["method"] == "RF":
        forest = Scikit(fold.forest)
        forest.columns = train.X.one_hot()[1]
        return [{"penalty": 0.0, **quality(forest, fold.test)}]
    if cell["method"] == "RuleFit":
        penalties = TRADEOFF_RULEFIT[2:] if settings.quick else TRADEOFF_RULEFIT
        fits = rulefit.path(
            train.X, train.y, l1_penalties=penalties, rules=fold.rules, missing="own_category"
        )
        return [
            {"penalty": fit.details["l1_penalty"], **quality(fit.model, fold.test)} for fit in fits
        ]
    if cell["method"] in (PUBLISHED, UNLIMITED):
        limited = cell["method"] == PUBLISHED
        learner, gammas = lire.published, TRADEOFF_PENALTIES[1 : None if limited else 4]
        options: dict[str, Any] = {
            "max_iterations": TRADEOFF_ITERATIONS if limited else PUBLISHED_ITERATIONS
        }
    else:
        learner, gammas = lire.fit, TRADEOFF_PENALTIES
        options = {
            "loss": "exponential",
            "l2_penalty": 0.0,
            "max_rules": TRADEOFF_SUPPORT,
            "time_limit": TRADEOFF_SECONDS,
        }
    rows: list[Row] = []
    for gamma in (0.001, 0.005) if settings.quick else gammas:
        fit = learner(
            train.X,
            train.y,
            global_penalty=gamma,
            local_penalty=cell["local_penalty"],
            rules=fold.rules,
            missing="own_category",
            **options,
        )
        measured = quality(fit.model, fold.test)
        rows.append(
            {"penalty": gamma, "objective": fit.objective, "status": str(fit.status), **measured}
        )
    return rows


PADDING = (0, 10, 50, 100, 200, 400)
PADDED_AT = (10.0, 0.0005)
"""lambda and gamma at which negligible rules are added."""
NEGLIGIBLE = 1e-9
"""Weight of a rule that changes no prediction and yet counts."""


def padding_cells(settings: Settings) -> list[Cell]:
    """A model of Figure 3's largest lambda."""
    return [Cell.of(method="padding", fold=0)]


def measure_padding(cell: Cell, settings: Settings) -> list[Row]:
    """The paper's objective of a model of at most 20 rules, and of the same model with candidate
    rules of the least coverage beside them, of a weight that changes no prediction.
    """
    fold = fold_of("adult", cell["fold"], settings.seed, _tradeoff_rows(settings))
    train = fold.train
    local_penalty, gamma = PADDED_AT
    penalties = {"global_penalty": gamma, "local_penalty": local_penalty}
    model = lire.fit(
        train.X,
        train.y,
        rules=fold.rules,
        loss="exponential",
        l2_penalty=0.0,
        max_rules=20,
        missing="own_category",
        **penalties,
    ).model
    rare = np.argsort(fold.rules.satisfied(train.X).mean(axis=0), kind="stable")
    rows: list[Row] = []
    for more in PADDING:
        padded = replace(
            model,
            conjunctions=jr.Conjunctions.concatenate(
                [model.conjunctions, fold.rules.take(rare[:more])]
            ),
            weights=np.concatenate([np.asarray(model.weights), np.full((more, 1), NEGLIGIBLE)]),
        )
        value = lire.objective(padded, train.X, train.y, **penalties)
        rows.append({"more": more, "objective": value, **quality(padded, fold.test)})
    return rows


INTERCEPT_PENALTIES = (0.001, 0.01, TRADEOFF_RULEFIT[-1])
RULE_KINDS = ("distinct rows", "as listed")
"""Rules that hold for different rows, as ours; or all different lists of conditions, as the
author's, of which several may hold for the same rows."""


def rules_of(fold: Fold) -> dict[str, jr.Conjunctions]:
    """The candidate rules of each kind."""
    nodes = tree_rules(fold.forest, fold.train.X).conjunctions
    listed = {nodes.describe(node): node for node in range(len(nodes))}
    kinds = (fold.rules, nodes.take(np.array(list(listed.values()))))
    return dict(zip(RULE_KINDS, kinds, strict=True))


def intercept_cells(settings: Settings) -> list[Cell]:
    """RuleFit on the folds of the trade-off."""
    return [Cell.of(method="RuleFit, liblinear", fold=fold) for fold in folds(settings)]


def measure_intercept(cell: Cell, settings: Settings) -> list[Row]:
    """RuleFit by liblinear, the author's solver, which penalises the intercept, too: a row per
    gamma and kind of rules.
    """
    fold = fold_of("adult", cell["fold"], settings.seed, _tradeoff_rows(settings))
    rows: list[Row] = []
    for kind, rules in rules_of(fold).items():
        for gamma in INTERCEPT_PENALTIES:
            model = by_liblinear(fold.train, rules, 1 / (gamma * len(fold.train.y)), 1000)
            measured = {"intercept": float(model.intercept[0]), **quality(model, fold.test)}
            rows.append({"rules": kind, "penalty": gamma, **measured})
    return rows


def by_liblinear(train: Split, rules: jr.Conjunctions, C: float, iterations: int) -> Model:
    """The rules, weighted by the author's solver."""
    import warnings

    from scipy.sparse import csr_matrix
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    solved = LogisticRegression(
        l1_ratio=1, C=C, solver="liblinear", tol=1e-4, max_iter=iterations, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the author's runs stop there, too
        solved.fit(csr_matrix(rules.satisfied(train.X), dtype=np.float64), train.y)
    chosen = np.flatnonzero(np.abs(solved.coef_[0]) > 1e-8)  # as the author counts
    schema = replace(rules.schema, classes=(0, 1))
    return jr.RuleEnsemble(
        rules.take(chosen).with_schema(schema),
        solved.coef_[0][chosen][:, None],
        solved.intercept_,
        link="logistic",
    )


def tuning_cells(settings: Settings) -> list[Cell]:
    """RuleFit as the author tunes it, on the folds of the comparison."""
    return [
        Cell.of(method="RuleFit, liblinear", data=cell["data"], fold=cell["fold"])
        for cell in comparison_cells(settings)
        if cell["method"] == "RuleFit"
    ]


def measure_tuning(cell: Cell, settings: Settings) -> list[Row]:
    """The author's program gives a quarter of the fitting rows as their number where it tunes, so
    that it fits with gamma / 4, and fits again with gamma: a row for each kind of rules.
    """
    fold = fold_of(cell["data"], cell["fold"], settings.seed)
    fitting, choosing = fold.tuning()
    gammas, rows = PENALTIES["RuleFit"], []
    for kind, rules in rules_of(fold).items():
        areas = [
            _area(by_liblinear(fitting, rules, 1 / (gamma * len(choosing.y)), 100), choosing)
            for gamma in gammas
        ]
        chosen = gammas[int(np.argmax(areas))]
        model = by_liblinear(fold.train, rules, 1 / (chosen * len(fold.train.y)), 100)
        rows.append({"rules": kind, "chosen": chosen, **quality(model, fold.test)})
    return rows


DEMONSTRATION_RULES = {"RuleFit": 8, "LIRE": 7}


def demonstration_cells(settings: Settings) -> list[Cell]:
    """Table 1: one model of each kind on Adult."""
    return [Cell.of(method=method) for method in DEMONSTRATION_RULES]


def measure_demonstration(cell: Cell, settings: Settings) -> list[Row]:
    """The largest model with as many rules as the paper's, one row per rule; and whether
    the paper's x satisfies it.
    """
    fold = fold_of("adult", 0, settings.seed, _tradeoff_rows(settings))
    train, test = fold.train, fold.test
    largest = DEMONSTRATION_RULES[cell["method"]]
    if cell["method"] == "RuleFit":
        fits = rulefit.path(
            train.X,
            train.y,
            l1_penalties=np.geomspace(0.01, 0.1, 20).tolist(),
            rules=fold.rules,
            missing="own_category",
        )
    else:
        fits = lire.path(
            train.X,
            train.y,
            global_penalties=np.geomspace(0.003, 0.03, 8).tolist(),
            local_penalties=[1.0] * 8,
            loss="exponential",
            l2_penalty=0.0,
            rules=fold.rules,
            max_rules=largest,
            missing="own_category",
        )
    sizes = [jr.support(fit.model) for fit in fits]
    model = fits[
        max((i for i, size in enumerate(sizes) if size <= largest), key=lambda i: (sizes[i], i))
    ].model
    x = _row(published.TABLE_1_INPUT, train.X)
    satisfied = model.conjunctions.satisfied(x)[0]
    measured = quality(model, test)
    rows: list[Row] = []
    for r in np.argsort(-np.abs(model.weights[:, 0])).tolist():
        rows.append(
            {
                "rule": model.conjunctions.describe(r), "weight": float(model.weights[r, 0]),
                "satisfied": int(satisfied[r]), "intercept": float(model.intercept[0]),
                "at_most_50k": int(jr.predict(model, x)[0]), **measured,
            }
        )  # fmt: skip
    return rows


def _row(values: dict[str, str | float], like: jr.Table) -> jr.Table:
    """One row as a table of the same columns."""
    columns = []
    for feature in like.schema.features:
        value = values[feature.name]
        if feature.categories is None:
            columns.append(np.array([value], np.float64))
        else:
            columns.append(np.array([feature.categories.index(str(value))], np.int32))
    return jr.Table(like.schema, tuple(columns))
