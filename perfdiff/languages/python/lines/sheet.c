/*
 * The sheet: which codes have lines that are counted, and which place each line is. languages/counted_code.py writes it:
 *
 *	P <places>
 *	F <absolute path>                                   one or more, of which the codes that follow are
 *	C <first line> <lines> {<line> <place>} <name>      one code; its name is the rest of the line
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

struct code {
	int first_line; /* of the code: that of its first decorator */
	const char *name;
	struct pd_lines lines;
};

struct file {
	const char *path;
	size_t codes_begin, codes_end;
};

struct pd_lines pd_foreign;

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

static int read_places(struct pd_lines *lines, char **text, long pairs)
{
	const char *first = *text;
	long low = LONG_MAX, high = -1;

	for (long i = 0; i < pairs; i++) {
		long line = strtol(*text, text, 10);

		strtoul(*text, text, 10);
		low = line < low ? line : low;
		high = line > high ? line : high;
	}
	if (high < 0)
		return 0;
	lines->places = malloc((size_t)(high - low + 1) * sizeof(*lines->places));
	if (!lines->places)
		return -1;
	memset(lines->places, 0xff, (size_t)(high - low + 1) * sizeof(*lines->places));
	lines->first = (int)low;
	lines->count = (int)(high - low + 1);
	*text = (char *)first;
	for (long i = 0; i < pairs; i++) {
		long line = strtol(*text, text, 10);

		lines->places[line - low] = (uint32_t)strtoul(*text, text, 10);
	}
	return 0;
}

static int add_code(char *text)
{
	struct code *code;
	long pairs;

	if (grow((void **)&codes, &codes_room, codes_count, sizeof(*codes)))
		return -1;
	code = &codes[codes_count];
	memset(code, 0, sizeof(*code));
	code->first_line = (int)strtol(text, &text, 10);
	pairs = strtol(text, &text, 10);
	if (read_places(&code->lines, &text, pairs))
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

/* Files that stand together share the codes behind them. */
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
		if (line[0] == 'F' && last != 'F') {
			for (; group < files_count; group++)
				files[group].codes_end = codes_count;
		}
		last = line[0];
		if (last == 'P')
			*places = strtoull(line + 2, NULL, 10);
		else if (last == 'F' ? add_file(line + 2) : add_code(line + 2))
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

static const struct file *find_file(PyObject *name)
{
	PyObject *bytes = PyUnicode_EncodeFSDefault(name);
	const struct file *found;

	if (!bytes) {
		PyErr_Clear();
		return NULL;
	}
	found = *slot(PyBytes_AS_STRING(bytes));
	if (!found && PyBytes_AS_STRING(bytes)[0] != '<') {
		char path[PATH_MAX];

		/* It was imported by way of a link, or by a path that begins where the process stood. */
		if (realpath(PyBytes_AS_STRING(bytes), path))
			found = *slot(path);
	}
	Py_DECREF(bytes);
	return found;
}

struct pd_lines *pd_lines_sheet_find(PyCodeObject *code)
{
	static PyObject *last_name; /* codes of a file share its name */
	static const struct file *last_file;
	const char *name;

	if (code->co_filename != last_name) {
		Py_XDECREF(last_name);
		last_name = code->co_filename;
		Py_INCREF(last_name);
		last_file = find_file(last_name);
	}
	if (!last_file)
		return &pd_foreign;
	name = PyUnicode_AsUTF8(code->co_name);
	if (!name) {
		PyErr_Clear();
		return &pd_foreign;
	}
	for (size_t i = last_file->codes_begin; i < last_file->codes_end; i++)
		if (codes[i].first_line == code->co_firstlineno && !strcmp(codes[i].name, name))
			return &codes[i].lines;
	return &pd_foreign;
}
