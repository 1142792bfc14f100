package perfdiff.loom;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.tree.MethodNode;

/**
 * Weaves counts into all classes of the project, and probes into chosen methods. Its argument is the built tree. Reads what counting.py writes;
 * writes the size of the sheet, the sheet, and the names of functions outside, a line each.
 */
public final class CountLoom {
    private final ClassTransformer transformer = new LibraryTransformer();
    private final Sheet sheet = new Sheet();
    private final Tree tree;
    private final ProjectClasses classes;
    private final Map<String, List<ProbedMethod>> methods;

    private CountLoom(Tree tree, ProjectClasses classes, Map<String, List<ProbedMethod>> methods) {
        this.tree = tree;
        this.classes = classes;
        this.methods = methods;
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream input = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        Set<String> sources = new HashSet<>();
        for (int left = input.readInt(); left > 0; left--) {
            sources.add(Loom.text(input));
        }
        CountLoom loom = new CountLoom(new Tree(arguments), new ProjectClasses(sources), Loom.methods(input));
        List<byte[]> files = new ArrayList<>();
        for (int left = input.readInt(); left > 0; left--) {
            byte[] classFile = new byte[input.readInt()];
            input.readFully(classFile);
            if (loom.isProjects(loom.tree.readable(classFile))) {
                files.add(classFile);
            }
        }
        files.forEach(loom::weave);
        loom.write();
    }

    private void write() throws IOException {
        byte[] woven = sheet.bytes();
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        new DataOutputStream(all).writeInt(woven.length);
        all.writeBytes(woven);
        classes.functions().forEach(name -> all.writeBytes((name + "\n").getBytes(StandardCharsets.UTF_8)));
        System.out.write(all.toByteArray());
        System.out.flush();
    }

    private boolean isProjects(byte[] classFile) {
        try {
            transformer.nameOf(classFile);
            return classes.add(classFile);
        } catch (Refused reason) {
            sheet.remark(reason.getMessage());
            return false;
        } catch (RuntimeException damaged) {
            return false;
        }
    }

    private void weave(byte[] original) {
        byte[] classFile = tree.readable(original);
        Map<String, String> refused = new LinkedHashMap<>();
        String name = new ClassReader(classFile).getClassName();
        List<ProbedMethod> probed = methods.getOrDefault(name, List.of());
        byte[] woven = verified(classFile, probed, refused);
        if (woven == null && !probed.isEmpty()) {
            refused.clear();
            woven = verified(classFile, List.of(), refused);
            probed.forEach(method -> refused.put(method.says, "its class does not verify with counts and probes in it"));
        }
        if (woven == null) {
            sheet.remark(name.replace('/', '.') + ": it does not verify with counts in it");
            return;
        }
        sheet.add(name, original, tree.restored(woven, original), List.of()); // none that could be off: all of it counts
        refused.forEach((method, why) -> sheet.remark(method + ": " + why));
    }

    /** Returns why no JVM would run a woven class; null where one would, or fails of the class as it was for the same reason. */
    static String failure(ClassTransformer transformer, Tree tree, byte[] classFile, byte[] woven) {
        String failure = Verification.failure(transformer, tree, woven);
        if (failure == null || Loom.kind(failure).equals(Loom.kind(Verification.failure(transformer, tree, classFile)))) {
            return null;
        }
        return failure;
    }

    /** Returns the woven class, null where no JVM would run it. */
    private byte[] verified(byte[] classFile, List<ProbedMethod> probed, Map<String, String> refused) {
        try {
            ClassReader reader = new ClassReader(classFile);
            ClassWriter writer = new ClassWriter(reader, 0);
            reader.accept(new Methods(writer, probed, refused), ClassReader.EXPAND_FRAMES);
            byte[] woven = writer.toByteArray();
            return failure(transformer, tree, classFile, woven) == null ? woven : null;
        } catch (RuntimeException error) { // of a class file that is damaged, or grows too large
            return null;
        }
    }

    /** Has all methods of a class count, and puts probes into the chosen ones. */
    private final class Methods extends ClassVisitor {
        private final List<ProbedMethod> probed;
        private final Map<String, String> refused;
        private ProbeWeaver.Surroundings surroundings;

        Methods(ClassVisitor next, List<ProbedMethod> probed, Map<String, String> refused) {
            super(LibraryTransformer.API, next);
            this.probed = probed;
            this.refused = refused;
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            surroundings = new ProbeWeaver.Surroundings(name, parent, version & 0xffff);
            super.visit(version, access, name, signature, parent, interfaces);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            if ((access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) != 0) {
                return super.visitMethod(access, name, descriptor, signature, exceptions);
            }
            return new Counted(access, name, descriptor, signature, exceptions);
        }

        private final class Counted extends MethodNode {
            Counted(int access, String name, String descriptor, String signature, String[] exceptions) {
                super(LibraryTransformer.API, access, name, descriptor, signature, exceptions);
            }

            @Override
            public void visitEnd() {
                MethodNode made = attempt(ProbeWeaver.copy(this), node -> new CountWeaver(node, classes).weave());
                for (ProbedMethod each : probed) {
                    if (each.isNamed(name, desc)) {
                        MethodNode counted = made;
                        made = attempt(ProbeWeaver.copy(counted), node -> new ProbeWeaver(surroundings, node, each).weave(), counted, each.says);
                    }
                }
                made.accept(cv.visitMethod(made.access, name, desc, signature, made.exceptions.toArray(new String[0])));
            }

            private MethodNode attempt(MethodNode node, Weaving weaving) {
                return attempt(node, weaving, this, surroundings.name.replace('/', '.') + "." + name);
            }

            private MethodNode attempt(MethodNode node, Weaving weaving, MethodNode otherwise, String says) {
                try {
                    weaving.weave(node);
                    return node;
                } catch (Refused reason) {
                    refused.put(says, reason.getMessage());
                    return otherwise;
                }
            }
        }
    }

    private interface Weaving {
        void weave(MethodNode method) throws Refused;
    }
}
