"""Claims in words: one wording for each kind of claim."""
