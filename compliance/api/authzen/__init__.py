"""The doors of AuthZEN Authorization API 1.0, as plain views: evaluation, evaluations, search, discovery.

An error of transport is one sentence of text, and never a decision; a denial is an answer with status 200.
"""
