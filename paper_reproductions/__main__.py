"""``python -m paper_reproductions <paper> [--table N | --figure N | --all] [--quick] [--folds K]``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import jax

import paper_reproductions
from paper_reproductions import audit, data_sources, jobs, report
from paper_reproductions.framework import (
    RESULTS,
    Exhibit,
    Experiment,
    Paper,
    Results,
    Settings,
    Store,
    Task,
    run,
    unfinished,
)
from paper_reproductions.papers import archive_of, available_papers, load_paper
from paper_reproductions.sections import Canvas


def chosen_exhibits(paper: Paper, tables: Sequence[int], figures: Sequence[int]) -> list[Exhibit]:
    """The exhibits asked for, in the paper's order; all of them if none is named.

    Raises:
        ValueError: for a number that the paper does not have, or that is not reproduced.
    """
    wanted = {("table", number) for number in tables} | {("figure", number) for number in figures}
    there = {(exhibit.kind, exhibit.number): exhibit for exhibit in paper.exhibits}
    for kind, number in sorted(wanted - there.keys()):
        names = ", ".join(exhibit.name for exhibit in paper.exhibits)
        raise ValueError(f"{paper.name} has no {kind} {number} here; it has {names}")
    return [exhibit for key, exhibit in there.items() if key in wanted or not wanted]


_WHOLE_REPORTS = {"shipped": (), "ship": ("quick", "folds", "seed", "slow", "adopt", "results")}
"""Options that write a report of everything, and the options that they go with."""


def main(arguments: Sequence[str] | None = None, *, keep_compiled: bool = False) -> int:
    """Run the command line; the exit status is 1 if a cell failed, 130 after Ctrl-C, 2
    if nothing could be done.

    With `keep_compiled`, which sets JAX for the whole process, kernels are kept beside the results.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["audit"]:
        return audit.main(words[1:])
    parser = _parser()
    options = parser.parse_args(words)
    if options.all and (options.table or options.figure):
        parser.error("--all goes without --table and --figure")
    given = [name for name, value in vars(options).items() if value != parser.get_default(name)]
    for mode, goes_with in _WHOLE_REPORTS.items():
        other = [f"--{name}" for name in given if name not in ("paper", "all", mode, *goes_with)]
        if mode in given and other:
            parser.error(f"--{mode} writes the whole report; it goes without {', '.join(other)}")
    if keep_compiled:
        _keep_compiled_kernels(options.results)
    try:
        paper = load_paper(options.paper)
        exhibits = chosen_exhibits(paper, options.table, options.figure)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    settings = Settings(options.quick, options.folds, options.seed, options.slow)
    if options.shipped:
        return ship(paper, settings)
    try:
        with jobs.alone(options.results / paper.name / settings.profile):
            if options.adopt:
                adopt(paper, settings, options.results, options.adopt)
            if options.ship:
                return ship(paper, settings, options.results)
            return reproduce(
                paper,
                exhibits,
                settings,
                options.results,
                fresh=options.fresh,
                report_only=options.report,
                only=options.only,
                processes=options.jobs,
            )
    except jobs.Busy as error:
        print(error, file=sys.stderr)
        return 2


