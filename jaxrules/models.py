"""Models and what can be asked of them: predict, explain, complexity; all exact on the host.

`RuleEnsemble` and `RuleList` are frozen dataclasses registered as pytrees: arrays are leaves, the
`Schema` is static. The public functions dispatch on the type of the model, so that other modules add
models of their own with ``predict.register``.

On the host, scores are float64 sums in rule order over exactly checked rules. Inside a user's own
jit, grad or vmap (a traced `X` or traced weights) the same functions trace: comparisons then happen
in the dtype of `X`, and sums in that of the weights.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from jaxrules import display
from jaxrules.conjunctions import Conjunctions
from jaxrules.table import Label, Schema, Table, conform

Link = Literal["identity", "logistic", "exponential", "log"]
Array = NDArray[Any] | jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class LinearTerms:
    """Winsorised linear terms of RuleFit: coefficient * min(upper, max(lower, x)).

    A row that misses the value gets nothing from the term.

    Attributes:
        feature: int32, shape (terms,).
        coefficients: shape (terms, outputs).
        lower, upper: shape (terms,); infinite where the column is not winsorised.
    """

    feature: NDArray[np.int32]
    coefficients: Array
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def values(self, table: Table) -> NDArray[np.float64]:
        """The winsorised columns, 0 where missing, shape (rows, terms)."""
        if not len(self.feature):
            return np.zeros((table.n_rows, 0))
        raw = np.stack([table.columns[f] for f in self.feature.tolist()], axis=1)
        return np.where(np.isnan(raw), 0.0, np.clip(raw, self.lower, self.upper))

    def values_traced(self, X: jax.Array) -> jax.Array:
        """`values` for use under jit, vmap and grad, in the dtype of `X`."""
        raw = X[:, self.feature]
        clipped = jnp.clip(raw, jnp.asarray(self.lower), jnp.asarray(self.upper))
        return jnp.where(jnp.isnan(raw), 0.0, clipped)

    def describe(self, term: int, schema: Schema) -> str:
        """One term in words."""
        name = schema.features[self.feature[term]].name
        if np.isinf(self.lower[term]) and np.isinf(self.upper[term]):
            return f"times {name}"
        lower, upper = display.number(self.lower[term]), display.number(self.upper[term])
        return f"times {name}, clipped to [{lower}, {upper}]"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class RuleEnsemble:
    """intercept + the sum of the weights of the satisfied rules (+ linear terms), under a link.

    Attributes:
        conjunctions: the rules.
        weights: shape (rules, outputs); one output, or one per class (one-vs-rest).
        intercept: shape (outputs,).
        linear: RuleFit's linear terms, or None.
        link: what the score f means: "identity" the prediction; "logistic" log-odds, p = 1/(1 + e^-f);
            "exponential" half the log-odds, p = 1/(1 + e^-2f); "log" the logarithm of an expected count.
        options: how the learner set the problem up, as (name, value) pairs; `jaxrules.save` keeps them.
    """

    conjunctions: Conjunctions
    weights: Array
    intercept: Array
    linear: LinearTerms | None = None
    link: Link = field(default="identity", metadata={"static": True})
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata={"static": True})

    @property
    def schema(self) -> Schema:
        return self.conjunctions.schema

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    def validate(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: naming what is wrong.
        """
        self.conjunctions.validate()
        if self.weights.shape != (len(self.conjunctions), self.n_outputs):
            raise ValueError(f"weights must have shape (rules, outputs), got {self.weights.shape}")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise ValueError("weights and intercept must be finite")
        if self.link not in ("identity", "logistic", "exponential", "log"):
            raise ValueError(f"unknown link {self.link!r}")
        classes = self.schema.classes
        if classes is not None and self.n_outputs != (1 if len(classes) == 2 else len(classes)):
            raise ValueError(f"{self.n_outputs} outputs do not fit {len(classes)} classes")
        if (classes is None) != (self.link in ("identity", "log")):
            raise ValueError(f"the link {self.link!r} does not fit classes {classes}")
        if self.linear is not None:
            n = len(self.linear.feature)
            shapes = (self.linear.coefficients.shape, self.linear.lower.shape, self.linear.upper.shape)
            if shapes != ((n, self.n_outputs), (n,), (n,)):
                raise ValueError(f"linear terms have shapes {shapes}")
            if not all(0 <= f < len(self.schema.features) for f in self.linear.feature.tolist()):
                raise ValueError("a linear term names a feature that does not exist")
            if not all(self.schema.features[f].is_numeric for f in self.linear.feature.tolist()):
                raise ValueError("a linear term names a categorical feature")
            if not np.isfinite(self.linear.coefficients).all():
                raise ValueError("linear coefficients must be finite")

    def __str__(self) -> str:
        return display.ensemble_text(self)

    def _repr_html_(self) -> str:
        return display.ensemble_html(self)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class RuleList:
    """The class of the first satisfied rule, else the default.

    Attributes:
        conjunctions: the rules in order.
        labels: int32 class codes, shape (rules + 1,); the last is the default.
        probabilities: class frequencies among the training rows that each rule decided, shape
            (rules + 1, classes).
        options: how the learner set the problem up, as (name, value) pairs.
    """

    conjunctions: Conjunctions
    labels: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata={"static": True})

    @property
    def schema(self) -> Schema:
        return self.conjunctions.schema

    def validate(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: naming what is wrong.
        """
        self.conjunctions.validate()
        if self.schema.classes is None:
            raise ValueError("a rule list needs classes in its schema")
        shape = (len(self.conjunctions) + 1, len(self.schema.classes))
        if self.probabilities.shape != shape or self.labels.shape != shape[:1]:
            raise ValueError(f"labels and probabilities must have shapes {shape[:1]} and {shape}")
        if not ((self.labels >= 0) & (self.labels < shape[1])).all():
            raise ValueError("labels must be class codes")
        if not ((self.probabilities >= 0).all() and np.allclose(self.probabilities.sum(axis=1), 1)):
            raise ValueError("probabilities must be at least 0 and sum to 1")

    def position(self, table: Table) -> NDArray[np.int64]:
        """Index of the first satisfied rule of every row; the number of rules where none holds."""
        positions = np.empty(table.n_rows, np.int64)
        for rows, satisfied in self.conjunctions.batches(table):
            always = np.ones((len(satisfied), 1), bool)
            positions[rows] = np.argmax(np.concatenate([satisfied, always], axis=1), axis=1)
        return positions

    def __str__(self) -> str:
        return display.list_text(self)

    def _repr_html_(self) -> str:
        return display.list_html(self)


def _not_a_model(model: Any) -> NoReturn:
    hint = "; pass fit.model" if hasattr(model, "model") else ""
    raise TypeError(f"model must be a jaxrules model, got {type(model).__name__}{hint}")


@functools.singledispatch
def decision_function(model: Any, X: Any) -> Array:
    """The score of every row, shape (rows,), or (rows, outputs) with one output per class.

    Args:
        model: a rule ensemble (log-odds, half log-odds or value, see `RuleEnsemble.link`).
        X: data with the columns of fit; dataframes are matched by name. Under jit a numeric array
            in column order.

    Raises:
        ValueError: if `X` does not fit the model's columns.
        TypeError: for a model without scores.
    """
    _not_a_model(model)


@functools.singledispatch
def predict(model: Any, X: Any) -> Array:
    """The prediction for every row, shape (rows,): a class label, a value, or an expected count.

    Args:
        model: any jaxrules model.
        X: data with the columns of fit; dataframes are matched by name.

    Raises:
        ValueError: if `X` does not fit the model's columns.
    """
    _not_a_model(model)


@functools.singledispatch
def predict_proba(model: Any, X: Any) -> Array:
    """Class probabilities, shape (rows, classes), in the order of ``model.schema.classes``.

    One-vs-rest ensembles give each class its own probability, scaled to sum to one.

    Raises:
        ValueError: if `X` does not fit the model's columns, or the model has no classes.
    """
    _not_a_model(model)


class Part(NamedTuple):
    """One reason: the rule (or "intercept", or a linear term) and its weight, shape (outputs,)."""

    text: str
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model predicts what it does for one row.

    Attributes:
        prediction: the label or value.
        parts: for an ensemble the intercept, the satisfied rules and the linear terms: their weights add
            up to `score`; for a rule list the rule that decided, without weight.
        score: the sum, shape (outputs,); None for a rule list.
        probabilities: by class label, or None.
    """

    prediction: Any
    parts: tuple[Part, ...]
    score: NDArray[np.float64] | None = None
    probabilities: dict[Label, float] | None = None

    def __str__(self) -> str:
        return display.explanation_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return display.explanation_html(self)


@functools.singledispatch
def explain(model: Any, X: Any) -> list[Explanation]:
    """For every row, the rules that it satisfies, their weights and the sum.

    Raises:
        ValueError: if `X` does not fit the model's columns.
    """
    _not_a_model(model)


def with_weights(model: RuleEnsemble, weights: ArrayLike, intercept: ArrayLike | None = None) -> RuleEnsemble:
    """The same rules with other weights: the differentiable route.

    With JAX arrays as weights, `decision_function` on the result is a differentiable function of them::

        jax.grad(lambda w: loss(y, jr.decision_function(jr.with_weights(model, w), X)))(weights)

    Args:
        model: a rule ensemble.
        weights: shape (rules,) for one output, or (rules, outputs).
        intercept: shape (outputs,) or a number; the model's own when None.

    Raises:
        ValueError: if the shapes do not fit.
    """
    if not isinstance(model, RuleEnsemble):
        raise TypeError(f"model must be a RuleEnsemble, got {type(model).__name__}")
    new: Array = weights if isinstance(weights, jax.Array) else np.asarray(weights, np.float64)
    if new.shape == (len(model.conjunctions),) and model.n_outputs == 1:
        new = new[:, None]
    if new.shape != model.weights.shape:
        raise ValueError(f"weights must have shape {model.weights.shape}, got {new.shape}")
    if intercept is None:
        return dataclasses.replace(model, weights=new)
    constant = intercept if isinstance(intercept, jax.Array) else np.asarray(intercept, np.float64)
    constant = constant.reshape(-1)
    if constant.shape != model.intercept.shape:
        raise ValueError(f"intercept must have shape {model.intercept.shape}, got {constant.shape}")
    return dataclasses.replace(model, weights=new, intercept=constant)


# Rule ensembles


@decision_function.register
def _(model: RuleEnsemble, X: Any) -> Array:
    scores = _scores(model, X)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _scores(model: RuleEnsemble, X: Any) -> Array:
    """Scores, shape (rows, outputs): float64 on the host, traced if `X` or the weights are jax arrays."""
    satisfied: Array
    if isinstance(X, jax.core.Tracer):
        satisfied = model.conjunctions.satisfied_traced(X)
        terms = None if model.linear is None else model.linear.values_traced(X)
    else:
        table = conform(X, model.schema)
        if not isinstance(model.weights, jax.Array) and not isinstance(model.intercept, jax.Array):
            return _host_scores(model, table)
        satisfied = model.conjunctions.satisfied(table)
        terms = None if model.linear is None else jnp.asarray(model.linear.values(table))
    weights = jnp.asarray(model.weights)
    scores = jnp.matmul(satisfied.astype(weights.dtype), weights) + jnp.asarray(model.intercept)
    if model.linear is not None and terms is not None:
        scores = scores + jnp.matmul(terms, jnp.asarray(model.linear.coefficients))
    return scores


def _host_scores(model: RuleEnsemble, table: Table) -> NDArray[np.float64]:
    scores = np.empty((table.n_rows, model.n_outputs))
    for rows, satisfied in model.conjunctions.batches(table):
        columns = np.ascontiguousarray(satisfied.T)
        for k in range(model.n_outputs):
            total = np.full(columns.shape[1], float(model.intercept[k]))
            for holds, weight in zip(columns, model.weights[:, k], strict=True):  # rule order: a defined sum
                if weight:
                    total += holds * weight
            scores[rows, k] = total
    if model.linear is not None:
        for t, values in enumerate(model.linear.values(table).T):
            scores += values[:, None] * model.linear.coefficients[t]
    return scores


@predict.register
def _(model: RuleEnsemble, X: Any) -> Array:
    scores: Any = _scores(model, X)
    if model.schema.classes is None:
        value = scores if scores.shape[1] > 1 else scores[:, 0]
        return value if model.link == "identity" else (np if isinstance(value, np.ndarray) else jnp).exp(value)
    codes = scores[:, 0] > 0 if model.n_outputs == 1 else scores.argmax(axis=1)
    if not isinstance(scores, np.ndarray):  # traced: labels may be text, so the class codes come back
        return codes.astype(jnp.int32)
    return np.asarray(model.schema.classes)[codes.astype(np.int64)]


@predict_proba.register
def _(model: RuleEnsemble, X: Any) -> Array:
    if model.schema.classes is None:
        raise ValueError("model has no classes: it predicts numbers; use predict")
    scores: Any = _scores(model, X)
    margins = 2 * scores if model.link == "exponential" else scores
    if isinstance(scores, np.ndarray):
        if model.n_outputs == 1:  # both tails by expit, so that neither rounds to 1 - 1
            return np.concatenate([expit(-margins), expit(margins)], axis=1)
        positive = expit(margins)
        return positive / positive.sum(axis=1, keepdims=True)
    if model.n_outputs == 1:
        return jnp.concatenate([jax.nn.sigmoid(-margins), jax.nn.sigmoid(margins)], axis=1)
    shares = jax.nn.sigmoid(margins)
    return shares / shares.sum(axis=1, keepdims=True)


@explain.register
def _(model: RuleEnsemble, X: Any) -> list[Explanation]:
    table = conform(X, model.schema)
    satisfied = model.conjunctions.satisfied(table)
    scores = np.asarray(_scores(model, table))
    predictions = np.asarray(predict(model, table))
    classes = model.schema.classes
    probabilities = None if classes is None else np.asarray(predict_proba(model, table))
    terms = None if model.linear is None else model.linear.values(table)
    weights = np.asarray(model.weights)
    texts = {r: model.conjunctions.describe(r) for r in np.flatnonzero(satisfied.any(axis=0)).tolist()}
    explanations = []
    for i in range(table.n_rows):
        held = [r for r in np.flatnonzero(satisfied[i]).tolist() if weights[r].any()]
        held.sort(key=lambda r: -np.abs(weights[r]).max())
        parts = [Part("intercept", np.asarray(model.intercept))] + [Part(texts[r], weights[r]) for r in held]
        if model.linear is not None and terms is not None:
            coefficients = np.asarray(model.linear.coefficients)
            for t in np.flatnonzero(coefficients.any(axis=1)).tolist():
                name = model.schema.features[model.linear.feature[t]].name
                text = f"linear term of {name} at {display.number(terms[i, t])}"
                parts.append(Part(text, coefficients[t] * terms[i, t]))
        shares = None
        if classes is not None and probabilities is not None:
            shares = dict(zip(classes, probabilities[i].tolist(), strict=True))
        explanations.append(Explanation(predictions[i].item(), tuple(parts), scores[i], shares))
    return explanations


# Rule lists


@decision_function.register
def _(model: RuleList, X: Any) -> Array:
    raise TypeError("a RuleList has no scores; use predict or predict_proba")


@predict.register
def _(model: RuleList, X: Any) -> Array:
    positions = model.position(conform(X, model.schema))
    return np.asarray(model.schema.classes)[model.labels[positions]]


@predict_proba.register
def _(model: RuleList, X: Any) -> Array:
    return model.probabilities[model.position(conform(X, model.schema))]


@explain.register
def _(model: RuleList, X: Any) -> list[Explanation]:
    table = conform(X, model.schema)
    classes = model.schema.classes or ()
    explanations = []
    for position in model.position(table).tolist():
        default = position == len(model.conjunctions)
        text = (
            "no rule holds: the default" if default else f"rule {position + 1}: {model.conjunctions.describe(position)}"
        )
        shares = dict(zip(classes, model.probabilities[position].tolist(), strict=True))
        explanations.append(Explanation(classes[model.labels[position]], (Part(text, np.zeros(0)),), None, shares))
    return explanations
