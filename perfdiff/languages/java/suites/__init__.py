"""Lists the suites of Java's frameworks, in a built tree."""
