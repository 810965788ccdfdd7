"""What do tasks ask people, and the answer to one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduler_app import access
from scheduler_app.actions import hitl
from scheduler_app.actions.errors import Invalid, Missing
from scheduler_app.models import TaskInstance
from scheduler_app.queries import page_questions

from . import task, trigger_form
from .page import Ask, back, deed, page


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "task")
    questions = page_questions.waiting(access.task_instances(ask.actor))
    return ask.show("questions.html", {"section": "", "questions": questions, "most": page_questions.SHOWN})


@page
def of_task(ask: Ask, dag_id: str, run_id: str, task_id: str) -> HttpResponse:
    """The address that a task sends to those whom it asks: the question stands on the task's page."""
    return redirect(f"{_url(task.find(ask, dag_id, run_id, task_id, None))}#question")


@deed
def answer(ask: Ask, dag_id: str, run_id: str, task_id: str) -> HttpResponse:
    asked = ask.request.POST
    index = asked.get("map_index", "")
    found = task.find(ask, dag_id, run_id, task_id, int(index) if index.isdecimal() and len(index) < 9 else None)
    question = page_questions.of_task(found)
    if question is None:
        raise Missing(_("This task asks nothing."))
    chosen = asked.getlist("option")
    if not chosen:
        raise Invalid("option", _("Choose an answer first."))
    values, errors = trigger_form.read(trigger_form.fields(question.params), dict(asked.lists()))
    if errors:
        raise Invalid("params", " ".join(f"{name}: {text}" for name, text in errors.items()))
    hitl.respond(ask.actor, dag_id, run_id, task_id, found.map_index, chosen, values, ask.now)
    messages.success(ask.request, _("Answered: %(answer)s.") % {"answer": ", ".join(chosen)})
    return back(ask, _url(found))


def _url(instance: TaskInstance) -> str:
    names = [instance.dag_id, instance.dag_run.run_id, instance.task_id]
    if instance.map_index >= 0:
        return reverse("scheduler:task_mapped", args=[*names, instance.map_index])
    return reverse("scheduler:task", args=names)
