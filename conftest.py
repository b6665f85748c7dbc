"""Strictness and tiers, for the tests of the library (tests/) and of the reproductions, which lie
beside their papers (paper_reproductions/).
"""

import gc
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # before NumPy loads it: the processes share the cores

import jax
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

import jaxrules as jr

# No example has to be quick: the machine may be busy. "steady" draws the same examples every time,
# so that a failure in CI is the change's; everyone else's runs go on looking for new ones.
patient = hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.register_profile("patient", patient)
hypothesis_settings.register_profile("steady", patient, derandomize=True)
hypothesis_settings.load_profile("patient")

# The full tier alone has these files, and the reproductions' tests: they take most of its
# time, and say in detail what others say in short: test_contracts.py has fits, saved models,
# explanations and limits of every learner for the default tier, which takes five minutes on two
# cores. Long tests of other files have the marker. `--durations=0` says what a new file costs.
FULL_ONLY = """
    boosting_size comparison conditions constraints cross_validation documentation drnet examples
    finetune fuzz glrm groups growing joint joint_glrm joint_lire joint_lltboost joint_oblique
    joint_rulefit l1_path levels lire lire_counts lire_traced list_bound list_constraints list_noise
    lltboost ltrnet near_optimal oblique oblique_search ordered_targets paths_convex paths_pareto
    paths_search paths_softmax paths_steps placement plots positive precision registries
    regression_list report rule_search rule_text selection sparse_glm special_values ssrl
    traced_path units warm_start workers
"""
REPRODUCTIONS = Path(__file__).parent / "paper_reproductions"


def pytest_configure(config: pytest.Config) -> None:
    """The default tier, unless -m asks for another one or a file is named: of that, all but slow
    tests run.
    """
    if not config.option.markexpr:
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.markexpr = "not slow" if named else "not slow and not full"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without the folder of data sets, its tests are skipped: none asks the network."""
    if item.get_closest_marker("needs_data") and "JAXRULES_DATA" not in os.environ:
        pytest.skip("JAXRULES_DATA names no folder of data sets")


@pytest.hookimpl(tryfirst=True)  # -m selects in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the full tier. And three warnings are expected, which filters of the command line would
    turn into errors.

    Most tests fit for an instant, or with a paper's start from 0: such a model may be worse than
    the constant, and test_losses.py has the warning. Directions of monotone columns are drawn at
    random; test_positive.py has the warning. loky says, in a thread that must not end, that
    it replaces a worker whose memory grew (it looks only if psutil is installed, as by dask).
    """
    expected = (
        "the model's mean .* training rows is",
        "no rule uses the monotone",
        "A worker stopped while some jobs",
    )
    seen = set()
    for item in items:
        if (
            item.path.stem.removeprefix("test_") in FULL_ONLY.split()
            or REPRODUCTIONS in item.path.parents
        ):
            item.add_marker(pytest.mark.full)
        # The first case of every learner is in the default tier.
        case = getattr(getattr(item, "callspec", None), "params", {}).get("case")
        if learner := getattr(case, "learner", None):
            if (item.function, learner) in seen:
                item.add_marker(pytest.mark.full)
            seen.add((item.function, learner))
    for item, message in itertools.product(items, expected):
        item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}"))


@pytest.fixture(scope="session", autouse=True)
def strict_ranks() -> Iterator[None]:
    """Shapes are never stretched by accident: JAX raises where an
    operation would add a dimension.
    """
    before = jax.config.jax_numpy_rank_promotion
    jax.config.update("jax_numpy_rank_promotion", "raise")
    yield
    jax.config.update("jax_numpy_rank_promotion", before)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> None:
    """Shells start background jobs with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def few_programs() -> Iterator[None]:
    """Linux gives a process 65 530 memory maps, and every program that JAX compiles for a CPU
    takes some: where they end, it crashes.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def timeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any time passes for limits in seconds: what a test waits for
    comes on a busy machine, too.
    """
    monkeypatch.setattr(
        jr.Deadline.__init__, "__defaults__", (itertools.count(step=1e-9).__next__,)
    )
