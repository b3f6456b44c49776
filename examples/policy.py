"""A network learns to hold an arm up, by gradients through rollouts.

python examples/policy.py
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import jaxdyn as jd

DT = 5e-3


class Policy(eqx.Module):
    """Joint forces of a network of the state, in units that fit the arm."""

    net: eqx.nn.MLP
    scale: float = eqx.field(static=True)

    def __call__(self, t, q, qd):
        """The joint forces in a state."""
        seen = jnp.concatenate([jnp.sin(q), jnp.cos(q), qd])
        return self.scale * self.net(seen)


def cost(policy, arm, q0, steps):
    """The mean distance from upright along a motion, and the speed."""
    q, qd = jd.rollout(arm, q0, jnp.zeros(arm.nv), policy, DT, steps=steps)
    return ((q - jnp.pi / 2 * jnp.eye(arm.nq)[:1]) ** 2).mean() + 0.01 * (qd**2).mean()


def main(updates=300, starts=64, steps=100):
    """Train, and print the cost on the way."""
    arm = jd.robots.chain(2).replace(gravity=jnp.array([0.0, -9.81, 0.0]), damping=0.1)
    net = eqx.nn.MLP(
        3 * arm.nv, arm.nv, 64, 2, activation=jnp.tanh, key=jax.random.key(0)
    )
    policy = Policy(net, 30.0)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    state = optimizer.init(eqx.filter(policy, eqx.is_array))

    @eqx.filter_jit
    def update(policy, state, key):
        q0 = jnp.pi / 2 * jnp.eye(arm.nq)[:1]
        q0 = q0 + 0.5 * jax.random.normal(key, (starts, arm.nq))

        @eqx.filter_value_and_grad
        def mean(policy):
            return jax.vmap(lambda q: cost(policy, arm, q, steps))(q0).mean()

        value, gradient = mean(policy)
        change, state = optimizer.update(gradient, state)
        return eqx.apply_updates(policy, change), state, value

    costs = []
    for k in range(updates):
        policy, state, value = update(policy, state, jax.random.key(k))
        costs.append(float(value))
        if k % 50 == 0 or k == updates - 1:
            print(f"update {k:4d}  cost {value:.4f}")
    return policy, costs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=300)
    main(parser.parse_args().updates)
