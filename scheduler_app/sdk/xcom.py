"""XComs by name, outside of a task instance's own methods."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.runs import own_value
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.xcom_arg import XCOM_RETURN_KEY

MAX_XCOM_SIZE = 49344


class BaseXCom:
    """``XCom.get_one``, ``XCom.get_all``, ``XCom.delete`` of the running attempt."""

    XCOM_RETURN_KEY = XCOM_RETURN_KEY

    @classmethod
    def get_one(
        cls,
        *,
        key: str = XCOM_RETURN_KEY,
        dag_id: str,
        task_id: str,
        run_id: str,
        map_index: int | None = None,
        include_prior_dates: bool = False,
    ) -> Any:
        """The value, or None when nothing was pushed."""
        _, value = current_port().get_xcom(
            dag_id=dag_id,
            run_id=run_id,
            task_id=task_id,
            map_index=-1 if map_index is None else map_index,
            key=key,
            include_prior_dates=include_prior_dates,
        )
        return value

    get_value = get_one

    @classmethod
    def get_all(cls, *, key: str = XCOM_RETURN_KEY, dag_id: str, task_id: str, run_id: str, **_: Any) -> list[Any]:
        """The values of all instances of a task, by map index."""
        rows = current_port().get_xcoms(dag_id=dag_id, run_id=run_id, task_id=task_id, key=key, map_indexes=None)
        return [value for _, value in rows]

    @classmethod
    def set(cls, key: str, value: Any, **_: Any) -> None:
        """Pushes under ``key`` for the running task."""
        current_port().set_xcom(key, own_value(value), None)

    @classmethod
    def delete(cls, key: str, **_: Any) -> None:
        current_port().delete_xcom(key)

    # What a backend of the user overrides (``AIRFLOW__CORE__XCOM_BACKEND``); how values cross is the wire's matter.

    @staticmethod
    def serialize_value(value: Any, **_: Any) -> Any:
        """What is stored in place of the value."""
        return value

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        """The value again; ``result.value`` is what was stored."""
        return result.value

    @classmethod
    def purge(cls, xcom: Any, *args: Any) -> None:
        """Called for nobody here: what a backend keeps elsewhere it gives a time to live."""


XCom = BaseXCom
