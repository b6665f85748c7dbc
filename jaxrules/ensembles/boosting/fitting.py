"""`fit` and `path`: from X and y to models.

The data are read once; a first fit chooses the ridge if none is given (`_boosted`). If time is
short, the propositions come from a fit on a sample of the rows (`model_in_time`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import Table, TableLike
from jaxrules.ensembles.boosting.details import BoostingDetails
from jaxrules.ensembles.boosting.options import CUT_POINTS, FEW_RULES, BoostingOptions
from jaxrules.ensembles.boosting.ridge import FEWEST_ROWS, DefaultRidge, ridge_for, share_left
from jaxrules.ensembles.boosting.search import best_rule, joint_rule
from jaxrules.ensembles.boosting.stages import Boosted, boosted
from jaxrules.ensembles.boosting.task import BoostingTask
from jaxrules.ensembles.boosting.thresholds import Thresholds
from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.noise import by_chance, mostly_repeated, rarity, unit
from jaxrules.ensembles.size import check_likelihood
from jaxrules.ensembles.split_points import MOST_ROWS, split_points
from jaxrules.learning.cross_validation import arguments_of
from jaxrules.learning.in_time import MANY_COLUMNS, fit_in_half
from jaxrules.learning.options import learner
from jaxrules.learning.training import (
    TrainingData,
    at_most,
    by_content,
    columns_in_work,
    equal_rows,
    loss_for,
    model_loss,
    one_against_rest,
    paths_against_rest,
    sample_in_time,
    some_rows,
)
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions, PropositionPool, all_propositions
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search.space import check_cut_points, most_propositions
from jaxrules.tools import checks
from jaxrules.tools.fits import Details, Fit, OneVsRestDetails, Status
from jaxrules.tools.interrupts import Interrupt
from jaxrules.tools.runs import Deadline, Run

_FEW_COLUMNS, _FEW_CATEGORIES, _FEW_PROPOSITIONS = 40, 20, 1000
"""A few rules in no time name so many categories of a column, the most frequent. With more columns
or propositions than these, they have single conditions.
"""
_ROWS_OF_TRIAL = 50_000
"""The most rows of the fit that estimates the noise: more give the same ridge."""
_ROWS_OF_FEW = 2000
"""The most rows of a few rules after the limit."""
MANY_CLASSES = 20
"""More classes than this take too long for a few rules without a limit."""
_TINY = np.finfo(np.float64).tiny
_WORTH_A_FIT = 0.03
"""Where rules explain this share of the loss by chance, a fit to permuted targets measures it."""
_FEW_SECONDS = 0.1
"""The least time for a few rules of as many classes as possible."""


@learner(BoostingOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: BoostingOptions
) -> Fit[RuleEnsemble]:
    """Fit an additive ensemble by boosting: each stage adds the best possible rule.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    >>> y = 3.0 * X[:, 0] * X[:, 1]
    >>> result = fit(X, y, loss="squared", max_rules=1, l2_penalty=0.0)
    >>> result.model.conjunctions.describe(0), float(result.model.weights[0, 0])
    ('x0 >= 1 & x1 >= 1', 3.0)
    >>> round(result.details.stages[0].gap, 6)
    0.0

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers for "squared" and user losses, counts for "poisson", classes for "logistic" and
            "exponential", shape (rows,). For more than two classes see `multiclass`: an ensemble
            with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the regularised risk (2.1), with `BoostingDetails`. For one model
        per class see `jaxrules.learning.training.one_against_rest`.

    Raises:
        ValueError: for an invalid value of any argument, a target that the loss is not defined for,
            more propositions than memory allows, or a loss with negative curvature or non-finite
            derivatives.
        TypeError: for arguments of the wrong type.
    """
    task = task_of(X, y, sample_weight, options)

    def fit_one(data: TrainingData, run: Run) -> Fit[RuleEnsemble]:
        asked = options.max_rules
        if isinstance(asked, int):
            return run.whole(_boosted(data, task, run, [asked]).fits()[-1])
        return run.whole(_boosted(data, task, run, task.sizes).of_best_size())

    return or_sketch(one_against_rest(task.data, task.run, fit_one, joint=task.joint), task)


@learner(BoostingOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: BoostingOptions
) -> list[Fit[RuleEnsemble]]:
    """One Fit for each number of rules up to `max_rules`, from one run: each is what `fit`
    returns for that number.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    >>> fits = path(X, X[:, 0] + 3.0 * X[:, 0] * X[:, 1], max_rules=2, l2_penalty=0.0)
    >>> [round(one.objective, 4) for one in fits]
    [0.1667, 0.0]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. The sizes begin with the smallest in which the rules of `first`, a rule to learn
        and the columns of `required` have room. The list is shorter if boosting stops early, and
        holds only the constant model if no rule was found.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    task = task_of(X, y, sample_weight, options)
    sizes = task.sizes
    return paths_against_rest(
        task.data, task.run, lambda part, run: _path(part, task, run), sizes[0], joint=task.joint
    )


