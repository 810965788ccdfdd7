"""Tags that draw: bars, meters, the cells of a grid, the boxes of a graph, lines of time, days."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from .scheduler_ui import span, state_label

if TYPE_CHECKING:
    from scheduler_app.models.pool import PoolUse
    from scheduler_app.queries.page_backfills import Progress
    from scheduler_app.queries.page_dags import Bar
    from scheduler_app.queries.workers import Worker
    from scheduler_app.ui import gantt
    from scheduler_app.ui.calendar import Day
    from scheduler_app.ui.grid import Cell, Line
    from scheduler_app.ui.layout import Box, Wire
    from scheduler_app.ui.timeline import Row

register = template.Library()

#: Width of one bar of a row of runs and the gap after it, in pixels.
BAR_STEP = 9


@register.filter
def bar_width(bars: list[Bar], step: int = BAR_STEP) -> int:
    """Pixels that a row of bars takes."""
    return max(1, len(bars)) * step


@register.filter
def bar_top(share: float, height: int) -> str:
    """Where a bar of that share of the longest one ends, in pixels from the top."""
    return f"{height - share * (height - 4):.1f}"


def run_url(dag_id: str, run_id: str) -> str:
    """As ``reverse("scheduler:run")``, for pages with thousands of links: resolving each cost half of their time."""
    return f"{_dag_url(dag_id)}runs/{quote(run_id, safe=_URL_SAFE)}/"


def task_url(dag_id: str, run_id: str, task_id: str) -> str:
    """As ``reverse("scheduler:task")``."""
    return f"{run_url(dag_id, run_id)}tasks/{quote(task_id, safe=_URL_SAFE)}/"


@functools.lru_cache(maxsize=4096)
def _dag_url(dag_id: str) -> str:
    return reverse("scheduler:dag", args=[dag_id])


#: What ``reverse`` leaves as it is in a part of a path.
_URL_SAFE = "!$&'()*+,;=/~:@"


@register.simple_tag
def bar_mark(
    dag_id: str, bar: Bar, place: int, height: int, step: int = BAR_STEP, task_id: str | None = None
) -> SafeString:
    """One run, or a task of it, as a linked bar of an SVG: the height is the duration, colour and notch the state."""
    # written by hand: a list has 700 of them, and escaping piece by piece took a third of its time
    x = f"{place * step + (step - 2) / 2:g}"
    top = round(height - max(3.0, bar.height * (height - 4)))
    words = f"{state_label(bar.state)}, {timezone.localtime(bar.run_after):%m-%d %H:%M}, {span(bar.seconds)}"
    # a failed run's bar ends in a notch: a short stroke across, most of it inside the bar
    notch = f"m-1.5 {(step - 2) // 2 - 2.5:g}h3" if bar.state == "failed" else ""
    link = run_url(dag_id, bar.run_id) if task_id is None else task_url(dag_id, bar.run_id, task_id)
    return mark_safe(
        f'<a href="{html.escape(link)}"><title>{html.escape(words)}</title>'
        f'<path class="s-{html.escape(bar.state)}" d="M{x} {height}V{top}{notch}"/></a>'
    )


@register.simple_tag
def pool_meter(use: PoolUse) -> SafeString:
    """The slots of a pool as one bar: running, queued, deferred if they count, free."""
    taken = [("s-running", use.running), ("s-queued", use.queued)]
    taken += [("s-deferred", use.deferred)] if use.include_deferred else []
    label = _("%(taken)s of %(slots)s slots taken") % {"taken": use.occupied, "slots": use.slots}
    return _meter(label, taken, max(use.slots if use.slots > 0 else use.occupied, use.occupied))


@register.simple_tag
def slots_meter(worker: Worker) -> SafeString:
    """The slots of a worker as one bar."""
    label = _("%(taken)s of %(slots)s slots taken") % {"taken": worker.busy, "slots": worker.slots}
    return _meter(label, [("s-running", min(worker.busy, worker.slots))], worker.slots)


@register.simple_tag
def progress_meter(progress: Progress) -> SafeString:
    """The slots of a backfill as one bar: how many stand how."""
    shapes = {"waiting": "base", "left": "s-skipped", "cancelled": "s-removed"}
    pieces = [(shapes.get(name, f"s-{name}"), count) for name, count in progress.pieces]
    label = _("%(ended)s of %(total)s slots are done") % {"ended": progress.ended, "total": progress.total}
    return _meter(label, pieces, progress.total)


def _meter(label: str, pieces: Iterable[tuple[str, int]], total: int) -> SafeString:
    """One bar of ``total``, filled by the pieces (class and number) from its start."""
    shapes, at = [], 0.0
    for name, count in pieces:
        width = 100 * count / max(total, 1)
        shapes.append((f"{at:.2f}%", f"{width:.2f}%", name))
        at += width
    bars = format_html_join("", '<rect x="{}" width="{}" height="12" class="{}"/>', shapes)
    frame = '<svg class="meter" role="img" aria-label="{}"><rect class="base" width="100%" height="12" rx="3"/>{}</svg>'
    return format_html(frame, label, bars)


@register.simple_tag
def grid_bar(dag_id: str, bar: Bar, height: int = 56) -> SafeString:
    """A run's duration above its column of the grid."""
    return format_html(
        '<svg class="bars big" width="14" height="{}" viewBox="0 0 14 {}">{}</svg>',
        height, height, bar_mark(dag_id, bar, 0, height, 16),
    )  # fmt: skip


