"""A model as the source of a Python module that imports nothing but `math`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from jaxrules.data.table import MISSING, are_numbers
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.users.export.program import (
    FirstMatch,
    Program,
    Rule,
    Sum,
    Term,
    Test,
    one_of,
    program_of,
)
from jaxrules.users.reasons import reason_words


def to_python(model: Any) -> str:
    """The model as the source of a module that needs only Python.

    Write it with ``Path("buys.py").write_text(jr.to_python(model), "utf-8")``. Its functions take a
    row as a dict of column names and values: numbers, booleans, text for categories, None or NaN
    for a missing value. Columns that the model does not use may be absent; unknown columns are
    ignored.

    - ``predict(row)``: the label, value or expected count, as `jaxrules.predict`
    - ``score(row)``: as `jaxrules.decision_function`; for more than two classes a dict by
      class. Not for rule lists.
    - ``probabilities(row)``: a dict by class. Not for models that predict numbers.
    - ``explain(row)``: a dict of these, of the ``parts``: the rules that hold, as text, with their
      contributions, and of the ``threshold`` of `jaxrules.with_threshold`, as text, or None.

    - ``reasons(row, label)``: pairs of text and points, as `jaxrules.reasons` against the best
      case. For rule ensembles without linear terms; without rules that no row can satisfy.

    Sums are taken in the same order as in jaxrules: scores and labels are the same.

    Args:
        model: a rule ensemble, a rule list, or a coordinate path (its last model).

    Raises:
        TypeError: for anything but a model.
    """
    program = program_of(model)
    features = program.schema.features
    asks = program.asks
    names, classes = program.schema.names, program.schema.classes
    constants: dict[str, Any] = {} if classes is None else {"CLASSES": classes}
    constants |= {
        "NUMBERS": tuple(names[f] for f in asks if features[f].kind == "number"),
        "CATEGORIES": tuple(names[f] for f in asks if not features[f].is_numeric),
        # Of booleans and ordered categories, in order.
        "LEVELS": {names[f]: features[f].levels for f in asks if features[f].levels},
        # Categories that are numbers.
        "NUMBERED": tuple(names[f] for f in asks if are_numbers(features[f])),
        "REQUIRED": tuple(names[f] for f, refuses in asks.items() if refuses),
    }
    special = {
        names[f]: (features[f].companion().name, values)
        for f in asks
        if (values := features[f].special_values) is not None
    }
    if special:  # their numbers are missing; the second name keeps all values, None if missing
        constants["SPECIAL"] = special
    cut = getattr(program, "cut", None)
    constants["THRESHOLD"] = None if cut is None else str(cut)  # in words
    blocks = [_HEAD, "\n".join(f"{name} = {value!r}" for name, value in constants.items())]
    blocks += [
        f"def direction_{d}(x):\n    return {_sum(terms, program)}"
        for d, terms in enumerate(program.directions)
    ]
    if isinstance(program, FirstMatch):
        blocks += _list(program)
    else:
        assert isinstance(program, Sum)
        rules = [(rule, repr(rule.weights)) for rule in program.rules]
        terms = [
            f"    ({t.text!r}, {t.weights!r}, lambda x: {_value(t, program)}),\n"
            for t in program.terms
        ]
        blocks += [
            f"INTERCEPT = {program.intercept!r}",
            _rules("# (as text, what it adds to each score, whether it holds)", rules, program),
            f"TERMS = (  # (as text, its coefficient in each score, its value)\n{''.join(terms)})",
            *_functions(program),
        ]
        if isinstance(model, RuleEnsemble) and not program.terms:
            words = reason_words(model.conjunctions)
            absent = "".join(f"    {words[rule.position][0]!r},\n" for rule in program.rules)
            blocks += [f"ABSENT = (  # as text, that each rule does not hold\n{absent})"]
            blocks += [_reasons(program)]
    read = _READ.replace("    return x\n", _SPECIAL, 1) if special else _READ
    return "\n\n\n".join([*blocks, read]) + "\n"


def _list(program: FirstMatch) -> list[str]:
    """The rules of a list, and its functions."""
    if program.schema.classes is None:
        pairs = zip(program.rules, program.labels, strict=False)
        rules = [(rule, repr(value)) for rule, value in pairs]
        comment, default, functions = "the value", f"{program.labels[-1]!r}", _NUMBERS
    else:
        listed = zip(program.rules, program.labels, program.shares, strict=False)
        rules = [(rule, f"{label!r}, {shares!r}") for rule, label, shares in listed]
        comment, functions = "the label, the class shares", _LIST
        default = f"({program.labels[-1]!r}, {program.shares[-1]!r})"
    table = _rules(f"# (as text, {comment}, whether it holds)", rules, program)
    return [table, f"DEFAULT = {default}", functions]


def _rules(comment: str, rules: Iterable[tuple[Rule, str]], program: Program) -> str:
    lines = [
        f"    ({rule.text!r}, {says}, lambda x: {_holds(rule, program)}),\n" for rule, says in rules
    ]
    return f"RULES = (  {comment}\n{''.join(lines)})"


def _holds(rule: Rule, program: Program) -> str:
    return " and ".join(_test(test, program) for test in rule.tests) or "True"


def _test(test: Test, program: Program) -> str:
    names = program.schema.names
    beyond = test.feature - len(names)
    column = f"x[{names[test.feature]!r}]" if beyond < 0 else f"direction_{beyond}(x)"
    if test.asked is None:
        return f"missing({column})" if test.missing else "False"
    if not test.asked:
        return f"not missing({column})"
    operator, value = test.asked[0]
    if operator in ("in", "not in"):  # a missing category is None
        if isinstance(value[0], bool):
            return f"{column} is not {not value[0]}" if test.missing else f"{column} is {value[0]}"
        # None is listed where a missing value passes "in", or fails "not in".
        listed = (*value, None) if test.missing == (operator == "in") else value
        if len(listed) == 1:
            return f"{column} {'==' if operator == 'in' else '!='} {listed[0]!r}"
        return f"{column} {operator} {listed!r}"
    if len(test.asked) == 2:
        # An interval of two ends as one chain: low < x <= high.
        above, (below, end) = operator.replace(">", "<"), test.asked[1]
        text = f"{value!r} {above} {column} {below} {end!r}"
    else:
        text = f"{column} {operator} {value!r}"  # does not hold for NaN
    return f"({text} or missing({column}))" if test.missing else text


def _sum(terms: Iterable[Term], program: Program) -> str:
    return " + ".join(f"{term.weights[0]!r} * {_column(term, program)}" for term in terms)


def _column(term: Term, program: Program) -> str:
    feature = program.schema.features[term.feature]
    column = f"x[{feature.name!r}]"
    if term.category is None:
        number = f"place({column}, {feature.name!r})" if feature.levels else column
        return f"({number} - {term.origin!r})" if term.origin else number
    if term.category == MISSING:
        return f"missing({column})"
    operator, values = one_of(feature, term.category)
    if operator == "in":
        return f"({column} == {values[0]!r})"
    return f"({column} not in {(*values, None)!r})"


def _value(term: Term, program: Program) -> str:
    text = _column(term, program)
    if term.category is not None:
        return text
    if math.isfinite(term.lower):
        text = f"max({text}, {term.lower!r})"
    if math.isfinite(term.upper):
        text = f"min({text}, {term.upper!r})"
    return f"or_zero({text})"


def _functions(program: Sum) -> list[str]:
    """score, predict, probabilities and explain of a sum."""
    several = len(program.intercept) > 1
    form = "dict(zip(CLASSES, totals))" if several else "totals[0]"
    score, explain = _SCORE.replace("FORM", form), _EXPLAIN.replace("SHARES", "None")
    if program.schema.classes is None:
        return [score, _COUNT if program.link == "log" else _VALUE, explain]
    margins = "totals(read(row))"
    if program.link == "exponential":
        margins = f"[2.0 * total for total in {margins}]"
    kind = "softmax" if program.link == "softmax" else "several" if several else "two"
    label = _LABEL_OF_TWO.replace("CUT", repr(program.threshold or 0))
    return [
        score,
        _LABEL_OF_SEVERAL if several else label,
        _PROBABILITIES[kind].replace("MARGINS", margins),
        _EXPLAIN.replace("SHARES", "probabilities(row)"),
    ]


def _reasons(program: Sum) -> str:
    """The function reasons of a sum of rules."""
    places: dict[Any, tuple[int, float]] = {
        label: (output, 1.0) for output, label in enumerate(program.scored)
    }
    classes, default = program.schema.classes or (), "None"
    if len(classes) == 2:
        places[classes[0]], default = (0, -1.0), repr(classes[1])
    return _REASONS.replace("PLACES", repr(places)).replace("LABEL", default)


# What the module is made of

_HEAD = '''\
"""A model written by jaxrules; it needs only Python.

