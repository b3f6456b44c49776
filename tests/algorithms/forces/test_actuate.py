"""Forces of actuators, against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import from_mujoco, load_mjcf

GEOM = '<geom size="0.1"/>'
ACTUATORS = """
  <motor name="motor" joint="a" gear="3"/>
  <position joint="b" kp="30" kv="2" ctrlrange="-0.1 0.1"/>
  <velocity joint="c" kv="2" forcerange="-0.5 0.5"/>
  <intvelocity name="servo" joint="a" kp="3" actrange="-1 1"/>
  <damper joint="c" kv="3" ctrlrange="0 1"/>
  <general joint="a" gaintype="affine" gainprm="1 2 3" biastype="affine"
    biasprm="0.1 0.2 0.3"/>
  <position tendon="t" kp="4" gear="2"/>
  <motor joint="k" gear="1 2 3"/>
  <position joint="k" gear="1 2 3" kp="2"/>
  <motor joint="f" gear="1 2 3 4 5 6"/>
  <general joint="f" gear="1 2 3 4 5 6" biastype="affine" biasprm="0 1 2"/>
  <position jointinparent="c" kp="3"/>
  <general joint="a" dyntype="filter" dynprm="0.3" gainprm="3"/>
  <motor joint="c" group="2"/>"""


def robot(actuators, option=""):
    return f"""
    <mujoco>{option}<worldbody>
      <body pos="0 0 1"><joint name="a" actuatorfrcrange="-3 3"/>
        <joint name="b" axis="1 0 0" type="slide" ref="0.2"/>{GEOM}
        <body pos="0.2 0 0"><joint name="c" axis="1 1 0"/>{GEOM}
          <site name="s"/><site name="r" pos="0 0 1"/>
          <body pos="0.1 0 0"><joint name="k" type="ball"/>{GEOM}</body>
        </body></body>
      <body><freejoint name="f"/>{GEOM}</body>
    </worldbody>
    <tendon><fixed name="t"><joint joint="a" coef="0.3"/><joint joint="c" coef="-2"/>
    </fixed><spatial name="rope"><site site="s"/><site site="r"/></spatial></tendon>
    <actuator>{actuators}</actuator></mujoco>"""


OPTIONS = {
    "all": "",
    "no clamp": '<option><flag clampctrl="disable"/></option>',
    "group off": '<option actuatorgroupdisable="2"/>',
    "off": '<option><flag actuation="disable"/></option>',
}


@cache
def models(name):
    text = robot(ACTUATORS, OPTIONS[name])
    return mujoco.MjModel.from_xml_string(text), load_mjcf(text)


def state_of(mj_model, model, rng):
    """MuJoCo's data with random numbers, and the same as arguments of `actuate`."""
    data = mujoco.MjData(mj_model)
    mujoco.mj_integratePos(mj_model, data.qpos, rng.normal(size=mj_model.nv), 1.0)
    data.qvel[:] = rng.normal(size=mj_model.nv)
    data.ctrl[:] = rng.normal(size=mj_model.nu)
    data.act[:] = rng.normal(size=mj_model.na)
    mujoco.mj_forward(mj_model, data)
    q, qd = from_mujoco(model, jnp.array(data.qpos), jnp.array(data.qvel))
    return data, (q, qd, jnp.array(data.ctrl)), jnp.array(data.act)


@pytest.mark.reference
@pytest.mark.parametrize("name", OPTIONS)
def test_forces_are_those_of_mujoco(name, rng):
    mj_model, model = models(name)
    for _ in range(4):
        data, args, act = state_of(mj_model, model, rng)
        theirs = from_mujoco(
            model, jnp.array(data.qpos), jnp.array(data.qfrc_actuator)
        )[1]
        scale = max(np.abs(theirs).max(), 1)
        tau = jd.actuate(model, *args, act=act)
        np.testing.assert_allclose(tau, theirs, rtol=0, atol=1e-13 * scale)


def test_jit_vmap_and_derivatives_work(rng):
    mj_model, model = models("all")
    _, (q, qd, ctrl), act = state_of(mj_model, model, rng)

    def force(q, qd, ctrl):
        return jd.actuate(model, q, qd, ctrl, act=act)

    many = jax.vmap(force, (None, None, 0))(q, qd, jnp.stack([ctrl, 2 * ctrl]))
    np.testing.assert_allclose(many[1], jax.jit(force)(q, qd, 2 * ctrl), atol=1e-12)
    forward, reverse = (f(force, 1)(q, qd, ctrl) for f in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    h = 1e-6 * jnp.array(rng.normal(size=model.nv))
    change = force(q, qd + h, ctrl) - force(q, qd - h, ctrl)
    np.testing.assert_allclose(change, 2 * forward @ h, atol=1e-12)


def test_gradient_by_the_numbers_of_the_actuators(rng):
    mj_model, model = models("all")
    _, args, act = state_of(mj_model, model, rng)
    slope = jax.grad(lambda m: jd.actuate(m, *args, act=act).sum())(model)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slope.actuators))
    assert np.any(slope.actuators.gain)


def test_single_precision_stays_single(rng):
    mj_model, model = models("all")
    _, args, act = state_of(mj_model, model, rng)
    single, args, act = jax.tree.map(
        lambda x: x.astype(jnp.float32), (model, args, act)
    )
    assert jd.actuate(single, *args, act=act).dtype == jnp.float32


def test_names_are_those_of_the_file():
    model = models("all")[1]
    assert model.actuators.names[:4] == ("motor", "actuator_1", "actuator_2", "servo")
    assert len(model.actuators) == 14


MUSCLE = '<muscle name="m" joint="a" lengthrange="0 1"/>'
ENDLESS = '<general name="m" joint="a" {}/>'
REFUSED = {
    "gear": (ENDLESS.format('gear="inf"'), r"m \(numbers that are not finite\)"),
    "muscle": (MUSCLE, r"m \(dyn type muscle\)"),
    "site": ('<motor name="m" site="s"/>', r"m \(transmission type site\)"),
    "spatial": ('<motor name="m" tendon="rope"/>', r"m \(a spatial tendon\)"),
    "parent": ('<motor name="m" jointinparent="k"/>', r"m \(.*jointinparent of a ball"),
    "early": (
        '<general name="m" joint="a" dyntype="integrator" actearly="true"/>',
        r"m \(actearly\)",
    ),
    "two": (f'<motor name="n" site="s"/>{MUSCLE}', r"n \(.*site\), m \(dyn type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_actuators_that_cannot_be_expressed_are_refused_by_name(name):
    text, message = REFUSED[name]
    model = load_mjcf(robot(text))
    notes = [x for x in model.report if "refuses" in x.became]
    assert notes[-1].place == "m"
    q, qd = jd.neutral(model), jnp.zeros(model.nv)
    with pytest.raises(ValueError, match=message):
        jd.actuate(model, q, qd, jnp.zeros(1))


def test_wrong_calls_are_errors_that_say_what_was_expected():
    model = models("all")[1]
    q, qd, act = jd.neutral(model), jnp.zeros(model.nv), jnp.zeros(2)
    with pytest.raises(ValueError, match=r"ctrl has shape \(3,\), expected \(14,\)"):
        jd.actuate(model, q, qd, jnp.zeros(3), act=act)
    with pytest.raises(ValueError, match=r"activations \(servo, actuator_12\): pass a"):
        jd.actuate(model, q, qd, jnp.zeros(14))
    chain = jd.robots.chain(1)
    assert len(chain.actuators) == 0
    with pytest.raises(ValueError, match="'chain1' has no actuators, expected"):
        jd.actuate(chain, jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))
