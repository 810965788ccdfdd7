"""Markdown that the author of a DAG wrote, as HTML that can do no harm: no HTML of its own, no script, no picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from django import template
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

register = template.Library()

#: Headings start at this level: a page has one title, and it is not the author's.
TOP_LEVEL: Final = 3


@register.filter
def markdown(text: str | None) -> SafeString:
    """CommonMark with tables. HTML in the text is shown, not used; of links only harmless kinds become links."""
    source = textwrap.dedent(text or "").strip()
    return mark_safe(_reader().render(source)) if source else mark_safe("")


def _reader() -> MarkdownIt:
    # "js-default" has HTML switched off; a picture would be asked from a foreign host, which the content policy refuses
    reader = MarkdownIt("js-default", {"linkify": False}).disable("image")
    reader.core.ruler.push("humble", _lower_headings)
    reader.add_render_rule("link_open", _link)
    return reader


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + TOP_LEVEL - 1)}"


def _link(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    tokens[place].attrSet("rel", "noopener noreferrer nofollow")
    return str(renderer.renderToken(tokens, place, options, env))
