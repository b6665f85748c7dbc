"""Intervals against other programs, the rule of the verdicts, and the papers' claims on results that
are not theirs.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import paper_reproductions
from paper_reproductions import claims
from paper_reproductions.claims import Comparison, Estimate
from paper_reproductions.framework import (
    Cell,
    Claim,
    Exhibit,
    Experiment,
    Paper,
    Results,
    Rows,
    Store,
)
from paper_reproductions.framework import Settings as Asked
from paper_reproductions.lire import claims as lire
from paper_reproductions.lltboost import claims as lltboost
from paper_reproductions.papers import archive_of, available_papers, load_paper
from paper_reproductions.report import CLAIMS, claims_table, write
from paper_reproductions.sections import Section

PAPERS = [name for name in available_papers() if load_paper(name).claims]

finite = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 3))


# Intervals


@given(st.lists(finite, min_size=2, max_size=12))
def test_a_mean_has_the_t_interval(values):
    found = claims.mean(values)
    assert found.low <= found.value <= found.high
    if np.ptp(values) > 1e-6:
        expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", [*range(1, 16), 40])
def test_a_median_lies_between_the_closest_order_statistics_that_suffice(n):
    """By counting: the interval of the k-th value from either end misses the median if fewer than
    k values lie on one side.
    """
    values = np.arange(n, dtype=float)
    found = claims.median(values[::-1])
    missed = [2 * sum(math.comb(n, j) for j in range(k)) / 2**n for k in range(n + 1)]
    most = max((k for k in range(1, n // 2 + 1) if missed[k] <= 0.05), default=0)
    ends = (values[most - 1], values[n - most]) if most else (-math.inf, math.inf)
    assert (found.value, found.low, found.high) == (np.median(values), *ends)


def test_a_median_may_be_infinite():
    found = claims.median([1.0, 2.0, *[math.inf] * 8])
    assert (found.value, found.low, found.high) == (math.inf, 2.0, math.inf)


@pytest.mark.parametrize(("hits", "total"), [(0, 5), (5, 5), (3, 7), (24, 24), (25, 40)])
def test_a_share_has_the_interval_of_clopper_and_pearson(hits, total):
    found = claims.share(hits, total)
    expected = stats.binomtest(hits, total).proportion_ci(0.95, "exact")
    np.testing.assert_allclose((found.low, found.high), expected, atol=1e-12)


def test_printed_means_are_compared_by_welch():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(1.0, 2.0, 10), rng.normal(0.0, 1.0, 10)
    found = claims.against_printed(ours, theirs.mean(), theirs.std(ddof=1), 10)
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose((found.low, found.high), expected)
    assert claims.against_printed([3.0, 3.0], 1.0, 0.0, 10) == claims.exactly(2.0)


@pytest.mark.parametrize("estimate", [claims.mean([1.0]), claims.median([1.0] * 5)])
def test_too_few_values_decide_nothing(estimate):
    for bounds in ({"above": 0.0}, {"below": 0.0}, {"above": 0.5, "below": 1.5}):
        assert Comparison("x", estimate, **bounds).outcome == "undecided"
    assert Comparison("x", claims.share(0, 0), above=0.5).outcome == "undecided"


# The rule


@given(st.tuples(finite, finite, finite).map(sorted), st.tuples(finite, finite).map(sorted))
def test_an_outcome_is_where_the_interval_lies(found, bounds):
    (low, value, high), (above, below) = found, bounds
    outcome = Comparison("x", Estimate(value, low, high), above, below).outcome
    points = np.linspace(low, high, 33)
    inside = (above < points) & (points < below)
    if outcome == "shown":
        assert inside.all()
    elif outcome == "against":
        assert not inside.any()
    else:
        assert low <= above <= high or low <= below <= high


def _with(shown: int, against: int, undecided: int) -> list[Comparison]:
    ends = [(1.0, 2.0)] * shown + [(-2.0, -1.0)] * against + [(-1.0, 1.0)] * undecided
    return [Comparison("x", Estimate(sum(pair) / 2, *pair), above=0.0) for pair in ends]


@pytest.mark.parametrize(
    ("outcomes", "needed", "expected"),
    [
        ((3, 0, 0), None, "confirmed"),
        ((2, 0, 1), None, "in part"),
        ((2, 1, 0), None, "in part"),
        ((2, 2, 0), None, "not confirmed"),
        ((0, 0, 3), None, "not confirmed"),
        ((0, 3, 0), None, "not confirmed"),
        ((4, 2, 0), 4, "confirmed"),
        ((3, 0, 3), 4, "in part"),
        ((0, 0, 0), None, "not measured"),
    ],
)
def test_the_verdict_counts_outcomes(outcomes, needed, expected):
    assert claims.verdict(_with(*outcomes), needed) == expected
    said = claims.in_words(_with(*outcomes), needed)
    assert (f"({needed} are claimed)" in said) is (needed is not None)


def test_many_comparisons_name_their_exceptions():
    text = claims.in_words(_with(12, 1, 1))
    assert text.startswith("Shown in 12 of 14. Against: x -1.500 [-2.000, -1.000].")
    assert "Undecided: x +0.000 [-1.000, +1.000]." in text
    assert "from x +1.500" in text


# The papers


@pytest.mark.parametrize("name", PAPERS)
def test_claims_name_an_exhibit_and_stand_in_the_overview_as_the_archive_has_them(name):
    paper, archive = load_paper(name), archive_of(name)
    results = Results(archive, archive.settings)
    assert {claim.behind for claim in paper.claims} <= {one.name for one in paper.exhibits}
    docs = Path(paper_reproductions.__file__).parents[1] / "docs"
    assert claims_table(paper, results) in (docs / "reproductions.md").read_text("utf-8")
    report = (docs / "reproductions" / name / "report.md").read_text("utf-8")
    first = re.findall(r"^## (.*)$", report, re.MULTILINE)[0]
    assert first == CLAIMS
    for claim in paper.claims:
        found = claim.weighed(results)
        assert f'"{claim.sentence}" ({claim.section}): **{found.verdict}**' in report
        assert str(found) in report
        assert found.verdict != "not measured"
        assert all(one.above > -math.inf or one.below < math.inf for one in found.comparisons)


MEASURED = (
    "accuracy", "support", "local_support", "ratio", "seconds", "cpu_seconds", "score",
    "label_score", "as_described", "inner_score", "uncertified", "risk", "error", "complexity",
    "gap", "cost", "half_cost", "literals", "objective",
)  # fmt: skip


class Noise(Results):
    """Archived results with random numbers of any order in place of those measured."""

    def __init__(self, name: str, seed: int) -> None:
        archive = archive_of(name)
        super().__init__(archive, archive.settings)
        self.rng = np.random.default_rng(seed)

    def __getitem__(self, experiment: Experiment) -> Rows:
        rows = []
        for row in super().__getitem__(experiment):
            random = {m: 10 ** float(self.rng.uniform(-6, 3)) for m in MEASURED if m in row}
            if "steps" in row:
                random["steps"] = int(self.rng.integers(1, 6))
            rows.append({**row, **random})
        return Rows(rows)


@pytest.mark.parametrize("name", PAPERS)
def test_no_verdict_is_confirmed_whatever_is_measured(name):
    """Numbers at random, and every confirmed claim loses its verdict."""
    archive = archive_of(name)
    results = Results(archive, archive.settings)
    left = [c for c in load_paper(name).claims if c.weighed(results).verdict == "confirmed"]
    for seed in range(4):
        noise = Noise(name, seed)
        left = [claim for claim in left if claim.weighed(noise).verdict == "confirmed"]
    assert not [claim.sentence for claim in left]


@pytest.mark.parametrize("name", PAPERS)
def test_nothing_is_claimed_of_nothing(name, tmp_path):
    empty = Results(Store(tmp_path), Asked())
    for claim in load_paper(name).claims:
        assert claim.weighed(empty).verdict == "not measured", claim.sentence


class Swapped(Results):
    """Archived results of which two methods have each other's numbers."""

    def __init__(self, name: str, first: str, second: str) -> None:
        archive = archive_of(name)
        super().__init__(archive, archive.settings)
        self.names = {first: second, second: first}

    def __getitem__(self, experiment: Experiment) -> Rows:
        return Rows(
            {**row, "method": self.names.get(str(row.get("method")), row.get("method"))}
            for row in super().__getitem__(experiment)
        )


