"""Logs beyond the machine that wrote them: shipped in pieces while they grow, read as if they were one file.

``reading.open_log`` finds a try's log wherever it lies; ``keeper.Keeper`` ships what a process writes.
"""
