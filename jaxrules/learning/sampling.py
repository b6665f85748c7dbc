"""Fits on a sample, for tables that take too long to fit, or do not fit in memory.

`fit_on_sample` reads the rows twice, one block at a time. The first time it draws a sample, to
which a learner fits its model; the second time it evaluates this model on all rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import (
    Label,
    OrderedLabels,
    Table,
    TableLike,
    as_dataframe,
    as_table,
    check_order,
    check_sample_weight,
    conform,
    label_order,
    regression_target,
    target_array,
    with_categories_of,
    with_target,
)
from jaxrules.learning.guard import deferred
from jaxrules.learning.options import FitOptions, present_names
from jaxrules.learning.training import loss_for
from jaxrules.losses import check_target, logistic, loss_by_name
from jaxrules.models.metrics import accuracy, risk
from jaxrules.models.rule_models import RegressionList, RuleList
from jaxrules.tools import checks
from jaxrules.tools.fits import Details, Fit, Status, relative_gap
from jaxrules.tools.runs import Deadline, ProgressOption, Run

_LEARNERS = (
    "boosting", "drnet", "exact_list", "glrm", "lire", "lltboost", "ltrnet",
    "regression_list", "rulefit", "ssrl",
)  # fmt: skip
_ENTRIES = 500_000
"""The most entries of a sample of automatic size: some seconds of every learner."""
_FEWEST_ROWS = 2000
_MOST_CLASSES = 1000
_READING = 1 / 3
"""Share of the time for the first reading, after which the sample is drawn from the rows so far."""
_LEAST_TIME = 1e-3

Floats = NDArray[np.float64]
Block = tuple[Any, Any, Any]
"""X, y and the weights of some rows."""


@dataclass(frozen=True)
class Rated:
    """A model on some rows.

    Attributes:
        rows: the number of rows with a positive weight.
        weight: the sum of their weights.
        objective: of the fit, on these rows.
        bound: proved for the objective on these rows; None if nothing is proved.
        risk: the mean loss, see `jaxrules.risk`.
        accuracy: None for a model of numbers.
    """

    rows: int
    weight: float
    objective: float
    bound: float | None
    risk: float
    accuracy: float | None

    @property
    def gap(self) -> float | None:
        """|bound - objective| / max(|objective|, 1e-12), or None without a bound."""
        return relative_gap(self.objective, self.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledDetails(Details):
    """What `fit_on_sample` reports with the model, and all that the learner reports.

    Attributes:
        sample: the model on the sample, with the bound of the learner.
        rated: the model on all rows, or on those for which there was time.
        rows: the number of rows with a positive weight that the sample was drawn from.
        class_counts: how many of them have each label; empty for numbers.
        of_learner: the details of the fit to the sample.
    """

    sample: Rated
    rated: Rated
    rows: int
    class_counts: Mapping[Any, int]
    of_learner: Details

    @property
    def proved_stages(self) -> tuple[int, int]:
        return self.of_learner.proved_stages if self.sample.rows == self.rows else (0, 0)

    @property
    def told_of_pool(self) -> str:
        if self.sample.rows == self.rows:
            return ""
        return (
            f"Rules found on {self.sample.rows} of {self.rows} rows; objective computed on "
            f"{self.rated.rows}."
        )

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*super().__iter__(), *self.__dict__.get("of_learner", ())])

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling look up special names before there are any fields.
        if name.startswith("__") or name not in set(self):
            return super().__getattr__(name)
        return self.of_learner[name]


def fit_on_sample(
    fit: Callable[..., Fit[Any]],
    X: Any,
    y: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
    *,
    rows: int | Literal["auto"] = "auto",
    block_rows: int = 100_000,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
    **options: Any,
) -> Fit[Any]:
    """Fit a model to a random sample of the rows, and evaluate it on all rows, block by block.

    The sample is drawn uniformly, without replacement, among the rows with a positive weight; a
    class without a row in it gets one. It does not depend on the size of the blocks.

    >>> import numpy as np
    >>> import jaxrules as jr
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> y = (X[:, 0] > 0) & (X[:, 1] > 0)
    >>> found = fit_on_sample(jr.boosting.fit, X, y, rows=1000, max_rules=2)
    >>> found.details.sample.rows, found.details.rated.rows
    (1000, 5000)
    >>> bool(np.isclose(found.details.rated.risk, jr.risk(found.model, X, y)))
    True

    Args:
        fit: ``fit`` or ``cross_validate`` of a learner of ensembles or lists.
        X: the rows, shape (rows, features): all that `as_table` reads; or a source of blocks, of
            which one at a time is in memory: a polars LazyFrame, a pyarrow dataset, or a function
            without arguments that returns a fresh iterator of blocks, each time of the same rows.
            Its blocks are tuples (X, y) or (X, y, sample_weight), or tables if y is a column.
        y: the target, shape (rows,), or the name of its column in X; None for blocks with y.
        sample_weight: weight of every row, shape (rows,), or the name of its column in X.
        rows: the size of the sample; "auto" for 500 000 entries, 25 000 rows of 20 columns. All
            rows if there are no more.
        block_rows: the number of rows of a block, unless X decides it.
        seed: seed of the sample and of the fit.
        time_limit: seconds from call to return. If they are short, the sample comes from the rows
            read in a third of them, and the model is evaluated on as many rows as possible.
        progress: as in the learners; reading and evaluation report rows.
        options: the options of the learner, except `offset`, `exposure` and `groups`.

    Returns:
        The Fit to the sample with `SampledDetails`. Its objective is that of the model on all rows,
        at the penalties of the fit: its mean loss there plus the penalties of the model. Those that
        depend on rows (boosting's and LIRE's ridge, LIRE's coverage) are those on all rows; the
        scale of linear terms is that of the sample. Objectives of lists count all rows, at the
        same `literal_penalty`. The bound of the fit is about the sample, and is in
        ``details.sample``; on all rows nothing is proved, so that the Fit has no bound and is not
        OPTIMAL, unless the sample has all rows.

        Categories are those of all rows. After Ctrl-C the model is evaluated on the rows so far, or
        if there are none, on the sample; `details.rated` says on how many.

    Raises:
        TypeError: if `fit` is not such a function, or X can be read only once; for an unknown
            option.
        ValueError: if y is not a column of X, X has no rows, or blocks have different columns; for
            `refit_on_all_rows=False` of LLTBoost, whose objective is about a part of its rows; and
            as the learner.
    """
    with deferred(fit_on_sample):
        run = Run("sample", time_limit, progress)
        kind = _options_of(fit)
        options = present_names(kind, options, "fit_on_sample")
        made = _checked(fit, kind, options, seed)
        if rows is None or (isinstance(rows, str) and rows != "auto"):
            raise TypeError(f'rows must be an integer or "auto", got {rows!r}')
        size: int | Literal["auto"] = "auto"
        if not isinstance(rows, str):
            size = checks.integer("rows", rows, at_least=1)
        block_rows = checks.integer("block_rows", block_rows, at_least=1)
        source = _source(X, y, sample_weight, made.missing, block_rows)
        sample, reading = _Sample(size, seed, made), run.child(_READING)
        _draw(source, sample, run, reading)
        block, option = sample.drawn()
        # A first reading that was cut short has not seen all rows, even if it kept all that it saw.
        whole = len(block[1]) == sample.rows and reading.limit is None
        found = fit(
            *block, seed=seed, time_limit=_time_to_fit(run, whole), progress=progress,
            **options | option,
        )  # fmt: skip
        loss = None if isinstance(sample.given, str) else sample.loss
        sums = _BlockSums.of(found.model, block, loss)
        rated = None if whole else _rated(found.model, source, sample, loss, run)
        return _on_all_rows(found, sums, rated or sums, sample, whole, run, reading.limit)


def _draw(source: Source, sample: _Sample, run: Run, reading: Run) -> None:
    """Draw the sample from as many blocks as there is time for, at least one with rows."""
    blocks = source()
    # Without a check of the clock: there is no model without a row.
    for block in blocks:
        sample.add(*block)
        if sample.rows:
            break
    with run:
        run.phase = "reading"
        for block in blocks:
            if reading.stopped():
                break
            sample.add(*block)
            run.report(sample.rows)


def _time_to_fit(run: Run, whole: bool) -> Deadline | None:
    """The time that the second reading leaves, which takes longer than the first; at least half of
    the rest. It is not 0 unless the limit is, so that there is a rule.
    """
    if run.deadline.seconds is None:
        return None
    left = run.deadline.remaining()
    if not whole:
        left = max(left / 2, left - 2 * run.seconds())
    return Deadline(max(left, min(_LEAST_TIME, run.deadline.seconds)), run.deadline.clock)


def _on_all_rows(
    found: Fit[Any],
    sums: _BlockSums,
    rated: _BlockSums,
    sample: _Sample,
    whole: bool,
    run: Run,
    cut: Status | None,
) -> Fit[Any]:
    """The fit to the sample as one to all rows."""
    objective, bound, status = _objective(found, sums, rated), None, found.status
    if whole:
        objective, bound = found.objective, found.bound
    else:
        limit = run.limit or cut or Status.CONVERGED
        status = Status.worst([status, Status.CONVERGED, limit])
    details = SampledDetails(
        sample=sums.rated(found.objective, found.bound),
        rated=rated.rated(objective, bound),
        rows=sample.rows,
        class_counts={one: sample.labels[one] for one in found.model.schema.classes or ()},
        of_learner=found.details,
        cross_validation=found.details.cross_validation,
    )
    return dataclasses.replace(
        found, objective=objective, status=status, bound=bound, seconds=run.seconds(),
        details=details,
    )  # fmt: skip


# Arguments


def _options_of(fit: object) -> type[FitOptions]:
    """The class of options of a learner's `fit` or `cross_validate`."""
    kind: Any = getattr(fit, "options", None)
    known = isinstance(kind, type) and issubclass(kind, FitOptions) and kind.learner in _LEARNERS
    if known and getattr(fit, "__name__", "") in ("fit", "cross_validate"):
        return cast(type[FitOptions], kind)
    raise TypeError(
        f"fit must be fit or cross_validate of {', '.join(_LEARNERS)}, as in "
        f"jaxrules.boosting.fit, got {getattr(fit, '__name__', type(fit).__name__)}"
    )


def _checked(
    fit: Callable[..., Any], kind: type[FitOptions], given: Mapping[str, Any], seed: int
) -> FitOptions:
    """The options of the learner, before any row is read."""
    for name in kind.of_rows:
        if given.get(name) is not None:
            remedy = "for rates, pass y / exposure with sample_weight=exposure"
            if name == "groups":
                remedy = "draw whole groups yourself and call the learner with them"
            raise ValueError(f"fit_on_sample cannot draw {name} with the rows; {remedy}")
    with deferred(fit, given, list(inspect.signature(fit).parameters)):
        made = kind(**given, seed=seed)
    if not getattr(made, "refit_on_all_rows", True):
        raise ValueError(
            "refit_on_all_rows=False cannot be combined with fit_on_sample, because the objective "
            "would be about other rows than the model's"
        )
    return made


# Blocks

Source = Callable[[], Iterator[Block]]


def _source(X: Any, y: Any, sample_weight: Any, missing: Any, block_rows: int) -> Source:
    """Reads the blocks again at each call."""
    named = isinstance(y, str)
    if isinstance(sample_weight, str) and not named:
        raise TypeError(
            f"sample_weight={sample_weight!r} names a column of X, so y must name one, too"
        )
    tables = _tables(X, block_rows)
    if tables is None:  # in memory
        if named:
            X, y, weights = _separated(X, y, sample_weight)
            sample_weight = weights if isinstance(sample_weight, str) else sample_weight
        check_order(X, y=y, sample_weight=sample_weight)
        table = with_target(as_table(X, missing=missing), y)
        labels = OrderedLabels.of(target_array(y, table.n_rows), label_order(y))
        given = None if sample_weight is None else check_sample_weight(sample_weight, table.n_rows)

        def blocks() -> Iterator[Block]:
            for start in range(0, table.n_rows, block_rows):
                part = slice(start, start + block_rows)
                yield table[part], labels[part], None if given is None else given[part]

        return blocks
    if not (y is None or named) or not (sample_weight is None or isinstance(sample_weight, str)):
        raise TypeError(
            "y and sample_weight of a source of blocks must be names of columns, or None if "
            "the blocks are tuples (X, y) or (X, y, sample_weight)"
        )
    return lambda: (_block(one, y, sample_weight) for one in tables())


def _tables(X: Any, block_rows: int) -> Callable[[], Iterator[Any]] | None:
    """The blocks as the source gives them; None for rows in memory.

    Raises:
        TypeError: if they can be read only once, or are lazy in a way that is not known here.
    """
    import narwhals as nw

    if hasattr(X, "__next__") or hasattr(X, "read_next_batch"):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once, but rows are read twice; "
            "pass a function that returns a fresh one, as in lambda: blocks()"
        )
    if callable(X) and not hasattr(X, "__array__"):
        _check_function(X)
        return lambda: iter(X())
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None  # for `as_table` to refuse
    if isinstance(frame, nw.LazyFrame):
        if frame.implementation is not nw.Implementation.POLARS:
            raise TypeError(
                f"X is a lazy {type(X).__name__}; pass a function that returns an iterator of its "
                "batches"
            )
        if hasattr(X, "collect_batches"):
            return lambda: iter(X.collect_batches(chunk_size=block_rows, maintain_order=True))
        return lambda: _slices(X, block_rows)
    if hasattr(X, "to_batches") and as_dataframe(X) is None:
        return lambda: iter(X.to_batches())
    return None


