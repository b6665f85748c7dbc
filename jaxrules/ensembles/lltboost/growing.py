"""Algorithm 1: a rule grows by one proposition at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np

from jaxrules.ensembles.lltboost.conjunction import Conjunction, Proposition
from jaxrules.ensembles.lltboost.ensemble import MOST_CLASSES, NOTHING, Ensemble
from jaxrules.ensembles.lltboost.options import LLTBoostOptions
from jaxrules.ensembles.lltboost.proposals import Proposals
from jaxrules.tools.runs import Run


def grow(ensemble: Ensemble, options: LLTBoostOptions, run: Run) -> Conjunction | None:
    """Algorithm 1: the conjunction with the largest objective, or its unfinished part if the run is
    stopped; None if there is none.

    The loop over zeta, and over classes that are fitted together, is inside that over p: one call
    of `propose` answers for all.
    """
    gradients = np.atleast_2d(ensemble.gradient)
    sizes = np.abs(gradients).sum(axis=1)
    # A stable sort: of equal gradients, the first classes.
    classes = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLASSES]).tolist()
    everything = np.ones(ensemble.n_rows, bool)
    # q_0 = 1, with obj_0 = |g'1|: 0 but for rounding, because the intercept has no ridge.
    # Its risk is never compared: the first s is always accepted (Algorithm 1).
    beams: dict[tuple[int, int], list[Conjunction]] = {}
    for k, sign in itertools.product(classes, (1, -1)):
        slope = abs(float(gradients[k].sum()))
        beams[k, sign] = [Conjunction(sign, everything, slope, math.inf, of_class=k)]
    finished: dict[tuple[int, int], list[Conjunction]] = {key: [] for key in beams}
    for p in range(options.max_length):
        if run.stopped():
            break
        asked = [one for beam in beams.values() for one in beam]
        # At p = 0 the two signs are one problem, with -w for w.
        answers = ensemble.ask(asked if p else asked[::2], run)
        if answers is None:
            if p == 0:
                return _one_column(ensemble)
            break
        # Later the conjunction so far is a rule already; at p = 0 there would be none.
        if p == 0:
            answers = [each for one in answers for each in (one, _mirrored(one))]
        beams = {key: [] for key in beams}
        for one, answer in zip(asked, answers, strict=True):
            # (obj_p - obj_p-1) / obj_p-1 > eps_p, and more than rounding
            key = one.of_class, one.sign
            least = NOTHING * float(sizes[one.of_class])
            needed = max((1 + options.objective_tolerance) * one.objective, least)
            enough = [s for s in _sizes(answer, options) if answer.objective[s] > needed]
            longer = [one.extended(answer, s) for s in enough]
            beams[key] += longer
            # Algorithm 1 then outputs q_(p-1).
            if not longer:
                finished[key].append(one)
        for key, beam in beams.items():
            best_first = sorted(beam, key=lambda one: one.price(options.risk_tolerance))
            beams[key] = best_first[: options.beam_width]
        if not any(beams.values()):
            break
    # Algorithm 1 leaves its output unset at k_r: the last conjunction stands. q_0 is no rule.
    ended = ([one for one in finished[key] + beams[key] if one.parts] for key in beams)
    best = [min(ones, key=lambda one: one.price(options.risk_tolerance)) for ones in ended if ones]
    # The last line of Algorithm 1: the sign of larger objective, whatever the risks.
    return max(best, key=ensemble.worth) if best else None


def _sizes(answer: Proposals, options: LLTBoostOptions) -> list[int]:
    """The support sizes to continue with, less one: at most one in Algorithm 1, all in a wider
    beam.
    """
    found: list[int] = np.flatnonzero(answer.found).tolist()
    return found if options.beam_width > 1 else _sparsest(answer, found, options.risk_tolerance)


def _one_column(ensemble: Ensemble) -> Conjunction | None:
    """The best cut of a single column, if there is no time to compile `propose`."""
    columns, gradients = ensemble.columns, np.atleast_2d(ensemble.gradient)
    # The weight, of the sign of -g'q, must have the column's direction; g'q then has the other.
    signs = None if ensemble.directions is None else -ensemble.directions[None]
    found = columns.best_cut(gradients, signs)
    if found is None:
        return None
    j, cut = found
    rows = columns.values[j] >= cut
    if len(columns.missing):
        rows &= ~columns.missing[j]
    of_class = int(np.abs(gradients @ rows).argmax())
    gained = float(gradients[of_class] @ rows)
    # `best_cut` may have seen only a sample of the rows, with the other sign.
    if ensemble.directions is not None and gained * ensemble.directions[j] > 0:
        return None
    w = np.where(np.arange(len(columns.values)) == j, 1.0, 0.0)
    part = Proposition(w, -cut, False, math.nan, ())
    return Conjunction(1 if gained >= 0 else -1, rows, abs(gained), math.nan, (part,), of_class)


def _sparsest(answer: Proposals, found: list[int], risk_tolerance: float) -> list[int]:
    """The first, replaced with every later one that lowers the risk by the tolerance:
    (R_s - R_p) / R_p <= eps_s.
    """
    # R_p is infinite before the first s.
    chosen = found[:1]
    for s in found[1:]:
        best = answer.risk[chosen[0]]
        # abs: the loss of a user may be negative, and so may its risk.
        if answer.risk[s] - best <= risk_tolerance * abs(best):
            chosen = [s]
    return chosen


def _mirrored(answer: Proposals) -> Proposals:
    """The complements of first propositions, which are best for the other sign because the
    gradients sum to 0.
    """
    # With 1'g = 0, |g'(1 - q)| = |g'q|; and q and 1 - q span the same scores with the constant.
    # So objective and risk stay. A row with w'x + b = 0 exactly would satisfy both propositions:
    # `rows` makes them complements.
    return answer._replace(
        coefficients=-answer.coefficients, intercepts=-answer.intercepts, admits=~answer.admits,
        rows=~answer.rows,
    )  # fmt: skip
