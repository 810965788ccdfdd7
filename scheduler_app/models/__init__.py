"""The rows: one concept a file. ``transitions`` is the only writer of states, ``db`` the only way to the database."""

from .asset import Asset, AssetAlias, AssetEvent, AssetQueuedEvent, AssetUse
from .backfill import Backfill, BackfillSlot
from .dag import (
    BundleVersion,
    DagFile,
    DagModel,
    DagTag,
    DagVersion,
    DagWarning,
    ParseError,
    SourceBlob,
)
from .dag_wake import DagWake
from .deadline import Deadline
from .effect import Audit, Callback, Trigger
from .favourite import Favourite
from .job import Job
from .limit import Limit, LimitUse
from .log_piece import LogPiece
from .pool import Pool
from .run import DagRun, Wake
from .secret import Connection, Variable
from .state_store import AssetState, TaskState
from .task import RenderedFields, TaskInstance, TaskInstanceHistory, XCom

__all__ = [
    "Asset",
    "AssetAlias",
    "AssetEvent",
    "AssetQueuedEvent",
    "AssetState",
    "AssetUse",
    "Audit",
    "Backfill",
    "BackfillSlot",
    "BundleVersion",
    "Callback",
    "Connection",
    "DagFile",
    "DagModel",
    "DagRun",
    "DagTag",
    "DagVersion",
    "DagWake",
    "DagWarning",
    "Deadline",
    "Favourite",
    "Job",
    "Limit",
    "LimitUse",
    "LogPiece",
    "ParseError",
    "Pool",
    "RenderedFields",
    "SourceBlob",
    "TaskInstance",
    "TaskInstanceHistory",
    "TaskState",
    "Trigger",
    "Variable",
    "Wake",
    "XCom",
]
