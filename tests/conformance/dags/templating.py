"""Templates: what is rendered, macros and filters, undefined names, own environments, and the whole context."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import jinja2
import pendulum
from airflow.models.baseoperator import BaseOperator
from airflow.operators.bash import BashOperator
from airflow.operators.python import PythonOperator, get_current_context
from airflow.sdk import DAG, task

START = pendulum.datetime(2024, 1, 1)


class Echo(BaseOperator):
    template_fields = ("value", "more")
    template_fields_renderers = {"value": "json"}

    def __init__(self, *, value, more=None, **kwargs):
        super().__init__(**kwargs)
        self.value, self.more = value, more

    def execute(self, context):
        return [self.value, self.more]


class Holder:
    template_fields = ("inner",)

    def __init__(self, inner):
        self.inner = inner


class Nested(Echo):
    def execute(self, context):
        return self.value.inner


with DAG(
    "templating_fields",
    schedule=None,
    start_date=START,
    user_defined_macros={"plus": lambda a, b: a + b, "word": "macro", "ds": "shadowed"},
    user_defined_filters={"twice": lambda s: s * 2},
):
    Echo(task_id="nested", value={"a": ["{{ ds }}", ("{{ run_id }}", 1)], "{{ ds }}": {"{{ ds }}"}}, more=5)
    Echo(task_id="own_macros", value="{{ plus(1, 2) }} {{ word }} {{ 'x' | twice }}")
    Echo(task_id="literal", value="{% raw %}{{ ds }}{% endraw %}", more="{# gone #}left")
    Nested(task_id="object", value=Holder("{{ ts_nodash }}"))
    Echo(
        task_id="blocks",
        value="{% for i in range(3) %}{{ i }},{% endfor %}",
        more="{% if params %}p{% else %}none{% endif %}",
    )
    Echo(task_id="undefined", value="{{ no_such_name }}")
    Echo(task_id="undefined_attribute", value="[{{ dag_run.conf.nothing }}]", more="{{ dag_run.conf.get('x', 'd') }}")
    Echo(task_id="undefined_default", value="{{ no_such_name | default('d') }}")
    Echo(task_id="syntax", value="{{ broken")
    Echo(task_id="newline", value="a {{ ds }}\n", more="{{ ds }}\n\n")
    Echo(task_id="file_missing", value="echo {{ ds }}", more="missing.sql")
    BashOperator(task_id="sh_missing", bash_command="no_such_script.sh")
    BashOperator(task_id="sh_space", bash_command="echo ends.sh ")

with DAG("templating_strict", schedule=None, start_date=START, template_undefined=jinja2.StrictUndefined):
    Echo(task_id="undefined", value="{{ no_such_name }}")
    Echo(task_id="inside", value="{{ dag_run.conf.nothing }}")
    Echo(task_id="fine", value="{{ ds }}")

with DAG("templating_lenient", schedule=None, start_date=START, template_undefined=jinja2.Undefined):
    Echo(task_id="undefined", value="[{{ no_such_name }}]")
    Echo(task_id="below", value="{{ no_such_name.attribute }}")

with DAG("templating_macros", schedule=None, start_date=START):
    for name, text in {
        "ds_add": "{{ macros.ds_add('2024-02-28', 2) }} {{ macros.ds_add(ds, -17) }}",
        "ds_format": "{{ macros.ds_format('2024-02-28', '%Y-%m-%d', '%b %d') }}",
        "datetime_diff": "{{ macros.datetime_diff_for_humans(logical_date, logical_date.add(days=3)) }}",
        "uuid": "{{ macros.uuid.UUID(int=5) }}",
        "random": "{{ macros.random() < 1 }}",
        "json": "{{ macros.json.dumps({'a': [1]}) }}",
        "dateutil": "{{ macros.dateutil.parser.parse('2024-01-02').day }}",
        "time": "{{ macros.time.time() > 0 }}",
        "filters": "{{ logical_date | ds }} {{ logical_date | ds_nodash }} {{ logical_date | ts }} {{ logical_date | ts_nodash }} {{ logical_date | ts_nodash_with_tz }}",
        "pendulum": "{{ logical_date.in_timezone('Asia/Tokyo').isoformat() }} {{ data_interval_end.subtract(days=1).to_date_string() }}",
        "interval": "{{ data_interval_start == data_interval_end }} {{ dag_run.logical_date == logical_date }} {{ dag_run.run_type }}",
        "prev": "{{ prev_data_interval_start_success }} {{ prev_start_date_success }}",
        "ti": "{{ ti.task_id }} {{ ti.dag_id }} {{ ti.run_id }} {{ ti.try_number }} {{ ti.map_index }} {{ ti.max_tries }} {{ ti.state }}",
        "task": "{{ task.task_id }} {{ task.owner }} {{ task.retries }} {{ task.pool }} {{ task.upstream_task_ids }} {{ task.task_type }}",
        "dag": "{{ dag.dag_id }} {{ dag.tags }} {{ dag.timezone }} {{ dag.catchup }} {{ dag.task_ids | length }}",
        "conf": "{{ dag_run.conf }} {{ dag_run.conf['k'] }}",
        "start": "{{ dag_run.start_date is not none }} {{ dag_run.external_trigger is defined }} {{ ti.start_date is not none }}",
        "key": "{{ task_instance_key_str }} {{ test_mode is defined }} {{ inlets }} {{ outlets }}",
        "ds_gone": "{{ execution_date is defined }} {{ next_ds is defined }} {{ prev_ds is defined }} {{ tomorrow_ds is defined }} {{ yesterday_ds is defined }}",
        "var": "{{ var.value.conf_word }} {{ var.json.conf_table.a }} {{ var.value.get('none_such', 'fall') }} {{ var.json.get('none_such', {'x': 1}).x }}",
        "var_missing": "{{ var.value.none_such }}",
        "conn": "{{ conn.conf_web.host }} {{ conn.conf_web.port }} {{ conn.conf_web.extra_dejson.a }} {{ conn.get('conf_none', none) }}",
        "conn_missing": "{{ conn.conf_none.host }}",
    }.items():
        Echo(task_id=name, value=text)

with DAG("templating_context", schedule=None, start_date=START):

    @task
    def keys(**context):
        return sorted(k for k in context)

    @task
    def types(**context):
        return {
            k: type(context[k]).__name__
            for k in sorted(context)
            if context[k] is None or isinstance(context[k], str | datetime | bool | list | dict)
        }

    @task
    def current():
        context = get_current_context()
        return [context["ds"], context["ti"].task_id, context["run_id"] == context["dag_run"].run_id]

    @task
    def named(ds, ti=None, logical_date=None, *, data_interval_end=None, own="x", **rest):
        return [ds, ti.task_id, str(logical_date), str(data_interval_end), own, "ts" in rest, "ds" in rest]

    def classic(ds_nodash, own, templates_dict=None, **kwargs):
        return [ds_nodash, own, templates_dict, sorted(set(kwargs) & {"ti", "dag", "own"})]

    keys()
    types()
    current()
    named(ds="given")
    named.override(task_id="named_own")(ds="given", own="y")
    PythonOperator(task_id="classic", python_callable=classic, op_kwargs={"own": 1}, templates_dict={"t": "{{ ds }}"})
    PythonOperator(task_id="clash", python_callable=lambda ds: ds, op_kwargs={"ds": "mine"})
    PythonOperator(task_id="missing_argument", python_callable=lambda nothing: nothing)
    PythonOperator(task_id="positional", python_callable=lambda a, ds: [a, ds], op_args=["first"])

with DAG("templating_no_date", schedule=None, start_date=START):
    for name in (
        "ds",
        "ts",
        "logical_date",
        "data_interval_start",
        "run_id",
        "ts_nodash",
        "prev_data_interval_start_success",
    ):
        Echo(task_id=name, value="{{ " + name + " }}")

    @task
    def has(**context):
        return sorted(
            set(context)
            & {
                "ds",
                "ts",
                "logical_date",
                "data_interval_start",
                "data_interval_end",
                "ds_nodash",
                "prev_start_date_success",
            }
        )

    @task
    def wants(ds=None, logical_date=None):
        return [ds, logical_date]

    @task
    def needs(logical_date):
        return str(logical_date)

    has()
    wants()
    needs()
