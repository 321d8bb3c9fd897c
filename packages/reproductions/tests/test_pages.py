"""Pages of the reproductions: one head, contents by the paper's figures, printed numbers on our figures, recorded pages."""

import csv
import math
import re
from html import unescape
from pathlib import Path

import pytest

from poolwise.presentation.figure import Bars, Curves, Figure, Panels, VegaChart
from poolwise.report.page import render
from poolwise_reproductions import catalog
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.contents import anchor, items_of
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.figure_scripts import expected
from poolwise_reproductions.headlines import Headline, read_headlines
from poolwise_reproductions.page_head import failures_of, page_head, recorded_time, result_sentence
from poolwise_reproductions.papers import item_number, read_paper
from poolwise_reproductions.printed import POSITION, PRINTED, RATIO, read_printed, with_printed
from poolwise_reproductions.published import SEPARATOR, Claim, ClaimRow
from poolwise_reproductions.recorded import recorded_reproduction, recorded_rows, renew_page
from poolwise_reproductions.report import numbered, reproduction_answer
from poolwise_reproductions.reproduction import about

PAGES = Path(__file__).parents[3] / "docs" / "reproductions"
NAMES = ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim")


def text(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


@pytest.fixture(scope="module", params=NAMES)
def page(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param, (PAGES / f"{request.param}.html").read_text(encoding="utf-8")


def test_head_of_every_page_is_computed_from_its_rows(page: tuple[str, str]) -> None:
    name, html = page
    rows = recorded_rows(PAGES / f"{name}.csv")
    headlines = read_headlines(catalog.find("headlines", f"{name}.csv"))
    head = text(html[html.index('<section class="answer"') : html.index("<nav")])
    paper, failures = read_paper(name), failures_of(headlines, rows)
    assert len(failures) == 3
    shown = [paper.paragraph, result_sentence(headlines, rows), *(failure.sentence for failure in failures)]
    shown += [f"poolwise reproduce {name}", recorded_time(name), "claims "]
    assert [each for each in shown if " ".join(each.split()) not in head] == []
    assert [head.index(label) for label in ("Paper", "Rows", "Failure 1", "Command", "Time", "Hashes")] == sorted(
        head.index(label) for label in ("Paper", "Rows", "Failure 1", "Command", "Time", "Hashes")
    )


def test_contents_list_every_figure_and_every_link_has_a_target(page: tuple[str, str]) -> None:
    name, html = page
    contents = html[html.index("<h2>Figures and tables of the paper</h2>") :]
    contents = contents[: contents.index("</section>")]
    listed = {text(cell).partition(":")[0] for cell in re.findall(r'<th scope="row">.*?</th>', contents)}
    rows = recorded_rows(PAGES / f"{name}.csv")
    assert {item_number(row.claim.artifact) for row in rows if row.claim.kind == "paper"} <= listed
    assert {item.number for item in read_paper(name).contents} <= listed
    targets = re.findall(r'id="([^"]+)"', html)
    assert {anchor(item_number(row.claim.artifact)) for row in rows if row.claim.kind == "paper"} <= set(targets)
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(targets)
    assert len(set(targets)) == len(targets)


@pytest.mark.parametrize("name", NAMES)
def test_each_item_of_a_paper_has_a_figure_or_rows_or_a_reason(name: str) -> None:
    done = recorded_reproduction(name, PAGES)
    figures = done.findings.figures
    for item in read_paper(name).contents:
        drawn = [f for f in figures if about(item.number, f.artifact) or item_number(f.artifact) == item.number]
        judged = [row for row in done.rows if item_number(row.claim.artifact) == item.number]
        assert bool(drawn or judged or item.ours) or item.reason, item.number
        assert not (drawn and item.reason), item.number
        assert set(item.ours) <= {figure.name for figure in figures}
    numbers = [item.number for item in items_of(read_paper(name), done.rows)]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", NAMES)
def test_printed_numbers_are_claims_and_are_on_the_recorded_page(name: str) -> None:
    claims = {SEPARATOR.join(claim.key): claim for claim in read_claims(catalog.find("claims", f"{name}.csv"))}
    points = read_printed(name)
    assert all(point.claim in claims for point in points)
    assert all(point.number or not math.isnan(claims[point.claim].published) for point in points)
    done = recorded_reproduction(name, PAGES)
    drawn = with_printed(name, done.findings.figures, done.rows)
    marks = [row for figure in drawn if isinstance(figure, VegaChart) for row in marks_of(figure)]
    assert {point.claim for point in points} == {mark["claim"] for mark in marks if "claim" in mark}


def marks_of(figure: VegaChart) -> list[dict]:
    units = figure.spec.get("concat", [figure.spec])
    layers = [layer for unit in units for layer in unit["layer"]]
    return [row for layer in layers for row in layer.get("data", {}).get("values", []) if "printed" in row]


def test_captions_and_titles_name_one_figure(page: tuple[str, str]) -> None:
    name, html = page
    for match in re.finditer(r"<figure data-chart.*?<h\d>(.*?)</h\d>.*?<figcaption>(.*?)</figcaption>", html, re.DOTALL):
        title, caption = unescape(match[1]), f" {unescape(match[2])}"
        assert not re.search(r"\b(?:Figures|Tables) [\dIVX]", title + caption), (name, title)
        own = re.match(r"(?:Figure|Table) (?:\d+|[IVX]+)", title)
        named = set(re.findall(r"\b(?:Figure|Table) (?:\d+|[IVX]+)", title + caption))
        assert own is None or named == {own[0]}, (name, title, named)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_series_of_a_figure_look_alike(name: str) -> None:
    """Color, dash and shape together differ between series, in the marks of a chart and in its legend."""
    done = recorded_reproduction(name, PAGES)
    for figure in with_printed(name, done.findings.figures, done.rows):
        units = figure.spec.get("concat", [figure.spec]) if isinstance(figure, VegaChart) else []
        for unit in units:
            channels = [
                (key, encoding)
                for layer in unit["layer"]
                for key, encoding in layer.get("encoding", {}).items()
                if key in ("color", "strokeDash", "shape")
                and encoding.get("field") == "series"
                and "color" in layer["encoding"]
            ]
            for shown in (channels, [(key, encoding) for key, encoding in channels if encoding.get("legend")]):
                looks: dict[str, set[str]] = {}
                for key, encoding in shown:
                    scale = encoding["scale"]
                    for series, look in zip(scale["domain"], scale["range"], strict=True):
                        looks.setdefault(series, set()).add(f"{key} {look}")
                looks.pop("", None)
                assert len(set(map(frozenset, looks.values()))) == len(looks), (figure.name, looks)


def test_renewed_page_equals_the_recorded_one(tmp_path: Path) -> None:
    name = "irop"
    for file in (f"{name}.html", f"{name}.csv", f"{name}.txt"):
        (tmp_path / file).write_bytes((PAGES / file).read_bytes())
    renew_page(name, tmp_path)
    assert (tmp_path / f"{name}.html").read_text() == (PAGES / f"{name}.html").read_text()


def test_recorded_rows_keep_their_verdicts() -> None:
    path = PAGES / "nvme-composition.csv"
    with path.open(newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    rows = recorded_rows(path)
    assert [row.verdict for row in rows] == [row["verdict"] for row in cells]
    assert [row.cause for row in rows] == [row["cause"] for row in cells]
    assert [row.verdict_under("as run") for row in rows] == [row["as_run_verdict"] or row["verdict"] for row in cells]


def failing(metric: str, reason: str, artifact: str = "Figure 1") -> ClaimRow:
    return ClaimRow(Claim(artifact, "here", metric, "s", 1.0, "exact", 0.5, reason=reason), Measured(3.0))


def test_failures_of_the_abstract_come_first_and_each_cause_once() -> None:
    rows = [failing("a", "the trace differs. More."), failing("b", "the trace differs. More."), failing("c", "nodes differ")]
    headlines = [
        Headline("both", "section 2", "Figure 1", "here", "a|b", quotation="q"),
        Headline("one", "abstract", "Figure 1", "here", "c", quotation="q"),
        Headline("again", "section 3", "Figure 1", "here", "a", quotation="q"),
    ]
    assert [each.sentence for each in failures_of(headlines, rows)] == [
        "one (abstract): its only row fails; nodes differ (unknown).",
        "both (section 2): 2 of 2 rows fail; the trace differs (unknown).",
    ]
    assert result_sentence(headlines, rows) == "0 of 3 tested claims are reproduced."
    labels = [row[0] for row in page_head("irop", headlines, rows, {"sources_sha256": "ab" * 32}).table().rows]
    assert labels == ["Paper", "Rows", "Failure 1", "Failure 2", "Command", "Time", "Hashes"]


def test_time_counts_figures_of_one_command_once() -> None:
    scripts = expected("irop").values()
    by_command = {script.command: max(s.seconds for s in scripts if s.command == script.command) for script in scripts}
    longest, total = max(by_command.values()), sum(by_command.values())
    assert recorded_time("irop").startswith(f"{longest / 60:.0f} minutes to {total / 3600:.1f} hours of CPU time")
    whole = next(script.seconds for script in expected("drmaestro").values() if "--figure" not in script.command)
    assert recorded_time("drmaestro") == f"about {whole / 60:.0f} minutes of CPU time on one core"


def test_printed_values_and_ratios_are_drawn() -> None:
    figure_11 = Curves("figure-11", "Figure 11", x=[0.5, 1000.0], series={"HIGH": [1500.0, 25.0], "FLAT": [1500.0, 480.0]})
    rows = [ClaimRow(claim, None) for claim in read_claims(catalog.find("claims", "vinesim.csv"))]
    (drawn,) = with_printed("vinesim", [figure_11], rows)
    assert isinstance(drawn, VegaChart)
    values = {(mark["printed"], mark["series"], mark["x"]): mark["y"] for mark in marks_of(drawn)}
    assert values[PRINTED, "HIGH", 1000.0] == 25.0
    assert values[RATIO, "FLAT", 1000.0] == 20 * 25.0
    assert PRINTED in drawn.caption and RATIO in drawn.caption


def test_numbers_of_the_text_are_placed_on_the_curves_of_drmaestro() -> None:
    """Firmament's 8 GPUs are at its largest value, 2000 s between two samples, and the ratio of round times at the median."""
    name = "Firmament"
    used = Curves("gpus_4x128", "Figure 4", x=[0.0, 10.0, 20.0], series={name: [0.0, 8.0, 4.0]})
    late = Curves("gpus_4x512", "Figure 5", x=[1990.0, 2010.0], series={name: [8.0, 16.0]})
    shares = {f"{name}, total": [20.0, 50.0, 100.0], "DRMaestro, total": [10.0, 40.0, 100.0]}
    rounds = Curves("rounds_4x128", "Figure 6", x=[1.0, 2.0, 3.0], series=shares)
    rows = [ClaimRow(claim, None) for claim in read_claims(catalog.find("claims", "drmaestro.csv"))]
    drawn = with_printed("drmaestro", [used, late, rounds], rows)
    marks = [mark for figure in drawn if isinstance(figure, VegaChart) for mark in marks_of(figure)]
    assert [(mark["x"], mark["y"]) for mark in marks] == [(10.0, 8.0), (2000.0, 12.0), (4.0, 50.0)]
    assert [mark["series"] for mark in marks] == [name, name, "DRMaestro, total"]
    assert [mark["description"].split(":")[0] for mark in marks] == [
        f"{name}, {PRINTED} 8",
        f"{name}, {POSITION} 2,000",
        f"DRMaestro, total, {RATIO} 2",
    ]


def test_published_bars_are_named_and_other_figures_are_unchanged() -> None:
    bars = Bars("bars", "Bars", groups=["x"], series={"a": [1.0]}, published={"a": [2.0]})
    plain = Bars("plain", "Plain", groups=["x"], series={"a": [1.0]})
    silent = Bars("silent", "Silent", groups=["x"], series={"a": [1.0]}, artifact="Figure 5")
    drawn, same, stated = with_printed("irop", [bars, plain, silent], [])
    assert isinstance(drawn, VegaChart) and [mark["y"] for mark in marks_of(drawn)] == [2.0]
    assert same is plain
    assert stated.caption == "The text prints no number that has a place in this figure."


@pytest.mark.parametrize(
    ("figure", "title"),
    [
        (Bars("a", "GPUs in use", artifact="Figure 5"), "Figure 5: GPUs in use"),
        (Bars("a", "Energy", artifact="Figure 5b"), "Figure 5: energy"),
        (Bars("a", "Figure 5 (default)", artifact="Figure 5"), "Figure 5 (default)"),
        (Bars("a", "Leads", artifact="Sensitivity"), "Leads"),
    ],
)
def test_titles_name_the_figure_of_the_paper(figure: Figure, title: str) -> None:
    assert numbered(figure).title == title


def test_charts_from_pages_render_with_their_panels() -> None:
    panels = Panels("p", "P", panels=[Bars("a", "A", groups=["x"], series={"a": [1.0]}, published={"a": [2.0]})], columns=1)
    (drawn,) = with_printed("irop", [panels], [])
    done = recorded_reproduction("irop", PAGES)
    assert isinstance(drawn, VegaChart) and drawn.columns == 1
    html = render(reproduction_answer(done, [], ("irop.csv", "irop/figures.csv")))
    assert 'href="irop.csv"' in html
