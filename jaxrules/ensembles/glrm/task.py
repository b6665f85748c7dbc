"""The data and propositions of a fit, the fits at given penalties, and the default penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv

from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.glrm.details import GLRMDetails
from jaxrules.ensembles.glrm.generation import generate, grow, weigh
from jaxrules.ensembles.glrm.master import Master
from jaxrules.ensembles.glrm.options import GlrmOptions, GlrmShared
from jaxrules.ensembles.glrm.outputs import constant, gradient, n_outputs
from jaxrules.ensembles.glrm.problem import GlrmProblem, Rule, Start
from jaxrules.learning.training import TrainingData, one_against_rest, searched_rows
from jaxrules.learning.warm_start import check_lengths, given_start, made_of, propositions_in
from jaxrules.models.rule_models import RuleEnsemble, decision_function
from jaxrules.rules.conditions import PropositionPool, all_propositions
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search.space import SearchSpace, check_cut_points
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]

_ERRORS, _FEW_COLUMNS = 1.6, 10
"""The default rule penalty of one output, in standard errors of the mean slope of a rule on half of
the rows, with at most so many columns.
"""
_LEAST_SHARE = 0.01
"""The least default rule penalty, as a share of the one that excludes every proposition."""
_TO_SEARCH = 0.7
"""The share of the time for the search on a sample of the rows; the rest is for the weights."""
_MOST_TRIALS = 6
_TRIAL_TOLERANCE = 1e-2
_SETTLED = 0.95
"""The default penalty falls from trial to trial, until it stays above this share of the last."""
_SHARES = np.geomspace(0.3, _LEAST_SHARE, 6)
"""The default rule penalties of a path and of cross-validation, as such shares."""
_LEAST_FOR_CLASSES = 1e-6
"""The least default penalty for classes: a class with less than some millionths
of the weight gets no rule.
"""


@dataclass(frozen=True, eq=False)
class GlrmTask:
    """The data and the propositions of the fits at all penalties.

    Attributes:
        options: of the fits.
        data: the rows that rules are searched on, with the target of every output.
        whole: all rows.
        constraints: on rules and terms.
        candidates: the propositions.
        joint: whether several classes are fitted together.
        starts: where the search starts, for each output or for all together: nowhere, or from a
            given model.
    """

    options: GlrmShared
    data: TrainingData
    whole: TrainingData
    constraints: Constraints
    candidates: Candidates
    joint: bool
    starts: Sequence[Start | None]

    @classmethod
    def of(cls, whole: TrainingData, options: GlrmShared, run: Run) -> GlrmTask:
        """Make the propositions; only those of a start if the run is stopped early.

        Raises:
            TypeError, ValueError: for constraints, a start or cut points that the data do not
                admit; if no column varies.
        """
        # A certificate is about all rows: exact pricing cannot search on a sample.
        most = None if options.pricing == "exact" else options.search_rows
        rows = searched_rows(whole, most, options.seed)
        data = whole if rows is None else whole[rows]
        schema, n_outputs = data.table.schema, len(data.outputs)
        constraints = Constraints.of(schema, options.forbidden, (), options.monotone)
        start, begun = None, PropositionPool.of(schema, ())
        if not isinstance(options.start, str):
            terms = options.linear_terms
            start = given_start(options.start, RuleEnsemble, whole, constraints, terms)
        if start is not None:
            # The conditions of a given model join the propositions: it could not start from its
            # rules otherwise.
            begun = propositions_in(start.conjunctions.with_schema(schema))
        check_cut_points(data.table, options.max_cut_points)
        first = constraints.first(data.table, options.first, n_outputs)

        def candidates(found: PropositionPool) -> Candidates:
            pool = PropositionPool.concatenate([found, begun])
            pool = constraints.pool(pool, data.table, n_outputs)
            return Candidates.of(pool, first, constraints, data)

        run.preparing("propositions")
        # If time ends here, only a given model's conditions are left to build rules from.
        made = run.prepared(
            lambda: candidates(all_propositions(data.table, max_cut_points=options.max_cut_points)),
            lambda: candidates(PropositionPool.of(schema, ())),
        )
        if not len(made.space) and not run.stopped():
            raise ValueError("no column of X varies; nothing can be learned")
        joint = options.joins(data)
        starts: Sequence[Start | None] = [None] * (1 if joint else n_outputs)
        if start is not None:
            starts = starts_of(start, made, constraints, data, options.max_length, joint)
        return cls(options, data, whole, constraints, made, joint, starts)

    def problem(self, data: TrainingData, rule_penalty: float) -> GlrmProblem:
        """The problem of one output, or of all classes."""
        return GlrmProblem.of(data, self.options, self.candidates, self.constraints, rule_penalty)

    def largest_penalty(self, data: TrainingData) -> float:
        """The least penalty that excludes every single proposition: the largest fall of the mean
        loss at the best constant per unit of weight of a proposition, over the problems.
        """
        activations, largest = self.candidates.space.activations, float(np.finfo(float).tiny)
        parts = [data] if self.joint else [replace(data, target=y) for y in data.outputs]
        for part in parts:
            # |mean slope| at the constant: at a penalty above, the optimality condition holds.
            rows = gradient(part, np.tile(constant(part), (len(part.weights), 1)))
            totals = [activations.totals(part.weights * one) for one in rows.T]
            sums = np.linalg.norm([activations.covered(one) for one in totals], axis=0)
            largest = max(largest, float(sums.max(initial=0.0)))
        return float(largest / data.weights.sum())

    def least_penalty(self, data: TrainingData) -> float:
        """The least default penalty of one output, or of all classes."""
        return max(_LEAST_SHARE * self.largest_penalty(data), least_for(data))

    def default_penalties(self) -> tuple[float, ...]:
        """Of a path and of cross-validation."""
        shares = _SHARES * self.largest_penalty(self.data)
        return tuple(np.maximum(shares, least_for(self.data)).tolist())

    def fit(
        self, rule_penalty: float, starts: Sequence[Start | None], run: Run
    ) -> tuple[Fit[RuleEnsemble], Sequence[Start | None]]:
        """The fit at a penalty, and where each of its problems ended."""

        def solved(part: TrainingData, run: Run) -> tuple[Fit[RuleEnsemble], Start]:
            state = Master(self.problem(part, rule_penalty), starts[part.output])
            return generate(state, run, whole=self.whole is self.data), state.end

        return self._fit(solved, rule_penalty, run)

    def fit_by_noise(self, run: Run) -> Fit[RuleEnsemble]:
        """The fit at the default penalty, which each output has of its own unless joint."""
        return self._fit(self._by_noise, None, run)[0]

    def _fit(
        self,
        solved: Callable[[TrainingData, Run], tuple[Fit[RuleEnsemble], Start]],
        rule_penalty: float | None,
        run: Run,
    ) -> tuple[Fit[RuleEnsemble], Sequence[Start | None]]:
        """The fit of every output, or of all classes, and where each ended; all rows weigh rules
        that were found on some.
        """
        ends = list(self.starts)

        def of_output(part: TrainingData, run: Run) -> Fit[RuleEnsemble]:
            fit, ends[part.output] = solved(part, run)
            return fit

        if self.whole is self.data:
            return one_against_rest(self.data, run, of_output, joint=self.joint), ends
        search = run.child(_TO_SEARCH)
        found = one_against_rest(self.data, search, of_output, joint=self.joint)
        run.include(search)
        run.shortened |= search.shortened or search.limit is Status.TIME_LIMIT
        return self._weighed(found.model, ends, rule_penalty, run), ends

    def _weighed(
        self,
        model: RuleEnsemble,
        ends: Sequence[Start | None],
        rule_penalty: float | None,
        run: Run,
    ) -> Fit[RuleEnsemble]:
        """The best weights on all rows of the rules of a model, which are those of `ends`."""
        # The penalty by noise is chosen anew: the standard error is that of all rows, at the scores
        # of the model of the sample.
        candidates, starts = self._on_all_rows(ends)
        scores = np.asarray(decision_function(model, self.whole.table))
        scores = scores.reshape(len(self.whole.weights), -1)

        def of_output(part: TrainingData, run: Run) -> Fit[RuleEnsemble]:
            k, sample, penalty, why = part.output, self.data, rule_penalty, ""
            if penalty is None:
                if not self.joint:
                    sample = replace(sample, target=sample.outputs[k])
                score = scores if self.joint else scores[:, k : k + 1]
                least = self.least_penalty(sample)
                penalty = max(noise(part, score, self.options), least)
                why = chosen(part, self.options, penalty, least)
            problem = GlrmProblem.of(part, self.options, candidates, self.constraints, penalty)
            fit = generate(Master(problem, starts[k], start_alone=True), run, weigh)
            more = {
                "n_propositions": self.candidates.n_searched,
                "chosen": _joined(why, fit),
                "sample": len(sample.weights),
            }
            return replace(fit, details=GLRMDetails(**{**fit.details, **more}))

        return one_against_rest(self.whole, run, of_output, joint=self.joint)

    def _on_all_rows(self, ends: Sequence[Start | None]) -> tuple[Candidates, Sequence[Start]]:
        """The propositions on all rows of the rules where fits ended or a given start begins; and
        these rules in their terms.
        """
        starts = []
        for end, begun in zip(ends, self.starts, strict=True):
            assert end is not None
            # A given model's rules that the fit on the sample left without weight may have one on
            # all rows.
            more = () if begun is None else tuple(set(begun.rules) - set(end.rules))
            nothing = np.zeros((len(more), len(end.intercept)))
            weights = np.concatenate([end.weights, nothing])
            starts.append(replace(end, rules=end.rules + more, weights=weights))
        # Only propositions in some rule: a space of all propositions on all rows is what the sample
        # avoids.
        made, used = self.candidates, np.zeros(len(self.candidates.pool), bool)
        for rule in (*made.first, *(rule for start in starts for rule in start.rules)):
            used[list(rule)] = True
        place, pool = np.cumsum(used) - 1, made.pool.take(np.flatnonzero(used))

        def placed(rules: Sequence[Rule]) -> tuple[Rule, ...]:
            return tuple(tuple(place[list(rule)].tolist()) for rule in rules)

        made = replace(
            made, pool=pool, n_searched=int(used[: made.n_searched].sum()),
            space=SearchSpace.of_codes(*pool.cell_codes(self.whole.table)),
            first=placed(made.first), using=tuple(on[used] for on in made.using),
            signs=made.signs[:, used],
        )  # fmt: skip
        return made, [replace(start, rules=placed(start.rules)) for start in starts]

    def _by_noise(self, data: TrainingData, run: Run) -> tuple[Fit[RuleEnsemble], Start]:
        """The fit of one problem at the default penalty, after rough ones that choose it, and where
        it ended.
        """
        # As in the scaled lasso (Sun and Zhang 2012): the noise is measured at the scores of a
        # model, whose penalty it then decides. From the constant on, better models leave smaller
        # slopes, so that penalties fall until they settle.
        tolerance = max(_TRIAL_TOLERANCE, self.options.tolerance)
        rough = replace(self.options, tolerance=tolerance, pricing="beam")
        task, begun = replace(self, options=rough), self.starts[data.output]
        least = self.least_penalty(data)
        nothing = np.tile(constant(data), (len(data.target), 1))
        penalty = max(noise(data, nothing, self.options), least)
        start = begun
        with run:
            for _ in range(_MOST_TRIALS):
                state = Master(task.problem(data, penalty), start)
                grow(state, run.child())
                # A given model stays the start of every trial; otherwise each starts where the last
                # one ended.
                start = begun or state.end
                score = state.score()[state.problem.group]
                lower = max(noise(data, score, self.options), least)
                if run.stopped() or lower >= _SETTLED * penalty:
                    break
                penalty = lower
        why = chosen(data, self.options, penalty, least, run.stopped())
        state = Master(self.problem(data, penalty), start)
        found = generate(state, run, whole=self.whole is self.data)
        details = GLRMDetails(**{**found.details, "chosen": _joined(why, found)})
        return replace(found, details=details), state.end


def least_for(data: TrainingData) -> float:
    """The least default penalty."""
    return 0.0 if data.classes is None else _LEAST_FOR_CLASSES


def errors(n_outputs: int, n_columns: int, options: GlrmShared) -> float:
    """The default penalty in standard errors, that of a vector of K slopes of sum 0 being the root
    of its mean square. Noise exceeds it as rarely as it does for one output, or two classes.
    """
    # The largest of m normal slopes is about sqrt(2 log m): k times as many columns, and so rules
    # of one condition, add 2 log k to the square. Without it, the default of 3000 rows of 100
    # columns has 146 rules and a log-loss .23 above that of the truth; with it, 7 and .02.
    one = float(np.sqrt(_ERRORS**2 + 2 * np.log(max(1.0, n_columns / _FEW_COLUMNS))))
    if isinstance(options, GlrmOptions) and options.standard_errors is not None:
        one = options.standard_errors
    if n_outputs <= 2:
        return one
    # |u|^2 of K slopes of sum 0, by noise, is chi squared with K - 1 degrees of freedom, and its
    # mean square divides by K - 1. The factor is exceeded as rarely as that of one degree.
    half = (n_outputs - 1) / 2
    as_rarely = gammainc(0.5, one**2 / 2)  # the distribution function of chi squared
    return float(np.sqrt(gammaincinv(half, as_rarely) / half))


def chosen(
    data: TrainingData, options: GlrmShared, penalty: float, least: float, stopped: bool = False
) -> str:
    """Why the data chose a penalty."""
    many = f"{errors(n_outputs(data), len(data.schema.features), options):.3g} standard errors"
    why = f"{many} of the mean slope of a rule on half of the rows"
    if stopped:
        why = "the fit was stopped before it could fall further"
    elif penalty == least:
        why = "the least default, whatever the noise"
    return f"rule_penalty={penalty:.3g}: {why}"


def _joined(why: str, fit: Fit[RuleEnsemble]) -> str:
    """Why this penalty, and what the fit itself says."""
    return "; ".join(filter(None, (why, fit.details["chosen"])))


def noise(data: TrainingData, score: Floats, options: GlrmShared) -> float:
    """The penalty that noise alone rarely pays: some standard errors of the mean slope of a rule
    that holds for half of the rows.

    Args:
        score: shape (rows, outputs).
    """
    # s / (2 sqrt(n)) with s the root mean square of the slopes (docs/defaults.md)
    slopes = gradient(data, score)
    # A share s of the rows: s (1 - s) of the variance, since the intercept takes the mean.
    error = 0.5 * np.sqrt((data.weights @ slopes**2).sum()) / data.weights.sum()
    return float(errors(score.shape[1], len(data.schema.features), options) * error)


def starts_of(
    model: RuleEnsemble,
    candidates: Candidates,
    constraints: Constraints,
    data: TrainingData,
    max_length: int | None,
    joint: bool,
) -> list[Start]:
    """A given model in terms of the candidates, by output, or for all classes together.

    Rules that hold on no row are dropped; one that holds on all joins the intercept.
    """
    rules = model.conjunctions.with_schema(candidates.pool.schema)
    n_labels = max(len(data.outputs), 2)
    activations = candidates.space.activations
    # One row of every group is enough to tell which propositions are equal.
    one_each = data.table[np.unique(activations.pattern, return_index=True)[1]]
    tags = (
        constraints.allows(candidates.pool, n_labels),
        constraints.allows(propositions_in(rules), n_labels),
    )
    made = made_of(candidates.pool, activations.bits, rules, one_each, tags)
    check_lengths(made, max_length, "max_length")
    found: dict[Rule, Floats] = {}
    for rule, weights in zip(made, np.asarray(model.weights, np.float64), strict=True):
        if rule is not None:
            # Different rules of the given model may be one conjunction of these propositions.
            found[rule] = found.get(rule, np.zeros(len(weights))) + weights
    # The empty conjunction, of rules that hold on all rows, is a part of the intercept.
    intercepts = np.asarray(model.intercept, np.float64) + found.pop((), np.zeros(1))
    terms, coefficients = np.zeros(0, np.int32), np.zeros((0, len(intercepts)))
    if model.linear is not None:
        terms, coefficients = model.linear.feature, np.asarray(model.linear.coefficients)
    found_weights = np.array(list(found.values())).reshape(len(found), len(intercepts))
    starts = []
    for k, signs in enumerate(candidates.signs):
        own = slice(None) if joint else slice(k, k + 1)
        may = np.array([signs[list(rule)].all(axis=0) for rule in found], bool).reshape(-1, 2, 1)
        least, most = np.where(may[:, 0], -np.inf, 0.0), np.where(may[:, 1], np.inf, 0.0)
        weights = np.clip(found_weights[:, own], least, most)
        of_terms = dict(zip(terms.tolist(), coefficients[:, own], strict=True))
        starts.append(Start(tuple(found), weights, intercepts[own], of_terms))
    return starts[:1] if joint else starts
