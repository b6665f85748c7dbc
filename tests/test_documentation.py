"""Every Python block of the README and of the site runs, the blocks of a
page one after the other.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from jaxrules import boosting, estimators

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_block_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    assert "failed in" not in capsys.readouterr().out, (
        "a comparison whose methods fail is no example"
    )


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}


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
        assert listed["max_rules"] == str(expected["max_rules"].default)
        assert "options" not in listed
        sections = {section.kind.value: section.value for section in page.docstring.parsed}
        documented = {entry.name: entry for entry in sections["parameters"]}
        assert set(expected) - {"X", "y", "sample_weight"} <= documented.keys(), name
