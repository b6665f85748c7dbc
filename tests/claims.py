"""What fits claim, and what independent code finds: objectives from the model, optima by brute
force.

One function per learner, (settings, fit) -> claims, for the noisy target of the loss.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import xlogy
from supports import best_support

import jaxrules as jr
from problems import (
    CONJUNCTIONS,
    DESIGN,
    LENGTHS,
    LOSSES,
    N_ROWS,
    NOISY,
    POOL,
    Floats,
    Rows,
    age,
    coded,
    colour,
    size,
)


@dataclass(frozen=True)
class Claim:
    """What a fit states, and what independent code finds.

    Attributes:
        stated, recomputed: an objective, by the fit and from its model.
        bound: what the fit proves about every other solution.
        optimum: of all solutions, by brute force or another solver; None where that is too much.
        sense: "min" or "max".
    """

    stated: float
    recomputed: float
    bound: float | None = None
    optimum: float | None = None
    sense: Literal["min", "max"] = "min"


Settings = Mapping[str, Any]
Claims = Iterator[Claim]


# Rule ensembles


def rows_of(model: jr.RuleEnsemble | jr.RuleList) -> Rows:
    """Where the rules of the model hold, by the meaning of their
    conditions, shape (rows, rules).
    """
    columns = (size, age, np.searchsorted(["a", "b", "c"], colour))

    def holds(condition: jr.Condition) -> Rows:
        if isinstance(condition.feature, int):
            values = columns[condition.feature]
        else:  # a direction: numbers have the code -1
            terms = zip(
                *(
                    getattr(condition.feature, name)
                    for name in ("features", "weights", "categories")
                ),
                strict=True,
            )
            values = sum(
                weight * (columns[f] if f < 2 else columns[f] == code) for f, weight, code in terms
            )
        if condition.feature == 2:
            return np.isin(values, list(condition.categories or ()))
        above = values >= condition.lower if condition.lower_closed else values > condition.lower
        below = values <= condition.upper if condition.upper_closed else values < condition.upper
        return np.where(np.isnan(values), condition.missing, above & below)

    everywhere = np.ones(N_ROWS, bool)
    rules = [np.logical_and.reduce([everywhere, *map(holds, rule)]) for rule in model.conjunctions]
    return np.stack(rules, axis=1) if rules else np.zeros((N_ROWS, 0), bool)


def linear_values(model: jr.RuleEnsemble) -> Floats:
    """The clipped columns of the linear terms, NaN where they are missing, shape (rows, terms)."""
    if model.linear is None:
        return np.zeros((N_ROWS, 0))
    return np.clip(
        np.column_stack([size, age])[:, model.linear.feature],
        model.linear.lower,
        model.linear.upper,
    )


def norm_of_linear_terms(model: jr.RuleEnsemble) -> float:
    """sum |b|, on the scale of a rule."""
    if model.linear is None:
        return 0.0
    return float(
        np.abs(model.linear.coefficients[:, 0]) @ np.nanstd(linear_values(model), axis=0) / 0.4
    )


def mean_loss(model: jr.RuleEnsemble, loss: str) -> float:
    scores = model.intercept[0] + rows_of(model) @ model.weights[:, 0]
    if model.linear is not None:
        scores = scores + np.nan_to_num(linear_values(model)) @ model.linear.coefficients[:, 0]
    return float(LOSSES[loss].value(coded(LOSSES[loss].target), scores).mean())


def rulefit(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Mean loss + l1_penalty (sum |a| + sum |b|), b on the scale of a rule."""
    model, loss, penalty = fit.model, settings["loss"], fit.details["l1_penalty"]
    norm = np.abs(model.weights).sum() + norm_of_linear_terms(model)
    small = settings["rules"] is not None and not settings.get("linear_terms")
    optimum = l1_optimum(loss, "pool", penalty, 0.0) if small else None
    yield Claim(fit.objective, mean_loss(model, loss) + penalty * norm, fit.bound, optimum)


