package perfdiff.loom;

import java.util.Collections;
import java.util.List;
import java.util.function.Function;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.Type;
import jdk.internal.org.objectweb.asm.tree.AbstractInsnNode;
import jdk.internal.org.objectweb.asm.tree.FieldInsnNode;
import jdk.internal.org.objectweb.asm.tree.FrameNode;
import jdk.internal.org.objectweb.asm.tree.InsnList;
import jdk.internal.org.objectweb.asm.tree.InsnNode;
import jdk.internal.org.objectweb.asm.tree.IntInsnNode;
import jdk.internal.org.objectweb.asm.tree.JumpInsnNode;
import jdk.internal.org.objectweb.asm.tree.LabelNode;
import jdk.internal.org.objectweb.asm.tree.LdcInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodInsnNode;
import jdk.internal.org.objectweb.asm.tree.MethodNode;
import jdk.internal.org.objectweb.asm.tree.TypeInsnNode;
import jdk.internal.org.objectweb.asm.tree.VarInsnNode;

/**
 * The code that reads a call's inputs: one variable each, which is ABSENT where the value cannot be had.
 *
 * Fields are read as the method itself reads them. No class is initialised by that, and no method is called but PerfdiffProbe's.
 */
final class FeatureReader {
    private static final long ABSENT = 0x7ff4e05eda7ab5e7L; // as PerfdiffProbe.ABSENT
    private static final int CELLS = 4; // that are handed over at once

    private final ProbeWeaver.Surroundings surroundings;
    private final MethodNode method;
    private final List<Feature> features;
    private final int values; // the first variable
    private final int object; // the variable of an object on the way

    FeatureReader(ProbeWeaver.Surroundings surroundings, MethodNode method, List<Feature> features, int values) {
        this.surroundings = surroundings;
        this.method = method;
        this.features = features;
        this.values = values;
        object = values + 2 * features.size();
    }

    /** The first variable above those that reading uses. */
    int end() {
        return features.isEmpty() ? values : object + 1;
    }

