"""The table: which name of ``airflow…`` is which of ours. Data; ``finder`` reads it."""

from __future__ import annotations

import functools

VERSION = "3.3.2"


def _at(module: str, *names: str, **renamed: str) -> dict[str, str]:
    """``names`` found in our ``sdk.<module>``; ``renamed``: their name → our name there."""
    found = {name: f"sdk.{module}:{name}" for name in names}
    return found | {theirs: f"sdk.{module}:{ours}" for theirs, ours in renamed.items()}


_DAG = _at("dag", "DAG", "dag")
_ASSETS = _at("assets", "Asset", "AssetAlias", "AssetAll", "AssetAny", "AssetRef", "AssetWatcher", "Metadata", "BaseAsset", "AssetNameRef",
              "AssetUriRef", "Model", "Dataset", "AssetAccessControl")  # fmt: skip
_DATASETS = _at(
    "assets",
    "Dataset",
    DatasetAlias="AssetAlias",
    DatasetAll="AssetAll",
    DatasetAny="AssetAny",
    BaseDataset="BaseAsset",
)
_DECORATORS = _at("decorators", "task", "task_group", "setup", "teardown", "dag")
_PARAMS = _at("params", "Param", "ParamsDict", "DagParam")
_EDGES = _at("edges", "chain", "chain_linear", "cross_downstream", "Label", "EdgeModifier")
_OPERATOR = _at("operator", "BaseOperator") | _at("links", "BaseOperatorLink")
_MAPPED = _at("mapped", "MappedOperator", "OperatorPartial")
_SENSOR = _at("sensor_base", "BaseSensorOperator", "PokeReturnValue", "poke_mode_only")
_BRANCH = _at("operators.branch", "BaseBranchOperator", "BranchMixIn", "SkipMixin")
_PYTHON = (
    _at("operators.python", "PythonOperator", "BranchPythonOperator", "ShortCircuitOperator", "get_current_context")
    | _at("operators.virtualenv", "PythonVirtualenvOperator", "ExternalPythonOperator", "BranchPythonVirtualenvOperator",
          "BranchExternalPythonOperator", "is_venv_installed")
)  # fmt: skip
_EMPTY = _at("operators.empty", "EmptyOperator")
_BASH = _at("operators.bash", "BashOperator")
_LATEST = _at("operators.latest_only", "LatestOnlyOperator")
_TRIGGER_RUN = _at("operators.trigger_dagrun", "TriggerDagRunOperator", "TriggerDagRunLink")
_SMOOTH = _at("operators.smooth", "SmoothOperator")
_BRANCH_DATE = _at("operators.datetime", "BranchDateTimeOperator")
_BRANCH_WEEKDAY = _at("operators.weekday", "BranchDayOfWeekOperator")
_HITL = _at("operators.hitl", "HITLOperator", "ApprovalOperator", "HITLEntryOperator", "HITLBranchOperator")
_EXTERNAL = _at("sensors.external_task", "ExternalTaskSensor", "ExternalTaskMarker", "ExternalDagLink")
_DATE_SENSOR = _at("sensors.date_time", "DateTimeSensor", "DateTimeSensorAsync")
_TIME_SENSOR = _at("sensors.time", "TimeSensor", "TimeSensorAsync")
_DELTA_SENSOR = _at("sensors.time_delta", "TimeDeltaSensor", "TimeDeltaSensorAsync", "WaitSensor")
_PYTHON_SENSOR = _at("sensors.python", "PythonSensor")
_BASH_SENSOR = _at("sensors.bash", "BashSensor")
_FILE_SENSOR = _at("sensors.filesystem", "FileSensor")
_WEEKDAY_SENSOR = _at("sensors.weekday", "DayOfWeekSensor")
_TRIGGERS = _at("triggers.base", "BaseTrigger", "TriggerEvent", "BaseEventTrigger", "StartTriggerArgs", "BaseTaskEndEvent",
                "TaskSuccessEvent", "TaskFailedEvent", "TaskSkippedEvent")  # fmt: skip