@register.simple_tag
def grid_cell(dag_id: str, line: Line, cell: Cell | None) -> SafeString:
    """One cell of the grid: a link to the task instance, or to the run for a group."""
    if cell is None:
        return mark_safe("<td></td>")
    label = f"{line.id} · {state_label(cell.state)}" + (f" ×{cell.count}" if cell.count > 1 else "")
    link = run_url(dag_id, cell.run_id) if line.is_group else task_url(dag_id, cell.run_id, line.id)
    return format_html(
        '<td><a href="{}" aria-label="{}" title="{}"><i class="cell s-{}"></i></a></td>', link, label, label, cell.state
    )


#: Side of one day's tile, and from one tile to the next, in pixels.
TILE, TILE_STEP = 13, 16


@register.filter
def tiles(count: int) -> int:
    """Pixels that so many tiles take."""
    return count * TILE_STEP


@register.simple_tag
def day_tile(dag_id: str, day: Day, column: int, row: int) -> SafeString:
    """One day of the calendar: its states share the tile by their runs, the worst at the top; a link where runs are."""
    x, y = column * TILE_STEP, row * TILE_STEP
    words = [f"{state_label(state)} {count}" for state, count in day.tally.items()]
    if day.planned:
        words.append(_("planned %(n)s") % {"n": day.planned})
    title = f"{day.date:%a %Y-%m-%d}: {', '.join(words) or _('no run')}"
    css = "today" if day.today else ""
    frame = f'x="{x}" y="{y}" width="{TILE}" height="{TILE}" rx="2"'
    if not day.tally:
        look = 'class="planned"' if day.planned else f'class="base {css}"'
        return format_html("<rect {} {}><title>{}</title></rect>", mark_safe(frame), mark_safe(look), title)
    pieces, top = [], 0.0
    for state, count in day.tally.items():
        # of many runs a single failure must still be seen
        height = max(3.0, TILE * count / day.total) if len(day.tally) > 1 else float(TILE)
        height = min(height, TILE - top)
        pieces.append((x, f"{y + top:.1f}", TILE, f"{height:.1f}", state))
        top += height
    marks = format_html_join("", '<rect x="{}" y="{}" width="{}" height="{}" class="did s-{}"/>', pieces)
    cross = f'<path class="cross" d="M{x + 4} {y + 4}l5 5m0-5l-5 5"/>' if "failed" in day.tally else ""
    link = f"{_dag_url(dag_id)}runs/?day={day.date:%Y-%m-%d}"
    return format_html(
        '<a href="{}"><title>{}</title>{}{}<rect {} class="edge {}"/></a>',
        link, title, marks, mark_safe(cross), mark_safe(frame), css,
    )  # fmt: skip


@register.filter
def plus(value: float, more: float) -> str:
    return f"{value + more:.1f}"


@register.simple_tag
def svg_rect(box: Box, radius: int, css: str) -> SafeString:
    """The outline of a node or group."""
    return format_html(
        '<rect x="{}" y="{}" width="{}" height="{}" rx="{}" class="{}"/>',
        f"{box.x:.1f}", f"{box.y:.1f}", f"{box.width:.1f}", f"{box.height:.1f}", radius, css,
    )  # fmt: skip


