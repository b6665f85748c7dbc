"""The comparison report, in Markdown and HTML: our numbers with the paper's beside each."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import html
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jaxrules
from paper_reproductions import claims
from paper_reproductions.framework import (
    Archive,
    Exhibit,
    Failure,
    Paper,
    Results,
    Settings,
    Weighed,
    duration,
    missing_cells,
    origins,
)
from paper_reproductions.sections import Canvas, ComparisonTable, Kind, Quoted, Section, Value


def write(
    paper: Paper,
    exhibits: Sequence[Exhibit],
    results: Results,
    folder: Path,
    failures: Sequence[Failure] = (),
) -> tuple[Path, Path]:
    """Draw the exhibits and write report.md and report.html; returns their paths."""
    canvas = Canvas(folder)
    chapters = [(exhibit, exhibit.show(results, canvas)) for exhibit in exhibits]
    folder.mkdir(parents=True, exist_ok=True)
    blocks = list(_blocks(paper, chapters, results, failures))
    markdown, page = folder / "report.md", folder / "report.html"
    markdown.write_text("\n\n".join(_markdown(block, folder) for block in blocks) + "\n", "utf-8")
    page.write_text(_page(paper, "\n".join(_html(block, folder) for block in blocks)), "utf-8")
    return markdown, page


# A report is a sequence of blocks; each knows how to be written in both formats.


@dataclass(frozen=True)
class _Heading:
    text: str
    level: int


@dataclass(frozen=True)
class _Points:
    items: Sequence[str]


@dataclass(frozen=True)
class _Claims:
    """Claims with their verdicts, and by name the headings of the exhibits behind them."""

    weighed: Sequence[Weighed]
    headings: Mapping[str, str]


_Block = _Heading | _Points | _Claims | ComparisonTable | Path | str
CLAIMS = "What the paper claims, and what we found"
"""The first heading of a report."""
CLAIMS_BEGIN, CLAIMS_END = "<!-- claims of {} -->", "<!-- end of claims -->"
"""Between them docs/reproductions.md has what `claims_table` gives."""


def _blocks(
    paper: Paper,
    chapters: Sequence[tuple[Exhibit, Section]],
    results: Results,
    failures: Sequence[Failure],
) -> Iterator[_Block]:
    yield _Heading(f"{paper.title}: our numbers beside the paper's", 1)
    yield f"{paper.reference}. " + _run_in_words(results)
    shown = [exhibit for exhibit, _ in chapters]
    yield " ".join(
        text
        for text in (_origins_in_words(shown, results), _times_in_words(shown, results))
        if text
    )
    yield "In every cell: ours, then in brackets the paper's number and the difference (ours minus the paper's)."
    if paper.protocol:
        yield from _paragraphs(paper.protocol)
    if results.settings.quick:
        yield (
            f"THIS IS A QUICK RUN, for a first look only: {paper.quick or 'a version in small.'} "
            + _left_out([exhibit for exhibit, _ in chapters], results.settings)
        )
    if paper.claims:
        yield _Heading(CLAIMS, 2)
        yield from _paragraphs(claims.RULE)
        headings = {exhibit.name: _heading_of(exhibit) for exhibit, _ in chapters}
        yield _Claims([claim.weighed(results) for claim in paper.claims], headings)
    if paper.summary is not None:
        yield _Heading("Summary", 2)
        yield from _paragraphs(paper.summary(results))
    yield _Heading("Agreement", 2)
    yield from _agreement(chapters)
    listed: dict[object, str] = {}
    for exhibit, section in chapters:
        yield _Heading(_heading_of(exhibit), 2)
        yield from _chapter(exhibit, section, results, listed)
    if failures:
        yield _Heading("Cells that failed in this run", 2)
        yield _Points([str(failure) for failure in failures])


def _heading_of(exhibit: Exhibit) -> str:
    return f"{exhibit.name}: {exhibit.title}"


def _chapter(
    exhibit: Exhibit, section: Section, results: Results, listed: dict[object, str]
) -> Iterator[_Block]:
    """Text, tables and figures; `listed` says where a number's difference stands already."""
    missing = list(missing_cells(exhibit, results))
    if missing:
        total = sum(
            len(list(experiment.cells(results.settings))) for experiment in exhibit.experiments
        )
        shown = "; ".join(f"{experiment.name}: {cell}" for experiment, cell in missing[:3])
        yield f"Not finished: {len(missing)} of {total} cells ({shown}{'; ...' if len(missing) > 3 else ''})."
    if isinstance(results.store, Archive):
        names = [e.name for e in exhibit.experiments if e.name in results.store.stale]
        if names:
            yield (
                "By an earlier version of jaxrules: "
                + "; ".join(f"{name} ({results.store.stale[name]})" for name in names)
                + "."
            )
    yield from _paragraphs(section.text)
    for table in section.tables:
        yield table
        yield from _paragraphs(table.note)
        departures, above = [], Counter[str]()
        for row, column, value in table.compared():
            if value.departs:
                number = (value.number, value.ours) if value.number else object()
                if (place := listed.setdefault(number, exhibit.name)) == exhibit.name:
                    departures.append(_departure(row, column, value, results.settings))
                else:
                    above[place] += 1
        if departures:
            yield "Differences beyond the tolerance" + (
                " (a quick run gives no reasons):" if results.settings.quick else ":"
            )
            yield _Points(departures)
        if above:
            places = ", ".join(f"{name} ({count})" for name, count in above.items())
            yield f"Differences that are listed above: {places}."
    yield from section.figures


