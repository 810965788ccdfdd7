"""Every read that a page or an endpoint needs, in a fixed number of statements."""
