/*
 * The C library's memory and string functions, called by the program and its libraries: the bytes they touch are reported. Calls that
 * the C library makes itself are not seen.
 */
#undef _FORTIFY_SOURCE
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "memory.h"

/* clang's own forms of what a program's text asks for; those that it makes up itself are plain calls. */
PD_API void *__tsan_memcpy(void *to, const void *from, size_t size);
PD_API void *__tsan_memmove(void *to, const void *from, size_t size);
PD_API void *__tsan_memset(void *to, int byte, size_t size);

#ifdef PD_STATIC /* a static libc's functions cannot be replaced and used */

static void report_move(void *to, const void *from, size_t size)
{
	if (size) {
		pd_access_read(from, size);
		pd_access_write(to, size);
	}
}

PD_API void *__tsan_memcpy(void *to, const void *from, size_t size)
{
	report_move(to, from, size);
	return memcpy(to, from, size);
}

PD_API void *__tsan_memmove(void *to, const void *from, size_t size)
{
	report_move(to, from, size);
	return memmove(to, from, size);
}

PD_API void *__tsan_memset(void *to, int byte, size_t size)
{
	if (size)
		pd_access_write(to, size);
	return memset(to, byte, size);
}

#else

static void report_read(const void *from, size_t size)
{
	if (pd_memory_ready && size)
		pd_access_read(from, size);
}

static void report_write(const void *to, size_t size)
{
	if (pd_memory_ready && size)
		pd_access_write(to, size);
}

static void *moved(void *to, const void *from, size_t size)
{
	report_read(from, size);
	report_write(to, size);
	return pd_move(to, from, size);
}

static void *filled(void *to, int byte, size_t size)
{
	report_write(to, size);
	return pd_set(to, byte, size);
}

PD_API void *memcpy(void *to, const void *from, size_t size)
{
	return moved(to, from, size);
}

PD_API void *memmove(void *to, const void *from, size_t size)
{
	return moved(to, from, size);
}

PD_API void *mempcpy(void *to, const void *from, size_t size)
{
	return (char *)moved(to, from, size) + size;
}

PD_API void *memset(void *to, int byte, size_t size)
{
	return filled(to, byte, size);
}

PD_API void *__tsan_memcpy(void *to, const void *from, size_t size)
{
	return moved(to, from, size);
}

PD_API void *__tsan_memmove(void *to, const void *from, size_t size)
{
	return moved(to, from, size);
}

PD_API void *__tsan_memset(void *to, int byte, size_t size)
{
	return filled(to, byte, size);
}

PD_API int memcmp(const void *one, const void *other, size_t size)
{
	size_t touched = pd_compared(one, other, size);

	report_read(one, touched);
	report_read(other, touched);
	return pd_difference(one, other, touched);
}

/* What clang makes of a memcmp whose sign nobody asks for. */
PD_API int bcmp(const void *one, const void *other, size_t size)
{
	return memcmp(one, other, size);
}

PD_API void *memchr(const void *memory, int byte, size_t size)
{
	const char *found = pd_find(memory, byte, size);

	report_read(memory, found ? (size_t)(found - (const char *)memory) + 1 : size);
	return (void *)found;
}

PD_API void *memrchr(const void *memory, int byte, size_t size)
{
	const char *found = pd_find_last(memory, byte, size), *from = found ? found : memory;

	report_read(from, size - (size_t)(from - (const char *)memory));
	return (void *)found;
}

PD_API size_t strlen(const char *text)
{
	size_t bytes = pd_length(text, SIZE_MAX);

	report_read(text, bytes + 1);
	return bytes;
}

/* Bytes read by a function that looks for the end of a text of `length` within `limit`. */
static size_t ended(size_t length, size_t limit)
{
	return length < limit ? length + 1 : limit;
}

static int ordered(const char *one, const char *other, size_t limit)
{
	size_t touched = pd_compared_text(one, other, limit);

	report_read(one, touched);
	report_read(other, touched);
	return pd_difference(one, other, touched);
}

/* Copies a text with its terminator; returns where the terminator lies. */
static char *copied(char *to, const char *from)
{
	size_t bytes = pd_length(from, SIZE_MAX);

	return (char *)moved(to, from, bytes + 1) + bytes;
}

static char *copied_padded(char *to, const char *from, size_t size)
{
	size_t bytes = pd_length(from, size);

	report_read(from, ended(bytes, size));
	report_write(to, size);
	pd_move(to, from, bytes);
	pd_set(to + bytes, 0, size - bytes);
	return to + bytes;
}

static void appended(char *to, const char *from, size_t limit)
{
	size_t before = pd_length(to, SIZE_MAX), bytes = pd_length(from, limit);

	report_read(to, before + 1);
	report_read(from, ended(bytes, limit));
	report_write(to + before, bytes + 1);
	pd_move(to + before, from, bytes);
	to[before + bytes] = '\0';
}

