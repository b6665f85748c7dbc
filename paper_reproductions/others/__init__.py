"""Numbers that other projects publish on splits that can be drawn again, and their
programs on splits of ours.

`published` holds their numbers, `problems` data and splits, `methods` what we fit; `known_splits`
is Table 1, `peers` Table 2 and Figure 1 with the programs of others, which run in environments of
their own (`benchmarks/peers.py`) by `programs`.
"""

from paper_reproductions.framework import Paper
from paper_reproductions.others import known_splits, peers, rule_regression

PAPER = Paper(
    "others",
    "Numbers of others",
    "IBM rulelearn and AIX360 (demos and tutorial), interpret (classification comparison)",
    (*known_splits.EXHIBITS, *peers.EXHIBITS, *rule_regression.EXHIBITS),
    protocol="""
        "Paper" in brackets is what the source publishes. Splits are drawn as in the source's notebook, by scikit-learn
        and its seed; the counts of classes that a source prints are checked. Ours: every learner at its defaults, and
        at a setting chosen on a quarter of the training rows, or on three folds of them, and fitted again on all of
        them; "own path" is the learner's own cross-validation of its penalty on three folds of the training rows, with
        columns beside the rules, or for LIRE one path on three quarters of them. Seconds are of the processor, of the
        final fit with what it compiles; those of choosing stand apart, but for own paths, whose seconds are of both.
        Test rows choose nothing. Missing values are a category of their own.

        Seconds of others are what they print, of machines that they do not name.
    """,
    quick="no Adult, one split, four small data sets for the programs of others.",
)
