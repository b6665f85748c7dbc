"""LTRNet: rules on sparse linear combinations of columns, all learned together by gradient descent.

Behzadimanesh, Le Bodic, Webb and Boley, "Interpretable Representation Learning for Additive Rule
Ensembles", Sec. 3.3. A network of three layers (Fig. 3) is a rule ensemble with soft steps:

    propositions   p_ij = sigmoid(w_ij'x - t_ij)
    conjunctions   q_i = sigmoid(a (2 s_i + 1)),   s_i = sum_j v_ij p_ij - sum_j |v_ij|
    output         f = b_0 + sum_i b_i q_i

With v in {0, 1}, the balancing bias sum_j |v_ij| makes s_i = 0 if all chosen propositions hold
and at most -1 if one fails; the modified sigmoid (Fig. 4a) has its step between, at -1/2. A
W-shaped penalty min(|v|, |v - 1|) (Fig. 4b) drives v to 0 or 1, L1 penalties drive w and b to
0. Several random starts, under one or more strengths of the penalties, are trained side by side
in one compiled program.

Then the network is discretised: v is rounded to 0 or 1, sigmoids become steps, and entries of w
below a tenth of the largest become 0. Parts that change no training prediction are dropped, and the
weights b are refitted: the paper does not refit, and this helps most of all. The paper's model is
the start of least penalised training risk after this. By default, the rules are instead chosen
among those of all starts, as many as cross-fitted weights call for
(`jaxrules.ensembles.selection`): the model then depends less on the seed. On few rows networks fit
noise, which no weights undo; there, networks of every fold say how many rules to take.

Under `monotone` half of the rules may only raise the score, the others only lower it. A projection
after every step gives w of constrained columns and b the signs for that, and keeps v >= 0. The
network is then as monotone as its rules (`jaxrules.rules.constraints`); refits constrain only the
weights of rules that use constrained columns. With more than two classes there is a third kind of
rule, which uses no constrained column and contributes to all classes.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(200, 3))
>>> y = np.where(2 * X[:, 0] - X[:, 1] > 0.5, 3.0, -1.0)
>>> fit(X, y, max_rules=1).model.conjunctions.describe(0)
'2 x0 - x1 <= 0.6'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import EncodedColumn, Schema, TableLike, conform
from jaxrules.ensembles.finetune import FinetuneOptions, finetune
from jaxrules.ensembles.noise import Ridge, first_ridge, mostly_repeated
from jaxrules.ensembles.oblique import Standardised, n_encoded, readable
from jaxrules.ensembles.selection import close_to_best, gains, per_complexity
from jaxrules.ensembles.size import (
    PER_RULE,
    Worth,
    best_size,
    has_likelihood,
    negative_log_likelihood,
    price_of_rule,
)
from jaxrules.learning.cross_validation import along_paths, fit_of_best_setting, of_finished, spread
from jaxrules.learning.options import Folds, ScoreOptions, learner, option, options, or_none
from jaxrules.learning.training import (
    TrainingData,
    by_content,
    equal_rows,
    location_and_scale,
    loss_for,
    model_loss,
    sample_in_time,
    warn_if_worse,
)
from jaxrules.losses import (
    Array,
    Loss,
    LossOption,
    best_constant,
    derivatives,
    logistic,
    merge_rows,
    of_rows,
)
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import needed
from jaxrules.solvers.adam import Descent, adam
from jaxrules.solvers.linear.refit import refit_outputs
from jaxrules.solvers.shapes import bucket
from jaxrules.tools import checks
from jaxrules.tools.bits import distinct, pack
from jaxrules.tools.fits import Details, Fit, Status, Step
from jaxrules.tools.float64 import full_precision
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]
Training = Literal["soft", "straight_through"]

_SMALLEST_SHAPE = (64, 4)
"""Rows and columns of the smallest problem that is compiled; smaller ones are padded."""
_SMALL_ENTRIES = 0.1
"""Entries of w below this share of the largest become 0."""
_TINY = float(np.finfo(float).tiny)
_FOLDS = 5
"""For the held-out losses that say how many rules of all starts to take."""
_FEW_ROWS, _ROWS_OF_COLUMN = 1000, 25
"""Up to so many rows, and so many for each column, folds train networks of their own."""
_SHARE_OF_FOLDS = 0.8
"""Of the time that is left after training, for these networks."""
_BLOCK = 4096
"""Rows of which propositions are evaluated at a time, for the processor's cache."""
_SAMPLE = 256
"""Rows from which the first thresholds are drawn."""
_TRAINING_SHARE = 0.8
"""Share of the time limit for training; the rest is for making rules of the network."""

_count = partial(checks.integer, at_least=1, at_most=10**6)

PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "max_rules": 10,
        "max_length": 5,
        "iterations": 250,
        "restarts": 6,
        "training": "soft",
        "combine_starts": False,
        "prune": False,
        "refit": False,
    }
)
"""The method of the paper to the letter, ``fit(X, y, **PAPER)``. It names no optimiser, step size
or steepness; these are jaxrules' here. Two strengths of its penalties have to be chosen, by `path`
or `cross_validate`. Its squared loss is half of jaxrules'.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class LTRNetDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        soft_model: the network of the start of least risk, as it was trained; for rules of several
            starts, the network that these rules form, with the weights of the model.
        risks: the penalised training risk of the rules of every start; NaN if time ran out.
        restart: the start of least such risk.
        l2_penalty: the ridge of the last refit.
        chosen: why the data chose this ridge; empty if it was given.
        sample: the number of rows that the network was trained on; None for all.
    """

    soft_model: SoftModel
    risks: tuple[float, ...]
    restart: int
    l2_penalty: float
    chosen: str = ""
    sample: int | None = None


