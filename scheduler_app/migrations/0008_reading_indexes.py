"""Indexes for people: lists over all runs in the orders that they are read in (docs/adr/0047)."""

from django.db import migrations, models
from django.db.models import Q

FINISHED = ["failed", "removed", "skipped", "success", "upstream_failed"]


class Migration(migrations.Migration):
    dependencies = [("scheduler_app", "0007_state_store")]

    operations = [
        # ti_by_end gives the same order
        migrations.RemoveIndex(model_name="taskinstance", name="ti_failed"),
        migrations.AddIndex(
            model_name="dagrun", index=models.Index(fields=["run_after", "id"], name="dag_run_by_run_after")
        ),
        migrations.AddIndex(
            model_name="dagrun",
            index=models.Index(
                fields=["state", "start_date", "id"],
                condition=Q(state__in=["failed", "success"]),
                name="dag_run_by_start",
            ),
        ),
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(
                fields=["state", "start_date", "id"], condition=Q(state__in=FINISHED), name="ti_by_start"
            ),
        ),
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(fields=["state", "end_date", "id"], condition=Q(state__in=FINISHED), name="ti_by_end"),
        ),
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(fields=["map_index", "id"], condition=Q(map_index__gte=0), name="ti_mapped"),
        ),
        migrations.AddIndex(
            model_name="xcom", index=models.Index(fields=["dag_id", "task_id"], name="xcom_of_task")
        ),
    ]
