import jax
import jax.monitoring
import jax.numpy as jnp
import pytest

import jaxdyn as jd

COMPILED = "/jax/core/compile/backend_compile_duration"


def pendulum(frames, name="rod"):
    """A model that no other test has a program for: names do not count, frames do."""
    b = jd.ModelBuilder(f"robot with a {name}")
    b.add_body(name, inertial=jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0)))
    for k in range(frames):
        b.add_frame(f"{name} {k}", name)
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
    model, zero, counts = pendulum(10 + [*WAYS].index(way)), jnp.zeros(1), []
    for k in range(2):
        WAYS[way](lambda q: jd.inverse_dynamics(model, q, zero, zero), zero + k)
        counts.append(len(compilations))
    assert 0 < counts[0] == counts[1]


def test_in_the_program_of_a_caller_it_dissolves():
    model = pendulum(0)
    program = jax.make_jaxpr(lambda q: jd.gravity_forces(model, q))(jnp.zeros(1))
    names = {eqn.primitive.name for eqn in program.eqns}
    assert "jaxdyn_kernel" in names
    assert not names & {"jit", "pjit"}


def test_other_names_keywords_and_defaults_compile_nothing(compilations):
    model, other, x = pendulum(20), pendulum(20, name="bar"), jnp.zeros(1)
    jd.inverse_dynamics(model, x, x, x)
    count = len(compilations)
    jd.inverse_dynamics(other, x, x, qdd=x)
    jd.inverse_dynamics(q=x, qdd=x, model=model, qd=x, f_ext=None)
    jd.inverse_dynamics(model, x, x, x, method="newton_euler")
    assert 0 < count == len(compilations)


@pytest.mark.parametrize(
    "args, options, match",
    [
        ((1, 2), {}, "missing a required argument: 'qd'"),
        ((1, 2, 3, 4, 5), {}, "too many positional arguments"),
        ((1, 2, 3), {"q": 2, "qdd": 4}, "multiple values for argument 'q'"),
        ((1, 2, 3, 4), {"law": 5}, "unexpected keyword argument 'law'"),
    ],
)
def test_wrong_arguments_are_the_type_errors_of_python(args, options, match):
    with pytest.raises(TypeError, match=match):
        jd.inverse_dynamics(*args, **options)
