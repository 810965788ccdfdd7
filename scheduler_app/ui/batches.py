"""A deed on many things, a part at each request: so none takes long, and the person sees how far it is.

A part ends with a page that says so and sends the rest by itself (or by a button, without JavaScript). What was done
stays done when somebody leaves half-way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler_app.actions.errors import ActionError, Invalid

from .page import Ask, back, back_address

#: Things that one request does.
PART: Final = 100
#: Things that one deed takes.
MOST: Final = 1_000
#: Beyond so many the person types how many it is about.
ASK_FROM: Final = 500
#: Refusals that are told in words.
TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class Words:
    """How the pages call what is done."""

    title: str
    #: "%(n)s runs" in the reader's language, by a number
    things: Callable[[int], str]


@dataclass(slots=True)
class State:
    """How far it is: the rest, and what became of the others."""

    rest: list[str]
    total: int
    done: int = 0
    left: int = 0
    said: str = ""


def read(asked: Mapping[str, Any], things: Callable[[int], str]) -> State:
    """What a request still has to do. Raises Invalid: too many, or a number that was not typed."""
    rest = list(dict.fromkeys(part for part in asked.get("ids", "").split(",") if part))
    state = State(rest, len(rest), said=asked.get("said", ""))
    if asked.get("total"):
        state.total, state.done, state.left = (_number(asked, name) for name in ("total", "done", "left"))
    if max(len(rest), state.total) > MOST:
        raise Invalid("ids", _("At most %(things)s at once.") % {"things": things(MOST)})
    if state.total > ASK_FROM and asked.get("number", "").strip() != str(state.total):
        text = _("That is about %(things)s: type the number %(n)s to do it.")
        raise Invalid("number", text % {"things": things(state.total), "n": state.total})
    return state


def act(state: State, found: Mapping[str, Any], do: Callable[[Any], object], name: Callable[[Any], str]) -> None:
    """Does the next part: of ``found`` (by id) each; what is not found, or is refused, is left alone."""
    part, state.rest = state.rest[:PART], state.rest[PART:]
    refused = []
    for key in part:
        thing = found.get(key)
        if thing is None:
            state.left += 1
            continue
        try:
            do(thing)
            state.done += 1
        except ActionError as error:  # one that cannot keeps no other from it
            state.left += 1
            refused.append(f"{name(thing)}: {error}")
    state.said = "\n".join([*state.said.splitlines(), *refused][:TOLD])


def next_part(state: State) -> list[str]:
    """The ids that :func:`act` is about to take."""
    return state.rest[:PART]


def answer(ask: Ask, state: State, words: Words, fields: Mapping[str, str], default: str) -> HttpResponse:
    """The page between two parts, or back to where it began with what was done."""
    if not state.rest:
        return _told(ask, state, words, default)
    context = {
        "section": "",
        "state": state,
        "words": words,
        "ended": state.total - len(state.rest),
        "things": words.things(state.total),
        "ids": ",".join(state.rest),
        "fields": {**fields, "next": ask.request.POST.get("next", ""), "number": ask.request.POST.get("number", "")},
        "here": ask.request.path,
        "back": back_address(ask, default),
    }
    return ask.show("batch.html", context)


def _told(ask: Ask, state: State, words: Words, default: str) -> HttpResponse:
    text = _("%(deed)s: done for %(things)s.") % {"deed": words.title, "things": words.things(state.done)}
    messages.success(ask.request, text)
    if state.left:
        left = ngettext("%(n)s was left alone.", "%(n)s were left alone.", state.left) % {"n": state.left}
        messages.error(ask.request, " ".join([left, *state.said.splitlines()]))
    return back(ask, default)


def keys(texts: Iterable[str]) -> list[int]:
    """Those of them that can be primary keys."""
    return [int(text) for text in texts if text.isdecimal() and len(text) < 19]


def named(rows: Sequence[Any], most: int) -> tuple[Sequence[Any], int]:
    """The first rows, which a preview names, and how many more there are."""
    return rows[:most], max(0, len(rows) - most)


def _number(asked: Mapping[str, Any], name: str) -> int:
    text = asked.get(name, "0")
    return int(text) if text.isdecimal() and len(text) < 7 else 0
