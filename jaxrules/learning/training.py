"""What every learner shares: checked data, and one-vs-rest::

run = options.run()
data = training_data(X, y, loss, sample_weight=sample_weight, missing=options.missing)
return one_against_rest(data, run, fit_one)       # fit_one(data of one output, run) -> Fit
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import (
    MANY_CATEGORIES,
    Label,
    MissingRule,
    OrderedLabels,
    Schema,
    Table,
    TableLike,
    as_table,
    binary_target,
    check_order,
    check_sample_weight,
    class_target,
    conform,
    holds_classes,
    integer_classes,
    label_order,
    look_like_counts,
    regression_target,
    target_array,
    target_name,
    total_offset,
    with_target,
)
from jaxrules.losses import (
    Loss,
    LossFunction,
    best_constant,
    check_own,
    check_target,
    loss_by_name,
    mean_loss,
    mean_offset,
    relative,
    softmax,
    squared,
)
from jaxrules.models.metrics import used_rules
from jaxrules.models.rule_models import LinearTerms, RegressionList, RuleEnsemble, decision_function
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.tools import checks, placement
from jaxrules.tools.bits import distinct
from jaxrules.tools.fits import Fit, OneVsRestDetails, Settings, Status
from jaxrules.tools.runs import Deadline, Run
from jaxrules.tools.sorting import ascending, lexicographic

_SECONDS_PER_ENTRY = 1e-6
"""Roughly the time per table entry and class that a learner needs to make its own rules. With less,
it samples rows.
"""
_CUT_POINTS = 40
"""A search looks at the two sides of so many cut points in the time that an entry of X takes: 12 ns
per row and proposition.
"""
_CATEGORIES = 15
"""So many categories of a column, each compared by itself, take the time of one column."""
_FEWEST_ROWS = 2000
_FEWEST_SECONDS, _SECONDS_PER_CLASS = 0.2, 0.02
"""With less time, in all and for each class, a fit on a sample checks no clock and does a small
fixed amount of work.
"""
_LEAST_SHARE = 1 / 20
_RULE_SCALE = 0.4
_ROUNDING = 1e-6
"""Relative to the loss: a model whose loss exceeds that of the constant by less does not count as
worse.
"""
_LARGEST_SPREAD = 34.0
"""The largest range of the logarithms of exposures: 15 digits."""
_SIGNIFICANT = 3.0
"""A correlation this many standard errors from 0 is significant."""
_NO_SHARE = 1e-13
"""A class with a smaller share of the weight is refused: its log-odds would be below -30."""


def plain(value: Any) -> Any:
    """A setting as a model keeps it: hashable, and fit for JSON.

    NumPy numbers become Python numbers, sequences and sets become tuples, mappings become tuples of
    pairs, a loss becomes its name, and any other object, such as rules, becomes "given".
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(plain(part) for part in value)
    if isinstance(value, Mapping):
        return tuple((plain(key), plain(part)) for key, part in value.items())
    if isinstance(value, Set):  # in an order that does not depend on the process
        return tuple(sorted((plain(part) for part in value), key=str))
    if isinstance(value, Loss):
        return value.name
    return getattr(value, "__name__", "given") if callable(value) else "given"


def loss_for(
    y: ArrayLike, loss: str | Loss | LossFunction | None, classes: str = "logistic"
) -> Loss:
    """The loss that ``loss=`` means for a target: None means `classes` if y `holds_classes`, else
    the squared loss.

    Raises:
        TypeError, ValueError: as `loss_by_name`; if y is not a target; for a plain function if y
            holds classes.
    """
    if callable(loss) and not isinstance(loss, Loss) and holds_classes(y):
        name = getattr(loss, "__name__", type(loss).__name__)
        raise ValueError(
            f"y holds classes, but the function loss={name} is for numbers; for classes pass "
            f'jaxrules.Loss("{name}", {name}, target="sign", link="logistic"), which gets y as -1 '
            f'or +1; if y holds numbers, pass jaxrules.Loss("{name}", {name})'
        )
    return loss_by_name(loss if loss is not None else classes if holds_classes(y) else "squared")


