"""Text and tables for print and notebooks: faithful numbers, conditions, sums, HTML.

Nothing here depends on rules or models.
"""

from __future__ import annotations

import contextlib
import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def plain(name: object) -> str:
    """A name for printing: control characters are escaped, so that no terminal obeys them."""
    text = str(name)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def name_text(name: str) -> str:
    """The name of a column in a rule: in quotes if it could be read as a number or as part of the
    rule.
    """
    words = _NAME.fullmatch(name) and not _PART_OF_RULE.search(f" {name} ")
    return name if words and name.isprintable() else repr(name)


_NAME = re.compile(r"[^\s,{}&'\"<>=!([+-](?:[^,{}&'\"<>=!]*[^\s,{}&'\"<>=!])?")
_PART_OF_RULE = re.compile(
    r"^ (?:[\d.]+(?:e[-+]?\d+)?|nan|inf|infinity) | (?:and|or|is|not|any|never|always|[-+]) "
    r"|^ (?:number|rank)\(",
    re.IGNORECASE,
)


def number(value: float, digits: int = 5) -> str:
    """A number for display: whole numbers in full, others with at least `digits` digits; only 0
    shows as 0.
    """
    if not math.isfinite(value):
        return str(float(value))
    size = abs(value)
    if size < 1e15 and value == round(value):
        return str(round(value))
    if 1 <= size < 1e15:
        text = f"{value:.{max(digits - len(str(int(size))), 1)}f}"
    elif 1e-4 <= size < 1:
        text = f"{value:.{digits}g}"
    else:
        # With an exponent, whose zeros must stay.
        return f"{value:.{digits}g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortest_number(near: float, low: float, high: float, low_belongs: bool = False) -> float:
    """The number nearest to `near` with the fewest decimals in (low, high], or [low, high) if
    `low_belongs`.

    Only `near` itself may be an end of the interval, so that a threshold stays between the values
    that it separates. A `near` outside the interval is first moved into it. The ends may be
    infinite.
    """

    def inside(number: float) -> bool:
        return (low <= number < high) if low_belongs else (low < number <= high)

    if not inside(near):
        near = high if math.isinf(low) else low + (high - low) / 2
        # Between neighbouring ends, or towards infinity, nothing lies halfway: the number next to
        # `low`.
        near = near if low < near < math.inf else min(high, math.nextafter(low, math.inf))
    largest = max(abs(end) for end in (near, low, high) if math.isfinite(end))
    # From the first digit on: negative decimals round to tens and hundreds.
    first = -math.floor(math.log10(largest)) if largest > 0 else 0
    for decimals in range(first, first + _ENOUGH_DECIMALS):
        with contextlib.suppress(OverflowError):  # beyond the largest number
            nearest = round(near, decimals) + 0.0
            # The nearest number of so many decimals may lie outside of the interval, and one beside
            # it inside, at least half a step from `near`.
            for step in (0, -1, 1) if 10.0**-decimals < 2.5 * (high - low) else (0,):
                rounded = round(nearest + step * 10.0**-decimals, decimals) + 0.0
                if rounded == near or low < rounded < high:
                    return rounded
    return near


_EVERY_DIGIT = 17
"""Significant digits that distinguish all float64 numbers."""
_SHORT = 15
"""Significant digits of a decimal number that a float64 keeps; further digits are rounding."""
_ENOUGH_DECIMALS = 25
"""Digits after the first that distinguish neighbouring float64 numbers."""


def interval_text(
    subject: str, lower: float, upper: float, lower_closed: bool, upper_closed: bool, missing: bool,
    absent: str = "missing",
) -> str:  # fmt: skip
    """A nonempty interval, e.g. ``31 < Age <= 45``; `missing`: whether a missing value belongs to
    it, which is called `absent`.
    """
    subject, low, high = plain(subject), _in_full(lower), _in_full(upper)
    if lower == upper:
        text = f"{subject} == {low}"
    elif math.isinf(lower) and math.isinf(upper):
        present = "is not missing" if absent == "missing" else "is a number"
        return f"any {subject}" if missing else f"{subject} {present}"
    elif math.isinf(lower):
        text = f"{subject} {'<=' if upper_closed else '<'} {high}"
    elif math.isinf(upper):
        text = f"{subject} {'>=' if lower_closed else '>'} {low}"
    else:
        first, second = "<=" if lower_closed else "<", "<=" if upper_closed else "<"
        text = f"{low} {first} {subject} {second} {high}"
    return f"({text} or {absent})" if missing else text


def _in_full(value: float) -> str:
    """A threshold, or a weight of a direction: the fewest digits, at least five, that distinguish
    it from all other numbers, so that the text decides every row as the model does.
    """
    texts = (number(value, digits) for digits in range(5, _EVERY_DIGIT + 1))
    return next(text for text in texts if float(text) == value)


