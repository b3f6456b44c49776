import subprocess
import sys


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )


def test_importing_jaxdyn_prints_nothing_and_changes_no_configuration():
    result = run(
        "import jax; before = dict(jax.config.values)\n"
        "import jaxdyn; after = jax.config.values\n"
        "assert {key: after[key] for key in before} == before"
    )
    assert result.stdout == result.stderr == ""


def test_importing_jaxdyn_loads_no_plots_or_servers():
    run(
        "import sys, jaxdyn\n"
        "slow = {'matplotlib', 'mujoco', 'trimesh', 'viser', 'optax'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)"
    )


def test_importing_jaxdyn_starts_no_backend():
    run(
        "import jaxdyn\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge.backends_are_initialized()"
    )
