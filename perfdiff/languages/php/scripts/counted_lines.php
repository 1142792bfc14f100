<?php
// Says which lines of the files are counted whose paths are on standard input, one a line: one file after the other, to the file that is named
// as the argument. The extension that counts lines has the function which does it, where `PERFDIFF_DESCRIBE` is set.
foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $path) {
    file_put_contents($argv[1], "F\t$path\n", FILE_APPEND);
    perfdiff_describe($path, $argv[1]);
}
