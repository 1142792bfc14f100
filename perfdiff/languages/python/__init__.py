"""Python behind the seam of languages: sources read by `ast`, probes in the interpreter, environments of their own."""
