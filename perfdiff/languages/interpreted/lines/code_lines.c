/*
 * The sheet of lines, as languages/counted_code.py writes it:
 *
 *	P <places>
 *	F <absolute path>                                               one or more, of which the codes that follow are, the tree's first
 *	C <first line> <last line> <lines> {<line> <place>} <name>      one code; its name is the rest of the line
 *
 * Compiled into what counts lines in Python and PHP.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_lines.h"

static struct pd_listed_code *codes;
static struct pd_listed_file *files;
static struct pd_listed_file **index_of_files; /* by hash of the path, open addressing */
static size_t index_mask;

/* The lines may come in any order. */
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

static int read_code(struct pd_listed_code *code, char *text, uint64_t places)
{
	unsigned long pairs;

	code->first_line = (uint32_t)strtoul(text, &text, 10);
	code->last_line = (uint32_t)strtoul(text, &text, 10);
	pairs = strtoul(text, &text, 10);
	if (read_places(&code->lines, &text, pairs, places))
		return -1;
	code->name = *text ? text + 1 : text;
	return 0;
}

static size_t hash(const char *path)
{
	size_t found = 14695981039346656037u; /* FNV-1a */

	for (; *path; path++)
		found = (found ^ (unsigned char)*path) * 1099511628211u;
	return found;
}

static struct pd_listed_file **slot(const char *path)
{
	size_t i = hash(path) & index_mask;

	while (index_of_files[i] && strcmp(index_of_files[i]->path, path))
		i = (i + 1) & index_mask;
	return &index_of_files[i];
}

static int index_files(size_t count)
{
	size_t size = 64;

	while (size < 2 * count)
		size *= 2;
	index_of_files = calloc(size, sizeof(*index_of_files));
	if (!index_of_files)
		return -1;
	index_mask = size - 1;
	for (size_t i = 0; i < count; i++)
		*slot(files[i].path) = &files[i];
	return 0;
}

static int make_room(const char *text)
{
	size_t count = 1;

	for (; (text = strchr(text, '\n')); text++)
		count++;
	codes = calloc(count, sizeof(*codes));
	files = calloc(count, sizeof(*files));
	return codes && files ? 0 : -1;
}

/* Files that stand together share the codes behind them. */
static int parse(char *text, uint64_t *places)
{
	struct pd_listed_code *code;
	struct pd_listed_file *file, *together;
	char last = 0;

	if (make_room(text))
		return -1;
	code = codes;
	file = together = files;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!line[1])
			return -1;
		if (line[0] == 'F' && last != 'F')
			together = file;
		last = line[0];
		if (last == 'P') {
			*places = strtoull(line + 2, NULL, 10);
		} else if (last == 'F') {
			*file = (struct pd_listed_file){line + 2, together == file ? line + 2 : together->path, code, code};
			file++;
		} else {
			if (read_code(code++, line + 2, *places))
				return -1;
			for (struct pd_listed_file *one = together; one < file; one++)
				one->end = code;
		}
	}
	return index_files((size_t)(file - files));
}

/* Returns -1 where it cannot be read. What it holds is kept: names and paths point into it. */
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

/* Code is loaded by way of a link as well, or by a path that begins where the process stood. */
const struct pd_listed_file *pd_lines_sheet_file(const char *path, int may_lead)
{
	const struct pd_listed_file *found = index_of_files ? *slot(path) : NULL;
	char real[PATH_MAX];

	if (!found && index_of_files && may_lead && realpath(path, real))
		found = *slot(real);
	return found;
}
