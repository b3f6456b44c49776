"""The default classes of an MJCF file."""

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from jaxdyn.io.mjcf._item import Item, check_children, label, refuse
from jaxdyn.io.mjcf._schema import ACTUATORS, DEFAULT_TAGS, LOOPS, ORIENTATIONS


class Defaults:
    """Attributes by class and tag, from all `<default>` sections of a model."""

    def __init__(self, root: Element):
        self._classes: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        for section in root.findall("default"):
            name = section.get("class", "main")
            if name != "main":
                raise ValueError(
                    f"the outermost <default> has class {name!r}, expected 'main': put "
                    f'<default class="{name}"> inside a <default>.'
                )
            pending = [(section, "main")]
            while pending:
                pending += self._read(*pending.pop())

    def _read(self, section: Element, name: str) -> list[tuple[Element, str]]:
        """Keep the settings of a class; the classes inside it, last one first."""
        settings = self._classes[name]
        for child in section:
            if child.tag == "default":
                continue
            if child.tag not in DEFAULT_TAGS:
                refuse(
                    child,
                    f"default class {name!r}",
                    f"one of {', '.join(DEFAULT_TAGS)}",
                )
            check_children(child, f"default class {name!r}")
            tag = _section(child)
            settings[tag] = _overlay(settings.get(tag, {}), _attributes(child))
        inside = section.findall("default")
        return [(child, self._add(child, settings)) for child in inside][::-1]

    def _add(self, section: Element, settings: Mapping[str, dict[str, str]]) -> str:
        name = section.get("class")
        if not name:
            raise ValueError(
                "a <default> inside another has no class, expected a name: add it."
            )
        if name in self._classes:
            raise ValueError(
                f"two <default> have the class {name!r}: give them different names."
            )
        self._classes[name] = dict(settings)
        return name

    def check(self, name: str | None, where: str) -> None:
        """Raise a `ValueError` if there is no class of this name."""
        if name is not None and name not in self._classes:
            raise ValueError(
                f"{where} uses the default class {name!r}, expected one of: "
                f"{', '.join(self._classes)}."
            )

    def item(self, element: Element, where: str, childclass: str | None) -> Item:
        """An element with the attributes of its class filled in.

        Args:
            element: the element.
            where: the body or section in which it stands, for messages.
            childclass: the class that its surroundings give it.
        """
        name = element.get("class", childclass or "main")
        text = label(element, where)
        self.check(name, text)
        base = self._classes[name].get(_section(element), {})
        return Item(element.tag, text, _overlay(base, element.attrib))


def _section(element: Element) -> str:
    """Where the defaults of an element are kept: in one place for all actuators.

    Likewise for all equality constraints.
    """
    if element.tag in LOOPS:
        return "equality"
    return "general" if element.tag in ACTUATORS else element.tag


def _attributes(element: Element) -> dict[str, str]:
    """The attributes of a default; of an actuator also its kind of bias force."""
    if element.tag not in ACTUATORS[1:]:
        return dict(element.attrib)
    bias = "none" if element.tag == "motor" else element.tag
    return element.attrib | {"biastype": bias}


def _overlay(base: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """`own` on top of `base`, as MuJoCo does it.

    An orientation replaces any other; a short size keeps the later numbers of the base.
    """
    turned = any(key in own for key in ORIENTATIONS)
    result = {k: v for k, v in base.items() if not (turned and k in ORIENTATIONS)}
    result |= own
    if "size" in base and "size" in own:
        sizes = own["size"].split()
        result["size"] = " ".join(sizes + base["size"].split()[len(sizes) :])
    return result
