"""Files and tables to models, and back."""

from jaxdyn.io._dh import DHLink as DHLink
from jaxdyn.io._dh import from_dh as from_dh
from jaxdyn.io._dict import from_dict as from_dict
from jaxdyn.io._dict import to_dict as to_dict
from jaxdyn.io._pose import rotation_about as rotation_about
from jaxdyn.io.mjcf import from_mujoco as from_mujoco
from jaxdyn.io.mjcf import load_mjcf as load_mjcf
from jaxdyn.io.mjcf import to_mujoco as to_mujoco
from jaxdyn.io.urdf import load_urdf as load_urdf
from jaxdyn.io.urdf import to_urdf as to_urdf