def _left_out(exhibits: Sequence[Exhibit], settings: Settings) -> str:
    """How much of the full protocol a quick run asks for."""
    experiments = {e.name: e for exhibit in exhibits for e in exhibit.experiments}.values()
    whole = Settings(folds=settings.folds, seed=settings.seed, slow=settings.slow)
    counts = {
        e.name: (len(list(e.cells(settings))), len(list(e.cells(whole)))) for e in experiments
    }
    listed = ", ".join(f"{name} {few} of {all_}" for name, (few, all_) in counts.items())
    return f"Cells asked for, of those of the full protocol: {listed}."


def _departure(row: str, column: str, value: Value, settings: Settings) -> str:
    bound = f"tolerance {value.tolerance:g}" + (
        f", counted {value.only} the paper only" if value.only else ""
    )
    reason = "" if settings.quick else f" {value.reason or 'Unexplained.'}"
    return f"{row}, {column}: {value} ({bound}).{reason}"


@dataclass
class _Counted:
    """What became of the paper's numbers; those not compared by kind and reason."""

    printed: int = 0
    compared: int = 0
    one_sided: int = 0
    agreeing: int = 0
    unexplained: int = 0
    missing: int = 0
    quoted: int = 0
    apart: Counter[tuple[Kind, str]] = field(default_factory=Counter)

    def add(self, quoted: Quoted) -> None:
        if quoted.apart:
            self.printed += quoted.numbers
            self.apart[quoted.kind, quoted.apart] += quoted.numbers
        else:
            self.quoted += quoted.numbers

    def of_kind(self, kind: Kind) -> int:
        return sum(number for (k, _), number in self.apart.items() if k == kind)

    def columns(self) -> dict[str, int]:
        return {
            "printed by the paper": self.printed,
            "compared": self.compared,
            "of these on one side": self.one_sided,
            "within tolerance": self.agreeing,
            "beyond, with a reason": self.compared - self.agreeing - self.unexplained,
            "beyond, unexplained": self.unexplained,
            "not compared: times": self.of_kind("time"),
            "settings": self.of_kind("setting"),
            "results": self.of_kind("result"),
            "not run": self.missing,
            "quoted": self.quoted,
        }

    def plus(self, other: _Counted) -> _Counted:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))
        return _Counted(*(mine + theirs for mine, theirs in pairs))


def _agreement(chapters: Sequence[tuple[Exhibit, Section]]) -> Iterator[_Block]:
    """What became of every number that the paper prints, exhibit by exhibit, and
    why some are not compared.
    """
    counted = _count(chapters)
    if not counted:
        yield "The paper prints no number beside these exhibits."
        return
    rows = {**counted, "all": _total(counted)}
    cells: dict[tuple[str, str], Value | Quoted | str] = {
        (name, column): str(number)
        for name, row in rows.items()
        for column, number in row.columns().items()
    }
    yield ComparisonTable(
        "The paper's numbers", tuple(rows), tuple(rows["all"].columns()), cells, corner="exhibit"
    )
    yield (
        "A number that stands in several tables counts once. On one side: only a difference to the "
        "worse counts. Results that are not compared could be. "
        "Quoted: numbers of the paper for what is not run here."
    )
    if reasons := [
        f"{name}: {n} {_MANY[kind]} ({why})"
        for name, c in counted.items()
        for (kind, why), n in c.apart.items()
    ]:
        yield "Not compared:"
        yield _Points(reasons)


_MANY: dict[Kind, str] = {"time": "times", "setting": "settings", "result": "results"}


