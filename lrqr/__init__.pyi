from lrqr.conformal import ConformalClassifier, ConformalRegressor
from lrqr.methods.lrqr import LRQR
from lrqr.model import load
from lrqr.workflows.compare import compare

__version__: str
__all__ = ["LRQR", "ConformalClassifier", "ConformalRegressor", "__version__", "compare", "load"]
