import pytest
from jaxtyping import config as jaxtyping_config


@pytest.fixture
def without_type_checker():
    jaxtyping_config.update("jaxtyping_disable", True)
    yield
    jaxtyping_config.update("jaxtyping_disable", False)
