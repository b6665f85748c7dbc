"""Plots of models, fits and comparisons; they need matplotlib (``pip install jaxrules[plots]``).

Every function draws on the axes `ax`, or on new ones, and returns them. The colours of Okabe and
Ito are distinct for colour-blind readers; markers differ as well. Greys and black follow
matplotlib's style: ``with plt.style.context("dark_background")`` draws for dark pages.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from jaxrules.data.table import Schema, Table, TableLike, check_order, conform, regression_target
from jaxrules.models.metrics import codes_of, known_labels, local_support, support
from jaxrules.models.rule_models import (
    Explanation,
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    RuleList,
    not_a_model,
    predict,
    predict_proba,
    rows_for,
)
from jaxrules.paths.model import ModelSequence
from jaxrules.paths.pareto import Front
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Fit
from jaxrules.users import importances
from jaxrules.users.comparison import Comparison
from jaxrules.users.export.program import program_of
from jaxrules.users.inspection import Importance, importance, rule_report, wilson
from jaxrules.users.reporting.figures import FigureRows, quality_json
from jaxrules.users.reporting.subject import Known, Model

BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY, BLACK = COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
WHITE = "#FFFFFF"
MARKERS = "os^DvPX"
_LIGHTER = 0.25
"""Opacity of a region."""
_LINE = 36
"""Characters of a rule on one line, if its conditions allow."""
_LONGEST = 72
"""A condition longer than this is broken."""


def _axes(ax: Any) -> Any:
    if ax is not None:
        if not hasattr(ax, "pcolormesh"):
            raise TypeError(f"ax must be matplotlib axes, got {type(ax).__name__}")
        return ax
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(
            "jaxrules.users.plots needs matplotlib; pip install matplotlib"
        ) from error
    return plt.subplots(layout="constrained")[1]


def _by_label(name: str, values: Any, what: str) -> None:
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a dict of {what} by label, got {type(values).__name__}")
    checks.require(len(values) > 0, f"{name} is empty; pass {what} by label")


def _shown(name: object) -> str:
    """A name in a plot: matplotlib would read mathematics between dollars, and hide names that
    begin with _ from legends.
    """
    text = display.plain(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _style(number: int) -> dict[str, Any]:
    """A colour and a marker; no pair repeats among the first 49."""
    cycle, colour = divmod(number, len(COLOURS))
    return {"color": _colour(colour), "marker": MARKERS[(colour + cycle) % len(MARKERS)]}


def _is_dark() -> bool:
    """Whether matplotlib's style has light text, as "dark_background" has."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb

    return sum(to_rgb(plt.rcParams["text.color"])) > 1.5


def _colour(number: int) -> str:
    """Black is white in the dark; the others can be seen on both."""
    return WHITE if COLOURS[number] == BLACK and _is_dark() else COLOURS[number]


def _grey(lightness: float) -> str:
    """A grey of this lightness on white, and as far from the background in the dark."""
    return str(round(1.0 - lightness, 3) if _is_dark() else lightness)