_TEMPORAL = _at("triggers.temporal", "DateTimeTrigger", "TimeDeltaTrigger")
_FILE_TRIGGER = _at("triggers.file", "FileTrigger", "FileDeleteTrigger", "DirectoryFileDeleteTrigger")
_EXTERNAL_TRIGGER = _at("triggers.external_task", "WorkflowTrigger", "DagStateTrigger")
_WEEKDAY = _at("weekday", "WeekDay")
_STATES = _at("states", "State", "TaskInstanceState", "DagRunState", "DagRunType", "TriggerRule", "WeightRule")
_TI = _at("runs", "TaskInstance", "RuntimeTaskInstance", "DagRun")
_VARIABLE = _at("variable", "Variable")
_CONNECTION = _at("connection", "Connection")
_HOOK = _at("connection", "BaseHook")
_XCOM = _at("xcom", "XCom", "BaseXCom", "XCOM_RETURN_KEY", "MAX_XCOM_SIZE")
_XCOM_ARG = _at("xcom_arg", "XComArg", "PlainXComArg", "MapXComArg", "ZipXComArg", "ConcatXComArg")
_GROUP = _at("task_group", "TaskGroup", "MappedTaskGroup")
_CONTEXT = _at("context", "Context", "get_current_context", "context_merge")
_NOTIFIER = _at("notifier", "BaseNotifier")
_WEIGHT = _at("weight", "PriorityWeightStrategy")
_PLUGIN = _at("plugins", "AirflowPlugin")
_DEADLINE = _at("deadlines", "DeadlineAlert", "DeadlineReference", "SyncCallback", "AsyncCallback", "Callback")
_POLICY = _at("retry_policy", "RetryPolicy", "ExceptionRetryPolicy", "RetryRule", "RetryAction", "RetryDecision")
_TEMPLATES = _at("templates", "Templater", "LiteralValue", "literal")
_OBJECT_STORE = _at("object_storage", "ObjectStoragePath", "ObjectStore", "attach")
_STORE = _at("state_store", "NEVER_EXPIRE")
_MACROS = _at("macros", "ds_add", "ds_format", "ds_format_locale", "datetime_diff_for_humans", "datetime", "timedelta", "json", "time",
              "random", "uuid", "dateutil")  # fmt: skip
_TIMEZONE = _at("timezone", "utc", "utcnow", "is_localized", "is_naive", "make_aware", "make_naive", "datetime", "convert_to_utc",
                "coerce_datetime", "parse", "parse_timezone", "from_timestamp")  # fmt: skip
