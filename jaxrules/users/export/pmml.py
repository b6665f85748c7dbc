"""A model as PMML 4.4: lists as RuleSetModel, or TreeModel of numbers, sums as RegressionModel over
derived fields.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from jaxrules.data.table import MISSING, Feature, Label
from jaxrules.tools.checks import require
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

_FUNCTIONS = {
    "==": "equal",
    "<": "lessThan",
    "<=": "lessOrEqual",
    ">": "greaterThan",
    ">=": "greaterOrEqual",
    "in": "isIn",
    "not in": "isNotIn",
}
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_pmml(model: Any) -> str:
    """The model as a PMML 4.4 document.

    A rule list is a RuleSetModel (first hit) with the class shares as score distributions; it
    outputs only labels. A regression list is a TreeModel of one node per rule below the root, of
    which the first that holds has the score. An ensemble or the last model of a coordinate path is
    a RegressionModel whose predictors are derived fields, "rule 1" and so on, 1 if the rule holds.
    For classes fitted one-vs-rest, the predictors are the logarithms of their own probabilities,
    and "softmax" scales these to sum to one; the link "exponential" doubles the coefficients. PMML
    leaves the order of sums, and ties between labels, to the consumer: scores agree up to rounding.
    NaN is declared a missing value; what `jaxrules.predict` refuses is declared invalid. Only the
    columns that the model uses are input fields.

    Args:
        model: a rule ensemble, a rule list, or a coordinate path.

    Raises:
        TypeError: for anything but a model.
        ValueError: for names with characters that XML cannot hold, or a threshold whose
            probability is 1 in float64.
    """
    program = program_of(model)
    classes, names = program.schema.classes, list(program.schema.names)
    document = Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
    _add(_add(document, "Header"), "Application", name="jaxrules")
    fields = _add(document, "DataDictionary")
    for f in program.asks:
        feature = program.schema.features[f]
        kind = {"True / False": "boolean", "number": "double"}.get(feature.kind, "string")
        _field(fields, names[f], kind, feature.levels or feature.categories, feature.kind)
    target = _new(program.schema.target, names)
    _field(fields, target, "double" if classes is None else _DATA_TYPES[type(classes[0])], classes)
    kind = "RegressionModel"
    if isinstance(program, FirstMatch):
        kind = "TreeModel" if classes is None else "RuleSetModel"
    body = _add(document, kind, functionName="regression" if classes is None else "classification")
    schema, derived = _add(body, "MiningSchema"), Element("LocalTransformations")
    _add(schema, "MiningField", name=target, usageType="target")
    for f, refuses in program.asks.items():
        missing = {"missingValueTreatment": "returnInvalid"} if refuses else {}
        invalid = "returnInvalid" if program.schema.features[f].is_numeric else "asIs"  # unseen
        _add(schema, "MiningField", name=names[f], invalidValueTreatment=invalid, **missing)
    _outputs(_add(body, "Output"), program, names)
    columns = [feature.source or feature.name for feature in program.schema.features]
    for f in program.reads:
        feature = program.schema.features[f]
        if feature.special_values is not None:
            column, values = _field_ref(feature.name), feature.special_values
            is_number = _apply("isNotIn", column, *map(_constant, values), missing=False)
            number = _apply("if", is_number, column)  # otherwise missing
            columns[f] = _derive(derived, f"number({feature.name})", number, names)
    for d, terms in enumerate(program.directions):
        parts = [_times(term.weights[0], _value(term, program, columns)) for term in terms]
        columns.append(_derive(derived, f"direction {d + 1}", _nested("+", parts), names))
    body.append(derived)
    if isinstance(program, FirstMatch) and classes is None:
        _tree(body, program, columns)
    elif isinstance(program, FirstMatch):
        _rule_set(_add(body, "RuleSet"), program, columns)
    else:
        assert isinstance(program, Sum)
        _regression(body, derived, program, columns, names)
    if not len(derived):
        body.remove(derived)
    _check_text(document)
    ElementTree.indent(document)
    text = ElementTree.tostring(document, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


# Fields

_DATA_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "double"}


def _add(parent: Element, tag: str, **attributes: str) -> Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _new(name: str, taken: list[str]) -> str:
    """A name that no field has yet; it is added to `taken`."""
    while name in taken:
        name += "_"
    taken.append(name)
    return name


def _label(value: Label) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _field(
    parent: Element, name: str, kind: str, values: Sequence[Label] | None, of: str = ""
) -> None:
    optype = "continuous" if values is None else "ordinal" if of == "ordered" else "categorical"
    field = _add(parent, "DataField", name=name, optype=optype, dataType=kind)
    if of == "number":
        ends = {"leftMargin": repr(-sys.float_info.max), "rightMargin": repr(sys.float_info.max)}
        _add(field, "Interval", closure="closedClosed", **ends)
        _add(field, "Value", value="NaN", property="missing")
    for value in values or ():
        _add(field, "Value", value=_label(value))


def _outputs(parent: Element, program: Program, names: list[str]) -> None:
    classes = program.schema.classes
    kind = "double" if classes is None else _DATA_TYPES[type(classes[0])]
    name = _new("prediction", names)
    if isinstance(program, Sum) and program.cut is not None:
        _thresholded(parent, program, name, kind, names)
        return
    _output(parent, name, kind, "predictedValue", continuous=classes is None)
    _probabilities(parent, program, names)


def _output(
    parent: Element, name: str, kind: str, feature: str, *, continuous: bool, **more: str
) -> Element:
    optype = "continuous" if continuous else "categorical"
    attributes = {"name": name, "optype": optype, "dataType": kind, "feature": feature, **more}
    return _add(parent, "OutputField", **attributes)


def _probabilities(parent: Element, program: Program, names: list[str]) -> list[str]:
    """The output fields of the probabilities of a sum, by class: their names."""
    classes, added = program.schema.classes, []
    for label in map(_label, classes or () if isinstance(program, Sum) else ()):
        name = _new(f"probability({label})", names)
        _output(parent, name, "double", "probability", continuous=True, value=label)
        added.append(name)
    return added


def _thresholded(parent: Element, program: Sum, name: str, kind: str, names: list[str]) -> None:
    """The probabilities, and the label that the threshold gives."""
    second = _probabilities(parent, program, names)[1]
    assert program.cut is not None
    require(
        program.cut.probability < 1,
        f"the threshold {program.threshold:.6g} of the model is too high for PMML, which compares "
        "its probability, 1 in float64; lower it, or use jaxrules.to_sql or jaxrules.to_python",
    )
    field = _output(parent, name, kind, "transformedValue", continuous=False)
    above = _apply("greaterThan", _field_ref(second), _constant(program.cut.probability))
    labels = [Element("Constant", dataType=kind) for _ in program.schema.classes or ()]
    for element, label in zip(labels, program.schema.classes or (), strict=True):
        element.text = _label(label)
    field.append(_apply("if", above, labels[1], labels[0]))


def _derive(
    parent: Element, name: str, expression: Element, taken: list[str], text: str = ""
) -> str:
    name = _new(name, taken)
    described = {"displayName": text} if text else {}
    kind = {"optype": "continuous", "dataType": "double"}
    _add(parent, "DerivedField", name=name, **kind, **described).append(expression)
    return name


def _check_text(document: Element) -> None:
    for element in document.iter():
        for text in (*element.attrib.values(), element.text or ""):
            require(
                not _NOT_IN_XML.search(text),
                f"XML cannot write a control character in {text!r}; rename it",
            )


# Expressions


def _apply(function: str, *arguments: Element, missing: bool | None = None) -> Element:
    """A PMML function; `missing`: its value if an argument is missing."""
    mapped = {} if missing is None else {"mapMissingTo": str(missing).lower()}
    element = Element("Apply", mapped, function=function)
    element.extend(arguments)
    return element


def _nested(function: str, arguments: Sequence[Element]) -> Element:
    """A function of two arguments, from the left."""
    return functools.reduce(lambda one, other: _apply(function, one, other), arguments)


def _constant(value: Label) -> Element:
    element = Element("Constant", dataType=_DATA_TYPES[type(value)])
    element.text = repr(value) if isinstance(value, float) else _label(value)
    return element


def _field_ref(name: str) -> Element:
    return Element("FieldRef", field=name)


def _times(weight: float, value: Element) -> Element:
    return _apply("*", _constant(weight), value)


def _one_where(condition: Element) -> Element:
    return _apply("if", condition, _constant(1.0), _constant(0.0))


def _value(term: Term, program: Program, columns: Sequence[str]) -> Element:
    """A clipped number, possibly missing; or 1 if the column has the category."""
    feature = program.schema.features[term.feature]
    column = _as_number(feature, columns[term.feature])
    if term.origin:
        column = _apply("-", column, _constant(term.origin))
    if term.category == MISSING:
        return _one_where(_apply("isMissing", column))
    if term.category is not None:
        operator, values = one_of(feature, term.category)
        function = "equal" if operator == "in" else "isNotIn"
        return _one_where(_apply(function, column, *map(_constant, values), missing=False))
    raised = _apply("max", column, _constant(term.lower)) if math.isfinite(term.lower) else column
    return _apply("min", raised, _constant(term.upper)) if math.isfinite(term.upper) else raised


def _as_number(feature: Feature, name: str) -> Element:
    """A number, or the place of a level, a sum of place * indicator; missing where the value is."""
    if feature.levels is None:
        return _field_ref(name)
    parts = [
        _times(float(place), Element("NormDiscrete", field=feature.name, value=_label(level)))
        for place, level in enumerate(feature.levels)
    ]
    # The place 0 adds nothing; a single level needs its part, so that a missing value stays
    # missing.
    return _nested("+", parts[1:] or parts)


def _holds(rule: Rule, columns: Sequence[str]) -> Element:
    tests = [_test(test, columns[test.feature]) for test in rule.tests]
    return _apply("and", *tests) if len(tests) > 1 else tests[0]


def _test(test: Test, name: str) -> Element:
    column = _field_ref(name)
    if not test.asked:
        return _apply("isMissing" if test.asked is None else "isNotMissing", column)
    # With `mapMissingTo`, the comparison of a missing value is true or false, never missing.
    comparisons = [
        _apply(_FUNCTIONS[operator], column, *map(_constant, _values(value)), missing=test.missing)
        for operator, value in test.asked
    ]
    return _apply("and", *comparisons) if len(comparisons) > 1 else comparisons[0]


def _values(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


# Sums


def _regression(
    body: Element, derived: Element, program: Sum, columns: Sequence[str], names: list[str]
) -> None:
    """The tables of coefficients, and their fields."""
    factor = 2.0 if program.link == "exponential" else 1.0
    constants, parts = [factor * value for value in program.intercept], []
    for number, rule in enumerate(program.rules, start=1):
        if rule.tests:
            holds = _one_where(_holds(rule, columns))
            field = _derive(derived, f"rule {number}", holds, names, rule.text)
            parts.append((field, rule.weights))
        else:
            # A rule that always holds is part of the intercept.
            pairs = zip(constants, rule.weights, strict=True)
            constants = [value + factor * weight for value, weight in pairs]
    for number, term in enumerate(program.terms, start=1):
        value = _value(term, program, columns)
        if term.category is None and term.feature not in program.refused:
            missing = _apply("isMissing", _field_ref(columns[term.feature]))
            value = _apply("if", missing, _constant(0.0), value)
        parts.append((_derive(derived, f"term {number}", value, names, term.text), term.weights))
    tables = [
        (constant, [(field, factor * weights[k]) for field, weights in parts if weights[k]])
        for k, constant in enumerate(constants)
    ]
    classes = program.schema.classes
    if classes is None:
        body.set("normalizationMethod", "exp" if program.link == "log" else "none")
        targets: Sequence[Label | None] = (None,)
    elif len(classes) == 2:
        # The second class comes first: its table has the score, and the other one is empty.
        body.set("normalizationMethod", "logit")
        tables, targets = [*tables, (0.0, [])], classes[::-1]
    else:
        body.set("normalizationMethod", "softmax")
        if program.link != "softmax":
            for k, scored in enumerate(tables):
                # The softmax of log p_k is p_k / sum_j p_j, which is how one-vs-rest probabilities
                # are scaled.
                score = _derive(derived, f"score {k + 1}", _score(*scored), names)
                own = _derive(derived, f"log probability {k + 1}", _log_probability(score), names)
                tables[k] = (0.0, [(own, 1.0)])
        targets = classes
    for target, (constant, coefficients) in zip(targets, tables, strict=True):
        of = {} if target is None else {"targetCategory": _label(target)}
        table = _add(body, "RegressionTable", intercept=repr(constant), **of)
        for field, weight in coefficients:
            _add(table, "NumericPredictor", name=field, coefficient=repr(weight))


def _score(constant: float, coefficients: Iterable[tuple[str, float]]) -> Element:
    terms = (_times(weight, _field_ref(field)) for field, weight in coefficients)
    return _nested("+", [_constant(constant), *terms])


def _log_probability(score: str) -> Element:
    """ln(1 / (1 + exp(-score))) = min(score, 0) - ln(1 + exp(-|score|)), finite for any score."""
    minus_size = _times(-1.0, _apply("abs", _field_ref(score)))
    tail = _apply("ln", _apply("+", _constant(1.0), _apply("exp", minus_size)))
    return _apply("-", _apply("min", _field_ref(score), _constant(0.0)), tail)


# Rule lists


def _rule_set(body: Element, program: FirstMatch, columns: Sequence[str]) -> None:
    classes = program.schema.classes or ()
    body.set("defaultScore", _label(program.labels[-1]))
    body.set("defaultConfidence", repr(program.shares[-1][classes.index(program.labels[-1])]))
    _add(body, "RuleSelectionMethod", criterion="firstHit")
    counts = program.counts or program.shares
    _distribution(body, classes, program.shares[-1], counts[-1])
    listed = zip(program.rules, program.labels, program.shares, counts, strict=False)
    for number, (rule, label, shares, rows) in enumerate(listed, start=1):
        said = {"score": _label(label), "confidence": repr(shares[classes.index(label)])}
        element = _add(body, "SimpleRule", id=str(number), **said)
        element.append(_all([_predicate(test, columns[test.feature]) for test in rule.tests]))
        _distribution(element, classes, shares, rows)


def _tree(body: Element, program: FirstMatch, columns: Sequence[str]) -> None:
    """A root with the default, whose first child that holds decides."""
    body.set("missingValueStrategy", "none")  # a comparison with a missing value does not hold
    body.set("noTrueChildStrategy", "returnLastPrediction")
    body.set("splitCharacteristic", "multiSplit")
    root = _add(body, "Node", id="default", score=_label(program.labels[-1]))
    _add(root, "True")
    for number, (rule, value) in enumerate(zip(program.rules, program.labels, strict=False), 1):
        node = _add(root, "Node", id=str(number), score=_label(value))
        node.append(_all([_predicate(test, columns[test.feature]) for test in rule.tests]))


def _distribution(
    parent: Element, classes: Sequence[Label], shares: Sequence[float], counts: Sequence[float]
) -> None:
    for label, share, count in zip(classes, shares, counts, strict=True):
        figures = {"recordCount": repr(count), "confidence": repr(share)}
        _add(parent, "ScoreDistribution", value=_label(label), **figures)


def _all(predicates: Sequence[Element], operator: str = "and") -> Element:
    if len(predicates) < 2:
        return predicates[0] if predicates else Element("True")
    element = Element("CompoundPredicate", booleanOperator=operator)
    element.extend(predicates)
    return element


def _predicate(test: Test, name: str) -> Element:
    if test.fails:
        return Element("False")
    missing = _simple(name, "isMissing")
    if test.asked is None:
        return missing
    if not test.asked:
        return _simple(name, "isNotMissing")
    asked = _all([_comparison(name, operator, value) for operator, value in test.asked])
    return _all([asked, missing], "or") if test.missing else asked


def _comparison(name: str, operator: str, value: Any) -> Element:
    if isinstance(value, float):
        return _simple(name, _FUNCTIONS[operator], value=repr(value))
    word, several = ("equal", "or") if operator == "in" else ("notEqual", "and")
    return _all([_simple(name, word, value=_label(one)) for one in value], several)


def _simple(name: str, operator: str, **value: str) -> Element:
    return Element("SimplePredicate", {"field": name, "operator": operator, **value})
