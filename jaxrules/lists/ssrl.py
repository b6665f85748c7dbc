"""SSRL: rule lists by sequence-submodular optimisation (Yang, Yang and Sun, KDD 2024).

A rule list R decides a row by its first satisfied rule, else by the default label. With literals as
the elements of conditions, learn the list of at most nu rules that maximises (Eq. 14)

    f(R) = rows right - literal_penalty * literals  =  c(R) + d(R) - literal_penalty * literals,

with c the rows that the rules classify correctly, d those that the default label does. c is
sequence submodular, d supermodular: d is replaced by one of two modular lower bounds, tight at the
list of the previous round (Lemma 1). Algorithm 1 inserts rules greedily under a distorted gain: the
gain of c counts (1 - 1/nu)^(nu - i) in step i. Algorithm 2 repeats that with both bounds until f
does not rise, then searches locally: delete, exchange, replace, insert. Finding the best rule to
insert, at any position, with any label, is the sub-problem (`jaxrules.lists.insertion`).

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
>>> print(fit(X, X[:, 0] & X[:, 1]).model)
IF x0 >= 1 AND x1 >= 1 THEN target = 1 (p = 0.857)
ELSE target = 0 (p = 0.941)
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Conjunctions, PropositionPool
from jaxrules.constraints import Constraints
from jaxrules.cross_validation import choose, spread
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.lists.first_rules import FirstRules
from jaxrules.lists.insertion import (
    MOST_ROWS,
    Examples,
    Insertion,
    Subproblem,
    best_insertion,
    gains_of,
)
from jaxrules.lists.literals import literals_of
from jaxrules.losses import logistic
from jaxrules.models import RuleList
from jaxrules.rows import Activations
from jaxrules.runs import Deadline, ProgressOption, Run
from jaxrules.table import Label, MissingRule
from jaxrules.training import TrainingData, settings, training_data
from jaxrules.warm_start import check_lengths, given_start, made_of, propositions_in

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_TIE = 1e-9
"""f must rise by more than this share of the rows' weight to count as better."""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    max_rules: int = 20,
    literal_penalty: float = 1.0,
    max_length: int | None = None,
    quantiles: int | Sequence[float] = 9,
    cut_points: Mapping[str, Sequence[float]] | None = None,
    literals: PropositionPool | None = None,
    default: Label | Literal["majority"] = "majority",
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    first_labels: Sequence[Label] | None = None,
    start: Fit[RuleList] | RuleList | None = None,
    subproblem: Subproblem = "beam",
    beam_width: int = 36,
    local_search: bool = True,
    max_rounds: int = 2,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleList]:
    """Learn a rule list, for two classes or many.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: class labels, shape (rows,).
        max_rules: the paper's nu, the most rules.
        literal_penalty: the paper's lambda >= 0, the weight of rows that a literal must gain.
        max_length: the most literals of a rule; None for no limit.
        quantiles, cut_points: cut points of numbers, see `jaxrules.lists.literals.literals_of`.
        literals: the literals to build rules from, instead of these.
        default: the label of rows that no rule covers; "majority" takes the heaviest class.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that the list must use; if the search leaves one out, the
            cheapest literal on it is added.
        monotone: 1 or -1 for some numeric columns: as the column rises, the prediction may only
            move towards the last class, or the first; see `jaxrules.constraints`.
        first: an expert's rules, which come first; they count among `max_rules` and
            their literals are penalised.
        first_labels: their labels; None for the heaviest class among the rows that each captures.
        start: a Fit, or its model, a list of any learner on the same columns and for the same
            classes: the search starts from its rules, after those of `first`, and with the default
            of this fit; its conditions are extra literals. The result is no worse than that list.
        subproblem: how the rule to insert is found: "beam"; "modmod", the paper's ModMod procedure;
            or "exact", which examines all conditions that can still win and may take long (limit it
            by `max_length` and `time_limit`).
        beam_width: conditions that the beam refines at once.
        local_search: delete, exchange, replace and insert rules after the greedy
            rounds, until nothing helps.
        max_rounds: the most rounds of minorise-maximise. After two, the local search
            ends as well as after ten.
        sample_weight: weight of every row, shape (rows,); f then counts weights.
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: unused, since the search is deterministic; every learner takes it.
        time_limit: seconds; the best list so far is returned when they run
            out, see `jaxrules.Deadline`.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit with f as objective, to be maximised; "converged" is a local optimum. The
        probabilities of the model are the weights of the classes among the training rows that
        each rule decides, one row of each class added. The history has a step per insertion.
        ``details``: n_literals, rounds, insertions (sub-problems solved), and greedy_objective,
        f before the local search.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, a single class, columns without variation, or
            more rows than can be counted exactly (2^24).
    """
    options = settings("ssrl", locals())
    chosen = _Settings.of(options)
    run = Run("ssrl", time_limit, progress)
    task = _Task.of(
        run,
        X,
        y,
        sample_weight,
        missing,
        literals,
        quantiles,
        cut_points,
        default,
        chosen.max_rules,
        forbidden,
        required,
        monotone,
        first,
        first_labels,
        start,
        chosen.max_length,
    )
    return task.fit(chosen, options, run)


