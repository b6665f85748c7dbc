"""From X, y and options to the problem that the searches solve, and from their solution to a
path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import (
    EncodedColumn,
    Schema,
    Table,
    TableLike,
    as_table,
    check_order,
    check_sample_weight,
    class_target,
    refuse_large,
    regression_target,
    with_target,
)
from jaxrules.learning.options import FitOptions, option, options, or_none
from jaxrules.losses import check_target, logistic, poisson, squared
from jaxrules.paths.costs import Array, LossCost, QuadraticCost, Sequence, SoftmaxCost, softmax_cost
from jaxrules.paths.model import (
    CoordinatePath,
    ModelSequence,
    column_names,
    design_matrix,
    encoded_columns,
)
from jaxrules.paths.problem import (
    Changes,
    IntegerSteps,
    PathProblem,
    geometric_weights,
    steps_between,
)
from jaxrules.tools import checks
from jaxrules.tools.fits import Settings

CostName = Literal["squared", "logistic", "poisson", "softmax"]
ByColumn = Mapping[str, float] | Mapping[int, float] | ArrayLike | None
"""A number for each column: by name or position, or as an array."""
Coefficients = ModelSequence | ByColumn
MOST_STEPS = 10_000
"""The most steps of a path."""
_LEAST_COUNT = 1e-300
"""In logarithms: the Poisson loss of a count of 0 falls towards 0."""
_RIDGE_OF_CLASSES = 1e-3
"""The default of the softmax cost."""
_CONSTANT = 1e-12
"""A standard deviation below this share of the largest value is rounding."""


@options
class ModelOptions(FitOptions):
    """What all functions of paths have in common: the models, and what they cost.

    Attributes:
        start: b_0, an old model to update (Fig. 3): coefficients by column name, as an array, or a
            path, for its last model. None for all zeros. For the softmax cost, each column has a
            coefficient per class: an array has shape (columns, classes).
        forbidden: columns, by name or position, that no step may change; they may be constant.
        l2_penalty: added to the cost, times |b|^2, which the softmax cost doubles: with two
            classes, it would be the logistic cost. None: 0, and .001 for the softmax cost, because
            classes that columns separate have no finite best model.
        intercept: every model has its best intercept, which is not a step.
        standardise: divide the columns, and the target of the squared cost, by their standard
            deviations; coefficients, bounds and costs are then in these units.
    """

    compares_categories: ClassVar[bool] = False

    start: Coefficients = None
    forbidden: Iterable[str | int] = ()
    l2_penalty: float | None = option(or_none(checks.penalty), default=None)
    intercept: bool = option(checks.flag, default=True)
    standardise: bool = option(checks.flag, default=False)

    def ridge(self, default: float = 0.0) -> float:
        """The ridge penalty."""
        return default if self.l2_penalty is None else self.l2_penalty


class _Parts(TypedDict):
    """The fields of every sequence of models."""

    models: Array
    intercepts: Array
    costs: Array
    scale: Array
    output_scale: Array
    schema: Schema
    columns: tuple[EncodedColumn, ...]
    link: Literal["identity", "log", "softmax"]


@dataclass(frozen=True, eq=False)
class ModelSpace:
    """All linear models of one data set: their costs, and which of them a path may visit.

    Attributes:
        cost: c as a function of models of shape (..., columns).
        schema, columns: of the coefficients.
        centre, scale: of the columns: values enter as (x - centre) / scale.
        output_centre, output_scale: of the target.
        start: b_0, shape (columns,), or (columns, classes) for the softmax cost, which takes models
            of this shape as flat arrays.
        allowed: the columns that steps may change, ascending.
    """

    cost: QuadraticCost | LossCost
    schema: Schema
    columns: tuple[EncodedColumn, ...]
    centre: Array
    scale: Array
    output_centre: float
    output_scale: float
    start: Array
    allowed: Sequence

    @classmethod
    def of(
        cls,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        options: ModelOptions,
        cost: CostName = "squared",
        columns: tuple[EncodedColumn, ...] | None = None,
    ) -> ModelSpace:
        """Read the data.

        Args:
            X, y, sample_weight, options, cost: as for `fit`.
            columns: of all rows, if X holds the rows of a fold, where some may be constant.

        Raises:
            TypeError, ValueError: as `fit`.
        """
        check_order(X, y=y, sample_weight=sample_weight)
        table = with_target(as_table(X, missing=options.missing), y)
        refuse_large(table, 1e100, "whose squares overflow")
        weights = check_sample_weight(sample_weight, table.n_rows)
        shares = weights / weights.sum()
        fold, columns = columns is not None, columns or encoded_columns(table)
        values = design_matrix(table, columns)
        centre = shares @ values if options.intercept else np.zeros(len(columns))
        constant, scale = np.zeros(len(columns), bool), np.ones(len(columns))
        if options.standardise:
            deviations = _deviations(values, shares)
            constant = deviations <= _CONSTANT * np.abs(values).max(axis=0)
            scale = np.where(constant, 1.0, deviations)
        values = (values - centre) / scale
        read = {
            "squared": _read_numbers, "logistic": _read_classes, "poisson": _read_counts,
            "softmax": _read_several,
        }[cost]  # fmt: skip
        priced, schema, output_centre, output_scale = read(y, table, values, shares, options)
        space = cls(
            priced, schema, columns, centre, scale, output_centre, output_scale,
            start=np.zeros(len(columns)), allowed=np.arange(len(columns)),
        )  # fmt: skip
        allowed = space.without(options.forbidden)
        kept = allowed[~constant[allowed]]
        # In a fold, columns may be constant that are not so in all rows: they just do not change.
        if len(kept) < len(allowed) and not (fold and len(kept)):
            names = [space.names[j] for j in allowed if constant[j]]
            raise ValueError(
                f"columns {names} are constant and cannot be standardised; drop them from X, or "
                "name them in forbidden"
            )
        start = space.coefficients(options.start, "start")
        return dataclasses.replace(space, start=start, allowed=kept)

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return column_names(self.schema, self.columns)

    @property
    def squared(self) -> QuadraticCost:
        """The squared cost of the changes of the allowed columns from the start."""
        assert isinstance(self.cost, QuadraticCost)
        return self.cost.around(self.start).restricted(self.allowed)

    @property
    def cost_of_changes(self) -> QuadraticCost | LossCost:
        """c as a function of the changes of the allowed columns from the start."""
        return self.cost.around(self._flat(self.start)).restricted(self.allowed)

    def _flat(self, models: Array) -> Array:
        """Models as the cost takes them, shape (..., coefficients)."""
        return self.cost.in_basis(models) if isinstance(self.cost, SoftmaxCost) else models

    def models(self, changes: Array) -> Array:
        """b_0, ..., b_K from the changes of the allowed columns, shape (steps + 1, columns), or
        (steps + 1, columns, classes).
        """
        if isinstance(self.cost, SoftmaxCost):
            by_column = changes.reshape(len(changes), -1, self.cost.width)
            changes = self.cost.by_class(by_column)
        models = np.repeat(self.start[None], len(changes) + 1, axis=0)
        models[1:, self.allowed] += changes
        return models

    def path(
        self, changes: Changes, step_weights: Array, settings: Settings = ()
    ) -> CoordinatePath:
        """The path of these changes of the allowed columns, with the settings of the fit."""
        features, models = self.allowed[changes.features], self.models(changes.models)
        return CoordinatePath(
            **self._parts(models), features=features, step_weights=step_weights, options=settings
        )

    def sequence(self, models: Array) -> ModelSequence:
        """Any sequence of models, shape as of `models`."""
        return ModelSequence(**self._parts(models))

    def _parts(self, models: Array) -> _Parts:
        offset: Array | float = 0.0
        link: Literal["identity", "log", "softmax"] = "identity"
        slopes, flat = models, self._flat(models)
        if isinstance(self.cost, SoftmaxCost):
            link, offset = "softmax", self.cost.by_class(self.cost.intercepts(flat))
            slopes = models.swapaxes(1, 2)  # columns come last
        elif isinstance(self.cost, LossCost):
            link = "log" if self.cost.loss.link == "log" else "identity"
            offset = self.cost.intercepts(flat)
        slopes = slopes * (self.output_scale / self.scale)
        return {
            "models": models,
            # What the centring of the columns and of the target adds to the score of x itself
            "intercepts": self.output_centre + offset - slopes @ self.centre,
            "costs": np.asarray(self.cost(flat)),
            "scale": self.scale,
            "output_scale": np.array(self.output_scale),
            "schema": self.schema,
            "columns": self.columns,
            "link": link,
        }

    def coefficients(self, given: Coefficients, name: str) -> Array:
        """The user's model: None (zeros), a path (its last model), by column name, or an array.
        Coefficients by class are shifted to the sum 0 of every column, which changes no
        probability.

        Raises:
            ValueError: naming the argument, for a wrong length, unknown names or
                values that are not finite.
        """
        several = isinstance(self.cost, SoftmaxCost)
        if given is None:
            return np.zeros((self.n_columns, *self._by_class))
        if isinstance(given, ModelSequence):
            if given.columns != self.columns or given.schema.names != self.schema.names:
                raise ValueError(f"{name} was built for columns other than those of X")
            if several and given.schema.classes != self.schema.classes:
                raise ValueError(
                    f"{name} has the classes {given.schema.classes}, but y has "
                    f"{self.schema.classes}"
                )
            given = np.asarray(given.models[-1])
        model = self.by_column(given, name, 0.0)
        if not np.isfinite(model).all():
            raise ValueError(f"{name} has NaN or infinite values")
        return model - model.mean(axis=1, keepdims=True) if several else model

    @property
    def _by_class(self) -> tuple[int, ...]:
        """The shape of the coefficients of a column."""
        return (self.cost.width + 1,) if isinstance(self.cost, SoftmaxCost) else ()

    def by_column(self, given: ByColumn, name: str, default: float) -> Array:
        """One number per column from a mapping (others get the default), a number or an array."""
        if isinstance(given, Mapping):
            values = np.full((self.n_columns, *self._by_class), default)
            for key, value in given.items():
                one = checks.array(f"{name}[{key!r}]", value)
                n = self._by_class
                wanted = f"{n[0]} numbers, one per class" if n else "one number"
                checks.require(
                    one.shape == self._by_class,
                    f"{name}[{key!r}] must be {wanted}, got shape {one.shape}",
                )
                values[self.column(key, name)] = one
            return values
        values = checks.array(name, given)
        if values.ndim == 0 and name in ("lower", "upper"):
            values = np.full(self.n_columns, float(values))
        if values.shape != (self.n_columns, *self._by_class):
            each = f", with one per class {self.schema.classes} each" if self._by_class else ""
            raise ValueError(
                f"{name} must have {self.n_columns} values, one per column {self.names}{each}, got "
                f"shape {values.shape}"
            )
        return values.copy()

    def column(self, key: Any, name: str) -> int:
        """The column of a name or position."""
        if isinstance(key, str):
            if key not in self.names:
                raise ValueError(f"{name} names {key!r}; the columns are {self.names}")
            return self.names.index(key)
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, (int, np.integer)):
            raise TypeError(f"{name} must name columns by text or position, got {key!r}")
        if not 0 <= key < self.n_columns:
            raise ValueError(f"{name} has position {key}; X has {self.n_columns} columns")
        return int(key)

    def without(self, forbidden: Iterable[str | int]) -> Sequence:
        """The allowed columns but the forbidden ones; a categorical feature's name forbids all its
        categories.
        """
        flat = getattr(forbidden, "ndim", 1) == 1 and isinstance(forbidden, Iterable)
        if isinstance(forbidden, (str, bytes, Iterator)) or not flat:
            raise TypeError(
                "forbidden must be a list of column names or positions, got "
                f"{type(forbidden).__name__}"
            )
        banned: set[int] = set()
        for key in forbidden:
            features = [self.schema.names[column.feature] for column in self.columns]
            of_feature = [j for j, name in enumerate(features) if name == key]
            banned.update(of_feature or [self.column(key, "forbidden")])
        allowed = np.setdiff1d(self.allowed, np.array(sorted(banned), np.int64))
        if not len(allowed):
            raise ValueError(
                "forbidden names every column; leave at least one that a step may change"
            )
        return allowed

    def end_change(self, end: Coefficients) -> Array:
        """The change of the allowed columns from the start to a given end.

        Raises:
            ValueError: as `coefficients`, or if other columns have to change.
        """
        change = self.coefficients(end, "end") - self.start
        frozen = np.setdiff1d(np.flatnonzero(change), self.allowed)
        if len(frozen):
            raise ValueError(
                f"end differs from start in the forbidden columns {[self.names[j] for j in frozen]}"
            )
        return change[self.allowed]

    def problem(
        self,
        step_weights: Array,
        *,
        kind: IntegerSteps | None = None,
        lower: ByColumn = None,
        upper: ByColumn = None,
        end: Coefficients = None,
    ) -> PathProblem:
        """The problem of the searches; a cost that is not quadratic is replaced with its quadratic
        model at the start.

        Raises:
            ValueError: for bounds that exclude each other or the start, and an end that no path
                reaches.
        """
        cost = self.cost_of_changes
        if isinstance(cost, SoftmaxCost):  # without side conditions
            quadratic = cost.quadratic(np.zeros(cost.n_coefficients))
            return PathProblem(quadratic, step_weights, width=cost.width)
        low, high = self._bounds(lower, upper)
        for name, given in (("start", self.start), ("end", end)):
            model = self.start if given is None else self.coefficients(given, name)
            if ((model < low) | (model > high)).any():
                raise ValueError(
                    f"{name} violates lower or upper; every model of the path must keep them"
                )
        change = None if end is None else self._reachable(end, kind, len(step_weights))
        # Searches see changes from the start: the bounds move with it.
        low, high = ((bound - self.start)[self.allowed] for bound in (low, high))
        if isinstance(cost, LossCost):
            cost = cost.quadratic(np.zeros(len(self.allowed)))
        return PathProblem(cost, step_weights, kind, low, high, change)

    def _bounds(self, lower: ByColumn, upper: ByColumn) -> tuple[Array, Array]:
        """The bounds on all coefficients, infinite for none, shape (columns,) each."""
        low = self.by_column(-np.inf if lower is None else lower, "lower", -np.inf)
        high = self.by_column(np.inf if upper is None else upper, "upper", np.inf)
        if np.isnan(low).any() or np.isnan(high).any():
            raise ValueError("lower and upper must not be NaN; use -inf and inf for no bound")
        if (low > high).any():
            raise ValueError(
                "lower exceeds upper for some column; no coefficient lies between them"
            )
        return low, high

    def _reachable(self, end: Coefficients, kind: IntegerSteps | None, steps: int) -> Array:
        """`end_change`, if that many steps of this kind can make it."""
        change = self.end_change(end)
        if kind is not None:
            whole = np.round(change)
            if (np.abs(change - whole) > 1e-9).any():
                raise ValueError(
                    "end is not reachable by integer steps; it must differ from start by integers"
                )
            change = whole
        needed = steps_between(0.0, change, kind)
        if needed > steps:
            raise ValueError(
                f"end is not reachable in {steps} steps: it takes at least {needed}; raise steps"
            )
        return change


_Read = tuple[QuadraticCost | LossCost, Schema, float, float]


def _read_classes(
    y: ArrayLike, table: Table, values: Array, shares: Array, options: ModelOptions
) -> _Read:
    """The logistic cost, the schema with the classes, and the target's centre and scale."""
    codes, classes = class_target(y, table.n_rows, options.positive)
    if len(classes) > 2:
        raise ValueError(
            f'y has {len(classes)} classes, but cost="logistic" is for two; use cost="softmax" for '
            "all of them, or fit one class against the rest, e.g. y == label; if y holds numbers, "
            'use cost="squared"'
        )
    if not 0 < shares @ codes < 1:
        raise ValueError(
            "sample_weight is zero for every row of one class; both classes need weight"
        )
    target = np.where(codes == 1, 1.0, -1.0)
    cost = LossCost(logistic, values, target, shares, options.ridge(), options.intercept)
    return cost, table.schema.with_classes(classes), 0.0, 1.0


