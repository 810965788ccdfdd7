"""The sensors that every DAG file can import; one file each."""
