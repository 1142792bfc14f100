<?php
// Lists the subjects of phpbench's benchmarks in a project, and runs one of them, without phpbench.
//
//     php phpbench.php list [WORD...]                              each a path, or a regular expression of names
//     php phpbench.php run FILE CLASS SUBJECT CALLS [VALUE...]
//
// The current folder is the project's. What phpbench makes of a benchmark is written down in its documentation, "Annotating benchmarks" and
// "Configuration": attributes and annotations are read as they stand, so that their classes need not be there.

declare(strict_types=1);

namespace Perfdiff;

require __DIR__ . '/telling.php';

const CONFIGURATIONS = ['phpbench.json', 'phpbench.json.dist', '.phpbench.json', '.phpbench.json.dist'];
const FOLDERS = ['benchmarks', 'benchmark', 'bench', 'tests/Benchmark', 'tests/Benchmarks', 'tests/benchmarks', 'tests/Bench'];
const TRIAL_S = 0.02; // in which calls are timed
const LONGEST = 60; // characters of a value that names a point

/** What phpbench's configuration says of its runner. */
final class Settings
{
    public readonly array $paths;
    private readonly array $values;

    public function __construct()
    {
        $file = current(array_filter(CONFIGURATIONS, 'is_file'));
        $values = $file === false ? [] : json_decode(file_get_contents($file), true);
        if (!is_array($values)) {
            give_up("$file is no JSON: " . json_last_error_msg());
        }
        $this->values = $values;
        $this->paths = (array) ($this->of('path') ?? array_values(array_filter(FOLDERS, 'is_dir')));
    }

    /** A value of the runner; before phpbench 1.0 some had no `runner.` before them. */
    public function of(string $name): mixed
    {
        return $this->values["runner.$name"] ?? $this->values[$name] ?? null;
    }

    public function load(): void
    {
        foreach ($this->of('php_config') ?? [] as $name => $value) {
            ini_set($name, is_bool($value) ? (string) (int) $value : (string) $value);
        }
        $own = $this->of('bootstrap');
        $bootstrap = $own ?? 'vendor/autoload.php';
        if (is_file($bootstrap)) {
            (static fn () => require_once realpath($bootstrap))();
        } elseif (is_autoload($bootstrap)) {
            require_once __DIR__ . '/autoload.php';
            tell(['ends' => $bootstrap, 'fails' => LACKING]);
        } else {
            give_up("there is no $bootstrap here; correct runner.bootstrap of phpbench.json");
        }
    }
}

/** What attributes and annotations say of a subject, those of its class before its own. */
final class Marks
{
    private array $values = [];

    public function read(\ReflectionClass|\ReflectionMethod $of): void
    {
        preg_match_all('/(?<=[\s*])@(?:\w+\\\\)*(\w+)[ \t]*(\([^)]*\))?/', $of->getDocComment() ?: '', $found, PREG_SET_ORDER);
        $fresh = [];
        foreach ($found as $annotation) {
            $text = $annotation[2] ?? '';
            preg_match_all('/"((?:[^"]|"")*)"|(\d+)/', preg_replace('/\w+\s*=\s*true/i', '', $text), $values, PREG_SET_ORDER);
            $extends = isset($fresh[$annotation[1]]) || preg_match('/extend\s*=\s*true/i', $text);
            $before = $extends ? $this->of($annotation[1]) : [];
            $this->values[$annotation[1]] = [...$before, ...array_map(fn ($value) => $value[2] ?? $value[1], $values)];
            $fresh[$annotation[1]] = true;
        }
        foreach ($of->getAttributes() as $attribute) {
            if (preg_match('/^PhpBench\\\\(?:.*\\\\)?(\w+)$/', $attribute->getName(), $named)) {
                $given = array_values($attribute->getArguments())[0] ?? [];
                $this->values[$named[1]] = [...$this->of($named[1]), ...array_values((array) $given)];
            }
        }
    }

    public function of(string $name): array
    {
        return $this->values[$name] ?? [];
    }

    public function has(string $name): bool
    {
        return isset($this->values[$name]);
    }
}

/** A method of a class that phpbench takes for a benchmark. */
final class Subject
{
    private function __construct(
        public readonly string $file,
        public readonly string $class,
        public readonly string $method,
        private readonly Marks $marks,
        private readonly int $revs,
    ) {
    }

    public function name(): string
    {
        return "$this->class::$this->method";
    }

