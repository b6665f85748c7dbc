"""What the user brings: tables, their columns, targets and weights, and known data sets."""
