"""The steps of the loop, one a file, each with one public ``run(tick) -> int`` (how many rows it changed)."""
