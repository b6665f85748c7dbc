"""DRNet: a set of decision rules from a network of an AND layer and an OR layer (Qiao,
Wang and Lin, AAAI 2021).

Inputs are literals x_i in {0, 1}. Rule j of the AND layer requires x_i = 1 if its weight w_ij
is positive and x_i = 0 if it is negative; the bias makes it a conjunction for any sizes of
the weights (Eq. 1 and 2),

    r_j = 1{s_j >= 1},   s_j = sum_i w_ij x_i - sum_{w_ij > 0} w_ij + 1,

and its gradient is that of s_j, except where it would push a rule that fails entirely further down
or one that holds further up (straight-through, Eq. 3). The OR layer sums the rules: a row is
positive if one of them holds, with score sum_j r_j - 1/2 (Eq. 4 and 5), under the logistic loss.

Every weight has a gate z in [0, 1] of the hard-concrete distribution (Louizos, Welling and Kingma,
ICLR 2018): w z replaces w, and 1{z > 0} replaces 1 in the OR layer. The probabilities of open gates
are penalised, by the mean over rules of (1 + share of literals) open(rule) (Eq. 7). Two phases
alternate: one trains the AND layer under
`literal_penalty`, the other the OR layer under `rule_penalty`. At the end gates take their most
likely values, and the literals with nonzero weight form the rules.

Under `monotone` a projection after every step keeps the signs of the weights of literals on
constrained columns: for rising x, rules of the last class may use "x >= t", those of the first
class "x < t". See `jaxrules.rules.constraints`.

The paper has two classes. With more, classes are learned one after the other, the rarest first (as
in RIPPER, Cohen, ICML 1995), each against the rest on the rows that no rule covers yet. The default
is the most frequent class among the remaining rows; with two classes it is the first, if there is a
rule, since rules speak for the second.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
>>> print(fit(X, X[:, 0] | X[:, 1]).model)
IF x1 >= 1 THEN target = 1 (p = 0.990, 100 of 100 rows)
ELSE IF x0 >= 1 THEN target = 1 (p = 0.981, 50 of 50 rows)
ELSE target = 0 (p = 0.981, 50 of 50 rows)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Label, Table, TableLike, effective_row
from jaxrules.learning.cross_validation import along_paths, fit_of_best_setting, fits_along, of_all
from jaxrules.learning.options import FitOptions, Folds, learner, option, options
from jaxrules.learning.training import TrainingData, by_content
from jaxrules.lists.literals import at_cut_points
from jaxrules.lists.reading import limit
from jaxrules.losses import Array, logistic
from jaxrules.models.rule_models import RuleList, first_satisfied
from jaxrules.rules.conditions import Condition, Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import needed
from jaxrules.solvers.adam import adam
from jaxrules.solvers.shapes import bucket
from jaxrules.tools import checks
from jaxrules.tools.fits import Details, Fit, Status, Step
from jaxrules.tools.float64 import in_x64
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

_TEMPERATURE, _LOW, _HIGH = 2 / 3, -0.1, 1.1
"""beta, gamma and zeta of the hard-concrete distribution."""
_TURNS = 4
"""Phases per layer, alternating: AND, OR, AND, OR."""
_QUICK = 1 << 22
"""Entries of the literals examined to find a rule when no time is left."""
_SECONDS_PER_ENTRY = 3e-8
"""Roughly the time to prepare an entry of the literals for training, which nothing interrupts."""
_DRAWS = 101
"""Draws of the gates per phase, which its steps reuse in turn: random
numbers are slow to compile.
"""
_TRAINING_SHARE = 0.8
"""Share of the time limit for training; the rest is for making rules of the network."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DRNetDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        n_literals: the number of literals; each also stands for its negation.
        errors: the share of the training weight that each start classifies wrongly, the least
            penalised loss first; if time ran out, only of that start, or of none. With more than
            two classes a tuple for each learned set, as shares of its training rows.
        order: the classes of the learned sets, in order.
    """

    n_literals: int
    errors: tuple[float, ...] | tuple[tuple[float, ...], ...]
    order: tuple[Label, ...]


@options
class _DRNetShared(FitOptions):
    """What all functions of this module have in common.

    Attributes:
        max_rules: the number of rules of the network, for every class but the last.
        rule_penalty: the paper's lambda_2, on the rules of the OR layer.
        max_cut_points: the most cut points of a numeric column, at evenly spaced quantiles (9: the
            deciles); None for every value. See `jaxrules.lists.literals.literals_of`.
        iterations: steps of Adam; half of them train the AND layer, half the OR layer, in four
            turns.
        learning_rate: of every step.
        batch_size: rows drawn for each step, at most; None for all.
        restarts: random starts, trained side by side; the fewest training errors win, then the
            lowest complexity.
        forbidden: columns, by name or position, that no rule uses.
        monotone: 1 or -1 for some numeric columns: the label never moves to an earlier class (of
            two to the one that is not positive) as the column rises, or falls; probabilities may.
            See `jaxrules.rules.constraints`.
        seed: of starts, gates and batches.
        time_limit: seconds, or a `jaxrules.Deadline`; the rules so far are returned.
    """

    learner = "drnet"
    renamed: ClassVar[Mapping[str, str]] = {"quantiles": "max_cut_points"}

    max_rules: int = option(checks.integer, default=10, at_least=1, at_most=10**6)
    rule_penalty: float = option(checks.penalty, default=1e-5)
    max_cut_points: int | None = option(limit, default=9, at_least=1)
    iterations: int = option(checks.integer, default=8000, at_least=1)
    learning_rate: float = option(checks.number, default=0.01, above=0, at_most=1000)
    batch_size: int | None = option(limit, default=100, at_least=1)
    restarts: int = option(checks.integer, default=3, at_least=1, at_most=1000)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None


@options
class DRNetOptions(_DRNetShared):
    """The options of `fit`.

    Attributes:
        literal_penalty: the paper's lambda_1, on the literals of the AND layer, against the mean
            loss.
    """

    literal_penalty: float = option(checks.penalty, default=1e-2)


@options
class DRNetPathOptions(_DRNetShared):
    """The options of `path`.

    Attributes:
        literal_penalties: values of the paper's lambda_1; one fit each, in this order.
    """

    literal_penalties: Sequence[float] = option(checks.penalties, default=(1e-1, 1e-2, 1e-3))


@options
class DRNetGrid(Folds, DRNetPathOptions):
    """The options of `cross_validate`.

    Attributes:
        literal_penalties: the values of the paper's lambda_1 to choose from.
    """


@learner(DRNetOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: DRNetOptions
) -> Fit[RuleList]:
    """Learn a rule set: of two classes, the positive one if any rule holds, else the other.

    The result is a rule list whose rules all predict the same class, for use with
    `jaxrules.predict` and so on. Literals implied by the rest of their rule, and rules whose rows
    other rules cover, are dropped; no training prediction changes. With more classes, each has a
    set, one after the other, see the module.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> fit(X, X[:, 0] | X[:, 1], iterations=1000).objective
    0.0

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: labels of two or more classes, shape (rows,).
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the share of the training weight that is classified wrongly, with
        `DRNetDetails`. The steps of the history are chunks of training, their objective the
        penalised loss of the best network; the last is that of the model.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, a single class, or columns without variation.
    """
    run = options.run(total=options.iterations)
    return _DRNetTask.of(X, y, sample_weight, options, run).fit(options, run)


@learner(DRNetPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: DRNetPathOptions
) -> list[Fit[RuleList]]:
    """One Fit for each literal penalty: what `fit` returns with it. Every network is trained anew;
    data are read and kernels compiled once.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> fits = path(X, X[:, 0] | X[:, 1], literal_penalties=[10.0, 0.01], iterations=1000)
    >>> [round(one.objective, 2) for one in fits]
    [0.25, 0.0]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. Every penalty has an equal share of the remaining time; the list is shorter if
        that runs out.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run(total=options.iterations)
    task = _DRNetTask.of(X, y, sample_weight, options, run)

    def fit_at(penalty: float, run: Run) -> Fit[RuleList]:
        run.total = options.iterations
        return task.fit(options.to(DRNetOptions, literal_penalty=penalty), run)

    return fits_along(options.literal_penalties, run, fit_at)


