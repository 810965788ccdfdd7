"""Pendulum's DateTime across the border: it comes back as what it was, with its zone (``.add(days=1)`` works)."""

from __future__ import annotations

import datetime as dt

import pendulum

from scheduler_app import wire


def to_text(value: pendulum.DateTime) -> str:
    """ISO 8601; a zone that is more than an offset follows in brackets: ``2024-01-02T00:00:00+01:00[Europe/Paris]``."""
    text, zone = value.isoformat(), value.timezone_name
    return text if zone is None or zone == "UTC" or zone[0] in "+-" else f"{text}[{zone}]"


def from_text(text: str) -> pendulum.DateTime:
    moment, _, zone = text.rstrip("]").partition("[")
    plain = dt.datetime.fromisoformat(moment)
    if plain.tzinfo is None:
        return pendulum.naive(*plain.timetuple()[:6], plain.microsecond)
    made = pendulum.instance(plain)
    return made.in_timezone(zone) if zone else made


wire.extend(pendulum.DateTime, "moment", to_text, from_text)
