"""Headlines cite the section in which their paper discusses the figures that they rest on; counts agree with their verbs."""

import re
from itertools import takewhile

import pytest

from poolwise.errors import InputError
from poolwise.report.chart_parts import series_style
from poolwise_reproductions import catalog
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.headlines import OURS, answer_of, count_answers, read_headlines
from poolwise_reproductions.irop import figures
from poolwise_reproductions.irop.plan import Grid
from poolwise_reproductions.overview import overview, read_comparison
from poolwise_reproductions.report import verdict_counts
from tests.helpers.data import ROOT

PAGES = ROOT / "docs" / "reproductions"
PAPERS = ROOT.parent / "shared" / "papers"
needs_papers = pytest.mark.skipif(not PAPERS.is_dir(), reason="the texts of the papers may not be redistributed")
HEADINGS = {"vinesim": r"(\d\.\d) [A-Z]\w+", "drmaestro": r"Experiment (\d)( -|:) \w+"}


def sections(name):
    """Return number of a figure or table -> section that first cites it, other than in its caption."""
    first_cited, section = {}, ""
    for line in (PAPERS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        heading = re.match(HEADINGS[name], line)
        section = heading[1] if heading else section
        if re.match(r"(Figure \d+:|Fig\. \d+ [A-Z]|Table \d+ [A-Z])", line):
            continue
        for kind, number in re.findall(r"\b(Fig\.|Figs\.|Figure|Figures|Table|Tables) ?(\d+)", line):
            first_cited.setdefault(f"{'Table' if kind.startswith('Table') else 'Figure'} {number}", section)
    return first_cited


@needs_papers
def test_vinesim_headline_cites_the_section_of_its_figures():
    cited = sections("vinesim")
    for headline in read_headlines(catalog.find("headlines", "vinesim.csv")):
        numbers = re.findall(r"Figure \d+", headline.artifact)
        assert {f"section {cited[number]}" for number in numbers} <= {headline.where}, headline


@needs_papers
def test_drmaestro_headline_cites_the_experiments_of_its_figures():
    cited = sections("drmaestro")
    assert (cited["Figure 6"], cited["Figure 8"]) == ("2", "4")
    for headline in read_headlines(catalog.find("headlines", "drmaestro.csv")):
        numbers = re.findall(r"Figure \d+", headline.artifact)
        if "experiment" in headline.where:
            assert set(re.findall(r"\d", headline.where)) <= {cited[number] for number in numbers} or not numbers, headline


@needs_papers
@pytest.mark.parametrize("name", ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim"))
def test_headline_quotes_the_paper_verbatim(name):
    text = words((PAPERS / f"{name}.txt").read_text(encoding="utf-8"))
    for headline in read_headlines(catalog.find("headlines", f"{name}.csv")):
        assert words(headline.quotation) in text, headline.quotation
        assert headline.quotation or headline.where == OURS


@needs_papers
@pytest.mark.parametrize("name", ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim"))
def test_claim_row_quotes_the_paper_verbatim(name):
    """The rows of these papers carry a quotation; `read_claims` requires one of every row of class paper."""
    text = words((PAPERS / f"{name}.txt").read_text(encoding="utf-8"))
    rows = [claim for claim in read_claims(catalog.find("claims", f"{name}.csv")) if claim.kind == "paper"]
    assert rows and not [claim.key for claim in rows if not claim.quotation or words(claim.quotation) not in text]


@pytest.mark.parametrize("name", ("drmaestro", "fair-memory", "vinesim"))
def test_headline_rests_on_rows_of_the_paper_alone(name):
    claims = read_claims(catalog.find("claims", f"{name}.csv"))
    for headline in read_headlines(catalog.find("headlines", f"{name}.csv")):
        kinds = {claim.kind for claim in claims if headline.names(claim.key)}
        assert kinds <= {"paper"} or headline.where == OURS, headline


def words(text):
    """Return a text without the spaces and hyphens that the columns of a page insert."""
    return re.sub(r"[\s-]", "", text)


def test_headline_of_the_paper_without_a_quotation_is_refused(tmp_path):
    path = tmp_path / "headlines.csv"
    path.write_text("claim,where,quotation,artifact,condition,metric,why\nFM leads,abstract,,Figure 7,*,*,\n")
    with pytest.raises(InputError) as error:
        read_headlines(path)
    assert (error.value.line, error.value.field) == (2, "quotation")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        ({"holds": 1, "fails": 1, "undetermined": 1}, "1 holds, 1 fails, 1 undetermined, 0 not measured, 0 shown"),
        ({"holds": 2, "shown": 3}, "2 hold, 0 fail, 0 undetermined, 0 not measured, 3 shown"),
    ],
)
def test_verdict_counts_agree_with_their_verbs(count, words):
    assert verdict_counts(count) == words


class OneValue(dict):
    """Runs that all measured the same."""

    def __missing__(self, case):
        return dict.fromkeys(("theta", "completion", "energy", "objective"), 1.0)


def test_irop_figures_give_each_method_a_marker_of_its_own():
    for figure in takewhile(lambda figure: figure.name != "reduction", figures.at_size(Grid(seeds=2), OneValue())):
        lines, points = series_style(list(figure.series), legend=True)
        for style, channel in ((lines, "strokeDash"), (points, "shape")):
            drawn = zip(figure.series, *(style[name]["scale"]["range"] for name in ("color", channel)), strict=True)
            styles = [str(each[1:]) for each in drawn]
            assert len(set(styles)) == len(styles), figure.name


HOLDS, FAILS, OPEN = "holds", "fails", "undetermined"


@pytest.mark.parametrize(
    ("readings", "rule", "answer"),
    [
        ([[HOLDS, HOLDS], [HOLDS, FAILS]], "all", "reproduced"),
        ([[HOLDS, FAILS], [HOLDS, HOLDS]], "all", "under another reading"),
        ([[HOLDS, FAILS], [FAILS, FAILS]], "all", "partly"),
        ([[FAILS, OPEN], [FAILS, FAILS]], "all", "not"),
        ([[OPEN], [FAILS]], "all", "undetermined"),
        ([["shown"], ["not measured"]], "all", "cannot be tested"),
        ([[HOLDS, HOLDS, FAILS]], "most", "reproduced"),
        ([[HOLDS, FAILS]], "most", "partly"),
        ([[OPEN, OPEN, FAILS]], "most", "undetermined"),
        ([[HOLDS, FAILS, FAILS]], "any", "reproduced"),
        ([[OPEN, FAILS]], "any", "undetermined"),
    ],
)
def test_claim_is_answered_by_the_verdicts_of_its_rows(readings, rule, answer):
    assert answer_of(readings, rule) == answer


def test_claims_that_cannot_be_tested_do_not_count_as_tested():
    assert count_answers(["reproduced", "partly", "not", "undetermined", "cannot be tested"]) == "1 of 4"


def test_headline_with_an_unknown_rule_is_refused(tmp_path):
    path = tmp_path / "headlines.csv"
    path.write_text("claim,where,quotation,artifact,condition,metric,why,rule\nFM leads,abstract,it leads,Figure 7,*,*,,half\n")
    with pytest.raises(InputError) as error:
        read_headlines(path)
    assert (error.value.line, error.value.field) == (2, "rule")


def test_overview_counts_independent_claims_as_the_pages_answer_them():
    rows = {name: read_comparison(PAGES / f"{name}.csv") for name in ("irop", "vinesim")}
    text = overview(rows, {})
    for name in rows:
        claims = [headline for headline in read_headlines(catalog.find("headlines", f"{name}.csv")) if headline.where != OURS]
        line = next(line for line in text.splitlines() if re.match(rf"\| {name} \| {len(claims)} \|", line))
        _, reproduced, tested, *others, explained = map(int, re.findall(r"\d+", line))
        assert reproduced + sum(others) == len(claims) == tested + others[-1]
        assert explained <= tested - reproduced
