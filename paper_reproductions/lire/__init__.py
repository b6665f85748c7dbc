"""Learning Locally Interpretable Rule Ensemble (Kanamori, ECML PKDD 2023)."""

from paper_reproductions.framework import Paper

PAPER = Paper("lire", "Learning Locally Interpretable Rule Ensemble", "Kanamori, ECML PKDD 2023 (arXiv:2306.11481)", ())
