"""The numbers of others: their splits as they print them, what is counted, and the report."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

from paper_reproductions import Canvas, Results, Settings
from paper_reproductions.framework import Cell, Store
from paper_reproductions.others import known_splits, peers, programs, published
from paper_reproductions.others.problems import PROBLEMS, rows_of

needs_data = pytest.mark.skipif("JAXRULES_DATA" not in os.environ, reason="JAXRULES_DATA is not set")


def test_every_problem_has_published_numbers():
    assert set(PROBLEMS) == set(published.PUBLISHED)
    for name, problem in PROBLEMS.items():
        assert any(problem.measure in numbers for numbers in published.PUBLISHED[name].values())


def test_breast_cancer_is_split_as_in_the_notebook():
    train, test = rows_of("breast cancer, rulelearn", 0)
    assert (len(train), len(test)) == (455, 114)


@needs_data
def test_heloc_is_that_of_the_tutorial():
    """Its first training rows, as the tutorial prints them."""
    train, test = rows_of("HELOC, AIX360", 0)
    assert len(train) + len(test) == 9871
    columns = dict(zip(train.X.names, train.X.columns, strict=True))
    assert columns["ExternalRiskEstimate"][:5].tolist() == [64, 57, 59, 65, 65]
    assert columns["AverageMInFile"][:4].tolist() == [97, 35, 38, 69]
    assert np.isnan(columns["MSinceMostRecentDelq"][2])


@needs_data
def test_adult_has_the_counts_of_the_demo():
    _, test = rows_of("adult, rulelearn", 0)
    assert ((test.y == 0).sum(), (test.y == 1).sum()) == known_splits.COUNTS["adult, rulelearn"]


def test_targets_are_judged_with_their_limits(tmp_path):
    store = Store(tmp_path)
    for method, auc, rules in (("RuleFit", 0.921, 76), ("GLRM", 0.925, 300)):
        cell = Cell.of(problem="adult, interpret", split=0, method=method, setting="default")
        row = {"AUC": auc, "rules": rules, "conditions": 9.0, "seconds": 4.5, "choosing": 0.0, "options": "defaults"}
        store.write(known_splits.known, cell, row, 1.0)
    section = known_splits.show_table_1(Results(store, Settings()), Canvas(tmp_path))
    assert "reached; RuleFit, default (1 of 3 splits), has 0.9210 with 76 rules" in section.text, (
        "not the one of 300 rules"
    )
    assert "EBM (published)" in section.tables[0].rows


def test_sizes_of_other_programs():
    leaf = SimpleNamespace(left=None, right=None)
    tree = SimpleNamespace(left=leaf, right=SimpleNamespace(left=leaf, right=leaf))
    assert sorted(programs.leaves(tree, 0)) == [1, 2, 2]
    assert programs.size("FIGS", SimpleNamespace(trees_=[tree])) == (3, 5)
    rules = ["a > 1 and b <= 2", "c <= 3"]
    assert programs.size("SkopeRules", SimpleNamespace(rules_=rules)) == (2, 3)


def test_the_report_of_what_is_there(tmp_path):
    store = Store(tmp_path)
    for method, score in (("boosting", 0.8), ("imodels", 0.7)):
        program = "FIGS" if method == "imodels" else method
        rows = [
            {"program": program, "split": k, "score": score, "rules": 4, "conditions": 6.0, "seconds": 1.0}
            for k in (0, 1)
        ]
        store.write(peers.peers, Cell.of(data="liver", method=method), rows, 1.0)
    results = Results(store, Settings())
    summary, liver = peers.show_table_2(results, Canvas(tmp_path)).tables
    assert summary.values["FIGS", "accuracy below the best"] == "0.1000 (1 sets)"
    assert liver.values["boosting", "accuracy"].ours == 0.8
    assert peers.show_figure_1(results, Canvas(tmp_path)).figures[0].stat().st_size > 5000
