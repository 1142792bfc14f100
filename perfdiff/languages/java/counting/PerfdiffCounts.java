package java.lang;

import jdk.internal.misc.Unsafe;

/**
 * What counted methods call: each thread has memory of its own for its counts, outside of the heap, where the agent reads them. What a thread
 * counts there is never collected, moved, or kept from another thread's cache.
 */
public final class PerfdiffCounts {
    // As in counts.h.
    private static final int THREAD = 0;
    private static final int PENDING = 8;
    private static final int BLOCKS = 16;
    private static final int OBJECTS = 24;
    private static final int BYTES = 32;
    private static final int CALLS = 64;
    private static final int TABLE_MASK = (1 << 14) - 1;

    private static final int ARRAY_HEAD = 16;

    private static final Unsafe MEMORY = Unsafe.getUnsafe();
    private static final long THREAD_ID = threadId();
    private static final long TABLE = table();
    private static final int FUNCTIONS = functions();

    private PerfdiffCounts() {}

    /** Returns where the number of a thread is; below 0 where this virtual machine keeps it elsewhere. */
    private static long threadId() {
        try {
            return MEMORY.objectFieldOffset(Thread.class, "tid");
        } catch (Throwable absent) {
            return -1;
        }
    }

    /** Returns the address of a table of threads' memory by their numbers. */
    private static native long table();

    private static native int functions();

    /** Returns the memory of the running thread, whose number it is. */
    private static native long take(long thread);

    /** Returns the memory of the running thread. */
    public static long place() {
        if (THREAD_ID < 0) {
            return take(-1);
        }
        long thread = MEMORY.getLong(Thread.currentThread(), THREAD_ID);
        long place = MEMORY.getLong(TABLE + ((thread & TABLE_MASK) << 3));
        return MEMORY.getLong(place + THREAD) == thread ? place : take(thread);
    }

    private static void add(long address, long more) {
        MEMORY.putLong(address, MEMORY.getLong(address) + more);
    }

    /** Counts a line, by where its count is in the thread's memory. */
    public static void line(long place, int offset) {
        add(place + offset, 1);
    }

    /** Counts a basic block. */
    public static void block(long place) {
        add(place + BLOCKS, 1);
    }

    /** Counts an object of so many bytes. */
    public static void object(long place, int bytes) {
        add(place + OBJECTS, 1);
        add(place + BYTES, bytes);
    }

    /** Counts an array that is about to be made; returns its length. */
    public static int array(int length, long place, int elementBytes) {
        if (length >= 0) {
            add(place + OBJECTS, 1);
            add(place + BYTES, arrayBytes(length, elementBytes));
        }
        return length;
    }

    private static long arrayBytes(long length, int elementBytes) {
        return (ARRAY_HEAD + length * elementBytes + 7) & -8;
    }

    /** Counts an array of arrays that was made, as deep as it was. */
    public static void arrays(Object[] made, long place, int depth, int elementBytes) {
        add(place + OBJECTS, 1);
        add(place + BYTES, arrayBytes(made.length, depth > 1 ? 4 : elementBytes));
        for (int i = 0; depth > 1 && i < made.length; i++) {
            if (made[i] instanceof Object[] && depth > 2) {
                arrays((Object[]) made[i], place, depth - 1, elementBytes);
            } else if (made[i] != null) {
                add(place + OBJECTS, 1);
                add(place + BYTES, arrayBytes(java.lang.reflect.Array.getLength(made[i]), depth == 2 ? elementBytes : 4));
            }
        }
    }

    /** Counts a call of a function that is not the project's, by its number. */
    public static void call(long place, int number) {
        long address = place + CALLS + ((long) number << 3);
        long before = MEMORY.getLong(address);
        MEMORY.putLong(address, before + 1);
        if (before == 0) {
            long pending = MEMORY.getLong(place + PENDING);
            if (pending < FUNCTIONS) {
                MEMORY.putLong(place + CALLS + (FUNCTIONS + pending << 3), number);
                MEMORY.putLong(place + PENDING, pending + 1);
            }
        }
    }
}