def _path(data: TrainingData, task: BoostingTask, run: Run) -> list[Fit[RuleEnsemble]]:
    fits = _boosted(data, task, run, task.sizes).fits()
    return [*fits[:-1], run.whole(fits[-1])]


def _boosted(data: TrainingData, task: BoostingTask, run: Run, sizes: Sequence[int]) -> Boosted:
    """The ensembles of these sizes for a target of one output, with the ridge that the data choose
    if none is given.

    A first fit of ten rules, in at most half of the time, estimates the noise. It is returned if
    its ridge turns out to be the chosen one, or if time runs out. With more than 50 000 rows, it
    sees some of them; with many columns, fewer pairs of these: then only its ridge is used.
    """
    task = replace(task, interactions={})
    if task.options.l2_penalty is not None:
        return boosted(data, task, run, sizes)
    n_first = len(task.candidates.first)
    few, least = n_first + FEW_RULES, ridge_for(data, task.options, 0.0)
    # The trial keeps the smaller sizes that are asked for, so that it is a full result if its ridge
    # is the chosen one: the least, as without noise.
    smaller = list(takewhile(lambda size: size < few, sizes))
    trial = run.child(0.5, f"{run.task}, choice of l2_penalty", few)
    first = task.with_options(l2_penalty=least, max_rules=few)
    some = at_most(data, _ROWS_OF_TRIAL, task.options.seed)
    if some is not data:
        first = first.on(some)
    if first.leaves_out_pairs(first.candidates.space):
        first = replace(first, trial=True, thresholds=None)
    only_ridge = first.trial or some is not data
    tried = boosted(some, first, trial, [*smaller, few])
    run.shortened |= trial.stopped()
    # q' = q + min(30 / rows, .2) for ten rules of few columns (docs/defaults.md); for classes
    # together, q alone.
    left, n_found = share_left(some, task.options, tried.fits()[-1]), tried.n_stages
    rare = rarity(some.loss, some.target, some.weights)
    chance = by_chance(max(1, n_found), some.weights, task.nats_of_choice, rare)
    why = f"ten rules fitted with a ridge of {least:g} leave {left:.0%} of the constant's loss"
    permuted = 0.0
    if chance >= _WORTH_A_FIT and n_found and not run.stopped():
        permuted = _share_of_permuted(some, first, run.child(0.5, trial.task, few))
    chance = 0.0 if task.joint else chance
    if permuted and chance < (more := min(left / permuted, 1.0) ** 2 - left):
        chance = more
        why += f", and {permuted:.0%} of that of a permuted target"
    ridge = ridge_for(data, task.options, left + chance)
    # Without refits no weights have a ridge of their own: if the least ridge is the ridge, nothing
    # grows.
    growing = DefaultRidge.by_noise(
        ridge, why, ridge_for(data, task.options, 1 / 9) if task.options.corrective else ridge,
        unit(data.loss, data.target, data.weights),
    )  # fmt: skip
    wanted = sizes[-1] - n_first
    # The trial has all rules that are asked for, or ended by itself because no other rule gained.
    complete = n_found >= wanted or (n_found < FEW_RULES and not trial.stopped())
    if only_ridge or not (run.stopped() or (ridge == least and complete)):
        found = boosted(data, task.with_options(growing, l2_penalty=ridge), run, sizes)
        # If time ended the second fit before it had as many rules as the first, the first is
        # better.
        if some is not data or found.n_stages >= min(n_found, wanted) or not run.stopped():
            return found
    if ridge != least:
        why = f"no time remained to refit with {ridge:g}"
    # The trial is the result, with the ridge that it has. It may have grown ten rules for fewer
    # that are asked for: these are dropped.
    kept = first.with_options(growing._replace(value=least, why=why, growth=0.0), l2_penalty=least)
    return replace(tried, task=kept, grown=tried.grown[: len(smaller) + (sizes[-1] >= few)])


