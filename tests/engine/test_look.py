"""Properties of a look, over made-up DAGs and states."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_app.engine.dag import Dag, Task
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import outcome
from scheduler_app.engine.readiness import Look, RunFact, Ti, look
from scheduler_app.engine.states import TASK_STATES, TASK_VERBS
from scheduler_app.engine.trigger_rules import RULES
from tests.engine.scenario import NOW, World

RUN = RunFact(NOW)


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    count = draw(st.integers(1, 9))
    tasks = []
    for number in range(count):
        below = draw(st.sets(st.integers(number + 1, count - 1), max_size=3)) if number + 1 < count else set()
        sources = list(range(number))
        mapped = None
        if sources and draw(st.integers(0, 5)) == 0:
            mapped = {"style": "expand", "inputs": {"x": {"xcom": f"t{draw(st.sampled_from(sources))}"}}}
        tasks.append(
            Task(
                f"t{number}",
                downstream=tuple(f"t{n}" for n in sorted(below)),
                trigger_rule=draw(st.sampled_from(sorted(RULES))),
                is_empty=draw(st.booleans()) and mapped is None,
                is_setup=draw(st.integers(0, 4)) == 0,
                is_teardown=draw(st.integers(0, 5)) == 0,
                retries=draw(st.integers(0, 1)),
                mapped=mapped,
            )
        )
    return Dag("d", tasks=tuple(tasks))


@st.composite
def runs(draw: st.DrawFn) -> tuple[Graph, list[Ti]]:
    graph = Graph(draw(dags()))
    tis = []
    for task_id in graph.tasks:
        indexes = draw(st.sampled_from([(-1,), (0, 1), (0, 1, 2)])) if task_id in graph.mapped_tasks else (-1,)
        for index in indexes:
            state = draw(st.sampled_from(TASK_STATES))
            length = draw(st.none() | st.integers(-1, 3))
            tis.append(Ti(len(tis), task_id, index, state, map_length=length))
    return graph, tis


def apply(tis: list[Ti], found: Look) -> list[Ti]:
    verbs = {move.ti_id: move.verb for move in found.moves}
    assert len(verbs) == len(found.moves)
    after = []
    for ti in tis:
        if ti.id in verbs:
            sources, target = TASK_VERBS[verbs[ti.id]]
            assert ti.state in sources
            ti = ti._replace(state=target)
        after.append(ti)
    for task_id, count in found.expand:
        have = {ti.map_index for ti in after if ti.task_id == task_id}
        after = [ti._replace(map_index=0) if ti.task_id == task_id and ti.map_index < 0 else ti for ti in after]
        missing = set(range(count)) - (have if have != {-1} else {0})
        after += [Ti((task_id, index), task_id, index) for index in sorted(missing)]
    return after


@given(runs())
@settings(max_examples=300)
def test_a_second_look_finds_nothing_but_what_an_expansion_brought(run: tuple[Graph, list[Ti]]) -> None:
    graph, tis = run
    found = look(graph, tis, run=RUN, now=NOW)
    again = look(graph, apply(tis, found), run=RUN, now=NOW)
    if not found.expand:
        assert (again.moves, again.expand) == ([], [])
    # an expanded task never changes its mind about its length
    assert not {task_id for task_id, _ in found.expand} & {task_id for task_id, _ in again.expand}


def settle(graph: Graph, tis: list[Ti]) -> list[Ti]:
    for _ in range(len(graph.tasks) + 1):
        tis = apply(tis, look(graph, tis, run=RUN, now=NOW))
    return tis


@given(runs(), st.data())
@settings(max_examples=300)
def test_partial_looks_from_a_change_on_reach_what_a_full_look_would(
    run: tuple[Graph, list[Ti]], data: st.DataObject
) -> None:
    graph, tis = run
    tis = settle(graph, tis)
    place = data.draw(st.integers(0, len(tis) - 1))
    state = data.draw(st.sampled_from(["success", "failed", "skipped", None]))
    tis[place] = tis[place]._replace(state=state, map_length=data.draw(st.none() | st.integers(0, 2)))
    everything = settle(graph, list(tis))
    changed = {tis[place].task_id}
    while changed:
        near = graph.neighbourhood(changed)
        found = look(graph, [ti for ti in tis if ti.task_id in near.load], run=RUN, now=NOW, only=near.look_at)
        tis = apply(tis, found)
        changed = found.touched | {task_id for task_id, _ in found.expand}
    assert sorted(tis, key=str) == sorted(everything, key=str)


@given(dags(), st.data())
@settings(max_examples=200, deadline=None)
def test_every_run_comes_to_an_end(built: Dag, data: st.DataObject) -> None:
    choice = st.sampled_from(["success", "failed", "skipped", {"push": 0}, {"push": 2}])
    outcomes = {task.task_id: data.draw(choice) for task in built.tasks}
    played = World(built, outcomes).play()
    assert played.run.state in ("success", "failed")
    if played.run.code != "all_tasks_deadlocked":
        pairs = [(ti.task_id, ti.state) for ti in played.tis]
        assert outcome(played.graph, pairs).state == played.run.state
