"""The workflow of `poolbisect bisect`: from a range of history to the culprit.

Joins what knows nothing of each other: a history, a probe and the search of `bisection/`.
"""
