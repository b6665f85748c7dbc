"""A report: one HTML file with the rules of a model, figures on some rows, and why each row is
predicted as it is.

`report` computes all figures in Python and puts them as JSON into a page (page.html, page.css and
the scripts), which draws tables and charts and evaluates rows. The page makes no network requests:
its security policy forbids them.
"""

from jaxrules.users.reporting.page import Report, report

__all__ = ["Report", "report"]