def _read_several(
    y: ArrayLike, table: Table, values: Array, shares: Array, options: ModelOptions
) -> _Read:
    """The softmax cost, the schema with the classes, and the target's centre and scale."""
    codes, classes = class_target(y, table.n_rows, options.positive)
    if len(classes) == 2:
        raise ValueError(
            'y has two classes, but cost="softmax" is for more; use cost="logistic", the same '
            "problem with one coefficient per column"
        )
    absent = [str(classes[k]) for k in np.flatnonzero(np.bincount(codes, shares) == 0)]
    if absent:
        raise ValueError(
            f"sample_weight is zero for every row of the classes {absent}; give them some weight, "
            "or drop their rows"
        )
    ridge = options.ridge(_RIDGE_OF_CLASSES)
    cost = softmax_cost(values, codes, len(classes), shares, ridge, options.intercept)
    return cost, table.schema.with_classes(classes), 0.0, 1.0


def _read_counts(
    y: ArrayLike, table: Table, values: Array, shares: Array, options: ModelOptions
) -> _Read:
    """The Poisson cost, the schema, and the target's centre and scale."""
    _refuse_positive(options, "poisson")
    target = regression_target(y, table.n_rows)
    check_target(poisson, target)
    if not shares @ target > 0:
        raise ValueError(
            "y has no positive count in a row with weight, so that no model of the log link is best"
        )
    # exp(f) - y f is least, y - y log y, at f = log y: measured from there no cost is negative.
    least = float(shares @ poisson.value(target, np.log(np.maximum(target, _LEAST_COUNT))))
    rows = values, target, shares
    cost = LossCost(poisson, *rows, options.ridge(), options.intercept, constant=-least)
    return cost, table.schema, 0.0, 1.0


