"""The answer model: the decision card, the bill and the page of a small answer."""

import pytest

from poolwise.presentation.answer import Answer, Certainty, DecisionCard
from poolwise.presentation.cost import Cost, CostLine
from poolwise.presentation.table import Table, amount_with_unit
from poolwise.report.page import render

COST = Cost((CostLine("node", "", 4, 6, (900.0, 1000.0, 1200.0)),), has_today=True)


def test_decision_card_has_a_column_for_a_reference() -> None:
    card = DecisionCard(
        [["Size", "8 GiB", "4 GiB"]], [["Cost", "4,000 $"]], Certainty("unknown", remark="one seed"), "today", "A note."
    )
    assert card.table().columns == ["", "recommended", "today"]
    assert card.table().rows == [["Size", "8 GiB", "4 GiB"], ["Certainty", "one seed", ""], ["Cost", "4,000 $", ""]]
    alone = DecisionCard([["Size", "8 GiB", "4 GiB"]], [])
    assert alone.table().rows == [["Size", "8 GiB"]], "without a certainty and a reference"


def test_answer_with_a_cost_has_its_bill_and_the_effect_of_each_price() -> None:
    answer = Answer("A question", "Buy 4 nodes.", decision=DecisionCard([["Nodes", "4"]], []), cost=COST)
    assert answer.found and [table.title for table in answer.all_tables] == ["Cost breakdown"]
    assert [figure.name for figure, _ in answer.charts] == ["tornado"]


def test_page_of_an_answer_without_a_decision() -> None:
    table = Table("Runs", ["run", "verdict"], [["a", "better"], ["b", "worse"]], marks={0: "true", 1: "false"})
    answer = Answer(
        "A question", "Nothing meets the target.", "infeasible", sections={"Why": ["Too slow."], "": []}, tables=[table]
    )
    assert not answer.found
    page = render(answer)
    assert page.count("<h1>") == 1 and '<tr class="true">' in page and "Too slow." in page
    assert page.count('id="section-') == 1, "empty sections are omitted"


def test_certainty_is_stated_from_its_data() -> None:
    better = Certainty("better", 0.95, 1200, "jobs", (0.1, 0.2), better_than="SJF and all others")
    assert better.text == "better than SJF and all others: the 95 % intervals over 1,200 jobs exclude zero"
    alike = Certainty("alike", 0.9, 3, "seeds", (-0.1, 0.2), better_than="FCFS", alike="SJF or WFP3")
    assert alike.text == "better than FCFS, not distinguishable from SJF or WFP3 (90 % over 3 seeds)"
    meets = Certainty("meets", 0.95, 0, "jobs", (0.0, 1.0), remark="whether less is enough is undecided")
    assert meets.text == (
        "the 95 % interval of each margin over the jobs clears the target; whether less is enough is undecided"
    )
    assert Certainty("interval", 0.95, 8, "workloads", (0.5, 2.0)).text == "95 % interval over 8 workloads: 0.5 to 2"
    assert Certainty("probability", samples=200, over="runs", probability=0.9).text == "probability 90 % over 200 runs"
    assert Certainty("bound", interval=(2.5, 3.0), remark="gap 16.7 %").text == "2.5; gap 16.7 %"
    assert Certainty("unknown", samples=1, over="seeds", remark="unknown (one seed)").text == "unknown (one seed)"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(47.5123, "fraction", ("4,751", "%")), (475.123, "fraction", ("47,512", "%")), (1234567.8, "MiB", ("1,234,568", "MiB"))],
)
def test_long_numbers_of_a_summary_have_no_exponent(value, unit, text):
    assert amount_with_unit(value, unit) == text
