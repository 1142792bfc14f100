/* The text of a sheet of probes: its lines, and the files that they are of. */
#ifndef PERFDIFF_SHEET_TEXT_H
#define PERFDIFF_SHEET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Which file of the system one is. */
struct pd_identity {
	dev_t device;
	ino_t number; /* 0: none */
};

/* Where a file of the sheet may be loaded from. */
struct pd_place {
	const char *path; /* to the end of the line */
	struct pd_place *next;
	struct pd_identity identity;
	bool is_looked_up;
};

struct pd_probe_text; /* of each language */

/* A file's lines of the sheet. */
struct pd_file_text {
	const char *name; /* to the end of the line: what the language says of it */
	struct pd_place *places;
	struct pd_probe_text *main; /* of the file's own code, where the language keeps it here */
	struct pd_file_text *next;
};

/* Copies a file, ended by a zero byte, for the caller to free; NULL where it cannot be read. */
char *pd_text_read(const char *path);

size_t pd_line_length(const char *line);
const char *pd_line_next(const char *line);
bool pd_line_begins(const char **line, const char *word); /* moves behind the word and its blank */
bool pd_text_is(const char *text, size_t length, const char *other);

/* Reads a line "file <name>" or "place <path>" into the list of files, the last one first; false where there is no room. */
bool pd_file_read(struct pd_file_text **files, const char *line);

/* Whether a path is one of the places where a file of the tree lies, as it is written or as the system finds it. */
bool pd_file_is_at(const struct pd_file_text *file, const char *path);

/* The file that is so at a path; one whose place is written so goes first. NULL: none of them. */
struct pd_file_text *pd_file_at(struct pd_file_text *files, const char *path);

/* Tells that the code of a file of the tree, by its name there, was loaded from another place. */
void pd_note_misplaced(const char *path, const char *name, size_t length);

#endif
