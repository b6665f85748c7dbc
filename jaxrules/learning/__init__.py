"""What every learner does around its own mathematics: options, data, settings chosen, workers."""
