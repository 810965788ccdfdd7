"""What the document of the API says of each endpoint beside its route: the filters, orders and bodies that it reads.

A table; ``tests/api/test_openapi.py`` asks every endpoint and fails where the table says less than what was read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from . import bodies, bulk, params
from .resources import (
    assets,
    backfills,
    bulk_runs,
    callbacks,
    connections,
    dags,
    hitl,
    limits,
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
    xcoms,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list: what narrows it, and what it can be ordered by."""

    filters: tuple[params.Param, ...] = ()
    order: Collection[str] = ()
    #: it also knows cursors
    cursor: bool = False
    #: it has pages; a short list comes whole
    paged: bool = True


@dataclass(frozen=True, slots=True)
class Entities:
    """A bulk request: actions on bodies of one kind."""

    body: type[bodies.Body]


_DAGS = (
    *dags.FILTERS,
    params.exact("exclude_stale", read=params.flag),
    params.exact("is_favorite", read=params.flag),
    params.any_of("tags"),
    params.exact("tags_match_mode", read=params.one_of("any", "all")),
)
_MAP_INDEX = (params.exact("map_index", read=params.whole),)
_BEFORE = (params.exact("before", read=params.moment),)

#: endpoint → its list
LISTS: dict[type, Listed] = {
    dags.DagsView: Listed(_DAGS, dags.ORDER),
    dags.DagTagsView: Listed(params.matching("tag_name", "name"), ("name",)),
    dags.DagVersionsView: Listed(dags.DagVersionsView.filters, dags.DagVersionsView.order),
    dags.DagWarningsView: Listed(dags.DagWarningsView.filters, dags.DagWarningsView.order),
    dags.DagStatsView: Listed((params.any_of("dag_ids"),), paged=False),
    dags.DagSourceView: Listed((params.exact("version_number", read=params.whole),), paged=False),
    tasks.TasksView: Listed(order=tasks.ORDER, paged=False),
    bulk_runs.RunListView: Listed(runs.FILTERS, runs.ORDER, cursor=True),
    runs.WaitView: Listed(
        (params.exact("interval", read=params.number), params.any_of("result")),
        paged=False,
    ),
    bulk_runs.TaskInstanceListView: Listed(
        (*task_instances.FILTERS, params.exact("task_group_id")), task_instances.ORDER, cursor=True
    ),
    task_instances.MappedListView: Listed(task_instances.MAPPED_FILTERS, task_instances.ORDER, cursor=True),
    task_instances.TriesView: Listed(_MAP_INDEX, paged=False),
    backfills.BackfillsView: Listed((params.exact("dag_id"),), backfills.ORDER),
    hitl.DetailsView: Listed(hitl.FILTERS, hitl.ORDER),
    xcoms.XComsView: Listed(xcoms.FILTERS, xcoms.ORDER),
    xcoms.XComView: Listed(
        (*_MAP_INDEX, *(params.exact(name, read=params.flag) for name in ("deserialize", "stringify"))), paged=False
    ),
    state_store.TaskStatesView: Listed(_MAP_INDEX),
    state_store.TaskStateView: Listed(_MAP_INDEX, paged=False),
    state_store.AssetStatesView: Listed(),
    assets.AssetsView: Listed(
        (*assets.AssetsView.filters, params.any_of("dag_ids"), params.exact("only_active", read=params.flag)),
        assets.AssetsView.order,
    ),
    assets.AliasesView: Listed(params.matching("name", "name"), assets.AliasesView.order),
    assets.AssetEventsView: Listed(assets.AssetEventsView.filters, assets.AssetEventsView.order),
    assets.QueuedEventsView: Listed(_BEFORE, paged=False),
    pools.PoolsView: Listed(params.matching("pool_name", "pool"), pools.ORDER),
    limits.LimitsView: Listed(params.matching("limit_name", "name"), limits.ORDER),
    variables.VariablesView: Listed(params.matching("variable_key", "key"), variables.ORDER),
    connections.ConnectionsView: Listed(params.matching("connection_id", "connection_id"), connections.ORDER),
    records.ImportErrorsView: Listed(records.ImportErrorsView.filters, records.ImportErrorsView.order),
    records.EventLogsView: Listed(records.EventLogsView.filters, records.EventLogsView.order),
    callbacks.CallbacksView: Listed(callbacks.FILTERS, callbacks.ORDER),
    monitor.JobsView: Listed(monitor.JobsView.filters, monitor.JobsView.order),
}

