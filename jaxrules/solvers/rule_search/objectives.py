"""What a rule search maximises: the worth of a conjunction,

    worth = (value - price(length)) / divisor(length).

The value is a function of sums over the rows that the conjunction selects; price and divisor depend
on its number of propositions. An objective defines

    terms        the numbers per row that are summed; `SignedWeights` has a set of them
                 per row of weights
    value        of their sums; every search needs it
    potential    a bound on the values of all subsets of the rows, from the same sums; for beams
    bounds       the same from the rows themselves; for best-first search
    compiled     the class of `kernels.problems` with this value, and thereby a bound;
                 for depth-first and published search
    formula      the name of the value's formula in `ranking`; for pairs on a device

so a beam can search for a new objective as soon as its value is defined; each further piece makes
another search available.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.solvers.rule_search.compiled_pairs import CompiledPairs
from jaxrules.solvers.rule_search.row_classes import RowTerms, classes_of
from jaxrules.solvers.rule_search.space import IN_SPAN, SearchSpace

if TYPE_CHECKING:
    from jaxrules.solvers.rule_search.kernels.problems import Problem

Floats = NDArray[np.float64]
DISTANCE_FLOOR = 1e-6
"""What orthogonal boosting adds to a distance."""
_LARGEST_EXPONENT = 300.0  # compiled searches exclude infinity
_ENTRIES = 1 << 22
"""About the most entries of products of terms in memory at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Objective:
    """What objectives have in common: the penalties on length.

    Attributes:
        rule_price: penalty on any conjunction but the empty one.
        condition_price: penalty on each of its propositions.
        per_unit: divide by the complexity to the `power`: gain per unit of complexity.
        condition_units: the complexity is 1 + this for every proposition.
        power: exponent of the complexity.
        growth: at least 0; divide by (1 + growth)^length, so that every proposition must raise the
            value by this share.
        one_sided: sums of the gradient below 0 count as 0, for a rule whose weight must be
            negative.
    """

    rule_price: float = 0.0
    condition_price: float = 0.0
    per_unit: bool = False
    condition_units: float = 1.0
    power: float = 1.0
    growth: float = 0.0
    one_sided: bool = False
    compiled: ClassVar[str] = ""
    compiled_one_sided: ClassVar[str] = ""
    formula: ClassVar[str] = ""

    def terms(self, space: SearchSpace) -> Floats:
        """The numbers to sum, (rows of weights, sums, merged rows)."""
        raise NotImplementedError  # every objective has its own

    def value(self, sums: Floats) -> Floats:
        """The values for sums over rows, (sums, ...); shape (...)."""
        raise NotImplementedError  # every objective has its own

    def potential(self, sums: Floats) -> Floats:
        """An upper bound on the value of every subset of the rows with these sums."""
        return np.full(sums.shape[1:], math.inf)

    def bounds(self, terms: Floats, members: Floats) -> Floats:
        """Upper bounds on the values of all subsets of some sets of rows, which are the columns of
        a 0/1 matrix.
        """
        return self.potential(terms @ members)

    def shares(self, terms: Floats, members: Floats) -> Floats:
        """For each of some sets of rows, the least share of its curvature that a subset keeps after
        the refit, see `CorrectiveDecrease.shares`.
        """
        return np.ones(members.shape[1])

    @functools.cached_property
    def row_classes(self) -> RowTerms | None:
        """The terms of classes of rows, if many rows have the same; else None."""
        return None

    def values_of_pairs(self, terms: Floats) -> CompiledPairs | None:
        """Compiled values of all pairs of propositions of two partitions, given the terms of
        `one_row`; None if only `value` can tell.
        """
        return None

    def quotients(self) -> tuple[int, float] | None:
        """The number of classes and the ridge, if the value is the sum over classes of
        G^2 / (ridge + H - |B|^2), with the terms g, h, b of one class after another.
        """
        return None

    def sums_of_columns(self, terms: Floats, columns: Floats) -> Floats:
        """The sums for numeric columns in the place of 0/1 ones, (sums, columns).

        Args:
            terms: of `one_row`, (sums, rows).
            columns: (rows, columns).
        """
        sums = terms @ columns
        sums[1] = terms[1] @ columns**2
        return sums

    def counted(self, sums: Floats) -> Floats:
        """The part of sums of the gradient that counts."""
        return np.maximum(sums, 0.0) if self.one_sided else sums

    @property
    def classes(self) -> int:
        """The number of classes whose terms follow one another and whose values add up."""
        return 1

    def price(self, length: ArrayLike) -> Floats:
        length = np.asarray(length)
        return np.where(length > 0, self.rule_price + self.condition_price * length, 0.0)

    def divisor(self, length: ArrayLike, units: ArrayLike | None = None) -> Floats:
        """The divisor for a length and a complexity; None for the complexity of conditions on
        single columns.
        """
        length = np.asarray(length, np.float64)
        units = 1.0 + self.condition_units * length if units is None else np.asarray(units)
        grown = np.exp(np.minimum(length * math.log1p(self.growth), _LARGEST_EXPONENT))
        return (units**self.power if self.per_unit else 1.0) * grown

    def worth(self, value: Floats, length: ArrayLike) -> Floats:
        """The worth of conjunctions with this value and length."""
        return (value - self.price(length)) / self.divisor(length)

    def worth_of_nothing(self, terms: Floats) -> float:
        """The worth of the empty conjunction, which selects all rows; 0 if it is not a rule because
        rules are penalised.
        """
        return float(self.value(terms.sum(axis=1))) if self.empty_is_rule else 0.0

    @property
    def empty_is_rule(self) -> bool:
        return not (self.rule_price or self.condition_price)

    @property
    def any_length(self) -> bool:
        """Whether a longer conjunction for the same rows is worth the same."""
        return self.condition_price == 0.0 and not self.per_unit and not self.growth

    def one_row(self, space: SearchSpace) -> Floats:
        """The terms of an exact search, (sums, merged rows)."""
        terms = self.terms(space)
        if len(terms) != 1:
            raise ValueError(
                f"an exact search takes one row of weights, got {len(terms)}; use search_beams"
            )
        return terms[0]

    def problem(
        self, space: SearchSpace, terms: Floats, longest: int, approximation: float
    ) -> Problem:
        """The problem of a compiled search; terms as from `one_row`."""
        from jaxrules.solvers.rule_search.kernels import problems

        if not self.compiled:
            raise TypeError(
                f"no compiled search maximises {type(self).__name__}; use search_best_first"
            )
        # Kernels price the descendants of a child, which have level + 2 propositions or more, even
        # where there are not so many.
        lengths = np.arange(len(space) + 3)
        members = space.activations.bits
        kind = getattr(problems, self.compiled_one_sided if self.one_sided else self.compiled)
        if kind.relaxed is problems.Problem.relaxed:  # the values of the compiled class are exact
            terms, members = terms[:0], members[:0]
        return kind(
            float(getattr(self, "ridge", 0.0)), float(approximation), longest,
            self.any_length and longest == len(space), self.price(lengths), self.divisor(lengths),
            np.array(terms), np.array(members),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SecondOrder(Objective):
    """(sum g)^2 / (ridge + sum h): second-order boosting, Eq. (2.3) of "Better Short than Greedy"
    without 1 / 2n.

    Args:
        gradient, curvature: (rows,); curvature >= 0.
        ridge: positive; the paper's lambda.
    """

    gradient: Floats
    curvature: Floats
    ridge: float
    compiled = "SecondOrder"
    compiled_one_sided = "OneSidedCorrectiveDecrease"  # the same with nothing found
    formula = "square"

    def terms(self, space: SearchSpace) -> Floats:
        return np.stack(
            [space.activations.totals(self.gradient), space.activations.totals(self.curvature)]
        )[None]

    def value(self, sums: Floats) -> Floats:
        return self.counted(sums[0]) ** 2 / (self.ridge + sums[1])

    def bounds(self, terms: Floats, members: Floats) -> Floats:
        return _greatest_of_ends(self, terms, members, self.ridge)


def _greatest_of_ends(
    objective: Objective, terms: Floats, members: Floats, ridge: float, share: ArrayLike = 1.0
) -> Floats:
    """Theorem 3.1: no subset has a greater G^2 / (ridge + share H) than a prefix or a suffix in the
    order of g / h.

    If G counts on one side only, a prefix has the greatest value.

    Args:
        objective: says which sums count.
        terms: g and h, (2, merged rows).
        members: the sets, 0/1, (merged rows, sets).
        share: per set, in [0, 1].
    """
    # Rows without curvature have an extreme ratio, which stays finite: they come first or last.
    order = np.argsort(-terms[0] / np.maximum(terms[1], 1e-150), kind="stable")
    prefixes = np.cumsum(terms[:, order, None] * members[order], axis=1)
    ends = np.concatenate([prefixes, prefixes[:, -1:] - prefixes], axis=1)
    # Suffixes are what prefixes leave of the whole, which cancels digits: hence the factor below.
    gains = objective.counted(ends[0]) ** 2
    return np.asarray(np.max(gains / (ridge + share * ends[1]), axis=0) * (1.0 + 1e-9))


@dataclass(frozen=True, eq=False)
class CorrectiveDecrease(Objective):
    """(sum g)^2 / (ridge + H_qq - c'M^-1 c): twice the decrease of the second-order model of the
    risk when all weights are refitted with the rule; `SecondOrder` is the same with all other
    weights fixed.

    H = diag(h), the columns of Q are the rules found so far, c = Q'H q, and M = Q'H Q +
    diag(penalties). Their weights must be optimal: the slope Q'g then cancels that of the
    penalties, and only the new rule has a slope to descend. In the metric of h, with an additional
    row per penalty, the denominator is ||q_perp||^2, as in `Orthogonal`.

    Args:
        gradient, curvature, ridge: as of `SecondOrder`.
        found: (rows, rules): the extents of the rules found so far, all rows for an intercept, and
            any numeric columns of the model.
        penalties: ridge on each of their weights, (rules,); 0 for an intercept.
    """

    gradient: Floats
    curvature: Floats
    ridge: float
    found: NDArray[np.bool_] | Floats
    penalties: Floats
    compiled = "CorrectiveDecrease"
    compiled_one_sided = "OneSidedCorrectiveDecrease"
    formula = "square"

    def terms(self, space: SearchSpace) -> Floats:
        """g, h and h Q R with R R' = M^-1: the squared sums of the last add up to c'M^-1 c."""
        of_rows, groups = self._of_rows, space.activations
        if groups.n_patterns == groups.n_rows:  # numbered by first appearance
            return of_rows[None]
        return np.stack([groups.totals(row) for row in of_rows])[None]

    @functools.cached_property
    def row_classes(self) -> RowTerms | None:
        if self.found.dtype != bool:
            return None
        found = classes_of(self.gradient, self.curvature, self.found.astype(bool, copy=False))
        if found is None:
            return None
        of_rows, rows = found
        h = self.curvature[rows]
        terms = self._terms(self.gradient[rows], h, self.found[rows], h * np.bincount(of_rows))
        return RowTerms(terms, of_rows)

    @functools.cached_property
    def _of_rows(self) -> Floats:
        """The terms of every row, for all searches of a stage, (sums, rows)."""
        classes = self.row_classes
        if classes is not None and classes.of_rows is not None:
            return np.take(classes.terms, classes.of_rows, axis=1)
        return self._terms(self.gradient, self.curvature, self.found, self.curvature)

    def _terms(
        self, gradient: Floats, curvature: Floats, found: NDArray[Any], total: Floats
    ) -> Floats:
        """The terms of rows, or of classes of rows with these total curvatures."""
        q = found.astype(np.float64)
        values, vectors = np.linalg.eigh((q.T * total) @ q + np.diag(self.penalties))
        # Rules in the span of others have eigenvalues of 0; without these, M^-1 is the
        # pseudoinverse.
        kept = values > 1e-12 * values.max(initial=0.0)
        root = vectors[:, kept] / np.sqrt(values[kept])
        terms = np.empty((2 + root.shape[1], len(q)))
        terms[0], terms[1] = gradient, curvature
        # b_i = h_i R'Q_i: over the rows of q it sums to R'Q'H q = R'c, whose square is c'M^-1 c.
        np.matmul(root.T, q.T, out=terms[2:])
        terms[2:] *= curvature
        return terms

    def value(self, sums: Floats) -> Floats:
        whole = self.ridge + sums[1]
        rest = whole - np.sum(sums[2:] ** 2, axis=0)
        # A rule in the span of others gains nothing once all are refitted; without a ridge both
        # numerator and denominator are then rounding.
        gain = self.counted(sums[0]) ** 2
        return np.where(rest > IN_SPAN * whole, gain / np.maximum(rest, IN_SPAN * whole), 0.0)

    def shares(self, terms: Floats, members: Floats) -> Floats:
        """1 - rho: for q inside a set E of rows, c'M^-1 c <= rho H_qq, where rho is the greatest
        eigenvalue of the sum over E of b b' / h, b the last terms of a row (Cauchy-Schwarz). The
        value is thus at most that of `SecondOrder` with this share of h.
        """
        if len(terms) == 2:
            return np.ones(members.shape[1])
        n_terms, n_rows = len(terms) - 2, len(members)
        s = np.zeros((n_terms**2, members.shape[1]))
        step = max(1, _ENTRIES // n_terms**2)
        for start in range(0, n_rows, step):
            h, b = terms[1, start : start + step], terms[2:, start : start + step]
            # h >= 0 and b_i = h_i R'Q_i: where h is 0, so is b.
            b = np.where(h > 0, b / np.sqrt(np.maximum(h, 1e-300)), 0.0)
            # The matrices of all sets by one product: b b' of every row, flattened, times the
            # members.
            s += (b[:, None] * b).reshape(n_terms**2, -1) @ members[start : start + step]
        rho = np.linalg.eigvalsh(s.T.reshape(-1, n_terms, n_terms))[:, -1]
        # A rule closer to the span than IN_SPAN has value 0.
        return np.clip(1.0 - rho + 1e-12, IN_SPAN, 1.0)

    def values_of_pairs(self, terms: Floats) -> CompiledPairs | None:
        return None if self.one_sided else CompiledPairs(terms[None], self.ridge)

    def quotients(self) -> tuple[int, float] | None:
        return None if self.one_sided else (1, self.ridge)

    def bounds(self, terms: Floats, members: Floats) -> Floats:
        greatest = _greatest_of_ends(
            self, terms[:2], members, self.ridge, self.shares(terms, members)
        )
        if self.ridge == 0:
            return greatest
        # Shares were raised to IN_SPAN, which may raise a denominator by IN_SPAN H.
        return greatest * (1.0 + IN_SPAN * (terms[1] @ members) / self.ridge)


@dataclass(frozen=True, eq=False)
class SumOverClasses(Objective):
    """The sum of the decreases of several classes, for a rule with a weight per class.

    Args:
        parts: one per class, two-sided, with one ridge.
    """

    parts: tuple[CorrectiveDecrease, ...]
    formula = "square"

    @property
    def classes(self) -> int:
        return len(self.parts)

    @property
    def ridge(self) -> float:
        """That of every class."""
        return self.parts[0].ridge

    def terms(self, space: SearchSpace) -> Floats:
        """The terms of one class after another, each padded with zeros to the same number."""
        of_class = [part.terms(space)[0] for part in self.parts]
        longest = max(map(len, of_class))
        padded = [np.pad(terms, ((0, longest - len(terms)), (0, 0))) for terms in of_class]
        return np.concatenate(padded)[None]

    def _by_class(self, sums: Floats) -> Floats:
        """Terms, or sums of them, (classes, terms of one, ...)."""
        return sums.reshape(len(self.parts), -1, *sums.shape[1:])

    def value(self, sums: Floats) -> Floats:
        pairs = zip(self.parts, self._by_class(sums), strict=True)
        return np.asarray(sum(part.value(of_class) for part, of_class in pairs))

    def sums_of_columns(self, terms: Floats, columns: Floats) -> Floats:
        pairs = zip(self.parts, self._by_class(terms), strict=True)
        return np.concatenate([part.sums_of_columns(one, columns) for part, one in pairs])

    def shares(self, terms: Floats, members: Floats) -> Floats:
        """Those of every class, (classes, sets)."""
        pairs = zip(self.parts, self._by_class(terms), strict=True)
        return np.stack([part.shares(of_class, members) for part, of_class in pairs])

    def bounds(self, terms: Floats, members: Floats) -> Floats:
        """The sum over the classes of their bounds, each for its own best subset."""
        pairs = zip(self.parts, self._by_class(terms), strict=True)
        with np.errstate(over="ignore"):  # without a ridge a bound may be infinite
            return np.asarray(sum(part.bounds(of_class, members) for part, of_class in pairs))

    def values_of_pairs(self, terms: Floats) -> CompiledPairs:
        return CompiledPairs(self._by_class(terms), self.ridge)

    def quotients(self) -> tuple[int, float]:
        return len(self.parts), self.parts[0].ridge


@dataclass(frozen=True, eq=False)
class GradientSum(Objective):
    """|sum g|: gradient boosting; with prices, the pricing problem of generalised linear rule
    models.
    """

    gradient: Floats
    compiled = "AbsoluteSum"
    compiled_one_sided = "SignedSum"
    formula = "absolute"

    def terms(self, space: SearchSpace) -> Floats:
        return _with_positive_part(space.activations.totals(self.gradient))[None]

    def value(self, sums: Floats) -> Floats:
        return np.abs(self.counted(sums[0]))

    def potential(self, sums: Floats) -> Floats:
        return sums[1] if self.one_sided else np.maximum(sums[1], sums[1] - sums[0])


@dataclass(frozen=True, eq=False)
class SignedWeights(Objective):
    """sum w: the gain of a rule in a rule list. The empty conjunction is not a rule and gains
    nothing.

    Args:
        weights: (rows,), or (rows of weights, rows) for a beam, which searches for all of them at
            once.
    """

    weights: Floats
    compiled = "SignedSum"
    formula = "sum"

    def terms(self, space: SearchSpace) -> Floats:
        return np.stack(
            [
                _with_positive_part(space.activations.totals(row))
                for row in np.atleast_2d(self.weights)
            ]
        )

    def value(self, sums: Floats) -> Floats:
        return sums[0]

    def potential(self, sums: Floats) -> Floats:
        return sums[1]

    @property
    def empty_is_rule(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class NormOfSums(Objective):
    """|sum g|, the Euclidean norm over several classes: with prices, the pricing problem of
    generalised linear rule models for several classes together.

    Args:
        gradient: (classes, rows).
    """

    gradient: Floats

    def terms(self, space: SearchSpace) -> Floats:
        sums = np.stack([space.activations.totals(row) for row in self.gradient])
        return np.concatenate([sums, np.maximum(sums, 0.0)])[None]

    def value(self, sums: Floats) -> Floats:
        return np.asarray(np.sqrt(np.sum(sums[: len(self.gradient)] ** 2, axis=0)))

    def potential(self, sums: Floats) -> Floats:
        """Of every class, the greater of its positive and its negative part."""
        whole, positive = np.split(sums, 2)
        return np.asarray(np.sqrt(np.sum(np.maximum(positive, positive - whole) ** 2, axis=0)))


def _with_positive_part(sums: Floats) -> Floats:
    return np.stack([sums, np.maximum(sums, 0.0)])


@dataclass(frozen=True, eq=False)
class Orthogonal(Objective):
    """|g'q| / (||q_perp|| + 1e-6): orthogonal gradient boosting, Yang et al., AISTATS 2024, arXiv
    2402.15691.

    q is the 0/1 vector of the selected rows, g the gradient and q_perp the part of q that is
    orthogonal to the span of the rules found so far. ||q_perp||^2 = |q| - ||B'q||^2 for an
    orthonormal basis B of the span. A weight w counts as w equal rows: all vectors, and B, are
    multiplied by sqrt(w), which makes |q| the weight of the rows.

    Args:
        gradient: (rows,), multiplied by the weights; its part in the span is removed.
        found: bool (rows, rules): the extents of the rules found so far, and all rows for an
            intercept; they must be unions of the merged rows.
        weights: (rows,), positive; None for ones.
    """

    gradient: Floats
    found: NDArray[np.bool_] | Floats
    weights: Floats | None = None
    formula = "distance"

    @functools.cached_property
    def roots(self) -> Floats:
        """sqrt(w), (rows,)."""
        return np.ones(len(self.gradient)) if self.weights is None else np.sqrt(self.weights)

    @functools.cached_property
    def basis(self) -> Floats:
        """Of the span, (rows, dimensions)."""
        left, values, _ = np.linalg.svd(self.found * self.roots[:, None], full_matrices=False)
        return np.asarray(left[:, values > 1e-9 * max(values, default=0.0)])

    def terms(self, space: SearchSpace) -> Floats:
        """g, 1 and the rows of B: no rule distinguishes the rows of a merged row."""
        gradient = self.gradient / self.roots
        rows = [gradient - self.basis @ (self.basis.T @ gradient), self.roots, *self.basis.T]
        return np.stack([space.activations.totals(self.roots * row) for row in rows])[None]

    def value(self, sums: Floats) -> Floats:
        distance = sums[1] - np.sum(sums[2:] ** 2, axis=0)
        value = np.abs(self.counted(sums[0])) / (
            np.sqrt(np.maximum(distance, 0.0)) + DISTANCE_FLOOR
        )
        return np.where(distance > IN_SPAN * sums[1], value, 0.0)

    def bounds(self, terms: Floats, members: Floats) -> Floats:
        """Two bounds for every q inside a set E of rows, from the positive part of g; likewise from
        its negative part.

        1. ||B'q||^2 <= rho |q| for the largest eigenvalue rho of S, the sum over E of b b'. So
           value(q)^2 is at most the greatest G^2 / ((1 - rho) |prefix|) of the prefixes in
           descending g.
        2. If y is orthogonal to the span and y >= g on E, then, by Cauchy-Schwarz,
           g'q <= y'q = y'q_perp <= ||y|| ||q_perp||. With y = max(g, 0) on E and the smallest
           correction outside that makes it orthogonal,
           ||y||^2 = ||max(g, 0)||_E^2 + v'(I - S)^-1 v, v = B'max(g, 0) over E.
           And y = g gives ||g||.

        Both are loose if E contains whole rules found before.
        """
        count, b = terms[1], terms[2:]
        outer = (b[:, None] * b / count).reshape(len(b) ** 2, len(count))
        s = (outer @ members).T.reshape(members.shape[1], len(b), len(b))
        rho = np.linalg.eigvalsh(s)[:, -1] if len(b) else np.zeros(members.shape[1])
        # 1 - rho, less the rounding of the eigenvalue. Where nothing is left the first bound is
        # infinite.
        slack = np.maximum(1.0 - rho - 1e-12 * (len(b) + 1), 0.0)
        bound = np.zeros(members.shape[1])
        for sign in (1.0,) if self.one_sided else (1.0, -1.0):
            g = np.maximum(sign * terms[0], 0.0)
            order = np.argsort(-g / count, kind="stable")
            # Rows with g = 0 would add to the denominator only.
            order = order[g[order] > 0]
            sums, counts = (
                np.cumsum(term[order, None] * members[order], axis=0) for term in (g, count)
            )
            # An empty prefix of a set has the sum 0, so that any positive count will do for it.
            square = np.max(
                sums**2 / np.maximum(counts, count.min(initial=1.0)), axis=0, initial=0.0
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                squared_bound = np.where(square > 0, square / slack, 0.0)
            # The second bound solves with I - S, which needs eigenvalues well above rounding.
            safe = np.flatnonzero(slack > 1e-6)
            if len(b) and len(safe):
                v = ((b * g / count) @ members[:, safe]).T
                solved = np.linalg.solve(np.eye(len(b)) - s[safe], v[:, :, None])[:, :, 0]
                by_dual = (g**2 / count) @ members[:, safe] + np.sum(v * solved, axis=1)
                squared_bound[safe] = np.minimum(squared_bound[safe], by_dual)
            bound = np.maximum(bound, np.sqrt(squared_bound))
        norm = math.sqrt(float(np.sum(terms[0] ** 2 / count)))
        return np.minimum(bound, norm) * (1.0 + 1e-9)  # allow for rounding of solve and eigenvalues


@dataclass(frozen=True, eq=False)
class GivenObjective(Objective):
    """Another objective for conjunctions that include one given proposition besides those that a
    search finds.

    The search runs over the merged rows of that proposition, `SearchSpace.within`; the empty
    conjunction represents that proposition alone. Create it with `of`.

    Args:
        whole: the other objective.
        everywhere: its terms, (rows of weights, sums, all merged rows).
        inside: the merged rows of the proposition, (all merged rows,).
    """

    whole: Objective
    everywhere: Floats
    inside: NDArray[np.bool_]

    @classmethod
    def of(cls, whole: Objective, everywhere: Floats, inside: NDArray[np.bool_]) -> GivenObjective:
        prices = {field.name: getattr(whole, field.name) for field in fields(Objective)}
        return cls(whole, everywhere, inside, **prices)

    def terms(self, space: SearchSpace) -> Floats:
        return self.everywhere[:, :, self.inside]

    def value(self, sums: Floats) -> Floats:
        return self.whole.value(sums)

    def potential(self, sums: Floats) -> Floats:
        return self.whole.potential(sums)

    def bounds(self, terms: Floats, members: Floats) -> Floats:
        # The other objective bounds subsets of all merged rows: those outside are no members.
        of_all = np.zeros((len(self.inside), members.shape[1]))
        of_all[self.inside] = members
        return self.whole.bounds(self.everywhere[0], of_all)

    def shares(self, terms: Floats, members: Floats) -> Floats:
        return self.whole.shares(terms, members)

    def values_of_pairs(self, terms: Floats) -> CompiledPairs | None:
        return self.whole.values_of_pairs(terms)

    def price(self, length: ArrayLike) -> Floats:
        # The given proposition counts, although the search does not see it.
        return super().price(np.asarray(length) + 1)

    def divisor(self, length: ArrayLike, units: ArrayLike | None = None) -> Floats:
        return super().divisor(np.asarray(length) + 1, units)

    def worth_of_nothing(self, terms: Floats) -> float:
        return float(self.worth(self.value(terms.sum(axis=1)), 0))

    @property
    def empty_is_rule(self) -> bool:
        return True

    def problem(
        self, space: SearchSpace, terms: Floats, longest: int, approximation: float
    ) -> Problem:
        lengths = np.arange(len(space) + 3)
        problem = self.whole.problem(space, terms, longest, approximation)
        return problem._replace(price=self.price(lengths), divisor=self.divisor(lengths))
