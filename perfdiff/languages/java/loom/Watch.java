package perfdiff.loom;

/** A condition whose outcomes are counted: in two variables, how often its jump was met and how often it was passed by. */
final class Watch {
    static final int TOLD = 4; // conditions whose outcomes are handed over at once

    final int jump; // its number among the jumps of the method that have a condition
    final boolean isTakenIfTrue;

    Watch(int jump, boolean isTakenIfTrue) {
        this.jump = jump;
        this.isTakenIfTrue = isTakenIfTrue;
    }
}
