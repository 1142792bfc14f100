package perfdiff.loom;

import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.Label;
import java.lang.classfile.MethodModel;
import java.lang.classfile.TypeKind;
import java.lang.classfile.attribute.StackMapFrameInfo.ObjectVerificationTypeInfo;
import java.lang.classfile.attribute.StackMapFrameInfo.SimpleVerificationTypeInfo;
import java.lang.classfile.attribute.StackMapFrameInfo.VerificationTypeInfo;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.util.Collections;
import java.util.List;
import java.util.function.BiConsumer;

/**
 * The code that reads a call's inputs: one variable each, which is ABSENT where the value cannot be had.
 *
 * Fields are read as the method itself reads them. No class is initialised by that, and no method is called but PerfdiffProbe's. As
 * asm/FeatureReader.java, in the terms of another library.
 */
final class FeatureReader {
    private static final long ABSENT = 0x7ff4e05eda7ab5e7L; // as PerfdiffProbe.ABSENT
    private static final int CELLS = 4; // that are handed over at once
    private static final MethodTypeDesc OF_OBJECT = MethodTypeDesc.of(ConstantDescs.CD_long, ConstantDescs.CD_Object);
    private static final MethodTypeDesc OF_DOUBLE = MethodTypeDesc.of(ConstantDescs.CD_long, ConstantDescs.CD_double);
    private static final MethodTypeDesc OF_CELLS = MethodTypeDesc.ofDescriptor("(IJJJJ)V");

    private final ClassModel surroundings;
    private final MethodModel method;
    private final MethodTypeDesc signature;
    private final List<Feature> features;
    private final int values; // the first variable
    private final int object; // the variable of an object on the way

    FeatureReader(ClassModel surroundings, MethodModel method, List<Feature> features, int values) {
        this.surroundings = surroundings;
        this.method = method;
        this.features = features;
        this.values = values;
        signature = method.methodTypeSymbol();
        object = values + 2 * features.size();
    }

    /** Reads all, and starts the call. `frame` takes the frame of a label: these variables above the call's. */
    void read(CodeBuilder code, BiConsumer<Label, List<VerificationTypeInfo>> frame) {
        for (int i = 0; i < features.size(); i++) {
            code.loadConstant(ABSENT).lstore(values + 2 * i);
        }
        for (int i = 0; i < features.size(); i++) {
            if (!isKnown(features.get(i))) {
                continue;
            }
            Label absent = code.newLabel();
            ClassDesc type = origin(code, features.get(i));
            for (int step = 0; step < features.get(i).steps.size(); step++) {
                type = step(code, features.get(i), step, type, absent);
            }
            converted(code, features.get(i), type, absent);
            code.lstore(values + 2 * i).labelBinding(absent);
            frame.accept(absent, Collections.nCopies(features.size(), SimpleVerificationTypeInfo.LONG));
            code.nop(); // two frames at one place are not allowed
        }
        for (int first = 0; first == 0 || first < features.size(); first += CELLS) {
            code.loadConstant(first);
            for (int i = first; i < first + CELLS; i++) {
                if (i < features.size()) {
                    code.lload(values + 2 * i);
                } else {
                    code.loadConstant(ABSENT);
                }
            }
            code.invokestatic(ProbeWeaver.PROBE, first + CELLS < features.size() ? "put" : "start", OF_CELLS);
        }
    }

    /** Whether a feature's way and value are those that this method has. */
    private boolean isKnown(Feature feature) {
        ClassDesc type;
        boolean isStatic = (method.flags().flagsMask() & ClassFile.ACC_STATIC) != 0;
        if (feature.origin == Feature.STATIC) {
            String owner = feature.steps.isEmpty() ? "" : feature.steps.get(0).owner;
            boolean isParent = surroundings.superclass().map(parent -> parent.asInternalName().equals(owner)).orElse(false);
            if (!isParent && !owner.equals(surroundings.thisClass().asInternalName())) {
                return false; // reading it may initialise its class
            }
            type = null;
        } else if (feature.origin == Feature.THIS) {
            if (isStatic || method.methodName().equalsString("<init>")) {
                return false; // there it is none yet
            }
            type = surroundings.thisClass().asSymbol();
        } else if (feature.origin >= signature.parameterCount()) {
            return false;
        } else {
            type = signature.parameterType(feature.origin);
        }
        for (Feature.Step step : feature.steps) {
            if (type != null && !type.isClassOrInterface()) {
                return false;
            }
            type = step.isIndirect() ? ClassDesc.ofDescriptor(step.read(feature.isFloating)) : ClassDesc.ofDescriptor(step.descriptor);
        }
        return isConvertible(feature, type);
    }

