"""What a branch decided is kept, so that a follower which is cleared alone is skipped again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler_app", "0005_what_files_read")]

    operations = [
        migrations.AddField(model_name="taskinstance", name="skips", field=models.JSONField(null=True, blank=True)),
    ]