@guarded
def cross_validate(
    X: Any,
    y: ArrayLike,
    *,
    literal_penalties: Sequence[float] = (0.5, 1.0, 5.0, 7.0, 10.0),
    max_rules: Sequence[int] = (10, 20, 30, 40),
    n_folds: int = 5,
    one_standard_error: bool = True,
    max_length: int | None = None,
    quantiles: int | Sequence[float] = 9,
    cut_points: Mapping[str, Sequence[float]] | None = None,
    literals: PropositionPool | None = None,
    default: Label | Literal["majority"] = "majority",
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    first_labels: Sequence[Label] | None = None,
    subproblem: Subproblem = "beam",
    beam_width: int = 36,
    local_search: bool = True,
    max_rounds: int = 2,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleList]:
    """Choose the penalty and the number of rules by stratified cross-validation;
    fit with them on all rows.

    The cut points are quantiles of all rows of X and do not depend on labels: all folds have the
    same literals and share one set of compiled kernels. To measure the accuracy of the whole
    procedure, call it inside the training rows of an outer split.

    Args:
        literal_penalties, max_rules: the values to choose from.
        n_folds: how many folds.
        one_standard_error: choose the setting with the fewest literals within one standard error of
            the best mean accuracy, not the best (ties go to the fewest literals).
        seed: of the folds.
        time_limit: seconds for everything; four fifths are for the folds; settings that no
            fold reached are excluded.
        X, y, max_length, quantiles, cut_points, literals, default, forbidden, required,
        monotone, first, first_labels,
            subproblem, beam_width, local_search, max_rounds, sample_weight,
            missing, progress: as in `fit`.

    Returns:
        The Fit on all rows; ``details`` hold, besides those of `fit`: literal_penalty and
        max_rules, the chosen setting; accuracies, rules and literals, shape (folds,
        literal_penalties, max_rules), NaN if time ran out.

    Raises:
        TypeError, ValueError: as `fit`, also for a class with fewer rows than there are folds.
    """
    options = settings(
        "ssrl", {name: value for name, value in locals().items() if name not in _GRID}
    )
    penalties = checks.sequence("literal_penalties", literal_penalties, at_least=0)
    if not isinstance(max_rules, (list, tuple, range, np.ndarray)) or not np.size(max_rules):
        raise TypeError(f"max_rules must be a non-empty sequence of integers, got {max_rules!r}")
    sizes = [
        checks.integer("max_rules", size, at_least=1, at_most=10_000)
        for size in np.ravel(max_rules).tolist()
    ]
    grid = [(float(penalty), size) for penalty in penalties for size in sizes]
    checks.integer("n_folds", n_folds, at_least=2)
    one_standard_error = checks.flag("one_standard_error", one_standard_error)
    run = Run("ssrl", time_limit, progress)
    task = _Task.of(
        run,
        X,
        y,
        sample_weight,
        missing,
        literals,
        quantiles,
        cut_points,
        default,
        min(sizes),
        forbidden,
        required,
        monotone,
        first,
        first_labels,
    )
    task.check_folds(n_folds)
    fold = spread(len(task.codes), task.codes, n_folds, checks.seed(seed))
    figures = np.full((3, n_folds, len(grid)), np.nan)  # accuracy, rules, literals
    part = run.child(_SHARE, "ssrl, cross-validation", n_folds * len(grid))
    with part:
        _measure(figures, task, fold, grid, options, part)
    penalty, size = grid[choose(1 - figures[0], figures[2], one_standard_error, otherwise=0)]
    options |= {"literal_penalty": penalty, "max_rules": size}
    accuracies, rules, lengths = figures.reshape(3, n_folds, len(penalties), len(sizes))
    return task.fit(
        _Settings.of(options, max(sizes)), options, run, literal_penalty=penalty, max_rules=size,
        accuracies=accuracies, rules=rules, literals=lengths,
    )  # fmt: skip


