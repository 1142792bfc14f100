package perfdiff.loom;

import java.lang.classfile.ClassElement;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeModel;
import java.lang.classfile.MethodModel;
import java.lang.classfile.constantpool.ClassEntry;
import java.lang.constant.ClassDesc;
import java.util.List;
import java.util.Map;

/** Class files by the library that JDKs have for them from 24 on. */
final class LibraryTransformer implements ClassTransformer {
    // Frames are told as they are, as working them out needs all classes that a method names.
    private static final ClassFile LIBRARY = ClassFile.of(ClassFile.StackMapsOption.DROP_STACK_MAPS);

    @Override
    public String nameOf(byte[] classFile) throws Refused {
        int version = classFile.length < 8 ? 0 : (classFile[6] & 0xff) << 8 | classFile[7] & 0xff;
        if (version > ClassFile.latestMajorVersion()) {
            throw new Refused("a class file is for a newer Java than the JDK's (its version is " + version + ")");
        }
        try {
            return LIBRARY.parse(classFile).thisClass().asInternalName();
        } catch (RuntimeException error) {
            throw new Refused("a class file cannot be read (" + error + ")");
        }
    }

    @Override
    public String parentOf(byte[] classFile) {
        return LIBRARY.parse(classFile).superclass().map(ClassEntry::asInternalName).orElse(null);
    }

    @Override
    public byte[] probed(byte[] classFile, List<ProbedMethod> methods, Map<ProbedMethod, String> refused) throws Refused {
        try {
            ClassModel model = LIBRARY.parse(classFile);
            return LIBRARY.transformClass(model, (builder, element) -> {
                ProbedMethod probed = probedBy(element, methods);
                byte[] alone = probed == null ? null : alone(model, (MethodModel) element, probed, refused);
                if (alone == null) {
                    builder.with(element);
                } else {
                    weave(builder, model, (MethodModel) element, probed);
                }
            });
        } catch (RuntimeException error) { // of a class file that is damaged, or grows too large
            throw new Refused("its class cannot be written with probes in it (" + error + ")");
        }
    }

    @Override
    public byte[] empty(String name, boolean isInterface) {
        int kind = isInterface ? ClassFile.ACC_INTERFACE | ClassFile.ACC_ABSTRACT : ClassFile.ACC_SUPER;
        ClassDesc type = ClassDesc.ofInternalName(name);
        return LIBRARY.build(type, builder -> builder.withVersion(ClassFile.JAVA_8_VERSION, 0).withFlags(ClassFile.ACC_PUBLIC | kind));
    }

    private static ProbedMethod probedBy(ClassElement element, List<ProbedMethod> methods) {
        if (!(element instanceof MethodModel method) || method.code().isEmpty()) {
            return null;
        }
        String name = method.methodName().stringValue();
        String descriptor = method.methodType().stringValue();
        return methods.stream().filter(each -> each.isNamed(name, descriptor)).findFirst().orElse(null);
    }

    /** Returns the class with a probe in one method alone, null where that is refused: what a builder has begun cannot be taken back. */
    private static byte[] alone(ClassModel model, MethodModel method, ProbedMethod probed, Map<ProbedMethod, String> refused) {
        try {
            byte[] made = LIBRARY.transformClass(model, (builder, element) -> {
                if (element == method) {
                    weave(builder, model, method, probed);
                } else {
                    builder.with(element);
                }
            });
            MethodModel woven = LIBRARY.parse(made).methods().get(model.methods().indexOf(method));
            ProbeWeaver.check(size(method), size(woven));
            return made;
        } catch (ProbeWeaver.Impossible impossible) {
            refused.put(probed, impossible.getMessage());
        } catch (Refused reason) {
            refused.put(probed, reason.getMessage());
        } catch (IllegalArgumentException error) { // "Code length 65540 is outside the allowed range"
            boolean isTooLarge = String.valueOf(error.getMessage()).contains("ode length");
            refused.put(probed, isTooLarge ? ProbeWeaver.TOO_LARGE : "it cannot be written with a probe (" + error.getMessage() + ")");
        }
        return null;
    }

    private static int size(MethodModel method) {
        return method.findAttribute(java.lang.classfile.Attributes.code()).orElseThrow().codeLength();
    }

    private static void weave(java.lang.classfile.ClassBuilder to, ClassModel model, MethodModel method, ProbedMethod probed) {
        CodeModel code = method.code().orElseThrow();
        ProbeWeaver weaver = new ProbeWeaver(model, method, probed);
        to.withMethod(method.methodName(), method.methodType(), weaver.flags(), builder -> method.forEach(element -> {
            if (element instanceof CodeModel) {
                builder.withCode(body -> weaver.weave(body, code));
            } else if (!(element instanceof java.lang.classfile.AccessFlags)) {
                builder.with(element);
            }
        }));
    }
}