def _share_of_permuted(data: TrainingData, task: BoostingTask, run: Run) -> float:
    """The share of the constant's loss that as many rules leave of targets in random order, which
    they explain by chance; 0 if this would not be chance, as many rows are equal.
    """
    # Equal rows count as one with their weight, so that weights are repeated rows. Heavy rows in
    # random order vary by more than noise does.
    first, equal = equal_rows(data)
    weights = np.bincount(equal, data.weights)
    if mostly_repeated(weights):
        return 0.0
    order = np.random.default_rng(task.options.seed).permutation(first)
    permuted = replace(data[first], target=data.target[order], weights=weights)
    found = boosted(permuted, task.on(permuted), run, [len(task.candidates.first) + FEW_RULES])
    return share_left(permuted, task.options, found.fits()[-1])


def task_of(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: BoostingOptions
) -> BoostingTask:
    """Read the data and make the propositions."""
    run = options.run(total=options.most_rules)
    loss = loss_for(y, options.loss)
    data = by_content(options.training_data(X, y, sample_weight, loss, constant=True))
    schema, n_outputs, joint = data.table.schema, len(data.outputs), options.joins(data)
    several = {"multiclass": "joint" if joint else "one_vs_rest"} if n_outputs > 1 else {}
    settings = options.settings(loss=data.loss, **several)
    constraints = Constraints.of(schema, options.forbidden, options.required, options.monotone)
    constraints.warn_of_constants(data.table)
    first = constraints.first(data.table, options.first, n_outputs)
    constraints.check_room(first, options.most_rules)
    if options.max_rules is None:
        check_likelihood(data.loss)

    options, propositions, sample, sketch = _sketched(data, options, constraints, run)
    all_values = propositions is None and options.all_thresholds
    thresholds = None
    if all_values:
        run.preparing("thresholds")
        thresholds = run.prepared(lambda: Thresholds.of(data, constraints), lambda: None)

    def candidates() -> Candidates:
        pool = _pool(data.table, propositions, options)
        # The splits are for pairs: single conditions are compared over all values anyway. As many
        # join the cut points as memory allows.
        if all_values and options.longest(len(pool)) != 1:
            splits = _splits(data, thresholds, constraints, options)
            room = max(0, int(most_propositions(data.table.n_rows)) - len(pool))
            pool = PropositionPool.concatenate([pool, splits.take(range(min(room, len(splits))))])
        pool = constraints.pool(pool, data.table, n_outputs)
        constraints.require_spoken(Conjunctions.concatenate([pool, first]), "proposition")
        made = Candidates.of(pool, first, constraints, data)
        longest = options.longest(len(pool))
        if longest is not None and longest <= 3:
            _ = made.space.partitions  # kept for the searches, which nothing would interrupt here
        return made

    nothing = PropositionPool.of(schema, ())
    if not run.interrupt.pressed:  # else they are not made
        run.preparing("propositions")
    found = run.prepared(candidates, lambda: Candidates.of(nothing, first, constraints, data))
    if options.engine == "jax" and found.space.partitions is None:
        raise ValueError(
            'engine="jax" needs columns of at most 256 cells; lower max_cut_points, or set '
            'engine="auto"'
        )
    find = joint_rule if joint else best_rule
    sizes = range(constraints.fewest(first), options.most_rules + 1)
    return BoostingTask(
        data, found, options, run, settings, sample, sizes, joint, find, constraints, sketch=sketch,
        thresholds=thresholds,
    )  # fmt: skip


