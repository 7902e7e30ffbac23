"""Files become columns, columns get roles, rows become samples: all reading and writing of tables."""
