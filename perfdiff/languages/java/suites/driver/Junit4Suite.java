package perfdiff.suites;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.Test;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runner.Runner;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.manipulation.NoTestsRemainException;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Tests of JUnit 4 and 3. An id is the class whose run has a test, `#`, and what the test is called there. */
public final class Junit4Suite extends Suite {
    public static void main(String[] arguments) throws Exception {
        System.exit(new Junit4Suite().answer(arguments));
    }

    @Override
    Map<String, Long> all(String folder, String names, Set<String> excluded, Report report) throws IOException {
        Course course = new Course(report);
        for (String name : classes(Paths.get(folder))) {
            if (name.matches(names) && !excluded.contains(name)) {
                course.begin(name, name, false);
                course.end(name, all(name, excluded, course), false);
            }
        }
        return course.passed();
    }

    private static String all(String name, Set<String> excluded, Course course) {
        try {
            Class<?> type = Class.forName(name, false, Junit4Suite.class.getClassLoader());
            Runner runner = hasTests(type) ? filtered(type, test -> !excluded.contains(name + "#" + test)) : null;
            if (runner != null) {
                JUnitCore core = new JUnitCore();
                core.addListener(new Listener(name, course));
                core.run(Request.runner(runner));
            }
            return null;
        } catch (ClassNotFoundException | LinkageError error) {
            return reason(error);
        }
    }

    @Override
    String run(List<String> ids) throws ClassNotFoundException {
        Map<String, Set<String>> testsOfClasses = new LinkedHashMap<>();
        for (String id : ids) {
            String[] parts = id.split("#", 2);
            testsOfClasses.computeIfAbsent(parts[0], name -> new LinkedHashSet<>()).add(parts[1]);
        }
        for (Map.Entry<String, Set<String>> entry : testsOfClasses.entrySet()) {
            Runner runner = filtered(Class.forName(entry.getKey()), entry.getValue()::contains);
            if (runner == null) {
                return "there is no such test: " + entry;
            }
            Result result = new JUnitCore().run(Request.runner(runner));
            if (!result.wasSuccessful()) {
                return reason(result.getFailures().get(0).getException());
            }
        }
        return null;
    }

    private static List<String> classes(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return files
                .map(file -> folder.relativize(file).toString())
                .filter(file -> file.endsWith(".class") && !file.contains("$"))
                .map(file -> file.substring(0, file.length() - ".class".length()).replace('/', '.'))
                .sorted()
                .collect(Collectors.toList());
        }
    }

    private static boolean hasTests(Class<?> type) {
        if (Modifier.isAbstract(type.getModifiers())) {
            return false;
        }
        boolean isCase = type.isAnnotationPresent(RunWith.class) || junit.framework.Test.class.isAssignableFrom(type);
        for (Method method : type.getMethods()) {
            isCase |= method.isAnnotationPresent(Test.class);
        }
        return isCase;
    }

    /** Returns what runs those tests of a class whose names are wanted, null where there are none. */
    private static Runner filtered(Class<?> type, Predicate<String> isWanted) {
        Runner runner = Request.aClass(type).getRunner();
        Filter filter = new Filter() {
            @Override
            public boolean shouldRun(Description test) {
                return test.isTest() ? isWanted.test(test.getDisplayName()) : test.getChildren().stream().anyMatch(this::shouldRun);
            }

            @Override
            public String describe() {
                return "wanted tests";
            }
        };
        try {
            filter.apply(runner);
            return runner;
        } catch (NoTestsRemainException none) {
            return null;
        }
    }

    /** Tells of the tests of a class. */
    private static final class Listener extends RunListener {
        private final String type;
        private final Course course;
        private final Map<String, String> failures = new HashMap<>();

        Listener(String type, Course course) {
            this.type = type;
            this.course = course;
        }

        @Override
        public void testStarted(Description test) {
            String method = test.getMethodName();
            course.begin(id(test), method == null ? test.getDisplayName() : test.getClassName() + "." + method, true);
        }

        @Override
        public void testFailure(Failure failure) {
            failures.putIfAbsent(id(failure.getDescription()), reason(failure.getException()));
            if (failure.getDescription().isSuite()) { // what stands before all of its tests
                course.end(id(failure.getDescription()), reason(failure.getException()), false);
            }
        }

        @Override
        public void testAssumptionFailure(Failure failure) {
            testFailure(failure);
        }

        @Override
        public void testFinished(Description test) {
            course.end(id(test), failures.get(id(test)), true);
        }

        private String id(Description test) {
            return test.isTest() ? type + "#" + test.getDisplayName() : type;
        }
    }
}
