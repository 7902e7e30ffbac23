"""The typed result of every command: the one contract that text, JSON, CSV, HTML and figures read."""