def _check_function(X: Callable[..., Any]) -> None:
    """Refuse a function that does not return a fresh iterator at each call."""
    wanted = "X is a function, and must return a fresh iterator of blocks at each call"
    with contextlib.suppress(ValueError):  # a builtin may have no signature
        signature = inspect.signature(X)
        try:
            signature.bind()
        except TypeError:
            raise TypeError(f"{wanted}; it has the arguments {signature}") from None
    first = X()
    if not hasattr(first, "__iter__"):
        raise TypeError(f"{wanted}, got {type(first).__name__}")
    if hasattr(first, "__next__") and first is X():
        raise TypeError(f"{wanted}, got the same one twice")


def _slices(frame: Any, size: int) -> Iterator[Any]:
    """The blocks of a LazyFrame of earlier releases of polars."""
    for start in itertools.count(0, size):
        block = frame.slice(start, size).collect()
        if len(block):
            yield block
        if len(block) < size:
            return


def _block(given: Any, y: str | None, sample_weight: str | None) -> Block:
    """A block of a source as X, y and weights."""
    if y is not None:
        return _separated(given, y, sample_weight)
    if isinstance(given, tuple) and len(given) in (2, 3):
        return given[0], given[1], given[2] if len(given) == 3 else None
    raise TypeError(
        "X must give blocks (X, y) or (X, y, sample_weight), or tables if y is the name of a "
        f"column, got {type(given).__name__}"
    )