def without_offset(
    loss: Loss,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    exposure: ArrayLike | None,
    intercept: bool = True,
) -> tuple[ArrayLike, ArrayLike | None, float]:
    """The target and the weights relative to an offset, see `jaxrules.losses.relative`, and the
    number to add to the intercept of a model of these: they are measured from `mean_offset`.

    Args:
        intercept: whether the model has an intercept; without, they are measured from 0.

    Raises:
        TypeError, ValueError: naming the argument; for classes, for whose log-odds there is no such
            form.
    """
    if offset is None and exposure is None:
        return y, sample_weight, 0.0
    n_rows = len(target_array(y))
    total = total_offset(offset, exposure, n_rows, loss.link == "log")
    weights = check_sample_weight(sample_weight, n_rows)
    spread = float(np.ptp(total[weights > 0]))
    if loss.link == "log" and spread > _LARGEST_SPREAD:
        name = "offset" if exposure is None else "exposure"
        raise ValueError(
            f"{name} makes rows differ by a factor of exp({spread:.0f}), beyond the precision of "
            "float64; drop the extreme rows"
        )
    if loss.target == "sign":
        relative(loss, np.zeros(0), weights, total)  # says which losses
    target = regression_target(y, n_rows)
    check_target(loss, target)
    centre = mean_offset(loss, weights, total) if intercept else 0.0
    # score = f + total - centre, so that f - centre is the model to which an offset is added.
    rates, weights = relative(loss, target, weights, total - centre)
    return OrderedLabels.of(rates, (), target_name(y)), weights, -centre


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The checked data of a fit. A row of weight zero is dropped.

    Attributes:
        table: the columns.
        target: in the coding of the loss (-1 and +1, numbers or counts), shape (rows,); for K > 2
            classes, one-vs-rest, shape (rows, K).
        weights: of the rows, positive, shape (rows,).
        schema: of the model: the table's, with the classes.
        loss: the loss that the target is coded for.
        rows: the indices of the rows in X, shape (rows,).
        output: the model's output that the target belongs to.
    """

    table: Table
    target: NDArray[np.float64]
    weights: NDArray[np.float64]
    schema: Schema
    loss: Loss
    rows: NDArray[np.intp]
    output: int = 0

    @property
    def classes(self) -> tuple[Label, ...] | None:
        return self.schema.classes

    @property
    def positive(self) -> Label | None:
        """The positive class of two; else None."""
        classes = self.classes
        return classes[1] if classes is not None and len(classes) == 2 else None

    @property
    def outputs(self) -> NDArray[np.float64]:
        """The targets of the model's outputs, shape (outputs, rows)."""
        return np.atleast_2d(self.target.T)

    @property
    def row_loss(self) -> Loss:
        """The loss of a whole row of the target: `softmax` for classes fitted together."""
        return self.loss if self.target.ndim == 1 else softmax

    @property
    def constant_loss(self) -> float:
        """The mean over the outputs of the loss of the best constant; default penalties are
        relative to it.
        """
        return self.constant_loss_of(together=False)

    def constant_loss_of(self, together: bool) -> float:
        """`constant_loss`, or that of the classes together."""
        loss, targets = (softmax, [self.target]) if together else (self.loss, [*self.outputs])
        constants = [np.zeros_like(y) + best_constant(loss, y, self.weights) for y in targets]
        pairs = zip(targets, constants, strict=True)
        return float(np.mean([mean_loss(loss, *pair, self.weights) for pair in pairs]))

    @property
    def labels(self) -> NDArray[np.float64] | NDArray[np.int64]:
        """The target of a forest: class codes, or numbers; shape (rows,)."""
        return self.target if self.target.ndim == 1 else self.target.argmax(axis=1)

    @property
    def codes(self) -> NDArray[np.intp]:
        """The class of every row, shape (rows,)."""
        signs = self.target.ndim == 1
        return (self.target > 0).astype(np.intp) if signs else self.target.argmax(axis=1)

    def __getitem__(self, rows: NDArray[Any]) -> TrainingData:
        """The selected rows: a boolean mask or an integer array."""
        parts = {name: getattr(self, name)[rows] for name in ("table", "target", "weights", "rows")}
        return replace(self, **parts)


