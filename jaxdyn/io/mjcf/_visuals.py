"""The geoms of a compiled MuJoCo model that its viewer shows."""

from functools import cache
from typing import Any

import numpy as np

from jaxdyn.io.mjcf._mujoco import names, word
from jaxdyn.io.mjcf._tree import Tree, rotation
from jaxdyn.model import ModelBuilder, TriangleMesh, Visual

_GROUPS = 3  # that MuJoCo's viewer shows by default
_RGB = 1  # the place of the texture with the colours of a material
_UNCOLORED = (0.5, 0.5, 0.5, 1.0)  # what a geom has whose file gives no colour
_SIZES = {  # from half lengths to those of `Visual`
    "plane": (1, 1),
    "sphere": (1,),
    "capsule": (1, 2),
    "ellipsoid": (1, 1, 1),
    "cylinder": (1, 2),
    "box": (2, 2, 2),
}


def add_visuals(builder: ModelBuilder, tree: Tree) -> None:
    """Add the geoms of groups 0 to 2 that can be seen, but for height fields."""
    m, given = tree.m, names(tree.m, "geom")

    @cache
    def mesh(k: int) -> TriangleMesh:
        vertices = m.mesh_vert[m.mesh_vertadr[k] :][: m.mesh_vertnum[k]]
        faces = m.mesh_face[m.mesh_faceadr[k] :][: m.mesh_facenum[k]]
        return TriangleMesh(vertices.copy(), faces.copy())

    for k in np.flatnonzero(m.geom_group < _GROUPS):
        kind, color = word("mjtGeom", m.geom_type[k]), _color(m, k)
        triangles, size = None, (1.0, 1.0, 1.0)
        if kind in ("mesh", "sdf"):
            kind, triangles = "mesh", mesh(int(m.geom_dataid[k]))
        elif kind in _SIZES:
            scale = _SIZES[kind]
            size = tuple(m.geom_size[k, : len(scale)] * scale)
        else:
            continue
        body, R, p = tree.carried(
            m.geom_bodyid[k], rotation(m.geom_quat[k]), m.geom_pos[k]
        )
        if color[3] > 0:
            visual = Visual(kind, size, R, p, color, triangles, given[k])
            builder.add_visual(body, visual)


def _color(m: Any, k: Any) -> tuple[float, ...]:
    """The colour of a geom, or of its material if only that has one.

    A texture counts with its mean colour.
    """
    material = m.geom_matid[k]
    color = m.geom_rgba[k].astype(float)
    if material >= 0 and np.allclose(color, _UNCOLORED):
        color = m.mat_rgba[material].astype(float)
    texture = m.mat_texid[material, _RGB] if material >= 0 else -1
    if texture >= 0:
        width = m.tex_nchannel[texture]
        size = m.tex_height[texture] * m.tex_width[texture] * width
        pixels = m.tex_data[m.tex_adr[texture] :][:size].reshape(-1, width)
        color[:3] *= pixels[:, :3].mean(axis=0) / 255
    return tuple(np.clip(color, 0, 1))
