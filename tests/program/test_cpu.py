import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.program import _cpu
from tests.kernels import kernel


@pytest.fixture
def untried():
    """As in a process that has not yet compiled anything, before and after."""
    _cpu.fast_path.cache_clear()
    yield
    _cpu.fast_path.cache_clear()


def test_the_fast_path_works_with_this_release():
    assert _cpu.fast_path() == ""


def test_the_trial_sees_nothing_of_what_the_caller_traces_or_sets(untried):
    with jax.transfer_guard("disallow"), jax.numpy_dtype_promotion("strict"):
        traced = jax.make_jaxpr(lambda x: x + len(_cpu.fast_path()))(1.0)
    assert _cpu.fast_path() == ""
    assert "scan" not in str(traced)


def broken_tag():
    return dict(TAG={"inlineable": "false"})


def broken_values():
    def one_call(*given):
        return [x + 1 for x in one(*given)]

    one = _cpu.one_call
    return dict(one_call=one_call)


def broken_names():
    def one_call(*given):
        raise AttributeError("no such name")

    return dict(one_call=one_call)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (broken_tag, "did not compile a trial program into one function"),
        (broken_values, "a trial program was wrong by 1.0e"),
        (broken_names, "a trial program failed with AttributeError: no such name"),
    ],
)
def test_a_release_where_it_fails_compiles_as_written_and_warns_once(
    broken, reason, untried, monkeypatch
):
    for name, value in broken().items():
        monkeypatch.setattr(_cpu, name, value)
    double = kernel(lambda x: 2 * x)
    with pytest.warns(RuntimeWarning, match=reason) as seen:
        text = jax.jit(double).lower(jnp.ones(3)).as_text()
        np.testing.assert_array_equal(jax.jit(double)(jnp.ones(4)), 2 * np.ones(4))
    assert "xla_cpu_small_call" not in text
    assert len(seen) == 1
    assert "jaxdyn info --check" in str(seen[0].message)
