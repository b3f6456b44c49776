"""Models and logs that the tests of linear identification share."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.io import Log


@cache
def planar(gravity=(0.0, -9.81, 0.0)) -> jd.Model:
    """Two links along x that turn about z, in a vertical plane."""
    b = jd.ModelBuilder("planar", gravity=gravity)
    box = jd.Inertial.box(2.0, (0.5, 0.1, 0.2)).moved(np.eye(3), np.full(3, 0.25))
    b.add_body("link1", inertial=box)
    b.add_body("link2", "link1", p=(0.5, 0, 0), inertial=box)
    return b.build()


@cache
def seven() -> jd.Model:
    """A 7R arm with bodies of random shape, as no designer would align them."""
    joints = ("revolute",)
    return jd.robots.random_tree(3, 7, joints=joints, branching=0.0)


def with_friction(model: jd.Model, rng: np.random.Generator) -> jd.Model:
    effects = tuple(jnp.asarray(x) for x in rng.uniform(0.2, 1.0, (2, model.nv)))
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, effects)


def other_values(model: jd.Model, rng: np.random.Generator) -> jd.Model:
    """The same structure with other inertial parameters, and without friction."""
    pi = np.asarray(jd.inertial_parameters(model))
    pi = jnp.asarray(pi * rng.uniform(0.7, 1.3, (model.n, 1)))
    other = jd.with_inertial_parameters(model, pi)
    none = jnp.zeros(model.nv)
    return eqx.tree_at(lambda m: (m.damping, m.friction), other, (none, none))


@jax.jit
def forces(model, q, qd, qdd):
    return jax.vmap(lambda *x: jd.inverse_dynamics(model, *x))(q, qd, qdd)


def random_log(model: jd.Model, rng: np.random.Generator, rows: int = 100) -> Log:
    """Exact forces at random states."""
    q, qd, qdd = (
        rng.normal(size=(3, rows, model.nv)) * np.array([1, 2, 5])[:, None, None]
    )
    tau = np.asarray(forces(model, q, qd, qdd))
    return Log(0.01 * np.arange(rows), q, qd, qdd, tau)


def with_noise(log: Log, noise: np.ndarray) -> Log:
    return eqx.tree_at(lambda x: x.tau, log, log.tau + noise)
