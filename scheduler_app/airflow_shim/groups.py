"""Names that come together in several modules of ``airflow…``, and which of ours they are. Data; ``names`` lays them out."""

from __future__ import annotations


def at(module: str, *names: str, **renamed: str) -> dict[str, str]:
    """``names`` found in our ``sdk.<module>``; ``renamed``: their name → our name there."""
    found = {name: f"sdk.{module}:{name}" for name in names}
    return found | {theirs: f"sdk.{module}:{ours}" for theirs, ours in renamed.items()}


DAG = at("dag", "DAG", "dag")
ASSETS = at("assets", "Asset", "AssetAlias", "AssetAll", "AssetAny", "AssetRef", "AssetWatcher", "Metadata", "BaseAsset", "AssetNameRef",
              "AssetUriRef", "Model", "Dataset", "AssetAccessControl")  # fmt: skip
DATASETS = at(
    "assets",
    "Dataset",
    DatasetAlias="AssetAlias",
    DatasetAll="AssetAll",
    DatasetAny="AssetAny",
    BaseDataset="BaseAsset",
)
DECORATORS = at("decorators", "task", "task_group", "setup", "teardown", "dag")
PARAMS = at("params", "Param", "ParamsDict", "DagParam")
EDGES = at("edges", "chain", "chain_linear", "cross_downstream", "Label", "EdgeModifier")
OPERATOR = at("operator", "BaseOperator") | at("links", "BaseOperatorLink")
MAPPED = at("mapped", "MappedOperator", "OperatorPartial")
SENSOR = at("sensor_base", "BaseSensorOperator", "PokeReturnValue", "poke_mode_only")
BRANCH = at("operators.branch", "BaseBranchOperator", "BranchMixIn", "SkipMixin")
PYTHON = (
    at("operators.python", "PythonOperator", "BranchPythonOperator", "ShortCircuitOperator", "get_current_context")
    | at("operators.virtualenv", "PythonVirtualenvOperator", "ExternalPythonOperator", "BranchPythonVirtualenvOperator",
          "BranchExternalPythonOperator", "is_venv_installed")
)  # fmt: skip
EMPTY = at("operators.empty", "EmptyOperator")
BASH = at("operators.bash", "BashOperator")
LATEST = at("operators.latest_only", "LatestOnlyOperator")
TRIGGER_RUN = at("operators.trigger_dagrun", "TriggerDagRunOperator", "TriggerDagRunLink")
SMOOTH = at("operators.smooth", "SmoothOperator")
BRANCH_DATE = at("operators.datetime", "BranchDateTimeOperator")
BRANCH_WEEKDAY = at("operators.weekday", "BranchDayOfWeekOperator")
HITL = at("operators.hitl", "HITLOperator", "ApprovalOperator", "HITLEntryOperator", "HITLBranchOperator")
EXTERNAL = at("sensors.external_task", "ExternalTaskSensor", "ExternalTaskMarker", "ExternalDagLink")
DATE_SENSOR = at("sensors.date_time", "DateTimeSensor", "DateTimeSensorAsync")
TIME_SENSOR = at("sensors.time", "TimeSensor", "TimeSensorAsync")
DELTA_SENSOR = at("sensors.time_delta", "TimeDeltaSensor", "TimeDeltaSensorAsync", "WaitSensor")
PYTHON_SENSOR = at("sensors.python", "PythonSensor")
BASH_SENSOR = at("sensors.bash", "BashSensor")
FILE_SENSOR = at("sensors.filesystem", "FileSensor")
WEEKDAY_SENSOR = at("sensors.weekday", "DayOfWeekSensor")
TRIGGERS = at("triggers.base", "BaseTrigger", "TriggerEvent", "BaseEventTrigger", "StartTriggerArgs", "BaseTaskEndEvent",
                "TaskSuccessEvent", "TaskFailedEvent", "TaskSkippedEvent")  # fmt: skip
