"""Wrong, odd and extreme arguments give a model or a clear error, never a raw one
and never silent nonsense.
"""

from __future__ import annotations

import pytest

import fuzz

EVERY = 29
"""One call of so many is in the normal suite."""
pytestmark = pytest.mark.filterwarnings("default")  # what odd data are told
each_entry = pytest.mark.parametrize("entry", fuzz.entries(), ids=lambda entry: entry.name)


def defects(entry: fuzz.Entry, step: int) -> list[str]:
    fuzz.warm_up(entry)
    results = {str(case): fuzz.run(case) for case in fuzz.cases(entry)[::step]}
    return [f"{case}: {one.outcome}: {one.told}" for case, one in results.items() if one.is_defect]


@each_entry
def test_some_calls(entry: fuzz.Entry) -> None:
    assert defects(entry, EVERY) == []


@pytest.mark.slow
@each_entry
def test_all_calls(entry: fuzz.Entry) -> None:
    assert defects(entry, 1) == []


def raises(value: float) -> float:
    raise ValueError(f"the number is {value}")


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda value: value, "model"),
        (lambda value: value * float("nan"), "silent nonsense"),
        (raises, "raw error"),
        (lambda value: fuzz.jr.as_table(fuzz.X, missing=value), "raw error"),
        (lambda missing: fuzz.jr.as_table(fuzz.X, missing=missing), "clear error"),
    ],
)
def test_what_comes_back_is_judged(call: object, outcome: str) -> None:
    entry = fuzz.Entry("call", call, {})
    name = next(iter(fuzz.inspect.signature(entry.call).parameters))
    assert fuzz.run(fuzz.Case(entry, name, 1.5)).outcome == outcome
    if outcome == "model":
        assert fuzz.run(fuzz.Case(entry, name, fuzz.Bad(1.5))).outcome == "silent nonsense"
