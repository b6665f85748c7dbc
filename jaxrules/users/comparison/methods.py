"""Methods to compare: the learners' own paths, scikit-learn baselines, and the user's methods.

A method maps training rows to a path: models by setting. Settings are the same for all samples, so
penalties are relative to the sample.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.groups import group_codes
from jaxrules.data.table import (
    EncodedColumn,
    Label,
    MissingRule,
    OrderedLabels,
    Table,
    TableLike,
    as_table,
    check_order,
    label_order,
    target_array,
)
from jaxrules.ensembles import boosting, glrm, lire, lltboost, ltrnet, rulefit
from jaxrules.ensembles.forests import read_forest
from jaxrules.ensembles.lire.options import LossName, deviance
from jaxrules.learning.training import training_data, without_offset
from jaxrules.lists import drnet, exact_list, regression_list, ssrl
from jaxrules.losses import Loss, logistic, squared
from jaxrules.models import rule_models as models
from jaxrules.models.metrics import Measure, complexity
from jaxrules.paths import fitting
from jaxrules.paths.data import CostName
from jaxrules.paths.model import CoordinatePath, column_names, design_matrix, encoded_columns
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Deadline
from jaxrules.users.export import to_dataframe

Floats = NDArray[np.float64]
Target = Literal["two classes", "classes", "numbers"]
KnownPart = tuple[ArrayLike | None, ArrayLike | None]
"""The offset and the exposure."""
Fits = dict[str, Fit[Any]]
"""Fits by setting."""


@dataclass(frozen=True, eq=False)
class MethodSample:
    """Some rows, as given by the user and as a table; ``sample[rows]`` selects rows.

    Attributes:
        X: the user's array, dataframe or Table.
        table: the same.
        y: labels or numbers, shape (rows,).
        weights: of the rows, shape (rows,); None if the user gave none.
        encoded: the columns of a linear model on the table.
        rows: their indices in X as the user gave it, shape (rows,).
        order: of the labels, as y declares it, see `jaxrules.data.table.label_order`.
        loss: what methods shall minimise, if the user says so.
    """

    X: Any
    table: Table
    y: NDArray[Any]
    weights: Floats | None
    encoded: tuple[EncodedColumn, ...]
    rows: NDArray[np.intp]
    order: tuple[Label, ...] = ()
    loss: Loss | None = None

    @classmethod
    def of(
        cls,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        missing: MissingRule | None,
        classes: bool,
        loss: Loss | None = None,
        known: KnownPart = (None, None),
    ) -> MethodSample:
        """All rows that have weight.

        Args:
            X, y, sample_weight, missing: as given by the user.
            classes: whether y holds classes.
            loss: of the fits, if given.
            known: the offset and the exposure of the rows. The target and the weights become
                relative to them, see `jaxrules.losses.relative`: rates with the exposure as weight.

        Raises:
            TypeError, ValueError: as `jaxrules.learning.training.training_data`.
        """
        usual = logistic if classes else squared
        check_order(X, y=y, sample_weight=sample_weight, offset=known[0], exposure=known[1])
        y, sample_weight, _ = without_offset(loss or usual, y, sample_weight, *known, False)
        data = training_data(X, y, loss or usual, sample_weight=sample_weight, missing=missing)
        if not (isinstance(X, Table) or nw.dependencies.is_into_dataframe(X)):
            # Records, which have no rows to index, are kept as a table.
            X = array if (array := np.asarray(X)).ndim == 2 else as_table(X, missing=missing)
        labels = target_array(y)[data.rows] if classes else data.target
        table = Table(data.schema, data.table.columns)
        weights = None if sample_weight is None else data.weights
        order = label_order(y) if classes else ()
        encoded = encoded_columns(table)
        return cls(_rows(X, data.rows), table, labels, weights, encoded, data.rows, order, loss)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: NDArray[np.intp]) -> MethodSample:
        weights = None if self.weights is None else self.weights[rows]
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("table", "y", "rows")}
        return replace(self, X=_rows(self.X, rows), weights=weights, **taken)

    def groups(
        self, groups: ArrayLike | None, X: TableLike, y: ArrayLike
    ) -> NDArray[np.int64] | None:
        """The group of each of these rows as an integer, for those of all rows of X.

        Raises:
            TypeError, ValueError: as `group_codes`.
        """
        if groups is None:
            return None
        check_order(X, y=y, groups=groups)
        return group_codes(groups, len(target_array(y)))[self.rows]

    @property
    def foreign(self) -> Any:
        """What estimators of other packages read: a Table as an array, or with
        categories as a dataframe.
        """
        if not isinstance(self.X, Table):
            return self.X
        numeric = all(feature.is_numeric for feature in self.X.schema.sources)
        return np.asarray(self.X) if numeric else to_dataframe(self.X)

    @property
    def matrix(self) -> Floats:
        """The table as numbers, shape (rows, encoded columns)."""
        return design_matrix(self.table, self.encoded)

    @property
    def target(self) -> Target:
        classes = self.table.schema.classes
        return "numbers" if classes is None else "two classes" if len(classes) == 2 else "classes"


def _rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of a dataframe, an array or a Table."""
    frame = nw.dependencies.is_into_dataframe(X)
    return nw.from_native(X, eager_only=True)[rows].to_native() if frame else X[rows]


