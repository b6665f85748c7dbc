"""What jaxrules leaves as it was for other code in its process: registries and settings
of Python and of packages.
"""

import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np

import jaxrules as jr

SNAPSHOT = """
import collections, copyreg, gc, locale, logging, os, random, signal, sys, warnings

# what a fit may import, and what it registers, is there before
import cvxpy, highspy, jax, joblib, matplotlib, matplotlib.pyplot, numba, numpy as np, optax, pandas
import scipy.optimize, scipy.sparse.linalg, sklearn.ensemble, sklearn.linear_model
import sklearn.model_selection, threadpoolctl
import numba.extending
from jax._src import monitoring, tree_util
from numba.core import imputils, registry
from numba.core.typing import templates

jax.jit(lambda x: x + 1)(np.ones(2))
numba.njit(lambda x: x.sum())(np.ones(2))


def ours(thing):
    return str(getattr(thing, "__module__", "")).startswith("jaxrules")


def of_others(template):
    '''Whether a template is neither numba's own, some of which come on first use, nor of ours.'''
    source = getattr(template, "_overload_func", template).__module__
    return not str(source).startswith("numba.") and not ours(template.key)


def names(things):
    return collections.Counter(map(repr, things))


def numbas():
    '''What numba knows of types and functions; a key is a type, a function or an operation.'''
    registry.cpu_target.typing_context.refresh()
    registry.cpu_target.target_context.refresh()
    typing, lowering = templates.builtin_registry, imputils.builtin_registry
    yield "functions", names(t.key for t in typing.functions if of_others(t))
    templates_of = (getattr(kind, "templates", ()) for _, kind in typing.globals)
    yield "globals", names(t.key for found in templates_of for t in found if of_others(t))
    attributes = (t for t in typing.attributes if of_others(t))
    yield "attributes", names((t.key, getattr(t, "_attr", None)) for t in attributes)
    lowered = ((f, types) for _, f, types in lowering.functions if not ours(f))
    yield "lowered functions", names(lowered)
    for kind in ("getattrs", "setattrs"):
        yield kind, names((types, attribute) for _, attribute, types in getattr(lowering, kind))
    yield "casts", names(types for _, types in lowering.casts)
    yield "config", {name: value for name, value in vars(numba.config).items() if name.isupper()}


def settings():
    yield from (("numba " + name, value) for name, value in numbas())
    yield "jax.config", dict(jax.config.values)
    yield "pytrees", names(kind for kind in tree_util._registry if not ours(kind))
    yield "listeners", names(monitoring.get_event_listeners())
    yield "listeners of durations", names(monitoring.get_event_duration_listeners())
    yield "np.geterr", np.geterr()
    yield "np.geterrcall", np.geterrcall()
    yield "np.get_printoptions", np.get_printoptions()
    yield "np.random", str(np.random.get_state())
    yield "random", random.getstate()
    yield "sklearn", sklearn.get_config()
    yield "matplotlib", dict(matplotlib.rcParams)
    pools = threadpoolctl.threadpool_info()
    yield "threads", [(pool["filepath"], pool["num_threads"]) for pool in pools]
    yield "warnings", list(warnings.filters)
    yield "warnings.showwarning", warnings.showwarning
    yield "signals", {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield "environment", dict(os.environ)
    yield "folder", os.getcwd()
    yield "locale", locale.setlocale(locale.LC_ALL)
    yield "recursion", sys.getrecursionlimit()
    yield "hooks", [sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile()]
    yield "import hooks", [*sys.meta_path, *sys.path_hooks]
    yield "streams", [sys.stdin, sys.stdout, sys.stderr]
    yield "garbage", [gc.isenabled(), gc.get_threshold()]
    yield "copyreg", names(kind for kind in copyreg.dispatch_table if not ours(kind))
    yield "logging", [logging.root.level, list(logging.root.handlers), logging.root.manager.disable]
    yield "loggers", {
        name: (logger.level, list(logger.handlers))
        for name, logger in sorted(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and (logger.level or logger.handlers)
    }


before = dict(settings())
"""

FITS = """
import importlib, pkgutil
import jaxrules

for module in pkgutil.walk_packages(jaxrules.__path__, "jaxrules."):
    importlib.import_module(module.name)
assert "jaxrules.solvers.rule_search.kernels.depth_first" in sys.modules
sys.path.insert(0, {tests!r})
from catalogue import CASES

fitted = set()
for case in CASES:
    if case.learner.name not in fitted:
        fitted.add(case.learner.name)
        case.fit()
after = dict(settings())
for name, value in before.items():
    if isinstance(value, dict):
        now = after[name]
        changed = {{key: (value.get(key), now.get(key)) for key in value.keys() | now.keys()
                   if value.get(key) != now.get(key)}}
        assert not changed, (name, changed)
    assert after[name] == value, (name, value, after[name])
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_imports_and_fits_change_nothing_of_others() -> None:
    run(SNAPSHOT + FITS.format(tests=__file__.rpartition("/")[0]))


def test_changes_are_noticed() -> None:
    changes = [
        "numba.extending.overload_method(numba.types.BaseNamedTuple, 'value')(lambda self: lambda "
        "self: 0.0)",
        "np.seterr(all='raise')",
        "np.random.seed(0)",
        "warnings.simplefilter('ignore')",
        "gc.disable()",
        "jax.config.update('jax_enable_x64', True)",
        "jax.tree_util.register_pytree_node(collections.UserList, lambda x: ((), None), lambda *_: "
        "None)",
    ]
    run(f"""{SNAPSHOT}
for change in {changes!r}:
    before = dict(settings())
    exec(change)
    assert dict(settings()) != before, change
""")


class Quantity(NamedTuple):
    """A user's own, with the names of the compiled problems' methods."""

    value: float
    exceeds: float
    order: float
    curved: float
    relaxed: float


def test_named_tuples_of_users_compile_after_a_fit() -> None:
    jr.boosting.fit(np.eye(4), np.arange(4.0), max_rules=1, max_length=3, loss="squared")

    @numba.njit
    def product(q: Quantity) -> float:
        return q.value * q.exceeds * q.order * q.curved * q.relaxed

    assert product(Quantity(2.0, 3.0, 5.0, 7.0, 11.0)) == 2310.0