def training_data(
    X: TableLike,
    y: ArrayLike,
    loss: Loss,
    *,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule | None = None,
    positive: Label | None = None,
    binary: bool = False,
    constant: bool = False,
) -> TrainingData:
    """Read X, y and the weights, and code the target for the loss.

    Args:
        X, y, sample_weight, missing, positive: the arguments of `fit`.
        loss: determines whether y holds classes (a target of signs) or numbers.
        binary: refuse more than two classes.
        constant: accept a constant numeric target.

    Raises:
        TypeError, ValueError: naming the argument, as `as_table`, `class_target`,
            `regression_target` and `check_sample_weight`; also for a class without weight.
    """
    check_order(X, y=y, sample_weight=sample_weight)
    table = with_target(as_table(X, missing=missing), y)
    placement.check_rows(table.n_rows)
    weights = check_sample_weight(sample_weight, table.n_rows)
    classes: tuple[Label, ...] | None = None
    if loss.target == "sign":
        codes, classes = (binary_target if binary else class_target)(y, table.n_rows, positive)
        weight_of = np.bincount(codes.astype(np.int64), weights, len(classes))
        if weight_of.min() < _NO_SHARE * weight_of.sum():
            absent = classes[int(weight_of.argmin())]
            raise ValueError(
                f"sample_weight is zero or negligible for every row of class {absent!r}; "
                "give the class some weight, or drop it"
            )
        of_class = codes == 1 if len(classes) == 2 else codes[:, None] == np.arange(len(classes))
        target = np.where(of_class, 1.0, -1.0)
    elif positive is not None:
        raise ValueError(
            f"positive={positive!r} is for two classes, but loss={loss.name!r} is for numbers"
        )
    else:
        target = regression_target(y, table.n_rows)
        check_target(loss, target)
    check_own(loss, target)
    data = TrainingData(
        table, target, weights, table.schema.with_classes(classes), loss, np.arange(table.n_rows)
    )
    if not weights.all():
        data = data[weights > 0]
    if classes is None and not constant and (data.target == data.target[0]).all():
        raise ValueError(
            "y has only one value among the rows of positive sample_weight; nothing can be learned"
        )
    return data


def warn_of_many_categories(table: Table) -> None:
    """Warn of columns that learners compare with their most frequent categories only."""
    for index, feature in enumerate(table.schema.features):
        if len(feature.categories or ()) <= MANY_CATEGORIES:
            continue
        n, compared = len(feature.categories or ()), len(table.compared_categories(index))
        if compared < len(np.unique(table.columns[index])):
            checks.warn(
                f"column {feature.name!r} of X has {n} categories, of which rules name only the "
                f"{compared} most frequent; group its categories, or drop it if it numbers the rows"
            )


def content_order(
    table: Table, target: NDArray[Any], weights: NDArray[np.float64]
) -> NDArray[np.intp]:
    """The rows sorted by their values: a random draw in this order depends neither on the order of
    the given rows nor on units.
    """
    codes = target if target.ndim == 1 else target.argmax(axis=1)
    keys = [*table.columns, codes, weights]
    order = ascending(np.asarray(keys[0], np.float64)).astype(np.intp)
    # Only rows that tie with a neighbour in the first column need the others.
    rises = keys[0][order[1:]] > keys[0][order[:-1]]  # False next to a missing value, too
    tied = ~(np.append(True, rises) & np.append(rises, True))
    if tied.all():
        return lexicographic(keys)
    rows = order[tied]  # few if the first column is continuous: it then sorts the others by itself
    # The first column is among the keys, so that every row stays within the places of its ties.
    order[tied] = rows[lexicographic([key[rows] for key in keys])]
    return order


def by_content(data: TrainingData) -> TrainingData:
    """The same rows in `content_order`."""
    return data[content_order(data.table, data.target, data.weights)]


