"""Reads DAG files and runs callbacks. ``process.run_dag_processor`` is the entry."""
