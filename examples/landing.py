"""A quadruped falls onto a compliant floor and stands.

    python examples/landing.py

The floor is a force element of its own: a spring and a damper under each foot, and
friction. Implicit steps of 2 ms are stable with it, and with the servos in the joints.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.view import save_animation

LEGS = {"front_left": (0.2, 0.1), "front_right": (0.2, -0.1)}
LEGS |= {"hind_left": (-0.2, 0.1), "hind_right": (-0.2, -0.1)}
CROUCH = (0.0, 0.8, -1.6)  # of hip, thigh and shank
DT = 2e-3


class Floor(jd.AbstractForce):
    """A floor at z = 0 that feet sink into and slide on with friction."""

    bodies: tuple = eqx.field(static=True)
    foot: jax.Array  # in the axes of its body
    stiffness: jax.Array
    damping: jax.Array
    friction: jax.Array
    slip: jax.Array  # the speed at which friction has 71 % of its size

    def loads(self, model, at):
        """A force at each foot."""
        wrenches = []
        for body in self.bodies:
            x, v = at.point(body, self.foot)
            depth = jnp.maximum(-x[2], 0)
            normal = self.stiffness * depth * jnp.maximum(1 - self.damping * v[2], 0)
            slide = v * jnp.array([1, 1, 0], v.dtype)
            speed = jnp.sqrt((slide * slide).sum() + self.slip**2)
            up = jnp.array([0, 0, 1], v.dtype)
            force = normal * (up - self.friction * slide / speed)
            wrenches.append(at.wrench(body, self.foot, force))
        return jd.Loads(self.bodies, jnp.stack(wrenches))

    def placed(self, model):
        """The element with indices of its bodies."""
        return replace(self, bodies=tuple(map(model.body, self.bodies)))


def quadruped():
    """A trunk and four legs of three joints, each held by a spring and a damper."""
    b = jd.ModelBuilder("quadruped")
    b.add_body("trunk", joint="free", inertial=jd.Inertial.box(8.0, (0.45, 0.2, 0.1)))
    servo = dict(stiffness=80.0, damping=3.0, armature=0.005)
    segment = jd.Inertial.rod(0.4, (0, 0, 0), (0, 0, -0.2))
    segment = replace(segment, inertia=segment.inertia + 2e-4 * np.eye(3))
    hip = jd.Inertial.box(0.5, (0.08, 0.08, 0.08))
    for leg, (x, y) in LEGS.items():
        names = [f"{leg}_{part}" for part in ("hip", "thigh", "shank")]
        places = ((x, y, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, -0.2))
        axes, parts = ((1, 0, 0), (0, 1, 0), (0, 1, 0)), (hip, segment, segment)
        parent = "trunk"
        for k, name in enumerate(names):
            b.add_body(name, parent=parent, p=places[k], axis=axes[k], rest=CROUCH[k],
                       inertial=parts[k], **servo)  # fmt: skip
            parent = name
    numbers = dict(stiffness=2e4, damping=1.0, friction=0.8, slip=0.05)
    floor = Floor(
        bodies=tuple(f"{leg}_shank" for leg in LEGS),
        foot=jnp.array([0.0, 0.0, -0.2]),
        **{name: jnp.array(x) for name, x in numbers.items()},
    )
    return b.build().with_force(floor)


def start(model, key, height=0.3):
    """A state in the air above the floor, tilted and moving a little."""
    turn, rates = jax.random.split(key)
    of_trunk = jnp.arange(model.nv) < 6
    q = jd.neutral(model).at[7:].set(jnp.array(CROUCH * 4))
    feet = 2 * 0.2 * np.cos(0.8)
    tilt = jnp.where(of_trunk, 0.2 * jax.random.normal(turn, (model.nv,)), 0)
    tilt = tilt.at[:3].set(jnp.array([0.0, 0.0, feet + height]))
    qd = jnp.where(of_trunk, 0.3 * jax.random.normal(rates, (model.nv,)), 0)
    return jd.integrate(model, q, tilt), qd


def drop(model, key, steps):
    """The motion of a fall."""
    q, qd = start(model, key)
    rest = jnp.zeros((steps, model.nv))
    return jd.rollout(model, q, qd, rest, DT, every=5)


def carried(model, q, qd):
    """The share of the weight that the floor carries."""
    total = jd.inverse_dynamics(model.replace(gravity=0.0), q, qd, 0 * qd)
    without = jd.inverse_dynamics(
        replace(model, forces=()).replace(gravity=0.0), q, qd, 0 * qd
    )
    lift = jd.forward_kinematics(model, q).R[0] @ (without - total)[:3]
    return lift[2] / (model.mass.sum() * 9.81)


def main(drops=1000, steps=1500, out="results/landing"):
    """Many falls at once, and a page of the first."""
    model = quadruped()
    keys = jax.random.split(jax.random.key(0), drops)
    q, qd = jax.jit(jax.vmap(lambda key: drop(model, key, steps)))(keys)
    shares = jax.jit(jax.vmap(carried, (None, 0, 0)))(model, q[:, -1], qd[:, -1])
    speed = jnp.abs(qd[:, -1]).max(axis=1)
    print(f"{drops} falls, all finite: {bool(jnp.isfinite(q).all())}")
    print(f"share of the weight on the floor, median: {float(jnp.median(shares)):.6f}")
    print(f"largest speed at the end, median: {float(jnp.median(speed)):.1e}")
    path = Path(out) / "landing.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_animation(model, 5 * DT * np.arange(len(q[0])), q[0], path)
    print(path)
    return q, qd, shares


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drops", type=int, default=1000)
    main(parser.parse_args().drops)