def _measure(
    figures: Floats, task: _Task, fold: NDArray[np.intp], grid: Sequence[tuple[float, int]],
    options: Mapping[str, Any], part: Run,
) -> None:  # fmt: skip
    """Fill in accuracy, rules and literals of every fold and setting, (3, folds,
    settings), as far as the time goes.
    """
    room = max(size for _, size in grid)
    for k, (at, (penalty, size)) in itertools.product(range(figures.shape[1]), enumerate(grid)):
        chosen = _Settings.of({**options, "literal_penalty": penalty, "max_rules": size}, room)
        inside, outside = task.data.weights * (fold != k), task.data.weights * (fold == k)
        search = task.search(inside, chosen, part.child(task="ssrl, one fold"))
        if part.stopped():
            break
        examples = task.examples(outside * task.first.rest, search.examples.default)
        right = replace(search.best, examples=examples).right() + outside @ task.first.right
        n_literals = int(task.first.rules.propositions.sum()) + sum(
            map(len, search.best.conditions)
        )
        figures[:, k, at] = right / outside.sum(), search.before + len(search.best), n_literals
        part.report(k * len(grid) + at + 1)


_GRID = ("literal_penalties", "n_folds", "one_standard_error")
_SHARE = 0.8
"""Share of the time limit for the folds."""


