"""Converts X, y and the arguments of a fit to the problem of the searches, and
their solution to a path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jaxrules import checks
from jaxrules.losses import logistic, squared
from jaxrules.paths.costs import Array, LossCost, Quadratic, Sequence
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
from jaxrules.table import (
    EncodedColumn,
    MissingRule,
    Schema,
    as_table,
    binary_target,
    check_sample_weight,
    refuse_large,
    regression_target,
)

CostName = Literal["squared", "logistic"]
MOST_STEPS = 10_000
"""The most steps of a path."""


@dataclass(frozen=True, eq=False)
class ModelSpace:
    """All linear models of one data set in the units of fit: their costs, and which
    of them a path may visit.

    Attributes:
        cost: c as a function of models of shape (..., columns).
        schema, columns: of the coefficients.
        centre, scale: of the columns: values enter as (x - centre) / scale.
        output_centre, output_scale: of the target.
        start: b_0, shape (columns,).
        allowed: the columns that steps may change, ascending.
    """

    cost: Quadratic | LossCost
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
        X: Any,
        y: ArrayLike,
        *,
        cost: CostName = "squared",
        start: Any = None,
        forbidden: Iterable[Any] = (),
        l2_penalty: float = 0.0,
        intercept: bool = True,
        standardise: bool = False,
        sample_weight: ArrayLike | None = None,
        missing: MissingRule = "refuse",
    ) -> ModelSpace:
        """Read the data. See `fit` for the arguments and errors."""
        checks.choice("cost", cost, ("squared", "logistic"))
        l2_penalty = checks.penalty("l2_penalty", l2_penalty)
        intercept, standardise = (
            checks.flag("intercept", intercept),
            checks.flag("standardise", standardise),
        )
        table = as_table(X, missing=missing)
        refuse_large(table, 1e100, "whose squares overflow")
        weights = check_sample_weight(sample_weight, table.n_rows)
        shares = weights / weights.sum()
        columns = encoded_columns(table)
        values = design_matrix(table, columns)
        centre = shares @ values if intercept else np.zeros(len(columns))
        scale = np.ones(len(columns))
        if standardise:
            scale = np.sqrt(shares @ (values - shares @ values) ** 2)
            constant = scale <= 1e-12 * np.abs(values).max(axis=0)
            if constant.any():
                names = [
                    n
                    for n, c in zip(column_names(table.schema, columns), constant, strict=True)
                    if c
                ]
                raise ValueError(
                    f"columns {names} are constant and cannot be standardised; drop them from X"
                )
        values = (values - centre) / scale
        schema, output_centre, output_scale = table.schema, 0.0, 1.0
        priced: Quadratic | LossCost
        if cost == "logistic":
            target, classes = binary_target(y, table.n_rows)
            if not 0 < shares @ target < 1:
                raise ValueError(
                    "sample_weight is zero for every row of one class; both classes need weight"
                )
            schema = schema.with_classes(classes)
            priced = LossCost(logistic, values, 2 * target - 1, shares, l2_penalty, intercept)
        else:
            target = regression_target(y, table.n_rows)
            if intercept:
                output_centre = float(shares @ target)
            if standardise:
                output_scale = float(np.sqrt(shares @ (target - shares @ target) ** 2))
                if output_scale <= 1e-12 * np.abs(target).max():
                    raise ValueError(
                        "y is constant and cannot be standardised; use standardise=False"
                    )
            target = (target - output_centre) / output_scale
            priced = LossCost(squared, values, target, shares, l2_penalty, False).quadratic(
                np.zeros(len(columns))
            )
        everywhere = np.arange(len(columns))
        space = cls(
            priced,
            schema,
            columns,
            centre,
            scale,
            output_centre,
            output_scale,
            np.zeros(len(columns)),
            everywhere,
        )
        return dataclasses.replace(
            space, start=space.coefficients(start, "start"), allowed=space.without(forbidden)
        )

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return column_names(self.schema, self.columns)

    @property
    def squared(self) -> Quadratic:
        """The squared cost of the changes of the allowed columns from the start."""
        assert isinstance(self.cost, Quadratic)
        return self.cost.around(self.start).restricted(self.allowed)

    @property
    def cost_of_changes(self) -> Quadratic | LossCost:
        """c as a function of the changes of the allowed columns from the start."""
        return self.cost.around(self.start).restricted(self.allowed)

    def models(self, changes: Array) -> Array:
        """b_0, ..., b_K from the changes of the allowed columns, shape (steps + 1, columns)."""
        models = np.repeat(self.start[None], len(changes) + 1, axis=0)
        models[1:, self.allowed] += changes
        return models

    def path(
        self, changes: Changes, step_weights: Array, options: Mapping[str, Any] | None = None
    ) -> CoordinatePath:
        """The path of these changes of the allowed columns, with the settings of the fit."""
        features, models = self.allowed[changes.features], self.models(changes.models)
        kept = tuple((options or {}).items())
        return CoordinatePath(
            **self._parts(models), features=features, step_weights=step_weights, options=kept
        )

    def sequence(self, models: Array) -> ModelSequence:
        """Any sequence of models, shape (steps + 1, columns)."""
        return ModelSequence(**self._parts(models))

    def _parts(self, models: Array) -> dict[str, Any]:
        slopes = models * (self.output_scale / self.scale)
        offset = self.cost.intercepts(models) if isinstance(self.cost, LossCost) else 0.0
        return {
            "models": models,
            "intercepts": self.output_centre + offset - slopes @ self.centre,
            "costs": np.asarray(self.cost(models)),
            "scale": self.scale,
            "output_scale": np.array(self.output_scale),
            "schema": self.schema,
            "columns": self.columns,
        }

    def coefficients(self, given: Any, name: str) -> Array:
        """A model given by the user: None (zeros), a path (its last model), by
        column name, or as an array.

        Raises:
            ValueError: naming the argument, for a wrong length, unknown names or
                values that are not finite.
        """
        if given is None:
            return np.zeros(self.n_columns)
        if isinstance(given, ModelSequence):
            if given.columns != self.columns or given.schema.names != self.schema.names:
                raise ValueError(f"{name} is a path for columns other than those of X")
            given = given.models[-1]
        model = self.by_column(given, name, 0.0)
        if not np.isfinite(model).all():
            raise ValueError(f"{name} has NaN or infinite values")
        return model

    def by_column(self, given: Any, name: str, default: float) -> Array:
        """One number per column from a mapping (others get the default), a number or an array."""
        if isinstance(given, Mapping):
            values = np.full(self.n_columns, default)
            for key, value in given.items():
                one = checks.array(f"{name}[{key!r}]", value)
                checks.require(
                    one.ndim == 0, f"{name}[{key!r}] must be one number, got shape {one.shape}"
                )
                values[self.column(key, name)] = one
            return values
        values = checks.array(name, given)
        if values.ndim == 0 and name in ("lower", "upper"):
            values = np.full(self.n_columns, float(values))
        if values.shape != (self.n_columns,):
            raise ValueError(
                f"{name} must have {self.n_columns} values, one per column {self.names}, got shape "
                f"{values.shape}"
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

    def without(self, forbidden: Iterable[Any]) -> Sequence:
        """All columns but the forbidden ones; a categorical feature's name
        forbids all its categories.
        """
        nested = hasattr(forbidden, "ndim") and forbidden.ndim != 1
        if (
            isinstance(forbidden, (str, bytes, Iterator))
            or not isinstance(forbidden, Iterable)
            or nested
        ):
            raise TypeError(
                "forbidden must be a list of column names or positions, got "
                f"{type(forbidden).__name__}"
            )
        banned = set()
        for key in forbidden:
            of_feature = [
                j for j, c in enumerate(self.columns) if self.schema.names[c.feature] == key
            ]
            banned.update(of_feature or [self.column(key, "forbidden")])
        allowed = np.array([j for j in range(self.n_columns) if j not in banned], np.int64)
        if not len(allowed):
            raise ValueError(
                "forbidden names every column; leave at least one that a step may change"
            )
        return allowed

    def end_change(self, end: Any) -> Array:
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
        lower: Any = None,
        upper: Any = None,
        end: Any = None,
    ) -> PathProblem:
        """The problem of the searches; a non-quadratic cost is replaced by its
        quadratic model at the start.

        Raises:
            ValueError: for bounds that exclude each other or the start, and an
                end that no path reaches.
        """
        low = self.by_column(-np.inf if lower is None else lower, "lower", -np.inf)
        high = self.by_column(np.inf if upper is None else upper, "upper", np.inf)
        if np.isnan(low).any() or np.isnan(high).any():
            raise ValueError("lower and upper must not be NaN; use -inf and inf for no bound")
        if (low > high).any():
            raise ValueError(
                "lower exceeds upper for some column; no coefficient lies between them"
            )
        last = self.start if end is None else self.coefficients(end, "end")
        for name, model in (("start", self.start), ("end", last)):
            if ((model < low) | (model > high)).any():
                raise ValueError(
                    f"{name} violates lower or upper; every model of the path must keep them"
                )
        change = None
        if end is not None:
            change = self.end_change(end)
            if kind is not None:
                whole = np.round(change)
                if (np.abs(change - whole) > 1e-9).any():
                    raise ValueError(
                        "end is not reachable by integer steps; it must differ from start by "
                        "integers"
                    )
                change = whole
            needed = steps_between(np.zeros_like(change), change, kind)
            if needed > len(step_weights):
                raise ValueError(
                    f"end is not reachable in {len(step_weights)} steps: it takes at least "
                    f"{needed}; raise steps"
                )
        low, high = ((bound - self.start)[self.allowed] for bound in (low, high))
        cost = self.cost_of_changes
        if isinstance(cost, LossCost):
            cost = cost.quadratic(np.zeros(len(self.allowed)))
        return PathProblem(cost, step_weights, kind, low, high, change)


def check_step_weights(step_weights: Any, steps: int) -> Array:
    """alpha: from a number gamma (gamma^k), or one weight per step.

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
