"""Coordinate paths: sequences of linear models that differ in one coefficient from step to step
(Section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import MISSING, EncodedColumn, Schema, Table, TableLike, conform
from jaxrules.models.metrics import complexity
from jaxrules.models.persistence import register_model
from jaxrules.models.rule_models import (
    Contribution,
    Explanation,
    decision_function,
    explain,
    predict,
    predict_proba,
    shares_of,
    sigmoid,
    to_latex,
    without_offset,
)
from jaxrules.paths.problem import geometric_weights
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Settings
from jaxrules.tools.float64 import full_precision
from jaxrules.tools.kept import Keeps, kept
from jaxrules.tools.pytrees import check_arrays, check_options, concrete_arrays, pytree

Array = NDArray[Any] | jax.Array
_FEW_ROWS = 8
"""So many rows are read number by number, which is quicker than column by column."""


def encoded_columns(table: Table) -> tuple[EncodedColumn, ...]:
    """The columns of a linear model: every number, an indicator per category, and one for missing
    values.
    """
    columns = []
    for index, feature in enumerate(table.schema.features):
        if feature.categories is None:
            columns.append(EncodedColumn(index, None))
        else:
            # Every category has a column, none is a reference: costs allow for a singular Q.
            codes: Iterable[int] = range(len(feature.categories))
            if feature.source is not None:  # the user may name special values that never occur
                codes = np.unique(table.columns[index][~table.missing_mask(index)]).tolist()
            columns.extend(EncodedColumn(index, code) for code in codes)
        if table.missing_mask(index).any():
            columns.append(EncodedColumn(index, MISSING))
    return tuple(columns)


def column_names(schema: Schema, columns: Iterable[EncodedColumn]) -> tuple[str, ...]:
    """The names of the columns: ``income``, ``type=prof``, ``age is missing``."""
    names = []
    for index, category in columns:
        feature = schema.features[index]
        name = feature.source or feature.name
        if category == MISSING:
            absent = "missing" if feature.special_values is None else schema.absent([index])
            names.append(f"{name} is {absent}")
        elif category is None or feature.categories is None:
            names.append(feature.as_number if feature.special_values else name)
        else:
            names.append(f"{name}={feature.categories[category]}")
    return tuple(names)


def design_matrix(table: Table, columns: Iterable[EncodedColumn]) -> NDArray[np.float64]:
    """The values of the columns, shape (rows, columns). A missing number is 0, and its indicator 1.
    So is one with a special value, which fit need not have seen.

    Raises:
        ValueError: if a number is missing in a column that had no missing values in fit.
    """
    columns = tuple(columns)
    if table.n_rows <= _FEW_ROWS and (few := _design_of_few(table, columns)) is not None:
        return few
    values = []
    for index, category in columns:
        column = table.columns[index]
        absent, feature = table.missing_mask(index), table.schema.features[index]
        unseen = absent.any() and EncodedColumn(index, MISSING) not in columns
        if unseen and feature.special_values is None:
            name = feature.source or feature.name
            raise ValueError(
                f"X has missing values in {name!r}, which had none in fit; fill or drop them"
            )
        if category == MISSING:
            values.append(absent.astype(np.float64))
        elif category is None:
            values.append(np.where(absent, 0.0, column))
        else:
            values.append((column == category).astype(np.float64))
    return np.stack(values, axis=1)


def _design_of_few(table: Table, columns: tuple[EncodedColumn, ...]) -> NDArray[np.float64] | None:
    """`design_matrix` of a few rows, with Python's own numbers; None if a value is missing."""
    values: list[list[float]] = []
    for index, category in columns:
        column = table.columns[index].tolist()
        # NaN differs from itself; the code of a missing category is MISSING.
        if any(x != x or x == MISSING for x in column) and table.missing_mask(index).any():
            return None
        values.append(column if category is None else [float(x == category) for x in column])
    return np.array(values).T.copy()


