"""Take a model away: as a Python module without dependencies, as SQL, as PMML, as a dataframe.

    python examples/take_the_model_away.py [--output FOLDER]

Fits a small model on the breast cancer data, writes it down in every form, and asks the Python module (in
a Python that sees no installed package) and a database for their predictions of the test rows.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import jaxrules as jr

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tumour
print(json.dumps([tumour.predict(row) for row in json.load(sys.stdin)]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder for the files; a temporary one without it")
    given = parser.parse_args().output
    with tempfile.TemporaryDirectory() as temporary:
        folder = given or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)

        data = jr.datasets.load("breast_cancer")
        train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
        model = jr.lire.fit(train.X, train.y, global_penalty=0.02, local_penalty=0.04, seed=0).model
        expected = jr.predict(model, test.X).tolist()
        print(jr.to_dataframe(model))

        files = {"tumour.py": jr.to_python(model), "tumour.sql": jr.to_sql(model), "tumour.pmml": jr.to_pmml(model)}
        for name, text in files.items():
            (folder / name).write_text(text)
            print(f"{folder / name}: {len(text)} characters")

        rows = [dict(zip(test.X.names, row, strict=True)) for row in test.X.numeric_matrix().tolist()]
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(folder)]  # -S: without installed packages
        answer = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True, check=True).stdout
        print(f"\nthe Python module gives {equal(json.loads(answer), expected)} the same label")

        quoted = [f'"{name}"' for name in test.X.names]
        with sqlite3.connect(":memory:") as database:
            database.execute(f"CREATE TABLE tumours ({', '.join(f'{name} REAL' for name in quoted)})")
            places = ", ".join("?" * len(quoted))
            database.executemany(f"INSERT INTO tumours VALUES ({places})", [list(row.values()) for row in rows])
            found = database.execute(f"SELECT {jr.to_sql(model)} FROM tumours ORDER BY rowid").fetchall()
        print(f"the database gives {equal([label for (label,) in found], expected)} the same label")
        print(f"\nSELECT {jr.to_sql(model)} AS says FROM tumours")


def equal(found: list[object], expected: list[object]) -> str:
    return f"{sum(a == b for a, b in zip(found, expected, strict=True))} of {len(expected)} rows"


if __name__ == "__main__":
    main()