def _refuse_positive(options: ModelOptions, cost: CostName) -> None:
    if options.positive is not None:
        raise ValueError(
            f"positive={options.positive!r} is for two classes, but cost={cost!r} is for numbers"
        )


def _read_numbers(
    y: ArrayLike, table: Table, values: Array, shares: Array, options: ModelOptions
) -> _Read:
    """The squared cost, the schema, and the target's centre and scale."""
    _refuse_positive(options, "squared")
    target = regression_target(y, table.n_rows)
    centre = float(shares @ target) if options.intercept else 0.0
    scale = 1.0
    if options.standardise:
        scale = float(_deviations(target, shares))
        if scale <= _CONSTANT * np.abs(target).max():
            raise ValueError("y is constant and cannot be standardised; use standardise=False")
    target = (target - centre) / scale
    # No intercept: with the target and all columns centred, the best one is 0 for every model.
    cost = LossCost(squared, values, target, shares, options.ridge(), False)
    return cost.quadratic(np.zeros(values.shape[1])), table.schema, centre, scale


def _deviations(values: Array, shares: Array) -> Array:
    """The weighted standard deviation of every column."""
    return np.asarray(np.sqrt(shares @ (values - shares @ values) ** 2))


def check_step_weights(step_weights: float | ArrayLike, steps: int) -> Array:
    """alpha_1, ..., alpha_K: from a number gamma (gamma^k), or one weight per step.

    Raises:
        TypeError, ValueError: for weights that are not numbers, negative or not finite, too few or
            too many, or with a last weight of 0.
    """
    if np.ndim(step_weights) == 0:
        gamma = checks.number("step_weights, given as gamma,", step_weights, above=0)
        weights = geometric_weights(gamma, steps)
        if not np.isfinite(weights).all() or weights[-1] == 0:
            raise ValueError(
                f"step_weights, given as gamma = {gamma}, overflow or underflow in {steps} steps; "
                "choose gamma nearer to 1"
            )
        return weights
    weights = checks.sequence("step_weights", step_weights, at_least=0)
    if len(weights) != steps:
        raise ValueError(f"step_weights must have {steps} values, one per step, got {len(weights)}")
    if weights[-1] == 0:
        raise ValueError(
            "the last of step_weights is 0, so the last step would be arbitrary; use fewer steps"
        )
    return weights
