/** What calls of a method cost its caller: many batches of them, compiled after the first ones. */
public final class Calibrated {
    private static final int BATCHES = 2000;
    private static final int CALLS = 2000; // some 50 µs: a batch that lasts no longer is seldom interrupted

    private static long sum;

    private Calibrated() {}

    static int called(int n) {
        return n + 1;
    }

    static void batch() {
        for (int n = 0; n < CALLS; n++) {
            sum += called(n);
        }
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < BATCHES; i++) {
            batch();
        }
    }
}
