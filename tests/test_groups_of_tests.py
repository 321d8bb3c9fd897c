"""Tests that share an expensive fixture run in one process: pytest-xdist 3.8 marks their names, which pytest 9.2 ignores."""

import pytest


@pytest.mark.xdist_group("marked")
def test_group_is_part_of_the_name_in_a_worker(request: pytest.FixtureRequest) -> None:
    in_worker = hasattr(request.config, "workerinput")
    assert request.node.nodeid.endswith("@marked") == in_worker