@dataclass(frozen=True)
class Method:
    """A method that fits models.

    Attributes:
        path: a function of X, y, and those of missing, sample_weight, seed, time_limit and target
            that it accepts; returns models by setting, a sequence of them, or one: a `Fit`, a model
            of this library, or an estimator.
        reads: the form of a `MethodSample` that it gets as X.
        targets: that it can learn.
        losses: the names of the losses that it can minimise; None for all, or if it has none.
        inside: other options of the path where it only serves to choose a setting.
    """

    path: Callable[..., Any]
    reads: Literal["table", "matrix", "X", "foreign"] = "X"
    targets: tuple[Target, ...] = ("two classes", "classes", "numbers")
    losses: tuple[str, ...] | None = None
    inside: Mapping[str, Any] | None = None

    def learns(self, sample: MethodSample) -> str:
        """What it cannot learn of these rows; empty if it can."""
        if sample.target not in self.targets:
            return f"the method does not learn {sample.target}"
        if sample.loss and self.losses is not None and sample.loss.name not in self.losses:
            return f"the method does not minimise the loss {sample.loss.name!r}"
        return ""

    def fits(
        self, sample: MethodSample, seed: int, time_limit: float | None, inside: bool = False
    ) -> dict[str, Any]:
        """The path on these rows: `Fit`, model or estimator by setting.

        Args:
            inside: whether it only serves to choose a setting.

        Raises:
            ValueError: for weights that it does not take; also errors of the path.
        """
        if refused := self.learns(sample):
            raise ValueError(refused)
        options = {
            "loss": sample.loss,
            "target": sample.target,
            "missing": sample.table.schema.missing,
            "seed": seed,
            "time_limit": time_limit,
            "sample_weight": sample.weights,
        }
        options = {name: v for name, v in options.items() if v is not None or name in _ALWAYS}
        if self.reads in ("X", "foreign"):
            del options["target"]
        taken = {name: value for name, value in options.items() if name in _options(self.path)}
        taken |= (inside and self.inside) or {}
        if sample.weights is not None and "sample_weight" not in taken:
            raise ValueError("the method does not take sample_weight")
        y = OrderedLabels.of(sample.y, sample.order)
        found = self.path(getattr(sample, self.reads), y, **taken)
        if isinstance(found, Mapping):
            return {str(setting): one for setting, one in found.items()}
        several = isinstance(found, (list, tuple)) and not isinstance(found, Fit)
        return {str(place): one for place, one in enumerate(found, 1)} if several else {"": found}

    def takes(self, option: str) -> bool:
        """Whether the path takes an option of this name."""
        return option in _options(self.path)

    def predicted(self, model: Any, sample: MethodSample) -> NDArray[Any]:
        """Labels or numbers, shape (rows,)."""
        X, model = getattr(sample, self.reads), model_of(model)
        ours = hasattr(model, "schema")
        return np.asarray(models.predict(model, X) if ours else model.predict(X))

    def probabilities(self, model: Any, sample: MethodSample) -> Floats:
        """Shape (rows, classes), in the order of the classes of the table; 0 for a
        class unknown to the model.

        Raises:
            TypeError: if the model has none.
        """
        X, model = getattr(sample, self.reads), model_of(model)
        if hasattr(model, "schema"):
            known, given = model.schema.classes, np.asarray(models.predict_proba(model, X))
        elif hasattr(model, "predict_proba"):
            known, given = model.classes_, np.asarray(model.predict_proba(X))
        else:
            raise TypeError(f"{type(model).__name__} has no predict_proba")
        classes = list(sample.table.schema.classes or ())
        probabilities = np.zeros((len(given), len(classes)))
        probabilities[:, [classes.index(label) for label in np.asarray(known).tolist()]] = given
        return probabilities


