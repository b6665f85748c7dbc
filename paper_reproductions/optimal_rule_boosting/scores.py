"""Table 1 and Fig. 2: score against number of rules for RuleFit, greedy and optimal boosting; the printed ensembles."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.datasets import Dataset
from jaxrules.ensembles import boosting, rulefit
from jaxrules.models import RuleEnsemble
from jaxrules.results import Fit, Status
from paper_reproductions.framework import Cell, Entry, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.optimal_rule_boosting import data, published
from paper_reproductions.report import Canvas, ComparisonTable, Section, Value

Floats = NDArray[np.float64]

SIZES = tuple(range(1, 11))
SEARCHES = ("greedy", "optimal")
METHODS = ("RuleFit", *SEARCHES)
QUICK_SETS = (
    "iris (1)", "wine (1)", "tic-tac-toe", "titanic", "insurance", "friedman1", "used cars", "world happiness",
)  # fmt: skip
QUICK_PENALTIES = (1.0, 10.0, 50.0)
TOLERANCE = 0.02
CLASSIFICATIONS = tuple(data.SETS)[: tuple(data.SETS).index("boston")]
"""The upper section of Table 1, scored by AUC."""


def sets(settings: Settings) -> Sequence[str]:
    """Names of the sets to run."""
    return QUICK_SETS if settings.quick else tuple(data.SETS)


def penalties(settings: Settings) -> Sequence[float]:
    """The grid of lambda."""
    return QUICK_PENALTIES if settings.quick else published.PENALTIES


# The measure: area under the curve of score against number of rules


def area(scores: Sequence[float] | Floats) -> float:
    """Area under the curve through the scores of 1, 2, ..., 10 rules, divided by its width."""
    return float(np.trapezoid(scores, SIZES) / (SIZES[-1] - SIZES[0]))


def curve(sizes: Sequence[int], scores: Sequence[float], without_rules: float) -> Floats:
    """Scores of 1, ..., 10 rules from models of any sizes: means over equal sizes, missing sizes interpolated.

    The curve starts at 0 rules (AUC 0.5, R^2 0), and is constant beyond the largest size.
    """
    sizes, scores = [0, *sizes], [without_rules, *scores]
    there = np.unique(sizes)
    means = [np.mean([score for size, score in zip(sizes, scores, strict=True) if size == k]) for k in there]
    return np.interp(SIZES, there, means)


def score(y: Floats, prediction: Floats, classification: bool) -> float:
    """AUC, or R^2."""
    from sklearn.metrics import r2_score, roc_auc_score

    return float((roc_auc_score if classification else r2_score)(y, prediction))


def prefix_scores(model: RuleEnsemble, test: Dataset) -> list[float]:
    """Scores of the first 1, ..., 10 rules; an ensemble that ended before keeps its last score."""
    parts = model.conjunctions.satisfied(test.X) * np.asarray(model.weights)[:, 0]
    cumulative = np.cumsum(np.column_stack([np.zeros(len(test)), parts]), axis=1) + float(model.intercept[0])
    return [score(test.y, cumulative[:, min(k, parts.shape[1])], test.task == "binary") for k in SIZES]


def area_from_no_rule(scores: Sequence[float] | Floats) -> float:
    """Area under the curve from 0 rules (AUC 0.5) to 10, divided by its width."""
    return float(np.trapezoid([0.5, *scores], (0, *SIZES)) / SIZES[-1])


# Boosting


def boost(
    train: Dataset, bins: int, search: boosting.Search, l2_penalty: float, stage_seconds: float, rules: int = SIZES[-1]
) -> Fit[RuleEnsemble]:
    """An ensemble by the paper's settings; every stage may take at least `stage_seconds`."""
    return boosting.fit(
        train.X, train.y, loss="squared" if train.task == "regression" else "logistic", search=search,
        max_rules=rules, l2_penalty=l2_penalty, propositions=data.propositions(train.X, bins),
        time_limit=stage_seconds * rules,
    )  # fmt: skip


