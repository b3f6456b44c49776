import equinox as eqx
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxdyn import from_dh, from_dict, load_mjcf, load_urdf, robots, to_dict
from jaxdyn.io import DHLink
from jaxdyn.model import (
    JOINT_TYPES,
    Inertial,
    ModelBuilder,
    SlenderRods,
    _singular,
    singular_joints,
)
from tests.reference import DATA, cases

BOX = Inertial.box(1.0, (0.1, 0.2, 0.3)).moved(np.eye(3), np.array([0.4, 0.1, 0.2]))
ROD = Inertial.rod(1.0, (0, 0, 0), (0.3, 0.4, 1.2))
LONG = {
    "protein": lambda: robots.protein_chain("A" * 500),
    "rope": lambda: robots.rope(500),
    "chain": lambda: robots.chain(1000),
    "mixed": lambda: robots.random_tree(0, 300, joints=tuple(JOINT_TYPES)),
}
PAPERS = {
    "puma_mohan_saha": robots.puma_mohan_saha,
    "puma_560": robots.puma_560,
    "two_link": robots.mata_two_link,
    "slender_two_link": lambda: robots.mata_two_link(slender=True),
    "gripper": robots.gripper,
    "sliders": robots.featherstone_2p,
    "tree": robots.lecture_tree,
    "four_bar": robots.four_bar,
    "stewart_gough": robots.stewart_gough,
}
EMPTY = Inertial()
AXIS = (1, 2, 3)


def carried(*links, seed=0):
    """A builder with links on an arm of three heavy ones.

    Each link is given by the arguments of `add_body`, without name and parent.
    """
    rng = np.random.default_rng(seed)
    b = ModelBuilder("arm")
    for i in range(3):
        axis, p = rng.normal(size=(2, 3))
        b.add_body(f"arm{i}", i - 1, axis=axis, p=p, inertial=BOX)
    for i, link in enumerate(links):
        b.add_body(f"link{i}", b.names[-1], **link)
    return b


def turn(axis=AXIS, inertial=EMPTY, **options):
    return {"axis": axis, "inertial": inertial, **options}


def joint(kind, inertial=EMPTY, **options):
    return {"joint": kind, "inertial": inertial, **options}


SINGULAR = {  # the links, the joints without inertia, what the error says
    "a massless tip": ([turn()], ["j_link0"], "'j_link0' of body 'link0': no inertia "),
    "a massless branch": (
        [turn(), turn((0, 1, 0)), joint("prismatic")],
        ["j_link0", "j_link1", "j_link2"],
        r"'j_link2' .* slide along axis, qd\[5\]: give .* joints: 'j_link1', 'j_link0'",
    ),
    "a point on its axis": (
        [turn((0, 0, 1), Inertial.point(2.0, (0, 0, 0.7)))],
        ["j_link0"],
        r"its turn about axis, qd\[3\]: give the body mass or inertia, give the joint ",
    ),
    "a rod on its axis": (
        [turn((3, 4, 12), ROD)],
        ["j_link0"],
        "give the joint an armature, or make it fixed; check_inertia=False",
    ),
    "a rod on a spherical joint": (
        [joint("spherical", ROD)],
        ["j_link0"],
        r"turn about x, qd\[3\], .* is also moved by its other degrees of freedom: ",
    ),
    "a rod along x on a spherical joint": (
        [joint("spherical", Inertial.rod(1.0, (0, 0, 0), (1, 0, 0)))],
        ["j_link0"],
        r"resists its turn about x, qd\[3\]: give",
    ),
    "a free rod far from its origin": (
        [joint("free", ROD.moved(np.eye(3), np.array([5.0, -3.0, 8.0])))],
        ["j_link0"],
        "slide along x, .* moved by its other degrees of freedom",
    ),
    "a free point": (
        [joint("free", Inertial.point(1.0, (1, 2, 3)))],
        ["j_link0"],
        "turn about x, .* moved by its other degrees of freedom",
    ),
    "collinear turns": (
        [turn(), turn(p=AXIS, inertial=BOX), turn((1, 0, 0), BOX, p=(1, 1, 1))],
        ["j_link0"],
        r"qd\[3\], which moves nothing but what is also moved by joint 'j_link1': give",
    ),
    "collinear turns about a heavy line": (
        [turn(), turn(inertial=Inertial(1e3, np.array([3, 6, 9]), 1e-6 * np.eye(3)))],
        ["j_link0"],
        "also moved by joint 'j_link1'",
    ),
    "parallel slides": (
        [joint("prismatic", axis=AXIS), joint("cylindrical", BOX, axis=AXIS)],
        ["j_link0"],
        "slide along axis.* also moved by joint 'j_link1'",
    ),
    "a screw and the cylinder that makes it": (
        [joint("helical", axis=AXIS, pitch=0.1), joint("cylindrical", BOX, axis=AXIS)],
        ["j_link0"],
        "screw along axis.* also moved by joint 'j_link1'",
    ),
    "two planes in one": (
        [joint("planar", axis2=(1, 0, 0)), joint("planar", BOX, axis2=(1, 0, 0))],
        ["j_link0"],
        "turn about axis, .* also moved by joint 'j_link1'",
    ),
    "turns that meet in a point": (
        [turn(), turn((0, 1, 0)), turn((1, 0, 0)), turn((1, 1, 0), BOX)],
        ["j_link0"],
        "also moved by joint 'j_link1', joint 'j_link2', joint 'j_link3'",
    ),
    "a fixed mass on massless joints": (
        [joint("spherical"), joint("fixed", Inertial.point(1.0, (1, 2, 3)))],
        ["j_link0"],
        "turn about x, .* moved by its other degrees of freedom",
    ),
}
each_kind = pytest.mark.parametrize(
    "links, names, message", SINGULAR.values(), ids=SINGULAR
)


