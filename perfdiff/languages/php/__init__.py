"""The language pack of PHP."""
