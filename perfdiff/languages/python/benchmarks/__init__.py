"""Benchmarks and tests that a project has: tells which there are, and runs one of them.

The package is copied into the project's environment as `perfdiff_benchmarks` and runs there, by its interpreter, where nothing else of
perfdiff can be imported. The current folder is that of the project.

    python -m perfdiff_benchmarks list KIND WHAT...
    python -m perfdiff_benchmarks run KIND WHAT... NAME=VALUE... --calls N
    python -m perfdiff_benchmarks batch KIND WHAT N TEST...
    python -m perfdiff_benchmarks cache asv FOLDER BENCHMARK
    python -m perfdiff_benchmarks record|again|call ...     (calls of one function, as `alone` has it)

KIND is `asv` (WHAT: the folder of the suite, and a regular expression of names, or one benchmark), `pytest` (arguments, and `tests` or
`benchmarks` where only these are meant; or one test), `unittest` (arguments, or one test), `pyperf` (scripts, "" for all, or one script
and benchmark), or `callable` (`module:function`, and its parameters' values as JSON, or the names of those that are texts).

`list` tries each benchmark at each combination of its parameters in processes that it watches, which do the task `try`, and writes JSON to
the file PERFDIFF_LISTING, within PERFDIFF_LISTING_S seconds: `benchmarks`, each with `name`, `command` (which `--calls N` completes),
`setup`, `parameters` (values by name), `points` (values, the seconds that a call takes, and whether it can be made again) and `batch` (how
several tests run in one process, or null); `failures`, by benchmark; and `start_s`, the CPU time before the first call. Of tests of pytest
those come first whose files have the words of PERFDIFF_LISTING_LIKELY in their names. `batch` runs each TEST N times, as its command's
place `{calls}` says.
"""
