"""Data sets: bundled, generated, from a folder with a manifest; splits; helpful errors."""

import gzip
import hashlib
import json
import os
import types

import numpy as np
import pytest

import jaxrules as jr


@pytest.mark.parametrize(
    ("name", "shape"), [("breast_cancer", (569, 30)), ("iris", (150, 4)), ("diabetes", (442, 10))]
)
def test_bundled_sets_have_names_and_text_labels(name, shape):
    data = jr.datasets.load(name)
    assert data.X.shape == shape == (len(data), shape[1])
    assert not data.X.names[0].startswith("x0")
    assert (data.y.dtype.kind == "U") == (data.task != "regression")
    assert repr(shape[0]) in repr(data)


def test_generators_are_seeded():
    first, second, other = (jr.datasets.load("friedman1", seed=seed).y for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("test_size", [0.1, 0.25, 0.5])
def test_splits_are_stratified_disjoint_and_seeded(test_size):
    data = jr.datasets.load("breast_cancer")
    train, test = jr.datasets.train_test_split(data, test_size=test_size, seed=3)
    assert len(train) + len(test) == len(data)
    assert len(test) == round(test_size * len(data))
    assert abs((train.y == "benign").mean() - (test.y == "benign").mean()) < 0.02
    both = np.concatenate([np.stack(part.X.columns, 1) for part in (train, test)])
    assert sorted(map(tuple, both)) == sorted(map(tuple, np.stack(data.X.columns, 1)))
    again = jr.datasets.train_test_split(data, test_size=test_size, seed=3)[1]
    np.testing.assert_array_equal(test.X.columns[0], again.X.columns[0])


@pytest.mark.parametrize("test_size", [0, 1, -1, 1e-9, float("nan")])
def test_a_split_without_rows_on_both_sides_is_refused(test_size):
    with pytest.raises(ValueError, match="test_size"):
        jr.datasets.train_test_split(jr.datasets.load("iris"), test_size=test_size)


@pytest.fixture
def folder(tmp_path):
    text = 'size,job,target\n1.5,"a, b",yes\n,,no\n0x,c,no\n'.replace("0x", "2")
    content = gzip.compress(text.encode())
    (tmp_path / "toy.csv.gz").write_bytes(content)
    entry = {
        "name": "toy",
        "file": "toy.csv.gz",
        "sha256": hashlib.sha256(content).hexdigest(),
        "task": "binary",
        "categorical": ["job"],
        "positive_class": "yes",
        "note": "made for this test",
    }
    (tmp_path / "manifest.json").write_text(json.dumps([entry]))
    return tmp_path


def test_a_folder_with_a_manifest(folder, monkeypatch):
    data = jr.datasets.load("toy", data_home=folder)
    assert data.X.schema.features[1].categories == ("a, b", "c")
    np.testing.assert_array_equal(data.X.columns[0], [1.5, np.nan, 2])
    np.testing.assert_array_equal(data.X.columns[1], [0, -1, 1])
    assert data.y.tolist() == ["yes", "no", "no"]
    assert data.positive_class == "yes"
    assert "toy" in jr.datasets.available(folder)
    monkeypatch.setenv("JAXRULES_DATA", str(folder))
    assert jr.datasets.load("toy").note == "made for this test"


def test_files_are_checked(folder, tmp_path, monkeypatch):
    (folder / "toy.csv.gz").write_bytes(gzip.compress(b"size,job,target\n9,c,no\n"))
    with pytest.raises(ValueError, match="sha256"):
        jr.datasets.load("toy", data_home=folder)
    (folder / "toy.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"toy\.csv\.gz"):
        jr.datasets.load("toy", data_home=folder)
    with pytest.raises(FileNotFoundError, match="data_home.*manifest"):
        jr.datasets.load("toy", data_home=folder / "nowhere")
    monkeypatch.delenv("JAXRULES_DATA", raising=False)
    with pytest.raises(ValueError, match=r"unknown data set 'toy'.*manifest\.json"):
        jr.datasets.load("toy")


def write(folder, text, **entry):
    (folder / "toy.csv").write_text(text)
    given = {"name": "toy", "file": "toy.csv", "task": "binary", "categorical": []} | entry
    (folder / "manifest.json").write_text(json.dumps([given]))


def test_whole_numbers_as_labels_are_integers(tmp_path):
    write(tmp_path, "a,target\n1e3,0\n-0.5,1\n", positive_class=1)
    data = jr.datasets.load("toy", data_home=tmp_path)
    assert data.y.dtype.kind == "i"
    assert data.positive_class == 1
    assert isinstance(data.positive_class, int)
    assert data.X.schema.missing == "refuse"
    np.testing.assert_array_equal(data.X.columns[0], [1000, -0.5])
    write(tmp_path, "a,target\n1,0.5\n2,1\n", task="regression")
    np.testing.assert_array_equal(jr.datasets.load("toy", data_home=tmp_path).y, [0.5, 1])


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("", {}, "a last column named target"),
        ("a,target\n", {}, "a last column named target"),
        ("a,target\n1,2,3\n", {}, "2 cells in every row"),
        ("target,a\n1,2\n", {}, "a last column named target"),
        ("a,target\n1,\n2,0\n", {}, "rows without a target"),
        ("a,target\nx,1\n2,0\n", {}, "column 'a' of toy.csv is neither numeric"),
        (
            "a,target\n1,x\n2,0\n",
            {"task": "regression"},
            "column 'target' of toy.csv is neither numeric",
        ),
        ("a,target\ninf,1\n2,0\n", {}, "column 'a' of X has infinite values"),
        ("a,a,target\n1,2,1\n2,3,0\n", {}, "must be distinct"),
        ("a,target\n1,1\n2,0\n", {"categorical": ["b"]}, "lacks the categorical columns b"),
        ("a,target\n1,1\n2,0\n", {"positive_class": 2}, "positive_class 2 of 'toy'.*not a label"),
        (
            "a,target\n1,1\n2,0\n",
            {"task": "counts"},
            "task of 'toy' in manifest.json must be one of binary",
        ),
    ],
)
def test_files_and_manifests_that_make_no_data_set_are_refused(tmp_path, text, entry, message):
    write(tmp_path, text, **entry)
    with pytest.raises(ValueError, match=message):
        jr.datasets.load("toy", data_home=tmp_path)


