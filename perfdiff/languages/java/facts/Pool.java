package perfdiff.facts;

import java.io.DataInputStream;
import java.io.IOException;

/** The constants of a class file, as text. */
final class Pool {
    private final int[] tags;
    private final Object[] values; // numbers, strings, or the two indices that an entry is made of
    String[] bootstraps = new String[0];
    int[][] bootstrapArguments = new int[0][];

    Pool(DataInputStream in) throws IOException {
        int count = in.readUnsignedShort();
        tags = new int[count];
        values = new Object[count];
        for (int i = 1; i < count; i++) {
            int tag = in.readUnsignedByte();
            tags[i] = tag;
            switch (tag) {
                case 1:
                    values[i] = in.readUTF();
                    break;
                case 3:
                    values[i] = in.readInt();
                    break;
                case 4:
                    values[i] = in.readFloat();
                    break;
                case 5:
                    values[i++] = in.readLong();
                    break;
                case 6:
                    values[i++] = in.readDouble();
                    break;
                case 7:
                case 8:
                case 16:
                case 19:
                case 20:
                    values[i] = new int[] {in.readUnsignedShort()};
                    break;
                case 15:
                    values[i] = new int[] {in.readUnsignedByte(), in.readUnsignedShort()};
                    break;
                case 9:
                case 10:
                case 11:
                case 12:
                case 17:
                case 18:
                    values[i] = new int[] {in.readUnsignedShort(), in.readUnsignedShort()};
                    break;
                default:
                    throw new IOException("constant " + i + " is of an unknown kind, " + tag);
            }
        }
    }

    int tag(int index) {
        return tags[index];
    }

    String text(int index) {
        return index == 0 ? null : (String) values[index];
    }

    /** Returns the text that an entry refers to: the name of a class, a string. */
    String name(int index) {
        return index == 0 ? null : text(((int[]) values[index])[0]);
    }

    private int[] pair(int index) {
        return (int[]) values[index];
    }

    /** Returns owner, name and descriptor of a field or method; for what is made at run time number of the bootstrap, name, descriptor. */
    String[] member(int index) {
        int[] pair = pair(index);
        int[] named = pair(pair[1]);
        boolean dynamic = tags[index] == 17 || tags[index] == 18;
        String owner = dynamic ? Integer.toString(pair[0]) : name(pair[0]);
        return new String[] {owner, text(named[0]), text(named[1])};
    }

    String[] nameAndType(int index) {
        int[] named = pair(index);
        return new String[] {text(named[0]), text(named[1])};
    }

    /** Returns the kind of a method handle and the field or method that it leads to. */
    int handleKind(int index) {
        return pair(index)[0];
    }

    String[] handleMember(int index) {
        return member(pair(index)[1]);
    }

    Object number(int index) {
        return values[index];
    }

    /** Returns a constant as text, with its kind, so that 1 and 1L and "1" differ. */
    String constant(int index) {
        switch (tags[index]) {
            case 1:
                return "string " + escaped(text(index));
            case 3:
                return "int " + values[index];
            case 4:
                return "float " + values[index];
            case 5:
                return "long " + values[index];
            case 6:
                return "double " + values[index];
            case 7:
                return "class " + name(index);
            case 8:
                return "string " + escaped(name(index));
            case 15:
                return handle(index);
            case 16:
                return "type " + name(index);
            case 17:
                return "dynamic " + dynamic(index);
            default:
                return "constant of kind " + tags[index];
        }
    }

    String handle(int index) {
        String[] member = handleMember(index);
        boolean field = handleKind(index) <= 4;
        return "handle " + handleKind(index) + " " + (field ? String.join("#", member) : member[0] + "." + member[1] + member[2]);
    }

    /** Returns what is called, or made, at run time: name, descriptor, how it is linked. */
    String dynamic(int index) {
        String[] member = member(index);
        int bootstrap = Integer.parseInt(member[0]);
        StringBuilder said = new StringBuilder(member[1]).append(' ').append(member[2]).append(" by ").append(bootstraps[bootstrap]);
        for (int argument : bootstrapArguments[bootstrap]) {
            said.append(" | ").append(constant(argument));
        }
        return said.toString();
    }

    private static String escaped(String text) {
        return text.replace("\\", "\\\\").replace("\n", "\\n");
    }
}
