import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.model import (
    Inertial,
    Model,
    ModelBuilder,
    Topology,
    arguments,
    chosen_coordinates,
    loop_plan,
)


def gripper(mass=0.4, *, name="gripper", loop=False):
    builder = ModelBuilder(name, gravity=(0, -9.81, 0))
    palm = Inertial.rod(mass, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0))
    builder.add_body("palm", inertial=palm)
    for link, parent, x in (
        ("f1", "palm", 0.1),
        ("f2", "f1", 0.05),
        ("f3", "palm", 0.05),
    ):
        builder.add_body(
            link, parent, p=(x, 0, 0), inertial=Inertial.point(0.2, (x, 0.0, 0.0))
        )
    builder.add_frame("tip", "f2", p=(0.05, 0, 0))
    if loop:
        builder.add_loop("f2", (0.05, 0, 0), "f3", (0.05, 0, 0))
    return builder.build()


def mixed():
    builder = ModelBuilder("mixed")
    builder.add_body("hull", joint="free")
    builder.add_body("mast", "hull", "fixed")
    builder.add_body("boom", "mast", "universal", axis=(0, 0, 1), axis2=(0, 1, 0))
    builder.add_body("screw", "hull", "helical", axis=(1, 0, 0), pitch=0.2)
    return builder.build()


def height(model):
    """A function of many leaves: the moment of gravity about the world's origin."""
    return jnp.vdot(model.mass, (model.com + model.p) @ model.gravity)


def topology(**changes):
    fields = dict(
        name="robot",
        base="base",
        names=("a", "b"),
        joint_names=("j_a", "j_b"),
        parents=(-1, 0),
        joints=("revolute", "prismatic"),
        frame_names=("tool",),
        frame_bodies=(1,),
    )
    return Topology(**(fields | changes))


def lines(model):
    return repr(model).splitlines()


def test_repr_is_the_tree_with_joints_and_masses():
    row = "{:<6}  revolute (0, 0, 1)                  {:<9}  {} kg"
    assert lines(gripper())[:6] == [
        "Model 'gripper': 4 bodies, nq = 4, nv = 4, mass 1 kg, gravity (0, -9.81, 0)",
        "base",
        row.format("└ palm", "q[0]", 0.4),
        row.format("  ├ f1", "q[1]", 0.2),
        row.format("  │ f2", "q[2]", 0.2),
        row.format("  └ f3", "q[3]", 0.2),
    ]


def test_repr_ends_with_the_conventions():
    text = repr(gripper())
    words = ("linear part first", "x, y, z, w", "body order", "SI units", "world axes")
    assert all(word in text for word in words)


@pytest.mark.parametrize(
    "row, words",
    [
        (2, ("hull", "free", "q[0:7]")),
        (3, ("mast", "fixed")),
        (4, ("boom", "universal (0, 0, 1) (0, 1, 0)", "q[7:9]")),
        (5, ("screw", "helical (1, 0, 0) pitch 0.2", "q[9]")),
    ],
)
def test_repr_names_axes_and_places_in_q(row, words):
    assert all(word in lines(mixed())[row] for word in words)


def test_repr_of_one_body_counts_in_the_singular():
    builder = ModelBuilder("one")
    builder.add_body("a")
    assert lines(builder.build())[0].startswith("Model 'one': 1 body, nq = 1, nv = 1")


def test_repr_says_that_loops_close_the_tree():
    shown = lines(gripper(loop=True))
    assert "closed by 1 loop" in shown and "  loop 0: f2 to f3, spherical" in shown


def test_repr_of_a_large_model_is_cut():
    builder = ModelBuilder()
    for i in range(100):
        builder.add_body(f"b{i}", i - 1)
    assert "... 40 more bodies" in lines(builder.build())


def test_repr_of_a_traced_model_is_its_structure():
    texts = []
    jax.jit(lambda model: texts.append(repr(model)))(gripper())
    assert texts[0].startswith("Model 'gripper': 4 bodies, nq = 4, nv = 4\nbase\n")


def test_repr_of_a_batch_is_its_structure():
    batch = jax.tree.map(lambda x: np.stack([x, x]), gripper())
    assert repr(batch).startswith("Model 'gripper': 4 bodies, nq = 4, nv = 4\nbase\n")


def test_astype_changes_every_leaf():
    model = gripper(loop=True).astype(jnp.float32)
    leaves = jax.tree.leaves(model)
    assert {leaf.dtype for leaf in leaves} == {model.dtype} == {jnp.dtype(jnp.float32)}


