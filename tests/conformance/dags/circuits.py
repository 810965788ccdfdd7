"""Short circuits and conditions: with and without respect for trigger rules, in groups, skip_if and run_if."""

from __future__ import annotations

import pendulum
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import ShortCircuitOperator
from airflow.sdk import DAG, task, task_group

START = pendulum.datetime(2024, 1, 1)

with DAG("circuit_respects_rules", schedule=None, start_date=START):
    for name, value in (("cut", False), ("zero", 0), ("text", "x"), ("dict", {})):
        gate = ShortCircuitOperator(
            task_id=name, python_callable=lambda value=value: value, ignore_downstream_trigger_rules=False
        )
        gate >> EmptyOperator(task_id=f"{name}_1") >> EmptyOperator(task_id=f"{name}_2", trigger_rule="all_done")
        gate >> EmptyOperator(task_id=f"{name}_direct_all_done", trigger_rule="all_done")

with DAG("circuit_decorated", schedule=None, start_date=START):

    @task.short_circuit
    def closed():
        return []

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def soft():
        return None

    @task.short_circuit
    def opened():
        return {"a": 1}

    @task
    def show(value):
        return value

    gate = closed()
    shown = show.override(task_id="show_closed")(gate)
    shown >> EmptyOperator(task_id="end_closed", trigger_rule="always")
    soft() >> EmptyOperator(task_id="soft_1") >> EmptyOperator(task_id="soft_2", trigger_rule="none_failed")
    show.override(task_id="show_opened")(opened())

with DAG("circuit_in_mapped_group", schedule=None, start_date=START):

    @task_group
    def each(n):
        @task.short_circuit
        def gate(n):
            return n > 1

        @task
        def work(n):
            return n

        @task(trigger_rule="all_done")
        def always_last(n):
            return n

        gate(n) >> work(n) >> always_last(n)

    each.expand(n=[1, 2]) >> EmptyOperator(task_id="after", trigger_rule="all_done")

with DAG("circuit_mapped", schedule=None, start_date=START):

    @task.short_circuit
    def gates(n):
        return n != 2

    gates.expand(n=[1, 2]) >> EmptyOperator(task_id="after")

with DAG("circuit_conditions", schedule=None, start_date=START):

    @task.run_if(lambda context: context["params"].get("go"), skip_message="no go")
    @task
    def needs_go():
        return "went"

    @task.skip_if(lambda context: context["ti"].task_id == "skip_me")
    @task
    def maybe():
        return "not skipped"

    @task.run_if(lambda context: True)
    @task.bash
    def shell():
        return "echo run"

    needs_go() >> EmptyOperator(task_id="after_go")
    maybe.override(task_id="skip_me")() >> EmptyOperator(task_id="after_skip", trigger_rule="none_failed")
    maybe.override(task_id="keep_me")()
    shell()

with DAG("circuit_index_to_index", schedule=None, start_date=START):

    @task
    def three():
        return [1, 2, 3]

    @task.short_circuit
    def known_gate(n):
        return n != 2

    @task
    def work(n):
        return n

    known_gate.override(task_id="literal_gate").expand(n=[1, 2, 3]) >> work.override(task_id="literal_work").expand(
        n=[1, 2, 3]
    )
    pushed = three()
    known_gate.override(task_id="pushed_gate").expand(n=pushed) >> work.override(task_id="pushed_work").expand(n=pushed)
    closed_gate = ShortCircuitOperator(task_id="plain_gate", python_callable=lambda: False)
    closed_gate >> work.override(task_id="literal_below").expand(n=[1, 2])
    closed_gate >> work.override(task_id="pushed_below").expand(n=pushed)

    @task.branch
    def arms():
        return "arm_a"

    chosen = arms()
    chosen >> work.override(task_id="arm_a").expand(n=pushed)
    chosen >> work.override(task_id="arm_b").expand(n=pushed)
    chosen >> work.override(task_id="arm_c").expand(n=[1, 2])
