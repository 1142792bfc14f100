/* Readers of cells behind pointers. They run before the clock of a sampled call is started, and only then. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime.h"

#define TEXT_LIMIT ((size_t)1 << 20) /* longer strings are absent: their reading would weigh on the caches */
#define PATH_LIMIT ((size_t)4096)
#define TYPE_NAME_LIMIT ((size_t)1000)
#define TYPES 1024u /* vtables whose names are kept */

static _Atomic uint64_t seen[TYPES];

static enum pd_guard guard_of(const struct pd_frame *frame)
{
	struct pd_entry *entry = (struct pd_entry *)frame->entry;

	if (entry->guard == PD_GUARD_UNKNOWN)
		entry->guard = pd_guard_find();
	return (enum pd_guard)entry->guard;
}

/* Index of the first zero byte of a little-endian word, or 8. */
static unsigned zero_byte(uint64_t word)
{
	uint64_t zeros = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;

	return zeros ? (unsigned)__builtin_ctzll(zeros) / 8 : 8;
}

/*
 * Copies a string of less than `limit` bytes into `copy` (NULL: only measure it), with its terminator. Words are aligned,
 * so that none reaches into a page the string does not touch. Returns its length, or SIZE_MAX.
 */
static size_t text_read(enum pd_guard guard, uintptr_t text, char *copy, size_t limit)
{
	size_t length = 0;

	while (length < limit) {
		size_t skipped = (text + length) % 8, room = 8 - skipped;
		uint64_t word;
		unsigned end;

		if (!copy && !((text + length) % PD_PEEK_BLOCK)) {
			uintptr_t block = pd_peek_blocks(guard, text + length, (text + limit) & ~(uintptr_t)(PD_PEEK_BLOCK - 1));

			if (!block)
				return SIZE_MAX;
			length = block - text;
		}
		if (!pd_peek(guard, text + length - skipped, 8, &word))
			return SIZE_MAX;
		word >>= 8 * skipped;
		end = zero_byte(word);
		if (end > room)
			end = (unsigned)room;
		if (length + end >= limit)
			return SIZE_MAX;
		if (copy)
			memcpy(copy + length, &word, end);
		length += end;
		if (end < room) {
			if (copy)
				copy[length] = '\0';
			return length;
		}
	}
	return SIZE_MAX;
}

static void text_length(struct pd_frame *frame, unsigned cell, uintptr_t text)
{
	struct pd_local *local = ((struct pd_entry *)frame->entry)->local;
	size_t length;

	if (!text || pd_is_brief(local))
		return;
	length = text_read(guard_of(frame), text, NULL, TEXT_LIMIT);
	local->text_bytes += length == SIZE_MAX ? TEXT_LIMIT : length;
	if (length != SIZE_MAX)
		pd_unsigned(frame, cell, length);
}

PD_API void pd_text(struct pd_frame *frame, unsigned cell, const void *text)
{
	text_length(frame, cell, (uintptr_t)text);
}

static bool path_read(const struct pd_frame *frame, const void *path, char copy[PATH_LIMIT])
{
	return path && text_read(guard_of(frame), (uintptr_t)path, copy, PATH_LIMIT) != SIZE_MAX;
}

PD_API void pd_file(struct pd_frame *frame, unsigned cell, const void *path)
{
	char copy[PATH_LIMIT];
	struct stat status;
	int error = errno;

	if (path_read(frame, path, copy) && !stat(copy, &status))
		pd_unsigned(frame, cell, (pd_cell_t)status.st_size);
	errno = error;
}

PD_API void pd_depth(struct pd_frame *frame, unsigned cell, const void *path)
{
	char copy[PATH_LIMIT];
	unsigned components = 0;

	if (!path_read(frame, path, copy))
		return;
	for (size_t i = 0; copy[i]; i++)
		components += copy[i] != '/' && (i == 0 || copy[i - 1] == '/');
	pd_unsigned(frame, cell, components);
}

/* Follows all offsets but the last through pointers. */
static bool follow(enum pd_guard guard, uintptr_t *address, unsigned depth, va_list *offsets)
{
	for (unsigned i = 0; i < depth; i++) {
		uint64_t next = *address;

		if (i > 0 && !pd_peek(guard, *address, 8, &next))
			return false;
		if (!next)
			return false;
		*address = next + va_arg(*offsets, unsigned long);
	}
	return true;
}

