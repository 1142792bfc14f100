package perfdiff.loom;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.Type;
import jdk.internal.org.objectweb.asm.tree.AbstractInsnNode;
import jdk.internal.org.objectweb.asm.tree.InsnList;
import jdk.internal.org.objectweb.asm.tree.InsnNode;
import jdk.internal.org.objectweb.asm.tree.IntInsnNode;
import jdk.internal.org.objectweb.asm.tree.InvokeDynamicInsnNode;
import jdk.internal.org.objectweb.asm.tree.JumpInsnNode;
import jdk.internal.org.objectweb.asm.tree.LabelNode;
import jdk.internal.org.objectweb.asm.tree.LookupSwitchInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodNode;
import jdk.internal.org.objectweb.asm.tree.MultiANewArrayInsnNode;
import jdk.internal.org.objectweb.asm.tree.TableSwitchInsnNode;
import jdk.internal.org.objectweb.asm.tree.TypeInsnNode;

/** Has a method count what it does: basic blocks, objects and arrays, and calls of what is not the project's. */
final class CountWeaver {
    private static final int REFERENCE = 4; // bytes

    private final Counter counter;
    private final ProjectClasses classes;

    CountWeaver(MethodNode method, ProjectClasses classes) throws Refused {
        counter = new Counter(method);
        this.classes = classes;
    }

    void weave() throws Refused {
        InsnList code = counter.method.instructions;
        Set<AbstractInsnNode> blocks = blocks(counter.method);
        for (AbstractInsnNode node : code.toArray()) {
            if (blocks.contains(node)) {
                code.insertBefore(node, counter.call("block", "(J)V"));
            }
            count(node);
        }
        counter.close();
    }

    /** Returns the first instruction of each basic block; calls end none. */
    static Set<AbstractInsnNode> blocks(MethodNode method) {
        Set<LabelNode> targets = new HashSet<>();
        method.tryCatchBlocks.forEach(block -> targets.add(block.handler));
        for (AbstractInsnNode node : method.instructions.toArray()) {
            if (node instanceof JumpInsnNode) {
                targets.add(((JumpInsnNode) node).label);
            } else if (node instanceof TableSwitchInsnNode) {
                targets.addAll(((TableSwitchInsnNode) node).labels);
                targets.add(((TableSwitchInsnNode) node).dflt);
            } else if (node instanceof LookupSwitchInsnNode) {
                targets.addAll(((LookupSwitchInsnNode) node).labels);
                targets.add(((LookupSwitchInsnNode) node).dflt);
            }
        }
        Set<AbstractInsnNode> found = new HashSet<>();
        boolean begins = true;
        for (AbstractInsnNode node : method.instructions.toArray()) {
            begins |= node instanceof LabelNode && targets.contains(node);
            if (node.getOpcode() >= 0) {
                if (begins) {
                    found.add(node);
                }
                begins = isEnd(node);
            }
        }
        return found;
    }

    private static boolean isEnd(AbstractInsnNode node) {
        int opcode = node.getOpcode();
        return node instanceof JumpInsnNode || node instanceof TableSwitchInsnNode || node instanceof LookupSwitchInsnNode
                || opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN || opcode == Opcodes.ATHROW || opcode == Opcodes.RET;
    }

    private void count(AbstractInsnNode node) {
        if (node instanceof MethodInsnNode) {
            MethodInsnNode call = (MethodInsnNode) node;
            insert(node, classes.outside(call.owner, call.name, call.desc));
        } else if (node instanceof InvokeDynamicInsnNode) {
            countDynamic((InvokeDynamicInsnNode) node);
        } else if (node.getOpcode() == Opcodes.NEW) {
            countObject(node, classes.bytes(((TypeInsnNode) node).desc));
        } else if (node.getOpcode() == Opcodes.NEWARRAY) {
            countArray(node, bytes(((IntInsnNode) node).operand));
        } else if (node.getOpcode() == Opcodes.ANEWARRAY) {
            countArray(node, REFERENCE);
        } else if (node instanceof MultiANewArrayInsnNode) {
            countArrays((MultiANewArrayInsnNode) node);
        }
    }

    private void insert(AbstractInsnNode node, int function) {
        if (function >= 0) {
            counter.method.instructions.insertBefore(node, counter.call("call", "(JI)V", function));
        }
    }

    /** An object that stands for a lambda is made where it has something to keep. */
    private void countDynamic(InvokeDynamicInsnNode node) {
        String owner = node.bsm.getOwner();
        if (!owner.equals("java/lang/invoke/LambdaMetafactory")) {
            insert(node, classes.outside(owner, owner.endsWith("/StringConcatFactory") ? "makeConcat" : node.name, ""));
        } else if (!node.desc.startsWith("()")) {
            countObject(node, ProjectClasses.rounded(ProjectClasses.HEAD + List.of(Type.getArgumentTypes(node.desc)).stream()
                    .mapToInt(type -> ProjectClasses.width(type.getDescriptor())).sum()));
        }
    }

    private void countObject(AbstractInsnNode node, int bytes) {
        counter.method.instructions.insertBefore(node, counter.call("object", "(JI)V", bytes));
    }

    private void countArray(AbstractInsnNode node, int elementBytes) {
        counter.method.instructions.insertBefore(node, counter.call("array", "(IJI)I", elementBytes));
    }

    private void countArrays(MultiANewArrayInsnNode node) {
        InsnList code = new InsnList();
        code.add(new InsnNode(Opcodes.DUP));
        String element = node.desc.substring(node.dims);
        if (node.dims == 1) {
            element = "Ljava/lang/Object;";
        }
        code.add(counter.call("arrays", "([Ljava/lang/Object;JII)V", node.dims, ProjectClasses.width(element)));
        counter.method.instructions.insert(node, code);
    }

    private static int bytes(int kind) {
        switch (kind) {
            case Opcodes.T_LONG:
            case Opcodes.T_DOUBLE:
                return 8;
            case Opcodes.T_INT:
            case Opcodes.T_FLOAT:
                return 4;
            case Opcodes.T_CHAR:
            case Opcodes.T_SHORT:
                return 2;
            default:
                return 1;
        }
    }
}
