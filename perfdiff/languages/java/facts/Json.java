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
            if (c == '"' || c == '\\') {
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
