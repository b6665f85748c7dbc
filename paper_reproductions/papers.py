"""The papers by name."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import paper_reproductions
from paper_reproductions.framework import Archive, Paper


def available_papers() -> list[str]:
    """Names of the papers that have a folder here."""
    return sorted(
        module.name for module in pkgutil.iter_modules(paper_reproductions.__path__) if module.ispkg
    )


def load_paper(name: str) -> Paper:
    """The paper of this name.

    Raises:
        ValueError: naming the papers that there are.
    """
    if name not in available_papers():
        raise ValueError(f"paper must be one of {', '.join(available_papers())}, got {name!r}")
    paper: Paper = importlib.import_module(f"paper_reproductions.{name}").PAPER
    return paper


def archive_of(name: str) -> Archive:
    """The results of a paper that the repository keeps."""
    return Archive(Path(__file__).parent / name / "archive")
