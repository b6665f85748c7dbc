"""A bound on all rule lists of at most so many rules: the certificate of SSRL.

f is the weight of the correctly classified rows minus the penalty of the literals (SSRL Eq. 14).
Rows that no literal distinguishes form one group, with weight n_l in class l; d is the default
label, base the weight of class d, and g_l = max(0, n_l - n_d) for l other than d what a group can
gain by label l.

**Counting** (`counted_bound`). The rules of a list capture disjoint groups, so that f - base is the
sum over the rules of n_l - n_d over what they capture, less their penalties. A rule with the
default's label gains nothing. Let P_l be the sum of g_l over all groups that some literal allows to
have label l, G_l the largest sum of g_l that one literal covers, and P the sum of max_l g_l.
Then m_l rules with label l gain at most h_l(m_l) = min(m_l G_l, P_l) - penalty m_l, and

    f <= base + max over m_l >= 0, sum m_l = M <= k, of min(sum_l h_l(m_l), P - penalty M).

With a local penalty mu, every row reads the first rule: lists with rules have at most mu times the
weight of all rows less. h_l is concave: the best sum of M rules takes the M largest increments.
Without limits on rules this is CORELS' bound by equivalent points, less one literal a label.

**Insertion** (`inserted_bound`). For lists of one rule: the best of all conjunctions, by the exact
search for a rule to insert.

**Search** (`searched_bound`). If there are few conditions, branch-and-bound over the first rules of
a list (`jaxrules.lists.prefixes`) lowers the bound, to the optimum if it ends. A rule of m literals
that covers less weight than their penalty costs more than it can gain, so that an optimal list has
none: such conditions are left out. With a local penalty its rows may also read up to k - 1 rules
less: the weight must be less than the penalty / (1 + mu (k - 1)).

>>> import numpy as np
>>> counts = np.array([[5.0, 0.0], [0.0, 4.0], [3.0, 1.0]])  # groups x classes
>>> literals = np.array([[False, True, True], [True, False, False]])  # literals x groups
>>> counted_bound(Examples(literals, counts, 0), penalty=1.0, max_rules=2)
11.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table
from jaxrules.lists.candidates import ListCandidates, candidates_of
from jaxrules.lists.insertion import Examples, Literals, Subproblem, exactly
from jaxrules.lists.prefixes import LAYERS, Choice, Prefixes, in_some_seconds
from jaxrules.rules.conditions import PropositionPool
from jaxrules.rules.constraints import Constraints

Floats = NDArray[np.float64]

_MOST_CONDITIONS = 1 << 12
"""With more, a search of some seconds hardly lowers the counted bound."""
_MOST_EXAMINED = 1 << 21
"""Blocks of conditions x literals x groups of the exact search for one rule: its open conditions
take 1 GiB at most, and some seconds.
"""
_MOST_ENTRIES = 1 << 28
"""Literals x rows up to which conditions are made: 1 GiB of numbers."""


def counted_bound(groups: Examples, penalty: float, max_rules: int) -> float:
    """The bound by counting, see the module.

    Args:
        groups: the distinct rows, with the weight of each class.
        penalty: of a literal.
        max_rules: k.
    """
    counts, d = groups.counts, groups.default
    gain = np.maximum(counts - counts[:, [d]], 0.0)  # g_l
    gain[:, d] = 0.0
    literals = groups.literals
    allowed = np.ones((groups.n_classes, len(literals)), bool)
    if groups.allowed is not None:
        allowed = groups.allowed
        gain *= (allowed.astype(float) @ literals > 0).T
    of_literal = np.where(allowed.T, literals @ gain, 0.0)  # (literals, classes)
    largest, total = of_literal.max(axis=0, initial=0.0), gain.sum(axis=0)  # G_l, P_l
    increments: list[float] = []
    for most, left in zip(largest.tolist(), total.tolist(), strict=True):
        while len(increments) < max_rules * len(largest) and min(most, left) > penalty:
            increments.append(min(most, left) - penalty)
            left -= most
    # Increments below zero are left out: with them neither part of the minimum rises.
    best = np.cumsum(sorted(increments, reverse=True)[:max_rules])
    shared = float(gain.max(axis=1).sum()) - penalty * np.arange(1, len(best) + 1)
    read = groups.local_penalty * float(counts.sum())
    return float(counts[:, d].sum() + (np.minimum(best, shared) - read).max(initial=0.0))


def inserted_bound(
    groups: Examples, penalty: float, max_length: int | None, stopped: Callable[[], bool]
) -> float:
    """The bound on lists of one rule: the best rule to insert into an empty list, of all
    conjunctions; infinite if they are too many to search.
    """
    most_blocks = _MOST_EXAMINED // max(1, groups.literals.size)
    if not most_blocks:
        return np.inf
    everywhere = np.ones(groups.n_rows, bool)
    first = np.zeros(groups.n_rows, np.intp)
    problem = Subproblem(groups, first, (), 1.0, everywhere, penalty, max_length, 1)
    _, gain = exactly(problem, stopped, most_blocks=most_blocks)
    total = float(groups.counts.sum())
    whole = total < 2**24 and (groups.counts == np.round(groups.counts)).all()
    whole = whole and not groups.local_penalty
    # Gains are float32: exact for whole weights, else each of the added weights is rounded once.
    rounding = 0.0 if whole else float(np.finfo(np.float32).eps) * groups.n_rows * total
    return float(groups.counts[:, groups.default].sum() + max(gain, 0.0) + rounding)


class SearchedBound(NamedTuple):
    """What branch-and-bound over the first rules proves.

    Attributes:
        bound: no list has a larger objective.
        objective: of the best list that it met.
        conditions, labels: of that list.
    """

    bound: float
    objective: float
    conditions: tuple[Literals, ...]
    labels: tuple[int, ...]


def searched_bound(
    candidates: ListCandidates, known: Choice, max_rules: int, stopped: Callable[[], bool]
) -> SearchedBound:
    """The bound by branch-and-bound, which starts from a known list and ends after some seconds."""
    prefixes = Prefixes(candidates, max_rules)
    certificate = prefixes.certificate(known)
    most = in_some_seconds(candidates.covers.shape[1])

    def ended() -> bool:
        return certificate.closed or stopped() or prefixes.evaluations >= most

    for layer in LAYERS:
        if ended():
            break
        prefixes.search(certificate, layer, ended)
    found = certificate.solution
    return SearchedBound(
        certificate.objective if certificate.closed else certificate.bound,
        certificate.objective,
        tuple(tuple(row[row >= 0].tolist()) for row in candidates.members[list(found)]),
        tuple(candidates.labelled(found)[0][:-1].tolist()),
    )


def bounding_candidates(
    pool: PropositionPool,
    table: Table,
    class_weights: Floats,
    constraints: Constraints,
    stopped: Callable[[], bool],
    *,
    default: int,
    penalty: float,
    max_length: int | None,
    local_penalty: float = 0.0,
    max_rules: int = 1,
) -> ListCandidates | None:
    """All conditions that an optimal list can have; None if they are too many to search, or if
    there is no time.

    Args:
        pool: the literals.
        table, class_weights: the rows, and the weight of every class in each, (rows, classes).
        constraints: what rules may say. Required columns are ignored, which can only raise a bound.
        default: the code of the default label.
        penalty, local_penalty: of a literal, and of a rule that a row reads.
        max_length, max_rules: the most literals of a rule, and rules of a list.
    """
    if len(pool) * table.n_rows > _MOST_ENTRIES or len(pool) > _MOST_CONDITIONS:
        return None
    candidates = candidates_of(
        pool,
        table,
        class_weights,
        constraints=replace(constraints, required=()),
        penalty=penalty,
        defaults=np.arange(class_weights.shape[1]) == default,
        max_length=len(pool) if max_length is None else min(max_length, len(pool)),
        least=0.0,
        per_literal=penalty / (1 + local_penalty * (max_rules - 1)),
        most=_MOST_CONDITIONS,
        stopped=stopped,
    )
    priced = replace(candidates, local_penalty=local_penalty)
    return priced if candidates.complete else None
