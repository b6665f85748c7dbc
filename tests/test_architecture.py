"""The table of rooms in docs/architecture.md is the truth about what imports what."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FRONT_DOOR = "jaxrules"


def modules_of(package: str) -> dict[str, Path]:
    """The files by the modules' whole names."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((ROOT / package).rglob("*.py"))
    }


MODULES = modules_of(FRONT_DOOR)
REPRODUCTIONS = modules_of("paper_reproductions")


class Room(NamedTuple):
    modules: set[str]
    may_import: set[str]


@functools.cache
def rooms() -> dict[str, Room]:
    """By name; a room may import from rooms that stand above it in the table, and from itself."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    found: dict[str, Room] = {}
    for name, listed, imports in re.findall(
        r"^\| \*\*(.+?)\*\* \|(.+?)\|(.+?)\|", page, re.MULTILINE
    ):
        modules: set[str] = set()
        for entry in re.findall(r"`(.+?)`", listed):
            path = ".".join([FRONT_DOOR, *entry.rstrip("/").split("/")])
            inside = {
                module for module in MODULES if module == path or module.startswith(f"{path}.")
            }
            assert inside if entry.endswith("/") else inside == {path}, (
                f"{entry} is on the page and not in jaxrules"
            )
            modules |= inside
        above = set(found)
        named = (
            above
            if imports.strip() == "everything"
            else {room.strip() for room in imports.split(",")}
        )
        assert named - {"nothing"} <= above, (
            f"{name} names rooms that do not stand above it: {named - above}"
        )
        found[name] = Room(modules, named | {name})
    return found


def room_of(module: str) -> str:
    return next(name for name, room in rooms().items() if module in room.modules)


class Import(NamedTuple):
    """An import of a module's own package: the module, the name taken from it (None for the module
    itself), what it is called.
    """

    module: str
    name: str | None
    called: str
    line: int


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse((MODULES | REPRODUCTIONS)[module].read_text("utf-8"))


def imports(module: str) -> Iterator[Import]:
    """All of them, those inside functions too."""
    package = module.split(".")[0]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == package:
                    yield Import(alias.name, None, alias.asname or alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            whole = bool(node.module) and not node.level
            assert whole, f"{module}, line {node.lineno}: write the whole name, {package}..."
            assert node.module is not None
            if node.module.split(".")[0] == package:
                for alias in node.names:
                    inner, called = f"{node.module}.{alias.name}", alias.asname or alias.name
                    whole = inner in MODULES or inner in REPRODUCTIONS
                    yield Import(
                        *((inner, None) if whole else (node.module, alias.name)),
                        called,
                        node.lineno,
                    )


def test_every_module_is_in_one_room() -> None:
    listed = [module for room in rooms().values() for module in room.modules]
    assert sorted([FRONT_DOOR, *listed]) == sorted(MODULES)


def test_imports_run_downwards() -> None:
    wrong = [
        f"{module} ({room}), line {one.line}, imports {one.module} ({room_of(one.module)})"
        for module in MODULES
        if module != FRONT_DOOR
        for room in [room_of(module)]
        for one in imports(module)
        if room_of(one.module) not in rooms()[room].may_import
    ]
    assert not wrong, "\n".join(wrong)


def test_benchmarks_do_without_the_reproductions() -> None:
    """Reproductions call benchmarks/peers.py, and nothing calls back."""
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        text = path.read_text("utf-8")
        assert not re.search(r"^\s*(import|from) paper_reproductions", text, re.MULTILINE), path


@pytest.mark.full
def test_private_names_stay_at_home() -> None:
    wrong = []
    for module in MODULES:
        modules = {one.called for one in imports(module) if one.name is None}
        wrong += [
            f"{module}, line {one.line}: {one.name}"
            for one in imports(module)
            if is_private(one.name)
        ]
        wrong += [
            f"{module}, line {node.lineno}: {node.value.id}.{node.attr}"
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if node.value.id in modules and is_private(node.attr)
        ]
    assert not wrong, "\n".join(wrong)


def is_private(name: str | None) -> bool:
    return name is not None and name.startswith("_") and not name.startswith("__")


@pytest.mark.full
@pytest.mark.parametrize(
    "modules", [MODULES, REPRODUCTIONS], ids=["jaxrules", "paper_reproductions"]
)
def test_modules_form_no_circle(modules: dict[str, Path]) -> None:
    folders = {
        module for module, path in modules.items() if path.name == "__init__.py"
    }  # they gather, no more
    graph = {
        module: {one.module for one in imports(module)} - folders
        for module in set(modules) - folders
    }
    tuple(
        graphlib.TopologicalSorter(graph).static_order()
    )  # raises CycleError, which names the circle


LONGEST = 60
"""Lines of a function without its docstring."""


def code_lines(function: ast.FunctionDef, lines: list[str]) -> int:
    """From def to the last line, without the docstring and without comments."""
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    comments = sum(
        line.lstrip().startswith("#") for line in lines[function.lineno - 1 : function.end_lineno]
    )
    return length_of(function) - (length_of(first) if documented else 0) - comments


def length_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_fit_on_a_screen() -> None:
    functions = {
        f"{module}.{node.name}": length
        for module, path in MODULES.items()
        for lines in [path.read_text().splitlines()]
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef) and (length := code_lines(node, lines)) > LONGEST
    }
    assert not functions


COMPILED = {"SecondOrder", "CorrectiveDecrease"}
"""Objectives of rules, whose compiled form has their name."""


def test_no_two_classes_share_a_name() -> None:
    """A reader who looks a class up by its name finds one."""
    names = [
        node.name for module in MODULES for node in tree(module).body
        if isinstance(node, ast.ClassDef)
    ]  # fmt: skip
    assert {name for name in names if names.count(name) > 1} <= COMPILED
