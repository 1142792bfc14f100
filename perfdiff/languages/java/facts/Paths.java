package perfdiff.facts;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * Which values that were there when a call began its instructions get at: `this.com/acme/Box#items#Ljava/util/List;`.
 *
 * <p>What a method without parameters gives back is a step as well, `com/acme/Box#size()#I`: whether it is a field, its own code tells.
 *
 * <p>Locals and stack hold such paths, null for every other value. Each instruction is looked at once, as it is first reached: a
 * variable that holds different things in turn is known by the first of them.
 */
final class Paths {
    private static final int MOST_STEPS = 8;
    private static final Set<String> OPENING = Set.of(
            "java/io/File.<init>", "java/io/FileInputStream.<init>", "java/io/FileReader.<init>", "java/io/RandomAccessFile.<init>",
            "java/nio/file/Path.of", "java/nio/file/Paths.get", "java/util/zip/ZipFile.<init>", "java/util/jar/JarFile.<init>",
            "java/util/Scanner.<init>");

    final Set<String> read = new LinkedHashSet<>();
    final Set<String> stored = new LinkedHashSet<>(); // fields whose arrays are written to
    final Set<String> asked = new LinkedHashSet<>(); // whose methods are called, or whose type is looked at
    final Set<String> opened = new LinkedHashSet<>();

    private final Code code;
    private final Pool pool;
    private final String[] locals;
    private String[] stack;
    private int depth;

    private static final class State {
        final int at;
        final String[] locals;
        final String[] stack;

        State(int at, String[] locals, String[] stack) {
            this.at = at;
            this.locals = locals;
            this.stack = stack;
        }
    }

    Paths(Code code, Pool pool, String descriptor, boolean isStatic) {
        this.code = code;
        this.pool = pool;
        locals = new String[code.maxLocals];
        int slot = 0;
        if (!isStatic) {
            locals[slot++] = "this";
        }
        int number = 0;
        for (int i = 1; descriptor.charAt(i) != ')'; i = after(descriptor, i)) {
            locals[slot] = "arg" + number++;
            slot += size(descriptor.charAt(i));
        }
    }

    void follow() {
        ArrayDeque<State> waiting = new ArrayDeque<>();
        boolean[] seen = new boolean[code.bytes.length];
        boolean[] entered = new boolean[code.handlers.length / 4];
        waiting.add(new State(0, locals.clone(), new String[0]));
        while (!waiting.isEmpty()) {
            State state = waiting.pop();
            System.arraycopy(state.locals, 0, locals, 0, locals.length);
            stack = Arrays.copyOf(state.stack, code.maxStack + 4);
            depth = state.stack.length;
            int at = state.at;
            while (at < seen.length && !seen[at]) {
                seen[at] = true;
                for (int i = 0; i < entered.length; i++) {
                    if (!entered[i] && at >= code.handlers[4 * i] && at < code.handlers[4 * i + 1]) {
                        entered[i] = true;
                        waiting.add(new State(code.handlers[4 * i + 2], locals.clone(), new String[1]));
                    }
                }
                step(at);
                for (int target : code.targets(at)) {
                    if (!seen[target]) {
                        waiting.add(new State(target, locals.clone(), Arrays.copyOf(stack, depth)));
                    }
                }
                if (code.ends(at)) {
                    break;
                }
                at += code.length(at);
            }
        }
    }

    private void push(String path) {
        stack[depth++] = path;
    }

    private void push(String path, int size) {
        for (int i = 0; i < size; i++) {
            push(path);
        }
    }

    private String pop() {
        return stack[--depth];
    }

