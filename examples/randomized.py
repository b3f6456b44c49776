"""Gains that hold a thousand arms: domain randomisation.

    python examples/randomized.py

A law that knows the nominal arm moves arms of other masses, mass centres and friction.
The mean over a thousand of them is what the gradient by the gains lowers; another
thousand test the result.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax

import jaxdyn as jd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DT = 5e-3
SPREAD = {"mass": 0.3, "com": 0.03, "friction": (0.0, 2.0), "damping": (0.5, 1.5)}
VARIES = (*SPREAD, "inertia")


def arm():
    """Two links in a vertical plane, with friction."""
    model = jd.robots.chain(2).replace(gravity=jnp.array([0.0, -9.81, 0.0]))
    return model.replace(damping=0.2, friction=0.5, friction_speed=0.05)


def distances(logs, models, steps):
    """How far each model is from a swing of the nominal one, over time."""
    nominal, q0 = arm(), jnp.zeros(2)
    move = jd.motion.cycloidal(nominal, q0, jnp.array([1.2, -0.8]), DT * steps)
    kp, kd = jnp.exp(logs)
    law = jd.motion.computed_torque(nominal, move, kp, kd)

    def one(model):
        q, qd = jd.rollout(model, q0, 0 * q0, law, DT, steps=steps)
        wanted = jax.vmap(lambda t: move(t).q)(DT * np.arange(steps + 1))
        rough = (jnp.diff(qd, n=2, axis=0) ** 2).mean()  # gains are not free
        return jnp.linalg.norm(q - wanted, axis=1), rough

    return jax.vmap(one, (jd.axes(models, *VARIES),))(models)


def main(count=1000, updates=60, steps=200, out="results/randomized"):
    """Improve the gains on some arms, and test them on others."""
    trained, tested = (
        jd.randomize(arm(), jax.random.key(k), SPREAD, count) for k in (0, 1)
    )
    logs = first = jnp.log(jnp.array([[30.0, 30.0], [10.0, 10.0]]))
    optimizer, costs = optax.adam(0.05), []
    state = optimizer.init(logs)

    @jax.jit
    @jax.value_and_grad
    def slope(logs):
        away, rough = distances(logs, trained, steps)
        return (away**2).mean() + 3.0 * rough.mean()

    for k in range(updates):
        value, gradient = slope(logs)
        costs.append(float(value))
        if k % 20 == 0:
            print(f"update {k:3d}  mean cost {value:.6f}")
        change, state = optimizer.update(gradient, state)
        logs = optax.apply_updates(logs, change)
    test = jax.jit(lambda logs: distances(logs, tested, steps)[0])
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    found = {}
    for name, x in (("first", first), ("improved", logs)):
        away = np.asarray(test(x))
        found[name] = np.quantile(away.max(axis=1), [0.5, 0.95])
        print(f"{name:9s} largest distance, median and 95 %: {found[name].round(4)}")
        ts = DT * np.arange(steps + 1)
        axes.fill_between(ts, *np.quantile(away, [0.05, 0.95], axis=0), alpha=0.4,
                          label=name)  # fmt: skip
    axes.set(xlabel="time [s]", ylabel="distance [rad], 5 to 95 %")
    axes.legend()
    path = Path(out) / "randomized.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(path)
    return costs, found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    main(parser.parse_args().count)
