"""The fire times of a cron expression in a zone: croniter on naive local time, the zone's changes on top.

Two ways to read a clock that jumps. *Wall clock*: local fire times are found first and turned into instants by the gap
and overlap policies. *Elapsed*: the next fire lies as far after the last one as their local times are apart, so "every
20 minutes" is that on every day of the year. Airflow reads expressions that always fire at one time of day the first
way, all others the second; so does a calendar without policies. Both are sets of instants: ``next`` and ``prev`` agree,
whatever instant one asks from.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final

from croniter import croniter
from croniter.croniter import CroniterError

from scheduler_app.engine.timetable import utc
from scheduler_app.timetables.zones import GAPS, LONGEST_SHIFT, OVERLAPS, instants, naive, steady, zone

PRESETS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_ANY_DAY: Final = datetime.fromisoformat("2024-01-01")


class CronCalendar:
    """Fire times of one expression. Every instant taken or given is aware; those given are in UTC."""

    def __init__(
        self, expression: str, zone_name: str = "UTC", *, gap: str | None = None, overlap: str | None = None
    ) -> None:
        self.expression = PRESETS.get(expression, expression)
        if gap not in GAPS or overlap not in OVERLAPS:
            text = f"gap must be one of {GAPS[1:]} and overlap one of {OVERLAPS[1:]}"
            raise ValueError(f"{text}, not {gap!r} and {overlap!r}.")
        self.tz = zone(zone_name)
        self.gap, self.overlap = gap, overlap
        try:
            fires = croniter(self.expression, _ANY_DAY)
            one, two = fires.get_next(datetime), fires.get_next(datetime)
        except (CroniterError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise ValueError(f"The cron expression {expression!r} is not valid or never fires: {error}") from error
        fixed = (one.hour, one.minute) == (two.hour, two.minute)
        self.elapsed = not fixed and gap is None and overlap is None

    def next(self, after: datetime) -> datetime:
        """The first fire strictly after an instant."""
        after = utc(after)
        if not self.elapsed:
            return self._next_on_wall(after)
        if isinstance(self.tz, timezone):
            return self._step(after)
        # the fires after a change depend on where one comes from: walk up from a fire before it
        fire = self._anchor(after)
        while fire <= after:
            fire = self._step(fire)
        return fire

    def prev(self, before: datetime) -> datetime:
        """The last fire strictly before an instant."""
        before = utc(before)
        if not self.elapsed:
            return self._prev_on_wall(before)
        fire = self._anchor(before)
        while (following := self._step(fire)) < before:
            fire = following
        return fire

    def at_or_after(self, at: datetime) -> datetime:
        return self.next(at - timedelta(microseconds=1))

    def at_or_before(self, at: datetime) -> datetime:
        return self.prev(at + timedelta(microseconds=1))

    def _step(self, after: datetime) -> datetime:
        local = naive(after, self.tz)
        coming: datetime = croniter(self.expression, local).get_next(datetime)
        return after + (coming - local)

    def _anchor(self, before: datetime) -> datetime:
        """A fire of the elapsed reading before an instant: one that no clock change parts from the fire before it."""
        at = before
        while True:
            fires = croniter(self.expression, naive(at, self.tz))
            last: datetime = fires.get_prev(datetime)
            one_before: datetime = fires.get_prev(datetime)
            fire = instants(last, self.tz, None, "first")[0]
            if isinstance(self.tz, timezone):
                return fire
            early = fire - (last - one_before) - LONGEST_SHIFT
            if fire < before and early.astimezone(self.tz).utcoffset() == fire.astimezone(self.tz).utcoffset():
                return fire
            at = min(at, fire) - timedelta(hours=1)

    def _next_on_wall(self, after: datetime) -> datetime:
        near = timedelta(0) if steady(after, self.tz) else LONGEST_SHIFT
        return self._nearest(naive(after, self.tz) - near, after, forward=True)

    def _prev_on_wall(self, before: datetime) -> datetime:
        near = timedelta(0) if steady(before, self.tz) else LONGEST_SHIFT
        return self._nearest(naive(before, self.tz) + near, before, forward=False)

    def _nearest(self, start: datetime, bound: datetime, *, forward: bool) -> datetime:
        """The fire beyond ``bound`` that is nearest to it, looking from a local time on. Where a clock is turned, local
        times come in another order than their instants, so the search goes on for as long as the clock may shift."""
        fires = croniter(self.expression, start)
        step = fires.get_next if forward else fires.get_prev
        beyond = bound.__lt__ if forward else bound.__gt__
        best: datetime | None = None
        best_local = start
        while best is None or (abs(best_local - start) <= LONGEST_SHIFT and not steady(best, self.tz)):
            start = step(datetime)
            for at in instants(start, self.tz, self.gap, self.overlap):
                if not beyond(at):
                    continue
                if best is None:
                    best, best_local = at, start
                best = min(best, at) if forward else max(best, at)
        return best
