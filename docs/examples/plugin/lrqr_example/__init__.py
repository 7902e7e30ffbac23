"""A package that adds a score and a method to lrqr."""
