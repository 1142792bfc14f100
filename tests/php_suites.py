"""What suites of PHP projects are tested with: sources of benchmarks and tests, and what stands for a PHPUnit that cannot be installed."""

from __future__ import annotations

AUTOLOAD = """<?php
spl_autoload_register(function ($class) {
    $file = dirname(__DIR__) . '/src/' . str_replace(['Own\\\\', '\\\\'], ['', '/'], $class) . '.php';
    is_file($file) && require $file;
});
"""
NOTES = """<?php
namespace Own;

final class Notes
{
    public static function take(string $text): void
    {
        file_put_contents('notes.txt', "$text\\n", FILE_APPEND);
    }
}
"""
SHARED = """<?php
namespace Own;

abstract class Shared
{
    public function benchInherited(): void
    {
        Notes::take('inherited');
    }
}
"""
BENCH = """<?php
namespace Own\\Benchmarks;

use Own\\Notes;
use Own\\Shared;
use PhpBench\\Attributes as Bench;

/** @BeforeMethods({"prepare"}) @AfterClassMethods("close") */
#[Bench\\BeforeClassMethods('open')]
final class NotesBench extends Shared
{
    public static function open(): void
    {
        Notes::take('open');
    }

    public static function close(): void
    {
        Notes::take('close');
    }

    public function prepare(array $given): void
    {
        Notes::take('prepare ' . json_encode($given));
    }

    public function tidy(): void
    {
        Notes::take('tidy');
    }

    public function sizes(): iterable
    {
        yield 'few' => ['size' => 10, 'data' => [1, 2]];
        yield 'many' => ['size' => 1000, 'data' => [3]];
    }

    public function kinds(): array
    {
        return [['kind' => 'a "b"'], ['kind' => '10']];
    }

    public function objects(): array
    {
        return ['one' => ['data' => new \\stdClass()], "two\\n" => ['data' => null]];
    }

    #[Bench\\ParamProviders(['sizes', 'kinds']), Bench\\Revs(3), Bench\\AfterMethods('tidy')]
    public function benchSized(array $given): void
    {
        echo 'seen by nobody';
        Notes::take('sized');
    }

    /**
     * @Revs({1, 4}) @ParamProviders({"objects"})
     */
    public function benchObjects(array $given): void
    {
        Notes::take('objects ' . json_encode($given));
    }

    #[Bench\\Subject]
    public function named(): void
    {
        Notes::take('named');
    }

    public function benchOnce(): void
    {
        static $calls = 0;
        if ($calls++) {
            throw new \\LogicException('called again');
        }
    }

    public function benchThrows(): void
    {
        throw new \\RuntimeException("wrong\\nat once");
    }

    public function benchExits(): void
    {
        exit(0);
    }

    public function benchHungry(): void
    {
        ini_set('memory_limit', '32M');
        str_repeat('x', 1 << 28);
    }

    /** @Skip */
    public function benchSkipped(): void
    {
        exit(1);
    }

    public function other(): void
    {
        exit(1);
    }
}
"""
TESTS = """<?php
use Own\\Notes;
use PHPUnit\\Framework\\TestCase;

final class NotesTest extends TestCase
{
    private static int $calls = 0;

    protected function setUp(): void
    {
        Notes::take('set up');
    }

    public static function sets(): array
    {
        return ['few "\\\\{n}"' => [10], "new\\nline" => [20], [30], '#0' => [40]];
    }

    /** @dataProvider sets */
    public function testSets(int $size): void
    {
        Notes::take("size $size");
        $this->assertGreaterThan(0, $size);
    }

    public function testPrints(): void
    {
        $this->expectOutputString('printed');
        echo 'printed';
    }

    public function testRisky(): void
    {
        fwrite(STDOUT, 'garbage');
    }

    public function testFails(): void
    {
        $this->assertSame(1, 2, 'one is not two');
    }

    public function testSkipped(): void
    {
        $this->markTestSkipped('not here');
    }

    public function testOnce(): void
    {
        $this->assertSame(1, ++self::$calls);
    }

    public function testFirst(): int
    {
        Notes::take('first');
        $this->assertTrue(true);
        return 5;
    }

    /** @depends testFirst */
    public function testSecond(int $five): void
    {
        Notes::take("second $five");
        $this->assertSame(5, $five);
    }
}
"""
BROKEN = """<?php
use PHPUnit\\Framework\\TestCase;

final class BrokenTest extends TestCase
{
    protected function setUp(): void
    {
        throw new LogicException('no set up');
    }

    public function testNothing(): void
    {
    }
}
"""
ENDING = """<?php
use PHPUnit\\Framework\\TestCase;

final class EndingTest extends TestCase
{
    public function testExits(): void
    {
        exit(0);
    }

    public function testHungry(): void
    {
        ini_set('memory_limit', '32M');
        str_repeat('x', 1 << 28);
    }

    public function testHangs(): void
    {
        sleep(60);
    }

    public function testFine(): void
    {
        $this->assertTrue(true);
    }
}
"""
XML = """<phpunit bootstrap="vendor/autoload.php" stopOnFailure="true" stopOnError="true" failOnRisky="true">
<testsuites><testsuite name="all"><directory>tests</directory></testsuite></testsuites></phpunit>
"""
# What PHPUnit tells of tests from version 10 on, by its sources: events that come to a tracer from within the calls that run a test, no
# end of one that fails while it is set up, and whether it stopped where one failed.
PHPUNIT_11 = """<?php
namespace PHPUnit\\Runner { final class Version { public static function id(): string { return '11.5.0'; } } }
namespace PHPUnit\\Event\\Code {
    final class Throwable {
        public function __construct(private string $message) {}
        public function message(): string { return $this->message; }
    }
    final class Test { public function __construct(private string $id) {} public function id(): string { return $this->id; } }
}
namespace PHPUnit\\Event {
    interface Event {}
    final class Facade {
        private array $tracers = [];
        public static function instance(): self { static $instance; return $instance ??= new self(); }
        public function registerTracer(Tracer\\Tracer $tracer): void { $this->tracers[] = $tracer; }
        public function tell(Event $event): void { foreach ($this->tracers as $tracer) { $tracer->trace($event); } }
    }
}
namespace PHPUnit\\Event\\Tracer { interface Tracer { public function trace(\\PHPUnit\\Event\\Event $event): void; } }
namespace PHPUnit\\Event\\Test {
    abstract class Told implements \\PHPUnit\\Event\\Event {
        public function __construct(private string $id, private string $message = '') {}
        public function test() { return new \\PHPUnit\\Event\\Code\\Test($this->id); }
        public function throwable() { return new \\PHPUnit\\Event\\Code\\Throwable($this->message); }
    }
    final class PreparationStarted extends Told {}
    final class Finished extends Told {}
    final class Failed extends Told {}
    final class Errored extends Told {}
    final class Skipped extends Told {}
}
namespace PHPUnit\\TestRunner\\TestResult {
    final class Facade { public static bool $stop = false; public static function shouldStop(): bool { return self::$stop; } }
}
namespace PHPUnit\\Framework {
    final class Skip extends \\Exception {}
    final class Wrong extends \\Exception {}
    final class Dependency {
        public function __construct(private string $target) {}
        public function getTarget(): string { return $this->target; }
    }
    abstract class TestCase {
        private static array $results = [];
        private ?string $output = null;
        private array $data = [];
        private int|string $set = '';
        public function __construct(private string $name) {}
        public function setData(int|string $set, array $data): void { [$this->set, $this->data] = [$set, $data]; }
        public function name(): string { return $this->name; }
        public function dataName(): int|string { return $this->set; }
        public function usesDataProvider(): bool { return $this->data !== []; }
        public function nameWithDataSet(): string {
            $set = is_int($this->set) ? "#$this->set" : "\\"$this->set\\"";
            return $this->name . ($this->usesDataProvider() ? " with data set $set" : '');
        }
        public function requires(): array {
            preg_match('/@depends (\\w+)/', (new \\ReflectionMethod($this, $this->name))->getDocComment() ?: '', $found);
            return $found ? [new Dependency(static::class . "::$found[1]")] : [];
        }
        protected function setUp(): void {}
        public function assertTrue(bool $is): void { $is || throw new Wrong('not true'); }
        public function assertGreaterThan(int $least, int $value): void { $value > $least || throw new Wrong('too small'); }
        public function assertSame(mixed $one, mixed $other, string $says = ''): void { $one === $other || throw new Wrong($says); }
        public function markTestSkipped(string $why): void { throw new Skip($why); }
        public function expectOutputString(string $text): void { $this->output = $text; }
        public function run(): void { $this->runBare(); }
        public function runBare(): void {
            $facade = \\PHPUnit\\Event\\Facade::instance();
            $id = static::class . '::' . $this->nameWithDataSet();
            $facade->tell(new \\PHPUnit\\Event\\Test\\PreparationStarted($id));
            $isPrepared = false;
            ob_start();
            try {
                $this->setUp();
                $isPrepared = true;
                $given = array_map(fn ($need) => self::$results[$need->getTarget()], $this->requires());
                self::$results[static::class . "::$this->name"] = $this->{$this->name}(...[...$this->data, ...$given]);
                $this->output === null || $this->output === ob_get_contents() || throw new Wrong('other output');
            } catch (Skip) {
                $facade->tell(new \\PHPUnit\\Event\\Test\\Skipped($id));
            } catch (\\Throwable $error) {
                \\PHPUnit\\TestRunner\\TestResult\\Facade::$stop = true;
                $kind = $error instanceof Wrong ? \\PHPUnit\\Event\\Test\\Failed::class : \\PHPUnit\\Event\\Test\\Errored::class;
                $facade->tell(new $kind($id, $error->getMessage()));
            }
            ob_end_clean();
            $isPrepared && $facade->tell(new \\PHPUnit\\Event\\Test\\Finished($id));
        }
    }
}
namespace PHPUnit\\TextUI {
    final class Application {
        public function run(array $words): int {
            $at = array_search('--filter', $words, true);
            $filter = $at === false ? '/^/' : $words[$at + 1];
            $files = array_filter($words, fn ($word) => str_ends_with($word, 'Test.php')) ?: glob('tests/*Test.php');
            foreach ($files as $file) {
                require_once $file;
                foreach ((new \\ReflectionClass(basename($file, '.php')))->getMethods() as $method) {
                    foreach (str_starts_with($method->name, 'test') ? $this->tests($method) : [] as $test) {
                        $isSelected = preg_match($filter, $method->class . '::' . $test->nameWithDataSet());
                        $isSelected && !\\PHPUnit\\TestRunner\\TestResult\\Facade::$stop && $test->run();
                    }
                }
            }
            return 0;
        }
        private function tests(\\ReflectionMethod $method): iterable {
            preg_match('/@dataProvider (\\w+)/', $method->getDocComment() ?: '', $found);
            foreach ($found ? ($method->class . "::$found[1]")() : ['' => []] as $set => $data) {
                $test = new $method->class($method->name);
                $test->setData($set, $data);
                yield $test;
            }
        }
    }
}
"""
