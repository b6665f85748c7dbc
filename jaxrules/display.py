"""Models in words: the text that print shows and the HTML that notebooks show."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxrules.conjunctions import Condition
from jaxrules.table import Feature, Label, Schema

if TYPE_CHECKING:
    from jaxrules.models import Explanation, RuleEnsemble, RuleList


def number(value: float, digits: int = 5) -> str:
    """A number to read: whole numbers in full, others with at least `digits` digits, never a false 0."""
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
        return f"{value:.{digits}g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def condition_text(condition: Condition, feature: Feature) -> str:
    """One condition, e.g. ``31 < Age <= 45``, ``Sex == Male``, ``Job not in {Sales, Tech}``."""
    if feature.categories is not None:
        return _category_text(condition, feature.name, feature.categories)
    name, lower, upper = feature.name, condition.lower, condition.upper
    if condition.admits_no_number:
        return f"{name} is missing" if condition.missing else f"{name} never"
    low, high = _distinct(lower, upper)
    if lower == upper:
        text = f"{name} == {low}"
    elif math.isinf(lower) and math.isinf(upper):
        return f"any {name}" if condition.missing else f"{name} is not missing"
    elif math.isinf(lower):
        text = f"{name} {'<=' if condition.upper_closed else '<'} {high}"
    elif math.isinf(upper):
        text = f"{name} {'>=' if condition.lower_closed else '>'} {low}"
    else:
        first, second = "<=" if condition.lower_closed else "<", "<=" if condition.upper_closed else "<"
        text = f"{low} {first} {name} {second} {high}"
    return f"({text} or missing)" if condition.missing else text


def _distinct(lower: float, upper: float) -> tuple[str, str]:
    """Both ends, with as many digits as it takes to tell them apart."""
    digits = 5
    while lower < upper and digits < 17 and number(lower, digits) == number(upper, digits):
        digits += 1
    return number(lower, digits), number(upper, digits)


def _category_text(condition: Condition, name: str, categories: tuple[str, ...]) -> str:
    allowed = condition.categories or frozenset()
    chosen = allowed if not condition.unseen else frozenset(range(len(categories))) - allowed
    words = [_category(categories[code]) for code in sorted(chosen)]
    listed = words[0] if len(words) == 1 else "{" + ", ".join(words) + "}"
    if condition.unseen:  # a negated condition: a missing value satisfies it unless it is listed
        if not words:
            return f"any {name}" if condition.missing else f"{name} is not missing"
        text = f"{name} != {listed}" if len(words) == 1 else f"{name} not in {listed}"
        return text if condition.missing else f"{text} and not missing"
    if not words:
        return f"{name} is missing" if condition.missing else f"{name} never"
    text = f"{name} == {listed}" if len(words) == 1 else f"{name} in {listed}"
    return f"({text} or missing)" if condition.missing else text


def _category(name: str) -> str:
    """A category as it is, in quotes where it could be read as part of the rule."""
    return name if _PLAIN.fullmatch(name) else repr(name)


_PLAIN = re.compile(r"[^\s,{}&'\"()](?:[^,{}&'\"()\n]*[^\s,{}&'\"()])?")


def rule_text(rule: Sequence[Condition], schema: Schema) -> str:
    """A conjunction, e.g. ``Age > 31 & Sex == Male``; "always" for the empty one.

    What a condition says of missing values is shown where the schema admits them.
    """
    if schema.missing == "refuse":
        rule = [replace(c, missing=c.unseen) for c in rule]  # the texts of `unseen` conditions imply missing
    return " & ".join(condition_text(c, schema.features[c.feature]) for c in rule) or "always"


def weight_text(weights: Any) -> str:
    """One weight, or one per output; never a false 0."""
    return "  ".join(_weight(float(weight)) for weight in np.ravel(weights))


def _weight(weight: float) -> str:
    plain = weight == 0 or 5e-3 <= abs(weight) < 1e7
    return f"{weight:+.4f}" if plain else f"{weight:+.3e}"


def share_text(share: float) -> str:
    """A probability with three digits, never a false 0 or 1."""
    if 0 < share < 0.001:
        return "<0.001"
    if 0.999 < share < 1:
        return ">0.999"
    return f"{share:.3f}"


def _label(label: Label) -> str:
    return str(label)


def ensemble_rows(model: RuleEnsemble) -> list[tuple[str, str]]:
    """(weight, rule) of every rule and linear term, largest weight first."""
    weights = np.asarray(model.weights)
    order = np.argsort(-np.abs(weights).max(axis=1, initial=0), kind="stable")
    rows = [(weight_text(weights[r]), model.conjunctions.describe(r)) for r in order]
    if model.linear is not None:
        for t, coefficients in enumerate(np.asarray(model.linear.coefficients)):
            rows.append((weight_text(coefficients), model.linear.describe(t, model.schema)))
    return rows


def _ensemble_heading(model: RuleEnsemble) -> str:
    what = {
        "identity": f"{model.schema.target} =",
        "log": f"log expected {model.schema.target} =",
        "logistic": "log-odds of",
        "exponential": "half the log-odds of",
    }[model.link]
    classes = model.schema.classes
    if classes is not None:
        named = classes[1:] if len(classes) == 2 else classes
        what = f"{what} {model.schema.target} == {', '.join(_label(c) for c in named)}:"
    return f"{what} {weight_text(model.intercept)} + the weights of the rules that hold"


def ensemble_text(model: RuleEnsemble) -> str:
    """A rule ensemble as a table of text."""
    rows = ensemble_rows(model)
    width = max((len(weight) for weight, _ in rows), default=0)
    lines = [f"  {weight:>{width}}  {rule}" for weight, rule in rows]
    return "\n".join([f"Rule ensemble of {_counted(model)}", _ensemble_heading(model), *lines])


def _counted(model: RuleEnsemble | RuleList) -> str:
    n = len(model.conjunctions)
    return "1 rule" if n == 1 else f"{n} rules"


def list_text(model: RuleList) -> str:
    """A rule list as if / else if / else."""
    lines = []
    for r in range(len(model.conjunctions)):
        start = "if" if r == 0 else "else if"
        lines.append(f"{start} {model.conjunctions.describe(r)}: {_says(model, r)}")
    lines.append(f"{'else' if lines else 'always'}: {_says(model, len(model.conjunctions))}")
    return "\n".join(lines)


def _says(model: RuleList, position: int) -> str:
    code = int(model.labels[position])
    label, shown = (model.schema.classes or ())[code], float(model.probabilities[position, code])
    return f"{model.schema.target} = {_label(label)} (p = {share_text(shown)})"


def explanation_text(explanation: Explanation) -> str:
    """One prediction, its satisfied rules, and their sum."""
    lines = [f"prediction: {explanation.prediction}"]
    if explanation.probabilities is not None:
        shown = ", ".join(f"{label}: {share_text(p)}" for label, p in explanation.probabilities.items())
        lines[0] += f"   ({shown})"
    rows = [(weight_text(part.weight), part.text) for part in explanation.parts]
    width = max((len(weight) for weight, _ in rows), default=0)
    lines += [f"  {weight:>{width}}  {text}" for weight, text in rows]
    if explanation.score is not None:
        lines.append(f"  {weight_text(explanation.score):>{width}}  sum")
    return "\n".join(lines)


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain HTML table; every text is escaped."""
    head = "".join(f"<th style='text-align:left'>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<div><p>{html.escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def ensemble_html(model: RuleEnsemble) -> str:
    """A rule ensemble as an HTML table."""
    return html_table(_ensemble_heading(model), ("weight", "rule"), ensemble_rows(model))


def list_html(model: RuleList) -> str:
    """A rule list as an HTML table."""
    rules = [model.conjunctions.describe(r) for r in range(len(model.conjunctions))] + ["else"]
    rows = [(rule, _says(model, r)) for r, rule in enumerate(rules)]
    return html_table(f"Rule list of {_counted(model)}", ("if", "then"), rows)


def explanation_html(explanation: Explanation) -> str:
    """An explanation as an HTML table."""
    rows = [(weight_text(part.weight), part.text) for part in explanation.parts]
    if explanation.score is not None:
        rows.append((weight_text(explanation.score), "sum"))
    return html_table(f"prediction: {explanation.prediction}", ("weight", "because"), rows)
