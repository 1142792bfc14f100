"""The language pack of Python."""
