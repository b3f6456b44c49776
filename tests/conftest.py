import zlib

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def rng(request):
    """Seeded by the test's own name: independent of order, selection and workers."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
