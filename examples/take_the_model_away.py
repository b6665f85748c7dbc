# %% [markdown]
# # How do I export a model?
#
# Export it as a Python module without dependencies, as SQL, PMML, LaTeX or a dataframe, or save it
# as a file for jaxrules itself. All exports use the form of the model that `jr.predict` evaluates.

# %%
import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
model = jr.boosting.fit(train.X, train.y, max_rules=3, max_cut_points=5).model
expected = jr.predict(model, test.X).tolist()
rows = [dict(zip(test.X.names, row, strict=True)) for row in test.X.numeric_matrix().tolist()]
folder = Path(tempfile.mkdtemp())
print(model)


def equal(found: list) -> str:
    same = sum(a == b for a, b in zip(found, expected, strict=True))
    return f"{same} of {len(expected)} rows have the same label"


# %% [markdown]
# ## A file
#
# Plain JSON; loading executes nothing.

# %%
jr.save(model, folder / "tumour.json")
print(equal(jr.predict(jr.load(folder / "tumour.json"), test.X).tolist()))

# %% [markdown]
# ## A Python module
#
# The module needs nothing but Python. Here it runs without any installed package (`-S`).

# %%
(folder / "tumour.py").write_text(jr.to_python(model), "utf-8")
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tumour
print(json.dumps([tumour.predict(row) for row in json.load(sys.stdin)]))
"""
command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(folder)]
answer = subprocess.run(
    command, input=json.dumps(rows), capture_output=True, text=True, check=True
).stdout
print(equal(json.loads(answer)))

# %% [markdown]
# ## SQL
#
# The export is one ANSI expression for a SELECT list. `what="score"` and `what="probability"`
# return numbers.

# %%
quoted = [f'"{name}"' for name in test.X.names]
with contextlib.closing(sqlite3.connect(":memory:")) as database:
    database.execute(f"CREATE TABLE tumours ({', '.join(f'{name} REAL' for name in quoted)})")
    places = ", ".join("?" * len(quoted))
    database.executemany(
        f"INSERT INTO tumours VALUES ({places})", [list(row.values()) for row in rows]
    )
    found = database.execute(f"SELECT {jr.to_sql(model)} FROM tumours ORDER BY rowid").fetchall()
print(equal([label for (label,) in found]))
print(f"SELECT {jr.to_sql(model)} AS says FROM tumours")

# %% [markdown]
# ## PMML, and tables for a paper

# %%
(folder / "tumour.pmml").write_text(jr.to_pmml(model), "utf-8")
print(f"{(folder / 'tumour.pmml').stat().st_size} characters of PMML 4.4")
print(jr.to_latex(model))
try:
    print(jr.to_dataframe(model))
except ImportError as error:  # pandas, polars or pyarrow
    print(error)
