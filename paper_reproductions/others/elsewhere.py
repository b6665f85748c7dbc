"""Programs of others in environments of their own (`benchmarks.peers`), run by
`benchmarks.peer_programs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from jaxrules.data.datasets import Dataset

Part = tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]
"""Columns and target of training rows, columns of test rows."""


def said(
    environment: str, task: str, parts: Sequence[Part], options: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A dict per program of the environment and part, as `peer_programs` prints them.

    Raises:
        NotRun: if the environment cannot be installed, or ends with an error.
    """
    arrays: dict[str, Any] = {"splits": len(parts)}
    for k, (X, y, X_test) in enumerate(parts):
        arrays |= {f"X_{k}": X, f"y_{k}": y, f"X_test_{k}": X_test}
    given = json.dumps(options or {})
    return peers.said(environment, peers.PROGRAMS, arrays, environment, task, given)


def codes(data: Dataset) -> NDArray[Any]:
    """Numbers, or classes as 0, 1, ..."""
    if data.task == "regression":
        return np.asarray(data.y, np.float64)
    return np.unique(data.y, return_inverse=True)[1].astype(np.int64)


def score(test: Dataset, predicted: NDArray[np.float64]) -> float:
    """Accuracy, or R2, of predicted `codes`."""
    truth = codes(test)
    if test.task == "regression":
        return float(1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
    return float(np.mean(truth == predicted))
