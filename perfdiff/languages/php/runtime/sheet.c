/* The sheet: which functions are probed under which numbers, and what is read (written by perfdiff/languages/php/sheet.py). */
#include <stdlib.h>
#include <string.h>

#include "php_probe.h"

#define MAGIC "perfdiff php 1\n"
#define MAIN "{main}"
#define CLOSURE "{closure"
#define KNOWN 4096 /* files */

static struct pd_file_text *files; /* the last one first */
static struct pd_probe_text **table;
static uint64_t table_mask;
static const char **names; /* of functions, without what they stand in; open addressing */
static uint64_t names_mask;
static const char *aliases; /* their lines */

/* Where a file that code was compiled from lies. */
struct known {
	char *path;
	uint64_t hash;
	struct pd_file_text *file; /* of the tree, NULL: none of them */
	const char *misplaced;	   /* the name of one that it looks like */
};
static struct known all_known[KNOWN]; /* by their paths' hash; one takes another's place */

static uint64_t place_of(uint32_t first_line, uint32_t last_line)
{
	return (((uint64_t)first_line << 32 | last_line) * 0x9e3779b97f4a7c15u) >> 20 & table_mask;
}

/* "probe <number> <first line> <last line> <name>" */
static bool probe_add(const char *line, struct pd_probe_text **probes)
{
	struct pd_probe_text *probe = calloc(1, sizeof(*probe));
	char *end;

	if (!probe || !files)
		return false;
	probe->number = (unsigned)strtoul(line, &end, 10);
	probe->first_line = (uint32_t)strtoul(end, &end, 10);
	probe->last_line = (uint32_t)strtoul(end, &end, 10);
	if (*end != ' ') {
		free(probe);
		return false;
	}
	probe->name = end + 1;
	probe->readers = pd_line_next(line);
	probe->file = files;
	if (pd_text_is(probe->name, pd_line_length(probe->name), MAIN)) {
		files->main = probe;
		return true;
	}
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
		struct pd_probe_text *probe = probes, **place = &table[place_of(probe->first_line, probe->last_line)];

		probes = probe->next;
		probe->next = *place;
		*place = probe;
	}
	return true;
}

static uint64_t name_hash(const char *name, size_t length) /* FNV-1a of small letters */
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)zend_tolower_ascii(name[i])) * 0x100000001b3u;
	return hash ^ hash >> 29;
}

static const char *own_name(const char *name)
{
	size_t length = pd_line_length(name);

	for (size_t i = length; i; i--)
		if (name[i - 1] == ':' || name[i - 1] == '\\')
			return name + i;
	return name;
}

static const char **name_place(const char *name, size_t length)
{
	uint64_t i = name_hash(name, length) & names_mask;

	while (names[i] && (pd_line_length(names[i]) != length || strncasecmp(names[i], name, length)))
		i = (i + 1) & names_mask;
	return &names[i];
}

/* Makes the names of all probes from the table that they are in, and adds those that methods of traits may have beside. */
static bool names_make(uint64_t count)
{
	names_mask = 2 * table_mask + 1; /* the table has twice as many places as there are probes */
	while (names_mask < 2 * count)
		names_mask = 2 * names_mask + 1;
	names = calloc(names_mask + 1, sizeof(*names));
	for (uint64_t i = 0; names && i <= table_mask; i++)
		for (const struct pd_probe_text *probe = table[i]; probe; probe = probe->next) {
			const char *name = own_name(probe->name);

			if (!pd_is_off(probe->number))
				*name_place(name, pd_line_length(name)) = name;
		}
	for (const char *line = aliases, *name = line; names && name && pd_line_begins(&name, "alias"); name = line = pd_line_next(line))
		*name_place(name, pd_line_length(name)) = name;
	return names != NULL;
}

