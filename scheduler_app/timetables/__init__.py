"""Timetables: when a DAG's runs fall due. A document in, a value out; no clock, no I/O.

``from_doc(document) -> Timetable`` builds one; ``engine/timetable.py`` says what it answers. A DAG file's ``schedule``
becomes one of the documents below (the SDK writes them, in the child); every key is optional unless marked ``*``.

Values in documents: *instant* = ISO 8601 text with offset; *duration* = seconds (int or float), or
``{"relativedelta": {"months": 1, "days": -1, …}}`` with the plural arguments of dateutil's relativedelta;
*zone* = IANA name, ``"UTC"``, or a fixed offset ``"+02:00"``; *cron* = five, six or seven fields as croniter reads
them, or a preset (``@hourly @daily @weekly @monthly @quarterly @yearly``). A cron expression that does not parse or
never fires, an unknown zone and a duration that is not positive are ``ValueError`` with the offending text in the
message.

================== =================================================================================================
kind               keys
================== =================================================================================================
null               none. ``schedule=None``
once               none. ``"@once"``
continuous         none. ``"@continuous"``
cron_trigger       ``expression``* cron, ``timezone`` zone (UTC), ``interval`` duration (0: both ends of the data
                   interval are the fire time), ``run_immediately`` true | false | duration (false), ``gap``,
                   ``overlap``. A cron string or a preset in ``schedule=``. ``partition`` ``{"format"*, "offset"}``:
                   each run is a partition, whose key is its fire time (moved by so many ticks or a duration) in the
                   zone and format. ``CronPartitionTimetable``
cron_interval      ``expression``*, ``timezone``, ``gap``, ``overlap``. ``CronDataIntervalTimetable``
delta_trigger      ``delta``* duration, ``interval`` duration (0). A ``timedelta``/``relativedelta`` in ``schedule=``
delta_interval     ``delta``*. ``DeltaDataIntervalTimetable``
multi_cron_trigger ``expressions``* list of cron, and the other keys of cron_trigger. ``MultipleCronTriggerTimetable``
events             ``event_dates``* list of instants (any order, doubles ignored), ``restrict_to_events`` (false),
                   ``description``. ``EventsTimetable``
asset              ``condition``* an asset condition (``docs/borders.md`` §1). Assets/Datasets in ``schedule=``
asset_or_time      ``condition``*, ``timetable``* a document of another kind. ``AssetOrTimeSchedule``
partitioned        ``condition``*, ``mappers`` list of ``[leaf of a condition, mapper document]``, ``default_mapper``
                   (``engine/partitions.py``). ``PartitionedAssetTimetable``
custom             ``class`` dotted name, ``summary``, ``description``, ``periodic`` (true), ``can_be_scheduled``
                   (true), ``planned`` list of ``{"run_after"*, "logical_date", "start", "end"}`` in order: the slots
                   that the child computed for the processor (a missing ``logical_date`` is ``start``, or nothing when
                   that is missing too); ``planned_after`` null or instant: the end of the last created slot from which
                   they were computed. The last three are facts of a parse, not of the DAG: ``engine/dag_hash.py``
                   leaves them out
================== =================================================================================================

``gap`` (a fire time inside the hour that the clock jumps over) and ``overlap`` (inside the hour it repeats) choose what
a zone change does; both default to null, which is what Airflow does: an expression that always fires at the same time
of day keeps its UTC offset through a gap (02:30 fires an hour after 01:30) and takes the second of two, any other one
counts elapsed time, so that "every hour" is every hour. ``gap``: ``same_offset`` | ``next_valid`` (the first instant
after the gap) | ``skip``; ``overlap``: ``first`` | ``second`` | ``both``. Setting either makes any expression follow
the wall clock.
"""

from __future__ import annotations

from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable
from scheduler_app.timetables.kinds import KINDS

__all__ = ["KINDS", "DataInterval", "Restriction", "RunInfo", "Timetable", "from_doc"]


def from_doc(doc: dict[str, Any]) -> Timetable:
    """The timetable of a document. ValueError names the kind, key or expression that is wrong."""
    kind = doc.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"Unknown timetable kind {kind!r}: use one of {', '.join(sorted(KINDS))}.")
    try:
        return KINDS[kind](doc)
    except KeyError as error:
        raise ValueError(f"The timetable {kind!r} needs the key {error.args[0]!r}.") from error
