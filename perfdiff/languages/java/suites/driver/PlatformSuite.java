package perfdiff.suites;

import static org.junit.platform.engine.discovery.ClassNameFilter.includeClassNamePatterns;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClasspathRoots;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectUniqueId;

import java.nio.file.Paths;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Tests of the JUnit Platform: JUnit 5 and later, and whatever else has an engine on the class path. */
public final class PlatformSuite extends Suite {
    private final Launcher launcher = launcher();

    /** Returns a launcher that finds its engines once, not in each call; those before 1.8 have no other way. */
    private static Launcher launcher() {
        try {
            Object session = LauncherFactory.class.getMethod("openSession").invoke(null);
            Class<?> type = Class.forName("org.junit.platform.launcher.LauncherSession");
            return (Launcher) type.getMethod("getLauncher").invoke(session);
        } catch (ReflectiveOperationException old) {
            return LauncherFactory.create();
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.exit(new PlatformSuite().answer(arguments));
    }

    @Override
    Map<String, Long> all(String folder, String names, Set<String> excluded, Report report) {
        PostDiscoveryFilter left = test -> FilterResult.includedIf(!excluded.contains(test.getUniqueId().toString()));
        Course course = new Course(report);
        launcher.execute(
            request()
                .selectors(selectClasspathRoots(Set.of(Paths.get(folder).toAbsolutePath())))
                .filters(includeClassNamePatterns(names), left)
                .build(),
            new Listener(course));
        return course.passed();
    }

    @Override
    String run(List<String> ids) {
        Verdict verdict = new Verdict();
        launcher.execute(
            request().selectors(ids.stream().map(id -> selectUniqueId(id)).collect(Collectors.toList())).build(), verdict);
        return verdict.count == 0 ? "there is no such test: " + String.join(" ", ids) : verdict.failure;
    }

    private static LauncherDiscoveryRequestBuilder request() {
        return LauncherDiscoveryRequestBuilder.request()
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "false")
            .configurationParameter("junit.jupiter.execution.order.random.seed", "1");
    }

    private static String failure(TestExecutionResult result) {
        return result.getStatus() == TestExecutionResult.Status.SUCCESSFUL ? null : reason(result.getThrowable().orElse(null));
    }

    private static boolean isOfMethod(TestIdentifier test) {
        return test.getSource().filter(source -> source instanceof MethodSource).isPresent();
    }

    /** Whether all that was asked for ran, and passed. */
    private static final class Verdict implements TestExecutionListener {
        private int count;
        private String failure;

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            count += test.isTest() ? 1 : 0;
            failure = failure == null ? failure(result) : failure;
        }
    }

    /** Tells of methods, not of each of their invocations, and of classes. */
    private static final class Listener implements TestExecutionListener {
        private final Course course;
        private final Map<String, String> failures = new HashMap<>();
        private TestPlan plan;

        Listener(Course course) {
            this.course = course;
        }

        @Override
        public void testPlanExecutionStarted(TestPlan plan) {
            this.plan = plan;
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            TestIdentifier whole = whole(test);
            if (whole == test) {
                course.begin(test.getUniqueId(), name(test), isCase(test));
            }
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            String failure = failure(result);
            TestIdentifier whole = whole(test);
            if (whole != test) {
                if (failure != null) {
                    failures.putIfAbsent(whole.getUniqueId(), failure);
                }
            } else {
                course.end(test.getUniqueId(), failures.getOrDefault(test.getUniqueId(), failure), isCase(test));
            }
        }

        /** Returns the outermost method around a test: that of all its invocations. */
        private TestIdentifier whole(TestIdentifier test) {
            TestIdentifier whole = test;
            for (TestIdentifier at = test; at != null; at = plan.getParent(at).orElse(null)) {
                whole = isOfMethod(at) ? at : whole;
            }
            return whole;
        }

        private static boolean isCase(TestIdentifier test) {
            return test.isTest() || isOfMethod(test);
        }

        private static String name(TestIdentifier test) {
            String method = test.getLegacyReportingName().replaceAll("\\(\\)$", "");
            return test.getSource()
                .filter(source -> source instanceof MethodSource)
                .map(source -> ((MethodSource) source).getClassName().replace('$', '.') + "." + method)
                .orElse(method);
        }
    }
}
