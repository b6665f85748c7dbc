"""How rules are evaluated: directions, cells and bit vectors.

Rules use columns and *directions*: sparse linear combinations of columns, numbered after the
columns. The cut points of a column or direction divide its axis into cells: the points and the open
intervals between them. A float64 binary search maps a value to its cell. Each cell has a bit vector
of the rules that it does not violate. A row satisfies the rules that survive the bitwise AND over
the axes. A row takes axes x rules / 64 word operations, and no value is compared twice.

`interval_holds` defines an interval on values, `cell_range` on cells with known cut points.
Everything that evaluates rules (prediction, proposition pools, a trace under JAX) uses one of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import MISSING, Schema, Table
from jaxrules.tools import checks, display
from jaxrules.tools.bits import Words, n_words, pack, transposed, unpack
from jaxrules.tools.checks import require
from jaxrules.tools.kept import Keeps, kept
from jaxrules.tools.pytrees import check_arrays, pytree

FEW_ROWS = 8
"""So many rows are evaluated one by one. From about 15 on, all at once is quicker."""
_MOST_KEPT_BYTES = 4 << 20


@dataclass(frozen=True)
class Direction:
    """A numeric column computed from others: the sum of weight * (column - origin), terms sorted by
    (feature, category).

    A categorical column enters as the 0/1 indicator of a category, or of a missing value (code
    `MISSING`): as in `Table.one_hot`, a missing or unseen category is 0 in all others. If a number
    is missing, so is the sum.

    Attributes:
        features: the columns.
        weights: one per column; finite, not 0.
        categories: per term, the category code of an indicator, `MISSING` for a number; empty for
            numbers only.
        origins: per term, the number from which the column is measured; finite, 0 for an indicator;
            empty if all are 0.
    """

    features: tuple[int, ...]
    weights: tuple[float, ...]
    categories: tuple[int, ...] = ()
    origins: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("features", "weights", "categories", "origins"):
            if not isinstance(getattr(self, name), tuple):
                given = type(getattr(self, name)).__name__
                raise TypeError(f"{name} of a direction must be a tuple, got {given}")
        if not self.categories:
            object.__setattr__(self, "categories", (MISSING,) * len(self.features))
        if not self.origins:
            object.__setattr__(self, "origins", (0.0,) * len(self.features))
        for feature, weight, code, origin in zip(*self.terms, strict=False):
            if not (type(feature) is type(code) is int and type(weight) is type(origin) is float):
                self._make_plain()
                break
            self._check_term(feature, weight, code, origin)
        lengths = {len(part) for part in self.terms}
        fit = len(lengths) == 1 and lengths != {0}
        require(
            fit,
            "the features of a direction must be one or more, with as many weights (and "
            "categories, and origins)",
        )
        terms = list(zip(self.features, self.categories, strict=True))
        ascend = terms == sorted(set(terms))
        require(
            ascend,
            "the features of a direction (or their categories) must be distinct and ascending",
        )

    @property
    def terms(
        self,
    ) -> tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...], tuple[float, ...]]:
        """The features, weights, categories and origins."""
        return self.features, self.weights, self.categories, self.origins

    def _make_plain(self) -> None:
        """Replace NumPy's numbers with Python's own; anything else is refused."""
        of = " of a direction"
        features = tuple(checks.integer(f"features{of}", f) for f in self.features)
        codes = tuple(checks.integer(f"categories{of}", code) for code in self.categories)
        weights = tuple(checks.number(f"weights{of}", weight) for weight in self.weights)
        origins = tuple(checks.number(f"origins{of}", origin) for origin in self.origins)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "categories", codes)
        object.__setattr__(self, "origins", origins)
        for term in zip(*self.terms, strict=False):
            self._check_term(*term)

    @staticmethod
    def _check_term(feature: int, weight: float, code: int, origin: float) -> None:
        possible = math.isfinite(origin) and (origin == 0 or code == MISSING)
        require(
            possible,
            f"the origins of a direction must be finite, and 0 for a category, got {origin}",
        )
        usable = 0 <= feature < 2**31 > code >= MISSING and weight != 0 and math.isfinite(weight)
        require(
            usable,
            "a direction needs column positions as features, finite weights other than 0, and "
            f"category codes as categories, got {feature}, {weight}, {code}",
        )

    def describe(self, schema: Schema) -> str:
        """As text, e.g. ``2.81 (year - 2000) - 1.5 skewness + 0.3 [job == cook]``."""
        names = []
        for feature, code, origin in zip(
            (schema.features[f] for f in self.features), self.categories, self.origins, strict=True
        ):
            if feature.is_numeric:
                names.append(display.difference_text(feature.as_number, origin))
                continue
            missing = code == MISSING
            names.append(f"[{feature.set_text(set() if missing else {code}, False, missing)}]")
        return display.sum_text(zip(self.weights, names, strict=True))


@pytree
@dataclass(frozen=True, eq=False)
class Directions:
    """Directions as a struct of arrays. Direction d has the terms ``offsets[d]:offsets[d + 1]``.

    Attributes:
        offsets: int32, shape (directions + 1,).
        feature, category: int32, shape (terms,); see `Direction`.
        weight: float64, shape (terms,).
        origin: float64, shape (terms,); empty if all are 0.
    """

    offsets: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    feature: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    category: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    weight: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    origin: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros(0), metadata={"dtype": np.float64}
    )

    def __post_init__(self) -> None:
        check_arrays(self)
        if not np.size(self.origin):
            object.__setattr__(self, "origin", np.zeros(np.shape(self.weight)))

    @classmethod
    def build(cls, directions: Iterable[Direction] = ()) -> Directions:
        """These directions, in this order."""
        listed = list(directions)
        return cls(
            np.cumsum([0] + [len(d.features) for d in listed]).astype(np.int32),
            np.array([f for d in listed for f in d.features], np.int32),
            np.array([code for d in listed for code in d.categories], np.int32),
            np.array([weight for d in listed for weight in d.weights], np.float64),
            np.array([origin for d in listed for origin in d.origins], np.float64),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Direction:
        terms = slice(*self.offsets[index : index + 2].tolist())
        arrays = (part[terms] for part in (self.feature, self.weight, self.category, self.origin))
        return Direction(*(tuple(array.tolist()) for array in arrays))

    def __iter__(self) -> Iterator[Direction]:
        return (self[index] for index in range(len(self)))

    @property
    def nonzeros(self) -> NDArray[np.int32]:
        """Number of terms of every direction, shape (directions,)."""
        return np.diff(self.offsets)

    def validate(self, schema: Schema) -> None:
        """Check shapes, ranges, kinds and orders; a ValueError names what is wrong."""
        shapes, n = (
            [array.shape for array in (self.feature, self.category, self.weight, self.origin)],
            len(schema.features),
        )
        fit = self.feature.ndim == 1 and len(set(shapes)) == 1
        require(
            fit,
            "feature, category, weight and origin of directions must have shape (terms,), got "
            f"{shapes}",
        )
        rise = rises(self.offsets, len(self.feature)) and (np.diff(self.offsets) > 0).all()
        require(
            rise, "offsets of directions must rise from 0 to the number of terms, by at least 1"
        )
        usable = np.isfinite(self.weight) & (self.weight != 0)
        require(usable.all(), "weights of directions must be finite and not 0")
        require(np.isfinite(self.origin).all(), "origins of directions must be finite")
        terms = (self.feature.tolist(), self.category.tolist(), self.origin.tolist())
        for f, code, origin in zip(*terms, strict=True):
            require(0 <= f < n, f"a direction names feature {f}; there are {n} features")
            possible = origin == 0 or schema.features[f].is_numeric
            require(possible, f"a direction has an origin for category {code}; it must be 0")
            known = MISSING <= code < len(schema.features[f].categories or ())
            require(
                known,
                f"a direction has category {code} of {schema.features[f].name!r}, which does not "
                "exist",
            )
        distinct = len(set(self)) == len(self)  # each direction checks its own order
        require(distinct, "two directions are equal; merge them")

    def project(self, index: int, table: Table) -> NDArray[np.float64]:
        """The values of one direction, float64 sums in the order of the terms, NaN where missing;
        shape (rows,).
        """
        total, direction = np.zeros(table.n_rows), self[index]
        # A sum that overflows lies above or below all numbers; inf - inf is NaN, a missing value.
        with np.errstate(over="ignore", invalid="ignore"):
            for f, weight, code, origin in zip(*direction.terms, strict=True):
                column = table.columns[f]
                total += weight * (
                    column - origin if table.schema.features[f].is_numeric else column == code
                )
        return total

    def project_traced(self, X: jax.Array, schema: Schema) -> jax.Array:
        """All directions for use under jit, vmap and grad, in the dtype of `X`; shape (rows,
        directions).
        """
        x = X[:, self.feature]
        # In a traced array, a missing category may be NaN or the code `MISSING`.
        codes = jnp.where(jnp.isnan(x), MISSING, x).astype(jnp.int32)
        is_numeric = jnp.array([feature.is_numeric for feature in schema.features])[self.feature]
        numbers = x - like(self.origin, X)[None]
        values = jnp.where(is_numeric[None], numbers, codes == jnp.asarray(self.category)[None])
        direction = jnp.searchsorted(
            self.offsets[1:], jnp.arange(self.feature.shape[0]), side="right"
        )
        return jax.ops.segment_sum(
            (values * like(self.weight, X)[None]).T, direction, num_segments=len(self)
        ).T


def rises(offsets: NDArray[np.int32], end: int) -> bool:
    """Whether offsets start at 0 and end at `end`."""
    return bool(offsets.ndim == 1 and len(offsets) and offsets[0] == 0 and offsets[-1] == end)


def like(numbers: Any, X: jax.Array) -> jax.Array:
    """Ends of intervals, or weights, in the dtype of `X`; infinite beyond its range."""
    dtype = X.dtype if jnp.issubdtype(X.dtype, jnp.floating) else jnp.result_type(float)
    with np.errstate(over="ignore"):
        return jnp.asarray(numbers, dtype)


# Intervals


def interval_holds(
    x: Any, lower: Any, upper: Any, lower_closed: Any, upper_closed: Any, missing: Any
) -> jax.Array:
    """Whether values lie in intervals (NaN: whether a missing value satisfies them); shapes
    broadcast.

    An infinite end is not a restriction. Sums that overflow count as above (or below) all numbers.
    """
    # An overflowed x = -inf meets the end -inf, which is no restriction. The end lower = +inf, of
    # "is missing", admits nothing, not even x = inf.
    above = (x > lower) | ((x == lower) & jnp.where(jnp.isinf(lower), lower < 0, lower_closed))
    below = (x < upper) | ((x == upper) & jnp.where(jnp.isinf(upper), upper > 0, upper_closed))
    return jnp.where(jnp.isnan(x), missing, above & below)


def cell_range(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    lower_closed: NDArray[np.bool_],
    upper_closed: NDArray[np.bool_],
    cuts: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last cell of intervals whose finite ends are among `cuts`; first > last for
    empty intervals.

    Cell 2i + 1 is the i-th cut point, cell 2i the open interval before it; cell 2 cuts + 1 means
    "missing".
    """
    # A finite end is the i-th cut, cell 2i + 1: a closed end starts there, an open one in the gap
    # behind it. An end of +inf starts behind the last gap, so that the interval is empty.
    first = 2 * np.searchsorted(cuts, lower) + np.where(lower_closed, 1, 2)
    first = np.where(lower == -np.inf, 0, np.where(lower == np.inf, 2 * len(cuts) + 1, first))
    # Likewise a closed end stops at the cut, and an open one in the gap before it.
    last = 2 * np.searchsorted(cuts, upper) + np.where(upper_closed, 1, 0)
    last = np.where(upper == np.inf, 2 * len(cuts), np.where(upper == -np.inf, -1, last))
    return first, last


