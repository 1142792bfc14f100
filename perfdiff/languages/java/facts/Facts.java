package perfdiff.facts;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Reads class files, each a length of four bytes and as many bytes, and prints one line of JSON for each of them, in the same order.
 *
 * <p>It reads the format itself: so it takes the classes of every JDK, under every JDK, and is no second and third program for those
 * whose own libraries for it came and went.
 */
public final class Facts {
    private Facts() {}

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        OutputStream out = new BufferedOutputStream(System.out, 1 << 16);
        for (int count = in.readInt(); count > 0; count--) {
            byte[] data = new byte[in.readInt()];
            in.readFully(data);
            out.write(line(data).getBytes(StandardCharsets.US_ASCII));
            out.write('\n');
        }
        out.flush();
    }

    private static String line(byte[] data) {
        try {
            Json json = new Json();
            new ClassFile(new DataInputStream(new ByteArrayInputStream(data))).write(json);
            return json.toString();
        } catch (IOException | RuntimeException | StackOverflowError broken) { // whatever a damaged file leads to
            String why = broken.getMessage();
            String says = broken instanceof IOException && why != null ? why : "it is damaged (" + broken.getClass().getSimpleName() + ")";
            return new Json().open('{').key("problem").string(says).close('}').toString();
        }
    }
}
