"""perfdiff's own load: requests that a server is sent, the same to base and head, and how long each was waited for."""
