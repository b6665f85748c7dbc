"""The options of every learner: what `jaxrules.learning.options` guarantees for all of them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import jaxrules as jr
from bad_values import refused
from jaxrules.learning.options import FitOptions, in_order, learner, option, options
from jaxrules.tools import checks

ROOT = Path(__file__).parent.parent
X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
Y = X[:, 0] * X[:, 1]


def functions() -> Iterator[tuple[str, Any]]:
    """Every function that takes the options of a class, by its name."""
    for found in pkgutil.walk_packages(jr.__path__, "jaxrules."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and hasattr(value, "with_options"):
                yield f"{module.__name__.removeprefix('jaxrules.')}.{name}", value


FUNCTIONS = dict(functions())
KINDS: dict[str, type[FitOptions]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in dict.fromkeys(function.options for function in FUNCTIONS.values())
}
OLD_NAMES = [
    pytest.param(function, old, new, id=f"{name}-{old}")
    for name, function in FUNCTIONS.items()
    for old, new in function.options.renamed.items()
]
each_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@each_function
def test_signature_docstring_and_help_show_every_option(function: Any) -> None:
    names = [field.name for field in in_order(function.options)]
    parameters = inspect.signature(function).parameters
    data = list(parameters)[: -len(names)]
    assert {"X", "y"} <= set(data)
    assert data[-1] == "sample_weight"
    assert list(parameters) == [*data, *names]
    text, shown = inspect.getdoc(function) or "", pydoc.plain(pydoc.render_doc(function))
    arguments = re.split(r"^\S", text.partition("Args:\n")[2], flags=re.MULTILINE)[0]
    for name in names:
        assert re.search(rf"^    {name}: \S", arguments, re.MULTILINE), name
        assert re.search(rf"\b{name}: .* = ", shown), name
        assert f"{name}: " in shown.partition("Args:")[2], name


@each_kind
def test_options_are_frozen_and_copied_unchanged(kind: type[FitOptions]) -> None:
    made = kind()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.seed = 1
    for again in (dataclasses.replace(made), made.to(kind)):
        for field in dataclasses.fields(kind):
            assert getattr(again, field.name) == getattr(made, field.name), field.name
        assert again.settings() == made.settings()


@each_kind
def test_settings_are_hashable_and_tell_the_learner(kind: type[FitOptions]) -> None:
    settings = kind().settings()
    assert settings[0] == ("learner", kind.learner)
    assert kind.learner
    hash(settings)


@each_kind
def test_old_names_are_not_options(kind: type[FitOptions]) -> None:
    names = {field.name for field in dataclasses.fields(kind)}
    assert kind.renamed.keys().isdisjoint(names)
    assert set(kind.renamed.values()) <= names


@pytest.mark.parametrize(("function", "old", "new"), OLD_NAMES)
def test_old_names_warn_and_work(function: Any, old: str, new: str) -> None:
    with (
        pytest.warns(FutureWarning, match=f"{old} is now called {new}"),
        pytest.raises((TypeError, ValueError), match=new),  # so the value arrived
    ):
        function(X, Y, **{old: object()})
    with pytest.raises(TypeError, match=f"{old} is the old name of {new}; pass only {new}"):
        function(X, Y, **{old: 1, new: 1})


@each_kind
def test_bad_values_are_refused_by_name(kind: type[FitOptions]) -> None:
    """Every option of every function with options, by the check that it is declared with."""
    for field in dataclasses.fields(kind):
        for bad in refused(field.metadata.get("check")):
            with pytest.raises(bad.error, match=rf"^{field.name} {bad.words}"):
                kind(**{field.name: bad.value})


# The mechanism, on a learner of its own


@options
class _Base(FitOptions):
    """What toys have in common.

    Attributes:
        width: of a step,
            in metres.
    """

    width: float = option(checks.number, default=1.0, above=0)


@options
class Toy(_Base):
    """The options of a toy.

    Attributes:
        max_rules: the most rules.
    """

    learner = "toy"
    renamed: ClassVar[Mapping[str, str]] = {"size": "max_rules"}

    max_rules: int = option(checks.integer, default=3, at_least=1)


@learner(Toy)
def toy(X: Any, y: Any, sample_weight: Any, options: Toy) -> tuple[Any, Toy]:
    """Fit a toy.

    Args:
        X: rows.
        y: targets.

    Returns:
        The weights and the options.
    """
    return sample_weight, options


def test_options_reach_the_function_checked() -> None:
    weights, made = toy([[1]], [1], max_rules=np.int64(2))
    assert weights is None
    assert (made.max_rules, type(made.max_rules), made.width) == (2, int, 1.0)
    assert toy([[1]], [1], [2.0])[0] == [2.0]
    assert toy.with_options([[1]], [1], None, made)[1] is made
    assert toy.options is Toy
    for bad, message in (
        ({"max_rules": 0}, "max_rules"),
        ({"width": -1.0}, "width"),
        ({"time_limit": -1.0}, "time_limit"),
    ):
        with pytest.raises(ValueError, match=message):
            toy([[1]], [1], **bad)
    with pytest.raises(TypeError, match="did you mean 'max_rules'"):
        toy([[1]], [1], max_rulez=2)
    with pytest.raises(TypeError, match=r"toy\(\) missing a required argument: 'y'"):
        toy([[1]])
    with pytest.raises(TypeError, match=r"toy\(\) too many positional arguments"):
        toy([[1]], [1], None, 3)


def test_the_docstring_joins_those_of_the_bases() -> None:
    text = inspect.getdoc(toy) or ""
    order = ["X: rows.", "y: targets.", "max_rules: the most rules.", "width: of a step,", "seed: "]
    places = [text.index(entry) for entry in order]
    assert places == sorted(places)
    assert "    width: of a step,\n        in metres.\n" in text
    assert text.endswith("Returns:\n    The weights and the options.")


def test_old_names_of_the_toy() -> None:
    with pytest.warns(FutureWarning, match=r"toy\.toy: size is now called max_rules") as warned:
        _, made = toy([[1]], [1], size=5)
    assert made.max_rules == 5
    assert warned[0].filename == __file__
    with pytest.raises(TypeError, match="size is the old name of max_rules"):
        toy([[1]], [1], size=5, max_rules=5)


# Type checkers

SNIPPET = """
import jaxrules as jr
from jaxrules.estimators import RuleBoostingClassifier

