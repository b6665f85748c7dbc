"""Data sets by name: scikit-learn's own, a folder of files with a manifest, or OpenML.

`load` looks in this order: the sets bundled with scikit-learn and its generators, which need no
file; the folder `data_home`, or that of the environment variable JAXRULES_DATA; OpenML.

The folder holds ``manifest.json``, a list of entries with ``name``, ``file`` (CSV, also gzipped,
UTF-8, a header row, the target column last and named ``target``, empty cells for missing values),
``sha256``, ``task`` ("binary", "multiclass" or "regression"), ``categorical`` (names of the
categorical columns) and, optionally, ``positive_class`` (a label) and ``note``. Class labels are
integers if all are whole numbers, else text.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.groups import group_codes, spread_groups
from jaxrules.data.table import MISSING, Feature, Label, Schema, Table, as_table
from jaxrules.tools import checks

Task = Literal["binary", "multiclass", "regression"]

DATA_HOME_VARIABLE = "JAXRULES_DATA"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set.

    Attributes:
        name: its name.
        X: the features; missing values are kept, and `fit` refuses them by default.
        y: the target, shape (rows,): text or integer labels, or numbers.
        task: "binary", "multiclass" or "regression".
        positive_class: the label of interest of a binary task according to its source, or None.
            Pass it on: ``fit(data.X, data.y, positive=data.positive_class)``.
        note: remarks on the source and on changes.
    """

    name: str
    X: Table
    y: NDArray[Any]
    task: Task
    positive_class: Label | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Dataset:
        """The selected rows."""
        return replace(self, X=self.X[rows], y=self.y[rows])

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {self.task}, {self.X.n_rows} rows, {self.X.shape[1]} columns)"
        )


def load(name: str, data_home: str | os.PathLike[str] | None = None, *, seed: int = 0) -> Dataset:
    """The data set of this name.

    Args:
        name: "breast_cancer", "iris", "wine", "digits" or "diabetes" (bundled with scikit-learn),
            "friedman1", "friedman2" or "friedman3" (its generators, 2000 rows), a name in the
            folder's manifest, or one of the known sets on OpenML; see `available`.
        data_home: folder of files; None for the folder in the environment variable JAXRULES_DATA.
        seed: seed of the generators.

    Raises:
        ValueError: for an unknown name, or a file that does not match its manifest.
        FileNotFoundError: if the set is in no folder and OpenML cannot be reached; the message
            names the remedy.
    """
    seed = checks.seed(seed)
    checks.text("name", name, "the name of a data set, see available()")
    if name in _BUNDLED:
        return _BUNDLED[name](name)
    if name in _GENERATED:
        return _generated(name, seed)
    home = _home(data_home)
    entry = _manifest(home).get(name) if home is not None else None
    if home is not None and entry is not None and entry.get("file"):
        return _read_file(home / entry["file"], entry)
    if name in _OPENML:
        return _from_openml(name)
    raise ValueError(
        f"unknown data set {name!r}; available are {', '.join(available(data_home))}. For others, "
        "put the CSV file and a manifest.json that lists it into a folder, and pass the folder as "
        f"data_home or name it in {DATA_HOME_VARIABLE}"
    )


