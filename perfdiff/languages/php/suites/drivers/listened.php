<?php
// How PHPUnit 8 and 9 tell of tests: to a listener.

declare(strict_types=1);

namespace Perfdiff;

use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\Test;
use PHPUnit\Framework\TestCase;
use PHPUnit\Framework\TestListener;
use PHPUnit\Framework\TestListenerDefaultImplementation;
use PHPUnit\Framework\TestResult;
use PHPUnit\Framework\TestSuite;
use PHPUnit\Framework\Warning;

final class Listener implements TestListener
{
    use TestListenerDefaultImplementation;

    public static ?TestResult $result = null;

    public function __construct(private readonly Watch $watch)
    {
    }

    public function startTest(Test $test): void
    {
        if ($test instanceof TestCase && !$this->watch->is_again) {
            self::$result = $test->getTestResultObject() ?? self::$result;
            $this->watch->begins($test, false);
        }
    }

    private function named(Test $test): string
    {
        return $test instanceof TestSuite ? $test->getName() : ($test instanceof TestCase ? name($test) : $test::class);
    }

    public function addError(Test $test, \Throwable $error, float $time): void
    {
        $this->watch->fails(reason($error), $this->named($test));
    }

    public function addFailure(Test $test, AssertionFailedError $error, float $time): void
    {
        $this->watch->fails($error->getMessage(), $this->named($test));
    }

    public function addWarning(Test $test, Warning $warning, float $time): void
    {
        $this->watch->fails($warning->getMessage(), $this->named($test));
    }

    public function addSkippedTest(Test $test, \Throwable $error, float $time): void
    {
        $this->watch->skips();
    }

    public function addIncompleteTest(Test $test, \Throwable $error, float $time): void
    {
        $this->watch->skips();
    }

    public function endTest(Test $test, float $time): void
    {
        $this->watch->is_again || $this->watch->ends();
    }
}

function run_again(TestCase $test): void
{
    $test->run(Listener::$result);
}

/** Run PHPUnit; return whether all tests had their turn. */
function start(array $arguments, Watch $watch): bool
{
    $command = new class ($watch) extends \PHPUnit\TextUI\Command {
        public function __construct(private readonly Watch $watch)
        {
        }

        protected function handleCustomTestSuite(): void
        {
            foreach (['Defect', 'Error', 'Failure', 'Warning', 'Risky', 'Skipped', 'Incomplete'] as $outcome) {
                $this->arguments["stopOn$outcome"] = false;
            }
            $this->arguments['listeners'] = [...$this->arguments['listeners'] ?? [], new Listener($this->watch)];
        }
    };
    $command->run($arguments, false);
    return true;
}
