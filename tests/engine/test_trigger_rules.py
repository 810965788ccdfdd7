"""Trigger rules against twelve mixes of parent states, as Airflow 3.3.2 was seen to end them."""

from __future__ import annotations

import pytest

from scheduler_app.engine.trigger_rules import NEEDS, RULES, Counts
from tests.engine.scenario import dag, scenario

MIXES = ("s", "f", "k", "u", "s_f", "s_k", "s_u", "f_k", "f_u", "k_u", "s_f_k", "s_f_k_u")
LETTER = {"success": "S", "skipped": "K", "upstream_failed": "U", "failed": "F"}

#: rule → what becomes of the child of each mix, in the order of MIXES
ENDS = {
    "all_success": "SUKUUKUUUUUU",
    "all_failed": "KSKSKKKKSKKK",
    "all_done": "SSSSSSSSSSSS",
    "all_done_min_one_success": "SUKUSKSKUKKK",
    "all_skipped": "KKSKKKKKKKKK",
    "one_success": "SUKUSSSUUUSS",
    "one_failed": "KSKSSKSSSSSS",
    "one_done": "SSKKSSSSSKSS",
    "none_failed": "SUSUUSUUUUUU",
    "none_failed_min_one_success": "SUKUUSUUUUUU",
    "none_skipped": "SSKSSKSKSKKK",
    "always": "SSSSSSSSSSSS",
}


def mixes(rule: str) -> dict[str, str | None]:
    parents = {"s": "ok", "f": "bad", "k": "skip", "u": "blocked"}
    lines = ["ok", "bad >> [blocked, skip]", "no_parents"]
    lines += [f"[{', '.join(parents[p] for p in mix.split('_'))}] >> mix_{mix}" for mix in MIXES]
    fields = {f"mix_{mix}": {"trigger_rule": rule} for mix in MIXES}
    fields |= {"skip": {"trigger_rule": "all_done"}, "no_parents": {"trigger_rule": rule}}
    # the parents have ended before any child is looked at, as in the cases that were recorded
    played = scenario(dag("\n".join(lines), fields), bad="failed", skip="skipped")
    assert played.states["no_parents"] == "success"
    return played.states


@pytest.mark.parametrize("rule", ENDS)
def test_a_rule_ends_the_child_of_each_mix_of_parents(rule: str) -> None:
    states = mixes(rule)
    got = "".join(LETTER[str(states[f"mix_{mix}"])] for mix in MIXES)
    if rule == "always":  # it does not wait, so that the parents' states never matter
        assert got == "S" * 12
    else:
        assert got == ENDS[rule]


@pytest.mark.parametrize(
    ("rule", "counts", "decision"),
    [
        ("all_success", Counts(3, success=1, skipped=1), "skip"),
        ("all_success", Counts(3, skipped=1, failed=1), "upstream_fail"),
        ("all_success", Counts(3, success=2), "wait"),
        ("all_failed", Counts(3, failed=1, upstream_failed=1), "wait"),
        ("all_failed", Counts(3, success=1), "skip"),
        ("all_done", Counts(2, success=1), "wait"),
        ("all_done_min_one_success", Counts(3, skipped=1), "skip"),
        ("all_done_min_one_success", Counts(2, failed=1), "wait"),
        ("all_skipped", Counts(2, failed=1), "skip"),
        ("one_success", Counts(3, success=1), "run"),
        ("one_success", Counts(3, skipped=2), "wait"),
        ("one_failed", Counts(3, upstream_failed=1), "run"),
        ("one_done", Counts(3, failed=1), "run"),
        ("one_done", Counts(3, skipped=1), "wait"),
        ("none_failed", Counts(3, failed=1), "upstream_fail"),
        ("none_failed_min_one_success", Counts(3, success=1, skipped=1), "wait"),
        ("none_skipped", Counts(3, skipped=1), "skip"),
        ("always", Counts(3), "run"),
        ("all_done_setup_success", Counts(2, success=1, failed=1, setups=1, setups_success=1), "run"),
        ("all_done_setup_success", Counts(2, success=1, failed=1, setups=1), "upstream_fail"),
        ("all_done_setup_success", Counts(2, skipped=2, setups=1, setups_skipped=1), "skip"),
        ("all_done_setup_success", Counts(2, success=1, setups=1, setups_success=1), "wait"),
        ("all_done_setup_success", Counts(1, failed=1), "run"),
    ],
)
def test_a_rule_decides_as_early_as_it_can(rule: str, counts: Counts, decision: str) -> None:
    assert RULES[rule](counts) == decision


def test_every_rule_has_a_sentence() -> None:
    assert NEEDS.keys() == RULES.keys()
