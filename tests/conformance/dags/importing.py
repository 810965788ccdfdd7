"""Names that DAG files import from Airflow 3.3.2."""

import importlib
import warnings

import pendulum
from airflow.sdk import DAG, task

NAMES = """
airflow.configuration:AIRFLOW_HOME airflow.configuration:conf airflow.decorators.base:DecoratedOperator
airflow.decorators.base:TaskDecorator airflow.decorators.base:get_unique_task_id
airflow.decorators.base:task_decorator_factory airflow.decorators:dag airflow.decorators:setup
airflow.decorators:task airflow.decorators:task_group airflow.decorators:teardown
airflow.exceptions:AirflowBadRequest airflow.exceptions:AirflowClusterPolicySkipDag
airflow.exceptions:AirflowClusterPolicyViolation airflow.exceptions:AirflowConfigException
airflow.exceptions:AirflowDagCycleException airflow.exceptions:AirflowException
airflow.exceptions:AirflowFailException airflow.exceptions:AirflowFileParseException
airflow.exceptions:AirflowInactiveAssetInInletOrOutletException airflow.exceptions:AirflowNotFoundException
airflow.exceptions:AirflowOptionalProviderFeatureException
airflow.exceptions:AirflowProviderDeprecationWarning airflow.exceptions:AirflowRescheduleException
airflow.exceptions:AirflowSensorTimeout airflow.exceptions:AirflowSkipException
airflow.exceptions:AirflowTaskTerminated airflow.exceptions:AirflowTaskTimeout
airflow.exceptions:AirflowTimetableInvalid airflow.exceptions:AirflowUnsupportedFileTypeException
airflow.exceptions:ConnectionNotUnique airflow.exceptions:DagCodeNotFound airflow.exceptions:DagNotFound
airflow.exceptions:DagRunAlreadyExists airflow.exceptions:DagRunTriggerException
airflow.exceptions:DeserializingResultError airflow.exceptions:DuplicateTaskIdFound
airflow.exceptions:NotMapped airflow.exceptions:ParamValidationError airflow.exceptions:PoolNotFound
airflow.exceptions:SerializationError airflow.exceptions:TaskDeferralError
airflow.exceptions:TaskDeferralTimeout airflow.exceptions:TaskDeferred airflow.exceptions:TaskInstanceNotFound
airflow.exceptions:TaskNotFound airflow.exceptions:UnknownExecutorException
airflow.exceptions:VariableNotUnique airflow.exceptions:XComNotFound airflow.hooks.base:BaseHook
airflow.hooks.filesystem:FSHook airflow.hooks.subprocess:SubprocessHook airflow.io.path:ObjectStoragePath
airflow.lineage.hook:get_hook_lineage_collector airflow.listeners:hookimpl
airflow.macros:datetime_diff_for_humans airflow.macros:ds_add airflow.macros:ds_format airflow.macros:random
airflow.models.abstractoperator:AbstractOperator airflow.models.asset:AssetEvent
airflow.models.asset:AssetModel airflow.models.base:Base airflow.models.baseoperator:BaseOperator
airflow.models.baseoperator:chain airflow.models.baseoperator:chain_linear
airflow.models.baseoperator:cross_downstream airflow.models.baseoperatorlink:BaseOperatorLink
airflow.models.connection:Connection airflow.models.dag:DAG airflow.models.dag:DagModel airflow.models.dag:dag
airflow.models.dagbag:DagBag airflow.models.dagcode:DagCode airflow.models.dagrun:DagRun
airflow.models.log:Log airflow.models.param:Param airflow.models.param:ParamsDict airflow.models.pool:Pool
airflow.models.renderedtifields:RenderedTaskInstanceFields airflow.models.serialized_dag:SerializedDagModel
airflow.models.skipmixin:SkipMixin airflow.models.taskinstance:TaskInstance
airflow.models.taskinstance:clear_task_instances airflow.models.taskmixin:DAGNode
airflow.models.trigger:Trigger airflow.models.variable:Variable airflow.models.xcom:XCOM_RETURN_KEY
airflow.models.xcom:XCom airflow.models.xcom_arg:XComArg airflow.models:Base airflow.models:BaseOperator
airflow.models:BaseOperatorLink airflow.models:BaseXCom airflow.models:Connection airflow.models:DAG
airflow.models:DagBag airflow.models:DagModel airflow.models:DagRun airflow.models:Log
airflow.models:MappedOperator airflow.models:Param airflow.models:Pool airflow.models:SkipMixin
airflow.models:TaskInstance airflow.models:TaskReschedule airflow.models:Trigger airflow.models:Variable
airflow.models:XCom airflow.models:clear_task_instances airflow.notifications.basenotifier:BaseNotifier
airflow.operators.bash:BashOperator airflow.operators.branch:BaseBranchOperator
airflow.operators.datetime:BranchDateTimeOperator airflow.operators.empty:EmptyOperator
airflow.operators.latest_only:LatestOnlyOperator airflow.operators.python:PythonOperator
airflow.operators.python:PythonVirtualenvOperator airflow.operators.python:get_current_context
airflow.operators.smooth:SmoothOperator airflow.operators.trigger_dagrun:TriggerDagRunOperator
airflow.operators.weekday:BranchDayOfWeekOperator airflow.plugins_manager:AirflowPlugin
airflow.policies:hookimpl airflow.providers.common.compat.assets:Asset
airflow.providers.common.compat.check:require_provider_version
airflow.providers.common.compat.lineage.hook:get_hook_lineage_collector
airflow.providers.common.compat.sdk:AirflowException airflow.providers.common.compat.sdk:BaseHook
airflow.providers.common.compat.sdk:timezone airflow.providers.common.compat.standard.operators:PythonOperator
airflow.providers.common.compat.standard.triggers:TimeDeltaTrigger
airflow.providers.common.compat.version_compat:AIRFLOW_V_3_1_PLUS
airflow.providers.standard.decorators.branch_python:branch_task
airflow.providers.standard.decorators.short_circuit:short_circuit_task
airflow.providers.standard.exceptions:HITLTimeoutError
airflow.providers.standard.hooks.subprocess:SubprocessHook
airflow.providers.standard.operators.bash:BashOperator
airflow.providers.standard.operators.branch:BaseBranchOperator
airflow.providers.standard.operators.hitl:ApprovalOperator
airflow.providers.standard.operators.python:PythonOperator
airflow.providers.standard.operators.python:get_current_context
airflow.providers.standard.operators.trigger_dagrun:TriggerDagRunOperator
airflow.providers.standard.sensors.external_task:ExternalDagLink
airflow.providers.standard.sensors.time:TimeSensor airflow.providers.standard.sensors.time:TimeSensorAsync
airflow.providers.standard.sensors.time_delta:TimeDeltaSensorAsync
airflow.providers.standard.sensors.time_delta:WaitSensor
airflow.providers.standard.triggers.temporal:DateTimeTrigger
airflow.providers.standard.utils.skipmixin:SkipMixin airflow.providers.standard.utils.weekday:WeekDay
airflow.providers.standard.version_compat:AIRFLOW_V_3_0_PLUS airflow.providers.standard:__version__
airflow.providers_manager:ProvidersManager airflow.sdk.api.datamodels._generated:DagRunState
airflow.sdk.bases.branch:BranchMixIn airflow.sdk.bases.decorator:DecoratedOperator
airflow.sdk.bases.decorator:TaskDecorator airflow.sdk.bases.hook:BaseHook
airflow.sdk.bases.notifier:BaseNotifier airflow.sdk.bases.operator:BaseOperator
airflow.sdk.bases.operator:chain airflow.sdk.bases.sensor:BaseSensorOperator airflow.sdk.bases.xcom:BaseXCom
airflow.sdk.definitions._internal.abstractoperator:AbstractOperator
airflow.sdk.definitions._internal.node:DAGNode airflow.sdk.definitions._internal.templater:Templater
airflow.sdk.definitions._internal.types:NOTSET airflow.sdk.definitions.asset.decorators:asset
airflow.sdk.definitions.asset.metadata:Metadata airflow.sdk.definitions.asset:Asset
airflow.sdk.definitions.connection:Connection airflow.sdk.definitions.context:Context
airflow.sdk.definitions.context:get_current_context airflow.sdk.definitions.dag:DAG
airflow.sdk.definitions.deadline:DeadlineAlert airflow.sdk.definitions.deadline:DeadlineReference
airflow.sdk.definitions.decorators.task_group:task_group airflow.sdk.definitions.decorators:task
airflow.sdk.definitions.edges:Label airflow.sdk.definitions.param:Param
airflow.sdk.definitions.taskgroup:TaskGroup airflow.sdk.definitions.template:literal
airflow.sdk.definitions.timetables.assets:AssetOrTimeSchedule
airflow.sdk.definitions.timetables.events:EventsTimetable
airflow.sdk.definitions.timetables.interval:CronDataIntervalTimetable
airflow.sdk.definitions.timetables.simple:ContinuousTimetable
airflow.sdk.definitions.timetables.trigger:CronTriggerTimetable airflow.sdk.definitions.variable:Variable
airflow.sdk.definitions.xcom_arg:XComArg airflow.sdk.exceptions:AirflowException
airflow.sdk.exceptions:AirflowFailException airflow.sdk.exceptions:AirflowNotFoundException
airflow.sdk.exceptions:AirflowRuntimeError airflow.sdk.exceptions:AirflowSensorTimeout
airflow.sdk.exceptions:AirflowSkipException airflow.sdk.exceptions:AirflowTaskTimeout
airflow.sdk.exceptions:DagRunTriggerException airflow.sdk.exceptions:DownstreamTasksSkipped
airflow.sdk.exceptions:ParamValidationError airflow.sdk.exceptions:TaskDeferred
airflow.sdk.exceptions:XComNotFound airflow.sdk.execution_time.context:context_to_airflow_vars
airflow.sdk.execution_time.macros:ds_add airflow.sdk.execution_time.secrets_masker:mask_secret
airflow.sdk.execution_time.xcom:XCom airflow.sdk.io.path:ObjectStoragePath airflow.sdk.io:ObjectStoragePath
airflow.sdk.log:mask_secret airflow.sdk.timezone:utcnow airflow.sdk.types:RuntimeTaskInstanceProtocol
airflow.sdk:Asset airflow.sdk:AssetAlias airflow.sdk:AssetAll airflow.sdk:AssetAny
airflow.sdk:AssetOrTimeSchedule airflow.sdk:AssetWatcher airflow.sdk:AsyncCallback
airflow.sdk:BaseAsyncOperator airflow.sdk:BaseHook airflow.sdk:BaseNotifier airflow.sdk:BaseOperator
airflow.sdk:BaseOperatorLink airflow.sdk:BaseSensorOperator airflow.sdk:BaseXCom airflow.sdk:BranchMixIn
airflow.sdk:Connection airflow.sdk:Context airflow.sdk:CronDataIntervalTimetable
airflow.sdk:CronPartitionTimetable airflow.sdk:CronTriggerTimetable airflow.sdk:DAG airflow.sdk:DagRunState
airflow.sdk:DeadlineAlert airflow.sdk:DeadlineReference airflow.sdk:DeltaDataIntervalTimetable
airflow.sdk:DeltaTriggerTimetable airflow.sdk:EdgeModifier airflow.sdk:EventsTimetable airflow.sdk:Label
airflow.sdk:Metadata airflow.sdk:MultipleCronTriggerTimetable airflow.sdk:ObjectStoragePath airflow.sdk:Param
airflow.sdk:ParamsDict airflow.sdk:PartitionedAssetTimetable airflow.sdk:PokeReturnValue airflow.sdk:SkipMixin
airflow.sdk:SyncCallback airflow.sdk:TaskGroup airflow.sdk:TaskInstance airflow.sdk:TaskInstanceState
airflow.sdk:TriggerRule airflow.sdk:Variable airflow.sdk:WeightRule airflow.sdk:XComArg
airflow.sdk:__version__ airflow.sdk:asset airflow.sdk:bases airflow.sdk:chain airflow.sdk:chain_linear
airflow.sdk:conf airflow.sdk:cross_downstream airflow.sdk:dag airflow.sdk:exceptions
airflow.sdk:get_current_context airflow.sdk:get_parsing_context airflow.sdk:io airflow.sdk:lineage
airflow.sdk:literal airflow.sdk:log airflow.sdk:macros airflow.sdk:setup airflow.sdk:task
airflow.sdk:task_group airflow.sdk:teardown airflow.sdk:timezone
airflow.secrets.base_secrets:BaseSecretsBackend airflow.secrets:BaseSecretsBackend
airflow.security.permissions:ACTION_CAN_READ airflow.sensors.base:BaseSensorOperator
airflow.sensors.base:PokeReturnValue airflow.sensors.base:poke_mode_only airflow.sensors.bash:BashSensor
airflow.sensors.date_time:DateTimeSensor airflow.sensors.external_task:ExternalTaskMarker
airflow.sensors.external_task:ExternalTaskSensor airflow.sensors.filesystem:FileSensor
airflow.sensors.python:PythonSensor airflow.sensors.time_delta:TimeDeltaSensor
airflow.sensors.time_sensor:TimeSensor airflow.sensors.weekday:DayOfWeekSensor airflow.settings:AIRFLOW_HOME
airflow.settings:DAGS_FOLDER airflow.settings:Session airflow.settings:TIMEZONE airflow.stats:Stats
airflow.task.priority_strategy:PriorityWeightStrategy airflow.task.trigger_rule:TriggerRule
airflow.task.weight_rule:WeightRule airflow.timetables.assets:AssetOrTimeSchedule
airflow.timetables.base:DagRunInfo airflow.timetables.base:DataInterval
airflow.timetables.base:TimeRestriction airflow.timetables.base:Timetable
airflow.timetables.events:EventsTimetable airflow.timetables.interval:CronDataIntervalTimetable
airflow.timetables.interval:DeltaDataIntervalTimetable airflow.timetables.simple:AssetTriggeredTimetable
airflow.timetables.simple:ContinuousTimetable airflow.timetables.simple:NullTimetable
airflow.timetables.simple:OnceTimetable airflow.timetables.trigger:CronTriggerTimetable
airflow.timetables.trigger:DeltaTriggerTimetable airflow.timetables.trigger:MultipleCronTriggerTimetable
airflow.triggers.base:BaseTrigger airflow.triggers.base:TriggerEvent
airflow.triggers.external_task:WorkflowTrigger airflow.triggers.file:FileTrigger
airflow.triggers.temporal:DateTimeTrigger airflow.triggers.temporal:TimeDeltaTrigger
airflow.typing_compat:Literal airflow.utils.context:Context airflow.utils.dates:cron_presets
airflow.utils.db:provide_session airflow.utils.edgemodifier:Label airflow.utils.hashlib_wrapper:md5
airflow.utils.helpers:as_flattened_list airflow.utils.helpers:at_most_one airflow.utils.helpers:exactly_one
airflow.utils.helpers:is_container airflow.utils.helpers:merge_dicts
airflow.utils.helpers:parse_template_string airflow.utils.helpers:prune_dict
airflow.utils.helpers:render_template_to_string airflow.utils.helpers:validate_key
airflow.utils.log.logging_mixin:LoggingMixin airflow.utils.net:get_hostname
airflow.utils.operator_helpers:determine_kwargs airflow.utils.platform:getuser
airflow.utils.process_utils:execute_in_subprocess airflow.utils.session:NEW_SESSION
airflow.utils.session:create_session airflow.utils.session:provide_session airflow.utils.state:DagRunState
airflow.utils.state:State airflow.utils.state:TaskInstanceState airflow.utils.strings:get_random_string
airflow.utils.strings:to_boolean airflow.utils.task_group:TaskGroup airflow.utils.timezone:datetime
airflow.utils.timezone:parse airflow.utils.timezone:utcnow airflow.utils.trigger_rule:TriggerRule
airflow.utils.types:DagRunType airflow.utils.types:NOTSET airflow.utils.weight_rule:WeightRule
airflow.utils.xcom:XCOM_RETURN_KEY airflow.version:version airflow:AirflowException airflow:Asset airflow:DAG
airflow:Dataset airflow:XComArg airflow:__version__ airflow:configuration airflow:models
airflow:plugins_manager airflow:settings airflow:version
""".split()
found = {}
for name in NAMES:
    module, _, attr = name.partition(":")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = importlib.import_module(module)
            getattr(m, attr)
        found[name] = "there"
    except Exception:
        found[name] = "not there"
with DAG("importing_names", schedule=None, start_date=pendulum.datetime(2024, 1, 1)):

    @task
    def names():
        return [len(found), sorted(name for name, how in found.items() if how != "there")]

    names()
