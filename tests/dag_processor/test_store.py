"""What a parse leaves behind in the database."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import access
from scheduler_app.actions import backfills
from scheduler_app.dag_processor.bundle import Bundle
from scheduler_app.models import (
    Asset,
    AssetUse,
    Backfill,
    BundleVersion,
    DagFile,
    DagModel,
    DagRun,
    DagVersion,
    DagWarning,
    Limit,
    ParseError,
    SourceBlob,
    Wake,
)

from .conftest import World, at, dag_doc, make_world

pytestmark = pytest.mark.django_db


def dag(dag_id: str = "sales") -> DagModel:
    return DagModel.objects.get(pk=dag_id)


def errors() -> dict[str, str]:
    return dict(ParseError.objects.values_list("filename", "stack_trace"))


def test_a_new_file_gives_its_dags_a_row_a_version_and_a_next_run(world: World):
    document = dag_doc(
        "sales",
        "extract",
        "load",
        start_date="2026-01-01T00:00:00+00:00",
        catchup=True,
        timetable={"kind": "cron_trigger", "expression": "0 6 * * *", "timezone": "UTC"},
        timetable_summary="0 6 * * *",
        timetable_periodic=True,
        tags=("daily", "team"),
        owners=("ann", "bob"),
        description="Sums",
    )
    world.write("a/sales.py", document)
    assert world.look() == ["a/sales.py"]
    row = dag()
    assert row.relative_fileloc == "a/sales.py"
    assert row.fileloc == str(world.folder / "a" / "sales.py")
    assert (row.owners, row.description, row.timetable_summary) == ("ann, bob", "Sums", "0 6 * * *")
    assert row.is_paused is True
    assert row.is_stale is False
    assert row.next_dagrun_run_after.isoformat() == "2026-01-01T06:00:00+00:00"
    assert row.last_parsed_time == at(5)
    assert row.last_parse_duration == 0.5
    assert sorted(row.tags.values_list("name", flat=True)) == ["daily", "team"]
    version = row.latest_version
    assert (version.version_number, version.document) == (1, document)
    assert bytes(SourceBlob.objects.get(pk=version.source_sha256).content) == b"import airflow # dag "
    assert version.bundle_version == row.bundle_version == BundleVersion.objects.get().version


def test_a_hundred_parses_of_the_same_dag_are_one_version_and_an_unchanged_file_is_not_parsed(world: World):
    world.write("sales.py", dag_doc("sales"))
    assert world.look() == ["sales.py"]
    assert world.look() == []
    for _ in range(99):
        world.look(every_file=True)
    assert DagVersion.objects.count() == 1
    assert BundleVersion.objects.count() == 1


def test_an_unchanged_parse_writes_little(world: World, django_assert_max_num_queries):
    world.write("sales.py", dag_doc("sales", tags=("one",)))
    world.look()
    with django_assert_max_num_queries(10):
        world.look(every_file=True)


def test_an_edit_makes_the_next_version_and_wakes_the_running_runs(world: World):
    world.write("sales.py", dag_doc("sales", "extract"))
    world.look()
    first = dag().latest_version
    for number, state in enumerate(("running", "queued", "success")):
        DagRun.objects.create(
            dag_id="sales", run_id=f"r{number}", run_type="manual", state=state, run_after=at(0), dag_version=first
        )
    world.write("sales.py", dag_doc("sales", "extract", "load"))
    world.look()
    assert list(DagVersion.objects.order_by("version_number").values_list("version_number", flat=True)) == [1, 2]
    assert dag().latest_version.version_number == 2
    assert list(Wake.objects.values_list("dag_run__run_id", "reason", "created_at")) == [("r0", "new_version", at(10))]


def test_BC_113_a_definition_that_varies_by_itself_replaces_its_unused_version_and_is_warned_about(world: World):
    world.write("sales.py", dag_doc("sales", description="made at 1"))
    world.look()
    for number in range(2, 6):
        world.says("sales.py", dag_doc("sales", description=f"made at {number}"))
        world.look(every_file=True)
    assert list(DagVersion.objects.values_list("version_number", flat=True)) == [1]
    assert dag().latest_version.document["description"] == "made at 5"
    warning = DagWarning.objects.get()
    assert warning.warning_type == "runtime varying value"
    assert warning.message.startswith("The definition changed although the file did not: description.")


def test_a_varying_definition_makes_a_version_once_the_last_one_was_used(world: World):
    world.write("sales.py", dag_doc("sales", description="1"))
    world.look()
    DagRun.objects.create(
        dag_id="sales", run_id="r", run_type="manual", run_after=at(0), dag_version=dag().latest_version
    )
    world.says("sales.py", dag_doc("sales", description="2"))
    world.look(every_file=True)
    assert list(DagVersion.objects.order_by("version_number").values_list("version_number", flat=True)) == [1, 2]


def test_a_warning_goes_when_the_next_source_is_steady(world: World):
    world.write("sales.py", dag_doc("sales", description="1"))
    world.look()
    world.says("sales.py", dag_doc("sales", description="2"))
    world.look(every_file=True)
    assert DagWarning.objects.count() == 1
    world.look(every_file=True)
    assert DagWarning.objects.count() == 1
    world.write("sales.py", dag_doc("sales", description="fixed"))
    world.look()
    assert DagWarning.objects.count() == 0


def test_a_broken_file_keeps_the_last_good_version_and_says_why(world: World):
    world.write("sales.py", dag_doc("sales"))
    world.look()
    world.write("sales.py", import_error="Traceback\nImportError: no module named missing")
    world.look()
    assert errors() == {"sales.py": "Traceback\nImportError: no module named missing"}
    assert (dag().has_import_errors, dag().is_stale, dag().latest_version.version_number) == (True, False, 1)
    world.write("sales.py", dag_doc("sales"))
    world.look()
    assert errors() == {}
    assert (dag().has_import_errors, DagVersion.objects.count()) == (False, 1)


def test_a_file_whose_import_failed_half_way_lists_none_of_its_new_dags(world: World):
    world.write("half.py", dag_doc("first"), import_error="boom")
    world.look()
    assert DagModel.objects.count() == 0
    assert errors() == {"half.py": "boom"}


def test_one_broken_dag_of_a_file_does_not_stop_the_others(world: World):
    world.write("two.py", dag_doc("good"), dag_doc("bad"))
    world.look()
    world.write("two.py", dag_doc("good", "a", "b"), dag_errors={"bad": "cannot be serialised"})
    world.look()
    assert dag("good").latest_version.version_number == 2
    assert (dag("bad").has_import_errors, dag("bad").is_stale) == (True, False)
    assert errors() == {"two.py": "cannot be serialised"}


def test_a_file_with_a_broken_dag_brings_no_new_dag_until_it_is_mended(world: World):
    world.write("two.py", dag_doc("good"), dag_errors={"bad": "a cycle"})
    world.look()
    assert DagModel.objects.count() == 0
    assert errors() == {"two.py": "a cycle\n\nNot listed until this file has no error: good."}
    world.write("two.py", dag_doc("good"), dag_doc("bad"))
    world.look()
    assert sorted(DagModel.objects.values_list("pk", flat=True)) == ["bad", "good"]


def test_a_document_that_the_scheduler_cannot_use_is_an_import_error_and_lists_nothing(world: World):
    document = dag_doc("loop", "a", "b")
    document["tasks"][1]["downstream"] = ["a"]
    world.write("loop.py", document)
    world.look()
    assert DagModel.objects.count() == 0
    assert "DAG 'loop' cannot be scheduled" in errors()["loop.py"]


def test_a_dag_that_its_file_no_longer_defines_is_stale_at_once_and_comes_back(world: World):
    world.write("two.py", dag_doc("one"), dag_doc("other"))
    world.look()
    world.write("two.py", dag_doc("one"))
    world.look()
    assert (dag("one").is_stale, dag("other").is_stale) == (False, True)
    world.write("two.py", dag_doc("one"), dag_doc("other"))
    world.look()
    assert dag("other").is_stale is False


def test_a_file_is_gone_only_after_two_scans(world: World):
    world.write("sales.py", dag_doc("sales"))
    world.write("other.py", dag_doc("other"))
    world.look()
    (world.folder / "sales.py").unlink()
    world.look()
    assert dag().is_stale is False
    assert DagFile.objects.get(relative_path="sales.py").missed_scans == 1
    world.look()
    assert (dag().is_stale, dag("other").is_stale) == (True, False)
    assert list(DagFile.objects.values_list("relative_path", flat=True)) == ["other.py"]


def test_a_file_that_is_back_at_the_next_scan_was_never_gone(world: World):
    world.write("sales.py", dag_doc("sales"))
    world.look()
    text = (world.folder / "sales.py").read_text()
    (world.folder / "sales.py").unlink()
    world.look()
    (world.folder / "sales.py").write_text(text)
    world.look()
    (world.folder / "sales.py").unlink()
    world.look()
    assert (dag().is_stale, DagFile.objects.get().missed_scans) == (False, 1)


def test_an_unreadable_folder_makes_nothing_stale(world: World):
    world.write("sales.py", dag_doc("sales"))
    world.look()
    hidden = world.folder.rename(world.folder.with_name("elsewhere"))
    for _ in range(3):
        assert world.look() == []
    assert dag().is_stale is False
    hidden.rename(world.folder)


def test_S_69_a_processor_never_touches_the_dags_of_another_bundle(world: World, tmp_path_factory):
    other = make_world(tmp_path_factory.mktemp("other"), name="other")
    other.write("theirs.py", dag_doc("theirs"))
    other.look()
    world.write("ours.py", dag_doc("ours"))
    for _ in range(3):
        world.look()
    assert sorted(DagModel.objects.active().values_list("pk", flat=True)) == ["ours", "theirs"]


def test_the_second_file_with_a_dag_id_gets_an_error_that_names_both_until_the_first_is_gone(world: World):
    world.write("a.py", dag_doc("sales", description="of a"))
    world.look()
    world.write("b.py", dag_doc("sales", description="of b"), dag_doc("more"))
    world.look()
    assert errors() == {
        "b.py": "DAG 'sales' is already defined in a.py (bundle dags), so the one in b.py (bundle dags) is not used:"
        " give one of them another dag_id, or remove one of the files."
    }
    assert (dag().description, dag().has_import_errors, dag("more").is_stale) == ("of a", False, False)
    (world.folder / "a.py").unlink()
    world.look()
    assert dag().description == "of a"
    assert world.look() == ["b.py"]
    assert (dag().description, dag().relative_fileloc, dag().is_stale, errors()) == ("of b", "b.py", False, {})


def test_a_dag_that_moves_to_another_file_goes_on_there(world: World):
    world.write("a.py", dag_doc("sales"), dag_doc("rest"))
    world.look()
    world.write("b.py", dag_doc("sales"))
    world.look()
    world.write("a.py", dag_doc("rest"))
    assert set(world.look()) == {"a.py", "b.py"}
    assert (dag().relative_fileloc, dag().is_stale, errors()) == ("b.py", False, {})


def test_a_renamed_file_keeps_its_dag_without_an_error(world: World):
    world.write("old.py", dag_doc("sales"))
    world.look()
    (world.folder / "old.py").unlink()
    world.write("new.py", dag_doc("sales"))
    world.look()
    assert (dag().relative_fileloc, errors()) == ("new.py", {})
    world.look()
    assert (dag().is_stale, DagVersion.objects.count()) == (False, 1)


def test_a_changed_module_parses_its_importers_again_and_nobody_else(world: World):
    world.write("lib/helper.py", text="x = 1")
    world.write("uses.py", dag_doc("uses"), modules=[str(world.folder / "lib" / "helper.py")])
    world.write("alone.py", dag_doc("alone"))
    assert sorted(world.look()) == ["alone.py", "uses.py"]
    (world.folder / "lib" / "helper.py").write_text("x = 2222")
    assert world.look() == ["uses.py"]
    world.processor.own([])
    world.processor.own([world.bundle])
    assert world.look() == []


def test_a_file_that_missed_a_module_is_parsed_again_when_the_folder_changes(world: World):
    world.write("uses.py", import_error="ModuleNotFoundError: helper")
    world.look()
    assert world.look() == []
    world.says("uses.py", dag_doc("uses"))
    world.write("helper.py", text="x = 1")
    assert world.look() == ["uses.py"]
    assert errors() == {}


def test_a_person_who_asks_is_served_before_the_rest(world: World):
    world.write("a.py", dag_doc("a"))
    world.write("b.py", dag_doc("b"))
    world.look()
    DagFile.objects.filter(relative_path="a.py").update(parse_requested_at=at(7))
    assert world.work() == ["a.py"]
    assert DagFile.objects.get(relative_path="a.py").parse_requested_at is None
    assert world.work() == []


def test_a_request_that_comes_while_the_file_is_parsed_is_served_by_another_parse(world: World):
    world.write("a.py", dag_doc("a"))
    world.look()
    DagFile.objects.update(parse_requested_at=at(7))
    world.processor.take_requests(at(7))
    world.processor.submit()
    DagFile.objects.update(parse_requested_at=at(8))
    world.processor.collect(0, lambda: at(9))
    assert DagFile.objects.get().parse_requested_at == at(8)
    assert world.work() == ["a.py"]
    assert DagFile.objects.get().parse_requested_at is None


def test_a_schedule_change_moves_the_next_slot_but_never_to_or_before_the_last_created_one(world: World):
    def cron(expression: str) -> dict[str, str]:
        return {"kind": "cron_trigger", "expression": expression, "timezone": "UTC"}

    start = "2026-03-01T00:00:00+00:00"
    world.write("sales.py", dag_doc("sales", start_date=start, catchup=True, timetable=cron("0 * * * *")))
    world.look()
    last = at(3600)
    DagModel.objects.update(
        last_slot_logical_date=last, last_slot_start=last, last_slot_end=last, last_slot_run_after=last
    )
    world.look(every_file=True)
    assert dag().next_dagrun_run_after.isoformat() == "2026-03-01T00:00:00+00:00"
    world.write("sales.py", dag_doc("sales", start_date=start, catchup=True, timetable=cron("30 * * * *")))
    world.look()
    assert dag().next_dagrun_run_after.isoformat() == "2026-03-01T13:30:00+00:00"


def test_a_schedule_that_cannot_say_its_next_slot_is_the_dags_own_error(world: World):
    world.write("bad.py", dag_doc("bad", timetable={"kind": "cron_trigger", "expression": "61 25 * * *"}))
    world.write("good.py", dag_doc("good"))
    world.look()
    assert dag("bad").next_dagrun_run_after is None
    assert "61 25 * * *" in dag("bad").schedule_error
    assert dag("good").schedule_error is None


def test_a_pause_switch_is_set_once_and_then_belongs_to_people(world: World):
    world.write("sales.py", dag_doc("sales", is_paused_upon_creation=False))
    world.look()
    assert dag().is_paused is False
    DagModel.objects.update(is_paused=True)
    world.write("sales.py", dag_doc("sales", "a", is_paused_upon_creation=False))
    world.look()
    assert dag().is_paused is True


def test_assets_have_a_use_for_each_schedule_outlet_and_inlet_and_lose_it_with_the_document(world: World):
    prices = {"name": "prices", "uri": "s3://prices", "group": "asset", "extra": {"owner": "ann"}}
    orders = {"name": "orders", "uri": "orders"}
    maker = dag_doc("maker")
    maker["tasks"][0] |= {"outlets": [prices, {"alias": "any"}], "inlets": [orders]}
    user = dag_doc("user", timetable={"kind": "asset", "condition": {"all": [{"asset": prices}, {"asset": orders}]}})
    world.write("assets.py", maker, user)
    world.look()
    found = AssetUse.objects.order_by("dag_id", "kind", "id").values_list(
        "dag_id", "kind", "asset__name", "alias__name"
    )
    assert list(found) == [
        ("maker", "inlet", "orders", None),
        ("maker", "outlet", "prices", None),
        ("maker", "outlet", None, "any"),
        ("user", "schedule", "prices", None),
        ("user", "schedule", "orders", None),
    ]
    assert Asset.objects.get(name="prices").extra == {"owner": "ann"}
    world.write("assets.py", dag_doc("maker"), user)
    world.look()
    assert set(AssetUse.objects.values_list("dag_id", flat=True)) == {"user"}
    world.write("assets.py", dag_doc("maker"), dag_doc("user"))
    world.look()
    assert dict(Asset.objects.values_list("name", "is_active")) == {"prices": False, "orders": False}


def test_a_pool_that_does_not_exist_is_warned_about_until_the_task_uses_another(world: World):
    document = dag_doc("sales")
    document["tasks"][0]["pool"] = "nowhere"
    world.write("sales.py", document)
    world.look()
    assert DagWarning.objects.get().warning_type == "non-existent pool"
    world.write("sales.py", dag_doc("sales"))
    world.look()
    assert DagWarning.objects.count() == 0


def test_planned_slots_are_stored_without_a_new_version_and_planned_again_when_they_run_short(world: World):
    def custom(hours: range) -> dict[str, object]:
        planned = [{"run_after": at(hour * 3600).isoformat()} for hour in hours]
        return {"kind": "custom", "class": "my.Timetable", "planned": planned}

    world.write("sales.py", dag_doc("sales", timetable=custom(range(1, 5))))
    world.look()
    assert dag().next_dagrun_run_after == at(3600)
    last = at(3600)
    DagModel.objects.update(
        last_slot_logical_date=last, last_slot_start=last, last_slot_end=last, last_slot_run_after=last
    )
    assert world.look(seconds=3 * 3600) == []
    world.says("sales.py", dag_doc("sales", timetable=custom(range(2, 9))))
    assert world.look(seconds=3600) == ["sales.py"]
    assert world.parser.plans[-1] == {
        "last_slots": {"sales": {"start": at(3600).isoformat(), "end": at(3600).isoformat()}},
        "manual": {},
        "ranges": {},
    }
    assert dag().next_dagrun_run_after == at(4 * 3600), "the latest that is due: it does not catch up"
    assert DagVersion.objects.count() == 1


def test_a_processor_that_lost_its_lease_writes_nothing(tmp_path: Path, world: World):
    class Lost(Exception):
        pass

    def refuse() -> None:
        raise Lost

    late = make_world(tmp_path, guard=refuse)
    late.write("sales.py", dag_doc("sales"))
    with pytest.raises(Lost):
        late.look()
    assert DagModel.objects.count() == 0


def test_a_narrowed_processor_leaves_the_rest_of_the_bundle_alone(world: World):
    world.write("team/a.py", dag_doc("a"))
    world.write("b.py", dag_doc("b"))
    world.look()
    world.processor.own([])
    world.processor.own([Bundle("dags", world.folder, "team")])
    (world.folder / "b.py").unlink()
    (world.folder / "team" / "a.py").unlink()
    for _ in range(2):
        world.look()
    assert (dag("a").is_stale, dag("b").is_stale) == (True, False)


def test_BC_113_dates_that_move_with_the_clock_make_no_version_however_often_the_dag_ran(world: World):
    def moving() -> dict[str, object]:
        return dag_doc("sales", start_date=(world.now - timedelta(days=1)).isoformat())

    world.write("sales.py", moving())
    world.look()
    DagRun.objects.create(
        dag_id="sales", run_id="r", run_type="manual", run_after=at(0), dag_version=dag().latest_version
    )
    for number in range(5):
        world.now += timedelta(seconds=60)
        if number % 2:
            world.write("sales.py", moving())
        else:
            world.says("sales.py", moving())
        world.look(every_file=True)
    assert DagVersion.objects.count() == 1
    assert "although the file did not: start_date." in DagWarning.objects.get().message


def test_a_manual_run_whose_timetable_is_the_authors_own_gets_its_interval_from_a_parse(world: World):
    timetable = {"kind": "custom", "class": "my.Timetable"}
    world.write("sales.py", dag_doc("sales", timetable=timetable))
    world.look()
    runs = [
        DagRun.objects.create(dag_id="sales", run_id=f"r{n}", run_type="manual", run_after=at(n), interval_pending=True)
        for n in range(3)
    ]
    keys = [str(run.pk) for run in runs]
    world.says(
        "sales.py",
        dag_doc("sales", timetable=timetable),
        intervals={
            keys[0]: {"start": at(-60).isoformat(), "end": at(0).isoformat()},
            keys[1]: {"error": "KeyError: 'x'"},
            keys[2]: {"start": at(0).isoformat(), "end": at(-1).isoformat()},
        },
    )
    assert world.work() == ["sales.py"]
    assert world.parser.plans[-1]["manual"] == {"sales": {key: at(n).isoformat() for n, key in enumerate(keys)}}
    for run in runs:
        run.refresh_from_db()
    assert (runs[0].data_interval_start, runs[0].data_interval_end) == (at(-60), at(0))
    assert [run.state for run in runs] == ["queued", "failed", "failed"]
    assert runs[0].interval_pending is False
    assert runs[1].state_reason == "The DAG's timetable cannot say the data interval of this run: KeyError: 'x'"
    assert world.work() == []


def test_a_broken_file_is_asked_for_an_interval_once_a_minute(world: World):
    world.write("sales.py", dag_doc("sales", timetable={"kind": "custom", "class": "my.Timetable"}))
    world.look()
    DagRun.objects.create(dag_id="sales", run_id="r", run_type="manual", run_after=at(0), interval_pending=True)
    world.says("sales.py", import_error="boom")
    assert world.work() == ["sales.py"]
    assert world.work() == []
    world.now += timedelta(seconds=60)
    assert world.work() == ["sales.py"]


def test_each_state_of_the_folder_is_a_version_but_files_that_are_not_python_make_one_a_minute(world: World):
    world.write("sales.py", dag_doc("sales"))
    world.look()
    for number in range(5):
        world.write("out/data.json", text="1" * (number + 1))
        world.look()
    assert BundleVersion.objects.count() == 1
    world.look(seconds=60)
    newest = BundleVersion.objects.get(manifest__has_key="out/data.json")
    assert dag().bundle_version == newest.version
    assert bytes(SourceBlob.objects.get(pk=newest.manifest["out/data.json"]).content) == b"11111"
    world.write("helper.py", text="x = 1")
    world.look()
    assert BundleVersion.objects.count() == 3
    (world.folder / "helper.py").unlink()
    world.look()
    assert (BundleVersion.objects.count(), dag().bundle_version) == (3, newest.version)


def test_what_cannot_be_stored_is_the_files_own_error_and_the_others_go_on(world: World):
    world.write("long.py", dag_doc("long", tags=("t" * 101,)))
    world.write("odd.py", import_error="bad \x00 sign \ud800")
    world.write("good.py", dag_doc("good"))
    world.look()
    assert list(DagModel.objects.values_list("pk", flat=True)) == ["good"]
    assert errors()["long.py"].startswith("What this file defines cannot be stored: DataError: value too long")
    assert errors()["odd.py"] == "bad \\x00 sign \\ud800"
    assert world.look() == []


def limited(dag_id: str, *limits: dict[str, Any]) -> dict[str, Any]:
    document = dag_doc(dag_id)
    document["tasks"][0]["limits"] = list(limits)
    return document


def numbers() -> dict[str, tuple[int, float | None, str | None]]:
    rows = Limit.objects.values_list("name", "amount", "per_seconds", "declared_by")
    return {name: (amount, window, dag_id) for name, amount, window, dag_id in rows}


def test_the_number_of_a_limit_in_a_file_makes_it_and_changes_it(world: World):
    world.write("sales.py", limited("sales", {"name": "crm", "amount": 60, "per_seconds": 60.0}, {"name": "db"}))
    world.look()
    assert numbers() == {"crm": (60, 60.0, "sales")}
    assert "There is no limit 'db', which only need" in DagWarning.objects.get().message
    world.write("sales.py", limited("sales", {"name": "crm", "amount": 2}))
    world.look()
    assert numbers() == {"crm": (2, None, "sales")}
    assert not DagWarning.objects.exists()


def test_a_persons_number_and_that_of_the_first_dag_hold(world: World):
    Limit.objects.create(name="crm", amount=5)
    world.write("one.py", limited("one", {"name": "crm", "amount": 9}, {"name": "db", "amount": 3}))
    world.look()
    world.write("two.py", limited("two", {"name": "db", "amount": 4}))
    world.look()
    assert numbers() == {"crm": (5, None, None), "db": (3, None, "one")}
    assert list(DagWarning.objects.order_by("dag_id").values_list("dag_id", "message")) == [
        ("one", "Limit 'crm' is 5 at once, as somebody set it: the 9 at once of this file is not used."),
        ("two", "Limit 'db' is 3 at once, as another DAG's file says: the 4 at once of this file is not used."),
    ]
    DagModel.objects.filter(pk="one").update(is_stale=True)
    world.write("two.py", limited("two", {"name": "db", "amount": 6}))
    world.look()
    assert numbers()["db"] == (6, None, "two")
    assert not DagWarning.objects.filter(dag_id="two").exists()


def test_a_file_that_says_what_is_the_default_is_not_overruled_by_the_setting(tmp_path: Path):
    world = make_world(tmp_path, max_active_tasks_per_dag=3, max_active_runs_per_dag=2)
    world.write("sales.py", dag_doc("said", max_active_tasks=16, max_active_runs=16), dag_doc("unsaid"))
    world.look()
    found = DagModel.objects.order_by("pk").values_list("pk", "max_active_tasks", "max_active_runs")
    assert list(found) == [("said", 16, 16), ("unsaid", 3, 2)]


def a_backfill(world: World, **fields: Any) -> Backfill:
    timetable = {"kind": "custom", "class": "my.Timetable"}
    world.write("sales.py", dag_doc("sales", timetable=timetable))
    world.look()
    wanted = backfills.Wanted("sales", at(-86_400), at(0), **fields)
    return backfills.create(access.system("person", "ann"), wanted, world.now)


def answer(world: World, row: Backfill, ranges: Any) -> None:
    world.says("sales.py", dag_doc("sales", timetable=row.dag.timetable), ranges={str(row.pk): ranges})
    assert world.work() == ["sales.py"]
    assert world.work() == []
    row.refresh_from_db()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_backfill_of_an_authors_own_timetable_gets_its_slots_from_a_parse(world: World, reverse: bool):
    row = a_backfill(world, reverse=reverse)
    assert (row.slots_pending, row.slots.count()) == (True, 0)
    hours = [-20, -10, 0, 10]
    slots = [{"run_after": at(3600 * n).isoformat(), "logical_date": at(3600 * n).isoformat()} for n in hours]
    answer(world, row, slots)
    most = {"start": row.from_date.isoformat(), "end": row.to_date.isoformat(), "most": backfills.MOST_SLOTS}
    assert world.parser.plans[-1]["ranges"] == {"sales": {str(row.pk): most}}
    assert (row.slots_pending, row.completed_at) == (False, None)
    found = [at(3600 * n) for n in hours[:3]]  # the last is not due yet
    assert list(row.slots.order_by("ordinal").values_list("logical_date", flat=True)) == (
        found[::-1] if reverse else found
    )


def test_a_backfill_whose_slots_cannot_be_listed_ends_with_the_reason(world: World):
    row = a_backfill(world)
    answer(world, row, {"error": "KeyError: 'x'"})
    assert row.error == "The DAG's timetable cannot list its slots: KeyError: 'x'"
    assert (row.slots_pending, row.completed_at) == (False, world.now)
