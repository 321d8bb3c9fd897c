"""Remedies of errors for unknown names."""

from poolwise.errors import UnknownNameError


def test_each_known_name_is_listed_once():
    assert UnknownNameError.of("order", "x", ["fm", "fcfs", "fm"]).remedy == "known: fcfs, fm"
    assert UnknownNameError.of("order", "x", []).remedy == "known: none"


def test_only_the_closest_of_many_names_are_listed():
    owners = [f"rack{rack}.thin{node}" for rack in range(50) for node in range(50)]
    remedy = UnknownNameError.of("owner", "rack7.thin77", owners).remedy
    assert remedy is not None and "rack7.thin7" in remedy and remedy.endswith(" and 2,490 others")
    assert remedy.count(", ") == 9


def test_name_in_another_case_is_suggested() -> None:
    error = UnknownNameError.of("order", "FCFS", ["fm", "sjf", "fcfs"])
    assert error.remedy == "did you mean 'fcfs'? known: fcfs, fm, sjf"
