"""From calibration rows to thresholds, intervals and sets; the calibrated model and its store."""
