"""Kernels in the programs of callers, lowered for a GPU that is not there."""

import re

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.program._cpu import TRIAL, trial_error, trial_walk
from jaxdyn.program.cuda import _call
from jaxdyn.program.cuda._compiling import CompilerError
from jaxdyn.program.cuda._kernel import MACROS, Source
from tests.program.cuda import host
from tests.program.cuda.host import needs_gcc


def lowered(function, *args, platforms=("cuda",)):
    traced = jax.jit(function).trace(*args)
    return traced.lower(lowering_platforms=platforms).as_text()


class Gpu:
    """One that is not there."""

    platform, device_kind, compute_capability = "gpu", "a GPU", "8.0"


def inertia(q):
    return jax.vmap(lambda q: jd.mass_matrix(jd.robots.chain(2), q))(q)


def test_a_program_for_a_gpu_is_one_call_of_ptx(monkeypatch):
    seen = []
    monkeypatch.setattr(_call, "compiled", lambda *args: seen.append(args) or "PTX")
    text = lowered(inertia, np.zeros((130, 2)))
    assert text.count(_call.PTX_CALL) == 1
    assert '"PTX"' in text and "grid_x = 2 : i32" in text
    ((source, capability),) = seen
    assert "__global__" in source and capability == 75
    for platforms in (("cpu",), ("cpu", "cuda")):
        assert _call.PTX_CALL not in lowered(
            inertia, np.zeros((3, 2)), platforms=platforms
        )
    exported = jax.export.export(jax.jit(inertia), platforms=("cuda",))
    assert _call.PTX_CALL not in exported(np.zeros((3, 2))).mlir_module()


def test_without_a_compiler_a_program_is_as_written(monkeypatch):
    def missing(*args):
        raise CompilerError("NVRTC is not installed")

    monkeypatch.setattr(_call, "compiled", missing)
    with pytest.warns(RuntimeWarning, match="NVRTC is not installed") as found:
        assert _call.PTX_CALL not in lowered(inertia, np.zeros((4, 2)))
    assert len(found) == 1


def test_a_gpu_on_which_a_trial_fails_gets_programs_as_written(monkeypatch):
    monkeypatch.setattr(_call, "local_gpu", Gpu)
    monkeypatch.setattr(_call, "compiled", lambda *args: "PTX")
    with pytest.warns(RuntimeWarning, match="a trial kernel failed with"):
        assert _call.PTX_CALL not in lowered(inertia, np.zeros((5, 2)))


@needs_gcc
@pytest.mark.parametrize(
    ("broken", "size", "reason"),
    [
        (lambda text: text, 6, ""),
        (
            lambda text: text.replace("r0[0] =", "r0[0] = 1e-9 +"),
            7,
            "wrong by .* report",
        ),
        (
            lambda text: text.replace("r0[0] =", "r0[0] = NAN *"),
            8,
            "is not finite where",
        ),
        (lambda text: "error", 9, "a kernel failed with CalledProcessError"),
    ],
)
def test_a_kernel_with_other_values_than_its_program_is_not_used(
    broken, size, reason, monkeypatch
):
    """The GPU is this host; what breaks is the text of the kernel."""

    def on_device(gpu, binary, results, size):
        rows = () if size is None else (size,)
        types = [jax.ShapeDtypeStruct((*rows, *a.shape), a.dtype) for a in results]
        source = Source(broken(binary.ptx.removeprefix(MACROS)), binary.room)
        return lambda *args: host.run(source, size, args, types)

    monkeypatch.setattr(_call, "local_gpu", Gpu)
    monkeypatch.setattr(_call, "distrust", lambda gpu: "")
    monkeypatch.setattr(_call, "compiled", lambda text, capability: text)
    monkeypatch.setattr(_call, "on_device", on_device)
    monkeypatch.setattr(_call, "VERDICTS", {})
    if reason:
        with pytest.warns(RuntimeWarning, match=reason):
            assert _call.PTX_CALL not in lowered(inertia, np.zeros((size, 2)))
        monkeypatch.setenv(_call.SETTING, "unchecked")
    assert _call.PTX_CALL in lowered(inertia, np.zeros((10 * size, 2)))


def test_kernels_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(_call, "compiled", lambda *args: "PTX")
    monkeypatch.setenv(_call.SETTING, "off")
    assert _call.PTX_CALL not in lowered(inertia, np.zeros((131, 2)))
    monkeypatch.setenv(_call.SETTING, "of")
    with pytest.warns(RuntimeWarning, match="JAXDYN_GPU_KERNELS=of, expected one of"):
        assert _call.PTX_CALL not in lowered(inertia, np.zeros((132, 2)))


def test_memory_of_all_threads_is_bounded(monkeypatch):
    """The blocks of a kernel that needs more run all states one after the other."""
    depot = ".local .b8 __local_depot0[100000];"
    monkeypatch.setattr(_call, "compiled", lambda *args: depot)
    monkeypatch.setattr(_call, "ROOM", 300 * 2**20)

    def pose(q):
        return jd.forward_kinematics(jd.robots.chain(60), q).p

    text = lowered(jax.vmap(pose), np.zeros((130_000, 60)))
    room = re.search(r"tensor<(\d+)xui8>", text)
    blocks = re.search(r"grid_x = (\d+) : i32", text)
    assert room and blocks and 1 < int(blocks[1]) < 130_000 // 128
    assert 0.9 * _call.ROOM < int(room[1]) <= _call.ROOM


def test_a_trial_with_wrong_values_is_an_error():
    last, rows = map(np.asarray, trial_walk(TRIAL, TRIAL[1]))
    assert not trial_error(last, rows)
    assert "was wrong by 1.0e-04" in trial_error(last, rows + np.float32(1e-4))


def test_what_is_not_known_is_named(monkeypatch):
    model = jd.robots.chain(2)
    monkeypatch.setattr(_call, "compiled", lambda *args: "PTX")

    def constraints(q):
        return jd.joint_constraints(model, q)

    with pytest.warns(RuntimeWarning, match="the operation lu"):
        lowered(constraints, np.zeros(2))
