"""Rules by gradient descent: tune a fitted ensemble, or learn one as a network.

    python examples/gradient_rules.py

Friedman's first problem, a generator of scikit-learn. Boosted rules are tuned by `jaxrules.finetune`, which leaves
them as complex as they are; `jaxrules.ltrnet.path` trades risk for complexity; the network behind the chosen rules is a
differentiable function of the row: its gradient says where a prediction would change.
"""

import jax
import numpy as np

import jaxrules as jr


def main() -> None:
    data = jr.datasets.load("friedman1")
    train, test = jr.datasets.train_test_split(data, test_size=0.5, seed=0)

    start = jr.boosting.fit(train.X, train.y, max_rules=5, search="greedy").model
    tuned = jr.finetune(start, train.X, train.y)
    print(f"boosted rules, test risk {jr.risk(start, test.X, test.y):.2f}:\n{start}\n")
    print(f"tuned, test risk {jr.risk(tuned.model, test.X, test.y):.2f} at the same complexity:\n{tuned.model}\n")

    print("LTRNet under five strengths of the L1 penalty, trained side by side:")
    fits = jr.ltrnet.path(train.X, train.y, l1_penalties=(3e-4, 1e-3, 3e-3, 1e-2, 3e-2))
    for fit in fits:
        size = jr.complexity(fit.model, measure="nonzeros")
        print(f"  complexity {size:3d}, test risk {jr.risk(fit.model, test.X, test.y):.2f}")

    soft, row = fits[1].details["soft_model"], test.X.numeric_matrix()[:1]
    slopes = jax.grad(lambda x: soft(x)[0])(row)[0]
    steepest = np.argsort(-np.abs(slopes))[:3]
    print("\nthe prediction for the first test row changes most along", *(test.X.names[j] for j in steepest))


if __name__ == "__main__":
    main()
