"""The printed text of a rule decides every training row as the model does: it is parsed here."""

import ast
import html
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import jaxrules as jr
from jaxrules.rules.conditions import propositions_of
from jaxrules.tools import display

pandas = pytest.importorskip("pandas")

Bools = np.ndarray[Any, np.dtype[np.bool_]]
SIZES = ("S", "M", "L")
CODES = {"months": [-8, -7]}


class Reader:
    """Evaluates rules in text form on the rows of a frame."""

    def __init__(self, frame: Any) -> None:
        self.raw = {display.name_text(str(name)): frame[name] for name in frame}

    def rule(self, text: str) -> Bools:
        every = np.ones(len(next(iter(self.raw.values()))), bool)
        parts = [] if text == "always" else split(text, " & ")
        return np.logical_and.reduce([every, *map(self.condition, parts)])

    def condition(self, text: str) -> Bools:
        if text.startswith("(") and closes(text) == len(text) - 1:
            inner = text[1:-1]
            if inner.endswith(" and not special"):
                inner = inner.removesuffix(" and not special")
                return self.condition(inner) & ~self.lacks("special", inner)
            first, *others = split(inner, " or ")
            alternatives = [
                self.lacks(one, first) if one in ("special", "missing") else self.condition(one)
                for one in others
            ]
            return np.logical_or.reduce([self.condition(first), *alternatives])
        if text.endswith(" and not missing"):
            text = text.removesuffix(" and not missing")
            return self.condition(text) & ~self.lacks("missing", text)
        if text in self.raw:
            return np.equal(self.raw[text], True)
        if (name := text.removeprefix("not ")) in self.raw:
            return np.equal(self.raw[name], False)
        if (name := text.removeprefix("any ")) in self.raw:
            return np.ones(len(self.raw[name]), bool)
        for ending, holds in {
            " is not missing": lambda name: ~self.lacks("missing", name),
            " is missing": lambda name: self.lacks("missing", name),
            " is special": lambda name: self.lacks("special", name),
            " is a number": lambda name: ~np.isnan(self.value(name)),
            " never": lambda name: np.zeros(len(self.raw[name]), bool),
        }.items():
            if text.endswith(ending):
                return holds(text.removesuffix(ending))
        for joint, listed in ((" not in ", True), (" in ", True), (" != ", False), (" == ", False)):
            name, *rest = split(text, joint)
            if rest and name in self.raw and self.is_set(name):
                texts = split(rest[0][1:-1], ", ") if listed else rest
                raw = [str(v) for v in self.raw[name]]
                if name in CODES:
                    raw = [f"{v:.0f}" for v in self.raw[name]]
                inside = np.isin(raw, list(map(word, texts)))
                return ~inside if joint in (" not in ", " != ") else inside
        return self.comparison(text)

    def is_set(self, name: str) -> bool:
        return name in CODES or self.raw[name].dtype.kind not in "fi"

    def comparison(self, text: str) -> Bools:
        pieces = pieces_of(text)
        if len(pieces) == 5:
            low, first, subject, second, high = pieces
            return self.comparison(f"{subject} {second} {high}") & self.comparison(
                f"{subject} {'>=' if first == '<=' else '>'} {low}"
            )
        subject, operator, end = pieces
        if subject in self.raw and self.raw[subject].dtype.name == "category":
            value, bound = self.value(f"rank({subject})"), float(SIZES.index(word(end)))
        else:
            value, bound = self.value(subject), float(end)
        compare = {
            "<=": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater,
            "==": np.equal,
        }  # fmt: skip
        with np.errstate(invalid="ignore"):
            return compare[operator](value, bound)

    def value(self, subject: str) -> Any:
        """A weighted sum, NaN where a number is missing or special."""
        if subject in self.raw:
            x = self.raw[subject].to_numpy(np.float64)
            return np.where(np.isin(x, CODES.get(subject, [])), np.nan, x)
        if subject.startswith("number(") and closes(subject, 6) == len(subject) - 1:
            return self.value(subject[7:-1])
        if subject.startswith("rank(") and closes(subject, 4) == len(subject) - 1:
            codes = self.raw[subject[5:-1]].cat.codes.to_numpy(np.float64)
            return np.where(codes < 0, np.nan, codes)
        if subject.startswith("[") and subject.endswith("]"):
            name = subject[1:-1]
            if name in self.raw and self.raw[name].dtype == object:
                return self.raw[name].map({True: 1.0, False: 0.0}).to_numpy(np.float64)
            return self.condition(name).astype(np.float64)
        total: Any = 0.0
        free = set(outside(subject))
        starts = [m.start() for m in re.finditer(r" [+-] ", subject) if m.start() in free]
        ends = [-1, *starts, len(subject)]
        for term in (subject[a + 1 : b] for a, b in pairwise(ends)):
            sign, rest = (-1.0, term[2:]) if term.startswith("- ") else (1.0, term)
            if term.startswith("-") and not term.startswith("- "):
                sign, rest = -1.0, term[1:]
            rest = rest.removeprefix("+ ")
            weight, _, atom = rest.partition(" ")
            if not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", weight):
                weight, atom = "1", rest
            if measured := re.fullmatch(r"\((.*) ([+-]) (\S+)\)", atom):
                name, side, origin = measured.groups()
                value = self.value(name) - float(f"{'-' if side == '+' else ''}{origin}")
            else:
                value = self.value(atom)
            total = total + sign * float(weight) * value
        return total

    def lacks(self, what: str, text: str) -> Bools:
        """Which rows lack a value in some column of a condition; an indicator in a sum has one."""
        names = [name for name in self.raw if name in re.sub(r"\[[^]]* (==|is) [^]]*\]", "", text)]
        masks = [
            np.isin(self.raw[name].to_numpy(np.float64), CODES.get(name, []))
            if what == "special" and name in CODES
            else self.raw[name].isna().to_numpy() & (what == "missing")
            for name in names
        ]
        return np.logical_or.reduce(masks)


