"""What perfdiff calls slower, material, excluded, explained and guilty: every threshold that decides an answer, with its reason.

What the user decides stands in `config.CompareConfig`: the smallest effect of interest, the rate of false discoveries, the confidence of
intervals. Numbers of one algorithm alone (rounds, rows, draws, levels of preliminary tests) stand with it.
"""

from __future__ import annotations

from perfdiff.config import RUNS_FOR_TIME

# Slower, faster, the same: single functions ------------------------------------------------------------------------------------------

MIN_RUNS = 2 * RUNS_FOR_TIME  # of both sides, at all points together; with fewer, no interval deserves trust
# False alarms are the worst failure, and a comparison is repeated at every commit: a rate of false discoveries that suits a single one is
# not enough. Simulated, five runs a side: at 0.005, one comparison of six functions in 75 reports a regression under 30 % of noise.
EVIDENCE = 0.001
# Sums of several functions, or of one that the other side lacks, have no test of their own: they must differ at this confidence.
SUMS = 1 - EVIDENCE
# The code around an unchanged function moves it in memory. In pairs of builds without any change, ±11 % was seen where they did not run in
# turn, and ±10 % by the alignment of code alone. Less than this is no effect of a change made elsewhere.
LAYOUT_SHIFT = 0.15
CLASS_LEVEL = 0.01  # joint test of all interactions, version × term: stricter than 5 %, for a change of class is a headline
# A mode is told to have moved if its share of the calls did by this much; a smaller shift of a few runs' calls is their mix.
MOVED_MODE = 0.05
# More of head's calls than of base's, by this share of all calls, are anomalous: every call off by 0.6 of base's standard deviations, or
# one call in ten by much. The machine's own state, such as what its caches hold, moves calls by less.
ANOMALOUS = 0.10
# Exact counts differ by the smallest change of work; less than this is not worth a word.
LEAST_WORK = 0.001
CHANCE = 0.01  # a counter that is told as a cause has grown beyond this chance, over all points that could be told
# Times of one program differ by so much from day to day: clock rates, neighbours, versions of libraries. About 12 % were seen on a shared
# machine; runs that are not interleaved cannot tell that from a change of the code.
DRIFT = 0.15

# Slower, faster, the same: whole runs ------------------------------------------------------------------------------------------------

# A run that waits, or uses several threads, in its quietest execution has a CPU time that says little of how long it takes: from this
# share on, of time without CPU or of CPU beyond one, its time by the clock is judged as well. A process's start and end wait that much.
WAITS = 0.15
# Of what runs take longer, at most this share is CPU time where they only wait longer for a service: answers that came 3 ms late made 0.03
# to 0.06 of it (a server in Python, load 5 on 2 CPUs).
BUSIER = 0.2
TAKEN_OVER = 2.0  # times as many calls into a recursion, at most, are taken for those of a caller that is gone
LAYOUTS_KNOWN = 3  # from so many layouts on, what layouts make of the same code is part of the interval; else `LAYOUT_SHIFT` allows for it
# Where exact counts or single calls say that nothing was added, what remains are the places of code and data, which were seen to make ±10 %
# of the same instructions' time: whole runs must exclude more than that, or be slower by more.
PLACES = 0.10
# Larger inputs and more calls that no change hands on are said to be why runs take longer, before what is left is told, from this part of
# the extra time of all functions on.
MOSTLY_GROWN = 0.5

# Same work ---------------------------------------------------------------------------------------------------------------------------

# Other words for the same result change its length by tens of percent, a result that is missing by more than half.
CLEARLY_LESS = 0.5
# Less than a page is what threads and event loops signal each other by pipes, not a result.
FEW_BYTES_ELSEWHERE = 4096
# Where nothing that a program prints or writes shows its work, this part of it, or less, may be left by skipping the rest: heads that stop
# halfway do half, and start as before. Most improvements of whole programs are smaller, and a workload's check tells the others.
SMALL_PART = 2 / 3
MESSAGE_LINES = 10  # of text that is the same at all points: so many say that a program ended, more of them are a result
# Of the CPUs that tasks could use at the same time they had this part at least: then three quarters or more of what they do to each other
# shows, and where 5 % is excluded, 7 % is on a quiet machine.
MET = 0.75

# Material ----------------------------------------------------------------------------------------------------------------------------

MATERIAL = 0.01  # a difference counts where it is at least this share of what a whole run costs at some workload point

# What speaks against extra time --------------------------------------------------------------------------------------------------------

# Probes that cost more than the program itself (tiny functions, called by one another) measure another program: caches, inlining and the
# order of instructions are not the user's.
DISTORTED = 1.0
# Whole runs that exclude this part of what counts, or the calls of a function, claim contradict them.
CLAIMED = 0.5

# What explains it, and who is guilty ---------------------------------------------------------------------------------------------------

# A cause must be able to explain at least this part of the function's extra cost, at the most that each event may take, to be told, and to
# confirm it; a counter must grow by as much.
TELLING = 0.2
WORK_CARRIES = 0.5  # work explains a growth of time where it grew by this much of it; less, and time is what must be followed
# Compilers turn conditions into moves and back, and move code between blocks: a function that does the same may execute so many times as
# many blocks. Atomic operations they leave as they are. A statement that is broken into several lines begins each of them: a call of two
# arguments four, with each on a line of its own.
REWRITTEN = {"atomics": 1.0, "blocks": 1.5, "bytecode_blocks": 1.5, "lines": 4.0, "opcodes": 1.5}
REMAINS = 0.5  # of a function's extra work the runs as a whole must have at least this part; the rest moved to it from elsewhere
# Of what all changed functions execute more, one must have this part to be named by that alone: four times as much as all others together.
MOST_WORK = 0.8
MOSTLY_NEW = 2.0  # from so many times the calls on, most are new: they cost what new calls cost, not what old ones have come to cost
# Of the calls that a caller makes more of a function, more than this part must be calls that others make no longer: then they are the same
# work in another place, and what it takes in all counts. Where fewer moved, new calls are most of them, and cost what new calls cost.
MOSTLY_MOVED = 0.5
# A function whose text is the same and that reads other data costs what its new calls cost, where it is called so many times as often: a
# third of its calls then need only take four times as long as those that base made to double what a call takes on average.
PARTLY_NEW = 1.5
# A cost is told as one of the first call of a run where that has more of it than all later calls together.
MOSTLY_ONCE = 0.5
FOLLOWED = 0.1  # a caller that makes less than this part of a function's new calls is not followed further up
MORE_ALLOCATED = 1.2  # allocations that grew by less leave what frees them as it was, but for what cannot be told from noise
OWNED = 0.5  # a suspect owns what is new if it accounts for at least this part of all that a run allocates more
TIE = 0.10  # two suspects whose extra costs differ by less than this are ranked by how direct the evidence is
NAMED = 0.2  # of the work of the folded function that does most: which does less than this part is not named

# Settled -------------------------------------------------------------------------------------------------------------------------------

SETTLED = 2.0  # smallest effects of interest: a finding that stands so far from none stays one, however often it is looked at
# From so few calls a side, one disturbed run can name the class of a cost; what is told of it gets all its runs.
CLASS_CALLS = 40