def available(data_home: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """The names that `load` knows; those on OpenML need a network connection."""
    home = _home(data_home)
    listed = {} if home is None else _manifest(home)
    files = (name for name, entry in listed.items() if entry.get("file"))
    return tuple(sorted({*_BUNDLED, *_GENERATED, *_OPENML, *files}))


def train_test_split(
    data: Dataset, *, test_size: float = 0.25, seed: int = 0, groups: ArrayLike | None = None
) -> tuple[Dataset, Dataset]:
    """A random split into training and test rows, stratified by class.

    Args:
        data: the data set.
        test_size: fraction of test rows, between 0 and 1.
        seed: seed of the shuffle.
        groups: the group of every row, such as the person whom it is about, shape (rows,), whose
            rows stay together; the parts then have these sizes as nearly as whole groups allow.

    Raises:
        TypeError, ValueError: if `test_size` leaves either part without rows, or `groups` has not
            one value per row, or a single one.
    """
    checks.instance("data", data, Dataset, "jaxrules.datasets.load")
    test_size, seed = checks.number("test_size", test_size), checks.seed(seed)
    n_test = round(test_size * len(data)) if 0 < test_size < 1 else 0
    if not 0 < n_test < len(data):
        raise ValueError(
            "test_size must be a fraction between 0 and 1 that leaves both training and test rows, "
            f"got {test_size}"
        )
    if groups is not None:
        group = group_codes(groups, len(data))
        checks.require(group.max() > 0, "groups has only one distinct value; omit groups")
        codes = None
        if data.task != "regression":
            codes = np.unique(data.y, return_inverse=True)[1]
        part = spread_groups(group, codes, np.array([1 - test_size, test_size]), seed)
        return data[np.flatnonzero(part == 0)], data[np.flatnonzero(part == 1)]
    order = np.random.default_rng(seed).permutation(len(data))
    if data.task != "regression":
        # Sort by class, then take every k-th row: each class has its share of the test rows.
        order = order[np.argsort(np.unique(data.y, return_inverse=True)[1][order], kind="stable")]
    # Row i is a test row where floor(i n_test / n) rises: n_test times, evenly spaced.
    is_test = np.diff(np.floor(np.arange(len(data) + 1) * n_test / len(data) + 1e-9)) > 0
    return data[np.sort(order[~is_test])], data[np.sort(order[is_test])]


# Bundled with scikit-learn


def _classes(name: str) -> Dataset:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    labels = np.asarray(bunch.target_names)[bunch.target] if name != "digits" else bunch.target
    task: Task = "binary" if len(bunch.target_names) == 2 else "multiclass"
    X = as_table(bunch.data, feature_names=list(bunch.feature_names))
    positive = str(bunch.target_names[1]) if task == "binary" else None
    return Dataset(name, X, labels, task, positive, "bundled with scikit-learn")


def _diabetes(name: str) -> Dataset:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    X = as_table(bunch.data, feature_names=list(bunch.feature_names))
    return Dataset(
        name, X, bunch.target, "regression", note="bundled with scikit-learn, features not scaled"
    )


def _generated(name: str, seed: int) -> Dataset:
    from sklearn import datasets

    make = getattr(datasets, f"make_{name}")
    X, y = make(n_samples=2000, noise=0.1, random_state=seed)
    note = f"sklearn.datasets.make_{name}(n_samples=2000, noise=0.1, random_state={seed})"
    return Dataset(name, as_table(X), y, "regression", note=note)


_BUNDLED: dict[str, Callable[[str], Dataset]] = {
    **dict.fromkeys(("breast_cancer", "iris", "wine", "digits"), _classes),
    "diabetes": _diabetes,
}
_GENERATED = ("friedman1", "friedman2", "friedman3")


# A folder of files


def _home(data_home: str | os.PathLike[str] | None) -> Path | None:
    named = data_home if data_home is not None else os.environ.get(DATA_HOME_VARIABLE)
    if named is None:
        return None
    if not isinstance(named, (str, os.PathLike)) or "\0" in os.fspath(named):
        raise TypeError(f"data_home must be the path of a folder, got {named!r}")
    if not (Path(named) / "manifest.json").is_file():
        variable = f"the environment variable {DATA_HOME_VARIABLE}"
        source = variable if data_home is None else "data_home"
        raise FileNotFoundError(f"{source} names {str(named)!r}, which has no manifest.json")
    return Path(named)


def _manifest(home: Path) -> dict[str, dict[str, Any]]:
    path = home / "manifest.json"
    try:
        return {entry["name"]: entry for entry in json.loads(path.read_text("utf-8"))}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{str(path)!r} is not a list of entries that each have a name: {error!r}"
        ) from error


def _read_file(path: Path, entry: dict[str, Any]) -> Dataset:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.name}, the file of the data set {entry['name']!r}, is not in "
            f"{str(path.parent)!r}"
        )
    if entry.get("task") not in get_args(Task):
        raise ValueError(
            f"the task of {entry['name']!r} in manifest.json must be one of "
            f"{', '.join(get_args(Task))}"
        )
    content = path.read_bytes()
    # The checksum is that of the file as it is stored, compressed or not.
    if "sha256" in entry and hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise ValueError(
            f"{path.name} is not the file that manifest.json describes (its sha256 differs)"
        )
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    # newline="": quoted cells may hold line breaks, which the csv module reads itself.
    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    if not rows or header[-1] != "target" or set(map(len, rows)) != {len(header)}:
        raise ValueError(
            f"{path.name} must have {len(header)} cells in every row, and a last column named "
            "target"
        )
    *columns, target = zip(*rows, strict=True)
    if "" in target:
        raise ValueError(f"{path.name} has rows without a target; drop them")
    y = _numbers(target, "target", path.name) if entry["task"] == "regression" else _labels(target)
    table = _table(header[:-1], columns, entry.get("categorical", ()), path.name)
    about = entry["task"], _positive(entry, y), entry.get("note", "")
    return Dataset(entry["name"], table, y, *about)


