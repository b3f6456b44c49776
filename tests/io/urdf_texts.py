"""URDF texts and models that the tests of the reader and of the writer share."""

from pathlib import Path

import jax
import numpy as np

from jaxdyn.model import Inertial, ModelBuilder

DATA = Path(__file__).parents[1] / "data"
INERTIAL = (
    '<inertial><mass value="2"/><inertia ixx="1" ixy="0.1" ixz="0.2" iyy="1.5"'
    ' iyz="0.3" izz="2"/></inertial>'
)
INERTIA = np.array([[1, 0.1, 0.2], [0.1, 1.5, 0.3], [0.2, 0.3, 2]])


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, kind="continuous", inside=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot(*elements):
    return f'<robot name="r">{"".join(elements)}</robot>'


def one_joint(inside="", kind="continuous", body=INERTIAL, extra=""):
    parts = link("base", ""), link("arm", body), joint("j", "base", "arm", kind, inside)
    return robot(*parts, extra)


def chain(*joints):
    """A robot of links a, b, ... and joints given as (parent, child)."""
    names = sorted({name for ends in joints for name in ends})
    ends = (joint(f"j{i}", *pair) for i, pair in enumerate(joints))
    return robot(*map(link, names), *ends)


def random_rotation(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


def random_inertial(rng):
    box = Inertial.box(rng.uniform(1, 2), rng.uniform(0.1, 1, 3))
    return box.moved(random_rotation(rng), rng.normal(size=3))


def random_model(rng, joints, base="base"):
    """A tree with these joints, random data and joint effects on every degree."""
    builder = ModelBuilder("random", base=base)
    for i, kind in enumerate(joints):
        axes = {"axis": rng.normal(size=3)} if kind not in ("free", "fixed") else {}
        if kind in ("universal", "planar"):
            axes["axis2"] = np.cross(axes["axis"], rng.normal(size=3))
        builder.add_body(
            f"b{i}",
            int(rng.integers(-1, i)) if i else -1,
            kind,
            R=random_rotation(rng),
            p=rng.normal(size=3),
            inertial=random_inertial(rng),
            joint_name=f"joint {i}",
            damping=rng.uniform(),
            friction=rng.uniform(),
            effort=rng.uniform(),
            velocity=rng.uniform(),
            **axes,
        )
    return builder


def assert_same_models(a, b):
    assert repr(a.topology) == repr(b.topology)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-14)


NO_MASS = INERTIAL.replace('<mass value="2"/>', "")
NO_INERTIA = NO_MASS.replace("<inertia ", '<mass value="0"/><inertia ')
for moment in ("1", "0.1", "0.2", "1.5", "0.3", "2"):
    NO_INERTIA = NO_INERTIA.replace(f'="{moment}"', '="0"')
FLAT = INERTIAL.replace('izz="2"', 'izz="9"')


def fixed_tool(body, arm=INERTIAL):
    """A robot whose second link is fixed to the first and would be merged with it."""
    extra = link("tool", body) + joint("f", "arm", "tool", "fixed")
    return one_joint(body=arm, extra=extra)
