"""Schedulers under siege: killed, cut off, their database stopped, and judged inside the database (I1–I3, I9)."""
