"""The shapes of answers, as the document of the API describes them: names and fields are Airflow's.

A shape is a line of ``field:word``. A word is a plain kind (:data:`KINDS`), a list of words (:data:`CHOICES`), or
another shape; ``[word]`` is a list of them, ``{word}`` an object with any keys, ``a|b`` either, and ``?`` at the end
means that it may be null. A field whose name ends with ``~`` may be missing. ``+Shape`` takes over the fields of
another; ``*`` allows more than those named.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from scheduler_app.engine import states
from scheduler_app.models.backfill import REPROCESS
from scheduler_app.models.run import RUN_TYPES

Json = dict[str, Any]

KINDS: Final[dict[str, Json]] = {
    "text": {"type": "string"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "moment": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "object": {"type": "object"},
    "any": {},
    "null": {"type": "null"},
}
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "RunType": RUN_TYPES,
    "RunState": states.RUN_STATES,
    "TaskState": (*(state for state in states.TASK_STATES if state), "awaiting_input"),
    "TriggeredBy": ("cli", "operator", "rest_api", "ui", "test", "timetable", "asset", "backfill"),
    "ReprocessBehavior": REPROCESS,
    "WarningType": ("asset conflict", "non-existent pool", "runtime varying value"),
    "WriterKind": ("task", "watcher", "api"),
}
SHAPES: Final[dict[str, str]] = {
    "AssetAliasCollectionResponse": "asset_aliases:[AssetAliasResponse] total_entries:int",
    "AssetAliasResponse": "id:int name:text group:text",
    "AssetCollectionResponse": "assets:[AssetResponse] total_entries:int",
    "AssetEventCollectionResponse": "asset_events:[AssetEventResponse] total_entries:int",
    "AssetEventResponse": """
        id:int asset_id:int uri:text? name:text? group:text? extra:object? source_task_id:text?
        source_dag_id:text? source_run_id:text? source_map_index:int created_dagruns:[DagRunAssetReference]
        timestamp:moment partition_key:text?""",
    "AssetResponse": """
        id:int name:text uri:text group:text extra:object? created_at:moment updated_at:moment
        scheduled_dags:[DagScheduleAssetReference] producing_tasks:[TaskOutletAssetReference]
        consuming_tasks:[TaskInletAssetReference] aliases:[AssetAliasResponse] watchers:[AssetWatcherResponse]
        last_asset_event:LastAssetEventResponse?""",
    "AssetStateStoreCollectionResponse": "asset_state_store:[AssetStateStoreResponse] total_entries:int",
    "AssetStateStoreLastUpdatedBy": "kind:WriterKind dag_id:text? run_id:text? task_id:text? map_index:int?",
    "AssetStateStoreResponse": "key:text value:any updated_at:moment last_updated_by:AssetStateStoreLastUpdatedBy?",
    "AssetWatcherResponse": "name:text trigger_id:int created_date:moment",
    "BackfillCollectionResponse": "backfills:[BackfillResponse] total_entries:int",
    "BackfillResponse": """
        id:int dag_id:text from_date:moment to_date:moment dag_run_conf:object? is_paused:flag
        reprocess_behavior:ReprocessBehavior max_active_runs:int created_at:moment completed_at:moment?
        updated_at:moment dag_display_name:text""",
    "BaseInfoResponse": "status:text?",
    "BulkActionResponse": "success:[text] errors:[object]",
    "BulkResponse": "create:BulkActionResponse? update:BulkActionResponse? delete:BulkActionResponse?",
    "ClearPartitionsResponse": "dag_runs_cleared:int task_instances_cleared:int dry_run:flag",
    "ClearTaskInstanceCollectionResponse": """
        task_instances:[TaskInstanceResponse|NewTaskResponse] total_entries:int""",
    "Config": "sections:[ConfigSection]",
    "ConfigOption": "key:text value:text|[any]",
    "ConfigSection": "name:text options:[ConfigOption]",
    "ConnectionCollectionResponse": "connections:[ConnectionResponse] total_entries:int",
    "ConnectionResponse": """
        connection_id:text conn_type:text description:text? host:text? login:text? schema:text? port:int?
        password:text? extra:text? team_name:text?""",
    "DAGCollectionResponse": "dags:[DAGResponse] total_entries:int",
    "DAGDetailsResponse": """
        +DAGResponse catchup:flag dag_run_timeout:text? asset_expression:object? doc_md:text? start_date:moment?
        end_date:moment? is_paused_upon_creation:flag? params:object? render_template_as_native_obj:flag
        template_search_path:[text]? timezone:text? last_parsed:moment? default_args:object?
        rerun_with_latest_version:flag? owner_links:{text}? is_favorite:flag active_runs_count:int
        concurrency:int latest_dag_version:DagVersionResponse?""",
    "DAGResponse": """
        dag_id:text dag_display_name:text is_paused:flag is_stale:flag last_parsed_time:moment?
        last_parse_duration:number? last_expired:moment? bundle_name:text? bundle_version:text?
        relative_fileloc:text? fileloc:text description:text? timetable_summary:text?
        timetable_description:text? timetable_partitioned:flag timetable_periodic:flag tags:[DagTagResponse]
        max_active_tasks:int max_active_runs:int? max_consecutive_failed_dag_runs:int
        has_task_concurrency_limits:flag has_import_errors:flag next_dagrun_logical_date:moment?
        next_dagrun_data_interval_start:moment? next_dagrun_data_interval_end:moment?
        next_dagrun_run_after:moment? allowed_run_types:[RunType]? owners:[text] is_backfillable:flag
        file_token:text""",
    "DAGRunCollectionResponse": """
        dag_runs:[DAGRunResponse] total_entries:int? total_entries_limit:int? next_cursor:text?
        previous_cursor:text?""",
    "DAGRunResponse": """
        dag_run_id:text dag_id:text logical_date:moment? queued_at:moment? start_date:moment? end_date:moment?
        duration:number? data_interval_start:moment? data_interval_end:moment? run_after:moment
        last_scheduling_decision:moment? run_type:RunType state:RunState triggered_by:TriggeredBy?
        triggering_user_name:text? conf:object? note:text? dag_versions:[DagVersionResponse]
        bundle_version:text? dag_display_name:text partition_key:text? partition_date:moment?""",
    "DAGSourceResponse": "content:text? dag_id:text version_number:int? dag_display_name:text",
    "DAGTagCollectionResponse": "tags:[text] total_entries:int",
    "DAGVersionCollectionResponse": "dag_versions:[DagVersionResponse] total_entries:int",
    "DAGWarningCollectionResponse": "dag_warnings:[DAGWarningResponse] total_entries:int",
    "DAGWarningResponse": """
        dag_id:text warning_type:WarningType message:text timestamp:moment dag_display_name:text""",
    "DagProcessorInfoResponse": "status:text? latest_dag_processor_heartbeat:text?",
    "DagRunAssetReference": """
        run_id:text dag_id:text logical_date:moment? start_date:moment end_date:moment? state:text
        data_interval_start:moment? data_interval_end:moment? partition_key:text? triggering:flag""",
    "DagScheduleAssetReference": "dag_id:text created_at:moment updated_at:moment",
    "DagStatsCollectionResponse": "dags:[DagStatsResponse] total_entries:int",
    "DagStatsResponse": "dag_id:text dag_display_name:text stats:[DagStatsStateResponse]",
    "DagStatsStateResponse": "state:RunState count:int",
    "DagTagResponse": "name:text dag_id:text dag_display_name:text",
    "DagVersionResponse": """
        id:uuid version_number:int dag_id:text bundle_name:text? bundle_version:text? created_at:moment
        dag_display_name:text bundle_url:text?""",
    "DryRunBackfillCollectionResponse": "backfills:[DryRunBackfillResponse] total_entries:int",
    "DryRunBackfillResponse": "logical_date:moment? partition_key:text? partition_date:moment?",
    "EventLogCollectionResponse": "event_logs:[EventLogResponse] total_entries:int",
    "EventLogResponse": """
        event_log_id:int when:moment dag_id:text? task_id:text? run_id:text? map_index:int? try_number:int?
        event:text logical_date:moment? owner:text? extra:text? dag_display_name:text? task_display_name:text?""",
    "ExtraLinkCollectionResponse": "extra_links:{text?} total_entries:int",
    "HITLDetail": """
        options:[text] subject:text body:text? defaults:[text]? multiple:flag params:object
        assigned_users:[HITLUser] created_at:moment responded_by_user:HITLUser? responded_at:moment?
        chosen_options:[text]? params_input:object response_received:flag task_instance:TaskInstanceResponse""",
    "HITLDetailCollection": "hitl_details:[HITLDetail] total_entries:int",
    "HITLDetailHistory": "+HITLDetail task_instance:TaskInstanceHistoryResponse",
    "HITLDetailResponse": "responded_by:HITLUser responded_at:moment chosen_options:[text] params_input:object",
    "HITLUser": "id:text name:text",
    "HealthInfoResponse": """
        metadatabase:BaseInfoResponse scheduler:SchedulerInfoResponse triggerer:TriggererInfoResponse
        dag_processor:DagProcessorInfoResponse?""",
    "ImportErrorCollectionResponse": "import_errors:[ImportErrorResponse] total_entries:int",
    "ImportErrorResponse": "import_error_id:int timestamp:moment filename:text bundle_name:text? stack_trace:text",
    "JobCollectionResponse": "jobs:[JobResponse] total_entries:int",
    "JobResponse": """
        id:int dag_id:text? state:text? job_type:text? start_date:moment? end_date:moment?
        latest_heartbeat:moment? executor_class:text? hostname:text? unixname:text? dag_display_name:text?""",
    "LastAssetEventResponse": "id:int? timestamp:moment?",
    "NewTaskResponse": "task_id:text task_display_name:text",
    "PluginCollectionResponse": "plugins:[object] total_entries:int",
    "PluginImportErrorCollectionResponse": "import_errors:[PluginImportErrorResponse] total_entries:int",
    "PluginImportErrorResponse": "source:text error:text",
    "PoolCollectionResponse": "pools:[PoolResponse] total_entries:int",
    "PoolResponse": """
        name:text slots:int description:text? include_deferred:flag occupied_slots:int running_slots:int
        queued_slots:int scheduled_slots:int open_slots:int deferred_slots:int team_name:text?""",
    "ProviderCollectionResponse": "providers:[ProviderResponse] total_entries:int",
    "ProviderResponse": "package_name:text description:text version:text documentation_url:text?",
    "QueuedEventCollectionResponse": "queued_events:[QueuedEventResponse] total_entries:int",
    "QueuedEventResponse": "dag_id:text asset_id:int created_at:moment dag_display_name:text",
    "SchedulerInfoResponse": "status:text? latest_scheduler_heartbeat:text?",
    "StructuredLogMessage": "timestamp~:moment event:text *",
    "TaskCollectionResponse": "tasks:[TaskResponse] total_entries:int",
    "TaskDependencyCollectionResponse": "dependencies:[TaskDependencyResponse]",
    "TaskDependencyResponse": "name:text reason:text",
    "TaskInletAssetReference": "+DagScheduleAssetReference task_id:text",
    "TaskInstanceCollectionResponse": """
        task_instances:[TaskInstanceResponse] total_entries:int? total_entries_limit~:int? next_cursor~:text?
        previous_cursor~:text?""",
    "TaskInstanceHistoryCollectionResponse": "task_instances:[TaskInstanceHistoryResponse] total_entries:int",
    "TaskInstanceHistoryResponse": """
        task_id:text dag_id:text dag_run_id:text map_index:int start_date:moment? end_date:moment?
        duration:number? state:TaskState? try_number:int max_tries:int task_display_name:text
        dag_display_name:text hostname:text? unixname:text? pool:text pool_slots:int queue:text?
        priority_weight:int? operator:text? operator_name:text? queued_when:moment? scheduled_when:moment?
        pid:int? executor:text? executor_config:text dag_version:DagVersionResponse?""",
    "TaskInstanceResponse": """
        +TaskInstanceHistoryResponse id:uuid logical_date:moment? run_after:moment note:text?
        rendered_map_index:text? rendered_fields:object trigger:TriggerResponse? triggerer_job:JobResponse?""",
    "TaskInstancesLogResponse": "content:[StructuredLogMessage|text] continuation_token:text?",
    "TaskOutletAssetReference": "+DagScheduleAssetReference task_id:text",
    "TaskResponse": """
        task_id:text? task_display_name:text? owner:text? start_date:moment? end_date:moment? trigger_rule:text?
        depends_on_past:flag wait_for_downstream:flag retries:number? queue:text? pool:text? pool_slots:number?
        execution_timeout:TimeDelta? retry_delay:TimeDelta? retry_exponential_backoff:number
        priority_weight:number? weight_rule:text? ui_color:text? ui_fgcolor:text? template_fields:[text]?
        downstream_task_ids:[text]? doc_md:text? operator_name:text? params:object? class_ref:object?
        is_mapped:flag? extra_links:[text]""",
    "TaskStateStoreCollectionResponse": "task_state_store:[TaskStateStoreResponse] total_entries:int",
    "TaskStateStoreResponse": "key:text value:any updated_at:moment expires_at:moment?",
    "TimeDelta": "__type:text days:int seconds:int microseconds:int",
    "TriggerResponse": "id:int classpath:text kwargs:text created_date:moment queue:text? triggerer_id:int?",
    "TriggererInfoResponse": "status:text? latest_triggerer_heartbeat:text?",
    "VariableCollectionResponse": "variables:[VariableResponse] total_entries:int",
    "VariableResponse": "key:text value:text? description:text? is_encrypted:flag team_name:text?",
    "VersionInfo": "version:text git_version:text?",
    "XComCollectionResponse": "xcom_entries:[XComResponse] total_entries:int",
    "XComResponse": """
        key:text timestamp:moment logical_date:moment? map_index:int task_id:text dag_id:text run_id:text
        dag_display_name:text task_display_name:text run_after:moment""",
    "XComResponseNative": "+XComResponse value:any",
    "XComResponseString": "+XComResponse value:text?",
    # what Airflow's API has not
    "AccessToken": "access_token:text",
    "CallbackCollection": "callbacks:[Callback] total_entries:int",
    "Callback": """
        callback_id:int kind:text dag_id:text? dag_run_id:text? task_id:text? map_index:int? try_number:int?
        state:text attempts:int created_at:moment next_at:moment? started_at:moment? finished_at:moment?
        error:text? reason:text?""",
    "LimitCollection": "limits:[Limit] total_entries:int",
    "Limit": """
        name:text amount:int per_seconds:number? description:text? declared_by:text? used:number
        waiting:int next_free_at:moment?""",
    "Workers": "workers:[Worker] queues:[Queue] triggerers:[Triggerer]",
    "Worker": """
        job_id:int job_type:text name:text hostname:text unixname:text pid:int? condition:text slots:int
        queues:[text] started_at:moment heartbeat_at:moment ended_at:moment? busy:int running:[RunningAttempt]""",
    "RunningAttempt": """
        dag_id:text run_id:text task_id:text map_index:int try_number:int state:text queue:text pid:int?
        since:moment? heartbeat_at:moment?""",
    "Queue": "name:text waiting:int running:int oldest:moment? workers:int slots:int",
    "Triggerer": """
        job_id:int hostname:text pid:int? condition:text capacity:int held:int started_at:moment
        heartbeat_at:moment""",
    "Deleted": "message:text",
    # a line of the stream
    "RunWaited": "state:RunState? *",
}
_NAME: Final = re.compile(r"[A-Za-z]\w*")


def schema(word: str) -> Json:
    """What a word stands for; shapes and lists of words are references."""
    if word.endswith("?"):
        below = schema(word[:-1])
        return {"anyOf": [*below.get("anyOf", [below]), KINDS["null"]]} if below else {}
    if word.startswith("["):
        return {"type": "array", "items": schema(word[1:-1])}
    if word.startswith("{"):
        return {"type": "object", "additionalProperties": schema(word[1:-1])}
    if "|" in word:
        return {"anyOf": [schema(part) for part in word.split("|")]}
    return dict(KINDS[word]) if word in KINDS else {"$ref": f"#/components/schemas/{word}"}


@cache
def components(word: str) -> dict[str, Json]:
    """Every shape and list of words that a word needs, by name."""
    found: dict[str, Json] = {}
    todo = _NAME.findall(word)
    while todo:
        name = todo.pop()
        if name in found or name in KINDS:
            continue
        if name in CHOICES:
            found[name] = {"type": "string", "enum": list(CHOICES[name])}
            continue
        fields, open_ended = _fields(name)
        properties = {key.rstrip("~"): schema(below) for key, below in fields.items()}
        required = [key for key in fields if not key.endswith("~")]
        found[name] = {"type": "object", "properties": properties, "required": required}
        if open_ended:
            found[name]["additionalProperties"] = True
        for below in fields.values():
            todo += _NAME.findall(below)
    return found


def _fields(name: str) -> tuple[dict[str, str], bool]:
    """Field → word of a shape, and whether it may have others."""
    fields: dict[str, str] = {}
    open_ended = False
    for part in SHAPES[name].split():
        if part == "*":
            open_ended = True
        elif part.startswith("+"):
            inherited, more = _fields(part[1:])
            fields, open_ended = fields | inherited, open_ended or more
        else:
            key, _, word = part.partition(":")
            fields[key] = word
    return fields, open_ended