def _separated(X: Any, y: str, sample_weight: Any) -> Block:
    """A table without the columns of the target and of the weights, and these."""
    names = [one for one in (y, sample_weight) if isinstance(one, str)]
    frame = None if isinstance(X, Mapping) else as_dataframe(X)
    if frame is None and not isinstance(X, Mapping):
        raise TypeError(
            f"y={y!r} names a column of X, but X is a {type(X).__name__}; pass a dataframe or a "
            "dict of columns, or y as an array"
        )
    columns = list(X) if frame is None else frame.columns
    for name in names:
        if name not in columns:
            which = "y" if name == y else "sample_weight"
            raise ValueError(f"{which}={name!r} is not a column of X; the columns are {columns}")
    if frame is None:
        found = [X[name] for name in names]
        rest: Any = {name: X[name] for name in columns if name not in names}
    else:
        found = [frame.get_column(name).to_native() for name in names]
        rest = frame.drop(names).to_native()
    return rest, found[0], found[1] if len(found) > 1 else None


def _weights_of(sample_weight: Any, n_rows: int) -> Floats:
    """As `check_sample_weight`, but those of a block may all be 0."""
    given = None if sample_weight is None else checks.array("sample_weight", sample_weight)
    if given is not None and given.shape == (n_rows,) and not given.any():
        return given
    return check_sample_weight(given, n_rows)