@options
class _LTRNetShared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; a name; or a function of (y, score) made of JAX operations, convex and twice
            differentiable in the score.
        max_rules: the number of rules of the network, r.
        max_length: the number of propositions of each rule, k_r.
        training: "soft", as in the paper; or "straight_through", with steps in the forward pass of
            both layers and only the gradient of the sigmoids. This leaves no gap between the
            network and its rules, which have less risk at less complexity on the paper's data sets.
        steepness: a of the modified sigmoid.
        iterations: steps of Adam.
        learning_rate: of the first step; it falls to 0 along a cosine. None is 0.03.
        batch_size: rows drawn for each step, at most; None for all.
        restarts: random starts.
        combine_starts: choose at most `max_rules` rules among those of all starts, as many as lower
            the loss of rows that their weights have not seen; with few rows for each column, of
            rows that their networks have not seen, either (docs/defaults.md, "Few rows"). False
            takes the rules of one start, as the paper does; so do training="soft" and refit=False.
        prune: drop what changes no training prediction: propositions that the rest of their rule
            implies, rules that hold everywhere or nowhere, and the longer of two rules that hold on
            the same rows. False drops only rules without propositions or weight, as the paper does.
        refit: refit the weights of the rules at the end; False keeps the trained weights.
        l2_penalty: ridge on the refitted weights, against the mean loss. None: by the noise, as in
            `jaxrules.lltboost`; starts and rules are chosen with 1e-3.
        forbidden: columns, by name or position, that no rule may use.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.rules.constraints`.
        seed: of the starts and of the batches.
        time_limit: seconds from call to return, None for no limit. If time runs out, the network is
            discretised as it is.
    """

    learner = "ltrnet"

    loss: LossOption = None
    max_rules: int = option(_count, default=10)
    max_length: int = option(_count, default=5)
    training: Training = option(checks.choice, default="straight_through", known=get_args(Training))
    steepness: float = option(checks.number, default=3.0, above=0)
    iterations: int = option(_count, default=250)
    learning_rate: float | None = option(
        or_none(checks.number), default=None, above=0, at_most=1000
    )
    batch_size: int | None = option(or_none(checks.integer), default=1024, at_least=1)
    restarts: int = option(_count, default=10)
    combine_starts: bool = option(checks.flag, default=True)
    prune: bool = option(checks.flag, default=True)
    refit: bool = option(checks.flag, default=True)
    l2_penalty: float | None = option(or_none(checks.penalty), default=None)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None

    @property
    def straight_through(self) -> bool:
        return self.training == "straight_through"

    @property
    def combines(self) -> bool:
        return self.combine_starts and self.straight_through and self.refit

    def data(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> TrainingData:
        """The checked data: more than two classes only under the logistic loss."""
        loss = loss_for(y, self.loss)
        return self.training_data(X, y, sample_weight, loss, binary=loss != logistic)


@options
class LTRNetOptions(_LTRNetShared):
    """The options of `fit`.

    Attributes:
        l1_penalty: strength of the L1 penalty on w and on b, against the mean loss.
        binary_penalty: strength of the W-shaped penalty on v, likewise.
        init: a fitted rule ensemble to tune instead of random starts: the same as
            `jaxrules.finetune` with these iterations, learning_rate (None is 0.01), batch_size and
            l2_penalty, and with the model's loss and missing. It must keep `forbidden` and
            `monotone`.
    """

    l1_penalty: float = option(checks.penalty, default=2e-3)
    binary_penalty: float = option(checks.penalty, default=1e-2)
    init: RuleEnsemble | None = None


@options
class LTRNetPathOptions(_LTRNetShared):
    """The options of `path`.

    Attributes:
        l1_penalties: strengths of the L1 penalty on w and on b, against the mean loss. There is one
            fit per pair of penalties, in order, this one changing slowest. Memory and time grow
            with the number of pairs.
        binary_penalties: strengths of the W-shaped penalty on v, likewise.
    """

    l1_penalties: Sequence[float] = option(checks.penalties, default=(1e-4, 1e-3, 1e-2, 1e-1, 1.0))
    binary_penalties: Sequence[float] = option(checks.penalties, default=(1e-2,))

    def pairs(self) -> list[dict[str, float]]:
        """The penalties of every fit, by name."""
        return [
            {"l1_penalty": l1, "binary_penalty": binary}
            for l1 in self.l1_penalties
            for binary in self.binary_penalties
        ]


@options
class LTRNetGrid(Folds, LTRNetPathOptions):
    """The options of `cross_validate`."""


@learner(LTRNetOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LTRNetOptions
) -> Fit[RuleEnsemble]:
    """Train the network, and turn it into a rule ensemble.

    Numbers are standardised (also numeric targets of the squared loss), and every category is an
    indicator; a proposition may combine both. Weights and thresholds are given on the user's own
    scale, with the fewest digits that change the rule on no training row. In training, a missing
    number counts as the mean. In the model, either all rows with a missing number in a proposition
    satisfy it or none, by majority.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0.5, "yes", "no")
    >>> result = fit(X, y, max_rules=2, iterations=100, restarts=2)
    >>> len(result.details.risks)
    2

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers for "squared" and user losses, counts for "poisson", classes for "logistic" and
            "exponential", shape (rows,). More than two classes (only under "logistic") share the
            rules of one network, with a softmax.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the mean loss of the rules plus l2_penalty / 2 sum b^2, with
        `LTRNetDetails`. The steps of the history are chunks of training, their objective the
        penalised risk of the best network; the last is that of the model.

    Raises:
        ValueError: for bad values in any argument, or a target that the loss is not defined for.
        TypeError: for arguments of the wrong type.
    """
    if options.init is not None:
        return _tuned(options.init, X, y, sample_weight, options)
    return _fits(X, y, sample_weight, [options])[0]


@learner(LTRNetPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LTRNetPathOptions
) -> list[Fit[RuleEnsemble]]:
    """One Fit for every pair of penalties, trained side by side: what `fit` returns for each, up to
    rounding.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0.5, "yes", "no")
    >>> fits = path(X, y, max_rules=2, l1_penalties=[1e-3, 1e-2], iterations=100, restarts=2)
    >>> [dict(one.model.options)["l1_penalty"] for one in fits]
    [0.001, 0.01]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits, in the order of the pairs.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    return _fits(
        X, y, sample_weight, [options.to(LTRNetOptions, **pair) for pair in options.pairs()]
    )


@learner(LTRNetGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LTRNetGrid
) -> Fit[RuleEnsemble]:
    """Choose the penalties by cross-validation (see `jaxrules.learning.cross_validation`); fit on
    all rows.

    There is one `path` per fold. The risk of more than two classes is the log-loss of the softmax.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0.5, "yes", "no")
    >>> small = {"max_rules": 2, "iterations": 100, "restarts": 2}
    >>> result = cross_validate(X, y, l1_penalties=[1e-3, 1e-2], n_folds=2, **small)
    >>> result.details.cross_validation.risks.shape
    (2, 2)

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    options = replace(options, loss=loss_for(y, options.loss))  # the same in all folds
    run, grid = options.run(), options.pairs()
    data = by_content(options.data(X, y, sample_weight))
    walk = along_paths(path, [options.to(LTRNetPathOptions)], of_finished)
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid, walk, run, otherwise=len(grid) // 2
    )


def _tuned(
    init: RuleEnsemble,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    options: LTRNetOptions,
) -> Fit[RuleEnsemble]:
    """The model, fine-tuned with its own loss; `finetune` checks that it is monotone."""
    checks.instance("init", init, RuleEnsemble, "fit.model")
    bound = Constraints.of(init.schema, options.forbidden)
    terms = () if init.linear is None else init.linear.feature.tolist()
    checks.require(
        bound.allows(init.conjunctions, 2).all() and bound.forbidden.isdisjoint(terms),
        "init uses a forbidden column; allow the column, or pass another model",
    )
    rate = 0.01 if options.learning_rate is None else options.learning_rate
    read = replace(options, missing=init.schema.missing)
    ridge = first_ridge(options.l2_penalty, read.data(X, y, sample_weight))
    own = options.to(FinetuneOptions, loss=None, learning_rate=rate, l2_penalty=ridge)
    return finetune.with_options(init, X, y, sample_weight, own)


def _fits(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, each: Sequence[LTRNetOptions]
) -> list[Fit[RuleEnsemble]]:
    """A fit for each of these options, which differ in their penalties."""
    options = each[0]
    run = options.run(total=options.iterations)
    data = options.data(X, y, sample_weight)
    constraints = Constraints.of(data.table.schema, options.forbidden, (), options.monotone)
    constraints.warn_of_constants(data.table)
    sample = sample_in_time(data, run, options.seed, n_encoded(data.table))
    part = run if sample is None else run.child(0.5)
    # `finish` then compares the network with one rule on a single column.
    part.shortened = sample is not None
    rows = by_content(data if sample is None else sample)  # batches are drawn by position
    rows = replace(rows, table=constraints.blanked(rows.table))
    fits = _Training(rows, constraints, options, part).fits(each)
    return fits if sample is None else [_on_all_rows(one, data, sample, run) for one in fits]


def _on_all_rows(
    fit: Fit[RuleEnsemble], data: TrainingData, sample: TrainingData, run: Run
) -> Fit[RuleEnsemble]:
    """The fit on a sample of the rows, with its objective on all rows."""
    details: Any = fit.details
    squares = float(np.sum(np.square(fit.model.weights)))
    objective = model_loss(fit.model, data) + details.l2_penalty / 2 * squares
    step = Step(objective, len(fit.model.conjunctions), run.seconds())
    return replace(
        fit, objective=objective, history=(*fit.history, step), seconds=run.seconds(),
        details=replace(details, sample=len(sample.weights)),
    )  # fmt: skip


# The network


class Net(NamedTuple):
    """The parameters of a network; with a further leading axis, of several.

    Attributes:
        w: (rules, propositions, columns).
        t, v: (rules, propositions).
        b: (outputs, rules).
        b0: (outputs,).
    """

    w: Array
    t: Array
    v: Array
    b: Array
    b0: Array


def modified_sigmoid(z: Array, steepness: float | Array) -> Array:
    """1 / (1 + exp(-a (2 z + 1))) for steepness a: near 1 at z = 0, near 0 for z <= -1."""
    return jax.nn.sigmoid(steepness * (2 * z + 1))


def w_shaped(v: Array) -> Array:
    """min(|v|, |v - 1|)."""
    return jnp.minimum(jnp.abs(v), jnp.abs(v - 1))


def stepped(holds: Array, soft: Array) -> Array:
    """A step with the gradient of its soft form (straight-through)."""
    return soft + jax.lax.stop_gradient(holds - soft)


def forward(
    net: Net, columns: Array, steepness: float | Array, straight_through: bool = False
) -> Array:
    """The scores of rows, (outputs, rows), from standardised columns, (columns, rows)."""
    z = jnp.einsum("rkd,dn->rkn", net.w, columns) - net.t[..., None]  # w_ij'x - t_ij
    p = jax.nn.sigmoid(z)
    if straight_through:
        p = stepped(z >= 0, p)
    # The balancing bias: s_i is 0 if all chosen propositions hold, at most -1 if one fails.
    s = jnp.einsum("rk,rkn->rn", net.v, p) - jnp.abs(net.v).sum(axis=1)[:, None]
    q = modified_sigmoid(s, steepness)
    if straight_through:
        # Where the modified sigmoid is 1/2: s_i = -1/2, halfway between "all hold" and "one fails".
        q = stepped(2 * s + 1 >= 0, q)
    return net.b @ q + net.b0[:, None]


def penalty(net: Net, l1: Array | float, binary: Array | float) -> Array:
    """The penalties of the training risk: W-shaped on v, L1 on w and b."""
    return binary * w_shaped(net.v).sum() + l1 * (jnp.abs(net.w).sum() + jnp.abs(net.b).sum())


@dataclass(frozen=True)
class _LTRNetObjective:
    """The penalised training risk of every network."""

    loss: Loss
    straight_through: bool

    def __call__(self, nets: Net, rows: Array, fixed: Array, step: Array) -> Array:
        weights, columns, target = rows

        def risk(net: Net, weights: Array, l1: Array, binary: Array, steepness: Array) -> Array:
            scores = forward(net, columns, steepness, self.straight_through)
            losses = of_rows(self.loss, target.T, scores.T)
            return jnp.sum(jnp.where(weights > 0, weights * losses, 0)) + penalty(net, l1, binary)

        own = None if weights.ndim == 1 else 0
        return jax.vmap(risk, in_axes=(0, own, 0, 0, 0))(nets, weights, *fixed)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SoftModel:
    """The network as it was trained, before discretisation: ``soft_model(X)`` is differentiable in
    all arrays and in X.

        jax.grad(lambda soft: jnp.mean((y - soft(X)) ** 2))(fit.details.soft_model)

    With training="straight_through" its scores are those of steps, and its gradients those of the
    sigmoids.

    Attributes:
        net: the parameters, for standardised columns and the user's target.
        centre, scale: (columns,) means and standard deviations of the columns.
        encoded: the feature, or category of a feature, of each column.
        schema: the features.
        steepness: a of the modified sigmoid.
        straight_through: whether both layers are steps in the forward pass.
    """

    net: Net
    centre: Floats
    scale: Floats
    encoded: tuple[EncodedColumn, ...] = field(metadata={"static": True})
    schema: Schema = field(metadata={"static": True})
    steepness: float = field(metadata={"static": True})
    straight_through: bool = field(metadata={"static": True})

    def shifted(self, by: float) -> SoftModel:
        """The network with this number added to every score."""
        return replace(self, net=self.net._replace(b0=self.net.b0 + by))

    def __call__(self, X: TableLike) -> Array:
        """The scores of rows, (rows,) or (rows, outputs).

        Args:
            X: data with the columns of the fit. If traced, an array in column order with categories
                as codes.
        """
        if not isinstance(X, jax.core.Tracer):
            X = np.stack(conform(X, self.schema).columns, axis=1)
        raw = jnp.asarray(X).T
        values = [
            raw[f] if code is None else (raw[f] == code).astype(float) for f, code in self.encoded
        ]
        # The inner `where` is for gradients: NaN in the branch not taken would reach them as 0 NaN.
        columns = [
            jnp.where(jnp.isnan(x), 0, (jnp.where(jnp.isnan(x), 0, x) - centre) / scale)
            for x, centre, scale in zip(values, self.centre, self.scale, strict=True)
        ]
        net = jax.tree.map(jnp.asarray, self.net)
        stacked = jnp.stack(columns) if columns else jnp.zeros((0, raw.shape[1]))
        with full_precision():
            scores = forward(net, stacked, self.steepness, self.straight_through).T
        return scores if scores.shape[1] > 1 else scores[:, 0]


# Training and discretisation


class _Proposition(NamedTuple):
    """w'x >= t of standardised columns, whether rows with a missing number satisfy it, and the rows
    that do.
    """

    w: Floats
    t: float
    admits: bool
    holds: Rows


class _Signs(NamedTuple):
    """The signs of weights, 0 for any, and which may differ from 0, (rules, outputs)."""

    signs: NDArray[np.int_]
    free: Rows


def _size(rule: list[_Proposition]) -> int:
    """Its propositions and the columns that they use."""
    return sum(1 + int(np.count_nonzero(one.w)) for one in rule)


@dataclass(frozen=True, eq=False)
class _Rules:
    """A discretised network.

    Attributes:
        rules: the propositions of every rule.
        rows: (rules, rows), where the rules hold.
        weights, intercept: (rules, outputs) and (outputs,).
        risk: the penalised training risk.
        held_out: the mean loss of as many rules on rows that their networks have not seen, if it
            is known.
    """

    rules: list[list[_Proposition]]
    rows: Rows
    weights: Floats
    intercept: Floats
    risk: float
    held_out: float | None = None

    @property
    def sizes(self) -> NDArray[np.int_]:
        """The complexity of each rule."""
        return np.array([1 + _size(rule) for rule in self.rules], int)

    def take(self, chosen: Sequence[int]) -> _Rules:
        """Some of the rules."""
        rules = [self.rules[r] for r in chosen]
        return replace(self, rules=rules, rows=self.rows[chosen], weights=self.weights[chosen])


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows of the same class on which the same rules hold. They share their score and loss, so that
    a few groups stand for a million rows. If y holds numbers, every row is a group.

    Attributes:
        first: a row of each group, (groups,).
        of: the group of every row, (rows,).
        target: (outputs, groups).
        weights: the summed weights, (groups,).
    """

    first: NDArray[np.intp]
    of: NDArray[np.intp]
    target: Floats
    weights: Floats

    def held(self, rows: Rows) -> Rows:
        """Where rules hold, (rules, groups), from where they hold among the rows."""
        return rows if len(self.first) == len(self.of) else rows[:, self.first]

    @property
    def among(self) -> tuple[Floats, Floats]:
        """What rules are refitted to."""
        return self.target, self.weights


class _Folds(NamedTuple):
    """Equal rows share a fold, and count as one: copies of a row in several folds would show the
    rules the rows that they are judged by.

    Attributes:
        first: a row of each set of equal ones, (sets,).
        weights: of the sets, with a total of one.
        of: the fold of every row.
    """

    first: NDArray[np.intp]
    weights: Floats
    of: NDArray[np.int64]


class _Training:
    """Data in the form of the network, training and discretisation. Targets of the squared loss are
    standardised.
    """

    def __init__(
        self, data: TrainingData, constraints: Constraints, options: LTRNetOptions, run: Run
    ) -> None:
        self.data, self.options, self.run = data, options, run
        self.columns = Standardised.of(data.table, data.weights)
        self.weights = data.weights / data.weights.sum()
        self.first_ridge = first_ridge(options.l2_penalty, data)
        self.centre, self.scale = location_and_scale(data)
        self.loss, self.target = data.row_loss, (data.outputs - self.centre) / self.scale
        self.began = False
        # The bits of the class codes, (bits, rows).
        bits = np.arange((len(data.classes or "x") - 1).bit_length())
        self.class_bits = (data.codes >> bits[:, None] & 1 if len(bits) else bits).astype(bool)
        self.directions = self.columns.directions(constraints)
        # For each rule of each start: rises (1) or falls (-1) with constrained columns, or uses
        # none (0).
        # Starts are shifted against each other: even with one rule, both kinds are tried.
        kinds = np.array([1, -1] if len(self.target) == 1 else [1, -1, 0])
        shifted = np.arange(options.restarts)[:, None] + np.arange(options.max_rules)
        self.sides = kinds[shifted % len(kinds)]
        # The effect of a rising rule on each output: raise it, lower it, or none.
        self.effects = np.zeros(len(self.target), int)
        # The first class falls when the last rises; a single output is the last: 1.
        self.effects[0], self.effects[-1] = -1, 1

    @cached_property
    def constants(self) -> Floats:
        """The best network without rules, (outputs,)."""
        target = self.target.T if len(self.target) > 1 else self.target[0]
        return np.atleast_1d(best_constant(self.loss, target, self.weights))

    def starts(self, n_pairs: int) -> Net:
        """Random networks, the same for each pair of penalties: most rows satisfy every
        proposition, so that conjunctions hold somewhere.
        """
        options, random = self.options, np.random.default_rng(self.options.seed)
        shape = (options.restarts, options.max_rules, options.max_length)
        n_columns, outputs = len(self.columns.values), len(self.target)
        w = random.normal(size=(*shape, n_columns))
        if self.directions.any():
            signs = self.directions * self.sides[..., None, None]
            w = np.where(self.directions, np.abs(w) * signs, w)
        sample = self.columns.values[:, random.choice(len(self.weights), _SAMPLE, p=self.weights)]
        share = random.uniform(0.05, 0.5, (*shape, 1))
        # t is the quantile of w'x that 5 to 50 % of the rows of a sample fall below.
        place = (share * _SAMPLE).astype(int)
        t = np.take_along_axis(np.sort(w @ sample, axis=-1), place, axis=-1)[..., 0]
        v = random.uniform(size=shape)
        b = random.normal(scale=0.3, size=(options.restarts, outputs, options.max_rules))
        if self.directions.any():
            sides = self.sides[:, None]
            b = np.where(sides, np.abs(b) * sides * self.effects[:, None], b)
        more = bucket(max(n_columns, _SMALLEST_SHAPE[1])) - n_columns
        b0 = np.tile(self.constants, (options.restarts, 1))
        nets = Net(np.pad(w, [(0, 0)] * 3 + [(0, more)]), t, v, b, b0)
        return Net(*(np.concatenate([part] * n_pairs) for part in nets))

    def ends(self, n_pairs: int, width: int) -> tuple[Net, Net] | None:
        """Lower and upper bounds of the parameters of all networks, for `adam`; None if there are
        none.
        """
        if not self.directions.any():
            return None
        directions = np.pad(self.directions, (0, width - len(self.directions)))
        sides = np.tile(self.sides, (n_pairs, 1))
        w, b = sides[..., None, None] * directions, sides[:, None] * self.effects[:, None]
        # v >= 0: a rule with v_ij < 0 would rise where its proposition fails, against its side.
        anything, positive = np.full((1, 1, 1), -np.inf), np.zeros((1, 1, 1))

        def least(side: int) -> Net:  # 0 on both sides for constrained columns of rules of neither
            bound_w = np.where((directions != 0) & (side * w >= 0), 0.0, -np.inf)
            bound_b = np.where((sides[:, None] != 0) & (side * b >= 0), 0.0, -np.inf)
            return Net(bound_w, anything, positive if side > 0 else anything, bound_b, anything[0])

        return least(1), jax.tree.map(np.negative, least(-1))

    def fits(self, each: Sequence[LTRNetOptions]) -> list[Fit[RuleEnsemble]]:
        """The best start under the penalties of each."""
        run, starts = self.run, self.options.restarts
        # A positive time limit, however short, leaves time for one rule; a limit of 0, or Ctrl-C
        # before any work, gives the constant model.
        self.began = run.shortened or bool(run.deadline.seconds) or not run.stopped()
        training, values = run.child(_TRAINING_SHARE), np.full(len(each) * starts, np.nan)
        histories: list[list[Step]] = [[] for _ in each]
        nets = self.starts(len(each))
        # Of each network, as in folds
        weights = np.tile(self.weights, (len(values), 1)) if self.few_rows else self.weights
        with run:
            run.phase = "search"
            for descent in self.descents(nets, each, weights, training.stopped):
                nets, values = descent.parameters, descent.values
                # From losses of the standardised target to those of the user's.
                risks = self.scale**2 * values.reshape(len(each), -1).min(axis=1)
                for history, risk in zip(histories, risks.tolist(), strict=True):
                    history.append(Step(risk, self.options.max_rules, run.seconds()))
                run.report(descent.steps, float(risks.min()), self.options.max_rules)
        run.shortened |= training.stopped()
        run.preparing("rules")
        held_out = self.held_out(each) if self.few_rows and not run.stopped() else None
        run.shortened |= self.few_rows and held_out is None
        lanes = [Net(*parts) for parts in zip(*nets, strict=True)]
        fits = []
        for p, one in enumerate(each):
            own = slice(p * starts, (p + 1) * starts)
            known = None if held_out is None else held_out[p]
            fits.append(self.finish(lanes[own], values[own], one, histories[p], known))
        return fits

    def descents(
        self,
        nets: Net,
        each: Sequence[LTRNetOptions],
        weights: Floats,
        stopped: Callable[[], bool],
    ) -> Iterator[Descent]:
        """The training of networks, pair by pair of penalties, with all starts of each; `weights`
        of the rows, for all networks or (networks, rows).
        """
        options, n = self.options, len(self.weights)
        more = [(0, bucket(max(n, _SMALLEST_SHAPE[0])) - n)]
        wider = nets.w.shape[-1] - len(self.columns.values)
        columns = np.pad(self.columns.values, [(0, wider), *more])
        weights = np.pad(weights, [(0, 0)] * (weights.ndim - 1) + more)
        rows = (weights, columns, np.pad(self.target, [(0, 0), *more]))
        pairs = np.array([(one.l1_penalty, one.binary_penalty) for one in each])
        l1, binary = np.repeat(pairs, options.restarts, axis=0).T
        return adam(
            _LTRNetObjective(self.loss, options.straight_through), nets, rows,
            (l1, binary, np.full(len(l1), options.steepness)), n_rows=n,
            iterations=options.iterations, learning_rate=options.learning_rate or 0.03,
            batch_size=options.batch_size, seed=options.seed,
            ends=self.ends(len(each), nets.w.shape[-1]), stopped=stopped,
        )  # fmt: skip

    def finish(
        self,
        nets: Sequence[Net],
        values: Floats,
        options: LTRNetOptions,
        history: list[Step],
        held_out: Floats | None,
    ) -> Fit[RuleEnsemble]:
        """The rules of the best network on the user's own scale; without time, of the network of
        least `values`, or one rule if that is better. `held_out`: see `combined`.
        """
        data = self.data
        candidates: dict[int, _Rules] = {}
        # The networks of least training risk come first, as time may end; one is always made.
        for i in np.argsort(values, kind="stable").tolist() if history else ():
            if candidates and self.run.stopped():
                break
            candidates[i] = self.discretised(nets[i], options.l1_penalty)
        # Ties go by the number of the start, not by the order in which they were made.
        chosen = min(candidates, key=lambda i: (candidates[i].risk, i), default=0)
        combined = None
        if options.combines and len(candidates) > 1:
            combined = self.combined(list(candidates.values()), held_out)
        if not history or (self.run.shortened and combined is None):
            short = self.one_rule()
            if not history or short.risk < candidates[chosen].risk:
                combined = short
        best = combined or candidates[chosen]
        conditions, rows = self.readable(best)
        groups = self.groups(rows)
        held = groups.held(rows)
        weights, intercept, ridge = self.last_refit(best, held, groups)
        # y = centre + scale f. Loss and ridge both have the unit of y^2: the ridge stays the same.
        weights, intercept = self.scale * weights, self.scale * intercept + self.centre
        kept = np.flatnonzero(weights.any(axis=1))  # a sign constraint may have made a weight 0
        sizes = [len(rule) for rule in best.rules]
        rules = Conjunctions.build(data.schema, conditions, sizes).take(kept)
        weights, held = weights[kept], held[kept]
        model = RuleEnsemble(
            rules, weights, intercept, None,
            self.loss.link, ridge.kept(options.settings(loss=data.loss)), data.loss.name,
        )  # fmt: skip
        risk = self.risk(held, weights, intercept, (data.outputs[:, groups.first], groups.weights))
        objective = risk + ridge.value / 2 * float((weights**2).sum())
        if combined:
            net = self.network([combined.rules[r] for r in kept], weights.T, intercept)
        else:
            net = nets[chosen]
            net = net._replace(b=self.scale * net.b, b0=self.scale * net.b0 + self.centre)
        known = [candidates[i].risk if i in candidates else np.nan for i in range(len(nets))]
        details = LTRNetDetails(
            soft_model=self.soft_model(net), restart=chosen,
            risks=tuple(self.scale**2 * risk for risk in known),
            l2_penalty=ridge.value, chosen=ridge.chosen,
        )  # fmt: skip
        fit = self.run.finish(model, objective, "min", Status.CONVERGED, details=details)
        last = Step(fit.objective, len(kept), fit.seconds)
        return warn_if_worse(replace(fit, history=(*history, last)), data, risk)

    def readable(self, best: _Rules) -> tuple[list[list[Condition]], Rows]:
        """The conditions of rules on the user's own scale, and the rows on which the rules hold."""
        conditions: list[list[Condition]] = []
        rows = np.ones_like(best.rows)
        # `among` is a view: `&=` leaves in `rows` where the readable rule holds.
        for rule, among in zip(best.rules, rows, strict=True):
            conditions.append([])
            for one in rule:
                condition, holds = readable(
                    self.columns, self.data.table, one.w, -one.t, one.admits, among,
                    self.run.stopped,
                )  # fmt: skip
                conditions[-1].append(condition)
                among &= holds
        return conditions, rows

    def soft_model(self, net: Net) -> SoftModel:
        """A network for the user's target, without the padding of its columns."""
        columns, options = self.columns, self.options
        return SoftModel(
            net._replace(w=net.w[..., : len(columns.values)]), columns.centre, columns.scale,
            columns.encoded, self.data.schema, options.steepness, options.straight_through,
        )  # fmt: skip

    @cached_property
    def folds(self) -> _Folds | None:
        """None if a class has a single row, which no fold can hold out."""
        first, equal = equal_rows(self.data)
        n, labels = len(first), None
        if self.data.classes is not None:
            labels = self.data.codes[first]
        if (n if labels is None else int(np.bincount(labels).min())) < 2:
            return None
        fold_of = spread(n, labels, min(_FOLDS, n), self.options.seed)[equal]
        return _Folds(first, np.bincount(equal, self.weights), fold_of)

    @property
    def few_rows(self) -> bool:
        """Whether so few rows are left for each column that networks learn noise."""
        most = min(_FEW_ROWS, _ROWS_OF_COLUMN * len(self.columns.values))
        many = len(self.weights) > 2 * most  # repeated rows, if few are distinct
        if many or not self.options.combines or self.folds is None:
            return False
        weights = self.folds.weights * self.data.weights.sum()
        return len(weights) <= most and not mostly_repeated(weights)

    def held_out(self, each: Sequence[LTRNetOptions]) -> list[Floats] | None:
        """The losses of 0, 1, ... rules of networks that were trained without the row's fold, for
        each of these options, (rules + 1, rows); None if there is no time.
        """
        assert self.folds is not None
        run, folds = self.run.child(_SHARE_OF_FOLDS), range(int(self.folds.of.max()) + 1)
        # As many networks as in the whole training, so that they share its program
        starts = max(1, self.options.restarts // len(folds))
        parts = [self.without(self.folds.of == fold, starts, run) for fold in folds]
        begin = [part.starts(len(each)) for part in parts]
        nets = Net(*(np.concatenate(same) for same in zip(*begin, strict=True)))
        weights = np.repeat([part.weights for part in parts], len(each) * starts, axis=0)
        of_folds = [*each] * len(folds)
        for descent in parts[0].descents(nets, of_folds, weights, run.stopped):
            nets = descent.parameters
        lanes = (Net(*lane) for lane in zip(*nets, strict=True))
        losses = np.empty((len(each), self.options.max_rules + 1, len(self.weights)))
        for fold, part in zip(folds, parts, strict=True):
            out = self.folds.of == fold
            for of_size, one in zip(losses, each, strict=True):
                own = [part.discretised(net, one.l1_penalty) for net in islice(lanes, starts)]
                found = None if run.stopped() else part.steps(own)
                if found is None:
                    return None
                for k in range(self.options.max_rules + 1):
                    rules = found[0][min(k, len(found[0]) - 1)]
                    scores = rules.rows[:, out].T @ rules.weights + rules.intercept
                    of_size[k, out] = of_rows(self.loss, self.target.T[out], scores)
        return [*losses]

    def without(self, out: Rows, starts: int, run: Run) -> _Training:
        """The same with other rows of weight 0, and fewer starts."""
        part, kept = copy(self), self.weights * ~out
        for name in ("constants", "folds"):
            vars(part).pop(name, None)
        part.weights, part.run, part.sides = kept / kept.sum(), run, self.sides[:starts]
        part.options = replace(self.options, restarts=starts)
        return part

    def combined(self, candidates: Sequence[_Rules], held_out: Floats | None) -> _Rules | None:
        """Rules chosen among those of all starts, at least one, with their weights; None if there
        are none, no folds, or no time.

        Args:
            held_out: the losses of 0, 1, ... rules of networks that have not seen a row, if known.
        """
        found = self.steps(candidates) if self.folds is not None else None
        if found is None or self.folds is None or len(found[0]) == 1:
            return None
        (steps, groups), (first, weights, fold_of) = found, self.folds
        # One loss per distinct row, with the weight of all its copies: these are no further
        # evidence, and must not shrink the standard error.
        if held_out is not None:
            losses = held_out[: len(steps), first]
            means, place = losses @ weights, 0
            # If the constant is best, one rule; else the most rules that are close to the best, as
            # networks of four fifths of few rows are worse than those of all.
            if means.argmin() > 0:
                place = close_to_best(losses[1:], weights, weights**2, len(first))[-1]
            size = 1 + min(place, self.worth_keeping(steps, groups))
            return replace(steps[size], held_out=float(means[size]))
        parted = self.groups(steps[-1].rows, fold_of)
        fitted = self.cross_fitted(steps[1:], parted, fold_of[parted.first])
        if fitted is None:
            return None
        totals, squares = (
            np.bincount(parted.of[first], w, len(parted.first)) for w in (weights, weights**2)
        )
        place = close_to_best(fitted, totals, squares, len(first))[0]
        return steps[1 + min(place, self.worth_keeping(steps, groups))]

    def steps(self, candidates: Sequence[_Rules]) -> tuple[list[_Rules], _Groups] | None:
        """The best 0, 1, ... of the rules of all starts, chosen one at a time, and the groups of
        the most; None if there is no time.
        """
        pool = self.distinct(candidates)
        ridge, sides = self.first_ridge, self.signs(pool.rules)
        signs = np.where(sides.free, sides.signs, 2)
        sizes, order = pool.sizes, list[int]()
        empty = pool.take(order)
        groups = self.groups(empty.rows)
        held = groups.held(empty.rows)
        b, b0 = self.refitted([], held, empty.weights, empty.intercept, groups.among)
        steps = [replace(empty, weights=b, intercept=b0)]  # the weights of 0, 1, ... rules
        while len(order) < min(self.options.max_rules, len(pool.rules)):
            if self.run.stopped():
                return None
            scores = held.T @ steps[-1].weights + steps[-1].intercept
            each = derivatives(self.loss, groups.target.T, scores)
            first, second = (self.weights * one.T[:, groups.of] for one in each)
            found = gains(pool.rows, order, first, second, ridge, signs)
            if not found.any():
                break
            order.append(int(per_complexity(found, sizes).argmax()))
            begin = pool.take(order)
            # The refit starts at the weights before, with 0 for the new rule.
            weights = np.vstack([steps[-1].weights, np.zeros((1, len(self.target)))])
            groups = self.groups(begin.rows)
            held, before = groups.held(begin.rows), steps[-1].intercept
            b, b0 = self.refitted(begin.rules, held, weights, before, groups.among)
            steps.append(replace(begin, weights=b, intercept=b0))
        return steps, groups

    def worth_keeping(self, steps: Sequence[_Rules], groups: _Groups) -> int:
        """The place, among the steps with rules, of the last whose rules gain more than a smaller
        ridge would (`jaxrules.ensembles.size`): near-copies of a step also lower the cross-fitted
        risk, as weights of a single rule are held by the ridge.
        """
        if not has_likelihood(self.data.loss):
            return len(steps) - 2
        target = groups.target.T if len(self.target) > 1 else groups.target[0]
        row_weights = groups.weights * self.data.weights.sum()

        def scored(one: _Rules, b: Floats, b0: Floats) -> tuple[Floats, float]:
            scores = groups.held(one.rows).T @ b + b0
            scores = scores if len(b0) > 1 else scores[:, 0]
            return scores, negative_log_likelihood(self.loss, target, scores, row_weights)

        worth: list[Worth] = []
        for m, (before, after) in enumerate(pairwise(steps)):
            _, old = scored(before, before.weights, before.intercept)
            scores, new = scored(after, after.weights, after.intercept)
            relaxed = old
            if m:
                ridge = self.first_ridge * m / (m + 1)
                held, b, b0 = groups.held(before.rows), before.weights, before.intercept
                b, b0 = self.refitted(before.rules, held, b, b0, groups.among, ridge)
                _, relaxed = scored(before, b, b0)
            # Cross-fitting leaves the noise of many rows out already.
            price = price_of_rule(self.loss, target, scores, row_weights, most=PER_RULE)
            worth.append(Worth(relaxed - new, old - new, price))
        return best_size([worth[: k + 1] for k in range(len(worth))])[0]

    def distinct(self, candidates: Sequence[_Rules]) -> _Rules:
        """All rules of networks; of those on the same, or exactly the other, rows the shortest."""
        parts = [one for one in candidates if one.rules]
        if not parts:
            return candidates[0].take([])
        whole = _Rules(
            [rule for one in parts for rule in one.rules],
            np.concatenate([one.rows for one in parts]),
            np.concatenate([one.weights for one in parts]),
            candidates[0].intercept,
            np.nan,
        )
        kept: dict[Any, int] = {}
        for r in np.argsort(whole.sizes, kind="stable").tolist():
            held = whole.rows[r]
            if held.any() and not held.all():
                # A rule and its complement have the same key. The shortest come first and stay.
                kept.setdefault(((held ^ held[0]).tobytes(), self.side(whole.rules[r])), r)
        return whole.take(sorted(kept.values()))

    def network(self, rules: list[list[_Proposition]], b: Floats, b0: Floats) -> Net:
        """The network of rules: v is 1 for their propositions, 0 for what fills them up."""
        shape = (len(rules), self.options.max_length)
        w, t, v = np.zeros((*shape, len(self.columns.values))), np.zeros(shape), np.zeros(shape)
        for i, rule in enumerate(rules):
            for j, one in enumerate(rule):
                w[i, j], t[i, j], v[i, j] = one.w, one.t, 1.0
        return Net(w, t, v, b, b0)

    def cross_fitted(
        self, steps: Sequence[_Rules], groups: _Groups, fold_of: NDArray[np.int64]
    ) -> Floats | None:
        """The losses of rules whose weights are fitted on the other folds, (steps, groups); None if
        there is no time.

        Args:
            fold_of: the fold of every group.
        """
        losses = np.zeros((len(steps), len(fold_of)))
        folds = np.arange(int(fold_of.max()) + 1)
        for k, one in enumerate(steps):
            # Where the same rules hold, scores are equal: few distinct rows stand for all.
            held = groups.held(one.rows)
            first, merged, target, weights = self.merged(held, fold_of == folds[:, None], groups)
            rows = held[:, first]
            scores = np.empty((len(target), len(first)))
            for fold in folds:
                if self.run.stopped():
                    return None
                out = fold_of[first] == fold
                among = (target, weights * ~out)
                b, b0 = self.refitted(one.rules, rows, one.weights, one.intercept, among)
                scores[:, out] = b.T @ rows[:, out] + b0[:, None]
            losses[k] = of_rows(self.loss, groups.target.T, scores.T[merged])
        return losses

    def merged(
        self, rows: Rows, folds: Rows, groups: _Groups
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, Floats]:
        """Rows of one fold on which the same rules hold, as one: the first of each, the number of
        every row's, and their targets and weights. All rows if the loss forbids it.
        """
        if not self.loss.mergeable:
            same = np.arange(len(groups.weights))
            return same, same, groups.target, groups.weights
        first, number = distinct(pack(np.vstack([rows, folds]).T))
        target, weights, _ = merge_rows(
            self.loss, groups.target.T, groups.weights, number, len(first)
        )
        return first, number, target.T, weights

    def groups(self, rows: Rows, fold_of: NDArray[np.int64] | None = None) -> _Groups:
        """The groups of rows on which these rules hold, or of such rows of a fold."""
        if self.data.classes is None:
            every = np.arange(len(self.weights))
            return _Groups(every, every, self.target, self.weights)
        folds = fold_of == np.arange(_FOLDS)[:, None] if fold_of is not None else rows[:0]
        first, of = distinct(pack(np.vstack([rows, folds, self.class_bits]).T))
        return _Groups(first, of, self.target[:, first], np.bincount(of, self.weights))

    def discretised(self, net: Net, l1: float) -> _Rules:
        """The rules of a network."""
        rules: dict[Any, tuple[list[_Proposition], Rows, Floats]] = {}
        intercept, chosen, n = net.b0, net.v >= 0.5, len(self.weights)  # v rounded
        w = net.w[..., : len(self.columns.values)]
        size = np.abs(w)
        w = np.where(size >= _SMALL_ENTRIES * size.max(axis=2, keepdims=True, initial=0), w, 0)
        used = w.any(axis=2)
        # A proposition without columns is 0 >= t. If t <= 0 it always holds, and simply goes.
        never = (chosen & ~used & (net.t > 0)).any(axis=1)  # 0 >= t
        taken = chosen & used & ~never[:, None]
        # Taken rule by rule below, in the order in which `taken` lists them.
        propositions = iter(self.propositions(w[taken], net.t[taken]))
        for i in np.flatnonzero(~never):
            b = net.b[:, i]
            rule = list(islice(propositions, int(taken[i].sum())))
            holds = np.array([one.holds for one in rule], bool).reshape(len(rule), n)
            if self.options.prune:
                sizes = [float(np.count_nonzero(one.w)) for one in rule]
                rule = [rule[j] for j in needed(holds, sizes)]
            held = np.logical_and.reduce(holds, axis=0)
            key = (held.tobytes(), self.side(rule)) if self.options.prune else i
            if not rule:  # it always holds
                intercept = intercept + b
            elif key in rules:  # on the same rows: the weights add up
                shorter = min(rule, rules[key][0], key=_size)
                rules[key] = (shorter, held, rules[key][2] + b)
            elif b.any() and (held.any() or not self.options.prune):
                rules[key] = (rule, held, b)
        parts, rows, weights = zip(*rules.values(), strict=True) if rules else ((), (), ())
        return self.weighed(list(parts), np.array(rows, bool), np.array(weights), intercept, l1)

    def propositions(self, w: Floats, t: Floats) -> list[_Proposition]:
        """w'x >= t for each row of w; the majority of the rows with a missing number, counted as
        the mean, decides for all of them.
        """
        values, missing = self.columns.values, self.columns.missing
        holds = np.empty((len(w), len(self.weights)), bool)
        for k in range(0, len(self.weights), _BLOCK):
            holds[:, k : k + _BLOCK] = w @ values[:, k : k + _BLOCK] >= t[:, None]
        found = []
        for one, threshold, held in zip(w, t.tolist(), holds, strict=True):
            admits = False
            if len(missing):
                lost = missing[one != 0].any(axis=0)
                admits = bool(self.weights[lost] @ (2.0 * held[lost] - 1) > 0)
                held[lost] = admits
            found.append(_Proposition(one, threshold, admits, held.copy()))
        return found

    def one_rule(self) -> _Rules:
        """The best cut of a single column, if any; used if there was no time to train."""
        b0 = self.constants
        # Residuals of the constant: a rule's weight has the sign of their sum.
        gradients = self.weights * (self.target - (self.target @ self.weights)[:, None])
        signs = self.effects[:, None] * self.directions
        found = self.columns.best_cut(gradients, signs) if self.began else None
        if found is None:
            return self.weighed([], np.zeros((0, 0), bool), np.zeros((0, 0)), b0, 0.0)
        w = np.where(np.arange(len(self.columns.values)) == found[0], 1.0, 0.0)
        [rule] = self.propositions(w[None], np.array([found[1]]))
        # Least squares of the target on the rule: covariance over variance.
        share = float(self.weights @ rule.holds)
        covariance = self.target @ (self.weights * (rule.holds - share))
        slope = covariance / max(share * (1 - share), _TINY)
        if self.side([rule]):
            slope = np.where(signs[:, found[0]] * slope > 0, slope, 0.0)
        return self.weighed([[rule]], rule.holds[None], slope[None], b0 - share * slope, 0.0)

    def weighed(
        self, rules: list[list[_Proposition]], rows: Rows, b: Floats, b0: Floats, l1: float
    ) -> _Rules:
        """Rules with their final weights, and their risk."""
        rows, b = rows.reshape(-1, len(self.weights)), b.reshape(-1, len(b0))
        groups = self.groups(rows)
        held = groups.held(rows)
        b, b0 = self.refitted(rules, held, b, b0, groups.among)
        risk = self.risk(held, b, b0, groups.among)
        # The W-shaped penalty is 0 for rounded v.
        size = sum(np.abs(one.w).sum() for rule in rules for one in rule) + np.abs(b).sum()
        return _Rules(rules, rows, b, b0, risk + l1 * float(size))

    def side(self, rule: list[_Proposition]) -> int:
        """Whether a rule rises or falls with constrained columns, or does not use them: 1, -1 or
        0.
        """
        return int(np.sign(sum(float(one.w @ self.directions) for one in rule)))

    def signs(self, rules: list[list[_Proposition]]) -> _Signs:
        """What the weights of rules may be."""
        sides = np.array([[self.side(rule)] for rule in rules], int).reshape(-1, 1)
        return _Signs(sides * self.effects, (sides == 0) | (self.effects != 0))

    def last_refit(self, best: _Rules, held: Rows, groups: _Groups) -> tuple[Floats, Floats, Ridge]:
        """The final weights and intercept of rules that hold in these groups, and their ridge."""
        b, b0 = self.refitted(best.rules, held, best.weights, best.intercept, groups.among)
        if not self.options.refit or self.options.l2_penalty is not None:
            return b, b0, Ridge(self.first_ridge)
        target = self.target.T if len(b0) > 1 else self.target[0]
        risk = self.risk(held, b, b0, groups.among)
        ridge = Ridge.of_rules(self.loss, target, self.data.weights, risk, len(held), best.held_out)
        return *self.refitted(best.rules, held, b, b0, groups.among, ridge.value), ridge

    def risk(self, rows: Rows, b: Floats, b0: Floats, among: tuple[Floats, Floats]) -> float:
        """The mean loss of rules that hold for these rows; `among`: their targets and weights."""
        target, weights = among
        return float(weights @ of_rows(self.loss, target.T, rows.T @ b + b0))

    def refitted(
        self,
        rules: list[list[_Proposition]],
        rows: Rows,
        b: Floats,
        b0: Floats,
        among: tuple[Floats, Floats],
        ridge: float | None = None,
    ) -> tuple[Floats, Floats]:
        """The best weights of the rules, if refitted; without a ridge under that of the start.

        Args:
            among: the targets and weights of the rows.
        """
        if not self.options.refit:
            return b, b0
        (target, row_weights), (signs, free) = among, self.signs(rules)
        return refit_outputs(
            self.loss, target.T, rows.T,
            l2_penalty=self.first_ridge if ridge is None else ridge,
            sample_weight=row_weights, start=(b, b0), free=free, signs=signs,
        )  # fmt: skip
