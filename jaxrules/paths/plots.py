"""The pictures of the paper: costs along paths (Fig. 3b), the Pareto front (Fig. 2). Imports matplotlib on use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxrules.paths.model import ModelSequence
from jaxrules.paths.pareto import Front


def plot_costs(sequences: Mapping[str, ModelSequence], ax: Any = None) -> Any:
    """The cost after every step of one or more paths (Fig. 3b).

    Args:
        sequences: paths or sequences of models by label.
        ax: matplotlib axes to draw on; new ones by default.

    Returns:
        the axes.

    Raises:
        ValueError: if there is nothing to draw.
    """
    if not sequences:
        raise ValueError("sequences is empty; pass at least one path by label")
    ax = _axes(ax)
    for label, sequence in sequences.items():
        ax.plot(np.arange(len(sequence) + 1), sequence.costs, marker="o", markersize=4, label=label)
    ax.set_xlabel("steps")
    ax.set_ylabel("cost")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return ax


def plot_front(front: Front, ax: Any = None) -> Any:
    """Cost against interpretability loss, a colour per number of steps; hollow where unsupported (Fig. 2).

    Grey boxes are where weighted sums cannot see.

    Args:
        front: from `pareto`.
        ax: matplotlib axes to draw on; new ones by default.

    Returns:
        the axes.
    """
    from matplotlib.patches import Rectangle

    ax = _axes(ax)
    for box in front.boxes:
        corner = (box.interpretability[0], box.cost[0])
        width, height = box.interpretability[1] - corner[0], box.cost[1] - corner[1]
        ax.add_patch(Rectangle(corner, width, height, color="0.92", zorder=0))
    for steps in sorted({len(point.path) for point in front.points}):
        for supported in (True, False):
            points = [p for p in front.points if len(p.path) == steps and p.supported == supported]
            if points:
                label = f"{steps} steps" + ("" if supported else ", unsupported")
                color, filling = f"C{steps}", f"C{steps}" if supported else "none"
                losses, costs = zip(*((p.interpretability, p.cost) for p in points), strict=True)
                ax.scatter(losses, costs, s=14, color=color, facecolors=filling, label=label)
    ax.set_xlabel("interpretability loss")
    ax.set_ylabel("cost")
    ax.legend(frameon=False)
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
