package java.lang;

import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.nio.Buffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Set;
import java.util.Stack;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import jdk.internal.vm.annotation.DontInline;

/**
 * What woven methods call. It lies in a package that all class loaders and modules see, and is defined by the agent before any class of the
 * program's. Nothing here runs code of the program's, and nothing is thrown: what cannot be read is ABSENT.
 */
public final class PerfdiffProbe {
    /** A NaN that no computation makes; as in probes.c. */
    public static final long ABSENT = 0x7ff4e05eda7ab5e7L;

    private static final int NESTED_DEPTH = 3;
    private static final int NESTED_MOST = 64; // elements a level; those of a longer container would take microseconds

    private PerfdiffProbe() {}

    // A call is 0 where it is not recorded, and below 0 where its inputs are to be read. Entering goes through as many methods as leaving,
    // so that a stack that has room for the one has room for the other.

    public static long enter(int probe) {
        return begin(probe);
    }

    public static long enterReading(int probe) {
        return beginReading(probe);
    }

    public static void leave(long call) {
        if (call != 0) {
            end(call);
        }
    }

    /** All that this call has called is over. */
    public static void resume(long call) {
        if (call != 0) {
            goOn(call);
        }
    }

    /** Tells the outcomes of four conditions, from number `first` on, of a call that is about to be left: met so often, and so often true. */
    public static void outcomes(long call, int first, int met, int held, int met1, int held1, int met2, int held2, int met3, int held3) {
        if (call < 0) {
            tellOutcomes(call, first, met, held, met1, held1, met2, held2, met3, held3);
        }
    }

    private static native void tellOutcomes(
            long call, int first, int met, int held, int met1, int held1, int met2, int held2, int met3, int held3);

    private static native long begin(int probe);

    private static native long beginReading(int probe);

    private static native void end(long call);

    private static native void goOn(long call);

    /** Keeps four inputs of the call that was entered last, from cell `first` on. */
    public static native void put(int first, long a, long b, long c, long d);

    /** The same, and the call starts. */
    public static native void start(int first, long a, long b, long c, long d);

    private static native void tell(long type, String name);

    private static native long fileBytes(String path);

    /** Marks that a test ended, for the driver that runs several: see pd_mark. */
    public static native void mark(String text);

    public static long bits(double value) {
        return Double.doubleToRawLongBits(value);
    }

    // What reads inputs is compiled once, and called. As a method's first calls are all kept, the JVM's compiler takes reading for hot and would
    // lay it out in each probed method and in all that inline it: half of what probes cost in runs of a second, most of which is compiling.

    /** The number in a box, as the bits of a double. */
    @DontInline
    public static long number(Object value) {
        if (value instanceof Double) {
            return bits((Double) value);
        }
        if (value instanceof Float) {
            return bits((Float) value);
        }
        long whole = integer(value);
        return whole == ABSENT ? ABSENT : bits(whole);
    }

    /** The whole number in a box. */
    @DontInline
    public static long integer(Object value) {
        if (value instanceof Integer) {
            return (Integer) value;
        }
        if (value instanceof Long) {
            return (Long) value;
        }
        if (value instanceof Boolean) {
            return (Boolean) value ? 1 : 0;
        }
        if (value instanceof Character) {
            return (Character) value;
        }
        if (value instanceof Short) {
            return (Short) value;
        }
        if (value instanceof Byte) {
            return (Byte) value;
        }
        if (value == null) {
            return ABSENT;
        }
        Class<?> type = value.getClass();
        if (type == AtomicInteger.class) {
            return ((AtomicInteger) value).get();
        }
        if (type == AtomicLong.class) {
            return ((AtomicLong) value).get();
        }
        return type == AtomicBoolean.class ? ((AtomicBoolean) value).get() ? 1 : 0 : ABSENT;
    }

    /** The place of an enum's constant among all. */
    @DontInline
    public static long ordinal(Object value) {
        return value instanceof Enum ? ((Enum<?>) value).ordinal() : ABSENT;
    }

    /** What a field refers to, `com.acme.Box#items`, of an object of its class; null where it cannot be had. */
    @DontInline
    public static Object field(Object value, String key) {
        try {
            Field field = fieldOf(value, key);
            return field == null ? null : field.get(value);
        } catch (Throwable thrown) {
            return null;
        }
    }

    /** The whole number in a field. */
    @DontInline
    public static long wholeField(Object value, String key) {
        try {
            Field field = fieldOf(value, key);
            return field == null ? ABSENT : field.getType() != boolean.class ? field.getLong(value) : field.getBoolean(value) ? 1 : 0;
        } catch (Throwable thrown) {
            return ABSENT;
        }
    }

    /** The number in a field. */
    @DontInline
    public static double floatingField(Object value, String key) {
        try {
            Field field = fieldOf(value, key);
            return field == null ? Double.longBitsToDouble(ABSENT)
                    : field.getType() != boolean.class ? field.getDouble(value) : field.getBoolean(value) ? 1 : 0;
        } catch (Throwable thrown) {
            return Double.longBitsToDouble(ABSENT);
        }
    }

