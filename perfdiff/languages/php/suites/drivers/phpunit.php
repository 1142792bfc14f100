<?php
// Lists the tests that PHPUnit selects in a project, and runs some of them, one of them several times.
//
//     php phpunit.php list [WORD...]                                       arguments of PHPUnit
//     php phpunit.php run WORDS CALLS [set=NAME] CASE [CASE...]            WORDS: a list in JSON
//
// The current folder is the project's. A CASE is `CLASS::METHOD@FILE`; the first is called CALLS times, with one data set where it is named,
// and the others once: tests that it depends on, or more of a batch. PHPUnit is the one in the project's vendor/, else that on PATH. It runs
// in this process, and what it tells of a test while it runs is heard: by a listener up to PHPUnit 9, by events from 10 on.

declare(strict_types=1);

namespace Perfdiff;

use PHPUnit\Framework\TestCase;

require __DIR__ . '/telling.php';

const LONGEST_S = 0.05; // of a test that is called again when it is listed: one that takes longer fills a run by itself
const ALIKE = ['--no-coverage', '--no-logging', '--do-not-cache-result', '--order-by=default', '--colors=never'];
const ARCHIVES = ['phpunit.phar', 'tools/phpunit.phar', 'tools/phpunit', 'bin/phpunit.phar'];
const COMMANDS = ['phpunit\textui\application', 'phpunit\textui\command']; // what scripts that start PHPUnit ask for last
const SEVERAL_FILES = '10.5'; // the first PHPUnit that takes them

/** What comes of tests, as PHPUnit tells it of each in turn. */
abstract class Watch
{
    private ?TestCase $untouched = null; // a copy of the test that runs, from before it
    public bool $is_again = false; // a test that has run: its beginning and end are known
    private float $since;
    private ?string $failure = null;
    private bool $is_skipped = false;

    public function __construct()
    {
        $this->since = now_s();
    }

    public function begins(TestCase $test, bool $is_apart): void
    {
        $this->closes();
        [$this->failure, $this->is_skipped, $this->untouched] = [null, false, clone $test];
        $this->started($test);
        $this->since = $is_apart ? $this->since : now_s();
    }

    /** Take down why the test fails that runs, or `what` before any test of its class. */
    public function fails(string $why, string $what): void
    {
        $why = explode("\n", $why)[0];
        $this->untouched === null ? $this->failed($what, $why) : $this->failure ??= $why;
    }

    public function skips(): void
    {
        $this->is_skipped = true;
    }

    public function ends(): void
    {
        if ($this->failure === null && !$this->is_skipped && $this->untouched !== null) {
            $this->passed($this->untouched, now_s() - $this->since);
        }
        $this->closes();
    }

    /** Leave a test; PHPUnit tells no end of one that fails or is skipped while it is set up. */
    public function closes(): void
    {
        if ($this->untouched === null) {
            return;
        }
        if ($this->failure !== null) {
            $this->failed(name($this->untouched), $this->failure);
        } elseif ($this->is_skipped) {
            $this->left(name($this->untouched));
        }
        [$this->untouched, $this->failure, $this->since] = [null, null, now_s()];
    }

    /** Run the test that ended once more; return its seconds, null where it does not pass again. */
    protected function again(): ?float
    {
        $test = clone $this->untouched;
        [$this->is_again, $this->failure, $this->is_skipped, $started] = [true, null, false, now_s()];
        run_again($test);
        $seconds = now_s() - $started;
        $this->is_again = false;
        [$has_passed, $this->failure] = [$this->failure === null && !$this->is_skipped, null];
        return $has_passed ? $seconds : null;
    }

    abstract protected function started(TestCase $test): void;

    abstract protected function passed(TestCase $test, float $seconds): void;

    abstract protected function failed(string $name, string $why): void;

    protected function left(string $name): void
    {
    }
}

/** Tells of each test. */
final class Listing extends Watch
{
    private bool $is_started = false;
    private array $needs = [];

    protected function started(TestCase $test): void
    {
        $this->is_started = $this->is_started || tell(['start_s' => cpu_s()]) === null;
        tell(['begins' => name($test)]);
    }

    protected function passed(TestCase $test, float $seconds): void
    {
        $needs = needs($test);
        $this->needs[method($test)] = array_values(array_unique([...array_merge(...array_map(fn ($one) => $this->needs[$one] ?? [], $needs)), ...$needs]));
        $again_s = $seconds > LONGEST_S ? null : $this->again();
        tell([
            'ends' => name($test), 'name' => method($test), 'file' => file_of($test), 'words' => $this->needs[method($test)],
            'parameters' => (object) (set_of($test) === null ? [] : ['set' => set_of($test)]),
            'seconds' => $again_s ?? $seconds, 'again' => $again_s !== null,
        ]);
    }

    protected function failed(string $name, string $why): void
    {
        tell(['ends' => $name, 'fails' => $why]);
    }

    protected function left(string $name): void
    {
        tell(['ends' => $name]);
    }
}

