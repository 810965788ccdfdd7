"""What a DAG says of its schedule besides when: missed slots, overlapping runs, jitter."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0010_partition_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="dagmodel",
            name="misfire_policy",
            field=models.CharField(blank=True, max_length=20, null=True),
        ),
        migrations.AddField(
            model_name="dagmodel",
            name="misfire_limit",
            field=models.IntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="dagmodel",
            name="overlap_policy",
            field=models.CharField(db_default="queue", default="queue", max_length=20),
        ),
        migrations.AddField(
            model_name="dagmodel",
            name="schedule_jitter",
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
    ]
