package perfdiff.loom;

import java.util.List;
import java.util.Map;

/** Reads a class file and writes it with methods transformed; one for each library that JDKs have for this. */
interface ClassTransformer {
    /** Returns the internal name of a class; refuses one that it cannot read. */
    String nameOf(byte[] classFile) throws Refused;

    /** Returns the internal name of a class's parent, null for java.lang.Object. */
    String parentOf(byte[] classFile);

    /** Returns the class file with probes in `methods`; those that cannot have one are put to `refused`, with the reason. */
    byte[] probed(byte[] classFile, List<ProbedMethod> methods, Map<ProbedMethod, String> refused) throws Refused;

    /** Returns the class file of an empty class, or of an empty interface. */
    byte[] empty(String name, boolean isInterface);
}
