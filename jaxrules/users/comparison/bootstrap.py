"""`stability`: which parts of a model recur in bootstrap fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import MissingRule, TableLike, holds_classes
from jaxrules.learning.guard import guarded
from jaxrules.learning.training import warn_of_counts
from jaxrules.learning.workers import carry_out, check_workers
from jaxrules.models.metrics import Measure, used_rules
from jaxrules.models.rule_models import RuleEnsemble, RuleModel
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.lowered import Direction
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline, ProgressOption, Run
from jaxrules.users.comparison.methods import (
    FITS,
    Method,
    MethodSample,
    method_of,
    model_of,
    size_of,
)
from jaxrules.users.export.frame import Backend, frame_of_rows


class RuleStability(NamedTuple):
    """How often a rule of the model on all rows recurs, as a share of the bootstrap fits.

    Attributes:
        text: the rule.
        exact: fits with a rule of the same conditions.
        alike: fits with a rule on the same columns in the same sense: the same sides
            bounded, the same categories, any thresholds; linear combinations by their
            columns and the signs of their weights.
        correlation: mean over the fits of the largest absolute correlation with one of their rules,
            on all rows: 1 for a rule that holds on the same rows, or for the complement.
    """

    text: str
    exact: float
    alike: float
    correlation: float


class FeatureStability(NamedTuple):
    """The share of bootstrap fits that use a column, and whether the model on all rows uses it."""

    name: str
    share: float
    used: bool


@dataclass(frozen=True, eq=False)
class Stability:
    """The result of `stability`; prints as tables.

    Attributes:
        model: fitted on all rows.
        rules: of that model, in its order.
        features: of the columns that some fit used, the most frequent first.
        others: rules in general terms (see `RuleStability.alike`) that the model does not have,
            with the share of fits that do; the most frequent first.
        complexities: of the bootstrap models, shape (fits,).
        score: the stability of the choice of columns (Nogueira, Sechidis and Brown 2018, Def. 4): 1
            if all fits use the same columns, 0 on average for columns drawn at random; None for
            fewer than two fits, or if all or none of the columns are always used. They call values
            above .75 excellent, below .4 poor.
        replicates: the number of requested fits.
        failures: errors by replicate.
        status: CONVERGED, or TIME_LIMIT or INTERRUPTED if fits are missing.
        seconds: wall time.
        models: the bootstrap models.
    """

    model: RuleModel
    rules: tuple[RuleStability, ...]
    features: tuple[FeatureStability, ...]
    others: tuple[tuple[str, float], ...]
    complexities: NDArray[np.float64]
    score: float | None
    replicates: int
    failures: tuple[tuple[int, str], ...]
    status: Status
    seconds: float
    models: tuple[RuleModel, ...] = ()

    def to_dataframe(self, backend: Backend | None = None) -> Any:
        """A row per rule of the model: rule, exact, alike, correlation.

        Args:
            backend: "pandas", "polars" or "pyarrow"; None for the first of them that is installed.
        """
        return frame_of_rows(("rule", *RuleStability._fields[1:]), self.rules, backend)

    def __repr__(self) -> str:
        rules, features, others = self._tables()
        parts = [self._caption(), display.text_table(*rules), "", display.text_table(*features)]
        if others[1]:
            parts += ["", display.text_table(*others)]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        rules, features, others = self._tables()
        titles = (self._caption(), "Columns", "Rules that the model does not have")
        return "".join(
            display.html_table(title, *table)
            for title, table in zip(titles, (rules, features, others), strict=True)
            if table[1]
        )

    def _caption(self) -> str:
        n = len(self.complexities)
        score = "" if self.score is None else f"; stability of the columns {self.score:.2f}"
        sizes, failures = self.complexities, self.failures
        size = f"; complexity {sizes.mean():.1f} +- {sizes.std():.1f}" if n else ""
        missing = "" if n == self.replicates else f" of {self.replicates}"
        ended = "" if self.status is Status.CONVERGED else f"; {self.status.advice}"
        failed = f"; failed {len(failures)} times: {failures[0][1]}" if failures else ""
        return f"Stability over {n}{missing} bootstrap fits{score}{size}{ended}{failed}"

    def _tables(self) -> tuple[_Cells, _Cells, _Cells]:
        share = "{:.0%}".format
        rules = [
            (share(r.exact), share(r.alike), f"{r.correlation:.2f}", r.text) for r in self.rules
        ]
        features = [
            (share(f.share), "yes" if f.used else "no", f.name) for f in self.features[:_SHOWN]
        ]
        others = [(share(often), text) for text, often in self.others[:_SHOWN]]
        return (
            (("exact", "alike", "correlation", "rule"), rules),
            (("used", "in the model", "column"), features),
            (("alike", "not in the model"), others),
        )


_Cells = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
_SHOWN = 10
"""The most columns and other rules that are printed."""


@guarded
def stability(
    method: str | Callable[..., Any] | Any,
    X: TableLike,
    y: ArrayLike,
    *,
    replicates: int = 20,
    measure: Measure = "propositions",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Stability:
    """How often each rule and each column recurs in bootstrap fits.

    The method is fitted on all rows, and then on bootstrap samples of the same size, stratified by
    class, or of whole groups. A rule that is absent from most of these fits may still be right:
    another rule that holds on nearly the same rows may replace it (`correlation`). The share of
    recurrence is not the probability that a rule is true.

    Args:
        method: the name of a learner ("boosting", "lire", "rulefit", "glrm", "lltboost", "ltrnet",
            "ssrl", "exact_list", "drnet", "regression_list", with the defaults of its
            `fit`), a function fit(X, y, ...) that returns a `Fit` or a model of rules, or an
            estimator of `jaxrules.estimators`. It gets sample_weight, seed, time_limit and missing
            if it has arguments of these names.
        X: array, dataframe or Table, shape (rows, features).
        y: classes or numbers, shape (rows,).
        replicates: the number of bootstrap fits.
        measure: of the complexity, see `jaxrules.complexity`.
        groups: the group of every row, such as the person whom it is about, shape (rows,). Whole
            groups are then drawn, as many as there are, so that samples have about as many rows
            as `X` (the cluster bootstrap; Davison and Hinkley, "Bootstrap Methods and their
            Application", 1997, Sec. 3.8). They are not stratified.
        sample_weight: weight of every row, shape (rows,); a row that is drawn keeps its weight.
        missing: rule for missing values, see `jaxrules.as_table`.
        n_jobs: workers, as in scikit-learn: None is 1 unless ``joblib.parallel_config`` says
            otherwise, -1 one per processor; its backend decides which they are (docs/scale.md).
        seed: of the draws and of every fit.
        time_limit: seconds, from call to return; every fit gets an equal share of the rest.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A `Stability`, with the bootstrap fits that failed.

    Raises:
        TypeError, ValueError: naming the argument; also errors of the fit on all rows.
    """
    run = Run("stability", time_limit, progress)
    replicates = checks.integer("replicates", replicates, at_least=1, at_most=100_000)
    checks.choice("measure", measure, get_args(Measure))
    seed, workers = checks.seed(seed), check_workers(n_jobs)
    if isinstance(method, str):
        chosen = Method(FITS[checks.choice("method", method, tuple(FITS))])
    else:
        chosen = method_of("method", method)
    warn_of_counts(y, "y as float for numbers, or as text for classes")
    sample = MethodSample.of(X, y, sample_weight, missing, holds_classes(y))
    group = sample.groups(groups, X, y)
    checks.require(
        group is None or len(np.unique(group)) > 1, "groups has only one distinct value; omit it"
    )
    # The fit on all rows, and then rounds of as many replicates as there are workers.
    share = run.deadline.share(1 / (1 + replicates / workers))
    model = _model(chosen, sample, seed, share)
    tasks = [_Replicate(chosen, sample, seed, replicate, group) for replicate in range(replicates)]
    run.total = replicates
    outcomes = carry_out(tasks, run, workers)
    found = [one for one in outcomes if isinstance(one, RuleModel)]
    failures = tuple(
        (k, str(one)) for k, one in enumerate(outcomes) if isinstance(one, (str, Exception))
    )
    sizes = np.array([size_of(one, measure) for one in found])
    return Stability(
        model, *_recurrence(model, found, sample), sizes, _score(found, sample), replicates,
        failures, run.limit or Status.CONVERGED, run.seconds(), tuple(found),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Replicate:
    """A fit on rows drawn with replacement: the model, or the error."""

    method: Method
    sample: MethodSample
    seed: int
    replicate: int
    group: NDArray[np.int64] | None

    def __call__(self, seconds: float | None) -> RuleModel | str:
        try:
            return _model(self.method, self.sample[np.sort(self._drawn())], self.seed, seconds)
        except Exception as error:
            return " ".join(f"{type(error).__name__}: {error}".split())

    def _drawn(self) -> NDArray[np.intp]:
        """Rows drawn with replacement, or all rows of groups that are."""
        # A stream for each replicate: no worker's draws depend on another's.
        random, y = np.random.default_rng((self.seed, self.replicate)), self.sample.y
        if self.group is not None:
            names, member = np.unique(self.group, return_inverse=True)
            order, ends = np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))
            members = np.split(order, ends[:-1])
            drawn = random.integers(len(names), size=len(names))
            return np.concatenate([members[g] for g in drawn])
        of_class = [np.arange(len(y))]
        if self.sample.table.schema.classes is not None:
            of_class = [np.flatnonzero(y == label) for label in self.sample.table.schema.classes]
        return np.concatenate([random.choice(rows, len(rows)) for rows in of_class])


def _model(method: Method, sample: MethodSample, seed: int, seconds: float | None) -> RuleModel:
    fits = method.fits(sample, seed, seconds)
    if len(fits) != 1:
        raise ValueError(f"method returned {len(fits)} models; pass a fit, not a path")
    model = model_of(next(iter(fits.values())))
    if not isinstance(model, RuleModel):
        raise TypeError(f"method must fit rule models, got {type(model).__name__}")
    return model


# Recurrence


def _form(condition: Condition) -> tuple[Any, ...]:
    """A condition without its thresholds."""
    subject: Any = condition.feature
    if isinstance(subject, Direction):
        subject = (subject.features, tuple(np.sign(subject.weights).tolist()), subject.categories)
    bounded = bool(np.isfinite(condition.lower)), bool(np.isfinite(condition.upper))
    return subject, *bounded, condition.categories, condition.unseen


def _form_text(rule: Sequence[Condition], rules: Conjunctions) -> str:
    """A rule without its thresholds, as text."""
    words = []
    for condition in rule:
        if condition.categories is not None:
            words.append(condition.describe(rules.schema))
            continue
        if isinstance(condition.feature, Direction):
            terms = zip(condition.feature.features, condition.feature.weights, strict=True)
            subject = " ".join(
                f"{'-' if weight < 0 else '+'}{rules.schema.names[f]}" for f, weight in terms
            )
        else:
            subject = rules.schema.names[condition.feature]
        low, high = np.isfinite(condition.lower), np.isfinite(condition.upper)
        sense = "between" if low and high else "high" if low else "low" if high else "missing"
        words.append(f"{subject} {sense}")
    return " & ".join(words) or "always"


def _recurrence(
    model: RuleModel, found: Sequence[RuleModel], sample: MethodSample
) -> tuple[tuple[RuleStability, ...], tuple[FeatureStability, ...], tuple[tuple[str, float], ...]]:
    """Of the model's rules, of the columns, and of rules that the model does not have."""
    own, n = used_rules(model), max(1, len(found))
    exact: NDArray[np.float64] = np.zeros((len(found), len(own)))
    alike, correlation = exact.copy(), exact.copy()
    here = _standardised(own, sample)
    forms = [frozenset(map(_form, rule)) for rule in own]
    others: Counter[str] = Counter()
    for k, one in enumerate(found):
        rules = used_rules(one)
        known = {frozenset(rule) for rule in rules}
        texts = {frozenset(map(_form, rule)): _form_text(rule, rules) for rule in rules}
        exact[k] = [frozenset(rule) in known for rule in own]
        alike[k] = [form in texts for form in forms]
        others.update({text for form, text in texts.items() if form not in forms})
        if len(rules):  # of standardised columns, products are correlations
            correlation[k] = np.abs(here.T @ _standardised(rules, sample)).max(axis=1, initial=0)
    columns = [_columns(one) for one in found]
    names, used = sample.table.names, _columns(model)
    counts = Counter(f for one in columns for f in one)
    features = [
        FeatureStability(names[f], counts[f] / n, f in used) for f in sorted({*counts, *used})
    ]
    figures = [(one.sum(axis=0) / n).tolist() for one in (exact, alike, correlation)]
    often = sorted(others.items(), key=lambda one: (-one[1], one[0]))
    return (
        tuple(map(RuleStability, map(own.describe, range(len(own))), *figures)),
        tuple(sorted(features, key=lambda feature: -feature.share)),
        tuple((text, count / n) for text, count in often),
    )


def _standardised(rules: Conjunctions, sample: MethodSample) -> NDArray[np.float64]:
    """Where rules hold, every column with mean 0 and norm 1; zeros for a
    constant. Shape (rows, rules).
    """
    held = rules.satisfied(sample.table).astype(np.float64)
    held -= held.mean(axis=0)
    norm = np.sqrt((held**2).sum(axis=0))
    # The norm of a constant column is 0 up to rounding.
    return np.divide(held, norm, out=np.zeros_like(held), where=norm > 1e-9)


def _columns(model: RuleModel) -> set[int]:
    """The columns that a model uses."""
    columns = {f for rule in used_rules(model) for condition in rule for f in condition.columns}
    linear = model.linear if isinstance(model, RuleEnsemble) else None
    if linear is not None:
        columns.update(np.asarray(linear.feature)[linear.used].tolist())
    return columns


def _score(found: Sequence[RuleModel], sample: MethodSample) -> float | None:
    """Nogueira, Sechidis and Brown (2018, Eq. 4): 1 - mean unbiased variance /
    variance of a random choice.
    """
    if len(found) < 2:
        return None
    used = np.zeros((len(found), len(sample.table.names)))
    for k, one in enumerate(found):
        used[k, list(_columns(one))] = 1
    # share = k / d: the mean number of columns k of a fit among d. If fits drew theirs at random,
    # the variance of a column's use would be (k / d) (1 - k / d).
    share, variance = used.mean(), used.var(axis=0, ddof=1).mean()
    return None if share in (0, 1) else float(1 - variance / (share * (1 - share)))