def set_text(
    name: str, categories: Sequence[str], allowed: Iterable[int], unseen: bool, missing: bool
) -> str:
    """A set of categories, e.g. ``Sex == Male``, ``Job not in {Sales, Tech}``; `unseen`: whether
    others belong.
    """
    name = plain(name)
    chosen = set(range(len(categories))).difference(allowed) if unseen else allowed
    words = [_category(categories[code]) for code in sorted(chosen)]
    listed = words[0] if len(words) == 1 else "{" + ", ".join(words) + "}"
    if unseen:  # a negated condition: a missing value satisfies it unless it is listed
        if not words:
            return f"any {name}" if missing else f"{name} is not missing"
        text = f"{name} != {listed}" if len(words) == 1 else f"{name} not in {listed}"
        return text if missing else f"{text} and not missing"
    if not words:
        return f"{name} is missing" if missing else f"{name} never"
    text = f"{name} == {listed}" if len(words) == 1 else f"{name} in {listed}"
    return f"({text} or missing)" if missing else text


def special_text(
    name: str, values: Sequence[str], allowed: Iterable[int], missing: bool | None
) -> str:
    """A set of special values and of all numbers, whose code is the last, e.g. ``x == -7``,
    ``x not in {-8, -9}``, ``x is special``; `missing`: None if missing values are refused.
    """
    every, codes, number = set(range(len(values))), set(allowed), len(values)
    if codes in (every, {number}):
        text = f"{plain(name)} is {'special' if codes == every else 'a number'}"
        return f"({text} or missing)" if missing else text
    # A set with the numbers is written by the special values that it excludes. Where missing values
    # are refused, the answer is the one that adds no words.
    numbers = number in codes
    return set_text(name, values, codes & every, numbers, numbers if missing is None else missing)


def number_or_special_text(
    interval: str, covered: Iterable[int], name: str, values: Sequence[str], allowed: Iterable[int],
    missing: bool,
) -> str:  # fmt: skip
    """Numbers of an interval, some special values, and perhaps missing ones, e.g.
    ``(x > 1 or x == -8)``; `covered`: the special values that, as numbers, lie in the interval.
    """
    every, codes = set(range(len(values))), set(allowed)
    # Without these words, a special value inside the interval would seem to satisfy it.
    parts = [f"({interval} and not special)" if set(covered) - codes else interval]
    if codes == every:
        parts.append("special")
    elif codes:
        parts.append(set_text(name, values, codes, False, False))
    parts += ["missing"] * missing
    return f"({' or '.join(parts)})" if len(parts) > 1 else parts[0]


def levels_text(
    name: str, levels: Sequence[str | bool], places: Sequence[int], missing: bool
) -> str:
    """A run of levels in their order, e.g. ``flag``, ``not flag``, ``size <= M``; `missing`:
    whether a missing value belongs to it.
    """
    name = plain(name)
    if not places:
        return f"{name} is missing" if missing else f"{name} never"
    if len(places) == len(levels):
        return f"any {name}" if missing else f"{name} is not missing"
    first, last = (str(levels[places[k]]) for k in (0, -1))
    if levels[0] is False:
        text = name if places[0] else f"not {name}"
    elif len(places) == 1:
        text = f"{name} == {_category(first)}"
    elif not places[0]:
        text = f"{name} <= {_category(last)}"
    elif places[-1] == len(levels) - 1:
        text = f"{name} >= {_category(first)}"
    else:
        text = f"{_category(first)} <= {name} <= {_category(last)}"
    return f"({text} or missing)" if missing else text


def _category(name: str) -> str:
    """A category, in quotes if it could be read as part of the rule."""
    return name if _PLAIN.fullmatch(name) and name.isprintable() else repr(name)


_PLAIN = re.compile(r"[^\s,{}&'\"()](?:[^,{}&'\"()\n]*[^\s,{}&'\"()])?")


def difference_text(name: str, origin: float) -> str:
    """A number measured from another one, in full, e.g. ``(year - 2000)``; the name if that is
    0.
    """
    if origin == 0:
        return name
    return f"({name} {'-' if origin > 0 else '+'} {_in_full(abs(origin))})"


def sum_text(terms: Iterable[tuple[float, str]]) -> str:
    """A weighted sum of named terms, weights in full, e.g. ``2.81 variance - skewness``."""
    text = ""
    for weight, name in terms:
        sign = "-" if weight < 0 else "+" if text else ""
        size = "" if abs(weight) == 1 else f"{_in_full(abs(weight))} "
        text += f" {sign} {size}{plain(name)}" if text else f"{sign}{size}{plain(name)}"
    return text


_SMALL = 5e-3
"""Smaller weights would lose all digits but one; they show three after the first."""


def largest_of(*summands: Any) -> float:
    """The largest absolute value of numbers that are added up."""
    return max(float(np.abs(part).max(initial=0.0)) for part in map(np.asarray, summands))


