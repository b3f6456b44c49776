"""Force elements and actuators in dictionaries and JSON."""

import copy
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import jaxdyn as jd
from jaxdyn.io import from_dict, load_mjcf, to_dict

MJCF = """
<mujoco><worldbody>
  <body name="a" gravcomp="0.3"><joint name="a" actuatorfrcrange="-3 5"/>
    <geom size="0.1" pos="0.1 0.2 0.3"/>
    <body name="b" pos=".3 0 0"><joint name="b" type="slide"/><geom size="0.1"/></body>
  </body>
</worldbody><actuator>
  <motor name="m" joint="a" gear="0.1" ctrlrange="-1 2"/>
  <intvelocity name="i" joint="b" kp="30" actrange="-1 1"/>
  <muscle name="x" joint="a" lengthrange="0 1"/>
</actuator></mujoco>"""


def robot(dtype=None):
    """Springs, gravity compensation and actuators, of which one is refused."""
    model = load_mjcf(MJCF, dtype=dtype)
    spring = jd.SpringDamper("a", (0.1, 0, 1 / 3), None, (0, 0.7, 0), 2.2, 0.1, 0.3)
    return model.with_force(spring)


def assert_same(a, b):
    """Compare structures, and every bit of the leaves."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_json_keeps_every_bit_of_forces_and_actuators(dtype):
    model = robot(dtype)
    text = json.dumps(to_dict(model))
    again = jd.load(text, dtype=dtype)
    assert_same(again.forces, model.forces)
    assert_same(again.actuators, model.actuators)
    assert json.dumps(to_dict(again)) == text


def test_actuators_and_forces_act_as_before(rng):
    model = load_mjcf(
        MJCF.replace('<muscle name="x" joint="a" lengthrange="0 1"/>', "")
    )
    again = from_dict(to_dict(model))
    q, qd, ctrl = jnp.asarray(rng.normal(size=(3, 2)))
    tau = [jd.actuate(x, q, qd, ctrl, act=ctrl[:1]) for x in (model, again)]
    np.testing.assert_array_equal(*tau)
    qdd = [jd.forward_dynamics(x, q, qd, tau[0]) for x in (model, again)]
    np.testing.assert_array_equal(*qdd)


def test_a_force_of_the_users_own_is_an_error_that_names_it():
    class Drag(jd.AbstractForce):
        c: Float[Array, ""]

        def loads(self, model, at):
            return jd.Loads(tau=-self.c * at.qd)

    model = jd.robots.chain(2).with_force(Drag(jnp.array(0.5)))
    with pytest.raises(
        ValueError, match="force 0 is a Drag, .*: gravity_compensation, "
    ):
        to_dict(model)
    jd.model.FORCES["drag"] = Drag
    try:
        again = from_dict(json.loads(json.dumps(to_dict(model))))
        assert_same(again.forces, model.forces)
    finally:
        del jd.model.FORCES["drag"]


def changed(path, value):
    """The robot as a dictionary with one entry replaced, or removed for None."""
    data = entry = copy.deepcopy(to_dict(robot()))
    *way, last = path
    for key in way:
        entry = entry[key]
    if value is None:
        del entry[last]
    else:
        entry[last] = value
    return data


WEIGHT, SPRING = ("forces", 0), ("forces", 1)
WRONG = [
    (("forces",), 3, "forces is 3, expected a list"),
    (WEIGHT, 3, "force 0 is 3, expected a dictionary with a type"),
    (
        (*WEIGHT, "type"),
        "drag",
        "force 0 is .*expected .* one of: gravity_compensation",
    ),
    ((*WEIGHT, "type"), [], "force 0 is .*expected .* one of: gravity_compensation"),
    ((*WEIGHT, "mass"), 3, "force 0 has the key 'mass', expected only: bodies, masses"),
    ((*WEIGHT, "masses"), None, "force 0 has no 'masses': add it"),
    ((*WEIGHT, "masses"), "x", "force '0': masses is 'x', expected"),
    ((*WEIGHT, "masses"), [1, 2], "force 0: gravity compensation of 1 bodies"),
    ((*WEIGHT, "masses"), [np.inf], "force '0': masses is .*expected finite numbers"),
    ((*WEIGHT, "points"), [[1], [1, 2]], "force '0': points is .*expected"),
    ((*WEIGHT, "bodies"), [7], "force 0: .* has no body 7"),
    ((*WEIGHT, "bodies"), 7, "force 0: gravity .* bodies is 7, expected"),
    ((*SPRING, "body_b"), 0, "force 1: a spring-damper joins body 0 to itself"),
    ((*SPRING, "body_b"), [1], "force 1: .* has no body"),
    ((*SPRING, "stiffness"), -1, "force 1: a spring-damper has stiffness"),
    ((*SPRING, "p_a"), [1, 2], "force 1: a spring-damper has p_a"),
    (("actuators",), 3, "actuators is 3, expected a dictionary"),
    (("actuators", "arms"), None, "actuators has no 'arms': add it"),
    (("actuators", "arms"), [[1.0]], "arms.* expected 3 x 2 numbers"),
    (("actuators", "gain"), [[np.nan] * 3] * 3, "gain.* expected finite numbers"),
    (("actuators", "names"), "ab", "actuators: names is 'ab', expected a list"),
    (("actuators", "names"), [1, 2, 3], "actuators: names is .*one text for each"),
    (("actuators", "names"), [], "actuators: names is .*one text for each"),
    (("actuators", "controls"), [0, 1, -1], "controls is .*expected 3 indices from 0"),
    (("actuators", "controls"), [0, True, 1], "controls is .*expected 3 indices"),
    (("actuators", "activations"), [0], "activations is .*3 indices from -1 on"),
    (("actuators", "refused"), [["a"]], "refused is .*expected pairs"),
    (("actuators", "refused"), [["a", 1]], "refused is .*expected pairs"),
    (("actuators", "force_range"), [[1, 0]] * 3, "force_range is .*expected 3 pairs"),
    (("actuators", "joint_range"), "x", "joint_range is 'x', expected 2 pairs"),
    (("actuators", "joint_range"), [[np.nan, 0]] * 2, "joint_range is .*2 pairs"),
]


@pytest.mark.parametrize("path, value, message", WRONG)
def test_from_dict_says_what_is_wrong(path, value, message, without_type_checker):
    with pytest.raises(ValueError, match=message):
        from_dict(changed(path, value))


@pytest.mark.slow
def test_a_trajectory_keeps_the_elements_of_its_model(tmp_path):
    model = robot()
    run = jd.simulate(model, jnp.zeros(2), jnp.zeros(2), jnp.array([0.0, 0.01]))
    jd.io.save_trajectory(tmp_path, model, run)
    stored, _ = jd.io.load_trajectory(tmp_path)
    assert_same(stored.forces, model.forces)
    assert_same(stored.actuators, model.actuators)


def test_a_changed_leaf_is_written(rng):
    model = eqx.tree_at(lambda m: m.forces[1].stiffness, robot(), jnp.array(7.5))
    assert to_dict(model)["forces"][1]["stiffness"] == 7.5
