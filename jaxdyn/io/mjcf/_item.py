"""One MJCF element as data: its attributes, read as numbers and words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn
from xml.etree.ElementTree import Element

import numpy as np

from jaxdyn.io._files import numbers
from jaxdyn.io.mjcf._schema import CHILDREN, KNOWN, UNSUPPORTED
from jaxdyn.model import unit_vectors


@dataclass(frozen=True)
class Item:
    """The attributes of one element, checked against what the loader knows.

    Attributes:
        tag: the tag of the element.
        label: the element as error messages name it.
        attributes: its own, on top of those of its default class.
    """

    tag: str
    label: str
    attributes: dict[str, str]

    def __post_init__(self):
        known = KNOWN.get(self.tag)
        for key in self.attributes:
            if known is not None and key not in known:
                self.fail(f"{key!r} is not an attribute of it: correct or remove it")
        for key, neutral in UNSUPPORTED.get(self.tag, {}).items():
            value = self.attributes.get(key, "0")
            if value not in neutral and not _is_zero(value):
                self.fail(
                    f"{key}={value!r} changes the motion and is not supported: remove "
                    f"it, or leave it out with ignore=({key!r},)"
                )

    def fail(self, what: str) -> NoReturn:
        """Raise a `ValueError` that names the element."""
        raise ValueError(f"{self.label}: {what}.")

    def numbers(
        self,
        key: str,
        counts: int | Sequence[int],
        default: Sequence[float | int] | None = None,
    ) -> np.ndarray:
        """The numbers of an attribute; without a default it must be there."""
        counts = (counts,) if isinstance(counts, int) else counts
        wanted = " or ".join(map(str, counts)) + (
            " number" if counts == (1,) else " numbers"
        )
        text = self.attributes.get(key)
        if text is None:
            if default is None:
                self.fail(f"{key!r} is missing, expected {wanted}: add it")
            return np.array(default, float)
        try:
            values = numbers(text.split())
        except ValueError:
            self.fail(f"{key} is {text!r}, expected {wanted}")
        if values.size not in counts or not np.isfinite(values).all():
            self.fail(f"{key} is {text!r}, expected {wanted}")
        return values

    def number(self, key: str, default: float) -> float:
        """The number of an attribute."""
        return float(self.numbers(key, 1, (default,))[0])

    def word(self, key: str, default: str, choices: Sequence[str]) -> str:
        """The word of an attribute, one of `choices`."""
        value = self.attributes.get(key, default)
        if value not in choices:
            self.fail(f"{key} is {value!r}, expected one of: {', '.join(choices)}")
        return value

    def direction(self, key: str, value: np.ndarray) -> np.ndarray:
        """The unit vector along `value`, which comes from the attribute `key`."""
        if np.abs(value).max() < 1e-14:
            self.fail(
                f"{key} is {self.attributes.get(key)!r}, expected a direction, not zero"
            )
        return unit_vectors(value)


def label(element: Element, where: str = "") -> str:
    """An element as error messages name it: tag, name, and where it stands."""
    name = element.get("name")
    text = f"<{element.tag}>" if name is None else f"<{element.tag} name={name!r}>"
    return f"{text} in {where}" if where else text


def refuse(element: Element, where: str, expected: str) -> NoReturn:
    """Raise a `ValueError` for an element that the loader cannot take."""
    raise ValueError(
        f"{label(element, where)} is not supported, expected {expected}: remove it, or "
        f"leave it out with ignore=({element.tag!r},)."
    )


def check_children(element: Element, where: str = "") -> None:
    """Raise a `ValueError` for a child that the element cannot have."""
    known = CHILDREN.get(element.tag)
    for child in element:
        if known is not None and child.tag not in known:
            inside = label(element, where)
            refuse(child, inside, " or ".join(map("<{}>".format, known)) or "no child")


def _is_zero(text: str) -> bool:
    try:
        return not numbers(text.split()).any()
    except ValueError:
        return False
