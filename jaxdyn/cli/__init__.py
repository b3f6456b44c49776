"""The command line: arguments to calls."""

from jaxdyn.cli._main import command as command
from jaxdyn.cli._main import main as main
