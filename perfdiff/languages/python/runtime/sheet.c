/* The sheet: which functions are probed under which numbers, and what is read (written by perfdiff/languages/python/sheet.py). */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Copies the file, ended by a zero byte; never freed. */
static char *content(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *text = NULL;
	ssize_t got;
	size_t size = 0;

	if (file < 0)
		return NULL;
	if (!fstat(file, &status))
		text = malloc((size_t)status.st_size + 1);
	while (text && size < (size_t)status.st_size && (got = read(file, text + size, (size_t)status.st_size - size)) > 0)
		size += (size_t)got;
	close(file);
	if (text)
		text[size] = '\0';
	return text;
}

/* Whether a line begins with a word; moves behind it and its blank. */
static bool begins(const char **line, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*line, word, length) || (*line)[length] != ' ')
		return false;
	*line += length + 1;
	return true;
}

static size_t line_length(const char *line)
{
	return strcspn(line, "\n");
}

const char *pd_line_next(const char *line)
{
	line += line_length(line);
	return *line ? line + 1 : line;
}

static bool is_line(const char *line, const char *text)
{
	size_t length = strlen(text);

	return line_length(line) == length && !memcmp(line, text, length);
}

/* "file <module> <name>"; the name is for who reads the sheet */
static bool file_add(const char *line)
{
	struct pd_file_text *file = calloc(1, sizeof(*file));

	if (!file)
		return false;
	file->module = line;
	file->next = files;
	files = file;
	return true;
}

/* "place <path>" */
static bool place_add(const char *line)
{
	struct pd_place *place = calloc(1, sizeof(*place));

	if (!place || !files)
		return false;
	place->path = line;
	place->next = files->places;
	files->places = place;
	return true;
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
	probe->hash = hash_of(probe->name, line_length(probe->name));
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
	const char *text = content(path);
	struct pd_probe_text *probes = NULL;
	uint64_t count = 0;

	if (!text || strncmp(text, MAGIC, strlen(MAGIC)))
		return false;
	for (const char *line = text; *line; line = pd_line_next(line)) {
		const char *rest = line;

		if (begins(&rest, "file")) {
			if (!file_add(rest))
				return false;
		} else if (begins(&rest, "place")) {
			if (!place_add(rest))
				return false;
		} else if (begins(&rest, "probe")) {
			if (!probe_add(rest, &probes))
				return false;
			count++;
		}
	}
	return table_make(probes, count);
}

/* Which file a path leads to; number 0: none. */
static struct pd_identity identity_of(const char *path, size_t length)
{
	char text[PATH_MAX];
	struct stat status;

	if (length >= sizeof(text))
		return (struct pd_identity){0, 0};
	memcpy(text, path, length);
	text[length] = '\0';
	return stat(text, &status) ? (struct pd_identity){0, 0} : (struct pd_identity){status.st_dev, status.st_ino};
}

/*
 * The same of a code object's file name, which is asked for once per file of the sheet that has code of this name, as all have `<module>`.
 * What a relative one leads to depends on where the process stands.
 */
static struct pd_identity identity_of_code(const char *path)
{
	static struct pd_identity identity;
	static char *last;

	if (path[0] != '/' || !last || strcmp(last, path)) {
		free(last);
		last = strdup(path);
		identity = identity_of(path, strlen(path));
	}
	return identity;
}

static bool is_at(struct pd_place *place, struct pd_identity identity)
{
	if (!place->is_looked_up)
		place->identity = identity_of(place->path, line_length(place->path));
	place->is_looked_up = true;
	return identity.number && place->identity.number == identity.number && place->identity.device == identity.device;
}

/* Whether a code object's file name is one of the places where a file of the tree lies, as it is written or as the system finds it. */
bool pd_sheet_is_at(const struct pd_file_text *file, const char *path)
{
	struct pd_identity identity;

	for (const struct pd_place *place = file->places; place; place = place->next)
		if (is_line(place->path, path))
			return true;
	identity = identity_of_code(path);
	for (struct pd_place *place = file->places; place; place = place->next)
		if (is_at(place, identity))
			return true;
	return false;
}

const struct pd_probe_text *pd_sheet_find(int first_line, const char *name, const char *file)
{
	uint64_t hash = hash_of(name, strlen(name));

	for (struct pd_probe_text *probe = table[place_of(first_line, hash)]; probe; probe = probe->next)
		if (probe->hash == hash && probe->first_line == first_line && is_line(probe->name, name) && pd_sheet_is_at(probe->file, file))
			return probe;
	return NULL;
}

struct pd_file_text *pd_sheet_module(const char *module)
{
	size_t length = strlen(module);

	for (struct pd_file_text *file = files; file; file = file->next)
		if (!strncmp(file->module, module, length) && file->module[length] == ' ')
			return file;
	return NULL;
}
