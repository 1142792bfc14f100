/* Reads the text of a sheet of probes. Compiled into what probes Python and PHP functions. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdiff_probe.h"
#include "sheet_text.h"

char *pd_text_read(const char *path)
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

size_t pd_line_length(const char *line)
{
	return strcspn(line, "\n");
}

const char *pd_line_next(const char *line)
{
	line += pd_line_length(line);
	return *line ? line + 1 : line;
}

bool pd_line_begins(const char **line, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*line, word, length) || (*line)[length] != ' ')
		return false;
	*line += length + 1;
	return true;
}

bool pd_text_is(const char *text, size_t length, const char *other)
{
	return strlen(other) == length && !memcmp(text, other, length);
}

static bool file_add(struct pd_file_text **files, const char *name)
{
	struct pd_file_text *file = calloc(1, sizeof(*file));

	if (!file)
		return false;
	file->name = name;
	file->next = *files;
	*files = file;
	return true;
}

static bool place_add(struct pd_file_text *file, const char *path)
{
	struct pd_place *place = file ? calloc(1, sizeof(*place)) : NULL;

	if (!place)
		return false;
	place->path = path;
	place->next = file->places;
	file->places = place;
	return true;
}

bool pd_file_read(struct pd_file_text **files, const char *line)
{
	if (pd_line_begins(&line, "file"))
		return file_add(files, line);
	return !pd_line_begins(&line, "place") || place_add(*files, line);
}

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
 * The same of a file that code was compiled from, which is asked for once in a row: codes of one file, and files with code of one name,
 * follow each other. What a relative path leads to depends on where the process stands.
 */
static struct pd_identity identity_of_code(const char *path)
{
	static struct pd_identity identity;
	static char last[PATH_MAX];

	if (strlen(path) >= sizeof(last))
		return (struct pd_identity){0, 0};
	if (path[0] != '/' || strcmp(last, path)) {
		strcpy(last, path);
		identity = identity_of(path, strlen(path));
	}
	return identity;
}

static bool leads_to(struct pd_place *place, struct pd_identity identity)
{
	if (!place->is_looked_up)
		place->identity = identity_of(place->path, pd_line_length(place->path));
	place->is_looked_up = true;
	return identity.number && place->identity.number == identity.number && place->identity.device == identity.device;
}

static bool is_written(const struct pd_file_text *file, const char *path)
{
	for (const struct pd_place *place = file->places; place; place = place->next)
		if (pd_text_is(place->path, pd_line_length(place->path), path))
			return true;
	return false;
}

static bool is_found(const struct pd_file_text *file, struct pd_identity identity)
{
	for (struct pd_place *place = file->places; place; place = place->next)
		if (leads_to(place, identity))
			return true;
	return false;
}

bool pd_file_is_at(const struct pd_file_text *file, const char *path)
{
	return is_written(file, path) || is_found(file, identity_of_code(path));
}

struct pd_file_text *pd_file_at(struct pd_file_text *files, const char *path)
{
	struct pd_identity identity;

	for (struct pd_file_text *file = files; file; file = file->next)
		if (is_written(file, path))
			return file;
	identity = identity_of_code(path);
	for (struct pd_file_text *file = files; file; file = file->next)
		if (is_found(file, identity))
			return file;
	return NULL;
}

void pd_note_misplaced(const char *path, const char *name, size_t length)
{
	char text[2 * PATH_MAX];

	if (snprintf(text, sizeof(text), "%s\t%.*s", path, (int)length, name) < (int)sizeof(text))
		pd_note("elsewhere", text);
}
