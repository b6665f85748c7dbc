"""What happens around every call of a fit. tests/test_interrupts.py has Ctrl-C and forked
processes.
"""

import time

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.learning.guard import guarded
from jaxrules.tools.runs import Deadline


@guarded
def some_fit(*, time_limit: float | Deadline | None = None) -> Deadline:
    """Gives its time limit."""
    assert isinstance(time_limit, Deadline)
    return time_limit


def test_the_clock_starts_with_the_call() -> None:
    assert some_fit(time_limit=5.0).started <= time.monotonic()
    deadline = jr.Deadline(2.0, lambda: 100.0)
    assert some_fit(time_limit=deadline) is deadline
    assert some_fit().seconds is None
    with pytest.raises(ValueError, match="time_limit must be"):
        some_fit(time_limit=-1.0)
    assert some_fit.__doc__ == "Gives its time limit."


def test_unknown_arguments_are_explained() -> None:
    with pytest.raises(
        TypeError, match="cannot enforce monotone; .*boosting.* can .docs/constraints"
    ):
        some_fit(monotone={"age": 1})
    with pytest.raises(
        TypeError, match=r"some_fit\(\) got an unexpected .*'timeout'; did you mean 'time_limit'"
    ):
        some_fit(timeout=1.0)


def test_functions_have_the_names_that_users_call() -> None:
    X = np.zeros((4, 1))
    for call, said in (
        (jr.compare, r"jaxrules\.compare\(\) .*'metric'; did you mean 'risk'"),
        (jr.stability, r"jaxrules\.stability\(\) .*'metric'"),
        (jr.paths.pareto, r"jaxrules\.paths\.pareto\(\)"),
        (jr.paths.greedy, r"jaxrules\.paths\.greedy\(\)"),
        (jr.lire.published, r"jaxrules\.lire\.published\(\)"),
        (jr.boosting.fit, r"jaxrules\.boosting\.fit\(\)"),
        (jr.finetune, r"jaxrules\.finetune\(\)"),
    ):
        with pytest.raises(TypeError, match=said):
            call(X, X, metric="auc")
