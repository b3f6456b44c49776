import dataclasses
from typing import Any, NamedTuple

import matplotlib
import matplotlib.pyplot
import numpy as np
from PIL import Image

import jaxdyn as jd
from jaxdyn.view import MOLECULAR, SI, save_plots
from jaxdyn.view._coordinates import kinds_in, positions, quantities, rates
from jaxdyn.view._plots import _joint_figure
from tests.models import every_joint


class Motion(NamedTuple):
    ts: Any
    q: Any
    qd: Any
    qdd: Any
    tau: Any
    kinetic_energy: Any
    potential_energy: Any


@dataclasses.dataclass
class Balance:
    ts: dataclasses.InitVar[Any]

    def __post_init__(self, ts):
        for name in ("actuators", "external", "dissipated", "energy_rate", "error"):
            setattr(self, name, np.sin(ts))
        self.work = self.drift = 1e-9 * np.cos(ts)


def waves(model, times=20):
    ts = np.linspace(0.0, 1.0, times)
    q, v = (np.sin(np.outer(ts, 1 + np.arange(n))) for n in (model.nq, model.nv))
    return Motion(ts, q, v, v, v, ts, -ts)


def test_a_picture_of_each_quantity_and_nothing_global(tmp_path):
    before = matplotlib.pyplot.get_fignums(), matplotlib.get_backend()
    model = jd.robots.gripper()
    motion = waves(model)
    paths = save_plots(model, motion, tmp_path / "new", balance=Balance(motion.ts))
    names = "positions rates accelerations forces energy power"
    assert [path.stem for path in paths] == names.split()
    for path in paths:
        with Image.open(path) as picture:
            assert picture.format == "PNG" and picture.width > 800
            assert np.ptp(np.asarray(picture.convert("L"))) > 200
    assert (matplotlib.pyplot.get_fignums(), matplotlib.get_backend()) == before


def test_what_is_missing_is_left_out(tmp_path):
    model = jd.robots.gripper()
    motion = waves(model)._replace(qdd=None, tau=None, kinetic_energy=None)
    paths = save_plots(model, motion, tmp_path)
    assert [path.stem for path in paths] == ["positions", "rates"]


def figure_of(model, letter="q"):
    entries = positions(model) if letter == "q" else rates(model)
    titles = {k: quantities(SI)[letter].title(k) for k in kinds_in(entries)}
    motion = waves(model)
    values = getattr(motion, letter)
    return _joint_figure(model, motion.ts, values, entries, titles, SI)


def test_few_joints_have_a_legend_with_their_names():
    (ax,) = figure_of(jd.robots.gripper()).axes
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == list(jd.robots.gripper().joint_names)
    assert ax.get_ylabel() == "joint positions (rad)"


def test_many_joints_have_a_scale_of_colours():
    model = jd.robots.rope()
    ax, bar = figure_of(model).axes
    assert ax.get_legend() is None and len(ax.lines) == 100
    named = [label.get_text() for label in bar.get_yticklabels()]
    assert (named[0], named[-1]) == (model.joint_names[0], model.joint_names[-1])


def test_each_kind_of_coordinate_has_its_panel_and_unit():
    model = every_joint()
    labels = [ax.get_ylabel() for ax in figure_of(model).axes if ax.get_ylabel()]
    assert labels == [
        "joint positions (rad)",
        "joint positions (m)",
        "joint positions (quaternion)",
    ]
    labels = [ax.get_ylabel() for ax in figure_of(model, "tau").axes if ax.get_ylabel()]
    assert labels == ["joint forces (N m)", "joint forces (N)"]


def test_coordinates_follow_the_order_of_q_and_qd():
    model = every_joint()
    for entries, slice_of in (
        (positions(model), model.q_slice),
        (rates(model), model.v_slice),
    ):
        places = [slice_of(entry.body).start + entry.part for entry in entries]
        assert places == list(range(len(places)))
    assert len(positions(model)) == model.nq and len(rates(model)) == model.nv
    kinds = {entry.name: entry.kind for entry in positions(model)}
    assert kinds["j_helical"] == kinds["j_planar angle"] == "angle"
    assert kinds["j_prismatic"] == kinds["j_free x"] == kinds["j_planar x"] == "length"
    assert kinds["j_free qw"] == kinds["j_spherical x"] == "quaternion"


def test_molecules_have_units_of_their_own():
    forces = quantities(MOLECULAR)["tau"]
    assert forces.title("angle") == "joint forces (Da Å²/ps²)"
    assert quantities(MOLECULAR)["qd"].title("length") == "joint rates (Å/ps)"
