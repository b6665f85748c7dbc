"""Interpretable Representation Learning for Additive Rule Ensembles (Behzadimanesh, Le Bodic, Webb and Boley).

Modules: `published` holds the paper's numbers, `data` the ten sets, `protocol` what is fitted and how, `scores` the
measures; `figures` has Fig. 1, Table 1, Fig. 2 and Fig. 4, `tables` Tables 2 to 4.
"""

from paper_reproductions.framework import Paper
from paper_reproductions.lltboost import figures, protocol, tables

_exhibits = {exhibit.name: exhibit for exhibit in (*figures.EXHIBITS, *tables.EXHIBITS)}

PAPER = Paper(
    "lltboost",
    "Interpretable Representation Learning for Additive Rule Ensembles",
    "Behzadimanesh, Le Bodic, Webb and Boley",
    tuple(_exhibits[name] for name in ("Figure 1", "Table 1", "Figure 2", "Figure 4", "Table 2", "Table 3", "Table 4")),
    protocol=f"""
        Ten repetitions: a bootstrap sample of at most 500 rows to train on, the rows out of the bag to test on; columns
        and, for regression, the target are standardised, so that squared losses are shares of the variance. Complexity
        is r + sum_i (k_i + sum_j ||w_ij||_0), for rules on single columns r + 2 sum_i k_i. A boosted ensemble is
        measured with 1 to 10 rules.

        LLTBoost has jaxrules' defaults, one setting for all sets; rows of the bootstrap sample that are equal stay
        together when a quarter of them is held out. TGB is jaxrules.boosting with the gradient-sum objective, greedy
        search over all thresholds, from the best constant, stagewise as in the paper; "tolerance": one more proposition
        has to raise the objective by 30 %, as LLTBoost demands; "corrective": all weights are refitted after every
        rule, as LLTBoost does. "Exact search" has {protocol.EXACT_CUT_POINTS} quantiles per column and at most
        {protocol.EXACT_SECONDS:g} seconds per rule. LTRNet and DRNet are jaxrules'; LTRNet's weights are refitted after
        discretisation, "to the letter" they are not. Exact searches and LTRNet to the letter have
        {protocol.FEW_REPEATS} repetitions, all ten with --slow. The log loss of DRNet, whose rule sets answer yes
        or no, is that of the shares of training rows.

        The sets are the paper's by name and size; Friedman is scikit-learn's friedman1 with a noise of 0.1, as the
        paper does not give its noise.
    """,
    quick="five sets, three repetitions, three penalties of TGB, no exact search, few further repetitions.",
)
