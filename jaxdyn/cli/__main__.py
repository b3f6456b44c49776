"""`python -m jaxdyn.cli` is `jaxdyn`."""

from jaxdyn.cli import command

if __name__ == "__main__":
    raise SystemExit(command())
