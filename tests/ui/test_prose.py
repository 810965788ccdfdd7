"""Markdown of DAG authors: it reads as they meant it, and can do nothing else."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler_app.templatetags.scheduler_prose import markdown

from . import factory


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**now** and `x < y`", "<p><strong>now</strong> and <code>x &lt; y</code></p>\n"),
        ("# Title\n\n## Part", "<h3>Title</h3>\n<h4>Part</h4>\n"),
        ("    # Indented in a file", "<h3>Indented in a file</h3>\n"),
        (
            "[docs](https://example.org/a)",
            '<p><a href="https://example.org/a" rel="noopener noreferrer nofollow">docs</a></p>\n',
        ),
        (None, ""),
        ("  \n", ""),
    ],
)
def test_markdown_becomes_html(text: str | None, html: str) -> None:
    assert markdown(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:msgbox)",
        "![x](https://evil.example/pixel.png)",
        "<javascript:alert(1)>",
        '[x](https://a.example "\\" onclick=alert(1) x=\\"")',
    ],
)
def test_markdown_runs_nothing_and_asks_no_other_host(text: str) -> None:
    html = markdown(text)
    assert "<script" not in html
    assert "<img" not in html
    assert " onclick=alert" not in html.replace("&quot; onclick=alert", "")
    for scheme in ("javascript:", "data:", "vbscript:"):
        assert f'href="{scheme}' not in html.lower()


@pytest.mark.django_db
def test_the_documentation_of_a_dag_and_of_a_param_are_shown_as_markdown(admin: Client) -> None:
    schema = {"type": "string", "description_md": "see *below*"}
    document = factory.spec("sales", doc_md="### Why\n<b>no</b>", params={"day": {"value": "x", "schema": schema}})
    factory.make_dag("sales", document)
    html = admin.get("/dags/sales/").content.decode()
    assert "<h5>Why</h5>\n<p>&lt;b&gt;no&lt;/b&gt;</p>" in html or "<h5>Why</h5>\n&lt;b&gt;no&lt;/b&gt;" in html
    assert "<p>see <em>below</em></p>" in admin.get("/dags/sales/trigger/").content.decode()
