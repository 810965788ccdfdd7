"""The roles Viewer, User, Op and Admin as Django groups, with their permissions (``access/permissions.py``).

Django makes the permissions of models only after all migrations, so this makes the ones it needs itself; Django finds
them afterwards. ``config`` and ``provider`` are permissions without a model, kept beside those of the job.
"""

from typing import Any

from django.db import migrations

VERBS = ("view", "add", "change", "delete")
MODELS = {
    "dag": "dagmodel",
    "dag_version": "dagversion",
    "run": "dagrun",
    "task": "taskinstance",
    "xcom": "xcom",
    "pool": "pool",
    "variable": "variable",
    "connection": "connection",
    "asset": "asset",
    "asset_event": "assetevent",
    "queued_event": "assetqueuedevent",
    "import_error": "parseerror",
    "warning": "dagwarning",
    "job": "job",
    "audit": "audit",
    "config": "config",
    "provider": "provider",
}
WITHOUT_MODEL = ("config", "provider")
LABELS = {"dagmodel": "DAG", "dagrun": "DAG run", "xcom": "x com"}
SEES = [
    f"view_{kind}"
    for kind in (
        "dag", "dag_version", "run", "task", "xcom", "asset", "asset_event", "import_error", "warning", "job", "pool",
        "queued_event", "provider",
    )
]
USES = [
    "change_dag", "delete_dag", "add_run", "change_run", "delete_run", "change_task", "delete_task",
    "add_xcom", "change_xcom", "delete_xcom", "add_asset_event", "delete_queued_event",
]
OPERATES = [f"{verb}_{kind}" for verb in VERBS for kind in ("pool", "variable", "connection")]
OPERATES += ["view_audit", "view_config", "change_job"]
ROLES = {
    "Viewer": SEES,
    "User": SEES + USES,
    "Op": SEES + USES + OPERATES,
    "Admin": [f"{verb}_{kind}" for verb in VERBS for kind in MODELS],
}


def create_roles(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    types = apps.get_model("contenttypes", "ContentType").objects.using(alias)
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    groups = apps.get_model("auth", "Group").objects.using(alias)
    made = {}
    for kind, model in MODELS.items():
        held_by = "job" if kind in WITHOUT_MODEL else model
        content_type, _ = types.get_or_create(app_label="scheduler_app", model=held_by)
        for verb in VERBS:
            made[f"{verb}_{kind}"], _ = permissions.get_or_create(
                content_type=content_type,
                codename=f"{verb}_{model}",
                defaults={"name": f"Can {verb} {LABELS.get(model, model)}"},
            )
    for name, codes in ROLES.items():
        group, _ = groups.get_or_create(name=name)
        group.permissions.add(*[made[code] for code in codes])


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler_app", "0002_default_pool_and_storage"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(create_roles, migrations.RunPython.noop)]
