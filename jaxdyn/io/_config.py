"""Settings from TOML files, checked before anything runs."""

import dataclasses
import difflib
import math
import os
import tomllib
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

from jaxdyn.io._files import content

_Settings = TypeVar("_Settings")


class Check(NamedTuple):
    """A rule for a value: what is allowed, in words, and a function that decides."""

    allowed: str
    holds: Callable[[Any], bool]


POSITIVE = Check("a number above 0", lambda x: x > 0)
NOT_NEGATIVE = Check("0 or a number above it", lambda x: x >= 0)


class _Place(NamedTuple):
    """Where a value stands: the file, the dotted key, and the rules of its field."""

    file: Path
    key: str = ""
    rules: types.MappingProxyType[str, Any] = types.MappingProxyType({})

    def inside(self, name: str, rules: Any = types.MappingProxyType({})) -> "_Place":
        return _Place(self.file, f"{self.key}.{name}" if self.key else name, rules)

    def item(self, index: int) -> "_Place":
        return _Place(self.file, f"{self.key}[{index}]", self.rules)

    def error(self, text: str) -> ValueError:
        return ValueError(f"{self.file}: {text}")

    def unexpected(self, value: Any, allowed: str) -> ValueError:
        return self.error(f"{self.key} is {_shown(value)}, expected {allowed}.")


def read_config(path: str | os.PathLike[str], schema: type[_Settings]) -> _Settings:
    """The settings in a TOML file, as an instance of the dataclass `schema`.

    Fields are str, bool, int, float, Path, Literal, Any, list, tuple, dict with text
    keys, dataclasses, and unions of these, also `| None` for what may be left out. In
    a union of dataclasses the key `kind`, a Literal in each, says which one is meant.
    A Path is relative to the folder of the file. Metadata of a field may hold a `check`
    (a `Check`), and `must_exist=False` for a Path that need not be there yet.

    Raises:
        ValueError: the file is missing or not TOML, or a key is unknown, missing or has
            a value that is not allowed, or `__post_init__` of a dataclass objects; the
            message has the file, the key, what was found and what is allowed.
    """
    place = _Place(Path(path))
    text = content(place.file, str(place.file))
    try:
        data = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise place.error(f"is not TOML: {error}.") from None
    return _table(place, data, schema)


