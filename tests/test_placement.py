"""Rows over devices: the model of one device, and errors. Virtual CPU devices exist only if XLA is
told so before it starts, hence the subprocesses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import jaxrules as jr
from jaxrules.tools import placement

PREFACE = """
import json, re
import jax, numpy as np
import jaxrules as jr
from jaxrules.tools import placement

random = np.random.default_rng(0)
X = random.normal(size=(1003, 5))  # 2, 3 and 4 do not divide 1003
y = (X[:, 0] + X[:, 1] > 0.3) & (X[:, 2] < 0.5) ^ (random.random(len(X)) < 0.05)

def mesh(n):
    kind = jax.sharding.AxisType.Auto
    return jax.make_mesh((n,), ("rows",), (kind,), devices=jax.devices()[:n])

def largest(text):  # the entries of the largest array of a compiled program
    shapes = re.findall(r"\\[([\\d,]+)\\]", text)
    return int(max(np.prod([int(n) for n in shape.split(",")]) for shape in shapes))
"""


def on_four_devices(code: str) -> Any:
    """The JSON that the code prints in a process with four CPU devices and warnings as errors."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREFACE + code],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("fit", "devices"),
    [
        ("jr.finetune(start, X, y, iterations=100)", (2, 3, 4)),
        ("jr.lltboost.fit(X, y, max_rules=1, max_nonzeros=1, beam_width=1)", (4,)),
        pytest.param("jr.lltboost.fit(X, y, max_rules=3)", (2, 3, 4), marks=SLOW),
        pytest.param("jr.ltrnet.fit(X, y, max_rules=3, iterations=200)", (2, 3, 4), marks=SLOW),
        pytest.param("jr.drnet.fit(X, y, max_rules=3, iterations=100)", (2, 3, 4), marks=SLOW),
        pytest.param("jr.ssrl.published(X, y, max_rules=2)", (4,), marks=SLOW),
        pytest.param(
            'jr.ssrl.fit(X, y, subproblem="exact", max_length=2, max_rules=2)', (3,), marks=SLOW
        ),
    ],
)
def test_the_model_is_that_of_one_device(fit: str, devices: tuple[int, ...]) -> None:
    one, *others = on_four_devices(
        f"""
start = jr.boosting.fit(X, y, max_rules=2).model
def fitted():
    fit = {fit}
    return str(fit.model), fit.objective
found = [fitted()]
for n in {devices}:
    with jr.rows_over(mesh(n)):
        found.append(fitted())
print(json.dumps(found))
"""
    )
    assert len(others) == len(devices)
    for text, objective in others:
        assert text == one[0]
        assert objective == pytest.approx(one[1], rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", pytest.param("exponential", marks=SLOW)])
def test_lire_on_several_devices(loss: str) -> None:
    """The model of one device. No device holds the whole matrix: the largest array of the compiled
    program is its part.
    """
    fits, whole, part, largest = on_four_devices(
        f"""
from jaxrules.ensembles.lire import traced

programs, chunk = [], traced._chunk.jitted
class Listening:
    def jitted(self, X, *arguments, **program):
        programs.append((X, chunk.lower(X, *arguments, **program)))
        return chunk(X, *arguments, **program)
traced._chunk = Listening()

rules = jr.extract_rules(jr.default_forest(X, y, n_trees=40), X)
def fitted():
    engine = "auto" if placement.mesh() else "jax"
    fit = jr.lire.fit(X, y, rules=rules, loss="{loss}", engine=engine,
        global_penalty=0.01, l2_penalty=1.0, restarts=0)
    return [str(fit.model), fit.objective, fit.details.engine]
fits = [fitted()]
for n in (2, 4):
    with jr.rows_over(mesh(n)):
        fits.append(fitted())
X, program = programs[-1]
text = program.compile().as_text()
print(json.dumps([fits, X.size, X.addressable_shards[0].data.size, largest(text)]))
"""
    )
    for text, objective, engine in fits:
        assert text == fits[0][0]
        assert objective == pytest.approx(fits[0][1], rel=1e-9)
        assert engine == "jax"
    assert part == whole / 4
    assert largest == part


@pytest.mark.parametrize("weights", ["None", pytest.param("1 + random.random(1003)", marks=SLOW)])
def test_ssrl_on_several_devices(weights: str) -> None:
    """The model of numba's kernels on the host, with equal counts. Devices hold their part of the
    literals' bits, the largest array of the program, and send nothing but sums.
    """
    fits, whole, part, largest, sent = on_four_devices(
        f"""
from jaxrules.lists import insertion

weights, programs, kernel = {weights}, [], insertion._descend
def listening(beam, problem):
    programs.append((problem.literals, kernel.lower(beam, problem)))
    return kernel(beam, problem)
insertion._descend = listening
def fitted():
    fit = jr.ssrl.fit(X, y, weights, max_rules=3, beam_width=4)
    return [str(fit.model), fit.objective]
fits = [fitted()]
assert not programs
for n in (2, 4):
    with jr.rows_over(mesh(n)):
        fits.append(fitted())
literals, program = programs[-1]
text = program.compile().as_text()
sent = sorted(set(re.findall(r"all-\\w+|collective-\\w+", text)))
part = literals.addressable_shards[0].data.size
print(json.dumps([fits, literals.size, part, largest(text), sent]))
"""
    )
    for text, objective in fits:
        assert text == fits[0][0]
        assert objective == pytest.approx(fits[0][1], rel=1e-9 if weights != "None" else 0)
    assert part == whole / 4
    assert largest == part
    assert sent == ["all-reduce"]


def test_predictions_of_split_rows_under_jit() -> None:
    found, expected, split = on_four_devices(
        """
model = jr.boosting.fit(X, y, max_rules=3).model
rows = X[:1000].astype(np.float32)
probabilities = jax.jit(lambda X: jr.predict_proba(model, X))
found = probabilities(jax.device_put(
    rows, jax.sharding.NamedSharding(mesh(4), jax.sharding.PartitionSpec("rows"))))
print(json.dumps([np.asarray(found).tolist(), probabilities(rows).tolist(),
    [part.data.shape[0] for part in found.addressable_shards]]))
"""
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert split == [250] * 4


def test_rows_are_split_and_the_rest_is_copied() -> None:
    shapes = on_four_devices(
        """
def parts(array):
    return [list(shard.data.shape) for shard in array.addressable_shards]
with jr.rows_over(mesh(4)):
    split, copied = placement.place(np.ones((10, 2), np.int8), 0), placement.place(np.ones(3))
    again = placement.place(split)
    last = placement.place(np.ones((2, 10), bool), -1)
outside = placement.place(np.ones((10, 2)), 0)
print(json.dumps([[str(split.dtype), float(split.sum()), placement.padded(10)],
    *map(parts, (split, copied, again, last, outside))]))
"""
    )
    assert shapes == [
        ["int8", 20.0, 10],
        [[3, 2]] * 4,
        [[3]] * 4,
        [[12, 2]] * 4,
        [[2, 3]] * 4,
        [[10, 2]],
    ]


def test_a_mesh_does_not_outlive_its_block_and_nests() -> None:
    mesh = jax.make_mesh((1,), ("rows",))
    assert placement.mesh() is None
    with jr.rows_over(mesh):
        with jr.rows_over(mesh):
            pass
        assert placement.mesh() is not None
    with pytest.raises(ZeroDivisionError), jr.rows_over(mesh):
        raise ZeroDivisionError
    assert placement.mesh() is None


def test_the_default_device_is_followed() -> None:
    with jax.default_device("cpu"):
        assert placement.device().platform == "cpu"
    with jax.default_device(jax.devices()[0]):
        assert placement.device() == jax.devices()[0]
    with jr.rows_over(jax.make_mesh((1,), ("rows",))):
        assert placement.device() == jax.devices()[0]


def test_bad_meshes_are_refused() -> None:
    with pytest.raises(TypeError, match=r"mesh must be Mesh \(see jax.make_mesh"), jr.rows_over(4):  # type: ignore[arg-type]
        pass
    two = jax.make_mesh((1, 1), ("rows", "columns"))
    with pytest.raises(ValueError, match="mesh must have one dimension"), jr.rows_over(two):
        pass
    assert placement.mesh() is None


def test_devices_of_two_kinds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        def __init__(self, kind: str) -> None:
            self.platform, self.device_kind = "gpu", kind

    class Mesh:
        devices = np.array([Device("NVIDIA H100"), Device("NVIDIA A100"), Device("NVIDIA A100")])

    monkeypatch.setattr(placement, "Mesh", Mesh)
    with pytest.raises(ValueError, match=r"one kind, got gpu \(NVIDIA A100\), gpu \(NVIDIA H100\)"):
        jr.rows_over(Mesh()).__enter__()  # type: ignore[arg-type]


def test_a_time_limit_is_refused_on_several_processes() -> None:
    class Mesh:
        devices = np.array([SimpleNamespace(process_index=k) for k in range(2)])

    token = placement._mesh.set(Mesh())  # type: ignore[arg-type]
    try:
        with pytest.raises(ValueError, match="time_limit cannot be combined with a mesh of sev"):
            jr.boosting.fit(np.eye(4), [0, 1, 0, 1], time_limit=1)
    finally:
        placement._mesh.reset(token)


def test_a_mesh_larger_than_the_rows_is_refused() -> None:
    (message,) = on_four_devices(
        """
try:
    with jr.rows_over(mesh(4)):
        jr.boosting.fit(X[:3], [0, 1, 1])
except ValueError as error:
    print(json.dumps([str(error)]))
"""
    )
    assert message == (
        "mesh has 4 devices, but there are only 3 rows; use a mesh of at most 3 devices"
    )
