"""When a run's time was over, while its teardowns still run."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0015_keyed_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="dagrun",
            name="timed_out_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
