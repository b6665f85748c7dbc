"""SSRL: rule lists by sequence-submodular optimisation (Yang, Yang and Sun, KDD 2024).

A rule list R classifies a row by the first rule that the row satisfies, else by the default label.
Conditions consist of literals. SSRL learns the list of at most nu rules that maximises (Eq. 14)

    f(R) = correct rows - literal_penalty * literals  =  c(R) + d(R) - literal_penalty * literals,

and with a `local_penalty`, less this price for every rule that a row reads before its prediction;
with c the number of rows that the rules classify correctly, and d the number that the default label
does. By Lemma 1, c is sequence submodular, and d is supermodular (the paper's d, submodular, counts
all other rows). d is replaced with one of two modular lower bounds, tight at the list of the
previous round (Eq. 17 and 18). Algorithm 1 inserts rules greedily by a distorted gain: in
step i, the gain of c is multiplied by (1 - 1/nu)^(nu - i) (Eq. 20). Algorithm 2 repeats that with
both bounds until f does not rise, and then searches locally: it deletes, exchanges, replaces and
inserts rules. The sub-problem is to find the best rule to insert, at any position and with any
label (`jaxrules.lists.insertion`).

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
>>> print(fit(X, X[:, 0] & X[:, 1]).model)
IF x0 >= 1 AND x1 >= 1 THEN target = 1 (p = 0.857, 5 of 5 rows)
ELSE target = 0 (p = 0.941, 15 of 15 rows)
"""

from __future__ import annotations

import itertools
import math
import numbers
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Label, TableLike
from jaxrules.learning.cross_validation import (
    SHARE,
    CrossValidation,
    choose,
    fits_along,
    folds,
    last_fit,
    measured,
)
from jaxrules.learning.in_time import with_rules
from jaxrules.learning.options import Folds, learner, option, options
from jaxrules.learning.training import TrainingData, content_order
from jaxrules.learning.warm_start import check_lengths, given_start, made_of, propositions_in
from jaxrules.lists.candidates import rules_read
from jaxrules.lists.first_rules import FirstRules
from jaxrules.lists.in_time import RatedList, list_in_time, rows_for_lists, run_to_prepare
from jaxrules.lists.insertion import (
    Examples,
    Finder,
    Insertion,
    Literals,
    Subproblem,
    best_insertion,
    by_beam,
    exactly,
    gains_of,
    modmod,
)
from jaxrules.lists.list_bound import (
    bounding_candidates,
    counted_bound,
    inserted_bound,
    searched_bound,
)
from jaxrules.lists.literals import CUT_POINTS, literals_for
from jaxrules.lists.noise import LITTLE, SMALL_PENALTY, Left, Penalty
from jaxrules.lists.reading import (
    ListOptions,
    PricedListOptions,
    default_label,
    limit,
    list_data,
)
from jaxrules.models.rule_models import RuleList
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations
from jaxrules.tools import checks
from jaxrules.tools.fits import Details, Fit, Settings, Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NEEDS = ("jaxrules.lists.insertion_kernels",)
"""The modules that take long to import."""
_TIE = 1e-9
"""A list is better only if f rises by more than this share of the total weight."""
_HOPELESS = 2 * LITTLE
"""If the greedy rounds leave more errors than this share, a local search seldom halves them."""
_LARGEST_PENALTY = 1e30
"""The largest penalty that float32, in which the kernels count, can hold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SSRLDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        n_literals: the number of literals that rules are built from.
        rounds: the number of minorise-maximise rounds.
        insertions: the number of sub-problems solved.
        greedy_objective: f before the local search.
        literal_penalty: lambda.
        bounded_by: what proved the bound: "counting", "insertion" or "search" (see
            `jaxrules.lists.list_bound`); empty without one.
        chosen: why the data chose this penalty; empty if it was given.
        sample: the number of rows that the rules come from; None for all.
        beam_literals: the number of literals that each beam search may add to conditions; None for
            all.
        beam_rows: the number of drawn rows that each beam search counts; None for all.
    """

    n_literals: int
    rounds: int
    insertions: int
    greedy_objective: float
    literal_penalty: float
    bounded_by: str = ""
    chosen: str = ""
    sample: int | None = None
    beam_literals: int | None = None
    beam_rows: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossValidatedDetails(SSRLDetails):
    """What `cross_validate` reports: the figures of the last fit, and of the folds.

    Attributes:
        cross_validation: the folds as a `jaxrules.CrossValidation`; its risk is the misclassified
            share of the held-out weight.
        max_rules: the chosen limit.
        accuracies: on the held-out rows, shape (folds, literal_penalties, max_rules); NaN if time
            ran out.
        rules, literals: the size of every list, of the same shape.
    """

    max_rules: int
    accuracies: Floats
    rules: Floats
    literals: Floats


