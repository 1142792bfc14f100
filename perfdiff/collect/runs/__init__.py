"""Which runs there are, in which order, and how each is carried out."""
