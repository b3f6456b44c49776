"""Programs compiled for GPUs that are not there: `make test-gpu`."""

from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxdyn as jd
from benchmarks.gpu_compile.devices import GPUS
from benchmarks.gpu_compile.measure import measure
from benchmarks.gpu_compile.programs import own
from jaxdyn.program.cuda._call import LOCAL, SETTING

ONE = dict.fromkeys(("fd", "id", "m", "rollout", "rollout_policy", "linearize"), 1)
KERNELS = ONE | {"rollout_gradient": 4}
# as written, below those of MJX, brax and frax (docs/devices.md)
AS_WRITTEN = {"fd": 20, "id": 20, "m": 20, "rollout": 5706, "rollout_gradient": 18173}

pytestmark = pytest.mark.skipif(
    find_spec("jax_cuda12_plugin") is None, reason="needs .venv-gpu: make test-gpu"
)


@pytest.fixture(autouse=True)
def without_cache():
    """Programs for devices that are not there cannot be read again."""
    kept = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_enable_compilation_cache", kept)


def compiled(robot, what):
    function, types = own(robot, 65536)[what]
    made = measure(function, types, GPUS["a100"])
    assert made.collectives == 0
    return made


@pytest.mark.parametrize(("what", "kernels"), KERNELS.items())
def test_programs_of_the_arm_are_one_kernel_and_its_gradient_few(what, kernels):
    made = compiled("arm", what)
    assert made.kernels == kernels
    assert made.ratio < (1.01 if kernels == 1 else 5.6)
    assert made.spilled == 0 or what == "linearize"


@pytest.mark.parametrize("what", ["fd", "rollout"])
def test_those_of_a_humanoid_are_too(what):
    made = compiled("humanoid", what)
    assert (made.kernels, made.spilled) == (1, 0)
    assert made.stack is not None and made.stack <= LOCAL


@pytest.mark.parametrize(("what", "kernels"), AS_WRITTEN.items())
def test_programs_as_written_are_few_kernels(what, kernels, monkeypatch):
    monkeypatch.setenv(SETTING, "off")
    jax.clear_caches()
    assert compiled("arm", what).kernels <= kernels


@pytest.mark.parametrize("gpu", GPUS)
def test_each_of_four_devices_runs_its_part_by_itself(gpu):
    mesh = Mesh(np.array(GPUS[gpu].devices(4)), ("states",))
    rows = NamedSharding(mesh, PartitionSpec("states"))
    model = jd.robots.chain(2).astype(np.float32)
    energy = jd.batched(jd.potential_energy, mesh=mesh)
    q = jax.ShapeDtypeStruct((1024, 2), jnp.float32, sharding=rows)
    made = measure(lambda q: energy(model, q), (q,), GPUS[gpu])
    assert made.collectives == 0 and made.least == 1024 // 4 * (2 + 1) * 4
