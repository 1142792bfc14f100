package perfdiff.loom;

import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.Instruction;
import java.lang.classfile.Label;
import java.lang.classfile.MethodModel;
import java.lang.classfile.Opcode;
import java.lang.classfile.attribute.CodeAttribute;
import java.lang.classfile.attribute.StackMapFrameInfo;
import java.lang.classfile.attribute.StackMapFrameInfo.ObjectVerificationTypeInfo;
import java.lang.classfile.attribute.StackMapFrameInfo.SimpleVerificationTypeInfo;
import java.lang.classfile.attribute.StackMapFrameInfo.VerificationTypeInfo;
import java.lang.classfile.attribute.StackMapTableAttribute;
import java.lang.classfile.instruction.BranchInstruction;
import java.lang.classfile.instruction.ConstantInstruction;
import java.lang.classfile.instruction.ExceptionCatch;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.classfile.instruction.LabelTarget;
import java.lang.classfile.instruction.LoadInstruction;
import java.lang.classfile.instruction.NewObjectInstruction;
import java.lang.classfile.instruction.ReturnInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Puts a probe into one method: it is entered at the start, left at each return and by a handler around all that the method does.
 *
 * What the probe keeps lies above the method's own variables: the call's number, of a synchronized method its lock, then while inputs are read
 * their values. A synchronized method takes its lock itself, as a wait for it would else come before the call. Frames are told as they are:
 * no hierarchy of classes is needed. As asm/ProbeWeaver.java, in the terms of another library.
 */
final class ProbeWeaver {
    /** A method that cannot have a probe, told through callbacks that throw nothing else. */
    static final class Impossible extends RuntimeException {
        private static final long serialVersionUID = 1;

        Impossible(String why) {
            super(why, null, false, false);
        }
    }

