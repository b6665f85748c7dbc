"""What a search knows: its best path, and a proved lower bound on all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxrules.paths.costs import Array, Quadratic, Sequence, path_objective


@dataclass
class Certificate:
    """The best path so far and a lower bound, updated by the searches.

    Attributes:
        cost: the cost of the change from the starting model.
        step_weights: alpha, shape (steps,).
        sequence: the features that the best path changes, shape (steps,).
        models: its changes from the start after each step, shape (steps, features).
        objective: its sum_k alpha_k c(b_k), computed from the models.
        bound: no path has less; the least cost of any model, paid in every step, to begin with.
        nodes: how many states were examined.
    """

    cost: Quadratic
    step_weights: Array
    sequence: Sequence
    models: Array
    objective: float
    bound: float
    nodes: int = 0

    @classmethod
    def of(cls, cost: Quadratic, step_weights: Array) -> Certificate:
        """A certificate without a path yet, of infinite objective."""
        steps = len(step_weights)
        least = float(cost(cost.minimiser())) * float(step_weights.sum())
        standstill = np.zeros((steps, len(cost.linear)))
        return cls(cost, step_weights, np.zeros(steps, np.int64), standstill, np.inf, least)

    @property
    def tolerance(self) -> float:
        """What counts as equal: a relative 1e-9, and the rounding of the objective of not moving."""
        return 1e-9 * abs(self.objective) + 1e-13 * abs(self.cost.constant) * float(self.step_weights.sum())

    @property
    def closed(self) -> bool:
        """Whether the bound meets the objective."""
        return self.bound >= self.objective - self.tolerance

    def offer(self, sequence: Sequence, models: Array) -> bool:
        """Take a path if it is better than the best so far; whether it was."""
        objective = path_objective(self.cost, self.step_weights, models)
        better = objective < self.objective
        if better:
            self.sequence, self.models, self.objective = sequence, models, objective
            self.bound = min(self.bound, objective)  # they may differ by rounding
        return better

    def raise_bound(self, bound: float) -> None:
        """Take a lower bound that was proved."""
        self.bound = min(max(self.bound, bound), self.objective)
