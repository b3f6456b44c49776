import sys
from types import ModuleType, SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.view import save_rerun
from tests.view.test_visuals import BLUE, RED, arm, rod, turn


def test_bodies_are_entities_with_poses_and_meshes(tmp_path, monkeypatch):
    sent, logged, saved = {}, {}, []
    stream = SimpleNamespace(
        save=saved.append,
        send_columns=lambda place, indexes, columns: sent.update({place: columns}),
        log=lambda place, entity, static: logged.update({place: entity}),
        disconnect=lambda: saved.append("end"),
    )
    fake = ModuleType("rerun")
    fake.RecordingStream = lambda name: stream
    fake.TimeColumn = lambda name, duration: (name, duration)
    fake.Transform3D = SimpleNamespace(columns=dict)
    fake.Mesh3D = dict
    fake.escape_entity_path_part = lambda name: name
    monkeypatch.setitem(sys.modules, "rerun", fake)
    model = arm(rod(RED), lower=[rod(BLUE)])
    ts, q = turn(model)
    path = save_rerun(model, ts, q, tmp_path / "a.rrd")
    assert saved == [str(path), "end"]
    assert list(sent) == ["robot/lower", "robot/upper"]
    want = jd.forward_kinematics(model, jnp.asarray(q[15])).p[1]
    np.testing.assert_allclose(sent["robot/upper"]["translation"][15], want)
    assert [x["albedo_factor"] for x in logged.values()] == [BLUE, RED]
    assert sorted(logged) == ["robot/lower/0", "robot/upper/1"]


def test_without_rerun_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    model = arm()
    with pytest.raises(ValueError, match="pip install rerun-sdk"):
        save_rerun(model, *turn(model), tmp_path / "a.rrd")


def test_rerun_itself_reads_the_recording(tmp_path):
    pytest.importorskip("rerun")
    model = arm(rod(RED))
    path = save_rerun(model, *turn(model), tmp_path / "a.rrd")
    assert path.read_bytes()[:3] == b"RRF"
