"""What runs in child processes: importing DAG files, running attempts and callbacks. No Django, no database."""
