"""C and C++: libclang front end, probes as inserted text, and a runtime compiled with the target's own compiler."""