def outside(text: str) -> Iterator[int]:
    """The places of a text that lie outside of quotes and brackets."""
    depth, quote = 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[place - 1] != "\\" else quote
        elif letter in "'\"" and (place == 0 or text[place - 1] in " ({["):
            quote = letter
        elif letter in "({[":
            depth += 1
        elif letter in ")}]":
            depth -= 1
        elif depth == 0:
            yield place


def split(text: str, joint: str) -> list[str]:
    free = set(outside(text))
    at = [m.start() for m in re.finditer(re.escape(joint), text) if m.start() in free]
    ends = [0, *(place + len(joint) for place in at)]
    return [text[a:b] for a, b in zip(ends, [*at, len(text)], strict=True)]


def pieces_of(text: str) -> list[str]:
    """Operands and operators in turn."""
    free = set(outside(text))
    found = [m for m in re.finditer(r" (<=|>=|<|>|==) ", text) if m.start() in free]
    ends = [(0, 0), *(m.span() for m in found), (len(text), len(text))]
    operands = [text[a:b] for (_, a), (b, _) in pairwise(ends)]
    return [
        operands[0],
        *(part for m, one in zip(found, operands[1:], strict=True) for part in (m[1], one)),
    ]


def closes(text: str, start: int = 0) -> int:
    """The place of the bracket that closes the one at `start`."""
    depth = np.cumsum([(letter == "(") - (letter == ")") for letter in text[start:]])
    return start + int(np.argmin(depth))


def word(text: str) -> str:
    return str(ast.literal_eval(text)) if text[0] in "'\"" else text


def frame_of(seed: int, missing: bool) -> Any:
    """Columns of every kind, some far from 0 or with numbers close together, and odd names."""
    rng = np.random.default_rng(seed)
    n = 240
    months = rng.integers(0, 40, n).astype(float)
    months[rng.random(n) < 0.3] = -7
    months[rng.random(n) < 0.2] = -8
    frame = pandas.DataFrame(
        {
            "age": rng.normal(size=n) - 1000,
            "0": 1.7e9 + rng.integers(0, 1000, n) / 7,
            "a=b & c <= 3": 0.4 + 2.0**-53 * rng.integers(0, 99, n),
            "length (cm)": 1e-7 * rng.normal(size=n),
            "months": months,
            "not a job": rng.choice(["cook", "a, b", "don't", "x or y"], n),
            "flag": rng.random(n) < 0.5,
            "size": pandas.Categorical(rng.choice(SIZES, n), SIZES, ordered=True),
        }
    )
    signal = (frame["age"] > -1000.3).astype(int) + (frame["0"] > 1.7e9 + 70) + frame["flag"]
    signal += frame["a=b & c <= 3"] > 0.4 + 2.0**-53 * 50
    signal += (months > 20) | (months == -8)
    y = np.where(signal + rng.normal(size=n) > 2, "yes", "no")
    if missing:
        for name in ("age", "not a job", "size"):
            frame.loc[rng.random(n) < 0.1, name] = None
    return frame, y


