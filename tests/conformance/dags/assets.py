"""Assets: conditions, aliases, extras, events seen by producers and consumers, decorators, skipped producers."""

from __future__ import annotations

import pendulum
from airflow.exceptions import AirflowSkipException
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetAlias, AssetAll, AssetAny, Metadata, asset, task

START = pendulum.datetime(2024, 1, 1)
ONE, TWO, THREE = (Asset(name=f"asset_{n}", uri=f"conf://assets/{n}", extra={"of": n}) for n in ("one", "two", "three"))
LATER = Asset("conf://assets/later")
ALIAS = AssetAlias("asset_alias")

with DAG("assets_source", schedule=None, start_date=START):

    @task(outlets=[ONE])
    def by_metadata():
        yield Metadata(ONE, {"rows": 1})

    @task(outlets=[TWO])
    def by_events(*, outlet_events):
        outlet_events[TWO].extra = {"rows": 2}
        outlet_events[TWO].extra["more"] = True
        return "value"

    @task(outlets=[ALIAS])
    def by_alias(*, outlet_events):
        outlet_events[ALIAS].add(LATER, extra={"via": "alias"})

    @task(outlets=[THREE])
    def skips():
        raise AirflowSkipException

    @task(outlets=[Asset("conf://assets/mapped")])
    def mapped(n, *, outlet_events):
        outlet_events[Asset("conf://assets/mapped")].extra = {"n": n}

    first = by_metadata()
    (
        first
        >> by_events()
        >> by_alias()
        >> skips()
        >> EmptyOperator(task_id="empty_outlet", outlets=[Asset("conf://assets/empty")], trigger_rule="all_done")
    )
    first >> BashOperator(task_id="bash_outlet", bash_command="echo x", outlets=[Asset("conf://assets/bash")])
    mapped.expand(n=[1, 2])


def consumer(dag_id, schedule):
    with DAG(dag_id, schedule=schedule, start_date=START):

        @task
        def seen(triggering_asset_events=None, dag_run=None):
            return sorted(
                [
                    key.uri,
                    len(events),
                    events[-1].extra,
                    events[-1].source_task_id,
                    events[-1].source_run_id,
                    events[-1].source_map_index,
                ]
                for key, events in triggering_asset_events.items()
                if hasattr(key, "uri")
            )

        seen()


consumer("assets_any", AssetAny(ONE, THREE))
consumer("assets_all", AssetAll(ONE, TWO))
consumer("assets_never", AssetAll(ONE, THREE))
consumer("assets_by_alias", ALIAS)
consumer("assets_by_aliased", LATER)
consumer("assets_of_empty", [Asset("conf://assets/empty")])
consumer("assets_of_bash", Asset("conf://assets/bash"))
consumer("assets_paused", ONE)

with DAG("assets_reader", schedule=None, start_date=START):

    @task(inlets=[ONE, ALIAS])
    def read(*, inlet_events):
        last = inlet_events[ONE][-1]
        by_alias = inlet_events[ALIAS]
        return [last.extra, last.source_task_id, last.source_dag_id, len(by_alias) > 0, by_alias[-1].extra]

    read()


@asset(schedule=None)
def assets_decorated():
    return {"made": 1}


@asset(schedule=assets_decorated, uri="conf://assets/second", name="assets_second")
def assets_second(context, assets_decorated):
    return [assets_decorated.name, context["dag_run"].run_type]


@asset.multi(schedule=None, outlets=[Asset("conf://assets/m1"), Asset("conf://assets/m2")])
def assets_multi(context, outlet_events):
    outlet_events[Asset("conf://assets/m1")].extra = {"m": 1}
