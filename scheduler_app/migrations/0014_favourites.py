"""Favourite DAGs; operators may set and delete what assets keep."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def let_operators_change_assets(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    operators = apps.get_model("auth", "Group").objects.using(alias).filter(name="Op").first()
    if operators is None:
        return
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    operators.permissions.add(
        *permissions.filter(content_type__app_label="scheduler_app", codename__in=("change_asset", "delete_asset"))
    )


class Migration(migrations.Migration):

    dependencies = [
        ("scheduler_app", "0013_deadlines"),
    ]

    operations = [
        migrations.CreateModel(
            name="Favourite",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("user_id", models.CharField(max_length=250)),
                (
                    "dag",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="favourites",
                        to="scheduler_app.dagmodel",
                    ),
                ),
            ],
            options={
                "db_table": "scheduler_favourite",
                "constraints": [models.UniqueConstraint(fields=("dag", "user_id"), name="favourite_once")],
            },
        ),
        migrations.RunPython(let_operators_change_assets, migrations.RunPython.noop),
    ]
