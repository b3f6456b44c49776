import itertools
import os
import zlib

# Compile quickly rather than well: half the time, the same operations. Tests that ask
# how users' programs behave override this with `compiler_options` (see as_users_do).
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        "--xla_cpu_use_fusion_emitters=false",
    ]
)

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(autouse=True)
def small_memory(request, tests_run=itertools.count(1)):  # noqa: B008
    """Programs of earlier tests are dropped from time to time."""
    yield
    if next(tests_run) % 20 == 0:
        jax.clear_caches()


@pytest.fixture
def rng(request):
    """Seeded by the test's own name: independent of order, selection and workers."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
