"""Compiled kernels of the linear solvers; imported on first use, as they load numba."""
