"""The answer model: the decision card, the bill and the page of a small answer."""

from poolwise.presentation.answer import Answer, DecisionCard
from poolwise.presentation.cost import Cost, CostLine
from poolwise.presentation.table import Table
from poolwise.report.page import render

COST = Cost((CostLine("node", "", 4, 6, (900.0, 1000.0, 1200.0)),), has_today=True)


def test_decision_card_has_a_column_for_a_reference() -> None:
    card = DecisionCard([["Size", "8 GiB", "4 GiB"]], [["Cost", "4,000 $"]], "one seed", "today", "A note.")
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
