"""Names of the permissions that ``access_control`` of a DAG may grant."""

from __future__ import annotations

ACTION_CAN_CREATE = "can_create"
ACTION_CAN_READ = "can_read"
ACTION_CAN_EDIT = "can_edit"
ACTION_CAN_DELETE = "can_delete"
