"""Every Python block of the README and of the site runs, the blocks of a page one after the other,
and prints what the page shows; so do the examples of the docstrings.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import jaxrules as jr
import pages
from jaxrules import boosting, estimators

ROOT = pages.ROOT
WITH_EXAMPLES = [p for p in sorted((ROOT / "jaxrules").rglob("*.py")) if ">>> " in p.read_text()]


@pytest.mark.parametrize(
    "page", [p for p in pages.PAGES if pages.blocks(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_block_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = [
        f"{block.code}\nprints\n\n{told}\nthe page shows\n\n{block.shown}"
        for block, told in pages.printed(page)
        if not pages.agrees(block.shown, told)
    ]
    assert not wrong, "\n".join([*wrong, f"python tests/pages.py {page.relative_to(ROOT)}"])


@pytest.mark.parametrize(
    ("shown", "told", "agree"),
    [
        (None, "", True),
        (None, "a\n", False),
        ("a  1.00\n", "a 1.01\n", True),
        ("a 1.00\n", "a 1.05\n", False),
        ("a +1\n", "a -1\n", False),
        ("first\n...\nlast 3\n", "first\n1\n2\nlast 3\n", True),
        ("first\n...\nlast 3\n", "first\nlast 3\n", True),
        ("first\n...\nlast 3\n", "first\n1\n2\nlast\n", False),
        ("in ... s, 5 rules\n", "in 0.3 s, 5 rules\n", True),
        ("in ... s, 5 rules\n", "in 0.3 s, 9 rules\n", False),
        ("failed in 3 folds\n", "best\n", False),
    ],
)
def test_what_is_printed_is_compared(shown: str | None, told: str, agree: bool) -> None:
    assert pages.agrees(shown, told) is agree


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_docstrings(file: Path) -> None:
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted == file.read_text().count(">>> ")
    assert not found.failed


@pytest.mark.parametrize(
    "name",
    ["boosting", "drnet", "exact_list", "glrm", "lire", "lltboost", "ltrnet", "paths",
     "regression_list", "rulefit", "ssrl"],
)  # fmt: skip
def test_the_fit_of_every_learner_has_an_example(name: str) -> None:
    module = getattr(jr, name)
    assert ">>> " in f"{module.__doc__}{module.fit.__doc__}"


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    hook = (ROOT / "docs" / "notebooks.py").read_text()
    names = re.search(r"NOTEBOOKS = \((.*?)\)", hook, re.DOTALL)
    assert names is not None
    made = {f"notebooks/{name}.md" for name in re.findall(r'"(\w+)"', names[1])}
    assert len(made) == 6
    assert listed == pages | made


def test_the_reference_shows_options() -> None:
    """The page is made of the source, to which docs/options_in_signatures.py adds the options."""
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(ROOT / "docs" / "options_in_signatures.py"))
    package = griffe.load(
        "jaxrules", extensions=extensions, search_paths=[ROOT], docstring_parser="google"
    )
    shown = {
        "ensembles.boosting.fit": boosting.fit,
        "ensembles.boosting.cross_validate": boosting.cross_validate,
        "estimators.RuleBoostingClassifier": estimators.RuleBoostingClassifier,
    }
    for name, function in shown.items():
        page = package[name]
        expected = inspect.signature(function).parameters
        listed = {one.name: one.default for one in page.parameters if one.name != "self"}
        assert list(listed) == list(expected), name
        assert listed["max_rules"] == repr(expected["max_rules"].default)
        assert "options" not in listed
        sections = {section.kind.value: section.value for section in page.docstring.parsed}
        documented = {entry.name: entry for entry in sections["parameters"]}
        assert set(expected) - {"X", "y", "sample_weight"} <= documented.keys(), name
