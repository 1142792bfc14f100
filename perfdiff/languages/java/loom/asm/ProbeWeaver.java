package perfdiff.loom;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.Type;
import jdk.internal.org.objectweb.asm.commons.CodeSizeEvaluator;
import jdk.internal.org.objectweb.asm.tree.AbstractInsnNode;
import jdk.internal.org.objectweb.asm.tree.FrameNode;
import jdk.internal.org.objectweb.asm.tree.IincInsnNode;
import jdk.internal.org.objectweb.asm.tree.InsnList;
import jdk.internal.org.objectweb.asm.tree.InsnNode;
import jdk.internal.org.objectweb.asm.tree.JumpInsnNode;
import jdk.internal.org.objectweb.asm.tree.LabelNode;
import jdk.internal.org.objectweb.asm.tree.LdcInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodNode;
import jdk.internal.org.objectweb.asm.tree.TryCatchBlockNode;
import jdk.internal.org.objectweb.asm.tree.VarInsnNode;

/**
 * Puts a probe into one method: it is entered at the start, left at each return and by a handler around all that the method does.
 *
 * What the probe keeps lies above the method's own variables: the call's number, of a synchronized method its lock, then while inputs are read
 * their values. A synchronized method takes its lock itself, as a wait for it would else come before the call. Frames are told as they are:
 * no hierarchy of classes is needed.
 */
final class ProbeWeaver {
    /** What a method must know of its class. */
    static final class Surroundings {
        final String name;
        final String parent;
        final int version;

        Surroundings(String name, String parent, int version) {
            this.name = name;
            this.parent = parent;
            this.version = version;
        }
    }

    static final String PROBE = "java/lang/PerfdiffProbe";
    private static final int FRAMES = 50; // the first version of class files with frames
    private static final int CLASS_CONSTANTS = 49;
    private static final int LARGEST = 65535;
    private static final int LARGEST_COMPILED = 8000; // HotSpot compiles no larger methods (HugeMethodLimit)
    private static final int MOST_VARIABLES = 60000;
    private static final int STACK = 12; // the probe's own
    private static final String THROWABLE = "java/lang/Throwable";

    private final Surroundings surroundings;
    private final MethodNode method;
    private final ProbedMethod probed;
    private final boolean isConstructor;
    private final boolean isSynchronized;
    private final int call; // variable
    private final int outcomes; // the first variable of conditions, two each: how often its jump was met, and passed by
    private final int lock; // variable
    private final int free; // the first variable above these

    ProbeWeaver(Surroundings surroundings, MethodNode method, ProbedMethod probed) {
        this.surroundings = surroundings;
        this.method = method;
        this.probed = probed;
        isConstructor = method.name.equals("<init>");
        boolean isStatic = (method.access & Opcodes.ACC_STATIC) != 0;
        isSynchronized = (method.access & Opcodes.ACC_SYNCHRONIZED) != 0 && !(isStatic && surroundings.version < CLASS_CONSTANTS);
        call = method.maxLocals;
        outcomes = call + 2;
        lock = outcomes + 2 * probed.watches.size();
        free = isSynchronized ? lock + 1 : lock;
    }

    static MethodNode copy(MethodNode method) {
        String[] exceptions = method.exceptions.toArray(new String[0]);
        // A class of our own, as none of the library's may have the newest interface.
        MethodNode made = new MethodNode(LibraryTransformer.API, method.access, method.name, method.desc, method.signature, exceptions) {};
        method.accept(made);
        return made;
    }

    void weave() throws Refused {
        int size = size(method);
        AbstractInsnNode parentCall = isConstructor ? parentCall() : null;
        if (isConstructor && parentCall == null) {
            throw new Refused("where its parent's constructor is called cannot be told");
        }
        if (free > MOST_VARIABLES) {
            throw new Refused("it has too many variables");
        }
        FeatureReader reader = new FeatureReader(surroundings, method, probed.features, free);
        widenFrames();
        watch();
        Body body = new Body(parentCall);
        body.wrap();
        InsnList start = entry(reader);
        start.add(body.begin());
        method.instructions.insert(start);
        method.instructions.add(body.handlers());
        method.maxLocals = Math.max(free, reader.end());
        method.maxStack = Math.max(method.maxStack + (probed.watches.isEmpty() ? 2 : STACK), STACK);
        if (isSynchronized) {
            method.access &= ~Opcodes.ACC_SYNCHRONIZED;
        }
        check(size, size(method));
    }

