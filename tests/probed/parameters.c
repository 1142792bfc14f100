/* Everything a parameter can be, and pointers that lead nowhere. */
#include <complex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

enum color { RED, GREEN = 5, BLUE };
struct hidden;
union number { int i; float f; };
struct inner { short low, high; char *label; };
struct node { struct node *next; struct inner inner; union number number; struct { int x, y; }; unsigned bits : 5; volatile int beat;
	_Atomic int counter; double weight; bool on; enum color color; const char *begin, *end; char name[16]; struct hidden *hidden;
	long double wide; _Complex float turn; int (*call)(int); void *any; __int128 huge; };

static volatile int signalled;
static _Atomic int references;
static _Thread_local int per_thread;
static enum color paint = BLUE;
static struct node *everywhere;

static int scalars(char c, signed char s, unsigned char u, short h, unsigned long l, long long ll, float f, double d, long double w, bool b,
		   enum color color, wchar_t wide, _Complex double z, __int128 huge)
{
	return c + s + u + h + (int)l + (int)ll + (int)f + (int)d + (int)w + b + (int)color + (int)wide + (int)creal(z) + (int)huge;
}

static int strange(volatile int v, _Atomic int a, const int k, register int r, int array[static 2], int matrix[][3], const char *restrict text)
{
	signalled = v;
	return v + a + k + r + array[1] + matrix[0][2] + text[0];
}

static int wild(struct node *node, struct node **nodes, const char *file, volatile struct node *device, const struct node *first,
		const struct node *last, struct hidden *hidden, void *any, union number *number)
{
	return !!node + !!nodes + !!file + !!device + !!first + !!last + !!hidden + !!any + !!number + (everywhere ? 1 : 0);
}

static int by_value(struct node node, struct inner inner, union number number)
{
	return node.inner.low + inner.high + number.i + (node.on ? node.x : node.y);
}

static int arguments(const char *format, va_list list) { return vprintf(format, list) > 3 ? 1 : 0; }

static int forward(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int result = arguments(format, list);
	va_end(list);
	return result;
}

static int globals(int paint_level)
{
	extern int hidden_here;
	static int times;
	int paint_total = paint == BLUE ? paint_level : 0;
	per_thread++;
	references++;
	return paint_total + per_thread + references + hidden_here + ++times;
}
int hidden_here = 40;

static int range(int lo, int hi, const int *begin, const int *end) { return hi > lo ? (int)(end - begin) : 0; }
static int (*pick(int which))(int);
static int twice(int n) { return n * 2; }
static int (*pick(int which))(int) { return which ? twice : 0; }

int main(void)
{
	struct node node = { .inner = { 1, 2, "label" }, .x = 3, .y = 4, .on = true, .begin = "abc", .name = "node" }, *itself = &node;
	union number number = { .i = 9 };
	int array[2] = { 5, 6 }, matrix[1][3] = { { 7, 8, 9 } };
	node.end = node.begin + 3;
	node.next = (struct node *)16;
	printf("%d\n", scalars('a', -1, 200, -5, 7, 8, 1.5f, 2.5, 3.5L, true, GREEN, L'x', 4.0, 11));
	printf("%d\n", strange(1, 2, 3, 4, array, matrix, "text"));
	printf("%d\n", wild((struct node *)8, (struct node **)-8, (const char *)1, (void *)3, (void *)24, (void *)240, (void *)5, (void *)7, (void *)9));
	printf("%d\n", wild(&node, &itself, "/etc", 0, &node, &node + 1, 0, 0, &number));
	printf("%d\n", wild(0, 0, 0, 0, 0, 0, 0, 0, 0));
	printf("%d\n", by_value(node, node.inner, number));
	printf("%d\n", forward("%d %s\n", 1, "two"));
	printf("%d", globals(3));
	printf(" %d\n", globals(4));
	printf("%d %d\n", range(3, 9, array, array + 2), pick(1)(21));
	return 0;
}