def config_dict(config: Any) -> Any:
    """Settings as plain dictionaries, lists, numbers and text, as in the file.

    What was left out has its default, unless that is None.
    """
    if dataclasses.is_dataclass(config):
        given = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
        return config_dict({k: x for k, x in given.items() if x is not None})
    if isinstance(config, dict):
        return {key: config_dict(value) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return [config_dict(value) for value in config]
    return str(config) if isinstance(config, Path) else config


def _table(place: _Place, data: dict[str, Any], schema: type[_Settings]) -> _Settings:
    fields = {f.name: f for f in dataclasses.fields(schema) if f.init}  # pyright: ignore
    kinds = hints_of(schema)
    for key in data:
        if key not in fields:
            raise _unknown(place, key, list(fields))
    for name, field in fields.items():
        optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if name not in data and not optional:
            raise place.error(
                f"{place.inside(name).key} is missing, expected "
                f"{_words(kinds[name])}: add it."
            )
    values = {
        key: _value(place.inside(key, fields[key].metadata), value, kinds[key])
        for key, value in data.items()
    }
    try:
        return schema(**values)
    except ValueError as error:
        text = f"{place.key}: {error}" if place.key else str(error)
        raise place.error(text) from None


def _unknown(place: _Place, key: str, known: list[str]) -> ValueError:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    advice = f"did you mean {place.inside(near[0]).key}?" if near else "remove it."
    return place.error(
        f"{place.inside(key).key} is not known, expected only: {', '.join(known)}: "
        + advice
    )


def _value(place: _Place, value: Any, kind: Any) -> Any:
    """The value as its field wants it; the check of the field is for the whole."""
    result = _converted(place, value, kind)
    check = place.rules.get("check")
    if check is not None and not check.holds(result):
        raise place.unexpected(value, check.allowed)
    return result


def _converted(place: _Place, value: Any, kind: Any) -> Any:
    options = _options(kind)
    fitting = [option for option in options if _fits(value, option)]
    if not fitting:
        raise place.unexpected(value, _words(kind))
    option = _chosen(place, value, fitting) if len(fitting) > 1 else fitting[0]
    if option is not float and _is_huge(value):
        raise place.unexpected(value, "a whole number below 2^63")
    origin, parts = get_origin(option) or option, get_args(option)
    if dataclasses.is_dataclass(option):
        return _table(place, value, option)  # pyright: ignore
    if origin is float:
        return float(value)
    if origin is Path:
        return _path(place, value)
    if origin in (list, tuple):
        return origin(_items(place, value, option))
    if origin is dict and parts:
        inner = {key: place.inside(key, place.rules) for key in value}
        return {k: _converted(inner[k], x, parts[1]) for k, x in value.items()}
    return value


def _items(place: _Place, values: list[Any], kind: Any) -> list[Any]:
    parts = get_args(kind)
    if not parts:
        return values
    if get_origin(kind) is list or parts[-1] is Ellipsis:
        parts = parts[:1] * len(values)
    if len(parts) != len(values):
        raise place.unexpected(values, _words(kind))
    pairs = enumerate(zip(values, parts, strict=True))
    return [_converted(place.item(i), x, part) for i, (x, part) in pairs]


def _path(place: _Place, value: str) -> Path:
    path = place.file.parent / value
    if place.rules.get("must_exist", True) and not path.exists():
        raise place.error(f"{place.key} is {value!r}, but there is no {path}.")
    return path


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of this kind on the outside; its parts are looked at later."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return any(type(x) is type(value) and x == value for x in get_args(kind))
    if dataclasses.is_dataclass(kind) or origin is dict:
        return isinstance(value, dict)
    if origin in (list, tuple):
        return isinstance(value, list)
    if origin is float:
        return type(value) in (int, float) and _is_finite(value)
    if origin in (str, Path):
        return isinstance(value, str)
    if origin in (int, bool, types.NoneType):
        return type(value) is origin
    if origin is Any:
        return True
    raise TypeError(f"read_config: a field of type {kind} is not supported.")


def _is_huge(value: Any) -> bool:
    return type(value) is int and abs(value) >= 2**63


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the range of float
        return False


def _chosen(place: _Place, value: Any, options: list[Any]) -> Any:
    """The option that the key `kind` of a table names, otherwise the first."""
    if not all(map(dataclasses.is_dataclass, options)):
        return options[0]
    kinds = {get_args(hints_of(option)["kind"])[0]: option for option in options}
    allowed = f"one of: {', '.join(map(repr, kinds))}"
    if "kind" not in value:
        key = place.inside("kind").key
        raise place.error(f"{key} is missing, expected {allowed}: add it.")
    if not isinstance(value["kind"], str) or value["kind"] not in kinds:
        raise place.inside("kind").unexpected(value["kind"], allowed)
    return kinds[value["kind"]]


_WORDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    Path: "the path of a file or folder",
    Any: "a value",
}


def _words(kind: Any) -> str:
    """What a kind allows, in words."""
    options = [x for x in _options(kind) if x is not types.NoneType]
    if len(options) > 1:
        return " or ".join(dict.fromkeys(map(_words, options)))
    (kind,) = options
    parts = get_args(kind)
    origin = get_origin(kind) or kind
    if origin is Literal:
        one = "one of: " if len(parts) > 1 else ""
        return one + ", ".join(map(_shown, parts))
    if dataclasses.is_dataclass(kind) or origin is dict:
        return "a table"
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return f"a list of {len(parts)}: {', '.join(map(_words, parts))}"
    if origin in (list, tuple):
        return f"a list, each {_words(parts[0])}" if parts else "a list"
    return _WORDS[kind]


def _shown(value: Any) -> str:
    """A value as it stands in TOML, cut where it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
