"""What ran? The source of each version, and everything that a DAG says of itself."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from scheduler_app.queries import page_dag

from .page import Ask, page

#: Beyond this a file is shown without colours: the lexer would take seconds.
COLOURED_CHARS = 400_000


@page
def code(ask: Ask, dag_id: str) -> HttpResponse:
    dag = ask.dag(dag_id)
    ask.need("view", "dag_version")
    text = ask.request.GET.get("version", "")
    version = page_dag.version(dag, int(text) if text.isdecimal() and len(text) < 9 else None)
    if version is None and text:
        raise Http404(_("%(dag)s has no version %(number)s.") % {"dag": dag_id, "number": text})
    source = page_dag.source(dag, version) if version else None
    return ask.show(
        "dag_code.html",
        {
            "section": "scheduler:dags",
            "tab": "code",
            "dag": dag,
            "version": version,
            "versions": page_dag.versions(dag),
            "source": coloured(source) if source is not None else None,
        },
    )


def coloured(source: str) -> SafeString | str:
    """Python as spans with the classes of pygments; plain text when it is too long for that."""
    if len(source) > COLOURED_CHARS:
        return source
    return mark_safe(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True, classprefix="py-")))


@page
def details(ask: Ask, dag_id: str) -> HttpResponse:
    dag = ask.dag(dag_id)
    document = dict(dag.latest_version.document) if dag.latest_version else {}
    for listed in ("tasks", "groups"):
        document.pop(listed, None)
    return ask.show(
        "dag_details.html",
        {
            "section": "scheduler:dags",
            "tab": "details",
            "dag": dag,
            "document": sorted(document.items()),
            "import_error": page_dag.import_error(dag),
        },
    )
