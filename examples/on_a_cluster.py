"""Folds, methods and replicates on a cluster: dask workers on this machine, which stand for those
of any other. `pip install distributed`.
"""

from distributed import Client, LocalCluster
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer

import jaxrules as jr


def main() -> None:
    """Start the workers and send them work."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :5]
    # Machines of a cluster: Client("scheduler-address:8786"). jaxrules must be installed there, and
    # data that a method loads itself must lie there; X and y are sent.
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
        parallel_config(backend="dask"),  # n_jobs=None is the whole cluster
    ):
        compared = jr.compare(X, y, methods=["cart", "boosting"], folds=3, inner_folds=2)
        chosen = jr.boosting.cross_validate(X, y, max_rules=3, n_folds=3)
    print(compared)
    print(chosen)


if __name__ == "__main__":  # workers import this file
    main()