def uncertified(fit: Fit[RuleEnsemble]) -> int:
    """Stages of an exact search that ended before their proof."""
    return sum(stage.status not in (Status.OPTIMAL, Status.CONVERGED) for stage in fit.details["stages"])


def measure_boosting(cell: Cell, settings: Settings) -> list[Row]:
    """A row per number of rules: score on the test rows, and the mean over folds of the training rows."""
    train, test = data.split(cell["data"], cell["split"], settings.seed)
    bins = data.SETS[cell["data"]].bins
    stage_seconds, n_folds = (0.5, 2) if settings.quick else (20.0, 3)
    began = time.perf_counter()
    fit = boost(train, bins, cell["method"], cell["penalty"], stage_seconds)
    seconds = time.perf_counter() - began
    inner = [
        prefix_scores(boost(inside, bins, cell["method"], cell["penalty"], stage_seconds / 4).model, held_out)
        for inside, held_out in data.folds(train, n_folds, settings.seed)
    ]
    return [
        {"rules": k, "score": ours, "inner_score": float(mean), "seconds": seconds, "uncertified": uncertified(fit)}
        for k, ours, mean in zip(SIZES, prefix_scores(fit.model, test), np.mean(inner, axis=0), strict=True)
    ]


boosted = Experiment(
    "boosted",
    lambda settings: [
        Cell.of(data=name, split=split, method=method, penalty=penalty)
        for name in sets(settings)
        for split in settings.first_folds(5, quick=2)
        for method in SEARCHES
        for penalty in penalties(settings)
    ],
    measure_boosting,
)


# RuleFit


def candidate_rules(train: Dataset, n_trees: int, seed: int) -> jr.Conjunctions:
    """The rules of boosted trees of depth 3."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    kind = GradientBoostingRegressor if train.task == "regression" else GradientBoostingClassifier
    trees = kind(n_estimators=n_trees, max_depth=3, random_state=seed).fit(train.X.one_hot()[0], train.y)
    return jr.extract_rules(trees, train.X)


def largest_penalty(satisfied: NDArray[np.bool_], y: Floats, classification: bool) -> float:
    """The smallest penalty at which no rule has a weight: the largest mean gradient of the mean's model."""
    return float(np.abs(satisfied.T @ (y - y.mean())).max()) / len(y) * (1 if classification else 2)


def measure_rulefit(cell: Cell, settings: Settings) -> list[Row]:
    """A row per penalty of those between the ones that give 1 and about 11 rules, evenly spaced."""
    train, test = data.split(cell["data"], cell["split"], settings.seed)
    classification = train.task == "binary"
    loss: Literal["logistic", "squared"] = "logistic" if classification else "squared"
    began = time.perf_counter()
    rules = candidate_rules(train, 20 if settings.quick else 100, settings.seed)
    start = largest_penalty(rules.satisfied(train.X), train.y.astype(float), classification)
    low = high = start
    for values in np.split(start * np.geomspace(1.0, 1e-3, 25 if settings.quick else 49)[1:], 6):
        fits = rulefit.path(train.X, train.y, rules=rules, loss=loss, penalties=values.tolist(), tolerance=1e-4)
        counts = [len(fit.model.conjunctions) for fit in fits]
        if high == start and any(counts):
            high = float(values[np.flatnonzero(counts)[0]])
        low = float(values[np.argmax(counts)])
        if max(counts) >= 11:
            low = float(values[np.flatnonzero(np.array(counts) >= 11)[0]])
            break
    spaced = np.linspace(high, low, 20 if settings.quick else 50)
    fits = rulefit.path(train.X, train.y, rules=rules, loss=loss, penalties=spaced.tolist(), tolerance=1e-4)
    seconds = time.perf_counter() - began
    return [
        {"l1_penalty": float(penalty), "rules": len(fit.model.conjunctions), "seconds": seconds,
         "without_rules": 0.5 if classification else 0.0,
         "score": score(test.y, np.asarray(jr.decision_function(fit.model, test.X)), classification)}
        for penalty, fit in zip(spaced, fits, strict=True) if len(fit.model.conjunctions)
    ]  # fmt: skip