@each_kind
def test_joints_without_inertia_are_found_by_name(links, names, message):
    model = carried(*links).build(check_inertia=False)
    assert list(singular_joints(model)) == names


@each_kind
def test_the_error_names_the_joint_and_the_motion(links, names, message):
    with pytest.raises(ValueError, match=message):
        carried(*links).build()


@each_kind
def test_armature_heals_it(links, names, message):
    links = [link | {"armature": 0.1} for link in links]
    assert singular_joints(carried(*links).build()) == ()


@each_kind
def test_mass_heals_it(links, names, message):
    heavy = [link | {"inertial": link["inertial"] + BOX} for link in links]
    assert singular_joints(carried(*heavy).build()) == ()


@each_kind
def test_it_is_found_in_single_precision_too(links, names, message):
    model = carried(*links).build(jnp.float32, check_inertia=False)
    assert set(names) <= set(singular_joints(model))


@each_kind
@pytest.mark.parametrize("roundings", [20, 1e4])
def test_zero_pivots_are_far_below_the_threshold(
    links, names, message, roundings, monkeypatch
):
    monkeypatch.setattr(_singular, "_ROUNDINGS", roundings)
    found = [
        singular_joints(carried(*links, seed=seed).build(check_inertia=False))
        for seed in range(20)
    ]
    assert found == [tuple(names)] * 20


@pytest.mark.parametrize("make", (LONG | PAPERS).values(), ids=LONG | PAPERS)
def test_no_false_alarm(make):
    assert singular_joints(make()) == ()


@pytest.mark.parametrize("make", (LONG | PAPERS).values(), ids=LONG | PAPERS)
def test_no_false_alarm_in_single_precision(make):
    assert singular_joints(make().astype(jnp.float32)) == ()


@pytest.mark.parametrize("make", PAPERS.values(), ids=PAPERS)
def test_pivots_of_real_robots_are_far_above_the_threshold(make, monkeypatch):
    monkeypatch.setattr(_singular, "_ROUNDINGS", 1e11)
    assert singular_joints(make()) == ()


@pytest.mark.reference
@pytest.mark.filterwarnings("ignore:model 'puma.* will move as its file says")
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.json")))
def test_no_false_alarm_for_the_reference_models(name):
    specs = [case["model"] for case in cases(name) if "model" in case]
    models = [from_dict(spec) for spec in specs]
    assert not any(singular_joints(model) for model in models)