/**
 * Runs a test more often, and keeps which passed. Where it is asked for, it marks in what probes count where each test ends: what fails is told by
 * its mark then.
 */
final class Run extends Watch
{
    public array $passed = [];
    public array $failures = [];
    public bool $has_marks = false;

    public function __construct(private readonly string $repeated, private readonly int $calls)
    {
        parent::__construct();
    }

    protected function started(TestCase $test): void
    {
        $this->has_marks = $this->has_marks || mark('start');
    }

    protected function passed(TestCase $test, float $seconds): void
    {
        $this->passed[] = method($test);
        mark('passed ' . method($test));
        for ($call = 1; $call < $this->calls && method($test) === $this->repeated; $call++) {
            if ($this->again() === null) {
                $this->failed(name($test), 'it does not pass again');
                return;
            }
        }
    }

    protected function failed(string $name, string $why): void
    {
        $this->failures[$name] = "$name: $why";
        mark('failed ' . explode(' set=', $name)[0]);
    }
}

/** Have the probes' runtime write down what was called since the last mark; return whether it did. */
function mark(string $text): bool
{
    return function_exists('perfdiff_mark') && \perfdiff_mark($text);
}

function method(TestCase $test): string
{
    return $test::class . '::' . (method_exists($test, 'nameWithDataSet') ? $test->name() : $test->getName(false));
}

/** The name of the data set that a test is called with, as it can be printed. */
function set_of(TestCase $test): ?string
{
    $name = $test->usesDataProvider() ? $test->dataName() : null;
    return is_int($name) ? "#$name" : ($name === null ? null : printable($name));
}

function name(TestCase $test): string
{
    $set = set_of($test);
    return method($test) . ($set === null ? '' : " set=$set");
}

function file_of(TestCase $test): string
{
    $file = (string) (new \ReflectionClass($test))->getFileName();
    return str_starts_with($file, getcwd() . '/') ? substr($file, strlen(getcwd()) + 1) : $file;
}

/** The tests that have to pass before a test. */
function needs(TestCase $test): array
{
    $needs = method_exists($test, 'requires') ? $test->requires() : $test->getDependencies();
    $named = array_map(fn ($one) => preg_replace('/^.*\s/', '', is_string($one) ? $one : $one->getTarget()), $needs);
    return array_map(fn ($one) => str_contains($one, '::') ? $one : $test::class . "::$one", $named);
}

/** Have PHPUnit's classes at hand. */
function load(): void
{
    ini_get('date.timezone') || ini_set('date.timezone', 'UTC');
    foreach ([vendor() . '/autoload.php', ...near(on_path())] as $autoload) {
        if (is_file($autoload) && loads($autoload)) {
            return;
        }
    }
    $archive = current(array_filter(ARCHIVES, 'is_file'));
    if (!includes($archive === false ? on_path() : realpath($archive))) {
        give_up('PHPUnit is neither in ' . vendor() . ' nor, as `phpunit`, on PATH; ' . INSTALL);
    }
}

function loads(string $autoload): bool
{
    (static fn () => require_once realpath($autoload))();
    $is_there = class_exists('PHPUnit\Runner\Version');
    if ($is_there) {
        define('PHPUNIT_COMPOSER_INSTALL', realpath($autoload)); // tests in processes of their own load it
    }
    return $is_there;
}

/** Run a script that starts PHPUnit up to where it would start; an archive of PHPUnit that is included starts nothing. */
function includes(?string $script): bool
{
    if ($script === null) {
        return false;
    }
    $stops = static function (string $class): void {
        in_array(strtolower($class), COMMANDS, true) && throw new Loaded();
    };
    $text = file_get_contents($script);
    $is_archive = str_contains($text, '__HALT_COMPILER();');
    spl_autoload_register($stops, true, true);
    try {
        // A test in a process of its own includes there what was included here, and must not start all tests again
        $is_archive ? (static fn () => require $script)() : (static fn () => eval(preg_replace('/^(#!.*\n)?\s*<\?php\b/', '', $text)))();
    } catch (Loaded) {
    } finally {
        spl_autoload_unregister($stops);
    }
    return class_exists('PHPUnit\Runner\Version');
}

final class Loaded extends \Exception
{
}

function vendor(): string
{
    $composer = is_file('composer.json') ? json_decode(file_get_contents('composer.json'), true) : null;
    return rtrim($composer['config']['vendor-dir'] ?? 'vendor', '/');
}

function on_path(): ?string
{
    $files = array_map(fn ($folder) => "$folder/phpunit", explode(PATH_SEPARATOR, getenv('PATH') ?: ''));
    return array_values(array_filter($files, 'is_executable'))[0] ?? null;
}

/** What loads the classes of a PHPUnit that Composer laid. */
function near(?string $script): array
{
    $folder = $script === null ? null : dirname(realpath($script));
    return $folder === null ? [] : ["$folder/../autoload.php", "$folder/../../autoload.php", dirname($script) . '/../autoload.php'];
}

