"""Our side of a child: start it, watch it, kill its whole tree. ``children.Children`` is the entry."""
