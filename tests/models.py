"""Models that tests share."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.model import JOINT_TYPES


@cache
def every_joint(seed: int = 0, without: tuple[str, ...] = ()) -> jd.Model:
    """A tree with each joint type once, in random order, not numbered depth first."""
    rng = np.random.default_rng(seed)
    joints = [joint for joint in JOINT_TYPES if joint not in without]
    parents = [-1, 0, 0, 1, 2, 3, 4, 5, 6]
    single = {
        j: jd.to_dict(jd.robots.random_tree(seed, 1, joints=(j,))) for j in joints
    }
    bodies = [
        single[joint]["bodies"][0] | {"name": joint, "parent": parent}
        for joint, parent in zip(rng.permutation(joints), parents, strict=False)
    ]
    for body in bodies:
        body.pop("idx_q"), body.pop("idx_v")
    return jd.from_dict({"name": f"every_joint_{seed}", "bodies": bodies})


@cache
def massless_middle() -> jd.Model:
    """A chain in which a body without mass or inertia stands between two others."""
    b = jd.ModelBuilder("massless_middle")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (0.5, 0, 0))
    b.add_body("first", axis=(0, 0, 1), inertial=rod)
    b.add_body("empty", "first", axis=(0, 1, 0), p=(0.5, 0, 0))
    b.add_body("last", "empty", axis=(0, 0, 1), inertial=rod)
    return b.build()


def random_state(model: jd.Model, rng: np.random.Generator) -> tuple:
    """A random q, qd and qdd."""
    q = jd.random_configuration(model, jax.random.key(int(rng.integers(1 << 30))))
    return q, *(jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))
