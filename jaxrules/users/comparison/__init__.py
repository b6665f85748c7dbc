"""Compare methods on the same rows: risk and complexity, tests of
differences, and stability of rules.

`compare` and `stability` are the entry points;
`METHODS` are the paths that `compare` knows by name.
"""

from jaxrules.users.comparison.bootstrap import (
    FeatureStability,
    RuleStability,
    Stability,
    stability,
)
from jaxrules.users.comparison.methods import METHODS, size_of
from jaxrules.users.comparison.nested import Comparison, Contestant, Row, compare
from jaxrules.users.comparison.nested import RiskPoint as Point
from jaxrules.users.comparison.paired import (
    PairedTest,
    SignedRankTest,
    corrected_t_test,
    holm,
    signed_rank_test,
)

__all__ = [
    "METHODS",
    "Comparison",
    "Contestant",
    "FeatureStability",
    "PairedTest",
    "Point",
    "Row",
    "RuleStability",
    "SignedRankTest",
    "Stability",
    "compare",
    "corrected_t_test",
    "holm",
    "signed_rank_test",
    "size_of",
    "stability",
]
