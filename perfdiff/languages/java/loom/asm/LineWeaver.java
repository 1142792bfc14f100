package perfdiff.loom;

import java.util.function.IntUnaryOperator;
import jdk.internal.org.objectweb.asm.tree.AbstractInsnNode;
import jdk.internal.org.objectweb.asm.tree.InsnList;
import jdk.internal.org.objectweb.asm.tree.JumpInsnNode;
import jdk.internal.org.objectweb.asm.tree.LabelNode;
import jdk.internal.org.objectweb.asm.tree.LineNumberNode;
import jdk.internal.org.objectweb.asm.tree.MethodNode;

/** Has a method count how often its lines begin: where control comes to them from another line, or goes back within a loop on one line. */
final class LineWeaver {
    private static final int COUNTS = 64; // bytes before the first line's count; as in counts.h

    private final Counter counter;
    private final IntUnaryOperator places; // by line

    LineWeaver(MethodNode method, IntUnaryOperator places) throws Refused {
        counter = new Counter(method);
        this.places = places;
    }

    void weave() throws Refused {
        InsnList code = counter.method.instructions;
        AbstractInsnNode[] nodes = code.toArray();
        int[] lines = new int[nodes.length]; // that begins at an instruction; 0: none
        int begun = 0;
        int line = 0;
        int[] current = new int[nodes.length];
        for (int i = 0; i < nodes.length; i++) {
            if (nodes[i] instanceof LineNumberNode) {
                begun = ((LineNumberNode) nodes[i]).line;
                line = begun;
            } else if (nodes[i].getOpcode() >= 0) {
                lines[i] = begun;
                begun = 0;
            }
            current[i] = line;
        }
        for (int i = 0; i < nodes.length; i++) {
            if (lines[i] > 0) {
                count(nodes[i], lines[i]);
            } else if (nodes[i] instanceof JumpInsnNode && current[i] > 0 && isWithin(lines, i, nodes)) {
                count(nodes[i], current[i]);
            }
        }
        counter.close();
    }

    /** Whether a jump leads back to where no line begins, and none begins on the way from there. */
    private static boolean isWithin(int[] lines, int jump, AbstractInsnNode[] nodes) {
        LabelNode target = ((JumpInsnNode) nodes[jump]).label;
        for (int i = jump; i >= 0; i--) {
            if (nodes[i] == target) {
                return true;
            }
            if (lines[i] > 0) {
                return false;
            }
        }
        return false;
    }

    private void count(AbstractInsnNode node, int line) {
        counter.method.instructions.insertBefore(node, counter.call("line", "(JI)V", COUNTS + 8 * places.applyAsInt(line)));
    }
}
