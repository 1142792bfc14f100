"""Call stacks of both sides, put together from calls, and the formats in which viewers of profiles open them."""
