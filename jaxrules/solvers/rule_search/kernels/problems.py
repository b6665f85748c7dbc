"""The problems of the compiled searches, and how kernels are compiled for them.

A problem is to find the conjunction q of propositions with the greatest worth, (value(G, H) -
price) / divisor, where G and H are the sums of g and h over the rows that q selects. The value is a
method of the problem's class, and kernels are compiled for each class; price and divisor depend on
the number of propositions.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.space import IN_SPAN, TIE
from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Kernel = TypeVar("Kernel", bound=Callable[..., object])

SMALLEST_CURVATURE = 1e-150  # rows with less have an extreme g/h, which stays finite


class Problem(NamedTuple):
    """What is constant during a search; a subclass per objective defines the value of G and H.

    Attributes:
        ridge: added to every H.
        approximation: alpha in (0, 1]: the result is at least alpha times the optimum.
        max_length: of a conjunction; no limit if at least the number of propositions.
        any_length: length is neither limited nor penalised, so a longer conjunction for the same
            rows is worth the same.
        price, divisor: for each number of propositions, (propositions + 3,).
        terms: (sums, rows); empty if g and h alone give the value.
        members: the rows on which each proposition holds, (propositions, words of rows); empty if
            `terms` is.
    """

    ridge: float
    approximation: float
    max_length: int
    any_length: bool
    price: Floats
    divisor: Floats
    terms: Floats
    members: Words

    def value(self, g: float, h: float) -> float:
        raise NotImplementedError  # every problem has its own

    def exceeds(self, g: float, h: float, needed: float) -> bool:
        """Whether the value is greater than needed."""
        return bool(value_of(self, g, h) > needed)

    def order(self, g: float, h: float) -> float:
        """Rows are sorted by this, descending. The greatest value of any subset is then that of a
        prefix of the rows with g >= 0, or of a suffix of the others (Theorem 3.1).
        """
        return np.sign(g)

    def curved(self) -> bool:
        """Whether the value depends on H. If not, the longest prefix or suffix has the greatest
        value.
        """
        return False

    def relaxed(self) -> bool:
        """Whether the value is only a bound. The curvature of a level's rows is then multiplied by
        the share that every conjunction inside the node's rows keeps, and whatever seems better
        than the incumbent is evaluated exactly from `terms`.
        """
        return False


class SecondOrder(Problem):
    """G^2 / H."""

    def value(self, g: float, h: float) -> float:
        return g * g / h

    def exceeds(self, g: float, h: float, needed: float) -> bool:
        # Without a division: H is at least the ridge, which is positive.
        return g * g > needed * h

    def order(self, g: float, h: float) -> float:
        return g / (h + SMALLEST_CURVATURE)

    def curved(self) -> bool:
        return True


class CorrectiveDecrease(SecondOrder):
    """G^2 / (H - |sum b|^2), b the last terms of a row; with a level's share at most G^2 / (ridge +
    share (H - ridge)).
    """

    def relaxed(self) -> bool:
        return True


class OneSidedCorrectiveDecrease(CorrectiveDecrease):
    """The same for positive G; other sums have value 0. A prefix has the greatest value of any
    subset.
    """

    def value(self, g: float, h: float) -> float:
        g = max(g, 0.0)
        return g * g / h

    def exceeds(self, g: float, h: float, needed: float) -> bool:
        return g > 0.0 and g * g > needed * h


class AbsoluteSum(Problem):
    """|G|."""

    def value(self, g: float, h: float) -> float:
        return abs(g)


class SignedSum(Problem):
    """G."""

    def value(self, g: float, h: float) -> float:
        return g


# Without NaN and infinity checks the inner loops become SIMD code; ridge > 0 keeps both away.
_OPTIONS: Any = {
    "error_model": "numpy",
    "fastmath": {"contract", "nsz", "nnan", "ninf"},
}
_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
_VERSION = format(zlib.crc32(_SOURCES + repr((IN_SPAN, TIE)).encode()), "08x")
"""The version of the kernels. numba's cache on disk checks only the file of an entry point; the
version in the entry point's name makes it notice changes in the other files.
"""


def compiled(function: Kernel, entry_point: bool = False) -> Kernel:
    """numba.njit without reference counts: the caller owns all arrays and kernels allocate none.

    Counting them takes a fifth of the search. The option is private to numba; without it everything
    works, but slower. Only entry points have a Python wrapper, which takes long to compile, and a
    cache, which includes what they call.
    """
    decorator: Any = from_python if entry_point else functools.partial(numba.njit, **FROM_KERNELS)
    try:
        kernel: Kernel = decorator(_nrt=False, **_OPTIONS)(function)
    except KeyError:
        kernel = decorator(**_OPTIONS)(function)
    return kernel


def per_problem(function: Kernel) -> dict[type[Problem], Kernel]:
    """An entry point per class of problems, compiled when first called, or loaded from numba's
    cache on disk.

    Each class has its own cache files: processes that compile different ones at the same time would
    overwrite each other's signatures of one function.
    """
    kinds = (SecondOrder, CorrectiveDecrease, OneSidedCorrectiveDecrease, AbsoluteSum, SignedSum)
    kernels: dict[type[Problem], Kernel] = {}
    for kind in kinds:
        # The entry point of each class needs a name of its own: numba names cache files by it.
        copy: Any = FunctionType(function.__code__, function.__globals__, function.__name__)
        copy.__qualname__ = f"{function.__name__}_{kind.__name__}_{_VERSION}"
        kernels[kind] = compiled(copy, entry_point=True)
    return kernels


def _by_class(method: Kernel) -> Kernel:
    """A method of `Problem` as a function of a problem. Compiled code looks the method up by the
    class of the problem.

    numba can also overload methods of a type, but problems share their type with all named tuples
    of the process.
    """
    name = method.__name__

    def call(problem: Any, *arguments: Any) -> Any:
        return getattr(problem, name)(*arguments)

    def find(problem: Any, *arguments: Any) -> Any:
        return getattr(problem.instance_class, name)

    overload(call, strict=False, jit_options=_OPTIONS)(find)
    return cast(Kernel, call)


value_of = _by_class(Problem.value)
exceeds = _by_class(Problem.exceeds)
order_of = _by_class(Problem.order)
is_curved = _by_class(Problem.curved)
is_relaxed = _by_class(Problem.relaxed)
