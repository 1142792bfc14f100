"""Annotations of one revision, and what holds against them."""
