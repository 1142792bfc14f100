/*
 * The C library's memory and string functions for the runtime's own use, and behind those that stand before them: the next function in
 * link order does the work.
 *
 * Until the constructor has run, perhaps while the program is still being linked, plain loops do it: they need no relocation, and the
 * empty assembler keeps the compiler from making calls of them.
 */
#undef _FORTIFY_SOURCE
#include <string.h>

#include "memory.h"
#include "pmu.h"

#ifndef PD_STATIC /* a static libc's functions cannot be replaced and used */

#define FUNCTIONS(X) \
	X(void *, memmove, (void *, const void *, size_t)) \
	X(void *, memset, (void *, int, size_t)) \
	X(void *, memchr, (const void *, int, size_t)) \
	X(void *, memrchr, (const void *, int, size_t)) \
	X(size_t, strnlen, (const char *, size_t)) \
	X(char *, strstr, (const char *, const char *))

#define DECLARE(type, name, arguments) type (*name) arguments;
static struct {
	FUNCTIONS(DECLARE)
} next;

bool pd_memory_ready;

static __attribute__((constructor(101))) void find_next(void)
{
	bool found = true;

#define FIND(type, name, arguments) \
	next.name = (type (*) arguments)pd_next_function(#name); \
	found = found && next.name;
	FUNCTIONS(FIND)
	pd_memory_ready = found;
}

#define UNRECOGNISED() __asm__ volatile("")

void *pd_move(void *to, const void *from, size_t size)
{
	char *target = to;
	const char *source = from;

	if (pd_likely(pd_memory_ready))
		return next.memmove(to, from, size);
	for (size_t i = 0; i < size; i++) {
		size_t place = (uintptr_t)target - (uintptr_t)source < size ? size - 1 - i : i;

		target[place] = source[place];
		UNRECOGNISED();
	}
	return to;
}

void *pd_set(void *to, int byte, size_t size)
{
	if (pd_likely(pd_memory_ready))
		return next.memset(to, byte, size);
	for (size_t i = 0; i < size; i++) {
		((char *)to)[i] = (char)byte;
		UNRECOGNISED();
	}
	return to;
}

size_t pd_length(const char *text, size_t limit)
{
	size_t length = 0;

	if (pd_likely(pd_memory_ready))
		return next.strnlen(text, limit);
	while (length < limit && text[length]) {
		length++;
		UNRECOGNISED();
	}
	return length;
}

const char *pd_find(const void *memory, int byte, size_t size)
{
	const char *bytes = memory;

	if (pd_likely(pd_memory_ready))
		return next.memchr(memory, byte, size);
	for (size_t i = 0; i < size; i++)
		if (bytes[i] == (char)byte)
			return bytes + i;
	return NULL;
}

const char *pd_find_last(const void *memory, int byte, size_t size)
{
	const char *bytes = memory;

	if (pd_likely(pd_memory_ready))
		return next.memrchr(memory, byte, size);
	while (size--)
		if (bytes[size] == (char)byte)
			return bytes + size;
	return NULL;
}

/* Bytes up to and with the first difference. */
size_t pd_compared(const void *one, const void *other, size_t size)
{
	const unsigned char *a = one, *b = other;
	size_t i = 0;

	for (uint64_t x, y; i + sizeof(x) <= size; i += sizeof(x)) {
		__builtin_memcpy(&x, a + i, sizeof(x));
		__builtin_memcpy(&y, b + i, sizeof(y));
		if (x != y)
			break;
	}
	while (i < size) {
		bool same = a[i] == b[i];

		i++;
		if (!same)
			break;
	}
	return i;
}

/* The same of strings, which end with their terminators. */
size_t pd_compared_text(const char *one, const char *other, size_t limit)
{
	size_t i = 0;

	while (i < limit) {
		char byte = one[i];

		if (byte != other[i++] || !byte)
			break;
	}
	return i;
}

int pd_difference(const void *one, const void *other, size_t touched)
{
	return touched ? ((const unsigned char *)one)[touched - 1] - ((const unsigned char *)other)[touched - 1] : 0;
}

const char *pd_find_text(const char *text, const char *part)
{
	size_t bytes = pd_length(part, SIZE_MAX);

	if (pd_likely(pd_memory_ready))
		return next.strstr(text, part);
	for (;; text++) {
		if (!bytes || (pd_compared_text(text, part, bytes) == bytes && text[bytes - 1] == part[bytes - 1]))
			return text;
		if (!*text)
			return NULL;
	}
}

/* The runtime's own calls, and those that the compiler makes of its text: the linker gives them to these (`--wrap`). */
#define OWN(type, name, arguments) \
	type __wrap_##name arguments; \
	type __wrap_##name arguments

OWN(void *, memcpy, (void *to, const void *from, size_t size))
{
	return pd_move(to, from, size);
}

OWN(void *, memmove, (void *to, const void *from, size_t size))
{
	return pd_move(to, from, size);
}

OWN(void *, memset, (void *to, int byte, size_t size))
{
	return pd_set(to, byte, size);
}

OWN(int, memcmp, (const void *one, const void *other, size_t size))
{
	return pd_difference(one, other, pd_compared(one, other, size));
}

OWN(size_t, strlen, (const char *text))
{
	return pd_length(text, SIZE_MAX);
}

OWN(int, strcmp, (const char *one, const char *other))
{
	return pd_difference(one, other, pd_compared_text(one, other, SIZE_MAX));
}

OWN(int, strncmp, (const char *one, const char *other, size_t limit))
{
	return pd_difference(one, other, pd_compared_text(one, other, limit));
}

OWN(char *, strcpy, (char *to, const char *from))
{
	return pd_move(to, from, pd_length(from, SIZE_MAX) + 1);
}

OWN(char *, strncpy, (char *to, const char *from, size_t size))
{
	size_t bytes = pd_length(from, size);

	pd_move(to, from, bytes);
	pd_set(to + bytes, 0, size - bytes);
	return to;
}

#endif