_DATES = _at("dates", "days_ago", "date_range", "cron_presets", "parse_execution_date")
_CONF = _at("configuration", "conf")
_MASK = _at("logging_mixin", "mask_secret")
_SUPPORT = "provider_support"
_FUNCTIONS = _at(
    _SUPPORT,
    "prune_dict",
    "exactly_one",
    "at_most_one",
    "merge_dicts",
    "chunks",
    "reduce_in_chunks",
    "convert_camel_to_snake",
)
_LOADING = _at(_SUPPORT, "import_string", "iter_namespace", "qualname", "is_valid_dotpath")
_NOT_SET = _at(_SUPPORT, "NOTSET", "ArgNotSet", "SET_DURING_EXECUTION", "is_arg_set")
_TI_KEY = _at(_SUPPORT, "TaskInstanceKey")
_LINEAGE = _at(_SUPPORT, "get_hook_lineage_collector", "LineageCollector")
_STATS = _at(_SUPPORT, "Stats")
_SESSION = _at("session", "Session", "create_session", "provide_session", "NEW_SESSION")
_EXCEPTIONS = _at(
    "exceptions", "AirflowException", "AirflowBadRequest", "AirflowNotFoundException", "AirflowConfigException", "AirflowSkipException",
    "AirflowFailException", "AirflowSensorTimeout", "AirflowRescheduleException", "AirflowTaskTimeout", "AirflowTaskTerminated",
    "AirflowTimetableInvalid", "AirflowDagCycleException", "AirflowDagDuplicatedIdException", "AirflowRuntimeError", "ErrorType",
    "AirflowOptionalProviderFeatureException", "AirflowInternalRuntimeError", "AirflowPokeFailException", "DuplicateTaskIdFound",
    "TaskAlreadyInTaskGroup", "TaskNotFound", "DagNotFound", "DagRunNotFound", "DagRunAlreadyExists", "ParamValidationError",
    "DagInvalidTriggerRule", "FailFastDagInvalidTriggerRule", "UnmappableXComTypePushed", "UnmappableXComLengthPushed",
    "XComForMappingNotPushed", "XComNotFound", "TaskDeferred", "TaskDeferralError", "TaskDeferralTimeout", "DownstreamTasksSkipped",
    "AirflowWebServerTimeout", FailStopDagInvalidTriggerRule="FailFastDagInvalidTriggerRule",
) | _at("warnings", "AirflowProviderDeprecationWarning", "RemovedInAirflow3Warning", "RemovedInAirflow4Warning")  # fmt: skip
_TIMETABLES = _at(
    "timetables", "Timetable", "DataInterval", "DagRunInfo", "TimeRestriction", "NullTimetable", "OnceTimetable", "ContinuousTimetable",
    "CronTriggerTimetable", "MultipleCronTriggerTimetable", "CronDataIntervalTimetable", "DeltaTriggerTimetable",
    "DeltaDataIntervalTimetable", "EventsTimetable", "AssetTriggeredTimetable", "AssetOrTimeSchedule", "DatasetOrTimeSchedule",
)  # fmt: skip
_PARTITIONS = _at(
    "partitions", "PartitionMapper", "IdentityMapper", "AllowedKeyMapper", "FixedKeyMapper", "ProductMapper", "ChainMapper",
    "StartOfHourMapper", "StartOfDayMapper", "StartOfWeekMapper", "StartOfMonthMapper", "StartOfQuarterMapper", "StartOfYearMapper",
    "RollupMapper", "FanOutMapper", "Window", "HourWindow", "DayWindow", "WeekWindow", "MonthWindow", "QuarterWindow", "YearWindow",
    "SegmentWindow", "WaitPolicy", "WaitForAll", "MinimumCount",
)  # fmt: skip
_PARTITION_TIMETABLES = _at(
    "partition_timetables", "CronPartitionTimetable", "PartitionedAssetTimetable", "PartitionedAtRuntime"
)
_ASSET_DECORATOR = _at("decorators.asset", "asset", "AssetDefinition", "MultiAssetDefinition")

_SDK = (
    _DAG | _DECORATORS | _ASSETS | _ASSET_DECORATOR | _PARAMS | _EDGES | _OPERATOR | _MAPPED | _SENSOR | _BRANCH | _STATES | _TI | _VARIABLE
    | _CONNECTION | _HOOK | _XCOM | _XCOM_ARG | _GROUP | _CONTEXT | _NOTIFIER | _WEIGHT | _PLUGIN | _DEADLINE | _POLICY | _TEMPLATES
    | _OBJECT_STORE | _TIMETABLES | _PARTITIONS | _PARTITION_TIMETABLES | _TRIGGERS
    | {"macros": "sdk.macros", "timezone": "sdk.timezone", "conf": "sdk.configuration:conf",
       "get_parsing_context": "sdk.parsing:get_parsing_context", "TaskInstance": "sdk.runs:TaskInstance"}
)  # fmt: skip

