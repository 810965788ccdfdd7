"""The table of routes below ``/api/v2``. Names of operations are those of Airflow's API."""

from __future__ import annotations

from django.urls import path, re_path
from rest_framework.request import Request
from rest_framework.response import Response

from . import errors, openapi
from .endpoint import Endpoint
from .resources import (
    assets,
    backfills,
    bulk_runs,
    callbacks,
    connections,
    dags,
    dependencies,
    hitl,
    limits,
    logs,
    materialize,
    monitor,
    pools,
    records,
    runs,
    state_store,
    task_instance_changes,
    task_instances,
    tasks,
    tokens,
    variables,
    workers,
    xcoms,
)


class UnknownView(Endpoint):
    """Every other path: a 404 that a client can read."""

    authentication_classes = []
    needs = dict.fromkeys(("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD"))

    def get(self, request: Request, **kwargs: str) -> Response:
        raise errors.Problem(404, "Not Found")

    post = patch = put = delete = get


_DAG = "dags/<str:dag_id>"
_RUN = f"{_DAG}/dagRuns/<str:dag_run_id>"
_TASK = f"{_RUN}/taskInstances/<str:task_id>"

urlpatterns = [
    path("monitor/health", monitor.HealthView.as_view()),
    path("auth/login", tokens.BrowserView.as_view()),
    path("auth/logout", tokens.LogoutView.as_view()),
    path("openapi.json", openapi.OpenApiView.as_view()),
    path("version", monitor.VersionView.as_view()),
    path("config", monitor.ConfigView.as_view()),
    path("config/section/<str:section>/option/<str:option>", monitor.ConfigValueView.as_view()),
    path("providers", monitor.ProvidersView.as_view()),
    path("plugins", monitor.PluginsView.as_view()),
    path("plugins/importErrors", monitor.PluginErrorsView.as_view()),
    path("jobs", monitor.JobsView.as_view()),
    # DAGs
    path("dags", dags.DagsView.as_view()),
    path(_DAG, dags.DagView.as_view()),
    path(f"{_DAG}/details", dags.DagDetailsView.as_view()),
    path(f"{_DAG}/favorite", dags.FavouriteView.as_view()),
    path(f"{_DAG}/unfavorite", dags.FavouriteView.as_view(keep=False)),
    path(f"{_DAG}/tasks", tasks.TasksView.as_view()),
    path(f"{_DAG}/tasks/<str:task_id>", tasks.TaskView.as_view()),
    path(f"{_DAG}/dagVersions", dags.DagVersionsView.as_view()),
    path(f"{_DAG}/dagVersions/<str:version_number>", dags.DagVersionView.as_view()),
    path(f"{_DAG}/clearTaskInstances", task_instance_changes.ClearView.as_view()),
    path(f"{_DAG}/assets/queuedEvents", assets.QueuedEventsView.as_view()),
    path(f"{_DAG}/assets/<str:asset_id>/queuedEvents", assets.QueuedEventsView.as_view()),
    path("dagTags", dags.DagTagsView.as_view()),
    path("dagStats", dags.DagStatsView.as_view()),
    path("dagWarnings", dags.DagWarningsView.as_view()),
    path("dagSources/<str:dag_id>", dags.DagSourceView.as_view()),
    path("parseDagFile/<str:file_token>", dags.ParseDagFileView.as_view()),
    # runs
    path(f"{_DAG}/dagRuns", bulk_runs.RunListView.as_view()),
    path(f"{_DAG}/dagRuns/list", runs.RunsBatchView.as_view()),
    path(f"{_DAG}/clearDagRuns", bulk_runs.ClearRunsView.as_view()),
    path(f"{_DAG}/clearPartitions", bulk_runs.ClearPartitionsView.as_view()),
    path(_RUN, runs.RunView.as_view()),
    path(f"{_RUN}/clear", runs.RunClearView.as_view()),
    path(f"{_RUN}/wait", runs.WaitView.as_view()),
    path(f"{_RUN}/upstreamAssetEvents", runs.UpstreamEventsView.as_view()),
    # backfills
    path("backfills", backfills.BackfillsView.as_view()),
    path("backfills/dry_run", backfills.DryRunView.as_view()),
    path("backfills/<str:backfill_id>", backfills.BackfillView.as_view()),
    path("backfills/<str:backfill_id>/pause", backfills.PauseView.as_view()),
    path("backfills/<str:backfill_id>/unpause", backfills.UnpauseView.as_view()),
    path("backfills/<str:backfill_id>/cancel", backfills.CancelView.as_view()),
    # task instances
    path(f"{_RUN}/taskInstances", bulk_runs.TaskInstanceListView.as_view()),
    path(f"{_RUN}/taskInstances/list", task_instances.TaskInstancesBatchView.as_view()),
    path(_TASK, task_instance_changes.TaskInstanceView.as_view()),
    path(f"{_TASK}/dry_run", task_instance_changes.PatchDryRunView.as_view()),
    path(f"{_TASK}/listMapped", task_instances.MappedListView.as_view()),
    path(f"{_TASK}/tries", task_instances.TriesView.as_view()),
    path(f"{_TASK}/tries/<str:task_try_number>", task_instances.TriesView.as_view()),
    path(f"{_TASK}/dependencies", dependencies.DependenciesView.as_view()),
    path(f"{_TASK}/links", tasks.LinksView.as_view()),
    path(f"{_TASK}/logs/<str:try_number>", logs.LogView.as_view()),
    path(f"{_TASK}/externalLogUrl/<str:try_number>", logs.ExternalLogView.as_view()),
    path(f"{_TASK}/xcomEntries", xcoms.XComsView.as_view()),
    path(f"{_TASK}/xcomEntries/<path:xcom_key>", xcoms.XComView.as_view()),
    path(f"{_TASK}/state-store", state_store.TaskStatesView.as_view()),
    path(f"{_TASK}/state-store/<path:key>", state_store.TaskStateView.as_view()),
    path(f"{_TASK}/<str:map_index>", task_instance_changes.MappedTaskInstanceView.as_view()),
    path(f"{_TASK}/<str:map_index>/dry_run", task_instance_changes.PatchDryRunView.as_view()),
    path(f"{_TASK}/<str:map_index>/dependencies", dependencies.DependenciesView.as_view()),
    path(f"{_RUN}/hitlDetails", hitl.DetailsView.as_view()),
    path(f"{_TASK}/<str:map_index>/hitlDetails", hitl.DetailView.as_view()),
    path(f"{_TASK}/<str:map_index>/hitlDetails/tries/<str:try_number>", hitl.TryView.as_view()),
    path(f"{_TASK}/<str:map_index>/tries", task_instances.TriesView.as_view()),
    path(f"{_TASK}/<str:map_index>/tries/<str:task_try_number>", task_instances.TriesView.as_view()),
    path(f"{_RUN}/taskGroupInstances/<str:group_id>", task_instance_changes.GroupPatchView.as_view()),
    path(f"{_RUN}/taskGroupInstances/<str:group_id>/dry_run", task_instance_changes.GroupPatchView.as_view(dry=True)),
    # assets
    path("assets", assets.AssetsView.as_view()),
    path("assets/aliases", assets.AliasesView.as_view()),
    path("assets/aliases/<str:asset_alias_id>", assets.AliasView.as_view()),
    path("assets/events", assets.AssetEventsView.as_view()),
    path("assets/<str:asset_id>", assets.AssetView.as_view()),
    path("assets/<str:asset_id>/materialize", materialize.MaterializeView.as_view()),
    path("assets/<str:asset_id>/queuedEvents", assets.QueuedEventsView.as_view()),
    path("assets/<str:asset_id>/state-store", state_store.AssetStatesView.as_view()),
    path("assets/<str:asset_id>/state-store/<path:key>", state_store.AssetStateView.as_view()),
    # what an operator keeps
    path("pools", pools.PoolsView.as_view()),
    path("pools/<path:pool_name>", pools.PoolView.as_view()),
    path("limits", limits.LimitsView.as_view()),
    path("limits/<path:limit_name>", limits.LimitView.as_view()),
    path("variables", variables.VariablesView.as_view()),
    path("variables/<path:variable_key>", variables.VariableView.as_view()),
    path("connections", connections.ConnectionsView.as_view()),
    path("connections/test", connections.ConnectionTestView.as_view()),
    path("connections/enqueue-test", connections.EnqueueTestView.as_view()),
    path("connections/<str:connection_id>", connections.ConnectionView.as_view()),
    # what was recorded
    path("importErrors", records.ImportErrorsView.as_view()),
    path("importErrors/<str:import_error_id>", records.ImportErrorView.as_view()),
    path("eventLogs", records.EventLogsView.as_view()),
    path("eventLogs/<str:event_log_id>", records.EventLogView.as_view()),
    # ours alone
    path("workers", workers.WorkersView.as_view()),
    path("callbacks", callbacks.CallbacksView.as_view()),
    path("callbacks/<str:callback_id>", callbacks.CallbackView.as_view()),
    path("callbacks/<str:callback_id>/logs", callbacks.CallbackLogView.as_view()),
    path("callbacks/<str:callback_id>/replay", callbacks.ReplayView.as_view()),
    re_path(r"^(?P<rest>.*)$", UnknownView.as_view()),
]
