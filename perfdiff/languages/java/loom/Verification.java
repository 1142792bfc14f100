package perfdiff.loom;

import java.util.HashSet;
import java.util.Set;

/**
 * Has this JVM verify a class file, as the one that runs it will. Classes that it names are the tree's, or the JDK's. Others are empty ones:
 * interfaces, which the verifier takes for any type, but for parents.
 */
final class Verification extends ClassLoader {
    private final ClassTransformer transformer;
    private final Tree tree;
    private final Set<String> parents = new HashSet<>();

    private Verification(ClassTransformer transformer, Tree tree) {
        super(ClassLoader.getPlatformClassLoader());
        this.transformer = transformer;
        this.tree = tree;
    }

    /** Returns why a class file is none that a JVM runs, null where it is one. */
    static String failure(ClassTransformer transformer, Tree tree, byte[] classFile) {
        try {
            new Verification(transformer, tree).defined(classFile).getDeclaredMethods(); // which links it, and runs nothing of it
            return null;
        } catch (LinkageError error) {
            return firstLine(error);
        } catch (SecurityException error) { // of a package that is the JDK's
            return firstLine(error);
        }
    }

    private Class<?> defined(byte[] classFile) {
        String parent = transformer.parentOf(classFile);
        if (parent != null) {
            parents.add(parent.replace('/', '.'));
        }
        return defineClass(null, classFile, 0, classFile.length);
    }

    @Override
    protected Class<?> findClass(String name) {
        byte[] found = tree.find(name.replace('.', '/'));
        if (found == null) {
            byte[] made = transformer.empty(name.replace('.', '/'), !parents.contains(name));
            return defineClass(name, made, 0, made.length);
        }
        return defined(found);
    }

    private static String firstLine(Throwable error) {
        String message = String.valueOf(error.getMessage());
        return error.getClass().getSimpleName() + ": " + message.split("\n", 2)[0];
    }
}
