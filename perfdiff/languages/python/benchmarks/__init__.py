"""Benchmarks that a project has: tells which there are, and runs one of them.

The package is copied into the project's environment as `perfdiff_benchmarks` and runs there, by its interpreter, where nothing else of
perfdiff can be imported. The current folder is that of the project.

    python -m perfdiff_benchmarks list KIND WHAT...
    python -m perfdiff_benchmarks run KIND WHAT... NAME=VALUE... --calls N
    python -m perfdiff_benchmarks cache asv FOLDER BENCHMARK

KIND is `asv` (WHAT: the folder of the suite, and a regular expression of names, or one benchmark), `pytest` (arguments, and one test), or
`callable` (`module:function`, and its parameters' values as JSON, or the names of those that are texts).

`list` tries each benchmark at each combination of its parameters, and writes JSON to the file PERFDIFF_LISTING: `benchmarks`, each with
`name`, `command` (which `--calls N` completes), `setup`, `parameters` (values by name) and `points` (values, the seconds that a call takes,
and whether it can be made again); `failures`, by benchmark; and `start_s`, the CPU time before the first call.
"""
