/* Jumps of every kind, and conditions where they can stand. */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG 0
#define CHOOSE(flag) ((flag) ? "yes" : "no")
#define EACH(i, n) for ((i) = 0; (i) < (n); (i)++)

void not_linked(void); /* called in dead code alone: a compiler leaves it out */

static jmp_buf back;
static const int limit = 3;
static int depth_of_recursion;

static int duff(char *to, const char *from, int count)
{
	int n = (count + 3) / 4;
	switch (count % 4) {
	case 0: do { *to++ = *from++; /* fallthrough */
	case 3:      *to++ = *from++; /* fallthrough */
	case 2:      *to++ = *from++; /* fallthrough */
	case 1:      *to++ = *from++;
		} while (--n > 0);
	}
	return n;
}

static int into_a_block(int n)
{
	int sum = 0;
	if (n > 5)
		goto inside;
	while (n < 5) {
		n++;
inside:
		sum += n;
		if (sum > 20) goto out;
	}
out:
	return sum;
}

static int computed_goto(const unsigned char *code)
{
	static const void *const table[] = { &&stop, &&add, &&twice };
	int value = 1;
next:
	goto *table[*code++];
add:
	value++;
	goto next;
twice:
	value *= 2;
	goto next;
stop:
	return value;
}

static int forever(int n)
{
	while (1) {
		if (n % 7 == 0)
			return n;
		n++;
	}
}

static int constants(int n)
{
	if (DEBUG && n > 3)
		not_linked();
	if (sizeof(n) == 1)
		not_linked();
	if (limit > 2 && n)
		n++;
	for (;;) {
		if (n++ > 10) break; else continue;
	}
	return __builtin_constant_p(n) ? 0 : n;
}

static int nested(int a, int b)
{
	int c = a ? b ? 1 : 2 : b ? 3 : 4;
	if (a ? b : c) c += 10;
	if ((a = b)) c += 100;
	if (({ int t = a + b; t > 3; })) c += 1000;
	if (a && (b || c) // a comment with ) in it
	    && strlen(CHOOSE(a)) == 3
#ifdef SOME
	    && c > 3
#endif
	    ) c += 10000;
	return(c)?c:a;
}

static int loops(int n)
{
	int i, sum = 0;
	EACH(i, n)
		if (i & 1) sum += i;
	for (i = 0; i < n && sum < 1000; ++i) sum += i > 2 ? i : -i;
	do sum--; while (sum > 50);
	do { sum--; } while (({ sum > 20; }));
	while (n --> 0) if (n == 2) continue; else sum++;
	return sum;
}

static int vla(int n, int values[n])
{
	int copy[n > 0 ? n : 1], i, sum = 0;
	for (i = 0; i < n; i++) copy[i] = values[i] * 2;
	for (i = 0; i < (int)(sizeof(copy) / sizeof(copy[0])); i++) sum += copy[i];
	return sum;
}

static int sum_of(int count, ...)
{
	va_list list;
	int sum = 0;
	va_start(list, count);
	while (count-- > 0) sum += va_arg(list, int);
	va_end(list);
	return sum;
}

static void jumper(int n)
{
	if (n <= 0) longjmp(back, 7);
	if (n < 100) jumper(n - 1);
}

static int jump_out(volatile int n)
{
	int value = setjmp(back);
	if (value == 0) jumper(n);
	return value + n;
}

static unsigned tail(unsigned n, unsigned sum) { return n == 0 ? sum : tail(n - 1, sum + n); }

static int odd(int n);
static int even(int n) {return n==0?1:odd(n-1);}
static int odd(int n) {return n==0?0:even(n-1);}

static int ackermann(int m, int n)
{
	depth_of_recursion++;
	return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static void empty(void) {}
static int one_line(int n) {if(n)return 1;else return 0;}

__attribute__((noreturn)) static void leave(int status)
{
	if (status > 100) abort();
	exit(status);
}

int main(int argc, char **argv)
{
	char text[8] = "";
	int values[] = { 1, 2, 3 };
	const unsigned char code[] = { 1, 2, 2, 1, 0 };
	int i, sum = 0;

	assert(argc > 0 && argv[0] ? 1 : 0);
	duff(text, "abcdefg", 7);
	printf("%s %d %d %d\n", text, into_a_block(1), into_a_block(9), computed_goto(code));
	printf("%d %d %d\n", forever(3), constants(4), constants(0));
	for (i = 0; i < 16; i++) sum += nested(i & 3, i >> 2) + one_line(i);
	printf("%d %d %d %d\n", sum, loops(10), vla(3, values), sum_of(3, 1, 2, 3));
	printf("%d %u %d %d\n", jump_out(5), tail(1000, 0), even(10), odd(10));
	printf("%d", ackermann(2, 3));
	printf(" %d\n", depth_of_recursion);
	empty();
	leave(3);
}
