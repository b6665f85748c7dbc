"""A model as one SQL expression."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from jaxrules.data.table import MISSING, Label
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools import checks
from jaxrules.users.export.program import (
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
from jaxrules.users.reasons import reason_words

What = Literal["prediction", "score", "probability", "reasons"]
DialectName = Literal["ansi", "duckdb", "postgres", "sqlite", "snowflake", "bigquery", "spark"]

_LARGEST_EXPONENT = 700.0
"""exp of at most this neither overflows nor underflows, which some databases treat as errors."""
_MOST_PARTS = 900
"""sqlite and DuckDB nest expressions at most 1000 deep: longer sums are sums of sums."""
_MOST_ARGUMENTS = 100
"""sqlite's functions take at most 127 arguments."""
_MOST_COLUMNS = 1000
"""PostgreSQL selects at most 1664 columns, sqlite 2000."""
_PASSES: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


# Dialects


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogatepass")


@dataclass(frozen=True)
class _Dialect:
    """How a database writes and reads names, text and numbers.

    Attributes:
        quote: stands around a name.
        escapes: whether a backslash in text (and in a name, if "names") begins an escape.
        one_name: columns for which it is equal are one column.
        why: what makes them one.
        greatest: the function of the largest of several numbers; "" if unknown.
        double: the type to which a number of a sum is cast, without which the sum may be of
            decimals; "" if a literal with an exponent is of this type.
        untyped: whether a column of numbers can hold text.
        nests: whether a SELECT without FROM, inside an expression, reads the row around it.
    """

    quote: str = '"'
    escapes: Literal["", "text", "names"] = ""
    one_name: Callable[[str], str | bytes] = str
    why: str = ""
    greatest: str = "GREATEST"
    double: str = ""
    untyped: bool = False
    nests: bool = True


_NO_CASE = "which ignores the case of names"
_ASCII_CASE: dict[str, Any] = {"one_name": lambda name: _bytes(name).lower(), "why": _NO_CASE}
_DIALECTS: dict[str, _Dialect] = {
    "ansi": _Dialect(**_ASCII_CASE, greatest="", double="DOUBLE PRECISION"),
    "duckdb": _Dialect(**_ASCII_CASE),
    "postgres": _Dialect(
        one_name=lambda name: _bytes(name)[:63],
        why="which reads 63 bytes of a name",
        double="DOUBLE PRECISION",
    ),
    # SQLite takes a name in double quotes that the table lacks for text.
    "sqlite": _Dialect("`", **_ASCII_CASE, greatest="MAX", untyped=True),
    "snowflake": _Dialect(escapes="text", double="DOUBLE PRECISION", nests=False),
    "bigquery": _Dialect("`", "names", str.lower, _NO_CASE),
    "spark": _Dialect("`", "text", str.lower, _NO_CASE, nests=False),
}


