"""A reader of PMML 4.4, as far as the exports use it, written from the specification."""

import math
import operator
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SPACE = "{http://www.dmg.org/PMML-4_4}"
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "notEqual": operator.ne,
    "lessThan": operator.lt,
    "lessOrEqual": operator.le,
    "greaterThan": operator.gt,
    "greaterOrEqual": operator.ge,
}
FUNCTIONS: dict[str, Callable[..., Any]] = COMPARISONS | {
    "and": lambda *values: all(values),
    "isIn": lambda value, *others: value in others,
    "isNotIn": lambda value, *others: value not in others,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "exp": lambda x: math.exp(x) if x < 709 else math.inf,
    "ln": math.log,
    "abs": abs,
    "min": min,
    "max": max,
}


class Document:
    """``Document(text).predict(row)``: the prediction, and the probabilities by label (None
    without).
    """

    def __init__(self, text: str) -> None:
        self.root = ElementTree.fromstring(text.encode())
        for element in self.root.iter():
            assert element.tag.startswith(SPACE)
            element.tag = element.tag.removeprefix(SPACE)
        assert [child.tag for child in self.root][:2] == ["Header", "DataDictionary"]
        _, _, self.model = self.root
        self.kinds = {
            field.get("name"): field.get("dataType") for field in self.root.iter("DataField")
        }
        self.fields = list(self.root.iter("MiningField"))
        names = [
            *self.kinds,
            *(
                field.get("name")
                for tag in ("DerivedField", "OutputField")
                for field in self.root.iter(tag)
            ),
        ]
        assert len(set(names)) == len(names), "fields of the same name"
        self.target = next(
            field.get("name") for field in self.fields if field.get("usageType") == "target"
        )

    def label(self, text: str) -> Any:
        convert: dict[Any, Callable[[str], Any]] = {
            "string": str,
            "integer": int,
            "double": float,
            "boolean": {"true": True, "false": False}.__getitem__,
        }
        return convert[self.kinds[self.target]](text)

    def predict(self, row: dict[str, Any]) -> tuple[Any, dict[Any, float] | None]:
        values: dict[Any, Any] = {}
        for field in self.fields:
            name = field.get("name")
            if name != self.target:
                values[name] = self.read(str(name), row[str(name)])
                if values[name] is None and field.get("missingValueTreatment") == "returnInvalid":
                    raise ValueError(f"{name!r} is missing")
                treatment = field.get("invalidValueTreatment", "returnInvalid")
                if treatment == "returnInvalid" and not self.is_valid(str(name), values[name]):
                    raise ValueError(f"{name!r} is invalid: {values[name]!r}")
        for derived in self.root.iter("DerivedField"):
            values[derived.get("name")] = evaluate(derived[0], values)
        if self.model.tag == "RuleSetModel":
            return self.first_hit(values)
        if self.model.tag == "TreeModel":
            return self.first_child(values), None
        tables, method = (
            self.model.findall("RegressionTable"),
            self.model.get("normalizationMethod"),
        )
        scores = [self.score(table, values) for table in tables]
        if self.model.get("functionName") == "regression":
            (score,) = scores
            return {"none": score, "exp": math.exp(score) if method == "exp" else 0.0}[
                str(method)
            ], None
        if method == "logit":
            share = FUNCTIONS["/"](1.0, 1.0 + FUNCTIONS["exp"](-scores[0]))
            shares = [share, 1.0 - share]
        else:
            assert method == "softmax"
            powers = [math.exp(score - max(scores)) for score in scores]
            shares = [power / sum(powers) for power in powers]
        labels = [self.label(str(table.get("targetCategory"))) for table in tables]
        found = dict(zip(labels, shares, strict=True))
        label = labels[shares.index(max(shares))]
        for field in self.root.iter("OutputField"):  # in order: each may use the ones before
            if field.get("feature") == "probability":
                values[field.get("name")] = found[self.label(field.attrib["value"])]
            elif field.get("feature") == "transformedValue":
                value = evaluate(field[0], values)
                label = self.label(value) if isinstance(value, str) else value
        return label, found

    def read(self, name: str, value: Any) -> Any:
        """A value of a row; None if it is declared missing."""
        missing = self.declared(name, "Value", property="missing")
        return None if as_text(value) in [one.get("value") for one in missing] else value

    def is_valid(self, name: str, value: Any) -> bool:
        listed = [one.get("value") for one in self.declared(name, "Value", property=None)]
        ranges = self.declared(name, "Interval", closure="closedClosed")
        if value is None or not (listed or ranges):
            return True
        return as_text(value) in listed or any(
            float(one.attrib["leftMargin"]) <= value <= float(one.attrib["rightMargin"])
            for one in ranges
        )

    def declared(self, name: str, tag: str, **attributes: str | None) -> list[Element]:
        (field,) = (one for one in self.root.iter("DataField") if one.get("name") == name)
        return [
            one
            for one in field.findall(tag)
            if all(one.get(key) == value for key, value in attributes.items())
        ]

    def score(self, table: Element, values: dict[Any, Any]) -> float:
        predictors = table.findall("NumericPredictor")
        return float(table.attrib["intercept"]) + sum(
            float(p.attrib["coefficient"]) * values[p.get("name")] for p in predictors
        )

    def first_hit(self, values: dict[Any, Any]) -> tuple[Any, dict[Any, float]]:
        rules = self.model.find("RuleSet")
        assert rules is not None
        assert rules[0].attrib == {"criterion": "firstHit"}
        kinds = self.kinds | {
            d.get("name"): d.get("dataType") for d in self.root.iter("DerivedField")
        }
        decided, score = rules, rules.attrib["defaultScore"]
        for rule in rules.findall("SimpleRule"):
            if holds(rule[0], values, kinds):
                decided, score = rule, rule.attrib["score"]
                break
        shares = {
            self.label(s.attrib["value"]): float(s.attrib["confidence"])
            for s in decided.findall("ScoreDistribution")
        }
        return self.label(score), shares

    def first_child(self, values: dict[Any, Any]) -> float:
        """Of a tree of two levels whose root always holds; see noTrueChildStrategy."""
        assert self.model.get("functionName") == "regression"
        assert self.model.get("noTrueChildStrategy") == "returnLastPrediction"
        assert self.model.get("missingValueStrategy") == "none"
        (root,) = self.model.findall("Node")
        assert root[0].tag == "True"
        kinds = self.kinds | {
            d.get("name"): d.get("dataType") for d in self.root.iter("DerivedField")
        }
        below = (node for node in root.findall("Node") if holds(node[0], values, kinds))
        return float(next(below, root).attrib["score"])


