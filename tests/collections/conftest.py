"""Robots of public packages, which only the environment of `make test-robots` has."""

import os

collect_ignore_glob = [] if "JAXDYN_COLLECTIONS" in os.environ else ["test_*.py"]
