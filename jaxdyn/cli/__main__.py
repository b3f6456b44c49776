"""`python -m jaxdyn.cli` is `jaxdyn`."""

from jaxdyn.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
