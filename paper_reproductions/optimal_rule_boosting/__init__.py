"""Better Short than Greedy: Interpretable Models through Optimal Rule Boosting
(Boley et al., SDM 2021).

Modules: `published` holds the paper's numbers, `data` the 24 sets and their propositions; `scores`
is what Table 1 has, and Fig. 2 with the printed ensembles, `table_1` that table, `parity` Fig. 1,
`effort` Fig. 4, Fig. 5 and Table 2. `authors` runs the authors' program by `authors_program` and
their RuleFit by `authors_rulefit_program`, in environments of their own (`benchmarks/peers.py`).
"""

from paper_reproductions.framework import Paper
from paper_reproductions.optimal_rule_boosting import data, effort, parity, scores, table_1
from paper_reproductions.optimal_rule_boosting.claims import CLAIMS

_exhibits = {
    exhibit.name: exhibit
    for exhibit in (*scores.EXHIBITS, *table_1.EXHIBITS, *parity.EXHIBITS, *effort.EXHIBITS)
}

PAPER = Paper(
    "optimal_rule_boosting",
    "Better Short than Greedy: Interpretable Models through Optimal Rule Boosting",
    "Boley, Teshuva, Le Bodic and Webb, SIAM SDM 2021 (arXiv:2101.08380)",
    tuple(
        _exhibits[name]
        for name in ("Figure 1", "Table 1", "Figure 2", "Figure 4", "Figure 5", "Table 2")
    ),
    protocol=f"""
        The authors publish cut points, lambdas and five split seeds of every set (settings.json, from
        github.com/SimonTeshuva/interpretable_Rule_Ensemble): random 80/20 splits by scikit-learn's train_test_split.
        Area: the trapezoidal rule over 1 to 10 rules for R^2, from the model without rules (0.5) on for AUC, as in
        their program; an ensemble that ended with fewer rules keeps its last score. Boosting starts from 0, the empty
        conjunction is a candidate, rules are what the stagewise weights (2.2) make of them. Propositions: "<=" and ">="
        at quantiles of the training rows without the minimum, or at all values of columns that have few; "==" for
        categories. An exact stage may take {scores.STAGE_SECONDS:g} seconds or more; one that ends without its proof is
        marked and its best rule is used.

        RuleFit: rules of 500 boosted trees of four leaves, learning rate 0.01, and the authors' 50 penalties.

        classification2 is {data.CLASSIFICATION_2}, the call in the authors' repository. friedman2 and friedman3 have
        2000 rows, as in their program; the paper prints 10000 and 5000. The paper's titanic has, in 331 of its 1043
        rows, labels that are a function of sex.
    """,
    quick="""eight small sets, two splits (RuleFit 50 trees, 20 penalties; no unbounded RuleFit), three lambdas and two
    folds where lambda is chosen, parity up to d = 4, half a second to a second per exact stage.""",
    claims=CLAIMS,
)
