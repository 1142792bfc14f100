// A coroutine's frame outlives the call that made it: coroutines carry no probe, what they call does.
#include <coroutine>
#include <cstdio>
#include <exception>

struct Numbers {
    struct promise_type {
        int value = 0;
        Numbers get_return_object() { return Numbers{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int n) { value = n; return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
    bool next() { if (handle.done()) return false; handle.resume(); return !handle.done(); }
};

static int step(int n) { return n > 2 ? 2 : 1; }

static Numbers numbers(int limit) {
    for (int n = 0; n < limit; n += step(n)) if (n != 1) co_yield n;
}

int main() {
    Numbers generator = numbers(8);
    while (generator.next()) std::printf("%d\n", generator.handle.promise().value);
    generator.handle.destroy();
}