def weight_text(weights: Any, largest: float = 0.0, digits: int = 4) -> str:
    """One weight, or one per output; only 0 shows as 0.

    Args:
        weights: of a sum, all of whose numbers end at one decimal place, so that they add up as
            printed; numbers below .005 have more.
        largest: of the numbers of that sum.
        digits: after the decimal point, as far as float64 has them.
    """
    return "  ".join(_weight(float(weight), largest, digits) for weight in np.ravel(weights))


def _weight(weight: float, largest: float, digits: int) -> str:
    size = abs(weight)
    if size == 0 or not math.isfinite(weight):
        return f"{weight:+.{digits}f}"
    # All numbers of a sum end where the significant digits of the largest do, so that they add up
    # as printed.
    decimals = min(digits, _SHORT - 1 - _exponent(max(size, largest)))
    text = f"{weight:+.{max(decimals, 0)}f}"
    if size >= _SMALL and decimals >= 0 and float(text):
        return text
    # The same last decimal place in exponent form, but at least three digits after the first.
    return f"{weight:+.{max(decimals + _exponent(size), 3)}e}"


def _exponent(size: float) -> int:
    """The power of ten of the first digit."""
    return math.floor(math.log10(size))


def cell_text(weight: float, largest: float = 0.0, digits: int = 2) -> str:
    """One weight in a table of several per rule, as in `weight_text`; a dot for 0."""
    if weight == 0:
        return "."
    short = abs(weight) < _SMALL and digits == 2
    return f"{weight:+.0e}" if short else weight_text(weight, largest, digits)


def factor_digits(lower: float, upper: float) -> int:
    """The additional decimals of a factor of numbers between these ends, so that the product has
    the decimals of a weight; 0 if there is no end.
    """
    size = max(abs(lower), abs(upper))
    return math.ceil(math.log10(size)) if 1 < size < math.inf else 0


def share_text(share: float) -> str:
    """A probability with three digits; only 0 and 1 show as 0 and 1."""
    if 0 < share < 0.001:
        return "<0.001"
    if 0.999 < share < 1:
        return ">0.999"
    return f"{share:.3f}"


def counted(n: int, thing: str) -> str:
    """A number of things: ``1 rule``, ``2 rules``."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def size_text(rules: int, linear_terms: int) -> str:
    """The size of an ensemble: ``5 rules``, ``5 rules and 3 linear terms``."""
    text = counted(rules, "rule")
    return f"{text} and {counted(linear_terms, 'linear term')}" if linear_terms else text


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells; all but the last, a text, are flush right."""
    widths = [max(map(len, cells)) for cells in zip(*(row[:-1] for row in rows), strict=True)]
    return [
        "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=False))
        + (f"  {row[-1]}" if row[-1] else "")
        for row in rows
    ]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of cells, the columns flush left."""
    texts = [[plain(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*texts, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in texts
    )
    return "\n".join(line.rstrip() for line in lines)


class Tabulated:
    """A result that prints, and shows in notebooks, as a table under a caption."""

    def tabulated(self) -> tuple[str, Sequence[str], Sequence[Sequence[str]]]:
        """The caption, the heading and the rows."""
        raise NotImplementedError  # every result has its own

    def __str__(self) -> str:
        caption, header, rows = self.tabulated()
        return f"{caption}\n{text_table(header, rows)}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(*self.tabulated())


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain HTML table; every text is escaped."""

    def line(tag: str, cells: Sequence[str]) -> str:
        texts = (html.escape(plain(cell)) for cell in cells)
        return "".join(f"<{tag} style='text-align:left'>{text}</{tag}>" for text in texts)

    title, head = html.escape(plain(title)), f"<tr>{line('th', header)}</tr>"
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    return f"<div><p>{title}</p>{table}</div>"


_SYMBOLS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "<": "$<$",
    ">": "$>$",
    "<=": r"$\le$",
    ">=": r"$\ge$",
    "!=": r"$\ne$",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


def latex(text: str) -> str:
    """A text escaped for LaTeX: comparisons as symbols, accents as part of their letters."""
    text = unicodedata.normalize("NFC", plain(text))
    text = re.sub(r'<=|>=|!=|[\\~^|"<>&%$#_{}]', lambda found: _SYMBOLS[found[0]], text)
    apart = r"(?<=[-'`])(?=[-'`])|(?<=[,?!])(?=[,`])"  # two dashes would print as one longer dash
    text = re.sub(apart, r"\\mbox{}", text)
    return re.sub("(?<= ) ", r"\\ ", text)


def latex_number(number: str) -> str:
    """A number in text form as LaTeX, with its exponent as a power of ten."""
    mantissa, separator, exponent = number.partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if separator else f"${number}$"


def latex_table(columns: str, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A tabular of LaTeX texts; no heading line if `heading` is empty.

    A star or bracket at the start of a row would be an argument of the end of the row before.
    """
    lines = [re.sub(r"^(?=[\[*])", "{}", " & ".join(cells)) + r" \\" for cells in rows]
    above = [" & ".join(heading) + r" \\", r"\hline"] if heading else []
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *above, *lines, r"\end{tabular}"])