def measure_unbounded(cell: Cell, settings: Settings) -> Row:
    """RuleFit with any number of rules, its penalty by cross-validation."""
    train, test = data.split(cell["data"], cell["split"], settings.seed)
    rules = candidate_rules(train, 100, settings.seed)
    loss: Literal["logistic", "squared"] = "logistic" if train.task == "binary" else "squared"
    model = rulefit.fit(train.X, train.y, rules=rules, loss=loss, tolerance=1e-4, seed=settings.seed).model
    prediction = np.asarray(jr.decision_function(model, test.X))
    return {"rules": len(model.conjunctions), "score": score(test.y, prediction, train.task == "binary")}


def _splits(settings: Settings) -> list[Cell]:
    """RuleFit is the slowest of the three: in small it has one split."""
    return [
        Cell.of(data=name, split=split) for name in sets(settings) for split in settings.first_folds(5)
    ]  # fmt: skip


rulefitted = Experiment("rulefit", _splits, measure_rulefit)
unbounded = Experiment("unbounded", lambda s: [] if s.quick else _splits(s), measure_unbounded)


BINS = (2, 3, 4, 5, 8, 10)


def measure_bins(cell: Cell, settings: Settings) -> Row:
    """Area of greedy boosting at lambda 10, with other cut points than those of Table 1."""
    train, test = data.split(cell["data"], cell["split"], settings.seed)
    fit = boost(train, cell["bins"], "greedy", 10.0, 20.0)
    return {"area": area(prefix_scores(fit.model, test))}


binned = Experiment(
    "bins",
    lambda settings: [
        Cell.of(data=name, split=split, bins=bins)
        for name in (name for name in sets(settings) if name not in CLASSIFICATIONS)
        for bins in BINS
        for split in settings.first_folds(5, quick=1)
    ],
    measure_bins,
)


# From rows to curves


def chosen(rows: Rows, criterion: str) -> list[Rows]:
    """Per split the rows of the penalty with the largest area by the inner scores; "oracle": by the mean test score."""
    done = [
        (p, s, rows.where(penalty=p, split=s))
        for p, s in itertools.product(rows.values("penalty"), rows.values("split"))
    ]
    done = [(p, s, found) for p, s, found in done if len(found) == len(SIZES)]
    splits = sorted({s for _, s, _ in done})
    if criterion == "oracle":
        by_penalty: dict[Entry, list[float]] = {}
        for p, _, found in done:
            by_penalty.setdefault(p, []).append(area(found.column("score")))
        complete = {p: np.mean(areas) for p, areas in by_penalty.items() if len(areas) == len(splits)}
        best = max(complete, key=complete.__getitem__, default=None)
        return [found for p, _, found in done if p == best]
    return [max((f for _, s, f in done if s == split), key=lambda f: area(f.column("inner_score"))) for split in splits]


@dataclass(frozen=True)
class Measured:
    """The rows of one data set, each read once."""

    boosted: Rows
    rulefit: Rows
    unbounded: Rows

    def runs(self, method: str, criterion: str = "inner") -> list[Rows]:
        """Per split, the rows at the chosen lambda."""
        return chosen(self.boosted.where(method=method), criterion)


def measured_sets(results: Results) -> dict[str, Measured]:
    """What was measured, by data set."""
    tables = [results[experiment] for experiment in (boosted, rulefitted, unbounded)]
    return {name: Measured(*(rows.where(data=name) for rows in tables)) for name in sets(results.settings)}


def curves(measured: Measured, method: str, criterion: str = "inner") -> list[Floats]:
    """The curve of every split."""
    if method == "RuleFit":
        rows = measured.rulefit
        parts = [rows.where(split=split) for split in rows.values("split")]
        return [
            curve(part.column("rules").astype(int).tolist(), part.column("score").tolist(), part[0]["without_rules"])
            for part in parts
        ]
    return [rows.column("score") for rows in measured.runs(method, criterion)]


