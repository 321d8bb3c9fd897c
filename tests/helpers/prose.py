"""Phrases that Poolwise does not use, and where they occur. `python -m tests.helpers.prose [PATH ...]` lists them."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = (".py", ".md", ".yaml", ".toml", ".json", ".sh")


@dataclass(frozen=True)
class Phrase:
    """A phrase to avoid, the reason, and what to write instead."""

    pattern: re.Pattern[str]
    reason: str


def _phrase(pattern: str, reason: str) -> Phrase:
    return Phrase(re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), reason)  # a phrase may be broken over lines


PHRASES = (
    _phrase(
        r"(?<![-._`\['\"])\bbeside\b(?! = )(?![-_`'\"\]])",
        "means 'next to'; write 'besides', 'in addition to', 'with', 'alongside' or 'compared with'",
    ),
    _phrase(r"\b(is|are|was|were|be|been|being) (said|told)\b", "name the actor: 'the page states', 'the log reports'"),
    _phrase(r"\b(said|told) (of|so|that|by|besides)\b", "name the actor: 'the policy declares', 'the scheduler reports'"),
    _phrase(r"\b(nobody|somebody|whoever|whomever|everybody)\b", "name the actor: 'no job', 'another process', 'the user'"),
    _phrase(r"\b(go|goes|went|going) on\b", "write 'continue', 'resume' or 'proceed'"),
    _phrase(r"\bat work\b", "write 'running', 'active' or 'in use'"),
    _phrase(
        r"(?<!\bthere)(?<!\bThere)\s(is|are) no (?!longer|more|less|fewer|worse|better|later|earlier|larger|smaller|higher)",
        "write 'is not a', 'has no', or 'X is invalid: ...'",
    ),
    _phrase(
        r"\b(row|line|file|object|task|number|column|process) (a|an) (job|file|run|claim|node|pod|kind|key|row)\b",
        "write 'one row per job'",
    ),
    _phrase(r"\bin the place of\b", "write 'instead of' or 'in place of'"),
    _phrase(r"\bstands? (in|on|at|there|here|beside|as|still)\b", "write 'is', 'is stored in', 'appears in' or 'stalls'"),
    _phrase(r"\b(at hand|by the way)\b", "filler: delete it or name what is meant"),
    _phrase(r"\bas far as\b", "write 'up to', 'where' or 'if'"),
    _phrase(r"\bso many\b", "write 'N', 'this many' or 'the given number of'"),
    _phrase(r"\bleft (away|alone)\b", "write 'skipped', 'ignored' or 'unchanged'"),
    _phrase(r"\bwho (waits?|runs?|asks?|wants?|writes?|needs?)\b", "name the actor: 'waiting jobs', 'users that need'"),
    _phrase(r"\b(that is there|that are there|cannot be had|can be had)\b", "write 'existing', 'real' or 'unavailable'"),
    _phrase(r"\btakes? notice\b", "write 'record' or 'apply'"),
    _phrase(r"\banew\b", "write 'again' or 'from scratch'"),
)
"""Keep the list short: each entry is a habit of the project's early texts, and is never right where these texts had it."""

OPENINGS = re.compile(r"^(What|Whether|Who|Whoever|Which|How|Where|When|That which)\b(?!.*\?)")
"""A docstring states what the thing is or does; 'What ...' and 'Whether ...' are riddles. 'Return whether ...' is fine."""


@dataclass(frozen=True)
class Finding:
    """A phrase at a place."""

    path: Path
    line: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: '{self.text}': {self.reason}"


def texts_of_python(path: Path) -> Iterator[tuple[int, str]]:
    """Comments, strings and names of tests of a file, each with its first line."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            yield token.start[0], token.string
        elif token.type == tokenize.NAME and token.string.startswith("test_"):
            yield token.start[0], token.string.replace("_", " ")


def findings(path: Path) -> Iterator[Finding]:
    """Phrases to avoid in one file."""
    python, whole = path.suffix == ".py", path.read_text(encoding="utf-8")
    searched = whole.replace("_", " ")  # names of tests, too; most files contain no phrase, not even in their code
    phrases = [phrase for phrase in PHRASES if phrase.pattern.search(searched)]
    for first, text in texts_of_python(path) if python and phrases else [(1, whole)]:
        for phrase in phrases:
            for match in phrase.pattern.finditer(text):
                yield Finding(path, first + text.count("\n", 0, match.start()), match.group(), phrase.reason)
    if python and any(OPENINGS.match(text.lstrip()) for text in whole.split('"""')):
        for node in ast.walk(ast.parse(whole)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                opening = OPENINGS.match(ast.get_docstring(node) or "")
                if opening:
                    yield Finding(
                        path, node.body[0].lineno, opening.group(), "open a docstring with a noun phrase or 'Return ...'"
                    )


def texts(*roots: str) -> Iterator[Path]:
    """Files of the project that people read: sources, tests, pages, manifests."""
    for root in roots:
        place = ROOT / root
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            generated = "reproductions" in path.parts and "docs" in path.parts
            if (
                path.suffix in SUFFIXES
                and not generated
                and path.name not in ("prose.py", "test_prose.py")
                and not path.name.endswith("_pb2.py")
            ):
                yield path


def main(paths: Iterable[str]) -> int:
    """List findings; the exit status is 1 where there are any."""
    violations = [
        finding
        for path in texts(*(paths or ("README.md", "docs", "src", "packages", "deploy", "tests")))
        for finding in findings(path)
    ]
    print(*violations, f"{len(violations)} findings", sep="\n")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