@pytest.mark.parametrize(
    ("name", "first", "second", "section", "word"),
    [
        ("lire", "LIRE, published search", "RuleFit", "Section 5.3", "lower support sizes than"),
        ("lire", "LIRE, published search", "GLRM", "Section 5.3", "stably achieved lower"),
        ("optimal_rule_boosting", "optimal", "greedy", "Section 4", "sign-tests"),
        ("optimal_rule_boosting", "optimal", "greedy", "Abstract", "consistently outperforms"),
        ("lltboost", "LLTBoost", "TGB", "Section 1", "more than two"),
    ],
)
def test_methods_that_trade_places_trade_verdicts(name, first, second, section, word):
    (claim,) = [c for c in load_paper(name).claims if c.section == section and word in c.sentence]
    archive = archive_of(name)
    before = claims.counts(claim.compare(Results(archive, archive.settings)))
    after = claims.counts(claim.compare(Swapped(name, first, second)))
    assert before["shown"] > before["against"]
    assert after["shown"] < before["shown"]
    assert after["against"] > before["against"]


def test_curves_of_accuracy_are_compared_where_both_have_models():
    def curve(sizes, offset, fold):
        return [{"fold": fold, "support": n, "accuracy": offset + 0.1 * math.log(n)} for n in sizes]

    first = Rows([*curve((2, 8, 64), 0.3, 0), *curve((2, 3), 0.3, 1)])
    second = Rows([*curve((4, 128), 0.25, 0), *curve((4, 128), 0.25, 1)])
    assert lire.advantage(first, second, "support") == pytest.approx([0.05])
    assert lire.advantage(first, first, "support") == pytest.approx([0.0, 0.0])


