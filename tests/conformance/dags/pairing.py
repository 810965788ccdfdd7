"""Results zipped, joined and turned before a task is mapped over them, and pulled in all forms."""

from __future__ import annotations
import pendulum
from airflow.sdk import DAG, task, task_group, XComArg, get_current_context
from airflow.providers.standard.operators.python import PythonOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.exceptions import AirflowSkipException

START = pendulum.datetime(2024, 1, 1)

with DAG("pairing_zips", schedule=None, start_date=START):

    @task
    def nums():
        return [1, 2, 3]

    @task
    def letters():
        return ["a", "b"]

    @task
    def table():
        return {"k": 1, "m": 2}

    @task
    def show(v):
        return v

    @task
    def gather(vs):
        return list(vs)

    n, l = nums(), letters()
    show.override(task_id="zip2").expand(v=n.zip(l))
    show.override(task_id="zip_fill").expand(v=n.zip(l, fillvalue="-"))
    show.override(task_id="zip3").expand(v=n.zip(l, n, fillvalue=0))
    show.override(task_id="concat").expand(v=n.concat(l))
    show.override(task_id="concat3").expand(v=n.concat(l, n))
    show.override(task_id="map_plain").expand(v=n.map(lambda x: x * 10))
    show.override(task_id="map_twice").expand(v=n.map(lambda x: x * 10).map(lambda x: str(x)))
    show.override(task_id="map_of_zip").expand(v=n.zip(l).map(lambda p: {"p": list(p)}))
    show.override(task_id="zip_of_map").expand(v=n.map(lambda x: -x).zip(l.map(lambda x: x.upper())))
    show.override(task_id="map_of_concat").expand(v=n.concat(l).map(lambda x: str(x) + "!"))
    show.override(task_id="concat_of_map").expand(v=n.map(lambda x: x + 100).concat(l))

    def none_skips(x):
        if x == 2:
            raise AirflowSkipException("two")
        return x

    show.override(task_id="map_skips").expand(v=n.map(none_skips))
    show.override(task_id="plain_dict").expand(v=table())
    gather(n.map(lambda x: x * 2))
    gather.override(task_id="gather_zip")(n.zip(l))
    gather.override(task_id="gather_concat")(n.concat(l))
    s = show.override(task_id="mapped_src").expand(v=n)
    show.override(task_id="map_of_mapped").expand(v=s.map(lambda x: x + 1))
    show.override(task_id="zip_mapped").expand(v=s.zip(l))
    gather.override(task_id="gather_mapped_map")(s.map(lambda x: [x]))
    gather.override(task_id="gather_mapped_concat")(s.concat(l))

with DAG("pairing_dicts", schedule=None, start_date=START):

    @task
    def rows():
        return [{"a": 1, "b": 2}, {"a": 3}, {"b": 9, "a": 0}]

    @task
    def add(a, b=100):
        return a + b

    add.expand_kwargs(rows())
    add.override(task_id="mapped_kwargs").expand_kwargs(rows().map(lambda r: {"a": r["a"] * 2}))
    add.override(task_id="filter_kwargs").expand_kwargs(rows().map(lambda r: r if "b" in r else {"a": 0, "b": 0}))

    @task
    def only_a():
        return [{"a": 5}, {"a": 6}]

    add.override(task_id="with_partial").partial(b=1).expand_kwargs(only_a())

    @task
    def one():
        return 41

    PythonOperator.partial(task_id="classic", python_callable=lambda *a, **k: [list(a), k]).expand_kwargs(
        only_a().map(lambda r: {"op_args": [r["a"]], "op_kwargs": {"z": r["a"]}})
    )
    BashOperator.partial(task_id="sh", env={"X": "1"}).expand_kwargs(
        [{"bash_command": "echo $X"}, {"bash_command": "echo $X $Y", "env": {"X": "2", "Y": "3"}}]
    )
    BashOperator.partial(task_id="per_task_args").expand_kwargs(
        [{"bash_command": "echo a", "do_xcom_push": False}, {"bash_command": "echo b"}]
    )

with DAG("pairing_pulls", schedule=None, start_date=START):

    @task
    def m(n, ti=None):
        ti.xcom_push("k", n * 10)
        if n != 2:
            ti.xcom_push("odd", n)
        return n

    @task
    def p(ti=None):
        ti.xcom_push(key="a b", value=1)
        ti.xcom_push("none", None)
        return {"x": 1}

    def safe(f):
        try:
            r = f()
            if isinstance(r, (str, int, dict, type(None))):
                return [type(r).__name__, r]
            return ["seq", list(r)]
        except Exception as e:
            return ["raised", type(e).__name__]

    @task
    def pull(ti=None):
        return {
            "list_key": safe(lambda: ti.xcom_pull(task_ids=["m", "p"], key="k")),
            "list_one": safe(lambda: ti.xcom_pull(task_ids=["p"])),
            "tuple": safe(lambda: ti.xcom_pull(task_ids=("p", "m"))),
            "set": safe(lambda: ti.xcom_pull(task_ids={"p"})),
            "idx": safe(lambda: ti.xcom_pull(task_ids="m", map_indexes=0)),
            "idxs": safe(lambda: ti.xcom_pull(task_ids="m", map_indexes=[0, 2], key="k")),
            "idxs_range": safe(lambda: ti.xcom_pull(task_ids="m", map_indexes=range(2), key="k")),
            "list_idx": safe(lambda: ti.xcom_pull(task_ids=["m"], map_indexes=1, key="k")),
            "list_idxs": safe(lambda: ti.xcom_pull(task_ids=["m", "p"], map_indexes=[0, 1])),
            "idx_minus": safe(lambda: ti.xcom_pull(task_ids="p", map_indexes=-1)),
            "odd": safe(lambda: ti.xcom_pull(task_ids="m", key="odd")),
            "odd_idx1": safe(lambda: ti.xcom_pull(task_ids="m", key="odd", map_indexes=1)),
            "none_key": safe(lambda: ti.xcom_pull(task_ids="p", key="none")),
            "weird_key": safe(lambda: ti.xcom_pull(task_ids="p", key="a b")),
            "no_args": safe(lambda: ti.xcom_pull()),
            "empty_list": safe(lambda: ti.xcom_pull(task_ids=[])),
            "positional": safe(lambda: ti.xcom_pull("p")),
            "bad_kw": safe(lambda: ti.xcom_pull(task_id="p")),
        }

    @task
    def pull_tpl(a):
        return a

    t = pull_tpl(
        "{{ ti.xcom_pull('p')['x'] }}|{{ ti.xcom_pull(task_ids='m', map_indexes=1) }}|{{ ti.xcom_pull(task_ids=['p','absent']) }}|{{ task_instance.xcom_pull(task_ids='m') }}"
    )
    mm, pp = m.expand(n=[1, 2, 3]), p()
    [mm, pp] >> pull()
    [mm, pp] >> t

    @task
    def slices(a, b, c):
        return [a, b, c]

    slices(pp["x"], 0, XComArg(mm.operator, key="k"))
    (
        BashOperator(
            task_id="xa_in_tpl", bash_command="echo {{ ti.xcom_pull(task_ids='m', key='k', map_indexes=[0,1]) }}"
        )
        << mm
    )
