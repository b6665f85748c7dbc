"""What the paper says of LIRE, weighed by the archived folds.

The paper's LIRE is its published search. Where that search has one fold only (lambda other than
1), jaxrules' own search for the same objective stands for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paper_reproductions import claims
from paper_reproductions.claims import Comparison
from paper_reproductions.framework import Claim, Results, Rows
from paper_reproductions.lire import exhibits, protocol

LOWER = 0.01
"""Accuracy that may be lost where the paper says "comparable", "similar" or "without degrading"."""
ENSEMBLES, COMPLEX = ("RuleFit", "GLRM"), ("RF", "LightGBM", "KernelSVM")
SIZES = {"support": "#Support", "local_support": "#LocalSupport", "ratio": "support ratio"}
FORMS = {"support": "+.1f", "local_support": "+.1f", "ratio": "+.3f", "accuracy": "+.4f"}
_MIDDLE = (0.0005, 0.001)
"""The gammas that Section 5.2 names."""
GRID = 25
"""Sizes at which two curves of accuracy are compared."""
PUBLISHED, OWN = protocol.PUBLISHED, "LIRE"
LARGE, SMALL = max(protocol.LOCAL_PENALTIES), min(protocol.LOCAL_PENALTIES)


def paired(first: Rows, second: Rows, measure: str) -> list[float]:
    """First minus second on the folds that both have."""
    other = {row["fold"]: row[measure] for row in second}
    return [row[measure] - other[row["fold"]] for row in first if row["fold"] in other]


def against(
    results: Results, lire: str, methods: Iterable[str], measures: Iterable[str]
) -> list[Comparison]:
    """LIRE minus other methods on every data set: sizes have to be smaller, an accuracy at most
    `LOWER` lower. KernelSVM on part of the rows is left out.
    """
    rows = exhibits.compared(results)
    found = []
    for name, title in exhibits.TITLES.items():
        there = rows.where(data=name)
        for method in methods:
            if method == "KernelSVM" and name in protocol.SVM_ROWS:
                continue
            for measure in measures:
                values = paired(there.where(method=lire), there.where(method=method), measure)
                if values:
                    found.append(_judged(f"{title}, {method}", measure, values))
    return found


def _judged(what: str, measure: str, values: Sequence[float]) -> Comparison:
    if measure == "accuracy":
        return Comparison(
            f"{what}, accuracy", claims.mean(values), above=-LOWER, form=FORMS[measure]
        )
    what = f"{what}, {SIZES[measure]}"
    return Comparison(what, claims.mean(values), below=0.0, form=FORMS[measure])


def benchmarks(
    methods: Sequence[str], measures: Sequence[str]
) -> tuple[Callable[[Results], list[Comparison]], Callable[[Results], str]]:
    """The comparisons of the published search, and how many jaxrules' own search shows."""

    def beside(results: Results) -> str:
        return _counted(against(results, OWN, methods, measures))

    return functools.partial(
        against, lire=PUBLISHED, methods=methods, measures=measures
    ), beside  # fmt: skip


def _counted(found: Sequence[Comparison]) -> str:
    number = claims.counts(found)
    return (
        f"(jaxrules' own search for the same objective: shown in {number['shown']}, undecided in "
        f"{number['undecided']}, against in {number['against']} of {len(found)}.)"
        if found
        else ""
    )


# The trade-off of Fig. 2


def advantage(first: Rows, second: Rows, size: str) -> list[float]:
    """By fold, the mean difference of two curves of accuracy over the logarithm of a size, between
    the largest of their first sizes and the smallest of their last ones.
    """
    found = []
    for fold in first.values("fold"):
        curves = [_curve(rows.where(fold=fold), size) for rows in (first, second)]
        if any(len(x) < 2 for x, _ in curves):
            continue
        low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
        if low < high:
            at = np.linspace(low, high, GRID)
            ours, theirs = (np.interp(at, x, y) for x, y in curves)
            found.append(float((ours - theirs).mean()))
    return found


