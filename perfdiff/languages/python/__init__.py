"""The language pack for Python."""