    static final ClassDesc PROBE = ClassDesc.of("java.lang.PerfdiffProbe");
    static final String TOO_LARGE = "with a probe it is larger than methods may be";
    private static final int FRAMES = 50; // the first version of class files with frames
    private static final int CLASS_CONSTANTS = 49;
    private static final int LARGEST = 65535;
    private static final int LARGEST_COMPILED = 8000; // HotSpot compiles no larger methods (HugeMethodLimit)
    private static final int MOST_VARIABLES = 60000;
    private static final MethodTypeDesc OF_CALL = MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_long);
    private static final MethodTypeDesc OF_OUTCOMES = MethodTypeDesc.ofDescriptor("(JIIIIIIIII)V");
    private static final VerificationTypeInfo LONG = SimpleVerificationTypeInfo.LONG;
    private static final VerificationTypeInfo TOP = SimpleVerificationTypeInfo.TOP;
    private static final VerificationTypeInfo OBJECT = ObjectVerificationTypeInfo.of(ConstantDescs.CD_Object);
    private static final VerificationTypeInfo THROWABLE = ObjectVerificationTypeInfo.of(ConstantDescs.CD_Throwable);

    private final ClassModel surroundings;
    private final MethodModel method;
    private final ProbedMethod probed;
    private final MethodTypeDesc type;
    private final boolean isStatic;
    private final boolean isConstructor;
    private final boolean isSynchronized;
    private int call; // variable
    private int outcomes; // the first variable of conditions, two each: how often its jump was met, and passed by
    private int lock; // variable
    private int free; // the first variable above these
    private List<StackMapFrameInfo> frames;

    ProbeWeaver(ClassModel surroundings, MethodModel method, ProbedMethod probed) {
        this.surroundings = surroundings;
        this.method = method;
        this.probed = probed;
        type = method.methodTypeSymbol();
        isStatic = (method.flags().flagsMask() & ClassFile.ACC_STATIC) != 0;
        isConstructor = probed.name.equals("<init>");
        boolean takesLock = (method.flags().flagsMask() & ClassFile.ACC_SYNCHRONIZED) != 0;
        isSynchronized = takesLock && !(isStatic && surroundings.majorVersion() < CLASS_CONSTANTS);
    }

    int flags() {
        return isSynchronized ? method.flags().flagsMask() & ~ClassFile.ACC_SYNCHRONIZED : method.flags().flagsMask();
    }

    static void check(int before, int after) throws Refused {
        if (after > LARGEST) {
            throw new Refused(TOO_LARGE);
        }
        if (before <= LARGEST_COMPILED && after > LARGEST_COMPILED) {
            throw new Refused("with a probe it is larger than methods that are compiled");
        }
    }

    void weave(CodeBuilder builder, CodeModel code) {
        call = ((CodeAttribute) code).maxLocals();
        outcomes = call + 2;
        lock = outcomes + 2 * probed.watches.size();
        free = isSynchronized ? lock + 1 : lock;
        frames = new ArrayList<>();
        List<CodeElement> elements = code.elementList();
        CodeElement parentCall = isConstructor ? parentCall(elements) : null;
        if (isConstructor && parentCall == null) {
            throw new Impossible("where its parent's constructor is called cannot be told");
        }
        if (free > MOST_VARIABLES) {
            throw new Impossible("it has too many variables");
        }
        entry(builder);
        new Body(builder, elements, parentCall).weave();
        if (surroundings.majorVersion() >= FRAMES) {
            builder.with(StackMapTableAttribute.of(frames));
        }
    }

    /** Enters the call, and where its inputs are asked for reads them. What goes wrong there leaves the call without a record. */
    private void entry(CodeBuilder builder) {
        Label from = builder.newLabel();
        Label to = builder.newLabel();
        Label failed = builder.newLabel();
        Label body = builder.newLabel();
        boolean isRead = !probed.features.isEmpty() || !probed.watches.isEmpty();
        builder.lconst_0().lstore(call);
        for (int i = 0; i < 2 * probed.watches.size(); i++) {
            builder.iconst_0().istore(outcomes + i);
        }
        builder.labelBinding(from).loadConstant(probed.probe);
        String enter = isRead ? "enterReading" : "enter";
        builder.invokestatic(PROBE, enter, MethodTypeDesc.of(ConstantDescs.CD_long, ConstantDescs.CD_int)).lstore(call);
        if (isRead) {
            builder.lload(call).lconst_0().lcmp().ifge(body);
            new FeatureReader(surroundings, method, probed.features, free)
                    .read(builder, (label, variables) -> frame(label, entered(variables), List.of()));
        }
        builder.labelBinding(to).goto_(body).labelBinding(failed);
        frame(failed, entered(List.of()), List.of(THROWABLE));
        builder.pop().labelBinding(body);
        frame(body, entered(List.of()), List.of());
        builder.nop(); // the method may have a frame of its own at its start
        builder.exceptionCatchAll(from, to, failed);
    }

    /** The variables when the method begins: its arguments, and the call, and others above. */
    private List<VerificationTypeInfo> entered(List<VerificationTypeInfo> others) {
        List<VerificationTypeInfo> found = new ArrayList<>();
        if (!isStatic) {
            found.add(isConstructor ? SimpleVerificationTypeInfo.UNINITIALIZED_THIS : ObjectVerificationTypeInfo.of(surroundings.thisClass()));
        }
        for (ClassDesc argument : type.parameterList()) {
            found.add(FeatureReader.verified(argument));
        }
        addKept(found);
        if (!others.isEmpty()) {
            pad(found, free);
            found.addAll(others);
        }
        return found;
    }

    /** Adds what the probe keeps, but for the lock. */
    private void addKept(List<VerificationTypeInfo> variables) {
        pad(variables, call);
        variables.add(LONG);
        variables.addAll(Collections.nCopies(2 * probed.watches.size(), SimpleVerificationTypeInfo.INTEGER));
    }

    private static void pad(List<VerificationTypeInfo> variables, int end) {
        int size = 0;
        for (VerificationTypeInfo each : variables) {
            size += each == LONG || each == SimpleVerificationTypeInfo.DOUBLE ? 2 : 1;
        }
        variables.addAll(Collections.nCopies(Math.max(end - size, 0), TOP));
    }

    /** The variables of a place in the method: its own, and the probe's. */
    private List<VerificationTypeInfo> inside(List<VerificationTypeInfo> own) {
        List<VerificationTypeInfo> variables = new ArrayList<>(own);
        addKept(variables);
        if (isSynchronized) {
            variables.add(OBJECT);
        }
        return variables;
    }

    private static boolean isConditional(Opcode opcode) {
        return opcode != Opcode.GOTO && opcode != Opcode.GOTO_W;
    }

    private void frame(Label label, List<VerificationTypeInfo> variables, List<VerificationTypeInfo> stack) {
        frames.add(StackMapFrameInfo.of(label, variables, stack));
    }

    /**
     * Returns the call of another constructor on the object itself: the first one that is not on an object that was made here. Those nest, in
     * the order of the code as in that of its execution.
     */
    private CodeElement parentCall(List<CodeElement> elements) {
        int made = 0;
        for (CodeElement element : elements) {
            if (element instanceof NewObjectInstruction) {
                made++;
            } else if (element instanceof InvokeInstruction invoke && invoke.name().equalsString("<init>")) {
                String owner = invoke.owner().asInternalName();
                boolean isParent = surroundings.superclass().map(parent -> parent.asInternalName().equals(owner)).orElse(false);
                if (made == 0) {
                    return isParent || owner.equals(surroundings.thisClass().asInternalName()) ? element : null;
                }
                made--;
            }
        }
        return null;
    }

    /** What the method does, in stretches without the ways out, whose ends are known. */
    private final class Body {
        private final CodeBuilder builder;
        private final List<CodeElement> elements;
        private final CodeElement parentCall;
        private final Label begin;
        private final Label calls; // the parent's constructor, which no handler may stand around
        private final Label handler;
        private final Label unmade; // handles what is thrown before
        private final List<Label[]> stretches = new ArrayList<>();
        private final Map<Label, Integer> places = new HashMap<>(); // labels of the method by the number of instructions before them
        private final List<Label[]> exits = new ArrayList<>(); // with their places in `exitPlaces`
        private final List<Integer> exitPlaces = new ArrayList<>();
        private Label stretch;
        private boolean isEmpty = true;
        private boolean isInside;
        private boolean mayFail; // before the parent's constructor is called
        private int jumps; // that have a condition, up to here
        private int watchedJumps;

        Body(CodeBuilder builder, List<CodeElement> elements, CodeElement parentCall) {
            this.builder = builder;
            this.elements = elements;
            this.parentCall = parentCall;
            begin = builder.newLabel();
            calls = builder.newLabel();
            handler = builder.newLabel();
            unmade = builder.newLabel();
        }

        void weave() {
            begin();
            Map<Label, StackMapFrameInfo> own = ownFrames();
            Set<Label> caught = elements.stream()
                    .filter(element -> element instanceof ExceptionCatch block && block.catchType().isPresent())
                    .map(element -> ((ExceptionCatch) element).handler()) // one for all is no place for a call, see asm/ProbeWeaver.java
                    .collect(Collectors.toCollection(HashSet::new));
            stretch = begin;
            isInside = parentCall == null;
            int count = 0;
            boolean isCaught = false;
            for (CodeElement element : elements) {
                if (element instanceof LabelTarget target) {
                    places.put(target.label(), count);
                    builder.with(element);
                    if (own.containsKey(target.label())) {
                        StackMapFrameInfo frame = own.get(target.label());
                        frame(target.label(), inside(frame.locals()), frame.stack());
                    }
                    isCaught |= caught.contains(target.label());
                } else if (element instanceof Instruction instruction) {
                    count++;
                    if (isCaught) {
                        builder.lload(call).invokestatic(PROBE, "resume", OF_CALL);
                    }
                    isCaught = false;
                    instruct(instruction, count);
                } else if (!(element instanceof ExceptionCatch) && !(element instanceof StackMapTableAttribute)) {
                    builder.with(element);
                }
            }
            if (watchedJumps < probed.watches.size()) {
                throw new Impossible("a condition that is to be watched is not in it");
            }
            handlers();
        }

        private Map<Label, StackMapFrameInfo> ownFrames() {
            Map<Label, StackMapFrameInfo> found = new HashMap<>();
            method.code().orElseThrow().findAttribute(Attributes.stackMapTable())
                    .ifPresent(table -> table.entries().forEach(frame -> found.put(frame.target(), frame)));
            return found;
        }

        private void begin() {
            if (isSynchronized) {
                if (isStatic) {
                    builder.loadConstant(surroundings.thisClass().asSymbol());
                } else {
                    builder.aload(0);
                }
                builder.dup().astore(lock).monitorenter();
            }
            builder.labelBinding(begin);
        }

        private void instruct(Instruction instruction, int count) {
            if (instruction == parentCall) {
                builder.labelBinding(calls).with(instruction);
                stretch = builder.newLabel();
                builder.labelBinding(stretch);
                isInside = true;
            } else if (instruction instanceof ReturnInstruction) {
                Label end = builder.newLabel();
                Label next = builder.newLabel();
                builder.labelBinding(end);
                leave();
                builder.with(instruction).labelBinding(next);
                close(end);
                stretch = next;
                exits.add(new Label[] {end, next});
                exitPlaces.add(count);
            } else {
                if (instruction instanceof BranchInstruction branch && isConditional(branch.opcode())) {
                    watch(branch);
                } else {
                    builder.with(instruction);
                }
                isEmpty &= !isInside;
                mayFail |= !isInside && !(instruction instanceof LoadInstruction) && !(instruction instanceof ConstantInstruction);
            }
        }

        /** Counts how often the jump of a condition is met, and passed by, which leaves the stack and all frames as they are. */
        private void watch(BranchInstruction jump) {
            int watched = IntStream.range(0, probed.watches.size()).filter(i -> probed.watches.get(i).jump == jumps).findFirst().orElse(-1);
            jumps++;
            if (watched < 0) {
                builder.with(jump);
                return;
            }
            builder.iinc(outcomes + 2 * watched, 1).with(jump).iinc(outcomes + 2 * watched + 1, 1);
            watchedJumps++;
        }

        /** Tells the outcomes of all conditions. */
        private void tell() {
            for (int first = 0; first < probed.watches.size(); first += Watch.TOLD) {
                builder.lload(call).loadConstant(first);
                for (int i = first; i < first + Watch.TOLD; i++) {
                    if (i >= probed.watches.size()) {
                        builder.iconst_0().iconst_0();
                    } else if (probed.watches.get(i).isTakenIfTrue) {
                        builder.iload(outcomes + 2 * i).dup().iload(outcomes + 2 * i + 1).isub();
                    } else {
                        builder.iload(outcomes + 2 * i).iload(outcomes + 2 * i + 1);
                    }
                }
                builder.invokestatic(PROBE, "outcomes", OF_OUTCOMES);
            }
        }

        private void close(Label end) {
            if (!isEmpty) {
                stretches.add(new Label[] {stretch, end});
            }
            isEmpty = true;
        }

        private void leave() {
            if (isSynchronized) {
                builder.aload(lock).monitorexit();
            }
            tell();
            builder.lload(call).invokestatic(PROBE, "leave", OF_CALL);
        }

        private void handlers() {
            Label end = builder.newLabel();
            builder.labelBinding(end);
            close(end);
            if (!stretches.isEmpty()) {
                builder.labelBinding(handler);
                frame(handler, inside(List.of()), List.of(THROWABLE));
                leave();
                builder.athrow();
            }
            if (mayFail) {
                builder.labelBinding(unmade);
                frame(unmade, inside(List.of(SimpleVerificationTypeInfo.UNINITIALIZED_THIS)), List.of(THROWABLE));
                leave();
                builder.athrow();
            }
            elements.stream().filter(element -> element instanceof ExceptionCatch).forEach(element -> ownCatch((ExceptionCatch) element));
            stretches.forEach(stretch -> builder.exceptionCatchAll(stretch[0], stretch[1], handler));
            if (mayFail) {
                builder.exceptionCatchAll(begin, calls, unmade);
            }
        }

        /**
         * Keeps a block of the method's own. Ways out, from which the lock is not held any more, are no part of one: compilers want to know at
         * each place which locks are held.
         */
        private void ownCatch(ExceptionCatch block) {
            int first = places.get(block.tryStart());
            int last = places.get(block.tryEnd());
            Label start = block.tryStart();
            for (int i = 0; isSynchronized && i < exits.size(); i++) {
                int place = exitPlaces.get(i); // the way out is this instruction, from 1
                if (place <= first || place > last) {
                    continue;
                }
                if (place - 1 > first) {
                    ownCatch(block, start, exits.get(i)[0]);
                }
                start = exits.get(i)[1];
                first = place;
            }
            if (first < last) {
                ownCatch(block, start, block.tryEnd());
            }
        }

        private void ownCatch(ExceptionCatch block, Label from, Label to) {
            builder.with(ExceptionCatch.of(block.handler(), from, to, block.catchType()));
        }
    }
}
