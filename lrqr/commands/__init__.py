"""One function per command: the only place where files meet the mathematics."""