def test_a_small_inertia_is_enough():
    small = Inertial(inertia=1e-6 * np.eye(3))
    model = carried(turn(inertial=small), turn(inertial=BOX)).build()
    assert singular_joints(model) == ()


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_size_of_a_robot_does_not_matter(size):
    box = Inertial(1.0, size * BOX.com, size**2 * BOX.inertia)
    b = ModelBuilder()
    for i, kind in enumerate(("free", "prismatic", "revolute", "cylindrical")):
        options = {"axis": AXIS} if i else {}
        b.add_body(f"b{i}", i - 1, kind, p=(size, 0, 0), inertial=box, **options)
    assert singular_joints(b.build()) == ()


def test_a_massless_body_between_crossed_axes_needs_nothing():
    model = carried(turn((0, 0, 1)), turn((1, 0, 0), BOX)).build()
    assert singular_joints(model) == ()


@pytest.mark.parametrize("kind", sorted(JOINT_TYPES.keys() - {"fixed"}))
def test_a_kinematic_model_is_accepted_but_its_joints_have_no_inertia(kind):
    options = {"pitch": 0.1} if kind == "helical" else {}
    options |= {"axis2": (1, 0, 0)} if JOINT_TYPES[kind].axes == 2 else {}
    b = ModelBuilder()
    b.add_body("a", joint=kind, **options)
    assert singular_joints(b.build()) == ("j_a",)


@pytest.mark.parametrize("some", [{"inertial": BOX}, {"armature": 1.0}])
def test_a_model_with_some_mass_or_armature_is_not_kinematic(some):
    b = ModelBuilder()
    b.add_body("a", **some)
    b.add_body("b", "a")
    with pytest.raises(ValueError, match="joint 'j_b' of body 'b': no inertia"):
        b.build()


def test_a_model_that_does_not_move_is_accepted():
    b = ModelBuilder()
    b.add_body("a", joint="fixed", inertial=BOX)
    assert singular_joints(b.build()) == ()


def test_axes_of_a_model_may_have_any_length():
    model = carried(turn(inertial=BOX)).build()
    model = eqx.tree_at(lambda m: m.axis, model, 1e-3 * model.axis)
    assert singular_joints(model) == ()


def test_a_batch_of_models_is_an_error():
    model = carried().build()
    batch = eqx.tree_at(lambda m: m.mass, model, jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="leaf mass .* use jax.vmap for a batch"):
        singular_joints(batch)


LINK = '<link name="{}">{}</link>'
HEAVY = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
)
NONE = HEAVY.replace('"1"', '"0"')
JOINT = (
    '<joint name="j_{1}" type="continuous"><axis xyz="0 0 1"/>'
    '<parent link="{0}"/><child link="{1}"/></joint>'
)
URDF = "".join(
    [
        '<robot name="r">',
        *(LINK.format(name, HEAVY if name == "b" else NONE) for name in "0ab"),
        *(JOINT.format(*pair) for pair in ("0a", "ab")),
        "</robot>",
    ]
)
MJCF = (
    '<mujoco><worldbody><body name="a"><joint name="j_a"/><joint name="j_b"/>'
    '<geom size="0.1"/></body></worldbody></mujoco>'
)
READERS = {
    "dict": lambda check_inertia=True: from_dict(
        to_dict(carried(turn()).build(check_inertia=False)), strict=check_inertia
    ),
    "dh": lambda **options: from_dh(
        [DHLink(), DHLink(d=1.0, inertial=SlenderRods(1.0))], **options
    ),
    "urdf": lambda check_inertia=True: load_urdf(URDF, strict=check_inertia),
    "mjcf": lambda check_inertia=True: load_mjcf(MJCF, strict=check_inertia),
}
# MuJoCo 3 itself refuses the file: its first step is not a number
OLD_MUJOCO = pytest.mark.skipif(mujoco.__version__ < "4", reason="MuJoCo 3 refuses it")
each_reader = pytest.mark.parametrize(
    "read",
    [
        pytest.param(read, marks=OLD_MUJOCO if name == "mjcf" else (), id=name)
        for name, read in READERS.items()
    ],
)


@each_reader
def test_readers_report_joints_without_inertia(read):
    with pytest.raises(ValueError, match="no inertia resists"):
        read()


@pytest.mark.filterwarnings("ignore:model .* will move as its file says")
@each_reader
def test_readers_accept_joints_without_inertia_on_request(read):
    assert singular_joints(read(check_inertia=False))