@learner(DRNetGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: DRNetGrid
) -> Fit[RuleList]:
    """Choose the literal penalty by cross-validation (see `jaxrules.learning.cross_validation`);
    fit on all rows.

    The risk is the share of the held-out weight that is classified wrongly. Each fold has its own
    cut points and one `path`.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> chosen = cross_validate(
    ...     X, X[:, 0] | X[:, 1], literal_penalties=[10.0, 0.01], iterations=1000, n_folds=2
    ... )
    >>> chosen.details.cross_validation.setting
    {'literal_penalty': 0.01}

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    run = options.run()
    data = options.training_data(X, y, sample_weight, logistic)
    grid = [{"literal_penalty": penalty} for penalty in options.literal_penalties]
    walk = along_paths(path, [options.to(DRNetPathOptions)], of_all)
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid, walk, run, otherwise=0
    )


@dataclass(frozen=True, eq=False)
class _DRNetTask:
    """The data of a fit and the literals.

    `may_say`: whether rules of each class may use the opposite of a literal, and the literal,
    (classes, 2, literals).
    """

    data: TrainingData
    pool: PropositionPool
    may_say: Rows

    @classmethod
    def of(
        cls,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        options: DRNetOptions | DRNetPathOptions,
        run: Run,
    ) -> _DRNetTask:
        """Read the data and make the literals."""
        data = options.training_data(X, y, sample_weight, logistic)
        data = by_content(data)  # batches are drawn by position
        constraints = Constraints.of(data.table.schema, options.forbidden, (), options.monotone)
        data = replace(data, table=constraints.blanked(data.table))
        n_classes = len(data.classes or ())
        run.preparing("literals")
        pool = run.prepared(
            lambda: _one_sided(
                constraints.distinct(
                    at_cut_points(data.table, options.max_cut_points), data.table, n_classes
                )
            ),
            lambda: PropositionPool.of(data.table.schema, ()),
        )
        if not len(pool) and not run.stopped():
            raise ValueError("no column of X varies across the cut points; nothing can be learned")
        return cls(data, pool, _may_say(constraints, pool, data))

    def fit(self, options: DRNetOptions, run: Run) -> Fit[RuleList]:
        """Train, and make a list of the sets."""
        if self.data.target.ndim == 1:
            only = _ListTraining(self.data, self.pool, self.may_say[1], options, run).fit()
            # A list without rules predicts the most frequent class, as with several classes.
            default = 0 if only.rules else _most_frequent(self.data.codes, self.data.weights)
            return _as_list(self, [(1, only)], default, only.errors, options, run)
        sets, default = _class_by_class(self, options, run)
        errors = tuple(found.errors for _, found in sets)
        return _as_list(self, sets, default, errors, options, run)


# The network


class Layers(NamedTuple):
    """The parameters; with a further leading axis, of several networks.

    Attributes:
        w: (rules, literals), weights of the AND layer.
        literal_gates: (rules, literals), log-odds of its gates.
        rule_gates: (rules,), log-odds of the gates of the OR layer.
    """

    w: Array
    literal_gates: Array
    rule_gates: Array


def joined(trained: Any, others: Any, of_and_layer: bool) -> Layers:
    """The parameters of the layer that is trained and of the other one."""
    return Layers(*trained, *others) if of_and_layer else Layers(*others, *trained)


def open_gate(log_odds: Array, noise: Array | None = None) -> Array:
    """A hard-concrete gate: drawn with uniform noise, or at its most likely value."""
    if noise is None:
        smooth = jax.nn.sigmoid(log_odds)
    else:
        smooth = jax.nn.sigmoid((jnp.log(noise) - jnp.log1p(-noise) + log_odds) / _TEMPERATURE)
    return jnp.clip(smooth * (_HIGH - _LOW) + _LOW, 0, 1)


def probability_open(log_odds: Array) -> Array:
    """The probability that a gate is not 0."""
    # z > 0 where the smooth value s exceeds -low / (high - low), that is, logit(s) > log(-low /
    # high); and logit(s) is (logit(u) + log_odds) / beta with uniform noise u.
    return jax.nn.sigmoid(log_odds - _TEMPERATURE * np.log(-_LOW / _HIGH))


@jax.custom_vjp
def conjunction(s: Array) -> Array:
    """1{s >= 1}, up to rounding; its gradient is that of s where it can matter, see the module."""
    return (s > 1 - 1e-6).astype(s.dtype)


def _conjunction_forward(s: Array) -> tuple[Array, Array]:
    return conjunction(s), s


def _conjunction_backward(s: Array, slope: Array) -> tuple[Array]:  # Eq. 3
    return (jnp.where((s < 0) | ((s >= 1) & (slope < 0)), 0, slope),)


conjunction.defvjp(_conjunction_forward, _conjunction_backward)


def scores(w: Array, rule_gates: Array, literals: Array) -> Array:
    """sum_j 1{z_j > 0} r_j - 1/2, (rows,), for gated weights (rules, literals) and
    literals (literals, rows).

    The gradient of 1{z > 0} is that of z.
    """
    s = w @ literals - jnp.maximum(w, 0).sum(axis=1)[:, None] + 1  # Eq. 1 and 2
    is_open = rule_gates + jax.lax.stop_gradient((rule_gates > 0) - rule_gates)
    return is_open @ conjunction(s) - 0.5  # Eq. 4 and 5


@dataclass(frozen=True)
class _ListObjective:
    """The penalised loss of each network as a function of one layer; the other
    is among the fixed arrays.
    """

    of_and_layer: bool

    def __call__(self, trained: Array, rows: Array, fixed: Array, step: Array) -> Array:
        weights, literals, target = rows
        others, draws, penalty, n_literals = fixed
        layers = joined(trained, others, self.of_and_layer)

        def value(layers: Layers, noise: Array) -> Array:
            # Column 0 of the noise is for the rule's gate, the others for its literals'.
            w = layers.w * open_gate(layers.literal_gates, noise[:, 1:])
            f = scores(w, open_gate(layers.rule_gates, noise[:, 0]), literals)
            loss = jnp.sum(jnp.where(weights > 0, weights * logistic.value(target, f), 0))
            is_literal = (jnp.arange(w.shape[1]) < n_literals)[None]
            open_literals = probability_open(layers.literal_gates) * is_literal
            # Eq. 7: one for the rule, and the expected share of open gates of its literals.
            sizes = open_literals.sum(axis=1) / n_literals + 1
            return loss + penalty * jnp.mean(sizes * probability_open(layers.rule_gates))

        return jax.vmap(value)(layers, draws[step % len(draws)])


class RuleSet(NamedTuple):
    """The rules of one class, the largest first, and where one of them holds,
    (rows,); how they were found.
    """

    rules: list[list[Condition]]
    rows: Rows
    errors: tuple[float, ...]
    history: list[Step]


class _ListTraining:
    """The data as literals, training and discretisation.

    `may_be` says whether the weight of each literal may be negative, and positive, (2, literals).
    """

    def __init__(
        self,
        data: TrainingData,
        pool: PropositionPool,
        may_be: Rows,
        options: DRNetOptions,
        run: Run,
    ) -> None:
        self.data, self.pool, self.may_be, self.options, self.run = data, pool, may_be, options, run
        self.weights = data.weights / data.weights.sum()
        self.literals = pool.satisfied(data.table).T

    def start(self) -> Layers:
        """Random weights; all gates half open."""
        options, random = self.options, np.random.default_rng(self.options.seed)
        n, width = len(self.pool), bucket(max(len(self.pool), 8))
        shape = (options.restarts, options.max_rules, n)
        w = random.uniform(-1, 1, shape) / np.sqrt(n)
        # A random sign where both are allowed, else the allowed one; 0 where neither is
        negative, positive = self.may_be
        w = np.where(negative & positive, w, np.abs(w) * (positive.astype(int) - negative))
        more = [(0, 0), (0, 0), (0, width - n)]
        literal_gates = np.pad(random.normal(0, 0.01, shape), more)
        return Layers(np.pad(w, more), literal_gates, random.normal(0, 0.01, shape[:2]))

    def fit(self) -> RuleSet:
        """Train the layers alternately."""
        options, run, n = self.options, self.run, len(self.weights)
        if run.deadline.work_left() < 2 * _SECONDS_PER_ENTRY * self.literals.size:
            run.shortened = True
            return self.one_literal()
        layers = self.start()
        more = (0, bucket(max(n, 64)) - n)
        wide = (0, layers.w.shape[2] - len(self.literals))
        rows = (
            np.pad(self.weights, more), np.pad(self.literals, [wide, more]).astype(np.float64),
            np.pad(self.data.target, more, constant_values=1.0),
        )  # fmt: skip
        bounds = self.ends(layers.w.shape[2])
        ends = [options.iterations * turn // _TURNS for turn in range(_TURNS + 1)]
        history: list[Step] = []
        values, training = np.zeros(0), run.child(_TRAINING_SHARE)
        with run:
            run.phase = "search"
            for turn in range(_TURNS):
                if training.stopped():
                    break
                of_and_layer = turn % 2 == 0
                parts = layers[:2], layers[2:]
                trained, others = parts if of_and_layer else parts[::-1]
                random = np.random.default_rng([options.seed, turn])
                # Away from 0 and 1, where the logarithms of the noise are infinite
                shape = (_DRAWS, *layers.w.shape[:2], layers.w.shape[2] + 1)
                draws = random.uniform(1e-6, 1 - 1e-6, shape)
                penalty = options.literal_penalty if of_and_layer else options.rule_penalty
                descents = adam(
                    _ListObjective(of_and_layer), trained, rows,
                    (others, draws, penalty, float(len(self.pool))), n_rows=n,
                    iterations=ends[turn + 1] - ends[turn], learning_rate=options.learning_rate,
                    cosine=False, batch_size=options.batch_size, seed=options.seed + turn,
                    ends=bounds if of_and_layer else None, stopped=training.stopped,
                )  # fmt: skip
                for steps, trained, values in descents:
                    layers = joined(trained, others, of_and_layer)
                    best = float(values.min())
                    history.append(Step(best, options.max_rules, run.seconds()))
                    run.report(ends[turn] + steps, best, options.max_rules)
        run.shortened |= training.stopped()
        return self.finish(layers, values, history)

    def ends(self, width: int) -> tuple[Any, Any] | None:
        """Lower and upper bounds of the parameters of the AND layer, for
        `adam`; None if there are none.
        """
        if self.may_be.all():
            return None
        weights = np.full((2, 1, 1, width), np.inf)
        weights[:, 0, 0, : self.may_be.shape[1]] = np.where(self.may_be, np.inf, 0.0)
        gates = np.full((1, 1, 1), np.inf)
        return (-weights[0], -gates), (weights[1], gates)

    def finish(self, layers: Layers, values: Floats, history: list[Step]) -> RuleSet:
        """The rules of the best network; `values` are the penalised
        losses, empty without training.
        """
        found: list[tuple[list[list[Condition]], Rows]] = []
        # The best first, all if there is time
        for lane in np.argsort(values, kind="stable").tolist():
            if not found or not self.run.stopped():
                found.append(self.rules(jax.tree.map(lambda array, lane=lane: array[lane], layers)))
        positive = self.data.target > 0
        errors = [float(self.weights @ (rows.any(axis=0) != positive)) for _, rows in found]
        sizes = [sum(1 + len(rule) for rule in rules) for rules, _ in found]
        if not found:
            return self.one_literal()
        rules, rows = found[min(range(len(found)), key=lambda lane: (errors[lane], sizes[lane]))]
        if self.run.shortened or self.run.stopped():
            # Networks trained for too short a time may be worse than a single literal.
            short = self.one_literal()
            if self.weights @ (short.rows != positive) < min(errors):
                return short._replace(errors=tuple(errors), history=history)
        order = np.argsort(-(rows @ self.weights), kind="stable")
        ordered, held = [rules[r] for r in order], np.asarray(rows.any(axis=0))
        return RuleSet(ordered, held, tuple(errors), history)

    def one_literal(self) -> RuleSet:
        """The rule of one literal, or its negation, with the fewest errors, if any helps; used if
        there was no time to train. Large data are sampled.
        """
        if not len(self.literals):
            return RuleSet([], np.zeros(len(self.weights), bool), (), [])
        worth, step = self.weights * self.data.target, 1 + self.literals.size // _QUICK
        some = worth[::step]
        gains = self.literals[:, ::step] @ some
        # Weight of the rows of target 1 less that of target -1: on the literal, and off it.
        gains = np.where(self.may_be[::-1], [gains, some.sum() - gains], -np.inf)
        negative, i = np.unravel_index(int(gains.argmax()), gains.shape)
        holds = self.literals[i] ^ bool(negative)
        if worth @ holds <= 0:
            return RuleSet([], np.zeros_like(holds), (), [])
        return RuleSet([[self.literal(int(i), not negative)]], holds, (), [])

    def rules(self, layers: Layers) -> tuple[list[list[Condition]], Rows]:
        """The rules of a network with gates at their most likely values, and where they hold."""
        n = len(self.pool)
        gate = in_x64(open_gate)
        w, is_open = (layers.w * gate(layers.literal_gates))[:, :n], gate(layers.rule_gates) > 0
        rules: list[list[tuple[int, bool]]] = []
        rows: list[Rows] = []
        for weights in w[is_open]:
            on = np.flatnonzero(weights)
            holds = self.literals[on] == (weights[on] > 0)[:, None]
            # A literal is redundant if every row that fails it also fails another one. Gates that
            # are closed have made their weights 0 above.
            kept = needed(holds, [1.0] * len(on))
            rules.append([(int(i), bool(weights[i] > 0)) for i in on[kept]])
            rows.append(holds.all(axis=0))
        covered = np.array(rows, bool).reshape(len(rules), self.literals.shape[1])
        # A rule is redundant if others cover its rows: then its complement is, in a conjunction.
        kept = needed(~covered, [1.0 + len(rule) for rule in rules])
        return [[self.literal(*one) for one in rules[r]] for r in kept], covered[kept]

    def literal(self, index: int, positive: bool) -> Condition:
        """A literal or its negation."""
        (one,) = self.pool.rule(index)
        return one if positive else negated(one, self.data.table)


# Sets of rules as a list


def _class_by_class(
    task: _DRNetTask, options: DRNetOptions, run: Run
) -> tuple[list[tuple[int, RuleSet]], int]:
    """A set for every class but one, with its code, the rarest first; and the class of the
    uncovered rows.
    """
    data = task.data
    classes, codes = data.classes or (), data.codes
    order = np.argsort(np.bincount(codes, data.weights), kind="stable").tolist()
    left = np.arange(len(codes))
    sets: list[tuple[int, RuleSet]] = []
    with run:
        for k, code in enumerate(order[:-1]):
            positive = codes[left] == code
            # Nothing to learn: the earlier sets left no row of this class, or of no other.
            if run.stopped() or positive.all() or not positive.any():
                continue
            part, began = replace(data[left], target=np.where(positive, 1.0, -1.0)), run.seconds()
            name = f"{run.task}, class {classes[code]}"
            child = run.child(1 / (len(order) - 1 - k), name, options.iterations)
            found = _ListTraining(part, task.pool, task.may_say[code], options, child).fit()
            run.shortened |= child.shortened
            history = [replace(step, seconds=began + step.seconds) for step in found.history]
            sets.append((code, found._replace(history=history)))
            left = left[~found.rows]
    rest = left if len(left) else np.arange(len(codes))
    return sets, _most_frequent(codes[rest], data.weights[rest])


def _most_frequent(codes: NDArray[np.integer], weights: Floats) -> int:
    return int(np.bincount(codes, weights).argmax())


def _as_list(
    task: _DRNetTask,
    sets: Sequence[tuple[int, RuleSet]],
    default: int,
    errors: tuple[float, ...] | tuple[tuple[float, ...], ...],
    options: DRNetOptions,
    run: Run,
) -> Fit[RuleList]:
    """The sets, with the codes of their classes, one after the other, then the default."""
    data, classes = task.data, task.data.classes or ()
    rules = [rule for _, found in sets for rule in found.rules]
    labels = np.array([*(code for code, found in sets for _ in found.rules), default], np.int32)
    conjunctions = Conjunctions.build(data.schema, rules, list(map(len, rules)))
    counts, unit = np.zeros((len(labels), len(classes))), effective_row(data.weights)
    first = first_satisfied(conjunctions, data.table)
    np.add.at(counts, (first, data.codes), data.weights)
    decided = counts / unit + 1  # one row of each class, as in `jaxrules.ssrl`
    decided /= decided.sum(axis=1, keepdims=True)
    model = RuleList(conjunctions, labels, decided, options.settings(), counts, unit != 1.0)
    error = float(data.weights @ (labels[first] != data.codes) / data.weights.sum())
    details = DRNetDetails(
        n_literals=len(task.pool), errors=errors, order=tuple(classes[code] for code, _ in sets)
    )
    fit = run.finish(model, error, "min", Status.CONVERGED, details=details)
    history = [step for _, found in sets for step in found.history]
    return replace(fit, history=(*history, Step(error, len(rules), fit.seconds)))


# Literals


def _one_sided(pool: PropositionPool) -> PropositionPool:
    """One of each literal and its negation, which a negative weight expresses."""
    # "x < t" of numbers, "==" of categories (unseen ones satisfy "!="), and "is missing"
    below = np.isneginf(pool.lower) & np.isfinite(pool.upper)
    is_missing = pool.missing & ~pool.unseen
    return pool.take(np.flatnonzero(np.where(pool.is_numeric, below, ~pool.unseen) | is_missing))


def _may_say(constraints: Constraints, pool: PropositionPool, data: TrainingData) -> Rows:
    """Whether rules of each class may use the opposite of a literal, and the
    literal, (classes, 2, literals).
    """
    n_classes = len(data.classes or ())
    if not constraints.monotone:
        return np.ones((n_classes, 2, len(pool)), bool)
    negations = [[negated(pool.rule(i)[0], data.table)] for i in range(len(pool))]
    opposite = Conjunctions.build(pool.schema, negations)
    return np.stack([constraints.allows(rules, n_classes).T for rules in (opposite, pool)], axis=1)


def negated(literal: Condition, table: Table) -> Condition:
    """The negation of a literal: for "x < t" it is "x >= t or missing" if the
    column has missing values.
    """
    assert isinstance(literal.feature, int)
    f = literal.feature
    categories = table.schema.features[f].categories
    if literal.admits_no_number or literal.categories == frozenset():
        return Condition.is_present(f, None if categories is None else len(categories))
    if literal.categories is None:
        return Condition.at_least(f, literal.upper, bool(table.missing_mask(f).any()))
    return Condition.none_of(f, list(literal.categories), len(categories or ()))