def _rows(texts: Sequence[str], ax: Any, grows: bool) -> None:
    """Texts beside the rows of a plot, the first on top. A figure of its own (`grows`) gets room
    for all of them, so that none is cut or lies on another.
    """
    wrapped = [_wrapped(_shown(text)) for text in texts]
    ax.set_yticks(range(len(texts)), wrapped, fontsize="small", linespacing=1.2)
    ax.set_ylim(len(texts) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    if not grows:
        return
    import matplotlib.pyplot as plt

    # At 10 points, a character of small text is .08 inches wide and a line .17 high.
    lines = [line for text in wrapped for line in text.split("\n")]
    deepest, scale = max(text.count("\n") + 1 for text in wrapped), plt.rcParams["font.size"] / 10
    width, height = ax.figure.get_size_inches()
    needs = 1.1 + scale * len(texts) * (0.12 + 0.17 * deepest)
    label = scale * 0.08 * max(map(len, lines))
    ax.figure.set_size_inches(max(width, label + 0.55 * width), max(0.6 * height, needs))


def _wrapped(text: str) -> str:
    """A rule in lines, broken between conditions; a very long condition also within."""
    # Spaces inside a condition are tied, so that lines break between conditions.
    tied = (
        text.replace(" ", "\xa0").replace("\xa0&\xa0", " &\xa0").replace("\xa0AND\xa0", " AND\xa0")
    )
    lines = textwrap.wrap(tied, _LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join(
        part for line in lines for part in textwrap.wrap(line.replace("\xa0", " "), _LONGEST)
    )


def _legend_above(ax: Any, handles: Sequence[Any] | None = None, title: str | None = None) -> None:
    drawn = ax.get_legend_handles_labels()[0] if handles is None else handles
    ax.legend(
        handles=drawn, title=title, ncols=min(len(drawn), 4), frameon=False,
        loc="lower right", bbox_to_anchor=(1.0, 1.0), handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


# Comparisons and searches


def risk_complexity(methods: Mapping[str, ArrayLike] | Comparison, ax: Any = None) -> Any:
    """Risk against complexity, a line per method; Pareto-optimal points are joined in grey.

    For a comparison the lines are its fronts, and a ring marks the risk of each method when its
    setting is chosen without the held-out rows. If complexities differ by more than a factor of
    thirty, the axis is logarithmic.

    Args:
        methods: from `jaxrules.compare`; or a dict by label of arrays of (complexity, risk) or
            (complexity, risk, standard error), a row per model.
        ax: matplotlib axes.

    Raises:
        TypeError: if `methods` is not a dict of numbers by label.
        ValueError: if there is nothing to draw, or an array has another shape.
    """
    fronts: Mapping[str, ArrayLike] = methods.fronts if isinstance(methods, Comparison) else methods
    _by_label("methods", fronts, "(complexity, risk)")
    points = {label: checks.array(f"methods[{label!r}]", rows) for label, rows in fronts.items()}
    for label, rows in points.items():
        fit = rows.ndim == 2 and len(rows) and rows.shape[1] in (2, 3)
        checks.require(
            bool(fit),
            f"methods[{label!r}] must be rows of (complexity, risk) or (complexity, risk, error)",
        )
    ax = _axes(ax)
    together = np.concatenate([rows[:, :2] for rows in points.values()])
    together = together[np.lexsort(together.T[::-1])]
    # Sorted by complexity: a point is Pareto-optimal if its risk is below all risks before it.
    best = together[together[:, 1] < np.append(np.inf, np.minimum.accumulate(together[:, 1])[:-1])]
    ax.step(*best.T, where="post", color=_grey(0.8), linewidth=5, zorder=0, label="Pareto front")
    for number, (label, rows) in enumerate(points.items()):
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        error = rows[:, 2] if rows.shape[1] == 3 else None
        ax.errorbar(
            *rows.T[:2], yerr=error, **_style(number), markersize=4, linewidth=1, elinewidth=0.5,
            capsize=1.5, label=_shown(label),
        )  # fmt: skip
    if isinstance(methods, Comparison):
        table = {row.method: (row.complexity, row.risk) for row in methods.rows}
        ring: dict[str, Any] = {"s": 70, "facecolors": "none"}
        for number, label in enumerate(points):
            ax.scatter(*table[label], edgecolors=_style(number)["color"], zorder=4, **ring)
        ax.scatter([], [], edgecolors=_grey(0.3), label="setting chosen inside", **ring)
    sizes = together[together[:, 0] > 0, 0]
    if len(sizes) and sizes.max() > _WIDE * sizes.min():
        # Linear up to 1: a complexity may be 0.
        ax.set_xscale("symlog", linthresh=1.0, linscale=0.3)
        ax.set_xlim(left=max(0.0, 0.7 * together[0, 0]))
        ax.xaxis.set_major_formatter("{x:g}")
    risk = _RISKS[methods.risk] if isinstance(methods, Comparison) else "risk"
    ax.set(xlabel="complexity", ylabel=risk)
    if len(points) > 4:  # beside the plot, away from the lines
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        ax.legend(frameon=False)
    return ax


_WIDE = 30
"""From this ratio of complexities upwards, the axis is logarithmic."""
_RISKS = {
    "error": "share of wrong labels",
    "log_loss": "log loss",
    "brier": "Brier score",
    "squared": "mean squared error",
    "absolute": "mean absolute error",
    "loss": "mean loss",
}


def search_progress(fit: Fit[Any], ax: Any = None) -> Any:
    """The objective of the best model so far over time, and the proved bound,
    also over time if recorded.

    Raises:
        ValueError: if the fit has no history.
    """
    checks.instance("fit", fit, Fit, "the learners")
    checks.require(len(fit.history) > 0, "fit has no history; it recorded no step")
    ax = _axes(ax)
    seconds, objectives = zip(
        *((step.seconds, step.objective) for step in fit.history), strict=True
    )
    # The last incumbent, and the last bound, hold until the end of the fit.
    times, incumbent = [*seconds, max(fit.seconds, seconds[-1])], [*objectives, objectives[-1]]
    ax.step(times, incumbent, where="post", color=BLUE, label="incumbent")
    ax.plot(seconds, objectives, ".", color=BLUE)
    if fit.bound is not None:
        told = [step.bound for step in fit.history]
        told = [fit.bound] * len(told) if set(told) == {None} else told
        bounds = np.array([*told, fit.bound], np.float64)  # None is NaN
        ax.step(times, bounds, where="post", color=ORANGE, linestyle="--", label="proved bound")
        ax.fill_between(
            times, incumbent, bounds, step="post", color=BLUE, alpha=0.12, linewidth=0, label="gap"
        )
    ax.set_xlim(left=0)
    ax.set(xlabel="seconds", ylabel=f"objective ({fit.sense})")
    ax.legend(frameon=False)
    return ax


def support_path(
    path: Sequence[Fit[RuleEnsemble]],
    X: TableLike | None = None,
    ax: Any = None,
    *,
    penalty: str = "global_penalty",
) -> Any:
    """The number of rules against the penalty along a path; with `X`, also
    the number per prediction.

    Args:
        path: from `jaxrules.lire.path`, from `jaxrules.rulefit.path` with
            ``penalty="l1_penalty"``, or from `jaxrules.glrm.path` with ``penalty="rule_penalty"``.
        X: rows, for the mean local support.
        ax: matplotlib axes.
        penalty: the name of the penalty among the settings of the fits.

    Raises:
        ValueError: if there is nothing to draw, or the fits have no such penalty.
    """
    if not isinstance(path, Sequence) or not all(isinstance(fit, Fit) for fit in path):
        raise TypeError(
            f"path must be a sequence of fits, as of jaxrules.lire.path, got {type(path).__name__}"
        )
    checks.text("penalty", penalty, "the name of a setting of the fits")
    checks.require(len(path) > 0, "path is empty")
    penalties = [dict(fit.model.options).get(penalty) for fit in path]
    known = ", ".join(name for name, _ in path[0].model.options)
    checks.require(
        None not in penalties, f"the fits of path have no setting {penalty!r}; they have {known}"
    )
    ax = _axes(ax)
    lines: dict[str, list[float]] = {"in the model": [support(fit.model) for fit in path]}
    if X is not None:
        lines["that hold for a row, on average"] = [local_support(fit.model, X) for fit in path]
    for number, (label, values) in enumerate(lines.items()):
        ax.plot(penalties, values, **_style(number), markersize=4, label=label)
    ax.set_xscale("log")
    marked = penalties[:: 1 + len(penalties) // 8]
    ax.set_xticks(marked, [f"{one:.2g}" for one in marked])
    ax.minorticks_off()
    ax.set(xlabel=penalty.replace("_", " "), ylabel="rules")
    ax.set_ylim(bottom=0)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return ax


# Models and predictions


def rule_importance(
    model: RuleEnsemble | OrderedRules, X: TableLike, ax: Any = None, *, most: int = 10
) -> Any:
    """The most important rules and terms as bars, see `jaxrules.importance`; colours
    show the sign of the weight, with several classes the part of each, in a list the label; a list
    of numbers has one colour.

    Args:
        model: a rule ensemble or list.
        X: rows.
        ax: matplotlib axes.
        most: the most bars to draw.
    """
    most = checks.integer("most", most, at_least=1)
    ranked = importance(model, X)[:most]
    checks.require(len(ranked) > 0, "model has no rule and no linear term in use")
    drawn = _axes(ax)
    if isinstance(model, OrderedRules):
        if isinstance(model, RuleList):
            _bars_by_label(model, ranked, drawn)
        else:
            drawn.barh(range(len(ranked)), [one.value for one in ranked], color=BLUE)
        drawn.set_xlabel("share of rows decided")
    else:
        if model.n_outputs > 1:
            _bars_by_class(model, ranked, drawn)
        else:
            _bars_by_sign(ranked, drawn)
        drawn.set_xlabel("importance (spread of the score)")
    _rows([one.text for one in ranked], drawn, ax is None)
    if not isinstance(model, RegressionList):
        _legend_above(drawn)
    return drawn


def _bars_by_sign(ranked: Sequence[Importance], ax: Any) -> None:
    kinds = [int((one.weight or 0.0) <= 0) for one in ranked]
    styles = [(BLUE, "raises the score"), (ORANGE, "lowers the score")]
    _bars(ranked, kinds, [{"color": colour, "label": label} for colour, label in styles], ax)


def _bars(
    ranked: Sequence[Importance], kinds: Sequence[int], styles: Sequence[Any], ax: Any
) -> None:
    """Bars of every kind, if there are some, in its style."""
    for kind, style in enumerate(styles):
        rows = [i for i, one in enumerate(kinds) if one == kind]
        if rows:
            ax.barh(rows, [ranked[i].value for i in rows], **style)


def _bars_by_label(model: RuleList, ranked: Sequence[Importance], ax: Any) -> None:
    """Bars in the colour of the label that the rule gives."""
    classes, rules = model.schema.classes or (), model.conjunctions
    said = {rules.describe(r, " AND "): int(model.labels[r]) for r in range(len(rules))}
    said["otherwise"] = int(model.labels[-1])
    styles = [{"label": _shown(one), **_filled(k)} for k, one in enumerate(classes)]
    _bars(ranked, [said[one.text] for one in ranked], styles, ax)


def _bars_by_class(model: RuleEnsemble, ranked: Sequence[Importance], ax: Any) -> None:
    """Bars of the classes beside each other: an importance is the mean over the outputs, and each
    has the part of its absolute weight.
    """
    sizes: dict[str, NDArray[np.float64]] = {}
    weights = np.abs(np.asarray(model.weights, np.float64))
    for r, text in model.conjunctions.texts(range(len(weights))).items():
        sizes[text] = sizes.get(text, np.zeros(model.n_outputs)) + weights[r]
    if model.linear is not None:
        slopes = np.abs(np.asarray(model.linear.coefficients, np.float64))
        for t, slope in enumerate(slopes):
            sizes[model.linear.describe(t, model.schema)] = slope
    shares = np.array([sizes[one.text] / sizes[one.text].sum() for one in ranked])
    lengths, left = shares * np.array([[one.value] for one in ranked]), np.zeros(len(ranked))
    for k, label in enumerate(model.schema.classes or range(model.n_outputs)):
        name = _shown(label)
        ax.barh(range(len(ranked)), lengths[:, k], left=left, label=name, **_filled(k))
        left = left + lengths[:, k]


def _filled(number: int) -> dict[str, Any]:
    """The fill of a bar; no pair of colour and pattern repeats among the first 28."""
    cycle, colour = divmod(number, len(COLOURS))
    return {"color": _colour(colour), "hatch": ("", "//", "..", "xx")[cycle % 4]}


def feature_importance(model: Any, X: TableLike, ax: Any = None, *, most: int = 10) -> Any:
    """The most important columns as bars, see `jaxrules.feature_importance`.

    Args:
        model: any model; or the result of `jaxrules.stability`, for bars of one standard error.
        X: rows.
        ax: matplotlib axes.
        most: the most bars to draw.
    """
    found = importances.feature_importance(model, X)
    ax = _columns(found, ax, most)
    ax.set_xlabel("importance")
    return ax


def local_importance(model: Any, X: TableLike, row: Any, ax: Any = None, *, most: int = 10) -> Any:
    """What the columns add to the score of one row, see `jaxrules.local_importance`.

    Args:
        model: a model with one score; or the result of `jaxrules.stability`, for bars of one
            standard error.
        X: rows to compare with.
        row: a table of one row.
        ax: matplotlib axes.
        most: the most bars to draw.
    """
    found = importances.local_importance(model, X, row)
    ax = _columns(found, ax, most)
    ax.axvline(0.0, color=_grey(0.8), linewidth=0.8, zorder=0)
    ax.set_xlabel("score against the mean row")
    return ax


def _columns(found: Sequence[importances.ColumnImportance], ax: Any, most: int) -> Any:
    """Bars of columns, the largest on top, with error bars if there are some."""
    most = checks.integer("most", most, at_least=1)
    ranked = sorted((one for one in found if one.value), key=lambda one: -abs(one.value))[:most]
    checks.require(len(ranked) > 0, "model uses no column")
    grows, ax = ax is None, _axes(ax)
    errors = None if ranked[0].error is None else [one.error for one in ranked]
    colours = [BLUE if one.value > 0 else ORANGE for one in ranked]
    bars, values = range(len(ranked)), [one.value for one in ranked]
    ax.barh(bars, values, xerr=errors, color=colours, ecolor=_grey(0.3), capsize=2)
    _rows([display.plain(one.name) for one in ranked], ax, grows)
    return ax


def coefficient_path(
    path: ModelSequence | Sequence[Fit[RuleEnsemble]], ax: Any = None, *, most: int = 10
) -> Any:
    """How coefficients change along a path, a line per column or rule, labelled at its end.

    Args:
        path: a coordinate path; or fits of rule ensembles with one output, from the path of a
            learner: the horizontal axis is then the number of rules.
        ax: matplotlib axes.
        most: the most lines to label, those with the largest coefficients at the end; the others
            are grey.

    Raises:
        TypeError: for anything else.
        ValueError: if there is nothing to draw, or a model has a score per class.
    """
    most = checks.integer("most", most, at_least=1)
    if isinstance(path, ModelSequence):
        checks.require(not path.by_class, "path has models with a score per class")
        steps = np.arange(len(path) + 1)
        values = np.stack([path.slopes(k) for k in steps.tolist()])
        names, labels = list(path.names), {"xlabel": "step", "ylabel": "coefficient"}
    else:
        steps, values, names = _weights_along(path)
        labels = {"xlabel": "rules", "ylabel": "weight"}
    used = np.flatnonzero(values.any(axis=0))
    checks.require(len(used) > 0, "path has no coefficient other than 0")
    grows, ax = ax is None, _axes(ax)
    ranked = used[np.argsort(-np.abs(values[-1, used]), kind="stable")]
    ax.plot(steps, values[:, ranked[most:]], color=_grey(0.8), linewidth=0.7, zorder=1)
    shown = np.array(sorted(ranked[:most].tolist(), key=lambda j: values[-1, j]))
    texts = [_wrapped(_shown(names[j])) for j in shown.tolist()]
    # Labels stand at least 5.5 % of the range apart for each line of text, and lines join them to
    # their ends.
    gap = 0.055 * max(text.count("\n") + 1 for text in texts)
    if grows:
        width, height = ax.figure.get_size_inches()
        wide = 0.07 * max(len(line) for text in texts for line in text.split("\n"))
        high = max(1.0, gap * len(texts))
        ax.figure.set_size_inches(width + wide, height * high)
        gap /= high
    heights = _apart(values[-1, shown], gap * float(np.ptp(values[:, used])))
    for number, (j, height) in enumerate(zip(shown.tolist(), heights, strict=True)):
        style = _style(number)
        ax.plot(steps, values[:, j], **style, markersize=3, linewidth=1)
        line = {"arrowstyle": "-", "color": style["color"], "linewidth": 0.4, "relpos": (0, 0.5)}
        ax.annotate(
            texts[number], (steps[-1], values[-1, j]), xytext=(1.04, height),
            textcoords=("axes fraction", "data"), color=style["color"], fontsize="x-small",
            va="center", annotation_clip=False, arrowprops=line,
        )  # fmt: skip
    ax.axhline(0.0, color=_grey(0.8), linewidth=0.8, zorder=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(**labels)
    return ax


def _apart(values: NDArray[np.float64], gap: float) -> list[float]:
    """The heights nearest to ascending values that are at least `gap` apart: less k gap, they
    ascend.
    """
    steps = gap * np.arange(len(values))
    heights: list[float] = (isotonic_regression(values - steps).x + steps).tolist()
    return heights


def _weights_along(path: Any) -> tuple[NDArray[Any], NDArray[np.float64], list[str]]:
    """Numbers of rules, weights (fits, rules), 0 where a model lacks the rule, and the rules."""
    fits = isinstance(path, Sequence) and all(
        isinstance(fit, Fit) and isinstance(fit.model, RuleEnsemble) for fit in path
    )
    if not fits:
        raise TypeError(
            "path must be a coordinate path, or a sequence of fits of rule ensembles, got "
            f"{type(path).__name__}"
        )
    checks.require(len(path) > 0, "path is empty")
    checks.require(path[0].model.n_outputs == 1, "path has models with a score per class")
    found: dict[str, NDArray[np.float64]] = {}
    for k, fit in enumerate(path):
        for r, weight in enumerate(np.asarray(fit.model.weights)[:, 0].tolist()):
            rule = fit.model.conjunctions.describe(r)
            found.setdefault(rule, np.zeros(len(path)))[k] += weight
    values = np.stack(list(found.values()), axis=1) if found else np.zeros((len(path), 0))
    return np.array([support(fit.model) for fit in path]), values, list(found)


def waterfall(
    explanation: Explanation, ax: Any = None, *, output: int | None = None, most: int = 10
) -> Any:
    """How the parts of a prediction add up to its score, from the intercept downwards; a dashed
    line is the threshold of `jaxrules.with_threshold`.

    Args:
        explanation: one of `jaxrules.explain`, of a model with scores.
        ax: matplotlib axes.
        output: which score, if there is one per class; None for that of the predicted class.
        most: the number of parts to draw, the largest; the others are one bar.

    Raises:
        ValueError: for an explanation without scores, or an unknown output.
    """
    checks.instance("explanation", explanation, Explanation, "jaxrules.explain")
    if explanation.score is None:
        raise ValueError("explanation is for a model without scores")
    last, labels = len(explanation.score) - 1, list(explanation.probabilities or ())
    if output is None:
        output = labels.index(explanation.prediction) if last else 0
    output = checks.integer("output", output, at_least=0, at_most=last)
    most = checks.integer("most", most, at_least=1)
    start, *parts = [(part.text, float(part.weight[output])) for part in explanation.parts]
    reasons = sorted((part for part in parts if part[1]), key=lambda part: -abs(part[1]))
    reasons, rest = reasons[:most], reasons[most:]
    if rest:
        reasons.append((display.counted(len(rest), "other"), sum(weight for _, weight in rest)))
    steps = [start, *reasons, ("score", 0.0)]
    width = np.array([weight for _, weight in steps])
    ends = np.cumsum(width)
    left = np.append(0.0, ends[:-1])
    # Each part begins where the one before ends; the score is a separate bar, from 0.
    left[-1], width[-1] = 0.0, ends[-1]
    colours = [_grey(0.6), *(BLUE if weight > 0 else ORANGE for _, weight in reasons), _grey(0.0)]
    grows, ax = ax is None, _axes(ax)
    ax.barh(range(len(steps)), width, left=left, color=colours, height=0.7)
    largest = display.largest_of(width)
    for row, (start_at, size) in enumerate(zip(left, width, strict=True)):
        amount = f"{size:+.0f}" if explanation.in_points else None
        told = f" {amount or display.weight_text(size, largest, digits=3)}"
        ax.text(max(start_at, start_at + size), row, told, va="center", fontsize="small")
    above = np.arange(len(ends) - 1)
    ax.vlines(ends[:-1], above - 0.35, above + 1.35, color=_grey(0.4), linewidth=0.6)
    ax.axvline(0.0, color=_grey(0.8), linewidth=0.8, zorder=0)
    cut = explanation.threshold
    if cut is not None and cut.score is not None:
        ax.axvline(cut.score, color=_grey(0.4), linewidth=0.8, linestyle="--", zorder=0)
    ax.use_sticky_edges = False
    ax.margins(x=0.12)
    _rows([text for text, _ in steps], ax, grows)
    of_class = f" of {_shown(labels[output])}" if last else ""
    ax.set_xlabel("points" if explanation.in_points else f"score{of_class}")
    said = explanation.prediction
    title = f"prediction: {display.number(said) if isinstance(said, float) else _shown(said)}"
    ax.set_title(title if cut is None else f"{title}\n{_shown(cut)}", loc="left")
    return ax


def decision_regions(
    model: Any,
    X: TableLike,
    y: ArrayLike | None = None,
    ax: Any = None,
    *,
    features: Sequence[str] | None = None,
) -> Any:
    """What a model predicts over the plane of two numeric columns, and the rows.

    All other columns are held at their medians, or most frequent categories.

    Args:
        model: any model; classes are drawn as coloured regions, numbers on a scale.
        X: rows; they also set the limits of the axes.
        y: the targets of the rows; without them, no rows are drawn.
        ax: matplotlib axes.
        features: the names of the two columns; None for the first two numeric ones.

    Raises:
        ValueError: if `features` are not two numeric columns of the model, or X or y does not fit.
    """
    check_order(X, y=y)
    table = rows_for(model, X)
    classes = model.schema.classes
    numeric = [feature.name for feature in table.schema.features if feature.is_numeric]
    named = tuple(numeric[:2] if features is None else _names(features))
    fit = len(set(named)) == 2 and set(named) <= set(numeric)
    checks.require(fit, f"features must be two of the numeric columns {numeric}, got {list(named)}")
    across, up = (table.names.index(name) for name in named)
    for place in (across, up):
        within = np.nanmax(np.abs(table.columns[place])) <= _LARGEST
        checks.require(within, f"column {table.names[place]!r} of X has numbers too large to plot")
    columns = [np.full(_POINTS**2, _typical(column)) for column in table.columns]
    ticks = [_range(table.columns[place]) for place in (across, up)]
    columns[across], columns[up] = (values.ravel() for values in np.meshgrid(*ticks))
    for companion in table.schema.companions.values():  # beside numbers
        columns[companion][:] = len(table.schema.features[companion].categories or ()) - 1
    said = np.asarray(predict(model, Table(table.schema, tuple(columns))))
    values, truth = said.reshape(_POINTS, _POINTS), None
    if y is not None and classes is None:
        truth = regression_target(y, table.n_rows)
    elif y is not None:
        truth = known_labels(y, classes, table.n_rows)
    ax, rows = _axes(ax), (table.columns[across], table.columns[up])
    (_numbers if classes is None else _classes)(ax, table.schema, ticks, values, rows, truth)
    ax.set(xlabel=_shown(named[0]), ylabel=_shown(named[1]))
    return ax


def _names(features: Any) -> Sequence[str]:
    names = features.tolist() if isinstance(features, np.ndarray) else features
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"features must be two column names, got {type(features).__name__}")
    return names


_POINTS = 300
"""Points of the plane per column."""
_LARGEST = 1e307
"""Beyond this, differences may overflow float64."""


def _range(column: NDArray[Any]) -> NDArray[np.float64]:
    low, high = np.nanmin(column), np.nanmax(column)
    # A constant column gets an interval around it.
    margin = 0.05 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, _POINTS)


def _typical(column: NDArray[Any]) -> Any:
    if column.dtype.kind != "f":
        return np.bincount(column[column >= 0]).argmax()
    with np.errstate(over="ignore"):  # a median beyond all numbers is infinite
        return np.nanmedian(column)


def _classes(
    ax: Any, schema: Schema, ticks: Any, values: NDArray[Any], rows: Any, truth: NDArray[Any] | None
) -> None:
    from matplotlib.colors import ListedColormap, to_rgb
    from matplotlib.patches import Patch

    classes, ground = schema.classes or (), 0.0 if _is_dark() else 1.0 - _LIGHTER
    light: list[Any] = [
        tuple(_LIGHTER * part + ground for part in to_rgb(_style(k)["color"]))
        for k in range(len(classes))
    ]
    codes = np.argmax(np.stack([values == label for label in classes]), axis=0)
    limits = {"cmap": ListedColormap(light), "vmin": -0.5, "vmax": len(classes) - 0.5}
    ax.pcolormesh(*ticks, codes, rasterized=True, **limits)
    handles = [
        Patch(color=colour, label=_shown(label))
        for colour, label in zip(light, classes, strict=True)
    ]
    if truth is not None:
        edge = {"s": 9, "linewidths": 0.3, "edgecolors": _grey(1.0)}
        handles = [
            ax.scatter(*(x[truth == label] for x in rows), label=_shown(label), **edge, **_style(k))
            for k, label in enumerate(classes)
        ]
    _legend_above(ax, handles, _shown(schema.target))


def _numbers(
    ax: Any, schema: Schema, ticks: Any, values: NDArray[Any], rows: Any, truth: NDArray[Any] | None
) -> None:
    shown = values if truth is None else np.append(values.ravel(), truth)
    limits = {"cmap": "cividis", "vmin": float(shown.min()), "vmax": float(shown.max())}
    mesh = ax.pcolormesh(*ticks, values, rasterized=True, **limits)
    if truth is not None:
        ax.scatter(*rows, c=truth, s=9, linewidths=0.4, edgecolors=_grey(1.0), **limits)
    ax.figure.colorbar(mesh, ax=ax, label=_shown(schema.target))


# Quality and effects


def _quality(model: Any, X: TableLike, y: ArrayLike) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The figures of a report on some rows, and the classes."""
    if not isinstance(model, Model):
        not_a_model(model)
    checks.concrete("X", X)
    check_order(X, y=y)
    rows = FigureRows.of(model, conform(X, model.schema), y, None, Known())
    return quality_json([(model, slice(None))], program_of(model), rows), rows.classes or ()


def _curves(model: Any, X: TableLike, y: ArrayLike) -> tuple[list[dict[str, Any]], Any, list[str]]:
    """The curves of classes that some rows have and others lack, the confusion matrix, and the
    names of the classes.
    """
    found, classes = _quality(model, X, y)
    checks.require(len(classes) > 0, "model predicts numbers, for which there is no such curve")
    curves = [curve for curve in found["curves"] if curve["roc"] is not None]
    checks.require(len(curves) > 0, "y has rows of one class only; the curve needs others")
    names = list(map(_shown, classes))
    return curves, np.array(found["confusion"]), names


def roc(model: Any, X: TableLike, y: ArrayLike, ax: Any = None) -> Any:
    """The ROC curve, a line per class if there are more than two, with the area below it and its
    95 % interval (DeLong et al. 1988). A ring is the operating point: the labels that the model
    gives. Of two classes, a band has the pointwise 95 % intervals of the true positive rate (Wilson
    1927).

    Args:
        model: any model of classes.
        X, y: rows and their labels, best those that the model was not fitted to.
        ax: matplotlib axes.

    Raises:
        ValueError: for a model of numbers, or labels of one class only.
    """
    curves, confusion, names = _curves(model, X, y)
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color=_grey(0.7), linewidth=0.8, linestyle="--", zorder=0)
    for number, curve in enumerate(curves):
        k, (positive, negative) = curve["class"], curve["rows"]
        false, true = np.array(curve["roc"]).T
        area, error = curve["auc"], curve["auc_error"]
        ends = ""
        if error is not None:
            low, high = max(area - 1.96 * error, 0.0), min(area + 1.96 * error, 1.0)
            ends = f" ({low:.3f} to {high:.3f})"
        colour = _style(number)["color"]
        ax.plot(false, true, color=colour, label=f"{names[k]}: area {area:.3f}{ends}")
        if len(curves) == 1:
            ax.fill_between(false, *wilson(true, positive), color=colour, alpha=0.15, linewidth=0)
        alarms = confusion[:, k].sum() - confusion[k, k]
        _ring(ax, alarms / negative, confusion[k, k] / positive, colour)
    return _square(ax, "false positive rate", "true positive rate", "lower right")


def precision_recall(model: Any, X: TableLike, y: ArrayLike, ax: Any = None) -> Any:
    """Precision (the share of alarms that are right) against recall (the share of the class that is
    found), a line per class if there are more than two. A ring is the operating point; a dashed
    line is the share of the class, the precision of alarms at random.

    Args, errors: see `roc`; of two classes, the band has the pointwise 95 % intervals of precision.
    """
    curves, confusion, names = _curves(model, X, y)
    ax = _axes(ax)
    for number, curve in enumerate(curves):
        k, (positive, negative) = curve["class"], curve["rows"]
        false, true = np.array(curve["roc"]).T
        alarms = np.rint(false * negative + true * positive)
        some = alarms > 0
        recall, right = true[some], np.minimum(true[some] * positive / alarms[some], 1.0)
        colour = _style(number)["color"]
        ax.plot(recall, right, color=colour, label=names[k])
        if len(curves) == 1:
            ends = wilson(right, alarms[some])
            ax.fill_between(recall, *ends, color=colour, alpha=0.15, linewidth=0)
        usual = positive / (positive + negative)
        ax.axhline(usual, color=colour, linewidth=0.8, linestyle="--", alpha=0.6, zorder=0)
        if confusion[:, k].any():
            precision = confusion[k, k] / confusion[:, k].sum()
            _ring(ax, confusion[k, k] / positive, precision, colour)
    return _square(ax, "recall (true positive rate)", "precision", "lower left")


def _ring(ax: Any, x: float, y: float, colour: str) -> None:
    ax.plot([x], [y], "o", markersize=9, markerfacecolor="none", markeredgecolor=colour, zorder=4)


def _square(ax: Any, across: str, up: str, place: str) -> Any:
    """Axes of two shares."""
    ax.set(xlabel=across, ylabel=up, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.legend(frameon=False, loc=place, fontsize="small")
    return ax


def calibration(model: Any, X: TableLike, y: ArrayLike, ax: Any = None) -> Any:
    """What is observed against what is predicted, in ten bins of equally many rows: shares of a
    class against its probability, with 95 % intervals (Wilson 1927), a line per class if there are
    more than two; or means of the target against means of the prediction. A good model is on the
    dashed line.

    Args:
        model: any model.
        X, y: rows and their targets, best those that the model was not fitted to.
        ax: matplotlib axes.
    """
    found, classes = _quality(model, X, y)
    ax = _axes(ax)
    target = _shown(model.schema.target)
    if not classes:
        predicted, observed, _ = np.array(found["calibration"]).T
        low, high = min(predicted.min(), observed.min()), max(predicted.max(), observed.max())
        ax.plot([low, high], [low, high], color=_grey(0.7), linewidth=0.8, linestyle="--", zorder=0)
        ax.plot(predicted, observed, "o-", color=BLUE, markersize=4)
        ax.set(xlabel=f"mean prediction of {target}", ylabel=f"mean {target}")
        return ax
    ax.plot([0, 1], [0, 1], color=_grey(0.7), linewidth=0.8, linestyle="--", zorder=0)
    for number, curve in enumerate(found["curves"]):
        predicted, observed, sizes = np.array(curve["calibration"]).T
        low, high = wilson(observed, sizes)
        style, name = _style(number), _shown(classes[curve["class"]])
        errors = np.maximum([observed - low, high - observed], 0.0)
        ax.errorbar(
            predicted, observed, yerr=errors, **style, markersize=4, linewidth=1, elinewidth=0.6,
            capsize=2, label=name,
        )  # fmt: skip
    return _square(ax, "mean predicted probability", "share of the class", "upper left")


def effect(model: Any, X: TableLike, column: str, ax: Any = None) -> Any:
    """What one column does: the mean prediction over rows in which only this column is changed
    (partial dependence, Friedman 2001), of a class its probability; of more than two classes a line
    each. Grey bars below are how often the values occur: where there are few, the line says little.

    Args:
        model: any model.
        X: rows; at most 200 of them, evenly spaced, are averaged.
        column: its name.
        ax: matplotlib axes.

    Raises:
        ValueError: for an unknown column, or one without a value in X.
    """
    table = rows_for(model, X)
    classes = model.schema.classes
    names = [feature.name for feature in table.schema.sources]
    checks.require(
        isinstance(column, str) and column in names,
        f"column must be one of the columns {names}, got {column!r}",
    )
    place = table.names.index(column)
    feature, values = table.schema.features[place], table.columns[place]
    known = values[values >= 0] if feature.categories else values[~np.isnan(values)]
    checks.require(len(known) > 0, f"column {column!r} of X has no value")
    labels = feature.categories or feature.levels
    at = np.arange(len(labels)) if labels else _grid(model, place, known)
    some = np.unique(np.linspace(0, table.n_rows - 1, min(table.n_rows, _AVERAGED)).astype(int))
    rows = table[some]
    columns = [np.tile(one, len(at)) for one in rows.columns]
    columns[place] = np.repeat(at.astype(values.dtype), rows.n_rows)
    if (companion := table.schema.companions.get(place)) is not None:  # a number, no special value
        columns[companion][:] = len(table.schema.features[companion].categories or ()) - 1
    asked = Table(table.schema, tuple(columns))
    said = predict(model, asked) if classes is None else predict_proba(model, asked)
    means = np.asarray(said, np.float64).reshape(len(at), rows.n_rows, -1).mean(axis=1)
    named = [""] if classes is None else list(map(_shown, classes))
    lines = {name: k for k, name in enumerate(named) if k == 1 or len(named) != 2}
    ax = _axes(ax)
    for number, (name, k) in enumerate(lines.items()):
        style = _style(number)
        if labels:
            ax.plot(at, means[:, k], linestyle="none", markersize=6, label=name, **style)
        else:
            ax.plot(at, means[:, k], color=style["color"], label=name)
    _density(ax, known, at if labels else None)
    if labels:
        ax.set_xticks(at, list(map(_shown, labels)))
        ax.tick_params(axis="x", rotation=30 if max(len(str(one)) for one in labels) > 6 else 0)
    target = _shown(model.schema.target)
    single = f"mean probability of {next(iter(lines))}" if len(lines) == 1 else "mean probability"
    ax.set(
        xlabel=_shown(column),
        ylabel=f"mean prediction of {target}" if classes is None else single,
    )
    if len(lines) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


_AVERAGED = 200
"""The most rows over which an effect is averaged."""
_STEPS = 100


def _grid(model: Any, place: int, known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values at which an effect is drawn: even ones, and both sides of every threshold."""
    low, high = float(known.min()), float(known.max())
    found = np.linspace(low, high, _STEPS)
    if isinstance(model, (RuleEnsemble, OrderedRules)):
        rules = model.conjunctions
        ends = np.concatenate([rules.lower, rules.upper])[np.tile(rules.feature == place, 2)]
        ends = ends[np.isfinite(ends) & (ends > low) & (ends < high)]
        sides = [np.nextafter(ends, -np.inf), ends, np.nextafter(ends, np.inf)]
        found = np.unique(np.concatenate([found, *sides]))
    return found


def _density(ax: Any, known: NDArray[Any], codes: NDArray[Any] | None) -> None:
    """How often values occur, as bars of at most a quarter of the height, behind the lines."""
    below = ax.twinx()
    if codes is None:
        counts, edges = np.histogram(known, bins=30)
        below.stairs(counts, edges, fill=True, color=_grey(0.85))
    else:
        counts = np.bincount(known.astype(np.int64), minlength=len(codes))
        below.bar(codes, counts, color=_grey(0.85), width=0.7)
    below.set_ylim(0, 4 * max(int(counts.max()), 1))
    below.set_yticks([])
    below.spines[["right", "top"]].set_visible(False)
    ax.set_zorder(below.get_zorder() + 1)
    ax.patch.set_visible(False)


def list_flow(
    model: RuleList | RegressionList,
    X: TableLike,
    y: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """A rule list as a flow: the bar of a rule has the rows that reach it. It decides the coloured
    ones, and hands the grey ones on to the rule below.

    Args:
        model: a rule list, of classes or of numbers.
        X: rows.
        y: their classes: they colour the rows that a rule decides, those of its label first, and it
            is written how many are right. None colours them by the label. Of numbers, it is written
            how far they are from the value, on average.
        ax: matplotlib axes.

    Raises:
        TypeError: for anything but a rule list.
        ValueError: for data that do not fit the model.
    """
    kind = RegressionList if isinstance(model, RegressionList) else RuleList
    checks.instance("model", model, kind, "jaxrules.ssrl.fit")
    check_order(X, y=y)
    table, classes, n = rows_for(model, X), model.schema.classes or (), len(model.conjunctions)
    place, codes, away = model.position(table), np.zeros(n + 1, np.int64), np.zeros(n + 1)
    found = codes[place]
    if isinstance(model, RuleList):
        codes = np.asarray(model.labels)
        found = codes[place]
        if y is not None:
            found = codes_of(known_labels(y, classes, len(place)), classes)
    elif y is not None:
        distances = np.abs(regression_target(y, len(place)) - np.asarray(predict(model, table)))
        away = np.bincount(place, distances, n + 1)
    decided = np.zeros((n + 1, max(len(classes), 1)), np.int64)
    np.add.at(decided, (place, found), 1)
    reached = decided.sum(axis=1)[::-1].cumsum()[::-1]
    grows, ax = ax is None, _axes(ax)
    for r, (label, counts) in enumerate(zip(codes.tolist(), decided, strict=True)):
        total = int(counts.sum())
        start = rest = int(reached[r]) - total
        ax.barh(r, rest, height=0.5, color=_grey(0.8))
        ax.barh(r + 0.5, rest, height=0.5, color=_grey(0.92))  # on their way down
        for k in (label, *(k for k in range(decided.shape[1]) if k != label)):
            ax.barh(r, counts[k], left=start, height=0.5, **_filled(k))
            start += int(counts[k])
        right = "" if classes else f", off by {display.number(away[r] / max(total, 1), 3)}"
        right = f", {counts[label] / total:.0%} right" if classes and total else right
        right = right if y is not None and total else ""
        said, _ = model.predicted(r)
        said = _shown(said) if classes else display.number(said)
        says = f"{said}: {display.counted(total, 'row')}{right}"
        ax.text(reached[r] + 0.01 * len(place), r, says, va="center", fontsize="small")
    _rows([*(model.conjunctions.describe(r, " AND ") for r in range(n)), "otherwise"], ax, grows)
    ax.set(xlabel="rows", xlim=(0, 2 * len(place)))  # with room for the words
    ax.set_xticks([tick for tick in ax.get_xticks() if 0 <= tick <= len(place)])
    ax.spines["bottom"].set_bounds(0, len(place))
    of = _shown(model.schema.target) + (" of the rows" if y is not None else " as predicted")
    handles = [ax.barh(0, 0, label=_shown(one), **_filled(k)) for k, one in enumerate(classes)]
    if handles:
        _legend_above(ax, handles, of)
    return ax


def overlap(model: RuleEnsemble | OrderedRules, X: TableLike, ax: Any = None) -> Any:
    """How much pairs of rules overlap: rows of both / rows of either, see `jaxrules.rule_report`.

    Args:
        model: a rule ensemble or list.
        X: rows.
        ax: matplotlib axes.

    Raises:
        ValueError: for a model without a rule in use.
    """
    found = rule_report(model, X)
    n = len(found.rules)
    checks.require(n > 0, "model has no rule in use")
    grows, ax = ax is None, _axes(ax)
    mesh = ax.imshow(found.overlap, cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto")
    texts = [f"{one.text}  ({k + 1})" for k, one in enumerate(found.rules)]
    _rows(texts, ax, grows)
    ax.set_xticks(range(n), [str(k + 1) for k in range(n)], fontsize="small")
    if n <= _WRITTEN:
        for (i, j), share in np.ndenumerate(found.overlap):
            dark = "white" if share < 0.5 else "black"
            ax.text(j, i, f"{share:.0%}", ha="center", va="center", color=dark, fontsize="x-small")
    ax.figure.colorbar(mesh, ax=ax, label="rows of both rules / rows of either", shrink=0.7)
    return ax


_WRITTEN = 12
"""Up to this many rules, overlaps are written as numbers as well."""


# Coordinate paths


def path_costs(sequences: Mapping[str, ModelSequence], ax: Any = None) -> Any:
    """The cost after every step of one or more coordinate paths (Bertsimas et al. 2019, Fig. 3b).

    Args:
        sequences: paths or sequences of models by label.
        ax: matplotlib axes.

    Raises:
        ValueError: if there is nothing to draw.
    """
    _by_label("sequences", sequences, "paths")
    for label, sequence in sequences.items():
        checks.instance(f"sequences[{label!r}]", sequence, ModelSequence, "jaxrules.paths")
    ax = _axes(ax)
    for number, (label, sequence) in enumerate(sequences.items()):
        ax.plot(sequence.costs, **_style(number), markersize=4, label=_shown(label))
    ax.set(xlabel="steps", ylabel="cost")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return ax


def price_of_interpretability(front: Front, ax: Any = None) -> Any:
    """Cost against interpretability loss, a colour per number of steps; hollow if
    unsupported (their Fig. 2).

    Grey boxes are regions that weighted sums cannot reach.

    Args:
        front: from `jaxrules.paths.pareto`.
        ax: matplotlib axes.
    """
    from matplotlib.patches import Rectangle

    checks.instance("front", front, Front, "jaxrules.paths.pareto")
    ax = _axes(ax)
    for box in front.boxes:
        corner = (box.interpretability[0], box.cost[0])
        width, height = box.interpretability[1] - corner[0], box.cost[1] - corner[1]
        ax.add_patch(Rectangle(corner, width, height, color=_grey(0.92), zorder=0))
    for number, steps in enumerate(sorted({len(point.path) for point in front.points})):
        label: str | None = display.counted(steps, "step")
        for supported in (True, False):
            points = [p for p in front.points if len(p.path) == steps and p.supported == supported]
            if points:
                losses, costs = zip(*((p.interpretability, p.cost) for p in points), strict=True)
                filled = {} if supported else {"facecolors": "none"}
                ax.scatter(losses, costs, s=14, label=label, **_style(number), **filled)
                label = None
    if not all(point.supported for point in front.points):
        ax.scatter(
            [], [], s=14, facecolors="none", edgecolors=_grey(0.4), label="hollow: unsupported"
        )
    ax.set(xlabel="interpretability loss", ylabel="cost")
    ax.legend(frameon=False)
    return ax
