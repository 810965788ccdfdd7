"""Who gets a slot now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler_app.engine.admission import Candidate, Refusal, Room, admit
from scheduler_app.engine.limits import NAME, Allowance, Take, decode, encode


def want(number: int, **fields: object) -> Candidate:
    given = {"dag_id": "d", "run_id": 1, "task_id": f"t{number}", "pool": "p"} | fields
    return Candidate(number, **given)  # type: ignore[arg-type]


def room(**fields: object) -> Room:
    return Room(**({"pool_slots": {"p": 128, "q": 128}, "executors": {None: 32}} | fields))  # type: ignore[arg-type]


def refusals(candidates: list[Candidate], space: Room) -> dict[int, str]:
    return {number: refusal.code for number, refusal in admit(candidates, space).refused}


def test_a_dag_at_its_limit_hides_nobody() -> None:
    mine = [want(n, dag_id="a", run_id=1, max_active_tasks=1) for n in range(200)]
    others = [want(1000 + n, dag_id="b", run_id=2) for n in range(50)]
    admission = admit(mine + others, room())
    assert admission.admitted == [0, *range(1000, 1031)]


def test_one_global_order_charges_every_counter_row_by_row() -> None:
    limit = {"max_active_tasks": 2}
    ordered = [want(1, pool="p", **limit), want(2, pool="q", **limit), want(3, pool="p", **limit)]
    assert admit(ordered, room()).admitted == [1, 2]


def test_a_task_too_wide_for_its_pool_never_runs_and_takes_nothing() -> None:
    wide = [want(n, pool_slots=5) for n in range(4)]
    admission = admit([*wide, want(9)], room(pool_slots={"p": 3}))
    assert admission.admitted == [9]
    text = "It can never run: it needs 5 slots of pool p, which has 3."
    assert admission.refused[0] == (
        0,
        Refusal("pool_too_small", text, {"pool": "p", "slots": 3, "needs": 5}, never=True),
    )


def test_an_unknown_pool_waits_with_a_reason() -> None:
    refused = admit([want(1, pool="nowhere")], room()).refused
    assert refused == [
        (
            1,
            Refusal(
                "pool_unknown",
                "Pool nowhere does not exist: create it, or give the task another pool.",
                {"pool": "nowhere"},
            ),
        )
    ]


def test_a_pool_without_limit_never_fills() -> None:
    assert len(admit([want(n, pool_slots=9) for n in range(20)], room(pool_slots={"p": -1})).admitted) == 20


def test_max_active_tasks_counts_by_run_or_by_dag() -> None:
    candidates = [want(1, run_id=1, max_active_tasks=1), want(2, run_id=2, max_active_tasks=1)]
    assert admit(candidates, room()).admitted == [1, 2]
    assert refusals(candidates, room(max_active_tasks_per="dag")) == {2: "max_active_tasks"}


def test_limits_of_one_task_count_over_all_runs_and_in_one() -> None:
    same = [want(n, task_id="t", run_id=n % 2, max_active_tis_per_dag=3) for n in range(4)]
    assert refusals(same, room(tasks={("d", "t"): 1})) == {2: "max_active_tis_per_dag", 3: "max_active_tis_per_dag"}
    per_run = [want(n, task_id="t", run_id=n % 2, max_active_tis_per_dagrun=1) for n in range(4)]
    assert refusals(per_run, room()) == {2: "max_active_tis_per_dagrun", 3: "max_active_tis_per_dagrun"}


def test_executors_have_slots_of_their_own() -> None:
    candidates = [want(1), want(2), want(3, executor="remote"), want(4, executor="gone")]
    codes = refusals(candidates, room(executors={None: 1, "remote": 1}))
    assert codes == {2: "executor_full", 4: "executor_unknown"}


def takes(**units: int) -> tuple[Take, ...]:
    return tuple(Take(*item) for item in units.items())


def test_keyed_limits_are_taken_together_or_not_at_all() -> None:
    candidates = [want(1, limits=takes(db=1, api=1)), want(2, limits=takes(api=1, db=1)), want(3, limits=takes(api=1))]
    space = room(limits={"db": Allowance(1), "api": Allowance(6, used=4)})
    assert refusals(candidates, space) == {2: "limit_full"}
    assert {name: limit.used for name, limit in space.limits.items()} == {"db": 1, "api": 6}


def test_a_limit_says_how_much_of_it_is_taken() -> None:
    (_, refusal), *_ = admit([want(1, limits=takes(db=3))], room(limits={"db": Allowance(4, used=2)})).refused
    assert refusal.text == "Limit db has 4, and 2 are taken; it needs 3."
    assert refusal.facts == {"name": "db", "limit": 4, "used": 2, "needs": 3}


def test_a_limit_that_nobody_made_a_closed_one_and_one_that_is_too_small() -> None:
    space = room(limits={"shut": Allowance(0), "small": Allowance(2)})
    candidates = [want(n, limits=takes(**{name: 3})) for n, name in enumerate(("nowhere", "shut", "small"))]
    found = admit(candidates, space).refused
    assert [(r.code, r.never) for _, r in found] == [
        ("limit_unknown", False),
        ("limit_closed", False),
        ("limit_too_small", True),
    ]
    assert found[2][1].text == "It can never run: it takes 3 of limit small, which has 2."


def test_a_rate_says_when_the_next_may_start() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    taken = [(noon, 2), (noon + timedelta(seconds=10), 1)]
    space = room(limits={"crm": Allowance(3, 60.0, used=3, taken=taken)})
    (one, two), (_, three) = admit([want(1, limits=takes(crm=1)), want(2, limits=takes(crm=3))], space).refused
    assert (one, two.code, two.until) == (1, "rate_full", noon + timedelta(seconds=60))
    assert two.text == "Rate crm lets 3 starts happen in 60 s, and 3 have happened. The next may at 12:01:00 (UTC)."
    assert three.until == noon + timedelta(seconds=70)


def test_what_has_only_just_been_taken_of_a_rate_has_no_time_yet() -> None:
    candidates = [want(1, limits=takes(crm=1)), want(2, limits=takes(crm=1))]
    admission = admit(candidates, room(limits={"crm": Allowance(1, 60.0)}))
    assert admission.admitted == [1]
    assert [(r.code, r.until) for _, r in admission.refused] == [("rate_full", None)]


def test_what_is_free_of_a_limit_is_kept_for_an_overdue_task_that_takes_several() -> None:
    narrow = [want(2, limits=takes(db=1)), want(3)]
    wide = want(1, limits=takes(db=3), overdue=True)
    space = {"limits": {"db": Allowance(4, used=2)}}
    assert refusals([wide, *narrow], room(**space)) == {1: "limit_full", 2: "limit_reserved"}
    held_back = wide._replace(max_active_tis_per_dag=0)
    assert refusals([held_back, *narrow], room(**space)) == {1: "max_active_tis_per_dag"}
    no_pool = wide._replace(pool="q")
    assert refusals([no_pool, *narrow], room(pool_used={"q": 128}, **space)) == {1: "limit_full"}


def test_a_pool_is_not_kept_for_a_wide_task_that_a_limit_holds_back() -> None:
    wide = want(1, pool_slots=3, overdue=True, limits=takes(db=1))
    full = {"pool_slots": {"p": 4}, "pool_used": {"p": 2}, "limits": {"db": Allowance(1, used=1)}}
    assert admit([wide, want(2)], room(**full)).admitted == [2]


@given(st.lists(st.tuples(st.from_regex(NAME, fullmatch=True), st.integers(1, 9)), unique_by=lambda t: t[0]))
def test_what_a_task_takes_comes_back_from_its_text(pairs: list[tuple[str, int]]) -> None:
    takes = [Take(*pair) for pair in pairs]
    assert decode(encode(takes)) == tuple(sorted(takes))


def test_an_overdue_wide_task_gets_the_next_free_slots() -> None:
    narrow = [want(2), want(3)]
    patient = admit([want(1, pool_slots=3), *narrow], room(pool_slots={"p": 4}, pool_used={"p": 2}))
    assert patient.admitted == [2, 3]
    overdue = admit([want(1, pool_slots=3, overdue=True), *narrow], room(pool_slots={"p": 4}, pool_used={"p": 2}))
    assert overdue.admitted == []
    assert [refusal.code for _, refusal in overdue.refused] == ["pool_full", "pool_reserved", "pool_reserved"]


def test_slots_are_not_kept_for_a_wide_task_that_something_else_holds_back() -> None:
    wide = want(1, pool_slots=3, overdue=True, max_active_tis_per_dag=0)
    assert admit([wide, want(2)], room(pool_slots={"p": 4}, pool_used={"p": 2})).admitted == [2]


def test_the_callers_counts_stay_as_they_were() -> None:
    used = {"p": 1}
    space = room(pool_used=used)
    admit([want(1)], space)
    assert (used, space.pool_used) == ({"p": 1}, {"p": 2})


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        id=st.integers(0, 10**9),
        dag_id=st.sampled_from("ab"),
        run_id=st.sampled_from([1, 2, 3]),
        task_id=st.sampled_from("xyz"),
        pool=st.sampled_from(["p", "q", "none"]),
        pool_slots=st.integers(1, 4),
        executor=st.sampled_from([None, "remote"]),
        max_active_tasks=st.integers(0, 4),
        max_active_tis_per_dag=st.none() | st.integers(0, 3),
        max_active_tis_per_dagrun=st.none() | st.integers(0, 3),
        limits=st.sampled_from([(), takes(db=1), takes(db=2), takes(api=1, db=1)]),
        overdue=st.booleans(),
    ),
    max_size=40,
    unique_by=lambda c: c.id,
)
ROOMS = st.builds(
    Room,
    pool_slots=st.fixed_dictionaries({"p": st.integers(-1, 6), "q": st.integers(0, 6)}),
    executors=st.fixed_dictionaries({None: st.integers(0, 8), "remote": st.integers(0, 8)}),
    pool_used=st.fixed_dictionaries({"p": st.integers(0, 7)}),
    runs=st.fixed_dictionaries({1: st.integers(0, 3)}),
    limits=st.builds(lambda used: {"db": Allowance(3, used=used), "api": Allowance(1, 60.0)}, st.integers(0, 4)),
    max_active_tasks_per=st.sampled_from(["run", "dag"]),
)


@given(CANDIDATES, ROOMS)
def test_admission_never_exceeds_a_limit_and_answers_everybody(candidates: list[Candidate], space: Room) -> None:
    before = Room(**{name: getattr(space, name) for name in Room.__slots__})  # type: ignore[attr-defined]
    admission = admit(candidates, space)
    assert sorted(admission.admitted + [number for number, _ in admission.refused]) == sorted(c.id for c in candidates)
    by_id = {c.id: c for c in candidates}
    chosen = [by_id[number] for number in admission.admitted]
    for pool, total in before.pool_slots.items():
        taken = sum(c.pool_slots for c in chosen if c.pool == pool)
        assert not taken or total < 0 or before.pool_used.get(pool, 0) + taken <= total
    for name, free in before.executors.items():
        assert sum(c.executor == name for c in chosen) <= free
    for name, limit in before.limits.items():
        taken = sum(units for c in chosen for key, units in c.limits if key == name)
        assert not taken or limit.used + taken <= limit.amount
    for place, c in enumerate(chosen):
        until = chosen[: place + 1]
        if before.max_active_tasks_per == "run":
            active = before.runs.get(c.run_id, 0) + sum(o.run_id == c.run_id for o in until)
        else:
            active = sum(o.dag_id == c.dag_id for o in until)
        assert not c.max_active_tasks or active <= c.max_active_tasks
        if c.max_active_tis_per_dag is not None:
            assert sum((o.dag_id, o.task_id) == (c.dag_id, c.task_id) for o in until) <= c.max_active_tis_per_dag
        if c.max_active_tis_per_dagrun is not None:
            assert sum((o.run_id, o.task_id) == (c.run_id, c.task_id) for o in until) <= c.max_active_tis_per_dagrun


@given(CANDIDATES, ROOMS)
def test_who_is_refused_would_be_refused_again(candidates: list[Candidate], space: Room) -> None:
    refused = {number for number, _ in admit(candidates, space).refused}
    again = admit([c for c in candidates if c.id in refused], space)
    assert again.admitted == []
