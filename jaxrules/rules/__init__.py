"""Conditions and rules, the lowered form that evaluates them, and what they may say."""
