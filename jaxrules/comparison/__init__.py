"""Many methods on the same rows: their risk and complexity, tests of the difference, and how stable their rules are.

`compare` and `stability` are the front; `METHODS` are the paths that `compare` knows by name.
"""

from jaxrules.comparison.bootstrap import FeatureStability, RuleStability, Stability, stability
from jaxrules.comparison.methods import METHODS, size_of
from jaxrules.comparison.nested import Comparison, Contestant, Point, Row, compare
from jaxrules.comparison.paired import PairedTest, corrected_t_test, holm

__all__ = [
    "METHODS",
    "Comparison",
    "Contestant",
    "FeatureStability",
    "PairedTest",
    "Point",
    "Row",
    "RuleStability",
    "Stability",
    "compare",
    "corrected_t_test",
    "holm",
    "size_of",
    "stability",
]
