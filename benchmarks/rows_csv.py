"""Rows of results in a CSV file, which a script adds to and reads when it goes on."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def known(file: Path) -> list[dict[str, str]]:
    """The rows so far."""
    if not file.is_file():
        return []
    with file.open() as lines:
        return list(csv.DictReader(lines))


def add(file: Path, row: Mapping[str, Any]) -> None:
    """Add a row; the first one names the columns."""
    file.parent.mkdir(exist_ok=True)
    new = not file.is_file()
    with file.open("a") as lines:
        writer = csv.DictWriter(lines, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)
