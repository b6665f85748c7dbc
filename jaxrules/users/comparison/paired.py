"""Whether two methods differ on the folds that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from scipy.stats import t as students_t

from jaxrules.tools import checks

Alternative = Literal["two-sided", "less", "greater"]

MOST_RANKED = 1000
"""The exact distribution takes the cube of this many steps."""


class PairedTest(NamedTuple):
    """A test of a mean difference of risks.

    Attributes:
        difference: the mean over the folds, first minus second.
        standard_error: its corrected standard error.
        statistic: difference / standard_error; infinite if all folds differ
            by the same nonzero amount.
        p_value: two-sided; 1 if no fold differs.
        folds: their number.
    """

    difference: float
    standard_error: float
    statistic: float
    p_value: float
    folds: int


def corrected_t_test(differences: ArrayLike, *, held_out: float) -> PairedTest:
    """The corrected resampled t-test of Nadeau and Bengio (2003, Sec. 3.3) on
    the differences of folds.

    Folds share training rows, so their risks are not independent, and the usual variance of
    a mean, s^2 / k, is too small. The corrected one is (1 / k + n_test / n_train) s^2, with
    k - 1 degrees of freedom.

    Limits: it is a heuristic, with the right size in their experiments but without proof. It was
    designed for random splits; Bouckaert and Frank (2004) use it for (repeated) cross-validation.
    Five folds detect only large differences, so a large p-value is no evidence of equality. The
    result holds only for these data. Several tests need an adjustment, see `holm`.

    Args:
        differences: of two methods' risks, first minus second, one number per fold, shape (folds,).
        held_out: the share of held-out rows per fold, in (0, 1): n_test / (n_test + n_train).

    Raises:
        TypeError, ValueError: for fewer than two folds, or a share out of range.
    """
    given = checks.sequence("differences", differences)
    share = checks.number("held_out", held_out, above=0, below=1)
    n = len(given)
    checks.require(
        n >= 2, f"differences must have one number for each of at least two folds, got {n}"
    )
    mean, spread = float(given.mean()), float(given.std(ddof=1))
    error = spread * (1 / n + share / (1 - share)) ** 0.5  # share / (1 - share): n_test / n_train
    # Equal differences leave only rounding as their spread.
    if error <= 1e-12 * max(abs(mean), np.finfo(float).tiny):
        statistic = 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    else:
        statistic = mean / error
    return PairedTest(mean, error, statistic, float(2 * students_t.sf(abs(statistic), n - 1)), n)


class SignedRankTest(NamedTuple):
    """A test of whether differences of risks lie around 0.

    Attributes:
        rank_sum: W+, the sum of the ranks of the positive differences, first minus second.
        p_value: exact; 1 if no fold differs.
        folds: the number of differences that are not 0.
    """

    rank_sum: float
    p_value: float
    folds: int


def signed_rank_test(
    differences: ArrayLike, *, alternative: Alternative = "two-sided"
) -> SignedRankTest:
    """Wilcoxon's signed-rank test (1945), as the LIRE paper uses it (Tables 5 and 6).

    Differences of 0 are dropped, equal sizes share their mean rank, and the p-value is exact: the
    share of all signs of these ranks whose sum is as extreme. One-sided,
    that of n folds is 2^-n at least.

    Limits: it takes the differences for independent. Those of cross-validated folds are not, since
    they share training rows, so that it finds differences too often; see `corrected_t_test`. It is
    right for one difference per data set (Demsar 2006).

    >>> signed_rank_test([-0.3, -0.1, -0.2, 0.05, -0.4], alternative="less")
    SignedRankTest(rank_sum=1.0, p_value=0.0625, folds=5)

    Args:
        differences: first minus second, one per fold or data set, shape (folds,).
        alternative: "less": the first is less; "greater"; "two-sided".

    Raises:
        TypeError, ValueError: for differences that are not finite numbers, none, more than 1000, or
            an unknown alternative.
    """
    given = checks.sequence("differences", differences)
    checks.choice("alternative", alternative, get_args(Alternative))
    checks.require(
        len(given) <= MOST_RANKED,
        f"differences must have at most {MOST_RANKED} numbers, got {len(given)}",
    )
    given = given[given != 0]
    doubled = np.round(2 * rankdata(np.abs(given))).astype(int)  # mean ranks are halves
    # ways[w]: the share of the signs whose positive ranks sum to w / 2, one rank after another
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] += ways[:-rank].copy()
        ways /= 2
    sum_ = int(doubled[given > 0].sum())
    less, greater = ways[: sum_ + 1].sum(), ways[sum_:].sum()
    tails = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}
    return SignedRankTest(sum_ / 2, min(1.0, float(tails[alternative])), len(given))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm (1979): rejecting those below alpha keeps the
    family-wise error at most alpha.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted, largest = np.ones(len(p_values)), 0.0
    for place, test in enumerate(order):
        # The i-th smallest of m is multiplied by m - i + 1, the tests not yet rejected; the running
        # maximum keeps the order.
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[test]))
        adjusted[test] = largest
    return [float(p) for p in adjusted]