# Table 1

GENERATED = " The set is generated; the paper gives neither the seed nor the noise."
FROM_NO_RULE = " The paper's AUC areas seem to begin at 0 rules, see the next table."
RULEFIT = (
    "RuleFit here is jaxrules' path on the rules of scikit-learn's boosted trees, solved to a duality gap of 1e-4; the "
    "paper's is a package with other trees and penalties, which stays at 0.5 on three sets."
)


def show_table_1(results: Results, canvas: Canvas) -> Section:
    found = measured_sets(results)
    names = tuple(found)
    values: dict[tuple[str, str], Value | str] = {}
    costs: dict[tuple[str, str], Value | str] = {}
    wider: dict[tuple[str, str], Value | str] = {}
    means: dict[tuple[str, str], float] = {}
    for name, measured in found.items():
        printed = published.TABLE_1.get(name)
        drawn = GENERATED if data.SETS[name].generated else ""
        number = dict(zip(METHODS, printed[:3], strict=True)) if printed else {}
        seconds = dict(zip(METHODS, printed[3:6], strict=True)) if printed else {}
        for method, criterion in (*((m, "inner") for m in METHODS), *((m, "oracle") for m in SEARCHES)):
            areas = [area(scores) for scores in curves(measured, method, criterion)]
            mean = float(np.mean(areas)) if areas else None
            column = method if criterion == "inner" else f"{method}, oracle"
            if mean is not None:
                means[name, column] = mean
            claimed = TOLERANCE if criterion == "inner" and method in SEARCHES else None
            values[name, column] = Value(
                mean, number.get(method), tolerance=claimed, mark=_mark(measured, column),
                reason=_reason(areas, number.get(method)) + drawn + (FROM_NO_RULE if name in CLASSIFICATIONS else ""),
                spread=float(np.std(areas, ddof=1)) if len(areas) > 1 else None,
            )  # fmt: skip
        if name in CLASSIFICATIONS:
            for method in METHODS:
                areas = [area_from_no_rule(scores) for scores in curves(measured, method)]
                wider[name, method] = Value(
                    float(np.mean(areas)) if areas else None, number.get(method),
                    tolerance=TOLERANCE if method in SEARCHES else None,
                    reason=_reason(areas, number.get(method)) + drawn,
                )  # fmt: skip
        for method in METHODS:
            costs[name, f"{method}, s"] = Value(_seconds(measured, method), seconds.get(method), digits=2)
        rows = measured.unbounded
        costs[name, "unbounded score"] = Value(rows.mean("score"), printed.unbounded_score if printed else None)
        costs[name, "unbounded rules"] = Value(
            rows.mean("rules"), float(printed.unbounded_rules) if printed else None, digits=0
        )
    bin_rows = results[binned]
    by_bins: dict[tuple[str, str], Value | str] = {}
    binned_names = [str(name) for name in bin_rows.values("data")]
    for name in binned_names:
        by_bins[name, "the paper's greedy"] = f"{published.TABLE_1[name].greedy:.4f}"
        by_bins[name, "bins in Table 1"] = str(data.SETS[name].bins)
        for bins in BINS:
            found_bins = bin_rows.where(data=name, bins=bins)
            by_bins[name, f"{bins} bins"] = Value(found_bins.mean("area"), spread=found_bins.spread("area"))
    tables = (
        ComparisonTable(
            "Area under the curve of score against 1 to 10 rules (AUC, from boston on R^2)", names,
            (*METHODS, *(f"{m}, oracle" for m in SEARCHES)), values, corner="data",
            note="Lambda is chosen by cross-validation on the training rows; oracle: by the mean test score itself, as "
            "the paper may have done. " + RULEFIT,
        ),
        ComparisonTable(
            "Classification: area under the curve of AUC against 0 to 10 rules",
            [name for name in names if name in CLASSIFICATIONS], METHODS, wider, corner="data",
            note="The authors' plotting code drops the model without rules for regression only; with it (AUC 0.5) the "
            "areas come nearer to the paper's, so that its AUC rows seem to be areas of this kind.",
        ),
        ComparisonTable(
            "Regression: area of greedy boosting by quantile bins per column, lambda 10",
            binned_names, ("the paper's greedy", "bins in Table 1", *(f"{bins} bins" for bins in BINS)), by_bins,
            corner="data",
            note="What the cut points matter, which the paper does not give; +- is the standard deviation over splits.",
        ),
        ComparisonTable(
            "Seconds for 10 rules, and RuleFit without a bound", names,
            (*(f"{m}, s" for m in METHODS), "unbounded score", "unbounded rules"), costs, corner="data",
            note="Seconds of one fit at the chosen lambda; RuleFit's include all its penalties.",
        ),
    )  # fmt: skip
    return Section(_order_in_words(means, names), tables)


