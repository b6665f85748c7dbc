"""Taking a model away: as Python, SQL, PMML, or a dataframe."""

from jaxrules.export.python import to_python
from jaxrules.export.sql import to_sql

__all__ = ["to_python", "to_sql"]
