"""The pool that every task uses unless it says otherwise, and how the hot tables are stored and vacuumed.

Autovacuum's defaults wait for a fifth of a table to be dead: at 10⁶ task instances it never ran and the tick slowed
tenfold. So each hot table is vacuumed after a fixed number of dead rows, and its pages keep room for updates in place.
"""

from typing import Any

from django.db import migrations

HOT_TABLES = {
    # table: (fillfactor, dead rows until vacuum, changed rows until analyse)
    "scheduler_task_instance": (70, 5000, 20000),
    "scheduler_dag_run": (70, 2000, 10000),
    "scheduler_wake": (100, 2000, 50000),
    "scheduler_job": (50, 200, 1000),
    "scheduler_callback": (80, 1000, 5000),
    "scheduler_xcom": (90, 5000, 20000),
    "scheduler_dag": (70, 500, 1000),
}


def create_default_pool(apps: Any, schema_editor: Any) -> None:
    apps.get_model("scheduler_app", "Pool").objects.using(schema_editor.connection.alias).get_or_create(
        pool="default_pool", defaults={"slots": 128, "description": "Default pool", "include_deferred": False}
    )


def _store(table: str, fillfactor: int, dead: int, changed: int) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"ALTER TABLE {table} SET (fillfactor = {fillfactor}, autovacuum_vacuum_scale_factor = 0,"
        f" autovacuum_vacuum_threshold = {dead}, autovacuum_vacuum_insert_scale_factor = 0,"
        f" autovacuum_vacuum_insert_threshold = {dead * 10}, autovacuum_analyze_scale_factor = 0,"
        f" autovacuum_analyze_threshold = {changed}, autovacuum_vacuum_cost_delay = 0)",
        f"ALTER TABLE {table} RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,"
        " autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_insert_threshold, autovacuum_analyze_scale_factor,"
        " autovacuum_analyze_threshold, autovacuum_vacuum_cost_delay)",
    )


class Migration(migrations.Migration):
    dependencies = [("scheduler_app", "0001_schema")]

    operations = [
        migrations.RunPython(create_default_pool, migrations.RunPython.noop),
        *[_store(table, *numbers) for table, numbers in HOT_TABLES.items()],
    ]
