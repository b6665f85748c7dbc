"""Compiled kernels of the rule searches; imported on first use, as they load numba.

problems     the worth of conjunctions, and how kernels are compiled for each class of problems
state        records of the depth-first search
nodes        the rows and masks of its nodes
bounds       values and bounds of its nodes
depth_first  its steps: `advance`
published    one step of Algorithm 1 of "Better Short than Greedy": `augment`
extensions   sums of a beam's extensions: `extension_sums`, `sums_by_cells`
"""
