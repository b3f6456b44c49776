"""A rope falls over a bar and swings on it.

    python examples/rope.py

The rope is a chain of rods in a plane. The bar is a force element: it presses on the
joints of the rope and holds them by friction.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.view import save_animation

DT, LINKS, LENGTH, RADIUS = 2e-3, 16, 0.1, 0.15


class Bar(jd.AbstractForce):
    """A round bar along y through the origin, with friction."""

    radius: jax.Array
    stiffness: jax.Array
    damping: jax.Array
    friction: jax.Array
    slip: jax.Array

    def loads(self, model, at):
        """A force at the origin of each link."""

        def one(x, v):
            flat = x * jnp.array([1.0, 0.0, 1.0])
            distance = jnp.sqrt(flat @ flat + 1e-12)
            normal = flat / distance
            v_n = v @ normal
            size = self.stiffness * jnp.maximum(self.radius - distance, 0)
            size = size * jnp.maximum(1 - self.damping * v_n, 0)
            slide = v - v_n * normal
            speed = jnp.sqrt(slide @ slide + self.slip**2)
            force = size * (normal - self.friction * slide / speed)
            return jnp.concatenate([force, jnp.zeros(3)])

        return jd.Loads(tuple(range(model.n)), jax.vmap(one)(at.p, at.v))


def rope():
    """Rods of 50 g with damping in their joints; the first one is free in the plane."""
    b = jd.ModelBuilder("rope")
    rod = jd.Inertial.rod(0.05, (0, 0, 0), (LENGTH, 0, 0))
    b.add_body("link0", joint="planar", axis=(0, -1, 0), axis2=(1, 0, 0), inertial=rod)
    for k in range(1, LINKS):
        b.add_body(f"link{k}", parent=k - 1, axis=(0, 1, 0), p=(LENGTH, 0, 0),
                   damping=2e-2, inertial=rod)  # fmt: skip
    numbers = dict(radius=RADIUS, stiffness=5e3, damping=1.0, friction=0.6, slip=0.01)
    return b.build().with_force(Bar(**{k: jnp.asarray(x) for k, x in numbers.items()}))


def main(steps=3000, out="results/rope"):
    """Drop the rope, and print where it hangs."""
    model = rope()
    place = jnp.array([-0.55 * LINKS * LENGTH, RADIUS + 0.1])
    q0 = jnp.zeros(model.nq).at[:2].set(place)
    rest = jnp.zeros((steps, model.nv))
    q, qd = jd.rollout(model, q0, jnp.zeros(model.nv), rest, DT, every=10)
    energy = jax.vmap(jd.kinetic_energy, (None, 0, 0))(model, q, qd)
    energy = energy + jax.vmap(jd.potential_energy, (None, 0))(model, q)
    points = jax.vmap(jd.forward_kinematics, (None, 0))(model, q).p
    depth = RADIUS - jnp.linalg.norm(points[-1, :, ::2], axis=1).min()
    print(f"energy from {energy[0]:.3f} to {energy[-1]:.3f} J")
    print(
        f"lowest point {points[-1, :, 2].min():.3f} m, pressed in {1e3 * depth:.2f} mm"
    )
    print(f"largest speed {float(jnp.abs(qd[-1]).max()):.1e}")
    path = Path(out) / "rope.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_animation(model, 10 * DT * np.arange(len(q)), q, path)
    print(path)
    return points, qd, energy


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    main(parser.parse_args().steps)
