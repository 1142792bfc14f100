// Exceptions, destructors and everything that runs outside of main.
#include <csetjmp>
#include <cstdio>
#include <stdexcept>
#include <string>

static int order;

struct Trace {
    const char *name;
    explicit Trace(const char *n) : name(n) { std::printf("+%s%d\n", name, ++order); }
    ~Trace() { std::printf("-%s\n", name); }
};

static int start_up(int n) { Trace inside("init"); return n > 1 ? n : 0; }
static int before_main = start_up(4);
static Trace global("global");

static int thrower(int n, const std::string &why) {
    Trace local("thrower");
    if (n == 0) throw std::runtime_error(why);
    return thrower(n - 1, why + "!");
}

static int quiet(int n) noexcept {
    try { return thrower(n, "why"); } catch (const std::exception &error) { std::printf("%s\n", error.what()); return -1; }
}

static int rethrow(int n) {
    try { thrower(n, "again"); }
    catch (...) { if (n > 1) throw; return n; }
    return 0;
}

class Guarded {
  public:
    explicit Guarded(int n) try : count_(check(n)) { if (n == 2) throw 2; Trace built("built"); }
    catch (int code) { std::printf("constructor %d\n", code > 1 ? code : 1); }
    ~Guarded() try { if (count_) std::puts("gone"); } catch (...) { }
    static int check(int n) { if (n == 3) throw 3; return n; }
  private:
    int count_;
};

static int whole_body(int n) try { return thrower(n, "whole"); } catch (const std::exception &) { return n > 0 ? 10 : 20; }

static void filter(int n) {
    for (int i = 0; i < n; ++i) {
        try { if (i % 2) throw i; std::printf("even %d\n", i); }
        catch (int odd) { std::printf("odd %d\n", odd); continue; }
    }
}

static std::jmp_buf place;
static void jump(int n) { if (n == 0) std::longjmp(place, 1); if (n < 9) jump(n - 1); }

int main() {
    std::printf("%d %d\n", quiet(2), before_main);
    try { std::printf("%d\n", rethrow(1)); rethrow(2); } catch (const std::runtime_error &error) { std::puts(error.what()); }
    for (int n = 1; n < 4; ++n) try { Guarded guarded(n); } catch (int code) { std::printf("caught %d\n", code); }
    std::printf("%d\n", whole_body(0));
    std::printf("%d\n", whole_body(1));
    filter(4);
    if (setjmp(place) == 0) jump(3); else std::puts("jumped");
    return 0;
}
