"""What DAG files raise and catch. Names and kinship are those that DAG files know; the texts are said where raised."""

from __future__ import annotations

from typing import Any


class AirflowException(Exception):
    """Root of what this package raises. A task that raises it fails and may be retried."""

    status_code = 500


class AirflowBadRequest(AirflowException):
    status_code = 400


class AirflowNotFoundException(AirflowException):
    """A connection, or another thing asked for by name, does not exist."""

    status_code = 404


class AirflowConfigException(AirflowException):
    """A configuration value is missing or cannot be read."""


class ErrorType:
    """Kinds of :class:`AirflowRuntimeError`, as text."""

    CONNECTION_NOT_FOUND = "CONNECTION_NOT_FOUND"
    VARIABLE_NOT_FOUND = "VARIABLE_NOT_FOUND"
    XCOM_NOT_FOUND = "XCOM_NOT_FOUND"
    ASSET_NOT_FOUND = "ASSET_NOT_FOUND"
    DAGRUN_ALREADY_EXISTS = "DAGRUN_ALREADY_EXISTS"
    GENERIC_ERROR = "GENERIC_ERROR"


class AirflowRuntimeError(Exception):
    """A request to our side was refused; ``error`` tells the kind (:class:`ErrorType`)."""

    def __init__(self, message: str, error: str = ErrorType.GENERIC_ERROR) -> None:
        self.error = error
        super().__init__(message)


class AirflowOptionalProviderFeatureException(AirflowException):
    """A feature needs a package that is not installed."""


class AirflowTimetableInvalid(AirflowException):
    """A schedule that cannot be read, such as a wrong cron expression."""


class AirflowDagCycleException(AirflowException):
    """The tasks of a DAG wait for each other in a circle."""


class AirflowDagDuplicatedIdException(AirflowException):
    """Two DAGs of one id."""

    def __init__(self, dag_id: str, incoming: str, existing: str) -> None:
        self.dag_id, self.incoming, self.existing = dag_id, incoming, existing
        super().__init__(f"DAG id {dag_id!r} of {incoming} is taken by {existing}: rename one of them.")


class AirflowInternalRuntimeError(BaseException):
    """A bug on our side, not in the DAG file."""


class DuplicateTaskIdFound(AirflowException):
    """Two tasks (or groups) of one id in a DAG."""


class TaskAlreadyInTaskGroup(AirflowException):
    """A task was added to a second group."""

    def __init__(self, task_id: str, existing: str | None, new: str) -> None:
        super().__init__(
            f"Task {task_id!r} is in group {existing or 'of the DAG itself'!r}; it cannot also be in {new!r}."
        )


class TaskNotFound(AirflowNotFoundException):
    """No such task in the DAG."""


class DagNotFound(AirflowNotFoundException):
    """No such DAG."""


class DagRunNotFound(AirflowNotFoundException):
    """No such run."""


class DagRunAlreadyExists(AirflowBadRequest):
    """A run of this id, or for this logical date, exists."""


class ParamValidationError(AirflowException):
    """A param's value breaks its JSON schema."""


class DagInvalidTriggerRule(AirflowException):
    """The trigger rule does not fit the DAG (``fail_fast`` allows only the default one)."""


class FailFastDagInvalidTriggerRule(DagInvalidTriggerRule):
    """As above, under its newer name."""


class UnmappableXComTypePushed(AirflowException):
    """A task that others are mapped over returned something that is neither a list nor a dict."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(
            f"Tasks are mapped over this task's result, but it returned a {type(value).__qualname__}: return a list "
            "or a dict."
        )


class XComForMappingNotPushed(TypeError):
    """A task that others are mapped over returned None."""

    def __init__(self) -> None:
        super().__init__("Tasks are mapped over this task's result, but it returned None: return a list or a dict.")


class UnmappableXComLengthPushed(AirflowException):
    """More elements than a mapped task may have."""

    def __init__(self, value: Any, max_length: int) -> None:
        self.value, self.max_length = value, max_length
        super().__init__(
            f"Tasks are mapped over this task's result, which has {len(value)} elements; at most {max_length} are "
            "allowed. Return fewer, for instance lists of several, or raise AIRFLOW__CORE__MAX_MAP_LENGTH."
        )


class XComNotFound(AirflowException):
    """A task argument names an XCom that was never pushed."""

    def __init__(self, dag_id: str, task_id: str, key: str) -> None:
        self.dag_id, self.task_id, self.key = dag_id, task_id, key
        super().__init__(f"No XCom {key!r} was pushed by task {task_id!r} of DAG {dag_id!r} in this run.")


class AirflowSkipException(AirflowException):
    """Ends the task as skipped; retries are not used."""


class AirflowFailException(AirflowException):
    """Ends the task as failed, whatever retries are left."""


class AirflowSensorTimeout(AirflowException):
    """A sensor waited longer than its ``timeout``; retries are not used."""


class AirflowPokeFailException(AirflowException):
    """A sensor's poke failed."""


