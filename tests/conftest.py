import ctypes
import gc
import os
import resource
import sys
import zlib
from importlib.metadata import version
from pathlib import Path

# Compile quickly rather than well: half the time, the same operations. Tests that ask
# how users' programs behave override this with `compiler_options` (see as_users_do).
FLAGS = [os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=0"]
if tuple(map(int, version("jaxlib").split(".")[:3])) <= (0, 11, 0):
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")  # later ones end at its name
os.environ["XLA_FLAGS"] = " ".join(FLAGS)

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # jaxlib < 0.11 logs what it loads

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jaxtyping import config as jaxtyping_config  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Programs are kept for the next run, which then compiles only new ones. A cold cache is
# what a fresh machine has, and JAXDYN_TEST_CACHE=off.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
if os.environ.get("JAXDYN_TEST_CACHE") != "off":
    jax.config.update("jax_compilation_cache_dir", str(CACHE / "jaxdyn-tests"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

# tracing makes many objects and few cycles: to look for them seldom saves a seventh
gc.freeze()
gc.set_threshold(200_000, 20, 100)


def memory():
    """The memory that this process holds, in bytes; at its peak where not on Linux."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return int(pages) * resource.getpagesize()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test with the mark `first` only one case is in every run."""
    seen = set()
    for item in items:
        test = item.nodeid.split("[")[0]
        if item.get_closest_marker("first") and test in seen:
            item.add_marker("slow")
        seen.add(test)


@pytest.fixture(autouse=True)
def small_memory(last={"memory": memory()}):  # noqa: B006, B008
    """Programs of earlier tests are kept until they take two gigabytes."""
    yield
    if memory() > last["memory"] + 2e9:
        jax.clear_caches()
        gc.collect()
        if sys.platform == "linux":  # what was freed goes back to the system
            getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
        last["memory"] = memory()


@pytest.fixture
def rng(request):
    """Seeded by the test's own name: independent of order, selection and workers."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def without_type_checker():
    """What users see where nothing checks annotations."""
    jaxtyping_config.update("jaxtyping_disable", True)
    yield
    jaxtyping_config.update("jaxtyping_disable", False)
