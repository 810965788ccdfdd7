"""Functions as tasks of every kind: sensors, commands, conditions, several outputs, other arguments, gates."""

from __future__ import annotations

from typing import Any, Dict, Mapping, TypedDict

import pendulum
from airflow.exceptions import (
    AirflowFailException,
    AirflowSkipException,
)
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import (
    DAG,
    PokeReturnValue,
    task,
    task_group,
)

START = pendulum.datetime(2024, 1, 1)

with DAG("decorated_sensors", schedule=None, start_date=START):

    @task.sensor(poke_interval=1, timeout=5, mode="poke")
    def truthy():
        return True

    @task.sensor(poke_interval=1, timeout=5, mode="reschedule")
    def with_value(x) -> PokeReturnValue:
        return PokeReturnValue(is_done=True, xcom_value={"x": x})

    @task.sensor(poke_interval=1, timeout=2, soft_fail=True)
    def soft():
        return False

    @task.sensor(poke_interval=1, timeout=2)
    def hard():
        return False

    @task.sensor(poke_interval=1, timeout=5)
    def raises():
        raise ValueError("x")

    @task.sensor(poke_interval=1, timeout=5, soft_fail=True)
    def raises_soft():
        raise ValueError("x")

    @task.sensor(poke_interval=1, timeout=5, never_fail=True)
    def raises_never():
        raise ValueError("x")

    @task.sensor(poke_interval=1, timeout=5)
    def skips():
        raise AirflowSkipException

    @task.sensor(poke_interval=1, timeout=5)
    def fails_for_good():
        raise AirflowFailException

    @task.sensor(poke_interval=1, timeout=10)
    def second_time(ti=None):
        return PokeReturnValue(is_done=_second(), xcom_value="v")

    def _second(s=[]):
        s.append(1)
        return len(s) > 1

    @task
    def use(v):
        return v

    @task.sensor(poke_interval=1, timeout=5)
    def returns_text():
        return "text"

    @task.sensor(poke_interval=1, timeout=5)
    def returns_none_then():
        return PokeReturnValue(True)

    truthy()
    soft()
    hard()
    raises()
    raises_soft()
    raises_never()
    skips()
    fails_for_good()
    use(with_value("{{ ds }}"))
    use(second_time())
    use(returns_text())
    use(returns_none_then())
    with_value.override(task_id="mapped", timeout=9).expand(x=[1, 2])

with DAG("decorated_commands", schedule=None, start_date=START):

    @task.bash
    def plain():
        return "echo {{ ds }} $((1+1))"

    @task.bash(env={"A": "{{ params.p }}", "B": "b"}, append_env=True, cwd="/tmp", params={"p": 3})
    def env(x):
        return f"echo $A $B {x} $PWD"

    @task.bash
    def skip99():
        return "exit 99"

    @task.bash(skip_on_exit_code=[7, 8])
    def skip7():
        return "exit 7"

    @task.bash
    def fails():
        return "exit 3"

    @task.bash
    def none():
        return None

    @task.bash
    def empty():
        return ""

    @task.bash
    def number():
        return 5

    @task.bash
    def lst():
        return ["echo", "1"]

    @task.bash
    def raise_skip():
        raise AirflowSkipException

    @task.bash(output_processor=lambda o: o.upper())
    def processed():
        return "echo abc"

    @task.bash
    def multi():
        return "echo one\necho two\nprintf 'no newline'"

    @task.bash(do_xcom_push=False)
    def quiet():
        return "echo q"

    @task.bash
    def mapped(n):
        return f"echo n{n}"

    @task
    def use(v):
        return v

    plain()
    env("{{ run_id }}")
    skip99()
    skip7()
    fails()
    none()
    empty()
    number()
    lst()
    raise_skip()
    processed()
    multi()
    quiet()
    use.expand(v=mapped.expand(n=[1, 2]))

with DAG("decorated_conditions", schedule=None, start_date=START):

    @task.run_if(lambda ctx: ctx["task_instance"].task_id.endswith("yes"))
    @task
    def a():
        return "ran"

    a.override(task_id="a_yes")()
    a.override(task_id="a_no")()

    @task.skip_if(lambda ctx: ctx["params"]["s"])
    @task.bash(params={"s": True})
    def b():
        return "echo b"

    b()

    @task.skip_if(lambda ctx: False, skip_message="never")
    @task(retries=1)
    def c(n):
        return n

    c.expand(n=[1, 2])

    @task.run_if(lambda ctx: ctx["ti"].map_index == 1, skip_message="not one")
    @task
    def d(n):
        return n

    d.expand(n=[10, 20, 30])

    @task.run_if(lambda ctx: 1 / 0)
    @task
    def e():
        return 1

    e()

    @task.run_if(lambda ctx: True)
    @task.skip_if(lambda ctx: True)
    @task
    def f():
        return 1

    f() >> EmptyOperator(task_id="after_f")

    @task.run_if(lambda ctx: False)
    @task.sensor(poke_interval=1, timeout=3)
    def s():
        return True

    s()

    @task.run_if(lambda ctx: False)
    @task.branch
    def br():
        return "arm"

    br() >> [EmptyOperator(task_id="arm"), EmptyOperator(task_id="other")]