/** Run PHPUnit in this process, heard by a watch; return whether all tests had their turn. */
function run(array $arguments, Watch $watch): bool
{
    $arguments = ['phpunit', ...$arguments, ...ALIKE, ...bootstrap()];
    $_SERVER['argv'] = $GLOBALS['argv'] = $arguments;
    $family = version_compare(\PHPUnit\Runner\Version::id(), '10', '<') ? 'listened' : 'traced';
    require __DIR__ . "/$family.php";
    $is_complete = start($arguments, $watch);
    $watch->closes();
    return $is_complete;
}

/** What loads the classes of a project that Composer laid nothing for, in place of what its configuration names and is not there. */
function bootstrap(): array
{
    if (is_file(vendor() . '/autoload.php')) {
        return [];
    }
    require_once __DIR__ . '/autoload.php';
    $file = current(array_filter(['phpunit.xml', 'phpunit.xml.dist', 'phpunit.dist.xml'], 'is_file'));
    $named = $file === false ? '' : (string) (@simplexml_load_file($file) ?: [])['bootstrap'];
    return $named !== '' && !is_file($named) && is_autoload($named) ? ['--bootstrap', __DIR__ . '/autoload.php'] : [];
}

/** A regular expression that only the names of some tests match. */
function filter(array $cases, string $suffix): string
{
    $methods = [];
    foreach ($cases as $case) {
        [$class, $method] = [...explode('::', $case, 2), 'class'];
        $methods[preg_quote($class, '/')][] = $method === 'class' ? '.*' : preg_quote($method, '/'); // a test may depend on all of a class
    }
    $classes = array_map(fn ($class) => "$class::(?:" . implode('|', $methods[$class]) . ')', array_keys($methods));
    return '(?:' . implode('|', $classes) . ')' . $suffix;
}

function list_tests(array $words): void
{
    load();
    if (is_file('composer.json') && !is_file(vendor() . '/autoload.php')) {
        tell(['ends' => vendor() . '/autoload.php', 'fails' => LACKING]);
    }
    $left_out = array_map(function (string $case): string {
        [$method, $set] = [...explode(' set=', $case, 2), null];
        return '(?:' . filter([$method], $set === null ? '$' : exactly($set)) . ')';
    }, left_out());
    $is_complete = run([...$words, ...($left_out ? ['--filter', '/^(?!' . implode('|', $left_out) . ')/'] : [])], new Listing());
    tell(['complete' => $is_complete]);
}

/** How the name of a test ends that is called with a data set. */
function exactly(string $set): string
{
    $name = str_starts_with($set, '#') ? $set : '"' . stripcslashes($set) . '"';
    return preg_quote(" with data set $name", '/') . '$';
}

function run_tests(string $words, string $calls, string ...$cases): void
{
    load();
    $set = str_starts_with($cases[0], 'set=') ? substr(array_shift($cases), strlen('set=')) : null;
    $names = array_map(fn ($case) => explode('@', $case, 2)[0], $cases);
    $any = '(?: with data set .*)?$';
    $filters = $set === null ? [filter($names, $any)] : [filter([$names[0]], exactly($set)), ...($names[1] ?? null ? [filter(array_slice($names, 1), $any)] : [])];
    $filter = '/^(?:' . implode('|', $filters) . ')/s';
    if (@preg_match($filter, '') === false) {
        give_up(count($cases) . ' tests at once are more than PHPUnit can select by a regular expression; let fewer run');
    }
    $watch = new Run($names[0], (int) $calls);
    run([...json_decode($words, true), '--filter', $filter, ...files_of($cases, json_decode($words, true))], $watch);
    $missing = array_diff(array_filter($names, fn ($name) => !str_ends_with($name, '::class')), $watch->passed);
    $is_wanted = fn (string $name): bool => in_array(explode(' set=', $name)[0], $names, true);
    if ($watch->has_marks) {
        return;
    }
    if ($missing || array_filter($watch->failures, $is_wanted, ARRAY_FILTER_USE_KEY)) { // others fail before PHPUnit selects any
        give_up(implode("\n", [...$watch->failures, ...array_map(fn ($name) => "$name did not run", $missing)]));
    }
}

/** The files that have all cases, where PHPUnit may load them alone: it takes the class that has the file's name. */
function files_of(array $cases, array $words): array
{
    $files = [];
    foreach ($cases as $case) {
        [$name, $file] = [...explode('@', $case, 2), ''];
        $class = explode('::', $name)[0];
        $files[$file] = $file !== '' && basename($file, '.php') === substr('\\' . $class, strrpos('\\' . $class, '\\') + 1);
    }
    $is_narrowed = array_filter($words, fn ($word) => !str_starts_with($word, '-'));
    $takes = count($files) === 1 || version_compare(\PHPUnit\Runner\Version::id(), SEVERAL_FILES, '>=');
    return $is_narrowed || in_array(false, $files, true) || !$takes ? [] : array_keys($files);
}

[, $task] = $argv;
$task === 'list' ? list_tests(array_slice($argv, 2)) : run_tests(...array_slice($argv, 2));
exit(0); // PHPUnit's own code says more than whether tests pass: that some are risky, or print