def reproduce(
    paper: Paper,
    exhibits: Sequence[Exhibit],
    settings: Settings,
    results: Path,
    *,
    fresh: bool = False,
    report_only: bool = False,
    only: Sequence[str] = (),
    processes: int = 1,
) -> int:
    """Compute what is missing, write the report, and return the exit status."""
    folder = results / paper.name / settings.profile
    store = Store(folder)
    experiments = [experiment for exhibit in exhibits for experiment in exhibit.experiments]
    try:
        tasks = (
            [] if report_only else unfinished(experiments, settings, store, only=only, fresh=fresh)
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if problem := without_protocol(tasks, store) if not fresh else "":
        print(problem, file=sys.stderr)
        return 2
    if problem := data_sources.missing(tasks):
        print(problem, file=sys.stderr)
        return 2
    elsewhere = jobs.in_processes(paper.name, processes) if processes > 1 else None
    if kept := _finished(experiments, settings, store):
        print(f"{kept} cells are finished already", flush=True)
    outcome = run(tasks, settings, store, measure=elsewhere)
    markdown, page = report.write(
        paper, exhibits, Results(store, settings), folder, outcome.failures
    )
    print(f"report: {markdown}\n        {page}")
    if outcome.interrupted:
        return 130
    return 1 if outcome.failures else 0


def _finished(experiments: Sequence[Experiment], settings: Settings, store: Store) -> int:
    """How many of the cells are finished."""
    different = {experiment.name: experiment for experiment in experiments}.values()
    return sum(
        store.has(experiment, cell)
        for experiment in different
        for cell in experiment.cells(settings)
    )


def without_protocol(tasks: Sequence[Task], store: Store) -> str:
    """What to say about cells that were kept before cells carried their
    protocol, if there are any.
    """
    found = [
        made
        for task in tasks
        if (made := store.made(task.experiment, task.cell)) and not made.protocol
    ]
    if not found:
        return ""
    return (
        f"{len(found)} cells in {store.folder} do not say how they were measured. --adopt VERSION "
        "keeps them as "
        "measured like today by that version of jaxrules, which is for you to know; --fresh "
        "computes all cells again"
    )


def adopt(paper: Paper, settings: Settings, results: Path, library: str) -> None:
    """Take cells without a protocol as today's, made by this version of
    jaxrules; prints how many.
    """
    store = Store(results / paper.name / settings.profile)
    experiments = {e.name: e for exhibit in paper.exhibits for e in exhibit.experiments}.values()
    taken = sum(store.adopt(e, cell, library) for e in experiments for cell in e.cells(settings))
    print(f"{taken} cells adopted as made by jaxrules {library}")


def ship(paper: Paper, settings: Settings, results: Path | None = None) -> int:
    """Make the archive of a paper from results, if they are given, and from the
    archive the report in docs/.
    """
    root = Path(__file__).parent
    archive = archive_of(paper.name)
    if results is not None:
        measured = Results(Store(results / paper.name / settings.profile), settings)
        experiments = {e.name: e for exhibit in paper.exhibits for e in exhibit.experiments}
        archive.pack(measured, experiments.values(), report.made_with(settings))
    folder = root.parent / "docs" / "reproductions" / paper.name
    markdown, page = report.write(paper, paper.exhibits, Results(archive, archive.settings), folder)
    page.unlink()
    print(f"report: {markdown}")
    overview = root.parent / "docs" / "reproductions.md"
    line = report.total_line(paper, Results(archive, archive.settings), Canvas(folder))
    start = re.escape(line.split(" | ")[0])
    text = re.sub(f"^{start}.*$", line, overview.read_text("utf-8"), flags=re.MULTILINE)
    if paper.claims:
        claims = report.claims_table(paper, Results(archive, archive.settings))
        inside = re.escape(report.CLAIMS_BEGIN.format(paper.name)), re.escape(report.CLAIMS_END)
        text = re.sub(
            f"({inside[0]}\n).*?(\n{inside[1]})",
            lambda found: f"{found[1]}\n{claims}\n{found[2]}",
            text,
            flags=re.DOTALL,
        )
    overview.write_text(text, "utf-8")
    return 0


def _keep_compiled_kernels(results: Path) -> None:
    """A run that goes on where the last one stopped should not compile everything
    again, nor should its workers.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = str(results.absolute() / "compiled")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = (
            folder  # for workers, which read it when they import JAX
        )
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paper_reproductions", description=paper_reproductions.__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paper", help=f"one of {', '.join(available_papers())}")
    parser.add_argument(
        "--table", type=int, action="append", default=[], metavar="N", help="only this table"
    )
    parser.add_argument(
        "--figure", type=int, action="append", default=[], metavar="N", help="only this figure"
    )
    parser.add_argument("--all", action="store_true", help="every table and figure (the default)")
    parser.add_argument(
        "--quick", action="store_true", help="a version in small, minutes instead of hours"
    )
    parser.add_argument("--folds", type=_positive, metavar="K", help="only the first K folds")
    parser.add_argument(
        "--seed", type=int, default=0, help="of everything that draws at random (default 0)"
    )
    parser.add_argument(
        "--slow",
        action="store_true",
        help="also what is left out otherwise because it takes very long",
    )
    parser.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="compute in N processes (default 1)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="METHOD",
        help="compute only this method; of programs of others their environment, such as imodels",
    )  # fmt: skip
    parser.add_argument(
        "--adopt",
        metavar="VERSION",
        help="keep cells that carry no protocol as made by this version of jaxrules",
    )
    parser.add_argument("--fresh", action="store_true", help="compute finished cells again")
    parser.add_argument(
        "--report",
        action="store_true",
        help="compute nothing, write the report of what is finished",
    )
    parser.add_argument(
        "--ship",
        action="store_true",
        help="keep the results in the repository, the report in docs/",
    )
    parser.add_argument(
        "--shipped",
        action="store_true",
        help="write the report in docs/ from what the repository has",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


if __name__ == "__main__":
    sys.exit(main(keep_compiled=True))