def lltboost(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Mean loss + l2_penalty / 2 sum w^2, over the rows that the weights were fitted on."""
    model, loss = fit.model, LOSSES[settings["loss"]]
    used = (
        np.ones(N_ROWS, bool)
        if settings.get("refit_on_all_rows", True)
        else ~fit.details["validation_rows"]
    )
    scores = model.intercept[0] + rows_of(model) @ model.weights[:, 0]
    mean = loss.value(coded(loss.target), scores)[used].mean()
    ridge = fit.details["l2_penalty"]
    yield Claim(fit.objective, mean + ridge / 2 * float((model.weights**2).sum()))


def ltrnet(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Mean loss + l2_penalty / 2 sum w^2."""
    yield Claim(
        fit.objective,
        mean_loss(fit.model, settings["loss"])
        + fit.details["l2_penalty"] / 2 * float((fit.model.weights**2).sum()),
    )


def glrm(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Mean loss + sum_k (rule_penalty + condition_penalty length_k) |w_k|."""
    model, loss, penalty = fit.model, settings["loss"], settings["rule_penalty"]
    length = {rows.tobytes(): n for rows, n in zip(CONJUNCTIONS.T, LENGTHS, strict=True)}
    prices = np.array([penalty + penalty / 5 * length[rows.tobytes()] for rows in rows_of(model).T])
    recomputed = mean_loss(model, loss) + prices @ np.abs(model.weights[:, 0])
    if settings.get("linear_terms"):
        yield Claim(fit.objective, recomputed + penalty * norm_of_linear_terms(model))
    else:
        yield Claim(
            fit.objective, recomputed, fit.bound, l1_optimum(loss, "all", penalty, penalty / 5)
        )


@functools.cache
def l1_optimum(loss: str, columns: Literal["pool", "all"], penalty: float, price: float) -> float:
    """Least mean loss + sum_k (penalty + price length_k) |w_k| with a free intercept, by a general
    convex solver.
    """
    import cvxpy as cp

    y = coded(LOSSES[loss].target)
    rules, lengths = (
        (POOL, np.zeros(POOL.shape[1])) if columns == "pool" else (CONJUNCTIONS[:, 1:], LENGTHS[1:])
    )
    weights, intercept = cp.Variable(rules.shape[1]), cp.Variable()
    scores = rules.astype(float) @ weights + intercept
    losses = {
        "logistic": lambda: cp.logistic(-cp.multiply(y, scores)),
        "squared": lambda: cp.square(y - scores),
        "exponential": lambda: cp.exp(-cp.multiply(y, scores)),
        "poisson": lambda: cp.exp(scores) - cp.multiply(y, scores),
    }[loss]()
    paid = cp.multiply(penalty + price * lengths, cp.abs(weights))
    return float(
        cp.Problem(cp.Minimize(cp.sum(losses) / N_ROWS + cp.sum(paid))).solve(solver=cp.CLARABEL)
    )


def lire(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Mean loss + gamma |supp| + lambda mean coverage of the support + the ridge on the weights."""
    model, loss = fit.model, settings["loss"]
    gamma, lam = settings["global_penalty"], settings["local_penalty"]
    chosen = rows_of(model)[:, model.weights[:, 0] != 0]
    ridge = fit.details["l2_penalty"]
    recomputed = mean_loss(model, loss) + lire_penalty(chosen, gamma, lam)
    regularised = recomputed + ridge / (2 * N_ROWS) * float((model.weights**2).sum())
    small = settings["rules"] is not None
    yield Claim(
        fit.objective,
        regularised,
        fit.bound,
        lire_optimum(loss, gamma, lam, ridge) if small else None,
    )
    yield Claim(fit.details["paper_objective"], recomputed)


def lire_published(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """The paper's objective, where the intercept of signed rules counts as a rule that covers every
    row.
    """
    model = fit.model
    chosen = rows_of(model)[:, model.weights[:, 0] != 0]
    if abs(model.intercept[0] + model.weights.sum() / 2) > 1e-9:
        chosen = np.column_stack([chosen, np.ones(N_ROWS, bool)])
    recomputed = mean_loss(model, "exponential")
    recomputed += lire_penalty(chosen, settings["global_penalty"], settings["local_penalty"])
    yield Claim(fit.objective, recomputed)
    yield Claim(fit.details["paper_objective"], recomputed)


def lire_optimal(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Mean loss + gamma |supp| + the ridge on the weights; the optimum over all conjunctions."""
    model, loss, gamma = fit.model, settings["loss"], settings["global_penalty"]
    ridge = settings["l2_penalty"] / N_ROWS
    recomputed = mean_loss(model, loss) + gamma * len(model.conjunctions)
    recomputed += ridge / 2 * float((model.weights**2).sum())
    least = lire_optimum_of_all(loss, gamma, ridge, settings["max_length"], settings["max_rules"])
    yield Claim(fit.objective, recomputed, fit.bound, least)


@functools.cache
def lire_optimum_of_all(
    loss: str, gamma: float, ridge: float, max_length: int, max_rules: int
) -> float:
    """The least objective over all supports of conjunctions, of which one is taken of those that
    hold for the same rows or for exactly the others.
    """
    constant = CONJUNCTIONS.all(axis=0) | ~CONJUNCTIONS.any(axis=0)
    some = CONJUNCTIONS[:, ~constant & (max_length >= LENGTHS)]
    first = np.unique(some ^ some[0], axis=1, return_index=True)[1]
    return best_support(
        jr.losses.loss_by_name(loss), some[:, first].astype(float), coded(LOSSES[loss].target),
        np.full(N_ROWS, 1 / N_ROWS), gamma, ridge, max_rules,
    )[0]  # fmt: skip


def lire_penalty(chosen: Rows, gamma: float, lam: float) -> float:
    return gamma * chosen.shape[1] + lam * (chosen.mean() if chosen.shape[1] else 0.0)


@functools.cache
def lire_optimum(loss: str, gamma: float, lam: float, ridge: float) -> float:
    """The least objective over all supports of the pool."""
    y = coded(LOSSES[loss].target)

    def least_loss(chosen: Rows) -> float:
        columns = np.column_stack([np.ones(N_ROWS), chosen])
        prices = np.append(0.0, np.full(chosen.shape[1], ridge / N_ROWS))

        def value(weights: Floats) -> tuple[float, Floats]:
            scores = columns @ weights
            lost = LOSSES[loss].value(y, scores).mean() + prices @ weights**2 / 2
            return lost, LOSSES[loss].gradient(y, scores) @ columns / N_ROWS + prices * weights

        start = np.zeros(columns.shape[1])
        return float(minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-8}).fun)

    supports = [POOL[:, chosen] for k in range(7) for chosen in itertools.combinations(range(6), k)]
    return min(least_loss(chosen) + lire_penalty(chosen, gamma, lam) for chosen in supports)


def boosting_published(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """As `boosting`, at the settings of the paper."""
    return boosting({**jr.boosting.PAPER, **settings}, fit)


def boosting(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """The regularised risk of the model, and the objective of every stage over all conjunctions."""
    model, loss, penalty = fit.model, LOSSES[settings["loss"]], fit.details["l2_penalty"]
    weights, rows, y = model.weights[:, 0], rows_of(model), coded(loss.target)
    squares = float(weights @ weights)
    if model.linear is not None:  # in units of .4 standard deviations
        terms = zip(model.linear.feature, model.linear.lower, model.linear.upper, strict=True)
        spreads = np.array([np.nanstd(np.clip((size, age)[f], *ends)) / 0.4 for f, *ends in terms])
        squares += float(((model.linear.coefficients[:, 0] * spreads) ** 2).sum())
    yield Claim(
        fit.objective, mean_loss(model, settings["loss"]) + penalty / (2 * N_ROWS) * squares
    )
    if settings.get("eliminate") or settings.get("max_nonzeros", 1) > 1 or model.linear is not None:
        return  # the rules of the stages are not those of the model
    everywhere = np.ones((N_ROWS, int(settings["intercept"])))
    columns = np.column_stack([everywhere, rows])
    start = np.zeros(everywhere.shape[1])
    for rule, stage in enumerate(fit.details["stages"]):
        earlier = columns[:, : everywhere.shape[1] + rule]
        if settings["corrective"] or rule == 0:
            found = best_weights(loss, earlier, penalty, everywhere.shape[1])
        else:
            found = np.concatenate([start, weights[:rule]])
        start = found[: everywhere.shape[1]]
        g, h = loss.gradient(y, earlier @ found), loss.curvature(y, earlier @ found)
        value = stage_objective(settings["objective"], g, h, penalty, earlier, everywhere.shape[1])

        def worth(q: Rows, length: Any, value: Any = value) -> Floats:
            per_unit = 1 + length if settings["per_unit"] else 1.0
            return np.asarray(
                value(q) / per_unit / (1 + settings.get("objective_tolerance", 0.0)) ** length
            )

        recomputed = float(worth(rows[:, [rule]], stage.length)[0])
        if settings["corrective"] and np.isclose(recomputed, stage.objective, rtol=1e-4):
            recomputed = stage.objective  # refits end at different digits
        few = (settings["max_length"] or np.inf) >= LENGTHS
        yield Claim(
            stage.objective,
            recomputed,
            stage.bound,
            worth(CONJUNCTIONS[:, few], LENGTHS[few]).max(),
            "max",
        )


def best_weights(loss: Any, columns: Floats, penalty: float, free: int) -> Floats:
    """The best weights of rules, found by a general solver; the first `free` ones have no
    penalty.
    """
    y, penalties = coded(loss.target), np.full(columns.shape[1], penalty)
    penalties[:free] = 0.0

    def value(weights: Floats) -> tuple[float, Floats]:
        scores = columns @ weights
        slope = loss.gradient(y, scores) @ columns + penalties * weights
        return float(loss.value(y, scores).sum() + penalties @ weights**2 / 2), slope

    start = np.zeros(columns.shape[1])
    return (
        np.asarray(minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-8}).x)
        if len(start)
        else start
    )


def stage_objective(
    name: str, g: Floats, h: Floats, penalty: float, earlier: Rows, free: int
) -> Callable[[Rows], Floats]:
    """The objective of many conjunctions at once, given as (rows, conjunctions); the first `free`
    columns found earlier have no penalty.
    """
    if name == "second_order":
        return lambda q: (g @ q) ** 2 / (2 * N_ROWS * (penalty + h @ q))
    if name == "gradient_sum":
        return lambda q: np.abs(g @ q)
    if name == "corrective_decrease":
        penalties = np.full(earlier.shape[1], penalty)
        penalties[:free] = 0.0
        inverse = np.linalg.inv((earlier.T * h) @ earlier + np.diag(penalties))

        def decrease(q: Rows) -> Floats:
            c = (earlier.T * h) @ q
            return (g @ q) ** 2 / (
                2 * N_ROWS * (penalty + h @ q - np.sum(c * (inverse @ c), axis=0))
            )

        return decrease
    basis = np.linalg.qr(earlier)[0]

    def orthogonal(q: Rows) -> Floats:
        rest = q - basis @ (basis.T @ q)
        length = np.linalg.norm(rest, axis=0)
        return np.where(length > 1e-6, np.abs(g @ rest) / (length + 1e-6), 0.0)

    return orthogonal


# Rule lists


def drnet(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """The share of the rows where a rule holds and the label is not the
    second, or the other way round.
    """
    wrong = rows_of(fit.model).any(axis=1) != (NOISY["labels"] == "yes")
    yield Claim(fit.objective, float(wrong.mean()))


def ssrl(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """Correct rows - literal_penalty * literals - local_penalty * rules read."""
    model = fit.model
    penalty = fit.details.get("literal_penalty", settings["literal_penalty"])
    first = np.argmax(np.column_stack([rows_of(model), np.ones(N_ROWS, bool)]), axis=1)
    right = np.array(model.schema.classes)[model.labels[first]] == NOISY["labels"]
    local, read = settings.get("local_penalty", 0.0), np.minimum(first + 1, len(model.conjunctions))
    recomputed = right.sum() - penalty * model.conjunctions.propositions.sum() - local * read.sum()
    yield Claim(
        fit.objective,
        recomputed,
        fit.bound,
        list_optimum(penalty, settings.get("max_length", 9), local),
        "max",
    )


def regression_list(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """The share of the constant's loss that the values leave, and the penalty; the constant's loss;
    and that every value is the best for its rows.
    """
    model, y = fit.model, NOISY["numbers"]
    first = np.argmax(np.column_stack([rows_of(model), np.ones(N_ROWS, bool)]), axis=1)
    absolute = settings.get("loss") == "absolute"

    def loss(away: Floats) -> float:
        return float((np.abs(away) if absolute else away**2).sum())

    def least(rows: Floats) -> float:
        return loss(rows - (np.median(rows) if absolute else rows.mean()))

    left = loss(y - np.asarray(model.values)[first])
    share = left / (N_ROWS * fit.details["constant_loss"])
    penalty = settings["literal_penalty"] * model.conjunctions.propositions.sum()
    read = np.minimum(first + 1, len(model.conjunctions)).mean()
    yield Claim(fit.objective, share + penalty + settings.get("local_penalty", 0.0) * read)
    yield Claim(fit.details["constant_loss"], least(y) / N_ROWS)
    yield Claim(left, sum(least(y[first == k]) for k in range(len(model.values))))


@functools.cache
def list_optimum(penalty: float, max_literals: int, local: float) -> float:
    """The best objective of two rules followed by the majority's label, over all pairs of
    conjunctions of at most so many literals.
    """
    yes = (NOISY["labels"] == "yes").astype(float)
    no, default = 1 - yes, yes if 2 * yes.sum() > N_ROWS else 1 - yes
    some = (LENGTHS > 0) & (max_literals >= LENGTHS)
    rules, lengths = CONJUNCTIONS[:, some].astype(float), LENGTHS[some]
    best = default.sum()
    for first, length in zip(rules.T, lengths, strict=True):
        rest = rules * (1 - first)[:, None]
        right = max(yes @ first, no @ first) - penalty * length - local * N_ROWS
        then = np.maximum(yes @ rest, no @ rest) - default @ rest - penalty * lengths
        then -= local * (1 - first).sum()
        best = max(best, right + default @ (1 - first) + max(0.0, then.max()))
    return float(best)


# Coordinate paths

END = {"size": 0.5, "colour=a": -1.0}
"""A linear model to explain."""
END_COEFFICIENTS = np.array([0.5, 0.0, 0.0, -1.0, 0.0, 0.0])


def paths(settings: Settings, fit: jr.Fit[Any]) -> Claims:
    """The sum of the costs of all models but the first."""
    model, loss = fit.model, LOSSES[settings["cost"]]
    y = coded(loss.target)
    scores = model.intercepts[:, None] + model.models @ DESIGN.T
    recomputed = loss.value(y, scores).mean(axis=1)[1:].sum()
    if settings["cost"] == "poisson":  # measured from the best score of every row
        recomputed -= settings["steps"] * (y - xlogy(y, y)).mean()
    if settings["cost"] == "squared":
        yield Claim(fit.objective, recomputed, fit.bound, path_optimum(settings))
    else:
        proved = settings.get("method") != "local"
        optimum = convex_path_optimum(settings) if proved else None
        yield Claim(fit.objective, recomputed, fit.bound, optimum)


def convex_path_optimum(settings: Settings) -> float:
    """The least sum of convex costs over all sequences of columns: a regression for each, of all
    models at once, by Newton's method.
    """
    loss, steps = LOSSES[settings["cost"]], settings["steps"]
    y = np.tile(coded(loss.target), steps)
    best = np.inf
    for sequence in itertools.product(range(6), repeat=steps):
        # Change k acts on all models from k on, and every model has its intercept.
        changes = np.zeros((steps, N_ROWS, steps))
        for step, feature in enumerate(sequence):
            changes[step:, :, step] = DESIGN[:, feature]
        system = np.hstack([changes.reshape(-1, steps), np.repeat(np.eye(steps), N_ROWS, axis=0)])
        at, step, value = np.zeros(2 * steps), np.zeros(2 * steps), np.inf
        for _ in range(60):
            scores = system @ (at + step)
            tried = loss.value(y, scores).sum() / N_ROWS
            if tried >= value - 1e-13:  # too far, or nothing more to gain
                if np.abs(step).max() < 1e-6:
                    break
                step = step / 2
                continue
            at, value = at + step, tried
            hessian = system.T @ (system * loss.curvature(y, scores)[:, None])
            step = -np.linalg.lstsq(hessian, system.T @ loss.gradient(y, scores), rcond=None)[0]
        best = min(best, value)
    if settings["cost"] == "poisson":
        best -= (y - xlogy(y, y)).sum() / N_ROWS
    return float(best)


def path_optimum(settings: Settings) -> float:
    """The least sum of squared costs over all sequences of columns, or of columns
    and sizes of integer steps.
    """
    columns, y, steps = DESIGN - DESIGN.mean(axis=0), coded("numbers"), settings["steps"]
    y = y - y.mean()
    if settings.get("integer_steps") is not None:
        sizes = (-1, 1) if settings["integer_steps"] == "unit" else (-3, -2, -1, 1, 2, 3)
        moves = np.vstack([np.zeros(6), *(step * np.eye(6) for step in sizes)])
        models = np.cumsum(
            moves[np.stack(np.meshgrid(*[range(len(moves))] * steps), axis=-1)], axis=-2
        )
        costs = (
            y @ y
            - 2 * models @ (columns.T @ y)
            + ((models @ (columns.T @ columns)) * models).sum(axis=-1)
        )
        return float(costs.sum(axis=-1).min() / N_ROWS)
    end = END_COEFFICIENTS if settings.get("end") else np.zeros(0)
    y, best = np.tile(y, steps), np.inf
    for sequence in itertools.product(range(6), repeat=steps):
        system = np.zeros(
            (steps, N_ROWS, steps)
        )  # change k acts on the predictions of model k and all later ones
        for step, feature in enumerate(sequence):
            system[step:, :, step] = columns[:, feature]
        system = system.reshape(-1, steps)
        sums = np.eye(6)[: len(end), sequence]  # of the changes, which the end prescribes
        matrix = np.block([[system.T @ system, sums.T], [sums, np.zeros((len(end), len(end)))]])
        changes = np.linalg.lstsq(matrix, np.concatenate([system.T @ y, end]), rcond=None)[0][
            :steps
        ]
        if np.allclose(sums @ changes, end):
            best = min(best, float(((y - system @ changes) ** 2).sum() / N_ROWS))
    return best


# Models away from here


def check_elsewhere(model: jr.RuleEnsemble, X: pd.DataFrame, folder: Path) -> None:
    """A loaded model, its Python and its SQL give the probabilities that the model gives."""
    said = np.asarray(jr.predict_proba(model, X))[:, 1]
    jr.save(model, folder / "model.json")
    loaded = jr.load(folder / "model.json")
    np.testing.assert_array_equal(np.asarray(jr.predict_proba(loaded, X))[:, 1], said)
    code: dict[str, Any] = {}
    exec(jr.to_python(model), code)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    np.testing.assert_allclose([code["probabilities"](row)[True] for row in rows], said)
    sql = jr.to_sql(model, "score")
    with duckdb.connect(":memory:", config={"threads": 1}) as database:
        database.register("people", X)
        answer = database.execute(f"select {sql} from people").fetchall()
    scores = np.asarray(jr.decision_function(model, X)).ravel()
    np.testing.assert_allclose([score for (score,) in answer], scores)
