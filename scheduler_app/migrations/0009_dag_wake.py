"""DAGs that a run's end made due for a look."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0008_reading_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="DagWake",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("reason", models.CharField(max_length=40)),
                ("created_at", models.DateTimeField()),
                (
                    "dag",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="wakes",
                        to="scheduler_app.dagmodel",
                    ),
                ),
            ],
            options={"db_table": "scheduler_dag_wake"},
        ),
    ]
