"""The dashboard: one file a page. ``urls`` is the table of routes, ``page`` what every page shares."""
