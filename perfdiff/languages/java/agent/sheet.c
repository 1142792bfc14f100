/*
 * The sheet of woven classes, as the loom writes it (perfdiff/languages/java/weaving.py). Numbers are of the machine's order:
 *
 * "PDWOVEN1", u32 classes, u32 remarks; then each class:
 *	u32 length of its name, u32 length of the class file, u64 digest of that, u32 length of the woven one, u32 probes,
 *	u32 number of each probe, the name, the woven class file
 * then each remark: u32 length, its text.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "java_probe.h"

#define MAGIC "PDWOVEN1"
#define PLACES 4096u

static const struct pd_woven *places[PLACES];

struct cursor {
	const unsigned char *at;
	size_t left;
};

static const void *taken(struct cursor *cursor, size_t size)
{
	const void *found = cursor->at;

	if (size > cursor->left)
		return NULL;
	cursor->at += size;
	cursor->left -= size;
	return found;
}

static bool number_read(struct cursor *cursor, uint32_t *number)
{
	const void *found = taken(cursor, sizeof(*number));

	if (found)
		memcpy(number, found, sizeof(*number));
	return found != NULL;
}

/* FNV-1a (Fowler, Noll, Vo). */
uint64_t pd_class_digest(const unsigned char *bytes, size_t length)
{
	uint64_t digest = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		digest = (digest ^ bytes[i]) * 0x100000001b3u;
	return digest;
}

static size_t place_of(const char *name, size_t length)
{
	return pd_class_digest((const unsigned char *)name, length) % PLACES;
}

/* Reads a class, and keeps it where the plan has something to do for one of its probes. */
static bool class_read(struct cursor *cursor)
{
	uint32_t name_length, length, woven_length, probes, probe;
	struct pd_woven *woven = malloc(sizeof(*woven));
	const void *digest;
	bool is_on;
	size_t place;

	if (!woven)
		return false;
	if (!number_read(cursor, &name_length) || !number_read(cursor, &length) || !(digest = taken(cursor, sizeof(woven->digest))))
		goto broken;
	if (!number_read(cursor, &woven_length) || !number_read(cursor, &probes))
		goto broken;
	is_on = !probes; /* something is counted in it */
	for (uint32_t i = 0; i < probes; i++) {
		if (!number_read(cursor, &probe))
			goto broken;
		is_on |= !pd_is_off(probe);
	}
	memcpy(&woven->digest, digest, sizeof(woven->digest));
	woven->name = taken(cursor, name_length);
	woven->name_length = name_length;
	woven->length = length;
	woven->bytes = taken(cursor, woven_length);
	woven->bytes_length = woven_length;
	if (!woven->name || !woven->bytes)
		goto broken;
	if (!is_on) {
		free(woven);
		return true;
	}
	place = place_of(woven->name, name_length);
	woven->next = places[place];
	places[place] = woven;
	return true;
broken:
	free(woven);
	return false;
}

static void remark_tell(const char *text, size_t length)
{
	char line[1024];

	if (length >= sizeof(line))
		return;
	memcpy(line, text, length);
	line[length] = '\0';
	pd_note("unwoven", line);
}

static bool sheet_read(struct cursor cursor)
{
	const void *magic = taken(&cursor, sizeof(MAGIC) - 1), *text;
	uint32_t classes, remarks, length;

	if (!magic || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) || !number_read(&cursor, &classes) || !number_read(&cursor, &remarks))
		return false;
	for (uint32_t i = 0; i < classes; i++)
		if (!class_read(&cursor))
			return false;
	for (uint32_t i = 0; i < remarks; i++) {
		if (!number_read(&cursor, &length) || !(text = taken(&cursor, length)))
			return false;
		remark_tell(text, length);
	}
	return true;
}

/* The sheet stays mapped: woven classes are copied from it. */
bool pd_sheet_open(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct cursor cursor = {NULL, 0};
	struct stat status;
	void *mapped;

	if (file < 0)
		return false;
	if (!fstat(file, &status) && status.st_size > 0) {
		mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
		if (mapped != MAP_FAILED)
			cursor = (struct cursor){mapped, (size_t)status.st_size};
	}
	close(file);
	return sheet_read(cursor);
}

/* The first class of a name, or the next one after another: programs have several of a name in several jars. */
const struct pd_woven *pd_sheet_named(const char *name, const struct pd_woven *after)
{
	size_t length = strlen(name);
	const struct pd_woven *woven = after ? after->next : places[place_of(name, length)];

	while (woven && (woven->name_length != length || memcmp(woven->name, name, length)))
		woven = woven->next;
	return woven;
}
