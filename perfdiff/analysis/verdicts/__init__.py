"""What is decided: of each function, of all together, and of the whole program."""