fit = jr.boosting.fit([[1.0]], [1.0], max_rules=3)
path = jr.boosting.path([[1.0]], [1.0], None, max_length=2)
reveal_type(fit.model)
reveal_type(path)
jr.boosting.fit([[1.0]], [1.0], max_rulez=3)
jr.boosting.fit([[1.0]], [1.0], max_rules="three")
model = RuleBoostingClassifier(max_rules=3, penalty="cv", class_weight="balanced")
reveal_type(model)
RuleBoostingClassifier(max_rulez=3)
RuleBoostingClassifier(penalty="best")
"""
FOUND = [
    (7, 'Revealed type is "jaxrules.models.rule_models.RuleEnsemble"'),
    (
        8,
        'Revealed type is "list[jaxrules.tools.fits.Fit['
        'jaxrules.models.rule_models.RuleEnsemble]]"',
    ),
    (9, 'Unexpected keyword argument "max_rulez"'),
    (10, "type \"Literal['three']\"; expected \"int | Literal['auto'] | None\""),
    (12, 'Revealed type is "jaxrules.estimators.RuleBoostingClassifier"'),
    (13, 'Unexpected keyword argument "max_rulez"'),
    (14, "incompatible type \"Literal['best']\"; expected \"Literal['fit', 'cv']\""),
]

TABLES = """
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl

import jaxrules as jr

y = [1.0, 2.0]
numbers = np.ones((2, 1))
found = jr.boosting.fit(numbers, y)
jr.lire.fit(jnp.ones((2, 1)), y)
jr.paths.fit([[1, 2], (3.0, True)], y)
jr.ssrl.fit([numbers[0], np.float32(2) * numbers[1]], y)
jr.rulefit.fit({"size": [1, None], 2: numbers[:, 0]}, y)
jr.as_table([{"size": 1, "colour": "red"}, {"size": 2, "colour": None}])
jr.predict(found.model, pl.DataFrame({"size": [1, 2]}))
jr.risk(found.model, jr.as_table(numbers), y)
jr.boosting.fit(None, y)
jr.lire.fit("rows.csv", y)
jr.paths.fit(Path("rows.csv"), y)
jr.ssrl.fit([1.0], y)
jr.rulefit.fit([["red"]], y)
jr.as_table({"size": 1})
jr.predict(found.model, found)
jr.risk(found.model, {1.0, 2.0}, y)
"""
REFUSED = [
    (20, 'incompatible type "None"'),
    (21, 'incompatible type "str"'),
    (22, 'incompatible type "Path"'),
    (23, 'List item 0 has incompatible type "float"'),
    (24, 'List item 0 has incompatible type "str"'),
    (25, 'incompatible type "str": "int"'),
    (26, 'incompatible type "Fit[RuleEnsemble]"'),
    (27, 'incompatible type "set[float]"'),
]


@pytest.mark.full  # mypy reads the package
@pytest.mark.parametrize(("snippet", "expected"), [(SNIPPET, FOUND), (TABLES, REFUSED)])
def test_type_checkers_see_the_options_and_the_kinds_of_X(
    tmp_path: Path, snippet: str, expected: list[tuple[int, str]]
) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(snippet)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports", "silent", tmp_path / "snippet.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = re.findall(r"snippet\.py:(\d+): \w+: (?!\")(.*)", done.stdout)  # no "... defined in"
    assert [int(line) for line, _ in told] == [line for line, _ in expected], (
        done.stdout + done.stderr
    )
    for (_, message), (_, part) in zip(told, expected, strict=True):
        assert part in message
