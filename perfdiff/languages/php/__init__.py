"""The language pack of PHP: functions, what changed between two revisions, and probes in a running PHP."""
