"""Every robot of the packages is written as MJCF and read back with the same leaves."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io.mjcf._held import DROPPABLE
from tests.collections.files import mjcf_files, short, urdf_files

FILES = mjcf_files() + urdf_files()[0]
COUPLED = tuple(f"equality/{kind}" for kind in ("joint", "tendon", "flex"))
LEAVES = ("R", "p", "axis", "mass", "com", "inertia")


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
@pytest.mark.parametrize("path", FILES, ids=short)
def test_it_is_written_as_mjcf_and_read_back(path):
    skip = COUPLED if path.suffix == ".xml" else ("joint/mimic",)
    try:
        model = jd.load(path, skip=skip)
    except ValueError as error:
        pytest.skip(f"not read: {str(error)[:80]}")
    try:
        text = jd.to_mjcf(model, drop=DROPPABLE)
    except ValueError as error:
        refused = ("no inertia resists", "which MuJoCo refuses")
        assert any(reason in str(error) for reason in refused), error
        pytest.skip(f"not written: {str(error)[:80]}")
    again = jd.load_mjcf(text)
    order = [again.names.index(name) for name in model.names]
    for key in LEAVES:
        leaf = getattr(model, key)
        found = getattr(again, key)[np.array(order)]
        atol = 1e-12 * max(1, np.abs(leaf).max())
        np.testing.assert_allclose(found, leaf, rtol=0, atol=atol, err_msg=key)
    assert again.nv == model.nv
