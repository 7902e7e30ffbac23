"""Solvers of the LR-QR problem, one file each, behind one function."""
