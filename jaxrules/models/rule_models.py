"""Models, and how they predict and explain; on the host everything is exact.

`RuleEnsemble` and `RuleList` are frozen dataclasses registered as pytrees: arrays are leaves, the
`Schema` is static. The public functions dispatch on the type of the model, so other modules can add
models with ``predict.register``.

On the host, scores are float64 sums in rule order over exactly evaluated rules. Inside a user's own
jit, grad or vmap (a traced `X`, or a model with traced leaves) the same functions trace:
comparisons then use the dtype of `X`, and sums that of the weights. If only the weights are traced,
the rules are still evaluated exactly on the host. A trace cannot refuse values: a missing value
fails every condition that does not allow it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Self, TypeGuard, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import (
    Label,
    Schema,
    Table,
    TableLike,
    check_order,
    conform,
    effective_row,
    total_offset,
)
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.lowered import FEW_ROWS
from jaxrules.tools import checks, display
from jaxrules.tools.checks import require
from jaxrules.tools.fits import Settings
from jaxrules.tools.float64 import full_precision
from jaxrules.tools.kept import Keeps
from jaxrules.tools.pytrees import check_arrays, check_options, concrete_arrays, pytree

ListLoss = Literal["squared", "absolute"]
Link = Literal["identity", "logistic", "exponential", "log", "softmax"]
Array = NDArray[Any] | jax.Array


class Threshold(NamedTuple):
    """Where the prediction of a model of two classes changes, if `jaxrules.with_threshold` set it.

    Attributes:
        label: the second class, which is predicted above it.
        probability: of the second class.
        score: of `decision_function`; None for a rule list.
    """

    label: Label
    probability: float
    score: float | None = None

    def __str__(self) -> str:
        share = display.number(self.probability)
        # A probability that rounds to 1 must not print as 1.
        share = display.share_text(self.probability) if share in ("0", "1") else share
        score = "" if self.score is None else f", a score of {display.number(self.score)}"
        return f"{display.plain(self.label)} is predicted above p = {share}{score}"


def warn_of_threshold(model: RuleEnsemble | RuleList) -> None:
    """Warn before a model gets new weights: its threshold was chosen for the old ones."""
    if model.threshold:
        what = "weights" if isinstance(model, RuleEnsemble) else "frequencies"
        checks.warn(
            f"the threshold {model.threshold:.6g} of the model was chosen for its old {what}; "
            "choose it again with jaxrules.operating_point"
        )


@pytree
@dataclass(frozen=True, eq=False)
class LinearTerms:
    """Winsorised linear terms of RuleFit: coefficient * min(upper, max(lower, x)).

    The term is 0 if the value is missing.

    Attributes:
        feature: int32, shape (terms,).
        coefficients: shape (terms, outputs).
        lower, upper: shape (terms,); infinite if the column is not winsorised.
    """

    feature: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    coefficients: Array = field(metadata={"dtype": np.float64})
    lower: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    upper: NDArray[np.float64] = field(metadata={"dtype": np.float64})

    def __post_init__(self) -> None:
        check_arrays(self)

    @property
    def used(self) -> list[int]:
        """The terms with a coefficient other than 0."""
        return np.flatnonzero(np.asarray(self.coefficients).any(axis=1)).tolist()

    def take(self, terms: NDArray[np.int64]) -> LinearTerms:
        """The terms with these indices."""
        return LinearTerms(
            self.feature[terms], self.coefficients[terms], self.lower[terms], self.upper[terms]
        )

    def values(self, table: Table) -> NDArray[np.float64]:
        """The winsorised columns, 0 where missing, shape (rows, terms)."""
        columns = [self.column(term, table) for term in range(len(self.feature))]
        return np.stack(columns, axis=1) if columns else np.zeros((table.n_rows, 0))

    def column(self, term: int, table: Table) -> NDArray[np.float64]:
        """One column of `values`, shape (rows,)."""
        raw = table.columns[self.feature[term]]
        return np.where(np.isnan(raw), 0.0, np.clip(raw, self.lower[term], self.upper[term]))

    def values_traced(self, X: jax.Array) -> jax.Array:
        """`values` for use under jit, vmap and grad, in the dtype of `X`."""
        raw = X[:, self.feature]
        lower, upper = (jnp.asarray(end, raw.dtype)[None] for end in (self.lower, self.upper))
        return jnp.where(jnp.isnan(raw), 0.0, jnp.clip(raw, lower, upper))

    def validate(self, schema: Schema, n_outputs: int) -> None:
        """Check shapes and ranges; a ValueError names what is wrong."""
        given, n_columns = self.feature.shape, len(schema.features)
        require(
            len(given) == 1, f"feature of the linear terms must have shape (terms,), got {given}"
        )
        n = len(self.feature)
        shapes = (self.coefficients.shape, self.lower.shape, self.upper.shape)
        fit = shapes == ((n, n_outputs), (n,), (n,))
        require(
            fit,
            f"feature of {n} linear terms: coefficients, lower and upper have the shapes {shapes}",
        )
        for f in self.feature.tolist():
            require(0 <= f < n_columns, f"a linear term names feature {f}; there are {n_columns}")
            feature = schema.features[f]
            require(
                feature.is_numeric, f"a linear term names the categorical feature {feature.name!r}"
            )
        require(np.isfinite(self.coefficients).all(), "linear coefficients must be finite")
        require(
            bool((self.lower <= self.upper).all()),
            "lower of a linear term must be at most its upper, and not NaN",
        )

    def describe(self, term: int, schema: Schema) -> str:
        """One term as text."""
        name = display.plain(schema.features[self.feature[term]].as_number)
        if np.isinf(self.lower[term]) and np.isinf(self.upper[term]):
            return f"times {name}"
        lower, upper = display.number(self.lower[term]), display.number(self.upper[term])
        return f"times {name}, clipped to [{lower}, {upper}]"


class _OfRules(Keeps):
    """What models of rules have in common."""

    conjunctions: Conjunctions
    options: Settings

    def __post_init__(self) -> None:
        checks.instance("conjunctions", self.conjunctions, Conjunctions, "Conjunctions.build")
        check_arrays(self)
        check_options(self.options)
        self.check_parts()
        model: Any = self  # every model is a dataclass
        fields = dataclasses.fields(model)
        arrays = [getattr(self, one.name) for one in fields if "dtype" in one.metadata]
        if concrete_arrays(*jax.tree.leaves(arrays)):
            self._check_values()

    def validate(self) -> None:
        """Check shapes and ranges; a ValueError names what is wrong."""
        self.conjunctions.validate()
        self.check_parts()
        self._check_values()

    def check_parts(self) -> None:
        """Check what predictions need of a model that the user may have made by hand."""
        raise NotImplementedError  # every model has its own

    def _check_values(self) -> None:
        raise NotImplementedError  # every model has its own

    if not TYPE_CHECKING:  # type checkers would take every attribute for known

        def __getattr__(self, name: str) -> NoReturn:
            raise checks.unknown_attribute(self, name, "model")

    @property
    def schema(self) -> Schema:
        return self.conjunctions.schema


@pytree
@dataclass(frozen=True, eq=False)
class RuleEnsemble(_OfRules):
    """intercept + the sum of the weights of the satisfied rules (+ linear terms), under a link.

    Attributes:
        conjunctions: the rules.
        weights: shape (rules, outputs); one output, or one per class if there are more than two.
        intercept: shape (outputs,).
        linear: RuleFit's linear terms, or None.
        link: the meaning of the score f: "identity" the prediction; "logistic" log-odds, p = 1/(1 +
            e^-f); "exponential" half the log-odds, p = 1/(1 + e^-2f); "log" the logarithm of an
            expected count; "softmax" log-probabilities of several classes up to a common constant,
            p_k = e^f_k / sum_j e^f_j.
        options: the settings of the fit, as (name, value) pairs; `jaxrules.save` keeps them.
        loss: name of the loss that the learner minimised, see `jaxrules.losses`; None for the loss
            of the link.
        threshold: for two classes, the second is predicted for scores above it; see
            `jaxrules.with_threshold`. Probabilities do not depend on it.
    """

    conjunctions: Conjunctions
    weights: Array = field(metadata={"dtype": np.float64})
    intercept: Array = field(metadata={"dtype": np.float64})
    linear: LinearTerms | None = None
    link: Link = field(default="identity", metadata={"static": True})
    options: Settings = field(default=(), metadata={"static": True})
    loss: str | None = field(default=None, metadata={"static": True})
    threshold: float = field(default=0.0, metadata={"static": True})

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    def _check_values(self) -> None:
        finite = np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()
        require(bool(finite), "weights and intercept must be finite")
        classes = self.schema.classes
        wanted = 1 if classes is None or len(classes) == 2 else len(classes)
        require(
            self.n_outputs == wanted,
            f"weights and intercept of {self.n_outputs} outputs do not fit the classes {classes}",
        )
        require(
            self.link != "softmax" or wanted > 1, "the link 'softmax' is for more than two classes"
        )
        if self.linear is not None and concrete_arrays(*jax.tree.leaves(self.linear)):
            self.linear.validate(self.schema, self.n_outputs)

    def shifted(self, by: float) -> RuleEnsemble:
        """The model with this number added to every score."""
        return dataclasses.replace(self, intercept=np.asarray(self.intercept) + by)

    def check_parts(self) -> None:
        """Check what predictions need: matching shapes, and a link that fits the target."""
        if self.linear is not None:
            checks.instance("linear", self.linear, LinearTerms, "jaxrules.LinearTerms")
        if not (self.loss is None or isinstance(self.loss, str)):
            raise TypeError(f"loss must be the name of a loss or None, got {self.loss!r}")
        classes, given = self.schema.classes, (np.shape(self.weights), np.shape(self.intercept))
        require(len(given[1]) == 1, f"intercept must have shape (outputs,), got {given[1]}")
        fit = given[0] == (len(self.conjunctions), self.n_outputs)
        require(
            fit,
            f"weights must have shape (rules, outputs), got {given[0]} for an intercept of shape "
            f"{given[1]}",
        )
        checks.choice("link", self.link, get_args(Link))
        of_numbers = self.link in ("identity", "log")
        require(
            of_numbers == (classes is None),
            f"the link {self.link!r} does not fit classes {classes}",
        )
        threshold = checks.number("threshold", self.threshold)
        require(
            not threshold or (classes is not None and len(classes) == 2),
            f"threshold is for models of two classes, not for classes {classes}",
        )

    def __repr__(self) -> str:
        return f"RuleEnsemble({self._size}, link={self.link!r})"

    @property
    def _size(self) -> str:
        """The numbers of rules and of linear terms, in words."""
        return display.size_text(
            len(self.conjunctions), 0 if self.linear is None else len(self.linear.feature)
        )

    def __str__(self) -> str:
        title = f"Rule ensemble of {self._size}"
        if len(classes := self.schema.classes or ()) == 2:
            title += f" (positive class: {display.plain(classes[1])})"
        names = [(*self._names(), "")] if self.n_outputs > 1 else []
        return "\n".join([title, self.heading, *display.aligned([*names, *self._rows()])])

    def _repr_html_(self) -> str:
        return display.html_table(self.heading, (*self._names(), "rule"), self._rows())

    def _names(self) -> tuple[str, ...]:
        """The headings of the columns of weights: the classes if there are several outputs."""
        classes = (self.schema.classes or ()) if self.n_outputs > 1 else ("weight",)
        return tuple(display.plain(label) for label in classes)

    def _rows(self) -> list[tuple[str, ...]]:
        """(weight, rule) of every rule, largest weight first, and of every linear term.

        With several outputs, one weight per output, the intercepts first; then the rules, grouped
        by the class that they favour.
        """
        weights, several = np.asarray(self.weights), self.n_outputs > 1
        # Stable sorts: ties stay in rule order, and within a class the largest weight is first.
        order = np.argsort(-np.abs(weights).max(axis=1, initial=0), kind="stable")
        rows: list[tuple[NDArray[Any], str, int]] = []
        if several:
            rows.append((np.asarray(self.intercept), "always", 0))
            order = order[np.argsort(_spoken_for(weights)[order], kind="stable")]
        rows += [(weights[r], self.conjunctions.describe(r), 0) for r in order.tolist()]
        if self.linear is not None:
            for t, coefficients in enumerate(np.asarray(self.linear.coefficients)):
                more = display.factor_digits(self.linear.lower[t], self.linear.upper[t])
                rows.append((coefficients, self.linear.describe(t, self.schema), more))
        text, digits = (display.cell_text, 2) if several else (display.weight_text, 4)
        return [
            (*(text(weight, self.largest, digits + more) for weight in row.tolist()), rule)
            for row, rule, more in rows
        ]

    @property
    def largest(self) -> float:
        """The largest absolute value of the numbers that a reader adds up."""
        return display.largest_of(self.intercept, self.weights)

    @property
    def heading(self) -> str:
        """What the sum of the weights means, and the intercept, in one line."""
        target = display.plain(self.schema.target)
        what = {
            "identity": f"{target} =",
            "log": f"log expected {target} =",
            "logistic": "log-odds of",
            "exponential": "half the log-odds of",
            "softmax": "log-probability, up to a constant, of",
        }[self.link]
        classes = self.schema.classes
        if self.n_outputs > 1:
            terms = "" if self.linear is None else " and the linear terms"
            return f"{what} each {target}: the sum of its column over the rules that hold{terms}"
        if classes is not None:
            what = f"{what} {target} == {display.plain(classes[1])}:"
        terms = "" if self.linear is None else " + the linear terms"
        start = display.weight_text(self.intercept, self.largest)
        cut = "" if self.cut is None else f"; {self.cut}"
        return f"{what} {start} + the weights of the rules that hold{terms}{cut}"

    @property
    def cut(self) -> Threshold | None:
        """The threshold, and its probability; None if it is a score of 0, one half."""
        if not self.threshold or self.schema.classes is None:
            return None
        # The exponential link has half the log-odds as its score.
        margin = self.threshold * (2.0 if self.link == "exponential" else 1.0)
        share = float(sigmoid(np.array(margin)))
        return Threshold(self.schema.classes[1], share, self.threshold)


def _spoken_for(weights: NDArray[Any]) -> NDArray[np.intp]:
    """The output of each rule's largest positive weight; of its largest absolute weight if none is
    positive.
    """
    positive = np.where((weights > 0).any(axis=1, keepdims=True), weights, np.abs(weights))
    return positive.argmax(axis=1) if weights.shape[1] else np.zeros(len(weights), np.intp)


def first_satisfied(rules: Conjunctions, table: Table) -> NDArray[np.int64]:
    """Index of the first rule that each row satisfies; the number of rules if it satisfies none."""
    positions = np.empty(table.n_rows, np.int64)
    for rows, satisfied in rules.batches(table):
        # `argmax` finds the first True; the additional column is the default, which always holds.
        always = np.ones((len(satisfied), 1), bool)
        positions[rows] = np.argmax(np.concatenate([satisfied, always], axis=1), axis=1)
    return positions


class OrderedRules(_OfRules):
    """What rule lists have in common: the first rule that holds decides, else the default."""

    @property
    def cut(self) -> Threshold | None:
        """The threshold of the labels, and its class; None without one."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.conjunctions)} rules)"

    def position(self, table: Table) -> NDArray[np.int64]:
        """Index of the first rule that each row satisfies; the number of rules if it satisfies
        none.
        """
        return first_satisfied(self.conjunctions, table)

    def position_traced(self, X: jax.Array) -> jax.Array:
        """`position` for use under jit and vmap; comparisons use the dtype of `X`."""
        satisfied, always = self.conjunctions.satisfied_traced(X), jnp.ones((X.shape[0], 1), bool)
        return jnp.argmax(jnp.concatenate([satisfied, always], axis=1), axis=1)

    def __str__(self) -> str:
        *rules, (last, _, default) = self._rows()
        lines = [*(f"{word} {rule} THEN {says}" for word, rule, says in rules), f"{last} {default}"]
        return "\n".join([*lines, *([] if self.cut is None else [f"({self.cut})"])])

    def _repr_html_(self) -> str:
        title = f"Rule list of {display.counted(len(self.conjunctions), 'rule')}"
        title += "" if self.cut is None else f"; {self.cut}"
        return display.html_table(title, ("", "conditions", "then"), self._rows())

    def _rows(self) -> list[tuple[str, str, str]]:
        """(IF or ELSE IF, conditions, consequent) of every rule and of the default."""
        n = len(self.conjunctions)
        words = ["IF", *["ELSE IF"] * (n - 1), "ELSE"] if n else ["ALWAYS"]
        conditions = [*(self.conjunctions.describe(rule, " AND ") for rule in range(n)), ""]
        return list(zip(words, conditions, map(self.says, range(n + 1)), strict=True))

    def says(self, rule: int) -> str:
        """What a rule, or the default, predicts, and the training rows behind it."""
        raise NotImplementedError  # every list has its own

    def predicted(self, rule: int) -> tuple[Any, dict[Label, float] | None]:
        """What a rule, or the default, predicts, and the probabilities of the classes, if any."""
        raise NotImplementedError  # every list has its own

    def counted(self, rule: int) -> list[str]:
        """The training rows behind a rule, or the default; empty if unknown."""
        raise NotImplementedError  # every list has its own

    def take(self, rules: NDArray[np.int64]) -> Self:
        """The list of these rules and the default, without the figures of training rows, since
        rules now decide others.
        """
        raise NotImplementedError  # every list has its own


