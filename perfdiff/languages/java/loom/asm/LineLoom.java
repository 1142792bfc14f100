package perfdiff.loom;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.HashMap;
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
 * Weaves counts of lines into the methods that it is told. Its argument is the built tree. Reads what places.py writes; writes the size of the sheet, the sheet, then for each
 * place its method, by its number among those that were told, or -1 where nothing of it is counted, and its line.
 */
public final class LineLoom {
    private final ClassTransformer transformer = new LibraryTransformer();
    private final Sheet sheet = new Sheet();
    private final Tree tree;
    private final Map<String, Integer> methods = new HashMap<>();
    private final Map<List<Integer>, Integer> places = new LinkedHashMap<>();
    private final Set<Integer> uncounted = new HashSet<>();

    private LineLoom(Tree tree) {
        this.tree = tree;
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream input = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        LineLoom loom = new LineLoom(new Tree(arguments));
        for (int left = input.readInt(); left > 0; left--) {
            loom.methods.putIfAbsent(Loom.text(input), loom.methods.size());
        }
        for (int left = input.readInt(); left > 0; left--) {
            byte[] classFile = new byte[input.readInt()];
            input.readFully(classFile);
            loom.weave(classFile);
        }
        loom.write();
    }

    private void write() throws IOException {
        byte[] woven = sheet.bytes();
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        DataOutputStream numbers = new DataOutputStream(all);
        numbers.writeInt(woven.length);
        numbers.write(woven);
        for (List<Integer> place : places.keySet()) {
            numbers.writeInt(uncounted.contains(place.get(0)) ? -1 : place.get(0));
            numbers.writeInt(place.get(1));
        }
        System.out.write(all.toByteArray());
        System.out.flush();
    }

    private void weave(byte[] original) {
        byte[] classFile = tree.readable(original);
        String name;
        try {
            name = transformer.nameOf(classFile);
        } catch (Refused reason) {
            sheet.remark(reason.getMessage());
            return;
        }
        try {
            ClassReader reader = new ClassReader(classFile);
            ClassWriter writer = new ClassWriter(reader, 0);
            reader.accept(new Methods(writer, name), ClassReader.EXPAND_FRAMES);
            byte[] woven = writer.toByteArray();
            String failure = CountLoom.failure(transformer, tree, classFile, woven);
            if (failure == null) {
                sheet.add(name, original, tree.restored(woven, original), List.of());
            } else {
                leaveOut(name, "it does not verify with counts in it (" + failure + ")");
            }
        } catch (RuntimeException error) { // of a class file that is damaged, or grows too large
            leaveOut(name, "it cannot be written with counts in it (" + error + ")");
        }
    }

    private void leaveOut(String name, String why) {
        sheet.remark(name.replace('/', '.') + ": " + why);
        methods.forEach((method, number) -> {
            if (method.startsWith(name + " ")) {
                uncounted.add(number);
            }
        });
    }

    private final class Methods extends ClassVisitor {
        private final String owner;

        Methods(ClassVisitor next, String owner) {
            super(LibraryTransformer.API, next);
            this.owner = owner;
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            Integer method = methods.get(owner + " " + name + " " + descriptor);
            if (method == null || (access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) != 0) {
                return super.visitMethod(access, name, descriptor, signature, exceptions);
            }
            return new Counted(method, access, name, descriptor, signature, exceptions);
        }

        private final class Counted extends MethodNode {
            private final int number;

            Counted(int number, int access, String name, String descriptor, String signature, String[] exceptions) {
                super(LibraryTransformer.API, access, name, descriptor, signature, exceptions);
                this.number = number;
            }

            @Override
            public void visitEnd() {
                MethodNode made = ProbeWeaver.copy(this);
                try {
                    new LineWeaver(made, line -> places.computeIfAbsent(List.of(number, line), unused -> places.size())).weave();
                } catch (Refused reason) {
                    sheet.remark(owner.replace('/', '.') + "." + name + ": " + reason.getMessage());
                    uncounted.add(number);
                    made = this;
                }
                made.accept(cv.visitMethod(made.access, name, desc, signature, made.exceptions.toArray(new String[0])));
            }
        }
    }
}