    /** The subjects of a class. */
    public static function in(string $file, string $class, Settings $settings): iterable
    {
        $reflection = new \ReflectionClass($class);
        $parents = [];
        for ($each = $reflection; $each; $each = $each->getParentClass()) {
            array_unshift($parents, $each);
        }
        foreach ($reflection->isInstantiable() ? $reflection->getMethods(\ReflectionMethod::IS_PUBLIC) : [] as $method) {
            $own = new Marks();
            $own->read($method);
            $is_named = preg_match('{' . ($settings->of('subject_pattern') ?? '^bench') . '}', $method->name);
            if ($method->isStatic() || !($is_named || $own->has('Subject'))) {
                continue;
            }
            $marks = new Marks();
            array_map($marks->read(...), [...$parents, $method]);
            if (!$marks->has('Skip')) {
                $revs = $marks->of('Revs') ?: (array) ($settings->of('revs') ?? 1);
                yield new self($file, $class, $method->name, $marks, max(1, ...array_map('intval', $revs)));
            }
        }
    }

    /** The parameters that it is called with, by the names of the sets. */
    public function sets(): array
    {
        $benchmark = new $this->class();
        $sets = [];
        foreach ($this->marks->of('ParamProviders') as $number => $provider) {
            $call = is_callable([$benchmark, $provider]) ? [$benchmark, $provider] : $provider;
            $own = $call();
            $own = $own instanceof \Traversable ? iterator_to_array($own) : $own;
            $named = [];
            foreach ($own as $key => $set) {
                $label = is_string($key) || !array_is_list($own) ? (is_string($key) ? printable($key) : $key) : "#$key";
                foreach ($number ? $sets : ['' => []] as $name => $before) {
                    $named[$number ? "$name, $label" : $label] = [...$before, ...$set];
                }
            }
            $sets = $named;
        }
        return $this->marks->of('ParamProviders') ? $sets : ['' => []];
    }

    /**
     * Call it so often, each of its revolutions with a new object between the methods that come before and after.
     *
     * Returns the seconds of the calls, and those of what is around a revolution.
     */
    public function run(array $parameters, int $calls): array
    {
        [$inside_s, $started, $began] = [0.0, now_s(), hrtime(true)];
        for ($done = 0; $done < $calls; $done += $this->revs) {
            $inside_s += $this->revolve($parameters, min($this->revs, $calls - $done));
        }
        [$took_s, $own_s] = [(hrtime(true) - $began) / 1e9, now_s() - $started];
        $share = min(1.0, $own_s / $took_s); // of the time in which this process had a CPU, or waited for something else
        return [$share * $inside_s, $share * ($took_s - $inside_s) / ceil($calls / $this->revs)];
    }

    /** The seconds of a call with its share of what is around, and whether it can be made again; what the first raises is the caller's. */
    public function trial(array $parameters): array
    {
        $first = $this->run($parameters, 1);
        for ($calls = 1; ; $calls *= 2) {
            try {
                [$inside_s, $around_s] = $this->run($parameters, $calls);
            } catch (\Throwable) {
                return [array_sum($first), false];
            }
            $is_whole = $calls >= $this->revs && $inside_s + $around_s * $calls / $this->revs >= TRIAL_S;
            if ($is_whole || $inside_s >= TRIAL_S) {
                return [$inside_s / $calls + $around_s / $this->revs, true];
            }
        }
    }

    public function hooks(string $name): void
    {
        foreach ($this->marks->of($name) as $method) {
            [$this->class, $method]();
        }
    }

    private function revolve(array $parameters, int $calls): float
    {
        $benchmark = new $this->class();
        foreach ($this->marks->of('BeforeMethods') as $method) {
            $benchmark->$method($parameters);
        }
        [$method, $arguments] = [$this->method, $parameters ? [$parameters] : []];
        $began = hrtime(true); // to look at anything else takes longer than a call
        for ($number = 0; $number < $calls; $number++) {
            $benchmark->$method(...$arguments);
        }
        $seconds = (hrtime(true) - $began) / 1e9;
        foreach ($this->marks->of('AfterMethods') as $method) {
            $benchmark->$method($parameters);
        }
        return $seconds;
    }
}

/** The values that name each set: those of its parameters that are numbers and short texts, where they tell sets apart, else its name. */
function points(array $sets): array
{
    $scalar = fn (array $set) => array_filter($set, fn ($value) => is_scalar($value) && strlen((string) $value) <= LONGEST);
    $values = array_map($scalar, $sets);
    $keys = array_keys(array_intersect_key(...array_values($values)));
    $values = array_map(fn ($set) => array_map(value(...), array_intersect_key($set, array_flip($keys))), $values);
    if (count(array_unique(array_map(json_encode(...), $values))) < count($sets)) {
        return array_combine(array_keys($sets), array_map(fn ($name) => ['set' => $name], array_keys($sets)));
    }
    return $values;
}

function value(mixed $value): int|float|string
{
    return match (true) {
        is_bool($value) => $value ? 'true' : 'false',
        is_int($value), is_float($value) && is_finite($value) => $value,
        default => printable((string) $value),
    };
}

