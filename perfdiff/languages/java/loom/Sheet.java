package perfdiff.loom;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The sheet of woven classes, as agent/sheet.c reads it. */
final class Sheet {
    private static final int LONGEST_REMARK = 300;

    private final ByteArrayOutputStream classes = new ByteArrayOutputStream();
    private final ByteArrayOutputStream remarks = new ByteArrayOutputStream();
    private int classCount;
    private int remarkCount;

    void add(String name, byte[] classFile, byte[] woven, List<ProbedMethod> methods) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        classCount++;
        number(classes, text.length);
        number(classes, classFile.length);
        classes.writeBytes(buffer(8).putLong(digest(classFile)).array());
        number(classes, woven.length);
        number(classes, methods.size());
        for (ProbedMethod method : methods) {
            number(classes, method.probe);
        }
        classes.writeBytes(text);
        classes.writeBytes(woven);
    }

    void remark(String text) {
        String line = text.length() > LONGEST_REMARK ? text.substring(0, LONGEST_REMARK) + "…" : text;
        byte[] bytes = line.replaceAll("\\s", " ").getBytes(StandardCharsets.UTF_8);
        remarkCount++;
        number(remarks, bytes.length);
        remarks.writeBytes(bytes);
    }

    byte[] bytes() {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes("PDWOVEN1".getBytes(StandardCharsets.US_ASCII));
        number(all, classCount);
        number(all, remarkCount);
        all.writeBytes(classes.toByteArray());
        all.writeBytes(remarks.toByteArray());
        return all.toByteArray();
    }

    /** FNV-1a (Fowler, Noll, Vo). */
    private static long digest(byte[] bytes) {
        long digest = 0xcbf29ce484222325L;
        for (byte each : bytes) {
            digest = (digest ^ (each & 0xff)) * 0x100000001b3L;
        }
        return digest;
    }

    private static void number(ByteArrayOutputStream to, int number) {
        to.writeBytes(buffer(4).putInt(number).array());
    }

    private static ByteBuffer buffer(int size) {
        return ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
    }
}
