"""jaxdyn beside its peers, on the same robots, in one run: `python -m benchmarks`."""