    private void step(int at) {
        int opcode = code.opcode(at);
        if (opcode == 0xc4) {
            wide(code.opcode(at + 1), code.shorts(at + 2));
        } else if (opcode >= 0x15 && opcode <= 0x19) {
            load(opcode, code.unsigned(at + 1));
        } else if (opcode >= 0x1a && opcode <= 0x2d) {
            load(0x15 + (opcode - 0x1a) / 4, (opcode - 0x1a) % 4);
        } else if (opcode >= 0x36 && opcode <= 0x3a) {
            store(opcode, code.unsigned(at + 1));
        } else if (opcode >= 0x3b && opcode <= 0x4e) {
            store(0x36 + (opcode - 0x3b) / 4, (opcode - 0x3b) % 4);
        } else if (opcode >= 0xb2 && opcode <= 0xb5) {
            field(opcode, pool.member(code.shorts(at + 1)));
        } else if (opcode >= 0xb6 && opcode <= 0xba) {
            call(opcode, pool.member(code.shorts(at + 1)));
        } else if (opcode >= 0x4f && opcode <= 0x56) {
            depth -= opcode == 0x50 || opcode == 0x52 ? 3 : 2;
            String array = pop();
            if (array != null && array.indexOf('#') >= 0 && !last(array).contains("()")) {
                stored.add(last(array));
            }
        } else if (opcode == 0xc0) {
            asked(stack[depth - 1]);
        } else if (opcode == 0xc1) {
            asked(pop());
            push(null);
        } else if (opcode >= 0x59 && opcode <= 0x5f) {
            shuffle(opcode);
        } else if (opcode == 0xc5) {
            depth -= code.unsigned(at + 3);
            push(null);
        } else if (opcode >= 0x12 && opcode <= 0x14) {
            push(null, opcode == 0x14 ? 2 : 1);
        } else {
            other(opcode);
        }
    }

    private void wide(int opcode, int slot) {
        if (opcode >= 0x15 && opcode <= 0x19) {
            load(opcode, slot);
        } else if (opcode >= 0x36 && opcode <= 0x3a) {
            store(opcode, slot);
        }
    }

    private void load(int opcode, int slot) {
        push(locals[slot], opcode == 0x16 || opcode == 0x18 ? 2 : 1);
    }

    private void store(int opcode, int slot) {
        boolean large = opcode == 0x37 || opcode == 0x39;
        locals[slot] = pop();
        if (large) {
            depth--;
            locals[slot + 1] = null;
        }
    }

    private void field(int opcode, String[] member) {
        int size = size(member[2].charAt(0));
        if (opcode == 0xb2) {
            push(step("static", member), size);
        } else if (opcode == 0xb3) {
            depth -= size;
        } else if (opcode == 0xb4) {
            push(step(pop(), member), size);
        } else {
            depth -= size + 1;
        }
    }

    private String step(String path, String[] member) {
        if (path == null || path.chars().filter(each -> each == '#').count() >= 2 * MOST_STEPS) {
            return null;
        }
        String longer = path + "." + String.join("#", member);
        read.add(longer);
        return longer;
    }

    private void call(int opcode, String[] member) {
        String descriptor = member[2];
        int count = 0;
        int slots = 0;
        for (int i = 1; descriptor.charAt(i) != ')'; i = after(descriptor, i)) {
            slots += size(descriptor.charAt(i));
            count++;
        }
        if (count > 0 && OPENING.contains(member[0] + "." + member[1]) && descriptor.startsWith("(Ljava/lang/String;")) {
            String path = stack[depth - slots];
            if (path != null) {
                opened.add(path);
            }
        }
        depth -= slots;
        String given = descriptor.substring(descriptor.indexOf(')') + 1);
        String result = null;
        if (opcode != 0xb8 && opcode != 0xba) {
            String receiver = pop();
            if (opcode != 0xb7) {
                asked(receiver);
            }
            if (opcode == 0xb6 && count == 0 && !given.equals("V") && !member[0].startsWith("java/") && !member[0].startsWith("[")) {
                result = step(receiver, new String[] {member[0], member[1] + "()", given});
            }
        }
        push(result, size(given.charAt(0)));
    }

    private void asked(String path) {
        if (path != null) {
            asked.add(path);
        }
    }