    /** The field of an object by its key, which is the same text whoever asks. */
    private static Field fieldOf(Object value, String key) {
        if (value == null) {
            return null;
        }
        Object[] known = fields;
        for (int at = key.hashCode() & known.length - 2; known[at] != null; at = at + 2 & known.length - 1) {
            if (known[at] == key && ((Field) known[at + 1]).getDeclaringClass().isInstance(value)) {
                return (Field) known[at + 1];
            }
        }
        return found(value, key);
    }

    private static synchronized Field found(Object value, String key) {
        int split = key.indexOf('#');
        Class<?> type = value.getClass();
        while (type != null && !type.getName().equals(key.substring(0, split))) {
            type = type.getSuperclass();
        }
        try {
            Field field = type == null ? null : type.getDeclaredField(key.substring(split + 1));
            if (field != null) {
                field.setAccessible(true);
                keep(key, field);
            }
            return field;
        } catch (ReflectiveOperationException | RuntimeException absent) {
            return null;
        }
    }

    private static void keep(String key, Field field) {
        Object[] known = fields;
        if (4 * ++fieldCount > known.length) { // a fourth of its places: half of them are keys
            known = new Object[2 * known.length];
            for (int i = 0; i < fields.length; i += 2) {
                if (fields[i] != null) {
                    put(known, fields[i], fields[i + 1]);
                }
            }
        } else {
            known = known.clone();
        }
        put(known, key, field);
        fields = known;
    }

    private static void put(Object[] known, Object key, Object field) {
        int at = key.hashCode() & known.length - 2;
        while (known[at] != null) {
            at = at + 2 & known.length - 1;
        }
        known[at] = key;
        known[at + 1] = field;
    }

    /** How long a text, an array, a collection or a map is. */
    @DontInline
    public static long length(Object value) {
        try {
            return value == null ? ABSENT : lengthOf(value, value.getClass());
        } catch (Throwable thrown) {
            return ABSENT;
        }
    }

    private static long lengthOf(Object value, Class<?> type) throws IllegalAccessException {
        if (type == String.class) {
            return ((String) value).length();
        }
        if (type == ArrayList.class) {
            return ((ArrayList<?>) value).size();
        }
        if (type == HashMap.class || type == LinkedHashMap.class) {
            return ((HashMap<?, ?>) value).size();
        }
        if (type.isArray()) {
            return Array.getLength(value);
        }
        if (type == StringBuilder.class) {
            return ((StringBuilder) value).length();
        }
        if (maps == null) {
            prepare();
        }
        if (collections.contains(type)) {
            return ((Collection<?>) value).size();
        }
        if (maps.contains(type)) {
            return ((Map<?, ?>) value).size();
        }
        Field wrapped = wrappers.get(type);
        if (wrapped != null) {
            if (wrapped.getType() == int.class) {
                return wrapped.getInt(value);
            }
            Object inside = wrapped.get(value);
            return inside == null ? ABSENT : lengthOf(inside, inside.getClass());
        }
        return value instanceof Buffer ? ((Buffer) value).remaining() : ABSENT; // nobody else can extend it
    }

    /** The lengths of the elements of an array or a list, and of theirs, added up. */
    @DontInline
    public static long nested(Object value) {
        try {
            return value == null ? ABSENT : nestedOf(value, NESTED_DEPTH);
        } catch (Throwable thrown) {
            return ABSENT;
        }
    }

    private static long nestedOf(Object value, int depth) throws IllegalAccessException {
        boolean isArray = value instanceof Object[];
        if (maps == null) {
            prepare();
        }
        if (!isArray && !lists.contains(value.getClass())) {
            return ABSENT;
        }
        int count = isArray ? ((Object[]) value).length : ((List<?>) value).size();
        if (count > NESTED_MOST) {
            return ABSENT;
        }
        long sum = 0;
        for (int i = 0; i < count; i++) {
            Object element = isArray ? ((Object[]) value)[i] : ((List<?>) value).get(i);
            long length = element == null ? 0 : depth > 2 ? nestedOf(element, depth - 1) : ABSENT;
            if (length == ABSENT) {
                length = lengthOf(element, element.getClass());
            }
            if (length == ABSENT) {
                return ABSENT;
            }
            sum += length;
        }
        return sum;
    }

    /** A number that stands for an object's class; its name is told once. */
    @DontInline
    public static long type(Object value) {
        try {
            if (value == null) {
                return ABSENT;
            }
            String name = value.getClass().getName(); // which the class keeps, as the text does its hash
            long type = (long) name.length() << 32 | name.hashCode() & 0xffffffffL;
            if (!isKnown(type)) {
                tell(type, name);
            }
            return type;
        } catch (Throwable thrown) {
            return ABSENT;
        }
    }

    /** How many bytes the file has that a text, a File or a Path names. */
    @DontInline
    public static long file(Object value) {
        try {
            String path = path(value);
            return path == null ? ABSENT : fileBytes(path);
        } catch (Throwable thrown) {
            return ABSENT;
        }
    }

