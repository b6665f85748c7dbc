"""Programs of others in environments of their own (`benchmarks/peers.py`), run by `programs`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import NotRun, python_of
from jaxrules.data.datasets import Dataset

Part = tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]
"""Columns and target of training rows, columns of test rows."""


def said(
    environment: str, task: str, parts: Sequence[Part], options: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A dict per program of the environment and part, as `programs` prints them.

    Raises:
        NotRun: if the environment cannot be installed, or ends with an error.
    """
    arrays: dict[str, Any] = {"splits": len(parts)}
    for k, (X, y, X_test) in enumerate(parts):
        arrays |= {f"X_{k}": X, f"y_{k}": y, f"X_test_{k}": X_test}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, **arrays)
        script = Path(__file__).with_name("programs.py")
        command = [
            str(python_of(environment)),
            str(script),
            environment,
            task,
            str(file),
            json.dumps(options or {}),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRun(
            f"{environment} ended with code {done.returncode}: {done.stderr.strip()[-200:]}"
        )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


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
