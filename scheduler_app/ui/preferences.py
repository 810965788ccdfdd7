"""Zone, theme and density: kept in cookies, applied by the server, so that pages are right without JavaScript."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.translation import gettext as _

from scheduler_app.actions.errors import Invalid

from .page import DENSITIES, DENSITY_COOKIE, THEME_COOKIE, THEMES, ZONE_COOKIE, Ask, back, deed, zones

YEAR_SECONDS = 31_536_000


@deed
def save(ask: Ask) -> HttpResponse:
    wanted = {
        ZONE_COOKIE: ask.request.POST.get("zone", "UTC").strip() or "UTC",
        THEME_COOKIE: ask.request.POST.get("theme", THEMES[0]),
        DENSITY_COOKIE: ask.request.POST.get("density", DENSITIES[0]),
    }
    if wanted[ZONE_COOKIE] not in zones():
        raise Invalid(
            "zone", _("“%(zone)s” is no zone. Zones look like Europe/Berlin.") % {"zone": wanted[ZONE_COOKIE]}
        )
    if wanted[THEME_COOKIE] not in THEMES or wanted[DENSITY_COOKIE] not in DENSITIES:
        raise Invalid("theme", _("Unknown theme or density."))
    response = back(ask)
    for name, value in wanted.items():
        response.set_cookie(
            name,
            value,
            max_age=YEAR_SECONDS,
            samesite="Lax",
            secure=ask.request.is_secure(),
            httponly=name == ZONE_COOKIE,
        )
    return response