@pytree
@dataclass(frozen=True, eq=False, repr=False)
class RuleList(OrderedRules):
    """Predicts the class of the first satisfied rule, else the default.

    Attributes:
        conjunctions: the rules in order.
        labels: int32 class codes, shape (rules + 1,); the last is the default.
        probabilities: shape (rules + 1, classes): class frequencies among the training rows that
            each rule decides (learners add one row per class, so that none is 0; with weights, one
            of weight sum w^2 / sum w, so that multiplying all weights changes nothing).
        options: the settings of the fit, as (name, value) pairs.
        counts: shape (rules + 1, classes): the number of training rows of each class that each rule
            decides, or the sums of their weights; None if unknown, as after dropping rules.
        weighted: whether `counts` are sums of weights.
        threshold: for two classes, the labels are the second one for probabilities of it above
            this one; see `jaxrules.with_threshold`. None for labels that follow no threshold.
    """

    conjunctions: Conjunctions
    labels: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    probabilities: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    options: Settings = field(default=(), metadata={"static": True})
    counts: NDArray[np.float64] | None = field(default=None, metadata={"dtype": np.float64})
    weighted: bool = field(default=False, metadata={"static": True})
    threshold: float | None = field(default=None, metadata={"static": True})

    def check_parts(self) -> None:
        checks.flag("weighted", self.weighted)

    def _check_values(self) -> None:
        require(self.schema.classes is not None, "a rule list needs classes in its schema")
        shape = (len(self.conjunctions) + 1, len(self.schema.classes or ()))
        fit = self.probabilities.shape == shape and self.labels.shape == shape[:1]
        require(fit, f"labels and probabilities must have shapes {shape[:1]} and {shape}")
        within = bool(((self.labels >= 0) & (self.labels < shape[1])).all())
        require(within, f"labels must be class codes, from 0 to {shape[1] - 1}")
        shares = (self.probabilities >= 0).all() and np.allclose(self.probabilities.sum(axis=1), 1)
        require(bool(shares), "probabilities must be at least 0 and sum to 1")
        _check_known("counts", self.counts, shape)
        if self.threshold is not None:
            threshold = checks.number("threshold", self.threshold)
            require(shape[1] == 2, f"threshold is for two classes, not for {self.schema.classes}")
            # Strictly above, as in `predict`: a share equal to the threshold is of the first class.
            follow = ((self.probabilities[:, 1] > threshold) == self.labels).all()
            require(bool(follow), "labels must be those that threshold gives, or threshold None")

    @property
    def cut(self) -> Threshold | None:
        """The threshold and its class."""
        classes = self.schema.classes or ()
        return None if self.threshold is None else Threshold(classes[1], self.threshold)

    def take(self, rules: NDArray[np.int64]) -> RuleList:
        says = np.append(rules, len(self.conjunctions))
        figures = {"labels": self.labels[says], "probabilities": self.probabilities[says]}
        kept = self.conjunctions.take(rules)
        return dataclasses.replace(self, conjunctions=kept, counts=None, **figures)

    def says(self, rule: int) -> str:
        code = int(self.labels[rule])
        says = display.plain(f"{self.schema.target} = {(self.schema.classes or ())[code]}")
        share = display.share_text(float(self.probabilities[rule, code]))
        return f"{says} ({', '.join([f'p = {share}', *self.counted(rule)])})"

    def predicted(self, rule: int) -> tuple[Any, dict[Label, float] | None]:
        classes = self.schema.classes or ()
        shares = dict(zip(classes, self.probabilities[rule].tolist(), strict=True))
        return classes[self.labels[rule]], shares

    def counted(self, rule: int) -> list[str]:
        """The training rows behind a rule, or the default, e.g. ``30 of 34 rows``: those with its
        label among those that it decides; or ``weight 8.5 of 9.25``. Empty if unknown.
        """
        if self.counts is None:
            return []
        counts, label = np.asarray(self.counts)[rule], np.asarray(self.labels)[rule]
        right, all_ = display.number(float(counts[label])), float(counts.sum())
        if self.weighted:
            return [f"weight {right} of {display.number(all_)}"]
        return [f"{right} of {display.counted(round(all_), 'row')}"]


