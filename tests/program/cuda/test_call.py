"""Kernels in the programs of callers, lowered for a GPU that is not there."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.program._cpu import TRIAL, trial_error, trial_walk
from jaxdyn.program.cuda import _call
from jaxdyn.program.cuda._compiling import CompilerError


def lowered(function, *args, platforms=("cuda",)):
    traced = jax.jit(function).trace(*args)
    return traced.lower(lowering_platforms=platforms).as_text()


def inertia(q):
    return jax.vmap(lambda q: jd.mass_matrix(jd.robots.chain(2), q))(q)


def test_a_program_for_a_gpu_is_one_call_of_ptx(monkeypatch):
    seen = []
    monkeypatch.setattr(_call, "compiled", lambda *args: seen.append(args) or "PTX")
    text = lowered(inertia, np.zeros((130, 2)))
    assert text.count(_call.TARGET) == 1
    assert '"PTX"' in text and "grid_x = 2 : i32" in text
    ((source, capability),) = seen
    assert "__global__" in source and capability == 75
    for platforms in (("cpu",), ("cpu", "cuda")):
        assert _call.TARGET not in lowered(
            inertia, np.zeros((3, 2)), platforms=platforms
        )
    exported = jax.export.export(jax.jit(inertia), platforms=("cuda",))
    assert _call.TARGET not in exported(np.zeros((3, 2))).mlir_module()


def test_without_a_compiler_a_program_is_as_written(monkeypatch):
    def missing(*args):
        raise CompilerError("NVRTC is not installed")

    monkeypatch.setattr(_call, "compiled", missing)
    with pytest.warns(RuntimeWarning, match="NVRTC is not installed") as found:
        assert _call.TARGET not in lowered(inertia, np.zeros((4, 2)))
    assert len(found) == 1


def test_a_gpu_on_which_a_trial_fails_gets_programs_as_written(monkeypatch):
    gpu = SimpleNamespace(platform="gpu", compute_capability="8.0")
    monkeypatch.setattr(_call.jax, "local_devices", lambda: [gpu])
    monkeypatch.setattr(_call, "compiled", lambda *args: "PTX")
    _call.distrust.cache_clear()
    with pytest.warns(RuntimeWarning, match="a trial kernel failed with"):
        assert _call.TARGET not in lowered(inertia, np.zeros((5, 2)))
    _call.distrust.cache_clear()


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
