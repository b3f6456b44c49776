"""The `<visual>` elements of a URDF file: shapes, colours and places of mesh files."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from jaxdyn.io.urdf._findings import Findings
from jaxdyn.io.urdf._parts import pose
from jaxdyn.io.urdf._xml import label, numbers, required
from jaxdyn.model import Visual

_SIZES = {
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
}
_PACKAGES = ("package://", "model://")


def visuals(
    robot: ET.Element, links: dict[str, ET.Element], folder: Path, found: Findings
) -> dict[str, list[Visual]]:
    """What each link shows, in the axes of the link; wrong ones are noted."""
    materials = robot.iter("material")
    named = {x.get("name"): x for x in materials if x.find("color") is not None}
    shown: dict[str, list[Visual]] = {name: [] for name in links}
    for name, link in links.items():
        for element in link.findall("visual"):
            try:
                visual = _visual(label(link), element, named, folder)
            except ValueError as error:
                found.note("link/visual", name, f"not drawn: {error}")
                continue
            shown[name].append(visual)
            if isinstance(visual.mesh, str) and not os.path.isfile(visual.mesh):
                became = "not drawn: there is no such file"
                found.note("link/visual/mesh", visual.mesh, became)
    return shown


def _visual(
    owner: str,
    element: ET.Element,
    materials: dict[str | None, ET.Element],
    folder: Path,
) -> Visual:
    geometry = required(owner, element, "geometry")
    kinds = [x for x in geometry if x.tag in (*_SIZES, "mesh")]
    if len(kinds) != 1:
        tags = ", ".join((*_SIZES, "mesh"))
        raise ValueError(f"{owner}: <geometry> has no shape, expected one of: {tags}.")
    kind, mesh = kinds[0], None
    size = np.ones(3)
    if kind.tag == "mesh":
        mesh = str(mesh_path(kind.get("filename", ""), folder))
        if "scale" in kind.attrib:
            count = 1 if len(kind.attrib["scale"].split()) == 1 else 3
            size = np.broadcast_to(numbers(owner, kind, "scale", count), 3)
    else:
        sizes = _SIZES[kind.tag].items()
        size = np.concatenate([numbers(owner, kind, key, n) for key, n in sizes])
    R, p = pose(owner, element)
    material, color = element.find("material"), None
    if material is not None:
        own = material.find("color")
        other = materials.get(material.get("name"))
        own = other.find("color") if own is None and other is not None else own
        color = None if own is None else tuple(numbers(owner, own, "rgba", 4))
    name = element.get("name", "")
    return Visual(kind.tag, tuple(size), R, p, color, mesh, name)


def mesh_path(name: str, folder: Path) -> Path:
    """The file that a mesh is in; where it is missing, where it was looked for first.

    `package://name/rest` is looked for in all folders above the URDF file and in
    ROS_PACKAGE_PATH; the folder of the package may have another name. Other paths are
    those of files, from the folder of the URDF file on.
    """
    folder = folder.absolute()
    if name.startswith("file://"):
        return Path(unquote(name.removeprefix("file://")))
    if not name.startswith(_PACKAGES):
        return folder / name
    rest = Path(name.split("://", 1)[1])
    listed = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    places = [folder, *folder.parents, *map(Path, filter(None, listed))]
    inside = Path(*rest.parts[1:])
    tried = [place / x for x in (rest, inside) for place in places]
    return next((path for path in tried if os.path.isfile(path)), tried[0])
