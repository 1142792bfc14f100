<?php
// What drivers tell perfdiff of a suite that they try: a line of JSON for each event, in the file that PERFDIFF_TRIALS names.
//
//     {"start_s": CPU SECONDS}                      before the first case
//     {"begins": CASE}                              a case, or a file that is loaded
//     {"ends": CASE, "fails": WHY, ...}             and what there is to tell of one that passes, as `trials.py` reads it
//     {"complete": BOOLEAN}                         the end: whether the suite was gone through, or left where cases failed
//
// A process may end within any case, so each line is written at once. Cases in PERFDIFF_LEFT_OUT, a list in JSON, are not tried again.

declare(strict_types=1);

namespace Perfdiff;

const INSTALL = 'run `composer install` in your checkout, whose packages both revisions then have, or let each revision have its own: '
    . '[build] command = "composer install"';
const LACKING = 'is not there, so that packages of others are not: ' . INSTALL;

function tell(array $event): void
{
    static $file = null;
    $file ??= fopen(getenv('PERFDIFF_TRIALS') ?: 'php://stderr', 'ab');
    fwrite($file, json_encode($event, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES) . "\n");
    fflush($file);
}

/** The cases that are not tried again: within them an earlier process ended. */
function left_out(): array
{
    return json_decode(getenv('PERFDIFF_LEFT_OUT') ?: '[]', true);
}

/** The CPU seconds of this process. */
function cpu_s(): float
{
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'] + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e6;
}

/** The seconds of a clock that stands still while this process waits for a CPU, as far as the kernel tells. */
function now_s(): float
{
    do {
        [$waited, $now] = [waited_ns(), hrtime(true)];
    } while (waited_ns() !== $waited); // what it waits between the two would count twice, or not at all
    return ($now - $waited) / 1e9;
}

function waited_ns(): int
{
    static $file = null;
    $file ??= @fopen('/proc/self/schedstat', 'rb');
    return $file && rewind($file) ? (int) (explode(' ', fread($file, 100) ?: '')[1] ?? 0) : 0;
}

/** Text that can be printed, and stands for a text of any bytes: no two texts have the same. */
function printable(string $text): string
{
    $shown = addcslashes($text, "\0..\37\\\177" . (preg_match('//u', $text) ? '' : "\200..\377"));
    return str_starts_with($shown, '#') ? '\\' . $shown : $shown;
}

/** The first line of why something failed. */
function reason(\Throwable $error): string
{
    return $error::class . ': ' . explode("\n", $error->getMessage())[0];
}

/** Whether a file is what Composer lays, in whose place `autoload.php` may stand. */
function is_autoload(string $file): bool
{
    return basename($file) === 'autoload.php';
}

/** End with a message that says what to do. */
function give_up(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(3);
}
