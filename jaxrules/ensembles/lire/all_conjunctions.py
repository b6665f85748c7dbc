"""The best additive rule ensemble over all conjunctions, proved.

Over supports S of conjunctions of at most l propositions, weights a and a free intercept b,

    minimise  L(b + sum_{m in S} a_m r_m) + r/2 |a|^2 + gamma |S|,     r = mu / n,

with the mean loss L. This is LIRE's objective without the penalty on coverage (lambda = 0); the
rules are not given, they are all that the propositions of the data make. Boley et al. ("Better
Short than Greedy", SDM 2021, section 5) name it as open.

**Bound.** For theta with sum 0 (a number per row), Fenchel's inequality as in `bound` gives

    D(theta) = -L*(theta) + sum_m min(0, gamma - w_m),
    w_m = g_m^2 / 2r,  g_m = sum_i theta_i r_m(x_i),

below every objective: the sum runs over all conjunctions, but only those with |g_m| > sqrt(2 r
gamma) count, and `large_sums` finds every one of them. With at most K rules, the K least terms
count. theta is the gradient of the loss at the minimum of the perspective relaxation over a pool.
The conjunctions of the largest |g_m| join the pool until there are none outside it (column
generation). If there are too many to list, theta times s is used, with s the largest number at
which none is left, and -L*(s theta) >= -s L*(theta), because no loss is below 0.

**Screening** (Atamturk and Gomez, "Safe Screening Rules for L0-Regression", ICML 2020, there for
the squared loss; this needs the dual alone). With U the objective of a model that is known, no
better one has a rule m with

    -L*(theta) + gamma - w_m + A > U,      A the least sum of K - 1 terms min(0, gamma - w),

so that a better model consists of conjunctions with w_m >= gamma - L*(theta) + A - U. All of them
are listed, one of those that hold for the same rows or for exactly the other rows, and
branch-and-bound (`bound`) searches this pool. Proved over it is proved over all conjunctions.

**Models** come from local search (`search`) over the pools; a better one screens again.

**Rounding.** theta sums to nearly 0. What is left is charged with the largest intercept of any
model that is better than the constant: its ridge and its penalty are below the constant's loss L_0,
so that |S| <= L_0 / gamma and |a|_1 <= sqrt(|S| 2 L_0 / r). Bounds are lowered by 1e-9 L_0. For the
Poisson loss, all losses are measured from the least value that any score gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike
from jaxrules.ensembles.lire.bound import TOLERANCE, BranchAndBound, Node, Relaxation
from jaxrules.ensembles.lire.moves import ONES
from jaxrules.ensembles.lire.options import default_ridge, default_share, deviance
from jaxrules.ensembles.lire.problem import SupportProblem, make_problem, scaled, stated
from jaxrules.ensembles.lire.search import Incumbent, SupportSearch
from jaxrules.learning.options import ScoreOptions, learner, option, options, or_none
from jaxrules.learning.training import TrainingData, loss_for, one_against_rest
from jaxrules.losses import Loss, MergedRows, best_shift, least_loss, mean_loss, merge_rows, squared
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions, PropositionPool, all_propositions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations, available_memory
from jaxrules.solvers.rule_search.enumeration import large_sums
from jaxrules.solvers.rule_search.space import SearchSpace, check_cut_points
from jaxrules.tools import checks
from jaxrules.tools.bits import Words
from jaxrules.tools.fits import Details, Fit, Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Rules = NDArray[np.int32]

LossName = Literal["logistic", "squared", "exponential", "poisson"]

_ROUNDING = 1e-9
"""Subtracted from every bound, relative to the loss of the best constant."""
_AT_THRESHOLD = 1e-7
"""Conjunctions above the threshold by less than this share do not join the pool any more."""
_PRICED, _ADDED = 20_000, 100
"""The most conjunctions that one pricing lists, and the most that join the pool."""
_ROUNDS = 60
_RELAXED = 1e-6
"""Accuracy of a relaxation in the column generation, relative to the loss of the best constant."""
_BISECTIONS = 8
"""The most solutions of a relaxation that look for the surcharge of `max_rules`."""
_MOST_ENTRIES = 100_000_000
"""Entries of the matrix of branch-and-bound: a node then takes a tenth of a second or two."""
_BYTES = 48.0
"""Of an entry, with the local search's copies."""
_COPIES = 8
"""Conjunctions that are listed for one that is kept: many hold for the same rows."""
_MOST_LISTED = 4_000_000
_GRAM = 2_000_000_000
"""The most steps to the Gram matrix of the squared loss; without it, the loss is like any other."""
_RESTARTS = 10
_SECONDS_PER_ENTRY = 5e-8
"""To copy the matrix for branch-and-bound."""