def to_sql(
    model: Any,
    what: What = "prediction",
    *,
    label: Label | None = None,
    table: str | None = None,
    dialect: DialectName = "ansi",
) -> str:
    """The model as one SQL expression, for a SELECT list:
    ``f"SELECT id, {to_sql(model)} AS says FROM people"``.

    Columns have the names that they had in `fit`, quoted. A column of True and False is itself a
    condition, ``"flag"`` or ``NOT "flag"``; an ordered category is text. NULL and NaN are missing
    values. The expression is NULL if a column that it uses has a value that `jaxrules.predict`
    refuses: a missing one where the model was fitted without, an infinite number, or a category
    without a place in the order. Other columns are not read. Numbers are written to read back
    exactly, and sums (of up to 900 rules) have the order of `jaxrules.predict`: scores and labels
    are the same.

    The prediction and the probabilities of more than two classes need every rule in several scores.
    There the expression is a subquery of three steps, ``(SELECT ... FROM (SELECT ... AS score_1
    FROM (SELECT ... AS rule_1)))``: each rule once as 0 or 1, each score once as a weighted sum,
    then the answer. Snowflake and Spark may refuse it: their dialects repeat the rules instead.

    Args:
        model: a rule ensemble, a rule list, or a coordinate path (its last model).
        what: "prediction": the label, value or expected count; "score": see
            `jaxrules.decision_function`; or "probability", for which scores beyond 700 count as
            700. "reasons": of a rule ensemble without linear terms, the text of all reasons of
            `jaxrules.reasons` (points lost against the best case), the most first, separated by
            semicolons; without rules that no row can satisfy.
        label: the class of the score, probability or reasons, None for the second of two. Required
            for more classes; each class has its own expression.
        table: the table's name or alias, put before every column: ``"people"."age"``.
        dialect: the database's SQL. "ansi" has names in double quotes, as DuckDB, PostgreSQL and
            SQLite read them. BigQuery and Spark take double quotes for text: name "bigquery" or
            "spark". Snowflake takes a backslash in text for an escape: name "snowflake".

    Raises:
        TypeError: for anything but a model, or for the score of a rule list.
        ValueError: for an unknown `what`, `label` or `dialect`, the probability of a number, the
            reasons of linear terms, a name that SQL cannot write, or two columns of one name where
            case is ignored.
    """
    what = checks.choice("what", what, get_args(What))
    dialect = checks.choice("dialect", dialect, get_args(DialectName))
    program = program_of(model)
    if what == "prediction" and label is not None:
        raise ValueError(
            "label is only for what='score', 'probability' or 'reasons'; a prediction covers all "
            "classes"
        )
    checks.optional(checks.text, "table", table)
    kind = type(model).__name__
    if what == "score" and isinstance(program, FirstMatch):
        others = "'prediction' or 'probability'" if program.schema.classes else "'prediction'"
        raise TypeError(f"a {kind} has no scores; use what={others}")
    if what == "reasons" and not isinstance(model, RuleEnsemble):
        raise TypeError(f"model is a {kind}, but what='reasons' is for rule ensembles")
    chosen = None if what == "prediction" else class_of(program, label)
    if what == "probability" and chosen is None:
        raise ValueError(
            "model predicts numbers and has no classes; use what='prediction' or 'score'"
        )
    if what == "reasons":
        checks.require(not program.terms, "what='reasons' is for models without linear terms")
    _check_names(program, dialect)
    writer = _Writer(program, _DIALECTS[dialect], table)
    if what == "reasons":
        return writer.guarded(writer.reasons(chosen, reason_words(model.conjunctions)))
    return writer.guarded(writer.expression(what, chosen))


def _check_names(program: Program, dialect: DialectName) -> None:
    """Refuse columns that the database takes for one."""
    names, one = [source.name for source in program.schema.sources], _DIALECTS[dialect].one_name
    for used in (names[f] for f in program.asks):
        for other in names:
            if other == used or one(other) != one(used):
                continue
            raise ValueError(
                f"the columns {used!r} and {other!r} of the model are one in SQL of the dialect "
                f"{dialect!r}, {_DIALECTS[dialect].why}; rename one and fit again, or name the "
                'dialect of a database that distinguishes them ("postgres" and "snowflake" keep '
                "the case)"
            )


# Names and literals


def _writable(text: str) -> str:
    checks.require("\0" not in text, f"SQL cannot write the NUL character in {text!r}; rename it")
    return text


def _escaped(text: str, quote: str) -> str:
    text = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return text.replace("\n", "\\n").replace("\r", "\\r")


def _number(value: float) -> str:
    """A literal of type DOUBLE: the shortest one, or more digits if that lies close to the middle
    of two numbers.
    """
    text = repr(value)
    # A text half a unit in the last place away would also read as the neighbour, if a database
    # rounds a little differently.
    if abs(Decimal(text) - Decimal(value)) > Decimal("0.45") * Decimal(math.ulp(value)):
        text = f"{value:.18e}"
    return text.upper() if "e" in text else f"{text}E0"


_MOST = _number(sys.float_info.max)
"""NaN, which is above all numbers in most databases and fails every comparison in BigQuery, is
never at most this, in none of them."""


_AND, _OR, _PLUS, _CONCATENATED = "\n AND ", "\n OR ", "\n + ", "\n || "


def _joined(parts: Sequence[str], operator: str) -> str:
    blocks = [operator.join(parts[i : i + _MOST_PARTS]) for i in range(0, len(parts), _MOST_PARTS)]
    return blocks[0] if len(blocks) == 1 else operator.join(f"({block})" for block in blocks)