def _reason(areas: Sequence[float], printed: float | None) -> str:
    """Noise of the splits, or what else differs; the paper's mean over five splits is taken to be as noisy as ours.

    Few splits know little about their own noise: Student's distribution says how much they may differ by chance.
    """
    from scipy import stats

    if printed is None or not areas:
        return ""
    if len(areas) == 1:
        return "One split only, the paper has five; splits of one set differ by 0.01 to 0.05."
    error = float(np.std(areas, ddof=1)) * (1 / len(areas) + 1 / 5) ** 0.5
    distance = abs(float(np.mean(areas)) - printed) / max(error, 1e-12)
    few = f" (only {len(areas)} splits)" if len(areas) < 5 else ""
    if distance <= stats.t.ppf(0.975, len(areas) - 1):
        return f"{distance:.1f} standard errors{few}, the noise of the splits."
    return (
        f"{distance:.1f} standard errors{few}: the paper names neither cut points (their effect on R^2: table "
        "by quantile bins) nor the rows on which lambda was chosen."
    )


def _mark(measured: Measured, column: str) -> str:
    """How many stages have no certificate."""
    if not column.startswith("optimal"):
        return ""
    criterion = "oracle" if column.endswith("oracle") else "inner"
    runs = measured.runs("optimal", criterion)
    open_stages = sum(int(rows[0]["uncertified"]) for rows in runs)
    return f"{open_stages} of {len(runs) * len(SIZES)} stages not certified" if open_stages else ""


def _seconds(measured: Measured, method: str) -> float | None:
    if method == "RuleFit":
        return measured.rulefit.mean("seconds")
    runs = measured.runs(method)
    return float(np.mean([rows[0]["seconds"] for rows in runs])) if runs else None


def _order_in_words(means: dict[tuple[str, str], float], names: Sequence[str]) -> str:
    """The paper's claim: optimal > greedy > RuleFit on all 24 sets."""
    sentences = []
    for better, worse in (("optimal", "greedy"), ("optimal, oracle", "greedy, oracle"), ("greedy", "RuleFit")):
        pairs = [(means[n, better], means[n, worse], n) for n in names if (n, better) in means and (n, worse) in means]
        if pairs:
            lost = [f"{name} ({ours - theirs:+.4f})" for ours, theirs, name in pairs if ours < theirs]
            wins = f"{len(pairs) - len(lost)} of {len(pairs)}"
            sentences.append(f"{better} >= {worse} on {wins} sets" + (f", not on {', '.join(lost)}" if lost else ""))
    return (
        ("The paper has optimal > greedy > RuleFit on all 24 sets. Here: " + "; ".join(sentences) + ".")
        if sentences
        else ""
    )


# Fig. 2 and the printed ensembles

FIGURE_2 = ("used cars", "tic-tac-toe", "friedman1")
ENSEMBLE_BINS = {"used cars": 3, "tic-tac-toe": 1}
"""The printed cut points of the cars are thirds of the rows; Table 1's are fifths, as the authors' settings say."""


