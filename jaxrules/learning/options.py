"""The options of a learner, each written once: name, type, default, check and documentation::

    @options
    class Options(FitOptions):
        '''The options of `fit`.

        Attributes:
            max_rules: the most rules.
        '''

        learner = "boosting"

        max_rules: int = option(checks.integer, default=10, at_least=1)

    @learner(Options)
    def fit(X, y, sample_weight, options): ...

Callers write ``fit(X, y, max_rules=5)``. `learner` gives the function the fields of the class as
keyword arguments, in its signature, in its docstring and for type checkers, and hands it the
checked options.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    overload,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.groups import group_codes
from jaxrules.data.table import (
    Label,
    MissingRule,
    TableLike,
    check_order,
    missing_rule,
    target_array,
)
from jaxrules.learning.guard import deferred
from jaxrules.learning.training import (
    TrainingData,
    loss_for,
    plain,
    read_as,
    require_ordered,
    training_data,
    warn_of_counts,
    warn_of_many_categories,
    warn_of_unused,
    without_offset,
)
from jaxrules.learning.workers import check_workers
from jaxrules.losses import Loss
from jaxrules.models.near_optimal import NearOptimalModels
from jaxrules.models.rule_models import RELATIVE_TO, RuleEnsemble
from jaxrules.rules.constraints import asks
from jaxrules.tools import checks, placement
from jaxrules.tools.fits import Fit, Settings
from jaxrules.tools.runs import Deadline, ProgressOption, Run

Value = TypeVar("Value")
Result = TypeVar("Result", covariant=True)
Arguments = ParamSpec("Arguments")


def option(check: Callable[..., Any], *, default: Value, **limits: Any) -> Value:
    """A field of an options class whose value is ``check(name, given, **limits)``.

    A check returns the value to keep. It must accept its own results, because options are copied.
    """
    return dataclasses.field(
        default=default, metadata={"check": functools.partial(check, **limits)}
    )


def or_none(check: Callable[..., Any]) -> Callable[..., Any]:
    """The check of an option that may be None."""
    return functools.partial(checks.optional, check)


@dataclass_transform(
    eq_default=False, kw_only_default=True, frozen_default=True, field_specifiers=(option,)
)
def options(cls: type[Value]) -> type[Value]:
    """Make a class a frozen dataclass whose fields are keywords."""
    return dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(cls)


@options
class RunOptions:
    """The options of everything that runs for a while.

    Attributes:
        seed: seed of everything random in the fit; equal seeds give equal models.
        time_limit: seconds from call to return, None for no limit. A fit that runs out of time
            returns its best model so far.
        progress: True for a bar, or a function of one `jaxrules.Progress`.
    """

    learner: ClassVar[str] = ""
    """Its name in messages and in the settings that a model keeps."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Earlier names of options, and their current names."""
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Arguments that one may expect but are not taken, and what to do instead."""
    of_rows: ClassVar[tuple[str, ...]] = ("offset", "exposure", "groups")
    """Options with a value per row, which are neither settings of a model nor parameters of an
    estimator.
    """

    seed: int = option(lambda name, value: checks.seed(value), default=0)
    time_limit: float | Deadline | None = None
    progress: ProgressOption = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if "check" in field.metadata:
                given = getattr(self, field.name)
                self._set(field.name, field.metadata["check"](field.name, given))
        limit = Deadline.of(self.time_limit)  # the clock starts here
        placement.check_limit(limit.seconds)
        self._set("time_limit", limit)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # as frozen dataclasses do

    def __getstate__(self) -> dict[str, Any]:
        """The state sent to a worker: progress is shown only where the fit was called."""
        return {**self.__dict__, "progress": False}

    def run(self, task: str = "", total: int | None = None) -> Run:
        """The run of a fit with these options."""
        return Run(task or self.learner, self.time_limit, self.progress, total=total)

    def settings(self, **derived: Any) -> Settings:
        """The settings that a model keeps, as (name, value) pairs fit for JSON.

        Args:
            derived: what the data decided, such as the loss; these replace the options.
        """
        left_out = ("progress", *self.of_rows)
        names = [field.name for field in in_order(type(self)) if field.name not in left_out]
        given = {name: getattr(self, name) for name in names}
        limit = Deadline.of(self.time_limit).seconds
        kept = {**given, "time_limit": limit, **derived}
        return (("learner", self.learner), *((name, plain(value)) for name, value in kept.items()))

    def to(self, kind: type[OptionsT], **changes: Any) -> OptionsT:
        """Options of another class: these changes, and else the values of the same names."""
        ours, theirs = ({one.name for one in dataclasses.fields(of)} for of in (self, kind))
        common = {name: getattr(self, name) for name in ours & theirs}
        return kind(**{**common, **changes})


OptionsT = TypeVar("OptionsT", bound=RunOptions)


def _label(name: str, value: Any) -> Label | None:
    """A class label: text, a number or a boolean; None for none."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, (str, int, float, bool)):
        raise TypeError(f"{name} must be a label of y or None, got {type(value).__name__}")
    return value


