"""Signature contracts over the classes of a family."""

from conformance.signatures.family import ClassCase, class_cases

__all__ = ["ClassCase", "class_cases"]
