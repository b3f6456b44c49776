"""Models that tests share."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.model import JOINT_TYPES


@cache
def every_joint(
    seed: int = 0, without: tuple[str, ...] = (), branched: bool = True
) -> jd.Model:
    """A tree with each joint type once, in random order, not numbered depth first.

    Without branches it compiles in half the time.
    """
    rng = np.random.default_rng(seed)
    joints = [joint for joint in JOINT_TYPES if joint not in without]
    parents = [-1, 0, 0, 1, 2, 3, 4, 5, 6] if branched else list(range(-1, 8))
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
def fork() -> jd.Model:
    """A trunk on a spherical joint with two branches: small, for what takes long."""
    b = jd.ModelBuilder("fork")
    box = jd.Inertial.box(1.0, (0.3, 0.1, 0.2)).moved(np.eye(3), np.full(3, 0.2))
    b.add_body("trunk", joint="spherical", p=(0.1, 0.2, 0.3), inertial=box)
    helical = dict(joint="helical", axis=(0, 0.6, 0.8), pitch=0.1)
    b.add_body("left", "trunk", **helical, p=(0.3, 0, 0), inertial=box)
    b.add_body("right", "trunk", axis=(1, 0, 0), p=(0, 0.3, 0), inertial=box)
    return b.build()


@cache
def massless_middle() -> jd.Model:
    """A chain in which a body without mass or inertia stands between two others."""
    b = jd.ModelBuilder("massless_middle")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (0.5, 0, 0))
    b.add_body("first", axis=(0, 0, 1), inertial=rod)
    b.add_body("empty", "first", axis=(0, 1, 0), p=(0.5, 0, 0))
    b.add_body("last", "empty", axis=(0, 0, 1), inertial=rod)
    return b.build()


@cache
def fork_with_massless_body() -> jd.Model:
    """A fork with a body without mass or inertia between the trunk and a branch."""
    b = jd.ModelBuilder("fork_with_massless_body")
    box = jd.Inertial.box(1.0, (0.3, 0.1, 0.2)).moved(np.eye(3), np.full(3, 0.2))
    b.add_body("trunk", joint="spherical", p=(0.1, 0.2, 0.3), inertial=box)
    b.add_body("empty", "trunk", axis=(1, 0, 0), p=(0.3, 0, 0))
    helical = dict(joint="helical", axis=(0, 0.6, 0.8), pitch=0.1)
    b.add_body("left", "empty", **helical, p=(0.3, 0, 0), inertial=box)
    b.add_body("right", "trunk", axis=(1, 0, 0), p=(0, 0.3, 0), inertial=box)
    return b.build()


def random_state(model: jd.Model, rng: np.random.Generator) -> tuple:
    """A random q, qd and qdd."""
    q = jd.random_configuration(model, jax.random.key(int(rng.integers(1 << 30))))
    return q, *(jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))


def with_effects(model: jd.Model, rng: np.random.Generator) -> jd.Model:
    """The same model with springs, friction and armature in every joint."""
    names = ("armature", "damping", "friction", "stiffness")
    values = [jnp.asarray(rng.uniform(0.1, 1.0, model.nv)) for _ in names]
    return eqx.tree_at(lambda m: [getattr(m, name) for name in names], model, values)


def with_new_numbers(model: jd.Model, rng: np.random.Generator) -> jd.Model:
    """A model of the same topology with random geometry and inertia."""
    boxes = [
        jd.Inertial.box(rng.uniform(0.5, 3.0), rng.uniform(0.1, 0.6, 3)).moved(
            random_rotation(rng), rng.uniform(-0.2, 0.2, 3)
        )
        for _ in range(model.n)
    ]
    leaves = {
        "R": [random_rotation(rng) for _ in range(model.n)],
        "p": rng.uniform(-0.3, 0.3, (model.n, 3)),
        "axis": rng.normal(size=(model.n, 3)),
        "axis2": rng.normal(size=(model.n, 3)),
        "pitch": rng.uniform(0.02, 0.2, model.n) * (np.asarray(model.pitch) != 0),
        "mass": [box.mass for box in boxes],
        "com": [box.com for box in boxes],
        "inertia": [box.inertia for box in boxes],
    }
    values = [jnp.asarray(np.array(value, float)) for value in leaves.values()]
    return eqx.tree_at(lambda m: [getattr(m, name) for name in leaves], model, values)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """A rotation matrix by the QR factorisation of a random one."""
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.linalg.det(Q)


def closed(
    model: jd.Model, q: jnp.ndarray, body_a: int, body_b: int, joint: str, rng
) -> jd.Model:
    """The model with one more loop, closed at q, at a random frame of body a."""
    at = jd.forward_kinematics(model.without_loops(), q)  # one program for all loops
    R_a, p_a = random_rotation(rng), rng.normal(size=3)
    R, p = (
        np.concatenate([x, o]) for x, o in ((at.R, [np.eye(3)]), (at.p, [[0.0] * 3]))
    )
    A, x = R[body_a] @ R_a, p[body_a] + R[body_a] @ p_a  # -1 is the world
    placement_b = R[body_b].T @ A, R[body_b].T @ (x - p[body_b])
    return model.with_loop(body_a, (R_a, p_a), body_b, placement_b, joint)


def moving_base(rng: np.random.Generator) -> jd.BaseMotion:
    """A random motion of the base."""
    v, w, dv, dw = jnp.asarray(rng.normal(size=(4, 3)))
    return jd.BaseMotion(v=v, w=w, dv=dv, dw=dw)
