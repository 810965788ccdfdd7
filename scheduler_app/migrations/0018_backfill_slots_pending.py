"""Backfills whose slots only the timetable class of the DAG's author can list."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0017_callbacks_and_deadlines_listed"),
    ]

    operations = [
        migrations.AddField(
            model_name="backfill",
            name="slots_pending",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
