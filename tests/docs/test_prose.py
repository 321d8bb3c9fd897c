"""Texts of the project avoid the habits that `tests.helpers.prose` lists."""

import pytest

from tests.helpers import prose


@pytest.mark.parametrize(
    "root",
    [
        "README.md",
        "docs",
        "src",
        "packages",
        "deploy",
        "tests",
        "benchmarks",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ],
)
def test_texts_avoid_listed_phrases(root: str) -> None:
    findings = [str(finding) for path in prose.texts(root) for finding in prose.findings(path)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("phrase", prose.PHRASES, ids=lambda phrase: phrase.pattern.pattern)
def test_each_phrase_has_a_reason(phrase: prose.Phrase) -> None:
    assert len(phrase.reason) > 10


@pytest.mark.parametrize(
    "text",
    [
        '"""What a pass does."""',
        '"""Whether it fits."""',
        "# the run goes on",
        'say("jobs at work")',
        '"""Rows\n    a job, so\n    many."""',
        "def test_nobody_is_served(): ...",
    ],
)
def test_bad_habits_are_found(text: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(text)
    assert list(prose.findings(file))


@pytest.mark.parametrize(
    "text", ['"""Return whether a job fits."""', "# there is no room", '"""The run is no longer waiting."""', "told = [beside]"]
)
def test_plain_sentences_pass(text: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(text)
    assert not list(prose.findings(file))
