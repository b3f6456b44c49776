"""A 7-joint arm draws a circle with its tool, and its gains improve by their gradient.

    python examples/operational_space.py

The law does not know the load in the gripper: stiffer axes of the tool carry it better,
at the price of larger torques. The gradient goes through the motion.
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxdyn as jd
from jaxdyn.view import save_animation

DT = 2e-3
HOME = (0.0, -0.5, 0.0, -2.1, 0.0, 1.6, 0.8)
# of each joint: place in the link before, turn about its x, mass and mass centre
LINKS = (
    ((0.0, 0.0, 0.333), 0, 4.0, (0.0, -0.02, -0.1)),
    ((0.0, 0.0, 0.0), -90, 3.0, (0.0, -0.07, 0.02)),
    ((0.0, -0.316, 0.0), 90, 3.2, (0.04, 0.03, -0.1)),
    ((0.0825, 0.0, 0.0), 90, 3.4, (-0.04, 0.07, 0.02)),
    ((-0.0825, 0.384, 0.0), -90, 2.6, (0.0, 0.04, -0.12)),
    ((0.0, 0.0, 0.0), 90, 1.6, (0.05, 0.0, 0.0)),
    ((0.088, 0.0, 0.0), 90, 1.0, (0.0, 0.0, 0.06)),
)


def arm(load=0.0):
    """An arm with the geometry of a Panda, and a load at its tool."""
    b = jd.ModelBuilder("arm")
    for k, (p, turn, mass, com) in enumerate(LINKS):
        c, s = np.round(np.cos(np.deg2rad(turn))), np.sin(np.deg2rad(turn))
        R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        body = jd.Inertial(mass, com, 0.01 * mass * np.eye(3))
        b.add_body(f"link{k + 1}", k - 1 if k else None, p=p, R=R, inertial=body,
                   armature=0.1, damping=0.5)  # fmt: skip
    b.add_frame("tool", "link7", p=(0.0, 0.0, 0.2))
    model = b.build()
    com = model.com.at[6].set(jnp.array([0.0, 0.0, (0.06 + 0.2 * load) / (1 + load)]))
    return model.replace(mass=model.mass.at[6].add(load), com=com)


class Circle(eqx.Module):
    """The pose of a tool that goes round once in two seconds."""

    R: jax.Array
    p: jax.Array

    def __call__(self, t):
        """Axes and origin at a time."""
        a = jnp.pi * t
        ways = jnp.stack([jnp.zeros_like(a), jnp.sin(a), 1 - jnp.cos(a)])
        return self.R, self.p + 0.1 * ways


def motion(logs, steps):
    """Positions, distances of the tool from the circle, and torques."""
    known, real, q0 = arm(), arm(load=1.0), jnp.array(HOME)
    circle = Circle(*jd.frame_pose(known, q0, "tool"))
    kp, kd = jnp.exp(logs)
    law = jd.motion.operational_space(
        known, "tool", circle, kp, kd, posture=q0, posture_kp=10.0, posture_kd=5.0
    )
    q, qd = jd.rollout(real, q0, jnp.zeros(7), law, DT, steps=steps)
    ts = DT * np.arange(steps + 1)
    goals = jax.vmap(lambda t: circle(t)[1])(ts)
    tools = jax.vmap(lambda q: jd.frame_pose(real, q, "tool")[1])(q)
    tau = jax.vmap(law)(ts, q, qd)
    return q, tools - goals, tau


def cost(logs, steps):
    """The mean square of the distance in cm, and a little of the torques."""
    _, away, tau = motion(logs, steps)
    effort = ((tau - tau.mean(axis=0)[None]) ** 2).sum(axis=1).mean()
    return 1e4 * (away**2).sum(axis=1).mean() + 1e-3 * effort


def main(updates=30, steps=1000, out="results/operational_space"):
    """Improve the gains, and print the error before and after."""
    logs = jnp.log(jnp.array([[100.0] * 6, [20.0] * 6]))
    optimizer, errors = optax.adam(0.1), []
    state = optimizer.init(logs)
    slope, run = (
        jax.jit(f, static_argnums=1) for f in (jax.value_and_grad(cost), motion)
    )
    for k in range(updates):
        value, gradient = slope(logs, steps)
        errors.append(float(value))
        if k % 10 == 0:
            print(f"update {k:3d}  cost {value:.3f}")
        change, state = optimizer.update(gradient, state)
        logs = optax.apply_updates(logs, change)
    q, away, tau = run(logs, steps)
    worst = 1e3 * float(jnp.linalg.norm(away, axis=1).max())
    print(f"largest distance {worst:.2f} mm, kp {np.round(np.exp(logs[0]))}")
    path = Path(out) / "operational_space.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    some = slice(None, None, 10)
    save_animation(arm(), DT * np.arange(len(q))[some], q[some], path, tau=tau[some])
    print(path)
    return errors, away


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=30)
    main(parser.parse_args().updates)