@dataclass(frozen=True)
class _Settings:
    """The checked options that do not depend on the data."""

    max_rules: int
    penalty: float
    max_length: int | None
    subproblem: Subproblem
    beam_width: int
    local_search: bool
    max_rounds: int
    room: int
    """Lists of up to this many rules share compiled kernels."""

    @classmethod
    def of(cls, options: Mapping[str, Any], room: int = 0) -> _Settings:
        max_rules = checks.integer("max_rules", options["max_rules"], at_least=1, at_most=10_000)
        checks.seed(options["seed"])
        return cls(
            max_rules,
            checks.number(
                "literal_penalty", options["literal_penalty"], at_least=0, at_most=1e30
            ),  # float32 holds it
            checks.optional(checks.integer, "max_length", options["max_length"], at_least=1),
            checks.choice("subproblem", options["subproblem"], ("beam", "modmod", "exact")),
            checks.integer("beam_width", options["beam_width"], at_least=1, at_most=10_000),
            checks.flag("local_search", options["local_search"]),
            checks.integer("max_rounds", options["max_rounds"], at_least=1),
            4 * -(-max(room, max_rules) // 4),
        )


_Start = tuple[tuple[tuple[int, ...], int], ...]
"""The rules of a list: the literals and the label of each."""


@dataclass(frozen=True, eq=False)
class _Task:
    """The data of a fit, and their rows by literals."""

    data: TrainingData
    pool: PropositionPool
    rows: Activations
    codes: NDArray[np.intp]
    default: Any
    constraints: Constraints
    first: FirstRules
    start: _Start | None

    @classmethod
    def of(
        cls,
        run: Run,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        missing: MissingRule,
        literals: PropositionPool | None,
        quantiles: int | Sequence[float],
        cut_points: Mapping[str, Sequence[float]] | None,
        default: Any,
        max_rules: int,
        forbidden: Any,
        required: Any,
        monotone: Any,
        first: Any,
        first_labels: Any,
        start: Any = None,
        max_length: int | None = None,
    ) -> _Task:
        data = training_data(X, y, logistic, sample_weight=sample_weight, missing=missing)
        table, classes = data.table, data.classes or ()
        codes = (
            (data.target > 0).astype(np.intp)
            if data.target.ndim == 1
            else data.target.argmax(axis=1)
        )
        if table.n_rows > MOST_ROWS:
            raise ValueError(
                f"X has {table.n_rows} rows; at most {MOST_ROWS} can be counted exactly; fit a "
                "sample"
            )
        if literals is None:
            run.preparing("literals")
            pool = literals_of(table, quantiles=quantiles, cut_points=cut_points)
        else:
            pool = checks.instance(
                "literals", literals, PropositionPool, "jaxrules.lists.literals.literals_of"
            )
            if pool.schema.features != table.schema.features:
                raise ValueError(
                    "literals were built for columns other than those of X; build them from the "
                    "same table"
                )
        if not len(pool):
            raise ValueError("no column of X varies across the cut points; nothing can be learned")
        constraints = Constraints.of(data.schema, forbidden, required, monotone)
        class_weights = data.weights[:, None] * (codes[:, None] == np.arange(len(classes)))
        before = FirstRules.of(data, class_weights, first, first_labels, max_rules)
        given = given_start(start, RuleList, data, constraints)
        begun = None if given is None else before.behind(given, max_rules)
        if begun is not None:
            pool = PropositionPool.concatenate(
                [pool, propositions_in(begun.conjunctions.with_schema(pool.schema))]
            )
            pool = pool.distinct(table, constraints.allows(pool, len(classes)))
        pool = pool.take(np.flatnonzero(constraints.allows(pool, len(classes)).any(axis=1)))
        checks.require(len(pool) > 0, "forbidden and monotone exclude every literal")
        constraints.require_spoken(pool, "literal")
        majority = isinstance(default, str) and default == "majority" and "majority" not in classes
        if not majority and (np.ndim(default) or default not in classes):
            raise ValueError(
                f'default must be "majority" or one of the classes {classes}, got {default!r}'
            )
        label = None if majority else classes.index(default)
        task = cls(data, pool, Activations.of(pool, table), codes, label, constraints, before, None)
        return task if begun is None else replace(task, start=task.begin(begun, max_length))

    def check_folds(self, n_folds: int) -> None:
        """Refuse more folds than some class has rows."""
        rows = np.bincount(self.codes)
        if rows.min() < n_folds:
            least = (self.data.classes or ())[int(rows.argmin())]
            raise ValueError(
                f"y has a class with fewer rows than n_folds = {n_folds}: {rows.min()} of class "
                f"{least!r}; "
                "use fewer folds, or drop the class"
            )

    def begin(self, model: RuleList, max_length: int | None) -> _Start:
        """A list in terms of the literals, without rules that hold on no row, and without those
        after a rule that holds on all.
        """
        n_classes, table = len(self.data.classes or ()), self.data.table
        rules = model.conjunctions.with_schema(table.schema)
        one_each = table[np.unique(self.rows.pattern, return_index=True)[1]]
        of_pool, of_parts = (
            self.constraints.allows(part, n_classes) for part in (self.pool, propositions_in(rules))
        )
        made = made_of(self.pool, self.rows.bits, rules, one_each, (of_pool, of_parts))
        check_lengths(made, max_length, "max_length")
        made = made[: made.index(())] if () in made else made
        labels = model.labels.tolist()
        return tuple(
            (rule, label) for rule, label in zip(made, labels, strict=False) if rule is not None
        )

    def examples(self, weights: Floats, default: int | None = None) -> Examples:
        """Rows unmerged if bits can be counted and few rows are equal;
        else with equal rows merged.
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
            return Examples(self.rows.by_rule[:, self.rows.pattern], counts, default, allowed)
        class_weights = self.rows.class_weights(self.codes, n_classes, weights)
        return Examples(self.rows.by_rule, class_weights, default, allowed)

    def search(self, weights: Floats, chosen: _Settings, run: Run) -> _Search:
        """A finished search on rows of these weights, for what comes after the expert's rules."""
        totals = np.bincount(self.codes, weights, len(self.data.classes or ()))
        default = int(totals.argmax()) if self.default is None else self.default
        chosen = replace(chosen, max_rules=chosen.max_rules - len(self.first.rules))
        examples = self.examples(weights * self.first.rest, default)
        search = _Search(
            examples, chosen, run, self.constraints.using(self.pool), self.first, self.start or ()
        )
        search.run()
        return search

    def fit(
        self, chosen: _Settings, options: Mapping[str, Any], run: Run, **details: Any
    ) -> Fit[RuleList]:
        """Search on all rows; make a model of the best list."""
        search = self.search(self.data.weights, chosen, run)
        best, examples, default = search.best, search.examples, search.examples.default
        decided = np.zeros((len(best) + 1, examples.n_classes))
        np.add.at(decided, best.first(), examples.counts)
        rules, labels = (
            self.pool.conjunctions(best.conditions, self.data.schema),
            np.append(best.labels, default),
        )
        model = self.first.before(rules, labels.astype(np.int32), decided, tuple(options.items()))
        status = Status.MAX_ITERATIONS if search.exhausted else Status.CONVERGED
        return run.finish(
            model,
            search.offset + best.objective(),
            "max",
            status,
            n_literals=len(self.pool),
            rounds=search.rounds,
            insertions=search.insertions,
            greedy_objective=search.offset + search.greedy_objective,
            **details,
        )


@dataclass(frozen=True, eq=False)
class _Rules:
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
        for k in range(len(self) - 1, -1, -1):
            first[self.covers[k]] = k
        return first

    def right(self) -> float:
        """The weight of the correctly classified rows."""
        labels = np.append(self.labels, self.examples.default).astype(np.intp)
        return float(
            np.take_along_axis(self.examples.counts, labels[self.first()][:, None], axis=1).sum()
        )

    def objective(self) -> float:
        """f, Eq. 14."""
        return self.right() - self.penalty * sum(map(len, self.conditions))

    def insert(self, rule: Insertion) -> _Rules:
        """With a further rule."""
        order = [*range(rule.position), len(self), *range(rule.position, len(self))]
        return _Rules(
            self.examples,
            self.penalty,
            (*self.conditions, rule.condition),
            (*self.labels, rule.label),
            (*self.covers, self.examples.cover(rule.condition)),
        ).take(order)

    def take(self, order: Sequence[int]) -> _Rules:
        """These rules, in this order."""
        conditions, labels, covers = self.conditions, self.labels, self.covers
        return _Rules(
            self.examples,
            self.penalty,
            tuple(conditions[k] for k in order),
            tuple(labels[k] for k in order),
            tuple(covers[k] for k in order),
        )

    def merged(self) -> _Rules:
        """The same list on rows merged by the rules that cover them; equivalent
        for deleting and reordering.
        """
        if not len(self):
            return self
        rows = Activations.of_matrix(np.stack(self.covers, axis=1))
        examples = Examples(rows.by_rule, rows.totals(self.examples.counts), self.examples.default)
        return _Rules(examples, self.penalty, self.conditions, self.labels, tuple(rows.by_rule))


class _Search:
    """Algorithm 2: rounds of distorted greedy insertion, then local search.
    Keeps the best list of all.
    """

    def __init__(
        self, examples: Examples, settings: _Settings, run: Run, required: Sequence[Bools] = (),
        first: FirstRules | None = None, start: _Start = (),
    ) -> None:  # fmt: skip
        self.examples, self.settings, self.watch = examples, settings, run
        self.required = required  # for each required column, the literals on it
        self.offset = 0.0 if first is None else first.objective(settings.penalty)
        self.before = 0 if first is None else len(first.rules)
        self.best = _Rules(examples, settings.penalty)
        self.start = replace(
            self.best,
            conditions=tuple(rule for rule, _ in start),
            labels=tuple(label for _, label in start),
            covers=tuple(examples.cover(rule) for rule, _ in start),
        )
        self.best_objective = self.greedy_objective = self.best.objective()
        self.tie = _TIE * float(examples.counts.sum())
        self.rounds = self.insertions = 0
        self.replaced: set[tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]] = set()
        self.exhausted = False

    def keep(self, rules: _Rules) -> bool:
        """Keep this list if it is the best so far; returns whether it is."""
        objective = rules.objective()
        better = objective > self.best_objective + self.tie
        if better:
            self.best, self.best_objective = rules, objective
        self.step(objective, rules)
        return better

    def step(self, objective: float, rules: _Rules) -> None:
        """Report a list, with the expert's rules before it."""
        self.watch.step(self.offset + objective, self.before + len(rules))

    def run(self) -> None:
        """Both parts, until nothing rises or the run is stopped; the last step of the
        history is the best list.
        """
        with self.watch:
            self.improve()
        for literals in self.required:
            self.use(literals)
        if (
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

    def n_used(self, rules: _Rules) -> int:
        """The number of required columns that a list uses."""
        return sum(
            any(literals[list(condition)].any() for condition in rules.conditions)
            for literals in self.required
        )

    def use(self, literals: Bools) -> None:
        """If no rule has one of these literals, add one where the list loses least."""
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
                for grown in (longer, (literal,)):  # the rule longer, or another in its place
                    if self.allows(grown, label) and examples.cover(grown).any():
                        lists.append(rest.insert(Insertion(0.0, grown, place, label)))
            if len(rules) < self.settings.max_rules and self.allows((literal,), label):
                lists += [
                    rules.insert(Insertion(0.0, (literal,), place, label)) for place in places
                ]
        if lists:
            self.best = max(lists, key=lambda rules: (self.n_used(rules), rules.objective()))
            self.best_objective = self.best.objective()

    def allows(self, condition: tuple[int, ...], label: int) -> bool:
        """Whether a rule with this condition may have this label, and is not too long."""
        allowed, longest = self.examples.allowed, self.settings.max_length
        fits = longest is None or len(condition) <= longest
        return fits and (allowed is None or bool(allowed[label, list(condition)].all()))

    def improve(self) -> None:
        """Greedy rounds and local search."""
        settings, rises = self.settings, True
        self.watch.phase = "search"
        if len(self.start):
            self.keep(self.start)
        while rises and not self.watch.stopped() and self.rounds < settings.max_rounds:
            known = self.best
            rises = max([self.greedy(known, bound) for bound in ((1, 2) if len(known) else (1,))])
            self.rounds += 1
        self.greedy_objective, self.exhausted = (
            self.best_objective,
            rises and not settings.local_search,
        )
        rises, self.watch.phase = settings.local_search, "local search"
        while rises and not self.watch.stopped():
            before = self.best_objective
            self.reorder()
            self.replace()
            rises = self.best_objective > before + self.tie

    def solve(
        self,
        rules: _Rules,
        first: NDArray[np.intp],
        alpha: float,
        mask: Bools,
        at_least: float = 0.0,
    ) -> Insertion:
        """The sub-problem: the best rule to insert into a list, if it
        gains more than `at_least`.
        """
        settings = self.settings
        self.insertions += 1
        return best_insertion(
            self.examples, first, rules.labels, alpha=alpha, mask=mask, penalty=settings.penalty,
            max_length=settings.max_length, max_rules=settings.room, method=settings.subproblem,
            width=settings.beam_width, at_least=at_least, stopped=self.watch.stopped,
        )  # fmt: skip

    def greedy(self, known: _Rules, bound: int) -> bool:
        """Algorithm 1 with d bounded at a known list: d_1 charges a rule for all rows of the
        default label that it covers (a rule of the list for those that it alone covers), d_2 for
        those that the list does not cover.
        """
        examples, nu = self.examples, self.settings.max_rules
        covering = np.sum(known.covers, axis=0) if len(known) else np.zeros(examples.n_rows, int)
        charged = np.ones(examples.n_rows, bool) if bound == 1 else covering == 0
        alone = covering == 1 if bound == 1 else np.zeros(examples.n_rows, bool)

        def best(step: int) -> Insertion:
            alpha = (1 - 1 / nu) ** (nu - step)
            first, found = rules.first(), Insertion(0.0, (), 0, 0)
            used = set(zip(rules.conditions, rules.labels, strict=True))
            for condition, label, cover in zip(
                known.conditions, known.labels, known.covers, strict=True
            ):
                if (condition, label) not in used:
                    gains = gains_of(cover, examples, first, rules.labels, alpha, alone)[:, label]
                    gain = float(gains.max()) - self.settings.penalty * len(condition)
                    if gain > found.gain:
                        found = Insertion(gain, condition, int(gains.argmax()), label)
            return max(
                found,
                self.solve(rules, first, alpha, charged, found.gain),
                key=lambda rule: rule.gain,
            )

        rules, better, step = _Rules(examples, self.settings.penalty), False, 1
        while step <= nu and not self.watch.stopped():
            found = best(step)
            if found.gain > 0:
                rules, step = rules.insert(found), step + 1
                better |= self.keep(rules)
            elif step == nu or best(nu).gain <= 0:
                break
            else:  # gains grow with alpha: to the first step at which something gains
                step = bisect_left(
                    range(nu), True, step + 1, key=lambda later: best(later).gain > 0
                )
        return better

    def reorder(self) -> None:
        """Delete every useless rule, and exchange every pair that helps."""
        rules = self.best.merged()
        kept, objective = list(range(len(rules))), rules.objective()
        place = 0
        while place < len(kept):
            shorter = kept[:place] + kept[place + 1 :]
            value = rules.take(shorter).objective()
            if value >= objective:
                kept, objective = shorter, value
            else:
                place += 1
        for a in range(len(kept)):
            for b in range(a + 1, len(kept)):
                order = kept.copy()
                order[a], order[b] = order[b], order[a]
                value = rules.take(order).objective()
                if value > objective + self.tie:
                    kept, objective = order, value
        if kept != list(range(len(rules))):
            self.best, self.best_objective = self.best.take(kept), objective

    def replace(self) -> None:
        """Replace each rule in turn by the best one; at the end insert
        one more if there is room.
        """
        for place in [*range(self.settings.max_rules), None]:
            rules = self.best
            if self.watch.stopped() or (place is not None and place >= len(rules)):
                continue
            if place is not None:
                rules = rules.take([k for k in range(len(rules)) if k != place])
            if (
                len(rules) == self.settings.max_rules
                or (known := (rules.conditions, rules.labels)) in self.replaced
            ):
                continue
            self.replaced.add(known)  # a second try would find no more
            first, lost = rules.first(), self.best_objective - rules.objective()
            found = self.solve(rules, first, 1.0, first == len(rules), lost)
            if found.gain > lost:
                self.keep(rules.insert(found))
