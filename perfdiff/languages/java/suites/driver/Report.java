package perfdiff.suites;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Writes what happens to tests to a file, a line each, at once: a test may end the process. */
final class Report {
    private final FileOutputStream file;

    Report(String path) throws IOException {
        this.file = new FileOutputStream(path, true);
    }

    synchronized void tell(Object... fields) {
        List<String> encoded = new ArrayList<>();
        for (Object field : fields) {
            encoded.add(URLEncoder.encode(String.valueOf(field), StandardCharsets.UTF_8));
        }
        try {
            file.write((String.join(" ", encoded) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
