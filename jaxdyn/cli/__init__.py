"""The command line: arguments to calls."""

from jaxdyn.cli._interrupt import Ended as Ended
from jaxdyn.cli._interrupt import ended_by_signals as ended_by_signals
from jaxdyn.cli._main import command as command
from jaxdyn.cli._main import exit_code as exit_code
from jaxdyn.cli._main import main as main
