"""When a solver ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def never() -> bool:
    """A solver that is not stopped."""
    return False


class Limits(NamedTuple):
    """When a solver ends.

    Attributes:
        tolerance: it ends once no optimality condition is violated by more.
        steps: it makes at most this many.
        stopped: asked before every step; True ends it with the best result so far.
    """

    tolerance: float
    steps: int
    stopped: Callable[[], bool] = never

    def reached(self, violation: float, steps: int) -> bool:
        """Whether a solver ends after these steps, at this violation."""
        return steps >= self.steps or violation <= self.tolerance or self.stopped()
