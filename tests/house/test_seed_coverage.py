"""Every known defect and every reported case has a test that carries its number, and the document names real tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/seed-coverage.md"

#: Defects of the seed by severity: H loses or doubles work or stops the scheduler, M is a wrong limit, starvation or a
#: wrong state. (Those of severity L are cost, metrics and text; docs/seed-coverage.md has a row for each.)
HIGH = (1, 9, 11, 13, 14, 19, 20, 21, 23, 24, 25, 26, 27, 29, 31, 32, 33, 35, 36, 38, 39, 41, 43, 46, 47, 49, 52, 55)
MEDIUM = (
    *(2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 18, 22, 28, 30, 34, 40, 42, 48, 50, 51, 53),
    *(60, 62, 63, 65, 68, 69),
)
#: Failures that users of other schedulers reported: the odd numbers.
CASES = tuple(range(1, 134, 2))
#: Rows of the document: what the seed does, and what is wrong in it.
FEATURES, DEFECTS = range(1, 37), range(1, 76)


def test_names() -> Iterator[str]:
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name


NAMES = set(test_names())
del test_names
NUMBERS = {number for name in NAMES for number in re.findall(r"(?<=_)(?:S|BC|F)_\d+(?=_|$)", name)}


def test_every_defect_that_loses_work_or_breaks_a_limit_has_a_test() -> None:
    wanted = {f"S_{number:02}" for number in (*HIGH, *MEDIUM)}
    assert sorted(wanted - NUMBERS) == []
    assert len(HIGH) == len(MEDIUM) == 28


def test_every_reported_case_has_a_test() -> None:
    assert sorted({f"BC_{number:02}" for number in CASES} - NUMBERS) == []
    assert len(CASES) == 67


def test_no_test_carries_a_number_that_there_is_not() -> None:
    known = {f"S_{n:02}" for n in DEFECTS} | {f"BC_{n:02}" for n in CASES} | {f"F_{n:02}" for n in FEATURES}
    assert sorted(NUMBERS - known) == []


def test_the_document_has_a_row_for_each_and_names_tests_that_exist() -> None:
    text = DOCUMENT.read_text()
    rows = set(re.findall(r"^\| ([SF]-\d+) \|", text, re.M))
    assert rows == {f"F-{number:02}" for number in FEATURES} | {f"S-{number:02}" for number in DEFECTS}
    assert sorted(set(re.findall(r"`(test_\w+)`", text)) - NAMES) == []
    files = set(re.findall(r"tests/[\w/]+\.py", text))
    assert sorted(path for path in files if not (ROOT / path).exists()) == []
