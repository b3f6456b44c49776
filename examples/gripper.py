"""A gripper with one motor for two fingers picks up a block.

    python examples/gripper.py

The second finger follows the first by an exact coupling. Pads press on the block by
a force element of springs, dampers and friction.
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

DT, HALF, MASS = 2e-3, 0.03, 0.3  # a step, half of the block's width, its mass
GRIP, RAISED = 20.0, 0.15


class Pads(jd.AbstractForce):
    """Contact of two fingers with the sides of a block, and of the block with a table.

    Each pad touches at two points, so that the block cannot swing.
    """

    fingers: tuple = eqx.field(static=True)
    block: int | str = eqx.field(static=True)
    stiffness: jax.Array
    damping: jax.Array
    friction: jax.Array
    slip: jax.Array

    def push(self, depth, v, normal):
        """The force on what moves with v into something along -normal."""
        v_n = v @ normal
        size = self.stiffness * jnp.maximum(depth, 0)
        size = size * jnp.maximum(1 - self.damping * v_n, 0)
        slide = v - v_n * normal
        speed = jnp.sqrt(slide @ slide + self.slip**2)
        return size * (normal - self.friction * slide / speed)

    def loads(self, model, at):
        """The forces at the pads and at the lower edges of the block."""
        bodies, wrenches = [], []
        R = at.R[self.block]
        for side, finger in zip((-1.0, 1.0), self.fingers, strict=True):
            for height in (-0.01, 0.01):
                pad = jnp.array([0.0, 0.0, height])
                x, v = at.point(finger, pad)
                place = R.T @ (x - at.p[self.block])
                depth = HALF - side * place[0]
                v_block = at.point(self.block, place)[1]
                force = self.push(depth, v - v_block, side * R[:, 0])
                bodies += [finger, self.block]
                wrenches += [at.wrench(finger, pad, force)]
                wrenches += [at.wrench(self.block, place, -force)]
        for side in (-HALF, HALF):
            edge = jnp.array([side, 0.0, -HALF])
            x, v = at.point(self.block, edge)
            force = self.push(-x[2], v, jnp.array([0.0, 0.0, 1.0]))
            bodies.append(self.block)
            wrenches.append(at.wrench(self.block, edge, force))
        return jd.Loads(tuple(bodies), jnp.stack(wrenches))

    def placed(self, model):
        """The element with indices of its bodies."""
        fingers = tuple(map(model.body, self.fingers))
        return replace(self, fingers=fingers, block=model.body(self.block))


def gripper():
    """A hand that moves up and down, two fingers, and a block on a table."""
    b = jd.ModelBuilder("gripper")
    box = jd.Inertial.box
    b.add_body("hand", joint="prismatic", inertial=box(1.0, (0.2, 0.1, 0.05)))
    for name in ("left", "right"):
        b.add_body(name, parent="hand", joint="prismatic", axis=(1, 0, 0), damping=5.0,
                   inertial=box(0.1, (0.01, 0.02, 0.05)))  # fmt: skip
    b.add_body("block", joint="planar", axis=(0, -1, 0), axis2=(1, 0, 0),
               inertial=box(MASS, (2 * HALF, 0.05, 2 * HALF)))  # fmt: skip
    numbers = dict(stiffness=2e4, damping=1.0, friction=0.8, slip=1e-3)
    pads = Pads(
        fingers=("left", "right"),
        block="block",
        **{name: jnp.asarray(x) for name, x in numbers.items()},
    )
    return b.build().with_coupling("right", {"left": -1.0}).with_force(pads)


class Grasp(eqx.Module):
    """Close the fingers, then raise the hand along a smooth path."""

    kp: float = 2000.0
    kd: float = 100.0

    def __call__(self, t, q, qd):
        """Forces of the hand and of the fingers' motor; the block has none."""
        s = jnp.clip(t - 0.5, 0, 1)
        height = HALF + RAISED * s**2 * (3 - 2 * s)
        lift = self.kp * (height - q[0]) - self.kd * qd[0] + 9.81 * 1.2
        return jnp.concatenate([jnp.stack([lift, 2 * GRIP + 0 * t]), jnp.zeros(3)])


def main(steps=1000, out="results/gripper"):
    """Grasp and raise, and print where the block is."""
    model = gripper()
    q0 = jnp.array([HALF, -0.05, 0.0, HALF, 0.0])
    q, qd = jd.rollout(model, q0, jnp.zeros(5), Grasp(), DT, steps=steps)
    heights = jax.vmap(lambda q: jd.forward_kinematics(model, q).p[3, 2])(q)
    hand = q[-1, 0]
    print(f"hand raised by {hand - q0[0]:.4f} m, block by {heights[-1] - HALF:.4f} m")
    print(f"speed of the block {float(jnp.abs(qd[-1, 2:]).max()):.1e}")
    path = Path(out) / "gripper.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    some = slice(None, None, 10)
    save_animation(model, DT * np.arange(steps + 1)[some], q[some], path)
    print(path)
    return heights, q


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    main(parser.parse_args().steps)
