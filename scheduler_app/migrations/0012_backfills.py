"""Backfills and their slots; runs of backfills wait in an index of their own."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler_app', '0011_schedule_policies'),
    ]

    operations = [
        migrations.CreateModel(
            name='Backfill',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('from_date', models.DateTimeField()),
                ('to_date', models.DateTimeField()),
                ('dag_run_conf', models.JSONField(default=dict)),
                ('reprocess_behavior', models.CharField(choices=[('none', 'none'), ('failed', 'failed'), ('completed', 'completed')], default='none', max_length=20)),
                ('reverse', models.BooleanField(default=False)),
                ('run_on_latest_version', models.BooleanField(blank=True, null=True)),
                ('max_active_runs', models.IntegerField(default=10)),
                ('is_paused', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('triggering_user_name', models.TextField(blank=True, null=True)),
                ('failures', models.IntegerField(default=0)),
                ('error', models.TextField(blank=True, null=True)),
                ('backoff_until', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'scheduler_backfill',
            },
        ),
        migrations.CreateModel(
            name='BackfillSlot',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('ordinal', models.IntegerField()),
                ('logical_date', models.DateTimeField(blank=True, null=True)),
                ('data_interval_start', models.DateTimeField(blank=True, null=True)),
                ('data_interval_end', models.DateTimeField(blank=True, null=True)),
                ('run_after', models.DateTimeField()),
                ('outcome', models.CharField(blank=True, max_length=20, null=True)),
            ],
            options={
                'db_table': 'scheduler_backfill_slot',
            },
        ),
        migrations.RemoveIndex(
            model_name='dagrun',
            name='dag_run_queued',
        ),
        migrations.AddIndex(
            model_name='dagrun',
            index=models.Index(condition=models.Q(('backfill_id__isnull', True), ('state', 'queued')), fields=['dag', 'run_after', 'id'], name='dag_run_queued'),
        ),
        migrations.AddIndex(
            model_name='dagrun',
            index=models.Index(condition=models.Q(('backfill_id__isnull', False), ('state__in', ['queued', 'running'])), fields=['backfill_id', 'state'], name='dag_run_of_backfill'),
        ),
        migrations.AddField(
            model_name='backfill',
            name='dag',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='backfills', to='scheduler_app.dagmodel'),
        ),
        migrations.AddField(
            model_name='backfillslot',
            name='backfill',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='scheduler_app.backfill'),
        ),
        migrations.AddField(
            model_name='backfillslot',
            name='dag_run',
            field=models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='backfill_slots', to='scheduler_app.dagrun'),
        ),
        migrations.AddIndex(
            model_name='backfill',
            index=models.Index(condition=models.Q(('completed_at__isnull', True)), fields=['id'], name='backfill_open'),
        ),
        migrations.AddConstraint(
            model_name='backfill',
            constraint=models.UniqueConstraint(condition=models.Q(('completed_at__isnull', True)), fields=('dag',), name='backfill_one_a_dag'),
        ),
        migrations.AddConstraint(
            model_name='backfill',
            constraint=models.CheckConstraint(condition=models.Q(('max_active_runs__gte', 1)), name='backfill_max_active_runs_positive'),
        ),
        migrations.AddConstraint(
            model_name='backfill',
            constraint=models.CheckConstraint(condition=models.Q(('reprocess_behavior__in', ('none', 'failed', 'completed'))), name='backfill_reprocess_known'),
        ),
        migrations.AddIndex(
            model_name='backfillslot',
            index=models.Index(condition=models.Q(('outcome__isnull', True)), fields=['backfill', 'ordinal'], name='backfill_slot_to_do'),
        ),
        migrations.AddConstraint(
            model_name='backfillslot',
            constraint=models.UniqueConstraint(fields=('backfill', 'ordinal'), name='backfill_slot_once'),
        ),
    ]