@pytest.mark.parametrize("text", ["{", "3", "[{}]", "[1]"])
def test_a_manifest_that_is_no_list_of_entries_is_refused(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match="is not a list of entries that each have a name"):
        jr.datasets.load("toy", data_home=tmp_path)


def test_openml_that_cannot_be_reached_says_where_to_put_the_file(monkeypatch):
    def no_network(**options):
        assert options["data_id"] == 1590
        raise OSError("no network")

    monkeypatch.delenv("JAXRULES_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    with pytest.raises(
        FileNotFoundError, match=r"'adult'.*CSV file and a manifest\.json.*JAXRULES_DATA"
    ):
        jr.datasets.load("adult")


def test_openml_frames_become_tables(monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, np.nan], "b": pandas.Categorical(["u", "v"])})
    bunch = types.SimpleNamespace(data=frame, target=pandas.Series(["1", "2"], dtype="category"))
    monkeypatch.delenv("JAXRULES_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    data = jr.datasets.load("cmc")
    assert data.X.schema.features == (jr.Feature("a"), jr.Feature("b", ("u", "v")))
    assert data.X.columns_with_missing() == ("a",)
    assert data.y.tolist() == [1, 2]


@pytest.mark.needs_data
def test_the_data_folder_matches_its_manifest():
    data = jr.datasets.load("adult")
    assert data.X.shape == (48842, 14)
    assert data.X.columns_with_missing() == ("workclass", "occupation", "native-country")
    assert set(data.y) == {"<=50K", ">50K"}
    assert jr.datasets.load("cmc").task == "multiclass"
    assert jr.datasets.load("boston").y.dtype == np.float64


@pytest.mark.slow
@pytest.mark.needs_data
def test_every_set_of_the_folder_loads():
    with open(os.path.join(os.environ["JAXRULES_DATA"], "manifest.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        data = jr.datasets.load(entry["name"])
        assert data.X.shape == (entry["rows"], entry["n_features"]), entry["name"]
        assert data.task == entry["task"]
        named = [feature.name for feature in data.X.schema.features if not feature.is_numeric]
        assert named == entry["categorical"]
