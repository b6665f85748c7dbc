"""Interpretable Representation Learning for Additive Rule Ensembles (Behzadimanesh,
Le Bodic, Webb and Boley).

Modules: `published` holds the paper's numbers, `data` the ten sets,
`protocol` what is fitted and how, `scores` the measures;
`figures` has Fig. 1, Table 1, Fig. 2 and Fig. 4, `tables` Tables 2 to 4.
"""

from paper_reproductions.framework import Paper
from paper_reproductions.lltboost import figures, protocol, tables
from paper_reproductions.lltboost.claims import CLAIMS

_exhibits = {exhibit.name: exhibit for exhibit in (*figures.EXHIBITS, *tables.EXHIBITS)}

PAPER = Paper(
    "lltboost",
    "Interpretable Representation Learning for Additive Rule Ensembles",
    "Behzadimanesh, Le Bodic, Webb and Boley",
    tuple(
        _exhibits[name]
        for name in ("Figure 1", "Table 1", "Figure 2", "Figure 4", "Table 2", "Table 3", "Table 4")
    ),
    protocol=f"""
        Ten repetitions: a bootstrap sample of at most 500 rows to train on, the rows out of the bag to test on; columns
        and, for regression, the target are standardised, so that squared losses are shares of the variance. Complexity
        is r + sum_i (k_i + sum_j ||w_ij||_0), for rules on single columns r + 2 sum_i k_i. A boosted ensemble is
        measured with 1 to 10 rules.

        LLTBoost has {protocol.LLTBOOST_SETTING}, one setting for all sets; rows of the bootstrap sample that are equal stay
        together when a quarter of them is held out. TGB is jaxrules.boosting with the gradient-sum objective, greedy
        search over all thresholds, from the best constant, stagewise as in the paper; "tolerance": one more proposition
        has to raise the objective by 30 %, as LLTBoost demands; "corrective": all weights are refitted after every
        rule, as LLTBoost does. "Exact search" has {protocol.EXACT_CUT_POINTS} quantiles per column and at most
        {protocol.EXACT_SECONDS:g} seconds per rule. DRNet is jaxrules'; the log loss of its rule sets, which answer yes or no, is that of the shares of training rows.
        "LTRNet, to the letter" is the paper's: soft steps in training, the weights as they were trained, and rules that
        change no prediction are kept; steepness, optimiser and step size, which the paper does not name, are jaxrules'.
        "LTRNet" is jaxrules', another method: hard steps in the forward pass, weights refitted after
        discretisation, nothing kept that changes no training prediction. It is shown beside the others and not compared
        with the paper.

        What agrees. A median of LLTBoost does unless it is larger than the paper's, a risk by more than half a unit of
        the last digit. The baselines (TGB, DRNet and LTRNet to the letter) are judged by z, the difference in standard
        errors: they agree if it is at most 2 on either side. The error of a median is taken from its order
        statistics, ours and the paper's, as for a normal sample of ten; half of an interval without an upper end is
        what lies below its median. Where that error is more than a quarter of the paper's median, z is shown and not
        counted. What the paper has as infinite is not compared.

        The sets are the paper's by name and size; Friedman is scikit-learn's friedman1 with a noise of 0.1, as the
        paper does not give its noise.
    """,
    quick="five sets, three repetitions, three penalties of TGB, no exact search, few further repetitions.",
    claims=CLAIMS,
)