def _total(counted: Mapping[str, _Counted]) -> _Counted:
    return functools.reduce(_Counted.plus, counted.values(), _Counted())


def total_line(paper: Paper, results: Results, canvas: Canvas) -> str:
    """The paper's line of the table in docs/reproductions.md: the last one of "Agreement"."""
    chapters = [(exhibit, exhibit.show(results, canvas)) for exhibit in paper.exhibits]
    numbers = _total(_count(chapters)).columns().values()
    return _markdown_row(
        [f"[{paper.name}](reproductions/{paper.name}/report.md)", *map(str, numbers)]
    )


def _count(chapters: Sequence[tuple[Exhibit, Section]]) -> dict[str, _Counted]:
    """By exhibit, those that the paper has numbers for."""
    numbers: dict[object, list[tuple[str, Value]]] = {}
    counted: dict[str, _Counted] = {}
    for exhibit, section in chapters:
        for table in section.tables:
            for value in table.printed():
                numbers.setdefault(value.number or object(), []).append((exhibit.name, value))
            for quoted in table.quoted():
                counted.setdefault(exhibit.name, _Counted()).add(quoted)
    for places in numbers.values():
        values = [value for _, value in places]
        compared = [
            value for value in values if value.ours is not None and value.tolerance is not None
        ]
        first = next((name for name, value in places if value in compared), places[0][0])
        here = counted.setdefault(first, _Counted())
        here.printed += 1
        departing = [value for value in compared if value.departs]
        if compared:
            here.compared += 1
            here.one_sided += all(value.only for value in compared)
            here.agreeing += not departing
            here.unexplained += any(not value.explained for value in departing)
        elif all(value.ours is None for value in values):
            here.missing += 1
        else:
            said = next((value for value in values if value.apart), None)
            here.apart[
                (said.kind, said.apart) if said else ("result", "no tolerance is given")
            ] += 1
    return {
        exhibit.name: counted[exhibit.name] for exhibit, _ in chapters if exhibit.name in counted
    }


def claims_table(paper: Paper, results: Results) -> str:
    """The paper's part of docs/reproductions.md: its claims, each with its verdict and how many
    comparisons came out in which way.
    """
    report = f"reproductions/{paper.name}/report.md#{_anchor(CLAIMS)}"
    lines = [
        f"### [{paper.title}]({report})",
        "",
        "| the paper says | in | verdict | shown | undecided | against |",
        "|---|---|---|---|---|---|",
    ]
    for claim in paper.claims:
        found = claim.weighed(results)
        counts = claims.counts(found.comparisons)
        numbers = (str(counts[kind]) for kind in ("shown", "undecided", "against"))
        lines.append(
            _markdown_row([claim.sentence, claim.section, f"**{found.verdict}**", *numbers])
        )
    return "\n".join(lines)


def _run_in_words(results: Results) -> str:
    about = (
        results.store.about if isinstance(results.store, Archive) else made_with(results.settings)
    )
    return " ".join(f"{name}: {text}." for name, text in about.items())


def _origins_in_words(exhibits: Sequence[Exhibit], results: Results) -> str:
    """Which versions of jaxrules made the cells, on which days, and whether today's
    code would measure them so.
    """
    versions: dict[tuple[str, bool], tuple[int, str, str]] = {}
    for (made, present), count in origins(exhibits, results).items():
        before, first, last = versions.get((made.version, present), (0, made.date, made.date))
        versions[made.version, present] = (
            before + count,
            min(first, made.date),
            max(last, made.date),
        )
    listed = []
    for (maker, present), (count, first, last) in versions.items():
        days = first if first == last else f"{first} to {last}"
        listed.append(f"{count} by jaxrules {maker or 'of a version not recorded'}, {days}")
        if not present:
            listed[-1] += " (measured in another way than this version of the reproduction would)"
    adopted = (
        " Adopted: made before cells recorded how; the version was entered by hand, and that they "
        "would be measured in "
        "the same way now is taken on trust."
    )
    if not listed:
        return "No cell is finished."
    return f"Cells: {'; '.join(listed)}." + (
        adopted if any("adopted" in maker for maker, _ in versions) else ""
    )


