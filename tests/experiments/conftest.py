import importlib
from pathlib import Path

import pytest

from jaxdyn.io import read_config

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture(scope="module")
def config(request):
    """The settings of the experiment that the module tests."""
    name = request.module.__name__.rpartition("test_")[2]
    experiment = importlib.import_module(f"experiments.{name}")
    return read_config(CONFIGS / f"{name}.toml", experiment.Config)