def test_targets_that_are_not_reached_count_against_their_method():
    inf = math.inf
    assert lltboost.ratios([inf, inf, 2.0, 3.0], [inf, 4.0, inf, 6.0]) == [1.0, inf, 0.0, 0.5]
    assert lltboost.ratios([2.0, 0.0], [0.0, 0.0]) == [inf, 1.0]
    assert lltboost.differences([inf, inf, 2.0, 3.0], [inf, 4.0, inf, 6.0]) == [0, inf, -inf, -3]


def test_a_report_begins_with_its_claims(tmp_path):
    experiment = Experiment(
        "size", lambda asked: [Cell.of(fold=k) for k in range(3)], lambda *_: {}
    )
    store = Store(tmp_path / "results")
    for cell, size in zip(experiment.cells(Asked()), (1.0, 1.1, 1.2), strict=True):
        store.write(experiment, cell, {"size": size}, 0.1)

    def compare(results: Results) -> list[Comparison]:
        return [Comparison("size", claims.mean(results[experiment].column("size")), above=0.5)]

    exhibit = Exhibit("table", 1, "Sizes, (all)", (experiment,), lambda *_: Section("Text."))
    claim = Claim("it is > 0.5 & large", "Section 1", "Table 1", "The mean.", compare)
    paper = Paper("p", "P", "R", (exhibit,), claims=(claim,))
    results = Results(store, Asked())
    markdown, page = write(paper, (exhibit,), results, tmp_path)
    assert (
        '1. "it is > 0.5 & large" (Section 1): **confirmed**.<br>\n'
        "   The mean. Shown in 1 of 1. Shown: size +1.100 [+0.852, +1.348].<br>\n"
        "   The numbers: [Table 1](#table-1-sizes-all)."
    ) in markdown.read_text("utf-8")
    html = page.read_text("utf-8")
    assert "it is &gt; 0.5 &amp; large" in html
    assert "<b>confirmed</b>" in html
    assert '<a href="#table-1-sizes-all">Table 1</a>' in html
    assert "<h2 id='table-1-sizes-all'>" in html
    assert "| it is > 0.5 & large | Section 1 | **confirmed** | 1 | 0 | 0 |" in claims_table(
        paper, results
    )
    markdown, _ = write(paper, (), results, tmp_path)
    assert "The numbers: Table 1." in markdown.read_text("utf-8")
