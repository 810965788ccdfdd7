"""Routes of the dashboard: address → page."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from . import (
    assets,
    audit,
    cell,
    clear,
    dag_bulk,
    dag_list,
    dag_overview,
    dag_pause,
    dag_versions,
    failures,
    gantt,
    graph,
    grid,
    hold,
    home,
    import_errors,
    jobs,
    live,
    log,
    login,
    mark,
    pools,
    preferences,
    run,
    run_bulk,
    run_list,
    search,
    task,
    trigger,
)

app_name = "scheduler"

urlpatterns = [
    path("", home.show, name="home"),
    path("login/", login.LoginPage.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("healthz", jobs.healthz, name="healthz"),
    path("live/", live.poll, name="live"),
    path("search/", search.show, name="search"),
    path("me/", preferences.save, name="preferences"),
    # DAGs
    path("dags/", dag_list.show, name="dags"),
    path("bulk/dags/", dag_bulk.set_paused, name="dag_bulk"),
    path("dags/<str:dag_id>/", dag_overview.show, name="dag"),
    path("dags/<str:dag_id>/pause/", dag_pause.set_paused, name="dag_pause"),
    path("dags/<str:dag_id>/hold/", hold.new_runs, name="dag_hold"),
    path("dags/<str:dag_id>/trigger/", trigger.form, name="trigger"),
    path("dags/<str:dag_id>/clear/", clear.form, name="clear"),
    path("dags/<str:dag_id>/mark/", mark.form, name="mark"),
    path("dags/<str:dag_id>/grid/", grid.show, name="grid"),
    path("dags/<str:dag_id>/graph/", graph.show, name="graph"),
    path("dags/<str:dag_id>/code/", dag_versions.code, name="code"),
    path("dags/<str:dag_id>/details/", dag_versions.details, name="dag_details"),
    path("dags/<str:dag_id>/events/", audit.of_dag, name="dag_audit"),
    path("dags/<str:dag_id>/runs/", run_list.of_dag, name="dag_runs"),
    # Runs and task instances
    path("runs/", run_list.show, name="runs"),
    path("bulk/runs/", run_bulk.form, name="run_bulk"),
    path("dags/<str:dag_id>/runs/<str:run_id>/", run.show, name="run"),
    path("dags/<str:dag_id>/runs/<str:run_id>/graph/", graph.of_run, name="run_graph"),
    path("dags/<str:dag_id>/runs/<str:run_id>/gantt/", gantt.show, name="run_gantt"),
    path("dags/<str:dag_id>/runs/<str:run_id>/hold/", hold.run, name="run_hold"),
    path("dags/<str:dag_id>/runs/<str:run_id>/tasks/<str:task_id>/", task.show, name="task"),
    path("dags/<str:dag_id>/runs/<str:run_id>/tasks/<str:task_id>/<int:map_index>/", task.show, name="task_mapped"),
    path("dags/<str:dag_id>/runs/<str:run_id>/tasks/<str:task_id>/panel/", cell.show, name="cell"),
    path("dags/<str:dag_id>/runs/<str:run_id>/tasks/<str:task_id>/hold/", hold.task, name="task_hold"),
    path("dags/<str:dag_id>/runs/<str:run_id>/tasks/<str:task_id>/log/", log.part, name="log_part"),
    path("dags/<str:dag_id>/runs/<str:run_id>/tasks/<str:task_id>/log/download/", log.download, name="log_download"),
    path("failures/", failures.show, name="failures"),
    path("failures/<str:key>/", failures.group, name="failure"),
    path("failures/<str:key>/clear/", failures.clear_all, name="failure_clear"),
    # Assets
    path("assets/", assets.show, name="assets"),
    path("assets/<int:asset_id>/", assets.one, name="asset"),
    path("assets/<int:asset_id>/event/", assets.create_event, name="asset_event"),
    # The machine
    path("pools/", pools.show, name="pools"),
    path("jobs/", jobs.show, name="jobs"),
    path("import-errors/", import_errors.show, name="import_errors"),
    path("audit/", audit.show, name="audit"),
]
