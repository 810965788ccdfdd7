"""By when runs and tasks have to be done."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler_app', '0012_backfills'),
    ]

    operations = [
        migrations.CreateModel(
            name='Deadline',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('dag_id', models.CharField(max_length=250)),
                ('kind', models.CharField(max_length=10)),
                ('task_id', models.CharField(blank=True, max_length=250, null=True)),
                ('name', models.TextField(blank=True, null=True)),
                ('due_at', models.DateTimeField()),
                ('callback', models.JSONField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('missed_at', models.DateTimeField(blank=True, null=True)),
                ('dag_run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deadlines', to='scheduler_app.dagrun')),
            ],
            options={
                'db_table': 'scheduler_deadline',
                'indexes': [models.Index(condition=models.Q(('missed_at__isnull', True)), fields=['due_at', 'id'], name='deadline_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['run', 'sla'])), name='deadline_kind_known')],
            },
        ),
    ]