def _check_known(name: str, known: NDArray[np.float64] | None, shape: tuple[int, ...]) -> None:
    """Check figures of the training rows of each rule."""
    if known is not None:
        usable = known.shape == shape and bool((np.isfinite(known) & (known >= 0)).all())
        require(usable, f"{name} must be finite and at least 0, of shape {shape}, or None")


def best_value(target: NDArray[np.float64], weights: NDArray[np.float64], loss: ListLoss) -> float:
    """The number with the least loss over some rows: their mean, or their median (the middle of
    two, where half of the weight lies on each side).
    """
    if loss == "squared":
        return float(np.average(target, weights=weights))
    order = np.argsort(target, kind="stable")
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    # Sums of weights that differ by rounding alone are equal.
    place = int(np.searchsorted(below, half * (1 - 1e-12)))
    ends = target[order[place : place + 2]]
    return float(ends.mean() if below[place] <= half * (1 + 1e-12) else ends[0])


@pytree
@dataclass(frozen=True, eq=False, repr=False)
class RegressionList(OrderedRules):
    """Predicts the number of the first satisfied rule, else the default.

    Attributes:
        conjunctions: the rules in order.
        values: shape (rules + 1,): what each rule predicts; the last is the default.
        options: the settings of the fit, as (name, value) pairs.
        counts: shape (rules + 1,): the number of training rows that each rule decides, or the sum
            of their weights; None if unknown, as after dropping rules.
        errors: shape (rules + 1,): how far the targets of these rows are from the value: the root
            mean square under the squared loss, the mean under the absolute one; None if unknown.
        weighted: whether `counts` are sums of weights.
        loss: the loss that the values minimise: "squared" (means) or "absolute" (medians).
    """

    conjunctions: Conjunctions
    values: Array = field(metadata={"dtype": np.float64})
    options: Settings = field(default=(), metadata={"static": True})
    counts: NDArray[np.float64] | None = field(default=None, metadata={"dtype": np.float64})
    errors: NDArray[np.float64] | None = field(default=None, metadata={"dtype": np.float64})
    weighted: bool = field(default=False, metadata={"static": True})
    loss: ListLoss = field(default="squared", metadata={"static": True})

    def check_parts(self) -> None:
        checks.flag("weighted", self.weighted)
        checks.choice("loss", self.loss, get_args(ListLoss))

    def _check_values(self) -> None:
        classes = self.schema.classes
        require(classes is None, f"a regression list is for numbers, not for the classes {classes}")
        shape = (len(self.conjunctions) + 1,)
        usable = self.values.shape == shape and bool(np.isfinite(self.values).all())
        require(usable, f"values must be finite, of shape {shape}")
        _check_known("counts", self.counts, shape)
        _check_known("errors", self.errors, shape)

    @classmethod
    def of_rows(
        cls,
        conjunctions: Conjunctions,
        position: NDArray[np.int64],
        target: NDArray[np.float64],
        weights: NDArray[np.float64],
        loss: ListLoss = "squared",
        options: Settings = (),
        otherwise: NDArray[np.float64] | None = None,
    ) -> RegressionList:
        """The list with the values that minimise the loss of some rows.

        Args:
            position: what decides each row, see `position`.
            target, weights: of the rows, shape (rows,).
            otherwise: the values of rules that decide none of them; None for that of all rows.
        """
        n = len(conjunctions) + 1
        values = np.full(n, best_value(target, weights, loss)) if otherwise is None else otherwise
        values, errors = np.array(values, np.float64), np.zeros(n)
        counts = np.bincount(position, weights, n)
        order = np.argsort(position, kind="stable")
        ends = np.searchsorted(position[order], np.arange(n + 1)).tolist()
        for rule in np.flatnonzero(counts).tolist():
            rows = order[ends[rule] : ends[rule + 1]]
            values[rule] = best_value(target[rows], weights[rows], loss)
            away = np.abs(target[rows] - values[rule])
            squared = loss == "squared"
            mean = np.average(away**2 if squared else away, weights=weights[rows])
            errors[rule] = mean**0.5 if squared else mean
        weighted = effective_row(weights) != 1.0
        return cls(conjunctions, values, options, counts, errors, weighted, loss)

    def says(self, rule: int) -> str:
        says = f"{display.plain(self.schema.target)} = {display.number(float(self.values[rule]))}"
        known = self.counted(rule)
        return f"{says} ({', '.join(known)})" if known else says

    def predicted(self, rule: int) -> tuple[Any, dict[Label, float] | None]:
        return float(self.values[rule]), None

    def counted(self, rule: int) -> list[str]:
        """The training rows behind a rule, or the default, and how far their targets are from the
        value, e.g. ``34 rows, off by 2.1``; empty if unknown.
        """
        known = []
        if self.counts is not None:
            count = float(self.counts[rule])
            rows = display.counted(round(count), "row")
            known.append(f"weight {display.number(count)}" if self.weighted else rows)
        if self.errors is not None:
            known.append(f"off by {display.number(float(self.errors[rule]), 3)}")
        return known

    def take(self, rules: NDArray[np.int64]) -> RegressionList:
        values = np.asarray(self.values)[np.append(rules, len(self.conjunctions))]
        return RegressionList(
            self.conjunctions.take(rules), values, self.options, weighted=self.weighted,
            loss=self.loss,
        )  # fmt: skip


