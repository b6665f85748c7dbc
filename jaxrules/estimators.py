"""scikit-learn estimators: each learner as a class, for pipelines, searches over settings and
cross-validation::

    from jaxrules.estimators import LIREClassifier

    model = LIREClassifier(global_penalty=0.01).fit(X, y)
    print(model.model_)             # the rules
    model.predict(X_new)

The parameters are the options of the learner's `fit`, with its defaults and the loss that suits the
class. ``penalty="cv"`` chooses the penalties, or the size up to its limit, by the learner's
`cross_validate`. `fit` stores the learner's result in ``fit_`` (status, certificate, history) and
its model in ``model_``, for `jaxrules.explain`, `jaxrules.save` and so on. Dataframes may have
columns of text and categories; arrays must be numeric.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils import Tags, column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from jaxrules.data.table import (
    OrderedLabels,
    Table,
    TableLike,
    as_dataframe,
    check_order,
    check_sample_weight,
    conform,
    holds_classes,
    label_order,
    target_array,
    target_name,
)
from jaxrules.ensembles import boosting, glrm, lire, lltboost, ltrnet, rulefit
from jaxrules.ensembles.lire.options import LireOptions as LIREOptions
from jaxrules.ensembles.lire.options import LossOption as LIRELoss
from jaxrules.learning.options import FitOptions, documented, keywords, options, present_names
from jaxrules.learning.training import warn_of_counts
from jaxrules.lists import drnet, exact_list, regression_list, ssrl
from jaxrules.losses import loss_by_name
from jaxrules.models import rule_models as models
from jaxrules.models.metrics import require_known_part, used_rules
from jaxrules.paths import fitting
from jaxrules.paths.fitting import CostName
from jaxrules.tools import checks
from jaxrules.tools.fits import Fit
from jaxrules.users.importances import feature_importance

__all__ = [
    "CoordinatePathRegressor",
    "DRNetClassifier",
    "ExactRuleListClassifier",
    "GLRMClassifier",
    "GLRMRegressor",
    "LIREClassifier",
    "LIRERegressor",
    "LLTBoostClassifier",
    "LLTBoostRegressor",
    "LTRNetClassifier",
    "LTRNetRegressor",
    "RegressionListRegressor",
    "RuleBoostingClassifier",
    "RuleBoostingRegressor",
    "RuleFeatures",
    "RuleFitClassifier",
    "RuleFitRegressor",
    "SSRLClassifier",
]


Arguments = ParamSpec("Arguments")


@options
class _ForNumbers(FitOptions):
    """The options that estimators have besides those of the learner.

    Attributes:
        penalty: "fit" uses the given penalties and size; "cv" chooses them by the learner's
            `cross_validate`.
    """

    penalty: Literal["fit", "cv"] = "fit"

    without: ClassVar[tuple[str, ...]] = ("positive",)
    """Options of the learner that are not parameters."""


@options
class _ForClasses(_ForNumbers):
    """The same for classifiers.

    Attributes:
        class_weight: the weight of every row by its class; "balanced" gives all classes the same
            total weight. None for no such weights.
    """

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None

    without: ClassVar[tuple[str, ...]] = ()


def _constructor(
    kind: Callable[Arguments, FitOptions],
) -> Callable[[Callable[[Any], None]], Callable[Concatenate[Any, Arguments], None]]:
    """Decorate an `__init__`: it takes the fields of a class of options as keywords and only
    stores them, as scikit-learn requires. `fit` checks them.
    """
    of: Any = kind  # `_ForNumbers`, with the options of a learner
    left_out = (*of.of_rows, *of.without)
    fields = [parameter for parameter in keywords(of) if parameter.name not in left_out]
    known = {parameter.name: parameter.default for parameter in fields}

    def decorated(body: Callable[[Any], None]) -> Callable[Concatenate[Any, Arguments], None]:
        @functools.wraps(body)
        def __init__(self: Any, **given: Any) -> None:
            given = present_names(of, given, type(self).__name__)
            for name in given.keys() - known.keys():
                function = f"{type(self).__module__}.{type(self).__name__}"
                raise checks.unknown_argument(function, name, list(known))
            for name, value in (known | given).items():
                setattr(self, name, value)

        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        made: Any = __init__  # mypy knows no attributes of functions
        # scikit-learn reads the names of the parameters here, for `get_params` and `clone`.
        made.__signature__ = inspect.Signature([this, *fields])
        made.__doc__ = documented("Store the options of `fit`.\n\nArgs:\n", of, left_out)
        return cast("Callable[Concatenate[Any, Arguments], None]", made)

    return decorated


class _RuleModel(BaseEstimator):
    """What all estimators have in common; data are read as in scikit-learn."""

    _learner: ClassVar[Callable[..., Fit[Any]]]
    _chooser: ClassVar[Callable[..., Fit[Any]]]
    model_: Any
    fit_: Fit[Any]

    def __init_subclass__(cls, learner: Any = None) -> None:
        super().__init_subclass__()
        if learner is not None:  # a module, which classes in between lack
            # As plain attributes, functions would become methods.
            cls._learner = staticmethod(learner.fit)
            cls._chooser = staticmethod(learner.cross_validate)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as scikit-learn does."""
        learner: Any = self._learner  # as `jaxrules.learning.options.learner` made it
        return super().set_params(**present_names(learner.options, params, type(self).__name__))

    def _columns(self, X: Any, reset: bool = False) -> Any:
        """X for the learner: a `jaxrules.Table` or dataframe unchanged, anything
        else as an array of numbers.
        """
        if isinstance(X, Table):  # the model checks its names
            if reset:
                names = [source.name for source in X.schema.sources]
                self.feature_names_in_, self.n_features_in_ = np.array(names, object), len(names)
            return X
        if as_dataframe(X) is not None:
            # Names and their number only: text columns are no array of numbers.
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
            raise TypeError("X is a masked array; pass X.filled(numpy.nan)")
        finite = "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True
        # `reset` is true in fit, which needs two rows.
        try:
            return validate_data(
                self, X, reset=reset, ensure_all_finite=finite, ensure_min_samples=1 + reset
            )
        except ValueError as error:
            if hasattr(self, "missing") and "contains NaN" in str(error):
                raise ValueError(
                    "X has missing values (NaN); fill them, drop the rows, or set "
                    'missing="own_category"'
                ) from None
            raise

    def _fit(
        self, X: TableLike, y: NDArray[Any], sample_weight: ArrayLike | None, **of_rows: ArrayLike
    ) -> Self:
        learner = self._learner
        own = vars(self)
        settings = {name: own[name] for name in _parameters(learner) if name in own}
        if checks.choice("penalty", self.penalty, ("fit", "cv")) == "cv":
            settings, learner = self._left_open(settings), self._chooser
        if "groups" in of_rows and "groups" not in inspect.signature(learner).parameters:
            raise ValueError('groups is for the folds of penalty="cv"; set it, or omit groups')
        self.fit_ = learner(X, y, sample_weight=sample_weight, **settings, **of_rows)
        self.model_ = self.fit_.model
        self._importances = np.array([one.value for one in feature_importance(self.model_, X)])
        return self

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The importance of every column on the training rows, shape (columns,); they sum to 1.

        See `jaxrules.feature_importance`, which also gives standard errors.
        """
        check_is_fitted(self)
        return self._importances

    def _left_open(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings for `cross_validate`, which has defaults of its own; the settings that it
        chooses must be at those of `fit`.
        """
        known, parameters = _parameters(self._chooser), _parameters(self._learner)
        given = {
            name: value
            for name, value in settings.items()
            if not _equal(value, parameters[name].default)
        }
        for name in given:
            if name not in known:
                raise ValueError(
                    f'{name} cannot be set with penalty="cv", which chooses the penalties; leave '
                    "it at its default"
                )
        return given

    def _ask(
        self, question: Callable[..., Any], X: TableLike, **of_rows: ArrayLike
    ) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(question(self.model_, self._columns(X), **of_rows))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """The label or value of every row, shape (rows,)."""
        return self._ask(models.predict, X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        missing = getattr(self, "missing", None)
        tags.input_tags.allow_nan = isinstance(missing, str) and missing == "own_category"
        return tags


class _Classifier(ClassifierMixin, _RuleModel):
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the rules to class labels.

        Args:
            X: dataframe, or array of numbers, shape (rows, columns).
            y: labels of two or more classes, shape (rows,).
            sample_weight: not negative, shape (rows,); multiplied by the
                weights from `class_weight`.
            groups: the group of every row, shape (rows,), whose rows share a fold if folds choose
                the penalty (``penalty="cv"``; by default `RuleFitClassifier`). scikit-learn passes
                them on after ``set_fit_request(groups=True)``.
        """
        check_order(X, y=y, sample_weight=sample_weight, groups=groups)
        X = self._columns(X, reset=True)
        labels = _target(self, y)
        with np.errstate(invalid="ignore"):  # NaN, which the learner refuses
            check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) == 1:
            raise ValueError(
                f"y has only one class, {self.classes_[0]!r}; a classifier needs at least two"
            )
        _require_target(self, ("sign",), "a classifier")
        if self.class_weight is not None:
            of_class = _weights_of_classes(self.class_weight, labels)
            sample_weight = of_class * check_sample_weight(sample_weight, len(labels))
        # `classes_` is sorted, as scikit-learn has it; the model keeps the declared order.
        ordered = OrderedLabels.of(labels, label_order(y), target_name(y))
        return self._fit(X, ordered, sample_weight, **_given(groups=groups))

    @property
    def _sorted(self) -> list[int]:
        """The places of ``classes_``, which is sorted, among the classes of the model."""
        return [self.model_.schema.classes.index(label) for label in self.classes_.tolist()]

    def predict_proba(self, X: TableLike) -> NDArray[np.float64]:
        """Class probabilities in the order of ``classes_``, shape (rows, classes)."""
        return self._ask(models.predict_proba, X)[:, self._sorted]

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows with the right label; y as in `fit`."""
        return float(super().score(X, _target(self, y), sample_weight))

    def predict_log_proba(self, X: TableLike) -> NDArray[np.float64]:
        """The logarithms of `predict_proba`, shape (rows, classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class _ScoredClassifier(_Classifier):
    def decision_function(self, X: TableLike) -> NDArray[np.float64]:
        """The scores, shape (rows,) for two classes, else (rows, classes), in the order of
        ``classes_``.

        For two classes, scores above 0 mean ``classes_[1]``, as in scikit-learn, even if the
        positive class is the other one; in `jaxrules.decision_function` of ``model_``, they mean
        the positive class.
        """
        scores = self._ask(models.decision_function, X)
        if scores.ndim > 1:
            return scores[:, self._sorted]
        return scores if self._sorted == [0, 1] else -scores


class _Regressor(RegressorMixin, _RuleModel):
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the rules to numbers.

        Args:
            X: dataframe, or array of numbers, shape (rows, columns).
            y: numbers, shape (rows,).
            sample_weight: not negative, shape (rows,).
            offset, exposure: for every row, shape (rows,), as in the learner.
            groups: as for classifiers: for ``penalty="cv"``, and by default `RuleFitRegressor`.
        """
        known = _given(offset=offset, exposure=exposure, groups=groups)
        check_order(X, y=y, sample_weight=sample_weight, **known)
        X = self._columns(X, reset=True)
        _require_target(self, ("real", "count", "positive"), "a regressor")
        target = OrderedLabels.of(_target(self, y), (), target_name(y))
        if target.dtype.kind == "U":
            kind = type(self).__name__.replace("Regressor", "Classifier")
            also = f", such as {kind}" if kind in globals() else ""
            raise ValueError(f"y holds text labels, not numbers; use a classifier{also}")
        return self._fit(X, target, sample_weight, **known)

    def predict(
        self, X: TableLike, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The value of every row, shape (rows,), see `jaxrules.predict`."""
        return self._ask(models.predict, X, **_given(offset=offset, exposure=exposure))

    def score(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> float:
        """The share of the variance of y that `predict` explains, R^2.

        Raises:
            ValueError: if the model was fitted with an offset or exposure and gets none here:
                `predict` then gives rates.
        """
        known = _given(offset=offset, exposure=exposure)
        check_order(X, y=y, sample_weight=sample_weight, **known)
        predicted = self.predict(X, **known)
        if not known:
            require_known_part(self.model_)
        return float(r2_score(_target(self, y), predicted, sample_weight=sample_weight))


def _equal(value: Any, default: Any) -> bool:
    """Whether a parameter has its default; arrays, which none has, are not compared."""
    return value is default or (type(value) is type(default) and bool(value == default))


def _given(**given: ArrayLike | None) -> dict[str, ArrayLike]:
    """The arguments with a value for every row that were given."""
    return {name: values for name, values in given.items() if values is not None}


def _target(estimator: _RuleModel, y: Any) -> NDArray[Any]:
    """y as one column; None and two columns are refused with scikit-learn's messages.

    NumPy would drop a mask, and silently turn the list [1, "a"] into text.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    if isinstance(y, (list, tuple, np.ma.MaskedArray)) or label_order(y):
        return target_array(y)
    column = column_or_1d(y, warn=True)
    return target_array(column) if column.dtype.kind == "O" else column


def _weights_of_classes(class_weight: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    """The weight of every row by its class."""
    classes = np.unique(labels).tolist()
    if isinstance(class_weight, Mapping):
        for label, weight in class_weight.items():
            checks.number(f"class_weight[{label!r}]", weight, at_least=0)
        if unknown := [label for label in class_weight if label not in classes]:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not a class of y; the classes are "
                f"{classes}"
            )
    elif not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise TypeError(
            'class_weight must be None, "balanced" or a dict of weights by class, got '
            f"{class_weight!r}"
        )
    return np.asarray(compute_sample_weight(class_weight, labels), np.float64)


def _require_target(estimator: _RuleModel, targets: tuple[str, ...], what: str) -> None:
    """Refuse a loss for targets other than these, see `jaxrules.losses.Loss`."""
    loss = getattr(estimator, "loss", None)
    if loss is not None and loss_by_name(loss).target not in targets:
        raise ValueError(f"loss={loss!r} does not suit {what}; leave it at its default")


def _parameters(learner: Callable[..., Fit[Any]]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(learner).parameters.values()
    of_rows = ("sample_weight", *FitOptions.of_rows)
    own = (p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in of_rows)
    return {p.name: p for p in own}


class RuleFeatures(TransformerMixin, BaseEstimator):
    """The rules of a fitted estimator as columns of 0 and 1, for any other model.

    Args:
        estimator: one of this module, with a model of rules; it is cloned and fitted. None for
            `RuleFitClassifier`, or for `RuleFitRegressor` if y does not hold classes.

    Attributes:
        estimator_: the fitted estimator.
        rules_: its distinct rules in use, a `jaxrules.Conjunctions`.
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the estimator.

        Args:
            X, y, sample_weight: as for the estimator.

        Raises:
            TypeError: if `estimator` is not one of this module, with a model of rules.
        """
        estimator = self.estimator
        if estimator is None:
            warn_of_counts(y, "estimator=RuleFitRegressor(), or RuleFitClassifier() for classes")
            estimator = RuleFitClassifier() if holds_classes(y) else RuleFitRegressor()
        if not isinstance(estimator, _RuleModel) or isinstance(estimator, CoordinatePathRegressor):
            raise TypeError(
                "estimator must be one of jaxrules.estimators with a model of rules, got "
                f"{type(estimator).__name__}"
            )
        self.estimator_ = clone(estimator).fit(X, y, sample_weight=sample_weight)
        rules = used_rules(self.estimator_.model_)  # some may be equal
        # Backwards, so that the first of equal rules is the last to be written.
        first = {frozenset(rule): r for r, rule in reversed(list(enumerate(rules)))}
        self.rules_ = rules.take(sorted(first.values()))
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def transform(self, X: TableLike) -> NDArray[np.float64]:
        """Which rules hold, 1 or 0, shape (rows, rules)."""
        check_is_fitted(self)
        table = conform(self.estimator_._columns(X), self.rules_.schema)
        return self.rules_.satisfied(table).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The rules as text, shape (rules,)."""
        check_is_fitted(self)
        names: list[str] = []
        for r in range(len(self.rules_)):
            text = self.rules_.describe(r)
            times = names.count(text)  # thresholds that differ beyond the printed digits
            names.append(f"{text} ({times + 1})" if times else text)
        return np.array(names, object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags


class LIREClassifier(_ScoredClassifier, learner=lire):
    """Few rules, and few of them for a single prediction: `jaxrules.lire`."""

    @options
    class _Parameters(LIREOptions, _ForClasses):
        loss: LIRELoss = "logistic"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class LIRERegressor(_Regressor, learner=lire):
    """Few rules, and few of them for a single prediction: `jaxrules.lire`."""

    @options
    class _Parameters(LIREOptions, _ForNumbers):
        loss: LIRELoss = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class RuleFitClassifier(_ScoredClassifier, learner=rulefit):
    """A sparse linear model on the rules of a forest: `jaxrules.rulefit`."""

    @options
    class _Parameters(rulefit.RuleFitOptions, _ForClasses):
        loss: rulefit.LossOption = "logistic"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class RuleFitRegressor(_Regressor, learner=rulefit):
    """A sparse linear model on the rules of a forest: `jaxrules.rulefit`."""

    @options
    class _Parameters(rulefit.RuleFitOptions, _ForNumbers):
        loss: rulefit.LossOption = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class GLRMClassifier(_ScoredClassifier, learner=glrm):
    """A generalised linear rule model by column generation: `jaxrules.glrm`."""

    @options
    class _Parameters(glrm.Options, _ForClasses):
        loss: glrm.LossOption = "logistic"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class GLRMRegressor(_Regressor, learner=glrm):
    """A generalised linear rule model by column generation: `jaxrules.glrm`."""

    @options
    class _Parameters(glrm.Options, _ForNumbers):
        loss: glrm.LossOption = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class RuleBoostingClassifier(_ScoredClassifier, learner=boosting):
    """Gradient boosting that finds the best rule of every stage: `jaxrules.boosting`."""

    @options
    class _Parameters(boosting.Options, _ForClasses):
        loss: boosting.LossOption = "logistic"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class RuleBoostingRegressor(_Regressor, learner=boosting):
    """Gradient boosting that finds the best rule of every stage: `jaxrules.boosting`."""

    @options
    class _Parameters(boosting.Options, _ForNumbers):
        loss: boosting.LossOption = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class LLTBoostClassifier(_ScoredClassifier, learner=lltboost):
    """Boosted rules on sparse linear combinations of columns: `jaxrules.lltboost`."""

    @options
    class _Parameters(lltboost.Options, _ForClasses):
        loss: lltboost.LossOption = "logistic"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class LLTBoostRegressor(_Regressor, learner=lltboost):
    """Boosted rules on sparse linear combinations of columns: `jaxrules.lltboost`."""

    @options
    class _Parameters(lltboost.Options, _ForNumbers):
        loss: lltboost.LossOption = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class LTRNetClassifier(_ScoredClassifier, learner=ltrnet):
    """Rules on linear combinations of columns, from a trained network: `jaxrules.ltrnet`."""

    @options
    class _Parameters(ltrnet.LTRNetOptions, _ForClasses):
        loss: ltrnet.LossOption = "logistic"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class LTRNetRegressor(_Regressor, learner=ltrnet):
    """Rules on linear combinations of columns, from a trained network: `jaxrules.ltrnet`."""

    @options
    class _Parameters(ltrnet.LTRNetOptions, _ForNumbers):
        loss: ltrnet.LossOption = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class DRNetClassifier(_Classifier, learner=drnet):
    """A rule set (an OR of ANDs) from a trained network, for every class but one:
    `jaxrules.drnet`.
    """

    @options
    class _Parameters(drnet.DRNetOptions, _ForClasses): ...

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class SSRLClassifier(_Classifier, learner=ssrl):
    """A rule list by sequence-submodular optimisation: `jaxrules.ssrl`."""

    @options
    class _Parameters(ssrl.SSRLOptions, _ForClasses): ...

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class ExactRuleListClassifier(_Classifier, learner=exact_list):
    """The best small rule list, with a certificate: `jaxrules.exact_list`."""

    @options
    class _Parameters(exact_list.ExactListOptions, _ForClasses): ...

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class RegressionListRegressor(_Regressor, learner=regression_list):
    """A list of rules that predict numbers: `jaxrules.regression_list`."""

    @options
    class _Parameters(regression_list.RegressionListOptions, _ForNumbers): ...

    @_constructor(_Parameters)
    def __init__(self) -> None: ...


class CoordinatePathRegressor(_Regressor, learner=fitting):
    """A linear model built in interpretable steps: `jaxrules.paths`."""

    @options
    class _Parameters(fitting.PathFitOptions, _ForNumbers):
        cost: CostName | None = "squared"

    @_constructor(_Parameters)
    def __init__(self) -> None: ...
