"""What experiments found: reports with verdicts on published claims."""

from experiments.reports._index import write_index as write_index
from experiments.reports._report import FINDINGS as FINDINGS
from experiments.reports._report import Report as Report
from experiments.reports._report import Verdict as Verdict
from experiments.reports._report import save_report as save_report
