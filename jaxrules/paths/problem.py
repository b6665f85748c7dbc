"""The data of a path problem: checked arguments, columns, centring and scaling, cost functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.paths.costs import Array, Quadratic, Sequence, geometric_weights, mean_squared_error
from jaxrules.paths.logistic import LogisticCost
from jaxrules.paths.model import CoordinatePath, ModelSequence, column_names, design_matrix, encoded_columns
from jaxrules.table import (
    EncodedColumn,
    MissingRule,
    Schema,
    as_table,
    binary_target,
    check_sample_weight,
    regression_target,
)

CostName = Literal["squared", "logistic"]


@dataclass(frozen=True, eq=False)
class Problem:
    """The cost of linear models on one data set, in the units of fit.

    Attributes:
        cost: c as a function of models of shape (..., columns): a `Quadratic` or a `LogisticCost`.
        schema, columns: what the coefficients belong to.
        centre, scale: of the columns: values enter as (x - centre) / scale.
        output_centre, output_scale: of the target.
    """

    cost: Quadratic | LogisticCost
    schema: Schema
    columns: tuple[EncodedColumn, ...]
    centre: Array
    scale: Array
    output_centre: float
    output_scale: float

    @classmethod
    def of(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        cost: CostName = "squared",
        l2_penalty: float = 0.0,
        intercept: bool = True,
        standardise: bool = False,
        sample_weight: ArrayLike | None = None,
        missing: MissingRule = "refuse",
    ) -> Problem:
        """Read the data. See `fit` for the arguments and what is refused."""
        if cost not in ("squared", "logistic"):
            raise ValueError(f'cost must be "squared" or "logistic", got {cost!r}')
        if isinstance(l2_penalty, bool) or not isinstance(l2_penalty, (int, float, np.number)):
            raise TypeError("l2_penalty must be a number")
        if not (np.isfinite(l2_penalty) and l2_penalty >= 0):
            raise ValueError(f"l2_penalty must be finite and at least 0, got {l2_penalty}")
        for name, flag in (("intercept", intercept), ("standardise", standardise)):
            if not isinstance(flag, (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {flag!r}")
        table = as_table(X, missing=missing)
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
                names = [n for n, c in zip(column_names(table.schema, columns), constant, strict=True) if c]
                raise ValueError(f"columns {names} are constant and cannot be standardised; drop them from X")
        values = (values - centre) / scale
        if cost == "logistic":
            target, classes = binary_target(y, table.n_rows)
            if not 0 < shares @ target < 1:
                raise ValueError("sample_weight is zero for every row of one class; both classes need weight")
            logistic = LogisticCost(values, 2 * target - 1, shares, float(l2_penalty), bool(intercept))
            return cls(logistic, table.schema.with_classes(classes), columns, centre, scale, 0.0, 1.0)
        target = regression_target(y, table.n_rows)
        output_centre = float(shares @ target) if intercept else 0.0
        output_scale = 1.0
        if standardise:
            output_scale = float(np.sqrt(shares @ (target - shares @ target) ** 2))
            if output_scale <= 1e-12 * np.abs(target).max():
                raise ValueError("y is constant and cannot be standardised; use standardise=False")
        squared = mean_squared_error(values, (target - output_centre) / output_scale, weights, float(l2_penalty))
        return cls(squared, table.schema, columns, centre, scale, output_centre, output_scale)

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return column_names(self.schema, self.columns)

    def path(self, features: Sequence, models: Array, step_weights: Array) -> CoordinatePath:
        """The path of b_0, ..., b_K, shape (steps + 1, columns), that changes these columns."""
        return CoordinatePath(**self._parts(models), features=np.asarray(features, np.int64), step_weights=step_weights)

    def sequence(self, models: Array) -> ModelSequence:
        """Any sequence of models, shape (steps + 1, columns)."""
        return ModelSequence(**self._parts(models))

    def _parts(self, models: Array) -> dict[str, Any]:
        slopes = models * (self.output_scale / self.scale)
        offset = self.cost.intercepts(models) if isinstance(self.cost, LogisticCost) else 0.0
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
        """A model that the user gives: None (zeros), a path (its last model), by column name, or as an array.

        Raises:
            ValueError: naming the argument, for a wrong length, unknown names or values that are not finite.
        """
        if given is None:
            return np.zeros(self.n_columns)
        if isinstance(given, ModelSequence):
            if given.columns != self.columns or given.schema.names != self.schema.names:
                raise ValueError(f"{name} is a path for other columns than those of X")
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
                values[self.column(key, name)] = value
            return values
        values = np.asarray(given, np.float64)
        if values.ndim == 0 and name in ("lower", "upper"):
            values = np.full(self.n_columns, float(values))
        if values.shape != (self.n_columns,):
            raise ValueError(
                f"{name} must have {self.n_columns} values, one per column {self.names}, got shape {values.shape}"
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

    def allowed(self, forbidden: Iterable[Any]) -> Sequence:
        """The columns that steps may change; a categorical feature's name forbids all its categories."""
        if isinstance(forbidden, (str, bytes)) or not isinstance(forbidden, Iterable):
            raise TypeError("forbidden must be a list of column names or positions")
        banned = set()
        for key in forbidden:
            of_feature = [j for j, c in enumerate(self.columns) if self.schema.names[c.feature] == key]
            banned.update(of_feature or [self.column(key, "forbidden")])
        allowed = np.array([j for j in range(self.n_columns) if j not in banned], np.int64)
        if not len(allowed):
            raise ValueError("forbidden names every column; leave at least one that a step may change")
        return allowed


def check_steps(steps: Any, name: str = "steps") -> int:
    """A positive number of steps.

    Raises:
        TypeError, ValueError: if it is not.
    """
    if isinstance(steps, (bool, np.bool_)) or not isinstance(steps, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(steps).__name__}")
    if steps < 1:
        raise ValueError(f"{name} must be at least 1, got {steps}")
    return int(steps)


def check_step_weights(step_weights: Any, steps: int) -> Array:
    """alpha: from a number gamma (gamma^k), or one weight per step.

    Raises:
        TypeError, ValueError: for weights that are not numbers, negative, not finite, of a wrong number, or
            end in 0.
    """
    try:
        weights = np.asarray(step_weights, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("step_weights must be a number gamma or a sequence of numbers") from error
    if weights.ndim == 0:
        if not (np.isfinite(weights) and weights > 0):
            raise ValueError(f"step_weights given as gamma must be positive and finite, got {step_weights}")
        weights = geometric_weights(float(weights), steps)
        if not np.isfinite(weights).all() or weights[-1] == 0:
            raise ValueError(
                f"gamma = {step_weights} overflows or underflows within {steps} steps; bring it nearer to 1"
            )
        return weights
    if weights.shape != (steps,):
        raise ValueError(f"step_weights must have {steps} values, one per step, got shape {weights.shape}")
    if not np.isfinite(weights).all():
        raise ValueError("step_weights has NaN or infinite values")
    if (weights < 0).any():
        raise ValueError("step_weights has negative values; they must be at least 0")
    if weights[-1] == 0:
        raise ValueError("the last of step_weights is 0: the last step would be arbitrary; use fewer steps")
    return weights
