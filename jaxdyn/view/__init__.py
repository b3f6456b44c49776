"""Pictures of robots."""

from jaxdyn.view._draw import draw as draw
