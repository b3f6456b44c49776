"""Operation counts of any function, and the check of an installation."""

from jaxdyn.analysis._installation import Installation as Installation
from jaxdyn.analysis._installation import check_installation as check_installation
from jaxdyn.analysis._operations import OperationCount as OperationCount
from jaxdyn.analysis._operations import count_operations as count_operations
from jaxdyn.analysis._polynomials import OperationPolynomials as OperationPolynomials
from jaxdyn.analysis._polynomials import Polynomial as Polynomial
from jaxdyn.analysis._polynomials import operation_polynomials as operation_polynomials