_ALWAYS = {"target", "missing", "seed", "time_limit"}
_GIVEN = {*_ALWAYS, "sample_weight", "loss"}
"""What a method gets if it takes it; weights and a loss only if the user gave them."""


def _options(path: Callable[..., Any]) -> set[str]:
    """The keyword arguments that a function takes and that are not bound yet."""
    bound = path.keywords if isinstance(path, functools.partial) else {}
    parameters = inspect.signature(path).parameters.values()
    # A function of **kwargs accepts every keyword.
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return _GIVEN - set(bound)
    return {parameter.name for parameter in parameters} - set(bound)


def model_of(found: Any) -> Any:
    """The model of a `Fit`, or of an estimator of this library; other things as they are."""
    return found.model if isinstance(found, Fit) else getattr(found, "model_", found)


def relative_model(found: Any, relative_to: str) -> Any:
    """The same, with a mark on its model that it was fitted with an offset or exposure, if so."""
    model = getattr(found, "model", None)
    if not relative_to or not isinstance(found, Fit) or not hasattr(model, "options"):
        return found
    marked = replace(found.model, options=(*found.model.options, (models.RELATIVE_TO, relative_to)))
    return replace(found, model=marked)


def was_cut(found: Any) -> bool:
    """Whether a time limit ended the fit."""
    fit = getattr(found, "fit_", found)
    return isinstance(fit, Fit) and fit.status is Status.TIME_LIMIT


def size_of(found: Any, measure: Measure) -> float:
    """The complexity of a model, see `jaxrules.complexity`.

    A linear model of scikit-learn counts its nonzero coefficients as linear terms; a tree counts
    each leaf as a rule and each split as one proposition; an ensemble sums its trees; a pipeline
    counts as its last step. Models of imodels and interpret are counted in the same units, see
    `_size_of_peer`. NaN for anything else.
    """
    model = model_of(found)
    if isinstance(model, CoordinatePath):
        return float(complexity(model))
    if hasattr(model, "schema"):
        return float(complexity(model, measure))
    if hasattr(model, "steps"):
        return size_of(model.steps[-1][1], measure)
    if hasattr(model, "coef_"):
        return float(np.atleast_2d(model.coef_).any(axis=0).sum())
    try:
        trees = read_forest(model).trees
    except TypeError:
        return _size_of_peer(model, measure)
    split = ~trees.is_leaf
    leaves = trees.is_leaf & (trees.parent >= 0)  # a tree of one leaf is a constant
    return float(leaves.sum() + (2 if measure == "nonzeros" else 1) * split.sum())


def _size_of_peer(model: Any, measure: Measure) -> float:
    """The complexity of a model of imodels or interpret, read from its public attributes.

    imodels: ``rules_`` are rules, of conditions joined by "and" (a linear RuleFit counts those with
    a coefficient), ``trees_`` (FIGS) count as trees, and models around an estimator as that. An EBM
    of interpret counts, for every step of a term's function, a rule with one proposition, and for
    every cell of a pair that is not 0, a rule with two.
    """
    if hasattr(model, "term_scores_"):
        total = 0
        for scores in model.term_scores_:
            inner = np.asarray(scores)[(slice(1, -1),) * np.ndim(scores)]  # no missing, unknown
            steps = np.count_nonzero(np.diff(inner) if inner.ndim == 1 else inner)
            total += (1 + inner.ndim) * int(steps)
        return float(total)
    if rules := getattr(model, "rules_", None):
        # A linear RuleFit has the coefficients of the columns before those of the rules.
        weights = np.ravel(getattr(model, "coef", np.ones(len(rules))))
        used = [rule for rule, w in zip(rules, weights[-len(rules) :], strict=False) if w]
        conditions = sum(1 + str(rule).count(" and ") for rule in used)
        per_condition = 2 if measure == "nonzeros" else 1
        linear = np.count_nonzero(weights[: -len(rules)])
        return float(len(used) + per_condition * conditions + linear)
    if hasattr(model, "trees_"):
        return float(sum(_size_of_node(tree, measure) for tree in model.trees_))
    parts = getattr(model, "estimators_", [getattr(model, "estimator_", None)])
    parts = [part for part in parts if part is not None]
    return float(sum(size_of(part, measure) for part in parts)) if parts else float("nan")