    /** Reads all, and starts the call. `frame` makes the frame of these variables above the call's; null for code without frames. */
    InsnList read(Function<List<Object>, FrameNode> frame) {
        InsnList code = new InsnList();
        for (int i = 0; i < features.size(); i++) {
            code.add(new LdcInsnNode(ABSENT));
            code.add(new VarInsnNode(Opcodes.LSTORE, values + 2 * i));
        }
        for (int i = 0; i < features.size(); i++) {
            LabelNode absent = new LabelNode();
            if (value(code, features.get(i), absent)) {
                code.add(new VarInsnNode(Opcodes.LSTORE, values + 2 * i));
                code.add(absent);
                FrameNode made = frame.apply(Collections.nCopies(features.size(), Opcodes.LONG));
                if (made != null) {
                    code.add(made);
                    code.add(new InsnNode(Opcodes.NOP)); // two frames at one place are not allowed
                }
            }
        }
        for (int first = 0; first == 0 || first < features.size(); first += CELLS) {
            code.add(number(first));
            for (int i = first; i < first + CELLS; i++) {
                code.add(i < features.size() ? new VarInsnNode(Opcodes.LLOAD, values + 2 * i) : new LdcInsnNode(ABSENT));
            }
            String hand = first + CELLS < features.size() ? "put" : "start";
            code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ProbeWeaver.PROBE, hand, "(IJJJJ)V", false));
        }
        return code;
    }

    /** Puts a feature's 64 bits on the stack, or jumps; returns whether it has any here. */
    private boolean value(InsnList code, Feature feature, LabelNode absent) {
        InsnList way = new InsnList();
        Type type = origin(way, feature);
        for (int i = 0; type != null && i < feature.steps.size(); i++) {
            type = step(way, feature, i, type, absent);
        }
        if (type == null || !converted(way, feature, type, absent)) {
            return false;
        }
        code.add(way);
        return true;
    }

    private Type origin(InsnList code, Feature feature) {
        boolean isStatic = (method.access & Opcodes.ACC_STATIC) != 0;
        if (feature.origin == Feature.STATIC) {
            return Type.VOID_TYPE;
        }
        if (feature.origin == Feature.THIS) {
            code.add(new VarInsnNode(Opcodes.ALOAD, 0));
            return isStatic || method.name.equals("<init>") ? null : Type.getObjectType(surroundings.name); // there it is none yet
        }
        Type[] types = Type.getArgumentTypes(method.desc);
        if (feature.origin >= types.length) {
            return null;
        }
        int variable = isStatic ? 0 : 1;
        for (int i = 0; i < feature.origin; i++) {
            variable += types[i].getSize();
        }
        code.add(new VarInsnNode(types[feature.origin].getOpcode(Opcodes.ILOAD), variable));
        return types[feature.origin];
    }

    /** Follows a field of the object on the stack. */
    private Type step(InsnList code, Feature feature, int place, Type type, LabelNode absent) {
        Feature.Step step = feature.steps.get(place);
        if (feature.origin == Feature.STATIC && place == 0) {
            if (!step.owner.equals(surroundings.name) && !step.owner.equals(surroundings.parent)) {
                return null; // reading it may initialise its class
            }
            code.add(new FieldInsnNode(Opcodes.GETSTATIC, step.owner, step.field, step.descriptor));
            return Type.getType(step.descriptor);
        }
        if (type.getSort() != Type.OBJECT) {
            return null;
        }
        if (step.isIndirect()) {
            Type read = Type.getType(step.read(feature.isFloating));
            String signature = "(Ljava/lang/Object;Ljava/lang/String;)" + read.getDescriptor();
            code.add(new LdcInsnNode(step.key()));
            code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ProbeWeaver.PROBE, step.reader(feature.isFloating), signature, false));
            return read;
        }
        code.add(new VarInsnNode(Opcodes.ASTORE, object));
        code.add(new VarInsnNode(Opcodes.ALOAD, object));
        if (type.getInternalName().equals(step.owner)) {
            code.add(new JumpInsnNode(Opcodes.IFNULL, absent));
            code.add(new VarInsnNode(Opcodes.ALOAD, object));
        } else {
            code.add(new TypeInsnNode(Opcodes.INSTANCEOF, step.owner));
            code.add(new JumpInsnNode(Opcodes.IFEQ, absent));
            code.add(new VarInsnNode(Opcodes.ALOAD, object));
            code.add(new TypeInsnNode(Opcodes.CHECKCAST, step.owner));
        }
        code.add(new FieldInsnNode(Opcodes.GETFIELD, step.owner, step.field, step.descriptor));
        return Type.getType(step.descriptor);
    }

    /** Makes 64 bits of the value on the stack. */
    private boolean converted(InsnList code, Feature feature, Type type, LabelNode absent) {
        boolean isReference = type.getSort() == Type.OBJECT || type.getSort() == Type.ARRAY;
        if (type.getSort() == Type.VOID) {
            return false;
        }
        if (!isReference) {
            return feature.how.equals("number") && primitive(code, feature, type);
        }
        if (feature.how.equals("length") && type.getSort() == Type.ARRAY) {
            code.add(new VarInsnNode(Opcodes.ASTORE, object));
            code.add(new VarInsnNode(Opcodes.ALOAD, object));
            code.add(new JumpInsnNode(Opcodes.IFNULL, absent));
            code.add(new VarInsnNode(Opcodes.ALOAD, object));
            code.add(new InsnNode(Opcodes.ARRAYLENGTH));
            code.add(new InsnNode(Opcodes.I2L));
            return true;
        }
        if (!List.of("number", "length", "nested", "type", "ordinal", "file", "depth").contains(feature.how)) {
            return false;
        }
        code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ProbeWeaver.PROBE, feature.reader(), "(Ljava/lang/Object;)J", false));
        return true;
    }

    private static boolean primitive(InsnList code, Feature feature, Type type) {
        int sort = type.getSort();
        if (sort == Type.FLOAT) {
            code.add(new InsnNode(Opcodes.F2D));
        } else if (sort == Type.LONG && feature.isFloating) {
            code.add(new InsnNode(Opcodes.L2D));
        } else if (sort != Type.LONG && sort != Type.DOUBLE) {
            code.add(new InsnNode(feature.isFloating ? Opcodes.I2D : Opcodes.I2L));
        }
        boolean isDouble = sort == Type.FLOAT || sort == Type.DOUBLE || feature.isFloating;
        if (isDouble) {
            code.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ProbeWeaver.PROBE, "bits", "(D)J", false));
        }
        return isDouble == feature.isFloating;
    }

    /** A small number on the stack. */
    static AbstractInsnNode number(int number) {
        if (number <= 5) {
            return new InsnNode(Opcodes.ICONST_0 + number);
        }
        return number <= Short.MAX_VALUE ? new IntInsnNode(Opcodes.SIPUSH, number) : new LdcInsnNode(number);
    }

    /** A type as frames name it. */
    static Object verified(Type type) {
        switch (type.getSort()) {
            case Type.BOOLEAN:
            case Type.BYTE:
            case Type.CHAR:
            case Type.SHORT:
            case Type.INT:
                return Opcodes.INTEGER;
            case Type.LONG:
                return Opcodes.LONG;
            case Type.FLOAT:
                return Opcodes.FLOAT;
            case Type.DOUBLE:
                return Opcodes.DOUBLE;
            default:
                return type.getInternalName();
        }
    }
}