A row is a dict of column names and values: numbers, booleans, text for categories, None or NaN for
a missing value.
"""

import math'''

_SCORE = '''\
def totals(x):
    """The sum of every output, in the order of the rules."""
    sums = list(INTERCEPT)
    for _, weights, holds in RULES:
        if holds(x):
            sums = [total + weight for total, weight in zip(sums, weights)]
    for _, weights, value in TERMS:
        sums = [total + weight * value(x) for total, weight in zip(sums, weights)]
    return sums


def score(row):
    """The sum of the intercept, the rules that hold and the terms."""
    return in_form(totals(read(row)))


def in_form(totals):
    return FORM'''

_REASONS = '''\
OUTPUTS = PLACES  # by class: its score, and the sign with which it counts


def reasons(row, label=LABEL):
    """The rules that move the score towards a class, as text, also those that do not hold, with the
    points that they add against the best case, the most first.
    """
    if label not in OUTPUTS:
        raise ValueError(f"label must be one of {list(OUTPUTS)}, got {label!r}")
    output, sign = OUTPUTS[label]
    x, found = read(row), []
    for (text, weights, holds), absent in zip(RULES, ABSENT):
        weight, held = sign * weights[output], bool(holds(x))
        if weight and held == (weight > 0):
            found.append((text if held else absent, abs(weight)))
    return sorted(found, key=lambda one: -one[1])'''

_VALUE = '''\
def predict(row):
    """The predicted value."""
    return score(row)'''

_COUNT = '''\
def predict(row):
    """The expected count."""
    try:
        return math.exp(score(row))
    except OverflowError:
        return math.inf'''

_LABEL_OF_TWO = '''\
def predict(row):
    """The label."""
    return CLASSES[score(row) > CUT]'''

_LABEL_OF_SEVERAL = '''\
def predict(row):
    """The label of the largest score."""
    sums = totals(read(row))
    return CLASSES[sums.index(max(sums))]'''

_PROBABILITIES = {
    "two": '''\
def probabilities(row):
    """The probability of every class."""
    (margin,) = MARGINS
    return {CLASSES[0]: sigmoid(-margin), CLASSES[1]: sigmoid(margin)}


def sigmoid(margin):
    power = math.exp(-abs(margin))
    return (1.0 if margin >= 0 else power) / (1.0 + power)''',
    "softmax": '''\
def probabilities(row):
    """The probability of every class."""
    margins = MARGINS
    powers = [math.exp(margin - max(margins)) for margin in margins]
    return {label: power / sum(powers) for label, power in zip(CLASSES, powers)}''',
    "several": '''\
def probabilities(row):
    """The share of every class: its own probability among those of all."""
    logarithms = [min(margin, 0.0) - math.log1p(math.exp(-abs(margin))) for margin in MARGINS]
    powers = [math.exp(logarithm - max(logarithms)) for logarithm in logarithms]
    return {label: power / sum(powers) for label, power in zip(CLASSES, powers)}''',
}

_EXPLAIN = '''\
def explain(row):
    """The prediction and its parts, the largest first: (as text, what it adds to the score)."""
    x = read(row)
    held = sorted((rule for rule in RULES if rule[2](x)), key=lambda rule: -max(map(abs, rule[1])))
    added = [("intercept", INTERCEPT), *((text, weights) for text, weights, _ in held)]
    added += [(text, [weight * value(x) for weight in weights]) for text, weights, value in TERMS]
    parts = [(text, in_form(weights)) for text, weights in added]
    answer = {"prediction": predict(row), "score": score(row)}
    return {**answer, "probabilities": SHARES, "parts": parts, "threshold": THRESHOLD}'''

_EXPLAIN_LIST = '''\
def explain(row):
    """The prediction, the rule that decided, and the rules passed over."""
    place, SAYS = first(row)
    texts = [f"rule {number}: {rule[0]}" for number, rule in enumerate(RULES, start=1)]
    decided = [*texts, "no rule holds: the default"][place]
    parts = [decided, *(f"passed over {text}" for text in texts[:place])]
'''

_LIST = (
    '''\
def first(row):
    """The position (from 0) of the first rule that holds, its label and its class shares."""
    x = read(row)
    for place, (_, label, shares, holds) in enumerate(RULES):
        if holds(x):
            return place, label, shares
    return len(RULES), *DEFAULT


def predict(row):
    """The label of the first rule that holds."""
    return first(row)[1]


def probabilities(row):
    """The shares of the classes among the training rows of that rule."""
    return dict(zip(CLASSES, first(row)[2]))


'''
    + _EXPLAIN_LIST.replace("SAYS", "label, _")
    + """\
    answer = {"prediction": label, "probabilities": probabilities(row)}
    return {**answer, "parts": parts, "threshold": THRESHOLD}"""
)

_NUMBERS = (
    '''\
def first(row):
    """The position (from 0) of the first rule that holds, and its value."""
    x = read(row)
    for place, (_, value, holds) in enumerate(RULES):
        if holds(x):
            return place, value
    return len(RULES), DEFAULT


def predict(row):
    """The value of the first rule that holds."""
    return first(row)[1]


'''
    + _EXPLAIN_LIST.replace("SAYS", "value")
    + """\
    return {"prediction": value, "probabilities": None, "parts": parts, "threshold": THRESHOLD}"""
)

_READ = '''\
def read(row):
    """The columns that the model uses, checked: numbers as float, NaN if missing; text and
    booleans, None if missing.
    """
    x = {}
    for name in (*NUMBERS, *LEVELS, *CATEGORIES):
        if name not in row:
            raise ValueError(f"row lacks the column {name!r}")
        value = row[name]
        if missing(value):
            if name in REQUIRED:
                raise ValueError(
                    f"row has no value in {name!r}; the model was fitted without missing values "
                    "there"
                )
            x[name] = math.nan if name in NUMBERS else None
            continue
        if hasattr(value, "__index__") and abs(int(value)) >= 2**53:
            raise ValueError(f"{name!r} is an integer beyond 2**53, which a float "
                "cannot hold; pass a float if it may be rounded")
        if name in NUMBERED and not isinstance(value, str):
            value = str(int(value)) if float(value).is_integer() else str(float(value))
        if name in LEVELS:
            if value not in LEVELS[name]:
                raise ValueError(f"{name!r} must be one of {LEVELS[name]}, got {value!r}")
            x[name] = LEVELS[name][LEVELS[name].index(value)]
        elif isinstance(value, str) != (name in CATEGORIES):
            kind = "a number" if name in NUMBERS else "text"
            raise TypeError(f"{name!r} must be {kind}, got {value!r}")
        else:
            x[name] = float(value) if name in NUMBERS else value
            if x[name] in (math.inf, -math.inf):
                raise ValueError(f"{name!r} is infinite; replace it with a finite number")
    return x


def missing(value):
    """Whether a value is None, NaN, NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA
        return True


def place(level, name):
    """The place of a level in its order, from 0; NaN if missing."""
    return math.nan if level is None else float(LEVELS[name].index(level))


def or_zero(number):
    return 0.0 if missing(number) else number'''

_SPECIAL = """\
    for name, (every, special) in SPECIAL.items():
        x[every] = None if missing(x[name]) else x[name]
        if x[name] in special:
            x[name] = math.nan
    return x
"""
