package perfdiff.loom;

import java.util.ArrayList;
import java.util.List;

/** An input of a method: how its value becomes a number, and the way to the value. */
final class Feature {
    /** A field on the way. */
    static final class Step {
        final String owner;
        final String field;
        final String descriptor;

        Step(String owner, String field, String descriptor) {
            this.owner = owner;
            this.field = field;
            this.descriptor = descriptor;
        }

        /** Whether PerfdiffProbe reads the field, for one who may have no access to it. */
        boolean isIndirect() {
            return field.startsWith("~");
        }

        /** The field as PerfdiffProbe knows it. */
        String key() {
            return owner.replace('/', '.') + "#" + field.substring(1);
        }

        /** What PerfdiffProbe reads: `J`, `D`, or `Ljava/lang/Object;`. */
        String read(boolean isFloating) {
            return !"BSIJCZFD".contains(descriptor) ? "Ljava/lang/Object;" : isFloating || "FD".contains(descriptor) ? "D" : "J";
        }

        /** The method of PerfdiffProbe that reads it. */
        String reader(boolean isFloating) {
            String read = read(isFloating);
            return read.equals("J") ? "wholeField" : read.equals("D") ? "floatingField" : "field";
        }
    }

    static final int THIS = -1;
    static final int STATIC = -2;

    final String how;
    final boolean isFloating; // a number is kept as a double
    final int origin; // of the parameters, from 0, THIS or STATIC
    final List<Step> steps = new ArrayList<>();

    /** Takes `HOW PATH`, as perfdiff/languages/java/features.py writes it. */
    Feature(String expression, boolean isFloating) {
        int space = expression.indexOf(' ');
        String[] parts = expression.substring(space + 1).split("\\.");
        how = expression.substring(0, space);
        this.isFloating = isFloating;
        origin = parts[0].equals("this") ? THIS : parts[0].equals("static") ? STATIC : Integer.parseInt(parts[0].substring("arg".length()));
        for (int i = 1; i < parts.length; i++) {
            String[] names = parts[i].split("#");
            steps.add(new Step(names[0], names[1], names[2]));
        }
    }

    /** The method of PerfdiffProbe that reads an object. */
    String reader() {
        return how.equals("number") && !isFloating ? "integer" : how;
    }
}
