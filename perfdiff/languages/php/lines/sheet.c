/*
 * The sheet: which functions have lines that are counted, and which place each line is. languages/counted_code.py writes it:
 *
 *	P <places>
 *	F <absolute path>                                               one or more, of which the functions that follow are
 *	C <first line> <last line> <lines> {<line> <place>} <name>      one function; its name, without its class, is the rest of the line
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

#define MAIN "{main}"

struct code {
	uint32_t first_line, last_line;
	const char *name;
	struct pd_lines lines;
};

struct file {
	const char *path;
	size_t codes_begin, codes_end;
};

static struct code *codes;
static size_t codes_count, codes_room;
static struct file *files;
static size_t files_count, files_room;
static struct file **index_of_files; /* by hash of the path, open addressing */
static size_t index_mask;

static int grow(void **items, size_t *room, size_t count, size_t size)
{
	void *larger;

	if (count < *room)
		return 0;
	larger = realloc(*items, (*room ? 2 * *room : 64) * size);
	if (!larger)
		return -1;
	*room = *room ? 2 * *room : 64;
	*items = larger;
	return 0;
}

static int add_file(const char *path)
{
	if (grow((void **)&files, &files_room, files_count, sizeof(*files)))
		return -1;
	files[files_count++] = (struct file){path, codes_count, codes_count};
	return 0;
}

/* Lines as they come in order, so that the last one tells how many places there may be. */
static int read_places(struct pd_lines *lines, char **text, unsigned long pairs, uint64_t places)
{
	char *start = *text, *end = start;
	unsigned long first = ULONG_MAX, last = 0;

	for (unsigned long i = 0; i < pairs; i++) {
		char *pair = end;
		unsigned long line = strtoul(end, &end, 10);

		strtoul(end, &end, 10);
		if (end == pair)
			return -1;
		first = line < first ? line : first;
		last = line > last ? line : last;
	}
	*text = end;
	if (!pairs)
		return 0;
	if (last - first > INT_MAX / sizeof(uint32_t))
		return -1;
	lines->first = (uint32_t)first;
	lines->count = (uint32_t)(last - first) + 1;
	lines->places = malloc(lines->count * sizeof(uint32_t));
	if (!lines->places)
		return -1;
	memset(lines->places, 0xff, lines->count * sizeof(uint32_t));
	for (unsigned long i = 0; i < pairs; i++) {
		unsigned long line = strtoul(start, &start, 10), place = strtoul(start, &start, 10);

		if (place < places)
			lines->places[line - first] = (uint32_t)place;
	}
	return 0;
}

static int add_code(char *text, uint64_t places)
{
	struct code *code;
	unsigned long pairs;

	if (grow((void **)&codes, &codes_room, codes_count, sizeof(*codes)))
		return -1;
	code = &codes[codes_count];
	memset(code, 0, sizeof(*code));
	code->first_line = (uint32_t)strtoul(text, &text, 10);
	code->last_line = (uint32_t)strtoul(text, &text, 10);
	pairs = strtoul(text, &text, 10);
	if (read_places(&code->lines, &text, pairs, places))
		return -1;
	code->name = *text ? text + 1 : text;
	codes_count++;
	return 0;
}

static size_t hash(const char *path)
{
	size_t found = 14695981039346656037u; /* FNV-1a */

	for (; *path; path++)
		found = (found ^ (unsigned char)*path) * 1099511628211u;
	return found;
}

static struct file **slot(const char *path)
{
	size_t i = hash(path) & index_mask;

	while (index_of_files[i] && strcmp(index_of_files[i]->path, path))
		i = (i + 1) & index_mask;
	return &index_of_files[i];
}

/* Files that stand together share the functions behind them. */
static int close_files(size_t begin)
{
	size_t size = 64;

	for (; begin < files_count; begin++)
		files[begin].codes_end = codes_count;
	while (size < 2 * files_count)
		size *= 2;
	index_of_files = calloc(size, sizeof(*index_of_files));
	if (!index_of_files)
		return -1;
	index_mask = size - 1;
	for (size_t i = 0; i < files_count; i++)
		*slot(files[i].path) = &files[i];
	return 0;
}

static int parse(char *text, uint64_t *places)
{
	size_t group = 0;
	char last = 0;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!line[1])
			return -1;
		if (line[0] == 'F' && last != 'F') {
			for (; group < files_count; group++)
				files[group].codes_end = codes_count;
		}
		last = line[0];
		if (last == 'P')
			*places = strtoull(line + 2, NULL, 10);
		else if (last == 'F' ? add_file(line + 2) : add_code(line + 2, *places))
			return -1;
	}
	return close_files(group);
}

/* Returns -1 with errno where it cannot be read. What it holds is kept: names and paths point into it. */
int pd_lines_sheet_read(const char *path, uint64_t *places)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	long size;
	int status = -1;

	if (!file)
		return -1;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
		text = malloc((size_t)size + 1);
		if (text && fread(text, 1, (size_t)size, file) == (size_t)size) {
			text[size] = 0;
			status = parse(text, places);
		}
	}
	fclose(file);
	return status;
}

static const struct file *find_file(const char *name)
{
	const struct file *found = *slot(name);
	char path[PATH_MAX];

	/* It was loaded by way of a link, or by a path that begins where the process stood. */
	if (!found && realpath(name, path))
		found = *slot(path);
	return found;
}

/* Functions of a file come one after the other. Names in a sheet are exact, but those that a trait's methods are given where it is used. */
struct pd_lines *pd_lines_sheet_find(const zend_op_array *code, bool *is_known)
{
	static char last_name[PATH_MAX];
	static const struct file *last_file;
	const char *name = code->function_name ? ZSTR_VAL(code->function_name) : MAIN, *file = ZSTR_VAL(code->filename);
	struct pd_lines *alike = NULL;

	*is_known = false;
	if (!index_of_files || strlen(file) >= sizeof(last_name))
		return NULL;
	if (strcmp(last_name, file)) {
		strcpy(last_name, file);
		last_file = find_file(file);
	}
	if (!last_file)
		return NULL;
	*is_known = true;
	for (size_t i = last_file->codes_begin; i < last_file->codes_end; i++) {
		bool is_main = !strcmp(codes[i].name, MAIN);

		if (code->function_name ? codes[i].first_line != code->line_start || codes[i].last_line != code->line_end || is_main : !is_main)
			continue;
		if (!strcmp(codes[i].name, name))
			return &codes[i].lines;
		alike = &codes[i].lines;
	}
	return alike;
}
