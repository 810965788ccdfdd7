"""Roles, groups, and rules of a site for single DAGs; test_matrix.py has each role against every route."""

from __future__ import annotations

import itertools

from scheduler_app.access import KINDS, ROLES, of_user
from scheduler_app.access.permissions import codename
from tests.api.every_route import TABLE, ask

VIEWER, USER, OP, ADMIN = "Viewer", "User", "Op", "Admin"
RANK = [VIEWER, USER, OP, ADMIN]


def test_a_person_without_a_group_may_nothing(db):
    from django.contrib.auth.models import User

    from tests.api.conftest import Http

    stranger = Http(User.objects.create_user("stranger"))
    assert stranger.get("dags").status_code == 403


def test_the_groups_of_the_migration_are_those_of_the_table(db):
    from django.contrib.auth.models import Group

    for role, codes in ROLES.items():
        group = Group.objects.get(name=role)
        have = {f"scheduler_app.{permission.codename}" for permission in group.permissions.all()}
        want = {codename(*code.split("_", 1)) for code in codes}
        assert have == want, role


def test_roles_only_grow():
    for less, more in itertools.pairwise(RANK):
        assert ROLES[less] < ROLES[more]
    assert len(ROLES[ADMIN]) == 4 * len(KINDS)


def only_etl(actor, verb):
    """A per-DAG rule: nobody changes a DAG, and "other" is not even seen."""
    from django.db.models import Q

    return ~Q(dag_id="other") if verb == "view" else Q(pk__in=[])


def test_a_rule_of_the_site_hides_dags_and_forbids_to_change_them(settings, etl, run, as_role):
    from tests import rows
    from tests.shapes import shape

    other = rows.store(shape("a", "other"))
    rows.trigger(other)
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": f"{__name__}.only_etl"}
    person = as_role(ADMIN)
    assert [dag["dag_id"] for dag in person.get("dags").json()["dags"]] == ["etl"]
    assert person.get("dags/other").status_code == 404
    assert {r["dag_id"] for r in person.get("dags/~/dagRuns").json()["dag_runs"]} == {"etl"}
    assert {t["dag_id"] for t in person.get("dags/~/dagRuns/~/taskInstances").json()["task_instances"]} == {"etl"}
    assert person.patch("dags/etl", {"is_paused": True}).status_code == 403
    assert person.patch("dags/other", {"is_paused": True}).status_code == 404
    assert person.post("dags/etl/dagRuns", {"logical_date": None}).status_code == 403


def test_an_inactive_user_is_nobody(admin):
    admin.is_active = False
    assert of_user(admin).permissions == frozenset()


def only_daily(actor, verb):
    """A per-DAG rule: "daily" is all that anybody sees."""
    from django.db.models import Q

    return Q(dag_id="daily")


#: documents about the product, not about what is in it
ABOUT_THE_PRODUCT = {"openapi.json", "config"}


def test_BC_111_no_route_shows_anything_of_a_dag_that_the_rule_hides(settings, world):
    """Every route that reads, whatever it lists: runs, tasks, logs, XComs, events, callbacks, backfills, the audit …"""
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": f"{__name__}.only_daily"}
    person = world(ADMIN)
    leaks, answered = {}, 0
    for method, route in TABLE:
        if method == "GET" and route not in ABOUT_THE_PRODUCT:
            answer, told = ask(person, method, route)
            answered += answer.status_code == 200
            if '"etl"' in told or '"flow"' in told:
                leaks[route] = told[:300]
    assert sorted(leaks) == []
    assert answered > 25
