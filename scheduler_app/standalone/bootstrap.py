"""What the database needs before the components start: the schema and somebody who may log in."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db.migrations.executor import MigrationExecutor

from scheduler_app.models import db

ADMIN = "admin"
#: Key of the advisory lock under which one start of several migrates: of our schema, which may have no table yet.
_MIGRATION_LOCK = "hashtext('scheduler migrates ' || current_schema())"


def migrate() -> bool:
    """Brings the schema up to date; whether there was anything to do.

    Looking first saves the second that ``migrate`` spends on permissions and content types at every start.
    """
    db.execute(f"SELECT pg_advisory_lock({_MIGRATION_LOCK})")
    try:
        executor = MigrationExecutor(db.connection())
        if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        call_command("migrate", database=db.alias(), verbosity=0, interactive=False)
        return True
    finally:
        db.execute(f"SELECT pg_advisory_unlock({_MIGRATION_LOCK})")


def ensure_admin() -> str | None:
    """The password of the admin user if it was made now. One given by the environment is set at each start."""
    users = get_user_model()._default_manager
    admin = users.filter(username=ADMIN).first()
    if admin is None:
        password = settings.ADMIN_PASSWORD or settings.ADMIN_PASSWORD_FILE.read_text().strip()
        users.create_superuser(ADMIN, "", password)
        return str(password)
    if settings.ADMIN_PASSWORD and not admin.check_password(settings.ADMIN_PASSWORD):
        admin.set_password(settings.ADMIN_PASSWORD)
        admin.save(update_fields=["password"])
    return None
