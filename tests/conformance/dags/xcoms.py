"""XComs: what types come through, several outputs, pulls across runs and DAGs, and what cannot be sent."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from dataclasses import dataclass

import pendulum
from airflow.models.baseoperator import BaseOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG, Asset, XComArg, task
from pydantic import BaseModel

START = pendulum.datetime(2024, 1, 1)


@dataclass
class Point:
    x: int
    y: int


class Shape(BaseModel):
    name: str
    sides: int = 0


class Color(enum.Enum):
    RED = "red"


class Level(str, enum.Enum):
    HIGH = "high"


class Opaque:
    pass


with DAG("xcoms_types", schedule=None, start_date=START):
    values = {
        "datetime": dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc),
        "pendulum": pendulum.datetime(2024, 1, 2, tz="Europe/Paris"),
        "naive": dt.datetime(2024, 1, 2, 3),
        "date": dt.date(2024, 1, 2),
        "timedelta": dt.timedelta(days=1, seconds=2),
        "decimal": decimal.Decimal("1.50"),
        "tuple": (1, ("a", 2)),
        "set": {1, 2},
        "frozenset": frozenset({"z"}),
        "bytes": b"\x00raw",
        "float": 1.5,
        "big": 2**70,
        "none": None,
        "nested": {"list": [1, {"deep": (1, 2)}], "none": None},
        "number_keys": {1: "a", 2: "b"},
        "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
        "asset": Asset(name="n", uri="x://y"),
        "str_enum": Level.HIGH,
    }
    for name, value in values.items():

        @task(task_id=f"give_{name}")
        def give(name=name):
            return values[name]

        @task(task_id=f"take_{name}")
        def take(value):
            return [
                type(value).__name__,
                repr(value) if not isinstance(value, set | frozenset) else sorted(value, key=str),
            ]

        take(give())

with DAG("xcoms_refused", schedule=None, start_date=START):

    @task
    def opaque():
        return Opaque()

    @task
    def function():
        return len

    @task
    def in_list():
        return [1, Opaque()]

    @task
    def plain_enum():
        return Color.RED

    @task
    def generator():
        return (n for n in range(3))

    @task
    def push_opaque(ti=None):
        try:
            ti.xcom_push("bad", Opaque())
        except Exception as error:
            return type(error).__name__
        return "no error"

    opaque()
    function()
    in_list()
    plain_enum()
    generator()
    push_opaque()

with DAG("xcoms_classes", schedule=None, start_date=START):

    @task
    def point():
        return Point(1, 2)

    @task
    def shape():
        return Shape(name="square", sides=4)

    @task
    def use(value):
        return [type(value).__name__, str(value)]

    use.override(task_id="use_point")(point())
    use.override(task_id="use_shape")(shape())

with DAG("xcoms_outputs", schedule=None, start_date=START):

    @task(multiple_outputs=True)
    def asked():
        return {"a": 1, "b": [2], "c": None}

    @task
    def annotated() -> dict[str, int]:
        return {"left": 1, "right": 2}

    @task(multiple_outputs=False)
    def refused() -> dict:
        return {"left": 1}

    @task(multiple_outputs=True)
    def not_a_dict():
        return [1]

    @task(multiple_outputs=True)
    def number_keys():
        return {1: "a"}

    @task
    def use(value):
        return value

    a, b = asked(), annotated()
    use.override(task_id="use_a")(a["a"])
    use.override(task_id="use_c")(a["c"])
    use.override(task_id="use_left")(b["left"])
    use.override(task_id="use_inside")(refused()["left"])
    use.override(task_id="use_nested")({"deep": [a["b"], b]})
    not_a_dict()
    number_keys()
    use.override(task_id="no_such_key")(a["zzz"])
    PythonOperator(task_id="classic_many", python_callable=lambda: {"m": 1}, multiple_outputs=True)

with DAG("xcoms_pulls", schedule=None, start_date=START):

    @task
    def push(ti=None, run_id=None):
        ti.xcom_push(key="note", value=f"from {run_id}")
        if run_id == "conf":
            ti.xcom_push(key="only_first", value=1)
        return run_id

    @task
    def pull(ti=None):
        return {
            "prior": ti.xcom_pull(task_ids="push", key="only_first", include_prior_dates=True),
            "not_prior": ti.xcom_pull(task_ids="push", key="only_first"),
            "own_run": ti.xcom_pull(task_ids="push", key="note"),
            "no_task": ti.xcom_pull(key="note"),
            "other_run": ti.xcom_pull(task_ids="push", run_id="conf"),
            "other_dag": ti.xcom_pull(task_ids="push", dag_id="xcoms_none"),
            "one_in_list": list(ti.xcom_pull(task_ids=["push"])),
            "many_keys": list(ti.xcom_pull(task_ids=["push", "absent"], key="note")),
            "default": ti.xcom_pull(task_ids="absent", default="nothing"),
        }

    push() >> pull()

with DAG("xcoms_operators", schedule=None, start_date=START):

    class Extra(BaseOperator):
        operator_extra_links = ()

        def __init__(self, *, value, **kwargs):
            super().__init__(**kwargs)
            self.value = value

        template_fields = ("value",)

        def execute(self, context):
            context["ti"].xcom_push(key="by_operator", value=self.value)
            return {"pulled": context["ti"].xcom_pull(task_ids=self.task_id, key="by_operator"), "v": self.value}

    first = Extra(task_id="first", value={"d": "{{ ds }}"})
    second = Extra(task_id="second", value=first.output)
    third = Extra(task_id="third", value=XComArg(first, key="by_operator"))
    fourth = Extra(task_id="fourth", value=[first.output["v"], "{{ ti.xcom_pull('first')['v']['d'] }}"])
