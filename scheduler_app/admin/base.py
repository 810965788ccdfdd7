"""What every admin page of ours shares: lists that stay fast on a million rows, the link to the dashboard, our colours,
and the refusals of actions as messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.actions.errors import ActionError
from scheduler_app.models import db
from scheduler_app.templatetags.scheduler_ui import state_label

#: Lists know of at most so many rows: counting a million of them would take longer than anybody looks.
MOST_ROWS = 10_000


class FirstRows(Paginator):
    """Counts at most :data:`MOST_ROWS` rows."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        return rows.order_by()[:MOST_ROWS].count() if isinstance(rows, QuerySet) else len(rows)


class OneOf(admin.SimpleListFilter):
    """A filter whose choices are known beforehand: Django's own would read every row to find them."""

    none = "none"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, state_label(value)) for value in self.values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if chosen is None:
            return queryset
        wanted = None if chosen == self.none else chosen
        return queryset.filter(**{self.parameter_name + ("__isnull" if wanted is None else ""): wanted or True})


def one_of(parameter: str, label: str, *choices: str) -> type[OneOf]:
    """The filter of a column with a few known values."""
    return type("Chosen", (OneOf,), {"parameter_name": parameter, "title": label, "values": choices})


class SchedulerAdmin(admin.ModelAdmin):
    """Nobody counts the whole table, foreign keys are plain ids, and a list is at most a hundred rows."""

    show_full_result_count = False
    paginator = FirstRows
    list_per_page = 50
    list_max_show_all = 100
    change_form_template = "scheduler/admin/change_form.html"

    class Media:
        css = {"all": ["scheduler/ui-states.css", "scheduler/admin.css"]}

    def dashboard_url(self, row: Any) -> str | None:
        """The page of the dashboard that shows this row; None when there is none."""
        return None

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = kwargs.get("obj")
        context["dashboard_url"] = self.dashboard_url(row) if row is not None else None
        return super().render_change_form(request, context, *args, **kwargs)


class Derived(SchedulerAdmin):
    """Rows that our processes write: people read them, and change them by actions alone."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def acting(request: HttpRequest) -> tuple[Actor, datetime]:
    """Who asks, and when: the admin is a process's edge too."""
    return access.of_user(request.user), db.clock()


def for_each(request: HttpRequest, rows: QuerySet[Any], act: Callable[[Any, Actor, datetime], object]) -> None:
    """Runs an action on each chosen row; what is refused is said by name, the rest is done."""
    actor, now = acting(request)
    done = 0
    for row in rows:
        try:
            act(row, actor, now)
            done += 1
        except ActionError as error:
            messages.error(request, f"{row}: {error}")
    if done:
        text = ngettext("%(n)s row was changed.", "%(n)s rows were changed.", done) % {"n": done}
        messages.success(request, text)


@admin.display(description=gettext_lazy("state"), ordering="state")
def state_mark(row: Any) -> SafeString:
    """A state as the dashboard draws it."""
    return format_html('<span class="st s-{}">{}</span>', row.state or "none", state_label(row.state))


@admin.display(description=gettext_lazy("held"))
def is_held(row: Any) -> SafeString | str:
    """A mark for what is held, and nothing else: Django's red cross for "no" looks like an error."""
    if row.held_at is None:
        return ""
    return format_html('<span class="st s-held" title="{}">{}</span>', row.held_why or "", state_label("held"))


def asked_in_admin() -> str:
    """The reason that the audit shows for an admin action, which asks for none."""
    return _("from the admin")
