"""All rule ensembles that are nearly as good as the best one: the Rashomon set of supports.

The proof of `all_conjunctions` goes on at a threshold above the optimum: screening lists every
conjunction of which a support with an objective of at most the threshold may consist, and
branch-and-bound splits every node until its support is decided, or its bound exceeds the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Table, TableLike, conform
from jaxrules.ensembles.lire.all_conjunctions import (
    AllConjunctions,
    KnownModel,
    OptimalOptions,
    prepared,
)
from jaxrules.ensembles.lire.bound import BranchAndBound, Node
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.learning.options import learner, option, options
from jaxrules.models.near_optimal import NearOptimalModels
from jaxrules.models.rule_models import RuleEnsemble, predict, predict_proba
from jaxrules.rules.rows import Activations
from jaxrules.tools import checks
from jaxrules.tools.fits import Status

Floats = NDArray[np.float64]


@options
class NearOptimalOptions(OptimalOptions):
    """The options of `near_optimal`; the others mean what they mean for `optimal`.

    Attributes:
        within: the share of the optimum that the objective of a support may exceed it by.
        limit: the most supports that are listed.
    """

    within: float = option(checks.number, default=0.01, at_least=0, at_most=1)
    limit: int = option(checks.integer, default=1000, at_least=1)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NearOptimalEnsembles(NearOptimalModels):
    """The supports whose objective, with their best weights, is within a share of the optimum, the
    best first. Indexing gives them as models.

    Attributes, besides those of `NearOptimalModels`:
        rules: one of those that hold for the same rows or for exactly the others.
        models: the ensembles.
        status: OPTIMAL if all are listed; else what ended the search: TIME_LIMIT, INTERRUPTED, or
            MAX_ITERATIONS (`limit`, `max_nodes`, `max_candidates` or memory).
    """

    models: tuple[RuleEnsemble, ...]

    noun, part, sense = "ensemble", "rule", "min"

    def __getitem__(self, index: int) -> RuleEnsemble:
        """One of them as a model."""
        return self.models[index]

    @cached_property
    def weight_ranges(self) -> Floats:
        """The least and the greatest weight of each rule where it occurs, (rules, 2)."""
        result = np.tile([np.inf, -np.inf], (len(self.rules), 1))
        for support, model in zip(self.supports, self.models, strict=True):
            at, weights = list(support), np.asarray(model.weights)[:, 0]
            result[at, 0] = np.minimum(result[at, 0], weights)
            result[at, 1] = np.maximum(result[at, 1], weights)
        return result

    def possible(self, X: TableLike) -> NDArray[np.bool_]:
        classes = np.asarray(self.schema.classes or (), object)
        checks.require(len(classes) > 0, "the models predict numbers, no classes; use ranges")
        each, pattern = self._patterns(X)
        result = np.zeros((each.n_rows, len(classes)), bool)
        for model in self.models:
            result |= np.asarray(predict(model, each))[:, None] == classes
        return result[pattern]

    def ranges(self, X: TableLike) -> Floats:
        """The least and the greatest number that the models predict for each row, (rows, 2); of
        classes, the probability of the second.

        Args:
            X: data with the columns of fit, the training data or others.

        Raises:
            ValueError: if `X` does not fit the columns.
        """
        each, pattern = self._patterns(X)
        result = np.tile([np.inf, -np.inf], (each.n_rows, 1))
        for model in self.models:
            numbers = self.schema.classes is None
            said = predict(model, each) if numbers else predict_proba(model, each)[:, 1]
            result[:, 0] = np.minimum(result[:, 0], said)
            result[:, 1] = np.maximum(result[:, 1], said)
        return result[pattern]

    def _patterns(self, X: TableLike) -> tuple[Table, NDArray[np.intp]]:
        """A row of every set of rules that some row satisfies, and which one each row has."""
        table = X if isinstance(X, Table) else conform(X, self.schema)
        pattern = Activations.of(self.rules, table).pattern
        return table[np.unique(pattern, return_index=True)[1]], pattern


@learner(NearOptimalOptions)
def near_optimal(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: NearOptimalOptions
) -> NearOptimalEnsembles:
    """All sets of conjunctions whose best ensemble has an objective within a share of the optimum
    of `optimal`: how many are there, which rules are in all of them?

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> found = near_optimal(X, X[:, 0] & X[:, 1], global_penalty=0.1, within=0.2)
    >>> len(found), found.complete, found[0].conjunctions.describe(0)
    (3, True, 'x0 >= 1 & x1 >= 1')

    Args:
        X, y, sample_weight: as for `optimal`; of classes, y has two.

    Returns:
        The supports, see `NearOptimalEnsembles`.

    Raises:
        TypeError, ValueError: as `optimal`; for more than two classes.
    """
    run = options.run()
    data, made = prepared(X, y, sample_weight, options, run, binary=True)
    proof = AllConjunctions(data, made, options, run)
    found: list[KnownModel] = []
    with run:
        proof.generate()
        proof.screen()
        proof.prove()
        best, bound, proved = proof.best, min(proof.bound, proof.best.objective), proof.closed
        threshold = best.objective + options.within * abs(proof.stated(best.objective)) / proof.unit
        proof.threshold = threshold
        proof.screen()
        if proof.n_candidates and not run.stopped():
            run.phase = "bound"
            search = proof.tree_search()
            tree = _NearOptimalSearch(proof, search, options.limit, found)
            if proof.in_time(search):
                tree.run(options.max_nodes)
            proved &= tree.closed and proof.complete and len(found) <= options.limit
        else:
            proved &= not len(made.pool) or (proof.complete and not run.stopped())
    found = found or [best]
    found.sort(key=lambda one: one.objective)
    found = found[: options.limit]
    place: dict[tuple[int, ...], int] = {}
    for one in found:
        for rule in one.rules.tolist():
            place.setdefault(tuple(rule), len(place))
    objectives = np.array([proof.stated(one.objective) for one in found])
    ended = Status.TIME_LIMIT if run.shortened else Status.MAX_ITERATIONS
    status = Status.OPTIMAL if proved else run.limit or ended
    return NearOptimalEnsembles(
        rules=proof.conjunctions(list(place)),
        supports=tuple(tuple(place[tuple(rule)] for rule in one.rules.tolist()) for one in found),
        models=tuple(proof.model(one)[0] for one in found),
        objectives=objectives, optimum=proof.stated(best.objective), bound=proof.stated(bound),
        threshold=proof.stated(threshold), status=status,
    )  # fmt: skip


class _NearOptimalSearch(BranchAndBound):
    """Branch-and-bound that decides every support below the threshold of a proof.

    Args:
        proof: with the listed conjunctions.
        search: on them.
        limit: it ends when it has found more.
        found: the models, with their best weights.
    """

    def __init__(
        self, proof: AllConjunctions, search: SupportSearch, limit: int, found: list[KnownModel]
    ) -> None:
        super().__init__(
            search, proof.known(search), surcharge=proof.surcharge, guess=proof.guess(),
            seconds_left=proof.run.deadline.work_left,
        )  # fmt: skip
        self.proof, self.limit, self.found = proof, limit, found
        self.passes = 1  # a node whose last column is fixed must come back
        self.full = False

    @property
    def _goal(self) -> float:
        return -np.inf if self.full else self.proof.goal

    def _explore(self, node: Node) -> list[Node]:
        kernels = self._relaxation.kernels
        if (node.state == kernels.FREE).any():
            return super()._explore(node)
        inside = node.state == kernels.IN
        columns = np.append(0, self._relaxation.columns[inside])
        if self.search.keeps(columns):
            guess = np.append(node.intercept, node.weights[inside].astype(np.float64))
            refitted = self.search.refit(columns, guess)
            if refitted.objective <= self.proof.goal:
                pool = self.proof.pool
                self.found.append(self.proof.as_known(pool, self.search, refitted))
                self.full = len(self.found) > self.limit
        return []

    def _try(self, *_: object) -> None:
        """No model is looked for but those of decided supports."""
