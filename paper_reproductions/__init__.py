"""Papers regenerated: every table and figure is run again and printed beside the paper's own
numbers.

    python -m paper_reproductions lire --all                # everything, resumable
    python -m paper_reproductions lire --table 4 --folds 3  # one table, the first three folds
    python -m paper_reproductions lire --quick              # all of it in small, minutes

Finished cells are kept as CSV under ``paper_reproductions/results/<paper>/<full or quick>/cells/``
and are computed again only when the `Experiment.version` of their protocol is raised (each carries
it, and the version of jaxrules); the report (``report.md``, ``report.html`` and
figures) lies beside them. ``--ship`` keeps results in the repository, under ``<paper>/archive/``,
and writes their report to ``docs/reproductions/``. ``audit`` measures random cells of the archives
again.

How to add a paper
------------------
Make a folder ``paper_reproductions/<name>/`` whose ``__init__.py`` defines ``PAPER``, a `Paper`.

1. **published.py** holds the paper's own numbers, and only those, with the table
    or section they are from.
   Nothing else is ever typed in by hand.
2. **Experiments.** An
    `Experiment` is a set of cells that are measured in the same way. A `Cell` is the
   smallest piece of work worth keeping: one method on one fold of one data set, say.
   ``cells(settings)`` lists them, ``measure(cell, settings)`` computes one and returns what was
   measured, a dictionary (or a list of dictionaries, one CSV row each: the points of a path, for
   example). Tables and figures may share an experiment; its cells are computed once. What several
   cells need (a data set, a forest) is best kept by ``functools.lru_cache`` around a function of
   the cell's values; list such cells next to each other. ``data(cell)`` names the data sets that a
   cell loads, so that a run can say at once which are missing. Raise ``version`` with each change of
   ``measure`` (of what it calls in this folder, of a program of others that it runs, of the versions
   that `benchmarks.peers` pins for it) after which a cell would measure something else; a change of
   names, layout or speed is none.
3. **Exhibits.** An `Exhibit` is one table or figure. ``show(results,
    canvas)`` turns rows into a `Section`:
   text, `ComparisonTable` s (each `Value` holds our number, the paper's, and what difference counts
   as agreement, or why they are not compared), and figures drawn on the `Canvas`, of what was
   measured alone. It must cope with cells that are not there yet.
4. **Settings.** ``settings.quick`` asks for a version in small,
    ``settings.folds`` for the first so many
   folds (of the full protocol, so that three folds and ten folds share cells).

A paper in full::

    ACCURACY = {"iris": 0.95}                              # published.py: Table 1 of the paper

    def measure(cell, settings):
        model, test = fit_somehow(cell["data"], cell["fold"])
        return {"accuracy": jr.accuracy(model, test.X, test.y)}

    accuracy = Experiment(
        "accuracy", cells=lambda settings: [Cell.of(data="iris", fold=fold) for fold in
        settings.first_folds(10)], measure=measure,
    )

    def table_1(results, canvas):
        ours = results[accuracy].where(data="iris").mean("accuracy") value =
        Value(ours, published.ACCURACY["iris"], tolerance=0.01) return
        Section(tables=(ComparisonTable("Accuracy", ("iris",), ("ours",),
        {("iris", "ours"): value}),))

    exhibits = (Exhibit("table", 1, "Accuracy", (accuracy,), table_1),)
    PAPER = Paper("toy", "A paper about flowers", "Doe (2020)", exhibits)
"""

from paper_reproductions.framework import Cell, Exhibit, Experiment, Paper, Results, Rows, Settings
from paper_reproductions.sections import Canvas, ComparisonTable, Quoted, Section, Value

__all__ = [
    "Canvas",
    "Cell",
    "ComparisonTable",
    "Exhibit",
    "Experiment",
    "Paper",
    "Quoted",
    "Results",
    "Rows",
    "Section",
    "Settings",
    "Value",
]