#: module → {name: where it is}; a module whose value is empty holds only other modules
MODULES: dict[str, dict[str, str]] = {
    "airflow": _DAG | _DATASETS | _at("assets", "Asset") | _at("xcom_arg", "XComArg") | _at("exceptions", "AirflowException"),
    # ── Airflow 3 ────────────────────────────────────────────────────────────────────────────────────────────
    "airflow.sdk": _SDK,
    "airflow.sdk.api": {},
    "airflow.sdk.api.datamodels": {},
    "airflow.sdk.bases": {},
    "airflow.sdk.bases.operator": _OPERATOR | _EDGES | _at(_SUPPORT, "BaseAsyncOperator"),
    "airflow.sdk.bases.operatorlink": _at("links", "BaseOperatorLink"),
    "airflow.sdk.bases.sensor": _SENSOR,
    "airflow.sdk.bases.branch": _BRANCH,
    "airflow.sdk.bases.skipmixin": _BRANCH,
    "airflow.sdk.bases.hook": _HOOK,
    "airflow.sdk.bases.notifier": _NOTIFIER,
    "airflow.sdk.bases.trigger": _TRIGGERS,
    "airflow.sdk.bases.decorator": _at("decorators.base", "DecoratedOperator", task_decorator_factory="make_decorator") | _at(_SUPPORT, "is_async_callable", "determine_kwargs") | _at("decorators", "TaskDecorator"),
    "airflow.sdk.bases.xcom": _XCOM,
    "airflow.sdk.bases.timetable": _TIMETABLES,
    "airflow.sdk.configuration": _CONF,
    "airflow.sdk.definitions": {},
    "airflow.sdk.definitions.asset": _ASSETS,
    "airflow.sdk.definitions.asset.decorators": _ASSET_DECORATOR,
    "airflow.sdk.definitions.asset.metadata": _at("assets", "Metadata"),
    "airflow.sdk.definitions.connection": _CONNECTION,
    "airflow.sdk.definitions.context": _CONTEXT,
    "airflow.sdk.definitions.dag": _DAG,
    "airflow.sdk.definitions.deadline": _DEADLINE,
    "airflow.sdk.definitions.callback": _DEADLINE,
    "airflow.sdk.definitions.decorators": _DECORATORS,
    "airflow.sdk.definitions.edges": _EDGES,
    "airflow.sdk.definitions._internal": {},
    "airflow.sdk.definitions._internal.types": _NOT_SET,
    "airflow.sdk.definitions.mappedoperator": _MAPPED,
    "airflow.sdk.definitions.param": _PARAMS,
    "airflow.sdk.definitions.retry_policy": _POLICY,
    "airflow.sdk.definitions.taskgroup": _GROUP,
    "airflow.sdk.definitions.template": _TEMPLATES,
    "airflow.sdk.definitions.variable": _VARIABLE,
    "airflow.sdk.definitions.xcom_arg": _XCOM_ARG,
    "airflow.sdk.exceptions": _EXCEPTIONS,
    "airflow.sdk.execution_time": {},
    "airflow.sdk.execution_time.context": _CONTEXT | _STORE,
    "airflow.sdk.execution_time.secrets_masker": _MASK,
    "airflow.sdk.execution_time.task_runner": _TI,
    "airflow.sdk.execution_time.xcom": _XCOM,
    "airflow.sdk.execution_time.macros": _MACROS,
    "airflow.sdk.io": _OBJECT_STORE,
    "airflow.sdk.lineage": _LINEAGE,
    "airflow.sdk.log": _at("logging_mixin", "mask_secret"),
    "airflow.sdk.module_loading": _LOADING,
    "airflow.sdk.observability": {},
    "airflow.sdk.plugins_manager": _PLUGIN,
    "airflow.sdk.timezone": _TIMEZONE,
    "airflow.sdk.types": _TI | _CONTEXT | _TI_KEY,
    "airflow.sdk.yaml": {},
    # ── both generations ─────────────────────────────────────────────────────────────────────────────────────
    "airflow.assets": _ASSETS,
    "airflow.assets.metadata": _at("assets", "Metadata"),
    "airflow.configuration": _CONF,
    "airflow.datasets": _DATASETS | _at("assets", "Metadata"),
    "airflow.datasets.metadata": _at("assets", "Metadata"),
    "airflow.decorators": _DECORATORS,
    "airflow.decorators.base": _at("decorators.base", "DecoratedOperator", task_decorator_factory="make_decorator"),
    "airflow.decorators.python": {"python_task": "sdk.decorators.python:python_task"},
    "airflow.decorators.task_group": _at("decorators", "task_group"),
    "airflow.exceptions": _EXCEPTIONS,
    "airflow.hooks": {},
    "airflow.hooks.base": _HOOK,
    "airflow.hooks.base_hook": _HOOK,
    "airflow.hooks.subprocess": _at("subprocess_hook", "SubprocessHook", "SubprocessResult"),
    "airflow.hooks.filesystem": _at("filesystem_hook", "FSHook"),
    "airflow.io": {},
    "airflow.io.path": _OBJECT_STORE,
    "airflow.lineage": {},
    "airflow.lineage.hook": _LINEAGE,
    "airflow.listeners": _at("plugins", "hookimpl"),
    "airflow.macros": _MACROS,
    "airflow.models": _DAG | _OPERATOR | _MAPPED | _VARIABLE | _CONNECTION | _XCOM | _TI | _PARAMS | _at("operators.branch", "SkipMixin"),
    "airflow.models.abstractoperator": _at("abstract_operator", "AbstractOperator"),
    "airflow.models.asset": {},
    "airflow.models.baseoperator": _OPERATOR | _EDGES,
    "airflow.models.baseoperatorlink": _at("links", "BaseOperatorLink"),
    "airflow.models.connection": _CONNECTION,
    "airflow.models.dag": _DAG,
    "airflow.models.dagrun": _TI,
    "airflow.models.mappedoperator": _MAPPED,
    "airflow.models.operator": _at("abstract_operator", Operator="AbstractOperator"),
    "airflow.models.param": _PARAMS,
    "airflow.models.skipmixin": _at("operators.branch", "SkipMixin"),
    "airflow.models.taskinstance": _TI | _at("context", "get_current_context") | _TI_KEY,
    "airflow.models.taskinstancekey": _TI_KEY,
    "airflow.models.taskmixin": _at("node", "DAGNode"),
    "airflow.models.variable": _VARIABLE,
    "airflow.models.xcom": _XCOM,
    "airflow.models.xcom_arg": _XCOM_ARG,
    "airflow.notifications": {},
    "airflow.notifications.basenotifier": _NOTIFIER,
    "airflow.operators": {},
    "airflow.operators.bash": _BASH,
    "airflow.operators.bash_operator": _BASH,
    "airflow.operators.branch": _BRANCH,
    "airflow.operators.branch_operator": _BRANCH,
    "airflow.operators.datetime": _BRANCH_DATE,
    "airflow.operators.dummy": _at("operators.empty", "DummyOperator", "EmptyOperator"),
    "airflow.operators.dummy_operator": _at("operators.empty", "DummyOperator"),
    "airflow.operators.empty": _EMPTY,
    "airflow.operators.latest_only": _LATEST,
    "airflow.operators.latest_only_operator": _LATEST,
    "airflow.operators.python": _PYTHON,
    "airflow.operators.python_operator": _PYTHON,
    "airflow.operators.smooth": _SMOOTH,
    "airflow.operators.trigger_dagrun": _TRIGGER_RUN,
    "airflow.operators.weekday": _BRANCH_WEEKDAY,
    "airflow.partition_mappers": _PARTITIONS,
    "airflow.partition_mappers.base": _PARTITIONS,
    "airflow.partition_mappers.identity": _PARTITIONS,
    "airflow.partition_mappers.temporal": _PARTITIONS,
    "airflow.partition_mappers.window": _PARTITIONS,
    "airflow.plugins_manager": _PLUGIN,
    "airflow.secrets": _at(_SUPPORT, "BaseSecretsBackend"),
    "airflow.security": {},
    "airflow.security.permissions": _at("permissions", "ACTION_CAN_READ", "ACTION_CAN_EDIT", "ACTION_CAN_DELETE", "ACTION_CAN_CREATE"),
    "airflow.sensors": {},
    "airflow.sensors.base": _SENSOR,
    "airflow.sensors.base_sensor_operator": _SENSOR,
    "airflow.sensors.bash": _BASH_SENSOR,
    "airflow.sensors.date_time": _DATE_SENSOR,
    "airflow.sensors.external_task": _EXTERNAL,
    "airflow.sensors.external_task_sensor": _EXTERNAL,
    "airflow.sensors.filesystem": _FILE_SENSOR,
    "airflow.sensors.python": _PYTHON_SENSOR,
    "airflow.sensors.time_delta": _DELTA_SENSOR,
    "airflow.sensors.time_sensor": _TIME_SENSOR,
    "airflow.sensors.weekday": _WEEKDAY_SENSOR,
    "airflow.settings": _SESSION,
    "airflow.stats": _STATS,
    "airflow.task": {},
    "airflow.task.priority_strategy": _WEIGHT,
    "airflow.task.trigger_rule": _STATES,
    "airflow.task.weight_rule": _STATES,
    "airflow.template": {},
    "airflow.template.templater": _TEMPLATES,
    "airflow.timetables": {},
    "airflow.timetables.assets": _TIMETABLES,
    "airflow.timetables.base": _TIMETABLES,
    "airflow.timetables.datasets": _TIMETABLES,
    "airflow.timetables.events": _TIMETABLES,
    "airflow.timetables.interval": _TIMETABLES,
    "airflow.timetables.simple": _TIMETABLES | _PARTITION_TIMETABLES,
    "airflow.timetables.trigger": _TIMETABLES | _PARTITION_TIMETABLES,
    "airflow.triggers": {},
    "airflow.triggers.base": _TRIGGERS,
    "airflow.triggers.external_task": _EXTERNAL_TRIGGER,
    "airflow.triggers.file": _FILE_TRIGGER,
    "airflow.triggers.temporal": _TEMPORAL,
    "airflow.typing_compat": {},
    "airflow.utils": {},
    "airflow.utils.context": _CONTEXT,
    "airflow.utils.dag_parsing_context": {"get_parsing_context": "sdk.parsing:get_parsing_context"},
    "airflow.utils.dates": _DATES,
    "airflow.utils.db": _SESSION,
    "airflow.utils.decorators": _at("operator", apply_defaults="apply_defaults"),
    "airflow.utils.edgemodifier": _EDGES,
    "airflow.utils.file": {},
    "airflow.utils.helpers": _EDGES | _FUNCTIONS,
    "airflow.utils.log": {},
    "airflow.utils.log.logging_mixin": _at("logging_mixin", "LoggingMixin"),
    "airflow.utils.log.secrets_masker": _at("logging_mixin", "mask_secret"),
    "airflow.utils.module_loading": _LOADING,
    "airflow.utils.operator_helpers": _at("context_env", "context_to_environment", context_to_airflow_vars="context_to_environment") | _at(_SUPPORT, "determine_kwargs"),
    "airflow.utils.session": _SESSION,
    "airflow.utils.setup_teardown": {},
    "airflow.utils.state": _STATES,
    "airflow.utils.strings": _at(_SUPPORT, "to_boolean"),
    "airflow.utils.task_group": _GROUP,
    "airflow.utils.timezone": _TIMEZONE,
    "airflow.utils.trigger_rule": _STATES,
    "airflow.utils.types": _STATES | _at("xcom_arg", "NOTSET") | _NOT_SET,
    "airflow.utils.weekday": _WEEKDAY,
    "airflow.utils.weight_rule": _STATES,
    "airflow.utils.xcom": _XCOM,
    "airflow.version": {"version": "airflow_shim.names:VERSION"},
    # ── providers that belong to the core ────────────────────────────────────────────────────────────────────
    "airflow.providers_manager": _at("providers", "ProvidersManager"),
    "airflow.sdk.providers_manager_runtime": _at("providers", "ProvidersManagerTaskRuntime"),
    "airflow.providers": {},
    "airflow.providers.common": {},
    "airflow.providers.common.compat": {},
    "airflow.providers.common.compat.assets": _ASSETS,
    "airflow.providers.common.compat.notifier": _NOTIFIER,
    "airflow.providers.common.compat.sdk": _SDK | _EXCEPTIONS | _FUNCTIONS | _MASK | _NOT_SET | _TI_KEY | _LINEAGE | _STATS | _LOADING | _at(_SUPPORT, "determine_kwargs", "is_async_callable", "BaseAsyncOperator") | _at("decorators", "TaskDecorator") | _at("decorators.base", "DecoratedOperator", task_decorator_factory="make_decorator"),
    "airflow.providers.common.compat.standard": {},
    "airflow.providers.common.compat.standard.operators": _PYTHON,
    "airflow.providers.common.compat.standard.triggers": _TEMPORAL,
    "airflow.providers.common.compat.standard.utils": {},
    "airflow.providers.standard": {},
    "airflow.providers.standard.decorators": {},
    "airflow.providers.standard.decorators.bash": _at("decorators.bash", "bash_task"),
    "airflow.providers.standard.decorators.python": _at("decorators.python", "python_task"),
    "airflow.providers.standard.decorators.sensor": _at("decorators.sensor", "sensor_task"),
    "airflow.providers.standard.exceptions": _at("sensors.external_task", "ExternalDagNotFoundError", "ExternalTaskNotFoundError",
                                                 "ExternalTaskGroupNotFoundError", "ExternalDagFailedError", "ExternalTaskFailedError",
                                                 "ExternalTaskGroupFailedError", "DuplicateStateError")
                                             | _at("operators.hitl", "HITLTimeoutError", "HITLRejectException", "HITLTriggerEventError"),
    "airflow.providers.standard.hooks": {},
    "airflow.providers.standard.hooks.filesystem": _at("filesystem_hook", "FSHook"),
    "airflow.providers.standard.hooks.subprocess": _at("subprocess_hook", "SubprocessHook", "SubprocessResult"),
    "airflow.providers.standard.operators": {},
    "airflow.providers.standard.operators.bash": _BASH,
    "airflow.providers.standard.operators.branch": _BRANCH,
    "airflow.providers.standard.operators.datetime": _BRANCH_DATE,
    "airflow.providers.standard.operators.empty": _EMPTY,
    "airflow.providers.standard.operators.hitl": _HITL,
    "airflow.providers.standard.operators.latest_only": _LATEST,
    "airflow.providers.standard.operators.python": _PYTHON,
    "airflow.providers.standard.operators.smooth": _SMOOTH,
    "airflow.providers.standard.operators.trigger_dagrun": _TRIGGER_RUN,
    "airflow.providers.standard.operators.weekday": _BRANCH_WEEKDAY,
    "airflow.providers.standard.sensors": {},
    "airflow.providers.standard.sensors.bash": _BASH_SENSOR,
    "airflow.providers.standard.sensors.date_time": _DATE_SENSOR,
    "airflow.providers.standard.sensors.external_task": _EXTERNAL,
    "airflow.providers.standard.sensors.filesystem": _FILE_SENSOR,
    "airflow.providers.standard.sensors.python": _PYTHON_SENSOR,
    "airflow.providers.standard.sensors.time": _TIME_SENSOR,
    "airflow.providers.standard.sensors.time_delta": _DELTA_SENSOR,
    "airflow.providers.standard.sensors.weekday": _WEEKDAY_SENSOR,
    "airflow.providers.standard.triggers": {},
    "airflow.providers.standard.triggers.external_task": _EXTERNAL_TRIGGER,
    "airflow.providers.standard.triggers.file": _FILE_TRIGGER,
    "airflow.providers.standard.triggers.hitl": _at("triggers.hitl", "HITLTrigger"),
    "airflow.providers.standard.triggers.temporal": _TEMPORAL,
    "airflow.providers.standard.utils": {},
    "airflow.providers.standard.utils.weekday": _WEEKDAY,
}  # fmt: skip

