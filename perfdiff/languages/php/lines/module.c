/*
 * `perfdiff` of a run whose lines are counted: loaded at PHP's start where `PERFDIFF_PHP` names a sheet (see perfdiff/languages/php/places.py).
 * What it cannot count is missed by who reads.
 */
#include <stdlib.h>

#include "lines.h"

static void begin(const char *sheet, const char *folder)
{
	uint64_t places = 0;
	int status = pd_lines_sheet_read(sheet, &places);

	if (pd_counts_open(folder, places) || status || pd_codes_begin() || pd_instructions_begin())
		pd_counts_flag(PD_DISTURBED);
}

static PHP_MINIT_FUNCTION(perfdiff)
{
	const char *sheet = getenv("PERFDIFF_PHP"), *folder = getenv("PERFDIFF_PLACES");

	(void)type, (void)module_number;
	if (getenv("PERFDIFF_DESCRIBE"))
		return pd_describing_begin() ? FAILURE : SUCCESS;
	if (sheet && folder)
		begin(sheet, folder);
	/* Code that is kept in files by a PHP without us has no handlers. */
	zend_add_system_entropy("perfdiff", "lines", NULL, 0);
	return SUCCESS;
}

static zend_module_entry perfdiff_module_entry = {
	STANDARD_MODULE_HEADER, "perfdiff", NULL, PHP_MINIT(perfdiff), NULL, NULL, NULL, NULL, NO_VERSION_YET, STANDARD_MODULE_PROPERTIES,
};

ZEND_DLEXPORT zend_module_entry *get_module(void);
ZEND_DLEXPORT zend_module_entry *get_module(void)
{
	return &perfdiff_module_entry;
}
