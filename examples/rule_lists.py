"""Rule lists: SSRL beside the certified optimal list, and all near-optimal lists.

    python examples/rule_lists.py

The data are COMPAS with binary columns if JAXRULES_DATA has it, otherwise scikit-learn's breast
cancer data; then iris with three classes. The script prints SSRL's list and the best list of the
same size side by side, what is proved, which conditions the near-optimal lists share, on how many
rows they disagree, why a row gets its label, and the list as LaTeX; then a list that predicts
numbers, the progression of diabetes.
"""

import itertools
from collections.abc import Iterable

import numpy as np

import jaxrules as jr


def side_by_side(columns: Iterable[tuple[str, str]]) -> None:
    """Print texts of several lines in columns, each below its title."""
    blocks = [[title, "", *text.splitlines()] for title, text in columns]
    widths = [max(map(len, block)) for block in blocks]
    for lines in itertools.zip_longest(*blocks, fillvalue=""):
        print(
            "   ".join(
                f"{line:<{width}}" for line, width in zip(lines, widths, strict=True)
            ).rstrip()
        )


def compare(name: str, max_rules: int, literal_penalty: float, max_cut_points: int) -> jr.RuleList:
    """Run SSRL and the exact search on one data set, with the same literals, size and penalty."""
    data = jr.datasets.load(name)
    setting = {
        "max_rules": max_rules,
        "literal_penalty": literal_penalty,
        "max_cut_points": max_cut_points,
    }
    print(f"\n{name}: at most {max_rules} rules, {literal_penalty:g} rows per literal")
    found = jr.ssrl.fit(data.X, data.y, **setting)
    best = jr.exact_list.fit(
        data.X, data.y, **setting
    )  # over all conditions of at most two literals
    side_by_side((title, str(fit.model)) for title, fit in (("SSRL", found), ("exact", best)))
    for title, fit in (("SSRL", found), ("exact", best)):
        accuracy, proof = (
            jr.accuracy(fit.model, data.X, data.y),
            "" if fit.bound is None else f" <= {fit.bound:g}",
        )
        print(
            f"  {title}: objective {fit.objective:g}{proof} ({fit.status}), "
            f"accuracy {accuracy:.3f}, {fit.seconds:.1f} s"
        )

    near = jr.exact_list.near_optimal(data.X, data.y, within=0.005, **setting)
    print()
    print(*itertools.takewhile(lambda line: line != "The best:", str(near).splitlines()), sep="\n")
    undecided = np.mean(near.possible(data.X).sum(axis=1) > 1)
    print(f"  rows on which they disagree: {undecided:.1%}")
    print("\nwhy the last row gets its label:")
    print(jr.explain(found.model, data.X[-1:])[0])
    return found.model


binary = "compas_binary" if "compas_binary" in jr.datasets.available() else "breast_cancer"
compare(binary, max_rules=3, literal_penalty=10.0, max_cut_points=3)
print("\n" + jr.to_latex(compare("iris", max_rules=3, literal_penalty=1.0, max_cut_points=5)))

diabetes = jr.datasets.load("diabetes")
print("\n", jr.regression_list.fit(diabetes.X, diabetes.y, max_rules=4).model, sep="")
