"""The operators that every DAG file can import; one file each."""
