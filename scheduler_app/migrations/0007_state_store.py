"""What tasks keep across their tries, and assets across runs."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0006_what_branches_skipped"),
    ]

    operations = [
        migrations.CreateModel(
            name="AssetState",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=512)),
                ("value", models.JSONField(null=True)),
                ("updated_at", models.DateTimeField()),
                ("updated_by", models.JSONField(null=True)),
                (
                    "asset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="states",
                        to="scheduler_app.asset",
                    ),
                ),
            ],
            options={
                "db_table": "scheduler_asset_state",
                "constraints": [models.UniqueConstraint(fields=("asset", "key"), name="asset_state_once")],
            },
        ),
        migrations.CreateModel(
            name="TaskState",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("dag_id", models.CharField(max_length=250)),
                ("task_id", models.CharField(max_length=250)),
                ("map_index", models.IntegerField(default=-1)),
                ("key", models.CharField(max_length=512)),
                ("value", models.JSONField(null=True)),
                ("updated_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dag_run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="scheduler_app.dagrun",
                    ),
                ),
            ],
            options={
                "db_table": "scheduler_task_state",
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="task_state_expires",
                    ),
                    models.Index(
                        condition=models.Q(("key", "hitl_question")), fields=["dag_run"], name="task_state_questions"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dag_run", "task_id", "map_index", "key"), name="task_state_once")
                ],
            },
        ),
    ]
