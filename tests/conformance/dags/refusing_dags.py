"""What DAGs, groups, sensors, assets and params take, and what they refuse."""

from __future__ import annotations

import datetime as dt

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import (
    BranchPythonOperator,
    ShortCircuitOperator,
)
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.sensors.external_task import (
    ExternalTaskMarker,
    ExternalTaskSensor,
)
from airflow.providers.standard.sensors.filesystem import FileSensor
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    BaseSensorOperator,
    Param,
    TaskGroup,
    task,
)

START = pendulum.datetime(2024, 1, 1)


def E(n="x", **k):
    return EmptyOperator(task_id=n, **k)


out, n = {}, 0


@task
def base(v=1, ti=None):
    return v


def t(name, f):
    global n
    n += 1
    try:
        with DAG(f"refusing_dags_scratch_{n}", schedule=None, start_date=START, auto_register=False):
            r = f()
        out[name] = "taken"
    except Exception:
        out[name] = "refused"


D = lambda **k: DAG("d", **{"schedule": None, "start_date": START, "auto_register": False, **k})
for name, k in {
    "sched_interval": {"schedule_interval": None},
    "timetable": {"timetable": None},
    "concurrency": {"concurrency": 1},
    "fail_stop": {"fail_stop": True},
    "default_view": {"default_view": "grid"},
    "orientation": {"orientation": "TB"},
    "sla_miss": {"sla_miss_callback": print},
    "full_filepath": {"full_filepath": "x"},
    "catchup_text": {"catchup": "x"},
    "max_runs_text": {"max_active_runs": "x"},
    "max_runs0": {"max_active_runs": 0},
    "tags_text": {"tags": "abc"},
    "tags_num": {"tags": [1]},
    "tag_long": {"tags": ["x" * 101]},
    "tags_set": {"tags": {"a"}},
    "desc_num": {"description": 5},
    "start_text": {"start_date": "2024-01-01"},
    "start_none": {"start_date": None},
    "end_before": {"end_date": dt.datetime(2023, 1, 1)},
    "timeout_num": {"dagrun_timeout": 5},
    "params_bad": {"params": {"x": Param("a", type="integer")}},
    "params_nodefault": {"params": {"x": Param(type="integer")}},
    "sched_nodefault": {"schedule": "@daily", "params": {"x": Param(type="integer")}},
    "sched_odd": {"schedule": "@sometimes"},
    "sched_num": {"schedule": 5},
    "sched_bool": {"schedule": True},
    "sched_empty": {"schedule": ""},
    "sched_emptylist": {"schedule": []},
    "sched_strlist": {"schedule": ["a"]},
    "sched_td0": {"schedule": dt.timedelta(0)},
    "sched_tdneg": {"schedule": dt.timedelta(-1)},
    "sched_6": {"schedule": "0 0 * * * *"},
    "sched_7": {"schedule": "0 0 0 * * * *"},
    "sched_cont": {"schedule": "@continuous"},
    "sched_cont1": {"schedule": "@continuous", "max_active_runs": 1},
    "sched_alias": {"schedule": AssetAlias("q")},
    "sched_asset": {"schedule": Asset("q")},
    "default_args_list": {"default_args": [1]},
    "default_args_none": {"default_args": None},
    "access": {"access_control": {"r": {"can_read"}}},
    "jinja": {"jinja_environment_kwargs": {"x": 1}},
    "undefined": {"template_undefined": None},
    "owner_links": {"owner_links": {"a": "x"}},
    "owner_links_ok": {"owner_links": {"a": "https://x.y"}},
    "fail_fast": {"fail_fast": True},
    "consec": {"max_consecutive_failed_dag_runs": -1},
    "deadline": {"deadline": 5},
    "disp": {"dag_display_name": "ü x"},
    "unknown": {"zz": 1},
    "user_macros": {"user_defined_macros": []},
    "params_list": {"params": [1]},
    "is_paused": {"is_paused_upon_creation": True},
    "weekly": {"schedule": "@weekly"},
    "midnight": {"schedule": "@midnight"},
    "fortnight": {"schedule": "@fortnightly"},
    "hourlyCase": {"schedule": "@Hourly"},
    "quarterly": {"schedule": "@quarterly"},
    "none_text": {"schedule": "None"},
    "doc_file": {"doc_md": "missing.md"},
    "catchup_none": {"catchup": None},
    "bundle": {"dag_id": None},
}.items():
    t("dag_" + name, lambda k=k: D(**k))