# Rules


class Axis(NamedTuple):
    """A column or direction that rules use, divided into cells.

    Attributes:
        feature: the column; at least the number of columns for a direction.
        cuts: the sorted cut points; None for a categorical column, whose cells are its codes, then
            "unseen" and "missing".
        n_cells: the number of cells.
    """

    feature: int
    cuts: NDArray[np.float64] | None
    n_cells: int

    def cells(self, table: Table, directions: Directions) -> NDArray[np.int64]:
        """The cell of every row, shape (rows,)."""
        n_columns = len(table.columns)
        if self.cuts is None:
            return np.asarray(
                table.columns[self.feature] % self.n_cells
            )  # the codes -2 and -1 are the last two cells
        beyond = self.feature - n_columns
        if beyond >= 0:
            return self.cells_of(directions.project(beyond, table))
        order = table.sorted_before(self.feature)
        x = table.columns[self.feature]
        return self.cells_of(x) if order is None else self._cells_in_order(x, order)

    def _cells_in_order(
        self, x: NDArray[np.float64], order: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """`cells_of` for numbers whose order is known: only the cut points are looked up."""
        assert self.cuts is not None
        ends = np.empty(self.n_cells, np.intp)
        # Where the gap before each cut ends, and where the cut does.
        ends[:-2:2] = np.searchsorted(x, self.cuts, "left", sorter=order)
        ends[1:-2:2] = np.searchsorted(x, self.cuts, "right", sorter=order)
        ends[-2:] = len(x) - np.count_nonzero(np.isnan(x)), len(x)
        cells = np.empty(len(x), np.int64)
        cells[order] = np.repeat(np.arange(self.n_cells), np.diff(ends, prepend=0))
        return cells

    def cells_of(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cells of numbers (NaN if missing), shape (rows,)."""
        assert self.cuts is not None
        before = np.searchsorted(self.cuts, x)
        # Beyond the last cut, x is compared with NaN, which equals nothing.
        at_cut = np.append(self.cuts, np.nan)[before] == x
        return np.where(np.isnan(x), self.n_cells - 1, 2 * before + at_cut)

    def comparisons(self, run: NDArray[np.bool_]) -> tuple[tuple[str, float], ...]:
        """The comparisons that put a number in a run of cells, e.g.
        ``((">", 30.0), ("<=", 45.0))``; see `cell_range`.

        Args:
            run: which cells are in the run, without the cell of missing values; at least one is.
        """
        assert self.cuts is not None
        cuts, held = self.cuts.tolist(), np.flatnonzero(run).tolist()
        first, last = held[0], held[-1]
        if first == last and first % 2:
            return (("==", cuts[first // 2]),)
        # Odd cells are cuts, even ones gaps: a run that starts in gap 2i + 2 starts behind cut i,
        # and one that ends in gap 2i ends before it. The outermost gaps have no end.
        from_below = [(">=" if first % 2 else ">", cuts[(first - 1) // 2])] if first else []
        from_above = [("<=" if last % 2 else "<", cuts[last // 2])] if last < 2 * len(cuts) else []
        return tuple(from_below + from_above)


class _ByCell(NamedTuple):
    """An axis and its bit vectors as Python's own numbers; see `Axis` and `Lowered.bits`."""

    feature: int
    cuts: list[float] | None
    n_cells: int
    masks: list[int]


@dataclass(frozen=True, eq=False)
class Lowered(Keeps):
    """Rules in the form in which they are evaluated; see the module.

    Attributes:
        n_rules: the number of rules.
        directions: the directions that axes use.
        axes: the columns and directions that rules use.
        bits: per axis, which rules a value in each cell does not violate, uint64, shape (cells,
            words).
    """

    n_rules: int
    directions: Directions
    axes: tuple[Axis, ...]
    bits: tuple[Words, ...]

    def packed(self, table: Table) -> Words:
        """Which rules each row satisfies, as bits, uint64, shape (rows, words); see
        `jaxrules.tools.bits`.
        """
        if table.n_rows <= FEW_ROWS and self.is_small:
            return self._packed_few(table)
        # At first no rule is violated; a rule survives if no axis violates it.
        alive = pack(np.ones((1, self.n_rules), bool)).repeat(table.n_rows, axis=0)
        for axis, bits in zip(self.axes, self.bits, strict=True):
            alive &= bits.take(axis.cells(table, self.directions), axis=0)
        return alive

    def _packed_few(self, table: Table) -> Words:
        """`packed` for few rows: with Python's own numbers, as a call of NumPy takes longer than a
        whole axis here (one row of 10 axes: 4 us instead of 120).
        """
        n_columns, width = len(table.columns), 8 * n_words(self.n_rules)
        alive = [(1 << self.n_rules) - 1] * table.n_rows
        for feature, cuts, n_cells, masks in self._by_cell:
            beyond = feature - n_columns
            column = (
                table.columns[feature] if beyond < 0 else self.directions.project(beyond, table)
            )
            for row, x in enumerate(column.tolist()):
                if cuts is None:
                    cell = x % n_cells
                elif x != x:  # NaN, a missing value
                    cell = n_cells - 1
                else:
                    before = bisect_left(cuts, x)
                    cell = 2 * before + (before < len(cuts) and cuts[before] == x)
                alive[row] &= masks[cell]
        octets = b"".join(bits.to_bytes(width, "little") for bits in alive)
        return np.frombuffer(octets, "<u8").reshape(table.n_rows, -1).copy()

    @kept
    def _by_cell(self) -> tuple[_ByCell, ...]:
        return tuple(
            _ByCell(
                axis.feature,
                None if axis.cuts is None else axis.cuts.tolist(),
                axis.n_cells,
                [int.from_bytes(row.tobytes(), "little") for row in bits],
            )
            for axis, bits in zip(self.axes, self.bits, strict=True)
        )

    @property
    def is_small(self) -> bool:
        """Whether the bits take so little memory that a model can keep them."""
        return sum(bits.nbytes for bits in self.bits) <= _MOST_KEPT_BYTES

    def satisfied(self, table: Table) -> NDArray[np.bool_]:
        """`packed` as booleans, shape (rows, rules)."""
        return unpack(self.packed(table), self.n_rules)

    def by_rule(self, table: Table) -> NDArray[np.bool_]:
        """`satisfied` rule by rule, shape (rules, rows): bits are transposed in a quarter of the
        time that booleans take.
        """
        if table.n_rows <= FEW_ROWS:
            return self.satisfied(table).T
        return unpack(transposed(self.packed(table), self.n_rules), table.n_rows)

    def allowed(self, rule: int) -> Iterator[tuple[Axis, NDArray[np.bool_]]]:
        """For each axis, the cells that one rule allows, shape (cells,)."""
        for axis, bits in zip(self.axes, self.bits, strict=True):
            yield axis, unpack(bits[:, rule // 64 : rule // 64 + 1], rule % 64 + 1)[:, -1]
