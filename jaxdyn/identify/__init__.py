"""From measured data to a physical model with error bars."""

from jaxdyn.identify._filters import filtered as filtered
