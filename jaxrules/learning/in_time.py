"""What a learner does if its time limit is too short for its own work on all rows, or if Ctrl-C
comes before it has a rule: it makes rules from some of the rows, and says how good they are on all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from jaxrules.learning.cross_validation import arguments_of, unfinished
from jaxrules.learning.training import (
    TrainingData,
    model_loss,
    sample_in_time,
    sample_limit,
    some_rows,
)
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools.fits import Details, Fit, ModelT, Settings, Status
from jaxrules.tools.runs import Run

Prepared = TypeVar("Prepared")
Stage = Literal["start", "unprepared", "prepared", "without rules"]

_ROWS = 5000
"""The number of rows for rules that replace trees."""
MANY_COLUMNS = 200
"""With more columns, or rows than above, a fit may end in time without a rule. A few rules in no
time are about as many columns, those that tell most about the target.
"""


def rows_for_rules(
    data: TrainingData,
    run: Run,
    seed: int,
    needs: Sequence[str],
    *,
    stage: Stage = "start",
    columns: float | None = None,
) -> TrainingData | None:
    """The rows from which a learner makes its rules instead of working on all rows: a sample for
    which there is time, or some rows if there is no time to import what it needs, or after Ctrl-C;
    else None.

    Args:
        needs: the modules that take long to import.
        stage: of the work; once it has begun, only Ctrl-C counts, and the limit for a preparation
            that it ended, or a fit of many rows or columns without rules.
        columns: see `sample_in_time`.
    """
    if run.interrupt.pressed or stage == "unprepared":
        return some_rows(data, _ROWS, seed)
    if stage != "start":
        large = len(data.weights) > _ROWS or len(data.table.columns) > MANY_COLUMNS
        late = bool(run.deadline.seconds) and run.stopped() and large
        return some_rows(data, _ROWS, seed) if stage == "without rules" and late else None
    sample = sample_in_time(data, run, seed, columns)
    limited = run.deadline.seconds and not all(map(run.may_import, needs))
    return some_rows(data, _ROWS, seed) if sample is None and limited else sample


def with_rules(
    rows: Callable[[Stage], TrainingData | None],
    prepare: Callable[[], Prepared],
    fit: Callable[[Prepared], Fit[ModelT]],
    fit_of_sample: Callable[[TrainingData], Fit[ModelT]],
    preparing: Run | None = None,
) -> Fit[ModelT]:
    """The fit on all rows, or that of a sample if `rows` gives one before, between preparation and
    fit, or for an unfinished fit without rules.

    Args:
        rows: `rows_for_rules` as a function of the stage.
        preparing: a run whose limit ends the preparation, at its next `checkpoint`; None if nothing
            does.
    """
    sample, prepared = rows("start"), None
    if sample is None and preparing is not None:
        prepared = preparing.prepared(prepare, lambda: None)
        sample = rows("unprepared") if prepared is None else None
    if sample is None:
        ready = prepare() if prepared is None else prepared
        sample = rows("prepared")
        if sample is None:
            found: Any = fit(ready)
            complete = len(found.model.conjunctions) or not unfinished(found)
            sample = None if complete else rows("without rules")
            if sample is None:
                return found
    return fit_of_sample(sample)


def fit_in_half(
    fit: Any,
    sample: TrainingData,
    options: Any,
    run: Run,
    *,
    outputs: int = 1,
    needs: Sequence[str] = (),
) -> Fit[Any] | None:
    """The fit of a learner to a sample of the rows, in half of the remaining time; None if that is
    too little for as many outputs, fitted one by one, or after Ctrl-C.
    """
    limit = None if run.interrupt.pressed else sample_limit(run, outputs)
    if limit is None or not all(map(run.may_import, needs)):
        return None
    own = dataclasses.replace(options, time_limit=limit, progress=False)
    found: Fit[Any] = fit.with_options(*arguments_of(sample), own)
    return found


def on_all_rows(
    model: RuleEnsemble,
    data: TrainingData,
    penalty: float,
    run: Run,
    settings: Settings,
    details: Details,
) -> Fit[RuleEnsemble]:
    """The ensemble of a sample of the rows as a fit on all rows; its objective is the mean loss
    there plus this penalty.
    """
    objective = model_loss(model, data) + penalty
    with run:
        run.step(objective, len(model.conjunctions))
    model = dataclasses.replace(model, options=settings)
    return run.finish(model, objective, "min", Status.TIME_LIMIT, details=details)