def _curve(rows: Rows, size: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithm of the sizes of a fold's models, ascending, and their accuracies."""
    models = sorted((row[size], row["accuracy"]) for row in rows if row[size] > 0)
    x, y = np.array(models).reshape(-1, 2).T
    return np.log(x), y


def trade_off(size: str) -> Callable[[Results], list[Comparison]]:
    """Accuracy of LIRE minus that of RuleFit at equal sizes: similar at equal #Support, higher at
    equal #LocalSupport, which is what fewer local rules at equal accuracy are.
    """

    def compare(results: Results) -> list[Comparison]:
        rows = exhibits.traded(results)
        lire = rows.where(method=PUBLISHED, local_penalty=protocol.MAIN_LOCAL_PENALTY)
        values = advantage(lire, rows.where(method="RuleFit"), size)
        if not values:
            return []
        found, what = claims.mean(values), f"Adult, accuracy at equal {SIZES[size]}"
        if size == "support":
            return [Comparison(what, found, above=-LOWER, below=LOWER, form="+.4f")]
        return [Comparison(what, found, above=0.0, form="+.4f")]

    return compare


# The effect of lambda, Fig. 3


def by_lambda(
    gammas: Sequence[float], measure: str, start: float, bound: float, side: str
) -> Callable[[Results], list[Comparison]]:
    """A measure at the largest lambda minus that at `start`, on the same folds."""

    def compare(results: Results) -> list[Comparison]:
        rows = exhibits.traded(results).where(method=OWN)
        found = []
        for gamma in gammas:
            at = rows.where(penalty=gamma)
            values = paired(
                at.where(local_penalty=LARGE), at.where(local_penalty=start), measure
            )  # fmt: skip
            if values:
                what = f"gamma {gamma:g}, {SIZES.get(measure, measure)}"
                limits = {side: bound}
                found.append(Comparison(what, claims.mean(values), form=FORMS[measure], **limits))
        return found

    return compare


def _one_fold(measure: str) -> Callable[[Results], str]:
    """What the published search has at both lambdas on its first fold."""

    def beside(results: Results) -> str:
        rows = exhibits.traded(results).where(method=PUBLISHED, fold=0)
        said = []
        for gamma in _MIDDLE:
            ends = [rows.where(penalty=gamma, local_penalty=value) for value in (SMALL, LARGE)]
            if all(ends):
                few, many = (part.mean(measure) for part in ends)
                said.append(f"{few:.1f} to {many:.1f} at gamma {gamma:g}")
        name = SIZES[measure]
        return f"(The published search, one fold: {name} from {', '.join(said)}.)" if said else ""

    return beside


def together(
    *parts: Callable[[Results], list[Comparison]],
) -> Callable[[Results], list[Comparison]]:
    """The comparisons of all parts of a sentence."""
    return lambda results: [one for part in parts for one in part(results)]


def seconds(results: Results) -> list[Comparison]:
    """CPU seconds of LIRE over those of the other rule ensembles."""
    rows = exhibits.compared(results)
    found = []
    for name, title in exhibits.TITLES.items():
        there = rows.where(data=name)
        for method in ENSEMBLES:
            other = {row["fold"]: row["cpu_seconds"] for row in there.where(method=method)}
            ratios = [
                row["cpu_seconds"] / other[row["fold"]]
                for row in there.where(method=PUBLISHED)
                if row["fold"] in other
            ]
            if ratios:
                found.append(
                    Comparison(
                        f"{title}, {method}", claims.geometric_mean(ratios), above=1.0, form=".2f"
                    )
                )
    return found


_NOT_LOWER = f"an accuracy at most {LOWER:g} lower"
_fewer, _fewer_own = benchmarks(ENSEMBLES, ("local_support", "accuracy"))
_accurate, _accurate_own = benchmarks((*ENSEMBLES, *COMPLEX), ("accuracy",))
_stable, _stable_own = benchmarks(ENSEMBLES, ("local_support", "ratio"))
_sparse, _sparse_own = benchmarks(("RuleFit",), ("support", "accuracy"))

CLAIMS = (
    Claim(
        "our method learns rule ensembles that can explain individual predictions with fewer rules "
        "than the existing methods, including RuleFit, while maintaining comparable accuracy",
        "Abstract",
        "Figure 5",
        f"The published search minus RuleFit and GLRM, means over ten folds: fewer #LocalSupport, "
        f"{_NOT_LOWER}.",
        _fewer,
        beside=_fewer_own,
    ),
    Claim(
        "LIRE attained a similar trade-off between accuracy and support size to RuleFit",
        "Section 5.1",
        "Figure 2",
        "Accuracy of the published search minus RuleFit's, averaged over the sizes that both have; "
        f"similar: within {LOWER:g}.",
        trade_off("support"),
    ),
    Claim(
        "LIRE ... achieved lower local support size than RuleFit without degrading accuracy",
        "Section 5.1",
        "Figure 2",
        "The same at equal #LocalSupport, where LIRE has to be the more accurate.",
        trade_off("local_support"),
    ),
    Claim(
        "For gamma in {0.0005, 0.001}, we could reduce the local support size without "
        "significantly degrading accuracy by increasing lambda",
        "Section 5.2",
        "Figure 3",
        f"jaxrules' search, lambda {LARGE:g} minus {SMALL:g}: fewer #LocalSupport, {_NOT_LOWER}.",
        together(
            by_lambda(_MIDDLE, "local_support", SMALL, 0.0, "below"),
            by_lambda(_MIDDLE, "accuracy", SMALL, -LOWER, "above"),
        ),
        beside=_one_fold("local_support"),
    ),
    Claim(
        "the support size also decreased for large lambda while maintaining accuracy",
        "Section 5.2",
        "Figure 3",
        f"jaxrules' search, lambda {LARGE:g} minus {SMALL:g}: fewer #Support, {_NOT_LOWER}.",
        together(
            by_lambda(_MIDDLE, "support", SMALL, 0.0, "below"),
            by_lambda(_MIDDLE, "accuracy", SMALL, -LOWER, "above"),
        ),
        beside=_one_fold("support"),
    ),
    Claim(
        "for gamma = 0.005, the average accuracy decreased when lambda > 1.0",
        "Section 5.2",
        "Figure 3",
        f"jaxrules' search, accuracy at lambda {LARGE:g} minus that at 1.",
        by_lambda((0.005,), "accuracy", 1.0, 0.0, "below"),
    ),
    Claim(
        "LIRE achieved comparable accuracy to the other rule ensembles, as well as complex models, "
        "regardless of the datasets",
        "Section 5.3",
        "Figure 4",
        f"The published search minus the others: {_NOT_LOWER}. KernelSVM on part of Adult is left "
        "out.",
        _accurate,
        beside=_accurate_own,
    ),
    Claim(
        "LIRE stably achieved lower local support sizes and support ratios than RuleFit and GLRM",
        "Section 5.3",
        "Figure 5",
        "The published search minus the others.",
        _stable,
        beside=_stable_own,
    ),
    Claim(
        "LIRE also achieved lower support sizes than RuleFit while maintaining similar accuracy",
        "Section 5.3",
        "Figure 5",
        f"The published search minus RuleFit: fewer #Support, {_NOT_LOWER}.",
        _sparse,
        beside=_sparse_own,
    ),
    Claim(
        "LIRE was slower than the baselines because its objective ... includes regularizers that "
        "have combinatorial nature",
        "Section 5.3",
        "Table 4",
        "CPU seconds of a fit at the chosen penalty, the published search over jaxrules' RuleFit and "
        "GLRM, geometric means over ten folds; the reason is not tested.",
        seconds,
    ),
)
