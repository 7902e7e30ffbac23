"""Real data with a real shift, one file each."""