def _size_of_node(node: Any, measure: Measure) -> int:
    """The leaves and splits below a node of FIGS."""
    if node.left is None and node.right is None:
        return 1
    split = 2 if measure == "nonzeros" else 1
    return split + sum(_size_of_node(one, measure) for one in (node.left, node.right))


# The learners of this library; settings are named as in their `fit`

_RULES = 10
"""The longest ensemble, in rules."""


def _ours(
    path: Callable[..., Any],
    X: Table,
    y: NDArray[Any],
    *,
    target: Target,
    loss: Loss | None = None,
    minimises: bool = True,
    **options: Any,
) -> Any:
    """A path of fits with the loss of the user, or the usual one of the target; lists have none."""
    if minimises:
        options["loss"] = loss or (squared if target == "numbers" else logistic)
    return path(X, y, **options)


def _numbered(
    path_of: Callable[..., Sequence[Fit[Any]]], X: Table, y: NDArray[Any], **options: Any
) -> Fits:
    """The models of a path of 1, 2, ... rules; a path that ended early repeats its last model."""
    path = path_of(X, y, max_rules=_RULES, **options)
    cut = path[-1].status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    length = len(path) if cut else _RULES
    return {f"max_rules={m}": path[min(m, len(path)) - 1] for m in range(1, length + 1)}


def _lire(
    X: Table,
    y: NDArray[Any],
    *,
    loss: Loss,
    missing: MissingRule,
    sample_weight: Floats | None = None,
    **options: Any,
) -> Fits:
    options |= {"sample_weight": sample_weight, "missing": missing, "loss": loss}
    data = training_data(X, y, loss, sample_weight=sample_weight, missing=missing)
    # Relative to the loss of the best constant, so that a setting means the same in every fold.
    unit = deviance(data, joint=data.target.ndim > 1)
    shares = (0.1, 0.03, 0.01, 0.005, 0.002)
    path = lire.path(X, y, global_penalties=[share * unit for share in shares], **options)
    # Without time for all, the path has fewer fits.
    return {
        f"global_penalty={s:g} constant_loss": fit for s, fit in zip(shares, path, strict=False)
    }


def _rulefit(X: Table, y: NDArray[Any], **options: Any) -> Fits:
    path = rulefit.path(X, y, n_penalties=13, **options)
    return {f"l1_penalty={10 ** (-i / 4):.2g} largest": fit for i, fit in enumerate(path)}


def _glrm(X: Table, y: NDArray[Any], *, time_limit: float | None, **options: Any) -> Fits:
    deadline = Deadline(time_limit)
    fits = {"default": glrm.fit(X, y, time_limit=deadline.share(1 / 3), **options)}
    path = glrm.path(X, y, time_limit=deadline.share(), **options)
    # The penalties of `path`, named by their shares of the one that excludes every rule (for
    # classes, a least penalty may replace small ones); without time for all, fewer fits.
    shares = np.geomspace(0.3, 0.01, 6)
    return fits | {f"rule_penalty={s:.2g} largest": f for s, f in zip(shares, path, strict=False)}


def _ltrnet(X: Table, y: NDArray[Any], **options: Any) -> Fits:
    penalties = (0.1, 0.01, 0.001, 0.0001)
    path = ltrnet.path(X, y, l1_penalties=penalties, **options)
    return {f"l1_penalty={penalty:g}": fit for penalty, fit in zip(penalties, path, strict=True)}


def _ssrl(X: Table, y: NDArray[Any], *, time_limit: float | None, **options: Any) -> Fits:
    """A fit for every length, each with its share of the remaining time; fewer if time runs out."""
    deadline = Deadline(time_limit)
    fits: Fits = {}
    options["literal_penalty"] = max(1.0, len(y) / 1000)
    for left, m in zip((4, 3, 2, 1), (1, 2, 4, 8), strict=True):
        if deadline.expired() and fits:
            break
        share = deadline.share(1 / left)
        fits[f"max_rules={m}"] = ssrl.fit(X, y, max_rules=m, time_limit=share, **options)
    return fits


def _regression_list(X: Table, y: NDArray[Any], **options: Any) -> Fits:
    path = regression_list.path(X, y, **options)
    return {f"max_rules={m}": fit for m, fit in enumerate(path, start=1)}