def _loss(name: str, value: Any) -> Any:
    """A loss by its name; None for that of the target."""
    known = (*get_args(LossName), None)
    return checks.choice(name, value.name if isinstance(value, Loss) else value, known)


@options
class OptimalOptions(ScoreOptions):
    """The options of `optimal`.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; or "logistic", "exponential", "squared" or "poisson".
        global_penalty: gamma, the penalty on a rule, positive. None: that of `jaxrules.lire.fit`;
            for the Poisson loss, the same share of the deviance of the best constant. The larger it
            is, the sooner the optimum is proved.
        l2_penalty: mu, the ridge on the weights of the rules, relative to the sum of the losses,
            positive. None: 8, 1 for the exponential loss, or 8 times the mean for Poisson's. The
            larger it is, the tighter the bound.
        max_rules: the most rules, of each class for classes one-vs-rest; None for any number.
        max_length: the most propositions of a rule. An interval has two.
        max_cut_points: the most cut points per numeric column, at quantiles; None for all values.
            The proof is about the conjunctions that they make.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that some rule must use, each penalised like the others, even with a
            weight of 0.
        max_candidates: the most conjunctions that branch-and-bound searches. If more cannot be
            excluded, those of the largest slope are searched, and the bound stays below the
            objective. None: as many as have a hundred million entries on the distinct rows, if
            memory allows.
        max_nodes: the most nodes of branch-and-bound; None for no limit.
        seed: of the restarts of the local search.
        time_limit: seconds; the best model so far is returned with the bound proved so far when
            they run out, see `jaxrules.Deadline`.
    """

    learner = "lire.optimal"
    elsewhere: ClassVar[Mapping[str, str]] = {
        "local_penalty": "the proof over all conjunctions is of local_penalty=0; jaxrules.lire.fit "
        "takes it, over rules that it is given or extracts"
    }

    loss: LossName | Loss | None = option(_loss, default=None)
    global_penalty: float | None = option(or_none(checks.number), default=None, above=0)
    l2_penalty: float | None = option(or_none(checks.number), default=None, above=0)
    max_rules: int | None = option(or_none(checks.integer), default=None, at_least=1)
    max_length: int = option(checks.integer, default=2, at_least=1)
    max_cut_points: int | None = option(or_none(checks.integer), default=5, at_least=1)
    forbidden: Iterable[str | int] = ()
    required: Iterable[str | int] = ()
    max_candidates: int | None = option(or_none(checks.integer), default=None, at_least=1)
    max_nodes: int | None = option(or_none(checks.integer), default=None, at_least=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimalDetails(Details):
    """What `jaxrules.lire.optimal` reports beside its model.

    Attributes:
        loss: the mean loss, without any penalty.
        global_penalty: gamma.
        l2_penalty: mu.
        n_propositions: the number of propositions from which the conjunctions are made.
        relaxation: the bound of the relaxation over all conjunctions; None if time ran out before
            it was proved.
        n_candidates: the conjunctions that screening could not exclude, one of those that hold for
            the same rows or for exactly the others, and that branch-and-bound searched.
        complete: whether these are all of them.
        nodes: the number of nodes of branch-and-bound.
    """

    loss: float
    global_penalty: float
    l2_penalty: float
    n_propositions: int
    relaxation: float | None
    n_candidates: int
    complete: bool
    nodes: int


@learner(OptimalOptions)
def optimal(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: OptimalOptions
) -> Fit[RuleEnsemble]:
    """The best rule ensemble over all conjunctions, with a proof: minimise mean loss + gamma times
    the number of rules + mu / (2 n) times the sum of the squared weights.

    It is `jaxrules.lire.fit` with ``local_penalty=0`` and ``search="optimal"``, but the rules are
    all conjunctions of at most `max_length` propositions of the data instead of a given pool. See
    `jaxrules.ensembles.lire.all_conjunctions` for the bound and its sources.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> found = optimal(X, X[:, 0] & X[:, 1], global_penalty=0.1)
    >>> print(found.status, len(found.model.conjunctions), found.model.conjunctions.describe(0))
    optimal 1 x0 >= 1 & x1 >= 1

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers or counts, according to the loss, shape (rows,). More than two classes
            are fitted one-vs-rest: an ensemble with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit with `jaxrules.lire.OptimalDetails`. Its bound holds for all models of these
        conjunctions, of which one takes part if several hold for the same rows or for exactly the
        others, and the status is OPTIMAL if the two agree within 5e-6. A status of MAX_ITERATIONS
        says that `max_candidates`, memory or `max_nodes` left a gap. For more than two classes see
        `jaxrules.learning.training.one_against_rest`; objective and bound are means over the
        classes.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for an invalid value of an argument, a required column without a proposition, or
            propositions that do not fit in memory.
    """
    run = options.run()
    data, made = prepared(X, y, sample_weight, options, run)
    return one_against_rest(data, run, partial(_fit_output, made=made, options=options))


def prepared(
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    options: OptimalOptions,
    run: Run,
    **how: bool,
) -> tuple[TrainingData, Propositions]:
    """The data, and the propositions; none if time runs out.

    Args:
        how: of `jaxrules.learning.training.training_data`.
    """
    data = options.training_data(X, y, sample_weight, loss_for(y, options.loss), **how)
    schema, table = data.table.schema, data.table
    constraints = Constraints.of(schema, options.forbidden, options.required)
    constraints.warn_of_constants(table)
    checks.require(
        options.max_rules is None or len(constraints.required) <= options.max_rules,
        f"required names {len(constraints.required)} columns, but max_rules={options.max_rules}; "
        "raise max_rules",
    )
    check_cut_points(table, options.max_cut_points)

    def made(pool: PropositionPool) -> Propositions:
        pool = constraints.pool(pool, table, len(data.outputs))
        space = SearchSpace.of_codes(*pool.cell_codes(table))
        using = np.stack([np.ones(len(pool), bool), *constraints.using(pool)])[1:]
        return Propositions(pool, space, using)

    run.preparing("propositions")
    propositions = run.prepared(
        lambda: made(all_propositions(table, max_cut_points=options.max_cut_points)),
        lambda: made(PropositionPool.of(schema, ())),
    )
    if not run.stopped():
        remedy = "proposition; raise max_cut_points or drop it"
        constraints.require_spoken(propositions.pool, remedy)
    return data, propositions


@dataclass(frozen=True, eq=False)
class Propositions:
    """The propositions from which conjunctions are made.

    Attributes:
        pool: them.
        space: on the rows.
        using: which of them use each required column, (required, propositions).
    """

    pool: PropositionPool
    space: SearchSpace
    using: NDArray[np.bool_]


def _fit_output(
    data: TrainingData, run: Run, *, made: Propositions, options: OptimalOptions
) -> Fit[RuleEnsemble]:
    """The best ensemble of one output."""
    proof = AllConjunctions(data, made, options, run)
    with run:
        proof.generate()
        proof.screen()
        proof.prove()
    model, loss = proof.model()
    details = OptimalDetails(
        loss=loss, global_penalty=proof.gamma * proof.unit, l2_penalty=proof.ridge * proof.unit,
        n_propositions=len(made.pool), relaxation=proof.relaxation, n_candidates=proof.n_candidates,
        complete=proof.complete, nodes=proof.nodes,
    )  # fmt: skip
    # From the model itself: a proof holds for what is returned, or is none.
    squares = float(np.sum(np.asarray(model.weights) ** 2)) / float(data.weights.sum())
    objective = loss + details.global_penalty * len(model.conjunctions)
    objective += details.l2_penalty / 2 * squares
    agreed = np.isclose(objective, proof.stated(proof.best.objective), rtol=1e-7, atol=1e-12)
    status = Status.OPTIMAL if proof.closed and agreed else Status.MAX_ITERATIONS
    bound = min(proof.stated(proof.bound), objective)
    return run.finish(model, objective, "min", status, bound, details=details)


class Pool(NamedTuple):
    """Conjunctions, no two of which hold for the same rows or for exactly the others.

    Attributes:
        rules: their propositions, as of `large_sums`, (rules, max_length).
        bits: the groups of rows for which they hold.
    """

    rules: Rules
    bits: Words


class KnownModel(NamedTuple):
    """A model.

    Attributes:
        rules: the propositions of each rule, (size, max_length).
        bits: of these.
        weights: in signed encoding, (size,).
        intercept: of the signed rules.
        objective: with the floor of the loss subtracted.
    """

    rules: Rules
    bits: Words
    weights: Floats
    intercept: float
    objective: float


class DualPoint(NamedTuple):
    """What one theta proves.

    Attributes:
        value: -L*(theta), lowered by what theta's sum, and rounding, may cost.
        theta: of every group of rows, with the sign of the downhill slope.
        charge: the least sum of `max_rules` - 1 terms min(0, gamma - w) over all conjunctions.
        bound: D(theta).
    """

    value: float
    theta: Floats
    charge: float = -np.inf
    bound: float = -np.inf


class AllConjunctions:
    """The search for the best ensemble of one output, and its proof.

    Attributes:
        gamma, ridge: the penalties gamma and mu, in the unit of the search.
        unit: of the loss; the search has the target in this unit if the loss is Poisson's.
        floor: the least value of the loss, subtracted from all objectives and bounds here; see
            `stated`.
        best: the best model so far.
        bound: proved so far for all models.
        relaxation: the bound before branch-and-bound; None if there is none.
        closed: whether the bound meets the objective.
        n_candidates, complete, nodes: as in `OptimalDetails`.
    """

    def __init__(
        self, data: TrainingData, made: Propositions, options: OptimalOptions, run: Run
    ) -> None:
        self.data, self.made, self.options, self.run = data, made, options, run
        self.space = made.space.groups
        self.pattern = made.space.activations.pattern
        self.length = min(options.max_length, max(len(made.pool), 1))
        shares = data.weights / data.weights.sum()
        self.target, self.unit, self.shift = scaled(data.loss, data.target, shares)
        gamma, ridge = penalties(options, data)
        self.gamma, self.ridge = gamma / self.unit, ridge / self.unit
        n_groups = made.space.activations.n_patterns
        self.merged = merge_rows(data.loss, self.target, shares, self.pattern, n_groups)
        # Of merged rows, it holds for conjunctions of these propositions: all, or none if time ran
        # out.
        whole = self.merged if len(made.pool) else MergedRows(self.target, shares, 0.0)
        self.floor = least_loss(data.loss, whole.target, whole.weight)
        self.price = self.ridge / float(data.weights.sum())  # r
        self.surcharge = 0.0  # see `Relaxation`
        self.relaxed = np.zeros(0), 0.0
        """The solution of the last relaxation, on the first rules of its pool."""
        self.bound, self.closed = 0.0, False
        self.relaxation: float | None = None
        self.n_candidates, self.complete, self.nodes = 0, False, 0
        self.point: DualPoint | None = None
        self.threshold: float | None = None
        self.outside = np.inf
        """The bound on models with a conjunction that is not listed."""
        self.pool = self._distinct(*self._no_rules())
        empty = self._search(self.pool).start_empty()
        self.constant_loss = max(empty.loss, np.finfo(float).tiny)
        self.centre = float(empty.weights[0])
        self.best = KnownModel(*self.pool, np.zeros(0), self.centre, np.inf)

    # Pools

    def _no_rules(self) -> tuple[Rules, Words]:
        return np.zeros((0, self.length), np.int32), self.space.activations.bits[:0]

    def _bits(self, rules: Rules) -> Words:
        """The groups for which conjunctions hold, in blocks of little memory."""
        bits = self.space.activations.bits
        out = np.empty((len(rules), bits.shape[1]), np.uint64)
        for start in range(0, len(rules), 1 << 14):
            some = rules[start : start + (1 << 14)]
            out[start : start + len(some)] = np.bitwise_and.reduce(bits[some], axis=1)
        return out

    def _distinct(self, rules: Rules, bits: Words, first: int = 0) -> Pool:
        """One of each set of equal or complementary conjunctions, those that come first, then the
        shortest; copies that use other required columns are kept.

        Args:
            first: this many, which are distinct, are kept.
        """
        lengths = 1 + (np.diff(np.sort(rules, axis=1), axis=1) != 0).sum(axis=1)
        places = np.arange(len(rules))
        # Of a conjunction and its complement, the one that holds for fewer groups
        size = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        order = np.lexsort((places, size, lengths, np.maximum(places - first + 1, 0) > 0))
        kinds = self.made.using[:, rules].any(axis=2).T if len(self.made.using) else None
        all_of_them = Activations(bits, np.arange(self.space.activations.n_patterns))
        kept, _ = all_of_them.without_copies(order, complements=True, kinds=kinds)
        return Pool(rules[kept], bits[kept])

    def _with(self, pool: Pool, rules: Rules, bits: Words | None = None) -> Pool:
        """The pool and more conjunctions."""
        bits = self._bits(rules) if bits is None else bits
        joint = np.concatenate([pool.rules, rules]), np.concatenate([pool.bits, bits])
        return self._distinct(*joint, len(pool.rules))

    def _problem(self, pool: Pool, merge: bool = False) -> SupportProblem:
        """The search's problem on a pool; with `merge`, on the rows that it distinguishes."""
        loss, pattern, bits = self.data.loss, self.pattern, pool.bits
        n_groups, n_rules = self.space.activations.n_patterns, len(bits)
        if loss.quadratic and n_rules**2 * n_groups > _GRAM:
            loss = replace(squared, quadratic=False)
        activations = Activations(bits, pattern)
        if merge and n_rules:
            ours = Activations(bits, np.arange(n_groups))
            merged = Activations.of_words(ours.words, n_rules)
            activations = Activations(merged.bits, merged.pattern[pattern])
        using = self.made.using[:, pool.rules].any(axis=2) if len(self.made.using) else ()
        problem = make_problem(
            activations, self.data.target, self.data.weights, loss,
            required=list(using) if n_rules else (),
        )  # fmt: skip
        return problem.above(self.floor)

    def _search(self, pool: Pool, merge: bool = False) -> SupportSearch:
        """The local search on a pool; with `merge`, on the rows that it distinguishes. It keeps its
        best model here.
        """
        search = SupportSearch(
            self._problem(pool, merge), self.gamma, 0.0, self.ridge, self.options.max_rules,
            self.run.stopped,
        )  # fmt: skip

        def observe(found: Incumbent) -> None:
            if found.objective < self.best.objective:
                self.best = self.as_known(pool, search, found)
                self._report()

        search.observe = observe
        return search

    def as_known(self, pool: Pool, search: SupportSearch, found: Incumbent) -> KnownModel:
        """A model in terms of propositions."""
        rule = found.columns != ONES
        needed = rule & search.needed(found.columns, found.weights)
        places = search.problem.origin[found.columns[needed]]
        intercept = float(found.weights[~rule].sum())
        rules, bits = pool.rules[places], pool.bits[places]
        return KnownModel(rules, bits, found.weights[needed], intercept, found.objective)

    def _known(self, pool: Pool, search: SupportSearch) -> Incumbent:
        """The best model on a pool that has its rules."""
        place_of = {tuple(rule): place for place, rule in enumerate(pool.rules.tolist())}
        column_of = np.zeros(len(pool.rules), np.int64)
        column_of[search.problem.origin[1:]] = np.arange(1, len(search.problem.origin))
        places = [place_of[tuple(rule)] for rule in self.best.rules.tolist()]
        columns = column_of[np.array(places, np.int64)]
        return search.complete(search.start_from(columns, self.best.weights))

    def _report(self) -> None:
        bound = self.stated(self.bound) if self.bound > 0 else None
        self.run.step(self.stated(self.best.objective), len(self.best.rules), bound=bound)

    def stated(self, value: float) -> float:
        """An objective or bound of the search as one of the fit."""
        return stated(self.data.loss, value + self.floor, self.unit, self.shift)

    @property
    def goal(self) -> float:
        """Models with an objective from this on are not looked for: no better ones, unless
        `threshold` asks for others.
        """
        if self.threshold is not None:
            return self.threshold + _ROUNDING * self.constant_loss
        return self.best.objective - TOLERANCE * abs(self.best.objective)

    # Column generation

    def generate(self) -> None:
        """Solve the relaxation over all conjunctions, and find models over its pool."""
        run, n = self.run, len(self.made.pool)
        run.phase = "start"
        singles = np.repeat(np.arange(n, dtype=np.int32)[:, None], self.length, axis=1)
        point = self._dual_point(np.full(len(self.merged.target), self.centre))
        slopes = np.abs(self.space.activations.covered(point.theta))
        chosen = np.argsort(-slopes, kind="stable")[:_ADDED]
        if len(self.made.using):
            chosen = np.union1d(chosen, np.flatnonzero(self.made.using.any(axis=0)))
        self.pool = self._with(self.pool, singles[np.sort(chosen)])
        weights, intercept = np.zeros(0), self.centre
        for turn in range(_ROUNDS):
            search = self._search(self.pool)
            if turn == 0:
                search.observe(search.complete(search.start_empty()))
            if run.stopped() or not n:
                return
            run.phase = "search"
            if turn in (0, 1, 3):
                self._descend(self.pool)
            run.phase = "relaxation"
            weights, intercept = self._relaxed(search, weights, intercept)
            self.relaxed, used = (weights, intercept), np.flatnonzero(weights)
            held = Activations(self.pool.bits[used], self.pattern).holds()
            scores = intercept + (2.0 * held - 1.0).T @ weights[used]
            if run.stopped() or not self._price(self._dual_point(scores)):
                break
        self._descend(self.pool)

    def _relaxed(
        self, search: SupportSearch, weights: Floats, intercept: float
    ) -> tuple[Floats, float]:
        """The minimum of the relaxation over a pool, from a first guess. If `max_rules` binds, the
        surcharge is set so that it has no more of them.
        """
        relaxed, most = Relaxation(search, self.surcharge), self.options.max_rules
        size = len(relaxed.columns)
        weights = np.append(weights, np.zeros(size - len(weights)))
        free = np.full(size, relaxed.kernels.FREE, np.int8)
        largest = size if most is None else min(size, most)
        low, high = 0.0, self.constant_loss
        for turn in range(_BISECTIONS):
            node = Node(0.0, 0, free, (0, largest), weights, intercept)
            solved = relaxed.solve(node, _RELAXED * self.constant_loss)
            weights, intercept = solved.weights, solved.intercept
            rules = float(solved.share.sum())
            enough = self.surcharge == 0.0 or rules > 0.98 * largest
            if most is None or (rules <= largest and enough) or self.run.stopped():
                break
            low, high = (self.surcharge, high) if rules > largest else (low, self.surcharge)
            if turn < _BISECTIONS - 1:
                # Surcharges differ by orders of magnitude.
                middle = (low * high) ** 0.5 if low > 0 else high / 100
                self.surcharge = middle if middle > 1e-3 * self.gamma else 0.0
                relaxed.charged = relaxed.data._replace(gamma=self.gamma + self.surcharge)
        return weights, intercept

    def _dual_point(self, scores: Floats) -> DualPoint:
        """-L*(theta) for the gradient of the loss at these scores with the best intercept."""
        loss, target, weight = self.data.loss, self.merged.target, self.merged.weight
        scores = scores + best_shift(loss, target, scores, weight)
        value, gradient, _ = loss.terms(target, scores)
        theta = -weight * gradient
        size = self.constant_loss / self.gamma
        reach = abs(self.centre) + float(np.sqrt(2 * size * self.constant_loss / self.price))
        total = float(weight @ value) + self.merged.constant - self.floor + float(theta @ scores)
        total -= abs(float(theta.sum())) * reach + _ROUNDING * self.constant_loss
        return DualPoint(total, theta)

    def _price(self, point: DualPoint) -> bool:
        """Bound the problem by a dual point; add the conjunctions above the threshold to the pool.
        False if there are none outside it.
        """
        entry = float(np.sqrt(2 * self.price * (self.gamma + self.surcharge)))
        found = large_sums(
            self.space, point.theta, entry * (1 - 1e-9), self.length, most=_PRICED,
            stopped=self.run.stopped,
        )  # fmt: skip
        if not np.isfinite(found.threshold):
            return False
        order = np.argsort(-np.abs(found.sums), kind="stable")
        before, rules = len(self.pool.rules), found.propositions[order]
        pool, most = self._with(self.pool, rules), self.options.max_rules
        sums = Activations(pool.bits, self.pattern).covered(point.theta)
        listed, rest = np.sort(self._worth(sums))[::-1], self._worth(found.threshold)
        unlisted = 0
        if most is not None:  # those that are not listed have a w of at most `rest`
            unlisted = max(most - len(listed), 0)
            listed = np.maximum(listed[:most], rest)
        if most is not None or rest <= self.gamma:
            terms, term = np.minimum(0.0, self.gamma - listed), min(0.0, self.gamma - rest)
            charge = float(terms[: None if most is None else most - 1].sum())
            point = point._replace(
                charge=charge + max(unlisted - 1, 0) * term,
                bound=point.value + float(terms.sum()) + unlisted * term,
            )
            if self.point is None or point.bound > self.point.bound:
                self.point = point
            self._prove(point.bound)
        else:
            largest = float(np.abs(found.sums).max())
            self._prove(min(1.0, entry / largest) * point.value - _ROUNDING * self.constant_loss)
        new = before + np.flatnonzero(np.abs(sums[before:]) > entry * (1 + _AT_THRESHOLD))
        if not len(new):
            return False
        new = new[np.argsort(-np.abs(sums[new]), kind="stable")[:_ADDED]]
        kept = np.append(np.arange(before), np.sort(new))
        self.pool = Pool(pool.rules[kept], pool.bits[kept])
        return True

    def _worth(self, sums: Any) -> Any:
        """w = g^2 / 2r."""
        with np.errstate(over="ignore"):
            return np.float64(sums) * sums / (2 * self.price)

    def _prove(self, bound: float) -> None:
        """Note a bound of the relaxation."""
        if bound > self.bound:
            self.bound, self.relaxation = bound, self.stated(bound)
            self._report()

    def _descend(self, pool: Pool, restarts: int = 0) -> None:
        """Local search from the best model, and from perturbations of it."""
        if self.run.stopped():
            return
        search = self._search(pool)
        best = search.descend(self._known(pool, search))
        rng = np.random.default_rng(self.options.seed)
        for restart in range(restarts):
            if self.run.stopped() or not (best.columns != ONES).any():
                return
            start = search.perturb(best, rng, exchange=restart % 2 == 0)
            found = search.descend(start, 1.1 * best.objective)
            best = found if found.objective < best.objective else best

    # Screening

    def screen(self) -> None:
        """List the conjunctions of which a better model may consist."""
        point, run = self.point, self.run
        if point is None or run.stopped() or self.bound >= self.goal:
            return
        self.complete = False
        run.phase = "screening"
        most = self._most_candidates()
        threshold = self._threshold(point)
        found = large_sums(
            self.space, point.theta, threshold * (1 - 1e-9), self.length,
            most=min(_COPIES * most, _MOST_LISTED), stopped=run.stopped,
        )  # fmt: skip
        if not np.isfinite(found.threshold):
            return
        # The rules of the best model and of the relaxation come first, as they are written.
        weights, intercept = self.relaxed
        weights = np.append(weights, np.zeros(len(self.pool.rules) - len(weights)))
        first = np.flatnonzero((weights != 0) | self._in_best(self.pool))
        begun = Pool(self.pool.rules[first], self.pool.bits[first])
        self.relaxed = weights[first], intercept
        pool = self._with(begun, found.propositions)
        self.pool, left_out = self._largest(pool, point, most)
        left_out = max(left_out, found.threshold if found.threshold > threshold else 0.0)
        self.outside = self._with_at_most(point, left_out) if left_out > threshold else self.goal
        self.complete, self.n_candidates = left_out <= threshold, len(self.pool.rules)

    def _threshold(self, point: DualPoint) -> float:
        """The |g| below which no conjunction is in a better model."""
        least = point.value + self.gamma + point.charge - self.goal  # w
        return float(np.sqrt(2 * self.price * max(least, 0.0)))

    def _with_at_most(self, point: DualPoint, slope: float) -> float:
        """The bound on models with a conjunction of at most this |g|."""
        return max(self.bound, point.value + point.charge + self.gamma - self._worth(slope))

    def _most_candidates(self) -> int:
        n_groups = self.space.activations.n_patterns
        by_memory = available_memory() / 2 / (_BYTES * n_groups)
        wanted = self.options.max_candidates or max(1000, _MOST_ENTRIES // n_groups)
        return int(max(1, min(wanted, by_memory)))

    def _in_best(self, pool: Pool) -> NDArray[np.bool_]:
        """Which rules the best model has."""
        ours = set(map(tuple, self.best.rules.tolist()))
        return np.array([tuple(rule) in ours for rule in pool.rules.tolist()], bool)

    def _largest(self, pool: Pool, point: DualPoint, most: int) -> tuple[Pool, float]:
        """At most this many conjunctions, those of the best model and of the largest |g|, and the
        largest |g| that is left out.
        """
        most = max(most, len(self.best.rules))
        if len(pool.rules) <= most:
            return pool, 0.0
        sums = np.abs(Activations(pool.bits, self.pattern).covered(point.theta))
        order = np.argsort(-np.where(self._in_best(pool), np.inf, sums), kind="stable")
        kept = np.sort(order[:most])
        weights, intercept = self.relaxed
        self.relaxed = weights[kept[kept < len(weights)]], intercept
        return Pool(pool.rules[kept], pool.bits[kept]), float(sums[order[most]])

    # Proof

    def prove(self) -> None:
        """Search the listed conjunctions: local search, screening again, branch-and-bound."""
        run, point = self.run, self.point
        if not len(self.made.pool) and not run.stopped():  # nothing but the constant
            self.bound, self.closed = self.best.objective, True
            return
        if point is None or not self.n_candidates or run.stopped():
            self.closed = self.bound >= self.goal
            return
        run.phase = "search"
        before = self.best.objective
        self._descend(self.pool, _RESTARTS)
        if self.complete and self.best.objective < before:
            sums = np.abs(Activations(self.pool.bits, self.pattern).covered(point.theta))
            kept = self._in_best(self.pool) | (sums >= self._threshold(point) * (1 - 1e-9))
            kept[: len(self.relaxed[0])] = True
            self.pool = Pool(self.pool.rules[kept], self.pool.bits[kept])
            self.outside, self.n_candidates = self.goal, len(self.pool.rules)
        if run.stopped():
            self.closed = self.bound >= self.goal
            return
        run.phase = "bound"
        search = self.tree_search()
        if not self.in_time(search):
            return
        tree = BranchAndBound(
            search, self.known(search), self._bounded, self.surcharge, self.guess(),
            run.deadline.work_left,
        )  # fmt: skip
        tree.run(self.options.max_nodes)
        self.nodes = tree.nodes
        search.observe(tree.best)
        self.bound = max(self.bound, min(tree.bound, self.outside))
        self.closed = self.bound >= self.goal or (tree.closed and self.outside >= self.goal)

    def tree_search(self) -> SupportSearch:
        """The search of branch-and-bound on the listed conjunctions."""
        search = self._search(self.pool, merge=True)
        # No loss is below 0: a model that is looked for has no more rules than this.
        most = int(self.goal / self.gamma) + 1
        search.most = most if search.most is None else min(search.most, most)
        return search

    def in_time(self, search: SupportSearch) -> bool:
        """Whether time is left to copy the matrix for branch-and-bound."""
        seconds = search.problem.columns.size * _SECONDS_PER_ENTRY
        enough = seconds <= self.run.deadline.work_left()
        self.run.shortened |= not enough
        return enough

    def known(self, search: SupportSearch) -> Incumbent:
        """The best model on the listed conjunctions."""
        return self._known(self.pool, search)

    def guess(self) -> tuple[Floats, float]:
        """Weights of the listed conjunctions and an intercept from the last relaxation."""
        weights, intercept = self.relaxed
        return np.append(weights, np.zeros(len(self.pool.rules) - len(weights))), intercept

    def _bounded(self, bound: float) -> None:
        """A bound of branch-and-bound."""
        bound = min(bound, self.outside)
        if self.best.objective - bound < 0.99 * (self.best.objective - self.bound):
            self.bound = bound
            self._report()

    # The model

    def model(self, known: KnownModel | None = None) -> tuple[RuleEnsemble, float]:
        """The best model, or another one, with 0/1 rules, and its mean loss."""
        data, loss, one = self.data, self.data.loss, known or self.best
        # b (2 r - 1) = 2 b r - b
        weights = 2 * one.weights
        intercept = one.intercept + self.shift - float(one.weights.sum())
        held = Activations(one.bits, self.pattern).holds()
        scores = (intercept + weights @ held)[self.pattern]
        gamma, ridge = self.gamma * self.unit, self.ridge * self.unit
        settings = self.options.settings(loss=loss, global_penalty=gamma, l2_penalty=ridge)
        model = RuleEnsemble(
            self.conjunctions(one.rules.tolist()), weights[:, None], np.array([intercept]), None,
            loss.link, settings, loss.name,
        )  # fmt: skip
        return model, mean_loss(loss, data.target, scores, data.weights)

    def conjunctions(self, rules: Iterable[Sequence[int]]) -> Conjunctions:
        """Conjunctions of propositions, which may be repeated."""
        each = [sorted(set(rule)) for rule in rules]
        return self.made.pool.conjunctions(each, self.data.schema)


def penalties(options: OptimalOptions, data: TrainingData) -> tuple[float, float]:
    """gamma and mu."""
    gamma, ridge = options.global_penalty, options.l2_penalty
    gamma = default_share(data) * deviance(data) if gamma is None else gamma
    return gamma, default_ridge(data) if ridge is None else ridge
