"""Would a test notice? Changes lines of the library one at a time and runs
the tests of their module.

    python tests/mutants.py 40 --seed 1               # 40 random changes anywhere in jaxrules/
    python tests/mutants.py 20 --only solvers/linear  # in files whose path contains these words

A change that no test notices survives and is printed: a test is missing, or the line says nothing.
Each one is tried in a copy of the repository, so the checkout stays as it is. The tests of a module
are those named after it, then those that import it or a module that does.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_FILES = 4
"""Test files that are run for a change."""
SECONDS = 900
"""A change may end in a loop; then it is noticed."""

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
    """The node with one thing changed; None where nothing is to be changed."""
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


def mutants(path: Path) -> Iterator[tuple[str, str]]:
    """A line of words and the source of the file, for each change that it allows."""
    source = path.read_text("utf-8")
    for node in expressions(ast.parse(source)):
        if (new := changed(node)) is None or node.lineno != node.end_lineno:
            continue
        lines = source.splitlines(keepends=True)
        line = lines[node.lineno - 1].encode()
        start, end = node.col_offset, node.end_col_offset
        text = f"({ast.unparse(new)})"
        lines[node.lineno - 1] = (line[:start] + text.encode() + line[end:]).decode()
        told = f"{path.relative_to(ROOT)}:{node.lineno}: {line[start:end].decode()} -> {text}"
        yield told, "".join(lines)


def using(module: Path, files: list[Path]) -> list[Path]:
    """The files that import a module."""
    *above, stem = module.relative_to(ROOT).with_suffix("").parts
    package = r"\.".join(above)
    found = re.compile(rf"{package}\.{stem}\b|from {package} import [^\n]*\b{stem}\b")
    return [path for path in files if found.search(path.read_text("utf-8"))]


def tests_of(module: Path) -> list[str]:
    """The test files named after a module, those that import it or a module that does,
    those named after its folder.
    """
    tests = sorted((ROOT / "tests").glob("test_*.py"), key=lambda path: path.stat().st_size)
    library = sorted((ROOT / "jaxrules").rglob("*.py"))
    found: list[Path] = []
    waiting = [module]
    for one in waiting:
        named = [
            path for path in tests if one.stem in path.stem and "reproductions" not in path.stem
        ]
        found = list(dict.fromkeys(found + named + using(one, tests)))
        if len(found) >= 2 or len(waiting) > 20:
            break
        waiting += [
            path for path in using(one, library) if path not in waiting and path.stem != "__init__"
        ]
    found += [path for path in tests if module.parent.name in path.stem and path not in found]
    return [f"tests/{path.name}" for path in found[:MOST_FILES]]


def survives(copy: Path, module: Path, source: str) -> bool:
    """Whether the tests of a module pass with this source."""
    place = copy / module.relative_to(ROOT)
    before = place.read_text("utf-8")
    place.write_text(source, "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", *tests_of(module)]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, check=False, timeout=SECONDS)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        place.write_text(before, "utf-8")


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
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "results", ".*_cache"))
        for k, (module, told, source) in enumerate(chosen, start=1):
            survived = survives(copy, module, source)
            alive += survived
            print(
                f"{k} of {len(chosen)}, {'SURVIVED' if survived else 'noticed'}: {told}", flush=True
            )
    print(f"{alive} of {len(chosen)} changes survived, of {len(every)} possible ones")


if __name__ == "__main__":
    main()
