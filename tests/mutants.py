"""Would a test notice? Changes lines of the library one at a time and runs
the tests of their module.

    python tests/mutants.py 40 --seed 1               # 40 random changes anywhere in jaxrules/
    python tests/mutants.py 20 --only solvers/linear  # in files whose path contains these words

A change that no test notices survives: a test is missing, or the line has no effect. A change that
times out is counted separately, because it may loop forever or the machine may be slow. Each change
is tried in a copy of the repository, so the checkout stays as it is. The tests of a module are
those named after it, then those that import it or a module that does, of the full tier. Only some
are run: a survivor may be noticed by others.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_FILES = 4
"""Test files that are run for a change."""
SECONDS = 300
"""For the tests of a change."""

OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one change; None if there is nothing to change."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [OPPOSITES[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(OPPOSITES[type(node.op)](), node.values)
    if isinstance(node, ast.BinOp) and type(node.op) in OPPOSITES:
        return ast.BinOp(node.left, OPPOSITES[type(node.op)](), node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        return node.operand
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ast.Constant(node.value + 1)
    return None


def expressions(tree: ast.Module) -> Iterator[ast.expr]:
    """Those that run: not annotations, not decorators."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            skipped.update(map(id, ast.walk(part) if part is not None else ()))
        for decorator in getattr(node, "decorator_list", ()):
            skipped.update(map(id, ast.walk(decorator)))
    yield from (
        node for node in ast.walk(tree) if isinstance(node, ast.expr) and id(node) not in skipped
    )


def mutants(path: Path) -> Iterator[tuple[str, int, str]]:
    """For each possible change: a description, the line's number (from 0) and the changed line."""
    source = path.read_text("utf-8")
    lines = source.splitlines(keepends=True)
    for node in expressions(ast.parse(source)):
        if (new := changed(node)) is None or node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1].encode()
        start, end = node.col_offset, node.end_col_offset
        text = f"({ast.unparse(new)})"
        told = f"{path.relative_to(ROOT)}:{node.lineno}: {line[start:end].decode()} -> {text}"
        yield told, node.lineno - 1, (line[:start] + text.encode() + line[end:]).decode()


@functools.cache
def imported(path: Path, at_once: bool = False) -> frozenset[str]:
    """The dotted names that a file imports; with `at_once`, not those inside functions."""
    names: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names)


def name_of(module: Path) -> str:
    return ".".join(module.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def using(module: Path, files: Iterable[Path]) -> list[Path]:
    """The files that import a module."""
    return [path for path in files if name_of(module) in imported(path)]


@functools.cache
def compiled() -> frozenset[Path]:
    """The modules from which numba compiles functions: those that import numba or our helpers for
    it, and all that these import.

    The cache of numba checks the file of a function, but not the files of the functions that it
    calls.
    """
    library = {name_of(path): path for path in (ROOT / "jaxrules").rglob("*.py")}
    waiting = [
        path
        for path in library.values()
        if any(re.search(r"^numba$|\.compiled$", name) for name in imported(path, at_once=True))
    ]
    for one in waiting:
        names = imported(one, at_once=True) & library.keys()
        waiting += [library[name] for name in sorted(names) if library[name] not in waiting]
    return frozenset(waiting)


def tests_of(module: Path) -> list[str]:
    """The test files named after a module or its folder, and those that import it or a module that
    does.
    """
    tests = sorted((ROOT / "tests").glob("test_*.py"), key=lambda path: path.stat().st_size)
    library = sorted((ROOT / "jaxrules").rglob("*.py"))
    found: list[Path] = []
    waiting = [module]
    for one in waiting:
        place = str(one.relative_to(ROOT / "jaxrules"))
        named = [
            path
            for path in tests
            if one.stem in path.stem or path.stem.removeprefix("test_") in place
        ]
        found = list(dict.fromkeys(found + named + using(one, tests)))
        if len(found) >= 2 or len(waiting) > 20:
            break
        waiting += [
            path for path in using(one, library) if path not in waiting and path.stem != "__init__"
        ]
    return [f"tests/{path.name}" for path in found[:MOST_FILES]]


def outcome(folder: Path, module: Path, number: int, line: str) -> str:
    """What the tests of a module say of this line: "noticed by TEST", "timed out" or "SURVIVED"."""
    copy = folder / "copy"
    place = copy / module.relative_to(ROOT)
    lines = module.read_text("utf-8").splitlines(keepends=True)
    place.write_text("".join([*lines[:number], line, *lines[number + 1 :]]), "utf-8")
    caches = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),  # by program
        "NUMBA_CACHE_DIR": str(folder / "numba"),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-m", "not slow"]
    command += tests_of(module)
    with tempfile.TemporaryDirectory() as fresh:
        if module in compiled():
            caches["NUMBA_CACHE_DIR"] = fresh
        try:
            done = subprocess.run(
                command, cwd=copy, env=os.environ | caches, timeout=SECONDS,
                capture_output=True, check=False, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            shutil.copy2(module, place)  # with its time: caches stay valid
    if done.returncode == 0:
        return "SURVIVED"
    found = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return f"noticed by {found[1] if found else 'pytest itself'}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("number", type=int, help="changes to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files whose path contains this")
    options = parser.parse_args()
    modules = [
        path
        for path in sorted((ROOT / "jaxrules").rglob("*.py"))
        if options.only in str(path.relative_to(ROOT))
    ]
    every = [(module, *mutant) for module in modules for mutant in mutants(module)]
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        left_out = shutil.ignore_patterns(".git", "results", ".*_cache", "__pycache__")
        shutil.copytree(ROOT, folder / "copy", ignore=left_out)
        for k, (module, told, number, line) in enumerate(chosen, start=1):
            said = outcome(folder, module, number, line)
            counts[said.split(" by ")[0]] += 1
            print(f"{k} of {len(chosen)}, {said}: {told}", flush=True)
    print(f"{dict(counts)}, of {len(every)} possible changes")


if __name__ == "__main__":
    main()
