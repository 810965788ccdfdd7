"""Admission looks behind a clogged page run by run: many blocked tasks of one run are then one step in the index."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler_app", "0003_roles")]

    operations = [
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(
                fields=["pool", "dag_id", "dag_run", "-priority_weight", "scheduled_when", "id"],
                condition=models.Q(("state", "scheduled")),
                name="ti_scheduled_by_run",
            ),
        ),
        migrations.RemoveIndex(model_name="taskinstance", name="ti_scheduled_by_key"),
    ]