class TD(TypedDict):
    a: int
    b: str


with DAG("decorated_outputs", schedule=None, start_date=START):

    @task
    def td() -> TD:
        return {"a": 1, "b": "x"}

    @task
    def dt() -> Dict[str, int]:
        return {"q": 1}

    @task
    def d0() -> dict:
        return {"q": 1}

    @task
    def mp() -> Mapping[str, Any]:
        return {"q": 1}

    @task
    def text() -> "dict[str, int]":
        return {"q": 1}

    @task
    def opt() -> dict[str, int] | None:
        return {"q": 1}

    @task
    def tup() -> tuple[int, int]:
        return (1, 2)

    @task
    def ret_none() -> dict[str, int]:
        return None

    @task(multiple_outputs=True)
    def nested():
        return {"a": {"b": {"c": 1}}, "return_value": 9}

    @task(multiple_outputs=True)
    def empty():
        return {}

    @task
    def kwonly(*, a, b=2):
        return [a, b]

    @task
    def varargs(*args, **kwargs):
        return [list(args), sorted(k for k in kwargs if k in ("a", "b", "ti", "ds", "params"))]

    @task
    def ctxargs(ds, ti=None, *, run_id, dag_run=None):
        return [ds, ti.task_id, run_id, dag_run.run_id]

    for f in (td, dt, d0, mp, text, opt, tup, ret_none, nested, empty):
        f()
    kwonly(a=1)
    kwonly.override(task_id="kw2")(b=5, a=td()["a"])
    varargs(1, 2, a=3)

with DAG("decorated_overrides", schedule=None, start_date=START):

    @task(retries=1, retry_delay=1, pool="conf_one", do_xcom_push=True)
    def base(v=1, task=None, ti=None):
        return [v, task.retries, task.pool, task.queue, task.priority_weight, task.trigger_rule]

    base()
    base.override(task_id="r3", retries=3, priority_weight=9, pool="default_pool")()
    base.override(trigger_rule="all_done").override(task_id="twice")(2)
    base.override(task_id="nopush", do_xcom_push=False)()
    base.override(task_id="part", pool="conf_two").partial().expand(v=[1, 2])
    base.override(task_id="kw", doc_md="doc", map_index_template="{{ ti.map_index }}+").expand(v=[3])

    @task.branch
    def br():
        return "go"

    br.override(task_id="br2")() >> [EmptyOperator(task_id="go"), EmptyOperator(task_id="stay")]

    @task_group
    def grp():
        base.override(task_id="in")()

    grp.override(group_id="other")()
    PythonOperator.partial(
        task_id="classic_partial",
        python_callable=lambda x, task=None: [x, task.retries, task.pool_slots, task.priority_weight],
        retries=2,
        pool="conf_two",
        pool_slots=2,
        priority_weight=4,
        trigger_rule="all_done",
        max_active_tis_per_dag=1,
    ).expand(op_args=[[1], [2]])

    @task(multiple_outputs=True, task_id="explicit")
    def named():
        return {"a": 1}

    named()

    @task.python
    def py():
        return "py"

    py()

    @task()
    def called():
        return "called"

    called()

with DAG("decorated_gates", schedule=None, start_date=START):

    @task.short_circuit
    def gate(n):
        return n > 1

    @task
    def after(v=None):
        return v

    gate.expand(n=[1, 2, 3]) >> after()

    @task.short_circuit
    def gate2():
        return [1]

    @task
    def use(v):
        return v

    use(gate2())

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def gate3():
        return 0

    gate3() >> EmptyOperator(task_id="g3_a") >> EmptyOperator(task_id="g3_b", trigger_rule="all_done")

    @task_group
    def grp():
        EmptyOperator(task_id="a") >> EmptyOperator(task_id="b")

    @task.short_circuit
    def gate4():
        return ""

    gate4() >> grp() >> EmptyOperator(task_id="g4_after", trigger_rule="all_done")

    @task.short_circuit
    def gate5():
        raise ValueError

    gate5() >> EmptyOperator(task_id="g5_a")

    @task.short_circuit
    def gate6():
        raise AirflowSkipException

    gate6() >> EmptyOperator(task_id="g6_a") >> EmptyOperator(task_id="g6_b", trigger_rule="all_done")
