"""Events that wait with others of their partition."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0009_dag_wake"),
    ]

    operations = [
        migrations.CreateModel(
            name="PartitionEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("partition_key", models.TextField()),
                ("source_key", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "asset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="scheduler_app.asset"
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="partition_events",
                        to="scheduler_app.dagmodel",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="scheduler_app.assetevent"
                    ),
                ),
            ],
            options={
                "db_table": "scheduler_partition_event",
                "constraints": [
                    models.UniqueConstraint(fields=("dag", "partition_key", "event"), name="partition_event_once")
                ],
            },
        ),
    ]