RuleModel = RuleEnsemble | RuleList | RegressionList
"""The models of rules."""


def not_a_model(model: object, wanted: str = "a jaxrules model") -> NoReturn:
    """Refuse anything but the model wanted, with a hint for what holds one."""
    of_card = {"Scorecard": "", "ScaledScorecard": " (log-odds), or card.in_points (its scores)"}
    its = of_card.get(type(model).__name__)
    hints = {
        "model": "fit.model" if its is None else f"card.model{its}",
        "rates": "model.rates, the rules of the hazard; model.survival(X, times) has the curves",
        "get_params": "the model_ of the fitted estimator",
    }
    hint = next((f"; pass {hint}" for name, hint in hints.items() if hasattr(model, name)), "")
    raise TypeError(f"model must be {wanted}, got {type(model).__name__}{hint}")


def rows_for(model: Any, X: TableLike) -> Table:
    """X in the columns of a model, with at least one row.

    Raises:
        TypeError: for anything but a model.
        ValueError: if `X` does not fit the columns, or has no rows.
    """
    if not isinstance(getattr(model, "schema", None), Schema):
        not_a_model(model)
    table = conform(X, model.schema)
    require(table.n_rows > 0, "X has no rows")
    return table


@checks.verb
def decision_function(model: object, X: TableLike) -> Array:
    """The score of each row, shape (rows,), or (rows, outputs) with one output per class.

    Args:
        model: a rule ensemble (log-odds, half log-odds or value, see `RuleEnsemble.link`).
        X: data with the columns of fit; dataframes are matched by name. Under jit, a numeric array
            in column order.

    Raises:
        ValueError: if `X` does not fit the model's columns.
        TypeError: for a model without scores.
    """
    not_a_model(model)