    private static void check(int before, int after) throws Refused {
        if (after > LARGEST) {
            throw new Refused("with a probe it is larger than methods may be");
        }
        if (before <= LARGEST_COMPILED && after > LARGEST_COMPILED) {
            throw new Refused("with a probe it is larger than methods that are compiled");
        }
    }

    private static int size(MethodNode method) {
        CodeSizeEvaluator evaluator = new CodeSizeEvaluator(null);
        method.accept(evaluator);
        return evaluator.getMinSize();
    }

    /** Counts how often the jumps of conditions are met, and passed by, which leaves the stack and all frames as they are. */
    private void watch() throws Refused {
        int jumps = 0;
        int found = 0;
        for (AbstractInsnNode node : method.instructions.toArray()) {
            int opcode = node.getOpcode();
            if (!(node instanceof JumpInsnNode) || opcode == Opcodes.GOTO || opcode == Opcodes.JSR) {
                continue;
            }
            for (int i = 0; i < probed.watches.size(); i++) {
                if (probed.watches.get(i).jump == jumps) {
                    method.instructions.insertBefore(node, new IincInsnNode(outcomes + 2 * i, 1));
                    method.instructions.insert(node, new IincInsnNode(outcomes + 2 * i + 1, 1));
                    found++;
                }
            }
            jumps++;
        }
        if (found < probed.watches.size()) {
            throw new Refused("a condition that is to be watched is not in it");
        }
    }

