"""Adam on a pytree of parameters, in one compiled program that can stop between chunks of steps.

The objective is an instance of a frozen dataclass, so that equal objectives share their program.
The data, the number of steps and the learning rate are arguments: nothing is compiled twice for the
same shapes. Optax makes the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from jaxrules.solvers.patience import Patient
from jaxrules.tools.float64 import on_device, x64_kernel

_STEPS_PER_CHUNK = 25
_WORTH_ASKING = 10_000_000
"""Parameters x steps between two questions whether to stop."""
_DECAYS = (0.9, 0.99)
"""The decay rates of Adam's two running means; the second forgets faster than usual, because there
are only a few hundred steps.
"""


Tree = Any  # a pytree of arrays
Objective = Callable[[Tree, Tree, Tree, Array], Array]
"""What is minimised: (parameters, rows, fixed arrays, number of the step) -> values, (lanes,), one
per problem.

The first axis of the parameters indexes problems solved side by side. The rows are arrays whose
last axis indexes the rows. The row weights come first; they sum to one over all rows, and over a
batch in expectation.
"""


class Descent(NamedTuple):
    """The descent after a chunk of steps: the number of steps so far, the parameters, and the mean
    values over the chunk.
    """

    steps: int
    parameters: Tree
    values: NDArray[np.float64]


def adam(
    objective: Objective,
    parameters: Tree,
    rows: tuple[Tree, ...],
    fixed: Tree = (),
    *,
    n_rows: int,
    iterations: int,
    learning_rate: float,
    cosine: bool = True,
    batch_size: int | None = None,
    seed: int = 0,
    ends: tuple[Tree, Tree] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Descent]:
    """Minimise, and report after every chunk of steps; ends early when stopped.

    Args:
        objective: hashable, see `Objective`.
        parameters: a pytree of float64 arrays.
        rows: arrays whose last axis indexes the rows, the row weights first. They may be padded
            with rows of weight 0.
        fixed: other arrays that the objective needs.
        n_rows: the number of rows without the padding.
        iterations: the number of steps.
        learning_rate: the rate of the first step; with `cosine` it falls to 0 along a cosine.
        batch_size: rows drawn for every step; None, or at least `n_rows`, for all.
        seed: seed of the batches.
        ends: lower and upper bounds on the parameters: two pytrees like them, of arrays with the
            same axes or axes of length 1. Every step ends with a projection onto the bounds. The
            start must satisfy them.
        stopped: whether to stop; asked before every chunk, and within it for many parameters.

    Yields:
        A `Descent` per chunk.
    """
    import optax

    size = 0 if batch_size is None or batch_size >= n_rows else batch_size
    random = np.random.default_rng(seed)
    nothing = jax.tree.map(np.zeros_like, parameters)
    state = optax.ScaleByAdamState(np.zeros((), np.int32), nothing, nothing)
    rows, (fixed, ends) = on_device(rows, rows=-1), on_device((fixed, ends))
    # By size, not by the clock: the processes of a mesh must take the same steps.
    at_once = max(1, _WORTH_ASKING // sum(part.size for part in jax.tree.leaves(parameters)))
    done = 0
    while done < iterations and not stopped():
        steps = min(_STEPS_PER_CHUNK, iterations - done)
        # Without replacement within a chunk; if the chunk needs more rows than there are, the order
        # is repeated.
        order = random.permutation(n_rows).astype(np.int32) if size else np.zeros(0, np.int32)
        batches = np.resize(order, _STEPS_PER_CHUNK * size).reshape(_STEPS_PER_CHUNK, size)
        n, sums = 0, np.zeros(jax.tree.leaves(parameters)[0].shape[0])
        while n < steps and not (n and stopped()):
            some = min(at_once, steps - n)
            answer = _compiled_in_time(
                stopped, objective, parameters, state, rows, fixed, np.roll(batches, -n, axis=0),
                np.array([done + n, some]),
                np.array([learning_rate, iterations if cosine else np.inf]), float(n_rows), ends,
                sums,
            )  # fmt: skip
            if answer is None:
                return
            parameters, state, sums = jax.block_until_ready(answer)
            n += some
        done += n
        yield Descent(done, parameters, np.asarray(sums) / n)


@x64_kernel(static=("objective",))
def _chunk(
    objective: Objective,
    parameters: Tree,
    state: Tree,
    rows: Tree,
    fixed: Tree,
    batches: Array,
    span: Array,
    schedule: Array,
    n_rows: Array,
    ends: Tree,
    sums: Array,
) -> tuple[Tree, Tree, Array]:
    """The steps ``span[0], ..., span[0] + span[1] - 1``: parameters, state of the optimiser,
    `sums` plus the values.
    """
    import optax

    optimiser = optax.scale_by_adam(*_DECAYS)
    size = batches.shape[1]

    def total(parameters: Tree, rows: Tree, step: Array) -> tuple[Array, Array]:
        values = objective(parameters, rows, fixed, step)
        return jnp.sum(values), values

    def step(i: Array, carry: tuple[Tree, Tree, Array]) -> tuple[Tree, Tree, Array]:
        parameters, state, sums = carry
        used = rows
        if size:
            weights, *others = (array[..., batches[i]] for array in rows)
            # The weights sum to one over all rows: over a batch, they do so in expectation.
            used = (weights * n_rows / size, *others)
        slopes, values = jax.grad(total, has_aux=True)(parameters, used, span[0] + i)
        directions, state = optimiser.update(slopes, state)
        # An infinite schedule keeps the rate: cos(0) = 1.
        rate = schedule[0] / 2 * (1 + jnp.cos(jnp.pi * (span[0] + i) / schedule[1]))
        moved = jax.tree.map(lambda one, direction: one - rate * direction, parameters, directions)
        if ends is not None:
            moved = jax.tree.map(jnp.clip, moved, *ends)
        return moved, state, sums + values

    return lax.fori_loop(0, span[1], step, (parameters, state, sums))


_compiled_in_time = Patient(_chunk)