bool pd_sheet_open(const char *path)
{
	const char *text = pd_text_read(path);
	struct pd_probe_text *probes = NULL;
	uint64_t count = 0, alias_count = 0;

	if (!text || strncmp(text, MAGIC, strlen(MAGIC)))
		return false;
	for (const char *line = text; *line; line = pd_line_next(line)) {
		const char *rest = line;

		if (!pd_file_read(&files, line))
			return false;
		if (pd_line_begins(&rest, "alias"))
			aliases = alias_count++ ? aliases : line;
		if (!pd_line_begins(&rest, "probe"))
			continue;
		if (!probe_add(rest, &probes))
			return false;
		count++;
	}
	return table_make(probes, count) && names_make(count + alias_count);
}

/* The name of a file of the tree by which a path ends. */
static const char *name_ending(const char *path)
{
	size_t length = strlen(path);

	for (const struct pd_file_text *file = files; file; file = file->next) {
		size_t size = pd_line_length(file->name);

		if (size < length && path[length - size - 1] == '/' && !memcmp(path + length - size, file->name, size))
			return file->name;
	}
	return NULL;
}

static struct known known_make(const char *path)
{
	struct known known = {.file = pd_file_at(files, path)};

	known.misplaced = known.file ? NULL : name_ending(path);
	return known;
}

/* What is known of the file that code was compiled from: looked up once, as each request asks for all that it loads. */
static struct known known_of(const zend_op_array *code)
{
	uint64_t hash = zend_string_hash_val(code->filename);
	const char *path = ZSTR_VAL(code->filename);
	struct known *known = &all_known[hash % KNOWN];

	if (path[0] != '/') /* it may lie elsewhere the next time */
		return known_make(path);
	if (!known->path || known->hash != hash || strcmp(known->path, path)) {
		free(known->path);
		*known = known_make(path);
		known->hash = hash;
		known->path = strdup(path);
	}
	return *known;
}

/* How well a probe's name is that of some code on the same lines: 3 the same, 2 and 1 under another name, as that of a trait; 0: another's. */
static int alikeness(const struct pd_probe_text *probe, const zend_op_array *code)
{
	const char *name = probe->name, *function, *scope, *separator;
	size_t length = pd_line_length(name), head;

	function = ZSTR_VAL(code->function_name);
	if (strstr(function, CLOSURE)) { /* from 8.4 on with what it stands in */
		if (pd_text_is(name, length, function))
			return 3;
		return memmem(name, length, CLOSURE, strlen(CLOSURE)) ? 2 : 0;
	}
	if (!code->scope)
		return pd_text_is(name, length, function) ? 3 : 0;
	separator = memmem(name, length, "::", 2);
	if (!separator)
		return 0;
	head = (size_t)(separator - name);
	scope = ZSTR_VAL(code->scope->name); /* of an anonymous class up to the zero byte in it */
	if (pd_text_is(name, head, scope))
		return pd_text_is(separator + 2, length - head - 2, function) ? 3 : 0;
	if (!code->scope->num_traits)
		return 0;
	return pd_text_is(separator + 2, length - head - 2, function) ? 2 : 1;
}

struct pd_probe_text *pd_sheet_find(const zend_op_array *code)
{
	struct pd_probe_text *found = NULL;
	int best = 0;

	if (!code->function_name) {
		const struct pd_file_text *file = known_of(code).file;

		return file ? file->main : NULL;
	}
	for (struct pd_probe_text *probe = table[place_of(code->line_start, code->line_end)]; probe; probe = probe->next) {
		int alike = probe->first_line == code->line_start && probe->last_line == code->line_end ? alikeness(probe, code) : 0;

		if (alike > best && known_of(code).file == probe->file) {
			found = probe;
			best = alike;
		}
	}
	return found;
}

bool pd_sheet_has_name(const char *name)
{
	return *name_place(name, strlen(name)) != NULL;
}

bool pd_sheet_has_lines(const zend_op_array *code)
{
	if (!code->function_name) {
		const struct pd_probe_text *probe = pd_sheet_find(code);

		return probe && !pd_is_off(probe->number);
	}
	for (const struct pd_probe_text *probe = table[place_of(code->line_start, code->line_end)]; probe; probe = probe->next)
		if (probe->first_line == code->line_start && probe->last_line == code->line_end && !pd_is_off(probe->number))
			return true;
	return false;
}

const char *pd_sheet_misplaced(const zend_op_array *code)
{
	return known_of(code).misplaced;
}
