"""A DAG file that reads a Variable or a Connection while it is parsed is parsed again when that one changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler_app", "0004_scheduled_by_run")]

    operations = [
        migrations.AddField(model_name="dagfile", name="asked", field=models.JSONField(default=list)),
    ]
