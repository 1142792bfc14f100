package perfdiff.loom;

/** A method or a class cannot carry probes; the message says why. */
final class Refused extends Exception {
    private static final long serialVersionUID = 1;

    Refused(String why) {
        super(why, null, false, false);
    }
}
