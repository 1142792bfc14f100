"""The commit that did it: what is followed, what to measure next, what is concluded."""