@register_model
@pytree
@dataclass(frozen=True, eq=False)
class ModelSequence(Keeps):
    """A sequence of linear models b_0, ..., b_K, each with its cost.

    The score of model k is ``intercepts[k] + output_scale * sum_j models[k, j] x_j / scale[j]``,
    with an entry per class if the link is "softmax".

    Attributes:
        models: the coefficients in the units of fit, shape (steps + 1, columns), or (steps + 1,
            columns, classes).
        intercepts: shape (steps + 1,) or (steps + 1, classes), in the units of the target (of the
            log-odds).
        costs: c(b_0), ..., c(b_K), shape (steps + 1,).
        scale: divisor of each column, shape (columns,); ones without standardisation.
        output_scale: factor of the scores, shape (); 1 without standardisation.
        schema: of the table.
        columns: the feature, or category of a feature, of each column.
        link: of models of numbers: "identity", or "log" for scores that are logarithms of mean
            counts. Of models of two classes, scores are log-odds. "softmax" is for more classes:
            scores are log-probabilities, up to a constant.
        options: the settings of the fit, as (name, value) pairs.
    """

    models: Array = field(metadata={"dtype": np.float64})
    intercepts: Array = field(metadata={"dtype": np.float64})
    costs: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    scale: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    output_scale: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    schema: Schema = field(metadata={"static": True})
    columns: tuple[EncodedColumn, ...] = field(metadata={"static": True})
    link: Literal["identity", "log", "softmax"] = field(
        default="identity", metadata={"static": True}, kw_only=True
    )
    options: Settings = field(default=(), metadata={"static": True}, kw_only=True)

    title: ClassVar[str] = "Sequence of models"

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.costs) - 1

    if not TYPE_CHECKING:  # type checkers would take every attribute for known

        def __getattr__(self, name: str) -> NoReturn:
            raise checks.unknown_attribute(self, name, "model")

    @kept
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return column_names(self.schema, self.columns)

    @property
    def moved(self) -> tuple[int, ...]:
        """The columns that change, in the order of their first change."""
        changed = self._any_class(np.diff(np.asarray(self.models), axis=0) != 0)
        return tuple(dict.fromkeys(np.nonzero(changed)[1].tolist()))

    @property
    def by_class(self) -> bool:
        """Whether every column has a coefficient per class, as with the link "softmax"."""
        return self.link == "softmax"

    def _any_class(self, of_coefficients: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What holds for a coefficient of a column, with an entry per column in place of one per
        class.
        """
        return of_coefficients.any(axis=-1) if self.by_class else of_coefficients

    def __post_init__(self) -> None:
        checks.instance("schema", self.schema, Schema, "jaxrules.as_table(X).schema")
        check_arrays(self)
        check_options(self.options)
        of_columns = isinstance(self.columns, tuple)
        if not of_columns or not all(isinstance(one, EncodedColumn) for one in self.columns):
            raise TypeError(f"columns must be a tuple of EncodedColumn, got {self.columns!r}")
        if concrete_arrays(self.models, self.intercepts, self.costs):
            self._check()

    def validate(self) -> None:
        """Check shapes and values.

        Raises:
            ValueError: naming what is wrong.
        """
        self._check()

    def _check(self) -> None:
        checks.choice("link", self.link, ("identity", "log", "softmax"))
        classes = self.schema.classes or ()
        checks.require(
            self.link != "log" or not classes,
            "the link 'log' is for numbers, but the schema has classes",
        )
        checks.require(
            self.by_class == (len(classes) > 2),
            f"the link 'softmax' is for more than two classes, and these need it; link is "
            f"{self.link!r}, and the schema has {len(classes) or 'no'} classes",
        )
        each = (len(classes),) if self.by_class else ()
        checks.require(
            self.costs.ndim == 1 and len(self.costs) > 0,
            f"costs must have shape (steps + 1,), got {self.costs.shape}",
        )
        steps, width = len(self), len(self.columns)
        shapes = {
            "models": (self.models, (steps + 1, width, *each)),
            "intercepts": (self.intercepts, (steps + 1, *each)),
            "scale": (self.scale, (width,)),
            "output_scale": (self.output_scale, ()),
        }
        for name, (array, shape) in shapes.items():
            if np.shape(array) != shape:
                raise ValueError(
                    f"{name} must have shape {shape} for {len(self.costs)} costs and {width} "
                    f"columns, got {np.shape(array)}"
                )
            if not np.isfinite(np.asarray(array)).all():
                raise ValueError(f"{name} must be finite")
        if not ((np.asarray(self.scale) > 0).all() and np.asarray(self.output_scale) > 0):
            raise ValueError("scale and output_scale must be positive")
        for index, category in self.columns:
            if not (isinstance(index, int) and 0 <= index < len(self.schema.features)):
                raise ValueError(f"columns name feature {index!r}, which does not exist")
            categories = self.schema.features[index].categories
            if category not in (None, MISSING) and not (
                categories and 0 <= category < len(categories)
            ):
                raise ValueError(f"columns name category {category!r}, which does not exist")

    def scores(self, X: TableLike, step: int | None = None) -> Array:
        """The scores of model `step` (default: the last), shape (rows,) or (rows, classes)."""
        model = self._step(step)
        traced = [X, self.models, self.intercepts]
        if any(isinstance(value, jax.core.Tracer) for value in traced):
            values = jnp.asarray(X if isinstance(X, jax.core.Tracer) else self._design(X))
            if values.shape[1] != len(self.columns):
                raise ValueError(
                    f"X has {values.shape[1]} columns, but the models have {len(self.columns)}"
                )
            slopes = jnp.asarray(self.models)[model] * self._units
            with full_precision():
                scores = values @ slopes.astype(values.dtype)
                intercept = jnp.asarray(self.intercepts)[model]
                return scores + (intercept[None] if self.by_class else intercept)
        return self.host_scores(self._design(X), model)

    def host_scores(self, columns: NDArray[np.float64], model: int) -> NDArray[np.float64]:
        """The scores of model number `model`, from a `design_matrix`, shape (rows,) or (rows,
        classes).
        """
        intercept = np.asarray(self.intercepts[model], np.float64)
        scores = np.tile(intercept, (len(columns), *(1,) * intercept.ndim))
        for j, slope in enumerate(self.slopes(model)):  # column order: a defined sum
            if np.any(slope):
                scores += np.multiply.outer(columns[:, j], slope)
        return scores

    def slopes(self, step: int | None = None) -> NDArray[np.float64]:
        """The coefficients of model `step` in the units of the data, shape (columns,) or (columns,
        classes).
        """
        return np.asarray(self.models[self._step(step)]) * self._units

    @property
    def _units(self) -> NDArray[np.float64]:
        """The factors of the coefficients of a model; traced in a traced model."""
        units: NDArray[np.float64] = self.output_scale / self.scale
        return units[:, None] if self.by_class else units

    def _design(self, X: TableLike) -> NDArray[np.float64]:
        return design_matrix(conform(X, self.schema), self.columns)

    def _step(self, step: int | None) -> int:
        if step is None:
            return len(self)
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise TypeError(f"step must be an integer, got {type(step).__name__}")
        if not 0 <= step <= len(self):
            raise ValueError(f"step must be between 0 (the start) and {len(self)}, got {step}")
        return int(step)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The sequence in the paper's form (Fig. 4): a heading, and a row of texts per model.

        One column per feature that changes, in order of first change; the cost is last. With
        coefficients by class, a row has those of one feature: its name and a number per class.
        """
        if self.by_class:
            return self._table_by_class()
        moved = self.moved
        heading = ("", *(display.plain(self.names[j]) for j in moved), "cost")
        rows = []
        for k, model in enumerate(np.asarray(self.models)):
            shown = self._shown(k)
            cells = (display.number(model[j], 4) if j in shown else "" for j in moved)
            rows.append((f"b{k}", *cells, display.number(self.costs[k], 4)))
        return heading, rows

    def _table_by_class(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        classes = self.schema.classes or ()
        heading = ("", "", *(display.plain(str(label)) for label in classes), "cost")
        rows = []
        for k, model in enumerate(np.asarray(self.models)):
            cost = display.number(self.costs[k], 4)
            for number, j in enumerate(sorted(self._shown(k)) or [None]):
                empty = [""] * (1 + len(classes))
                cells = empty if j is None else [
                    display.plain(self.names[j]), *(display.number(b, 4) for b in model[j]),
                ]  # fmt: skip
                rows.append((f"b{k}", *cells, cost) if not number else ("", *cells, ""))
        return heading, rows

    def _shown(self, step: int) -> frozenset[int]:
        """The columns whose coefficients a row of the table shows: all but the zeros."""
        shown = self._any_class(np.asarray(self.models)[step] != 0)
        return frozenset(np.flatnonzero(shown).tolist())

    def __str__(self) -> str:
        heading, rows = self.table()
        widths = [max(map(len, cells)) for cells in zip(heading, *rows, strict=True)]
        cells = [[c.rjust(w) for c, w in zip(row, widths, strict=True)] for row in (heading, *rows)]
        return "\n".join([self._caption(), *("  ".join(row).rstrip() for row in cells)])

    def _repr_html_(self) -> str:
        return display.html_table(self._caption(), *self.table())

    def to_latex(self) -> str:
        """The table as a LaTeX tabular."""
        heading, rows = self.table()
        named = int(self.by_class)  # columns of names
        texts = [
            [
                rf"$\beta_{{{label[1:]}}}$" if label else "",
                *map(display.latex, cells[:named]),
                *(display.latex_number(c) if c else "" for c in cells[named:]),
            ]
            for label, *cells in rows
        ]
        alignment = f"{'l' * (1 + named)}{'r' * (len(heading) - 1 - named)}"
        return display.latex_table(alignment, list(map(display.latex, heading)), texts)

    def _caption(self) -> str:
        of_what = "log expected " if self.link == "log" else ""
        target = display.plain(self.schema.target)
        return f"{self.title} of {len(self)} steps for {of_what}{target}"


@register_model
@pytree
@dataclass(frozen=True, eq=False)
class CoordinatePath(ModelSequence):
    """A sequence of linear models, each of which differs from the previous one in at most one
    coefficient, or, with the link "softmax", in the coefficients of one column.

    Attributes:
        features: the column that each step changes, int64, shape (steps,).
        step_weights: alpha_1, ..., alpha_K, shape (steps,).
    """

    features: NDArray[np.int64] = field(metadata={"dtype": np.int64})
    step_weights: NDArray[np.float64] = field(metadata={"dtype": np.float64})

    title: ClassVar[str] = "Coordinate path"

    @property
    def values(self) -> Array:
        """The new coefficients after each step, shape (steps,) or (steps, classes)."""
        return self.models[np.arange(1, len(self) + 1), self.features]

    @property
    def moved(self) -> tuple[int, ...]:
        """The columns that move, in the order of their first step."""
        return tuple(dict.fromkeys(np.asarray(self.features).tolist()))

    @property
    def loss(self) -> float:
        """L_alpha for the path's own step weights: sum_k alpha_k c(b_k), Section 3.2."""
        return weighted_loss(self, self.step_weights)

    def _check(self) -> None:
        """Also that every step changes at most the coefficients of one column."""
        super()._check()
        steps, width = len(self), len(self.columns)
        if np.shape(self.features) != (steps,) or np.shape(self.step_weights) != (steps,):
            raise ValueError(f"features and step_weights must have shape {(steps,)}")
        if not ((self.features >= 0) & (self.features < width)).all():
            raise ValueError("features must be columns of the models")
        changed = self._any_class(np.diff(np.asarray(self.models), axis=0) != 0)
        changed[np.arange(steps), self.features] = False
        if changed.any():
            raise ValueError("a step changes more than its own coefficient")

    def _shown(self, step: int) -> frozenset[int]:
        """The start shows its coefficients, every other model only the change."""
        return super()._shown(0) if step == 0 else frozenset([int(self.features[step - 1])])


@to_latex.register
def _path_to_latex(model: ModelSequence) -> str:
    return model.to_latex()


# Verbs for paths; `predict(path, X, step=k)` uses the model after k steps.


@decision_function.register
def _(model: ModelSequence, X: TableLike, step: int | None = None) -> Array:
    return model.scores(X, step)


@predict.register
def _predict(
    model: ModelSequence,
    X: TableLike,
    step: int | None = None,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Array:
    without_offset("a path of linear models", offset, exposure)
    return _outcomes(model, model.scores(X, step))


def _outcomes(model: ModelSequence, scores: Array) -> Array:
    """The predictions for these scores, shape (rows,)."""
    if model.by_class:
        if not isinstance(scores, np.ndarray):  # traced: class codes, as below
            return scores.argmax(axis=1).astype(jnp.int32)
        return np.asarray(model.schema.classes)[scores.argmax(axis=1)]
    if model.schema.classes is None:
        if model.link == "identity":
            return scores
        return np.exp(scores) if isinstance(scores, np.ndarray) else jnp.exp(scores)
    if not isinstance(scores, np.ndarray):  # traced: labels may be text, so return class codes
        return (scores > 0).astype(jnp.int32)
    return np.asarray(model.schema.classes)[(scores > 0).astype(np.int64)]


@predict_proba.register
def _(model: ModelSequence, X: TableLike, step: int | None = None) -> Array:
    if model.schema.classes is None:
        raise ValueError("model has no classes: it predicts numbers; use predict")
    return _probabilities(model, model.scores(X, step))


def _probabilities(model: ModelSequence, scores: Array) -> Array:
    """The class probabilities for these scores, shape (rows, classes)."""
    if isinstance(scores, np.ndarray):
        if model.by_class:
            return shares_of(scores)
        return np.stack([sigmoid(-scores), sigmoid(scores)], axis=1)
    if model.by_class:
        return jax.nn.softmax(scores, axis=1)
    return jnp.stack([jax.nn.sigmoid(-scores), jax.nn.sigmoid(scores)], axis=1)


@explain.register
def _(
    model: ModelSequence,
    X: TableLike,
    step: int | None = None,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> list[Explanation]:
    """Per row: the intercept and every column's contribution to the score, largest first."""
    without_offset("a path of linear models", offset, exposure)
    table = conform(X, model.schema)
    values = design_matrix(table, model.columns)
    slopes = model.slopes(step)
    names = [display.plain(name) for name in model.names]
    scores = model.host_scores(values, model._step(step))
    predictions, classes = _outcomes(model, scores), model.schema.classes
    shares = None if classes is None else np.asarray(_probabilities(model, scores)).tolist()
    # From here on with an entry per score, of which models of numbers or two classes have one
    if not model.by_class:
        slopes, scores = slopes[:, None], scores[:, None]
    used = np.flatnonzero(slopes.any(axis=1))
    at_zero = np.asarray(model.intercepts)[model._step(step)].reshape(-1)
    intercept = Contribution("intercept", at_zero)
    explanations = []
    for i, row in enumerate(values):
        at = [f"{_times(slopes[j], names[j])} at {display.number(row[j])}" for j in used]
        parts = [Contribution(text, slopes[j] * row[j]) for text, j in zip(at, used, strict=True)]
        parts.sort(key=lambda part: -np.abs(part.weight).max())
        of_class = None
        if shares is not None and classes is not None:
            of_class = dict(zip(classes, shares[i], strict=True))
        said = predictions[i].item()
        explanations.append(Explanation(said, (intercept, *parts), scores[i], of_class))
    return explanations


def _times(slopes: NDArray[np.float64], name: str) -> str:
    """A column with its coefficient, if it has only one."""
    return f"{display.number(slopes[0])} x {name}" if len(slopes) == 1 else name


@complexity.register
def _(model: CoordinatePath, measure: str = "steps") -> int:
    """The path complexity L_c of Section 2.1: the number of steps."""
    if measure != "steps":
        raise ValueError(f'measure must be "steps" for a coordinate path, got {measure!r}')
    return len(model)


# Interpretability losses of paths (Section 3)


def complexity_loss(path: ModelSequence) -> int:
    """L_c: the number of steps (Section 2.1)."""
    return len(checks.instance("path", path, ModelSequence, "jaxrules.paths.fit"))


def weighted_loss(path: ModelSequence, step_weights: ArrayLike) -> float:
    """L_alpha: sum_k alpha_k c(b_k) over the steps of the path (Section 3.2).

    Args:
        path: a path.
        step_weights: alpha_1, alpha_2, ...; at least as many as the path has steps.

    Raises:
        ValueError: if there are too few weights, or a weight is negative or not finite (then the
            loss would not be coherent).
    """
    checks.instance("path", path, ModelSequence, "jaxrules.paths.fit")
    weights = checks.array("step_weights", step_weights)
    if weights.ndim != 1 or len(weights) < len(path):
        raise ValueError(f"step_weights must be a sequence of at least {len(path)} numbers")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("step_weights must be finite and at least 0")
    return float(weights[: len(path)] @ np.asarray(path.costs)[1:])


def geometric_loss(path: ModelSequence, gamma: float) -> float:
    """L_gamma: sum_k gamma^k c(b_k) (Definition 1), gamma > 0.

    Raises:
        ValueError: if gamma is not positive and finite, or too large for as many steps.
    """
    checks.instance("path", path, ModelSequence, "jaxrules.paths.fit")
    step_weights = geometric_weights(checks.number("gamma", gamma, above=0), len(path))
    checks.require(
        np.isfinite(step_weights).all(),
        f"gamma={gamma:g} to the power of {len(path)} steps overflows",
    )
    return weighted_loss(path, step_weights)


def dominates(path: ModelSequence, other: ModelSequence, tolerance: float = 0.0) -> bool:
    """Whether c_k <= c'_k at every step (Section 3.1 (b)); steps beyond the end cost 0."""
    for name, given in {"path": path, "other": other}.items():
        checks.instance(name, given, ModelSequence, "jaxrules.paths.fit")
    tolerance, length = checks.number("tolerance", tolerance), max(len(path), len(other))
    ours, theirs = (np.pad(p.costs[1:], (0, length - len(p))) for p in (path, other))
    return bool((ours <= theirs + tolerance).all())


def is_coherent(loss: Callable[[CoordinatePath], float], paths: Iterable[CoordinatePath]) -> bool:
    """Whether a path loss meets conditions (a) and (b) of Section 3.1 on all pairs of these paths.

    A path that dominates another may not have the larger loss; equal cost sequences dominate each
    other, so that (b) contains (a). True means that these paths contain no counterexample.
    """
    known = [(path, loss(path)) for path in paths]
    return all(
        ours <= theirs for path, ours in known for other, theirs in known if dominates(path, other)
    )