def _exact_list(X: Table, y: NDArray[Any], **options: Any) -> Fits:
    path = exact_list.path(X, y, max_rules=3, **options)
    return {f"max_rules={m}": fit for m, fit in enumerate(path, start=1)}


def _drnet(X: Table, y: NDArray[Any], **options: Any) -> Fits:
    penalties = (0.1, 0.01, 0.001)
    path = drnet.path(X, y, literal_penalties=penalties, **options)
    # Without time for all, the path has fewer fits.
    return {f"literal_penalty={p:g}": fit for p, fit in zip(penalties, path, strict=False)}


def _paths(
    X: Table, y: NDArray[Any], *, target: Target, loss: Loss | None = None, **options: Any
) -> dict[str, CoordinatePath]:
    columns = encoded_columns(X)
    constant = np.ptp(design_matrix(X, columns), axis=0) == 0  # in this fold
    names = column_names(X.schema, columns)
    steps = min(10, int(np.sum(~constant)))
    costs: dict[Target, CostName] = {
        "numbers": "squared", "two classes": "logistic", "classes": "softmax"
    }  # fmt: skip
    path = fitting.fit(
        X, y, steps=steps, method="local", cost=costs[target], standardise=True,
        forbidden=[name for name, one in zip(names, constant, strict=True) if one], **options,
    ).model  # fmt: skip
    by_step = ("models", "intercepts", "costs")

    def first(k: int) -> CoordinatePath:
        own: dict[str, Any] = {name: getattr(path, name)[: k + 1] for name in by_step}
        return replace(path, features=path.features[:k], step_weights=path.step_weights[:k], **own)

    return {f"steps={k}": first(k) for k in range(1, len(path) + 1)}


# Baselines of scikit-learn


def _linear(
    X: Floats, y: NDArray[Any], *, target: Target, seed: int, sample_weight: Floats | None = None
) -> Any:
    """The path of L1-penalised linear or logistic regression on standardised
    columns, from the first term on.
    """
    from sklearn.linear_model import Lasso, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    of_numbers = target == "numbers"
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    scaled = StandardScaler().fit(X, sample_weight=sample_weight).transform(X)
    coded = (y[:, None] if of_numbers else y[:, None] == np.unique(y)).astype(np.float64)
    # The least penalty, on the sum of the losses, that excludes every column: the largest slope of
    # the loss at the best constant, max_j |sum_i w_i x_ij (y_i - mean)| (for classes with
    # indicators as y).
    residuals = weights[:, None] * (coded - np.average(coded, axis=0, weights=weights))
    largest = float(np.abs(scaled.T @ residuals).max()) or 1.0
    fits, of_saga = {}, {"solver": "saga", "l1_ratio": 1.0, "tol": 1e-3, "max_iter": 1000}
    for share in 10.0 ** (-np.arange(1, 13) / 4):
        penalty = share * largest
        # Lasso minimises the mean loss, and LogisticRegression C times the sum + the penalty.
        if of_numbers:
            last = Lasso(alpha=penalty / weights.sum(), random_state=seed, max_iter=10_000)
        else:
            last = LogisticRegression(C=1 / penalty, random_state=seed, **of_saga)
        model = make_pipeline(StandardScaler(), last)
        given = {f"{step}__sample_weight": sample_weight for step, _ in model.steps}
        fits[f"l1_penalty={share:.2g} largest"] = model.fit(X, y, **given)
    return fits


def _each(
    kind_of: Callable[[bool, str], Any],
    setting: str,
    values: Sequence[int],
    X: Floats,
    y: NDArray[Any],
    *,
    target: Target,
    seed: int,
    sample_weight: Floats | None = None,
    loss: Loss | None = None,
) -> Any:
    """An estimator for every value of a setting."""
    kind = kind_of(target == "numbers", "" if loss is None else loss.name)
    made = {f"{setting}={m}": kind(**{setting: m}, random_state=seed) for m in values}
    return {name: one.fit(X, y, sample_weight) for name, one in made.items()}


def _tree(of_numbers: bool, loss: str) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind: Any = DecisionTreeRegressor if of_numbers else DecisionTreeClassifier
    return functools.partial(kind, criterion=loss) if loss == "poisson" else kind