FITS = {
    "boosting": lambda X, y, **o: jr.boosting.fit(X, y, **o),
    "boosting, all cut points": lambda X, y, **o: jr.boosting.fit(
        X, y, max_cut_points=None, max_rules=2, **o
    ),
    "boosting, oblique": lambda X, y, **o: jr.boosting.fit(X, y, max_nonzeros=2, max_rules=4, **o),
    "lltboost": lambda X, y, **o: jr.lltboost.fit(X, y, max_rules=4, **o),
    "ltrnet": lambda X, y, **o: jr.ltrnet.fit(X, y, restarts=1, **o),
    "rulefit": lambda X, y, **o: jr.rulefit.fit(X, y, **o),
    "rulefit, own forest": lambda X, y, **o: jr.rulefit.fit(
        X, y, rules=RandomForestClassifier(10, max_depth=4, random_state=0), **o
    ),
    "lire": lambda X, y, **o: jr.lire.fit(X, y, rules="forest", **o),
    "glrm": lambda X, y, **o: jr.glrm.fit(X, y, **o),
    "ssrl": lambda X, y, **o: jr.ssrl.fit(X, y, **o),
    "regression_list": lambda X, y, **o: jr.regression_list.fit(
        X, y == y[0], literal_penalty=0.001, **o
    ),
    "exact_list": lambda X, y, **o: jr.exact_list.fit(X, y, max_rules=2, time_limit=5, **o),
    "drnet": lambda X, y, **o: jr.drnet.fit(X, y, **o),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_the_text_of_a_rule_decides_as_the_model_does(name: str, missing: bool) -> None:
    frame, y = frame_of(len(name), missing)
    rule = "own_category" if missing else "refuse"
    table = jr.as_table(frame, missing=rule, special_values=CODES)
    rules = FITS[name](table, y, missing=rule).model.conjunctions
    assert len(rules)
    read, holds = Reader(frame), rules.satisfied(table)
    for r in range(len(rules)):
        np.testing.assert_array_equal(read.rule(rules.describe(r)), holds[:, r], rules.describe(r))


def test_the_text_of_every_proposition_and_node_decides_as_it_does() -> None:
    for missing in (False, True):
        frame, y = frame_of(0, missing)
        rule = "own_category" if missing else "refuse"
        table = jr.as_table(frame, missing=rule, special_values=CODES)
        forest = RandomForestClassifier(5, random_state=0).fit(table.one_hot()[0], y)
        for rules in (
            propositions_of(table),
            propositions_of(table, max_cut_points=7),
            jr.extract_rules(jr.default_forest(table, y, n_trees=5), table),
            jr.extract_rules(forest, table),
        ):
            read, holds = Reader(frame), rules.satisfied(table)
            for r in range(len(rules)):
                text = rules.describe(r)
                np.testing.assert_array_equal(read.rule(text), holds[:, r], text)


def test_thresholds_far_from_zero_decide_every_row() -> None:
    X = -1000 + np.random.default_rng(0).normal(size=(100, 1))
    for most in (20, None):
        rules = propositions_of(jr.as_table(X), max_cut_points=most)
        read = Reader(pandas.DataFrame({"x0": X[:, 0]}))
        holds = rules.satisfied(jr.as_table(X))
        assert all((read.rule(rules.describe(r)) == holds[:, r]).all() for r in range(len(rules)))


@pytest.mark.parametrize(
    "name", ["age", "mean radius", "length (cm)", "x0", "2nd floor", "R-2", "%x"]
)
def test_names_of_words_are_not_quoted(name: str) -> None:
    assert display.name_text(name) == name


@pytest.mark.parametrize(
    "name",
    ["0", "-1", "1e5", "2 b", "nan", "inf", "a=b & c <= 3", "a<b", "R&D", "not x", "x or y", "is x",
     "a AND b", "any x", "x never", "always", "number(x)", "rank(x)", "[x]", "(x", "a - b", " x",
     "x ", "", "x\ny", "don't", 'the "x"', "{a}", "a, b", "!x"],
)  # fmt: skip
def test_other_names_are_quoted_wherever_rules_are_text(name: str) -> None:
    quoted = repr(name)
    table = jr.as_table({name: [0.0, 1, 2, 3] * 10, "b": [True, False] * 20})
    y = np.array([0, 0, 1, 1] * 10)
    model = jr.boosting.fit(table, y, max_rules=1).model
    assert model.conjunctions.describe(0) in (f"{quoted} <= 1", f"{quoted} >= 2")
    assert f"{quoted} " in str(model)
    assert f"{quoted} " in str(jr.explain(model, table[:4]))
    assert html.escape(quoted) in model._repr_html_()
