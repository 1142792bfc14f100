"""What perfdiff calls slower, material, excluded, explained and guilty: every number that decides an answer, with its reason.

What the user decides stands in `config.CompareConfig`: the smallest effect of interest, the rate of false discoveries, the confidence of
intervals. Numbers of one algorithm alone (rounds, rows, draws, levels of preliminary tests) stand with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from perfdiff.config import RUNS_FOR_TIME

# False alarms are the worst failure, and a comparison is repeated at every commit: a rate of false discoveries that suits a single one is
# not enough. Simulated, five runs a side: at 0.005, one comparison of six functions in 75 reports a regression under 30 % of noise.
_EVIDENCE = 0.001


@dataclass(frozen=True, slots=True)
class Policy:
    """The numbers that decide; each answers one question, wherever that is asked."""

    # Memory -------------------------------------------------------------------------------------------------------------------------

    memory: float = 0.1  # more peak memory than this share is told where the user names none
    # What a process's start, its allocator's arenas and its libraries take otherwise is less than this, and nobody looks for it.
    least_peak_bytes: float = 1e6
    # Peaks of so many sizes show a line, where none lies further from it than this share of the largest: pages and doubled tables do.
    sizes_of_a_line: int = 3
    off_a_line: float = 0.05
    # What libraries keep for themselves until the end, such as buffers of files, is less. What grows with inputs is told whatever its size.
    least_lasting_bytes: int = 2**16
    least_growth_bytes: float = 1.0  # for each unit of a parameter: what is kept for each of many things is more
    runs_alike: int = 2  # of a side, which show whether exact counts repeat
    # What is asked of the kernel is told where each run of head has more than each of base, by more than the runs of both sides differ:
    # of five runs a side that happens by chance in fewer than one of 252. Less than this is what other libraries and starts of programs do.
    runs_of_requests: int = 5
    least_requests: Mapping[str, int] = field(
        default_factory=lambda: {
            "reads": 16,
            "writes": 16,
            "read_bytes": 2**16,
            "written_bytes": 2**16,
            "faults": 1024,
            "descriptors": 4,
            "threads": 2,
        }
    )

    # Parts of a whole ----------------------------------------------------------------------------------------------------------------

    # Half of something is most of it. What makes up so much explains or carries it (extra time by larger inputs, by more work, by first
    # calls, by waiting), owns it (what is new by a suspect, or moved from elsewhere); what excludes so much of a claim contradicts it, and
    # a result that is smaller by more is missing.
    most: float = 0.5
    # A cause must be able to explain at least this part of the function's extra cost, at the most that each event may take, to be told,
    # and to confirm it; a counter must grow by as much. What does less of the work of folded functions is not named.
    telling: float = 0.2
    material: float = 0.01  # a difference counts where it is at least this share of what a whole run costs at some workload point
    most_work: float = 0.8  # of what changed functions execute more names one by that alone: four times as much as all others together
    followed: float = 0.1  # a caller that makes less than this part of a function's new calls is not followed further up
    # Where whole runs are slower and nobody is guilty, runs need not prove a function slower, only tell it from others: that all of three
    # runs of head take longer than all of three of base happens by chance in one of twenty.
    locating_runs: int = 3  # of a side
    # Two suspects whose extra costs differ by less than this are ranked by how direct the evidence is.
    tie: float = 0.10

    # Slower, faster, the same: single functions --------------------------------------------------------------------------------------

    min_runs: int = 2 * RUNS_FOR_TIME  # of both sides, at all points together; with fewer, no interval deserves trust
    evidence: float = _EVIDENCE
    # Sums of several functions, or of one that the other side lacks, have no test of their own: they must differ at this confidence.
    sums: float = 1 - _EVIDENCE
    class_level: float = 0.01  # joint test of all interactions, version × term: stricter than 5 %, for a change of class is a headline
    # A mode is told to have moved if its share of the calls did by this much; a smaller shift of a few runs' calls is their mix.
    moved_mode: float = 0.05
    # More of head's calls than of base's, by this share of all calls, are anomalous: every call off by 0.6 of base's standard deviations,
    # or one call in ten by much. The machine's own state, such as what its caches hold, moves calls by less.
    anomalous: float = 0.10
    least_work: float = 0.001  # exact counts differ by the smallest change of work; less than this is not worth a word
    chance: float = 0.01  # a counter that is told as a cause has grown beyond this chance, over all points that could be told
    # Times of one program differ by so much from day to day: clock rates, neighbours, versions of libraries. About 12 % were seen on a
    # shared machine; runs that are not interleaved cannot tell that from a change of the code.
    drift: float = 0.15
    # Where another tool measured each side by itself, a machine's speed may differ from one to the other by as much as within them: by what
    # the quarters of a benchmark's runs differ by in their medians, of all but a tenth of the benchmarks. A shared machine ran at half of
    # its speed for whole seconds, and files of the same code differed by ×0.5 to ×2 (docs/figures.md).
    drift_stretches: int = 4
    drift_beyond: float = 0.1
    asked_about: float = 0.05  # of what a call took: a wait that is longer by less is not what somebody asks about
    least_wait_ns: float = 50_000.0  # so long a wait a scheduler alone does not make of a short call
    # Other work on the machine stretches some calls of a run, and a counted run allocates slower: each call of a library takes longer where
    # all runs of head say so by this factor.
    library_slower: float = 1.5

    # What the place of code makes ----------------------------------------------------------------------------------------------------

    # The code around an unchanged function moves it in memory. In pairs of builds without any change, ±11 % was seen where they did not run
    # in turn, and ±10 % by the alignment of code alone. Less than this is no effect of a change made elsewhere.
    layout_shift: float = 0.15
    layouts_known: int = 3  # from so many layouts on, what they make of the same code is part of the interval; else `layout_shift` allows
    # Where exact counts or single calls say that nothing was added, what remains are the places of code and data, which were seen to make
    # ±10 % of the same instructions' time: whole runs must exclude more than that, or be slower by more.
    places: float = 0.10

    # Whole runs ----------------------------------------------------------------------------------------------------------------------

    # Chance of an error where few pairs may end the runs before the first look, as a part of that of a look: head is slower in at most
    # 0.11 % of sequences, also where neighbours have half of all runs take ten times as long (tests/test_slower_by_far.py).
    before_looks: float = 0.1
    # A run that waits, or uses several threads, in its quietest execution has a CPU time that says little of how long it takes: from this
    # share on, of time without CPU or of CPU beyond one, its time by the clock is judged as well. A process's start and end wait that much.
    waits: float = 0.15
    # A run that waits now and then does so for longer than a busy machine keeps the shell above it from starting it: 18 ms at a load of 6.
    stall_ns: float = 50e6
    # Where a clock ends runs, most of them last as long to within this part of what their CPU time differs by; where that only adds what
    # they wait for a CPU, by as much at least: that waits of so many runs make up for all but this of it by chance was seen in none of
    # 40,000 simulated sequences, and of six runs in 11. Less than this share of CPU time is made by clocks and ticks.
    clockwork_runs: int = 10
    clockwork_most: float = 0.75
    clockwork: float = 0.2
    clockwork_noise: float = 0.02
    # From this part of a run on, fewer calls of a number that varies may be why it takes no longer; of a JVM's short runs most is its own.
    clockwork_part: float = 0.25
    # A run that takes so many times its side's median is no noise: in CPU time, 9 of 19,900 runs of 10 ms and more did by chance, and 62 of
    # 7,500 shorter ones (load 2 to 13 on two CPUs). What base's add is little beside head's where it is less than a third.
    seldom: float = 2.0
    seldom_noise: float = 1 / 3
    # Slow runs lie beyond the middle half of all by so many times its width: Tukey's outer fence (1977), which one of a million runs passes
    # whose logarithms are normal.
    slow_fence: float = 3.0
    # Good news of short programs is said once so many runs were made that one slow run in 20 would have been met.
    slow_share: float = 0.05
    # Runs that follow each other in one tree seem longer in head at the first of these levels, which three pairs that all say so reach,
    # and are made once more. Both series together are judged at the second, which six pairs reach, or by so many long runs.
    in_turn_suspected: float = 0.1
    in_turn: float = 0.02
    in_turn_seldom: int = 2
    # Of what runs take longer, at most this share is CPU time where they only wait longer for a service: answers that came 3 ms late made
    # 0.03 to 0.06 of it (a server in Python, load 5 on 2 CPUs).
    busier: float = 0.2
    # Of the CPUs that tasks could use at the same time they had this part at least: then three quarters or more of what they do to each
    # other shows, and where 5 % is excluded, 7 % is on a quiet machine.
    met: float = 0.75
    awaited: float = 2.0  # slow-downs that are excluded only beyond this ratio are no answer that anybody waits for

    # Same work -----------------------------------------------------------------------------------------------------------------------

    # Less than a page is what threads and event loops signal each other by pipes, not a result.
    few_bytes_elsewhere: int = 4096
    # Where nothing that a program prints or writes shows its work, this part of it, or less, may be left by skipping the rest: heads that
    # stop halfway do half, and start as before. Most improvements of whole programs are smaller, and a workload's check tells the others.
    small_part: float = 2 / 3
    message_lines: int = 10  # of text that is the same at all points: so many say that a program ended, more of them are a result
    # An allocation costs as much as some hundred basic blocks, not as one: runs that make few are not held to a share of that little.
    few_allocations: float = 100.0
    few_bytes: float = 1e6
    few_divisions: float = 1e4  # take a quarter of a millisecond at most

    # What speaks against extra time, what explains it, and who is guilty -------------------------------------------------------------

    # Probes that cost more than the program itself (tiny functions, called by one another) measure another program: caches, inlining and
    # the order of instructions are not the user's.
    distorted: float = 1.0
    # Compilers turn conditions into moves and back, and move code between blocks: a function that does the same may execute so many times
    # as many blocks. Atomic operations they leave as they are. A statement that is broken into several lines begins each of them: a call of
    # two arguments four, with each on a line of its own.
    rewritten: Mapping[str, float] = field(
        default_factory=lambda: {"atomics": 1.0, "blocks": 1.5, "bytecode_blocks": 1.5, "lines": 4.0, "opcodes": 1.5}
    )
    taken_over: float = 2.0  # times as many calls into a recursion, at most, are taken for those of a caller that is gone
    mostly_new: float = 2.0  # from so many times the calls on, most are new: they cost what new calls cost, not what old ones have come to
    # A function whose text is the same and that reads other data costs what its new calls cost, where it is called so many times as often:
    # a third of its calls then need only take four times as long as those that base made to double what a call takes on average.
    partly_new: float = 1.5
    more_allocated: float = 1.2  # allocations that grew by less leave what frees them as it was, but for what cannot be told from noise
    # A suspect whose changed lines mention the shared field by name is so many times likelier behind it than one that only writes it; so is
    # the nearest change among the callers or callees of the reader.
    mentioned: float = 10.0
    near: float = 10.0
    # A changed function that writes nothing others read can act on its callers through its value alone; one that also writes has two more
    # ways, what is written and what is freed.
    pure: float = 3.0
    handed_down: int = 3  # levels of unchanged callers that are climbed for who hands a value down: further up, a main calls all there is

    # Settled -------------------------------------------------------------------------------------------------------------------------

    settled: float = 2.0  # smallest effects of interest: a finding that stands so far from none stays one, however often it is looked at
    class_calls: int = 40  # a side: of fewer, one disturbed run can name the class of a cost; what is told of it gets all its runs

    # What several ask ----------------------------------------------------------------------------------------------------------------

    def smallest(self, min_effect: float, *, is_laid_out_anew: bool) -> float:
        """Return from which share on a difference counts: of code that only lies elsewhere, beyond what that makes."""
        return max(min_effect, self.layout_shift) if is_laid_out_anew else min_effect

    def may_be_layout(self, effect: float) -> bool:
        """Return whether another layout of the same code may make a slow-down, a logarithm, of single functions or builds."""
        return effect <= math.log1p(self.layout_shift)

    def may_be_places(self, ratio: float) -> bool:
        """Return whether the places of code and data alone may make a ratio of whole runs that do the same work."""
        return ratio <= 1 + self.places


POLICY = Policy()
