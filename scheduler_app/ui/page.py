"""What every page shares: who asks, what time it is, in which zone times are shown, and the frame around it.

A view is a process's edge: here, and only here, the pages read the clock, and hand it on as ``now``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.actions.errors import ActionError, Conflict, Forbidden, Missing, Refused
from scheduler_app.conf import conf
from scheduler_app.models import DagModel, db
from scheduler_app.queries import page_health

ZONE_COOKIE = "scheduler_zone"
THEME_COOKIE = "scheduler_theme"
DENSITY_COOKIE = "scheduler_density"
THEMES = ("auto", "light", "dark")
DENSITIES = ("comfortable", "compact")

#: route → label and the permission to see it, in the order of the header
NAVIGATION = (
    ("scheduler:dags", gettext_lazy("DAGs"), "dag"),
    ("scheduler:runs", gettext_lazy("Runs"), "run"),
    ("scheduler:timeline", gettext_lazy("Timeline"), "run"),
    ("scheduler:failures", gettext_lazy("Failures"), "task"),
    ("scheduler:backfills", gettext_lazy("Backfills"), "run"),
    ("scheduler:assets", gettext_lazy("Assets"), "asset"),
    ("scheduler:pools", gettext_lazy("Pools"), "pool"),
    ("scheduler:jobs", gettext_lazy("Jobs"), "job"),
    ("scheduler:import_errors", gettext_lazy("Import errors"), "import_error"),
    ("scheduler:audit", gettext_lazy("Audit"), "audit"),
)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: what was asked, by whom, and when."""

    request: HttpRequest
    actor: Actor
    now: datetime

    def can(self, verb: str, what: Any) -> bool:
        return access.can(self.actor, verb, what)

    def need(self, verb: str, kind: str) -> None:
        """Raises Forbidden, which the reader sees as a page that names the permission."""
        if not access.can(self.actor, verb, kind):
            raise Forbidden(
                _("You need the permission “%(permission)s” for this page. An administrator can give it to you.")
                % {"permission": access.codename(verb, kind)}
            )

    def dag(self, dag_id: str) -> DagModel:
        """The DAG that an address names. Raises Http404 when there is none, or the reader may not see it."""
        self.need("view", "dag")
        found = access.dags(self.actor).select_related("latest_version").filter(pk=dag_id).first()
        if found is None:
            raise Http404(_("There is no DAG “%(dag)s”, or you may not see it.") % {"dag": dag_id})
        return found

    def show(self, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        """Renders a page inside the frame. ``section`` in the context is the route that the header marks."""
        frame = {
            "now": self.now,
            "can": _Permissions(self.actor),
            "zone": zone_of(self.request).key,
            "theme": _choice(self.request, THEME_COOKIE, THEMES),
            "density": _choice(self.request, DENSITY_COOKIE, DENSITIES),
            "navigation": [(route, label) for route, label, kind in NAVIGATION if self.can("view", kind)],
            "scheduler_alive": page_health.scheduler_alive(self.now, timedelta(seconds=conf().lease_seconds)),
        }
        return render(self.request, f"scheduler/{template}", frame | context, status=status)


class _Permissions:
    """``{% if can.change_run %}`` in templates: what the reader may do to a kind of thing."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __getitem__(self, name: str) -> bool:
        verb, _underscore, kind = name.partition("_")
        return kind in access.KINDS and access.can(self._actor, verb, kind)


View = Callable[..., HttpResponse]


def page(view: View) -> View:
    """Makes ``view(ask, …)`` a page: GET and HEAD, login, times in the reader's zone."""
    return require_safe(login_required(_asked(view)))


def deed(view: View) -> View:
    """Makes ``view(ask, …)`` the target of a form: POST alone, login, errors told on the page it came from."""
    return require_POST(login_required(_asked(view)))


def _asked(view: View) -> View:
    @functools.wraps(view)
    def answer(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        ask = Ask(request, access.of_user(request.user), db.clock())
        with timezone.override(zone_of(request)):
            try:
                if _has_nul(request):
                    raise Refused(_("The address or the form holds a NUL sign, which no text here may hold."))
                return view(ask, **kwargs)
            except Missing as error:
                raise Http404(str(error)) from error
            except ActionError as error:
                return refused(ask, error)

    return answer


def _has_nul(request: HttpRequest) -> bool:
    """PostgreSQL keeps no NUL sign in a text, so none can be looked for either."""
    values = [text for form in (request.GET, request.POST) for texts in form.lists() for text in texts[1]]
    return any("\0" in text for text in (request.path, *values))


def refused(ask: Ask, error: ActionError) -> HttpResponse:
    """An action that was not done: a toast on the page it was asked from, else a page of its own."""
    status = 403 if isinstance(error, Forbidden) else 409 if isinstance(error, Conflict) else 400
    if getattr(ask.request, "htmx", False):
        # nothing on the page is swapped, but the toast is put in its place
        response = ask.show("part/toast.html", {"message": str(error)})
        response["HX-Reswap"] = "none"
        return response
    if ask.request.method == "POST" and ask.request.POST.get("next"):
        messages.error(ask.request, str(error))
        return back(ask)
    return ask.show("refused.html", {"message": str(error), "status": status}, status=status)


def back(ask: Ask, default: str = "/") -> HttpResponse:
    """To the page that the form named in ``next``, if that is one of ours."""
    return redirect(back_address(ask, default))


def back_address(ask: Ask, default: str) -> str:
    """What :func:`back` leads to, for a link: an address in ``next`` that is not one of ours counts for nothing."""
    target = ask.request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        target, allowed_hosts={ask.request.get_host()}, require_https=ask.request.is_secure()
    )
    return target if safe else default


def zone_of(request: HttpRequest) -> ZoneInfo:
    """The zone that the reader chose (a cookie), UTC for none or an unknown one."""
    name = request.COOKIES.get(ZONE_COOKIE, "UTC")
    return ZoneInfo(name if name in zones() else "UTC")


@functools.cache
def zones() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


def _choice(request: HttpRequest, cookie: str, allowed: tuple[str, ...]) -> str:
    value = request.COOKIES.get(cookie, allowed[0])
    return value if value in allowed else allowed[0]


def local_moment(text: str) -> tuple[datetime | None, str]:
    """The moment of a ``datetime-local`` field in the reader's zone, or what is wrong with it; both empty for none."""
    if not text.strip():
        return None, ""
    try:
        moment = parse_datetime(text.strip())
    except ValueError:
        moment = None
    if moment is None:
        return None, _("“%(text)s” is no date and time.") % {"text": text}
    return (moment if moment.tzinfo else timezone.make_aware(moment)), ""


def page_number(request: HttpRequest) -> int:
    """``?page=`` as a number from 1; anything else is the first page."""
    try:
        return max(1, min(int(request.GET.get("page", "1")), 1_000_000))
    except ValueError:
        return 1
