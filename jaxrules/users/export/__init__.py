"""Export of models: as Python, SQL, PMML, or a dataframe."""

from jaxrules.users.export.frame import to_dataframe
from jaxrules.users.export.pmml import to_pmml
from jaxrules.users.export.python import to_python
from jaxrules.users.export.sql import to_sql

__all__ = ["to_dataframe", "to_pmml", "to_python", "to_sql"]