class AirflowTaskTimeout(BaseException):
    """The attempt ran longer than ``execution_timeout``. Not an Exception, so that ``except Exception`` does not hide
    it."""


class AirflowTaskTerminated(BaseException):
    """The attempt was told to end (SIGTERM)."""


class AirflowWebServerTimeout(AirflowException):
    """Kept for code that catches it."""


class AirflowRescheduleException(AirflowException):
    """Ends the attempt; a later one begins at ``reschedule_date`` (aware datetime)."""

    def __init__(self, reschedule_date: Any) -> None:
        super().__init__(f"look again at {reschedule_date}")
        self.reschedule_date = reschedule_date


class DownstreamTasksSkipped(AirflowException):
    """Ends the task as success and skips ``tasks`` (ids, or (id, map index) pairs)."""

    def __init__(self, *, tasks: Any) -> None:
        super().__init__(f"skips {list(tasks)}")
        self.tasks = tasks


class TaskDeferred(BaseException):
    """Hands the wait over to a trigger; ``method_name`` is called with its event later."""

    def __init__(
        self,
        *,
        trigger: Any,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: Any = None,
    ) -> None:
        super().__init__()
        self.trigger, self.method_name, self.kwargs, self.timeout = trigger, method_name, kwargs, timeout
        if timeout is not None and not hasattr(timeout, "total_seconds"):
            raise ValueError(f"A deferral's timeout is a timedelta, not {timeout!r}.")

    def __repr__(self) -> str:
        return f"<TaskDeferred trigger={self.trigger!r} method={self.method_name}>"


class DagRunTriggerException(AirflowException):
    """Raised in Airflow when a task starts a run of another DAG; here for code that catches it."""


class TaskInstanceNotFound(AirflowNotFoundException):
    """No such task instance."""


class PoolNotFound(AirflowNotFoundException):
    """No such pool."""


class DagCodeNotFound(AirflowNotFoundException):
    """The source of the DAG is not stored."""


class NotMapped(Exception):
    """The task is neither mapped nor in a mapped group."""


class ConnectionNotUnique(AirflowException):
    """Several connections of one id."""


class VariableNotUnique(AirflowException):
    """Several variables of one key."""


class SerializationError(AirflowException):
    """A DAG that cannot be stored."""


class DeserializingResultError(ValueError):
    """A result that cannot be read back."""


class AirflowClusterPolicyViolation(AirflowException):
    """Raised by a policy: the DAG or task is not accepted."""


class AirflowClusterPolicySkipDag(AirflowException):
    """Raised by a policy: the DAG is left out."""


class AirflowInactiveAssetInInletOrOutletException(AirflowException):
    """A task names an asset that no DAG uses any more."""


class UnknownExecutorException(ValueError):
    """No such executor."""


class AirflowFileParseException(AirflowException):
    """A file of variables or connections that cannot be read."""


class AirflowUnsupportedFileTypeException(AirflowException):
    """A file of a kind that is not read."""


class TaskDeferralError(AirflowException):
    """The trigger failed before it fired."""


class TaskDeferralTimeout(AirflowException):
    """The trigger did not fire in time."""


#: Tracebacks and error documents name these classes as authors import them.
for _kind in [value for value in globals().values() if isinstance(value, type)]:
    if _kind.__module__ == __name__:
        _kind.__module__ = "airflow.exceptions"
