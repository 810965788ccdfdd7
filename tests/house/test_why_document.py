"""docs/why.md says of each reason what helps, and of no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Calls whose first argument is the code of a reason, and where it may be a name instead (a refusal passed on).
MADE_BY = {"Verdict", "Refusal", "Obstacle", "_full", "wait"}
PASSED_ON = {"refusal.code", "code", "*obstacle"}
#: What ``readiness`` calls the codes that ``explain`` tells as ``trigger_rule``.
ALSO_CALLED = {"upstream": "trigger_rule"}


def calls() -> Iterator[ast.Call]:
    for folder in ("scheduler_app/engine", "scheduler_app/queries"):
        for path in sorted((ROOT / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and node.args:
                    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                    if name in MADE_BY and (name != "_full" or path.stem == "admission"):
                        yield node


def told() -> dict[str, str]:
    """code → what helps, from the tables of the document."""
    found = {}
    for line in (ROOT / "docs/why.md").read_text().splitlines():
        codes, *rest = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for code in re.findall(r"`(\w+)`", codes) if line.startswith("| `") else ():
            assert len(rest) == 2, line
            found[code] = rest[1].strip("| ")
    return found


def test_each_reason_is_told_with_what_helps() -> None:
    made = set()
    for call in calls():
        first = call.args[0]
        if ast.unparse(first) in PASSED_ON:
            continue
        branches = (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,)
        for one in branches:
            assert isinstance(one, ast.Constant), f"The test cannot see which code this is: {ast.unparse(call)}"
            made.add(ALSO_CALLED.get(str(one.value), str(one.value)))
    assert len(made) > 50
    document = told()
    assert made - document.keys() == set(), "docs/why.md lacks them"
    assert document.keys() - made == set(), "no code gives these reasons"
    assert [code for code, helps in document.items() if not helps] == []
