"""Keyed limits: their rows, what tasks take of them, the permissions of the roles, and what admission reads."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

VERBS = ("view", "add", "change", "delete")
ROLES = {"Viewer": ("view",), "User": ("view",), "Op": VERBS, "Admin": VERBS}


def grant(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    types = apps.get_model("contenttypes", "ContentType").objects.using(alias)
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    groups = apps.get_model("auth", "Group").objects.using(alias)
    content_type, _ = types.get_or_create(app_label="scheduler_app", model="limit")
    made = {
        verb: permissions.get_or_create(
            content_type=content_type, codename=f"{verb}_limit", defaults={"name": f"Can {verb} limit"}
        )[0]
        for verb in VERBS
    }
    for name, verbs in ROLES.items():
        group, _ = groups.get_or_create(name=name)
        group.permissions.add(*[made[verb] for verb in verbs])


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0014_favourites"),
    ]

    operations = [
        migrations.CreateModel(
            name="Limit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=128, unique=True)),
                ("amount", models.IntegerField()),
                ("per_seconds", models.FloatField(blank=True, null=True)),
                ("description", models.TextField(blank=True, null=True)),
                ("declared_by", models.CharField(blank=True, max_length=250, null=True)),
            ],
            options={
                "db_table": "scheduler_limit",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gte", 0)), name="limit_amount_valid"),
                    models.CheckConstraint(
                        condition=models.Q(("per_seconds__isnull", True), ("per_seconds__gt", 0), _connector="OR"),
                        name="limit_window_positive",
                        violation_error_message=(
                            "The window is a number of seconds above 0, or nothing for a limit at once."
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LimitUse",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("units", models.IntegerField()),
                (
                    "limit",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="scheduler_app.limit",
                    ),
                ),
            ],
            options={
                "db_table": "scheduler_limit_use",
                "indexes": [models.Index(fields=["limit", "at"], name="limit_use_window")],
            },
        ),
        migrations.AddField(
            model_name="taskinstance",
            name="limits",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(
                condition=models.Q(("state", "scheduled")),
                fields=["pool", "limits", "dag_id", "dag_run", "-priority_weight", "scheduled_when", "id"],
                name="ti_scheduled_by_key",
            ),
        ),
        migrations.RemoveIndex(model_name="taskinstance", name="ti_scheduled_by_run"),
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(
                condition=models.Q(("next_method__isnull", False), ("state", "scheduled")),
                fields=["id"],
                name="ti_resumed",
            ),
        ),
        migrations.AddIndex(
            model_name="taskinstance",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ["deferred", "queued", "restarting", "running"]),
                    models.Q(("limits", ""), _negated=True),
                ),
                fields=["limits"],
                name="ti_limited",
            ),
        ),
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
