/* The sheet: which functions are probed under which numbers, and what is read (written by perfdiff/languages/python/sheet.py). */
#include <stdlib.h>
#include <string.h>

#include "python_probe.h"

#define MAGIC "perfdiff python 1\n"

static struct pd_file_text *files; /* the last one first */
static struct pd_probe_text **table;
static uint64_t table_mask;

static uint64_t hash_of(const char *name, size_t length) /* FNV-1a */
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
	return hash;
}

static uint64_t place_of(int first_line, uint64_t hash)
{
	return (hash + (uint64_t)first_line * 0x9e3779b97f4a7c15u) >> 20 & table_mask;
}

/* "probe <number> <first line> <name>" */
static bool probe_add(const char *line, struct pd_probe_text **probes)
{
	struct pd_probe_text *probe = calloc(1, sizeof(*probe));
	char *end;

	if (!probe || !files)
		return false;
	probe->number = (unsigned)strtoul(line, &end, 10);
	probe->first_line = (int)strtol(end, &end, 10);
	probe->name = end + 1;
	probe->hash = hash_of(probe->name, pd_line_length(probe->name));
	probe->readers = pd_line_next(line);
	probe->file = files;
	probe->next = *probes;
	*probes = probe;
	return true;
}

static bool table_make(struct pd_probe_text *probes, uint64_t count)
{
	uint64_t size = 64;

	while (size < 2 * count)
		size *= 2;
	table = calloc(size, sizeof(*table));
	if (!table)
		return false;
	table_mask = size - 1;
	while (probes) {
		struct pd_probe_text *probe = probes, **place = &table[place_of(probe->first_line, probe->hash)];

		probes = probe->next;
		probe->next = *place;
		*place = probe;
	}
	return true;
}

bool pd_sheet_open(const char *path)
{
	const char *text = pd_text_read(path);
	struct pd_probe_text *probes = NULL;
	uint64_t count = 0;

	if (!text || strncmp(text, MAGIC, strlen(MAGIC)))
		return false;
	for (const char *line = text; *line; line = pd_line_next(line)) {
		const char *rest = line;

		if (!pd_file_read(&files, line))
			return false;
		if (!pd_line_begins(&rest, "probe"))
			continue;
		if (!probe_add(rest, &probes))
			return false;
		count++;
	}
	return table_make(probes, count);
}

const struct pd_probe_text *pd_sheet_find(int first_line, const char *name, const char *file)
{
	uint64_t hash = hash_of(name, strlen(name));

	for (struct pd_probe_text *probe = table[place_of(first_line, hash)]; probe; probe = probe->next) {
		if (probe->hash != hash || probe->first_line != first_line)
			continue;
		if (pd_text_is(probe->name, pd_line_length(probe->name), name) && pd_file_is_at(probe->file, file))
			return probe;
	}
	return NULL;
}

struct pd_file_text *pd_sheet_module(const char *module)
{
	size_t length = strlen(module);

	for (struct pd_file_text *file = files; file; file = file->next)
		if (!strncmp(file->name, module, length) && file->name[length] == ' ')
			return file;
	return NULL;
}
