"""Optimal Explanations of Linear Models (Bertsimas, Delarue, Jaillet, Martin, 2019).

Modules: `published` holds the paper's numbers, `data` the prepared data sets;
`toy` is Table 1, Fig. 1 and 2, `prestige` Table 2, `schools` Fig. 3, `bikes` Fig. 4.
"""

from paper_reproductions.coordinate_paths import bikes, prestige, schools, toy
from paper_reproductions.coordinate_paths.claims import CLAIMS
from paper_reproductions.framework import Paper

_tables_and_figures = {
    e.name: e for e in (*toy.EXHIBITS, *prestige.EXHIBITS, *schools.EXHIBITS, *bikes.EXHIBITS)
}

PAPER = Paper(
    "coordinate_paths",
    "Optimal Explanations of Linear Models",
    "Bertsimas, Delarue, Jaillet and Martin (arXiv:1907.04669)",
    tuple(
        _tables_and_figures[name]
        for name in ("Table 1", "Figure 1", "Figure 2", "Table 2", "Figure 3", "Figure 4")
    ),
    protocol="""
        All of the paper's tables and figures. Every optimal path here is certified; greedy, direct and LASSO are
        the comparisons of the paper. A tolerance is half a unit of the paper's last digit, or what is said beside
        the number.

        What the paper prints as MSE is the mean squared error in the toy problem and half of it in Fig. 3 and 4,
        where our numbers are halved, too.
    """,
    quick="fewer points on the curves, fewer random starts and samples, one lambda for Fig. 3.",
    claims=CLAIMS,
)
