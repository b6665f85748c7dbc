"""What a report can be about: one model, the models of a path, a comparison, or near-optimal
models.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Schema, TableLike, total_offset
from jaxrules.losses import relative
from jaxrules.models.metrics import complexity, loss_of, require_known_part, support
from jaxrules.models.near_optimal import NearOptimalModels
from jaxrules.models.rule_models import OrderedRules, RuleEnsemble, RuleModel
from jaxrules.paths.model import ModelSequence
from jaxrules.tools import display
from jaxrules.tools.checks import require
from jaxrules.tools.fits import Fit, relative_gap
from jaxrules.users.comparison import Comparison
from jaxrules.users.comparison.methods import model_of
from jaxrules.users.scorecards import ScaledScorecard, Scorecard

Model = RuleModel | ModelSequence
Kind = Literal["model", "path", "comparison", "near-optimal"]

MOST_SHOWN = 20
"""Near-optimal models that a report shows, the best."""


class Entry(NamedTuple):
    """One model of a report, the fit or the card that it comes from, and the gap that is proved
    without a fit.
    """

    label: str
    model: Model
    fit: Fit[Any] | None = None
    card: Scorecard | ScaledScorecard | None = None
    gap: float | None = None

    @property
    def complexity(self) -> int:
        """See `jaxrules.complexity`; the number of steps of a sequence of models."""
        return len(self.model) if isinstance(self.model, ModelSequence) else complexity(self.model)


@dataclass(frozen=True, eq=False)
class Subject:
    """The models of a report.

    Attributes:
        kind: what was given.
        given: the same.
        entries: its models, all with the same columns and classes; a comparison may have none.
        start: the entry that the page shows first.
        held_out: of a comparison, the models of the folds and the rows that they are rated on;
            empty if they are not known.
    """

    kind: Kind
    given: Any
    entries: tuple[Entry, ...]
    start: int = 0
    held_out: tuple[tuple[Model, NDArray[np.intp]], ...] = ()


@dataclass(frozen=True, eq=False)
class Known:
    """The known part of the scores of the rows, as the user gave it; see `jaxrules.predict`."""

    offset: ArrayLike | None = None
    exposure: ArrayLike | None = None

    def __bool__(self) -> bool:
        return self.offset is not None or self.exposure is not None

    def check(self, model: Model) -> None:
        """Refuse an offset of a model that takes none, and its lack for a model that was fitted
        with one: counts would be compared with rates.

        Raises:
            ValueError: naming the argument.
        """
        if self and (not isinstance(model, RuleEnsemble) or model.schema.classes is not None):
            raise ValueError("offset and exposure are for rule ensembles that predict numbers")
        if not self:
            require_known_part(model)

    def relative(
        self, model: Model, y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What the scores without the offset predict, and the weight of each row, as the fit has
        them (see `jaxrules.losses.relative`): for counts y / exposure and the exposure.
        """
        ones = np.ones(len(y))
        if not self:
            return y, ones
        log_link = getattr(model, "link", None) == "log"
        total = total_offset(self.offset, self.exposure, len(y), log_link)
        return relative(loss_of(model), y, ones, total)

    def named(self, target: str, model: Model) -> str:
        """The target in words."""
        if not self:
            return target
        log_link = getattr(model, "link", None) == "log"
        return f"{target} per unit of exposure" if log_link else f"{target} without the offset"


def subject_of(result: Any, X: TableLike, y: ArrayLike, known: Known) -> Subject:
    """The models of a result. A comparison is refitted to X and y by its best method that yields
    rules or a linear model.

    Raises:
        TypeError: for anything but a result of this library.
        ValueError: for a path without models, or with models of different columns or classes.
    """
    if isinstance(result, NearOptimalModels):
        n = min(len(result), MOST_SHOWN)
        require(n > 0, f"result holds no near-optimal {result.noun}; raise `within` or the limits")
        gaps = [relative_gap(one, result.bound) for one in result.objectives[:n].tolist()]
        models = (Entry(f"{result.noun} {k + 1}", result[k], gap=gap) for k, gap in enumerate(gaps))
        return Subject("near-optimal", result, tuple(models))
    if isinstance(result, Comparison):
        entries = _refitted(result, X, y, known)
        held_out = _held_out(result, entries[0], X, y) if entries else ()
        return Subject("comparison", result, entries, held_out=held_out)
    if isinstance(result, Sequence) and not isinstance(result, str):
        require(len(result) > 0, "result is an empty path; it must hold at least one fit")
        path = tuple(_entry(one, f"result[{k}]") for k, one in enumerate(result))
        first = path[0].model.schema
        for k, schema in enumerate(entry.model.schema for entry in path):
            same = schema.features == first.features and schema.classes == first.classes
            require(same, f"result[{k}] has other columns or classes than result[0]")
        return Subject("path", result, path, len(path) - 1)
    entry = _entry(result, "result")
    if isinstance(entry.model, ModelSequence) and len(entry.model):
        steps = _steps(entry.model, entry.fit)
        return Subject("path", result, steps, len(steps) - 1)
    return Subject("model", result, (entry,))


