"""Models as JSON: `save` and `load`.

A file contains the name of the format, the type of the model, the version of its fields, and the
fields. The dataclass of the model defines the fields: an array field names its dtype,
``field(metadata={"dtype": np.float64})``; the others have ordinary type hints (classes, tuples,
``Literal``, ``X | None``). Loading executes nothing and accepts only a well-formed model: types are
looked up in a registry, arrays must have the declared dtype and as many values as their shape, and
`model.validate()` must pass.

Old files stay readable: a field with a default may be absent; beyond that, a migration turns the
fields of one version of a type into those of the next. tests/golden holds a file of every version.

Numbers are written with enough digits to read back exactly. JSON has no infinity, so infinite ends
of intervals are the strings "inf" and "-inf".
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import secrets
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from jaxrules.models.rule_models import RegressionList, RuleEnsemble, RuleList
from jaxrules.rules.conditions import Conjunctions

FORMAT = "jaxrules model"

_LARGEST_FILE = 1 << 30
_LARGEST_DIMENSION = 1 << 31
_SPECIAL = {"inf": math.inf, "-inf": -math.inf}
_EXACT = 1 << 53
_DEEPEST_OPTION = 8
_PLAIN = (bool, int, float, str, types.NoneType)

Json = dict[str, Any]
"""A JSON object, read from a file or to be written."""
Migration = Callable[[Json], Json]

_models: dict[str, type] = {}
_migrations: dict[tuple[str, int], Migration] = {}

ModelType = TypeVar("ModelType", bound=type)


def register_model(cls: ModelType, migrations: Sequence[Migration] = ()) -> ModelType:
    """Let `save` and `load` accept models of this type.

    Args:
        cls: a dataclass with a method ``validate()`` that raises ValueError. Its fields are arrays,
            which name their dtype (``field(metadata={"dtype": np.float64})``), or numbers,
            booleans, text, ``Literal``, ``None``, and tuples, named tuples and dataclasses of
            these. A field with a default may be absent from a file; one with the metadata
            ``{"saved": False}``, which needs a default, always is.
        migrations: functions from the fields of version 1, 2, ..., as in JSON, to those of the next
            version. Add one for a change of the fields that defaults do not cover; the version is
            one more than their number.

    Raises:
        TypeError: if `cls` is not such a dataclass, or its name is taken. The first `save` or
            `load` checks the fields.
    """
    if not dataclasses.is_dataclass(cls) or not callable(getattr(cls, "validate", None)):
        raise TypeError(f"{cls.__name__} must be a dataclass with a method validate()")
    if _models.setdefault(cls.__name__, cls) is not cls:
        raise TypeError(f"another model is registered as {cls.__name__}")
    _migrations.update(
        {(cls.__name__, number): migrate for number, migrate in enumerate(migrations, start=1)}
    )
    return cls


def versions() -> dict[str, int]:
    """The types that can be saved, and the current versions of their fields."""
    return {name: 1 + sum(of == name for of, _ in _migrations) for name in _models}


def save(model: object, path: str | os.PathLike[str]) -> None:
    """Write a model to a JSON file. An existing file is replaced atomically, or stays as it is.

    Args:
        model: a rule ensemble, rule list or another registered model; ``fit.model``, not the fit.
        path: of the file.

    Raises:
        TypeError: for anything but a model, or an option that JSON cannot hold.
        ValueError: if the model is not valid, or too large (1 GiB).
        OSError: if the file cannot be written.
    """
    target = file_to_write(path)
    content = to_json(model).encode()
    if len(content) > _LARGEST_FILE:
        raise ValueError(
            f"the model takes {len(content)} bytes, more than the {_LARGEST_FILE} that load accepts"
        )
    write_file(target, content)


def file_to_write(path: object) -> Path:
    """The file that `path` names, links followed.

    Raises:
        TypeError: if `path` is not a path.
        ValueError: if it is empty.
        OSError: if it is a folder, or lies in one that does not exist.
    """
    target = Path(os.path.realpath(_check_path(path)))
    if target.is_dir():
        raise IsADirectoryError(f"path is the folder {target}; add the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    return target


def write_file(target: Path, content: bytes) -> None:
    """Write the whole file or nothing; an existing file is replaced atomically."""
    # In the same folder, since only within a file system is `os.replace` atomic.
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            # On the disk before it takes the name: after a power failure, the file is the old or
            # the new one.
            os.fsync(file.fileno())
        os.replace(beside, target)
    # Also after Ctrl-C, no temporary file remains.
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote. Nothing in the file is executed; everything is checked.

    Args:
        path: the file.

    Raises:
        ValueError: if the file is not a well-formed model of this or an earlier version; the
            message names the file, the problem and the remedy.
        OSError: if it cannot be read.
    """
    _check_path(path)
    with open(path, "rb") as file:
        # One byte more than allowed tells whether there is more, whatever the file's size.
        content = file.read(_LARGEST_FILE + 1)
    with _naming(os.fspath(path)):
        if len(content) > _LARGEST_FILE:
            raise _Malformed(f"it is larger than {_LARGEST_FILE} bytes")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise _Malformed(f"it is not UTF-8 text ({error})") from error
        return _from_text(text)


