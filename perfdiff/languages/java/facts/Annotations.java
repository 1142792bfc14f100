package perfdiff.facts;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Annotations that a running program sees, as text. */
final class Annotations {
    private Annotations() {}

    static List<String> read(DataInputStream in, Pool pool) throws IOException {
        List<String> found = new ArrayList<>();
        for (int count = in.readUnsignedShort(); count > 0; count--) {
            found.add(annotation(in, pool));
        }
        return found;
    }

    static List<String> ofParameters(DataInputStream in, Pool pool) throws IOException {
        List<String> found = new ArrayList<>();
        int parameters = in.readUnsignedByte();
        for (int i = 0; i < parameters; i++) {
            for (String one : read(in, pool)) {
                found.add(i + " " + one);
            }
        }
        return found;
    }

    private static String annotation(DataInputStream in, Pool pool) throws IOException {
        StringBuilder said = new StringBuilder(pool.text(in.readUnsignedShort())).append('(');
        for (int count = in.readUnsignedShort(); count > 0; count--) {
            said.append(pool.text(in.readUnsignedShort())).append('=').append(value(in, pool)).append(count > 1 ? "," : "");
        }
        return said.append(')').toString();
    }

    private static String value(DataInputStream in, Pool pool) throws IOException {
        int tag = in.readUnsignedByte();
        switch (tag) {
            case 'e':
                return pool.text(in.readUnsignedShort()) + pool.text(in.readUnsignedShort());
            case 'c':
                return pool.text(in.readUnsignedShort());
            case '@':
                return annotation(in, pool);
            case '[':
                StringBuilder said = new StringBuilder("[");
                for (int count = in.readUnsignedShort(); count > 0; count--) {
                    said.append(value(in, pool)).append(count > 1 ? "," : "");
                }
                return said.append(']').toString();
            default:
                return pool.constant(in.readUnsignedShort());
        }
    }
}