#: (endpoint, method) → the body that it reads
BODIES: dict[tuple[type, str], type[bodies.Body] | Entities] = {
    (tokens.TokenView, "POST"): tokens.LoginBody,
    (tokens.CliTokenView, "POST"): tokens.LoginBody,
    (dags.DagsView, "PATCH"): dags.DagPatchBody,
    (dags.DagView, "PATCH"): dags.DagPatchBody,
    (bulk_runs.RunListView, "POST"): runs.TriggerBody,
    (bulk_runs.RunListView, "PATCH"): Entities(bulk_runs.RunEntity),
    (bulk_runs.ClearRunsView, "POST"): bulk_runs.ClearRunsBody,
    (bulk_runs.ClearPartitionsView, "POST"): bulk_runs.ClearPartitionsBody,
    (bulk_runs.TaskInstanceListView, "PATCH"): Entities(bulk_runs.TaskEntity),
    (runs.RunsBatchView, "POST"): runs.RunsBatchBody,
    (runs.RunView, "PATCH"): runs.RunPatchBody,
    (runs.RunClearView, "POST"): runs.RunClearBody,
    (task_instances.TaskInstancesBatchView, "POST"): task_instances.BatchBody,
    (task_instance_changes.ClearView, "POST"): task_instance_changes.ClearBody,
    (task_instance_changes.TaskInstanceView, "PATCH"): task_instance_changes.PatchBody,
    (task_instance_changes.MappedTaskInstanceView, "PATCH"): task_instance_changes.PatchBody,
    (task_instance_changes.PatchDryRunView, "PATCH"): task_instance_changes.PatchBody,
    (task_instance_changes.GroupPatchView, "PATCH"): task_instance_changes.PatchBody,
    (backfills.BackfillsView, "POST"): backfills.BackfillBody,
    (backfills.DryRunView, "POST"): backfills.BackfillBody,
    (hitl.DetailView, "PATCH"): hitl.AnswerBody,
    (xcoms.XComsView, "POST"): xcoms.CreateBody,
    (xcoms.XComView, "PATCH"): xcoms.UpdateBody,
    (callbacks.ReplayView, "POST"): callbacks.ReplayBody,
    (assets.AssetEventsView, "POST"): assets.EventBody,
    (materialize.MaterializeView, "POST"): materialize.MaterializeBody,
    (pools.PoolsView, "POST"): pools.PoolBody,
    (pools.PoolsView, "PATCH"): Entities(pools.PoolBody),
    (pools.PoolView, "PATCH"): pools.PoolPatchBody,
    (limits.LimitsView, "POST"): limits.LimitBody,
    (limits.LimitView, "PATCH"): limits.LimitPatchBody,
    (variables.VariablesView, "POST"): variables.VariableBody,
    (variables.VariablesView, "PATCH"): Entities(variables.VariableBody),
    (variables.VariableView, "PATCH"): variables.VariableBody,
    (connections.ConnectionsView, "POST"): connections.ConnectionBody,
    (connections.ConnectionsView, "PATCH"): Entities(connections.ConnectionBody),
    (connections.ConnectionTestView, "POST"): connections.ConnectionBody,
    (connections.EnqueueTestView, "POST"): connections.TestRequestBody,
    (connections.ConnectionView, "PATCH"): connections.ConnectionBody,
    (state_store.TaskStateView, "PUT"): state_store.TaskValueBody,
    (state_store.TaskStateView, "PATCH"): state_store.ValueBody,
    (state_store.AssetStateView, "PUT"): state_store.ValueBody,
}

#: the envelope of every bulk request
BULK = bulk.ActionBody
