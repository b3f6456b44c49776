import jax
import jax.monitoring
import jax.numpy as jnp
import pytest

import jaxdyn as jd

COMPILED = "/jax/core/compile/backend_compile_duration"


def pendulum(name):
    """A model that no other test has a program for."""
    b = jd.ModelBuilder(name)
    b.add_body("rod", inertial=jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0)))
    return b.build()


@pytest.fixture
def compilations():
    """All programs that are compiled during the test."""
    seen = []

    def listen(event, *_, **__):
        if event == COMPILED:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


WAYS = {
    "value": lambda f, q: f(q),
    "gradient": lambda f, q: jax.grad(lambda q: f(q).sum())(q),
    "forward mode": lambda f, q: jax.jvp(f, (q,), (q,)),
    "batch": lambda f, q: jax.vmap(f)(jnp.stack([q, q])),
}


@pytest.mark.parametrize("way", WAYS)
def test_outside_of_jit_a_second_call_compiles_nothing(way, compilations):
    model, zero, counts = pendulum(f"only by {way}"), jnp.zeros(1), []
    for k in range(2):
        WAYS[way](lambda q: jd.inverse_dynamics(model, q, zero, zero), zero + k)
        counts.append(len(compilations))
    assert 0 < counts[0] == counts[1]


def test_in_the_program_of_a_caller_it_dissolves():
    model = pendulum("a constant")
    program = jax.make_jaxpr(lambda q: jd.gravity_forces(model, q))(jnp.zeros(1))
    names = {eqn.primitive.name for eqn in program.eqns}
    assert "jaxdyn_kernel" in names
    assert not names & {"jit", "pjit"}
