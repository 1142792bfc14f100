package perfdiff.facts;

/** Writes one line of JSON. */
final class Json {
    private final StringBuilder text = new StringBuilder();
    private boolean begun;

    Json open(char bracket) {
        comma();
        text.append(bracket);
        begun = false;
        return this;
    }

    Json close(char bracket) {
        text.append(bracket);
        begun = true;
        return this;
    }

    Json key(String name) {
        string(name);
        text.append(':');
        begun = false;
        return this;
    }

    Json string(String value) {
        comma();
        if (value == null) {
            text.append("null");
            return this;
        }
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (Character.isSurrogate(c) && !paired(value, i)) {
                text.append(String.format("\\\\u%04x", (int) c)); // no text that could be written as UTF-8 has it
            } else if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        text.append('"');
        return this;
    }

    Json number(long value) {
        comma();
        text.append(value);
        return this;
    }

    Json strings(Iterable<String> values) {
        open('[');
        for (String value : values) {
            string(value);
        }
        return close(']');
    }

    private static boolean paired(String value, int i) {
        char c = value.charAt(i);
        if (Character.isHighSurrogate(c)) {
            return i + 1 < value.length() && Character.isLowSurrogate(value.charAt(i + 1));
        }
        return i > 0 && Character.isHighSurrogate(value.charAt(i - 1));
    }

    private void comma() {
        if (begun) {
            text.append(',');
        }
        begun = true;
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
