package perfdiff.loom;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Weaves probes into class files: reads both from its input, as weaving.py writes it, and writes the sheet of woven classes. Its argument is the
 * built tree.
 */
public final class Loom {
    private final ClassTransformer transformer = new LibraryTransformer();
    private final Sheet sheet = new Sheet();
    private final Tree tree;

    private Loom(Tree tree) {
        this.tree = tree;
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream input = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        Loom loom = new Loom(new Tree(arguments));
        Map<String, List<ProbedMethod>> methods = methods(input);
        for (int left = input.readInt(); left > 0; left--) {
            byte[] classFile = new byte[input.readInt()];
            input.readFully(classFile);
            loom.weave(classFile, methods);
        }
        System.out.write(loom.sheet.bytes());
        System.out.flush();
    }

    /** Reads the methods, by their classes. */
    static Map<String, List<ProbedMethod>> methods(DataInputStream input) throws IOException {
        List<ProbedMethod> found = new ArrayList<>();
        for (int left = input.readInt(); left > 0; left--) {
            int probe = input.readInt();
            String says = text(input);
            String owner = text(input);
            String name = text(input);
            String descriptor = text(input);
            List<Feature> features = new ArrayList<>();
            for (int each = input.readInt(); each > 0; each--) {
                boolean isFloating = input.readInt() != 0;
                features.add(new Feature(text(input), isFloating));
            }
            List<Watch> watches = new ArrayList<>();
            for (int each = input.readInt(); each > 0; each--) {
                int jump = input.readInt();
                watches.add(new Watch(jump, input.readInt() != 0));
            }
            found.add(new ProbedMethod(probe, says, owner, name, descriptor, features, watches));
        }
        return found.stream().collect(Collectors.groupingBy(method -> method.owner, LinkedHashMap::new, Collectors.toList()));
    }

    static String text(DataInputStream input) throws IOException {
        byte[] bytes = new byte[input.readInt()];
        input.readFully(bytes);
        return new String(bytes, "UTF-8");
    }

    private void weave(byte[] classFile, Map<String, List<ProbedMethod>> byClass) {
        Map<ProbedMethod, String> refused = new LinkedHashMap<>();
        List<ProbedMethod> methods = List.of();
        try {
            String name = transformer.nameOf(classFile);
            methods = byClass.getOrDefault(name, List.of());
            byte[] woven = verified(classFile, methods, refused);
            List<ProbedMethod> kept = without(methods, refused);
            if (!kept.isEmpty()) {
                sheet.add(name, classFile, woven, kept);
            }
        } catch (Refused reason) {
            without(methods, refused).forEach(method -> refused.put(method, reason.getMessage()));
            if (methods.isEmpty()) {
                sheet.remark(reason.getMessage());
            }
        }
        refused.forEach((method, why) -> sheet.remark(method.says + ": " + why));
    }

    /**
     * Returns a class with the probes that it runs with: each one that it does not verify with is refused. A class that does not verify here
     * without probes either, for the same reason, lacks classes of others, or fails when it is run.
     */
    private byte[] verified(byte[] classFile, List<ProbedMethod> methods, Map<ProbedMethod, String> refused) throws Refused {
        byte[] woven = transformer.probed(classFile, methods, refused);
        String failure = failure(woven);
        String before = failure == null ? null : failure(classFile);
        if (failure == null || kind(failure).equals(kind(before))) {
            return woven;
        }
        for (ProbedMethod method : without(methods, refused)) {
            failure = failure(transformer.probed(classFile, List.of(method), refused));
            if (failure != null && !kind(failure).equals(kind(before))) {
                refused.put(method, "its class does not verify with a probe in it (" + failure + ")");
            }
        }
        woven = transformer.probed(classFile, without(methods, refused), refused);
        failure = failure(woven);
        if (failure != null && !kind(failure).equals(kind(before))) {
            throw new Refused("its class does not verify with probes in it (" + failure + ")");
        }
        return woven;
    }

    private String failure(byte[] classFile) {
        return Verification.failure(transformer, tree, classFile);
    }

    /** A failure without its place in the code. */
    static String kind(String failure) {
        return String.valueOf(failure).replaceAll("\\d+", "");
    }

    private static List<ProbedMethod> without(List<ProbedMethod> methods, Map<ProbedMethod, String> refused) {
        return methods.stream().filter(method -> !refused.containsKey(method)).collect(Collectors.toList());
    }
}