def to_json(model: object) -> str:
    """A model as the text that `save` writes.

    Raises:
        TypeError: for anything but a model, or an option that JSON cannot hold.
        ValueError: if the model is not valid.
    """
    name = type(model).__name__
    if _models.get(name) is not type(model):
        its = "fit.model" if name == "Fit" else "its model"
        hint = f"; pass {its}" if hasattr(model, "model") else ""
        hint = "; pass its model_" if hasattr(model, "model_") else hint
        raise TypeError(f"model must be one of {', '.join(sorted(_models))}, got {name}{hint}")
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(model)):
        raise TypeError("model is being traced by JAX; save it outside jit, grad and vmap")
    fields: Any = _encode(model, type(model), name)
    lines = ",\n".join(
        f"  {json.dumps(field)}: {json.dumps(value, allow_nan=False)}"
        for field, value in fields.items()
    )
    head = json.dumps({"format": FORMAT, "version": versions()[name], "type": name})
    text = head[:-1] + ', "fields": {\n' + lines + "\n}}\n"
    try:
        _from_text(text)  # checks that it can be read back, and validates the model
    except _Malformed as error:
        raise ValueError(f"model is not valid and cannot be saved: {error}") from error
    return text


def from_json(text: str) -> Any:
    """The model in a text that `to_json` wrote.

    Raises:
        ValueError: as `load`.
        TypeError: if `text` is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}; load reads files")
    with _naming("the text"):
        return _from_text(text)


def _check_path(path: object) -> str:
    """The path as text."""
    named = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(named, str) or "\0" in named:
        raise TypeError(f"path must be the path of a file, got {path!r}")
    if not named:
        raise ValueError("path is empty; it must be the path of a file")
    return named


class _Malformed(ValueError):
    """A problem with a file, and its remedy."""

    def __init__(
        self,
        problem: str,
        remedy: str = "write it again with jaxrules.save, or restore it from a copy",
    ):
        super().__init__(problem)
        self.remedy = remedy


@contextlib.contextmanager
def _naming(source: str) -> Iterator[None]:
    try:
        yield
    except _Malformed as error:
        raise ValueError(f"{source} cannot be loaded: {error}; {error.remedy}") from error


def _from_text(text: str) -> Any:
    document = _parse(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _Malformed(f'it lacks "format": "{FORMAT}"')
    if set(document) != {"format", "version", "type", "fields"}:
        raise _Malformed('it must have "format", "version", "type" and "fields", and nothing else')
    name = document["type"]
    if not isinstance(name, str) or name not in _models:
        raise _Malformed(
            f"type must be one of {', '.join(sorted(_models))}, got {_shown(name)}",
            "upgrade jaxrules",
        )
    version, newest = document["version"], versions()[name]
    # Not `isinstance`: True is an int of Python.
    if type(version) is not int or version < 1:
        raise _Malformed(f"version must be a whole number from 1, got {_shown(version)}")
    if version > newest:
        raise _Malformed(
            f"it has version {version} of {name}, but this jaxrules reads only up to {newest}",
            "upgrade jaxrules",
        )
    fields = document["fields"]
    for number in range(version, newest):
        try:
            fields = _migrations[name, number](fields)
        except _Malformed:
            raise
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise _Malformed(
                f"its fields are not those of version {number} of {name} ({error})"
            ) from error
    model = _decode(fields, _models[name], name)
    try:
        model.validate()
    except ValueError as error:
        raise _Malformed(str(error)) from error
    return model


def _parse(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _Malformed(f"it is not JSON, or is truncated ({error})") from error
    except RecursionError as error:
        raise _Malformed("it is nested too deeply") from error
    except _Malformed:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise _Malformed(str(error)) from error


def _without_repeats(pairs: list[tuple[str, object]]) -> Json:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _Malformed("an object has a duplicate key")
    return result


def _refuse_constant(constant: str) -> NoReturn:
    raise _Malformed(f"{constant} is not JSON")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."


# The fields of a dataclass define how values are written and read: by an array dtype or a type
# hint, the "kind".


@functools.cache
def _fields(cls: type) -> list[tuple[str, object]]:
    """The names and kinds of the fields of a dataclass, checked."""
    hints, kinds = typing.get_type_hints(cls), []
    for field in dataclasses.fields(cls):
        if not field.metadata.get("saved", True):
            continue
        kind: object = hints[field.name]
        if "dtype" in field.metadata:
            dtype = np.dtype(field.metadata["dtype"])
            kind = _OptionalArray(dtype) if field.default is None else dtype
        _check_kind(kind, f"{cls.__name__}.{field.name}")
        kinds.append((field.name, kind))
    return kinds


class _OptionalArray(typing.NamedTuple):
    """The kind of a field that is an array of this dtype, or None."""

    dtype: np.dtype[Any]


def _members(hint: object) -> tuple[object, ...] | None:
    """The hints of the entries of a tuple or named tuple; None for other hints."""
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return tuple(typing.get_type_hints(hint).values())
    return None


def _of_entries(members: tuple[object, ...], n: int) -> tuple[object, ...]:
    """The hints of n entries: tuple[X, ...] is any number of X."""
    return members[:1] * n if members[-1] is Ellipsis else members


def _is_union(hint: object) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _check_kind(kind: object, where: str) -> None:
    """Refuse a field that this module cannot write."""
    kind = kind.dtype if isinstance(kind, _OptionalArray) else kind
    if isinstance(kind, np.dtype):
        if kind.kind not in "bif":
            raise TypeError(f"{where}: arrays must be boolean, integer or float, not {kind}")
    elif members := _members(kind) or (typing.get_args(kind) if _is_union(kind) else ()):
        for member in members:
            if member is not Ellipsis:
                _check_kind(member, where)
    elif dataclasses.is_dataclass(kind) and isinstance(kind, type):
        _fields(kind)
    elif typing.get_origin(kind) is not typing.Literal and kind not in (*_PLAIN, Any):
        raise TypeError(
            f"{where}: cannot save a field of type {kind}; an array needs "
            'field(metadata={"dtype": ...})'
        )


def _encode(value: object, hint: object, where: str) -> object:
    if isinstance(hint, _OptionalArray):
        return None if value is None else _encode_array(value, hint.dtype, where)
    if isinstance(hint, np.dtype):
        return _encode_array(value, hint, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name: _encode(getattr(value, name), inner, f"{where}.{name}")
            for name, inner in _fields(type(value))
        }
    if isinstance(value, tuple):
        hints = _of_entries(_members(_tuple_hint(hint)) or (Any, ...), len(value))
        if len(hints) != len(value):
            raise TypeError(f"{where} must have {len(hints)} entries, got {len(value)}")
        places = [f"{where}[{i}]" for i in range(len(value))]
        return list(map(_encode, value, hints, places))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return _special(value, where) if hint is float else _refuse_option(value, where)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _refuse_option(value, where)


def _refuse_option(value: object, where: str) -> NoReturn:
    raise TypeError(
        f"{where} = {_shown(value)} cannot be saved; it must be None, a boolean, a finite number, "
        "text or a tuple"
    )


def _tuple_hint(hint: object) -> object:
    """The tuple among the members of a union, or the hint itself."""
    tuples = (member for member in typing.get_args(hint) if _members(member) is not None)
    return next(tuples, Any) if _is_union(hint) else hint


def _special(value: float, where: str) -> str:
    if math.isnan(value):
        raise ValueError(f"{where} is NaN")
    return "inf" if value > 0 else "-inf"


def _encode_array(value: object, dtype: np.dtype[np.generic], where: str) -> Json:
    given = np.asarray(value)
    # float32 may be written as float64, and int64 as int32, but no float as an integer.
    if not np.can_cast(given.dtype, dtype, "same_kind"):
        raise TypeError(f"{where} must be an array of {dtype}, got {given.dtype}")
    array = given.astype(dtype)
    flat = array.ravel().tolist()
    if dtype.kind == "f" and not np.isfinite(array).all():
        flat = [v if math.isfinite(v) else _special(v, where) for v in flat]
    return {"dtype": dtype.name, "shape": list(array.shape), "values": flat}


def _decode(value: object, hint: Any, where: str) -> Any:
    if isinstance(hint, _OptionalArray):
        return None if value is None else _decode_array(value, hint.dtype, where)
    if isinstance(hint, np.dtype):
        return _decode_array(value, hint, where)
    if _is_union(hint):
        return _decode_union(value, typing.get_args(hint), where)
    if (entries := _members(hint)) is not None:
        decoded = _decode_tuple(value, entries, where)
        return decoded if typing.get_origin(hint) is tuple else hint(*decoded)
    if typing.get_origin(hint) is typing.Literal:
        if not isinstance(value, str) or value not in typing.get_args(hint):
            raise _Malformed(f"{where} must be one of {typing.get_args(hint)}, got {_shown(value)}")
        return value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _decode_dataclass(value, hint, where)
    if hint is Any:
        return _decode_option(value, where)
    if hint is float:
        return _decode_float(value, where)
    if type(value) is not hint and not (hint is types.NoneType and value is None):
        raise _Malformed(f"{where} must be of type {hint.__name__}, got {_shown(value)}")
    return value


def _decode_union(value: object, members: tuple[Any, ...], where: str) -> object:
    """The first member that takes the value; scalars must be of exactly their type."""
    if type(value) in _PLAIN and type(value) in members:
        return _decode_option(value, where)
    others = [member for member in members if member not in _PLAIN]
    # Which of two dataclasses or tuples is meant could not be told.
    if len(others) != 1:
        raise _Malformed(f"{where} must not be {_shown(value)}")
    return _decode(value, others[0], where)


def _decode_tuple(value: object, members: tuple[Any, ...], where: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise _Malformed(f"{where} must be a list, got {_shown(value)}")
    hints = _of_entries(members, len(value))
    if len(hints) != len(value):
        raise _Malformed(f"{where} must have {len(hints)} entries, got {len(value)}")
    return tuple(map(_decode, value, hints, (f"{where}[{i}]" for i in range(len(value)))))


def _decode_dataclass(value: object, cls: type, where: str) -> object:
    fields = dict(_fields(cls))
    if not isinstance(value, dict):
        raise _Malformed(f"{where} must be an object, got {_shown(value)}")
    none = dataclasses.MISSING
    needed = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is none}
    if lacking := sorted(needed - set(value)):
        raise _Malformed(f"{where} lacks {_shown(lacking)}")
    if unknown := sorted(set(value) - set(fields)):
        raise _Malformed(f"{where} has the unknown key {_shown(unknown)}")
    decoded = {
        name: _decode(entry, fields[name], f"{where}.{name}") for name, entry in value.items()
    }
    try:
        return cls(**decoded)
    except (TypeError, ValueError) as error:
        raise _Malformed(str(error)) from error


def _decode_option(value: object, where: str, depth: int = 0) -> object:
    if isinstance(value, dict) or depth > _DEEPEST_OPTION:
        raise _Malformed(f"{where} must be None, a boolean, a number, text or a list of these")
    if isinstance(value, list):
        return tuple(_decode_option(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value))
    if isinstance(value, float) and not math.isfinite(value):  # such as 1e999
        raise _Malformed(f"{where} must be finite")
    return value


def _decode_float(value: object, where: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if (type(value) is float and math.isfinite(value)) or (
        # JSON written by other programs may have 1 for 1.0.
        type(value) is int and abs(value) <= _EXACT
    ):
        return float(value)
    raise _Malformed(f'{where} must be a number, "inf" or "-inf", got {_shown(value)}')


def _decode_array(value: object, dtype: np.dtype[Any], where: str) -> NDArray[np.generic]:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "values"}:
        raise _Malformed(f'{where} must be an object with "dtype", "shape" and "values"')
    shape, values = value["shape"], value["values"]
    if value["dtype"] != dtype.name:
        raise _Malformed(f"{where} must have dtype {dtype.name}, got {_shown(value['dtype'])}")
    if not isinstance(shape, list) or not all(
        type(n) is int and 0 <= n < _LARGEST_DIMENSION for n in shape
    ):
        raise _Malformed(
            f"the shape of {where} must be a list of whole numbers, got {_shown(shape)}"
        )
    # The product is one of Python's integers, so that it cannot overflow and match by accident.
    if not isinstance(values, list) or len(shape) > 8 or math.prod(shape) != len(values):
        raise _Malformed(f"{where} must have as many values as its shape {_shown(shape)}")
    if dtype.kind == "f":
        values = [_decode_float(v, where) for v in values]
    elif dtype.kind == "b":
        if not all(type(v) is bool for v in values):
            raise _Malformed(f"the values of {where} must be true or false")
    else:
        limits = np.iinfo(dtype)
        if not all(type(v) is int and limits.min <= v <= limits.max for v in values):
            raise _Malformed(f"the values of {where} must be whole numbers of type {dtype.name}")
    try:
        return np.array(values, dtype).reshape(shape)
    except ValueError as error:  # no values, but dimensions with a product beyond any address
        raise _Malformed(f"the shape {_shown(shape)} of {where} is too large") from error


# The models of this folder, and the migrations of their fields


def _with_propositions(fields: Json) -> Json:
    """Version 1 of rules lacked the number of propositions: use the smallest that gives the
    rule.
    """
    given = fields["conjunctions"]
    # Zeros let the rules be decoded and checked; then they count their own propositions.
    none = np.zeros(max(len(given["offsets"]["values"]) - 1, 0), np.int32)
    counts = _encode_array(none, none.dtype, "propositions")
    rules = _decode({**given, "propositions": counts}, Conjunctions, "conjunctions")
    rules.validate()
    counts["values"] = [
        sum(condition.n_propositions(rules.schema) for condition in rule) for rule in rules
    ]
    return {**fields, "conjunctions": {**given, "propositions": counts}}


def _with_loss(fields: Json) -> Json:
    """Version 1 of ensembles kept the name of the loss in the options, unless it was that of the
    link.
    """
    losses = [value for name, value in fields["options"] if name == "loss"]
    return {**_with_propositions(fields), "loss": losses[0] if losses else None}


register_model(RuleEnsemble, [_with_loss])
register_model(RuleList, [_with_propositions])
register_model(RegressionList)