@options
class FitOptions(RunOptions):
    """The options that all learners have.

    Attributes:
        missing: rule for missing values, see `jaxrules.as_table`: None for that of a Table, and
            for "refuse" otherwise.
        positive: for two classes, the label that the score, monotone columns, thresholds and alarms
            refer to: the second of the model's ``schema.classes``. None for the second label in
            the order that y declares, else in sorted order.
    """

    compares_categories: ClassVar[bool] = True
    """Whether models compare columns with single categories, see `Table.compared_categories`."""

    missing: MissingRule | None = None
    positive: Label | None = option(_label, default=None)

    def training_data(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, loss: Loss, **how: bool
    ) -> TrainingData:
        """See `jaxrules.learning.training.training_data`; `how` passes its other arguments. Warns
        of columns with too many categories for rules on each.
        """
        data = training_data(
            X, y, loss, sample_weight=sample_weight, missing=self.missing, positive=self.positive,
            **how,
        )  # fmt: skip
        if self.compares_categories:
            warn_of_many_categories(data.table)
        return data


@options
class ScoreOptions(FitOptions):
    """The options, besides `loss`, of learners of an additive score.

    Attributes:
        offset: a known part of the score of every row, shape (rows,), to which the model adds. For
            `poisson`, `gamma` and `tweedie` it is the logarithm of a factor of the mean; `squared`,
            `huber`, `absolute` and `quantile` also accept it. The fit is that of rates, see
            `jaxrules.losses.relative`.
        exposure: exp(offset) for losses with the log link: the time, area or number at risk of
            every row, positive, shape (rows,). `predict` then gives the mean per unit of exposure,
            or with ``exposure=`` the mean of a row. The fit measures exposures in units of their
            mean, so that their unit changes nothing but the intercept.
    """

    offset: ArrayLike | None = None
    exposure: ArrayLike | None = None

    def check_order(self, X: TableLike, y: ArrayLike, **others: Any) -> None:
        """See `jaxrules.data.table.check_order`; the relative target has no order to check."""
        weights = others.get("sample_weight")
        check_order(X, y=y, sample_weight=weights, offset=self.offset, exposure=self.exposure)

    def relative(
        self, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[ArrayLike, ArrayLike | None, Self, float]:
        """The target, the weights and the options of the same fit without offset and exposure, and
        the number to add to the intercept of its model.
        """
        if self.offset is None and self.exposure is None:
            return y, sample_weight, self, 0.0
        loss = loss_for(y, getattr(self, "loss", None))
        y, weights, shift = without_offset(
            loss, y, sample_weight, self.offset, self.exposure, getattr(self, "intercept", True)
        )
        changed: dict[str, Any] = {"loss": loss, "offset": None, "exposure": None}
        start = getattr(self, "start", None)
        if shift and isinstance(start, (Fit, RuleEnsemble)):
            changed["start"] = _shifted(start, -shift)
        return y, weights, dataclasses.replace(self, **changed), shift


Multiclass = Literal["joint", "one_vs_rest"]
how_classes = functools.partial(checks.choice, known=(None, *get_args(Multiclass)))
"""The check of the option `multiclass`."""
ONE_VS_REST = 'set multiclass="one_vs_rest" for one model per class'


def against_joint(loss: str, monotone: bool, *others: tuple[str, bool]) -> list[str]:
    """The options of a fit that cannot be combined with classes fitted together.

    Args:
        loss: the name of its loss.
        monotone: whether columns are monotone.
        others: further options, as they are written, and whether they are set.
    """
    known = ((f'loss="{loss}"', loss != "logistic"), ("monotone", monotone), *others)
    return [name for name, is_set in known if is_set]


def joins(multiclass: Multiclass | None, several: bool, against: Sequence[str]) -> bool:
    """Whether classes are fitted together: None does it if it can.

    Args:
        multiclass: the option.
        several: whether y has more than two classes.
        against: the options that cannot be combined with it.

    Raises:
        ValueError: if they must be and cannot.
    """
    if several and multiclass == "joint" and against:
        raise ValueError(
            f'{" and ".join(against)} cannot be combined with multiclass="joint"; {ONE_VS_REST}'
        )
    return several and multiclass != "one_vs_rest" and not against


def _workers(name: str, n_jobs: Any) -> Any:
    check_workers(n_jobs)
    return n_jobs


@options
class GroupOptions(FitOptions):
    """The options of what chooses a setting in folds.

    Attributes:
        groups: the group of every row, such as the person whom it is about, numbers or text, shape
            (rows,): the rows of a group are in one fold. Folds then have equally many rows of every
            class as nearly as whole groups allow. None for rows that are independent.
    """

    groups: ArrayLike | None = None

    @property
    def coded_groups(self) -> NDArray[np.int64] | None:
        """The groups as `in_rows` coded them."""
        return None if self.groups is None else np.asarray(self.groups, np.int64)

    def in_rows(self, X: TableLike, y: ArrayLike) -> Self:
        """The same options with coded groups.

        Raises:
            TypeError, ValueError: if they are not one for each row.
        """
        if self.groups is None:
            return self
        check_order(X, y=y, groups=self.groups)
        codes = group_codes(self.groups, len(target_array(y)))
        return dataclasses.replace(self, groups=codes)


@options
class Folds(GroupOptions):
    """The options of every `cross_validate`.

    Attributes:
        n_folds: the number of folds, stratified by class. A class needs at least two rows, so that
            the fit of every fold has one.
        one_standard_error: choose the smallest model whose risk is within one standard error of the
            least; False chooses the model of least risk.
        seed: seed of the folds, and of everything random in the fits.
        time_limit: seconds for everything, of which four fifths are for the folds.
        n_jobs: workers for the folds, as in scikit-learn: None is 1 unless
            ``joblib.parallel_config`` says otherwise, -1 one per processor; joblib's backend
            decides what the workers are (docs/scale.md).
    """

    n_folds: int = option(checks.integer, default=5, at_least=2)
    one_standard_error: bool = option(checks.flag, default=True)
    n_jobs: int | None = option(_workers, default=None)


def in_order(kind: type[Any]) -> Iterator[dataclasses.Field[Any]]:
    """The fields, those of the class before those of its bases."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    # A field that a class overrides has the place of the class: `pop` takes it once.
    for of in kind.__mro__:
        for name in inspect.get_annotations(of):
            if name in fields:
                yield fields.pop(name)


# The function of a learner


OptionsIn = TypeVar("OptionsIn", bound=RunOptions, contravariant=True)


class Learner(Protocol[Arguments, OptionsIn, Result]):
    """A function of X, y, the weights of the rows and, as keywords, the options of a class.

    Attributes:
        options: the class of options.
    """

    options: type[FitOptions]

    def __call__(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result: ...

    def with_options(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: OptionsIn
    ) -> Result:
        """The same, given an options object."""
        ...


class ModelLearner(Protocol[Arguments, OptionsIn, Result]):
    """The same for functions of X, y and a model, in the order that the function has."""

    def __call__(
        self,
        first: Any,
        second: Any,
        third: Any,
        /,
        sample_weight: ArrayLike | None = None,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result: ...

    def with_options(
        self,
        first: Any,
        second: Any,
        third: Any,
        sample_weight: ArrayLike | None,
        options: OptionsIn,
        /,
    ) -> Result:
        """The same, given an options object."""
        ...


Body = Callable[[TableLike, ArrayLike, ArrayLike | None, OptionsT], Result]
ModelBody = Callable[[Any, Any, Any, ArrayLike | None, OptionsT], Result]


class Decorator(Protocol[Arguments, OptionsT]):
    """What `learner` returns."""

    @overload
    def __call__(self, body: Body[OptionsT, Result]) -> Learner[Arguments, OptionsT, Result]: ...
    @overload
    def __call__(
        self, body: ModelBody[OptionsT, Result]
    ) -> ModelLearner[Arguments, OptionsT, Result]: ...


def learner(kind: Callable[Arguments, OptionsT]) -> Decorator[Arguments, OptionsT]:
    """Decorate a function of (X, y, sample_weight, options): callers pass options as keywords.

    A function that also takes a model has it before the weights: (X, y, model, sample_weight,
    options).

    The clock of `time_limit` starts with the call, and Ctrl-C is deferred until the return (see
    `jaxrules.learning.guard`). The fields of `kind` are added to the signature, and their
    documentation to the section "Args" of the docstring.

    Args:
        kind: the class of options.

    Raises:
        TypeError: from the function, for an unknown option, suggesting a similar name or the
            learners that have it.
        RuntimeError: from the function, as `jaxrules.learning.guard.deferred`.
    """
    of = cast(type[RunOptions], kind)
    make: Any = kind  # of any options: a ParamSpec has no names

    def decorated(body: Callable[..., Any]) -> Any:
        signature = _signature(body, of)
        known = list(signature.parameters)
        data = known[: known.index("sample_weight") + 1]

        @functools.wraps(body)
        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs = present_names(of, kwargs, f"{of.learner}.{body.__name__}")
            with deferred(body, kwargs, known):
                try:
                    bound = signature.bind(*args, **kwargs).arguments
                except TypeError as error:
                    one = len(args) == 1 and hasattr(args[0], "X") and hasattr(args[0], "y")
                    hint = "; pass its X and its y" if one else ""
                    raise TypeError(f"{body.__name__}() {error}{hint}") from None
                given = [bound.pop(name, None) for name in data]
                if issubclass(of, FitOptions):
                    bound["missing"] = missing_rule(given[0], bound.get("missing"))
                made = make(**bound)
                if isinstance(made, GroupOptions):
                    made = made.in_rows(given[0], given[1])
                shift = 0.0
                relative_to = ""
                if isinstance(made, ScoreOptions):
                    made.check_order(**dict(zip(data, given, strict=True)))
                    relative_to = "exposure" if made.exposure is not None else ""
                    relative_to = "offset" if made.offset is not None else relative_to
                    # The body never sees an offset: it fits relative targets, and its models are
                    # then shifted.
                    given[1], given[-1], made, shift = made.relative(given[1], given[-1])
                if asks(getattr(made, "monotone", None)):
                    model = getattr(given[0], "schema", None) if data[0] == "model" else None
                    require_ordered(given[data.index("y")], model and model.classes)
                found = body(*given, made)
                # Before the shift: `given` holds the relative target that the model was fitted to.
                _warn_of_unused(found, made, given)
                found = _shifted(found, shift) if shift else found
                found = _marked(found, relative_to) if relative_to else found
                told = _reading(made, given)
                return _told(found, told) if told else found

        # For other learners, whose options are checked and free of offsets already.
        def with_options(*args: Any) -> Any:
            with deferred(body):
                return body(*args)

        learner: Any = call  # mypy knows no attributes of functions
        learner.__signature__ = signature
        learner.__doc__ = documented(body.__doc__, of)
        learner.with_options = with_options
        learner.options = of
        return learner

    return decorated


def _shifted(found: Any, shift: float) -> Any:
    """Models, or fits of models, with this number added to their scores."""
    if isinstance(found, (list, NearOptimalModels)):
        return _of_each(found, lambda one: _shifted(one, shift))
    if not isinstance(found, Fit):
        return found.shifted(shift) if hasattr(found, "shifted") else found
    details = {name: _shifted(part, shift) for name, part in found.details.items()}
    return dataclasses.replace(
        found,
        model=_shifted(found.model, shift),
        details=dataclasses.replace(found.details, **details),
    )


def _of_each(found: Any, change: Callable[[Any], Any]) -> Any:
    """The models of a path, or near-optimal ones, changed one by one."""
    if isinstance(found, list):
        return list(map(change, found))
    return dataclasses.replace(found, models=tuple(map(change, found.models)))


def _marked(found: Any, relative_to: str) -> Any:
    """Models, or fits of models, that say that they were fitted with an offset or exposure: what
    compares them with counts asks for it again.
    """
    if isinstance(found, (list, NearOptimalModels)):
        return _of_each(found, lambda one: _marked(one, relative_to))
    if isinstance(found, Fit):
        return dataclasses.replace(found, model=_marked(found.model, relative_to))
    return dataclasses.replace(found, options=(*found.options, (RELATIVE_TO, relative_to)))


def _reading(made: RunOptions, given: list[Any]) -> str:
    """How a learner reads integers if no loss (or cost) is given, see
    `jaxrules.learning.training.read_as`; warns if they look like counts.
    """
    name, of_classes = ("cost", "softmax") if hasattr(made, "cost") else ("loss", "logistic")
    loss, known = getattr(made, name, None), hasattr(made, name)
    if len(given) != 3 or loss is not None:  # X, y, sample_weight
        return ""
    remedy = f'{name}="poisson" for counts, {name}="squared" for numbers' if known else ""
    if known:
        warn_of_counts(given[1], f'{remedy}, or {name}="{of_classes}" for classes')
    return read_as(given[1], remedy)


def _told(found: Any, told: str) -> Any:
    """A Fit, or a list of them, that says how y was read."""
    if isinstance(found, list):
        return [_told(one, told) for one in found]
    return dataclasses.replace(found, read_as=told) if isinstance(found, Fit) else found


def _warn_of_unused(found: Any, made: RunOptions, given: list[Any]) -> None:
    """See `jaxrules.learning.training.warn_of_unused`; there is no warning if time has run out."""
    last = found[-1] if isinstance(found, list) and found else found
    monotone: Any = getattr(made, "monotone", None)
    of_rows = isinstance(last, Fit) and len(given) == 3  # X, y, sample_weight
    if of_rows and asks(monotone) and Deadline.of(made.time_limit).remaining() > 0:
        X, y, sample_weight = given
        warn_of_unused(last.model, X, y, sample_weight, monotone)


def _signature(body: Callable[..., Any], kind: type[RunOptions]) -> inspect.Signature:
    """The data, sample_weight=None, and the options as keywords."""
    written = inspect.signature(body)
    *data, weights, _ = written.parameters.values()
    return written.replace(parameters=[*data, weights.replace(default=None), *keywords(kind)])


def keywords(kind: type[RunOptions]) -> list[inspect.Parameter]:
    """The fields as parameters of a function."""
    none, keyword = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            field.name,
            keyword,
            default=none if field.default is dataclasses.MISSING else field.default,
            annotation=field.type,
        )
        for field in in_order(kind)
    ]


def present_names(
    kind: type[RunOptions], given: Mapping[str, Any], function: str
) -> dict[str, Any]:
    """The arguments of a function under their current names; old names warn the caller.

    Raises:
        TypeError: for an argument of `elsewhere`, naming what to do instead; for both names of one.
    """
    for name in given:
        if name in kind.elsewhere:
            raise TypeError(f"unexpected keyword argument {name!r}: {kind.elsewhere[name]}")
    for old in [name for name in given if name in kind.renamed]:
        new = kind.renamed[old]
        if new in given:
            raise TypeError(f"{old} is the old name of {new}; pass only {new}")
        checks.warn(
            f"{function}: {old} is now called {new}; jaxrules 0.4 will remove the old name",
            FutureWarning,
        )
        given = {(new if name == old else name): value for name, value in given.items()}
    return dict(given)


def documented(
    text: str | None, kind: type[RunOptions], without: Collection[str] = ()
) -> str | None:
    """A docstring with the documentation of the options, except `without`, at the end of its
    section "Args".
    """
    if text is None or sys.flags.optimize == 2:  # python -OO has no docstrings
        return None
    text = inspect.cleandoc(text)
    known = _attributes(kind)
    names = [field.name for field in in_order(kind) if field.name not in without]
    entries = [f"{name}: {known[name]}" for name in names]
    options = textwrap.indent("\n".join(entries), "    ")
    section = re.search(r"^Args:\n(?:    .*\n|\n(?=    ))*", text + "\n", re.MULTILINE)
    if section is None:
        raise ValueError('the docstring of a learner must have a section "Args" with X and y')
    return (text + "\n")[: section.end()] + options + "\n" + (text + "\n")[section.end() :]


def _attributes(kind: type[Any]) -> dict[str, str]:
    """What the class and its bases document under "Attributes"; the class takes precedence."""
    found: dict[str, str] = {}
    for of in kind.__mro__:
        text = inspect.cleandoc(of.__dict__.get("__doc__") or "")
        # The section ends at the next line that is not indented, such as "Raises:".
        _, _, section = text.partition("Attributes:\n")
        section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
        for entry in re.split(r"^    (?=\w)", section, flags=re.MULTILINE)[1:]:
            name, _, about = entry.partition(": ")
            found.setdefault(name, re.sub(r"\n {4}", "\n", about.rstrip()))
    return found