    /** How many parts the path has that a text, a File or a Path names. */
    @DontInline
    public static long depth(Object value) {
        try {
            String path = path(value);
            if (path == null || path.length() > 4096) {
                return ABSENT;
            }
            long parts = 0;
            for (int i = 0; i < path.length(); i++) {
                if (path.charAt(i) != '/' && (i == 0 || path.charAt(i - 1) == '/')) {
                    parts++;
                }
            }
            return parts;
        } catch (Throwable thrown) {
            return ABSENT;
        }
    }

    private static String path(Object value) {
        if (value == null) {
            return null;
        }
        Class<?> type = value.getClass();
        if (type == String.class) {
            return (String) value;
        }
        if (type == File.class) {
            return ((File) value).getPath();
        }
        return type.getName().equals("sun.nio.fs.UnixPath") ? value.toString() : null;
    }

    // One class file is all that the agent defines, so that none of these has a holder.

    private static Set<Class<?>> lists;
    private static Set<Class<?>> collections;
    private static Map<Class<?>, Field> wrappers; // what has its size from another one, or in a field, and where that is
    private static volatile Set<Class<?>> maps; // written last

    private static volatile Object[] fields = new Object[64]; // keys, each before its field: hashed
    private static int fieldCount;

    private static final int MOST_TYPES = 1024; // more are numbers without a name
    private static volatile long[] types = {}; // that were told

    /** Finds the classes of the JDK's own whose size is read from fields of theirs: no lock, no walk, no code of the program's. */
    private static synchronized void prepare() {
        if (maps != null) {
            return;
        }
        Map<Object, Object> map = new HashMap<>();
        Map<Object, Object> linked = new LinkedHashMap<>();
        lists = classes(new ArrayList<>(), Arrays.asList(), List.of(), List.of(1), Collections.emptyList(), Collections.singletonList(1));
        collections = classes(
                new LinkedList<>(), new HashSet<>(), new LinkedHashSet<>(), new ArrayDeque<>(), new PriorityQueue<>(),
                new CopyOnWriteArrayList<>(), new CopyOnWriteArraySet<>(), new LinkedBlockingQueue<>(), new LinkedBlockingDeque<>(),
                map.keySet(), map.values(), map.entrySet(), linked.keySet(), linked.values(), linked.entrySet(), Set.of(), Set.of(1),
                Collections.emptySet(), Collections.singleton(1), EnumSet.noneOf(Thread.State.class));
        collections.addAll(lists);
        wrappers = new HashMap<>();
        Map<Object, Object> tree = new TreeMap<>();
        Map<Object, Object> shared = new ConcurrentHashMap<>();
        wrap("elementCount", new Vector<>(), new Stack<>()); // their own size() takes their lock
        wrap("count", new Hashtable<>());
        wrap("map", new Properties(), shared.keySet(), shared.values(), shared.entrySet());
        wrap("this$0", tree.values(), tree.entrySet());
        wrap("m", tree.keySet(), new TreeSet<>(), Collections.unmodifiableMap(map), Collections.unmodifiableSortedMap(new TreeMap<>()));
        wrap("c", Collections.unmodifiableCollection(lists), Collections.unmodifiableList(new LinkedList<>()),
                Collections.unmodifiableList(new ArrayList<>()), Collections.unmodifiableSet(lists));
        Set<Class<?>> found = classes(
                new TreeMap<>(), new ConcurrentHashMap<>(), new ConcurrentSkipListMap<>(), new IdentityHashMap<>(), Map.of(), Map.of(1, 1), Collections.emptyMap(),
                Collections.singletonMap(1, 1));
        found.add(EnumMap.class);
        maps = found;
    }

    /** Notes the field of this name that each of these has, itself or from its parent. */
    private static void wrap(String name, Object... examples) {
        for (Object example : examples) {
            for (Class<?> type = example.getClass(); type != null; type = type.getSuperclass()) {
                try {
                    Field field = type.getDeclaredField(name);
                    field.setAccessible(true);
                    wrappers.put(example.getClass(), field);
                    break;
                } catch (ReflectiveOperationException | RuntimeException absent) {
                    continue; // its parent's, or none in this JDK: such a value is not read
                }
            }
        }
    }

    private static Set<Class<?>> classes(Object... examples) {
        Set<Class<?>> found = new HashSet<>();
        for (Object example : examples) {
            found.add(example.getClass());
        }
        return found;
    }

    private static boolean isKnown(long type) {
        for (long each : types) {
            if (each == type) {
                return true;
            }
        }
        return add(type);
    }

    private static synchronized boolean add(long type) {
        long[] before = types;
        for (long each : before) {
            if (each == type) {
                return true;
            }
        }
        if (before.length == MOST_TYPES) {
            return true;
        }
        long[] after = Arrays.copyOf(before, before.length + 1);
        after[before.length] = type;
        types = after;
        return false;
    }
}
