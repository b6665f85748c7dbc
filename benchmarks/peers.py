"""Environments for other people's programs: one virtual environment per peer, with pinned versions.

    from benchmarks.peers import python_of
    python = python_of("realkd")        # path of an interpreter; created on first use

Environments are kept in the folder named by JAXRULES_PEERS, by default benchmarks/results/peers. A
peer that cannot be installed raises `NotRun`; a benchmark prints its text as "not run: reason".
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Peer:
    """What a peer needs.

    `without_dependencies` lists packages whose own pins do not build on a current Python.
    """

    requirements: tuple[str, ...]
    without_dependencies: tuple[str, ...] = ()
    imports: str = ""


PEERS = {
    "realkd": Peer(
        (
            "numpy==1.26.4",
            "pandas==1.5.3",
            "bitarray==3.12.3",
            "sortedcontainers==2.4.0",
            "sortednp==0.5.0",
            "scikit-learn",
            "matplotlib",
        ),
        ("realkd==0.2.1",),  # pins bitarray 1.5.3, which has no wheel for current Pythons
        "import realkd.rules, realkd.search",
    ),
    "rulelist": Peer(
        ("numpy==1.26.4", "pandas==1.5.3", "scipy", "scikit-learn", "gmpy2", "numba"),
        ("rulelist==0.2.0",),  # pins versions without wheels for current Pythons
        "import rulelist",
    ),
    "sbrl": Peer(("numpy==1.21.6", "pyfim==6.28", "pysbrl==0.4.2"), imports="import pysbrl"),
    "wittgenstein": Peer(("wittgenstein==0.3.5", "scikit-learn"), imports="import wittgenstein"),
    "imodels": Peer(("imodels==3.0.4", "six"), imports="from imodels import FIGSClassifier"),
    "interpret": Peer(
        ("interpret-core==0.7.8", "scikit-learn", "pandas", "joblib"),
        imports="from interpret.glassbox import ExplainableBoostingClassifier",
    ),
    "aix360": Peer(
        ("numpy==1.26.4", "pandas==1.5.3", "scikit-learn==1.2.2", "scipy", "cvxpy", "matplotlib"),
        ("aix360==0.3.0",),  # pins much that its rule regression does not need
        "from aix360.algorithms.rbm import LogisticRuleRegression",
    ),
    "aix360_0.2": Peer(  # begins with one condition of a binary column, where 0.3 has both
        ("numpy==1.26.4", "pandas==1.5.3", "scikit-learn==1.2.2", "cvxpy", "matplotlib"),
        ("aix360==0.2.1",),
        "from aix360.algorithms.rbm import LogisticRuleRegression",
    ),
    "corels": Peer(
        ("numpy==1.19.5", "Cython==0.29.37", "setuptools==59.8.0", "wheel"),
        ("corels==1.1.29",),  # builds with an old NumPy only, which needs an old Python
        "import corels",
    ),
    "rulefit": Peer(
        ("numpy==1.18.1", "pandas==1.0.1", "scikit-learn==0.22.2"),
        ("rulefit==0.3.1",),  # asks for sklearn, a name that is no package any more
        "from rulefit import RuleFit",
    ),
    "ruleopt": Peer(("ruleopt==1.2.1",), imports="from ruleopt import RUGClassifier"),
    "tt_sparse": Peer(
        (
            "torch",
            "pandas",
            "scikit-learn",
            "git+https://github.com/hansfarrell/tt-sparse@049e420307a848d10677f365b53cc9890d7aa192",
        ),
        imports="import tt_sparse",
    ),
    "boomer": Peer(("mlrl-boomer==0.12.3",), imports="from mlrl.boosting import BoomerClassifier"),
    "scoredrulesets": Peer(
        ("scoredrulesets==0.2.0", "matplotlib"), imports="import scoredrulesets"
    ),
    "ruletree": Peer(("ruletree==2026.10.22.223406",), imports="import RuleTree"),
    "optbinning": Peer(("optbinning==1.0.0",), imports="from optbinning import Scorecard"),
}


PYTHONS = {
    "aix360": "3.11",
    "aix360_0.2": "3.11",
    "corels": "3.8",
    "realkd": "3.11",
    "rulefit": "3.8",
    "rulelist": "3.11",
    "sbrl": "3.7",
}
"""Peers whose packages have no wheels for later Pythons."""
BUILT_WITH_REQUIREMENTS = ("corels",)
"""Peers that are built with the packages that are installed already."""


PROGRAMS = Path(__file__).with_name("peer_programs.py")
"""Runs the programs of an environment, see there."""


class NotRun(RuntimeError):
    """A peer that cannot be run here, and why."""


class OutOfTime(NotRun):
    """A peer's program that the system ended for the CPU seconds that it may take."""


@functools.cache
def python_of(name: str) -> Path:
    """The interpreter of a peer's environment.

    Raises:
        NotRun: if the peer cannot be installed.
    """
    peer = PEERS[name]
    default = Path(__file__).parent / "results" / "peers"
    folder = Path(os.environ.get("JAXRULES_PEERS", default)) / name
    python = folder / "bin" / "python"
    if not python.exists():
        _run([_interpreter(PYTHONS.get(name, "")), "-m", "venv", str(folder)])
    if _imports(python, peer):
        return python
    _run([str(python), "-m", "pip", "install", "-q", *peer.requirements])
    if peer.without_dependencies:
        options = [
            "-q",
            "--no-deps",
            *(["--no-build-isolation"] if name in BUILT_WITH_REQUIREMENTS else []),
        ]
        _run([str(python), "-m", "pip", "install", *options, *peer.without_dependencies])
    if not _imports(python, peer):
        raise NotRun(f"{name} is installed but does not import")
    return python


def printed(name: str, script: Path, *arguments: object) -> str:
    """What a script prints in a peer's environment.

    Raises:
        OutOfTime: if SIGXCPU ends it.
        NotRun: if the peer cannot be installed, or the script ends with another error.
    """
    command = [str(python_of(name)), str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -getattr(signal, "SIGXCPU", 24):
        raise OutOfTime(f"{name} has had its time")
    if done.returncode:
        raise NotRun(f"{name} ended with code {done.returncode}: {done.stderr.strip()[-200:]}")
    return done.stdout


def said(
    name: str, script: Path, arrays: Mapping[str, Any], *arguments: object
) -> list[dict[str, Any]]:
    """The lines of JSON that a script prints, given the path of a file of arrays (`numpy.load`
    reads it) and these arguments; see `printed`.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, **arrays)
        lines = printed(name, script, file, *arguments).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def _interpreter(version: str) -> str:
    """A Python of this version, among pyenv's or on the PATH; ours for ""."""
    if version in ("", "{}.{}".format(*sys.version_info)):
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    if there := sorted(root.glob(f"versions/{version}.*/bin/python")):
        return str(there[-1])
    if found := shutil.which(f"python{version}"):
        return found
    raise NotRun(f"Python {version} is not on this machine")


def _imports(python: Path, peer: Peer) -> bool:
    return (
        subprocess.run(
            [str(python), "-c", peer.imports], capture_output=True, check=False
        ).returncode
        == 0
    )


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NotRun(f"{' '.join(command[:4])} ... failed: {' '.join(reason)}")
