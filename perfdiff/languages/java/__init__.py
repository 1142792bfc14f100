"""Java: methods from class files and sources, probes woven into class files and swapped in where a JVM loads them."""
