"""A model as one SQL expression."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from jaxrules import checks
from jaxrules.export.program import (
    FirstMatch,
    Program,
    Rule,
    Sum,
    Term,
    Test,
    class_of,
    one_of,
    program_of,
)
from jaxrules.table import MISSING, Feature, Label

What = Literal["prediction", "score", "probability"]

_LARGEST_EXPONENT = 700.0
"""exp of at most this neither overflows nor underflows, which some databases treat as errors."""
_MOST_PARTS = 900
"""sqlite and DuckDB nest expressions at most 1000 deep: longer sums are sums of sums."""
_PASSES: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


def to_sql(
    model: Any, what: What = "prediction", *, label: Label | None = None, table: str | None = None
) -> str:
    """The model as one ANSI SQL expression, for a SELECT list:
    ``f"SELECT id, {to_sql(model)} AS says FROM people"``.

    Columns have the names that they had in `fit`, in double quotes. A column of True and False is
    itself a condition, ``"flag"`` or ``NOT "flag"``; an ordered category is text. NULL is a missing
    value (NaN is not; convert it to NULL). If a column in which the model refuses missing values is
    NULL, the expression is NULL. Numbers are written to read back exactly, and sums (of up to 900
    rules) have the order of `jaxrules.predict`: scores and labels are the same.

    Args:
        model: a rule ensemble, a rule list, or a coordinate path (its last model).
        what: "prediction": the label, value or expected count; "score": see
            `jaxrules.decision_function`; or "probability", for which scores beyond 700 count as
            700.
        label: the class of the score or probability, None for the second of two. Required for more
            classes; each class has its own expression. The prediction of K classes takes K (K - 1)
            comparisons of scores.
        table: the table's name or alias, put before every column: ``"people"."age"``.

    Raises:
        TypeError: for anything but a model, or for the score of a rule list.
        ValueError: for an unknown `what` or `label`, the probability of a number, or a
            name that SQL cannot write.
    """
    what = checks.choice("what", what, get_args(What))
    program = program_of(model)
    if what == "prediction" and label is not None:
        raise ValueError(
            "label is only for what='score' or 'probability'; a prediction covers all classes"
        )
    if table is not None and not isinstance(table, str):
        raise TypeError(f"table must be text, got {type(table).__name__}")
    chosen = None if what == "prediction" else class_of(program, label)
    if what == "probability" and chosen is None:
        raise ValueError(
            "model predicts numbers and has no classes; use what='prediction' or 'score'"
        )
    prefix = "" if table is None else _name(table) + "."
    columns = [
        prefix + _name(feature.source or feature.name) for feature in program.schema.features
    ]
    columns += [
        f"({' + '.join(_times(term, 0, columns, program) for term in d)})"
        for d in program.directions
    ]
    if isinstance(program, FirstMatch):
        if what == "score":
            raise TypeError("a RuleList has no scores; use what='prediction' or 'probability'")
        text = _first_match(program, columns, chosen)
    else:
        assert isinstance(program, Sum)
        writer = {"prediction": _prediction, "score": _score_of, "probability": _probability}[what]
        text = writer(
            program, [_score(program, k, columns) for k in range(len(program.intercept))], chosen
        )
    refused = [f"{columns[f]} IS NULL" for f, refuses in program.asks.items() if refuses]
    return f"CASE WHEN {' OR '.join(refused)} THEN NULL ELSE {text} END" if refused else text


# Names and literals


def _name(name: str) -> str:
    return '"' + _writable(name).replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + _writable(text).replace("'", "''") + "'"


def _writable(text: str) -> str:
    checks.require("\0" not in text, f"SQL cannot write the NUL character in {text!r}; rename it")
    return text


def _number(value: float) -> str:
    """A literal of type DOUBLE: the shortest one, or more digits if that lies close to the middle
    of two numbers.
    """
    text = repr(value)
    if abs(Decimal(text) - Decimal(value)) > Decimal("0.45") * Decimal(math.ulp(value)):
        text = f"{value:.18e}"
    return text.upper() if "e" in text else f"{text}E0"


def _literal(label: Label) -> str:
    if isinstance(label, str):
        return _text(label)
    return (
        _number(label) if isinstance(label, float) else str(label).upper()
    )  # TRUE, FALSE or an integer


# Rules


def _holds(rule: Rule, columns: Sequence[str], program: Program) -> str:
    special = dict(enumerate(f.special_values or () for f in program.schema.features))
    tests = (_test(t, columns[t.feature], special.get(t.feature, ())) for t in rule.tests)
    return " AND ".join(tests) or "1 = 1"


def _test(test: Test, column: str, special: Sequence[float]) -> str:
    """`special`: the values at which the column has no number."""
    absent = _absent(column, special)
    if test.asked is None:
        return (f"({absent})" if special else absent) if test.missing else "1 = 0"
    text = " AND ".join(_comparison(column, sign, value) for sign, value in test.asked)
    if test.missing:
        return f"({text} OR {absent})"
    parts = [text] * bool(text)  # a comparison with NULL does not hold
    if any(all(_PASSES[sign](one, end) for sign, end in test.asked) for one in special):
        parts.append(_comparison(column, "not in", special))
    return " AND ".join(parts) or f"{column} IS NOT NULL"


def _absent(column: str, special: Sequence[float]) -> str:
    """Whether a column has no value, or one of these."""
    coded = [_comparison(column, "in", special)] if special else []
    return " OR ".join([*coded, f"{column} IS NULL"])


def _comparison(column: str, operator: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{column} {operator.replace('==', '=')} {_number(value)}"
    if isinstance(value[0], bool):  # sqlite has 1 and 0 for them
        return column if value[0] else f"NOT {column}"
    listed = [_text(one) if isinstance(one, str) else _number(one) for one in value]
    if len(listed) == 1:
        return f"{column} {'=' if operator == 'in' else '<>'} {listed[0]}"
    return f"{column} {operator.upper()} ({', '.join(listed)})"


def _first_match(program: FirstMatch, columns: Sequence[str], chosen: Label | None) -> str:
    if chosen is None:
        says = [_literal(label) for label in program.labels]
    else:
        place = (program.schema.classes or ()).index(chosen)
        says = [_number(shares[place]) for shares in program.shares]
    rules = zip(program.rules, says, strict=False)
    cases = [f"WHEN {_holds(rule, columns, program)} THEN {said}" for rule, said in rules]
    return "\n ".join(["CASE", *cases, f"ELSE {says[-1]} END"]) if cases else says[-1]


# Sums


def _times(term: Term, output: int, columns: Sequence[str], program: Program) -> str:
    """weight * value; NULL if a number is missing."""
    column, weight = columns[term.feature], _number(term.weights[output])
    feature = program.schema.features[term.feature]
    number = _as_number(column, feature)
    if term.origin:
        number = f"({number} - {_number(term.origin)})"
    if term.category is not None:
        condition = _absent(column, feature.special_values or ())
        if term.category != MISSING:
            condition = _comparison(column, *one_of(feature, term.category))
        return f"CASE WHEN {condition} THEN {weight} ELSE 0.0E0 END"
    ends = [("<", term.lower), (">", term.upper)]
    cases = [
        f"WHEN {number} {side} {_number(end)} THEN {_number(end)}"
        for side, end in ends
        if math.isfinite(end)
    ]
    return f"{weight} * {'CASE ' + ' '.join(cases) + f' ELSE {number} END' if cases else number}"


def _as_number(column: str, feature: Feature) -> str:
    """A number, or the place of a level; NULL if missing."""
    if feature.special_values is not None:
        return (
            f"CASE WHEN {_comparison(column, 'not in', feature.special_values)} THEN {column} END"
        )
    if feature.levels is None:
        return column
    if feature.is_boolean:
        return f"CASE WHEN {column} THEN 1.0E0 WHEN NOT {column} THEN 0.0E0 END"
    cases = [
        f"WHEN {_text(str(level))} THEN {_number(float(place))}"
        for place, level in enumerate(feature.levels)
    ]
    return f"CASE {column} {' '.join(cases)} END"


def _score(program: Sum, output: int, columns: Sequence[str]) -> str:
    parts = [_number(program.intercept[output])]
    for rule in program.rules:
        if rule.weights[output]:
            weight, condition = _number(rule.weights[output]), _holds(rule, columns, program)
            parts.append(f"CASE WHEN {condition} THEN {weight} ELSE 0.0E0 END")
    for term in program.terms:
        if term.weights[output]:
            text = _times(term, output, columns, program)
            never_null = term.category is not None or term.feature in program.refused
            parts.append(text if never_null else f"COALESCE({text}, 0.0E0)")
    blocks = ["\n + ".join(parts[i : i + _MOST_PARTS]) for i in range(0, len(parts), _MOST_PARTS)]
    return (
        "("
        + (blocks[0] if len(blocks) == 1 else " + ".join(f"({block})" for block in blocks))
        + ")"
    )


def _score_of(program: Sum, scores: Sequence[str], chosen: Label | None) -> str:
    scored = program.scored
    return scores[scored.index(chosen)] if chosen in scored else f"(-{scores[0]})"


def _prediction(program: Sum, scores: Sequence[str], chosen: Label | None) -> str:
    if program.schema.classes is None:
        return f"EXP{scores[0]}" if program.link == "log" else scores[0]
    labels = [_literal(label) for label in program.schema.classes]
    if len(scores) == 1:
        second = f"{scores[0]} > {_number(program.threshold)}"
        return f"CASE WHEN {second} THEN {labels[1]} ELSE {labels[0]} END"
    # the first of the largest: earlier classes are excluded, so it must be no
    # smaller than later ones
    cases = []
    for k, score in enumerate(scores[:-1]):
        largest = " AND ".join(f"{score} >= {other}" for other in scores[k + 1 :])
        cases.append(f"WHEN {largest} THEN {labels[k]}")
    return "\n ".join(["CASE", *cases, f"ELSE {labels[-1]} END"])


def _probability(program: Sum, scores: Sequence[str], chosen: Label | None) -> str:
    factor = 2 if program.link == "exponential" else 1
    margins = [f"{factor}.0E0 * {score}" if factor > 1 else score for score in scores]
    bounded = 2 * factor * max(_largest(program, k) for k in range(len(scores))) < _LARGEST_EXPONENT

    def exp(exponent: str) -> str:
        low, high = _number(-_LARGEST_EXPONENT), _number(_LARGEST_EXPONENT)
        clipped = (
            f"CASE WHEN {exponent} < {low} THEN {low} WHEN {exponent} > {high} THEN {high} "
            f"ELSE {exponent} END"
        )
        return f"EXP({exponent if bounded else clipped})"

    place = (program.schema.classes or ()).index(chosen)
    if len(scores) == 1:
        return f"(1.0E0 / (1.0E0 + {exp(margins[0] if place == 0 else '-' + margins[0])}))"
    if program.link == "softmax":
        others = [
            exp(f"{margin} - {margins[place]}") for k, margin in enumerate(margins) if k != place
        ]
        return f"(1.0E0 / (1.0E0 + {' + '.join(others)}))"
    own = [f"1.0E0 / (1.0E0 + {exp('-' + margin)})" for margin in margins]
    return f"({own[place]} / ({' + '.join(own)}))"


def _largest(program: Sum, output: int) -> float:
    """An upper bound on the size of the score."""
    total = abs(program.intercept[output]) + sum(
        abs(rule.weights[output]) for rule in program.rules
    )
    for term in program.terms:
        size = 1.0 if term.category is not None else max(-term.lower, term.upper)
        total += abs(term.weights[output]) * size if term.weights[output] else 0.0
    return total