@checks.verb
def predict(
    model: object,
    X: TableLike,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Array:
    """The prediction for each row, shape (rows,): a class label, a value, or an expected count.

    Under jit, grad and vmap, classes are indices in ``model.schema.classes``, as labels may be
    text.

    Args:
        model: any jaxrules model.
        X: data with the columns of fit; dataframes are matched by name.
        offset, exposure: for an ensemble that predicts numbers, the known part of the score of
            every row, or, under the link "log", exp(offset), shape (rows,). Without them the
            prediction is for offset 0 and exposure 1.

    Raises:
        ValueError: if `X` does not fit the model's columns, or for an invalid offset or exposure.
    """
    not_a_model(model)


@checks.verb
def predict_proba(model: object, X: TableLike) -> Array:
    """Class probabilities, shape (rows, classes), in the order of ``model.schema.classes``.

    One-vs-rest ensembles have a separate probability for each class, which are scaled to sum to
    one. With the link "softmax", classes are fitted together and their probabilities sum to one by
    construction.

    Raises:
        ValueError: if `X` does not fit the model's columns, or the model has no classes.
    """
    not_a_model(model)


class Contribution(NamedTuple):
    """One part of an explanation: a rule, the intercept or a linear term, and its weight, shape
    (outputs,).
    """

    text: str
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model makes its prediction for one row.

    Attributes:
        prediction: the label or value.
        parts: for an ensemble, the intercept, the satisfied rules and the linear terms, whose
            weights sum to `score`; for a rule list, the rule that decides, then those passed over,
            without weights.
        score: the sum, shape (outputs,); None for a rule list.
        probabilities: by class label, or None.
        counted: for a list, the training rows behind the decision, see `RuleList.counted` and
            `RegressionList.counted`; empty if unknown.
        threshold: of the prediction, if `jaxrules.with_threshold` set it; None for one half.
        absent: if asked for, the rules that do not hold, and the weights that they would add; see
            `jaxrules.reasons` for both kinds together.
        in_points: whether the weights are the whole points of a card.
    """

    prediction: Any
    parts: tuple[Contribution, ...]
    score: NDArray[np.float64] | None = None
    probabilities: dict[Label, float] | None = None
    counted: str = ""
    threshold: Threshold | None = None
    absent: tuple[Contribution, ...] = ()
    in_points: bool = False

    @property
    def _title(self) -> str:
        """The prediction, and what it rests on."""
        says = self.prediction
        is_number = isinstance(says, float) and self.probabilities is None
        said = display.number(says) if is_number else display.plain(says)
        title = f"prediction: {said}"
        if self.probabilities is None:
            return f"{title}   ({self.counted})" if self.counted else title
        shares = ", ".join(
            f"{display.plain(label)}: {display.share_text(p)}"
            for label, p in self.probabilities.items()
        )
        cut = [] if self.threshold is None else [str(self.threshold)]
        return f"{title}   ({'; '.join([shares, *filter(None, [self.counted]), *cut])})"

    def __str__(self) -> str:
        several = self.runner_up is not None
        names = [(*self._names(), f"not {self._names()[1]} because")] if several else []
        return "\n".join([self._title, *display.aligned([*names, *self._rows()])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return display.html_table(self._title, (*self._names(), "because"), self._rows())

    @property
    def runner_up(self) -> Label | None:
        """With more than two classes, the one with the second highest score; else None."""
        if self.score is None or len(self.score) < 2 or self.probabilities is None:
            return None
        # The probabilities have the order of the classes, as the scores do.
        return tuple(self.probabilities)[self._first_two()[1]]

    def _first_two(self) -> list[int]:
        """The outputs of the two highest scores."""
        return np.argsort(-np.asarray(self.score), kind="stable")[:2].tolist()

    def _names(self) -> tuple[str, ...]:
        """The headings of the columns of weights."""
        if self.runner_up is None:
            return ("weight",)
        said, other = (display.plain(one) for one in (self.prediction, self.runner_up))
        return said, other, "difference"

    def _rows(self) -> list[tuple[str, ...]]:
        """(weight, text) of the parts and their sum; for more than two classes, the weights for the
        prediction and for the runner-up, and their difference, largest first.
        """
        parts = self.parts if self.score is None else (*self.parts, Contribution("sum", self.score))
        others = [Contribution(f"if it held: {part.text}", part.weight) for part in self.absent]
        if self.in_points:
            return [(f"{part.weight[0]:+.0f}", part.text) for part in (*parts, *others)]
        largest = display.largest_of(0.0, *(part.weight for part in (*parts, *others)))
        text = functools.partial(display.weight_text, largest=largest)
        if self.runner_up is None:
            return [(text(part.weight), part.text) for part in (*parts, *others)]
        pairs = [(part.weight[self._first_two()], part.text) for part in parts]
        # The intercept stays first and the sum last; rules that speak of neither class are left
        # out.
        rules = [pair for pair in pairs[1:-1] if pair[0].any()]
        rules.sort(key=lambda pair: pair[0][1] - pair[0][0])
        return [
            (*map(text, pair), text(pair[0] - pair[1]), what)
            for pair, what in (pairs[0], *rules, pairs[-1], *self._pairs(others))
        ]

    def _pairs(self, parts: Iterable[Contribution]) -> list[tuple[NDArray[np.float64], str]]:
        """The weights of parts for the prediction and the runner-up, if they have some."""
        pairs = [(part.weight[self._first_two()], part.text) for part in parts]
        return [pair for pair in pairs if pair[0].any()]


@checks.verb
def explain(
    model: object,
    X: TableLike,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> list[Explanation]:
    """For each row, the rules that it satisfies, their weights and the sum.

    A scorecard is explained in its points. With ``absent=True``, an ensemble also shows the rules
    that do not hold and what they would add: a card of rules that lower the risk has no other
    reason for an alarm.

    Args:
        model: any jaxrules model.
        X: data with the columns of fit; dataframes are matched by name.
        offset, exposure: as in `jaxrules.predict`: a part of the score, and of the explanation.

    Raises:
        ValueError: if `X` does not fit the model's columns, or for an invalid offset or exposure.

    Example:
        >>> import numpy as np
        >>> import jaxrules as jr
        >>> schema = jr.Schema((jr.Feature("income"),), classes=("repaid", "default"))
        >>> rules = jr.Conjunctions.build(schema, [[jr.Condition.above(0, 30)]])
        >>> model = jr.RuleEnsemble(rules, np.array([[-2.0]]), np.array([0.5]), link="logistic")
        >>> print(jr.explain(model, [{"income": 24}], absent=True)[0])
        prediction: default   (repaid: 0.378, default: 0.622)
          +0.5000  intercept
          +0.5000  sum
          -2.0000  if it held: income > 30
    """
    not_a_model(model)


def rules_named(
    rules: Conjunctions, argument: str, names: Iterable[int | str]
) -> NDArray[np.int64]:
    """The positions of rules that a user names by position or text; errors name `argument`.

    Raises:
        TypeError: for names of other types.
        ValueError: for an unknown rule.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(
            f"{argument} must be a sequence of rules, by position or text, got "
            f"{type(names).__name__}"
        )
    found: list[int] = []
    for name in names:
        if isinstance(name, str):
            texts = ((rules.describe(r), rules.describe(r, " AND ")) for r in range(len(rules)))
            words = [r for r, both in enumerate(texts) if name in both]
            require(
                len(words) > 0,
                f"{argument} names {name!r}, which is not a rule of the model as printed",
            )
            found += words
        elif isinstance(name, bool) or not isinstance(name, (int, np.integer)):
            raise TypeError(
                f"{argument} must name rules by position or text, got {type(name).__name__}"
            )
        else:
            require(
                0 <= name < len(rules),
                f"{argument} names rule {name}; the model has {len(rules)}, numbered from 0",
            )
            found.append(int(name))
    return np.array(found, np.int64)


def with_weights(
    model: RuleEnsemble,
    weights: ArrayLike | Mapping[int | str, ArrayLike],
    intercept: ArrayLike | None = None,
) -> RuleEnsemble:
    """The same rules with other weights; differentiable.

    With JAX arrays as weights, `decision_function` on the result is a
    differentiable function of them::

        jax.grad(lambda w: loss(y, jr.decision_function(jr.with_weights(model, w), X)))(weights)

    Args:
        model: a rule ensemble.
        weights: shape (rules,) for one output, or (rules, outputs); or the weights of some rules,
            by position or by text as printed: ``{2: 0.5}``.
        intercept: shape (outputs,) or a number; None keeps the model's own.

    Raises:
        ValueError: if the shapes do not fit.
    """
    checks.instance("model", model, RuleEnsemble, "fit.model")
    if isinstance(weights, Mapping):
        changed = np.array(model.weights, np.float64)
        for name, weight in weights.items():
            rules = rules_named(model.conjunctions, "weights", [name])
            given = _finite("weights", weight)
            try:
                changed[rules] = given
            except ValueError:  # they do not broadcast
                message = f"weights of {name!r} must be one number, or one per output"
                raise ValueError(message) from None
        weights = changed
    # JAX arrays stay as they are: their values may be traced, and gradients flow through them.
    new: Array = weights if isinstance(weights, jax.Array) else _finite("weights", weights)
    if new.shape == (len(model.conjunctions),) and model.n_outputs == 1:
        new = new[:, None]
    if new.shape != model.weights.shape:
        raise ValueError(f"weights must have shape {model.weights.shape}, got {new.shape}")
    if intercept is None:
        return dataclasses.replace(model, weights=new)
    constant = intercept if isinstance(intercept, jax.Array) else _finite("intercept", intercept)
    constant = constant.reshape(-1)
    if constant.shape != model.intercept.shape:
        raise ValueError(f"intercept must have shape {model.intercept.shape}, got {constant.shape}")
    return dataclasses.replace(model, weights=new, intercept=constant)


def _finite(name: str, values: object) -> NDArray[np.float64]:
    array = checks.array(name, values)
    require(np.isfinite(array).all(), f"{name} has NaN or infinite values")
    return array


# Rule ensembles


@decision_function.register
def _(model: RuleEnsemble, X: TableLike) -> Array:
    scores = _scores(model, X)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _is_traced(X: TableLike) -> TypeGuard[jax.Array]:
    return isinstance(X, jax.core.Tracer)


def _has_traced_leaves(model: RuleEnsemble | OrderedRules | Conjunctions) -> bool:
    # Kept, because listing the leaves takes longer than a prediction. An object has the leaves that
    # it was made with: JAX makes another one for other leaves.
    known: bool | None = model.recall("traced leaves")
    if known is None:
        traced = any(_is_traced(leaf) for leaf in jax.tree.leaves(model))
        known = model.keep("traced leaves", traced)
    return known


def _rows(model: RuleEnsemble | OrderedRules, X: TableLike) -> Table | jax.Array:
    """`X` as a table, or as a traced array in column order if it or the model's rules are
    traced.
    """
    if _is_traced(X):
        return X
    # Rules with traced arrays cannot be lowered on the host; they read one array, with categories
    # as codes.
    table = conform(X, model.schema)
    traced = _has_traced_leaves(model.conjunctions)
    return jnp.asarray(np.stack(table.columns, axis=1)) if traced else table


def _scores(model: RuleEnsemble, X: TableLike) -> Array:
    """Scores, shape (rows, outputs): NumPy float64, or traced if `X` or a leaf of the model is."""
    rows: Any = _rows(model, X)
    rules, linear = model.conjunctions, model.linear
    exact = isinstance(rows, Table)
    if exact and not _has_traced_leaves(model):
        return _host_scores(model, rows, rules.batches_by_rule(rows))
    # Where only the weights are traced, the rules stay exact.
    satisfied = jnp.asarray(rules.satisfied(rows)) if exact else rules.satisfied_traced(rows)
    weights = jnp.asarray(model.weights)
    with full_precision():
        scores = satisfied.astype(weights.dtype) @ weights + jnp.asarray(model.intercept)[None]
        if linear is not None:
            terms = jnp.asarray(linear.values(rows)) if exact else linear.values_traced(rows)
            scores = scores + terms @ jnp.asarray(linear.coefficients)
    return scores


def _host_scores(
    model: RuleEnsemble, table: Table, batches: Iterable[tuple[slice, NDArray[np.bool_]]]
) -> NDArray[np.float64]:
    """The scores, from the rows that satisfy each rule, (rules, rows) in every batch."""
    if not model.recall("checked parts"):
        model.check_parts()  # the user may have made it by hand
        model.keep("checked parts", True)
    weights = np.asarray(model.weights, np.float64)
    intercept = np.asarray(model.intercept, np.float64)
    scores = np.empty((table.n_rows, model.n_outputs))
    for rows, by_rule in batches:
        # Not a matrix product, whose order of summation is BLAS's own: the sum of a row is defined
        # by the model alone, as the weights in rule order.
        if table.n_rows <= FEW_ROWS:  # Python adds the same numbers without NumPy's microseconds
            for row, holds in enumerate(by_rule.T, rows.start or 0):
                held = weights[holds].T.tolist()
                scores[row] = [
                    functools.reduce(operator.add, column, start)
                    for column, start in zip(held, intercept.tolist(), strict=True)
                ]
            continue
        for k in range(model.n_outputs):
            total = np.full(by_rule.shape[1], intercept[k])
            for holds, weight in zip(by_rule, weights[:, k], strict=True):
                if weight:
                    total += holds * weight
            scores[rows, k] = total
    if model.linear is not None:
        coefficients = np.asarray(model.linear.coefficients, np.float64)
        for t in model.linear.used:
            scores += model.linear.column(t, table)[:, None] * coefficients[t]
    return scores


RELATIVE_TO = "relative_to"
"""The setting of a model that was fitted with an offset or exposure: which of the two."""


def without_offset(name: str, *known: ArrayLike | None) -> None:
    """Refuse an offset or exposure of a model that takes none."""
    if any(one is not None for one in known):
        raise ValueError(
            f"offset and exposure are for rule ensembles that predict numbers; model is {name}"
        )


@predict.register
def _(
    model: RuleEnsemble,
    X: TableLike,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Array:
    scores: Any = _scores(model, X)
    known = offset is not None or exposure is not None
    if known:
        scores = scores + _known_part(model, X, offset, exposure, len(scores))[:, None]
    return _outcomes(model, scores)


def _known_part(
    model: RuleEnsemble,
    X: TableLike,
    offset: ArrayLike | None,
    exposure: ArrayLike | None,
    n_rows: int,
) -> NDArray[np.float64]:
    """The offset of every row, shape (rows,); refused for classes."""
    check_order(X, offset=offset, exposure=exposure)
    of_numbers = model.schema.classes is None
    require(of_numbers, "offset and exposure are for models that predict numbers, not classes")
    return total_offset(offset, exposure, n_rows, model.link == "log")


def _outcomes(model: RuleEnsemble, scores: Any) -> Array:
    """The predictions for these scores, shape (rows,)."""
    if model.schema.classes is None:
        value = scores[:, 0]
        exp = np.exp if isinstance(scores, np.ndarray) else jnp.exp
        return value if model.link == "identity" else exp(value)
    # A score equal to the threshold is of the first class, and so is a tie of several classes.
    codes = scores[:, 0] > model.threshold if model.n_outputs == 1 else scores.argmax(axis=1)
    if not isinstance(scores, np.ndarray):  # traced: labels may be text, so return class codes
        return codes.astype(jnp.int32)
    return np.asarray(model.schema.classes)[codes.astype(np.int64)]


@predict_proba.register
def _(model: RuleEnsemble, X: TableLike) -> Array:
    if model.schema.classes is None:
        raise ValueError("model has no classes: it predicts numbers; use predict")
    return _probabilities(model, _scores(model, X))


def _probabilities(model: RuleEnsemble, scores: Any) -> Array:
    """The class probabilities for these scores, shape (rows, classes)."""
    margins = 2 * scores if model.link == "exponential" else scores
    on_host = isinstance(scores, np.ndarray)
    if model.n_outputs == 1:  # each tail separately, so that neither is computed as 1 - 1
        both = (-margins, margins)
        if on_host:
            return sigmoid(np.concatenate(both, axis=1))
        return jax.nn.sigmoid(jnp.concatenate(both, axis=1))
    if model.link == "softmax":
        return shares_of(scores) if on_host else jax.nn.softmax(scores, axis=1)
    if on_host:  # normalise the class probabilities by their logarithms: all may be tiny
        return shares_of(_log_sigmoid(margins))
    return jax.nn.softmax(jax.nn.log_sigmoid(margins), axis=1)


# SciPy has these functions too, but loading it takes longer than most predictions.


@np.errstate(under="ignore")
def sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-score)), to full relative precision in both tails; on the host."""
    # exp of a number of at most 0 cannot overflow: 1 / (1 + e^-s) where s >= 0, e^s / (1 + e^s)
    # below.
    odds = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1.0, odds) / (1.0 + odds)


@np.errstate(under="ignore")
def _log_sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    # log(1 / (1 + e^-s)) = min(s, 0) - log(1 + e^-|s|), which neither overflows nor cancels.
    return np.minimum(scores, 0.0) - np.log1p(np.exp(-np.abs(scores)))


@np.errstate(under="ignore", over="ignore")
def shares_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(score) divided by its sum over the row, shape (rows, classes)."""
    # The largest exponent is 0, so that the sum is at least 1 and nothing overflows.
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@explain.register
def _(
    model: RuleEnsemble,
    X: TableLike,
    *,
    absent: bool = False,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> list[Explanation]:
    absent = checks.flag("absent", absent)
    table = conform(X, model.schema)
    satisfied = model.conjunctions.satisfied(table)
    scores = _host_scores(model, table, [(slice(None), np.ascontiguousarray(satisfied.T))])
    known = offset is not None or exposure is not None
    total = _known_part(model, X, offset, exposure, len(scores)) if known else np.zeros(0)
    scores = scores + total[:, None] if known else scores
    predictions = np.asarray(_outcomes(model, scores)).tolist()
    classes, cut = model.schema.classes, model.cut
    probabilities = None if classes is None else np.asarray(_probabilities(model, scores)).tolist()
    weights, intercept = np.asarray(model.weights), np.asarray(model.intercept)
    # One row needs the words of few rules.
    worded = range(len(weights)) if absent else np.flatnonzero(satisfied.any(axis=0)).tolist()
    texts = model.conjunctions.texts(worded)
    # The largest weight first; the stable sort leaves ties in rule order.
    largest = np.abs(weights).max(axis=1, initial=0)
    order = np.argsort(-largest, kind="stable")
    order = order[largest[order] > 0]
    of_rule = [Contribution(texts.get(r, ""), weights[r]) for r in order.tolist()]
    terms = [] if model.linear is None else _linear_parts(model.linear, model.schema, table)
    explanations = []
    for i, held in enumerate(satisfied[:, order]):
        parts = [Contribution("intercept", intercept), *itertools.compress(of_rule, held.tolist())]
        for text, coefficients, values in terms:
            at = f"{text} at {display.number(values[i])}"
            parts.append(Contribution(at, coefficients * values[i]))
        if known:
            name = "log(exposure)" if offset is None else "offset"
            parts.append(Contribution(name, total[i : i + 1]))
        shares = None
        if classes is not None and probabilities is not None:
            shares = dict(zip(classes, probabilities[i], strict=True))
        others = tuple(itertools.compress(of_rule, (~held).tolist())) if absent else ()
        explanations.append(
            Explanation(predictions[i], tuple(parts), scores[i], shares, "", cut, others)
        )
    return explanations


def _linear_parts(
    linear: LinearTerms, schema: Schema, table: Table
) -> list[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Per linear term in use: its words, its coefficients, and its values, shape (rows,)."""
    names = [display.plain(schema.features[f].as_number) for f in linear.feature.tolist()]
    return [
        (f"linear term of {names[t]}", np.asarray(linear.coefficients[t]), linear.column(t, table))
        for t in linear.used
    ]


# Rule lists


@decision_function.register
def _(model: OrderedRules, X: TableLike) -> Array:
    others = "predict" if model.schema.classes is None else "predict or predict_proba"
    raise TypeError(f"model is a {type(model).__name__}, which has no scores; use {others}")


@predict.register
def _(
    model: RuleList | RegressionList,
    X: TableLike,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Array:
    without_offset(f"a {type(model).__name__}", offset, exposure)
    says = model.labels if isinstance(model, RuleList) else model.values
    if _is_traced(X) or _has_traced_leaves(model):
        return jnp.asarray(says)[_position(model, X)]
    said = np.asarray(says)[_position(model, X)]
    return said if model.schema.classes is None else np.asarray(model.schema.classes)[said]


@predict_proba.register
def _(model: RegressionList, X: TableLike) -> Array:
    raise ValueError("model has no classes: it predicts numbers; use predict")


@predict_proba.register
def _(model: RuleList, X: TableLike) -> Array:
    positions, shares = _position(model, X), model.probabilities
    return (shares if isinstance(positions, np.ndarray) else jnp.asarray(shares))[positions]


def _position(model: OrderedRules, X: TableLike) -> Any:
    rows = _rows(model, X)
    return model.position(rows) if isinstance(rows, Table) else model.position_traced(rows)


@explain.register
def _(
    model: OrderedRules,
    X: TableLike,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> list[Explanation]:
    without_offset(f"a {type(model).__name__}", offset, exposure)
    table = conform(X, model.schema)
    positions = model.position(table).tolist()
    reached = range(min(max(positions, default=-1) + 1, len(model.conjunctions)))
    texts_of = model.conjunctions.texts(reached, " AND ")
    rules = [f"rule {r + 1}: {texts_of[r]}" for r in reached]
    fired = [*rules, "no rule holds: the default"]
    explanations = []
    for position in positions:
        texts = [fired[position], *(f"passed over {rule}" for rule in rules[:position])]
        parts = tuple(Contribution(text, np.zeros(0)) for text in texts)
        prediction, shares = model.predicted(position)
        counted = ", ".join(model.counted(position))
        explanations.append(Explanation(prediction, parts, None, shares, counted, model.cut))
    return explanations


# LaTeX


@checks.verb
def to_latex(model: object) -> str:
    """The model as a LaTeX tabular, in the order in which `print` shows it.

    It needs no package. Names in other than Latin letters need XeLaTeX or LuaLaTeX, and a font that
    has their characters.
    """
    not_a_model(model)


@to_latex.register
def _(model: OrderedRules) -> str:
    cut = [] if model.cut is None else [("", "", str(model.cut))]
    rows = [[display.latex(text) for text in row] for row in (*model._rows(), *cut)]
    return display.latex_table("lll", (), rows)


@to_latex.register
def _(model: RuleEnsemble) -> str:
    rows, names = model._rows(), model._names()
    if model.n_outputs == 1:
        rows = [(display.weight_text(model.intercept, model.largest), "always"), *rows]

    def cell(weight: str) -> str:
        return r"$\cdot$" if weight == "." else display.latex_number(weight)

    cells = [[*map(cell, weights), display.latex(rule)] for *weights, rule in rows]
    heading = [*map(display.latex, names), "rule"]
    return display.latex_table("r" * len(names) + "l", heading, cells)
