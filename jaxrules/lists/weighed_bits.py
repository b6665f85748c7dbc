"""Weights of groups as sums of bits, so that a popcount weighs the rows of a condition.

Let the groups' weights in a class be whole multiples n_g = u c_g of a unit u. In binary, c_g is
sum_b 2^b c_gb, so that the weight of a set S of groups is

    sum_g in S n_g = u sum_b 2^b |{g in S: c_gb = 1}|,

one popcount per binary digit b, over the groups alone that have it. The words of one digit follow
those of another; a processor with wide registers counts eight words at once, and integers are exact
where sums of floats round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.bits import Words, transposed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_WORDS = 1 << 27
"""The most words that the conditions may take: a GiB, as do those of the largest default pool."""
_MOST_DIGITS = 40
"""Weights of more binary digits are summed as numbers: then most groups have most digits, which
count as slowly. Sums must fit in 64 bits, too.
"""
_WHOLE = 1e-14
"""How far, as a share, a weight may be from a multiple of the unit: its last binary digits. The sum
of all weights then errs by this share at most, below `prefixes.TOLERANCE`.
"""
_NOTHING = 1e-9
"""A remainder below this share of the greatest weight is rounding."""


class WeighedBits(NamedTuple):
    """The conditions, with a bit for every binary digit 1 of a group's weight in a class.

    Attributes:
        covers: the bits of the groups that each condition covers, uint64 (conditions, words).
        place: the group of each bit, -1 for none, (64 words,).
        powers: 2^b of the digit, uint64 (words,).
        parts: the first word, the end, and the class of words of the same unit, (parts, 3); the
            number of classes stands for the heaviest class of each group. It has no words if each
            group has one class: then it weighs what all classes together do.
        units: of the parts, (parts,).
    """

    covers: Words
    place: Ints
    powers: Words
    parts: Ints
    units: Floats


def no_bits(conditions: int) -> WeighedBits:
    """For weights that are summed as numbers."""
    none = np.zeros(0, np.int64)
    parts = np.zeros((0, 3), np.int64)
    words = np.zeros((conditions, 0), np.uint64)
    return WeighedBits(words, none, none.astype(np.uint64), parts, np.zeros(0))


def weighed_bits(covers: Words, counts: Floats) -> WeighedBits:
    """The bits of some conditions; none if the weights are no whole multiples of a unit per class,
    or the bits would take too much memory.

    Args:
        covers: the groups that each condition covers, (conditions, words).
        counts: the weight of every class in every group, (groups, classes).
    """
    n_classes = counts.shape[1]
    classes = range(n_classes)
    multiples, units = [], []
    for k in classes:
        found = _multiples(counts[:, k])
        if found is None:
            return no_bits(len(covers))
        multiples.append(found[0])
        units.append(found[1])
    shares: list[tuple[int, float, Ints]] = [(k, units[k], multiples[k]) for k in classes]
    if (np.count_nonzero(counts, axis=1) > 1).any():
        heaviest = counts.argmax(axis=1)
        for unit in set(units):  # one part per unit: fewer words are half empty
            total = np.zeros(len(counts), np.int64)
            for k in classes:
                if units[k] == unit:
                    total += np.where(heaviest == k, multiples[k], 0)
            shares.append((n_classes, unit, total))
    place, powers, parts, n_words = [], [], [], 0
    for k, _, multiple in shares:
        first = n_words
        for digit in range(int(multiple.max(initial=0)).bit_length()):
            groups = np.flatnonzero(multiple >> digit & 1)
            if not len(groups):
                continue
            words = -(-len(groups) // 64)
            place.append(np.pad(groups, (0, 64 * words - len(groups)), constant_values=-1))
            powers += [1 << digit] * words
            n_words += words
        parts.append((first, n_words, k))
    if len(covers) * n_words > _MOST_WORDS:
        return no_bits(len(covers))
    places = np.concatenate(place)
    bits = np.empty((len(covers), n_words), np.uint64)
    word = 0
    # The last is empty: -1 is its place, too.
    by_group = functools.cache(lambda: np.pad(transposed(covers, len(counts)), ((0, 1), (0, 0))))
    for groups in place:
        end = word + len(groups) // 64
        bits[:, word:end] = _taken(covers, by_group, groups)
        word = end
    return WeighedBits(
        bits, places, np.array(powers, np.uint64), np.array(parts, np.int64),
        np.array([unit for _, unit, _ in shares]),
    )  # fmt: skip


def _taken(covers: Words, by_group: Callable[[], Words], groups: Ints) -> Words:
    """The bits of some groups, -1 for none, (conditions, groups / 64).

    Args:
        by_group: the conditions that cover each group, and an empty row, (groups + 1, words).
    """
    some = groups[groups >= 0]
    first, n_words = int(some[0]), len(groups) // 64
    if int(some[-1]) - first != len(some) - 1:
        return transposed(by_group()[groups], len(covers))
    # Groups in a row, as those of a class are where each has one: their words, shifted
    word, shift = divmod(first, 64)
    found = covers[:, word : word + n_words] >> np.uint64(shift)
    if shift:
        after = covers[:, word + 1 : word + n_words + 1]
        found[:, : after.shape[1]] |= after << np.uint64(64 - shift)
    if len(some) % 64:
        found[:, -1] &= np.uint64((1 << len(some) % 64) - 1)
    return found


def _multiples(weights: Floats) -> tuple[Ints, float] | None:
    """Weights as multiples of a unit, and the unit; None if there are none of few enough digits."""
    positive = weights[weights > 0]
    if not len(positive):
        return np.zeros(len(weights), np.int64), 1.0
    # Euclid's algorithm on rounded numbers guesses the unit as a fraction of the least weight, so
    # without its rounding; the check below proves it.
    least, nothing = float(positive.min()), _NOTHING * float(positive.max())
    if least <= nothing:
        return None
    rough = least
    for weight in np.unique(positive).tolist():
        while weight > nothing:
            rough, weight = weight, rough % weight
            if weight > rough * (1 - _NOTHING):  # a multiple, but for rounding
                weight = 0.0
    unit = least / round(least / rough)
    if positive.max() / unit >= 2**_MOST_DIGITS or positive.sum() / unit >= 2**62:
        return None
    multiples = np.round(weights / unit)
    if (np.abs(multiples * unit - weights) > _WHOLE * weights).any():
        return None
    return multiples.astype(np.int64), unit
