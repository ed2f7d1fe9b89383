"""The nightly check: measure, compare with the past, say what is new, persistent and fixed.

docs/nightly.md explains how it decides.
"""
