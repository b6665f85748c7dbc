"""`compare`: risk and complexity of many methods by nested cross-validation."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.groups import require_groups, spread_groups
from jaxrules.data.table import MissingRule, TableLike, holds_classes
from jaxrules.learning.cross_validation import require_class_outside, spread
from jaxrules.learning.guard import guarded
from jaxrules.learning.training import warn_of_counts
from jaxrules.learning.workers import carry_out, check_workers, outcomes
from jaxrules.losses import Loss, LossFunction, logistic, loss_by_name
from jaxrules.models.metrics import Measure, scores_of_probabilities
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline, ProgressOption, Run
from jaxrules.users.comparison.methods import (
    METHODS,
    KnownPart,
    Method,
    MethodSample,
    method_of,
    relative_model,
    size_of,
    was_cut,
)
from jaxrules.users.comparison.paired import (
    MOST_RANKED,
    Alternative,
    PairedTest,
    SignedRankTest,
    corrected_t_test,
    holm,
    signed_rank_test,
)
from jaxrules.users.export.frame import Backend, frame_of_rows

Risk = Literal["error", "log_loss", "brier", "squared", "absolute", "loss"]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

OF_CLASSES = ("error", "log_loss", "brier")
_PROBABILITIES = ("log_loss", "brier")


class RiskPoint(NamedTuple):
    """A setting of a method: means over the folds, and the standard error of the mean risk."""

    setting: str
    complexity: float
    risk: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Contestant:
    """The results of one method in every fold.

    Attributes:
        method: its name.
        settings: those of its path.
        risks: on the held-out rows, shape (folds, settings); NaN if there is no model.
        complexities: of the same models, shape (folds, settings).
        chosen: the setting that each fold chose inside its training rows, shape
            (folds,); -1 if it has none.
        seconds: wall time of each fold, shape (folds,); NaN if it was not reached.
        cut: the number of folds in which a time limit ended a fit. One that the limit of the
            comparison ended has no result.
        failures: errors by fold.
        warnings: distinct ones.
    """

    method: str
    settings: tuple[str, ...]
    risks: Floats
    complexities: Floats
    chosen: Indices
    seconds: Floats
    cut: int
    failures: Mapping[int, str]
    warnings: tuple[str, ...]

    @property
    def done(self) -> NDArray[np.bool_]:
        """The folds that have a result, shape (folds,)."""
        return self.chosen >= 0

    @property
    def chosen_risks(self) -> Floats:
        """The risk of the model that each fold chose, shape (folds,); NaN if there is none."""
        return self._of_chosen(self.risks)

    @property
    def chosen_complexities(self) -> Floats:
        """The complexity of the model that each fold chose, shape
        (folds,); NaN if there is none.
        """
        return self._of_chosen(self.complexities)

    def _of_chosen(self, figures: Floats) -> Floats:
        found = np.full(len(self.chosen), np.nan)
        folds = np.flatnonzero(self.done)
        found[folds] = figures[folds, self.chosen[folds]]
        return found

    @cached_property
    def front(self) -> tuple[RiskPoint, ...]:
        """The settings that all finished folds have, the least complex first."""
        risks, sizes = self.risks[self.done], self.complexities[self.done]
        if not len(risks):
            return ()
        points = [
            RiskPoint(setting, float(sizes[:, s].mean()), *_mean(risks[:, s]))
            for s, setting in enumerate(self.settings)
            if not np.isnan(risks[:, s]).any()
        ]
        return tuple(sorted(points, key=lambda point: (point.complexity, point.risk)))

    @property
    def notes(self) -> str:
        """Caveats for the figures: failures, folds that were not reached, warnings."""
        begun = [fold for fold, s in enumerate(self.seconds) if not np.isnan(s)]
        unreached = len(self.done) - len({*begun, *self.failures})
        failed = Counter(self.failures.values()).items()
        texts = [f"failed in {display.counted(n, 'fold')}: {error}" for error, n in failed]
        if unreached:
            texts.append(f"no time for {display.counted(unreached, 'fold')}")
        if self.cut:
            texts.append(f"the time limit ended fits in {display.counted(self.cut, 'fold')}")
        return "; ".join([*texts, *(f"warned: {text}" for text in self.warnings)])


class Row(NamedTuple):
    """A method in the table of a `Comparison`; figures are None if no fold has a result.

    Attributes:
        method: its name.
        risk, standard_error: mean over the folds of the models chosen inside the training rows.
        complexity: the mean of the same models; None if the measure does not apply to them.
        setting: the one that the folds chose most often.
        difference: of the risk from that of the best method, over the folds that both have.
        p_value: of that difference, by the corrected resampled t-test,
            Holm-adjusted over all methods.
        rank_p_value: the same by Wilcoxon's signed-rank test, which takes the folds for
            independent, see `jaxrules.users.comparison.signed_rank_test`.
        folds: the number of folds with a result.
        seconds: mean wall time of a fold.
        notes: failures, folds without time, warnings.
    """

    method: str
    risk: float | None = None
    standard_error: float | None = None
    complexity: float | None = None
    setting: str = ""
    difference: float | None = None
    p_value: float | None = None
    rank_p_value: float | None = None
    folds: int = 0
    seconds: float | None = None
    notes: str = ""


@dataclass(frozen=True)
class Choice:
    """How a setting is chosen from risks on held-out rows."""

    one_standard_error: bool
    max_complexity: float | None

    def __call__(self, risks: Floats, complexities: Floats) -> int:
        """The chosen setting.

        Args:
            risks: shape (folds, settings); NaN if a fold has no model.
            complexities: of the models to choose from, shape (settings,); NaN where unknown.

        Raises:
            ValueError: if there is none to choose.
        """
        usable = ~np.isnan(risks).any(axis=0)
        checks.require(usable.any(), "no setting has a model in every fold")
        if self.max_complexity is not None:
            usable &= complexities <= self.max_complexity
            checks.require(
                usable.any(), f"no model has at most max_complexity = {self.max_complexity:g}"
            )
        places = np.flatnonzero(usable)
        means, sizes = risks[:, places].mean(axis=0), complexities[places]
        if self.one_standard_error and len(risks) > 1:
            # One standard error of the best setting's mean risk over the folds.
            error = risks[:, places[means.argmin()]].std(ddof=1) / len(risks) ** 0.5
            near = np.flatnonzero(means <= means.min() + error)
            # The last key of `lexsort` is the first to decide: the size here, and the mean risk
            # below.
            return int(places[near[np.lexsort((means[near], sizes[near]))[0]]])
        return int(places[np.lexsort((sizes, means))[0]])


@dataclass(frozen=True, eq=False)
class ComparisonDesign:
    """How a comparison was made, apart from the data."""

    methods: Mapping[str, Method]
    choice: Choice
    missing: MissingRule | None
    seed: int
    loss: Loss | None = None
    relative_to: str = ""
    """"exposure" or "offset" if the rows have one."""

    def sample(
        self, risk: Risk, X: TableLike, y: ArrayLike, weight: ArrayLike | None, known: KnownPart
    ) -> MethodSample:
        """The rows for its methods."""
        classes = self.loss.target == "sign" if self.loss else risk in OF_CLASSES
        return MethodSample.of(X, y, weight, self.missing, classes, self.loss, known)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(display.Tabulated):
    """The result of `compare`. Prints as a table; `jaxrules.plots.risk_complexity` draws it.

    Attributes:
        contestants: one per method, in the order in which they were given.
        risk: the measure of risk.
        measure: of the complexity, see `jaxrules.complexity`.
        folds: the fold that holds out each row of positive weight, shape (repeats, rows).
        design: its settings.
        status: CONVERGED, or TIME_LIMIT or INTERRUPTED if some folds were not
            reached or were cut short.
        seconds: wall time.
    """

    contestants: tuple[Contestant, ...]
    risk: Risk
    measure: Measure
    folds: Indices
    design: ComparisonDesign
    status: Status
    seconds: float

    def __getitem__(self, method: str) -> Contestant:
        """One method by name."""
        for one in self.contestants:
            if one.method == method:
                return one
        raise KeyError(
            f"{method!r} was not compared; the methods are "
            f"{', '.join(one.method for one in self.contestants)}"
        )

    @property
    def fronts(self) -> dict[str, Floats]:
        """By method the points of its path, (complexity, risk, standard
        error), shape (settings, 3).

        Every point is the cross-validated risk of one setting. The least of them is
        optimistic, since the same rows choose and measure it; `rows` has the risk of a
        method including its choice.
        """
        fronts = {
            one.method: np.array([point[1:] for point in one.front]) for one in self.contestants
        }
        return {name: one for name, one in fronts.items() if len(one) and np.isfinite(one).all()}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The table, the best method first, by the risk in the folds that all methods with a result
        have. Methods without one, such as those that the time limit cut, are not ranked and come
        last.
        """
        finished = [one for one in self.contestants if one.done.any()]
        common = np.logical_and.reduce([one.done for one in finished]) if finished else np.zeros(0)

        def ranked(one: Contestant) -> float:
            return float(one.chosen_risks[common if common.any() else one.done].mean())

        # Every other method is tested against the one of least risk, and Holm adjusts for their
        # number.
        best = min(finished, key=ranked, default=None)
        others = [(one, best) for one in finished if best is not None and one is not best]
        tests = {one.method: self._test(one, least) for one, least in others}
        adjusted = _adjusted({k: test.p_value for k, test in tests.items() if test is not None})
        apart = ((one.method, self._differences(one, least)) for one, least in others)
        enough = {name: of for name, of in apart if 2 <= len(of) <= MOST_RANKED}
        by_rank = _adjusted({name: signed_rank_test(of).p_value for name, of in enough.items()})
        rows = []
        for one in self.contestants:
            if not one.done.any():
                rows.append(Row(one.method, notes=one.notes))
                continue
            risks, sizes = one.chosen_risks[one.done], one.chosen_complexities[one.done]
            test = tests.get(one.method)
            often = Counter(one.chosen[one.done].tolist()).most_common(1)[0][0]
            size = None if np.isnan(sizes).any() else float(sizes.mean())
            difference = None if test is None else test.difference
            p_values = adjusted.get(one.method), by_rank.get(one.method)
            effort = int(one.done.sum()), float(one.seconds[one.done].mean())
            figures = *_mean(risks), size, one.settings[often], difference, *p_values, *effort
            rows.append(Row(one.method, *figures, one.notes))
        risks_of = {one.method: ranked(one) for one in finished}
        return tuple(sorted(rows, key=lambda row: risks_of.get(row.method, float("inf"))))

    def paired_test(self, first: str, second: str) -> PairedTest:
        """Whether two methods differ: the corrected resampled t-test on the folds that both have.

        See `jaxrules.users.comparison.corrected_t_test` for what it can and cannot say.

        Raises:
            KeyError: for a method that was not compared.
            ValueError: if they share fewer than two folds.
        """
        test = self._test(self[first], self[second])
        if test is None:
            raise ValueError(f"{first!r} and {second!r} have fewer than two folds in common")
        return test

    def signed_rank_test(
        self, first: str, second: str, *, alternative: Alternative = "two-sided"
    ) -> SignedRankTest:
        """Wilcoxon's test on the folds that two methods share; see
        `jaxrules.users.comparison.signed_rank_test` for what it takes for granted.

        Raises:
            KeyError: for a method that was not compared.
            ValueError: if they share no fold, or more than 1000.
        """
        differences = self._differences(self[first], self[second])
        checks.require(len(differences) > 0, f"{first!r} and {second!r} have no fold in common")
        return signed_rank_test(differences, alternative=alternative)

    def _differences(self, first: Contestant, second: Contestant) -> Floats:
        """Of the risks in the folds that both have."""
        return (first.chosen_risks - second.chosen_risks)[first.done & second.done]

    def _test(self, first: Contestant, second: Contestant) -> PairedTest | None:
        differences = self._differences(first, second)
        if len(differences) < 2:
            return None
        # One fold of k holds out 1 / k of the rows.
        held_out = 1.0 / np.array([len(np.unique(numbers)) for numbers in self.folds]).mean()
        return corrected_t_test(differences, held_out=held_out)

    @guarded
    def refit(
        self, method: str, X: TableLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None, exposure: ArrayLike | None = None,
        time_limit: float | Deadline | None = None,
    ) -> Any:  # fmt: skip
        """The method on all rows, with the setting of best cross-validated risk,
        which the table estimates.

        Selection and weights use all rows; the folds of the comparison take
        the role of the inner folds.

        Args:
            method: its name.
            X, y, sample_weight, offset, exposure: the data of the comparison.
            time_limit: seconds, from call to return.

        Returns:
            The result of the method's path: a `Fit` (a `CoordinatePath` for "paths"), or an
            estimator. Those of "linear", "cart" and "gradient_boosting" read
            `jaxrules.paths.model.design_matrix`.

        Raises:
            KeyError: for a method that was not compared.
            ValueError: if no fold of it has a result, or without the offset or exposure of the
                comparison.
        """
        one, design, deadline = self[method], self.design, Deadline.of(time_limit)
        checks.require(one.done.any(), f"{method!r} has no result: {one.notes}")
        known, needed = (offset, exposure), design.relative_to
        checks.require(
            not needed or any(one is not None for one in known),
            f"the comparison has {needed}; pass {needed}= of these rows, too",
        )
        sample = design.sample(self.risk, X, y, sample_weight, known)
        fits = design.methods[method].fits(sample, design.seed, deadline.share())
        places = [place for place, setting in enumerate(one.settings) if setting in fits]
        # Risks are those of the folds, and complexities those of the models to choose from.
        sizes = np.array([size_of(fits[one.settings[place]], self.measure) for place in places])
        found = fits[one.settings[places[design.choice(one.risks[one.done][:, places], sizes)]]]
        return relative_model(found, needed)

    def held_out(self, method: str, X: TableLike, y: ArrayLike) -> tuple[tuple[Any, Indices], ...]:
        """What the table rates: for each fold of the first repeat the model that it chose, fitted
        again, and its held-out rows. Empty if X has other rows than the folds, a fold has no
        result, the time limit ended one, the comparison has an offset or exposure, or Ctrl-C ends
        this.
        """
        one, design, numbers = self[method], self.design, self.folds[0]
        if design.relative_to:
            return ()
        sample = design.sample(self.risk, X, y, None, (None, None))
        # Outcomes stand repeat by repeat: the first are the folds of the first repeat.
        chosen = one.chosen[: numbers.max() + 1].tolist()
        if len(numbers) != len(sample.y) or one.cut or min(chosen) < 0:
            return ()
        found = []
        for fold, place in enumerate(chosen):
            train = sample[np.flatnonzero(numbers != fold)]
            with warnings.catch_warnings():  # they are in the notes of the comparison
                warnings.simplefilter("ignore")
                fits = design.methods[method].fits(train, design.seed, None)
            fit = fits.get(one.settings[place])
            if fit is None or getattr(fit, "status", None) is Status.INTERRUPTED:
                return ()
            found.append((fit, np.flatnonzero(numbers == fold)))
        return tuple(found)

    def to_dataframe(
        self,
        rows: Literal["methods", "settings", "folds"] = "methods",
        backend: Backend | None = None,
    ) -> Any:
        """The figures as a dataframe.

        Args:
            rows: "methods" for the table, "settings" for the points of every path, "folds"
                for every model: its method, fold, setting, risk and complexity, and
                whether the fold chose it.
            backend: "pandas", "polars" or "pyarrow"; None for the first of them that is installed.

        Raises:
            ValueError: for unknown rows or an unknown backend.
            ImportError: if none is installed.
        """
        rows = checks.choice("rows", rows, ("methods", "settings", "folds"))
        if rows == "methods":
            return frame_of_rows(Row._fields, self.rows, backend)
        if rows == "settings":
            points = [(one.method, *point) for one in self.contestants for point in one.front]
            return frame_of_rows(("method", *RiskPoint._fields), points, backend)

        def figures(one: Contestant, fold: int, s: int) -> tuple[float, float]:
            return float(one.risks[fold, s]), float(one.complexities[fold, s])

        models = [
            (one.method, fold, setting, *figures(one, fold, s), chosen == s)
            for one in self.contestants
            for fold, chosen in enumerate(one.chosen.tolist())
            for s, setting in enumerate(one.settings)
            if chosen >= 0
        ]
        names = ("method", "fold", "setting", "risk", "complexity", "chosen")
        return frame_of_rows(names, models, backend)

    def to_latex(self) -> str:
        """The printed table as a LaTeX tabular."""
        _, heading, rows = self.tabulated()
        cells = [[display.latex(cell) for cell in row] for row in (heading, *rows)]
        return display.latex_table("l" + "r" * (len(heading) - 1), cells[0], cells[1:])

    @property
    def caption(self) -> str:
        """What was compared and how, in one line."""
        n_repeats, n_folds = len(self.folds), self.folds.max() + 1
        several = "" if n_repeats == 1 else f" x {n_repeats}"
        ended = "" if self.status is Status.CONVERGED else f"; {self.status.advice}"
        return (
            f"Comparison of {display.counted(len(self.contestants), 'method')} by {self.risk} on "
            f"held-out rows, {n_folds} folds{several}, {self.seconds:.0f} s{ended}"
        )

    def tabulated(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
        heading = (
            *("method", "risk", "+-", "complexity", "p", "rank p", "folds", "s/fold"),
            *("chosen most often", "notes"),
        )
        cells: list[tuple[str, ...]] = []
        for row in self.rows:
            figures: tuple[str, ...] = ("",) * 5
            if row.risk is not None and row.standard_error is not None:
                size = "?" if row.complexity is None else f"{row.complexity:.1f}"
                tests = (row.p_value, row.rank_p_value)
                p = ["" if one is None else display.share_text(one) for one in tests]
                figures = f"{row.risk:.4g}", f"{row.standard_error:.2g}", size, *p
            seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
            cells.append((row.method, *figures, str(row.folds), seconds, row.setting, row.notes))
        return self.caption, heading, cells


def _adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(p_values, holm(list(p_values.values())), strict=True))


