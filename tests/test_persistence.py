"""Models as JSON: exact round trips, and refusal of everything that is not a well-formed model."""

import copy
import dataclasses
import importlib.util
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.data.table import EncodedColumn
from jaxrules.models import persistence
from jaxrules.models.persistence import from_json, load, register_model, save, to_json
from jaxrules.models.survival import SurvivalModel

C = jr.Condition


def equal(a: Any, b: Any) -> bool:
    """Equal structure, dtypes, shapes and bits (the sign of zero too)."""
    if isinstance(a, SurvivalModel):  # no pytree: the attributes that a file has
        a, b = ((m.rates, m.cuts, m.covariance, m.column, m.schema) for m in (a, b))
        return equal(a[:3], b[:3]) and a[3:] == b[3:]
    leaves_a, structure_a = jax.tree.flatten(a)
    leaves_b, structure_b = jax.tree.flatten(b)
    return structure_a == structure_b and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(leaves_a, leaves_b, strict=True)
    )


@pytest.fixture
def with_terms() -> jr.RuleEnsemble:
    """Three classes, linear terms without and with ends, options of every kind."""
    schema = jr.Schema(
        (jr.Feature("größe"), jr.Feature("k", ("ja", "\u2028", '"'))), "refuse", (1, 2, 3), "ziel"
    )
    rules = jr.Conjunctions.build(
        schema, [[C.above(0, 0.1)], [C.none_of(1, [2], 3), C.at_least(0, -0.0)], []]
    )
    terms = jr.LinearTerms(
        np.array([0], np.int32),
        np.array([[1 / 3, -0.0, 5e-324]]),
        np.array([-np.inf]),
        np.array([1.7976931348623157e308]),
    )
    options = (
        ("depth", None),
        ("seed", 2**70),
        ("penalty", 0.1),
        ("exact", True),
        ("grid", (1, 2.5, ("a",))),
        ("n", 0),
    )
    rng = np.random.default_rng(0)
    model = jr.RuleEnsemble(
        rules, rng.normal(size=(3, 3)), rng.normal(size=3), terms, "logistic", options
    )
    model.validate()
    return model


MODELS = pytest.mark.parametrize("which", ["ensemble", "rule_list", "with_terms"])


@MODELS
def test_models_come_back_bit_for_bit(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    model = request.getfixturevalue(which)
    path = tmp_path / "model.json"
    save(model, path)
    again = load(path)
    assert type(again) is type(model)
    assert equal(again, model)
    assert again.options == model.options
    assert [type(value) for _, value in again.options] == [
        type(value) for _, value in model.options
    ]
    assert hash(again.schema) == hash(model.schema)
    assert str(again) == str(model)
    assert load(os.fspath(path)) is not again
    assert equal(from_json(to_json(model)), model)
    assert path.read_text() == to_json(again)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=40)
@given(
    cuts=st.lists(st.tuples(finite, st.booleans(), st.booleans()), max_size=5),
    weight=finite,
    labels=st.sampled_from([None, (False, True), (0, 1), (-0.5, 1.5), ("a", "b")]),
    names=st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True),
)
def test_any_numbers_and_names_come_back(
    cuts: list[tuple[float, bool, bool]], weight: float, labels: Any, names: list[str]
) -> None:
    schema = jr.Schema(
        (jr.Feature(names[0]), jr.Feature(names[1], (names[0] + "x",))), classes=labels
    )
    rules = [[C(0, lower=x, lower_closed=a, missing=b), C.one_of(1, [0])] for x, a, b in cuts]
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, rules), np.full((len(cuts), 1), weight), np.array([-weight]),
        link="identity" if labels is None else "exponential",
    )  # fmt: skip
    assert equal(from_json(to_json(model)), model)


def test_the_text_is_strict_json_and_says_what_it_is(ensemble: jr.RuleEnsemble) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(to_json(ensemble), parse_constant=refuse)
    assert document["format"] == persistence.FORMAT
    assert document["version"] == persistence.versions()["RuleEnsemble"]
    assert document["type"] == "RuleEnsemble"
    assert document["fields"]["conjunctions"]["lower"]["values"][1] == "-inf"


