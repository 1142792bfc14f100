// Templates, lambdas, classes of many shapes, and what they are given.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

struct Incomplete;
namespace outer { inline namespace v1 { int counter = 3; } namespace { bool verbose = false; } }

template <class T> T larger(T a, T b) { return a < b ? b : a; }
template <class T, int N> int fixed(const T (&values)[N]) { int n = 0; for (const T &v : values) if (v > N) n++; return n; }
template <class... Rest> int arity(int first, Rest... rest) { if constexpr (sizeof...(rest) > 0) return first + arity(rest...); else return first; }
template <bool Flag> int flagged(int n) { if (Flag && n > 1) return 2; return Flag ? 1 : 0; }

template <class T> class Stack {
  public:
    void push(const T &value) { if (items_.size() < limit_) items_.push_back(value); }
    template <class F> int count(F &&wanted) const { int n = 0; for (const auto &item : items_) if (wanted(item)) ++n; return n; }
    static int made;
  private:
    std::vector<T> items_;
    std::size_t limit_ = 8;
    int padding_ : 4;
};
template <class T> int Stack<T>::made = 0;
template <> int larger<int>(int a, int b) { return a > b ? a : b; }

constexpr int square(int n) { return n > 0 ? n * n : 0; }
constexpr bool positive(int n) { if (n > 0) return true; return false; }

class Shape {
  public:
    virtual ~Shape() = default;
    virtual int area() const { return 0; }
    int scaled(int by) const { return by > 1 ? area() * by : area(); }
  protected:
    int id_ = 1;
};
struct Named { std::string name; char tag = 'n'; };
class Square final : public Named, public Shape {
  public:
    explicit Square(int side) : side_(side) { if (side > 3) name = "big"; }
    int area() const override { return side_ > 0 ? side_ * side_ : 0; }
    bool operator<(const Square &other) const { return side_ < other.side_; }
    Square &operator=(const Square &other) & { if (this != &other) side_ = other.side_; return *this; }
    Square(const Square &) = default;
    explicit operator bool() const { return side_ != 0; }
    int *operator&() = delete;
    static int total;
  private:
    int side_;
};
int Square::total = 0;
struct Diamond : virtual Shape { int extra = 2; int sum() const { return extra > 1 ? extra + id_ : 0; } };

static int containers(const std::vector<int> &v, const std::string &path, std::map<int, std::string> m, std::list<int> *l, std::deque<int> &d,
                      std::unordered_map<std::string, int> &u, std::string_view view, const std::vector<Incomplete *> &w, std::vector<bool> &bits,
                      std::set<int> &&s, std::unique_ptr<Square> owned, const std::shared_ptr<Shape> &shared, Incomplete &unknown) {
    (void)unknown;
    return int(v.size() + path.size() + m.size() + (l ? l->size() : 0) + d.size() + u.size() + view.size() + w.size() + bits.size() + s.size()) +
           (owned ? owned->area() : 0) + (shared ? shared->area() : 0);
}

static int references(int &n, const double &x, int *&p, Square &square, Shape &shape, int (&array)[3], int Square::*member, std::nullptr_t) {
    if (member) n++;
    return n + int(x) + *p + (square ? array[1] : shape.scaled(2));
}

static int lambdas(int n) {
    int base = 10, steps = 0;
    auto add = [base, &steps](int value) { if (value > 2) steps++; return base + value; };
    auto generic = [&](auto a, auto b) { return a > b ? a : static_cast<decltype(a)>(b); };
    auto counter = [count = n]() mutable { return count > 0 ? count-- : 0; };
    auto nested = [=](int a) { return [=](int b) { return a > b ? a + base : b; }; };
    if ([&] { return n > 3; }()) steps += 100;
    std::function<int(int)> recurse = [&recurse](int k) { return k < 2 ? k : recurse(k - 1) + recurse(k - 2); };
    return add(3) + generic(1, 2.5) + counter() + counter() + nested(3)(2) + recurse(7) + steps;
}

static int local_class(int n) {
    struct Local {
        int value;
        int twice(int k) { if (k > value) return k * 2; return value; }
    };
    if (Local local{n}; local.value > 2) return local.twice(3);
    if (int m = n + 1) return Local{m}.twice(5);
    return 0;
}

static int constants(int n) {
    constexpr int four = square(2) > 3 ? 4 : 5;
    static_assert(positive(3) ? true : false, "");
    const int length = square(2) ? 3 : 2;
    int array[length] = {1, 2, 3};
    enum { Size = sizeof(int) == 4 ? 1 : 2 };
    switch (n) { case (four > 3 ? 1 : 2): return 11; default: break; }
    std::integral_constant<int, (four > 3 ? 7 : 8)> seven;
    return (outer::counter > 2 ? array[2] : 0) + (outer::verbose ? 1 : 0) + Size + seven();
}

int main() {
    std::vector<int> v{3, 1, 2};
    std::list<int> l{1, 2};
    std::deque<int> d{1};
    std::unordered_map<std::string, int> u{{"a", 1}};
    std::vector<bool> bits(5);
    std::vector<Incomplete *> w;
    int n = 1, k = 5, *p = &k, array[3] = {1, 2, 3};
    Square square(4), other(2);
    Diamond diamond;
    auto *nothing = reinterpret_cast<Incomplete *>(&n);
    std::sort(v.begin(), v.end(), [](int a, int b) { return a != b ? a > b : false; });
    std::printf("%d %s %d %d %d\n", larger(1, 2), larger(std::string("a"), std::string("b")).c_str(), fixed(array), arity(1, 2, 3), flagged<true>(2));
    std::printf("%d %d\n", flagged<false>(2), containers(v, "/tmp/file", {{1, "x"}}, &l, d, u, "view", w, bits, {1, 2}, std::make_unique<Square>(2),
                                                         std::make_shared<Square>(3), *nothing));
    std::printf("%d\n", references(n, 2.5, p, square, diamond, array, nullptr, nullptr));
    Stack<int> stack;
    for (int i = 0; i < 12; ++i) stack.push(i);
    other = square;
    std::printf("%d %d %d %d\n", stack.count([](int i) { return i > 3; }), lambdas(4), local_class(3), local_class(0));
    std::printf("%d %d %d %d %d\n", constants(1), constants(2), v[0], other.scaled(3), other < square);
    std::printf("%d %d\n", diamond.sum(), square.scaled(1));
}
