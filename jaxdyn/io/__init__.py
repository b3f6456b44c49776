"""Files and tables to models, and back; settings, reports and folders of results."""

from jaxdyn.io._config import NOT_NEGATIVE as NOT_NEGATIVE
from jaxdyn.io._config import POSITIVE as POSITIVE
from jaxdyn.io._config import Check as Check
from jaxdyn.io._config import config_dict as config_dict
from jaxdyn.io._config import read_config as read_config
from jaxdyn.io._dh import DHLink as DHLink
from jaxdyn.io._dh import from_dh as from_dh
from jaxdyn.io._dict import from_dict as from_dict
from jaxdyn.io._dict import to_dict as to_dict
from jaxdyn.io._index import write_index as write_index
from jaxdyn.io._pose import rotation_about as rotation_about
from jaxdyn.io._report import FINDINGS as FINDINGS
from jaxdyn.io._report import Figure as Figure
from jaxdyn.io._report import Report as Report
from jaxdyn.io._report import Table as Table
from jaxdyn.io._report import Verdict as Verdict
from jaxdyn.io._results import load_trajectory as load_trajectory
from jaxdyn.io._results import new_results as new_results
from jaxdyn.io._results import save_report as save_report
from jaxdyn.io._results import save_summary as save_summary
from jaxdyn.io._results import save_trajectory as save_trajectory
from jaxdyn.io.mjcf import from_mujoco as from_mujoco
from jaxdyn.io.mjcf import load_mjcf as load_mjcf
from jaxdyn.io.mjcf import to_mujoco as to_mujoco
from jaxdyn.io.urdf import load_urdf as load_urdf
from jaxdyn.io.urdf import to_urdf as to_urdf