def test_astype_keeps_the_topology():
    model = gripper()
    assert model.astype(jnp.float32).topology is model.topology


@pytest.mark.parametrize("body, index", [("palm", 0), ("f3", 3), (2, 2)])
def test_body_finds_names_and_indices(body, index):
    assert gripper().body(body) == index


@pytest.mark.parametrize(
    "body, message",
    [
        (
            "arm",
            "model 'gripper' has no body 'arm', expected .* one of: palm, f1, f2, f3",
        ),
        (4, "has no body 4, expected an index from 0 to 3 or one of"),
        (True, "has no body True, expected an index"),
        (-1, "has no body -1"),
    ],
)
def test_body_says_what_is_wrong(body, message):
    with pytest.raises(ValueError, match=message):
        gripper().body(body)


def test_slices_are_the_places_of_a_joint():
    model = mixed()
    got = [(model.q_slice(i), model.v_slice(i)) for i in ("hull", "mast", "boom", 3)]
    assert got == [
        (slice(0, 7), slice(0, 6)),
        (slice(7, 7), slice(6, 6)),
        (slice(7, 9), slice(6, 8)),
        (slice(9, 10), slice(8, 9)),
    ]


def test_properties_are_those_of_the_topology():
    model = mixed()
    got = (model.name, model.n, model.nq, model.nv, model.joints)
    assert got == ("mixed", 4, 10, 9, ("free", "fixed", "universal", "helical"))


def test_modules_of_a_model_are_those_of_its_tree():
    assert gripper().modules.bodies == (("palm",), ("f1", "f2"), ("f3",))


def test_equal_topologies_are_equal_and_hash_alike():
    one, two = topology(), topology()
    assert one == two and hash(one) == hash(two) and repr(one) == repr(two)
    assert repr(one).startswith("Topology('robot', n = 2, ")


@pytest.mark.parametrize(
    "change",
    [
        {"parents": (-1, -1)},
        {"joints": ("revolute", "revolute")},
        {"frame_bodies": (0,)},
        {"frame_names": (), "frame_bodies": ()},
    ],
)
def test_topologies_of_other_structure_are_unequal(change):
    one, other = topology(), topology(**change)
    assert one != other and repr(one) != repr(other)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"base": "world"},
        {"names": ("a", "c")},
        {"joint_names": ("j_a", "j_c")},
        {"frame_names": ("camera",)},
    ],
)
def test_names_are_no_part_of_the_structure(change):
    one, other = topology(), topology(**change)
    assert one == other and hash(one) == hash(other) and repr(one) != repr(other)


def test_names_that_traced_code_has_looked_up_count():
    one, two, three = topology(), topology(names=("a", "c")), topology()
    one.looked_up("names", "a")
    assert one == two == three
    three.looked_up("names", "b")
    assert two != three and one == three and one != two


def test_a_used_topology_pickles_and_copies_as_a_new_one():
    model = jd.robots.chain(300)
    before = len(pickle.dumps(model))
    jax.eval_shape(jd.mass_matrix, model, jnp.zeros(300))
    assert len(pickle.dumps(model)) == before
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.topology == model.topology
        assert repr(again.topology) == repr(model.topology)
        assert again.topology.ancestors.sum() == 45150


def test_a_topology_is_not_equal_to_anything_else():
    assert topology() != "robot"


def test_tables_made_later_do_not_change_equality():
    one, two = topology(), topology()
    assert one.lanes.size == 2 and one == two and hash(one) == hash(two)


def counted(function):
    """The function under jit, and the list of its traces."""
    traces = []

    @jax.jit
    def jitted(model):
        traces.append(model)
        return function(model)

    return jitted, traces


@pytest.mark.parametrize(
    "second, number",
    [
        (gripper(), 1),
        (gripper(mass=0.7), 1),
        (gripper(name="other"), 1),
        (gripper(loop=True), 2),
        (gripper().astype(jnp.float32), 2),
    ],
    ids=["built again", "other values", "other name", "loop", "float32"],
)
def test_only_another_structure_is_traced_again(second, number):
    function, traces = counted(height)
    function(gripper())
    function(second)
    assert len(traces) == number


def arms():
    """Two arms of one structure, with the same names on other bodies."""
    models = []
    for names in (("tool", "upper"), ("upper", "tool")):
        builder = ModelBuilder(f"{names[0]} first")
        for k, name in enumerate(names):
            parent = names[0] if k else None
            rod = Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
            builder.add_body(name, parent, p=(k + 1.0, 0, 0), inertial=rod)
            builder.add_frame(f"on {name}", name, p=(0.5, 0, 0))
        models.append(builder.build())
    return models


