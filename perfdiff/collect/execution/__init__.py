"""One run of one command: what it took, printed and wrote."""