def data_for(
    model: RuleEnsemble | RegressionList,
    X: TableLike,
    y: ArrayLike,
    loss: Loss,
    sample_weight: ArrayLike | None = None,
) -> TrainingData:
    """Data for a fitted model, with its columns and classes.

    Raises:
        TypeError, ValueError: as `training_data`; also for classes other than the model's.
    """
    check_order(X, y=y, sample_weight=sample_weight)
    table = conform(X, model.schema)
    checks.require(table.n_rows > 0, "X has no rows")
    data = training_data(
        table, y, loss, sample_weight=sample_weight, missing=model.schema.missing, constant=True
    )
    classes, found, target = model.schema.classes or (), data.classes or (), data.target
    if set(found) != set(classes):
        raise ValueError(f"y has the classes {found}, but the model was fitted on {classes}")
    if found != classes:  # in another order, by `positive` or as y declares
        several = target.ndim > 1
        target = target[:, [found.index(one) for one in classes]] if several else -target
    return replace(data, target=target, schema=model.schema)


def linear_terms_of(
    data: TrainingData, winsorise: float = 0.0
) -> tuple[LinearTerms, NDArray[np.float64]]:
    """Linear terms for the numeric columns that vary, each scaled to the influence of a typical
    rule.

    Friedman and Popescu (2008), Sec. 5: columns are clipped at their quantiles
    `winsorise` and 1 - `winsorise`, and penalised on the scale 0.4 / std, because 0.4 is about the
    average standard deviation of a rule.

    Returns:
        terms: with coefficients of 1.
        factors: factors on their penalties, shape (terms,).
    """
    found = []
    for f, feature in enumerate(data.table.schema.features):
        present = ~data.table.missing_mask(f)
        values, weights = data.table.columns[f][present], data.weights[present]
        if feature.is_numeric and len(values):
            ends = np.array([-np.inf, np.inf])
            if winsorise:
                ends = np.quantile(
                    values, [winsorise, 1 - winsorise], weights=weights, method="inverted_cdf"
                )
            clipped = np.clip(values, *ends)
            if np.ptp(clipped) > 0:
                # 0.4 l / std varies like a rule. Its coefficient is b std / 0.4: that is what the
                # penalty counts.
                found.append((f, *ends, relative_spread(clipped, weights)))
    columns, lower, upper, spreads = np.array(found).reshape(-1, 4).T
    terms = LinearTerms(columns.astype(np.int32), np.ones((len(found), 1)), lower, upper)
    return terms, spreads