/** The first class of a file, as phpbench finds it, without running the file. */
function first_class(string $file): ?string
{
    [$namespace, $before] = ['', null];
    $tokens = array_values(array_filter(\PhpToken::tokenize(file_get_contents($file)), fn ($token) => !$token->isIgnorable()));
    foreach ($tokens as $index => $token) {
        $next = $tokens[$index + 1] ?? null;
        if ($token->id === T_NAMESPACE && $next?->is([T_STRING, T_NAME_QUALIFIED])) {
            $namespace = $next->text . '\\';
        } elseif ($token->id === T_CLASS && $next?->id === T_STRING && !$before?->is([T_DOUBLE_COLON, T_NEW])) {
            return $namespace . $next->text;
        }
        $before = $token;
    }
    return null;
}

/** The files of benchmarks below paths. */
function files(array $paths, string $pattern): iterable
{
    foreach ($paths as $path) {
        if (is_file($path)) {
            yield $path;
            continue;
        }
        if (!is_dir($path)) {
            give_up("there is no $path here, where benchmarks are looked for");
        }
        $found = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($path, \FilesystemIterator::SKIP_DOTS)) as $file) {
            if (fnmatch($pattern, $file->getFilename())) {
                $found[] = (string) $file;
            }
        }
        sort($found);
        yield from $found;
    }
}

/** Load a file; what it prints is nobody's. */
function subjects_of(string $file, Settings $settings): array
{
    $class = first_class($file);
    if ($class === null) {
        return [];
    }
    require_once realpath($file);
    return iterator_to_array(Subject::in($file, $class, $settings), false);
}

function list_subjects(array $words): void
{
    $settings = new Settings();
    $paths = array_values(array_filter($words, 'file_exists'));
    $patterns = array_diff($words, $paths);
    $settings->load();
    $is_started = false;
    foreach (files($paths ?: $settings->paths, $settings->of('file_pattern') ?? '*.php') as $file) {
        attempt($file, function () use ($file, $settings, $patterns, &$is_started): void {
            $subjects = array_filter(subjects_of($file, $settings), fn ($subject) => matches($subject->name(), $patterns));
            $is_started = $is_started || tell(['start_s' => cpu_s()]) === null;
            foreach ($subjects as $number => $subject) {
                if ($number === array_key_first($subjects)) {
                    $subject->hooks('BeforeClassMethods');
                }
                attempt($subject->name(), fn () => list_subject($subject));
            }
            array_map(fn ($subject) => $subject->hooks('AfterClassMethods'), array_slice($subjects, -1));
        });
    }
    tell(['complete' => true]);
}

function list_subject(Subject $subject): void
{
    $sets = $subject->sets();
    foreach ($sets ? points($sets) : [] as $name => $values) {
        $case = trim(implode(' ', [$subject->name(), ...array_map(fn ($key) => "$key=$values[$key]", array_keys($values))]));
        attempt($case, function () use ($subject, $sets, $name, $values, $case): void {
            [$seconds, $is_again] = $subject->trial($sets[$name]);
            tell([
                'ends' => $case, 'name' => $subject->name(), 'file' => $subject->file, 'words' => [$subject->class, $subject->method],
                'parameters' => (object) $values, 'seconds' => $seconds, 'again' => $is_again,
            ]);
        });
    }
}

/** Try something, and tell why it fails; what ended an earlier process is left out. */
function attempt(string $case, callable $trial): void
{
    if (in_array($case, left_out(), true)) {
        return;
    }
    tell(['begins' => $case]);
    try {
        $trial();
        tell(['ends' => $case]);
    } catch (\Throwable $error) {
        tell(['ends' => $case, 'fails' => reason($error)]);
    }
}

function matches(string $name, array $patterns): bool
{
    return !$patterns || array_filter($patterns, fn ($pattern) => preg_match('{' . $pattern . '}', $name) === 1);
}

function run_subject(string $file, string $class, string $method, string $calls, string ...$given): void
{
    $settings = new Settings();
    $settings->load();
    foreach (subjects_of($file, $settings) as $subject) {
        $sets = strcasecmp($subject->class, $class) || $subject->method !== $method ? [] : $subject->sets();
        foreach ($sets ? points($sets) : [] as $name => $values) {
            if (array_map(written(...), array_values($values)) === array_map(written(...), $given)) {
                $subject->hooks('BeforeClassMethods');
                $subject->run($sets[$name], (int) $calls);
                $subject->hooks('AfterClassMethods');
                return;
            }
        }
    }
    give_up("$file has no $class::$method" . ($given ? ' with ' . implode(', ', $given) : ''));
}

/** A value as it is given to a run; numbers are written alike, whoever wrote them. */
function written(int|float|string $value): string
{
    return is_numeric($value) ? (string) json_encode((float) $value) : $value;
}

[, $task] = $argv;
ob_start(static fn (): string => '', 4096); // what benchmarks print is not for anybody, as with phpbench
try {
    $task === 'list' ? list_subjects(array_slice($argv, 2)) : run_subject(...array_slice($argv, 2));
} catch (\Throwable $error) {
    give_up((string) $error);
}
