"""A cart swings up its pole: differential dynamic programming.

    python examples/swing_up.py

Its second-order expansion is exact, as `jd.step` is differentiated twice.
"""

import argparse
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxdyn as jd
from jaxdyn.view import save_animation

DT, SHARES = 0.03, 0.5 ** np.arange(10.0)


def cart_pole():
    """A cart of 1 kg and a pole of 0.5 m and 0.3 kg that hangs at q[1] = 0."""
    b = jd.ModelBuilder("cart_pole")
    b.add_body("cart", joint="prismatic", axis=(1, 0, 0), damping=0.1,
               inertial=jd.Inertial.box(1.0, (0.2, 0.1, 0.1)))  # fmt: skip
    b.add_body("pole", parent="cart", axis=(0, 1, 0), damping=0.001,
               inertial=jd.Inertial.rod(0.3, (0, 0, 0), (0, 0, -0.5)))  # fmt: skip
    return b.build()


def advance(model, x, u):
    """The next state x = (q, qd) under a force u on the cart."""
    tau = jnp.stack([u[0], jnp.zeros_like(u[0])])
    return jnp.concatenate(jd.step(model, x[:2], x[2:], tau, DT))


def running(x, u):
    """The cost of a step."""
    return DT * (0.01 * u @ u + 0.1 * x[0] ** 2)


def final(x):
    """The cost of the last state: upright, at rest, in the middle."""
    return 200 * (1 + jnp.cos(x[1])) + 10 * (x[0] ** 2 + x[2:] @ x[2:])


def forward(model, xs, us, gains, share):
    """The motion under controls corrected by gains, and its cost."""

    def one(x, row):
        x_old, u_old, k, K = row
        u = u_old + share * k + K @ (x - x_old)
        return advance(model, x, u), (x, u, running(x, u))

    end, (x, u, costs) = lax.scan(one, xs[0], (xs[:-1], us, *gains))
    return jnp.concatenate([x, end[None]]), u, costs.sum() + final(end)


def backward(model, xs, us, damping):
    """The gains, and the decrease of the cost that they promise."""
    n = xs.shape[1]

    def one(value, row):
        (vx, Vxx), z = value, jnp.concatenate(row)

        def ahead(z):
            return advance(model, z[:n], z[n:])

        def local(z):  # the second derivatives of the step enter by vx
            return running(z[:n], z[n:]) + vx @ ahead(z)

        F = jax.jacfwd(ahead)(z)
        g, H = jax.grad(local)(z), jax.hessian(local)(z) + F.T @ Vxx @ F
        w, E = jnp.linalg.eigh(H[n:, n:])
        inverse = (E / jnp.maximum(jnp.abs(w), damping)[None]) @ E.T
        k, K = -inverse @ g[n:], -inverse @ H[n:, :n]
        vx = g[:n] + K.T @ H[n:, n:] @ k + K.T @ g[n:] + H[:n, n:] @ k
        Vxx = H[:n, :n] + K.T @ H[n:, n:] @ K + K.T @ H[n:, :n] + H[:n, n:] @ K
        return (vx, (Vxx + Vxx.T) / 2), (k, K)

    last = jax.grad(final)(xs[-1]), jax.hessian(final)(xs[-1])
    return lax.scan(one, last, (xs[:-1], us), reverse=True)[1]


@jax.jit
def improve(model, xs, us, damping):
    """The best of some shares of the correction, and its cost."""
    gains = backward(model, xs, us, damping)
    found = jax.vmap(partial(forward, model, xs, us, gains))(SHARES)
    costs = jnp.where(jnp.isfinite(found[2]), found[2], jnp.inf)
    return jax.tree.map(lambda x: x[jnp.argmin(costs)], found)


def main(iterations=120, steps=80, out="results/swing_up"):
    """Swing up from rest, and print the cost on the way."""
    model = cart_pole()
    us = jnp.asarray(0.1 * np.sin(np.arange(steps) / 5.0)[:, None])
    zero = jnp.zeros((steps, 1)), jnp.zeros((steps, 1, 4))
    xs, us, cost = forward(model, jnp.zeros((steps + 1, 4)), us, zero, 0.0)
    costs, damping = [float(cost)], 1e-2
    for k in range(iterations):
        new = improve(model, xs, us, damping)
        if new[2] < costs[-1]:
            xs, us, _ = new
            damping = max(damping / 3, 1e-5)
        else:
            damping *= 10
        costs.append(min(float(new[2]), costs[-1]))
        if k % 20 == 0:
            print(f"iteration {k:3d}  cost {costs[-1]:.6f}")
        if k > 20 and costs[-2] - costs[-1] < 1e-10 and damping < 1e-3:
            break
    print(f"{len(costs) - 1} iterations, cost {costs[-1]:.8f}")
    print(f"last angle from upright {abs(float(xs[-1, 1])) - np.pi:.4f} rad")
    path = Path(out) / "swing_up.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_animation(model, DT * np.arange(steps + 1), xs[:, :2], path)
    print(path)
    return xs, costs


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=120)
    main(parser.parse_args().iterations)