def relative_spread(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Any:
    """Weighted standard deviations of columns, (rows,) or (rows, columns), in those of a typical
    rule.
    """
    mean = np.average(values, 0, weights)
    return np.average((values - mean) ** 2, 0, weights) ** 0.5 / _RULE_SCALE


def location_and_scale(data: TrainingData) -> tuple[float, float]:
    """Weighted mean and standard deviation of the target of the squared loss;
    0 and 1 for other losses.

    Only the squared loss can be rescaled. Gradient descent then solves the same problem on every
    scale.
    """
    if data.loss != squared:
        return 0.0, 1.0
    largest = float(np.abs(data.target).max()) or 1.0  # so that no square overflows or vanishes
    shares, scaled = data.weights / data.weights.sum(), data.target / largest
    mean = float(shares @ scaled)
    return largest * mean, largest * float(shares @ (scaled - mean) ** 2) ** 0.5 or 1.0


def equal_rows(data: TrainingData) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each set of equal ones, in `content_order`, and the set of every row."""
    columns = (*data.table.columns, data.labels)
    # Rows from `by_content` are sorted already. A look at the first column tells most others apart.
    if (columns[0][1:] >= columns[0][:-1]).all():
        order = content_order(data.table, data.target, np.ones(data.table.n_rows))
        if (order[1:] > order[:-1]).all():  # in order already: equal rows are neighbours
            last = np.flatnonzero(columns[0][1:] == columns[0][:-1])
            for column in columns[1:]:
                one, other = column[last], column[last + 1]
                last = last[(one == other) | (np.isnan(one) & np.isnan(other))]
            new = np.ones(len(order), bool)
            new[last + 1] = False
            return np.flatnonzero(new), np.cumsum(new) - 1
    words = np.empty((len(columns), data.table.n_rows), np.uint64)
    for word, column in zip(words, columns, strict=True):
        numbers = column.astype(np.float64) + 0.0  # -0.0 is 0.0
        # One pattern of bits for every NaN: missing values are equal.
        word[:] = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    earliest, group = distinct(words.T)
    # In the order of contents, so that nothing random depends on the given order.
    some = data[earliest]
    order = content_order(some.table, some.target, np.ones(len(earliest)))
    return earliest[order], np.argsort(order)[group]


def held_out(data: TrainingData, fraction: float, seed: int) -> NDArray[np.bool_]:
    """The validation rows: this fraction of the distinct rows, stratified by class, or by zero and
    positive counts.
    """
    first, group = equal_rows(data)
    nothing = np.zeros(len(group))
    kinds = {"real": nothing, "positive": nothing, "count": data.labels > 0}
    kind = kinds.get(data.loss.target, data.labels)
    random = np.random.default_rng(seed)
    chosen = np.zeros(len(group), bool)
    for one in np.unique(kind):
        # Distinct rows are drawn, and all copies follow: no held-out row is also trained on.
        members = random.permutation(first[kind[first] == one])
        chosen[members[: int(fraction * len(members))]] = True
    return chosen[first[group]]


def warn_if_worse(
    fit: Fit[RuleEnsemble], data: TrainingData, reached: float | None = None
) -> Fit[RuleEnsemble]:
    """Returns the fit; warns if the best constant has a smaller loss on the training rows.

    Args:
        reached: the mean loss of the model there; None if it is not known.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        reached = model_loss(fit.model, data) if reached is None else reached
        constant = data.constant_loss_of(together=fit.model.link == "softmax")
    if not reached <= constant + _ROUNDING * max(abs(constant), abs(reached)):
        checks.warn(
            f"the model's mean {data.loss.name} loss on its own training rows is {reached:.4g}, "
            f"worse than the {constant:.4g} of the best constant; lower the penalties, raise "
            "max_rules or time_limit, keep the intercept, or check the loss"
        )
    return fit


def read_as(y: ArrayLike, remedy: str) -> str:
    """What a printed fit says of a target of integers that is read as more than two classes, with
    the remedy if it holds numbers; empty for other targets.
    """
    classes = integer_classes(y)
    told = f"{len(classes)} classes: {', '.join(map(str, classes))}"
    return f"{told}{'; ' * bool(remedy)}{remedy}" if classes else ""


def warn_of_counts(y: ArrayLike, remedy: str) -> None:
    """Warn of integers that are read as classes and look like counts."""
    if look_like_counts(y):
        classes = integer_classes(y)
        checks.warn(
            f"y holds the integers {classes[0]} to {classes[-1]}, which look like counts but are "
            f"read as {len(classes)} classes; pass {remedy}"
        )


def require_ordered(y: ArrayLike, classes: tuple[Label, ...] | None = None) -> None:
    """Refuse a target of more than two classes without an order, for `monotone`: text that declares
    none. Classes of a model in another order than the alphabet's were declared.

    Raises:
        ValueError: naming the remedy.
    """
    labels = target_array(y)
    if labels.dtype.kind != "U" or label_order(y) or (classes and list(classes) != sorted(classes)):
        return
    found = np.unique(labels).tolist()
    if len(found) > 2:
        example = ", ".join(map(repr, found[:3])) + ", ..." * (len(found) > 3)
        raise ValueError(
            f"monotone needs an order of the classes, but y holds text ({example}), whose "
            "alphabetical order means nothing; declare the order, as in y = pandas.Categorical(y, "
            "[lowest, ..., highest], ordered=True), or number the classes 0, 1, ... in it"
        )


def warn_of_unused(
    model: Any,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    given: Mapping[Any, int],
) -> None:
    """Warn of monotone columns that no rule uses because their directions go against the target.

    Such a column has a correlation of the opposite sign with the target that is significant: more
    than `_SIGNIFICANT` standard errors from 0. There is no warning for more than two classes.

    Args:
        model: fitted on X, y and sample_weight.
        given: the argument `monotone`.
    """
    schema, classes = model.schema, model.schema.classes
    constraints = Constraints.of(schema, monotone=given)
    columns = [column for column, _ in constraints.monotone]
    terms = getattr(model, "linear", None)
    linear = () if terms is None else terms.feature[np.asarray(terms.coefficients).any(axis=1)]
    using = replace(constraints, required=tuple(columns)).using(used_rules(model))
    pairs = zip(columns, using, strict=True)
    unused = [column for column, rules in pairs if not rules.any() and column not in linear]
    if not unused or len(classes or ()) > 2:
        return
    table, target = as_table(X, missing=schema.missing), target_array(y)
    weights = check_sample_weight(sample_weight, table.n_rows)
    values = target.astype(np.float64) if classes is None else target == classes[1]
    directions = {
        schema.names[column]: direction
        for column, direction in constraints.monotone
        if column in unused
        and direction * _deviation(table.columns[column], values, weights) < -_SIGNIFICANT
    }
    if not directions:
        return
    falls, remedy = "y falls", "reverse them"
    if classes is not None:
        falls = f"the positive class {classes[1]!r} becomes rarer"
        remedy += f", or pass positive={classes[0]!r}"
    checks.warn(
        f"no rule uses the monotone columns {directions}: along these directions {falls}; {remedy}"
    )


def _deviation(x: NDArray[np.float64], y: NDArray[Any], weights: NDArray[np.float64]) -> float:
    """The weighted correlation of the rows where x is not missing, in standard errors."""
    known = ~np.isnan(x) & (weights > 0)
    if not known.any():
        return 0.0
    x, y, weights = x[known], y[known], weights[known]
    x, y = (one / (np.abs(one).max() or 1.0) for one in (x, y))  # so that no square overflows
    shares = weights / weights.sum()
    x, y = x - shares @ x, y - shares @ y
    # Correlation times sqrt(n), with the effective number of rows n = 1 / sum shares^2
    scale = float(shares @ x**2 * (shares @ y**2)) ** 0.5
    return float(shares @ (x * y)) / (scale * float(shares @ shares) ** 0.5) if scale else 0.0


# One-vs-rest


def sample_in_time(
    data: TrainingData, run: Run, seed: int, columns: float | None = None
) -> TrainingData | None:
    """A random sample of as many rows as a quarter of the remaining time allows, at least
    `_FEWEST_ROWS`; None if there is time for all rows, the limit is 0, or the target is constant on
    the sample.

    A learner that makes its own rules makes them from this sample, in the time of `sample_limit`,
    and fits their weights on all rows. The sample has a row of every class. `columns` is the number
    that the learner makes of those of the table, None for as many, see `columns_in_work`.
    """
    n = len(data.weights)
    if n <= 2 * _FEWEST_ROWS or not run.deadline.seconds:
        return None
    if columns is None:
        numeric = sum(feature.is_numeric for feature in data.table.schema.features)
        columns = numeric + columns_of_categories(data.table)
    per_row = _SECONDS_PER_ENTRY * columns * len(data.outputs)
    left = run.deadline.work_left()
    if n * per_row <= left:
        return None
    return some_rows(data, min(n // 2, max(_FEWEST_ROWS, int(left / (4 * per_row)))), seed)


def columns_in_work(table: Table, most: int | Literal["auto"] | None) -> float:
    """The number of columns whose entries take as long as conditions and a search: more than the
    table has if there are many cut points or categories.

    Args:
        most: the most cut points of a column; None for every value.
    """
    columns = columns_of_categories(table)
    numeric = [i for i, feature in enumerate(table.schema.features) if feature.is_numeric]
    if most == "auto" or (most and most <= _CUT_POINTS):
        return columns + len(numeric)
    for index in numeric:
        # A column counts once for every `_CUT_POINTS` cut points, and at least once.
        values = len(np.unique(table.columns[index]))
        columns += max(1.0, min(values, most or values) / _CUT_POINTS)
    return columns


def columns_of_categories(table: Table) -> float:
    """The number of numeric columns that take as long as the categorical columns of a table."""
    return sum(
        max(1.0, len(table.compared_categories(index)) / _CATEGORIES)
        for index, feature in enumerate(table.schema.features)
        if not feature.is_numeric
    )


def some_rows(data: TrainingData, size: int, seed: int) -> TrainingData | None:
    """A random sample of the rows, of at most this size, and at least one of every class; None if
    the target is constant on it.
    """
    rows = drawn_rows(data, size, seed)
    return None if rows is None else data[rows]


def at_most(data: TrainingData, size: int, seed: int) -> TrainingData:
    """At most so many rows, drawn at random; all if the target is constant on these."""
    return data if len(data.weights) <= size else some_rows(data, size, seed) or data


def drawn_rows(data: TrainingData, size: int, seed: int) -> NDArray[np.intp] | None:
    """The places of the rows of `some_rows`, ascending."""
    n = len(data.weights)
    rows = np.random.default_rng(seed).choice(n, min(size, n), replace=False)
    if data.classes is not None:
        # Every class needs a row: a class that the sample misses gets its first.
        present, first = np.unique(data.codes, return_index=True)
        rows = np.append(rows, first[~np.isin(present, data.codes[rows])])
    rows = np.sort(rows)
    return rows if data.classes is not None or np.ptp(data.target[rows]) > 0 else None


def searched_rows(data: TrainingData, most: int | None, seed: int) -> NDArray[np.intp] | None:
    """The rows that rules are searched on, if there are more than `most`; None for all. The draw
    does not depend on the order of the rows.
    """
    if most is None or len(data.weights) <= most:
        return None
    order = content_order(data.table, data.target, data.weights)
    drawn = drawn_rows(data[order], most, seed)
    return None if drawn is None else order[drawn]


def sample_limit(run: Run, outputs: int = 1) -> Deadline | None:
    """The limit of a fit on a sample, half of the remaining time; None if that is too little for as
    many outputs, fitted one by one.
    """
    run.shortened = True
    part = run.child(0.5).deadline
    enough = max(_FEWEST_SECONDS, _SECONDS_PER_CLASS * outputs)
    return part if part.work_left() >= enough else None


def model_loss(
    model: Any, data: TrainingData, loss: Loss | None = None, scale: float = 1.0
) -> float:
    """The mean loss of a model over rows and outputs; the softmax loss for classes fitted together.

    Args:
        loss: None for that of the data.
        scale: factor on the scores of the model.
    """
    scores = scale * np.asarray(decision_function(model, data.table), np.float64)
    if getattr(model, "link", None) == "softmax":
        return mean_loss(softmax, data.target, scores, data.weights)
    pairs = zip(data.outputs, scores.reshape(len(data.target), -1).T, strict=True)
    loss = data.loss if loss is None else loss
    return float(np.mean([mean_loss(loss, y, score, data.weights) for y, score in pairs]))


def one_against_rest(
    data: TrainingData,
    run: Run,
    fit: Callable[[TrainingData, Run], Fit[RuleEnsemble]],
    *,
    joint: bool = False,
) -> Fit[RuleEnsemble]:
    """`fit` on the data; for K > 2 classes, on each class against the rest with equal shares of the
    time (of more than twenty, the first have at most a twentieth of the rest each, since a small
    share is too short for a rule), or, with `joint`, on all classes at once.

    Returns:
        The fit; for K one-vs-rest fits, one Fit of an ensemble with K outputs. Its objective, and
        its bound if all fits have one, are means over the classes; its status is the worst; its
        history has a step per class. For each name in the ``details`` of a binary fit, its
        ``details`` hold a tuple by class; also objectives, bounds, statuses and histories.
    """
    if data.target.ndim == 1 or joint:
        return warn_if_worse(fit(data, run), data)
    classes, total = data.classes or (), run.total
    fits: list[Fit[RuleEnsemble]] = []
    run.total = len(classes)

    while len(fits) < len(classes):  # repeats only after Ctrl-C, for first incumbents
        with run:
            for k in range(len(fits), len(classes)):
                schema = data.schema.with_classes((False, True))  # the rest, this class
                part = replace(data, target=data.target[:, k], schema=schema, output=k)
                share = max(1 / (len(classes) - k), _LEAST_SHARE)
                child = run.child(share, f"{run.task}, class {classes[k]}", total)
                fits.append(warn_if_worse(fit(part, child), part))
                run.step(fits[k].objective, len(fits[k].model.conjunctions))
    return together(fits, data.schema, run)


def paths_against_rest(
    data: TrainingData,
    run: Run,
    path: Callable[[TrainingData, Run], list[Fit[RuleEnsemble]]],
    fewest: int = 1,
    *,
    joint: bool = False,
) -> list[Fit[RuleEnsemble]]:
    """The fits with `max_rules` = `fewest` or more from one run; K > 2 classes are joined as in
    `one_against_rest`.

    The path of one output may end early; its last fit is then reused for the larger sizes.
    """
    paths: list[list[Fit[RuleEnsemble]]] = []

    def last(part: TrainingData, run: Run) -> Fit[RuleEnsemble]:
        paths.append(path(part, run))
        return paths[-1][-1]

    one_against_rest(data, run, last, joint=joint)
    fits = [*paths[0]]
    if data.target.ndim > 1 and not joint:
        sizes = range(max(map(len, paths)))
        at_size = [[one[min(m, len(one) - 1)] for one in paths] for m in sizes]
        fits = [together(each, data.schema, run) for each in at_size]
    # Each fit is that of `max_rules` = m, and says so; the last keeps the limit that was given.
    for m, fit in enumerate(fits[:-1]):
        settings = tuple((dict(fit.model.options) | {"max_rules": fewest + m}).items())
        fits[m] = replace(fit, model=replace(fit.model, options=settings))
    return fits


def together(fits: Sequence[Fit[RuleEnsemble]], schema: Schema, run: Run) -> Fit[RuleEnsemble]:
    """The fits of K classes against the rest as one, see
    `one_against_rest`; `schema` has the classes.
    """
    bounds = [fit.bound for fit in fits if fit.bound is not None]
    return run.finish(
        joined([fit.model for fit in fits], schema),
        float(np.mean([fit.objective for fit in fits])),
        fits[0].sense,
        Status.worst(fit.status for fit in fits),
        float(np.mean(bounds)) if len(bounds) == len(fits) else None,
        details=OneVsRestDetails(
            of_class=tuple(fit.details for fit in fits),
            objectives=tuple(fit.objective for fit in fits),
            bounds=tuple(fit.bound for fit in fits),
            statuses=tuple(fit.status for fit in fits),
            histories=tuple(fit.history for fit in fits),
        ),
    )


def joined(models: Sequence[RuleEnsemble], schema: Schema) -> RuleEnsemble:
    """Join K ensembles of one output into one of K outputs; rules (and linear terms) with equal
    conditions are merged.

    Args:
        models: one per class, in the order of the classes, with one link and the same columns.
        schema: of the joint model.
    """
    rules = Conjunctions.concatenate([model.conjunctions for model in models]).with_schema(schema)
    each = [np.asarray(model.weights) for model in models]
    kept, weights = _joined([frozenset(rule) for rule in rules], each)
    terms, linear = [model.linear for model in models], None
    if known := [term for term in terms if term is not None]:
        names = [f.name for f in fields(LinearTerms)]
        linear = LinearTerms(*(np.concatenate([getattr(t, name) for t in known]) for name in names))
        ends = linear.feature.tolist(), linear.lower.tolist(), linear.upper.tolist()
        none = np.zeros((0, 1))
        parts = [none if term is None else np.asarray(term.coefficients) for term in terms]
        used, coefficients = _joined(list(zip(*ends, strict=True)), parts)
        linear = replace(linear.take(used), coefficients=coefficients)
    return replace(
        models[0], conjunctions=rules.take(kept), weights=weights, linear=linear,
        intercept=np.concatenate([np.asarray(model.intercept) for model in models]),
        options=_common([model.options for model in models]),
    )  # fmt: skip


def _common(options: Sequence[Settings]) -> Settings:
    """The settings that several fits have in common; None for one that was chosen differently by
    class.
    """
    shared = set.intersection(*map(set, options))
    return tuple((name, value if (name, value) in shared else None) for name, value in options[0])


def _joined(
    keys: Sequence[Any], weights: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The first place of each key, and the summed weights of equal keys, shape (keys, models)."""
    place: dict[Any, int] = {}
    row = np.array([place.setdefault(key, len(place)) for key in keys], np.int64)
    column = np.repeat(np.arange(len(weights)), [len(part) for part in weights])
    total = np.zeros((len(place), len(weights)))
    # `add.at` adds up repeated places, which `+=` would count once.
    np.add.at(total, (row, column), np.concatenate(weights)[:, 0])
    return np.unique(row, return_index=True)[1], total
