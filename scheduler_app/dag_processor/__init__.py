"""Watches DAG folders, has their files parsed in children, and stores what they say as versions."""
