package perfdiff.loom;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.commons.CodeSizeEvaluator;
import jdk.internal.org.objectweb.asm.tree.AbstractInsnNode;
import jdk.internal.org.objectweb.asm.tree.FrameNode;
import jdk.internal.org.objectweb.asm.tree.InsnList;
import jdk.internal.org.objectweb.asm.tree.InsnNode;
import jdk.internal.org.objectweb.asm.tree.LabelNode;
import jdk.internal.org.objectweb.asm.tree.MethodInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodNode;
import jdk.internal.org.objectweb.asm.tree.VarInsnNode;

/**
 * Puts counts into a method. Where its thread counts is asked at its start, and kept in a variable above its own ones; each count goes there at
 * once, so that no way out of the method, not even the process's end, loses any.
 */
final class Counter {
    private static final String COUNTS = "java/lang/PerfdiffCounts";
    private static final int LARGEST = 65535;
    private static final int MOST_VARIABLES = 60000;
    private static final int STACK = 5; // a count's own

    final MethodNode method;
    private final int place; // variable
    private final Map<LabelNode, AbstractInsnNode> unmade = new HashMap<>(); // by the labels that frames know unmade objects by, what makes them

    Counter(MethodNode method) throws Refused {
        this.method = method;
        place = method.maxLocals;
        if (place > MOST_VARIABLES) {
            throw new Refused("it has too many variables to be counted");
        }
        for (AbstractInsnNode node : method.instructions.toArray()) {
            if (node instanceof FrameNode) {
                remember(((FrameNode) node).local);
                remember(((FrameNode) node).stack);
            }
        }
    }

    private void remember(List<Object> types) {
        for (Object type : types) {
            if (type instanceof LabelNode) {
                AbstractInsnNode node = (LabelNode) type;
                while (node.getOpcode() < 0) {
                    node = node.getNext();
                }
                unmade.put((LabelNode) type, node);
            }
        }
    }

    /** Returns the instructions that call a method of PerfdiffCounts, with the thread's place and numbers behind what is on the stack. */
    InsnList call(String name, String descriptor, int... numbers) {
        InsnList code = new InsnList();
        code.add(new VarInsnNode(Opcodes.LLOAD, place));
        for (int number : numbers) {
            code.add(FeatureReader.number(number));
        }
        code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, COUNTS, name, descriptor, false));
        return code;
    }

    /** Ends the method's weaving. */
    void close() throws Refused {
        InsnList start = new InsnList();
        start.add(new MethodInsnNode(Opcodes.INVOKESTATIC, COUNTS, "place", "()J", false));
        start.add(new VarInsnNode(Opcodes.LSTORE, place));
        start.add(new InsnNode(Opcodes.NOP)); // the method may have a frame at its start
        method.instructions.insert(start);
        Map<LabelNode, LabelNode> moved = new HashMap<>();
        unmade.forEach((label, node) -> {
            LabelNode made = new LabelNode();
            method.instructions.insertBefore(node, made);
            moved.put(label, made);
        });
        for (AbstractInsnNode node : method.instructions.toArray()) {
            if (node instanceof FrameNode) {
                FrameNode frame = (FrameNode) node;
                frame.local = widened(renamed(frame.local, moved));
                frame.stack = renamed(frame.stack, moved);
            }
        }
        method.maxLocals = place + 2;
        method.maxStack += STACK;
        if (size() > LARGEST) {
            throw new Refused("with counts it is larger than methods may be");
        }
    }

    private static List<Object> renamed(List<Object> types, Map<LabelNode, LabelNode> moved) {
        List<Object> found = new ArrayList<>();
        for (Object type : types) {
            found.add(type instanceof LabelNode ? moved.get(type) : type);
        }
        return found;
    }

    private List<Object> widened(List<Object> variables) {
        int size = 0;
        for (Object each : variables) {
            size += each == Opcodes.LONG || each == Opcodes.DOUBLE ? 2 : 1;
        }
        List<Object> found = new ArrayList<>(variables);
        found.addAll(Collections.nCopies(Math.max(place - size, 0), Opcodes.TOP));
        found.add(Opcodes.LONG);
        return found;
    }

    private int size() {
        CodeSizeEvaluator evaluator = new CodeSizeEvaluator(null);
        method.accept(evaluator);
        return evaluator.getMaxSize();
    }
}
