"""Setups and teardowns made of plain tasks, in groups, by decorators, and skipped."""

from __future__ import annotations

import pendulum
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, setup, task, teardown

START = pendulum.datetime(2024, 1, 1)


def E(n, **k):
    return EmptyOperator(task_id=n, **k)


def F(n, **k):
    return BashOperator(task_id=n, bash_command="exit 1", **k)


def S(n, **k):
    return BashOperator(task_id=n, bash_command="exit 99", **k)


with DAG("teardowns_marked", schedule=None, start_date=START):
    s1, t1 = E("s1"), E("t1")
    s1 >> F("w1") >> t1.as_teardown(setups=s1)
    s2a, s2b, t2 = E("s2a"), F("s2b"), E("t2")
    [s2a, s2b] >> E("w2") >> t2.as_teardown(setups=[s2a, s2b])
    s3, t3 = E("s3"), F("t3").as_teardown(on_failure_fail_dagrun=True)
    s3.as_setup() >> E("w3") >> t3
    s3 >> t3
    s4 = S("s4").as_setup()
    t4 = E("t4").as_teardown(setups=s4)
    s4 >> E("w4") >> t4
    t4 >> E("after4")
    s5 = E("s5").as_setup()
    t5 = S("t5").as_teardown(setups=s5, on_failure_fail_dagrun=True)
    s5 >> E("w5") >> t5 >> E("after5")
    E("made_teardown").as_teardown(setups=E("made_setup"))
    E("setup_with_rule", trigger_rule="all_done").as_setup()
    s6 = F("s6").as_setup()
    s6 >> E("t6", trigger_rule="one_success").as_teardown(setups=s6)

with DAG("teardowns_alone", schedule=None, start_date=START):
    with E("t_alone").as_teardown():
        E("in1")
        F("in2")
    with E("s_alone").as_setup():
        E("in3")

with DAG("teardowns_grouped", schedule=None, start_date=START):
    with TaskGroup("g") as g:
        s = E("s").as_setup()
        t = F("t").as_teardown(setups=s)
        s >> E("w") >> t
    g >> E("after")
    with TaskGroup("h") as h:
        s = E("s").as_setup()
        t = E("t").as_teardown(setups=s)
        s >> F("w") >> t
    h >> E("after_h")

with DAG("teardowns_decorated", schedule=None, start_date=START):

    @setup
    def make():
        return "cluster"

    @teardown(on_failure_fail_dagrun=True)
    def drop(c):
        return "dropped " + c

    @task
    def work(c, n):
        if n == 2:
            raise ValueError
        return n

    c = make()
    d = drop(c)
    work.partial(c=c).expand(n=[1, 2, 3]) >> d

    @setup
    @task.bash
    def shell():
        return "echo up"

    @teardown
    @task.bash
    def shell_down():
        return "echo down"

    x = shell()
    x >> E("between") >> shell_down().as_teardown(setups=x)

with DAG("teardowns_skipped", schedule=None, start_date=START):

    @task.short_circuit
    def gate():
        return False

    s = E("s").as_setup()
    t = E("t").as_teardown(setups=s)
    gate() >> s >> E("w") >> t
    s2 = E("s2").as_setup()
    t2 = E("t2").as_teardown(setups=s2)

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def gate2():
        return False

    s2 >> gate2() >> E("w2") >> t2

    @task.branch
    def br():
        return "b1"

    s3 = E("s3").as_setup()
    t3 = E("t3").as_teardown(setups=s3)
    s3 >> br() >> [E("b1"), E("b2")] >> t3
    s4 = S("s4").as_setup()
    t4 = E("t4").as_teardown(setups=s4)
    s4 >> E("w4") >> t4
    s5 = F("s5").as_setup()
    t5 = E("t5").as_teardown(setups=s5)
    s5 >> E("w5") >> t5
