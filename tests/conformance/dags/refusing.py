"""What tasks, their arguments and their edges take, and what they refuse."""

from __future__ import annotations

import datetime as dt

import pendulum
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import (
    PythonOperator,
)
from airflow.sdk import (
    DAG,
    Asset,
    BaseOperator,
    TaskGroup,
    chain,
    chain_linear,
    cross_downstream,
    task,
)

START = pendulum.datetime(2024, 1, 1)


def E(n="x", **k):
    return EmptyOperator(task_id=n, **k)


out, n = {}, 0


def t(name, f):
    global n
    n += 1
    try:
        with DAG(f"refusing_scratch_{n}", schedule=None, start_date=START, auto_register=False):
            r = f()
        out[name] = "taken"
    except Exception:
        out[name] = "refused"


@task
def base(v=1, ti=None):
    return v


@task
def kwonly(*, a, b=2):
    return [a, b]


def badctx():
    @task
    def f(ds="x"):
        return ds

    f()


def passctx():
    @task
    def f(ds=None):
        return ds

    f(ds="x")


def ctxnodefault():
    @task
    def f(ds, ti=None, *, run_id):
        return ds

    f()


def undefined_default():
    @task
    def f(a=1, *, ti):
        return a

    f()


t("ctxnodefault", ctxnodefault)
t("ctxkwonly", undefined_default)
t("badctx", badctx)
t("passctx", passctx)
t("missing", lambda: kwonly())
t("positional", lambda: kwonly(1))
t("unknown", lambda: kwonly(a=1, c=1))
t("nonsense", lambda: base.override(nonsense=1)())
t("expand_unknown", lambda: base.expand(v=[1], w=[2]))
t("expand_dup", lambda: base.partial(v=1).expand(v=[1]))
t("expand_none", lambda: base.expand())
t("expand_int", lambda: base.expand(v=3))
t("expand_text", lambda: base.expand(v="text"))
t("expand_set", lambda: base.expand(v={1, 2}))
t("expand_tuple", lambda: base.expand(v=(1, 2)))
t("expand_dict", lambda: base.expand(v={"a": 1}))
t("expand_gen", lambda: base.expand(v=(i for i in [1])))
t("expand_empty", lambda: base.expand(v=[]))
t("expand_nonelit", lambda: base.expand(v=None))
t("expand_range", lambda: base.expand(v=range(3)))
t("partial_unknown", lambda: base.partial(zz=1).expand(v=[1]))
t("expand_ctx", lambda: base.expand(ti=[1]))
t("partial_only", lambda: base.partial(v=1))
t("ek_dict", lambda: base.expand_kwargs({"v": 1}))
t("ek_listint", lambda: base.expand_kwargs([1]))
t("ek_empty", lambda: base.expand_kwargs([]))
t("ek_unknown", lambda: base.expand_kwargs([{"zz": 1}]))
t("ek_str", lambda: base.expand_kwargs("x"))
t("c_expand_taskid", lambda: PythonOperator.partial(task_id="x", python_callable=print).expand(task_id=["a"]))
t("c_no_taskid", lambda: PythonOperator.partial(python_callable=print).expand(op_args=[[1]]))
t("c_missing_required", lambda: PythonOperator.partial(task_id="x").expand(op_args=[[1]]))
t("c_unknown", lambda: PythonOperator.partial(task_id="x", zz=1))
t("c_expand_pool", lambda: BashOperator.partial(task_id="x").expand(bash_command=["echo"], pool=["a"]))
t("c_expand_retries", lambda: BashOperator.partial(task_id="x").expand(bash_command=["echo"], retries=[1]))
t("c_expand_trigger_rule", lambda: BashOperator.partial(task_id="x").expand(bash_command=["echo"], trigger_rule=["a"]))
t("c_expand_prio", lambda: BashOperator.partial(task_id="x").expand(bash_command=["echo"], priority_weight=[1]))
t("c_expand_cb", lambda: BashOperator.partial(task_id="x").expand(bash_command=["echo"], on_success_callback=[print]))
t("c_expand_nothing", lambda: BashOperator.partial(task_id="x", bash_command="echo").expand())
t("c_expand_env", lambda: BashOperator.partial(task_id="x", bash_command="echo").expand(env=[{"a": "1"}]))
t("c_expand_params", lambda: BashOperator.partial(task_id="x", bash_command="echo").expand(params=[{"a": "1"}]))
t("empty_expand", lambda: EmptyOperator.partial(task_id="x").expand(doc=["a"]))
t("op_positional", lambda: EmptyOperator("x"))
t("bash_positional", lambda: BashOperator("x", "echo"))
t("op_unknown", lambda: E(zz=1))
t("provide_context", lambda: PythonOperator(task_id="x", python_callable=print, provide_context=True))
t("sla", lambda: E(sla=dt.timedelta(1)))
t("task_concurrency", lambda: E(task_concurrency=1))
t("resources", lambda: E(resources={"cpus": 1}))
t("run_as_user", lambda: E(run_as_user="u"))
t("executor", lambda: E(executor="LocalExecutor"))
t("executor_unknown", lambda: E(executor="Nope"))
t("executor_config", lambda: E(executor_config={"a": 1}))
t("email", lambda: E(email=["a@b.c"], email_on_failure=True))
t("inlets", lambda: E(inlets=[Asset("a")], outlets=[Asset("b")]))
t("inlet_str", lambda: E(inlets="auto"))
t("outlet_str", lambda: E(outlets=["x"]))
t("weight_odd", lambda: E(weight_rule="odd"))
t("prio_float", lambda: E(priority_weight=1.5))
t("prio_text", lambda: E(priority_weight="1"))
t("pool_slots0", lambda: E(pool_slots=0))
t("tr_odd", lambda: E(trigger_rule="odd"))
t("tr_enum_upper", lambda: E(trigger_rule="ALL_DONE"))
t("tr_none", lambda: E(trigger_rule=None))
t("tr_dummy", lambda: E(trigger_rule="dummy"))
t("tr_none_skipped", lambda: E(trigger_rule="none_failed_or_skipped"))
for name, i in {
    "space": "a b",
    "long251": "a" * 251,
    "long250": "a" * 250,
    "slash": "a/b",
    "empty": "",
    "num": 5,
    "dot": "a.b",
    "dash": "a-b",
    "uni": "ü",
    "colon": "a:b",
    "plus": "a+b",
    "nl": "a\n",
}.items():
    t("id_" + name, lambda i=i: E(i))
    t("gid_" + name, lambda i=i: TaskGroup(i))
    t("did_" + name, lambda i=i: DAG(i, schedule=None))