def _positive(entry: dict[str, Any], y: NDArray[Any]) -> Label | None:
    """The positive class as a label of `y`."""
    given = entry.get("positive_class")
    if given is None:
        return None
    # JSON may hold the label 1 as 1 or as "1".
    known: dict[str, Label] = {str(label): label for label in np.unique(y).tolist()}
    if str(given) not in known:
        raise ValueError(
            f"the positive_class {given!r} of {entry['name']!r} in manifest.json is not a label in "
            "its file"
        )
    return known[str(given)]


def _table(
    names: Sequence[str], columns: Sequence[Sequence[str]], categorical: Sequence[str], file: str
) -> Table:
    if absent := sorted(set(categorical) - set(names)):
        raise ValueError(
            f"{file} lacks the categorical columns {', '.join(absent)} that manifest.json lists"
        )
    features: list[Feature] = []
    arrays: list[NDArray[Any]] = []
    for name, cells in zip(names, columns, strict=True):
        if name in categorical:
            # Not by `as_table`, which takes numbers in text for a mistake: the manifest declares
            # categories.
            categories = tuple(sorted(set(cells) - {""}))
            codes = {"": MISSING} | {category: code for code, category in enumerate(categories)}
            arrays.append(np.fromiter(map(codes.__getitem__, cells), np.int32, len(cells)))
            features.append(Feature(name, categories))
        else:
            arrays.append(_numbers(cells, name, file))
            features.append(Feature(name))
    return _as_complete(Table(Schema(tuple(features), "own_category"), tuple(arrays)))


def _as_complete(table: Table) -> Table:
    """The table with the rule that it allows: "own_category" only if it has missing values."""
    return as_table(table, missing="own_category" if table.columns_with_missing() else "refuse")


def _numbers(cells: Sequence[str], name: str, file: str) -> NDArray[np.float64]:
    """The cells as numbers, NaN for empty ones."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells], np.float64)
    except ValueError as error:
        raise ValueError(
            f"column {name!r} of {file} is neither numeric nor listed as categorical in "
            "manifest.json"
        ) from error


def _labels(cells: Sequence[str]) -> NDArray[Any]:
    """Labels as integers if all are integers, else as text."""
    try:
        return np.array(cells, np.int64)
    except ValueError:
        return np.array(cells)


# OpenML

_OPENML: dict[str, tuple[int, Task, str | None]] = {
    "adult": (1590, "binary", ">50K"),
    "tic_tac_toe": (50, "binary", "positive"),
    "magic": (1120, "binary", "g"),
    "cmc": (23, "multiclass", None),
    "pendigits": (32, "multiclass", None),
    "page_blocks": (30, "multiclass", None),
}
"""Name, pinned data id, task and positive class."""


def _from_openml(name: str) -> Dataset:
    from sklearn.datasets import fetch_openml

    data_id, task, positive = _OPENML[name]
    try:
        bunch = fetch_openml(data_id=data_id, as_frame=True)
    except ImportError as error:
        message = f"loading {name!r} from OpenML needs pandas; pip install pandas"
        raise ImportError(message) from error
    except OSError as error:
        raise FileNotFoundError(
            f"{name!r} could not be downloaded from OpenML (data id {data_id}); put its CSV file "
            "and a manifest.json that lists it into a folder, and pass the folder as data_home or "
            f"name it in {DATA_HOME_VARIABLE}"
        ) from error
    table = _as_complete(as_table(bunch.data, missing="own_category"))
    labels = _labels(np.asarray(bunch.target, dtype=str).tolist())
    return Dataset(name, table, labels, task, positive, f"OpenML data id {data_id}")
