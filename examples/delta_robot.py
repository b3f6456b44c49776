"""Motor torques and rod forces of a delta robot that draws a circle.

    python examples/delta_robot.py

Three arms carry a platform by rods that end in ball joints: three loops. The platform
is held level, as the parallelograms of a real one do.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.view import save_animation

BASE, ARM, ROD, PLATE = 0.2, 0.25, 0.6, 0.06
MOTORS = tuple(f"arm{k}" for k in range(3))
PERIOD = 1.0


def delta():
    """Arms, rods on universal joints, and a platform on three slides."""
    b = jd.ModelBuilder("delta")
    for k in range(3):
        a = 2 * np.pi * k / 3
        c, s = np.cos(a), np.sin(a)
        R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        b.add_body(f"arm{k}", axis=(0, 1, 0), R=R, p=BASE * R[:, 0], armature=0.01,
                   inertial=jd.Inertial.rod(0.4, (0, 0, 0), (ARM, 0, 0)))  # fmt: skip
        rod = jd.Inertial.rod(0.15, (0, 0, 0), (0, 0, -ROD))
        b.add_body(f"rod{k}", parent=f"arm{k}", joint="universal", p=(ARM, 0, 0),
                   axis=(0, 1, 0), axis2=(1, 0, 0), inertial=rod)  # fmt: skip
    parent = None
    for axis, name in zip(np.eye(3), ("x", "y", "platform"), strict=True):
        body = jd.Inertial.box(0.5, (0.1, 0.1, 0.02)) if name == "platform" else None
        b.add_body(name, parent=parent, joint="prismatic", axis=axis, inertial=body)
        parent = name
    for k in range(3):
        a = 2 * np.pi * k / 3
        at = PLATE * np.array([np.cos(a), np.sin(a), 0])
        b.add_loop(f"rod{k}", (0, 0, -ROD), "platform", at, "spherical")
    return b.build()


def main(rows=61, out="results/delta_robot"):
    """Torques along the circle, and the largest force in a rod."""
    model = delta()

    def path(t):
        a = 2 * jnp.pi * t / PERIOD
        return jnp.stack([0.12 * jnp.cos(a), 0.12 * jnp.sin(a), -0.62 + 0 * a])

    def near(place):
        guess = jnp.zeros(model.nq).at[-3:].set(place)
        return jd.close_loops(model, guess, hold=("x", "y", "platform"), throw=False).q

    def closed(t):
        return near(path(t))

    def motion(t):
        def rate(t):
            return jax.jvp(closed, (t,), (jnp.ones_like(t),))

        (q, qd), (_, qdd) = jax.jvp(rate, (t,), (jnp.ones_like(t),))
        found = jd.constrained_inverse_dynamics(model, q, qd, qdd, actuated=MOTORS)
        there = jd.constrained_dynamics(model, q, qd, found.tau)[0]
        force = jnp.linalg.norm(found.wrenches[:, :3], axis=1)
        return q, found.tau, force, jnp.abs(there - qdd).max()

    ts = jnp.linspace(0.0, PERIOD, rows)
    q, tau, force, error = jax.jit(lambda ts: jax.lax.map(motion, ts))(ts)
    opening = jnp.abs(jax.vmap(jd.loop_residual, (None, 0))(model, q)).max()
    print(f"largest torque {jnp.abs(tau).max():.3f} N m, rod force {force.max():.3f} N")
    print(
        f"loops open by {opening:.1e} m, accelerations reproduced to {error.max():.1e}"
    )
    page = Path(out) / "delta_robot.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    save_animation(model, np.asarray(ts), q, page, tau=tau)
    print(page)
    return q, tau, force, opening, error


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=61)
    main(parser.parse_args().rows)