@register.simple_tag
def svg_edge(box: Box) -> SafeString:
    """The coloured edge that carries a node's state."""
    return format_html(
        '<path class="edge" d="M{x} {y}v{h}q-5 0-5-5v-{i}q0-5 5-5z"/>',
        x=f"{box.x + 5:.1f}", y=f"{box.y:.1f}", h=f"{box.height:.1f}", i=f"{box.height - 10:.1f}",
    )  # fmt: skip


@register.simple_tag
def svg_wire(wire: Wire) -> SafeString:
    """A smooth line through a wire's points: each piece leaves and arrives level."""
    (x, y), *rest = wire.points
    pieces = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        bend = (nx - x) / 2
        pieces.append(f"C{x + bend:.1f} {y:.1f} {nx - bend:.1f} {ny:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return format_html(
        '<path class="wire" d="{}" data-from="{}" data-to="{}"/>', "".join(pieces), wire.source, wire.target
    )


@register.simple_tag
def gantt_bars(line: gantt.Line, height: int = 16) -> SafeString:
    """One row of a Gantt chart: hatched while it waited, filled while it ran, a piece a try. Places in percent."""
    # written by hand: a run has hundreds of rows with several pieces each
    words, marks = [], []
    for bar in line.bars:
        long = span(bar.seconds)
        text = (
            _("waited %(long)s") % {"long": long}
            if bar.state is None
            else _("try %(n)s: %(state)s, %(long)s")
            % {"n": bar.number, "state": state_label(bar.state).lower(), "long": long}
        )
        words.append(text)
        box = f'x="{bar.left:.2f}%" width="{bar.width:.2f}%" y="2" height="{height - 4}"'
        look = 'class="wait" fill="url(#hatch)"' if bar.state is None else f'class="did s-{html.escape(bar.state)}"'
        marks.append(f"<rect {box} {look}><title>{html.escape(text)}</title></rect>")
        if bar.state is not None and bar.width < 0.4:  # a try too short to be seen is drawn as a line
            marks.append(f'<rect x="{min(bar.left, 99.6):.2f}%" width="2" y="2" height="{height - 4}" {look}/>')
        if bar.state == "failed":
            marks.append(f'<text x="{bar.left:.2f}%" dx="3" y="{height - 4}" aria-hidden="true">×</text>')
    label = html.escape("; ".join(words))
    css = ' class="critical"' if line.critical else ""
    return mark_safe(
        f'<svg{css} width="100%" height="{height}" role="img" aria-label="{label}">'
        f'<use href="#ticks"/>{"".join(marks)}</svg>'
    )


@register.simple_tag
def timeline_bars(row: Row, height: int = 16) -> SafeString:
    """The runs of one DAG, each a linked bar; what is only planned is hatched and leads nowhere. Places in percent."""
    # written by hand: a picture has thousands of them
    marks = []
    for mark in row.marks:
        begun = f"{timezone.localtime(mark.begun):%m-%d %H:%M}"
        if mark.run_id:
            words = f"{state_label(mark.state)}, {begun}, {span(mark.seconds)}"
        else:
            words = _("planned for %(when)s") % {"when": begun}
            words += "" if mark.seconds is None else _(", usually %(long)s") % {"long": span(mark.seconds)}
        look = f'class="did s-{html.escape(mark.state)}"' if mark.run_id else 'class="wait" fill="url(#hatch)"'
        left = min(mark.left, 99.6)
        shape = f'<rect x="{left:.2f}%" width="{mark.width:.2f}%" y="2" height="{height - 4}" {look}/>'
        if mark.width < 0.4:  # too short to be seen: drawn as a line
            shape += f'<rect x="{left:.2f}%" width="3" y="2" height="{height - 4}" {look}/>'
        if mark.state == "failed" and mark.width > 1:  # there is room for it
            shape += f'<text x="{left:.2f}%" dx="3" y="{height - 4}" aria-hidden="true">×</text>'
        title = f"<title>{html.escape(words)}</title>"
        if mark.run_id:
            link = html.escape(run_url(row.dag_id, mark.run_id))
            marks.append(f'<a href="{link}" aria-label="{html.escape(words)}">{title}{shape}</a>')
        else:
            marks.append(f"<g>{title}{shape}</g>")
    frame = f'<svg width="100%" height="{height}" role="group"><use href="#ticks"/>'
    return mark_safe(f"{frame}{''.join(marks)}</svg>")
