"""A configuration's methods × shifts × splits, and the tidy tables that come of it."""
