"""Task groups: ids, edges to and through them, default arguments, branches into them."""

from __future__ import annotations

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import (
    DAG,
    Label,
    TaskGroup,
    chain,
    chain_linear,
    cross_downstream,
    task,
    task_group,
)

START = pendulum.datetime(2024, 1, 1)

with DAG("grouping_mapped", schedule=None, start_date=START):

    @task
    def leaf(a, b):
        return [a, b]

    @task_group
    def inner(x):
        first = leaf.override(task_id="first")(x, 1)

        @task
        def second(v):
            return {"v": v}

        return second(first)

    @task_group
    def outer(y):
        return inner(y)

    @task
    def gather(vs):
        return [v for v in vs]

    gather(outer.expand(y=[1, 2]))

with DAG("grouping_ids", schedule=None, start_date=START):

    @task_group(group_id="named", prefix_group_id=False, tooltip="tip", ui_color="red")
    def a():
        EmptyOperator(task_id="bare")

        @task_group
        def b():
            """doc"""
            EmptyOperator(task_id="x")

        b()
        b()

    a()

    @task_group
    def again():
        EmptyOperator(task_id="x")

    again()
    again()
    again.override(group_id="else")()

    @task
    def f():
        return 1

    f()
    f()
    f()
    with TaskGroup("tg") as tg:
        f()
        f()
        with TaskGroup("deep", prefix_group_id=False):
            f()
            EmptyOperator(task_id="deepest")
    with TaskGroup("tg2", add_suffix_on_collision=True):
        EmptyOperator(task_id="q")
    with TaskGroup("tg2", add_suffix_on_collision=True):
        EmptyOperator(task_id="q")

with DAG("grouping_edges", schedule=None, start_date=START):

    def E(n, **k):
        return EmptyOperator(task_id=n, **k)

    chain(E("c1"), [E("c2"), E("c3")], [E("c4"), E("c5")], E("c6"))
    chain_linear([E("l1"), E("l2")], [E("l3"), E("l4")], E("l5"))
    cross_downstream([E("x1"), E("x2")], [E("x3"), E("x4")])
    with TaskGroup("ga") as ga:
        E("a") >> E("b")
    with TaskGroup("gb") as gb:
        [E("a"), E("b")]
    chain(ga, Label("lbl"), gb, E("after"))
    E("la") >> Label("one") >> E("lb") >> Label("two") >> [E("lc"), E("ld")]
    [E("m1"), E("m2")] >> Label("both") >> E("m3")
    E("r1") << Label("back") << E("r2")

    @task
    def dec(v=None):
        return v

    d = dec.override(task_id="d1")()
    d >> ga
    dec.override(task_id="d2")(d) >> [gb, E("e9")]
    E("s1").set_downstream([E("s2"), E("s3")], edge_modifier=Label("sd"))
    E("s4").set_upstream(E("s5"))

with DAG(
    "grouping_defaults",
    schedule=None,
    start_date=START,
    default_args={"retries": 1, "owner": "dag", "retry_delay": pendulum.duration(seconds=1), "pool": "conf_one"},
):
    with TaskGroup("o", default_args={"retries": 2, "owner": "outer"}):
        EmptyOperator(task_id="a")
        with TaskGroup("i", default_args={"owner": "inner"}):
            EmptyOperator(task_id="b")

            @task
            def c(task=None):
                return [task.owner, task.retries, task.pool]

            c()
            c.override(retries=5, task_id="c2", pool="default_pool")()

    @task_group(default_args={"owner": "deco", "priority_weight": 7})
    def g():
        c.override(task_id="c3")()

        @task(owner="self")
        def d(task=None):
            return [task.owner, task.retries, task.priority_weight]

        d()

    g()

with DAG("grouping_branches", schedule=None, start_date=START):

    @task.branch
    def pick_group():
        return "left"

    @task.branch
    def pick_mixed():
        return ["m_left", "m_single"]

    @task.branch
    def pick_in_group():
        return ["r_grp.inside.deep"]

    @task.branch(task_id="pick_nested_group")
    def png():
        return "n_outer.n_inner"

    with TaskGroup("left") as left:
        EmptyOperator(task_id="a") >> EmptyOperator(task_id="b")
    with TaskGroup("right") as right:
        EmptyOperator(task_id="a") >> EmptyOperator(task_id="b")
    pick_group() >> [left, right] >> EmptyOperator(task_id="join", trigger_rule="none_failed_min_one_success")
    with TaskGroup("m_left") as ml:
        EmptyOperator(task_id="a")
    with TaskGroup("m_right") as mr:
        EmptyOperator(task_id="a")
    pick_mixed() >> [ml, mr, EmptyOperator(task_id="m_single"), EmptyOperator(task_id="m_other")]
    with TaskGroup("r_grp") as rg:
        with TaskGroup("inside"):
            EmptyOperator(task_id="deep")
            EmptyOperator(task_id="deep2")
        EmptyOperator(task_id="shallow")
    pick_in_group() >> rg
    with TaskGroup("n_outer") as no:
        with TaskGroup("n_inner"):
            EmptyOperator(task_id="x")
        with TaskGroup("n_inner2"):
            EmptyOperator(task_id="x")
    png() >> no

with DAG("grouping_empty", schedule=None, start_date=START):
    a, z = EmptyOperator(task_id="a"), EmptyOperator(task_id="z")
    with TaskGroup("empty") as e:
        pass
    a >> e >> z
    with TaskGroup("outer") as o:
        with TaskGroup("in_empty"):
            pass
        EmptyOperator(task_id="t")
    z >> o
