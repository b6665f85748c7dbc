"""What an exhibit shows: a `Section` of text, comparison tables (our numbers beside
the paper's) and figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Kind = Literal["time", "setting", "result"]
"""Of a number that is not compared: seconds of another machine; what is given, such as the size of
a data set; or a result, which could be compared.
"""


@dataclass(frozen=True)
class Value:
    """One number of ours beside the paper's.

    Attributes:
        ours: what was measured, None if it was not.
        paper: what the paper (or its authors' files) gives, None if nothing.
        digits: decimals to print.
        tolerance: the largest absolute difference that counts as agreement;
            None: it is not compared.
        only: "above" or "below" when only a difference in that direction counts against us: a local
            support below the paper's is no failure, and neither is a higher accuracy.
        spread: standard deviation of ours over folds.
        reason: why the numbers differ, if they do and an experiment of this report
            shows it; "" is unexplained, and so is what says that word.
        mark: a remark for the cell itself, such as "5000 rows"; `Quoted` if it has
            further numbers of the paper.
        apart: why it is not compared; needed where the paper has a number
            and there is no tolerance.
        kind: what is not compared.
        number: which number of the paper it is, in any words, for one that stands in several
            tables: it counts once, for the exhibit where it is first compared, and agrees
            if it does wherever it is.
    """

    ours: float | None
    paper: float | None = None
    digits: int = 4
    tolerance: float | None = None
    only: str | None = None
    spread: float | None = None
    reason: str = ""
    mark: str | Quoted = ""
    apart: str = ""
    kind: Kind = "result"
    number: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's; 0 if both are infinite."""
        if self.ours is None or self.paper is None:
            return None
        return 0.0 if self.ours == self.paper else self.ours - self.paper

    @property
    def departs(self) -> bool:
        """Whether the difference is larger than what counts as agreement, in
        the direction that counts.
        """
        difference = self.difference
        if difference is None or self.tolerance is None:
            return False
        if self.only == "above":
            return difference > self.tolerance
        if self.only == "below":
            return difference < -self.tolerance
        return abs(difference) > self.tolerance

    @property
    def explained(self) -> bool:
        """Whether an experiment shows why the numbers differ."""
        return bool(self.reason) and "unexplained" not in self.reason.lower()

    def __str__(self) -> str:
        text = "not run" if self.ours is None else f"{self.ours:.{self.digits}f}"
        if self.ours is not None and self.spread is not None:
            text += f" ± {self.spread:.{self.digits}f}"
        if self.paper is not None:
            text += f" (paper {self.paper:.{self.digits}f}"
            text += ")" if self.difference is None else f", {self.difference:+.{self.digits}f})"
        return text + (f" [{self.mark}]" if str(self.mark) else "")


@dataclass(frozen=True)
class Quoted:
    """Numbers of the paper that are not compared: for what is not run here, or for
    the reason that is given.

    Attributes:
        text: as they are printed.
        numbers: how many they are.
        apart: why they are not compared, if not because nothing of ours stands beside them.
        kind: what is not compared.
    """

    text: str
    numbers: int = 1
    apart: str = ""
    kind: Kind = "result"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ComparisonTable:
    """A table of `Value` s, `Quoted` numbers or texts by (row, column).

    Attributes:
        title: above the table.
        rows, columns: labels.
        values: by (row, column); a pair that is not there is printed empty.
        corner: heading of the column of row labels.
        note: a line below the table.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], Value | Quoted | str]
    corner: str = ""
    note: str = ""

    def lines(self) -> Iterator[tuple[str, ...]]:
        """The table as text, the heading first."""
        yield (self.corner, *self.columns)
        for row in self.rows:
            yield (row, *(str(self.values.get((row, column), "")) for column in self.columns))

    def printed(self) -> Iterator[Value]:
        """The values that the paper has a number for."""
        for row in self.rows:
            for column in self.columns:
                value = self.values.get((row, column))
                if isinstance(value, Value) and value.paper is not None:
                    yield value

    def quoted(self) -> Iterator[Quoted]:
        """Numbers of the paper that stand alone or in the mark of another."""
        for row in self.rows:
            for column in self.columns:
                entry = self.values.get((row, column))
                found = entry.mark if isinstance(entry, Value) else entry
                if isinstance(found, Quoted):
                    yield found

    def compared(self) -> Iterator[tuple[str, str, Value]]:
        """(row, column, value) wherever agreement is claimed and both numbers are there."""
        for row in self.rows:
            for column in self.columns:
                value = self.values.get((row, column))
                if (
                    isinstance(value, Value)
                    and value.tolerance is not None
                    and value.difference is not None
                ):
                    yield row, column, value


@dataclass(frozen=True)
class Section:
    """What an exhibit has to show: text (paragraphs), tables, and the figures it drew."""

    text: str = ""
    tables: Sequence[ComparisonTable] = ()
    figures: Sequence[Path] = ()


@dataclass
class Canvas:
    """Where an exhibit draws: ``figure, axes = canvas.subplots(1, 2)`` and
    ``canvas.save(figure, "figure_2")``.
    """

    folder: Path
    _open: list[Any] = field(default_factory=list)

    def subplots(
        self, rows: int = 1, columns: int = 1, *, width: float = 4.2, height: float = 3.2
    ) -> tuple[Figure, Any]:
        """A figure with rows x columns axes (always a 2-D array),
        `width` x `height` inches each.
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, squeeze=False)

    def save(self, figure: Figure, name: str) -> Path:
        """Write the figure as PNG and return its path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.png"
        figure.savefig(path, dpi=130)
        return path
