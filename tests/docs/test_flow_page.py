"""The graph drawn in the documentation is the one that the code builds."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "flow-placement.md"


def test_the_drawn_graph_is_the_one_that_the_code_builds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    for title, text in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', page, re.MULTILINE | re.DOTALL):
        Path(title).write_text(text, encoding="utf-8")
    example = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    exec(compile(example, PAGE.name, "exec"), {})
    *arcs, nodes = capsys.readouterr().out.splitlines()
    drawn = re.search(r"^```mermaid\nflowchart LR\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert drawn is not None
    assert drawn[1].splitlines() == arcs
    assert nodes == "[0 1 0]"
