"""URDF, in and out."""

from jaxdyn.io.urdf._read import load_urdf as load_urdf
from jaxdyn.io.urdf._write import to_urdf as to_urdf
