"""MkDocs hook: runs notebooks of examples/ and adds them to the site with what they print and draw;
adds the other examples as they are, and a report.

A notebook is a script whose cells begin with ``# %%`` (text with ``# %% [markdown]``), as jupytext
and editors read it. The last expression of a cell is shown as a notebook shows it: as HTML if it
has some. A cell that fails ends the build.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import jaxrules as jr

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = (
    "tour",
    "scorecard_with_an_alarm_rate",
    "classes_with_text_and_gaps",
    "own_loss_and_rules",
    "how_certain_is_optimality",
    "pictures",
)
STYLE = {"font.size": 9, "svg.hashsalt": "jaxrules", "figure.figsize": (6.4, 3.6)}


LIVE = "report-of-breast-cancer.html"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in NOTEBOOKS:
        text, pictures = executed(name, (EXAMPLES / f"{name}.py").read_text())
        files.append(File.generated(config, f"notebooks/{name}.md", content=text))
        for number, picture in enumerate(pictures):
            place = f"notebooks/{name}_{number}.svg"
            files.append(File.generated(config, place, content=picture))
    for path in sorted(EXAMPLES.glob("*.py")):
        if path.stem not in NOTEBOOKS:
            page = f"# {path.stem}\n\n```python\n{path.read_text().strip()}\n```\n"
            files.append(File.generated(config, f"examples/{path.name[:-3]}.md", content=page))
    files.append(File.generated(config, LIVE, content=live_report()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to scripts, which are right in the repository, lead to their pages; the page about
    reports links the report.
    """
    if page.file.src_uri == "examples.md":
        return re.sub(
            r"\(\.\./examples/(\w+)\.py\)", lambda found: f"({_page_of(found[1])})", markdown
        )
    return markdown.replace(
        "<!-- live report -->", f"**[Open a report]({LIVE})** made by this code."
    )


def _page_of(name: str) -> str:
    return f"{'notebooks' if name in NOTEBOOKS else 'examples'}/{name}.md"


@functools.cache
def live_report() -> str:
    """A report for readers of the site."""
    data = jr.datasets.load("breast_cancer")
    train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
    fits = jr.boosting.path(train.X, train.y, max_rules=5)
    ids = [f"patient {k + 1}" for k in range(test.X.n_rows)]
    use = "An example for readers of the documentation. Not for patients."
    return jr.report(fits, test.X, test.y, None, ids=ids, intended_use=use).html


@functools.cache  # `mkdocs serve` builds again and again
def executed(name: str, script: str) -> tuple[str, list[str]]:
    """The page of a notebook in Markdown, and its pictures as SVG."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts, pictures = [], []
    for kind, cell in cells(script):
        if kind == "markdown":
            parts.append(cell)
            continue
        parts.append(f"```python\n{cell}\n```")
        with plt.rc_context(STYLE):
            parts += run(cell, f"{name}.py", names)
            for figure in map(plt.figure, plt.get_fignums()):
                parts.append(f"![Plot of the cell above]({name}_{len(pictures)}.svg)")
                pictures.append(_svg(figure))
            plt.close("all")
    parts.append(f"*This page is `examples/{name}.py`, run when the site was built.*")
    return "\n\n".join(parts) + "\n", pictures


def cells(script: str) -> list[tuple[str, str]]:
    """The cells of a script: "markdown" or "code", and their text."""
    found = []
    for kind, body in re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", script, re.M | re.S):
        text = re.sub(r"^# ?", "", body, flags=re.M) if kind else body
        found.append(("markdown" if kind else "code", text.strip()))
    return found


def run(cell: str, file: str, names: dict[str, Any]) -> list[str]:
    """What a cell prints, and how its last expression is shown, in Markdown."""
    tree, printed = ast.parse(cell), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        value = eval(compile(ast.Expression(last.value), file, "eval"), names) if last else None
    shown = _fenced(printed.getvalue())
    if hasattr(value, "_repr_html_"):
        shown.append(f'<div class="cell-output">{_one_block(value._repr_html_())}</div>')
    elif value is not None and not isinstance(value, (plt.Artist, tuple, list)):
        shown += _fenced(repr(value))
    return shown


def _fenced(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return ["```output\n" + "\n".join(lines) + "\n```"] if lines else []


def _one_block(markup: str) -> str:
    """HTML that Markdown leaves alone: without empty lines."""
    return re.sub(r"\n\s*\n", "\n", markup)


def _svg(figure: Any) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    return out.getvalue()