TEMPORAL = at("triggers.temporal", "DateTimeTrigger", "TimeDeltaTrigger")
FILE_TRIGGER = at("triggers.file", "FileTrigger", "FileDeleteTrigger", "DirectoryFileDeleteTrigger")
EXTERNAL_TRIGGER = at("triggers.external_task", "WorkflowTrigger", "DagStateTrigger")
WEEKDAY = at("weekday", "WeekDay")
STATES = at("states", "State", "TaskInstanceState", "DagRunState", "DagRunType", "TriggerRule", "WeightRule")
TI = at("runs", "TaskInstance", "RuntimeTaskInstance", "DagRun")
VARIABLE = at("variable", "Variable")
CONNECTION = at("connection", "Connection")
HOOK = at("connection", "BaseHook")
XCOM = at("xcom", "XCom", "BaseXCom", "XCOM_RETURN_KEY", "MAX_XCOM_SIZE")
XCOM_ARG = at("xcom_arg", "XComArg", "PlainXComArg", "MapXComArg", "ZipXComArg", "ConcatXComArg")
GROUP = at("task_group", "TaskGroup", "MappedTaskGroup")
CONTEXT = at("context", "Context", "get_current_context", "context_merge")
NOTIFIER = at("notifier", "BaseNotifier")
WEIGHT = at("weight", "PriorityWeightStrategy")
PLUGIN = at("plugins", "AirflowPlugin")
DEADLINE = at("deadlines", "DeadlineAlert", "DeadlineReference", "SyncCallback", "AsyncCallback", "Callback")
POLICY = at("retry_policy", "RetryPolicy", "ExceptionRetryPolicy", "RetryRule", "RetryAction", "RetryDecision")
TEMPLATES = at("templates", "Templater", "LiteralValue", "literal")
OBJECT_STORE = at("object_storage", "ObjectStoragePath", "ObjectStore", "attach")
STORE = at("state_store", "NEVER_EXPIRE")
MACROS = at("macros", "ds_add", "ds_format", "ds_format_locale", "datetime_diff_for_humans", "datetime", "timedelta", "json", "time",
              "random", "uuid", "dateutil")  # fmt: skip
TIMEZONE = at("timezone", "utc", "utcnow", "is_localized", "is_naive", "make_aware", "make_naive", "datetime", "convert_to_utc",
                "coerce_datetime", "parse", "parse_timezone", "from_timestamp")  # fmt: skip
