package perfdiff.loom;

import java.util.List;
import java.util.Map;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.tree.MethodNode;

/** Class files by the ASM that JDKs up to 23 have for themselves. */
final class LibraryTransformer implements ClassTransformer {
    /** The newest of its interfaces: an older one refuses what classes have learnt since. */
    static final int API = newest();

    private static int newest() {
        for (String name : List.of("ASM9", "ASM9_EXPERIMENTAL", "ASM8", "ASM8_EXPERIMENTAL", "ASM7", "ASM7_EXPERIMENTAL")) {
            try {
                return Opcodes.class.getField(name).getInt(null);
            } catch (ReflectiveOperationException absent) {
                continue;
            }
        }
        return Opcodes.ASM6;
    }

    @Override
    public String nameOf(byte[] classFile) throws Refused {
        try {
            return new ClassReader(classFile).getClassName();
        } catch (IllegalArgumentException error) { // "Unsupported class file major version 65"
            throw new Refused("a class file is for a newer Java than the JDK's (" + error.getMessage() + ")");
        } catch (RuntimeException error) {
            throw new Refused("a class file cannot be read (" + error + ")");
        }
    }

    @Override
    public String parentOf(byte[] classFile) {
        return new ClassReader(classFile).getSuperName();
    }

    @Override
    public byte[] probed(byte[] classFile, List<ProbedMethod> methods, Map<ProbedMethod, String> refused) throws Refused {
        try {
            ClassReader reader = new ClassReader(classFile);
            ClassWriter writer = new ClassWriter(reader, 0);
            reader.accept(new Methods(writer, methods, refused), ClassReader.EXPAND_FRAMES);
            return writer.toByteArray();
        } catch (RuntimeException error) { // of a class file that is damaged, or grows too large
            throw new Refused("its class cannot be written with probes in it (" + error + ")");
        }
    }

    @Override
    public byte[] empty(String name, boolean isInterface) {
        ClassWriter writer = new ClassWriter(0);
        int kind = isInterface ? Opcodes.ACC_INTERFACE | Opcodes.ACC_ABSTRACT : Opcodes.ACC_SUPER;
        writer.visit(Opcodes.V1_8, Opcodes.ACC_PUBLIC | kind, name, null, "java/lang/Object", null);
        writer.visitEnd();
        return writer.toByteArray();
    }

    /** Hands the chosen methods of a class to their probes, and all else on as it is. */
    private static final class Methods extends ClassVisitor {
        private final List<ProbedMethod> methods;
        private final Map<ProbedMethod, String> refused;
        private ProbeWeaver.Surroundings surroundings;

        Methods(ClassVisitor next, List<ProbedMethod> methods, Map<ProbedMethod, String> refused) {
            super(API, next);
            this.methods = methods;
            this.refused = refused;
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            surroundings = new ProbeWeaver.Surroundings(name, parent, version & 0xffff);
            super.visit(version, access, name, signature, parent, interfaces);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            for (ProbedMethod method : methods) {
                if (method.isNamed(name, descriptor) && (access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) == 0) {
                    return new Probed(method, access, signature, exceptions);
                }
            }
            return super.visitMethod(access, name, descriptor, signature, exceptions);
        }

        /** A method that gets its probe when all of it has been read. */
        private final class Probed extends MethodNode {
            private final ProbedMethod method;

            Probed(ProbedMethod method, int access, String signature, String[] exceptions) {
                super(API, access, method.name, method.descriptor, signature, exceptions);
                this.method = method;
            }

            @Override
            public void visitEnd() {
                MethodNode original = ProbeWeaver.copy(this);
                try {
                    new ProbeWeaver(surroundings, this, method).weave();
                    hand(this);
                } catch (Refused reason) {
                    refused.put(method, reason.getMessage());
                    hand(original);
                }
            }

            private void hand(MethodNode node) {
                String[] exceptions = node.exceptions.toArray(new String[0]);
                node.accept(cv.visitMethod(node.access, node.name, node.desc, node.signature, exceptions));
            }
        }
    }
}
