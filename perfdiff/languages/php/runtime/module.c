/*
 * `perfdiff`: loaded at PHP's start where an ini file of ours is among those that are read, and `PERFDIFF_PHP` names a sheet (see
 * perfdiff/languages/php/start.py). It has no settings, and no functions but where tests are to be marked: what it cannot do, it tells in a note.
 */
#include <stdlib.h>

#include "php_probe.h"

uint32_t pd_request;

static bool is_on;

static bool start(void)
{
	const char *sheet = getenv("PERFDIFF_PHP");

	if (!sheet || !pd_probes)
		return false;
	if (!pd_sheet_open(sheet) || !pd_observer_begin())
		return false;
	if (pd_counting_begin && !pd_counting_begin())
		return false;
	pd_fibers_begin();
	pd_garbage_begin();
	pd_internals_begin();
	return true;
}

/* perfdiff_mark(string $text): bool; of the driver that runs tests, see pd_mark. */
ZEND_BEGIN_ARG_INFO_EX(mark_arguments, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, text, IS_STRING, 0)
ZEND_END_ARG_INFO()

static PHP_FUNCTION(perfdiff_mark)
{
	zend_string *text;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(text)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(pd_mark(ZSTR_VAL(text)));
}

static const zend_function_entry marking[] = {PHP_FE(perfdiff_mark, mark_arguments) PHP_FE_END};

static PHP_MINIT_FUNCTION(perfdiff)
{
	(void)module_number;
	pd_note("version", PHP_VERSION);
	is_on = start();
	if (!is_on)
		pd_note("failed", "the probes could not be started");
	if (is_on && getenv("PERFDIFF_MARKS") && zend_register_functions(NULL, marking, NULL, type) == FAILURE)
		pd_note("unmarked", "the function that marks tests could not be given to PHP");
	return SUCCESS;
}

/* The runtime's own end comes later, when the engine has gone: what is open now is closed here. */
static PHP_MSHUTDOWN_FUNCTION(perfdiff)
{
	(void)type, (void)module_number;
	if (is_on)
		pd_end();
	return SUCCESS;
}

static PHP_RINIT_FUNCTION(perfdiff)
{
	(void)type, (void)module_number;
	pd_request++;
	if (is_on) {
		pd_internals_settle();
		pd_rest_end();
		pd_sites_begin();
	}
	if (is_on && pd_counting_request_begin)
		pd_counting_request_begin();
	return SUCCESS;
}

/* Behind all destructors, and before the request's memory is given back. */
static ZEND_MODULE_POST_ZEND_DEACTIVATE_D(perfdiff)
{
	if (is_on && pd_counting_request_end)
		pd_counting_request_end();
	if (is_on)
		pd_request_end();
	return SUCCESS;
}

static zend_module_entry perfdiff_module_entry = {
	STANDARD_MODULE_HEADER,
	"perfdiff",
	NULL,
	PHP_MINIT(perfdiff),
	PHP_MSHUTDOWN(perfdiff),
	PHP_RINIT(perfdiff),
	NULL,
	NULL,
	NO_VERSION_YET,
	NO_MODULE_GLOBALS,
	ZEND_MODULE_POST_ZEND_DEACTIVATE_N(perfdiff),
	STANDARD_MODULE_PROPERTIES_EX,
};

ZEND_DLEXPORT zend_module_entry *get_module(void);
ZEND_DLEXPORT zend_module_entry *get_module(void)
{
	return &perfdiff_module_entry;
}
