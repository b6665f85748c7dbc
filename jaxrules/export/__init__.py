"""Export of models: as Python, SQL, PMML, or a dataframe."""

from jaxrules.export.frame import to_dataframe
from jaxrules.export.pmml import to_pmml
from jaxrules.export.python import to_python
from jaxrules.export.sql import to_sql

__all__ = ["to_dataframe", "to_pmml", "to_python", "to_sql"]
