"""A hash of how a cell is measured: of the measuring function and of all that it
uses in its paper's folder.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

SHARED = (
    "paper_reproductions.framework",
    "paper_reproductions.report",
    "paper_reproductions.sections",
)
"""What keeps and shows cells does not change what is measured in them."""


@functools.cache
def fingerprint(measure: Callable[..., Any], depends: Callable[[], Iterable[Any]] = tuple) -> str:
    """ "p" and twelve hexadecimal digits, which change when the protocol of a cell does.

    The protocol is the code of `measure`, of the functions and classes of the same paper that it
    reaches, the values of their defaults, the constants that they read, and what
    `depends` returns: values, and files by their `Path`. Comments, docstrings and layout are no
    part of it, nor is the library, whose version a cell carries beside this.
    """
    reached = _Reached(measure.__module__)
    reached.parts.add(f"measure: {reached.text(measure)}")
    for k, thing in enumerate(depends()):
        reached.parts.add(
            f"depends {k}: {_of_file(thing) if isinstance(thing, Path) else reached.text(thing)}"
        )
    reached.close()
    return "p" + hashlib.sha256("\n".join(sorted(reached.parts)).encode()).hexdigest()[:12]


class _Reached:
    """What a function reaches, by name: the code of functions and
    classes, the values of constants.
    """

    def __init__(self, module: str) -> None:
        self.scope = (
            ".".join(module.split(".")[:2]) if module.startswith("paper_reproductions.") else module
        )
        self.parts: set[str] = set()
        self._open: list[tuple[str, Any]] = []
        self._seen: set[Any] = set()  # not by name, which all lambdas of a module share

    def _inside(self, module: str | None) -> bool:
        within = module == self.scope or str(module).startswith(f"{self.scope}.")
        return within and module not in SHARED

    def close(self) -> None:
        """Follow what was named until nothing new is found."""
        while self._open:
            name, thing = self._open.pop()
            if thing in self._seen:
                continue
            self._seen.add(thing)
            self.parts.add(f"{name}: {_source(thing)}")
            for function in _functions(
                thing
            ):  # of a default the source has the name, which was read long before
                defaults = self.text([function.__defaults__, function.__kwdefaults__])
                self.parts.add(f"{name}, {function.__name__}: {defaults}")
            for used, value in _used(thing, self._inside):
                if not isinstance(value, ModuleType):
                    self.parts.add(f"{used} = {self.text(value)}")

    def text(self, value: Any) -> str:
        """A value in words that do not change from run to run."""
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return repr(value)
        if isinstance(value, functools.partial):
            return f"partial({self.text(value.func)}, {self.text(value.args)}, {self.text(value.keywords)})"
        if isinstance(value, MethodType):
            return self._named(value.__func__)
        if isinstance(value, (FunctionType, type)) or hasattr(value, "__wrapped__"):
            return self._named(inspect.unwrap(value))
        if isinstance(value, Mapping):
            return (
                "{"
                + ", ".join(f"{self.text(key)}: {self.text(entry)}" for key, entry in value.items())
                + "}"
            )
        if isinstance(value, Set):
            return "{" + ", ".join(sorted(self.text(entry) for entry in value)) + "}"
        if isinstance(value, (list, tuple, range)):
            return "[" + ", ".join(self.text(entry) for entry in value) + "]"
        if isinstance(value, (np.ndarray, np.generic)):
            return f"{value.dtype}{value.tolist()}"
        kind = self._named(type(value))
        if dataclasses.is_dataclass(value) and type(value).__module__ not in SHARED:
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return f"{kind}{self.text(fields)}"
        return kind

    def _named(self, thing: Any) -> str:
        name = str(thing.__qualname__)  # of the library no more than the name: there code may move
        if self._inside(thing.__module__):
            name = f"{thing.__module__}.{name}"
            self._open.append((name, thing))
        cells = getattr(thing, "__closure__", None) or ()
        return name + (
            self.text([cell.cell_contents for cell in cells if _filled(cell)]) if cells else ""
        )


def _filled(cell: Any) -> bool:
    """Whether a variable of an enclosing function has its value; one that holds the
    function itself has not, first.
    """
    try:
        return (
            not isinstance(cell.cell_contents, FunctionType)
            or cell.cell_contents.__closure__ is None
        )
    except ValueError:
        return False


def _of_file(path: Path) -> str:
    """Its name and its text, of a program as `_source` has it."""
    text = path.read_text("utf-8")
    return f"{path.name}: {_bare(text) if path.suffix == '.py' else text}"


def _source(thing: Any) -> str:
    """The code without comments, docstrings and layout."""
    if isinstance(thing, FunctionType) and thing.__name__ == "<lambda>":
        return ast.unparse(_lambda(thing.__code__))
    return _bare(textwrap.dedent(inspect.getsource(thing)))


def _lambda(code: CodeType) -> ast.Lambda:
    """A lambda's place in its file: the one whose body lies where its code says. Byte
    code differs between Pythons.
    """
    places = set(code.co_positions())
    for node in ast.walk(ast.parse(Path(code.co_filename).read_text("utf-8"))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body = node.body
            if (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in places:
                return node
    raise OSError(f"{code.co_filename}, line {code.co_firstlineno} has no such lambda")


def _bare(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _functions(thing: Any) -> Iterator[FunctionType]:
    if isinstance(thing, FunctionType):
        yield thing
    for value in vars(thing).values() if isinstance(thing, type) else ():
        member = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        if (
            isinstance(member, FunctionType) and member.__module__ != "dataclasses"
        ):  # __replace__, since Python 3.13
            yield member


def _codes(thing: Any) -> Iterator[CodeType]:
    """Its code objects and those of the functions written inside."""
    open_ = [function.__code__ for function in _functions(thing)]
    while open_:
        code = open_.pop()
        yield code
        open_ += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _used(thing: Any, inside: Callable[[str | None], bool]) -> Iterator[tuple[str, Any]]:
    """The names of its module, and of modules of the same paper, that a function or a
    class reads: (name, value).
    """
    names = {name for code in _codes(thing) for name in code.co_names} - {
        "__file__"
    }  # where the repository lies
    names |= {base.__name__ for base in getattr(thing, "__bases__", ())}
    home = sys.modules[thing.__module__]
    for name in sorted(names & vars(home).keys()):
        value = vars(home)[name]
        if isinstance(value, ModuleType) and inside(value.__name__):
            yield from (
                (f"{value.__name__}.{n}", vars(value)[n])
                for n in sorted(names & vars(value).keys())
            )
        else:
            yield f"{home.__name__}.{name}", value