DATES = at("dates", "days_ago", "date_range", "cron_presets", "parse_execution_date")
CONF = at("configuration", "conf")
MASK = at("logging_mixin", "mask_secret")
SUPPORT = "provider_support"
FUNCTIONS = at(
    SUPPORT,
    "prune_dict",
    "exactly_one",
    "at_most_one",
    "merge_dicts",
    "chunks",
    "reduce_in_chunks",
    "convert_camel_to_snake",
)
LOADING = at(SUPPORT, "import_string", "iter_namespace", "qualname", "is_valid_dotpath")
NOT_SET = at(SUPPORT, "NOTSET", "ArgNotSet", "SET_DURING_EXECUTION", "is_arg_set")
TI_KEY = at(SUPPORT, "TaskInstanceKey")
LINEAGE = at(SUPPORT, "get_hook_lineage_collector", "LineageCollector")
STATS = at(SUPPORT, "Stats")
HELPERS = at(
    "of_the_machine",
    "is_container",
    "as_flattened_list",
    "validate_key",
    "render_template_to_string",
    "parse_template_string",
)
TASK_DECORATOR = at("decorators", "TaskDecorator") | at("of_the_machine", "get_unique_task_id")
TABLES = at(
    "database_names",
    "DagModel",
    "DagTag",
    "DagBag",
    "Pool",
    "Log",
    "TaskReschedule",
    "Trigger",
    "Base",
    "clear_task_instances",
)
RECENT = dict.fromkeys(
    ("AIRFLOW_V_3_0_PLUS", "AIRFLOW_V_3_1_PLUS", "AIRFLOW_V_3_2_PLUS", "AIRFLOW_V_3_3_PLUS"), "airflow_shim.names:YES"
)
SESSION = at("session", "Session", "create_session", "provide_session", "NEW_SESSION")
EXCEPTIONS = at(
    "exceptions", "AirflowException", "AirflowBadRequest", "AirflowNotFoundException", "AirflowConfigException", "AirflowSkipException",
    "AirflowFailException", "AirflowSensorTimeout", "AirflowRescheduleException", "AirflowTaskTimeout", "AirflowTaskTerminated",
    "AirflowTimetableInvalid", "AirflowDagCycleException", "AirflowDagDuplicatedIdException", "AirflowRuntimeError", "ErrorType",
    "AirflowOptionalProviderFeatureException", "AirflowInternalRuntimeError", "AirflowPokeFailException", "DuplicateTaskIdFound",
    "TaskAlreadyInTaskGroup", "TaskNotFound", "DagNotFound", "DagRunNotFound", "DagRunAlreadyExists", "ParamValidationError",
    "DagInvalidTriggerRule", "FailFastDagInvalidTriggerRule", "UnmappableXComTypePushed", "UnmappableXComLengthPushed",
    "XComForMappingNotPushed", "XComNotFound", "TaskDeferred", "TaskDeferralError", "TaskDeferralTimeout", "DownstreamTasksSkipped",
    "AirflowWebServerTimeout", "DagRunTriggerException", "TaskInstanceNotFound", "PoolNotFound", "DagCodeNotFound", "NotMapped",
    "ConnectionNotUnique", "VariableNotUnique", "SerializationError", "DeserializingResultError", "AirflowClusterPolicyViolation",
    "AirflowClusterPolicySkipDag", "AirflowInactiveAssetInInletOrOutletException", "UnknownExecutorException",
    "AirflowFileParseException", "AirflowUnsupportedFileTypeException", FailStopDagInvalidTriggerRule="FailFastDagInvalidTriggerRule",
) | at("warnings", "AirflowProviderDeprecationWarning", "RemovedInAirflow3Warning", "RemovedInAirflow4Warning")  # fmt: skip
TIMETABLES = at(
    "timetables", "Timetable", "DataInterval", "DagRunInfo", "TimeRestriction", "NullTimetable", "OnceTimetable", "ContinuousTimetable",
    "CronTriggerTimetable", "MultipleCronTriggerTimetable", "CronDataIntervalTimetable", "DeltaTriggerTimetable",
    "DeltaDataIntervalTimetable", "EventsTimetable", "AssetTriggeredTimetable", "AssetOrTimeSchedule", "DatasetOrTimeSchedule",
)  # fmt: skip
PARTITIONS = at(
    "partitions", "PartitionMapper", "IdentityMapper", "AllowedKeyMapper", "FixedKeyMapper", "ProductMapper", "ChainMapper",
    "StartOfHourMapper", "StartOfDayMapper", "StartOfWeekMapper", "StartOfMonthMapper", "StartOfQuarterMapper", "StartOfYearMapper",
    "RollupMapper", "FanOutMapper", "Window", "HourWindow", "DayWindow", "WeekWindow", "MonthWindow", "QuarterWindow", "YearWindow",
    "SegmentWindow", "WaitPolicy", "WaitForAll", "MinimumCount",
)  # fmt: skip
PARTITION_TIMETABLES = at(
    "partition_timetables", "CronPartitionTimetable", "PartitionedAssetTimetable", "PartitionedAtRuntime"
)
ASSET_DECORATOR = at("decorators.asset", "asset", "AssetDefinition", "MultiAssetDefinition")

SDK = (
    DAG | DECORATORS | ASSETS | ASSET_DECORATOR | PARAMS | EDGES | OPERATOR | MAPPED | SENSOR | BRANCH | STATES | TI | VARIABLE
    | CONNECTION | HOOK | XCOM | XCOM_ARG | GROUP | CONTEXT | NOTIFIER | WEIGHT | PLUGIN | DEADLINE | POLICY | TEMPLATES
    | OBJECT_STORE | TIMETABLES | PARTITIONS | PARTITION_TIMETABLES | TRIGGERS
    | {"macros": "sdk.macros", "timezone": "sdk.timezone", "conf": "sdk.configuration:conf",
       "get_parsing_context": "sdk.parsing:get_parsing_context", "BaseAsyncOperator": f"sdk.{SUPPORT}:BaseAsyncOperator",
       "__version__": "airflow_shim.names:SDK_VERSION", "TaskInstance": "sdk.runs:TaskInstance"}
)  # fmt: skip