def _times_in_words(exhibits: Sequence[Exhibit], results: Results) -> str:
    """How long the cells took, by experiment, and of how many that is known."""
    times = {
        e.name: results.store.seconds(e, results.settings)
        for exhibit in exhibits
        for e in exhibit.experiments
    }
    known, finished = sum(cells for _, cells in times.values()), origins(exhibits, results).total()
    if not known:
        return "How long they took was not kept." if finished else ""
    listed = ", ".join(
        f"{name} {duration(seconds)}" for name, (seconds, cells) in times.items() if cells
    )
    return (
        f"Computed in {duration(sum(seconds for seconds, _ in times.values()))}, by the clock, one "
        "cell after the "
        f"other: the sum over {known} of {finished} cells ({listed})."
    )


def made_with(settings: Settings) -> dict[str, str]:
    """The profile of a run and the versions that it uses."""
    folds = "all of its folds" if settings.folds is None else f"the first {settings.folds} folds"
    packages = [f"jaxrules {jaxrules.__version__}"]
    for package in ("jax", "numpy", "scikit-learn", "lightgbm"):
        try:
            packages.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    python = f"Python {platform.python_version()} on {platform.machine()} ({platform.system()})"
    return {
        "Profile": f"{settings.profile}, {folds}, seed {settings.seed}",
        "Versions": ", ".join([python, *packages]),
        "Date": datetime.date.today().isoformat(),
    }


def _paragraphs(text: str) -> Iterator[str]:
    yield from (
        " ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()
    )


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _anchor(heading: str) -> str:
    """What a heading is called in a link, by the site's and by GitHub's rule."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def _markdown(block: _Block, folder: Path) -> str:
    if isinstance(block, _Heading):
        return "#" * block.level + f" {block.text}"
    if isinstance(block, _Claims):
        return "\n".join(
            f'{number}. "{one.claim.sentence}" ({one.claim.section}): **{one.verdict}**.<br>\n'
            f"   {one}<br>\n   The numbers: {_link(one, block, '[{}](#{})')}."
            for number, one in enumerate(block.weighed, start=1)
        )
    if isinstance(block, _Points):
        return "\n".join(f"- {item}" for item in block.items)
    if isinstance(block, Path):
        return f"![{block.stem}]({_relative(block, folder)})"
    if isinstance(block, str):
        return block
    heading, *rows = (_markdown_row(line) for line in block.lines())
    return "\n".join(
        [f"**{block.title}**", "", heading, "|" + "---|" * (len(block.columns) + 1), *rows]
    )


def _link(weighed: Weighed, block: _Claims, form: str) -> str:
    """To the exhibit behind a claim; its name alone if this report leaves it out."""
    behind = weighed.claim.behind
    if behind not in block.headings:
        return behind
    return form.format(behind, _anchor(block.headings[behind]))


def _markdown_row(line: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"


def _html(block: _Block, folder: Path) -> str:
    if isinstance(block, _Heading):
        name = _anchor(block.text)
        return f"<h{block.level} id={name!r}>{html.escape(block.text)}</h{block.level}>"
    if isinstance(block, _Claims):
        items = (
            f'<li>"{html.escape(one.claim.sentence)}" ({html.escape(one.claim.section)}): '
            f"<b>{one.verdict}</b>.<br>{html.escape(str(one))}<br>The numbers: "
            + _link(one, block, '<a href="#{1}">{0}</a>')
            + ".</li>"
            for one in block.weighed
        )
        return f"<ol>{''.join(items)}</ol>"
    if isinstance(block, _Points):
        return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in block.items) + "</ul>"
    if isinstance(block, Path):
        return (
            f'<img src="{html.escape(_relative(block, folder))}" alt="{html.escape(block.stem)}">'
        )
    if isinstance(block, str):
        return f"<p>{_bold(html.escape(block))}</p>"
    departing = {(row, column) for row, column, value in block.compared() if value.departs}
    heading, *rows = block.lines()
    lines = ["<tr>" + "".join(f"<th>{html.escape(text)}</th>" for text in heading) + "</tr>"]
    for label, *texts in rows:
        cells = [
            f"<td{' class=departs' if (label, column) in departing else ''}>{_bold(html.escape(text))}</td>"
            for column, text in zip(block.columns, texts, strict=True)
        ]
        lines.append(f"<tr><th>{html.escape(label)}</th>{''.join(cells)}</tr>")
    return f"<table><caption>{html.escape(block.title)}</caption>{''.join(lines)}</table>"


def _bold(text: str) -> str:
    """Markdown's bold in HTML."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { border: 1px solid #ccc; padding: .25rem .6rem; text-align: left; }
td.departs { background: #fdecd8; }
img { max-width: 100%; }
"""


def _page(paper: Paper, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta '
        f'charset="utf-8"><title>{html.escape(paper.title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )
