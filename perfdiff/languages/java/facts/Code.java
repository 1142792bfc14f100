package perfdiff.facts;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The instructions of a method: as text without places, lines and names of locals, and what they refer to. */
final class Code {
    private static final String LAMBDAS = "handle 6 java/lang/invoke/LambdaMetafactory.";
    private static final String[] MNEMONICS = mnemonics();
    private static final String[] ARRAYS = {"boolean", "char", "float", "double", "byte", "short", "int", "long"};

    private final Pool pool;
    private final String owner;
    final byte[] bytes;
    final int maxLocals;
    final int maxStack;
    final int[] handlers; // start, end, handler, caught type, for each
    private final TreeMap<Integer, Integer> lines = new TreeMap<>(); // by place in the code
    private final List<String[]> locals = new ArrayList<>(); // slot, name
    private final Set<String> calls = new LinkedHashSet<>();
    private final Set<String> made = new LinkedHashSet<>();
    private final Set<String> types = new LinkedHashSet<>();
    private final Set<String> created = new LinkedHashSet<>();
    private final Set<String> reads = new LinkedHashSet<>();
    private final Set<String> writes = new LinkedHashSet<>();

    Code(DataInputStream in, Pool pool, String owner) throws IOException {
        this.pool = pool;
        this.owner = owner;
        maxStack = in.readUnsignedShort();
        maxLocals = in.readUnsignedShort();
        bytes = ClassFile.bytes(in);
        handlers = new int[4 * in.readUnsignedShort()];
        for (int i = 0; i < handlers.length; i++) {
            handlers[i] = in.readUnsignedShort();
        }
        for (int count = in.readUnsignedShort(); count > 0; count--) {
            String name = pool.text(in.readUnsignedShort());
            table(name, new DataInputStream(new ByteArrayInputStream(ClassFile.bytes(in))));
        }
    }

    private void table(String name, DataInputStream in) throws IOException {
        if (name.equals("LineNumberTable")) {
            for (int count = in.readUnsignedShort(); count > 0; count--) {
                int place = in.readUnsignedShort();
                lines.put(place, in.readUnsignedShort());
            }
        } else if (name.equals("LocalVariableTable")) {
            for (int count = in.readUnsignedShort(); count > 0; count--) {
                int start = in.readUnsignedShort();
                in.readUnsignedShort();
                String local = pool.text(in.readUnsignedShort());
                in.readUnsignedShort();
                int slot = in.readUnsignedShort();
                if (start == 0) {
                    locals.add(new String[] {Integer.toString(slot), local});
                }
            }
        }
    }

    void write(Json json, String descriptor, boolean isStatic) {
        String text = text();
        Paths paths = new Paths(this, pool, descriptor, isStatic);
        paths.follow();
        json.open('{').key("size").number(bytes.length).key("text").string(text).key("calls").strings(calls).key("made").strings(made);
        json.key("types").strings(types).key("created").strings(created).key("reads").strings(reads);
        writes.addAll(paths.stored);
        json.key("writes").strings(writes).key("paths").strings(paths.read).key("asked").strings(paths.asked);
        json.key("opened").strings(paths.opened);
        if (!lines.isEmpty()) {
            json.key("first").number(lines.firstEntry().getValue());
        }
        json.key("lines").open('[');
        for (int line : new TreeSet<>(lines.values())) {
            json.number(line);
        }
        json.close(']').key("jumps").open('[');
        for (int at = 0; at < bytes.length; at += length(at)) {
            if (isConditional(at)) {
                Map.Entry<Integer, Integer> line = lines.floorEntry(at);
                json.number(line == null ? 0 : line.getValue());
            }
        }
        json.close(']').key("locals").open('[');
        for (String[] one : locals) {
            json.open('[').number(Long.parseLong(one[0])).string(one[1]).close(']');
        }
        json.close(']').close('}');
    }

