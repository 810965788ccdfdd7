"""The pages of callbacks that were given up and of deadlines that were missed, newest first."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler_app', '0016_run_timed_out_at'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='callback',
            index=models.Index(condition=models.Q(('state', 'failed')), fields=['-id'], name='callback_given_up'),
        ),
        migrations.AddIndex(
            model_name='deadline',
            index=models.Index(condition=models.Q(('missed_at__isnull', False)), fields=['-missed_at', '-id'], name='deadline_missed'),
        ),
    ]
