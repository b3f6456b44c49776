import io
import json
import struct

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

import jaxdyn as jd
from jaxdyn.view import save_gltf
from tests.models import every_joint
from tests.view.test_visuals import BLUE, GLASS, arm, rod, shapes, stl, surface, turn


def read(path):
    """The content of a GLB file, and a function that reads its numbers."""
    data = path.read_bytes()
    mark, version, size = struct.unpack_from("<4sII", data)
    assert (mark, version, size) == (b"glTF", 2, len(data)) and size % 4 == 0
    length, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    content = json.loads(data[20 : 20 + length])
    rest, kind = struct.unpack_from("<I4s", data, 20 + length)
    assert kind == b"BIN\0" and rest + 28 + length == size
    numbers = data[28 + length :]
    assert content["buffers"][0]["byteLength"] <= len(numbers)

    def array(k):
        accessor = content["accessors"][k]
        view = content["bufferViews"][accessor["bufferView"]]
        dtype = {5126: "<f4", 5125: "<u4"}[accessor["componentType"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        start = view["byteOffset"]
        found = np.frombuffer(numbers[start : start + view["byteLength"]], dtype)
        assert len(found) == accessor["count"] * width
        found = found.reshape(-1, width)
        np.testing.assert_allclose(found.min(axis=0), accessor["min"])
        return found

    return content, array


def test_bodies_are_nodes_that_move_as_forward_kinematics_says(tmp_path):
    model = every_joint()
    ts = np.linspace(1.0, 2.0, 7)
    rng = np.random.default_rng(0)
    ways = jnp.asarray(np.outer(ts - 1, rng.normal(size=model.nv)))
    q = np.stack([jd.integrate(model, jd.neutral(model), way) for way in ways])
    content, array = read(save_gltf(model, ts, q, tmp_path / "a.glb"))
    (animation,) = content["animations"]
    assert len(animation["channels"]) == 2 * model.n
    for channel in animation["channels"]:
        sampler = animation["samplers"][channel["sampler"]]
        body, way = channel["target"]["node"], channel["target"]["path"]
        assert content["nodes"][body]["name"] == model.names[body]
        np.testing.assert_allclose(array(sampler["input"])[:, 0], ts - 1, atol=1e-6)
        values = array(sampler["output"])
        for row in range(len(ts)):
            at = jd.forward_kinematics(model, jnp.asarray(q[row]))
            if way == "translation":
                np.testing.assert_allclose(values[row], at.p[body], atol=1e-5)
            else:
                x, y, z, w = values[row]
                third = [
                    2 * (x * z + y * w),
                    2 * (y * z - x * w),
                    1 - 2 * (x**2 + y**2),
                ]
                np.testing.assert_allclose(third, at.R[body][:, 2], atol=1e-5)
        if way == "rotation":
            assert ((values[1:] * values[:-1]).sum(axis=1) > 0).all()


def test_another_program_sees_shapes_and_colours_where_they_are(tmp_path):
    mesh = stl(tmp_path / "m.stl", surface("box"))
    model = arm(*shapes(mesh), lower=[rod(BLUE)])
    ts, q = turn(model)
    path = save_gltf(model, ts, q, tmp_path / "a.glb")
    scene = trimesh.load(io.BytesIO(path.read_bytes()), file_type="glb")
    content, _ = read(path)
    assert len(scene.graph.nodes_geometry) == 11
    low, high = scene.bounds  # y is up: the arm lies 1 m above the ground
    np.testing.assert_allclose((low[1] + high[1]) / 2, 1.0, atol=0.01)
    np.testing.assert_allclose(high[1] - low[1], 2.0, atol=0.01)
    alphas = [
        x["pbrMetallicRoughness"]["baseColorFactor"][3] for x in content["materials"]
    ]
    blends = ["alphaMode" in x for x in content["materials"]]
    assert [alpha < 1 for alpha in alphas] == blends and GLASS[3] in alphas
    assert len(content["meshes"]) <= 9  # shapes of one colour are there once


def test_a_skeleton_without_gravity_and_motion(tmp_path):
    b = jd.ModelBuilder("bar", gravity=(0, 0, 0))
    b.add_body("bar", inertial=jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0)))
    content, _ = read(save_gltf(b.build(), [0.0], np.zeros((1, 1)), tmp_path / "a.glb"))
    assert [x.get("name") for x in content["nodes"][:2]] == ["bar", "base"]
    with pytest.raises(ValueError, match=r"q has shape \(1, 2\)"):
        save_gltf(b.build(), [0.0], np.zeros((1, 2)), tmp_path / "b.glb")
