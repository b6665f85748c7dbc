"""The data of a fit, and the restrictions on its rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike
from jaxrules.ensembles.lltboost.options import LLTBoostOptions
from jaxrules.learning.training import TrainingData, by_content, loss_for, searched_rows
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.fits import Settings
from jaxrules.tools.runs import Run


@dataclass(frozen=True, eq=False)
class LLTBoostTask:
    """The data of a fit, and the restrictions on its rules.

    Attributes:
        settings: the settings that the model keeps.
        first: an expert's rules.
        n_outputs: the number of outputs of the model.
        joint: whether more than two classes are fitted together.
        searched: the rows that rules are searched on; None for all.
    """

    data: TrainingData
    options: LLTBoostOptions
    run: Run
    settings: Settings
    constraints: Constraints
    first: Conjunctions
    n_outputs: int
    joint: bool
    searched: NDArray[np.intp] | None

    @classmethod
    def of(
        cls, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LLTBoostOptions
    ) -> LLTBoostTask:
        """Read the data and the constraints."""
        run = options.run(total=options.most_rules)
        loss = loss_for(y, options.loss)
        # Sorted by content, so that held-out rows do not depend on the order of the given rows.
        data = by_content(options.training_data(X, y, sample_weight, loss))
        schema, n_outputs = data.table.schema, len(data.outputs)
        constraints = Constraints.of(schema, options.forbidden, (), options.monotone)
        constraints.warn_of_constants(data.table)
        first = constraints.first(data.table, options.first, n_outputs)
        constraints.check_room(first, options.most_rules)
        data = replace(data, table=constraints.blanked(data.table))
        joint = options.joins(data)
        several = {"multiclass": "joint" if joint else "one_vs_rest"} if n_outputs > 1 else {}
        settings = options.settings(loss=data.loss, **several)
        searched = searched_rows(data, options.search_rows, options.seed)
        return cls(data, options, run, settings, constraints, first, n_outputs, joint, searched)