#: what Airflow 3 no longer has, and what to write instead
REMOVED: dict[str, str] = {
    "airflow.operators.subdag": "SubDAGs were removed in Airflow 3: use a TaskGroup.",
    "airflow.operators.subdag_operator": "SubDAGs were removed in Airflow 3: use a TaskGroup.",
    "airflow.contrib": "airflow.contrib was removed in Airflow 2: import from airflow.providers.",
    "airflow.models.DagBag": "a DAG file cannot read other DAG files: use ExternalTaskSensor or TriggerDagRunOperator.",
    "airflow.models.dagbag": "a DAG file cannot read other DAG files: use ExternalTaskSensor or TriggerDagRunOperator.",
    "airflow.models.DagModel": "task code has no database session: use the REST API.",
    "airflow.operators.email": "it is in the smtp provider: use EmailOperator of airflow.providers.smtp.operators.smtp, or on_failure_callback.",
    "airflow.operators.generic_transfer": "it is in the common-sql provider: install apache-airflow-providers-common-sql.",
    "airflow.utils.email": "it is in the smtp provider: use its SmtpHook or SmtpNotifier.",
    "airflow.example_dags": "the example DAGs of Airflow are not part of this scheduler: copy the file's imports beside it.",
}


@functools.cache
def packages() -> frozenset[str]:
    """Modules that hold other modules."""
    found = {"airflow.providers"}
    for path in MODULES:
        while "." in path:
            path = path.rpartition(".")[0]
            found.add(path)
    return frozenset(found)
