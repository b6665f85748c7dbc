"""Rule ensembles and rule lists: predict, explain, measure, save."""
