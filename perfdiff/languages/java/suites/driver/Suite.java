package perfdiff.suites;

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Lists the tests of a module, or runs some of them.
 *
 * <p>{@code list REPORT SECONDS FOLDER NAMES EXCLUDED...} runs all tests of the classes in a folder whose names match a pattern, then those that
 * passed once again, for as long as the first time took, or until as many seconds have passed. {@code run CALLS ID...} runs tests so often, or
 * each once where their calls are to be told apart.
 */
abstract class Suite {
    private static final int ROUNDS = 2; // what the first tests call of JUnit is compiled in the second one
    private static final long SHORT = 2_000_000_000; // nanoseconds, beside what a comparison takes
    private static final long LONG_ENOUGH = 50_000_000; // nanoseconds, as runs are at least

    /** Runs all tests but those excluded, and tells of each; returns the nanoseconds of those that passed. */
    abstract Map<String, Long> all(String folder, String names, Set<String> excluded, Report report) throws Exception;

    /** Runs tests, and returns why one of them failed, null where none did. */
    abstract String run(List<String> ids) throws Exception;

    final int answer(String[] arguments) throws Exception {
        List<String> given = Arrays.asList(arguments);
        if ("list".equals(given.get(0))) {
            list(given);
            return 0;
        }
        Method mark = System.getenv("PERFDIFF_MARKS") == null ? null : mark();
        if (mark != null) {
            marked(mark, given.subList(2, given.size()));
            return 0;
        }
        for (int call = Integer.parseInt(given.get(1)); call > 0; call--) {
            String failure = run(given.subList(2, given.size()));
            if (failure != null) {
                System.err.println(failure);
                return 1;
            }
        }
        return 0;
    }

    /** Returns what marks where a test ends in what probes count, null where there are no probes. */
    private static Method mark() {
        try {
            return Class.forName("java.lang.PerfdiffProbe").getMethod("mark", String.class);
        } catch (ReflectiveOperationException none) {
            return null;
        }
    }

    /** Runs each test by itself, whichever fail, and marks where it ends, as long as tests may begin. */
    private void marked(Method mark, List<String> ids) throws ReflectiveOperationException {
        String limit = System.getenv("PERFDIFF_MARKS_S");
        double seconds = limit == null ? Double.POSITIVE_INFINITY : Double.parseDouble(limit);
        long start = System.nanoTime();
        mark.invoke(null, "start");
        for (String id : ids) {
            if ((System.nanoTime() - start) / 1e9 >= seconds) {
                return;
            }
            if (id.indexOf('\n') < 0 && id.indexOf('\t') < 0) { // which marks have no place for
                mark.invoke(null, (hasPassed(id) ? "passed " : "failed ") + id);
            }
        }
    }

    private boolean hasPassed(String id) {
        try {
            return run(List.of(id)) == null;
        } catch (Exception | LinkageError error) {
            return false;
        }
    }

    private void list(List<String> given) throws Exception {
        long start = System.nanoTime();
        Report report = new Report(given.get(1));
        Map<String, Long> passed = all(given.get(3), given.get(4), new HashSet<>(given.subList(5, given.size())), report);
        report.tell("all");
        long now = System.nanoTime();
        long end = Math.min(start + (long) (Double.parseDouble(given.get(2)) * 1e9), now + Math.max(now - start, SHORT));
        List<String> shortestFirst = new ArrayList<>(passed.keySet());
        shortestFirst.sort((one, other) -> Long.compare(passed.get(one), passed.get(other)));
        for (int round = ROUNDS; round > 0; round--) {
            for (int index = 0; index < shortestFirst.size(); index++) {
                now = System.nanoTime();
                long share = (end - now) / (shortestFirst.size() * round - index);
                if (passed.get(shortestFirst.get(index)) > share) {
                    break;
                }
                again(shortestFirst.get(index), now + Math.min(share, LONG_ENOUGH), report);
            }
        }
    }

    /** Runs a test until a time, and tells what its fastest call took: compilers take part in runs that are long enough. */
    private void again(String id, long until, Report report) throws Exception {
        long fastest = Long.MAX_VALUE;
        do {
            long start = ownNanos();
            if (run(List.of(id)) != null) {
                return;
            }
            fastest = Math.min(fastest, ownNanos() - start);
        } while (System.nanoTime() < until);
        report.tell("again", id, fastest);
    }

    /** Returns the nanoseconds of a clock that stands still while this thread waits for a CPU, as far as the kernel tells. */
    static long ownNanos() {
        long waited;
        long now;
        do {
            waited = waitedNanos();
            now = System.nanoTime();
        } while (waitedNanos() != waited); // what it waits between the two would count twice, or not at all
        return now - waited;
    }

    private static long waitedNanos() {
        try {
            String told = new String(Files.readAllBytes(Paths.get("/proc/thread-self/schedstat")), StandardCharsets.US_ASCII);
            return Long.parseLong(told.split(" ")[1]);
        } catch (IOException | RuntimeException error) {
            return 0; // other systems do not tell
        }
    }

    static String reason(Throwable error) {
        return error == null ? "it failed" : String.valueOf(error).split("\n", 2)[0].strip();
    }

    /** What is known of the tests that run. */
    static final class Course {
        private final Report report;
        private final Map<String, Long> started = new LinkedHashMap<>();
        private final Map<String, Long> passed = new LinkedHashMap<>();

        Course(Report report) {
            this.report = report;
        }

        /** Tells that a test begins, or what holds several. */
        void begin(String id, String name, boolean isTest) {
            report.tell("begin", id, name, isTest);
            started.put(id, ownNanos());
        }

        /** Tells that it ended; `failure` is why it failed, null where it did not. */
        void end(String id, String failure, boolean isTest) {
            long now = ownNanos();
            long taken = now - started.getOrDefault(id, now);
            report.tell("end", id, taken, failure == null ? "" : failure);
            if (isTest && failure == null) {
                passed.put(id, taken);
            }
        }

        Map<String, Long> passed() {
            return passed;
        }
    }
}
