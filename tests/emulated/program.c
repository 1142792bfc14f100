/* Loops of so many instructions as one can count. In the second version, PARSE has one more in each round. */
#include <stdlib.h>

#if defined(__aarch64__)
#define ROUNDS(body, n) __asm__ volatile("1: " body "subs %0, %0, #1\n b.ne 1b\n" : "+r"(n) : : "cc")
#else
#define ROUNDS(body, n) __asm__ volatile("1: " body "dec %0\n jne 1b\n" : "+r"(n) : : "cc")
#endif

#ifndef PARSE
#define PARSE "nop\n "
#endif

__attribute__((noinline)) static void scan(long n)
{
	ROUNDS("nop\n nop\n ", n);
}

__attribute__((noinline)) static void parse(long n)
{
	ROUNDS(PARSE, n);
}

__attribute__((noinline)) static void serve(long n)
{
	scan(n);
	parse(n);
	scan(n / 2);
}

int main(int count, char **arguments)
{
	long n = atol(arguments[count - 1]);

	for (long i = 0; i < 40; i++)
		serve(n + 10 * i);
	return 0;
}
