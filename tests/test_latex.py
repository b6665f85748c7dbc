"""What `to_latex` writes, compiled by TeX and read back from the PDF; skipped without TeX."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import jaxrules as jr
from jaxrules import Condition as C
from jaxrules.tools import display

PLAIN = (
    r"a\b{c}_d^e~f$g#h%i&j", '"a" "b', "'it''s'", "``x''", "a--b---c", ",,?`!`", "a|b", "< <<>>",
    "*", "[0.5]", r"\input{x}", "%", "^^41", "- 1", "a  b", "line\nbreak\ttab\0", "\ud800",
    "caf\u00e9", "cafe\u0301", "a\u200bb",
)  # fmt: skip
ANY = ("年齢 收入 나이", "😀 rich", "q\u0303 x\u0323\u0302", "Ωμέγα", "возраст")
T1 = "\\usepackage[T1]{fontenc}\n\\input{glyphtounicode}\\pdfgentounicode=1\n"
FONTS = r"""\usepackage{fontspec}
\directlua{luaotfload.add_fallback("rest", {"NotoSansCJKSC:", "NotoColorEmoji:mode=harf;"})}
\setmainfont{DejaVu Sans}[RawFeature={fallback=rest}]
"""
ENGINES = {
    "pdflatex": (T1, PLAIN, ()),
    "xelatex": ("\\usepackage{fontspec}\n", PLAIN, ()),
    "lualatex": (FONTS, PLAIN + ANY, ("DejaVu Sans", "Noto Sans CJK SC", "Noto Color Emoji")),
}


def models(name: str, label: str) -> list[object]:
    """A model of every kind with this name of a column and of the target, and this label."""
    features = (jr.Feature(name), jr.Feature("k", (label, "b")))
    two, three = (
        jr.Conjunctions.build(
            jr.Schema(features, classes=classes, target=name),
            [[C.above(0, 1.0), C.one_of(1, [0])], [C.one_of(1, [1])]],
        )
        for classes in ((label, "zz"), ("aa", label, "zz"))
    )
    weights = np.array([[1.5], [-2e-9]])
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    return [
        jr.RuleEnsemble(two, weights, np.zeros(1), link="logistic"),
        jr.RuleEnsemble(
            three, np.hstack([weights, -weights, 0 * weights]), np.zeros(3), link="softmax"
        ),
        jr.RuleList(two, np.array([0, 1, 0], np.int32), np.full((3, 2), 0.5)),
        jr.paths.fit({name: X[:, 0], "k": X[:, 1]}, y, steps=2).model,
    ]


def compiled(engine: str, preamble: str, tables: list[str], folder: Path) -> str:
    """The text of the PDF that a TeX engine makes of the tables, one on each page."""
    page = "\\usepackage[paperwidth=200cm,paperheight=20cm,margin=1cm]{geometry}\n"
    body = "\n\\newpage\n".join(tables)
    source = f"\\documentclass{{article}}\n{preamble}{page}\\begin{{document}}\n{body}\n"
    (folder / "t.tex").write_text(source + "\\end{document}\n", "utf-8")
    call = [engine, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(call, cwd=folder, capture_output=True, timeout=300, check=False)
    log = (folder / "t.log").read_text("utf-8", errors="replace")
    assert done.returncode == 0, re.findall(r"^!.*\n(?:.*\n){3}", log, re.M)
    assert "Missing character" not in log, re.findall("Missing character.*", log)
    subprocess.run(["pdftotext", "-layout", "t.pdf"], cwd=folder, check=True)
    return (folder / "t.txt").read_text("utf-8")


def squeezed(text: str) -> str:
    """A text in one form, without its spaces, whichever signs a font has for quotes."""
    text = unicodedata.normalize("NFC", text).translate(str.maketrans("‘’”", "`'\""))
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("engine", ENGINES)
def test_tex_prints_the_names(engine: str, tmp_path: Path) -> None:
    preamble, names, fonts = ENGINES[engine]
    if not (shutil.which(engine) and shutil.which("pdftotext")):
        pytest.skip(f"needs {engine} and pdftotext")
    installed = fonts and subprocess.run(["fc-list"], capture_output=True, check=True).stdout
    if not all(font.encode() in installed for font in fonts):
        pytest.skip(f"needs the fonts {', '.join(fonts)}")
    tables = [jr.to_latex(model) for name in names for model in models(name, name)]
    pages = compiled(engine, preamble, tables, tmp_path).split("\f")
    shown = [squeezed(page) for page in pages]
    for place, name in enumerate(names):
        expected = squeezed(display.plain(name))
        for page in shown[4 * place : 4 * place + 4]:
            assert expected in page, (name, page)


def test_no_row_starts_with_an_argument_of_the_row_before() -> None:
    table = display.latex_table("ll", ("a", "b"), [("[1]", "2"), ("*", "4")])
    assert table.splitlines()[3:5] == [r"{}[1] & 2 \\", r"{}* & 4 \\"]
