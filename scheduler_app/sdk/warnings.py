"""Warning classes that DAG files and provider packages import."""

from __future__ import annotations


class AirflowProviderDeprecationWarning(DeprecationWarning):
    """Raised by provider packages."""

    deprecated_provider_since: str | None = None


class RemovedInAirflow3Warning(DeprecationWarning):
    """Kept for code that filters it."""

    deprecated_since: str | None = None


class RemovedInAirflow4Warning(DeprecationWarning):
    """Kept for code that filters it."""

    deprecated_since: str | None = None
