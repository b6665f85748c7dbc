"""What every learner returns: a `Fit`, with the reason for its end (`Status`) and its history
(`Step`).
"""

from __future__ import annotations

import enum
import html
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar

from jaxrules.tools import checks

ModelT = TypeVar("ModelT")


class Status(enum.StrEnum):
    """Why a fit ended. Compares equal to its text: ``fit.status == "optimal"``."""

    CONVERGED = "converged"
    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    MAX_ITERATIONS = "max_iterations"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"

    @property
    def advice(self) -> str:
        """What the status means and what to do next."""
        return _ADVICE[self]

    @staticmethod
    def worst(statuses: Iterable[Status]) -> Status:
        """The status of a fit that is made of several: optimal, say, if all of them are."""
        return min(statuses, key=list(_ADVICE).index)


_ADVICE = {  # the worst first
    Status.INTERRUPTED: "Interrupted by the user; the model is the best so far.",
    Status.TIME_LIMIT: (
        "The time limit ended the fit; the model is the best so far. Raise time_limit to go on."
    ),
    Status.MAX_ITERATIONS: (
        "The iteration limit ended the fit; the model is the best so far. Raise the limit."
    ),
    Status.STALLED: (
        "No further progress at this precision; the model is usable. Loosen the tolerance."
    ),
    Status.CONVERGED: "The stopping criterion was met.",
    Status.OPTIMAL: "Proved optimal: the bound meets the objective.",
}


Settings = tuple[tuple[str, Any], ...]
"""What a model keeps of its fit, by name: the learner, its options, and what was chosen from the
data.
"""


@dataclass(frozen=True)
class Step:
    """One entry of `Fit.history`: the objective, the model size and the seconds since the start.

    `bound` is the bound on the same objective proved so far, None if there is none.
    """

    objective: float
    size: int
    seconds: float
    bound: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Details(Mapping[str, Any]):
    """What a fit reports with its model: figures as attributes, and by key as in a dictionary.

    Every learner has its own class, which documents its figures.

    Attributes:
        cross_validation: the `jaxrules.CrossValidation` that chose the settings; None without one.
    """

    cross_validation: Any = None

    @property
    def told_of_pool(self) -> str:
        """A line of the printed fit if its rules do not come from all rows, or all literals; else
        empty.
        """
        sample = self.get("sample")
        return f"Rules found on {sample} rows." if isinstance(sample, int) else ""

    @property
    def proved_stages(self) -> tuple[int, int]:
        """The number of stages whose optimum is proved, and of all; 0 without stages."""
        return 0, 0

    def __getitem__(self, name: str) -> Any:
        if name not in set(self):
            raise KeyError(f"{name!r}; there are {', '.join(self)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in fields(self))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getattr__(self, name: str) -> Any:  # called for unknown names only
        kind = type(self).__name__
        raise AttributeError(f"{kind} has no {name!r}; it has {', '.join(self)}")


@dataclass(frozen=True, kw_only=True, eq=False)
class OneVsRestDetails(Details):
    """The details of K one-vs-rest fits: each figure is a tuple by class.

    Attributes:
        of_class: the details of each fit.
        objectives, bounds, statuses, histories: of each fit.
    """

    of_class: tuple[Details, ...]
    objectives: tuple[float, ...]
    bounds: tuple[float | None, ...]
    statuses: tuple[Status, ...]
    histories: tuple[tuple[Step, ...], ...]

    @property
    def told_of_pool(self) -> str:
        return self.of_class[0].told_of_pool

    @property
    def proved_stages(self) -> tuple[int, int]:
        proved, stages = zip(*(details.proved_stages for details in self.of_class), strict=True)
        return sum(proved), sum(stages)

    def __iter__(self) -> Iterator[str]:
        # Not `self.of_class`: before that is set, as in unpickling, `__getattr__` would ask here
        # again.
        of_class = self.__dict__.get("of_class", ())
        yield from dict.fromkeys([*super().__iter__(), *(of_class[0] if of_class else ())])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in set(self):
            return super().__getattr__(name)
        return tuple(details[name] for details in self.of_class)


def relative_gap(objective: float, bound: float | None) -> float | None:
    """|bound - objective| / max(|objective|, 1e-12), or None without a bound."""
    return None if bound is None else abs(bound - objective) / max(abs(objective), 1e-12)


@dataclass(frozen=True)
class Fit(Generic[ModelT]):
    """The result of every learner.

    Attributes:
        model: the fitted model, an immutable pytree.
        objective: the value that was optimised, in the direction of the paper (see `sense`).
        sense: "min" or "max".
        status: why the fit ended; `status.advice` says what to do next.
        bound: a proved bound on the other side of the optimum, or None without a certificate.
        history: one `Step` per recorded step.
        seconds: wall time of the fit.
        details: what only this learner reports, in its own class of `Details`.
        read_as: the classes that integers were taken for without a `loss`; else empty.
    """

    model: ModelT
    objective: float
    sense: Literal["min", "max"]
    status: Status
    bound: float | None = None
    history: tuple[Step, ...] = ()
    seconds: float = 0.0
    details: Details = field(default_factory=Details)
    read_as: str = ""

    if not TYPE_CHECKING:  # type checkers would take every attribute for known

        def __getattr__(self, name: str) -> NoReturn:
            raise checks.unknown_attribute(self, name, "fit.model")

    @property
    def gap(self) -> float | None:
        """|bound - objective| / max(|objective|, 1e-12), or None without a certificate."""
        return relative_gap(self.objective, self.bound)

    @property
    def advice(self) -> str:
        """What the status means for this fit, and what to do next."""
        if self.status is not Status.CONVERGED or self.bound is not None:
            return self.status.advice
        proved, stages = self.details.proved_stages
        if not proved:
            return self.status.advice + " Nothing is proved: it may be a local optimum."
        which = f"{proved} of {stages} stages are" if proved < stages else "Every stage is"
        return f"{self.status.advice} {which} proved optimal; the ensemble may be a local optimum."

    @property
    def chosen(self) -> str:
        """The settings chosen from the data, and why: a line per class if they differ; empty if all
        were given.
        """
        told: Any = self.details.get("chosen", "")
        if isinstance(told, str) or len(set(told)) == 1:
            return told if isinstance(told, str) else str(told[0])
        model: Any = self.model
        labels = model.schema.classes
        return "\n".join(f"class {one}: {why}" for one, why in zip(labels, told, strict=True))

    def __repr__(self) -> str:
        certificate = "" if self.bound is None else f", bound={self.bound:.6g}, gap={self.gap:.2g}"
        more = [line for line in (self.chosen, self.details.told_of_pool) if line]
        head = (
            f"Fit(status={self.status.value}, objective={self.objective:.6g} "
            f"({self.sense}){certificate}, {self.seconds:.2f} s, {type(self.model).__name__})"
            f"{' ' * bool(self.read_as)}{self.read_as}"
        )
        return "\n".join([head, self.advice, *more])

    def _repr_html_(self) -> str:
        """How the fit ended, and its model."""
        told = html.escape(repr(self)).replace("\n", "<br>")
        show = getattr(
            self.model, "_repr_html_", lambda: f"<pre>{html.escape(str(self.model))}</pre>"
        )
        return f"<p>{told}</p>{show()}"
