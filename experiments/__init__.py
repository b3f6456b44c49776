"""Experiments on published claims: `python -m experiments` runs them."""