def _n_rows(X: Any) -> int:
    return len(next(iter(X.values()), ())) if isinstance(X, Mapping) else len(X)


# The sample


class _Sample:
    """The rows so far with the smallest random numbers, and the smallest of every class.

    Attributes:
        keys: their random numbers, shape (rows,).
        rows: the number of rows so far that have a weight.
        blocks: the number of blocks so far.
        labels: how many rows have each; incomplete if there are more than classes can be.
    """

    def __init__(self, size: int | Literal["auto"], seed: int, options: FitOptions) -> None:
        given = getattr(options, "loss", None)
        self.size, self.options, self.given = size, options, given
        self.loss = None if given is None else loss_by_name(given)
        self.random = np.random.default_rng(seed)
        self.table: Table | None = None
        self.y: NDArray[Any] = np.zeros(0)
        self.weights = self.keys = np.zeros(0)
        self.rows = self.blocks = 0
        self.labels: dict[Any, int] = {}
        self.order: tuple[Label, ...] = ()
        self.weighted = False

    def add(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Draw from a further block, too."""
        if not _n_rows(X):
            self.blocks += 1
            return
        check_order(X, y=y, sample_weight=sample_weight)
        old, table = self._read(X)
        target, weights = target_array(y, table.n_rows), _weights_of(sample_weight, table.n_rows)
        self._check(target, label_order(y))
        # Every row draws a number, and the rows with the smallest ones are the sample. Of the rows
        # so far these are known at any time, so that one pass is enough.
        draws = self.random.random(table.n_rows)  # one per row, whatever the blocks
        used = np.flatnonzero(weights > 0)
        labels = self._counted(target[used])
        keys = np.append(self.keys, draws[used])
        both = np.concatenate([self.y, target[used]]) if len(self.y) else target[used]
        kept = self._kept(keys, both, self._size(table), len(labels) <= _MOST_CLASSES)
        new = table[used[kept[len(self.keys) :]]]
        if old is not None:
            pairs = zip(old.columns, new.columns, strict=True)
            of_old = kept[: len(self.keys)]
            joined = tuple(np.append(a[of_old], b) for a, b in pairs)
            new = Table(new.schema, joined)
        self.table, self.y, self.keys, self.labels = new, both[kept], keys[kept], labels
        self.weights = np.append(self.weights, weights[used])[kept]
        self.weighted |= sample_weight is not None
        self.rows, self.blocks = self.rows + len(used), self.blocks + 1

    def _read(self, X: TableLike) -> tuple[Table | None, Table]:
        """The sample so far and the block, in the same columns."""
        if self.table is None:
            return None, as_table(X, missing=self.options.missing)
        try:
            schema = with_categories_of(X, self.table.schema)
            return conform(self.table, schema), conform(X, schema, exact=True)
        except ValueError as error:
            block = f"block {self.blocks + 1}"
            raise ValueError(f"{block} of X does not fit the blocks before: {error}") from None

    def _check(self, target: NDArray[Any], order: tuple[Label, ...]) -> None:
        kind, known, block = _kind(target), _kind(self.y), f"block {self.blocks + 1}"
        if len(self.y) and kind != known:
            raise ValueError(f"y holds {kind} in {block}, but {known} before")
        if len(self.y) and order != self.order:
            raise ValueError(
                f"y declares the order {order} in {block}, but {self.order} before; declare the "
                "same in all blocks"
            )
        self.order = order
        if self.loss is not None and self.loss.target != "sign":
            check_target(self.loss, regression_target(target))

    def _counted(self, target: NDArray[Any]) -> dict[Any, int]:
        """The labels with those of a block."""
        labels = dict(self.labels)
        if len(labels) <= _MOST_CLASSES:
            values, counts = np.unique(target, return_counts=True)
            for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                labels[value] = labels.get(value, 0) + count
        return labels

    def _size(self, table: Table) -> int:
        if self.size == "auto":
            return max(_FEWEST_ROWS, _ENTRIES // len(table.schema.sources))
        return self.size

    @staticmethod
    def _kept(keys: Floats, y: NDArray[Any], size: int, of_every_class: bool) -> NDArray[np.bool_]:
        order = np.argsort(keys, kind="stable")
        kept = np.zeros(len(keys), bool)
        kept[order[:size]] = True
        if of_every_class:
            # In the order of keys, the first row of a class is the one with its smallest key.
            kept[order[np.unique(y[order], return_index=True)[1]]] = True
        return kept

    def drawn(self) -> tuple[Block, dict[str, Any]]:
        """The sample, in the order of the rows, and the option by which its target is read as that
        of all rows.
        """
        checks.require(self.rows > 0, "X has no rows with a positive sample_weight")
        assert self.table is not None
        has_loss = hasattr(self.options, "loss")
        labels = OrderedLabels.of(np.array(list(self.labels)), self.order)
        loss = loss_for(labels, self.given) if has_loss else logistic
        # Only all labels tell classes from numbers.
        few, classes = len(self.labels) <= _MOST_CLASSES, loss.target == "sign"
        checks.require(few or not classes, f"y has more than {_MOST_CLASSES} classes")
        # For numbers, rows that were kept only for their "class" are dropped.
        kept = self._kept(self.keys, self.y, self._size(self.table), classes)
        weights = self.weights[kept] if self.weighted else None
        # The few values of a sample might look like classes where those of all rows do not.
        option = {"loss": loss.name} if has_loss and self.given is None and not classes else {}
        return (self.table[kept], OrderedLabels.of(self.y[kept], self.order), weights), option


def _kind(target: NDArray[Any]) -> str:
    return {"b": "booleans", "U": "text"}.get(target.dtype.kind, "numbers")


# Evaluation


@dataclass(frozen=True)
class _BlockSums:
    """Sums over rows.

    Attributes:
        rows, weight: the number of rows with a weight, and of their weights.
        loss: of the losses.
        right: of the weights of correctly predicted rows; NaN for numbers.
        covered: for LIRE, of the weights of the rows that satisfy each rule, shape (rules,); for
            lists, of the rules read times the weight.
    """

    rows: int
    weight: float
    loss: float
    right: float
    covered: Floats | float

    @classmethod
    def of(cls, model: Any, block: Block, loss: Any) -> _BlockSums:
        """Of a block; `loss` is a user's, None for that of the fit."""
        X, y, sample_weight = block
        check_order(X, y=y, sample_weight=sample_weight)
        table = conform(X, model.schema)
        weights, target = _weights_of(sample_weight, table.n_rows), target_array(y, table.n_rows)
        used = weights > 0
        if not used.all():
            table, target, weights = table[used], target[used], weights[used]
        if not len(weights):
            return cls(0, 0.0, 0.0, 0.0, 0.0)
        total, of_rows = float(weights.sum()), (model, table, target, weights)
        lost = total * risk(*of_rows, loss=loss)
        right = total * accuracy(*of_rows) if model.schema.classes is not None else math.nan
        covered = 0.0
        if isinstance(model, (RuleList, RegressionList)):
            read = np.minimum(model.position(table) + 1, len(model.conjunctions))
            covered = float(weights @ read)
        elif _learner_of(model) == "lire":
            covered = weights @ model.conjunctions.satisfied(table)
        return cls(len(weights), total, lost, right, covered)

    def __add__(self, other: _BlockSums) -> _BlockSums:
        mine, others = dataclasses.astuple(self), dataclasses.astuple(other)
        return _BlockSums(*(a + b for a, b in zip(mine, others, strict=True)))

    def rated(self, objective: float, bound: float | None) -> Rated:
        accuracy = None if math.isnan(self.right) else self.right / self.weight
        return Rated(self.rows, self.weight, objective, bound, self.loss / self.weight, accuracy)


def _rated(model: Any, source: Source, sample: _Sample, loss: Any, run: Run) -> _BlockSums | None:
    """The model on the blocks that the sample was drawn from, as far as there is time; None if
    there is none.
    """
    found: _BlockSums | None = None
    with run:
        run.phase = "evaluation"
        for block in () if run.stopped() else itertools.islice(source(), sample.blocks):
            if _n_rows(block[0]):
                one = _BlockSums.of(model, block, loss)
                found = one if found is None else found + one
                run.report(found.rows)
            if run.stopped():
                break
    rows = 0 if found is None else found.rows
    if run.limit is None and rows != sample.rows:
        checks.warn(
            f"X had {sample.rows} rows when the sample was drawn, and {rows} when the model was "
            "evaluated; a function must return the same rows at every call"
        )
    return found if rows else None


def _objective(fit: Fit[Any], sample: _BlockSums, rated: _BlockSums) -> float:
    """The objective of the fit to the sample on the rated rows, at the same penalties."""
    local: float = dict(fit.model.options).get("local_penalty", 0.0)
    if isinstance(fit.model, RegressionList):
        # A share of the loss of the constant on the sample, plus penalties.
        constant = fit.details["constant_loss"]
        change = (rated.loss / rated.weight - sample.loss / sample.weight) / constant
        read = rated.covered / rated.weight - sample.covered / sample.weight
        return fit.objective + change + local * float(read)
    if isinstance(fit.model, RuleList):
        if fit.sense == "min":  # DRNet: the error
            return 1 - rated.right / rated.weight
        # The other lists maximise correct rows less the price of reading, and a penalty, which is
        # the same on all rows.
        read = float(rated.covered - sample.covered)
        return rated.right - (sample.right - fit.objective) - local * read
    # Penalties are what the objective has beside the mean loss of the sample. They stay, except
    # those that depend on the rows.
    learner, smaller = _learner_of(fit.model), sample.weight / rated.weight
    penalties = fit.objective - sample.loss / sample.weight
    if learner == "boosting":  # the ridge is relative to the sum of losses
        penalties *= smaller
    elif learner == "lire":
        # Beyond the paper's objective there is the ridge, relative to the sum of the losses as
        # boosting's. The penalty on coverage is that of the rated rows.
        ridge = fit.objective - float(np.mean(fit.details["paper_objective"]))
        penalties += (smaller - 1) * ridge + _coverage(fit, rated) - _coverage(fit, sample)
    return rated.loss / rated.weight + penalties


def _coverage(fit: Fit[Any], sums: _BlockSums) -> float:
    """LIRE's penalty on the mean coverage of the rules in use, mean over outputs."""
    used = np.asarray(fit.model.weights) != 0
    if fit.model.link == "softmax":
        used = used.any(axis=1, keepdims=True)
    shares = sums.covered @ used / np.maximum(used.sum(axis=0), 1) / sums.weight
    return float(np.mean(shares * np.asarray(fit.details["local_penalty"])))


def _learner_of(model: Any) -> Any:
    return dict(model.options)["learner"]
