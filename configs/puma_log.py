"""Makes puma_log.csv: what a PUMA 560 unlike its data sheet might have measured.

    jaxdyn excite configs/puma_excite.toml
    python configs/puma_log.py results/puma_excite/motion.csv

The robot follows the motion exactly. Its bodies are those of the data sheet with other
masses, centres and inertias, its joints have damping. Joint forces have noise of 1 % of
their size, positions that of an encoder.
"""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.identify import definite
from jaxdyn.io import Log, load_log, save_log

ENCODER = 2e-5  # rad
FORCES = 0.01  # of the root mean square of those of the joint
DAMPING = (4.0, 6.0, 3.0, 0.8, 0.6, 0.4)  # N m s/rad
CHANGE = 0.1  # of log-Cholesky coordinates


def true_robot() -> jd.Model:
    """The robot that is measured."""
    nominal = definite(jd.robots.puma_560())
    pi = jd.inertial_parameters(nominal)
    change = CHANGE * np.random.default_rng(1).normal(size=pi.shape)
    change[:, 1:] *= 0.5
    pi = jax.vmap(jd.from_log_cholesky)(jax.vmap(jd.to_log_cholesky)(pi) + change)
    model = jd.with_inertial_parameters(nominal, pi)
    return eqx.tree_at(lambda m: m.damping, model, jnp.asarray(DAMPING))


def measured(motion: Log) -> Log:
    """What is logged along the motion, with the digits that instruments have."""
    rng = np.random.default_rng(2)
    inverse = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))
    tau = np.asarray(inverse(true_robot(), motion.q, motion.qd, motion.qdd))
    tau = tau + FORCES * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
    q = motion.q + ENCODER * rng.normal(size=motion.q.shape)
    return Log(motion.ts, np.round(q, 6), tau=np.round(tau, 4))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    robot = jd.robots.puma_560()
    motion = load_log(sys.argv[1], robot)
    save_log(Path(__file__).with_name("puma_log.csv"), robot, measured(motion))
