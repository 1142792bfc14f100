"""`python -m perfdiff` is `perfdiff`."""

from perfdiff.cli import main

main()
