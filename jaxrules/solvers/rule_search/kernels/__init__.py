"""Compiled kernels of the rule searches; imported on first use, as they load numba.

problems     the worth of conjunctions, and how kernels are compiled for each class of problems
state        records of the depth-first search
nodes        the rows and masks of its nodes
bounds       values and bounds of its nodes
depth_first  its steps: `advance`
published    one step of Algorithm 1 of "Better Short than Greedy": `augment`
extensions   sums of a beam's extensions: `extension_sums`, `sums_by_cells`
class_pairs  values of pairs of propositions
pair_bounds  bounds on them
counts       rows of every class in pairs of cells
prefixes     the best threshold of a sorted column
vectors      sums of rows by group

`jaxrules.tools.kernels` says when they are worth the wait. Loops in the place of NumPy's functions
halve what numba compiles.
"""