def test_jax_weights_are_saved_as_float64(ensemble: jr.RuleEnsemble) -> None:
    model = jr.with_weights(ensemble, jnp.full((5, 1), 0.1), jnp.zeros(1))
    again = from_json(to_json(model))
    assert isinstance(again.weights, np.ndarray)
    assert again.weights.dtype == again.intercept.dtype == np.float64
    np.testing.assert_array_equal(again.weights, np.full((5, 1), np.float32(0.1), np.float64))


# Saving


def unchecked(model: jr.RuleEnsemble, **changes: Any) -> jr.RuleEnsemble:
    """A model as JAX puts it together, without checks."""
    model = jax.tree.map(lambda leaf: leaf, model)
    for name, value in changes.items():
        object.__setattr__(model, name, value)
    return model


def test_what_cannot_be_saved_is_refused_and_the_old_file_stays(
    ensemble: jr.RuleEnsemble, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    path.write_text("old")
    bad = [
        (jr.Fit(ensemble, 0.0, "min", jr.Status.CONVERGED), TypeError, r"got Fit; pass fit\.model"),
        ("model", TypeError, "got str"),
        (
            dataclasses.replace(ensemble, options=(("rules", np.ones(2)),)),
            TypeError,
            "options.*cannot be saved",
        ),
        (
            dataclasses.replace(ensemble, options=(("limit", math.inf),)),
            TypeError,
            "options.*finite",
        ),
        (dataclasses.replace(ensemble, options=(("f", print),)), TypeError, "options"),
        (unchecked(ensemble, weights=np.full((5, 1), np.nan)), ValueError, "weights"),
        (unchecked(ensemble, weights=np.full((5, 1), np.inf)), ValueError, "finite"),
        (
            unchecked(ensemble, weights=np.zeros((4, 1))),
            ValueError,
            "not valid.*weights must have shape",
        ),
        (
            unchecked(ensemble, weights=np.full((5, 1), "a")),
            TypeError,
            "weights must be an array of float64",
        ),
        (unchecked(ensemble, options=((1, 2),)), ValueError, r"options\[0\]\[0\]"),
        (ensemble, ValueError, "path is empty"),
    ]
    for model, error, message in bad:
        with pytest.raises(error, match=message):
            save(model, "" if "path" in message else path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]
    with pytest.raises(TypeError, match="traced"):
        jax.jit(lambda m: to_json(m) and 0)(ensemble)


def test_saving_replaces_in_one_step(
    ensemble: jr.RuleEnsemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.json"
    path.write_text("old")
    replaced = []

    def replace(source: Any, target: Any) -> None:
        assert path.read_text() == "old"  # until the new file is complete
        assert equal(load(source), ensemble)
        replaced.append(target)
        raise OSError("disk")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="disk"):
        save(ensemble, path)
    assert replaced == [path]
    assert os.listdir(tmp_path) == ["model.json"]
    assert path.read_text() == "old"


def test_saving_keeps_links_and_the_usual_permissions(
    ensemble: jr.RuleEnsemble, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    save(ensemble, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_missing_folders_and_files(ensemble: jr.RuleEnsemble, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"folder .*nowhere does not exist"):
        save(ensemble, tmp_path / "nowhere" / "model.json")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "model.json")


# Loading what is not a model

BOMB = "[" * 100_000


@pytest.fixture
def document(ensemble: jr.RuleEnsemble) -> Any:
    return json.loads(to_json(ensemble))


def refused(content: Any, tmp_path: Path) -> str:
    """The message of the error when this content is loaded; check that it names the file and a
    remedy.
    """
    path = tmp_path / "bad.json"
    path.write_bytes(
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    with pytest.raises(
        ValueError, match=r"bad\.json cannot be loaded: .*; (write it again|upgrade)"
    ) as caught:
        load(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON, or is truncated"),
        (b"\xff\xfe", "not UTF-8"),
        ("{", "truncated"),
        ("null", "it lacks"),
        ("[]", "it lacks"),
        ("{}", "it lacks"),
        ('"text"', "it lacks"),
        ('{"format": "pickle"}', "it lacks"),
        ('{"format": "a", "format": "b"}', "a duplicate key"),
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        (BOMB, "nested too deeply"),
        (BOMB + "]" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("1" * 10_000, "digits"),
    ],
)
def test_other_files_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    assert message in refused(content, tmp_path)


def test_every_truncation_is_refused(ensemble: jr.RuleEnsemble) -> None:
    text = to_json(ensemble).rstrip()
    for length in range(0, len(text), 7):
        with pytest.raises(ValueError, match="the text cannot be loaded"):
            from_json(text[:length])


def set_at(document: Any, path: str, value: Any) -> Any:
    """A copy of the document with another value at a dotted path."""
    result = copy.deepcopy(document)
    *parents, last = path.split(".")
    node = result
    for name in parents:
        node = node[int(name)] if isinstance(node, list) else node[name]
    node[int(last) if isinstance(node, list) else last] = value
    return result


ARRAY = {"dtype": "float64", "shape": [5, 1], "values": [0.0] * 5}
HOSTILE: list[tuple[str, Any, str]] = [
    (
        "version",
        3,
        "version 3 of RuleEnsemble, but this jaxrules reads only up to 2; upgrade jaxrules",
    ),
    ("version", 0, "version must be"),
    ("version", "1", "version must be"),
    ("version", True, "version must be"),
    ("version", None, "version must be"),
    ("extra", 1, "nothing else"),
    ("type", "os.system", "type must be one of"),
    ("type", "Conjunctions", "type must be one of"),
    ("type", ["RuleEnsemble"], "type must be one of"),
    ("type", "RuleList", "RuleList lacks"),
    ("fields", [], "must be an object"),
    ("fields.extra", 1, "unknown"),
    ("fields.weights", [0.0] * 5, '"dtype", "shape" and "values"'),
    ("fields.weights", {**ARRAY, "dtype": "object"}, "dtype float64, got 'object'"),
    ("fields.weights", {**ARRAY, "dtype": "float32"}, "dtype float64"),
    ("fields.weights", {**ARRAY, "dtype": ["float64"]}, "dtype float64"),
    ("fields.weights", {**ARRAY, "shape": [5]}, "weights must have shape"),
    ("fields.weights", {**ARRAY, "shape": [2**62, 2**62]}, "list of whole numbers"),
    ("fields.weights", {**ARRAY, "shape": [2**30, 2**30]}, "as many values"),
    (
        "fields.weights",
        {**ARRAY, "shape": [0, 2**30, 2**30, 2**30, 2**30], "values": []},
        "too large",
    ),
    ("fields.weights", {**ARRAY, "shape": [0, 2**30], "values": []}, "weights must have shape"),
    ("fields.weights", {**ARRAY, "shape": [1] * 70 + [5]}, "as many values"),
    ("fields.weights", {**ARRAY, "shape": [-5, -1]}, "list of whole numbers"),
    ("fields.weights", {**ARRAY, "shape": [5.0, 1]}, "list of whole numbers"),
    ("fields.weights", {**ARRAY, "shape": [5, True]}, "list of whole numbers"),
    ("fields.weights", {**ARRAY, "shape": 5}, "list of whole numbers"),
    ("fields.weights", {**ARRAY, "shape": [], "values": [1.0]}, "weights must have shape"),
    ("fields.weights", {**ARRAY, "values": "00000"}, "as many values"),
    ("fields.weights", {**ARRAY, "values": [[0.0]] * 5}, 'must be a number, "inf"'),
    ("fields.weights", {**ARRAY, "values": ["0.0"] * 5}, 'must be a number, "inf"'),
    ("fields.weights", {**ARRAY, "values": [None] * 5}, 'must be a number, "inf"'),
    ("fields.weights", {**ARRAY, "values": [True] * 5}, 'must be a number, "inf"'),
    ("fields.weights", {**ARRAY, "values": [2**60 + 1] * 5}, 'must be a number, "inf"'),
    ("fields.weights", {**ARRAY, "values": ["inf"] * 5}, "must be finite"),
    ("fields.weights", {**ARRAY, "values": ["nan"] * 5}, 'must be a number, "inf"'),
    (
        "fields.intercept",
        {"dtype": "float64", "shape": [], "values": [0.0]},
        "intercept must have shape",
    ),
    ("fields.link", "probit", "link must be one of"),
    ("fields.link", ["logistic"], "link must be one of"),
    ("fields.link", "identity", "does not fit classes"),
    ("fields.linear", [], "linear must be an object"),
    ("fields.linear", 0, "linear must be an object"),
    ("fields.options", None, "options must be a list"),
    ("fields.options", [["a"]], "options[0] must have 2 entries"),
    ("fields.options", [["a", {}]], "options[0][1]"),
    ("fields.options", [[1, 2]], "options[0][0] must be of type str"),
    ("fields.conjunctions.offsets.values.1", 1.0, "whole numbers of type int32"),
    ("fields.conjunctions.offsets.values.1", 2**31, "whole numbers of type int32"),
    ("fields.conjunctions.offsets.values.1", True, "whole numbers of type int32"),
    ("fields.conjunctions.offsets.values.1", -1, "offsets must not fall"),
    ("fields.conjunctions.offsets.shape", [2, 3], "offsets must rise"),
    ("fields.conjunctions.feature.values.0", 99, "feature must lie"),
    ("fields.conjunctions.missing.values.0", 1, "true or false"),
    ("fields.conjunctions.schema.features", [], "at least one feature"),
    ("fields.conjunctions.schema.features.0.name", None, "name must be of type str"),
    ("fields.conjunctions.schema.features.0.name", "job", "distinct"),
    ("fields.conjunctions.schema.features.0.categories", "ab", "must be a list"),
    ("fields.conjunctions.schema.features.0.categories", [], "at least one"),
    ("fields.conjunctions.schema.features.1.categories", ["a", "a", "b"], "distinct"),
    ("fields.conjunctions.schema.features.1.categories", ["a", 1], "must be of type str"),
    ("fields.conjunctions.schema.missing", "drop", "must be one of"),
    ("fields.conjunctions.schema.classes", ["no", "no"], "distinct"),
    ("fields.conjunctions.schema.classes", ["no", 1], "of one type"),
    ("fields.conjunctions.schema.classes", ["no", None], "must not be None"),
    ("fields.conjunctions.schema.classes", ["a", "b", "c"], "outputs do not fit"),
    ("fields.conjunctions.schema.classes", {"no": "yes"}, "must be a list"),
    ("fields.conjunctions.schema.classes", [0, 2**70], "must fit in 64 bits"),
]


@pytest.mark.parametrize(("where", "value", "message"), HOSTILE)
def test_hostile_content_is_refused(
    where: str, value: Any, message: str, document: Any, tmp_path: Path
) -> None:
    assert message in refused(set_at(document, where, value), tmp_path)


@pytest.mark.parametrize("where", ["fields.scale.values.0", "fields.output_scale.values.0"])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_path_divides_by_positive_numbers_only(where: str, value: float, tmp_path: Path) -> None:
    path = json.loads((GOLDEN / "CoordinatePath-1-classes.json").read_text())
    assert "scale and output_scale must be positive" in refused(
        set_at(path, where, value), tmp_path
    )


def test_floats_that_overflow_and_deep_options_are_refused(document: Any, tmp_path: Path) -> None:
    text = json.dumps(set_at(document, "fields.intercept.values.0", 0.5))
    assert "must be a number" in refused(text.replace("[0.5]", "[1e999]"), tmp_path)
    text = json.dumps(set_at(document, "fields.options", [["a", 0.5]]))
    assert "must be finite" in refused(text.replace('["a", 0.5]', '["a", 1e999]'), tmp_path)
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert "options[0][1]" in refused(set_at(document, "fields.options", [["a", deep]]), tmp_path)


def test_a_file_that_is_too_large_is_refused(
    ensemble: jr.RuleEnsemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(ensemble, tmp_path / "model.json")
    monkeypatch.setattr(persistence, "_LARGEST_FILE", 100)
    assert "larger than 100 bytes" in refused(b" " * 101, tmp_path)
    with pytest.raises(ValueError, match="more than the 100"):
        save(ensemble, tmp_path / "model.json")


def paths_of(node: Any, prefix: str = "") -> Iterator[str]:
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for name, child in children:
        yield f"{prefix}{name}"
        yield from paths_of(child, f"{prefix}{name}.")


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
    | st.sampled_from(
        ["inf", "-inf", "nan", "float64", "int32", "bool", "RuleList", -1, 0, 1, 5, 2**31]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["dtype", "shape", "values"]), inner)
    ),
    max_leaves=4,
)


@settings(max_examples=300)
@given(data=st.data())
def test_any_change_gives_a_model_that_works_or_a_value_error(data: st.DataObject) -> None:
    schema = jr.Schema(
        (jr.Feature("a"), jr.Feature("k", ("x", "y"))), "own_category", ("no", "yes")
    )
    rules = jr.Conjunctions.build(
        schema, [[C(0, -1.0, 1.0), C.one_of(1, [1])], [C.is_missing(0, numeric=True)], []]
    )
    terms = jr.LinearTerms(np.array([0], np.int32), np.ones((1, 1)), -np.ones(1), np.ones(1))
    model: Any = jr.RuleEnsemble(
        rules, np.ones((3, 1)), np.zeros(1), terms, "logistic", (("a", 1),)
    )
    if data.draw(st.booleans()):
        model = jr.RuleList(rules, np.array([0, 1, 0, 1], np.int32), np.full((4, 2), 0.5))
    document = json.loads(to_json(model))
    for _ in range(data.draw(st.integers(1, 2))):
        where = data.draw(st.sampled_from(sorted(paths_of(document))))
        document = set_at(document, where, data.draw(junk))
    try:
        loaded = from_json(json.dumps(document))
    except ValueError as error:
        if not str(error).startswith("the text cannot be loaded"):
            raise
        return
    features = loaded.schema.features
    columns = [
        np.array([0.5, np.nan]) if f.is_numeric else np.array([0, -1], np.int32) for f in features
    ]
    assert (
        len(
            jr.predict(
                loaded,
                jr.Table(
                    dataclasses.replace(loaded.schema, missing="own_category"), tuple(columns)
                )[:1],
            )
        )
        == 1
    )
    str(loaded)
    assert equal(from_json(to_json(loaded)), loaded)


def test_from_json_takes_text() -> None:
    with pytest.raises(TypeError, match="got PosixPath; load reads files"):
        from_json(Path("model.json"))


# Files of earlier versions

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.json"))


def golden_rows() -> Any:
    spec = importlib.util.spec_from_file_location("golden", GOLDEN / "write.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.frame()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_every_version_load_and_predict_the_same(path: Path) -> None:
    model, expected, X = (
        load(path),
        json.loads(path.with_suffix(".answers").read_text()),
        golden_rows(),
    )
    name, version, _ = path.stem.split("-", 2)
    assert type(model).__name__ == name
    assert json.loads(path.read_text())["version"] == int(version)
    if "survival" in expected:
        said = model.survival(X, [0.5, 2.5, 7.0])
        np.testing.assert_allclose(said, expected["survival"], rtol=1e-14)
        assert str(from_json(to_json(model))) == str(model)
        return
    predicted = np.asarray(jr.predict(model, X)).tolist()
    assert predicted == (
        pytest.approx(expected["predict"], rel=1e-14)
        if model.schema.classes is None
        else expected["predict"]
    )
    if "decision_function" in expected:
        assert np.asarray(jr.decision_function(model, X)).tolist() == expected["decision_function"]
    if "predict_proba" in expected:
        np.testing.assert_allclose(
            jr.predict_proba(model, X), expected["predict_proba"], rtol=1e-14
        )
    assert equal(from_json(to_json(model)), model)


def test_every_version_has_a_file() -> None:
    kept = {tuple(path.stem.split("-")[:2]) for path in FILES}
    assert kept == {
        (name, str(v))
        for name, newest in persistence.versions().items()
        for v in range(1, newest + 1)
    }


def test_version_1_of_rules_is_completed() -> None:
    own = load(GOLDEN / "RuleEnsemble-1-own-loss.json")
    assert own.loss == "log_cosh"
    assert load(GOLDEN / "RuleEnsemble-1-counts.json").loss is None
    # an interval with two ends, (!=, >=), always, never, is missing, (in, <), not in and present
    assert own.conjunctions.propositions.tolist() == [2, 2, 0, 2, 1, 2, 2]
    assert len(own.conjunctions.directions) == 0
    assert jr.complexity(load(GOLDEN / "RuleList-1-missing.json")) == 3 + 1 + 2 + 2


VERSION_1 = [
    ("fields", [], "not those of version 1 of RuleEnsemble"),
    ("fields", {}, "not those of version 1 of RuleEnsemble ('options')"),
    ("fields.conjunctions", None, "not those of version 1"),
    ("fields.conjunctions.offsets", 3, "not those of version 1"),
    ("fields.conjunctions.offsets.values", [], "as many values as its shape"),
    ("fields.conjunctions.feature.values.0", 99, "feature must lie"),
    ("fields.conjunctions.schema.features", [], "at least one feature"),
    ("fields.conjunctions.lower.values", 3, "as many values as its shape"),
    ("fields.options", 7, "not those of version 1"),
    ("fields.options", [["loss"]], "not those of version 1"),
    ("fields.options", [["loss", 7]], "loss must not be 7"),
    ("fields.extra", 1, "unknown"),
]


@pytest.mark.parametrize(("where", "value", "message"), VERSION_1)
def test_hostile_files_of_earlier_versions_are_refused(
    where: str, value: Any, message: str, tmp_path: Path
) -> None:
    document = json.loads((GOLDEN / "RuleEnsemble-1-own-loss.json").read_text())
    assert message in refused(set_at(document, where, value), tmp_path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_model_of_an_earlier_file_is_the_same_after_a_round_trip(path: Path) -> None:
    model = from_json(path.read_text())
    assert equal(from_json(to_json(model)), model)


@settings(max_examples=100)
@given(data=st.data())
def test_any_change_of_an_earlier_file_gives_a_model_or_a_value_error(data: st.DataObject) -> None:
    document = json.loads(data.draw(st.sampled_from(FILES)).read_text())
    where = data.draw(st.sampled_from(sorted(paths_of(document))))
    try:
        model = from_json(json.dumps(set_at(document, where, data.draw(junk))))
    except ValueError as error:
        if not str(error).startswith("the text cannot be loaded"):
            raise
        return
    assert equal(from_json(to_json(model)), model)


# Other models


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Stairs:
    """A model of another module: the kinds of fields that it may have."""

    steps: NDArray[np.float64] = dataclasses.field(metadata={"dtype": np.float64})
    counts: NDArray[np.int64] = dataclasses.field(metadata={"dtype": np.int64})
    flags: Any = dataclasses.field(metadata={"dtype": np.bool_})
    pairs: tuple[tuple[int, float], ...] = dataclasses.field(metadata={"static": True})
    top: float = dataclasses.field(metadata={"static": True})
    cost: Literal["squared", "logistic"] = dataclasses.field(metadata={"static": True})
    note: str | None = dataclasses.field(default=None, metadata={"static": True})
    schema: jr.Schema | None = dataclasses.field(default=None, metadata={"static": True})
    columns: tuple[EncodedColumn, ...] = dataclasses.field(default=(), metadata={"static": True})

    def validate(self) -> None:
        if len(self.steps) != len(self.counts):
            raise ValueError("as many counts as steps")


@pytest.fixture
def own_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    for name in ("_models", "_migrations"):
        monkeypatch.setattr(persistence, name, dict(getattr(persistence, name)))


def test_other_models_register_themselves(own_models: None, schema: jr.Schema) -> None:
    stairs = Stairs(
        np.array([0.1, -np.inf]), np.array([2**60, -1]), np.array([[True, False]]),
        ((1, 2.5), (2, math.inf)), -math.inf, "squared", "a note", schema,
        (EncodedColumn(0, None), EncodedColumn(1, 2)),
    )  # fmt: skip
    with pytest.raises(TypeError, match="got Stairs"):
        to_json(stairs)
    assert register_model(Stairs) is Stairs
    register_model(Stairs)
    again = from_json(to_json(stairs))
    assert equal(again, stairs)
    assert again.columns[1].category == 2
    assert equal(
        from_json(to_json(dataclasses.replace(stairs, note=None, schema=None))).steps, stairs.steps
    )
    with pytest.raises(ValueError, match="as many counts"):
        to_json(dataclasses.replace(stairs, steps=np.zeros(0)))
    with pytest.raises(ValueError, match=r"pairs\[0\] must have 2 entries, got 3"):
        from_json(to_json(stairs).replace("[1, 2.5]", "[1, 2.5, 3]"))


def test_fields_with_defaults_may_be_absent_and_migrations_do_the_rest(own_models: None) -> None:

    def renamed(fields: dict[str, Any]) -> dict[str, Any]:
        return {
            **{name: value for name, value in fields.items() if name != "tallies"},
            "counts": fields["tallies"],
        }

    def priced(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "cost": "squared"}

    register_model(Stairs, [renamed, priced])
    assert persistence.versions()["Stairs"] == 3
    stairs = Stairs(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, bool), (), 1.0, "squared")
    document = json.loads(to_json(stairs))
    assert document["version"] == 3
    for name in ("note", "schema", "columns"):
        del document["fields"][name]
    assert equal(from_json(json.dumps(document)), stairs)
    del document["fields"]["cost"]
    with pytest.raises(ValueError, match=r"Stairs lacks \['cost'\]"):
        from_json(json.dumps(document))
    assert equal(from_json(json.dumps({**document, "version": 2})), stairs)
    document["fields"]["tallies"] = document["fields"].pop("counts")
    assert equal(from_json(json.dumps({**document, "version": 1})), stairs)
    with pytest.raises(ValueError, match="not those of version 1 of Stairs"):
        from_json(json.dumps({**document, "version": 1, "fields": {}}))


@dataclasses.dataclass
class WithDictionary:
    table: dict[str, int]

    def validate(self) -> None: ...


@dataclasses.dataclass
class WithTexts:
    names: Any = dataclasses.field(metadata={"dtype": np.str_})

    def validate(self) -> None: ...


@dataclasses.dataclass
class WithoutDtype:
    steps: NDArray[np.float64]

    def validate(self) -> None: ...


def test_fields_that_cannot_be_saved_are_named_at_the_first_save(own_models: None) -> None:
    for model, message in [
        (WithDictionary({}), "WithDictionary.table: cannot save a field of type dict"),
        (WithTexts(np.array(["a"])), "WithTexts.names: arrays must be boolean, integer or float"),
        (WithoutDtype(np.zeros(1)), r"WithoutDtype.steps: cannot save .* needs field\(metadata="),
    ]:
        register_model(type(model))
        with pytest.raises(TypeError, match=message):
            to_json(model)


def test_models_that_cannot_be_registered() -> None:
    @dataclasses.dataclass
    class Unchecked:
        x: int

    for cls, message in [(Unchecked, "validate"), (int, "dataclass")]:
        with pytest.raises(TypeError, match=message):
            register_model(cls)
    impostor = type("RuleList", (jr.RuleList,), {})
    with pytest.raises(TypeError, match="another model is registered as RuleList"):
        register_model(impostor)
