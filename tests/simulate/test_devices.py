"""Batches over several devices: forced ones of this host, in processes of their own."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh

import jaxdyn as jd

COMMON = """
import sys, jax, jax.numpy as jnp, numpy as np
import jaxdyn as jd
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

model, rng = jd.robots.chain(2).astype("float32"), np.random.default_rng(0)
state = rng.normal(size=(3, {size}, 2)).astype("float32")

def cost(model, q, qd, tau):
    return (jd.forward_dynamics(model, q, qd, tau) ** 2).sum()

def both(batched, state):
    def total(state):
        values = batched(model, *state)
        return values.sum(), values
    (_, values), slopes = jax.jit(jax.value_and_grad(total, has_aux=True))(state)
    return values, slopes
"""

DEVICES = """
one = both(jd.batched(cost, cores=1), state)
for count in {counts}:
    mesh = Mesh(np.array(jax.devices()[:count]), ("states",))
    found = both(jd.batched(cost, mesh=mesh), state)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(one), strict=True):
        assert np.array_equal(x, y), count
"""

LOCAL = """
called = jd.batched(cost)(model, *np.tile(state, (1, 600, 1)))
assert len(called.sharding.device_set) == 4
program = jax.jit(jd.batched(cost, mesh=mesh)).lower(model, *state)
assert "xla_cpu_small_call" in program.as_text()
assert np.array_equal(called[: len(one[0])], jd.batched(cost, cores=1)(model, *state))
"""

TOGETHER = """
import sys, jax
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize("localhost:{port}", {count}, int(sys.argv[1]))
"""

PROCESSES = """
mesh = jax.make_mesh((jax.device_count(),), ("states",))
assert jax.device_count() == 4 and jax.local_device_count() == 4 // {count}
rows = NamedSharding(mesh, P(None, "states"))
whole = jax.make_array_from_callback(state.shape, rows, lambda k: state[k])
found = both(jd.batched(cost, mesh=mesh), whole)
mine = [[s.data for s in x.addressable_shards] for x in jax.tree.leaves(found)]
np.savez({folder!r} + f"/{count}_" + sys.argv[1], *map(np.concatenate, mine[:1]),
         *[np.concatenate(x, 1) for x in mine[1:]])
"""


def start(code, devices, *arguments):
    flags = f"--xla_force_host_platform_device_count={devices}"
    flags += " --xla_backend_optimization_level=0"
    own = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env={**os.environ, **own})


def test_four_devices_and_one_have_the_same_bits():
    code = COMMON.format(size=64) + DEVICES.format(counts=(4,)) + LOCAL
    assert start(code, 4).wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 64, 101])
def test_any_number_of_devices_and_one_have_the_same_bits(size):
    code = COMMON.format(size=size) + DEVICES.format(counts=(1, 2, 4, 8))
    assert start(code, 8).wait() == 0


@pytest.mark.slow
def test_two_processes_and_one_have_the_same_bits(tmp_path):
    for count in (1, 2):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        settings = dict(port=port, count=count, folder=str(tmp_path))
        code = TOGETHER.format(**settings) + COMMON.format(size=64)
        code += PROCESSES.format(**settings)
        started = [start(code, 4 // count, str(k)) for k in range(count)]
        assert [process.wait() for process in started] == [0] * count
    names = "1_0", "2_0", "2_1"
    one, first, second = (np.load(tmp_path / f"{name}.npz") for name in names)
    for k, name in enumerate(one):
        parts = np.concatenate([first[name], second[name]], axis=min(k, 1))
        np.testing.assert_array_equal(parts, one[name])


def test_a_mesh_within_jit_and_a_batch_that_it_does_not_divide(rng):
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("hosts", "devices"))
    q, model = jnp.asarray(rng.normal(size=(3, 2))), jd.robots.chain(2)
    for axes in (None, "devices", ("hosts", "devices")):
        energy = jd.batched(jd.potential_energy, mesh=mesh, axes=axes)
        slope = jax.jit(jax.grad(lambda q, f=energy: f(model, q).sum()))(q)
        forces = jax.vmap(jd.gravity_forces, (None, 0))(model, q)
        np.testing.assert_allclose(slope, forces, atol=1e-12)


def test_axes_that_a_mesh_does_not_have_are_named():
    mesh = jax.make_mesh((1,), ("states",), axis_types=(AxisType.Auto,))
    with pytest.raises(ValueError, match=r"axes are 'rows', expected some of the mesh"):
        jd.batched(jnp.sin, mesh=mesh, axes="rows")
    for wrong in (dict(mesh=mesh, cores=1), dict(axes="states")):
        with pytest.raises(ValueError, match="expected a mesh, perhaps with axes, or"):
            jd.batched(jnp.sin, **wrong)


@pytest.mark.slow
def test_the_example_of_a_gradient_over_a_mesh_runs_on_four_devices():
    page = Path(__file__).parents[2] / "docs" / "devices.md"
    text = page.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    assert start(code + "assert jax.device_count() == 4", 4).wait() == 0
