<?php
// How PHPUnit tells of tests from version 10 on: by events.

declare(strict_types=1);

namespace Perfdiff;

use PHPUnit\Event\Event;
use PHPUnit\Event\Facade;
use PHPUnit\Event\Test;
use PHPUnit\Framework\TestCase;

final class Tracer implements \PHPUnit\Event\Tracer\Tracer
{
    public function __construct(private readonly Watch $watch)
    {
    }

    public function trace(Event $event): void
    {
        match (true) {
            $event instanceof Test\PreparationStarted => $this->watch->is_again || $this->begins(),
            $event instanceof Test\Finished => $this->watch->is_again || $this->watch->ends(),
            $event instanceof Test\Failed, $event instanceof Test\Errored => $this->watch->fails($event->throwable()->message(), $event->test()->id()),
            $event instanceof Test\PhpunitErrorTriggered => $this->watch->fails($event->message(), $event->test()->id()),
            $event instanceof Test\BeforeFirstTestMethodErrored => $this->fails_before($event),
            $event instanceof Test\Skipped, $event instanceof Test\MarkedIncomplete => $this->watch->skips(),
            default => null,
        };
    }

    private function begins(): void
    {
        [$test, $is_apart] = $this->running();
        $test === null || $this->watch->begins($test, $is_apart);
    }

    private function fails_before(Test\BeforeFirstTestMethodErrored $event): void
    {
        $this->watch->closes();
        $this->watch->fails($event->throwable()->message(), $event->testClassName());
    }

    /** The test of the call that an event comes from, and whether it runs in a process of its own, which has ended when its events come. */
    private function running(): array
    {
        $is_apart = false;
        foreach (debug_backtrace(DEBUG_BACKTRACE_PROVIDE_OBJECT) as $frame) {
            $is_apart = $is_apart || $frame['function'] === 'forward';
            foreach ([$frame['object'] ?? null, ...$frame['args'] ?? []] as $value) {
                if ($value instanceof TestCase) {
                    return [$value, $is_apart];
                }
            }
        }
        return [null, $is_apart];
    }
}

function run_again(TestCase $test): void
{
    $test->run();
}

/** Run PHPUnit; return whether all tests had their turn: a configuration may have it stop where one fails. */
function start(array $arguments, Watch $watch): bool
{
    Facade::instance()->registerTracer(new Tracer($watch));
    (new \PHPUnit\TextUI\Application())->run($arguments);
    return !\PHPUnit\TestRunner\TestResult\Facade::shouldStop();
}