def _subproblem(name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "modmod":
        raise ValueError(
            'subproblem="modmod" is a separate function: jaxrules.ssrl.published(X, y, ...)'
        )
    return checks.choice(name, value, ("beam", "exact"))


def _penalties(name: str, values: Any) -> tuple[float, ...]:
    found = checks.sequence(name, values, at_least=0, at_most=_LARGEST_PENALTY)
    return tuple(found.tolist())


def _sizes(name: str, values: Any) -> tuple[int, ...]:
    if isinstance(values, numbers.Integral):
        return (checks.integer(name, values, at_least=1, at_most=10_000),)
    if not isinstance(values, (list, tuple, range, np.ndarray)) or not np.size(values):
        raise TypeError(f"{name} must be a non-empty sequence of integers, got {values!r}")
    return tuple(
        checks.integer(name, size, at_least=1, at_most=10_000) for size in np.ravel(values).tolist()
    )


@options
class _Lists(ListOptions):
    """What all functions of this module have in common.

    Attributes:
        max_cut_points: the most cut points of a numeric column, at evenly spaced quantiles (9: the
            deciles); None for every value; "auto": the deciles, and the splits of a few boosted
            trees, thresholds that the data choose. See `jaxrules.lists.literals.literals_of`.
        max_length: the most literals of a rule; None for no limit.
        propositions: the literals to build rules from; None takes them at the cut points.
        default: the label of rows that satisfy no rule; "majority" takes the heaviest class.
        required: columns that the list must use; if the search leaves one out, the literal on it
            that costs least is added.
        local_search: delete, exchange, replace and insert rules after the greedy rounds, until
            nothing helps.
        max_rounds: the most rounds of minorise-maximise; None continues until f does not rise.
            After two rounds, the local search ends with lists as good as after ten.
    """

    learner = "ssrl"
    renamed: ClassVar[Mapping[str, str]] = {**ListOptions.renamed, "literals": "propositions"}

    max_cut_points: int | Literal["auto"] | None = option(checks.size, default="auto")
    max_length: int | None = option(limit, default=None, at_least=1)
    propositions: PropositionPool | None = None
    default: Label | Literal["majority"] = "majority"
    local_search: bool = option(checks.flag, default=True)
    max_rounds: int | None = option(limit, default=2, at_least=1)


@options
class _SSRLShared(_Lists, PricedListOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        subproblem: how the rule to insert is found: "beam"; or "exact", which examines all
            conditions that can still win, and can take long (limit it by `max_length` and
            `time_limit`). The paper's own ModMod procedure is `published`.
        beam_width: the number of conditions that the beam refines at once.
        beam_literals: the most literals that the beam may add to conditions. If there are more,
            every search keeps the best, ranked by each of its scores and labels in turn; None keeps
            all. ``details["beam_literals"]`` reports the number.
        beam_rows: the most distinct rows that a beam search counts. If there are more, it counts
            this many, drawn in proportion to their weights; all rows choose among the conditions
            found, and decide their positions, labels and gains. None for all.
            ``details["beam_rows"]`` reports the number.
    """

    subproblem: Literal["beam", "exact"] = option(_subproblem, default="beam")
    beam_width: int = option(checks.integer, default=36, at_least=1, at_most=10_000)
    beam_literals: int | None = option(limit, default=512, at_least=1)
    beam_rows: int | None = option(limit, default=200_000, at_least=1)

    def find(self) -> Finder:
        """The search for the rule to insert."""
        search = exactly if self.subproblem == "exact" else by_beam
        return partial(search, width=self.beam_width, literals=self.beam_literals)


@options
class SSRLPathOptions(_SSRLShared):
    """The options of `path`.

    Attributes:
        max_rules: the paper's nu, the most rules.
        literal_penalty: the paper's lambda >= 0, the weight of rows that a literal must gain. None:
            1 if a list with 1 leaves less than a fifth of the errors of predicting the heaviest
            class, where its literals count as errors, up to .15, and if naming these literals among
            all takes less than half of the nats that they explain. Otherwise there is noise: it is
            at least 4, and at least what the best of all literals gains by chance, and
            probabilities are shrunk towards the shares of the classes.
        certificate: also prove a bound on the objective of all lists of at most `max_rules` rules
            over these literals, with the same default label and at most `max_length` literals in a
            rule, after the rules of `first`. It takes some seconds, and returns a better list if it
            finds one. See `jaxrules.lists.list_bound`.
    """

    max_rules: int = option(checks.integer, default=20, at_least=1, at_most=10_000)
    literal_penalty: float | None = option(
        partial(checks.optional, checks.number), default=None, at_least=0, at_most=_LARGEST_PENALTY
    )
    certificate: bool = option(checks.flag, default=False)


@options
class SSRLOptions(SSRLPathOptions):
    """The options of `fit`.

    Attributes:
        start: a list, as a Fit or its model, of any learner, with the same columns and classes. The
            search starts from its rules, after those of `first`, with the default label of this
            fit; its conditions become additional literals. The result is at least as good as that
            list.
    """

    start: Fit[RuleList] | RuleList | None = None


@options
class SSRLGrid(Folds, _SSRLShared):
    """The options of `cross_validate`.

    Attributes:
        literal_penalties: the penalties to choose from.
        max_rules: the limits on the number of rules to choose from; an integer for one limit.
        one_standard_error: choose the setting with the fewest literals within one standard error of
            the best mean accuracy; False chooses the best accuracy (in ties, the fewest literals).
        quick_folds: lists in the folds get beams of half of `beam_width` and no local search, which
            choose as well in less time. The final list gets no local search if the greedy rounds
            leave more than two fifths of the errors of predicting the majority class, and the
            penalty is less than the best literal gains by chance (docs/defaults.md, "Lists"): it
            would take long, and fit noise. False searches as `fit` does.
        seed: seed of the folds.
        time_limit: seconds for everything, of which four fifths are for the folds; settings that no
            fold reached are excluded.
    """

    literal_penalties: Sequence[float] = option(_penalties, default=(1.0, 4.0, 16.0, 64.0))
    max_rules: int | Sequence[int] = option(_sizes, default=20)
    quick_folds: bool = option(checks.flag, default=True)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The limits on the number of rules."""
        return _sizes("max_rules", self.max_rules)

    def settings_tried(self) -> list[dict[str, Any]]:
        """Every penalty with every number of rules; the number changes fastest."""
        return [
            {"literal_penalty": penalty, "max_rules": size}
            for penalty in self.literal_penalties
            for size in self.sizes
        ]


@learner(SSRLOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: SSRLOptions
) -> Fit[RuleList]:
    """Learn a rule list, for two classes or many.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> fit(X, X.sum(axis=1), max_rules=2).objective
    16.0

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: class labels, shape (rows,).
        sample_weight: weight of every row, shape (rows,); f then counts weights.

    Returns:
        A Fit with f as objective, to be maximised, and `SSRLDetails`; "converged" is a local
        optimum. With `certificate` it has a bound, and is "optimal" if that meets the objective.
        The probabilities of the model are the class shares of the training rows that each rule
        decides, after adding one row of each class. If the penalty was chosen from the data and
        there is noise, rows of weight 20 with the class shares of all rows are added instead, or
        fewer if the label would otherwise not remain the most probable class. The history has a
        step per insertion.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for an invalid value of an argument, only one class, columns without variation,
            or more rows than can be counted exactly (2^24).
    """
    run = options.run()
    data = list_data(X, y, sample_weight, options)
    return with_rules(
        lambda stage: rows_for_lists(data, options, run, stage, NEEDS),
        lambda: _SSRLTask.of(data, options, run, options.max_rules, options.start),
        lambda task: _on_all_rows(task, options, run),
        lambda sample: _in_time(data, sample, options, run),
        run_to_prepare(options, run),
    )


def _on_all_rows(task: _SSRLTask, options: SSRLOptions, run: Run) -> Fit[RuleList]:
    """The list found on all rows."""
    penalty, search = _priced(task, options, run)
    if search is None or (search.watch.limit is not None and not run.stopped()):
        # A trial that was cut has some time left.
        one = replace(options, literal_penalty=penalty.value)
        search = task.search(task.data.weights, one, run, start=task.start)
    else:
        run.include(search.watch)
    return task.finished(search, run, options.settings(), penalty)


def _in_time(
    data: TrainingData, sample: TrainingData, options: SSRLOptions, run: Run
) -> Fit[RuleList]:
    """The list found on a sample of the rows, evaluated on all rows."""

    def details(found: RatedList, _: Conjunctions, penalty: Penalty) -> SSRLDetails:
        return SSRLDetails(
            n_literals=int(found.rules.propositions.sum()),
            rounds=0,
            insertions=0,
            greedy_objective=found.objective(penalty.value, options.local_penalty),
            literal_penalty=penalty.value,
            bounded_by="counting" if options.certificate else "",
            chosen=penalty.chosen,
            sample=len(sample.weights),
        )

    # No list classifies more than all rows correctly.
    bound = float(data.weights.sum()) if options.certificate else None
    return list_in_time(
        fit, data, sample, options, run, details, needs=NEEDS,
        local_penalty=options.local_penalty, bound=bound,
    )  # fmt: skip


def _priced(task: _SSRLTask, options: SSRLPathOptions, run: Run) -> tuple[Penalty, _Search | None]:
    """The penalty on a literal and, if the data choose it, the search with it. A trial with the
    small penalty takes at most half of the time.
    """
    if options.literal_penalty is not None:
        return Penalty(options.literal_penalty), None

    def search(penalty: float, **trial: Any) -> _Search:
        one = replace(options, literal_penalty=penalty)
        part = run.child(0.5 if trial else 1.0)
        return task.search(task.data.weights, one, part, start=task.start, **trial)

    trial = search(SMALL_PENALTY, promising=task.promising(SMALL_PENALTY))
    rest = task.left(trial.best)
    chosen = Penalty.by_noise(rest, len(task.pool), run.stopped())
    if not chosen.noisy:
        return chosen, trial
    return chosen.search(
        search, lambda found: task.left(found.best), task.left(trial.best.take(())), rest,
        len(task.pool), run.stopped,
    )  # fmt: skip


@learner(SSRLPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: SSRLPathOptions
) -> list[Fit[RuleList]]:
    """One Fit for each number of rules from 1 to `max_rules`, each started from the list before:
    what `fit` returns with that limit, that start and the same `literal_penalty`. With noise, one
    that was chosen from the data shrinks the probabilities, as in `fit`; a given one does not. No
    list is worse than the one before.

    The lists are not prefixes of one list: the gains of the greedy steps depend on `max_rules`.
    Data are read, and kernels compiled, only once.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> [one.objective for one in path(X, X.sum(axis=1), max_rules=3)]
    [13.0, 16.0, 16.0]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. Sizes start after the rules in `first`. Every size has an equal share of the
        remaining time; there are fewer fits if time runs out.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run()
    task = _SSRLTask.of(list_data(X, y, sample_weight, options), options, run, options.max_rules)
    sizes = range(len(task.first.rules) + 1, options.max_rules + 1)
    penalty, _ = _priced(task, options, run.child(0.3))
    start: _Start = ()

    def fit_at(size: int, run: Run) -> Fit[RuleList]:
        nonlocal start
        given = replace(options, max_rules=size)
        one = replace(given, literal_penalty=penalty.value)
        search = task.search(task.data.weights, one, run, options.max_rules, start)
        start = tuple(zip(search.best.conditions, search.best.labels, strict=True))
        return task.finished(search, run, given.settings(), penalty)

    return fits_along(sizes, run, fit_at)


@learner(SSRLGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: SSRLGrid
) -> Fit[RuleList]:
    """Choose the penalty and the number of rules by stratified cross-validation; fit with them on
    all rows.

    Each fold has its own literals, unless `max_cut_points` is a number: quantiles of all rows of X
    do not depend on labels. To measure the accuracy of the whole procedure, call it on the training
    rows of an outer split.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> chosen = cross_validate(
    ...     X, X.sum(axis=1), literal_penalties=[1.0], max_rules=[1, 2], n_folds=2
    ... )
    >>> chosen.details.max_rules
    2

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows, with `CrossValidatedDetails`.

    Raises:
        TypeError, ValueError: as `fit`, also for a class with fewer rows than there are folds.
    """
    run = options.run()
    task = _SSRLTask.of(list_data(X, y, sample_weight, options), options, run, min(options.sizes))
    task.check_folds(options.n_folds)
    fold = folds(task.data, options.n_folds, options.seed, options.coded_groups)
    grid = options.settings_tried()
    quick: dict[str, Any] = {}
    if options.quick_folds:
        quick = {"beam_width": math.ceil(options.beam_width / 2), "local_search": False}

    def fit_at(
        task: _SSRLTask, setting: dict[str, Any], weights: Floats, run: Run
    ) -> Fit[RuleList]:
        one = options.to(SSRLPathOptions, **setting)
        penalty: float = setting["literal_penalty"]
        promising = task.promising(penalty) if options.quick_folds else None
        search = task.search(weights, one, run, max(options.sizes), promising=promising)
        return task.finished(search, run, one.settings(), Penalty(penalty))

    def walk(k: int, some: TrainingData, run: Run) -> Iterator[RuleList]:
        own = task.with_literals_of(some, options)
        for setting in grid:
            part = run.child(task="ssrl, one fold")
            # Held-out rows stay, with weight 0: the folds have the same shapes.
            model = fit_at(own, setting | quick, task.data.weights * (fold != k), part).model
            if run.stopped():
                return
            yield model

    risks, rules, literals = measured(
        task.data,
        walk,
        fold,
        run.child(SHARE, "ssrl cross-validation"),
        len(grid),
        sizes=(_n_rules, _n_literals),
        n_jobs=options.n_jobs,
    )
    chosen = choose(risks, literals, options.one_standard_error, otherwise=0)
    table = CrossValidation(tuple(grid), risks, rules, chosen)
    fit = last_fit(table, run, lambda _: fit_at(task, grid[chosen], task.data.weights, run))
    shape = options.n_folds, len(options.literal_penalties), len(options.sizes)
    details = CrossValidatedDetails(
        **fit.details,
        max_rules=grid[chosen]["max_rules"],
        accuracies=1 - risks.reshape(shape),
        rules=rules.reshape(shape),
        literals=literals.reshape(shape),
    )
    return replace(fit, details=details)


def _n_rules(model: RuleList) -> int:
    return len(model.conjunctions)


def _n_literals(model: RuleList) -> int:
    """The number of literals of a list."""
    return int(model.conjunctions.propositions.sum())


@options
class PublishedSSRLOptions(_Lists):
    """The options of `published`; they mean what they mean for `fit`.

    Attributes:
        max_cut_points: the most cut points of a numeric column; by default the deciles, as in the
            paper.
        max_rules: the paper's nu, the most rules.
        literal_penalty: the paper's lambda >= 0, the weight of rows that a literal must gain.
        max_length: the most literals of a rule; longer conditions that ModMod finds are dropped.
        max_rounds: the most rounds of minorise-maximise; None, as in the paper, continues until f
            does not rise.
    """

    learner = "ssrl.published"

    max_cut_points: int | Literal["auto"] | None = option(checks.size, default=CUT_POINTS)
    max_rules: int = option(checks.integer, default=20, at_least=1, at_most=10_000)
    literal_penalty: float = option(
        checks.number, default=1.0, at_least=0, at_most=_LARGEST_PENALTY
    )
    max_rounds: int | None = option(limit, default=None, at_least=1)


@learner(PublishedSSRLOptions)
def published(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: PublishedSSRLOptions
) -> Fit[RuleList]:
    """The paper's own algorithm, with its ModMod procedure (Algorithm 4) for the rule to insert.

    ModMod repeatedly replaces the gain, a difference of submodular functions, with modular bounds.
    `fit` uses a beam search instead.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> published(X, X.sum(axis=1), max_rules=2).objective
    16.0

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit, as from `fit`.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run()
    task = _SSRLTask.of(list_data(X, y, sample_weight, options), options, run, options.max_rules)
    task = replace(task, find=modmod)
    search = task.search(task.data.weights, options.to(SSRLPathOptions), run)
    return task.finished(search, run, options.settings(), Penalty(options.literal_penalty))


_Start = tuple[tuple[tuple[int, ...], int], ...]
"""The rules of a list: the literals and the label of each."""


@dataclass(frozen=True, eq=False)
class _SSRLTask:
    """The data of a fit, and the literals on its rows.

    Attributes:
        default: the code of the default label; None for the heaviest class.
        start: the list that the search starts from.
        find: the search for the rule to insert.
    """

    data: TrainingData
    pool: PropositionPool
    rows: Activations
    codes: NDArray[np.intp]
    default: int | None
    constraints: Constraints
    first: FirstRules
    start: _Start
    find: Finder

    @classmethod
    def of(
        cls,
        data: TrainingData,
        options: _Lists,
        run: Run,
        max_rules: int,
        start: Fit[RuleList] | RuleList | None = None,
    ) -> _SSRLTask:
        """Make the literals; `first` and `start` must fit in `max_rules` rules."""
        table, codes, n_classes = data.table, data.codes, len(data.classes or ())
        if options.propositions is None:
            run.preparing("literals")
        constraints = Constraints.of(
            data.schema, options.forbidden, options.required, options.monotone
        )
        pool = _pool(data, constraints, options)
        class_weights = data.weights[:, None] * (codes[:, None] == np.arange(n_classes))
        before = FirstRules.of(data, class_weights, options, max_rules, constraints)
        constraints = constraints.behind(before.rules)
        given = given_start(start, RuleList, data, constraints)
        begun = None if given is None else before.behind(given, max_rules)
        if begun is not None:
            # The search only knows rules made of its literals: those of the start join the pool.
            parts = propositions_in(begun.conjunctions.with_schema(pool.schema))
            pool = PropositionPool.concatenate([pool, parts])
            pool = constraints.distinct(pool, table, n_classes)
        pool = constraints.usable(pool, n_classes)
        checks.require(len(pool) > 0, "forbidden and monotone exclude every literal")
        constraints.require_spoken(pool, "literal")
        label = default_label(options.default, data, ("majority",))
        task = cls(
            data=data,
            pool=pool,
            rows=Activations.of(pool, table),
            codes=codes,
            default=label if isinstance(label, int) else None,
            constraints=constraints,
            first=before,
            start=(),
            find=options.find() if isinstance(options, _SSRLShared) else modmod,
        )
        if begun is None:
            return task
        return replace(task, start=task.begin(begun, options.max_length))

    def with_literals_of(self, some: TrainingData, options: _Lists) -> _SSRLTask:
        """With the literals that some of the rows choose, if rows choose them."""
        if options.propositions is not None or options.max_cut_points != "auto":
            return self
        pool = _pool(some, self.constraints, options)
        pool = self.constraints.usable(pool, len(self.data.classes or ()))
        return replace(self, pool=pool, rows=Activations.of(pool, self.data.table))

    def check_folds(self, n_folds: int) -> None:
        """Refuse more folds than some class has rows."""
        rows = np.bincount(self.codes)
        if rows.min() < n_folds:
            least = (self.data.classes or ())[int(rows.argmin())]
            raise ValueError(
                f"y has a class with fewer rows than n_folds = {n_folds}: {rows.min()} of class "
                f"{least!r}; use fewer folds, or drop the class"
            )

    def begin(self, model: RuleList, max_length: int | None) -> _Start:
        """A list in terms of the literals, without rules that hold for no row. A rule that holds
        for all rows ends it, with a warning: it is left out, as are those after it.
        """
        n_classes, table = len(self.data.classes or ()), self.data.table
        rules = model.conjunctions.with_schema(table.schema)
        self.constraints.check_labels(
            "start", rules, model.labels[: len(rules)], self.data.classes or (),
            "fit it under the same monotone",
        )  # fmt: skip
        one_each = table[np.unique(self.rows.pattern, return_index=True)[1]]
        of_pool, of_parts = (
            self.constraints.allows(part, n_classes) for part in (self.pool, propositions_in(rules))
        )
        made = made_of(self.pool, self.rows.bits, rules, one_each, (of_pool, of_parts))
        check_lengths(made, max_length, "max_length")
        # A rule without literals holds for all rows, so that no later rule decides one.
        if () in made:
            whole = made.index(())
            checks.warn(
                f"start has the rule {rules.describe(whole)!r}, which holds for all rows: it and "
                "the rules after it are left out, and these rows get the label of default"
            )
            made = made[:whole]
        labels = model.labels.tolist()
        return tuple(
            (rule, label) for rule, label in zip(made, labels, strict=False) if rule is not None
        )

    def examples(self, weights: Floats, default: int | None = None) -> Examples:
        """The rows, unmerged if bits can be counted and many rows are distinct, else with equal
        rows merged.
        """
        n_classes = len(self.data.classes or ())
        default = self.default if default is None else default
        if default is None:
            default = int(np.bincount(self.codes, weights, n_classes).argmax())
        allowed = (
            self.constraints.allows(self.pool, n_classes).T if self.constraints.monotone else None
        )
        if np.isin(weights, (0, 1)).all() and self.rows.n_patterns > Examples.FEW_ROWS:
            counts = (self.codes[:, None] == np.arange(n_classes)) * weights[:, None]
            literals = np.take(self.rows.by_rule, self.rows.pattern, axis=1)  # each in one piece
            return Examples(literals, counts, default, allowed)
        class_weights = self.rows.class_weights(self.codes, n_classes, weights)
        return Examples(self.rows.by_rule, class_weights, default, allowed)

    def for_beam(self, examples: Examples, weights: Floats, options: SSRLPathOptions) -> Examples:
        """With drawn rows for beam searches, if there are more than they may count."""
        most, beams = options.beam_rows, self.find is not modmod and options.subproblem == "beam"
        if not beams or most is None or examples.n_rows <= most:
            return examples
        # Systematic sampling: the total weight is cut into `most` equal parts, and the row at the
        # middle of each is drawn. The order, by content and then random, does not depend on the
        # given one.
        order = np.random.default_rng(options.seed).permutation(self.order)
        totals = np.cumsum(weights[order])
        each = float(totals[-1]) / most
        rows = order[np.searchsorted(totals, each * (np.arange(most) + 0.5))]
        places = rows if examples.n_rows == len(weights) else self.rows.pattern[rows]
        return examples.sampled(places, self.codes[rows], each)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows in an order that does not depend on the given one."""
        return content_order(self.data.table, self.data.target, self.data.weights)

    def search(
        self,
        weights: Floats,
        options: SSRLPathOptions,
        run: Run,
        room: int = 0,
        start: _Start = (),
        promising: Callable[[_InsertedRules], bool] | None = None,
    ) -> _Search:
        """A finished search on rows with these weights, for the rules after the expert's.

        Searches for lists of up to `room` rules share compiled kernels. The local search is left
        out if the list before it is not `promising`.
        """
        # The default is the heaviest class of all rows. Rows that the expert's rules decide then
        # lose their weight: nothing can be gained on them.
        totals = np.bincount(self.codes, weights, len(self.data.classes or ()))
        default = int(totals.argmax()) if self.default is None else self.default
        weights = weights * self.first.rest
        search = _Search(
            self.for_beam(
                replace(self.examples(weights, default), local_penalty=options.local_penalty),
                weights, options,
            ), options, run,
            self.find, room=room, required=self.constraints.using(self.pool), first=self.first,
            start=start, promising=promising,
        )  # fmt: skip
        search.run()
        return search

    def left(self, rules: _InsertedRules) -> Left:
        """What a list, after the expert's rules, leaves."""
        first = self.first
        labels = np.concatenate([first.labels, rules.labels, [rules.examples.default]])
        decided = np.concatenate([first.decided, rules.decided()])
        literals = float(sum(map(len, rules.conditions)))
        return Left.of_list(decided, labels.astype(np.intp), literals, len(first.rules))

    def promising(self, penalty: float) -> Callable[[_InsertedRules], bool]:
        """Whether a list with this penalty is worth a local search: it leaves few errors, or no
        literal gains the penalty by chance.
        """

        def check(rules: _InsertedRules) -> bool:
            left = self.left(rules)
            return left.errors < _HOPELESS * left.of or penalty >= left.by_chance(len(self.pool))

        return check

    def bound(self, search: _Search, run: Run) -> tuple[float, str]:
        """A proved bound on the objective of all lists, and what proved it; the search takes a
        better list if one is found.
        """
        found, by = math.inf, ""
        with run:
            run.phase = "bound"
            found, by = self._proved(search, run)
        # A bound below the objective is rounding. After a second Ctrl-C there is none.
        bound = search.offset + max(found, search.best_objective)
        if not by:
            bound, by = float(self.data.weights.sum()), "counting"
        if not run.stopped():
            with run:
                size = search.before + len(search.best)
                run.step(search.offset + search.best_objective, size, bound=bound)
        return bound, by

    def _proved(self, search: _Search, run: Run) -> tuple[float, str]:
        """`bound` for the rules after the expert's."""
        options, penalty, default = search.options, search.penalty, search.examples.default
        n_classes, rest = search.examples.n_classes, self.first.rest
        weights = self.data.weights * rest
        # The rows of a search may be unmerged.
        groups = replace(
            search.examples,
            literals=self.rows.by_rule,
            counts=self.rows.class_weights(self.codes, n_classes, weights),
            sample=None,
        )
        found, by = counted_bound(groups, penalty, search.max_rules), "counting"

        def closed() -> bool:
            return found <= search.best_objective + search.tie

        if closed() or run.stopped():
            return found, by
        class_weights = weights[:, None] * (self.codes[:, None] == np.arange(n_classes))
        candidates = bounding_candidates(
            self.pool, self.data.table[rest], class_weights[rest], self.constraints, run.stopped,
            default=default, penalty=penalty, max_length=options.max_length,
            local_penalty=options.local_penalty, max_rules=search.max_rules,
        )  # fmt: skip
        if candidates is None:
            if search.max_rules == 1 and not run.stopped():
                one = inserted_bound(groups, penalty, options.max_length, run.stopped)
                found, by = min((found, by), (one, "insertion"))
            return found, by
        rules = self.pool.conjunctions(search.best.conditions, self.data.schema)
        known = candidates.find(rules, self.data.table[rest])
        searched = searched_bound(candidates, known, search.max_rules, run.stopped)
        found, by = min((found, by), (searched.bound, "search"))
        if not self.constraints.required:
            search.keep(search.list_of(searched.conditions, searched.labels))
        return found, by

    def finished(
        self, search: _Search, run: Run, settings: Settings, penalty: Penalty
    ) -> Fit[RuleList]:
        """The best list of a search on all rows, as a Fit."""
        bound, bounded_by = self.bound(search, run) if search.options.certificate else (None, "")
        best, examples = search.best, search.examples
        decided = best.decided()
        rules = self.pool.conjunctions(best.conditions, self.data.schema)
        beam = None if self.find is modmod else search.options.beam_literals
        sample = examples.sample
        labels = np.append(best.labels, examples.default).astype(np.int32)
        objective = search.offset + best.objective()
        status = Status.MAX_ITERATIONS if search.exhausted else Status.CONVERGED
        if bound is not None and bound <= objective + search.tie:
            status = Status.OPTIMAL
        return run.finish(
            self.first.before(rules, labels, decided, settings, penalty.shrinkage),
            objective,
            "max",
            status,
            bound,
            details=SSRLDetails(
                n_literals=len(self.pool),
                rounds=search.rounds,
                insertions=search.insertions,
                greedy_objective=search.offset + search.greedy_objective,
                literal_penalty=penalty.value,
                bounded_by=bounded_by,
                chosen=penalty.chosen,
                beam_literals=None if beam is None or beam >= len(self.pool) else beam,
                beam_rows=None if sample is None else len(sample.rows),
            ),
        )


def _pool(data: TrainingData, constraints: Constraints, options: _Lists) -> PropositionPool:
    """The literals to build rules from."""
    pool = options.propositions
    if pool is None:
        pool = literals_for(
            data, constraints,
            max_cut_points=options.max_cut_points, cut_points=options.cut_points, seed=options.seed,
        )  # fmt: skip
    checks.instance("propositions", pool, PropositionPool, "jaxrules.lists.literals.literals_of")
    if pool.schema.features != data.table.schema.features:
        raise ValueError(
            "propositions were built for columns other than those of X; build them from the same "
            "table"
        )
    checks.require(
        len(pool) > 0, "no column of X varies across the cut points; nothing can be learned"
    )
    return pool


@dataclass(frozen=True, eq=False)
class _InsertedRules:
    """A rule list under construction."""

    examples: Examples
    penalty: float
    conditions: tuple[tuple[int, ...], ...] = ()
    labels: tuple[int, ...] = ()
    covers: tuple[Bools, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.conditions)

    def first(self) -> NDArray[np.intp]:
        """The first rule that covers each row; the number of rules if none does."""
        first = np.full(self.examples.n_rows, len(self))
        # Backwards, so that earlier rules overwrite later ones
        for k in range(len(self) - 1, -1, -1):
            first[self.covers[k]] = k
        return first

    def decided(self) -> Floats:
        """The weight of every class among the rows that each rule, and the default, decides, (rules
        + 1, classes).
        """
        decided = np.zeros((len(self) + 1, self.examples.n_classes))
        np.add.at(decided, self.first(), self.examples.counts)
        return decided

    def right(self) -> float:
        """The weight of the correctly classified rows."""
        labels = np.append(self.labels, self.examples.default).astype(np.intp)
        return float(
            np.take_along_axis(self.examples.counts, labels[self.first()][:, None], axis=1).sum()
        )

    def objective(self) -> float:
        """f, Eq. 14, less the price of reading."""
        value, local = self.right() - self.penalty * sum(map(len, self.conditions)), 0.0
        if self.examples.local_penalty:
            decided = np.bincount(self.first(), self.examples.weights, len(self) + 1)
            local = self.examples.local_penalty * rules_read(decided[:, None])
        return value - local

    def insert(self, rule: Insertion) -> _InsertedRules:
        """This list with one more rule."""
        order = [*range(rule.position), len(self), *range(rule.position, len(self))]
        return _InsertedRules(
            self.examples,
            self.penalty,
            (*self.conditions, rule.condition),
            (*self.labels, rule.label),
            (*self.covers, self.examples.cover(rule.condition)),
        ).take(order)

    def take(self, order: Sequence[int]) -> _InsertedRules:
        """These rules, in this order."""
        conditions, labels, covers = self.conditions, self.labels, self.covers
        return _InsertedRules(
            self.examples,
            self.penalty,
            tuple(conditions[k] for k in order),
            tuple(labels[k] for k in order),
            tuple(covers[k] for k in order),
        )

    def merged(self) -> _InsertedRules:
        """The same list on rows merged by the rules that cover them, which suffices for deleting
        and reordering rules.
        """
        if not len(self):
            return self
        rows = Activations.of_matrix(np.stack(self.covers, axis=1))
        examples = replace(
            self.examples, literals=rows.by_rule, counts=rows.totals(self.examples.counts)
        )
        return _InsertedRules(
            examples, self.penalty, self.conditions, self.labels, tuple(rows.by_rule)
        )


class _Search:
    """Algorithm 2: rounds of distorted greedy insertion, then local search. It keeps the best list
    found.
    """

    def __init__(
        self,
        examples: Examples,
        options: SSRLPathOptions,
        run: Run,
        find: Finder,
        *,
        room: int = 0,
        required: Sequence[Bools] = (),
        first: FirstRules | None = None,
        start: _Start = (),
        promising: Callable[[_InsertedRules], bool] | None = None,
    ) -> None:
        self.promising = promising  # None for always
        self.examples, self.options, self.watch, self.find = examples, options, run, find
        self.required = required  # for each required column, the literals on it
        self.penalty: float = options.literal_penalty or 0.0
        prices = self.penalty, examples.local_penalty
        left = float(examples.counts.sum())
        self.offset = 0.0 if first is None else first.objective(*prices, left)
        self.before = 0 if first is None else len(first.rules)
        self.max_rules = options.max_rules - self.before
        # few sizes of kernels: lists of one to four rules share them, those of five to eight, ...
        self.room = 4 * -(-max(room, options.max_rules) // 4)
        self.best = _InsertedRules(examples, self.penalty)
        self.start = self.list_of(
            tuple(rule for rule, _ in start), tuple(label for _, label in start)
        )
        self.best_objective = self.greedy_objective = self.best.objective()
        self.tie = _TIE * float(examples.counts.sum())
        self.rounds = self.insertions = 0
        self.replaced: set[tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]] = set()
        self.exhausted = False

    def list_of(self, conditions: tuple[Literals, ...], labels: tuple[int, ...]) -> _InsertedRules:
        """The list of these rules."""
        covers = tuple(self.examples.cover(condition) for condition in conditions)
        return _InsertedRules(self.examples, self.penalty, conditions, labels, covers)

    def keep(self, rules: _InsertedRules) -> bool:
        """Keep this list if it is the best so far; returns whether it is."""
        objective = rules.objective()
        better = objective > self.best_objective + self.tie
        if better:
            self.best, self.best_objective = rules, objective
        self.step(objective, rules)
        return better

    def step(self, objective: float, rules: _InsertedRules) -> None:
        """Report a list, with the expert's rules before it."""
        self.watch.step(self.offset + objective, self.before + len(rules))

    def run(self) -> None:
        """Run both parts, until nothing improves or the run is stopped; the last step of the
        history is the best list.
        """
        with self.watch:
            self.improve()
        for literals in self.required:
            self.use(literals)
        if (
            # The literals added for required columns may have made the list worse than the start.
            self.n_used(self.start) == len(self.required)
            and self.start.objective() > self.best_objective
        ):
            self.best, self.best_objective = self.start, self.start.objective()
        if (
            not self.watch.history
            or self.watch.history[-1].objective != self.offset + self.best_objective
        ):
            with self.watch:
                self.step(self.best_objective, self.best)

    def n_used(self, rules: _InsertedRules) -> int:
        """The number of required columns that a list uses."""
        return sum(
            any(literals[list(condition)].any() for condition in rules.conditions)
            for literals in self.required
        )

    def use(self, literals: Bools) -> None:
        """If no rule has one of these literals, add one where the objective falls least."""
        rules, examples = self.best, self.examples
        if any(literals[list(condition)].any() for condition in rules.conditions):
            return
        lists = []
        places = range(len(rules) + 1)
        for literal, label in itertools.product(
            np.flatnonzero(literals).tolist(), range(examples.n_classes)
        ):
            for place, condition in enumerate(rules.conditions):
                longer, rest = (
                    tuple(sorted((*condition, literal))),
                    rules.take([k for k in places[:-1] if k != place]),
                )
                for grown in (longer, (literal,)):  # a longer rule, or another in its place
                    if self.allows(grown, label) and examples.cover(grown).any():
                        lists.append(rest.insert(Insertion(0.0, grown, place, label)))
            if len(rules) < self.max_rules and self.allows((literal,), label):
                lists += [
                    rules.insert(Insertion(0.0, (literal,), place, label)) for place in places
                ]
        if lists:
            # A rule in another's place may cost a different required column: their number comes
            # first.
            self.best = max(lists, key=lambda rules: (self.n_used(rules), rules.objective()))
            self.best_objective = self.best.objective()

    def allows(self, condition: tuple[int, ...], label: int) -> bool:
        """Whether a rule with this condition may have this label, and is not too long."""
        allowed, longest = self.examples.allowed, self.options.max_length
        fits = longest is None or len(condition) <= longest
        return fits and (allowed is None or bool(allowed[label, list(condition)].all()))

    def improve(self) -> None:
        """Greedy rounds and local search."""
        options, rises = self.options, True
        most = math.inf if options.max_rounds is None else options.max_rounds
        self.watch.phase = "search"
        if len(self.start):
            self.keep(self.start)
        while rises and not self.watch.stopped() and self.rounds < most:
            # Without a known list both bounds charge for all rows: one suffices.
            known = self.best
            rises = max([self.greedy(known, bound) for bound in ((1, 2) if len(known) else (1,))])
            self.rounds += 1
        self.greedy_objective, self.exhausted = (
            self.best_objective,
            rises and not options.local_search,
        )
        rises = options.local_search and (self.promising is None or self.promising(self.best))
        self.watch.phase = "local search"
        while rises and not self.watch.stopped():
            before = self.best_objective
            self.reorder()
            self.replace()
            rises = self.best_objective > before + self.tie

    def solve(
        self,
        rules: _InsertedRules,
        first: NDArray[np.intp],
        alpha: float,
        mask: Bools,
        at_least: float = 0.0,
    ) -> Insertion:
        """Solve the sub-problem: the best rule to insert into a list, if it gains more than
        `at_least`.
        """
        self.insertions += 1
        problem = Subproblem(
            self.examples, first, rules.labels, alpha, mask, self.penalty, self.options.max_length,
            self.room, at_least,
        )  # fmt: skip
        return best_insertion(problem, self.find, self.watch.stopped)

    def greedy(self, known: _InsertedRules, bound: int) -> bool:
        """Algorithm 1 with d bounded at a known list. The bound d_1 (Eq. 17) charges a rule for all
        rows of the default label that it covers (a rule of the known list only for those that it
        alone covers); d_2 (Eq. 18) charges it for those that the known list does not cover.
        """
        examples, nu = self.examples, self.max_rules
        # The rows of the default label that a rule is charged for: `charged` if it is new, `alone`
        # if it belongs to the known list. With d_2, known rules are not charged.
        covering = np.sum(known.covers, axis=0) if len(known) else np.zeros(examples.n_rows, int)
        charged = np.ones(examples.n_rows, bool) if bound == 1 else covering == 0
        alone = covering == 1 if bound == 1 else np.zeros(examples.n_rows, bool)

        def best(step: int) -> Insertion:
            # 1 in the last step, also for nu = 1, where it is 0 ** 0
            alpha = (1 - 1 / nu) ** (nu - step)  # Eq. 20
            first, found = rules.first(), Insertion(0.0, (), 0, 0)
            used = set(zip(rules.conditions, rules.labels, strict=True))
            for condition, label, cover in zip(
                known.conditions, known.labels, known.covers, strict=True
            ):
                # Algorithm 3: the rules of the known list are tested one by one (G_1, Eq. 25), all
                # rules by the sub-problem (G_2, Eq. 26). It need not exclude known rules (Lemma 5):
                # there they are charged at least as much.
                if (condition, label) not in used:
                    gains = gains_of(cover, examples, first, rules.labels, alpha, alone)[:, label]
                    gain = float(gains.max()) - self.penalty * len(condition)
                    if gain > found.gain:
                        found = Insertion(gain, condition, int(gains.argmax()), label)
            return max(
                found,
                self.solve(rules, first, alpha, charged, found.gain),
                key=lambda rule: rule.gain,
            )

        rules, better, step = _InsertedRules(examples, self.penalty), False, 1
        while step <= nu and not self.watch.stopped():
            found = best(step)
            if found.gain > 0:
                # f may fall from one list to the next, as only the distorted gain is positive.
                rules, step = rules.insert(found), step + 1
                better |= self.keep(rules)
            # Until a rule is inserted only alpha changes, and it is greatest in the last step:
            # without a gain there, none follows.
            elif step == nu or best(nu).gain <= 0:
                break
            else:  # gains grow with alpha: go to the first step with a gain
                step = bisect_left(
                    range(nu), True, step + 1, key=lambda later: best(later).gain > 0
                )
        return better

    def reorder(self) -> None:
        """Delete every useless rule, and exchange every pair of rules if that helps."""
        rules = self.best.merged()
        kept, objective = list(range(len(rules))), rules.objective()
        place = 0
        while place < len(kept):
            shorter = kept[:place] + kept[place + 1 :]
            value = rules.take(shorter).objective()
            # A rule that changes nothing goes, too: the shorter list is as good.
            if value >= objective:
                kept, objective = shorter, value
            else:
                place += 1
        for a in range(len(kept)):
            for b in range(a + 1, len(kept)):
                order = kept.copy()
                order[a], order[b] = order[b], order[a]
                value = rules.take(order).objective()
                # By more than rounding, so that equal lists keep their order
                if value > objective + self.tie:
                    kept, objective = order, value
        if kept != list(range(len(rules))):
            self.best, self.best_objective = self.best.take(kept), objective

    def replace(self) -> None:
        """Replace each rule in turn with the best one; at the end, insert another if there is
        room.
        """
        for place in [*range(self.max_rules), None]:
            rules = self.best
            if self.watch.stopped() or (place is not None and place >= len(rules)):
                continue
            if place is not None:
                rules = rules.take([k for k in range(len(rules)) if k != place])
            if (
                len(rules) == self.max_rules
                or (known := (rules.conditions, rules.labels)) in self.replaced
            ):
                continue
            self.replaced.add(known)  # a second try would find no more
            # With alpha = 1, and a charge for the rows that the default decides now, G is the exact
            # rise of f. It must exceed what f lost by the rule taken out.
            first, lost = rules.first(), self.best_objective - rules.objective()
            found = self.solve(rules, first, 1.0, first == len(rules), lost)
            if found.gain > lost:
                self.keep(rules.insert(found))
