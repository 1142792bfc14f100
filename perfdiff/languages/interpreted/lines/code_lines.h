/* The sheet of lines: which code has lines that are counted, and which place each line is. */
#ifndef PERFDIFF_CODE_LINES_H
#define PERFDIFF_CODE_LINES_H

#include <stdint.h>

#define PD_NO_PLACE UINT32_MAX

/* The lines of some code: `places[line - first]` is the place of a line, PD_NO_PLACE where nothing of it is counted. */
struct pd_lines {
	uint32_t first, count;
	uint32_t *places;
	void *kept; /* what a language keeps of them */
};

/* What an interpreter compiles at a time. */
struct pd_listed_code {
	uint32_t first_line, last_line;
	const char *name; /* without what it stands in */
	struct pd_lines lines;
};

struct pd_listed_file {
	const char *path;
	const char *in_tree; /* the same file's first path */
	struct pd_listed_code *begin, *end;
};

int pd_lines_sheet_read(const char *path, uint64_t *places);

/* The file that a path names, or leads to where it `may_lead`; NULL where none does. */
const struct pd_listed_file *pd_lines_sheet_file(const char *path, int may_lead);

/* The place of a line, PD_NO_PLACE where it has none. */
static inline uint32_t pd_lines_place(const struct pd_lines *lines, uint32_t line)
{
	uint32_t offset = line - lines->first;

	return offset < lines->count ? lines->places[offset] : PD_NO_PLACE;
}

#endif
