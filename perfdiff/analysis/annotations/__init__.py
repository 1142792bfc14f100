"""Annotations of one revision, and checks against them."""
