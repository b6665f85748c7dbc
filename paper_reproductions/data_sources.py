"""Which data sets a run needs and does not find, and where each can be had;
`data_sources.json` lists the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from jaxrules import datasets
from paper_reproductions.framework import Task

SOURCES: dict[str, dict[str, str | int]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)
"""GitHub repository, commit, path and rows of every file that is not bundled with scikit-learn."""


def missing(tasks: Iterable[Task]) -> str:
    """One message on all sets that the tasks need and `jaxrules.datasets.load` cannot
    find; "" if it finds all.
    """
    needed = dict.fromkeys(name for task in tasks for name in task.experiment.data(task.cell))
    try:
        there, problem = set(datasets.available()), ""
    except (
        FileNotFoundError
    ) as error:  # the folder is none, or has no manifest: there are those without a file
        there, problem = needed.keys() - SOURCES.keys(), f": {error}"
    absent = [name for name in needed if name not in there]
    if not absent:
        return ""
    lines = [f"  {name}: {where(name)}" for name in absent]
    return "\n".join(
        [
            f"{len(absent)} data sets are missing; nothing was computed{problem}.",
            *lines,
            "Write each as a CSV file with a header, the target last and named target, missing "
            "values empty, and list "
            "the files in a manifest.json beside them (see the docstring of jaxrules.datasets); "
            "the environment "
            f"variable {datasets.DATA_HOME_VARIABLE} names the folder.",
        ]
    )


def where(name: str) -> str:
    """Where the file of a data set comes from."""
    source = SOURCES.get(name)
    if source is None:
        return "not known here"
    return "github.com/{repository}, {path} at commit {commit} ({rows} rows)".format(**source)
