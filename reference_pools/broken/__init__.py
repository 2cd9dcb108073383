"""Broken pools: history's faults, one class a file."""