t("no_id", lambda: EmptyOperator())
t("start_text", lambda: E(start_date="2024-01-01"))
t("start_naive", lambda: E(start_date=dt.datetime(2024, 1, 1)))
t("start_date_obj", lambda: E(start_date=dt.date(2024, 1, 1)))
t("retry_delay_text", lambda: E(retry_delay="5"))
t("retry_delay_num", lambda: E(retry_delay=5))
t("retry_delay_none", lambda: E(retry_delay=None))
t("exec_timeout_num", lambda: E(execution_timeout=5))
t("exec_timeout_neg", lambda: E(execution_timeout=dt.timedelta(seconds=-1)))
t("pool_num", lambda: E(pool=5))
t("pool_none", lambda: E(pool=None))
t("retries_text", lambda: E(retries="1"))
t("retries_none", lambda: E(retries=None))
t("retries_neg", lambda: E(retries=-1))
t("retries_float", lambda: E(retries=1.0))
t("max_tis0", lambda: E(max_active_tis_per_dag=0))
t("backoff_num", lambda: E(retry_exponential_backoff=3))
t("max_retry_num", lambda: E(max_retry_delay=5))
t("wfd", lambda: E(wait_for_downstream=True, depends_on_past=False))
t("owner_none", lambda: E(owner=None))
t("params_list", lambda: E(params=[1]))
t("doc", lambda: E(doc_md="x", doc="y", doc_json="{}", doc_yaml="a: 1", doc_rst="r"))
t("display", lambda: E(task_display_name="é 1"))
t("cb_text", lambda: E(on_failure_callback="x"))
t("cb_list", lambda: E(on_failure_callback=[print, print]))
t("queue_num", lambda: E(queue=5))
t("email_num", lambda: E(email=5))
t("py_text", lambda: PythonOperator(task_id="x", python_callable="x"))
t("py_none", lambda: PythonOperator(task_id="x"))
t("py_args_text", lambda: PythonOperator(task_id="x", python_callable=print, op_args="abc"))
t("py_kwargs_list", lambda: PythonOperator(task_id="x", python_callable=print, op_kwargs=[1]))
t("bash_none", lambda: BashOperator(task_id="x"))
t("bash_num", lambda: BashOperator(task_id="x", bash_command=5))
t("bash_list", lambda: BashOperator(task_id="x", bash_command=["a"]))
t("bash_env_num", lambda: BashOperator(task_id="x", bash_command="a", env=5))
t("base", lambda: BaseOperator(task_id="x"))
t("dup", lambda: [E("a"), E("a")])
t("dup_group", lambda: [TaskGroup("g"), TaskGroup("g")])
t("dup_group_task", lambda: [E("g"), TaskGroup("g")])
t("dup_task_group", lambda: [TaskGroup("g"), E("g")])


def selfloop():
    a = E("a")
    a >> a


def relint():
    E("a") >> 5


def relnone():
    E("a") >> None


def rellist():
    [E("a"), E("b")] >> [E("c")]


def reldup():
    a, b = E("a"), E("b")
    a >> b
    a >> b


t("selfloop", selfloop)
t("relint", relint)
t("relnone", relnone)
t("rellist", rellist)
t("reldup", reldup)
t("relempty", lambda: E("a") >> [])


def twodags():
    with DAG("s1", schedule=None, start_date=START, auto_register=False):
        a = E("a")
    with DAG("s2", schedule=None, start_date=START, auto_register=False):
        b = E("b")
    a >> b


t("twodags", twodags)
t("chain_sizes", lambda: chain([E("a"), E("b")], [E("c")]))
t("chain_text", lambda: chain(E("a"), "b"))
t("chain_none", lambda: chain())
t("chain_one", lambda: chain(E("a")))
t("chain_linear_none", lambda: chain_linear())
t("chain_linear_one", lambda: chain_linear(E("a")))
t("cross_empty", lambda: cross_downstream([], []))
t("chain_empty_list", lambda: chain(E("a"), [], E("b")))
t("chain_linear_empty", lambda: chain_linear(E("a"), [], E("b")))

#: refused here because it would go wrong later, or taken because its meaning is plain
OWN = """
expand_dup c_expand_pool weight_odd prio_float prio_text gid_long250 id_nl gid_nl did_nl start_text
start_date_obj retry_delay_none exec_timeout_num pool_num cb_text queue_num email_num
""".split()

with DAG("refusing_tasks", schedule=None, start_date=START):

    @task
    def answers():
        kept = {name: how for name, how in out.items() if name not in OWN}
        return [len(kept), sorted(name for name, how in kept.items() if how == "refused")]

    answers()
