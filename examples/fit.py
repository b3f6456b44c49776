"""The parameters of a double pendulum from its motion, by Gauss and Newton.

    python examples/fit.py

Positions are measured with noise. The derivatives of a rollout by masses, damping and
friction are those of the program that runs it.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxdyn as jd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DT, EVERY = 2e-3, 10
NAMES = ("mass of link 2", "damping 1", "damping 2", "friction 1", "friction 2")
TRUTH = np.array([1.3, 0.08, 0.03, 0.2, 0.1])


def pendulum(x):
    """The model with given parameters; the inertia of a link follows its mass."""
    model = jd.robots.chain(2).replace(gravity=jnp.array([0.0, -9.81, 0.0]))
    ratio = x[0] / model.mass[1]
    return model.replace(
        mass=model.mass.at[1].set(x[0]),
        inertia=model.inertia.at[1].multiply(ratio),
        damping=x[1:3],
        friction=x[3:5],
        friction_speed=jnp.full(2, 0.05),
    )


def motion(x, steps):
    """The positions of a swing from rest."""
    q0 = jnp.array([0.5, 1.0])
    control = jnp.zeros((steps, 2))
    return jd.rollout(pendulum(x), q0, 0 * q0, control, DT, every=EVERY)[0]


def main(steps=1500, iterations=30, noise=2e-3, out="results/fit"):
    """Measure, fit and compare."""
    clean = jax.jit(motion, static_argnums=1)(TRUTH, steps)
    seen = clean + noise * jax.random.normal(jax.random.key(0), clean.shape)

    @jax.jit
    def linear(x):  # positive parameters by their logarithms
        def residual(logs):
            return (motion(jnp.exp(logs), steps) - seen).ravel() / noise

        return residual(jnp.log(x)), jax.jacfwd(residual)(jnp.log(x))

    x, damping = TRUTH * np.array([1.4, 3.0, 0.8, 1.6, 0.6]), 1e3
    r, J = linear(x)
    for k in range(iterations):
        step = jnp.linalg.solve(J.T @ J + damping * jnp.eye(len(x)), -J.T @ r)
        r_new, J_new = linear(x * jnp.exp(step))
        is_better = bool(r_new @ r_new < r @ r)
        damping *= 0.1 if is_better else 10
        if is_better:
            x, r, J = x * jnp.exp(step), r_new, J_new
        print(f"iteration {k}  mean square {(r @ r) / len(r):.4f}")
        if is_better and jnp.abs(step).max() < 1e-6:
            break
    error = x * jnp.sqrt(jnp.diagonal(jnp.linalg.inv(J.T @ J)))
    for name, true, found, s in zip(NAMES, TRUTH, x, error, strict=True):
        print(f"{name:15s} {true:.4f}  found {found:.4f} +- {2 * s:.4f}")
    path = Path(out) / "fit.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    ts = DT * EVERY * np.arange(len(seen))
    axes.plot(ts, seen, ".", ms=2, color="gray")
    axes.plot(ts, np.asarray(motion(x, steps)))
    axes.set(xlabel="time [s]", ylabel="joint positions [rad]")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(path)
    return x, error, (r @ r) / len(r)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    main(parser.parse_args().steps)