def ff():
    with D(fail_fast=True):
        E("a", trigger_rule="all_done")


t("ff_rule", ff)
t(
    "group_doc",
    lambda: TaskGroup("g", tooltip="t", ui_color="#fff", ui_fgcolor="#000", default_args={}, group_display_name="é"),
)
t("group_unknown", lambda: TaskGroup("g", zz=1))
t("group_none", lambda: TaskGroup(None))
t("group_noargs", lambda: TaskGroup())
t("tdr_none", lambda: TriggerDagRunOperator(task_id="x"))
t("tdr_conf_text", lambda: TriggerDagRunOperator(task_id="x", trigger_dag_id="y", conf="text"))
t("tdr_exec_date", lambda: TriggerDagRunOperator(task_id="x", trigger_dag_id="y", execution_date="2024-01-01"))
t("tdr_ld_num", lambda: TriggerDagRunOperator(task_id="x", trigger_dag_id="y", logical_date=5))
t("tdr_states", lambda: TriggerDagRunOperator(task_id="x", trigger_dag_id="y", allowed_states=["odd"]))
t(
    "tdr_wait_num",
    lambda: TriggerDagRunOperator(
        task_id="x",
        trigger_dag_id="y",
        wait_for_completion=True,
        poke_interval=5,
        deferrable=True,
        skip_when_already_exists=True,
        fail_when_dag_is_paused=True,
    ),
)
t("ets_none", lambda: ExternalTaskSensor(task_id="x"))
t("ets_dagonly", lambda: ExternalTaskSensor(task_id="x", external_dag_id="y"))
t(
    "ets_both",
    lambda: ExternalTaskSensor(task_id="x", external_dag_id="y", external_task_id="a", external_task_ids=["b"]),
)
t(
    "ets_group",
    lambda: ExternalTaskSensor(task_id="x", external_dag_id="y", external_task_id="a", external_task_group_id="g"),
)
t(
    "ets_delta_fn",
    lambda: ExternalTaskSensor(
        task_id="x", external_dag_id="y", execution_delta=dt.timedelta(1), execution_date_fn=print
    ),
)
t(
    "ets_overlap",
    lambda: ExternalTaskSensor(task_id="x", external_dag_id="y", allowed_states=["failed"], failed_states=["failed"]),
)
t("ets_odd", lambda: ExternalTaskSensor(task_id="x", external_dag_id="y", allowed_states=["odd"]))
t("ets_dupids", lambda: ExternalTaskSensor(task_id="x", external_dag_id="y", external_task_ids=["a", "a"]))
t("ets_dagstate", lambda: ExternalTaskSensor(task_id="x", external_dag_id="y", allowed_states=["skipped"]))
t(
    "ets_taskstate",
    lambda: ExternalTaskSensor(
        task_id="x", external_dag_id="y", external_task_id="q", allowed_states=["skipped", "removed"]
    ),
)
t("etm", lambda: ExternalTaskMarker(task_id="x", external_dag_id="y", external_task_id="z", recursion_depth=0))
t("etm_none", lambda: ExternalTaskMarker(task_id="x", external_dag_id="y"))


class Sn(BaseSensorOperator):
    def poke(self, context):
        return True


t("sensor_neg", lambda: Sn(task_id="x", poke_interval=-1))
t("sensor_text", lambda: Sn(task_id="x", poke_interval="5"))
t("sensor_td", lambda: Sn(task_id="x", poke_interval=dt.timedelta(seconds=5), timeout=dt.timedelta(seconds=5)))
t("sensor_mode", lambda: Sn(task_id="x", mode="odd"))
t("sensor_soft_never", lambda: Sn(task_id="x", soft_fail=True, never_fail=True))
t("sensor_silent", lambda: Sn(task_id="x", silent_fail=True))
t("sensor_timeout0", lambda: Sn(task_id="x", timeout=0))
t("sensor_timeout_neg", lambda: Sn(task_id="x", timeout=-1))
t("sensor_max_wait", lambda: Sn(task_id="x", exponential_backoff=True, max_wait=5))
t("sensor_max_wait_neg", lambda: Sn(task_id="x", max_wait=dt.timedelta(-1)))
t("file_none", lambda: FileSensor(task_id="x"))
t("pysensor", lambda: PythonSensor(task_id="x", python_callable=print, op_args=[1], templates_dict={"a": 1}))
for name, a in {
    "none": (),
    "name": ("n",),
    "uri": (None, "s3://a/b"),
    "both": ("n", "s3://a"),
    "space": ("a b",),
    "long": ("x" * 1501,),
    "empty": ("",),
    "emptyuri": ("n", ""),
    "nonascii": ("é",),
    "extra": ("n", "x://y"),
    "num": (5,),
    "airflow_scheme": ("n", "airflow://x"),
    "plainuri": ("n", "just/path"),
    "spaceuri": ("n", "a b"),
}.items():
    t("asset_" + name, lambda a=a: Asset(*a))