PD_API size_t strnlen(const char *text, size_t limit)
{
	size_t bytes = pd_length(text, limit);

	report_read(text, ended(bytes, limit));
	return bytes;
}

PD_API int strcmp(const char *one, const char *other)
{
	return ordered(one, other, SIZE_MAX);
}

PD_API int strncmp(const char *one, const char *other, size_t limit)
{
	return ordered(one, other, limit);
}

PD_API char *strcpy(char *to, const char *from)
{
	copied(to, from);
	return to;
}

PD_API char *stpcpy(char *to, const char *from)
{
	return copied(to, from);
}

PD_API char *strncpy(char *to, const char *from, size_t size)
{
	copied_padded(to, from, size);
	return to;
}

PD_API char *stpncpy(char *to, const char *from, size_t size)
{
	return copied_padded(to, from, size);
}

PD_API char *strcat(char *to, const char *from)
{
	appended(to, from, SIZE_MAX);
	return to;
}

PD_API char *strncat(char *to, const char *from, size_t limit)
{
	appended(to, from, limit);
	return to;
}

PD_API char *strchr(const char *text, int byte)
{
	size_t bytes = pd_length(text, SIZE_MAX) + 1;
	const char *found = pd_find(text, byte, bytes);

	report_read(text, found ? (size_t)(found - text) + 1 : bytes);
	return (char *)found;
}

PD_API char *strrchr(const char *text, int byte)
{
	size_t bytes = pd_length(text, SIZE_MAX) + 1;

	report_read(text, bytes);
	return (char *)pd_find_last(text, byte, bytes);
}

PD_API char *strstr(const char *text, const char *part)
{
	const char *found = pd_find_text(text, part);
	size_t bytes = pd_length(part, SIZE_MAX);

	report_read(part, bytes + 1);
	report_read(text, found ? (size_t)(found - text) + bytes : pd_length(text, SIZE_MAX) + 1);
	return (char *)found;
}

static char *duplicate(const char *text, size_t limit, const void *site)
{
	size_t bytes = pd_length(text, limit);
	char *copy = malloc(bytes + 1);

	report_read(text, ended(bytes, limit));
	if (copy) {
		pd_allocated_for(copy, site);
		report_write(copy, bytes + 1);
		pd_move(copy, text, bytes);
		copy[bytes] = '\0';
	}
	return copy;
}

PD_API char *strdup(const char *text)
{
	return duplicate(text, SIZE_MAX, __builtin_return_address(0));
}

PD_API char *strndup(const char *text, size_t limit)
{
	return duplicate(text, limit, __builtin_return_address(0));
}

/* What these become with _FORTIFY_SOURCE, where `room` bytes are known to be there; glibc then says why the program is aborted. */
extern void __chk_fail(void) __attribute__((weak, noreturn));

static void check(size_t size, size_t room)
{
	if (pd_unlikely(size > room) && __chk_fail)
		__chk_fail();
}

#define CHECKED(type, name, arguments) \
	PD_API type name arguments; \
	PD_API type name arguments

CHECKED(void *, __memcpy_chk, (void *to, const void *from, size_t size, size_t room))
{
	check(size, room);
	return moved(to, from, size);
}

CHECKED(void *, __memmove_chk, (void *to, const void *from, size_t size, size_t room))
{
	check(size, room);
	return moved(to, from, size);
}

CHECKED(void *, __mempcpy_chk, (void *to, const void *from, size_t size, size_t room))
{
	check(size, room);
	return (char *)moved(to, from, size) + size;
}

CHECKED(void *, __memset_chk, (void *to, int byte, size_t size, size_t room))
{
	check(size, room);
	return filled(to, byte, size);
}

CHECKED(char *, __strcpy_chk, (char *to, const char *from, size_t room))
{
	check(pd_length(from, SIZE_MAX) + 1, room);
	copied(to, from);
	return to;
}

CHECKED(char *, __stpcpy_chk, (char *to, const char *from, size_t room))
{
	check(pd_length(from, SIZE_MAX) + 1, room);
	return copied(to, from);
}

CHECKED(char *, __strncpy_chk, (char *to, const char *from, size_t size, size_t room))
{
	check(size, room);
	copied_padded(to, from, size);
	return to;
}

CHECKED(char *, __stpncpy_chk, (char *to, const char *from, size_t size, size_t room))
{
	check(size, room);
	return copied_padded(to, from, size);
}

CHECKED(char *, __strcat_chk, (char *to, const char *from, size_t room))
{
	check(pd_length(to, SIZE_MAX) + pd_length(from, SIZE_MAX) + 1, room);
	appended(to, from, SIZE_MAX);
	return to;
}

CHECKED(char *, __strncat_chk, (char *to, const char *from, size_t limit, size_t room))
{
	check(pd_length(to, SIZE_MAX) + pd_length(from, limit) + 1, room);
	appended(to, from, limit);
	return to;
}

#endif
