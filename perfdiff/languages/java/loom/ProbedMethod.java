package perfdiff.loom;

import java.util.List;

/** A method that gets a probe. */
final class ProbedMethod {
    final int probe;
    final String says; // its name, as its users write it
    final String owner;
    final String name;
    final String descriptor;
    final List<Feature> features;
    final List<Watch> watches;

    ProbedMethod(int probe, String says, String owner, String name, String descriptor, List<Feature> features, List<Watch> watches) {
        this.probe = probe;
        this.says = says;
        this.owner = owner;
        this.name = name;
        this.descriptor = descriptor;
        this.features = features;
        this.watches = watches;
    }

    boolean isNamed(String name, String descriptor) {
        return this.name.equals(name) && this.descriptor.equals(descriptor);
    }
}