def measure_ensemble(cell: Cell, settings: Settings) -> list[Row]:
    """Five rules on all rows."""
    whole = data.load(cell["data"], settings.seed)
    model = boost(whole, ENSEMBLE_BINS[cell["data"]], cell["method"], cell["penalty"], 20.0, rules=5).model
    weights = np.asarray(model.weights)[:, 0]
    return [
        {"rule": r + 1, "weight": float(weights[r]), "condition": model.conjunctions.describe(r)}
        for r in range(len(weights))
    ]


ensembles = Experiment(
    "ensembles",
    lambda settings: [
        Cell.of(data=name, method=method, penalty=penalty)
        for name, method in published.ENSEMBLES
        for penalty in published.PENALTIES
    ],
    measure_ensemble,
)


def show_figure_2(results: Results, canvas: Canvas) -> Section:
    rows = results[ensembles]
    tables = [_ensemble_table(rows, name, method) for name, method in published.ENSEMBLES]
    text = """
        Mean scores over the splits, with the standard error as a band. The ensembles are fitted on all rows, for every
        lambda of the grid, because the paper names neither lambda nor rows, with cut points at thirds, as the printed
        rules have them; shown is the lambda whose weights are nearest to the paper's. The paper's rules are of a
        random 80 % of the rows, so that single weights and quantiles (count <= 86 or 90) differ. On tic-tac-toe the
        lines of three are symmetric: which comes first depends on the rows. "always" is the empty conjunction, a
        candidate by the paper's text.
    """
    return Section(text, tables, _draw_curves(results, canvas))


def _ensemble_table(rows: Rows, name: str, method: str) -> ComparisonTable:
    printed = published.ENSEMBLES[name, method]
    runs = [rows.where(data=name, method=method, penalty=p) for p in published.PENALTIES]
    runs = [found for found in runs if len(found) == len(printed)]

    def distance(found: Rows) -> float:
        pairs = zip(found.column("weight"), printed, strict=True)
        return float(sum(min(1.0, abs(ours - weight) / abs(weight)) for ours, (weight, _) in pairs))

    best = min(runs, key=distance, default=Rows(()))
    labels = [str(k) for k in range(1, len(printed) + 1)]
    values: dict[tuple[str, str], Value | str] = {}
    for k, (label, (weight, condition)) in enumerate(zip(labels, printed, strict=True)):
        values[label, "weight"] = Value(
            best[k]["weight"] if best else None, weight, digits=3 if weight < 100 > -weight else 0
        )
        values[label, "our rule"] = str(best[k]["condition"]) if best else "not run"
        values[label, "the paper's rule"] = condition
    title = f"{name}, {method} base learner" + (f" (lambda {best[0]['penalty']:g})" if best else "")
    return ComparisonTable(title, labels, ("weight", "our rule", "the paper's rule"), values, corner="rule")


def _draw_curves(results: Results, canvas: Canvas) -> tuple[Path, ...]:
    measured = measured_sets(results)
    found = {(n, m): curves(measured[n], m) for n in FIGURE_2 for m in METHODS}
    if not any(found.values()):
        return ()
    figure, axes = canvas.subplots(1, len(FIGURE_2))
    for ax, name in zip(axes[0], FIGURE_2, strict=True):
        for method, colour in zip(METHODS, ("C2", "C1", "C0"), strict=True):
            if found[name, method]:
                ys = np.array(found[name, method])
                mean, error = ys.mean(axis=0), ys.std(axis=0, ddof=len(ys) > 1) / np.sqrt(len(ys))
                ax.plot(SIZES, mean, "o-", ms=3.5, color=colour, label=method)
                ax.fill_between(SIZES, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
        ax.set_title(name)
        ax.set_xlabel("number of rules")
        ax.set_ylabel("AUC" if name == "tic-tac-toe" else "R²")
    axes[0, 0].legend(frameon=False)
    return (canvas.save(figure, "figure_2"),)


EXHIBITS = (
    Exhibit("table", 1, "Area under the rules/score curve", (boosted, binned, rulefitted, unbounded), show_table_1),
    Exhibit(
        "figure",
        2,
        "Score against number of rules, and printed ensembles",
        (boosted, rulefitted, ensembles),
        show_figure_2,
    ),
)