t("asset_extra_ok", lambda: Asset("n", extra={"a": 1}))
t("asset_extra_text", lambda: Asset("n", extra="text"))
t("asset_extra_obj", lambda: Asset("n", extra={"a": object()}))
t("asset_group", lambda: Asset("n", group="g"))
t("asset_group_num", lambda: Asset("n", group=5))
t("asset_and", lambda: Asset("a") & Asset("b") | AssetAlias("c"))
t("asset_and_num", lambda: Asset("a") & 5)
t("alias_none", lambda: AssetAlias())
t("alias_empty", lambda: AssetAlias(""))
t("alias_space", lambda: AssetAlias("a b"))
t("param_bad", lambda: Param("a", type="integer").resolve())
t("param_schema_bad", lambda: Param(1, type="odd"))
t("param_nodefault", lambda: Param(type="integer").resolve())
t("param_datetime", lambda: Param(dt.datetime(2024, 1, 1)))
t("param_set", lambda: Param({1}))
t("param_none", lambda: Param().resolve())
t("param_date", lambda: Param(dt.date(2024, 1, 1), type="string", format="date"))
t("param_multi", lambda: Param("a", type=["integer", "string"]).resolve())


def badsetup():
    E("a").as_teardown(setups=E("b"))


t("setup_made", badsetup)
t("setup_rule", lambda: E("a", trigger_rule="all_done").as_setup())
t("teardown_rule", lambda: E("a", trigger_rule="one_success").as_teardown())
t("teardown_setups_text", lambda: E("a").as_teardown(setups="b"))
t("both_setup_td", lambda: E("a").as_setup().as_teardown())
t("branch_noreturn", lambda: BranchPythonOperator(task_id="x", python_callable=lambda: None))
t("sc", lambda: ShortCircuitOperator(task_id="x", python_callable=lambda: 1, ignore_downstream_trigger_rules=False))
t("bool_xcomarg", lambda: bool(base()))
t("iter_xcomarg", lambda: list(base()))
t("len_xcomarg", lambda: len(base()))
t("idx_num", lambda: base()[0])
t("xcomarg_attr", lambda: base().foo)
t("xcomarg_eq", lambda: base() == 1)
t("xcomarg_fmt", lambda: f"{base()}")
t("xcomarg_call", lambda: base()())
t("xcomarg_in", lambda: 1 in base())
t("unpack", lambda: (lambda a, b: 1)(*base()))
t("xcomarg_dict_unpack", lambda: dict(**base()))
t("xcom_map_notcallable", lambda: base().map(5))
t("xcom_map_task", lambda: base().map(base))
t("zip_none", lambda: base().zip())
t("concat_none", lambda: base().concat())
t("zip_list", lambda: base().zip([1]))
t("map_key", lambda: base()["a"].map(lambda x: x))
t("zip_key", lambda: base()["a"].zip(base()["b"]))

#: refused here because it would go wrong later, or taken because its meaning is plain
OWN = """
dag_max_runs0 dag_tags_text dag_desc_num dag_start_text dag_sched_nodefault dag_sched_odd dag_sched_empty
dag_sched_td0 dag_sched_tdneg dag_sched_7 dag_default_args_none dag_owner_links dag_consec dag_deadline
dag_fortnight dag_none_text tdr_exec_date tdr_ld_num tdr_states sensor_max_wait_neg asset_num asset_extra_text
asset_group_num both_setup_td
""".split()

with DAG("refusing_dags", schedule=None, start_date=START):

    @task
    def answers():
        kept = {name: how for name, how in out.items() if name not in OWN}
        return [len(kept), sorted(name for name, how in kept.items() if how == "refused")]

    answers()