def _entry(given: Any, name: str) -> Entry:
    fit = given if isinstance(given, Fit) else None
    card = given if isinstance(given, (Scorecard, ScaledScorecard)) else None
    model = given.model if isinstance(given, (Fit, Scorecard, ScaledScorecard)) else given
    if not isinstance(model, Model):
        hint = "; pass its fit_" if hasattr(given, "fit_") else ""
        hint = "; pass model.rates, the rules of the hazard" if hasattr(model, "rates") else hint
        raise TypeError(
            f"{name} must be a Fit, a model, a scorecard, a list of fits, a Comparison or "
            f"near-optimal models, got {type(given).__name__}{hint}"
        )
    model.validate()
    return Entry(_size(model), model, fit, card)


def _size(model: Model) -> str:
    """The size of a model, in words."""
    if isinstance(model, ModelSequence):
        return display.counted(len(model), "step")
    if isinstance(model, OrderedRules):
        return display.counted(len(model.conjunctions), "rule")
    return display.size_text(support(model), 0 if model.linear is None else len(model.linear.used))


def _steps(model: ModelSequence, fit: Fit[Any] | None) -> tuple[Entry, ...]:
    """Every model of a sequence, as the last one of a shorter sequence."""
    same = [field.name for field in dataclasses.fields(ModelSequence)]
    whole = {name: getattr(model, name) for name in same}
    # Step k is the model after k steps: the intercept alone for k = 0.
    first = [
        ModelSequence(**whole | {name: whole[name][: k + 1] for name in _BY_STEP})
        for k in range(len(model) + 1)
    ]
    return tuple(Entry(_size(one), one, fit) for one in first)


_BY_STEP = ("models", "intercepts", "costs")


def _refitted(found: Comparison, X: TableLike, y: ArrayLike, known: Known) -> tuple[Entry, ...]:
    """The model of the best method that yields one of this library, or nothing."""
    for row in found.rows:
        if row.risk is None:
            continue
        fitted = found.refit(row.method, X, y, offset=known.offset, exposure=known.exposure)
        model = model_of(fitted)
        if isinstance(model, Model):
            return (Entry(row.method, model, fitted if isinstance(fitted, Fit) else None),)
    return ()


def _held_out(
    found: Comparison, best: Entry, X: TableLike, y: ArrayLike
) -> tuple[tuple[Model, NDArray[np.intp]], ...]:
    """The models of the folds, if all are of the kind and the classes of the refitted one."""
    parts = [(model_of(one), rows) for one, rows in found.held_out(best.label, X, y)]
    classes = best.model.schema.classes
    same = all(type(one) is type(best.model) and one.schema.classes == classes for one, _ in parts)
    return tuple(parts) if same else ()


def with_target(subject: Subject, name: str) -> Subject:
    """The subject with its target called `name`, if its models have no name for it."""
    entries = tuple(entry._replace(model=_named(entry.model, name)) for entry in subject.entries)
    held_out = tuple((_named(model, name), rows) for model, rows in subject.held_out)
    return dataclasses.replace(subject, entries=entries, held_out=held_out)


def _named(model: Model, name: str) -> Model:
    if model.schema.target != Schema.target:
        return model
    schema = dataclasses.replace(model.schema, target=name)
    if isinstance(model, ModelSequence):
        return dataclasses.replace(model, schema=schema)
    rules = dataclasses.replace(model.conjunctions, schema=schema)
    return dataclasses.replace(model, conjunctions=rules)