def _sketched(
    data: TrainingData, options: BoostingOptions, constraints: Constraints, run: Run
) -> tuple[BoostingOptions, PropositionPool | None, int | None, RuleEnsemble | None]:
    """With too little time for all rows, a fit on a sample chooses the conditions, and all rows
    choose the rules among these: the options for that, the conditions, the size of the sample and
    its model. A required column might not be among them, so it has no such shortcut.
    """
    given = options.propositions
    if given is not None or constraints.required:
        return options, given, None, None
    most = "auto" if options.all_thresholds else options.max_cut_points
    columns = columns_in_work(data.table, most) if run.deadline.seconds else None
    sample = sample_in_time(data, run, options.seed, columns)
    if sample is None:
        return options, given, None, None
    sketch = model_in_time(sample, replace(options, loss=data.loss, prune=None), run)
    # Directions are among the propositions; so few of these would make "auto" three.
    length = 2 if options.max_length == "auto" else options.max_length
    options = replace(options, max_length=length, max_nonzeros=1)
    return options, _propositions_in(sketch), len(sample.weights), sketch


def _splits(
    data: TrainingData,
    thresholds: Thresholds | None,
    constraints: Constraints,
    options: BoostingOptions,
) -> PropositionPool:
    """Thresholds that the data choose, for the search for pairs."""
    some = at_most(data, MOST_ROWS, options.seed)
    # The sorted columns are those of all rows: a sample needs its own.
    if some is not data or thresholds is None:
        thresholds = Thresholds.of(some, constraints)
    found = split_points(some, thresholds.columns, ridge_for(some, options, 0.0))
    sides = [side for split in found for side in (split, split._replace(above=True))]
    return PropositionPool.of(some.table.schema, map(thresholds.condition, sides))


def _pool(table: Table, given: PropositionPool | None, options: BoostingOptions) -> PropositionPool:
    """The propositions to build rules from."""
    if given is None:
        asked = "auto" if options.all_thresholds else options.max_cut_points
        auto = asked == "auto"
        most = check_cut_points(table, CUT_POINTS if asked == "auto" else asked, fewer=auto)
        return all_propositions(table, max_cut_points=most)
    checks.instance(
        "propositions", given, PropositionPool, "jaxrules.rules.conditions.propositions_of"
    )
    if given.schema.features != table.schema.features:
        raise ValueError(
            "propositions were built for columns other than those of X; build them from the same "
            "table"
        )
    return given


def model_in_time(sample: TrainingData, options: BoostingOptions, run: Run) -> RuleEnsemble:
    """The model of a sample of the rows, in half of the remaining time; that of `few_rules` if that
    is too little, or after Ctrl-C.
    """
    outputs = 1 if options.joins(sample) else len(sample.outputs)
    found = fit_in_half(fit, sample, options, run, outputs=outputs)
    if found is not None and len(found.model.conjunctions):
        return found.model
    return few_rules(sample, options, run)


def few_rules(sample: TrainingData, options: BoostingOptions, run: Run) -> RuleEnsemble:
    """A model of at most three rules at coarse cut points or of frequent categories, with single
    conditions if there are many columns. It takes some hundredths of a second on a few thousand
    rows, so it runs without a limit, unless there are many classes: one-vs-rest, those that it has
    no time for are constant.
    """
    limit = None
    if len(sample.outputs) > MANY_CLASSES:
        left = 0.0 if run.interrupt.pressed else run.deadline.remaining()
        seconds = max(_FEW_SECONDS, left / 4)
        limit = Deadline(seconds, run.deadline.clock)
    n_columns = len(sample.table.columns)
    pool = all_propositions(
        sample.table, max_cut_points=5, max_categories=_FEW_CATEGORIES,
        columns=None if n_columns <= MANY_COLUMNS else _telling_columns(sample, MANY_COLUMNS),
    )  # fmt: skip
    # The number of pairs grows with the square of the columns.
    many = n_columns > _FEW_COLUMNS or len(pool) > _FEW_PROPOSITIONS
    short = many or options.max_length == 1
    few = replace(
        options, max_rules=min(options.most_rules, 3), max_length=1 if short else 2,
        propositions=pool, max_nonzeros=1, linear_terms=False, search="optimal",
        l2_penalty=FEWEST_ROWS if options.l2_penalty is None else options.l2_penalty,
        max_evaluations="auto", engine="numpy", time_limit=limit, progress=False,
    )  # fmt: skip
    with Interrupt.unheard() if run.interrupt.pressed else nullcontext():
        return fit.with_options(*arguments_of(sample), few).model