static uint64_t sign_extended(uint64_t value, unsigned bits)
{
	return (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
}

static uint64_t converted(uint64_t raw, enum pd_kind kind)
{
	double wide;
	float narrow;

	switch (kind) {
	case PD_I8:
		return sign_extended(raw, 8);
	case PD_I16:
		return sign_extended(raw, 16);
	case PD_I32:
		return sign_extended(raw, 32);
	case PD_BOOL:
		return raw != 0;
	case PD_F32:
		memcpy(&narrow, &raw, sizeof(narrow));
		wide = (double)narrow;
		memcpy(&raw, &wide, sizeof(raw));
		return raw;
	default:
		return raw;
	}
}

PD_API void pd_field(struct pd_frame *frame, unsigned cell, const void *base, int kind, unsigned depth, ...)
{
	static const unsigned char sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 8};
	uintptr_t address = (uintptr_t)base;
	enum pd_guard guard = guard_of(frame);
	uint64_t raw;
	va_list offsets;

	if (!base || kind < 0 || kind >= (int)sizeof(sizes))
		return;
	va_start(offsets, depth);
	/* A bool of another value than 0 and 1 was never written: it tells nothing of the call. */
	if (follow(guard, &address, depth, &offsets) && pd_peek(guard, address, sizes[kind], &raw) && !(kind == PD_BOOL && raw > 1))
		pd_unsigned(frame, cell, converted(raw, (enum pd_kind)kind));
	va_end(offsets);
}

PD_API void pd_field_text(struct pd_frame *frame, unsigned cell, const void *base, unsigned depth, ...)
{
	uintptr_t address = (uintptr_t)base;
	enum pd_guard guard = guard_of(frame);
	uint64_t text;
	va_list offsets;

	va_start(offsets, depth);
	if (base && follow(guard, &address, depth, &offsets) && pd_peek(guard, address, 8, &text))
		text_length(frame, cell, text);
	va_end(offsets);
}

PD_API void pd_span(struct pd_frame *frame, unsigned cell, const void *base, unsigned long element_size, unsigned depth, ...)
{
	uintptr_t address = (uintptr_t)base, object;
	enum pd_guard guard = guard_of(frame);
	unsigned long first_offset, last_offset;
	uint64_t first, last;
	va_list offsets;

	if (!base || !element_size || !depth)
		return;
	va_start(offsets, depth);
	if (follow(guard, &address, depth - 1, &offsets)) {
		object = address;
		if (depth > 1 && (!pd_peek(guard, address, 8, &first) || !(object = first)))
			goto end;
		first_offset = va_arg(offsets, unsigned long);
		last_offset = va_arg(offsets, unsigned long);
		if (pd_peek(guard, object + first_offset, 8, &first) && pd_peek(guard, object + last_offset, 8, &last) && last >= first)
			pd_unsigned(frame, cell, (last - first) / element_size);
	}
end:
	va_end(offsets);
}

static void type_keep(uint64_t type, const char *name, size_t length)
{
	struct pd_type_name *kept;
	struct pd_slow slow;

	pd_slow_begin(&slow);
	kept = pd_recording() ? pd_arena_take(&pd_process.arena, sizeof(*kept) + length) : NULL;
	if (kept) {
		kept->vtable = type;
		kept->length = (uint32_t)length;
		memcpy(kept->name, name, length);
		pd_block_publish(&kept->block, PD_BLOCK_TYPE, sizeof(*kept) + length);
	}
	pd_slow_end(&slow);
}

/* Itanium C++ ABI: the word before a vtable's first function is the type_info, whose second word is the mangled name. */
static void type_name_keep(enum pd_guard guard, uint64_t vtable)
{
	char name[TYPE_NAME_LIMIT];
	uint64_t info, text;
	size_t length;

	if (!pd_peek(guard, vtable - 8, 8, &info) || !info || !pd_peek(guard, info + 8, 8, &text))
		return;
	length = text_read(guard, text, name, sizeof(name));
	if (length != SIZE_MAX && length != 0)
		type_keep(vtable, name, length);
}

/* Whether a type is met for the first time, so that its name is to be kept. */
static bool type_is_new(uint64_t type)
{
	for (uint32_t i = 0, place = (uint32_t)(type >> 3); i < TYPES; i++, place++) {
		uint64_t empty = 0;

		if (atomic_load_explicit(&seen[place % TYPES], memory_order_relaxed) == type)
			return false;
		if (atomic_compare_exchange_strong(&seen[place % TYPES], &empty, type))
			return true;
		if (empty == type)
			return false;
	}
	return false;
}

/* In the child of a fork, whose recording has no names yet. */
void pd_types_forget(void)
{
	for (uint32_t i = 0; i < TYPES; i++)
		atomic_store_explicit(&seen[i], 0, memory_order_relaxed);
}

PD_API void pd_type(struct pd_frame *frame, unsigned cell, const void *object)
{
	enum pd_guard guard;
	uint64_t vtable;

	if (!object)
		return;
	guard = guard_of(frame);
	if (!pd_peek(guard, (uintptr_t)object, 8, &vtable))
		return;
	pd_unsigned(frame, cell, vtable);
	if (type_is_new(vtable))
		type_name_keep(guard, vtable);
}

/* The same for types that an interpreter knows: returns whether it is to tell this one's name by pd_type_tell. */
PD_API int pd_type_of(struct pd_frame *frame, unsigned cell, const void *type)
{
	pd_unsigned(frame, cell, (pd_cell_t)type);
	return type_is_new((uint64_t)type);
}

PD_API void pd_type_tell(const void *type, const char *name)
{
	size_t length = strnlen(name, TYPE_NAME_LIMIT);

	if (length)
		type_keep((uint64_t)type, name, length);
}
