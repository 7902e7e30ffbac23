"""Statistics of two samples: coverage and exact quantiles, likelihood ratio, diagnosis of a shift."""