def _telling_columns(data: TrainingData, most: int) -> set[int]:
    """The columns that tell most about the target: numbers by their correlation with it or with a
    class, missing values at the mean; categories by the deviation between them.
    """
    target = data.target if data.classes is None else data.codes[:, None] == np.unique(data.codes)
    share = data.weights / data.weights.sum()
    target = np.reshape(target, (len(share), -1)).astype(np.float64)
    target -= share @ target
    told = np.zeros(len(data.table.columns))
    for index, feature in enumerate(data.table.schema.features):
        x = data.table.columns[index]
        if feature.categories is None:
            known = ~data.table.missing_mask(index)
            # Scaled, so that no square over- or underflows.
            x = x / max(np.abs(x[known]).max(initial=0.0), _TINY)
            mean = share[known] @ x[known] / max(share[known].sum(), _TINY)
            x = np.where(known, x - mean, 0.0)
            told[index] = np.abs((share * x) @ target).max() / max((share @ x**2) ** 0.5, _TINY)
        else:
            place = np.unique(x, return_inverse=True)[1]
            size = np.maximum(np.bincount(place, share), _TINY)
            sums = [np.bincount(place, share * one) for one in target.T]
            told[index] = max((one**2 / size).sum() for one in sums) ** 0.5
    return set(np.argsort(-told, kind="stable")[:most].tolist())


def _propositions_in(model: RuleEnsemble) -> PropositionPool:
    """The conditions of the rules."""
    found = dict.fromkeys(condition for rule in model.conjunctions for condition in rule)
    schema = model.schema.with_classes(None)
    return PropositionPool.build(schema, [[condition] for condition in found])


def or_sketch(found: Fit[RuleEnsemble], task: BoostingTask) -> Fit[RuleEnsemble]:
    """The model of the sample, evaluated on all rows, if time ran out before the fit on all rows
    matched it; without a sample, a few rules of one if there is no rule at all.
    """
    sketch, details = task.sketch, found.details
    if sketch is None and (some := _rows_without_rule(found, task)) is not None:
        own = replace(task.options, loss=task.data.loss, prune=None)
        sketch, details = few_rules(some, own, task.run), _of_sample(details, len(some.weights))
    # The sketch counts only if time ran out before all rows gave as many rules, and then only if
    # its risk on all rows is lower: (2.1) with the ridge of the fit.
    if sketch is None or sketch.linear is not None:
        return found
    if len(found.model.conjunctions) >= len(sketch.conjunctions):
        return found
    ridge, weights = np.mean(found.details["l2_penalty"]), np.asarray(sketch.weights)
    # One-vs-rest, the objective is a mean over the outputs; classes together have twice the ridge.
    outputs = 0.5 if task.joint else weights.shape[1]  # see `jaxrules.ensembles.noise.ridges`
    penalty = ridge / (2.0 * task.data.weights.sum()) * np.sum(weights**2) / outputs
    risk = model_loss(sketch, task.data) + float(penalty)
    if risk >= found.objective:
        return found
    model = replace(sketch, options=task.settings)
    with task.run:
        task.run.step(risk, len(model.conjunctions))
    return task.run.finish(model, risk, found.sense, Status.TIME_LIMIT, details=details)


def _rows_without_rule(found: Fit[RuleEnsemble], task: BoostingTask) -> TrainingData | None:
    """The rows for a few rules if a limit ended the fit to many rows or columns before it had one,
    or Ctrl-C any fit.
    """
    options, run, data = task.options, task.run, task.data
    free = options.propositions is None and not task.constraints.required
    large = len(data.weights) > 2 * _ROWS_OF_FEW or len(data.table.columns) > MANY_COLUMNS
    late = bool(run.deadline.seconds) and run.stopped() and large
    if not (free and (late or run.interrupt.pressed)):
        return None
    none = not len(found.model.conjunctions) and found.model.linear is None
    return some_rows(data, _ROWS_OF_FEW, options.seed) if none else None


def _of_sample(details: Details, rows: int) -> Details:
    """Details that say that the propositions come from so many rows."""
    if isinstance(details, OneVsRestDetails):
        each = tuple(_of_sample(one, rows) for one in details.of_class)
        return replace(details, of_class=each)
    assert isinstance(details, BoostingDetails)
    return replace(details, sample=rows)
