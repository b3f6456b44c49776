"""What a body looks like: shapes and meshes, which have no part in the mechanics."""

from dataclasses import dataclass, field, replace

import numpy as np

from jaxdyn.model._check import check_finite, check_rotation

# the numbers of each shape; lengths in metres, round shapes about their z axis
SHAPES = {
    "box": 3,  # sides
    "sphere": 1,  # radius
    "cylinder": 2,  # radius, length
    "capsule": 2,  # radius, length without the round ends
    "ellipsoid": 3,  # half axes
    "plane": 2,  # half sides in x and y; 0 is without end
    "mesh": 3,  # scale along x, y, z
}


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Vertices [vertices, 3] and faces [faces, 3], anticlockwise seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape that is fixed to a body, to be seen only.

    Attributes:
        shape: one of `SHAPES`; size: its numbers.
        R, p: pose of the shape in the axes of its body.
        color: red, green, blue, opacity from 0 to 1; None for that of the mesh.
        mesh: the triangles, or the path of a file that `jaxdyn.view` opens.
        name: what the file calls it, may be empty.
        body: index of the body, -1 for the world.
    """

    shape: str
    size: tuple[float, ...]
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))
    color: tuple[float, ...] | None = None
    mesh: TriangleMesh | str | None = None
    name: str = ""
    body: int = -1

    def __post_init__(self):
        if self.shape not in SHAPES:
            raise ValueError(
                f"visual {self.name!r}: shape {self.shape!r} is not known, expected "
                f"one of: {', '.join(SHAPES)}."
            )
        if (self.shape == "mesh") != (self.mesh is not None):
            raise ValueError(
                f"visual {self.name!r} has the shape {self.shape!r} and the mesh "
                f"{self.mesh!r}: give a mesh for the shape 'mesh', and for no other."
            )
        size = self._checked("size", self.size, SHAPES[self.shape])
        if self.shape != "mesh" and min(size) < 0:
            raise ValueError(
                f"visual {self.name!r}: size is {size}, expected no negative lengths."
            )
        checked: dict[str, object] = {"size": size}
        if self.color is not None:
            checked["color"] = self._checked("color", self.color, 4)
        checked["R"] = check_rotation(self.name, self.R, "visual")
        checked["p"] = check_finite(self.name, "place p", self.p, (3,), "visual")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _checked(self, what: str, values: object, count: int) -> tuple[float, ...]:
        return tuple(check_finite(self.name, what, values, (count,), "visual").tolist())

    def moved(self, R: np.ndarray, p: np.ndarray) -> "Visual":
        """The same shape in axes in which its former axes have the pose (R, p)."""
        return replace(self, R=R @ self.R, p=p + R @ self.p)
