"""From measured data to a physical model with error bars."""
