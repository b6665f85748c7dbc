"""Cross-validation, the same for all learners: it finds the setting that predicts held-out rows
best.

For each fold, the settings are fitted to the rows of the other folds and evaluated on its own rows.
Everything that depends on labels (rules from trees, cut points, default penalties) is made again in
every fold. The risk is the mean loss on the held-out rows. For classes it is the log-loss of the
model's probabilities, even if the exponential loss was minimised, because a single confident
mistake can make that arbitrarily large. The setting with the least mean risk is chosen or, by the
one-standard-error rule (Breiman et al., "Classification and Regression Trees", 1984, Sec. 3.4.3),
the smallest model whose mean risk is within one standard error of the least. The last fit uses all
rows.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.groups import require_groups, spread_groups
from jaxrules.data.table import OrderedLabels, Schema, Table, TableLike
from jaxrules.learning.options import Folds, Learner, RunOptions
from jaxrules.learning.training import TrainingData, content_order, model_loss
from jaxrules.learning.workers import carry_out_all, check_workers
from jaxrules.losses import exponential, logistic
from jaxrules.models.metrics import risk, support
from jaxrules.models.rule_models import RegressionList, RuleList
from jaxrules.rules.constraints import Constraints, rules_for
from jaxrules.tools import checks
from jaxrules.tools.fits import Fit, ModelT, Status
from jaxrules.tools.runs import Deadline, Run

Floats = NDArray[np.float64]
Walk = Callable[[int, TrainingData, Run], Iterator[ModelT]]
"""Yields the models of one fold, setting by setting, given the fold, its training rows and its run.
It ends early if the run is stopped, and never yields an unfinished model.
"""

SettingT = TypeVar("SettingT")

SHARE = 0.8
"""Share of the time limit for the folds; the rest is for the last fit."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The measurements of cross-validation by setting, in the `Fit.details`
    of a cross-validated fit.

    Attributes:
        settings: the values tried, by name of the argument.
        risks: mean loss on the held-out rows of each fold, shape (folds, settings); NaN if time ran
            out. For rule lists this is the zero-one loss.
        sizes: the size of each model, shape (folds, settings); NaN as above.
        chosen: index of the chosen setting.
        measure: what the sizes count.
    """

    settings: tuple[Mapping[str, float], ...]
    risks: Floats
    sizes: Floats
    chosen: int
    measure: str = "rules"

    @property
    def setting(self) -> Mapping[str, float]:
        """The chosen setting."""
        return self.settings[self.chosen]

    @property
    def risk(self) -> Floats:
        """Mean over the folds, shape (settings,); NaN if a fold did not get that far."""
        return self.risks.mean(axis=0)

    @property
    def standard_error(self) -> Floats:
        """Standard error of `risk` over the folds, shape (settings,)."""
        return np.asarray(self.risks.std(axis=0, ddof=1) / len(self.risks) ** 0.5)

    @property
    def size(self) -> Floats:
        """Mean over the folds, shape (settings,)."""
        return self.sizes.mean(axis=0)

    def __str__(self) -> str:
        """One line per setting; the chosen one is marked."""
        names = list(self.settings[0])
        lines = [[*names, "risk", "s.e.", self.measure, ""]]
        for i, setting in enumerate(self.settings):
            numbers = (*setting.values(), self.risk[i], self.standard_error[i])
            figures = [f"{number:.4g}" for number in numbers]
            lines.append([*figures, f"{self.size[i]:.1f}", "<- chosen" if i == self.chosen else ""])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        cells = [[t.rjust(width) for t, width in zip(line, widths, strict=True)] for line in lines]
        return "\n".join("  ".join(line).rstrip() for line in cells)

    __repr__ = __str__


def folds(
    data: TrainingData, n_folds: int, seed: int, groups: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The fold of each row, shape (rows,): random, stratified by class, and counts by whether they
    are 0. It depends on the values of the rows, not on their order.

    Args:
        data: the rows.
        n_folds: the number of folds.
        seed: of the draw.
        groups: the group of each row of X, from `group_codes`, whose rows share a fold.

    Raises:
        ValueError: for more folds than rows or groups, or a class with a single row or group.
    """
    n_rows, seed = len(data.target), checks.seed(seed)
    if groups is not None:
        return _of_groups(data, n_folds, seed, groups[data.rows])
    if checks.integer("n_folds", n_folds, at_least=2) > n_rows:
        raise ValueError(
            f"n_folds must be at most {n_rows}, the number of rows of positive sample_weight, got "
            f"{n_folds}; use fewer folds, or fit with given penalties"
        )
    order = content_order(data.table, data.target, data.weights)
    fold_of = np.empty(n_rows, np.int64)
    if data.classes is None:
        fold_of[order] = spread(n_rows, None, n_folds, seed)
        return fold_of
    rows = np.unique(data.labels, return_counts=True)[1]
    if rows.min() < 2:
        single = data.classes[int(rows.argmin())]
        raise ValueError(
            f"y has only one row of class {single!r}, too few for cross-validation; "
            "drop that row, or fit with given penalties"
        )
    fold_of[order] = spread(n_rows, data.labels[order], n_folds, seed)
    return fold_of