def _mean(risks: Floats) -> tuple[float, float]:
    """The mean over folds, and its standard error; NaN for one fold."""
    n = len(risks)
    return float(risks.mean()), float(risks.std(ddof=1) / n**0.5) if n > 1 else float("nan")


@guarded
def compare(
    X: TableLike,
    y: ArrayLike,
    *,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    risk: Risk | None = None,
    measure: Measure = "nonzeros",
    folds: int | ArrayLike = 5,
    inner_folds: int = 3,
    groups: ArrayLike | None = None,
    repeats: int = 1,
    one_standard_error: bool = False,
    max_complexity: float | None = None,
    loss: str | Loss | LossFunction | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Comparison:
    """Risk and complexity of many methods on held-out rows, settings chosen
    inside the training rows.

    Every method fits its own path of settings (numbers of rules, penalties relative to the sample)
    on the training rows of each fold. The front of the method is the risk of the whole path on the
    held-out rows. One model of the path is chosen without these rows, by cross-validation inside
    the training rows; its risk on the held-out rows is the risk in the table (nested
    cross-validation; Cawley and Talbot 2010 show why the least risk of a path is optimistic).

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes or numbers, shape (rows,).
        methods: names, of `jaxrules.users.comparison.METHODS`; or by label a name, a scikit-learn
            estimator, or a function fit(X, y, ...) that returns a `Fit`, a model, an estimator, a
            sequence of them, or a dict of them by setting. It gets X as given, and sample_weight,
            loss, seed, time_limit and missing if it has arguments of these names (those bound by
            functools.partial stay). None for every method of METHODS for this target and loss
            except the slow "drnet" and "exact_list".
        risk: "error" (share of wrong labels), "log_loss" or "brier" (squared error of the
            probabilities, half its sum over the classes) for classes; "squared" or "absolute" (mean
            errors) for numbers; "loss", the mean of `loss`, in which probabilities count by their
            log-odds, and means of the log link by their logarithm. Probabilities are raised to at
            least 2**-52. None: "loss" if one is given, else "error" if y holds classes (see
            `jaxrules.data.table.holds_classes`), else "squared".
        measure: of the complexity, see `jaxrules.complexity`. "nonzeros" counts the columns that
            oblique rules weigh. For scikit-learn's models see `jaxrules.users.comparison.size_of`.
        folds: their number; or the fold of each row, integers, shape (rows,).
        inner_folds: folds inside the training rows, for the choice of a setting.
        groups: the group of every row, such as the person whom it is about, numbers or text, shape
            (rows,): the rows of a group share a fold, also an inner one. None for rows that are
            independent.
        repeats: the number of times that the rows are split into folds.
        one_standard_error: choose the least complex setting within one standard
            error of the least inner risk.
        max_complexity: choose among models of at most this complexity; a fold
            without one is a failure.
        loss: what the methods minimise, as in the learners, see `jaxrules.losses`: "poisson" for
            counts. None for the squared loss of numbers and the logistic one of classes. Lists and
            estimators keep their own; a method that has another loss only fails.
        offset, exposure: the known part of the score of every row, for numbers, as in
            `jaxrules.boosting.fit`, shape (rows,). Every method, also an estimator, gets the
            target and the weights relative to it, and is measured on them: with an exposure, the
            rates y / exposure with the weight exposure (for "poisson"; with an offset of another
            link, y - offset).
        sample_weight: weight of every row, shape (rows,), in fits and risks; a method
            that cannot take it fails.
        missing: rule for missing values, see `jaxrules.as_table`.
        n_jobs: workers, as in scikit-learn: None is 1 unless ``joblib.parallel_config`` says
            otherwise, -1 one per processor; its backend decides which they are (docs/scale.md).
            Each compiles its own kernels.
        seed: of the folds and of every fit. Equal seeds give equal figures, with any
            n_jobs, unless time runs out.
        time_limit: seconds, from call to return. Every method gets a whole fold before any gets a
            second; cheap methods come first, and each gets at most half of what is left. A fold
            that would not end in time is not begun, and a path that its share of the time cut is
            not ranked: the table says so. A running fit of scikit-learn is not interrupted.
        progress: True for a bar, or a function of one `jaxrules.Progress`. Without a time limit
            both have the time that is left, reckoned from the folds that each method has done.

    Returns:
        A `Comparison`. A method that raises is reported in its table.

    Raises:
        TypeError, ValueError: naming the argument; also for a class with too few rows for the
            folds.
    """
    run = Run("compare", time_limit, progress)
    if risk is not None:
        checks.choice("risk", risk, get_args(Risk))
    chosen, risk = _loss_and_risk(loss, risk, exposure)
    checks.choice("measure", measure, get_args(Measure))
    inner_folds = checks.integer("inner_folds", inner_folds, at_least=2)
    repeats = checks.integer("repeats", repeats, at_least=1, at_most=1000)
    choice = Choice(
        checks.flag("one_standard_error", one_standard_error),
        checks.optional(checks.number, "max_complexity", max_complexity, at_least=0),
    )
    seed, workers = checks.seed(seed), check_workers(n_jobs)
    if risk is None:
        risk = "error" if holds_classes(y) else "squared"
        warn_of_counts(y, 'risk="squared" for numbers, or risk="error" for classes')
    relative_to = "exposure" if exposure is not None else "offset" if offset is not None else ""
    design = ComparisonDesign({}, choice, missing, seed, chosen, relative_to)
    sample = design.sample(risk, X, y, sample_weight, (offset, exposure))
    in_classes = sample.target != "numbers"
    codes = np.unique(sample.y, return_inverse=True)[1] if in_classes else None
    design = replace(design, methods=_methods(methods, sample))
    plan = _FoldPlan(len(sample), codes, sample.groups(groups, X, y), seed)
    numbers = plan.outer(folds, repeats, sample_weight)
    names = list(design.methods)
    rest: dict[str, Any] = {"risk": risk, "measure": measure, "choice": choice, "seed": seed}
    rounds = [
        [_OuterFold(method, sample, *rows, **rest) for method in design.methods.values()]
        for rows in plan.parts(numbers, inner_folds)
    ]
    if run.deadline.seconds is None:
        results = _with_forecast(rounds, run, workers)
    else:
        results = _in_time(rounds, names, run, workers)
    # All methods in one fold, then in the next: every len(methods)-th outcome is of one method.
    contestants = [_contestant(name, results[m :: len(names)]) for m, name in enumerate(names)]
    cut = any(one is None or getattr(one, "cut", False) for one in results)
    status = run.limit or (Status.TIME_LIMIT if cut else Status.CONVERGED)
    return Comparison(tuple(contestants), risk, measure, numbers, design, status, run.seconds())


def _loss_and_risk(
    loss: str | Loss | LossFunction | None, risk: Risk | None, exposure: ArrayLike | None
) -> tuple[Loss | None, Risk | None]:
    """The loss, and the risk that it implies.

    Raises:
        ValueError: if they do not fit each other, or the exposure.
    """
    chosen = None if loss is None else loss_by_name(loss)
    risk = "loss" if risk is None and chosen else risk
    if chosen is None:
        checks.require(risk != "loss", 'risk="loss" is the mean of a loss; pass loss=, too')
        checks.require(
            exposure is None, 'exposure is for losses with the log link; pass loss="poisson", too'
        )
    else:
        of_classes = "classes" if chosen.target == "sign" else "numbers"
        fits = risk == "loss" or (risk in OF_CLASSES) == (chosen.target == "sign")
        checks.require(fits, f"risk={risk!r} does not fit loss={chosen.name!r}, of {of_classes}")
    return chosen, risk


def _with_forecast(rounds: Sequence[Sequence[_OuterFold]], run: Run, workers: int) -> list[Any]:
    """The outcomes without a time limit; the progress says how long the rest will take, from the
    folds that each method has done: methods differ by a factor of a hundred.
    """
    tasks, n_methods = [task for one in rounds for task in one], len(rounds[0])
    run.total = len(tasks)
    found: list[Any] = [None] * len(tasks)
    seconds = np.full(len(tasks), np.nan)
    for k, outcome in outcomes(tasks, run, workers):
        found[k] = outcome
        seconds[k] = getattr(outcome, "seconds", np.nan)
        by_method = seconds.reshape(-1, n_methods)
        done = ~np.isnan(by_method)
        if not done.any():
            continue
        # A method without a fold takes as long as the mean of the others, as far as we know.
        totals, counts = np.nansum(by_method, axis=0), done.sum(axis=0)
        means = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        means = np.where(counts > 0, means, np.nanmean(means))
        run.expect(float(means @ (~done).sum(axis=0)) / workers)
    return found


_CHEAP_FIRST = (
    "linear", "cart", "gradient_boosting", "boosting", "", "glrm", "paths", "rulefit", "ltrnet",
    "lltboost", "regression_list", "lire", "ssrl", "drnet", "exact_list",
)  # fmt: skip
"""Methods by the time of a path; "" stands for those of the user."""
_MARGIN, _MORE = 1.3, 1.25
"""How far the time of a fold may exceed that of earlier ones, and by which factor a second try must
be longer than the first.
"""


def _in_time(
    rounds: Sequence[Sequence[_OuterFold]], names: Sequence[str], run: Run, workers: int
) -> list[Any]:
    """The outcomes under a time limit, fold by fold: every method gets a whole path before any gets
    a second, and a fold is not begun if the earlier ones say that its time is too short.

    Cheap methods come first, so that as many as possible have a result; each gets at most half of
    the time that is left. One that its share has cut is tried again with what all have left. One
    that stays cut has no further fold.
    """
    found: list[list[Any]] = [[None] * len(names) for _ in rounds]

    def carry(r: int, places: Sequence[int], share: float = 1.0) -> None:
        part = run.child(share, total=len(places))
        part.phase = f"fold {r + 1} of {len(rounds)}"
        results = carry_out([rounds[r][m] for m in places], part, workers)
        for m, outcome in zip(places, results, strict=True):
            found[r][m] = found[r][m] if outcome is None else outcome

    def cost(m: int) -> int:
        return _CHEAP_FIRST.index(names[m] if names[m] in _CHEAP_FIRST else "")

    def seconds(m: int) -> float:
        known = [one[m].seconds for one in found if isinstance(one[m], _Outcome)]
        return max(known, default=0.0)

    def is_cut(m: int) -> bool:
        return isinstance(found[0][m], _Outcome) and found[0][m].cut

    order, tried = sorted(range(len(names)), key=cost), [0.0] * len(names)
    for start in range(0, len(order), workers):
        batch = order[start : start + workers]
        share = 1.0 if batch[-1] == order[-1] else 0.5
        for m in batch:
            tried[m] = share * run.deadline.remaining()
        if run.stopped():
            break
        carry(0, batch, share)
    for m in filter(is_cut, order):
        if not run.stopped() and run.deadline.remaining() > _MORE * tried[m]:
            carry(0, [m])
    cut = {*filter(is_cut, order)}
    whole = [m for m, one in enumerate(found[0]) if one is not None and m not in cut]
    for r in range(1, len(rounds)):
        places, needed = [], 0.0
        for m in sorted(whole, key=seconds):
            needed += _MARGIN * seconds(m) / workers
            if needed < run.deadline.remaining():
                places.append(m)
        if not places or run.stopped():
            break
        carry(r, places)
    return [outcome for one in found for outcome in one]


_SLOW = ("drnet", "exact_list")


def _methods(given: Any, sample: MethodSample) -> dict[str, Method]:
    if given is None:
        able = (name for name, method in METHODS.items() if not method.learns(sample))
        given = [name for name in able if name not in _SLOW]
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        raise TypeError(
            "methods must be a list of names, or a dict of names, functions and estimators by label"
        )
    named = dict(given) if isinstance(given, Mapping) else {str(one): one for one in given}
    checks.require(len(named) > 0, "methods is empty; name at least one")
    checks.require(len(named) == len(given), "methods has a duplicate name")
    return {str(name): method_of(f"methods[{name!r}]", one) for name, one in named.items()}


# Folds


@dataclass(frozen=True, eq=False)
class _FoldPlan:
    """How the rows are split.

    Attributes:
        n_rows: their number.
        codes: their classes; None for numbers.
        group: their groups; None for none.
        seed: of the folds.
    """

    n_rows: int
    codes: NDArray[Any] | None
    group: NDArray[np.int64] | None
    seed: int

    def outer(self, folds: Any, repeats: int, sample_weight: Any) -> Indices:
        """The fold of every row of positive weight, shape (repeats, rows)."""
        if np.ndim(folds):
            checks.require(repeats == 1, "repeats must be 1 when folds are given")
            return self._given(np.asarray(folds), sample_weight)[None]
        n_folds = checks.integer("folds", folds, at_least=2)
        few = f"folds is {n_folds}, but X has {self.n_rows} rows of positive sample_weight"
        checks.require(n_folds <= self.n_rows, few)
        if self.group is not None:
            require_groups(len(np.unique(self.group)), n_folds, "folds")
        every = np.arange(self.n_rows)
        return np.stack([self._spread(every, n_folds, repeat) for repeat in range(repeats)])

    def _given(self, folds: NDArray[Any], sample_weight: Any) -> Indices:
        """The folds of the user, checked."""
        given = np.ones(self.n_rows) if sample_weight is None else np.asarray(sample_weight)
        checks.require(
            folds.shape == (len(given),) and folds.dtype.kind in "iu",
            f"folds must be an integer, or the fold of each of the {len(given)} rows as integers",
        )
        numbers = np.unique(folds[given > 0], return_inverse=True)[1]
        checks.require(
            numbers.max() > 0,
            "folds must have at least two distinct values among the rows of positive weight",
        )
        if self.group is not None:
            pairs = len(np.unique(np.stack([self.group, numbers]), axis=1).T)
            checks.require(
                pairs == len(np.unique(self.group)),
                "folds puts rows of one of the groups into several folds; give each group one "
                "fold, or pass the number of folds",
            )
        return numbers

    def parts(
        self, numbers: Indices, inner_folds: int
    ) -> Iterator[tuple[Indices, Indices, Indices]]:
        """Of every fold the training rows, the held-out rows and the inner folds."""
        for repeat, fold_of in enumerate(numbers):
            for fold in range(fold_of.max() + 1):
                train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
                yield train, test, self._inner(train, inner_folds, repeat, fold)

    def _inner(self, train: Indices, n_folds: int, *stream: int) -> Indices:
        """The inner fold of every training row; every class is among the training rows of each."""
        if self.group is not None:
            require_groups(len(np.unique(self.group[train])), n_folds, "inner_folds")
        checks.require(
            len(train) >= 2 * n_folds, f"X has too few rows for {n_folds} inner_folds in every fold"
        )
        # `spread` puts two rows of a class into different folds: each leaves one for training.
        codes = self.codes
        checks.require(
            codes is None or np.bincount(codes[train], minlength=codes.max() + 1).min() >= 2,
            "y has a class with fewer than two training rows in a fold; drop it, or use fewer "
            "folds",
        )
        return self._spread(train, n_folds, *stream)

    def _spread(self, rows: Indices, n_folds: int, *stream: int) -> NDArray[np.int64]:
        """The fold of each of these rows; no fold has all rows of a class."""
        seed, codes = (self.seed, *stream), None if self.codes is None else self.codes[rows]
        if self.group is None:
            return spread(len(rows), codes, n_folds, seed)
        fold_of = spread_groups(self.group[rows], codes, np.full(n_folds, 1 / n_folds), seed)
        if codes is not None:
            require_class_outside(fold_of, codes, range(int(codes.max()) + 1))
        return fold_of


# One method in one fold


@dataclass(frozen=True)
class _Outcome:
    """A method in a fold; it failed if nothing is chosen."""

    settings: tuple[str, ...] = ()
    risks: tuple[float, ...] = ()
    complexities: tuple[float, ...] = ()
    chosen: str | None = None
    seconds: float = float("nan")
    cut: bool = False
    failure: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _OuterFold:
    """A method in a fold: its path on the training rows, the held-out risks,
    and the choice without them.
    """

    method: Method
    sample: MethodSample
    train: Indices
    test: Indices
    inner: Indices
    risk: Risk
    measure: Measure
    choice: Choice
    seed: int

    def __call__(self, seconds: float | None) -> _Outcome:
        started, deadline = time.monotonic(), Deadline(seconds)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("default")
            try:
                outcome = self._outcome(deadline)
            # A failed method becomes a note in the table; the others continue.
            except Exception as error:
                outcome = _Outcome(failure=_said(error))
        texts = tuple(dict.fromkeys(display.plain(one.message) for one in told))
        values = {**vars(outcome), "seconds": time.monotonic() - started, "warnings": texts}
        return _Outcome(**values)

    def _outcome(self, deadline: Deadline) -> _Outcome:
        train, n_inner = self.sample[self.train], int(self.inner.max()) + 1
        # The path on all training rows gets half of the time: it takes longer than those without an
        # inner fold, and compiles what they use, too.
        fits, cut, ended = self._fits(train, deadline, 2)
        if ended:
            return _Outcome(cut=True)
        settings = tuple(fits)
        sizes = np.array([size_of(fit, self.measure) for fit in fits.values()])
        inner = np.full((n_inner, len(settings)), np.nan)
        for k in range(n_inner) if len(settings) > 1 else ():
            if deadline.expired():
                return _Outcome(cut=True)
            rows = train[np.flatnonzero(self.inner != k)]
            part, cut_here, ended = self._fits(rows, deadline, n_inner - k, inside=True)
            if ended:
                return _Outcome(cut=True)
            cut |= cut_here
            held = train[np.flatnonzero(self.inner == k)]
            for s in np.flatnonzero([setting in part for setting in settings]).tolist():
                inner[k, s] = self._risk(part[settings[s]], held)
        if len(settings) == 1:
            # With one setting there is nothing to choose; any number but NaN makes it usable.
            inner[:] = 0.0
        chosen = settings[self.choice(inner, sizes)]
        test = self.sample[self.test]
        risks = tuple(self._risk(fit, test) for fit in fits.values())
        return _Outcome(settings, risks, tuple(sizes.tolist()), chosen, cut=cut)

    def _fits(
        self, sample: MethodSample, deadline: Deadline, left: int, inside: bool = False
    ) -> tuple[dict[str, Any], bool, bool]:
        """The path with its share of the time; whether a limit ended a fit, and whether it was this
        share: such a path is shorter or worse than it would be, and not to be compared.
        """
        share = deadline.share(1 / left)
        clock = Deadline(share)
        fits = self.method.fits(sample, self.seed, share, inside)
        cut = any(map(was_cut, fits.values()))
        limited = share is not None and self.method.takes("time_limit")
        return fits, cut, limited and (cut or clock.expired())

    def _risk(self, fit: Any, sample: MethodSample) -> float:
        """On these rows."""
        loss = sample.loss
        if self.risk in _PROBABILITIES or (self.risk == "loss" and sample.target != "numbers"):
            probabilities = self.method.probabilities(fit, sample)
            truth = sample.y[:, None] == np.asarray(sample.table.schema.classes)
            if loss is not None and self.risk == "loss" and loss != logistic:
                shares = np.maximum(probabilities, np.finfo(float).eps)
                scores = scores_of_probabilities(shares, loss)
                losses = np.asarray(loss.value(np.where(truth[:, 1], 1.0, -1.0), scores))
            elif self.risk == "brier":
                losses = ((probabilities - truth) ** 2).sum(axis=1) / 2
            else:
                losses = -np.log(np.maximum(probabilities[truth], np.finfo(float).eps))
        else:
            said = self.method.predicted(fit, sample)
            checks.require(
                said.shape == sample.y.shape,
                f"predictions have shape {said.shape}, y {sample.y.shape}",
            )
            if self.risk == "loss" and loss is not None:
                # A mean of 0, which rounding leaves at most, has no logarithm.
                above = np.maximum(said, np.finfo(float).tiny) if loss.link == "log" else said
                scores = np.log(above) if loss.link == "log" else said
                losses = np.asarray(loss.value(sample.y, scores))
            elif self.risk == "error":
                losses = (said != sample.y).astype(np.float64)
            else:
                wrong = said.astype(np.float64) - sample.y
                losses = wrong**2 if self.risk == "squared" else np.abs(wrong)
        checks.require(np.isfinite(losses).all(), "a prediction is not finite")
        return float(np.average(losses, weights=sample.weights))


def _said(error: BaseException) -> str:
    """An error on one line."""
    return display.plain(" ".join(f"{type(error).__name__}: {error}".split()))


def _contestant(name: str, results: Sequence[_Outcome | Exception | None]) -> Contestant:
    found = [
        _Outcome(failure=_said(one)) if isinstance(one, Exception) else one or _Outcome()
        for one in results
    ]
    # A fold whose path ended early lacks some settings: they stay NaN there.
    settings = tuple(dict.fromkeys(setting for one in found for setting in one.settings))
    place = {setting: s for s, setting in enumerate(settings)}
    figures = np.full((2, len(found), len(settings)), np.nan)
    for fold, one in enumerate(found):
        figures[:, fold, [place[setting] for setting in one.settings]] = one.risks, one.complexities
    risks, complexities = figures
    chosen = [-1 if one.chosen is None else place[one.chosen] for one in found]
    return Contestant(
        name, settings, risks, complexities, np.array(chosen, np.intp),
        np.array([one.seconds for one in found]), sum(one.cut for one in found),
        {fold: one.failure for fold, one in enumerate(found) if one.failure is not None},
        tuple(dict.fromkeys(text for one in found for text in one.warnings)),
    )  # fmt: skip
