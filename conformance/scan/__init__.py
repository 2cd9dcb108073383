"""`python -m conformance scan`: signature findings of a source tree that is never imported.

Only the standard library is needed here: torch, hypothesis and pytest may be absent.
"""