    private void shuffle(int opcode) {
        String first = pop();
        if (opcode == 0x59) {
            push(first, 2);
            return;
        }
        String second = pop();
        switch (opcode) {
            case 0x5a: // dup_x1
                push(first);
                push(second);
                push(first);
                break;
            case 0x5b: { // dup_x2
                String third = pop();
                push(first);
                push(third);
                push(second);
                push(first);
                break;
            }
            case 0x5c: // dup2
                push(second);
                push(first);
                push(second);
                push(first);
                break;
            case 0x5d: { // dup2_x1
                String third = pop();
                push(second);
                push(first);
                push(third);
                push(second);
                push(first);
                break;
            }
            case 0x5e: { // dup2_x2
                String third = pop();
                String fourth = pop();
                push(second);
                push(first);
                push(fourth);
                push(third);
                push(second);
                push(first);
                break;
            }
            default: // swap
                push(first);
                push(second);
        }
    }

    /** Changes the depth of the stack by what is left: instructions whose results are no paths. */
    private void other(int opcode) {
        // Slots taken and given, by opcode: constants, array loads, pops, arithmetic, conversions, comparisons, jumps, returns.
        if (opcode == 0x00 || opcode == 0x84 || opcode == 0xa7 || opcode == 0xc8 || opcode == 0xa9 || opcode == 0xb1) {
            return;
        }
        if (opcode <= 0x11) {
            push(null, opcode == 0x09 || opcode == 0x0a || opcode == 0x0e || opcode == 0x0f ? 2 : 1);
        } else if (opcode >= 0x2e && opcode <= 0x35) {
            replace(2, opcode == 0x2f || opcode == 0x31 ? 2 : 1);
        } else if (opcode == 0x57 || opcode == 0x58) {
            depth -= opcode - 0x56;
        } else if (opcode >= 0x60 && opcode <= 0x73) {
            int size = opcode % 2 == 0 ? 1 : 2;
            replace(2 * size, size);
        } else if (opcode >= 0x74 && opcode <= 0x77) {
            int size = opcode % 2 == 0 ? 1 : 2;
            replace(size, size);
        } else if (opcode >= 0x78 && opcode <= 0x7d) {
            int size = opcode % 2 == 0 ? 1 : 2;
            replace(size + 1, size);
        } else if (opcode >= 0x7e && opcode <= 0x83) {
            int size = opcode % 2 == 0 ? 1 : 2;
            replace(2 * size, size);
        } else if (opcode >= 0x85 && opcode <= 0x93) {
            String sizes = "12 11 12 21 21 22 11 12 12 21 22 21 11 11 11";
            int index = 3 * (opcode - 0x85);
            replace(sizes.charAt(index) - '0', sizes.charAt(index + 1) - '0');
        } else if (opcode >= 0x94 && opcode <= 0x98) {
            replace(opcode == 0x95 || opcode == 0x96 ? 2 : 4, 1);
        } else if (opcode >= 0x99 && opcode <= 0x9e || opcode == 0xc6 || opcode == 0xc7) {
            depth--;
        } else if (opcode >= 0x9f && opcode <= 0xa6) {
            depth -= 2;
        } else if (opcode == 0xa8 || opcode == 0xc9) {
            push(null);
        } else if (opcode == 0xaa || opcode == 0xab) {
            depth--;
        } else if (opcode >= 0xac && opcode <= 0xb0) {
            depth = 0;
        } else if (opcode == 0xbb) {
            push(null);
        } else if (opcode >= 0xbc && opcode <= 0xbe) {
            replace(1, 1);
        } else if (opcode == 0xbf || opcode == 0xc2 || opcode == 0xc3) {
            depth--;
        }
    }

    private void replace(int taken, int given) {
        depth -= taken;
        push(null, given);
    }

    private static String last(String path) {
        // The owner of a field has slashes, and no dots: those stand between the steps.
        return path.substring(path.lastIndexOf('.') + 1);
    }

    private static int size(char kind) {
        return kind == 'J' || kind == 'D' ? 2 : kind == 'V' ? 0 : 1;
    }

    private static int after(String descriptor, int at) {
        int i = at;
        while (descriptor.charAt(i) == '[') {
            i++;
        }
        int end = descriptor.charAt(i) == 'L' ? descriptor.indexOf(';', i) : i;
        if (end < i) {
            throw new IllegalStateException("a descriptor has no end");
        }
        return end + 1;
    }
}
