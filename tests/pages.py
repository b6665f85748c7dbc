"""The Python blocks of the README and of the site, and what they print.

A block that prints is followed by a block ``output`` that shows what it prints. In it, a line
``...`` stands for any lines, and ``...`` within a line for any words: times, versions, long text.
Numbers may differ by 2 % or one in their last digit: processors round differently.

``python tests/pages.py [PAGE ...]`` runs the pages and writes what they print where it differs.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_NUMBER = r"[-+]?(?:\d+\.\d+|\.\d+|\d+)(?:e[-+]?\d+)?"
_SECONDS = re.compile(r"\b\d+(\.\d+)?(e-\d+)? s(econds)?\b")
_TOLERANCE = 0.02


class Block(NamedTuple):
    """A Python block, and the output that its page shows, None if it shows none."""

    code: str
    shown: str | None
    end: int
    """Where the code ends in the page: the place of a new output block."""
    output: tuple[int, int] | None
    """Where the output block is."""


def blocks(page: Path) -> list[Block]:
    fences = list(_FENCE.finditer(page.read_text()))
    found = []
    for fence, after in itertools.zip_longest(fences, fences[1:]):
        if fence[1] == "python":
            follows = after is not None and after[1] == "output"
            shown, span = (after[2], after.span()) if follows else (None, None)
            found.append(Block(fence[2], shown, fence.end(), span))
    return found


def printed(page: Path) -> Iterator[tuple[Block, str]]:
    """The blocks of a page and what each prints, one after the other in one namespace."""
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.code, f"{page.name}, block {number}", "exec"), names)
        yield block, out.getvalue()


def agrees(shown: str | None, text: str) -> bool:
    """Whether the page shows what was printed, or shows nothing if nothing was."""
    wanted = "".join(map(_pattern, _lines(shown or "")))
    found = re.fullmatch(wanted, "".join(line + "\n" for line in _lines(text)))
    numbers = re.findall(_NUMBER, re.sub(r"\.\.\.", "", shown or ""))
    return found is not None and all(map(_close, numbers, found.groups()))


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def _pattern(line: str) -> str:
    """What a line of a page stands for; its numbers are groups."""
    if line == "...":
        return r"(?:.*\n)*?"
    words = [re.split(f"({_NUMBER})", words) for words in line.split("...")]
    known = ("".join((re.escape, _group)[k % 2](w) for k, w in enumerate(one)) for one in words)
    return ".*?".join(known) + r"\n"


def _group(number: str) -> str:
    return f"({_NUMBER})"


def _close(wanted: str, got: str) -> bool:
    """Whether two numbers agree, up to rounding."""
    digits = len(wanted.partition("e")[0].partition(".")[2])
    distance = abs(float(wanted) - float(got))
    return distance <= max(_TOLERANCE * abs(float(wanted)), 1.01 * 10.0**-digits)


def write(page: Path) -> bool:
    """Update the outputs of a page; return whether one has changed."""
    text, shift, changed = page.read_text(), 0, False
    for block, told in list(printed(page)):
        if agrees(block.shown, told):
            continue
        lines = "\n".join(line.rstrip() for line in told.strip("\n").splitlines())
        new = f"```output\n{_SECONDS.sub('... s', lines)}\n```\n" if told.strip() else ""
        start, end = block.output or (block.end, block.end)
        new = new if block.output else new and f"\n{new}"
        text = text[: start + shift] + new + text[end + shift :]
        shift, changed = shift + len(new) - (end - start), True
    page.write_text(text)
    return changed


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for one in pages:
            if blocks(one):
                print(one.relative_to(ROOT), "changed" if write(one) else "is right", flush=True)