    /** Tells the outcomes of all conditions. */
    private InsnList tell() {
        InsnList code = new InsnList();
        for (int first = 0; first < probed.watches.size(); first += Watch.TOLD) {
            code.add(new VarInsnNode(Opcodes.LLOAD, call));
            code.add(FeatureReader.number(first));
            for (int i = first; i < first + Watch.TOLD; i++) {
                if (i >= probed.watches.size()) {
                    code.add(new InsnNode(Opcodes.ICONST_0));
                    code.add(new InsnNode(Opcodes.ICONST_0));
                    continue;
                }
                code.add(new VarInsnNode(Opcodes.ILOAD, outcomes + 2 * i));
                if (probed.watches.get(i).isTakenIfTrue) {
                    code.add(new InsnNode(Opcodes.DUP));
                    code.add(new VarInsnNode(Opcodes.ILOAD, outcomes + 2 * i + 1));
                    code.add(new InsnNode(Opcodes.ISUB));
                } else {
                    code.add(new VarInsnNode(Opcodes.ILOAD, outcomes + 2 * i + 1));
                }
            }
            code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, PROBE, "outcomes", "(JIIIIIIIII)V", false));
        }
        return code;
    }

    /** Enters the call, and where its inputs are asked for reads them. What goes wrong there leaves the call without a record. */
    private InsnList entry(FeatureReader reader) {
        InsnList code = new InsnList();
        LabelNode from = new LabelNode();
        LabelNode to = new LabelNode();
        LabelNode failed = new LabelNode();
        LabelNode body = new LabelNode();
        code.add(new InsnNode(Opcodes.LCONST_0));
        code.add(new VarInsnNode(Opcodes.LSTORE, call));
        for (int i = 0; i < 2 * probed.watches.size(); i++) {
            code.add(new InsnNode(Opcodes.ICONST_0));
            code.add(new VarInsnNode(Opcodes.ISTORE, outcomes + i));
        }
        code.add(from);
        code.add(FeatureReader.number(probed.probe));
        boolean isRead = !probed.features.isEmpty() || !probed.watches.isEmpty();
        String enter = isRead ? "enterReading" : "enter";
        code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, PROBE, enter, "(I)J", false));
        code.add(new VarInsnNode(Opcodes.LSTORE, call));
        if (isRead) {
            code.add(new VarInsnNode(Opcodes.LLOAD, call));
            code.add(new InsnNode(Opcodes.LCONST_0));
            code.add(new InsnNode(Opcodes.LCMP));
            code.add(new JumpInsnNode(Opcodes.IFGE, body));
            code.add(reader.read(variables -> frame(entered(variables), List.of())));
        }
        code.add(to);
        code.add(new JumpInsnNode(Opcodes.GOTO, body));
        code.add(failed);
        add(code, frame(entered(List.of()), List.of(THROWABLE)));
        code.add(new InsnNode(Opcodes.POP));
        code.add(body);
        add(code, frame(entered(List.of()), List.of()));
        code.add(new InsnNode(Opcodes.NOP)); // the method may have a frame of its own at its start
        method.tryCatchBlocks.add(new TryCatchBlockNode(from, to, failed, null));
        return code;
    }

    /** The variables when the method begins: its arguments, and the call, and others above. */
    private List<Object> entered(List<Object> others) {
        List<Object> found = new ArrayList<>();
        if ((method.access & Opcodes.ACC_STATIC) == 0) {
            found.add(isConstructor ? Opcodes.UNINITIALIZED_THIS : surroundings.name);
        }
        for (Type type : Type.getArgumentTypes(method.desc)) {
            found.add(FeatureReader.verified(type));
        }
        addKept(found);
        if (!others.isEmpty()) {
            pad(found, free);
            found.addAll(others);
        }
        return found;
    }

    /** Adds what the probe keeps, but for the lock. */
    private void addKept(List<Object> variables) {
        pad(variables, call);
        variables.add(Opcodes.LONG);
        variables.addAll(Collections.nCopies(2 * probed.watches.size(), Opcodes.INTEGER));
    }

    private static void pad(List<Object> variables, int end) {
        int size = 0;
        for (Object each : variables) {
            size += each == Opcodes.LONG || each == Opcodes.DOUBLE ? 2 : 1;
        }
        variables.addAll(Collections.nCopies(Math.max(end - size, 0), Opcodes.TOP));
    }

    /** Tells all frames of the method of the probe's variables. */
    private void widenFrames() {
        for (AbstractInsnNode node : method.instructions.toArray()) {
            if (node instanceof FrameNode) {
                FrameNode frame = (FrameNode) node;
                List<Object> variables = new ArrayList<>(frame.local);
                addKept(variables);
                if (isSynchronized) {
                    variables.add("java/lang/Object");
                }
                frame.local = variables;
            }
        }
    }

    private FrameNode frame(List<Object> variables, List<Object> stack) {
        if (surroundings.version < FRAMES) {
            return null;
        }
        return new FrameNode(Opcodes.F_NEW, variables.size(), variables.toArray(), stack.size(), stack.toArray());
    }

    private static void add(InsnList code, AbstractInsnNode node) {
        if (node != null) {
            code.add(node);
        }
    }

    /**
     * Returns the call of another constructor on the object itself: the first one that is not on an object that was made here. Those nest, in
     * the order of the code as in that of its execution.
     */
    private AbstractInsnNode parentCall() {
        int made = 0;
        for (AbstractInsnNode node : method.instructions.toArray()) {
            if (node.getOpcode() == Opcodes.NEW) {
                made++;
            } else if (node.getOpcode() == Opcodes.INVOKESPECIAL && ((MethodInsnNode) node).name.equals("<init>")) {
                String owner = ((MethodInsnNode) node).owner;
                if (made == 0) {
                    return owner.equals(surroundings.name) || owner.equals(surroundings.parent) ? node : null;
                }
                made--;
            }
        }
        return null;
    }

    /** What the method does, in stretches without the ways out, whose ends are known. */
    private final class Body {
        private final AbstractInsnNode parentCall;
        private final LabelNode begin = new LabelNode();
        private final LabelNode calls = new LabelNode(); // the parent's constructor, which no handler may stand around
        private final LabelNode made = new LabelNode(); // the object is
        private final LabelNode handler = new LabelNode();
        private final LabelNode unmade = new LabelNode(); // handles what is thrown before
        private LabelNode stretch;
        private boolean isEmpty = true;
        private boolean mayFail; // before the parent's constructor is called

        Body(AbstractInsnNode parentCall) {
            this.parentCall = parentCall;
        }

        /** Makes each return leave the call. */
        void wrap() {
            List<TryCatchBlockNode> own = List.copyOf(method.tryCatchBlocks);
            stretch = parentCall == null ? begin : made;
            boolean isInside = parentCall == null;
            for (AbstractInsnNode node : method.instructions.toArray()) {
                int opcode = node.getOpcode();
                if (node == parentCall) {
                    method.instructions.insertBefore(node, calls);
                    method.instructions.insert(node, made);
                    isInside = true;
                } else if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
                    LabelNode end = new LabelNode();
                    LabelNode next = new LabelNode();
                    method.instructions.insertBefore(node, end);
                    method.instructions.insertBefore(node, leave());
                    method.instructions.insert(node, next);
                    close(end);
                    stretch = next;
                    if (isSynchronized) {
                        own.forEach(block -> exclude(block, end, next));
                    }
                } else if (opcode >= 0 && isInside) {
                    isEmpty = false;
                } else {
                    mayFail |= opcode > Opcodes.ALOAD;
                }
            }
            own.stream().filter(block -> block.type != null).map(block -> block.handler).distinct().forEach(this::resume);
        }

        /**
         * Where something was caught, all that was called is over, even if it could not tell: what a parent's constructor throws has no handler.
         * Not where all is caught: such a handler stands for itself as well, HotSpot's first compiler takes no call there, and it throws on.
         */
        private void resume(LabelNode caught) {
            AbstractInsnNode place = caught;
            while (place.getNext() != null && place.getNext().getOpcode() < 0) {
                place = place.getNext();
            }
            InsnList code = new InsnList();
            code.add(new VarInsnNode(Opcodes.LLOAD, call));
            code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, PROBE, "resume", "(J)V", false));
            method.instructions.insert(place, code);
        }

        /**
         * Takes a way out, from which the lock is not held any more, out of a block that the method's own handler stands for: compilers want
         * to know at each place which locks are held. What is left behind the way out becomes a block of its own.
         */
        private void exclude(TryCatchBlockNode block, LabelNode end, LabelNode next) {
            InsnList code = method.instructions;
            if (code.indexOf(block.start) >= code.indexOf(end) || code.indexOf(block.end) <= code.indexOf(end)) {
                return;
            }
            for (AbstractInsnNode node = next; node != block.end && node != null; node = node.getNext()) {
                if (node.getOpcode() >= 0) {
                    int place = method.tryCatchBlocks.indexOf(block);
                    method.tryCatchBlocks.add(place, new TryCatchBlockNode(block.start, end, block.handler, block.type));
                    block.start = next;
                    return;
                }
            }
            block.end = end;
        }

        private void close(LabelNode end) {
            if (!isEmpty) {
                method.tryCatchBlocks.add(new TryCatchBlockNode(stretch, end, handler, null));
            }
            isEmpty = true;
        }

        private InsnList leave() {
            InsnList code = new InsnList();
            if (isSynchronized) {
                code.add(new VarInsnNode(Opcodes.ALOAD, lock));
                code.add(new InsnNode(Opcodes.MONITOREXIT));
            }
            code.add(tell());
            code.add(new VarInsnNode(Opcodes.LLOAD, call));
            code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, PROBE, "leave", "(J)V", false));
            return code;
        }

        /** Stands right before the method's own code. */
        InsnList begin() {
            InsnList code = new InsnList();
            if (isSynchronized) {
                boolean isStatic = (method.access & Opcodes.ACC_STATIC) != 0;
                code.add(isStatic ? new LdcInsnNode(Type.getObjectType(surroundings.name)) : new VarInsnNode(Opcodes.ALOAD, 0));
                code.add(new InsnNode(Opcodes.DUP));
                code.add(new VarInsnNode(Opcodes.ASTORE, lock));
                code.add(new InsnNode(Opcodes.MONITORENTER));
            }
            code.add(begin);
            return code;
        }

        InsnList handlers() {
            InsnList code = new InsnList();
            LabelNode end = new LabelNode();
            code.add(end);
            close(end);
            boolean isNeeded = method.tryCatchBlocks.stream().anyMatch(block -> block.handler == handler);
            if (isNeeded) {
                code.add(handler);
                List<Object> variables = new ArrayList<>();
                addKept(variables);
                if (isSynchronized) {
                    variables.add("java/lang/Object");
                }
                add(code, frame(variables, List.of(THROWABLE)));
                code.add(leave());
                code.add(new InsnNode(Opcodes.ATHROW));
            }
            if (mayFail) {
                method.tryCatchBlocks.add(new TryCatchBlockNode(begin, calls, unmade, null));
                code.add(unmade);
                List<Object> variables = new ArrayList<>(List.of(Opcodes.UNINITIALIZED_THIS));
                addKept(variables);
                add(code, frame(variables, List.of(THROWABLE)));
                code.add(leave());
                code.add(new InsnNode(Opcodes.ATHROW));
            }
            return code;
        }
    }
}
