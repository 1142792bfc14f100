package perfdiff.loom;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.FieldVisitor;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.Type;

/** The classes of the project: which calls leave them, under which names, and how large objects are. */
final class ProjectClasses {
    static final int HEAD = 12; // bytes, as a JVM of 64 bits with compressed pointers has it

    private static final String OBJECT = "java/lang/Object";
    private static final Set<String> OF_OBJECTS =
            Set.of("clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait", "<init>");

    /** What is known of a class. */
    private static final class Known extends ClassVisitor {
        String parent;
        List<String> interfaces;
        String source;
        int fieldBytes;
        final Set<String> methods = new HashSet<>();

        Known() {
            super(LibraryTransformer.API);
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            this.parent = parent;
            this.interfaces = List.of(interfaces);
        }

        @Override
        public void visitSource(String source, String debug) {
            this.source = source;
        }

        @Override
        public FieldVisitor visitField(int access, String name, String descriptor, String signature, Object value) {
            fieldBytes += (access & Opcodes.ACC_STATIC) == 0 ? width(descriptor) : 0;
            return null;
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            methods.add(name + descriptor);
            return null;
        }
    }

    private final Set<String> sources;
    private final Map<String, Known> known = new HashMap<>();
    private final Map<String, Integer> functions = new LinkedHashMap<>();
    private final Map<String, Integer> sizes = new HashMap<>();

    /** Takes the project's files, each by its package and name: `com/acme/Box.java`. */
    ProjectClasses(Set<String> sources) {
        this.sources = sources;
    }

    /** Takes note of a class file, if it is the project's; returns whether it is. */
    boolean add(byte[] classFile) {
        Known one = new Known();
        ClassReader reader = new ClassReader(classFile);
        reader.accept(one, ClassReader.SKIP_CODE | ClassReader.SKIP_FRAMES);
        String name = reader.getClassName();
        if (!sources.contains(file(name, one.source))) {
            return false;
        }
        known.putIfAbsent(name, one);
        return true;
    }

    private static String file(String name, String source) {
        int end = name.lastIndexOf('/') + 1;
        if (source != null) {
            return name.substring(0, end) + source;
        }
        int nested = name.indexOf('$', end + 1);
        return (nested < 0 ? name : name.substring(0, nested)) + ".java";
    }

    /** Returns the number of a function that a call leads to outside of the project; below 0 where it is none that counts. */
    int outside(String owner, String name, String descriptor) {
        if (owner.equals(OBJECT) && name.equals("<init>")) {
            return -1;
        }
        String found = outsideOwner(owner, name, descriptor);
        if (found == null) {
            return -1;
        }
        String shown = (found.startsWith("[") ? OBJECT : found).replace('/', '.').replace('$', '.') + "." + name;
        return functions.computeIfAbsent(shown, unused -> functions.size());
    }

    /** The class outside of the project that a method is looked for in; null where the project has it. */
    private String outsideOwner(String owner, String name, String descriptor) {
        List<String> others = new ArrayList<>();
        for (String each = owner; ; each = known.get(each).parent) {
            Known one = known.get(each);
            if (one == null) {
                boolean isOfInterface = each == null || each.equals(OBJECT) && !OF_OBJECTS.contains(name);
                return isOfInterface && !others.isEmpty() ? others.get(0) : each == null ? OBJECT : each;
            }
            if (one.methods.contains(name + descriptor) || isInInterfaces(one, name + descriptor, others)) {
                return null;
            }
        }
    }

    private boolean isInInterfaces(Known one, String method, List<String> others) {
        for (String each : one.interfaces) {
            Known found = known.get(each);
            if (found == null) {
                others.add(each);
            } else if (found.methods.contains(method) || isInInterfaces(found, method, others)) {
                return true;
            }
        }
        return false;
    }

    /** Returns the names of functions outside, by their numbers. */
    List<String> functions() {
        return new ArrayList<>(functions.keySet());
    }

    /** Returns how many bytes an object has, as far as its class and its parents are known. */
    int bytes(String name) {
        return sizes.computeIfAbsent(name, unused -> rounded(HEAD + fieldBytes(name)));
    }

    static int rounded(int bytes) {
        return (bytes + 7) & -8;
    }

    private int fieldBytes(String name) {
        int bytes = 0;
        String each = name;
        for (Known one = known.get(each); one != null; one = known.get(each)) {
            bytes += one.fieldBytes;
            each = one.parent;
        }
        try {
            Class<?> type = Class.forName(each.replace('/', '.'), false, ClassLoader.getPlatformClassLoader());
            for (; type != null; type = type.getSuperclass()) {
                for (Field field : type.getDeclaredFields()) {
                    bytes += Modifier.isStatic(field.getModifiers()) ? 0 : width(Type.getDescriptor(field.getType()));
                }
            }
        } catch (ClassNotFoundException | LinkageError absent) {
            return bytes; // of a library: its fields are the same on both sides
        }
        return bytes;
    }

    static int width(String descriptor) {
        switch (descriptor.charAt(0)) {
            case 'J':
            case 'D':
                return 8;
            case 'S':
            case 'C':
                return 2;
            case 'B':
            case 'Z':
                return 1;
            default:
                return 4;
        }
    }
}
