"""Who gets a slot now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler_app.engine.admission import Candidate, Refusal, Room, admit


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


def test_keyed_limits_are_taken_together() -> None:
    candidates = [want(1, limits=("db", "api")), want(2, limits=("db",)), want(3, limits=("api",))]
    space = room(limits={"db": 1, "api": 5}, limits_used={"api": 4})
    assert refusals(candidates, space) == {2: "limit_full", 3: "limit_full"}


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
        limits=st.sampled_from([(), ("db",), ("db", "api")]),
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
    limits=st.just({"db": 2, "api": 1}),
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
        assert sum(name in c.limits for c in chosen) <= limit
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
