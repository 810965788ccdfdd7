"""What cuts a run short, a time-out or the run that takes its place, is kept while its teardowns still run."""

from django.db import migrations, models


_OF_TIME_OUTS = """
UPDATE scheduler_dag_run
SET cut_short_as = 'timed_out', cut_short_reason = 'The run took longer than its dagrun_timeout.'
WHERE state = 'running' AND cut_short_at IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0020_runs_by_logical_date"),
    ]

    operations = [
        migrations.RenameField(model_name="dagrun", old_name="timed_out_at", new_name="cut_short_at"),
        migrations.AddField(
            model_name="dagrun",
            name="cut_short_as",
            field=models.CharField(blank=True, max_length=20, null=True),
        ),
        migrations.AddField(
            model_name="dagrun",
            name="cut_short_reason",
            field=models.TextField(blank=True, null=True),
        ),
        migrations.RunSQL(_OF_TIME_OUTS, migrations.RunSQL.noop),
    ]