def as_text(value: Any) -> str:
    """A value as PMML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "NaN" if value != value else str(value)


def evaluate(element: Element, values: dict[Any, Any]) -> Any:
    """An expression; a missing value is None."""
    if element.tag == "FieldRef":
        return values[element.get("field")]
    if element.tag == "Constant":
        return constant(element.text or "", element.attrib["dataType"])
    if element.tag == "NormDiscrete":
        value = values[element.get("field")]
        label = str(value).lower() if isinstance(value, bool) else value
        return None if value is None else float(label == element.get("value"))
    assert element.tag == "Apply"
    function, missing = element.get("function"), element.get("mapMissingTo")
    if function == "if":
        branches = [*element][1:] if evaluate(element[0], values) else [*element][2:]
        return evaluate(branches[0], values) if branches else None
    arguments = [evaluate(child, values) for child in element]
    if function in ("isMissing", "isNotMissing"):
        return (arguments[0] is None) == (function == "isMissing")
    if any(argument is None for argument in arguments):
        return {None: None, "true": True, "false": False}[missing]
    return FUNCTIONS[str(function)](*arguments)


def holds(element: Element, values: dict[Any, Any], kinds: dict[Any, Any]) -> bool | None:
    """A predicate: True, False, or None for unknown."""
    if element.tag in ("True", "False"):
        return element.tag == "True"
    if element.tag == "CompoundPredicate":
        parts, decisive = (
            [holds(child, values, kinds) for child in element],
            element.get("booleanOperator") == "or",
        )
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    field, asked = element.get("field"), element.attrib["operator"]
    value = values[field]
    if asked in ("isMissing", "isNotMissing"):
        return (value is None) == (asked == "isMissing")
    given = element.attrib["value"]
    return None if value is None else COMPARISONS[asked](value, constant(given, str(kinds[field])))


def constant(text: str, kind: str) -> Any:
    if kind == "boolean":
        return {"true": True, "false": False}[text]
    return float(text) if kind == "double" else text
