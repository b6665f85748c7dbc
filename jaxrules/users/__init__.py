"""What is built on all learners: inspection, editing, plots, comparisons, exports, reports."""