def _of_groups(
    data: TrainingData, n_folds: int, seed: int, group: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`folds` that keep the rows of a group together."""
    kinds = data.codes if data.classes is not None else None
    if data.loss.target == "count":
        kinds = (data.target > 0).astype(np.intp)
    require_groups(len(np.unique(group)), n_folds, "n_folds")
    fold_of = spread_groups(group, kinds, np.full(n_folds, 1 / n_folds), seed)
    if data.classes is not None:
        require_class_outside(fold_of, data.codes, data.classes)
    return fold_of


def require_class_outside(
    fold_of: NDArray[np.integer], codes: NDArray[np.integer], classes: Sequence[Any]
) -> None:
    """Refuse folds of groups of which one has all rows of a class: outside of it nothing could be
    learned about the class.

    Raises:
        ValueError: naming the class and the remedy.
    """
    for code, label in enumerate(classes):
        if len(np.unique(fold_of[codes == code])) < 2:
            raise ValueError(
                f"groups puts all rows of class {label!r} of y into one fold, so that the others "
                "have none to learn from; give the class more groups, drop it, or use another seed"
            )


def spread(
    n_rows: int, classes: NDArray[Any] | None, n_folds: int, seed: int | Sequence[int]
) -> NDArray[np.int64]:
    """The fold of each row, shape (rows,): random, stratified by class."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if classes is not None:
        # Dealt out in turn, class by class: folds differ by at most one row, also of each class.
        order = order[np.argsort(classes[order], kind="stable")]
    fold_of = np.empty(n_rows, np.int64)
    fold_of[order] = np.arange(n_rows) % n_folds
    return fold_of


def cross_validated(
    data: TrainingData,
    settings: Sequence[Mapping[str, float]],
    walk: Walk[ModelT],
    fold_of: NDArray[np.int64],
    run: Run,
    *,
    one_standard_error: bool,
    otherwise: int,
    n_jobs: int | None = None,
    patience: int | None = None,
    size: Callable[[Any], int] = support,
    measure: str = "rules",
) -> CrossValidation:
    """Measure every setting in every fold until all are done or the run is stopped.

    Args:
        settings: in the order in which `walk` yields their models.
        walk: see `Walk`.
        fold_of: from `folds`.
        run: gets its total and progress.
        one_standard_error: choose the smallest model within one standard error of the best.
        otherwise: the setting to choose if time runs out before any has been measured.
        n_jobs: workers for the folds, see `check_workers`.
        patience: after this many settings without a fall of the mean risk, the rest is skipped; all
            folds then proceed in turn, setting by setting. None finishes one fold after another.
        size: returns the size of a model, for the one-standard-error rule.
        measure: what `size` counts.
    """
    risks, sizes = measured(
        data, walk, fold_of, run, len(settings), sizes=(size,), n_jobs=n_jobs, patience=patience
    )
    chosen = choose(risks, sizes, one_standard_error, otherwise)
    return CrossValidation(tuple(settings), risks, sizes, chosen, measure)


def measured(
    data: TrainingData,
    walk: Walk[ModelT],
    fold_of: NDArray[np.int64],
    run: Run,
    n_settings: int,
    *,
    sizes: Sequence[Callable[[Any], int]],
    n_jobs: int | None = None,
    patience: int | None = None,
) -> Floats:
    """The risk and the sizes of every setting in every fold, shape (1 + sizes, folds, settings);
    NaN where the run was stopped. The arguments are those of `cross_validated`.
    """
    n_folds, workers = int(fold_of.max()) + 1, check_workers(n_jobs)
    each = [_Fold(k, data, fold_of, walk, sizes) for k in range(n_folds)]
    figures = np.full((1 + len(sizes), n_folds, n_settings), np.nan)
    run.phase = "folds"
    if workers > 1:
        run.total = n_folds
        for k, found in enumerate(carry_out_all(each, run, workers)):
            for i, numbers in enumerate(found or ()):
                figures[:, k, i] = numbers
        if patience is not None:  # what one process would have skipped
            past = (i for i in range(1, n_settings) if _is_past(figures[0, :, :i], patience))
            figures[:, :, next(past, n_settings) :] = np.nan
        return figures
    run.total = n_folds * n_settings
    outside = [fold.outside for fold in each]
    with run:
        models = _fold_after_fold if patience is None else _in_turns
        for done, (k, i, model) in enumerate(models(data, walk, fold_of, run), start=1):
            figures[:, k, i] = each[k].figures(model, outside[k])
            run.report(done, figures[0, k, i], int(figures[1, k, i]))
            last_fold = k == n_folds - 1
            if patience is not None and last_fold and _is_past(figures[0, :, : i + 1], patience):
                break
    return figures


def _is_past(risks: Floats, patience: int) -> bool:
    """Whether the mean risk has not fallen for this many settings."""
    return bool(risks.shape[1] - 1 - risks.mean(axis=0).argmin() >= patience)


@dataclass(frozen=True, eq=False)
class _Fold:
    """One fold; also the task of a worker: the figures of its models."""

    k: int
    data: TrainingData
    fold_of: NDArray[np.int64]
    walk: Walk[Any]
    sizes: Sequence[Callable[[Any], int]]

    def __call__(self, seconds: float | None) -> list[tuple[float, ...]]:
        outside = self.outside
        models = self.walk(self.k, self.data[self.fold_of != self.k], Run("fold", seconds))
        return [self.figures(model, outside) for model in models]

    @property
    def outside(self) -> TrainingData:
        """The held-out rows."""
        return self.data[self.fold_of == self.k]

    def figures(self, model: Any, outside: TrainingData) -> tuple[float, ...]:
        """The risk of a model on the held-out rows, and its sizes."""
        return held_out_risk(model, outside), *(size(model) for size in self.sizes)


def _fold_after_fold(
    data: TrainingData, walk: Walk[ModelT], fold_of: NDArray[np.int64], run: Run
) -> Iterator[tuple[int, int, ModelT]]:
    """Yields fold, setting and model, fold by fold; each fold has its share of the time."""
    n_folds = int(fold_of.max()) + 1
    for k in range(n_folds):
        if run.stopped():
            return
        for i, model in enumerate(walk(k, data[fold_of != k], run.child(1 / (n_folds - k)))):
            yield k, i, model


def _in_turns(
    data: TrainingData, walk: Walk[ModelT], fold_of: NDArray[np.int64], run: Run
) -> Iterator[tuple[int, int, ModelT]]:
    """Yields fold, setting and model, setting by setting in all folds, until one fold ends."""
    walks = [walk(k, data[fold_of != k], run) for k in range(int(fold_of.max()) + 1)]
    for i in itertools.count():
        for k, models in enumerate(walks):
            # If one fold ends, later settings would miss it in all means.
            model = None if run.stopped() else next(models, None)
            if model is None:
                return
            yield k, i, model


def held_out_risk(model: Any, data: TrainingData) -> float:
    """The mean loss of a model over rows and outputs; the log-loss instead of the exponential loss.

    Classes fitted jointly have one loss per row, that of the softmax; a rule list has the share of
    the weight that it classifies wrongly, which it minimises.
    """
    if isinstance(model, RuleList):
        wrong = model.labels[model.position(data.table)] != data.codes
        return float(data.weights @ wrong / data.weights.sum())
    if isinstance(model, RegressionList):
        return risk(model, data.table, data.target, data.weights)
    # The score of the exponential loss is half the log-odds.
    loss, scale = (logistic, 2.0) if data.loss == exponential else (data.loss, 1.0)
    return model_loss(model, data, loss, scale)


def choose(risks: Floats, sizes: Floats, one_standard_error: bool, otherwise: int) -> int:
    """Of the settings measured in the most folds, the one with the least mean risk, or the smallest
    model close to it.

    Args:
        risks, sizes: shape (folds, settings); NaN if time ran out.
        one_standard_error: choose the smallest model whose mean risk is within one
            standard error of the least.
        otherwise: the setting to choose if no fold has measured any.
    """
    folds_of = (~np.isnan(risks)).sum(axis=0)
    n = int(folds_of.max())
    if not n:
        return otherwise
    # Means over different folds cannot be compared: one fold may be harder than another.
    at = np.flatnonzero(folds_of == n)
    risk, size = np.nanmean(risks[:, at], axis=0), np.nanmean(sizes[:, at], axis=0)
    # `lexsort` takes the last key as the first: of equal risks, the smallest model.
    best = np.lexsort((size, risk))[0]
    if one_standard_error and n > 1:
        measured = risks[:, at[best]]
        scale = 2.0 ** np.frexp(np.nanmax(np.abs(measured)))[1]  # so that no square overflows
        error = scale * np.nanstd(measured / scale, ddof=1) / n**0.5
        close = np.flatnonzero(risk <= risk[best] + error)
        best = close[np.lexsort((risk[close], size[close]))[0]]
    return int(at[best])


def arguments_of(data: TrainingData) -> tuple[Table, Any, NDArray[np.float64]]:
    """The rows as arguments of a learner: X, y and sample_weight."""
    y: Any = data.target
    if data.classes is not None:
        y = OrderedLabels.of(np.array(data.classes)[data.codes], data.classes)
    return data.table, y, data.weights


def unfinished(fit: Fit[Any]) -> bool:
    """Whether time or Ctrl-C ended a fit."""
    return fit.status in (Status.TIME_LIMIT, Status.INTERRUPTED)


def last_fit(
    found: CrossValidation, run: Run, fit: Callable[[Deadline], Fit[ModelT]]
) -> Fit[ModelT]:
    """The fit with the chosen setting on all rows, in the remaining time; keeps the
    status that ended the folds.
    """
    interrupted = run.limit is Status.INTERRUPTED
    # After Ctrl-C the user waits: the last fit gets no time, and returns the least that it can.
    last = fit(Deadline(0.0, run.deadline.clock) if interrupted else run.deadline)
    cut = np.isnan(found.risks).any()
    return dataclasses.replace(
        last,
        status=(run.limit or Status.TIME_LIMIT) if cut else last.status,
        seconds=run.seconds(),
        details=dataclasses.replace(last.details, cross_validation=found),
    )


def fit_of_best_setting(
    fit: Learner[..., Any, Fit[ModelT]],
    given: tuple[TableLike, ArrayLike, ArrayLike | None],
    options: Folds,
    data: TrainingData,
    settings: Sequence[Mapping[str, Any]],
    walk: Walk[ModelT],
    run: Run,
    *,
    otherwise: int,
    chosen: Callable[..., RunOptions] | None = None,
    size: Callable[[Any], int] = support,
    measure: str = "rules",
) -> Fit[ModelT]:
    """Choose a setting in folds, then fit with it on all rows.

    Args:
        fit: the learner, which gets the chosen setting and otherwise `options`.
        given: X, y and sample_weight, as the user gave them.
        options: those of `cross_validate`.
        data: the rows that the folds divide.
        settings, walk, run, otherwise, size, measure: see `cross_validated`; the folds get `SHARE`
            of the time.
        chosen: the options of `fit` for a setting; None for those of `options` with the setting.
    """
    fold_of = folds(data, options.n_folds, options.seed, options.coded_groups)
    found = cross_validated(
        data, settings, walk, fold_of, run.child(SHARE, f"{options.learner} cross-validation"),
        one_standard_error=options.one_standard_error, n_jobs=options.n_jobs,
        otherwise=otherwise, size=size, measure=measure,
    )  # fmt: skip
    best = (chosen or functools.partial(options.to, fit.options))(**found.setting)

    def in_time(left: Deadline) -> Fit[ModelT]:
        return fit.with_options(*given, dataclasses.replace(best, time_limit=left))

    return last_fit(found, run, in_time)


def sizes_to_try(constraints: Constraints, schema: Schema, given: object, max_rules: int) -> range:
    """The numbers of rules on a path up to `max_rules`, which starts with an expert's rules, the
    argument `first`.

    Raises:
        TypeError, ValueError: if these are no rules on the columns, or leave none to learn.
    """
    first = rules_for(schema, "first", given)
    constraints.check_room(first, max_rules)
    return range(constraints.fewest(first), max_rules + 1)


# Walks


def fits_in_turn(
    settings: Sequence[SettingT], run: Run, fit_at: Callable[[SettingT, Run], Fit[ModelT]]
) -> Iterator[Fit[ModelT]]:
    """Yields the fit at each of the settings, each in an equal share of the remaining time, until
    the run is stopped.
    """
    for i, setting in enumerate(settings):
        yield fit_at(setting, run.child(1 / (len(settings) - i)))
        if run.stopped():
            return


def fits_along(
    settings: Sequence[SettingT], run: Run, fit_at: Callable[[SettingT, Run], Fit[ModelT]]
) -> list[Fit[ModelT]]:
    """The fits of a `path`: the same, but at least one."""
    fits: list[Fit[ModelT]] = []
    while not fits:  # repeats only after Ctrl-C, for a first incumbent
        with run:
            for found in fits_in_turn(settings, run, fit_at):
                fits.append(found)  # these stay if Ctrl-C ends the loop
    return fits


ModelsOfPath = Callable[[Sequence[Fit[ModelT]], bool], Iterable[ModelT | None]]
"""The models of a walk, made of the fits of a `path` and whether its time ran out; None for the
first that has no finished fit.
"""


def along_paths(
    path: Learner[..., Any, Sequence[Fit[ModelT]]],
    each: Sequence[RunOptions],
    models: ModelsOfPath[ModelT],
) -> Walk[ModelT]:
    """The walk of a fold along one `path` for each of these options, which share the time."""

    def walk(_: int, inside: TrainingData, run: Run) -> Iterator[ModelT]:
        for i, options in enumerate(each):
            part = run.child(1 / (len(each) - i))
            own = dataclasses.replace(options, time_limit=part.deadline, progress=False)
            fits = path.with_options(*arguments_of(inside), own)
            for model in models(fits, part.stopped()):
                if model is None:
                    return
                yield model

    return walk


def of_all(fits: Sequence[Fit[ModelT]], cut: bool) -> list[ModelT | None]:
    """One model per fit. If time ran out, the last is unfinished."""
    models = [found.model for found in fits]
    return [*models[:-1], None] if cut else [*models]


def of_finished(fits: Sequence[Fit[ModelT]], _: bool) -> list[ModelT | None]:
    """One model per fit that time did not end."""
    return [None if unfinished(found) else found.model for found in fits]


def by_size(sizes: range) -> ModelsOfPath[Any]:
    """One model for each of these values of `max_rules`.

    The last model of a path that ends early is reused for the larger sizes, because no further rule
    improves it. If time ran out, the last model is unfinished.
    """

    def models(fits: Sequence[Fit[Any]], cut: bool) -> list[Any]:
        finished = [model for model in of_all(fits, cut) if model is not None]
        known = {dict(model.options)["max_rules"]: model for model in finished}
        last = None if cut else fits[-1].model
        return [known.get(size, last) for size in sizes]

    return models
