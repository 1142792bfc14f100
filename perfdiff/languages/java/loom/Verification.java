package perfdiff.loom;

import java.util.HashSet;
import java.util.Set;

/**
 * Has this JVM verify a class file, as the one that runs it will. Classes that it names and that are not the JDK's are empty ones: interfaces,
 * which the verifier takes for any type, but for parents.
 */
final class Verification extends ClassLoader {
    private final ClassTransformer transformer;
    private final Set<String> parents = new HashSet<>();

    private Verification(ClassTransformer transformer) {
        super(ClassLoader.getPlatformClassLoader());
        this.transformer = transformer;
    }

    /** Returns why a class file is none that a JVM runs, null where it is one. */
    static String failure(ClassTransformer transformer, byte[] classFile) {
        Verification loader = new Verification(transformer);
        try {
            String parent = transformer.parentOf(classFile);
            if (parent != null) {
                loader.parents.add(parent.replace('/', '.'));
            }
            loader.defineClass(null, classFile, 0, classFile.length).getDeclaredMethods(); // which links it, and runs nothing of it
            return null;
        } catch (LinkageError error) {
            return firstLine(error);
        } catch (SecurityException error) { // of a package that is the JDK's
            return firstLine(error);
        }
    }

    @Override
    protected Class<?> findClass(String name) {
        byte[] made = transformer.empty(name.replace('.', '/'), !parents.contains(name));
        return defineClass(name, made, 0, made.length);
    }

    private static String firstLine(Throwable error) {
        String message = String.valueOf(error.getMessage());
        return error.getClass().getSimpleName() + ": " + message.split("\n", 2)[0];
    }
}