def test_models_of_other_names_can_be_stacked():
    one, other = arms()
    both = jax.tree.map(lambda *x: jnp.stack(x), one, other)
    assert both.names == one.names and both.p.shape == (2, 2, 3)


def test_a_name_that_a_program_looks_up_is_that_of_each_model():
    one, other = arms()

    def mass(model):
        return model.mass[model.body("tool")]

    @jax.jit
    def outer(model):
        return inner(model)

    inner = jax.jit(mass)
    masses = jnp.array([1.0, 2.0])
    one, again, other = (
        eqx.tree_at(lambda m: m.mass, m, masses) for m in (one, arms()[0], other)
    )
    assert inner(one) == 1 and outer(again) == 1
    assert outer(other) == 2 and inner(other) == 2 and outer(one) == 1


def test_vmap_over_models_equals_the_loop():
    models = [gripper(mass) for mass in (0.1, 0.4, 0.9)]
    batch = jax.tree.map(lambda *x: np.stack(x), *models)
    got, single = jax.jit(jax.vmap(height))(batch), jax.jit(height)
    np.testing.assert_allclose(got, [single(m) for m in models], rtol=1e-14)


def test_the_gradient_with_respect_to_a_model_is_a_model():
    model = gripper()
    gradient = jax.jit(jax.grad(height))(model)
    want = model.mass[:, None] * model.gravity[None, :]
    assert isinstance(gradient, Model)
    np.testing.assert_allclose(gradient.p, want, rtol=1e-14)


def test_a_leaf_can_be_exchanged():
    model = eqx.tree_at(lambda m: m.mass, gripper(), jnp.ones(4))
    np.testing.assert_allclose(model.mass, 1)


def test_flattening_and_unflattening_keeps_the_model():
    model = mixed()
    leaves, structure = jax.tree.flatten(model)
    other = jax.tree.unflatten(structure, leaves)
    assert all(vars(other)[key] is value for key, value in vars(model).items())


def test_repr_shows_the_structure_where_there_are_no_values():
    model = gripper()
    specs = (
        jax.tree.map(lambda _: False, model),
        eqx.partition(model, jax.tree.map(lambda _: False, model))[0],
        jax.eval_shape(lambda: model),
    )
    assert all(repr(spec).startswith("Model 'gripper': 4 bodies") for spec in specs)


@pytest.mark.parametrize(
    "name, shape, expected",
    [
        ("p", (2, 3), r"\(2, 3\), expected \(4, 3\)"),
        ("friction_speed", (3,), r"\(3,\), expected \(4,\)"),
    ],
)
def test_a_leaf_of_the_wrong_length_is_an_error_that_names_it(name, shape, expected):
    model = eqx.tree_at(lambda m: getattr(m, name), gripper(), jnp.ones(shape))
    with pytest.raises(ValueError, match=f"leaf {name} .* shape {expected}"):
        arguments(model)


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("q", [0.0] * 4, "q is a list, expected an array: pass jnp.array of it"),
        ("tau", (), "tau is a tuple, expected an array"),
        ("base", {"v": (0, 0, 1.0)}, r"base\['v'\] is a tuple, expected an array"),
    ],
)
def test_numbers_in_a_list_are_no_array(name, value, expected):
    with pytest.raises(ValueError, match=expected):
        arguments(gripper(), **{name: value})


@pytest.mark.parametrize("item", [0.7, True, 4])
def test_a_coordinate_is_a_name_or_an_index(item, without_type_checker):
    with pytest.raises(ValueError, match=f"actuated has {item}, expected .* 0 to 3"):
        chosen_coordinates(gripper(), "actuated", [item])


def test_plans_of_the_same_loops_are_equal():
    make, tree = loop_plan.__wrapped__, gripper().topology  # as two threads would
    one, same, other = (make(tree, ((0, 2, rows),)) for rows in (3, 3, 2))
    assert one == same and hash(one) == hash(same) and one != other


def test_a_model_of_mixed_types_is_used_in_the_wider_one():
    model = gripper().astype(jnp.float32)
    mixed = eqx.tree_at(lambda m: m.p, model, model.p.astype(jnp.float64))
    (same,) = arguments(mixed)
    assert {leaf.dtype for leaf in jax.tree.leaves(same)} == {jnp.dtype("float64")}
