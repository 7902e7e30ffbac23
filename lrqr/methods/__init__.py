"""Threshold methods, one scikit-learn estimator a file: methods/x.py is --method x."""