    private static boolean isConvertible(Feature feature, ClassDesc type) {
        if (!type.isPrimitive()) {
            return List.of("number", "length", "nested", "type", "ordinal", "file", "depth").contains(feature.how);
        }
        boolean isDouble = type.equals(ConstantDescs.CD_float) || type.equals(ConstantDescs.CD_double);
        return feature.how.equals("number") && (feature.isFloating || !isDouble);
    }

    private ClassDesc origin(CodeBuilder code, Feature feature) {
        if (feature.origin == Feature.STATIC) {
            return null;
        }
        if (feature.origin == Feature.THIS) {
            code.aload(0);
            return surroundings.thisClass().asSymbol();
        }
        ClassDesc type = signature.parameterType(feature.origin);
        code.loadLocal(TypeKind.from(type), code.parameterSlot(feature.origin));
        return type;
    }

    /** Follows a field of the object on the stack. */
    private ClassDesc step(CodeBuilder code, Feature feature, int place, ClassDesc type, Label absent) {
        Feature.Step step = feature.steps.get(place);
        ClassDesc owner = ClassDesc.ofInternalName(step.owner);
        ClassDesc field = ClassDesc.ofDescriptor(step.descriptor);
        if (type == null) {
            code.getstatic(owner, step.field, field);
            return field;
        }
        if (step.isIndirect()) {
            ClassDesc read = ClassDesc.ofDescriptor(step.read(feature.isFloating));
            MethodTypeDesc signature = MethodTypeDesc.of(read, ConstantDescs.CD_Object, ConstantDescs.CD_String);
            code.loadConstant(step.key()).invokestatic(ProbeWeaver.PROBE, step.reader(feature.isFloating), signature);
            return read;
        }
        code.astore(object).aload(object);
        if (type.equals(owner)) {
            code.ifnull(absent).aload(object);
        } else {
            code.instanceOf(owner).ifeq(absent).aload(object).checkcast(owner);
        }
        code.getfield(owner, step.field, field);
        return field;
    }

    /** Makes 64 bits of the value on the stack. */
    private static void primitive(CodeBuilder code, Feature feature, ClassDesc type) {
        TypeKind kind = TypeKind.from(type).asLoadable();
        code.conversion(kind, feature.isFloating ? TypeKind.DOUBLE : TypeKind.LONG);
        if (feature.isFloating) {
            code.invokestatic(ProbeWeaver.PROBE, "bits", OF_DOUBLE);
        }
    }

    private void converted(CodeBuilder code, Feature feature, ClassDesc type, Label absent) {
        if (type.isPrimitive()) {
            primitive(code, feature, type);
        } else if (feature.how.equals("length") && type.isArray()) {
            code.astore(object).aload(object).ifnull(absent).aload(object).arraylength().i2l();
        } else {
            code.invokestatic(ProbeWeaver.PROBE, feature.reader(), OF_OBJECT);
        }
    }

    /** A type as frames name it. */
    static VerificationTypeInfo verified(ClassDesc type) {
        if (!type.isPrimitive()) {
            return ObjectVerificationTypeInfo.of(type);
        }
        return switch (type.descriptorString()) {
            case "J" -> SimpleVerificationTypeInfo.LONG;
            case "F" -> SimpleVerificationTypeInfo.FLOAT;
            case "D" -> SimpleVerificationTypeInfo.DOUBLE;
            default -> SimpleVerificationTypeInfo.INTEGER;
        };
    }
}