    private String text() {
        TreeSet<Integer> targets = new TreeSet<>();
        for (int at = 0; at < bytes.length; at += length(at)) {
            for (int target : targets(at)) {
                targets.add(target);
            }
        }
        for (int i = 0; i < handlers.length; i += 4) {
            targets.add(handlers[i]);
            targets.add(handlers[i + 1]);
            targets.add(handlers[i + 2]);
        }
        Map<Integer, String> labels = new TreeMap<>();
        for (int target : targets) {
            labels.put(target, "L" + labels.size());
        }
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < bytes.length; at += length(at)) {
            if (labels.containsKey(at)) {
                text.append(labels.get(at)).append('\n');
            }
            text.append(instruction(at, labels)).append('\n');
        }
        for (int i = 0; i < handlers.length; i += 4) {
            String caught = handlers[i + 3] == 0 ? "any" : pool.name(handlers[i + 3]);
            text.append("try ").append(labels.get(handlers[i])).append(' ').append(labels.get(handlers[i + 1])).append(' ');
            text.append(labels.get(handlers[i + 2])).append(' ').append(caught).append('\n');
        }
        return text.toString();
    }

    int opcode(int at) {
        return bytes[at] & 0xff;
    }

    int unsigned(int at) {
        return bytes[at] & 0xff;
    }

    int shorts(int at) {
        return (unsigned(at) << 8) | unsigned(at + 1);
    }

    int ints(int at) {
        return (shorts(at) << 16) | shorts(at + 2);
    }

    private static int aligned(int at) {
        return (at + 4) & ~3;
    }

    int length(int at) {
        int length = written(at);
        if (length <= 0 || length > bytes.length - at) {
            throw new IllegalStateException("an instruction is longer than its method");
        }
        return length;
    }

    private int written(int at) {
        int opcode = opcode(at);
        if (opcode == 0xaa) {
            int begin = aligned(at);
            return begin + 12 + 4 * (ints(begin + 8) - ints(begin + 4) + 1) - at;
        }
        if (opcode == 0xab) {
            int begin = aligned(at);
            return begin + 8 + 8 * ints(begin + 4) - at;
        }
        if (opcode == 0xc4) {
            return opcode(at + 1) == 0x84 ? 6 : 4;
        }
        if (opcode == 0xb9 || opcode == 0xba || opcode == 0xc8 || opcode == 0xc9) {
            return 5;
        }
        if (opcode == 0xc5) {
            return 4;
        }
        if (opcode == 0x11 || opcode == 0x13 || opcode == 0x14 || opcode == 0x84 || opcode >= 0x99 && opcode <= 0xa8
                || opcode >= 0xb2 && opcode <= 0xb8 || opcode == 0xbb || opcode == 0xbd || opcode == 0xc0 || opcode == 0xc1
                || opcode == 0xc6 || opcode == 0xc7) {
            return 3;
        }
        if (opcode == 0x10 || opcode == 0x12 || opcode >= 0x15 && opcode <= 0x19 || opcode >= 0x36 && opcode <= 0x3a
                || opcode == 0xa9 || opcode == 0xbc) {
            return 2;
        }
        return 1;
    }

    /** Returns where an instruction may jump to. */
    int[] targets(int at) {
        int opcode = opcode(at);
        if (opcode >= 0x99 && opcode <= 0xa8 || opcode == 0xc6 || opcode == 0xc7) {
            return new int[] {at + (short) shorts(at + 1)};
        }
        if (opcode == 0xc8 || opcode == 0xc9) {
            return new int[] {at + ints(at + 1)};
        }
        if (opcode == 0xaa || opcode == 0xab) {
            int begin = aligned(at);
            boolean table = opcode == 0xaa;
            length(at);
            int count = table ? ints(begin + 8) - ints(begin + 4) + 1 : ints(begin + 4);
            int[] found = new int[count + 1];
            found[0] = at + ints(begin);
            for (int i = 0; i < count; i++) {
                found[i + 1] = at + ints(table ? begin + 12 + 4 * i : begin + 12 + 8 * i);
            }
            return found;
        }
        return new int[0];
    }

    private boolean isConditional(int at) {
        int opcode = opcode(at);
        return opcode >= 0x99 && opcode <= 0xa6 || opcode == 0xc6 || opcode == 0xc7;
    }

    boolean ends(int at) {
        int opcode = opcode(at);
        return opcode == 0xa7 || opcode == 0xc8 || opcode >= 0xa9 && opcode <= 0xb1 || opcode == 0xbf;
    }

    private String instruction(int at, Map<Integer, String> labels) {
        int opcode = opcode(at);
        if (opcode >= 0x02 && opcode <= 0x08) {
            return "push int " + (opcode - 3);
        }
        if (opcode == 0x09 || opcode == 0x0a) {
            return "push long " + (opcode - 9);
        }
        if (opcode >= 0x0b && opcode <= 0x0d) {
            return "push float " + (float) (opcode - 11);
        }
        if (opcode == 0x0e || opcode == 0x0f) {
            return "push double " + (double) (opcode - 14);
        }
        if (opcode == 0x10 || opcode == 0x11) {
            return "push int " + (opcode == 0x10 ? bytes[at + 1] : (short) shorts(at + 1));
        }
        if (opcode >= 0x12 && opcode <= 0x14) {
            int index = opcode == 0x12 ? unsigned(at + 1) : shorts(at + 1);
            if (pool.tag(index) == 7) {
                types.add(pool.name(index));
            }
            return "push " + pool.constant(index);
        }
        if (opcode >= 0x15 && opcode <= 0x19 || opcode >= 0x36 && opcode <= 0x3a || opcode == 0xa9) {
            return MNEMONICS[opcode] + " " + unsigned(at + 1);
        }
        if (opcode >= 0x1a && opcode <= 0x2d) {
            return MNEMONICS[0x15 + (opcode - 0x1a) / 4] + " " + (opcode - 0x1a) % 4;
        }
        if (opcode >= 0x3b && opcode <= 0x4e) {
            return MNEMONICS[0x36 + (opcode - 0x3b) / 4] + " " + (opcode - 0x3b) % 4;
        }
        if (opcode == 0x84) {
            return "iinc " + unsigned(at + 1) + " " + bytes[at + 2];
        }
        if (opcode == 0xc4) {
            String rest = opcode(at + 1) == 0x84 ? " " + (short) shorts(at + 4) : "";
            return MNEMONICS[opcode(at + 1)] + " " + shorts(at + 2) + rest;
        }
        if (opcode == 0xaa || opcode == 0xab) {
            return choice(at, labels);
        }
        if (opcode == 0xc8 || opcode == 0xc9 || opcode >= 0x99 && opcode <= 0xa8 || opcode == 0xc6 || opcode == 0xc7) {
            return MNEMONICS[opcode] + " " + labels.get(targets(at)[0]);
        }
        if (opcode >= 0xb2 && opcode <= 0xb5) {
            String field = String.join("#", pool.member(shorts(at + 1)));
            (opcode % 2 == 0 ? reads : writes).add(field);
            return MNEMONICS[opcode] + " " + field;
        }
        if (opcode >= 0xb6 && opcode <= 0xb9) {
            String[] member = pool.member(shorts(at + 1));
            calls.add("vpsi".charAt(opcode - 0xb6) + " " + String.join(" ", member));
            return MNEMONICS[opcode] + " " + member[0] + "." + member[1] + member[2];
        }
        if (opcode == 0xba) {
            return dynamic(shorts(at + 1));
        }
        if (opcode == 0xbb || opcode == 0xbd || opcode == 0xc0 || opcode == 0xc1 || opcode == 0xc5) {
            String type = pool.name(shorts(at + 1));
            types.add(type);
            if (opcode == 0xbb) {
                created.add(type);
            }
            return MNEMONICS[opcode] + " " + type + (opcode == 0xc5 ? " " + unsigned(at + 3) : "");
        }
        if (opcode == 0xbc) {
            return "newarray " + ARRAYS[unsigned(at + 1) - 4];
        }
        return MNEMONICS[opcode];
    }

    private String choice(int at, Map<Integer, String> labels) {
        int begin = aligned(at);
        int[] targets = targets(at);
        StringBuilder said = new StringBuilder("switch");
        for (int i = 1; i < targets.length; i++) {
            if (targets[i] != targets[0]) {
                int value = opcode(at) == 0xaa ? ints(begin + 4) + i - 1 : ints(begin + 8 * i);
                said.append(' ').append(value).append(':').append(labels.get(targets[i]));
            }
        }
        return said.append(" default:").append(labels.get(targets[0])).toString();
    }

    private String dynamic(int index) {
        int bootstrap = Integer.parseInt(pool.member(index)[0]);
        boolean lambda = pool.bootstraps[bootstrap].startsWith(LAMBDAS);
        for (int argument : pool.bootstrapArguments[bootstrap]) {
            if (pool.tag(argument) == 15 && pool.handleKind(argument) >= 5) {
                String[] member = pool.handleMember(argument);
                if (lambda && member[0].equals(owner) && member[1].startsWith("lambda$")) {
                    made.add(member[1] + " " + member[2]);
                } else {
                    int kind = pool.handleKind(argument);
                    calls.add((kind == 6 ? "s" : kind == 7 || kind == 8 ? "p" : kind == 9 ? "i" : "v") + " " + String.join(" ", member));
                }
            } else if (pool.tag(argument) == 7) {
                types.add(pool.name(argument));
            }
        }
        return "invokedynamic " + pool.dynamic(index);
    }

    private static String[] mnemonics() {
        String names = "nop aconst_null ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? iload lload fload dload aload"
                + " ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?"
                + " iaload laload faload daload aaload baload caload saload istore lstore fstore dstore astore"
                + " ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?"
                + " iastore lastore fastore dastore aastore bastore castore sastore"
                + " pop pop2 dup dup_x1 dup_x2 dup2 dup2_x1 dup2_x2 swap"
                + " iadd ladd fadd dadd isub lsub fsub dsub imul lmul fmul dmul idiv ldiv fdiv ddiv irem lrem frem drem"
                + " ineg lneg fneg dneg ishl lshl ishr lshr iushr lushr iand land ior lor ixor lxor iinc"
                + " i2l i2f i2d l2i l2f l2d f2i f2l f2d d2i d2l d2f i2b i2c i2s lcmp fcmpl fcmpg dcmpl dcmpg"
                + " ifeq ifne iflt ifge ifgt ifle if_icmpeq if_icmpne if_icmplt if_icmpge if_icmpgt if_icmple if_acmpeq if_acmpne"
                + " goto jsr ret tableswitch lookupswitch ireturn lreturn freturn dreturn areturn return"
                + " getstatic putstatic getfield putfield invokevirtual invokespecial invokestatic invokeinterface invokedynamic"
                + " new newarray anewarray arraylength athrow checkcast instanceof monitorenter monitorexit wide multianewarray"
                + " ifnull ifnonnull goto jsr";
        return names.split(" ");
    }
}
