package perfdiff.loom;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/** The class files of a built tree, in folders and in jars, looked for at the first question. */
final class Tree {
    private static final int NEWEST = 44 + Runtime.version().feature(); // of the class files that this JVM takes

    private final Path root;
    private final boolean isNewer;
    private final Map<String, List<Path>> classes = new HashMap<>(); // by the name of the file
    private final List<ZipFile> jars = new ArrayList<>();
    private boolean isRead;

    /** Takes the folder, and the word `newer` where class files are for a newer Java than this JVM. */
    Tree(String[] arguments) {
        root = Path.of(arguments[0]);
        isNewer = arguments.length > 1 && arguments[1].equals("newer");
    }

    /**
     * Returns a class file as this JVM and its library take it: one for a newer Java as if it were for this. Their format is the same from 11
     * on, but for what they say of themselves.
     */
    byte[] readable(byte[] classFile) {
        if (!isNewer || classFile.length < 8 || ((classFile[6] & 0xff) << 8 | classFile[7] & 0xff) <= NEWEST) {
            return classFile;
        }
        byte[] made = classFile.clone();
        made[4] = made[5] = made[6] = 0;
        made[7] = (byte) NEWEST;
        return made;
    }

    /** Returns a woven class for the Java that the class file is for. */
    byte[] restored(byte[] woven, byte[] classFile) {
        System.arraycopy(classFile, 4, woven, 4, 4);
        return woven;
    }

    /** Returns the class file of an internal name, null where there is none. */
    byte[] find(String name) {
        try {
            read();
            String end = "/" + name + ".class";
            for (Path path : classes.getOrDefault(end.substring(end.lastIndexOf('/') + 1), List.of())) {
                if (path.toString().endsWith(end)) {
                    return readable(Files.readAllBytes(path));
                }
            }
            for (ZipFile jar : jars) {
                ZipEntry entry = jar.getEntry(name + ".class");
                if (entry != null) {
                    try (InputStream stream = jar.getInputStream(entry)) {
                        return readable(stream.readAllBytes());
                    }
                }
            }
        } catch (IOException | UncheckedIOException unreadable) {
            return null;
        }
        return null;
    }

    private void read() throws IOException {
        if (isRead) {
            return;
        }
        isRead = true;
        List<Path> found;
        try (Stream<Path> paths = Files.walk(root)) {
            found = paths.filter(Files::isRegularFile).sorted().collect(Collectors.toList());
        }
        for (Path path : found) {
            String name = path.getFileName().toString();
            if (name.endsWith(".class")) {
                classes.computeIfAbsent(name, key -> new ArrayList<>()).add(path);
            } else if (name.endsWith(".jar")) {
                open(path);
            }
        }
    }

    private void open(Path path) {
        try {
            jars.add(new ZipFile(path.toFile()));
        } catch (IOException damaged) {
            return; // a JVM finds nothing in it either
        }
    }
}
