"""Signature contracts over the classes of a family, live and from source."""
