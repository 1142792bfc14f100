"""Searches for the commit that changed a cost, and what they have found out so far."""