def _boosted(of_numbers: bool, loss: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind: Any = HistGradientBoostingRegressor if of_numbers else HistGradientBoostingClassifier
    own = {"loss": loss} if loss in ("poisson", "gamma") else {}
    return functools.partial(kind, early_stopping=False, **own)


def _learner(
    path: Callable[..., Any], targets: tuple[Target, ...] | None = None, **of_method: Any
) -> Method:
    """The method of a learner; those for some targets only are lists, which take no loss."""
    made = functools.partial(_ours, path, minimises=targets is None)
    return Method(made, "table", targets or Method.targets, **of_method)


_CLASSES: tuple[Target, ...] = ("two classes", "classes")
METHODS: Mapping[str, Method] = {
    "boosting": _learner(functools.partial(_numbered, boosting.path)),
    # As in its own cross-validation: restarts take half of the time, and change few choices.
    "lire": _learner(_lire, losses=get_args(LossName), inside={"restarts": 0}),
    "rulefit": _learner(_rulefit),
    "glrm": _learner(_glrm),
    "lltboost": _learner(functools.partial(_numbered, lltboost.path)),
    "ltrnet": _learner(_ltrnet),
    "ssrl": _learner(_ssrl, _CLASSES),
    "exact_list": _learner(_exact_list, _CLASSES),
    "drnet": _learner(_drnet, _CLASSES),
    "regression_list": _learner(_regression_list, ("numbers",), losses=("squared",)),
    "paths": Method(_paths, "table", losses=("squared", "logistic")),
    "linear": Method(_linear, "matrix", losses=("squared", "logistic")),
    "cart": Method(
        functools.partial(_each, _tree, "max_leaf_nodes", (2, 3, 4, 6, 8, 12, 16, 24, 32)),
        "matrix",
        losses=("squared", "logistic", "poisson"),
    ),
    "gradient_boosting": Method(
        functools.partial(_each, _boosted, "max_iter", (10, 30, 100)),
        "matrix",
        losses=("squared", "logistic", "poisson", "gamma"),
    ),
}
"""By name, with a path of settings each."""
_LEARNERS: tuple[Any, ...] = (
    *(boosting, lire, rulefit, glrm, lltboost, ltrnet),
    *(ssrl, exact_list, drnet, regression_list),
)
FITS: Mapping[str, Callable[..., Fit[Any]]] = {
    module.__name__.rpartition(".")[2]: module.fit for module in _LEARNERS
}
"""The learners of rules by name, with their defaults."""


def _cloned(
    estimator: Any, X: TableLike, y: Any, *, seed: int, sample_weight: Floats | None = None
) -> Any:
    """A fitted clone of a scikit-learn estimator; the seed replaces random states of None."""
    from sklearn.base import clone

    made = clone(estimator)
    unset = [
        k
        for k, v in made.get_params().items()
        # Also those of the steps of a pipeline, such as model__random_state.
        if k.rpartition("__")[2] == "random_state" and v is None
    ]
    made.set_params(**dict.fromkeys(unset, seed))
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return made.fit(X, y, **weights)


def _takes_data(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with X, y and those of our options that it has."""
    try:
        ours = _options(function) & _GIVEN
        inspect.signature(function).bind(None, None, **dict.fromkeys(ours))
    except TypeError:
        return False
    except ValueError:  # no signature is known
        pass
    return True


def method_of(argument: str, given: Any) -> Method:
    """The method given by a user.

    Args:
        argument: where it was given.
        given: the name of one of `METHODS`, a function (X, y, ...) that returns one or more fits,
            models or estimators, or a scikit-learn estimator.

    Raises:
        TypeError, ValueError: for anything else.
    """
    if isinstance(given, str):
        if given not in METHODS:
            raise ValueError(
                f"{argument} is the unknown name {given!r}; use one of {', '.join(METHODS)}, a "
                "function or an estimator"
            )
        return METHODS[given]
    if hasattr(given, "get_params") and hasattr(given, "fit") and not isinstance(given, type):
        return Method(functools.partial(_cloned, given), "foreign")
    if callable(given) and not isinstance(given, type) and _takes_data(given):
        return Method(given)
    got = type(given).__name__
    if isinstance(given, type):
        got = f"the class {given.__name__}; pass {given.__name__}(...)"
    if inspect.ismodule(given) and hasattr(given, "fit"):
        got = f"the module {given.__name__}; pass its fit"
    raise TypeError(
        f"{argument} must be the name of a method, a function fit(X, y) or a scikit-learn "
        f"estimator, got {got}"
    )