class _Writer:
    """Writes the parts of a program."""

    def __init__(self, program: Program, dialect: _Dialect, table: str | None) -> None:
        self.program, self.dialect, schema = program, dialect, program.schema
        self.features = schema.features
        prefix = "" if table is None else self.name(table) + "."
        self.columns = [prefix + self.name(f.source or f.name) for f in self.features]
        # whether a column may hold NaN where the expression is not NULL
        self.nan = [
            feature.kind in ("number", "special")
            and schema.companions.get(f, f) not in program.refused
            for f, feature in enumerate(self.features)
        ]
        self.nan += [False] * len(program.directions)
        # Directions are numbered after the columns, from which `times` makes them.
        self.columns += [
            f"({' + '.join(self.times(term, 0) for term in d)})" for d in program.directions
        ]

    def name(self, name: str) -> str:
        quote = self.dialect.quote
        if self.dialect.escapes == "names":
            return quote + _escaped(_writable(name), quote) + quote
        return quote + _writable(name).replace(quote, 2 * quote) + quote

    def literal(self, label: Label) -> str:
        if isinstance(label, str):
            text, quote = _writable(label), "'"
            text = _escaped(text, quote) if self.dialect.escapes else text.replace(quote, 2 * quote)
            return quote + text + quote
        # TRUE, FALSE or an integer, if not a number.
        return _number(label) if isinstance(label, float) else str(label).upper()

    def double(self, text: str) -> str:
        """An operand that makes a sum or a product one of doubles."""
        return f"CAST({text} AS {self.dialect.double})" if self.dialect.double else text

    def guarded(self, text: str) -> str:
        """An expression that is NULL if a column has a value that the model refuses."""
        allowed: list[str] = []
        refused: list[str] = []
        for f, refuses in self.program.asks.items():
            column, feature = self.columns[f], self.features[f]
            if feature.levels is not None:
                listed = f"({', '.join(map(self.literal, feature.levels))})"
                if refuses:
                    allowed.append(f"{column} IN {listed}")
                else:
                    refused.append(f"{column} NOT IN {listed}")
            elif feature.kind == "number" and refuses:
                allowed.append(f"{column} BETWEEN -{_MOST} AND {_MOST}")
            # "column > largest" would refuse NaN too, which most databases sort above all numbers.
            elif feature.kind == "number":  # infinite; both are false for NaN
                refused += [f"{column} < -{_MOST}", f"0.0E0 - {column} < -{_MOST}"]
            elif refuses:
                allowed.append(f"{column} IS NOT NULL")
            if feature.kind == "number" and self.dialect.untyped:
                refused.append(f"TYPEOF({column}) NOT IN ('integer', 'real', 'null')")
        if not allowed and not refused:
            return text
        cases = [f"WHEN {_joined(refused, _OR)} THEN NULL"] if refused else []
        cases.append(f"WHEN {_joined(allowed, _AND)} THEN {text}" if allowed else f"ELSE {text}")
        return f"CASE {' '.join(cases)} END"

    def expression(self, what: What, chosen: Label | None) -> str:
        program = self.program
        if isinstance(program, FirstMatch):
            return self.first_match(program, chosen)
        assert isinstance(program, Sum)
        outputs = range(len(program.intercept))
        if what == "score":
            k = program.scored.index(chosen) if chosen in program.scored else None
            return f"(-{self.score(program, 0)})" if k is None else self.score(program, k)
        n_columns = len(program.rules) + len(program.terms)
        in_steps = self.dialect.nests and len(outputs) > 1 and 0 < n_columns <= _MOST_COLUMNS
        names = self.step_names() if in_steps else None
        scores = [self.score(program, k, names) for k in outputs]
        named = scores if names is None else [names.format("score", k + 1) for k in outputs]
        if what == "prediction":
            answer = self.prediction(program, named)
        else:
            answer = _probability(program, named, chosen)
        if names is None:
            return answer
        rules = [_indicator(self.holds(rule), "1", "0") for rule in program.rules]
        columns = _listed(names, {"rule": rules, "term": list(map(self.value, program.terms))})
        summed = _listed(names, {"score": scores})
        return (
            f"(SELECT {answer}\nFROM (SELECT\n {summed}\nFROM (SELECT\n {columns}) "
            f"AS rules) AS scores)"
        )

    def step_names(self) -> str:
        """How the steps name their columns, as none of the model's columns is named."""
        taken, end = {source.name.lower() for source in self.program.schema.sources}, ""
        while any(re.fullmatch(rf"(rule|term|score)_\d+{end}", name) for name in taken):
            end += "_"
        return "{}_{}" + end

    def reasons(self, chosen: Label | None, words: Sequence[tuple[str, str]]) -> str:
        """The reasons towards a class as text, the most points first; `words`: see
        `reason_words`.
        """
        program = self.program
        assert isinstance(program, Sum)
        scored = program.scored
        output, sign = (scored.index(chosen), 1) if chosen in scored else (0, -1)
        # A rule adds its whole weight or nothing, so that one order of the rules fits all rows.
        rules = sorted(program.rules, key=lambda rule: -abs(rule.weights[output]))
        parts = []
        for rule in rules:
            if weight := sign * rule.weights[output]:
                text = self.literal(f"; {words[rule.position][weight > 0]}")
                says = f"{text} ELSE ''" if weight > 0 else f"'' ELSE {text}"
                parts.append(f"CASE WHEN {self.holds(rule)} THEN {says} END")
        # Without the separator of the first one.
        return f"SUBSTR({_joined(parts, _CONCATENATED)}, 3)" if parts else "''"

    # Rules

    def holds(self, rule: Rule) -> str:
        return " AND ".join(map(self.test, rule.tests)) or "1 = 1"

    def test(self, test: Test) -> str:
        column, special = self.columns[test.feature], self.special_values(test.feature)
        if test.asked is None:
            return f"({self.absent(test.feature)})" if test.missing else "1 = 0"
        parts = [self.comparison(column, sign, value) for sign, value in test.asked]
        if test.missing:
            return f"({' AND '.join(parts)} OR {self.absent(test.feature)})"
        # A special value that passes as a number must be excluded by name.
        if any(all(_PASSES[sign](one, end) for sign, end in test.asked) for one in special):
            parts.append(self.comparison(column, "not in", special))
        # Without an upper end, NaN would pass where it is above all numbers.
        if self.nan[test.feature] and all(sign in (">", ">=", "not in") for sign, _ in test.asked):
            parts.append(f"{column} <= {_MOST}")
        return " AND ".join(parts) or f"{column} IS NOT NULL"  # NULL passes no comparison

    def special_values(self, f: int) -> Sequence[float]:
        """The values at which a column has no number."""
        return self.features[f].special_values or () if f < len(self.features) else ()

    def absent(self, f: int) -> str:
        """Whether a column has no value, or a special one."""
        column, special = self.columns[f], self.special_values(f)
        parts = [self.comparison(column, "in", special)] if special else []
        parts += [f"{column} IS NULL", *[f"NOT {column} <= {_MOST}"] * self.nan[f]]
        return " OR ".join(parts)

    def comparison(self, column: str, operator: str, value: Any) -> str:
        if isinstance(value, float):
            return f"{column} {operator.replace('==', '=')} {_number(value)}"
        if isinstance(value[0], bool):  # sqlite has 1 and 0 for them
            return column if value[0] else f"NOT {column}"
        listed = list(map(self.literal, value))
        if len(listed) == 1:
            return f"{column} {'=' if operator == 'in' else '<>'} {listed[0]}"
        return f"{column} {operator.upper()} ({', '.join(listed)})"

    def first_match(self, program: FirstMatch, chosen: Label | None) -> str:
        if chosen is None:
            says = [self.literal(label) for label in program.labels]
        else:
            place = (program.schema.classes or ()).index(chosen)
            says = [_number(shares[place]) for shares in program.shares]
        rules = zip(program.rules, says, strict=False)
        cases = [f"WHEN {self.holds(rule)} THEN {said}" for rule, said in rules]
        return "\n ".join(["CASE", *cases, f"ELSE {says[-1]} END"]) if cases else says[-1]

    # Sums

    def times(self, term: Term, output: int) -> str:
        """weight * value; NULL if a number is missing."""
        weight = _number(term.weights[output])
        if term.category is not None:
            return _indicator(self.in_category(term), weight)
        return f"{self.double(weight)} * {self.value(term)}"

    def in_category(self, term: Term) -> str:
        """Whether the column has the category of the term."""
        assert term.category is not None
        if term.category == MISSING:
            return self.absent(term.feature)
        asked = one_of(self.features[term.feature], term.category)
        return self.test(Test(term.feature, (asked,), False))

    def value(self, term: Term) -> str:
        """The number, clipped; NULL if it is missing. Of a category, 1 or 0."""
        if term.category is not None:
            return _indicator(self.in_category(term), "1", "0")
        number = self.as_number(term.feature)
        if term.origin:
            number = f"({number} - {self.double(_number(term.origin))})"
        ends = [("<", term.lower), (">", term.upper)]
        cases = [
            f"WHEN {number} {side} {_number(end)} THEN {_number(end)}"
            for side, end in ends
            if math.isfinite(end)
        ]
        return f"CASE {' '.join(cases)} ELSE {number} END" if cases else number

    def as_number(self, f: int) -> str:
        """A number, or the place of a level; NULL if missing."""
        column, feature, special = self.columns[f], self.features[f], self.special_values(f)
        if feature.levels is None:
            tests = [self.comparison(column, "not in", special)] if special else []
            tests += [f"{column} <= {_MOST}"] * self.nan[f]
            return f"CASE WHEN {' AND '.join(tests)} THEN {column} END" if tests else column
        if feature.is_boolean:
            return f"CASE WHEN {column} THEN 1.0E0 WHEN NOT {column} THEN 0.0E0 END"
        cases = [
            f"WHEN {self.literal(str(level))} THEN {_number(float(place))}"
            for place, level in enumerate(feature.levels)
        ]
        return f"CASE {column} {' '.join(cases)} END"

    def score(self, program: Sum, output: int, names: str | None = None) -> str:
        """The sum; of the columns that stand for the rules and terms, if they have names."""
        parts = [_number(program.intercept[output])]
        for r, rule in enumerate(program.rules, 1):
            if rule.weights[output]:
                weight = _number(rule.weights[output])
                of_step = names and f"{weight} * {names.format('rule', r)}"
                parts.append(of_step or _indicator(self.holds(rule), weight))
        for t, term in enumerate(program.terms, 1):
            if term.weights[output]:
                weight = self.double(_number(term.weights[output]))
                of_step = names and f"{weight} * {names.format('term', t)}"
                text = of_step or self.times(term, output)
                never_null = term.category is not None or term.feature in program.refused
                parts.append(text if never_null else f"COALESCE({text}, 0.0E0)")
        # The first part of every block makes its sum one of doubles.
        parts[::_MOST_PARTS] = map(self.double, parts[::_MOST_PARTS])
        return f"({_joined(parts, _PLUS)})"

    def prediction(self, program: Sum, scores: Sequence[str]) -> str:
        if program.schema.classes is None:
            return f"EXP{scores[0]}" if program.link == "log" else scores[0]
        labels = list(map(self.literal, program.schema.classes))
        if len(scores) == 1:
            second = f"{scores[0]} > {_number(program.threshold)}"
            return f"CASE WHEN {second} THEN {labels[1]} ELSE {labels[0]} END"
        largest, head = self.dialect.greatest, "CASE"
        if largest and len(scores) <= _MOST_ARGUMENTS:
            head, conditions = f"CASE {largest}({', '.join(scores)})", list(scores[:-1])
        else:  # earlier classes are excluded, so it must be no smaller than later ones
            conditions = [
                " AND ".join(f"{score} >= {other}" for other in scores[k + 1 :])
                for k, score in enumerate(scores[:-1])
            ]
        # the first of the largest
        pairs = zip(conditions, labels, strict=False)
        cases = [f"WHEN {condition} THEN {label}" for condition, label in pairs]
        return "\n ".join([head, *cases, f"ELSE {labels[-1]} END"])


