"""Results as one self-contained HTML file, with the same numbers as JSON and CSV beside it.

``render(results)`` takes the very dictionary that ``--format json`` prints and returns the page;
``write(results, path)`` writes ``path``, and beside it the ``.json`` and ``.csv`` of the same name.
Three kinds of results are known, told apart by their keys:

========================  ==================  =========================================
what                      has the key         model that documents every key
========================  ==================  =========================================
one evaluated model       ``size``            :class:`lrqr.report.results.Evaluation`
``compare``, a run of     ``methods`` or      :class:`lrqr.report.results.Comparison`
``reproduce``             ``panels``
``diagnose``              ``n_source``        :class:`lrqr.report.results.Diagnosed`
========================  ==================  =========================================

Every key beyond the contract of ``--format json`` may be left out: its section or figure is then left
out too. Nothing in the page needs JavaScript, a network or another file.
"""

from __future__ import annotations

from lrqr.report.render import check_free, render, write
from lrqr.report.results import Comparison, Diagnosed, Evaluation, parse

__all__ = ["Comparison", "Diagnosed", "Evaluation", "check_free", "parse", "render", "write"]