def _indicator(condition: str, holds: str, fails: str = "0.0E0") -> str:
    return f"CASE WHEN {condition} THEN {holds} ELSE {fails} END"


def _listed(names: str, columns: dict[str, list[str]]) -> str:
    """The columns of a SELECT, numbered."""
    return ",\n ".join(
        f"{text} AS {names.format(kind, place)}"
        for kind, texts in columns.items()
        for place, text in enumerate(texts, 1)
    )


def _probability(program: Sum, scores: Sequence[str], chosen: Label | None) -> str:
    factor = 2 if program.link == "exponential" else 1
    margins = [f"{factor}.0E0 * {score}" if factor > 1 else score for score in scores]
    # Differences of two scores are at most twice the largest one: if that is small, nothing is
    # clipped.
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
        # p_k = 1 / (1 + sum_{j != k} exp(f_j - f_k)), the softmax without a common exponent.
        others = [
            exp(f"{margin} - {margins[place]}") for k, margin in enumerate(margins) if k != place
        ]
        return f"(1.0E0 / (1.0E0 + {' + '.join(others)}))"
    own = [f"1.0E0 / (1.0E0 + {exp('-' + margin)})" for margin in margins]
    return f"({own[place]} / ({' + '.join(own)}))"


def _largest(program: Sum, output: int) -> float:
    """An upper bound on the size of the score."""
    of_rules = sum(abs(rule.weights[output]) for rule in program.rules)
    total = abs(program.intercept[output]) + of_rules
    for term in program.terms:
        # An indicator is at most 1, a clipped number at most its larger end, an unclipped one
        # unbounded.
        size = 1.0 if term.category is not None else max(-term.lower, term.upper)
        total += abs(term.weights[output]) * size if term.weights[output] else 0.0
    return total
